"""What every class of fitted linear models minimised, and where.

To add a class, write a function ``(estimator, X, y, weights) -> FittedModel``,
or take one that is here, and list it in ``FITTED_MODELS``. Subclasses are found
through their bases.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
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

from .._compat import class_weights
from ..linear_model import IterativeRidge, TrajectoryElasticNet, TrajectoryLasso
from ..optim.losses import (
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    SquaredError,
    SquaredHinge,
)
from ..risk.converged import ConvergedModel, infinitesimal_jackknife, newton_step
from ..risk.converged_hinge import HingeModel, support_stays
from ..risk.randomized import randomized_leverages

# The approximations of a loss with a curvature, of one with coupled outputs, and
# of the hinge.
COUPLED = {
    "alo": newton_step,
    "newton": newton_step,
    "ij": infinitesimal_jackknife,
}
CURVED = {**COUPLED, "randomized": randomized_leverages}
HINGE = {"alo": support_stays}

# LIBLINEAR stops when margins are right to its ``tol``; how much of that is
# taken for a row on the margin.
MARGIN_TOLERANCE = 10
# LIBSVM puts dual coefficients at their bound exactly, but for the product.
BOUND_TOLERANCE = 1e-9


class FittedModel(NamedTuple):
    """A fitted estimator as what it minimised.

    Attributes
    ----------
    outputs : list of ConvergedModel or HingeModel
        One for every output that was fitted on its own.
    approximations : dict
        By name, what can be done without refits.
    mean_function : callable
        From the linear predictor to what the estimator predicts.
    """

    outputs: list
    approximations: dict
    mean_function: Callable = np.asarray


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
    known = ", ".join(sorted(known.__name__ for known in FITTED_MODELS))
    raise TypeError(f"What {kind.__name__} minimises is not known; known are {known}.")


# -------------------------------------------------------------- least squares


def _least_squares(estimator, X, y, weights, l1, l2, shares):
    """Squared error, one model per target; l2 may differ between them."""
    _refuse_positive(estimator)
    target = y.reshape(len(y), -1)
    coef, intercept = _coefficients(estimator, target.shape[1])
    strengths = np.broadcast_to(np.asarray(l2, float), target.shape[1])
    outputs = [
        ConvergedModel(
            X=X,
            target=target[:, [k]],
            loss=SquaredError(),
            row_weights=weights[:, None],
            coef=coef[:, [k]],
            intercept=intercept[[k]],
            l1=l1,
            l2=float(strengths[k]),
            has_intercept=bool(estimator.fit_intercept),
            penalty_shares=shares,
        )
        for k in range(target.shape[1])
    ]
    return FittedModel(outputs, CURVED)


def _ridge_of(alpha):
    """||y - X b||^2 + alpha ||b||^2, ``alpha`` read from the estimator."""

    def adapter(estimator, X, y, weights):
        shares = np.zeros(len(y))
        return _least_squares(estimator, X, y, weights, 0.0, alpha(estimator), shares)

    return adapter


def _elastic_net_of(alpha, l1_ratio):
    """The mean form (1 / 2n) ||y - X b||^2 + ..., both read from the estimator."""

    def adapter(estimator, X, y, weights):
        total = weights.sum()
        strength, ratio = total * alpha(estimator), l1_ratio(estimator)
        l1, l2 = float(strength * ratio), float(strength * (1 - ratio))
        return _least_squares(estimator, X, y, weights, l1, l2, weights / total)

    return adapter


def _only_l1(estimator):
    return 1.0


def _alpha_in_force(estimator):
    """That of the iterate in use."""
    return estimator.alpha_path_[estimator.iteration_]


def _multi_task(estimator, X, y, weights):
    raise ValueError(
        f"{type(estimator).__name__} is not supported: its penalty couples the "
        "targets. Fit Lasso or ElasticNet, which take several targets too."
    )


# ------------------------------------------------------------ other regressors


def _one_output(estimator, X, target, weights, loss, l2, shares, link=np.asarray):
    """A regressor of one target with a ridge penalty."""
    coef, intercept = _coefficients(estimator, target.reshape(len(target), -1).shape[1])
    model = ConvergedModel(
        X=X,
        target=target[:, None],
        loss=loss,
        row_weights=weights[:, None],
        coef=coef,
        intercept=intercept,
        l1=0.0,
        l2=float(l2),
        has_intercept=bool(estimator.fit_intercept),
        penalty_shares=shares,
    )
    return FittedModel([model], CURVED, link)


def _huber(estimator, X, y, weights):
    """In units of (2 / scale_) times the Huber loss, at the scale as it is."""
    loss = Huber(float(estimator.epsilon * estimator.scale_))
    l2 = estimator.alpha * estimator.scale_
    return _one_output(estimator, X, y, weights, loss, l2, np.zeros(len(y)))


def _poisson(estimator, X, y, weights):
    if (y < 0).any():
        raise ValueError("y has negative values, PoissonRegressor takes none.")
    total = weights.sum()
    l2, shares = estimator.alpha * total, weights / total
    return _one_output(estimator, X, y, weights, Poisson(), l2, shares, np.exp)


# ----------------------------------------------------------- logistic regression


def _logistic_of(strength):
    """C sum_i s_i l_i + the penalty; ``strength`` gives C and l1_ratio."""

    def adapter(estimator, X, y, weights):
        _refuse_one_vs_rest(estimator)
        labels = _encoded(estimator, y)
        C, l1_ratio = strength(estimator)
        coef, intercept = _coefficients(estimator, _n_scores(estimator))
        weights = weights * _class_weights(estimator, y, weights)[labels]
        has_intercept = bool(estimator.fit_intercept)
        if has_intercept and estimator.solver == "liblinear":
            scaling = estimator.intercept_scaling
            X, coef, intercept = _penalised_intercept(X, coef, intercept, scaling)
            has_intercept = False
        is_binary = len(estimator.classes_) == 2
        target = labels[:, None] if is_binary else np.eye(len(coef.T))[labels]
        model = ConvergedModel(
            X=X,
            target=target.astype(float),
            loss=Logistic() if is_binary else Multinomial(),
            row_weights=weights[:, None],
            coef=coef,
            intercept=intercept,
            l1=l1_ratio / C,
            l2=(1 - l1_ratio) / C,
            has_intercept=has_intercept,
            penalty_shares=np.zeros(len(y)),
        )
        return FittedModel([model], CURVED if is_binary else COUPLED)

    return adapter


def _l1_ratio_of(estimator, given):
    """``penalty`` says it up to scikit-learn 1.7, ``l1_ratio`` from 1.8 on."""
    named = {"l2": 0.0, "l1": 1.0, None: 0.0}
    return float(named.get(estimator.penalty, given or 0.0))


def _logistic_strength(estimator):
    C = np.inf if estimator.penalty is None else float(estimator.C)
    return C, _l1_ratio_of(estimator, estimator.l1_ratio)


def _logistic_cv_strength(estimator):
    if not estimator.refit:
        raise ValueError(
            "LogisticRegressionCV(refit=False) averages the coefficients of several "
            "fits; nothing was minimised by them."
        )
    C = np.inf if estimator.penalty is None else float(np.ravel(estimator.C_)[0])
    return C, _l1_ratio_of(estimator, np.ravel(estimator.l1_ratio_)[0])


def _refuse_one_vs_rest(estimator):
    """Up to scikit-learn 1.7 classes could be fitted against the rest."""
    multi_class = getattr(estimator, "multi_class", "deprecated")
    n_classes = len(estimator.classes_)
    one_vs_rest = multi_class == "ovr" or estimator.solver == "liblinear"
    if (n_classes > 2 and one_vs_rest) or (
        n_classes == 2 and multi_class == "multinomial"
    ):
        raise ValueError(
            "Several classes are supported in one multinomial model, two in a binary "
            "one; take another solver or leave multi_class at its default, or wrap the "
            "estimator in OneVsRestClassifier and look at each of its estimators."
        )


# ------------------------------------------------------ support vector machines


def _linear_svc(estimator, X, y, weights):
    """One machine, or one per class against the rest; the intercept is penalised."""
    if estimator.multi_class != "ovr" and len(estimator.classes_) > 2:
        raise ValueError("LinearSVC is supported with multi_class='ovr' only.")
    labels = _encoded(estimator, y)
    coef, intercept = _coefficients(estimator, _n_scores(estimator))
    if estimator.fit_intercept:
        scaling = estimator.intercept_scaling
        X, coef, intercept = _penalised_intercept(X, coef, intercept, scaling)
    by_class = _class_weights(estimator, y, weights)
    machines = {"hinge": _hinge_machine, "squared_hinge": _squared_hinge_machine}
    machine = machines[estimator.loss]
    outputs = []
    for k in range(coef.shape[1]):
        is_binary = coef.shape[1] == 1
        positive = labels == (1 if is_binary else k)
        # Against the rest, the rest has weight one.
        scale = by_class[labels] if is_binary else np.where(positive, by_class[k], 1)
        outputs.append(
            machine(
                estimator,
                X=X,
                target=np.where(positive, 1.0, -1.0)[:, None],
                row_weights=(weights * scale)[:, None],
                coef=coef[:, [k]],
                intercept=intercept[[k]],
                has_intercept=False,
            )
        )
    return FittedModel(outputs, HINGE if estimator.loss == "hinge" else CURVED)


def _squared_hinge_machine(estimator, **data):
    is_l1 = estimator.penalty == "l1"
    return ConvergedModel(
        **data,
        loss=SquaredHinge(),
        l1=1 / estimator.C if is_l1 else 0.0,
        l2=0.0 if is_l1 else 1 / estimator.C,
        penalty_shares=np.zeros(len(data["target"])),
    )


def _hinge_machine(estimator, **data):
    scores = data["X"] @ data["coef"] + data["intercept"]
    slack = (1 - data["target"] * scores)[:, 0]
    tolerance = MARGIN_TOLERANCE * estimator.tol
    return HingeModel(
        **data,
        l2=1 / estimator.C,
        on_margin=np.abs(slack) <= tolerance,
        within=slack > tolerance,
    )


def _svc(estimator, X, y, weights):
    """The linear kernel, two classes; the dual coefficients say who is where."""
    if estimator.kernel != "linear" or len(estimator.classes_) > 2:
        raise ValueError("SVC is supported with kernel='linear' and two classes.")
    labels = _encoded(estimator, y)
    if estimator.support_.max() >= len(labels):
        raise ValueError("X has fewer rows than the data that SVC was fitted on.")
    row_weights = weights * np.asarray(estimator.class_weight_)[labels]
    dual = np.zeros(len(labels))
    dual[estimator.support_] = np.abs(_dense(estimator.dual_coef_)).ravel()
    at_bound = dual >= (1 - BOUND_TOLERANCE) * estimator.C * row_weights
    coef, intercept = _coefficients(estimator, 1)
    model = HingeModel(
        X=X,
        target=np.where(labels == 1, 1.0, -1.0)[:, None],
        row_weights=row_weights[:, None],
        coef=coef,
        intercept=intercept,
        l2=1 / estimator.C,
        has_intercept=True,
        on_margin=(dual > 0) & ~at_bound,
        within=(dual > 0) & at_bound,
    )
    return FittedModel([model], HINGE)


# -------------------------------------------------------------------- together


def _coefficients(estimator, n_outputs):
    """(n_features, n_outputs) and (n_outputs,), as far as y agrees with them."""
    intercept = np.ravel(estimator.intercept_).astype(float)
    coef = np.asarray(_dense(estimator.coef_), dtype=float)
    coef = coef.reshape(-1, coef.shape[-1])
    if len(coef) != n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, but the model was fitted with {len(coef)}."
        )
    return coef.T, np.broadcast_to(intercept, n_outputs)


def _penalised_intercept(X, coef, intercept, scaling):
    """LIBLINEAR's: the coefficient of one more column, penalised as all others."""
    column = np.full((X.shape[0], 1), float(scaling))
    if sparse.issparse(X):
        X = sparse.hstack([X, column], format="csr")
    else:
        X = np.hstack([X, column])
    return X, np.vstack([coef, intercept / scaling]), np.zeros_like(intercept)


