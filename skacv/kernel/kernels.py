"""Kernel functions of two sets of rows, and checks of those that users write.

Add a kernel here: a frozen dataclass that is called with rows (n, d) and (m, d) and
returns (n, m) in their dtype, with ``diagonal(X)``, the k(x, x) of every row, and
``is_positive`` if it is always positive semi-definite. List it in ``KERNELS`` if it has
a name. Named kernels are computed in place, on the device of the rows.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.extmath import row_norms, safe_sparse_dot

from ..optim.blocks import slices
from ..optim.costs import CALL, DERIVATIVE
from ..optim.kernel_matrix import as_slice, row_blocks
from ..optim.namespaces import (
    as_dtype,
    dtype_of,
    is_on_device,
    namespace_of,
    part_of,
    to_numpy,
)

# Entries of a kernel matrix may be asymmetric by this share of the largest, and
# eigenvalues negative.
TOLERANCE = 1e-5


def squared_distances(X, Z, n_roundings=8):
    """Squared Euclidean distances between rows, (n, m), zero up to ``n_roundings``."""
    # Far from the origin, distances in single precision would be lost to rounding.
    if not sparse.issparse(X):
        center = namespace_of(Z).mean(Z, axis=0)
        X, Z = X - center, Z - center
    with np.errstate(over="ignore", invalid="ignore"):  # of new rows, which may be far
        squared, norms = inner_products(-2 * X, Z), squared_norms(X)[:, None]
        squared += norms
        squared += squared_norms(Z)
    # The root of an error would not be small.
    precision = np.finfo(dtype_of(squared))
    squared[squared < n_roundings * float(precision.eps) * norms] = 0
    is_far = ~np.isfinite(to_numpy(norms))[:, 0]
    if is_far.any():  # kernels are zero there
        squared[is_far] = float(precision.max) ** 0.5
    return squared


def inner_products(X, Z):
    """Inner products of two sets of rows, (n, m), dense."""
    return X @ Z.T if is_on_device(X) else safe_sparse_dot(X, Z.T, dense_output=True)


def squared_norms(X):
    """Squared norms of rows, (n,)."""
    if is_on_device(X):
        return namespace_of(X).sum(X**2, axis=1)
    return row_norms(X, squared=True)


def exponential(array):
    """exp of the entries, in place in NumPy."""
    if is_on_device(array):
        return namespace_of(array).exp(array)
    return np.exp(array, out=array)


@dataclass(frozen=True)
class RadialKernel:
    """A kernel of the distance.

    A subclass has ``profile(squared)``, its values at squared distances, in place, and
    ``slope(squared)``, the derivative of these by the squared distance, in NumPy.
    """

    gamma: float
    is_positive = True
    # Whether gamma multiplies the distance, not its square.
    is_of_distance = False

    def __call__(self, X, Z):
        return self.profile(self.squared_distances(X, Z))

    def squared_distances(self, X, Z):
        """Squared distances between rows, a new array."""
        return squared_distances(X, Z)

    def diagonal(self, X):
        """k(x, x) of every row, (n,)."""
        return np.ones(X.shape[0])


class Gaussian(RadialKernel):
    """k(x, z) = exp(-gamma ||x - z||^2)."""

    def profile(self, squared):
        squared *= -self.gamma
        return exponential(squared)

    def slope(self, squared):
        return -self.gamma * np.exp(-self.gamma * squared)


class Laplacian(RadialKernel):
    """k(x, z) = exp(-gamma ||x - z||), of the Euclidean distance."""

    is_of_distance = True

    def profile(self, squared):
        squared **= 0.5
        squared *= -self.gamma
        return exponential(squared)

    def slope(self, squared):
        # At its own row the kernel has a kink, with slopes of both signs: their mean.
        distance = np.sqrt(squared)
        distance[distance == 0] = np.inf
        slope = np.exp(-self.gamma * distance)
        slope *= -0.5 * self.gamma
        slope /= distance
        return slope


class Matern(RadialKernel):
    """k(x, z) = (1 + gamma ||x - z||) exp(-gamma ||x - z||), of smoothness 3/2."""

    is_of_distance = True

    def profile(self, squared):
        squared **= 0.5
        squared *= self.gamma
        factor = 1 + squared
        squared *= -1
        return exponential(squared) * factor

    def slope(self, squared):
        return -0.5 * self.gamma**2 * np.exp(-self.gamma * np.sqrt(squared))


class Cauchy(RadialKernel):
    """k(x, z) = 1 / (1 + gamma ||x - z||^2)."""

    def profile(self, squared):
        squared *= self.gamma
        squared += 1
        squared **= -1.0
        return squared

    def slope(self, squared):
        return -self.gamma / (1 + self.gamma * squared) ** 2


@dataclass(frozen=True)
class Polynomial:
    """k(x, z) = (gamma x'z + coef0)^degree."""

    gamma: float
    degree: float
    coef0: float
    is_positive = False

    def __call__(self, X, Z):
        return self._of_products(inner_products(X, Z))

    def diagonal(self, X):
        """k(x, x) of every row, (n,)."""
        return self._of_products(to_numpy(squared_norms(X)).astype(np.float64))

    def _of_products(self, products):
        products *= self.gamma
        products += self.coef0
        products **= self.degree
        return products


@dataclass(frozen=True)
class CallableKernel:
    """A kernel that a user has written, ``function(X, Z)``."""

    function: Callable
    is_positive = False

    def __call__(self, X, Z):
        values = self.function(X, Z)
        values = values.toarray() if sparse.issparse(values) else np.asarray(values)
        expected = X.shape[0], Z.shape[0]
        if values.shape != expected:
            raise ValueError(
                f"kernel must return an array of shape {expected} for rows of "
                f"shape {X.shape} and {Z.shape}, got {values.shape}."
            )
        return values.astype(X.dtype, copy=False)

    def diagonal(self, X):
        """k(x, x) of every row, (n,)."""
        # Entries of a square block cost about as much as its call.
        n_rows = int(np.sqrt(CALL / DERIVATIVE))
        parts = [X[rows] for rows in slices(X.shape[0], n_rows)]
        return np.concatenate([np.diagonal(self(part, part)) for part in parts])


@dataclass(frozen=True)
class Precomputed:
    """Entries of a kernel matrix; X and Z are row numbers, (n, 1), of any type."""

    matrix: np.ndarray
    is_positive = False

    def __call__(self, X, Z):
        rows, columns = (numbers[:, 0].astype(np.intp) for numbers in (X, Z))
        return self.matrix[np.ix_(rows, columns)]

    def diagonal(self, X):
        """k(x, x) of every row, (n,)."""
        return self.matrix[X[:, 0], X[:, 0]].astype(np.float64)


class SquaredDistance:
    """||x - z||^2; radial kernels are functions of it."""

    def __call__(self, X, Z):
        return squared_distances(X, Z)

    def diagonal(self, X):
        """Zero for every row, (n,)."""
        return np.zeros(X.shape[0])


@dataclass(frozen=True)
class KernelOfDistances:
    """A radial kernel of squared distances that are kept.

    X and Z are row numbers, (n, 1), of any type."""

    squared: np.ndarray
    kernel: RadialKernel
    is_positive = True

    @property
    def is_of_distance(self):
        """Whether gamma multiplies the distance, not its square."""
        return self.kernel.is_of_distance

    def __call__(self, X, Z):
        return self.kernel.profile(self.squared_distances(X, Z))

    def squared_distances(self, X, Z):
        """Squared distances between rows, a new array."""
        # Slices of all rows are copied in a fifth of the time of single entries.
        parts = (as_slice(numbers[:, 0].astype(np.intp)) for numbers in (X, Z))
        return part_of(self.squared, *parts).copy()

    def slope(self, squared):
        """The derivative of values by squared distances."""
        return self.kernel.slope(squared)

    def diagonal(self, X):
        """k(x, x) of every row, (n,)."""
        return self.kernel.diagonal(X)


RADIAL_KERNELS = {
    "rbf": Gaussian,
    "laplacian": Laplacian,
    "matern": Matern,
    "cauchy": Cauchy,
}
KERNELS = {
    **{
        name: lambda gamma, degree, coef0, kernel=kernel: kernel(gamma)
        for name, kernel in RADIAL_KERNELS.items()
    },
    "polynomial": Polynomial,
}


def check_precomputed(matrix):
    """Raise unless a matrix that a user passes as kernel is square and symmetric."""
    n_rows, n_columns = matrix.shape
    if n_rows != n_columns:
        raise ValueError(
            'kernel="precomputed" needs the square kernel matrix of the training '
            f"rows, got one of shape {matrix.shape}."
        )
    parts = row_blocks(matrix, n_columns, matrix.dtype)
    largest = max(np.abs(matrix[rows]).max() for rows in parts)
    for rows in parts:
        if np.abs(matrix[rows] - matrix[:, rows].T).max() > TOLERANCE * largest:
            raise ValueError(
                'kernel="precomputed" needs a symmetric kernel matrix, but entries '
                "(i, j) and (j, i) differ."
            )


def check_kernel(values):
    """Raise unless a square part of a kernel matrix, in double precision, is valid."""
    if not np.isfinite(values).all():
        raise ValueError("kernel must return finite numbers.")
    largest = np.abs(values).max()
    if np.abs(values - values.T).max() > TOLERANCE * largest:
        raise ValueError("kernel must be symmetric: k(x, z) = k(z, x).")
    shifted = values.copy()
    # The trace bounds the largest eigenvalue, the largest row sum does better.
    shift = TOLERANCE * np.abs(values).sum(axis=1).max()
    shifted[np.diag_indices_from(shifted)] += shift if shift > 0 else 1.0
    try:
        np.linalg.cholesky(shifted)
    except np.linalg.LinAlgError:
        raise ValueError(
            "kernel must be positive semi-definite: its matrix on "
            f"{len(values)} of the training rows has negative eigenvalues."
        ) from None


def check_squares(X):
    """Raise if squares of rows, which named kernels need, overflow."""
    with np.errstate(over="ignore"):
        norms = to_numpy(squared_norms(X))
    if not np.isfinite(norms).all():
        raise ValueError(f"Squares of entries of X overflow in {dtype_of(X)}: scale X.")


def scale_gamma(name, X, weights, factor=1.0):
    """A multiple of gamma="scale", which is 1 / (n_features Var(X)), as in SVC.

    Shapes: weights (n_rows,), of the rows.
    """
    if (weights != weights[0]).any():
        X = X if sparse.issparse(X) else to_numpy(X)
        squares = X.multiply(X) if sparse.issparse(X) else X * X
        mean, mean_square = (
            np.average(np.ravel(part.mean(axis=1)), weights=weights)
            for part in (X, squares)
        )
        variance = float(mean_square - mean**2)
    elif sparse.issparse(X):
        variance = X.multiply(X).mean() - X.mean() ** 2
    else:
        variance = float(namespace_of(X).var(as_dtype(X, np.float64)))
    return gamma_of(name, X.shape[1] * variance, factor)


def gamma_of(name, spread, factor):
    """A multiple of 1 / spread, of rows with this mean square; or its square root."""
    gamma = factor / spread if spread > np.finfo(np.float64).tiny else factor
    kernel = RADIAL_KERNELS.get(name)
    is_of_distance = kernel is not None and kernel.is_of_distance
    return float(np.sqrt(gamma) if is_of_distance else gamma)
