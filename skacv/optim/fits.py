"""Fits of one problem with different weights of its rows: a run and its refits.

A refit without some rows gives them weight zero. All fits share every pass over X.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .blocks import LARGE_BYTES, MEMORY_BYTES, blocks, in_threads
from .column_maps import ColumnMaps
from .moments import GradientByMoments


class Iterate(NamedTuple):
    """Coefficients of all fits: an iterate, or a point where gradients are taken.

    Shapes: coef (n_columns, n_outputs, n_fits); predictor (n_rows, n_outputs, n_fits),
    None unless the fits keep predictors."""

    coef: np.ndarray
    predictor: np.ndarray | None = None


@dataclass(frozen=True)
class Weights:
    """Weights of the rows in every fit, zero for a row that a fit leaves out.

    With ``refits_intercept`` every fit centres X and the target by its own rows; with
    ``columns`` it standardises the columns by its own rows.

    Shapes: rows (n_rows, n_fits); penalty_scale (n_fits,), factors of the penalty."""

    rows: np.ndarray
    penalty_scale: float | np.ndarray = 1.0
    refits_intercept: bool = False
    columns: ColumnMaps | None = None


class WeightedFits:
    """Fits of one problem side by side, each with weights of the rows and a target.

    Without ``weights`` there is one fit, with the weights of the problem.

    Shapes: target (n_rows, n_outputs, n_fits); None: the problem's, for every fit."""

    def __init__(self, problem, weights=None, target=None, keeps_predictors=False):
        weights = Weights(problem.row_weights) if weights is None else weights
        design, dtype = problem.design, problem.design.dtype
        self.problem = problem
        # In Fortran order, like products with an array: a fit is contiguous.
        self.row_weights = np.asfortranarray(weights.rows, dtype)[:, None, :]
        self.n_fits = self.row_weights.shape[2]
        scale = np.asarray(weights.penalty_scale, dtype)
        # Updates are faster with one number than with an array of equal ones.
        is_common = scale.size == 1 or not np.ptp(scale)
        self.penalty_scale = float(scale.flat[0]) if is_common else scale
        self.refits_intercept = weights.refits_intercept
        self.columns = weights.columns and weights.columns.as_dtype(dtype)
        self.keeps_predictors = keeps_predictors or design.is_dual
        # Eigenpairs of the Hessians of the squared error (see hessians.py).
        self.hessian_bases = {}
        is_in_memory = design.is_matrix and not design.is_on_device
        n_bytes = self.row_weights.nbytes * problem.target.shape[1]
        is_large = n_bytes > LARGE_BYTES and not self.refits_intercept
        is_large &= not problem.loss.couples_rows
        self.uses_blocks = is_large and is_in_memory
        self._moment_gradient = None
        if target is None:
            target = np.asfortranarray(problem.target)[:, :, None]
            if problem.loss.is_quadratic and is_in_memory:
                n_gram_entries = design.shape[1] ** 2
                is_small = 8 * self.n_fits * n_gram_entries <= MEMORY_BYTES
                is_small = is_small and self.n_fits < np.iinfo(int).bits
                if is_small and 2 * n_gram_entries <= design.n_stored:
                    self._moment_gradient = GradientByMoments(self)
        self.target = target
        # With coupled rows the target is no predictor, and is not centred.
        self._centred = 0.0 if problem.loss.couples_rows else target

    def gradient_at(self, point):
        """Gradients of the losses at an Iterate, (n_columns, n_outputs, n_fits)."""
        if self._moment_gradient is not None:
            gradient = self._moment_gradient.gradient(self, point.coef)
            if gradient is not None:
                return gradient
        predictor = point.predictor
        if predictor is None:
            if self.uses_blocks:
                return gradient_by_blocks(self, point.coef)
            predictor = self.predictor(point.coef)
        return self.gradient_of(self.slopes(predictor))

    def objective_gradient(self, penalty, point):
        """Gradients of the losses plus the smooth part of the penalty, a new array."""
        gradient = self.gradient_at(point)
        if penalty.curvature:
            gradient += self.penalty_scale * penalty.smooth_gradient(point.coef)
        return gradient

    def start(self, coef):
        """Coefficients (n_columns, n_outputs, n_fits): ``coef`` in every fit."""
        # The coefficients of a fit are contiguous, the order that products with X need.
        return np.moveaxis(np.repeat(coef[None], self.n_fits, axis=0), 0, 2)

    def iterate(self, coef):
        """An Iterate, with its linear predictors if the fits keep these."""
        return Iterate(coef, self.predictor(coef) if self.keeps_predictors else None)

    def evaluate(self, coef):
        """An Iterate with its predictors, unless fits compute them block by block."""
        return Iterate(coef, None if self.uses_blocks else self.predictor(coef))

    def predictor_at(self, point):
        """Linear predictors at an Iterate, (n_rows, n_outputs, n_fits)."""
        return (
            self.predictor(point.coef) if point.predictor is None else point.predictor
        )

    def predictor(self, coef):
        """Linear predictors of coefficients, with the intercepts of the fits."""
        shape = len(self.target), *coef.shape[1:]
        if coef.any():
            columns = self.columns
            design_coef = coef if columns is None else columns.coefficients(coef)
            product = self.problem.design.dot(design_coef.reshape(len(coef), -1))
            product = product.reshape(shape)
            if columns is not None:
                product += columns.intercepts(design_coef)
        else:  # most runs start here: no product is needed
            product = np.zeros(shape, coef.dtype)
        if self.refits_intercept:
            residual = product - self._centred
            product -= np.einsum("rof,rkf->kf", self._normalized_weights, residual)
        return product

    def slopes(self, predictor):
        """Weights times derivatives of the losses in the predictors."""
        weights, target, loss = self.row_weights, self.target, self.problem.loss
        if loss.couples_rows or predictor.nbytes <= LARGE_BYTES:
            return loss.slopes(target, predictor, weights)
        slopes = np.empty_like(predictor, np.result_type(weights, predictor))
        for rows in blocks(len(predictor), predictor[0].nbytes):
            slope = loss.derivative(target[rows], predictor[rows])
            np.multiply(weights[rows], slope, out=slopes[rows])
        return slopes

    def gradient_of(self, slopes):
        """Gradients (n_columns, n_outputs, n_fits) from the :meth:`slopes`."""
        product = self.problem.design.t_dot(slopes.reshape(len(slopes), -1))
        product = product.reshape(-1, *slopes.shape[1:])
        if self.columns is None:
            return product
        return self.columns.gradient(product, slopes.sum(axis=0))

    def design_coefficients(self, coef):
        """Coefficients of the design's columns from those of a fit's scaled columns."""
        return coef if self.columns is None else self.columns.coefficients(coef)

    def intercepts(self, design_coef):
        """Intercepts (..., n_outputs, n_fits) that :meth:`predictor` adds.

        Shapes: design_coef (..., n_columns, n_outputs, n_fits), from
        :meth:`design_coefficients`."""
        if self.refits_intercept:
            mean, target = self._means
            return target - np.einsum("jf,...jkf->...kf", mean, design_coef)
        if self.columns is not None:
            return self.columns.intercepts(design_coef)
        shape = *design_coef.shape[:-3], *design_coef.shape[-2:]
        return np.zeros(shape, design_coef.dtype)

    @cached_property
    def _normalized_weights(self):
        """Weights of the rows in every fit, divided by their sum."""
        return self.row_weights / self.row_weights.sum(axis=0)

    @cached_property
    def _means(self):
        """Means of every fit's columns, (n_columns, n_fits), and of its targets."""
        columns = self.problem.design.t_dot(self._normalized_weights[:, 0])
        centred = np.broadcast_to(self._centred, self.target.shape)
        return columns, np.einsum("rof,rkf->kf", self._normalized_weights, centred)

    def column_norms(self):
        """Upper bounds of the norms of the columns, (1 or n_fits, n_columns)."""
        norms = self.problem.column_norms
        if self.columns is None:
            return norms[None]
        return self.columns.norm_bounds(norms, len(self.target))

    def value(self, predictor):
        """Losses of the fits, summed over the rows and the outputs, (n_fits,)."""
        losses = self.problem.loss.weighted_values(
            self.target, predictor, self.row_weights
        )
        return losses.sum(axis=(0, 1), dtype=np.float64)

    def objectives(self, penalty, iterate):
        """Losses and penalties of the fits, (n_fits,)."""

        def loss_of_block(rows, design, predictor):
            loss = self.problem.loss.value(self.target[rows], predictor)
            loss = self.row_weights[rows] * loss
            return [loss.sum(axis=(0, 1), dtype=np.float64)]

        if iterate.predictor is None and self.uses_blocks:
            (values,) = sum_over_blocks(self, loss_of_block, iterate.coef)
        else:
            values = self.value(self.predictor_at(iterate))
        penalties = penalty.values(np.moveaxis(iterate.coef, 2, 0))
        return values + self.penalty_scale * penalties

    @cached_property
    def values_at_zero(self):
        """Losses of the fits where all coefficients are zero, (n_fits,)."""
        shape = len(self.target), self.problem.target.shape[1], self.n_fits
        return self.value(np.broadcast_to(0.0, shape))

    def problem_of(self, r):
        """The problem of fit r alone, with its weights, its columns and its centre."""
        weights, design = self.row_weights[:, :, r], self.problem.design
        if self.columns is not None:
            columns = self.columns
            design = design.mapped_columns(columns.factor[:, r], columns.center[:, r])
        if self.refits_intercept:
            design = design.centered(weights)
        return replace(self.problem, design=design, row_weights=weights)

    def on_columns(self, design, index):
        """The fits on the columns in ``index``, whose design is ``design``."""
        columns = self.columns and self.columns.for_columns(index)
        rows = self.row_weights[:, 0]
        weights = Weights(rows, self.penalty_scale, self.refits_intercept, columns)
        problem = replace(self.problem, design=design)
        return WeightedFits(problem, weights, self.target)

    def batch(self, rows):
        """The fits on some rows; their gradients are unbiased for all rows."""
        factor = len(self.target) / len(rows)
        weights = Weights(
            self.row_weights[rows, 0] * factor, self.penalty_scale, columns=self.columns
        )
        return WeightedFits(self.problem.batch(rows), weights, self.target[rows])


