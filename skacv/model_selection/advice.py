"""What a user is told: keywords of other packages, and choices that fall short."""

from functools import wraps
from inspect import signature

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from .._compat import _safe_indexing
from .._warnings import collected_warnings, warn

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
# values in so many of them: rows of a few categories are often alike.
MOST_COPIES, CONTINUOUS = 0.1, 0.3
# A member that is left out for the number of rows is tried on so many of them.
TRIED_ROWS = 300


def names_keywords(init):
    """An ``__init__`` that says of some unknown keywords what to write instead."""

    @wraps(init)
    def wrapped(self, *args, **params):
        for name in params:
            if name in HINTS and name not in signature(init).parameters:
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}: {HINTS[name]}."
                )
        init(self, *args, **params)

    return wrapped


def warn_of_last_iterate(run, choice, sign):
    """Warn where the chosen iterate is the last of a run that was still improving.

    Parameters
    ----------
    run : Run
    choice : Choice
    sign : float
        1 where smaller values of the path are better.
    """
    costs = sign * run.path
    n_last = max(1, int(LAST_SHARE * len(costs)))
    if choice.iteration < len(costs) - 1 or len(costs) <= n_last:
        return
    gained = costs[-1 - n_last] - costs[-1]
    if gained > STILL * (costs[0] - costs[-1]):
        warn(
            f"The chosen iterate, {choice.iteration}, is the last of a run that was "
            "still improving: columns may be of uneven size (standardize=True, or a "
            "StandardScaler before), or max_iter too small.",
            ConvergenceWarning,
        )


def warn_of_copies(X, y):
    """Warn where many rows are copies of others: no fold has them unseen.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_targets)
    """
    if sparse.issparse(X):  # counts and indicators are often alike
        return
    X = np.asarray(X, dtype=np.float64)
    # Rows that are not alike differ along a random direction, as good as surely.
    along = X @ np.random.default_rng(0).standard_normal(X.shape[1])
    n_rows = len(along)
    if len(np.unique(along)) > (1 - MOST_COPIES) * n_rows:
        return
    if max(len(np.unique(column)) for column in X.T) < CONTINUOUS * n_rows:
        return
    _, labels = np.unique(np.asarray(y), return_inverse=True)
    of_both = np.stack([along, labels.reshape(n_rows, -1)[:, 0]])
    n_copies = n_rows - np.unique(of_both, axis=1).shape[1]
    if n_copies > MOST_COPIES * n_rows:
        warn(
            f"{n_copies} of the {n_rows} rows are copies of others, which random folds "
            "tear apart: errors of rows that have been seen are too small. Drop the "
            "copies, or pass groups to fit.",
            UserWarning,
        )


def warn_of_left_out(stopping, members, X, y, errors_of, rng):
    """Warn where members that cannot take all rows do better on some of them.

    Parameters
    ----------
    stopping : TrajectoryEarlyStoppingCV
        Fitted, for its settings.
    members : list of (str, estimator)
        Those that were left out for the number of rows.
    X, y : as passed to fit
    errors_of : PairedErrors
        Errors of all rows.
    rng : RandomState
    """
    n_rows = len(errors_of.weights)
    rows = np.sort(rng.permutation(np.flatnonzero(errors_of.weights))[:TRIED_ROWS])
    tried = clone(stopping).set_params(
        estimator=members, criterion="cv", cv=None, param_grid=None
    )
    weights = errors_of.weights[rows]
    with collected_warnings():
        tried.fit(_safe_indexing(X, rows), np.asarray(y)[rows], sample_weight=weights)
    own = np.full(n_rows, np.nan)
    of_tried = errors_of.on(rows).of(tried.estimator_, tried.best_iter_)
    own[rows] = of_tried
    errors = errors_of.of(stopping.estimator_, stopping.best_iter_)
    if errors_of.is_worse(errors, own):
        mean, best = np.nanmean(errors[rows]), np.nanmean(of_tried)
        warn(
            f"{tried.best_member_!r} was left out, since X has {n_rows} rows, and "
            f"predicts better from {len(rows)} of them than the chosen model from all: "
            f"held-out error {best:.3g} against {mean:.3g} on these. Name it as the "
            "estimator, which takes longer, or fit boosted trees.",
            UserWarning,
        )
