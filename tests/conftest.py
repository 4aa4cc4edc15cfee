from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import skacv
from skacv.optim.run import LiveRun


def pytest_addoption(parser):
    parser.addoption(
        "--seed",
        type=int,
        default=0,
        help="of the data that tests draw; a test may fail by chance where it is not 0",
    )


@pytest.fixture
def rng(request):
    return np.random.default_rng(request.config.getoption("--seed"))


ROOT = Path(skacv.__file__).parent


def modules_with(name):
    """Modules of the package that have a global of that name."""
    for path in ROOT.rglob("*.py"):
        if path.stem != "__init__" and name in path.read_text():
            parts = path.relative_to(ROOT.parent).with_suffix("").parts
            try:
                module = import_module(".".join(parts))
            except ImportError:  # of an extra that is not installed
                continue
            if name in vars(module):
                yield module


@pytest.fixture
def set_globals(monkeypatch):
    """A function that sets globals of the package in all modules that have them.

    A test names a limit or a function, but not the modules that use it: these may
    change.
    """

    def set_in_all_modules(**values):
        for name, value in values.items():
            modules = list(modules_with(name))
            assert modules, f"No module has a global {name}."
            for module in modules:
                monkeypatch.setattr(module, name, value)

    return set_in_all_modules


@pytest.fixture
def set_limits(set_globals):
    """A function that sets limits, such as MEMORY_BYTES, in all modules."""
    return set_globals


@pytest.fixture
def note_calls(monkeypatch):
    """A function that lets methods of a class note ``size(self, *args)`` of each call.

    It returns the list of the sizes.
    """

    def note(owner, *names, size):
        sizes = []
        for name in names:
            method = getattr(owner, name)

            def noting(*args, method=method, **settings):
                sizes.append(size(*args))
                return method(*args, **settings)

            monkeypatch.setattr(owner, name, noting)
        return sizes

    return note


class Advance(NamedTuple):
    """Updates of a run that one call has made, from the first to the last."""

    run: LiveRun
    first: int
    last: int


@pytest.fixture
def advances(monkeypatch):
    """What runs of the engine do, whoever starts them: an Advance of every call."""
    found, go_on = [], LiveRun.go_on

    def noting(run, *args, **params):
        first = run.t
        go_on(run, *args, **params)
        found.append(Advance(run, first, run.t))

    monkeypatch.setattr(LiveRun, "go_on", noting)
    return found


# Sizes of the trees of default members: boosted ones of few rows, of more, and forests.
FEW_TREES = {
    "SMALL": {"max_iter": 10},
    "USUAL": {"max_iter": 10},
    "EXTRA": {"n_estimators": 3},
}


@pytest.fixture
def set_trees(monkeypatch):
    """A function that sets settings of trees of default members, by their tables."""

    def set_settings(**settings):
        for table, values in settings.items():
            (found,) = {id(vars(m)[table]): m for m in modules_with(table)}.values()
            for name, value in values.items():
                monkeypatch.setitem(vars(found)[table], name, value)

    return set_settings


@pytest.fixture
def few_trees(set_trees):
    """Default members with few trees, where a test is not about how good they are."""
    set_trees(**FEW_TREES)
