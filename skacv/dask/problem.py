"""A problem whose rows stay on workers, and its fits side by side.

Linear predictors are linear in the coefficients, and so is every point at which an
update takes a gradient. On the client a predictor is represented by its coefficients,
for free, and a gradient is one round: workers form the predictors of their rows and
their slopes, and sum the products with X.
"""

from dataclasses import dataclass
from functools import cached_property
from operator import add
from typing import NamedTuple

import numpy as np

from ..optim.design import Design, top_eigenvalue
from ..optim.fits import Iterate
from ..optim.problem import SINGULAR, Problem
from ..risk.leave_out_rule import LeaveOutRule
from .block_sums import (
    HalfSquare,
    LeftOut,
    added,
    path_values_of,
    slopes_of,
    values_of,
)
from .rows import RowGroups

# Coefficients that go to the workers in one round, in bytes.
ROUND_BYTES = 1 << 25
NOTHING = LeftOut(np.array([-1]))


class RepresentedDesign(Design):
    """Linear predictors that are represented by their coefficients.

    These are in double precision for any X: they are small compared with the rows, and
    rounding errors add up over hundreds of updates.
    """

    side, dtype = "columns", np.dtype(np.float64)

    def __init__(self, n_columns):
        self.shape = n_columns, n_columns

    def dot(self, coef):
        """The predictor of coefficients: these."""
        return coef

    def _needs_rows(self, *_):
        raise ValueError(
            "Single rows stay on their workers, and estimates that need them are not "
            "available: evaluate iterates on folds, such as cv=5."
        )

    t_dot = rows = scaled_rows = centered = _needs_rows
    outer_gram = squared_row_norms = is_zero = _needs_rows


class Means(NamedTuple):
    """Weighted means over the rows of every fit.

    Attributes
    ----------
    weight : ndarray of shape (n_fits,)
        Sum of the weights of its rows.
    X : ndarray of shape (n_features, n_fits)
    target : ndarray of shape (n_outputs, n_fits)
    """

    weight: np.ndarray
    X: np.ndarray
    target: np.ndarray

    @classmethod
    def of_sums(cls, weight, X, target):
        """From sums over rows."""
        return cls(weight, X / weight, target / weight)

    def shifted(self, offset):
        """The same of targets less an offset, (n_outputs, 1)."""
        return self._replace(target=self.target - offset)

    def part(self, fits):
        """The means of some of the fits."""
        return Means(*(part[..., fits] for part in self))

    def without(self, weight, X, target):
        """Means of all rows but some, from sums over those: a fit for each sum."""
        return Means.of_sums(
            self.weight - weight,
            self.weight * self.X - X,
            self.weight * self.target - target,
        )


@dataclass(frozen=True, eq=False)
class Spreads:
    """The columns of a run, which folds standardise by their own rows.

    Attributes
    ----------
    columns : Standardized
        What has been done to the columns.
    origin : ndarray of shape (n_features,)
        Their means over all rows.
    variance : ndarray of shape (n_features, n_folds)
        Variances without each fold.
    """

    columns: object
    origin: np.ndarray
    variance: np.ndarray

    def maps(self, problem, means):
        """The columns of the fits without each fold, whose :class:`Means` these are.

        Returns
        -------
        ColumnMaps
        """
        is_centered = problem.refit.refits_intercept
        mean = means.X - self.origin[:, None] if is_centered else means.X
        squares, n_columns = self.variance + mean**2, problem.design.shape[1]
        return self.columns.maps(mean, squares, self.variance, n_columns)


