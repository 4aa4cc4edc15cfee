"""Huber and quantile regression, and those of a log link, by gradient descent."""

from dataclasses import replace
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._compat import Interval, StrOptions
from .._estimator.docstrings import STOCHASTIC, documented
from .._estimator.parameters import set_parameters
from .._estimator.prediction.inference import CoefficientInference, CoefficientTests
from .._estimator.run.plan import Strengths
from .._typing import RandomState, Standardize
from ..optim.losses import Gamma, Huber, Pinball, Poisson, SmoothedQuantile, tweedie
from ..records.descriptors import recorded
from ._bases import SMOOTH_PATH, CurvedRegressor, elastic_net_penalty


@documented(
    STOCHASTIC, strength="alpha", loss="Huber loss", alpha="0.0001", curvature="1"
)
class TrajectoryHuberRegressor(CoefficientInference, CurvedRegressor):
    r"""Huber regression that keeps every iterate and estimates its error.

    The objective is that of :class:`sklearn.linear_model.HuberRegressor` at a
    fixed scale,

        sum_i w_i scale H((y_i - x_i'b) / scale) + alpha ||b||^2,

    H(z) = z^2 for \|z\| < epsilon, else 2 epsilon \|z\| - epsilon^2. Read more in the
    :doc:`user guide </guide/classification>`.

    Parameters
    ----------
    {alpha}
    epsilon : float, default=1.35
        Residuals beyond ``epsilon * scale`` have linear loss; at least 1.
    scale : float or "auto", default="auto"
        Scale of the residuals, in units of y. "auto", 1.4826 times the median distance
        of y from its median, is too large if X explains much of y;
        ``HuberRegressor().fit(X, y).scale_`` is an alternative.
    {fit_intercept, standardize, solver, max_iter, tol, step_size, batch_size, power_t}
    {risk, risk_row_scales, loo, loo_correction, cv, keep_data, warm_start, n_jobs}
    {random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_}
    scale_ : float
        The scale used.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective times ``scale_``, divided by twice the sum of weights.
    risk_residual_path_ : LowRankPath
        Targets minus ``risk_prediction_path_``, as low-rank factors ``temporal``
        (n_iter_ + 1, n_modes) and ``spatial`` (n_modes, n_rows).
    {train_path_, risk_path_, loo_path_, cv_path_, n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryPoissonRegressor`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.linear_model.HuberRegressor : The same model, with a fitted scale.

    Notes
    -----
    The Huber loss in the paths is r^2 / 2 up to ``epsilon * scale_`` and linear beyond,
    in squared units of y.

    References
    ----------
    {Luo, Tan, Gower}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryHuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryHuberRegressor(max_iter=100, cv=5).fit(X, y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **CurvedRegressor._parameter_constraints,
        "epsilon": [Interval(Real, 1, None, closed="left")],
        "scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        alpha: ArrayLike = 0.0001,
        *,
        epsilon: float = 1.35,
        scale: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["gd", "nesterov", "sgd"] = "nesterov",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        batch_size: int = 32,
        power_t: float = 0.0,
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        loo_correction: bool = True,
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    scale_ = recorded(
        lambda record: record.more["scale_"], "Scale of the residuals, in units of y."
    )

    @property
    def _loss_reads_targets(self):
        return self.scale == "auto"

    def _loss_of(self, target, weights):
        scale = self.scale
        if scale == "auto":
            scale = robust_scale(target[:, 0], weights)
        return Huber(float(self.epsilon * scale)), {"scale_": float(scale)}

    def _spec(self):
        strengths = OverScale(self.alpha, is_sum=True, **SMOOTH_PATH)
        return replace(super()._spec(), strengths=strengths)


class OverScale(Strengths):
    """Strengths of a penalty that is added to the scale times a sum of losses."""

    def unit(self, data):
        return super().unit(data) / data.names["scale_"]


def robust_scale(target, weights):
    """1.4826 times the median distance from the median.

    If more than half of the targets are one value, it is their standard deviation; if
    all of them are, it is one.
    """
    distance = np.abs(target - weighted_median(target, weights))
    # The standard deviation of a normal distribution over its median deviation.
    scale = 1.4826 * weighted_median(distance, weights)
    return scale or np.sqrt(np.cov(target, aweights=weights, ddof=0)) or 1.0


def weighted_median(values, weights):
    """The median of values that are repeated as often as their positive weights."""
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    # If half of the weight ends with a value, up to rounding, the median is the mean
    # of this value and the next.
    ends = half * (1 + np.array([-1, 1]) * len(values) * np.finfo(float).eps)
    return float(values[order[np.searchsorted(below, ends)]].mean())


class LogLinkRegressor(CoefficientTests, CurvedRegressor):
    """A regressor with half a deviance under a log link, by a subclass for each."""

    _parameter_constraints = {
        **CurvedRegressor._parameter_constraints,
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "solver": [StrOptions({"gd", "nesterov", "newton", "sgd"})],
    }
    _positive_only = True

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["gd", "nesterov", "newton", "sgd"] = "nesterov",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        batch_size: int = 32,
        power_t: float = 0.0,
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        loo_correction: bool = True,
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _penalty(self, strength, n_features):
        return elastic_net_penalty(strength, self.l1_ratio)


@documented(STOCHASTIC, strength="alpha", loss="half deviance", alpha="1.0")
class TrajectoryPoissonRegressor(LogLinkRegressor):
    """Poisson regression that keeps every iterate and estimates its error.

    The objective is that of :class:`sklearn.linear_model.PoissonRegressor`,

        (1 / sum w) sum_i w_i l(y_i, x_i'b)
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with l half the Poisson deviance under a log link. Read more in the :doc:`user guide
    </guide/classification>`.

    Parameters
    ----------
    {alpha}
    l1_ratio : float, default=0.0
        Share of the l1 penalty, from 0 (ridge) to 1 (lasso). With one, a "path" has 30
        values, from where all coefficients are zero.
    {fit_intercept, standardize}
    solver : {"nesterov", "gd", "newton", "sgd"}, default="nesterov"
        Accelerated or plain gradient descent (proximal with an l1 penalty), Newton's
        method for few columns and a ridge penalty (it halves steps that raise the
        objective), or stochastic gradient descent in batches.
    {max_iter, tol}
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, with L the largest eigenvalue of X'WCX plus the curvature of
        the penalty; with "sgd" half of 1 / L for the expected smoothness L of batches
        [3]_; with "newton" 1. C has twice the largest curvature of each row, at the
        start, at the mean of all counts and at its own count, and no more than the
        largest of all rows.
    {batch_size, power_t, risk, risk_row_scales, loo, loo_correction, cv, keep_data}
    {warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, coef_path_, intercept_path_, alpha_path_, objective_path_}
    {train_path_, risk_path_, risk_se_path_, risk_mc_se_path_, risk_prediction_path_}
    {risk_indices_, risk_target_, n_probes_, row_scale_share_, loo_path_, loo_se_path_}
    {loo_prediction_path_, loo_indices_, loo_target_, cv_path_, cv_se_path_}
    {cv_fold_path_, cv_prediction_path_, cv_indices_, cv_target_, record_, n_iter_}
    {iteration_}
    {step_size_, n_features_in_, feature_names_in_}

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.linear_model.PoissonRegressor : The same model, by L-BFGS.

    References
    ----------
    {Luo, Tan, Gower}

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import TrajectoryPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> y = rng.poisson(np.exp(X[:, 0]))
    >>> model = TrajectoryPoissonRegressor(alpha=0.01, max_iter=100).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    def _loss_of(self, target, weights):
        return Poisson(), {}


@documented(STOCHASTIC, strength="alpha", loss="half deviance", alpha="1.0")
class TrajectoryGammaRegressor(LogLinkRegressor):
    """Gamma regression that keeps every iterate and estimates its error.

    For positive amounts whose spread grows with their mean, such as the costs of
    claims. The objective is that of :class:`sklearn.linear_model.GammaRegressor`,

        (1 / sum w) sum_i w_i l(y_i, x_i'b)
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with l half the gamma deviance under a log link, y exp(-z) + z - log y - 1. Read
    more in the :doc:`user guide </guide/classification>`.

    Parameters
    ----------
    {alpha}
    l1_ratio : float, default=0.0
        Share of the l1 penalty, from 0 (ridge) to 1 (lasso). With one, a "path" has 30
        values, from where all coefficients are zero.
    {fit_intercept, standardize}
    solver : {"nesterov", "gd", "newton", "sgd"}, default="nesterov"
        Accelerated or plain gradient descent (proximal with an l1 penalty), Newton's
        method for few columns and a ridge penalty (it halves steps that raise the
        objective), or stochastic gradient descent in batches.
    {max_iter, tol}
    step_size : float or "auto", default="auto"
        As in :class:`TrajectoryPoissonRegressor`, with the curvatures of this loss.
    {batch_size, power_t, risk, risk_row_scales, loo, loo_correction, cv, keep_data}
    {warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, objective_path_, train_path_, risk_path_, loo_path_, cv_path_}
    {n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryPoissonRegressor`.

    See Also
    --------
    TrajectoryTweedieRegressor : For amounts of which some are zero.
    TrajectoryRegressor : The same loss with other penalties.
    sklearn.linear_model.GammaRegressor : The same model, by L-BFGS.

    Notes
    -----
    A run begins with the intercept at the logarithm of the mean target, which is
    rounded up to a power of four: it is nearly always the same whichever rows are left
    out.

    References
    ----------
    {Luo, Tan, Gower}

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import TrajectoryGammaRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> y = rng.gamma(2.0, np.exp(X[:, 0] + 5))
    >>> model = TrajectoryGammaRegressor(alpha=0.01, max_iter=100).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    def _loss_of(self, target, weights):
        return Gamma(), {}


@documented(STOCHASTIC, strength="alpha", loss="half deviance", alpha="1.0")
class TrajectoryTweedieRegressor(LogLinkRegressor):
    """Tweedie regression that keeps every iterate and estimates its error.

    For amounts of which some are zero, such as the yearly costs of policies. The
    objective is that of :class:`sklearn.linear_model.TweedieRegressor` with
    ``link="log"``,

        (1 / sum w) sum_i w_i l(y_i, x_i'b)
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with l half the unit deviance of a variance that is proportional to a power of the
    mean. Read more in the :doc:`user guide </guide/classification>`.

    Parameters
    ----------
    {alpha}
    power : float, default=1.5
        Between 1, the Poisson distribution, and 2, the gamma distribution. Larger ones
        are not convex under a log link.
    l1_ratio : float, default=0.0
        Share of the l1 penalty, from 0 (ridge) to 1 (lasso). With one, a "path" has 30
        values, from where all coefficients are zero.
    {fit_intercept, standardize}
    solver : {"nesterov", "gd", "newton", "sgd"}, default="nesterov"
        Accelerated or plain gradient descent (proximal with an l1 penalty), Newton's
        method for few columns and a ridge penalty (it halves steps that raise the
        objective), or stochastic gradient descent in batches.
    {max_iter, tol}
    step_size : float or "auto", default="auto"
        As in :class:`TrajectoryPoissonRegressor`, with the curvatures of this loss.
    {batch_size, power_t, risk, risk_row_scales, loo, loo_correction, cv, keep_data}
    {warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, objective_path_, train_path_, risk_path_, loo_path_, cv_path_}
    {n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryPoissonRegressor`.

    See Also
    --------
    TrajectoryPoissonRegressor : Power 1, for counts.
    TrajectoryGammaRegressor : Power 2, for positive amounts.
    TrajectoryRegressor : The same loss with other penalties.
    sklearn.linear_model.TweedieRegressor : The same model, by L-BFGS.

    References
    ----------
    {Luo, Tan, Gower}

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import TrajectoryTweedieRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> n_claims = rng.poisson(np.exp(X[:, 0]))
    >>> costs = rng.gamma(n_claims + 1e-9, 100.0)
    >>> y = np.where(n_claims > 0, costs, 0.0)
    >>> model = TrajectoryTweedieRegressor(alpha=0.01, max_iter=100).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **LogLinkRegressor._parameter_constraints,
        "power": [Interval(Real, 1, 2, closed="both")],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        power: float = 1.5,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["gd", "nesterov", "newton", "sgd"] = "nesterov",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        batch_size: int = 32,
        power_t: float = 0.0,
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        loo_correction: bool = True,
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _loss_of(self, target, weights):
        return tweedie(self.power), {}


@documented(
    STOCHASTIC,
    strength="alpha",
    loss="pinball loss",
    alpha="0.0001",
    curvature="1",
)
class TrajectoryQuantileRegressor(CurvedRegressor):
    r"""Quantile regression that keeps every iterate and estimates its error.

    The objective is

        (1 / sum w) sum_i w_i l(y_i - x_i'b) + alpha \|\|b\|\|^2 / 2,

    with l the pinball loss of the quantile, rounded over residuals up to
    ``smoothing_``: (q - 1/2) r + \|r\| / 2 beyond, and a parabola between, which
    gradient steps need. Paths of losses report the pinball loss itself. Read more in
    the :doc:`user guide </guide/classification>`.

    Parameters
    ----------
    {alpha}
    quantile : float, default=0.5
        Between 0 and 1.
    smoothing : float or "auto", default="auto"
        In units of y. "auto" is a tenth of the scale of y: 1.4826 times the median
        distance from its median.
    {fit_intercept, standardize, solver, max_iter, tol, step_size, batch_size, power_t}
    {risk, risk_row_scales, loo, loo_correction, cv, keep_data, warm_start, n_jobs}
    {random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, objective_path_}
    smoothing_ : float
        The length used, in units of y.
    risk_residual_path_ : LowRankPath
        Targets minus ``risk_prediction_path_``, as low-rank factors ``temporal``
        (n_iter_ + 1, n_modes) and ``spatial`` (n_modes, n_rows).
    {train_path_, risk_path_, loo_path_, cv_path_, n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryPoissonRegressor`.

    See Also
    --------
    TrajectoryRegressor : The same loss with other penalties, and expectiles.
    sklearn.linear_model.QuantileRegressor : The pinball loss with an l1 penalty, by
        linear programming.

    References
    ----------
    {Luo, Tan, Gower}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryQuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryQuantileRegressor(quantile=0.9, standardize=True).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> bool(0.85 < (y < best.predict(X)).mean() < 0.95)
    True
    """

    _parameter_constraints = {
        **CurvedRegressor._parameter_constraints,
        "quantile": [Interval(Real, 0, 1, closed="neither")],
        "smoothing": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        alpha: ArrayLike = 0.0001,
        *,
        quantile: float = 0.5,
        smoothing: float | Literal["auto"] = "auto",
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["gd", "nesterov", "sgd"] = "nesterov",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        batch_size: int = 32,
        power_t: float = 0.0,
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        loo_correction: bool = True,
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    smoothing_ = recorded(
        lambda record: record.more["smoothing_"],
        "Length over which the loss is rounded, in units of y.",
    )

    @property
    def _loss_reads_targets(self):
        return self.smoothing == "auto"

    def _params_of_loss(self, loss):
        return {"quantile": loss.level} if isinstance(loss, Pinball) else None

    def _loss_of(self, target, weights):
        smoothing = self.smoothing
        if smoothing == "auto":
            smoothing = 0.1 * robust_scale(target[:, 0], weights)
        loss = SmoothedQuantile(float(self.quantile), float(smoothing))
        return loss, {"smoothing_": float(smoothing)}
