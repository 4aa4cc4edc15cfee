"""Designs of every kind, with the features that their rows stand for."""

import numpy as np
import pytest
from scipy import sparse

from skacv.kernel.kernels import Precomputed
from skacv.optim.arrays import design_of
from skacv.optim.constant import WithConstant
from skacv.optim.design import ColumnDesign
from skacv.optim.kernel import KernelDesign
from skacv.optim.kernel_matrix import KernelMatrix


class Stacked(ColumnDesign):
    """Designs one below the other: no more than a new design has to give."""

    def __init__(self, *designs):
        n_rows, n_columns = zip(*(design.shape for design in designs))
        self.designs, self.dtype = designs, designs[0].dtype
        self.shape = sum(n_rows), n_columns[0]

    def blocks(self):
        first = 0
        for design in self.designs:
            yield slice(first, first + design.shape[0]), design
            first += design.shape[0]

    def dot(self, coef):
        return np.concatenate([design.dot(coef) for design in self.designs])

    def t_dot(self, slopes):
        return sum(design.t_dot(slopes[rows]) for rows, design in self.blocks())

    def rows(self, index):
        every = np.arange(self.shape[1])
        return design_of(self.dense_columns(every, self.dtype)[index])

    def scaled_rows(self, row_scale):
        return Stacked(*(d.scaled_rows(row_scale[rows]) for rows, d in self.blocks()))

    def centered(self, weights):
        return self.rows(slice(None)).centered(weights)


def kernel_design(features, *, constant=False, budget=1e9, dtype=np.float64):
    """Dual, with the kernel of explicit features."""
    kernel = Precomputed((features @ features.T).astype(dtype))
    numbers = np.arange(len(features))[:, None]
    return KernelDesign(KernelMatrix(kernel, numbers, dtype, budget), constant)


def dense(X):
    return design_of(X), X


def csr(X):
    return design_of(sparse.csr_matrix(X)), X


def stacked(X):
    half = len(X) // 2
    upper, lower = design_of(X[:half]), design_of(sparse.csr_matrix(X[half:]))
    return Stacked(upper, lower), X


def on_a_device(X):
    strict = pytest.importorskip("array_api_strict", reason="not installed")
    pytest.importorskip("array_api_compat", reason="not installed")
    return design_of(strict.asarray(X)), X


def kernel(X):
    return kernel_design(X), X


def kernel_in_blocks(X):
    return kernel_design(X, budget=0), X


def with_constant(kind):
    """A kind of matrix with a column of ones, which is not stored."""

    def found(X):
        design, features = kind(X)
        return WithConstant(design), np.hstack([features, np.ones((len(X), 1))])

    found.__name__ = f"{kind.__name__}_and_constant"
    return found


def kernel_and_constant(X):
    return kernel_design(X, constant=True), np.hstack([X, np.ones((len(X), 1))])


CONSTANTS = tuple(map(with_constant, (dense, csr, on_a_device)))
COLUMNS = (dense, csr, stacked, on_a_device, *CONSTANTS)
KERNELS = (kernel, kernel_in_blocks, kernel_and_constant)


def drawn(kind, changes, rng, shape=(13, 7)):
    """A design of a kind, with changes; and the features of its rows."""
    X = rng.standard_normal(shape)
    X[rng.random(shape) < 0.5] = 0
    design, features = kind(X)
    # A constant is the last feature, and is not centred.
    centre = np.ones(features.shape[1])
    if kind is kernel_and_constant or kind in CONSTANTS:
        centre[-1] = 0
    for change in changes:
        design, features = change(design, features, centre, rng)
    return design, features


def centred(design, features, centre, rng):
    weights = rng.random((len(features), 1))
    weights /= weights.sum()
    return design.centered(weights), features - weights.T @ features * centre


def scaled(design, features, centre, rng):
    scale = rng.uniform(0.5, 2, (len(features), 1))
    return design.scaled_rows(scale), features * scale


def some(design, features, centre, rng):
    index = rng.permutation(len(features))[: len(features) - 3]
    return design.rows(index), features[index]


CHANGES = (
    (),
    (centred,),
    (scaled,),
    (some,),
    (centred, scaled),
    (centred, scaled, some),
    (scaled, some, scaled),
)
