"""Elastic net by proximal gradient descent, with the whole path and its risk."""

from numbers import Real

from .._compat import Interval, StrOptions
from ..optim.penalties import ElasticNet
from ..optim.schedules import GradientDescent, Nesterov
from ._squared import TrajectoryRegressor


class TrajectoryElasticNet(TrajectoryRegressor):
    """Elastic net by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of :class:`sklearn.linear_model.ElasticNet`,

        (1 / (2 n)) ||y - X b||^2
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with (1 / sum w) sum_i w_i in the place of 1 / n where rows are weighted.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty; a sequence and "path" as in
        :class:`TrajectoryLasso`.
    l1_ratio : float, default=0.5
        Share of the l1 norm, between 0 and 1.
    fit_intercept, solver, max_iter, tol, step_size, risk, risk_row_scales, loo, \
cv, keep_data, warm_start, n_jobs, random_state, verbose
        As in :class:`TrajectoryLasso`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Every iterate.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean squared prediction error on unseen rows [1]_.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, exact.
    n_iter_ : int
        Number of updates recorded.
    n_features_in_ : int
        Number of features seen in fit.

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.linear_model.ElasticNet : The same model, by coordinate descent.

    References
    ----------
    .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
           algorithms in linear models with application to early stopping",
           arXiv:2404.17856.

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
        **TrajectoryRegressor._parameter_constraints,
        "solver": [StrOptions({"ista", "fista"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    }
    _solvers = {"ista": GradientDescent, "fista": Nesterov}

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
        fit_intercept=True,
        solver="fista",
        max_iter=200,
        tol=1e-6,
        step_size="auto",
        risk="auto",
        risk_row_scales=True,
        loo="auto",
        cv=None,
        keep_data=False,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
        self.risk = risk
        self.risk_row_scales = risk_row_scales
        self.loo = loo
        self.cv = cv
        self.keep_data = keep_data
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _penalty(self, strength):
        return ElasticNet(strength, float(self.l1_ratio))
