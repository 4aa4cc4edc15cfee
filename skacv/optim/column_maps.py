"""Standardised columns of fits, each by the fit's own rows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ColumnMaps:
    """Maps from a design's columns to those of every fit: factor (x - center).

    Shapes: factor, center (n_columns, n_fits)."""

    factor: np.ndarray
    center: np.ndarray

    def as_dtype(self, dtype):
        return ColumnMaps(self.factor.astype(dtype), self.center.astype(dtype))

    def for_columns(self, index):
        return ColumnMaps(self.factor[index], self.center[index])

    def for_fits(self, fits):
        return ColumnMaps(self.factor[:, fits], self.center[:, fits])

    def after_identity_maps(self, n_identities):
        """The identity maps of ``n_identities`` fits, and then these maps."""
        ones = np.ones((len(self.factor), n_identities))
        return ColumnMaps(
            np.concatenate([ones, self.factor], axis=1),
            np.concatenate([0 * ones, self.center], axis=1),
        )

    def coefficients(self, coef):
        """Coefficients of the design's columns, (..., n_columns, n_outputs, n_fits)."""
        # The centres add the :meth:`intercepts` to the predictors.
        return coef * self.factor[:, None]

    def intercepts(self, coef):
        """Intercepts (..., n_outputs, n_fits), for coefficients of design's columns."""
        return -np.einsum("jf,...jkf->...kf", self.center, coef)

    def gradient(self, products, total):
        """Gradients of the fits, from the design's products with slopes, in place."""
        # ``total``, (n_outputs, n_fits), are the sums of the slopes.
        products -= self.center[:, None] * total
        products *= self.factor[:, None]
        return products

    def hessians(self, products, sums, totals):
        """Hessians of the fits, from weighted moments of the design's columns.

        Shapes: products (n_fits, k, k, n_columns, n_columns); sums (n_fits, k, k,
        n_columns); totals (n_fits, k, k)."""
        factor, center = (
            array.T[:, None, None] for array in (self.factor, self.center)
        )
        across = sums[..., None] * center[..., None, :]
        hessians = products - across - np.swapaxes(across, 3, 4)
        hessians += totals[..., None, None] * center[..., None] * center[..., None, :]
        return hessians * factor[..., None] * factor[..., None, :]

    def norm_bounds(self, norms, n_rows):
        """Upper bounds of the norms of every fit's columns, (n_fits, n_columns)."""
        bounds = norms[:, None] + np.sqrt(n_rows) * np.abs(self.center)
        return (bounds * self.factor).T
