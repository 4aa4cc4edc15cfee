"""Tangents: how shocks in the gradients move the later iterates.

A shock in the gradient at iterate s changes iterate t by M_{t,s} times the
shock, the Jacobians of Bellec & Tan (2024). The change obeys the same update
as the iterates, with the prox replaced by its derivative at the recorded
iterate. :class:`Tangents` carries, for every probe and temporal mode, the
one vector that all past shocks add up to; no M_{t,s} and no memory matrix is
ever formed. The shocks that a gradient gets, and the readings of tangents, depend
on the loss: see :class:`SquaredTangents` and :mod:`skacv.risk.memory.curved_tangents`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...optim.blocks import MEMORY_BYTES
from ...optim.design import Design
from ...optim.einsum import einsum
from ...optim.families import PenaltyOnColumns

# From this share of all on, columns are used uncopied, and a Gram matrix in full.
NEARLY_ALL = 0.8


@dataclass(frozen=True, eq=False)
class ColumnSet:
    """The columns X_W on which tangents live during some consecutive updates."""

    n_updates: int
    index: np.ndarray
    columns: Design | None  # X_W, in the precision of the tangents
    times_gram: Callable | None = None  # or products of tangents with X_W' X_W / n


def all_columns(design, n_updates, dtype):
    """All columns during all updates: a list of one :class:`ColumnSet`."""
    index = np.arange(design.shape[1])
    return [ColumnSet(n_updates, index, design.columns(index, dtype))]


def column_sets(design, trajectory, dtype, n_products=0):
    """The sets of columns of a run, one :class:`ColumnSet` after the other."""
    # A Gram matrix is formed where that is cheaper for ``n_products`` in an update.
    # Where a copy of columns would be as large as X, all are used.
    n_rows, n_columns = design.shape
    unions = []
    for n_updates, index in _working_sets(trajectory):
        is_wide = len(index) > NEARLY_ALL * n_columns
        if is_wide and design.storage_dtype == dtype:
            index = np.arange(n_columns)
        unions.append((n_updates, index))
    shared, gram, former, columns = np.empty(0, int), None, None, None
    for i, (n_updates, index) in enumerate(unions):
        if not np.isin(index, shared, assume_unique=True).all():
            gram = None  # its memory is needed for the next one
            shared = _columns_worth_a_gram(design, unions[i:], n_products, dtype)
            if shared.size:
                columns = former = None
                gram = design.columns(shared, dtype).gram(dtype)
                gram /= n_rows
        if gram is not None:
            if len(index) >= NEARLY_ALL * len(shared):
                index, part = shared, gram
            else:
                position = np.searchsorted(shared, index)
                part = gram[np.ix_(position, position)]
            yield ColumnSet(n_updates, index, None, partial(np.matmul, part))
            del part
            continue
        if former is None or not np.array_equal(index, former):
            columns = None  # before those of the next set are copied
            former, columns = index, design.columns(index, dtype)
        yield ColumnSet(n_updates, index, columns)


def _working_sets(trajectory, slack=1.2, least=8):
    """Numbers of consecutive updates, and the union of their active columns."""
    # A union has at most ``slack`` times the columns that an update needs, but serves
    # ``least`` updates.
    coef = trajectory.coef
    active = np.zeros(coef.shape[:2], dtype=bool)  # none at the start
    for step in trajectory.updates():
        support = step.penalty.support(coef[step.t + 1], step.update.step_size)
        active[step.t + 1] = support.any(axis=1)
    first, union, smallest = 0, None, 0
    for t in range(trajectory.n_updates):
        # An update needs rows t and t - 1, and leads to row t + 1.
        needed = trajectory.expand_to_groups(active[max(t - 1, 0) : t + 2].any(axis=0))
        if union is not None:
            joined, size = union | needed, min(smallest, needed.sum())
            if joined.sum() <= slack * size or t - first < least:
                union, smallest = joined, size
                continue
            yield t - first, np.flatnonzero(union)
        first, union, smallest = t, needed, needed.sum()
    if union is not None:
        yield trajectory.n_updates - first, np.flatnonzero(union)


def _columns_worth_a_gram(design, unions, n_tangents, dtype):
    """Columns of the next working sets whose Gram matrix is cheaper than products."""
    # The columns of as many of the next working sets as saves most, or none.
    # A product takes the square of the width instead of twice the width times the rows.
    n_rows, n_columns = design.shape
    density, itemsize = design.n_stored / n_columns, np.dtype(dtype).itemsize
    joined = np.zeros(n_columns, dtype=bool)
    worth, most_saved, saved = np.empty(0, int), 0.0, 0.0
    for n_updates, index in unions:
        joined[index] = True
        width = int(joined.sum())
        # The matrix, the columns that it is formed from or a part of it, and some eight
        # arrays of tangents in an update.
        n_per_column = width + max(n_rows, NEARLY_ALL**2 * width) + 8 * n_tangents
        most_bytes = max(design.n_bytes, MEMORY_BYTES // 32)
        if width * n_per_column * itemsize > most_bytes:
            break
        saved_each = (2 * density - len(index)) * len(index)
        saved += n_updates * n_tangents * saved_each
        # A symmetric product forms one half of the matrix.
        if saved - density * width**2 / 2 > most_saved:
            most_saved = saved - density * width**2 / 2
            worth = np.flatnonzero(joined)
    return worth


class Tangents(ABC):
    """The tangents of all probes and modes, one update after the other."""

    # Every tangent is one of the first ``n_by_mode[k]`` probes, driven by mode k of V.
    # Z = W V, the solution, is known before the next tangents are driven by it. Shapes:
    # temporal (n_driven, n_modes); solution (n_iterates, n_groups, n_modes); responses
    # (n_iterates, n_groups, n_tangents), readings of Z.

    _on_set: Any  # what ``_on_columns`` makes of the present columns

    def __init__(
        self, trajectory, temporal, n_by_mode, sets, dtype, n_outputs=1, n_groups=1
    ):
        self.temporal, self._dtype, self._coef = temporal, dtype, trajectory.coef
        # The mode and the probe of every tangent, and what adds responses up by mode.
        self.mode = np.repeat(np.arange(len(n_by_mode)), n_by_mode)
        first = np.repeat(np.cumsum(n_by_mode) - n_by_mode, n_by_mode)
        self._probe = np.arange(len(self.mode)) - first
        self._mixing = np.repeat(np.diag(1 / n_by_mode), n_by_mode, axis=0)
        n_iterates, n_tangents = len(self._coef), len(self.mode)
        self.solution = np.zeros((n_iterates, n_groups, len(n_by_mode)))
        self.responses = np.zeros((n_iterates, n_groups, n_tangents))
        self._sets, self._n_left = iter(sets), 0
        self._on_set, self._index = None, np.empty(0, int)
        self._current = self._earlier = np.zeros((0, n_outputs, n_tangents), dtype)

    @abstractmethod
    def take(self, step):
        """Move all tangents on by an update."""

    @abstractmethod
    def _on_columns(self, column_set):
        """Factors of the products with tangents on a :class:`ColumnSet`."""

    def _point(self, step):
        """The point where the gradient is taken, on the columns of the update."""
        if not self._n_left:
            held, self._on_set = self._index, None  # before the next columns are copied
            column_set = next(self._sets)
            self._index, self._n_left = column_set.index, column_set.n_updates
            self._on_set = self._on_columns(column_set)
            self._penalty_on = PenaltyOnColumns(self._index)
            _, new, old = np.intersect1d(
                self._index, held, assume_unique=True, return_indices=True
            )
            shape = len(self._index), *self._current.shape[1:]
            current, earlier = np.zeros((2, *shape), self._dtype)
            current[new], earlier[new] = self._current[old], self._earlier[old]
            self._current, self._earlier = current, earlier
        self._n_left -= 1
        if step.restarts:
            self._earlier = self._current
        return step.update.point(self._current, self._earlier)

    def _advance(self, step, change, coef):
        """The tangents after a gradient step that led to ``coef``."""
        penalty = self._penalty_on(step.penalty)
        following = step.update.tangent(
            self._current, self._earlier, change, penalty, coef[:, :, None]
        )
        self._earlier, self._current = self._current, following

    def _read(self, t, groups, responses):
        """Z at iterate t, by the readings from every tangent."""
        self.responses[t, groups] = responses
        self.solution[t, groups] = responses @ self._mixing


class SquaredTangents(Tangents):
    """The tangents of the squared error, where no curvature changes along the run."""

    # tr(X M X') / n are means over probes of readout' M source; shocks are V + W V.
    # Shapes: temporal (n_iterates, n_modes); source, readout (n_columns, n_probes).

    def __init__(self, trajectory, temporal, n_by_mode, sets, source, readout):
        super().__init__(trajectory, temporal, n_by_mode, sets, source.dtype)
        self._source, self._readout = source, readout
        self._shocks = temporal.copy()
        self.mean_curvature = np.ones((len(temporal), 1))
        # V is where the iterates are.
        self.at_points = self.solution

    def _on_columns(self, column_set):
        entries = np.ix_(column_set.index, self._probe)
        return self._source[entries], self._readout[entries], column_set

    def take(self, step):
        """Move all tangents on by an update, and read Z after it."""
        point, t = self._point(step)[:, 0], step.t
        source, readout, column_set = self._on_set
        if column_set.times_gram is None:
            columns = column_set.columns
            change = columns.t_dot(columns.dot(point))
            change /= columns.shape[0]
        else:
            change = column_set.times_gram(point)
        shock = step.update.point(self._shocks[t], self._shocks[step.before])
        change -= source * shock[self.mode].astype(change.dtype)
        # Updates with a prox have a single output.
        coef = self._coef[t + 1, column_set.index, :1]
        self._advance(step, change[:, None], coef)
        responses = einsum("jc,jc->c", readout, self._current[:, 0])
        self._read(t + 1, 0, responses)
        self._shocks[t + 1] += self.solution[t + 1, 0]
