"""``TrajectoryEarlyStoppingCV`` of trees in scikit-learn's machinery."""

import pickle

import joblib
import matplotlib
import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from skacv import RiskPathDisplay, TrajectoryEarlyStoppingCV
from tests.callbacks import needs_callbacks

from .cases import boosted, by_hand

matplotlib.use("Agg")


# ------------------------------------------------------------------ how it runs


def test_threads_change_nothing(data):
    X, y = data
    plain = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    with joblib.parallel_backend("threading"):
        threads = TrajectoryEarlyStoppingCV(boosted(), n_jobs=2).fit(X, y)
    np.testing.assert_array_equal(threads.path_, plain.path_)
    np.testing.assert_array_equal(threads.predict(X), plain.predict(X))


def test_lines_of_a_verbose_estimator(data, capsys):
    X, y = data
    trees = boosted(verbose=1, max_iter=20)
    TrajectoryEarlyStoppingCV(trees, patience=None).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert all(line.startswith("[Staged] after ") for line in lines)
    assert "20 of 20, cross-validation" in lines[-1]


@needs_callbacks
def test_callbacks_see_every_stage(data, capsys):
    from sklearn.callback import ProgressBar

    X, y = data
    model = TrajectoryEarlyStoppingCV(
        boosted(max_iter=9), param_grid={"learning_rate": [0.1, 0.3]}, patience=9
    )
    watched = clone(model).set_callbacks(ProgressBar()).fit(X, y)
    assert "Staged" in capsys.readouterr().out
    np.testing.assert_array_equal(watched.path_, model.fit(X, y).path_)


def test_metadata_are_routed(data, rng):
    X, y = data
    weights, groups = rng.uniform(0.5, 2, 80), np.repeat(np.arange(16), 5)
    plain = TrajectoryEarlyStoppingCV(boosted(max_iter=8), cv=GroupKFold(4))
    plain.fit(X, y, sample_weight=weights, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = boosted(max_iter=8).set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        model = TrajectoryEarlyStoppingCV(inner, cv=GroupKFold(4))
        model.fit(X, y, sample_weight=weights, groups=groups)
        score = model.score(X, y, sample_weight=weights)
        scores = cross_val_score(
            # Scorers of scikit-learn 1.6 ask the outer estimator alone.
            clone(model).set_score_request(sample_weight=True),
            X,
            y,
            cv=GroupKFold(2),
            params={"sample_weight": weights, "groups": groups},
            error_score="raise",
        )
        silent = TrajectoryEarlyStoppingCV(boosted(max_iter=8))
        with pytest.raises(ValueError, match="sample_weight"):
            silent.fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(model.path_, plain.path_)
    assert score == plain.score(X, y, sample_weight=weights)
    assert len(scores) == 2


def test_pickles(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(
        again.at_iteration(2).predict(X), model.at_iteration(2).predict(X)
    )


def test_intervals(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted(), cv=KFold(4)).fit(X, y)
    residuals = y - by_hand(boosted(), model.estimator_, X, y)[model.best_iter_ - 1]
    found = model.predict_interval(X, 0.8, "cv")
    centre, width = model.predict(X), np.diff(found, axis=1)[:, 0] / 2
    np.testing.assert_allclose(found.mean(axis=1), centre)
    assert np.any(np.isclose(width[0], np.abs(residuals)))
    assert np.mean(np.abs(residuals) <= width[0] * (1 + 1e-12)) >= 0.8


def test_display(data):
    from matplotlib import pyplot

    X, y = data
    model = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    display = RiskPathDisplay.from_estimator(model)
    curves = [np.asarray(line.get_ydata(), dtype=float) for line in display.ax_.lines]
    shown = [line for line in curves if len(line) == len(model.path_)]
    for path in (model.path_, model.estimator_.train_path_):
        assert any(np.array_equal(line, path, equal_nan=True) for line in shown)
    held_out = RiskPathDisplay.from_estimator(model, X, y)  # here the same rows
    of_model = model.estimator_.train_path_[1 : model.best_iter_ + 1]
    np.testing.assert_allclose(held_out.test_path, of_model)
    pyplot.close("all")


# ------------------------------------------------------------------ what is refused


def test_estimators_without_stages_are_refused(data):
    for estimator, said in [
        (SVR(), "use KernelEigenProRegressor instead"),
        (make_pipeline(StandardScaler(), SVR()), "is a pipeline, whose last step"),
    ]:
        with pytest.raises(ValueError, match=said):
            TrajectoryEarlyStoppingCV(estimator).fit(*data)


def test_a_run_that_still_improves_is_warned_of(data):
    X, y = data
    slow = boosted(learning_rate=0.01)
    with pytest.warns(ConvergenceWarning, match="still improving"):
        TrajectoryEarlyStoppingCV(slow).fit(X, y)


def test_wrong_data_leave_it_unfitted(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(GradientBoostingRegressor(n_estimators=5))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]
