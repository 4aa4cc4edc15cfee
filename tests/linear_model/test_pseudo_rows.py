"""Many rows, few columns: runs on rows of the same moments are those on the data."""

import pickle
import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryLasso,
    TrajectoryRegressor,
)
from skacv.model_selection import Estimate, register_estimate, unregister_estimate
from skacv.optim.arrays import DenseDesign, design_of
from skacv.optim.moments import group_rows, moments_of, pseudo_rows
from skacv.optim.problem import Problem
from skacv.records import HeldOut
from tests.cases import covering
from tests.internals import parts_of_rows
from tests.runs import arrays_held_by
from tests.sides import assert_same, fit_plainly, fit_reduced

EXACT = 1e-10
N_ROWS, N_COLUMNS = 1200, 5
SHUFFLED = KFold(5, shuffle=True, random_state=0)
MODELS = {
    "lasso": TrajectoryLasso("path", max_iter=4),
    "ista": TrajectoryLasso([0.3, 0.1], solver="ista"),
    "adaptive": TrajectoryLasso("path", penalty_weights=[1, 0, 2, 1, 0.5], max_iter=4),
    "elastic_net": TrajectoryElasticNet("path", max_iter=4),
    # Not from where a path starts: whether all groups stay at zero there, and for how
    # many updates, is a matter of rounding.
    "groups": TrajectoryGroupLasso([0.5, 0.1], groups=[0, 0, 1, 1, 2]),
    "gd": IterativeRidge([100.0, 1.0]),
    "nesterov": IterativeRidge(0.0, solver="nesterov"),
    "heavy_ball": IterativeRidge(5.0, solver="heavy_ball"),
    "mcp": TrajectoryRegressor("path", penalty="mcp", max_iter=4),
    "no_penalty": TrajectoryRegressor(penalty=None, schedule="heavy_ball"),
}
SPLITTERS = {
    "none": None,
    "folds": KFold(5),
    "shuffled": SHUFFLED,
    "repeated": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "parts": ShuffleSplit(2, train_size=0.5, test_size=0.2, random_state=0),
    "later": TimeSeriesSplit(2),
    "predefined": PredefinedSplit(np.arange(N_ROWS) // 300 - 1),
}


def drawn(rng, n_targets=None):
    X = rng.standard_normal((N_ROWS, N_COLUMNS)) + 0.5
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(N_ROWS) + 3
    if n_targets:
        y = y[:, None] + rng.standard_normal((N_ROWS, n_targets))
    return X, y


def model_of(name, cv=SHUFFLED, **params):
    model = clone(MODELS[name])
    if model.max_iter == 200:
        model.set_params(max_iter=20)
    return model.set_params(loo=False, risk=False, cv=cv, **params)


def check(model, X, y, tolerance=EXACT, **fit_params):
    """The fit is on rows of the same moments, and all that it leaves is the same."""
    assert fit_reduced(model, X, y, **fit_params) == "PseudoRowData"
    plain = fit_plainly(clone(model), X, y, **fit_params)
    assert_same(model, plain, tolerance)


@covering(name=MODELS, fit_intercept=[True, False], weighted=[False, True])
def test_everything_is_that_of_the_rows(name, fit_intercept, weighted, rng):
    X, y = drawn(rng)
    weights = rng.uniform(0, 3, N_ROWS).round(1) if weighted else None
    model = model_of(name, fit_intercept=fit_intercept)
    check(model, X, y, sample_weight=weights)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("splitter", SPLITTERS)
def test_folds_of_any_splitter(splitter, fit_intercept, rng):
    X, y = drawn(rng)
    model = model_of("lasso", SPLITTERS[splitter], fit_intercept=fit_intercept)
    check(model, X, y)


def test_folds_of_groups(rng):
    X, y = drawn(rng)
    groups = rng.integers(0, 9, N_ROWS)
    check(model_of("lasso", GroupKFold(3)), X, y, groups=groups)


@pytest.mark.parametrize("name", ["gd", "nesterov", "heavy_ball"])
def test_several_targets(name, rng):
    X, Y = drawn(rng, n_targets=3)
    check(model_of(name), X, Y)


@pytest.mark.filterwarnings("ignore:The largest column of X is")
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("name", ["lasso", "nesterov"])
def test_means_far_from_zero_and_columns_of_uneven_size(name, fit_intercept, rng):
    X, y = drawn(rng)
    # Without an intercept these means explain nearly all of a target as far as 1e3.
    far = 1e3 if fit_intercept else 100
    X = (X + far) * np.logspace(-3, 3, N_COLUMNS)
    model = model_of(name, fit_intercept=fit_intercept)
    check(model, X, 1e5 * (y + far))


def test_nearly_collinear_and_constant_columns(rng):
    X, y = drawn(rng)
    X[:, 3], X[:, 4] = X[:, 0] + 1e-6 * X[:, 3], 7.0
    X[:, 2] = 0.0
    check(model_of("nesterov"), X, y)
    check(model_of("lasso"), X, y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_that_are_all_constant_leave_a_run_where_it_is(dtype, rng):
    """Their rounding is no curvature, of which a step would be the inverse."""
    X, y = np.tile([0.1, 1.3, 7.7], (N_ROWS, 1)).astype(dtype), rng.random(N_ROWS)
    model = model_of("gd")
    model.set_params(alpha=0.0)
    assert fit_reduced(model, X, y) == "PseudoRowData"
    assert model.step_size_ == 1
    assert not model.coef_path_.any()
    np.testing.assert_allclose(model.intercept_, y.mean(), rtol=1e-6)


def test_rows_that_are_sorted(rng):
    X, y = drawn(rng)
    order = np.argsort(X[:, 0])
    check(model_of("lasso", KFold(5)), 1e3 * X[order], y[order])


def test_one_heavy_row(rng):
    """The step is stable without it, as if it were there."""
    X, y = drawn(rng)
    weights = np.ones(N_ROWS)
    weights[3] = 2 * N_ROWS
    cv = [(np.arange(600), np.arange(600, 1200)), (np.arange(900), [900, 1000])]
    model = model_of("nesterov", cv)
    check(model, X, y, sample_weight=weights)


def test_single_precision_stays(rng):
    X, y = drawn(rng)
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = model_of("nesterov")
    check(model, X, y, tolerance=1e-5)
    assert model.coef_path_.dtype == np.float32
    assert model.cv_prediction_path_[3].dtype == np.float32


def test_sparse_rows(rng):
    X, y = drawn(rng)
    check(model_of("lasso"), sparse.csr_matrix(X * (X > 0)), y)


def test_no_pass_goes_through_the_rows(note_calls, rng):
    X, y = drawn(rng)
    products = "dot", "t_dot", "gram"
    taken = note_calls(DenseDesign, *products, size=lambda rows, *_: rows.shape[0])
    run = model_of("lasso").begin(X, y)
    run.go_on(10_000)
    record = run.record()
    # Five groups, of one row more than there are columns of [X y], and each by itself.
    assert set(taken) == {5 * (N_COLUMNS + 2), N_COLUMNS + 2}
    taken.clear()
    record["cv"].prediction[-1]
    assert sorted(set(taken))[-1] == N_ROWS // 5


def test_no_array_has_all_rows_and_iterates(rng):
    X = rng.standard_normal((60_000, 4))
    y = X[:, 0] + rng.standard_normal(len(X))
    model = model_of("lasso", 5).fit(X, y)
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A path of predictions would be as many as there are iterates.
    assert model.n_iter_ > 80
    assert peak < 20 * y.nbytes


# ------------------------------------------------------------------ warm starts


def test_a_run_goes_on_whichever_rows_its_parts_are_on(rng):
    X, y = drawn(rng)
    whole = model_of("nesterov").set_params(tol=0).fit(X, y)
    for first, then in ((False, True), (True, False), (True, True)):
        part = model_of("nesterov").set_params(tol=0, max_iter=9, warm_start=True)
        for n_updates, on_few in ((9, first), (20, then)):
            fit = fit_reduced if on_few else fit_plainly
            fit(part.set_params(max_iter=n_updates), X, y)
        assert_same(part, whole, EXACT)


def test_a_path_goes_on(rng):
    X, y = drawn(rng)
    stopping = TrajectoryEarlyStoppingCV(model_of("lasso"), criterion="cv", patience=10)
    assert fit_reduced(stopping, X, y) == "PseudoRowData"
    plain = fit_plainly(clone(stopping), X, y)
    assert stopping.estimator_.n_iter_ == plain.estimator_.n_iter_
    np.testing.assert_allclose(stopping.path_, plain.path_, rtol=EXACT)


# ------------------------------------------------------------ held-out predictions


@pytest.mark.parametrize("n_targets", [None, 2])
def test_predictions_are_read_like_an_array(n_targets, rng):
    X, y = drawn(rng, n_targets)
    model = model_of("gd")
    fit_reduced(model, X, y)
    expected = fit_plainly(clone(model), X, y).cv_prediction_path_
    path = model.cv_prediction_path_
    assert (len(path), path.ndim, path.shape, path.dtype) == (
        len(expected),
        expected.ndim,
        expected.shape,
        expected.dtype,
    )
    rounding = {"rtol": 0, "atol": EXACT * np.abs(expected).max()}
    for key in (0, -1, np.int64(3), slice(2, 5), (slice(None), 7), np.array([1, 4])):
        np.testing.assert_allclose(path[key], expected[key], **rounding)
    np.testing.assert_allclose(list(path), expected, **rounding)
    assert np.asarray(path, dtype=np.float32).dtype == np.float32
    with pytest.raises(IndexError):
        path[len(expected)]
    assert "StoredPath(shape=" in repr(path)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(path))[4], path[4])


