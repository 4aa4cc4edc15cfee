"""Offsets of stopping estimators: one change of targets and weights for all members."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
)
from tests.linear_model.offset_cases import drawn

TREES = HistGradientBoostingRegressor(
    loss="poisson", max_iter=12, min_samples_leaf=10, random_state=0
)
GLM = TrajectoryRegressor("path", loss="poisson", penalty="l1", max_iter=5)


def members():
    return [("glm", clone(GLM)), ("trees", clone(TREES))]


STOPPING = {
    "glm": (TrajectoryEarlyStoppingCV(TrajectoryPoissonRegressor(0.01)), "cv"),
    "trees": (TrajectoryEarlyStoppingCV(TREES), "cv"),
    "steps": (TrajectoryEarlyStoppingCV(make_pipeline(StandardScaler(), TREES)), "cv"),
    "best": (TrajectoryEarlyStoppingCV(members(), rule="min"), "cv"),
    "blend": (TrajectoryEarlyStoppingCV(members(), rule="blend"), "cv"),
}


def fitted_twice(model, **params):
    """A model with an offset, and one of rates with weights."""
    X, y, offset = drawn("poisson")
    model = clone(model).set_params(random_state=0, **params)
    exposure = np.exp(offset)
    with_offset = clone(model).fit(X, y, offset=offset)
    of_rates = clone(model).fit(X, y / exposure, sample_weight=exposure)
    return with_offset, of_rates, (X, y, offset, exposure)


@pytest.mark.parametrize("name", STOPPING)
def test_runs_are_those_of_rates_and_weights(name):
    with_offset, of_rates, (X, y, offset, exposure) = fitted_twice(STOPPING[name][0])
    assert with_offset.best_score_ == of_rates.best_score_
    assert with_offset.best_iter_ == of_rates.best_iter_
    assert with_offset.weights_ == of_rates.weights_
    np.testing.assert_array_equal(with_offset.path_, of_rates.path_)
    np.testing.assert_allclose(
        with_offset.predict(X, offset=offset), of_rates.predict(X) * exposure
    )
    np.testing.assert_allclose(
        with_offset.held_out_prediction_, of_rates.held_out_prediction_ * exposure
    )
    np.testing.assert_allclose(
        with_offset.score(X, y, offset=offset),
        of_rates.score(X, y / exposure, sample_weight=exposure),
    )
    if name != "blend":
        staged = list(with_offset.staged_predict(X, offset=offset))
        rates = list(of_rates.staged_predict(X))
        np.testing.assert_allclose(staged[-1], rates[-1] * exposure)


@pytest.mark.parametrize("name", STOPPING)
def test_intervals_are_by_the_spread_of_counts(name):
    model, method = STOPPING[name]
    model, _, (X, y, offset, _) = fitted_twice(model)
    alike, exposure = np.repeat(X[:1], 2, axis=0), np.array([1.0, 4.0])
    arguments = {"method": method, "offset": np.log(exposure)}
    ends = model.predict_interval(alike, 0.5, **arguments)
    mean = model.predict(alike, offset=np.log(exposure))
    widths = (ends[:, 1] - mean) / np.sqrt(mean)
    np.testing.assert_allclose(widths[0], widths[1])
    # The held-out residuals are in units of that spread too.
    held_out = model.held_out_prediction_
    residuals = np.abs(y - held_out) / np.sqrt(held_out)
    assert widths[0] == pytest.approx(np.median(residuals), rel=0.02)
    covering = model.predict_interval(X, 0.8, offset=offset)
    covered = (covering[:, 0] <= y) & (y <= covering[:, 1])
    assert 0.75 < covered.mean() < 0.95


@pytest.mark.parametrize("name", STOPPING)
def test_pickles_and_dropped_records_know_of_it(name):
    model, _, (X, _, offset, _) = fitted_twice(STOPPING[name][0])
    ends = model.predict_interval(X[:5], method=STOPPING[name][1], offset=offset[:5])
    small = pickle.loads(pickle.dumps(model.drop_record()))
    for copied in (small, pickle.loads(pickle.dumps(model))):
        found = copied.predict_interval(
            X[:5], method=STOPPING[name][1], offset=offset[:5]
        )
        np.testing.assert_allclose(found, ends)
        with pytest.raises(ValueError, match="was fitted with an offset"):
            copied.predict(X)
    for member in model.members_.values():
        with pytest.raises(ValueError, match="was fitted with an offset"):
            member.predict(X)
        assert member.predict(X, offset=offset).shape == (len(X),)


def test_kernels_take_offsets_of_the_squared_error():
    X, _, offset = drawn("poisson", 80)
    y = np.sin(3 * X[:, 0]) + offset
    pairs = [
        ("ridge", IterativeRidge(0.0, max_iter=20)),
        ("kernel", KernelEigenProRegressor(gamma=1.0)),
    ]
    model = TrajectoryEarlyStoppingCV(pairs, rule="blend", cv=4, random_state=0)
    found = clone(model).fit(X, y, offset=offset)
    expected = clone(model).fit(X, y - offset)
    assert found.weights_ == expected.weights_
    np.testing.assert_allclose(
        found.predict(X, offset=offset), expected.predict(X) + offset
    )
    np.testing.assert_allclose(
        found.predict_interval(X, offset=offset),
        expected.predict_interval(X) + offset[:, None],
        atol=1e-9,
    )


@pytest.mark.usefixtures("few_trees")
def test_default_models_take_raw_tables_and_offsets():
    X, _, offset = drawn("poisson", 120)
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["word"] = np.where(X[:, 0] > 0, "yes", "no")
    y = X[:, 0] + np.cos(np.arange(120)) + offset
    found = SelfStoppingRegressor(random_state=0).fit(table, y, offset=offset)
    expected = SelfStoppingRegressor(random_state=0).fit(table, y - offset)
    assert found.weights_ == expected.weights_
    np.testing.assert_allclose(
        found.predict(table, offset=offset), expected.predict(table) + offset
    )
    for name, member in found.members_.items():
        np.testing.assert_allclose(
            member.predict(table, offset=offset),
            expected.members_[name].predict(table) + offset,
        )


def test_counts_in_a_raw_table():
    X, y, offset = drawn("poisson")
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["word"] = np.where(X[:, 0] > 0, "yes", "no")
    model = TrajectoryEarlyStoppingCV(
        members(), rule="blend", encoder=TableEncoder(), random_state=0
    )
    exposure = np.exp(offset)
    found = clone(model).fit(table, y, offset=offset)
    expected = clone(model).fit(table, y / exposure, sample_weight=exposure)
    np.testing.assert_allclose(
        found.predict(table, offset=offset), expected.predict(table) * exposure
    )
    score = expected.score(table, y / exposure, sample_weight=exposure)
    assert found.score(table, y, offset=offset) == pytest.approx(score)


def test_rows_of_weight_zero_need_no_exposure():
    X, y, offset = drawn("poisson")
    weights = np.ones(len(y))
    weights[:10], offset[:5] = 0, -np.inf
    model = TrajectoryEarlyStoppingCV(members(), rule="min", cv=KFold(3))
    rows = np.arange(10, len(y))
    folds = [(rows[fit], rows[held]) for fit, held in KFold(3).split(rows)]
    found = clone(model).set_params(cv=folds, random_state=0)
    found.fit(X, y, sample_weight=weights, offset=offset)
    expected = clone(model).set_params(random_state=0)
    expected.fit(X[10:], y[10:], offset=offset[10:])
    assert found.best_score_ == pytest.approx(expected.best_score_)
    np.testing.assert_allclose(
        found.held_out_prediction_[10:], expected.held_out_prediction_, rtol=1e-6
    )


def test_a_weight_is_a_repetition():
    X, y, offset = drawn("poisson", 100)
    weights = np.where(np.arange(100) % 3 == 0, 2.0, 1.0)
    rows = np.repeat(np.arange(100), weights.astype(int))
    model = TrajectoryEarlyStoppingCV(
        TrajectoryPoissonRegressor(0.01, loo=False), criterion="cv", random_state=0
    )
    groups = np.arange(100)
    found = clone(model).fit(X, y, sample_weight=weights, offset=offset, groups=groups)
    expected = clone(model).fit(X[rows], y[rows], offset=offset[rows], groups=rows)
    np.testing.assert_allclose(
        found.estimator_.train_path_, expected.estimator_.train_path_
    )


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            TrajectoryEarlyStoppingCV(
                [("glm", GLM), ("ridge", IterativeRidge(0.0))], rule="min"
            ),
            "offset needs members of one loss",
        ),
        (
            TrajectoryEarlyStoppingCV(GLM, criterion="neg_mean_absolute_error"),
            "offset needs a criterion that estimates the loss",
        ),
        (SelfStoppingClassifier(), "offset is not available for the log loss"),
        (
            TrajectoryEarlyStoppingCV(
                TrajectoryRegressor(0.1, loss="negative_binomial")
            ),
            "offset is not available for the half negative binomial deviance",
        ),
    ],
)
def test_members_that_take_none(model, message):
    X, y, offset = drawn("poisson", 60)
    with pytest.raises(ValueError, match=message):
        model.fit(X, np.minimum(y, 2), offset=offset)
    assert "estimator_" not in vars(model)


def test_offsets_need_rows_and_numbers():
    X, y, offset = drawn("poisson", 60)
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0))
    with pytest.raises(ValueError, match="not available with a RowSummary"):
        model.fit(RowSummary().partial_fit(X, y), offset=offset)
    with pytest.raises(ValueError, match="59 numbers, but there are 60 rows"):
        model.fit(X, y, offset=offset[1:])
    with pytest.raises(ValueError, match="-inf in row 0"):
        model.fit(X, y, offset=np.full(60, -np.inf))
    model.fit(X, y)
    with pytest.raises(ValueError, match="without an offset, so predict takes none"):
        model.predict(X, offset=offset)


def test_folds_whose_counts_are_all_zero():
    X, y, offset = drawn("poisson", 60)
    y[20:] = 0
    folds = [(np.arange(20, 60), np.arange(20))]
    model = TrajectoryEarlyStoppingCV(TREES, cv=folds)
    with pytest.raises(ValueError, match="In the training rows of fold 0 of cv"):
        model.fit(X, y, offset=offset)


@pytest.mark.filterwarnings("ignore")
def test_a_network_without_weights_takes_offsets_that_need_none():
    X, _, offset = drawn("poisson", 60)
    network = MLPRegressor(hidden_layer_sizes=(5,), max_iter=20, random_state=0)
    model = TrajectoryEarlyStoppingCV(network)
    y = X[:, 0] + offset
    found = clone(model).fit(X, y, offset=offset)
    expected = clone(model).fit(X, y - offset)
    np.testing.assert_allclose(
        found.predict(X, offset=offset), expected.predict(X) + offset
    )


def requesting(model):
    return (
        model.set_fit_request(offset=True)
        .set_predict_request(offset=True)
        .set_score_request(offset=True)
    )


@pytest.mark.parametrize("name", ["trees", "blend"])
def test_metadata_are_routed(name):
    X, y, offset = drawn("poisson")
    model = clone(STOPPING[name][0]).set_params(random_state=0)
    expected = clone(model).fit(X, y, offset=offset)
    with sklearn.config_context(enable_metadata_routing=True):
        found = clone(model).fit(X, y, offset=offset)
        np.testing.assert_array_equal(
            found.predict(X, offset=offset), expected.predict(X, offset=offset)
        )
        steps = make_pipeline("passthrough", requesting(clone(model)))
        steps.fit(X, y, offset=offset)
        np.testing.assert_array_equal(
            steps.predict(X, offset=offset), expected.predict(X, offset=offset)
        )
        score = steps.score(X, y, offset=offset)
        assert score == pytest.approx(expected.score(X, y, offset=offset))
        search = GridSearchCV(requesting(model), {"random_state": [0]}, cv=3)
        search.fit(X, y, offset=offset)
        assert np.isfinite(search.best_score_)
