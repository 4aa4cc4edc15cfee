"""The benchmark of sizes keeps what it measures, and its excess is over the truth."""

from functools import partial

import numpy as np
import pytest
from sklearn.metrics import log_loss

from benchmarks.sizes import rows, scores
from benchmarks.sizes.__main__ import kept_in, measure, write
from benchmarks.sizes.bars import Bar, at_most, over
from benchmarks.sizes.data import drawn, probabilities
from benchmarks.sizes.measure import Settings, compared, errors
from benchmarks.sizes.methods import HISTOGRAMS, METHODS, OURS
from benchmarks.sizes.page import SECTIONS, summary_lines
from benchmarks.sizes.tables import ARCHIVES, COMMITS, TEXT, listed
from benchmarks.unseen import tables as unseen

SMALL = Settings(threads=1, repeats=1, share=0.2)


class Truth:
    """Predicts the true means, moved by a constant."""

    def __init__(self, data, moved):
        self.truth = data.truth + moved

    def predict(self, X):
        return self.truth

    def predict_proba(self, X):
        true = probabilities(self.truth)
        return np.column_stack([1 - true, true])


def test_the_excess_of_a_regression_is_the_squared_distance_to_the_truth():
    data = drawn("regression", 50, 12, n_fresh=3000)
    found = errors(Truth(data, 0.5), data)
    assert found["excess"] == pytest.approx(0.25)
    mean = np.mean((data.truth + 0.5 - data.y_fresh) ** 2)
    assert found["error"] == pytest.approx(mean)
    assert errors(Truth(data, 0.0), data)["error"] == pytest.approx(
        scores.of_truth(data), rel=0.1
    )


def test_the_excess_of_classes_is_the_mean_over_labels_of_the_log_loss():
    data = drawn("classification", 50, 12, n_fresh=3000)
    assert errors(Truth(data, 0.0), data)["excess"] == pytest.approx(0, abs=1e-12)
    model = Truth(data, 0.5)
    found = errors(model, data)
    predicted, true = model.predict_proba(None), probabilities(data.truth)
    assert found["error"] == pytest.approx(log_loss(data.y_fresh, predicted))
    # Every row with either label, weighted by how probable it is.
    labels = np.repeat([0, 1], len(true))
    weights = np.concatenate([1 - true, true])
    expected = log_loss(labels, np.tile(predicted, (2, 1)), sample_weight=weights)
    assert scores.of_truth(data) + found["excess"] == pytest.approx(expected)


def test_half_of_the_signal_is_smooth_and_more_columns_change_nothing_of_it():
    data = drawn("regression", 5000, 10)
    assert np.var(data.truth) == pytest.approx(2, rel=0.1)
    assert np.var(data.y_fresh - data.truth) == pytest.approx(1, rel=0.05)


@pytest.mark.slow
def not_there(task, threads, is_frame):
    raise ImportError("No module named 'there'")


def test_methods_are_compared_and_one_that_is_not_there_says_so():
    data = drawn("classification", 100, 10, n_fresh=200)
    methods = {OURS: METHODS[HISTOGRAMS], "other": not_there}
    found = compared(methods, data, SMALL)
    assert found["other"] == {"failed": "not installed: No module named 'there'"}
    numbers = {"seconds", "processor_seconds", "error", "excess", "megabytes"}
    assert set(found[OURS]) == numbers
    assert all(value >= 0 for value in found[OURS].values())


def test_bars_are_ratios_over_an_opponent_or_numbers_of_ours():
    found = {"ours": {"error": 1.0, "seconds": 6.0}, "theirs": {"error": 2.0}}
    (bar,) = over("case", found, "theirs", error=0.4, seconds=3.0)
    assert (bar.value, bar.is_met, bar.limits) == (0.5, False, "<= 0.4")
    (bar,) = at_most("case", found, seconds=6.0, megabytes=1.0)
    assert bar.is_met
    assert Bar("case", "said", 1.01, 1.02, 0.98).is_met
    assert not Bar("case", "said", 0.97, 1.02, 0.98).is_met


def test_an_excess_that_grows_with_rows_is_outside_its_limits():
    results = {
        f"regression-{n}": {"methods": {OURS: {"excess": excess}}}
        for n, excess in ((500, 0.5), (2000, 0.2), (5000, 0.3))
    }
    assert [bar.is_met for bar in rows.bars(results)] == [True, False]


def test_the_summary_compares_ours_with_each_opponent():
    def found(ours, theirs):
        numbers = {"error": ours, "seconds": 6.0}, {"error": theirs, "seconds": 2.0}
        return {"methods": dict(zip((OURS, HISTOGRAMS), numbers))}

    results = {
        "rows": {
            "regression-500": found(1.0, 2.0),
            "regression-20000": found(1.0, 4.0),
            "regression-100000": found(3.0, 2.0),
        },
        "tables": {"adult": {"methods": {OURS: {"error": 1.0, "seconds": 1.0}}}},
    }
    few, many = [*summary_lines(results)][2:]
    assert (
        few == f"| rows | 500 to 5000 | {HISTOGRAMS} | 1 | 0.500 | 0.500 | 1 | 3 | 3 |"
    )
    assert f"| {HISTOGRAMS} | 2 | 0.875 | 1.500 | 1 | 3 | 3 |" in many


@pytest.mark.slow
def test_cases_are_kept_and_not_measured_again(tmp_path, monkeypatch):
    methods = {OURS: METHODS[HISTOGRAMS]}
    monkeypatch.setattr(rows, "methods", lambda: methods)
    one = partial(measure, ["rows"], ["regression-500"], SMALL, tmp_path)
    ((section, case, outcome),) = one()
    assert (section, case) == ("rows", "regression-500")
    assert [*one()] == []
    assert len([*one(anew=True)]) == 1
    kept = kept_in(tmp_path)
    assert kept["rows"][case]["x_megabytes"] == outcome["x_megabytes"]
    page = tmp_path / "sizes.md"
    write(kept, page)
    assert f"| {case} | {OURS} |" in page.read_text()
    assert page.read_text().count("Not measured.") == len(SECTIONS) - 1
    assert page.with_suffix(".json").exists()


def test_every_large_table_has_a_source_and_a_name_of_its_own():
    tables = listed()
    assert {table.repository for table in tables.values()} == {*COMMITS, *ARCHIVES}
    assert not set(tables) & {table.name for table in unseen.listed()}
    assert tables[TEXT].task == "classification"
    assert {table.task for table in tables.values()} == set(unseen.TASKS)