def test_predictions_of_a_run_that_goes_on_take_no_memory(rng):
    X, y = drawn(rng)
    run = model_of("gd").begin(X, y)
    run.go_on(5)
    path = run.record()["cv"].prediction
    assert any(np.shares_memory(each, X) for each in arrays_held_by(path))
    assert max(each.nbytes for each in arrays_held_by(path)) <= X.nbytes


@pytest.mark.parametrize("scoring", ["r2", "neg_mean_absolute_error"])
def test_scorers_judge_them(scoring, rng):
    X, y = drawn(rng)
    stopping = TrajectoryEarlyStoppingCV(model_of("lasso"), criterion=scoring)
    assert fit_reduced(stopping, X, y) == "PseudoRowData"
    plain = fit_plainly(clone(stopping), X, y)
    np.testing.assert_allclose(stopping.path_, plain.path_, rtol=1e-10)
    assert stopping.best_score_se_ == pytest.approx(plain.best_score_se_, rel=1e-9)


def test_linear_members_of_a_stopping_estimator_by_folds(rng):
    X, y = drawn(rng)
    members = [
        ("lasso", TrajectoryLasso("path", max_iter=20)),
        ("least squares", IterativeRidge(0.0, solver="nesterov", max_iter=100)),
    ]
    stopping = TrajectoryEarlyStoppingCV(members, criterion="cv")
    assert fit_reduced(stopping, X, y) == "PseudoRowData"
    plain = fit_plainly(clone(stopping), X, y)
    assert stopping.best_iter_ == plain.best_iter_
    assert stopping.best_score_ == pytest.approx(plain.best_score_, rel=1e-10)
    assert stopping.best_score_se_ == pytest.approx(plain.best_score_se_, rel=1e-9)


