"""Whether coefficients at a kink of the penalty stay there when a row is left out.

The expansion of a model with an l1 norm holds its zeros at zero, and the signs of the
others. With theta + d_i the model without row i by that expansion, both are right where

    no coefficient of theta + d_i has another sign than in theta, and
    |x_j'(l' + l'' X d_i)| over all rows but i is at most the strength at every zero j.

For the squared error the two hold if and only if the refit without row i has the same
support and signs. They are what the incoherence of Stephenson & Broderick (2020,
arXiv:1905.13657) is to ensure, which asks for it whatever the row and the signs and
rarely holds with many more columns than rows; here they are looked up.
"""

import numpy as np

from ..optim.blocks import LARGE_BYTES, blocks
from .expansion import expansion
from .hessian import factor, place


def support_changes(model, rows):
    """Mask of the rows without which the support or a sign changes, (n_examined,)."""
    local = expansion(model)
    solver = factor(local)
    # Deviations and gradients of every coefficient, and products with all rows.
    row_bytes = 8 * (4 * model.coef.size + 2 * model.predictor.size)
    return np.concatenate(
        [
            _changes(model, local, solver, rows[part])
            for part in blocks(len(rows), row_bytes, LARGE_BYTES)
        ]
    )


def has_kinks(model):
    # Mask of the coefficients that the penalty may keep at zero.
    return ~model.penalty.is_free(np.zeros_like(model.coef))


def _changes(model, local, solver, rows):
    kinks, free = has_kinks(model), model.penalty.is_free(model.coef)
    used, n_rows, n_outputs = free.any(axis=1), *model.predictor.shape
    deviations = np.zeros((*model.coef.shape, len(rows)))
    deviations[used] = deviations_without(model, local, solver, rows)
    # The gradient of the other rows at these coefficients, to first order.
    flat = deviations[used].reshape(used.sum(), n_outputs * len(rows))
    shifts = local.design.dot(flat).reshape(n_rows, n_outputs, len(rows))
    slopes = local.curvature @ shifts + local.derivative[:, :, None]
    slopes[rows, :, np.arange(len(rows))] = 0
    gradient = model.problem.design.t_dot(slopes.reshape(n_rows, -1))
    gradient = gradient.reshape(deviations.shape)
    # A short step leaves a zero where it is, unless the gradient exceeds the strength.
    # Solvers stop a little before the minimum: by more than one part in 10,000.
    length = np.sqrt(np.finfo(float).eps)
    step = 1.0001 * length * (1 - model.penalty_shares[rows])
    joins = model.penalty.prox(-length * gradient, step) != 0
    flips = model.coef[:, :, None] * (model.coef[:, :, None] + deviations) <= 0
    changes = np.where(free[:, :, None], flips, joins) & kinks[:, :, None]
    return changes.any(axis=(0, 1))


def deviations_without(model, local, solver, rows):
    """-H_{-i}^-1 g_{-i} of each row, (n_used_columns, n_outputs, n_rows)."""
    n_outputs = local.derivative.shape[1]
    every = np.arange(local.design.shape[1])
    X = local.design.rows(rows).dense_columns(every, local.design.dtype)
    X = np.stack([place(local, X, k) for k in range(n_outputs)], axis=2)
    solved = np.stack([solver.solve(X[:, :, k]) for k in range(n_outputs)], axis=2)
    gradients = np.stack([local.gradient, local.penalty_gradient], axis=2)[local.free]
    of_objective, of_penalty = solver.solve(gradients).T
    # The Woodbury identity, with the inverse curvature of a row taken out.
    to_minimum = of_objective[:, None] - np.outer(
        of_penalty, model.penalty_shares[rows]
    )
    to_minimum -= np.einsum("jik,ik->ji", solved, local.derivative[rows])
    curvature = local.curvature[rows]
    rest = np.eye(n_outputs) - curvature @ np.einsum("jik,jim->ikm", X, solved)
    shifts = curvature @ np.einsum("jik,ji->ik", X, to_minimum)[:, :, None]
    shifts = (np.linalg.pinv(rest) @ shifts)[:, :, 0]
    deviations = np.zeros((*local.free.shape, len(rows)))
    deviations[local.free] = -to_minimum - np.einsum("jik,ik->ji", solved, shifts)
    return deviations
