"""KernelDesign: rows are functions k(x_i, .), and coefficients are dual.

A function f = sum_j a_j k(x_j, .) has one coefficient for each training row, and its
linear predictors are K a. The gradient of a sum of losses is the function whose
coefficients are the slopes of the rows, so ``t_dot`` needs no product. The inner
product of two functions is a'K b: in it a ridge penalty is a norm, directions are
orthonormal, and ``t_dot`` is the adjoint of ``dot``.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from .design import ROUNDINGS, Design, scaled_gram
from .kernel_matrix import EVERY, as_slice, is_every


@dataclass(frozen=True, eq=False)
class Center:
    """The weighted mean of the training rows, which is a function; its squared norm.

    Shapes: weights (n_training, 1); values at the training rows (n_training, 1)."""

    weights: np.ndarray
    values: np.ndarray
    square: float


@dataclass(frozen=True, eq=False)
class Rows:
    """Some training rows, minus a centre, times ``scale`` (n_rows, 1)."""

    n_training: int
    index: slice | np.ndarray
    center: Center | None = None
    scale: np.ndarray | None = None
    has_constant: bool = False

    def __len__(self):
        if isinstance(self.index, slice):
            return len(range(self.n_training)[self.index])
        return len(self.index)

    def part(self, index):
        """Some of these rows."""
        all_rows = np.arange(self.n_training)
        numbers = all_rows[self.index][index]
        is_all = np.array_equal(numbers, all_rows)
        scale = None if self.scale is None else self.scale[index]
        return replace(self, index=EVERY if is_all else as_slice(numbers), scale=scale)

    def scaled(self, slopes):
        return slopes if self.scale is None else slopes * self.scale

    def scatter(self, slopes):
        """Dual coefficients (n_columns, k) of slopes of the rows (n_rows, k)."""
        slopes = self.scaled(slopes)
        n_columns = self.n_training + self.has_constant
        coef = np.zeros((n_columns, slopes.shape[1]), slopes.dtype)
        dual, total = coef[: self.n_training], slopes.sum(axis=0)
        if isinstance(self.index, slice):
            dual[self.index] = slopes
        else:  # a row may occur more than once
            ones, all_rows = np.ones(len(self), slopes.dtype), np.arange(len(self))
            shape = self.n_training, len(self)
            scatter_matrix = sparse.csr_matrix((ones, (self.index, all_rows)), shape)
            dual[:] = scatter_matrix @ slopes
        if self.center is not None:
            dual -= self.center.weights * total
        if self.has_constant:
            coef[-1] = total
        return coef

    def predictor(self, values, mean, coef):
        """Linear predictors from the values and the mean of uncentred functions.

        Shapes: values (n_rows, k); mean (1, k); coef (n_columns, k)."""
        if self.center is not None:
            values = values - mean
        if self.has_constant:
            values = values + coef[-1]
        return self.scaled(values)


@dataclass(frozen=True, eq=False)
class ScatteredVectors:
    """Dual coefficients (n_columns, q), stored as slopes (n_rows, q) of few rows."""

    rows: Rows
    slopes: np.ndarray

    def astype(self, dtype, copy=True):
        return replace(self, slopes=self.slopes.astype(dtype, copy=copy))

    def __matmul__(self, parts):
        return self.rows.scatter(self.slopes @ parts)


class KernelDesign(Design):
    """Dual coefficients, one for each training row, and the kernel between the rows.

    If a centre has weights w, predictors are (I - 1 w') K a, the coefficients of slopes
    g are g - w sum(g), and inner products of rows are (I - 1 w') K (I - w 1').
    """

    side = "rows"
    is_dual = True

    def __init__(self, matrix, has_constant=False):
        self.matrix, self.dtype = matrix, matrix.dtype
        self._set_rows(Rows(len(matrix), EVERY, has_constant=has_constant))

    def _set_rows(self, row_map):
        self.row_map, self.center = row_map, row_map.center
        self.shape = len(row_map), len(self.matrix) + row_map.has_constant

    def _with(self, row_map):
        design = KernelDesign(self.matrix)
        design._set_rows(row_map)
        return design

    def rows(self, index):
        return self._with(self.row_map.part(index))

    def scaled_rows(self, row_scale):
        scale = self.row_map.scaled(row_scale).astype(self.dtype, copy=False)
        return self._with(replace(self.row_map, scale=scale))

    def centered(self, weights):
        weights = weights.astype(np.float64)
        uncentered = Rows(self.row_map.n_training, self.row_map.index)
        weights = uncentered.scatter(weights / weights.sum())
        values = self.matrix.dot(EVERY, weights).astype(np.float64)
        center = Center(weights, values, float(np.vdot(weights, values)))
        return self._with(replace(self.row_map, center=center))

    def dot(self, coef):
        dual = self._dual(coef)
        values = self.matrix.dot(EVERY, dual, self.row_map.index)
        mean = None if self.center is None else self.center.values.T @ dual
        dtype = np.result_type(coef.dtype, self.dtype)
        return self.row_map.predictor(values, mean, coef).astype(dtype, copy=False)

    def _dual(self, coef):
        return coef[: len(self.matrix)]

    def t_dot(self, slopes):
        return self.row_map.scatter(slopes).astype(slopes.dtype, copy=False)

    def squared_norm(self, coef, predictor):
        dual = self._dual(coef)
        if is_every(self.row_map.index) and self.row_map.scale is None:
            values = predictor - coef[-1] if self.row_map.has_constant else predictor
            if self.center is not None:
                values = values + self.center.values.T @ dual
        else:
            values = self.matrix.dot(EVERY, dual)
        return np.einsum("jk,jk->k", dual, values)

    def directions(self, vectors, norms):
        return ScatteredVectors(self.row_map, vectors / norms)

    def covectors(self, directions):
        row_map, slopes = directions.rows, directions.rows.scaled(directions.slopes)
        total = slopes.sum(axis=0, keepdims=True)
        values = self.matrix.dot(row_map.index, slopes).astype(np.float64, copy=False)
        if self.center is not None:
            values -= self.center.values * total
            values -= self.center.weights.T @ values
        return np.concatenate([values, total]) if row_map.has_constant else values

    def evaluate(self, covectors):
        values = self._dual(covectors)[self.row_map.index]
        if self.row_map.has_constant:
            values = values + covectors[-1]
        return self.row_map.scaled(values)

    def outer_gram(self):
        row_map = self.row_map
        gram = np.array(self.matrix.square(row_map.index), self.dtype)
        if self.center is not None:
            values = self.center.values[row_map.index]
            gram -= values
            gram -= values.T - self.center.square - row_map.has_constant
        elif row_map.has_constant:
            gram += 1
        return scaled_gram(gram, row_map.scale)

    def smaller_gram_dot(self):
        product, row_map = self.matrix.square_product(self.row_map.index), self.row_map

        def dot(slopes):
            slopes = row_map.scaled(slopes)
            values, mean = product(slopes), None
            total = slopes.sum(axis=0, keepdims=True)
            if self.center is not None:
                center_values = self.center.values[row_map.index]
                mean = center_values.T @ slopes - self.center.square * total
                values = values - center_values * total
            return row_map.predictor(values, mean, total)

        return dot

    def squared_row_norms(self):
        row_map, norms = self.row_map, self.matrix.diagonal[self.row_map.index]
        if self.center is not None:
            values = self.center.values[row_map.index, 0]
            norms = np.clip(norms - 2 * values + self.center.square, 0, None)
        norms = norms + row_map.has_constant
        return norms if row_map.scale is None else norms * row_map.scale[:, 0] ** 2

    def is_zero(self):
        largest = self.squared_row_norms().max()
        if self.center is None:
            return largest == 0
        size = self.matrix.diagonal.max() * ROUNDINGS * np.sqrt(len(self.matrix))
        return largest <= size * np.finfo(self.dtype).eps


class PassPredictors:
    """Predictors (n_rows, k) of all rows, updated along a pass through batches.

    The slopes of a batch change the predictors through the batch's columns of the
    kernel, so that a pass uses each column once. The centre and the constant add the
    same number to all rows, up to known factors: these numbers are summed, and added
    when :meth:`predictor` is called.
    """

    def __init__(self, design, predictor):
        self._design, self._uncentred = design, predictor.copy()
        self._total = self._mean = np.zeros(predictor.shape[1])

    def add(self, rows, slopes):
        """Add the gradient of some rows, with slopes (n, k)."""
        design, part = self._design, self._design.row_map.part(rows)
        slopes = part.scaled(slopes)
        values = design.matrix.dot(part.index, slopes, design.row_map.index)
        self._uncentred += design.row_map.scaled(values)
        total = slopes.sum(axis=0)
        self._total = self._total + total
        if design.center is not None:
            mean = design.center.values[part.index, 0] @ slopes
            self._mean = self._mean + (mean - design.center.square * total)

    def predictor(self, rows=EVERY):
        """Linear predictors of some rows, (n, k)."""
        part, center = self._design.row_map.part(rows), self._design.center
        predictor = part.has_constant * self._total - self._mean
        if center is not None:
            predictor = predictor - center.values[part.index] * self._total
        predictor = part.scaled(predictor) + self._uncentred[rows]
        return predictor.astype(self._uncentred.dtype, copy=False)
