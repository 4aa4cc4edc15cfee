"""The objectives of fitted linear classifiers of scikit-learn.

Adapters ``(estimator, X, y, weights) -> list of ConvergedModel``.
"""

import numpy as np
from scipy import sparse

from .._compat import class_weights
from ..optim.losses import Logistic, Multinomial, SquaredHinge
from ..optim.penalties import L1, ElasticNet, SquaredL2
from ..risk.converged.hinge import Hinge, HingeModel
from .minimised import (
    Line,
    chosen,
    dense,
    line_of,
    output_by_output,
)

# LIBLINEAR stops when margins are right to its ``tol``; how much of that is
# taken for a row on the margin.
MARGIN_TOLERANCE = 10
# LIBSVM puts dual coefficients at their bound exactly, but for the product.
BOUND_TOLERANCE = 1e-9


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
        machine = _machine(
            estimator,
            line._replace(coef=coef[:, None]),
            np.where(positive, 1.0, -1.0)[:, None],
            weights * scale,
        )
        outputs.append(machine)
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
