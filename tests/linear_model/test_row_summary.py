"""Summaries of rows: fits to them are fits to the rows, to rounding."""

import copy
import pickle
from itertools import permutations

import numpy as np
import pytest
from numpy.lib.format import open_memmap
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from skacv import (
    CoefficientPathDisplay,
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryRegressor,
)
from skacv.model_selection import Estimate, register_estimate, unregister_estimate
from skacv.optim.moments import Moments
from tests.runs import InParts, assert_same_summary

N_ROWS, N_COLUMNS, N_FOLDS = 600, 6, 4
MODELS = {
    "lasso": TrajectoryLasso("path", max_iter=5),
    "ista": TrajectoryLasso([0.3, 0.1], solver="ista", max_iter=15),
    "adaptive": TrajectoryLasso("path", penalty_weights=[1, 0, 2, 1, 0.5, 1]),
    "elastic_net": TrajectoryElasticNet("path", max_iter=5),
    "groups": TrajectoryGroupLasso([0.5, 0.1], groups=[0, 0, 1, 1, 2, 2], max_iter=15),
    "gd": IterativeRidge([100.0, 1.0], max_iter=15),
    "nesterov": IterativeRidge(0.0, solver="nesterov", max_iter=25),
    "heavy_ball": IterativeRidge(5.0, solver="heavy_ball", max_iter=25),
    "no_penalty": TrajectoryRegressor(penalty=None, schedule="nesterov", max_iter=20),
}
PATHS = (
    "coef_path_",
    "intercept_path_",
    "objective_path_",
    "train_path_",
    "risk_path_",
    "cv_path_",
    "cv_se_path_",
    "cv_fold_path_",
)
# Relative to the largest entry, as the issue of one pass against memory asks.
EXACT = 1e-8


def drawn(rng, n_targets=None, n_rows=N_ROWS):
    X = rng.standard_normal((n_rows, N_COLUMNS)) + 2
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(n_rows) + 5
    if n_targets:
        y = y[:, None] + rng.standard_normal((n_rows, n_targets))
    return X, y


def summarised(X, y, weights=None, size=100, order=None, **params):
    """A summary of blocks, taken in some order."""
    found = RowSummary(**{"n_folds": N_FOLDS, "n_sampled": 150, **params})
    n_rows = X.shape[0]
    firsts = list(range(0, n_rows, size))
    for k in firsts if order is None else [firsts[i] for i in order]:
        rows = slice(k, k + size)
        block = (X[rows], y[rows]) + (() if weights is None else (weights[rows],))
        found.partial_fit(*block, first_row=k)
    return found


def model_of(name):
    model = clone(MODELS[name]).set_params(risk="exact", risk_row_scales=False)
    return model.set_params(loo=40, random_state=0)


