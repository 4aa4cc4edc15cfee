"""The fitted linear models of which it is known what they minimised.

To add a class, write an adapter ``(estimator, X, y, weights) -> list of
ConvergedModel``, one for every output that was fitted on its own, or take one that is
there, and list it in ``FITTED_MODELS``. Subclasses are found through their bases, all
linear models of this package through ``TrajectoryModel``.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn import linear_model
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC, LinearSVC

from .._compat import class_weights
from .._estimator.data.training_data import column_data
from .._estimator.run.fit import TrajectoryModel
from ..optim.arrays import design_of
from ..optim.constant import WithConstant
from ..optim.families import except_last
from ..optim.losses import (
    Gamma,
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    SquaredError,
    SquaredHinge,
    tweedie,
)
from ..optim.penalties import L1, ElasticNet, SquaredL2
from ..optim.problem import Problem
from .hinge import Hinge, HingeModel, to_dense
from .model import ConvergedModel


class LinearPredictor(NamedTuple):
    """The linear predictors X coef + intercept of a fitted estimator.

    The intercept is None if it was not fitted, or is the coefficient of a column of X.
    Shapes: X (n, p), coef (p, k), intercept (k,).
    """

    X: np.ndarray | sparse.csr_matrix
    coef: np.ndarray
    intercept: np.ndarray | None

    def spare_intercept(self, penalty):
        """A penalty of the coefficients that leaves the intercept alone."""
        if self.intercept is None:
            return penalty
        return except_last(penalty, len(self.coef) + 1)

    def to_converged_model(self, target, weights, loss, penalty, penalty_shares=None):
        """The objective that was minimised.

        ``penalty`` is on all coefficients, an intercept last, and is added to the
        weighted mean of the losses. Shapes: target (n, k), weights (n,), penalty_shares
        (n,), those of the ConvergedModel.
        """
        design, coef = design_of(self.X), self.coef
        if self.intercept is not None:
            # The solver leaves the sum of the intercepts of several classes free.
            # Centring columns that not all classes use would change that sum.
            free = penalty.is_free(np.vstack([coef, self.intercept]))
            is_centred = not loss.is_coupled or bool(free.all())
            design, coef = self._add_ones(is_centred)
        weights = (weights / weights.sum())[:, None]
        problem = Problem(design, target, weights, loss)
        if penalty_shares is None:
            penalty_shares = np.zeros(len(target))
        return ConvergedModel(problem, penalty, coef, penalty_shares)

    def _add_ones(self, is_centred):
        """The design with a column of ones, dense columns centred; coefficients."""
        X, intercept = self.X.astype(np.float64, copy=False), self.intercept
        if is_centred and not sparse.issparse(X):
            center = X.mean(axis=0)
            X, intercept = X - center, intercept + center @ self.coef
        return WithConstant(design_of(X)), np.vstack([self.coef, intercept])


def output_by_output(model):
    """The models of all outputs that were fitted on their own."""
    if model.problem.loss.is_coupled:
        return [model]
    return [model.output(k) for k in range(model.coef.shape[1])]


def parameter_of(estimator, name, default=None):
    """The value of a parameter that cross-validation has chosen, else the user's."""
    return getattr(estimator, f"{name}_", getattr(estimator, name, default))


def line_of(estimator, X, n_outputs):
    """The linear predictors of an estimator, as far as y agrees with them."""
    intercept = np.ravel(estimator.intercept_).astype(float)
    coef = np.asarray(to_dense(estimator.coef_), dtype=float)
    coef = coef.reshape(-1, coef.shape[-1])
    if len(coef) != n_outputs:
        raise ValueError(
            f"y has {n_outputs} outputs, but the model was fitted with {len(coef)}."
        )
    # Estimators without that parameter have an intercept.
    has_intercept = getattr(estimator, "fit_intercept", True)
    intercept = np.broadcast_to(intercept, n_outputs) if has_intercept else None
    return LinearPredictor(X, coef.T, intercept)


# -------------------------------------------------------------------- regressors


def ridge(estimator, X, y, weights):
    """||y - X b||^2 + alpha ||b||^2, a penalty for every target; none by default."""
    _refuse_positive(estimator)
    target = y.reshape(len(y), -1)
    line = line_of(estimator, X, target.shape[1])
    alpha = parameter_of(estimator, "alpha", 0.0)
    return _ridges(line, target, weights, alpha)


