"""Weights and groups of coefficients: what they are, and what is read along them."""

from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.model_selection import GridSearchCV, KFold

from skacv import (
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryLasso,
    approximate_loo,
)
from tests import oracles
from tests.cases import covering
from tests.oracles import left_out_one_by_one, refitted_predictions
from tests.runs import run_of

N_ROWS, N_FEATURES = 30, 8
WEIGHTS = np.array([0.5, 0.0, 2.0, 1.0, 1.0, 3.0, 0.7, 0.0])
GROUPS = ["b", "a", "b", "c", "a", "b", "c", "d"]
LISTS = [[1, 4], (0, 2, 5), np.array([3, 6]), [7]]
GROUP_WEIGHTS = [1.0, 2.0, 0.5, 0.0]
MODELS = {
    "lasso": TrajectoryLasso(0.1, penalty_weights=WEIGHTS),
    "lasso_ista": TrajectoryLasso(0.1, penalty_weights=WEIGHTS, solver="ista"),
    "elastic_net": TrajectoryElasticNet(0.2, penalty_weights=WEIGHTS),
    "groups": TrajectoryGroupLasso(0.1, groups=GROUPS),
    "groups_ista": TrajectoryGroupLasso(0.1, groups=GROUPS, solver="ista"),
    "weighted_groups": TrajectoryGroupLasso(
        0.1, groups=GROUPS, group_weights=GROUP_WEIGHTS
    ),
    "one_group": TrajectoryGroupLasso(0.1, groups=N_FEATURES),
}
EXACT = {"rtol": 0, "atol": 1e-8}
CONVERGED = {"max_iter": 3000, "tol": 1e-13, "risk": False, "loo": False}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N_ROWS, N_FEATURES)) + 0.5
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(N_ROWS) + 3
    return X, y


def model_of(name, **params):
    return clone(MODELS[name]).set_params(max_iter=30, tol=0, **params)


# --------------------------------------------------------- what is read along them


@covering(name=MODELS, fit_intercept=[False, True], weighted=[False, True])
def test_leave_one_out_is_that_of_refits(name, fit_intercept, weighted, data, rng):
    X, y = data
    weights = rng.uniform(0.3, 3, N_ROWS) if weighted else None
    model = model_of(name, fit_intercept=fit_intercept, loo=True, risk=False)
    model.fit(X, y, sample_weight=weights)
    expected = left_out_one_by_one(model, X, y, range(N_ROWS), weights)
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)


@pytest.mark.parametrize("name", ["lasso", "groups", "weighted_groups"])
def test_leave_one_out_of_wide_data_along_a_path(name, rng):
    """Working columns are few there, and grow by whole groups."""
    X = rng.standard_normal((16, 40))
    y = X[:, 0] + 0.3 * rng.standard_normal(16)
    parts = {
        "lasso": {"penalty_weights": np.arange(40) % 5},
        "groups": {"groups": np.arange(40) % 9},
        "weighted_groups": {"groups": 10},
    }
    model = model_of(name, alpha=[0.1, 0.03], loo=True, risk=False, **parts[name])
    model.fit(X, y)
    expected = left_out_one_by_one(model, X, y, range(16))
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)


@pytest.mark.parametrize("name", MODELS)
def test_folds_are_refits(name, data, rng):
    X, y = data
    weights = rng.uniform(0.3, 3, N_ROWS)
    model = model_of(name, loo=False, risk=False, cv=KFold(5))
    model.fit(X, y, sample_weight=weights)
    found = np.split(model.cv_prediction_path_, 5, axis=1)
    for fold, (fitted, judged) in enumerate(KFold(5).split(X)):
        expected = refitted_predictions(model, X, y, fitted, judged, weights)
        np.testing.assert_allclose(found[fold], expected, **EXACT)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_risk_is_that_of_full_jacobians(name, fit_intercept, weighted, data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, N_ROWS) if weighted else None
    model = model_of(
        name,
        fit_intercept=fit_intercept,
        loo=False,
        risk="exact",
        risk_row_scales=False,
    )
    run = run_of(model, X, y, sample_weight=weights)
    is_grouped = isinstance(model, TrajectoryGroupLasso)
    of_prox = oracles.group_jacobian if is_grouped else oracles.elementwise_jacobian
    expected = oracles.risk_path_of(run, X, y, weights, of_prox)
    np.testing.assert_allclose(model.risk_path_, expected, rtol=1e-3)


# ------------------------------------------------------------------- weights


