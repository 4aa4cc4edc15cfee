"""Replicas of the recorded run that leave rows out: exact, any update, any loss.

Every replica takes the updates of the recorded run, on rows with weights of its own;
all share each pass over X. Folds and single rows are left out in the same way.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ...optim import costs
from ...optim.array_path import Predictors, StoredPredictors, with_room
from ...optim.blocks import MEMORY_BYTES, n_per_block, slices
from ...optim.fits import WeightedFits
from ...optim.run import Iterates
from ...optim.trajectory import iterate
from ..cost import WORTH_REPLICAS
from ..held_out_rows import counts_in
from .row_replicas import ARRAYS_PER_REPLICA


def replayed(problem, trajectory, weights):
    """Yield every Iterate of a run as fits with other weights would have it."""
    iterates = Iterates.at_rest(WeightedFits(problem, weights), trajectory.coef[0])
    yield iterates.state.current
    for _ in iterate(trajectory.updates(), iterates):
        yield iterates.state.current


def record_of_replicas(problem, trajectory, rule, counts, held_out):
    """The last coefficients of replicas that leave rows out, and their FoldRecord.

    Shapes: counts (n_rows, n_replicas), how often a replica has a row; returned coef
    (n_columns, n_outputs, n_replicas).
    """
    # ``held_out`` are the rows that every replica leaves out.
    weights = rule.without(problem, counts)
    fits, start = WeightedFits(problem, weights), None
    recorded = RecordedFolds(problem, fits, held_out)
    for last in replayed(problem, trajectory, weights):
        start = last if start is None else start
        recorded.add(last)
    suspects = fits_that_rise(fits, start, last)
    check_stable(problem, trajectory, weights, suspects)
    return last.coef, recorded.first(len(trajectory.coef))


def leave_folds_out(problem, trajectory, folds, rule, n_blocks=1, map=map):
    """The FoldRecord of folds (fitted, held-out rows), each an exact replica."""
    # ``n_blocks`` and ``map`` are those of LeaveOneOutTask.
    rule = rule.of_run(trajectory, np.concatenate([rows for _, rows in folds]))
    size = min(replicas_at_a_time(problem), -(-len(folds) // n_blocks))
    blocks = [folds[block] for block in slices(len(folds), size)]
    record_block = partial(_record_of_folds, problem, trajectory, rule)
    records = list(map(record_block, blocks))
    held_out = [[rows for _, rows in block] for block in blocks]
    return FoldRecord.joined(records, problem.design, held_out)


def _record_of_folds(problem, trajectory, rule, folds):
    counts = counts_in(folds, len(problem.target))
    held_out = [held_out for _, held_out in folds]
    return record_of_replicas(problem, trajectory, rule, counts, held_out)[1]


def fits_that_rise(fits, start, end):
    """Indices of fits with a larger training error at ``end`` than at ``start``."""
    # Errors that overflow count as larger.
    start, end = (fits.value(fits.predictor_at(iterate)) for iterate in (start, end))
    return np.flatnonzero(~(end <= start))


def check_stable(problem, trajectory, weights, suspects):
    """Raise if a step is too large for one of the suspects, whose error has risen."""
    # On fewer rows X'X / n may have a larger top eigenvalue.
    for r in suspects:
        for phase, stable in largest_stable_steps(
            problem, trajectory.phases, weights, r
        ):
            if phase.schedule.step_size > stable:
                raise ValueError(
                    "The iterates diverge where rows are left out, with step_size="
                    f"{phase.schedule.step_size:.6g}, though they do not on all rows: "
                    f"the largest stable step is {stable:.6g} there. Set "
                    "step_size to that or less, or leave fewer rows out."
                )


def are_surely_stable(problem, phases, weights):
    """Whether no replica can diverge, as far as is known before the run."""
    # Without some rows, L is at most L over the share of the weight that stays. Nothing
    # is known where replicas scale columns for themselves.
    if weights.columns is not None:
        return False
    run_weights, largest_ratio = problem.row_weights[:, 0], 1.0
    for replica in weights.rows.T:
        largest_ratio = max(largest_ratio, float((replica / run_weights).max()))
    for phase in phases:
        bound = largest_ratio * phase.smoothness(problem)
        if phase.schedule.step_size > phase.largest_stable_step(bound):
            return False
    return True


def largest_stable_steps(problem, phases, weights, r):
    """Yield every phase and the largest step at which replica r does not diverge."""
    fits = WeightedFits(problem, weights)
    replica = fits.problem_of(r)
    scale = np.broadcast_to(weights.penalty_scale, fits.n_fits)[r]
    for phase in phases:
        curvature = (scale - 1) * phase.penalty.curvature
        yield phase, phase.largest_stable_step(phase.smoothness(replica) + curvature)


def replicas_at_a_time(problem, n_recorded=0):
    """Number of replicas whose arrays fit in memory, or beside a record."""
    # A few may run beside a run of ``n_recorded`` updates: they take no more than its
    # record.
    n_entries = ARRAYS_PER_REPLICA * sum(problem.design.shape) * problem.target.shape[1]
    n_fitting = n_per_block(n_entries * problem.design.dtype.itemsize, MEMORY_BYTES)
    return max(n_fitting, min(n_recorded // ARRAYS_PER_REPLICA, WORTH_REPLICAS))


@dataclass(frozen=True)
class FoldRecord:
    """The record of folds: coefficients for the design's columns, or predictors."""

    coef: np.ndarray | None = None  # (n_iterates, n_columns, n_outputs, n_folds)
    intercept: np.ndarray | None = None  # (n_iterates, n_outputs, n_folds)
    # Linear predictors of the held-out rows, fold after fold, (n_iterates, n_held_out,
    # n_outputs).
    values: np.ndarray | None = None

    def paths(self, design, held_out):
        """Linear predictors of every fold for its held-out rows, as a list of paths."""
        # ``design`` is that of the run, or one of other rows with the same columns;
        # ``held_out`` lists rows of it.
        if self.values is not None:
            ends = np.cumsum([len(rows) for rows in held_out])
            values = np.split(self.values, ends[:-1], axis=1)
            return [StoredPredictors(of_fold) for of_fold in values]
        assert self.coef is not None  # there are both where there are no values
        assert self.intercept is not None
        return [
            Predictors(design, self.coef[..., k], rows, self.intercept[..., k])
            for k, rows in enumerate(held_out)
        ]

    def predictors(self, design, held_out):
        """The paths of all folds as one array, (n_iterates, n_held_out, n_outputs)."""
        if self.values is not None:
            return self.values
        paths = self.paths(design, held_out)
        return np.concatenate([path.of_rows(slice(None)) for path in paths], axis=1)

    @classmethod
    def joined(cls, records, design, held_out):
        """One record of the folds of several; ``held_out`` lists rows by record."""
        if any(record.values is not None for record in records):
            values = [
                record.predictors(design, rows)
                for record, rows in zip(records, held_out)
            ]
            return cls(values=np.concatenate(values, axis=1))
        coef = np.concatenate([record.coef for record in records], axis=-1)
        intercept = np.concatenate([record.intercept for record in records], axis=-1)
        return cls(coef, intercept)


