"""Members without stages: their held-out predictions are those of cross_val_predict."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, QuantileRegressor, Ridge
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, r2_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeRegressor

from skacv import (
    IterativeRidge,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

FOLDS = KFold(4, shuffle=True, random_state=0)
REGRESSORS = {
    "svr": make_pipeline(StandardScaler(), SVR(C=2.0)),
    "neighbours": KNeighborsRegressor(7),
    "process": GaussianProcessRegressor(alpha=0.5, optimizer=None),
    "ridge": Ridge(3.0),
}
CLASSIFIERS = {
    "bayes": GaussianNB(),
    "process": GaussianProcessClassifier(optimizer=None),
    "neighbours": KNeighborsClassifier(9),
    "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((90, 4))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(90)


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.select([y < -0.7, y < 0.7], ["low", "middle"], "high")


def test_held_out_predictions_are_those_of_cross_val_predict(data):
    X, y = data
    errors = {}
    for name, model in REGRESSORS.items():
        expected = cross_val_predict(model, X, y, cv=FOLDS)
        errors[name] = mean_squared_error(y, expected)
        # Beside a constant it is kept, with its whole fit as the only stage.
        members = [(name, model), ("constant", DummyRegressor())]
        found = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="min").fit(X, y)
        np.testing.assert_allclose(found.held_out_prediction_, expected)
        assert found.best_member_ == name
        assert (found.best_iter_, found.best_params_) == (1, {})
        assert found.best_score_ == pytest.approx(errors[name])
        fitted = clone(model).fit(X, y)
        np.testing.assert_allclose(found.predict(X), fitted.predict(X))
    all_together = TrajectoryEarlyStoppingCV(list(REGRESSORS.items()), cv=FOLDS)
    all_together.set_params(rule="min").fit(X, y)
    assert all_together.best_member_ == min(errors, key=errors.get)
    scores = dict(zip(REGRESSORS, all_together.results_["best_score"]))
    assert scores == pytest.approx(errors)


def test_probabilities_are_those_of_cross_val_predict(labelled):
    X, y = labelled
    members = list(CLASSIFIERS.items())
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="blend", random_state=0)
    model.fit(X, y)
    losses, blend = [], 0
    for name, member in members:
        shares = cross_val_predict(member, X, y, cv=FOLDS, method="predict_proba")
        losses.append(log_loss(y, np.maximum(shares, np.finfo(float).eps)))
        blend = blend + model.weights_[name] * shares
    assert np.count_nonzero(list(model.weights_.values())) > 1
    np.testing.assert_allclose(model.results_["best_score"], losses, rtol=1e-6)
    np.testing.assert_allclose(model.held_out_prediction_, blend)
    assert model.best_score_ == pytest.approx(log_loss(y, blend))
    small = pickle.loads(pickle.dumps(model.drop_record()))
    np.testing.assert_array_equal(small.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(small.predict_set(X), model.predict_set(X))


def test_they_are_blended_with_models_that_stop_themselves(data):
    X, y = data
    members = [
        ("process", REGRESSORS["process"]),
        ("ridge", IterativeRidge(0.0)),
        ("trees", HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5)),
    ]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="blend", random_state=0)
    model.fit(X, y)
    table = model.leaderboard()
    assert set(table["member"]) == {"blend", "process", "ridge", "trees"}
    assert model.weights_["process"] > 0
    assert model.best_score_ < table["score"].iloc[1:].min() + 1e-12
    sizes = np.sort(np.abs(y - model.held_out_prediction_))
    ends = model.predict_interval(X, coverage=0.8, method="cv")
    width = 2 * sizes[int(np.ceil(0.8 * 91)) - 1]
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], width)


def test_decisions_without_probabilities_are_judged_by_labels(labelled):
    X, y = labelled
    # Unless it breaks ties, its labels of several classes are not those of decisions.
    members = [("svc", SVC(break_ties=True)), ("bayes", GaussianNB())]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="min").fit(X, y)
    for name, member in members:
        expected = accuracy_score(y, cross_val_predict(member, X, y, cv=FOLDS))
        table = model.leaderboard().set_index("member")
        assert table.loc[name, "score"] == pytest.approx(expected)
    with pytest.raises(ValueError, match=r"'svc' \(SVC\) has no predict_proba"):
        model.set_params(rule="blend").fit(X, y)


def test_weights_reach_those_that_take_them(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 90)
    members = [
        ("ridge", Ridge(3.0)),
        ("tree", DecisionTreeRegressor(max_depth=2, random_state=0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="min")
    model.fit(X, y, sample_weight=weights)
    for name, member in members:
        total = 0.0
        for fitted, held_out in FOLDS.split(X):
            copy = clone(member).fit(X[fitted], y[fitted], weights[fitted])
            errors = (y[held_out] - copy.predict(X[held_out])) ** 2
            total += weights[held_out] @ errors
        scores = dict(zip(model.results_["member"], model.results_["best_score"]))
        assert scores[name] == pytest.approx(total / weights.sum())
    members.append(("neighbours", KNeighborsRegressor()))
    with pytest.warns(
        FitFailedWarning, match="unexpected keyword argument 'sample_weight'"
    ):
        model.set_params(estimator=members).fit(X, y, sample_weight=weights)
    assert model.best_member_ in ("ridge", "tree")


def test_several_targets_grids_tables_and_searches(data):
    X, y = data
    Y = np.column_stack([y, -2 * y])
    members = [("neighbours", KNeighborsRegressor()), ("svr", SVR())]
    several = [members[0], ("svr", MultiOutputRegressor(SVR()))]
    model = TrajectoryEarlyStoppingCV(several, cv=FOLDS, rule="min").fit(X, Y)
    expected = cross_val_predict(several[0][1], X, Y, cv=FOLDS)
    scores = dict(zip(model.results_["member"], model.results_["best_score"]))
    assert scores["neighbours"] == pytest.approx(mean_squared_error(Y, expected))
    grid = {"neighbours__n_neighbors": [2, 8], "svr__C": [0.1, 10.0]}
    model = TrajectoryEarlyStoppingCV(
        members, cv=FOLDS, rule="min", criterion="r2", param_grid=grid
    ).fit(X, y)
    best = max(
        r2_score(y, cross_val_predict(clone(each).set_params(**params), X, y, cv=FOLDS))
        for each, params in [
            (members[0][1], {"n_neighbors": 2}),
            (members[0][1], {"n_neighbors": 8}),
            (members[1][1], {"C": 0.1}),
            (members[1][1], {"C": 10.0}),
        ]
    )
    assert model.best_score_ == pytest.approx(best)
    search = GridSearchCV(
        TrajectoryEarlyStoppingCV(members, rule="min"), {"svr__C": [0.1, 10.0]}, cv=2
    )
    assert search.fit(X, y).best_params_ == {"svr__C": 10.0}
    table = pd.DataFrame(X, columns=list("abcd")).assign(word=np.where(y > 0, "a", "b"))
    blend = TrajectoryEarlyStoppingCV(
        members, cv=FOLDS, rule="blend", encoder=TableEncoder(), random_state=0
    )
    with_word, without = (clone(blend).fit(each, y) for each in (table, table[["d"]]))
    assert with_word.predict(table).shape == (90,)
    # The word says more of y than a column that is not related to it.
    assert with_word.best_score_ < without.best_score_


def test_the_leaderboard_has_them_with_all_others(data):
    X, y = data
    path = ("lasso", TrajectoryLasso("path", max_iter=20))
    members = [*REGRESSORS.items(), path]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="min", random_state=0)
    board = model.fit(X, y).leaderboard().set_index("member")
    assert set(board.index) == {*REGRESSORS, "lasso"}
    assert (board["fit_time"] > 0).all()
    once = board.loc[list(REGRESSORS)]
    assert (once[["best_iter", "n_iter"]] == 1).all(axis=None)
    for name, member in REGRESSORS.items():
        losses = (y - cross_val_predict(member, X, y, cv=FOLDS)) ** 2
        # There was nothing to choose.
        found = once.loc[name, ["score", "score_corrected"]].astype(float)
        np.testing.assert_allclose(found, losses.mean())
        of_folds = [losses[held_out].mean() for _, held_out in FOLDS.split(X)]
        error = np.std(of_folds, ddof=1) / 2
        assert once.loc[name, "score_se"] == pytest.approx(error, rel=0.05)
    alone = TrajectoryEarlyStoppingCV([path], cv=FOLDS, random_state=0).fit(X, y)
    found = board.loc["lasso", "score_corrected"]
    assert found == pytest.approx(alone.best_score_corrected_)
    assert found > board.loc["lasso", "score"]
    # Members of another loss have none, and are compared by R^2.
    pair = [("median", QuantileRegressor(alpha=0.0)), path]
    board = TrajectoryEarlyStoppingCV(pair, cv=FOLDS).fit(X, y).leaderboard()
    assert board["score_corrected"].isna().all()


def test_a_member_that_does_not_take_the_columns_is_named(data):
    X, y = data
    table = pd.DataFrame(X, columns=list("abcd")).assign(word=np.where(y > 0, "a", "b"))
    neighbours = make_pipeline(TableEncoder(), KNeighborsRegressor(5))
    members = [("neighbours", neighbours), ("svr", SVR())]
    model = TrajectoryEarlyStoppingCV(members, cv=FOLDS)
    with pytest.raises(ValueError, match="Column 'word' of X must be") as raised:
        model.fit(table, y)
    (note,) = raised.value.__notes__
    assert "'svr'" in note
    members[1] = ("svr", make_pipeline(TableEncoder(), SVR()))
    assert model.fit(table, y).best_member_ in ("neighbours", "svr")


def test_what_is_no_member_is_refused(data, labelled):
    X, y = data
    with pytest.raises(ValueError, match="cannot be SVR, which is not fitted in"):
        TrajectoryEarlyStoppingCV(SVR()).fit(X, y)
    ridge = ("ridge", Ridge())
    for member in (StandardScaler(), SVR):
        with pytest.raises(ValueError, match="The member 'other' of"):
            TrajectoryEarlyStoppingCV([("other", member), ridge]).fit(X, y)
    members = [ridge, ("neighbours", KNeighborsRegressor())]
    with pytest.raises(ValueError, match="loo_path_, which KNeighborsRegressor does"):
        TrajectoryEarlyStoppingCV(members, criterion="loo").fit(X, y)
    pair = [ridge, ("logistic", TrajectoryLogisticRegression())]
    with pytest.raises(ValueError, match="'ridge' is a regressor"):
        TrajectoryEarlyStoppingCV(pair).fit(*labelled)
