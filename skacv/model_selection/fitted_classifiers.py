"""What fitted linear classifiers minimised.

Adapters ``(estimator, X, y, weights) -> FittedModel``, or functions that make one.
"""

import numpy as np
from scipy import sparse

from .._compat import class_weights
from ..optim.losses import Logistic, Multinomial, SquaredHinge
from ..risk.converged.hinge import HingeModel
from ..risk.converged.newton import ConvergedModel
from .minimised import COUPLED, CURVED, HINGE, FittedModel, coefficients, dense

# LIBLINEAR stops when margins are right to its ``tol``; how much of that is
# taken for a row on the margin.
MARGIN_TOLERANCE = 10
# LIBSVM puts dual coefficients at their bound exactly, but for the product.
BOUND_TOLERANCE = 1e-9


# ----------------------------------------------------------- logistic regression


def logistic_of(strength):
    """C sum_i s_i l_i + the penalty; ``strength`` gives C and l1_ratio."""

    def adapter(estimator, X, y, weights):
        _refuse_one_vs_rest(estimator)
        labels = _encoded(estimator, y)
        C, l1_ratio = strength(estimator)
        coef, intercept = coefficients(estimator, _n_scores(estimator))
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


def logistic_strength(estimator):
    """C and l1_ratio of a logistic regression."""
    C = np.inf if estimator.penalty is None else float(estimator.C)
    return C, _l1_ratio_of(estimator, estimator.l1_ratio)


def logistic_cv_strength(estimator):
    """C and l1_ratio that cross-validation chose."""
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


# --------------------------------------------------------------------------- ours


def recorded_of(l1_ratio):
    """C sum_i s_i l_i + the penalty of the iterate in use, the loss that of the fit.

    A row weighs the same for all outputs, and the intercept is not penalised.
    """

    def adapter(estimator, X, y, weights):
        target, loss = estimator._target(y), estimator._loss
        coef, intercept = coefficients(estimator, target.shape[1])
        by_class = _class_weights(estimator, y, weights)
        weights = weights * by_class[np.searchsorted(estimator.classes_, y)]
        C, ratio = estimator.C_path_[estimator.iteration_], l1_ratio(estimator)
        every = np.arange(target.shape[1])
        outputs = [
            ConvergedModel(
                X=X,
                target=target[:, own],
                loss=loss,
                row_weights=weights[:, None],
                coef=coef[:, own],
                intercept=intercept[own],
                l1=ratio / C,
                l2=(1 - ratio) / C,
                has_intercept=bool(estimator.fit_intercept),
                penalty_shares=np.zeros(len(y)),
            )
            for own in ([every] if loss.is_coupled else every[:, None])
        ]
        return FittedModel(outputs, COUPLED if loss.is_coupled else CURVED)

    return adapter


def no_l1(estimator):
    """The l1_ratio of a ridge penalty."""
    return 0.0


# ------------------------------------------------------ support vector machines


def linear_svc(estimator, X, y, weights):
    """One machine, or one per class against the rest; the intercept is penalised."""
    if estimator.multi_class != "ovr" and len(estimator.classes_) > 2:
        raise ValueError("LinearSVC is supported with multi_class='ovr' only.")
    labels = _encoded(estimator, y)
    coef, intercept = coefficients(estimator, _n_scores(estimator))
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
    counts = data["row_weights"][:, 0] > 0
    return HingeModel(
        **data,
        l2=1 / estimator.C,
        on_margin=counts & (np.abs(slack) <= tolerance),
        within=slack > tolerance,
    )


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
    coef, intercept = coefficients(estimator, 1)
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
