"""Short runs with a loss, a penalty and a schedule, against separate fits."""

from dataclasses import replace

import numpy as np

from ..optim.arrays import design_of
from ..optim.losses import SquaredError
from ..optim.penalties import Zero
from ..optim.problem import Problem
from ..optim.run import run
from ..risk.held_out_rows import LeaveOutRule
from ..risk.left_out.methods import leave_one_out
from ..risk.left_out.replicas import leave_folds_out
from ..risk.memory.memory_matrix import estimate_risk
from .assertions import require, require_close

NO_PENALTY = Zero()
SQUARED_ERROR = SquaredError()


def problem_of(X, target, loss=SQUARED_ERROR):
    """The problem of all rows with equal weights.

    Shapes: X (n_rows, n_columns), target (n_rows, n_outputs).
    """
    weights = np.full((len(X), 1), 1 / len(X))
    return Problem(design_of(X), target, weights, loss)


def padded(coef, n_iterates):
    """So many iterates of a run, which has ended at its last one if it has fewer."""
    return coef[np.minimum(np.arange(n_iterates), len(coef) - 1)]


def refit_without(problem, phases, rows, rule, n_iterates):
    """Linear predictors of some rows by a separate run of the same updates.

    Shapes: rows (n_left_out,); returned (n_iterates, n_left_out, n_outputs).
    """
    weights = problem.row_weights.copy()
    weights[rows] = 0
    # With batches, or a preconditioner, the other rows keep their weights.
    if rule.renormalises:
        weights /= weights.sum()
    others = replace(problem, row_weights=weights)
    start = np.zeros((1, problem.design.shape[1], problem.target.shape[1]))
    path = padded(run(others, phases, start).coef, n_iterates)
    return np.stack([problem.design.rows(rows).dot(coef) for coef in path])


def short_run(name, problem, phases):
    """The record of a run from zero, which must not fail."""
    start = np.zeros((1, problem.design.shape[1], problem.target.shape[1]))
    try:
        return run(problem, phases, start)
    except ValueError as error:
        raise AssertionError(f"A short run with {name} fails: {error}") from error


def require_refits(name, problem, phases):
    """Leave-one-out and folds along a run are separate runs without the rows.

    Leave-one-out of a curved loss is exact only where there are about as many columns
    as rows.
    """
    trajectory = short_run(name, problem, phases)
    n_rows, n_iterates = len(problem.target), len(trajectory.coef)
    unseen = np.setdiff1d(np.arange(n_rows), trajectory.rows_seen())
    rule = LeaveOutRule().of_run(trajectory, unseen)
    rows = unseen[::3]
    expected = np.concatenate(
        [refit_without(problem, phases, [i], rule, n_iterates) for i in rows], axis=1
    )
    tolerance = 1e-7 * np.abs(expected).max()
    require_close(
        leave_one_out(problem, trajectory, rows, LeaveOutRule()),
        expected,
        f"Leave-one-out along a run with {name} is not what separate runs without each "
        "row predict.",
        atol=tolerance,
    )
    parts = np.array_split(unseen, 3)
    folds = [(np.setdiff1d(np.arange(n_rows), rows), rows) for rows in parts]
    record = leave_folds_out(problem, trajectory, folds, LeaveOutRule())
    for found, rows in zip(record.paths(problem.design, parts), parts):
        require_close(
            found,
            refit_without(problem, phases, rows, rule, n_iterates),
            f"Folds along a run with {name} are not what separate runs without their "
            "rows predict.",
            atol=tolerance,
        )
    return trajectory


def require_memory_matrix(name, problem, trajectory):
    """The estimate by the memory matrix is there and begins at the training loss."""
    path = estimate_risk(problem, trajectory, method="exact").path
    require(
        np.isfinite(path).all() and len(path) == trajectory.n_updates + 1,
        f"The memory matrix of a run with {name} estimates losses that are not finite.",
    )
    require_close(
        path[0],
        problem.mean_loss(trajectory.predictor[0]),
        f"The memory matrix of a run with {name} does not begin at the loss of the "
        "start, which has seen no row.",
        rtol=1e-8,
    )
