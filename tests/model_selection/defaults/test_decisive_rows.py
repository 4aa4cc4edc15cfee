"""Rows of rare counts: how many of them decide about a deviance."""

import numpy as np
import pytest

from skacv import SelfStoppingRegressor
from skacv.model_selection.defaults import portfolio
from skacv.model_selection.defaults.decisive_rows import count_decisive_rows
from skacv.optim.losses import Gamma, Poisson, SquaredError
from tests.internals import default_members


def test_events_count_and_not_rows(rng):
    y = (rng.random(400) < 0.1).astype(float)
    assert count_decisive_rows(Poisson(), y) == pytest.approx(y.sum())
    assert count_decisive_rows(SquaredError(), y) == 400
    assert count_decisive_rows(Gamma(), np.full(400, 3.0)) == pytest.approx(400)
    # Rates of short exposures are the events that they were.
    exposure = rng.uniform(0.01, 1, 400)
    found = count_decisive_rows(Poisson(), y / exposure, exposure)
    assert found == pytest.approx(y.sum())
    # The output with the fewest, and none of rows of weight zero.
    several = np.stack([y, np.ones(400)], axis=1)
    assert count_decisive_rows(Poisson(), several) == pytest.approx(y.sum())
    weights = (np.arange(400) < 100).astype(float)
    found = count_decisive_rows(Poisson(), y, weights)
    assert found == pytest.approx(y[:100].sum())
    assert count_decisive_rows(SquaredError(), y, weights) == 100
    assert count_decisive_rows(Poisson(), np.zeros(5)) == 0


def test_the_number_is_that_of_equal_amounts_of_the_same_relative_variance(rng):
    """Of many draws, the mean of n such amounts varies as that of n equal claims."""
    y = rng.gamma(0.5, 2.0, 300)
    n = count_decisive_rows(Gamma(), y)
    times = rng.poisson(1.0, (20_000, 300))
    totals = times @ y
    assert totals.var() / totals.mean() ** 2 == pytest.approx(1 / n, rel=0.1)


def sizes_of(trees):
    """The parameters by which trees grow large."""
    parameters = trees.get_params().items()
    kinds = "max_leaf_nodes", "max_features", "min_samples_leaf"
    return {name: value for name, value in parameters if name.endswith(kinds)}


def test_trees_for_rare_counts_are_as_small_as_for_few_rows():
    def sizes(**table):
        return sizes_of(default_members("regression", **table)["boosted trees"])

    rare = sizes(n_rows=40_000, n_decisive=4000.0)
    assert rare == sizes(n_rows=4000)
    assert rare != sizes(n_rows=40_000)
    least = sizes(n_rows=40_000, n_decisive=0.0)
    assert least != rare
    for name, value in sizes(n_rows=100).items():
        if not name.endswith("min_samples_leaf"):
            assert least[name] == value


def test_default_members_know_of_rare_counts(rng):
    X = rng.standard_normal((9000, 3))
    y = (rng.random(9000) < 0.3).astype(float)

    def sizes(target, weights=None):
        owner = SelfStoppingRegressor(loss="poisson")
        members, _ = portfolio.default_members(
            owner, "regression", X, target, None, weights
        )
        (trees,) = (one.estimator for one in members if one.name == "boosted trees")
        return sizes_of(trees)

    rare, frequent = sizes(y), sizes(1 + 0 * y)
    assert rare != frequent
    exposure = rng.uniform(0.01, 1, 9000)
    assert sizes(y / exposure, exposure) == rare