def largest_difference(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if not expected.size or not np.abs(expected).max():
        return np.abs(found).max(initial=0.0)
    return np.abs(found - expected).max() / np.abs(expected).max()


def check_same(model, X, y, weights=None):
    """A fit to the summary is one to the rows, with the folds of the summary."""
    summary = summarised(X, y, weights)
    fold = summary.fold_of(np.arange(X.shape[0]))
    found = clone(model).set_params(cv=N_FOLDS).fit(summary)
    plain = clone(model).set_params(cv=PredefinedSplit(fold), loo=True)
    plain.fit(X, y, sample_weight=weights)
    for name in PATHS:
        difference = largest_difference(getattr(found, name), getattr(plain, name))
        assert difference < EXACT, name
    places = np.searchsorted(plain.loo_indices_, found.loo_indices_)
    np.testing.assert_array_equal(plain.loo_indices_[places], found.loo_indices_)
    assert len(places) == 40
    of_rows = plain.loo_prediction_path_[:, places]
    assert largest_difference(found.loo_prediction_path_, of_rows) < EXACT
    np.testing.assert_allclose(found.loo_target_, plain.loo_target_[places])
    places = np.searchsorted(plain.risk_indices_, found.risk_indices_)
    of_rows = np.asarray(plain.risk_prediction_path_)[:, places]
    assert largest_difference(found.risk_prediction_path_, of_rows) < 1e-6
    return found, plain


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_everything_is_that_of_the_rows(name, fit_intercept, rng):
    X, y = drawn(rng)
    check_same(model_of(name).set_params(fit_intercept=fit_intercept), X, y)


@pytest.mark.parametrize("name", ["lasso", "nesterov"])
def test_weights(name, rng):
    X, y = drawn(rng)
    check_same(model_of(name), X, y, rng.uniform(0, 3, N_ROWS).round(1))


@pytest.mark.parametrize("name", ["lasso", "nesterov"])
def test_sparse_blocks(name, rng):
    X, y = drawn(rng)
    X[rng.random(X.shape) < 0.7] = 0
    check_same(model_of(name), sparse.csr_matrix(X), y)


def test_several_targets(rng):
    X, Y = drawn(rng, n_targets=3)
    check_same(model_of("nesterov"), X, Y)


@pytest.mark.filterwarnings("ignore:The largest column of X is")
def test_means_far_from_zero_and_columns_of_uneven_size(rng):
    X, y = drawn(rng)
    X = (X + 1e3) * np.logspace(-2, 2, N_COLUMNS)
    check_same(model_of("nesterov"), X, 1e4 * (y + 1e3))


@pytest.mark.filterwarnings("ignore:The largest column of X is")
def test_columns_that_are_all_constant_leave_a_run_where_it_is(rng):
    X, y = np.tile([0.1, 1.3, 7.7], (N_ROWS, 1)), rng.random(N_ROWS)
    found = IterativeRidge(0.0, max_iter=10, loo=False).fit(summarised(X, y))
    assert found.step_size_ == 1
    assert not found.coef_path_.any()
    # Beside one that varies, and where no intercept takes them up.
    X[:, 1] += rng.standard_normal(N_ROWS)
    for fit_intercept in (True, False):
        model = model_of("nesterov").set_params(fit_intercept=fit_intercept)
        check_same(model, X, y)


def test_held_out_predictions_are_those_of_the_sampled_rows(rng):
    X, y = drawn(rng)
    found, plain = check_same(model_of("lasso"), X, y)
    for own, of_rows in zip(found.cv_indices_, plain.cv_indices_):
        assert len(own)
        assert np.isin(own, of_rows).all()
    predicted = np.concatenate(plain.cv_indices_)
    order = {row: k for k, row in enumerate(predicted)}
    places = [order[row] for row in np.concatenate(found.cv_indices_)]
    of_rows = np.asarray(plain.cv_prediction_path_)[:, places]
    assert largest_difference(found.cv_prediction_path_, of_rows) < EXACT


def test_errors_over_rows_are_those_of_a_sample(rng):
    """Standard errors are of the mean over all rows, from the spread of a few."""
    X, y = drawn(rng, n_rows=4000)
    model = IterativeRidge(0.0, solver="nesterov", max_iter=25, risk="exact", loo=False)
    plain = clone(model).fit(X, y)
    found = model.fit(summarised(X, y, n_sampled=1000))
    # Of 1000 squares of Gaussian residuals: the error of their spread is some 6%.
    np.testing.assert_allclose(found.risk_se_path_, plain.risk_se_path_, rtol=0.2)
    assert found.risk_residual_path_.spatial.shape[1] == 1000


def test_rows_of_uneven_norm_have_scales_from_the_sample(rng):
    # Uneven, but no single row outweighs the others: a sample may miss that one.
    X = rng.standard_normal((3000, 100)) * np.exp(rng.uniform(-2, 2, (3000, 1)))
    y = X.sum(axis=1) + 3 * rng.standard_normal(3000)
    model = IterativeRidge(0.0, solver="nesterov", max_iter=25, risk="exact", loo=False)
    plain = clone(model).fit(X, y)
    found = clone(model).fit(summarised(X, y, n_sampled=1000))
    published = clone(model).set_params(risk_row_scales=False).fit(summarised(X, y))
    assert plain.row_scale_share_ > 0.5
    assert found.row_scale_share_ > 0.5
    off = np.abs(found.risk_path_ / plain.risk_path_ - 1).max()
    assert off < 0.2 * np.abs(published.risk_path_ / plain.risk_path_ - 1).max()


def test_few_rows_are_all_kept(rng):
    X, y = drawn(rng, n_rows=50)
    summary = RowSummary(n_folds=N_FOLDS).fit(X, y)
    np.testing.assert_array_equal(summary.sampled_indices_, np.arange(50))
    model = model_of("lasso").set_params(loo=True, risk_row_scales=True)
    found, plain = clone(model).fit(summary), clone(model).fit(X, y)
    # The modes of residuals, which resolve 1e-7 of them, are in all of these.
    for name in ("risk_path_", "risk_se_path_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(plain, name), rtol=1e-6
        )
    for name in ("coef_path_", "loo_path_", "loo_se_path_"):
        assert largest_difference(getattr(found, name), getattr(plain, name)) < EXACT


# ------------------------------------------------------------------ taking rows in


@pytest.mark.parametrize("order", [*permutations(range(3))])
def test_blocks_in_any_order(order, rng):
    X, y = drawn(rng)
    model = model_of("lasso").set_params(cv=N_FOLDS)
    found = clone(model).fit(summarised(X, y, size=200, order=order))
    plain = clone(model).fit(summarised(X, y, size=37))
    for name in (*PATHS, "loo_path_", "loo_prediction_path_"):
        assert largest_difference(getattr(found, name), getattr(plain, name)) < EXACT


def test_merging_in_any_order_and_grouping(rng):
    X, y = drawn(rng)
    parts = []
    for k in range(0, N_ROWS, 150):
        part = RowSummary(N_FOLDS, 150)
        parts.append(part.partial_fit(X[k : k + 150], y[k : k + 150], first_row=k))
    before = pickle.dumps(parts[3])
    one, other = clone(parts[0]), clone(parts[0])
    for k in (2, 0, 3, 1):
        one.merge(parts[k])
    pair = clone(parts[0]).merge(parts[3]).merge(parts[1])
    other.merge(parts[0]).merge(pair).merge(parts[2])
    assert pickle.dumps(parts[3]) == before
    whole = summarised(X, y)
    for found in (one, other):
        assert found.n_samples_seen_ == N_ROWS
        np.testing.assert_array_equal(found.sampled_indices_, whole.sampled_indices_)
        assert_same_summary(found, whole, rtol=1e-11)


def test_folds_are_balanced_and_do_not_follow_the_order_of_rows():
    summary = RowSummary(n_folds=5)
    fold = summary.fold_of(np.arange(10_000)).reshape(-1, 5)
    assert (np.sort(fold, axis=1) == np.arange(5)).all()
    counts = np.bincount(fold[:, 0], minlength=5)
    # Of 2000 draws among five: five standard errors.
    assert np.abs(counts - 400).max() < 5 * np.sqrt(2000 * 0.2 * 0.8)


def test_sampled_rows_are_uniform(rng):
    X, y = drawn(rng, n_rows=20_000)
    rows = summarised(X, y, size=1000, n_sampled=2000).sampled_indices_
    counts = np.histogram(rows, bins=10, range=(0, 20_000))[0]
    assert np.abs(counts - 200).max() < 5 * np.sqrt(200 * 0.9)


@pytest.mark.parametrize("kind", ["array", "float32", "memmap", "view", "csr"])
def test_from_arrays(kind, rng, tmp_path, set_limits):
    X, y = drawn(rng)
    n_bytes = 4 * 8 * N_COLUMNS * 70
    set_limits(MEMORY_BYTES=n_bytes)
    expected, source = X, X
    if kind == "float32":
        source = X.astype(np.float32)
        expected = source.astype(np.float64)
    if kind in ("memmap", "view"):
        source = open_memmap(tmp_path / "X.npy", "w+", X.dtype, X.shape)
        source[:] = X
        source.flush()
        if kind == "view":
            source, expected, y = source[100:], X[100:], y[100:]
    if kind == "csr":
        source = sparse.csr_matrix(X)
    found = RowSummary.from_arrays(source, y, n_folds=1, n_sampled=20)
    model = IterativeRidge(10.0, max_iter=15, tol=0, loo=False, risk=False)
    actual, desired = clone(model).fit(found), clone(model).fit(expected, y)
    np.testing.assert_allclose(actual.coef_path_, desired.coef_path_, 1e-9, 1e-9)
    np.testing.assert_allclose(actual.intercept_path_, desired.intercept_path_, 1e-9)
    np.testing.assert_allclose(actual.train_path_, desired.train_path_, 1e-9)


def test_progress(rng):
    X, y = drawn(rng)
    blocks = ((X[k : k + 250], y[k : k + 250]) for k in (0, 250, 500))
    seen = []
    RowSummary.from_blocks(blocks, progress=seen.append)
    assert seen == [250, 500, 600]


def test_moments_keep_their_digits_beside_large_means(rng):
    """Means of 1e6 spreads: the numbers themselves have ten digits of the spread."""
    rows = rng.standard_normal((3000, 3))
    moments = Moments(3)
    for k in range(0, 3000, 100):
        moments.add_rows(rows[k : k + 100] + 1e6, np.ones(100))
    exact = np.cov((rows + 1e6).T.astype(np.longdouble), ddof=0).astype(float) * 3000
    np.testing.assert_allclose(moments.scatter, exact, rtol=0, atol=3000 * 1e-8)
    np.testing.assert_allclose(moments.scatter, np.cov(rows.T) * 2999, atol=3000 * 1e-8)


def test_standardized(rng):
    X, y = drawn(rng)
    X *= np.logspace(-3, 3, N_COLUMNS)
    X[:, 2] = 7.0
    scaler, summary = summarised(X, y).standardized()
    expected = StandardScaler().fit(X)
    for name in ("mean_", "var_", "scale_"):
        found, wanted = getattr(scaler, name), getattr(expected, name)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-18)
    model = IterativeRidge(1.0, max_iter=15, loo=False)
    found = make_pipeline(scaler, clone(model).fit(summary)).predict(X)
    plain = make_pipeline(StandardScaler(), model).fit(X, y).predict(X)
    np.testing.assert_allclose(found, plain, rtol=1e-8)


