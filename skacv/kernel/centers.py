"""Kernel machines whose functions are combinations of the kernel at some rows.

With centres C, m of the rows, a function is sum_j a_j k(., c_j) (Nystroem). Features

    Z = k(X, C) R,    R R' = k(C, C)^-1 but for eigenvalues that are rounding errors,

make it linear: its predictors are Z b and its squared norm is b'b, with a = R b. So the
run and its estimates are those of a linear model with at most m columns. With the
squared error it sees the moments of Z alone, summed over blocks of rows, and single
rows only where they are left out one by one.

Williams and Seeger (2000), "Using the Nystroem method to speed up kernel machines";
Rudi, Camoriano and Rosasco (2015), "Less is more: Nystroem computational
regularization".
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Any

import numpy as np

from .._estimator.data.training_data import ColumnData, column_data
from .._estimator.parameters import to_python_scalar
from .._estimator.run.data_reduction import (
    FEWEST_UNEXPLAINED,
    PseudoProblem,
    PseudoRowData,
    parts_of_rows,
    unexplained_share,
)
from ..optim.kernel_matrix import kernel_product, row_blocks
from ..optim.moments import (
    Moments,
    add_to_groups,
    dense_rows,
    group_rows,
    merged,
    pseudo_rows,
    shifted,
    varying,
)
from ..optim.namespaces import as_dtype, dtype_of, rows_in, to_device_of, to_numpy
from ..optim.problem import Problem
from ..risk.cost import DECOMPOSED_SIZE, MANY_ROWS
from ..risk.held_out_rows import have_repeats
from .ridge import leading_root

# If centres are chosen automatically and there are many, only the leading functions are
# used, as many as leave-one-out with a decomposition allows. Others change little.
MOST_FUNCTIONS = DECOMPOSED_SIZE


@dataclass(frozen=True, eq=False)
class Features:
    """The features Z of rows, computed in blocks; less a mean, in products.

    Shapes: X (n_rows, n_features); centers (m, n_features); root (m, n_columns); mean
    (n_columns, 1)."""

    kernel: Callable
    X: Any
    centers: Any
    root: np.ndarray
    map: Callable
    mean: np.ndarray

    is_matrix = False

    @property
    def shape(self):
        return self.X.shape[0], self.root.shape[1]

    @classmethod
    def of(cls, kernel, X, centers, map, n_functions, null=1e-6):
        """Features in the span of the kernel at centres, of its leading functions."""
        exact = as_dtype(centers, np.float64)
        gram = to_numpy(kernel(exact, exact)).astype(np.float64)
        # Eigenvalues below ``null`` are rounding errors of single precision.
        root = leading_root(gram, n_functions, null)
        return cls(kernel, X, centers, root, map, np.zeros((root.shape[1], 1)))

    def rows(self, index):
        """Features of some rows."""
        return replace(self, X=rows_in(self.X, index))

    def dot(self, coef):
        """Linear predictors (n_rows, k) of coefficients (n_columns, k)."""
        dual = (self.root @ coef).astype(dtype_of(self.X), copy=False)
        product = kernel_product(self.kernel, self.X, self.centers, dual, self.map)
        return product.astype(np.float64, copy=False) - self.mean.T @ coef

    def blocks(self):
        """Yield slices of rows and their features, in the precision of X."""
        dtype = dtype_of(self.X)
        root = to_device_of(self.root.astype(dtype), self.X)
        for rows in row_blocks(self.X, len(self.root), dtype):
            yield rows, to_numpy(self.kernel(self.X[rows, :], self.centers) @ root)

    def array(self, dtype):
        """The features of all rows, (n_rows, n_columns)."""
        features = np.empty(self.shape, dtype)
        for rows, block in self.blocks():
            features[rows] = block
        return features


@dataclass(frozen=True)
class CenterData(ColumnData):
    """The data of a machine with centres: a coefficient for every feature.

    Shapes: root (n_centers, n_columns), from coefficients to dual ones."""

    root: np.ndarray

    @property
    def dtype(self):
        """The precision of predictions."""
        return self.problem.target.dtype

    def coefficients(self, coef):
        """Dual coefficients (t, n_centers[, n_outputs]), and intercepts."""
        n_columns = self.root.shape[1]
        features = coef[:, :n_columns]
        intercept = self.offset - self.center[:, 0] @ features
        if self.has_constant:
            intercept = coef[:, -1]
        dual = np.matmul(self.root, features)
        return (dual[..., 0], intercept[:, 0]) if self.is_1d else (dual, intercept)


@dataclass(frozen=True)
class MomentCenterData(CenterData, PseudoRowData):
    """The same on some single rows, which come first, and on moments of all others."""

    @property
    def sample_weights(self):
        return self.all_rows.sample_weights


def center_data(estimator, samples, encoded, features, folds, seed):
    """:class:`CenterData` of samples with features, and the folds as its rows.

    ``seed`` draws the rows to leave out one by one.
    """
    if encoded.loss.is_quadratic:
        reduced = _reduce_to_moments(estimator, samples, encoded, features, folds, seed)
        if reduced is not None:
            return reduced
    n_bytes = features.shape[0] * features.shape[1] * dtype_of(features.X).itemsize
    n_exact = features.shape[0] * features.shape[1] * np.dtype(np.float64).itemsize
    if n_bytes > estimator._budget():
        raise ValueError(
            f"This fit needs {features.shape[1]} features of {features.shape[0]} rows "
            f"in memory, {n_bytes / 2**20:.0f} megabytes, but memory_budget is "
            f"{estimator.memory_budget:g}: use fewer n_centers or a larger "
            "memory_budget."
        )
    # Products with an array in double precision need no copy of its parts.
    is_exact = n_exact <= estimator._budget()
    array = features.array(np.float64 if is_exact else dtype_of(features.X))
    samples = replace(samples, X=array)
    data = column_data(samples, encoded, estimator.fit_intercept)
    return CenterData(**vars(data), root=features.root), folds


def _reduce_to_moments(estimator, samples, encoded, features, folds, seed):
    """Data on single rows, and on few rows that have the moments of all others."""
    # None: these would be more than a quarter of the rows, or moments have few digits.
    target = encoded.target.astype(np.float64)
    (n_rows, n_columns), n_outputs = features.shape, target.shape[1]
    width, loo = n_columns + n_outputs, to_python_scalar(estimator.loo)
    n_left_out = min(n_rows, MANY_ROWS) if loo == "auto" else int(loo)
    n_single = n_rows if loo is True else n_left_out
    n_most = (n_rows - n_single) // (4 * (width + 1))
    if any(map(have_repeats, chain.from_iterable(folds))):
        return None
    groups = group_rows(map(parts_of_rows, folds, repeat(n_rows)), n_rows, n_most)
    if groups is None:
        return None
    group, membership = groups
    # Rows that are left out one by one are drawn at random. Moments are those of the
    # others: of every group of rows that are in the same folds.
    single = np.random.default_rng(seed).choice(n_rows, n_single, replace=False)
    single.sort()
    is_single = np.isin(np.arange(n_rows), single)
    values, moments = [np.empty((0, width))], [Moments(width) for _ in membership]
    weights = encoded.weights.astype(np.float64)
    for rows, block in features.blocks():
        block, rest = dense_rows(block, target[rows]), ~is_single[rows]
        values.append(block[~rest])
        add_to_groups(moments, group[rows][rest], block[rest], weights[rows][rest])
    values, has_rows = np.concatenate(values), [m.weight > 0 for m in moments]
    moments = [m for m in moments if m.weight > 0]
    total = merged(moments)
    if n_single:
        total.add_rows(values.copy(), weights[single])
    mean = total.mean if estimator.fit_intercept else np.zeros(width)
    moments = [shifted(m, mean) for m in moments]
    if unexplained_share(moments, n_outputs) <= FEWEST_UNEXPLAINED:
        return None
    pseudo, pseudo_weights = pseudo_rows(moments)
    values = np.concatenate([values - mean, pseudo]) * varying(total, mean)
    offset, center = mean[None, n_columns:], mean[:n_columns, None]
    problem = PseudoProblem.of(
        values,
        np.concatenate([weights[single], pseudo_weights]) / total.weight,
        n_outputs,
        encoded.loss,
        largest_weight=weights.max() / total.weight,
        n_samples=n_rows,
        n_single=n_single,
    )
    observed = Problem(
        replace(features, mean=center),
        target - offset,
        (weights / total.weight)[:, None],
        encoded.loss,
    )
    fields = {
        "total_weight": weights.sum(),
        "n_samples": samples.n_samples,
        "is_1d": encoded.is_1d,
        "names": {**samples.names, **encoded.names},
        "offset": offset,
        "is_centered": bool(estimator.fit_intercept),
        "has_constant": False,
        "observed": observed,
        "center": center,
        "columns": samples.columns,
        "root": features.root,
    }
    all_rows = CenterData(problem=observed, y=samples.y, rows=samples.rows, **fields)
    order = np.concatenate([single, np.flatnonzero(~is_single)])
    data = MomentCenterData(
        problem=problem,
        y=samples.y[order],
        rows=samples.rows[order],
        all_rows=all_rows,
        all_folds=folds,
        **fields,
    )
    # The parts of the folds that single rows, and rows with the moments, belong to.
    of_groups = np.repeat(membership[has_rows], width + 1, axis=0)
    codes = np.concatenate([membership[group[single]], of_groups])
    return data, [(np.flatnonzero(c & 1), np.flatnonzero(c & 2)) for c in codes.T]
