"""Tangents: how shocks in the gradients move the later iterates.

A shock in the gradient at iterate s changes iterate t by M_{t,s} times the
shock, the Jacobians of Bellec & Tan (2024). The change obeys the same update
as the iterates, with the prox replaced by its derivative at the recorded
iterate. :class:`Tangents` carries, for every probe and temporal mode, the
one vector that all past shocks add up to; no M_{t,s} and no memory matrix is
ever formed. Which shocks a gradient gets, and what tangents say of them, depends
on the loss: see :class:`SquaredTangents` and :mod:`skacv.risk.memory.curved_tangents`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ...optim.design import Design
from ...optim.einsum import einsum
from ...optim.families import OnColumns

# A working set is kept while it is at most this much larger than needed, and
# for at least so many updates.
WORKING_SET_SLACK = 1.2
MIN_BLOCK_LENGTH = 8
# A Gram matrix serves whole where so much of it is needed.
NEARLY_ALL = 0.85
# Arrays of the tangents' shape that an update holds.
TANGENT_COPIES = 8
# A Gram matrix of so many bytes is formed however small X is.
ALWAYS_FITS = 1 << 23
# Where working columns are more than this share of all, X is used uncopied.
WIDE = 0.75


class ColumnSet(NamedTuple):
    """The columns on which tangents live during some consecutive updates.

    Attributes
    ----------
    columns : Design or None
        Design of these columns, in the precision of the tangents.
    times_gram : callable or None
        ``times_gram(tangents)`` is their product with X_W' X_W / n, where it takes no
        columns.
    """

    n_updates: int
    index: np.ndarray
    columns: Design | None
    times_gram: Callable | None = None


def all_columns(design, n_updates, dtype):
    """All columns, all along: a list of one :class:`ColumnSet`."""
    index = np.arange(design.shape[1])
    return [ColumnSet(n_updates, index, design.columns(index, dtype))]


def column_sets(design, trajectory, dtype, n_products=0):
    """The columns of a run, one set after the other.

    The active sets are known, since the run is over: a set is the union of the active
    sets of consecutive iterates, as long as that union is not much larger than what the
    updates need.

    Parameters
    ----------
    n_products : int
        Tangents that are multiplied with the Gram matrix in an update: it is formed
        where that pays for itself.

    Yields
    ------
    ColumnSet
    """
    unions = [
        (n_updates, _widened(index, design, dtype))
        for n_updates, index in _unions(trajectory)
    ]
    shared, gram, former, columns = np.empty(0, int), None, None, None
    for i, (n_updates, index) in enumerate(unions):
        if not np.isin(index, shared, assume_unique=True).all():
            gram = None  # its memory is needed for the next one
            shared = _columns_worth_a_gram(design, unions[i:], n_products, dtype)
            if shared.size:
                columns = former = None
                gram = design.columns(shared, dtype).gram(dtype)
                gram /= design.shape[0]
        if gram is not None:
            index, own = _part_of(gram, shared, index)
            yield ColumnSet(n_updates, index, None, partial(np.matmul, own))
            del own
            continue
        if former is None or not np.array_equal(index, former):
            columns = None  # before those of the next set are copied
            former, columns = index, design.columns(index, dtype)
        yield ColumnSet(n_updates, index, columns)


def _part_of(gram, shared, index):
    """The columns to work on, and their part of the Gram matrix of shared ones."""
    if len(index) >= NEARLY_ALL * len(shared):
        return shared, gram
    position = np.searchsorted(shared, index)
    return index, gram[np.ix_(position, position)]


def _by_columns(columns, tangents):
    """X_W' X_W / n times tangents, by two products with the columns of the set."""
    product = columns.t_dot(columns.dot(tangents))
    product /= columns.shape[0]
    return product


def _widened(index, design, dtype):
    """``index``, or all columns where a copy of these would be as large as X."""
    n_columns = design.shape[1]
    if design.storage_dtype == dtype and len(index) > WIDE * n_columns:
        return np.arange(n_columns)
    return index


