"""The iterate that is kept: of one run, of a path and of a grid, without refits."""

from inspect import getattr_static

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.optim.design import MatrixDesign
from tests.internals import RULES


def test_keeps_the_iterate_of_least_estimated_risk(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk").fit(X, y)
    alone = IterativeRidge(0.0, loo=False).fit(X, y)
    best = alone.risk_path_.argmin()
    assert 0 < best < alone.n_iter_
    assert model.best_iter_ == model.estimator_.iteration_ == best
    assert model.best_score_ == alone.risk_path_[best]
    assert model.best_score_se_ == alone.risk_se_path_[best]
    assert model.criterion_ == "risk"
    np.testing.assert_array_equal(model.path_, alone.risk_path_)
    np.testing.assert_array_equal(model.coef_, alone.coef_path_[best])
    np.testing.assert_array_equal(model.predict(X), alone.at_iteration(best).predict(X))
    assert model.best_params_ == {}


def test_alpha_and_iteration_in_one_run(data):
    X, y = data
    lasso = TrajectoryLasso("path", max_iter=20)
    model = TrajectoryEarlyStoppingCV(lasso, criterion="risk").fit(X, y)
    inner = model.estimator_
    assert inner.alpha == "path"
    assert model.best_params_ == {"alpha": inner.alpha_path_[model.best_iter_]}
    assert model.best_score_ == inner.risk_path_.min()


def test_param_grid_chooses_jointly(data):
    X, y = data
    grid = {"alpha": [1.0, 0.1, 0.01], "solver": ["ista", "fista"]}
    model = TrajectoryEarlyStoppingCV(
        TrajectoryLasso(), criterion="risk", param_grid=grid
    ).fit(X, y)
    scores = {
        (alpha, solver): TrajectoryLasso(alpha, solver=solver)
        .fit(X, y)
        .risk_path_.min()
        for alpha in grid["alpha"]
        for solver in grid["solver"]
    }
    best = min(scores, key=scores.get)
    assert (model.best_params_["alpha"], model.best_params_["solver"]) == best
    assert model.best_score_ == pytest.approx(scores[best])
    assert len(model.results_["params"]) == 6
    for name in ("best_iter", "best_score", "best_score_se", "n_iter", "fit_time"):
        assert len(model.results_[name]) == 6
    assert min(model.results_["best_score"]) == model.best_score_


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_parallel_runs_agree(backend, data):
    X, y = data
    grid = {"alpha": [1.0, 0.1, 0.01]}
    alone = TrajectoryEarlyStoppingCV(IterativeRidge(), param_grid=grid).fit(X, y)
    with joblib.parallel_backend(backend, n_jobs=2):
        together = clone(alone).fit(X, y)
    assert together.best_params_ == alone.best_params_
    np.testing.assert_allclose(together.coef_, alone.coef_)


def test_choosing_makes_no_refit(data, note_calls):
    """Choosing costs no product with X beyond those of the runs."""
    X, y = data
    products = note_calls(MatrixDesign, "dot", size=lambda *_: 1)
    inner = IterativeRidge(max_iter=30, tol=0)
    TrajectoryEarlyStoppingCV(
        inner, criterion="risk", param_grid={"alpha": [0.1, 1.0]}
    ).fit(X, y)
    # Of iterates sixteen at a time, beside those of the updates.
    assert 0 < len(products) <= 2 * 30


def test_one_standard_error(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="risk", rule="one_se"
    ).fit(X, y)
    path, se = model.path_, model.estimator_.risk_se_path_
    bound = path.min() + se[path.argmin()]
    assert path[model.best_iter_] <= bound
    assert (path[: model.best_iter_] > bound).all()


def test_rules_on_a_path_by_hand():
    path, errors = np.array([5.0, 3.0, 2.0, 1.9, 2.5]), [9.0, 9.0, 9.0, 0.2, 9.0]
    assert RULES["min"](path, errors.__getitem__) == 3
    assert RULES["one_se"](path, errors.__getitem__) == 2


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_rules_take_several_paths(rule, rng):
    paths, errors = rng.integers(0, 9, (50, 12)).astype(float), rng.uniform(0, 3, 12)
    paths[rng.uniform(size=paths.shape) < 0.3] = np.nan
    paths[0], errors[3] = np.nan, np.nan
    expected = [RULES[rule](path, errors.__getitem__) for path in paths]
    np.testing.assert_array_equal(RULES[rule](paths, errors.__getitem__), expected)


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_rules_put_undefined_scores_last(rule):
    path = np.array([np.nan, 5.0, 3.0, np.nan, 1.9, 2.5])
    assert RULES[rule](path, lambda t: 0.2) == 4
    # An undefined error says nothing of other rows.
    assert RULES[rule](path, lambda t: np.nan) == 4
    assert RULES[rule](np.array([np.nan, np.inf]), lambda t: 0.2) == 1


def test_several_targets(data, rng):
    X, y = data
    Y = np.column_stack([y, rng.standard_normal(80)])
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0)).fit(X, Y)
    assert model.predict(X).shape == (80, 2)


def test_sample_weight_is_passed_on(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk")
    model.fit(X, y, sample_weight=weights)
    alone = IterativeRidge(0.0, loo=False).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.path_, alone.risk_path_)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(
        alone.at_iteration(model.best_iter_).score(X, y, sample_weight=weights)
    )


def test_attributes_of_the_chosen_iterate_are_documented():
    attributes = TrajectoryEarlyStoppingCV.__doc__.split("Attributes\n")[1]
    properties = [
        name
        for name in dir(TrajectoryEarlyStoppingCV)
        if isinstance(getattr_static(TrajectoryEarlyStoppingCV, name), property)
        and not name.startswith("_")
    ]
    assert "coef_" in properties
    for name in properties:
        assert f"    {name} : " in attributes


def test_intervals_of_classes_and_sets_of_numbers_name_each_other(rng):
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40)
    trees = GradientBoostingRegressor(n_estimators=3), GradientBoostingClassifier()
    trees[1].set_params(n_estimators=3)
    for model, target, has, lacks in (
        (trees[0], y, "predict_interval", "predict_set"),
        (trees[1], y > 0, "predict_set", "predict_interval"),
    ):
        stopped = TrajectoryEarlyStoppingCV(model, random_state=0).fit(X, target)
        with pytest.raises(AttributeError) as raised:
            getattr(stopped, lacks)
        assert f"has no {lacks}; it has {has}." in str(raised.value)
