"""leaderboard(), cv_results_, the curves and held_out_prediction_, by other means."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, log_loss, mean_squared_error, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.preprocessing import scale

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    RowSummary,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

FOLDS = KFold(5, shuffle=True, random_state=0)
N_TREES = 25


def trees(cls=GradientBoostingRegressor, **settings):
    settings = {"n_estimators": N_TREES, "random_state": 0, **settings}
    return cls(max_depth=settings.pop("max_depth", 2), **settings)


def pairs():
    return [
        ("shallow", trees(max_depth=1)),
        ("deep", trees(max_depth=4)),
        ("fast", trees(learning_rate=0.5)),
    ]


def stopped(estimator, X, y, **settings):
    settings = {"cv": FOLDS, "patience": None, "random_state": 0, **settings}
    return TrajectoryEarlyStoppingCV(estimator, **settings).fit(X, y)


def at_best(model, members):
    """Members with so many trees as each had at its best stage."""
    table = model.leaderboard().set_index("member")
    return {
        name: member.set_params(n_estimators=int(table.loc[name, "best_iter"]))
        for name, member in members
    }


@pytest.fixture
def labelled():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:150, :8], y[:150]


# ------------------------------------------------------------------ leaderboard


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_leaderboard_has_held_out_losses_the_best_first(rule, data):
    X, y = data
    model = stopped(pairs(), X, y, rule=rule)
    table = model.leaderboard().set_index("member")
    predicted = {
        name: cross_val_predict(member, X, y, cv=FOLDS)
        for name, member in at_best(model, pairs()).items()
    }
    if rule == "blend":
        predicted["blend"] = sum(
            weight * predicted[name] for name, weight in model.weights_.items()
        )
    losses = {name: mean_squared_error(y, each) for name, each in predicted.items()}
    assert list(table.index) == sorted(losses, key=losses.get)
    assert dict(table["score"]) == pytest.approx(losses)
    for name, each in predicted.items():
        of_folds = [
            np.mean((y - each)[held_out] ** 2) for _, held_out in FOLDS.split(X)
        ]
        error = np.std(of_folds, ddof=1) / np.sqrt(5)
        assert table.loc[name, "score_se"] == pytest.approx(error)
    assert set(table["metric"]) == {"squared error"}
    assert set(table["better"]) == {"smaller"}
    weights = dict(table["weight"])
    assert weights.pop("blend", 1.0) == 1.0
    assert weights == model.weights_
    assert table["score"].iloc[0] == model.best_score_
    assert table["score_se"].iloc[0] == model.best_score_se_
    members = table.drop(index="blend", errors="ignore")
    assert (members["n_iter"] == N_TREES).all()
    assert (members["fit_time"] > 0).all()
    assert (table["left_out"] == "").all()


def test_a_blend_is_timed_as_all_its_members(data):
    table = stopped(pairs(), *data, rule="blend").leaderboard().set_index("member")
    times = table["fit_time"]
    assert times["blend"] == pytest.approx(times.drop("blend").sum())
    assert table.loc["blend", ["best_iter", "n_iter"]].isna().all()


def test_a_member_that_has_all_weight_is_no_blend():
    rng = np.random.default_rng(0)  # others may leave a small weight to chance
    X = rng.standard_normal((100, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(100)
    without = TrajectoryLasso(0.1, penalty_weights=[1e3, 1, 1, 1])
    members = [("bad", without), ("good", IterativeRidge(0.0, max_iter=30))]
    model = stopped(members, X, y, rule="blend")
    assert list(model.leaderboard()["member"]) == ["good", "bad"]
    assert list(model.leaderboard()["weight"]) == [1.0, 0.0]


def test_blends_of_classifiers_have_log_losses():
    """Also a kernel machine, which stops by the squared error."""
    rng = np.random.default_rng(0)  # steps for the trees, a wave for the kernel
    X = rng.standard_normal((200, 3))
    odds = 2 * np.sign(X[:, 0] * X[:, 2]) + 2 * np.sin(2 * X[:, 1])
    y = (odds + rng.logistic(size=200) > 0).astype(int)
    forest = RandomForestClassifier(n_estimators=N_TREES, random_state=0)
    members = [
        ("forest", forest),
        ("boosted", trees(GradientBoostingClassifier)),
        ("kernel", KernelEigenProClassifier(n_components=0, random_state=0)),
    ]
    model = stopped(members, X, y, rule="blend")
    table = model.leaderboard().set_index("member")
    for name, member in at_best(model, members[:2]).items():
        predicted = cross_val_predict(member, X, y, cv=FOLDS, method="predict_proba")
        assert table.loc[name, "score"] == pytest.approx(log_loss(y, predicted))
    blended = log_loss(y, model.held_out_prediction_)
    assert table.loc["blend", "score"] == pytest.approx(blended)
    assert set(table["metric"]) == {"log loss"}
    assert (np.diff(table["score"]) >= 0).all()


def test_scores_are_greatest_first(labelled):
    X, y = labelled
    members = [
        ("shallow", trees(GradientBoostingClassifier, max_depth=1)),
        ("forest", RandomForestClassifier(n_estimators=N_TREES, random_state=0)),
    ]
    model = stopped(members, X, y, criterion="roc_auc")
    table = model.leaderboard().set_index("member")
    scores = {
        name: roc_auc_score(
            y, cross_val_predict(member, X, y, cv=FOLDS, method="predict_proba")[:, 1]
        )
        for name, member in at_best(model, members).items()
    }
    assert dict(table["score"]) == pytest.approx(scores)
    assert list(table.index) == sorted(scores, key=scores.get, reverse=True)
    assert set(table["metric"]) == {"roc_auc"}
    assert set(table["better"]) == {"greater"}
    assert table["score"].iloc[0] == model.best_score_


def test_members_of_different_losses_have_the_accuracy_that_compares_them(labelled):
    X, y = labelled
    members = [
        ("boosted", trees(GradientBoostingClassifier)),
        ("line", SGDClassifier(loss="hinge", max_iter=5, random_state=0)),
    ]
    model = stopped(members, X, y)
    table = model.leaderboard().set_index("member")
    boosted = at_best(model, members[:1])["boosted"]
    predicted = cross_val_predict(boosted, X, y, cv=FOLDS)
    accuracy = accuracy_score(y, predicted)
    assert table.loc["boosted", "score"] == pytest.approx(accuracy)
    assert set(table["metric"]) == {"accuracy"}
    assert set(table["better"]) == {"greater"}
    assert table.index[0] == model.best_member_
    # The jackknife over blocks of independent rows is near the binomial error.
    binomial = np.sqrt(accuracy * (1 - accuracy) / len(y))
    assert 0.5 * binomial < table.loc["boosted", "score_se"] < 2 * binomial


def test_a_member_has_its_best_combination_and_the_time_of_all(data):
    grid = {"deep__max_depth": [3, 5], "deep__learning_rate": [0.1, 0.3]}
    model = stopped(pairs()[:2], *data, param_grid=grid)
    table = model.leaderboard().set_index("member")
    results = pd.DataFrame(model.results_)
    deep = results[results["member"] == "deep"]
    assert len(deep) == 4
    assert table.loc["deep", "score"] == deep["best_score"].min()
    assert table.loc["deep", "fit_time"] == pytest.approx(deep["fit_time"].sum())


@pytest.mark.usefixtures("few_trees")
@pytest.mark.filterwarnings("ignore:.* cannot be compared with encoder=None")
def test_members_left_out_come_last_with_the_reason(data):
    X, y = data
    X[3, 2] = np.nan
    model = SelfStoppingRegressor(encoder=None, random_state=0).fit(X[:, :5], y)
    table = model.leaderboard().set_index("member")
    assert {"lasso", "ridge", "kernel", "feature machine"} == set(table.index[-4:])
    assert set(table["left_out"].iloc[-4:]) == {"X has missing values"}
    assert table["score"].iloc[-4:].isna().all()
    assert table["score"].iloc[:-4].notna().all()


def test_leaderboard_without_pandas(data, monkeypatch):
    model = stopped(pairs(), *data, rule="blend")
    frame = model.leaderboard()
    monkeypatch.setitem(sys.modules, "pandas", None)  # cannot be imported
    table = model.leaderboard()
    assert list(table) == list(frame.columns)
    for name in ("member", "score", "weight", "metric"):
        np.testing.assert_array_equal(table[name], frame[name])


def test_tables_are_of_fits():
    model = TrajectoryEarlyStoppingCV()
    for name in ("cv_results_", "evals_result_", "held_out_prediction_", "best_index_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.leaderboard()


# ------------------------------------------------------------------ cv_results_


def test_cv_results_are_those_of_a_grid_search(data):
    """Of the same combinations, with the numbers of trees that were chosen."""
    X, y = data
    model = stopped(trees(), X, y, param_grid={"max_depth": [1, 2, 5]})
    results = model.cv_results_
    grid = [
        {name: [value] for name, value in each.items()} for each in results["params"]
    ]
    assert [set(each) for each in grid] == [{"max_depth", "n_estimators"}] * 3
    search = GridSearchCV(
        trees(), grid, cv=FOLDS, scoring="neg_mean_squared_error"
    ).fit(X, y)
    assert model.best_params_ == search.best_params_
    assert model.best_index_ == search.best_index_
    assert -model.best_score_ == pytest.approx(search.best_score_)
    for name, expected in search.cv_results_.items():
        if name.endswith("_time"):
            continue
        assert name in results
        if name == "params":
            assert results[name] == expected
        elif name.startswith("param_"):
            assert results[name].tolist() == expected.tolist()
        else:
            np.testing.assert_allclose(results[name], expected)
    assert model.best_estimator_ is model.estimator_
    assert len(pd.DataFrame(results)) == 3


def test_cv_results_of_scores_are_not_negative_losses(data):
    X, y = data
    model = stopped(trees(), X, y, criterion="r2", param_grid={"max_depth": [1, 3]})
    results = model.cv_results_
    assert results["mean_test_score"].max() == model.best_score_
    assert results["rank_test_score"][model.best_index_] == 1
    # One score of all held-out rows together.
    assert not [name for name in results if name.startswith("split")]


def test_parameters_of_other_members_are_masked(data):
    grid = {"deep__max_depth": [3, 5]}
    results = stopped(pairs()[:2], *data, param_grid=grid).cv_results_
    assert results["member"].tolist() == ["shallow", "deep", "deep"]
    assert results["param_max_depth"].mask.tolist() == [True, False, False]
    assert results["param_max_depth"].tolist()[1:] == [3, 5]


def test_candidates_with_other_numbers_of_folds_have_no_splits(data):
    model = TrajectoryEarlyStoppingCV(trees(), param_grid={"cv": [3, 4]}).fit(*data)
    assert not [name for name in model.cv_results_ if name.startswith("split")]
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1


# ------------------------------------------------------------------ curves


def test_curves_are_losses_of_every_stage(data):
    X, y = data
    model = stopped(pairs()[:2], X, y)
    curves = model.evals_result_
    assert list(curves) == ["shallow", "deep"]
    train = curves[model.best_member_]["train"]["squared error"]
    fitted = dict(pairs())[model.best_member_].fit(X, y)
    expected = [mean_squared_error(y, each) for each in fitted.staged_predict(X)]
    np.testing.assert_allclose(train[1:], expected)
    for name, member in pairs()[:2]:
        held_out = curves[name]["held_out"]["squared error"]
        errors = np.empty((N_TREES, len(y)))
        for fit, rows in FOLDS.split(X):
            member.fit(X[fit], y[fit])
            staged = np.stack(list(member.staged_predict(X[rows])))
            errors[:, rows] = (staged - y[rows]) ** 2
        np.testing.assert_allclose(held_out[1:], errors.mean(axis=1))


def test_curves_name_the_loss_of_each(labelled):
    """Held-out scores beside the losses that runs reduce on training rows."""
    X, y = labelled
    model = stopped(
        TrajectoryLogisticRegression(max_iter=20), X, y, criterion="accuracy"
    )
    (curves,) = model.evals_result_.values()
    assert list(curves["train"]) == ["log loss"]
    assert list(curves["held_out"]) == ["accuracy"]
    np.testing.assert_array_equal(curves["held_out"]["accuracy"], model.path_)


# ------------------------------------------------------------------ predictions


def test_held_out_predictions_are_those_of_cross_val_predict(data):
    X, y = data
    model = stopped(trees(), X, y)
    member = trees(n_estimators=model.best_iter_)
    expected = cross_val_predict(member, X, y, cv=FOLDS)
    np.testing.assert_allclose(model.held_out_prediction_, expected)
    loss = mean_squared_error(y, model.held_out_prediction_)
    assert loss == pytest.approx(model.best_score_)


def test_a_blend_has_the_mean_of_held_out_predictions(data):
    X, y = data
    model = stopped(pairs(), X, y, rule="blend")
    expected = sum(
        model.weights_[name] * cross_val_predict(member, X, y, cv=FOLDS)
        for name, member in at_best(model, pairs()).items()
    )
    np.testing.assert_allclose(model.held_out_prediction_, expected)


@pytest.mark.parametrize("labels", [["no", "yes"], ["a", "b", "c"]])
def test_held_out_probabilities_of_classes(labels, rng):
    X = rng.standard_normal((90, 4))
    place = np.digitize(X[:, 0] + 0.5 * rng.standard_normal(90), [-0.4, 0.4])
    y = np.array(labels)[np.minimum(place, len(labels) - 1)]
    folds = StratifiedKFold(3)
    model = stopped(trees(GradientBoostingClassifier), X, y, cv=folds)
    member = trees(GradientBoostingClassifier, n_estimators=model.best_iter_)
    expected = cross_val_predict(member, X, y, cv=folds, method="predict_proba")
    np.testing.assert_allclose(model.held_out_prediction_, expected)


def test_decisions_of_classifiers_without_probabilities(labelled):
    X, y = labelled
    line = SGDClassifier(loss="hinge", max_iter=5, random_state=0)
    model = stopped(line, X, y)
    assert model.held_out_prediction_.shape == y.shape
    wrong = (model.held_out_prediction_ > 0) != (y == 1)
    assert wrong.mean() == pytest.approx(model.best_score_)


def test_rows_held_out_repeatedly_have_the_mean(data):
    X, y = data
    folds = RepeatedKFold(n_splits=4, n_repeats=2, random_state=0)
    splits = list(folds.split(X))
    model = stopped(trees(), X, y, cv=folds)
    member = trees(n_estimators=model.best_iter_)
    repeats = [
        cross_val_predict(member, X, y, cv=each) for each in (splits[:4], splits[4:])
    ]
    np.testing.assert_allclose(model.held_out_prediction_, np.mean(repeats, axis=0))


def test_rows_that_are_never_held_out_have_none(data):
    X, y = data
    split = ShuffleSplit(1, test_size=0.25, random_state=0)
    ((fit, held_out),) = split.split(X)
    model = stopped(trees(), X, y, cv=split)
    found = model.held_out_prediction_
    assert np.isnan(found[fit]).all()
    member = trees(n_estimators=model.best_iter_).fit(X[fit], y[fit])
    np.testing.assert_allclose(found[held_out], member.predict(X[held_out]))


def test_leave_one_out_predictions(data):
    X, y = data
    model = stopped(IterativeRidge(1.0), X, y, criterion="loo", cv=None)
    t, member = model.best_iter_, IterativeRidge(1.0, max_iter=200, step_size=1e-3)
    expected = IterativeRidge(1.0, loo=True).fit(X, y).loo_prediction_path_[t]
    np.testing.assert_allclose(model.held_out_prediction_, expected)
    # Against a fit without the row, of the same steps.
    alone = stopped(member, X, y, criterion="loo", cv=None)
    others = np.arange(len(y)) != 5
    refitted = member.fit(X[others], y[others]).at_iteration(alone.best_iter_)
    found = alone.held_out_prediction_[5]
    assert found == pytest.approx(refitted.predict(X[[5]])[0])


def test_several_targets(rng):
    X = rng.standard_normal((60, 4))
    y = X[:, :2] + rng.standard_normal((60, 2))
    forest = IterativeRidge(0.0, max_iter=40, step_size=1e-2)
    model = stopped(forest, X, y)
    assert model.held_out_prediction_.shape == y.shape
    loss = np.mean((y - model.held_out_prediction_) ** 2)
    assert loss == pytest.approx(model.best_score_)


def test_summaries_have_no_rows(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", cv=3))
    model.fit(RowSummary(n_folds=3).fit(X, y))
    with pytest.raises(AttributeError, match="Held-out predictions are not available"):
        _ = model.held_out_prediction_
    assert model.leaderboard()["score"].iloc[0] == model.best_score_
