"""Tangents: how shocks in the gradients move the later iterates.

A shock in the gradient at iterate s changes iterate t by M_{t,s} times the
shock, the Jacobians of Bellec & Tan (2024). The change obeys the same update
as the iterates, with the prox replaced by its derivative at the recorded
iterate. :func:`tangent_pass` carries, for every probe and temporal mode, the
one vector that all past shocks add up to; no M_{t,s} and no memory matrix is
ever formed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ...optim.einsum import einsum
from ...optim.families import OnColumns
from ...optim.penalties import SquaredL2

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


@dataclass(frozen=True)
class TangentProbes:
    """Traces tr(X M X') / n as means over probes of readout' M source.

    Every tangent is one probe driven by one temporal mode. Modes need not have
    the same number of probes.

    Attributes
    ----------
    source, readout : ndarray of shape (n_columns, n_probes)
    n_by_mode : ndarray of shape (n_modes,)
        Mode k is driven through the first ``n_by_mode[k]`` probes.
    """

    source: np.ndarray
    readout: np.ndarray
    n_by_mode: np.ndarray

    @property
    def n_tangents(self):
        return int(self.n_by_mode.sum())

    @property
    def mode(self):
        """The mode of every tangent."""
        return np.repeat(np.arange(len(self.n_by_mode)), self.n_by_mode)


@dataclass(frozen=True)
class WorkingSet:
    """The columns on which tangents live during some consecutive updates.

    Attributes
    ----------
    n_updates : int
    index : ndarray of int, increasing
    gram : callable
        ``gram(tangents)`` is their product with X_W' X_W / n.
    coef : callable
        ``coef(t)`` are the recorded coefficients of row ``t`` there, (n_index, 1).
    penalty_on : callable
        What a penalty is there.
    """

    n_updates: int
    index: np.ndarray
    gram: Callable
    coef: Callable
    penalty_on: Callable


def spectral_working_sets(trajectory, eigenvalues):
    """Linear updates commute with the Gram matrix: one diagonal working set."""
    index = np.arange(len(eigenvalues))
    yield WorkingSet(
        n_updates=trajectory.n_updates,
        index=index,
        gram=partial(np.multiply, eigenvalues[:, None]),
        coef=lambda t: None,  # no prox looks at them
        penalty_on=lambda penalty: SquaredL2(penalty.common_curvature()),
    )


def column_working_sets(design, trajectory, n_tangents, dtype):
    """Working sets of columns of X for a trajectory of one replica.

    The active sets are known, since the run is over: a working set is the
    union of the active sets of consecutive iterates, as long as that union is
    not much larger than what the updates need.

    Parameters
    ----------
    design : Design
    trajectory : Trajectory
    n_tangents : int
    dtype : dtype of the tangents

    Yields
    ------
    WorkingSet
    """
    coef = trajectory.coef[:, :, 0]
    unions = column_unions(design, trajectory, dtype)
    shared, gram = np.empty(0, int), None
    for i, (n_updates, index) in enumerate(unions):
        if not np.isin(index, shared, assume_unique=True).all():
            gram = None  # its memory is needed for the next one
            shared = _columns_worth_a_gram(design, unions[i:], n_tangents, dtype)
            if shared.size:
                gram = design.columns(shared, dtype).gram()
                gram /= design.shape[0]
        if gram is None:
            product = partial(_by_columns, design.columns(index, dtype))
        elif len(index) >= NEARLY_ALL * len(shared):
            index, product = shared, partial(np.matmul, gram)
        else:
            position = np.searchsorted(shared, index)
            product = partial(np.matmul, gram[np.ix_(position, position)])

        yield WorkingSet(
            n_updates=n_updates,
            index=index,
            gram=product,
            coef=lambda t, index=index: coef[t, index, None],
            penalty_on=OnColumns(index),
        )
        del product  # before the columns of the next one are copied


def _by_columns(columns, tangents):
    """X_W' X_W / n times tangents, by two products with the columns of the set."""
    product = columns.t_dot(columns.dot(tangents))
    product /= columns.shape[0]
    return product


def column_unions(design, trajectory, dtype):
    """Consecutive numbers of updates, and the columns on which their tangents live.

    Parameters
    ----------
    design : Design
    trajectory : Trajectory
    dtype : dtype of the tangents

    Returns
    -------
    list of (int, ndarray of int)
    """
    return [
        (n_updates, _widened(index, design, dtype))
        for n_updates, index in _unions(trajectory)
    ]


def _widened(index, design, dtype):
    """``index``, or all columns where a copy of these would be as large as X."""
    n_columns = design.shape[1]
    if design.dtype == dtype and len(index) > WIDE * n_columns:
        return np.arange(n_columns)
    return index


def _columns_worth_a_gram(design, unions, n_tangents, dtype):
    """Columns of the next working sets whose Gram matrix pays for itself.

    Through it a product costs the square of the width instead of twice the
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
        needed = trajectory.whole(active[max(t - 1, 0) : t + 2].any(axis=0))
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


def tangent_pass(trajectory, temporal, probes, working_sets):
    """Solve z = temporal + (A / n) z along the trajectory, for every mode.

    ``A`` is the memory matrix as the probes see it, strictly lower triangular:
    row t of z is known before the tangents of row t + 1 are driven by it.

    Parameters
    ----------
    trajectory : Trajectory
    temporal : ndarray of shape (n_iterates, n_modes)
    probes : TangentProbes
    working_sets : iterable of WorkingSet

    Returns
    -------
    solution : ndarray of shape (n_iterates, n_modes)
    responses : ndarray of shape (n_iterates, n_tangents)
        What every tangent's probe says of (A / n) z for its mode.
    """
    tangents = trajectory.followed_by(Tangents(temporal, probes, working_sets))
    return tangents.solution, tangents.responses


class Tangents:
    """The tangents of all probes and modes, one update after the other.

    Parameters are those of :func:`tangent_pass`.
    """

    def __init__(self, temporal, probes, working_sets):
        # The mode and the probe of every tangent, and what adds responses up by mode.
        self.probes, self.mode = probes, probes.mode
        self.probe = np.concatenate([np.arange(n) for n in probes.n_by_mode])
        self.mixing = np.repeat(np.diag(1 / probes.n_by_mode), probes.n_by_mode, axis=0)
        self.solution = temporal.copy()
        self.responses = np.zeros((len(temporal), len(self.mode)))
        self._working_sets, self._n_left = iter(working_sets), 0
        self._set, self._index = None, np.empty(0, int)
        dtype = probes.source.dtype
        self.current = self.earlier = np.zeros((0, len(self.mode)), dtype)

    def take(self, taken):
        """Move all tangents on by an update."""
        if not self._n_left:
            self._enter_next_set()
        self._n_left -= 1
        t, before, update, penalty = taken
        if taken.restarts:
            self.earlier = self.current
        point = update.point(self.current, self.earlier)
        shock = update.point(self.solution[t], self.solution[before])[self.mode]
        change = self._set.gram(point)
        change -= self._source * shock.astype(change.dtype)
        penalty, coef = self._set.penalty_on(penalty), self._set.coef(t + 1)
        following = update.tangent(self.current, self.earlier, change, penalty, coef)
        self.earlier, self.current = self.current, following
        found = einsum("jc,jc->c", self._readout, self.current)
        self.responses[t + 1] = found
        self.solution[t + 1] += found @ self.mixing

    def _enter_next_set(self):
        """Move the tangents to the columns of the next working set."""
        self._set = None  # before the columns of the next one are copied
        working_set = next(self._working_sets)
        index = working_set.index
        self.earlier = moved_to(index, self._index, self.earlier)
        self.current = moved_to(index, self._index, self.current)
        self._index, self._n_left = index, working_set.n_updates
        self._source = self.probes.source[np.ix_(index, self.probe)]
        self._readout = self.probes.readout[np.ix_(index, self.probe)]
        self._set = working_set


def moved_to(index, held, tangents):
    """Tangents on the columns ``held`` as tangents on the columns ``index``."""
    moved = np.zeros((len(index), *tangents.shape[1:]), tangents.dtype)
    _, new, old = np.intersect1d(index, held, assume_unique=True, return_indices=True)
    moved[new] = tangents[old]
    return moved
