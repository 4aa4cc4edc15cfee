"""Whether an estimator that records its trajectory is what all of them are."""

import pickle
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from ..model_selection import RecordsTrajectory
from .assertions import require, require_close

SWITCHED_OFF = {"loo": False, "risk": False, "cv": None}


def check_iterative_estimator(
    estimator: Any,
    X: Any = None,
    y: Any = None,
    *,
    repeats: bool = True,
    rtol: float = 1e-8,
    random_state: int = 0,
) -> None:
    """Check that an estimator keeps what all estimators of the package promise.

    A fit leaves parameters as they are and is the same every time. Estimates have an
    entry for every iterate, and are the mean losses of their held-out rows. An iterate
    is what a shorter run ends with; looking at one changes nothing; and a run in parts,
    or one that goes on with ``warm_start``, is the run at once. Pickles, and copies
    without the record, predict the same. Weights of one are no weights, and whole
    numbers count rows.

    Parameters
    ----------
    estimator : estimator
        Of a class that derives from :class:`skacv.model_selection.RecordsTrajectory`,
        with at least four updates, and with the estimates that are to be checked
        switched on.
    X : array-like of shape (n_samples, n_features), default=None
        None: 60 rows of 4 standard normal numbers.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        None: positive numbers, or two classes with names.
    repeats : bool, default=True
        Whether a weight of two is the same as a row that is there twice. It is not in
        batches, which are drawn from the rows, and in trees, which count rows. Models
        whose ``begin`` takes no ``sample_weight`` are not asked.
    rtol : float, default=1e-8
        Relative difference up to which predictions and losses count as equal.
    random_state : int, default=0
        Seed of what is drawn, and ``random_state`` of the estimator if it has none.

    Raises
    ------
    AssertionError
        If something is wrong. The error says what.

    Examples
    --------
    >>> from skacv import TrajectoryLasso
    >>> from skacv.testing import check_iterative_estimator
    >>> check_iterative_estimator(TrajectoryLasso(0.1, max_iter=8, loo=True, cv=3))
    """
    name, rng = type(estimator).__name__, np.random.default_rng(random_state)
    require(
        isinstance(estimator, RecordsTrajectory),
        f"{name} must derive from skacv.model_selection.RecordsTrajectory.",
    )
    X = rng.standard_normal((60, 4)) if X is None else np.asarray(X)
    if y is None:
        y = 1.0 + rng.poisson(np.exp(0.3 * X[:, 0]))
        if is_classifier(estimator):
            y = np.where(X[:, 0] + rng.standard_normal(len(X)) > 0, "yes", "no")
    y = np.asarray(y)
    estimator = clone(estimator)
    params = estimator.get_params(deep=False)
    if params.get("random_state", 0) is None:
        estimator.set_params(random_state=random_state)
    try:
        estimator.predict(X)
    except (NotFittedError, AttributeError):
        pass
    else:
        raise AssertionError(f"{name} predicts before it has been fitted.")

    model = clone(estimator)
    before = {key: repr(value) for key, value in model.get_params().items()}
    require(model.fit(X, y) is model, f"{name}.fit must return the estimator.")
    after = {key: repr(value) for key, value in model.get_params().items()}
    predictions = _as_numbers(model.predict(X))
    require(after == before, f"{name}.fit changes parameters of the estimator.")
    require(
        model.n_iter_ >= 4,
        f"{name} has {model.n_iter_} updates: choose parameters with four or more.",
    )
    _require_equal_fits(
        clone(estimator).fit(X, y),
        model,
        X,
        rtol,
        f"{name} is another model when it is fitted once more: set its random_state.",
    )
    _require_estimates(name, model, y, rtol)
    _require_iterates(name, model, X, predictions, rtol)
    _require_parts(name, estimator, model, X, y, rtol)
    sentence = f"{name} predicts something else after it has been pickled."
    _require_equal_fits(pickle.loads(pickle.dumps(model)), model, X, rtol, sentence)
    require_close(
        *map(_as_numbers, (model.drop_record().predict(X), model.predict(X))),
        f"{name} predicts something else after drop_record.",
        rtol=rtol,
    )
    if "sample_weight" in signature(estimator.begin).parameters:
        _require_weights(name, estimator, model, X, y, repeats, rtol, rng)
    if {"warm_start", "max_iter"} <= params.keys():
        _require_warm_start(name, estimator, X, y, rtol)


