"""Folds and rows as replicas of a run, against refits by a plain loop."""

import numpy as np
import pytest
from sklearn.model_selection import KFold, LeaveOneOut, ShuffleSplit

jax = pytest.importorskip("jax", reason="needs skacv[jax]")
optax = pytest.importorskip("optax", reason="needs skacv[jax]")

import jax.numpy as jnp  # noqa: E402

from skacv.jax import TrajectoryACV, cv_path, shuffled_batches  # noqa: E402

from .models import (  # noqa: E402
    linear,
    log_loss,
    refitted,
    refitted_without,
    ridge,
    squared,
    start,
)

OPTIMIZERS = {
    "sgd": optax.sgd(0.3),
    "momentum": optax.sgd(0.1, momentum=0.9),
    "nesterov": optax.sgd(0.1, momentum=0.9, nesterov=True),
    "adam": optax.adam(0.05),
    "schedule": optax.adamw(optax.cosine_decay_schedule(0.1, 30)),
    "clipped": optax.chain(optax.clip_by_global_norm(0.05), optax.sgd(0.5)),
    "lbfgs": optax.lbfgs(),
}


@pytest.mark.parametrize(
    ("name", "loss"), [*((name, log_loss) for name in OPTIMIZERS), ("sgd", squared)]
)
def test_folds_are_refits(name, loss, logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear, loss, OPTIMIZERS[name], ridge)
    run = acv.run(start(5), X, y, n_steps=15)
    splits = list(KFold(2).split(X))
    found = run.cv_path(splits)
    for _, rows in splits:
        expected = refitted_without(acv, start(5), X, y, 15, rows)
        own = found.prediction_path[:, np.isin(found.indices, rows)]
        np.testing.assert_allclose(own, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
def test_folds_are_refits_in_batches(name, logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear, log_loss, OPTIMIZERS[name], ridge)
    batches = shuffled_batches(40, 10, n_epochs=2)
    run = acv.run(start(5), X, y, 20, batches)  # gone through more than twice
    rows = np.array([3, 17, 20])
    found = run.cv_path([(np.setdiff1d(np.arange(40), rows), rows)])
    expected = refitted_without(acv, start(5), X, y, 20, rows, batches)
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)


@pytest.mark.parametrize("size", [None, 10])
def test_weights_are_those_of_a_plain_loop(size, logistic_data, rng):
    X, y = logistic_data
    weights = rng.uniform(0.1, 3, 40) * (np.arange(40) != 5)
    acv = TrajectoryACV(linear, log_loss, OPTIMIZERS["nesterov"], ridge)
    batches = None if size is None else shuffled_batches(40, size, n_epochs=2)
    run = acv.run(start(5), X, y, 12, batches, sample_weight=weights)
    share = weights / weights.sum() * (1 if size is None else 40 / size)
    last = linear(refitted(acv, start(5), X, y, 12, batches, share)[-1], X)
    np.testing.assert_allclose(run.predict_path(X)[-1], last, atol=1e-10)
    expected = np.average(log_loss(y, last), weights=weights)
    np.testing.assert_allclose(run.train_path[-1], expected)
    rows = np.array([3, 17, 20])
    found = run.cv_path([(np.setdiff1d(np.arange(40), rows), rows)])
    expected = refitted_without(acv, start(5), X, y, 12, rows, batches, weights)
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)
    losses = log_loss(y[rows], expected)
    expected = np.average(losses, axis=1, weights=weights[rows])
    np.testing.assert_allclose(found.path, expected)


def test_the_run_itself_is_that_of_the_optimiser(logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear, log_loss, optax.adam(0.05))
    batches = [np.arange(0, 30), np.arange(25, 40)]
    run = acv.run(start(5), X, y, 9, iter(batches))
    expected = refitted(acv, start(5), X, y, 9, batches)
    for t, params in enumerate(expected):
        own = run.at_iteration(t)
        np.testing.assert_allclose(own["coef"], params["coef"], atol=1e-12)
        cost = log_loss(y, linear(params, X)).mean()
        np.testing.assert_allclose(run.train_path[t], cost)
    assert run.n_steps == 9
    np.testing.assert_array_equal(
        run.at_iteration(-1)["coef"], run.at_iteration(9)["coef"]
    )
    with pytest.raises(ValueError, match=r"t must be in \[-10, 9\]"):
        run.at_iteration(10)


