"""Losses of optax, which have the prediction first, as losses of single rows."""

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs skacv[jax]")

import jax.numpy as jnp  # noqa: E402
import optax  # noqa: E402

from skacv.jax import OptaxClassifier, OptaxRegressor, TrajectoryACV, cv_path  # noqa: E402


def data(targets, n_rows=30):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((n_rows, 3))
    signal = X[:, 0] + 0.5 * rng.standard_normal(n_rows)
    return X, {
        "values": 2 * signal,
        "labels": (signal > 0).astype(float),
        "classes": np.digitize(signal, [-0.5, 0.5]),
        "outputs": np.column_stack([signal, signal**2]),
    }[targets]


def predict(params, X):
    return X @ params


def small_huber(y, p):
    size = abs(y - p)
    return jnp.where(size < 0.5, size**2 / 2, 0.5 * (size - 0.25))


def of_classes(y, p):
    chosen = jnp.take_along_axis(p, y[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(p, axis=1) - chosen


def focal(y, z):
    p = jax.nn.sigmoid(z)
    right = jnp.where(y == 1, p, 1 - p)
    return -((1 - right) ** 2) * jnp.log(right)


LOSSES = {
    "squared": (optax.squared_error, "values", lambda y, p: (y - p) ** 2),
    "outputs": (optax.l2_loss, "outputs", lambda y, p: ((y - p) ** 2).mean(1) / 2),
    "huber": (partial(optax.huber_loss, delta=0.5), "values", small_huber),
    "log cosh": (optax.log_cosh, "values", lambda y, p: jnp.log(jnp.cosh(y - p))),
    "logits": (
        optax.sigmoid_binary_cross_entropy,
        "labels",
        lambda y, z: jax.nn.softplus(z) - y * z,
    ),
    "focal": (optax.sigmoid_focal_loss, "labels", focal),
    "softmax": (
        optax.softmax_cross_entropy_with_integer_labels,
        "classes",
        of_classes,
    ),
}


@pytest.mark.parametrize("name", LOSSES)
def test_known_losses_are_those_written_out(name):
    loss, targets, by_hand = LOSSES[name]
    X, y = data(targets)
    outputs = {"classes": (3,), "outputs": (2,)}.get(targets, ())
    start, sgd = jnp.full((3, *outputs), 0.1), optax.sgd(0.1)
    found, expected = (
        TrajectoryACV(predict, one, sgd).run(start, X, y, n_steps=6)
        for one in (loss, by_hand)
    )
    for path, wanted in [
        (found.train_path, expected.train_path),
        (found.cv_path(3).path, expected.cv_path(3).path),
    ]:
        np.testing.assert_allclose(path, wanted, rtol=1e-5)


def test_steps_of_a_user_and_estimators_know_them_too():
    X, y = data("labels")

    def step(params, weights):
        def objective(params):
            return weights @ optax.sigmoid_binary_cross_entropy(predict(params, X), y)

        return params - 0.1 * jax.grad(objective)(params)

    loss, _, by_hand = LOSSES["logits"]
    arguments = step, lambda weights: jnp.full(3, 0.1), predict
    found, expected = (
        cv_path(*arguments, one, X, y, n_steps=4, folds=3).path
        for one in (loss, by_hand)
    )
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    settings = {"cv": 3, "max_iter": 8, "random_state": 0}
    found = OptaxClassifier(loss=loss, **settings).fit(X, y)
    expected = OptaxClassifier(**settings).fit(X, y)
    np.testing.assert_allclose(found.cv_path_, expected.cv_path_, rtol=1e-5)


def test_others_of_optax_are_refused():
    X, y = data("values")
    for loss, name in [
        (optax.hinge_loss, "hinge_loss"),
        (optax.cosine_distance, "cosine_distance"),
        (partial(optax.kl_divergence), "kl_divergence"),
    ]:
        with pytest.raises(ValueError, match=f"{name} takes .* lambda y, prediction:"):
            OptaxRegressor(loss=loss, max_iter=1).fit(X, y)
    column = jnp.zeros((3, 1))
    acv = TrajectoryACV(predict, optax.squared_error, optax.sgd(0.1))
    with pytest.raises(ValueError, match=r"y, of shape \(30,\), with .* \(30, 1\)"):
        acv.run(column, X, y, n_steps=1)