def gradient_by_blocks(fits, coef):
    """Gradients of all fits in one pass over X, by blocks of rows that fit in cache."""

    def slopes_of_block(rows, design, predictor):
        slopes = fits.problem.loss.derivative(fits.target[rows], predictor)
        slopes *= fits.row_weights[rows]
        product = design.t_dot(slopes.reshape(len(slopes), -1))
        return product.reshape(-1, *slopes.shape[1:]), slopes.sum(axis=0)

    gradient, total = sum_over_blocks(fits, slopes_of_block, coef)
    return gradient if fits.columns is None else fits.columns.gradient(gradient, total)


def sum_over_blocks(fits, function, coef):
    """Sums over blocks of rows of the arrays ``function(rows, design, predictor)``."""
    design_coef = fits.design_coefficients(coef)
    flat, intercepts = design_coef.reshape(len(coef), -1), fits.intercepts(design_coef)

    def sums_of_block(rows):
        design = fits.problem.design.rows(rows)
        predictor = design.dot(flat).reshape(-1, *coef.shape[1:])
        predictor += intercepts
        return function(rows, design, predictor)

    # Memory of a row: its predictors, and its entries of X as if X were dense.
    bytes_per_row = coef.itemsize * (coef[0].size + len(coef))
    parts = in_threads(sums_of_block, blocks(len(fits.target), bytes_per_row))
    sums = next(parts)
    for arrays in parts:
        for total, array in zip(sums, arrays):
            total += array
    return sums
