"""Weights and scores of blends from held-out predictions, by loops."""

from itertools import product

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score
from sklearn.model_selection import StratifiedKFold

from skacv import KernelEigenProClassifier, TrajectoryLogisticRegression

from .cases import (
    FOLDS,
    alone,
    blended,
    by_loops,
    by_supports,
    classifiers,
    counts,
    folds_of,
    greedily,
    held_out_errors,
    in_order,
    is_blended,
    mean_over_folds,
    members,
    pairs_of_counts,
    probabilities_at,
    two_classes,
)

pytestmark = pytest.mark.usefixtures("weights_of_all_rows")

CLASS_FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("criterion", ["auto", "cv"])
def test_weights_and_score_are_those_of_held_out_predictions(
    criterion, weighted, data, rng
):
    X, y = data
    rows = rng.integers(0, 3, 120) / 2 if weighted else np.ones(120)
    weights = {"sample_weight": rows} if weighted else {}
    model = blended(members(), X, y, criterion=criterion, cv=FOLDS, **weights)
    kept = rows > 0  # the others are not held out
    fitted = alone(members(), X, y, **weights)
    errors, rows = held_out_errors(fitted, y[kept]), rows[kept]
    expected = by_supports(errors, rows)
    assert (expected > 0.05).sum() >= 2
    assert list(model.weights_) == list(fitted)
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    # No combination on a grid is better.
    losses = np.average((errors @ expected) ** 2, weights=rows)
    for weights in product(np.linspace(0, 1, 21), repeat=2):
        if sum(weights) <= 1:
            own = errors @ [*weights, 1 - sum(weights)]
            assert np.average(own**2, weights=rows) >= losses - 1e-12
    fold = folds_of(FOLDS, X, y)[kept]
    score, error = mean_over_folds((errors @ expected) ** 2, fold, rows)
    assert model.best_score_ == pytest.approx(score)
    assert model.best_score_se_ == pytest.approx(error)
    assert model.best_score_ < min(model.results_["best_score"])
    # Each iterate is the best of its member, and predictions are averaged.
    for name, each in fitted.items():
        assert model.members_[name].iteration_ == each.cv_path_.argmin()
    predictions = [
        each.at_iteration(each.cv_path_.argmin()).predict(X) for each in fitted.values()
    ]
    np.testing.assert_allclose(
        model.predict(X), np.transpose(predictions) @ expected, atol=1e-4
    )
    best = list(fitted)[int(expected.argmax())]
    assert model.best_member_ == best
    assert model.best_iter_ == fitted[best].cv_path_.argmin()
    np.testing.assert_allclose(model.path_, fitted[best].cv_path_)
    assert is_blended(model)
    assert model.results_["weight"] == list(model.weights_.values())


def test_the_corrected_score_is_that_of_loops(data):
    X, y = data
    model = blended(members(), X, y)
    fitted = alone(members(), X, y)
    predictions = [in_order(each) for each in fitted.values()]
    expected = by_loops(
        [(own - y) ** 2 for own in predictions],
        predictions,
        y,
        lambda y, found: (y - found) ** 2,
        lambda found, y: by_supports(found - y[:, None], np.ones(len(y))),
    )
    assert model.best_score_corrected_ == pytest.approx(expected, rel=1e-6)
    assert model.best_score_corrected_ > model.best_score_
    assert 0 < model.best_score_corrected_se_ < model.best_score_
    # Each member alone has the loss of its own choices.
    board = model.leaderboard().set_index("member")
    assert board.loc["blend", "score_corrected"] == model.best_score_corrected_
    for name, own in zip(fitted, predictions):
        expected = by_loops(
            [(own - y) ** 2],
            [own],
            y,
            lambda y, found: (y - found) ** 2,
            lambda found, y: np.ones(1),
        )
        assert board.loc[name, "score_corrected"] == pytest.approx(expected)
        assert expected > board.loc[name, "score"]


def own_probabilities(fitted, label):
    """Of every row's class, by every iterate."""
    found = []
    for each in fitted.values():
        rows = np.hstack(each.cv_indices_)
        order = np.argsort(rows)
        found.append(
            np.array(
                [
                    probabilities_at(each, t, own)[np.arange(len(rows)), label[rows]][
                        order
                    ]
                    for t, own in enumerate(each.cv_prediction_path_)
                ]
            )
        )
    return found


