"""Leave-one-out and folds along the path: by definition, what refits would cost."""

import joblib
import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from skacv import IterativeRidge, TrajectoryElasticNet, TrajectoryLasso
from tests.cases import covering
from tests.oracles import left_out_one_by_one, refitted_predictions

MODELS = {
    "gd": IterativeRidge(2.0, solver="gd"),
    "least_squares": IterativeRidge(0.0, solver="gd"),
    "nesterov": IterativeRidge(2.0, solver="nesterov"),
    "heavy_ball": IterativeRidge(2.0, solver="heavy_ball"),
    "ista": TrajectoryLasso(0.05, solver="ista"),
    "fista": TrajectoryLasso(0.05, solver="fista"),
    "elastic_net_ista": TrajectoryElasticNet(0.1, solver="ista"),
    "elastic_net_fista": TrajectoryElasticNet(0.1, solver="fista"),
}
SHAPES = [(24, 8), (16, 50)]
EXACT = {"rtol": 0, "atol": 1e-8}


def drawn(shape, rng, n_targets=None):
    X = (rng.standard_normal(shape) + 0.5) * (rng.random(shape) < 0.7)
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(shape[0]) + 3
    if n_targets:
        y = y[:, None] + rng.standard_normal((shape[0], n_targets))
    return X, y


def model_of(name, **params):
    return clone(MODELS[name]).set_params(max_iter=30, tol=0, risk=False, **params)


of_every_kind = covering(
    name=MODELS,
    shape=SHAPES,
    fit_intercept=[True, False],
    weighted=[False, True],
    storage=[np.asarray, sparse.csr_matrix],
)


@of_every_kind
def test_leave_one_out_is_that_of_refits(
    name, shape, fit_intercept, weighted, storage, rng
):
    X, y = drawn(shape, rng)
    weights = rng.uniform(0.3, 3, shape[0]) if weighted else None
    X = storage(X)
    model = model_of(name, fit_intercept=fit_intercept, loo=True)
    model.fit(X, y, sample_weight=weights)
    expected = left_out_one_by_one(model, X, y, range(shape[0]), weights)
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)
    errors = (expected - y) ** 2
    path = np.average(errors, axis=1, weights=weights)
    np.testing.assert_allclose(model.loo_path_, path, **EXACT)
    np.testing.assert_array_equal(model.loo_indices_, np.arange(shape[0]))
    if not weighted:
        spread = errors.std(axis=1, ddof=1) / np.sqrt(shape[0])
        np.testing.assert_allclose(model.loo_se_path_, spread, **EXACT)


@of_every_kind
def test_folds_are_refits(name, shape, fit_intercept, weighted, storage, rng):
    X, y = drawn(shape, rng)
    weights = rng.uniform(0.3, 3, shape[0]) if weighted else None
    X = storage(X)
    splitter = KFold(8, shuffle=True, random_state=0)
    model = model_of(name, fit_intercept=fit_intercept, loo=False, cv=splitter)
    model.fit(X, y, sample_weight=weights)
    errors, sizes, predictions = [], [], []
    for fold, (fitted, judged) in enumerate(splitter.split(X)):
        np.testing.assert_array_equal(model.cv_indices_[fold], judged)
        found = refitted_predictions(model, X, y, fitted, judged, weights)
        own = None if weights is None else weights[judged]
        errors.append(np.average((found - y[judged]) ** 2, axis=1, weights=own))
        sizes.append(len(judged) if own is None else own.sum())
        predictions.append(found)
    predictions = np.concatenate(predictions, axis=1)
    np.testing.assert_allclose(model.cv_prediction_path_, predictions, **EXACT)
    np.testing.assert_allclose(model.cv_fold_path_, np.transpose(errors), **EXACT)
    path = np.average(errors, axis=0, weights=sizes)
    np.testing.assert_allclose(model.cv_path_, path, **EXACT)


@pytest.mark.parametrize("name", ["gd", "nesterov", "fista"])
def test_along_a_sequence_of_alphas(name, rng):
    """With the same number of updates at every value, as tol=0 makes it."""
    X, y = drawn((20, 30), rng)
    model = model_of(name, alpha=[0.2, 0.1, 0.01], loo=True, cv=5).fit(X, y)
    assert model.n_iter_ == 90
    expected = left_out_one_by_one(model, X, y, range(20))
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)
    for (fitted, judged), path in zip(KFold(5).split(X), model.cv_fold_path_.T):
        found = refitted_predictions(model, X, y, fitted, judged)
        np.testing.assert_allclose(((found - y[judged]) ** 2).mean(1), path, **EXACT)


