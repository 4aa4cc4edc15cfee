"""Rows left out by linearising, against exact replicas."""

from functools import partial

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs skacv[torch]")

from skacv import TrajectoryLogisticRegression  # noqa: E402
from skacv.torch import TrajectoryACV, shuffled_batches  # noqa: E402

from .models import linear, log_loss, network, squared  # noqa: E402

# With the largest relative errors of the path, plain and corrected.
OPTIMIZERS = {
    "sgd": (partial(torch.optim.SGD, lr=1.0), 1e-3, 1e-5),
    "nesterov": (
        partial(torch.optim.SGD, lr=0.3, momentum=0.9, nesterov=True),
        2e-3,
        1e-5,
    ),
    "adam": (partial(torch.optim.Adam, lr=0.02), 1e-3, 5e-5),
}


@pytest.fixture
def published():
    """The setting of Luo, Ren & Barber."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((250, 20))
    coef = rng.standard_normal(20) * (np.arange(20) < 5)
    return X, (rng.random(250) < 1 / (1 + np.exp(-X @ coef))).astype(float)


def at_zero(n_columns, bias=True):
    layer = torch.nn.Linear(n_columns, 1, bias=bias)
    for value in layer.parameters():
        torch.nn.init.zeros_(value)
    return torch.nn.Sequential(layer, torch.nn.Flatten(0)).double()


def relative(found, expected):
    return np.abs(found.path / expected.path - 1).max()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_logistic_regression(name, published):
    optimizer, plain, corrected = OPTIMIZERS[name]
    run = TrajectoryACV(at_zero(20), log_loss, optimizer).run(*published, n_steps=500)
    exact = run.loo_path()
    assert relative(run.loo_path(method="linearised", correction=False), exact) < plain
    assert relative(run.loo_path(method="linearised"), exact) < corrected


@pytest.mark.parametrize("correction", [False, True])
def test_it_is_the_reader_of_the_core(correction, published):
    acv = TrajectoryACV(
        at_zero(20, bias=False), log_loss, partial(torch.optim.SGD, lr=0.5)
    )
    found = acv.run(*published, 300).loo_path(
        method="linearised", correction=correction
    )
    settings = {"step_size": 0.5, "max_iter": 300, "tol": 0, "fit_intercept": False}
    core = TrajectoryLogisticRegression(
        np.inf, solver="ista", loo=True, loo_correction=correction, **settings
    ).fit(*published)
    np.testing.assert_allclose(found.path, core.loo_path_, rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("correction", [False, True])
def test_the_squared_error_is_exact(correction, weighted, published, rng):
    def ridge(params):
        return 0.05 * sum((value**2).sum() for value in params.values())

    halved = partial(torch.optim.lr_scheduler.StepLR, step_size=4, gamma=0.5)
    adam = partial(torch.optim.Adam, lr=0.05)
    acv = TrajectoryACV(linear(20), squared, adam, halved, ridge)
    weights = rng.uniform(0.2, 50, 250) if weighted else None
    batches = shuffled_batches(250, 100, 2)
    run = acv.run(*published, 30, batches, sample_weight=weights)
    rows = [3, 100, 249]
    found = run.loo_path(rows, "linearised", correction, block_size=2)
    expected = run.loo_path(rows).prediction_path
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)


def test_several_classes(published, rng):
    X, _ = published
    y = np.digitize(X[:, 0] + rng.standard_normal(250), [-0.5, 0.5])
    cross_entropy = partial(torch.nn.functional.cross_entropy, reduction="none")
    acv = TrajectoryACV(
        torch.nn.Linear(20, 3).double(),
        lambda y, z: cross_entropy(z, y),
        partial(torch.optim.SGD, lr=0.5),
    )
    run, rows = acv.run(X, y, 50), np.arange(0, 250, 10)
    assert relative(run.loo_path(rows, "linearised"), run.loo_path(rows)) < 2e-5


def test_networks_are_refused(rng):
    X, y = rng.standard_normal((50, 3)), rng.standard_normal((50, 1))
    acv = TrajectoryACV(
        network(3, 1),
        lambda y, z: squared(y, z)[:, 0],
        partial(torch.optim.Adam, lr=0.01),
    )
    with pytest.raises(ValueError, match="is not convex along this run"):
        acv.run(X, y, 5).loo_path(method="linearised")