def mixed(shares, y):
    """The likeliest weight of two members."""

    def loss(weight):
        return -np.log(shares @ [weight, 1 - weight]).mean()

    grid = np.linspace(0, 1, 2001)
    weight = grid[np.argmin([loss(each) for each in grid])]
    return np.array([weight, 1 - weight])


def test_mixtures_of_classes_by_hand(rng):
    """Members of different losses, whose iterates are chosen by these."""
    X, y = two_classes(rng)
    model = blended(classifiers(), X, y)
    fitted = alone(classifiers(), X, y, cv=CLASS_FOLDS)
    shares = own_probabilities(fitted, y)
    best = [each.cv_path_.argmin() for each in fitted.values()]
    chosen = np.stack([own[t] for own, t in zip(shares, best)], axis=1)
    expected = mixed(chosen, y)
    assert 0.05 < expected[0] < 0.95
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-3)
    losses = -np.log(chosen @ list(model.weights_.values()))
    score, error = mean_over_folds(losses, folds_of(CLASS_FOLDS, X, y), np.ones(200))
    assert model.best_score_ == pytest.approx(score)
    assert model.best_score_se_ == pytest.approx(error)
    probabilities = [
        each.at_iteration(t).predict_proba(X) for each, t in zip(fitted.values(), best)
    ]
    found = np.tensordot(list(model.weights_.values()), probabilities, 1)
    np.testing.assert_allclose(model.predict_proba(X), found, rtol=1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(found), rtol=1e-9)
    odds = np.log(found[:, 1] / found[:, 0])
    np.testing.assert_allclose(model.decision_function(X), odds, rtol=1e-6)
    np.testing.assert_array_equal(model.predict(X), (odds > 0).astype(int))
    assert is_blended(model)
    code = 2 * y - 1
    own_losses = [
        np.logaddexp(0, -code * in_order(fitted["logistic"])),
        (code - in_order(fitted["kernel"])) ** 2,
    ]
    corrected = by_loops(
        own_losses, shares, y, lambda y, p: -np.log(p), mixed, classes=y
    )
    assert model.best_score_corrected_ == pytest.approx(corrected, rel=1e-4)


@pytest.mark.parametrize("labels", ["numbers", "strings"])
def test_several_classes(labels):
    X, y = load_iris(return_X_y=True)
    X, code = X[:, :2], y
    y = np.array(["c", "a", "b"])[y] if labels == "strings" else y
    pairs = [
        ("logistic", TrajectoryLogisticRegression(max_iter=100)),
        ("kernel", KernelEigenProClassifier(gamma=3.0, random_state=0)),
    ]
    model = blended(pairs, X, y)
    fitted = alone(pairs, X, y, cv=CLASS_FOLDS)
    label = np.searchsorted(np.unique(y), y)
    shares = own_probabilities(fitted, label)
    best = [each.cv_path_.argmin() for each in fitted.values()]
    chosen = np.stack([own[t] for own, t in zip(shares, best)], axis=1)
    expected = mixed(chosen, y)
    assert 0.05 < expected[0] < 0.95
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-3)
    score = -np.log(chosen @ list(model.weights_.values())).mean()
    assert model.best_score_ == pytest.approx(score)
    found = model.predict_proba(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    np.testing.assert_allclose(
        log_loss(y, found), -np.log(found[np.arange(150), label]).mean()
    )
    np.testing.assert_array_equal(model.classes_, np.unique(y))
    np.testing.assert_array_equal(model.predict(X), model.classes_[found.argmax(1)])
    np.testing.assert_allclose(model.decision_function(X), np.log(found), rtol=1e-9)
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    assert len(set(code)) == 3


def test_weights_of_classes_count_as_in_the_members():
    # In other data one member may have all of the weight.
    X, y = two_classes(np.random.default_rng(0))
    balanced = [
        (name, clone(each).set_params(class_weight="balanced"))
        for name, each in [
            ("few", TrajectoryLogisticRegression(max_iter=60)),
            ("strong", TrajectoryLogisticRegression(0.003, max_iter=60)),
        ]
    ]
    model = blended(balanced, X, y)
    assert is_blended(model)
    fitted = alone(balanced, X, y, cv=CLASS_FOLDS)
    shares = own_probabilities(fitted, y)
    best = [each.cv_path_.argmin() for each in fitted.values()]
    chosen = np.stack([own[t] for own, t in zip(shares, best)], axis=1)
    rows = (len(y) / 2 / np.bincount(y))[y]
    losses = -np.log(chosen @ list(model.weights_.values()))
    assert model.best_score_ == pytest.approx(np.average(losses, weights=rows))
    assert model.best_score_ <= min(model.results_["best_score"]) + 1e-9


@pytest.mark.parametrize("kind", ["huber", "poisson"])
def test_other_losses_are_blended_greedily(kind, rng):
    if kind == "huber":
        X = rng.standard_normal((100, 3))
        y = X[:, 0] + X[:, 1] + rng.standard_t(2, 100)
        pairs = [
            (name, each.set_params(loss="huber")) for name, each in pairs_of_counts()
        ]

        def loss(y, found):
            size = np.abs(y - found)
            return np.where(size <= 1.35, size**2 / 2, 1.35 * size - 1.35**2 / 2)

    else:
        (X, y), pairs = counts(rng), pairs_of_counts()

        def loss(y, found):
            ratio = np.where(y > 0, np.maximum(y, 1) / found, 1)
            return found - y + y * np.log(ratio)

    model = blended(pairs, X, y)
    fitted = alone(pairs, X, y)
    predictions = [in_order(each) for each in fitted.values()]

    def find(found, y):
        return greedily(lambda weights: loss(y, found @ weights).mean(), 2)

    best = [each.cv_path_.argmin() for each in fitted.values()]
    chosen = np.stack([own[t] for own, t in zip(predictions, best)], axis=1)
    expected = find(chosen, y)
    assert expected.min() > 0.1
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-9)
    assert model.best_score_ == pytest.approx(loss(y, chosen @ expected).mean())
    corrected = by_loops(
        [loss(y, own) for own in predictions], predictions, y, loss, find
    )
    assert model.best_score_corrected_ == pytest.approx(corrected)


