"""Several targets of which rows lack some: each has a stopping fit of its own.

A row without a target weighs zero in the fit of that target. So rows keep their
numbers, by which folds and metadata are given, and targets share folds. All else is of
each target: its runs, the iterates that are chosen, and the weights of a blend.
"""

from collections.abc import Iterable
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import wraps
from time import perf_counter

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone

from .._compat import _safe_indexing, available_if, is_foreign_type
from .._estimator.collections import is_collection
from .._estimator.data.checks import (
    check_numbers,
    frame_of_arrow,
    has_missing,
    is_missing,
    target_array,
    validate_offset,
    validate_weights,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.docstrings import INTERVALS, LEVELS, OFFSETS, documented
from .._estimator.prediction.inference import as_frame
from .._estimator.prediction.offsets import given
from .._typing import Method
from ..optim.namespaces import namespace_of
from .data import survival_of_members, task_and_members

# Numbers that a target needs: one to fit, and one to hold out.
FEWEST_NUMBERS = 2


@dataclass(frozen=True, eq=False)
class IncompleteTargets:
    """Several targets for regression, of which rows lack some."""

    # (n_rows, n_targets), NaN where a row lacks a target.
    values: np.ndarray
    # The names of the columns of a table, else their numbers.
    names: list

    @classmethod
    def of(cls, owner, X, y):
        """Those of a fit of a stopping estimator; None if y is anything else."""
        if y is None or is_collection(X) or isinstance(X, RowSummary):
            return None
        table = frame_of_arrow(y)
        values = target_array(table)
        has_several = values.ndim == 2 and values.shape[1] > 1
        if not (has_several and has_missing(values)):
            return None
        present = values[~np.frompyfunc(is_missing, 1, 1)(values).astype(bool)]
        if not present.size or survival_of_members(owner) is not None:
            return None  # no target, or times: errors say so
        if task_and_members(owner, X, present)[0] != "regression":
            return None
        names = getattr(table, "columns", range(values.shape[1]))
        return cls(numbers_of(values), list(names))

    def check_enough(self, sample_weight):
        """Raise if some targets have hardly any numbers, in rows of positive weight."""
        counted = validate_weights(sample_weight, len(self.values)) > 0
        n_numbers = np.count_nonzero(~np.isnan(self.values[counted]), axis=0)
        few = [str(self.names[j]) for j in np.flatnonzero(n_numbers < FEWEST_NUMBERS)]
        if few:
            raise ValueError(
                f"Fewer than {FEWEST_NUMBERS} rows (of positive sample_weight) have a "
                f"number in these columns of y: {', '.join(few)}. Drop the columns."
            )


def numbers_of(values):
    """Targets in double precision, NaN where one is missing; or ValueError."""
    check_numbers(values, "y")
    if values.dtype.kind == "O":
        lacks = np.frompyfunc(is_missing, 1, 1)(values).astype(bool)
        values = np.where(lacks, np.nan, values)
    return values.astype(np.float64)


def fit_targets(owner, targets, X, params, offset):
    """A stopping estimator for every target, fitted to the rows that have it.

    Folds that are listed are shared, and so is the time of a limit.
    """
    model = copy(owner)
    if isinstance(owner.cv, Iterable):
        model.cv = list(owner.cv)
    fitted, begun = [], perf_counter()
    for name, values in zip(targets.names, targets.values.T):
        one = clone(model)
        if owner.time_limit is not None:
            left = owner.time_limit - (perf_counter() - begun)
            n_left = len(targets.names) - len(fitted)
            # Runs with hardly any time say that it is too short.
            one.set_params(time_limit=max(left, 1e-3) / n_left)
        if owner.verbose:
            print(f"[{type(owner).__name__}] target {name}:")
        has_it = ~np.isnan(values)
        y = np.where(has_it, values, values[has_it][0])  # others are not read
        with names_target(name):
            one._fit(X, y, params, offset, has_it)
        fitted.append(one)
    return fitted


@contextmanager
def names_target(name):
    """Errors of the fit of a target have a note that names it."""
    try:
        yield
    except Exception as error:
        error.add_note(f"In the fit of the target {name}, a column of y.")
        raise


def held_out_of_targets(fitted, targets):
    """Held-out predictions of rows for the targets that they have, NaN for others.

    Shapes: returned (n_rows, n_targets)."""
    means = [without_axis_of_targets(one.held_out_prediction_) for one in fitted]
    return np.where(np.isnan(targets.values), np.nan, np.stack(means, axis=1))


def leaderboard_of(fitted, names):
    """The leaderboards of all targets, one below the other, with their names."""
    tables = [one.leaderboard() for one in fitted]
    column = [name for name, table in zip(names, tables) for _ in table["member"]]
    if isinstance(tables[0], dict):
        joined = {key: np.concatenate([t[key] for t in tables]) for key in tables[0]}
        return {"target": np.array(column), **joined}
    joined = as_frame({"target": np.array(column, dtype=object)})
    for key in tables[0]:
        values = [value for table in tables for value in table[key]]
        joined[key] = type(tables[0][key])(values, dtype=tables[0][key].dtype)
    return joined


def check_is_of_all(estimators, names, attribute):
    """Raise an AttributeError if each target has an attribute of its own."""
    is_public = not attribute.startswith("_")
    if is_public and hasattr(estimators[0], attribute):
        raise AttributeError(
            f"Rows lack some of the targets, so each target has its own {attribute}: "
            f"estimators_[0].{attribute} is that of the target {names[0]}, the first "
            f"of {len(names)}."
        )


def _all_have(name):
    """Whether the stopping estimators of all targets have a method."""

    def check(self):
        return all(hasattr(one, name) for one in self.estimators_)

    return check


def for_every_target(method: Method) -> Method:
    """Decorator of a method without a body: results of all targets, side by side."""
    name = method.__name__

    @available_if(_all_have(name))
    @wraps(method)
    def stacked(self, *args, **params):
        parts = [getattr(one, name)(*args, **params) for one in self.estimators_]
        return side_by_side([without_axis_of_targets(part) for part in parts])

    return stacked


def side_by_side(parts, axis=1):
    """Arrays of all targets, on their device, with an axis for these."""
    library = namespace_of(parts[0]) if is_foreign_type(parts[0]) else np
    return library.stack(parts, axis=axis)


def without_axis_of_targets(values):
    """Values of one target, from a model of several, say: (n, 1, ...) becomes (n, ...).

    Nothing else has one entry on the second axis, as intervals have two ends."""
    has_axis = values.ndim > 1 and values.shape[1] == 1
    return values[:, 0] if has_axis else values


class TargetsOneByOne(RegressorMixin, BaseEstimator):
    """Fitted stopping estimators, each for one of several targets.

    Stopping estimators make it where rows of y lack some targets.

    Attributes
    ----------
    estimators_ : list of estimator
        A fitted stopping estimator for every target.
    target_names_ : list
        Names of the columns of y, or their numbers.
    """

    @classmethod
    def of_fitted(cls, estimators, names):
        """That of fitted stopping estimators."""
        model = cls()
        model.estimators_, model.target_names_ = estimators, names
        return model

    @for_every_target
    @documented(OFFSETS)
    def predict(self, X, offset=None):
        """Predict all targets.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples, n_targets)
        """

    @for_every_target
    @documented(INTERVALS, OFFSETS)
    def predict_interval(self, X, coverage=0.9, method="auto", offset=None):
        """Prediction intervals, each from the rows that have the target.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage}
        method : str, default="auto"
        {new_offset}

        Returns
        -------
        {ndarray}
        """

    @available_if(_all_have("predict_quantiles"))
    @documented(LEVELS, OFFSETS)
    def predict_quantiles(
        self, X, levels=(0.05, 0.5, 0.95), method="auto", offset=None
    ):
        """Quantiles of the targets, each from the rows that have the target.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {levels}
        method : str, default="auto"
        {new_offset}

        Returns
        -------
        {ndarray}
        """
        settings = {"levels": levels, "method": method, **given(offset)}
        parts = [one.predict_quantiles(X, **settings) for one in self.estimators_]
        return side_by_side([part.reshape(len(part), -1) for part in parts])

    @for_every_target
    def coef_interval(self, columns=None, coverage=0.95, **settings):
        """Confidence intervals of the coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
        coverage : float, default=0.95
        **settings : dict

        Returns
        -------
        ndarray of shape (n_columns, n_targets, 2)
        """

    @for_every_target
    def predict_mean_interval(self, X, coverage=0.95, **settings):
        """Confidence intervals for the means of the targets, given rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.95
        **settings : dict

        Returns
        -------
        ndarray of shape (n_samples, n_targets, 2)
        """

    @property
    def coef_(self):
        """Coefficients, (n_targets, n_features), where all targets have some."""
        return side_by_side([one.coef_ for one in self.estimators_], axis=0)

    @property
    def intercept_(self):
        """Intercepts, (n_targets,), where all targets have one."""
        return side_by_side([one.intercept_ for one in self.estimators_], axis=0)

    @property
    def n_features_in_(self):
        """Number of features seen in fit."""
        return self.estimators_[0].n_features_in_

    @property
    def feature_names_in_(self):
        """Names of the features, if X has string column names."""
        return self.estimators_[0].feature_names_in_

    @documented(OFFSETS)
    def score(self, X, y, sample_weight=None, offset=None):
        """The mean of the scores of all targets, each on the rows that have it.

        Targets that fewer than two rows have are left out.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        {new_offset}

        Returns
        -------
        float
        """
        values = numbers_of(target_array(frame_of_arrow(y)))
        n_rows, n_targets = len(values), len(self.estimators_)
        if values.shape != (n_rows, n_targets):
            raise ValueError(
                f"y must have {n_targets} columns, one for each target, got an array "
                f"of shape {values.shape}."
            )
        weights = validate_weights(sample_weight, n_rows)
        of_rows = None if offset is None else validate_offset(offset, n_rows)
        scores = []
        for one, target in zip(self.estimators_, values.T):
            rows = np.flatnonzero((weights > 0) & ~np.isnan(target))
            if len(rows) < FEWEST_NUMBERS:
                continue
            passed = {} if sample_weight is None else {"sample_weight": weights[rows]}
            if of_rows is not None:
                passed["offset"] = of_rows[rows]
            scores.append(one.score(_safe_indexing(X, rows), target[rows], **passed))
        if not scores:
            raise ValueError(
                f"y has fewer than {FEWEST_NUMBERS} numbers of each target, in rows of "
                "positive sample_weight."
            )
        return float(np.mean(scores))

    def __getattr__(self, name):
        if "estimators_" in vars(self):
            check_is_of_all(self.estimators_, self.target_names_, name)
        message = f"{type(self).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message)

    def drop_record(self, intervals=True):
        """A copy that keeps only what predictions need.

        Parameters
        ----------
        intervals : bool, default=True

        Returns
        -------
        estimator
        """
        estimators = [one.drop_record(intervals) for one in self.estimators_]
        return self.of_fitted(estimators, self.target_names_)
