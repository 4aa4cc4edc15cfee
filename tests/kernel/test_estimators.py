"""The kernel estimators: stopping, what is kept, and bad input."""

import inspect
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from skacv import (
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
)
from tests.internals import squared_distances
from tests.runs import InParts, arrays_held_by, runs_in_memory


@pytest.fixture
def data(rng):
    X = rng.standard_normal((150, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.standard_normal(150)


def documented(model, section):
    """Entries of a section of the docstring: what is said, by what it is said of."""
    text = inspect.cleandoc(model.__doc__).split(f"{section}\n{'-' * len(section)}\n")[
        1
    ]
    text = re.split(r"\n\n[A-Z][A-Za-z ]+\n-+\n", text)[0]
    entries = re.split(r"^(?=\S)", text, flags=re.MULTILINE)
    return dict(entry.strip().split(" : ", 1) for entry in entries if entry)


def test_what_both_have_is_documented_in_the_same_words():
    models = KernelEigenProRegressor, KernelEigenProClassifier
    here, there = (documented(model, "Parameters") for model in models)
    for model, found in zip(models, (here, there)):
        assert list(found) == list(inspect.signature(model).parameters)
    differing = {name for name in here if here[name] != there.get(name)}
    assert differing == {"alpha", "fit_intercept"}
    assert there.keys() - here.keys() == {"loss", "class_weight"}


def state(model):
    return {key: value for key, value in vars(model).items() if key.endswith("_")}


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": -1.0}, "gamma"),
        ({"kernel": "sigmoid"}, "kernel"),
        ({"n_components": 20, "subsample_size": 20}, "n_components must be less"),
        ({"n_components": 50}, "n_components must be less"),
        ({"subsample_size": 150}, "subsample_size must be less"),
        ({"step_size": 1e4}, "diverge.*largest stable"),
        ({"kernel": "polynomial", "coef0": -3.0}, "negative eigenvalues"),
        ({"kernel": lambda X, Z: np.tanh(2 * X @ Z.T - 1)}, "negative eigenvalues"),
        ({"kernel": lambda X, Z: X @ Z.T + X[:, :1]}, "symmetric"),
        ({"kernel": lambda X, Z: np.ones(3)}, "must return an array of shape"),
        ({"kernel": "precomputed"}, "square"),
        ({"loo": 151}, "more than the 150 rows"),
        ({"cv": [(np.arange(1, 150), [0])], "subsample_size": 150}, "subsample"),
    ],
)
def test_bad_parameters_change_nothing(params, message, data):
    model = KernelEigenProRegressor(max_iter=5, random_state=0).fit(*data)
    former = state(model)
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(*data)
    assert state(model).keys() == former.keys()
    assert all(state(model)[key] is former[key] for key in former)


def test_precomputed_kernels_that_are_none(data):
    X, y = data
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = KernelEigenProRegressor("precomputed", max_iter=5)
    model.fit(K, y)
    crooked = K.copy()
    crooked[3, 5] += 0.1
    with pytest.raises(ValueError, match="symmetric"):
        model.fit(crooked, y)
    with pytest.raises(ValueError, match="negative eigenvalues"):
        model.fit(K - 0.5 * np.eye(len(K)), y)
    with pytest.raises(ValueError, match="150 features"):
        model.predict(K[:, :10])


@pytest.mark.parametrize("model", [KernelEigenProRegressor, KernelEigenProClassifier])
def test_precomputed_kernels_are_dense(model):
    with pytest.raises(TypeError, match="dense data is required"):
        model("precomputed").fit(sparse.eye(6, format="csr"), [0, 1] * 3)


def test_a_refit_leaves_nothing_of_the_former_fit(data):
    X, y = data
    model = KernelEigenProRegressor(max_iter=5).fit(X, y)
    model.set_params(kernel="precomputed").fit(X @ X.T, y)
    fresh = clone(model).fit(X @ X.T, y)
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_allclose(model.predict(X @ X.T), fresh.predict(X @ X.T))


def test_one_class_only(data):
    with pytest.raises(ValueError, match="only one class"):
        KernelEigenProClassifier().fit(data[0], np.ones(150))


def test_run_ends_itself_where_the_risk_has_stopped_falling(data):
    # So narrow a kernel that noise is fitted early, and beyond doubt.
    model = KernelEigenProRegressor(gamma=1.0, n_components=8, random_state=0)
    best = model.fit(*data).loo_path_.argmin()
    assert 0 < best < model.n_iter_ < 100
    assert model.n_iter_ >= best + model.patience
    longer = clone(model).set_params(patience=None, max_iter=100).fit(*data)
    assert longer.n_iter_ == 100
    assert longer.loo_path_.argmin() == best
    shared = model.n_iter_ + 1
    np.testing.assert_allclose(longer.loo_path_[:shared], model.loo_path_, rtol=1e-12)
    assert KernelEigenProRegressor(loo=False, max_iter=33).fit(*data).n_iter_ == 33
    folds = clone(model).set_params(loo=False, cv=5).fit(*data)
    assert folds.cv_path_.argmin() < folds.n_iter_ < 100


