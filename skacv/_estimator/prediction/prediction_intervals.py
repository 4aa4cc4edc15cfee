"""Prediction intervals at any iterate, from held-out residuals of the run."""

from functools import partial

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from ..._compat import check_in_memory
from ..._names import did_you_mean
from ...optim.blocks import MEMORY_BYTES, blocks
from ...optim.namespaces import dtype_of, rows_in, to_numpy
from ...risk.intervals import (
    FEWEST_ROWS,
    INTERVALS,
    QUANTILES,
    ends_of,
    held_out_sizes,
    shaped,
    sizes_by_prediction,
    smallest_size,
)
from ..data.training_data import check_usable, new_rows
from ..estimates.left_out import held_out_rows
from ..estimates.readers import ESTIMATES
from .offsets import add_offset, given, offset_of_rows

# A tree that learns the sizes of residuals sees so many rows at most: more would take
# longer.
ROWS_PER_TREE = 2000


def intervals_of(fitted, X, coverage, method, offset=None):
    """Prediction intervals of the iterate in use.

    Shapes: returned (n_samples, 2) or (n_samples, n_targets, 2).
    """
    return _ends_at(INTERVALS, fitted, X, coverage, method, offset)


def quantiles_of(fitted, X, levels, method, offset=None):
    """Quantiles of the target by the iterate in use.

    Shapes: returned (n_samples, n_levels) or (n_samples, n_targets, n_levels).
    """
    return _ends_at(QUANTILES, fitted, X, levels, method, offset)


def _ends_at(form, fitted, X, shares, method, offset):
    """Ends of intervals, or quantiles, of a form; at shares as users pass them."""
    offset = offset_of_rows(fitted, X, offset, form.method)
    check_usable(fitted)
    shares = form.checked(shares)
    methods = interval_methods()
    names = ["auto", *methods, "scaled"]
    if method not in names:
        raise ValueError(
            f"method must be one of {names}, got {method!r}."
            f"{did_you_mean(method, names)}"
        )
    check_in_memory(X)
    fitted._check_method_kept(method)
    source, valid = method, _methods_for(fitted)
    if method == "auto":
        source = _first_method(fitted, valid)
    elif method == "scaled":
        source = source_of_predictions(fitted)
    if source not in valid:
        raise ValueError(
            f"method={source!r} would ignore the groups that fit was passed: it holds "
            "rows out one by one, not with their whole groups. Use method='cv'."
        )
    # Its held-out rows.
    estimate = methods[source]
    estimate.check_offered(fitted, f"method={source!r}")
    if missing := _missing_for(fitted, source):
        raise ValueError(
            f"method={source!r} needs an estimator fitted with "
            f"{' and '.join(missing)}; methods are {', '.join(map(repr, methods))}."
        )
    held_out = fitted._kept_residuals(estimate.name)
    if held_out is None:
        held_out = held_out_rows(fitted, fitted.record_[estimate.name])
    # And the intervals.
    if source == "jackknife+":
        rows = new_rows(fitted, X)
        ends = _by_replicas(form, fitted, rows, held_out, shares, offset)
        return shaped(np.clip(ends, *fitted._loss.target_range), shares)
    predictions, sizes = fitted.predict(X, **given(offset)), None
    if method == "scaled":
        sizes = _expected_sizes(fitted, X, predictions, held_out, source)
    return form.of_rows(predictions, held_out, shares, fitted._loss, sizes)


def _methods_for(fitted):
    """The valid methods: with groups only "cv", which holds out whole groups."""
    methods = interval_methods()
    return methods if fitted.record_.groups is None else {"cv": methods["cv"]}


def source_of_predictions(fitted):
    """The first method that has held-out predictions, not residuals alone."""
    methods = _methods_for(fitted)
    with_predictions = [
        method
        for method, estimate in methods.items()
        if method != "jackknife+"
        and (
            fitted._kept_residuals(estimate.name) is not None
            or (
                (held_out := estimate.of(fitted)) is not None
                and held_out.prediction is not None
            )
        )
    ]
    return _first_method(fitted, with_predictions)


def _first_method(fitted, methods):
    """The first of some methods whose requirements are met."""
    table = interval_methods()
    for method in methods:
        estimate = table[method]
        held_out, is_kept = estimate.of(fitted), False
        if held_out is not None:
            is_kept = held_out.target is not None or not estimate.needs_target
        is_kept |= fitted._kept_residuals(estimate.name) is not None
        if is_kept and not _missing_for(fitted, method):
            return method
    raise ValueError(
        "Intervals and prediction sets need held-out rows, and this "
        f"{type(fitted).__name__} was fitted without any: fit it with loo=True or cv=5."
    )


def _missing_for(fitted, method):
    """The settings of fit that a method needs and that are missing."""
    estimate, missing = interval_methods()[method], []
    is_kept = fitted._kept_residuals(estimate.name) is not None
    if not is_kept and estimate.of(fitted) is None:
        missing.append(f"{estimate.parameter}={estimate.switched_on}")
    if method == "jackknife+":
        if fitted.record_.data is None and "center_indices_" in fitted.record_.more:
            missing.append("n_centers=None, since centres are the only rows kept")
        elif fitted.record_.data is None:
            missing.append("keep_data=True")
        elif not _keeps_rows(fitted):
            missing.append('a kernel other than "precomputed", which is not kept')
    return missing


def _keeps_rows(fitted):
    """Whether rows of X are kept; a precomputed kernel is put away."""
    record = fitted.record_
    return record.data is not None and record.more.get("X_fit_", True) is not None


