"""Which training rows a kernel design takes: slopes of these as dual coefficients."""

from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from .kernel_matrix import EVERY, as_slice


@dataclass(frozen=True, eq=False)
class Rows:
    """Which of the training rows a design takes, and how.

    Attributes
    ----------
    index : slice or ndarray of int
        The rows that are taken; no copy of those in a slice is made.
    center : ndarray of shape (n_training, 1) or None
        Weights, of sum one, of the mean that is taken off every row.
    scale : ndarray of shape (n_rows, 1) or None
        Multiplies the (centred) rows.
    has_constant : bool
        Whether a last coefficient is the same for all rows.
    """

    n_training: int
    index: slice | np.ndarray
    center: np.ndarray | None = None
    scale: np.ndarray | None = None
    has_constant: bool = False

    def __len__(self):
        if isinstance(self.index, slice):
            return len(range(self.n_training)[self.index])
        return len(self.index)

    def numbers(self):
        """The numbers of the rows among the training rows."""
        return np.arange(self.n_training)[self.index]

    def part(self, index):
        """Some of them."""
        numbers = self.numbers()[index]
        is_all = np.array_equal(numbers, np.arange(self.n_training))
        scale = None if self.scale is None else self.scale[index]
        return replace(self, index=EVERY if is_all else as_slice(numbers), scale=scale)

    def scaled(self, slopes):
        """Slopes or predictors of the rows, times their scale."""
        return slopes if self.scale is None else slopes * self.scale

    def place(self, slopes):
        """Dual coefficients of slopes of the rows, (n_rows, k) -> (n_columns, k)."""
        slopes = self.scaled(slopes)
        coef = np.zeros(
            (self.n_training + self.has_constant, slopes.shape[1]), slopes.dtype
        )
        if isinstance(self.index, slice):
            coef[: self.n_training][self.index] = slopes
        else:  # a row may be there more than once
            ones, every = np.ones(len(self), slopes.dtype), np.arange(len(self))
            shape = self.n_training, len(self)
            placing = sparse.csr_matrix((ones, (self.index, every)), shape)
            coef[: self.n_training] = placing @ slopes
        total = slopes.sum(axis=0)
        if self.center is not None:
            coef[: self.n_training] -= self.center * total
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
            Their mean over the training rows, weighted by ``center``.
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
