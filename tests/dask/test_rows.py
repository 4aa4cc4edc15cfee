"""Blocks of rows against the same rows in memory."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.runs import assert_same_summary

pytest.importorskip("pyarrow", reason="needs skacv[dask]")

import dask
import dask.array as da
import dask.dataframe as dd
from dask.sizeof import sizeof

from skacv import RowSummary
from skacv.dask.rows import RowGroups, validate_block
from skacv.dask.summary import summarise

from .conftest import kill_worker

N, P = 103, 4


def moments(block, coef):
    """Sums that see every row, its place and its weight."""
    y, weight = block.y, block.weight
    place = block.first + np.arange(len(y)) + block.number
    weight = np.ones(len(y)) if weight is None else weight
    fitted = block.X @ coef[:P]
    return np.array([(weight * (y - fitted) ** 2) @ place, weight.sum(), len(y)])


def added(one, other):
    return one + other


def numbers(block):
    return [(block.number, block.first, type(block.X))]


@pytest.fixture
def arrays(rng):
    return rng.standard_normal((N, P)), rng.standard_normal(N), rng.random(N)


SIZES = (40, 13, 50)


def expected(X, y, weight, coef, sizes=SIZES):
    place = np.arange(N) + np.repeat(np.arange(len(sizes)), sizes)
    return np.array([(weight * (y - X @ coef[:P]) ** 2) @ place, weight.sum(), N])


def test_sums_are_those_of_the_rows(arrays, scheduler, rng):
    X, y, weight = arrays
    coef = rng.standard_normal(2000)
    groups = RowGroups(
        da.from_array(X, chunks=(SIZES, 3)),
        da.from_array(y, chunks=50),
        da.from_array(weight, chunks=11),
    )
    found = groups.sum(moments, coef, combine=added)
    np.testing.assert_allclose(found, expected(X, y, weight, coef))
    assert groups.n_groups == 2
    assert groups.sizes.tolist() == list(SIZES)
    assert (groups.n_rows, groups.n_columns) == (N, P)


def test_blocks_are_in_order(arrays, scheduler):
    X, y, _ = arrays
    groups = RowGroups(da.from_array(X, chunks=(10, P)), da.from_array(y, chunks=10))
    found = groups.sum(numbers, combine=added)
    assert [each[0] for each in found] == list(range(11))
    assert [each[1] for each in found] == list(range(0, N, 10))


def test_frames_have_unknown_sizes(arrays, scheduler, rng):
    X, y, _ = arrays
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abcd"))
    frame["y"] = y
    parts = dd.from_pandas(frame, npartitions=3)
    groups = RowGroups(parts[list("abcd")], parts["y"])
    assert groups.feature_names == list("abcd")
    assert groups.dtype == np.float32
    coef = rng.standard_normal(P)
    found = groups.sum(moments, coef, combine=added)
    weight = np.ones(N)
    answer = expected(X, y, weight, coef, tuple(groups.sizes))
    np.testing.assert_allclose(found, answer, rtol=1e-5)
    unknown = parts[list("abcd")].to_dask_array()
    again = RowGroups(unknown, parts["y"].to_dask_array())
    np.testing.assert_allclose(again.sum(moments, coef, combine=added), found)
    # y of NumPy is cut as X is.
    mixed = RowGroups(unknown, y)
    np.testing.assert_allclose(mixed.sum(moments, coef, combine=added), found)


def test_sparse_blocks_stay_sparse(arrays, scheduler):
    X, y, _ = arrays
    blocks = da.from_array(X, chunks=(40, P)).map_blocks(sparse.csr_matrix)
    groups = RowGroups(blocks, da.from_array(y, chunks=40))
    found = groups.sum(numbers, combine=added)
    assert {each[2] for each in found} == {sparse.csr_matrix}


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix])
def test_entries_that_are_stored_twice_are_summed(arrays, kind):
    X, y, _ = arrays

    def halves(block):
        once = kind(block)
        parts = (
            np.repeat(once.data / 2, 2),
            np.repeat(once.indices, 2),
            once.indptr * 2,
        )
        return kind(parts, shape=block.shape)

    blocks = da.from_array(X, chunks=(40, P)).map_blocks(halves)
    summary = RowSummary(n_sampled=2).fit(X, y)
    y = da.from_array(y, chunks=40)
    found = RowGroups(blocks, y).take(np.arange(len(X))).X
    np.testing.assert_array_equal(found.toarray(), X)
    assert found.nnz == np.count_nonzero(X)
    twice = summarise(blocks, y, None, summary.n_folds, summary.n_sampled)
    assert_same_summary(twice, summary)


def test_a_killed_worker_changes_nothing(arrays, client, rng):
    X, y, _ = arrays
    coef = rng.standard_normal(P)
    groups = RowGroups(da.from_array(X, chunks=(10, P)), da.from_array(y, chunks=10))
    before = groups.sum(moments, coef, combine=added)
    kill_worker(client)
    after = groups.sum(moments, coef, combine=added)
    np.testing.assert_allclose(after, before, rtol=1e-13)


def spoilt(value):
    def spoil(block, block_info=None):
        block = block.copy()
        if block_info[0]["chunk-location"][0] == 1:
            block[-1] = value
        return block

    return spoil


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("X", np.nan, "Block 1 of X contains NaN or infinity"),
        ("y", np.inf, "Block 1 of y contains NaN or infinity"),
        ("weight", -1.0, "Block 1: Negative values in sample_weight"),
    ],
)
def test_errors_name_the_block(arrays, scheduler, name, value, message):
    parts = {
        key: da.from_array(part, chunks=(40, P)[: part.ndim])
        for key, part in zip(("X", "y", "weight"), arrays)
    }
    parts[name] = parts[name].map_blocks(spoilt(value), dtype=float)
    with pytest.raises(ValueError, match=message):
        RowGroups(parts["X"], parts["y"], parts["weight"])


def delayed_blocks(shapes):
    blocks = [
        da.from_delayed(dask.delayed(np.ones)(s), (np.nan, P), float) for s in shapes
    ]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((10, 3), r"The shape of block 1 of X is \(10, 3\), and the others have 4 col"),
        ((0, P), "There are no rows in block 1 of X"),
        ((9, P), "There are 9 rows in block 1 of X and 10 in that of y"),
    ],
)
def test_blocks_of_other_shapes(shape, message, scheduler):
    X = delayed_blocks([(10, P), shape, (10, P)])
    y = delayed_blocks([(10, P), (shape[0] and 10, P), (10, P)])[:, 0]
    with pytest.raises(ValueError, match=message):
        RowGroups(X, y)


def test_lengths_that_differ():
    X, y = da.ones((20, 2), chunks=5), da.ones(19, chunks=5)
    with pytest.raises(ValueError, match="X has 20 rows and y has 19"):
        RowGroups(X, y)
    with pytest.raises(ValueError, match="X has 20 rows and sample_weight has 3"):
        RowGroups(X, da.ones(20, chunks=5), np.ones(3))


def test_what_is_no_matrix_of_numbers():
    with pytest.raises(ValueError, match="rows and columns"):
        RowGroups(da.ones(20), da.ones(20))
    frame = dd.from_pandas(pd.DataFrame({"a": ["u", "v"]}), npartitions=1)
    with pytest.raises(ValueError, match="X must be numbers"):
        RowGroups(frame, da.ones(2))


def test_missing_labels_of_a_frame():
    frame = pd.DataFrame({"a": np.arange(6.0), "y": ["u", "v", "u", None, "v", "u"]})
    parts = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(ValueError, match="Block 1 of y has missing values"):
        RowGroups(parts[["a"]], parts["y"])


def test_frames_with_other_columns():
    """Dask looks for it as well, but not wherever frames come from."""
    names, y = ["a", "b"], np.ones(3)
    frame = pd.DataFrame(np.ones((3, 2)), columns=names)
    expected = 2, np.dtype(float), names
    assert validate_block((1, frame, y, None), *expected).X.shape == (3, 2)
    with pytest.raises(ValueError, match=r"columns of block 1 of X are \['b', 'a'\]"):
        validate_block((1, frame[["b", "a"]], y, None), *expected)


def test_some_rows(arrays, scheduler):
    X, y, weight = arrays
    chunks = [da.from_array(part, chunks=(40, P)[: part.ndim]) for part in arrays]
    rows = np.array([0, 39, 40, 77, 102])
    found = RowGroups(*chunks).take(rows)
    np.testing.assert_array_equal(found.X, X[rows])
    np.testing.assert_array_equal(found.y, y[rows])
    np.testing.assert_array_equal(found.weight, weight[rows])


def doubled(block, factor):
    return block._replace(y=factor * block.y)


def total(block):
    return block.y.sum()


def test_targets_are_coded_in_their_place(arrays, scheduler):
    X, y, _ = arrays
    groups = RowGroups(da.from_array(X, chunks=(40, P)), da.from_array(y, chunks=40))
    encoded = groups.map(doubled, 2.0)
    np.testing.assert_allclose(encoded.sum(total, combine=added), 2 * y.sum())
    np.testing.assert_allclose(groups.sum(total, combine=added), y.sum())


def held_bytes(dask_worker):
    """What is kept on a worker."""
    data = dask_worker.data
    return sum(sizeof(data[key]) for key in list(data))


def made(number, n_rows, n_columns):
    return np.random.default_rng(number).standard_normal((n_rows, n_columns))


def test_a_worker_holds_its_own_blocks(client):
    """Once, whatever is coded and summed; blocks of a lost worker are made again."""
    n_rows, n_columns, n_blocks = 500, 100, 8
    parts = [
        da.from_delayed(
            dask.delayed(made)(number, n_rows, n_columns), (n_rows, n_columns), float
        )
        for number in range(n_blocks)
    ]
    X = da.concatenate(parts)
    groups = RowGroups(X, X[:, 0]).map(doubled, 2.0)
    groups.sum(total, combine=added)
    own = 8 * n_rows * n_columns * n_blocks / 2
    held = client.run(held_bytes)
    assert len(held) == 2
    assert all(0.9 * own < size < 1.2 * own for size in held.values())
