"""Single rows left out of a run on workers: refits as further columns of its rounds.

Each left-out row has its own fit. The fits take the updates of the run side by side, as
many at a time as the client holds; a round takes one product with all of their
coefficients.
"""

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from ..optim.run import Iterates
from ..optim.trajectory import iterate
from ..risk.averages import mean_with_error
from .block_sums import LeftOut
from .problem import FitsOnWorkers

# Memory of the client for refits, and arrays of coefficients that each of them has.
REFIT_BYTES, ARRAYS_PER_REFIT = 1 << 28, 8


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
    size = max(1, REFIT_BYTES // each)
    chunks = [slice(k, k + size) for k in range(0, len(rows), size)]
    parts = [
        _predictors(problem, trajectory, rows[some], block.part(some))
        for some in chunks
    ]
    predictors = np.concatenate(parts, axis=1)
    if not np.isfinite(predictors).all():
        raise ValueError(
            "The iterates without some row diverge, though those on all rows do not: "
            "use a smaller step_size."
        )
    shown = (block.y + data.offset).astype(block.y.dtype)
    target = block.y.astype(np.float64)[:, :, None]
    losses = problem.loss.reported(target, np.moveaxis(predictors, 0, 2)).mean(axis=1)
    path, se_path = mean_with_error(losses.T, block.weight.astype(np.float64))
    return {
        "loo_path_": path,
        "loo_se_path_": se_path,
        "loo_prediction_path_": data.predictions(estimator)(predictors),
        "loo_indices_": rows,
        "loo_target_": data.coder.decoded(shown),
    }


def _predictors(problem, trajectory, rows, block):
    """Linear predictors of rows without them, (n_iterates, n_rows, n_outputs)."""
    weight = block.weight.astype(np.float64)
    X = block.X.toarray() if sparse.issparse(block.X) else block.X
    means = problem.means.without(weight, X.T * weight, block.y.T * weight)
    fits = FitsOnWorkers(problem, LeftOut(rows, are_rows=True), means)
    refits, found = Iterates.at_rest(fits, trajectory.coef[0]), []

    def note():
        coef, intercept = fits.features_and_intercept(refits.state.current.coef)
        own = [np.ravel(block.X[[k]] @ coef[:, :, k]) for k in range(len(rows))]
        found.append(np.stack(own) + intercept.T)

    with np.errstate(over="ignore", invalid="ignore"):
        note()
        for _ in iterate(trajectory.updates(), refits):
            note()
    return np.stack(found)
