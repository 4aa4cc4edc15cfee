"""Replicas of the recorded run that leave rows out, in lockstep: exact, any loss.

Every replica takes the steps of the recorded run, on rows weighted its own
way; all share each pass over X. Leaving out folds and leaving out single rows
are the same thing here.
"""

from dataclasses import dataclass, replace

import numpy as np

from ...optim.run import advanced


@dataclass(frozen=True)
class Replicas:
    """Runs of one problem with other row weights.

    Attributes
    ----------
    row_weights : ndarray of shape (n_rows, n_replicas)
        Zero on the rows left out; every column sums to one.
    penalty_scale : ndarray of shape (n_replicas,)
        What the penalty's strength is multiplied by.
    fit_intercept : bool
        Whether every replica centres X and y by its own means.
    """

    row_weights: np.ndarray
    penalty_scale: np.ndarray
    fit_intercept: bool

    @classmethod
    def without(cls, problem, stays, fit_intercept, penalty_scale):
        """Replicas on the rows that stay, (n_rows, n_replicas) of bool.

        The weights of a problem with shared weights are brought back to a sum
        of one; ``penalty_scale`` is a function of the share of them that stays.
        """
        weights = np.where(stays, problem.row_weights.astype(np.float64), 0.0)
        share = weights.sum(axis=0)
        scale = np.broadcast_to(penalty_scale(share), share.shape)
        return cls(weights / share, scale, fit_intercept)

    @classmethod
    def in_batches(cls, problem, stays):
        """The same of a run in batches, which count as if all their rows were there."""
        weights = np.where(stays, problem.row_weights.astype(np.float64), 0.0)
        return cls(weights, np.ones(stays.shape[1]), fit_intercept=False)

    def __len__(self):
        return self.row_weights.shape[1]

    def training_error(self, problem, predictors):
        """Loss of every replica on its own rows, (n_replicas,)."""
        loss = problem.loss.value(problem.target[:, :, None], predictors)
        return np.einsum("ir,ikr->r", self.row_weights, loss.astype(np.float64))


def replayed(problem, trajectory, replicas):
    """The iterates of a run, as every replica would have them.

    Parameters
    ----------
    problem : Problem
    trajectory : Trajectory
        Of that problem: its start and its updates are taken.
    replicas : Replicas

    Yields
    ------
    coef : ndarray of shape (n_columns, n_outputs, n_replicas)
    predictors : ndarray of shape (n_rows, n_outputs, n_replicas)
        Of all rows, with the replicas' own intercepts; for every iterate.
    """
    dtype = problem.design.dtype
    target = problem.target[:, :, None]
    weights = replicas.row_weights.astype(dtype)[:, None, :]
    scale = replicas.penalty_scale.astype(dtype)

    def predictor(coef):
        """Linear predictors, with every replica's own intercept."""
        product = _side_by_side(problem.design.dot, coef)
        if replicas.fit_intercept:
            product -= (weights * (product - target)).sum(axis=0)
        return product

    coef = before_coef = np.repeat(trajectory.coef[0][:, :, None], len(replicas), 2)
    found = before_found = predictor(coef)
    yield coef, found
    for t, before, step, penalty in trajectory.updates():
        if before == t:
            before_coef, before_found = coef, found
        if step.batches:
            following = _through_batches(problem, penalty, step, coef, weights, scale)
        elif step.is_newton:
            directions = [
                replace(problem, row_weights=weights[:, :, r]).newton_direction(
                    penalty, coef[:, :, r], found[:, :, r], scale[r]
                )
                for r in range(len(replicas))
            ]
            following = coef - step.step_size * np.stack(directions, axis=2)
        else:
            point = step.gradient_point(found, before_found)
            gradient = _gradient(problem, point, weights)
            following = advanced(penalty, step, coef, before_coef, gradient, scale)
        before_coef, coef = coef, following
        before_found, found = found, predictor(coef)
        yield coef, found


def _through_batches(problem, penalty, step, coef, weights, scale):
    """The replicas' iterates after an update on every batch of the step."""
    for rows in step.batches:
        batch = problem.batch(rows)
        point = _side_by_side(batch.design.dot, coef)
        own_weights = weights[rows] * (len(weights) / len(rows))
        gradient = _gradient(batch, point, own_weights)
        coef = advanced(penalty, step, coef, coef, gradient, scale)
    return coef


def _gradient(problem, point, weights):
    """Gradient of every replica's loss, at linear predictors, of coef's shape."""
    slope = problem.loss.derivative(problem.target[:, :, None], point)
    return _side_by_side(problem.design.t_dot, weights * slope)


def _side_by_side(product, array):
    """A product with a matrix, of all columns of (n, n_outputs, n_replicas)."""
    found = product(array.reshape(len(array), -1))
    return found.reshape(len(found), *array.shape[1:])


def check_stable(problem, trajectory, replicas, suspects):
    """Raise where a step of the run is too large for a replica.

    On fewer rows X'X / n may have a larger top eigenvalue. ``suspects`` are the
    replicas whose training error has risen.
    """
    for r in suspects:
        weights = replicas.row_weights[:, [r]].astype(problem.design.dtype)
        design = problem.design
        if replicas.fit_intercept:
            design = design.centered(weights)
        own = replace(problem, design=design, row_weights=weights)
        for phase in trajectory.phases:
            curvature = phase.penalty.curvature * replicas.penalty_scale[r]
            stable = phase.schedule.largest_stable_step(own.smoothness + curvature)
            if phase.schedule.step_size > stable:
                raise ValueError(
                    "The iterates diverge where rows are left out, with step_size="
                    f"{phase.schedule.step_size:.6g}, though they do not on all rows: "
                    f"the largest stable step is {stable:.6g} there. Use a smaller "
                    'one or step_size="auto", or leave fewer rows out.'
                )
