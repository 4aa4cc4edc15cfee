"""A run at the points where its gradients are taken: slopes and curvatures there."""

from dataclasses import dataclass

import numpy as np

from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from .modes import AlongRun


@dataclass(frozen=True)
class GradientPoints:
    """What the rows pull by, and how that bends, wherever a gradient is taken.

    Slopes are those of n times the rows' weights times the loss. With momentum a
    gradient is taken beyond the last iterate.

    Attributes
    ----------
    problem : Problem
    trajectory : Trajectory
    ahead : ndarray of shape (n_updates, 1, 1)
        How far beyond the last iterate, in units of the step that led to it.
    before : ndarray of int, shape (n_updates,)
        The row of the record from which that step came.
    """

    problem: Problem
    trajectory: Trajectory
    ahead: np.ndarray
    before: np.ndarray

    @classmethod
    def of(cls, problem, trajectory):
        """The gradient points of a run."""
        taken = list(trajectory.updates())
        # The point is affine in the last two iterates: it says its weights itself.
        ahead = [each.update.point(1.0, 0.0) - 1.0 for each in taken]
        ahead = np.array(ahead, problem.design.dtype).reshape(-1, 1, 1)
        before = np.array([each.before for each in taken], int)
        return cls(problem, trajectory, ahead, before)

    def at(self, t):
        """Linear predictors of all rows at the gradient of update t, or at the end."""
        predictor = self.trajectory.predictor
        if t == len(self.ahead) or self.ahead[t] == 0:
            return predictor[t]
        return predictor[t] + self.ahead[t] * (predictor[t] - predictor[self.before[t]])

    def curvature(self, t):
        """Curvature of every row where :meth:`at` is, times n and its weight.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs) or, where the loss couples these, \
(n_rows, n_outputs, n_outputs)
        """
        problem = self.problem
        curvature = problem.loss.curvature(problem.target, self.at(t))
        weights = len(problem.target) * problem.row_weights[:, :1]
        return curvature * weights.reshape(-1, *(1,) * (curvature.ndim - 1))

    def slopes(self):
        """Minus the slopes of all rows at all gradients, as :class:`AlongRun`."""
        problem, predictor = self.problem, self.trajectory.predictor
        weights = len(problem.target) * problem.row_weights

        def slopes(rows):
            points = predictor[:-1, rows]
            if self.ahead.any():
                step = points - predictor[self.before, rows]
                step *= self.ahead
                step += points
                points = step
            # Replicas come last where a loss takes several predictors of a row.
            found = problem.loss.derivative(
                problem.target[rows, :, None], np.moveaxis(points, 0, 2)
            )
            found = np.moveaxis(found, 2, 0)
            return found * -weights[rows]

        shape = len(predictor) - 1, *predictor.shape[1:]
        return AlongRun(shape, slopes)
