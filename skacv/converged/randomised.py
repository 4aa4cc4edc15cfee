"""Approximate leave-one-out with leverages from random probes (RandALO).

Nobel, LeJeune & Candes (2024, arXiv:2409.09781): leverages of n rows are the
diagonal of a matrix J that is cheap to multiply and costly to form. A probe of
random signs r gives r * (J r), whose mean is that diagonal. Two facts remove most
of the error: the diagonal lies between 0 and 1, and the mean loss is linear in one
over the number of probes.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr

from ..optim.blocks import MEMORY_BYTES
from ..risk.random_labels import random_signs
from .expansion import expansion, reduce_to_row_space
from .hessian import ConjugateGradients, cholesky_factor, factor
from .model import LooPredictors
from .newton import check_determined, drifts, relative_drift


class Probes(NamedTuple):
    """How many probes to draw, and the weights of rows in the mean loss."""

    n_probes: int
    rng: np.random.Generator
    # Weights of the rows in the mean loss, of sum one.
    averaging: np.ndarray


def randomized_leverages(model, probes):
    """LooPredictors after one Newton step, by leverages from random probes."""
    local, solver = _solve(expansion(model))
    curvature = local.curvature[:, 0, 0]
    # Rows without curvature are probed at the average one. Their leverage is
    # that of a row yet to be added, which may exceed 1.
    probed = np.where(curvature > 0, curvature, curvature[model.counts].mean())
    upper = np.where(curvature > 0, 1.0, np.inf)
    samples = _diagonal_samples(local, solver, np.sqrt(probed), probes)
    spread = samples.std(axis=1, ddof=1)
    by_objective, by_penalty = drifts(local, solver)
    drift = (model.penalty_shares[:, None] * by_penalty - by_objective)[:, 0]

    def held_out(mean, n_probes):
        leverage = truncated_mean(mean, spread / np.sqrt(n_probes), upper)
        share = leverage * curvature / probed
        check_determined(share[:, None, None])
        step = leverage / probed * local.derivative[:, 0] + drift
        return model.predictor[:, 0] + step / (1 - share), share

    def mean_loss(mean, n_probes):
        losses = model.losses(held_out(mean, n_probes)[0][:, None])
        return float(probes.averaging @ losses[:, 0])

    predictor, share = held_out(samples.mean(axis=1), probes.n_probes)
    correction = _debiasing(mean_loss, samples, probes.rng)
    by_row = samples.mean(axis=1) / probed * local.derivative[:, 0]
    size = relative_drift(model, by_objective, by_row)
    return LooPredictors(predictor[:, None], share[:, None], size, correction)


def _solve(local):
    """An expansion and the solver of its Hessian."""
    # The Hessian of the smaller side is factored if it fits in memory.
    if 8 * min(local.design.shape) ** 2 > MEMORY_BYTES:
        return local, ConjugateGradients(local)
    local = reduce_to_row_space(local)
    # Probes are far noisier than single precision.
    return local, cholesky_factor(local.single()) or factor(local)


def _diagonal_samples(local, solver, root, probes):
    """r * (J r) of every probe r, J = root A H^-1 A' root, (n_rows, n_probes)."""
    design = local.design
    signs = random_signs((len(root), probes.n_probes), probes.rng)
    products = design.dot(solver.solve(design.t_dot(root[:, None] * signs)))
    return signs * root[:, None] * products


def _debiasing(mean_loss, samples, rng, n_subsets=50):
    """The mean loss for infinitely many probes minus that for all probes."""
    # The mean loss for random subsets, of half the probes up to all, is linear in one
    # over their size; the slope of this line gives the remaining bias.
    n_probes = samples.shape[1]
    sizes = np.linspace(n_probes // 2, n_probes, n_subsets).astype(int)
    chosen = np.zeros((n_probes, n_subsets))
    for subset, size in zip(chosen.T, sizes):
        subset[rng.permutation(n_probes)[:size]] = 1 / size
    means = (samples @ chosen).T
    losses = [mean_loss(mean, size) for mean, size in zip(means, sizes)]
    slope = np.polyfit(1 / sizes, losses, 1)[0]
    return -float(slope) / n_probes


def truncated_mean(mean, deviation, upper):
    """Mean of a normal variable, given that it lies between 0 and ``upper``."""
    sure = deviation <= 1e-12
    scale = np.where(sure, 1.0, deviation)
    low, high = -mean / scale, (upper - mean) / scale
    # Seen from the other side where both ends are above the mean: the lower
    # tail of the distribution is the one that does not cancel.
    flip = np.where(low > 0, -1.0, 1.0)
    low, high = np.minimum(flip * low, flip * high), np.maximum(flip * low, flip * high)
    above, below = log_ndtr(high), log_ndtr(low)
    mass = above + np.log1p(-np.exp(np.minimum(below - above, -1e-300)))
    edge = np.exp(_log_density(low) - mass) - np.exp(_log_density(high) - mass)
    return np.clip(np.where(sure, mean, mean + flip * scale * edge), 0, upper)


def _log_density(value):
    return -0.5 * (value**2 + np.log(2 * np.pi))
