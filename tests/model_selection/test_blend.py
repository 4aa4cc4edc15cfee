"""Blends: weights by other solvers, scores by loops, on members fitted alone."""

import os
import pickle
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss, mean_absolute_error, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.utils import check_random_state
from sklearn.utils.estimator_checks import check_estimator

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryRegressor,
)
from skacv.model_selection.blend import BlendedClassifier, BlendedRegressor
from skacv.model_selection.mixtures import (
    MOST_CHOSEN,
    greedy_weights,
    least_squares_weights,
    likeliest_weights,
)
from skacv.model_selection.optimism import N_DRAWS
from skacv.optim.families import Weighted
from skacv.optim.penalties import L1

from .test_early_stopping import NestedLeastSquares

FOLDS = KFold(5, shuffle=True, random_state=0)
CLASS_FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)


@pytest.fixture
def data(rng):
    """A line that a lasso finds, and a wave that a kernel machine finds."""
    X = rng.standard_normal((120, 6))
    y = 1.5 * (X[:, 0] - X[:, 1] + np.sin(2 * X[:, 2]))
    return X, y + 0.7 * rng.standard_normal(120)


def members():
    return [
        ("lasso", TrajectoryLasso("path", max_iter=10)),
        ("ridge", IterativeRidge(0.0, max_iter=30)),
        ("kernel", KernelEigenProRegressor(gamma=0.3, n_components=0, random_state=0)),
    ]


def classifiers():
    return [
        ("logistic", TrajectoryLogisticRegression(max_iter=60)),
        (
            "kernel",
            KernelEigenProClassifier(gamma=0.5, n_components=0, random_state=0),
        ),
    ]


def blended(estimator, X, y, cls=TrajectoryEarlyStoppingCV, **settings):
    params = {k: settings.pop(k) for k in ("sample_weight", "groups") if k in settings}
    settings = {"random_state": 7, "patience": None, **settings}
    return cls(estimator, rule="blend", **settings).fit(X, y, **params)


def alone(pairs, X, y, cv=FOLDS, **weights):
    """Members fitted by themselves on the same folds."""
    fitted = {}
    for name, member in pairs:
        member = clone(member).set_params(cv=cv, loo=False)
        if "risk" in member.get_params():
            member.set_params(risk=False)
        fitted[name] = member.fit(X, y, **weights)
    return fitted


def in_order(fitted):
    """Held-out predictions of every iterate, (n_iterates, n_rows), row by row."""
    order = np.argsort(np.hstack(fitted.cv_indices_), kind="stable")
    return fitted.cv_prediction_path_[:, order]


def held_out_errors(fitted, y):
    """Held-out errors of the best iterate of every member, (n_rows, n_members)."""
    best = [in_order(each)[each.cv_path_.argmin()] for each in fitted.values()]
    return np.stack(best, axis=1) - y[:, None]


def by_supports(errors, rows):
    """The weights of least squared error: the best over all sets of members."""
    n_members, found = errors.shape[1], []
    gram = errors.T @ (errors * rows[:, None])
    for size in range(1, n_members + 1):
        for support in combinations(range(n_members), size):
            own = np.ix_(support, support)
            # Stationary on the plane where weights have sum one.
            weights = np.linalg.solve(gram[own], np.ones(size))
            weights /= weights.sum()
            if (weights >= 0).all():
                every = np.zeros(n_members)
                every[list(support)] = weights
                found.append((every @ gram @ every, every))
    return min(found, key=lambda pair: pair[0])[1]


