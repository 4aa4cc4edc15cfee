"""Kernel machines with centres, against textbook formulas."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold

from skacv import KernelEigenProClassifier, KernelEigenProRegressor
from tests.internals import RADIAL_KERNELS, Features, KernelRidge, enough_centers
from tests.runs import fitted_attributes

GAMMA, N_CENTERS = 0.3, 12


def drawn(rng, n_rows=700, n_targets=1):
    X = rng.standard_normal((n_rows, 3))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(n_rows)
    return (X, y) if n_targets == 1 else (X, np.stack([y, X[:, 2] - y], axis=1))


def fitted(X, y, sample_weight=None, model=KernelEigenProRegressor, **params):
    settings = {
        "gamma": GAMMA,
        "n_centers": N_CENTERS,
        "solver": "gd",
        "max_iter": 20,
        "patience": None,
        "random_state": 0,
    }
    return model(**{**settings, **params}).fit(X, y, sample_weight)


def features_of(model, X):
    """k(X, C) k(C, C)^(-1/2)."""
    values, vectors = np.linalg.eigh(rbf_kernel(model.X_fit_, gamma=GAMMA))
    return rbf_kernel(X, model.X_fit_, gamma=GAMMA) @ (vectors / np.sqrt(values))


def predictions(model, X, y, weights, fitted_rows, rows):
    """Predictions for rows by gradient descent on the fitted rows, brute force.

    The step, and the weights of the rows, are those of the run on all rows.
    """
    Z = features_of(model, X)
    weights = weights / weights.sum() * fitted_rows
    mean, offset = (np.average(part, axis=0, weights=weights) for part in (Z, y))
    Z, coef, path = Z - mean, np.zeros(Z.shape[1]), []
    for _ in range(model.n_iter_ + 1):
        path.append(Z[rows] @ coef + offset)
        gradient = Z.T @ (weights * (Z @ coef + offset - y))
        coef = coef - model.step_size_ * gradient
    return np.array(path)


def all_but(n_rows, rows):
    kept = np.ones(n_rows)
    kept[rows] = 0
    return kept


# -------------------------------------------------------------- the run, and estimates


@pytest.mark.parametrize("weighted", [False, True])
def test_iterates_and_rows_left_out_are_those_of_brute_force(rng, weighted):
    X, y = drawn(rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    folds = list(KFold(3, shuffle=True, random_state=0).split(X))
    model = fitted(X, y, weights, loo=10, cv=folds)
    rows = np.arange(len(y))
    expected = predictions(model, X, y, weights, 1.0, rows)
    assert_allclose([*model.staged_predict(X)], expected, atol=1e-9)
    for k, row in enumerate(model.loo_indices_):
        others = all_but(len(y), row)
        expected = predictions(model, X, y, weights, others, [row])[:, 0]
        assert_allclose(model.loo_prediction_path_[:, k], expected, atol=1e-9)
    first = 0
    for k, (_, held_out) in enumerate(folds):
        others = all_but(len(y), held_out)
        expected = predictions(model, X, y, weights, others, held_out)
        path = model.cv_prediction_path_[:, first : first + len(held_out)]
        assert_allclose(path, expected, atol=1e-9)
        errors = np.average(
            (expected - y[held_out]) ** 2, axis=1, weights=weights[held_out]
        )
        assert_allclose(model.cv_fold_path_[:, k], errors, atol=1e-9)
        first += len(held_out)


def test_the_limit_is_nystroem_ridge(rng):
    X, y = drawn(rng)
    settings = {"solver": "auto", "max_iter": 3000, "fit_intercept": False}
    model = fitted(X, y, alpha=2.0, loo=False, **settings)
    C = model.X_fit_
    K, K_C = rbf_kernel(X, C, gamma=GAMMA), rbf_kernel(C, gamma=GAMMA)
    dual = np.linalg.solve(K.T @ K + 2.0 * K_C, K.T @ y)
    assert_allclose(model.predict(X), K @ dual, atol=1e-8)
    norm = np.sqrt(dual @ K_C @ dual)
    assert_allclose(model.rkhs_norm_path_[-1], norm, rtol=1e-6)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_moments_of_rows_give_what_the_rows_give(rng, monkeypatch, n_targets):
    X, y = drawn(rng, n_targets=n_targets)
    sample_weight = np.where(np.arange(len(y)) < 30, 0, rng.uniform(0.5, 2, len(y)))
    by_rows = fitted(X, y, sample_weight, loo=True, cv=3, solver="nesterov")

    def refused(features):
        raise AssertionError("features of all rows in memory")

    monkeypatch.setattr(Features, "array", refused)
    model = fitted(X, y, sample_weight, loo=40, cv=3, solver="nesterov")
    for name in fitted_attributes(by_rows):
        value = getattr(by_rows, name)
        if name.endswith("_path_") and not name.startswith("loo"):
            assert_allclose(np.asarray(getattr(model, name)), value, atol=1e-9)
    kept = np.searchsorted(by_rows.loo_indices_, model.loo_indices_)
    expected = by_rows.loo_prediction_path_[:, kept]
    assert_allclose(model.loo_prediction_path_, expected, atol=1e-9)
    assert_array_equal(model.loo_target_, y[model.loo_indices_])


def test_degrees_of_freedom_are_the_trace(rng):
    X, y = drawn(rng, n_rows=500)
    model = fitted(X, y, loo=20)
    Z = features_of(model, X)
    Z = Z - Z.mean(axis=0)
    shares = np.linalg.eigvalsh(Z.T @ Z) / len(y)
    shrunk = 1 - (1 - model.step_size_ * shares) ** model.n_iter_
    assert_allclose(model.df_path_[-1], 1 + shrunk.sum(), rtol=1e-8)


# -------------------------------------------------------------- many rows


def test_many_rows_have_centers_and_few_have_none(rng):
    X, y = drawn(rng, n_rows=3200)
    settings = {"n_centers": "auto", "solver": "auto", "max_iter": 3}
    model = fitted(X, y, **settings)
    assert model.X_fit_.shape == (500, 3)
    assert_array_equal(model.X_fit_, X[model.center_indices_])
    assert model.dual_coef_path_.shape == (4, 500)
    assert len(model.loo_indices_) == 3200
    few = fitted(X[:400], y[:400], **settings)
    assert few.X_fit_.shape == (400, 3)
    assert not hasattr(few, "center_indices_")
    every = fitted(X[:400], y[:400], n_centers=400, solver="auto", max_iter=3)
    assert_array_equal(every.loo_path_, few.loo_path_)
    sized = fitted(X, y, **settings | {"subsample_size": 300, "loo": False})
    assert sized.X_fit_.shape == (3200, 3)


def test_the_kernel_is_computed_once_by_a_fit_and_once_by_folds(rng):
    X, y = drawn(rng)
    n_entries = []

    def kernel(A, B):
        n_entries.append(A.shape[0] * B.shape[0])
        return rbf_kernel(A, B, gamma=GAMMA)

    fitted(X, y, kernel=kernel, gamma="auto", loo=False)
    # Between the centres: for features, and to check that it is a kernel.
    once = (len(y) + 2 * N_CENTERS) * N_CENTERS
    assert sum(n_entries) == once
    n_entries.clear()
    fitted(X, y, kernel=kernel, gamma="auto", loo=False, cv=5)
    assert sum(n_entries) == once + len(y) * N_CENTERS


@pytest.mark.slow
def test_an_error_no_worse_than_of_all_rows():
    X, y = make_friedman1(5000, noise=1.0, random_state=0)
    X, X_test, y, y_test = X[:3200], X[3200:], y[:3200], y[3200:]
    settings = {"standardize": True, "loo": False, "cv": 3, "random_state": 0}
    errors = [
        np.mean(
            (KernelEigenProRegressor(**params).fit(X, y).predict(X_test) - y_test) ** 2
        )
        for params in (settings, {**settings, "n_centers": None})
    ]
    assert errors[0] < errors[1]


def rough(rng, n_rows=2000):
    """Targets that few centres cannot follow."""
    X = rng.standard_normal((n_rows, 4))
    return X, np.sin(2 * X).sum(axis=1) + 0.3 * rng.standard_normal(n_rows)


def test_centers_are_as_many_as_lower_the_error(rng, set_limits):
    set_limits(FEWEST_CENTERS=50)
    X, y = rough(rng, 900)
    weights, order = rng.uniform(0.5, 2, 900), rng.permutation(900)

    def chosen(kernel, target, most):
        target = target[:, None]
        return enough_centers(kernel, X, target, weights, order, most)

    assert chosen(RADIAL_KERNELS["laplacian"](0.3), y, most=400)[0] == 400
    assert chosen(RADIAL_KERNELS["laplacian"](0.3), y, most=90) == (
        90,
        0,
    )  # none are tried
    smooth = X @ np.ones(4) + rng.standard_normal(900)
    assert chosen(RADIAL_KERNELS["rbf"](0.001), smooth, most=400) == (50, 0)
    assert chosen(RADIAL_KERNELS["rbf"](0.3), rng.standard_normal(900), most=400) == (
        50,
        0,
    )
    # What half of the last ones tried lose, by the rows left out of both.
    n_centers, gain = chosen(RADIAL_KERNELS["laplacian"](0.3), y, most=110)
    part, errors = order[:200], []
    for m in (25, 50):
        data = X[part], y[part, None], weights[part], np.arange(m)
        errors.append(KernelRidge.of(RADIAL_KERNELS["laplacian"](0.3), *data).loo_error)
    assert n_centers == 110
    assert_allclose(gain, errors[0] / errors[1] - 1, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:400 centres may be too few")
@pytest.mark.parametrize(
    ("kernel", "gamma"), [("laplacian", 0.3), ("matern", 0.7), ("rbf", 0.2)]
)
def test_more_rows_than_can_all_be_centers_are_no_worse(kernel, gamma, set_limits):
    rng = np.random.default_rng(1)
    (X, y), (X_test, y_test) = rough(rng, 600), rough(rng)
    settings = {"kernel": kernel, "gamma": gamma, "random_state": 0}

    def error(n_rows, **params):
        model = KernelEigenProRegressor(**settings, **params)
        model.fit(X[:n_rows], y[:n_rows])
        return np.mean((model.predict(X_test) - y_test) ** 2), model

    of_all_rows, _ = error(600, n_centers=None)
    set_limits(FEWEST_CENTERS=50, DOUBLE_ROWS=400)
    fewer_rows, _ = error(400)
    few_centers, _ = error(600, n_centers=50)
    found, model = error(600)
    assert found < fewer_rows
    assert found < 1.25 * of_all_rows
    assert few_centers > 1.5 * found
    assert len(model.dual_coef_) == 400


def test_too_few_centers_are_said(rng, set_limits):
    set_limits(FEWEST_CENTERS=50, DOUBLE_ROWS=200)
    X, y = rough(rng, 1200)
    model = KernelEigenProRegressor("laplacian", gamma=0.3, max_iter=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match="200 centres may be too few"):
        model.fit(X, y)
    smooth = X @ np.ones(4) + rng.standard_normal(1200)  # without a warning
    model.set_params(kernel="rbf", gamma=0.001).fit(X, smooth)
    assert len(model.dual_coef_) == 50


def test_pickles_have_the_centers_alone(rng):
    X, y = drawn(rng, n_rows=4000)
    model = fitted(X, y, loo=False)
    assert len(pickle.dumps(model.drop_record(intervals=False))) < 4000


# -------------------------------------------------------------- other kinds of data


def test_sparse_rows(rng):
    X, y = drawn(rng)
    X[np.abs(X) < 0.5] = 0
    dense, model = fitted(X, y), fitted(sparse.csr_matrix(X), y)
    assert sparse.issparse(model.X_fit_)
    assert_allclose(model.predict(sparse.csr_matrix(X)), dense.predict(X), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared_error", "log"])
@pytest.mark.parametrize("ends", [[0.0], [-0.5, 0.5]])
def test_classes(rng, loss, ends):
    X, y = drawn(rng)
    label = np.digitize(y, ends)
    settings = {"model": KernelEigenProClassifier, "loss": loss, "solver": "auto"}
    model = fitted(X, label, loo=False, cv=3, max_iter=60, **settings)
    assert model.score(X, label) > np.bincount(label).max() / len(y) + 0.1
    assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert model.dual_coef_.shape[0] == N_CENTERS
    norm = model.rkhs_norm_path_[-1]  # without the intercept
    K = rbf_kernel(model.X_fit_, gamma=GAMMA)
    dual = model.dual_coef_.reshape(N_CENTERS, -1)
    assert_allclose(norm, np.sqrt(np.sum(dual * (K @ dual))), rtol=1e-6)


def test_a_longer_run_continues(rng):
    X, y = drawn(rng)
    model = fitted(X, y, cv=3, warm_start=True, max_iter=8)
    model.set_params(max_iter=20).fit(X, y)
    expected = fitted(X, y, cv=3)
    for name in ("loo_path_", "cv_path_", "train_path_", "dual_coef_path_"):
        assert_array_equal(getattr(model, name), getattr(expected, name))


# -------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"solver": "eigenpro"}, "set n_centers=None"),
        ({"solver": "auto", "subsample_size": 20}, "set n_centers=None"),
        ({"kernel": "precomputed"}, "no rows that could be centres"),
        ({"loo": True, "memory_budget": 0.01}, "use fewer n_centers"),
        ({"n_centers": 0}, "n_centers"),
    ],
)
def test_errors_leave_the_model_as_it_was(rng, params, message):
    X, y = drawn(rng)
    model = fitted(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X, y)
    model.set_params(kernel="rbf", loo=False)
    assert_array_equal(model.predict(X), before)


def test_the_jackknife_needs_the_rows(rng):
    X, y = drawn(rng)
    model = fitted(X, y)
    with pytest.raises(ValueError, match="n_centers=None"):
        model.predict_interval(X, method="jackknife+")
    ends = model.predict_interval(X)
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.88
