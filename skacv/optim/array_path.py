"""Paths: a quantity of every iterate, indexed like an array along its first axis.

The record of a run is its coefficients. Linear predictors are products with X, computed
for many iterates at a time when they are read; no array of all iterates and rows is
made. A kernel's predictors come from its updates and are stored.
"""

from abc import ABC, abstractmethod
from copy import copy
from operator import index

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .blocks import slices

ENTRIES_PER_BLOCK = 1 << 20


class ArrayPath(NDArrayOperatorsMixin, ABC):
    """A quantity of every iterate, computed when it is accessed.

    It is indexed like an array with the iterates along the first axis: ``path[t]`` and
    slices compute these iterates, whereas ``np.asarray(path)``, other indices, and
    arithmetic compute all. A subclass sets ``shape`` and ``dtype``, and defines
    ``_of(iterates)``.
    """

    _last = (None, None)

    @abstractmethod
    def _of(self, iterates):
        """The quantity of some iterates, the first axis of the result.

        Parameters
        ----------
        iterates : slice
            With nonnegative ends.
        """

    @property
    def ndim(self):
        """Number of axes."""
        return len(self.shape)

    def __getstate__(self):
        return vars(self) | {"_last": (None, None)}

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        if isinstance(key, slice) and (key.step or 1) > 0:
            return self._of(slice(*key.indices(len(self))))
        try:
            t = range(len(self))[index(key)]
        except TypeError:
            return np.asarray(self)[key]
        if self._last[0] != t:
            self._last = t, self._of(slice(t, t + 1))[0]
        return self._last[1]

    def first(self, n_iterates):
        """The path of the first iterates."""
        found = copy(self)
        found.shape = n_iterates, *self.shape[1:]
        return found

    def __array__(self, dtype=None, copy=None):
        found = np.empty(self.shape, self.dtype if dtype is None else dtype)
        n_entries = max(1, int(np.prod(self.shape[1:])))
        for iterates in slices(len(self), ENTRIES_PER_BLOCK // n_entries):
            found[iterates] = self._of(iterates)
        return found

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        arrays = (np.asarray(x) if isinstance(x, ArrayPath) else x for x in inputs)
        return getattr(ufunc, method)(*arrays, **settings)

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


class StoredPath(ArrayPath):
    """A path whose values are in memory.

    Parameters
    ----------
    values : ndarray of shape (n_iterates, ...)
    """

    def __init__(self, values):
        self._values = values
        self.shape, self.dtype = values.shape, values.dtype

    def _of(self, iterates):
        return self._values[iterates]


# Iterates whose predictors are computed together, in blocks that begin at multiples of
# that: to the last digit an iterate's are the same in a longer run. More of them where
# rows are so few that they take no more numbers than that.
BLOCK, LARGEST_BLOCK, FEW_ENTRIES = 16, 128, 1 << 14
# Where a block takes more numbers, iterates are computed one by one.
MOST_ENTRIES = 1 << 22
# Blocks that are kept: an iterate and the one before may lie in two.
N_KEPT = 2
# Products with columns that are ever nonzero pay where these are such a share at most.
FEW = 0.5
ENTRIES_PER_BLOCK = 1 << 16  # fits in cache
EVERY = slice(None)


class Predictors(ArrayPath):
    """Linear predictors of iterates, (n_iterates, n_rows, n_outputs).

    They are read like an array whose first axis are the iterates.

    Parameters
    ----------
    coef : ndarray of shape (n_iterates, n_columns, n_outputs)
    rows : ndarray of int or None
        Rows of the design; None is all.
    intercept : ndarray of shape (n_iterates, n_outputs) or None
        What is added to all rows.
    """

    def __init__(self, design, coef, rows=None, intercept=None):
        self._design, self._coef = design, coef
        self._rows, self._intercept = rows, intercept
        n_rows = design.shape[0] if rows is None else len(rows)
        self.shape = len(coef), n_rows, coef.shape[2]
        self.dtype, self._known = coef.dtype, {}
        n_each = self.shape[1] * self.shape[2]
        self._size = block_size(n_each) if BLOCK * n_each <= MOST_ENTRIES else 1

    def __getstate__(self):
        return {**vars(self), "_known": {}}

    def _of(self, iterates):
        numbers, done = range(len(self))[iterates], 0
        found = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        while done < len(numbers):
            number, first = divmod(numbers[done], self._size)
            part = self._block(number)[first :: numbers.step][: len(numbers) - done]
            found[done : done + len(part)] = part
            done += len(part)
        return found

    def _block(self, number):
        """Predictors of a block of iterates; undefined beyond the last one."""
        if number not in self._known:
            # As many at the end as elsewhere: a product rounds as its shape has it.
            iterates = np.arange(self._size * number, self._size * (number + 1))
            found = self.of_rows(EVERY, np.minimum(iterates, len(self) - 1))
            kept = list(self._known.items())[1 - N_KEPT :]
            self._known = {**dict(kept), number: found}
        return self._known[number]

    def of_rows(self, rows, iterates=EVERY):
        """Those of some rows, a new array."""
        rows = rows if self._rows is None else self._rows[rows]
        found = _products(self._design, self._coef[iterates], rows)
        if self._intercept is not None:
            found += self._intercept[iterates][:, None]
        return found

    def on_rows(self, rows):
        """The predictors of these rows alone."""
        rows = rows if self._rows is None else self._rows[rows]
        return type(self)(self._design, self._coef, rows, self._intercept)

    def of_output(self, k):
        """The predictors of one output, (n_iterates, n_rows, 1)."""
        return self._part(EVERY, [k])

    def first(self, n_iterates):
        """Those of the first iterates."""
        return self._part(slice(n_iterates), EVERY)

    def one_by_one(self):
        """The same, computed an iterate at a time: where one alone is read."""
        alone = copy(self)
        alone._size, alone._known = 1, {}
        return alone

    def _part(self, iterates, outputs):
        coef, intercept = self._coef[iterates, :, outputs], self._intercept
        if intercept is not None:
            intercept = intercept[iterates, outputs]
        return type(self)(self._design, coef, self._rows, intercept)


class StoredPredictors(StoredPath):
    """The same where a run hands them on.

    Shapes: values (n_iterates, n_rows, n_outputs).
    """

    def of_rows(self, rows, iterates=EVERY):
        """Those of some rows, a new array."""
        return np.array(self._values[iterates][:, rows])

    def on_rows(self, rows):
        """The predictors of these rows alone."""
        return type(self)(self._values[:, rows])

    def of_output(self, k):
        """The predictors of one output, (n_iterates, n_rows, 1)."""
        return type(self)(self._values[:, :, [k]])

    def first(self, n_iterates):
        """Those of the first iterates."""
        return type(self)(self._values[:n_iterates])

    def one_by_one(self):
        """The same: nothing is computed."""
        return self


def block_size(n_each):
    """Number of iterates, of so many predictors each, that are computed together."""
    return int(np.clip(FEW_ENTRIES // max(1, n_each), BLOCK, LARGEST_BLOCK))


def _products(design, coef, rows):
    """Linear predictors of some rows, for iterates (t, n_columns, n_outputs).

    They are one product, of the columns that these iterates use.
    """
    n_iterates, n_columns, n_outputs = coef.shape
    coef = coef.transpose(1, 0, 2).reshape(n_columns, -1)
    used = np.flatnonzero(coef.any(axis=1)) if design.is_matrix else None
    if used is not None and len(used) <= FEW * n_columns:
        design, coef = design.part(rows, used), coef[used]
    else:
        design = design.rows(rows)
    found = design.dot(coef).reshape(-1, n_iterates, n_outputs)
    return found.transpose(1, 0, 2).astype(coef.dtype, copy=False)


def path_values(loss, target, weights, predictor, iterates=EVERY):
    """Losses of iterates on some rows, weighted and summed, also over the outputs.

    Shapes: target (n_rows, n_outputs); weights (n_rows,); predictor (n_iterates,
    n_rows, n_outputs).

    Returns
    -------
    ndarray of shape (n_iterates,), float64
    """
    # Output after output, as products of arrays are.
    target = np.asfortranarray(target)[:, :, None]
    weights = weights.astype(np.float64)
    numbers = range(len(predictor))[iterates]
    found = np.zeros(len(numbers))
    size = block_size(len(target) * predictor.shape[2])
    for some in slices(len(numbers), size):
        block = slice(numbers[some].start, numbers[some].stop)
        n_each = len(numbers[some]) * predictor.shape[2]
        for rows in slices(len(target), ENTRIES_PER_BLOCK // n_each):
            own = predictor.of_rows(rows, block).transpose(1, 2, 0)
            value = loss.value(target[rows], own).sum(axis=1, dtype=np.float64)
            # Not by BLAS: it rounds as the number of iterates has it.
            found[some] += np.einsum("nt,n->t", value, weights[rows])
    return found


def with_room(array, n_used, n_wanted):
    """An array of at least ``n_rows`` rows that begins with another one.

    Twice as long at least where it was too short. What is not written to yet takes no
    memory: the system gives it out page by page.

    Shapes: array (n_rows, ...); returned (n, ...).
    """
    n_rows = len(array)
    if n_wanted <= n_rows:
        return array
    if n_rows > 1:
        n_wanted = max(n_wanted, 2 * n_rows)
    longer = np.empty((n_wanted, *array.shape[1:]), array.dtype)
    longer[:n_used] = array[:n_used]
    return longer


class PathCache:
    """Values of the iterates of a run, computed only for new ones.

    A run that is evaluated as it goes is read again and again, and what has been
    recorded of an iterate stays.
    """

    def __init__(self):
        self._values = {}

    def first(self, key, n_iterates, compute):
        """The values of the first iterates, (n_iterates, ...).

        Parameters
        ----------
        key : hashable
            What they are called.
        compute : callable
            ``compute(iterates)`` are the values of a slice of iterates, (n, ...).
        """
        known = self._values.get(key)
        n_known = 0 if known is None else len(known)
        if n_known < n_iterates:
            found = compute(slice(n_known, n_iterates))
            known = found if known is None else np.concatenate([known, found])
            self._values[key] = known
        return known[:n_iterates]
