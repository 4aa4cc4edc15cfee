"""Paths: a quantity of every iterate, indexed like an array along its first axis.

A run records its coefficients. Its linear predictors are products with X, computed for
many iterates at a time when they are read, so that no array of all iterates and rows is
needed. A kernel's updates compute its linear predictors, which are therefore stored.
"""

from abc import ABC, abstractmethod
from copy import copy
from operator import index
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .blocks import LARGE_BYTES, MEMORY_BYTES, blocks, n_per_block, slices


class ArrayPath(NDArrayOperatorsMixin, ABC):
    """A quantity of every iterate, computed when it is read.

    ``path[t]`` and slices of the first axis compute these iterates;
    ``np.asarray(path)``, other indices and arithmetic compute all. A subclass sets
    ``shape`` and ``dtype``, and defines ``_compute``.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    _last_read: tuple[int | None, Any] = (None, None)

    @abstractmethod
    def _compute(self, iterates):
        """Values at a slice of iterates, (n_iterates, ...)."""

    @property
    def ndim(self):
        return len(self.shape)

    def __getstate__(self):
        return vars(self) | {"_last_read": (None, None)}

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, key):
        if isinstance(key, slice) and (key.step or 1) > 0:
            return self._compute(slice(*key.indices(len(self))))
        try:
            t = range(len(self))[index(key)]
        except TypeError:
            return np.asarray(self)[key]
        if self._last_read[0] != t:
            self._last_read = t, self._compute(slice(t, t + 1))[0]
        return self._last_read[1]

    def first(self, n_iterates):
        path = copy(self)
        path.shape = n_iterates, *self.shape[1:]
        return path

    def __array__(self, dtype=None, copy=None):
        values = np.empty(self.shape, self.dtype if dtype is None else dtype)
        n_bytes = 8 * int(np.prod(self.shape[1:]))
        for iterates in blocks(len(self), n_bytes, LARGE_BYTES):
            values[iterates] = self._compute(iterates)
        return values

    def __array_ufunc__(self, ufunc, method, *inputs, **settings):
        arrays = (np.asarray(x) if isinstance(x, ArrayPath) else x for x in inputs)
        return getattr(ufunc, method)(*arrays, **settings)

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype})"


class StoredPath(ArrayPath):
    """A path whose values (n_iterates, ...) are in memory."""

    def __init__(self, values):
        self._values = values
        self.shape, self.dtype = values.shape, values.dtype

    def _compute(self, iterates):
        return self._values[iterates]


EVERY = slice(None)


class Predictors(ArrayPath):
    """Linear predictors of iterates, (n_iterates, n_rows, n_outputs): products with X.

    Shapes: coef (n_iterates, n_columns, n_outputs); intercept (n_iterates, n_outputs).
    """

    def __init__(self, design, coef, rows=None, intercept=None):
        self._design, self._coef = design, coef
        self._rows, self._intercept = rows, intercept
        n_rows = design.shape[0] if rows is None else len(rows)
        self.shape = len(coef), n_rows, coef.shape[2]
        self.dtype, self._recent_blocks = coef.dtype, {}
        n_entries = self.shape[1] * self.shape[2]
        # Blocks begin at multiples of their size, so that an iterate has the same
        # predictors, to the last digit, in a longer run.
        size = iterates_per_block(n_entries)
        self._block_size = size if 8 * size * n_entries <= 2 * LARGE_BYTES else 1

    def __getstate__(self):
        return {**vars(self), "_recent_blocks": {}}

    def _compute(self, iterates):
        numbers, done = range(len(self))[iterates], 0
        predictor = np.empty((len(numbers), *self.shape[1:]), self.dtype)
        while done < len(numbers):
            number, first = divmod(numbers[done], self._block_size)
            part = self._block(number)[first :: numbers.step][: len(numbers) - done]
            predictor[done : done + len(part)] = part
            done += len(part)
        return predictor

    def _block(self, number):
        """Predictors of block ``number``; after the last iterate it is repeated."""
        if number not in self._recent_blocks:
            # The last block is as long as the others, because the rounding of a product
            # depends on its shape.
            iterates = np.arange(
                self._block_size * number, self._block_size * (number + 1)
            )
            predictor = self.of_rows(EVERY, np.minimum(iterates, len(self) - 1))
            # The block before stays: an iterate and its predecessor may lie in two.
            latest = list(self._recent_blocks.items())[-1:]
            self._recent_blocks = {**dict(latest), number: predictor}
        return self._recent_blocks[number]

    def of_rows(self, rows, iterates=EVERY):
        """Predictors at some rows and iterates, a new array."""
        rows = rows if self._rows is None else self._rows[rows]
        coef, design = self._coef[iterates], self._design
        n_iterates, n_columns, n_outputs = coef.shape
        coef = coef.transpose(1, 0, 2).reshape(n_columns, -1)
        used = np.flatnonzero(coef.any(axis=1)) if design.is_matrix else None
        if used is not None and 2 * len(used) <= n_columns:
            design, coef = design.part(rows, used), coef[used]
        else:
            design = design.rows(rows)
        predictor = design.dot(coef).reshape(-1, n_iterates, n_outputs)
        predictor = predictor.transpose(1, 0, 2).astype(coef.dtype, copy=False)
        if self._intercept is not None:
            predictor += self._intercept[iterates][:, None]
        return predictor

    def select_rows(self, rows):
        """The predictors of some rows, a path."""
        rows = rows if self._rows is None else self._rows[rows]
        return type(self)(self._design, self._coef, rows, self._intercept)

    def select_output(self, k):
        """The predictors of one output, a path (n_iterates, n_rows, 1)."""
        return self._part(EVERY, [k])

    def first(self, n_iterates):
        return self._part(slice(n_iterates), EVERY)

    def one_by_one(self):
        """A copy that computes one iterate at a time, for reading a single one."""
        path = copy(self)
        path._block_size, path._recent_blocks = 1, {}
        return path

    def _part(self, iterates, outputs):
        coef, intercept = self._coef[iterates, :, outputs], self._intercept
        if intercept is not None:
            intercept = intercept[iterates, outputs]
        return type(self)(self._design, coef, self._rows, intercept)


class StoredPredictors(StoredPath):
    """Predictors (n_iterates, n_rows, n_outputs) that a run has recorded, in memory."""

    def of_rows(self, rows, iterates=EVERY):
        return np.array(self._values[iterates][:, rows])

    def select_rows(self, rows):
        return type(self)(self._values[:, rows])

    def select_output(self, k):
        return type(self)(self._values[:, :, [k]])

    def first(self, n_iterates):
        return type(self)(self._values[:n_iterates])

    def one_by_one(self):
        return self


def iterates_per_block(n_entries, least=16, most=128):
    """Number of iterates, each of ``n_entries`` numbers, that are computed together."""
    return min(max(n_per_block(8 * n_entries), least), most)


def path_values(loss, target, weights, predictor, iterates=EVERY):
    """Losses of iterates: weighted sums over rows and outputs.

    Shapes: target (n_rows, n_outputs); weights (n_rows,); predictor (n_iterates,
    n_rows, n_outputs); returned (n_iterates,)."""
    # In Fortran order, as products of arrays are.
    target = np.asfortranarray(target)[:, :, None]
    weights = weights.astype(np.float64)
    numbers = range(predictor.shape[0])[iterates]
    values = np.zeros(len(numbers))
    size = iterates_per_block(len(target) * predictor.shape[2])
    for part in slices(len(numbers), size):
        block = slice(numbers[part].start, numbers[part].stop)
        if loss.couples_rows:
            z = predictor[block].transpose(1, 2, 0)
            of_rows = loss.weighted_values(target, z, weights[:, None, None])
            values[part] = of_rows.sum(axis=(0, 1))
            continue
        n_entries = len(numbers[part]) * predictor.shape[2]
        for rows in blocks(len(target), 8 * n_entries):
            z = predictor.of_rows(rows, block).transpose(1, 2, 0)
            value = loss.value(target[rows], z).sum(axis=1, dtype=np.float64)
            # Not BLAS, whose rounding depends on the number of iterates.
            values[part] += np.einsum("nt,n->t", value, weights[rows])
    return values


def with_room(array, n_used, n_needed, n_planned=0):
    """``array``, or a copy of its first ``n_used`` rows with room for ``n_needed``.

    A copy has room for ``n_planned``, within bounds: views of earlier copies keep them.
    """
    n_rows = len(array)
    if n_needed <= n_rows:
        return array
    if n_rows > 1:
        n_needed = max(n_needed, 2 * n_rows)
    # Memory is used only where it is written.
    n_that_fit = 8 * MEMORY_BYTES // max(array[:1].nbytes, 1)
    n_needed = max(n_needed, min(n_planned, n_that_fit))
    longer = np.empty_like(array, shape=(n_needed, *array.shape[1:]))
    longer[:n_used] = array[:n_used]
    return longer


class PathCache:
    """Arrays of a run's iterates, each computed once while the run goes on."""

    def __init__(self, n_planned=0):
        self._arrays, self._n_planned = {}, n_planned

    def first(self, key, n_iterates, compute):
        """Arrays (n_iterates, ...), as ``compute(iterates)`` gives them of a slice."""
        arrays, n_cached = self._arrays.get(key, ((), 0))
        if n_cached < n_iterates:
            new = list(compute(slice(n_cached, n_iterates)))
            for k, array in enumerate(arrays):
                array = with_room(array, n_cached, n_iterates, self._n_planned)
                array[n_cached:n_iterates], new[k] = new[k], array
            arrays = new
            self._arrays[key] = arrays, n_iterates
        return [array[:n_iterates] for array in arrays]
