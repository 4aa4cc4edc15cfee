"""One staged estimator for each output, and several labels in a row, against clones."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags

from skacv import Staged, TrajectoryEarlyStoppingCV
from skacv.staged import adapters
from tests.runs import InParts

SEED = {"random_state": 0}
FEW = {"n_estimators": 4, **SEED}
REGRESSORS = [
    HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5, **SEED),
    HistGradientBoostingRegressor(
        loss="poisson", max_iter=4, min_samples_leaf=5, **SEED
    ),
    GradientBoostingRegressor(subsample=0.7, **FEW),
    AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), **FEW),
    RandomForestRegressor(max_depth=3, **FEW),
    BaggingRegressor(DecisionTreeRegressor(max_depth=2), max_features=0.5, **FEW),
    SGDRegressor(max_iter=4, eta0=0.001, **SEED),
]
BOOSTED_LABELS = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, **SEED)
CLASSIFIERS = [
    MultiOutputClassifier(BOOSTED_LABELS),
    MultiOutputClassifier(GradientBoostingClassifier(**FEW)),
    MultiOutputClassifier(SGDClassifier(loss="log_loss", max_iter=4, **SEED)),
    RandomForestClassifier(max_depth=3, **FEW),
    ExtraTreesClassifier(max_depth=3, **FEW),
    MLPClassifier(hidden_layer_sizes=(5,), max_iter=4, batch_size=16, **SEED),
]
COUNTS = "max_iter", "n_estimators"


def named(estimator):
    inner = getattr(estimator, "estimator", None)
    own = inner if hasattr(inner, "fit") else estimator
    outer = "each-" if isinstance(estimator, MultiOutputClassifier) else ""
    return f"{outer}{type(own).__name__}-{getattr(own, 'loss', '')}"


def several(rng, n_rows=60):
    """Positive targets in different units, of which the last is easily fitted."""
    X = rng.standard_normal((n_rows, 4))
    Y = np.stack([X[:, 0] + X[:, 1] * X[:, 2], 10 * X[:, 3], X[:, 0] > 0], axis=1)
    return X, np.abs(Y + 0.1 * rng.standard_normal(Y.shape))


def labels(n_rows=60):
    return make_multilabel_classification(
        n_rows, 4, n_classes=3, n_labels=2, random_state=0
    )


def grown(estimator, n_stages, X, Y, **params):
    """An estimator of so many stages, as a user of scikit-learn would have it."""
    if hasattr(estimator, "partial_fit"):
        model = clone(estimator)
        if is_classifier(estimator):
            each = isinstance(estimator, MultiOutputClassifier)
            params["classes"] = [[0, 1]] * Y.shape[1] if each else range(Y.shape[1])
        for _ in range(n_stages):
            model.partial_fit(X, Y, **params)
        return model
    settings = estimator.get_params()
    prefix = "estimator__" if isinstance(estimator, adapters.PerOutput.classes) else ""
    count = next(prefix + name for name in COUNTS if prefix + name in settings)
    return clone(estimator).set_params(**{count: n_stages}).fit(X, Y, **params)


def responses(estimator, X):
    """Predictions, or the probability of each label, as a matrix."""
    if not is_classifier(estimator):
        return estimator.predict(X)
    probabilities = estimator.predict_proba(X)
    if not isinstance(probabilities, list):
        return probabilities
    columns = []
    if isinstance(estimator, MultiOutputClassifier):
        labelled = [each.classes_ for each in estimator.estimators_]
    else:
        labelled = estimator.classes_
    for values, classes in zip(probabilities, labelled):
        place = np.flatnonzero(classes == 1)
        columns.append(values[:, place[0]] if len(place) else np.zeros(len(X)))
    return np.stack(columns, axis=1)


def assert_held_out_as_by_hand(model, X, Y, **params):
    """Held-out predictions of every stage, and the stages of the model on all rows."""
    place, inner = 0, model.estimator
    path = np.asarray(model.cv_prediction_path_)
    assert path.shape == (model.n_iter_ + 1, *Y.shape)
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(len(Y)), judged)
        own = {name: value[fitted] for name, value in params.items()}
        for t in range(1, model.n_iter_ + 1):
            expected = grown(inner, t, X[fitted], Y[fitted], **own)
            np.testing.assert_allclose(
                path[t, place : place + len(judged)],
                responses(expected, X[judged]),
                rtol=0,
                atol=1e-14 if is_classifier(inner) else 0,
            )
        place += len(judged)
    for t in range(1, model.n_iter_ + 1):
        expected, actual = grown(inner, t, X, Y, **params), model.at_iteration(t)
        np.testing.assert_array_equal(actual.predict(X), expected.predict(X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("inner", REGRESSORS, ids=named)
def test_outputs_are_those_of_clones(inner, weighted, rng):
    X, Y = several(rng)
    params = {"sample_weight": rng.uniform(0.5, 2.0, len(Y))} if weighted else {}
    model = Staged(MultiOutputRegressor(inner), cv=2).fit(X, Y, **params)
    assert_held_out_as_by_hand(model, X, Y, **params)
    # The loss is the mean of those of single outputs.
    columns = [Staged(inner, cv=2).fit(X, y, **params) for y in Y.T]
    length = max(len(each.cv_path_) for each in columns)
    paths = [np.pad(p.cv_path_, (0, length - len(p.cv_path_)), "edge") for p in columns]
    np.testing.assert_allclose(model.cv_path_, np.mean(paths, axis=0))


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=named)
def test_labels_are_those_of_clones(estimator):
    X, Y = labels()
    model = Staged(estimator, cv=2).fit(X, Y)
    assert_held_out_as_by_hand(model, X, Y)
    path, least = np.asarray(model.cv_prediction_path_), np.finfo(float).eps
    observed = np.where(model.cv_target_ == 1, path, 1 - path)
    losses = -np.log(np.clip(observed, least, 1 - least))
    np.testing.assert_allclose(model.cv_path_, losses.mean(axis=(1, 2)))
    by_hand = grown(estimator, model.n_iter_, X, Y)
    np.testing.assert_allclose(
        model.predict_proba(X), responses(by_hand, X), rtol=1e-14
    )
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    assert model.score(X, Y) == by_hand.score(X, Y)
    *_, last = model.staged_predict(X)
    np.testing.assert_array_equal(last, by_hand.predict(X))
    actual = model.staged_loss(X, Y)[-1]
    observed = np.clip(responses(by_hand, X), least, 1 - least)
    expected = -np.log(np.where(Y == 1, observed, 1 - observed)).mean()
    assert actual == pytest.approx(expected)


@pytest.mark.parametrize(
    "estimator",
    [CLASSIFIERS[0], *CLASSIFIERS[3:5]],
    ids=named,
)
@pytest.mark.parametrize("value", [0, 1])
def test_a_label_that_a_fold_does_not_vary_in(estimator, value):
    X, Y = labels()
    Y[:, 1] = value
    Y[:4, 1] = 1 - value
    splits = [(np.arange(4, 60), np.arange(4)), (np.arange(30), np.arange(30, 60))]
    model = Staged(estimator, cv=splits).fit(X, Y)
    actual = np.asarray(model.cv_prediction_path_)
    np.testing.assert_allclose(actual[:, :4, 1], value, atol=1e-6)
    for fitted, judged in splits:
        expected = responses(
            grown(estimator, model.n_iter_, X[fitted], Y[fitted]), X[judged]
        )
        part = actual[-1, :4] if len(judged) == 4 else actual[-1, 4:]
        np.testing.assert_allclose(part, expected, atol=1e-14)


def test_runs_in_parts_are_those_at_once(rng):
    X, Y = several(rng)
    for inner in REGRESSORS:
        at_once = Staged(MultiOutputRegressor(inner), cv=2).fit(X, Y)
        in_parts, n_stages = Staged(MultiOutputRegressor(inner), cv=2), 1
        parts = InParts(in_parts, X, Y)
        while not parts.go_on(n_stages):
            n_stages += 1
        for name in ("cv_path_", "cv_se_path_", "cv_prediction_path_"):
            np.testing.assert_array_equal(
                getattr(in_parts, name), getattr(at_once, name)
            )
        np.testing.assert_array_equal(in_parts.predict(X), at_once.predict(X))


def test_a_stage_is_set_as_a_fit_with_so_many(rng):
    X, Y = several(rng)
    boosted = HistGradientBoostingRegressor(max_iter=5, early_stopping=True)
    with pytest.warns(UserWarning, match="early_stopping=True .* is switched off"):
        model = Staged(MultiOutputRegressor(boosted, n_jobs=2), cv=2).fit(X, Y)
    stopped = pickle.loads(pickle.dumps(model.at_iteration(3)))
    actual = stopped.estimator_
    assert actual.estimator.max_iter == 3
    assert actual.estimator.early_stopping is False
    assert actual.n_jobs == 2
    assert [each.n_iter_ for each in actual.estimators_] == [3, 3, 3]
    assert actual.n_features_in_ == 4
    anew = clone(actual).set_params(n_jobs=None).fit(X, Y)
    np.testing.assert_array_equal(anew.predict(X), actual.predict(X))
    np.testing.assert_array_equal(stopped.predict(X), actual.predict(X))


def test_outputs_that_end_early_go_on_as_they_are(rng):
    """A tree that fits its rows at once ends the boosting of its output."""
    X = rng.standard_normal((60, 2))
    Y = np.stack([np.where(X[:, 0] > 0, 1.0, -1.0), rng.standard_normal(60)], axis=1)
    boosted = AdaBoostRegressor(
        DecisionTreeRegressor(max_depth=2), n_estimators=5, random_state=0
    )
    model = Staged(MultiOutputRegressor(boosted), cv=3).fit(X, Y)
    ended, other = model.estimator_.estimators_
    assert len(ended.estimators_) < model.n_iter_ == len(other.estimators_)
    assert_held_out_as_by_hand(model, X, Y)


def test_copies_of_all_outputs_share_the_room(rng, set_limits):
    X, Y = several(rng)
    inner = MLPRegressor(hidden_layer_sizes=(20,), max_iter=12, **SEED)
    whole = Staged(MultiOutputRegressor(inner), cv=2).fit(X, Y)
    n_bytes = len(pickle.dumps(whole.estimator_.estimators_[0]))
    # Five copies of each of three outputs, of the model and two folds.
    set_limits(MEMORY_BYTES=5 * 9 * n_bytes)
    few = Staged(MultiOutputRegressor(inner), cv=2).fit(X, Y)
    kept = few.recorded_iterations()
    assert 2 <= len(kept) <= 5
    assert {1 + few.cv_path_[1:].argmin(), 12} <= set(kept)
    np.testing.assert_array_equal(few.cv_path_, whole.cv_path_)
    for t in kept:
        np.testing.assert_array_equal(
            few.at_iteration(t).predict(X), whole.at_iteration(t).predict(X)
        )


def test_frames_with_categories_and_missing_values(rng):
    X, Y = several(rng)
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["kind"] = pd.Categorical(rng.choice(["x", "y"], len(X)))
    frame.loc[::7, "a"] = np.nan
    targets = pd.DataFrame(Y, index=rng.permutation(len(Y)))
    boosted = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
    outer = MultiOutputRegressor(boosted)
    assert get_tags(Staged(outer)).input_tags.allow_nan
    model = Staged(outer, cv=2).fit(frame, targets)
    by_hand = clone(outer).fit(frame, Y)
    np.testing.assert_array_equal(model.predict(frame), by_hand.predict(frame))
    assert model.feature_names_in_.tolist() == [*"abcd", "kind"]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("is_column", [False, True])
def test_one_output_is_that_output(is_column, rng):
    X, Y = several(rng)
    inner = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
    y = Y[:, :1] if is_column else Y[:, 0]
    model = Staged(MultiOutputRegressor(inner), cv=2).fit(X, y)
    expected = Staged(inner, cv=2).fit(X, Y[:, 0])
    np.testing.assert_array_equal(model.cv_path_, expected.cv_path_)
    np.testing.assert_array_equal(model.predict(X)[:, 0], expected.predict(X))


def test_offsets_of_several_outputs_are_refused(rng):
    """LightGBM, XGBoost and CatBoost would add the same to each."""
    X, Y = several(rng)
    lightgbm = pytest.importorskip("lightgbm")
    model = Staged(MultiOutputRegressor(lightgbm.LGBMRegressor(n_estimators=2)))
    with pytest.raises(
        ValueError, match="init_score would be added equally to all outputs"
    ):
        model.fit(X, Y, init_score=Y[:, 0])


def test_what_takes_several_labels():
    for estimator in CLASSIFIERS:
        assert get_tags(Staged(estimator)).classifier_tags.multi_label
    for estimator in (BOOSTED_LABELS, MultiOutputClassifier(SGDClassifier())):
        assert not get_tags(Staged(estimator)).classifier_tags.multi_label
        X, Y = labels()
        with pytest.raises(ValueError, match="use a forest, or MultiOutputClassifier"):
            Staged(estimator).fit(X, Y)
    with pytest.raises(ValueError, match="pass a single-label classifier"):
        Staged(MultiOutputClassifier(BOOSTED_LABELS)).fit(X, Y[:, 0])


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(3, class_weight="balanced", **SEED),
        MultiOutputClassifier(clone(BOOSTED_LABELS).set_params(class_weight={1: 2.0})),
    ],
    ids=named,
)
def test_class_weights_of_labels_are_warned_of(estimator):
    X, Y = labels()
    with pytest.warns(UserWarning, match="class_weight=.* not in the losses"):
        Staged(estimator, cv=2).fit(X, Y)


def test_intervals_have_the_residuals_of_each_output(rng):
    X, Y = several(rng)
    inner = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
    model = Staged(MultiOutputRegressor(inner), cv=3).fit(X, Y)
    residuals = np.abs(model.cv_prediction_path_[-1] - model.cv_target_)
    width = np.sort(residuals, axis=0)[int(np.ceil(0.8 * (len(Y) + 1))) - 1]
    ends = [model.predict(X) - width, model.predict(X) + width]
    actual = model.predict_interval(X, 0.8, method="cv")
    np.testing.assert_allclose(actual, np.stack(ends, axis=2))


@pytest.mark.parametrize("of_labels", [False, True])
def test_predictions_that_are_not_kept_are_made_again(of_labels, rng, set_limits):
    (X, Y), estimator = labels(), CLASSIFIERS[0]
    if not of_labels:
        (X, Y), estimator = several(rng), MultiOutputRegressor(REGRESSORS[0])
    kept = Staged(estimator, cv=2).fit(X, Y)
    set_limits(MEMORY_BYTES=4 * 8)
    again = Staged(estimator, cv=2).fit(X, Y)
    for t in (0, 2, -1):
        actual, expected = (each.cv_prediction_path_[t] for each in (again, kept))
        np.testing.assert_allclose(actual, expected, rtol=1e-12)
    np.testing.assert_allclose(again.cv_path_, kept.cv_path_, rtol=1e-12)


def test_parameters_of_each_output_are_set_by_their_names(rng):
    """By those that MultiOutputRegressor has for them, or with one prefix more."""
    X, Y = several(rng)
    inner = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)
    outer = MultiOutputRegressor(inner)
    model = Staged(outer).set_params(estimator__max_iter=7)
    assert outer.estimator.max_iter == 7
    model.set_params(estimator__estimator__max_iter=5, estimator__n_jobs=1)
    assert (outer.estimator.max_iter, outer.n_jobs) == (5, 1)
    with pytest.raises(ValueError, match="Invalid parameter 'trees'"):
        model.set_params(estimator__trees=5)
    grid = {"estimator__learning_rate": [0.01, 0.3]}
    best = TrajectoryEarlyStoppingCV(outer, param_grid=grid, cv=2).fit(X, Y)
    assert best.best_params_ == {
        "estimator__learning_rate": 0.3,
        "estimator__max_iter": best.best_iter_,
    }
    assert best.estimator_.set_params(**best.best_params_).n_iter_ == 5