@dataclass(frozen=True)
class ProblemOnWorkers(Problem):
    """A problem whose rows stay on workers.

    What the engine takes for rows are the coordinates of predictors, which are their
    coefficients. ``target`` and ``row_weights`` have that many rows: targets of some
    rows, by which the loss is checked, and weights that say nothing.

    Attributes
    ----------
    groups : RowGroups
        With targets as the loss takes them.
    refit : LeaveOutRule
        What a fit without some rows is; fits are centred if it ``refits_intercept``.
    has_constant : bool
        Whether the last coefficient is an intercept.
    means : Means
        Means of all rows.
    spreads : Spreads or None
        Where folds standardise columns by their own rows.
    target_range : ndarray of shape (2, n_outputs)
        The least and the largest targets.
    has_columns : bool
        Whether any column is not constant (if centred), or not zero.
    largest_weight : float
        Largest weight of a row, where weights sum to one.
    """

    groups: RowGroups = None
    refit: LeaveOutRule = None
    has_constant: bool = False
    means: Means = None
    spreads: Spreads = None
    target_range: np.ndarray = None
    has_columns: bool = True
    largest_weight: float = 0.0

    def value(self, predictor):
        """f at a predictor, by a round."""
        fits = FitsOnWorkers(self)
        return float(fits.values(predictor[:, :, None, None])[0, 0])

    def gradient(self, predictor):
        """Gradient of f, by a round."""
        return FitsOnWorkers(self).gradient(predictor[:, :, None])[:, :, 0]

    def fitted_on(self, index):
        """Predictors of the minimum of f over some columns, as in memory."""
        found = np.zeros(self.target.shape)
        if not (self.loss.is_quadratic and len(index)):
            return found
        columns = np.zeros((len(found), len(index)))
        columns[index, np.arange(len(index))] = 1
        gram = FitsOnWorkers(self).gram_dot(columns)[index]
        slope = self.gradient(found)[index]
        found[index] = -np.linalg.lstsq(gram, slope, rcond=SINGULAR)[0]
        return found

    @cached_property
    def smoothness(self):
        """Lipschitz constant of the gradient of f."""
        bound = self.loss.curvature_bound(self.target_range)
        return bound * FitsOnWorkers(self).top_eigenvalue()


