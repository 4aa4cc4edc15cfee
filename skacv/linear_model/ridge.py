"""Ridge and least squares by gradient descent, with the path and its risk."""

from numbers import Real

from .._compat import Interval, StrOptions
from ..optim.penalties import SquaredL2
from ..optim.schedules import GradientDescent, HeavyBall, Nesterov
from ._squared import TrajectoryRegressor


class IterativeRidge(TrajectoryRegressor):
    """Ridge regression by gradient descent that keeps every iterate.

    The objective is that of :class:`sklearn.linear_model.Ridge`,

        ||y - X b||^2 + alpha ||b||^2,

    rows weighted by ``sample_weight``; ``alpha=0`` is least squares, where
    stopping early is the only regularisation. Updates are linear, so the
    memory matrix is a function of the spectrum of X and ``risk_path_`` is
    computed without probes.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty. A sequence is walked in one warm-started
        trajectory, ``max_iter`` updates at each value, the momentum
        restarting; "path" is 30 values, geometric from n times the top
        eigenvalue of X'X / n down to 1e-3 of it.
    fit_intercept : bool, default=True
        Whether to centre X and y by their (weighted) means. X is not copied.
    solver : {"gd", "nesterov", "heavy_ball"}, default="gd"
        Gradient descent, Nesterov's acceleration, or Polyak's heavy ball.
    momentum : float, default=0.9
        Of the heavy ball; the other solvers have none to choose.
    max_iter, tol, step_size, risk_row_scales, cv, keep_data, warm_start, n_jobs, \
random_state, verbose
        As in :class:`TrajectoryLasso`; the automatic step is
        1 / (L + alpha / n).
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        "exact" takes the eigenvalues of X'X / n; "auto" does so up to 2000
        rows or columns, whichever are fewer, and takes random probes beyond.
        The others as in :class:`TrajectoryLasso`.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the path, from one decomposition of the smaller
        side of X: every row (True), so many rows drawn at random, or none
        (False). "auto": every row, up to 10,000; where both sides of X are
        larger than 2000, as many as are cheap.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients of the iterate in use.
    intercept_ : float or ndarray of shape (n_targets,)
        Its intercept.
    coef_path_ : ndarray of shape (n_iter_ + 1, [n_targets,] n_features)
        Every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective divided by 2 n (by twice the sum of the weights).
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean squared prediction error on unseen rows [1]_, mean over
        the targets.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, exact, mean over the targets.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction of every row left out by the iterates that never saw it.
    risk_residual_path_ : LowRankPath
        With several targets, ``spatial`` has shape (n_modes, n_rows, n_targets).
    n_iter_ : int
        Number of updates recorded.
    n_features_in_ : int
        Number of features seen in fit.

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.linear_model.Ridge : The same model, solved directly.

    References
    ----------
    .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
           algorithms in linear models with application to early stopping",
           arXiv:2404.17856.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import IterativeRidge
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = IterativeRidge(alpha=0.0, max_iter=500).fit(X, y)
    >>> bool(0 < model.risk_path_.argmin() < 500)
    True
    """

    _parameter_constraints = {
        **TrajectoryRegressor._parameter_constraints,
        "solver": [StrOptions({"gd", "nesterov", "heavy_ball"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
    }
    _solvers = {"gd": GradientDescent, "nesterov": Nesterov}
    _multi_output = True

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
        solver="gd",
        momentum=0.9,
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
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.momentum = momentum
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
        return SquaredL2(strength)

    def _strength_of(self, value, data):
        return float(value / data.total_weight)

    def _value_of(self, strength, data):
        return float(strength * data.total_weight)

    def _penalty_scale(self, share):
        return 1 / share

    def _schedule(self, step_size, problem, seed):
        if self.solver == "heavy_ball":
            return HeavyBall(step_size, float(self.momentum))
        return super()._schedule(step_size, problem, seed)
