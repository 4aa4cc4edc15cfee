"""One pass over Dask collections: moments and a sample, whatever the blocks."""

import os
import signal

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.runs import assert_same_summary

pytest.importorskip("pyarrow", reason="needs skacv[dask]")

import dask.array as da
import dask.dataframe as dd
from dask import delayed

from skacv import (
    IterativeRidge,
    RowSummary,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.dask.summary import summarise

N_ROWS, N_COLUMNS = 900, 5
PATHS = "coef_path_", "train_path_", "risk_path_", "cv_path_", "loo_path_"


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, N_COLUMNS)) + 1
    return X, X[:, 0] - X[:, 1] + rng.standard_normal(N_ROWS) + 3


def lasso(**params):
    return TrajectoryLasso("path", max_iter=5, cv=4, risk=True, loo=30, **params)


def assert_same_paths(found, expected):
    for name in PATHS:
        own, others = getattr(found, name), getattr(expected, name)
        np.testing.assert_allclose(own, others, rtol=1e-9, atol=1e-10, err_msg=name)


@pytest.mark.parametrize("chunks", [(900, 5), (128, 2), ((1, 600, 299), 5)])
def test_a_fit_does_not_depend_on_the_blocks(scheduler, chunks, data):
    X, y = data
    expected = lasso(random_state=0).fit(RowSummary(n_folds=4).fit(X, y))
    collections = da.from_array(X, chunks), da.from_array(y, 250)
    assert_same_paths(lasso(random_state=0).fit(*collections), expected)


def test_dataframes_with_names_and_weights(data):
    X, y = data
    weights = np.arange(N_ROWS) % 3
    names = [f"column {k}" for k in range(N_COLUMNS)]
    frame = pd.DataFrame(X, columns=names).assign(target=y, weight=weights)
    rows = dd.from_pandas(frame, npartitions=7)
    summary = RowSummary(n_folds=4).fit(frame[names], y, weights)
    expected = lasso(random_state=0).fit(summary)
    found = lasso(random_state=0).fit(rows[names], rows["target"], rows["weight"])
    assert_same_paths(found, expected)
    assert list(found.feature_names_in_) == names
    predicted = found.predict(rows[names])
    np.testing.assert_allclose(predicted.compute(), expected.predict(frame[names]))


def test_sparse_blocks(data):
    X, y = data
    X = np.where(X > 1, X, 0)
    rows = da.from_array(X, (200, 5)).map_blocks(sparse.csr_matrix)
    expected = lasso(random_state=0).fit(RowSummary(n_folds=4).fit(X, y))
    assert_same_paths(lasso(random_state=0).fit(rows, da.from_array(y, 200)), expected)


def test_stopping_goes_through_the_rows_once(data):
    X, y = data
    taken = []

    def noted(block):
        taken.append(len(block))
        return block

    rows = da.from_array(X, (300, 5)).map_blocks(noted, dtype=X.dtype, meta=X[:0])
    members = [("lasso", TrajectoryLasso("path")), ("ridge", IterativeRidge())]
    model = TrajectoryEarlyStoppingCV(members, patience=5)
    model.fit(rows, da.from_array(y, 300))
    assert taken == [300] * 3
    expected = TrajectoryEarlyStoppingCV(members, patience=5)
    expected.fit(RowSummary().fit(X, y))
    for name, path in expected.member_paths_.items():
        np.testing.assert_allclose(model.member_paths_[name], path, rtol=1e-9)


def test_the_portfolio_has_to_know_its_task(data):
    X, y = (da.from_array(each, 300) for each in data)
    model = TrajectoryEarlyStoppingCV(task="regression", random_state=0).fit(X, y)
    assert sorted(model.member_paths_) == ["lasso", "least squares"]
    with pytest.raises(ValueError, match="set task='regression'"):
        TrajectoryEarlyStoppingCV().fit(X, y)


def test_blocks_that_cannot_be_taken_are_named(data):
    X, y = data
    X[700, 2] = np.nan
    with pytest.raises(ValueError, match="Block 2: Input X contains NaN"):
        lasso().fit(da.from_array(X, (300, 5)), da.from_array(y, 300))


def test_a_worker_that_is_killed(client, data, tmp_path):
    """Its share is summed up again: no row is lost, or taken in twice."""
    X, y = data
    marker = tmp_path / "killed"

    def dying_once(block):
        if block[0, 0] == X[600, 0] and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    rows = da.from_array(X, (100, 5)).map_blocks(dying_once, dtype=X.dtype, meta=X[:0])
    found = summarise(rows, da.from_array(y, 100), None, n_folds=4, n_sampled=50)
    assert marker.exists()
    expected = RowSummary(n_folds=4, n_sampled=50).fit(X, y)
    assert found.n_samples_seen_ == N_ROWS
    np.testing.assert_array_equal(found.sampled_indices_, expected.sampled_indices_)
    assert_same_summary(found, expected)


def test_blocks_of_unknown_size(data):
    X, y = data
    size = delayed(lambda k: X[k : k + 300])
    rows = da.concatenate(
        [da.from_delayed(size(k), (np.nan, N_COLUMNS), X.dtype) for k in (0, 300, 600)]
    )
    found = summarise(rows, da.from_array(y, 300), None, n_folds=4, n_sampled=50)
    expected = RowSummary(n_folds=4, n_sampled=50).fit(X, y)
    np.testing.assert_array_equal(found.sampled_indices_, expected.sampled_indices_)
