"""Representation of the data in a run: by columns, by rows, or by moments.

The time of a run and of its estimates depends on the size of its data. If fewer numbers
give the same run up to rounding, and save time, it uses these: coordinates of the rows
in a basis of them, if there are fewer rows than columns, or a few rows with the same
moments, if there are many more.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from ...optim.arrays import design_of
from ...optim.moments import group_rows, merged, moments_of, pseudo_rows, varying
from ...optim.problem import Problem
from ...risk.cost import method_for
from ...risk.held_out_rows import have_repeats
from ..data.row_space import RowSpaceData
from ..data.training_data import ColumnData
from .plan import sees_moments_alone


def reduce_data(estimator, task, data, folds):
    """The data of a run, and the folds as their rows: fewer, where that saves time."""
    # For fewer rows than columns, or estimates that need moments alone.
    recorded, spec = task.recorded, task.spec
    if data.problem.design.is_on_device:
        # Products cost little there, and a basis of the rows would be as large as X.
        return data, folds
    if recorded is not None and recorded.iterates.coef.shape[-1] != len(data.center):
        return data, folds  # no run can continue that record
    n_rows, n_features = len(data.rows), len(data.center)
    # An update of the run, and the first of every recorded phase.
    updates = [spec.solver.update(n_rows)]
    for phase in recorded.phases if recorded is not None else ():
        updates.append(phase.first_update)
    if n_rows < n_features:
        rotated = _reduce_to_row_space(estimator, task, data, folds, updates)
        return (data if rotated is None else rotated), folds
    # Many more rows than columns: few rows with the same moments.
    needs_rows = not spec.is_quadratic or estimator.keep_data
    if not needs_rows and all(map(sees_moments_alone, updates)):
        # Whether products with X of a run and its folds cost more than its moments.
        n_outputs = data.problem.target.shape[1]
        n_updates = len(spec.strengths) * spec.max_iter
        n_products = 2 * n_updates * (1 + len(folds)) * n_outputs
        cost = n_rows * (n_features + n_outputs) ** 2
        if n_products * data.problem.design.n_stored > cost:
            reduced = reduce_to_pseudo_rows(data, folds)
            if reduced is not None:
                return reduced
    return data, folds


def _reduce_to_row_space(estimator, task, data, folds, updates):
    """Data in a basis of their rows; None if that is another run, or saves no time."""
    # Folds that scale columns for themselves each have a row space of their own.
    recorded = task.recorded
    if folds and estimator.standardize:
        return None
    if not all(estimate.is_rotation_invariant for estimate in task.estimates):
        return None
    n_rows, n_features = len(data.rows), len(data.center)
    penalty, features = task.spec.penalty(1.0, n_features), np.arange(n_features)
    if not penalty.is_rotation_invariant:
        return None
    # It has to be a penalty of as many coefficients as there are rows, too.
    if penalty.on(features[:n_rows]) != task.spec.penalty(1.0, n_rows):
        return None
    if not all(update.is_rotation_invariant for update in updates):
        return None
    for phase in recorded.phases if recorded is not None else ():
        if not phase.penalty.on(features).is_rotation_invariant:
            return None
    if not rotation_pays(task, data, len(folds)):
        return None
    rotated = RowSpaceData.of(data)
    if recorded is None or rotated.holds_record(recorded):
        return rotated
    return None


def rotation_pays(task, data, n_folds):
    """Whether a run in the space of the rows saves more than the rotation costs."""
    # A product with X or X' costs the entries of X, one with the coordinates of the
    # rows the square of their number.
    n_rows, n_features = len(data.rows), len(data.center)
    cost_of_run = task.spec.cost((n_rows, n_features), data.y)
    n_fits = 1 + n_folds
    leaves_rows_out = any(estimate.name == "loo" for estimate in task.estimates)
    if leaves_rows_out and method_for(cost_of_run) == "replicas":
        n_fits += n_rows
    n_iterates = (cost_of_run.n_updates + 1) * cost_of_run.n_outputs
    saved = data.problem.design.n_stored - n_rows**2
    # A QR decomposition, and the coefficients of the features.
    cost = 2 * n_features * n_rows**2 + n_iterates * n_features * n_rows
    return 2 * n_iterates * n_fits * saved > cost


# ---------------------------------------------------------------- rows with moments

# With the squared error and updates of all rows, a run depends on means and second
# moments of [X y] alone. A group of rows has those of a few rows that share its weight,
# one more than a row of [X y] has entries. Folds are such runs as well if the rows of a
# group stay, or go, together: every mean, every error and every gradient of their
# unions is then that of the data.


# The least share of a target's variance that X leaves unexplained: of less, differences
# of moments have too few digits.
FEWEST_UNEXPLAINED = 1e-5


@dataclass(frozen=True)
class PseudoProblem(Problem):
    """A problem whose rows stand for those of another."""

    largest_weight: float = 0.0  # of a row that may be left out
    n_samples: int = 0  # rows of the other problem
    n_single: int = 0  # the first rows are single rows of it; the rest stand for many

    @classmethod
    def of(cls, rows, weights, n_targets, loss, **fields):
        """The problem of rows of [X y], whose weights have a sum of one."""
        return cls(
            design_of(np.ascontiguousarray(rows[:, :-n_targets])),
            np.ascontiguousarray(rows[:, -n_targets:]),
            weights[:, None],
            loss,
            **fields,
        )


@dataclass(frozen=True)
class PseudoRowData(ColumnData):
    """Data whose run is on rows that have the moments of ``all_rows``."""

    all_rows: ColumnData
    all_folds: list

    def held_out_paths(self, record, folds):
        return self.all_rows.held_out_paths(record, self.all_folds)

    # There are many held-out samples, and a run may be read again and again.
    @cached_property
    def _held_out(self):
        return self.all_rows.held_out(self.all_folds)

    def held_out(self, folds):
        return self._held_out


def reduce_to_pseudo_rows(data, folds):
    """Data with the squared error, and folds, on few rows with the same moments."""
    # None: these are more than a quarter of the rows, or moments have few digits.
    problem = data.problem
    n_rows, n_outputs = problem.target.shape
    n_pseudo_rows = 1 + len(data.center) + n_outputs
    if any(map(have_repeats, chain.from_iterable(folds))):
        return None
    codes = map(parts_of_rows, folds, repeat(n_rows))
    groups = group_rows(codes, n_rows, n_rows // (4 * n_pseudo_rows))
    if groups is None:
        return None
    group, membership = groups
    moments = moments_of(problem, group, len(membership))
    # Errors of the run are differences of moments.
    if unexplained_share(moments, n_outputs) <= FEWEST_UNEXPLAINED:
        return None
    rows, weights = pseudo_rows(moments)
    center = np.append(data.center, data.offset)
    rows *= varying(merged(moments), center)
    problem = PseudoProblem.of(
        rows,
        weights,
        n_outputs,
        problem.loss,
        largest_weight=problem.largest_weight,
        n_samples=n_rows,
    )
    fields = {**vars(data), "problem": problem}
    reduced = PseudoRowData(**fields, all_rows=data, all_folds=folds)
    # (n_groups, n_folds) -> rows of the groups that a fold has.
    is_in = np.repeat(membership, n_pseudo_rows, axis=0)
    reduced_folds = []
    for code in is_in.T:
        reduced_folds.append((np.flatnonzero(code & 1), np.flatnonzero(code & 2)))
    return reduced, reduced_folds


def parts_of_rows(fold, n_rows):
    """The part of a fold that has each row: 1 if trained on, 2 if held out, or 0."""
    code = np.zeros(n_rows, np.int8)
    for number, rows in enumerate(fold, start=1):
        code[rows] += number
    return code


def unexplained_share(moments, n_outputs):
    """The least share of a target's variance that X does not explain."""
    # Second moments are about zero: with an intercept, data are centred.
    total = 0.0
    for part in moments:
        total = total + part.scatter + part.weight * np.outer(part.mean, part.mean)
    sizes = np.sqrt(np.diagonal(total))
    sizes = np.where(sizes > 0, sizes, 1)
    scaled = total / sizes / sizes[:, None]
    gram, cross = scaled[:-n_outputs, :-n_outputs], scaled[:-n_outputs, -n_outputs:]
    explained = cross.T @ np.linalg.lstsq(gram, cross, rcond=None)[0]
    variance = np.diagonal(scaled)[-n_outputs:]
    rest = variance - np.diagonal(explained)
    return float((rest / np.where(variance > 0, variance, 1)).min())
