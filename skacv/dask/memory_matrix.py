"""The memory matrix of runs with the squared error whose rows stay on workers.

A column that no update has moved does not enter the derivatives of the iterates. So the
moments of the other columns and of the targets, from one more pass over the rows, are
enough: estimates are computed from them as from a :class:`RowSummary`.
"""

from dataclasses import replace

import numpy as np

from .._estimator.data.row_summary import MOST_COLUMNS, RowSummary
from .._estimator.estimates.memory_matrix import read_memory_matrix
from .._estimator.estimates.readers import FinishedRun
from .._estimator.run.summary_data import summary_data
from ..optim.trajectory import Trajectory
from .summary import merged


def read_risk(estimator, trajectory, data):
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
    moved = trajectory.whole(trajectory.coef.any(axis=(0, 2)))
    columns = np.flatnonzero(moved) if moved.any() else np.arange(1)
    if len(columns) > MOST_COLUMNS:
        raise ValueError(
            f"The run has moved {len(columns)} columns, but risk_path_ of Dask input "
            f"uses moments of at most {MOST_COLUMNS}: set risk=False, and cv=5 to "
            "evaluate iterates on folds."
        )
    found = (columns, data.offset, data.is_flat)
    summary = data.problem.groups.sum(_summarised, *found, combine=merged)
    loss = data.problem.loss
    own, _ = summary_data(summary, loss, estimator.fit_intercept, by_fold=False)
    phases = [
        replace(phase, penalty=phase.penalty.on(columns)) for phase in trajectory.phases
    ]
    coef = trajectory.coef[:, columns].astype(np.float64)
    record = Trajectory.recorded(own.problem, coef, phases)
    return read_memory_matrix(FinishedRun(estimator, record, own, []))


def _summarised(block, columns, offset, is_flat):
    """The summary of some columns of a block, with the targets that were passed."""
    y = block.y + offset
    summary = RowSummary(n_folds=1)
    return summary.partial_fit(
        block.X[:, columns],
        y[:, 0] if is_flat else y,
        block.weight,
        first_row=block.first,
    )
