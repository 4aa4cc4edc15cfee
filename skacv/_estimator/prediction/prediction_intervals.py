"""Prediction intervals at any iterate, from held-out residuals of the run."""

from functools import partial

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from ..._compat import check_in_memory
from ...optim.matrix import slices
from ...optim.namespaces import dtype_of, here, rows_in
from ...risk.intervals import (
    around_predictions,
    checked_coverage,
    ends_of,
    jackknife_plus,
    rank_of,
)
from ..data.training_data import check_usable, new_rows
from ..estimates.left_out import relative_residuals, units_held_out
from ..estimates.readers import ESTIMATES

# Memory for the predictions of all replicas of a block of samples.
BLOCK_BYTES = 1 << 27
# Sizes of residuals are averages over so many rows at least, of trees that see so many
# at most. Fewer would be noisier, more would take longer.
ROWS_PER_LEAF, ROWS_PER_TREE = 20, 2000
# A size is no less than that share of the mean: a ratio to one near zero would be huge.
SMALLEST_SIZE = 0.1
# In so many folds the rows are, of which others say how large residuals are in one.
SIZE_FOLDS = 5


def intervals_of(fitted, X, coverage, method):
    """Prediction intervals of the iterate in use.

    Parameters
    ----------
    X, coverage, method : object
        As users pass them to ``predict_interval``.

    Returns
    -------
    ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
        With several coverages there is a last axis for these.
    """
    check_usable(fitted)
    coverage = checked_coverage(coverage)
    methods = ["auto", *interval_methods(), "scaled"]
    if method not in methods:
        raise ValueError(f"method must be one of {methods}, got {method!r}.")
    check_in_memory(X)
    fitted._check_method_kept(method)
    source = method
    if method == "auto":
        source = _first_of(fitted, _methods_for(fitted))
    elif method == "scaled":
        source = _source_to_scale(fitted)
    _check_groups(fitted, source)
    residuals, units, spread = _relative_residuals(fitted, source)
    n_units = len(residuals) if units is None else int(units.max()) + 1
    ranks = [rank_of(each, n_units) for each in coverage.ravel()]
    if source == "jackknife+":
        ends = _jackknife_plus(fitted, new_rows(fitted, X), residuals, ranks, spread)
    else:
        predictions = fitted.predict(X)
        widths = spread(predictions)
        if method == "scaled":
            held_out, sizes = _expected_sizes(fitted, X, residuals, source, units)
            residuals, widths = residuals / held_out, widths * sizes
        around = partial(around_predictions, units=units)
        ends = ends_of(around, predictions, residuals, ranks, widths)
    ends = np.clip(ends, *fitted._loss.target_range)
    # One coverage has no axis of its own.
    return ends.reshape(*ends.shape[:-1], *coverage.shape)


def _methods_for(fitted):
    """The methods that are right: with groups only that of folds, which keep them."""
    methods = interval_methods()
    return methods if fitted._groups is None else {"cv": methods["cv"]}


def _check_groups(fitted, method):
    """Raise if the residuals of a method are of rows whose groups have been seen."""
    if method not in _methods_for(fitted):
        raise ValueError(
            f"method={method!r} would ignore the groups that fit was passed: rows are "
            "held out one by one, and others of their groups are not. Take "
            "method='cv'."
        )


def _source_to_scale(fitted):
    """The first entry of the table with residuals of rows of X that are kept."""
    located = [
        method
        for method, estimate in _methods_for(fitted).items()
        if method != "jackknife+" and hasattr(fitted, estimate.indices)
    ]
    missing = [] if located else ["loo=True (or cv=5)"]
    missing += _missing_rows(fitted, "a kernel that takes rows, and is not precomputed")
    if missing:
        raise ValueError(
            f"method='scaled' needs an estimator fitted with {' and '.join(missing)}."
        )
    return _first_of(fitted, located)


def _relative_residuals(fitted, method):
    """Held-out residuals divided by the spread of targets under the loss.

    Returns
    -------
    residuals : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
    units : ndarray of int, shape (n_held_out,), or None
        As :func:`units_held_out` returns them.
    spread : callable
        The spread, as a function of predictions.
    """
    methods = interval_methods()
    estimate = methods[method]
    estimate.check_offered(fitted, f"method={method!r}")
    if missing := _missing_for(fitted, method):
        raise ValueError(
            f"method={method!r} needs an estimator fitted with "
            f"{' and '.join(missing)}; methods are {', '.join(map(repr, methods))}."
        )
    kept = fitted._kept_residuals(estimate.name)
    if kept is not None:
        return *kept, fitted._loss.spread
    has_mean = hasattr(fitted, estimate.predictions)
    spread = fitted._loss.spread if has_mean else np.ones_like
    residuals, units = (
        read(fitted, estimate) for read in (relative_residuals, units_held_out)
    )
    return residuals, units, spread


def _first_of(fitted, methods):
    """The first of some methods whose requirements are met."""
    table = interval_methods()
    for method in methods:
        estimate = table[method]
        needed = estimate.residuals_from or estimate.path
        is_kept = fitted._kept_residuals(estimate.name) is not None
        if (is_kept or hasattr(fitted, needed)) and not _missing_for(fitted, method):
            return method
    raise ValueError(
        f"Intervals need held-out residuals, and this {type(fitted).__name__} was "
        "fitted without any: fit it with loo=True or cv=5."
    )


