"""Numbers of extreme size, and plans that are far longer than their run."""

import numpy as np
import pytest
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    RowSummary,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)

MODELS = [
    TrajectoryLasso(0.1),
    IterativeRidge(standardize=True),
    TrajectoryLogisticRegression(solver="newton"),
]


@pytest.fixture
def data(rng):
    X = rng.standard_normal((40, 4))
    return X, X[:, 0] + rng.standard_normal(40)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@pytest.mark.parametrize("size", [1e-200, 1e150, 1e300])
@pytest.mark.filterwarnings("error")
def test_squares_that_are_no_numbers(model, size, data):
    X, y = data
    y = (y > 0).astype(int) if hasattr(model, "decision_function") else y
    model = clone(model).fit(X, y)
    before = model.coef_.copy()
    with pytest.raises(ValueError, match=r"X.* divide X by a number"):
        model.fit(X * size, y)
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize("make", [TrajectoryEarlyStoppingCV, None])
def test_also_where_an_estimator_stops_itself(make, data):
    X, y = data
    model = make(TrajectoryLasso("path")) if make else SelfStoppingRegressor()
    with pytest.raises(ValueError, match="divide X by a number"):
        model.fit(X * 1e300, y)


def test_targets(data):
    X, y = data
    with pytest.raises(ValueError, match=r"y has entries as large as .*overflow"):
        TrajectoryLasso(0.1).fit(X, y * 1e200)


def test_summaries(data):
    X, y = data
    summary = RowSummary().fit(X, y)
    with pytest.raises(ValueError, match=r"X has entries as large as .*overflow"):
        summary.partial_fit(X * 1e150, y)
    assert summary.n_samples_seen_ == 40


@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_the_memory_matrix_does_not_depend_on_units(size, rng):
    X = rng.standard_normal((50, 120))
    y = X[:, 0] + rng.standard_normal(50)
    model = TrajectoryLasso(0.1, loo=False, random_state=0)
    expected = clone(model).fit(X, y).risk_path_
    found = model.set_params(alpha=0.1 * size).fit(X * size, y).risk_path_
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:The last iterate predicts worse than a constant")
def test_large_counts(rng):
    """The slopes of a loss are rounded beside them; its derivatives are right."""
    X = rng.standard_normal((40, 2))
    y = rng.poisson(1e8 * np.exp(0.1 * X[:, 0]))
    model = TrajectoryPoissonRegressor(solver="gd", max_iter=20, loo=False, risk=False)
    model.fit(X, y)
    assert np.isfinite(model.coef_path_).all()
    assert (np.diff(model.train_path_) < 0).all()


@pytest.mark.parametrize("model", [TrajectoryLasso(0.1), IterativeRidge()], ids=repr)
def test_records_grow_with_the_run(model, data):
    X, y = data
    long = clone(model).set_params(max_iter=10**9, loo=False, risk=False)
    short = clone(long).set_params(max_iter=1000).fit(X, y)
    np.testing.assert_array_equal(long.fit(X, y).coef_path_, short.coef_path_)


def test_records_beyond_what_is_reserved(data, set_limits):
    X, y = data
    model = IterativeRidge(max_iter=300, tol=0, loo=False, risk=False)
    expected = clone(model).fit(X, y).coef_path_
    set_limits(MEMORY_BYTES=50)
    np.testing.assert_array_equal(model.fit(X, y).coef_path_, expected)
