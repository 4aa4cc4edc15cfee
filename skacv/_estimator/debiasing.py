"""Debiased coefficients of the iterates of a linear model: what is needed for them."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from .._compat import on_host
from ..optim.trajectory import Trajectory
from ..risk.inference.debiased import Debiased
from ..risk.inference.scores import scores_at_the_end
from .directions import KnownCovariance, Nodewise
from .left_out import kept_run

# Residuals of so small a share of the target's are those of an interpolating iterate.
INTERPOLATES = 1e-3
# Columns whose entries differ by so small a share of their mean are constant.
CONSTANT = 1e-12


class ScoredRun(NamedTuple):
    """A run up to an iterate, and what debiases that.

    Attributes
    ----------
    trajectory : Trajectory
    scores : ndarray of shape (n_rows, n_outputs)
    """

    trajectory: Trajectory
    scores: np.ndarray


class DebiasesCoefficients:
    """The iterates of a linear model, debiased."""

    def _debiased(self, columns, iterations, covariance, X_unlabelled):
        """Places of the asked columns, and their coefficients, debiased.

        Returns
        -------
        index : ndarray of int
        found : list of Debiased or Scaled
            One for every iteration; None is the iterate in use.
        """
        self._check_can_debias()
        index = self._places_of_columns(columns)
        runs = [self._scored_run(t) for t in iterations]
        X = self._features()
        self._check_columns(X, index)
        known = _covariance(X, covariance, X_unlabelled, self.fit_intercept)
        directions = known.of_columns(X, index)
        found = [
            Debiased.of(
                self._at_the_end(run.trajectory)[0][index], run.scores, directions
            )
            for run in runs
        ]
        return index, [
            self._on_its_scale(each, run, X, known) for each, run in zip(found, runs)
        ]

    def _debiased_means(self, rows, run, covariance, X_unlabelled):
        """Linear predictors of rows, debiased: :class:`Debiased`.

        Parameters
        ----------
        rows : ndarray of shape (n_asked, n_features)
        run : ScoredRun
        covariance, X_unlabelled : object
            As users pass them.
        """
        X = self._features()
        known = _covariance(X, covariance, X_unlabelled, self.fit_intercept)
        # Where there is an intercept, it is that of the mean row.
        middle = self._feature_means() if self.fit_intercept else np.zeros(X.shape[1])
        coef, intercept = self._at_the_end(run.trajectory)
        directions = known.of_rows(X, rows - middle)
        if self.fit_intercept:
            directions = directions.with_constant()
        return Debiased.of(rows @ coef + intercept, run.scores, directions)

    def _on_its_scale(self, found, run, X, known):
        """Debiased coefficients are about the true ones; of classes, about multiples.

        Parameters
        ----------
        found : Debiased
        run : ScoredRun
        X : ndarray of shape (n_rows, n_features)
        known : KnownCovariance or Nodewise
        """
        return found

    def _check_can_debias(self):
        """Raise where this is not fitted, has many classes, or lacks what is needed."""
        check_is_fitted(self)
        if len(getattr(self, "classes_", ())) > 2:
            raise ValueError(
                "Debiased coefficients are not available for more than two classes."
            )
        there = {
            "keep_data=True": self._data is not None,
            "risk=True": hasattr(self, "risk_path_"),
        }
        missing = [setting for setting, is_there in there.items() if not is_there]
        if missing:
            raise ValueError(
                f"Debiased coefficients need {' and '.join(missing)}: fit "
                f"{type(self).__name__}({', '.join(missing)}), alone or as estimator "
                "of TrajectoryEarlyStoppingCV."
            )

    def _scored_run(self, iteration):
        """The run up to an iterate, with its scores.

        Raises
        ------
        ValueError
            If there is no such iterate, or it cannot be debiased.
        """
        iterate = self if iteration is None else self.at_iteration(iteration)
        t, problem = iterate.iteration_, self._data.problem
        trajectory = kept_run(self, t)
        _check_debiasable(problem, trajectory, self.n_features_in_)
        return ScoredRun(trajectory, self._scores(trajectory, t))

    def _scores(self, trajectory, t):
        """What debiases iterate t, (n_rows, n_outputs)."""
        problem = self._data.problem
        # On all rows, the residuals of rows that are left out are the scores.
        if trajectory.n_batches() or not problem.loss.is_quadratic:
            rng = check_random_state(self.random_state)
            return scores_at_the_end(problem, trajectory, rng=rng)
        temporal, spatial = self.risk_residual_path_
        found = np.tensordot(temporal[t], spatial, axes=1)
        return found.reshape(len(found), -1)

    def _places_of_columns(self, columns):
        """The asked columns as an array of int.

        Raises
        ------
        ValueError
            If there is no such column, or names were not seen in fit.
        """
        n_features = self.n_features_in_
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
            names = list(getattr(self, "feature_names_in_", []))
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

    def _at_the_end(self, trajectory):
        """Coefficients of a run's last iterate, (n_features, n_outputs); intercepts."""
        coef, intercept = self._data.coefficients(trajectory.coef[-1:])
        return np.atleast_2d(coef[0]).T.astype(np.float64), intercept.reshape(-1)

    def _features(self):
        """The features of all rows, centred where there is an intercept."""
        data = self._data
        columns = np.arange(self.n_features_in_)
        X = data.observed.design.dense_columns(columns, np.float64) * data.columns.scale
        return X - X.mean(axis=0) if data.has_constant else X

    def _check_columns(self, X, index):
        """Raise a ValueError if an asked column is constant."""
        sizes = np.abs(self._feature_means())
        constant = [int(j) for j in index if np.ptp(X[:, j]) <= CONSTANT * sizes[j]]
        if constant:
            raise ValueError(
                f"Columns {constant} are constant: they have no coefficient of their "
                "own."
            )

    def _feature_means(self):
        """Means of the features, before they are centred."""
        data, columns = self._data, np.arange(self.n_features_in_)
        means = data.center[:, 0].astype(np.float64)
        if not data.is_centered:
            X = data.observed.design.dense_columns(columns, np.float64)
            means = X.mean(axis=0)
        return means * data.columns.scale + data.columns.mean

    def _table(self, index, found):
        """What is said of every asked column, as arrays."""
        parts = {
            "coef": found.coef,
            "estimate": found.estimate,
            "standard_error": found.standard_error,
            "z": found.z,
            "p_value": found.p_value,
        }
        if self._data.has_flat_predictions:
            parts = {name: part[:, 0] for name, part in parts.items()}
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        return {"column": names[index], **parts}

    def _interval_table(self, index, found, coverage):
        """The same, with the ends of intervals."""
        lower, upper = np.moveaxis(found.interval(coverage), -1, 0)
        if self._data.has_flat_predictions:
            lower, upper = lower[:, 0], upper[:, 0]
        return {**self._table(index, found), "lower": lower, "upper": upper}

    def _interval_tables(
        self, columns, coverage, iterations, covariance, X_unlabelled=None
    ):
        """Tables with intervals of several iterates, by directions found once.

        Yields
        ------
        dict of ndarray
        """
        check_coverage(coverage)
        index, found = self._debiased(columns, iterations, covariance, X_unlabelled)
        for each in found:
            yield self._interval_table(index, each, coverage)


def as_frame(table):
    """A table as a DataFrame where pandas is installed and cells are numbers."""
    if any(np.ndim(column) > 1 for column in table.values()):
        return table
    try:
        import pandas as pd
    except ImportError:
        return table
    return pd.DataFrame(table)


def check_coverage(coverage):
    """Raise where an interval cannot cover so often."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, got {coverage}.")


def _check_debiasable(problem, trajectory, n_columns):
    """Raise where the debiased iterate would not be what it says."""
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
    """What is known of the covariance of the columns.

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
