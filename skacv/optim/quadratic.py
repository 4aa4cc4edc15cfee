"""Quadratic losses of fits, from second moments of their rows.

With few columns a gradient from inner products of the columns,

    A_f b - c_f,        A_f = sum_i w_if z_i z_i',    c_f = sum_i w_if z_i y_i',

takes less than two products with the rows z_i, as fit f has them. Rows that have the
same weights in all fits, but for a factor, are summed up together: folds take one pass.
"""

from functools import partial

import numpy as np

from .moments import group_rows, moments_of

# Numbers that the inner products of all fits may take.
MOST_ENTRIES = 1 << 24
# Fewer rows to a group would take as long one by one.
ROWS_TO_ONE = 4
# Weights of a group that differ by more roundings are not those of one pattern.
ROUNDINGS = 8


def pays(fits, n_gradients):
    """Whether second moments take less work than gradients by rows.

    In multiplications; and gradients from them must take less, too.
    """
    design = fits.problem.design
    n_columns, n_outputs = design.shape[1], fits.problem.target.shape[1]
    if 2 * n_columns**2 > design.n_stored:
        return False
    if fits.n_fits * n_columns**2 > MOST_ENTRIES:
        return False
    by_rows = 2 * design.n_stored * fits.n_fits * n_outputs
    return n_gradients * by_rows > design.shape[0] * (n_columns + n_outputs) ** 2


def quadratic_gradient(fits):
    """How gradients of fits follow from second moments of their rows.

    Parameters
    ----------
    fits : Fits
        Their loss is the squared error, and their rows are in memory.

    Returns
    -------
    callable or None
        It takes coefficients (n_columns, n_outputs, n_fits). None where rows do not
        come in groups.
    """
    problem, n_columns = fits.problem, fits.problem.design.shape[1]
    found = _groups(problem.row_weights, fits)
    if found is None:
        return None
    group, shares = found  # shares: (n_groups, n_fits)
    moments = moments_of(problem, group, len(shares))
    means = np.stack([each.mean for each in moments])
    scatters = np.stack([each.scatter for each in moments])
    sizes = np.array([each.weight for each in moments])[:, None] * shares
    gram, linear = [], []
    for fit, (share, size) in enumerate(zip(shares.T, sizes.T)):
        shift = np.zeros(means.shape[1])
        if fits.refits_intercept:
            shift = size @ means / size.sum()
        elif fits.columns is not None:
            shift[:n_columns] = fits.columns.center[:, fit]
        apart = means - shift
        whole = np.tensordot(share, scatters, axes=1) + (apart.T * size) @ apart
        factor = np.ones(n_columns)
        if fits.columns is not None:
            factor = fits.columns.factor[:, fit].astype(np.float64)
        columns = factor[:, None] * whole[:n_columns]
        gram.append(columns[:, :n_columns] * factor)
        linear.append(columns[:, n_columns:])
    return partial(_gradient, np.stack(gram), np.stack(linear))


def _gradient(gram, linear, coef):
    """Gradients at coefficients, a new array.

    Shapes: gram (n_fits, n_columns, n_columns); linear (n_fits, n_columns, n_outputs).
    """
    found = np.matmul(gram, coef.transpose(2, 0, 1))
    found -= linear
    return found.transpose(1, 2, 0).astype(coef.dtype, copy=False)


def _groups(row_weights, fits):
    """Rows of which every fit has the same share.

    Returns
    -------
    group : ndarray of int, shape (n_rows,)
    shares : ndarray of shape (n_groups, n_fits)
        What the weights of a fit are, over those of the problem.
    Or None where they have no such groups, or too many.
    """
    weights, n_rows = fits.row_weights[:, 0], len(row_weights)
    width = fits.problem.design.shape[1] + fits.problem.target.shape[1]
    n_most = min(n_rows // ROWS_TO_ONE, MOST_ENTRIES // width**2)
    groups = group_rows((weights > 0).T, n_rows, n_most)
    if groups is None:
        return None
    group, codes = groups
    sample = np.empty(len(codes), np.intp)
    sample[group] = np.arange(n_rows)
    shares = weights[sample] / row_weights[sample].astype(np.float64)
    rounding = ROUNDINGS * np.finfo(row_weights.dtype).eps
    if not np.allclose(weights, shares[group] * row_weights, rtol=rounding, atol=0):
        return None
    return group, shares
