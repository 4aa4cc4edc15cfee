"""The benchmark of members compares errors on the same rows, over the default."""

import numpy as np
import pandas as pd
import pytest

from benchmarks import members
from benchmarks.members import MACHINE, PROCESS, compared, page, ratios_of
from benchmarks.tables import MEMBERS, TASKS, listed


def row(default, both, single):
    return {
        "default": default,
        "both": both,
        "seconds": [2.0, 3.0],
        "errors": {"ridge": single, MACHINE: 9.0},
        "scores": {"ridge": 1.0, MACHINE: 1.5},
        "corrected": [default, 2 * both],
        "weights": {"ridge": 0.4, PROCESS: 0.5, MACHINE: 0.1},
        "rows": 100,
    }


def test_ratios_are_over_the_default():
    rows = [row(2.0, 1.0, 4.0), row(1.0, 2.0, 3.0)]
    for found, expected in zip(ratios_of(rows), ([0.5, 2], [2, 3], [1.5, 1.5])):
        np.testing.assert_allclose(found, expected)


def test_the_page_has_a_line_for_every_table():
    tables = listed((MEMBERS,))
    assert len(tables) == 10
    assert {table.task for table in tables} == set(TASKS)
    text = page({table: [row(2.0, 1.0, 4.0), row(1.0, 2.0, 3.0)] for table in tables})
    for table in tables:
        assert f"| {table.name} | 100 | 1.250 ± 0.750 | 2.500 | ridge |" in text
    assert "| all, 10 | 1.250 ± 0.000 | 2.500 ± 0.000 | 1.500 ± 0.000 |" in text
    assert "| both | 2.000 ± 0.000 |" in text


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_both_blends_are_of_the_same_rows(task, rng, monkeypatch):
    monkeypatch.setattr(members, "STRENGTHS", [1.0])
    frame = pd.DataFrame(rng.standard_normal((90, 3)), columns=list("abc"))
    y = np.sin(frame["a"]) + frame["b"]
    y = (y > 0).astype(int) if task == "classification" else y.to_numpy()
    found = compared(task, frame, y, seed=0)
    assert {PROCESS, MACHINE} < found["errors"].keys() == found["scores"].keys()
    assert sum(found["weights"].values()) == pytest.approx(1)
    assert min(found["errors"].values()) < 1.5 * found["default"]
