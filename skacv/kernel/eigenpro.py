"""From the sizes that a user may set to the schedule of EigenPro 2 on a design."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from .._estimator.run.plan import SCHEDULES, Solver
from ..optim.namespaces import free_bytes
from ..optim.preconditioner import (
    MOST_COMPONENTS,
    SUBSAMPLE_SIZES,
    Preconditioner,
    automatic_subsample_size,
    batch_step,
    check_subsample_sizes,
    critical_batch_size,
    full_batch_step,
)
from ..optim.schedules import EigenPro
from ..optim.trajectory import smoothness_under
from ..risk.cost import is_decomposed
from .data import DOUBLE_ROWS, working_dtype
from .ridge import FEWEST_CENTERS, ROWS_PER_CENTER

# Arrays of the size of a kernel matrix, or of its part, in memory while it is
# decomposed, or computed.
N_ARRAYS = 3
# The largest automatic subsample, and the number of rows from which it applies.
MANY_ROWS, LARGEST_SUBSAMPLE = 100_000, 12_000
# The automatic number of directions, as a share of the subsample. With full batches
# they make steps longer and the path coarser, so a few are enough; with batches they
# make batches larger.
FULL_BATCH_SHARE, BATCH_SHARE = 1 / 40, 1 / 10


def rows_that_fit(matrix):
    """Number of rows whose part of the kernel matrix fits in the device's memory."""
    free = free_bytes(matrix.X)
    if free is None or matrix.values is not None:
        return len(matrix)
    # One more array of memory stays free.
    return int(free / ((N_ARRAYS + 1) * len(matrix) * matrix.dtype.itemsize))


