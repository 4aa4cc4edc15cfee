"""A problem whose rows stay on workers, and its fits side by side.

Linear predictors are linear in the coefficients, and so is every point at which an
update takes a gradient. On the client a predictor is represented by its coefficients,
for free, and a gradient is one round: workers form the predictors of their rows and
their slopes, and sum the products with X.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from operator import add
from typing import NamedTuple

import numpy as np

from .._estimator.data.standardized import Standardized
from ..optim.design import Design, top_eigenvalue
from ..optim.fits import Iterate
from ..optim.problem import SINGULAR, Problem, largest_curvatures
from ..risk.held_out_rows import LeaveOutRule
from .block_sums import (
    HalfSquare,
    LeftOut,
    Parabolas,
    add_all,
    path_values_of,
    slopes_of,
    values_of,
)
from .rows import RowGroups

NOTHING_LEFT_OUT = LeftOut(np.array([-1]))


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
    """Weighted means over the rows of every fit, and the sum of their weights.

    Shapes: weight (n_fits,), X (n_features, n_fits), target (n_outputs, n_fits).
    """

    weight: np.ndarray
    X: np.ndarray
    target: np.ndarray

    @classmethod
    def of_sums(cls, weight, X, target):
        return cls(weight, X / weight, target / weight)

    def shift(self, offset):
        """Means of targets less an offset, (n_outputs, 1)."""
        return self._replace(target=self.target - offset)

    def part(self, fits):
        """The means of these fits."""
        return Means(*(part[..., fits] for part in self))

    def leave_out(self, weight, X, target):
        """Means of fits that each leave out the rows of a sum, from these sums."""
        return Means.of_sums(
            self.weight - weight,
            self.weight * self.X - X,
            self.weight * self.target - target,
        )


@dataclass(frozen=True, eq=False)
class Spreads:
    """``Standardized`` columns of a run, which folds standardise by their own rows.

    Shapes: origin (n_features,), means over all rows; variance (n_features, n_folds),
    without each fold.
    """

    columns: Standardized
    origin: np.ndarray
    variance: np.ndarray

    def maps(self, problem, means):
        """``ColumnMaps`` of the fits without each fold, from their ``Means``."""
        is_centered = problem.rule.refits_intercept
        mean = means.X - self.origin[:, None] if is_centered else means.X
        squares, n_columns = self.variance + mean**2, problem.design.shape[1]
        return self.columns.maps(mean, squares, self.variance, n_columns)


@dataclass(frozen=True, kw_only=True)
class ProblemOnWorkers(Problem):
    """A problem whose rows stay on workers, with their weights (``row_weights=None``).

    ``target`` has the targets of a few rows, by which the loss is checked, and
    ``target_range`` the least and the largest of all. Fits are centred if ``rule``
    ``refits_intercept``; with ``has_constant`` the last coefficient is an intercept.
    ``has_columns``: any column is not constant (if centred), or not zero.
    """

    groups: RowGroups
    rule: LeaveOutRule
    has_constant: bool
    means: Means
    spreads: Spreads | None
    target_range: np.ndarray
    has_columns: bool
    # Also a property of other problems, which a default replaces.
    largest_weight: float = 1.0

    @property
    def n_samples(self):
        return self.groups.n_rows

    def value(self, predictor):
        """f at a predictor, by a round."""
        fits = FitsOnWorkers(self)
        return float(fits.values(predictor[:, :, None, None])[0, 0])

    def gradient(self, predictor):
        """Gradient of f, by a round."""
        return FitsOnWorkers(self).gradient(predictor[:, :, None])[:, :, 0]

    def least_squares_predictor(self, index):
        """Predictors of the minimum of f over some columns, as in memory."""
        if not (self.loss.is_quadratic and len(index)):
            return self.start_predictor
        coef = np.zeros((self.design.shape[1], self.target.shape[1]))
        columns = np.zeros((len(coef), len(index)))
        columns[index, np.arange(len(index))] = 1
        gram = FitsOnWorkers(self).gram_dot(columns, HalfSquare())[index]
        gradient = self.gradient(coef)[index]
        coef[index] = -np.linalg.lstsq(gram, gradient, rcond=SINGULAR)[0]
        return coef

    @property
    def start_predictor(self):
        """The coefficients at which a run begins, which represent its predictors."""
        if self.start is None:
            return np.zeros((self.design.shape[1], self.target.shape[1]))
        return self.start

    @cached_property
    def parabolas(self):
        """Parabolas of the largest curvatures of rows, as of a problem in memory."""
        # The largest of all is that of the least target, or of the largest. Columns are
        # zero at first.
        first = np.zeros(1) if self.start is None else self.start[-1]
        mean = self.means.target[:, 0]
        ceiling = largest_curvatures(self.loss, self.target_range, mean, first).max()
        return Parabolas(self.loss, mean, first, float(ceiling))

    @cached_property
    def smoothness(self):
        """Lipschitz constant of the gradient of f."""
        return FitsOnWorkers(self).smoothness()


class FitsOnWorkers:
    """Fits side by side, for updates; a gradient takes a round.

    Means, and ``ColumnMaps``, are those of every fit; None takes the problem's.
    """

    def __init__(self, problem, left_out=NOTHING_LEFT_OUT, means=None, columns=None):
        self.problem, self.left_out, self.columns = problem, left_out, columns
        self.means = problem.means.part([0]) if means is None else means
        share = self.means.weight / problem.means.weight[0]
        _, self.penalty_scale = problem.rule.scales(share)

    @property
    def n_fits(self):
        return self.left_out.n_fits

    def start(self, coef):
        """Coefficients repeated for every fit. Shapes: coef (n_columns, n_outputs)."""
        return np.repeat(coef[:, :, None], self.n_fits, axis=2)

    def iterate(self, coef):
        """An iterate: predictors stay on the workers."""
        return Iterate(coef)

    def gradient_at(self, point):
        """Gradients of all fits at a point, by a round."""
        return self.gradient(point.coef)

    def gradient(self, point):
        """Gradients of all fits, (n_columns, n_outputs, n_fits), by a round."""
        return self._round(point, self.means.target, self.problem.loss)

    def gram_dot(self, vectors, parabolas):
        """The product of the Hessian of ``parabolas`` with vectors (n_columns, k)."""
        return self._round(vectors[:, None, :], 0.0, parabolas)[:, 0]

    def smoothness(self):
        """Lipschitz constant of the gradient of a single fit, as in memory."""
        if not self.problem.has_columns:
            return 0.0
        dot = partial(self.gram_dot, parabolas=self.problem.parabolas)
        start = np.random.default_rng(0).standard_normal(self.problem.design.shape[1])
        return top_eigenvalue(dot, start, tolerance=0.1)

    def values(self, coef):
        """Mean losses of iterates on the rows of their fits, summed over the outputs.

        Shapes: coef (n_columns, n_outputs, n_iterates, n_fits); returned (n_iterates,
        n_fits).
        """
        return self._loss_sums(values_of, coef, self.left_out) / self.means.weight

    def path_values(self, coef):
        """Losses of the run on all rows, and of folds on the rows that they leave out.

        Weights are those of the run, with the sum 1. The first column has the loss that
        the run minimises, the others that which judges it and the folds. Shapes: coef
        as in :meth:`values`; returned (n_iterates, 1 + n_fits).
        """
        sums = self._loss_sums(path_values_of, coef, self.n_fits - 1)
        return sums / self.problem.means.weight[0]

    def _loss_sums(self, function, coef, *args):
        target_mean = self.means.target[:, None]
        coef, intercept = self.features_and_intercept(coef, target_mean)
        args = coef, intercept, self.problem.loss, *args
        return self.problem.groups.sum(function, *args, combine=add)

    def features_and_intercept(self, coef, target_mean):
        """Coefficients of the features, and the intercepts of their products."""
        features = coef[:-1] if self.problem.has_constant else coef
        features = self._map("factor", features, 1.0) * features
        if self.problem.rule.refits_intercept:
            return features, target_mean - _by_fit(self.means.X, features)
        intercept = np.zeros(coef.shape[1:])
        if self.problem.has_constant:
            intercept = intercept + coef[-1]
        if self.columns is not None:
            intercept -= _by_fit(self.columns.center[: len(features)], features)
        return features, intercept

    def _map(self, name, features, default):
        """Factors, or centres, of features in every fit, as many axes as these have."""
        if self.columns is None:
            return default
        values = getattr(self.columns, name)[: len(features)]
        return values.reshape(len(values), *[1] * (features.ndim - 2), -1)

    def _round(self, coef, target_mean, loss):
        """Gradient of the mean of a loss, from sums over all rows."""
        coef, intercept = self.features_and_intercept(coef, target_mean)
        args = coef, intercept, loss, self.left_out
        gradient, total = self.problem.groups.sum(slopes_of, *args, combine=add_all)
        if self.problem.rule.refits_intercept:
            gradient -= self.means.X[:, None] * total
        else:
            gradient -= self._map("center", gradient, 0.0) * total
        gradient *= self._map("factor", gradient, 1.0)
        if self.problem.has_constant:
            gradient = np.concatenate([gradient, total[None]])
        gradient /= self.means.weight
        return gradient


def _by_fit(columns, coef):
    """Inner products of the columns of every fit with coefficients.

    Shapes: columns (n_features, n_fits); coef (n_features, ..., n_fits).
    """
    if columns.shape[1] == 1:
        return np.tensordot(columns[:, 0], coef, axes=1)
    return np.einsum("pf,p...f->...f", columns, coef)


def fold_fits(problem, means_of_folds):
    """The run, and side by side a fit without each fold, from means of the folds."""
    weight, X, target = means_of_folds
    train_means = problem.means.leave_out(weight, weight * X, weight * target)
    pairs = zip(problem.means, train_means)
    means = Means(*(np.concatenate(pair, axis=-1) for pair in pairs))
    columns = None
    if problem.spreads is not None and len(weight):
        columns = problem.spreads.maps(problem, train_means).after_identity_maps(1)
    return FitsOnWorkers(problem, LeftOut(np.arange(-1, len(weight))), means, columns)
