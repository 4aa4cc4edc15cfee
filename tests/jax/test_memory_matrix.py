"""The memory matrix of any update, against the core's and exact leave-one-out."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs skacv[jax]")
optax = pytest.importorskip("optax", reason="needs skacv[jax]")

import jax.numpy as jnp  # noqa: E402

from skacv import IterativeRidge, TrajectoryLogisticRegression  # noqa: E402
from skacv.jax import TrajectoryACV, shuffled_batches  # noqa: E402
from skacv.jax.memory_matrix import (  # noqa: E402
    check_against_exact,
    groups_of_probes,
)

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


def test_rows_count_alike(ridge_data):
    X, y = ridge_data
    acv = TrajectoryACV(linear, half_squared, optax.sgd(0.3), lambda b: 0.05 * b @ b)
    weights = np.where(np.arange(40) == 7, 2.0, 1.0)
    run = acv.run(jnp.zeros(25), X, y, 5, sample_weight=weights)
    with pytest.raises(ValueError, match="risk_path counts all rows alike"):
        run.risk_path()
    run = acv.run(jnp.zeros(25), X, y, 5, sample_weight=np.full(40, 3.0))
    expected = acv.run(jnp.zeros(25), X, y, 5).risk_path("exact").path
    np.testing.assert_allclose(run.risk_path("exact").path, expected, rtol=1e-6)


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
    with pytest.raises(ValueError, match="the estimate is not valid for this run"):
        run.risk_path()


def test_what_is_off_is_warned_of(rng):
    X = rng.standard_normal((50, 40))
    y = X[:, 0] + rng.standard_normal(50)
    run = TrajectoryACV(linear, squared, optax.adam(0.05)).run(jnp.zeros(40), X, y, 60)
    with pytest.warns(UserWarning, match="the estimate is not valid for this run"):
        run.risk_path("exact")


def dense(run, X, y, batches, step_size):
    """Held-out decisions of logistic regression from Jacobians (Tan & Bellec 2024)."""
    (n, p), n_steps = X.shape, run.n_steps
    fitted = run.predict_path(X)
    chances = 1 / (1 + np.exp(-fitted))
    slopes, bend = y - chances, chances * (1 - chances)
    masks = [
        np.bincount(batches[t % len(batches)], minlength=n) for t in range(n_steps)
    ]
    A, K = np.zeros((2, n_steps + 1, n_steps + 1))
    for s, mask in enumerate(masks):
        Q = step_size / mask.sum() * np.eye(p)
        for t in range(s + 1, n_steps + 1):
            response = np.einsum("ij,jk,ik->i", X, Q, X)
            A[t, s] = bend[t] @ response
            K[t, s] = -(bend[t] * bend[s] * mask) @ response
            if t < n_steps:
                curved = X.T @ ((bend[t] * masks[t])[:, None] * X)
                Q = Q - step_size / masks[t].sum() * curved @ Q
    W = np.linalg.solve(K + np.diag(bend.sum(axis=1)), A)
    return fitted - W[:, :-1] @ (slopes[:-1] * np.array(masks))


# Of uneven sizes, and one with a row twice.
BATCHES = [*shuffled_batches(40, 15, 2), [3, 3, 7, 20, 31]]


def test_batches_against_dense_jacobians(rng):
    X = rng.standard_normal((40, 12))
    y = (rng.random(40) < 1 / (1 + np.exp(-2 * X[:, 0]))).astype(float)
    run = TrajectoryACV(linear, log_loss, optax.sgd(0.5)).run(
        jnp.zeros(12), X, y, 10, BATCHES
    )
    found = run.risk_path("exact", n_checked=0)
    expected = dense(run, X, y, BATCHES, 0.5)
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)
    np.testing.assert_allclose(found.path, log_loss(y, expected).mean(axis=1))


def test_batches_are_near_exact_leave_one_out(logistic):
    batches = shuffled_batches(300, 100, 5)
    run = TrajectoryACV(linear, log_loss, optax.sgd(0.3)).run(
        jnp.zeros(150), *logistic, 15, batches
    )
    found, exact = run.risk_path(), run.loo_path()
    assert np.abs(found.path / exact.path - 1).max() < 0.05


@pytest.mark.parametrize("n_probes", [5, "many", 30.0])
def test_probes_are_a_number_or_exact(n_probes, ridge_data):
    acv = TrajectoryACV(linear, squared, optax.sgd(0.05))
    with pytest.raises(ValueError, match="n_probes must be 'exact' or at least 20"):
        acv.run(jnp.zeros(25), *ridge_data, 2).risk_path(n_probes)


def test_a_complete_basis_has_traces_without_error(rng):
    matrix = rng.standard_normal((6, 6))
    (basis,) = groups_of_probes("exact", 3, 2, seed=0)
    flat = basis.reshape(len(basis), 6)
    trace = np.einsum("ri,ij,rj->r", flat, matrix, flat).mean()
    np.testing.assert_allclose(trace, np.trace(matrix))
    groups = list(groups_of_probes(40, 3, 2, seed=0))
    assert [group.shape for group in groups] == [(10, 3, 2)] * 4
    assert (np.abs(groups) == 1).all()


def test_modes_one_by_one_are_all_modes(set_limits, rng):
    X, coef = rng.standard_normal((30, 4)), np.zeros(4)
    y = X[:, 0] + rng.standard_normal(30)
    run = TrajectoryACV(linear, squared, optax.sgd(0.1)).run(coef, X, y, n_steps=6)
    expected = run.risk_path(n_checked=0).path
    set_limits(MEMORY_BYTES=1)
    np.testing.assert_allclose(run.risk_path(n_checked=0).path, expected, rtol=1e-5)


def test_what_is_off_exact_rows_is_warned_of_or_refused():
    exact = np.ones(3)
    check_against_exact(np.array([1.0, 1.2, 0.8]), exact)
    with pytest.warns(UserWarning, match="a loss of 1.4 for iterate 1 on rows "):
        check_against_exact(np.array([1.0, 1.4, 0.8]), exact)
    with pytest.raises(ValueError, match=r"loss of 0.2 for iterate 2 .* Use cv_path"):
        check_against_exact(np.array([1.0, 1.4, 0.2]), exact)