@covering(shape=SHAPES, weighted=[False, True])
def test_several_targets(shape, weighted, rng):
    X, Y = drawn(shape, rng, n_targets=3)
    weights = rng.uniform(0.3, 3, shape[0]) if weighted else None
    model = model_of("nesterov", loo=True, cv=8).fit(X, Y, sample_weight=weights)
    expected = left_out_one_by_one(model, X, Y, range(shape[0]), weights)
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)
    costs = ((expected - Y) ** 2).mean(axis=2)
    path = np.average(costs, axis=1, weights=weights)
    np.testing.assert_allclose(model.loo_path_, path, **EXACT)
    fitted, judged = next(KFold(8).split(X))
    found = refitted_predictions(model, X, Y, fitted, judged, weights)
    held_out = model.cv_prediction_path_[:, : len(judged)]
    np.testing.assert_allclose(held_out, found, **EXACT)


@pytest.mark.parametrize("name", ["gd", "nesterov", "ista", "fista"])
def test_continued_trajectories_are_left_out_from_their_start(name, rng):
    X, y = drawn((20, 30), rng)
    whole = model_of(name, loo=True, cv=5).fit(X, y)
    part = model_of(name, loo=True, cv=5).set_params(max_iter=13, warm_start=True)
    part.fit(X, y).set_params(max_iter=30).fit(X, y)
    np.testing.assert_allclose(part.loo_path_, whole.loo_path_, rtol=1e-10)
    np.testing.assert_allclose(part.cv_path_, whole.cv_path_, rtol=1e-10)


@covering(name=["gd", "heavy_ball", "fista", "elastic_net_ista"], shape=SHAPES)
def test_started_from_other_data(name, shape, rng):
    """A start that other rows gave: every replica starts there too."""
    X, y = drawn(shape, rng)
    model = model_of(name, warm_start=True).fit(X[::-1] + 1, y)
    refit = clone(model).set_params(warm_start=True)
    with pytest.warns(UserWarning, match="other data"):
        model.set_params(loo=True, cv=4).fit(X, y)
    start = model.coef_path_[0]
    assert start.any()
    every = np.arange(len(y))
    for i in (0, 7):
        refit = clone(refit).set_params(step_size=model.step_size_)
        refit.fit(X[::-1] + 1, y)
        refit.coef_, refit.coef_path_ = start, start[None]
        refit.intercept_path_, refit.iteration_ = refit.intercept_path_[:1], 0
        refit.train_path_ = np.array([-1.0])
        with pytest.warns(UserWarning, match="other data"):
            refit.fit(X[every != i], y[every != i])
        found = np.array(list(refit.staged_predict(X[[i]])))[:, 0]
        np.testing.assert_allclose(model.loo_prediction_path_[:, i], found, **EXACT)


@pytest.mark.parametrize("name", ["gd", "fista"])
def test_single_precision(name, rng):
    X, y = drawn((40, 60), rng)
    double = model_of(name, loo=True, cv=4).fit(X, y)
    single = model_of(name, loo=True, cv=4, step_size=double.step_size_)
    single.fit(X.astype(np.float32), y.astype(np.float32))
    assert single.loo_prediction_path_.dtype == np.float32
    np.testing.assert_allclose(single.loo_path_, double.loo_path_, rtol=1e-4)
    np.testing.assert_allclose(single.cv_path_, double.cv_path_, rtol=1e-4)


@pytest.mark.parametrize("name", ["gd", "fista"])
def test_a_subset_of_rows(name, rng):
    X, y = drawn((60, 20), rng)
    whole = model_of(name, loo=True).fit(X, y)
    some = model_of(name, loo=15, random_state=3).fit(X, y)
    assert len(some.loo_indices_) == len(np.unique(some.loo_indices_)) == 15
    expected = whole.loo_prediction_path_[:, some.loo_indices_]
    np.testing.assert_allclose(some.loo_prediction_path_, expected, **EXACT)
    costs = (expected - y[some.loo_indices_]) ** 2
    np.testing.assert_allclose(some.loo_path_, costs.mean(axis=1), **EXACT)
    again = clone(some).fit(X, y)
    np.testing.assert_array_equal(again.loo_indices_, some.loo_indices_)


