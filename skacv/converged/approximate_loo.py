"""Leave-one-out of a fitted linear model, without a refit."""

from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._compat import on_host
from .._estimator.data.checks import validate_rows_and_target, validate_weights
from .._estimator.delegation import last_step, samplers_of
from .._estimator.devices import convert_to_numpy
from .._typing import RandomState
from .._warnings import warn
from ..optim.losses import Logistic, LogLink, Multinomial
from ..risk.held_out_rows import mean_with_error
from .fitted_models import adapter_of
from .hinge import HingeModel, support_stays
from .newton import infinitesimal_jackknife, newton_step
from .randomised import Probes, randomized_leverages
from .second_step import second_step
from .support import has_kinks, support_changes

# From these leverages on a first-order step is half as long as it should be, and probes
# do not resolve 1 - leverage.
LARGEST_LEVERAGE = {"ij": 0.5, "randomized": 0.9}
# Methods for the hinge, for a loss with coupled outputs, and for any other loss.
HINGE = {"alo": support_stays}
COUPLED = {
    "alo": newton_step,
    "newton": newton_step,
    "ij": infinitesimal_jackknife,
}
# Losses whose curvature changes without jumps: of others a second step by the same
# Hessian says nothing.
SMOOTHLY_CURVED = Logistic, Multinomial, LogLink
CURVED = {**COUPLED, "randomized": randomized_leverages}


@dataclass(frozen=True, eq=False)
class ApproximateLOO:
    """Predictions and losses of a model for each row when fitted without it.

    Attributes
    ----------
    predictions : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Held-out predictions, on the scale of ``predict`` for regressors and of
        ``decision_function`` for classifiers.
    loss : ndarray of shape (n_samples,)
        Loss of these predictions: the loss that the model was fitted with, unweighted
        (for least squares the squared error, of labels -1 and 1 for
        ``RidgeClassifier``; for counts and amounts half the deviance; for Huber half
        the squared residual near zero).
    mean : float
        Mean of the loss, weighted by ``sample_weight``; with ``method="randomized"``
        corrected for the bias from the probes.
    standard_error : float
        Standard error of the mean, over rows.
    leverages : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Leverage of each row, between 0 and 1: the share of its linear predictor that
        its target determines.
    method : str
        The method that was used.
    support_changes : float or None
        Share of 50 rows, evenly spread, without which some coefficient becomes zero,
        nonzero or changes sign, though the method assumes these fixed. None without a
        kink in the penalty, and for "randomized".
    """

    predictions: np.ndarray
    loss: np.ndarray
    mean: float
    standard_error: float
    leverages: np.ndarray
    method: str
    support_changes: float | None = None


