"""Fitted models do not depend on the caller's arrays, and pickles hold no rows."""

import copy
import pickle
from inspect import isclass

import cloudpickle
import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.linear_model import SGDRegressor

import skacv
from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    Staged,
    TableEncoder,
    TrajectoryClassifier,
    TrajectoryCoxRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGammaRegressor,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from tests.cases import covering, first
from tests.internals import OfOneIterate
from tests.runs import InParts, fitted_attributes

N_ROWS, N_COLUMNS = 90, 6
RUN = {"max_iter": 6, "cv": 3}
STAGES = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=5)
MODELS = {
    "ridge": IterativeRidge(**RUN),
    "ridge, row space": IterativeRidge(solver="gd", **RUN),
    "lasso": TrajectoryLasso("path", loo=False, risk=False, **RUN),
    "lasso, loo": TrajectoryLasso(0.1, loo=True, risk=True, **RUN),
    "lasso, standardized": TrajectoryLasso("path", standardize=True, **RUN),
    "lasso, no intercept": TrajectoryLasso("path", fit_intercept=False, **RUN),
    "elastic net": TrajectoryElasticNet("path", **RUN),
    "group lasso": TrajectoryGroupLasso(groups=np.arange(N_COLUMNS) // 2, **RUN),
    "huber": TrajectoryHuberRegressor(**RUN),
    "poisson": TrajectoryPoissonRegressor(solver="newton", **RUN),
    "gamma": TrajectoryGammaRegressor(0.1, **RUN),
    "tweedie": TrajectoryTweedieRegressor("path", loo=False, risk=False, **RUN),
    "quantile": TrajectoryQuantileRegressor(**RUN),
    "logistic": TrajectoryLogisticRegression("path", **RUN),
    "svc": TrajectoryLinearSVC(**RUN),
    "cox": TrajectoryCoxRegressor(**RUN),
    "regressor": TrajectoryRegressor(**RUN),
    "classifier": TrajectoryClassifier(**RUN),
    "eigenpro": IterativeRidge(
        solver="eigenpro", n_components=2, subsample_size=30, batch_size=8, **RUN
    ),
    "kernel": KernelEigenProRegressor(**RUN),
    "kernel, labels": KernelEigenProClassifier(**RUN),
    "staged": Staged(STAGES, cv=3),
    "staged forest": Staged(ExtraTreesRegressor(4, random_state=0), cv=3),
    "staged passes": Staged(SGDRegressor(max_iter=5, random_state=0), cv=3),
    "staged rounds": Staged(RecursiveFeatureMachineRegressor(n_rounds=2), cv=3),
    "staged, labels": Staged(HistGradientBoostingClassifier(max_iter=5), cv=3),
    "stopped": TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=5)),
    "stopped, labels": TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression("path")),
    "stopped trees": TrajectoryEarlyStoppingCV(STAGES),
    "stopped by loo": TrajectoryEarlyStoppingCV(IterativeRidge(), criterion="loo"),
    "blend": TrajectoryEarlyStoppingCV(
        [("lasso", TrajectoryLasso("path", max_iter=5)), ("trees", STAGES)],
        rule="blend",
    ),
    "quantiles of trees": SelfStoppingQuantileRegressor(STAGES, cv=3),
    "default": SelfStoppingRegressor(),
    "default, labels": SelfStoppingClassifier(),
}
SLOW = ("default", "default, labels")
CONTAINERS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "single": lambda X: X.astype(np.float32),
    "sparse": sparse.csr_matrix,
    "frame": lambda X: pd.DataFrame(X, copy=True).add_prefix("x"),
}


def holds_rows(model):
    """Whether a model predicts from rows, and its documentation says so."""
    members = getattr(model, "members_", {}).values()
    kernels = KernelEigenProRegressor | KernelEigenProClassifier
    return isinstance(model, kernels) or any(isinstance(m, kernels) for m in members)