def _columns_worth_a_gram(design, unions, n_tangents, dtype):
    """Columns of the next working sets whose Gram matrix pays for itself.

    Through it a product takes the square of the width instead of twice the
    width times the rows. It serves as many of the next working sets as saves
    most, if its memory stays below that of X; none if none are saved.
    """
    n_rows, n_columns = design.shape
    density = design.n_stored / n_columns
    joined = np.zeros(n_columns, dtype=bool)
    worth, most_saved, saved = np.empty(0, int), 0.0, 0.0
    for n_updates, index in unions:
        joined[index] = True
        width = int(joined.sum())
        # The matrix, the columns it is formed from or a part of it, the tangents.
        beside = max(n_rows, NEARLY_ALL**2 * width) + TANGENT_COPIES * n_tangents
        n_entries = width * (width + beside)
        if n_entries * np.dtype(dtype).itemsize > max(design.n_bytes, ALWAYS_FITS):
            break
        each = (2 * density - len(index)) * len(index)
        saved += n_updates * n_tangents * each
        # A symmetric product forms one half of the matrix.
        if saved - density * width**2 / 2 > most_saved:
            most_saved = saved - density * width**2 / 2
            worth = np.flatnonzero(joined)
    return worth


def _unions(trajectory):
    """Consecutive numbers of updates and the columns that they need."""
    active = _active_sets(trajectory)
    first, union, smallest = 0, None, 0
    for t in range(trajectory.n_updates):
        # An update needs rows t and t - 1, and leads to row t + 1.
        needed = trajectory.expand_to_groups(active[max(t - 1, 0) : t + 2].any(axis=0))
        if union is not None:
            joined, least = union | needed, min(smallest, needed.sum())
            is_tight = joined.sum() <= WORKING_SET_SLACK * least
            if is_tight or t - first < MIN_BLOCK_LENGTH:
                union, smallest = joined, least
                continue
            yield t - first, np.flatnonzero(union)
        first, union, smallest = t, needed, needed.sum()
    if union is not None:
        yield trajectory.n_updates - first, np.flatnonzero(union)


def _active_sets(trajectory):
    """Where the prox derivative is not zero; nowhere at the start."""
    coef = trajectory.coef
    active = np.zeros(coef.shape[:2], dtype=bool)
    for t, _, update, penalty in trajectory.updates():
        active[t + 1] = penalty.support(coef[t + 1], update.step_size).any(axis=1)
    return active