def approximate_loo(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    *,
    method: Literal["alo", "newton", "ij", "randomized"] = "alo",
    sample_weight: ArrayLike | None = None,
    n_probes: int = 100,
    random_state: RandomState = None,
) -> "ApproximateLOO":
    """Approximate leave-one-out of a fitted linear model, without refitting.

    Let theta minimise sum_i w_i l(y_i, x_i'b) + penalty, let z = X theta, let H be the
    Hessian over the active coefficients and h_i = x_i'H^-1 x_i. The linear predictor of
    row i by the model fitted without it is approximately

        z_i + w_i l'_i h_i / (1 - w_i l''_i h_i).

    This is exact for ridge regression. If the model is not quite at its minimum, the
    Newton step uses the whole gradient, theta - H_{-i}^-1 g_{-i}. If the objective is a
    mean over rows (lasso, elastic net, Poisson), the penalty is rescaled as in a refit
    on the remaining rows. Read more on :doc:`the page of estimates </estimates>`.

    Parameters
    ----------
    estimator : object
        A fitted linear model of scikit-learn or skacv (see the notes), or a fitted
        :class:`~sklearn.pipeline.Pipeline` ending in one. It is not changed.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The training data of the estimator. Sparse data are not densified.
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
        Its training targets.
    method : {"alo", "newton", "ij", "randomized"}, default="alo"
        "alo" is approximate leave-one-out by the formula above [1]_ [2]_, "newton" a
        Newton step, "ij" the infinitesimal jackknife z_i + w_i l'_i h_i, "randomized"
        uses random probes [4]_ for many rows and columns. For the hinge: "alo" [3]_.
    sample_weight : array-like of shape (n_samples,), default=None
        The weights in the fit. Rows of weight zero do not enter averages; their
        predictions are those of the fitted model.
    n_probes : int, default=100
        Number of random probes for "randomized", at least 4.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the probes.

    Returns
    -------
    ApproximateLOO
        Its fields are ``predictions``, ``loss``, ``mean``, ``standard_error``,
        ``leverages``, ``method`` and ``support_changes``.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.
    TypeError
        If the class of the estimator is not supported.
    ValueError
        If X or y do not match the estimator, the method is not available for it, the
        model without some row is not unique, or its penalty is not a sum over
        coefficients (the group lasso, whose ``loo_path_`` is exact).

    Warns
    -----
    ConvergenceWarning
        If the model is not at the minimum of its objective on these data, or nearly as
        many rows are on the margin of a hinge as there are coefficients.
    UserWarning
        If large leverages make "ij", "randomized" or an unstable support unreliable, or
        one step does not reach the model without a row, as in logistic regression with
        next to no penalty.

    Notes
    -----
    Supported are ``Ridge``, ``RidgeClassifier``, ``Lasso``, ``ElasticNet``,
    ``LogisticRegression`` and their ``CV`` variants, ``LinearRegression``,
    ``KernelRidge``, ``LinearSVC``, ``SVC(kernel="linear")``, ``HuberRegressor``,
    ``PoissonRegressor``, ``GammaRegressor`` and ``TweedieRegressor`` of scikit-learn,
    linear models of skacv run to convergence, and subclasses. Ridge and least squares,
    also of labels and of kernels, are exact. Balanced class weights, the scale of
    ``HuberRegressor``, an alpha chosen by cross-validation and the other steps of a
    pipeline are not re-estimated without each row. "alo" uses the nonzero coefficients
    under an l1 penalty. "randomized" is not available for several classes in one model.

    References
    ----------
    .. [1] Rad and Maleki (2020), "A scalable estimate of the out-of-sample
           prediction error via approximate leave-one-out cross-validation",
           arXiv:1801.10243.
    .. [2] Stephenson and Broderick (2020), "Approximate cross-validation in high
           dimensions with guarantees", arXiv:1905.13657.
    .. [3] Wang, Zhou, Lu, Maleki and Mirrokni (2018), "Approximate leave-one-out
           for fast parameter tuning in high dimensions", arXiv:1807.02694.
    .. [4] Nobel, LeJeune and Candes (2024), "RandALO: out-of-sample risk
           estimation in no time flat", arXiv:2409.09781.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from skacv import approximate_loo
    >>> X, y = load_diabetes(return_X_y=True)
    >>> result = approximate_loo(Ridge(alpha=0.1).fit(X, y), X, y)
    >>> result.predictions.shape
    (442,)
    >>> print(f"{result.mean:.0f} +- {result.standard_error:.0f}")
    3005 +- 182
    """
    if samplers := samplers_of(estimator):
        raise ValueError(
            f"The sampler {samplers[0][0]!r} of the pipeline drew the rows that the "
            "model was fitted to, and would draw others without a row of X: use "
            "cross_val_score with the pipeline."
        )
    estimator, X = last_step(estimator, X)
    adapter = adapter_of(type(estimator))
    check_is_fitted(estimator)
    if not isinstance(n_probes, Integral) or n_probes < 4:
        raise ValueError(f"n_probes must be an integer, 4 or more, got {n_probes!r}.")
    estimator = convert_to_numpy(estimator)
    X, y, weights = _check_data(estimator, X, y, sample_weight)
    models = adapter(estimator, X, y, weights)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    probes = Probes(int(n_probes), np.random.default_rng(seed), weights / weights.sum())
    approximate = _approximation(models[0], method, probes)
    held_out = [approximate(model) for model in models]
    changes = None if method == "randomized" else _share_of_changes(models)
    _warn(estimator, models, held_out, method, changes)
    if method != "randomized":
        _warn_of_second_steps(estimator, models, held_out)
    return _result(estimator, models, held_out, weights, method, y.ndim, changes)


def _check_data(estimator, X, y, sample_weight):
    """The data as arrays, checked against the estimator and each other."""
    X, y, _ = validate_rows_and_target(
        estimator,
        on_host(X),
        y,
        reset=False,
        accept_sparse="csr",
        dtype=np.float64,
        multi_output=True,
        ensure_min_samples=2,
    )
    weights = validate_weights(sample_weight, len(y))
    if np.count_nonzero(weights) < 2:
        raise ValueError("At least two rows need a positive weight.")
    return X, y, weights


def _approximation(model, method, probes):
    """The method as a function of the model."""
    if isinstance(model, HingeModel):
        available = HINGE
    else:
        available = COUPLED if model.problem.loss.is_coupled else CURVED
    if method not in available:
        raise ValueError(
            f"method={method!r} is not available for this model; available are "
            f"{', '.join(sorted(available))}."
        )
    settings = {"probes": probes} if method == "randomized" else {}
    return partial(available[method], **settings)


