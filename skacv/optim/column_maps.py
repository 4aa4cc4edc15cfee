"""Columns that every fit standardises by its own rows."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ColumnMaps:
    """Columns of a design as every fit standardises them: factor (x - center).

    Shapes: factor, center (n_columns, n_fits)."""

    factor: np.ndarray
    center: np.ndarray

    def as_dtype(self, dtype):
        return ColumnMaps(self.factor.astype(dtype), self.center.astype(dtype))

    def of_columns(self, index):
        return ColumnMaps(self.factor[index], self.center[index])

    def of_fits(self, fits):
        return ColumnMaps(self.factor[:, fits], self.center[:, fits])

    def beside_the_run(self, n_before):
        """These maps after those of ``n_before`` fits on the design itself."""
        ones = np.ones((len(self.factor), n_before))
        return ColumnMaps(
            np.concatenate([ones, self.factor], axis=1),
            np.concatenate([0 * ones, self.center], axis=1),
        )

    def coefficients(self, coef):
        """Coefficients of the design's columns, (..., n_columns, n_outputs, n_fits)."""
        return coef * self.factor[:, None]

    def intercepts(self, coef):
        """Shifts of the predictors by the centres, (..., n_outputs, n_fits)."""
        return -np.einsum("jf,...jkf->...kf", self.center, coef)

    def gradient(self, products, total):
        """The gradient, written over the design's products with slopes."""
        products -= self.center[:, None] * total
        products *= self.factor[:, None]
        return products

    def hessians(self, products, sums, totals):
        """Hessians of weighted sums of losses, from moments of the design's columns.

        Shapes: products (n_fits, k, k, n_columns, n_columns); sums (n_fits, k, k,
        n_columns); totals (n_fits, k, k)."""
        factor, center = (
            array.T[:, None, None] for array in (self.factor, self.center)
        )
        across = sums[..., None] * center[..., None, :]
        hessians = products - across - np.swapaxes(across, 3, 4)
        hessians += totals[..., None, None] * center[..., None] * center[..., None, :]
        return hessians * factor[..., None] * factor[..., None, :]

    def norms(self, norms, n_rows):
        """Upper bounds of the norms of every fit's columns, (n_fits, n_columns)."""
        bounds = norms[:, None] + np.sqrt(n_rows) * np.abs(self.center)
        return (bounds * self.factor).T