def test_automatic_leave_one_out_keeps_to_what_is_cheap(rng):
    X, y = drawn((400, 900), rng)
    assert len(IterativeRidge(max_iter=5).fit(X, y).loo_indices_) == 400
    lasso = TrajectoryLasso(1e-3, max_iter=100, random_state=0, tol=0, risk=False)
    dense = clone(lasso).fit(X, y)  # replicas of many columns: more than folds cost
    assert not hasattr(dense, "loo_path_")
    # Of some fifty columns, all of which explain noise: from 37 to 70 would do.
    noise = rng.standard_normal(400)
    slopes = np.sort(np.abs((X - X.mean(axis=0)).T @ noise) / 400)
    between = clone(lasso).set_params(alpha=slopes[-50]).fit(X, noise)
    assert 100 <= len(between.loo_indices_) < 400
    narrow = lasso.set_params(alpha=1.0).fit(X, y)
    assert len(narrow.loo_indices_) == 400


def test_rows_of_zero_weight_are_neither_left_out_nor_in_folds(rng):
    X, y = drawn((30, 5), rng)
    weights = np.tile([1.0, 0.0, 1.0], 10)
    kept = np.flatnonzero(weights)
    model = model_of("fista", loo=True, cv=6).fit(X, y, sample_weight=weights)
    alone = model_of("fista", loo=True, step_size=model.step_size_)
    alone.fit(X[kept], y[kept])
    np.testing.assert_array_equal(model.loo_indices_, kept)
    np.testing.assert_allclose(model.loo_path_, alone.loo_path_)
    for rows, (_, judged) in zip(model.cv_indices_, KFold(6).split(X)):
        np.testing.assert_array_equal(rows, np.intersect1d(judged, kept))


# -------------------------------------------------------------------- splitters


@pytest.mark.parametrize(
    "splitter",
    [
        LeaveOneOut(),
        ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
        TimeSeriesSplit(2),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        PredefinedSplit(np.arange(24) % 3 - 1),
        [(np.arange(10), np.arange(12, 24))],
    ],
    ids=lambda splitter: type(splitter).__name__,
)
def test_any_splitter(splitter, rng):
    X, y = drawn((24, 6), rng)
    # Small enough for folds of few rows, whose largest stable step is smaller.
    model = model_of("fista", loo=False, cv=splitter, step_size=0.2).fit(X, y)
    splits = splitter if isinstance(splitter, list) else list(splitter.split(X))
    errors = [
        ((refitted_predictions(model, X, y, *split) - y[split[1]]) ** 2).mean(axis=1)
        for split in splits
    ]
    np.testing.assert_allclose(model.cv_fold_path_, np.transpose(errors), **EXACT)
    assert np.isfinite(model.cv_se_path_).all()
    if len(splits) > 1:
        spread = np.std(errors, axis=0, ddof=1) / np.sqrt(len(splits))
        # Rows that are held out repeatedly do not make folds independent.
        counts = np.bincount(np.concatenate([judged for _, judged in splits]))
        spread *= np.sqrt(np.sum(counts**2) / np.sum(counts))
        sizes = np.array([len(judged) for _, judged in splits])
        if np.ptp(sizes) == 0:
            np.testing.assert_allclose(model.cv_se_path_, spread, **EXACT)


def test_leave_one_out_is_a_splitter_too(rng):
    X, y = drawn((24, 6), rng)
    model = model_of("fista", loo=True, cv=LeaveOneOut()).fit(X, y)
    np.testing.assert_allclose(model.cv_path_, model.loo_path_, **EXACT)


def test_groups_stay_together(rng):
    X, y = drawn((24, 6), rng)
    groups = np.arange(24) % 6
    model = model_of("gd", cv=GroupKFold(3)).fit(X, y, groups=groups)
    for judged in model.cv_indices_:
        others = np.setdiff1d(np.arange(24), judged)
        assert not np.intersect1d(groups[judged], groups[others]).size
    with sklearn.config_context(enable_metadata_routing=True):
        splitter = GroupKFold(3).set_split_request(groups=True)
        routed = model_of("gd", cv=splitter).fit(X, y, groups=groups)
    np.testing.assert_array_equal(routed.cv_path_, model.cv_path_)


# --------------------------------------------------------------------- parallel


