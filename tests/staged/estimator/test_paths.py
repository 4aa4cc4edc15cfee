"""Paths of ``Staged``: losses and held-out predictions of its stages."""

import pickle
import re

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import (
    log_loss,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    zero_one_loss,
)
from sklearn.model_selection import KFold, PredefinedSplit
from sklearn.tree import DecisionTreeClassifier

from skacv import (
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryGammaRegressor,
    TrajectoryPoissonRegressor,
)
from skacv.staged import losses
from skacv.staged.fits import StagedFit
from tests.internals import rows_of_staged_run
from tests.runs import InParts

from .cases import SMALL, assert_same_fits, boosted

# ------------------------------------------------------------------ paths


def half(deviance):
    return lambda y, found: deviance(y, found) / 2


@pytest.mark.parametrize(
    ("estimator", "metric"),
    [
        (boosted(), mean_squared_error),
        (boosted(loss="absolute_error"), mean_absolute_error),
        (boosted(loss="poisson"), half(mean_poisson_deviance)),
        (boosted(loss="gamma"), half(mean_gamma_deviance)),
        (
            boosted(loss="quantile", quantile=0.8),
            lambda y, found: mean_pinball_loss(y, found, alpha=0.8),
        ),
        (
            GradientBoostingRegressor(loss="quantile", n_estimators=4),
            lambda y, found: mean_pinball_loss(y, found, alpha=0.9),
        ),
        (GradientBoostingRegressor(loss="huber", n_estimators=4), mean_absolute_error),
        (
            RandomForestRegressor(3, criterion="absolute_error", random_state=0),
            mean_absolute_error,
        ),
    ],
    ids=lambda value: getattr(value, "__name__", re.sub(r"\W+", "-", str(value))[-40:]),
)
def test_stages_are_judged_by_the_loss_of_the_estimator(estimator, metric, data):
    X, y = data
    model = Staged(estimator, cv=KFold(3)).fit(X, y)
    by_fold = np.array(
        [
            [metric(y[judged], found[judged]) for judged in model.cv_indices_]
            for found in np.asarray(model.cv_prediction_path_)
        ]
    )
    np.testing.assert_allclose(model.cv_fold_path_, by_fold)
    np.testing.assert_allclose(model.cv_path_, by_fold.mean(axis=1))
    np.testing.assert_allclose(
        model.cv_se_path_, by_fold.std(axis=1, ddof=1) / np.sqrt(3), atol=1e-12
    )


def test_probabilities_are_judged_by_the_log_loss(labelled):
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL), cv=4).fit(X, y)
    rows = np.concatenate(model.cv_indices_)
    expected = [
        log_loss(y[rows], found) for found in np.asarray(model.cv_prediction_path_)
    ]
    np.testing.assert_allclose(model.cv_path_, expected)
    np.testing.assert_array_equal(model.cv_target_, y[rows])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_are_judged_by_labels(n_classes):
    X, y = make_classification(90, n_informative=4, n_classes=n_classes, random_state=0)
    model = Staged(SGDClassifier(max_iter=4, random_state=0), cv=3).fit(X, y)
    assert not hasattr(model, "predict_proba")
    rows = np.concatenate(model.cv_indices_)
    for t, found in enumerate(np.asarray(model.cv_prediction_path_)):
        labels = found.argmax(axis=1) if n_classes == 3 else (found > 0).astype(int)
        wrong = zero_one_loss(y[rows], labels)
        np.testing.assert_allclose(model.cv_path_[t], wrong)


def test_row_zero_is_a_constant(data, labelled):
    X, y = data
    weights = np.arange(1.0, 61.0)
    model = Staged(boosted(), cv=KFold(3)).fit(X, y, sample_weight=weights)
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(60), judged)
        mean = np.average(y[fitted], weights=weights[fitted])
        np.testing.assert_allclose(model.cv_prediction_path_[0][judged], mean)
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL), cv=KFold(3)).fit(X, y)
    for judged in model.cv_indices_:
        share = np.mean(np.delete(y, judged) == "yes")
        found = model.cv_prediction_path_[0][judged]
        np.testing.assert_allclose(found, np.tile([1 - share, share], (len(judged), 1)))


def test_weights_are_those_of_the_mean(data, rng):
    X, y = data
    weights = rng.uniform(size=60)
    weights[::9] = 0
    model = Staged(boosted(), cv=KFold(3)).fit(X, y, sample_weight=weights)
    rows = np.concatenate(model.cv_indices_)
    assert np.all(weights[rows] > 0)
    assert len(rows) == np.count_nonzero(weights)
    for t, found in enumerate(np.asarray(model.cv_prediction_path_)):
        error = mean_squared_error(y[rows], found, sample_weight=weights[rows])
        np.testing.assert_allclose(model.cv_path_[t], error)


