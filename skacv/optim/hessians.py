"""Newton directions of fits, and inverse Hessians of their objectives."""

import numpy as np
from scipy.linalg import eigh, lstsq

from .blocks import MEMORY_BYTES
from .fits import sum_over_blocks
from .problem import SINGULAR, hessian


def newton_direction(fits, penalty, iterate):
    """Inverse Hessian times gradient of every fit's objective, at an Iterate."""
    gradient = fits.objective_gradient(penalty, iterate)
    ridges = fits.penalty_scale * penalty.smooth_gradient(np.ones_like(gradient))
    if fits.problem.loss.is_quadratic and np.ptp(ridges[:, 0, 0]) == 0:
        # The Hessian V diag(D + ridge) V' is constant, and is decomposed once.
        for r, ridge in enumerate(ridges[0, 0]):
            values, vectors = _eigenpairs(fits, r)
            coordinates = vectors.T @ gradient[:, :, r]
            gradient[:, :, r] = vectors @ (
                _inverse(values + ridge)[:, None] * coordinates
            )
        return gradient
    predictor, size = fits.predictor_at(iterate), gradient[:, :, 0].size
    for r in range(fits.n_fits):
        curvature = fits.problem.loss.curvature_matrix(
            fits.target[:, :, 0], predictor[:, :, r]
        )
        matrix = _weighted_hessian(fits, r, curvature).reshape(size, size)
        matrix[np.diag_indices(size)] += ridges[:, :, r].ravel()
        gradient_r = gradient[:, :, r]
        # The shortest solution if the Hessian is singular.
        direction, *_ = lstsq(matrix, gradient_r.ravel(), cond=SINGULAR)
        gradient[:, :, r] = direction.reshape(gradient_r.shape)
    return gradient


def inverse_hessians(fits, penalty, iterate):
    """Inverse Hessians of the objectives, (n_fits, n, n) for n coefficients."""
    coef = iterate.coef
    (n_columns, n_outputs, n_fits), size = coef.shape, coef[:, :, 0].size
    pairs = n_fits, n_outputs, n_outputs

    def sums_of_block(rows, design, predictor):
        loss, target = fits.problem.loss, fits.target[rows, :, 0]
        curvature = np.stack(
            [loss.curvature_matrix(target, z) for z in np.moveaxis(predictor, 2, 0)],
            axis=1,
        )
        curvature *= fits.row_weights[rows, 0, :, None, None]
        flat = curvature.reshape(len(curvature), -1)
        sums = [design.weighted_grams(flat)]
        if fits.columns is not None:
            sums += [design.t_dot(flat), curvature.sum(axis=0)]
        return [array.astype(np.float64, copy=False) for array in sums]

    hessians, *sums = sum_over_blocks(fits, sums_of_block, coef)
    hessians = hessians.reshape(*pairs, n_columns, n_columns)
    if fits.columns is not None:
        columns, totals = sums
        columns = np.moveaxis(columns.reshape(n_columns, *pairs), 0, -1)
        hessians = fits.columns.hessians(hessians, columns, totals)
    hessians = hessians.transpose(0, 3, 1, 4, 2).reshape(n_fits, size, size)
    ridges = fits.penalty_scale * penalty.smooth_gradient(np.ones_like(coef))
    inverses = []
    for matrix, ridge in zip(hessians, ridges.reshape(-1, n_fits).T):
        values, vectors = eigh(matrix + np.diag(ridge))
        inverses.append((vectors * _inverse(values)) @ vectors.T)
    return np.stack(inverses).astype(coef.dtype)


def _eigenpairs(fits, r):
    """Eigenpairs of the Hessian of fit r's squared error, cached if memory allows."""
    if r in fits.hessian_bases:
        return fits.hessian_bases[r]
    matrix = _weighted_hessian(fits, r, np.ones((len(fits.target), 1, 1)))
    values, vectors = eigh(matrix[:, 0, :, 0])
    values = np.clip(values, 0, None)
    if (len(fits.hessian_bases) + 1) * vectors.nbytes <= MEMORY_BYTES:
        fits.hessian_bases[r] = values, vectors
    return values, vectors


def _weighted_hessian(fits, r, curvature):
    """The Hessian of fit r's loss, (n_columns, n_outputs, n_columns, n_outputs).

    Shapes: curvature (n_rows, n_outputs, n_outputs)."""
    design, weights = fits.problem.design, fits.row_weights[:, :, r]
    if fits.columns is not None:
        design = design.shifted(fits.columns.center[:, r])
    if fits.refits_intercept:
        design = design.centered(weights)
    matrix = hessian(design, curvature * weights[:, :, None])
    if fits.columns is not None:
        # Columns are scaled here, since scaled columns would be a copy of X.
        factor = fits.columns.factor[:, r, None]
        matrix *= factor[:, :, None, None]
        matrix *= factor
    return matrix


def _inverse(curvature):
    """One over increasing curvatures, and zero for a curvature that is negligible."""
    is_positive = curvature > SINGULAR * curvature[-1]
    return np.divide(1, curvature, where=is_positive, out=np.zeros_like(curvature))
