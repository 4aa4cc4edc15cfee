import numpy as np
import pytest


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
