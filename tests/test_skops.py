"""skops stores whatever is fitted, and loads it where the listed types are trusted."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import make_scorer, mean_absolute_error
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RowSummary,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryRegressor,
)
from tests.cases import covering
from tests.runs import InParts
from tests.test_fitted_state import (
    CONTAINERS,
    assert_same,
    drawn,
    fitted,
    of_every_model,
    said,
)

pytestmark = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "1.25.0",
    reason="skops stores random generators of NumPy 1.25 and later",
)

# What the page on saving names besides skacv's own.
OTHERS = (
    "numpy.dtype",
    "functools.partial",
    "sklearn.",
    "scipy.sparse",
)


def from_skops(model):
    """A model that has been written to bytes by skops and read again."""
    io = pytest.importorskip("skops.io")
    stored = io.dumps(model)
    return io.loads(stored, trusted=io.get_untrusted_types(data=stored))


@of_every_model
def test_every_estimator(name):
    io = pytest.importorskip("skops.io")
    model, _, _, _ = fitted(name)
    new = drawn(name, seed=1)[1]
    assert_same(said(from_skops(model), new), said(model, new))
    types = io.get_untrusted_types(data=io.dumps(model))
    others = [name for name in types if not name.startswith("skacv.")]
    assert all(name.startswith(OTHERS) for name in others), others


@covering(
    name=["lasso, loo", "logistic", "eigenpro", "kernel"],
    container=["rows", "sparse", "frame"],
)
def test_what_has_kept_its_rows(name, container):
    model, X, y, weights = drawn(name, container)
    is_kernel = name == "kernel"
    model.set_params(**({"warm_start": True} if is_kernel else {"keep_data": True}))
    model.fit(X, y, sample_weight=weights)
    new, again = drawn(name, container, seed=1)[1], from_skops(model)
    assert_same(said(again, new), said(model, new))
    if name == "lasso, loo":
        for method in ("jackknife+", "scaled"):
            found = again.predict_interval(new, 0.8, method)
            expected = model.predict_interval(new, 0.8, method)
            np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("name", ["lasso", "logistic", "kernel", "staged"])
def test_records_of_runs_that_may_go_on(name):
    model, X, y, _ = drawn(name)
    parts = InParts(model, X, y)
    parts.go_on(3)
    assert_same(said(from_skops(model), X), said(model, X))


def test_rows_that_have_been_added():
    X, y = drawn("lasso")[1:3]
    model = TrajectoryLasso("path", cv=3, max_iter=4).partial_fit(X[:50], y[:50])
    again = from_skops(model).partial_fit(X[50:], y[50:])
    assert_same(said(again, X), said(model.partial_fit(X[50:], y[50:]), X))
    summary = RowSummary(n_folds=3).fit(X, y)
    found = clone(model).fit(from_skops(summary)).coef_
    np.testing.assert_array_equal(found, clone(model).fit(summary).coef_)


STOPPED = {
    "grid": {"param_grid": {"max_iter": [2, 3]}},
    "scorer": {"criterion": "r2"},
    "metric": {"criterion": make_scorer(mean_absolute_error, greater_is_better=False)},
    "groups": {"cv": GroupKFold(3)},
    "splits": {"cv": [(np.arange(45), np.arange(45, 90))]},
    "random state": {"random_state": np.random.RandomState(0)},
}


@pytest.mark.parametrize("params", STOPPED.values(), ids=STOPPED)
def test_parameters_of_early_stopping(params):
    X, y = drawn("lasso")[1:3]
    groups = {"groups": np.arange(90) // 6} if "cv" in params else {}
    groups = groups if hasattr(params.get("cv"), "split") else {}
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=3), **params)
    model.fit(X, y, **groups)
    assert_same(said(from_skops(model), X), said(model, X))


SEVERAL = [
    IterativeRidge(cv=3, loo=True),
    TrajectoryHuberRegressor(solver="sgd", cv=3, max_iter=5),
    TrajectoryRegressor(penalty="scad", cv=3, max_iter=5),
    KernelEigenProRegressor("laplacian", cv=3),
    KernelEigenProClassifier(cv=3),
    TrajectoryLogisticRegression(cv=3, risk=True),
    make_pipeline(StandardScaler(), TrajectoryEarlyStoppingCV(TrajectoryLasso())),
]


@pytest.mark.parametrize("model", SEVERAL, ids=str)
def test_outputs_labels_and_other_settings(model):
    X, y = drawn("lasso")[1:3]
    if isinstance(model, IterativeRidge):
        y = np.stack([y, -y], axis=1)
    elif hasattr(model, "decision_function"):
        y = np.array(["low", "mid", "top"])[np.arange(90) % 3]
    model = clone(model).fit(X, y)
    assert_same(said(from_skops(model), X), said(model, X))


def test_precision_and_order():
    for container in CONTAINERS:
        model, X, y, _ = drawn("stopped", container)
        model.fit(X, y)
        assert_same(said(from_skops(model), X), said(model, X))
