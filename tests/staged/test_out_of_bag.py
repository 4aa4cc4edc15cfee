"""Ensembles whose members draw rows are judged by the members without a row."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from skacv import SelfStoppingRegressor, Staged, TrajectoryEarlyStoppingCV
from skacv._estimator.estimates.folds import ShuffledFolds
from skacv.staged.adapter import label_probabilities
from skacv.staged.bag import FEWEST_LEFT_OUT
from skacv.staged.run import StagedRun
from tests.runs import InParts

SEED = {"random_state": 0}
DRAWING = [
    RandomForestRegressor(100, min_samples_leaf=3, **SEED),
    ExtraTreesRegressor(100, bootstrap=True, max_samples=0.7, **SEED),
    ExtraTreesRegressor(100, bootstrap=True, max_samples=20, **SEED),
    RandomForestRegressor(100, criterion="poisson", **SEED),
    BaggingRegressor(DecisionTreeRegressor(max_depth=3), 90, **SEED),
    BaggingRegressor(n_estimators=80, max_samples=0.5, bootstrap=False, **SEED),
    RandomForestClassifier(100, min_samples_leaf=2, **SEED),
    ExtraTreesClassifier(100, bootstrap=True, **SEED),
    BaggingClassifier(n_estimators=90, max_features=0.7, **SEED),
]


def named(estimator):
    return type(estimator).__name__


def table(estimator, rng, n_rows=50):
    X = rng.standard_normal((n_rows, 4))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(n_rows)
    if not is_classifier(estimator):
        return X, np.abs(signal) + 0.1
    return X, np.array(["low", "mid", "top"])[np.digitize(signal, [-0.5, 0.5])]


def staged(estimator):
    """It is judged as within a stopping estimator."""
    return Staged(estimator, cv=ShuffledFolds(is_classifier(estimator)))


@pytest.fixture
def grown(monkeypatch):
    """How many fits have grown in a run, one run after another."""
    numbers, init = [], StagedRun.__init__

    def counted(self, *args, **kwargs):
        init(self, *args, **kwargs)
        numbers.append(1 + len(self.folds))

    monkeypatch.setattr(StagedRun, "__init__", counted)
    return numbers


def members_without(forest, X):
    """Predictions of all members, and which rows each of them has not drawn."""
    is_out = np.ones((len(forest.estimators_), len(X)), bool)
    for row, drawn in zip(is_out, forest.estimators_samples_):
        row[drawn] = False
    columns = getattr(forest, "estimators_features_", None)
    predictions = []
    for number, member in enumerate(forest.estimators_):
        seen = X if columns is None else X[:, columns[number]]
        answer = "predict_proba" if is_classifier(forest) else "predict"
        predictions.append(getattr(member, answer)(seen))
    return predictions, is_out


@pytest.mark.parametrize("estimator", DRAWING, ids=named)
def test_rows_are_predicted_by_the_members_without_them(estimator, rng, grown):
    X, y = table(estimator, rng)
    model = staged(estimator).fit(X, y)
    assert grown == [1]
    predictions, is_out = members_without(clone(estimator).fit(X, y), X)
    path, place = np.asarray(model.cv_prediction_path_), 0
    without_any = 0
    for rows in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(y)), rows)
        for row in rows:
            if is_classifier(estimator):
                constant = np.mean(y[fitted, None] == np.unique(y), axis=0)
            else:
                constant = y[fitted].mean()
            for t in (1, 2, 5, 60, model.n_iter_):
                out = [p[row] for p, o in zip(predictions[:t], is_out) if o[row]]
                expected = np.mean(out, axis=0) if out else constant
                without_any += not out
                np.testing.assert_allclose(path[t, place], expected, atol=1e-12)
            place += 1
    assert without_any
    np.testing.assert_array_equal(
        model.predict(X), clone(estimator).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("estimator", DRAWING[:2], ids=named)
def test_squared_errors_lack_what_few_members_vary(estimator, rng):
    # The variance of a member for a row is that of those without it; the mean of all
    # varies by a share of it.
    X, y = table(estimator, rng)
    model = staged(estimator).fit(X, y)
    predictions, is_out = members_without(clone(estimator).fit(X, y), X)
    by_row = np.full(len(y), np.nan)
    for row in range(len(y)):
        out = np.array([p[row] for p, o in zip(predictions, is_out) if o[row]])
        excess = out.var(ddof=1) * (1 / len(out) - 1 / len(predictions))
        by_row[row] = (out.mean() - y[row]) ** 2 - excess
    by_fold = [by_row[rows].mean() for rows in model.cv_indices_]
    np.testing.assert_allclose(model.cv_fold_path_[-1], by_fold)
    np.testing.assert_allclose(model.cv_path_[-1], by_row.mean())


@pytest.mark.parametrize("estimator", DRAWING, ids=named)
def test_stages_in_blocks_are_those_at_once(estimator, rng):
    X, y = table(estimator, rng)
    at_once, in_blocks = staged(estimator).fit(X, y), staged(estimator)
    parts, n_stages, is_over = InParts(in_blocks, X, y), 0, False
    while not is_over:
        n_stages += 1 + 2 * n_stages
        is_over = parts.go_on(n_stages)
    for name in ("cv_path_", "cv_se_path_", "cv_fold_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(in_blocks, name), getattr(at_once, name))
    np.testing.assert_array_equal(in_blocks.predict(X), at_once.predict(X))


@pytest.mark.parametrize("estimator", [DRAWING[0], DRAWING[4], DRAWING[7]], ids=named)
def test_predictions_that_are_not_kept_are_the_same(estimator, rng, monkeypatch):
    X, y = table(estimator, rng)
    kept = staged(estimator).fit(X, y)
    monkeypatch.setattr("skacv.staged.evaluation.MEMORY_BYTES", 8)
    run = staged(estimator).begin(X, y)
    run.go_on()
    path = run.record().estimates["cv"].prediction
    assert path.reads_rows
    for stages in (path, pickle.loads(pickle.dumps(path.drop_training_rows()))):
        for t in (60, 3, 70, 0):
            np.testing.assert_array_equal(stages[t], kept.cv_prediction_path_[t])
    np.testing.assert_array_equal(run.record().estimates["cv"].path, kept.cv_path_)


# ------------------------------------------------------------ honest for all members


def simulated(rng, n_rows, of_classes):
    X = rng.standard_normal((n_rows, 6))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    if of_classes:
        return X, (signal + rng.logistic(size=n_rows) > 0).astype(int)
    return X, signal + 0.7 * rng.standard_normal(n_rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "loss"),
    [
        (RandomForestRegressor(max_features=0.5), mean_squared_error),
        (ExtraTreesRegressor(bootstrap=True), mean_squared_error),
        (RandomForestClassifier(min_samples_leaf=3), log_loss),
        (ExtraTreesClassifier(bootstrap=True, min_samples_leaf=2), log_loss),
    ],
    ids=named,
)
def test_the_loss_is_that_of_all_members_on_new_rows(estimator, loss):
    ratios, answer = [], "predict_proba" if is_classifier(estimator) else "predict"
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X, y = simulated(rng, 500, is_classifier(estimator))
        X_new, y_new = simulated(rng, 20_000, is_classifier(estimator))
        model = staged(clone(estimator).set_params(random_state=seed)).fit(X, y)
        new = loss(y_new, getattr(model, answer)(X_new))
        rows = np.hstack(model.cv_indices_)
        raw = loss(y[rows], model.cv_prediction_path_[-1])
        ratios.append((model.cv_path_[-1] / new, raw / new))
    (extrapolated, raw), spread = np.mean(ratios, axis=0), np.std(ratios, axis=0)
    assert abs(extrapolated - 1) < max(0.02, 2 * spread[0] / np.sqrt(len(ratios)))
    assert extrapolated < raw  # that of a third of the members


# ------------------------------------------------------------ folds in other cases


@pytest.mark.parametrize(
    "case",
    [
        "a number of folds",
        "groups",
        "weights",
        "class weights",
        "a pipeline",
        "copies of folds",
        "few members",
        "no draws",
        "a class of others",
    ],
)
def test_folds_judge_where_members_cannot(case, rng, grown):
    forest, params, n_folds = RandomForestClassifier(100, **SEED), {}, 5
    X, y = table(forest, rng)
    model = TrajectoryEarlyStoppingCV(forest, random_state=0)
    match case:
        case "a number of folds":
            model.set_params(cv=3)
            n_folds = 3
        case "groups":
            params["groups"] = np.arange(len(y)) // 2
        case "weights":
            params["sample_weight"] = rng.uniform(0.5, 2.0, len(y))
        case "class weights":
            forest.set_params(class_weight="balanced")
        case "a pipeline":
            model.set_params(estimator=make_pipeline(StandardScaler(), forest))
        case "copies of folds":
            model.set_params(estimator=Staged(forest, keep="mean"))
        case "few members":
            forest.set_params(n_estimators=FEWEST_LEFT_OUT)
        case "no draws":
            forest.set_params(bootstrap=False)
        case "a class of others":
            model.set_params(estimator=OfOthers(100, **SEED))
    model.fit(X, y, **params)
    assert grown == [1 + n_folds]


class OfOthers(RandomForestClassifier):
    """It may draw its rows otherwise."""


@pytest.mark.parametrize("container", [sparse.csr_array, pd.DataFrame])
def test_any_rows_and_weights_of_zero(container, rng, grown):
    forest = RandomForestRegressor(100, **SEED)
    X, y = table(forest, rng)
    model = staged(forest).fit(container(X), y)
    counted = rng.permutation(70) < 50
    X_more, y_more = np.zeros((70, 4)), np.full(70, 1e3)
    X_more[counted], y_more[counted] = X, y
    weights = 3.0 * counted
    found = staged(forest).set_params(cv=ShuffledFolds(False, np.flatnonzero(counted)))
    found.fit(container(X_more), y_more, sample_weight=weights)
    assert grown == [1, 1]
    np.testing.assert_allclose(found.cv_path_, model.cv_path_)
    rows = np.flatnonzero(counted)[np.hstack(model.cv_indices_)]
    np.testing.assert_array_equal(np.hstack(found.cv_indices_), rows)


@pytest.mark.parametrize("kind", ["targets", "labels"])
def test_several_outputs(kind, rng, grown):
    X = rng.standard_normal((60, 4))
    Y = X[:, :2] + 0.5 * rng.standard_normal((60, 2))
    forest = RandomForestRegressor(100, **SEED)
    if kind == "labels":
        forest, Y = RandomForestClassifier(100, **SEED), (Y > 0).astype(int)
    model = staged(forest).fit(X, Y)
    assert grown == [1]
    predictions, is_out = members_without(clone(forest).fit(X, Y), X)
    if kind == "labels":
        classes = clone(forest).fit(X, Y).classes_
        predictions = [label_probabilities(p, classes) for p in predictions]
    means = [
        np.mean([p[row] for p, o in zip(predictions, is_out) if o[row]], axis=0)
        for row in np.hstack(model.cv_indices_)
    ]
    np.testing.assert_allclose(model.cv_prediction_path_[-1], means, atol=1e-12)
    assert np.isfinite(model.cv_path_[60:]).all()


# ------------------------------------------------------------ in a stopping estimator


@pytest.mark.parametrize("estimator", [DRAWING[1], DRAWING[6]], ids=named)
def test_a_stopping_estimator_keeps_what_is_out_of_the_bag(estimator, rng, grown):
    X, y = table(estimator, rng)
    model = TrajectoryEarlyStoppingCV(estimator, random_state=0).fit(X, y)
    assert grown == [1]
    alone = staged(estimator).fit(X, y)
    np.testing.assert_array_equal(model.path_, alone.cv_path_)
    expected = np.empty_like(model.held_out_prediction_)
    rows = np.hstack(alone.cv_indices_)
    expected[rows] = alone.cv_prediction_path_[model.best_iter_]
    np.testing.assert_allclose(model.held_out_prediction_, expected)
    assert model.best_score_corrected_ > 0
    small = pickle.loads(pickle.dumps(model.drop_record()))
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    answer = model.predict_set if is_classifier(estimator) else model.predict_interval
    assert len(answer(X)) == len(X)


def test_the_default_grows_one_forest(rng, grown):
    X, y = table(DRAWING[0], rng)
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    assert sorted(grown) == [1, 6, 6]  # beside boosted trees and a feature machine
    assert model.members_["extra trees"].n_iter_ == 100


def test_a_member_beside_members_that_are_fitted_to_folds(rng):
    forest = RandomForestRegressor(100, **SEED)
    X, y = table(forest, rng, 80)
    members = [("forest", forest), ("trees", ExtraTreesRegressor(20, **SEED))]
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0).fit(X, y)
    runs = [model.members_[name].record_["cv"] for name, _ in members]
    for first, second in zip(*(run.indices for run in runs)):
        np.testing.assert_array_equal(first, second)
    assert np.isfinite(model.held_out_prediction_).all()
    assert min(model.weights_.values()) >= 0
