"""Debiased coefficients of the iterates of a fitted linear model."""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state

from ..._compat import on_host
from ..._names import did_you_mean
from ..._warnings import warn
from ...optim.design import ROUNDINGS
from ...optim.trajectory import Trajectory
from ...risk.inference.debiased import Debiased
from ...risk.inference.label_effects import LabelEffects
from ...risk.inference.scores import scores_at_the_end
from ...risk.inference.signal import ROWS_PER_COLUMN
from ...risk.inference.single_index import Scale, ScaleByStrength
from ...risk.inference.unpenalised import Unpenalised
from ...risk.memory.modes import N_PROBES
from ..data.training_data import check_usable
from ..estimates.left_out import kept_run
from ..estimates.memory_matrix import read_memory_matrix
from ..estimates.readers import FinishedRun
from ..parameters import to_python_scalar
from .directions import Directions, KnownCovariance, Nodewise

# Rows to a column from which a covariance is taken as known: with 1.4, intervals of 95%
# covered 86% to 90%, with 1.7 they covered 94%.
ROWS_OF_COVARIANCE = 1.5
# How tables call the intercept, whose place is behind those of the features.
INTERCEPT = "intercept"


class RecordedRun(NamedTuple):
    """A run up to an iterate, and what the iterate is.

    Shapes: coef (n_features + 1, n_outputs).
    """

    trajectory: Trajectory
    coef: np.ndarray

    @classmethod
    def of(cls, fitted, iteration):
        """The run of a fitted estimator up to an iterate; None is the one in use."""
        iterate = fitted if iteration is None else fitted.at_iteration(iteration)
        weights = fitted.record_.data.problem.row_weights
        if np.ptp(weights) > 1e-9 * weights.max():
            raise ValueError("Debiased coefficients need rows of equal weight.")
        trajectory = kept_run(fitted.record_, iterate.iteration_)
        coef, intercept = fitted.record_.data.coefficients(trajectory.coef[-1:])
        coef = np.atleast_2d(coef[0]).T.astype(np.float64)
        return cls(trajectory, np.concatenate([coef, intercept.reshape(1, -1)]))


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the rows of a fit.

    Shapes: X (n_rows, n_features); means (n_features,).
    """

    X: np.ndarray
    means: np.ndarray
    has_intercept: bool

    @classmethod
    def of(cls, fitted):
        """The features of a fitted estimator."""
        data = fitted.record_.data
        X = data.observed.design.dense_columns(
            np.arange(fitted.n_features_in_), np.float64
        )
        means = data.center[:, 0] if data.is_centered else X.mean(axis=0)
        means = means.astype(np.float64) * data.columns.scale + data.columns.mean
        X = X * data.columns.scale
        if data.has_constant:
            X = X - X.mean(axis=0)
        return cls(X, means, bool(fitted.fit_intercept))

    def are_constant(self, indices):
        """Mask of requested columns that are constant; the intercept is not."""
        rounding = ROUNDINGS * np.finfo(float).eps * np.abs(self.means)
        is_constant = np.zeros(len(indices), dtype=bool)
        for number, j in enumerate(indices):
            if j < len(self.means):
                is_constant[number] = np.ptp(self.X[:, j]) <= rounding[j]
        return is_constant

    def from_middle(self, rows):
        """Rows (n_asked, n_features) less the mean row, if there is an intercept."""
        return rows - self.means if self.has_intercept else rows


class ByDirections:
    """Debiasing of an iterate by held-out residuals along directions over the rows."""

    def __init__(self, fitted, features, covariance):
        self._fitted, self._features = fitted, features
        self._covariance = covariance

    @property
    def has_intercept(self):
        """Whether tables of all columns have a row for the intercept."""
        is_known = isinstance(self._covariance, KnownCovariance)
        is_of_residual = self._fitted.record_.data.problem.loss.is_of_residual
        return self._features.has_intercept and is_known and is_of_residual

    def debias_columns(self, indices, iterations, on_true_scale):
        """Debiased coefficients of the columns ``indices``, for every iterate."""
        runs = [RecordedRun.of(self._fitted, t) for t in iterations]
        scores = [self._scores(run.trajectory) for run in runs]
        directions = self._find_directions(indices)
        determined = directions.are_known() & ~self._features.are_constant(indices)
        _warn_of_columns(self._fitted, indices[~determined])
        for run, run_scores in zip(runs, scores):
            debiased = Debiased.of(run.coef[indices], run_scores, directions)
            debiased = debiased.where(determined)
            if on_true_scale:
                debiased = debiased._replace(scale=self._scale(run, run_scores))
            yield debiased

    def debias_rows(self, rows, iteration):
        """Means of rows (n_asked, n_features), by one iterate, as Debiased."""
        run = RecordedRun.of(self._fitted, iteration)
        scores = self._scores(run.trajectory)
        directions = self._find_directions_of_rows(rows)
        _warn_of_rows(directions.are_known())
        coef, intercept = run.coef[:-1], run.coef[-1]
        return Debiased.of(rows @ coef + intercept, scores, directions)

    def _find_directions(self, indices):
        X, is_column = self._features.X, indices < len(self._features.means)
        of_features = self._covariance.find_directions_of_columns(X, indices[is_column])
        if is_column.all():
            return of_features
        if not self._fitted.record_.data.problem.loss.is_of_residual:
            raise ValueError(
                "The intercept of such a model can only be estimated with "
                "covariance='sample'."
            )
        intercept = self._find_directions_of_rows(np.zeros((1, X.shape[1])))
        vectors, sizes = np.empty((len(X), len(indices))), np.empty(len(indices))
        vectors[:, is_column], sizes[is_column] = of_features
        vectors[:, ~is_column], sizes[~is_column] = intercept
        return Directions(vectors, sizes)

    def _find_directions_of_rows(self, rows):
        """Directions of the means of rows (n_asked, n_features)."""
        # Where there is an intercept, it is that of the mean row.
        centred = self._features.from_middle(rows)
        directions = self._covariance.find_directions_of_rows(self._features.X, centred)
        if self._features.has_intercept:
            # And the coefficient of a constant column.
            n_rows = len(directions.vectors)
            return Directions(
                directions.vectors + 1 / n_rows, np.hypot(directions.sizes, 1 / n_rows)
            )
        return directions

    def _scores(self, trajectory):
        """The residuals of rows that are left out, or what takes their place."""
        fitted, problem = self._fitted, self._fitted.record_.data.problem
        _check_has_scores(problem, trajectory, fitted.n_features_in_)
        if trajectory.n_batches() or not problem.loss.is_quadratic:
            rng = check_random_state(fitted.random_state)
            return scores_at_the_end(problem, trajectory, rng=rng)
        temporal, spatial = self._held_out_residuals
        scores = np.tensordot(temporal[trajectory.n_updates], spatial, axes=1)
        return scores.reshape(len(scores), -1)

    @cached_property
    def _held_out_residuals(self):
        """Factors of the residuals by the memory matrix, computed if fit has not."""
        fitted = self._fitted
        if hasattr(fitted, "risk_residual_path_"):
            return fitted.risk_residual_path_
        estimator = copy(fitted)
        if to_python_scalar(fitted.risk) in (False, "auto"):
            estimator.risk = True
        trajectory = kept_run(fitted.record_, fitted.n_iter_)
        run = FinishedRun(estimator, trajectory, fitted.record_.data, folds=[])
        return read_memory_matrix(run).more["residual_path"]

    def _scale(self, run, scores):
        """The multiple of the truth that a debiased iterate estimates."""
        problem = self._fitted.record_.data.problem
        rng = check_random_state(self._fitted.random_state)
        effects = LabelEffects.of(problem, run.trajectory, N_PROBES, rng)
        labels = _labels_of(problem)
        by_strength = ScaleByStrength.of(effects, labels)
        one_output = run.coef[:-1, 0], scores[:, 0]
        return self._covariance.scale(
            by_strength, self._features.X, labels, *one_output
        )


class WithoutPenalty:
    """Debiasing by the sample covariance: of every iterate the unpenalised minimum."""

    def __init__(self, fitted, features):
        self._fitted, self._features = fitted, features
        self.has_intercept = features.has_intercept

    @cached_property
    def _minimum(self):
        data, X = self._fitted.record_.data, self._features.X
        target = data.observed.target.astype(np.float64) + data.offset
        return Unpenalised.of(self._add_constant(X), target, data.problem.loss)

    def debias_columns(self, indices, iterations, on_true_scale):
        """Coefficients at some places, as :meth:`ByDirections.debias_columns`."""
        runs = [RecordedRun.of(self._fitted, t) for t in iterations]
        X = self._features.X
        n_features = X.shape[1]
        rows = self._add_constant(np.eye(n_features), constant=0.0)
        if self._features.has_intercept:
            zero = self._features.from_middle(np.zeros((1, n_features)))
            rows = np.concatenate([rows, self._add_constant(zero)])
        rows = rows[indices]
        determined = self._minimum.basis.determines(rows)
        determined &= ~self._features.are_constant(indices)
        _warn_of_columns(self._fitted, indices[~determined])
        problem, scale = self._fitted.record_.data.problem, Scale(1.0, 0.0)
        if on_true_scale:
            scale = self._minimum.scale(X, _labels_of(problem), problem.loss)
        for run in runs:
            debiased = self._minimum.debiased(run.coef[indices], rows)
            yield debiased.where(determined)._replace(scale=scale)

    def debias_rows(self, rows, iteration):
        """Means of rows (n_asked, n_features), as :meth:`ByDirections.debias_rows`."""
        run = RecordedRun.of(self._fitted, iteration)
        centred = self._add_constant(self._features.from_middle(rows))
        determined = self._minimum.basis.determines(centred)
        _warn_of_rows(determined)
        coef, intercept = run.coef[:-1], run.coef[-1]
        means = self._minimum.debiased(rows @ coef + intercept, centred)
        return means.where(determined)

    def _add_constant(self, rows, constant=1.0):
        if not self._features.has_intercept:
            return rows
        return np.column_stack([rows, np.full(len(rows), constant)])


def _warn_of_columns(fitted, indices):
    """Warn of columns whose coefficients are NaN, by their names."""
    if len(indices):
        labels = labels_of_columns(fitted)
        warn(
            f"Columns {[labels[j] for j in indices]} are constant, or (nearly) linear "
            "combinations of others and the intercept, like the indicators of all "
            "levels of a category: their coefficients cannot be estimated and are "
            "NaN. Drop one column of each combination.",
            UserWarning,
        )


def _warn_of_rows(determined):
    """Warn of rows whose means are NaN."""
    if not determined.all():
        warn(
            f"Rows {np.flatnonzero(~determined).tolist()} of X lie in directions in "
            "which the training rows hardly vary: their means cannot be estimated and "
            "are NaN.",
            UserWarning,
        )


def debiasing_of(fitted, covariance, X_unlabelled):
    """How iterates of a fitted estimator are debiased."""
    features = Features.of(fitted)
    n_rows, n_features = features.X.shape
    if X_unlabelled is not None:
        if not isinstance(covariance, str) or covariance != "auto":
            raise ValueError("Pass covariance or X_unlabelled, not both.")
        covariance = _covariance_with(features.X, X_unlabelled, features.has_intercept)
    if not isinstance(covariance, str):
        known_covariance = KnownCovariance(covariance, n_features)
        return ByDirections(fitted, features, known_covariance)
    names = "auto", "sample", "nodewise"
    if covariance not in names:
        raise ValueError(
            f"covariance must be {', '.join(map(repr, names))} or an array, got "
            f"{covariance!r}.{did_you_mean(covariance, names)}"
        )
    has_many_rows = n_rows > ROWS_PER_COLUMN * n_features
    if covariance == "sample" or (covariance == "auto" and has_many_rows):
        return WithoutPenalty(fitted, features)
    return ByDirections(fitted, features, Nodewise())


def check_can_debias(fitted):
    """Raise if it is not fitted, has many classes, or lacks data."""
    check_usable(fitted)
    if len(getattr(fitted, "classes_", ())) > 2:
        raise ValueError(
            "Debiased coefficients are not available for more than two classes."
        )
    if fitted.record_.more.get("has_shares", False):
        raise ValueError(
            "Debiased coefficients are of labels, and not available if y has shares of "
            "classes."
        )
    if fitted.record_.data is None:
        fitted._check_has_record()
        raise ValueError(
            "Debiased coefficients need keep_data=True: fit "
            f"{type(fitted).__name__}(keep_data=True), alone or as estimator of "
            "TrajectoryEarlyStoppingCV."
        )


def places_of_columns(fitted, columns):
    """The requested columns as an array of int; None means all."""
    n_features = fitted.n_features_in_
    if columns is None:
        return np.arange(n_features)
    columns = np.atleast_1d(np.asarray(columns))
    if columns.dtype == bool:
        if columns.shape != (n_features,):
            raise ValueError(
                f"columns has {len(columns)} entries for {n_features} features."
            )
        return np.flatnonzero(columns)
    if columns.dtype.kind in "OU":
        names = labels_of_columns(fitted)
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise ValueError(f"X in fit had no columns {[*map(str, unknown)]}.")
        return np.array([names.index(name) for name in columns], dtype=int)
    if ((columns < -n_features) | (columns >= n_features)).any():
        raise ValueError(
            f"columns must be below {n_features}, the features of fit, got "
            f"{columns.tolist()}."
        )
    return columns % n_features


def labels_of_columns(fitted):
    """Names of the features, or their numbers, and of the intercept if there is one."""
    names = fitted._column_names()
    names = range(fitted.n_features_in_) if names is None else names
    return [*names, *([INTERCEPT] if fitted.fit_intercept else [])]


def _labels_of(problem):
    """Whether the target of every row is the second label, as numbers."""
    return (problem.target[:, 0] == problem.loss.labels[1]).astype(np.float64)


def _check_has_scores(problem, trajectory, n_columns, tol=1e-3):
    """Raise if the memory matrix does not debias a run."""
    if len(trajectory.rows_seen()):
        raise ValueError(
            "Debiased coefficients are not available with a preconditioner."
        )
    is_free = all(p.penalty.strength == 0 for p in trajectory.phases)
    if is_free and n_columns > len(problem.target):
        slopes = [
            problem.loss.derivative(problem.target, trajectory.predictor[t])
            for t in (0, -1)
        ]
        first, last = map(np.linalg.norm, slopes)
        if last <= tol * first:
            raise ValueError(
                "The iterate fits every row exactly (no penalty, more columns than "
                "rows), so no residuals are left to estimate the noise from. Use an "
                "earlier iterate."
            )


def _covariance_with(X, X_unlabelled, is_centered):
    """The covariance of the rows of fit and of rows without a target."""
    more = check_array(on_host(X_unlabelled), input_name="X_unlabelled")
    if more.shape[1] != X.shape[1]:
        raise ValueError(
            f"X_unlabelled has {more.shape[1]} features, but fit has seen {X.shape[1]}."
        )
    if is_centered:
        more = more - more.mean(axis=0)
    n_rows = len(X) + len(more)
    if n_rows <= ROWS_OF_COVARIANCE * X.shape[1]:
        raise ValueError(
            f"A covariance of {X.shape[1]} features needs more than {n_rows} rows, "
            f"{ROWS_OF_COVARIANCE} per feature: pass more in X_unlabelled."
        )
    return (X.T @ X + more.T @ more) / n_rows
