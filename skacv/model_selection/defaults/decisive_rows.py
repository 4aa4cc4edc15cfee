"""How many rows decide about a loss: of rare counts, those with an event."""

import numpy as np


def count_decisive_rows(loss, y, weights=None):
    """Number of rows by which a deviance is known as well as by all of them.

    Under a log link it is the number of equal targets whose sum is known as well as
    that of all (Kish 1965, "Survey sampling"): of counts that are zero or one, the
    number of ones. Rows of rare counts say next to nothing of the others. Of other
    losses all rows of positive weight count.

    Shapes: y (n_rows[, n_outputs]); weights (n_rows,), one if None.
    """
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, np.float64)
    if loss.is_quadratic:
        return float(np.count_nonzero(weights))
    amounts = weights[:, None] * np.asarray(y, np.float64).reshape(len(y), -1)
    with np.errstate(all="ignore"):
        counts = np.nansum(amounts, axis=0) ** 2 / np.nansum(amounts**2, axis=0)
    return float(np.nan_to_num(counts, nan=0.0).min())