def kernel_ridge(estimator, X, y, weights, rounding=1e-10):
    """A ridge regression on features whose products are the kernel, no intercept."""
    kernel, params = estimator.kernel, estimator.kernel_params or {}
    if not callable(kernel):
        names = "gamma", "degree", "coef0"
        params = {name: getattr(estimator, name) for name in names}
    matrix = pairwise_kernels(X, metric=kernel, filter_params=True, **params)
    dual = estimator.dual_coef_.reshape(len(estimator.dual_coef_), -1)
    if matrix.shape != (len(dual), len(dual)):
        raise ValueError(
            f"X has {X.shape[0]} rows, but KernelRidge was fitted to {len(dual)}."
        )
    values, vectors = np.linalg.eigh(matrix)
    if values[0] < -rounding * np.abs(values).max():
        raise ValueError(
            f"KernelRidge is supported with positive semidefinite kernels only, but "
            f"that of {kernel!r} has a negative eigenvalue on these rows."
        )
    roots = np.sqrt(np.clip(values, 0, None))
    line = LinearPredictor(vectors * roots, roots[:, None] * (vectors.T @ dual), None)
    return _ridges(line, y.reshape(len(y), -1), weights, estimator.alpha)


def _ridges(line, target, weights, alpha):
    """Models of the squared error with a penalty for every target."""
    strengths = np.asarray(alpha, float) / weights.sum()
    strengths = np.broadcast_to(strengths, target.shape[1]).tolist()
    penalties = [line.spare_intercept(SquaredL2(strength)) for strength in strengths]
    model = line.to_converged_model(target, weights, SquaredError(), penalties[0])
    return [replace(model.output(k), penalty=p) for k, p in enumerate(penalties)]


def elastic_net(estimator, X, y, weights):
    """The mean form (1 / 2n) ||y - X b||^2 + ...; the lasso has no l1_ratio."""
    _refuse_positive(estimator)
    target, shares = y.reshape(len(y), -1), weights / weights.sum()
    line = line_of(estimator, X, target.shape[1])
    alpha, l1_ratio = (
        parameter_of(estimator, "alpha"),
        parameter_of(estimator, "l1_ratio", 1.0),
    )
    penalty = line.spare_intercept(ElasticNet(float(alpha), float(l1_ratio)))
    model = line.to_converged_model(target, weights, SquaredError(), penalty, shares)
    return output_by_output(model)


def multi_task(estimator, X, y, weights):
    """Not supported, though derived from the lasso."""
    raise ValueError(
        f"{type(estimator).__name__} is not supported: its penalty couples the "
        "targets. Fit Lasso or ElasticNet, which also support several targets."
    )


def huber(estimator, X, y, weights):
    """In units of (2 / scale_) times the Huber loss, at the scale as it is."""
    line = line_of(estimator, X, 1)
    loss = Huber(float(estimator.epsilon * estimator.scale_))
    strength = float(estimator.alpha * estimator.scale_ / weights.sum())
    penalty = line.spare_intercept(SquaredL2(strength))
    return [line.to_converged_model(y[:, None], weights, loss, penalty)]


def generalized_linear(estimator, X, y, weights):
    """The mean form of half a deviance, which a subclass of scikit-learn names."""
    target, loss = y[:, None], _loss_of_deviance(estimator)
    loss.check_target(target)
    line, shares = line_of(estimator, X, 1), weights / weights.sum()
    # An l1 norm is in scikit-learn from 1.10 on.
    l1_ratio = float(getattr(estimator, "l1_ratio", None) or 0.0)
    penalty = line.spare_intercept(ElasticNet(float(estimator.alpha), l1_ratio))
    return [line.to_converged_model(target, weights, loss, penalty, shares)]


def _loss_of_deviance(estimator):
    if isinstance(estimator, linear_model.PoissonRegressor):
        return Poisson()
    if isinstance(estimator, linear_model.GammaRegressor):
        return Gamma()
    power, link = estimator.power, estimator.link
    if link == "auto":
        link = "log" if power > 0 else "identity"
    if power == 0 and link == "identity":
        return SquaredError()
    if 1 <= power <= 2 and link == "log":
        return tweedie(power)
    raise ValueError(
        "TweedieRegressor is supported with a power from 1 to 2 and a log link, or "
        f"with power 0 and the identity, got power={power} and link={link!r}."
    )


def _refuse_positive(estimator):
    if getattr(estimator, "positive", False):
        raise ValueError(f"{type(estimator).__name__}(positive=True) is not supported.")


