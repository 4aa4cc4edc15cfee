"""How far a debiased iterate is from the truth, where labels follow a logistic model.

Where P(y = 1 | x) = sigma(x'beta + a), a debiased iterate is normal about c beta [1]_.
With psi1 and psi0 the slopes of a row by both labels, held out (``label_effects``),

    c_t = sum_s (K^-1)_ts sum_i E[sigma'(u_i) | U_si] (psi1_si - psi0_si),

u the log odds. They are normal where the columns are, of standard deviation g, and so
are u and U together, with Cov(u, U_s) = Cov(y, U_s) / E sigma'(u); the mean of u is
what gives the second label its share. There remains g: the strength.

.. [1] Bellec (2022), "Observable adjustments in single-index models for regularized
       M-estimators", arXiv:2204.06990.
"""

from typing import NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.optimize import brentq
from scipy.special import expit

# Standard deviations of the log odds that are looked at: between "next to no signal"
# and "the classes hardly overlap".
STRENGTHS = np.geomspace(0.05, 12.0, 16)
N_BETWEEN = 400
# Nodes and weights of a standard normal.
NODES = np.linspace(-8, 8, 81)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
TINY = np.finfo(float).tiny
# A predictor explains less of the log odds than all.
MOST_EXPLAINED = 0.999


class Scale(NamedTuple):
    """How many times the truth a debiased iterate is, with its standard error.

    Coefficient j of the debiased iterate, less ``value`` times the truth, has the
    variance v Omega_jj + beta_j^2 error^2: what both errors share is in the second.
    """

    value: float
    error: float


class ScaleByStrength(NamedTuple):
    """c at the last iterate, by the standard deviation of the log odds.

    Attributes
    ----------
    strengths : ndarray of shape (n_strengths,)
    flatness : ndarray of shape (n_strengths,)
        E sigma'(u): the c of X'(y - mean y) / n.
    scales : ndarray of shape (n_strengths,)
    """

    strengths: np.ndarray
    flatness: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, effects, labels):
        """By the effects of labels, 0 or 1 of every row.

        Parameters
        ----------
        effects : LabelEffects
        labels : ndarray of shape (n_rows,)
        """
        odds = [LogOdds.of(strength, labels.mean()) for strength in STRENGTHS]
        sums = np.stack([each.sums(effects, labels) for each in odds], axis=1)
        flatness = np.array([each.flatness for each in odds])
        return cls(STRENGTHS, flatness, effects.at_the_end(sums))

    def of_debiased(self, signal):
        """The Scale, where the signal is that of the debiased iterate, c^2 g^2."""
        return self._solved(self.scales, signal)

    def of_labels(self, signal):
        """The Scale, where the signal is what is linear of y, (E sigma'(u))^2 g^2."""
        return self._solved(self.flatness, signal)

    def _solved(self, factors, signal):
        """The Scale at the strength g for which (factor g)^2 is the signal."""
        known = np.log(self.strengths)
        fine = np.linspace(known[0], known[-1], N_BETWEEN)
        factors, scales = (
            CubicSpline(known, each)(fine) for each in (factors, self.scales)
        )
        # The accuracy of nodes and signs, where it hardly rises.
        sizes = np.maximum.accumulate(factors * np.exp(fine))

        def at(size, values):
            return float(np.interp(np.sqrt(max(size, 0.0)), sizes, values))

        lower = max(signal.size - signal.error, 0.0)
        upper = max(signal.size + signal.error, signal.error)
        slope = (at(upper, scales) - at(lower, scales)) / max(upper - lower, TINY)
        shared = signal.shared * at(signal.size, factors)
        variance = (slope * signal.error) ** 2 - 2 * slope * shared
        return Scale(at(signal.size, scales), float(np.sqrt(max(variance, 0.0))))


class LogOdds(NamedTuple):
    """Normal log odds.

    Attributes
    ----------
    mean, strength : float
        Mean and standard deviation.
    flatness : float
        The mean of sigma'.
    """

    mean: float
    strength: float
    flatness: float

    @classmethod
    def of(cls, strength, share):
        """Those of a strength that give the second label a share of the rows."""

        def excess(mean):
            return expit(mean + strength * NODES) @ WEIGHTS - share

        reach = 40 + 6 * strength
        mean = brentq(excess, -reach, reach, xtol=1e-13)
        return cls(mean, strength, _flatness(mean, strength))

    def sums(self, effects, labels):
        """sum_i E[sigma'(u_i) | U_si] (psi1_si - psi0_si), (n_updates + 1,)."""
        away = labels - labels.mean()
        return np.array(
            [
                self._given(held_out, away) @ jumps
                for held_out, jumps in zip(effects.held_out, effects.jumps)
            ]
        )

    def _given(self, held_out, away):
        """E[sigma'(u) | U] of every row."""
        centered = held_out - held_out.mean()
        spread = np.mean(centered**2)
        if spread == 0:
            return np.full(len(away), self.flatness)
        most = MOST_EXPLAINED * self.strength * np.sqrt(spread)
        shared = np.clip(np.mean(centered * away) / self.flatness, 0, most)
        left = np.sqrt(self.strength**2 - shared**2 / spread)
        return _flatness(self.mean + shared / spread * centered, left)


def _flatness(mean, deviation):
    """E sigma'(mean + deviation G), G standard normal; means may be an array."""
    share = expit(np.asarray(mean)[..., None] + deviation * NODES)
    return (share * (1 - share)) @ WEIGHTS