# ------------------------------------------------------------------- partial_fit


def test_partial_fit_is_a_fit_to_all_rows(rng):
    X, y = drawn(rng)
    model = model_of("lasso").set_params(cv=N_FOLDS)
    for k in range(0, N_ROWS, 100):
        model.partial_fit(X[k : k + 100], y[k : k + 100])
        assert not hasattr(model, "coef_")
    expected = clone(model).fit(summarised(X, y, n_sampled=1000))
    assert model.partial_fit() is model
    np.testing.assert_allclose(model.coef_path_, expected.coef_path_, atol=1e-12)
    np.testing.assert_allclose(model.cv_path_, expected.cv_path_, rtol=1e-10)
    # It goes on after it has been read, and where it is pickled between.
    model = pickle.loads(pickle.dumps(model.partial_fit(X[:50] + 1, y[:50])))
    assert not hasattr(model, "coef_")
    both = np.vstack([X, X[:50] + 1]), np.concatenate([y, y[:50]])
    expected = clone(model).fit(RowSummary(N_FOLDS).fit(*both))
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-10)


def test_partial_fit_takes_nothing_in_that_it_refuses(rng):
    X, y = drawn(rng)
    model = TrajectoryLasso(0.1).partial_fit(X, y)
    coef = clone(model).partial_fit(X, y).partial_fit().coef_
    for block in ((X[:, :2], y), (X, np.full(N_ROWS, np.nan)), (X[:0], y[:0])):
        with pytest.raises(ValueError):
            model.partial_fit(*block)
    with pytest.raises(ValueError, match="those so far have"):
        model.partial_fit(X, np.column_stack([y, y]))
    np.testing.assert_array_equal(model.partial_fit().coef_, coef)


