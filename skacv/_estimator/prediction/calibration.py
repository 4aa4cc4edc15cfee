"""Decisions calibrated to log odds on held-out rows."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax


def scale_of(decision, label, weights):
    """The factor that turns decisions into log odds, fitted to held-out rows.

    The maximum of the likelihood of softmax(scale * decision). One factor and no offset
    ("temperature scaling", Guo, Pleiss, Sun and Weinberger 2017, "On calibration of
    modern neural networks", section 4.2): predicted labels do not change. Labels are
    smoothed as by Platt (1999), "Probabilistic outputs for support vector machines",
    section 2.2: each of n rows counts as 1 - 1 / (n + 2) of its class, and the rest is
    shared by the other classes. Otherwise the factor would be infinite for a few rows
    without an error.

    Parameters
    ----------
    decision : ndarray of shape (n_held_out,) or (n_held_out, n_classes)
        The decision for the second of two classes, or for every class.
    label : ndarray of int, shape (n_held_out,)
    weights : ndarray of shape (n_held_out,)

    Returns
    -------
    float
        Zero if larger decisions do not make a class more likely.
    """
    decision = decision.astype(np.float64)
    if decision.ndim == 1:
        decision = np.stack([-decision, decision], axis=1) / 2
    n_rows, n_classes = decision.shape
    other = 1 / (n_rows + 2)
    target = np.full(decision.shape, other / (n_classes - 1))
    target[np.arange(n_rows), label] = 1 - other
    wanted = np.sum(target * decision, axis=1)

    def slope(scale):
        """The derivative of the mean log loss."""
        expected = np.sum(softmax(scale * decision, axis=1) * decision, axis=1)
        return np.average(expected - wanted, weights=weights)

    size = np.abs(decision).max()
    # Decisions that are the same for all classes have a slope of rounding alone.
    if slope(0.0) >= -np.finfo(np.float64).eps * size:
        return 0.0
    largest = 1 / size
    while slope(largest) < 0:
        largest *= 2
    return brentq(slope, 0.0, largest)
