"""The table of fitted linear models of which it is known what they minimised.

To add a class, write a function ``(estimator, X, y, weights) -> FittedModel``
beside those for regressors or classifiers, or take one that is there, and list
it in ``FITTED_MODELS``. Subclasses are found through their bases, all linear
models of this package through ``TrajectoryModel``.
"""

from sklearn.linear_model import (
    ElasticNet,
    ElasticNetCV,
    HuberRegressor,
    Lasso,
    LassoCV,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskElasticNet,
    PoissonRegressor,
    Ridge,
    RidgeCV,
)
from sklearn.svm import SVC, LinearSVC

from .._estimator.fit import TrajectoryModel
from .fitted_classifiers import (
    linear_svc,
    logistic_cv_strength,
    logistic_of,
    logistic_strength,
    svc,
)
from .fitted_recorded import recorded
from .fitted_regressors import (
    alpha_given,
    elastic_net_of,
    huber,
    multi_task,
    only_l1,
    poisson,
    ridge_of,
)

FITTED_MODELS = {
    Ridge: ridge_of(alpha_given),
    RidgeCV: ridge_of(lambda model: model.alpha_),
    Lasso: elastic_net_of(alpha_given, only_l1),
    LassoCV: elastic_net_of(lambda model: model.alpha_, only_l1),
    ElasticNet: elastic_net_of(alpha_given, lambda m: m.l1_ratio),
    ElasticNetCV: elastic_net_of(lambda model: model.alpha_, lambda m: m.l1_ratio_),
    MultiTaskElasticNet: multi_task,
    LogisticRegression: logistic_of(logistic_strength),
    LogisticRegressionCV: logistic_of(logistic_cv_strength),
    LinearSVC: linear_svc,
    SVC: svc,
    HuberRegressor: huber,
    PoissonRegressor: poisson,
    TrajectoryModel: recorded,
}


def fitted_model(estimator, X, y, weights):
    """What ``estimator`` minimised on these data.

    Parameters
    ----------
    estimator : object
        Fitted, of a class in ``FITTED_MODELS`` or derived from one.
    X : {ndarray, CSR matrix} of shape (n_samples, n_features), float64
    y : ndarray of shape (n_samples,) or (n_samples, n_targets)
    weights : ndarray of shape (n_samples,)

    Returns
    -------
    FittedModel
    """
    return adapter_of(type(estimator))(estimator, X, y, weights)


def adapter_of(kind):
    """The function for a class.

    Raises
    ------
    TypeError
        If there is none.
    """
    for base in kind.__mro__:
        if base in FITTED_MODELS:
            return FITTED_MODELS[base]
    theirs = FITTED_MODELS.keys() - {MultiTaskElasticNet, TrajectoryModel}
    names = ", ".join(sorted(base.__name__ for base in theirs))
    raise TypeError(
        f"What {kind.__name__} minimises is not known; known are {names} and the "
        "linear models of skacv. Of a search pass the fitted estimator inside, such "
        "as best_estimator_ or estimator_."
    )
