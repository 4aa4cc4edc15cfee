"""A quadratic expansion of an objective: its Hessian, solved, and its leverages."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, cholesky, eigh, qr, solve_triangular

# Rows whose leverages are taken at a time.
ROW_BLOCK = 512
# Conjugate gradients end at this residual, relative to the right-hand side.
CG_TOLERANCE = 1e-6
CG_MAX_ITER = 1000


class Expansion(NamedTuple):
    """An objective to second order around the fitted coefficients.

    The coefficients that are free to move are stacked output after output, an
    intercept last of each; n_stacked is their number.

    Attributes
    ----------
    designs : list of {ndarray, CSR matrix} of shape (n_rows, n_free)
        The columns of these coefficients, of every output.
    predictor : ndarray of shape (n_rows, n_outputs)
    derivative : ndarray of shape (n_rows, n_outputs)
        Times the weights of the rows.
    curvature : ndarray of shape (n_rows, n_outputs, n_outputs)
        Times the weights of the rows.
    gradients : ndarray of shape (n_stacked, 1)
        Of the whole objective.
    penalty_gradients : ndarray of shape (n_stacked, 1)
        Of the penalty.
    ridge : ndarray of shape (n_stacked,)
        Curvature of the penalty.
    has_intercept : bool
    """

    designs: list[np.ndarray | sparse.csr_matrix]
    predictor: np.ndarray
    derivative: np.ndarray
    curvature: np.ndarray
    gradients: np.ndarray
    penalty_gradients: np.ndarray
    ridge: np.ndarray
    has_intercept: bool

    @property
    def offsets(self):
        """Where the coefficients of every output start and end."""
        return np.cumsum([0, *(A.shape[1] for A in self.designs)])

    @property
    def is_shared(self):
        """Whether all outputs have the same columns."""
        return all(A is self.designs[0] for A in self.designs)


def reduced(local):
    """The same expansion in at most as many coefficients as rows.

    Predictors see the coefficients along the rows of X alone, and a ridge
    penalty acts alike on these and on the directions across; so X = Z Q' may be
    replaced by Z, coefficients by Q' of them. Nothing is done where X has no more
    columns than rows or where outputs use different columns.
    """
    A = local.designs[0]
    n_columns = A.shape[1] - local.has_intercept
    penalised = local.ridge.size and local.ridge[0] > 0
    if n_columns <= A.shape[0] or not (penalised and local.is_shared):
        return local
    rows, project = _row_space(A[:, :n_columns])
    ones = np.ones((len(rows), int(local.has_intercept)))

    def in_basis(stacked):
        parts = stacked.reshape(len(local.designs), -1)
        inner = project(parts[:, :n_columns].T).T
        return np.hstack([inner, parts[:, n_columns:]]).reshape(-1, 1)

    one = np.concatenate([np.full(rows.shape[1], local.ridge[0]), 0 * ones[0]])
    return local._replace(
        designs=[np.hstack([rows, ones])] * len(local.designs),
        gradients=in_basis(local.gradients),
        penalty_gradients=in_basis(local.penalty_gradients),
        ridge=np.tile(one, len(local.designs)),
    )


def _row_space(X):
    """Z with X = Z Q', Q' of orthonormal rows, no more than rows of X; and Q' times."""
    if not sparse.issparse(X):
        basis, upper = qr(X.T, mode="economic", check_finite=False)
        return upper.T, lambda columns: basis.T @ columns
    values, vectors = eigh((X @ X.T).toarray())
    keep = values > len(values) * np.finfo(float).eps * values[-1]
    sizes, vectors = np.sqrt(values[keep]), vectors[:, keep]
    # Q' is dense and as large as X would be: it is never formed.
    return vectors * sizes, lambda columns: (vectors / sizes).T @ (X @ columns)


def factor(local):
    """The Hessian, factored.

    Returns
    -------
    Cholesky or Spectrum
        The second where the Hessian is singular, up to rounding; it takes
        the pseudo-inverse.
    """
    hessian = _hessian(local)
    return cholesky_factor(hessian) or Spectrum(hessian)


def single_factor(local):
    """The Hessian factored in single precision, or None if that does not do."""
    fields = ("curvature", "gradients", "penalty_gradients", "ridge")
    single = {name: getattr(local, name).astype(np.float32) for name in fields}
    designs = [A.astype(np.float32) for A in local.designs]
    return cholesky_factor(_hessian(local._replace(designs=designs, **single)))