def test_weighted_lasso_is_the_lasso_on_columns_over_their_weights(data):
    X, y = data
    weights = np.where(WEIGHTS > 0, WEIGHTS, 1.5)
    model = TrajectoryLasso(0.1, penalty_weights=weights, **CONVERGED).fit(X, y)
    expected = Lasso(0.1, tol=1e-14, max_iter=100_000).fit(X / weights, y)
    np.testing.assert_allclose(model.coef_, expected.coef_ / weights, atol=1e-8)
    np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-8)


@pytest.mark.parametrize("cls", [TrajectoryLasso, TrajectoryElasticNet])
def test_weights_of_one_are_none(cls, data):
    ones, none = (
        cls(0.1, penalty_weights=weights).fit(*data)
        for weights in (np.ones(N_FEATURES), None)
    )
    np.testing.assert_array_equal(ones.coef_path_, none.coef_path_)
    np.testing.assert_allclose(ones.loo_path_, none.loo_path_, rtol=1e-12)
    np.testing.assert_allclose(ones.risk_path_, none.risk_path_, rtol=1e-12)


@pytest.mark.parametrize("cls", [TrajectoryLasso, TrajectoryElasticNet])
def test_columns_without_a_penalty_are_least_squares(cls, data):
    X, y = data
    model = cls(1e3, penalty_weights=WEIGHTS, **CONVERGED).fit(X, y)
    free = WEIGHTS == 0
    assert not model.coef_[~free].any()
    expected = LinearRegression().fit(X[:, free], y)
    np.testing.assert_allclose(model.coef_[free], expected.coef_, atol=1e-8)


@pytest.mark.parametrize("name", ["lasso", "elastic_net", "groups", "weighted_groups"])
def test_a_path_begins_where_all_that_is_penalised_is_zero(name, data):
    X, y = data
    model = clone(MODELS[name]).set_params(**CONVERGED)
    start = model_of(name, alpha="path", risk=False, loo=False).fit(X, y)
    largest = start.alpha_path_[0]
    held = np.delete(np.arange(8), 7) if "groups" in name else np.flatnonzero(WEIGHTS)
    for factor, stays in ((1.001, True), (0.999, False)):
        model.set_params(alpha=factor * largest).fit(X, y)
        assert (model.coef_[held] == 0).all() == stays


@pytest.mark.parametrize(
    "cls",
    [TrajectoryLasso, TrajectoryElasticNet, partial(TrajectoryGroupLasso, groups=2)],
)
def test_no_rounding_moves_the_first_strength_of_a_path(cls, data):
    """Beside means of 1e4 spreads gradients have lost four of their digits."""
    X, y = data
    for far in (0, 1e2, 1e3, 1e4):
        model = cls(alpha="path", max_iter=5, loo=False, risk=False, cv=5)
        run = run_of(model, X + far * X.std(axis=0), 1e5 * (y + far))
        assert run.trajectory.phases[0].n_updates == 1
        assert not model.coef_path_[1].any()


def test_a_path_with_nothing_penalised_is_least_squares(data):
    X, y = data
    model = TrajectoryLasso(
        "path", penalty_weights=np.zeros(N_FEATURES), risk=False, loo=False, tol=1e-12
    ).fit(X, y)
    expected = LinearRegression().fit(X, y).coef_
    np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(5), r"must have shape \(8,\), one weight for each of the features"),
        (np.ones((8, 1)), r"must have shape \(8,\)"),
        (-WEIGHTS, "finite and not negative"),
        (np.where(WEIGHTS > 2, np.nan, WEIGHTS), "finite and not negative"),
        (np.where(WEIGHTS > 2, np.inf, WEIGHTS), "finite and not negative"),
    ],
)
@pytest.mark.parametrize("cls", [TrajectoryLasso, TrajectoryElasticNet])
def test_other_weights_are_refused_and_nothing_has_changed(cls, weights, message, data):
    model = cls(0.1).fit(*data)
    before = dict(vars(model))
    model.set_params(penalty_weights=weights)
    with pytest.raises(ValueError, match=f"penalty_weights {message}|{message}"):
        model.fit(*data)
    del before["penalty_weights"]
    assert all(vars(model)[name] is value for name, value in before.items())


def test_search_over_weights(data):
    grid = {"penalty_weights": [None, WEIGHTS, WEIGHTS.tolist()]}
    model = TrajectoryLasso(0.1, max_iter=20, risk=False, loo=False)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(*data)
    scores = search.cv_results_["mean_test_score"]
    assert scores[0] != scores[1] == scores[2]


def test_a_warm_start_goes_on_under_the_same_weights(data):
    whole = model_of("lasso").fit(*data)
    part = model_of("lasso").set_params(max_iter=12, warm_start=True).fit(*data)
    part.set_params(max_iter=30).fit(*data)
    assert part.n_iter_ == 30
    np.testing.assert_allclose(part.risk_path_, whole.risk_path_, rtol=1e-10)
    part.set_params(penalty_weights=WEIGHTS + 1).fit(*data)
    assert part.n_iter_ == 60