# ----------------------------------------------- ridge and logistic regression


def ridge_classifier(estimator, X, y, weights):
    """The squared error of labels -1 and 1, of every class against the rest."""
    if y.ndim > 1:
        raise ValueError("RidgeClassifier is supported with one label for every row.")
    _refuse_positive(estimator)
    labels, n_scores = _encode(estimator, y), _n_scores(estimator)
    weights = weights * _class_weights(estimator, y, weights)[labels]
    positive = labels[:, None] == (1 if n_scores == 1 else np.arange(n_scores))
    line = line_of(estimator, X, n_scores)
    alpha = parameter_of(estimator, "alpha")
    return _ridges(line, np.where(positive, 1.0, -1.0), weights, alpha)


def logistic(estimator, X, y, weights):
    """C sum_i s_i l_i + the penalty, all classes in one model."""
    _refuse_one_vs_rest(estimator)
    if not getattr(estimator, "refit", True):
        raise ValueError(
            "LogisticRegressionCV(refit=False) averages the coefficients of several "
            "fits; they minimise nothing."
        )
    labels, n_scores = _encode(estimator, y), _n_scores(estimator)
    line = line_of(estimator, X, n_scores)
    weights = weights * _class_weights(estimator, y, weights)[labels]
    if estimator.solver == "liblinear":
        line = _penalised_intercept(estimator, line)
    target = labels[:, None] if n_scores == 1 else np.eye(n_scores)[labels]
    loss = Logistic() if n_scores == 1 else Multinomial()
    C = np.inf if estimator.penalty is None else _first_chosen(estimator, "C")
    strength = float(1 / (C * weights.sum()))
    # ``penalty`` has the ratio up to scikit-learn 1.7, ``l1_ratio`` from 1.8 on.
    l1_ratio = _first_chosen(estimator, "l1_ratio") or 0.0
    l1_ratio = {"l2": 0.0, "l1": 1.0, None: 0.0}.get(estimator.penalty, l1_ratio)
    penalty = line.spare_intercept(ElasticNet(strength, float(l1_ratio)))
    return output_by_output(
        line.to_converged_model(target.astype(float), weights, loss, penalty)
    )


def _first_chosen(estimator, name):
    """The parameter; of cross-validation, that of the first class stands for all."""
    return np.ravel(parameter_of(estimator, name))[0]


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
    labels = _encode(estimator, y)
    line = _penalised_intercept(estimator, line_of(estimator, X, _n_scores(estimator)))
    by_class = _class_weights(estimator, y, weights)
    is_binary = len(estimator.classes_) == 2
    outputs = []
    for k, coef in enumerate(line.coef.T):
        positive = labels == (1 if is_binary else k)
        # Against the rest, the rest has weight one.
        scale = by_class[labels] if is_binary else np.where(positive, by_class[k], 1)
        line_k = line._replace(coef=coef[:, None])
        target = np.where(positive, 1.0, -1.0)[:, None]
        outputs.append(_machine(estimator, line_k, target, weights * scale))
    return outputs


def _machine(estimator, line, target, weights, margin=10):
    """One output of LinearSVC; rows within ``margin`` times its tol are on the margin.

    LIBLINEAR stops when margins are right to its ``tol``.
    """
    kind = L1 if estimator.penalty == "l1" else SquaredL2
    penalty = kind(1 / (estimator.C * weights.sum()))
    if estimator.loss == "squared_hinge":
        return line.to_converged_model(target, weights, SquaredHinge(), penalty)
    model = line.to_converged_model(target, weights, Hinge(), penalty)
    slack = (1 - target * model.predictor)[:, 0]
    tolerance = margin * estimator.tol
    on_margin = model.counts & (np.abs(slack) <= tolerance)
    return _hinge_model(model, on_margin, slack > tolerance)


