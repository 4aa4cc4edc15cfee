"""Representation of the data in a run: by columns, by rows, or by moments.

The time of a run and of its estimates depends on the size of its data. If fewer numbers
give the same run up to rounding, and save time, it uses these.
"""

import numpy as np

from ...risk.left_out.methods import method_for
from ..data.pseudo_rows import on_pseudo_rows
from ..data.row_space import RowSpaceData
from .plan import sees_moments_alone


def reduce_data(estimator, run, data, folds, recorded):
    """The data of a run, and the folds as their rows: fewer, where that saves time.

    ``recorded`` is the estimator, if the run continues its record, else None.
    """
    if data.problem.design.is_on_device:
        # Products cost little there, and a basis of the rows would be as large as X.
        return data, folds
    if recorded is not None and recorded.coef_path_.shape[-1] != len(data.center):
        return data, folds  # no run can continue that record
    spec, n_rows, n_features = run.spec, len(data.rows), len(data.center)
    # An update of the run, and the first of every recorded phase.
    updates = [spec.solver.update(n_rows)]
    for phase in recorded._phases if recorded is not None else ():
        updates.append(phase.first_update)
    if n_rows < n_features:
        rotated = _in_row_space(estimator, run, data, folds, recorded, updates)
        if rotated is not None:
            return rotated, folds
    # Many more rows than columns: few rows with the same moments. A single fold has its
    # standard error over its rows.
    needs_rows = not spec.is_quadratic or len(folds) == 1 or estimator.keep_data
    for estimate in run.estimates:
        needs_rows |= estimate.needs != "moments"
    if not needs_rows and all(map(sees_moments_alone, updates)):
        # Whether products with X of a run and its folds cost more than its moments.
        n_outputs = data.problem.target.shape[1]
        n_updates = len(spec.strengths) * spec.max_iter
        n_products = 2 * n_updates * (1 + len(folds)) * n_outputs
        cost = n_rows * (n_features + n_outputs) ** 2
        if n_products * data.problem.design.n_stored > cost:
            reduced = on_pseudo_rows(data, folds)
            if reduced is not None:
                return reduced
    return data, folds


def _in_row_space(estimator, run, data, folds, recorded, updates):
    """Data in a basis of fewer rows than features, or None.

    None where the run does not stay in the span of the rows, where that saves no time,
    or where rounding forbids it.
    """
    # Folds that scale columns for themselves each have a row space of their own.
    if folds and estimator.standardize:
        return None
    if not all(estimate.is_rotation_invariant for estimate in run.estimates):
        return None
    n_rows, n_features = len(data.rows), len(data.center)
    penalty, features = run.spec.penalty(1.0, n_features), np.arange(n_features)
    if not penalty.is_rotation_invariant:
        return None
    # It has to be one of as many coefficients as there are rows, too.
    if penalty.on(features[:n_rows]) != run.spec.penalty(1.0, n_rows):
        return None
    if not all(update.is_rotation_invariant for update in updates):
        return None
    for phase in recorded._phases if recorded is not None else ():
        if not phase.penalty.on(features).is_rotation_invariant:
            return None
    if not rotation_pays(run, data, len(folds)):
        return None
    rotated = RowSpaceData.of(data)
    if recorded is None or rotated.holds_record(recorded):
        return rotated
    return None


def rotation_pays(run, data, n_folds):
    """Whether a run in the space of the rows saves more than the rotation costs."""
    # A product with X or X' costs the entries of X, one with the coordinates of the
    # rows the square of their number.
    n_rows, n_features = len(data.rows), len(data.center)
    cost_of_run = run.spec.cost((n_rows, n_features), data.y)
    n_fits = 1 + n_folds
    leaves_rows_out = any(estimate.name == "loo" for estimate in run.estimates)
    if leaves_rows_out and method_for(cost_of_run) == "replicas":
        n_fits += n_rows
    n_iterates = (cost_of_run.n_updates + 1) * cost_of_run.n_outputs
    saved = data.problem.design.n_stored - n_rows**2
    # A QR decomposition, and the coefficients of the features.
    cost = 2 * n_features * n_rows**2 + n_iterates * n_features * n_rows
    return 2 * n_iterates * n_fits * saved > cost
