"""The benchmark of regressions has half the tables unseen, and divides by the best."""

from functools import partial
from time import sleep

import numpy as np
import pandas as pd
import pytest

from benchmarks import regressions
from benchmarks.framework import (
    LOOKED_AT,
    NOT_LOOKED_AT,
    Fits,
    Worker,
    half_of,
    tried,
)
from benchmarks.regressions import (
    BEFORE,
    FITS,
    METHODS,
    OURS,
    PEERS,
    Outcome,
    by_default,
    by_rival,
    fit,
    page,
)
from benchmarks.tables import COMMITS, OUTSIDE, as_read, listed

TABLES = listed((OUTSIDE,))


def row(error, said=None):
    row = {"mse": error, "R2": 1 - error, "seconds": 2.0, "rows": 90}
    return row if said is None else row | {"best_score_corrected_": said}


def results_of(ours, linear, failed=()):
    """Rows of two folds, those of all peers but the linear one at 1."""
    rows = {name: [row(1.0), row(1.0)] for name in PEERS}
    rows |= {"linear": [row(linear)] * 2, "skacv": [row(ours, 0.8 * ours)] * 2}
    return rows | {name: [row(1.0), {"failed": "too slow"}] for name in failed}


def cells_of(lines):
    return [line.strip("| ").split(" | ") for line in lines if "---" not in line]


def test_at_least_forty_tables_are_of_two_collections_and_both_halves():
    assert len(TABLES) >= 45
    assert {table.task for table in TABLES} == {"regression"}
    assert {table.repository for table in TABLES} < {*COMMITS}
    halves = [half_of(table.name) for table in TABLES]
    assert min(map(halves.count, (LOOKED_AT, NOT_LOOKED_AT))) >= 20
    names = {table.name for table in listed() if table.half != OUTSIDE}
    assert not names & {table.name for table in TABLES}


def test_a_file_of_numbers_alone_has_no_names():
    frame = as_read("data.csv", b"1.5,-2e-3\n3,4\n")
    assert frame.to_dict("list") == {"0": [1.5, 3.0], "1": [-0.002, 4.0]}
    assert list(as_read("data.csv", b"1.5,b\n3,4\n")) == ["1.5", "b"]


def test_errors_are_over_those_of_the_best_of_all_seven():
    one = Outcome(TABLES[0], results_of(ours=0.9, linear=0.5, failed=["SVM"]))
    assert (one.best, one.ratios["skacv"]) == ("linear", pytest.approx(1.8))
    assert one.ratios["CatBoost"] == 2
    assert "SVM" not in one.ratios
    assert one.claimed == pytest.approx(0.8)
    assert one.R2["linear"] == 0.5


def test_a_rival_counts_on_the_tables_that_it_and_ours_have():
    outcomes = [
        Outcome(TABLES[0], results_of(ours=0.9, linear=0.5, failed=["SVM"])),
        Outcome(TABLES[1], results_of(ours=0.5, linear=0.495)),  # 1% is a tie
        Outcome(TABLES[2], results_of(ours=0.5, linear=1.0, failed=["skacv"])),
    ]
    _, *lines = cells_of(by_rival(outcomes))
    lines = {name: cells for name, *cells in lines}
    assert lines["SVM"] == ["1", "0.000", "0.500", "0.500", "1", "0"]
    assert lines["linear"][:3] == ["2", "0.502", "0.300"]
    assert lines["linear"][-2:] == ["0", "2"]
    assert lines["best of the seven, in hindsight"][3:] == lines["linear"][3:]


def test_the_page_has_the_tables_of_which_all_fits_are_there():
    results = {table: results_of(0.5, 0.4) for table in TABLES[:3]}
    results[TABLES[1]]["SVM"] = [row(1.0), None]
    results[TABLES[2]]["linear"] = [row(1.0), {"failed": "too slow"}]
    text = "\n".join(page(results, {}, [0, 1]))
    assert "folds 0, 1 of four\n" in text
    assert "Of 3 tables 2 have all fits" in text
    assert f"not run to the end: {TABLES[1].name}." in text
    assert f"Failed: linear on {TABLES[2].name} (too slow)." in text
    first, second = text.split("## By table")[1].split("## Sources")[0].split("\n")[4:6]
    assert first.startswith(f"| {TABLES[0].name} | 90 ")  # 1.25 of the linear model
    assert second.startswith(f"| {TABLES[2].name} | 90 ")


def test_fits_are_kept_under_the_places_that_they_are_looked_up_by(tmp_path):
    fits = Fits(tmp_path / "fits.csv", FITS.places, ("mse", "seconds"))
    assert fits.read() == {}
    place = TABLES[0].name, 1, "LightGBM, tuned", 2756013191
    fits.add(place, {"mse": 0.5, "seconds": 2.0})
    failed = TABLES[0].name, 2, OURS, 2756013191
    fits.add(failed, {"failed": "ValueError: no, never"})
    assert fits.read() == {
        place: {"mse": 0.5, "seconds": 2.0},
        failed: {"failed": "ValueError: no, never"},
    }
    kept = FITS.read()
    names = {table.name for table in TABLES}
    assert {name for name, *_ in kept} == names
    assert all(type(fingerprint) is int for *_, fingerprint in kept)


def test_the_default_is_compared_with_the_one_before_on_folds_of_both():
    table = next(table.name for table in TABLES if half_of(table.name) == LOOKED_AT)
    fits = {(table, fold, OURS, 7): row(error) for fold, error in enumerate([1, 2, 3])}
    fits |= {(table, 0, BEFORE, 7): row(2.0), (table, 1, BEFORE, 7): row(2.0)}
    fits |= {(table, 2, BEFORE, 8): row(1.0), (table, 3, OURS, 7): {"failed": "no"}}
    _, _, line = by_default(fits)
    assert line.startswith(f"| {LOOKED_AT} | 2 | 0.707 ")
    assert line.endswith("| 1 | 0 |")


def test_a_fold_is_of_the_rows_that_were_drawn(rng, monkeypatch):
    frame = pd.DataFrame({"a": rng.standard_normal(100), "b": ["x", None] * 50})
    y = 2 * frame["a"].to_numpy()
    seen = []

    class Mean:
        def fit(self, X, y):
            seen.append(set(X["a"]))
            self.mean = y.mean()

        def predict(self, X):
            seen.append(set(X["a"]))
            return np.full(len(X), self.mean)

    monkeypatch.setattr(regressions, "read", lambda table: (frame, y, 0))
    monkeypatch.setattr(regressions, "MOST_ROWS", 80)
    monkeypatch.setitem(METHODS, "mean", lambda task: Mean())
    rows = [fit(TABLES[0], "mean", fold) for fold in range(4)]
    assert [found["rows"] for found in rows] == [60] * 4
    assert all(found["R2"] <= 0 for found in rows)
    train, test = seen[::2], seen[1::2]
    assert not train[0] & test[0]
    assert len(set.union(*test)) == 80
    assert all(one | other == train[0] | test[0] for one, other in zip(train, test))


def fails(error):
    raise error("no\nsuch thing")


def test_what_fails_says_why_and_what_is_not_installed_is_nothing():
    assert tried(fails, ValueError) == {"failed": "ValueError: no"}
    assert tried(fails, ImportError) is None
    assert tried(abs, -1) == 1


@pytest.mark.slow
def test_a_worker_is_replaced_where_a_work_takes_too_long():
    worker = Worker(most_seconds=30)
    assert worker.run(int) == 0
    worker.most_seconds = 1
    assert worker.run(partial(sleep, 60)) == {"failed": "TimeoutError"}
    worker.most_seconds = 30
    assert worker.run(int) == 0
