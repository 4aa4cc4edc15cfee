"""The memory matrix of rows on workers is that of the same run in memory."""

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("pyarrow", reason="needs skacv[dask]")

import dask.array as da

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryLasso,
)

N_ROWS, N_COLUMNS = 150, 40
SETTINGS = {"risk": "exact", "risk_row_scales": False, "loo": False}
MODELS = [
    TrajectoryLasso("path", max_iter=6),
    TrajectoryLasso([0.3, 0.1], solver="ista", max_iter=20),
    TrajectoryElasticNet(0.2, max_iter=20),
    TrajectoryGroupLasso([0.3, 0.1], groups=np.arange(N_COLUMNS) // 4, max_iter=15),
    IterativeRidge(1.0, solver="nesterov", max_iter=25),
    IterativeRidge(0.0, solver="heavy_ball", fit_intercept=False, max_iter=25),
]

pytestmark = pytest.mark.usefixtures("on_workers")


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_COLUMNS)) + 1
    return X, 2 * X[:, 0] - X[:, 1] + rng.standard_normal(N_ROWS) + 3


def collections(*arrays):
    return [da.from_array(array, (40, *array.shape[1:])) for array in arrays]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("estimator", MODELS, ids=repr)
def test_it_is_that_of_the_fit_in_memory(estimator, weighted, data):
    X, y = data
    weights = 0.5 + np.arange(N_ROWS) % 3 if weighted else np.ones(N_ROWS)
    estimator = clone(estimator).set_params(**SETTINGS)
    X_blocks, y_blocks, weight_blocks = collections(X, y, weights)
    found = clone(estimator).fit(X_blocks, y_blocks, sample_weight=weight_blocks)
    expected = clone(estimator).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.risk_path_, expected.risk_path_, rtol=1e-6)
    predictions = np.asarray(found.risk_prediction_path_)
    of_rows = np.asarray(expected.risk_prediction_path_)[:, found.risk_indices_]
    np.testing.assert_allclose(predictions, of_rows, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(found.risk_target_, y[found.risk_indices_])


def test_several_targets(data):
    X, y = data
    Y = np.column_stack([y, y[::-1]])
    estimator = IterativeRidge(1.0, max_iter=20, **SETTINGS)
    found = clone(estimator).fit(*collections(X, Y))
    expected = clone(estimator).fit(X, Y)
    np.testing.assert_allclose(found.risk_path_, expected.risk_path_, rtol=1e-6)


def test_more_columns_than_rows(data):
    """Of which the run moves a few."""
    X, y = data
    estimator = TrajectoryLasso("path", max_iter=6, **SETTINGS)
    found = clone(estimator).fit(*collections(X[:30], y[:30]))
    expected = clone(estimator).fit(X[:30], y[:30])
    np.testing.assert_allclose(found.risk_path_, expected.risk_path_, rtol=1e-6)


def test_a_run_that_moves_nothing(data):
    X, y = data
    found = TrajectoryLasso(1e3, max_iter=3, **SETTINGS).fit(*collections(X, y))
    expected = TrajectoryLasso(1e3, max_iter=3, **SETTINGS).fit(X, y)
    np.testing.assert_allclose(found.risk_path_, expected.risk_path_, rtol=1e-10)


def test_stopping_by_it(data):
    X, y = data
    lasso = TrajectoryLasso("path", max_iter=6, random_state=0)
    model = TrajectoryEarlyStoppingCV(lasso, criterion="risk").fit(*collections(X, y))
    expected = TrajectoryEarlyStoppingCV(lasso, criterion="risk").fit(X, y)
    assert model.best_iter_ == expected.best_iter_
    assert model.best_score_ == pytest.approx(expected.best_score_, rel=1e-4)


def test_too_many_columns_moved(data, set_limits):
    set_limits(MAX_COLUMNS=5)
    estimator = IterativeRidge(1.0, max_iter=5, risk=True, loo=False)
    with pytest.raises(ValueError, match="has moved 40 columns"):
        estimator.fit(*collections(*data))
