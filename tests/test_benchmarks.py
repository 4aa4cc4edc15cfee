"""Benchmarks take the names that the manual says, and compare both sides."""

import re
from pathlib import Path

from benchmarks import __main__ as speed
from benchmarks import comparison, peers
from benchmarks.framework import Row, named_rows, race
from benchmarks.studies import __main__ as studies

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
NAMES = {"": speed.BENCHMARKS, ".studies": studies.STUDIES, ".peers": peers.BENCHMARKS}
COMMAND = re.compile(r"`python -m benchmarks(\.\w+)?((?: [\w-]+)*)[^`]*`")


def test_every_command_of_the_manual_is_there():
    pages = [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), comparison.PAGE]
    found = {match for page in pages for match in COMMAND.findall(page.read_text())}
    assert {module for module, _ in found} >= set(NAMES)
    for module, words in found:
        path = FOLDER / module.strip(".")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        if module in NAMES:
            assert set(words.split()) <= set(NAMES[module])


def test_ratios_are_above_one_where_we_are_faster_or_cost_more():
    assert Row.speed("work", "theirs", 2.0, 6.0).ratio == 3.0
    assert Row.cost("work", "reference", 6.0, 2.0).ratio == 3.0


def test_a_race_has_the_results_of_both_sides():
    def said(ours, theirs):
        return f"{ours} and {theirs}"

    row = race("work", "theirs", lambda: 1, lambda: 2, ">= 1", said, repeats=1)
    assert row.accuracy == "1 and 2"
    assert row.ratio == row.theirs / row.ours


def test_without_names_all_benchmarks_run():
    rows = {"one": lambda: [1], "two": lambda: [2, 3]}
    assert [*named_rows(rows, [])] == [("one", 1), ("two", 2), ("two", 3)]
    assert [*named_rows(rows, ["one"])] == [("one", 1)]
