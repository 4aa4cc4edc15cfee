"""Designs: linear maps from coefficients to the linear predictors of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.linalg import eigvalsh
from scipy.sparse.linalg import LinearOperator, eigsh

__all__ = ["ColumnDesign", "Design"]

# Up to this many rows or columns the top eigenvalue comes from a full
# decomposition; beyond, from Lanczos iterations.
EXACT_EIGENVALUE_SIZE = 128
# Rows per block where an intermediate result for all rows would be as large as X.
ROW_BLOCK = 128
# Bound of the rounding error of a long sum, in units of the machine precision.
ROUNDINGS = 256


class Design(ABC):
    """A linear map from coefficients to linear predictors, one for each row.

    This is all that a run, its step size, its replicas and estimates from its spectrum
    need of a design. A new design defines

    ``shape``, ``dtype``
        (n_rows, n_columns), and the precision of predictors and coefficients.
    ``side``
        "columns" or "rows": whether inner products of columns or of rows are formed,
        n_columns squared or n_rows squared of them.
    ``is_on_device``
        Whether its arrays are in another namespace, perhaps on another device, than the
        results of its products.
    ``dot``, ``t_dot``
        The map from coefficients to predictors, and its transpose from slopes of the
        rows to a gradient in the coefficients.
    ``rows``, ``scaled_rows``, ``centered``
        Designs of some rows, of scaled rows, of rows minus their mean.
    ``outer_gram``, ``squared_row_norms``, ``is_zero``
        Inner products of the rows, for designs whose features may never be formed.

    The coefficients of a kernel are dual (``is_dual``), one for each training row. Then
    ``t_dot`` is the adjoint of ``dot`` in the inner product of the function space,
    which ``squared_norm``, ``directions``, ``covectors`` and ``evaluate`` use, and a
    run carries its linear predictors along, so that one product serves the update and
    the predictors. The other methods derive from these.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    has_columns = is_matrix = is_on_device = is_dual = False

    @property
    @abstractmethod
    def side(self) -> str:
        """Whether inner products of "columns" or of "rows" are formed."""

    @property
    def storage_dtype(self) -> np.dtype:
        """The precision of the entries, perhaps less than that of the products."""
        return self.dtype

    @abstractmethod
    def dot(self, coef: np.ndarray) -> np.ndarray:
        """Linear predictors (n_rows, k) of coefficients (n_columns, k)."""

    @abstractmethod
    def t_dot(self, slopes: np.ndarray) -> np.ndarray:
        """The gradient (n_columns, k) from slopes of the rows (n_rows, k)."""

    @abstractmethod
    def rows(self, index: np.ndarray | slice) -> Design:
        """The design of the rows in ``index``."""

    @abstractmethod
    def scaled_rows(self, row_scale: np.ndarray) -> Design:
        """The design with its rows multiplied by ``row_scale``, (n_rows, 1)."""

    @abstractmethod
    def centered(self, weights: np.ndarray) -> Design:
        """The design minus the mean of its rows under weights (n_rows, 1)."""

    @abstractmethod
    def outer_gram(self) -> np.ndarray:
        """Inner products of the rows, dense, (n_rows, n_rows)."""

    @abstractmethod
    def squared_row_norms(self) -> np.ndarray:
        """Squared norm of every row, (n_rows,)."""

    @abstractmethod
    def is_zero(self) -> bool:
        """Whether all predictors are zero, whatever the coefficients."""

    def are_converged(
        self, changes: np.ndarray, coefs: np.ndarray, tol: float
    ) -> np.ndarray:
        """Which updates change no coefficient by more than ``tol`` times the largest.

        Shapes: changes, coefs (n_updates, n_columns, k); returned (n_updates,)."""
        largest = np.abs(coefs).max(axis=(1, 2))
        return np.abs(changes).max(axis=(1, 2)) <= tol * largest

    def squared_norm(self, coef: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """Squared norms (k,) of coefficients with the linear predictors ``predictor``.

        Shapes: coef (n_columns, k); predictor (n_rows, k)."""
        return np.einsum("jk,jk->k", coef, coef)

    def covectors(self, directions: np.ndarray) -> np.ndarray:
        """Vectors (n_columns, q) that give inner products with directions: c'g."""
        return directions

    def evaluate(self, covectors: np.ndarray) -> np.ndarray:
        """Linear predictors (n_rows, q) of directions, from their covectors."""
        return self.dot(covectors)

    def smaller_gram(self) -> np.ndarray:
        """Inner products of the columns or of the rows, by :attr:`side`, dense."""
        # A design with columns may have theirs, too.
        return self.outer_gram()

    def smaller_gram_dot(self) -> Callable[[np.ndarray], np.ndarray]:
        """A function that multiplies with :meth:`smaller_gram`, which is not formed."""
        if self.side == "columns":
            return lambda coef: self.t_dot(self.dot(coef))
        return lambda slopes: self.dot(self.t_dot(slopes))

    def spectrum(self) -> np.ndarray:
        """Eigenvalues of design' design / n_rows, without the structural zeros."""
        # In place: the matrix may be as large as X.
        inner = self.smaller_gram().T
        eigenvalues = eigvalsh(inner, overwrite_a=True, check_finite=False)
        return np.clip(eigenvalues.astype(np.float64) / self.shape[0], 0.0, None)

    def top_eigenvalue(self) -> float:
        """Largest eigenvalue of design' design / n_rows."""
        if self.is_zero():
            return 0.0
        size = self.shape[1 if self.side == "columns" else 0]
        if size <= EXACT_EIGENVALUE_SIZE:
            return float(self.spectrum()[-1])
        start = np.random.default_rng(0).standard_normal(size).astype(self.dtype)
        eigenvalue = top_eigenvalue(self.smaller_gram_dot(), start, tolerance=0.1)
        return eigenvalue / self.shape[0]


class ColumnDesign(Design):
    """A design whose coefficients are those of its columns.

    Besides the list of :class:`Design` a new one defines ``blocks()``. The methods
    here, which algorithms on few columns use, are sums over these blocks; a design in
    memory is a single block and has faster ones.
    """

    has_columns = True

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, ColumnDesign]]:
        """Consecutive rows as pairs (slice, ColumnDesign), each in memory."""

    @property
    def side(self) -> str:
        """The smaller side of the matrix."""
        return "columns" if self.shape[1] <= self.shape[0] else "rows"

    @property
    def n_stored(self) -> int:
        """Number of entries that a product reads."""
        return sum(block.n_stored for _, block in self.blocks())

    @property
    def n_bytes(self) -> int:
        """Memory of the entries, in bytes."""
        return self.n_stored * np.dtype(self.storage_dtype).itemsize

    def gram(self, dtype: Any = np.float64) -> np.ndarray:
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        start = np.zeros((self.shape[1], self.shape[1]), dtype)
        return sum((block.gram(dtype) for _, block in self.blocks()), start)

    def smaller_gram(self) -> np.ndarray:
        return self.gram() if self.side == "columns" else self.outer_gram()

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """design' diag(weights) design, (n_columns, n_columns); weights (n_rows, 1)."""
        start = np.zeros((self.shape[1], self.shape[1]), self.dtype)
        parts = (block.weighted_gram(weights[rows]) for rows, block in self.blocks())
        return sum(parts, start)

    def weighted_grams(self, weights: np.ndarray) -> np.ndarray:
        """:meth:`weighted_gram` for weights (n_rows, k): (k, n_columns, n_columns)."""
        return np.stack([self.weighted_gram(column[:, None]) for column in weights.T])

    def outer_gram(self) -> np.ndarray:
        return self.dot(self.t_dot(np.eye(self.shape[0], dtype=self.dtype)))

    def squared_row_norms(self) -> np.ndarray:
        return np.concatenate([block.squared_row_norms() for _, block in self.blocks()])

    def column_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Norm and largest absolute entry of every column, both (n_columns,)."""
        norms, largest = zip(*(block.column_sizes() for _, block in self.blocks()))
        return np.linalg.norm(norms, axis=0), np.max(largest, axis=0)

    def dense_columns(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        """The columns in ``index`` as an array (n_rows, n_index)."""
        parts = [block.dense_columns(index, dtype) for _, block in self.blocks()]
        return np.concatenate(parts)

    def is_zero(self) -> bool:
        return not self.column_sizes()[1].any()

    def directions(self, vectors: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Orthonormal coefficients (n_columns, q) from eigenvectors of smaller_gram.

        Shapes: vectors (n_columns or n_rows, q); norms (q,), the singular values.
        """
        if self.side == "rows":
            vectors = self.t_dot(vectors.astype(self.dtype, copy=False))
            # QR, since vectors divided by the norms would be less orthogonal.
            vectors, _ = np.linalg.qr(vectors.astype(np.float64))
        return vectors.astype(self.dtype, copy=False)


