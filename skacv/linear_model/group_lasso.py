"""Group lasso by proximal gradient descent, with the whole path and its risk."""

from numbers import Integral
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._compat import Interval, StrOptions
from .._estimator.docstrings import SQUARED, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..optim.families import GroupL2
from ._penalties import checked_weights, numbered_groups
from ._squared import SquaredErrorRegressor


@documented(SQUARED, strength="alpha")
class TrajectoryGroupLasso(SquaredErrorRegressor):
    """Group lasso by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of the group lasso [2]_,

        (1 / (2 n)) ||y - X b||^2 + alpha sum_g v_g ||b_g||,

    with ||b_g|| the Euclidean norm of the coefficients of group g, which are either all
    zero or all nonzero, and with (1 / sum w) sum_i w_i in place of 1 / n if rows are
    weighted.

    Parameters
    ----------
    {alpha}
        "path" is a geometric grid of 30 values, from the smallest alpha that keeps all
        penalised groups at zero down to 1e-3 of it.
    groups : int, array-like of shape (n_features,) or list of array-like, default=1
        The groups of features: a label for every feature; or a list of features for
        every group; or an int, the size of consecutive groups (the last one may be
        smaller). 1 is the lasso.
    group_weights : array-like of shape (n_groups,), default=None
        Nonnegative weights v_g, in the order of the sorted labels or of the lists. A
        group with weight zero is not penalised. None: the square root of the size of
        the group.
    {fit_intercept, standardize, solver, max_iter, tol, step_size, risk}
    {risk_row_scales, loo, cv, keep_data, warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, risk_path_, loo_path_, n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.
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
        "groups": [Interval(Integral, 1, None, closed="left"), "array-like"],
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
        standardize: bool = False,
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
        groups = numbered_groups(self.groups, n_features)
        sizes = np.bincount(groups)
        weights = self.group_weights
        if weights is None:
            return GroupL2(strength, groups, np.sqrt(sizes))
        weights = checked_weights(weights, len(sizes), "group_weights", "groups")
        return GroupL2(strength, groups, weights)
