"""What Dask input is refused for: one sentence, and nothing half fitted."""

import numpy as np
import pytest
from sklearn.model_selection import GroupKFold, KFold

pytest.importorskip("pyarrow", reason="needs skacv[dask]")

import dask.array as da

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.kernel import KernelEigenProRegressor
from skacv.model_selection import approximate_loo

from .collections import blocks

N, P = 120, 6
pytestmark = pytest.mark.usefixtures("on_workers")


@pytest.fixture
def X(rng):
    return blocks(rng.standard_normal((N, P)), 40)


@pytest.fixture
def y(rng):
    return blocks(rng.standard_normal(N), 40)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (TrajectoryHuberRegressor(risk=True), "risk=True needs single rows.* cv=5"),
        (TrajectoryLasso(loo=True), "loo=100, or use folds: cv=5"),
        (TrajectoryLasso(keep_data=True), "set keep_data=False"),
        (IterativeRidge(solver="eigenpro"), "gradient steps on all rows"),
        (TrajectoryLogisticRegression(solver="newton"), "gradient steps on all rows"),
        (TrajectoryLogisticRegression(solver="sgd"), "gradient steps on all rows"),
        (TrajectoryLasso(cv=GroupKFold(3)), "block by block: for Dask input use"),
        (TrajectoryLasso(cv=KFold(3, shuffle=True)), "an integer random_state"),
        (TrajectoryLasso(loo=200), "loo=200 is more than the 120 rows"),
        (TrajectoryLasso(cv=200), "There are 120 rows, too few for 200 folds"),
        (TrajectoryPoissonRegressor(), "Some values of y are negative"),
        (TrajectoryLogisticRegression(), "Unknown label type"),
        (TrajectoryLasso(0.01, step_size=50.0), "diverge with step_size=50"),
    ],
    ids=repr,
)
def test_what_cannot_be_had(estimator, message, X, y):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)
    assert not hasattr(estimator, "coef_")


def test_a_step_that_is_too_large_for_a_fold(rng):
    """The rows of one fold hold the others together."""
    X = np.zeros((40, 2))
    X[:30, 0], X[30:, 1] = 1.0, 1.0
    X = np.concatenate([X[::-1] + 0.01 * rng.standard_normal(X.shape)] * 2)
    y = rng.standard_normal(80)
    cv = KFold(4)
    estimator = IterativeRidge(
        0.0, fit_intercept=False, cv=cv, max_iter=400, tol=0, risk=False, loo=False
    )
    top = np.linalg.eigvalsh(X.T @ X / 80)[-1]
    estimator.set_params(step_size=1.98 / top)
    with pytest.raises(ValueError, match="diverge where rows are left out"):
        estimator.fit(X, y)
    with pytest.raises(ValueError, match="diverge without fold"):
        estimator.fit(blocks(X, 20), blocks(y, 20))


def test_a_record_does_not_go_on(X, y):
    estimator = TrajectoryLasso(0.01, max_iter=3, warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="warm_start=False"):
        estimator.fit(X, y)
    assert estimator.n_iter_ == 3


def test_left_to_us_single_rows_are_off(X, y):
    estimator = TrajectoryLasso(0.01, max_iter=3, cv=3).fit(X, y)
    assert estimator.cv_fold_path_.shape == (4, 3)
    names = ("risk_path_", "loo_path_", "cv_prediction_path_")
    assert not any(hasattr(estimator, name) for name in names)


@pytest.mark.parametrize("splitter", ["groups"])
def test_groups_are_refused(splitter, X, y):
    with pytest.raises(ValueError, match="set cv to a number of folds"):
        TrajectoryLasso(cv=3).fit(X, y, groups=np.zeros(N))


