"""Debiased coefficients of the iterates of a fitted linear model."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state

from ..._compat import on_host
from ...optim.trajectory import Trajectory
from ...risk.inference.debiased import Debiased
from ...risk.inference.label_effects import LabelEffects
from ...risk.inference.scores import N_PROBES, scores_at_the_end
from ...risk.inference.single_index import ScaleByStrength
from ..data.training_data import check_usable
from ..estimates.left_out import kept_run
from .directions import KnownCovariance, Nodewise

# Residuals of so small a share of the target's are those of an interpolating iterate.
INTERPOLATES = 1e-3
# Columns whose entries differ by so small a share of their mean are constant.
CONSTANT = 1e-12


class ScoredRun(NamedTuple):
    """A run up to an iterate, with the scores that debias it.

    Attributes
    ----------
    coef : ndarray of shape (n_features, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    scores : ndarray of shape (n_rows, n_outputs)
    """

    trajectory: Trajectory
    coef: np.ndarray
    intercept: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True, eq=False)
class Features:
    """The features of the rows of a fit, and their covariance.

    Attributes
    ----------
    X : ndarray of shape (n_rows, n_features)
        Centred if there is an intercept.
    means : ndarray of shape (n_features,)
        Means before centring.
    covariance : KnownCovariance or Nodewise
    """

    X: np.ndarray
    means: np.ndarray
    covariance: KnownCovariance | Nodewise

    @classmethod
    def of(cls, fitted, covariance, X_unlabelled, columns=()):
        """The features of a fit.

        Parameters
        ----------
        fitted : fitted estimator
        covariance, X_unlabelled : object
            As users pass them.
        columns : ndarray of int
            The requested columns.

        Raises
        ------
        ValueError
            If a requested column is constant, or the covariance does not match the
            features.
        """
        data = fitted._data
        X = data.observed.design.dense_columns(
            np.arange(fitted.n_features_in_), np.float64
        )
        means = data.center[:, 0] if data.is_centered else X.mean(axis=0)
        means = means.astype(np.float64) * data.columns.scale + data.columns.mean
        X = X * data.columns.scale
        if data.has_constant:
            X = X - X.mean(axis=0)
        sizes = np.abs(means)
        constant = [int(j) for j in columns if np.ptp(X[:, j]) <= CONSTANT * sizes[j]]
        if constant:
            raise ValueError(
                f"Columns {constant} are constant: they have no coefficient of their "
                "own."
            )
        known = _covariance(X, covariance, X_unlabelled, fitted.fit_intercept)
        return cls(X, means, known)


def debiased(fitted, columns, iterations, covariance, X_unlabelled=None):
    """Indices of the requested columns, and their debiased coefficients.

    They estimate the true coefficients of a linear model, or for classes and counts a
    multiple of them, which :func:`on_true_scale` estimates for logistic models.

    Parameters
    ----------
    columns, covariance, X_unlabelled : object
        As users pass them.
    iterations : list of int or None
        None is the iterate in use.

    Returns
    -------
    index : ndarray of int
    features : Features
    found : list of (ScoredRun, Debiased)
        One pair for every iteration, from directions computed once.
    """
    index = places_of_columns(fitted, columns)
    runs = [scored_run(fitted, t) for t in iterations]
    features = Features.of(fitted, covariance, X_unlabelled, index)
    directions = features.covariance.of_columns(features.X, index)
    found = [Debiased.of(run.coef[index], run.scores, directions) for run in runs]
    return index, features, list(zip(runs, found))


def debiased_means(fitted, rows, iteration, covariance, X_unlabelled=None):
    """Linear predictors of rows, debiased.

    Parameters
    ----------
    rows : ndarray of shape (n_asked, n_features)
    iteration : int or None
    covariance, X_unlabelled : object
        As users pass them.

    Returns
    -------
    Debiased
    """
    run = scored_run(fitted, iteration)
    features = Features.of(fitted, covariance, X_unlabelled)
    # Where there is an intercept, it is that of the mean row.
    middle = features.means if fitted.fit_intercept else 0.0
    directions = features.covariance.of_rows(features.X, rows - middle)
    if fitted.fit_intercept:
        directions = directions.with_constant()
    return Debiased.of(rows @ run.coef + run.intercept, run.scores, directions)


def on_true_scale(fitted, run, found, features):
    """Debiased coefficients divided by the multiple of the truth that they estimate.

    Returns
    -------
    Debiased
    """
    problem, rng = fitted._data.problem, check_random_state(fitted.random_state)
    effects = LabelEffects.of(problem, run.trajectory, N_PROBES, rng)
    labels = (problem.target[:, 0] == problem.loss.labels[1]).astype(np.float64)
    by_strength = ScaleByStrength.of(effects, labels)
    one_output = run.coef[:, 0], run.scores[:, 0]
    scale = features.covariance.scale(by_strength, features.X, labels, *one_output)
    return found._replace(scale=scale)


def check_can_debias(fitted):
    """Raise if it is not fitted, has many classes, or lacks data or scores."""
    check_usable(fitted)
    if len(getattr(fitted, "classes_", ())) > 2:
        raise ValueError(
            "Debiased coefficients are not available for more than two classes."
        )
    there = {
        "keep_data=True": fitted._data is not None,
        "risk=True": hasattr(fitted, "risk_path_"),
    }
    missing = [setting for setting, is_there in there.items() if not is_there]
    if missing:
        raise ValueError(
            f"Debiased coefficients need {' and '.join(missing)}: fit "
            f"{type(fitted).__name__}({', '.join(missing)}), alone or as estimator "
            "of TrajectoryEarlyStoppingCV."
        )


def scored_run(fitted, iteration):
    """The run up to an iterate, with its scores.

    Raises
    ------
    ValueError
        If there is no such iterate, or it cannot be debiased.
    """
    iterate = fitted if iteration is None else fitted.at_iteration(iteration)
    t, problem = iterate.iteration_, fitted._data.problem
    trajectory = kept_run(fitted, t)
    _check_debiasable(problem, trajectory, fitted.n_features_in_)
    # On all rows, the residuals of rows that are left out are the scores.
    if trajectory.n_batches() or not problem.loss.is_quadratic:
        rng = check_random_state(fitted.random_state)
        scores = scores_at_the_end(problem, trajectory, rng=rng)
    else:
        temporal, spatial = fitted.risk_residual_path_
        scores = np.tensordot(temporal[t], spatial, axes=1)
        scores = scores.reshape(len(scores), -1)
    coef, intercept = fitted._data.coefficients(trajectory.coef[-1:])
    coef = np.atleast_2d(coef[0]).T.astype(np.float64)
    return ScoredRun(trajectory, coef, intercept.reshape(-1), scores)


def places_of_columns(fitted, columns):
    """The requested columns as an array of int; None means all.

    Raises
    ------
    ValueError
        If there is no such column, or names were not seen in fit.
    """
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
        names = list(getattr(fitted, "feature_names_in_", []))
        unknown = [name for name in columns if name not in names]
        if unknown:
            raise ValueError(f"There are no columns {unknown} in the X of fit.")
        return np.array([names.index(name) for name in columns])
    if ((columns < -n_features) | (columns >= n_features)).any():
        raise ValueError(
            f"columns must be below {n_features}, the features of fit, got "
            f"{columns.tolist()}."
        )
    return columns % n_features


def _check_debiasable(problem, trajectory, n_columns):
    """Raise if the theory of debiasing does not apply to a run."""
    if np.ptp(problem.row_weights) > 1e-9 * problem.row_weights.max():
        raise ValueError("Debiased coefficients need rows of equal weight.")
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
        if last <= INTERPOLATES * first:
            raise ValueError(
                "The iterate fits every row, without a penalty and with more columns "
                "than rows: there are no residuals to estimate the noise from. Use an "
                "earlier iterate."
            )


def _covariance(X, covariance, X_unlabelled, is_centered):
    """The covariance of the columns, known or not.

    Returns
    -------
    KnownCovariance or Nodewise
    """
    if X_unlabelled is not None:
        if not isinstance(covariance, str):
            raise ValueError("Pass covariance or X_unlabelled, not both.")
        covariance = _covariance_with(X, X_unlabelled, is_centered)
    elif isinstance(covariance, str):
        if covariance != "nodewise":
            raise ValueError(
                f"covariance must be 'nodewise' or an array, got {covariance!r}."
            )
        return Nodewise()
    return KnownCovariance(covariance, X.shape[1])


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
    if n_rows <= X.shape[1]:
        raise ValueError(
            f"A covariance of {X.shape[1]} features needs more than {n_rows} rows: use "
            "covariance='nodewise'."
        )
    return (X.T @ X + more.T @ more) / n_rows