class Tangents(ABC):
    """The tangents of all probes and modes, one update after the other.

    Every tangent is one probe driven by one temporal mode. Modes need not have the same
    number of probes. Row t of the solution is known before the tangents of row t + 1
    are driven by it.

    Parameters
    ----------
    temporal : ndarray of shape (n_driven, n_modes)
        V.
    n_by_mode : ndarray of shape (n_modes,)
        Mode k is driven through the first ``n_by_mode[k]`` probes.
    n_outputs, n_groups : int
        Outputs that tangents have, and groups of them that are read together.

    Attributes
    ----------
    solution : ndarray of shape (n_updates + 1, n_groups, n_modes)
        Z = W V at every iterate, W the memory matrix as the probes see it.
    responses : ndarray of shape (n_updates + 1, n_groups, n_tangents)
        What every tangent alone says of Z.
    """

    def __init__(
        self, trajectory, temporal, n_by_mode, sets, dtype, n_outputs=1, n_groups=1
    ):
        self.temporal, self._dtype = temporal, dtype
        self._coef = trajectory.coef
        # The mode and the probe of every tangent, and what adds responses up by mode.
        self.mode = np.repeat(np.arange(len(n_by_mode)), n_by_mode)
        self._probe = np.concatenate([np.arange(n) for n in [0, *n_by_mode]])
        self._mixing = np.repeat(np.diag(1 / n_by_mode), n_by_mode, axis=0)
        n_iterates, n_tangents = len(self._coef), len(self.mode)
        self.solution = np.zeros((n_iterates, n_groups, len(n_by_mode)))
        self.responses = np.zeros((n_iterates, n_groups, n_tangents))
        self._sets, self._n_left = iter(sets), 0
        self._rows, self._index = None, np.empty(0, int)
        self._current = self._earlier = np.zeros((0, n_outputs, n_tangents), dtype)

    def take(self, taken):
        """Move all tangents on by an update."""
        if not self._n_left:
            self._enter_next_set()
        self._n_left -= 1
        if taken.restarts:
            self._earlier = self._current
        self._take(taken, taken.update.point(self._current, self._earlier))

    @abstractmethod
    def _take(self, taken, point):
        """The same from the point where the gradient is taken, on its columns."""

    @abstractmethod
    def _rows_on(self, following):
        """The factor of tangents on the columns of a :class:`ColumnSet`."""

    def _note(self, t, groups, found):
        """Read Z at iterate t, where every tangent says ``found``."""
        self.responses[t, groups] = found
        self.solution[t, groups] = found @ self._mixing

    def _advance(self, taken, change, following):
        """The tangents after a gradient step that led to ``following``."""
        penalty = self._penalty_on(taken.penalty)
        moved = taken.update.tangent(
            self._current, self._earlier, change, penalty, following[:, :, None]
        )
        self._earlier, self._current = self._current, moved

    def _enter_next_set(self):
        """Move the tangents to the columns of the next set."""
        held, self._rows = self._index, None  # before the next columns are copied
        following = next(self._sets)
        self._index, self._n_left = following.index, following.n_updates
        self._rows, self._penalty_on = self._rows_on(following), OnColumns(self._index)
        self._earlier = moved_to(self._index, held, self._earlier)
        self._current = moved_to(self._index, held, self._current)


class SquaredTangents(Tangents):
    """The tangents of the squared error, where no curvature changes along the run.

    Traces tr(X M X') / n are means over probes of readout' M source, and modes those of
    the residuals of the iterates: the shock at a gradient is V + W V there.

    Parameters
    ----------
    trajectory, temporal, n_by_mode, sets
        As of :class:`Tangents`; ``temporal`` is of shape (n_updates + 1, n_modes).
    source, readout : ndarray of shape (n_columns, n_probes)
    """

    def __init__(self, trajectory, temporal, n_by_mode, sets, source, readout):
        super().__init__(trajectory, temporal, n_by_mode, sets, source.dtype)
        self._source, self._readout = source, readout
        self._total = temporal.copy()
        self.mean_curvature = np.ones((len(temporal), 1))
        # V is where the iterates are.
        self.at_points = self.solution

    def _rows_on(self, following):
        times_gram = following.times_gram or partial(_by_columns, following.columns)
        places = np.ix_(following.index, self._probe)
        return self._source[places], self._readout[places], times_gram

    def _take(self, taken, point):
        source, readout, times_gram = self._rows
        t, before, update, _ = taken
        shock = update.point(self._total[t], self._total[before])[self.mode]
        change = times_gram(point[:, 0])
        change -= source * shock.astype(change.dtype)
        # Updates with a prox have a single output.
        following = self._coef[t + 1, self._index, :1]
        self._advance(taken, change[:, None], following)
        self._note(t + 1, 0, einsum("jc,jc->c", readout, self._current[:, 0]))
        self._total[t + 1] += self.solution[t + 1, 0]


def moved_to(index, held, tangents):
    """Tangents on the columns ``held`` as tangents on the columns ``index``."""
    moved = np.zeros((len(index), *tangents.shape[1:]), tangents.dtype)
    _, new, old = np.intersect1d(index, held, assume_unique=True, return_indices=True)
    moved[new] = tangents[old]
    return moved
