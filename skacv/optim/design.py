"""Design: all that an algorithm or an estimate may ask of the data matrix X."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh, get_blas_funcs
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

# Up to this many rows or columns the top eigenvalue comes from a full
# decomposition; beyond, from Lanczos iterations.
EXACT_EIGENVALUE_SIZE = 128
# Lanczos approaches the top eigenvalue from below: what it may still miss.
LANCZOS_MARGIN = 1.02
# Rows handled at a time where a whole matrix would be a second one.
ROW_BLOCK = 128
# More rows where they are short, as long as they keep to so many entries.
BLOCK_ENTRIES = 1 << 16


class Design:
    """The matrix ``diag(row_scale) (X - 1 center')``, never formed.

    Centring and scaling are applied to the results of products, so that a
    dense X is not copied and a sparse X is not densified.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns), float32 or float64
    center : ndarray of shape (n_columns, 1) or (n_columns, n_replicas), optional
        Subtracted from every row. With several columns, replica r sees X
        centred by column r.
    row_scale : ndarray of shape (n_rows, 1), optional
        Multiplies the (centred) rows.
    """

    def __init__(self, X, center=None, row_scale=None):
        self.X = X
        self.center = center
        self.row_scale = row_scale

    @classmethod
    def centered(cls, X, weights):
        """The design centred by the weighted mean of its rows.

        ``weights`` has shape (n_rows, 1) or (n_rows, n_replicas), its columns
        sum to one.
        """
        return cls(X, center=X.T @ weights.astype(X.dtype, copy=False))

    def replica(self, r):
        """The design as replica ``r`` sees it."""
        if self.center is None or self.center.shape[1] == 1:
            return self
        return Design(self.X, self.center[:, [r]], self.row_scale)

    @property
    def shape(self):
        return self.X.shape

    @property
    def dtype(self):
        return self.X.dtype

    def dot(self, coef):
        """The product with ``coef``, (n_columns, k) -> (n_rows, k)."""
        product = self.X @ coef
        if self.center is not None:
            product -= (self.center * coef).sum(axis=0)
        if self.row_scale is not None:
            product *= self.row_scale
        return product

    def t_dot(self, rows):
        """The product of the transpose with ``rows``, (n_rows, k) -> (n_columns, k)."""
        if self.row_scale is not None:
            rows = rows * self.row_scale
        product = self.X.T @ rows
        if self.center is not None:
            product -= self.center * rows.sum(axis=0)
        return product

    def scaled_rows(self, row_scale):
        """The same design with its rows multiplied by ``row_scale``, (n_rows, 1)."""
        if self.row_scale is not None:
            row_scale = row_scale * self.row_scale
        return Design(self.X, self.center, row_scale.astype(self.dtype, copy=False))

    def columns(self, index, dtype):
        """The design of the columns in ``index``, increasing, as ``dtype``.

        All columns as they are, are the design itself.
        """
        if len(index) == self.shape[1] and dtype == self.dtype:
            return self
        return self.selection(index, dtype)

    def selection(self, index, dtype):
        """A design of its own with the columns in ``index``, as ``dtype``.

        A dense selection is a copy in any case, so centre and scale are
        applied to it; a sparse one keeps them lazy.
        """
        if not sparse.issparse(self.X):
            return Design(self.dense_columns(index, dtype))
        center = None if self.center is None else self.center[index].astype(dtype)
        scale = None if self.row_scale is None else self.row_scale.astype(dtype)
        return Design(self.X[:, index].astype(dtype, copy=False), center, scale)

    def dense_columns(self, index, dtype):
        """The columns in ``index`` as an array, a block of rows at a time."""
        selection = np.empty((self.shape[0], len(index)), dtype)
        for first in range(0, self.shape[0], ROW_BLOCK):
            rows = slice(first, first + ROW_BLOCK)
            block = selection[rows]
            if sparse.issparse(self.X):
                block[:] = self.X[rows][:, index].toarray()
            else:
                block[:] = np.take(self.X[rows], index, axis=1)
            if self.center is not None:
                block -= self.center[index].T
            if self.row_scale is not None:
                block *= self.row_scale[rows]
        return selection

    def beside(self, other):
        """The columns of this selection and of ``other``, of the same rows."""
        if sparse.issparse(self.X):
            center = None
            if self.center is not None:
                center = np.concatenate([self.center, other.center])
            X = sparse.hstack([self.X, other.X], format="csr")
            return Design(X, center, self.row_scale)
        return Design(np.concatenate([self.X, other.X], axis=1))

    def rows(self, index):
        """The design of the rows in ``index``."""
        scale = None if self.row_scale is None else self.row_scale[index]
        return Design(self.X[index], self.center, scale)

    @property
    def n_stored(self):
        """Number of entries that a product with X goes through."""
        return self.X.nnz if sparse.issparse(self.X) else self.X.size

    @property
    def n_bytes(self):
        """Memory that the entries of X take."""
        return (self.X.data if sparse.issparse(self.X) else self.X).nbytes

    def gram(self):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        X, scale = self.X, self.row_scale
        if scale is None:
            scale = np.ones((self.shape[0], 1), self.dtype)
            product = _dense(X.T @ X)
        else:
            product = _scaled_gram(X, scale)
        self._center_gram(product, scale**2)
        return product

    def weighted_gram(self, weights):
        """The design' diag(weights) design, dense, (n_columns, n_columns).

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Of either sign.
        """
        if self.row_scale is not None:
            weights = weights * self.row_scale**2
        product = _weighted_gram(self.X, weights)
        self._center_gram(product, weights)
        return product

    def _center_gram(self, product, weights):
        """Turn inner products of the columns of X into those of the centred ones."""
        if self.center is not None:
            # With c for the centre: X'WX - c (X'w)' - (X'w - sum(w) c) c'
            total = self.X.T @ weights
            rest = total - weights.sum() * self.center
            _subtract_outer(product, self.center, total)
            _subtract_outer(product, rest, self.center)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        product = _dense(self.X @ self.X.T)
        if self.center is not None:
            ones = np.ones((self.shape[0], 1), self.dtype)
            shift = self.X @ self.center
            _subtract_outer(product, ones, shift)
            _subtract_outer(product, shift - (self.center**2).sum(), ones)
        if self.row_scale is not None:
            product *= self.row_scale
            product *= self.row_scale.T
        return product

    def spectrum(self):
        """Eigenvalues of (design' design) / n_rows, without the structural zeros.

        Returns
        -------
        eigenvalues : ndarray of shape (min(n_rows, n_columns),), float64
            In increasing order, clipped at zero.
        """
        n_rows, n_columns = self.shape
        inner = self.gram() if n_columns <= n_rows else self.outer_gram()
        # In place: the matrix may be as large as X.
        eigenvalues = eigvalsh(inner.T, overwrite_a=True, check_finite=False)
        return np.clip(eigenvalues.astype(np.float64) / n_rows, 0.0, None)

    def top_eigenvalue(self):
        """Largest eigenvalue of (design' design) / n_rows.

        Exact for small designs, else from Lanczos iterations started at a
        fixed vector, with a margin of 2% for what they may miss. It depends on
        X alone.
        """
        n_rows, n_columns = self.shape
        if min(n_rows, n_columns) <= EXACT_EIGENVALUE_SIZE:
            return float(self.spectrum()[-1])
        operator = LinearOperator(
            (n_columns, n_columns),
            matvec=lambda v: self.t_dot(self.dot(v.reshape(-1, 1))).ravel() / n_rows,
            dtype=self.dtype,
        )
        start = np.random.default_rng(0).standard_normal(n_columns).astype(self.dtype)
        try:
            found = eigsh(
                operator,
                k=1,
                v0=start,
                ncv=16,
                tol=0.1,
                maxiter=20,
                return_eigenvectors=False,
            )
        except ArpackNoConvergence as error:
            found = error.eigenvalues if len(error.eigenvalues) else self.spectrum()
        return float(found.max()) * LANCZOS_MARGIN

    def squared_row_norms(self):
        """Squared Euclidean norm of every row, (n_rows,)."""
        if sparse.issparse(self.X):
            norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).reshape(-1, 1)
        else:
            norms = np.einsum("ij,ij->i", self.X, self.X).reshape(-1, 1)
        if self.center is not None:
            norms = norms - 2 * (self.X @ self.center) + (self.center**2).sum()
        if self.row_scale is not None:
            norms = norms * self.row_scale**2
        return norms.ravel()

    def column_sizes(self):
        """Euclidean norm and largest absolute entry of every column.

        Exact where X is dense; upper bounds where it is sparse, the centre being
        added to the entries.

        Returns
        -------
        norms, largest : ndarray of shape (n_columns,)
        """
        if sparse.issparse(self.X):
            return self._sparse_column_sizes()
        squares, largest = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        every = np.arange(self.shape[1])
        for first in range(0, self.shape[0], ROW_BLOCK):
            rows = np.arange(first, min(first + ROW_BLOCK, self.shape[0]))
            block = self.rows(rows).dense_columns(every, self.dtype)
            squares += np.einsum("ij,ij->j", block, block)
            np.maximum(largest, np.abs(block).max(axis=0), out=largest)
        return np.sqrt(squares), largest

    def _sparse_column_sizes(self):
        X, scale = self.X, np.ones((self.shape[0], 1), self.dtype)
        if self.row_scale is not None:
            X, scale = X.multiply(self.row_scale).tocsr(), self.row_scale
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=0)).ravel())
        largest = np.asarray(abs(X).max(axis=0).toarray()).ravel()
        if self.center is not None:
            size = np.abs(self.center[:, 0])
            norms = norms + size * np.linalg.norm(scale)
            largest = largest + size * scale.max()
        return norms, largest


def _subtract_outer(product, left, right):
    """product -= left right', without a second matrix of that size."""
    for first in range(0, len(product), ROW_BLOCK):
        rows = slice(first, first + ROW_BLOCK)
        product[rows] -= left[rows] @ right.T


def _scaled_gram(X, row_scale):
    """Inner products of the columns of the scaled rows, a block of rows at a time."""
    if sparse.issparse(X):
        scaled = X.multiply(row_scale).tocsr()
        return _dense(scaled.T @ scaled)
    product = np.zeros((X.shape[1], X.shape[1]), X.dtype, order="F")
    gemm = get_blas_funcs("gemm", dtype=X.dtype)
    for first in range(0, len(X), ROW_BLOCK):
        rows = slice(first, first + ROW_BLOCK)
        block = X[rows] * row_scale[rows]
        gemm(1.0, block.T, block.T, 1.0, product, trans_b=True, overwrite_c=True)
    return product.T


def hessian(design, curvature):
    """Second derivatives of a sum over rows of losses of their linear predictors.

    Parameters
    ----------
    design : Design of shape (n_rows, n_columns)
    curvature : ndarray of shape (n_rows, n_outputs, n_outputs)
        Of every row's loss, weighted.

    Returns
    -------
    ndarray of shape (n_columns, n_outputs, n_columns, n_outputs)
    """
    n_columns, n_outputs = design.shape[1], curvature.shape[1]
    matrix = np.empty((n_columns, n_outputs, n_columns, n_outputs), curvature.dtype)
    for k in range(n_outputs):
        for m in range(k + 1):
            part = design.weighted_gram(curvature[:, k, [m]])
            matrix[:, k, :, m] = matrix[:, m, :, k] = part
    return matrix


def _weighted_gram(X, weights):
    """X' diag(weights) X, a block of rows at a time."""
    if sparse.issparse(X):
        return _dense(X.T @ X.multiply(weights).tocsr())
    product = np.zeros((X.shape[1], X.shape[1]), X.dtype)
    size = max(ROW_BLOCK, BLOCK_ENTRIES // X.shape[1])
    for first in range(0, len(X), size):
        rows = slice(first, first + size)
        product += X[rows].T @ (X[rows] * weights[rows])
    return product


def _dense(product):
    return product.toarray() if sparse.issparse(product) else product
