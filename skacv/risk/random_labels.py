"""Random signs: as labels that a run carries, and the error that they leave."""

import numpy as np

# Groups of labels that are left out one after the other.
N_GROUPS = 8


def random_signs(shape, rng):
    """Entries +1 or -1, with equal chances.

    Returns
    -------
    ndarray of that shape, float64
    """
    return rng.choice([-1.0, 1.0], size=shape)


def label_groups(n_labels):
    """Which labels replicates take: all, and then all but one group.

    Shapes: returned (n_labels,).

    Parameters
    ----------
    n_labels : int
        At least 2.
    """
    group = np.arange(n_labels) % min(N_GROUPS, n_labels)
    return [group >= 0, *(group != g for g in range(group.max() + 1))]


def jackknife(every, others):
    """Bias and standard error of a quantity that is read from labels.

    Parameters
    ----------
    every : ndarray
        The quantity by all labels.
    others : ndarray of shape (n_groups, ...)
        By all labels but each group.

    Returns
    -------
    bias, standard_error : ndarray
    """
    n = len(others)
    bias = (n - 1) * (np.mean(others, axis=0) - every)
    return bias, np.sqrt((n - 1) * np.var(others, axis=0))
