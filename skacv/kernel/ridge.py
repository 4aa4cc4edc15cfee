"""Kernel ridge regression on centres, its strength chosen by exact leave-one-out.

With features Z = k(X, C) L'^-1 of centres C, L L' = k(C, C), weights w of sum one and
centred by them, the solution of strength s is

    b = (Z'WZ + s I)^-1 Z'W y,

and the residual of row i without it is its residual divided by 1 - w_i (1 + z_i'(Z'WZ +
s I)^-1 z_i). One eigendecomposition gives both for every strength.

How many rows are centres is chosen by the same leave-one-out errors: twice as many are
tried until that no longer lowers them.
"""

from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.linalg.lapack import dtrtri

from ..optim.blocks import LARGE_BYTES, MEMORY_BYTES, blocks
from ..optim.kernel_matrix import row_blocks
from ..optim.namespaces import as_dtype, rows_in, to_numpy
from ..risk.held_out_rows import drawn_units
from .data import working_dtype
from .kernels import Precomputed, squared_distances

# Strengths that are compared, in multiples of the mean of k(x, x): from nearly none,
# for targets without noise, to that of a constant.
STRENGTHS = 10.0 ** np.arange(-9, 1.1, 0.5)
# This share of its trace is added to the kernel at the centres, which may be singular:
# rounding errors of features grow by the root of its inverse.
ROUNDING = {np.float64: 1e-12, np.float32: 1e-7}
# A row of leverage one, as one without others like it, leaves no residual.
LEAST_LEFT = 1e-12
# Rows that are left out to choose a strength: a standard error of a few percent, and
# much less for the difference of two strengths.
MOST_LEFT_OUT = 2000
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
    # The mean squared error of rows left out, summed over outputs.
    loo_error: float
    left_out: np.ndarray  # rows, (n_left_out,)
    loo_prediction: np.ndarray  # (n_left_out, n_outputs)

    @classmethod
    def of(cls, kernel, X, target, weights, index):
        """The fit of least leave-one-out error, with the rows ``index`` as centres."""
        n_rows, dtype = len(target), working_dtype(len(target))
        centers = to_array(X[index])
        gram, m = kernel(centers, centers), len(centers)
        size = np.trace(gram) / m
        if kernel.is_positive:
            jitter = ROUNDING[dtype] * size * m
            gram[np.diag_indices(m)] += jitter
            lower = np.linalg.cholesky(gram)
            root = dtrtri(lower, lower=1)[0].T
            of_centers = lower - jitter * root  # k(C, C) L'^-1, without the product
        else:
            root = leading_root(gram, m, ROUNDING[np.float32])
            of_centers = gram @ root
        shares = weights / weights.sum()
        center, n_columns = shares @ target, root.shape[1]

        # Rows that are left out, in double precision; centres among them are known.
        left_out, _ = drawn_units(n_rows, None, MOST_LEFT_OUT)
        left_out = np.arange(n_rows)[left_out]
        features = np.empty((len(left_out), n_columns))
        _, are_centers, of_index = np.intersect1d(left_out, index, return_indices=True)
        features[are_centers] = of_centers[of_index]
        others = np.delete(np.arange(len(left_out)), are_centers)
        features[others] = kernel(to_array(X[left_out[others]]), centers) @ root

        # The other rows, in blocks: in single precision if they are many.
        others = np.delete(np.arange(n_rows), left_out)
        rows_of_blocks = (others[block] for block in row_blocks(others, m, dtype))
        in_blocks = centers.astype(dtype), root.astype(dtype)
        features_of_blocks = (
            (rows, kernel(to_array(X[rows], dtype), in_blocks[0]) @ in_blocks[1])
            for rows in rows_of_blocks
        )
        mean, product = np.zeros(n_columns), 0.0
        squares = np.zeros((n_columns, n_columns))
        for rows, part in chain([(left_out, features)], features_of_blocks):
            # A product with its own transpose takes half the time of others.
            scaled = np.sqrt(shares[rows, None]).astype(part.dtype) * part
            mean += shares[rows] @ part
            squares += scaled.T @ scaled
            product += part.T @ (shares[rows, None] * (target[rows] - center))
        curvatures, basis = np.linalg.eigh(squares - np.outer(mean, mean))
        curvatures = np.maximum(curvatures, 0)
        # All that follows is in the basis of these eigenvectors.
        mean, product = mean @ basis, basis.T @ product
        features = features @ basis - mean
        observed, share = target[left_out, None], shares[left_out]
        # For a row unlike all others the function may be far from all targets. So far a
        # trend may go on beyond the data, and sure classes keep their order.
        margin = np.ptp(target, axis=0) / 2
        lowest, highest = target.min(axis=0) - margin, target.max(axis=0) + margin
        strengths = np.asarray(STRENGTHS) * (size if size > 0 else 1)
        inverses = 1 / (curvatures[:, None] + strengths)
        left = np.maximum(1 - share[:, None] * (1 + features**2 @ inverses), LEAST_LEFT)
        best = None
        for block in blocks(len(strengths), observed.nbytes, LARGE_BYTES):
            # By columns or rows, strengths and outputs.
            coefs = inverses[:, block, None] * product[:, None]
            fitted = center + np.tensordot(features, coefs, axes=1)
            predictions = observed - (observed - fitted) / left[:, block, None]
            predictions = np.clip(predictions, lowest, highest)
            missed = np.sum((observed - predictions) ** 2, axis=2)
            errors = share @ missed / share.sum()
            i = int(np.argmin(errors))
            if best is None or errors[i] < best[0]:
                best = float(errors[i]), coefs[:, i], predictions[:, i]
        error, coef, prediction = best
        return cls(
            kernel=kernel,
            centers=centers,
            dual_coef=root @ (basis @ coef),
            intercept=center - mean @ coef,
            lowest=lowest,
            highest=highest,
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
        sums, itemsize = np.zeros(centers.shape[1]), centers.itemsize
        columns_in_cache = blocks(len(sums), itemsize * m * n_outputs, LARGE_BYTES)
        width = max(m, len(sums), n_outputs * columns_in_cache[0].stop)
        for rows in blocks(X.shape[0], itemsize * width, MEMORY_BYTES // 2):
            part = to_array(X[rows])
            squared = squared_distances(to_array(X_rotated[rows]), self.centers)
            slope = self.kernel.slope(squared)
            total = slope @ self.dual_coef
            for columns in columns_in_cache:
                weighted = self.dual_coef[:, :, None] * centers[:, None, columns]
                gradient = np.tensordot(slope, weighted, axes=1)
                gradient -= total[:, :, None] * part[:, None, columns]
                sums[columns] += weights[rows] @ (gradient**2).sum(axis=1)
        return 4 * sums / (weights.sum() * n_outputs)


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
