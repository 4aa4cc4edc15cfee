"""Prediction sets of classifiers, from the held-out rows that their fits have."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GroupKFold, KFold

from skacv import (
    KernelEigenProClassifier,
    SelfStoppingClassifier,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)

from ..oracles import set_by_hand

FOLDS = KFold(4, shuffle=True, random_state=0)
TREES = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5, random_state=0)
MODELS = {
    "logistic": TrajectoryLogisticRegression(C=1.0, max_iter=20, cv=FOLDS, loo=False),
    "kernel": KernelEigenProClassifier(
        gamma=0.3, n_components=0, max_iter=4, cv=FOLDS, loo=False, random_state=0
    ),
    "trees": Staged(TREES, cv=FOLDS),
}
METHODS = ["lac", "aps"]


def model_of(name, **params):
    return clone(MODELS[name]).set_params(**params)


def drawn(rng, n_rows, n_classes=3):
    """Rows, and classes of them by name that overlap."""
    X = rng.standard_normal((n_rows, 3))
    logits = X @ (1.5 * np.eye(3))[:, :n_classes]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = np.array(["a", "c", "b"])[:n_classes]
    return X, np.array([rng.choice(names, p=row) for row in shares])


def shares_of(decision):
    """Probabilities of decisions that are log odds."""
    if decision.ndim == 1:
        decision = np.stack([np.zeros_like(decision), decision], axis=1)
    decision = np.exp(decision - decision.max(axis=1, keepdims=True))
    return decision / decision.sum(axis=1, keepdims=True)


def held_out_shares(name, model):
    """Probabilities of the held-out rows, fold after fold."""
    predictions = model.cv_prediction_path_[model.iteration_]
    if name == "trees":
        return predictions
    return shares_of(getattr(model, "probability_scale_", 1.0) * predictions)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MODELS)
def test_sets_by_hand(name, n_classes, rng):
    X, y = drawn(rng, 70, n_classes)
    model = model_of(name).fit(X[:60], y[:60]).at_iteration(3)
    labels = np.searchsorted(model.classes_, y[np.hstack(model.cv_indices_)])
    known, new = held_out_shares(name, model), model.predict_proba(X[60:])
    for method in METHODS:
        found = model.predict_set(X[60:], [0.7, 0.9], method)
        assert found.shape == (10, n_classes, 2)
        for place, coverage in enumerate((0.7, 0.9)):
            for row, members in zip(new, found[:, :, place]):
                expected = set_by_hand(known, labels, row, coverage, method)
                np.testing.assert_array_equal(np.flatnonzero(members), expected)


@pytest.mark.parametrize("name", ["logistic", "trees"])
def test_groups_count_as_one(name, rng):
    X, y = drawn(rng, 90)
    groups = rng.permutation(np.repeat(np.arange(15), 6))
    model = model_of(name, cv=GroupKFold(3)).fit(X, y, groups=groups)
    rows = np.hstack(model.cv_indices_)
    labels = np.searchsorted(model.classes_, y[rows])
    known, new = held_out_shares(name, model), model.predict_proba(X[:5])
    for method in METHODS:
        for row, members in zip(new, model.predict_set(X[:5], 0.8, method)):
            expected = set_by_hand(known, labels, row, 0.8, method, groups[rows])
            np.testing.assert_array_equal(np.flatnonzero(members), expected)
    with pytest.raises(ValueError, match=r"at least 19 .* there are 15"):
        model.predict_set(X, 0.95)


def test_leave_one_out_serves_as_well(rng):
    X, y = drawn(rng, 60)
    model = TrajectoryLogisticRegression(max_iter=10, loo=True).fit(X, y)
    labels = np.searchsorted(model.classes_, y[model.loo_indices_])
    known = shares_of(model.loo_prediction_path_[10])
    for row, members in zip(model.predict_proba(X[:5]), model.predict_set(X[:5], 0.8)):
        expected = set_by_hand(known, labels, row, 0.8, "lac")
        np.testing.assert_array_equal(np.flatnonzero(members), expected)


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_kept_where_predictions_are_not(name, rng, set_limits):
    X, y = drawn(rng, 60)
    expected = [model_of(name).fit(X, y).predict_set(X, 0.8, each) for each in METHODS]
    set_limits(MOST_KEPT=1, MEMORY_BYTES=1)
    model = model_of(name).fit(X, y)
    for again in (model, pickle.loads(pickle.dumps(model))):
        found = [again.predict_set(X, 0.8, each) for each in METHODS]
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_of_a_chosen_model_and_of_a_blend(rule, rng):
    X, y = drawn(rng, 150)
    y = np.where(X[:, 1] ** 2 > 2, "c", y)  # which one model alone cannot say
    groups = rng.permutation(np.repeat(np.arange(15), 10))
    members = [
        ("logistic", TrajectoryLogisticRegression(C=1.0, max_iter=20)),
        ("trees", TREES),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule=rule, random_state=0)
    model.fit(X, y, groups=groups)
    assert (min(model.weights_.values()) > 0) == (rule == "blend")
    held_out = {
        name: held_out_shares(name, member) for name, member in model.members_.items()
    }
    known = sum(model.weights_[name] * shares for name, shares in held_out.items())
    rows = np.hstack(next(iter(model.members_.values())).cv_indices_)
    labels = np.searchsorted(model.classes_, y[rows])
    new = model.predict_proba(X[:8])
    for method in METHODS:
        for row, members in zip(new, model.predict_set(X[:8], 0.8, method)):
            expected = set_by_hand(known, labels, row, 0.8, method, groups[rows])
            np.testing.assert_array_equal(np.flatnonzero(members), expected)


def test_with_nothing_set(few_trees, rng):
    X, y = drawn(rng, 90)
    model = SelfStoppingClassifier(random_state=0).fit(X, y)
    found = model.predict_set(X, [0.5, 0.9], "aps")
    assert found.shape == (90, 3, 2)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_set(X, [0.5, 0.9], "aps"), found)


@pytest.mark.parametrize("name", MODELS)
def test_unseen_rows_are_covered(name, rng):
    """Of 400 held-out rows and 4000 new ones the share has a standard error of .016."""
    X, y = drawn(rng, 4400)
    model = model_of(name).fit(X[:400], y[:400])
    label = np.searchsorted(model.classes_, y[400:])
    for method in METHODS:
        found = model.predict_set(X[400:], 0.9, method)
        assert abs(found[np.arange(4000), label].mean() - 0.9) < 0.05


def test_who_has_no_sets():
    for model in (TrajectoryLinearSVC(), Staged(SGDClassifier())):
        assert not hasattr(model, "predict_set")
    assert hasattr(Staged(TREES), "predict_set")
    assert hasattr(SelfStoppingClassifier(), "predict_set")


SYNONYMS = [("alpha", "one minus alpha"), ("confidence_level", "the same number")]


@pytest.mark.parametrize(("word", "means"), SYNONYMS)
def test_what_is_refused(word, means, rng):
    X, y = drawn(rng, 60)
    model = model_of("logistic").fit(X, y)
    stopped = TrajectoryEarlyStoppingCV(model_of("logistic")).fit(X, y)
    blend = TrajectoryEarlyStoppingCV(
        [("logistic", model), ("trees", TREES)], rule="blend", random_state=0
    ).fit(X, y)
    for fitted in (model, model_of("trees").fit(X, y), stopped, blend):
        with pytest.raises(
            TypeError, match=f"no parameter {word}: use coverage=, {means}"
        ):
            fitted.predict_set(X, **{word: 0.1})
        with pytest.raises(ValueError, match="between 0 and 1"):
            fitted.predict_set(X, 1.5)
        with pytest.raises(ValueError, match=r"one of \['lac', 'aps'\], got 'raps'"):
            fitted.predict_set(X, method="raps")
        with pytest.raises(ValueError, match=r"at least 999 rows .* but there are 60"):
            fitted.predict_set(X, 0.999)


def test_without_held_out_rows(rng):
    X, y = drawn(rng, 60)
    bare = TrajectoryLogisticRegression(max_iter=3, loo=False, risk=False)
    for model in (bare, Staged(TREES)):
        with pytest.raises(ValueError, match="fitted without any: fit it with"):
            model.fit(X, y).predict_set(X)