@pytest.mark.parametrize("class_weight", ["balanced", {"yes": 5.0, "no": 1.0}])
def test_weights_of_classes_are_those_of_the_mean(class_weight, labelled):
    X, y = labelled
    classifier = RandomForestClassifier(4, class_weight=class_weight, max_depth=2)
    model = Staged(classifier, cv=3).fit(X, y)
    rows = np.concatenate(model.cv_indices_)
    ratio = (
        5.0 if class_weight != "balanced" else np.mean(y == "no") / np.mean(y == "yes")
    )
    weights = np.where(y[rows] == "yes", ratio, 1.0)
    for t, found in enumerate(np.asarray(model.cv_prediction_path_)):
        expected = log_loss(y[rows], found, sample_weight=weights)
        np.testing.assert_allclose(model.cv_path_[t], expected)


@pytest.mark.parametrize(
    "estimator",
    [
        BaggingClassifier(DecisionTreeClassifier(class_weight="balanced"), 3),
        AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=2, class_weight={"yes": 5.0, "no": 1.0}),
            n_estimators=3,
        ),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_weights_of_classes_inside_are_warned_of(estimator, labelled):
    X, y = labelled
    message = r"estimator__class_weight=.* weights classes in the fits.*sample_weight"
    with pytest.warns(UserWarning, match=message):
        model = Staged(estimator, cv=3).fit(X, y)
    rows = np.concatenate(model.cv_indices_)
    found = [log_loss(y[rows], each) for each in np.asarray(model.cv_prediction_path_)]
    np.testing.assert_allclose(model.cv_path_, found)


def test_training_rows_are_judged_as_well(data, rng, labelled):
    X, y = data
    weights = rng.uniform(size=60)
    model = Staged(boosted()).fit(X, y, sample_weight=weights)
    mean = np.full(60, np.average(y, weights=weights))
    found = [mean, *model.staged_predict(X)]
    errors = [mean_squared_error(y, each, sample_weight=weights) for each in found]
    np.testing.assert_allclose(model.train_path_, errors)
    losses = model.staged_loss(X, y, sample_weight=weights)
    np.testing.assert_allclose(losses, errors[1:])
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL)).fit(X, y)
    expected = [log_loss(y, each) for each in model.staged_predict_proba(X)]
    np.testing.assert_allclose(model.train_path_[1:], expected)
    np.testing.assert_allclose(model.staged_loss(X, y), expected)
    with pytest.raises(ValueError, match=r"labels unseen in fit: .*perhaps"):
        model.staged_loss(X, np.where(y == "no", "perhaps", y))


def test_of_many_training_rows_some_are_judged(data, rng, set_limits):
    X, y = data
    weights = np.where(np.arange(60) < 30, 0.0, rng.uniform(1, 2, size=60))
    weighted = weights > 0
    mean = np.full(60, np.average(y, weights=weights))

    def squares(model):
        """By every stage, (n_stages + 1, n_rows) of weight."""
        found = np.array([mean, *model.staged_predict(X)])
        return ((found - y) ** 2)[:, weighted]

    whole = Staged(boosted()).fit(X, y, sample_weight=weights)
    errors = squares(whole) @ weights[weighted] / weights.sum()
    np.testing.assert_allclose(whole.train_path_, errors)
    set_limits(MOST_TRAINING_ROWS=20)
    # One row after the other has an error that no other has: 20 of them count.
    n_judged = 0
    for row in np.flatnonzero(weighted)[::3]:
        far = y.copy()
        far[row] += 1e4
        model = Staged(boosted()).fit(X, far, sample_weight=weights)
        n_judged += model.train_path_[0] > 1e5
    assert 3 <= n_judged <= 9
    others = y.copy()
    others[~weighted] = 1e6  # without weight
    model = Staged(boosted()).fit(X, others, sample_weight=weights)
    assert model.train_path_[0] < 10 * errors[0]


def test_rows_of_folds_are_copied_while_they_are_fitted(data):
    X, y = data
    parts = InParts(Staged(boosted(), cv=3), X, y)
    parts.go_on(2)
    assert all(rows is X for rows in rows_of_staged_run(parts.run))


def test_one_split_has_errors_over_its_rows(data):
    X, y = data
    split = PredefinedSplit(np.where(np.arange(60) < 45, -1, 0))
    model = Staged(boosted(), cv=split).fit(X, y)
    errors = (y[45:] - model.cv_prediction_path_[5]) ** 2
    np.testing.assert_allclose(model.cv_se_path_[5], errors.std(ddof=1) / np.sqrt(15))


