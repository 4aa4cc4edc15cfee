"""A limit that ended a run which was still improving is named, with what to set."""

import re
import warnings

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.internals import is_still_improving


@pytest.fixture
def curved(rng):
    """A function that takes hundreds of small trees, nearly without noise."""
    X = rng.uniform(-1, 1, (200, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.01 * rng.standard_normal(200)


def trees(n_trees, rate=0.05):
    return HistGradientBoostingRegressor(
        max_iter=n_trees,
        learning_rate=rate,
        max_leaf_nodes=6,
        min_samples_leaf=5,
        random_state=0,
    )


def said(model, X, y):
    """What a fit warns of limits."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    is_limit = [issubclass(each.category, ConvergenceWarning) for each in caught]
    assert all(is_limit)
    return [str(each.message) for each in caught]


def test_trees_at_their_limit(curved):
    (found,) = said(TrajectoryEarlyStoppingCV(trees(20), cv=3), *curved)
    assert found == (
        "The chosen iterate, 20 of 20 trees, is the last of a run that was still "
        "improving: max_iter=20 may be too small."
    )
    (found,) = said(
        TrajectoryEarlyStoppingCV(make_pipeline(StandardScaler(), trees(20)), cv=3),
        *curved,
    )
    assert "histgradientboostingregressor__max_iter=20 may be" in found
    # They end by themselves.
    assert said(TrajectoryEarlyStoppingCV(trees(500, 0.5), cv=3), *curved) == []


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_members_of_a_blend(rule, curved):
    members = [
        ("short", trees(40)),
        ("network", MLPRegressor(hidden_layer_sizes=(5,), max_iter=8, random_state=0)),
        ("ridge", IterativeRidge(1.0, max_iter=2)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule=rule, cv=3, patience=None)
    found = said(model, *curved)
    named = [re.search("iterate of '(.*)', ", each)[1] for each in found]
    assert named == [name for name in model.weights_ if model.weights_[name] >= 0.1]
    assert "short" in named
    assert "network" not in named  # of no weight
    assert "40 of 40 trees, is the last of a run" in found[0]


def test_units(curved):
    network = MLPRegressor(
        hidden_layer_sizes=(5,), max_iter=20, learning_rate_init=0.01, random_state=0
    )
    (found,) = said(TrajectoryEarlyStoppingCV(network, cv=3), *curved)
    assert "20 of 20 passes" in found
    assert "max_iter=20 may be too small." in found
    forest = RandomForestRegressor(2, random_state=0)
    (found,) = said(TrajectoryEarlyStoppingCV(forest, cv=3), *curved)
    assert "2 of 2 trees" in found
    assert "n_estimators=2 may be too small." in found
    kernel = KernelEigenProRegressor(gamma=0.5, max_iter=3)
    (found,) = said(TrajectoryEarlyStoppingCV(kernel, cv=3), *curved)
    assert "3 of 3 updates" in found
    assert "standardize=True" in found
    kernel.set_params(standardize=True)
    (found,) = said(TrajectoryEarlyStoppingCV(kernel, cv=3), *curved)
    assert found.endswith("max_iter=3 may be too small.")


@pytest.mark.slow
def test_paths_of_strengths(rng):
    X = rng.standard_normal((100, 4))
    y = X[:, 0] + 0.5 * X[:, 1]
    exact = {"solver": "newton", "max_iter": 1}
    cases = [
        (TrajectoryLasso([1.0, 0.5, 0.2], max_iter=100), y, "of alpha below 0.2,"),
        (IterativeRidge([100.0, 30.0], **exact), y, "of alpha below 30,"),
        (
            TrajectoryLogisticRegression([0.01, 0.1], max_iter=100),
            y > 0,
            "of C above 0.1,",
        ),
    ]
    for estimator, target, expected in cases:
        (found,) = said(TrajectoryEarlyStoppingCV(estimator, cv=4), X, target)
        assert f"values {expected} the last one, may be better" in found
    # Nothing is below zero, and what has converged needs no more updates.
    ridge = IterativeRidge([10.0, 0.0], **exact)
    (found,) = said(TrajectoryEarlyStoppingCV(ridge, cv=4), X, y)
    assert "max_iter=1 may be too small" in found
    ridge = IterativeRidge([10.0, 0.0], solver="newton", max_iter=5)
    assert said(TrajectoryEarlyStoppingCV(ridge, cv=4), X, y) == []
    lasso = TrajectoryLasso(0.1, max_iter=1000)
    assert said(TrajectoryEarlyStoppingCV(lasso, cv=4), X, y) == []


def test_the_remedy_for_default_members_works(rng, few_trees, set_trees):
    set_trees(SMALL={"max_iter": 40})
    X = rng.uniform(-1, 1, (300, 6))
    steps = X, np.sign(X[:, 0]) + np.sign(X[:, 1] - 0.3) + np.sign(X[:, 2] + 0.3)
    few = said(SelfStoppingRegressor(random_state=0), *steps)
    (found,) = [each for each in few if "'boosted trees'" in each]
    assert "40 of 40 trees" in found
    assert "param_grid={'boosted trees__max_iter': [...]} tries" in found
    more = SelfStoppingRegressor(
        param_grid={"boosted trees__max_iter": [2000]}, random_state=0
    )
    assert not [each for each in said(more, *steps) if "'boosted trees'" in each]
    assert 40 < more.members_["boosted trees"].iteration_ < 2000
    assert (
        more.best_score_ < SelfStoppingRegressor(random_state=0).fit(*steps).best_score_
    )


def falling(n_iterates, rate):
    return np.exp(-rate * np.arange(n_iterates))


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        (falling(101, 0.02), True),
        (falling(101, 2.0) + 1, False),  # has converged
        (np.r_[falling(990, 0.002), np.full(11, falling(990, 0.002)[-1])], True),
        (np.r_[falling(90, 0.02), falling(90, 0.02)[:-12:-1]], False),  # has turned
        (np.r_[falling(50, 0.02), np.ones(51)], False),  # long over
        (-1 + falling(101, 0.02), True),  # a score
        (np.r_[np.nan, falling(100, 0.02)], True),
        (np.ones(1), False),
    ],
)
def test_a_run_that_still_improves(losses, expected):
    assert is_still_improving(losses, int(np.nanargmin(losses))) == expected