def test_a_scorer_selects_greedily(data):
    X, y = data
    model = blended(members(), X, y, criterion="neg_mean_absolute_error")
    fitted, predictions = alone(members(), X, y), []
    for each in fitted.values():
        errors = np.abs(in_order(each) - y).mean(axis=1)
        predictions.append(in_order(each)[errors.argmin()])
    chosen = np.transpose(predictions)

    def loss_of(weights):
        return mean_absolute_error(y, chosen @ weights)

    expected = greedily(loss_of, 3)
    assert (expected > 0).sum() > 1
    np.testing.assert_allclose(list(model.weights_.values()), expected)
    assert model.best_score_ == pytest.approx(-loss_of(expected))
    assert 0 < model.best_score_se_ < 0.5
    assert not hasattr(model, "best_score_corrected_")
    assert model.predict_interval(X[:3], 0.8).shape == (3, 2)


def test_a_scorer_of_classes(rng):
    X, y = two_classes(rng)
    model = blended(classifiers(), X, y, criterion="roc_auc")
    chosen = []
    for each in alone(classifiers(), X, y, cv=CLASS_FOLDS).values():
        decisions = in_order(each)
        scores = [roc_auc_score(y, own) for own in decisions]
        t = int(np.argmax(scores))
        order = np.argsort(np.hstack(each.cv_indices_))
        held_out = probabilities_at(each, t, each.cv_prediction_path_[t])
        chosen.append(held_out[order, 1])
    chosen = np.transpose(chosen)
    expected = greedily(lambda w: -roc_auc_score(y, chosen @ w), 2)
    np.testing.assert_allclose(list(model.weights_.values()), expected)
    assert model.best_score_ == pytest.approx(roc_auc_score(y, chosen @ expected))


def test_leave_one_out(data):
    X, y = data
    pairs = members()[1:]
    model = blended(pairs, X, y, criterion="loo")
    fitted = {
        name: clone(member).set_params(loo=True).fit(X, y) for name, member in pairs
    }
    errors = np.stack(
        [
            each.loo_prediction_path_[each.loo_path_.argmin()] - y
            for each in fitted.values()
        ],
        axis=1,
    )
    expected = by_supports(errors, np.ones(120))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    losses = (errors @ expected) ** 2
    assert model.best_score_ == pytest.approx(losses.mean())
    assert model.best_score_se_ == pytest.approx(losses.std(ddof=1) / np.sqrt(120))
    assert model.criterion_ == "loo"
    assert model.predict_interval(X[:2], method="loo").shape == (2, 2)