# ------------------------------------------------------------------ a path not kept


@pytest.fixture
def nothing_kept(set_limits):
    set_limits(MEMORY_BYTES=4 * 4 * 8 * 150)  # two stages at a time


@pytest.mark.parametrize("classifier", [False, True])
def test_predictions_that_are_not_kept_are_made_again(
    classifier, data, labelled, request
):
    X, y = labelled if classifier else data
    model = HistGradientBoostingClassifier(**SMALL) if classifier else boosted()
    model = Staged(model, cv=3)
    kept = clone(model).fit(X, y)
    request.getfixturevalue("nothing_kept")
    made = clone(model).fit(X, y)
    assert_same_fits(made, kept, X)
    path, expected = made.cv_prediction_path_, np.asarray(kept.cv_prediction_path_)
    assert path.shape == expected.shape
    for t in (4, 0, 2, 3, -1):  # in any order
        np.testing.assert_array_equal(path[t], expected[t])
    for stages in (
        slice(1, 4),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(2, 2),
    ):
        np.testing.assert_array_equal(path[stages], expected[stages])
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.cv_prediction_path_, expected)


def test_the_best_stage_is_kept(data, nothing_kept, monkeypatch):
    model = Staged(boosted(), cv=3)
    run = model.begin(*data)
    for n_stages in (2, 5):
        run.go_on(n_stages)
    held_out = run.record()["cv"]
    best = held_out.path.argmin()
    expected = np.asarray(held_out.prediction)[best]

    def made_again(*_):
        raise AssertionError

    monkeypatch.setattr(StagedFit, "held_out_predictions", made_again)
    np.testing.assert_array_equal(held_out.prediction[best], expected)
    with pytest.raises(AssertionError):
        _ = held_out.prediction[best - 1]


def test_a_chosen_stage_keeps_its_own_residuals(data, nothing_kept, set_limits):
    X, y = data
    expected = Staged(boosted(), cv=3).fit(X, y).at_iteration(3).predict_interval(X)
    model = Staged(boosted(), cv=3)
    run = model.begin(X, y)
    run.go_on(5)
    set_limits(MOST_KEPT=1)
    stopped = model.take(run.record().at(3))
    np.testing.assert_array_equal(stopped.predict_interval(X), expected)
    with pytest.raises(AttributeError, match="rows of X, which this fit did not keep"):
        _ = stopped.cv_prediction_path_
    with pytest.raises(ValueError, match="kept only those of iterate 3"):
        stopped.at_iteration(2).predict_interval(X)


# ------------------------------------------------------------------ names of losses


def test_half_deviances_are_those_of_metrics(rng):
    from sklearn.metrics import mean_tweedie_deviance

    y, mean = rng.gamma(2.0, size=(2, 30)) + 0.1
    for power in (0, 1, 1.2, 2, 2.5, 3.0):
        loss = losses.deviance(power)
        cost = loss.reported(y[:, None], loss.predictor(mean[:, None]))
        cost = cost if power else cost / 2  # the squared error is no half
        expected = mean_tweedie_deviance(y, mean, power=power) / 2
        np.testing.assert_allclose(cost.mean(), expected)


LINEAR_AND_TREES = {
    "poisson": (TrajectoryPoissonRegressor(0.1, max_iter=50), mean_poisson_deviance),
    "gamma": (TrajectoryGammaRegressor(0.1, max_iter=50), mean_gamma_deviance),
}


@pytest.mark.parametrize("name", LINEAR_AND_TREES)
def test_losses_of_trees_and_of_linear_models_are_one(name, data, rng):
    X, _ = data
    mean = np.exp(X[:, 0])
    counts = rng.poisson(mean) if name == "poisson" else 100 * rng.gamma(3.0, mean)
    linear, deviance = LINEAR_AND_TREES[name]
    members = [("linear", clone(linear)), ("trees", boosted(loss=name))]
    model = TrajectoryEarlyStoppingCV(members, cv=KFold(3), rule="blend")
    model.fit(X, counts)
    for name, member in model.members_.items():
        found = member.cv_prediction_path_[member.iteration_]
        expected = deviance(counts, found) / 2
        assert model.member_paths_[name].min() == pytest.approx(expected)
    weights = model.weights_
    blend = sum(
        weights[name] * member.cv_prediction_path_[member.iteration_]
        for name, member in model.members_.items()
    )
    expected = deviance(counts, blend) / 2
    assert model.best_score_ == pytest.approx(expected)
