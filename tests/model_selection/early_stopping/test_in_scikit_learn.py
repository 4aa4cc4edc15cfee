"""The stopping estimator in scikit-learn's machinery."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_diabetes
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryLasso,
)
from tests.callbacks import needs_callbacks


def test_in_a_pipeline_with_pandas():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    pipeline = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        TrajectoryEarlyStoppingCV(TrajectoryLasso(alpha=0.01), criterion="risk"),
    ).fit(X, y)
    assert pipeline.score(X, y) > 0.5
    assert list(pipeline[-1].feature_names_in_) == list(X.columns)
    assert pipeline[-1].n_features_in_ == 10


@pytest.mark.parametrize(
    "estimator",
    [
        ExtraTreesRegressor(5),
        HistGradientBoostingRegressor(max_iter=5, max_features=0.3),
        make_pipeline(StandardScaler(), RandomForestRegressor(5)),
        KernelEigenProRegressor(n_centers=10, max_iter=5),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_one_seed_repeats_a_fit(estimator, data):
    X, y = data

    def fitted(seed):
        model = TrajectoryEarlyStoppingCV(estimator, criterion="cv", random_state=seed)
        return model.fit(X, y)

    first, again, other = map(fitted, (0, 0, 1))
    assert_array_equal(again.path_, first.path_)
    assert_array_equal(again.predict(X), first.predict(X))
    assert again.best_score_corrected_ == first.best_score_corrected_
    assert np.any(other.path_ != first.path_)


def test_a_seed_of_the_model_stays(data):
    model = TrajectoryEarlyStoppingCV(ExtraTreesRegressor(5, random_state=3))
    fitted = model.set_params(random_state=0).fit(*data)
    assert fitted.estimator_.estimator_.random_state == 3


@pytest.mark.slow
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
    assert cross_val_score(SelfStoppingRegressor(), X, y).mean() > 0.4


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
    expected = IterativeRidge(0.0, loo=False).fit(X, y, sample_weight=weights)
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
        # Scorers of scikit-learn 1.6 ask the outer estimator alone.
        outer = TrajectoryEarlyStoppingCV(asking).set_score_request(sample_weight=True)
        search = GridSearchCV(outer, {"estimator__alpha": [0.0, 1.0]})
        search.fit(X, y, sample_weight=weights)
        pipeline = make_pipeline(TrajectoryEarlyStoppingCV(asking, criterion="risk"))
        pipeline.fit(X, y, sample_weight=weights)
        np.testing.assert_array_equal(pipeline[-1].path_, expected.risk_path_)


@needs_callbacks
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