def test_nothing_is_fitted_because_somebody_looks(monkeypatch, rng):
    X, y = drawn(rng)
    model = model_of("lasso").set_params(cv=N_FOLDS)
    with monkeypatch.context() as patched:
        patched.setattr(TrajectoryLasso, "fit", None)
        # The first block is too small for its folds.
        for rows in (slice(0, 3), slice(3, 4), slice(4, N_ROWS)):
            model.partial_fit(X[rows], y[rows])
            check_is_fitted(model)
            assert not hasattr(model, "coef_")
            assert hasattr(model, "partial_fit")
            assert "TrajectoryLasso" in repr(model) + model._repr_html_()
            pickle.loads(pickle.dumps(copy.copy(model)))
            with pytest.raises(AttributeError, match=r"partial_fit\(\) without rows"):
                _ = model.coef_
    expected = clone(model).fit(summarised(X, y, n_sampled=1000))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.coef_.any()


@pytest.mark.parametrize(
    "use",
    [
        lambda model, X, y: model.predict(X),
        lambda model, X, y: list(model.staged_predict(X)),
        lambda model, X, y: model.predict_interval(X),
        lambda model, X, y: model.staged_loss(X, y),
        lambda model, X, y: model.score(X, y),
        lambda model, X, y: model.recorded_iterations(),
        lambda model, X, y: model.at_iteration(2).coef_,
        lambda model, X, y: CoefficientPathDisplay.from_estimator(model).coef_path,
    ],
)
def test_whatever_needs_the_model_fits_it(use, rng):
    X, y = drawn(rng)
    model = model_of("lasso").set_params(cv=N_FOLDS)
    expected = clone(model).partial_fit(X, y).partial_fit()
    found = use(model.partial_fit(X, y), X, y)
    np.testing.assert_array_equal(found, use(expected, X, y))
    np.testing.assert_array_equal(model.coef_, expected.coef_)


