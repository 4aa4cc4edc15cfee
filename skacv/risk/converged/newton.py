"""Leave-one-out of a model at the minimum of its objective, without refits.

The model minimises

    sum_i w_i l(y_i, x_i'b + b_0) + l1 ||b||_1 + (l2 / 2) ||b||^2,

and the objective of a row left out is replaced by its quadratic expansion at
the fitted coefficients theta, on those that are not zero where l1 > 0. With
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

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse

from ...optim.losses import Loss
from ...optim.penalties import soft_threshold
from .hessian import Expansion, factor, leverages, reduced

# A row without which nothing determines a coefficient has leverage 1.
FULL_LEVERAGE = 1 - 1e-10


class HeldOut(NamedTuple):
    """Predictors of the rows by the models that never saw them.

    Attributes
    ----------
    predictor : ndarray of shape (n_rows, n_outputs)
    leverages : ndarray of shape (n_rows, n_outputs)
        w_i l''_i h_i, the share of its predictor that a row determines itself,
        between 0 and 1; of coupled outputs the diagonal of that matrix.
    drift : float
        How much the step to the minimum of the fitted model's own objective
        moves the predictors, relative to leaving rows out (root mean squares).
        Unlike the gradient it sees directions in which the objective is flat.
    correction : float
        What debiasing adds to the mean cost of these predictors.
    """

    predictor: np.ndarray
    leverages: np.ndarray
    drift: float = 0.0
    correction: float = 0.0


@dataclass(frozen=True)
class ConvergedModel:
    """What was minimised, over which rows, and where.

    Attributes
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_columns), float64
        Without a column for an unpenalised intercept.
    target : ndarray of shape (n_rows, n_outputs)
    loss : Loss
        Several outputs only where they are coupled.
    row_weights : ndarray of shape (n_rows, 1)
        The w_i of the sum.
    coef : ndarray of shape (n_columns, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    l1, l2 : float
        Strengths of the penalty, in the sum form.
    has_intercept : bool
        Whether the intercept was fitted too, unpenalised.
    penalty_shares : ndarray of shape (n_rows,)
        The share of the penalty that leaves with a row: zero where the
        objective is a sum, w_i / sum w where it is a mean (whose refit
        divides by the weight that stays).
    """

    X: np.ndarray | sparse.csr_matrix
    target: np.ndarray
    loss: Loss
    row_weights: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    l1: float
    l2: float
    has_intercept: bool
    penalty_shares: np.ndarray

    is_pinned = False

    @property
    def counts(self):
        """Which rows had a part in the objective: those of positive weight."""
        return self.row_weights[:, 0] > 0

    @property
    def predictor(self):
        """X b + b_0, (n_rows, n_outputs)."""
        return self.X @ self.coef + self.intercept

    def cost(self, predictor):
        """What the rows cost with other predictors, (n_rows, 1 or n_outputs)."""
        return self.loss.cost(self.target, predictor)

    def relative_gradient(self):
        """How far the model is from its minimum.

        The norm of the least subgradient, over the root of the sum of squares
        of the gradients of single rows. A row moves the coefficients by about
        1 / root(n) of that unit, so at r the distance is that of r root(n) rows.

        Returns
        -------
        float
        """
        rows = self.row_weights * self.loss.derivative(self.target, self.predictor)
        smooth = self.X.T @ rows + self.l2 * self.coef
        least = np.where(
            self.coef != 0,
            smooth + self.l1 * np.sign(self.coef),
            soft_threshold(smooth, self.l1),
        )
        square = (least**2).sum() + self.has_intercept * (rows.sum(axis=0) ** 2).sum()
        return relative_norm(square, self.X, rows, self.has_intercept)


def relative_norm(square, X, rows, has_intercept):
    """Root of ``square`` over that of sum_i ||x_i||^2 ||rows_i||^2, 0 for 0 / 0."""
    squared = X.multiply(X) if sparse.issparse(X) else X**2
    norms = np.asarray(squared.sum(axis=1)).ravel() + has_intercept
    scale = norms @ (rows**2).sum(axis=1)
    # Rows that pull at nothing leave a gradient of rounding errors, if any.
    return float(np.sqrt(square / scale)) if scale > 0 else float(square > 0)


def newton_step(model):
    """One Newton step from the fitted coefficients to those without each row.

    Parameters
    ----------
    model : ConvergedModel

    Returns
    -------
    HeldOut

    Raises
    ------
    ValueError
        If the model without some row is not determined.
    """
    local, blocks, step, drift = _expanded(model)
    pull = blocks @ local.curvature
    check_determined(pull)
    rest = np.eye(pull.shape[1]) - pull
    moved = np.linalg.solve(rest, step[:, :, None])[:, :, 0]
    return HeldOut(local.predictor + moved, _diagonals(pull), drift)


def infinitesimal_jackknife(model):
    """First order in the weight of each row.

    Parameters and result are those of :func:`newton_step`.
    """
    local, blocks, step, drift = _expanded(model)
    pull = blocks @ local.curvature
    return HeldOut(local.predictor + step, _diagonals(pull), drift)


def _expanded(model):
    """The expansion, x_i'H^-1 x_i of every row, the jackknife's shifts, the drift."""
    local = reduced(expansion(model))
    solver = factor(local)
    blocks = leverages(local, solver)
    whole, penalty = drifts(local, solver)
    own = np.einsum("ikl,il->ik", blocks, local.derivative)
    step = own - whole + model.penalty_shares[:, None] * penalty
    return local, blocks, step, relative_drift(model, whole, own)


def relative_drift(model, whole, own):
    """Size of the shifts by the whole gradient over those by single rows."""
    scale = np.linalg.norm(own[model.counts])
    drift = np.linalg.norm(whole[model.counts])
    return float(drift / scale) if scale > 0 else float(drift > 0)


def drifts(local, solver):
    """x_i'H^-1 g of every row for the whole gradient and for the penalty's.

    Returns
    -------
    whole, penalty : ndarray of shape (n_rows, n_outputs)
    """
    moves = solver.solve(np.concatenate([local.gradients, local.penalty_gradients], 1))
    parts = np.split(moves, local.offsets[1:-1])
    products = np.stack([A @ part for A, part in zip(local.designs, parts)], axis=1)
    return products[:, :, 0], products[:, :, 1]


def expansion(model):
    """The objective to second order, in the coefficients that are free to move.

    Returns
    -------
    Expansion
    """
    predictor = model.predictor
    weights = model.row_weights
    derivative = weights * model.loss.derivative(model.target, predictor)
    curvature = model.loss.curvature_matrix(model.target, predictor)
    designs, gradients, penalties, ridge = [], [], [], []
    # The curvature that stays when a row of average weight takes its share along.
    l2 = model.l2 * (1 - model.penalty_shares[model.counts].mean())
    for k, (A, free) in enumerate(_free_columns(model)):
        coef = model.coef[free, k]
        slope = np.zeros(A.shape[1])
        slope[: len(coef)] = model.l1 * np.sign(coef) + model.l2 * coef
        diagonal = np.zeros(A.shape[1])
        diagonal[: len(coef)] = l2
        designs.append(A)
        gradients.append(A.T @ derivative[:, k] + slope)
        penalties.append(slope)
        ridge.append(diagonal)
    return Expansion(
        designs=designs,
        predictor=predictor,
        derivative=derivative,
        curvature=weights[:, :, None] * curvature,
        gradients=np.concatenate(gradients)[:, None],
        penalty_gradients=np.concatenate(penalties)[:, None],
        ridge=np.concatenate(ridge),
        has_intercept=model.has_intercept,
    )


def _free_columns(model):
    """For every output the columns that may move, with ones for the intercept."""
    n_outputs = model.coef.shape[1]
    if model.l1 == 0:
        every = slice(None)
        return [(_with_ones(model.X, model.has_intercept), every)] * n_outputs
    supports = [np.flatnonzero(model.coef[:, k]) for k in range(n_outputs)]
    # The sum of the intercepts of several classes stays what the solver left it at.
    # Centring by other columns for every class would make another sum of it.
    centred = n_outputs == 1
    return [
        (_with_ones(model.X[:, support], model.has_intercept, centred), support)
        for support in supports
    ]


def _with_ones(X, has_intercept, centred=True):
    """A column of ones beside X; with it, dense columns may be centred."""
    if not has_intercept:
        return X
    if sparse.issparse(X):
        return sparse.hstack([X, np.ones((X.shape[0], 1))], format="csr")
    A = np.empty((X.shape[0], X.shape[1] + 1))
    np.subtract(X, X.mean(axis=0) if centred else 0, out=A[:, :-1])
    A[:, -1] = 1
    return A


def check_determined(pull):
    """Refuse rows without which the Hessian is singular."""
    alone = np.linalg.eigvals(pull).real.max(axis=1) > FULL_LEVERAGE
    if alone.any():
        raise ValueError(
            f"Without row {np.flatnonzero(alone)[0]} (and {alone.sum() - 1} others) "
            "the model is not determined: its leverage is 1. Penalise the "
            "coefficients, or take method='ij'."
        )


def _diagonals(blocks):
    return np.einsum("ikk->ik", blocks).copy()
