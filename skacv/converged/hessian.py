"""The Hessian of an expanded objective: solved, and its leverages."""

import numpy as np
from scipy.linalg import cho_solve, cholesky, eigh, solve_triangular

from ..optim.blocks import LARGE_BYTES, blocks
from ..optim.problem import hessian


def factor(local):
    """A solver of the Hessian: its Cholesky factor, or its spectrum if singular."""
    return cholesky_factor(local) or Spectrum(_hessian(local))


def cholesky_factor(local):
    """The Cholesky factor of the Hessian; None if it is singular, up to rounding."""
    hessian = _hessian(local)
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
    """The solver of a definite Hessian H = L L', in the precision of L."""

    def __init__(self, lower):
        self.lower = lower

    def whiten(self, columns):
        """L^-1 of columns: their inner products are those in H^-1."""
        if not columns.size:  # older SciPy refuses these
            return columns
        return solve_triangular(self.lower, columns, lower=True, check_finite=False)

    def solve(self, columns):
        columns = columns.astype(self.lower.dtype, copy=False)
        if not columns.size:
            return columns
        return cho_solve((self.lower, True), columns, check_finite=False)


class Spectrum:
    """The solver of a singular Hessian: its pseudo-inverse, by its eigenvectors."""

    def __init__(self, hessian):
        values, vectors = eigh(hessian, check_finite=False)
        largest = np.abs(values).max(initial=0)
        keep = values > 10 * len(values) * np.finfo(float).eps * largest
        self.half_inverse = vectors[:, keep] / np.sqrt(values[keep])

    def whiten(self, columns):
        """The root of the pseudo-inverse times columns, by eigenvectors."""
        return self.half_inverse.T @ columns

    def solve(self, columns):
        return self.half_inverse @ self.whiten(columns)


def _hessian(local):
    size, free = local.free.size, local.free.ravel()
    matrix = hessian(local.design, local.curvature).reshape(size, size)
    matrix[np.diag_indices(size)] += local.ridge.ravel()
    for same in _left_free(local):
        matrix[np.ix_(same, same)] += matrix[same, same].mean() / len(same)
    return matrix if free.all() else matrix[np.ix_(free, free)]


def _left_free(local):
    """Indices of coefficients whose sum over outputs has no curvature, by column."""
    # Adding a constant to the intercepts of all classes changes no probability, nor do
    # the gradients of rows point that way. Any curvature of the sum of the intercepts
    # keeps that sum as it is, which is what solvers do, and changes nothing else. The
    # same holds for every coefficient without a penalty.
    n_outputs = local.free.shape[1]
    if n_outputs == 1:
        return []
    everywhere = local.free.all(axis=1) & ~local.ridge.any(axis=1)
    return np.flatnonzero(everywhere)[:, None] * n_outputs + np.arange(n_outputs)


def leverages(local, solver):
    """x_i'H^-1 x_i of every row and two outputs, (n_rows, n_outputs, n_outputs)."""
    n_rows, n_outputs = local.derivative.shape
    every = np.arange(local.design.shape[1])
    result = np.empty((n_rows, n_outputs, n_outputs))
    # Dense rows, as columns of every output, and their transforms.
    row_bytes = 8 * (1 + 2 * n_outputs) * local.free.size
    for rows in blocks(n_rows, row_bytes, LARGE_BYTES, least=128):
        X = local.design.rows(rows).dense_columns(every, local.design.dtype)
        transformed = [solver.whiten(place(local, X, k)) for k in range(n_outputs)]
        for k in range(n_outputs):
            for m in range(n_outputs):
                product = np.einsum("ti,ti->i", transformed[k], transformed[m])
                result[rows, k, m] = product
    return result


def place(local, X, k):
    """Rows of X as columns for the coefficients of output k, zero for other outputs."""
    if local.free.shape[1] == 1:  # the output has all columns
        return X.T
    placed = np.zeros((*local.free.shape, len(X)))
    placed[:, k] = X.T
    return placed[local.free]


class ConjugateGradients:
    """The solver of a Hessian of one output that is too large to form."""

    def __init__(self, local):
        self.design, self.ridge = local.design, local.ridge
        self.curvature = local.curvature[:, 0]
        norms, _ = self.design.scaled_rows(np.sqrt(self.curvature)).column_sizes()
        self.diagonal = norms[:, None] ** 2 + self.ridge
        self.diagonal[self.diagonal == 0] = 1

    def product(self, columns):
        slopes = self.curvature * self.design.dot(columns)
        return self.design.t_dot(slopes) + self.ridge * columns

    def solve(self, columns, tol=1e-6, max_iter=1000):
        """H^-1 of columns, up to residuals of ``tol`` times their size."""
        result = np.zeros_like(columns)
        residual = columns.copy()
        scaled = residual / self.diagonal
        direction = scaled.copy()
        size = (residual * scaled).sum(axis=0)
        goal = tol**2 * size
        for _ in range(max_iter):
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
            f"Conjugate gradients do not converge in {max_iter} iterations: the "
            "Hessian is nearly singular. Use a stronger penalty."
        )