class RecordedFolds:
    """A record of folds, the last of some fits, that grows iterate by iterate."""

    # It keeps coefficients if columns are few. Otherwise, and if predictors come with
    # the iterates, it keeps the predictions for the held-out rows.

    def __init__(self, problem, fits, held_out):
        self._design, self._fits, self._held_out = problem.design, fits, held_out
        n_coef = problem.design.shape[1] * len(held_out)
        # A row may stand for many samples, whose predictions a user may ask for.
        sizes = list(map(len, held_out))
        n_held_out = sum(sizes) * problem.n_samples / len(problem.target)
        self._keeps_coef = n_coef <= n_held_out and not problem.design.is_dual
        self._rows = np.concatenate([np.empty(0, int), *held_out])
        self._fold = np.repeat(np.arange(len(sizes)), sizes)
        # Iterates wait until a product with several of them takes as long for each as
        # it can, and longer while they stay in cache.
        n_bytes = n_coef * problem.target.shape[1] * problem.design.dtype.itemsize
        self._n_waiting = max(costs.ENTRY, n_per_block(n_bytes))
        self._waiting, self._arrays, self._n = [], {}, 0

    def add(self, iterate):
        """Record an iterate of all fits; of folds alone if it has a predictor."""
        if iterate.predictor is not None and not self._keeps_coef:
            self._append(values=iterate.predictor[self._rows, :, self._fold][None])
            return
        self._waiting.append(iterate.coef)
        if len(self._waiting) >= self._n_waiting:
            self._flush()

    def _flush(self):
        """Record the waiting iterates, or their predictions."""
        if not self._waiting:
            return
        coef = self._fits.design_coefficients(np.stack(self._waiting))
        intercept = self._fits.intercepts(coef)
        first, self._waiting = coef.shape[3] - len(self._held_out), []
        coef, intercept = coef[..., first:], intercept[..., first:]
        if self._keeps_coef:
            self._append(coef=coef, intercept=intercept)
            return
        record = FoldRecord(coef, intercept)
        self._append(values=record.predictors(self._design, self._held_out))

    def _append(self, **arrays):
        for name, array in arrays.items():
            last = self._n + len(array)
            record = with_room(self._arrays.get(name, array[:0]), self._n, last)
            record[self._n : last] = array
            self._arrays[name] = record
        self._n = last

    def first(self, n_iterates):
        """The FoldRecord of the first iterates."""
        self._flush()
        arrays = {name: array[:n_iterates] for name, array in self._arrays.items()}
        return FoldRecord(**arrays)