def test_rows_so_far_may_be_too_few(rng):
    X, y = drawn(rng)
    model = TrajectoryLasso(cv=5)
    with pytest.raises(ValueError, match="but there are none"):
        model.partial_fit()
    with pytest.raises(ValueError, match="without X"):
        model.partial_fit(y=y)
    model.partial_fit(X[:3], y[:3])
    with pytest.raises(ValueError, match="some fold of the summary has no rows"):
        model.predict(X)
    model.partial_fit(X[3:], y[3:])
    expected = clone(model).fit(RowSummary(5).fit(X, y))
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_a_fit_that_fails_can_be_made_again(rng):
    X, y = drawn(rng)
    model = TrajectoryLasso(0.1, step_size=1e6).partial_fit(X, y)
    with pytest.raises(ValueError, match="diverge"):
        model.predict(X)
    model.set_params(step_size="auto")
    assert model.predict(X).shape == (N_ROWS,)


def test_partial_fit_draws_its_folds(rng):
    with pytest.raises(ValueError, match="None or a number"):
        TrajectoryLasso(cv=KFold(3)).partial_fit(*drawn(rng))


def test_partial_fit_after_fit_begins_anew(rng):
    X, y = drawn(rng)
    model = TrajectoryLasso(0.1).fit(X[:100], y[:100])
    with pytest.warns(UserWarning, match="starts from scratch"):
        model.partial_fit(X[100:], y[100:])
    expected = TrajectoryLasso(0.1).fit(X[100:], y[100:])
    np.testing.assert_allclose(model.partial_fit().coef_, expected.coef_, rtol=1e-10)


