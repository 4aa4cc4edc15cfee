"""Rows in blocks that stay on workers, and sums over them.

A group of blocks is one task that is kept: a round of work is one task for every thread
of the workers, whatever the number of blocks, and one tree of sums. A lost group is
made again from where its blocks come from.
"""

import warnings
from copy import copy
from functools import reduce as folded
from operator import add
from typing import NamedTuple

import dask
import numpy as np
from dask import delayed
from dask.base import get_scheduler
from dask.system import CPU_COUNT
from scipy import sparse

from .._estimator.data.checks import has_missing, sum_duplicates, validate_weights

# Number of parts that one task of the tree combines.
FAN = 8
# Arguments of a round with more entries are a task, which all groups share.
SMALL_ARGUMENT = 1 << 10


class Block(NamedTuple):
    """Consecutive rows in memory; ``first`` is the index of their first among all rows.

    Shapes: X (n, n_columns), array or CSR matrix; y (n,) or (n, n_targets); weight, and
    fold, which holds out every row (n,).
    """

    number: int
    first: int
    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    weight: np.ndarray
    fold: np.ndarray | None = None

    def rows(self, index):
        """The rows of an index, without their folds."""
        parts = (part[index] for part in (self.X, self.y, self.weight))
        return Block(self.number, self.first, *parts)


class RowGroups:
    """X, y and weights as groups of blocks that are kept where they are computed.

    X is a Dask array, whose blocks may be CSR matrices, or a dataframe; sizes of blocks
    may be unknown. y and weights have the same blocks, or are split as X is.

    ``dtype`` of all blocks is float32 or float64; ``n_rounds`` counts the reductions.
    """

    def __init__(self, X, y, sample_weight=None):
        columns = getattr(X, "columns", None)
        self.feature_names = None if columns is None else list(columns)
        self.dtype, self.n_columns = _dtype_and_width(X)
        blocks = align_blocks(X, y, sample_weight)
        self.n_blocks, self.n_rounds = len(blocks), 0
        expected = self.n_columns, self.dtype, self.feature_names
        self._groups = _persist(blocks, expected)
        self.sizes = np.array(self.sum(lambda block: [len(block.y)], combine=add))
        self.n_rows = int(self.sizes.sum())
        self.target_shape = (self.n_rows, *np.shape(y)[1:])
        firsts = (np.cumsum(self.sizes) - self.sizes).tolist()
        with_first = self.map(
            lambda block, firsts: block._replace(first=firsts[block.number]), firsts
        )
        self._groups = with_first._groups

    @property
    def n_groups(self):
        """Number of tasks in a round."""
        return len(self._groups)

    def sum(self, function, *args, combine):
        """Combine ``function(block, *args)`` of all blocks: one round.

        The associative ``combine(a, b)`` is applied in the order of the blocks, in the
        same way in every round.
        """
        self.n_rounds += 1
        args = [_as_task(arg) for arg in args]
        sum_group = delayed(_sum_group, pure=False)
        parts = [sum_group(function, combine, group, *args) for group in self._groups]
        tree = delayed(folded, pure=False)
        while len(parts) > 1:
            parts = [
                tree(combine, parts[k : k + FAN]) for k in range(0, len(parts), FAN)
            ]
        with warnings.catch_warnings():
            # Coefficients of many columns make a large graph. Scattered data would be
            # lost with their worker.
            warnings.filterwarnings("ignore", message="Sending large graph")
            (total,) = dask.compute(parts[0], optimize_graph=False)
        return total

    def map(self, function, *args):
        """These rows as blocks ``function(block, *args)``, on their workers."""
        mapped, args = copy(self), [_as_task(arg) for arg in args]
        map_group = delayed(_map_group, pure=False)
        groups = [map_group(function, group, *args) for group in self._groups]
        mapped._groups = dask.persist(*groups, optimize_graph=False)
        return mapped

    def take(self, rows):
        """The rows of an index as one :class:`Block` in memory."""
        parts = self.sum(_rows_in, np.asarray(rows), combine=add)
        _, _, X, y, weight, _ = zip(*parts)
        X = sparse.vstack(X, "csr") if sparse.issparse(X[0]) else np.concatenate(X)
        return Block(0, 0, X, np.concatenate(y), np.concatenate(weight))


def _rows_in(block, rows):
    index = rows - block.first
    return [block.rows(index[(index >= 0) & (index < len(block.y))])]


def _as_task(arg):
    """A large array as one task of the graph; any other argument unchanged."""
    is_large = isinstance(arg, np.ndarray) and arg.size > SMALL_ARGUMENT
    return delayed(arg, pure=False) if is_large else arg


def _sum_group(function, combine, group, *args):
    # The client checks whether iterates diverge.
    with np.errstate(over="ignore", invalid="ignore"):
        return folded(combine, (function(block, *args) for block in group))


def _map_group(function, group, *args):
    return [function(block, *args) for block in group]


# ------------------------------------------------------------------- groups


def _persist(blocks, expected):
    """As many groups as the workers have threads, in the order of the blocks."""
    workers, n_groups = _workers_of_threads(), n_threads()
    groups, map_group = [], delayed(_map_group, pure=False)
    numbered = [(number, *parts) for number, parts in enumerate(blocks)]
    shares = np.array_split(np.arange(len(blocks)), min(n_groups, len(blocks)))
    for k, share in enumerate(shares):
        # Without a hint a scheduler may put all groups on one worker. Sums do not
        # depend on the worker, so any other may compute a group.
        hint = {"workers": [workers[k]], "allow_other_workers": True} if workers else {}
        with dask.annotate(**hint):
            group = [numbered[i] for i in share]
            groups.append(map_group(validate_block, group, *expected))
    return dask.persist(*groups, optimize_graph=False)


