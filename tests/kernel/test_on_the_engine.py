"""What kernel machines have in common with linear models: oracles of their own."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
)
from tests.internals import clip_probabilities, without_rows
from tests.kernel.brute_force import kernel_matrix

GAMMA = 0.2
EXACT = {"rtol": 0, "atol": 1e-8}


def drawn(rng, n_rows=40):
    X = rng.standard_normal((n_rows, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n_rows) + 5


def regressor(**params):
    settings = {"gamma": GAMMA, "patience": None, "random_state": 0, "max_iter": 15}
    return KernelEigenProRegressor(**{**settings, **params})


def classifier(**params):
    settings = {"gamma": GAMMA, "patience": None, "random_state": 0, "max_iter": 15}
    return KernelEigenProClassifier(loss="log", **{**settings, **params})


# ------------------------------------------------------------------- an intercept


@pytest.mark.parametrize("batch_size", ["full", 13])
@pytest.mark.parametrize("solver", ["eigenpro", "gd", "nesterov"])
def test_targets_far_from_zero(solver, batch_size, rng):
    X, y = drawn(rng)
    Z, shift = rng.standard_normal((10, 4)), 1e6 * y.std()
    near = regressor(solver=solver, batch_size=batch_size).fit(X, y)
    far = regressor(solver=solver, batch_size=batch_size).fit(X, y + shift)
    moved = far.predict(Z) - shift
    assert np.abs(moved - near.predict(Z)).max() < 1e-6 * shift
    np.testing.assert_allclose(moved, near.predict(Z), atol=1e-8 * shift)
    np.testing.assert_allclose(far.loo_path_, near.loo_path_, rtol=1e-4)


def test_an_intercept_is_that_of_centred_kernels(rng):
    """Predictions are those of the run on (I - 11'/n) K (I - 11'/n)."""
    X, y = drawn(rng)
    model = regressor(solver="gd").fit(X, y)
    n = len(y)
    H = np.eye(n) - 1 / n
    K = H @ kernel_matrix("rbf", X, X, GAMMA) @ H
    assert model.step_size_ == pytest.approx(n / np.linalg.eigvalsh(K)[-1], rel=1e-6)
    a, centred = np.zeros(n), y - y.mean()
    for found in model.staged_predict(X):
        np.testing.assert_allclose(found, K @ a + y.mean(), **EXACT)
        a = a - model.step_size_ / n * (K @ a - centred)


def test_the_mean_is_the_first_iterate(rng):
    X, y = drawn(rng)
    model = regressor().fit(X, y)
    np.testing.assert_allclose(model.at_iteration(0).predict(X), y.mean())
    weights = rng.uniform(0.5, 2, len(y))
    model.fit(X, y, sample_weight=weights)
    mean = np.average(y, weights=weights)
    np.testing.assert_allclose(model.at_iteration(0).predict(X), mean)


# -------------------------------------------------- penalties, weights, warm starts


def weighted_kernel_ridge(X, y, Z, alpha, weights):
    """With an intercept that is not penalised, by its normal equations."""
    K, n = kernel_matrix("rbf", X, X, GAMMA), len(y)
    matrix = np.zeros((n + 1, n + 1))
    matrix[:n, :n] = K + alpha * np.diag(1 / weights)
    matrix[:n, n] = 1
    matrix[n, :n] = 1
    found = np.linalg.solve(matrix, np.append(y, 0))
    return kernel_matrix("rbf", Z, X, GAMMA) @ found[:n] + found[n]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("solver", ["eigenpro", "gd", "nesterov"])
def test_with_a_penalty_the_limit_is_kernel_ridge(solver, weighted, rng):
    X, y = drawn(rng)
    Z = rng.standard_normal((10, 4))
    weights = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    model = regressor(solver=solver, alpha=2.0, max_iter=4000, store_every=4000)
    model.set_params(loo=False).fit(X, y, sample_weight=weights)
    expected = weighted_kernel_ridge(X, y, Z, 2.0, weights)
    np.testing.assert_allclose(model.predict(Z), expected, atol=1e-6)
    model.set_params(fit_intercept=False).fit(X, y)
    ridge = KernelRidge(alpha=2.0, kernel="rbf", gamma=GAMMA).fit(X, y)
    np.testing.assert_allclose(model.predict(Z), ridge.predict(Z), atol=1e-6)


def test_a_path_of_alphas_is_one_run(rng):
    X, y = drawn(rng)
    model = regressor(alpha=[10.0, 1.0], solver="nesterov", max_iter=8).fit(X, y)
    np.testing.assert_allclose(model.alpha_path_, [10.0] * 9 + [1.0] * 8)
    path = regressor(alpha="path", solver="gd", max_iter=3).fit(X, y)
    assert len(set(path.alpha_path_.round(12))) == 10
    stopped = TrajectoryEarlyStoppingCV(path).fit(X, y)
    assert stopped.best_params_["alpha"] == path.alpha_path_[stopped.best_iter_]


def test_weights_and_repetitions(rng):
    """A weight of two is a row that is there twice; of zero, one that is not."""
    X, y = drawn(rng)
    weights = rng.integers(0, 3, len(y)).astype(float)
    model = regressor(solver="gd", alpha=1.0, loo=False)
    weighted = model.fit(X, y, sample_weight=weights).predict(X)
    repeated = np.repeat(np.arange(len(y)), weights.astype(int))
    again = clone(model).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(weighted, again.predict(X), atol=1e-8)
    assert len(model.dual_coef_) == len(y)
    assert not model.dual_coef_[weights == 0].any()


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"batch_size": 13},
        {"batch_size": 13, "cv": 3},
        {"solver": "nesterov", "alpha": 1.0},
    ],
    ids=str,
)
def test_a_warm_start_goes_on_with_the_run(params, rng):
    X, y = drawn(rng)
    whole = regressor(**params).fit(X, y)
    parts = regressor(warm_start=True, max_iter=6, **params).fit(X, y)
    assert parts.n_iter_ == 6
    parts.set_params(max_iter=15).fit(X, y)
    for name in ("dual_coef_path_", "intercept_path_", "loo_path_", "train_path_"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    with pytest.warns(UserWarning, match="other data"):
        parts.fit(X, y + 1)
    assert parts.n_iter_ == 15


# --------------------------------------------------------------- rows left out


def run_without(X, y, weights, model, loss_slope, n_iterates, intercept):
    """Predictions for all rows, by a run whose weights are zero on some; written out.

    ``weights`` are those of the run, which are not brought back to a sum of one.
    """
    n, K = len(y), kernel_matrix("rbf", X, X, GAMMA)
    mean = 0.0
    if intercept == "centred":
        share = weights / weights.sum()
        centre = np.eye(n) - np.outer(np.ones(n), share)
        K, mean = centre @ K @ centre.T, share @ y
    target, alpha = y - mean, model.alpha / n
    a, earlier, b, b_earlier, s = np.zeros(n), np.zeros(n), 0.0, 0.0, 1.0
    for t in range(n_iterates):
        yield K @ a + b + mean
        momentum = 0.0
        if model.solver == "nesterov" and t:
            following = (1 + np.sqrt(1 + 4 * s * s)) / 2
            momentum, s = (s - 1) / following, following
        point, b_point = a + momentum * (a - earlier), b + momentum * (b - b_earlier)
        slope = weights * loss_slope(target, K @ point + b_point)
        earlier, a = a, point - model.step_size_ * (slope + alpha * point)
        moved = model.step_size_ * slope.sum() if intercept == "constant" else 0.0
        b_earlier, b = b, b_point - moved


@pytest.mark.parametrize("alpha", [0.0, 1.5])
@pytest.mark.parametrize("solver", ["gd", "nesterov"])
def test_rows_and_folds_left_out_of_squared_errors(solver, alpha, rng):
    X, y = drawn(rng)
    n, folds = len(y), KFold(4)
    model = regressor(solver=solver, alpha=alpha, loo=True, cv=folds).fit(X, y)

    def without(rows):
        weights = np.full(n, 1 / n)
        weights[rows] = 0
        runs = run_without(X, y, weights, model, lambda y, z: z - y, 16, "centred")
        return np.array(list(runs))[:, rows]

    expected = np.concatenate([without([i]) for i in range(n)], axis=1)
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)
    parts = [without(judged) for _, judged in folds.split(X)]
    found = np.hstack(model.cv_indices_)
    expected = np.concatenate(parts, axis=1)
    order = np.argsort(found)
    np.testing.assert_allclose(model.cv_prediction_path_[:, order], expected, **EXACT)


@pytest.mark.parametrize("solver", ["gd", "nesterov"])
def test_rows_left_out_of_log_losses(solver, rng):
    X, y = drawn(rng, 30)
    label = (y > 5).astype(float)
    model = classifier(solver=solver, alpha=1.0, loo=True).fit(X, label)
    for i in range(30):
        weights = np.full(30, 1 / 30)
        weights[i] = 0
        slope = lambda y, z: expit(z) - y  # noqa: E731
        runs = run_without(X, label, weights, model, slope, 16, "constant")
        expected = [predictions[i] for predictions in runs]
        np.testing.assert_allclose(model.loo_prediction_path_[:, i], expected, **EXACT)


@pytest.mark.parametrize("solver", ["gd", "nesterov", "eigenpro"])
@pytest.mark.parametrize("weighted", [False, True])
def test_jackknife_plus_with_an_intercept(weighted, solver, rng):
    """Residuals of the coefficients without a row are the held-out residuals."""
    X, y = drawn(rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    model = regressor(solver=solver, loo=True).fit(X, y, sample_weight=weights)
    (found,) = without_rows(model.at_iteration(9))
    K = kernel_matrix("rbf", X, X, GAMMA)
    dual, intercept = found
    rows = model.loo_indices_
    predictions = np.einsum("ij,ij->i", K[rows], dual) + intercept
    np.testing.assert_allclose(predictions, model.loo_prediction_path_[9], **EXACT)
    assert model.predict_interval(X[:3]).shape == (3, 2)


# ------------------------------------------------------------------- the log loss


def test_kernel_logistic_regression_is_that_of_a_converged_solver(rng):
    X, y = drawn(rng)
    label, Z = (y > 5).astype(float), rng.standard_normal((10, 4))
    K = kernel_matrix("rbf", X, X, GAMMA)

    def objective(parameters):
        a, b = parameters[:-1], parameters[-1]
        z = K @ a + b
        slope = expit(z) - label
        value = np.sum(np.logaddexp(0, z) - label * z) + 0.5 * a @ K @ a
        return value, np.append(K @ (slope + a), slope.sum())

    solved = minimize(
        objective,
        np.zeros(len(y) + 1),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 1e-16, "gtol": 1e-12, "maxiter": 20_000, "maxcor": 50},
    ).x
    expected = kernel_matrix("rbf", Z, X, GAMMA) @ solved[:-1] + solved[-1]
    model = classifier(alpha=1.0, max_iter=20_000, loo=False, store_every=20_000)
    model.set_params(solver="nesterov").fit(X, label)
    np.testing.assert_allclose(model.decision_function(Z), expected, atol=1e-6)
    probability = model.predict_proba(Z)
    np.testing.assert_allclose(probability[:, 1], expit(expected), atol=1e-6)
    np.testing.assert_allclose(model.predict_log_proba(Z), np.log(probability))


def test_kernel_logistic_regression_of_several_classes(rng):
    X, y = drawn(rng)
    label = np.digitize(y, [4.5, 5.5])
    model = classifier(alpha=0.5, max_iter=60, cv=4, loo=False).fit(X, label)
    scores = model.decision_function(X)
    loss = -log_softmax(scores, axis=1)[np.arange(len(y)), label].mean()
    assert model.train_path_[-1] == pytest.approx(loss)
    assert model.cv_path_.min() < model.cv_path_[0]
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_held_out_rows_probabilities_are_the_codes_estimated(n_classes, rng):
    """Shares of the decisions that are not negative; all alike where all are."""
    X, y = drawn(rng)
    label = np.digitize(y, [5.0] if n_classes == 2 else [4.5, 5.5])
    model = classifier(max_iter=30, loo=False).set_params(loss="squared_error")
    model.fit(X, label)
    assert model.probability_scale_ is None
    found, decisions = model.predict_proba(X), model.decision_function(X)
    assert found.shape == (len(y), n_classes)
    for probability, decision in zip(found, decisions):
        if n_classes == 2:
            expected = np.clip([(1 - decision) / 2, (1 + decision) / 2], 0, 1)
        else:
            expected = np.maximum(decision, 0)
            expected = expected / expected.sum()
        np.testing.assert_allclose(probability, expected, atol=1e-12)
    np.testing.assert_array_equal(found.argmax(axis=1), model.predict(X))
    np.testing.assert_allclose(clip_probabilities(np.full((1, 3), -1.0)), 1 / 3)


def test_in_a_pipeline_the_log_loss_stops_itself():
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400] == 8
    model = KernelEigenProClassifier(loss="log", cv=4, loo=False, random_state=0)
    model = make_pipeline(StandardScaler(), TrajectoryEarlyStoppingCV(model))
    model.fit(X, y)
    assert model[-1].criterion_ == "cv"
    assert 0 < model[-1].best_iter_
    assert model.score(X, y) > 0.95
