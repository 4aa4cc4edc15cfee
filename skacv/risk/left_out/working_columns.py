"""The columns of X whose coefficients can be nonzero in runs without a row."""

import numpy as np

# The Gram matrix of all columns is formed once where it takes no more memory, and
# has at most so many entries for one of X: of a dense X, columns for a row.
WHOLE_GRAM_BYTES = 1 << 28
GRAM_PER_ENTRY = 8
# Memory for columns that are looked at together.
LOOKED_AT_BYTES = 1 << 23
# Arrays that grow are made so much larger than they need to be.
SPARE = 1.25


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


class WorkingColumns:
    """Columns on which replicas live, and their products.

    Coefficients of replicas are rows here, (n_replicas, n_working), so that
    every replica lies contiguous in memory.

    Parameters
    ----------
    design : Design of shape (n_rows, n_columns)
    rows : ndarray of int, shape (n_replicas,)
        The row that each replica leaves out.
    gram : ndarray of shape (n_columns, n_columns) or None
        design' design / n_rows; without it, parts are formed as they are needed.
    """

    def __init__(self, design, rows, gram=None):
        self.design = design
        self.n_rows = design.shape[0]
        self.rows = design.rows(rows)
        self.whole_gram = gram
        self.index = np.empty(0, int)
        self._columns = None
        self._left_out = np.empty((len(rows), 0), design.dtype)
        # The Gram matrix of the first so many working columns; of none where wide.
        self._gram = np.empty((0, 0), design.dtype)
        self._n_formed = 0
        # Where columns are few, the rows left out are kept column by column.
        self._every_entry = None
        if gram is not None:
            self._every_entry = _normalized(self._entries(np.arange(design.shape[1])).T)

    def __len__(self):
        return len(self.index)

    @property
    def left_out(self):
        """Entries of the rows left out in the working columns."""
        return self._left_out[:, : len(self)]

    @property
    def is_wide(self):
        """Whether two passes over the columns cost less than the Gram matrix."""
        return len(self.index) > 2 * self.design.n_stored / self.design.shape[1]

    @property
    def columns(self):
        """The design of the working columns."""
        if self._columns is None:
            self._columns = self.design.selection(self.index, self.design.dtype)
        return self._columns

    def gram_of(self, coef):
        """``coef`` times the Gram matrix of the working columns, over n_rows."""
        if not self.is_wide:
            return coef @ self._gram[: len(self), : len(self)]
        predictor = self.columns.dot(coef.T)
        return np.ascontiguousarray(self.columns.t_dot(predictor).T) / self.n_rows

    def gradient_shift(self, coef, index):
        """How ``coef`` moves the gradient on the columns in ``index``."""
        if self.is_wide:
            columns = self.design.selection(index, coef.dtype)
            return columns.t_dot(self.columns.dot(coef.T)).T / self.n_rows
        shift = np.empty((len(coef), len(index)), coef.dtype)
        for part in self.looked_at(index):
            left, right = self._factors(coef, index[part])
            np.matmul(left, right.T, out=shift[:, part])
        return shift

    def looked_at(self, index):
        """Slices of ``index``: so many columns as are looked at together."""
        size = max(1, LOOKED_AT_BYTES // (self.design.dtype.itemsize * self.n_rows))
        return [slice(k, k + size) for k in range(0, len(index), size)]

    def largest_shift(self, coef, own_slope, index):
        """How far a replica may shift the gradient on the columns in ``index``.

        Parameters
        ----------
        coef : ndarray of shape (n_replicas, n_working)
        own_slope : ndarray of shape (n_replicas,)
            The multiple of the row that it leaves out that is subtracted from
            a replica's gradient.
        index : ndarray of int, shape (k,)

        Returns
        -------
        ndarray of shape (k,)
            A bound of the largest size of the shift over the replicas: found in
            single precision, with what that may be off.
        """
        left, right = self._factors(coef, index)
        left_norm = np.linalg.norm(left, axis=1).max(initial=0)
        slope_size = np.abs(own_slope).max(initial=0)
        if self._every_entry is None:
            entries, entry_sizes = _normalized(self._entries(index).T)
        else:
            entries, entry_sizes = (each[index] for each in self._every_entry)
        # In units in which no entry and no product is more than one.
        shift_size = left_norm * np.linalg.norm(right, axis=1)
        own_size = slope_size * entry_sizes
        unit = shift_size + own_size
        right = right * _quotient(left_norm, unit)[:, None]
        left = _quotient(left, left_norm).astype(np.float32)
        entries = entries * _quotient(own_size, unit).astype(np.float32)[:, None]
        entries *= _quotient(own_slope, slope_size).astype(np.float32)
        shift = right.astype(np.float32) @ left.T
        shift -= entries
        largest = np.maximum(shift.max(axis=1), -shift.min(axis=1))
        # |fl(x'y) - x'y| <= m eps ||x|| ||y|| for m entries; what is rounded
        # before and after adds a few eps.
        return unit * (largest + (left.shape[1] + 8) * np.finfo(np.float32).eps)

    def joined_by(self, index):
        """Take in the columns in ``index``."""
        n_old, n_working = len(self), len(self) + len(index)
        if self.whole_gram is None:
            selection = self.design.selection(index, self.design.dtype)
            self._columns = self.columns.beside(selection)
        else:
            self._columns = None
        self.index = np.concatenate([self.index, index])
        self._left_out = self._with_room(self._left_out, self.rows.shape[0], n_working)
        self._left_out[:, n_old:n_working] = self._entries(index)
        self._form_gram()

    def reduced_to(self, kept):
        """Keep the working columns where ``kept`` is true."""
        place = np.flatnonzero(kept)
        if self.whole_gram is None:
            self._columns = self.columns.selection(place, self.design.dtype)
        else:
            self._columns = None
        self.index = self.index[place]
        self._left_out[:, : len(place)] = self._left_out[:, place]
        if self._n_formed:
            self._gram[: len(place), : len(place)] = self._gram[np.ix_(place, place)]
            self._n_formed = len(place)
        self._form_gram()

    def _entries(self, index):
        """Entries of the rows left out, (n_replicas, k)."""
        return self.rows.dense_columns(index, self.design.dtype)

    def _factors(self, coef, index):
        """(n_replicas, m) and (k, m), whose product is a gradient's shift."""
        if self.whole_gram is not None:
            return coef, self.whole_gram[np.ix_(index, self.index)]
        columns = self.design.dense_columns(index, coef.dtype)
        if not self.is_wide:
            return coef, self.columns.t_dot(columns).T / self.n_rows
        return self.columns.dot(coef.T).T / self.n_rows, columns.T

    def _form_gram(self):
        """The Gram matrix of working columns that it lacks, unless they are wide."""
        n_old, n_working = self._n_formed, len(self)
        self._n_formed = 0 if self.is_wide else n_working
        if self._n_formed > n_old:
            self._gram = self._with_room(self._gram, n_working, n_working)
            across = self._inner_products(n_old)
            self._gram[n_old:n_working, :n_working] = across
            self._gram[:n_old, n_old:n_working] = across[:, :n_old].T

    def _inner_products(self, first):
        """Products of the working columns from ``first`` on with all, over n_rows."""
        if self.whole_gram is not None:
            return self.whole_gram[np.ix_(self.index[first:], self.index)]
        if first == 0:
            return self.columns.gram() / self.n_rows
        new = self.design.dense_columns(self.index[first:], self.design.dtype)
        return self.columns.t_dot(new).T / self.n_rows

    def _with_room(self, array, n_rows, n_columns):
        """The array, or a copy with room to spare where that many do not fit."""
        if array.shape[0] >= n_rows and array.shape[1] >= n_columns:
            return array
        widest = self.design.shape[1]
        shape = [
            min(int(SPARE * n), max(n, widest)) if n > have else have
            for n, have in zip((n_rows, n_columns), array.shape)
        ]
        larger = np.empty(shape, array.dtype)
        larger[: array.shape[0], : array.shape[1]] = array
        return larger


def _normalized(entries):
    """Rows over their largest entry, in single precision, and that entry."""
    sizes = np.abs(entries).max(axis=1, initial=0)
    return _quotient(entries, sizes[:, None]).astype(np.float32), sizes


def _quotient(numerator, denominator):
    """Zero where the denominator is zero."""
    return numerator / np.where(denominator == 0, np.inf, denominator)
