"""Boosted models of survival times: their stages are those of fits with as many."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import Staged, TrajectoryCoxRegressor, TrajectoryEarlyStoppingCV
from tests.optim.test_cox import partial_likelihood

N_STAGES, N_ROWS = 12, 150
FOLDS = KFold(3, shuffle=True, random_state=0)


def trees(**params):
    ensemble = pytest.importorskip("sksurv.ensemble")
    return ensemble.GradientBoostingSurvivalAnalysis(
        n_estimators=N_STAGES, random_state=0, **params
    )


def components(**params):
    ensemble = pytest.importorskip("sksurv.ensemble")
    return ensemble.ComponentwiseGradientBoostingSurvivalAnalysis(
        n_estimators=N_STAGES, random_state=0, **params
    )


def xgboost(**params):
    library = pytest.importorskip("xgboost")
    return library.XGBRegressor(
        n_estimators=N_STAGES, objective="survival:cox", n_jobs=1, **params
    )


def catboost(**params):
    library = pytest.importorskip("catboost")
    settings = {"iterations": N_STAGES, "learning_rate": 0.1, "thread_count": 1}
    return library.CatBoostRegressor(
        loss_function="Cox", verbose=False, **settings, **params
    )


BOOSTERS = {
    "trees": trees,
    "trees, subsample": lambda: trees(subsample=0.5, max_features=2),
    "components": components,
    "components, subsample": lambda: components(subsample=0.5),
    "xgboost": xgboost,
    "xgboost, subsample": lambda: xgboost(subsample=0.5, colsample_bytree=0.6),
    "catboost": catboost,
}
OF_SCIKIT_SURVIVAL = [name for name in BOOSTERS if "boost" not in name]


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 5))


@pytest.fixture
def y(X, rng):
    time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, N_ROWS)
    pairs = np.empty(N_ROWS, [("cens", bool), ("t", float)])
    pairs["cens"], pairs["t"] = time <= end, np.ceil(20 * np.minimum(time, end))
    return pairs


def signed(y):
    return np.where(y["cens"], y["t"], -y["t"])


def target_for(name, y):
    """What the library itself takes."""
    return signed(y) if "boost" in name else y


def fresh(name, n_stages, X, y):
    """A fit with so many stages."""
    estimator = BOOSTERS[name]()
    count = "iterations" if name == "catboost" else "n_estimators"
    return estimator.set_params(**{count: n_stages}).fit(X, target_for(name, y))


@pytest.mark.parametrize("name", BOOSTERS)
def test_stages_are_fits_with_as_many(name, X, y):
    run = Staged(BOOSTERS[name](), cv=FOLDS).begin(X, y)
    for n_stages in (5, None):  # they go on
        run.go_on(n_stages)
    model = Staged(BOOSTERS[name](), cv=FOLDS).take(run.end())
    expected = fresh(name, N_STAGES, X, y).predict(X)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-5)
    staged = list(model.staged_predict(X))
    for t in (1, 5, 7):
        expected = fresh(name, t, X, y).predict(X)
        for found in (staged[t - 1], model.at_iteration(t).predict(X)):
            np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("name", BOOSTERS)
def test_folds_are_judged_together(name, X, y):
    model = Staged(BOOSTERS[name](), cv=FOLDS).fit(X, y)
    pooled = np.empty((N_STAGES + 1, N_ROWS))
    pooled[0] = 1 if "xgboost" in name else 0
    for fitted, held_out in FOLDS.split(X):
        for t in (1, 6, N_STAGES):
            alone = fresh(name, t, X[fitted], y[fitted])
            pooled[t, held_out] = alone.predict(X[held_out])
    rows, ones = np.concatenate(model.cv_indices_), np.ones(N_ROWS)
    np.testing.assert_array_equal(model.cv_target_["time"], y["t"][rows])
    for t in (0, 1, 6, N_STAGES):
        predicted = model.cv_prediction_path_[t]
        np.testing.assert_allclose(predicted, pooled[t, rows], rtol=1e-5)
        z = np.log(pooled[t]) if "xgboost" in name else pooled[t]
        expected = partial_likelihood(signed(y), z, ones, "breslow") / N_ROWS
        np.testing.assert_allclose(model.cv_path_[t], expected, rtol=1e-5)
    train = np.log(model.predict(X)) if "xgboost" in name else model.predict(X)
    expected = partial_likelihood(signed(y), train, ones, "breslow") / N_ROWS
    np.testing.assert_allclose(model.train_path_[-1], expected, rtol=1e-5)
    np.testing.assert_allclose(model.staged_loss(X, y)[-1], expected, rtol=1e-5)


@pytest.mark.parametrize("name", OF_SCIKIT_SURVIVAL)
def test_survival_functions_of_every_stage(name, X, y):
    model = Staged(BOOSTERS[name]()).fit(X, y)
    for t in (1, 7, N_STAGES):
        expected, found = fresh(name, t, X, y), model.at_iteration(t)
        for fitted in (found, pickle.loads(pickle.dumps(found)), found.drop_record()):
            for kind in ("survival", "cumulative_hazard"):
                method = f"predict_{kind}_function"
                np.testing.assert_allclose(
                    getattr(fitted, method)(X[:4], return_array=True),
                    getattr(expected, method)(X[:4], return_array=True),
                    rtol=1e-9,
                )
        function = found.predict_survival_function(X[:1])[0]
        np.testing.assert_array_equal(function.x, np.unique(y["t"]))
        assert found.score(X, y) == pytest.approx(expected.score(X, y))


@pytest.mark.parametrize("name", ["trees", "components", "xgboost", "catboost"])
@pytest.mark.parametrize("criterion", ["auto", "concordance", "ibs"])
def test_they_stop_at_their_best_stage(name, criterion, X, y):
    stopping = TrajectoryEarlyStoppingCV(
        BOOSTERS[name](), criterion=criterion, cv=FOLDS, patience=None
    )
    stopping.fit(X, y)
    whole = Staged(BOOSTERS[name](), cv=FOLDS).fit(X, y)
    if criterion == "auto":
        assert stopping.best_iter_ == 1 + whole.cv_path_[1:].argmin()
    best = fresh(name, stopping.best_iter_, X, y)
    np.testing.assert_allclose(stopping.predict(X), best.predict(X), rtol=1e-5)
    assert stopping.score(X, y) > 0.6


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_survival_functions_have_hazards_of_held_out_rows(name, weighted, X, y, rng):
    weights = rng.integers(1, 3, N_ROWS).astype(float) if weighted else np.ones(N_ROWS)
    model = TrajectoryEarlyStoppingCV(BOOSTERS[name](), cv=FOLDS, patience=None)
    model.fit(X, y, sample_weight=weights)
    staged, t = model.estimator_, model.best_iter_
    rows = np.concatenate(staged.cv_indices_)
    held_out, new = staged.cv_prediction_path_[t], model.predict(X[:5])
    if name == "catboost":  # logarithms of hazard ratios
        held_out, new = np.exp(held_out), np.exp(new)
    event, time, weights = y["cens"][rows], y["t"][rows], weights[rows]
    times, hazard, hazards = np.unique(y["t"]), 0.0, []
    for s in times:
        dead = weights[event & (time == s)].sum()
        hazard += dead / (weights * held_out)[time >= s].sum()
        hazards.append(hazard)
    expected = np.outer(new, hazards)
    for found in (model, model.drop_record(), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(
            found.predict_cumulative_hazard_function(X[:5], return_array=True),
            expected,
            rtol=1e-5,
        )
        function = found.predict_survival_function(X[:5])[2]
        np.testing.assert_allclose(function(times), np.exp(-expected[2]), rtol=1e-5)
        assert function(0) == 1
    without_folds = Staged(BOOSTERS[name]()).fit(X, y)
    with pytest.raises(AttributeError, match="need held-out rows: set cv"):
        without_folds.predict_survival_function(X)


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_signed_times_are_survival_times(name, X, y):
    settings = {"cv": FOLDS, "patience": None}
    models = [
        TrajectoryEarlyStoppingCV(BOOSTERS[name](), **settings).fit(X, target)
        for target in (y, signed(y), (y["cens"], y["t"]))
    ]
    for model in models[1:]:
        np.testing.assert_array_equal(model.path_, models[0].path_)
    assert models[1].score(X, signed(y)) == models[0].score(X, y)
    # Only the order of the times counts, also where single precision has none.
    late = y.copy()
    late["t"] += 1e9
    model = TrajectoryEarlyStoppingCV(BOOSTERS[name](), **settings).fit(X, late)
    np.testing.assert_array_equal(model.path_, models[0].path_)


def test_members_of_several_libraries(X, y):
    members = [
        ("trees", make_pipeline(StandardScaler(), trees())),
        ("xgboost", xgboost()),
        ("catboost", catboost()),
        ("linear", TrajectoryCoxRegressor("path", max_iter=20)),
    ]
    stopping = TrajectoryEarlyStoppingCV(members, cv=FOLDS).fit(X, y)
    scores = {name: path.min() for name, path in stopping.member_paths_.items()}
    assert stopping.best_member_ == min(scores, key=scores.get)
    with pytest.raises(ValueError, match="structured array"):
        TrajectoryEarlyStoppingCV(members).fit(X, signed(y))


@pytest.mark.parametrize("name", BOOSTERS)
def test_weights_of_rows(name, X, y, rng):
    weights = rng.integers(0, 3, N_ROWS).astype(float)
    model = Staged(BOOSTERS[name](), cv=FOLDS).fit(X, y, sample_weight=weights)
    kept = weights > 0
    alone = BOOSTERS[name]().fit(
        X[kept], target_for(name, y[kept]), sample_weight=weights[kept]
    )
    np.testing.assert_allclose(model.predict(X), alone.predict(X), rtol=1e-5)
    rows = np.concatenate(model.cv_indices_)
    z = np.asarray(model.cv_prediction_path_[-1])
    z = np.log(z) if "xgboost" in name else z
    expected = partial_likelihood(signed(y)[rows], z, weights[rows], "breslow")
    np.testing.assert_allclose(model.cv_path_[-1], expected / weights.sum())


def test_what_has_no_partial_likelihood_is_refused(X, y):
    for params, message in (
        ({"loss": "ipcwls"}, "predicts times"),
        ({"dropout_rate": 0.1}, "dropout_rate=0"),
    ):
        for make in (trees, components):
            with pytest.raises(ValueError, match=message):
                Staged(make(**params)).fit(X, y)
    with pytest.raises(ValueError, match="keep='model'"):
        Staged(trees(), cv=3, keep="mean").fit(X, y)
    with pytest.raises(ValueError, match="cannot be evaluated"):
        Staged(clone(xgboost()).set_params(objective="survival:aft")).fit(X, y["t"])
    with pytest.raises(AttributeError, match="hazards, not times"):
        Staged(xgboost(), cv=3).fit(X, y).predict_interval(X)
    rare = y.copy()
    rare["cens"] = np.arange(N_ROWS) < 10
    with pytest.raises(ValueError, match="fold 0 of cv: All rows are censored"):
        Staged(trees(), cv=KFold(3)).fit(X, rare)
