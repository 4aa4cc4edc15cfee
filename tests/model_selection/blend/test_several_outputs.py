"""Blends for several outputs, and for several labels in a row, against loops by hand.

By hand a linear or a boosted member is a model for each output, fitted alone, and a
forest is one for all outputs.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.metrics import accuracy_score, f1_score, r2_score
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

from skacv import IterativeRidge, SelfStoppingClassifier

from .cases import (
    FOLDS,
    blended,
    by_loops,
    by_supports,
    folds_of,
    in_order,
    mean_over_folds,
)

pytestmark = pytest.mark.usefixtures("weights_of_all_rows")

RIDGE = IterativeRidge(0.0, max_iter=8, tol=0.0, loo=False, risk=False)
BOOSTED = HistGradientBoostingRegressor(max_iter=12, min_samples_leaf=5)
FOREST = ExtraTreesRegressor(6, max_depth=4, random_state=0)
LABEL_BOOSTED = HistGradientBoostingClassifier(max_iter=12, min_samples_leaf=5)
LABEL_FOREST = ExtraTreesClassifier(12, max_depth=3, random_state=0)


@pytest.fixture
def outputs(rng):
    """A line, a wave, and their product, in different units."""
    X = rng.standard_normal((90, 4))
    line, wave = X[:, 0] - X[:, 1], np.sin(2 * X[:, 2])
    Y = np.stack([line, 2 * wave, 3 * line * wave], axis=1)
    return X, Y + 0.4 * rng.standard_normal(Y.shape)


def over_folds(stages_of, X, Y):
    """Held-out predictions of all stages, (n_stages + 1, n_rows, n_outputs)."""
    held_out = None
    for fitted, judged in FOLDS.split(X, Y):
        start = np.broadcast_to(Y[fitted].mean(axis=0), (len(judged), Y.shape[1]))
        stages = np.stack([start, *stages_of(X[fitted], Y[fitted], X[judged])])
        if held_out is None:
            held_out = np.empty((len(stages), *Y.shape))
        held_out[:, judged] = stages
    return held_out


def for_each(estimator, method):
    """Stages of a model for each output."""

    def stages_of(X, Y, new):
        own = [clone(estimator).fit(X, y) for y in Y.T]
        staged = [getattr(each, method)(new) for each in own]
        for stages in zip(*staged):
            yield np.stack([s if s.ndim == 1 else s[:, 1] for s in stages], axis=1)

    return stages_of


def tree_by_tree(forest, of_tree):
    """Means over the first trees of one forest for all outputs."""

    def stages_of(X, Y, new):
        trees = clone(forest).fit(X, Y).estimators_
        values = [of_tree(tree, new.astype(np.float32)) for tree in trees]
        return [np.mean(values[: t + 1], axis=0) for t in range(len(trees))]

    return stages_of


def members_by_hand(X, Y):
    columns = [clone(RIDGE).set_params(cv=FOLDS).fit(X, y) for y in Y.T]
    return {
        "ridge": np.stack([in_order(each) for each in columns], axis=2),
        "boosted": over_folds(for_each(BOOSTED, "staged_predict"), X, Y),
        "forest": over_folds(
            tree_by_tree(FOREST, lambda tree, new: tree.predict(new)), X, Y
        ),
    }


def labels_by_hand(X, Y):
    def of_tree(tree, new):
        return np.stack([each[:, 1] for each in tree.predict_proba(new)], axis=1)

    return {
        "boosted": over_folds(for_each(LABEL_BOOSTED, "staged_predict_proba"), X, Y),
        "forest": over_folds(tree_by_tree(LABEL_FOREST, of_tree), X, Y),
    }


@pytest.mark.parametrize("n_outputs", [2, 3])
def test_regression_is_that_by_hand(n_outputs, outputs):
    X, Y = outputs[0], outputs[1][:, :n_outputs]
    members = [
        ("ridge", RIDGE),
        ("boosted", MultiOutputRegressor(BOOSTED)),
        ("forest", FOREST),
    ]
    model = blended(members, X, Y, cv=FOLDS)
    paths = members_by_hand(X, Y)
    losses = {name: ((own - Y) ** 2).mean(axis=2) for name, own in paths.items()}
    fold = folds_of(FOLDS, X, Y)
    best = {}
    for name, own in losses.items():
        path = own.mean(axis=1)
        np.testing.assert_allclose(model.member_paths_[name], path, rtol=1e-8)
        best[name] = path.argmin()
        assert model.members_[name].iteration_ == best[name]
    chosen = np.stack([paths[name][best[name]] for name in paths], axis=2)
    errors = (chosen - Y[:, :, None]).reshape(-1, len(paths))
    weights = by_supports(errors, np.ones(len(errors)))
    assert (weights > 0.05).sum() >= 2
    np.testing.assert_allclose(list(model.weights_.values()), weights, atol=1e-6)
    by_row = ((chosen @ weights - Y) ** 2).mean(axis=1)
    expected = mean_over_folds(by_row, fold, np.ones(len(Y)))
    assert (model.best_score_, model.best_score_se_) == pytest.approx(expected)
    corrected = by_loops(
        list(losses.values()),
        list(paths.values()),
        Y,
        lambda y, predictions: np.mean((y - predictions) ** 2),
        lambda predictions, y: by_supports(
            (predictions - y[:, :, None]).reshape(-1, len(paths)), np.ones(y.size)
        ),
    )
    assert model.best_score_corrected_ == pytest.approx(corrected, rel=1e-6)
    # Every output has its own residuals.
    actual = model.predict_interval(X, [0.5, 0.9], method="cv")
    assert actual.shape == (90, n_outputs, 2, 2)
    sizes = np.sort(np.abs(chosen @ weights - Y), axis=0)
    for place, coverage in enumerate((0.5, 0.9)):
        width = sizes[int(np.ceil(coverage * 91)) - 1]
        center = model.predict(X)
        ends = np.stack([center - width, center + width], axis=2)
        np.testing.assert_allclose(actual[..., place], ends, atol=1e-5)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_labels_are_those_by_hand(n_labels):
    X, Y = make_multilabel_classification(
        90, 5, n_classes=n_labels, n_labels=1, random_state=0
    )
    members = [
        ("boosted", MultiOutputClassifier(LABEL_BOOSTED)),
        ("forest", LABEL_FOREST),
    ]
    model = blended(members, X, Y, cv=FOLDS, cls=SelfStoppingClassifier)
    paths, least = labels_by_hand(X, Y), np.finfo(float).eps

    def losses_of(y, probabilities):
        observed = np.where(y == 1, probabilities, 1 - probabilities)
        return -np.log(np.clip(observed, least, 1 - least)).mean(axis=-1)

    def weights_of(probabilities, y):
        boosted, forest = np.where(
            y[..., None] == 1, probabilities, 1 - probabilities
        ).T

        def loss(weight):
            mixed = weight * boosted + (1 - weight) * forest
            return -np.log(np.maximum(mixed, least)).mean()

        weight = minimize_scalar(loss, bounds=(0, 1), method="bounded").x
        return np.array([weight, 1 - weight])

    losses = {name: losses_of(Y, own) for name, own in paths.items()}
    for name, own in losses.items():
        np.testing.assert_allclose(
            model.member_paths_[name], own.mean(axis=1), rtol=1e-8
        )
    best = {name: own.mean(axis=1).argmin() for name, own in losses.items()}
    chosen = np.stack([paths[name][best[name]] for name in paths], axis=2)
    weights = weights_of(chosen, Y)
    assert weights.min() > 0.05
    np.testing.assert_allclose(list(model.weights_.values()), weights, atol=1e-3)
    by_row, fold = losses_of(Y, chosen @ weights), folds_of(FOLDS, X, Y)
    expected = mean_over_folds(by_row, fold, np.ones(len(Y)))
    actual = model.best_score_, model.best_score_se_
    assert actual == pytest.approx(expected, rel=1e-5)
    corrected = by_loops(
        list(losses.values()), list(paths.values()), Y, losses_of, weights_of
    )
    assert model.best_score_corrected_ == pytest.approx(corrected, rel=1e-4)
    assert set(model.results_["loss"]) == {"log loss"}
    # As OneVsRestClassifier has them.
    boosted, forest = (
        model.members_[name].predict_proba(X) for name in ("boosted", "forest")
    )
    mixed = model.weights_["boosted"] * boosted + model.weights_["forest"] * forest
    assert mixed.shape == Y.shape
    np.testing.assert_allclose(model.predict_proba(X), mixed)
    np.testing.assert_array_equal(model.predict(X), mixed > 0.5)
    np.testing.assert_allclose(model.decision_function(X), logit(mixed))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(mixed))
    np.testing.assert_array_equal(model.classes_, np.arange(n_labels))
    assert model.score(X, Y) == accuracy_score(Y, mixed > 0.5)


def test_a_scorer_scores_all_outputs(outputs):
    X, Y = outputs
    model = blended(
        [("ridge", RIDGE), ("forest", FOREST)], X, Y, criterion="r2", cv=FOLDS
    )
    for name in ("ridge", "forest"):
        expected = [r2_score(Y, each) for each in members_by_hand(X, Y)[name]]
        np.testing.assert_allclose(model.member_paths_[name], expected)


def test_a_scorer_scores_all_labels():
    X, Y = make_multilabel_classification(90, 5, n_classes=3, random_state=0)
    members = [
        ("boosted", MultiOutputClassifier(LABEL_BOOSTED)),
        ("forest", LABEL_FOREST),
    ]
    model = blended(members, X, Y, criterion="f1_macro", cv=FOLDS)
    for name, path in labels_by_hand(X, Y).items():
        expected = [f1_score(Y, each > 0.5, average="macro") for each in path]
        np.testing.assert_allclose(model.member_paths_[name], expected)
