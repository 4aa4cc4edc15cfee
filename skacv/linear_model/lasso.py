"""Lasso, elastic net and group lasso by proximal gradient descent."""

from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._compat import Interval, StrOptions
from .._estimator.docstrings import SQUARED, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState, Standardize
from ..optim.families import GroupL2, Weighted
from ..optim.penalties import L1, ElasticNet
from ._bases import SquaredErrorRegressor


def weigh(penalty, weights, n_features):
    """A uniform penalty with the weights of ``penalty_weights``."""
    weights = check_weights(weights, n_features, "penalty_weights", "features")
    return Weighted(penalty, weights)


def check_weights(weights, n_weights, name, counted):
    """Weights as an array of so many finite numbers, none of them negative."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_weights,):
        raise ValueError(
            f"{name} must have shape ({n_weights},), one weight for each of the "
            f"{counted}, got {weights.shape}."
        )
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise ValueError(f"{name} must be finite and not negative.")
    return weights


GROUPS_CONSTRAINT = [Interval(Integral, 1, None, closed="left"), "array-like"]


def number_groups(groups, n_features):
    """The group (n_features,) of every feature, numbered from 0."""
    if isinstance(groups, Integral):
        return np.arange(n_features) // groups
    if all(np.ndim(group) == 1 for group in groups):
        return _number_lists(groups, n_features)
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(
            f"groups must have a label for each of the {n_features} features, got an "
            f"array of shape {labels.shape}."
        )
    return np.unique(labels, return_inverse=True)[1]


def _number_lists(groups, n_features):
    members = [np.asarray(group) for group in groups]
    if not all(len(m) and np.issubdtype(m.dtype, np.integer) for m in members):
        raise ValueError("Every list in groups must contain feature indices.")
    listed = np.concatenate([*members, np.empty(0, int)])
    if not np.array_equal(np.sort(listed), np.arange(n_features)):
        raise ValueError(
            f"groups must list each of the features 0 to {n_features - 1} exactly once."
        )
    numbers = np.empty(n_features, dtype=int)
    for number, features in enumerate(members):
        numbers[features] = number
    return numbers


def group_lasso_penalty(strength, groups, n_features, group_weights=None):
    """The group lasso; None: groups weigh the square roots of their sizes."""
    groups = number_groups(groups, n_features)
    sizes = np.bincount(groups)
    if group_weights is None:
        return GroupL2(strength, groups, np.sqrt(sizes))
    weights = check_weights(group_weights, len(sizes), "group_weights", "groups")
    return GroupL2(strength, groups, weights)


@documented(SQUARED, strength="alpha", loss="squared error")
class TrajectoryLasso(SquaredErrorRegressor):
    """Lasso by ISTA or FISTA that keeps every iterate and estimates its risk.

    The objective is that of :class:`sklearn.linear_model.Lasso`,

        (1 / (2 n)) ||y - X b||^2 + alpha ||b||_1,

    with (1 / sum w) sum_i w_i instead of 1 / n if rows are weighted, and ``sum_j v_j
    |b_j|`` instead of ||b||_1 with ``penalty_weights`` v. One run gives all iterates;
    ``risk_path_``, ``loo_path_`` and ``cv_path_`` estimate the error of each on unseen
    rows, without a refit. Read more in the :doc:`user guide </guide/sparse>`.

    Parameters
    ----------
    {alpha}
        "path": 30 values, from where all coefficients are zero down to 1e-3 of that.
    {penalty_weights}
        Inverse absolute values of a first estimate give the adaptive lasso [3]_.
    {fit_intercept, standardize}
    solver : {"fista", "ista"}, default="fista"
        Accelerated or plain proximal gradient descent [2]_.
    {max_iter, tol, step_size, risk, risk_row_scales, loo, cv, keep_data, warm_start}
    {n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, coef_path_, intercept_path_, objective_path_, train_path_}
    {alpha_path_, risk_path_}
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``risk_path_``, from the spread over rows and from the probes.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of ``risk_se_path_`` due to the random probes; zero if traces are exact.
    risk_residual_path_ : LowRankPath
        Estimated held-out residuals of every row at every iterate, as low-rank factors
        ``temporal`` (n_iter_ + 1, n_modes) and ``spatial`` (n_modes, n_rows), without
        rows of weight zero.
    {risk_prediction_path_, risk_indices_, risk_target_}
    risk_gram_ : ndarray of shape (n_iter_ + 1, n_iter_ + 1)
        Mean products of the estimated held-out residuals of two iterates. An affine
        combination of iterates with weights w has the estimated risk w' risk_gram_ w.
    n_probes_ : int
        Number of random probes used; 0 if traces are exact.
    row_scale_share_ : float
        Share, between 0 and 1, of the spread of squared row norms beyond that of
        Gaussian rows. At 0 ``risk_path_`` is the published estimate.
    {loo_path_, loo_se_path_, loo_prediction_path_, loo_indices_, loo_target_, cv_path_}
    {cv_se_path_, cv_fold_path_, cv_prediction_path_}
    {cv_indices_, cv_target_, record_, n_iter_, iteration_, step_size_}
    {n_features_in_, feature_names_in_}

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.linear_model.Lasso : The same model, by coordinate descent.

    References
    ----------
    {Bellec}
    .. [2] Beck and Teboulle (2009), "A fast iterative shrinkage-thresholding
           algorithm for linear inverse problems".
    .. [3] Zou (2006), "The adaptive lasso and its oracle properties".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryLasso(alpha=0.1, max_iter=100).fit(X, y)
    >>> model.coef_path_.shape
    (101, 10)
    >>> best = model.at_iteration(model.risk_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **SquaredErrorRegressor._parameter_constraints,
        "penalty_weights": ["array-like", None],
        "solver": [StrOptions({"ista", "fista"})],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        penalty_weights: ArrayLike | None = None,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["fista", "ista"] = "fista",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _penalty(self, strength, n_features):
        penalty, weights = L1(strength), self.penalty_weights
        return penalty if weights is None else weigh(penalty, weights, n_features)


@documented(SQUARED, strength="alpha")
class TrajectoryElasticNet(SquaredErrorRegressor):
    """Elastic net by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of :class:`sklearn.linear_model.ElasticNet`,

        (1 / (2 n)) ||y - X b||^2
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with (1 / sum w) sum_i w_i instead of 1 / n if rows are weighted, and the penalty of
    b_j multiplied by v_j with ``penalty_weights`` v.

    Parameters
    ----------
    {alpha}
        "path": 30 values, from where all coefficients are zero down to 1e-3 of that.
    l1_ratio : float, default=0.5
        Share of the l1 norm, from 0 (ridge) to 1 (lasso).
    {penalty_weights, fit_intercept, standardize, solver, max_iter, tol, step_size}
    {risk, risk_row_scales, loo, cv, keep_data, warm_start, n_jobs, random_state}
    {verbose}

    Attributes
    ----------
    {coef_, coef_path_, risk_path_, loo_path_, n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.linear_model.ElasticNet : The same model, by coordinate descent.

    References
    ----------
    {Bellec}

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryElasticNet(alpha=[1.0, 0.1, 0.01], max_iter=50).fit(X, y)
    >>> bool(model.risk_path_[-1] < model.risk_path_[0])
    True
    """

    _parameter_constraints = {
        **TrajectoryLasso._parameter_constraints,
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        l1_ratio: float = 0.5,
        penalty_weights: ArrayLike | None = None,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["fista", "ista"] = "fista",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _penalty(self, strength, n_features):
        penalty = ElasticNet(strength, float(self.l1_ratio))
        weights = self.penalty_weights
        return penalty if weights is None else weigh(penalty, weights, n_features)


@documented(SQUARED, strength="alpha")
class TrajectoryGroupLasso(SquaredErrorRegressor):
    """Group lasso by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of the group lasso [2]_,

        (1 / (2 n)) ||y - X b||^2 + alpha sum_g v_g ||b_g||,

    with ||b_g|| the Euclidean norm of the coefficients of group g, which are all zero
    or all nonzero, and (1 / sum w) sum_i w_i instead of 1 / n if rows are weighted.

    Parameters
    ----------
    {alpha}
        "path": 30 values, from where all penalised groups are zero down to 1e-3 of it.
    groups : int, array-like of shape (n_features,) or list of array-like, default=1
        A label for every feature; or a list of feature indices for every group; or the
        size of consecutive groups, of which the last may be smaller. 1 is the lasso.
    group_weights : array-like of shape (n_groups,), default=None
        Nonnegative weights v_g, in the order of the sorted labels or of the lists; zero
        means unpenalised. None: the square roots of the group sizes.
    {fit_intercept, standardize, solver, max_iter, tol, step_size, risk}
    {risk_row_scales, loo, cv, keep_data, warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, risk_path_, loo_path_, n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    TrajectoryLasso : The same model with every feature as a group.

    References
    ----------
    {Bellec}
    .. [2] Yuan and Lin (2006), "Model selection and estimation in regression with
           grouped variables".

    Examples
    --------
    The dummy variables of a category enter and leave together:

    >>> import numpy as np
    >>> from skacv import TrajectoryGroupLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 6))
    >>> y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(60)
    >>> groups = ["size", "size", "size", "colour", "colour", "colour"]
    >>> model = TrajectoryGroupLasso(alpha=0.2, groups=groups).fit(X, y)
    >>> model.coef_[3:]
    array([0., 0., 0.])
    >>> model.loo_path_.shape == model.risk_path_.shape
    True
    """

    _parameter_constraints = {
        **SquaredErrorRegressor._parameter_constraints,
        "groups": GROUPS_CONSTRAINT,
        "group_weights": ["array-like", None],
        "solver": [StrOptions({"ista", "fista"})],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        groups: ArrayLike = 1,
        group_weights: ArrayLike | None = None,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: Literal["fista", "ista"] = "fista",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _penalty(self, strength, n_features):
        return group_lasso_penalty(
            strength, self.groups, n_features, self.group_weights
        )
