"""Folds that follow a loop of a user's own, against a recorded run."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs skacv[jax]")
optax = pytest.importorskip("optax", reason="needs skacv[jax]")

from skacv.jax import TrajectoryACV, shuffled_batches  # noqa: E402

from .models import linear, log_loss, ridge, start  # noqa: E402

ADAM = optax.adam(optax.exponential_decay(0.1, 20, 0.9))


class Loop:
    """A user's own: gradients of a mean loss on a batch, and updates by Adam."""

    def __init__(self, X, y):
        def objective(params, X, y):
            return log_loss(y, linear(params, X)).mean() + ridge(params)

        self.X, self.y, self.gradient = X, y, jax.jit(jax.grad(objective))
        self.params = start(5)
        self.state = ADAM.init(self.params)

    def update(self, rows):
        gradient = self.gradient(self.params, self.X[rows], self.y[rows])
        updates, self.state = ADAM.update(gradient, self.state, self.params)
        self.params = optax.apply_updates(self.params, updates)
        return self.params


def follow(live, loop, rows, told):
    """Ten updates on some rows, told to be on others."""
    for _ in range(10):
        live.step(loop.update(rows), told)


def test_it_is_the_recorded_run_with_its_folds(logistic_data):
    X, y = logistic_data
    acv, loop = TrajectoryACV(linear, log_loss, ADAM, ridge), Loop(X, y)
    batches = shuffled_batches(40, 16, n_epochs=4)
    live = acv.alongside(start(5), X, y, folds=4)
    for rows in batches:
        live.step(loop.update(rows), rows)
    expected = acv.run(start(5), X, y, len(batches), batches).cv_path(4)
    np.testing.assert_allclose(live.path_, expected.path, rtol=1e-10)
    np.testing.assert_allclose(live.se_path_, expected.se_path, rtol=1e-10)
    assert live.best_iteration_ == expected.best_iteration
    best = acv.run(start(5), X, y, len(batches), batches)
    best = best.at_iteration(live.best_iteration_)
    np.testing.assert_allclose(live.best_params_["coef"], best["coef"])


def test_weights_of_a_loop(logistic_data, rng):
    X, y = logistic_data
    weights, batches = rng.uniform(0.1, 3, 40), shuffled_batches(40, 16, n_epochs=2)
    acv, params = TrajectoryACV(linear, log_loss, ADAM, ridge), start(5)
    run = acv.run(params, X, y, len(batches), batches, sample_weight=weights)
    live = acv.alongside(params, X, y, folds=4, sample_weight=weights)

    def objective(params, X, y, scaled):
        return (scaled * log_loss(y, linear(params, X))).mean() + ridge(params)

    gradient, state = jax.jit(jax.grad(objective)), ADAM.init(params)
    scaled = weights / weights.mean()
    for rows in batches:
        gradients = gradient(params, X[rows], y[rows], scaled[rows])
        updates, state = ADAM.update(gradients, state, params)
        params = optax.apply_updates(params, updates)
        live.step(params, rows)
    expected = run.cv_path(4)
    np.testing.assert_allclose(live.path_, expected.path, rtol=1e-10)
    np.testing.assert_allclose(live.se_path_, expected.se_path, rtol=1e-10)


def test_it_stops_a_loop_and_is_judged_now_and_then(logistic_data):
    X, y = logistic_data
    live = TrajectoryACV(linear, log_loss, ADAM, ridge).alongside(
        start(5), X, y, folds=3, every=5
    )
    loop, n_updates = Loop(X, y), 0
    while not live.should_stop(patience=2) and n_updates < 500:
        live.step(loop.update(slice(None)))
        n_updates += 1
    assert n_updates == live.n_steps_ == live.iterations_[-1] < 500
    assert live.best_iteration_ == n_updates - 10
    assert live.path_.argmin() == len(live.path_) - 3


@pytest.mark.parametrize("told", [None, np.arange(16, 32)])
def test_a_loop_on_other_rows_is_noticed(told, logistic_data):
    X, y = logistic_data
    loop = Loop(X, y)
    live = TrajectoryACV(linear, log_loss, ADAM, ridge).alongside(start(5), X, y)
    with pytest.raises(ValueError, match=r"pass step\(\) the rows"):
        follow(live, loop, np.arange(16), told)


def test_another_step_size_is_noticed(logistic_data):
    X, y = logistic_data
    loop = Loop(X, y)
    other = TrajectoryACV(linear, log_loss, optax.adam(0.12), ridge)
    live = other.alongside(start(5), X, y)
    with pytest.raises(ValueError, match="After update 1 the loop's parameters"):
        live.step(loop.update(slice(None)))


def test_a_schedule_that_departs_late_is_warned_of_once(logistic_data):
    X, y = logistic_data
    optimizer = optax.adam(optax.piecewise_constant_schedule(0.1, {20: 0.8}))
    with_schedule = TrajectoryACV(linear, log_loss, optimizer, ridge)
    path = with_schedule.run(start(5), X, y, 30)
    live = TrajectoryACV(linear, log_loss, optax.adam(0.1), ridge)
    live = live.alongside(start(5), X, y)

    def follow_path(updates):
        for t in updates:
            live.step(path.at_iteration(t))

    follow_path(range(1, 21))
    with pytest.warns(UserWarning, match="After update 21 the loop's") as said:
        follow_path(range(21, 31))
    assert len(said) == 1


def test_every_must_be_positive(logistic_data):
    acv = TrajectoryACV(linear, log_loss, ADAM)
    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        acv.alongside(start(5), *logistic_data, every=0)
