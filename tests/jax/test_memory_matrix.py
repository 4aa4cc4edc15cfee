"""The memory matrix of any update, against the core's and exact leave-one-out."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs skacv[jax]")
optax = pytest.importorskip("optax", reason="needs skacv[jax]")

import jax.numpy as jnp  # noqa: E402

from skacv import IterativeRidge, TrajectoryLogisticRegression  # noqa: E402
from skacv.jax import TrajectoryACV, shuffled_batches  # noqa: E402

from .models import log_loss, squared  # noqa: E402


def linear(coef, X):
    return X @ coef


def half_squared(y, prediction):
    return (y - prediction) ** 2 / 2


@pytest.fixture
def ridge_data(rng):
    X = rng.standard_normal((40, 25))
    return X, X[:, 0] + rng.standard_normal(40)


@pytest.fixture
def logistic(rng):
    """Half as many columns as rows."""
    X = rng.standard_normal((300, 150))
    coef = 2 * rng.standard_normal(150) / np.sqrt(150)
    return X, (rng.random(300) < 1 / (1 + np.exp(-X @ coef))).astype(float)


def test_ridge_is_that_of_the_core(ridge_data):
    X, y = ridge_data
    settings = {"step_size": 0.3, "max_iter": 25, "tol": 0, "risk_row_scales": False}
    core = IterativeRidge(
        4.0, fit_intercept=False, solver="gd", risk="exact", **settings
    ).fit(X, y)
    acv = TrajectoryACV(linear, half_squared, optax.sgd(0.3), lambda b: 0.05 * b @ b)
    found = acv.run(jnp.zeros(25), X, y, 25).risk_path("exact")
    np.testing.assert_allclose(2 * found.path, core.risk_path_, rtol=1e-6)
    signs = acv.run(jnp.zeros(25), X, y, 25).risk_path(1000)
    np.testing.assert_allclose(signs.path, found.path, rtol=0.05)


def test_logistic_regression_is_that_of_the_core(logistic):
    X, y = logistic[0][:60, :30], logistic[1][:60]
    settings = {"step_size": 0.5, "max_iter": 20, "tol": 0, "risk_row_scales": False}
    core = TrajectoryLogisticRegression(
        np.inf, fit_intercept=False, solver="ista", risk="exact", **settings
    ).fit(X, y)
    acv = TrajectoryACV(linear, log_loss, optax.sgd(0.5))
    found = acv.run(jnp.zeros(30), X, y, 20).risk_path("exact")
    np.testing.assert_allclose(found.path, core.risk_path_, rtol=1e-6)


def soft_threshold(size):
    """A prox, as the last transformation of a chain."""

    def update(updates, state, params):
        def moved(step, value):
            point = value + step
            shrunk = jnp.sign(point) * jnp.maximum(jnp.abs(point) - size, 0)
            return shrunk - value

        return jax.tree.map(moved, updates, params), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


LIPSCHITZ = {
    "gd": optax.sgd(0.5),
    "nesterov": optax.sgd(0.2, momentum=0.8, nesterov=True),
    "l1": optax.chain(optax.sgd(0.5), soft_threshold(0.005)),
    "clipped": optax.chain(optax.clip_by_global_norm(0.1), optax.sgd(1.0)),
}


@pytest.mark.parametrize("name", LIPSCHITZ)
def test_it_is_near_exact_leave_one_out(name, logistic):
    run = TrajectoryACV(linear, log_loss, LIPSCHITZ[name]).run(
        jnp.zeros(150), *logistic, n_steps=30
    )
    found, exact = run.risk_path(), run.loo_path()
    assert np.abs(found.path / exact.path - 1).max() < 0.05
    held_out, expected = found.prediction_path[-1], exact.prediction_path[-1]
    assert np.corrcoef(held_out, expected)[0, 1] > 0.98
    assert (found.se_path >= 0.9 * exact.se_path).all()


def test_adam_has_its_moments_in_the_tangents(ridge_data):
    X, y = ridge_data
    run = TrajectoryACV(linear, squared, optax.adam(0.05)).run(jnp.zeros(25), X, y, 20)
    found, exact = run.risk_path("exact"), run.loo_path()
    assert np.abs(found.path / exact.path - 1).max() < 0.25


def test_several_outputs(rng):
    X = rng.standard_normal((60, 20))
    y = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(60), [-0.5, 0.5])

    def loss(y, z):
        own = jnp.take_along_axis(z, y[:, None], axis=1)[:, 0]
        return jax.nn.logsumexp(z, axis=1) - own

    run = TrajectoryACV(linear, loss, optax.sgd(0.5)).run(jnp.zeros((20, 3)), X, y, 15)
    found, exact = run.risk_path("exact", n_checked=0), run.loo_path()
    assert found.prediction_path.shape == (16, 60, 3)
    assert np.abs(found.path / exact.path - 1).max() < 0.1


@pytest.mark.parametrize("n_steps", [60, 400])
def test_sign_updates_are_refused(n_steps, ridge_data):
    run = TrajectoryACV(linear, squared, optax.sign_sgd(0.02)).run(
        jnp.zeros(25), *ridge_data, n_steps
    )
    with pytest.raises(ValueError, match="it does not hold for this run"):
        run.risk_path()


def test_what_is_off_is_warned_of(rng):
    X = rng.standard_normal((50, 40))
    y = X[:, 0] + rng.standard_normal(50)
    run = TrajectoryACV(linear, squared, optax.adam(0.05)).run(jnp.zeros(40), X, y, 60)
    with pytest.warns(UserWarning, match="it does not hold for this run"):
        run.risk_path("exact")


def test_batches_are_refused(ridge_data):
    run = TrajectoryACV(linear, squared, optax.sgd(0.05)).run(
        jnp.zeros(25), *ridge_data, 5, shuffled_batches(40, 10, 2)
    )
    with pytest.raises(ValueError, match="not batches"):
        run.risk_path()


@pytest.mark.parametrize("n_probes", [5, "many", 30.0])
def test_probes_are_a_number_or_exact(n_probes, ridge_data):
    acv = TrajectoryACV(linear, squared, optax.sgd(0.05))
    with pytest.raises(ValueError, match="n_probes must be 'exact' or at least 20"):
        acv.run(jnp.zeros(25), *ridge_data, 2).risk_path(n_probes)