def scaled_gram(gram, scale):
    """Inner products of rows that are scaled by ``scale``, (n_rows, 1), in place."""
    if scale is not None:
        gram *= scale
        gram *= scale.T
    return gram


def top_eigenvalue(dot, start, tolerance, margin=1.02):
    """Largest eigenvalue of a positive semi-definite matrix, by products ``dot``."""
    size = len(start)
    if size <= EXACT_EIGENVALUE_SIZE:
        matrix = dot(np.eye(size, dtype=start.dtype))
        return max(float(eigvalsh((matrix + matrix.T) / 2)[-1]), 0.0)
    matrix = LinearOperator(
        (size, size),
        matvec=lambda v: dot(v.reshape(-1, 1)).ravel(),
        dtype=start.dtype,
    )
    eigenvalues = eigsh(
        matrix, k=1, v0=start, ncv=16, tol=tolerance, return_eigenvectors=False
    )
    return float(eigenvalues[0]) * margin


class InMemoryDesign(ColumnDesign):
    """A design in memory: its rows are one block, and columns can be selected."""

    is_matrix = True

    @abstractmethod
    def rows(self, index) -> InMemoryDesign:
        """The design of the rows in ``index``."""

    def blocks(self):
        yield slice(0, self.shape[0]), self

    def columns(self, index, dtype):
        if len(index) == self.shape[1] and np.can_cast(self.storage_dtype, dtype):
            return self
        return self.selection(index, dtype)

    def part(self, rows, columns):
        return self.rows(rows).columns(columns, self.dtype)

    @abstractmethod
    def selection(self, index, dtype):
        """A design of the columns in ``index``, copied, in a precision."""


