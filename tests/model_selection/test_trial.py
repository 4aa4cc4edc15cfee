"""Default members that have no weight on a sample of rows do not run on all."""

from typing import NamedTuple

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold

from skacv import SelfStoppingClassifier, SelfStoppingRegressor
from skacv.risk.held_out_rows import drawn_units
from tests.cases import first
from tests.model_selection.cases import MEMBERS

pytestmark = pytest.mark.usefixtures("few_trees")
ALL = MEMBERS[SelfStoppingRegressor]
# A member of less weight does not run.
LEAST_WEIGHT = 0.1


@pytest.fixture
def small_trial(set_limits):
    set_limits(ROWS_OF_TRIAL=(100, 100), FEWEST_ROWS=200)


@pytest.fixture
def linear(rng):
    X = rng.standard_normal((300, 5))
    return X, X @ [3.0, -2.0, 1.0, 0.0, 0.0] + 0.1 * rng.standard_normal(300)


def why_not(model):
    pairs = zip(model.results_["member"], model.results_["left_out"])
    return {name: why for name, why in pairs if why}


class Boosted(NamedTuple):
    """A fit of boosted trees: its rows, their weights, and the number of trees."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    n_trees: int


@pytest.fixture
def boosted(monkeypatch):
    """All fits of boosted trees, those of a trial too: they are members of both."""
    found, fit = [], HistGradientBoostingRegressor.fit

    def noting(trees, X, y, sample_weight=None, **params):
        found.append(Boosted(X, y, sample_weight, trees.max_iter))
        return fit(trees, X, y, sample_weight=sample_weight, **params)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", noting)
    return found


def rows_of_trial(fits, X):
    """The rows of X that a trial has drawn: its model of all of them is the first."""
    whole = {tuple(row): number for number, row in enumerate(X)}
    return np.array([whole[tuple(row)] for row in np.asarray(fits[0].X)])


def test_members_without_weight_do_not_run(small_trial, linear):
    X, y = linear
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    rows, _ = drawn_units(300, None, 100)
    halves = KFold(2, shuffle=True, random_state=0)
    alone = SelfStoppingRegressor(cv=halves, random_state=0)
    weights = alone.fit(X[rows], y[rows]).weights_
    without = why_not(model)
    assert "extra trees" in without
    assert all("no weight in a trial" in why for why in without.values())
    assert all(weights[name] < LEAST_WEIGHT for name in without)
    assert set(model.weights_) == ALL - without.keys()
    # Boosted trees gain most from more rows: they run whatever they weigh.
    assert weights["boosted trees"] < LEAST_WEIGHT


def test_only_copies_grow_in_a_trial(small_trial, linear, boosted):
    SelfStoppingRegressor(random_state=0).fit(*linear)
    assert {each.n_trees for each in boosted if len(each.y) == 100} == {1}
    assert max(each.n_trees for each in boosted if len(each.y) == 50) >= 10


def test_few_rows_have_no_trial(set_limits, linear):
    set_limits(ROWS_OF_TRIAL=(100, 100), FEWEST_ROWS=301)
    assert set(SelfStoppingRegressor(random_state=0).fit(*linear).weights_) == ALL


@pytest.mark.parametrize("settings", [{"rule": "min"}, {"cv": KFold(3)}])
def test_all_members_run_where_a_trial_would_decide_otherwise(
    settings, small_trial, linear
):
    model = SelfStoppingRegressor(random_state=0, **settings).fit(*linear)
    assert not why_not(model)


def test_a_trial_has_whole_groups_and_the_weights_of_its_rows(
    small_trial, linear, rng, boosted
):
    X, y = linear
    groups, weights = np.repeat(np.arange(30), 10), rng.uniform(0.5, 2, 300)
    SelfStoppingRegressor(random_state=0).fit(
        X, y, groups=groups, sample_weight=weights
    )
    rows = rows_of_trial(boosted, X)
    assert len(rows) == 100
    assert set(np.unique(groups[rows], return_counts=True)[1]) == {10}
    np.testing.assert_array_equal(boosted[0].y, y[rows])
    # In units of their mean.
    shares = boosted[0].weights / boosted[0].weights.mean()
    np.testing.assert_allclose(shares, weights[rows] / weights[rows].mean(), rtol=1e-9)


def test_a_class_with_few_rows_in_the_sample_lets_all_members_run(small_trial, rng):
    X = rng.standard_normal((300, 4))
    y = np.where(np.arange(300) % 40 == 0, "rare", "usual")
    model = SelfStoppingClassifier(random_state=0).fit(X, y)
    assert not why_not(model)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(300) > 0, "rare", "usual")
    assert why_not(clone(model).fit(X, y))


@pytest.mark.parametrize("share", first(1, [0.5, 0.3]))
def test_a_trial_of_rare_counts_has_as_many_events_as_others_rows(
    share, set_limits, rng, boosted
):
    set_limits(ROWS_OF_TRIAL=(100, 100), FEWEST_ROWS=200)
    X, exposure = rng.standard_normal((1000, 5)), rng.uniform(0.1, 1, 1000)
    y = (X[:, 0] > np.quantile(X[:, 0], 1 - share)).astype(float)
    model = SelfStoppingRegressor(loss="poisson", random_state=0)
    model.fit(X, y, offset=np.log(exposure))
    rows = rows_of_trial(boosted, X)
    assert len(rows) == round(100 / share)
    # Five standard deviations of a draw, at most.
    assert abs(y[rows].sum() - 100) < 50


@pytest.mark.parametrize("largest", [1, 200])
def test_few_events_have_no_trial(largest, set_limits, rng, boosted):
    """Few rows, or one that outweighs all others, decide about the deviance."""
    set_limits(ROWS_OF_TRIAL=(100, 100), FEWEST_ROWS=200)
    X = rng.standard_normal((1000, 5))
    y = (np.arange(1000) % (6 if largest == 1 else 2) == 0).astype(float)
    y[0] = largest
    model = SelfStoppingRegressor(loss="poisson", random_state=0).fit(X, y)
    assert min(len(each.y) for each in boosted) == 800
    assert not why_not(model)


@pytest.mark.parametrize("cls", [SelfStoppingRegressor, SelfStoppingClassifier])
def test_weights_of_classes_and_settings_are_those_of_the_fit(cls, small_trial, linear):
    X, y = linear
    settings = {} if cls is SelfStoppingRegressor else {"class_weight": "balanced"}
    model = cls(random_state=0, time_limit=1000, cv=4, **settings)
    y = y if cls is SelfStoppingRegressor else np.where(y > 1, "a", "b")
    model.fit(X, y)
    assert "boosted trees" in model.weights_
    assert model.predict(X).shape == (300,)
    assert len(model.members_["boosted trees"].cv_indices_) == 4


def test_one_copy_grows_where_one_fold_is_enough(set_limits, linear, boosted):
    X, y = linear
    set_limits(ROWS_TO_CHOOSE_BY=50)
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    assert {len(each.y) for each in boosted} == {240, 300}
    held_out = np.isfinite(model.held_out_prediction_)
    assert held_out.sum() == 60
    assert model.best_score_ == pytest.approx(
        np.mean((y - model.held_out_prediction_)[held_out] ** 2)
    )


@pytest.mark.filterwarnings("ignore::skacv.exceptions.SmallTrainingSetsWarning")
@pytest.mark.parametrize(
    "sizes", first(2, [[150, 150], [290, 5, 5], [60] * 5, [34] * 8 + [28]])
)
def test_some_rows_of_large_groups_are_drawn(sizes, small_trial, linear, boosted):
    X, y = linear
    groups = np.repeat(np.arange(len(sizes)), sizes)
    SelfStoppingRegressor(random_state=0).fit(X, y, groups=groups)
    drawn = rows_of_trial(boosted, X)
    assert 1 < len(np.unique(groups[drawn]))
    assert 60 <= len(drawn) <= 100


def test_groups_in_a_column_have_a_trial(small_trial, linear):
    X, y = linear
    groups = np.repeat(np.arange(5), 60)
    model = SelfStoppingRegressor(random_state=0).fit(X, y, groups=groups[:, None])
    assert why_not(model)
    flat = clone(model).fit(X, y, groups=groups)
    np.testing.assert_array_equal(model.predict(X), flat.predict(X))


def test_any_sparse_format_has_a_trial(small_trial, linear):
    X, y = sparse.csr_matrix(linear[0]), linear[1]
    model = SelfStoppingRegressor(random_state=0).fit(X.tocoo(), y)
    expected = SelfStoppingRegressor(random_state=0).fit(X, y)
    assert why_not(model) == why_not(expected)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-12)


def test_rows_of_weight_zero_are_not_drawn(small_trial, linear, rng, boosted):
    X, y = linear
    more = np.concatenate([X, 9 * rng.standard_normal((400, 5))])
    weights, target = np.repeat([1.0, 0.0], [300, 400]), np.append(y, np.zeros(400))
    order = rng.permutation(700)
    SelfStoppingRegressor(random_state=0).fit(
        more[order], target[order], sample_weight=weights[order]
    )
    drawn = rows_of_trial(boosted, more[order])
    assert len(drawn) == 100
    assert (order[drawn] < 300).all()


def test_parameters_of_a_member_that_does_not_run(small_trial, linear):
    X, y = linear
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    name = next(iter(why_not(model)))
    grid = {f"{name}__random_state": [0]}
    again = clone(model).set_params(param_grid=grid).fit(X, y)
    assert why_not(again) == why_not(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    # A member that is left out because of its data has parameters too.
    few = SelfStoppingRegressor(param_grid={"kernel__gamma": [0.1]}, random_state=0)
    few.fit(X[:50], np.stack([y, y], axis=1)[:50])
    with pytest.raises(ValueError, match="Invalid parameter 'tree__depth'"):
        few.set_params(param_grid={"tree__depth": [1]}).fit(X, y)
