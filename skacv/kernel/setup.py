"""From sizes and a kernel to batches, a preconditioner and a step."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ..optim.kernel_matrix import KernelMatrix
from ..optim.preconditioner import (
    MOST_COMPONENTS,
    SUBSAMPLE_SIZES,
    automatic_subsample_size,
    batch_step,
    check_n_components,
    check_subsample_size,
    critical_batch_size,
    full_batch_step,
    top_eigenvalue,
)
from .gram import check_kernel
from .preconditioner import Preconditioner
from .run import Schedule, batches_of

# Up to so many rows the kernel is kept in double precision, all rows are taken at
# a time, and leave-one-out is exact.
EXACT_ROWS = 3000
# Arrays of the kernel matrix's size that the eigendecomposition needs.
ARRAYS_OF_DECOMPOSITION = 3
# The automatic subsample is larger from so many rows on.
MANY_ROWS, LARGEST_SUBSAMPLE = 100_000, 12_000
# The automatic number of directions, as a share of the subsample. All rows at a
# time they make steps longer and the path coarser, so a few will do; with batches
# they make batches larger.
FULL_BATCH_SHARE, BATCH_SHARE = 1 / 40, 1 / 10
# Rows of the kernel matrix that are looked at for negative eigenvalues.
CHECKED_ROWS = 1000


def working_dtype(n_rows):
    """Single precision where there are many rows."""
    return np.float64 if n_rows <= EXACT_ROWS else np.float32


def rows_of(X):
    """Training rows as the run takes them."""
    return X.astype(working_dtype(X.shape[0]), copy=False)


class Sizes(NamedTuple):
    """What a user may set; "auto" leaves it to us.

    Attributes
    ----------
    n_components, subsample_size : int or "auto"
    batch_size : int, "auto" or "full"
    step_size : float or "auto"
    budget : float
        In bytes.
    """

    n_components: int | str
    subsample_size: int | str
    batch_size: int | str
    step_size: float | str
    budget: float

    def subsample(self, n_rows):
        """Rows of the preconditioner's subsample, and its directions.

        Raises
        ------
        ValueError
            If there are not as many rows, or not more rows than directions.
        """
        size, q = self.subsample_size, self.n_components
        if size == "auto":
            size = self._automatic_subsample(n_rows)
        else:
            check_subsample_size(size, n_rows)
        if q == "auto":
            share = FULL_BATCH_SHARE if n_rows <= EXACT_ROWS else BATCH_SHARE
            q = min(int(share * size), MOST_COMPONENTS)
        else:
            check_n_components(q, size, n_rows)
        return size, q

    def _automatic_subsample(self, n_rows):
        if n_rows >= MANY_ROWS:
            fitting = int(np.sqrt(self.budget / ARRAYS_OF_DECOMPOSITION / 8))
            return min(LARGEST_SUBSAMPLE, max(SUBSAMPLE_SIZES[1], fitting))
        return automatic_subsample_size(n_rows)

    def batch(self, n_rows, critical):
        """Rows at a time."""
        if self.batch_size == "full":
            return n_rows
        if self.batch_size == "auto":
            return n_rows if n_rows <= EXACT_ROWS else int(min(critical, n_rows))
        return min(self.batch_size, n_rows)


@dataclass(frozen=True)
class Machine:
    """All that a run needs but its targets.

    Attributes
    ----------
    order : ndarray of int, shape (n_rows,)
        Row i here is the training row order[i]: batches are slices.
    place : ndarray of int, shape (n_rows,)
        The way back.
    gram : KernelMatrix or None
        None where it is put away.
    preconditioner : Preconditioner
    schedule : Schedule
    """

    order: np.ndarray
    place: np.ndarray
    gram: KernelMatrix | None
    preconditioner: Preconditioner
    schedule: Schedule

    @classmethod
    def of(cls, kernel, X, sizes, rng, map=map):
        """Draw the batches and the subsample; find the step.

        Parameters
        ----------
        kernel : callable
        X : rows, (n, d)
        sizes : Sizes
        rng : numpy.random.RandomState
        map : callable

        Raises
        ------
        ValueError
            If the sizes do not go together, or the kernel is none.
        """
        n_rows = X.shape[0]
        subsample_size, n_components = sizes.subsample(n_rows)
        order = rng.permutation(n_rows)
        X = X[order]
        if not kernel.is_positive:
            checked = X[:CHECKED_ROWS]
            check_kernel(np.asarray(kernel(checked, checked), dtype=np.float64))
        gram = KernelMatrix(kernel, X, working_dtype(n_rows), sizes.budget, map)
        # The order is random: every so many rows are a random subsample.
        rows = np.arange(subsample_size) * n_rows // subsample_size
        preconditioner = Preconditioner.of(gram, rows, n_components, rng)
        schedule = _schedule(gram, preconditioner, sizes, rng)
        return cls(order, np.argsort(order), gram, preconditioner, schedule)

    def put_away(self):
        """The machine without what :meth:`restored` can compute again."""
        preconditioner = replace(self.preconditioner, features=None)
        return replace(self, gram=None, preconditioner=preconditioner)

    def restored(self, kernel, X, budget, map=map):
        """The machine that was put away.

        Parameters
        ----------
        kernel, X, map : as of :meth:`of`
        budget : float
            In bytes.
        """
        dtype = working_dtype(X.shape[0])
        gram = KernelMatrix(kernel, X[self.order], dtype, budget, map)
        preconditioner = self.preconditioner.on(gram)
        return replace(self, gram=gram, preconditioner=preconditioner)

    @property
    def can_decompose(self):
        """Whether the preconditioned kernel matrix may be decomposed."""
        n_rows, dtype = len(self.gram), self.gram.dtype
        fits = ARRAYS_OF_DECOMPOSITION * n_rows**2 * dtype.itemsize
        is_full = len(self.schedule.batches) == 1
        return is_full and n_rows <= EXACT_ROWS and fits <= self.gram.budget

    def matrix(self):
        """The preconditioned kernel matrix, (n_rows, n_rows), of a kept kernel."""
        features = self.preconditioner.features
        matrix = (features * -self.preconditioner.damping) @ features.T
        matrix += self.gram.values
        return matrix

    def unseen_rows(self):
        """Rows that the preconditioner has not seen either."""
        return np.delete(np.arange(len(self.gram)), self.preconditioner.rows)


def _schedule(gram, preconditioner, sizes, rng):
    beta = float(preconditioner.diagonal(gram).max())
    critical = critical_batch_size(beta, preconditioner.top_eigenvalue)
    batches = batches_of(len(gram), sizes.batch(len(gram), critical))
    batch_size = max(batch.stop - batch.start for batch in batches)
    largest = max(
        top_eigenvalue(
            preconditioner.square_product(gram, batch), batch.stop - batch.start, rng
        )
        for batch in batches
    )
    largest /= batch_size
    step_size = sizes.step_size
    if step_size == "auto":
        step_size = (
            full_batch_step(largest)
            if len(batches) == 1
            else batch_step(beta, largest, batch_size, critical)
        )
    return Schedule(batches, batch_size, float(step_size), critical, largest)