def drawn(name, container="rows", seed=0):
    """A model and arrays to fit it to, all of them new."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    model = clone(MODELS[name])
    if is_classifier(model):
        y = (X[:, 0] + rng.standard_normal(N_ROWS) > 0).astype(int)
    else:
        y = 1.0 + rng.poisson(np.exp(0.3 * X[:, 0]))
    if name == "cox":
        y = np.column_stack([y > 1, y])
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    weights = rng.uniform(0.5, 2, N_ROWS)
    return model, CONTAINERS[container](X), y, weights


def fitted(name, container="rows"):
    model, X, y, weights = drawn(name, container)
    return model.fit(X, y, sample_weight=weights), X, y, weights


def overwrite(*arrays):
    """Change arrays in place, as a caller who reuses them does."""
    for array in arrays:
        if sparse.issparse(array):
            array.data[:] = 7
        elif isinstance(array, pd.DataFrame):
            array.iloc[:, :] = 7
        else:
            array[:] = 1


def said(model, X):
    """Whatever a fitted model says, of rows and of its run."""
    found = {"predict": model.predict(X)}
    for name in ("predict_proba", "decision_function"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    if hasattr(model, "predict_interval"):
        found["interval"] = model.predict_interval(X, 0.8)
    if hasattr(model, "predict_survival_function"):
        found["survival"] = model.predict_survival_function(X, return_array=True)
    run = getattr(model, "estimator_", model)
    for name in fitted_attributes(run):
        value = getattr(run, name)
        if name == "risk_residual_path_":  # factors
            value = np.concatenate([part.ravel() for part in value])
        if isinstance(value, OfOneIterate):
            value = value[run.iteration_]
        if name.endswith("_path_") or name in ("coef_", "dual_coef_"):
            found[name] = np.array(value)
    if hasattr(run, "at_iteration"):
        for t in run.recorded_iterations()[-2:]:
            found[f"predict {t}"] = run.at_iteration(t).predict(X)
    return found


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        if value.dtype.kind in "US":
            np.testing.assert_array_equal(found[name], value, err_msg=name)
            continue
        # Products round as arrays lie in memory.
        close = {"rtol": 1e-10, "atol": 1e-12, "err_msg": name}
        np.testing.assert_allclose(found[name], value, **close)


def rows_in(stored, X):
    """Whether bytes contain values of rows, or of columns, of X."""
    if sparse.issparse(X):
        X = X.toarray()
    X = np.asarray(X)
    for dtype in (np.float64, np.float32):
        values = X.astype(dtype)
        parts = [*values[:, :4], *values[:4].T]
        if any(np.ascontiguousarray(part).tobytes() in stored for part in parts):
            return True
    return False


of_every_model = pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in MODELS],
)


def test_all_estimators_are_here():
    classes = {type(model) for model in MODELS.values()} | {RowSummary, TableEncoder}
    # They record nothing but their rounds.
    classes |= {RecursiveFeatureMachineRegressor, RecursiveFeatureMachineClassifier}
    public = {getattr(skacv, name) for name in skacv.__all__}
    public = {c for c in public if isclass(c) and issubclass(c, BaseEstimator)}
    assert public == classes


@covering(name=[name for name in MODELS if name not in SLOW], container=CONTAINERS)
def test_arrays_that_the_caller_reuses_change_nothing(name, container):
    if container == "sparse" and any(word in name for word in ("tree", "stage", "ble")):
        container = "rows"  # histograms take no sparse matrix
    model, X, y, weights = fitted(name, container)
    _, new, _, _ = drawn(name, container, seed=1)
    expected = said(model, new)
    overwrite(X, y, weights)
    assert_same(said(model, new), expected)
    assert_same(said(pickle.loads(pickle.dumps(model)), new), expected)


@pytest.mark.parametrize("name", ["lasso", "logistic", "stopped", "staged", "blend"])
def test_nor_where_predictions_are_too_many_to_be_kept(name, set_limits):
    set_limits(MOST_KEPT=100, MOST_OF_CHOICE=10)
    expected = said(fitted(name)[0], drawn(name, seed=1)[1]).get("interval")
    set_limits(MEMORY_BYTES=4 * 8 * 100)
    model, X, y, weights = fitted(name)
    stored = pickle.dumps(model)
    assert not rows_in(stored, X)
    overwrite(X, y, weights)
    run = getattr(model, "estimator_", model)
    for one in getattr(run, "members_", {"run": run}).values():
        assert not hasattr(one, "cv_prediction_path_")
    if expected is not None:
        new = drawn(name, seed=1)[1]
        for other in (model, pickle.loads(stored)):
            found = other.predict_interval(new, 0.8)
            np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_what_is_not_kept_is_said(set_limits):
    whole, X, y, weights = fitted("lasso")
    set_limits(MOST_KEPT=100)
    model = clone(whole).fit(X, y, sample_weight=weights)
    for name in ("cv_prediction_path_", "cv_target_", "cv_indices_"):
        with pytest.raises(AttributeError, match="fit it with keep_data=True"):
            getattr(model, name)
    with pytest.raises(ValueError, match=r"iterate 3 .* keep_data=True"):
        model.at_iteration(3).predict_interval(X)
    kept = clone(whole).set_params(keep_data=True).fit(X, y, sample_weight=weights)
    expected = np.array(whole.cv_prediction_path_)
    overwrite(X, y, weights)
    np.testing.assert_allclose(kept.cv_prediction_path_, expected, rtol=1e-10)


@of_every_model
def test_pickles_hold_no_rows(name):
    model, X, _, _ = fitted(name)
    ways = [pickle.dumps, cloudpickle.dumps, lambda m: pickle.dumps(copy.deepcopy(m))]
    assert [rows_in(way(model), X) for way in ways] == [holds_rows(model)] * 3


@pytest.mark.parametrize("name", ["lasso", "logistic", "staged", "kernel"])
def test_pickles_of_a_run_that_may_go_on_hold_no_rows(name):
    model, X, y, weights = drawn(name)
    parts = InParts(model, X, y, sample_weight=weights)
    parts.go_on(3)
    stored = pickle.dumps(model)
    assert rows_in(stored, X) == holds_rows(model)
    again = pickle.loads(stored)
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-10)
    found, expected = again.cv_prediction_path_, model.cv_prediction_path_
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    # The pickle has not ended the run.
    parts.go_on(5)
    whole = clone(model)
    InParts(whole, X, y, sample_weight=weights).go_on(5)
    np.testing.assert_allclose(model.cv_path_, whole.cv_path_, rtol=1e-10)


@pytest.mark.parametrize("name", ["lasso", "logistic", "kernel"])
def test_parts_of_a_run_extend_one_path(name):
    model, X, y, weights = drawn(name)
    attribute = "dual_coef_path_" if name == "kernel" else "coef_path_"
    paths, copies = [], []
    parts = InParts(model, X, y, sample_weight=weights)
    for n_updates in (2, 4, 6):
        parts.go_on(n_updates)
        paths.append(getattr(model, attribute))
        copies.append(paths[-1].copy())
    if name != "kernel":  # stored iterates are a copy
        assert np.shares_memory(*paths[1:])
    for path, expected in zip(paths, copies):
        np.testing.assert_array_equal(path, expected)
    in_one = clone(model)
    InParts(in_one, X, y, sample_weight=weights).go_on(6)
    np.testing.assert_allclose(
        paths[-1], getattr(in_one, attribute), rtol=1e-10, atol=1e-14
    )
    np.testing.assert_allclose(
        model.intercept_path_, in_one.intercept_path_, rtol=1e-10, atol=1e-14
    )


@pytest.mark.parametrize("name", first(1, ["lasso", "ridge", "kernel"]))
def test_rows_that_are_kept_are_copies(name, tmp_path):
    model, X, y, weights = drawn(name)
    params = {} if name == "kernel" else {"keep_data": True}
    model.set_params(loo=20, **params).fit(X, y, sample_weight=weights)
    new = drawn(name, seed=1)[1]
    methods = ("jackknife+", "scaled")
    expected = [model.predict_interval(new, 0.8, method) for method in methods]
    again = clone(model).fit(X, y, sample_weight=weights)
    joblib.dump(again, tmp_path / "model.joblib")
    overwrite(X, y, weights)
    for other in (again, joblib.load(tmp_path / "model.joblib")):
        for method, ends in zip(methods, expected):
            found = other.predict_interval(new, 0.8, method)
            np.testing.assert_allclose(found, ends, rtol=1e-8)


def test_members_in_other_processes_are_those_of_one(set_limits):
    """Where no process could keep the predictions of all iterates in a pickle."""
    X, y = drawn("blend")[1:3]
    one = clone(MODELS["blend"]).set_params(random_state=0).fit(X, y)
    set_limits(MOST_KEPT=1)
    several = clone(one).set_params(n_jobs=2).fit(X, y)
    assert several.weights_ == pytest.approx(one.weights_, abs=1e-6)
    assert several.best_score_corrected_ == pytest.approx(one.best_score_corrected_)
    found, expected = several.predict_interval(X), one.predict_interval(X)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_pickle_has_two_numbers_for_some_thousand_rows():
    """The residuals that intervals take, and the predictions that they are of."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 20))
    y = X[:, 0] + rng.standard_normal(len(X))
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path"), random_state=0)
    model.fit(X, y)
    expected = model.predict_interval(X[:5])
    stored = pickle.dumps(model)
    most_residuals = 2**14
    assert len(stored) < 2 * 8 * most_residuals + 50_000
    new = X[:5].copy()
    overwrite(X, y)
    for other in (model, pickle.loads(stored)):
        np.testing.assert_allclose(other.predict_interval(new), expected, rtol=1e-10)
    # Residuals of the folds, with the width that a refit of each of them has.
    width = np.ptp(expected, axis=1) / 2
    assert 1.6 < width[0] < 1.7  # the 0.95 quantile of the noise is 1.645
