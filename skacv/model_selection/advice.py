"""Advice to users: keywords of other packages, and choices that fall short."""

from functools import wraps

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

from .._typing import Method
from .._warnings import warn

# What to write in the place of keywords that users of other packages try.
HINTS = {
    "scoring": "criterion takes scorers, such as criterion='roc_auc'",
    "metric": "criterion takes scorers, such as criterion='roc_auc'",
    "verbose": "estimators have it, such as TrajectoryLasso('path', verbose=True)",
    "class_weight": "classifiers have it, such as "
    "TrajectoryLogisticRegression('path', class_weight='balanced')",
    "groups": "pass them to fit",
    "sample_weight": "pass it to fit",
    "refit": "nothing is refitted",
    "max_iter": "estimators have it, such as TrajectoryLasso('path', max_iter=20)",
}
# A run has still improved if its last tenth brought so much of the whole way.
LAST_SHARE, STILL = 0.1, 1e-3
# Rows of which so many are copies of others are warned of, where some column has other
# values in so many of them, or in nearly all that are distinct, if these are not few:
# rows of a few categories are often alike.
MOST_COPIES, CONTINUOUS, NEARLY_ALL, FEW = 0.1, 0.3, 0.9, 50
ROWS_PER_BLOCK = 4096


def names_keywords(init: Method) -> Method:
    """An ``__init__`` that says of some unknown keywords what to write instead."""

    @wraps(init)
    def wrapped(self, *args, **params):
        for name in params:
            if name in HINTS:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}: {HINTS[name]}."
                )
        init(self, *args, **params)

    return wrapped


def warn_of_last_iterate(run, choice, sign):
    """Warn where the chosen iterate is the last of a run that was still improving.

    Parameters
    ----------
    sign : float
        1 where smaller values of the path are better.
    """
    losses = sign * run.path
    n_last = max(1, int(LAST_SHARE * len(losses)))
    if choice.iteration < len(losses) - 1 or len(losses) <= n_last:
        return
    gained = losses[-1 - n_last] - losses[-1]
    if gained > STILL * (losses[0] - losses[-1]):
        warn(
            f"The chosen iterate, {choice.iteration}, is the last of a run that was "
            "still improving: max_iter (n_estimators, of trees) may be too small. "
            "Linear models and kernels need many updates where columns are of uneven "
            "size (standardize=True, or a StandardScaler before).",
            ConvergenceWarning,
        )


def _along_a_direction(X):
    """Rows along a random direction, where those that are not alike differ.

    By blocks: no copy of X is made.
    """
    direction = np.random.default_rng(0).standard_normal(X.shape[1])
    found = np.empty(len(X))
    for rows in gen_batches(len(X), ROWS_PER_BLOCK):
        block = X[rows].astype(np.float64, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            found[rows] = block @ direction
        if not np.isfinite(found[rows]).all():
            found[rows] = np.nan_to_num(block) @ direction
    return found


def groups_of_copies(X, y):
    """Groups of rows that are copies of each other, if many rows are copies.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)

    Returns
    -------
    ndarray of int, shape (n_samples,), or None
        None where few rows are copies, or where rows are often alike by chance.
    """
    if sparse.issparse(X) or np.asarray(X).dtype.kind not in "fiu":
        return None  # counts, indicators and categories are often alike
    X = np.asarray(X)
    along, n_rows = _along_a_direction(X), len(X)
    n_distinct = len(np.unique(along))
    if n_distinct > (1 - MOST_COPIES) * n_rows:
        return None
    n_other = CONTINUOUS * n_rows
    if X.shape[1] > 1 and n_distinct > FEW:
        n_other = min(n_other, NEARLY_ALL * n_distinct)
    if all(len(np.unique(column)) < n_other for column in X.T):
        return None
    _, labels = np.unique(np.asarray(y), return_inverse=True)
    of_both = np.stack([along, labels.reshape(n_rows, -1)[:, 0]])
    distinct, group = np.unique(of_both, axis=1, return_inverse=True)
    is_rare = n_rows - distinct.shape[1] <= MOST_COPIES * n_rows
    return None if is_rare else group.reshape(n_rows)


def warn_of_copies(groups):
    """Warn of copies among rows that are held out at random: none of them is unseen.

    Parameters
    ----------
    groups : ndarray of int, shape (n_samples,)
        As :func:`groups_of_copies` returns them.
    """
    n_rows = len(groups)
    warn(
        f"{n_rows - len(np.unique(groups))} of the {n_rows} rows are copies of others, "
        "which stay in training where one is held out: errors of rows that have been "
        "seen are too small. Drop the copies, or pass groups to fit.",
        UserWarning,
    )
