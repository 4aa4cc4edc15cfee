"""The columns of X on which replicas of a run can be anything but zero."""

import numpy as np


class WorkingColumns:
    """Columns on which replicas live, and their products.

    Coefficients of replicas are rows here, (n_replicas, n_working), so that
    every replica lies contiguous in memory.

    Parameters
    ----------
    design : Design of shape (n_rows, n_columns)
    rows : ndarray of int, shape (n_replicas,)
        The row that each replica leaves out.
    """

    def __init__(self, design, rows):
        self.design = design
        self.n_rows = design.shape[0]
        self.rows = rows
        self.index = np.empty(0, int)
        self.columns = design.selection(self.index, design.dtype)
        self.left_out = np.empty((len(rows), 0), design.dtype)
        self._gram = None

    def __len__(self):
        return len(self.index)

    def gram_of(self, coef):
        """``coef`` times the Gram matrix of the working columns, over n_rows."""
        if self._gram is not None:
            return coef @ self._gram
        predictor = self.columns.dot(coef.T)
        return np.ascontiguousarray(self.columns.t_dot(predictor).T) / self.n_rows

    def gradient_shift(self, coef, columns):
        """How ``coef`` moves the gradient on other columns, (n_rows, k) dense.

        By the smaller of two products: over the working columns, or the rows.
        """
        if self._gram is not None:
            return coef @ (self.columns.t_dot(columns) / self.n_rows)
        return (self.columns.dot(coef.T).T @ columns) / self.n_rows

    def joined_by(self, index, columns):
        """Take in the columns in ``index``, which are ``columns`` as an array."""
        if self._gram is not None:
            across = self.columns.t_dot(columns) / self.n_rows
            own = columns.T @ columns / self.n_rows
            self._gram = np.block([[self._gram, across], [across.T, own]])
        selection = self.design.selection(index, columns.dtype)
        self.columns = self.columns.beside(selection)
        self.left_out = np.concatenate([self.left_out, columns[self.rows]], axis=1)
        self._set(np.concatenate([self.index, index]))

    def reduced_to(self, kept):
        """Keep the working columns where ``kept`` is true."""
        if self._gram is not None:
            self._gram = self._gram[np.ix_(kept, kept)]
        kept_columns = self.columns.selection(np.flatnonzero(kept), self.design.dtype)
        self.columns = kept_columns
        self.left_out = self.left_out[:, kept]
        self._set(self.index[kept])

    def _set(self, index):
        """A Gram matrix serves while it has fewer entries than two passes over X."""
        self.index = index
        is_narrow = len(index) <= 2 * self.n_rows
        if not is_narrow:
            self._gram = None
        elif self._gram is None:
            self._gram = self.columns.gram() / self.n_rows