def _missing_for(fitted, method):
    """The settings of fit that a method needs and that are missing."""
    estimate, missing = interval_methods()[method], []
    is_kept = fitted._kept_residuals(estimate.name) is not None
    if not (is_kept or hasattr(fitted, estimate.path)):
        missing.append(f"{estimate.parameter}={estimate.switched_on}")
    if method == "jackknife+":
        missing += _missing_rows(
            fitted, 'a kernel other than "precomputed", which is not kept'
        )
    return missing


def _missing_rows(fitted, kernel):
    """The missing setting of fit with which it would have kept rows of X, if any."""
    if fitted._data is None:
        return ["keep_data=True"]
    # A precomputed kernel is put away.
    return [kernel] if getattr(fitted, "X_fit_", fitted._data) is None else []


def _expected_sizes(fitted, X, residuals, method, units):
    """Expected sizes of residuals, for held-out rows and for rows of X.

    Parameters
    ----------
    units : ndarray of int, shape (n_held_out,), or None
        As :func:`units_held_out` returns them.

    Returns
    -------
    held_out : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
    sizes : ndarray of shape (n_samples,) or (n_samples, n_targets)
    """
    samples = np.hstack(getattr(fitted, interval_methods()[method].indices))
    rows, X = on_kept_columns(fitted, samples, X)
    settings = {"seed": fitted._seed, "n_jobs": fitted.n_jobs}
    targets = residuals.reshape(len(residuals), -1).T
    apart = samples if units is None else units
    held_out = [held_out_sizes(rows, own, apart, **settings) for own in targets]
    sizes = [fitted_sizes(rows, own, **settings)(X) for own in targets]
    return (
        np.stack(found, axis=1).reshape(-1, *residuals.shape[1:])
        for found in (held_out, sizes)
    )


def on_kept_columns(fitted, samples, X):
    """Some training rows and the rows of X, on the columns that fit has kept."""
    X, data = here(new_rows(fitted, X)), fitted._data
    design = data.observed.design
    if design is None:  # kernel machines put it away, and keep rows as passed
        return here(rows_in(fitted.X_fit_, samples)), X
    features = design.features if data.has_constant else design
    rows = here(rows_in(features.X, data.places_of(samples)))
    return rows, data.columns.applied(X)


def _jackknife_plus(fitted, X, residuals, ranks, spread):
    """Ends for every rank, (n_samples, 2, n_ranks) or for several targets."""
    size = BLOCK_BYTES // (dtype_of(X).itemsize * len(residuals))
    ends, targets = [], residuals.reshape(len(residuals), -1).T
    for replicas, own_residuals in zip(without_rows(fitted), targets):
        predictions = (
            _predictions_of(fitted, replicas, X[block, :])
            for block in slices(X.shape[0], size)
        )
        blocks = [
            ends_of(jackknife_plus, found, own_residuals, ranks, spread(found))
            for found in predictions
        ]
        ends.append(np.concatenate(blocks))
    return np.stack(ends, axis=1) if residuals.ndim > 1 else ends[0]


def _predictions_of(fitted, replicas, X):
    """Predictions of every replica, (n_replicas, n_samples)."""
    coef, intercept = replicas
    predictor = fitted._product(X, coef.T).T + intercept[:, None]
    return fitted._prediction(predictor, fitted._loss)


def without_rows(fitted):
    """Coefficients and intercepts without each held-out row, for every target.

    For the iterate in use; computed by a second run once, and then kept.
    """
    if fitted._replicas is None or fitted._replicas[0] != fitted.iteration_:
        fitted._replicas = fitted.iteration_, list(fitted._run_without_rows())
    return fitted._replicas[1]


def interval_methods():
    """The estimate from which each method of intervals takes held-out residuals.

    In the order in which "auto" prefers them, with the fewest assumptions first.
    """
    own = {name: estimate for name, estimate in ESTIMATES.items() if estimate.residuals}
    known = {name: own.pop(name) for name in ("loo", "cv", "risk") if name in own}
    first = {"jackknife+": known["loo"]} if "loo" in known else {}
    return first | known | own


def fitted_sizes(X, residuals, seed, n_jobs=None):
    """A forest that predicts the size of residuals, given a row.

    Shapes: X (n_rows, n_features); residuals (n_rows,).

    Returns
    -------
    callable
        It takes rows, and gives positive numbers.
    """
    size = np.abs(residuals)
    # Where no residual is other than zero any size will do.
    floor = SMALLEST_SIZE * size.mean() or 1.0
    forest = RandomForestRegressor(
        min_samples_leaf=ROWS_PER_LEAF,
        max_samples=min(len(size), ROWS_PER_TREE),
        random_state=seed,
        n_jobs=n_jobs,
    ).fit(X, size)
    return lambda rows: np.maximum(forest.predict(rows), floor).astype(size.dtype)


def held_out_sizes(X, residuals, units, seed, n_jobs=None):
    """The same at the rows themselves, each from the residuals of others.

    Shapes: returned (n_rows,).

    Parameters
    ----------
    X, residuals, seed, n_jobs
        As in :func:`fitted_sizes`.
    units : ndarray of int, shape (n_rows,)
        The sample, or the group, of each row: those of one are held out together.
    """
    distinct, place = np.unique(units, return_inverse=True)
    if len(distinct) < 2:
        raise ValueError("method='scaled' needs at least 2 rows held out.")
    order = np.random.RandomState(seed).permutation(len(distinct))
    fold = order[place] % min(SIZE_FOLDS, len(distinct))
    found = np.empty_like(residuals)
    for own in (fold == k for k in range(fold.max() + 1)):
        sizes = fitted_sizes(X[~own], residuals[~own], seed, n_jobs)
        found[own] = sizes(X[own])
    return found