def cholesky_factor(hessian):
    """L of H = L L', or None where H is singular, up to rounding."""
    try:
        lower = cholesky(hessian, lower=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    pivots = lower.diagonal() ** 2
    rounding = 10 * len(pivots) * np.finfo(hessian.dtype).eps
    if (pivots <= rounding * hessian.diagonal()).any():
        return None
    return Cholesky(lower)


class Cholesky:
    """H = L L', solved in the precision of L."""

    def __init__(self, lower):
        self.lower = lower

    def whiten(self, columns):
        """L^-1 of the columns: their inner products are those in H^-1."""
        return solve_triangular(self.lower, columns, lower=True, check_finite=False)

    def solve(self, columns):
        """H^-1 of the columns."""
        columns = columns.astype(self.lower.dtype, copy=False)
        return cho_solve((self.lower, True), columns, check_finite=False)


class Spectrum:
    """The pseudo-inverse of H, by its eigenvectors."""

    def __init__(self, hessian):
        values, vectors = eigh(hessian, check_finite=False)
        largest = np.abs(values).max(initial=0)
        keep = values > 10 * len(values) * np.finfo(float).eps * largest
        self.half_inverse = vectors[:, keep] / np.sqrt(values[keep])

    def whiten(self, columns):
        """Half of the pseudo-inverse, of the columns."""
        return self.half_inverse.T @ columns

    def solve(self, columns):
        """The pseudo-inverse of the columns."""
        return self.half_inverse @ self.whiten(columns)


def _hessian(local):
    """Second derivatives in all free coefficients, dense."""
    offsets = local.offsets
    hessian = np.diag(local.ridge)
    n_outputs = len(local.designs)
    for k in range(n_outputs):
        for m in range(k, n_outputs):
            own, other = (slice(offsets[j], offsets[j + 1]) for j in (k, m))
            block = _weighted_product(local, k, m)
            hessian[own, other] += block
            if m > k:
                hessian[other, own] += block.T
    return hessian + _gauge(local, hessian) if n_outputs > 1 else hessian


def _weighted_product(local, k, m):
    """A_k' diag(curvature of k and m) A_m, dense."""
    left, right = local.designs[k], local.designs[m]
    weights = local.curvature[:, k, m][:, None]
    if sparse.issparse(left):
        return (left.T @ right.multiply(weights).tocsr()).toarray()
    if k == m:
        scaled = left * np.sqrt(weights)
        return scaled.T @ scaled
    return left.T @ (right * weights)


def _gauge(local, hessian):
    """Curvature for what coupled outputs leave free.

    Adding a constant to the intercepts of all classes changes no probability,
    nor do the gradients of rows point that way. Any curvature of the sum of the
    intercepts keeps that sum as it is, which is what solvers do, and changes
    nothing else. The same holds for every coefficient without a penalty.
    """
    gauge = np.zeros_like(hessian)
    if local.is_shared:
        n_free = local.designs[0].shape[1]
        places = local.offsets[:-1] + np.flatnonzero(local.ridge[:n_free] == 0)[:, None]
    else:
        # Each class has columns of its own: only the intercepts are common.
        places = local.offsets[1:][None, :] - 1 if local.has_intercept else []
    for same in places:
        gauge[np.ix_(same, same)] = hessian[same, same].mean() / len(same)
    return gauge


def leverages(local, solver):
    """x_i'H^-1 x_i of every row, between every two outputs.

    Returns
    -------
    ndarray of shape (n_rows, n_outputs, n_outputs)
    """
    n_rows, n_outputs = local.predictor.shape
    blocks = np.empty((n_rows, n_outputs, n_outputs))
    for first in range(0, n_rows, ROW_BLOCK):
        rows = slice(first, first + ROW_BLOCK)
        whitened = [solver.whiten(_placed(local, k, rows)) for k in range(n_outputs)]
        for k in range(n_outputs):
            for m in range(n_outputs):
                product = np.einsum("ti,ti->i", whitened[k], whitened[m])
                blocks[rows, k, m] = product
    return blocks


def _placed(local, k, rows):
    """Some rows of output k as columns, zero in the places of other outputs."""
    block = local.designs[k][rows]
    block = block.toarray() if sparse.issparse(block) else block
    if len(local.designs) == 1:
        return block.T
    offsets = local.offsets
    placed = np.zeros((offsets[-1], len(block)))
    placed[offsets[k] : offsets[k + 1]] = block.T
    return placed


class ConjugateGradients:
    """H^-1 by conjugate gradients, for one output and a Hessian too large to form.

    All right-hand sides share their products with X; the diagonal of H is the
    preconditioner.
    """

    def __init__(self, local):
        self.A = local.designs[0]
        self.curvature = local.curvature[:, 0]
        self.ridge = local.ridge[:, None]
        squared = self.A.multiply(self.A) if sparse.issparse(self.A) else self.A**2
        self.diagonal = np.asarray(squared.T @ self.curvature) + self.ridge
        self.diagonal[self.diagonal == 0] = 1

    def product(self, columns):
        """H times the columns."""
        return self.A.T @ (self.curvature * (self.A @ columns)) + self.ridge * columns

    def solve(self, columns):
        """H^-1 of the columns.

        Raises
        ------
        ValueError
            If it does not converge.
        """
        result = np.zeros_like(columns)
        residual = columns.copy()
        scaled = residual / self.diagonal
        direction = scaled.copy()
        size = (residual * scaled).sum(axis=0)
        goal = CG_TOLERANCE**2 * size
        for _ in range(CG_MAX_ITER):
            if (size <= goal).all():
                return result
            product = self.product(direction)
            bend = (direction * product).sum(axis=0)
            length = np.divide(size, bend, out=np.zeros_like(size), where=bend > 0)
            result += length * direction
            residual -= length * product
            scaled = residual / self.diagonal
            former, size = size, (residual * scaled).sum(axis=0)
            turn = np.divide(size, former, out=np.zeros_like(size), where=former > 0)
            direction = scaled + turn * direction
        raise ValueError(
            f"Conjugate gradients do not converge in {CG_MAX_ITER} iterations: the "
            "Hessian is nearly singular. Penalise the coefficients more."
        )