@covering(backend=["loky", "threading"], name=["gd", "fista"])
def test_blocks_in_parallel(name, backend, rng):
    X, y = drawn((40, 60), rng)
    alone = model_of(name, loo=True, cv=4).fit(X, y)
    with joblib.parallel_backend(backend):
        together = model_of(name, loo=True, cv=4, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(together.loo_path_, alone.loo_path_, **EXACT)
    np.testing.assert_allclose(together.cv_path_, alone.cv_path_, **EXACT)


def test_blocks_on_dask(rng):
    distributed = pytest.importorskip("distributed")
    X, y = drawn((40, 60), rng)
    alone = model_of("fista", loo=True, cv=4).fit(X, y)
    client = distributed.Client(
        processes=False, n_workers=1, threads_per_worker=2, dashboard_address=None
    )
    with client, joblib.parallel_backend("dask"):
        together = model_of("fista", loo=True, cv=4, n_jobs=2).fit(X, y)
    np.testing.assert_allclose(together.loo_path_, alone.loo_path_, **EXACT)
    np.testing.assert_allclose(together.cv_path_, alone.cv_path_, **EXACT)


# -------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"loo": 31}, ValueError, "loo=31 is more than the 30 rows"),
        ({"loo": 1}, ValueError, "loo"),
        ({"loo": "all"}, ValueError, "loo"),
        ({"cv": 31}, ValueError, "n_splits=31"),
        ({"cv": 1}, ValueError, "cv"),
        ({"cv": "five"}, ValueError, "cv"),
        ({"cv": [(np.arange(30), [])]}, ValueError, "Fold 0 .* hold out"),
        ({"cv": [(range(9), [9]), ([], [1])]}, ValueError, "Fold 1 .* fit on"),
        ({"cv": []}, ValueError, "no folds"),
        ({"cv": [(range(9), [30])]}, ValueError, "Fold 0 .* beyond the 30"),
        ({"cv": GroupKFold(3)}, ValueError, "groups"),
    ],
)
@pytest.mark.parametrize("name", ["gd", "fista"])
def test_bad_input_changes_nothing(name, params, error, message, rng):
    X, y = drawn((30, 5), rng)
    model = model_of(name).fit(X, y)
    before = vars(model).copy()
    bad = model.set_params(**params)
    with pytest.raises(error, match=message):
        bad.fit(X, y)
    after = {**vars(model), **{key: before[key] for key in params}}
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)


def test_folds_of_weightless_rows_are_refused(rng):
    X, y = drawn((30, 5), rng)
    weights = np.r_[np.zeros(10), np.ones(20)]
    with pytest.raises(ValueError, match="Fold 0 of cv leaves no row"):
        model_of("gd", cv=3).fit(X, y, sample_weight=weights)


def test_metadata_that_nobody_asked_for_is_refused(rng):
    X, y = drawn((30, 5), rng)
    with pytest.raises(ValueError, match="cv=None"):
        model_of("gd").fit(X, y, groups=np.arange(30))
    with pytest.raises(TypeError, match="unexpected"):
        model_of("gd", cv=3).fit(X, y, colour=1)


@pytest.mark.filterwarnings("ignore:The largest column of X is")
def test_leave_one_out_of_two_rows(rng):
    X, y = drawn((2, 5), rng)
    with pytest.raises(ValueError, match="at least 3 rows"):
        model_of("gd", loo=True).fit(X, y)
    assert not hasattr(model_of("gd").fit(X, y), "loo_path_")


@pytest.mark.parametrize("name", ["gd", "nesterov", "fista"])
def test_the_automatic_step_is_stable_on_five_folds(name, rng):
    """Fewer rows have a larger top eigenvalue, by a quarter at most."""
    X, y = drawn((20, 100), rng)
    model = model_of(name, cv=5).set_params(alpha=1e-3, max_iter=300).fit(X, y)
    for fitted, judged in KFold(5).split(X):  # raises where iterates diverge
        refitted_predictions(model, X, y, fitted, judged)


@pytest.mark.parametrize("solver", ["gd", "nesterov", "heavy_ball"])
def test_the_automatic_step_is_stable_without_a_heavy_row_too(solver, rng):
    """Without most of the weight the others' eigenvalue is larger."""
    X, y = drawn((20, 3), rng)
    weights = np.r_[100.0, np.ones(19)]
    model = IterativeRidge(0.0, solver=solver, max_iter=150, tol=0).fit(X, y, weights)
    for i in range(20):
        stays = np.arange(20) != i
        expected = refitted_predictions(model, X, y, stays, [i], weights)[:, 0]
        # A refit ends where no coefficient moves.
        expected = np.pad(expected, (0, 151 - len(expected)), mode="edge")
        found = model.loo_prediction_path_[:, i]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
    steps = np.abs(np.diff(model.loo_prediction_path_, axis=0))
    assert steps[-50:].max() < steps[:50].max()
    alone = clone(model).set_params(loo=False).fit(X, y, weights)
    assert alone.step_size_ == model.step_size_


