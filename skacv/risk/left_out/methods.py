"""Leave-one-out along a recorded run: the entry point, and its four methods.

Entry t of the path is the mean over rows of the loss, on the row, of iterate t of the
same run without the row. Nothing is refitted. The fastest method that applies to a run
is used, see :func:`method_for`. All are exact but "linearised".

A method is chosen by a :class:`~skacv.risk.cost.RunCost`, which may be only planned:
how many rows are worth leaving out is decided before the run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..cost import MANY_ROWS, RunCost, is_decomposed
from ..leave_out_rule import LeaveOutRule, LeftOutRows, check_unseen
from .linearised import linearised_predictors
from .replicas import check_stable, record_of_replicas, replicas_at_a_time
from .screened import screened_residuals
from .spectral import coefficient_deviations, spectral_residuals

# Rows are left out again, exactly, where linearising is estimated to change their
# predictors by more, in the loss's own unit.
LARGEST_ERROR = 0.01


@dataclass(frozen=True)
class LeaveOneOutTask:
    """Rows to be left out of a recorded run, one at a time.

    ``rule`` is that for a run like this one. ``map(function, blocks)`` goes through
    ``n_blocks`` independent blocks of rows, or more.
    """

    problem: Problem
    trajectory: Trajectory
    rows: np.ndarray
    rule: LeaveOutRule
    correction: bool = True
    n_blocks: int = 1
    map: Callable = map

    @property
    def cost(self):
        return RunCost.recorded(self.problem, self.trajectory, self.correction)

    @property
    def rows_per_block(self):
        return -(-len(self.rows) // self.n_blocks)

    def left_out(self):
        return LeftOutRows.of(self.problem, self.rows, self.rule)

    def arguments(self):
        """The arguments that the methods share."""
        left_out = self.left_out()
        return self.problem, self.trajectory, left_out, self.rows_per_block, self.map

    def outputs(self):
        """A task for every output that has a loss by itself."""
        n_outputs = self.problem.target.shape[1]
        if n_outputs == 1 or self.problem.loss.is_coupled:
            return [self]
        return [
            replace(
                self,
                problem=replace(self.problem, target=self.problem.target[:, [k]]),
                trajectory=self.trajectory.of_output(k),
            )
            for k in range(n_outputs)
        ]


def method_for(run, has_coefficients=False):
    """The name of the fastest method for a run, a RunCost.

    ``has_coefficients``: only those that compute coefficients as well.
    """
    is_small = is_decomposed(run.shape, run.has_columns)
    if run.is_quadratic and is_small and not has_coefficients and run.has_one_basis():
        return "spectral"
    if run.is_quadratic and run.is_elementwise() and not run.n_batches:
        return "screened"
    if not run.is_quadratic and run.is_elementwise() and run.is_worth_linearising():
        return "linearised"
    return "replicas"


def n_rows_worth(run, n_active):
    """Number of rows that can be left out in about the time of folds.

    ``n_active`` is the number of columns that the run uses at most.
    """
    method = method_for(run)
    if method == "spectral":
        return min(run.shape[0], MANY_ROWS)
    n_exact = {"linearised": run.n_corrected(), "replicas": run.n_updates}
    return run.n_rows_worth(n_active, n_exact.get(method, 0))


def is_cheap(run):
    """Whether leaving out every row takes about as long as a few folds."""
    return method_for(run) == "spectral" and run.is_decomposed_cheaply()


def leave_one_out(problem, trajectory, rows, rule, **settings):
    """Linear predictors of rows, by the iterates that have never seen them.

    Intercepts are included, on the scale of the problem's target. ``settings`` are
    ``correction``, ``n_blocks`` and ``map`` of :class:`LeaveOneOutTask`.

    Shapes: rows (n_left_out,); returned (n_iterates, n_left_out, n_outputs).
    """
    task = _task(problem, trajectory, rows, rule, settings)
    method = method_for(task.cost)
    if method == "spectral":
        predictors = _add_target(spectral_residuals(*task.arguments()), task)
    else:
        tasks = [task] if method == "replicas" else task.outputs()
        predictors = [READ[method](part)[0] for part in tasks]
        predictors = predictors[0] if len(tasks) == 1 else np.concatenate(predictors, 2)
    _check_stable(task, predictors)
    return predictors


def coefficients_without(problem, trajectory, rows, rule, **settings):
    """The last iterate of one output without each of some rows, and its intercept.

    The intercept is that on the centred data.

    Shapes: returned coef (n_left_out, n_columns), intercept (n_left_out,).
    """
    task = _task(problem, trajectory, rows, rule, settings)
    return coefficients_of(task, method_for(task.cost, has_coefficients=True))


def coefficients_of(task, method):
    """As :func:`coefficients_without`, by one of the methods in ``READ``."""
    predictors, coefficients = READ[method](task)
    residuals = predictors[-1, :, 0] - task.problem.target[task.rows, 0]
    return coefficients(), task.left_out().intercept_shifts(residuals)


def spectral_coefficients(task, held_out):
    """The same for linear updates from zero, from held-out residuals.

    Inner products of the design are those of rows.

    Shapes: held_out (n_iterates, n_left_out).
    """
    left_out = task.left_out()
    deviations = coefficient_deviations(
        task.problem, task.trajectory, left_out, held_out
    )
    coef = task.trajectory.coef[-1].T + deviations.T
    return coef, left_out.intercept_shifts(held_out[-1])


def _task(problem, trajectory, rows, rule, settings):
    check_unseen(rows, trajectory)
    # The scales of all rows serve every row that is left out by itself.
    rule = replace(rule.of_run(trajectory), columns=None)
    return LeaveOneOutTask(problem, trajectory, rows, rule, **settings)


def _check_stable(task, predictors, suspicious=10):
    """Raise if predictors of a row diverge because a step is too large.

    The largest stable step takes an eigenvalue: only for the row whose predictor
    changes most, and only if by ``suspicious`` times the largest target.
    """
    if task.trajectory.n_batches():
        return
    problem = task.problem
    change = np.abs(predictors[-1] - predictors[0]).max(axis=1)
    furthest = change.argmax()
    # Where predictors overflow the comparison is false, too.
    if change[furthest] <= suspicious * np.abs(problem.target).max():
        return
    train_mask = np.arange(len(problem.target)) != task.rows[furthest]
    weights = task.rule.without(problem, train_mask[:, None])
    check_stable(problem, task.trajectory, weights, [0])


def _screened(task):
    """Updates with a prox and the squared error: deviations on few columns."""
    residuals, (deviations, order) = screened_residuals(*task.arguments())

    def coefficients():
        coef, first = np.repeat(task.trajectory.coef[-1].T, len(order), 0), 0
        for index, deviation in deviations:
            coef[first : first + len(deviation), index] += deviation
            first += len(deviation)
        return coef[order]

    return _add_target(residuals[:, :, None], task), coefficients


def _linearised(task):
    """Curved losses, linearised at the run, and exact where that is inaccurate."""
    predictors, deviations, error_estimate = linearised_predictors(
        *task.arguments(), task.correction
    )
    coef = task.trajectory.coef[-1] + deviations
    inaccurate = np.flatnonzero(
        error_estimate > LARGEST_ERROR * task.problem.loss.scale
    )
    if inaccurate.size:
        exact = _by_replicas(replace(task, rows=task.rows[inaccurate]))
        predictors[:, inaccurate], coef[inaccurate] = exact
    return predictors, lambda: coef[:, :, 0]


def _replicated(task):
    """Any update and any loss: a replica of the run for every row."""
    predictors, coef = _by_replicas(task)
    return predictors, lambda: coef[:, :, 0]


# Functions of a task of one output, or of coupled ones; of several for "replicas". They
# return held-out predictors, (n_iterates, n_left_out, n_outputs), and a function
# without arguments: the coefficients of the last iterate of one output, (n_left_out,
# n_columns).
READ = {"screened": _screened, "linearised": _linearised, "replicas": _replicated}


def _by_replicas(task):
    """Leave rows out by replicas: predictors, and coefficients of the last iterate.

    Shapes: returned (n_iterates, n_left_out, n_outputs), (n_left_out, n_columns,
    n_outputs).
    """
    size = min(replicas_at_a_time(task.problem), task.rows_per_block)
    blocks = np.array_split(task.rows, -(-len(task.rows) // size))
    replay = partial(_replay_without_rows, task.problem, task.trajectory, task.rule)
    predictors, coef = zip(*task.map(replay, blocks))
    return np.concatenate(predictors, axis=1), np.concatenate(coef)


def _replay_without_rows(problem, trajectory, rule, rows):
    train_mask = np.ones((len(problem.target), len(rows)), dtype=bool)
    train_mask[rows, np.arange(len(rows))] = False
    held_out = rows[:, None]
    coef, record = record_of_replicas(problem, trajectory, rule, train_mask, held_out)
    return record.predictors(problem.design, held_out), np.moveaxis(coef, 2, 0)


def _add_target(residuals, task):
    """Predictors from residuals, in place: they may be the largest array of a fit."""
    residuals += task.problem.target[task.rows]
    return residuals
