"""The summary of rows of a Dask collection: one pass, and no row stays."""

from copy import deepcopy

import dask
import numpy as np
from dask import delayed

from .._estimator.data.row_summary import RowSummary, with_block
from .rows import FAN, aligned, sizes_of, threads


def summarised(X, y, sample_weight, n_folds, n_sampled):
    """The summary of rows on workers, or wherever their blocks come from.

    Every thread of the workers summarises its share of the blocks, one after the other;
    the summaries are merged in a tree. Unknown sizes of blocks are computed first.
    """
    blocks = aligned(X, y, sample_weight)
    sizes = sizes_of(X, [rows for rows, _, _ in blocks])
    firsts = np.cumsum(sizes) - sizes
    empty = RowSummary(n_folds=n_folds, n_sampled=n_sampled)
    take, merge = delayed(_with_block, pure=False), delayed(merged_summary, pure=False)
    parts, n_parts = [], min(threads(), len(blocks))
    for share in np.array_split(np.arange(len(blocks)), n_parts):
        part = empty
        for number in share:
            part = take(part, int(number), int(firsts[number]), *blocks[number])
        parts.append(part)
    while len(parts) > 1:
        parts = [merge(*parts[k : k + FAN]) for k in range(0, len(parts), FAN)]
    (summary,) = dask.compute(parts[0])
    return summary


def _with_block(summary, number, first, X, y, weight):
    """A copy of a summary with one more block, so that a task can be retried."""
    return with_block(deepcopy(summary), number, X, y, weight, first_row=first)


def merged_summary(*parts):
    """The summary of all parts, which do not change, so that a task can be retried."""
    total = deepcopy(parts[0])
    for part in parts[1:]:
        total.merge(part)
    return total
