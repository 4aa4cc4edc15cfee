"""Debiased coefficients of an iterate, and what can be said of the true ones."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from .single_index import Scale


class Debiased(NamedTuple):
    """Debiased coefficients, (n_asked, n_outputs) each, normal about the true ones.

    Or about multiples of them: see :class:`Scaled`.

    Attributes
    ----------
    coef : ndarray
        Coefficients of the iterate itself.
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
        margin = norm.ppf((1 + coverage) / 2) * self.standard_error
        return np.stack([self.estimate - margin, self.estimate + margin], axis=-1)


class Scaled(NamedTuple):
    """Debiased coefficients that are normal about a multiple of the true ones.

    Attributes
    ----------
    scale : Scale
        The multiple, and its error.
    """

    debiased: Debiased
    scale: Scale

    @property
    def coef(self):
        return self.debiased.coef

    @property
    def estimate(self):
        return self.debiased.estimate / self.scale.value

    @property
    def standard_error(self):
        """As if the scale had no error."""
        return self.debiased.standard_error / self.scale.value

    @property
    def z(self):
        """As of a scale without error: of a zero coefficient it has none."""
        return self.debiased.z

    @property
    def p_value(self):
        return self.debiased.p_value

    def interval(self, coverage):
        """Ends that cover the true coefficient so often, (n_asked, n_outputs, 2).

        All b for which Z - c b is within its standard error, that of c included, so
        many times (Fieller 1954): zero is among them just where the test does not
        reject it. Where c may be zero by its own error, all of the line.
        """
        n_errors = norm.ppf((1 + coverage) / 2)
        estimate, own = self.estimate, n_errors * self.standard_error
        share = (n_errors * self.scale.error / self.scale.value) ** 2
        if share >= 1:
            return np.stack([np.full_like(own, end) for end in (-np.inf, np.inf)], -1)
        margin = np.sqrt(share * estimate**2 + (1 - share) * own**2)
        ends = np.stack([estimate - margin, estimate + margin], axis=-1)
        return ends / (1 - share)
