"""The gamma that kernel machines choose by themselves."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold

from benchmarks.real_data import CLASSIFICATION, REGRESSION, halves
from skacv import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
)
from skacv.kernel import scales
from tests.internals import halve_runs, scale_gamma, solver_on, squared_distances
from tests.runs import fitted_attributes


@pytest.fixture
def data(rng):
    X = rng.standard_normal((120, 3))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(120)


FOLDS = list(KFold(4, shuffle=True, random_state=3).split(np.arange(120)))


def test_it_is_the_best_of_plain_runs_by_the_same_folds(data, set_globals):
    # All scales go all the way.
    set_globals(halve_runs=partial(halve_runs, n_updates=200))
    model = KernelEigenProRegressor(cv=FOLDS, random_state=0).fit(*data)
    own = scale_gamma("rbf", data[0], np.ones(len(data[0])))
    np.testing.assert_allclose(model.gammas_, own * np.array(scales.FACTORS))
    plain = [
        KernelEigenProRegressor(gamma=gamma, loo=False, cv=FOLDS).fit(*data)
        for gamma in model.gammas_
    ]
    expected = [run.cv_path_.min() for run in plain]
    np.testing.assert_allclose(model.gamma_scores_, expected, rtol=1e-9)
    assert model.gamma_ == model.gammas_[np.argmin(expected)]


def test_paths_are_those_of_the_chosen_run(data):
    X, y = data
    weights = np.random.default_rng(1).uniform(0, 2, len(y)) * (np.arange(len(y)) % 7)
    model = KernelEigenProRegressor(random_state=0)
    model.fit(X, y, sample_weight=weights)
    told = clone(model).set_params(gamma=model.gamma_)
    told.fit(X, y, sample_weight=weights)
    for name in ("loo_path_", "dual_coef_path_", "train_path_", "iteration_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(told, name))
    assert not hasattr(told, "gammas_")


@pytest.mark.parametrize(
    ("model", "labels"),
    [
        (KernelEigenProRegressor(), lambda y: np.c_[y, -(y**2)]),
        (KernelEigenProRegressor("laplacian"), lambda y: y),
        (KernelEigenProRegressor("polynomial", degree=2), lambda y: y),
        (KernelEigenProRegressor(alpha=[1.0, 0.1]), lambda y: y),
        (KernelEigenProClassifier(), lambda y: np.digitize(y, [-1, 1])),
        (KernelEigenProClassifier(class_weight="balanced"), lambda y: y > 1),
        (KernelEigenProClassifier(loss="log", loo=False, cv=3), lambda y: y > 0),
    ],
    ids=lambda value: getattr(value, "kernel", ""),
)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
def test_of_every_kind_of_machine(model, labels, container, data):
    X, y = data
    fitted = clone(model).set_params(random_state=0).fit(container(X), labels(y))
    assert np.isfinite(fitted.gamma_scores_).all()
    assert fitted.gamma_ in fitted.gammas_
    power = 0.5 if model.kernel == "laplacian" else 1
    ratios = np.array(scales.FACTORS) ** power
    np.testing.assert_allclose(fitted.gammas_ / fitted.gammas_[0], ratios / ratios[0])


@pytest.mark.parametrize("kernel", [lambda X, Z: X @ Z.T, "precomputed"])
def test_kernels_without_a_gamma_have_none(kernel, data):
    X, y = data
    matrix = X @ X.T if kernel == "precomputed" else X
    model = KernelEigenProRegressor(kernel, random_state=0).fit(matrix, y)
    assert not {"gamma_", "gammas_", "gamma_scores_"} & set(fitted_attributes(model))


def test_scales_share_their_distances(data, set_globals):
    X, y = data
    computed = []

    def counted(X, Z):
        computed.append(X.shape[0] * Z.shape[0])
        return squared_distances(X, Z)

    set_globals(squared_distances=counted)
    KernelEigenProRegressor(random_state=0).fit(X, y)
    assert sum(computed) <= 2 * len(X) ** 2  # of all scales, and of the run
    computed.clear()
    grid = {"alpha": [0.0, 0.1, 1.0]}
    TrajectoryEarlyStoppingCV(KernelEigenProRegressor(), param_grid=grid).fit(X, y)
    assert sum(computed) <= len(X) ** 2


def test_a_longer_run_keeps_its_gamma(data):
    short, long = (
        KernelEigenProRegressor(
            max_iter=t, patience=None, warm_start=True, random_state=0
        ).fit(*data)
        for t in (2, 60)
    )
    short.set_params(max_iter=60).fit(*data)
    assert short.gamma_ == long.gamma_
    np.testing.assert_array_equal(short.gamma_scores_, long.gamma_scores_)
    np.testing.assert_array_equal(short.dual_coef_path_, long.dual_coef_path_)


def test_many_rows_are_judged_by_some_of_each_class_and_their_own_folds(
    data, set_limits
):
    X, _ = data
    label = np.zeros(120, int)
    label[77] = 1  # a class of one row, and few rows are drawn
    seen = []
    set_limits(MOST_ROWS=30, LEAST_ROWS=30)

    class Noted(KernelEigenProClassifier):
        def begin(self, X, y, *rest, **params):
            if "groups" not in params:  # a candidate
                seen.append((len(y), self.cv, np.unique(y)))
            return super().begin(X, y, *rest, **params)

    groups = np.arange(120) // 12
    Noted(random_state=0, cv=GroupKFold(5)).fit(X, label, groups=groups)
    assert len(seen) > 1
    for n_rows, folds, classes in seen:
        assert 30 <= n_rows <= 32
        np.testing.assert_array_equal(classes, [0, 1])
        judged = np.concatenate([judged for _, judged in folds])
        np.testing.assert_array_equal(np.sort(judged), np.arange(n_rows))
        assert all(not set(fitted) & set(judged) for fitted, judged in folds)


SETS = {**REGRESSION, **CLASSIFICATION}


@pytest.mark.parametrize("name", [*REGRESSION, "iris", "wine", "breast cancer"])
def test_never_worse_than_the_mean(name):
    X, y, X_test, y_test = halves(SETS[name], 0, stratified=name in CLASSIFICATION)
    if name in REGRESSION:
        model = KernelEigenProRegressor(random_state=0).fit(X, y)
        error = np.mean((model.predict(X_test) - y_test) ** 2)
        assert error <= np.mean((y_test - y.mean()) ** 2)
    else:
        model = KernelEigenProClassifier(random_state=0).fit(X, y)
        common = np.bincount(y).argmax()
        assert model.score(X_test, y_test) > np.mean(y_test == common)


def test_where_nothing_is_learned_the_start_is_kept(rng):
    # Twins on either side of the mean: what is learned from one misleads the other.
    X = np.repeat(rng.standard_normal((30, 5)), 2, axis=0)
    X, y = X + 0.3 * rng.standard_normal(X.shape), 7 + np.tile([1.0, -1.0], 30)
    model = KernelEigenProRegressor(gamma=0.1, random_state=0).fit(X, y)
    assert model.n_iter_ > model.iteration_ == model.loo_path_.argmin() == 0
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-12)
    last = clone(model).set_params(patience=None, max_iter=9).fit(X, y)
    assert last.iteration_ == 9
    assert np.ptp(last.predict(X)) > 0


@pytest.mark.parametrize(
    ("params", "n_rows", "expected"),
    [
        ({}, 100, "nesterov"),
        ({}, 3001, "nesterov"),
        ({"n_centers": None}, 3001, "eigenpro"),
        ({"n_centers": 10, "solver": "gd"}, 3001, "gd"),
        ({"subsample_size": 100}, 3001, "eigenpro"),
        ({"memory_budget": 0.1}, 100, "eigenpro"),
        ({"batch_size": 10}, 100, "eigenpro"),
        ({"n_components": 3}, 100, "eigenpro"),
        ({"solver": "gd"}, 100, "gd"),
    ],
)
def test_automatic_solver(params, n_rows, expected):
    assert solver_on(n_rows, KernelEigenProRegressor(**params)) == expected


@pytest.mark.parametrize("width", [1, 2])
def test_smooth_kernels_in_single_precision_are_stable(width, rng):
    X = rng.uniform(-1, 1, (3100, width))
    model = KernelEigenProRegressor(
        gamma=scale_gamma("rbf", X, np.ones(3100), 1 / 4),
        loo=False,
        max_iter=40,
        random_state=0,
    ).fit(X, np.sin(8 * X[:, 0]))
    # Passes in batches may go up by a little.
    least = np.minimum.accumulate(model.train_path_)
    assert (model.train_path_ <= 1.01 * least).all()


@pytest.mark.slow
def test_a_kernel_that_is_not_positive_to_rounding_is_warned_of(rng):
    """In one dimension kernels are of so low a rank that it does, sooner or later."""
    X = rng.uniform(-1, 1, (3100, 1))
    model = KernelEigenProRegressor(
        gamma=scale_gamma("rbf", X, np.ones(3100), 1 / 4),
        n_centers=None,
        loo=False,
        max_iter=250,
        random_state=0,
    )
    with pytest.warns(
        ConvergenceWarning, match="rounding in float32, the kernel is not"
    ):
        model.fit(X, np.sin(8 * X[:, 0]))
    assert model.train_path_[-1] > 2 * model.train_path_.min()
