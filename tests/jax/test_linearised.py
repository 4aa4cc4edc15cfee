"""Rows left out by linearising, against exact replicas."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs skacv[jax]")
optax = pytest.importorskip("optax", reason="needs skacv[jax]")

import jax.numpy as jnp  # noqa: E402

from skacv import TrajectoryLogisticRegression  # noqa: E402
from skacv.jax import TrajectoryACV, shuffled_batches  # noqa: E402

from .models import linear, log_loss, ridge, squared, start  # noqa: E402

# With the largest relative errors of the path, plain and corrected.
OPTIMIZERS = {
    "sgd": (optax.sgd(1.0), 1e-3, 1e-5),
    "nesterov": (optax.sgd(0.3, momentum=0.9, nesterov=True), 2e-3, 1e-5),
    "adam": (optax.adam(0.02), 1e-3, 5e-5),
    "clipped": (
        optax.chain(optax.clip_by_global_norm(0.05), optax.sgd(1.0)),
        1e-3,
        1e-5,
    ),
}


@pytest.fixture
def published():
    """The setting of Luo, Ren & Barber."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((250, 20))
    coef = rng.standard_normal(20) * (np.arange(20) < 5)
    return X, (rng.random(250) < 1 / (1 + np.exp(-X @ coef))).astype(float)


def relative(found, expected):
    return np.abs(found.path / expected.path - 1).max()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_logistic_regression(name, published):
    optimizer, plain, corrected = OPTIMIZERS[name]
    run = TrajectoryACV(linear, log_loss, optimizer).run(
        start(20), *published, n_steps=500
    )
    exact = run.loo_path()
    assert relative(run.loo_path(method="linearised", correction=False), exact) < plain
    assert relative(run.loo_path(method="linearised"), exact) < corrected


@pytest.mark.parametrize("correction", [False, True])
def test_it_is_the_reader_of_the_core(correction, published):
    X, y = published
    run = TrajectoryACV(lambda coef, X: X @ coef, log_loss, optax.sgd(0.5)).run(
        jnp.zeros(20), X, y, 300
    )
    settings = {"step_size": 0.5, "max_iter": 300, "tol": 0, "fit_intercept": False}
    core = TrajectoryLogisticRegression(
        np.inf, solver="ista", loo=True, loo_correction=correction, **settings
    ).fit(X, y)
    found = run.loo_path(method="linearised", correction=correction)
    np.testing.assert_allclose(found.path, core.loo_path_, rtol=1e-9)
    errors = found.se_path[1:], core.loo_se_path_[1:]
    np.testing.assert_allclose(*errors, rtol=1e-8)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("correction", [False, True])
def test_the_squared_error_is_exact(correction, weighted, published, rng):
    X, y = published
    weights = rng.uniform(0.2, 50, 250) if weighted else None
    batches = shuffled_batches(250, 100, 2)
    run = TrajectoryACV(linear, squared, optax.adam(0.05), ridge).run(
        start(20), X, y, 30, batches, sample_weight=weights
    )
    rows = [3, 100, 249]
    found = run.loo_path(rows, "linearised", correction, block_size=2)
    expected = run.loo_path(rows).prediction_path
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)


def test_batches_of_a_curved_loss(published):
    run = TrajectoryACV(linear, log_loss, optax.sgd(0.3)).run(
        start(20), *published, 200, shuffled_batches(250, 50, 40)
    )
    exact = run.loo_path()
    plain = relative(run.loo_path(method="linearised", correction=False), exact)
    assert relative(run.loo_path(method="linearised"), exact) < plain < 5e-3


def softmax_loss(y, z):
    own = jnp.take_along_axis(z, y[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(z, axis=1) - own


def test_several_classes(published, rng):
    X, y = published
    y = np.digitize(X[:, 0] + rng.standard_normal(250), [-0.5, 0.5])
    params = {"coef": jnp.zeros((20, 3)), "intercept": jnp.zeros(3)}
    run = TrajectoryACV(linear, softmax_loss, optax.sgd(0.5)).run(params, X, y, 50)
    rows = np.arange(0, 250, 10)
    assert relative(run.loo_path(rows, "linearised"), run.loo_path(rows)) < 2e-5


def test_networks_are_refused(rng):
    def network(params, X):
        return jnp.tanh(X @ params["in"]) @ params["out"]

    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    params = {"in": rng.standard_normal((3, 5)), "out": rng.standard_normal(5)}
    run = TrajectoryACV(network, squared, optax.adam(0.01)).run(params, X, y, 5)
    with pytest.raises(ValueError, match="is not convex along this run"):
        run.loo_path(method="linearised")


def test_line_searches_are_refused(published):
    X, y = published
    run = TrajectoryACV(linear, log_loss, optax.lbfgs()).run(start(20), X, y, 2)
    with pytest.raises(ValueError, match="this one asks for more"):
        run.loo_path(method="linearised")


def test_too_many_parameters_are_refused(rng):
    X, y = rng.standard_normal((5, 4096)), rng.standard_normal(5)
    run = TrajectoryACV(linear, squared, optax.sgd(1e-5)).run(start(4096), X, y, 1)
    with pytest.raises(ValueError, match="there are 4097, more than 4096"):
        run.loo_path(method="linearised")


def test_other_methods_are_refused(published):
    run = TrajectoryACV(linear, log_loss, optax.sgd(0.3)).run(start(20), *published, 2)
    with pytest.raises(ValueError, match="method must be one of"):
        run.loo_path(method="newton")
