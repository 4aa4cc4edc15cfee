"""KernelDesign: rows are functions k(x_i, .), coefficients are dual.

A function f = sum_j a_j k(x_j, .) has one coefficient for each training row, and its
linear predictors are K a. The gradient of a sum over rows of losses is the function
whose coefficients are the slopes at these rows, so ``t_dot`` multiplies with nothing.
Inner products of functions are a'K b: that is the inner product in which a ridge
penalty is taken, directions are orthonormal, and ``t_dot`` is the adjoint of ``dot``.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from .design import Design, scaled_gram
from .kernel_matrix import EVERY, as_slice, is_every

# A centred diagonal is zero up to so many roundings of the diagonal.
N_ROUNDINGS = 8


@dataclass(frozen=True, eq=False)
class Center:
    """The weighted mean of the training rows, a function.

    Attributes
    ----------
    weights : ndarray of shape (n_training, 1)
        Weights of the rows, of sum one.
    values : ndarray of shape (n_training, 1)
        That function at the training rows.
    square : float
        Its squared norm.
    """

    weights: np.ndarray
    values: np.ndarray
    square: float


@dataclass(frozen=True, eq=False)
class Rows:
    """Which of the training rows a design takes, and how.

    Attributes
    ----------
    index : slice or ndarray of int
        The rows that are taken; no copy of those in a slice is made.
    center : Center or None
        The mean that is taken off every row.
    scale : ndarray of shape (n_rows, 1) or None
        Multiplies the (centred) rows.
    has_constant : bool
        Whether a last coefficient is the same for all rows.
    """

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
        """Some of them."""
        every = np.arange(self.n_training)
        numbers = every[self.index][index]
        is_all = np.array_equal(numbers, every)
        scale = None if self.scale is None else self.scale[index]
        return replace(self, index=EVERY if is_all else as_slice(numbers), scale=scale)

    def scaled(self, slopes):
        """Slopes or predictors of the rows, times their scale."""
        return slopes if self.scale is None else slopes * self.scale

    def place(self, slopes):
        """Dual coefficients of slopes of the rows, (n_rows, k) -> (n_columns, k)."""
        slopes = self.scaled(slopes)
        n_columns = self.n_training + self.has_constant
        coef = np.zeros((n_columns, slopes.shape[1]), slopes.dtype)
        dual, total = coef[: self.n_training], slopes.sum(axis=0)
        if isinstance(self.index, slice):
            dual[self.index] = slopes
        else:  # a row may be there more than once
            ones, every = np.ones(len(self), slopes.dtype), np.arange(len(self))
            shape = self.n_training, len(self)
            placing = sparse.csr_matrix((ones, (self.index, every)), shape)
            dual[:] = placing @ slopes
        if self.center is not None:
            dual -= self.center.weights * total
        if self.has_constant:
            coef[-1] = total
        return coef

    def predictor(self, values, mean, coef):
        """Linear predictors of functions.

        Parameters
        ----------
        values : ndarray of shape (n_rows, k)
            The functions at the rows, without the constant.
        mean : ndarray of shape (1, k) or None
            Their mean over the training rows, of the weights of ``center``.
        coef : ndarray of shape (n_columns, k)
            The last is the constant, where there is one.
        """
        if self.center is not None:
            values = values - mean
        if self.has_constant:
            values = values + coef[-1]
        return self.scaled(values)


@dataclass(frozen=True, eq=False)
class PlacedVectors:
    """Columns of dual coefficients that come from slopes of few rows.

    They are laid out only where they are multiplied with something.

    Attributes
    ----------
    slopes : ndarray of shape (n_rows, q)
    """

    rows: Rows
    slopes: np.ndarray

    def astype(self, dtype, copy=True):
        """The vectors in another precision."""
        return replace(self, slopes=self.slopes.astype(dtype, copy=copy))

    def __matmul__(self, parts):
        return self.rows.place(self.slopes @ parts)


class KernelDesign(Design):
    """Dual coefficients, one for each training row, and the kernel between these.

    Centred, the rows are less their weighted mean, while coefficients stay those of
    the rows as they were: predictors are (I - 1 w') K a, slopes g give the
    coefficients g - w sum(g), and inner products of rows are those of
    (I - 1 w') K (I - w 1').

    Parameters
    ----------
    has_constant : bool
        Whether a last coefficient is added to all predictors: the intercept of
        losses other than the squared error, for which centring does not stand.
        ``squared_norm`` leaves it out.
    """

    side = "rows"
    is_dual = True

    def __init__(self, matrix, has_constant=False):
        self.matrix = matrix
        self.taken = Rows(len(matrix), EVERY, has_constant=has_constant)
        self.center = None

    def _with(self, taken):
        """A design of the same kernel whose rows are taken another way."""
        found = KernelDesign(self.matrix)
        found.taken, found.center = taken, taken.center
        return found

    @property
    def shape(self):
        return len(self.taken), len(self.matrix) + self.taken.has_constant

    @property
    def dtype(self):
        return self.matrix.dtype

    def rows(self, index):
        """The design of the rows in ``index``: coefficients stay those of all."""
        return self._with(self.taken.part(index))

    def scaled_rows(self, row_scale):
        """The same design with its rows multiplied by ``row_scale``, (n_rows, 1)."""
        scale = self.taken.scaled(row_scale).astype(self.dtype, copy=False)
        return self._with(replace(self.taken, scale=scale))

    def centered(self, weights):
        """The same design, centred by the weighted mean of its rows instead.

        Takes one product with the kernel.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Their sum is one.
        """
        weights = weights.astype(np.float64)
        alone = Rows(self.taken.n_training, self.taken.index)
        weights = alone.place(weights / weights.sum())
        values = self.matrix.dot(EVERY, weights).astype(np.float64)
        center = Center(weights, values, float(np.vdot(weights, values)))
        return self._with(replace(self.taken, center=center))

    def dot(self, coef):
        """Linear predictors, (n_columns, k) -> (n_rows, k): one pass over the rows."""
        dual = self._dual(coef)
        values = self.matrix.dot(EVERY, dual, self.taken.index)
        mean = None if self.center is None else self.center.values.T @ dual
        dtype = np.result_type(coef.dtype, self.dtype)
        return self.taken.predictor(values, mean, coef).astype(dtype, copy=False)

    def _dual(self, coef):
        """Coefficients but the constant."""
        return coef[: len(self.matrix)]

    def t_dot(self, slopes):
        """Coefficients of a gradient, (n_rows, k) -> (n_columns, k): the slopes."""
        return self.taken.place(slopes).astype(slopes.dtype, copy=False)

    def along_batches(self, predictor):
        """Predictors of all rows, to be moved on by the gradients of batches."""
        return AlongBatches(self, predictor)

    def squared_norm(self, coef, predictor):
        """a'K a of every column of coefficients, without the constant, (k,).

        Parameters
        ----------
        coef : ndarray of shape (n_columns, k)
        predictor : ndarray of shape (n_rows, k)
            Theirs. Where the rows are all training rows as they are, no product with
            the kernel is taken.
        """
        dual = self._dual(coef)
        if is_every(self.taken.index) and self.taken.scale is None:
            values = predictor - coef[-1] if self.taken.has_constant else predictor
            if self.center is not None:
                values = values + self.center.values.T @ dual
        else:
            values = self.matrix.dot(EVERY, dual)
        return np.einsum("jk,jk->k", dual, values)

    def directions(self, vectors, norms):
        """Unit functions from eigenvectors of :meth:`outer_gram`.

        Parameters
        ----------
        vectors : ndarray of shape (n_rows, q), float64
            Orthonormal.
        norms : ndarray of shape (q,)
            Roots of their eigenvalues.

        Returns
        -------
        PlacedVectors of shape (n_columns, q)
        """
        return PlacedVectors(self.taken, vectors / norms)

    def covectors(self, directions):
        """Values of directions, by which inner products with them are taken.

        Parameters
        ----------
        directions : PlacedVectors of shape (n_columns, q)

        Returns
        -------
        ndarray of shape (n_columns, q), float64
            At the training rows, less their mean where the design is centred: its
            coefficients sum to zero. And the constant.
        """
        taken, slopes = directions.rows, directions.rows.scaled(directions.slopes)
        total = slopes.sum(axis=0, keepdims=True)
        values = self.matrix.dot(taken.index, slopes).astype(np.float64, copy=False)
        if self.center is not None:
            values -= self.center.values * total
            values -= self.center.weights.T @ values
        return np.concatenate([values, total]) if taken.has_constant else values

    def evaluate(self, covectors):
        """Linear predictors of directions by their covectors, without the kernel.

        Parameters
        ----------
        covectors : ndarray of shape (n_columns, q)

        Returns
        -------
        ndarray of shape (n_rows, q)
        """
        values = self._dual(covectors)[self.taken.index]
        if self.taken.has_constant:
            values = values + covectors[-1]
        return self.taken.scaled(values)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        taken = self.taken
        gram = np.array(self.matrix.square(taken.index), self.dtype)
        if self.center is not None:
            values = self.center.values[taken.index]
            gram -= values
            gram -= values.T - self.center.square - taken.has_constant
        elif taken.has_constant:
            gram += 1
        return scaled_gram(gram, taken.scale)

    def smaller_gram_dot(self):
        """How to multiply with :meth:`outer_gram`: one pass over its entries each.

        Returns
        -------
        callable
            It takes an array of shape (n_rows, k).
        """
        product, taken = self.matrix.square_product(self.taken.index), self.taken

        def dot(slopes):
            slopes = taken.scaled(slopes)
            values, mean = product(slopes), None
            total = slopes.sum(axis=0, keepdims=True)
            if self.center is not None:
                own = self.center.values[taken.index]
                mean = own.T @ slopes - self.center.square * total
                values = values - own * total
            return taken.predictor(values, mean, total)

        return dot

    def squared_row_norms(self):
        """Inner product of every row with itself, (n_rows,), float64."""
        taken, norms = self.taken, self.matrix.diagonal[self.taken.index]
        if self.center is not None:
            values = self.center.values[taken.index, 0]
            norms = np.clip(norms - 2 * values + self.center.square, 0, None)
        norms = norms + taken.has_constant
        return norms if taken.scale is None else norms * taken.scale[:, 0] ** 2

    def is_zero(self):
        """Whether all rows are zero; centred, whether they are the same function."""
        largest = self.squared_row_norms().max()
        if self.center is None:
            return largest == 0
        size = self.matrix.diagonal.max() * N_ROUNDINGS * np.sqrt(len(self.matrix))
        return largest <= size * np.finfo(self.dtype).eps


class AlongBatches:
    """Predictors of all rows along a pass through batches.

    The slopes of a batch move them through its own columns of the kernel alone, so
    that a pass takes each column once. What the centre and the constant add are a few
    numbers for all rows: these are summed, and added where predictors are asked for.

    Parameters
    ----------
    predictor : ndarray of shape (n_rows, k)
        Before the first batch.
    """

    def __init__(self, design, predictor):
        self._design, self._uncentred = design, predictor.copy()
        self._total = self._mean = np.zeros(predictor.shape[1])

    def add(self, rows, slopes):
        """Move on by the gradient of some rows.

        Parameters
        ----------
        rows : slice or ndarray of int
        slopes : ndarray of shape (n, k)
            ``design.rows(rows).t_dot(slopes)`` is added to the coefficients.
        """
        design, part = self._design, self._design.taken.part(rows)
        slopes = part.scaled(slopes)
        values = design.matrix.dot(part.index, slopes, design.taken.index)
        self._uncentred += design.taken.scaled(values)
        total = slopes.sum(axis=0)
        self._total = self._total + total
        if design.center is not None:
            mean = design.center.values[part.index, 0] @ slopes
            self._mean = self._mean + (mean - design.center.square * total)

    def predictor(self, rows=EVERY):
        """Linear predictors of some rows, (n, k)."""
        part, center = self._design.taken.part(rows), self._design.center
        found = part.has_constant * self._total - self._mean
        if center is not None:
            found = found - center.values[part.index] * self._total
        found = part.scaled(found) + self._uncentred[rows]
        return found.astype(self._uncentred.dtype, copy=False)
