"""Leave-one-out along a recorded run: the entry point, and its four methods.

Entry t of the path is the mean over rows of the loss, on the row, of iterate t of the
same run without the row. Nothing is refitted. The fastest method that applies to a run
is used, see :func:`~skacv.risk.cost.method_for`. All are exact but "linearised".

A method is chosen by a :class:`~skacv.risk.cost.RunCost`, which may be only planned:
how many rows are worth leaving out is decided before the run.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from ...optim.problem import Problem
from ...optim.trajectory import Trajectory
from ..cost import RunCost, method_for
from ..held_out_rows import LeaveOutRule, LeftOutRows
from .linearised import linearised_predictors
from .replicas import check_stable, record_of_replicas, replicas_at_a_time
from .screened import screened_residuals
from .spectral import coefficient_deviations, spectral_residuals

# Rows are left out again, exactly, where linearising is estimated to change their
# predictors by more, in the loss's own unit.
LARGEST_ERROR = 0.01


@dataclass(frozen=True)
class LeaveOneOutTask:
    """Rows to be left out of a recorded run, one at a time, by a rule for such runs."""

    problem: Problem
    trajectory: Trajectory
    rows: np.ndarray
    rule: LeaveOutRule
    correction: bool = True
    # ``map(function, blocks)`` goes through ``n_blocks`` independent blocks of rows, or
    # more.
    n_blocks: int = 1
    map: Callable = map

    @classmethod
    def of(cls, problem, trajectory, rows, rule, **settings):
        """The task by any rule; Unreadable where a preconditioner has seen a row."""
        # The scales of all rows serve every row that is left out by itself.
        rule = replace(rule.of_run(trajectory, rows), columns=None)
        return cls(problem, trajectory, rows, rule, **settings)

    def arguments(self) -> tuple[Problem, Trajectory, LeftOutRows, int, Callable]:
        """The arguments that the methods share."""
        left_out = LeftOutRows.of(self.problem, self.rows, self.rule)
        rows_per_block = -(-len(self.rows) // self.n_blocks)
        return self.problem, self.trajectory, left_out, rows_per_block, self.map

    def outputs(self):
        """A task for every output that has a loss by itself."""
        n_outputs = self.problem.target.shape[1]
        if n_outputs == 1 or self.problem.loss.is_coupled:
            return [self]
        return [
            replace(
                self,
                problem=replace(self.problem, target=self.problem.target[:, [k]]),
                trajectory=self.trajectory.select_output(k),
            )
            for k in range(n_outputs)
        ]


def leave_one_out(problem, trajectory, rows, rule, **settings):
    """Linear predictors of rows by the iterates that have never seen them.

    Shapes: rows (n_left_out,); returned (n_iterates, n_left_out, n_outputs).
    """
    # Intercepts are included, on the scale of the problem's target. ``settings`` are
    # ``correction``, ``n_blocks`` and ``map`` of LeaveOneOutTask.
    task = LeaveOneOutTask.of(problem, trajectory, rows, rule, **settings)
    run = RunCost.recorded(problem, trajectory, task.correction)
    method = method_for(run)
    if method == "spectral":
        # Changed in place: they may be the largest array of a fit.
        predictors = spectral_residuals(*task.arguments())
        predictors += problem.target[rows]
    else:
        parts = []
        for part in [task] if method == "replicas" else task.outputs():
            parts.append(READ[method](part)[0])
        predictors = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)
    if run.n_batches:
        return predictors
    # A step that is too large for a replica is looked for, which takes an eigenvalue,
    # only in the one whose predictor changes most, by ten times the largest target.
    change = np.abs(predictors[-1] - predictors[0]).max(axis=1)
    furthest = change.argmax()
    # Where predictors overflow the comparison is false, too.
    if not change[furthest] <= 10 * np.abs(problem.target).max():
        train_mask = np.arange(len(problem.target)) != rows[furthest]
        weights = task.rule.without(problem, train_mask[:, None])
        check_stable(problem, trajectory, weights, [0])
    return predictors


def coefficients_without(task, method=None):
    """The last iterate of one output without each row, by a method or the fastest.

    Shapes: returned coef (n_left_out, n_columns), intercept on centred data
    (n_left_out,).
    """
    if method is None:
        run = RunCost.recorded(task.problem, task.trajectory, task.correction)
        method = method_for(run, has_coefficients=True)
    predictors, coefficients = READ[method](task)
    residuals = predictors[-1, :, 0] - task.problem.target[task.rows, 0]
    left_out = LeftOutRows.of(task.problem, task.rows, task.rule)
    return coefficients()[:, :, 0], left_out.intercept_shifts(residuals)


def spectral_coefficients(task, held_out):
    """``coefficients_without`` of linear updates from zero, by held-out residuals."""
    # Inner products of the design are those of rows. Shapes: held_out (n_iterates,
    # n_left_out).
    left_out = LeftOutRows.of(task.problem, task.rows, task.rule)
    deviations = coefficient_deviations(
        task.problem, task.trajectory, left_out, held_out
    )
    coef = task.trajectory.coef[-1].T + deviations.T
    return coef, left_out.intercept_shifts(held_out[-1])


def _screened(task):
    """Leave-one-out of updates with a prox and the squared error."""
    residuals, (deviations, order) = screened_residuals(*task.arguments())

    def coefficients():
        coef, first = np.repeat(task.trajectory.coef[-1].T, len(order), 0), 0
        for index, deviation in deviations:
            coef[first : first + len(deviation), index] += deviation
            first += len(deviation)
        return coef[order][:, :, None]

    residuals += task.problem.target[task.rows, 0]
    return residuals[:, :, None], coefficients


def _linearised(task: LeaveOneOutTask):
    """Leave-one-out of curved losses, linearised or, where inaccurate, exact."""
    predictors, deviations, error_estimate = linearised_predictors(
        *task.arguments(), correction=task.correction
    )
    coef = task.trajectory.coef[-1] + deviations
    inaccurate = np.flatnonzero(
        error_estimate > LARGEST_ERROR * task.problem.loss.scale
    )
    if inaccurate.size:
        exact, exact_coef = _replicated(replace(task, rows=task.rows[inaccurate]))
        predictors[:, inaccurate], coef[inaccurate] = exact, exact_coef()
    return predictors, lambda: coef


def _replicated(task):
    """Leave-one-out of any update and any loss, by a replica for every row."""
    rows_per_block = -(-len(task.rows) // task.n_blocks)
    size = min(replicas_at_a_time(task.problem), rows_per_block)
    blocks = np.array_split(task.rows, -(-len(task.rows) // size))
    replay = partial(_replay_without_rows, task.problem, task.trajectory, task.rule)
    predictors, coef = zip(*task.map(replay, blocks))
    return np.concatenate(predictors, axis=1), lambda: np.concatenate(coef)


# Functions of a task of one output, or of coupled ones; of several for "replicas". They
# return held-out predictors, (n_iterates, n_left_out, n_outputs), and a function
# without arguments: the coefficients of the last iterate, (n_left_out, n_columns,
# n_outputs).
READ = {"screened": _screened, "linearised": _linearised, "replicas": _replicated}


def _replay_without_rows(problem, trajectory, rule, rows):
    train_mask = np.ones((len(problem.target), len(rows)), dtype=bool)
    train_mask[rows, np.arange(len(rows))] = False
    held_out = rows[:, None]
    coef, record = record_of_replicas(problem, trajectory, rule, train_mask, held_out)
    return record.predictors(problem.design, held_out), np.moveaxis(coef, 2, 0)