class MatrixDesign(InMemoryDesign):
    """The matrix diag(row_scale) (X - 1 center'), which is never formed.

    Instead products with X are centred and scaled, so that X is not copied or made
    dense.

    Shapes: X (n_rows, n_columns); center (n_columns, 1); row_scale (n_rows, 1)."""

    dtype = storage_dtype = np.dtype(np.float64)
    side, n_stored = "columns", 0

    def __init__(self, X, center=None, row_scale=None):
        self.X, self.shape = X, X.shape
        self.center, self.row_scale = center, row_scale
        self.storage_dtype, self.n_stored = X.dtype, X.size
        self.side = "columns" if X.shape[1] <= X.shape[0] else "rows"

    def _new(self, X, center, row_scale):
        """A design of the same class."""
        return type(self)(X, center, row_scale)

    def centered(self, weights):
        weights = weights.astype(np.float64)
        center = self._weighted_sum(weights) / weights.sum()
        return self._new(self.X, center, self.row_scale)

    def gram(self, dtype=np.float64):
        gram = self.weighted_gram(np.ones((self.shape[0], 1)))
        return gram.astype(dtype, copy=False)

    @abstractmethod
    def squares_t_dot(self, weights):
        """Weighted sums of the squares of columns, (n_rows, k) -> (n_columns, k)."""

    @abstractmethod
    def mapped_columns(self, factor, center):
        """A copy with columns factor (column - center); both (n_columns,)."""

    def shifted(self, center):
        """The design with ``center``, (n_columns,), subtracted from its columns."""
        total = center[:, None] + (0 if self.center is None else self.center)
        return self._new(self.X, total if total.any() else None, self.row_scale)

    @abstractmethod
    def _times(self, coef):
        """X coef, a new array in the higher of both precisions."""

    @abstractmethod
    def _transpose_times(self, slopes):
        """X' slopes, a new array in the higher of both precisions."""

    @abstractmethod
    def _weighted_sum(self, weights):
        """X' weights, (n_columns, 1), for weights in double precision."""

    def dot(self, coef):
        product = self._times(coef)
        if self.center is not None:
            is_double = coef.dtype == self.dtype
            center = self.center if is_double else self._residual_center(coef.dtype)
            product -= center.T @ coef
        if self.row_scale is not None:
            product *= self.row_scale
        return product

    def t_dot(self, slopes):
        if self.row_scale is not None:
            slopes = slopes * self.row_scale.astype(slopes.dtype, copy=False)
        product = self._transpose_times(slopes)
        if self.center is not None:
            is_double = slopes.dtype == self.dtype
            center = self.center if is_double else self._residual_center(slopes.dtype)
            product -= center * slopes.sum(axis=0)
        return product

    def _residual_center(self, dtype):
        """The part of the centre that ``_times`` and its transpose do not subtract."""
        return self.center

    def row_scales(self):
        """Factors of the rows, (n_rows, 1); ones where there are none."""
        if self.row_scale is not None:
            return self.row_scale
        return np.ones((self.shape[0], 1), self.dtype)

    def rows(self, index):
        scale = None if self.row_scale is None else self.row_scale[index]
        return self._new(self.X[index], self.center, scale)

    def scaled_rows(self, row_scale):
        if self.row_scale is not None:
            row_scale = row_scale * self.row_scale
        row_scale = row_scale.astype(self.dtype, copy=False)
        return self._new(self.X, self.center, row_scale)

    @abstractmethod
    def joined_with(self, selection):
        """The design of the columns of this and another selection, of equal rows."""

    @abstractmethod
    def column_of_ones(self, dtype):
        """A design of one column of ones, scaled like the rows."""
