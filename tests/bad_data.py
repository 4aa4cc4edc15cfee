"""Data that every estimator refuses, and what the error says."""

from datetime import date

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

N_ROWS = 40


def good(rng, of_classes=False):
    """X and y that all estimators take."""
    X = rng.standard_normal((N_ROWS, 3))
    y = X[:, 0] + rng.standard_normal(N_ROWS)
    return X, np.where(y > 0, "yes", "no").astype(object) if of_classes else y + 9


def with_entry(array, value, dtype=object):
    """A copy with another first entry."""
    found = np.asarray(array).astype(dtype)
    found.flat[0] = value
    return found


DATES = np.array([date(2024, 1, 1)] * N_ROWS, dtype="datetime64[D]")
DAYS = DATES.astype(object)
TIMES = np.array([(True, 2.0)] * N_ROWS, dtype=[("event", bool), ("time", float)])
UNEVEN = [[1.0], [1.0, 2.0]] * (N_ROWS // 2)
HUGE = 10**400
ROWS = {
    "None": (lambda X: with_entry(X, None), "contains NaN|missing"),
    "NaN": (lambda X: with_entry(X, np.nan, float), "contains NaN|missing"),
    "strings of numbers": (lambda X: X.astype(str), "X must be numbers, got strings"),
    "a string": (lambda X: with_entry(X, "1"), "X must be numbers, got strings"),
    "dates": (lambda X: np.stack([DATES] * 3, axis=1), "X must be numbers, got dates"),
    "days": (lambda X: np.stack([DAYS] * 3, axis=1), "X must be numbers, got dates"),
    "complex": (lambda X: X + 1j, "X must be numbers, got complex ones"),
    "a complex": (lambda X: with_entry(X, 1j), "X must be numbers, got complex ones"),
    "a huge one": (lambda X: with_entry(X, HUGE), "X must be numbers, got an integer"),
    "structured": (lambda X: TIMES, "X must be numbers, got records with the fields"),
    "none at all": (lambda X: None, "X is None|without X"),
    "a row": (lambda X: dict(zip("abc", X[0])), r"one row pass pandas.DataFrame\(\[X"),
    "columns": (lambda X: dict(zip("abc", X.T)), r"columns pass pandas.DataFrame\(X"),
    "rows": (
        lambda X: [dict(zip("abc", row)) for row in X],
        r"got a list of dicts: pass pandas.DataFrame\(X",
    ),
    "a series": (lambda X: pd.Series(X[:, 0]), "2-dimensional container, .*to_frame"),
    "infinity": (
        lambda X: with_entry(X, np.inf, float),
        "X contains infinity, or .* column 0: replace",
    ),
}
TARGETS = {
    "None": (lambda y: with_entry(y, None), "y contains NaN or None"),
    "NaN": (lambda y: with_entry(y, np.nan), "y contains NaN or None"),
    "sparse": (lambda y: sparse.csr_matrix(np.ones((N_ROWS, 1))), "y.toarray"),
    "short": (lambda y: y[1:], "inconsistent numbers of samples"),
    "none at all": (lambda y: None, "y"),
    "empty": (lambda y: [], "y is empty|0 sample"),
    "a name": (lambda y: "y", r"y must have an entry .* pass y=X\['y'\]"),
    "a dict": (lambda y: {"a": 1}, "y must have a target for each row, got"),
    "uneven": (
        lambda y: UNEVEN,
        "y cannot be converted to an array, for example because rows differ",
    ),
    "structured": (lambda y: TIMES, "y is a structured array.*'event', 'time'.*surv"),
}
NUMBERS = TARGETS | {
    "strings of numbers": (lambda y: y.astype(str), "y must be numbers, got strings"),
    "a string": (lambda y: with_entry(y, "1.5"), "y must be numbers, got strings"),
    "dates": (lambda y: DATES, "y must be numbers, got dates"),
    "infinity": (lambda y: with_entry(y, np.inf, float), "infinity"),
    "days": (lambda y: DAYS, "y must be numbers, got dates"),
    "complex": (lambda y: y + 1j, "y must be numbers, got complex ones"),
    "a huge one": (lambda y: with_entry(y, HUGE), "y must be numbers, got an integer"),
    "objects": (
        lambda y: np.array([object()] * N_ROWS),
        "y must be numbers, got objects of the type object",
    ),
}
LABELS = TARGETS | {
    "mixed": (lambda y: with_entry(y, 1), "mixes labels that are strings with others"),
    "two columns": (lambda y: np.stack([y, y], axis=1), "MultiOutputClassifier|1d"),
    "one class": (lambda y: np.full(N_ROWS, "no"), "class"),
    "not whole": (
        lambda y: np.linspace(0, 1, N_ROWS) * (np.arange(N_ROWS) % 9),
        "[Uu]nknown label type|too many to be classes",
    ),
    "numbers": (lambda y: np.arange(N_ROWS), "40 different numbers in 40 rows"),
    "dates": (lambda y: DATES + np.arange(N_ROWS) % 2, "y must be labels.* got dates"),
    "days": (
        lambda y: (DATES + np.arange(N_ROWS) % 2).astype(object),
        "y must be labels.* got dates",
    ),
    "complex": (lambda y: 1j * (y == "no"), "y must be labels.* got complex ones"),
}
WEIGHTS = {
    "two columns": (np.ones((N_ROWS, 2)), r"sample_weight must be .* \(40, 2\)"),
    "one column": (np.ones((N_ROWS, 1)), r"sample_weight must be .* \(40, 1\)"),
    "strings": (["a"] * N_ROWS, "sample_weight must be numbers, got strings"),
    "strings of numbers": (
        ["1"] * N_ROWS,
        "sample_weight must be numbers, got strings",
    ),
    "a name": ("w", r"sample_weight must have .* pass sample_weight=X\['w'\]"),
    "None": ([None] + [1.0] * (N_ROWS - 1), "sample_weight contains NaN"),
    "NaN": ([np.nan] + [1.0] * (N_ROWS - 1), "sample_weight contains NaN"),
    "infinity": ([np.inf] + [1.0] * (N_ROWS - 1), "sample_weight contains infinity"),
    "negative": ([-1.0] + [1.0] * (N_ROWS - 1), "Negative values in sample_weight"),
    "a negative number": (-1.0, "Negative values in sample_weight"),
    "short": (np.ones(N_ROWS - 1), "inconsistent numbers of samples"),
    "dates": (DATES, "sample_weight must be numbers, got dates"),
    "days": (DAYS, "sample_weight must be numbers, got dates"),
    "complex": (np.ones(N_ROWS) + 1j, "sample_weight must be numbers, got complex"),
    "a huge one": (
        [HUGE] + [1.0] * (N_ROWS - 1),
        "sample_weight must be numbers, got an integer beyond",
    ),
    "uneven": (UNEVEN, "sample_weight cannot be converted to an array"),
    "structured": (TIMES, "sample_weight must be numbers, got records"),
    "a dict": ({"a": 1}, "sample_weight must be numbers, got objects of the type dict"),
}
LETTERS = np.array(["a", "b"] * (N_ROWS // 2), dtype=object)
GROUPS = {
    "None": (with_entry(LETTERS, None), "groups has missing values"),
    "all None": (np.full(N_ROWS, None), "groups has missing values"),
    "NaN": (with_entry(np.arange(N_ROWS), np.nan, float), "groups has missing values"),
    "mixed": (
        with_entry(LETTERS, 1),
        "groups mixes labels that are strings with others",
    ),
    "short": (LETTERS[1:], r"groups must be one label for each of the 40 rows"),
    "two columns": (np.ones((N_ROWS, 2)), "groups must be one label for each"),
    "a name": ("g", r"groups must have an entry .* pass groups=X\['g'\]"),
}


def tables(of_classes):
    """Everything that may be bad, by what it is."""
    targets = LABELS if of_classes else NUMBERS
    return {"X": ROWS, "y": targets, "sample_weight": WEIGHTS, "groups": GROUPS}


def cases(of_classes=False, without=()):
    """Names of all bad data, such as ``y: None``."""
    return [
        f"{what}: {name}"
        for what, table in tables(of_classes).items()
        if what not in without
        for name in table
    ]


def spoilt(X, y, what, change):
    """Arguments of ``fit`` of which one is bad."""
    if what == "X":
        return (change(X), y), {}
    if what == "y":
        return (X, change(y)), {}
    return (X, y), {what: change}


def check_refused(model, method, X, y, case, of_classes=False):
    """A method raises, and leaves the model as it is."""
    names, values = dict(vars(model)), joblib.hash(vars(model))
    what, _, name = case.partition(": ")
    change, message = tables(of_classes)[what][name]
    args, params = spoilt(X, y, what, change)
    with pytest.raises((ValueError, TypeError), match=message):
        getattr(model, method)(*args, **params)
    assert vars(model).keys() == names.keys()
    assert all(vars(model)[name] is value for name, value in names.items())
    assert joblib.hash(vars(model)) == values
