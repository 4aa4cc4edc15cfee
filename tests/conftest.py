from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import skacv
from skacv.model_selection import portfolios


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


@pytest.fixture
def few_trees(monkeypatch):
    """Default members with few trees, where a test is not about how good they are."""
    monkeypatch.setitem(portfolios.SMALL, "max_iter", 10)
    monkeypatch.setitem(portfolios.USUAL, "max_iter", 10)
    monkeypatch.setitem(portfolios.EXTRA, "n_estimators", 3)
