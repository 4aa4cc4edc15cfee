"""The benchmark of sizes keeps what it measures, and its excess is over the truth."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

from benchmarks import sizes
from benchmarks.sizes import (
    HISTOGRAMS,
    METHODS,
    OURS,
    SECTIONS,
    Settings,
    compared,
    drawn,
    error_of_truth,
    errors,
    kept_in,
    measure,
    page,
    score_lines,
    summary_lines,
)

SMALL = Settings(threads=1, repeats=1, share=0.2)


class Truth:
    """Predicts the true means, moved by a constant."""

    def __init__(self, data, moved):
        self.truth = data.truth + moved

    def predict(self, X):
        return self.truth

    def predict_proba(self, X):
        true = expit(self.truth)
        return np.column_stack([1 - true, true])


def test_the_excess_of_a_regression_is_the_squared_distance_to_the_truth():
    data = drawn("regression", 50, 12, n_fresh=3000)
    found = errors(Truth(data, 0.5), data)
    assert found["excess"] == pytest.approx(0.25)
    mean = np.mean((data.truth + 0.5 - data.y_fresh) ** 2)
    assert found["error"] == pytest.approx(mean)
    assert errors(Truth(data, 0.0), data)["error"] == pytest.approx(
        error_of_truth(data), rel=0.1
    )


def test_the_excess_of_classes_is_the_mean_over_labels_of_the_log_loss():
    data = drawn("classification", 50, 12, n_fresh=3000)
    assert errors(Truth(data, 0.0), data)["excess"] == pytest.approx(0, abs=1e-12)
    model = Truth(data, 0.5)
    found = errors(model, data)
    predicted, true = model.predict_proba(None), expit(data.truth)
    assert found["error"] == pytest.approx(log_loss(data.y_fresh, predicted))
    # Every row with either label, weighted by how probable it is.
    labels = np.repeat([0, 1], len(true))
    weights = np.concatenate([1 - true, true])
    expected = log_loss(labels, np.tile(predicted, (2, 1)), sample_weight=weights)
    assert error_of_truth(data) + found["excess"] == pytest.approx(expected)


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
    found = compared(methods, data, SMALL)["methods"]
    assert found["other"] == {"failed": "not installed: No module named 'there'"}
    numbers = {"seconds", "processor_seconds", "error", "excess", "megabytes"}
    assert set(found[OURS]) == numbers
    assert all(value >= 0 for value in found[OURS].values())


def test_scores_have_a_line_for_every_seed_and_their_mean():
    seeds = ((1.0, 0.8), (1.5, 0.9))
    results = {
        f"regression-500-seed-{seed}": {
            "date": "today",
            "methods": {OURS: {"said": said, "true": 1, "coverage": c, "seconds": 2}},
        }
        for seed, (said, c) in enumerate(seeds)
    }
    *_, last, mean = score_lines(results)
    assert last == "| regression-500-seed-1 | 1.5 | 1 | 1.5 | 0.9 | 2 | today |"
    assert mean == "| regression-500, mean of 2 seeds |  |  | 1.25 | 0.85 |  |  |"


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
    monkeypatch.setattr(sizes, "METHODS", {OURS: METHODS[HISTOGRAMS]})
    one = partial(measure, ["rows"], ["regression-500"], SMALL, tmp_path)
    ((section, case, outcome),) = one()
    assert (section, case) == ("rows", "regression-500")
    assert [*one()] == [(section, case, outcome)]
    ((*_, again),) = one(anew=True)
    assert again != outcome
    kept = kept_in(tmp_path)
    assert kept["rows"][case]["x_megabytes"] == outcome["x_megabytes"]
    assert f"| {case} | {OURS} |" in page(kept)
    assert page(kept).count("Not measured.") == len(SECTIONS) - 1
