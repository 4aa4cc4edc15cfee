"""Arrays as blocks of rows, of which one at a time is in memory."""

from mmap import mmap

import numpy as np
from scipy import sparse

from ...optim import blocks


def blocks_of(X, y, sample_weight):
    """Blocks of rows of arrays, as tuples for :meth:`RowSummary.partial_fit`."""
    lengths = {np.shape(array)[0] for array in (X, y)}
    if len(lengths) > 1:
        raise ValueError(f"X and y have different numbers of rows: {sorted(lengths)}.")
    (n_rows,) = lengths
    # A block is copied when it is validated, and when it is centred.
    size = blocks.n_per_block(8 * X.shape[1], blocks.MEMORY_BYTES // 4)
    for rows in blocks.slices(n_rows, size):
        block = [_window(X, rows), np.asarray(y[rows])]
        if sample_weight is not None:  # one number is that of all rows
            is_one = np.ndim(sample_weight) == 0
            block.append(np.asarray(sample_weight if is_one else sample_weight[rows]))
        yield tuple(block)


def _window(X, rows):
    """A slice of rows; of a memmap through a new map, which ends with the block."""
    # A slice of a memmap has no offset in the file.
    if isinstance(X, np.memmap) and isinstance(X.base, mmap) and X.flags.c_contiguous:
        n_rows = rows.stop - rows.start
        offset = X.offset + rows.start * X.strides[0]
        window = np.memmap(X.filename, X.dtype, "r", offset, (n_rows, *X.shape[1:]))
        return np.asarray(window)
    return X[rows] if sparse.issparse(X) else np.asarray(X[rows])
