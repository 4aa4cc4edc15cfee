"""How far the Newton step without a row ends from the minimum: a second step.

The first step takes the losses of the other rows as parabolas. Where a row determines
much of its own predictor, the coefficients move so far without it that they are not,
and the step is too short as a rule. A second step, by the same Hessian but from the
gradient where the first one has led, shows by how much.
"""

import numpy as np

from ..optim.blocks import LARGE_BYTES, blocks
from .expansion import expansion
from .hessian import factor, leverages
from .support import deviations_without


def second_step(model, rows):
    """Changes of the predictors of rows by a second step without each of them.

    Shapes: rows (n_examined,), returned (n_examined, n_outputs).
    """
    local = expansion(model)
    solver = factor(local)
    # Deviations of every coefficient, and slopes of all rows.
    row_bytes = 8 * (4 * model.coef.size + 4 * model.predictor.size)
    return np.concatenate(
        [
            _changes(model, local, solver, rows[part])
            for part in blocks(len(rows), row_bytes, LARGE_BYTES)
        ]
    )


def _changes(model, local, solver, rows):
    loss, problem = model.problem.loss, model.problem
    deviations = deviations_without(model, local, solver, rows)
    remainders = np.empty((*local.free.shape, len(rows)))
    for number, row in enumerate(rows):
        # What the parabolas of the other rows leave of their slopes.
        shift = local.design.dot(deviations[:, :, number])
        slope = loss.derivative(problem.target, model.predictor + shift)
        expanded = local.derivative + np.einsum("ikl,il->ik", local.curvature, shift)
        remainder = problem.row_weights * slope - expanded
        remainder[row] = 0
        remainders[:, :, number] = local.design.t_dot(remainder)
    steps = np.zeros_like(remainders)
    steps[local.free] = solver.solve(remainders[local.free])
    # The step by the Hessian of all rows, and the curvature of the row taken out.
    examined = local._replace(
        design=local.design.rows(rows), derivative=local.derivative[rows]
    )
    every = np.arange(local.design.shape[1])
    X = examined.design.dense_columns(every, local.design.dtype)
    changes = np.einsum("ij,jki->ik", X, steps)
    shares = leverages(examined, solver) @ local.curvature[rows]
    without_row = np.eye(shares.shape[1]) - shares
    return -np.linalg.solve(without_row, changes[:, :, None])[:, :, 0]
