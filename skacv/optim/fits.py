"""Fits of one problem, side by side: what a run and its refits share.

The recorded run is one fit; refits without some rows are the same problem with other
row weights. All of them share every pass over X.
"""

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, lstsq

from .blocks import slices
from .column_maps import ColumnMaps
from .problem import SINGULAR, hessian
from .quadratic import pays, quadratic_gradient
from .threads import LARGE, in_threads

# Larger arrays are gone through in blocks: what derivatives need on their way then is
# neither fetched from memory nor asked of the system anew.
MOST_AT_ONCE = 1 << 21
ENTRIES_PER_BLOCK = 1 << 18
# Numbers that eigenvectors of all fits take together, while they are kept.
MOST_KEPT = 1 << 25
# Updates that are taken at once where X is small.
AT_ONCE = 32


class Iterate(NamedTuple):
    """Coefficients of all fits that run side by side, or a point between two.

    Attributes
    ----------
    coef : ndarray of shape (n_columns, n_outputs, n_fits)
    predictor : ndarray of shape (n_rows, n_outputs, n_fits) or None
        Linear predictors, where a run carries them along, see
        :func:`~skacv.optim.run.keeps_predictors`.
    """

    coef: np.ndarray
    predictor: np.ndarray | None = None


@dataclass(frozen=True)
class Weights:
    """How much every row counts in every fit.

    Attributes
    ----------
    rows : ndarray of shape (n_rows, n_fits)
        Zero where a fit leaves a row out.
    penalty_scale : float or ndarray of shape (n_fits,)
        What multiplies the penalty of every fit.
    recentres : bool
        Whether every fit centres X and the target by the means of its own rows. The
        problem is centred by those of all rows then.
    columns : ColumnMaps or None
        The columns of every fit, where it standardises them by its own rows.
    """

    rows: np.ndarray
    penalty_scale: float | np.ndarray = 1.0
    refits_intercept: bool = False
    columns: ColumnMaps | None = None


