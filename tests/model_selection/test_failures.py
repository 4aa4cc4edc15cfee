"""A candidate that fails has no score, and the others are compared without it."""

import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import mean_squared_log_error
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.optim.run import LiveRun
from tests.internals import default_members

TREES = HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=5, random_state=0)
LASSO, RIDGE = TrajectoryLasso("path", max_iter=3), IterativeRidge(0.0, max_iter=9)
# scikit-learn takes 255 bins at most, and says so when it is fitted.
BAD = HistGradientBoostingRegressor(max_bins=300)
BINS = [16, 300, 64]


def fitted(model, data, n_failed=1):
    """A model after a fit that warns of candidates that have failed."""
    with pytest.warns(
        FitFailedWarning, match=f"^{n_failed} fits? failed out of"
    ) as seen:
        model.fit(*data)
    (warning,) = [w for w in seen if w.category is FitFailedWarning]
    return model, str(warning.message)


def check_same_choice(model, other, data):
    """Two models are the same, but for what was left out of one of them."""
    np.testing.assert_allclose(model.path_, other.path_, rtol=1e-12)
    assert model.best_params_ == other.best_params_
    for name in ("best_score_", "best_score_corrected_", "possible_gain_"):
        np.testing.assert_allclose(
            getattr(model, name), getattr(other, name), rtol=1e-12
        )
    np.testing.assert_allclose(model.predict(data[0]), other.predict(data[0]), 1e-12)


@pytest.mark.parametrize(
    "settings", [{}, {"search": "race"}, {"n_jobs": 2}, {"time_limit": 1e3}], ids=str
)
def test_a_combination_that_fails_has_no_score(settings, data):
    cv = KFold(4, shuffle=True, random_state=0)
    model = TrajectoryEarlyStoppingCV(
        TREES, cv=cv, param_grid={"max_bins": BINS}, random_state=0, **settings
    )
    model, message = fitted(model, data)
    assert "'HistGradientBoostingRegressor' with {'max_bins': 300}: " in message
    assert "InvalidParameterError" in message
    # What scikit-learn's search does with the same folds.
    grid = GridSearchCV(
        TREES, {"max_bins": BINS}, cv=cv, scoring="neg_mean_squared_error"
    )
    with warnings.catch_warnings(action="ignore"):
        grid.fit(*data)
    ours, theirs = model.cv_results_, grid.cv_results_
    assert [one["max_bins"] for one in ours["params"]] == BINS
    for name in ("mean_test_score", "split1_test_score"):
        np.testing.assert_array_equal(np.isnan(ours[name]), np.isnan(theirs[name]))
    gain = ours["mean_test_score"] - theirs["mean_test_score"]
    assert gain[[0, 2]].min() > -1e-12  # that of the best stage
    assert ours["rank_test_score"][1] == theirs["rank_test_score"][1] == 3
    assert model.best_index_ == ours["rank_test_score"].argmin() != 1
    assert "max_bins" in model.results_["left_out"][1]
    without = TrajectoryEarlyStoppingCV(
        TREES, cv=cv, param_grid={"max_bins": [16, 64]}, random_state=0, **settings
    )
    check_same_choice(model, without.fit(*data), data)


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (TREES, {"max_iter": ["many", 5]}),
        (LASSO, {"cv": [99, 3]}),
        (LASSO, {"alpha": [[1.0, "b"], 0.1]}),
        (make_pipeline(StandardScaler(), TREES), {"standardscaler__copy": ["u", True]}),
    ],
    ids=str,
)
@pytest.mark.parametrize("limit", [None, 1e3])
def test_a_combination_that_fails_before_its_run(limit, estimator, grid, data):
    model = TrajectoryEarlyStoppingCV(estimator, param_grid=grid, time_limit=limit)
    model, _ = fitted(model, data)
    ((name, (_, good)),) = grid.items()
    assert model.best_params_[name] <= good
    assert list(np.isnan(model.cv_results_["mean_test_score"])) == [True, False]


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_a_member_that_fails_is_left_out(rule, data):
    members = [("lasso", LASSO), ("bad", BAD), ("ridge", RIDGE)]
    settings = {"rule": rule, "random_state": 0, "criterion": "cv"}
    model, _ = fitted(TrajectoryEarlyStoppingCV(members, **settings), data)
    del members[1]
    others = TrajectoryEarlyStoppingCV(members, **settings).fit(*data)
    check_same_choice(model, others, data)
    assert model.weights_ == others.weights_
    table = model.leaderboard()
    last = table.iloc[-1]
    assert last["member"] == "bad"
    assert np.isnan(last["score"])
    assert "InvalidParameterError" in last["left_out"]
    assert (table["left_out"][:-1] == "").all()


def test_a_default_member_that_fails_is_left_out(data, few_trees):
    data = data[0][:50, :4], data[1][:50]
    model = SelfStoppingRegressor(param_grid={"kernel__gamma": [-1.0]}, random_state=0)
    model, message = fitted(model, data)
    assert "'kernel' with {'gamma': -1.0}" in message
    assert set(model.weights_) == default_members("regression").keys() - {"kernel"}


