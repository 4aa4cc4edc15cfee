"""The fitted linear models of which it is known what they minimised.

To add a class, write an adapter ``(estimator, X, y, weights) -> list of
ConvergedModel``, one for every output that was fitted on its own, beside those for
regressors or classifiers, or take one that is there, and list it in
``FITTED_MODELS``. Subclasses are found through their bases, all linear models of
this package through ``TrajectoryModel``. Of a pipeline what counts is the last step.
"""

import numpy as np
from sklearn import linear_model
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.validation import check_is_fitted

from .._estimator.run.fit import TrajectoryModel, linear_data
from .fitted_classifiers import linear_svc, logistic, svc
from .fitted_regressors import elastic_net, huber, multi_task, poisson, ridge
from .minimised import line_of, output_by_output


def recorded(estimator, X, y, weights):
    """The loss and the penalty of the iterate in use, as the run took them.

    Parameters
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    list of ConvergedModel
    """
    target = estimator._target(y).astype(float, copy=False)
    line = line_of(estimator, X, target.shape[1])
    data = linear_data(estimator, *estimator._coded_samples(X, y, weights))
    # Rows of weight zero are not among the prepared ones.
    own_weights = np.zeros(len(weights))
    own_weights[data.rows] = data.problem.row_weights[:, 0]
    penalty = _penalty_in_force(estimator)
    if data.is_centered:
        # The run has no coefficient for the intercept, but refits centre anew: it
        # is a coefficient that the penalty spares.
        penalty = line.spared(penalty)
    stays = 1 - own_weights
    shares = 1 - stays * estimator._spec().refit(data).penalty_scale(stays)
    model = line.converged(target, own_weights, estimator._loss, penalty, shares)
    return output_by_output(model)


def _penalty_in_force(estimator):
    """That of the phase which led to the iterate in use."""
    ends = np.cumsum([phase.n_updates for phase in estimator._phases])
    return estimator._phases[np.searchsorted(ends, estimator.iteration_)].penalty


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


def last_step(estimator, X=None):
    """The last step of a fitted pipeline and what it sees; others are their own.

    Parameters
    ----------
    estimator : estimator or Pipeline
    X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
        As the given estimator takes it.

    Returns
    -------
    estimator
    {array-like, sparse matrix} of shape (n_samples, n_features) or None
        X as that estimator takes it.

    Raises
    ------
    NotFittedError
        If a pipeline is not fitted; other estimators are not asked.
    """
    if not isinstance(estimator, Pipeline):
        return estimator, X
    check_is_fitted(estimator)
    if X is not None and len(estimator) > 1:
        X = estimator[:-1].transform(X)
    return last_step(estimator[-1], X)
