"""Leave-one-out and folds along the run: by definition, gradients not taken."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import KFold

from skacv import KernelEigenProClassifier, KernelEigenProRegressor
from skacv.optim.fits import WeightedFits, Weights
from skacv.optim.run import LiveRun, SideRuns
from skacv.optim.updates import Iterate
from skacv.risk.left_out.rademacher_targets import ResidualRecursion
from tests.cases import covering
from tests.kernel.brute_force import dual_path, kernel_matrix, left_out
from tests.runs import run_of

EXACT = {"rtol": 0, "atol": 1e-8}


def drawn(rng, n_rows=60, n_targets=None, n_features=4):
    X = rng.standard_normal((n_rows, n_features))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n_rows)
    if n_targets:
        y = y[:, None] + rng.standard_normal((n_rows, n_targets))
    return X, y


def model_of(**params):
    settings = {"max_iter": 15, "patience": None, "random_state": 0}
    settings["fit_intercept"] = False
    return KernelEigenProRegressor(**{**settings, **params})


@covering(
    kernel=["rbf", "laplacian", "polynomial"],
    n_components=[0, 7],
    n_targets=[None, 2],
)
def test_leave_one_out_is_exact_in_full_batch(kernel, n_components, n_targets, rng):
    X, y = drawn(rng, n_targets=n_targets)
    model = model_of(kernel=kernel, n_components=n_components).fit(X, y)
    K, target = kernel_matrix(kernel, X, X, model.gamma_), y.reshape(len(y), -1)
    rows = model.loo_indices_
    outside = np.setdiff1d(np.arange(len(y)), model.subsample_indices_)
    np.testing.assert_array_equal(rows, outside)
    expected = left_out(K, target, model, 15, rows)
    shape = model.loo_prediction_path_.shape
    np.testing.assert_allclose(
        model.loo_prediction_path_, expected.reshape(shape), **EXACT
    )
    costs = np.mean((expected - target[rows]) ** 2, axis=2)
    np.testing.assert_allclose(model.loo_path_, costs.mean(axis=1), **EXACT)
    spread = costs.std(axis=1, ddof=1) / np.sqrt(len(rows))
    np.testing.assert_allclose(model.loo_se_path_, spread, **EXACT)
    np.testing.assert_array_equal(model.loo_target_, y[rows])


def test_leave_one_out_is_that_of_refits(rng):
    """Without a preconditioner: the step times the rows is kept, as a refit may."""
    X, y = drawn(rng, n_rows=25)
    model = model_of(n_components=0, gamma=0.2).fit(X, y)
    n = len(y)
    refit = clone(model).set_params(step_size=model.step_size_ * (n - 1) / n, loo=False)
    for i in range(n):
        kept = np.arange(n) != i
        staged = refit.fit(X[kept], y[kept]).staged_predict(X[[i]])
        expected = np.concatenate(list(staged))
        np.testing.assert_allclose(model.loo_prediction_path_[:, i], expected, **EXACT)


@pytest.mark.parametrize("n_components", [0, 7])
@pytest.mark.parametrize("batch_size", ["full", 13])
def test_some_rows_left_out_one_by_one(batch_size, n_components, rng):
    X, y = drawn(rng)
    model = model_of(loo=6, batch_size=batch_size, n_components=n_components)
    model.fit(X, y)
    K = kernel_matrix("rbf", X, X, model.gamma_)
    assert len(model.loo_indices_) == 6
    expected = left_out(K, y[:, None], model, 15, model.loo_indices_)[:, :, 0]
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)


@covering(
    iteration=[0, 9],
    n_components=[0, 7],
    batch_size=["full", 13],
    n_targets=[None, 2],
)
def test_jackknife_plus_by_definition(
    iteration, n_components, batch_size, n_targets, rng
):
    X, y = drawn(rng, n_targets=n_targets)
    Z = rng.standard_normal((4, 4))
    model = model_of(loo=20, n_components=n_components, batch_size=batch_size)
    model = model.fit(X, y).at_iteration(iteration)
    found = model.predict_interval(Z, coverage=0.8)
    K = kernel_matrix("rbf", X, X, model.gamma_)
    rows = model.loo_indices_
    others = np.arange(len(y))[:, None] != rows
    for k, target in enumerate(y.reshape(len(y), -1).T):
        copies = np.repeat(target[:, None], 20, axis=1)
        dual_coef = dual_path(K, copies, model, iteration, others)[-1]
        width = np.abs(np.sum(K[:, rows] * dual_coef, axis=0) - target[rows])
        predictions = kernel_matrix("rbf", Z, X, model.gamma_) @ dual_coef
        # Of 20 rows: the 4th smallest to the 17th, ceil(0.8 (20 + 1)).
        low = np.sort(predictions - width, axis=1)[:, 3]
        high = np.sort(predictions + width, axis=1)[:, 16]
        own = found if n_targets is None else found[:, k]
        np.testing.assert_allclose(own, np.stack([low, high], axis=1), **EXACT)


class EveryRow(SideRuns):
    """Every row by itself is a label, so that self-influences are exact."""

    def __init__(self, target):
        n_rows = len(target)
        self.target = np.concatenate([target, -np.eye(n_rows)], axis=1)[:, None, :]
        self.held_out, self.found = ResidualRecursion(n_rows), []

    def fits(self, problem, keeps_predictors):
        n_fits = self.target.shape[2]
        weights = np.repeat(problem.row_weights, n_fits, axis=1)
        return WeightedFits(problem, Weights(weights), self.target)

    def start(self, fits, coef):
        return Iterate(np.zeros(self.target.shape), np.zeros(self.target.shape))

    of_problem = np.s_[:, 0, :1]

    def take(self, states):
        for state in states:
            self._take(state)

    def _take(self, state):
        visited, ended = (
            (predictor - self.target)[:, 0]
            for predictor in (state.visited, state.current.predictor)
        )
        influences = np.diagonal(visited[:, 1:]), np.diagonal(ended[:, 1:])
        own = visited[:, :1], ended[:, :1]
        self.found.append(self.held_out.after_pass(*own, *influences))


@pytest.mark.parametrize("n_components", [0, 7])
def test_recursion_holds_at_the_grain_of_epochs(n_components, rng):
    """With batches, given each row's own self-influence: exact, for every row."""
    X, y = drawn(rng, n_rows=30)
    model = model_of(gamma=0.2, n_components=n_components, subsample_size=10)
    finished = run_of(model.set_params(batch_size=8, loo=False, max_iter=8), X, y)
    data, plan = finished.data, finished.trajectory.phases
    side_runs = EveryRow(data.problem.target)
    live = LiveRun(data.problem, plan, np.zeros((1, 30, 1)), side_runs=side_runs)
    live.go_on(plan)
    K = kernel_matrix("rbf", X, X, 0.2)
    expected = left_out(K, y[:, None], model, 8, data.rows)
    for t, found in enumerate(side_runs.found, 1):
        np.testing.assert_allclose(found + data.problem.target, expected[t], **EXACT)


