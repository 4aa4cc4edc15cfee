"""Advice to users: keywords of other packages, and choices that fall short."""

from functools import wraps
from inspect import signature

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
    "class_weight": "it is for classification, as in "
    "SelfStoppingClassifier(class_weight='balanced')",
    "groups": "pass them to fit",
    "sample_weight": "pass it to fit",
    "refit": "nothing is refitted",
    "max_iter": "estimators have it, such as TrajectoryLasso('path', max_iter=20)",
}
# A run has still improved if its last tenth brought so much of the whole way, or of the
# loss that is left; less of that where a patience would have let it go on.
LAST_SHARE, OF_WAY, OF_LOSS, OF_LOSS_PATIENT = 0.1, 1e-3, 1e-2, 1e-3
# Members of a blend with less weight hardly change what it predicts.
MATERIAL = 0.1
# Rows of which so many are copies of others are warned of, where some column has other
# values in so many of them, or in nearly all that are distinct, if these are not few:
# rows of a few categories are often alike.
MOST_COPIES, CONTINUOUS, NEARLY_ALL, FEW = 0.1, 0.3, 0.9, 50
ROWS_PER_BLOCK = 4096


def names_keywords(init: Method) -> Method:
    """An ``__init__`` that says of unknown keywords what to write instead."""
    known = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def wrapped(self, *args, **params):
        for name in params:
            if name not in known:
                hint = HINTS.get(name, f"it has {', '.join(known)}")
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}: {hint}."
                )
        init(self, *args, **params)

    return wrapped


def warn_of_limits(compared, is_default):
    """Warn of members that are kept at the end of a run that was still improving.

    Parameters
    ----------
    compared : Comparison
        Members of little weight are not spoken of.
    is_default : bool
        Whether members are those of the default portfolio, with limits of ours.
    """
    weights = compared.weights
    for name, (run, choice) in compared.chosen().items():
        limit = run.estimator._ended_by() if weights[name] >= MATERIAL else None
        # Default paths end where a penalty hardly matters.
        if limit is None or (is_default and limit.n_last):
            continue
        is_patient = run.estimator._default_patience() is not None
        of_loss = OF_LOSS_PATIENT if is_patient else OF_LOSS
        # Those that may be chosen: a network begins worse than the mean.
        rows, t = run.estimator.recorded_iterations(), choice.iteration
        losses = compared.criterion.sign * run.path[rows]
        place = int(np.searchsorted(rows, t))
        if not is_still_improving(losses, place, of_loss, limit.n_last):
            continue
        which = f" of {name!r}" if len(weights) > 1 else ""
        where = "the last" if t == rows[-1] else "near the end"
        instead = ""
        if is_default:
            instead = (
                f": param_grid={{'{name}__{limit.parameter}': [...]}} tries other "
                "values"
            )
        warn(
            f"The chosen iterate{which}, {t} of {rows[-1]} {limit.unit}, is "
            f"{where} of a run that was still improving: {limit.advice}{instead}.",
            ConvergenceWarning,
        )


def is_still_improving(losses, t, of_loss=OF_LOSS, n_last=0):
    """Whether the least loss, at t, is near the end of a run that still falls there.

    What the last tenth of the run has brought is more than a small share of the whole
    way, or of the loss that is left, and no more than half of that has been lost again.

    Parameters
    ----------
    losses : ndarray of shape (n_iter + 1,)
    t : int
    of_loss : float
        The share of the loss at t that is enough.
    n_last : int
        The last iterates that are looked at are so many, or a tenth of all.
    """
    n_last = max(1, n_last, int(LAST_SHARE * len(losses)))
    if len(losses) <= n_last or t < len(losses) - n_last:
        return False
    gained = np.fmin.reduce(losses[:-n_last]) - losses[t]
    is_over = losses[-1] - losses[t] > gained / 2
    begun = losses[np.argmin(np.isnan(losses))]  # a score may be undefined at the start
    # Scores that are maximised are negative here.
    enough = min(OF_WAY * (begun - losses[t]), of_loss * abs(losses[t]))
    return bool(gained > enough and not is_over)


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
    # Rows without their numbers are alike by chance.
    is_complete = ~np.isnan(X).any(axis=1)
    whole = is_complete if is_complete.mean() > 0.5 else slice(None)
    n_distinct, n_whole = len(np.unique(along[whole])), len(along[whole])
    if n_distinct > (1 - MOST_COPIES) * n_whole:
        return None
    n_other = CONTINUOUS * n_whole
    if X.shape[1] > 1 and n_distinct > FEW:
        n_other = min(n_other, NEARLY_ALL * n_distinct)
    if all(len(np.unique(column[whole])) < n_other for column in X.T):
        return None
    _, labels = np.unique(np.asarray(y), return_inverse=True)
    of_both = np.stack([along, *labels.reshape(n_rows, -1).T])
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