def test_partial_fit_is_for_the_squared_error():
    assert hasattr(TrajectoryRegressor(), "partial_fit")
    assert not hasattr(TrajectoryRegressor(loss="huber"), "partial_fit")
    assert not hasattr(TrajectoryHuberRegressor(), "partial_fit")
    assert not hasattr(IterativeRidge(solver="eigenpro"), "partial_fit")


def test_folds_may_not_change_between_blocks(rng):
    model = TrajectoryLasso(cv=3).partial_fit(*drawn(rng))
    with pytest.raises(ValueError, match="n_folds=3"):
        model.set_params(cv=5).partial_fit(*drawn(rng))


# -------------------------------------------------------------------- stopping


@pytest.mark.parametrize("criterion", ["auto", "cv", "risk", "loo"])
def test_stopping(criterion, rng):
    X, y = drawn(rng, n_rows=3000)
    lasso = TrajectoryLasso("path", max_iter=10, random_state=0)
    summary = RowSummary().fit(X, y)
    model = TrajectoryEarlyStoppingCV(lasso, criterion=criterion).fit(summary)
    plain = TrajectoryEarlyStoppingCV(lasso, criterion=criterion).fit(X, y)
    assert model.criterion_ == plain.criterion_
    # Two times 500 rows left out of 3000: four standard errors of what they differ by.
    off = 4 * np.sqrt(2 * 2 / 500) if criterion == "loo" else 0.1
    assert model.best_score_ == pytest.approx(plain.best_score_, rel=off)
    # Of a noise of one: what other iterates near the least are apart.
    assert np.mean((model.predict(X) - plain.predict(X)) ** 2) < 0.01
    assert not hasattr(model, "best_score_corrected_")


def test_the_portfolio(rng):
    X, y = drawn(rng, n_rows=3000)
    model = TrajectoryEarlyStoppingCV(random_state=0).fit(RowSummary().fit(X, y))
    assert sorted(model.member_paths_) == ["lasso", "least squares"]
    assert model.best_score_ == pytest.approx(1, rel=0.1)


def test_stages_do_not_begin_anew(rng):
    """A patient run goes on; it is that of one fit."""
    X, y = drawn(rng, n_rows=3000)
    summary = RowSummary().fit(X, y)
    ridge = IterativeRidge(0.0, max_iter=400, cv=5)
    patient = TrajectoryEarlyStoppingCV(ridge, patience=10).fit(summary)
    n_updates = patient.estimator_.n_iter_
    assert n_updates < 400
    whole = clone(ridge).set_params(max_iter=n_updates).fit(summary)
    np.testing.assert_allclose(patient.path_, whole.cv_path_, rtol=1e-12)


def test_rows_that_come_later_are_another_run(rng):
    X, y = drawn(rng)
    summary = RowSummary(N_FOLDS).fit(X[:300], y[:300])
    model = IterativeRidge(1.0, max_iter=20, cv=np.int64(N_FOLDS))
    without = clone(model).fit(summary)
    parts = InParts(model, summary)
    assert not parts.go_on(5)
    summary.partial_fit(X[300:], y[300:])
    assert parts.go_on(20)
    # Errors of a few iterates at a time may be rounded otherwise.
    np.testing.assert_allclose(model.train_path_, without.train_path_, rtol=1e-12)
    np.testing.assert_allclose(model.cv_path_, without.cv_path_, rtol=1e-12)
    model.fit(summary)
    expected = clone(model).fit(RowSummary(N_FOLDS).fit(X, y))
    assert largest_difference(model.train_path_[-1:], expected.train_path_[-1:]) < EXACT


