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

from .._estimator.data.checks import has_missing, summed, validated_weights

# So many parts are combined in one task of the tree.
FAN = 8
# Arguments of a round with more entries are one task, which every group takes.
SMALL = 1 << 10


class Block(NamedTuple):
    """Some rows, in memory where they are worked on.

    Attributes
    ----------
    number : int
        Number of the block.
    first : int
        Number of its first row among all rows.
    X : {ndarray, CSR matrix} of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    weight : ndarray of shape (n_rows,)
    fold : ndarray of int, shape (n_rows,), or None
        Fold that holds out every row.
    """

    number: int
    first: int
    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    weight: np.ndarray
    fold: np.ndarray | None = None

    def part(self, places):
        """Some of its rows, without their folds."""
        parts = (part[places] for part in (self.X, self.y, self.weight))
        return Block(self.number, self.first, *parts)


class RowGroups:
    """X, y and weights as groups of blocks that are kept where they are computed.

    Parameters
    ----------
    X : dask array or dataframe of shape (n_rows, n_columns)
        Its columns become one chunk. Sizes of blocks may be unknown. Blocks may be CSR
        matrices.
    y : dask array, dataframe or series, or ndarray
        In the same blocks, or brought into those of X.
    sample_weight : like y, of shape (n_rows,), default=None

    Attributes
    ----------
    sizes : ndarray of int
        Rows of every block.
    target_shape : tuple of int
        That of y.
    dtype : dtype
        That of X in every block: float32, else float64.
    feature_names : list of str or None
    n_rounds : int
        Reductions so far.

    Raises
    ------
    ValueError
        If blocks do not fit together, or hold what is no finite number, or no row: the
        message names the block.
    """

    def __init__(self, X, y, sample_weight=None):
        columns = getattr(X, "columns", None)
        self.feature_names = None if columns is None else list(columns)
        self.dtype, self.n_columns = _kind_of(X)
        blocks = aligned(X, y, sample_weight)
        self.n_blocks, self.n_rounds = len(blocks), 0
        made = (self.n_columns, self.dtype, self.feature_names)
        self._groups = _persisted(blocks, made)
        self.sizes = np.array(self.sum(_size, combine=add))
        self.n_rows = int(self.sizes.sum())
        self.target_shape = (self.n_rows, *np.shape(y)[1:])
        firsts = np.cumsum(self.sizes) - self.sizes
        self._groups = self.encoded(_placed, firsts)._groups

    @property
    def n_groups(self):
        """How many tasks a round has."""
        return len(self._groups)

    def sum(self, function, *args, combine):
        """Work on every block, and combine what comes of it: one round.

        Parameters
        ----------
        function : callable
            ``function(block, *args)`` of one :class:`Block`.
        *args : object
            Passed on; a large array goes to every worker once.
        combine : callable
            ``combine(a, b)``, associative. Blocks are combined in their order, in the
            same way in every round, wherever they are.

        Returns
        -------
        object
        """
        self.n_rounds += 1
        args = [_once(arg) for arg in args]
        over_group = delayed(_over_group, pure=False)
        parts = [over_group(function, combine, g, *args) for g in self._groups]
        tree = delayed(folded, pure=False)
        while len(parts) > 1:
            parts = [
                tree(combine, parts[k : k + FAN]) for k in range(0, len(parts), FAN)
            ]
        with warnings.catch_warnings():
            # Coefficients of many columns are a large graph, and nothing else would do:
            # what a client has scattered is lost with its worker.
            warnings.filterwarnings("ignore", message="Sending large graph")
            (found,) = dask.compute(parts[0], optimize_graph=False)
        return found

    def encoded(self, function, *args):
        """The same rows with other targets, weights or folds, kept in their place.

        Parameters
        ----------
        function : callable
            ``function(block, *args)`` gives another :class:`Block`, of the same X.

        Returns
        -------
        RowGroups
        """
        found, args = copy(self), [_once(arg) for arg in args]
        each = delayed(_each, pure=False)
        groups = [each(function, group, *args) for group in self._groups]
        found._groups = dask.persist(*groups, optimize_graph=False)
        return found

    def take(self, rows):
        """Some rows, brought together.

        Returns
        -------
        Block
            Number 0, of these rows alone.
        """
        parts = self.sum(_taken, np.asarray(rows), combine=add)
        _, _, X, y, weight, _ = zip(*parts)
        X = sparse.vstack(X, "csr") if sparse.issparse(X[0]) else np.concatenate(X)
        return Block(0, 0, X, np.concatenate(y), np.concatenate(weight))


def _size(block):
    return [len(block.y)]


def _placed(block, firsts):
    """A block that knows the number of its first row."""
    return block._replace(first=int(firsts[block.number]))


def _taken(block, rows):
    places = rows - block.first
    return [block.part(places[(places >= 0) & (places < len(block.y))])]


def _once(arg):
    """A large array as one task of the graph; all else as it is."""
    is_large = isinstance(arg, np.ndarray) and arg.size > SMALL
    return delayed(arg, pure=False) if is_large else arg


def _over_group(function, combine, group, *args):
    """A function of a block, combined over the blocks of a group one by one."""
    # Iterates that diverge are found by the client.
    with np.errstate(over="ignore", invalid="ignore"):
        return folded(combine, (function(block, *args) for block in group))