def by_slsqp(loss, n_members):
    begun = np.full(n_members, 1 / n_members)
    return minimize(
        loss,
        begun,
        bounds=[(0, 1)] * n_members,
        constraints={"type": "eq", "fun": lambda weights: weights.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    ).x


def greedily(cost_of, n_members):
    """By the cost of one combination at a time."""
    return greedy_weights(lambda tried: [cost_of(each) for each in tried], n_members)


def folds_of(cv, X, y):
    fold = np.empty(len(y), dtype=int)
    for number, (_, judged) in enumerate(cv.split(X, y)):
        fold[judged] = number
    return fold


def mean_over_folds(costs, fold, rows):
    """The mean of costs, and its standard error over folds."""
    own = range(fold.max() + 1)
    means = [np.average(costs[fold == k], weights=rows[fold == k]) for k in own]
    share = np.array([rows[fold == k].sum() for k in own]) / rows.sum()
    mean, n = share @ means, len(means)
    return mean, np.sqrt(np.sum((share * (means - mean)) ** 2) * n / (n - 1))


# --------------------------------------------------------------------- weights


@pytest.mark.parametrize("n_members", [2, 3, 5])
def test_least_squares_weights_are_those_of_another_solver(n_members, rng):
    shared = rng.standard_normal((80, 1))
    for _ in range(10):
        errors = shared + 0.4 * rng.standard_normal((80, n_members))
        errors *= rng.uniform(0.7, 1.4, n_members)
        rows = rng.uniform(0.2, 2, 80)
        found = least_squares_weights(errors, rows)
        np.testing.assert_allclose(found, by_supports(errors, rows), atol=1e-8)
        assert found.sum() == pytest.approx(1)

        def loss(weights, errors=errors, rows=rows):
            return np.average((errors @ weights) ** 2, weights=rows)

        other = by_slsqp(loss, n_members)
        np.testing.assert_allclose(found, other, atol=1e-4)
        assert loss(found) <= loss(other) + 1e-12


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_weights_do_not_depend_on_units(size, rng):
    errors = rng.standard_normal((50, 3)) + np.array([0.0, 0.3, 0.1])
    rows = np.ones(50)
    expected = least_squares_weights(errors, rows)
    found = least_squares_weights(size * errors, rows / size)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.parametrize("n_members", [2, 3, 5])
def test_likeliest_weights_are_those_of_another_solver(n_members, rng):
    for _ in range(10):
        shares = rng.beta(2, rng.uniform(0.5, 2, n_members), (80, n_members))
        rows = rng.uniform(0.2, 2, 80)
        found = likeliest_weights(shares, rows)

        def loss(weights, shares=shares, rows=rows):
            return -np.average(np.log(shares @ weights), weights=rows)

        other = by_slsqp(loss, n_members)
        np.testing.assert_allclose(found, other, atol=1e-3)
        assert loss(found) <= loss(other) + 1e-8
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1)
        # No member would lower the loss: the likelihood grows in none of them.
        gain = (rows / rows.sum()) @ (shares / (shares @ found)[:, None])
        assert gain.max() <= 1 + 1e-8


def test_likeliest_weights_are_where_expectation_maximisation_ends(rng):
    shares = rng.uniform(0.1, 0.9, (60, 3))
    weights = np.full(3, 1 / 3)
    for _ in range(20_000):
        weights = weights * np.mean(shares / (shares @ weights)[:, None], axis=0)
    found = likeliest_weights(shares, np.ones(60))
    np.testing.assert_allclose(found, weights, atol=1e-4)


def test_probabilities_of_very_different_size(rng):
    """A member that is sure of what is wrong has no weight, and stops nothing."""
    shares = np.full((40, 2), 0.6)
    shares[:3, 1] = np.finfo(float).eps
    found = likeliest_weights(shares, np.ones(40))
    np.testing.assert_array_equal(found, [1.0, 0.0])


@pytest.mark.parametrize("find", [least_squares_weights, likeliest_weights])
def test_members_that_are_alike_share_a_weight(find, rng):
    parts = rng.uniform(0.1, 0.9, (60, 2))
    single = find(parts, np.ones(60))
    double = find(parts[:, [0, 1, 1]], np.ones(60))
    assert double[0] == pytest.approx(single[0], abs=1e-4)
    assert double[1:].sum() == pytest.approx(single[1], abs=1e-4)


def test_no_error_at_all():
    found = least_squares_weights(np.zeros((5, 2)), np.ones(5))
    assert found.sum() == pytest.approx(1)


def test_greedy_selection_is_that_of_a_list(rng):
    predictions, y = rng.standard_normal((30, 4)), rng.standard_normal(30)

    def cost_of(weights):
        return np.abs(predictions @ weights - y).mean()

    chosen, tried = [], []
    for _ in range(MOST_CHOSEN):
        costs = [
            np.abs(predictions[:, [*chosen, k]].mean(axis=1) - y).mean()
            for k in range(4)
        ]
        chosen.append(int(np.argmin(costs)))
        tried.append((min(costs), list(chosen)))
    best = min(tried)[1]
    expected = np.bincount(best, minlength=4) / len(best)
    np.testing.assert_allclose(greedily(cost_of, 4), expected)


def test_greedy_selection_without_a_score():
    def cost_of(weights):
        return np.nan if weights[0] > 0 else weights[1] ** 2 + weights[2] ** 2

    np.testing.assert_allclose(greedily(cost_of, 3), [0, 0.5, 0.5])


