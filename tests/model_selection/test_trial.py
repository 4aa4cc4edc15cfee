"""Default members that have no weight on a sample of rows do not run on all."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from skacv import SelfStoppingClassifier, SelfStoppingRegressor
from skacv._compat import _safe_indexing
from skacv._estimator.estimates.folds import ShuffledFolds
from skacv.model_selection import trial
from skacv.model_selection.search import Search
from skacv.risk.held_out_rows import drawn_units
from skacv.staged.run import StagedFit
from tests.model_selection.cases import MEMBERS

pytestmark = pytest.mark.usefixtures("few_trees")
ALL = MEMBERS[SelfStoppingRegressor]


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


def test_members_without_weight_do_not_run(small_trial, linear):
    X, y = linear
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    rows, _ = drawn_units(300, None, 100)
    alone = SelfStoppingRegressor(cv=ShuffledFolds(False, n_splits=2), random_state=0)
    weights = alone.fit(X[rows], y[rows]).weights_
    without = why_not(model)
    assert "extra trees" in without
    assert all("no weight in a trial" in why for why in without.values())
    assert all(weights[name] < trial.LEAST_WEIGHT for name in without)
    assert set(model.weights_) == ALL - without.keys()
    # Boosted trees gain most from more rows: they run whatever they weigh.
    assert weights["boosted trees"] < trial.LEAST_WEIGHT


def test_only_copies_grow_in_a_trial(small_trial, linear, note_calls):
    # Rows of a fit, and its stages.
    grown = note_calls(StagedFit, "grown", size=lambda fit, n: (len(fit.y), n))
    SelfStoppingRegressor(random_state=0).fit(*linear)
    assert {n for rows, n in grown if rows == 100} == {1}
    assert max(n for rows, n in grown if rows == 50) >= 10


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
    small_trial, linear, rng, monkeypatch
):
    X, y = linear
    groups, weights = np.repeat(np.arange(30), 10), rng.uniform(0.5, 2, 300)
    searches, choose = [], Search.choose

    def noting(search):
        searches.append((search.X, search.y, search.params))
        return choose(search)

    monkeypatch.setattr(Search, "choose", noting)
    SelfStoppingRegressor(random_state=0).fit(
        X, y, groups=groups, sample_weight=weights
    )
    _, (of_trial, target, params) = searches
    assert set(np.unique(params["groups"], return_counts=True)[1]) == {10}
    rows = np.flatnonzero(np.isin(groups, params["groups"]))
    assert len(rows) == 100
    np.testing.assert_array_equal(of_trial, X[rows])
    np.testing.assert_array_equal(target, y[rows])
    # In units of their mean.
    np.testing.assert_allclose(
        params["sample_weight"], weights[rows] / weights.mean(), rtol=1e-11
    )


def test_a_class_with_few_rows_in_the_sample_lets_all_members_run(small_trial, rng):
    X = rng.standard_normal((300, 4))
    y = np.where(np.arange(300) % 40 == 0, "rare", "usual")
    model = SelfStoppingClassifier(random_state=0).fit(X, y)
    assert not why_not(model)
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(300) > 0, "rare", "usual")
    assert why_not(clone(model).fit(X, y))


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


def test_one_copy_grows_where_one_fold_is_enough(set_limits, linear, note_calls):
    X, y = linear
    sizes = note_calls(StagedFit, "begun", size=lambda *args: len(args[2]))
    set_limits(ROWS_TO_CHOOSE_BY=50)
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    # Three models in stages, and one copy of each.
    assert sizes == [300] * 6
    held_out = np.isfinite(model.held_out_prediction_)
    assert held_out.sum() == 60
    assert model.best_score_ == pytest.approx(
        np.mean((y - model.held_out_prediction_)[held_out] ** 2)
    )


@pytest.mark.parametrize("sizes", [[150, 150], [60] * 5, [34] * 8 + [28], [290, 5, 5]])
def test_some_rows_of_large_groups_are_drawn(sizes, small_trial, linear):
    X, y = linear
    groups = np.repeat(np.arange(len(sizes)), sizes)
    drawn = trial.drawn_rows(Search(None, X, y, {"groups": groups}))
    assert 1 < len(np.unique(groups[drawn]))
    assert 60 <= len(drawn) <= 100


def test_groups_in_a_column_have_a_trial(small_trial, linear):
    X, y = linear
    groups = np.repeat(np.arange(5), 60)
    model = SelfStoppingRegressor(random_state=0).fit(X, y, groups=groups[:, None])
    assert why_not(model)
    flat = clone(model).fit(X, y, groups=groups)
    np.testing.assert_array_equal(model.predict(X), flat.predict(X))


def test_one_group_has_no_trial(small_trial, linear):
    params = {"groups": np.zeros(300)}
    assert trial.drawn_rows(Search(None, *linear, params)) is None


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "dia", "bsr", "dok", "lil"])
def test_rows_of_any_sparse_format(kind, linear):
    X, rows = linear[0], np.array([5, 2, 2])
    drawn = _safe_indexing(sparse.csr_matrix(X).asformat(kind), rows)
    np.testing.assert_array_equal(drawn.toarray(), X[rows])


def test_any_sparse_format_has_a_trial(small_trial, linear):
    X, y = sparse.csr_matrix(linear[0]), linear[1]
    model = SelfStoppingRegressor(random_state=0).fit(X.tocoo(), y)
    expected = SelfStoppingRegressor(random_state=0).fit(X, y)
    assert why_not(model) == why_not(expected)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-12)


def test_rows_of_weight_zero_are_not_drawn(small_trial, linear, rng):
    X, _ = linear
    more = np.concatenate([X, 9 * rng.standard_normal((400, 5))])
    weights = np.repeat([1.0, 0.0], [300, 400])
    order = rng.permutation(700)
    search = Search(None, more[order], None, {"sample_weight": weights[order]})
    drawn = trial.drawn_rows(search)
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
