"""The objective of a converged model to second order around its coefficients."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from ..optim.arrays import design_of
from ..optim.design import Design
from ..optim.row_space import row_space


class Expansion(NamedTuple):
    """An objective to second order in the coefficients that are free to move."""

    design: Design  # (n_rows, n_columns), of the columns that are free for an output
    free: np.ndarray  # (n_columns, n_outputs), bool
    derivative: np.ndarray  # of the loss in the predictors, (n_rows, n_outputs)
    curvature: np.ndarray  # of the loss, (n_rows, n_outputs, n_outputs)
    gradient: np.ndarray  # of the objective, (n_columns, n_outputs)
    penalty_gradient: np.ndarray  # (n_columns, n_outputs)
    ridge: np.ndarray  # the curvature of the penalty, (n_columns, n_outputs)

    def single(self):
        """The expansion with design and curvature in single precision."""
        every = np.arange(self.design.shape[1])
        return self._replace(
            design=self.design.columns(every, np.float32),
            curvature=self.curvature.astype(np.float32),
        )


def expansion(model):
    """The objective of a ConvergedModel to second order around its coefficients."""
    problem, penalty, coef = model.problem, model.penalty, model.coef
    free = penalty.is_free(coef)
    used = np.flatnonzero(free.any(axis=1))
    design = problem.design.columns(used, problem.design.dtype)
    curvature = problem.loss.curvature_matrix(problem.target, model.predictor)
    penalty_gradient = penalty.gradient(coef)[used]
    # The curvature that stays when a row of average weight takes its share along.
    stays = 1 - model.penalty_shares[model.counts].mean()
    return Expansion(
        design=design,
        free=free[used],
        derivative=model.derivative,
        curvature=problem.row_weights[:, :, None] * curvature,
        gradient=design.t_dot(model.derivative) + penalty_gradient,
        penalty_gradient=penalty_gradient,
        ridge=stays * penalty.hessian_diagonal(coef)[used],
    )


def reduce_to_row_space(local):
    """The expansion in at most as many penalised coefficients as there are rows."""
    # Predictors see the coefficients along the rows of X alone, and a ridge penalty
    # acts alike on these and on the directions across; so X = Z Q' may be replaced by
    # Z, coefficients by Q' of them. Nothing is done where X has no more columns than
    # rows, where the ridge is not the same for all coefficients that have one, or where
    # outputs use different columns.
    penalised = local.ridge.any(axis=1)
    ridge = local.ridge[penalised]
    is_wide = len(ridge) > local.design.shape[0]
    if not (is_wide and local.free.all() and ridge.min() == ridge.max() > 0):
        return local
    inside, spared = np.flatnonzero(penalised), np.flatnonzero(~penalised)
    rows, project = _row_space(local.design.columns(inside, local.design.dtype))

    def to_basis(columns):
        return np.concatenate([project(columns[inside]), columns[spared]])

    unpenalised = local.design.dense_columns(spared, local.design.dtype)
    n_columns = rows.shape[1] + len(spared)
    return local._replace(
        design=design_of(np.hstack([rows, unpenalised])),
        free=np.ones((n_columns, local.free.shape[1]), bool),
        gradient=to_basis(local.gradient),
        penalty_gradient=to_basis(local.penalty_gradient),
        ridge=np.concatenate([ridge[: rows.shape[1]], local.ridge[spared]]),
    )


def _row_space(design):
    """Z of X = Z Q', Q' of at most n_rows orthonormal rows; and products with Q'."""
    if not sparse.issparse(design.X):
        coordinates, basis = row_space(design)
        return coordinates, lambda columns: basis.T @ columns
    values, vectors = eigh(design.outer_gram())
    keep = values > len(values) * np.finfo(float).eps * values[-1]
    sizes, vectors = np.sqrt(values[keep]), vectors[:, keep]
    # Q' is dense and as large as X would be: it is never formed.
    return vectors * sizes, lambda columns: (vectors / sizes).T @ design.dot(columns)