def _encoded(estimator, y):
    """Which of the model's classes every label is."""
    unknown = np.setdiff1d(y, estimator.classes_)
    if len(unknown):
        raise ValueError(
            f"y has labels that the model does not know: {unknown.tolist()}; its "
            f"classes are {estimator.classes_.tolist()}."
        )
    return np.searchsorted(estimator.classes_, y)


def _n_scores(estimator):
    return 1 if len(estimator.classes_) == 2 else len(estimator.classes_)


def _class_weights(estimator, y, weights):
    return class_weights(estimator.class_weight, estimator.classes_, y, weights)


def _refuse_positive(estimator):
    if getattr(estimator, "positive", False):
        raise ValueError(f"{type(estimator).__name__}(positive=True) is not supported.")


def _dense(array):
    return array.toarray() if sparse.issparse(array) else array


FITTED_MODELS = {
    Ridge: _ridge_of(lambda model: model.alpha),
    RidgeCV: _ridge_of(lambda model: model.alpha_),
    Lasso: _elastic_net_of(lambda model: model.alpha, _only_l1),
    LassoCV: _elastic_net_of(lambda model: model.alpha_, _only_l1),
    ElasticNet: _elastic_net_of(lambda model: model.alpha, lambda m: m.l1_ratio),
    ElasticNetCV: _elastic_net_of(lambda model: model.alpha_, lambda m: m.l1_ratio_),
    MultiTaskElasticNet: _multi_task,
    LogisticRegression: _logistic_of(_logistic_strength),
    LogisticRegressionCV: _logistic_of(_logistic_cv_strength),
    LinearSVC: _linear_svc,
    SVC: _svc,
    HuberRegressor: _huber,
    PoissonRegressor: _poisson,
    IterativeRidge: _ridge_of(_alpha_in_force),
    TrajectoryLasso: _elastic_net_of(_alpha_in_force, _only_l1),
    TrajectoryElasticNet: _elastic_net_of(_alpha_in_force, lambda m: m.l1_ratio),
}
