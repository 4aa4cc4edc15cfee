"""Weights of blends: by other solvers, and where one member has all of the weight."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso
from tests.internals import least_squares_weights, likeliest_weights

from .cases import blended, by_supports, greedily, members


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


def test_members_without_error_share_all_weight(rng):
    """Equal columns make nonnegative least squares turn in a circle, if left so."""
    for _ in range(500):
        n_rows, n_members = rng.integers(2, 17), rng.integers(3, 8)
        errors = rng.integers(-2, 3, (n_rows, n_members)).astype(float)
        perfect = rng.random(n_members) < 0.6
        perfect[0] = True
        errors[:, perfect] = 0
        weights = least_squares_weights(errors, np.ones(n_rows))
        assert weights.sum() == pytest.approx(1)
        # Others have weight only where their own errors cancel.
        np.testing.assert_allclose(errors @ weights, 0, atol=1e-4)
        np.testing.assert_allclose(weights[perfect], weights[0], atol=1e-4)


def test_no_error_at_all():
    found = least_squares_weights(np.zeros((5, 2)), np.ones(5))
    assert found.sum() == pytest.approx(1)


def test_greedy_selection_is_that_of_a_list(rng):
    predictions, y = rng.standard_normal((30, 4)), rng.standard_normal(30)

    def loss_of(weights):
        return np.abs(predictions @ weights - y).mean()

    chosen, tried = [], []
    for _ in range(20):
        losses = [
            np.abs(predictions[:, [*chosen, k]].mean(axis=1) - y).mean()
            for k in range(4)
        ]
        chosen.append(int(np.argmin(losses)))
        tried.append((min(losses), list(chosen)))
    best = min(tried)[1]
    expected = np.bincount(best, minlength=4) / len(best)
    np.testing.assert_allclose(greedily(loss_of, 4), expected)


def test_greedy_selection_without_a_score():
    def loss_of(weights):
        return np.nan if weights[0] > 0 else weights[1] ** 2 + weights[2] ** 2

    np.testing.assert_allclose(greedily(loss_of, 3), [0, 0.5, 0.5])


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
    corrected = [
        getattr(each, "best_score_corrected_", "none") for each in (found, expected)
    ]
    assert corrected[0] == corrected[1]
    assert list(found.weights_.values()) == [1.0]
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))
    assert found.at_iteration(2).iteration_ == 2


def test_a_member_with_all_of_the_weight_is_kept_as_it_is():
    rng = np.random.default_rng(0)  # others may leave a small weight to chance
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
