"""Warnings about runs whose columns or targets make them slow."""

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.exceptions import ConvergenceWarning

from ..._warnings import warn
from ...exceptions import UnevenColumnsWarning
from ...optim.contraction import Shares
from ...optim.design import ROUNDINGS


def warn_of_uneven_columns(
    problem, trajectory, has_constant, n_sampled=500, ratio=10, share=0.1
):
    """Warn if large columns limit the step and small ones are far from their limits."""
    # The largest is ``ratio`` times as large as a quarter of all columns, and these
    # have covered less than a ``share`` of the distance to their limits.
    if not trajectory.coef[-1].any():
        return
    for update, _ in trajectory.first_updates():
        if not update.is_affine:
            return
        # A preconditioner makes columns more even.
        if update.preconditioner is not None and len(update.preconditioner.rows):
            return
    n_rows = len(problem.target)
    rows = np.unique(np.linspace(0, n_rows - 1, n_sampled).astype(int))
    # The last column may be that of the intercept.
    design = problem.design.features if has_constant else problem.design
    design = design.rows(rows)
    squares = design.column_sizes()[0] ** 2 / design.shape[0]
    if design.center is not None:  # columns that are constant but for rounding
        rounding = ROUNDINGS * np.finfo(float).eps * design.center[:, 0]
        squares[squares <= rounding**2] = 0
    squares = squares[squares > 0]
    if not squares.size:
        return
    small = np.quantile(squares, 0.25, method="lower")
    if squares.max() <= ratio**2 * small:
        return
    # Second derivatives in a column of that size, over the rows.
    curvature = float((problem.row_weights * problem.row_curvatures).sum()) * small
    covered = trajectory.followed_by(Shares(np.array([curvature]))).current[0]
    if covered < share:
        ratio = np.sqrt(squares.max() / small)
        n_slow = np.count_nonzero(squares <= small)
        warn(
            f"The largest column of X is {ratio:.0f} times as large as at least "
            f"{n_slow} of the {len(squares)} columns and limits the step size: after "
            f"{trajectory.n_updates} updates the coefficients of these have covered "
            f"at most {100 * covered:.2g}% of the distance to their limits. Scale the "
            "columns first (StandardScaler), or increase max_iter.",
            UnevenColumnsWarning,
        )


def warn_of_far_targets(problem, trajectory):
    """Warn where the last iterate predicts worse than the best constant, by 1%."""

    def error(constant):
        with np.errstate(over="ignore"):
            return problem.value(np.full_like(problem.target, constant))

    best = minimize_scalar(error, bracket=(0.0, 1.0)).fun
    if problem.value(trajectory.predictor[-1]) > 1.01 * best:
        warn(
            "The last iterate predicts worse than a constant: the intercept has not "
            "converged yet. Scale the columns (StandardScaler) and, if the loss "
            "allows, the target (TransformedTargetRegressor), or increase max_iter.",
            ConvergenceWarning,
        )