def _as_numbers(predictions):
    """Predictions as numbers: labels by their places in the order of all labels."""
    predictions = np.asarray(predictions)
    if predictions.dtype.kind in "fiub":
        return predictions.astype(float)
    return np.unique(predictions, return_inverse=True)[1]


def _require_equal_fits(found, expected, X, rtol, sentence):
    """Two fits have the same number of iterates, estimates and predictions."""
    require(
        found.n_iter_ == expected.n_iter_,
        f"{sentence} It has {found.n_iter_} updates in the place of "
        f"{expected.n_iter_}.",
    )
    require(
        found.record_.estimates.keys() == expected.record_.estimates.keys(),
        f"{sentence} It has other estimates.",
    )
    if expected.record_.train_path is not None:
        require_close(
            found.record_.train_path,
            expected.record_.train_path,
            f"{sentence} Its training losses are others.",
            rtol=rtol,
            atol=rtol * np.abs(expected.record_.train_path).max(),
        )
    for key, estimate in expected.record_.estimates.items():
        require_close(
            found.record_.estimates[key].path,
            estimate.path,
            f"{sentence} Its estimate {key!r} is another.",
            rtol=rtol,
            atol=rtol * np.abs(estimate.path).max(),
        )
    pairs = {"model": (found, expected)}
    for t in expected.recorded_iterations()[[0, -1]]:
        pairs[f"iterate {t}"] = found.at_iteration(t), expected.at_iteration(t)
    for what, (one, other) in pairs.items():
        predictions = _as_numbers(other.predict(X))
        require_close(
            _as_numbers(one.predict(X)),
            predictions,
            f"{sentence} Its {what} predicts something else.",
            rtol=rtol,
            atol=rtol * np.abs(predictions).max(),
        )


def _require_estimates(name, model, y, rtol):
    """Every estimate has an entry for each iterate: the mean loss of held-out rows."""
    record, n_iterates = model.record_, model.n_iter_ + 1
    for key in record.estimates:
        estimate = record[key]
        for part in ("path", "se_path"):
            path = getattr(estimate, part)
            require(
                np.shape(path) == (n_iterates,) and np.isfinite(path).all(),
                f"The {part} of the estimate {key!r} of {name} must have {n_iterates} "
                f"finite numbers, one for each iterate, got the shape "
                f"{np.shape(path)}.",
            )
        require(
            np.all(estimate.se_path >= 0),
            f"The se_path of the estimate {key!r} of {name} must not be negative.",
        )
        if estimate.prediction is None or estimate.indices is None:
            continue
        rows = estimate.indices
        rows = np.concatenate(rows) if isinstance(rows, list) else np.asarray(rows)
        prediction = np.asarray(estimate.prediction)
        require(
            prediction.shape[:2] == (n_iterates, len(rows)),
            f"Held-out predictions of the estimate {key!r} of {name} must be of "
            f"{n_iterates} iterates and {len(rows)} rows, got {prediction.shape}.",
        )
        # Survival times are targets of another form, whose loss compares rows.
        if getattr(record.loss, "couples_rows", False):
            continue
        require(
            np.array_equal(estimate.target, y[rows]),
            f"Targets of the estimate {key!r} of {name} are not those of its rows.",
        )
        if record.loss is None or is_classifier(model):
            continue
        losses = model._row_losses(model._target(estimate.target), prediction)
        require_close(
            estimate.path,
            losses.mean(axis=1),
            f"The path of the estimate {key!r} of {name} is not the mean loss of its "
            "held-out predictions.",
            # Predictions of the memory matrix are kept in fewer numbers.
            rtol=1e-3 if key == "risk" else max(rtol, 1e-8),
        )


def _require_iterates(name, model, X, whole, rtol):
    """Iterates are in order, and looking at them changes nothing."""
    kept = model.recorded_iterations()
    require(
        np.all(np.diff(kept) > 0) and kept[0] >= 0 and kept[-1] <= model.n_iter_,
        f"{name}.recorded_iterations must be numbers of iterates in order, got {kept}.",
    )
    for t in kept:
        stopped = model.at_iteration(t)
        require(
            type(stopped) is type(model) and stopped.record_.iteration == t,
            f"{name}.at_iteration({t}) must be a model at this iterate.",
        )
        stopped.predict(X)
    if hasattr(model, "staged_predict"):
        for t, predictions in zip(kept, model.staged_predict(X), strict=True):
            expected = _as_numbers(model.at_iteration(t).predict(X))
            require_close(
                _as_numbers(predictions),
                expected,
                f"{name}.staged_predict is not what at_iteration({t}) predicts.",
                rtol=rtol,
                atol=rtol * np.abs(expected).max(),
            )
    require_close(
        _as_numbers(model.predict(X)),
        whole,
        f"{name} predicts something else after its iterates have been looked at.",
        rtol=0,
    )
    try:
        model.at_iteration(model.n_iter_ + 1)
    except ValueError:
        return
    raise AssertionError(
        f"{name}.at_iteration must raise a ValueError for an iterate that is not there."
    )


