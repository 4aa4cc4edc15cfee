"""Estimates from a run on workers: folds, single rows, the memory matrix.

Each left-out row has its own fit. The fits take the updates of the run side by side, as
many at a time as fit in memory of the client; a round takes one product with all of
their coefficients.

For the memory matrix, a column whose coefficients are always zero does not enter the
derivatives of the iterates. So the moments of the other columns and of the targets,
from one more pass over the rows, are enough: estimates are computed from them as from a
:class:`RowSummary`.
"""

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._estimator.data.row_summary import MAX_COLUMNS, RowSummary
from .._estimator.estimates.memory_matrix import read_memory_matrix
from .._estimator.estimates.readers import ESTIMATES, FinishedRun
from .._estimator.run.summary_data import summary_data
from ..optim.blocks import MEMORY_BYTES, blocks
from ..optim.run import Iterates
from ..optim.trajectory import Trajectory, iterate
from ..records.held_out import HeldOut
from ..risk.held_out_rows import mean_with_error
from .block_sums import LeftOut
from .problem import FitsOnWorkers
from .summary import merge_summaries


def estimates_of(estimator, spec, trajectory, data, values):
    """Every estimate by its name, None where it is off, as automatic ones are.

    Shapes: values (n_iterates, 2 + n_folds), as of :class:`FoldRuns`.
    """
    estimates, weights = dict.fromkeys(ESTIMATES), data.fold_weights
    if len(weights):
        by_fold = data.problem.reported_losses(values)[:, 2:] / weights
        path, se = mean_with_error(by_fold, weights)
        estimates["cv"] = HeldOut(path, se, more={"fold_path": by_fold})
    for name, read in (("loo", leave_rows_out), ("risk", read_risk)):
        if is_requested(name, estimator):
            estimates[name] = read(estimator, spec, trajectory, data)
    return estimates


def is_requested(name, estimator):
    """Whether a parameter sets an estimate explicitly."""
    return ESTIMATES[name].setting(estimator) not in (False, None, "auto")


def leave_rows_out(estimator, spec, trajectory, data):
    """The leave-one-out estimate, from ``loo`` random rows."""
    problem = data.problem
    n_rows = problem.groups.n_rows
    rng = check_random_state(estimator.random_state)
    rows = np.sort(rng.choice(np.arange(n_rows), estimator.loo, replace=False))
    block = problem.groups.take(rows)
    index = np.flatnonzero(block.weight > 0)
    rows, block = rows[index], block.rows(index)
    # A refit has two iterates, a point, its gradient, and temporaries of these.
    refit_bytes = 8 * problem.design.dtype.itemsize * trajectory.coef[0].size
    parts = [
        _loo_predictors(problem, trajectory, rows[part], block.rows(part))
        for part in blocks(len(rows), refit_bytes, MEMORY_BYTES)
    ]
    predictors = np.concatenate(parts, axis=1)
    if not np.isfinite(predictors).all():
        raise ValueError(
            "The iterates without some row diverge, though those on all rows do not: "
            "use a smaller step_size."
        )
    target = block.y[:, :, None]
    losses = problem.loss.reported(target, np.moveaxis(predictors, 0, 2)).mean(axis=1)
    path, se_path = mean_with_error(losses.T, block.weight)
    return HeldOut(
        path=path,
        se_path=se_path,
        indices=rows,
        target=data.coder.decode(block.y + data.offset),
        prediction=data.predictions(estimator)(predictors),
    )


def _loo_predictors(problem, trajectory, rows, block):
    """Linear predictors of rows by fits without them, (n_iterates, n, n_outputs)."""
    weight = block.weight
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    X = X.astype(np.float64, copy=False)
    means = problem.means.leave_out(weight, X.T * weight, block.y.T * weight)
    # As in memory, refits without single rows have the scales of all rows.
    fits = FitsOnWorkers(problem, LeftOut(rows, are_rows=True), means)
    refits = Iterates.at_rest(fits, trajectory.coef[0])

    def predictor():
        coef = refits.state.current.coef
        coef, intercept = fits.features_and_intercept(coef, fits.means.target)
        return np.einsum("kp,pok->ko", X, coef) + intercept.T

    with np.errstate(over="ignore", invalid="ignore"):
        path = [predictor()]
        path += [predictor() for _ in iterate(trajectory.updates(), refits)]
    return np.stack(path)


def read_risk(estimator, spec, trajectory, data):
    """The estimate of the memory matrix, for the squared error."""
    is_nonzero = trajectory.expand_to_groups(trajectory.coef.any(axis=(0, 2)))
    columns = np.flatnonzero(is_nonzero) if is_nonzero.any() else np.arange(1)
    if len(columns) > MAX_COLUMNS:
        raise ValueError(
            f"The run has moved {len(columns)} columns, but risk_path_ of Dask input "
            f"uses moments of at most {MAX_COLUMNS}: set risk=False, and cv=5 to "
            "evaluate iterates on folds."
        )
    args = columns, data.offset, data.is_1d
    summary = data.problem.groups.sum(_summarise, *args, combine=merge_summaries)
    loss = data.problem.loss
    data, _ = summary_data(summary, loss, estimator.fit_intercept, by_fold=False)
    phases = [
        replace(phase, penalty=phase.penalty.on(columns)) for phase in trajectory.phases
    ]
    coef = trajectory.coef[:, columns].astype(np.float64)
    record = Trajectory.recorded(data.problem, coef, phases)
    return read_memory_matrix(FinishedRun(estimator, record, data, [], spec=spec))


def _summarise(block, columns, offset, is_1d):
    """The summary of these columns of a block, with targets as passed."""
    y = block.y + offset
    summary = RowSummary(n_folds=1)
    return summary.partial_fit(
        block.X[:, columns],
        y[:, 0] if is_1d else y,
        block.weight,
        first_row=block.first,
    )
