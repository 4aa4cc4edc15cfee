"""The fitted linear models of which it is known what they minimised.

To add a class, write an adapter ``(estimator, X, y, weights) -> list of
ConvergedModel``, one for every output that was fitted on its own, or take one that is
there, and list it in ``FITTED_MODELS``. Subclasses are found through their bases, all
linear models of this package through ``TrajectoryModel``.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn import linear_model
from sklearn.svm import SVC, LinearSVC

from .._compat import class_weights
from .._estimator.data.training_data import column_data
from .._estimator.run.fit import TrajectoryModel
from ..optim.losses import (
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    SquaredError,
    SquaredHinge,
)
from ..optim.penalties import L1, ElasticNet, SquaredL2
from ..risk.converged.hinge import Hinge, HingeModel
from .minimised import Line, chosen, dense, line_of, output_by_output

# LIBLINEAR stops when margins are right to its ``tol``; how much of that is
# taken for a row on the margin.
MARGIN_TOLERANCE = 10
# LIBSVM puts dual coefficients at their bound exactly, but for the product.
BOUND_TOLERANCE = 1e-9


# -------------------------------------------------------------------- regressors


def ridge(estimator, X, y, weights):
    """||y - X b||^2 + alpha ||b||^2, a penalty for every target."""
    _refuse_positive(estimator)
    target = y.reshape(len(y), -1)
    line = line_of(estimator, X, target.shape[1])
    strengths = np.asarray(chosen(estimator, "alpha"), float) / weights.sum()
    strengths = np.broadcast_to(strengths, target.shape[1]).tolist()
    penalties = [line.spared(SquaredL2(strength)) for strength in strengths]
    model = line.converged(target, weights, SquaredError(), penalties[0])
    return [replace(model.output(k), penalty=own) for k, own in enumerate(penalties)]


def elastic_net(estimator, X, y, weights):
    """The mean form (1 / 2n) ||y - X b||^2 + ...; the lasso has no l1_ratio."""
    _refuse_positive(estimator)
    target, shares = y.reshape(len(y), -1), weights / weights.sum()
    line = line_of(estimator, X, target.shape[1])
    alpha, l1_ratio = chosen(estimator, "alpha"), chosen(estimator, "l1_ratio", 1.0)
    penalty = line.spared(ElasticNet(float(alpha), float(l1_ratio)))
    model = line.converged(target, weights, SquaredError(), penalty, shares)
    return output_by_output(model)


def multi_task(estimator, X, y, weights):
    """Not supported, though derived from the lasso."""
    raise ValueError(
        f"{type(estimator).__name__} is not supported: its penalty couples the "
        "targets. Fit Lasso or ElasticNet, which take several targets too."
    )


def huber(estimator, X, y, weights):
    """In units of (2 / scale_) times the Huber loss, at the scale as it is."""
    line = line_of(estimator, X, 1)
    loss = Huber(float(estimator.epsilon * estimator.scale_))
    strength = float(estimator.alpha * estimator.scale_ / weights.sum())
    penalty = line.spared(SquaredL2(strength))
    return [line.converged(y[:, None], weights, loss, penalty)]


def poisson(estimator, X, y, weights):
    """The mean form; predictions are the means exp(x'b)."""
    if (y < 0).any():
        raise ValueError(
            f"y has negative values, {type(estimator).__name__} takes none."
        )
    line, shares = line_of(estimator, X, 1), weights / weights.sum()
    penalty = line.spared(SquaredL2(float(estimator.alpha)))
    return [line.converged(y[:, None], weights, Poisson(), penalty, shares)]


def _refuse_positive(estimator):
    if getattr(estimator, "positive", False):
        raise ValueError(f"{type(estimator).__name__}(positive=True) is not supported.")


# ----------------------------------------------------------- logistic regression


def logistic(estimator, X, y, weights):
    """C sum_i s_i l_i + the penalty, all classes in one model."""
    _refuse_one_vs_rest(estimator)
    if not getattr(estimator, "refit", True):
        raise ValueError(
            "LogisticRegressionCV(refit=False) averages the coefficients of several "
            "fits; nothing was minimised by them."
        )
    labels, n_scores = _encoded(estimator, y), _n_scores(estimator)
    line = line_of(estimator, X, n_scores)
    weights = weights * _class_weights(estimator, y, weights)[labels]
    if estimator.solver == "liblinear":
        line = _penalised_intercept(estimator, line)
    target = labels[:, None] if n_scores == 1 else np.eye(n_scores)[labels]
    loss = Logistic() if n_scores == 1 else Multinomial()
    C = np.inf if estimator.penalty is None else _first_chosen(estimator, "C")
    strength = float(1 / (C * weights.sum()))
    penalty = line.spared(ElasticNet(strength, _l1_ratio(estimator)))
    return output_by_output(
        line.converged(target.astype(float), weights, loss, penalty)
    )


def _first_chosen(estimator, name):
    """The parameter; of cross-validation, that of the first class stands for all."""
    return np.ravel(chosen(estimator, name))[0]


def _l1_ratio(estimator):
    """``penalty`` says it up to scikit-learn 1.7, ``l1_ratio`` from 1.8 on."""
    named = {"l2": 0.0, "l1": 1.0, None: 0.0}
    given = _first_chosen(estimator, "l1_ratio") or 0.0
    return float(named.get(estimator.penalty, given))


def _refuse_one_vs_rest(estimator):
    """Up to scikit-learn 1.7 classes could be fitted against the rest."""
    multi_class = getattr(estimator, "multi_class", "deprecated")
    n_classes = len(estimator.classes_)
    one_vs_rest = multi_class == "ovr" or estimator.solver == "liblinear"
    if (n_classes > 2 and one_vs_rest) or (
        n_classes == 2 and multi_class == "multinomial"
    ):
        raise ValueError(
            "Several classes are supported in one multinomial model, two classes in "
            "one binary model. Use another solver or leave multi_class at its default, "
            "or fit OneVsRestClassifier and pass each of its estimators_."
        )


# ------------------------------------------------------ support vector machines


def linear_svc(estimator, X, y, weights):
    """One machine, or one per class against the rest; the intercept is penalised."""
    if estimator.multi_class != "ovr" and len(estimator.classes_) > 2:
        raise ValueError("LinearSVC is supported with multi_class='ovr' only.")
    labels = _encoded(estimator, y)
    line = _penalised_intercept(estimator, line_of(estimator, X, _n_scores(estimator)))
    by_class = _class_weights(estimator, y, weights)
    is_binary = len(estimator.classes_) == 2
    outputs = []
    for k, coef in enumerate(line.coef.T):
        positive = labels == (1 if is_binary else k)
        # Against the rest, the rest has weight one.
        scale = by_class[labels] if is_binary else np.where(positive, by_class[k], 1)
        own = line._replace(coef=coef[:, None])
        target = np.where(positive, 1.0, -1.0)[:, None]
        outputs.append(_machine(estimator, own, target, weights * scale))
    return outputs


def _machine(estimator, line, target, weights):
    """One output of LinearSVC."""
    kind = L1 if estimator.penalty == "l1" else SquaredL2
    penalty = kind(1 / (estimator.C * weights.sum()))
    if estimator.loss == "squared_hinge":
        return line.converged(target, weights, SquaredHinge(), penalty)
    model = line.converged(target, weights, Hinge(), penalty)
    slack = (1 - target * model.predictor)[:, 0]
    tolerance = MARGIN_TOLERANCE * estimator.tol
    on_margin = model.counts & (np.abs(slack) <= tolerance)
    return _hinge_model(model, on_margin, slack > tolerance)


def svc(estimator, X, y, weights):
    """The linear kernel, two classes; the dual coefficients say who is where."""
    if estimator.kernel != "linear" or len(estimator.classes_) > 2:
        raise ValueError("SVC is supported with kernel='linear' and two classes.")
    labels = _encoded(estimator, y)
    # LIBSVM drops rows of weight zero before it counts.
    rows = np.flatnonzero(weights)
    if estimator.support_.max() >= len(rows):
        raise ValueError("X has fewer rows than the data that SVC was fitted on.")
    row_weights = weights * np.asarray(estimator.class_weight_)[labels]
    dual = np.zeros(len(labels))
    dual[rows[estimator.support_]] = np.abs(dense(estimator.dual_coef_)).ravel()
    at_bound = dual >= (1 - BOUND_TOLERANCE) * estimator.C * row_weights
    line = line_of(estimator, X, 1)
    penalty = line.spared(SquaredL2(1 / (estimator.C * row_weights.sum())))
    target = np.where(labels == 1, 1.0, -1.0)[:, None]
    model = line.converged(target, row_weights, Hinge(), penalty)
    on_margin, within = (dual > 0) & ~at_bound, (dual > 0) & at_bound
    return [_hinge_model(model, on_margin, within)]


def _hinge_model(model, on_margin, within):
    fields = model.problem, model.penalty, model.coef, model.penalty_shares
    return HingeModel(*fields, on_margin, within)


def _penalised_intercept(estimator, line):
    """LIBLINEAR's: the coefficient of one more column, penalised as all others."""
    if line.intercept is None:
        return line
    scaling = estimator.intercept_scaling
    coef = np.vstack([line.coef, line.intercept / scaling])
    column = np.full((line.X.shape[0], 1), scaling)
    if sparse.issparse(line.X):
        return Line(sparse.hstack([line.X, column], format="csr"), coef, None)
    return Line(np.hstack([line.X, column]), coef, None)


# ------------------------------------------------------ what classifiers share


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


# ------------------------------------------------------ models of this package


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
    target = estimator._target(y)
    line = line_of(estimator, X, target.shape[1])
    data = column_data(
        *estimator._encoded_samples(X, y, weights),
        estimator.fit_intercept,
        estimator.standardize,
    )
    # Rows of weight zero are not among the prepared ones.
    own_weights = np.zeros(len(weights))
    own_weights[data.rows] = data.problem.row_weights[:, 0]
    # That of the phase which led to the iterate in use.
    ends = np.cumsum([phase.n_updates for phase in estimator._phases])
    phase = estimator._phases[np.searchsorted(ends, estimator.iteration_)]
    penalty = phase.penalty
    if data.is_centered:
        # The run has no coefficient for the intercept, but refits centre anew: it
        # is a coefficient that the penalty spares.
        penalty = line.spared(penalty)
    stays = 1 - own_weights
    shares = 1 - stays * estimator._spec().refit(data).penalty_scale(stays)
    model = line.converged(target, own_weights, estimator._loss, penalty, shares)
    return output_by_output(model)


# --------------------------------------------------------------------- the table

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