# ------------------------------------------------------- blends, scores by hand


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
    costs = np.average((errors @ expected) ** 2, weights=rows)
    for weights in product(np.linspace(0, 1, 21), repeat=2):
        if sum(weights) <= 1:
            own = errors @ [*weights, 1 - sum(weights)]
            assert np.average(own**2, weights=rows) >= costs - 1e-12
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
    assert isinstance(model.estimator_, BlendedRegressor)
    assert model.results_["weight"] == list(model.weights_.values())


def by_loops(costs, predictions, y, loss, find, n_drawn_before=1, seed=7):
    """Blend by the rows of each draw, judge by the others, row by row.

    ``costs`` and ``predictions`` of every member are (n_iterates, n_rows).
    """
    rng, n_rows = check_random_state(seed), len(y)
    for _ in range(n_drawn_before):
        rng.randint(2**31 - 1)
    place = rng.permutation(n_rows) % n_rows
    judged = [[] for _ in range(n_rows)]
    for drawn in rng.randint(n_rows, size=(N_DRAWS, n_rows)):
        rows = np.concatenate([np.flatnonzero(place == k) for k in drawn])
        best = [own[:, rows].mean(axis=1).argmin() for own in costs]
        chosen = np.stack([own[t] for own, t in zip(predictions, best)], axis=1)
        blend = chosen @ find(chosen[rows], y[rows])
        for i in np.setdiff1d(np.arange(n_rows), rows):
            judged[i].append(loss(y[i], blend[i]))
    return np.mean([np.mean(each) for each in judged])


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


def two_classes(rng):
    """The same for labels."""
    X = rng.standard_normal((200, 6))
    odds = X[:, 0] + 1.5 * np.sin(2 * X[:, 1]) + 0.7 * rng.logistic(size=200)
    return X, (odds > 0).astype(int)