def n_threads():
    """Number of blocks that can be worked on at a time."""
    n_workers = len(_workers_of_threads())
    return n_workers or dask.config.get("num_workers", None) or CPU_COUNT


def _workers_of_threads():
    """The worker of every thread of a distributed cluster; none on other schedulers."""
    client = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler_info"):
        return []
    workers = client.nthreads()
    most = max(workers.values(), default=0)
    # A thread of each worker in turn, so that few blocks are on many workers.
    return [w for k in range(most) for w in sorted(workers) if workers[w] > k]


def validate_block(rows, n_columns, dtype, feature_names):
    """A :class:`Block` of valid rows, from its number, X, y and weights."""
    number, X, y, weight = rows
    where = f"block {number} of X"
    names = None if feature_names is None else list(X.columns)
    if names != feature_names:
        raise ValueError(
            f"The columns of {where} are {names}, and those of the others are "
            f"{feature_names}."
        )
    if sparse.issparse(X):
        X = sum_duplicates(X.tocsr().astype(dtype, copy=False))
    else:
        X = np.ascontiguousarray(X, dtype)
    y = np.asarray(y)
    if y.dtype.kind == "O" and has_missing(y):
        raise ValueError(f"Block {number} of y has missing values.")
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise ValueError(
            f"The shape of {where} is {X.shape}, and the others have {n_columns} "
            "columns."
        )
    if not len(y):
        raise ValueError(
            f"There are no rows in {where}: leave empty blocks out, such as by "
            "repartition or rechunk."
        )
    for name, part in (("y", y), ("sample_weight", weight)):
        if np.ndim(part) and len(part) != X.shape[0]:
            raise ValueError(
                f"There are {X.shape[0]} rows in {where} and {len(part)} in that of "
                f"{name}: both need the same blocks."
            )
    for name, part in (("X", X), ("y", y)):
        if not _is_finite(part):
            raise ValueError(f"Block {number} of {name} contains NaN or infinity.")
    try:
        return Block(number, 0, X, y, validate_weights(weight, len(y)))
    except ValueError as error:
        raise ValueError(f"Block {number}: {error}") from error


def _is_finite(part):
    values = part.data if sparse.issparse(part) else part
    if values.dtype.kind != "f":
        return True
    # A sum without a copy; entry by entry only where it overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


# ------------------------------------------------------------------- blocks


def _dtype_and_width(X):
    """The dtype in which rows are kept, and the number of columns."""
    if len(X.shape) != 2 or not isinstance(X.shape[1], int):
        raise ValueError(
            f"X must be a Dask array or dataframe of rows and columns, got {X}."
        )
    dtypes = X.dtypes if hasattr(X, "columns") else [X.dtype]
    # Nullable numbers of pandas have a dtype of NumPy; strings have none.
    dtypes = [getattr(dtype, "numpy_dtype", dtype) for dtype in dtypes]
    are_numpy = all(isinstance(dtype, np.dtype) for dtype in dtypes)
    dtype = np.result_type(*dtypes) if are_numpy else np.dtype(object)
    if dtype.kind not in "fiub":
        raise ValueError(
            f"X must be numbers, got columns of {dtype}: encode them first."
        )
    return np.dtype(np.float32 if dtype == np.float32 else np.float64), X.shape[1]


def align_blocks(X, y, sample_weight):
    """Blocks of rows as delayed (X, y, weight), the last None without weights."""
    rows = delay_rows(X)
    columns = [rows]
    for name, part in (("y", y), ("sample_weight", sample_weight)):
        parts = [None] * len(rows) if part is None else _blocks_as(X, rows, part, name)
        if len(parts) != len(rows):
            raise ValueError(
                f"X has {len(rows)} blocks of rows and {name} has {len(parts)}: both "
                "need the same."
            )
        columns.append(parts)
    return list(zip(*columns))


def _blocks_as(X, rows, part, name):
    """Blocks of y or of weights, for the same rows as the blocks of X."""
    if not dask.is_dask_collection(part):
        if np.ndim(part) == 0:  # a weight for all rows
            return [part] * len(rows)
        part, sizes = np.asarray(part), sizes_of(X, rows)
        if len(part) != sum(sizes):
            raise _length_mismatch(sum(sizes), len(part), name)
        return [delayed(p) for p in np.split(part, np.cumsum(sizes)[:-1])]
    if hasattr(part, "chunks"):
        if hasattr(X, "chunks") and not np.isnan([*X.chunks[0], *part.chunks[0]]).any():
            if len(part) != len(X):
                raise _length_mismatch(len(X), len(part), name)
            part = part.rechunk({0: X.chunks[0]})
    return delay_rows(part)


def delay_rows(collection):
    """Delayed blocks of rows of a collection, with all columns."""
    if hasattr(collection, "chunks") and collection.ndim > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def sizes_of(X, rows):
    """Number of rows of every block, computed if the collection does not have it."""
    if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any():
        return list(X.chunks[0])
    return list(dask.compute(*(part.shape[0] for part in rows)))


def _length_mismatch(n_rows, length, name):
    return ValueError(f"X has {n_rows} rows and {name} has {length}.")
