"""The code in the pages of the manual runs and prints what they say."""

import doctest
import os
import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pytest
import sklearn
from sklearn.utils.fixes import parse_version

import skacv
from benchmarks import comparison
from benchmarks.framework import Row

from .quotations import Quotation, is_rounded, lines_of, quotations_of, words_of

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
# And callbacks, which scikit-learn has from 1.9 on.
EXTRA = re.compile(
    r"^>>> (?:import|from) (jax|torch|dask|imblearn|sklearn\.callback)\b",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Session:
    """Code of a page from its beginning on, as typed into one interpreter."""

    page: Path
    code: str

    @property
    def extras(self):
        return sorted(set(EXTRA.findall(self.code)))

    def __str__(self):
        return "-".join([self.page.stem, *self.extras])


def sessions_of(page):
    """All code of a page, and what comes before the first block that needs an extra."""
    blocks = FENCE.findall(page.read_text())
    plain = list(takewhile(lambda block: not EXTRA.search(block), blocks))
    parts = [plain] if len(plain) == len(blocks) else [plain, blocks]
    return [Session(page, "\n".join(part)) for part in parts if part]


# Pages whose code takes many seconds, as it fits what users would fit.
LONG = {
    "boosting",
    "coming_from",
    "imbalanced",
    "intervals",
    "kernels",
    "portfolios",
    "questions",
    "saving",
    "tables",
}
SESSIONS = [
    pytest.param(
        session,
        marks=[pytest.mark.slow] * (session.page.stem in LONG),
        id=str(session),
    )
    for page in PAGES
    for session in sessions_of(page)
]


# Pages show runs that are slow on purpose, and say so.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("session", SESSIONS)
def test_code_of_a_page(session):
    for extra in session.extras:
        pytest.importorskip(extra, reason=f"needs {extra}")
    if "array_api_dispatch" in session.code:
        if os.environ.get("SCIPY_ARRAY_API") != "1":
            pytest.skip("scikit-learn dispatches on arrays with SCIPY_ARRAY_API=1 only")
    page, name = doctest.DocTestParser(), session.page.name
    page = page.get_doctest(session.code, {}, name, str(session.page), 0)
    checker = AnyOutput() if has_other_trees(session) else None
    results = doctest.DocTestRunner(checker).run(page)
    assert results.attempted
    assert not results.failed


class AnyOutput(doctest.OutputChecker):
    """What code prints is not compared; that it raises nothing still is."""

    def check_output(self, want, got, optionflags):
        return True


def has_other_trees(session):
    """Whether boosted trees grow otherwise here than where the page was printed."""
    is_older = parse_version(sklearn.__version__) < parse_version("1.9")
    return is_older and "HistGradientBoosting" in session.code


def test_code_before_an_extra_runs_without_it(tmp_path):
    blocks = ["```python\n>>> 1\n```\n", "```python\n>>> import torch\n```\n"]
    page = tmp_path / "page.md"
    page.write_text("".join([*blocks, blocks[0]]))
    plain, whole = sessions_of(page)
    assert (str(plain), str(whole)) == ("page", "page-torch")
    assert plain.code == ">>> 1\n"
    assert whole.code.count(">>>") == 3
    page.write_text(blocks[1])
    assert list(map(str, sessions_of(page))) == ["page-torch"]


def test_links_lead_somewhere_in_the_repository():
    for path in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for link in LINK.findall(path.read_text()):
            file, _, anchor = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            said = f"{path.name}: {link}"
            assert target.exists(), said
            if anchor:
                assert anchor in map(anchor_of, headings_of(target)), said


def headings_of(path):
    return re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)


def anchor_of(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_reference_has_every_public_name():
    listed = (ROOT / "docs" / "api.rst").read_text().split()
    assert set(skacv.__all__) <= set(listed)


def test_docstrings_refer_to_pages_that_exist():
    source = "\n".join(path.read_text() for path in (ROOT / "skacv").rglob("*.py"))
    pages = set(re.findall(r":doc:`[^`<]*<\s*([^>]*)>`", source))
    assert pages
    for page in pages:
        assert (ROOT / "docs" / f"{page.removeprefix('/')}.md").exists(), page


def test_measured_numbers_are_those_that_a_command_has_printed():
    for path in PAGES:
        for quotation in quotations_of(path):
            if quotation.sources or quotation.looks_measured:
                assert not quotation.unfounded(), (path, quotation)


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
        ("2.6%", "0.026", True),
        ("0.9%", "1.009", True),
        ("0.9%", "0.991", True),
        ("0.9%", "1.02", False),
        ("0.5", "0.5%", False),
    ],
)
def test_a_quoted_number_may_have_fewer_digits(quoted, printed, same):
    assert is_rounded(quoted, printed) == same


def test_comparison_has_every_measured_pair_as_it_is_now():
    page = comparison.PAGE.read_text()
    assert comparison.with_table(page) == page, "python -m benchmarks.comparison"


def test_rows_of_the_comparison_name_one_row_of_the_results():
    rows = [row for row in comparison.table().splitlines() if "<!--" in row]
    sources = [re.search("<!-- (.*) -->", row)[1] for row in rows]
    found = [lines_of(*words_of(source)) for source in sources]
    assert all(len(lines) == 1 for lines in found)
    assert len({lines[0] for lines in found}) == len(rows)


@pytest.mark.parametrize(
    ("required", "ratio", "accuracy", "said", "is_within"),
    [
        (">= 5", 5.0, "", "faster", True),
        (">= 5", 4.99, "", "faster", False),
        ("<= 1.3", 1.2, "", "cost", True),
        ("<= 1.3", 1.4, "", "cost", False),
        (">= 1", 2.0, "path differs by 5e-04 (<= 1e-3)", "faster", True),
        (">= 1", 2.0, "error 0.5, 0.7 of its (<= 1.05), at most 2", "faster", True),
        (">= 1", 2.0, "log loss 0.7 (<= 0.699, its)", "faster", False),
        (">= 1", 0.5, "risk 1.01 of its (<= 1.02)", "**slower**", False),
        ("", 1.5, "risk 1.03 of its", "faster", True),
        ("", 0.5, "", "**slower**", True),
        ("", None, "does not install", "not measured", True),
    ],
)
def test_pairs_say_who_is_faster_and_keep_their_limits(
    required, ratio, accuracy, said, is_within
):
    row = {"required": required, "ratio": ratio, "accuracy": accuracy}
    assert comparison.outcome(row) == said
    assert comparison.is_within_limits(row) == is_within


@pytest.mark.parametrize(
    ("accuracy", "printed"),
    [
        (
            "risk 1.002 of its (<= 1.02), at most 1.006",
            "risk 1.002 of its, at most 1.006",
        ),
        ("log loss 0.7 (<= 0.699, its)", "log loss 0.7 (its 0.699)"),
        ("test error 2.04% (theirs 2.04%)", "test error 2.04% (theirs 2.04%)"),
    ],
)
def test_pages_have_numbers_and_no_limits(accuracy, printed):
    assert (
        Row("work", "theirs", accuracy=accuracy)
        .markdown("name")
        .endswith(f"| {printed} |")
    )


def test_rows_that_are_alike_cannot_be_named():
    times = {"ours": 1.0, "theirs": 3.0, "ratio": 3.0}
    row = {"name": "loo", "work": "500 x 2000", "against": "500 runs", **times}
    longer = {**row, "work": "500 x 2000, T=100"}
    assert comparison.phrase_of(longer, [row, longer]) == ["[2000,]"]
    with pytest.raises(ValueError, match="Another row is like '500 x 2000' of loo"):
        comparison.phrase_of(row, [row, longer])