class FitsOnWorkers:
    """Fits side by side, for updates; a gradient takes a round.

    Parameters
    ----------
    left_out : LeftOut
    means : Means or None
        Means of every fit; None takes those of the problem.
    columns : ColumnMaps or None
        The columns of every fit; None are those of the problem.
    """

    def __init__(self, problem, left_out=NOTHING, means=None, columns=None):
        self.problem, self.left_out, self.columns = problem, left_out, columns
        self.means = problem.means.part([0]) if means is None else means
        share = self.means.weight / problem.means.weight[0]
        self.penalty_scale = problem.refit.penalty_scale(share)

    @property
    def n_fits(self):
        return self.left_out.n_fits

    def n_at_once(self):
        """Convergence is tested after every update, which takes a round."""
        return 1

    def start(self, coef):
        """Coefficients (n_columns, n_outputs), the same for every fit."""
        return np.repeat(coef[:, :, None], self.n_fits, axis=2)

    def iterate(self, coef):
        """An iterate: predictors stay on the workers."""
        return Iterate(coef)

    def gradient_at(self, point):
        """Gradients of all fits at a point, by a round."""
        return self.gradient(point.coef)

    def features_and_intercept(self, coef):
        """Coefficients of features, and what is added to their products with rows."""
        return self._parts(coef, self.means.target)

    def gradient(self, point):
        """Gradients of all fits, (n_columns, n_outputs, n_fits), by a round."""
        return self._round(point, self.means.target, self.problem.loss)

    def gram_dot(self, vectors):
        """The product of X'WX with vectors (n_columns, k), of a single fit."""
        return self._round(vectors[:, None, :], 0.0, HalfSquare())[:, 0]

    def top_eigenvalue(self):
        """Largest eigenvalue of X'WX of a single fit, as the designs in memory take it.

        Exact for few columns, else by the same Lanczos iterations, a round each, and
        with the same margin.
        """
        if not self.problem.has_columns:
            return 0.0
        start = np.random.default_rng(0).standard_normal(self.problem.design.shape[1])
        return top_eigenvalue(self.gram_dot, start, tolerance=0.1)

    def values(self, coef):
        """Losses of iterates on the rows of their fits, summed over the outputs.

        Parameters
        ----------
        coef : ndarray of shape (n_columns, n_outputs, n_iterates, n_fits)

        Returns
        -------
        ndarray of shape (n_iterates, n_fits)
        """
        return self._over_iterates(values_of, coef, self.left_out) / self.means.weight

    def path_values(self, coef):
        """Losses of the run on all rows, and of folds on the rows that they leave out.

        Weights are those of the run: their sum over all rows is one.

        Parameters and what is returned are as of :meth:`values`.
        """
        found = self._over_iterates(path_values_of, coef, self.n_fits - 1)
        return found / self.problem.means.weight[0]

    def _over_iterates(self, function, coef, *args):
        """Sums over rows for every iterate; as many iterates as fit go in one round."""
        n_bytes = coef[:, :, 0].nbytes
        size, found = max(1, ROUND_BYTES // n_bytes), []
        for first in range(0, coef.shape[2], size):
            part = coef[:, :, first : first + size]
            part, intercept = self._parts(part, self.means.target[:, None])
            args_of_part = intercept, self.problem.loss, *args
            found.append(self._sum(function, part, *args_of_part, combine=add))
        return np.concatenate(found)

    def _parts(self, coef, target):
        """Coefficients of the features, and what is added to their products."""
        features = coef[:-1] if self.problem.has_constant else coef
        features = self._map("factor", features, 1.0) * features
        if self.problem.refit.refits_intercept:
            return features, target - _by_fit(self.means.X, features)
        added = np.zeros(coef.shape[1:])
        if self.problem.has_constant:
            added = added + coef[-1]
        if self.columns is not None:
            added -= _by_fit(self.columns.center[: len(features)], features)
        return features, added

    def _map(self, name, features, missing):
        """Factors, or centres, of the features in every fit, beside coefficients."""
        if self.columns is None:
            return missing
        found = getattr(self.columns, name)[: len(features)]
        return found.reshape(len(found), *[1] * (features.ndim - 2), -1)

    def _round(self, coef, target, loss):
        """Slopes of a loss, times X and summed, as a gradient of the mean."""
        coef, intercept = self._parts(coef, target)
        args = coef, intercept, loss, self.left_out
        slopes, total = self._sum(slopes_of, *args, combine=added)
        if self.problem.refit.refits_intercept:
            slopes -= self.means.X[:, None] * total
        else:
            slopes -= self._map("center", slopes, 0.0) * total
        slopes *= self._map("factor", slopes, 1.0)
        if self.problem.has_constant:
            slopes = np.concatenate([slopes, total[None]])
        slopes /= self.means.weight
        return slopes

    def _sum(self, function, coef, *args, combine):
        return self.problem.groups.sum(function, coef, *args, combine=combine)


def _by_fit(columns, coef):
    """Inner products of the columns of every fit with coefficients.

    Shapes: columns (n_features, n_fits); coef (n_features, ..., n_fits).
    """
    if columns.shape[1] == 1:
        return np.tensordot(columns[:, 0], coef, axes=1)
    return np.einsum("pf,p...f->...f", columns, coef)


def fold_fits(problem, means_of_folds):
    """The run, and side by side a fit without each fold.

    Parameters
    ----------
    means_of_folds : Means
        Means of the rows of every fold.
    """
    weight, of_X, of_target = means_of_folds
    others = problem.means.without(weight, weight * of_X, weight * of_target)
    pairs = zip(problem.means, others)
    means = Means(*(np.concatenate(pair, axis=-1) for pair in pairs))
    columns = None
    if problem.spreads is not None and len(weight):
        columns = problem.spreads.maps(problem, others).beside_the_run(1)
    return FitsOnWorkers(problem, LeftOut(np.arange(-1, len(weight))), means, columns)
