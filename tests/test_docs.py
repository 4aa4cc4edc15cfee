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

from .quotations import Quotation, is_rounded, quotations_of

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
# Those of results are the results.
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
]
# And callbacks, which scikit-learn has from 1.9 on.
EXTRA = re.compile(
    r"^>>> (?:import|from) "
    r"(jax|torch|dask|imblearn|lightgbm|lightning|transformers|keras|optuna|sksurv|sklearn\.callback)\b",
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


def test_tests_that_pages_name_exist():
    named = [test for path in PAGES for test in NAMED_TEST.findall(path.read_text())]
    assert len(named) > 20
    for file, name in named:
        source = ROOT / file
        assert source.exists(), file
        assert f"\ndef {name}(" in source.read_text(), f"{file}::{name}"


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
    quoted = Quotation("t3 rows 0.722 (0.72), 99.99 elsewhere", ("studies designs",))
    assert quoted.unfounded() == ["99.99"]
    with pytest.raises(ValueError, match="has no designs"):
        Quotation("1.0", ("studies designs unsaid",)).unfounded()


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