def _each(function, group, *args):
    return [function(block, *args) for block in group]


# ------------------------------------------------------------------- groups


def _persisted(blocks, made):
    """As many groups as the workers have threads, in the order of the blocks."""
    workers, n_groups = _threads_of_workers(), threads()
    groups, join = [], delayed(_group, pure=False)
    numbered = list(enumerate(blocks))
    shares = np.array_split(np.arange(len(blocks)), min(n_groups, len(blocks)))
    for k, share in enumerate(shares):
        # Left alone, a scheduler may put all groups on one worker. Sums are the same
        # wherever a group is, so another worker may take it.
        hint = {"workers": [workers[k]], "allow_other_workers": True} if workers else {}
        with dask.annotate(**hint):
            groups.append(join(made, [numbered[i] for i in share]))
    return dask.persist(*groups, optimize_graph=False)


def threads():
    """How many blocks can be worked on at a time."""
    n_workers = len(_threads_of_workers())
    return n_workers or dask.config.get("num_workers", None) or CPU_COUNT


def _threads_of_workers():
    """The worker of every thread of a distributed cluster; none on other schedulers."""
    client = getattr(get_scheduler(), "__self__", None)
    if not hasattr(client, "scheduler_info"):
        return []
    workers = client.nthreads()
    most = max(workers.values(), default=0)
    # A thread of each worker in turn, so that few blocks are on many workers.
    return [w for k in range(most) for w in sorted(workers) if workers[w] > k]


def _group(made, numbered):
    return [_block(number, *parts, *made) for number, parts in numbered]


def _block(number, X, y, weight, n_columns, dtype, feature_names):
    """Validated rows; where they are none, one sentence with the block's number."""
    where = f"block {number} of X"
    names = None if feature_names is None else list(X.columns)
    if names != feature_names:
        raise ValueError(
            f"The columns of {where} are {names}, and those of the others are "
            f"{feature_names}."
        )
    X, y = _rows(X, dtype), np.asarray(y)
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
        return Block(number, 0, X, y, validated_weights(weight, len(y)))
    except ValueError as error:
        raise ValueError(f"Block {number}: {error}") from error


def _rows(X, dtype):
    """An array or a CSR matrix of one dtype, not copied where it is one."""
    if sparse.issparse(X):
        return summed(X.tocsr().astype(dtype, copy=False))
    return np.ascontiguousarray(X, dtype)


def _is_finite(part):
    values = part.data if sparse.issparse(part) else part
    if values.dtype.kind != "f":
        return True
    # A sum without a copy; entry by entry only where it overflows.
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()) or np.isfinite(values).all())


# ------------------------------------------------------------------- blocks


def _kind_of(X):
    """The dtype in which rows are kept, and how many columns there are."""
    if len(X.shape) != 2 or not isinstance(X.shape[1], int):
        raise ValueError(
            f"X must be a Dask array or dataframe of rows and columns, got {X}."
        )
    kinds = X.dtypes if hasattr(X, "columns") else [X.dtype]
    # Nullable numbers of pandas say which dtype of NumPy they are; strings say none.
    kinds = [getattr(kind, "numpy_dtype", kind) for kind in kinds]
    is_known = all(isinstance(kind, np.dtype) for kind in kinds)
    dtype = np.result_type(*kinds) if is_known else np.dtype(object)
    if dtype.kind not in "fiub":
        raise ValueError(
            f"X must be numbers, got columns of {dtype}: encode them first."
        )
    return np.dtype(np.float32 if dtype == np.float32 else np.float64), X.shape[1]


def aligned(X, y, sample_weight):
    """Blocks of rows as delayed (X, y, weight), the last None without weights."""
    rows = delayed_rows(X)
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
    """The blocks of y or of weights that belong to those of X."""
    if not dask.is_dask_collection(part):
        if np.ndim(part) == 0:  # a weight for all rows
            return [part] * len(rows)
        part, sizes = np.asarray(part), sizes_of(X, rows)
        if len(part) != sum(sizes):
            raise _other_length(sum(sizes), len(part), name)
        return [delayed(p) for p in np.split(part, np.cumsum(sizes)[:-1])]
    if hasattr(part, "chunks"):
        if hasattr(X, "chunks") and not np.isnan([*X.chunks[0], *part.chunks[0]]).any():
            if len(part) != len(X):
                raise _other_length(len(X), len(part), name)
            part = part.rechunk({0: X.chunks[0]})
    return delayed_rows(part)


def delayed_rows(collection):
    """Blocks of rows of a collection, delayed, each of all columns."""
    if hasattr(collection, "chunks") and collection.ndim > 1:
        collection = collection.rechunk({1: -1})
    return list(np.ravel(collection.to_delayed()))


def sizes_of(X, rows):
    """Rows of every block, computed where they are not known."""
    if hasattr(X, "chunks") and not np.isnan(X.chunks[0]).any():
        return list(X.chunks[0])
    return list(dask.compute(*(part.shape[0] for part in rows)))


def _other_length(n_rows, n_other, name):
    return ValueError(f"X has {n_rows} rows and {name} has {n_other}.")