def test_parameters_that_fail_in_a_list(data):
    members = [("lasso", LASSO), ("ridge", RIDGE)]
    grid = {"ridge__max_iter": ["a", 5], "lasso__tol": [-1.0]}
    model = TrajectoryEarlyStoppingCV(members, param_grid=grid, verbose=1)
    model, message = fitted(model, data, n_failed=2)
    assert "'ridge' with {'max_iter': 'a'}" in message
    assert model.best_params_ == {"max_iter": 5}
    assert list(np.isnan(model.cv_results_["mean_test_score"])) == [True, True, False]


def test_iterates_that_a_scorer_cannot_judge(rng):
    X = rng.standard_normal((60, 3))
    y = np.maximum(X[:, 0] + 1.5 + 0.3 * rng.standard_normal(60), 0)
    X[0, 0] = -8.0  # its prediction falls below -1 as the coefficients grow
    cv = KFold(3)
    model = TrajectoryEarlyStoppingCV(
        TrajectoryLasso("path", max_iter=3),
        criterion="neg_mean_squared_log_error",
        cv=cv,
    )
    with pytest.warns(UserWarning, match="Scoring failed. The score of .* is nan"):
        model.fit(X, y)
    folds = TrajectoryLasso("path", max_iter=3, cv=cv).fit(X, y)
    predictions = folds.cv_prediction_path_[:]
    scores = np.full(len(predictions), np.nan)
    for t, prediction in enumerate(predictions):
        if prediction.min() > -1:
            scores[t] = -mean_squared_log_error(folds.cv_target_, prediction)
    n_scored = np.isfinite(scores).sum()
    assert 0 < n_scored < len(scores)
    np.testing.assert_allclose(model.path_, scores[: len(model.path_)], rtol=1e-9)
    assert model.best_iter_ == np.nanargmax(scores[: len(model.path_)])


def test_a_member_that_a_scorer_cannot_judge(rng):
    X = rng.standard_normal((60, 3))
    y = np.exp(X[:, 0]) - 1
    X[:, 0] *= 40.0
    ridge = IterativeRidge(0.0, fit_intercept=False, solver="newton", max_iter=1)
    members = [("trees", TREES), ("ridge", ridge)]
    settings = {"criterion": "neg_mean_squared_log_error", "random_state": 0, "cv": 3}
    model = TrajectoryEarlyStoppingCV(members, **settings)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model.fit(X, y)
    assert any("Scoring failed" in str(w.message) for w in seen)
    trees = TrajectoryEarlyStoppingCV(members[:1], **settings).fit(X, y)
    assert model.best_member_ == "trees"
    assert model.best_score_ == trees.best_score_


def test_all_fail(data):
    model = TrajectoryEarlyStoppingCV([("worse", BAD), ("as bad", BAD)])
    with pytest.raises(ValueError, match="'max_bins' parameter") as raised:
        model.fit(*data)
    assert raised.value.__notes__ == [
        "This is the error of 'worse'. All 2 candidates failed."
    ]
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_candidate_raises_its_own_error(data):
    with pytest.raises(ValueError, match="'max_bins' parameter") as raised:
        TrajectoryEarlyStoppingCV(BAD).fit(*data)
    assert not getattr(raised.value, "__notes__", [])


@pytest.mark.parametrize("bad", ["X", "y", "weights", "groups"])
def test_bad_data_are_no_failures(bad, data):
    X, y = data[0].copy(), data[1].copy()
    params = {}
    if bad == "X":
        X[0, 0] = np.nan
    elif bad == "y":
        y[0] = np.inf
    elif bad == "weights":
        params["sample_weight"] = -np.ones(len(y))
    else:
        params["groups"] = np.arange(3)
    model = TrajectoryEarlyStoppingCV([("trees", TREES), ("lasso", LASSO)], cv=3)
    with warnings.catch_warnings(action="error"), pytest.raises(ValueError):
        model.fit(X, y, **params)


def test_an_interrupt_ends_the_fit(data, monkeypatch):
    def interrupted(*args, **params):
        raise KeyboardInterrupt

    monkeypatch.setattr(LiveRun, "go_on", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TrajectoryEarlyStoppingCV([("ridge", RIDGE), ("lasso", LASSO)]).fit(*data)


class Picky(Exception):
    """An error that cannot be unpickled."""

    def __init__(self, what, why):
        super().__init__(f"{what}: {why}")


class PickyTrees(HistGradientBoostingRegressor):
    """Trees that do not grow."""

    def fit(self, X, y, **params):
        raise Picky("this", "that")


def test_errors_travel_between_processes(data):
    members = [("ridge", RIDGE), ("trees", PickyTrees()), ("lasso", LASSO)]
    model = TrajectoryEarlyStoppingCV(members, n_jobs=2, cv=3)
    model, _ = fitted(model, data)
    first, why, last = model.results_["left_out"]
    assert first == last == ""
    assert "Picky: this: that" in why