def batches_of(n_rows, size):
    """Batches of consecutive rows, of about equal sizes up to ``size``; () for one."""
    n_batches = -(-n_rows // size)
    if n_batches == 1:
        return ()
    ends = np.linspace(0, n_rows, n_batches + 1).astype(int)
    return tuple(np.split(np.arange(n_rows), ends[1:-1]))


@dataclass(frozen=True)
class KernelSolver(Solver):
    """The solver of a kernel machine and its sizes; ``budget`` is in bytes."""

    name: str
    n_components: int | str
    subsample_size: int | str
    batch_size: int | str
    budget: float
    n_centers: int | str | None

    def __post_init__(self):
        if self.is_eigenpro and isinstance(self.n_centers, Integral):
            raise ValueError(
                "EigenPro and its sizes (n_components, subsample_size, batch_size) are "
                "for machines with every row as a centre: set n_centers=None, or "
                'solver="nesterov" or "gd" and no sizes.'
            )

    @property
    def is_eigenpro(self):
        """Whether the parameters ask for EigenPro on any number of rows."""
        sizes = {self.n_components, self.subsample_size, self.batch_size}
        return self.name == "eigenpro" or (self.name == "auto" and sizes != {"auto"})

    def centers_on(self, n_rows):
        """The number of centres, the largest of "auto"; None if every row is one."""
        if self.n_centers == "auto":
            if n_rows <= DOUBLE_ROWS or self.is_eigenpro:
                return None
            # As many as rows that are all centres, so that more rows lower the error.
            size = N_ARRAYS * ROWS_PER_CENTER * np.dtype(np.float64).itemsize
            n_that_fit = int(np.sqrt(self.budget / size))
            return min(DOUBLE_ROWS, max(FEWEST_CENTERS, n_that_fit))
        return self.n_centers if n_rows > (self.n_centers or np.inf) else None

    def name_on(self, n_rows):
        """The name of the solver; "auto" depends on the number of rows."""
        if self.name != "auto":
            return self.name
        # With a decomposition, leave-one-out of accelerated runs is exact. EigenPro is
        # for more rows, and for users who set its sizes.
        is_exact = self.centers_on(n_rows) is not None or self.decomposes(n_rows)
        return "nesterov" if is_exact and not self.is_eigenpro else "eigenpro"

    def decomposes(self, n_rows):
        """Whether rows can be left out by a decomposition of the kernel matrix."""
        size = np.dtype(working_dtype(n_rows)).itemsize
        fits = N_ARRAYS * n_rows**2 * size <= self.budget
        return fits and is_decomposed((n_rows, n_rows), has_columns=False)

    def batch(self, n_rows, critical, n_that_fit):
        """The largest number of rows in a batch."""
        if self.batch_size == "full":
            return n_rows
        if self.batch_size == "auto":
            if n_rows <= DOUBLE_ROWS:
                return n_rows
            return max(1, int(min(critical, n_that_fit, n_rows)))
        return min(self.batch_size, n_rows)

    def on(self, problem, seed):
        """The schedule; for EigenPro 2 the rows of the problem are in random order."""
        n_rows = len(problem.target)
        # A problem with columns is that of centres.
        name = self.name if problem.design.has_columns else self.name_on(n_rows)
        if name != "eigenpro":
            return SCHEDULES[name](1.0)
        # The preconditioner, from a subsample of rows at even distances.
        size, n_components = self.subsample_size, self.n_components
        if size == "auto" and n_rows >= MANY_ROWS:
            n_that_fit = int(np.sqrt(self.budget / N_ARRAYS / 8))
            size = min(LARGEST_SUBSAMPLE, max(SUBSAMPLE_SIZES[1], n_that_fit))
        elif size == "auto":
            size = automatic_subsample_size(n_rows)
        if n_components == "auto":
            share = FULL_BATCH_SHARE if n_rows <= DOUBLE_ROWS else BATCH_SHARE
            n_components = min(int(share * size), MOST_COMPONENTS)
        check_subsample_sizes(size, n_components, n_rows)
        design, _ = problem.sqrt_weighted()
        rows, rng = np.arange(size) * n_rows // size, np.random.RandomState(seed)
        eps, top_entry = np.finfo(design.dtype).eps, design.matrix.diagonal.max()
        # Directions of an eigenvalue below 1000 roundings must not be preconditioned:
        # the longer steps would amplify rounding errors.
        rounding = 1000 * eps * top_entry
        preconditioner = Preconditioner.of(design, rows, n_components, rng, rounding)
        # The batches, and the step.
        bound = problem.loss.curvature_bound(problem.target)
        beta = float(preconditioner.squared_row_norms(design).max())
        critical = critical_batch_size(beta, preconditioner.sample_eigenvalue)
        n_that_fit = rows_that_fit(design.matrix)
        batches = batches_of(n_rows, self.batch(n_rows, critical, n_that_fit))
        parts = [design.rows(rows) for rows in batches] or [design]
        largest = max(preconditioner.top_eigenvalue(part, rng) for part in parts)
        largest *= bound
        if batches:
            longest = max(map(len, batches))
            step_size = batch_step(bound * beta, largest, longest, critical)
        else:
            step_size = full_batch_step(largest)
        return EigenPro(step_size, preconditioner, largest, batches)

    def step_size(self, curvature, problem, schedule):
        if not isinstance(schedule, EigenPro):
            return super().step_size(curvature, problem, schedule)
        if not curvature:
            return schedule.step_size
        top = schedule.top_eigenvalue
        return schedule.step_size * top / (top + curvature)


def run_attributes(schedule, data):
    """Fitted attributes about the preconditioner and the batches of a run."""
    problem, rows = data.problem, data.rows
    first = next(iter(schedule.updates()))
    preconditioner = first.preconditioner
    critical, subsample, n_components = np.inf, np.empty(0, int), 0
    if preconditioner is not None:
        design, _ = problem.sqrt_weighted()
        beta = float(preconditioner.squared_row_norms(design).max())
        critical = critical_batch_size(beta, preconditioner.sample_eigenvalue)
        subsample, n_components = preconditioner.rows, len(preconditioner.damping)
    batches = getattr(first, "batches", (np.arange(len(rows)),))
    return {
        "n_components_": n_components,
        "subsample_indices_": np.sort(rows[subsample]),
        "batch_indices_": [rows[batch] for batch in batches],
        "batch_size_": max(map(len, batches)),
        "critical_batch_size_": critical,
        "top_eigenvalue_": float(smoothness_under(schedule, problem)),
    }
