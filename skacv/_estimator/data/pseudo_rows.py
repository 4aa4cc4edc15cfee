"""Data with many more rows than columns, run on a few rows of the same moments.

With the squared error and updates of all rows, a run sees means and second moments of
[X y] alone. A group of rows has those of a few rows that share its weight, one more
than a row of [X y] has entries. Folds are such runs as well if the rows of a group
stay, or go, together: every mean, every error and every gradient of their unions is
then that of the data, and nothing of the engine need know.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...optim.arrays import design_of
from ...optim.moments import group_rows, merged, moments_of, pseudo_rows, varying
from ...optim.problem import Problem
from ...risk.averages import have_repeats
from .training_data import ColumnData

# Groups are worth it while they have so many times as many rows as stand for them.
ROWS_TO_ONE = 4
# Where X explains the targets but for such a share of their variance, errors of the
# run would be differences of moments with few digits left.
UNEXPLAINED = 1e-5


@dataclass(frozen=True)
class PseudoProblem(Problem):
    """A problem whose rows stand for those of another.

    Attributes
    ----------
    largest_weight : float
        The largest weight of a sampled row, which may be left out.
    n_samples : int
        How many rows that one has.
    n_single : int
        How many of the first rows are rows of it; the others stand for many.
    """

    largest_weight: float = 0.0
    n_samples: int = 0
    n_single: int = 0

    @classmethod
    def of(cls, rows, weights, n_targets, loss, **stands_for):
        """The problem of rows of [X y], whose weights have a sum of one."""
        X, target = np.split(rows, [-n_targets], axis=1)
        return cls(
            design_of(np.ascontiguousarray(X)),
            np.ascontiguousarray(target),
            weights[:, None],
            loss,
            **stands_for,
        )


@dataclass(frozen=True)
class PseudoRowData(ColumnData):
    """Data whose run is on rows that have their moments.

    Attributes
    ----------
    plain : ColumnData
        The data themselves.
    plain_folds : list of (ndarray of int, ndarray of int)
        Their folds.
    """

    plain: ColumnData
    plain_folds: list

    @property
    def observed(self):
        return self.plain.problem

    def held_out_paths(self, record, folds):
        """Linear predictors of every fold for its held-out samples."""
        return self.plain.held_out_paths(record, self.plain_folds)

    # There are many of them, and a run may be read again and again.
    @cached_property
    def _held_out(self):
        samples = self.plain.held_out_samples(self.plain_folds)
        return samples, self.plain.held_out_targets(self.plain_folds)

    def held_out_samples(self, folds):
        """The samples that every fold holds out."""
        return self._held_out[0]

    def held_out_targets(self, folds):
        """The targets of these samples, fold after fold."""
        return self._held_out[1]


def on_pseudo_rows(data, folds):
    """Data and folds on few rows of the same moments.

    Parameters
    ----------
    data : ColumnData
        With the squared error.
    folds : list of (ndarray of int, ndarray of int)

    Returns
    -------
    (PseudoRowData, list of (ndarray of int, ndarray of int)) or None
        The folds as the rows that stand for them. None where these would not be few,
        or moments have too few digits.
    """
    problem = data.problem
    n_rows, n_outputs = problem.target.shape
    n_each = 1 + len(data.center) + n_outputs
    if any(have_repeats(rows) for fold in folds for rows in fold):
        return None
    parts_by_fold = (part_of_rows(fold, n_rows) for fold in folds)
    groups = group_rows(parts_by_fold, n_rows, n_rows // (ROWS_TO_ONE * n_each))
    if groups is None:
        return None
    group, kinds = groups
    moments = moments_of(problem, group, len(kinds))
    if unexplained_share(moments, n_outputs) <= UNEXPLAINED:
        return None
    rows, weights = pseudo_rows(moments)
    center = np.append(data.center, data.offset)
    rows *= varying(merged(moments), center)
    made = PseudoProblem.of(
        rows,
        weights,
        n_outputs,
        problem.loss,
        largest_weight=problem.largest_weight,
        n_samples=n_rows,
    )
    found = PseudoRowData(
        **{**vars(data), "problem": made}, plain=data, plain_folds=folds
    )
    # (n_groups, n_folds) -> rows of the groups that a fold has.
    belongs = np.repeat(kinds, n_each, axis=0)
    parts = [
        tuple(np.flatnonzero(belongs[:, number] & part) for part in (1, 2))
        for number in range(len(folds))
    ]
    return found, parts


def part_of_rows(fold, n_rows):
    """The parts of a fold that rows are in: 1 if trained on, 2 if held out, or 0."""
    code = np.zeros(n_rows, np.int8)
    for number, rows in enumerate(fold, start=1):
        code[rows] += number
    return code


def unexplained_share(moments, n_outputs):
    """The share of a target's variance that X leaves, the least over targets.

    Second moments about zero: of centred data, what an intercept leaves to X.

    Parameters
    ----------
    moments : list of Moments
        Moments of the columns and the targets.
    """
    total = sum(m.scatter + m.weight * np.outer(m.mean, m.mean) for m in moments)
    sizes = np.sqrt(np.diagonal(total))
    sizes = np.where(sizes > 0, sizes, 1)
    scaled = total / sizes / sizes[:, None]
    columns, targets = np.split(scaled, [-n_outputs])
    own, shared = np.split(columns, [-n_outputs], axis=1)
    explained = shared.T @ np.linalg.lstsq(own, shared, rcond=None)[0]
    left = np.diagonal(targets[:, -n_outputs:] - explained)
    variance = np.diagonal(targets[:, -n_outputs:])
    return float((left / np.where(variance > 0, variance, 1)).min())
