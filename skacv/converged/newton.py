"""Leave-one-out of a model at the minimum of its objective, without refits.

The model minimises sum_i w_i l(y_i, x_i'b) + g(b), and the objective of a row
left out is replaced by its quadratic expansion at the fitted coefficients theta,
on those that are free to move: not at a kink of the penalty g. With
H_{-i} its Hessian and g_{-i} its gradient at theta, the model without row i is

    theta - H_{-i}^-1 g_{-i}                                   (Newton step)
    theta - H^-1 g_{-i}                           (infinitesimal jackknife).

At a minimum, with h_i = x_i'H^-1 x_i and z = X theta, the predictors of the
rows by the models without them are z_i + l'_i h_i / (1 - l''_i h_i) and
z_i + l'_i h_i (w = 1). The Newton step is exact for squared error with a ridge
penalty; it is the approximate leave-one-out (ALO) of Rad & Maleki (2020, eq. 9)
for smooth objectives and its limit on the support for the l1 norm, which
Stephenson & Broderick (2020) bound. Here g_{-i} is the whole gradient, so
that a model some way off its minimum is brought there by the same step.

Where the outputs of a row are coupled, l' is a vector, l'' and h matrices.
"""

import numpy as np

from .expansion import expansion, reduce_to_row_space
from .hessian import factor, leverages
from .model import LooPredictors


def newton_step(model):
    """One Newton step from theta to the minimum without each row, as LooPredictors."""
    leverage, step, drift = _expand(model)
    check_determined(leverage)
    rest = np.eye(leverage.shape[1]) - leverage
    shift = np.linalg.solve(rest, step[:, :, None])[:, :, 0]
    return LooPredictors(model.predictor + shift, np.einsum("ikk->ik", leverage), drift)


def infinitesimal_jackknife(model):
    """The minimum without each row, to first order in its weight, as LooPredictors."""
    leverage, step, drift = _expand(model)
    return LooPredictors(model.predictor + step, np.einsum("ikk->ik", leverage), drift)


def _expand(model):
    """h_i l''_i of every row, the shifts x_i'H^-1 g_{-i}, and the relative drift."""
    local = reduce_to_row_space(expansion(model))
    solver = factor(local)
    blocks = leverages(local, solver)
    by_objective, by_penalty = drifts(local, solver)
    by_row = np.einsum("ikl,il->ik", blocks, local.derivative)
    step = by_row - by_objective + model.penalty_shares[:, None] * by_penalty
    return blocks @ local.curvature, step, relative_drift(model, by_objective, by_row)


def relative_drift(model, by_objective, by_row):
    """The norm of shifts by the whole gradient over that of shifts by single rows."""
    scale = np.linalg.norm(by_row[model.counts])
    drift = np.linalg.norm(by_objective[model.counts])
    return float(drift / scale) if scale > 0 else float(drift > 0)


def drifts(local, solver):
    """x_i'H^-1 g of every row, for the whole gradient and for the penalty's."""
    gradients = np.stack([local.gradient, local.penalty_gradient], axis=2)
    moves = np.zeros_like(gradients)
    moves[local.free] = solver.solve(gradients[local.free])
    products = local.design.dot(np.hstack([moves[:, :, 0], moves[:, :, 1]]))
    return np.hsplit(products, 2)


def check_determined(leverage, tol=1e-10):
    """Raise if the Hessian without some row is singular."""
    # A row without which nothing determines a coefficient has leverage 1.
    is_full = np.linalg.eigvals(leverage).real.max(axis=1) > 1 - tol
    if is_full.any():
        raise ValueError(
            f"Without row {is_full.argmax()} (and {is_full.sum() - 1} others) "
            "the model is not determined: its leverage is 1. Penalise the "
            "coefficients, or use method='ij'."
        )
