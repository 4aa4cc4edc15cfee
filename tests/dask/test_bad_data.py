"""Collections with bad data are refused as arrays are; errors name the block."""

import dask.array as da
import joblib
import numpy as np
import pytest

from skacv import (
    IterativeRidge,
    TrajectoryHuberRegressor,
    TrajectoryLogisticRegression,
)

from ..bad_data import N_ROWS, good, tables

OFF = {"risk": False, "loo": False, "cv": 3, "max_iter": 3}
REGRESSORS = {
    # From moments, and with rows that stay on workers.
    "moments": IterativeRidge(**OFF),
    "rows": TrajectoryHuberRegressor(scale=1.0, **OFF),
}
SIZE = N_ROWS // 2


def blocks(array):
    array = np.asarray(array)
    return da.from_array(array, chunks=(SIZE, *array.shape[1:]))


def check_refused(model, X, y, weights, message):
    before = joblib.hash(vars(model))
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y, sample_weight=weights)
    assert joblib.hash(vars(model)) == before


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("None", "[Bb]lock 0.*(missing values|y contains NaN or None)"),
        ("NaN", "[Bb]lock 0.*(contains NaN|missing values)"),
        ("a string", "[Bb]lock 0.*y must be numbers, got strings"),
        ("strings of numbers", "[Bb]lock [01].*y must be numbers, got strings"),
        ("dates", "[Bb]lock [01].*y must be numbers, got dates"),
        ("infinity", "[Bb]lock 0.*infinity"),
    ],
)
def test_targets(name, case, message, rng):
    X, y = good(rng)
    change, _ = tables(False)["y"][case]
    check_refused(REGRESSORS[name], blocks(X), blocks(change(y)), None, message)


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("two columns", r"sample_weight must be .* \(20, 2\)"),
        ("strings", "sample_weight must be numbers, got strings"),
        ("strings of numbers", "sample_weight must be numbers, got strings"),
        ("None", "sample_weight contains NaN"),
        ("NaN", "sample_weight contains NaN"),
        ("negative", "Negative values in sample_weight"),
        ("a negative number", "Negative values in sample_weight"),
        ("short", "sample_weight"),
    ],
)
def test_weights(name, case, message, rng):
    X, y = good(rng)
    value, _ = tables(False)["sample_weight"][case]
    if np.ndim(value):
        value = blocks(value)
    check_refused(REGRESSORS[name], blocks(X), blocks(y), value, message)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("None", "[Bb]lock 0 of y has missing values"),
        ("mixed", "mixes labels that are strings with others"),
        ("two columns", "one label"),
        ("not whole", "[Uu]nknown label type"),
    ],
)
def test_labels(case, message, rng):
    X, y = good(rng, of_classes=True)
    change, _ = tables(True)["y"][case]
    model = TrajectoryLogisticRegression(**OFF)
    check_refused(model, blocks(X), blocks(change(y)), None, message)


@pytest.mark.parametrize("name", REGRESSORS)
def test_one_number_is_the_weight_of_all_rows(name, rng):
    X, y = map(blocks, good(rng))
    model = REGRESSORS[name]
    weights = blocks(np.full(N_ROWS, 2.0))
    expected = model.fit(X, y, sample_weight=weights).predict(X).compute()
    found = model.fit(X, y, sample_weight=2.0).predict(X).compute()
    np.testing.assert_allclose(found, expected, rtol=1e-12)
