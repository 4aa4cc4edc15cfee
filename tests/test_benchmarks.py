"""Benchmarks take the names that the manual says, and compare both sides."""

import re
from pathlib import Path

import numpy as np
from scipy.linalg import cholesky
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks import falkon, framework, peers, sizes, speed
from benchmarks.framework import Row, kept, named_rows, race
from benchmarks.studies import __main__ as studies

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
NAMES = {
    "studies": studies.STUDIES,
    "peers": peers.BENCHMARKS,
    "sizes": sizes.SECTIONS,
    "speed": speed.BENCHMARKS,
}
COMMAND = re.compile(r"python -m benchmarks\.(\w+)((?: [a-z][\w-]*)*)")
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *ROOT.glob("docs/**/*.md"),
    *FOLDER.glob("results/*.md"),
    ROOT / "Makefile",
]


def test_every_command_of_the_manual_is_there():
    found = {match for page in PAGES for match in COMMAND.findall(page.read_text())}
    assert {module for module, _ in found} >= set(NAMES)
    for module, words in found:
        path = FOLDER / module
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()
        if module in NAMES:
            assert set(words.split()) <= set(NAMES[module])


def test_every_section_of_the_studies_is_printed_by_one():
    sections = (FOLDER / "results" / "studies.md").read_text()
    assert {words.strip() for _, words in COMMAND.findall(sections)} == set(
        studies.STUDIES
    )


def test_ratios_are_above_one_where_we_are_faster_or_cost_more():
    assert Row.speed("work", "theirs", 2.0, 6.0).ratio == 3.0
    assert Row.cost("work", "reference", 6.0, 2.0).ratio == 3.0


def test_a_race_has_the_results_of_both_sides():
    def said(ours, theirs):
        return f"{ours} and {theirs}"

    row = race("work", "theirs", lambda: 1, lambda: 2, said, repeats=1)
    assert row.accuracy == "1 and 2"
    assert row.ratio == row.theirs / row.ours
    assert row.markdown("name").endswith("| 1 and 2 |")


def test_without_names_all_benchmarks_run():
    rows = {"one": lambda: [1], "two": lambda: [2, 3]}
    assert [*named_rows(rows, [])] == [("one", 1), ("two", 2), ("two", 3)]
    assert [*named_rows(rows, ["one"])] == [("one", 1)]


def test_a_section_takes_the_place_of_a_former_one(tmp_path):
    page = tmp_path / "page.md"
    framework.write_sections(page, "All", {"one": ("One", "1"), "two": ("Two", "2")})
    framework.write_sections(page, "All", {"one": ("Again", "3")})
    text = page.read_text()
    assert text.startswith("# All\n\n## Again\n\n`one` (")
    assert "\n1\n" not in text
    assert text.index("\n3\n") < text.index("## Two")


def test_a_work_is_done_once_unless_it_failed_or_is_of_other_data(tmp_path):
    path, n_done = tmp_path / "folder" / "kept.json", []

    def work():
        n_done.append(1)
        return {"failed": "once"} if len(n_done) == 1 else {"value": len(n_done)}

    assert kept(path, work, {"rows": 1}, is_new=False) is None
    assert kept(path, work, {"rows": 1}) == {"failed": "once", "rows": 1}
    assert kept(path, work, {"rows": 1}) == {"value": 2, "rows": 1}
    assert kept(path, work, {"rows": 1}) == {"value": 2, "rows": 1}
    assert kept(path, work, {"rows": 1}, is_old=False)["value"] == 3
    assert kept(path, work, {"rows": 2})["value"] == 4


def test_falkon_solves_the_normal_equations_of_its_centres():
    rng = np.random.default_rng(0)
    X, y, alpha = rng.standard_normal((300, 3)), rng.standard_normal(300), 1e-3
    K, M = rbf_kernel(X, X[:40], 0.3), rbf_kernel(X[:40], gamma=0.3)
    system = K.T @ K / 300 + alpha * M
    direct = K @ np.linalg.solve(system, K.T @ y / 300)
    assert np.linalg.cond(system) > 1e7
    for n_iterations, tolerance in ((60, 1e-8), (falkon.N_ITERATIONS, 1e-4)):
        coef = falkon.falkon(K, cholesky(M), y, alpha, n_iterations)
        np.testing.assert_allclose(K @ coef, direct, rtol=0, atol=tolerance)


def test_tuned_falkon_predicts_from_random_centres():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 2))
    y = 5 + np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(600)
    predict = falkon.tuned_falkon(X[:500], y[:500], 100, 0.5)
    assert np.mean((predict(X[500:]) - y[500:]) ** 2) < 0.03