def _expected_sizes(fitted, X, predictions, held_out, method):
    """Expected sizes of residuals, for held-out rows and for rows of X.

    Shapes: predictions (n_samples[, n_targets]), returned (n_held_out[, n_targets]),
    (n_samples[, n_targets]).
    """
    estimate = interval_methods()[method].of(fitted)
    if estimate is None or estimate.indices is None or not _keeps_rows(fitted):
        return sizes_by_prediction(held_out, predictions)
    samples, residuals = np.hstack(estimate.indices), held_out.residuals
    rows, X = select_kept_columns(fitted, samples, X)
    forest = partial(fit_sizes, seed=fitted.record_.seed, n_jobs=fitted.n_jobs)
    units = samples if held_out.units is None else held_out.units
    by_target = [
        (
            held_out_sizes(forest, rows, errors, units, fitted.record_.seed),
            forest(rows, errors)(X),
        )
        for errors in residuals.reshape(len(residuals), -1).T
    ]
    return tuple(
        np.stack(part, axis=1).reshape(-1, *residuals.shape[1:])
        for part in zip(*by_target)
    )


def select_kept_columns(fitted, samples, X):
    """Some training rows and the rows of X, on the columns that fit has kept."""
    X, data = to_numpy(new_rows(fitted, X)), fitted.record_.data
    design = data.observed.design
    if design is None:  # kernel machines put it away, and keep rows as passed
        return to_numpy(rows_in(fitted.X_fit_, samples)), X
    features = design.features if data.has_constant else design
    rows = to_numpy(rows_in(features.X, data.rows_of_samples(samples)))
    return rows, data.columns.apply(X)


def _by_replicas(form, fitted, X, held_out, shares, offset):
    """Ends at every share, from linear models without each held-out row."""
    loss, ranks = fitted._loss, form.ranks(shares, held_out.n_units)

    def predict(coef, intercept, block):
        predictor = fitted._product(X[block, :], coef.T).T + intercept[:, None]
        prediction = fitted._prediction(predictor, loss)
        if offset is None:
            return prediction
        return loss.with_offset(prediction, offset[block])

    replicas = (
        partial(predict, coef, intercept)
        for coef, intercept in fitted._coefficients_without_rows()
    )
    size = 2 * dtype_of(X).itemsize * len(held_out.residuals)
    row_blocks = blocks(X.shape[0], size, MEMORY_BYTES)
    form = form.by_replicas
    return _ends_by_replicas(form, replicas, row_blocks, held_out, ranks, loss)


def _ends_by_replicas(form, replicas, row_blocks, held_out, ranks, loss):
    """Ends from what the replica without each held-out row predicts for new rows."""
    # ``replicas`` has a function for every target, of a block of new rows to arrays
    # (n_held_out, n_block). Returned are (n_samples[, n_targets], 2, n_ranks), or
    # without the axis of ends for quantiles.
    residuals, spread = held_out.residuals, np.ones_like
    if held_out.predictions is not None:
        spread = loss.spread
    ends, targets = [], residuals.reshape(len(residuals), -1).T
    row_blocks = list(row_blocks)
    for predict, of_target in zip(replicas, targets):
        by_block = []
        for block in row_blocks:
            without_row = predict(block)
            widths = spread(without_row)
            ends_of_block = ends_of(form, without_row, of_target, ranks, widths)
            by_block.append(ends_of_block)
        ends.append(np.concatenate(by_block))
    return np.stack(ends, axis=1) if residuals.ndim > 1 else ends[0]


def cv_plus(form, fitted, copies, X, shares, offset=None):
    """CV+ intervals from the copies of all folds, (n_samples[, n_targets], 2).

    Or quantiles, if ``form`` is theirs, without the axis of ends.
    """
    check_usable(fitted)
    shares = form.checked(shares)
    if fitted.record_.groups is not None:
        raise ValueError(
            "method='cv+' treats rows one by one, but fit was passed groups: use "
            "method='cv'."
        )
    held_out = held_out_rows(fitted, fitted.record_["cv"])
    sizes = list(map(len, fitted.cv_indices_))
    fold = np.repeat(np.arange(len(sizes)), sizes)
    predictions = np.stack(
        [add_offset(fitted, copy.predict(X), offset) for copy in copies]
    )
    n_folds, n_samples = predictions.shape[:2]
    by_target = predictions.reshape(n_folds, n_samples, -1)
    replicas = (
        lambda block, values=values: values[fold, block]
        for values in np.moveaxis(by_target, 2, 0)
    )
    ranks = form.ranks(shares, held_out.n_units)
    size = 2 * predictions.itemsize * len(fold)
    of_rows = blocks(n_samples, size, MEMORY_BYTES), held_out, ranks, fitted._loss
    ends = _ends_by_replicas(form.by_replicas, replicas, *of_rows)
    return shaped(np.clip(ends, *fitted._loss.target_range), shares)


def interval_methods():
    """The estimate from which each method of intervals takes held-out residuals."""
    estimates = {
        name: estimate for name, estimate in ESTIMATES.items() if estimate.has_residuals
    }
    built_in = {
        name: estimates.pop(name) for name in ("loo", "cv", "risk") if name in estimates
    }
    first = {"jackknife+": built_in["loo"]} if "loo" in built_in else {}
    return first | built_in | estimates


def fit_sizes(X, residuals, seed, n_jobs=None):
    """A forest that predicts the size of residuals, given a row.

    Shapes: X (n_rows, n_features); residuals (n_rows,).
    """
    size = np.abs(residuals)
    floor = smallest_size(size)
    forest = RandomForestRegressor(
        min_samples_leaf=FEWEST_ROWS,
        max_samples=min(len(size), ROWS_PER_TREE),
        random_state=seed,
        n_jobs=n_jobs,
    ).fit(X, size)
    return lambda rows: np.maximum(forest.predict(rows), floor).astype(size.dtype)
