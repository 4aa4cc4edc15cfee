import numpy as np
import pytest

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


@pytest.fixture
def few_trees(monkeypatch):
    """Default members with few trees, where a test is not about how good they are."""
    monkeypatch.setitem(portfolios.SMALL, "max_iter", 10)
    monkeypatch.setitem(portfolios.USUAL, "max_iter", 10)
    monkeypatch.setitem(portfolios.EXTRA, "n_estimators", 3)
