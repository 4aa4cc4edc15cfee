"""Ridge and least squares by gradient descent, with the path and its risk."""

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._compat import Interval, StrOptions
from .._estimator.docstrings import SQUARED, documented
from .._estimator.parameters import (
    EIGENPRO_CONSTRAINTS,
    set_parameters,
    to_python_scalar,
)
from .._estimator.run.plan import (
    N_SMOOTH_STRENGTHS,
    SCHEDULES,
    ModelSpec,
    Solver,
    Strengths,
    ridge_penalty,
)
from .._typing import RandomState, Standardize
from ..optim.preconditioner import (
    MOST_COMPONENTS,
    Preconditioner,
    automatic_subsample_size,
    batch_step,
    check_subsample_sizes,
    critical_batch_size,
    full_batch_step,
)
from ..optim.schedules import EigenPro, HeavyBall, fixed_batches
from ..optim.updates import Pass, ProximalGradient
from ._bases import SquaredErrorRegressor


@documented(SQUARED, strength="alpha")
class IterativeRidge(SquaredErrorRegressor):
    """Ridge regression by gradient descent that keeps every iterate.

    The objective is that of :class:`sklearn.linear_model.Ridge`,

        ||y - X b||^2 + alpha ||b||^2,

    with rows weighted by ``sample_weight``. ``alpha=0`` is least squares, with early
    stopping as the only regularisation. Updates are linear in y: if X has at most 2000
    rows or columns, one eigendecomposition gives ``risk_path_`` without random probes
    and leave-one-out for every row. See ``risk`` and ``loo`` for the exceptions.

    Parameters
    ----------
    {alpha}
        "path" is a geometric grid of 10 values, from n times the largest eigenvalue of
        X'X / n down to 1e-3 of that; with "newton" of 41 values, down to 1e-10 of that.
    {fit_intercept, standardize}
    solver : {"gd", "nesterov", "heavy_ball", "eigenpro", "newton"}, default="gd"
        Gradient descent, Nesterov's acceleration, Polyak's heavy ball, EigenPro or
        Newton's method. EigenPro multiplies gradients by a preconditioner that reduces
        the largest eigenvalues of a subsample of the rows to about the next one [2]_,
        so that ill-conditioned features need few updates. With Newton's method one
        update gives the exact solution at a value of alpha, from one eigendecomposition
        per fit; there is no ``risk_path_``, and leave-one-out refits without each row.
    momentum : float, default=0.9
        Momentum of the heavy ball, not used by other solvers.
    n_components : int or "auto", default="auto"
        Number of top eigenvectors of the subsample that EigenPro preconditions. "auto"
        is a tenth of the rows of the subsample or of the columns, whichever are fewer,
        at most 100. 0 is gradient descent.
    subsample_size : int or "auto", default="auto"
        Number of rows from which EigenPro's preconditioner is computed. They cannot be
        left out: ``risk_path_``, ``loo_path_`` and ``cv_path_`` are averages over the
        other rows. "auto" is a tenth of the rows, but at least 500 and at most 2000,
        and never more than a third of the rows.
    batch_size : int or None, default=None
        Number of rows in a batch, for EigenPro; each iterate is the result of a pass
        through all batches. Batches are drawn once; X and y are centred by the means of
        all rows. None: every update uses all rows. With batches, alpha must be a single
        number, and ``warm_start`` must keep the batches, alpha and step size.
    {max_iter, tol}
    step_size : float or "auto", default="auto"
        "auto" is 1 / (L + alpha / n), where L is the largest eigenvalue of X'X / n (X
        centred), with a margin of 2% if X has more than 128 rows and columns. With
        "eigenpro" it is the same for the preconditioned matrix, or with batches the
        step of EigenPro 2. It depends on X only: the estimates do not hold for a step
        size that depends on y. If the run without a fold or a row would diverge, it is
        the largest stable step instead.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces in ``risk_path_`` are computed: from the eigenvalues of X'X / n,
        or with EigenPro of the preconditioned matrix ("exact"); with random probes,
        added until their standard error is below the standard error of the estimate
        ("hutchinson"); or with a given number of random probes. "auto" and True: from
        the eigenvalues if X has at most 2000 rows or columns, otherwise with probes.
        EigenPro along several alphas has no common eigenvalues: its traces are computed
        as in :class:`TrajectoryLasso`. With batches, 40 (or the given number of) random
        label vectors are fitted along with y, and "exact" raises an error. False: no
        ``risk_path_``.
    {risk_row_scales}
    loo : {"auto"}, bool or int, default="auto"
        Rows to leave out, one at a time, along the path, from one eigendecomposition of
        X'X or XX', whichever is smaller: every row (True), a given number of rows drawn
        at random, or none (False). "auto": every row, up to 10,000; if X has more than
        2000 rows and columns, as many as are cheap. With batches, or EigenPro along
        several alphas, every left-out row needs a run without it.
    {cv, keep_data, warm_start, n_jobs}
    random_state : int, RandomState instance or None, default=None
        Controls the random probes, the choice of left-out rows, and EigenPro's
        subsample and batches.
    {verbose}

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_targets, n_features)
        Coefficients of the iterate in use.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, [n_targets,] n_features)
        Coefficients of every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective divided by 2 n, or by twice the sum of the weights.
    {risk_path_}
        With several targets, the mean over the targets.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, averaged over the targets. Exact. With
        EigenPro, the preconditioner, step and batches are those of the run on all rows,
        and the rows of the subsample are not left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction for every left-out row by the iterates fitted without it.
    risk_residual_path_ : LowRankPath
        With several targets, ``spatial`` has shape (n_modes, n_rows, n_targets); with
        EigenPro its rows are those outside the subsample.
    {n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.
    sklearn.linear_model.Ridge : The same model, solved directly.

    References
    ----------
    {Bellec}
    .. [2] Ma and Belkin (2017), "Diving into the shallows: a computational
           perspective on large-scale shallow learning", NeurIPS, arXiv:1703.10622.

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
        **SquaredErrorRegressor._parameter_constraints,
        **EIGENPRO_CONSTRAINTS,
        "solver": [StrOptions({"gd", "nesterov", "heavy_ball", "eigenpro", "newton"})],
        "momentum": [Interval(Real, 0, 1, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
    }
    _multi_output = True

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        solver: str = "gd",
        momentum: float = 0.9,
        n_components: Literal["auto"] | int = "auto",
        subsample_size: Literal["auto"] | int = "auto",
        batch_size: int | None = None,
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

    def _spec(self):
        strengths = Strengths(self.alpha, is_sum=True, n_path=N_SMOOTH_STRENGTHS)
        if self.solver == "newton":
            # Spectra and other smooth curves need so small ones.
            strengths = replace(strengths, n_path=41, ratio=1e-10)
        if self.solver == "eigenpro":
            sizes = self.subsample_size, self.n_components, self.batch_size
            solver = RidgeEigenPro(None, *sizes, to_python_scalar(self.risk) == "exact")
        elif self.solver == "heavy_ball":
            solver = Solver(HeavyBall(1.0, float(self.momentum)))
        else:
            solver = Solver(SCHEDULES[self.solver](1.0))
        return ModelSpec.of(self, ridge_penalty, strengths, solver, is_quadratic=True)

    def _default_patience(self):
        # Exact solutions cost next to nothing, and the best may come last.
        return None if self.solver == "newton" else super()._default_patience()


@dataclass(frozen=True)
class RidgeEigenPro(Solver):
    """Gradient descent with a preconditioner that is drawn from the rows.

    ``is_exact``: the memory matrix has to be computed without random labels.
    """

    schedule: None
    subsample_size: int | str
    n_components: int | str
    batch_size: int | None
    is_exact: bool

    def on(self, problem, seed):
        design, _ = problem.sqrt_weighted()
        size, n_components = self._sizes(design.shape)
        rng = np.random.default_rng(seed)
        rows = np.sort(rng.choice(design.shape[0], size, replace=False))
        preconditioner = Preconditioner.of(design, rows, n_components, rng)
        batches = fixed_batches(design.shape[0], self.batch_size, seed)
        parts = [design.rows(rows) for rows in batches] or [design]
        largest = max(preconditioner.top_eigenvalue(part, rng) for part in parts)
        return EigenPro(1.0, preconditioner, largest, batches)

    def _sizes(self, shape):
        """Numbers of rows of the subsample, and of its directions."""
        size, n_components = self.subsample_size, self.n_components
        if size == "auto":
            size = automatic_subsample_size(shape[0])
        if n_components == "auto":
            smaller = min(size, shape[1])
            n_components = min(smaller // 10, MOST_COMPONENTS)
        check_subsample_sizes(size, n_components, shape[0])
        return size, n_components

    def update(self, n_rows):
        empty = np.empty(0)
        preconditioner = Preconditioner(empty.astype(int), empty, empty, empty, 0.0)
        step = ProximalGradient(1.0, preconditioner=preconditioner)
        batches = fixed_batches(n_rows, self.batch_size, seed=0)
        return Pass(step, batches) if batches else step

    def automatic_step(self, smoothness, schedule, problem):
        if not len(schedule.preconditioner.rows):
            return super().automatic_step(smoothness, schedule, problem)
        batches = schedule.batches
        if not batches:
            return full_batch_step(smoothness)
        design, _ = problem.sqrt_weighted()
        penalty = smoothness - schedule.top_eigenvalue
        norms = schedule.preconditioner.squared_row_norms(design)
        largest, size = float(norms.max()) + penalty, max(map(len, batches))
        critical = critical_batch_size(largest, smoothness)
        return batch_step(largest, smoothness, size, critical)

    def check(self, phases):
        super().check(phases)
        if not phases[0].first_update.n_batches:
            return
        if not all(phase.same_rule(phases[0]) for phase in phases):
            raise ValueError(
                "batch_size needs a single alpha, and warm_start=True the same alpha, "
                "step and batches as before: the estimates need passes that are all "
                "alike."
            )
        if self.is_exact:
            raise ValueError(
                'risk="exact" needs all rows at a time. With batch_size the estimate '
                'takes random labels: use risk="auto", or the number of labels.'
            )
