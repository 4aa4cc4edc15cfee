"""On which side of the data a run is: the rows, the columns, or their moments.

A run costs what its data do, and so does all that is read from it. Where the same run
can be had from fewer numbers, exactly, it is on these.
"""

import numpy as np

from ..risk.left_out.methods import Replicated, method_for
from .pseudo_rows import on_pseudo_rows
from .readers import ESTIMATES
from .row_space import RowSpaceData


def on_smaller_side(estimator, data, folds, resume):
    """The data and the folds that a run is on.

    Parameters
    ----------
    estimator : TrajectoryModel
    data : ColumnData
    folds : list of (ndarray of int, ndarray of int)
    resume : bool
        Whether to go on with what the estimator has recorded, if anything.

    Returns
    -------
    data : ColumnData
    folds : list of (ndarray of int, ndarray of int)
        As rows of these data.
    """
    shape = len(data.rows), data.center.shape[0]
    run = estimator._planned_run(shape, data.y)
    recorded = resume and hasattr(estimator, "coef_path_")
    done = estimator._phases if recorded else []
    if is_on_row_space(estimator, shape, done) and _pays_rotating(
        estimator, run, data, len(folds)
    ):
        rotated = RowSpaceData.of(data)
        path = (estimator.coef_path_, estimator.intercept_path_) if recorded else None
        if path is None or (
            path[0].shape[-1] == shape[1] and rotated.holds(*path)
        ):
            return rotated, folds
    if _is_of_moments(estimator, run, folds, done) and _pays_summing(run, data, folds):
        return on_pseudo_rows(data, folds) or (data, folds)
    return data, folds


def is_on_row_space(estimator, shape, done=()):
    """Whether a run is the same in the space of the rows, and that is the smaller.

    Parameters
    ----------
    estimator : TrajectoryModel
    shape : tuple of int
        Samples and features.
    done : list of Phase
        Recorded phases that the run goes on from.
    """
    n_rows, n_features = shape
    if n_rows >= n_features:
        return False
    features = np.arange(n_features)
    penalty = estimator._penalty(1.0, n_features)
    if not penalty.is_rotation_invariant or penalty != estimator._penalty(1.0, n_rows):
        return False
    updates = [estimator._planned_update(n_rows)]
    updates += [phase.first_update for phase in done]
    return all(update.is_rotation_invariant for update in updates) and all(
        phase.penalty.on(features).is_rotation_invariant for phase in done
    )


def _is_of_moments(estimator, run, folds, done):
    """Whether a run, and all that is read from it, needs means and moments alone."""
    updates = [update for update, _ in run.rules]
    updates += [phase.first_update for phase in done]
    return (
        run.is_quadratic
        and not estimator.keep_data
        # Of a single fold the standard error is over its rows.
        and len(folds) != 1
        and all(e.from_moments for e in ESTIMATES.values() if e.is_on(estimator))
        and all(u.is_affine and not u.n_batches for u in updates)
        and all(u.preconditioner is None for u in updates)
    )


def _pays_summing(run, data, folds):
    """Whether the products with X of a run and its folds take more than its moments.

    In multiplications, as far as the plan goes; a row has to be gone through anyway.
    """
    n_columns = len(data.center) + run.n_outputs
    products = 2 * run.n_updates * (1 + len(folds)) * run.n_outputs
    return len(data.rows) * n_columns**2 < products * data.problem.design.n_stored


def _pays_rotating(estimator, run, data, n_folds):
    """Whether what a run in the row space saves is more than it takes to get there.

    In multiplications: a product with X or X' takes the entries of X, one with the
    coordinates of the rows the square of their number.
    """
    n_rows, n_features = len(data.rows), len(data.center)
    n_fits = 1 + n_folds
    if ESTIMATES["loo"].is_on(estimator) and method_for(run) is Replicated:
        n_fits += n_rows
    saved = max(data.problem.design.n_stored - n_rows**2, 0)
    saved *= 2 * run.n_updates * n_fits * run.n_outputs
    spent = 2 * n_features * n_rows**2
    spent += (run.n_updates + 1) * n_features * n_rows * run.n_outputs
    return saved > spent