# ------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (TrajectoryLasso(cv=3), "cv is 3, but the folds of this summary are n_folds=4"),
        (TrajectoryLasso(cv=KFold(4)), "must be their number"),
        (TrajectoryLasso(loo=True), "set loo to at most"),
        (TrajectoryLasso(loo=400), "more than the 150 rows"),
        (TrajectoryLasso(keep_data=True), "fit to arrays"),
        (IterativeRidge(solver="eigenpro"), "use another solver"),
        (TrajectoryRegressor(schedule="newton"), "use another solver"),
        (TrajectoryRegressor(loss="huber"), "squared error only"),
        (TrajectoryHuberRegressor(), "squared error only"),
        (TrajectoryLogisticRegression(), "squared error only"),
        (KernelEigenProRegressor(), "squared error only"),
        (TrajectoryEarlyStoppingCV(TrajectoryLasso(), criterion="r2"), "a scorer"),
    ],
)
def test_refused(model, message, rng):
    with pytest.raises(ValueError, match=message):
        model.fit(summarised(*drawn(rng)))


def test_nothing_is_passed_beside_a_summary(rng):
    X, y = drawn(rng)
    summary = summarised(X, y)
    with pytest.raises(ValueError, match="pass no y and no sample_weight"):
        TrajectoryLasso().fit(summary, y)
    with pytest.raises(TypeError, match="has its own folds"):
        TrajectoryLasso().fit(summary, groups=y)
    with pytest.raises(ValueError, match="supports a single target"):
        TrajectoryLasso().fit(RowSummary().fit(X, np.column_stack([y, y])))
    with pytest.raises(NotFittedError):
        TrajectoryLasso().fit(RowSummary())


def test_an_estimate_of_all_rows_is_refused(rng):
    median = Estimate("median", "median", lambda run: None, parameter="risk")
    register_estimate(median)
    try:
        with pytest.raises(ValueError, match="median_path_ needs all rows"):
            TrajectoryLasso(risk=True).fit(summarised(*drawn(rng)))
    finally:
        unregister_estimate("median")


def test_blocks_that_cannot_be_taken_are_named(rng):
    X, y = drawn(rng)
    holed = X.copy()
    holed[3, 2] = np.nan
    for block, message in (
        ((holed, y), "Block 1: Input X contains NaN"),
        ((X[:, :3], y), "Block 1: X has 3 features"),
        ((X[:0], y[:0]), "Block 1: y is empty"),
        ((X, y[:-1]), "Block 1: Found input variables with inconsistent"),
    ):
        with pytest.raises(ValueError, match=message):
            RowSummary.from_blocks([(X, y), block])
    with pytest.raises(ValueError, match="blocks is empty"):
        RowSummary.from_blocks([])
    with pytest.raises(ValueError, match="different numbers of rows"):
        RowSummary.from_arrays(X, y[:-1])


def test_summaries_that_do_not_go_together(rng):
    X, y = drawn(rng)
    summary = summarised(X, y)
    with pytest.raises(ValueError, match="same numbers"):
        summary.merge(summarised(X, y))
    with pytest.raises(ValueError, match="different n_folds"):
        summary.merge(summarised(X, y, n_folds=2))
    with pytest.raises(ValueError, match="different n_features_in"):
        summary.merge(summarised(X[:, :3], y))


def test_more_columns_than_moments_are_taken_of():
    X = sparse.csr_matrix((3, 5001))
    with pytest.raises(ValueError, match="at most 5000"):
        RowSummary().fit(X, np.ones(3))


def test_targets_that_are_explained_are_warned_of(rng):
    X, _ = drawn(rng)
    y = X @ np.arange(1.0, N_COLUMNS + 1)
    noise = rng.standard_normal(N_ROWS)
    model = IterativeRidge(0.0, solver="nesterov", max_iter=50, loo=False, risk=False)
    with pytest.warns(UserWarning, match="are not resolved"):
        clone(model).fit(summarised(X, y))
    # With noise that is a 1e-4 of the target errors have the digits they are asked for.
    found = clone(model).fit(summarised(X, y + 1e-3 * noise))
    plain = clone(model).fit(X, y + 1e-3 * noise)
    np.testing.assert_allclose(found.train_path_, plain.train_path_, rtol=1e-6)
