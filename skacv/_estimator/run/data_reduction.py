"""Representation of the data in a run: by columns, by rows, or by moments.

The time of a run and of its estimates depends on the size of its data. If fewer numbers
give exactly the same run, it uses these: a :class:`Reduction` is one way to do so.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...risk.left_out.methods import method_for
from ..data.pseudo_rows import on_pseudo_rows
from ..data.row_space import RowSpaceData
from ..parameters import keeps_data
from .plan import sees_moments_alone


@dataclass(frozen=True)
class Reduction:
    """A way to run an estimator on fewer numbers than ``data``.

    A subclass has ``applies()``, whether they give the same run; ``pays()``, whether
    that saves time; ``reduced()``, data and folds, or None where rounding forbids it.
    """

    estimator: Any
    spec: Any
    estimates: list  # those that are on
    data: Any
    folds: list
    n_rows: int
    n_features: int
    updates: list  # one of the run, and the first of every recorded phase
    recorded: Any  # the estimator, if the run continues its record


class InRowSpace(Reduction):
    """Fewer rows than features: a run in any basis stays in the span of the rows."""

    def applies(self):
        if self.n_rows >= self.n_features:
            return False
        # Folds that scale columns for themselves each have a row space of their own.
        if self.folds and self.estimator.standardize:
            return False
        if not all(estimate.is_rotation_invariant for estimate in self.estimates):
            return False
        penalty = self.spec.penalty(1.0, self.n_features)
        features = np.arange(self.n_features)
        if not penalty.is_rotation_invariant:
            return False
        # It has to be one of as many coefficients as there are rows, too.
        if penalty.on(features[: self.n_rows]) != self.spec.penalty(1.0, self.n_rows):
            return False
        phases = self.recorded._phases if self.recorded is not None else ()
        return all(update.is_rotation_invariant for update in self.updates) and all(
            phase.penalty.on(features).is_rotation_invariant for phase in phases
        )

    def pays(self):
        """Whether the run saves more multiplications than the rotation costs."""
        # A product with X or X' costs the entries of X, one with the coordinates of the
        # rows the square of their number.
        n_rows, n_features = self.n_rows, self.n_features
        run = self.spec.cost((n_rows, n_features), self.data.y)
        n_fits = 1 + len(self.folds)
        leaves_rows_out = any(estimate.name == "loo" for estimate in self.estimates)
        if leaves_rows_out and method_for(run) == "replicas":
            n_fits += n_rows
        n_iterates = (run.n_updates + 1) * run.n_outputs
        saved = self.data.problem.design.n_stored - n_rows**2
        # A QR decomposition, and the coefficients of the features.
        cost = 2 * n_features * n_rows**2 + n_iterates * n_features * n_rows
        return 2 * n_iterates * n_fits * saved > cost

    def reduced(self):
        rotated = RowSpaceData.of(self.data)
        if self.recorded is not None and not rotated.holds_record(self.recorded):
            return None
        return rotated, self.folds


class OnPseudoRows(Reduction):
    """Many more rows than columns: few rows with the same moments."""

    def applies(self):
        # A single fold has its standard error over its rows.
        if not self.spec.is_quadratic or len(self.folds) == 1:
            return False
        for estimate in self.estimates:
            if estimate.needs != "moments":
                return False
        needs_rows = keeps_data(self.estimator)
        return not needs_rows and all(map(sees_moments_alone, self.updates))

    def pays(self):
        """Whether products with X of a run and its folds cost more than its moments."""
        n_outputs = self.data.problem.target.shape[1]
        n_updates = len(self.spec.strengths) * self.spec.max_iter
        n_products = 2 * n_updates * (1 + len(self.folds)) * n_outputs
        cost = self.n_rows * (self.n_features + n_outputs) ** 2
        return n_products * self.data.problem.design.n_stored > cost

    def reduced(self):
        return on_pseudo_rows(self.data, self.folds)


REDUCTIONS = InRowSpace, OnPseudoRows


def reduce_data(estimator, run, data, folds, recorded):
    """The data of a run, and the folds as their rows: fewer, where that saves time."""
    if data.problem.design.is_on_device:
        # Products cost little there, and a basis of the rows would be as large as X.
        return data, folds
    if recorded is not None and recorded.coef_path_.shape[-1] != len(data.center):
        return data, folds  # no run can continue that record
    n_rows, n_features = len(data.rows), len(data.center)
    updates = [run.spec.solver.update(n_rows)]
    for phase in recorded._phases if recorded is not None else ():
        updates.append(phase.first_update)
    for kind in REDUCTIONS:
        reduction = kind(
            estimator,
            run.spec,
            run.estimates,
            data,
            folds,
            n_rows,
            n_features,
            updates,
            recorded,
        )
        if reduction.applies() and reduction.pays():
            reduced = reduction.reduced()
            if reduced is not None:
                return reduced
    return data, folds
