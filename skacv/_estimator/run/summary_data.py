"""A summary as a problem: its sampled rows, and pseudo-rows for the others."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from ..._warnings import warn
from ...optim.moments import shifted
from ..data.checks import names_of
from ..data.row_summary import RowSummary, fit_scaler
from ..data.standardized import AS_PASSED, Standardized
from ..data.training_data import ColumnData
from ..estimates.folds import ShuffledFolds
from ..estimates.left_out import check_loo
from ..parameters import to_python_scalar
from .data_reduction import PseudoProblem, unexplained_share


@dataclass(frozen=True)
class SummaryData(ColumnData):
    """Data whose run is on the sampled rows of a summary, and on pseudo-rows."""

    # The sampled rows come first. Pseudo-rows, which stand for all other rows, have
    # number -1 among the samples.
    sample_weights = None  # weights of all samples are not kept


def check_estimates(estimator, estimates, summary):
    """Raise where an estimate needs other rows than the sampled ones."""
    for estimate in estimates:
        if estimate.needs == "rows":
            raise ValueError(
                f"{estimate.path} needs all rows, but a summary keeps only some: set "
                f"{estimate.parameter} to False, or fit to arrays."
            )
    n_single, n_rows = len(summary.sampled_indices_), summary._n_rows
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
            f"{type(estimator).__name__} supports a single target, got {n_targets}."
        )


def n_folds_of(cv, summary):
    """Number of folds of a summary that ``cv`` asks for, 0 for None."""
    cv = to_python_scalar(cv)
    if cv is None:
        return 0
    if isinstance(cv, ShuffledFolds):  # a default: any random folds
        cv = summary.n_folds
    if cv != summary.n_folds or cv == 1:
        setting = cv if isinstance(cv, Integral) else f"a {type(cv).__name__}"
        raise ValueError(
            f"cv is {setting}, but the folds of this summary are "
            f"n_folds={summary.n_folds}, drawn at random: cv must be their number, and "
            "at least 2."
        )
    return cv


def n_folds_asked(estimator):
    """Number of folds of ``cv``, 1 for None."""
    cv = to_python_scalar(estimator.cv)
    if cv is None:
        return 1
    if isinstance(cv, ShuffledFolds):  # a default: any random folds
        return cv.n_splits
    if not isinstance(cv, Integral):
        raise ValueError(
            "partial_fit assigns folds row by row: cv must be None or a number, "
            f"not {type(cv).__name__}."
        )
    return cv


def n_sampled_asked(estimator):
    """Number of rows to keep: as many as ``loo`` leaves out, or the default."""
    loo, default = to_python_scalar(estimator.loo), RowSummary().n_sampled
    return default if isinstance(loo, bool | str) else max(loo, default)


def read_summary(summary, loss, estimator, n_folds):
    """The data of a summary with the columns of a run, and the folds as their rows."""
    columns = AS_PASSED
    if estimator.standardize:
        scaler, centers = fit_scaler(summary), bool(estimator.fit_intercept)
        columns = Standardized(scaler.mean_ * centers, scaler.scale_, centers)
        summary = summary._map_columns(columns.mean, columns.scale)
    data, fold = summary_data(
        summary, loss, estimator.fit_intercept, n_folds > 1, columns
    )
    folds = [
        (np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)
    ]
    if not all(len(rows) for fold in folds for rows in fold):
        raise ValueError(f"cv={n_folds}: some fold of the summary has no rows.")
    return data, folds


def summary_data(summary, loss, fit_intercept, by_fold, columns=AS_PASSED):
    """The data of a summary, and the fold of every row of their problem."""
    # With ``by_fold`` every fold has pseudo-rows of its own.
    n_columns, n_targets = summary.n_features_in_, summary._n_targets
    total, sampled = summary._total(), summary.sampled_indices_
    mean = total.mean if fit_intercept else np.zeros_like(total.mean)
    values, weights, fold = summary._rows_about(mean, by_fold, total)
    if len(sampled) < summary._n_rows:
        _warn_of_lost_digits([shifted(total, mean)], n_targets)
    problem = PseudoProblem.of(
        values,
        weights / total.weight,
        n_targets,
        loss,
        largest_weight=summary._largest_weight / total.weight,
        n_samples=summary._n_rows,
        n_single=len(sampled),
    )
    offset = mean[n_columns:]
    indices = np.full(len(values), -1)
    indices[: len(sampled)] = sampled
    data = SummaryData(
        problem=problem,
        observed=problem,
        y=(problem.target + offset).reshape(len(values), *summary._target_shape),
        total_weight=total.weight,
        rows=indices,
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
    # Without a warning they have five digits of what X does not explain.
    width = len(moments[0].mean)
    rounding = width * np.finfo(float).eps
    share = unexplained_share(moments, n_targets)
    if share < rounding * 1e5:
        warn(
            f"X explains all but {max(share, rounding):.0e} of the variance of y, and "
            f"sums of squares in double precision have rounding of {rounding:.0e} of "
            "it: errors that small are not resolved. Fit to arrays.",
            UserWarning,
        )