def own_probabilities(fitted, label):
    """Of every row's class, by every iterate."""
    found = []
    for each in fitted.values():
        rows = np.hstack(each.cv_indices_)
        order = np.argsort(rows)
        found.append(
            np.array(
                [
                    each._held_out_estimator(own, t).predict_proba(None)[
                        np.arange(len(rows)), label[rows]
                    ][order]
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
    costs = -np.log(chosen @ list(model.weights_.values()))
    score, error = mean_over_folds(costs, folds_of(CLASS_FOLDS, X, y), np.ones(200))
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
    assert isinstance(model.estimator_, BlendedClassifier)
    code = 2 * y - 1
    own_costs = [
        np.logaddexp(0, -code * in_order(fitted["logistic"])),
        (code - in_order(fitted["kernel"])) ** 2,
    ]
    corrected = by_loops(own_costs, shares, y, lambda y, p: -np.log(p), mixed)
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


def test_weights_of_classes_count_as_in_the_members(rng):
    X, y = two_classes(rng)
    balanced = [
        (name, clone(each).set_params(class_weight="balanced"))
        for name, each in [
            ("few", TrajectoryLogisticRegression(max_iter=60)),
            ("strong", TrajectoryLogisticRegression(0.003, max_iter=60)),
        ]
    ]
    model = blended(balanced, X, y)
    assert isinstance(model.estimator_, BlendedClassifier)
    fitted = alone(balanced, X, y, cv=CLASS_FOLDS)
    shares = own_probabilities(fitted, y)
    best = [each.cv_path_.argmin() for each in fitted.values()]
    chosen = np.stack([own[t] for own, t in zip(shares, best)], axis=1)
    rows = (len(y) / 2 / np.bincount(y))[y]
    costs = -np.log(chosen @ list(model.weights_.values()))
    assert model.best_score_ == pytest.approx(np.average(costs, weights=rows))
    assert model.best_score_ <= min(model.results_["best_score"]) + 1e-9


@pytest.mark.parametrize("kind", ["huber", "poisson"])
def test_other_losses_are_blended_greedily(kind, rng):
    if kind == "huber":
        X = rng.standard_normal((100, 3))
        y = X[:, 0] + X[:, 1] + rng.standard_t(2, 100)
        pairs = [
            (name, each.set_params(loss="huber")) for name, each in pairs_of_counts()
        ]

        def cost(y, found):
            size = np.abs(y - found)
            return np.where(size <= 1.35, size**2 / 2, 1.35 * size - 1.35**2 / 2)

    else:
        (X, y), pairs = counts(rng), pairs_of_counts()

        def cost(y, found):
            ratio = np.where(y > 0, np.maximum(y, 1) / found, 1)
            return found - y + y * np.log(ratio)

    model = blended(pairs, X, y)
    fitted = alone(pairs, X, y)
    predictions = [in_order(each) for each in fitted.values()]

    def find(found, y):
        return greedily(lambda weights: cost(y, found @ weights).mean(), 2)

    best = [each.cv_path_.argmin() for each in fitted.values()]
    chosen = np.stack([own[t] for own, t in zip(predictions, best)], axis=1)
    expected = find(chosen, y)
    assert expected.min() > 0.1
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-9)
    assert model.best_score_ == pytest.approx(cost(y, chosen @ expected).mean())
    corrected = by_loops(
        [cost(y, own) for own in predictions], predictions, y, cost, find
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

    def cost_of(weights):
        return mean_absolute_error(y, chosen @ weights)

    expected = greedily(cost_of, 3)
    assert (expected > 0).sum() > 1
    np.testing.assert_allclose(list(model.weights_.values()), expected)
    assert model.best_score_ == pytest.approx(-cost_of(expected))
    assert 0 < model.best_score_se_ < 0.5
    assert np.isnan(model.best_score_corrected_)
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
        held_out = each._held_out_estimator(each.cv_prediction_path_[t], t)
        chosen.append(held_out.predict_proba(None)[order, 1])
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
    costs = (errors @ expected) ** 2
    assert model.best_score_ == pytest.approx(costs.mean())
    assert model.best_score_se_ == pytest.approx(costs.std(ddof=1) / np.sqrt(120))
    assert model.criterion_ == "loo"
    assert model.predict_interval(X[:2], method="loo").shape == (2, 2)


# --------------------------------------------------------- rows and their folds


def test_rows_count_as_often_as_they_are_held_out(data):
    X, y = data
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=1)
    model = blended(members(), X, y, cv=cv)
    fitted = alone(members(), X, y, cv=cv)
    rows = np.hstack(fitted["lasso"].cv_indices_)
    assert len(rows) == 240
    errors = np.stack(
        [
            each.cv_prediction_path_[each.cv_path_.argmin()] - y[rows]
            for each in fitted.values()
        ],
        axis=1,
    )
    expected = by_supports(errors, np.ones(240))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    assert model.best_score_ == pytest.approx(np.mean((errors @ expected) ** 2))


def test_only_rows_that_all_have_held_out(rng):
    """The rows of a preconditioner's subsample are not among them."""
    X = rng.standard_normal((150, 5))
    y = X[:, 1] + np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(150)
    pairs = [
        ("ridge", IterativeRidge(0.0, max_iter=40)),
        (
            "kernel",
            KernelEigenProRegressor(gamma=0.3, n_components=2, random_state=3),
        ),
    ]
    model = blended(pairs, X, y)
    fitted = alone(pairs, X, y)
    seen = fitted["kernel"].subsample_indices_
    assert len(seen)
    chosen = []
    for name, each in fitted.items():
        rows = np.hstack(each.cv_indices_)
        kept = np.flatnonzero(~np.isin(rows, seen))
        kept = kept[np.argsort(rows[kept])]
        path = np.mean((each.cv_prediction_path_ - y[rows])[:, kept] ** 2, axis=1)
        chosen.append((each.cv_prediction_path_ - y[rows])[path.argmin(), kept])
        assert model.members_[name].iteration_ == path.argmin()
    errors = np.transpose(chosen)
    expected = by_supports(errors, np.ones(len(errors)))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    assert model.best_score_ == pytest.approx(np.mean((errors @ expected) ** 2))


def test_groups(data):
    X, y = data
    groups = np.repeat(np.arange(30), 4)
    model = blended(members(), X, y, cv=GroupKFold(4), groups=groups)
    folds = model.members_["lasso"].cv_indices_
    assert [len(fold) for fold in folds] == [len(set(groups[f])) * 4 for f in folds]
    fitted = alone(members(), X, y, cv=list(GroupKFold(4).split(X, y, groups)))
    expected = by_supports(held_out_errors(fitted, y), np.ones(120))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)


def test_rows_of_zero_weight_are_not_there(data):
    X, y = data
    rows = np.ones(120)
    rows[::5] = 0
    other = np.where(rows > 0, y, 1e3)
    found, expected = (blended(members(), X, t, sample_weight=rows) for t in (y, other))
    assert found.weights_ == expected.weights_
    assert found.best_score_corrected_ == expected.best_score_corrected_
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_several_targets_have_the_same_weights(data, rng):
    X, y = data
    Y = np.stack([y, X[:, 3] + np.cos(X[:, 4]) + rng.standard_normal(120)], axis=1)
    pairs = members()[1:]
    model = blended(pairs, X, Y)
    fitted = alone(pairs, X, Y)
    errors = []
    for each in fitted.values():
        order = np.argsort(np.hstack(each.cv_indices_))
        found = each.cv_prediction_path_[each.cv_path_.argmin()][order]
        errors.append((found - Y).ravel())
    errors = np.transpose(errors)
    expected = by_supports(errors, np.ones(240))
    assert expected.min() > 0.05
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    assert model.best_score_ == pytest.approx(np.mean((errors @ expected) ** 2))
    assert model.predict(X).shape == (120, 2)
    assert model.predict_interval(X[:5], [0.5, 0.9]).shape == (5, 2, 2, 2)


def test_the_best_combination_of_every_member(data):
    X, y = data
    grid = {"kernel__gamma": [0.01, 0.1, 1.0], "ridge__alpha": [0.0, 10.0]}
    model = blended(members(), X, y, param_grid=grid)
    own = pd.DataFrame(model.results_).groupby("member")
    best = {name: table.loc[table["best_score"].idxmin()] for name, table in own}
    for name, row in best.items():
        assert row["weight"] == model.weights_[name]
        assert own.get_group(name)["weight"].sum() == model.weights_[name]
        for key, value in row["params"].items():
            if key != "alpha":
                assert model.members_[name].get_params()[key] == value
    assert model.best_params_ == best[model.best_member_]["params"]
    plain = blended(
        [(name, each.set_params(cv=FOLDS)) for name, each in model.members_.items()],
        X,
        y,
    )
    np.testing.assert_allclose(
        list(plain.weights_.values()), list(model.weights_.values())
    )


# ----------------------------------------------------------- one member is kept


@pytest.mark.parametrize("criterion", ["auto", "risk", "r2"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_blend_of_one_member_is_that_member(listed, criterion, data):
    X, y = data
    estimator = IterativeRidge(0.0, max_iter=30)
    estimator = [("a", estimator)] if listed else estimator
    settings = {"criterion": criterion, "random_state": 0}
    found, expected = (
        TrajectoryEarlyStoppingCV(estimator, rule=rule, **settings).fit(X, y)
        for rule in ("blend", "min")
    )
    assert type(found.estimator_) is IterativeRidge
    for name in ("best_iter_", "best_score_", "best_score_se_", "weights_"):
        assert getattr(found, name) == getattr(expected, name)
    corrected = found.best_score_corrected_, expected.best_score_corrected_
    np.testing.assert_array_equal(*corrected)
    assert list(found.weights_.values()) == [1.0]
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.at_iteration(2).iteration_ == 2


def test_a_member_with_all_of_the_weight_is_kept_as_it_is(rng):
    X = rng.standard_normal((100, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(100)
    without = TrajectoryLasso(0.1, penalty_weights=[1e3, 1, 1, 1])
    pairs = [("good", IterativeRidge(0.0, max_iter=30)), ("bad", without)]
    model = blended(pairs, X, y)
    assert model.weights_ == {"good": 1.0, "bad": 0.0}
    assert type(model.estimator_) is IterativeRidge
    assert model.estimator_ is model.members_["good"]
    assert model.estimator_.iteration_ == model.best_iter_
    assert model.best_score_ == pytest.approx(model.path_[model.best_iter_])
    assert list(model.members_) == ["good", "bad"]
    assert len(list(model.staged_predict(X))) == len(model.path_)


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_other_rules_have_one_weight(rule, data):
    model = TrajectoryEarlyStoppingCV(members(), rule=rule).fit(*data)
    assert list(model.weights_) == [name for name, _ in members()]
    assert sum(model.weights_.values()) == model.weights_[model.best_member_] == 1
    assert model.members_ == {model.best_member_: model.estimator_}
    table = pd.DataFrame(model.results_)
    assert dict(zip(table["member"], table["weight"])) == model.weights_


# -------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("estimator", "settings", "message"),
    [
        (
            [("ridge", IterativeRidge()), ("huber", TrajectoryHuberRegressor())],
            {},
            "'ridge' by squared error, 'huber' by Huber loss",
        ),
        (
            [("ridge", IterativeRidge()), ("lasso", TrajectoryLasso())],
            {"criterion": "risk"},
            "which criterion='risk' does not have: take criterion='cv' or 'loo'",
        ),
        (
            [("a", NestedLeastSquares()), ("b", NestedLeastSquares())],
            {},
            "'a' by a loss of its own",
        ),
    ],
)
def test_members_that_cannot_be_blended_are_refused(estimator, settings, message, data):
    model = TrajectoryEarlyStoppingCV(estimator, rule="blend", **settings)
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert not [name for name in vars(model) if name.endswith("_")]


@pytest.mark.parametrize("criterion", ["auto", "accuracy"])
def test_classifiers_without_probabilities_are_refused(criterion, data, monkeypatch):
    X, y = data

    def fit(self, X, y):
        raise AssertionError("It is refused before anything is run.")

    monkeypatch.setattr(TrajectoryLinearSVC, "fit", fit)
    pairs = [("svm", TrajectoryLinearSVC()), *classifiers()]
    with pytest.raises(ValueError, match=r"'svm' \(TrajectoryLinearSVC\) has no pred"):
        blended(pairs, X, y > 0, criterion=criterion)


def test_summaries_are_refused(data):
    X, y = data
    summary = RowSummary(n_folds=3).partial_fit(X, y)
    with pytest.raises(ValueError, match="which a RowSummary does not have"):
        blended(members()[:2], summary, None)
    one = blended([members()[1]], summary, None, patience="auto")
    assert type(one.estimator_) is IterativeRidge


def test_collections_are_refused(data):
    array = pytest.importorskip("dask.array")
    X, y = (array.from_array(each, chunks=40) for each in data)
    with pytest.raises(ValueError, match="stay on their workers with Dask input"):
        blended(members()[:2], X, y)


def test_scores_that_are_undefined(data):
    def undefined(estimator, X, y):
        return np.nan

    with pytest.raises(ValueError, match="undefined"):
        blended(members(), *data, criterion=undefined)


def test_a_member_without_a_score_has_no_weight(data):
    def no_kernel(estimator, X, y):
        found = estimator.predict(X)
        alike = getattr(estimator, "kernel", None) is not None
        return np.nan if alike else -np.mean((found - y) ** 2)

    model = blended(members(), *data, criterion=no_kernel)
    assert model.weights_["kernel"] == 0
    assert sum(model.weights_.values()) == pytest.approx(1)


# ------------------------------------------------------- what a blend can do


def test_coefficients_of_linear_members(data):
    X, y = data
    # Each lacks a column of which the other has the coefficient.
    first, second = [1e3, *5 * [0.1]], [0.1, 1e3, *4 * [0.1]]
    pairs = [
        ("first", TrajectoryLasso(0.1, penalty_weights=first)),
        ("second", TrajectoryLasso(0.1, penalty_weights=second, standardize=True)),
    ]
    model = blended(pairs, X, y)
    assert min(model.weights_.values()) > 0.1
    found = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), found)
    expected = sum(
        weight * model.members_[name].coef_ for name, weight in model.weights_.items()
    )
    np.testing.assert_allclose(model.coef_, expected)


def counts(rng):
    X = rng.standard_normal((100, 3))
    mean = np.exp(0.6 * X[:, 0] - 0.6 * X[:, 1])
    return X, rng.poisson(mean).astype(float)


def pairs_of_counts():
    """Each lacks a column of which the other has the coefficient."""
    lacking = [[1e3, 1, 1], [1, 1e3, 1]]
    return [
        (
            f"without {k}",
            TrajectoryRegressor(
                0.01, loss="poisson", penalty=Weighted(L1(1.0), own), max_iter=60
            ),
        )
        for k, own in enumerate(lacking)
    ]


def test_coefficients_of_others(data, rng):
    X, y = data
    model = blended(members(), X, y)
    assert model.weights_["kernel"] > 0
    assert isinstance(model.estimator_, BlendedRegressor)
    for name in ("coef_", "intercept_"):
        with pytest.raises(
            AttributeError, match=f"A blend has {name} where .*'kernel'"
        ):
            getattr(model, name)
        assert not hasattr(model, name)
    model = blended(pairs_of_counts(), *counts(rng))
    assert isinstance(model.estimator_, BlendedRegressor)  # a mean of exponentials
    assert not hasattr(model, "coef_")


def ranked(values, coverage):
    return np.sort(values)[int(np.ceil(coverage * (len(values) + 1))) - 1]


def test_intervals_by_hand(data):
    X, y = data
    model = blended(members(), X, y)
    weights = np.array(list(model.weights_.values()))
    residuals = held_out_errors(alone(members(), X, y), y) @ weights
    widths = [ranked(np.abs(residuals), coverage) for coverage in (0.6, 0.9)]
    found = model.predict_interval(X[:7], [0.6, 0.9])
    assert found.shape == (7, 2, 2)
    middle = model.predict(X[:7])
    for k, width in enumerate(widths):
        expected = np.stack([middle - width, middle + width], axis=1)
        np.testing.assert_allclose(found[:, :, k], expected, rtol=1e-6)
    for method in ("auto", "cv"):
        one = model.predict_interval(X[:7], 0.9, method)
        np.testing.assert_allclose(one, found[:, :, 1])
    for method in ("jackknife+", "loo"):
        with pytest.raises(ValueError, match=r"one of \['auto', 'cv'\] for this blend"):
            model.predict_interval(X, method=method)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_interval(X, 1.5)
    with pytest.raises(ValueError, match="needs at least"):
        model.predict_interval(X, 0.999)


def test_intervals_of_counts_follow_the_mean(rng):
    pairs, (X, y) = pairs_of_counts(), counts(rng)
    model = blended(pairs, X, y)
    assert isinstance(model.estimator_, BlendedRegressor)
    fitted = alone(pairs, X, y)
    held_out = (held_out_errors(fitted, y) + y[:, None]) @ list(model.weights_.values())
    width = ranked(np.abs(y - held_out) / np.sqrt(held_out), 0.8)
    found, middle = model.predict_interval(X, 0.8), model.predict(X)
    half = width * np.sqrt(middle)
    expected = np.stack([np.maximum(middle - half, 0), middle + half], axis=1)
    np.testing.assert_allclose(found, expected)
    assert (found[:, 0] == 0).any()


def test_a_blend_has_no_iterates(data):
    X, y = data
    model = blended(members(), X, y)
    with pytest.raises(AttributeError, match=r"members_\['\w+'\].at_iteration is"):
        model.at_iteration(0)
    with pytest.raises(AttributeError, match=r"members_\['\w+'\].staged_predict is"):
        list(model.staged_predict(X))
    assert not hasattr(model, "coef_interval")
    assert len(list(model.members_["lasso"].staged_predict(X))) > 1
    unfitted = TrajectoryEarlyStoppingCV(members(), rule="blend")
    with pytest.raises(NotFittedError):
        unfitted.at_iteration(0)


@pytest.mark.parametrize("of_classes", [False, True])
def test_a_blend_is_an_estimator_of_its_own(of_classes, data, rng):
    X, y = two_classes(rng) if of_classes else data
    model = blended(classifiers() if of_classes else members(), X, y)
    blend = model.estimator_
    assert (is_classifier if of_classes else is_regressor)(blend)
    assert blend.n_features_in_ == model.n_features_in_ == 6
    assert blend.score(X, y) == model.score(X, y)
    again = pickle.loads(pickle.dumps(blend))
    np.testing.assert_array_equal(again.predict(X), blend.predict(X))
    copied = clone(blend)
    assert copied.get_params()["weights"] == blend.weights
    with pytest.raises(NotFittedError):
        copied.predict(X)
    # Fitted anew it is the same: its members, weights and iterations are.
    again = copied.fit(X, y)
    assert np.mean(np.abs(again.predict(X) - blend.predict(X))) < 1e-8
    assert {name: each.iteration_ for name, each in copied.members_.items()} == {
        name: each.iteration_ for name, each in blend.members_.items()
    }
    shorter = clone(blend).set_params(
        **{f"{name}__max_iter": 1 for name, _ in blend.members}
    )
    shorter.fit(X, y)
    assert all(each.iteration_ <= each.n_iter_ for each in shorter.members_.values())
    if not of_classes:
        with pytest.raises(ValueError, match="which fit does not compute"):
            copied.predict_interval(X)


def test_a_blend_of_the_last_iterates(rng):
    X = rng.standard_normal((60, 4))
    y = X[:, 0] + rng.standard_normal(60)
    pairs = [("a", NestedLeastSquares()), ("b", NestedLeastSquares())]
    blend = BlendedRegressor(pairs, [0.3, 0.7]).fit(X, y)
    expected = NestedLeastSquares().fit(X, y).predict(X)
    np.testing.assert_allclose(blend.predict(X), expected)


def test_pickle_and_clone(data):
    X, y = data
    model = blended(members(), X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    intervals = [each.predict_interval(X) for each in (again, model)]
    np.testing.assert_array_equal(*intervals)
    assert again.estimator_.members_["kernel"] is again.members_["kernel"]
    copied = clone(model)
    assert copied.rule == "blend"
    np.testing.assert_allclose(copied.fit(X, y).predict(X), model.predict(X))
    assert copied.best_score_corrected_ == pytest.approx(model.best_score_corrected_)


def test_in_searches_and_cross_validation(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()[1:], rule="blend", random_state=0)
    search = GridSearchCV(model, {"rule": ["min", "blend"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = cross_val_score(model, X, y, cv=3)
    np.testing.assert_allclose(scores.mean(), search.cv_results_["mean_test_score"][1])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_members_in_parallel(n_jobs, data):
    X, y = data
    model = blended(members(), X, y, n_jobs=n_jobs)
    expected = blended(members(), X, y)
    assert model.weights_ == expected.weights_
    assert model.best_score_corrected_ == expected.best_score_corrected_


def test_names_of_features(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = blended(members(), frame, y)
    assert list(model.feature_names_in_) == list("abcdef")
    assert list(model.estimator_.feature_names_in_) == list("abcdef")
    np.testing.assert_allclose(
        model.predict(frame), blended(members(), X, y).predict(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(blended(members(), X, y), "feature_names_in_")


def test_scores_of_weighted_rows_and_routing(data, rng):
    X, y = data
    rows = rng.uniform(0.1, 2, 120)
    model = blended(members(), X, y)
    residual = (y - model.predict(X)) ** 2
    spread = (y - np.average(y, weights=rows)) ** 2
    expected = 1 - np.average(residual, weights=rows) / np.average(spread, weights=rows)
    assert model.score(X, y, sample_weight=rows) == pytest.approx(expected)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = [
            (
                name,
                each.set_fit_request(sample_weight=True).set_score_request(
                    sample_weight=True
                ),
            )
            for name, each in members()
        ]
        found = blended(routed, X, y, sample_weight=rows)
        expected = found.estimator_.score(X, y, rows)
        assert found.score(X, y, sample_weight=rows) == expected
    assert found.weights_ == blended(members(), X, y, sample_weight=rows).weights_


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("cls", [SelfStoppingRegressor, SelfStoppingClassifier])
def test_the_default_members_may_be_blended(cls, data, rng):
    X, y = data if cls is SelfStoppingRegressor else two_classes(rng)
    model = cls(rule="blend", random_state=0).fit(X, y)
    plain = cls(random_state=0).fit(X, y)
    assert list(model.weights_) == list(plain.member_paths_)
    assert sum(model.weights_.values()) == pytest.approx(1)
    least = {name: path.min() for name, path in model.member_paths_.items()}
    if cls is SelfStoppingRegressor:
        assert model.best_score_ <= min(least.values()) * (1 + 1e-9)
    else:
        logistic = [value for name, value in least.items() if "logistic" in name]
        assert model.best_score_ <= min(logistic) * (1 + 1e-6)
    assert model.results_["weight"].count(0.0) + sum(
        weight > 0 for weight in model.weights_.values()
    ) == len(model.results_["weight"])


def test_dask_rows_are_predicted_block_by_block(data, rng):
    array = pytest.importorskip("dask.array")
    X, y = data
    blocks = array.from_array(X, chunks=(50, 6))
    model = blended(members(), X, y)
    np.testing.assert_allclose(model.predict(blocks).compute(), model.predict(X))
    X, y = two_classes(rng)
    model = blended(classifiers(), X, y)
    blocks = array.from_array(X, chunks=(50, 6))
    for name in ("predict", "predict_proba", "decision_function"):
        found, expected = (getattr(model, name)(rows) for rows in (blocks, X))
        np.testing.assert_allclose(found.compute(), expected)


@pytest.mark.skipif(
    os.environ.get("SCIPY_ARRAY_API") != "1",
    reason="scikit-learn dispatches on arrays with SCIPY_ARRAY_API=1 only",
)
def test_arrays_of_another_namespace(data, rng):
    xp = pytest.importorskip("array_api_strict")
    logistic = [(str(C), TrajectoryLogisticRegression(C)) for C in (0.003, 10.0)]
    for pairs, (X, y) in [(members(), data), (logistic, two_classes(rng))]:
        with sklearn.config_context(array_api_dispatch=True):
            away = xp.asarray(X)
            model = blended(pairs, away, xp.asarray(y))
            expected = blended(pairs, X, y)
            names = ["predict"]
            if is_classifier(model):
                names += ["predict_proba", "predict_log_proba", "decision_function"]
            for name in names:
                found = getattr(model, name)(away)
                assert type(found) is type(away)
                np.testing.assert_allclose(
                    np.asarray(found), getattr(expected, name)(X), rtol=1e-6
                )
            if not is_classifier(model):
                found = model.predict_interval(away, [0.5, 0.8])
                np.testing.assert_allclose(
                    np.asarray(found), expected.predict_interval(X, [0.5, 0.8])
                )


@pytest.mark.slow
@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLogisticRegression])
def test_checks_of_scikit_learn(cls):
    pairs = [("a", cls(max_iter=10)), ("b", cls(0.01, max_iter=10))]
    model = TrajectoryEarlyStoppingCV(pairs, rule="blend")
    check_estimator(model)
