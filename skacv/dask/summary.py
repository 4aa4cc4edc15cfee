"""The summary of rows of a Dask collection: one pass, and no row stays."""

from copy import deepcopy

import dask
import numpy as np
from dask import delayed

from .._estimator.data.row_summary import RowSummary, taken_in
from .rows import FAN, aligned, sizes_of, threads


def summarised(X, y, sample_weight, n_folds, n_sampled):
    """The summary of rows on workers, or wherever their blocks come from.

    Every thread of the workers goes through its share of the blocks, one after the
    other, and keeps a summary; the summaries are merged in a tree.

    Parameters
    ----------
    X, y, sample_weight
        As :class:`~skacv.dask.rows.RowGroups` takes them. Where the sizes of the blocks
        are not known they are computed first, which is a pass of its own.

    Raises
    ------
    ValueError
        On a block that cannot be taken in; the message has its number.
    """
    blocks = aligned(X, y, sample_weight)
    sizes = sizes_of(X, [rows for rows, _, _ in blocks])
    firsts = np.cumsum(sizes) - sizes
    empty = RowSummary(n_folds=n_folds, n_sampled=n_sampled)
    take, merge = delayed(_with_block, pure=False), delayed(merged, pure=False)
    parts, n_parts = [], min(threads(), len(blocks))
    for share in np.array_split(np.arange(len(blocks)), n_parts):
        part = empty
        for number in share:
            part = take(part, int(number), int(firsts[number]), *blocks[number])
        parts.append(part)
    while len(parts) > 1:
        parts = [merge(*parts[k : k + FAN]) for k in range(0, len(parts), FAN)]
    (found,) = dask.compute(parts[0])
    return found


def _with_block(summary, number, first, X, y, weight):
    """A summary with one more block; the one before stays as it was, for a retry."""
    return taken_in(deepcopy(summary), number, X, y, weight, first_row=first)


def merged(*parts):
    """The summary of all parts, which stay as they are, for a retry."""
    found = deepcopy(parts[0])
    for part in parts[1:]:
        found.merge(part)
    return found