# ------------------------------------------------------------ where rows are kept


@pytest.mark.parametrize(
    "params",
    [
        {"loo": "auto"},
        {"risk": "auto"},
        {"keep_data": True},
        {"cv": [(np.arange(900), np.repeat(np.arange(900, 1200), 2))] * 2},
        {"cv": 100},
        {"max_iter": 1, "alpha": 0.1, "cv": None},
    ],
    ids=["loo", "risk", "intervals", "repeated", "many_folds", "one_update"],
)
def test_what_needs_single_rows_has_them(params, rng):
    X, y = drawn(rng)
    model = model_of("lasso", 5).set_params(**params)
    assert fit_reduced(model, X, y) == "ColumnData"


@pytest.mark.parametrize(
    "params", [{"solver": "eigenpro"}, {"solver": "eigenpro", "batch_size": 100}]
)
def test_updates_of_single_rows_have_them(params, rng):
    X, y = drawn(rng)
    model = model_of("nesterov", 5).set_params(**params)
    assert fit_reduced(model, X, y) == "ColumnData"
    # Nor can a run that has begun with them go on without.
    model.set_params(warm_start=True, solver="gd", batch_size=None)
    if "batch_size" not in params:
        assert fit_reduced(model, X, y) == "ColumnData"


def test_targets_that_are_explained_keep_their_digits(rng):
    """Errors would be differences of moments that agree in all digits."""
    X, _ = drawn(rng)
    y = X @ np.arange(1.0, N_COLUMNS + 1)
    noise = rng.standard_normal(N_ROWS)
    model = model_of("nesterov", max_iter=200)
    assert fit_reduced(model, X, y) == "ColumnData"
    assert fit_reduced(model, X, y + 1e-3 * noise) == "ColumnData"
    model.set_params(max_iter=60)
    check(model, X, y + 0.03 * noise)


