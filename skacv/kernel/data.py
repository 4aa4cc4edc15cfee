"""From validated samples to the problem of a kernel machine, and back."""

from dataclasses import dataclass, replace

import numpy as np

from .._estimator.data.training_data import TrainingData
from ..optim.arrays import design_of
from ..optim.kernel import KernelDesign
from ..optim.kernel_matrix import KernelMatrix
from ..optim.namespaces import as_dtype, is_on_device, is_writeable, rows_in, to_numpy
from ..optim.problem import Problem
from .kernels import check_kernel
from .scales import MOST_ROWS

# The kernel of more rows is kept in single precision.
DOUBLE_ROWS = 3000


def working_dtype(n_rows):
    """The dtype of a kernel: single precision for many rows."""
    return np.float64 if n_rows <= DOUBLE_ROWS else np.float32


def kernel_rows(X):
    """Training rows in the dtype of their kernel."""
    return as_dtype(X, working_dtype(X.shape[0]))


@dataclass(frozen=True)
class KernelData(TrainingData):
    """The data of a kernel machine, with rows in random order.

    So batches are slices of rows, and rows at even distances are a random subsample.
    Dual coefficients of a fitted model have the order of the samples passed to ``fit``.
    """

    @property
    def observed(self):
        """The problem of the rows that were passed."""
        return self.problem

    @property
    def columns(self):
        """The transformation of the columns of X, for predictions."""
        return self.names["_columns"]

    def on(self, matrix):
        """The data with the design of ``matrix``, the kernel matrix of their rows."""
        design = KernelDesign(matrix, has_constant=self.has_constant)
        if self.is_centered:
            design = design.centered(self.problem.row_weights)
        return replace(self, problem=replace(self.problem, design=design))

    def coefficients(self, coef):
        """Dual coefficients (T + 1, n_samples[, n_outputs]), and intercepts."""
        n_iterates, n_columns, n_outputs = coef.shape
        dual = np.zeros((n_iterates, self.n_samples, n_outputs), coef.dtype)
        dual[:, self.rows] = coef[:, : n_columns - self.has_constant]
        intercept = np.broadcast_to(self.offset, (n_iterates, n_outputs))
        if self.has_constant:
            intercept = coef[:, -1]
        elif self.is_centered:
            values = self.problem.design.center.values[:, 0]
            intercept = self.offset - np.einsum("i,tik->tk", values, coef)
        return (dual[..., 0], intercept[:, 0]) if self.is_1d else (dual, intercept)

    def iterates(self, dual_coef_path, intercept_path):
        """Coefficients (T + 1, n_columns, n_outputs) of the run, from fitted paths."""
        n_iterates = len(dual_coef_path)
        coef = dual_coef_path.reshape(n_iterates, self.n_samples, -1)[:, self.rows]
        if not self.has_constant:
            return coef
        constant = intercept_path.reshape(n_iterates, 1, -1)
        return np.concatenate([coef, constant], axis=1)

    def without_rows(self, coef, shift, k):
        """Dual coefficients and intercepts of target k, from those of replicas."""
        dual = np.zeros((len(coef), self.n_samples), coef.dtype)
        dual[:, self.rows] = coef[:, : len(self.rows)]
        if self.has_constant:
            return dual, coef[:, -1]
        intercept = self.offset[0, k] + shift
        if self.is_centered:
            intercept = intercept - coef @ self.problem.design.center.values[:, 0]
        return dual, intercept


def check_rows(kernel, X):
    """Raise where a kernel cannot be computed of rows, or is not valid on some."""
    if is_on_device(X):
        if not is_writeable(X):
            raise ValueError(
                "The kernel matrix is written to where X is, which arrays such as "
                "those of JAX do not allow: pass X as an array of NumPy, PyTorch or "
                "CuPy."
            )
        design_of(X)  # raises if products have fewer digits
    if not kernel.is_positive:
        part = rows_in(X, slice(MOST_ROWS))
        check_kernel(to_numpy(kernel(part, part)).astype(np.float64, copy=False))


def kernel_data(estimator, samples, encoded, kernel, rows, seed):
    """:class:`KernelData` of the rows that the kernel takes, put in random order."""
    order = np.random.RandomState(seed).permutation(len(samples.y))
    X, dtype = rows_in(rows, order), working_dtype(len(order))
    check_rows(kernel, X)
    matrix = KernelMatrix(kernel, X, dtype, estimator._budget(), estimator._map)
    weights = encoded.weights[order]
    row_weights = (weights / weights.sum())[:, None]
    target, is_quadratic = encoded.target[order], encoded.loss.is_quadratic
    is_centered = estimator.fit_intercept and is_quadratic
    has_constant = estimator.fit_intercept and not is_quadratic
    offset = row_weights.T @ target if is_centered else np.zeros((1, target.shape[1]))
    data = KernelData(
        problem=Problem(None, target - offset, row_weights, encoded.loss),
        y=samples.y[order],
        total_weight=weights.sum(),
        rows=samples.rows[order],
        n_samples=samples.n_samples,
        is_1d=encoded.is_1d,
        names={**samples.names, **encoded.names},
        offset=offset,
        is_centered=is_centered,
        has_constant=has_constant,
    )
    return data.on(matrix)
