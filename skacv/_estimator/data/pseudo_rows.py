"""Data with many more rows than columns, run on a few rows of the same moments.

With the squared error and updates of all rows, a run depends on means and second
moments of [X y] alone. A group of rows has those of a few rows that share its weight,
one more than a row of [X y] has entries. Folds are such runs as well if the rows of a
group stay, or go, together: every mean, every error and every gradient of their unions
is then that of the data.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...optim.arrays import design_of
from ...optim.moments import merged, moments_of, pseudo_rows, varying
from ...optim.problem import Problem
from .training_data import ColumnData


@dataclass(frozen=True)
class PseudoProblem(Problem):
    """A problem whose rows stand for those of another, which has ``n_samples`` rows.

    ``largest_weight`` is that of a row that may be left out. The first ``n_single``
    rows are rows of the other; the rest stand for many.
    """

    largest_weight: float = 0.0
    n_samples: int = 0
    n_single: int = 0

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

    @property
    def observed(self):
        return self.all_rows.problem

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
    """Data with the squared error, and folds, on few rows of the same moments.

    None where these would not be few (at most a quarter of the rows), or where X
    explains the targets but for 1e-5 of their variance: errors of the run would be
    differences of moments with few digits left.
    """
    problem = data.problem
    n_rows, n_outputs = problem.target.shape
    n_pseudo_rows = 1 + len(data.center) + n_outputs
    groups = row_groups(folds, n_rows, n_rows // (4 * n_pseudo_rows))
    if groups is None:
        return None
    group, membership = groups
    moments = moments_of(problem, group, len(membership))
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
    reduced = data.as_kind(
        PseudoRowData, problem=problem, all_rows=data, all_folds=folds
    )
    # (n_groups, n_folds, 2) -> rows of the groups that a fold has.
    is_in = np.repeat(membership, n_pseudo_rows, axis=0)
    reduced_folds = []
    for fitted, held_out in is_in.transpose(1, 2, 0):
        reduced_folds.append((np.flatnonzero(fitted), np.flatnonzero(held_out)))
    return reduced, reduced_folds


def row_groups(folds, n_rows, max_groups):
    """Groups of rows that are in the same parts of all folds.

    Shapes: returned group (n_rows,), and membership (n_groups, n_folds, 2): whether its
    rows are training rows, and held-out rows. None where there would be more groups
    than ``max_groups``, or where rows are in a part repeatedly.
    """
    group, membership = np.zeros(n_rows, np.int32), np.zeros((1, 0, 2), dtype=bool)
    for parts in folds:
        code = group * 4
        for part, rows in enumerate(parts):
            is_in = np.zeros(n_rows, np.int8)
            is_in[rows] = part + 1
            if np.count_nonzero(is_in) < len(rows):
                return None
            code += is_in
        codes = np.flatnonzero(np.bincount(code, minlength=4 * len(membership)))
        if len(codes) > max_groups:
            return None
        group_of_code = np.zeros(4 * len(membership), np.int32)
        group_of_code[codes] = np.arange(len(codes))
        group = group_of_code[code]
        of_fold = np.stack([codes & 1, codes & 2], axis=1)[:, None] > 0
        membership = np.concatenate([membership[codes // 4], of_fold], axis=1)
    return (group, membership) if len(membership) <= max_groups else None


def unexplained_share(moments, n_outputs):
    """The share of a target's variance that X does not explain, the least over targets.

    From second moments about zero: of centred data, with an intercept.
    """
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
