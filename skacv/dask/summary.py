"""The summary of rows of a Dask collection: one pass, and no row stays."""

from copy import deepcopy

import dask
import numpy as np
from dask import delayed

from .._estimator.data.row_summary import RowSummary, add_block
from .rows import FAN, align_blocks, n_threads, sizes_of


def summarise(X, y, sample_weight, n_folds, n_sampled):
    """The summary of the rows of collections.

    Every thread of the workers adds its share of the blocks, one after the other, to a
    summary; these are merged in a tree. Unknown sizes of blocks take one more pass.
    """
    blocks = align_blocks(X, y, sample_weight)
    sizes = sizes_of(X, [rows for rows, _, _ in blocks])
    firsts = np.cumsum(sizes) - sizes
    empty = RowSummary(n_folds=n_folds, n_sampled=n_sampled)
    take, merge = delayed(_add_block, pure=False), delayed(merge_summaries, pure=False)
    parts, n_parts = [], min(n_threads(), len(blocks))
    for share in np.array_split(np.arange(len(blocks)), n_parts):
        part = empty
        for number in share:
            part = take(part, int(number), int(firsts[number]), *blocks[number])
        parts.append(part)
    while len(parts) > 1:
        parts = [merge(*parts[k : k + FAN]) for k in range(0, len(parts), FAN)]
    (summary,) = dask.compute(parts[0])
    return summary


def _add_block(summary, number, first, X, y, weight):
    # A retry needs the summary before as it was.
    return add_block(deepcopy(summary), number, X, y, weight, first_row=first)


def merge_summaries(*parts):
    """The summary of all parts, which a retry needs unchanged."""
    summary = deepcopy(parts[0])
    for part in parts[1:]:
        summary.merge(part)
    return summary