@pytest.mark.parametrize("judged_by", [{"loo": True}, {"loo": False, "cv": 3}])
@pytest.mark.parametrize("batch_size", [8, "full"])
def test_run_ends_where_its_phases_settle_before_their_last_update(
    batch_size, judged_by, rng
):
    X, y = rng.standard_normal((40, 2)), np.zeros(40)
    model = KernelEigenProRegressor(
        alpha=[2.0, 1.0],
        batch_size=batch_size,
        patience=10**6,
        random_state=0,
        **judged_by,
    ).fit(X, y)
    assert model.n_iter_ == 2  # the first update of either phase moves nothing
    np.testing.assert_array_equal(model.predict(X), 0)


def test_thinned_coefficients(data):
    X, y = data
    full = KernelEigenProRegressor(random_state=0).fit(X, y)
    thin = clone(full).set_params(store_every=7).fit(X, y)
    best, last = full.loo_path_.argmin(), full.n_iter_
    kept = {*range(0, last + 1, 7), best, last}
    assert thin.stored_iterations_.tolist() == sorted(kept)
    np.testing.assert_array_equal(thin.loo_path_, full.loo_path_)
    for t in kept:
        expected = full.at_iteration(t).predict(X)
        np.testing.assert_array_equal(thin.at_iteration(t).predict(X), expected)
    missing = next(t for t in range(last) if t not in kept)
    with pytest.raises(ValueError, match="Iterate 1 was not kept"):
        thin.at_iteration(missing)
    stopped = TrajectoryEarlyStoppingCV(thin).fit(X, y)
    assert stopped.best_iter_ == best
    # A choice is made of what is kept.
    rough = TrajectoryEarlyStoppingCV(thin, criterion="r2", rule="one_se").fit(X, y)
    assert rough.best_iter_ in kept


@pytest.mark.parametrize("alpha", ["path", np.geomspace(1e4, 1e-2, 8)], ids=len)
def test_the_first_strengths_do_not_end_a_path(alpha, data):
    """The largest ones change next to nothing, however long a run stays there."""
    X, y = data
    # So narrow a kernel that the least strengths fit noise, and the best is not last.
    model = KernelEigenProRegressor(gamma=1.0, alpha=alpha, max_iter=12, random_state=0)
    found, whole = model.fit(X, y), clone(model).set_params(patience=None).fit(X, y)
    assert found.iteration_ == whole.loo_path_.argmin() > 2 * model.max_iter
    # A sixth of the values, that is two, after the last improvement by more than tol:
    # the best may be better by less.
    improved = 0
    for t, value in enumerate(found.loo_path_):
        if value < (1 - model.tol) * found.loo_path_[improved]:
            improved = t
    assert found.n_iter_ == min(improved + 24, whole.n_iter_)


@pytest.mark.parametrize("criterion", ["auto", "cv", "r2"])
@pytest.mark.parametrize("patience", [None, 3])
def test_stopping_estimator_takes_them(criterion, patience, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        KernelEigenProRegressor(random_state=0),
        criterion=criterion,
        patience=patience,
        param_grid={"gamma": [0.01, 0.1, 1.0]},
    ).fit(X, y)
    assert {p["gamma"] for p in model.results_["params"]} == {0.01, 0.1, 1.0}
    assert model.best_params_["gamma"] == model.estimator_.gamma_
    assert model.estimator_.iteration_ == model.best_iter_
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("patience", [None, 3])
def test_a_grid_of_radial_kernels_shares_the_distances(patience, data, set_globals):
    X, y = data
    grid = {"gamma": [0.01, 0.1, 1.0], "kernel": ["rbf", "laplacian", "cauchy"]}
    computed = []

    def counted(X, Z):
        computed.append(X.shape[0] * Z.shape[0])
        return squared_distances(X, Z)

    set_globals(squared_distances=counted)
    model = KernelEigenProRegressor(max_iter=50, random_state=0)
    stopping = TrajectoryEarlyStoppingCV(model, patience=patience, param_grid=grid)
    stopping.fit(X, y)
    assert sum(computed) <= len(X) ** 2
    alone = clone(model).set_params(**stopping.best_params_)
    alone = TrajectoryEarlyStoppingCV(alone, patience=patience).fit(X, y)
    assert alone.best_iter_ == stopping.best_iter_
    np.testing.assert_allclose(alone.path_, stopping.path_, rtol=1e-9)
    np.testing.assert_allclose(alone.predict(X), stopping.predict(X), rtol=1e-9)
    # Neither the distances nor the run stay with the model.
    assert max(map(np.size, arrays_held_by(stopping))) < len(X) ** 2
    assert not runs_in_memory()
    # Where they do not fit beside a kernel matrix, every fit computes its own.
    computed.clear()
    megabytes = 1.5 * 8 * len(X) ** 2 / 2**20
    stopping.set_params(estimator__memory_budget=megabytes).fit(X, y)
    assert sum(computed) > len(X) ** 2


