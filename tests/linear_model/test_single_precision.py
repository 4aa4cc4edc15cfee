"""X in single precision: the run, and all that is read of it, are those of its values.

Sums over rows and columns are in double precision, for blocks of X.
"""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from tests.cases import covering

MODELS = {
    "gd": IterativeRidge(0.1, solver="gd", max_iter=8),
    "nesterov": IterativeRidge(0.1, solver="nesterov", max_iter=8),
    "heavy_ball": IterativeRidge(0.1, solver="heavy_ball", max_iter=8),
    "eigenpro": IterativeRidge(0.1, solver="eigenpro", max_iter=8),
    "newton": IterativeRidge("path", solver="newton", max_iter=1, risk=False),
    "ridge": IterativeRidge("path", max_iter=3),
    "lasso": TrajectoryLasso("path", max_iter=4),
    "elastic_net": TrajectoryElasticNet([0.3, 0.1], max_iter=4),
    "huber": TrajectoryHuberRegressor(max_iter=8),
    "poisson": TrajectoryPoissonRegressor(max_iter=8),
    "poisson_newton": TrajectoryPoissonRegressor(0.1, solver="newton", max_iter=4),
    "logistic": TrajectoryLogisticRegression(max_iter=8),
    "logistic_newton": TrajectoryLogisticRegression(solver="newton", max_iter=4),
    "classes": TrajectoryLogisticRegression(max_iter=8, risk=False),
    "l1": TrajectoryLogisticRegression("path", l1_ratio=1.0, max_iter=3),
    "sgd": TrajectoryLogisticRegression(solver="sgd", max_iter=4, loo=False),
    "svc": TrajectoryLinearSVC(max_iter=8, risk=False),
    "kernel": KernelEigenProRegressor(max_iter=5),
    "kernel_classes": KernelEigenProClassifier(max_iter=5),
}
PATHS = (
    "coef_path_",
    "dual_coef_path_",
    "intercept_path_",
    "train_path_",
    "risk_path_",
    "loo_path_",
    "cv_path_",
)


def data(shape, is_sparse, far, rng):
    """X in single precision, and a target."""
    X = rng.standard_normal(shape)
    y = X[:, 0] + 0.5 * rng.standard_normal(shape[0])
    X = X * (rng.random(shape) < 0.4) if is_sparse else X
    X = (X + far * rng.uniform(0.5, 1, shape[1])).astype(np.float32)
    return (sparse.csr_matrix(X) if is_sparse else X), y


def target_of(name, y, rng):
    if name.startswith("poisson"):
        return rng.poisson(np.exp(np.clip(y, -2, 2)))
    if name == "classes":
        return np.digitize(y, [-0.5, 0.5])
    return (y > 0).astype(int) if is_classifier(MODELS[name]) else y


@pytest.mark.filterwarnings("ignore")
@covering(
    name=list(MODELS),
    shape=[(60, 8), (30, 60)],
    kind=["near", "far", "sparse"],
    fit_intercept=[True, False],
    standardize=[False, True],
)
def test_same_as_in_double_precision(
    name, shape, kind, fit_intercept, standardize, rng
):
    """Paths, predictions and intervals, also where means are far above the spread."""
    X, y = data(shape, kind == "sparse", 1000 if kind == "far" else 0, rng)
    y, model = target_of(name, y, rng), clone(MODELS[name])
    model.set_params(fit_intercept=fit_intercept, standardize=standardize)
    model.set_params(cv=4, random_state=0)
    if "keep_data" in model.get_params():  # which intervals need
        model.set_params(keep_data=True)
    if model.loo == "auto":
        model.set_params(loo=True)
    single = clone(model).fit(X, y)
    double = clone(model).fit(X.astype(np.float64), y)
    found = {path for path in PATHS if hasattr(double, path)}
    assert len(found) >= 5 if name != "sgd" else 4
    for path in found:
        close(getattr(single, path), getattr(double, path), path)
    rows = X[:10]
    predict = "predict_proba" if hasattr(double, "predict_proba") else "predict"
    close(
        getattr(single, predict)(rows),
        getattr(double, predict)(rows.astype(np.float64)),
        predict,
    )
    if hasattr(double, "predict_interval") and not is_classifier(double):
        ends = double.predict_interval(rows.astype(np.float64), coverage=0.7)
        close(single.predict_interval(rows, coverage=0.7), ends, "predict_interval")


def close(found, expected, name):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, name
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=0)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * scale, err_msg=name)


@pytest.mark.parametrize("name", ["lasso", "newton", "logistic"])
def test_fitted_attributes_keep_the_precision_of_X(name, rng):
    X, y = data((40, 12), False, 0, rng)
    model = clone(MODELS[name]).set_params(cv=3).fit(X, target_of(name, y, rng))
    for attribute in ("coef_", "coef_path_", "intercept_", "cv_prediction_path_"):
        assert getattr(model, attribute).dtype == np.float32, attribute
    if not is_classifier(model):
        assert model.predict(X).dtype == np.float32


def test_exact_leave_one_out_of_newton_steps(rng):
    """Against ridge regression by NumPy, with more columns than rows."""
    X = rng.standard_normal((30, 60)).astype(np.float32)
    y = X[:, 0] + rng.standard_normal(30)
    model = IterativeRidge(0.5, solver="newton", max_iter=1, loo=True).fit(X, y)
    errors = []
    for i in range(30):
        rest = np.arange(30) != i
        Z, t = X[rest].astype(np.float64), y[rest]
        center, mean = Z.mean(axis=0), t.mean()
        Z = Z - center
        dual = np.linalg.solve(Z @ Z.T + 0.5 * np.eye(29), t - mean)
        errors.append((y[i] - mean - (X[i] - center) @ (Z.T @ dual)) ** 2)
    np.testing.assert_allclose(model.loo_path_[-1], np.mean(errors), rtol=1e-6)
