"""Stopping at the best iterate: without refits, in scikit-learn's machinery."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Lasso
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryLasso,
)
from skacv.model_selection.rules import RULES
from skacv.optim.design import Design


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, 40))
    return X, X[:, :3].sum(axis=1) + rng.standard_normal(80)


def test_keeps_the_iterate_of_least_estimated_risk(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk").fit(X, y)
    alone = IterativeRidge(0.0).fit(X, y)
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
    model = TrajectoryEarlyStoppingCV(criterion="risk").fit(X, y)
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


def test_no_refit(data, monkeypatch):
    """Choosing costs no product with X beyond those of the runs."""
    X, y = data
    counts = {"n": 0}
    original = Design.dot

    def counting(self, coef):
        counts["n"] += 1
        return original(self, coef)

    monkeypatch.setattr(Design, "dot", counting)
    inner = IterativeRidge(max_iter=30, tol=0)
    TrajectoryEarlyStoppingCV(
        inner, criterion="risk", param_grid={"alpha": [0.1, 1.0]}
    ).fit(X, y)
    assert counts["n"] == 2 * 31


def test_one_standard_error(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0), criterion="risk", rule="one_se"
    ).fit(X, y)
    path, se = model.path_, model.estimator_.risk_se_path_
    bound = path.min() + se[path.argmin()]
    assert path[model.best_iter_] <= bound
    assert (path[: model.best_iter_] > bound).all()


def test_rules():
    path, errors = np.array([5.0, 3.0, 2.0, 1.9, 2.5]), [9.0, 9.0, 9.0, 0.2, 9.0]
    assert RULES["min"](path, errors.__getitem__) == 3
    assert RULES["one_se"](path, errors.__getitem__) == 2


def test_of_several_targets(data, rng):
    X, y = data
    Y = np.column_stack([y, rng.standard_normal(80)])
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0)).fit(X, Y)
    assert model.predict(X).shape == (80, 2)


def test_sample_weight_is_passed_on(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="risk")
    model.fit(X, y, sample_weight=weights)
    alone = IterativeRidge(0.0).fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.path_, alone.risk_path_)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(
        alone.at_iteration(model.best_iter_).score(X, y, sample_weight=weights)
    )


# --------------------------------------------------------------- scikit-learn


def test_in_a_pipeline_with_pandas():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        TrajectoryEarlyStoppingCV(TrajectoryLasso(alpha=0.01), criterion="risk"),
    ).fit(X, y)
    assert pipeline.score(X, y) > 0.5
    assert list(pipeline[-1].feature_names_in_) == list(X.columns)
    assert pipeline[-1].n_features_in_ == 10


def test_in_grid_search(data):
    X, y = data
    search = GridSearchCV(
        TrajectoryEarlyStoppingCV(TrajectoryLasso()), {"estimator__alpha": [0.01, 0.1]}
    ).fit(X, y)
    assert search.best_params_["estimator__alpha"] in (0.01, 0.1)
    assert (
        search.best_estimator_.estimator_.alpha
        == search.best_params_["estimator__alpha"]
    )
    assert cross_val_score(TrajectoryEarlyStoppingCV(), X, y).mean() > 0.4


def test_clone_and_pickle(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(TrajectoryElasticNet(0.1), n_jobs=2)
    copy = clone(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    model.fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert is_regressor(model)


def test_pickle_holds_no_data(rng):
    X = rng.standard_normal((400, 500))
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1, max_iter=5))
    model.fit(X, X[:, 0] + rng.standard_normal(400))
    assert len(pickle.dumps(model)) < X.nbytes / 4


def test_metadata_routing(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    expected = IterativeRidge(0.0).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = IterativeRidge(0.0).set_fit_request(sample_weight=True)
        asking.set_score_request(sample_weight=True)
        model = TrajectoryEarlyStoppingCV(asking, criterion="risk")
        model.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(model.path_, expected.risk_path_)
        model.score(X, y, sample_weight=weights)
        deaf = IterativeRidge(0.0).set_fit_request(sample_weight=False)
        model = TrajectoryEarlyStoppingCV(deaf)
        with pytest.raises(TypeError, match="sample_weight"):
            model.fit(X, y, sample_weight=weights)
        search = GridSearchCV(
            TrajectoryEarlyStoppingCV(asking), {"estimator__alpha": [0.0, 1.0]}
        )
        search.fit(X, y, sample_weight=weights)
        pipeline = make_pipeline(TrajectoryEarlyStoppingCV(asking, criterion="risk"))
        pipeline.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(pipeline[-1].path_, expected.risk_path_)


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (
            TrajectoryEarlyStoppingCV(TrajectoryLasso(risk=False), criterion="risk"),
            ValueError,
            "risk_path_, which TrajectoryLasso does not compute with risk=False",
        ),
        (
            TrajectoryEarlyStoppingCV(
                IterativeRidge(),
                criterion="risk",
                param_grid={"risk": ["auto", False]},
            ),
            ValueError,
            "does not compute",
        ),
        (TrajectoryEarlyStoppingCV(criterion="holdout"), ValueError, "'holdout'"),
        (TrajectoryEarlyStoppingCV(rule="max"), ValueError, "rule"),
        (TrajectoryEarlyStoppingCV(Lasso()), ValueError, "estimator"),
        (
            TrajectoryEarlyStoppingCV(param_grid={"gamma": [1.0]}),
            ValueError,
            "Invalid parameter 'gamma'",
        ),
        (
            TrajectoryEarlyStoppingCV(TrajectoryLasso(0.01, step_size=1e3)),
            ValueError,
            "largest stable step",
        ),
    ],
    ids=[
        "risk_off",
        "risk_off_in_grid",
        "criterion",
        "rule",
        "foreign",
        "grid",
        "step",
    ],
)
def test_bad_input_changes_nothing(model, error, message, data):
    X, y = data
    with pytest.raises(error, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    for name in ("coef_", "n_features_in_", "best_iter_"):
        assert not hasattr(model, name)
    fitted = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1)).fit(X, y)
    before = vars(fitted).copy()
    with pytest.raises(ValueError, match="NaN"):
        fitted.fit(np.full_like(X, np.nan), y)
    assert vars(fitted) == before


def test_unlike_columns_are_refused(data):
    X, y = data
    frame = pd.DataFrame(X).add_prefix("x")
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1)).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"x0": "z"}))


@pytest.mark.skipif(
    tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 9),
    reason="scikit-learn has callbacks from 1.9 on",
)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_callbacks_reach_the_trajectories(n_jobs, data, capsys):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    inner = IterativeRidge(max_iter=7, tol=0).set_callbacks(monitor)
    model = TrajectoryEarlyStoppingCV(
        inner, param_grid={"alpha": [0.1, 1.0]}, n_jobs=n_jobs
    )
    model.set_callbacks(ProgressBar()).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "update"]
    assert len(rows) == 2 * 7
    assert "IterativeRidge" in capsys.readouterr().out