def test_paths_are_averages_of_what_held_out_rows_cost(logistic_data):
    X, y = logistic_data
    run = TrajectoryACV(linear, log_loss, optax.sgd(0.3)).run(start(5), X, y, 10)
    found = run.cv_path(KFold(4))
    costs = np.asarray(log_loss(y[found.indices], found.prediction_path))
    by_fold = costs.reshape(11, 4, 10).mean(axis=2)
    np.testing.assert_allclose(found.path, by_fold.mean(axis=1))
    error = by_fold.std(axis=1, ddof=1) / 2
    np.testing.assert_allclose(found.se_path, error)
    assert found.best_iteration == found.path.argmin()


def test_blocks_of_replicas_change_nothing(logistic_data):
    X, y = logistic_data
    run = TrajectoryACV(linear, log_loss, optax.adam(0.1)).run(start(5), X, y, 10)
    whole, in_blocks = run.cv_path(7), run.cv_path(7, block_size=3)
    np.testing.assert_array_equal(whole.indices, in_blocks.indices)
    np.testing.assert_allclose(whole.path, in_blocks.path, rtol=1e-12)


def test_splits_need_not_be_a_partition(logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear, log_loss, optax.sgd(0.3))
    splits = list(ShuffleSplit(2, train_size=0.5, random_state=0).split(X))
    found = acv.run(start(5), X, y, 5).cv_path(splits)
    for fold, (fitted, judged) in enumerate(splits):
        path = refitted(acv, start(5), X[fitted], y[fitted], 5)
        own = found.prediction_path[:, found.folds == fold]
        expected = [linear(params, X[judged]) for params in path]
        np.testing.assert_allclose(own, expected, atol=1e-10)


def network(params, X):
    for weight, shift in params[:-1]:
        X = jnp.tanh(X @ weight + shift)
    weight, shift = params[-1]
    return X @ weight + shift


def cross_entropy(y, logits):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)[:, 0]


def test_networks_with_several_outputs(rng):
    X = {"near": rng.standard_normal((30, 2)), "far": rng.standard_normal((30, 2))}
    y = rng.integers(3, size=30)

    def predict(params, X):
        return network(params, jnp.concatenate([X["near"], X["far"]], axis=1))

    sizes = [(4, 6), (6, 3)]
    params = [(jnp.asarray(rng.standard_normal(s)), jnp.zeros(s[1])) for s in sizes]
    acv = TrajectoryACV(predict, cross_entropy, optax.adam(0.02))
    found = acv.run(params, X, y, 12).cv_path(KFold(3))
    assert found.prediction_path.shape == (13, 30, 3)
    kept = {name: part[10:] for name, part in X.items()}
    path = acv.run(params, kept, y[10:], 12).params_path
    held_out = {name: jnp.asarray(part[:10]) for name, part in X.items()}
    for t in range(13):
        own = jax.tree.map(lambda part, t=t: part[t], path)
        expected = predict(own, held_out)
        np.testing.assert_allclose(found.prediction_path[t, :10], expected, atol=1e-10)


def test_single_precision(logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear, log_loss, optax.adam(0.05), ridge)
    exact = acv.run(start(5), X, y, 15).cv_path(4)
    with jax.enable_x64(False):
        single = acv.run(start(5), X, y, 15)
        found = single.cv_path(4)
    assert single.params_path["coef"].dtype == np.float32
    assert found.prediction_path.dtype == np.float32
    np.testing.assert_allclose(found.path, exact.path, rtol=1e-5)


def test_any_step_has_replicas(logistic_data):
    X, y = map(jnp.asarray, logistic_data)

    def objective(coef, weights):
        return weights @ log_loss(y, X @ coef) + 0.1 * coef @ coef

    def newton(carry, weights):
        coef, number = carry
        gradient = jax.grad(objective)(coef, weights)
        curvature = jax.hessian(objective)(coef, weights)
        return coef - jnp.linalg.solve(curvature, gradient), number + 1

    def begin(weights):
        return jnp.zeros(5), 0

    def predict(carry, X):
        return X @ carry[0]

    found = cv_path(newton, begin, predict, log_loss, X, y, 4, LeaveOneOut())
    for row in (0, 21):
        weights, carry = jnp.ones(40).at[row].set(0) / 39, begin(None)
        for t in range(5):
            expected = X[row] @ carry[0]
            np.testing.assert_allclose(found.prediction_path[t, row], expected, 1e-10)
            carry = newton(carry, weights)
