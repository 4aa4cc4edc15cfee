"""The columns of X on which replicas of a run can be anything but zero."""

import numpy as np

# The Gram matrix of all columns is formed once where it takes no more memory,
# and where X has at most so many columns a row.
WHOLE_GRAM_BYTES = 1 << 28
COLUMNS_PER_ROW = 8


def whole_gram(design):
    """Design' design / n_rows where that is small beside the work to come, or None."""
    n_rows, n_columns = design.shape
    if n_columns > COLUMNS_PER_ROW * n_rows:
        return None
    if n_columns**2 * design.dtype.itemsize > WHOLE_GRAM_BYTES:
        return None
    gram = design.gram()
    gram /= n_rows
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
        self.rows = rows
        self.whole_gram = gram
        self.index = np.empty(0, int)
        self.left_out = np.empty((len(rows), 0), design.dtype)
        self._columns = None
        self._gram = np.empty((0, 0), design.dtype)

    def __len__(self):
        return len(self.index)

    @property
    def is_wide(self):
        """Whether two passes over the rows cost less than the Gram matrix."""
        return len(self.index) > 2 * self.n_rows

    @property
    def columns(self):
        """The design of the working columns."""
        if self._columns is None:
            self._columns = self.design.selection(self.index, self.design.dtype)
        return self._columns

    def gram_of(self, coef):
        """``coef`` times the Gram matrix of the working columns, over n_rows."""
        if not self.is_wide:
            return coef @ self._gram
        predictor = self.columns.dot(coef.T)
        return np.ascontiguousarray(self.columns.t_dot(predictor).T) / self.n_rows

    def gradient_shift(self, coef, index):
        """How ``coef`` moves the gradient on the columns in ``index``."""
        if self.whole_gram is not None:
            return coef @ self.whole_gram[np.ix_(self.index, index)]
        columns = self.design.dense_columns(index, coef.dtype)
        if not self.is_wide:
            return coef @ (self.columns.t_dot(columns) / self.n_rows)
        return (self.columns.dot(coef.T).T @ columns) / self.n_rows

    def entries(self, index):
        """Entries of the rows left out in other columns, (n_replicas, k)."""
        return self.design.dense_columns(index, self.design.dtype)[self.rows]

    def joined_by(self, index, entries):
        """Take in the columns in ``index``, with their :meth:`entries`."""
        self.left_out = np.concatenate([self.left_out, entries], axis=1)
        if self.whole_gram is None:
            selection = self.design.selection(index, self.design.dtype)
            self._columns = self.columns.beside(selection)
        else:
            self._columns = None
        self.index = np.concatenate([self.index, index])
        self._gram = self._gram_with(len(index))

    def reduced_to(self, kept):
        """Keep the working columns where ``kept`` is true."""
        self.left_out = self.left_out[:, kept]
        if self.whole_gram is None:
            kept_columns = np.flatnonzero(kept)
            self._columns = self.columns.selection(kept_columns, self.design.dtype)
        else:
            self._columns = None
        self.index = self.index[kept]
        if self._gram is not None:
            self._gram = self._gram[np.ix_(kept, kept)]
        else:
            self._gram = self._gram_with(len(self.index))

    def _gram_with(self, n_new):
        """The Gram matrix after the last ``n_new`` columns have joined, or None."""
        if self.is_wide:
            return None
        if self.whole_gram is not None:
            return self.whole_gram[np.ix_(self.index, self.index)]
        n_old = len(self.index) - n_new
        if self._gram is None or n_old == 0:
            return self.columns.gram() / self.n_rows
        new = self.design.dense_columns(self.index[n_old:], self.design.dtype)
        across = self.columns.t_dot(new) / self.n_rows
        return np.block([[self._gram, across[:n_old]], [across.T]])
