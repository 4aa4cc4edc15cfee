"""Held-out rows: the rule of fits without them, their losses and their residuals.

All estimates share the definition of a fit without some of the rows.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from scipy import sparse

from ..optim.blocks import blocks
from ..optim.column_maps import ColumnMaps
from ..optim.design import Design
from ..optim.fits import Weights
from .reader import Unreadable


class ScaledColumns(Protocol):
    """Columns that every fit scales by its own rows."""

    def of_fits(self, design: Design, weights: np.ndarray) -> ColumnMaps:
        """The maps to them for fits with weights (n_rows, n_fits)."""


@dataclass(frozen=True)
class LeaveOutRule:
    """How the objective of a fit changes when rows are left out of it."""

    # A refit takes the updates of the run. As a rule its weights are brought back to a
    # sum of one. With a preconditioner, which belongs to the rows of the run, the other
    # rows keep their weights: a gradient is then a sum over rows with a fixed step, as
    # in EigenPro, and a refit is stable wherever the run is. In batches, too, the other
    # rows of a batch keep their weights, and X and the target their centre.

    # Whether a refit centres X and the target by the means of its own rows.
    refits_intercept: bool = False
    # A sum over rows, not a mean: the penalty weighs more where rows are left out.
    is_sum: bool = False
    # Whether the weights of the rows that stay are brought back to a sum of one.
    renormalises: bool = True
    # None: every fit has those of the run.
    columns: ScaledColumns | None = None

    def of_run(self, trajectory, rows=()):
        """The rule of refits of a run, planned or recorded, without these rows."""
        seen = trajectory.rows_seen()
        if np.isin(rows, seen).any():
            raise Unreadable(
                "Rows that a preconditioner was made from cannot be left out: the run "
                "has seen them even where their gradient is not taken."
            )
        for update, _ in trajectory.first_updates():
            if update.n_batches:
                return replace(self, refits_intercept=False, renormalises=False)
        return replace(self, renormalises=False) if len(seen) else self

    def scales(self, share):
        """Factors of the weights and of the penalty where a share of weights stays."""
        ones = np.ones_like(share)
        loss_scale = 1 / share if self.renormalises else ones
        return loss_scale, loss_scale if self.is_sum else ones

    def without(self, problem, counts):
        """Weights of refits that have every row ``counts`` times, (n_rows, n_fits)."""
        # Fit after fit in memory, as Fits has them: there may be many rows.
        weights = np.multiply(counts, problem.row_weights, dtype=np.float64, order="F")
        share = weights.sum(axis=0)
        columns = None
        if self.columns is not None:
            columns = self.columns.of_fits(problem.design, weights)
        loss_scale, penalty_scale = self.scales(share)
        weights *= loss_scale
        return Weights(weights, penalty_scale, self.refits_intercept, columns)


def counts_in(folds, n_rows):
    """How often every fold is fitted on a row, int of shape (n_rows, n_folds)."""
    counts = np.zeros((n_rows, len(folds)), dtype=np.int32, order="F")
    for number, (fitted, _) in enumerate(folds):
        counts[:, number] = np.bincount(fitted, minlength=n_rows)
    return counts


@dataclass(frozen=True)
class LeftOutRows:
    """Rows left out one at a time; arrays have one entry per row."""

    n_rows: int
    rows: np.ndarray
    # Factors of the weights of the other rows.
    loss_scale: np.ndarray
    # Residual of the replica, intercept included, over that on the centred data.
    residual_scale: np.ndarray
    penalty_scale: np.ndarray
    # sqrt(n w), as in Problem.sqrt_weighted.
    sqrt_weight: np.ndarray

    @classmethod
    def of(cls, problem, rows, refit):
        """Describe the rows left out of a problem with shared weights."""
        weights = problem.row_weights[rows, 0].astype(np.float64)
        share = 1 - weights
        loss_scale, penalty_scale = refit.scales(share)
        return cls(
            n_rows=len(problem.target),
            rows=rows,
            loss_scale=loss_scale,
            residual_scale=1 / share if refit.refits_intercept else np.ones(len(rows)),
            penalty_scale=penalty_scale,
            sqrt_weight=np.sqrt(len(problem.target) * weights),
        )

    def blocks(self, size, order=None):
        """The rows in blocks of equal length, at most ``size``, in an order."""
        order = np.arange(len(self.rows)) if order is None else order
        for index in np.array_split(order, -(-len(order) // size)):
            yield replace(
                self,
                rows=self.rows[index],
                loss_scale=self.loss_scale[index],
                residual_scale=self.residual_scale[index],
                penalty_scale=self.penalty_scale[index],
                sqrt_weight=self.sqrt_weight[index],
            )

    def intercept_shifts(self, residuals):
        """The intercepts of replicas on the centred data, from held-out residuals."""
        return (1 - 1 / self.residual_scale) * residuals


# A mean over the rows, whose intercept is not fitted by centring.
UNCENTRED = LeaveOutRule()


# ---------------------------------------------------------------- their losses


def units_of(rows, groups=None):
    """Units of held-out rows, (n_held_out,): groups, (n_samples,), or the rows."""
    labels = rows if groups is None else groups[rows]
    _, first, unit = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[unit]


def have_repeats(rows):
    """Whether a row number comes several times in rows, (n_held_out,)."""
    return np.bincount(rows).max(initial=0) > 1


def error_of_repeats(rows, weights):
    """Factor of a standard error over folds that accounts for rows in several folds."""
    # Folds that share rows are not independent: r repetitions of k folds say as much of
    # the loss as the rows do, not r times as much. For a mean of losses in which row i
    # counts c_i times, of which the folds have one each, the variance over independent
    # rows is sum c_i^2 / sum c_i times that over independent folds.
    if not have_repeats(rows):
        return 1.0
    together = np.bincount(rows, weights)
    return float(np.sqrt(np.sum(together**2) / np.sum(weights**2)))


def mean_with_error(losses, weights, units=None):
    """Weighted means of losses (n_iterates, n_losses), and their errors over units."""
    if units is not None and units.max(initial=-1) + 1 < len(units):
        n_losses, together = len(units), np.bincount(units, weights)
        entries = weights / together[units], units, np.arange(n_losses + 1)
        averaging = sparse.csc_array(entries, shape=(len(together), n_losses))
        losses, weights = (averaging @ losses.T).T, together
    weights = weights / weights.sum()
    # The rounding errors of BLAS would depend on the number of iterates.
    mean = np.einsum("ti,i->t", losses, weights)
    n_weighted = np.count_nonzero(weights)
    variance = np.empty_like(mean)
    # From the deviations: a difference of squares loses digits if losses are nearly
    # equal.
    for block in blocks(len(losses), 2 * 8 * len(weights)):
        deviation = np.subtract(losses[block], mean[block, None], order="C")
        variance[block] = np.einsum("ti,ti,i->t", deviation, deviation, weights**2)
    correction = n_weighted / (n_weighted - 1) if n_weighted > 1 else np.nan
    return mean, np.sqrt(variance * correction)


def losses_of(loss, target, predictors, weights):
    """Losses of linear predictors for some rows, averaged over outputs.

    Shapes: target (n_rows, n_outputs), predictors (n_iterates, n_rows, n_outputs),
    weights (n_rows,), returned (n_iterates, n_rows).
    """
    predictors = np.moveaxis(predictors, 0, 2).astype(np.float64, copy=False)
    if loss.couples_rows:  # compared with each other, all that are held out
        weights = weights[:, None, None]
        losses = loss.weighted_values(target[:, :, None], predictors, weights) / weights
        return losses[:, 0].T
    losses = loss.reported(target[:, :, None], predictors)
    # A mean over a single output would take as long as the losses themselves.
    return (losses[:, 0] if losses.shape[1] == 1 else losses.mean(axis=1)).T


class HeldOutResiduals(NamedTuple):
    """Held-out residuals and predictions of rows, for prediction intervals."""

    # In units of the spread of targets under the loss, (n_held_out[, n_targets]).
    residuals: np.ndarray
    # None where only the residuals are known.
    predictions: np.ndarray | None
    # The unit of every row, numbered from 0, (n_held_out,); None: each row is a unit.
    units: np.ndarray | None

    @property
    def n_units(self):
        """Number of units of rows: as many residuals count."""
        return len(self.residuals) if self.units is None else int(self.units.max()) + 1

    def at_most(self, n_rows):
        """At most ``n_rows`` of the rows, in whole units that are drawn at random."""
        indices, units = drawn_units(len(self.residuals), self.units, n_rows)
        predictions = self.predictions
        if predictions is not None:
            predictions = predictions[indices]
        return HeldOutResiduals(self.residuals[indices], predictions, units)


def drawn_units(n_rows, units, most):
    """Indices of at most ``most`` rows, of units drawn at random, and their units."""
    if n_rows <= most:
        return slice(None), units
    unit_of_row = np.arange(n_rows) if units is None else units
    n_rows_of = np.bincount(unit_of_row)
    order = np.random.default_rng(0).permutation(len(n_rows_of))
    n_drawn = max(1, np.searchsorted(np.cumsum(n_rows_of[order]), most, "right"))
    indices = np.flatnonzero(np.isin(unit_of_row, order[:n_drawn]))
    if units is not None:
        _, units = np.unique(units[indices], return_inverse=True)
    return indices, units