def test_stopping_names_what_to_do(X, y):
    members = [("log", TrajectoryLogisticRegression()), ("svm", TrajectoryLinearSVC())]
    with pytest.raises(ValueError, match="members with the same loss"):
        TrajectoryEarlyStoppingCV(members).fit(X, (y > 0).astype(int))
    stopping = TrajectoryEarlyStoppingCV(TrajectoryLasso(), criterion="r2")
    with pytest.raises(ValueError, match="set criterion='cv'"):
        stopping.fit(X, y)
    members = [("kernel", KernelEigenProRegressor()), ("lasso", TrajectoryLasso())]
    with pytest.raises(
        TypeError, match="Arrays in memory are needed here, got a Dask collection"
    ):
        TrajectoryEarlyStoppingCV(members).fit(X, y)


def in_memory_only(X, y):
    """What takes arrays in memory alone."""
    fitted = TrajectoryLasso(max_iter=2).fit(X.compute(), y.compute())
    return [
        lambda: KernelEigenProRegressor().fit(X, y),
        lambda: TrajectoryLasso().fit(X.compute(), y),
        lambda: fitted.staged_loss(X, y),
        lambda: fitted.predict_interval(X, method="loo"),
        lambda: approximate_loo(fitted, X, y),
    ]


@pytest.mark.parametrize("case", range(5))
def test_no_collection_becomes_an_array(case, X, y):
    with pytest.raises((TypeError, ValueError), match="Dask"):
        in_memory_only(X, y)[case]()


def test_runs_of_jax_take_arrays(X, y):
    pytest.importorskip("jax", reason="needs skacv[jax]")
    optax = pytest.importorskip("optax", reason="needs skacv[jax]")
    from skacv.jax import TrajectoryACV

    def model(params, X):
        return X @ params

    def loss(y, fitted):
        return (y - fitted) ** 2

    with pytest.raises(TypeError, match="got a Dask collection"):
        TrajectoryACV(model, loss, optax.sgd(0.1)).run(np.zeros(P), X, y, 3)


def test_models_of_torch_predict_block_by_block(X, y):
    pytest.importorskip("torch", reason="needs skacv[torch]")
    from skacv.torch import TorchRegressor

    model = TorchRegressor(max_iter=3).fit(X.compute(), y.compute())
    found = model.predict(X)
    assert found.chunks == (X.chunks[0],)
    np.testing.assert_allclose(found.compute(), model.predict(X.compute()), rtol=1e-5)


@pytest.mark.parametrize("estimator", [TrajectoryLasso, TrajectoryLogisticRegression])
def test_data_that_are_none(estimator, X, y):
    spoilt = da.where(da.arange(N, chunks=40)[:, None] == 50, np.nan, X)
    labels = (y > 0).astype(int)
    model = estimator()
    with pytest.raises(ValueError, match="Block 1 of X contains NaN or infinity"):
        model.fit(spoilt, labels)
    with pytest.raises(ValueError, match="y must be one"):
        model.fit(X, X[:, :2])
    with pytest.raises(ValueError, match="at least two"):
        model.fit(X, labels, sample_weight=(da.arange(N, chunks=40) == 3) * 1.0)
    with pytest.raises(ValueError, match=r"features|shape"):
        model.fit(X, labels).predict(X[:, :3])


def test_one_class(X):
    with pytest.raises(ValueError, match="only one class"):
        TrajectoryLogisticRegression().fit(X, da.zeros(N, chunks=40, dtype=int))


def test_targets_that_are_no_numbers(X):
    words = np.array(["a"] * N, dtype=object)
    with pytest.raises(ValueError, match=r"Block . of y is not numbers"):
        TrajectoryLasso().fit(X, da.from_array(words, chunks=40))


@pytest.mark.parametrize("name", ["X", "y"])
def test_squares_that_overflow(name, rng):
    data = {"X": rng.standard_normal((60, 3)), "y": rng.standard_normal(60)}
    data[name] = data[name] * 1e200
    with pytest.raises(ValueError, match=f"{name} has entries as large as"):
        TrajectoryLasso(0.1).fit(blocks(data["X"], 20), blocks(data["y"], 20))