def test_stages_go_on_with_the_run(data, advances):
    X, y = data
    inner = KernelEigenProRegressor(
        gamma="scale",
        n_components=8,
        cv=5,
        patience=None,
        max_iter=200,
        random_state=0,
    )
    staged = TrajectoryEarlyStoppingCV(inner, criterion="cv", patience=4).fit(X, y)
    assert len(advances) > 1
    assert len({each.run for each in advances}) == 1
    assert 8 <= staged.estimator_.n_iter_ < 200
    whole = clone(inner).set_params(loo=False, max_iter=staged.estimator_.n_iter_)
    whole.fit(X, y)
    for name in ("cv_path_", "train_path_", "dual_coef_path_", "stored_iterations_"):
        expected = getattr(whole, name)
        np.testing.assert_array_equal(getattr(staged.estimator_, name), expected)


def test_a_run_with_no_epoch_left_stays_as_it_is(data):
    X, y = data
    model = KernelEigenProRegressor(random_state=0, patience=None, max_iter=8)
    parts = InParts(model, X, y)
    assert not parts.go_on(5)
    assert not parts.go_on(5)
    assert model.n_iter_ == 5
    assert parts.go_on(8)
    assert parts.go_on(16)
    whole = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_path_, whole.dual_coef_path_)


def test_pickles_and_intervals(data):
    X, y = data
    model = KernelEigenProRegressor(random_state=0).fit(X, y)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))
    best = model.at_iteration(model.loo_path_.argmin())
    low, high = best.predict_interval(X, method="loo").T
    np.testing.assert_allclose((low + high) / 2, best.predict(X), atol=0.3)
    # The default without anything set at fit, and of what was pickled.
    intervals = best.predict_interval(X)
    copied = copied.at_iteration(best.iteration_)
    np.testing.assert_allclose(copied.predict_interval(X), intervals, rtol=1e-9)
    assert np.abs(intervals.T - [low, high]).max() < np.mean(high - low) / 2


def test_intervals_of_what_is_not_kept(data):
    X, y = data
    model = KernelEigenProRegressor("precomputed").fit(X @ X.T, y)
    assert model.predict_interval(X @ X.T, method="loo").shape == (150, 2)
    with pytest.raises(ValueError, match="is not kept"):
        model.predict_interval(X @ X.T, method="jackknife+")
    np.testing.assert_array_equal(
        model.predict_interval(X @ X.T), model.predict_interval(X @ X.T, method="loo")
    )
    model = KernelEigenProRegressor(loo=False, max_iter=3).fit(X, y)
    with pytest.raises(ValueError, match="loo=True"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="memory matrix"):
        model.predict_interval(X, method="risk")


def test_threads_change_nothing(data):
    X, y = data
    one, two = (
        KernelEigenProRegressor(max_iter=50, random_state=0, n_jobs=n).fit(X, y)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


def test_kernel_of_zero_has_nothing_to_fit():
    X, y = np.zeros((10, 2)), np.arange(10.0)
    model = KernelEigenProRegressor("polynomial", coef0=0.0).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y.mean(), rtol=1e-14)


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "cauchy", "polynomial"])
@pytest.mark.parametrize("n_rows", [150, 3100])  # double and single precision
def test_squares_that_overflow(n_rows, kernel, rng):
    X = rng.standard_normal((n_rows, 2))
    y = X[:, 0].copy()
    X[-1] = 1e160 if n_rows == 150 else 1e25
    with pytest.raises(ValueError, match=r"overflow in float\d+: scale X"):
        KernelEigenProRegressor(kernel, max_iter=2).fit(X, y)


def test_width_of_rows_that_hardly_differ(data):
    X, y = data
    model = KernelEigenProRegressor(max_iter=2).fit(1e-160 * X, y)
    assert np.isfinite(model.gamma_)


def test_callables_may_return_sparse_matrices(data):
    X, y = data
    model = KernelEigenProRegressor(lambda X, Z: X @ Z.T, max_iter=3, random_state=0)
    expected = model.fit(X, y).predict(X)
    found = model.fit(sparse.csr_matrix(X), y).predict(sparse.csr_matrix(X))
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_never_more_of_the_kernel_than_the_budget(rng):
    X = rng.standard_normal((4000, 5))
    model = KernelEigenProRegressor(memory_budget=4, max_iter=2, random_state=0)
    tracemalloc.start()
    model.fit(X, X[:, 0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The kernel matrix takes 64 MB in single precision, the columns of the run 1.3,
    # the features of the subsample 8; what the search for gamma has left may still be
    # there, 7 MB, depending on when garbage is collected.
    assert peak < 40e6
