"""Columns of a design whose coefficients can be nonzero at this stage of a run."""

import numpy as np


class WorkingColumns:
    """Some columns of a design, which more can join: a design as far as updates ask.

    Columns are copied when a product needs them, in few parts side by side: each is
    copied few times, however often some join.

    Attributes
    ----------
    index : ndarray of int, shape (n_working,)
        The working columns, in the order in which they have joined.
    """

    def __init__(self, design, index=()):
        self._design, self.dtype = design, design.dtype
        self.index = np.empty(0, int)
        # Designs of columns, and those that have joined since.
        self._parts, self._joined = [], []
        self.join(np.asarray(index, int))

    def __len__(self):
        return len(self.index)

    def join(self, index):
        """Take in some more columns, increasing ones."""
        self.index = np.concatenate([self.index, index])
        self._joined.append(index)

    def keep(self, places):
        """Keep the columns at some places of ``index``, increasing ones."""
        index, parts = self.index[places], []
        if self._parts and len(places):
            parts = [self.as_design().selection(places, self.dtype)]
        self.index, self._parts = index, parts
        self._joined = [] if parts else [index]

    def dot(self, coef):
        """Linear predictors, (n_working, k) -> (n_rows, k)."""
        first, found = 0, 0
        for part in self._selected():
            last = first + part.shape[1]
            found, first = found + part.dot(coef[first:last]), last
        return found

    def t_dot(self, slopes):
        """The gradient, (n_rows, k) -> (n_working, k)."""
        return np.concatenate([part.t_dot(slopes) for part in self._selected()])

    def as_design(self):
        """One design of them all."""
        parts = self._selected()
        while len(parts) > 1:
            _join_last(parts)
        return parts[0]

    def _selected(self):
        """Designs of all working columns, side by side."""
        for index in filter(len, self._joined):
            # All columns of a design are the design itself.
            self._parts.append(self._design.columns(index, self.dtype))
            while len(self._parts) > 1 and _is_narrower(*self._parts[-2:]):
                _join_last(self._parts)
        self._joined = []
        return self._parts or [self._design.selection(self.index, self.dtype)]


def _is_narrower(part, following):
    return part.shape[1] <= following.shape[1]


def _join_last(parts):
    last = parts.pop()
    parts[-1] = parts[-1].beside(last)
