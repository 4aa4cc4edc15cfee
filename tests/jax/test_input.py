"""What is refused, by one sentence each."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="needs skacv[jax]")
optax = pytest.importorskip("optax", reason="needs skacv[jax]")

import jax.numpy as jnp  # noqa: E402
from jax.experimental import sparse  # noqa: E402

from skacv.jax import TrajectoryACV  # noqa: E402

from .models import linear, log_loss, squared, start  # noqa: E402


@pytest.fixture
def acv():
    return TrajectoryACV(linear, log_loss, optax.sgd(0.1))


def test_parameters_are_floats(acv, logistic_data):
    params = {"coef": jnp.zeros(5, int), "intercept": jnp.zeros(())}
    with pytest.raises(ValueError, match=r"but params\['coef'\] is int64"):
        acv.run(params, *logistic_data, 2)
    with pytest.raises(ValueError, match="but there are none"):
        acv.run({}, *logistic_data, 2)


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        (lambda y, z: squared(y, z).mean(), r"got shape \(\): do not average"),
        (lambda y, z: squared(y, z[:, None]), r"got shape \(40, 40\): predictions"),
    ],
)
def test_losses_are_one_number_a_row(loss, said, logistic_data):
    acv = TrajectoryACV(linear, loss, optax.sgd(0.1))
    with pytest.raises(ValueError, match=said):
        acv.run(start(5), *logistic_data, 2)


def test_rows_are_independent_of_each_other(logistic_data):
    def normalised(params, X):
        return linear(params, (X - X.mean(axis=0)) / X.std(axis=0))

    X, y = logistic_data
    params = {**start(5), "coef": jnp.ones(5)}
    acv = TrajectoryACV(normalised, log_loss, optax.sgd(0.1))
    with pytest.raises(ValueError, match="depend on other rows"):
        acv.run(params, X, y, 2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_data_are_finite(value, acv, logistic_data):
    X, y = logistic_data
    wrong = X.copy()
    wrong[3, 1] = value
    with pytest.raises(ValueError, match="X has entries that are NaN or infinite"):
        acv.run(start(5), wrong, y, 2)
    with pytest.raises(ValueError, match="y has entries that are NaN or infinite"):
        acv.run(start(5), X, np.where(y == 1, value, y), 2)
    with pytest.raises(ValueError, match=r"must have 40 rows, as y does, .* \(39, 5\)"):
        acv.run(start(5), X[1:], y, 2)


def test_runs_that_diverge_say_where(logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear, squared, optax.sgd(1e200))
    with pytest.raises(ValueError, match=r"not finite from iterate [12] on"):
        acv.run(start(5), X, y, 5)


def test_folds_that_diverge_say_which_row():
    """One row keeps the others from growing, step by step beyond all bounds."""
    X, y = np.ones((30, 1)), np.full(30, -1.0)
    y[0] = 30.0

    def loss(y, z):
        return y * z**2 / 2

    acv = TrajectoryACV(lambda b, X: X[:, 0] * b, loss, optax.sgd(30.0))
    run = acv.run(jnp.ones(()), X, y, 300)
    with pytest.raises(ValueError, match="of row 0 is not finite from iterate"):
        run.loo_path([0])


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        ([], "batches is empty"),
        ([[0, 1], [2.0]], "Batch 1 must be a 1d array of row numbers"),
        ([[0, 40]], "Batch 0 has rows beyond the 40"),
        ([[]], "Batch 0 must be a 1d array of row numbers"),
    ],
)
def test_batches_are_rows(batches, said, acv, logistic_data):
    with pytest.raises(ValueError, match=said):
        acv.run(start(5), *logistic_data, 2, batches)


EVERY = np.arange(40)


@pytest.mark.parametrize(
    ("folds", "said"),
    [
        (1, "folds=1 must be at least 2 and at most the 40 rows"),
        (41, "folds=41"),
        ([], "cv gives no folds"),
        ([(EVERY, EVERY[:3])], "Fold 0 of cv both fits and holds out some rows"),
        ([(EVERY[3:], EVERY[:3] + 50)], "Fold 0 of cv has rows beyond the 40"),
        ([(EVERY[3:], EVERY[:0])], "Fold 0 of cv leaves no row with positive weight"),
        ([(EVERY[3:], [0.5])], "Fold 0 of cv must be a 1d array of row numbers"),
    ],
)
def test_folds_are_rows(folds, said, acv, logistic_data):
    run = acv.run(start(5), *logistic_data, 2)
    with pytest.raises(ValueError, match=said):
        run.cv_path(folds)


def test_rows_left_out_are_rows(acv, logistic_data):
    run = acv.run(start(5), *logistic_data, 2)
    with pytest.raises(ValueError, match="rows has rows beyond the 40"):
        run.loo_path([40])


def test_sparse_arrays_are_refused(acv, logistic_data):
    X, y = logistic_data
    X = sparse.BCOO.fromdense(jnp.asarray(X))
    with pytest.raises(TypeError, match=r"sparse array \(BCOO\) has no rows .*todense"):
        acv.run(start(5), X, y, 2)
