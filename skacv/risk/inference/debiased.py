"""Debiased coefficients of an iterate, and what can be said of the true ones."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t

from .single_index import Scale


class Debiased(NamedTuple):
    """Debiased coefficients (n_coefs, n_outputs), normal about a multiple of truth."""

    coef: np.ndarray
    debiased: np.ndarray
    error: np.ndarray
    scale: Scale = Scale(1.0, 0.0)  # how many times the truth
    degrees: float = np.inf  # degrees of freedom of the errors

    @classmethod
    def of(cls, coef, scores, directions):
        """Coefficients of an iterate, debiased by scores (n_rows, n_outputs)."""
        debiased = coef + directions.vectors.T @ scores
        size = np.linalg.norm(scores, axis=0)
        return cls(coef, debiased, directions.sizes[:, None] * size)

    def where(self, determined):
        """The same, with NaN for coefficients that are not determined, (n_coefs,)."""
        parts = self.debiased, self.error
        debiased, error = (
            np.where(determined[:, None], part, np.nan) for part in parts
        )
        return self._replace(debiased=debiased, error=error)

    @property
    def estimate(self):
        """Estimates of the true coefficients."""
        return self.debiased / self.scale.value

    @property
    def standard_error(self):
        """Standard errors of the estimates, as if the scale had none."""
        return self.error / self.scale.value

    @property
    def z(self):
        """Debiased coefficients over their errors, without that of the scale."""
        return self.debiased / self.error

    @property
    def reference(self):
        """The distribution of z where the true coefficient is zero."""
        return norm if np.isinf(self.degrees) else t(self.degrees)

    @property
    def p_value(self):
        """Two-sided p-values of the hypotheses that the true coefficients are zero."""
        return 2 * self.reference.sf(np.abs(self.z))

    def interval(self, coverage):
        """Ends that cover the true coefficients as often, (n_coefs, n_outputs, 2)."""
        # Fieller (1954): all b for which Z - c b is within so many of its standard
        # errors, that of c included. Zero is among them just where the test does not
        # reject it. Where c may be zero by its own error, the interval is the real
        # line.
        n_errors = self.reference.ppf((1 + coverage) / 2)
        estimate, half = self.estimate, n_errors * self.standard_error
        share = (n_errors * self.scale.error / self.scale.value) ** 2
        if share >= 1:
            return np.stack([np.full_like(half, end) for end in (-np.inf, np.inf)], -1)
        margin = np.sqrt(share * estimate**2 + (1 - share) * half**2)
        ends = np.stack([estimate - margin, estimate + margin], axis=-1)
        return ends / (1 - share)
