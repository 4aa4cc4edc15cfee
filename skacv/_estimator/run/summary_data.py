"""Fits to a RowSummary: its sampled rows, and pseudo-rows for all others."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._warnings import warn
from ...optim.moments import shifted
from ..data.checks import names_of
from ..data.pseudo_rows import PseudoProblem, unexplained_share
from ..data.row_summary import fitted_scaler
from ..data.standardized import AS_PASSED, Standardized
from ..data.training_data import ColumnData
from ..estimates.folds import ShuffledFolds
from ..estimates.left_out import check_loo
from ..estimates.readers import ESTIMATES
from ..parameters import keeps_data, to_python_scalar
from .fit_run import RowsToFit
from .plan import sees_moments_alone

# Moments in double precision leave so many digits of what X does not explain of y:
# with less, a user is warned.
FEWEST_DIGITS = 5


@dataclass(frozen=True)
class SummaryData(ColumnData):
    """Data whose run is on the sampled rows of a summary, and on rows for the others.

    The sampled rows come first. The others have number -1 among the samples.
    """

    @property
    def sample_weights(self):
        """None: the weights of all samples are not kept."""


@dataclass(frozen=True, eq=False)
class SummarisedRows(RowsToFit):
    """The rows of a summary, for a fit.

    Parameters
    ----------
    n_samples : int
        Rows that it has; it may get more later.
    """

    summary: object
    n_samples: int
    loss: object

    @classmethod
    def of(cls, estimator, summary, y, sample_weight):
        """Those that an estimator is to be fitted to.

        Raises
        ------
        ValueError
            If it needs more than means, moments and some rows.
        """
        check_is_fitted(summary)
        if y is not None or sample_weight is not None:
            raise ValueError(
                "A RowSummary contains targets and weights: pass no y and no "
                "sample_weight."
            )
        if summary._n_rows < 2:
            raise ValueError(
                f"The summary has {summary._n_rows} row(s) of positive weight, while a "
                "minimum of 2 is required."
            )
        update = estimator._spec().solver.update(summary._n_rows)
        if not sees_moments_alone(update):
            raise ValueError(
                "A RowSummary can only be used with gradient steps on all rows, and "
                f"this {type(estimator).__name__} takes others "
                f"({type(update).__name__}): use another solver, or fit to arrays."
            )
        if keeps_data(estimator):
            raise ValueError("keep_data=True needs the rows: fit to arrays.")
        check_outputs(estimator, summary._n_targets)
        loss, _ = estimator._loss_of(None, None)
        return cls(summary, summary.n_samples_seen_, loss)

    def is_same_as(self, other):
        """Whether another fit is to the same rows."""
        if not isinstance(other, SummarisedRows):
            return False
        return other.summary is self.summary and other.n_samples == self.n_samples

    def problem(self, estimator, params, seed, resume):
        """The problem that they make, the folds as rows of it, and no groups.

        Returns
        -------
        SummaryData
        list of (ndarray of int, ndarray of int)
        None
        """
        if params:
            raise TypeError(
                f"fit() got unexpected arguments: {', '.join(sorted(params))}: a "
                "summary has its folds."
            )
        self._check_estimates(estimator)
        n_folds = n_folds_of(estimator.cv, self.summary)
        summary, columns = self._standardized(estimator)
        data, fold = summary_data(
            summary, self.loss, estimator.fit_intercept, n_folds > 1, columns
        )
        folds = [
            (np.flatnonzero(fold != k), np.flatnonzero(fold == k))
            for k in range(n_folds)
        ]
        if not all(len(rows) for fold in folds for rows in fold):
            raise ValueError(f"cv={n_folds}: some fold of the summary has no row.")
        return data, folds, None

    def _standardized(self, estimator):
        """The summary as a run has it, and what has been done to its columns."""
        if not estimator.standardize:
            return self.summary, AS_PASSED
        scaler, centers = fitted_scaler(self.summary), bool(estimator.fit_intercept)
        columns = Standardized(scaler.mean_ * centers, scaler.scale_, centers)
        return self.summary._mapped(columns.mean, columns.scale), columns

    def _check_estimates(self, estimator):
        """Raise where an estimate needs other rows than the sampled ones."""
        for estimate in ESTIMATES.values():
            if estimate.is_on(estimator) and estimate.needs == "rows":
                raise ValueError(
                    f"{estimate.path} needs all rows, and a summary has some: set "
                    f"{estimate.parameter} to False, or fit to arrays."
                )
        n_single, n_rows = len(self.summary.sampled_indices_), self.summary._n_rows
        loo = to_python_scalar(estimator.loo)
        if loo is True and n_single < n_rows:
            raise ValueError(
                f"loo=True leaves out each of the {n_rows} rows, but the summary has "
                f"kept only {n_single}: set loo to at most that number, or use a "
                "larger n_sampled."
            )
        check_loo(loo, n_single)


def check_outputs(estimator, n_targets):
    """Raise on several targets, where the class takes one."""
    if n_targets > 1 and not estimator._multi_output:
        raise ValueError(
            f"{type(estimator).__name__} takes one target, got {n_targets}."
        )


def n_folds_of(cv, summary):
    """How many folds of a summary ``cv`` asks for, 0 for None.

    Raises
    ------
    ValueError
        If the summary has others.
    """
    cv = to_python_scalar(cv)
    if cv is None:
        return 0
    if isinstance(cv, ShuffledFolds):  # a default: any random folds
        cv = summary.n_folds
    if cv != summary.n_folds or cv == 1:
        asked = cv if isinstance(cv, Integral) else f"a {type(cv).__name__}"
        raise ValueError(
            f"cv is {asked}, but the folds of this summary are "
            f"n_folds={summary.n_folds}, drawn at random: cv must be their number, and "
            "at least 2."
        )
    return cv


def summary_data(summary, loss, fit_intercept, by_fold, columns=AS_PASSED):
    """The data of a summary, and the fold of every row of their problem.

    Parameters
    ----------
    by_fold : bool
        Whether the rows of every fold are stood for by rows of their own.
    columns : AsPassed or Standardized
        What has been done to the columns of the summary.

    Returns
    -------
    SummaryData
    fold : ndarray of int, shape (n_rows,)
    """
    n_columns, n_targets = summary.n_features_in_, summary._n_targets
    total, numbers = summary._total(), summary.sampled_indices_
    mean = total.mean if fit_intercept else np.zeros_like(total.mean)
    values, weights, fold = summary._rows_about(mean, by_fold, total)
    if len(numbers) < summary._n_rows:
        _warn_of_lost_digits([shifted(total, mean)], n_targets)
    problem = PseudoProblem.of(
        values,
        weights / total.weight,
        n_targets,
        loss,
        largest_weight=summary._largest_weight / total.weight,
        n_samples=summary._n_rows,
        n_single=len(numbers),
    )
    offset = mean[n_columns:]
    places = np.full(len(values), -1)
    places[: len(numbers)] = numbers
    data = SummaryData(
        problem=problem,
        y=(problem.target + offset).reshape(len(values), *summary._target_shape),
        total_weight=total.weight,
        rows=places,
        n_samples=summary.n_samples_seen_,
        is_1d=not summary._target_shape,
        names=names_of(summary),
        center=mean[:n_columns, None],
        columns=columns,
        offset=offset[None],
        is_centered=bool(fit_intercept),
        has_constant=False,
    )
    return data, fold


def _warn_of_lost_digits(moments, n_targets):
    """Warn where errors are differences of moments that agree in nearly all digits."""
    width = len(moments[0].mean)
    rounding = width * np.finfo(float).eps
    share = unexplained_share(moments, n_targets)
    if share < rounding * 10**FEWEST_DIGITS:
        warn(
            f"X explains all but {max(share, rounding):.0e} of the variance of y, and "
            f"sums of squares in double precision have rounding of {rounding:.0e} of "
            "it: errors that small are not resolved. Fit to arrays.",
            UserWarning,
        )