@pytest.mark.slow
@covering(n_features=[4, 20], batch_size=["full", 50], n_components=[0, 2, 8])
def test_random_labels_are_off_by_their_standard_error(
    n_features, batch_size, n_components, rng
):
    # A budget in which the kernel matrix is not kept, and a gamma that is near the one
    # these data choose: its search would take longer than the rest.
    model = model_of(batch_size=batch_size, n_components=n_components, max_iter=8)
    model.set_params(memory_budget=0.1, gamma=4 / n_features**2)
    n_draws, share = 48, []
    for seed in range(n_draws):
        X, y = drawn(rng, n_rows=240, n_features=n_features)
        model.set_params(random_state=seed).fit(X, y)
        K, rows = kernel_matrix("rbf", X, X, model.gamma_), model.loo_indices_
        expected = left_out(K, y[:, None], model, 8, rows)[:, :, 0]
        errors = model.loo_path_ - np.mean((expected - y[rows]) ** 2, axis=1)
        assert abs(errors[0]) <= 1e-10
        # The claimed one has the seven degrees of freedom of eight groups of labels.
        ratio = errors[[1, 3, 8]] / model.loo_mc_se_path_[[1, 3, 8]]
        share.append(stats.t(7).cdf(ratio))
    # Uniform, were the ratios from that distribution: their mean tells a bias, and how
    # far they are from a half tells errors of another size. To four standard errors.
    off = 4 / np.sqrt(12 * n_draws)
    assert np.abs(np.mean(share, axis=0) - 0.5).max() <= off
    assert np.abs(np.mean(np.abs(2 * np.array(share) - 1), axis=0) - 0.5).max() <= off


@pytest.mark.slow
def test_random_labels_of_rows_that_the_run_soon_fits(rng):
    """Small batches, many features: labels soon tell memories of rows no more."""
    off, claimed = [], []
    for _ in range(3):
        X = rng.standard_normal((800, 50))
        Z = X @ rng.standard_normal((50, 3)) / np.sqrt(50)
        y = np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 2] + 0.3 * rng.standard_normal(800)
        probed = model_of(batch_size=60, max_iter=20, gamma=0.02).fit(X, y)
        # Rows in runs of their own, which other tests hold to the definition.
        exact = model_of(batch_size=60, max_iter=20, gamma=0.02, loo=800).fit(X, y)
        np.testing.assert_array_equal(probed.loo_indices_, exact.loo_indices_)
        assert probed.train_path_[5] < 0.1 * probed.train_path_[0]
        off.append(probed.loo_path_[1:] / exact.loo_path_[1:] - 1)
        claimed.append(probed.loo_mc_se_path_[1:] / exact.loo_path_[1:])
    ratio = np.sum(off, axis=0) / np.sqrt(np.sum(np.square(claimed), axis=0))
    # With one memory for all rows that labels do not resolve: above 10.
    assert np.abs(ratio).max() <= stats.t(3 * 7).ppf(1 - 1e-5)


