"""Runs in the trials of a tuner: what is reported, and where they end."""

from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import KFold
from sklearn.neural_network import MLPRegressor

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.model_selection import run_in_trial

from ..bad_data import good

FOLDS = KFold(4, shuffle=True, random_state=0)
TREES = HistGradientBoostingRegressor(max_iter=35, min_samples_leaf=3)
MODELS = {
    "trees": Staged(TREES, cv=FOLDS),
    "network": Staged(
        MLPRegressor(hidden_layer_sizes=5, max_iter=35, random_state=0), cv=FOLDS
    ),
    "ridge": IterativeRidge(0.0, max_iter=35, tol=0, cv=FOLDS, loo=False, risk=False),
    "lasso": TrajectoryLasso(
        [0.3, 0.1, 0.03], max_iter=15, cv=FOLDS, loo=False, risk=False
    ),
    "kernel": KernelEigenProRegressor(max_iter=35, patience=None, cv=FOLDS, loo=False),
}


class Trial:
    """One of Optuna's, as far as runs know it; pruned from a step on, or never."""

    def __init__(self, pruned_from=np.inf):
        self.reported, self.pruned_from = {}, pruned_from

    def report(self, value, step):
        assert step not in self.reported  # Optuna ignores such values
        assert type(value) is float
        assert type(step) is int
        self.reported[step] = value

    def should_prune(self):
        return max(self.reported) >= self.pruned_from


@pytest.mark.parametrize("name", MODELS)
def test_what_is_reported_is_the_path_of_the_whole_run(name, rng):
    X, y = good(rng)
    model, trial = clone(MODELS[name]), Trial()
    run = model.begin(X, y)
    path = run_in_trial(run, trial, every=10)
    whole = clone(model).fit(X, y)
    np.testing.assert_allclose(path, whole.cv_path_, rtol=1e-12)
    steps = list(trial.reported)
    assert steps == sorted(steps)
    assert steps[-1] == whole.n_iter_
    assert len(steps) >= 3  # ridge regression may converge before
    expected = whole.cv_path_[steps]
    np.testing.assert_allclose(list(trial.reported.values()), expected, rtol=1e-12)
    # The run may be read as any other.
    best = 1 + path[1:].argmin()  # a network is not kept before its first pass
    found = model.take(run.end()).at_iteration(best).predict(X)
    expected = whole.at_iteration(best).predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["trees", "ridge"])
def test_a_pruned_trial_ends_its_run(name, rng):
    optuna = pytest.importorskip("optuna")
    X, y = good(rng)
    trial, run = Trial(pruned_from=20), clone(MODELS[name]).begin(X, y)
    with pytest.raises(optuna.TrialPruned, match="pruned after 20 updates, at a held"):
        run_in_trial(run, trial, every=10)
    assert run.record().n_iter == 20
    whole = clone(MODELS[name]).fit(X, y)
    expected = [whole.cv_path_[10], whole.cv_path_[20]]
    np.testing.assert_allclose(list(trial.reported.values()), expected, rtol=1e-12)


class CountedTrees(GradientBoostingRegressor):
    """It counts the trees of all its copies."""

    n_grown = 0

    def _fit_stage(self, *args, **params):
        CountedTrees.n_grown += 1
        return super()._fit_stage(*args, **params)


def test_stages_after_the_last_report_are_not_grown(rng):
    X, y = good(rng)
    staged = Staged(CountedTrees(n_estimators=50, random_state=0), cv=FOLDS)
    CountedTrees.n_grown = 0
    is_installed = find_spec("optuna") is not None
    error = "pruned after 6" if is_installed else "No module named 'optuna'"
    with pytest.raises(Exception, match=error):
        run_in_trial(staged.begin(X, y, growth="first"), Trial(6), every=3)
    # The model on all rows has one tree.
    assert CountedTrees.n_grown == 4 * 6 + 1


def test_patience_is_that_of_a_stopping_estimator(rng):
    X, y = good(rng)
    trees = clone(TREES).set_params(max_iter=400, learning_rate=0.3)
    trial = Trial()
    run = Staged(trees, cv=FOLDS).begin(X, y, growth="first")
    path = run_in_trial(run, trial, every=5, patience=15)
    best = path.argmin()
    assert best + 15 <= max(trial.reported) < best + 15 + 5
    stopped = TrajectoryEarlyStoppingCV(trees, cv=FOLDS, patience=15, min_delta=0)
    stopped.fit(X, y)
    assert stopped.best_iter_ == best
    assert stopped.best_score_ == pytest.approx(path[best], rel=1e-12)


def test_runs_without_folds_are_refused(rng):
    X, y = good(rng)
    trial = Trial()
    with pytest.raises(ValueError, match=r"no folds.* set cv .*Staged\(model, cv=5"):
        run_in_trial(Staged(TREES).begin(X, y), trial)
    with pytest.raises(ValueError, match="every must be at least 1, got 0"):
        run_in_trial(Staged(TREES, cv=3).begin(X, y), trial, every=0)
    assert not trial.reported


def test_runs_that_go_on_to_their_end_at_once_are_reported_there(rng):
    pytest.importorskip("torch")
    from skacv.torch import TorchRegressor

    X, y = good(rng)
    trial = Trial()
    path = run_in_trial(TorchRegressor(max_iter=25, cv=FOLDS).begin(X, y), trial)
    assert trial.reported == {25: path[-1]}


def test_a_study_finds_what_a_stopping_estimator_fits(rng):
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    X, y = good(rng)

    def objective(trial):
        rate = trial.suggest_float("learning_rate", 0.01, 1.0, log=True)
        trees = clone(TREES).set_params(learning_rate=rate)
        run = Staged(trees, cv=FOLDS).begin(X, y, growth="first")
        return run_in_trial(run, trial, every=5).min()

    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
    )
    study.optimize(objective, n_trials=12)
    states = [trial.state.name for trial in study.trials]
    assert set(states) == {"COMPLETE", "PRUNED"}
    for trial in study.trials:
        whole = Staged(clone(TREES).set_params(**trial.params), cv=FOLDS).fit(X, y)
        steps = list(trial.intermediate_values)
        found = list(trial.intermediate_values.values())
        np.testing.assert_allclose(found, whole.cv_path_[steps], rtol=1e-12)
        assert (max(steps) == 35) == (trial.state.name == "COMPLETE")
    final = clone(TREES).set_params(**study.best_params)
    final = TrajectoryEarlyStoppingCV(final, cv=FOLDS, patience=None).fit(X, y)
    assert final.best_score_ == pytest.approx(study.best_value, rel=1e-12)
