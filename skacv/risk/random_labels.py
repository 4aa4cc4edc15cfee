"""Random signs: as labels that a run carries, and the error that they leave."""

import numpy as np


def random_signs(shape, rng):
    """Entries +1 or -1, with equal chances."""
    return rng.choice([-1.0, 1.0], size=shape)


def label_groups(n_labels, n_groups=8):
    """Masks of the labels of each replicate: all labels, then all but one group."""
    group = np.arange(n_labels) % min(n_groups, n_labels)
    return [group >= 0, *(group != g for g in range(group.max() + 1))]


def jackknife(estimate, leave_group_out):
    """Bias and standard error of an estimate, from those without a group of labels."""
    # Shapes: leave_group_out (n_groups, ...).
    n = len(leave_group_out)
    bias = (n - 1) * (np.mean(leave_group_out, axis=0) - estimate)
    return bias, np.sqrt((n - 1) * np.var(leave_group_out, axis=0))
