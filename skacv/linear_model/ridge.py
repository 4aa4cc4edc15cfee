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
from .._estimator.run.terms import FitTerms
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


class RidgeTerms(FitTerms):
    """The terms of the runs of ridge regressions."""

    def patience(self, record=None):
        # Exact solutions cost next to nothing, and the best may come last.
        return None if self.model.solver == "newton" else super().patience(record)


@documented(SQUARED, strength="alpha")
class IterativeRidge(SquaredErrorRegressor):
    """Ridge regression by gradient descent that keeps every iterate.

    The objective is that of :class:`sklearn.linear_model.Ridge`,

        ||y - X b||^2 + alpha ||b||^2,

    with rows weighted by ``sample_weight``. ``alpha=0`` is least squares, regularised
    by early stopping only. Updates are linear in y: if X has at most 2000 rows or
    columns, one eigendecomposition gives ``risk_path_`` without random probes and
    leave-one-out for every row. Read more in the :doc:`user guide </guide/regression>`.

    Parameters
    ----------
    {alpha}
        "path": 10 values, from the largest eigenvalue of X'X down; 41 with "newton".
    {fit_intercept, standardize}
    solver : {"gd", "nesterov", "heavy_ball", "eigenpro", "newton"}, default="gd"
        Gradient descent, Nesterov's acceleration, Polyak's heavy ball, :doc:`EigenPro
        </guide/regression>` [2]_ for ill-conditioned features, or Newton's method: the
        exact solution in one update, without ``risk_path_``.
    momentum : float, default=0.9
        Momentum of the heavy ball; other solvers ignore it.
    n_components : int or "auto", default="auto"
        Number of top eigenvectors that EigenPro preconditions; 0 is gradient descent.
        "auto": a tenth of the smaller side of the subsample, at most 100.
    subsample_size : int or "auto", default="auto"
        Number of rows for EigenPro's preconditioner, which error paths exclude. "auto"
        is a tenth of the rows, between 500 and 2000, and at most a third of them.
    batch_size : int or None, default=None
        Number of rows per batch of EigenPro; an iterate is then the result of a pass
        over batches that are drawn once, at a single alpha. None: every update uses all
        rows.
    {max_iter, tol}
    step_size : float or "auto", default="auto"
        "auto" is 1 / (L + alpha / n), with L the largest eigenvalue of X'X / n (X
        centred; preconditioned with "eigenpro"), or less if a run without a row or fold
        needs it. It must not depend on y.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        Traces in ``risk_path_``: from eigenvalues ("exact"), by random probes up to the
        needed precision ("hutchinson"), by a number of probes, or none (False). "auto"
        and True: "exact" with up to 2000 rows or columns.
    {risk_row_scales}
    loo : {"auto"}, bool or int, default="auto"
        Rows to leave out, one at a time: all (True), a number of random rows, or none
        (False). "auto": all, up to 10,000, from one eigendecomposition, or as many as
        :doc:`are cheap </estimates>`.
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
        Leave-one-out error of every iterate, exact, averaged over the targets. With
        EigenPro the preconditioner, step and batches are those of the run on all rows.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction for every left-out row by the iterates fitted without it.
    risk_residual_path_ : LowRankPath
        With several targets, ``spatial`` has shape (n_modes, n_rows, n_targets);
        EigenPro's subsample has no residuals.
    {n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
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

    _terms_type = RidgeTerms

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
                "batch_size needs a single alpha, and with warm_start=True the same "
                "alpha, step and batches as before: the estimates need equal passes."
            )
        if self.is_exact:
            raise ValueError(
                'risk="exact" needs updates on all rows. With batch_size the estimate '
                'uses random labels: set risk="auto" or the number of labels.'
            )
