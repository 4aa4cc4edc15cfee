"""Advice to users: keywords of other packages, and choices that fall short."""

from contextlib import contextmanager
from functools import wraps
from inspect import signature

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from .._estimator.data.queries import is_ranker
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import is_auto
from .._estimator.run.recording import evaluated_iterations
from .._names import did_you_mean
from .._typing import Method
from .._warnings import warn
from ..optim.blocks import MEMORY_BYTES, blocks
from ..staged.estimator import Staged
from .failures import warn_of_failures
from .time_limit import warn_of_time

# What users of other packages should write instead of their keywords.
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


def names_keywords(init: Method) -> Method:
    """An ``__init__`` that says of unknown keywords what to write instead."""
    names = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def wrapped(self, *args, **params):
        for name in params:
            if name not in names:
                hint = HINTS.get(name, f"it has {', '.join(names)}")
                meant = "" if name in HINTS else did_you_mean(name, names)
                raise TypeError(
                    f"{type(self).__name__} has no parameter {name!r}: {hint}.{meant}"
                )
        init(self, *args, **params)

    return wrapped


@contextmanager
def names_encoder(owner, X):
    """Errors of fits have a note if X has columns of no numbers, and no encoder."""
    try:
        yield
    except (TypeError, ValueError) as error:
        kinds = [dtype.kind for dtype in X.dtypes] if hasattr(X, "iloc") else []
        is_as_passed = owner.estimator is not None and is_auto(owner.encoder)
        if is_as_passed and not set(kinds) <= set("fiub"):
            error.add_note(
                "The estimator was passed X unchanged, but not all columns are "
                "numbers: TrajectoryEarlyStoppingCV(..., encoder=TableEncoder()), "
                "from skacv.tables, encodes strings, categories and dates."
            )
        raise


def advise(owner, selection, data):
    """Warn if another call is likely to do better, and report the result."""
    compared = selection.comparison
    warn_of_failures(selection.candidates)
    limited = warn_of_limits(compared, owner.estimator is None)
    if owner.estimator is not None:  # the default models are not the user's
        warn_of_constants(selection, data.y, limited)
    if selection.copies is not None:
        folds = ESTIMATES["cv"].setting(compared.chosen[compared.index].estimator)
        name = compared.criterion.estimate.name
        if name == "loo" or (name == "cv" and folds is None):
            warn_of_copies(selection.copies)
    if data.deadline is not None:
        warn_of_time(owner.time_limit, selection.candidates)


def warn_of_limits(compared, is_default, least_weight=0.1):
    """Warn of members that are kept at the end of a run that was still improving.

    Returned are their names.

    Members below ``least_weight`` hardly change what a blend predicts. ``is_default``
    says whether members are those of the default portfolio, whose limits are not the
    user's.
    """
    weights, warned = compared.weights, set()
    for name, index in compared.best_indices.items():
        run, t = compared.chosen[index].run, compared.chosen[index].iteration
        terms, limit = terms_of(run.estimator), None
        if weights[name] >= least_weight:
            limit = terms.limit(run.estimator.record_)
        # Default paths end where a penalty hardly matters.
        if limit is None or (is_default and limit.n_last):
            continue
        # A patience would have let runs go on for less.
        is_patient = terms.patience() is not None
        of_loss = 1e-3 if is_patient else 1e-2
        # Losses of iterates that may be chosen: a network begins worse than the mean.
        iterations = evaluated_iterations(run.estimator)
        losses = compared.criterion.sign * run.path[iterations]
        best = int(np.searchsorted(iterations, t))
        if not is_still_improving(losses, best, limit.n_last, of_loss=of_loss):
            continue
        which = f" of {name!r}" if len(weights) > 1 else ""
        where = "the last" if t == iterations[-1] else "near the end"
        instead = ""
        if is_default:
            instead = (
                f": param_grid={{'{name}__{limit.parameter}': [...]}} tries other "
                "values"
            )
        warn(
            f"The chosen iterate{which}, {t} of {iterations[-1]} {limit.unit}, is "
            f"{where} of a run that was still improving: {limit.advice}{instead}.",
            ConvergenceWarning,
        )
        warned.add(name)
    return warned


