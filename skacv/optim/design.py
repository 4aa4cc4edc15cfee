"""Design: all that an algorithm or an estimate may ask of the data matrix X."""

import numpy as np
from scipy import sparse
from scipy.linalg import eigvalsh
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
# A product of two blocks takes so many multiplications, so that threads are worth
# their while, as long as a block keeps to so many entries.
PRODUCT_MULTIPLICATIONS = 1 << 28
PRODUCT_ENTRIES = 1 << 20
# Rows of a Gram matrix that are added up at a time.
STRIP = 256


class Design:
    """The matrix ``diag(row_scale) (X - 1 center')``, never formed.

    Centring and scaling are applied to the results of products, so that a
    dense X is not copied and a sparse X is not densified.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns), float32 or float64
    center : ndarray of shape (n_columns, 1), optional
        Subtracted from every row.
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

        Summed up in double precision: what is left of constant columns is then
        no more than one rounding.

        Parameters
        ----------
        X : ndarray or CSR matrix
        weights : ndarray of shape (n_rows, 1)
            Of sum one.
        """
        weights = weights.astype(np.float64)
        if sparse.issparse(X):
            center = X.T @ weights
        else:  # without a copy of X in double precision
            center = sum(
                X[rows].astype(np.float64, copy=False).T @ weights[rows]
                for rows in _blocks(X.shape[0], ROW_BLOCK)
            )
        center /= weights.sum()
        return cls(X, center=center.astype(X.dtype))

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
        is_sparse = sparse.issparse(self.X)
        if is_sparse:  # to take columns out of it once is much faster
            selection = self.X[:, index].astype(dtype, copy=False).toarray()
        else:
            selection = np.empty((self.shape[0], len(index)), dtype)
        for rows in _blocks(self.shape[0], ROW_BLOCK):
            block = selection[rows]
            if not is_sparse:
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

    def _dense_blocks(self, size):
        """Rows of a dense X as they are meant, so many at a time.

        Inner products are taken of these. To subtract what the centre adds from
        those of X would cancel all digits where means are large.

        Yields
        ------
        rows : slice
        block : ndarray
        """
        for rows in _blocks(self.shape[0], size):
            block = self.X[rows]
            if self.center is not None:
                block = block - self.center.T
            if self.row_scale is not None:
                block = block * self.row_scale[rows]
            yield rows, block

    def gram(self):
        """Inner products of the columns, dense, (n_columns, n_columns)."""
        if sparse.issparse(self.X):
            return self.weighted_gram(np.ones((self.shape[0], 1), self.dtype))
        size = _product_size(self.shape[1])
        blocks = (block.T for _, block in self._dense_blocks(size))
        return _sum_of_squares(blocks, self.shape[1], self.dtype)

    def outer_gram(self):
        """Inner products of the rows, dense, (n_rows, n_rows)."""
        if sparse.issparse(self.X):
            product = self._sparse_outer_gram()
        else:
            parts = _blocks(self.shape[1], _product_size(self.shape[0]))
            blocks = (self._centered_columns(columns) for columns in parts)
            product = _sum_of_squares(blocks, self.shape[0], self.dtype)
        if self.row_scale is not None:
            product *= self.row_scale
            product *= self.row_scale.T
        return product

    def _centered_columns(self, columns):
        block = self.X[:, columns]
        return block if self.center is None else block - self.center[columns].T

    def weighted_gram(self, weights):
        """The design' diag(weights) design, dense, (n_columns, n_columns).

        Parameters
        ----------
        weights : ndarray of shape (n_rows, 1)
            Of either sign.
        """
        if sparse.issparse(self.X):
            return self._sparse_weighted_gram(weights)
        product = np.zeros((self.shape[1], self.shape[1]), self.dtype)
        for rows, block in self._dense_blocks(_product_size(self.shape[1])):
            product += block.T @ (block * weights[rows])
        return product

    def _sparse_weighted_gram(self, weights):
        if self.row_scale is not None:
            weights = weights * self.row_scale**2
        product = (self.X.T @ self.X.multiply(weights).tocsr()).toarray()
        if self.center is not None:
            # With c for the centre: X'WX - c (X'w)' - (X'w - sum(w) c) c'
            total = self.X.T @ weights
            rest = total - weights.sum() * self.center
            _subtract_outer(product, self.center, total)
            _subtract_outer(product, rest, self.center)
        return product

    def _sparse_outer_gram(self):
        product = (self.X @ self.X.T).toarray()
        if self.center is not None:
            ones = np.ones((self.shape[0], 1), self.dtype)
            shift = self.X @ self.center
            _subtract_outer(product, ones, shift)
            _subtract_outer(product, shift - (self.center**2).sum(), ones)
        return product

    def smaller_gram(self):
        """Inner products along the smaller side: :meth:`gram` or :meth:`outer_gram`."""
        n_rows, n_columns = self.shape
        return self.gram() if n_columns <= n_rows else self.outer_gram()

    def is_zero(self):
        """Whether all entries are zero; centred, whether all columns are constant."""
        is_sparse = sparse.issparse(self.X)
        if self.center is None:
            return not (self.X.data if is_sparse else self.X).any()
        if is_sparse:
            return (self.X.max(axis=0) - self.X.min(axis=0)).nnz == 0
        blocks = _blocks(self.shape[0], ROW_BLOCK)
        return all((self.X[rows] == self.X[0]).all() for rows in blocks)

    def spectrum(self):
        """Eigenvalues of (design' design) / n_rows, without the structural zeros.

        Returns
        -------
        eigenvalues : ndarray of shape (min(n_rows, n_columns),), float64
            In increasing order, clipped at zero.
        """
        # In place: the matrix may be as large as X.
        inner = self.smaller_gram().T
        eigenvalues = eigvalsh(inner, overwrite_a=True, check_finite=False)
        return np.clip(eigenvalues.astype(np.float64) / self.shape[0], 0.0, None)

    def top_eigenvalue(self):
        """Largest eigenvalue of (design' design) / n_rows.

        Exact for small designs, else from Lanczos iterations started at a
        fixed vector, with a margin of 2% for what they may miss. It depends on
        X alone.
        """
        n_rows, n_columns = self.shape
        if self.is_zero():
            return 0.0
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
            return self._sparse_squared_row_norms()
        blocks = self._dense_blocks(_block_size(self.shape[1]))
        norms = [np.einsum("ij,ij->i", block, block) for _, block in blocks]
        return np.concatenate(norms)

    def _sparse_squared_row_norms(self):
        norms = np.asarray(self.X.multiply(self.X).sum(axis=1)).reshape(-1, 1)
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
        for _, block in self._dense_blocks(_block_size(self.shape[1])):
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


