"""Scale of a debiased iterate relative to the true coefficients of a logistic model.

Where P(y = 1 | x) = sigma(u), u = x'beta + a, a debiased iterate is normal about c beta
[1]_. With psi1 and psi0 the slopes of a row by both labels, held out
(``label_effects``),

    c_t = sum_s (K^-1)_ts sum_i E[sigma'(u_i) | U_i] (psi1_si - psi0_si).

U is the held-out linear predictor of a row, by the iterate whose U is most correlated
with the labels. It does not determine the log odds u:

    u = mean + slope U + left G,        G standard normal,

and for any such ``left`` the labels say what mean and slope are. So there remains one
number. It is estimated from the size of the debiased iterate, or by how much of what is
linear in the labels U has: both rise with the ``strength``, the standard deviation of
u. The columns enter by no distribution of theirs but here: normal ones are thought of.

.. [1] Bellec (2022), "Observable adjustments in single-index models for regularized
       M-estimators", arXiv:2204.06990.
"""

from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

# What U may leave open: from nothing to where the classes hardly overlap.
LEFT = np.r_[0.0, np.geomspace(0.1, 12.0, 15)]
N_BETWEEN = 40
# Nodes and weights of a standard normal.
NODES = np.linspace(-8, 8, 81)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
# Newton's method, by steps that are no longer.
N_STEPS, LONGEST, CONVERGED, STEEPEST = 60, 2.0, 1e-12, 100.0
TINY = np.finfo(float).tiny


class Scale(NamedTuple):
    """How many times the truth a debiased iterate is, with its standard error.

    Coefficient j of the debiased iterate, less ``value`` times the truth, has the
    variance v Omega_jj + beta_j^2 error^2: what both errors share is in the second.
    """

    value: float
    error: float


class ScaleByStrength(NamedTuple):
    """c at the last iterate, by what the held-out predictors leave open.

    Attributes
    ----------
    strengths : ndarray of shape (n_strengths,)
        Standard deviations of the log odds, increasing.
    factors : ndarray of shape (n_strengths,)
        How many times a coefficient a label is linear in the features.
    scales : ndarray of shape (n_strengths,)
    """

    strengths: np.ndarray
    factors: np.ndarray
    scales: np.ndarray

    @classmethod
    def of(cls, effects, labels):
        """By the effects of labels, 0 or 1 of every row.

        Parameters
        ----------
        effects : LabelEffects
        labels : ndarray of shape (n_rows,)
        """
        predictor = most_telling(effects.held_out, labels)
        means, slopes = log_odds(predictor, labels)
        flatness = [
            _expected(mean + slope * predictor, left)[1]
            for mean, slope, left in zip(means, slopes, LEFT)
        ]
        flatness = np.stack(flatness, axis=1)
        shared = np.mean(predictor * (labels - labels.mean()))
        # Where predictors are normal both are the same.
        factors = flatness.mean(axis=0)
        np.divide(shared, slopes, out=factors, where=slopes > 0)
        scales = effects.at_the_end(effects.jumps @ flatness)
        return cls(np.hypot(slopes, LEFT), factors, scales)

    def of_debiased(self, signal):
        """The Scale, where the signal is the size of the debiased iterate."""
        return self._solved(self.scales, signal)

    def of_labels(self, signal):
        """The Scale, where the signal is what is linear in the labels."""
        return self._solved(self.factors, signal)

    def _solved(self, factors, signal):
        """The Scale at the strength for which (factor strength)^2 is the signal."""
        strengths, factors, scales = map(
            _finely, (self.strengths, factors, self.scales)
        )
        # The accuracy of nodes and signs, where it hardly rises.
        sizes = np.maximum.accumulate(factors * strengths)

        def at(size, values):
            return float(np.interp(np.sqrt(max(size, 0.0)), sizes, values))

        value = at(signal.size, scales)
        if signal.size >= sizes[-1] ** 2:  # any larger strength would do as well
            return Scale(value, np.inf)
        lower = signal.size - signal.error / 2
        upper = signal.size + signal.error / 2
        slope = (at(upper, scales) - at(lower, scales)) / max(upper - lower, TINY)
        shared = signal.shared * at(signal.size, factors)
        variance = (slope * signal.error) ** 2 - 2 * slope * shared
        return Scale(value, float(np.sqrt(max(variance, 0.0))))


def log_odds(predictor, labels):
    """Log odds given held-out predictors U, mean + slope U + left G.

    By a weighted sum of labels and of U, for each of ``LEFT``.

    Parameters
    ----------
    predictor : ndarray of shape (n_rows,)
        U, of mean 0 and variance 1, or 0.
    labels : ndarray of shape (n_rows,)

    Returns
    -------
    means, slopes : ndarray of shape (n_strengths,)
    """
    found = [np.zeros(2)]
    for left in LEFT:
        found.append(_calibrated(found[-1], left, predictor, labels))
    return np.transpose(found[1:])


def most_telling(held_out, labels):
    """The held-out predictors that go with the labels most, of mean 0 and variance 1.

    Zeros where none of them does.

    Shapes: held_out (n_iterates, n_rows); labels (n_rows,).
    """
    centered = held_out - held_out.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.mean(centered**2, axis=1))
    shared = centered @ (labels - labels.mean()) / len(labels)
    share = np.divide(shared, spread, out=np.zeros_like(shared), where=spread > 0)
    best = share.argmax()
    if share[best] <= 0:
        return np.zeros(len(labels))
    return centered[best] / spread[best]


def _calibrated(start, left, predictor, labels):
    """Mean and slope for which labels, and their sum with U, are what is expected."""
    columns = np.stack([np.ones_like(predictor), predictor], axis=1)
    found = start
    for _ in range(N_STEPS):
        share, flatness = _expected(columns @ found, left)
        missing = columns.T @ (labels - share)
        hessian = (columns * flatness[:, None]).T @ columns
        step = np.linalg.lstsq(hessian, missing, rcond=None)[0]
        step *= min(1.0, LONGEST / max(np.abs(step).max(), TINY))
        found = np.clip(found + step, -STEEPEST, STEEPEST)
        if np.abs(step).max() <= CONVERGED:
            break
    return found


def _expected(mean, deviation):
    """E sigma and E sigma' of mean + deviation G, G standard normal, for every mean."""
    share = expit(mean[:, None] + deviation * NODES)
    return share @ WEIGHTS, (share * (1 - share)) @ WEIGHTS


def _finely(values):
    """Values at each of LEFT, with some between."""
    places = np.arange(len(values))
    between = np.linspace(0, len(values) - 1, N_BETWEEN * len(values))
    return PchipInterpolator(places, values)(between)
