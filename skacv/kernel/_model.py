"""Base class of the kernel estimators: the linear models' fit on a kernel design."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from .._compat import Interval, StrOptions, _fit_context
from .._estimator.data.checks import check_size, shape_of
from .._estimator.data.standardized import AS_PASSED
from .._estimator.parameters import (
    ALPHA_CONSTRAINT,
    EIGENPRO_CONSTRAINTS,
    RUN_CONSTRAINTS,
    set_parameters,
    to_python_scalar,
)
from .._estimator.run.fit import TrajectoryModel
from .._estimator.run.fit_run import begin_fit
from .._estimator.run.plan import (
    N_SMOOTH_STRENGTHS,
    ModelSpec,
    Strengths,
    ridge_penalty,
)
from .._typing import RandomState
from .._warnings import warn
from ..optim.contraction import Shares
from ..optim.namespaces import dtype_of, rows_in
from ..optim.trajectory import iterate
from ..records.descriptors import recorded
from ..records.paths import CoefPath
from ..records.run import Run
from ..risk.cost import RunCost, method_for
from ._predictions import RecordedKernelModel
from ._stopping import StoppingRun
from ._terms import KernelTerms
from .centers import MOST_FUNCTIONS, Features, center_data
from .data import check_rows, kernel_data, kernel_rows, working_dtype
from .eigenpro import KernelSolver, run_attributes
from .kernels import (
    KERNELS,
    RADIAL_KERNELS,
    CallableKernel,
    KernelOfDistances,
    Precomputed,
    check_precomputed,
    check_squares,
    scale_gamma,
)
from .ridge import enough_centers
from .scales import choose_kernel

# A fit says that its centres are few if all rows as centres are expected to lower the
# error by more than this share. gamma="auto" has chosen a scale for few centres.
MUCH_GAIN = 0.1
# Seconds for an entry of the kernel matrix, before the run and in a pass; and for scale
# and preconditioner on any number of rows.
SECONDS_TO_START, SECONDS_OF_PASS, SECONDS_AT_LEAST = 2e-8, 1e-9, 0.5


def degrees_of_freedom(record):
    """The trace of the map from targets to predictions, of every iterate."""
    path = record.more.get("df_path_")
    return record["loo"].more.get("df_path") if path is None else path


def error_of_labels(record):
    """The standard error of leave-one-out by random targets; zeros if it is exact."""
    path = record["loo"].more.get("mc_se_path")
    if path is None and record.more["df_path_"] is not None:
        return np.zeros(record.n_iter + 1)
    return path


class KernelModel(RecordedKernelModel, TrajectoryModel):
    """Base class of kernel machines that record their trajectory and stop early.

    A subclass defines ``_encode_samples(X, y, sample_weight)`` and documents the
    parameters.
    """

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        "standardize": ["boolean"],
        "kernel": [StrOptions({*KERNELS, "auto", "precomputed"}), callable],
        "gamma": [
            StrOptions({"auto", "scale"}),
            Interval(Real, 0, None, closed="neither"),
        ],
        "degree": [Interval(Real, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        **ALPHA_CONSTRAINT,
        **EIGENPRO_CONSTRAINTS,
        "solver": [StrOptions({"auto", "eigenpro", "gd", "nesterov"})],
        "batch_size": [
            StrOptions({"auto", "full"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "n_centers": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "n_probes": [Interval(Integral, 4, None, closed="left")],
        "store_every": [Interval(Integral, 1, None, closed="left")],
        "memory_budget": [Interval(Real, 0, None, closed="neither")],
    }
    _run_type = StoppingRun
    _terms_type = KernelTerms

    alpha_path_ = recorded(
        lambda record: record.strengths["alpha"], "Value of alpha at every iterate."
    )
    rkhs_norm_path_ = recorded(
        lambda record: record.more["rkhs_norm_path_"], "Norm of every iterate."
    )
    df_path_ = recorded(
        degrees_of_freedom, "Degrees of freedom of every iterate.", "loo"
    )
    loo_mc_se_path_ = recorded(
        error_of_labels,
        "The part of ``loo_se_path_`` that is due to random targets.",
        "loo",
    )
    kernel_ = recorded(lambda record: record.more["kernel_"], "Name of the kernel.")
    gamma_ = recorded(lambda record: record.more["gamma_"], "Scale of the kernel.")
    kernels_ = recorded(
        lambda record: record.more["kernels_"], "Kernels that were compared."
    )
    gammas_ = recorded(
        lambda record: record.more["gammas_"], "Values of gamma that were compared."
    )
    gamma_scores_ = recorded(
        lambda record: record.more["gamma_scores_"], "Their cross-validated errors."
    )
    center_indices_ = recorded(
        lambda record: record.more["center_indices_"], "The rows that are centres."
    )
    n_components_ = recorded(
        lambda record: record.more["n_components_"], "Number of eigenvectors damped."
    )
    subsample_indices_ = recorded(
        lambda record: record.more["subsample_indices_"],
        "The rows of the preconditioner.",
    )
    batch_indices_ = recorded(
        lambda record: record.more["batch_indices_"], "The rows of every batch."
    )
    batch_size_ = recorded(
        lambda record: record.more["batch_size_"], "Number of rows of a batch."
    )
    critical_batch_size_ = recorded(
        lambda record: record.more["critical_batch_size_"],
        "Batch size below which smaller batches need no fewer epochs.",
    )
    top_eigenvalue_ = recorded(
        lambda record: record.more["top_eigenvalue_"],
        "Largest eigenvalue of the preconditioned kernel matrix over n.",
    )

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        gamma: Literal["auto", "scale"] | float = "auto",
        degree: float = 3,
        coef0: float = 1.0,
        alpha: ArrayLike = 0.0,
        fit_intercept: bool = True,
        standardize: bool = False,
        n_centers: Literal["auto"] | int | None = "auto",
        solver: Literal["auto", "eigenpro", "gd", "nesterov"] = "auto",
        n_components: Literal["auto"] | int = "auto",
        subsample_size: Literal["auto"] | int = "auto",
        batch_size: Literal["auto", "full"] | int = "auto",
        step_size: float | Literal["auto"] = "auto",
        max_iter: int = 200,
        patience: int | None = 5,
        tol: float = 1e-3,
        loo: Literal["auto"] | int = "auto",
        n_probes: int = 40,
        cv: Any = None,
        store_every: int = 1,
        warm_start: bool = False,
        memory_budget: float = 1000,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    @_fit_context(prefer_skip_nested_validation=True)
    def begin(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        distances: Any = None,
        **params: Any,
    ) -> Run:
        """Begin a run, which goes on and is read as one likes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Do not change it in place while the run goes on.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        distances : object, default=None
            Squared distances that runs of several candidates on the same rows share.
        **params : dict
            As in ``fit``.

        Returns
        -------
        Run
        """
        return begin_fit(self, X, y, sample_weight, params, distances)

    @property
    def _follows_X(self):
        """Named kernels are computed where X is, any other kernel in NumPy."""
        return isinstance(self.kernel, str) and not self._is_precomputed()

    def _keeps_rows(self, X):
        """Whether predictions, or a further fit, need a copy of the rows."""
        has_centers = self._spec().solver.centers_on(shape_of(X)[0]) is not None
        return self.warm_start or not (self._is_precomputed() or has_centers)

    # ---------------------------------------------------------------- the problem

    def _data_of(self, task, samples, encoded, folds):
        """The problem that samples make, on their kernel, and the folds of its rows."""
        n_rows, target = len(samples.y), encoded.target
        is_single = working_dtype(n_rows) == np.float32
        limit = 1e30 if is_single else 1e70
        check_size("y", float(target.min()), float(target.max()), limit)
        # The kernel, the rows to which it is applied, and attributes for predictions.
        rows, n_centers = (
            samples.rows[:, None],
            task.spec.solver.centers_on(len(samples.y)),
        )
        if self._is_precomputed():
            check_precomputed(samples.passed)
            if self.standardize:
                raise ValueError(
                    'standardize=True needs columns, but kernel="precomputed" has none.'
                )
            kernel = Precomputed(samples.passed)
            attributes = {"X_fit_": None, "_kernel": None, "_columns": AS_PASSED}
        else:
            scaled = self._standardize_samples(samples)
            X = kernel_rows(scaled.X)
            attributes = {"X_fit_": scaled.passed, "_columns": scaled.columns}
            if callable(self.kernel):
                kernel = CallableKernel(self.kernel)
            else:
                check_squares(X)
                name, gamma = self.kernel, self.gamma
                if gamma == "auto":
                    chosen, compared = choose_kernel(self, task, scaled, folds)
                    name, gamma = chosen["kernel"], chosen["gamma"]
                    attributes |= compared
                elif name == "auto":
                    raise ValueError(
                        "kernel='auto' also chooses gamma, which is set to "
                        f"{gamma!r}: set gamma='auto', or name a kernel."
                    )
                elif gamma == "scale":
                    gamma = scale_gamma(name, scaled.X, scaled.weights)
                attributes |= {"kernel_": name, "gamma_": float(gamma)}
                kernel = KERNELS[name](float(gamma), self.degree, self.coef0)
            attributes["_kernel"] = kernel
            if n_centers is not None:
                return self._add_centers(
                    task, scaled, encoded, kernel, n_centers, attributes, folds
                )
            if not self._keeps_rows(
                samples.passed
            ):  # rows of weight zero, which are few
                attributes["X_fit_"] = rows_in(
                    scaled.passed, np.arange(samples.n_samples)
                )
            if task.distances is None or not self._takes_distances(samples.passed):
                rows = X
            else:
                kernel = KernelOfDistances(task.distances.values, kernel)
        encoded = replace(encoded, names={**encoded.names, **attributes})
        data = kernel_data(self, samples, encoded, kernel, rows, task.seed)
        # The problem has the rows in another order.
        index = data.rows_of_samples(samples.rows)
        return data, [(index[train], index[held_out]) for train, held_out in folds]

    # The problem of samples with random centres, and the folds of its rows.
    def _add_centers(self, task, samples, encoded, kernel, n_centers, names, folds):
        X, n_rows, n_functions = kernel_rows(samples.X), len(samples.y), n_centers
        order = np.random.RandomState(task.seed).permutation(n_rows)
        if self.n_centers == "auto":
            data = X, encoded.target, encoded.weights, order
            n_centers, gain = enough_centers(kernel, *data, n_centers)
            # With each doubling of the centres the error falls by about this gain.
            is_set = "gammas_" not in names
            if is_set and gain * np.log2(n_rows / n_centers) > MUCH_GAIN:
                warn(
                    f"{n_centers} centres may be too few for kernel={self.kernel!r}: "
                    f"with half of those tried the error was larger by {gain:.0%}. "
                    f"n_centers=None makes all {n_rows} rows centres, in more time; "
                    'gamma="auto" compares scales for few centres.',
                    ConvergenceWarning,
                )
            n_functions = min(n_centers, MOST_FUNCTIONS)
            if not encoded.loss.is_quadratic:
                # Features of all rows have to be in memory.
                n_that_fit = int(self._budget() / (n_rows * dtype_of(X).itemsize))
                n_functions = max(1, min(n_functions, n_that_fit))
        index = np.sort(order[:n_centers])
        centers = rows_in(X, index)
        check_rows(kernel, centers)
        names |= {
            "center_indices_": samples.rows[index],
            "X_fit_": rows_in(samples.passed, samples.rows[index]),
        }
        encoded = replace(encoded, names={**encoded.names, **names})
        features = Features.of(kernel, X, centers, self._map, n_functions)
        return center_data(self, samples, encoded, features, folds, task.seed)

    def _standardize_samples(self, samples):
        """Samples with columns as the kernel needs them."""
        if not self.standardize:
            return samples
        return samples.standardized(samples.weights, has_intercept=True)

    def _budget(self):
        """Bytes that the kernel matrix may take; ``memory_budget`` is in megabytes."""
        return self.memory_budget * 2**20

    def _spec(self):
        strengths = Strengths(self.alpha, is_sum=True, n_path=N_SMOOTH_STRENGTHS)
        sizes = self.n_components, self.subsample_size, self.batch_size
        n_centers = self.n_centers
        if self._is_precomputed():
            if isinstance(n_centers, Integral):
                raise ValueError(
                    'kernel="precomputed" has no rows that could be centres: set '
                    "n_centers=None."
                )
            n_centers = None
        return ModelSpec.of(
            self,
            ridge_penalty,
            strengths,
            KernelSolver(None, self.solver, *sizes, self._budget(), n_centers),
            is_quadratic=getattr(self, "loss", "squared_error") == "squared_error",
            is_dual=True,
            # A run does not end after small steps: ``tol`` is for patience.
            tol=0.0,
        )

    # ------------------------------------------------------------ what is recorded

    def _iterates(self, coef_path, intercept_path, run):
        trajectory = run.trajectory
        stored = {0, trajectory.n_updates, run.best}
        stored |= set(range(0, trajectory.n_updates + 1, self.store_every))
        stored = np.array(sorted(stored - {None}))
        path = coef_path[stored].astype(working_dtype(len(run.data.rows)), copy=False)
        # The best iterate predicts if the run has been evaluated as it went.
        is_last = self.patience is None or run.best is None
        t = trajectory.n_updates if is_last else run.best
        return CoefPath(path, intercept_path, stored), t

    def _results(self, run):
        trajectory, problem = run.trajectory, run.data.problem
        norms = [
            problem.design.squared_norm(*iterate).sum()
            for iterate in zip(trajectory.coef, trajectory.predictor)
        ]
        return {
            "rkhs_norm_path_": np.sqrt(np.maximum(norms, 0)),
            "df_path_": self._degrees_of_freedom(run),
            **run_attributes(trajectory.phases[0].schedule, run.data),
        }

    def _degrees_of_freedom(self, run):
        """Trace of the map from targets to predictions, if leave-one-out is exact."""
        problem, trajectory = run.data.problem, run.trajectory
        kind = RunCost.recorded(problem, trajectory)
        is_off = to_python_scalar(self.loo) is False or method_for(kind) != "spectral"
        if is_off or kind.has_ridge_under_P():
            return None
        eigenvalues, _ = problem.row_basis(trajectory.preconditioner())
        shares = Shares(eigenvalues)
        traces = [0.0]
        for _ in iterate(trajectory.updates(), shares):
            traces.append(float(shares.current.sum()))
        return np.array(traces) + run.data.is_centered

    def _warn_of(self, run):
        """Warn if the objective has risen by more than its first value."""
        # With a positive definite kernel it only falls or, in batches, rises by less.
        objective, dtype = run.objective_path, run.data.problem.design.dtype
        first = len(objective) - run.trajectory.phases[-1].n_updates
        least = first + int(objective[first:].argmin())
        rise = objective[-1] - objective[least]
        if rise > objective[0]:
            warn(
                f"The training error has been rising since iterate {least}: up to "
                f"rounding in {dtype}, the kernel is not positive definite. Keep an "
                "earlier iterate (loo=True finds one), or use fewer n_components.",
                ConvergenceWarning,
            )

    def _takes_distances(self, X):
        """Whether the kernel is computed from the squared distances of all rows."""
        is_radial = isinstance(self.kernel, str)
        is_radial = is_radial and self.kernel in {"auto", *RADIAL_KERNELS}
        return is_radial and self._keeps_rows(X)

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        return tags