CONSTANTS = [
    (np.asarray, 0.0),
    (np.asarray, 1990.1),
    (sparse.csr_matrix, 0.0),
    (sparse.csr_matrix, 1.0),
]


@covering(name=MODELS, shape=[(30, 3), (150, 140)], constant=CONSTANTS)
def test_constant_columns_say_nothing(name, shape, constant, rng):
    storage, value = constant
    y = rng.standard_normal(shape[0])
    model = model_of(name, cv=3).set_params(risk="auto", alpha=0.0)
    model.fit(storage(np.full(shape, value)), y)
    np.testing.assert_allclose(model.predict(np.full(shape, value)), y.mean())
    left_out = np.mean((y - y.mean()) ** 2) * (len(y) / (len(y) - 1)) ** 2
    np.testing.assert_allclose(model.loo_path_, left_out)
    np.testing.assert_allclose(model.risk_path_, model.risk_path_[0])
    assert np.ptp(model.cv_path_) < 1e-8


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MODELS)
def test_large_means_in_single_precision(name, shape, rng):
    """Of which X is known to 6e-5: a coefficient smaller than that comes and goes.

    With it comes and goes its part in the traces, of that iterate and all later ones;
    in one of these draws none does.
    """
    for _ in range(6):
        X, y = drawn(shape, rng)
        near = model_of(name).set_params(risk="exact").fit(X, y)
        far = clone(near).fit((X + 1000).astype(np.float32), y.astype(np.float32))
        np.testing.assert_allclose(far.loo_path_, near.loo_path_, rtol=5e-3)
        differs = (near.coef_path_ != 0) != (far.coef_path_ != 0)
        for model in (near, far):
            assert np.abs(model.coef_path_[differs]).max(initial=0) < 1e-4
        agree = ~np.logical_or.accumulate(differs.any(axis=1))
        error = np.abs(far.risk_path_ / near.risk_path_ - 1)
        assert error[agree].max() < 1e-3
        if agree.all():
            return
    pytest.fail("coefficients come and go in every draw")


@pytest.mark.parametrize("name", ["gd", "nesterov", "fista"])
def test_folds_that_diverge_are_refused(name, rng):
    X, y = drawn((20, 100), rng)
    model = model_of(name, loo=False).set_params(alpha=1e-3, max_iter=300).fit(X, y)
    largest = {"gd": 1.98, "nesterov": 1.32, "fista": 1.32}[name]
    model.set_params(step_size=largest * model.step_size_).fit(X, y)
    with pytest.raises(ValueError, match="where rows are left out"):
        model.set_params(cv=2).fit(X, y)


def test_left_out_rows_that_diverge_are_refused(rng):
    """Without a row of zeros the mean of the others' squares is larger."""
    X, y = drawn((12, 3), rng)
    X[0] = 0
    model = IterativeRidge(0.0, loo=True, tol=0, max_iter=800, risk=False)
    top = np.linalg.norm(X, 2) ** 2 / 12
    model.set_params(step_size=1.999 / top, fit_intercept=False)
    with pytest.raises(ValueError, match="where rows are left out"):
        model.fit(X.astype(np.float32), y.astype(np.float32))


@pytest.mark.parametrize("name", ["gd", "nesterov", "heavy_ball", "ista", "fista"])
def test_rows_that_diverge_slowly_are_refused(name, rng):
    """Far from overflow, but without the heavy row the step is too large."""
    X, _ = drawn((20, 3), rng)
    # Near the mean of the others, which have 2/9 of the weight: without it the top
    # eigenvalue is 4.5 times as large, the heavy ball is stable up to 3.8 times.
    X[0] = 0.03 * X[0] + 0.97 * X[1:].mean(axis=0)
    y = 2 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(20) + 3
    weights = np.r_[66.5, np.ones(19)]
    share = weights / weights.sum()
    centred = X - share @ X
    largest = np.linalg.eigvalsh(centred.T @ (share[:, None] * centred))[-1]
    model = model_of(name, loo=False, step_size=1 / largest)
    model.set_params(max_iter=100, alpha=0.0).fit(X, y, weights)
    model.set_params(loo=True)
    with pytest.raises(ValueError, match="where rows are left out") as raised:
        model.fit(X, y, weights)
    stable = float(str(raised.value).split("stable step is ")[1].split()[0])
    model.set_params(step_size=0.99 * stable).fit(X, y, weights)
    assert model.loo_path_[-1] < model.loo_path_[0]
