"""Design: a linear map from coefficients to the linear predictors of rows."""

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
# Lanczos approaches the top eigenvalue from below: what it may still miss.
LANCZOS_MARGIN = 1.02


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
    side: str
    has_columns = is_matrix = is_on_device = is_dual = False

    @property
    def storage_dtype(self) -> np.dtype:
        """The precision of the entries, perhaps less than that of the products."""
        return self.dtype

    @abstractmethod
    def dot(self, coef: np.ndarray) -> np.ndarray:
        """Linear predictors, (n_columns, k) -> (n_rows, k)."""

    @abstractmethod
    def t_dot(self, slopes: np.ndarray) -> np.ndarray:
        """The gradient of slopes in the predictors, (n_rows, k) -> (n_columns, k)."""

    @abstractmethod
    def rows(self, index: np.ndarray | slice) -> Design:
        """The design of the rows in ``index``."""

    @abstractmethod
    def scaled_rows(self, row_scale: np.ndarray) -> Design:
        """The same design with its rows multiplied by ``row_scale``, (n_rows, 1)."""

    @abstractmethod
    def centered(self, weights: np.ndarray) -> Design:
        """The same design, centred by the weighted mean of its rows.

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Their sum is one.
        """

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

        Parameters
        ----------
        changes, coefs : ndarray of shape (n_updates, n_columns, k)
        tol : float

        Returns
        -------
        ndarray of bool, shape (n_updates,)
        """
        largest = np.abs(coefs).max(axis=(1, 2))
        return np.abs(changes).max(axis=(1, 2)) <= tol * largest

    def squared_norm(self, coef: np.ndarray, predictor: np.ndarray) -> np.ndarray:
        """Squared norm of every column of coefficients, (k,).

        Parameters
        ----------
        coef : ndarray of shape (n_columns, k)
        predictor : ndarray of shape (n_rows, k)
            Linear predictors of these coefficients.
        """
        return np.einsum("jk,jk->k", coef, coef)

    def covectors(self, directions: np.ndarray) -> np.ndarray:
        """Covectors of directions, by which inner products with them are taken.

        By default the directions themselves.

        Parameters
        ----------
        directions : of shape (n_columns, q)
            As :meth:`directions` gives them.

        Returns
        -------
        ndarray of shape (n_columns, q)
            ``covectors.T @ coef`` are the inner products.
        """
        return directions

    def evaluate(self, covectors: np.ndarray) -> np.ndarray:
        """Linear predictors of directions by their covectors: the transpose of t_dot.

        Returns
        -------
        ndarray of shape (n_rows, q)
        """
        return self.dot(covectors)

    def smaller_gram(self) -> np.ndarray:
        """Inner products along :attr:`side`, dense."""
        return self.gram() if self.side == "columns" else self.outer_gram()

    def smaller_gram_dot(self) -> Callable[[np.ndarray], np.ndarray]:
        """Products with :meth:`smaller_gram`, which is not formed.

        Returns
        -------
        callable
            A function of an array of shape (n, k), for n rows or columns.
        """
        if self.side == "columns":
            return lambda coef: self.t_dot(self.dot(coef))
        return lambda slopes: self.dot(self.t_dot(slopes))

    def spectrum(self) -> np.ndarray:
        """Eigenvalues of (design' design) / n_rows, without the structural zeros.

        Returns
        -------
        eigenvalues : ndarray of float64
            In increasing order, clipped at zero; one for each row or column of
            :attr:`side`.
        """
        # In place: the matrix may be as large as X.
        inner = self.smaller_gram().T
        eigenvalues = eigvalsh(inner, overwrite_a=True, check_finite=False)
        return np.clip(eigenvalues.astype(np.float64) / self.shape[0], 0.0, None)

    def top_eigenvalue(self) -> float:
        """Largest eigenvalue of (design' design) / n_rows.

        Exact for small designs, otherwise from Lanczos iterations with a fixed starting
        vector and a margin of 2% for their error. It depends on X only.
        """
        if self.is_zero():
            return 0.0
        size = self.shape[1 if self.side == "columns" else 0]
        if size <= EXACT_EIGENVALUE_SIZE:
            return float(self.spectrum()[-1])
        start = np.random.default_rng(0).standard_normal(size).astype(self.dtype)
        found = top_eigenvalue(self.smaller_gram_dot(), start, tolerance=0.1)
        return found / self.shape[0]


class ColumnDesign(Design):
    """A design whose coefficients are those of its columns.

    Algorithms on few columns use these methods, which are sums over ``blocks()`` here.
    A design in memory is a single block and overrides them with faster ones. A new one
    defines, besides the list of :class:`Design`,

    ``blocks()``
        Consecutive rows as pairs (slice, ColumnDesign), each in memory.
    """

    has_columns = True

    @abstractmethod
    def blocks(self) -> Iterator[tuple[slice, ColumnDesign]]:
        """Consecutive rows, as pairs (slice, ColumnDesign)."""

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
        """Inner products of the columns, dense, (n_columns, n_columns).

        Parameters
        ----------
        dtype : dtype
            The precision in which they are summed up.
        """
        return sum(block.gram(dtype) for _, block in self.blocks())

    def weighted_gram(self, weights: np.ndarray) -> np.ndarray:
        """The design' diag(weights) design, dense, (n_columns, n_columns).

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            They may be negative.
        """
        return sum(block.weighted_gram(weights[rows]) for rows, block in self.blocks())

    def weighted_grams(self, weights: np.ndarray) -> np.ndarray:
        """:meth:`weighted_gram` for weights (n_rows, k): (k, n_columns, n_columns)."""
        return np.stack([self.weighted_gram(each[:, None]) for each in weights.T])

    def outer_gram(self) -> np.ndarray:
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        return self.dot(self.t_dot(np.eye(self.shape[0], dtype=self.dtype)))

    def squared_row_norms(self) -> np.ndarray:
        """Squared Euclidean norm of every row, (n_rows,)."""
        return np.concatenate([block.squared_row_norms() for _, block in self.blocks()])

    def column_sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Euclidean norm and largest absolute entry of every column.

        Exact if X is dense; upper bounds if it is sparse, since the centre is added to
        the absolute values of the entries.

        Returns
        -------
        norms, largest : ndarray of shape (n_columns,)
        """
        norms, largest = zip(*(block.column_sizes() for _, block in self.blocks()))
        return np.linalg.norm(norms, axis=0), np.max(largest, axis=0)

    def dense_columns(self, index: np.ndarray, dtype: Any) -> np.ndarray:
        """The columns in ``index`` as an array, (n_rows, n)."""
        parts = [block.dense_columns(index, dtype) for _, block in self.blocks()]
        return np.concatenate(parts)

    def is_zero(self) -> bool:
        """Whether all entries are zero."""
        return not self.column_sizes()[1].any()

    def directions(self, vectors: np.ndarray, norms: np.ndarray) -> np.ndarray:
        """Unit coefficients from eigenvectors of :meth:`smaller_gram`.

        Parameters
        ----------
        vectors : ndarray of shape (n, q), float64
            For n rows or columns, orthonormal.
        norms : ndarray of shape (q,)
            Roots of their eigenvalues.

        Returns
        -------
        ndarray of shape (n_columns, q)
        """
        if self.side == "rows":
            vectors = self.t_dot(vectors.astype(self.dtype, copy=False))
            # Orthonormal to rounding, which a division by the norms would not be.
            vectors, _ = np.linalg.qr(vectors.astype(np.float64))
        return vectors.astype(self.dtype, copy=False)


def scaled_gram(gram, scale):
    """Inner products of rows times ``scale``, (n_rows, 1) or None, in place."""
    if scale is not None:
        gram *= scale
        gram *= scale.T
    return gram


def top_eigenvalue(dot, start, tolerance):
    """The largest eigenvalue of a positive semi-definite matrix, from its products.

    Exact if it is small. Otherwise by Lanczos iterations, which approach it from below,
    with a margin of 2%.

    Parameters
    ----------
    dot : callable
        Product of the matrix with an array of shape (size, k).
    start : ndarray of shape (size,)
        Start of the iteration, in the working precision.
    tolerance : float
        Relative tolerance at which the iterations end.
    """
    size = len(start)
    if size <= EXACT_EIGENVALUE_SIZE:
        matrix = dot(np.eye(size, dtype=start.dtype))
        return max(float(eigvalsh((matrix + matrix.T) / 2)[-1]), 0.0)
    matrix = LinearOperator(
        (size, size),
        matvec=lambda v: dot(v.reshape(-1, 1)).ravel(),
        dtype=start.dtype,
    )
    found = eigsh(
        matrix, k=1, v0=start, ncv=16, tol=tolerance, return_eigenvectors=False
    )
    return float(found[0]) * LANCZOS_MARGIN
