"""Decisions calibrated to log odds on held-out rows."""

import numpy as np
from scipy.special import expit, softmax

from ..data.checks import copies_of


def scale_of(decision, label, weights, max_iter=100, tol=1e-8):
    """The factor that turns decisions into log odds, fitted to held-out rows.

    Shapes: decision (n_held_out[, n_classes]), label and weights (n_held_out,).
    """
    # The maximum of the likelihood of softmax(scale * decision). One factor and no
    # offset ("temperature scaling", Guo, Pleiss, Sun and Weinberger 2017, "On
    # calibration of modern neural networks", section 4.2): predicted labels do not
    # change. Labels are smoothed as by Platt (1999), "Probabilistic outputs for support
    # vector machines", section 2.2: each of n rows counts as 1 - 1 / (n + 2) of its
    # class, and the other classes share the rest. Otherwise the factor would be
    # infinite for a few rows without an error.
    decision = decision.astype(np.float64)
    share, n_rows = weights / weights.sum(), copies_of(weights[weights > 0]).sum()
    smoothing = 1 / (n_rows + 2)
    if decision.ndim == 1:
        observed = np.where(label == 1, 1 - smoothing, smoothing) * decision
    else:
        n_classes = decision.shape[1]
        target = np.full(decision.shape, smoothing / (n_classes - 1))
        target[np.arange(len(label)), label] = 1 - smoothing
        observed = np.sum(target * decision, axis=1)

    def derivatives(scale):
        """The first and second derivative of the mean log loss, which is convex."""
        if decision.ndim == 1:
            probability = expit(scale * decision)
            expected = probability * decision
            variance = expected * (1 - probability) * decision
        else:
            moment = softmax(scale * decision, axis=1) * decision
            expected = moment.sum(axis=1)
            variance = np.einsum("nk,nk->n", moment, decision) - expected**2
        return share @ (expected - observed), share @ variance

    size = np.abs(decision).max()
    slope, curvature = derivatives(0.0)
    # Decisions that are the same for all classes have a slope of rounding alone.
    if slope >= -np.finfo(np.float64).eps * size:
        return 0.0
    # Newton's method, within the bounds that earlier slopes have set.
    scale, low, high = 0.0, 0.0, np.inf
    for _ in range(max_iter):
        with np.errstate(divide="ignore"):
            newton = scale - slope / curvature
        if not low < newton < high:
            newton = (low + high) / 2 if np.isfinite(high) else 2 * low
        if abs(newton - scale) <= tol * newton:
            return float(newton)
        scale = newton
        slope, curvature = derivatives(scale)
        low, high = (scale, high) if slope < 0 else (low, scale)
    return float(scale)