def svc(estimator, X, y, weights, tol=1e-9):
    """The linear kernel, two classes; dual coefficients show which rows are where.

    LIBSVM puts dual coefficients at their bounds exactly, but for the product.
    """
    if estimator.kernel != "linear" or len(estimator.classes_) > 2:
        raise ValueError("SVC is supported with kernel='linear' and two classes.")
    labels = _encode(estimator, y)
    # LIBSVM drops rows of weight zero before it counts.
    rows = np.flatnonzero(weights)
    if estimator.support_.max() >= len(rows):
        raise ValueError("X has fewer rows than the data that SVC was fitted on.")
    row_weights = weights * np.asarray(estimator.class_weight_)[labels]
    dual = np.zeros(len(labels))
    dual[rows[estimator.support_]] = np.abs(to_dense(estimator.dual_coef_)).ravel()
    at_bound = dual >= (1 - tol) * estimator.C * row_weights
    line = line_of(estimator, X, 1)
    penalty = line.spare_intercept(SquaredL2(1 / (estimator.C * row_weights.sum())))
    target = np.where(labels == 1, 1.0, -1.0)[:, None]
    model = line.to_converged_model(target, row_weights, Hinge(), penalty)
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
        return LinearPredictor(
            sparse.hstack([line.X, column], format="csr"), coef, None
        )
    return LinearPredictor(np.hstack([line.X, column]), coef, None)


# ------------------------------------------------------ what classifiers share


def _encode(estimator, y):
    """Which of the model's classes every label is."""
    unknown = np.setdiff1d(y, estimator.classes_)
    if len(unknown):
        raise ValueError(
            f"y has labels unseen in fit: {unknown.tolist()}; its classes are "
            f"{estimator.classes_.tolist()}."
        )
    return np.searchsorted(estimator.classes_, y)


def _n_scores(estimator):
    return 1 if len(estimator.classes_) == 2 else len(estimator.classes_)


def _class_weights(estimator, y, weights):
    return class_weights(estimator.class_weight, estimator.classes_, y, weights)


# ------------------------------------------------------ models of this package


def trajectory_model(estimator, X, y, weights):
    """The loss and the penalty of the iterate in use, of a linear model of skacv."""
    if estimator._loss.couples_rows:
        raise ValueError(
            f"{type(estimator).__name__} compares rows with each other, and a row that "
            "is left out alone has no loss: use its cv_path_."
        )
    if estimator.record_.offset is not None:
        raise ValueError(
            f"This {type(estimator).__name__} was fitted with an offset: fit it to the "
            "targets and weights that stand for it, such as counts / exposure with "
            "weights of exposure."
        )
    target = estimator._target(y)
    line = line_of(estimator, X, target.shape[1])
    data = column_data(
        *estimator._encode_samples(X, y, weights),
        estimator.fit_intercept,
        estimator.standardize,
    )
    # Rows of weight zero are not among the prepared ones.
    row_weights = np.zeros(len(weights))
    row_weights[data.rows] = data.problem.row_weights[:, 0]
    # The penalty of the phase that led to the iterate in use.
    ends = np.cumsum([phase.n_updates for phase in estimator.record_.phases])
    phase = estimator.record_.phases[np.searchsorted(ends, estimator.iteration_)]
    penalty = phase.penalty
    if data.is_centered:
        # The run has no coefficient for the intercept, but refits centre anew: it
        # is a coefficient that the penalty spares.
        penalty = line.spare_intercept(penalty)
    stays = 1 - row_weights
    _, penalty_scale = estimator._spec().refit(data).scales(stays)
    shares = 1 - stays * penalty_scale
    model = line.to_converged_model(
        target, row_weights, estimator._loss, penalty, shares
    )
    return output_by_output(model)


# --------------------------------------------------------------------- the table

FITTED_MODELS = {
    linear_model.Ridge: ridge,
    linear_model.RidgeCV: ridge,
    linear_model.LinearRegression: ridge,
    linear_model.RidgeClassifier: ridge_classifier,
    linear_model.RidgeClassifierCV: ridge_classifier,
    KernelRidge: kernel_ridge,
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
    linear_model.PoissonRegressor: generalized_linear,
    linear_model.GammaRegressor: generalized_linear,
    linear_model.TweedieRegressor: generalized_linear,
    TrajectoryModel: trajectory_model,
}


def is_supported(kind):
    """Whether there is an adapter of a class."""
    return any(base in FITTED_MODELS for base in kind.__mro__)


def adapter_of(kind):
    """The adapter of a class; TypeError if there is none."""
    for base in kind.__mro__:
        if base in FITTED_MODELS:
            return FITTED_MODELS[base]
    internal = {linear_model.MultiTaskElasticNet, TrajectoryModel}
    names = ", ".join(sorted(base.__name__ for base in FITTED_MODELS.keys() - internal))
    raise TypeError(
        f"{kind.__name__} is not supported; supported models are {names} and "
        "the linear models of skacv. After a search, pass its fitted estimator, "
        "such as best_estimator_ or estimator_."
    )
