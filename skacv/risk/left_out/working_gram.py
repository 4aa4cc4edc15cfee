"""Inner products of working columns, of which a squared error makes gradients."""

import numpy as np

# The Gram matrix of all columns is formed once where it takes no more memory, and
# has at most so many entries for one of X: of a dense X, columns for a row.
WHOLE_GRAM_BYTES = 1 << 28
GRAM_PER_ENTRY = 8


def whole_gram(design):
    """Design' design / n_rows if that is cheap relative to the rest, or None."""
    size = design.shape[1] ** 2
    if size > GRAM_PER_ENTRY * design.n_stored:
        return None
    if size * design.dtype.itemsize > WHOLE_GRAM_BYTES:
        return None
    gram = design.gram()
    gram /= design.shape[0]
    return gram


class WorkingGram:
    """Inner products of working columns over n_rows, formed as they are needed.

    Coefficients of replicas are rows here, (n_replicas, n_working).

    Parameters
    ----------
    design : MatrixDesign of shape (n_rows, n_columns)
    working : WorkingColumns
        Columns of the design, which may join and be dropped.
    whole : ndarray of shape (n_columns, n_columns) or None
        design' design / n_rows, where it is known.
    """

    def __init__(self, design, working, whole=None):
        self.design, self._working, self._whole = design, working, whole
        self._n_rows = design.shape[0]
        # The Gram matrix of the first so many working columns.
        self._formed = np.empty((0, 0), design.dtype)

    @property
    def is_wide(self):
        """Whether two passes over the columns take less time than the Gram matrix."""
        return len(self._working) > 2 * self.design.n_stored / self.design.shape[1]

    def times(self, coef, first=0):
        """``coef`` times the Gram matrix, on the working columns from ``first`` on."""
        if not self.is_wide:
            return coef @ self._matrix()[:, first:]
        columns = self._working
        if first:
            columns = self.design.selection(columns.index[first:], coef.dtype)
        shift = columns.t_dot(self._working.dot(coef.T))
        return np.ascontiguousarray(shift.T) / self._n_rows

    def factors(self, coef, index):
        """(n_replicas, m) and (k, m), whose product is how ``coef`` moves gradients.

        Those of the columns in ``index``, shape (k,).
        """
        if self._whole is not None:
            return coef, self._whole[np.ix_(index, self._working.index)]
        columns = self.design.dense_columns(index, coef.dtype)
        if not self.is_wide:
            return coef, self._working.t_dot(columns).T / self._n_rows
        return self._working.dot(coef.T).T / self._n_rows, columns.T

    def keep(self, places):
        """Keep the products of the columns at some places, as the columns are kept."""
        places = places[places < len(self._formed)]
        self._formed = self._formed[np.ix_(places, places)]

    def _matrix(self):
        """The Gram matrix of the working columns."""
        n_old, n_working = len(self._formed), len(self._working)
        if n_old < n_working:
            matrix = np.empty((n_working, n_working), self.design.dtype)
            matrix[:n_old, :n_old] = self._formed
            matrix[n_old:] = self._inner_products(n_old)
            matrix[:n_old, n_old:] = matrix[n_old:, :n_old].T
            self._formed = matrix
        return self._formed

    def _inner_products(self, first):
        """Products of the working columns from ``first`` on with all, over n_rows."""
        index = self._working.index
        if self._whole is not None:
            return self._whole[np.ix_(index[first:], index)]
        if first == 0:
            return self._working.as_design().gram() / self._n_rows
        new = self.design.dense_columns(index[first:], self.design.dtype)
        return self._working.t_dot(new).T / self._n_rows


def largest_shift(left, right, own, entries, sizes):
    """How far a replica may shift the gradient on some columns, (k,).

    Parameters
    ----------
    left, right : ndarray of shape (n_replicas, m) and (k, m)
        Their product is the shift by the deviations of replicas.
    own : ndarray of shape (n_replicas,)
        The multiple of the row that it leaves out that is subtracted from
        a replica's gradient.
    entries : ndarray of shape (k, n_replicas)
        The rows left out over ``sizes``, in single precision.
    sizes : ndarray of shape (k,)
        Bounds of the sizes of their entries.

    Returns
    -------
    ndarray of shape (k,)
        A bound of the largest size of the shift over the replicas: found in
        single precision, with what that may be off.
    """
    left_norm = np.linalg.norm(left, axis=1).max(initial=0)
    slope_size = np.abs(own).max(initial=0)
    # In units in which no entry and no product is more than one.
    shift_size = left_norm * np.linalg.norm(right, axis=1)
    own_size = slope_size * sizes
    unit = shift_size + own_size
    right = right * quotient(left_norm, unit)[:, None]
    left = quotient(left, left_norm).astype(np.float32)
    entries = entries * quotient(own_size, unit).astype(np.float32)[:, None]
    entries *= quotient(own, slope_size).astype(np.float32)
    shift = right.astype(np.float32) @ left.T
    shift -= entries
    largest = np.maximum(shift.max(axis=1), -shift.min(axis=1))
    # |fl(x'y) - x'y| <= m eps ||x|| ||y|| for m entries; what is rounded
    # before and after adds a few eps.
    return unit * (largest + (left.shape[1] + 8) * np.finfo(np.float32).eps)


def quotient(numerator, denominator):
    """Zero where the denominator is zero."""
    return numerator / np.where(denominator == 0, np.inf, denominator)
