"""What is read of a run on workers: folds, single rows, the memory matrix.

Each left-out row has its own fit. The fits take the updates of the run side by side, as
many at a time as the client holds; a round takes one product with all of their
coefficients.

For the memory matrix, a column that no update has moved does not enter the derivatives
of the iterates. So the moments of the other columns and of the targets, from one more
pass over the rows, are enough: estimates are computed from them as from a
:class:`RowSummary`.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._estimator.data.row_summary import MAX_COLUMNS, RowSummary
from .._estimator.estimates.memory_matrix import read_memory_matrix
from .._estimator.estimates.readers import FinishedRun
from .._estimator.run.summary_data import summary_data
from ..optim.blocks import slices
from ..optim.run import Iterates
from ..optim.trajectory import Trajectory, iterate
from ..risk.averages import mean_with_error
from .block_sums import LeftOut
from .problem import FitsOnWorkers
from .summary import merged_summary

# Memory of the client for refits, and arrays of coefficients that each of them has.
REFIT_BYTES, ARRAYS_PER_REFIT = 1 << 28, 8


def read_folds(losses, weights):
    """Fitted attributes of cross-validation.

    Parameters
    ----------
    losses : ndarray of shape (n_iterates, n_folds)
        Over the rows of every fold, times weights whose sum over all rows is one.
    weights : ndarray of shape (n_folds,)
        Weights of the folds.
    """
    by_fold = losses / weights
    path, se_path = mean_with_error(by_fold, weights)
    return {"cv_path_": path, "cv_se_path_": se_path, "cv_fold_path_": by_fold}


def read_rows(estimator, trajectory, data):
    """Fitted attributes of leave-one-out, for as many rows as ``loo`` says.

    Raises
    ------
    ValueError
        If the iterates without some row diverge.
    """
    problem = data.problem
    n_rows = problem.groups.n_rows
    rng = check_random_state(estimator.random_state)
    rows = np.sort(rng.choice(np.arange(n_rows), estimator.loo, replace=False))
    block = problem.groups.take(rows)
    there = np.flatnonzero(block.weight > 0)
    rows, block = rows[there], block.part(there)
    each = ARRAYS_PER_REFIT * problem.target.size * problem.design.dtype.itemsize
    parts = [
        _predictors(problem, trajectory, rows[some], block.part(some))
        for some in slices(len(rows), REFIT_BYTES // each)
    ]
    predictors = np.concatenate(parts, axis=1)
    if not np.isfinite(predictors).all():
        raise ValueError(
            "The iterates without some row diverge, though those on all rows do not: "
            "use a smaller step_size."
        )
    shown, target = block.y + data.offset, block.y[:, :, None]
    losses = problem.loss.reported(target, np.moveaxis(predictors, 0, 2)).mean(axis=1)
    path, se_path = mean_with_error(losses.T, block.weight)
    return {
        "loo_path_": path,
        "loo_se_path_": se_path,
        "loo_prediction_path_": data.predictions(estimator)(predictors),
        "loo_indices_": rows,
        "loo_target_": data.coder.decoded(shown),
    }


def _predictors(problem, trajectory, rows, block):
    """Linear predictors of rows without them, (n_iterates, n_rows, n_outputs)."""
    weight = block.weight
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    X = X.astype(np.float64, copy=False)
    means = problem.means.without(weight, X.T * weight, block.y.T * weight)
    # The scales of all rows serve every row that is left out alone, as in memory.
    fits = FitsOnWorkers(problem, LeftOut(rows, are_rows=True), means)
    refits, found = Iterates.at_rest(fits, trajectory.coef[0]), []

    def note():
        coef, intercept = fits.features_and_intercept(refits.state.current.coef)
        own = [X[k] @ coef[:, :, k] for k in range(len(rows))]
        found.append(np.stack(own) + intercept.T)

    with np.errstate(over="ignore", invalid="ignore"):
        note()
        for _ in iterate(trajectory.updates(), refits):
            note()
    return np.stack(found)


def read_risk(estimator, spec, trajectory, data):
    """Fitted attributes of the memory matrix.

    Parameters
    ----------
    estimator : TrajectoryModel
        With the squared error.
    trajectory : Trajectory
        The record of the run.

    Raises
    ------
    ValueError
        If the run has moved more columns than moments are computed for.
    """
    moved = trajectory.expand_to_groups(trajectory.coef.any(axis=(0, 2)))
    columns = np.flatnonzero(moved) if moved.any() else np.arange(1)
    if len(columns) > MAX_COLUMNS:
        raise ValueError(
            f"The run has moved {len(columns)} columns, but risk_path_ of Dask input "
            f"uses moments of at most {MAX_COLUMNS}: set risk=False, and cv=5 to "
            "evaluate iterates on folds."
        )
    found = (columns, data.offset, data.is_1d)
    summary = data.problem.groups.sum(_summarised, *found, combine=merged_summary)
    loss = data.problem.loss
    own, _ = summary_data(summary, loss, estimator.fit_intercept, by_fold=False)
    phases = [
        replace(phase, penalty=phase.penalty.on(columns)) for phase in trajectory.phases
    ]
    coef = trajectory.coef[:, columns].astype(np.float64)
    record = Trajectory.recorded(own.problem, coef, phases)
    return read_memory_matrix(FinishedRun(estimator, record, own, [], spec=spec))


def _summarised(block, columns, offset, is_1d):
    """The summary of some columns of a block, with the targets that were passed."""
    y = block.y + offset
    summary = RowSummary(n_folds=1)
    return summary.partial_fit(
        block.X[:, columns],
        y[:, 0] if is_1d else y,
        block.weight,
        first_row=block.first,
    )
