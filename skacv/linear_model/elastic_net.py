"""Elastic net by proximal gradient descent, with the whole path and its risk."""

from numbers import Real
from typing import Any, Literal

from numpy.typing import ArrayLike

from .._compat import Interval, StrOptions
from .._estimator.docstrings import SQUARED, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..optim.penalties import ElasticNet
from ._penalties import weighted
from ._squared import SquaredErrorRegressor


@documented(SQUARED, strength="alpha")
class TrajectoryElasticNet(SquaredErrorRegressor):
    """Elastic net by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of :class:`sklearn.linear_model.ElasticNet`,

        (1 / (2 n)) ||y - X b||^2
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with (1 / sum w) sum_i w_i in place of 1 / n if rows are weighted, and the penalty
    of b_j multiplied by v_j with ``penalty_weights`` v.

    Parameters
    ----------
    {alpha}
        "path" is a geometric grid of 30 values, from the smallest alpha that keeps all
        coefficients at zero (with ``l1_ratio`` taken as at least 1e-3) down to 1e-3 of
        it.
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
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.
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
        **SquaredErrorRegressor._parameter_constraints,
        "penalty_weights": ["array-like", None],
        "solver": [StrOptions({"ista", "fista"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        l1_ratio: float = 0.5,
        penalty_weights: ArrayLike | None = None,
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
        penalty = ElasticNet(strength, float(self.l1_ratio))
        return weighted(penalty, self.penalty_weights, n_features)
