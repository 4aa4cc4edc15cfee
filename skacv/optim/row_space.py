"""The design of a matrix with more columns than rows, in a basis of its rows."""

import numpy as np
from scipy.linalg import qr

from .arrays import DenseDesign


class RowSpaceDesign(DenseDesign):
    """Coordinates of rows in an orthonormal basis of their span.

    With X = Z Q' this is the design Z. Predictors, norms and inner products equal those
    of X; coefficients a correspond to the coefficients Q a of the columns of X.

    Shapes: X (n_rows, n_basis); basis (n_features, n_basis)."""

    def __init__(self, X, center=None, row_scale=None, *, basis):
        super().__init__(X, center, row_scale)
        # As for X, which has more columns than rows.
        self.basis, self.side = basis, "rows"

    def _new(self, X, center, row_scale):
        return RowSpaceDesign(X, center, row_scale, basis=self.basis)

    def are_converged(self, changes, coefs, tol):
        # The largest entry of Q a is at least ||a|| over the root of its length, and at
        # most ||a||: this excludes most updates without a product with the basis.
        n_entries = len(self.basis) + 1
        least_change = np.linalg.norm(changes, axis=1).max(axis=1) / np.sqrt(n_entries)
        largest = np.linalg.norm(coefs, axis=1).max(axis=1)
        converged = least_change <= 2 * tol * largest
        for t in np.flatnonzero(converged):
            change = self.on_columns(changes[t])[None]
            coef = self.on_columns(coefs[t])[None]
            (converged[t],) = super().are_converged(change, coef, tol)
            if converged[t]:
                break
        return converged

    def on_columns(self, coef):
        """Coefficients (n_features, k) of the columns of X, then any intercept."""
        n_basis = self.basis.shape[1]
        return np.concatenate([self.basis @ coef[:n_basis], coef[n_basis:]])


def row_space(design):
    """Coordinates of rows in an orthonormal basis of their space, and the basis.

    Shapes: coordinates (n_rows, n_rows); basis (n_columns, n_rows)."""
    columns = design.dense_columns(np.arange(design.shape[1]), np.float64)
    # LAPACK works in place on the transpose.
    basis, triangle = qr(
        columns.T, mode="economic", overwrite_a=True, check_finite=False
    )
    return np.ascontiguousarray(triangle.T), basis
