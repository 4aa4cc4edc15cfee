"""The code in the pages of the manual runs and prints what they say."""

import doctest
import re
from pathlib import Path

import pytest

import skacv

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [
    path
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "```python\n>>>" in path.read_text()
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_of_a_page(path):
    code = "\n".join(FENCE.findall(path.read_text()))
    page = doctest.DocTestParser().get_doctest(code, {}, path.name, str(path), 0)
    results = doctest.DocTestRunner().run(page)
    assert results.attempted
    assert not results.failed


def test_reference_has_every_public_name():
    listed = (ROOT / "docs" / "api.rst").read_text().split()
    assert set(skacv.__all__) <= set(listed)