def _require_parts(name, estimator, model, X, y, rtol):
    """A run in parts is the run at once, and changes no estimator until it is taken."""
    parts = clone(estimator)
    before = set(vars(parts))
    run = parts.begin(X, y)
    middle = model.n_iter_ // 2
    is_complete = run.go_on(middle)
    record = run.record()
    require(
        set(vars(parts)) == before,
        f"A run of {name} must not change the estimator before it takes a record.",
    )
    require(
        1 <= record.n_iter <= middle or is_complete,
        f"A run of {name} has {record.n_iter} updates where it was asked for {middle}.",
    )
    run.go_on(1)
    require(
        run.record().n_iter == record.n_iter,
        f"A run of {name} must not be shortened by go_on with fewer updates.",
    )
    require(parts.take(record) is parts, f"{name}.take must return the estimator.")
    for t in np.intersect1d(parts.recorded_iterations(), model.recorded_iterations()):
        expected = _as_numbers(model.at_iteration(t).predict(X))
        require_close(
            _as_numbers(parts.at_iteration(t).predict(X)),
            expected,
            f"Iterate {t} of {name} is another in a shorter run.",
            rtol=rtol,
            atol=rtol * np.abs(expected).max(),
        )
    taken = _as_numbers(parts.predict(X))
    require(
        run.go_on() and run.go_on(1),
        f"go_on of a run of {name} must return True once the run is complete.",
    )
    require_close(
        _as_numbers(parts.predict(X)),
        taken,
        f"{name} predicts something else after a run has gone on from the record that "
        "it has taken: records must not change.",
        rtol=0,
    )
    sentence = f"A run of {name} in parts is not the run at once."
    _require_equal_fits(parts.take(run.end()), model, X, rtol, sentence)


def _require_weights(name, estimator, model, X, y, repeats, rtol, rng):
    """Weights of one are no weights, and whole numbers count rows."""
    sentence = f"{name} with weights of one is not {name} without weights."
    equal = clone(estimator).fit(X, y, sample_weight=np.ones(len(y)))
    _require_equal_fits(equal, model, X, rtol, sentence)
    if not repeats:
        return
    # Leaving out one of repeated rows is not leaving out a row of more weight.
    off = SWITCHED_OFF.keys() & estimator.get_params(deep=False).keys()
    bare = clone(estimator).set_params(**{key: SWITCHED_OFF[key] for key in off})
    counts = rng.integers(1, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    weighted = clone(bare).fit(X, y, sample_weight=counts.astype(float))
    repeated = clone(bare).fit(X[rows], y[rows])
    # Roundings may end one of them an update earlier.
    both = np.intersect1d(
        weighted.recorded_iterations(), repeated.recorded_iterations()
    )
    expected = _as_numbers(repeated.at_iteration(both[-1]).predict(X))
    require_close(
        _as_numbers(weighted.at_iteration(both[-1]).predict(X)),
        expected,
        f"{name} with whole numbers as sample_weight is not {name} with so many copies "
        "of each row. If it is not meant to be, pass repeats=False.",
        rtol=0,
        atol=max(rtol, 1e-6) * np.abs(expected).max(),
    )


def _require_warm_start(name, estimator, X, y, rtol):
    """A fit that goes on with the last one is the longer fit."""
    whole = clone(estimator).set_params(max_iter=6).fit(X, y)
    if len(whole.record_.phases) > 1:  # more updates for each strength are another run
        return
    parts = clone(estimator).set_params(max_iter=3, warm_start=True).fit(X, y)
    parts.set_params(max_iter=6).fit(X, y)
    sentence = f"{name} with warm_start does not go on where its last fit has ended."
    _require_equal_fits(parts, whole, X, rtol, sentence)
