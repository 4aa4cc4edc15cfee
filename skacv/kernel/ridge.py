"""Kernel ridge regression on centres, its strength chosen by exact leave-one-out.

With weights w of sum one, v = sqrt(w), D = diag(v) and every row a centre, the fit of
strength s solves

    (D K D + s I) c + b v = D y,    v'c = 0,    f = sum_i v_i c_i k(., x_i) + b,

and the residual of row i without it is c_i / (v_i C_ii), C the inverse of the bordered
matrix: (D K D + s I)^-1 less its part along v. With m centres that are fewer, features
Z = k(X, C) L'^-1, L L' = k(C, C), centred by the weights, have the solution

    b = (Z'WZ + s I)^-1 Z'W y,

and the residual of row i without it is its residual divided by 1 - w_i (1 + z_i'(Z'WZ +
s I)^-1 z_i).

Where every row is a centre, a Cholesky decomposition for each strength takes a tenth of
the time of eigenvectors, and few need to be tried: the error is a smooth function of
the strength, and former fits tell about where it is least. Of fewer centres features
take most of the time, and eigenvectors give all strengths. In single precision a
decomposition takes half of its time. A strength too weak for single precision goes with
a smooth kernel, whose matrix has a low rank but for what the strength takes away: Z are
then the columns of its Cholesky decomposition with pivots, and these are the centres.

How many rows are centres is chosen by the same leave-one-out errors: twice as many are
tried until that no longer lowers them.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh, get_blas_funcs, get_lapack_funcs
from scipy.linalg.lapack import dpstrf

from ..optim.blocks import LARGE_BYTES, MEMORY_BYTES, blocks
from ..optim.kernel_matrix import row_blocks
from ..optim.namespaces import as_dtype, rows_in, to_numpy
from ..risk.held_out_rows import drawn_units
from .data import working_dtype
from .kernels import Precomputed, squared_norms

# Strengths that are compared, in multiples of the mean of k(x, x): from nearly none,
# for targets without noise, to that of a constant.
STRENGTHS = 10.0 ** np.arange(-9, 1.1, 0.5)
# The first one that is tried, if no former fit says more. A weaker one has to lower the
# error by this share: where errors are flat down to zero it would not end.
FIRST_STRENGTH, LEAST_GAIN = 1e-3, 2e-4
# From so many columns on single precision is used, down to this strength, at which
# errors of rows left out have four digits. A solution is refined to this precision.
SINGLE_COLUMNS, SINGLE_STRENGTH = 250, 1e-5
REFINED, MOST_REFINEMENTS = 1e-12, 10
# Pivots leave at most this share of the strength of w k(x, x), w the weight of a row.
# If they are more than this share of the rows, all rows take as long, as they do where
# there are fewer rows than this.
LEFT_BY_PIVOTS, MOST_PIVOTS, LEAST_PIVOTED = 0.005, 0.6, 400
# Below so many columns LAPACK inverts triangles about as fast as products do.
INVERTED_COLUMNS = 128
# This share of its trace is added to the kernel at the centres, which may be singular:
# rounding errors of features grow by the root of its inverse.
ROUNDING = {np.float64: 1e-12, np.float32: 1e-7}
# A row of leverage one, as one without others like it, leaves no residual.
LEAST_LEFT = 1e-12
# Rows that are left out to choose a strength: a standard error of a few percent, and
# much less for the difference of two strengths.
MOST_LEFT_OUT = 2000
# Second moments of fewer centres are those of at least so many rows, and of so many for
# each centre. Of more rows these precondition conjugate gradients, whose steps
# take two products of the kernel and a vector, in the place of those of features with
# each other. They end where the squared distance to the solution is this share of the
# variance of the coefficients, the error times centres by rows.
LEAST_ROWS_OF_MOMENTS, ROWS_OF_MOMENTS = 10_000, 10
LEFT_OF_VARIANCE, MOST_PRODUCTS = 0.05, 6
# The fewest centres of many rows. Centres are enough if half of them are as good: if
# the other half lowers the leave-one-out error by no more than the first share of it.
# Where they explain little so far, it must not add more than the second share to that,
# or more than two standard errors.
FEWEST_CENTERS, SAME_ERROR, SAME_EXPLAINED = 500, 0.05, 0.25
# They are compared on so many rows for each.
ROWS_PER_CENTER = 4


def leading_root(gram, n_functions, null):
    """R, of at most ``n_functions`` columns, with R R' = gram^-1 in their span.

    Columns are of the largest eigenvalues, and none of those below ``null`` times the
    largest, which would be rounding errors. A kernel that is zero has one column.
    """
    values, vectors = eigh((gram + gram.T) / 2)
    kept = values > null * values[-1]
    kept[-1] = True
    kept[:-n_functions] = False
    return (vectors / np.sqrt(np.where(values > 0, values, 1)))[:, kept]


def dtype_for(n_columns, strength):
    """The precision of decompositions, for a multiple of the mean of k(x, x)."""
    is_single = n_columns >= SINGLE_COLUMNS and strength >= SINGLE_STRENGTH
    return np.float32 if is_single else np.float64


def invert_lower(lower):
    """Put the inverse into a lower triangular matrix, in the order of LAPACK."""
    # By halves, in products of triangles: LAPACK's own takes twice the time.
    n = len(lower)
    if n <= INVERTED_COLUMNS:
        lower[:] = get_lapack_funcs("trtri", (lower,))(lower, lower=1)[0]
        return
    half, multiply = n // 2, get_blas_funcs("trmm", (lower,))
    first, last, below = lower[:half, :half], lower[half:, half:], lower[half:, :half]
    invert_lower(first)
    invert_lower(last)
    product = multiply(-1.0, last, below, lower=1)
    below[:] = multiply(1.0, first, product, side=1, lower=1, overwrite_b=1)


class ShiftedInverse:
    """(A + s I)^-1 = R'R of a positive semi-definite matrix A in double precision.

    R is lower triangular, in the precision ``dtype``."""

    def __init__(self, matrix, strength, dtype):
        self.matrix, self.strength = matrix, strength
        shifted = matrix.astype(dtype)
        shifted[np.diag_indices_from(shifted)] += dtype(strength)
        # The transpose, which is the same, is in the order of LAPACK.
        decompose = get_lapack_funcs("potrf", (shifted,))
        lower, failed = decompose(shifted.T, lower=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the matrix is not positive definite")
        invert_lower(lower)
        self.root = lower

    def diagonal(self):
        """The entries of the diagonal, (n,)."""
        return squared_norms(self.root.T).astype(np.float64)

    def forms(self, vectors):
        """z'(A + s I)^-1 z of every row z of ``vectors`` (n_vectors, n)."""
        times = get_blas_funcs("trmm", (self.root,))
        columns = vectors.T.astype(self.root.dtype, copy=False)
        product = times(1.0, self.root, columns, lower=1)
        return squared_norms(product.T).astype(np.float64)

    def times(self, vectors):
        """The product with columns (n, k), in the precision of R."""
        scale = np.abs(vectors).max(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        multiply = get_blas_funcs("trmm", (self.root,))
        columns = np.asfortranarray((vectors / scale).astype(self.root.dtype))
        for transposed in (0, 1):
            settings = {"lower": 1, "trans_a": transposed, "overwrite_b": 1}
            columns = multiply(1.0, self.root, columns, **settings)
        return columns * scale

    def solve(self, vectors):
        """The same in double precision, by iterative refinement."""
        solution, shares = self.times(vectors), []
        for _ in range(MOST_REFINEMENTS):
            step = self.times(
                vectors - self.matrix @ solution - self.strength * solution
            )
            solution += step
            sizes = np.abs(solution).max(axis=0)
            shares.append(np.abs(step).max(axis=0) / np.where(sizes > 0, sizes, 1.0))
            # Each step is smaller than the one before by about the same factor.
            if np.all(shares[0] * shares[-1] <= REFINED):
                break
        return solution


class DiagonalInverse:
    """(A + s I)^-1 of a diagonal matrix, of which ``matrix`` has the entries, (n,)."""

    def __init__(self, matrix, strength):
        self.strength, self.entries = strength, 1 / (matrix + strength)

    def forms(self, squares):
        """z'(A + s I)^-1 z of rows z, of which ``squares`` has those of entries."""
        return squares @ self.entries

    def solve(self, vectors):
        """The product with columns (n, k)."""
        return self.entries[:, None] * vectors


class EveryRow:
    """Fits that have every row as a centre.

    Shapes: gram (n_rows, n_rows), which is overwritten; target (n_rows, n_outputs);
    shares (n_rows,), the weights; left_out (n_left_out,), rows. The matrix of a kernel
    that is smooth may have a low rank."""

    # Which of the rows are centres.
    centers = slice(None)

    def __init__(self, gram, target, shares, left_out, is_smooth):
        self.target, self.root = target, np.sqrt(shares)[:, None]
        gram *= self.root
        gram *= self.root.T
        self.matrix, self.left_out = gram, left_out
        has_pivots = is_smooth and len(target) >= LEAST_PIVOTED
        self.of_pivots, self.least_strength = None, np.inf if has_pivots else 0.0
        self.right = self.root * np.column_stack([np.ones(len(target)), target])

    def for_weak(self, strength):
        """Fits of strengths that are too weak for single precision."""
        if strength < self.least_strength:
            # The pivots serve this strength and the next weaker one that is tried.
            self.least_strength = 0.3 * strength
            tolerance = LEFT_BY_PIVOTS * self.least_strength
            lower, pivots, rank, _ = dpstrf(self.matrix.T, tol=tolerance, lower=1)
            self.of_pivots = None
            if rank <= MOST_PIVOTS * len(lower):
                self.of_pivots = Pivots(self, lower[:, :rank], pivots - 1)
            else:  # of weaker ones there are more
                self.least_strength = 0.0
        return self.of_pivots or self

    def residuals_left_out(self, inverse, solution):
        """Those of the rows left out, (n_left_out, n_outputs)."""
        coef, _ = self._coefficients(solution)
        along = solution[:, :1] ** 2 / (self.root[:, 0] @ solution[:, 0])
        left = inverse.strength * (inverse.diagonal()[:, None] - along)
        residuals = inverse.strength * coef / self.root
        return (residuals / np.maximum(left, LEAST_LEFT))[self.left_out]

    def function(self, solution):
        """Dual coefficients (n_centers, n_outputs) and intercepts."""
        coef, intercept = self._coefficients(solution)
        return self.root * coef, intercept

    def _coefficients(self, solution):
        intercept = self.root[:, 0] @ solution / (self.root[:, 0] @ solution[:, 0])
        return solution[:, 1:] - solution[:, :1] * intercept[1:], intercept[1:]


class OnFeatures:
    """Fits on features of centres, which a subclass has computed.

    Shapes: matrix, second moments of centred features, (n_columns, n_columns), or
    (n_columns,) where it is diagonal; right
    (n_columns, n_outputs), their products with targets; mean (n_columns,), of features;
    root (m, n_columns), from coefficients to dual ones; features (n_left_out,
    n_columns), centred, share (n_left_out, 1) and deviation (n_left_out, n_outputs),
    from the mean target ``center`` (n_outputs,), of rows left out."""

    # By how much their weights in ``matrix`` are larger than ``share``.
    share_too_much: Any = 0.0

    def residuals_left_out(self, inverse, solution):
        """Those of the rows left out, (n_left_out, n_outputs)."""
        forms = 1 + self.forms(inverse)[:, None]
        forms /= np.maximum(1 - self.share_too_much * forms, LEAST_LEFT)
        left = np.maximum(1 - self.share * forms, LEAST_LEFT)
        return (self.deviation - self.features @ solution) / left

    def forms(self, inverse):
        """z'(A + s I)^-1 z of the features of rows left out, (n_left_out,)."""
        return inverse.forms(self.features)

    def function(self, solution):
        """Dual coefficients (m, n_outputs) and intercepts."""
        return self.root @ solution, self.center - self.mean @ solution


class Pivots(OnFeatures):
    """Fits that have as centres the pivots of the matrix of :class:`EveryRow`."""

    def __init__(self, whole, lower, pivots):
        rank, left_out = lower.shape[1], whole.left_out
        self.centers = pivots[:rank]
        # Features times the roots of the weights.
        weighted = np.empty(lower.shape)
        weighted[pivots] = np.tril(lower)
        inverse = np.tril(lower[:rank])
        invert_lower(inverse)
        self.root = whole.root[self.centers] * inverse.T
        self.share = whole.root[left_out] ** 2
        self.center = whole.root[:, 0] @ (whole.root * whole.target)
        self.mean = whole.root[:, 0] @ weighted
        weighted -= whole.root * self.mean
        self.matrix = weighted.T @ weighted
        self.right = weighted.T @ (whole.root * (whole.target - self.center))
        self.features = weighted[left_out] / whole.root[left_out]
        self.deviation = whole.target[left_out] - self.center


class FewerCenters(OnFeatures):
    """Fits that have some of the rows as centres, on eigenvectors of their features.

    Moments are those of rows that are drawn, if all are many for each centre: then
    ``for_all_rows`` goes on from a solution to that of all.

    Shapes: centers (m, n_features); gram (m, m), which is overwritten; target (n_rows,
    n_outputs); shares (n_rows,), the weights; index (m,), the centres among rows."""

    centers = slice(None)

    def __init__(self, kernel, centers, gram, X, target, shares, index, left_out):
        (n_rows, _), m = target.shape, len(centers)
        most_drawn = max(LEAST_ROWS_OF_MOMENTS, ROWS_OF_MOMENTS * m)
        drawn, _ = drawn_units(n_rows, None, most_drawn)
        drawn = np.arange(n_rows)[drawn]  # among them are those left out
        dtype = working_dtype(len(drawn))
        if kernel.is_positive:
            jitter = ROUNDING[dtype] * np.trace(gram)
            gram[np.diag_indices(m)] += jitter
            lower = np.linalg.cholesky(gram)
            root = lower.copy(order="F").T
            invert_lower(root.T)
            of_centers = lower - jitter * root  # k(C, C) L'^-1, without the product
        else:
            root = leading_root(gram, m, ROUNDING[np.float32])
            of_centers = gram @ root
        self.all_rows = kernel, centers, X, target, shares, left_out
        shares = shares / shares[drawn].sum()
        self.center, n_columns = shares[drawn] @ target[drawn], root.shape[1]

        # Rows that are left out, in double precision; centres among them are known.
        features = np.empty((len(left_out), n_columns))
        _, are_centers, of_index = np.intersect1d(left_out, index, return_indices=True)
        features[are_centers] = of_centers[of_index]
        others = np.delete(np.arange(len(left_out)), are_centers)
        features[others] = kernel(to_array(X[left_out[others]]), centers) @ root

        # The other rows, in blocks: in single precision if they are many.
        others = np.setdiff1d(drawn, left_out)
        rows_of_blocks = (others[block] for block in row_blocks(others, m, dtype))
        in_blocks = centers.astype(dtype), root.astype(dtype)
        features_of_blocks = (
            (rows, kernel(to_array(X[rows], dtype), in_blocks[0]) @ in_blocks[1])
            for rows in rows_of_blocks
        )
        mean, right = np.zeros(n_columns), 0.0
        squares = np.zeros((n_columns, n_columns))
        for rows, part in chain([(left_out, features)], features_of_blocks):
            # A product with its own transpose takes half the time of others.
            scaled = np.sqrt(shares[rows, None]).astype(part.dtype) * part
            mean += shares[rows] @ part
            squares += scaled.T @ scaled
            right += part.T @ (shares[rows, None] * (target[rows] - self.center))
        squares -= np.outer(mean, mean)
        eigenvalues, basis = eigh(squares, driver="evd", overwrite_a=True)
        self.matrix = np.maximum(eigenvalues, 0)
        # All that follows is in the basis of these eigenvectors.
        self.mean, self.right, self.root = mean @ basis, basis.T @ right, root @ basis
        self.features, self.share = features @ basis - self.mean, shares[left_out, None]
        self.deviation = target[left_out] - self.center
        self.squares_of_features = self.features**2
        # What the draw adds to the mean square of a direction that is fitted, as a
        # share of the error; zero if all rows are drawn.
        of_all = self.all_rows[4]
        self.of_draw = shares[drawn] @ shares[drawn] - of_all @ of_all
        self.is_of_all = len(drawn) == n_rows

    def forms(self, inverse):
        return inverse.forms(self.squares_of_features)

    def draw_adds(self, inverse):
        """By what share the error is larger than that of all rows."""
        return self.of_draw * np.sum((self.matrix * inverse.entries) ** 2)

    def for_all_rows(self, inverse, solution, error, dtype):
        """The solution of all rows, from that of those drawn, whose error is known."""
        # Conjugate gradients, whose last coefficient is an intercept.
        kernel, centers, X, target, shares, left_out = self.all_rows
        (_, n_outputs), m = target.shape, len(centers)
        centers = centers.astype(dtype)

        def share_of(part, whole):
            # Zero for outputs that are solved.
            return np.divide(part, whole, out=np.zeros(n_outputs), where=whole > 0)

        def gradient(coef, target=None):
            # Z'W(y - Zb) of all rows, or Z'WZb without a target.
            dual = (self.root @ coef[:-1]).astype(dtype)
            added = coef[-1] - self.mean @ coef[:-1]
            sums, total = np.zeros((m, n_outputs)), np.zeros(n_outputs)
            for rows in row_blocks(X, m, dtype):
                values = kernel(to_array(X[rows], dtype), centers)
                weighted = values @ dual + added
                if target is not None:
                    weighted = target[rows] - self.center - weighted
                weighted *= shares[rows, None]
                sums += values.T @ weighted.astype(dtype)
                total += weighted.sum(axis=0)
            product = self.root.T @ sums - self.mean[:, None] * total
            return np.vstack([product, total])

        penalty = np.append(np.full(len(self.matrix), inverse.strength), 0.0)[:, None]
        scales = np.append(inverse.entries, 1.0)[:, None]
        coef = np.vstack([solution, np.zeros(n_outputs)])
        left = gradient(coef, target) - penalty * coef
        direction, size = np.zeros_like(left), np.full(n_outputs, np.inf)
        enough = LEFT_OF_VARIANCE * error * m * (shares @ shares)
        for _ in range(MOST_PRODUCTS):
            step = scales * left
            former, size = size, np.sum(left * step, axis=0)
            if not size.sum() > enough:
                break
            direction = step + share_of(size, former) * direction
            product = gradient(direction) + penalty * direction
            length = share_of(size, np.sum(direction * product, axis=0))
            coef += length * direction
            left -= length * product
        self.center = self.center + coef[-1]
        self.deviation = target[left_out] - self.center
        self.share_too_much = self.share - shares[left_out, None]
        self.share = shares[left_out, None]
        return coef[:-1]


@dataclass(frozen=True, eq=False)
class KernelRidge:
    """f(x) = sum_j a_j k(x, c_j) + intercept, clipped to an interval."""

    kernel: Any
    centers: np.ndarray  # (m, n_features)
    dual_coef: np.ndarray  # (m, n_outputs)
    intercept: np.ndarray  # (n_outputs,)
    # The bounds of the interval, (n_outputs,) each.
    lowest: np.ndarray
    highest: np.ndarray
    index: np.ndarray  # the rows that are centres, (m,)
    strength: float  # in multiples of the mean of k(x, x)
    # The mean squared error of rows left out, summed over outputs.
    loo_error: float
    left_out: np.ndarray  # rows, (n_left_out,)
    loo_prediction: np.ndarray  # (n_left_out, n_outputs)

    @classmethod
    def of(
        cls,
        kernel,
        X,
        target,
        weights,
        index,
        first_strength=FIRST_STRENGTH,
        strengths=None,
        of_all=True,
    ):
        """The fit of least leave-one-out error, with the rows ``index`` as centres.

        If these are all rows, ``strengths``, STRENGTHS by default, are tried from
        ``first_strength`` on as long as they lower the error; else all of STRENGTHS.
        With ``of_all=False`` fits of fewer centres are to the rows drawn for moments.
        """
        strengths = np.asarray(STRENGTHS if strengths is None else strengths)
        left_out, _ = drawn_units(len(target), None, MOST_LEFT_OUT)
        left_out = np.arange(len(target))[left_out]
        shares = weights / weights.sum()
        # For a row unlike all others the function may be far from all targets. So far a
        # trend may go on beyond the data, and sure classes keep their order.
        margin = np.ptp(target, axis=0) / 2
        bounds = target.min(axis=0) - margin, target.max(axis=0) + margin
        is_every_row = kernel.is_positive and len(index) == len(target)
        index = np.arange(len(target)) if is_every_row else index
        centers = to_array(X[index])
        gram = kernel(centers, centers)
        size = np.trace(gram) / len(centers)
        size = size if size > 0 else 1

        def error_of(fits, inverse, solution):
            # The mean squared error of rows left out, and predictions of these.
            observed, share = target[left_out], shares[left_out]
            residuals = fits.residuals_left_out(inverse, solution)
            predictions = np.clip(observed - residuals, *bounds)
            missed = np.sum((observed - predictions) ** 2, axis=1)
            return float(share @ missed / share.sum()), predictions

        if not is_every_row:
            data, best = (X, target, shares, index, left_out), None
            fits, strengths = FewerCenters(kernel, centers, gram, *data), STRENGTHS
            for number, strength in enumerate(strengths):
                inverse = DiagonalInverse(fits.matrix, strength * size)
                solution = inverse.solve(fits.right)
                error, _ = error_of(fits, inverse, solution)
                if of_all:
                    error *= 1 - fits.draw_adds(inverse)
                if best is None or error < best[0]:
                    best = error, number, inverse, solution
            error, number, inverse, solution = best
            if of_all and not fits.is_of_all:
                dtype = dtype_for(len(centers), strengths[number])
                solution = fits.for_all_rows(inverse, solution, error, dtype)
        else:
            is_smooth = not kernel.is_of_distance
            system = EveryRow(gram, target, shares, left_out, is_smooth)

            def tried(number):
                # A strength: the error, the fits of such strengths, and its inverse.
                strength, fits = strengths[number], system
                if strength < SINGLE_STRENGTH:
                    fits = system.for_weak(strength * size)
                dtype = dtype_for(len(fits.matrix), strength)
                inverse = ShiftedInverse(fits.matrix, strength * size, dtype)
                error, _ = error_of(fits, inverse, inverse.times(fits.right))
                return error, fits, inverse

            distance = np.abs(np.log(strengths / first_strength))
            number = first = int(np.argmin(distance))
            best = tried(number)
            for step in (-1, 1):
                enough = 1 - LEAST_GAIN * (step < 0)
                while 0 <= number + step < len(strengths):
                    other = tried(number + step)
                    if not other[0] < enough * best[0]:
                        break
                    number, best = number + step, other
                if number != first:
                    break
            _, fits, inverse = best
            solution = inverse.solve(fits.right)
        dual_coef, intercept = fits.function(solution)
        error, prediction = error_of(fits, inverse, solution)
        return cls(
            kernel=kernel,
            centers=centers[fits.centers],
            dual_coef=dual_coef,
            intercept=intercept,
            lowest=bounds[0],
            highest=bounds[1],
            index=index[fits.centers],
            strength=float(strengths[number]),
            loo_error=error,
            left_out=left_out,
            loo_prediction=prediction,
        )

    def predict(self, X):
        """Values of the function, (n_rows, n_outputs)."""
        parts = [np.empty((0, len(self.intercept)))]
        for rows in row_blocks(X, len(self.centers), np.float64):
            parts.append(self.kernel(to_array(X[rows]), self.centers) @ self.dual_coef)
        values = np.concatenate(parts) + self.intercept
        return np.clip(values, self.lowest, self.highest)

    def mean_squared_derivatives(self, X, centers, weights, X_rotated):
        """Weighted means, over rows and outputs, of squared derivatives by columns.

        ``X_rotated`` has the rows of X in the basis of the fit, and ``centers`` are the
        centres in the columns of X.
        """
        # The gradient at x is 2 sum_j a_j k'(|x - c_j|^2) (x - c_j), for each output.
        m, n_outputs = self.dual_coef.shape
        dtype = dtype_for(m, self.strength)
        size = np.abs(self.dual_coef).max()
        size = size if size > 0 else 1.0
        dual_coef, centers = (
            (self.dual_coef / size).astype(dtype),
            centers.astype(dtype),
        )
        sums, itemsize = np.zeros(centers.shape[1]), centers.itemsize
        columns_in_cache = blocks(len(sums), itemsize * m * n_outputs, LARGE_BYTES)
        width = max(m, len(sums), n_outputs * columns_in_cache[0].stop)
        for rows in blocks(X.shape[0], itemsize * width, MEMORY_BYTES // 2):
            part = to_array(X[rows], dtype)
            squared = self.kernel.squared_distances(
                to_array(X_rotated[rows]), self.centers
            )
            slope = self.kernel.slope(squared.astype(dtype, copy=False))
            total = slope @ dual_coef
            for columns in columns_in_cache:
                weighted = dual_coef[:, :, None] * centers[:, None, columns]
                gradient = np.tensordot(slope, weighted, axes=1)
                gradient -= total[:, :, None] * part[:, None, columns]
                sums[columns] += weights[rows] @ (gradient**2).sum(axis=1)
        return 4 * size**2 * sums / (weights.sum() * n_outputs)


def enough_centers(kernel, X, target, weights, order, most):
    """How many rows are to be centres, and what the last ones tried have gained.

    The first rows of the random ``order`` are tried, twice as many each time, until
    they are no better than their half. If they still are, and twice as many would be
    more than ``most``, these are returned. The gain is the share by which the
    leave-one-out error of the half is larger, 0 if none were tried. Shapes: target
    (n_rows, n_outputs); weights (n_rows,)."""
    n_centers, gain = FEWEST_CENTERS, 0.0
    while 2 * n_centers <= most and ROWS_PER_CENTER * n_centers <= len(order):
        rows = order[: ROWS_PER_CENTER * n_centers]
        y, share = target[rows].astype(np.float64), weights[rows].astype(np.float64)
        # Both fits read the kernel of these rows and centres.
        X_rows = as_dtype(rows_in(X, rows), np.float64)
        values = to_numpy(kernel(X_rows, rows_in(X_rows, slice(n_centers))))
        numbers, losses = np.arange(len(rows))[:, None], []
        for m in (n_centers // 2, n_centers):
            fit = KernelRidge.of(Precomputed(values), numbers, y, share, np.arange(m))
            missed = y[fit.left_out] - fit.loo_prediction
            losses.append(np.sum(missed**2, axis=1))
        share = share[fit.left_out] / share[fit.left_out].sum()
        lower = losses[0] - losses[1]
        difference = float(share @ lower)
        standard_error = np.sqrt(share**2 @ (lower - difference) ** 2)
        left_out = y[fit.left_out]
        variance = float(share @ np.sum((left_out - share @ left_out) ** 2, axis=1))
        added = max(SAME_EXPLAINED * (variance - fit.loo_error), 2 * standard_error)
        if difference <= min(SAME_ERROR * fit.loo_error, added):
            return n_centers, 0.0
        gain = difference / fit.loo_error
        n_centers *= 2
    return most, gain


def to_array(X, dtype=np.float64):
    """Rows as an array, in double precision if nothing else is said."""
    X = X.toarray() if sparse.issparse(X) else X
    return X.astype(dtype, copy=False)