def _share_of_changes(models, n_examined=50):
    # None without a kink.
    models = [model for model in models if has_kinks(model).any()]
    if not models:
        return None
    rows = np.flatnonzero(models[0].counts)
    rows = rows[:: -(-len(rows) // n_examined)]
    return float(np.mean([support_changes(model, rows) for model in models]))


def _warn(
    estimator,
    models,
    held_out,
    method,
    changes,
    largest_gradient=1e-2,
    largest_drift=0.25,
    largest_leverage=0.7,
    most_changes=0.3,
):
    # The drift is the change by the step to the minimum over that by leaving a row out:
    # a model with a larger gradient or drift is not at its minimum. Supports that
    # change matter where rows determine their own predictors (plot_l1_support.py).
    name = type(estimator).__name__
    drift = max(part.drift for part in held_out)
    gradient = max(model.relative_gradient() for model in models)
    if gradient > largest_gradient or drift > largest_drift:
        warn(
            f"{name} is not at the minimum of its objective on these data: the norm "
            f"of the gradient is {gradient:.2g} of that of the gradients of single "
            "rows (root of the sum of squares), and one step towards the minimum "
            f"moves the predictions {drift:.2g} times as much as leaving a row out. "
            "That step is taken, so the result is about the model at the minimum. "
            "Fit with a smaller tol and a larger max_iter, or check that X, y and "
            "sample_weight are those of the fit.",
            ConvergenceWarning,
        )
    if any(model.is_pinned for model in models):
        warn(
            f"{name} has about as many rows on the margin as coefficients, or more: "
            "the approximation then fails. Use a stronger penalty (a smaller C).",
            ConvergenceWarning,
        )
    largest = max(part.leverages.max() for part in held_out)
    if largest > LARGEST_LEVERAGE.get(method, np.inf):
        warn(
            f"The largest leverage is {largest:.2g}. At such leverages "
            f"method={method!r} may be far off (usually too low), unlike "
            'method="alo".',
            UserWarning,
        )
    if changes is not None and changes > most_changes and largest > largest_leverage:
        warn(
            f"The support of {name} changes without {changes:.0%} of the rows, and the "
            f"largest leverage is {largest:.2g}: losses of single rows may be far off. "
            "Use a stronger penalty, or loo_path_ of a skacv model, whose runs without "
            "a row each have their own support.",
            UserWarning,
        )


def _warn_of_second_steps(
    estimator, models, held_out, n_examined=100, largest_change=0.025
):
    # Over 48 logistic models of 60 to 100 rows the change was a half to once the error
    # of the mean while below .02, and from .025 on errors were 3% to 44%, or infinite.
    changed, total = 0.0, 0.0
    for model, part in zip(models, held_out):
        if not isinstance(model.problem.loss, SMOOTHLY_CURVED):
            return
        rows = np.flatnonzero(model.counts)
        rows = rows[:: -(-len(rows) // n_examined)]
        weights = model.problem.row_weights[rows, 0]
        predictor = part.predictor.copy()
        before = model.losses(predictor)[rows]
        predictor[rows] += second_step(model, rows)
        changes = np.abs(model.losses(predictor)[rows] - before)
        changed += weights @ changes.sum(axis=1)
        total += weights @ before.sum(axis=1)
    if changed > largest_change * total:
        warn(
            f"{type(estimator).__name__} changes a lot when a row is left out: a "
            f"second Newton step changes the losses by {changed / total:.1%} of their "
            "mean, and the mean after one step is off by more than that, usually too "
            "small. Use a stronger penalty (without one, models with few rows per "
            "column overfit), or cross_val_predict.",
            UserWarning,
        )


def _result(
    estimator, models, held_out, weights, method, n_dimensions, support_changes
):
    """The results of all outputs side by side; 1d for estimators with a 1d target."""
    losses = [model.losses(part.predictor) for model, part in zip(models, held_out)]
    loss = np.hstack(losses).mean(axis=1)
    mean, error = mean_with_error(loss[None], weights)
    predictions = np.hstack([part.predictor for part in held_out])
    leverages = np.hstack([part.leverages for part in held_out])
    if n_dimensions == 1 and predictions.shape[1] == 1:
        predictions, leverages = predictions[:, 0], leverages[:, 0]
    if is_regressor(estimator):
        predictions = models[0].problem.loss.mean(predictions)
    return ApproximateLOO(
        predictions=predictions,
        loss=loss,
        mean=float(mean[0]) + float(np.mean([part.correction for part in held_out])),
        standard_error=float(error[0]),
        leverages=leverages,
        method=method,
        support_changes=support_changes,
    )
