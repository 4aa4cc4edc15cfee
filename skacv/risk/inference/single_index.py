"""Scale of a debiased iterate relative to the true coefficients of a logistic model.

Where P(y = 1 | x) = sigma(u), u = x'beta + a, a debiased iterate is normal about c beta
[1]_. With psi1 and psi0 the slopes of a row by both labels, held out
(``label_effects``),

    c_t = sum_s (K^-1)_ts sum_i E[sigma'(u_i) | U_i] (psi1_si - psi0_si).

U is the held-out linear predictor of a row, by the iterate whose U is most correlated
with the labels. It does not determine the log odds u:

    u = mean + slope U + sd G,        G standard normal,

and for any such ``sd`` mean and slope follow from the labels. So there remains one
number. It is estimated from the size of the debiased iterate, or from the variance of
the part of the labels that is linear in x: both rise with the ``strength``, the
standard deviation of u. Only here a distribution of the columns is assumed, a normal
one.

.. [1] Bellec (2022), "Observable adjustments in single-index models for regularized
       M-estimators", arXiv:2204.06990.
"""

from typing import NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

# Standard deviations that U may leave open: from nothing to where the classes hardly
# overlap.
RESIDUAL_SDS = np.r_[0.0, np.geomspace(0.1, 12.0, 15)]
# Nodes and weights of a standard normal.
NODES = np.linspace(-8, 8, 81)
WEIGHTS = np.exp(-(NODES**2) / 2) / np.exp(-(NODES**2) / 2).sum()
TINY = np.finfo(float).tiny


class Scale(NamedTuple):
    """The multiple of the truth that a debiased iterate estimates, with its error."""

    # Coefficient j of the debiased iterate, less ``value`` times the truth, has the
    # variance v Omega_jj + beta_j^2 error^2: what both errors share is in the second.

    value: float
    error: float


class ScaleByStrength(NamedTuple):
    """c at the last iterate, for increasing strengths."""

    strengths: np.ndarray  # standard deviations of the log odds, (n_strengths,)
    factors: np.ndarray  # how many times a coefficient a label is linear in x
    scales: np.ndarray  # c

    @classmethod
    def of(cls, effects, labels):
        """The scales by the effects of labels (n_rows,), 0 or 1."""
        centered = labels - labels.mean()
        predictor = _best_predictor(effects.held_out, centered)
        coef, coefs, flatness_by_sd = np.zeros(2), [], []
        for sd in RESIDUAL_SDS:
            coef = _calibrated(coef, sd, predictor, labels)
            coefs.append(coef)
            mean = coef[0] + coef[1] * predictor
            flatness_by_sd.append(_expected(mean, sd)[1])
        slopes, flatness = np.array(coefs)[:, 1], np.stack(flatness_by_sd, axis=1)
        # Where predictors are normal both are the same.
        factors, shared = flatness.mean(axis=0), np.mean(predictor * centered)
        np.divide(shared, slopes, out=factors, where=slopes > 0)
        scales = effects.at_the_end(effects.jumps @ flatness)
        return cls(np.hypot(slopes, RESIDUAL_SDS), factors, scales)

    def of_debiased(self, signal):
        """The Scale, where the signal is the size of the debiased iterate."""
        return self._solved(self.scales, signal)

    def of_labels(self, signal):
        """The Scale, where the signal is the part of the labels that is linear in x."""
        return self._solved(self.factors, signal)

    def _solved(self, factors, signal, n_between=40):
        """The Scale at the strength for which (factor strength)^2 is the signal."""
        knots = np.arange(len(factors))
        fine = np.linspace(0, len(factors) - 1, n_between * len(factors))
        strengths, factors, scales = (
            PchipInterpolator(knots, values)(fine)
            for values in (self.strengths, factors, self.scales)
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


def _best_predictor(held_out, centered_labels):
    """The standardised held-out predictor most correlated with the labels."""
    # Zeros where no predictor is correlated with them.
    centered = held_out - held_out.mean(axis=1, keepdims=True)
    spread = np.sqrt(np.mean(centered**2, axis=1))
    shared = centered @ centered_labels / len(centered_labels)
    share = np.divide(shared, spread, out=np.zeros_like(shared), where=spread > 0)
    best = share.argmax()
    if share[best] <= 0:
        return np.zeros(len(centered_labels))
    return centered[best] / spread[best]


def _calibrated(
    coef, sd, predictor, labels, max_iter=60, tol=1e-12, max_step=2.0, bound=100.0
):
    """Mean and slope for which sums of labels, and of labels times U, are expected."""
    # By Newton's method, in steps and within bounds where it does not overflow.
    columns = np.stack([np.ones_like(predictor), predictor], axis=1)
    for _ in range(max_iter):
        share, flatness = _expected(columns @ coef, sd)
        missing = columns.T @ (labels - share)
        hessian = (columns * flatness[:, None]).T @ columns
        step = np.linalg.lstsq(hessian, missing, rcond=None)[0]
        step *= min(1.0, max_step / max(np.abs(step).max(), TINY))
        coef = np.clip(coef + step, -bound, bound)
        if np.abs(step).max() <= tol:
            break
    return coef


def _expected(mean, sd):
    """E sigma and E sigma' of mean + sd G, G standard normal, for every mean."""
    share = expit(mean[:, None] + sd * NODES)
    return share @ WEIGHTS, (share * (1 - share)) @ WEIGHTS
