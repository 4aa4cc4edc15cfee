"""Standard errors of all iterates of a run, by runs without some of its rows.

An iterate is a smooth function of the weights of the rows, if loss and penalty are
smooth. With b_t the iterates and b_t^(g) those of the run without the rows of group g,
one of G, its covariance matrix is estimated as

    S_t = (G - 1) / G sum_g d_tg d_tg',        d_tg = b_t^(g) - sum_h b_t^(h) / G.

It evolves along the run, and needs no inverse. Over t, the iterates deviate from those
of the run on the population like a Gaussian process whose covariance between two
iterates is that of the d_tg [1]_. So the largest deviation over all iterates, in
standard errors, is like that of

    |sum_g z_g d_tg| ((G - 1) / G)^(1/2) / (S_t)_jj^(1/2)

over t, with independent standard normal z_g.

.. [1] Li and Giessing (2026), "Statistical inference on gradient flows",
       arXiv:2606.01257.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

from ...optim.blocks import slices
from ...optim.fits import WeightedFits
from ..left_out.replicas import (
    check_stable,
    fits_that_rise,
    replayed,
    replicas_at_a_time,
)

# Draws of the largest deviation: its quantile at .95 then has an error of about 1%.
N_DRAWS = 10_000


def paths_without(problem, trajectory, rule, groups):
    """Yield the coefficients and intercepts of the runs without each group of rows.

    Shapes: groups (n_rows,), the number of the group of every row; yielded coef
    (n_iterates, n_columns, n_outputs, n_in_block), intercept (n_iterates, n_outputs,
    n_in_block), which is what centred data leave of it.
    """
    rule = rule.of_run(trajectory, np.arange(len(groups)))
    n_groups = groups.max() + 1
    for block in slices(n_groups, replicas_at_a_time(problem)):
        left_out = np.arange(n_groups)[block]
        counts = (groups[:, None] != left_out).astype(np.float64)
        weights = rule.without(problem, counts)
        fits, coef, intercept = WeightedFits(problem, weights), [], []
        start = None
        for last in replayed(problem, trajectory, weights):
            start = last if start is None else start
            of_design = fits.design_coefficients(last.coef[None])
            coef.append(of_design[0])
            intercept.append(fits.intercepts(of_design)[0])
        suspects = fits_that_rise(fits, start, last)
        check_stable(problem, trajectory, weights, suspects)
        yield np.stack(coef), np.stack(intercept)


@dataclass(frozen=True, eq=False)
class JackknifedPath:
    """Coefficients of all iterates, and how they change without groups of rows.

    Shapes: coef (n_iterates, n_coefs, n_outputs); without (n_iterates, n_coefs,
    n_outputs, n_groups).
    """

    coef: np.ndarray
    without: np.ndarray

    @property
    def deviations(self):
        """Deviations of the runs without each group: their squares sum to variances."""
        n_groups = self.without.shape[-1]
        deviations = self.without - self.without.mean(axis=-1, keepdims=True)
        return deviations * np.sqrt((n_groups - 1) / n_groups)

    @property
    def standard_error(self):
        """Standard errors of all coefficients of all iterates."""
        return np.linalg.norm(self.deviations, axis=-1)

    def interval(self, coverage, is_simultaneous, rng):
        """Ends for every coefficient, (n_iterates, n_coefs, n_outputs, 2).

        They cover those of the run on the population as often: all iterates of a
        coefficient at once, if they are simultaneous, else each.
        """
        degrees = self.without.shape[-1] - 1
        n_errors = t(degrees).ppf((1 + coverage) / 2)
        if is_simultaneous:
            largest = np.quantile(self.largest_deviations(rng), coverage, axis=0)
            # With few groups errors are uncertain, as they are of a single iterate.
            n_errors = largest * n_errors / norm.ppf((1 + coverage) / 2)
        half = n_errors * self.standard_error
        return np.stack([self.coef - half, self.coef + half], axis=-1)

    def largest_deviations(self, rng):
        """Draws of the largest deviation over the iterates, in standard errors.

        Shapes: returned (N_DRAWS, n_coefs, n_outputs).
        """
        deviations, error = self.deviations, self.standard_error
        # Those of iterates that do not vary, such as the start, are zero.
        deviations = deviations / np.where(error > 0, error, 1.0)[..., None]
        normal = rng.standard_normal((deviations.shape[-1], N_DRAWS))
        largest = np.zeros((*deviations.shape[1:3], N_DRAWS))
        for of_iterate in deviations:
            np.maximum(largest, np.abs(of_iterate @ normal), out=largest)
        return np.moveaxis(largest, -1, 0)
