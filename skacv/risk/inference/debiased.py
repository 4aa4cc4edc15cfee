"""Debiased coefficients of an iterate, and what can be said of the true ones."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm


class Debiased(NamedTuple):
    """Debiased coefficients, (n_asked, n_outputs) each, normal about the true ones.

    Attributes
    ----------
    coef : ndarray
        Of the iterate itself.
    estimate, standard_error : ndarray
    """

    coef: np.ndarray
    estimate: np.ndarray
    standard_error: np.ndarray

    @classmethod
    def of(cls, coef, scores, directions):
        """Debias some coefficients of an iterate.

        Parameters
        ----------
        coef : ndarray of shape (n_asked, n_outputs)
        scores : ndarray of shape (n_rows, n_outputs)
        directions : Directions
        """
        estimate = coef + directions.vectors.T @ scores
        size = np.linalg.norm(scores, axis=0)
        return cls(coef, estimate, directions.sizes[:, None] * size)

    @property
    def z(self):
        """Estimates over their standard errors: standard normal where they are zero."""
        return self.estimate / self.standard_error

    @property
    def p_value(self):
        """Two-sided."""
        return 2 * norm.sf(np.abs(self.z))

    def interval(self, coverage):
        """Ends that cover the true coefficient so often, (n_asked, n_outputs, 2)."""
        reach = norm.ppf((1 + coverage) / 2) * self.standard_error
        return np.stack([self.estimate - reach, self.estimate + reach], axis=-1)
