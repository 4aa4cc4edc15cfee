"""Debiased coefficients of an iterate, and what can be said of the true ones."""

from typing import NamedTuple

import numpy as np
from scipy.stats import norm, t

from .single_index import Scale


class Debiased(NamedTuple):
    """Debiased coefficients, (n_asked, n_outputs) each.

    Attributes
    ----------
    coef : ndarray
        Coefficients of the iterate itself.
    debiased, error : ndarray
        Normal about ``scale`` times the true coefficients, and their standard errors.
    scale : Scale
        The multiple, and its error. It is one, as it is known for regression, unless
        something else is known.
    degrees : int or inf
        Degrees of freedom of the standard errors. With infinitely many, z is standard
        normal, otherwise it has Student's distribution.
    """

    coef: np.ndarray
    debiased: np.ndarray
    error: np.ndarray
    scale: Scale = Scale(1.0, 0.0)
    degrees: float = np.inf

    @classmethod
    def of(cls, coef, scores, directions):
        """Debias some coefficients of an iterate.

        Parameters
        ----------
        coef : ndarray of shape (n_asked, n_outputs)
        scores : ndarray of shape (n_rows, n_outputs)
        directions : Directions
        """
        debiased = coef + directions.vectors.T @ scores
        size = np.linalg.norm(scores, axis=0)
        return cls(coef, debiased, directions.sizes[:, None] * size)

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
        """Estimates over their standard errors, of the distribution ``reference``.

        The error of the scale has no part in it: of a zero coefficient there is none.
        """
        return self.debiased / self.error

    @property
    def reference(self):
        """The distribution of z where the true coefficient is zero."""
        return norm if np.isinf(self.degrees) else t(self.degrees)

    @property
    def p_value(self):
        """Two-sided."""
        return 2 * self.reference.sf(np.abs(self.z))

    def interval(self, coverage):
        """Ends that cover the true coefficient so often, (n_asked, n_outputs, 2).

        All b for which Z - c b is within its standard error, that of c included, so
        many times (Fieller 1954): zero is among them just where the test does not
        reject it. Where c may be zero by its own error, all of the line.
        """
        n_errors = self.reference.ppf((1 + coverage) / 2)
        estimate, own = self.estimate, n_errors * self.standard_error
        share = (n_errors * self.scale.error / self.scale.value) ** 2
        if share >= 1:
            return np.stack([np.full_like(own, end) for end in (-np.inf, np.inf)], -1)
        margin = np.sqrt(share * estimate**2 + (1 - share) * own**2)
        ends = np.stack([estimate - margin, estimate + margin], axis=-1)
        return ends / (1 - share)
