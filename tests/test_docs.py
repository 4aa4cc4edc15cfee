"""The code in the pages of the manual runs and prints what they say."""

import doctest
import re
from pathlib import Path

import pytest

import skacv
from skacv._estimator.recording import METHODS

from .quotations import Quotation, is_rounded, quotations_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Those of results are the results.
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
]
WITH_CODE = [path for path in PAGES if "```python\n>>>" in path.read_text()]


@pytest.mark.parametrize("path", WITH_CODE, ids=lambda path: path.stem)
def test_code_of_a_page(path):
    for extra in ("jax", "torch", "dask"):
        if f"import {extra}" in path.read_text():
            pytest.importorskip(extra, reason=f"needs skacv[{extra}]")
    code = "\n".join(FENCE.findall(path.read_text()))
    page = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    results = doctest.DocTestRunner().run(page)
    assert results.attempted
    assert not results.failed


@pytest.mark.parametrize("path", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=str)
def test_links_lead_somewhere_in_the_repository(path):
    for link in LINK.findall(path.read_text()):
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        if anchor:
            assert anchor in {anchor_of(line) for line in headings_of(target)}, link


def headings_of(path):
    return re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_reference_has_every_public_name():
    listed = (ROOT / "docs" / "api.rst").read_text().split()
    assert set(skacv.__all__) <= set(listed)


def test_what_is_asked_of_an_estimator_is_listed():
    page = (ROOT / "docs" / "extending.md").read_text()
    section = page.split("## What TrajectoryEarlyStoppingCV asks of an estimator")[1]
    listed = re.findall(r"`(\w+)\(.*?\)`", section.split("\n## ")[0])
    assert sorted(listed) == sorted(METHODS)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_measured_numbers_are_those_that_a_command_has_printed(path):
    for quotation in quotations_of(path):
        if quotation.sources or quotation.looks_measured:
            assert not quotation.unfounded(), quotation


def test_other_numbers_are_noticed():
    quoted = Quotation(
        "risk 25.18 (25.2), 99.99 elsewhere", ("studies published-page",)
    )
    assert quoted.unfounded() == ["99.99"]
    with pytest.raises(ValueError, match="has no published-page"):
        Quotation("1.0", ("studies published-page unsaid",)).unfounded()


@pytest.mark.parametrize(
    ("quoted", "printed", "same"),
    [
        ("5.1", "5.06", True),
        ("5.0", "5.06", False),
        ("1090", "1.09e+03", True),
        ("10,000", "10000", True),
        ("2e-4", "1.7e-04", True),
        ("2%", "2", False),
    ],
)
def test_a_quoted_number_may_have_fewer_digits(quoted, printed, same):
    assert is_rounded(quoted, printed) == same