class WeightedFits:
    """One problem with several weights of its rows.

    Parameters
    ----------
    weights : Weights or None
        None is the one fit on all rows, with the problem's own weights.
    target : ndarray of shape (n_rows, n_outputs, n_fits) or None
        Targets of every fit; None are those of the problem, for all.
    """

    def __init__(self, problem, weights=None, target=None):
        weights = Weights(problem.row_weights) if weights is None else weights
        dtype = problem.design.dtype
        self.problem = problem
        self.refits_intercept = weights.refits_intercept
        # In memory fit after fit, as products with an array are.
        self.row_weights = np.asfortranarray(weights.rows, dtype)[:, None, :]
        self.penalty_scale = _one_number(weights.penalty_scale, dtype)
        self.columns = weights.columns and weights.columns.as_dtype(dtype)
        # Eigenvectors of the Hessians of fits, where these do not change.
        self._bases = {}
        self._has_rows = problem.design.is_matrix and not problem.design.is_on_device
        # Second moments take the place of rows once gradients have taken as much.
        is_quadratic = target is None and problem.loss.is_quadratic
        self._may_be_summed = is_quadratic and self._has_rows
        self._n_gradients, self._by_moments = 0, None
        if target is None:  # output after output, as products of arrays are
            target = np.asfortranarray(problem.target)[:, :, None]
        self.target = target
        # Whether iterates have their linear predictors; a run may let them.
        self.keeps_predictors = problem.design.is_dual

    @property
    def n_fits(self):
        return self.row_weights.shape[2]

    @property
    def n_at_once(self):
        """Updates after which it is seen whether they have moved anything."""
        return AT_ONCE if np.prod(self.problem.design.shape) < LARGE else 1

    def start(self, coef):
        """Coefficients (n_columns, n_outputs), the same for every fit.

        Fit after fit in memory, as products of matrices take them.
        """
        return np.moveaxis(np.repeat(coef[None], self.n_fits, axis=0), 0, 2)

    def iterate(self, coef):
        """An iterate, with its linear predictors where they are carried along."""
        return Iterate(coef, self.predictor(coef) if self.keeps_predictors else None)

    def evaluated(self, coef):
        """An iterate with its predictors, for its objective and the next gradient.

        Where there are many, they are computed again, a block of rows at a time.
        """
        if self._goes_by_blocks:
            return self.iterate(coef)
        return Iterate(coef, self.predictor(coef))

    def predictor_at(self, point):
        """Linear predictors of an iterate, or of a point between two."""
        known = point.predictor
        return self.predictor(point.coef) if known is None else known

    def gradient_at(self, point):
        """Gradient of every fit's loss there, (n_columns, n_outputs, n_fits)."""
        if self._may_be_summed:
            self._n_gradients += 1
            if pays(self, self._n_gradients):
                self._may_be_summed = False
                self._by_moments = quadratic_gradient(self)
        if self._by_moments is not None:
            return self._by_moments(point.coef)
        if point.predictor is None and self._goes_by_blocks:
            return self._gradient_by_blocks(point.coef)
        return self.gradient(self.predictor_at(point))

    def objective_gradient(self, penalty, point):
        """The same with the gradient of the penalty's smooth part, a new array."""
        found = self.gradient_at(point)
        if penalty.curvature:
            found += self.penalty_scale * penalty.smooth_gradient(point.coef)
        return found

    @property
    def _goes_by_blocks(self):
        """Whether slopes of all rows would take more than a cache, in one array."""
        is_large = self.row_weights.size * self.target.shape[1] > MOST_AT_ONCE
        return is_large and self._has_rows and not self.refits_intercept

    def _gradient_by_blocks(self, coef):
        """The gradient from blocks of rows, whose slopes stay in cache: one pass."""

        def sums(rows, design, predictor):
            slopes = self.problem.loss.derivative(self.target[rows], predictor)
            slopes *= self.row_weights[rows]
            return _side_by_side(design.t_dot, slopes), slopes.sum(axis=0)

        found, total = self._summed(sums, coef)
        return found if self.columns is None else self.columns.gradient(found, total)

    def _summed(self, function, coef):
        """Sums over blocks of rows that stay in cache, of several arrays.

        Parameters
        ----------
        function : callable
            ``function(rows, design, predictor)``, the arrays from a block.
        """
        own = self.of_design(coef)
        added, n_each = self.intercepts(own), coef[0].size + len(coef)

        def of_block(rows):
            design = self.problem.design.rows(rows)
            predictor = _side_by_side(design.dot, own)
            predictor += added
            return function(rows, design, predictor)

        blocks = slices(len(self.target), ENTRIES_PER_BLOCK // n_each)
        found = in_threads(of_block, blocks)
        total = next(found)
        for arrays in found:
            for array, more in zip(total, arrays):
                array += more
        return total

    def linear_predictor(self, coef):
        """x_i'b of every row, (n_rows, n_outputs, n_fits)."""
        if not coef.any():  # as most runs start: no product is needed
            return np.zeros((len(self.target), *coef.shape[1:]), coef.dtype)
        own = self.of_design(coef)
        product = _side_by_side(self.problem.design.dot, own)
        if self.columns is not None:
            product += self.columns.intercepts(own)
        return product

    def of_design(self, coef):
        """Coefficients of every fit, as those of the design's own columns."""
        return coef if self.columns is None else self.columns.coefficients(coef)

    def predictor(self, coef):
        """Linear predictors, with the intercepts of fits that centre for themselves."""
        product = self.linear_predictor(coef)
        if self.refits_intercept:
            residual = product - self.target
            product -= np.einsum("rof,rkf->kf", self._shares, residual)
        return product

    def intercepts(self, own):
        """Intercepts that :meth:`predictor` adds to products of a design with columns.

        Shapes: returned (..., n_outputs, n_fits).

        Parameters
        ----------
        own : ndarray of shape (..., n_columns, n_outputs, n_fits)
            As :meth:`of_design` gives them.
        """
        if self.refits_intercept:
            columns, target = self._means
            return target - np.einsum("jf,...jkf->...kf", columns, own)
        if self.columns is not None:
            return self.columns.intercepts(own)
        return np.zeros((*own.shape[:-3], *own.shape[-2:]), own.dtype)

    @cached_property
    def _means(self):
        """Means of every fit's columns, (n_columns, n_fits), and of its targets."""
        columns = _side_by_side(self.problem.design.t_dot, self._shares)[:, 0]
        return columns, np.einsum("rof,rkf->kf", self._shares, self.target)

    @cached_property
    def _shares(self):
        """Weights of the rows of every fit, of sum one."""
        return self.row_weights / self.row_weights.sum(axis=0)

    def gradient(self, predictor):
        """Gradient of every fit's loss, (n_columns, n_outputs, n_fits)."""
        return self.gradient_of(self.slopes(predictor))

    def gradient_of(self, slopes):
        """The gradient where these are the :meth:`slopes`."""
        found = _side_by_side(self.problem.design.t_dot, slopes)
        if self.columns is None:
            return found
        return self.columns.gradient(found, slopes.sum(axis=0))

    def column_norms(self):
        """Norms of the columns, or bounds of them: (1, n), or those of every fit."""
        norms = self.problem.column_norms
        if self.columns is None:
            return norms[None]
        return self.columns.norms(norms, len(self.target))

    def newton_direction(self, penalty, iterate):
        """The gradient over the Hessian, fit by fit."""
        gradient = self.objective_gradient(penalty, iterate)
        ridges = self.penalty_scale * penalty.smooth_gradient(np.ones_like(gradient))
        if self.problem.loss.is_quadratic and np.ptp(ridges[:, 0, 0]) == 0:
            return self._quadratic_direction(gradient, ridges[0, 0])
        predictor, size = self.predictor_at(iterate), gradient[:, :, 0].size
        for r in range(self.n_fits):
            own = gradient[:, :, r]
            curvature = self.problem.loss.curvature_matrix(
                self.target[:, :, 0], predictor[:, :, r]
            )
            matrix = self._hessian(r, curvature).reshape(size, size)
            matrix[np.diag_indices(size)] += ridges[:, :, r].ravel()
            # The shortest solution if the Hessian is singular.
            direction, *_ = lstsq(matrix, own.ravel(), cond=SINGULAR)
            gradient[:, :, r] = direction.reshape(own.shape)
        return gradient

    def _quadratic_direction(self, gradient, ridges):
        """The same where the Hessian never changes: it is decomposed once."""
        for r, ridge in enumerate(ridges):
            values, vectors = self._basis(r)
            along = vectors.T @ gradient[:, :, r]
            gradient[:, :, r] = vectors @ (_inverse(values + ridge)[:, None] * along)
        return gradient

    def _basis(self, r):
        """Eigenvalues and vectors of one fit's Hessian, kept while there is room.

        The Hessian of the squared error is the same for all coefficients and outputs.
        """
        if r in self._bases:
            return self._bases[r]
        matrix = self._hessian(r, np.ones((len(self.target), 1, 1)))
        values, vectors = eigh(matrix[:, 0, :, 0])
        values = np.clip(values, 0, None)
        if (len(self._bases) + 1) * vectors.size <= MOST_KEPT:
            self._bases[r] = values, vectors
        return values, vectors

    def _hessian(self, r, curvature):
        """The Hessian of one fit's loss, (n_columns, n_outputs, n_columns, n_outputs).

        Shapes: curvature (n_rows, n_outputs, n_outputs).
        """
        design, weights = self.problem.design, self.row_weights[:, :, r]
        if self.columns is not None:
            design = design.shifted(self.columns.center[:, r])
        if self.refits_intercept:
            design = design.centered(weights)
        found = hessian(design, curvature * weights[:, :, None])
        if self.columns is not None:
            # Not before: columns of X are never written anew.
            factor = self.columns.factor[:, r, None]
            found *= factor[:, :, None, None]
            found *= factor
        return found

    def inverse_hessians(self, penalty, iterate):
        """The inverse Hessian of every fit's objective, (n_fits, n, n).

        They are of coefficients (n_columns, n_outputs) laid out in one vector.
        Directions of next to no curvature are left out.
        """
        ridge = self.penalty_scale * penalty.smooth_gradient(np.ones_like(iterate.coef))
        ridges, found = ridge.reshape(-1, self.n_fits).T, []
        for matrix, own in zip(self._hessians(iterate.coef), ridges):
            values, vectors = eigh(matrix + np.diag(own))
            found.append((vectors * _inverse(values)) @ vectors.T)
        return np.stack(found).astype(iterate.coef.dtype)

    def _hessians(self, coef):
        """Hessians of the losses, (n_fits, n, n), from blocks of rows: one pass."""
        (n_columns, n_outputs, n_fits), size = coef.shape, coef[:, :, 0].size
        pairs = n_fits, n_outputs, n_outputs

        def sums(rows, design, predictor):
            loss, target = self.problem.loss, self.target[rows, :, 0]
            own = np.moveaxis(predictor, 2, 0)  # of every fit
            curvature = np.stack(
                [loss.curvature_matrix(target, z) for z in own], axis=1
            )
            curvature *= self.row_weights[rows, 0, :, None, None]
            flat = curvature.reshape(len(curvature), -1)
            found = [design.weighted_grams(flat)]
            if self.columns is not None:
                found += [design.t_dot(flat), curvature.sum(axis=0)]
            return [each.astype(np.float64, copy=False) for each in found]

        found, *more = self._summed(sums, coef)
        found = found.reshape(*pairs, n_columns, n_columns)
        if self.columns is not None:
            columns, totals = more
            columns = columns.reshape(n_columns, *pairs)
            found = self.columns.hessians(found, np.moveaxis(columns, 0, -1), totals)
        return found.transpose(0, 3, 1, 4, 2).reshape(n_fits, size, size)

    def alone(self, r):
        """The problem of one fit, centred by its own means where it does so."""
        weights, design = self.row_weights[:, :, r], self.problem.design
        if self.columns is not None:
            columns = self.columns
            design = design.mapped_columns(columns.factor[:, r], columns.center[:, r])
        if self.refits_intercept:
            design = design.centered(weights)
        return replace(self.problem, design=design, row_weights=weights)

    def on(self, design, index):
        """The same fits on another design of the same rows: of the columns in index."""
        fits = copy(self)
        fits.problem, fits._bases = replace(self.problem, design=design), {}
        fits._may_be_summed, fits._by_moments = False, None
        fits.columns = self.columns and self.columns.of_columns(index)
        if self.refits_intercept:
            columns, target = self._means
            fits._means = columns[index], target
        return fits

    def batch(self, rows):
        """The fits on some rows, with gradients that are unbiased for all rows."""
        share = len(self.target) / len(rows)
        weights = Weights(
            self.row_weights[rows, 0] * share, self.penalty_scale, columns=self.columns
        )
        return WeightedFits(self.problem.batch(rows), weights, self.target[rows])

    def slopes(self, predictor):
        """Derivatives of every fit's loss in the predictors, times the weights."""
        weights, target, loss = self.row_weights, self.target, self.problem.loss
        if predictor.size <= MOST_AT_ONCE:
            return weights * loss.derivative(target, predictor)
        found = np.empty_like(predictor, np.result_type(weights, predictor))
        for rows in slices(len(predictor), ENTRIES_PER_BLOCK // predictor[0].size):
            slope = loss.derivative(target[rows], predictor[rows])
            np.multiply(weights[rows], slope, out=found[rows])
        return found

    def objectives(self, penalty, iterate):
        """Loss and penalty of every fit, (n_fits,)."""
        if iterate.predictor is None and self._goes_by_blocks:
            (values,) = self._summed(self._values, iterate.coef)
        else:
            values = self.value(self.predictor_at(iterate))
        penalties = penalty.values(np.moveaxis(iterate.coef, 2, 0))
        return values + self.penalty_scale * penalties

    def _values(self, rows, design, predictor):
        """Losses summed over some rows, a list of one array."""
        loss = self.problem.loss.value(self.target[rows], predictor)
        return [(self.row_weights[rows] * loss).sum(axis=(0, 1), dtype=np.float64)]

    @cached_property
    def values_at_zero(self):
        """Loss of every fit where all coefficients are zero, (n_fits,)."""
        shape = len(self.target), self.problem.target.shape[1], self.n_fits
        return self.value(np.broadcast_to(0.0, shape))

    def value(self, predictor):
        """Loss of every fit on its own rows, summed over the outputs, (n_fits,)."""
        loss = self.problem.loss.value(self.target, predictor)
        return (self.row_weights * loss).sum(axis=(0, 1), dtype=np.float64)


def _one_number(scale, dtype):
    """Scales of all fits, one number where they are alike: updates are faster then."""
    scale = np.asarray(scale, dtype)
    return scale if scale.size > 1 and np.ptp(scale) else float(scale.flat[0])


def _inverse(curvature):
    """One over curvatures, in increasing order, and zero for next to no curvature."""
    is_seen = curvature > SINGULAR * curvature[-1]
    return np.divide(1, curvature, where=is_seen, out=np.zeros_like(curvature))


def _side_by_side(product, array):
    """A product with a matrix, of all columns of (n, n_outputs, n_fits)."""
    found = product(array.reshape(len(array), -1))
    return found.reshape(len(found), *array.shape[1:])