def _block_size(n_columns):
    """Rows of a block that stays in cache."""
    return max(ROW_BLOCK, BLOCK_ENTRIES // max(n_columns, 1))


def _product_size(side):
    """Rows of a block, for inner products of so many columns, which may be none."""
    side = max(side, 1)
    size = min(PRODUCT_MULTIPLICATIONS // side**2, PRODUCT_ENTRIES // side)
    return max(ROW_BLOCK, size)


def _blocks(n_rows, size):
    """Slices of so many rows, one after the other."""
    return [slice(first, first + size) for first in range(0, n_rows, size)]


def _subtract_outer(product, left, right):
    """product -= left right', without a second matrix of that size."""
    for rows in _blocks(len(product), ROW_BLOCK):
        product[rows] -= left[rows] @ right.T


def _sum_of_squares(blocks, side, dtype):
    """The sum of ``block @ block.T`` over blocks with so many rows.

    By NumPy: the threads of another BLAS beside it would be in its way.
    """
    product = np.zeros((side, side), dtype)
    strips = _blocks(side, STRIP)
    for block in blocks:
        for rows in strips:
            product[rows, rows.start :] += block[rows] @ block[rows.start :].T
    for rows in strips:  # the lower triangle from the upper one
        product[rows.stop :, rows] = product[rows, rows.stop :].T
    return product


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
        # The loss is convex, and a symmetric product is half the work.
        matrix[:, k, :, k] = design.scaled_rows(np.sqrt(curvature[:, k, [k]])).gram()
        for m in range(k):
            part = design.weighted_gram(curvature[:, k, [m]])
            matrix[:, k, :, m] = matrix[:, m, :, k] = part
    return matrix