def test_approximate_loo_of_a_weighted_lasso(data):
    X, y = data
    weights = np.where(WEIGHTS > 0, WEIGHTS, 1.5)
    model = TrajectoryLasso(0.1, penalty_weights=weights, **CONVERGED).fit(X, y)
    found = approximate_loo(model, X, y)
    lasso = Lasso(0.1, tol=1e-14, max_iter=100_000).fit(X / weights, y)
    expected = approximate_loo(lasso, X / weights, y)
    np.testing.assert_allclose(found.predictions, expected.predictions, atol=1e-8)


# -------------------------------------------------------------------- groups


def test_optimality_of_the_group_lasso(data):
    """The gradient of a group is its subgradient: Yuan & Lin (2006), eq. 2.2."""
    X, y = data
    model = TrajectoryGroupLasso(0.6, groups=GROUPS, **CONVERGED).fit(X, y)
    gradient = X.T @ (model.predict(X) - y) / N_ROWS
    n_zero = 0
    for label in np.unique(GROUPS):
        own = np.array(GROUPS) == label
        threshold = 0.6 * np.sqrt(own.sum())
        norm = np.linalg.norm(model.coef_[own])
        if norm == 0:
            n_zero += 1
            assert np.linalg.norm(gradient[own]) <= threshold + 1e-8
        else:
            expected = -threshold * model.coef_[own] / norm
            np.testing.assert_allclose(gradient[own], expected, atol=1e-8)
    assert 0 < n_zero < 4
    assert model.intercept_ == pytest.approx(y.mean() - X.mean(axis=0) @ model.coef_)


@pytest.mark.parametrize("groups", [1, np.arange(N_FEATURES)[::-1]])
def test_groups_of_one_are_the_lasso(groups, data):
    found = TrajectoryGroupLasso(0.1, groups=groups, max_iter=50).fit(*data)
    expected = TrajectoryLasso(0.1, max_iter=50).fit(*data)
    for name in ("coef_path_", "loo_path_", "risk_path_", "objective_path_"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("groups", [LISTS, np.array([1, 0, 1, 2, 0, 1, 2, 3])])
def test_ways_to_say_groups(groups, data):
    found = model_of("weighted_groups", groups=groups, loo=False).fit(*data)
    expected = model_of("weighted_groups", loo=False).fit(*data)
    np.testing.assert_array_equal(found.coef_path_, expected.coef_path_)


def test_consecutive_groups(data):
    found = model_of("groups", groups=3, loo=False).fit(*data)
    expected = model_of("groups", groups=[0, 0, 0, 1, 1, 1, 2, 2], loo=False).fit(*data)
    np.testing.assert_array_equal(found.coef_path_, expected.coef_path_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"groups": GROUPS[:-1]}, "a label for each of the 8 features"),
        ({"groups": [[0, 1, 2], [3, 4, 5]]}, "exactly once"),
        ({"groups": [[0, 1, 2, 3, 4], [4, 5, 6, 7]]}, "exactly once"),
        ({"groups": [list(range(8)), []]}, "must contain feature indices"),
        ({"groups": [["a", "b"], ["c"]]}, "must contain feature indices"),
        ({"groups": []}, "must list each of the features|a label for each"),
        ({"groups": 0}, "groups"),
        ({"group_weights": [1.0, 2.0]}, r"shape \(4,\), one weight for each of the gr"),
        ({"group_weights": [1.0, -2.0, 1, 1]}, "finite and not negative"),
    ],
    ids=str,
)
def test_other_groups_are_refused_and_nothing_has_changed(params, message, data):
    model = TrajectoryGroupLasso(0.1, groups=GROUPS).fit(*data)
    kept = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(*data)
    assert model.coef_ is kept


def test_search_over_groups(data):
    grid = {"groups": [1, 2, GROUPS, LISTS]}
    model = TrajectoryGroupLasso(0.1, max_iter=20, risk=False, loo=False)
    search = GridSearchCV(model, grid, cv=3, error_score="raise").fit(*data)
    scores = search.cv_results_["mean_test_score"]
    assert scores[2] == scores[3]
    assert len(set(scores)) == 3


def test_approximate_loo_of_groups_is_refused(data):
    model = TrajectoryGroupLasso(0.1, groups=GROUPS, **CONVERGED).fit(*data)
    with pytest.raises(ValueError, match="GroupL2 is not a sum over coefficients"):
        approximate_loo(model, *data)
