"""Representation of the data in a run: by columns, by rows, or by moments.

The time of a run and of its estimates depends on the size of its data. If fewer numbers
give exactly the same run, it uses these.
"""

import numpy as np

from ...risk.left_out.methods import Replicated, method_for
from ..data.pseudo_rows import on_pseudo_rows
from ..data.row_space import RowSpaceData
from ..estimates.readers import estimates_on
from ..parameters import keeps_data
from .plan import sees_moments_alone


def reduce_data(estimator, data, folds, resume):
    """The data and the folds that a run uses.

    Parameters
    ----------
    folds : list of (ndarray of int, ndarray of int)
    resume : bool
        Whether to go on with what the estimator has recorded, if anything.

    Returns
    -------
    data : ColumnData
    folds : list of (ndarray of int, ndarray of int)
        As rows of these data.
    """
    if data.problem.design.is_on_device:
        # Products take little there, and a basis of the rows would be as large as X.
        return data, folds
    shape, is_recorded = _shape(data), resume and hasattr(estimator, "coef_path_")
    if is_recorded and estimator.coef_path_.shape[-1] != shape[1]:
        return data, folds  # which no run can go on from
    done = estimator._phases if is_recorded else []
    spec = estimator._spec()
    run, estimates = spec.workload(shape, data.y), estimates_on(estimator)
    # Folds that scale columns for themselves each have a row space of their own.
    in_row_space = (
        not (folds and estimator.standardize)
        and all(estimate.is_rotation_invariant for estimate in estimates)
        and is_of_row_space(spec, shape, done)
    )
    if in_row_space and pays_rotating(run, data, len(folds), estimates):
        rotated = RowSpaceData.of(data)
        if not is_recorded or rotated.holds_record(estimator):
            return rotated, folds
    updates = [update for update, _ in run.rules]
    updates += [phase.first_update for phase in done]
    of_moments = (
        run.is_quadratic
        and not keeps_data(estimator)
        # A single fold has its standard error over its rows.
        and len(folds) != 1
        and all(sees_moments_alone(update) for update in updates)
        and all(estimate.needs == "moments" for estimate in estimates)
    )
    if of_moments and pays_summing(run, data, len(folds)):
        return on_pseudo_rows(data, folds) or (data, folds)
    return data, folds


def _shape(data):
    """Samples and features."""
    return len(data.rows), len(data.center)


def is_of_row_space(spec, shape, done):
    """Whether there are fewer rows than features, and the run stays in their span.

    It does if it is the same in any basis of the coefficients.

    Parameters
    ----------
    shape : tuple of int
        Samples and features.
    done : sequence of Phase
        Recorded phases that the run goes on from.
    """
    n_rows, n_features = shape
    if n_rows >= n_features:
        return False
    penalty, features = spec.penalty(1.0, n_features), np.arange(n_features)
    if not penalty.is_rotation_invariant:
        return False
    # It has to be one on as many coefficients as there are rows, too.
    if penalty.on(features[:n_rows]) != spec.penalty(1.0, n_rows):
        return False
    updates = [spec.solver.update(n_rows), *(phase.first_update for phase in done)]
    return all(update.is_rotation_invariant for update in updates) and all(
        phase.penalty.on(features).is_rotation_invariant for phase in done
    )


def pays_rotating(run, data, n_folds, estimates):
    """Whether a run in the row space saves more than the rotation takes.

    In multiplications: a product with X or X' takes the entries of X, one with the
    coordinates of the rows the square of their number.
    """
    n_rows, n_features = _shape(data)
    leaves_rows_out = any(estimate.name == "loo" for estimate in estimates)
    n_fits = 1 + n_folds
    if leaves_rows_out and method_for(run) is Replicated:
        n_fits += n_rows
    n_iterates = (run.n_updates + 1) * run.n_outputs
    saved = data.problem.design.n_stored - n_rows**2
    # A QR decomposition, and the coefficients of the features.
    spent = 2 * n_features * n_rows**2 + n_iterates * n_features * n_rows
    return 2 * n_iterates * n_fits * saved > spent


def pays_summing(run, data, n_folds):
    """Whether products with X of a run and its folds take longer than its moments.

    In multiplications, as far as the plan goes.
    """
    n_rows, n_features = _shape(data)
    products = 2 * run.n_updates * (1 + n_folds) * run.n_outputs
    spent = n_rows * (n_features + run.n_outputs) ** 2
    return products * data.problem.design.n_stored > spent