def test_an_estimate_of_single_rows_has_them(rng):
    def read_median(run):
        errors = (run.data.problem.target - run.trajectory.predictor) ** 2
        path = np.median(errors, axis=(1, 2))
        return HeldOut(path, 0.0 * path)

    X, y = drawn(rng)
    register_estimate(Estimate("median", "median squared error", read_median))
    try:
        assert fit_reduced(model_of("gd"), X, y) == "ColumnData"
    finally:
        unregister_estimate("median")


# ------------------------------------------------------------------- the parts


def test_unions_of_groups_have_the_moments_of_their_rows(rng):
    X, y = drawn(rng, n_targets=2)
    weights = rng.uniform(0.1, 2, (N_ROWS, 1))
    weights /= weights.sum()
    group = rng.integers(0, 4, N_ROWS)
    center = X.mean(axis=0)[:, None]
    problem = Problem(design_of(X, center), y, weights)
    rows, shares = pseudo_rows(moments_of(problem, group, 4))
    n_each = 1 + N_COLUMNS + 2
    assert rows.shape == (4 * n_each, N_COLUMNS + 2)
    own = np.repeat(np.arange(4), n_each)
    together = np.hstack([X - center.T, y])
    for union in ([0], [1, 3], [0, 1, 2, 3]):
        a, b = np.isin(group, union), np.isin(own, union)
        assert shares[b].sum() == pytest.approx(weights[a].sum())
        first = weights[a, 0] @ together[a]
        np.testing.assert_allclose(shares[b] @ rows[b], first, atol=1e-14)
        second = together[a].T @ (weights[a] * together[a])
        found = rows[b].T @ (shares[b, None] * rows[b])
        np.testing.assert_allclose(found, second, atol=1e-13)


def test_groups_are_in_the_same_parts_of_all_folds(rng):
    folds = [(rng.permutation(40)[:25], rng.permutation(40)[:20]) for _ in range(3)]
    parts = np.zeros((40, 3, 2), dtype=bool)
    for number, fold in enumerate(folds):
        for part, rows in enumerate(fold):
            parts[rows, number, part] = True
    codes = [parts_of_rows(fold, 40) for fold in folds]
    group, kinds = group_rows(codes, 40, 40)
    found = np.stack([kinds & 1, kinds & 2], axis=2) > 0
    np.testing.assert_array_equal(found[group], parts)
    assert len(kinds) == len(np.unique(parts.reshape(40, -1), axis=0))
    assert group_rows(codes, 40, len(kinds) - 1) is None
