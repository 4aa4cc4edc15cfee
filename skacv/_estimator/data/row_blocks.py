"""Arrays as blocks of rows, of which one at a time is in memory."""

from mmap import mmap

import numpy as np
from scipy import sparse

from ...optim.blocks import slices

# Rows that are taken at a time have so many bytes, about.
BLOCK_BYTES = 1 << 26


def blocks_of(X, y, sample_weight):
    """Blocks of rows of arrays, as tuples for :meth:`RowSummary.partial_fit`."""
    lengths = {np.shape(array)[0] for array in (X, y)}
    if len(lengths) > 1:
        raise ValueError(f"X and y have different numbers of rows: {sorted(lengths)}.")
    (n_rows,) = lengths
    for rows in slices(n_rows, BLOCK_BYTES // (8 * max(1, X.shape[1]))):
        block = [_window(X, rows), np.asarray(y[rows])]
        if sample_weight is not None:  # one number is that of all rows
            is_one = np.ndim(sample_weight) == 0
            block.append(np.asarray(sample_weight if is_one else sample_weight[rows]))
        yield tuple(block)


def _window(X, rows):
    """Some rows; those of a memmap from a map of their own, which ends with them."""
    # A slice of a memmap does not say where in the file it begins.
    if isinstance(X, np.memmap) and isinstance(X.base, mmap) and X.flags.c_contiguous:
        n_rows = rows.stop - rows.start
        offset = X.offset + rows.start * X.strides[0]
        found = np.memmap(X.filename, X.dtype, "r", offset, (n_rows, *X.shape[1:]))
        return np.asarray(found)
    return X[rows] if sparse.issparse(X) else np.asarray(X[rows])