def warn_of_constants(selection, y, limited):
    """Warn where the stage that is kept is worse than a constant, with the cause.

    Their paths begin with the loss of a constant, which no stage predicts. Worse is a
    loss that is larger by more than the standard error of the difference over folds.
    ``limited`` are names of members of which a warning says that they may improve.
    """
    compared = selection.comparison
    if compared.criterion.name != "cv":
        return  # a scorer, which may rank stages otherwise than their loss
    for name, index in compared.best_indices.items():
        run = compared.chosen[index].run
        # In a blend such a member may help others.
        is_alone = compared.weights[name] == 1
        if name in limited or not (is_alone and isinstance(run.estimator, Staged)):
            continue
        if run.estimator._offset is not None:
            continue  # stages add to it, and the constant does not
        t, by_fold = compared.chosen[index].iteration, run.estimator.cv_fold_path_
        constant, kept = run.path[[0, t]]
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.std(by_fold[t] - by_fold[0], ddof=min(1, by_fold.shape[1] - 1))
        if not kept - constant > spread / np.sqrt(by_fold.shape[1]):
            continue
        which = f" of {name!r}" if len(compared.weights) > 1 else ""
        what, short = "a constant (the mean of y, or the class shares)", "constant"
        if is_ranker(run.estimator):
            what, short = "a random order of rows", "random order"
        X = selection.compared_candidates[index].X
        why = terms_of(run.estimator).why_worse(X, y)
        warn(
            f"The chosen stage{which} is worse than {what}: its held-out loss is "
            f"{kept:.3g}, that of the {short} {constant:.3g}. {why}",
            UserWarning,
        )


def is_still_improving(
    losses, t, n_last=0, *, last_share=0.1, of_range=1e-3, of_loss=1e-2
):
    """Whether the least loss, at t, is near the end of a run that still falls there.

    The last tenth of the run has lowered the loss by more than a small share of the
    range of losses, or of the loss at t, and no more than half of that has been lost
    again. The last iterates are at least ``n_last``. Shapes: losses (n_iter + 1,).
    """
    n_last = max(1, n_last, int(last_share * len(losses)))
    if len(losses) <= n_last or t < len(losses) - n_last:
        return False
    gained = np.fmin.reduce(losses[:-n_last]) - losses[t]
    is_over = losses[-1] - losses[t] > gained / 2
    first = losses[np.argmin(np.isnan(losses))]  # a score may be undefined at the start
    # Scores that are maximised are negative here.
    enough = min(of_range * (first - losses[t]), of_loss * abs(losses[t]))
    return bool(gained > enough and not is_over)


def groups_of_copies(X, y, most_copies=0.1, continuous=0.3, nearly_all=0.9, few=50):
    """Groups of rows that are copies of each other, or None if few rows are copies.

    Copies are not by chance where a column has other values in a share ``continuous``
    of the rows, or in ``nearly_all`` that are distinct, if these are not few: rows of a
    few categories are often alike. Shapes: X (n, p), y (n,) or (n, k), returned (n,).
    """
    if sparse.issparse(X) or np.asarray(X).dtype.kind not in "fiu":
        return None  # counts, indicators and categories are often alike
    X = np.asarray(X)
    n_rows, n_columns = X.shape
    # Rows that differ have other projections; by blocks, without a copy of X.
    direction = np.random.default_rng(0).standard_normal(n_columns)
    projection = np.empty(n_rows)
    for rows in blocks(n_rows, 8 * n_columns, MEMORY_BYTES):
        block = X[rows].astype(np.float64, copy=False)
        with np.errstate(invalid="ignore", over="ignore"):
            projection[rows] = block @ direction
        if not np.isfinite(projection[rows]).all():
            projection[rows] = np.nan_to_num(block) @ direction
    # Rows without their numbers are alike by chance.
    is_complete = ~np.isnan(X).any(axis=1)
    complete = is_complete if is_complete.mean() > 0.5 else slice(None)
    n_distinct = len(np.unique(projection[complete]))
    n_complete = len(projection[complete])
    if n_distinct > (1 - most_copies) * n_complete:
        return None
    n_values = continuous * n_complete
    if n_columns > 1 and n_distinct > few:
        n_values = min(n_values, nearly_all * n_distinct)
    if all(len(np.unique(column[complete])) < n_values for column in X.T):
        return None
    _, labels = np.unique(np.asarray(y), return_inverse=True)
    rows_and_labels = np.stack([projection, *labels.reshape(n_rows, -1).T])
    distinct, group = np.unique(rows_and_labels, axis=1, return_inverse=True)
    is_rare = n_rows - distinct.shape[1] <= most_copies * n_rows
    return None if is_rare else group.reshape(n_rows)


def warn_of_copies(groups):
    """Warn of copies among rows that are held out at random: none of them is unseen."""
    n_rows = len(groups)
    warn(
        f"{n_rows - len(np.unique(groups))} of the {n_rows} rows are copies of "
        "others, which stay in the training rows when one is held out: errors for "
        "rows that the model has seen are too small. Drop the copies, or pass groups "
        "to fit.",
        UserWarning,
    )
