"""A converged model: what was minimised, where, and how far it is from there."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...optim.penalties import Penalty
from ...optim.problem import Problem

# Least subgradients at a kink are read from a prox of this step size: one that
# every penalty takes, and a power of two, so that it rounds nothing.
KINK_STEP = 2.0**-20


@dataclass(frozen=True)
class ConvergedModel:
    """Coefficients at the minimum of f(b) + g(b), up to a solver's tolerance.

    Attributes
    ----------
    problem : Problem
        The smooth part f, of row weights of sum one. An intercept is the
        coefficient of a column of the design. Several outputs only where the
        loss couples them.
    penalty : Penalty
        The g, which spares an intercept that was not penalised.
    coef : ndarray of shape (n_columns, n_outputs)
    penalty_shares : ndarray of shape (n_rows,)
        The share of the penalty that leaves with a row: zero where the
        estimator's objective is a sum over rows, the row's weight where it is a
        mean (whose refit divides by the weight that stays).
    """

    problem: Problem
    penalty: Penalty
    coef: np.ndarray
    penalty_shares: np.ndarray

    is_pinned = False

    @property
    def counts(self):
        """Which rows had a part in the objective: those of positive weight."""
        return self.problem.row_weights[:, 0] > 0

    @cached_property
    def predictor(self):
        """Linear predictors of the rows, (n_rows, n_outputs)."""
        return self.problem.design.dot(self.coef)

    @cached_property
    def derivative(self):
        """Derivatives of f in the predictors, (n_rows, n_outputs)."""
        problem = self.problem
        slope = problem.loss.derivative(problem.target, self.predictor)
        return problem.row_weights * slope

    def losses(self, predictor):
        """Losses of the rows at other predictors, (n_rows, 1 or n_outputs)."""
        return self.problem.loss.reported(self.problem.target, predictor)

    def output(self, k):
        """The model of one output, where the loss does not couple them."""
        problem = replace(self.problem, target=self.problem.target[:, [k]])
        return replace(self, problem=problem, coef=self.coef[:, [k]])

    def relative_gradient(self):
        """How far the model is from its minimum.

        The norm of the least subgradient, over the root of the sum of squares
        of the gradients of single rows. A row moves the coefficients by about
        1 / root(n) of that unit, so at r the distance is that of r root(n) rows.
        """
        design, penalty = self.problem.design, self.penalty
        smooth = design.t_dot(self.derivative)
        least = np.where(
            penalty.is_free(self.coef),
            smooth + penalty.gradient(self.coef),
            penalty.prox(-KINK_STEP * smooth, KINK_STEP) / KINK_STEP,
        )
        square = (least**2).sum()
        scale = design.squared_row_norms() @ (self.derivative**2).sum(axis=1)
        # Where no row has a slope, a gradient that is not zero is all there is.
        return float(np.sqrt(square / scale)) if scale > 0 else float(square > 0)


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
        Correction of the mean loss of these predictors by debiasing.
    """

    predictor: np.ndarray
    leverages: np.ndarray
    drift: float = 0.0
    correction: float = 0.0
