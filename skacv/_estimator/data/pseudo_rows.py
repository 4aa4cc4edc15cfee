"""Data with many more rows than columns, run on a few rows of the same moments.

With the squared error and updates of all rows, a run depends on means and second
moments of [X y] alone. A group of rows has those of a few rows that share its weight,
one more than a row of [X y] has entries. Folds are such runs as well if the rows of a
group stay, or go, together: every mean, every error and every gradient of their unions
is then that of the data.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat

import numpy as np

from ...optim.arrays import design_of
from ...optim.moments import group_rows, merged, moments_of, pseudo_rows, varying
from ...optim.problem import Problem
from ...risk.held_out_rows import have_repeats
from .training_data import ColumnData


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

    # There are many of them, and a run may be read again and again.
    @cached_property
    def _held_out(self):
        samples = self.all_rows.held_out_samples(self.all_folds)
        return samples, self.all_rows.held_out_targets(self.all_folds)

    def held_out_samples(self, folds):
        return self._held_out[0]

    def held_out_targets(self, folds):
        return self._held_out[1]


def on_pseudo_rows(data, folds):
    """Data with the squared error, and folds, on few rows with the same moments.

    None where these are more than a quarter of the rows, or moments have few digits.
    """
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
    if unexplained_share(moments, n_outputs) <= 1e-5:
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
    """The parts of a fold that rows are in: 1 if trained on, 2 if held out, or 0."""
    code = np.zeros(n_rows, np.int8)
    for number, rows in enumerate(fold, start=1):
        code[rows] += number
    return code


def unexplained_share(moments, n_outputs):
    """The least share of a target's variance that X does not explain."""
    # From second moments about zero: of centred data, with an intercept.
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
