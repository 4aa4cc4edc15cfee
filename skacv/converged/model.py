"""A converged model: what was minimised, where, and how far it is from there."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..optim.penalties import Penalty
from ..optim.problem import Problem


@dataclass(frozen=True)
class ConvergedModel:
    """Coefficients at the minimum of f(b) + g(b), up to a solver's tolerance."""

    problem: Problem
    penalty: Penalty
    coef: np.ndarray  # (n_columns, n_outputs)
    # The share of the penalty that leaves with a row, (n_rows,): zero where the
    # objective is a sum over rows, the weight of the row where it is a mean.
    penalty_shares: np.ndarray

    is_pinned = False

    @property
    def counts(self):
        """Mask of the rows of positive weight, which had a part in the objective."""
        return self.problem.row_weights[:, 0] > 0

    @cached_property
    def predictor(self):
        """Linear predictors of the rows, (n_rows, n_outputs)."""
        return self.problem.design.dot(self.coef)

    @cached_property
    def derivative(self):
        """Derivatives of f in the linear predictors, (n_rows, n_outputs)."""
        problem = self.problem
        slope = problem.loss.derivative(problem.target, self.predictor)
        return problem.row_weights * slope

    def losses(self, predictor):
        """Losses of the rows at other predictors, (n_rows, 1 or n_outputs)."""
        return self.problem.loss.reported(self.problem.target, predictor)

    def output(self, k):
        """The model of output k, where the loss does not couple the outputs."""
        problem = replace(self.problem, target=self.problem.target[:, [k]])
        return replace(self, problem=problem, coef=self.coef[:, [k]])

    def relative_gradient(self):
        """The norm of the least subgradient over the size of the rows' gradients."""
        # The unit is the root of the sum of squares of the rows' gradients. A row moves
        # the coefficients by about 1 / root(n) of it, so at r the distance to the
        # minimum is that of r root(n) rows.
        design, penalty = self.problem.design, self.penalty
        smooth = design.t_dot(self.derivative)
        # Least subgradients at a kink are read from a prox of a small step size: a
        # power of two, so that it rounds nothing.
        step_size = np.sqrt(np.finfo(float).eps)
        least = np.where(
            penalty.is_free(self.coef),
            smooth + penalty.gradient(self.coef),
            penalty.prox(-step_size * smooth, step_size) / step_size,
        )
        square = (least**2).sum()
        scale = design.squared_row_norms() @ (self.derivative**2).sum(axis=1)
        # Where no row has a slope, a gradient that is not zero is all there is.
        return float(np.sqrt(square / scale)) if scale > 0 else float(square > 0)


class LooPredictors(NamedTuple):
    """Predictors of the rows by the models that never saw them."""

    predictor: np.ndarray  # (n_rows, n_outputs)
    # w_i l''_i h_i, the share of its predictor that a row determines itself, (n_rows,
    # n_outputs).
    leverages: np.ndarray
    # Shift by the step to the minimum, relative to that by leaving rows out.
    drift: float = 0.0
    # Correction of the mean loss of these predictors, by debiasing.
    correction: float = 0.0
