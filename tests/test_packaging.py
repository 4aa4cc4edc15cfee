"""What is said of the package in several files is the same in all of them."""

import re
import tomllib
from pathlib import Path

import skacv

ROOT = Path(skacv.__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOW = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
VERSION = re.compile(rf"(?<![\w.]){re.escape(skacv.__version__)}(?![\w.])")
ARXIV = re.compile(r"arXiv:\d{4}\.\d{5}")


def test_the_version_stands_in_one_place():
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {
        "attr": "skacv.__version__"
    }
    files = ["pyproject.toml", "CITATION.cff", "README.md", "docs/conf.py"]
    assert not [file for file in files if VERSION.search((ROOT / file).read_text())]


def test_the_changelog_has_this_version():
    headings = re.findall(
        r"^## (.*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE
    )
    assert VERSION.search(headings[0])
    # Whoever makes the release writes the date.
    assert re.search(r" \((unreleased|\d{4}-\d\d-\d\d)\)$", headings[0])


def test_the_citation_file_has_papers_of_the_page_on_citing():
    cited = ARXIV.findall((ROOT / "CITATION.cff").read_text())
    assert cited
    assert set(cited) <= set(
        ARXIV.findall((ROOT / "docs" / "references.md").read_text())
    )


def test_hooks_run_the_ruff_of_the_dev_extra():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    pinned = f"ruff=={re.search(r'rev: v(.*)', hooks)[1]}"
    assert pinned in PROJECT["project"]["optional-dependencies"]["dev"]


def test_the_workflow_runs_targets_that_there_are():
    targets = re.findall(r"target: \[?([\w-]+)", WORKFLOW)
    assert targets
    made = re.findall(
        r"^([\w-][\w -]*):", (ROOT / "Makefile").read_text(), re.MULTILINE
    )
    assert set(targets) <= set(" ".join(made).split())


def test_the_workflow_runs_every_python_that_is_claimed():
    said = [c.rpartition(" ")[2] for c in PROJECT["project"]["classifiers"]]
    claimed = {version for version in said if re.fullmatch(r"3\.\d+", version)}
    assert claimed
    assert claimed <= set(re.findall(r"3\.\d+", WORKFLOW))