def test_rows_of_the_subsample_would_mislead(rng):
    """Why they are left out of the average (pitfall 1)."""
    X, y = drawn(rng, n_rows=200)
    Z, z = drawn(rng, n_rows=2000)
    model = model_of(kernel="laplacian", subsample_size=66, n_components=30).fit(X, y)
    K = kernel_matrix("laplacian", X, X, model.gamma_)
    seen = model.subsample_indices_
    within = left_out(K, y[:, None], model, 15, seen)[-1, :, 0]
    test = np.mean((model.predict(Z) - z) ** 2)
    outside = model.loo_path_[-1]
    assert abs(outside - test) < abs(np.mean((within - y[seen]) ** 2) - test)


@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("batch_size", ["full", 13])
@pytest.mark.parametrize("n_components", [0, 7])
def test_folds_are_exact(n_components, batch_size, n_targets, rng):
    X, y = drawn(rng, n_targets=n_targets)
    folds = KFold(3, shuffle=True, random_state=0)
    model = model_of(
        cv=folds, loo=False, n_components=n_components, batch_size=batch_size
    )
    model.fit(X, y)
    K, target = kernel_matrix("rbf", X, X, model.gamma_), y.reshape(len(y), -1)
    first, paths = 0, []
    for (fitted, judged), found in zip(folds.split(X), model.cv_indices_):
        outside = np.setdiff1d(judged, model.subsample_indices_)
        np.testing.assert_array_equal(np.sort(found), outside)
        sees = np.isin(np.arange(len(y)), fitted)
        path = dual_path(K, target, model, 15, sees)
        expected = K[found] @ path
        part = model.cv_prediction_path_[:, first : first + len(found)]
        np.testing.assert_allclose(part, expected.reshape(part.shape), **EXACT)
        paths.append(np.mean((expected - target[found]) ** 2, axis=(1, 2)))
        first += len(found)
    np.testing.assert_allclose(model.cv_fold_path_, np.array(paths).T, **EXACT)
    sizes = [len(found) for found in model.cv_indices_]
    mean = np.average(paths, axis=0, weights=sizes)
    np.testing.assert_allclose(model.cv_path_, mean, **EXACT)


def test_degrees_of_freedom(rng):
    X, y = drawn(rng, n_rows=40)
    model = model_of(gamma=0.2).fit(X, y)
    unit = model_of(gamma=0.2, loo=False).fit(X, np.eye(40))
    traces = [np.trace(p) for p in unit.staged_predict(X)]
    np.testing.assert_allclose(model.df_path_, traces, atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_share_the_run(n_classes, rng):
    X, _ = drawn(rng)
    label = np.digitize(X[:, 0], [0, 0.7][: n_classes - 1])
    classifier = KernelEigenProClassifier(
        max_iter=15, patience=None, random_state=0, fit_intercept=False
    )
    classifier.fit(X, np.array(list("abc"))[label])
    codes = np.eye(n_classes)[label] if n_classes > 2 else 2.0 * label - 1
    regressor = model_of().fit(X, codes)
    for path in ("loo_path_", "loo_prediction_path_", "train_path_", "df_path_"):
        found = getattr(classifier, path)
        np.testing.assert_allclose(found, getattr(regressor, path), **EXACT)
    decisions = regressor.loo_prediction_path_
    chosen = (decisions > 0) if n_classes == 2 else decisions.argmax(axis=2)
    errors = np.mean(chosen != label[regressor.loo_indices_], axis=1)
    np.testing.assert_allclose(classifier.loo_error_path_, errors)
    assert list(classifier.classes_) == list("abc")[:n_classes]


def test_folds_with_few_rows_are_judged_by_those_the_preconditioner_has_not_seen(rng):
    X = rng.standard_normal((35, 3))
    model = KernelEigenProRegressor(n_components=2, cv=10, loo=False, random_state=0)
    model.fit(X, X[:, 0] + rng.standard_normal(35))
    judged = np.concatenate(model.cv_indices_)
    unseen = np.setdiff1d(np.arange(35), model.subsample_indices_)
    np.testing.assert_array_equal(np.sort(judged), unseen)
    assert 0 < len(unseen) < 35
    automatic = KernelEigenProRegressor(cv=10, loo=False, random_state=0).fit(
        X, X[:, 0]
    )
    assert sum(map(len, automatic.cv_indices_)) == 35
