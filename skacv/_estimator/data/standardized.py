"""Columns standardised for a run, whose iterates are in units of X as it was passed.

Gradient methods need columns of about one size. A run on (x - mean) / scale has other
coefficients than those of x: these classes map one to the other, also for fits without
some of the rows.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import inplace_csr_column_scale, mean_variance_axis

from ...optim.arrays import design_of
from ...optim.column_maps import ColumnMaps
from ...optim.design import ROUNDINGS
from ...optim.namespaces import as_dtype, dtype_of, is_on_device, to_device_of, to_numpy
from ..parameters import is_auto


class AsPassed:
    """Columns as they were passed, in the run and without some rows."""

    mean, scale, centers = 0.0, 1.0, False

    def apply(self, X):
        return X

    def to_passed(self, coef, intercept):
        return coef, intercept

    from_passed = to_passed


AS_PASSED = AsPassed()


@dataclass(frozen=True, eq=False)
class Standardized:
    """Columns of a run as (x - mean) / scale, of variance one if they vary."""

    # Sparse columns keep their zeros and so their means (``centers`` is False), and so
    # do those of a model without an intercept.

    mean: np.ndarray
    scale: np.ndarray
    centers: bool
    # Whether fits without some rows have their own scales.
    is_refitted: bool = True

    @classmethod
    def of(cls, X, weights, has_intercept, standardize=True):
        """The map for weighted rows; ``standardize`` is that of the linear models."""
        mean, variance = _mean_and_variance(X, weights)
        centers = has_intercept and not sparse.issparse(X)
        rounding = ROUNDINGS * np.finfo(float).eps
        is_constant = variance <= (rounding * mean) ** 2
        scale = np.sqrt(np.where(is_constant, 1.0, variance))
        if centers:  # constant columns become zero, not a rounding
            mean = np.where(is_constant, to_numpy(X[:1, :])[0], mean)
        is_sparse_auto = is_auto(standardize) and sparse.issparse(X)
        if is_sparse_auto:
            # With unit variance a word in one row of a thousand has entries of thirty,
            # and with its entries as they are it hardly counts: a compromise.
            entries = np.repeat(weights, np.diff(X.indptr)) * (X.data != 0)
            shares = np.bincount(X.indices, entries, len(scale)) / weights.sum()
            scale /= np.where(is_constant, 1.0, shares) ** 0.25
        return cls(mean * centers, scale, centers, not is_sparse_auto)

    def apply(self, X):
        """The columns of a run, a new array."""
        dtype = dtype_of(X)
        if sparse.issparse(X):
            X = X.copy()
            inplace_csr_column_scale(X, 1 / self.scale.astype(dtype))
            return X
        if is_on_device(X):
            mean, scale = (
                to_device_of(part[None], X) for part in (self.mean, self.scale)
            )
            return as_dtype((X - mean) / scale, dtype)
        scaled = np.empty(X.shape, dtype)
        np.subtract(X, self.mean, out=scaled, casting="same_kind")
        return np.divide(scaled, self.scale, out=scaled, casting="same_kind")

    def to_passed(self, coef, intercept):
        """Coefficients (t, n_features, k), intercepts (t, k), of columns as passed."""
        coef = coef / self.scale[:, None]
        return coef, intercept - self.mean @ coef

    def from_passed(self, coef, intercept):
        return coef * self.scale[:, None], intercept + self.mean @ coef

    def of_fits(self, design, weights):
        """Maps of fits that standardise by their own rows, weights (n_rows, n_fits)."""
        # Columns beyond the features, such as one for the intercept, stay.
        shares = weights / weights.sum(axis=0)
        sums = design.t_dot(shares), design.squares_t_dot(shares)
        mean, squares = (part[: len(self.scale)] for part in sums)
        return self.maps(mean, squares, squares - mean**2, design.shape[1])

    def maps(self, mean, squares, variance, n_columns):
        """The column maps of fits, from moments of their rows in units of the run.

        Shapes: mean, squares (mean squares of entries), variance (n_features, n_fits).
        """
        # A column that is constant in these rows is not scaled, in units of X.
        is_constant = variance <= ROUNDINGS * np.finfo(float).eps * squares
        variance = np.where(is_constant, 1.0, variance)
        spread = np.where(is_constant, 1 / self.scale[:, None], np.sqrt(variance))
        factor = np.ones((n_columns, mean.shape[1]))
        center = np.zeros_like(factor)
        factor[: len(mean)] = 1 / spread
        center[: len(mean)] = mean * self.centers
        return ColumnMaps(factor, center)


def _mean_and_variance(X, weights):
    """Weighted mean and variance of every column, in double precision."""
    if sparse.issparse(X):
        moments = mean_variance_axis(X, axis=0, weights=weights.astype(X.dtype))
        return tuple(part.astype(np.float64) for part in moments)
    shares = (weights / weights.sum())[:, None]
    design = design_of(X).centered(shares)
    sizes, _ = design.scaled_rows(np.sqrt(shares)).column_sizes()
    return design.center[:, 0].astype(np.float64), sizes**2
