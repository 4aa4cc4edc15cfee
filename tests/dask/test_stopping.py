"""TrajectoryEarlyStoppingCV on Dask collections; what is predicted, block by block."""

import numpy as np
import pytest
from sklearn.base import clone

pytest.importorskip("pyarrow", reason="needs skacv[dask]")

import dask.array as da

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.dask.rows import RowGroups
from tests.runs import InParts, objects_held_by, runs_in_memory

from .collections import assert_same_run, blocks

N, P = 300, 15
pytestmark = pytest.mark.usefixtures("on_workers")


@pytest.fixture
def X(rng):
    return rng.standard_normal((N, P))


@pytest.fixture
def y(X, rng):
    return X[:, :4].sum(axis=1) + 5 + 2 * rng.standard_normal(N)


@pytest.mark.parametrize(
    "estimator",
    [
        TrajectoryLasso(0.02, max_iter=25, cv=4),
        TrajectoryLasso("path", max_iter=3, cv=4),
        TrajectoryHuberRegressor(0.1, max_iter=25, cv=4),
        TrajectoryLogisticRegression(10.0, max_iter=25, cv=4),
    ],
    ids=repr,
)
@pytest.mark.parametrize("patience", ["auto", 5])
def test_the_same_iterate_is_chosen(estimator, patience, X, y):
    if hasattr(estimator, "C"):
        y = (y > y.mean()).astype(int)
    stopping = TrajectoryEarlyStoppingCV(estimator, patience=patience)
    found = clone(stopping).fit(blocks(X), blocks(y))
    expected = stopping.fit(X, y)
    assert found.criterion_ == "cv"
    assert found.best_iter_ == expected.best_iter_
    np.testing.assert_allclose(found.best_score_, expected.best_score_)
    np.testing.assert_allclose(found.path_, expected.path_)
    np.testing.assert_allclose(found.coef_, expected.coef_)
    assert not runs_in_memory()
    predicted = found.predict(blocks(X))
    assert isinstance(predicted, da.Array)
    np.testing.assert_allclose(predicted.compute(), expected.predict(X))


def test_folds_that_nobody_has_named(X, y):
    """They are drawn at random, also where rows are sorted by the target."""
    order = np.argsort(y)
    stopping = TrajectoryEarlyStoppingCV(IterativeRidge(0.0, max_iter=25))
    found = stopping.fit(blocks(X[order]), blocks(y[order]))
    in_memory = clone(stopping.set_params(criterion="cv")).fit(X[order], y[order])
    np.testing.assert_allclose(found.best_score_, in_memory.best_score_, rtol=0.1)


def test_folds_are_as_many_as_the_search_asks_for(X, y):
    """Also where moments of the rows are enough, of which a summary is made first."""
    lasso = TrajectoryLasso("path", max_iter=3)
    found = TrajectoryEarlyStoppingCV(lasso, cv=3).fit(blocks(X), blocks(y))
    by_fold = found.estimator_.cv_fold_path_
    alone = clone(lasso).set_params(cv=3).fit(blocks(X), blocks(y))
    np.testing.assert_allclose(by_fold, alone.cv_fold_path_[: len(by_fold)])


def test_weights(X, y, rng):
    weights = rng.random(N)
    stopping = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.02, max_iter=15, cv=3))
    found = clone(stopping).fit(blocks(X), blocks(y), sample_weight=blocks(weights))
    expected = stopping.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(found.path_, expected.path_)
    unnamed = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.02, max_iter=15))
    unnamed.fit(blocks(X), blocks(y), sample_weight=blocks(weights))
    np.testing.assert_allclose(unnamed.best_score_, expected.best_score_, rtol=0.1)


def test_judged_by_some_rows(X, y):
    estimator = TrajectoryLasso(0.02, max_iter=15, loo=40, random_state=0)
    stopping = TrajectoryEarlyStoppingCV(estimator, criterion="loo")
    found = clone(stopping).fit(blocks(X), blocks(y))
    expected = stopping.fit(X, y)
    np.testing.assert_allclose(found.path_, expected.path_)
    np.testing.assert_allclose(found.best_score_se_, expected.best_score_se_)


def test_several_members_and_a_grid(X, y):
    members = [("lasso", TrajectoryLasso(max_iter=20)), ("ridge", IterativeRidge())]
    grid = {"lasso__alpha": [0.01, 10.0]}
    stopping = TrajectoryEarlyStoppingCV(members, param_grid=grid, n_jobs=2)
    found = stopping.fit(blocks(X), blocks(y))
    assert sorted(found.member_paths_) == ["lasso", "ridge"]
    assert len(found.results_["params"]) == 3
    # Of single rows nothing is known.
    with pytest.raises(
        AttributeError, match="losses of held-out rows are not available"
    ):
        _ = found.best_score_corrected_


def test_the_default_members(X, y):
    stopping = TrajectoryEarlyStoppingCV(task="regression", random_state=0)
    found = stopping.fit(blocks(X), blocks(y))
    assert len(found.member_paths_) > 1
    assert found.best_score_ < 1.3 * 4


def test_stages_go_on_with_a_run(X, y):
    estimator = TrajectoryLasso(0.02, max_iter=30, cv=3, risk=False, loo=False)
    staged = clone(estimator)
    parts = InParts(staged, blocks(X), blocks(y))
    assert not parts.go_on(7)
    held = objects_held_by(parts.run)
    (groups,) = [one for one in held if isinstance(one, RowGroups)]
    rounds = groups.n_rounds
    assert not parts.go_on(12)
    assert staged.n_iter_ == 12
    # One for each update, one for what they cost, one for the folds' own rows.
    assert groups.n_rounds == rounds + 5 + 2
    assert parts.go_on(30)
    assert_same_run(staged, estimator.fit(X, y), rtol=1e-9)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_classifiers_predict_block_by_block(method, X, y):
    labels = np.digitize(y, np.quantile(y, [0.3, 0.6]))
    model = TrajectoryLogisticRegression(max_iter=5).fit(X, labels)
    parts = blocks(X)
    found = getattr(model, method)(parts)
    assert isinstance(found, da.Array)
    assert found.chunks[0] == parts.chunks[0]
    np.testing.assert_allclose(found.compute(), getattr(model, method)(X))
    staged = getattr(model, f"staged_{method}")
    for own, other in zip(staged(parts), staged(X), strict=True):
        assert own.shape == other.shape
        np.testing.assert_allclose(own.compute(), other)


def test_regressors_predict_block_by_block(X, y):
    targets = np.stack([y, -y], axis=1)
    model = IterativeRidge(max_iter=5).fit(X, targets)
    for own, other in zip(model.staged_predict(blocks(X)), model.staged_predict(X)):
        assert isinstance(own, da.Array)
        np.testing.assert_allclose(own.compute(), other)
    # What is sent to the workers has no paths.
    graph = dict(model.predict(blocks(X)).__dask_graph__())
    assert all("coef_path_" not in str(vars(v)) for v in graph.values() if is_model(v))


def is_model(value):
    return isinstance(value, IterativeRidge)


def test_kernel_machines_predict_block_by_block(X, y):
    from skacv.kernel import KernelEigenProRegressor

    model = KernelEigenProRegressor(max_iter=3).fit(X, y)
    found = model.predict(blocks(X))
    assert isinstance(found, da.Array)
    np.testing.assert_allclose(found.compute(), model.predict(X))
