"""The table of fitted linear models of which it is known what they minimised.

To add a class, write an adapter ``(estimator, X, y, weights) -> list of
ConvergedModel``, one for every output that was fitted on its own, beside those for
regressors or classifiers, or take one that is there, and list it in
``FITTED_MODELS``. Subclasses are found through their bases, all linear models of
this package through ``TrajectoryModel``.
"""

from sklearn import linear_model
from sklearn.svm import SVC, LinearSVC

from .._estimator.run.fit import TrajectoryModel
from .fitted_classifiers import linear_svc, logistic, svc
from .fitted_recorded import recorded
from .fitted_regressors import elastic_net, huber, multi_task, poisson, ridge

FITTED_MODELS = {
    linear_model.Ridge: ridge,
    linear_model.RidgeCV: ridge,
    linear_model.Lasso: elastic_net,
    linear_model.LassoCV: elastic_net,
    linear_model.ElasticNet: elastic_net,
    linear_model.ElasticNetCV: elastic_net,
    linear_model.MultiTaskElasticNet: multi_task,
    linear_model.LogisticRegression: logistic,
    linear_model.LogisticRegressionCV: logistic,
    LinearSVC: linear_svc,
    SVC: svc,
    linear_model.HuberRegressor: huber,
    linear_model.PoissonRegressor: poisson,
    TrajectoryModel: recorded,
}


def adapter_of(kind):
    """The adapter of a class.

    Returns
    -------
    callable
        It takes a fitted estimator, X of shape (n_samples, n_features), an array or
        a CSR matrix of float64, y and weights of the rows.

    Raises
    ------
    TypeError
        If there is none.
    """
    for base in kind.__mro__:
        if base in FITTED_MODELS:
            return FITTED_MODELS[base]
    theirs = FITTED_MODELS.keys() - {linear_model.MultiTaskElasticNet, TrajectoryModel}
    names = ", ".join(sorted(base.__name__ for base in theirs))
    raise TypeError(
        f"{kind.__name__} is not supported; supported models are {names} and "
        "the linear models of skacv. After a search, pass its fitted estimator, "
        "such as best_estimator_ or estimator_."
    )
