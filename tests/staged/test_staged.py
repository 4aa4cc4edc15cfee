"""``Staged``: its paths and stages, what it is passed, and what it refuses."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import MiniBatchKMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, SGDClassifier, SGDRegressor
from sklearn.metrics import (
    get_scorer,
    log_loss,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_squared_error,
    zero_one_loss,
)
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, cross_val_score
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skacv import RowSummary, Staged, TrajectoryLasso
from skacv.optim.losses import Poisson
from skacv.staged import held_out, losses, recorded
from skacv.staged.kinds import HistBoosting

SMALL = {"max_iter": 5, "min_samples_leaf": 5, "random_state": 0}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 3))
    return X, np.exp(0.4 * X[:, 0] + 0.2 * rng.standard_normal(60))


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.where(y > np.quantile(y, 0.7), "yes", "no")


def boosted(**settings):
    return HistGradientBoostingRegressor(**{**SMALL, **settings})


def assert_same_fits(found, expected, X):
    for name in ("cv_path_", "cv_se_path_", "cv_fold_path_", "cv_prediction_path_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


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
        (SGDRegressor(loss="epsilon_insensitive", max_iter=3), mean_absolute_error),
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


def test_one_split_has_errors_over_its_rows(data):
    X, y = data
    split = PredefinedSplit(np.where(np.arange(60) < 45, -1, 0))
    model = Staged(boosted(), cv=split).fit(X, y)
    errors = (y[45:] - model.cv_prediction_path_[5]) ** 2
    np.testing.assert_allclose(model.cv_se_path_[5], errors.std(ddof=1) / np.sqrt(15))


# ------------------------------------------------------------------ a path not kept


@pytest.fixture
def nothing_kept(monkeypatch):
    monkeypatch.setattr(held_out, "MOST_KEPT", 10)
    monkeypatch.setattr(held_out, "ENTRIES_PER_BLOCK", 150)


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
    assert made._held_out_costs("cv", y).averages()[0] == pytest.approx(kept.cv_path_)
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.cv_prediction_path_, expected)


def test_a_chosen_stage_keeps_its_own_predictions(data, nothing_kept):
    X, y = data
    model = Staged(boosted(), cv=3).fit(X, y)
    stopped = model.at_iteration(3)
    found = stopped.cv_prediction_path_
    np.testing.assert_array_equal(found[3], model.cv_prediction_path_[3])
    assert found.shape == (6, 60)
    with pytest.raises(ValueError, match="predictions of stage 3, the one that was"):
        found[2]
    assert stopped.predict_interval(X).shape == (60, 2)
    assert stopped._held_out_costs("cv", y) is None
    # Training rows of folds are not kept with it.
    assert len(pickle.dumps(stopped)) < len(pickle.dumps(model))


# ------------------------------------------------------------------ runs in parts


def test_what_was_read_stays_as_it_was_where_a_run_goes_on(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    assert not model.fit_up_to(2, X, y)
    path, stopped = model.cv_prediction_path_, model.at_iteration(2)
    expected = np.asarray(path), stopped.predict(X)
    assert model.fit_up_to(5, X, y)
    assert path.shape == (3, 60)
    np.testing.assert_array_equal(path, expected[0])
    np.testing.assert_array_equal(stopped.cv_prediction_path_, expected[0])
    np.testing.assert_array_equal(stopped.predict(X), expected[1])
    assert len(model.cv_prediction_path_) == 6


def test_a_run_has_what_it_was_asked_for(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    for n_stages in (3, 3, 2):
        assert not model.fit_up_to(n_stages, X, y)
        assert model.n_iter_ == model.iteration_ == 3
    assert model.fit_up_to(100, X, y)
    assert model.n_iter_ == 5


def test_other_data_are_another_run(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    model.fit_up_to(2, X, y)
    model.fit_up_to(4, X, -y)
    assert_same_fits(model, Staged(boosted(max_iter=4), cv=3).fit(X, -y), X)
    model.fit_up_to(5, X, -y, sample_weight=np.arange(60.0))
    weighted = Staged(boosted(), cv=3).fit(X, -y, sample_weight=np.arange(60.0))
    assert_same_fits(model, weighted, X)


def test_a_fit_forgets_the_one_before(data):
    X, y = data
    model = Staged(boosted(), cv=3).fit(X, y)
    model.set_params(cv=None).fit(X, y)
    assert not [name for name in vars(model) if name.startswith("cv_")]


def test_an_error_leaves_what_was_there(data, monkeypatch):
    X, y = data
    model = Staged(boosted(), cv=3)
    with pytest.raises(ValueError, match="Found input variables"):
        model.fit(X, y[:-1])
    assert not [name for name in vars(model) if name.endswith("_")]
    model.fit_up_to(2, X, y)
    before = Staged(boosted(max_iter=2), cv=3).fit(X, y)
    grow, n_calls = HistBoosting.grow, []

    def failing(self, *args):
        n_calls.append(1)
        if len(n_calls) == 3:  # the model and a fold have grown
            raise MemoryError("no more")
        return grow(self, *args)

    monkeypatch.setattr(HistBoosting, "grow", failing)
    with pytest.raises(MemoryError, match="no more"):
        model.fit_up_to(4, X, y)
    monkeypatch.undo()
    assert_same_fits(model, before, X)
    assert len(list(model.staged_predict(X))) == 2
    assert model.recorded_iterations().tolist() == [1, 2]
    assert model.fit_up_to(5, X, y)  # from the beginning
    assert_same_fits(model, Staged(boosted(), cv=3).fit(X, y), X)


def test_threads_change_nothing(data):
    X, y = data
    plain, threads = (Staged(boosted(), cv=3, n_jobs=n).fit(X, y) for n in (1, 2))
    assert_same_fits(threads, plain, X)


def test_lines_are_printed_for_blocks_of_stages(data, capsys):
    X, y = data
    watched = Staged(boosted(max_iter=40), cv=3, verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("[Staged] after 4 of 40, cross-validation ")
    assert lines[-1].startswith("[Staged] after 40 of 40, cross-validation ")
    assert_same_fits(watched, Staged(boosted(max_iter=40), cv=3).fit(X, y), X)


needs_callbacks = pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="scikit-learn has callbacks from 1.9 on",
)


@needs_callbacks
def test_callbacks_see_every_stage(data, capsys):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    model = Staged(boosted(max_iter=23)).set_callbacks(monitor, ProgressBar())
    model.fit(X, y)
    rows = [
        row["r2"] for row in monitor.get_logs().data if row["task_name"] == "update"
    ]
    expected = [
        get_scorer("r2")(model.at_iteration(t), X, y)
        for t in model.recorded_iterations()
    ]
    np.testing.assert_allclose(rows, expected)
    assert "Staged" in capsys.readouterr().out


@needs_callbacks
def test_a_callback_can_stop_the_run(data):
    class StopAtFive:
        def setup(self, estimator, context):
            self.n = 0

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            self.n += context.task_name == "update"
            return self.n >= 5

    X, y = data
    model = Staged(boosted(max_iter=90), cv=3).set_callbacks(StopAtFive()).fit(X, y)
    assert_same_fits(model, Staged(boosted(max_iter=5), cv=3).fit(X, y), X)
    assert len(list(model.staged_predict(X))) == 5
    assert model.recorded_iterations().tolist() == [1, 2, 3, 4, 5]


# ------------------------------------------------------------------ as an estimator


def test_it_is_what_its_estimator_is(data, labelled):
    assert is_regressor(Staged(boosted()))
    assert is_classifier(Staged(HistGradientBoostingClassifier()))
    assert not hasattr(Staged(boosted()), "predict_proba")
    assert not hasattr(Staged(SGDClassifier()), "predict_interval")
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL)).fit(X, y)
    by_hand = HistGradientBoostingClassifier(**SMALL).fit(X, y)
    for method in ("predict", "predict_proba", "decision_function"):
        expected = getattr(by_hand, method)(X)
        np.testing.assert_array_equal(getattr(model, method)(X), expected)
    log_proba = np.log(by_hand.predict_proba(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), log_proba)
    staged = zip(model.staged_predict_proba(X), by_hand.staged_predict_proba(X))
    for found, expected in staged:
        np.testing.assert_array_equal(found, expected)
    assert model.score(X, y) == by_hand.score(X, y)


def test_attributes_of_the_estimator_are_its_own(data):
    X, y = data
    model = Staged(GradientBoostingRegressor(n_estimators=3, random_state=0))
    name = "feature_importances_"
    with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
        getattr(model, name)
    model.fit(X, y)
    by_hand = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        model.feature_importances_, by_hand.feature_importances_
    )
    for name in ("coef_", "colour"):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(model, name)


def test_clones_and_parameters(data):
    model = Staged(boosted(), cv=3)
    twin = clone(model).set_params(learning_rate=0.3, cv=4)
    assert (twin.estimator.learning_rate, twin.cv) == (0.3, 4)
    assert model.estimator.learning_rate == 0.1
    assert twin.set_params(estimator__max_iter=7).estimator.max_iter == 7
    twin.set_params(estimator=boosted(), max_iter=9)
    assert (twin.estimator.max_iter, twin.estimator.learning_rate) == (9, 0.1)
    with pytest.raises(
        ValueError, match="Invalid parameter 'colour' for estimator Hist"
    ):
        twin.set_params(colour=1)
    assert "learning_rate" not in model.get_params(deep=False)
    pipe = Staged(make_pipeline(StandardScaler(), boosted()))
    pipe.set_params(histgradientboostingregressor__max_iter=4)
    assert pipe.estimator[-1].max_iter == 4


def test_the_estimator_that_is_passed_stays_as_it_is(data):
    X, y = data
    inner = boosted(early_stopping=True, verbose=1)
    before = inner.get_params()
    with pytest.warns(UserWarning, match="early_stopping=True of HistGradientBoosting"):
        Staged(inner, cv=2).fit(X, y)
    assert inner.get_params() == before
    assert not hasattr(inner, "_predictors")


def test_pickles(data):
    X, y = data
    model = Staged(boosted(), cv=3)
    model.fit_up_to(3, X, y)
    model = pickle.loads(pickle.dumps(model))  # of a run that may go on
    assert model.n_iter_ == 3
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert_same_fits(again, model, X)
    for t in model.recorded_iterations():
        found, expected = again.at_iteration(t), model.at_iteration(t)
        np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    # What folds have grown, and bins of the rows, are not kept.
    alone = Staged(boosted()).fit(X, y)
    folds = 6 * 60 * 8 + 60 * 40
    assert len(pickle.dumps(model)) < len(pickle.dumps(alone)) + folds
    assert alone._model.stages.resumed is None


def test_stages_are_counted_from_one(data):
    X, y = data
    model = Staged(boosted(), cv=3).fit(X, y)
    assert model.at_iteration(-1).iteration_ == 5
    assert model.at_iteration(np.int64(-5)).iteration_ == 1
    stopped = model.at_iteration(2)
    assert (stopped.iteration_, stopped.n_iter_) == (2, 5)
    assert stopped.estimator_.max_iter == 2
    assert model.iteration_ == 5
    np.testing.assert_array_equal(stopped.at_iteration(5).predict(X), model.predict(X))
    for t in (6, -7):
        with pytest.raises(ValueError, match=rf"t must be in \[-6, 5\], got {t}"):
            model.at_iteration(t)
    for t in (0, -6):
        with pytest.raises(ValueError, match="Iterate 0 was not kept"):
            model.at_iteration(t)
    with pytest.raises(TypeError, match=r"t must be an integer, got 2\.0"):
        model.at_iteration(2.0)
    with pytest.raises(NotFittedError):
        Staged(boosted()).at_iteration(1)


def test_intervals_are_those_of_held_out_residuals(data):
    X, y = data
    model = Staged(boosted(), cv=KFold(3)).fit(X, y).at_iteration(3)
    residuals = y - model.cv_prediction_path_[3]
    found = model.predict_interval(X, coverage=0.8)
    assert found.shape == (60, 2)
    width = found[:, 1] - found[:, 0]
    np.testing.assert_allclose(width, width[0])
    assert np.mean(np.abs(residuals) <= width[0] / 2) >= 0.8
    with pytest.raises(ValueError, match="fitted without any"):
        Staged(boosted()).fit(X, y).predict_interval(X)
    with pytest.raises(ValueError, match="take method='cv', or fit lower and upper"):
        model.predict_interval(X, method="scaled")


def test_scorers_read_held_out_predictions(labelled):
    X, y = labelled
    model = Staged(HistGradientBoostingClassifier(**SMALL), cv=3).fit(X, y)
    rows = np.concatenate(model.cv_indices_)
    found = model.cv_prediction_path_[4]
    held_out_model = model._held_out_estimator(found, 4)
    truth = y[rows] == "yes"
    order = found[:, 1]
    pairs = (order[truth][:, None] > order[~truth]) + 0.5 * (
        order[truth][:, None] == order[~truth]
    )
    for name, expected in {
        "roc_auc": pairs.mean(),
        "accuracy": np.mean((order > 0.5) == truth),
        "neg_log_loss": -log_loss(y[rows], found),
    }.items():
        score = get_scorer(name)(held_out_model, X[rows], y[rows])
        np.testing.assert_allclose(score, expected)


def test_inside_other_estimators(data):
    X, y = data
    scores = cross_val_score(Staged(boosted(), cv=2), X, y, cv=KFold(3))
    np.testing.assert_array_equal(scores, cross_val_score(boosted(), X, y, cv=KFold(3)))
    pipe = make_pipeline(SimpleImputer(), Staged(boosted())).fit(X, y)
    np.testing.assert_array_equal(pipe.predict(X), boosted().fit(X, y).predict(X))


# ------------------------------------------------------------------ pipelines


class Remembers(StandardScaler):
    """Scales by the rows that it is passed, and knows how many there were."""

    n_rows = []

    def fit(self, X, y=None, sample_weight=None):
        self.n_rows.append(len(X))
        return super().fit(X, y, sample_weight)


def test_steps_before_are_fitted_to_the_rows_of_each_fold(data):
    X, y = data
    Remembers.n_rows.clear()
    pipe = make_pipeline(Remembers(), SGDRegressor(max_iter=4, random_state=0))
    model = Staged(pipe, cv=KFold(3)).fit(X, y)
    assert sorted(Remembers.n_rows) == [40, 40, 40, 60]
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(60), judged)
        scaler = StandardScaler().fit(X[fitted])
        grown = SGDRegressor(random_state=0)
        for t in range(1, 5):
            grown.partial_fit(scaler.transform(X[fitted]), y[fitted])
            np.testing.assert_array_equal(
                model.cv_prediction_path_[t][judged],
                grown.predict(scaler.transform(X[judged])),
            )
    assert [name for name, _ in model.estimator_.steps] == [
        name for name, _ in pipe.steps
    ]
    np.testing.assert_array_equal(
        model.estimator_[0].mean_, StandardScaler().fit(X).mean_
    )
    assert not hasattr(pipe[0], "mean_")
    assert model._parameters_at(3) == {"sgdregressor__max_iter": 3}


def test_a_pipeline_of_one_step(data):
    X, y = data
    model = Staged(make_pipeline(boosted()), cv=3).fit(X, y)
    assert_same_fits(model, Staged(boosted(), cv=3).fit(X, y), X)


def test_parameters_of_fit_go_to_their_steps(data):
    X, y = data
    weights = np.arange(1.0, 61.0)
    pipe = make_pipeline(StandardScaler(), boosted())
    by_name = Staged(pipe, cv=3).fit(
        X,
        y,
        standardscaler__sample_weight=weights,
        histgradientboostingregressor__sample_weight=weights,
    )
    for judged in by_name.cv_indices_:
        fitted = np.setdiff1d(np.arange(60), judged)
        by_hand = clone(pipe).fit(
            X[fitted],
            y[fitted],
            standardscaler__sample_weight=weights[fitted],
            histgradientboostingregressor__sample_weight=weights[fitted],
        )
        np.testing.assert_array_equal(
            by_name.cv_prediction_path_[5][judged], by_hand.predict(X[judged])
        )
    errors = (y - by_name.cv_prediction_path_[5]) ** 2
    np.testing.assert_allclose(by_name.cv_path_[5], np.average(errors, weights=weights))


# ------------------------------------------------------------------ metadata


class TakesNotes(SGDRegressor):
    """An estimator whose fit is passed more than weights."""

    passed = []

    def partial_fit(self, X, y, sample_weight=None, notes=None, name=None, scale=None):
        self.passed.append((len(X), notes, name, scale))
        return super().partial_fit(X, y, sample_weight)


@pytest.mark.parametrize("form", [np.array, list, tuple, pd.Series], ids=str)
def test_what_belongs_to_rows_is_sliced(form, data):
    X, y = data
    TakesNotes.passed.clear()
    name = "x" * 60  # as long as there are rows
    Staged(TakesNotes(max_iter=1), cv=KFold(3)).fit(
        X, y, notes=form(np.arange(60)), name=name, scale=2.0
    )
    for n_rows, notes, passed_name, scale in TakesNotes.passed:
        assert len(notes) == n_rows
        assert (passed_name, scale) == (name, 2.0)
    first = next(each for each in TakesNotes.passed if each[0] == 40)
    assert list(first[1]) == list(range(20, 60))


def test_groups_go_to_the_splitter(data):
    X, y = data
    groups = np.repeat(np.arange(12), 5)
    model = Staged(boosted(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    for judged in model.cv_indices_:
        assert not set(groups[judged]) & set(groups[np.setdiff1d(range(60), judged)])
    with pytest.raises(TypeError, match="colour"):
        Staged(boosted(), cv=3).fit(X, y, colour=1)


def test_metadata_are_routed_as_they_are_requested(data):
    X, y = data
    weights, groups = np.arange(1.0, 61.0), np.repeat(np.arange(12), 5)
    plain = Staged(boosted(), cv=GroupKFold(3))
    plain.fit(X, y, groups=groups, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = boosted().set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        routed = Staged(inner, cv=GroupKFold(3))
        routed.fit(X, y, groups=groups, sample_weight=weights)
        score = routed.score(X, y, sample_weight=weights)
        with pytest.raises(TypeError, match="colour"):
            routed.fit(X, y, colour=weights)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipe = Staged(make_pipeline(scaler, inner), cv=3)
        pipe.fit(X, y, sample_weight=weights)
        by_hand = make_pipeline(scaler, inner).fit(X, y, sample_weight=weights)
    assert_same_fits(routed, plain, X)
    assert score == plain.score(X, y, sample_weight=weights)
    np.testing.assert_array_equal(pipe.predict(X), by_hand.predict(X))
    errors = (
        y
        - np.asarray(pipe.cv_prediction_path_)[5][
            np.argsort(np.hstack(pipe.cv_indices_))
        ]
    ) ** 2
    np.testing.assert_allclose(pipe.cv_path_[5], np.average(errors, weights=weights))


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    "estimator",
    [
        SVR(),
        KNeighborsRegressor(),
        LinearRegression(),
        StackingRegressor([("a", LinearRegression())]),
        make_pipeline(StandardScaler(), SVR()),
        MiniBatchKMeans(),
        TrajectoryLasso(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_cannot_go_on_is_refused(estimator, data):
    with pytest.raises(ValueError, match=r"cannot be fitted stage by stage: .* can\.$"):
        Staged(estimator).fit(*data)


def test_what_is_wrong_is_said(data, labelled):
    X, y = data
    model = Staged(boosted(), cv=3)
    with pytest.raises(ValueError, match="n_updates must be at least 1, got 0"):
        model.fit_up_to(0, X, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        model.fit(X)
    with pytest.raises(ValueError, match="'max_iter' parameter of HistGradient"):
        Staged(boosted(max_iter=0)).fit(X, y)
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(X, np.where(y > 1, np.nan, y))
    with pytest.raises(ValueError, match="Unknown label type"):
        Staged(HistGradientBoostingClassifier(**SMALL), cv=3).fit(X, y)
    two = np.stack([labelled[1]] * 2, axis=1)
    with pytest.raises(ValueError, match="y should be a 1d array"):
        Staged(RandomForestClassifier(3), cv=3).fit(X, two)
    with pytest.raises(TypeError, match="a RowSummary has moments of most of them"):
        model.fit(RowSummary.from_arrays(X, y))


def test_folds_without_rows_are_refused(data):
    X, y = data
    weights = np.r_[np.zeros(20), np.ones(40)]
    for cv, said in {
        "judge by": KFold(3),
        "fit on": [(np.arange(20), np.arange(20, 60))],
    }.items():
        with pytest.raises(ValueError, match=f"Fold 0 of cv leaves no row .* to {cv}"):
            Staged(boosted(), cv=said).fit(X, y, sample_weight=weights)
    with pytest.raises(ValueError, match="Fold 0 of cv has rows beyond the 60 samples"):
        Staged(boosted(), cv=[(np.arange(90), [3])]).fit(X, y)
    with pytest.raises(ValueError, match="cv gives no folds"):
        Staged(boosted(), cv=[]).fit(X, y)


def test_checks_of_data_raise_what_the_estimator_raises(data):
    X, y = data
    Staged(boosted())._check_data(X, y)
    X[3, 1] = np.nan
    model = Staged(GradientBoostingRegressor())
    with pytest.raises(ValueError, match="Input X contains NaN") as found:
        model._check_data(X, y)
    with pytest.raises(ValueError, match="Input X contains NaN") as expected:
        GradientBoostingRegressor().fit(X, y)
    assert str(found.value) == str(expected.value)
    assert not hasattr(model, "n_iter_")


def test_what_is_wrapped():
    for estimator in (TrajectoryLasso(), SVR(), LinearRegression(), Staged(boosted())):
        assert recorded(estimator) is estimator
    assert isinstance(recorded(boosted()), Staged)
    pipe = make_pipeline(StandardScaler(), TrajectoryLasso())
    assert recorded(pipe) is pipe
    assert recorded(boosted(verbose=1), n_jobs=2).get_params(deep=False)["verbose"]


def test_losses_by_their_names():
    class Named:
        def __init__(self, **params):
            self.params = params

        def get_params(self, deep=True):
            return self.params

    for params, expected in [
        ({"loss_function": "Quantile:alpha=0.3"}, losses.Pinball(0.3)),
        ({"objective": "reg:tweedie"}, losses.HalfDeviance(1.5)),
        (
            {"objective": "tweedie", "tweedie_variance_power": 1.2},
            losses.HalfDeviance(1.2),
        ),
        ({"objective": "count:poisson"}, Poisson()),
        ({"objective": "reg:squarederror"}, losses.SquaredError()),
        ({"objective": None}, losses.SquaredError()),
    ]:
        assert losses.regression_loss(Named(**params)) == expected


def test_half_deviances_are_those_of_metrics(rng):
    from sklearn.metrics import mean_tweedie_deviance

    y, mean = rng.gamma(2.0, size=(2, 30)) + 0.1
    for power in (1.2, 1.5, 2.0):
        cost = losses.HalfDeviance(power).cost(y[:, None], mean[:, None])
        expected = mean_tweedie_deviance(y, mean, power=power) / 2
        np.testing.assert_allclose(cost.mean(), expected)
