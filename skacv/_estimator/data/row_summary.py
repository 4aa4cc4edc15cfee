"""RowSummary: the moments of the data, from one pass over the rows."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from ..._compat import Interval, _fit_context, on_host
from ...optim.moments import (
    Moments,
    add_to_groups,
    blocks_of_rows,
    dense_rows,
    merged,
    pseudo_rows,
    shifted,
    varying,
)
from .checks import check_sizes, names_of, validate_rows_and_target, validate_weights
from .row_blocks import blocks_of
from .sampled_rows import as_sample, draw_sample, hash_numbers, may_be_drawn

# Moments of more columns take longer than runs on the rows, and gigabytes.
MAX_COLUMNS = 5000
NO_ROWS = np.empty((0, 2), dtype=np.int64)


class RowSummary(BaseEstimator):
    """Moments of the data for every fold and a sample of rows, from one pass.

    For the squared error, updates depend on the rows only through the means and second
    moments of [X y]. This class accumulates these moments for every fold and keeps some
    random rows. Estimators fitted to the summary give the same iterates and
    ``risk_path_`` as with all rows, the exact ``cv_path_``, and exact leave-one-out of
    the sampled rows. Data that do not fit in memory are passed block by block, and
    summaries of different rows can be merged. Read more in the :doc:`user guide
    </guide/scale>`.

    :class:`TrajectoryLasso`, :class:`TrajectoryElasticNet`,
    :class:`TrajectoryGroupLasso`, :class:`IterativeRidge`, :class:`TrajectoryRegressor`
    and :class:`TrajectoryEarlyStoppingCV` are fitted with ``fit(summary)``, any number
    of times and with different parameters.

    Parameters
    ----------
    n_folds : int, default=5
        Number of folds for ``cv``; 1 means no folds. The fold of a row is a hash of its
        number; it does not depend on the blocks or their order.
    n_sampled : int, default=1000
        Number of random rows to keep, for leave-one-out, standard errors and the spread
        of row norms. With fewer rows all are kept, and results are those of all rows.

    Attributes
    ----------
    n_samples_seen_ : int
        Number of rows so far, including rows of weight zero.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.
    sampled_indices_ : ndarray of int
        Indices of the rows that are kept.

    See Also
    --------
    TrajectoryLasso.partial_fit : Fits an estimator to blocks of rows directly.

    Notes
    -----
    Moments are accumulated in double precision about the means (Chan, Golub and LeVeque
    1983, "Algorithms for computing the sample variance"). They take 8 n_folds
    (n_features + n_targets)^2 bytes. X may have at most 5000 columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import RowSummary, TrajectoryEarlyStoppingCV, TrajectoryLasso
    >>> rng = np.random.default_rng(0)
    >>> summary = RowSummary(n_folds=5)
    >>> for _ in range(10):  # rows may come from files, a generator, a database
    ...     X = rng.standard_normal((5000, 20))
    ...     summary = summary.partial_fit(X, X[:, 0] + rng.standard_normal(5000))
    >>> lasso = TrajectoryLasso("path", max_iter=10)
    >>> model = TrajectoryEarlyStoppingCV(lasso).fit(summary)
    >>> bool(abs(model.best_score_ - 1) < 0.05)
    True
    """

    _parameter_constraints = {
        "n_folds": [Interval(Integral, 1, None, closed="left")],
        "n_sampled": [Interval(Integral, 2, None, closed="left")],
    }

    def __init__(self, n_folds: int = 5, n_sampled: int = 1000) -> None:
        self.n_folds = n_folds
        self.n_sampled = n_sampled

    # ---------------------------------------------------------------- taking rows in

    @classmethod
    def from_blocks(
        cls,
        blocks: Iterable[tuple[Any, ...]],
        n_folds: int = 5,
        n_sampled: int = 1000,
        progress: Callable[[int], Any] | None = None,
    ) -> Self:
        """The summary of blocks of rows.

        Parameters
        ----------
        blocks : iterable of (X, y) or (X, y, sample_weight)
            Blocks of rows, each as for :meth:`partial_fit`. A generator is read one
            block at a time.
        n_folds, n_sampled : int
        progress : callable, default=None
            Called as ``progress(n_samples)`` after every block, with the number of rows
            so far.

        Returns
        -------
        RowSummary

        Raises
        ------
        ValueError
            If a block is invalid; the message has its number, starting from 0.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import RowSummary
        >>> X, y = load_diabetes(return_X_y=True)
        >>> blocks = ((X[i : i + 100], y[i : i + 100]) for i in range(0, 442, 100))
        >>> RowSummary.from_blocks(blocks).n_samples_seen_
        442
        """
        summary = cls(n_folds=n_folds, n_sampled=n_sampled)
        for number, block in enumerate(blocks):
            if not isinstance(block, tuple | list) or len(block) not in (2, 3):
                raise ValueError(
                    f"Block {number} is not (X, y) or (X, y, sample_weight): pass an "
                    "iterable of such tuples, or arrays to fit."
                )
            add_block(summary, number, *block)
            if progress is not None:
                progress(summary.n_samples_seen_)
        if not hasattr(summary, "_n_rows"):
            raise ValueError("blocks is empty.")
        return summary

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        n_folds: int = 5,
        n_sampled: int = 1000,
        progress: Callable[[int], Any] | None = None,
    ) -> Self:
        """The summary of arrays that are read a block of rows at a time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Anything with a ``shape`` that can be sliced as ``X[first:last]``: arrays of
            NumPy, ``numpy.memmap``, h5py or zarr, and CSR matrices.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        n_folds, n_sampled : int
        progress : callable, default=None
            As in :meth:`from_blocks`.

        Returns
        -------
        RowSummary

        Raises
        ------
        ValueError
            If a block is invalid; the message has its number, starting from 0.
        """
        blocks = blocks_of(X, y, sample_weight)
        return cls.from_blocks(blocks, n_folds, n_sampled, progress)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Summarise these rows, discarding all previous ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self : object
        """
        summary = RowSummary(self.n_folds, self.n_sampled)
        vars(self).update(vars(summary._add_rows(X, y, sample_weight)))
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        first_row: int | None = None,
    ) -> Self:
        """Add a block of rows to the summary.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A block of rows; also float32 is accumulated in double precision.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows. Rows with weight zero are ignored.
        first_row : int, default=None
            Number of the block's first row among all rows, which determines folds and
            sample. None: the block follows the last row so far. Needed if summaries are
            merged.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the rows do not match those so far in columns or targets, are not finite,
            or were added before. The summary is then unchanged.
        """
        return self._add_rows(X, y, sample_weight, first_row)

    def _add_rows(self, X, y, sample_weight, first_row=None):
        is_first = not hasattr(self, "_moments")
        X, y, names = validate_rows_and_target(
            self, on_host(X), y, reset=is_first, multi_output=True
        )
        weights = validate_weights(sample_weight, len(y))
        self._check_columns(X, y, is_first)
        check_sizes(X, y)
        ranges = NO_ROWS if is_first else self._ranges
        first = _first_of(first_row, ranges)
        ranges = join_ranges(ranges, [[first, first + X.shape[0]]])
        if is_first:
            vars(self).update(_nothing(self.n_folds, names, y))
        self._ranges = ranges
        self.n_samples_seen_ += X.shape[0]
        self._add(first + np.arange(X.shape[0]), X, y.reshape(len(y), -1), weights)
        return self

    def _check_columns(self, X, y, is_first):
        """Raise on rows that do not match the others."""
        if X.shape[1] > MAX_COLUMNS:
            raise ValueError(
                f"X has {X.shape[1]} columns, but a RowSummary supports at most "
                f"{MAX_COLUMNS}: fit arrays, or Dask arrays, whose rows stay on their "
                "workers."
            )
        shape = y.shape[1:]
        if not is_first and shape != self._target_shape:
            raise ValueError(
                f"Targets have shape {shape} per row, but those so far have "
                f"{self._target_shape}."
            )

    def _add(self, numbers, X, target, weights):
        """Sample rows, or add them to the moments of their fold."""
        if not weights.all():
            kept = np.flatnonzero(weights)
            numbers, X, target = numbers[kept], X[kept], target[kept]
            weights = weights[kept]
        if not len(numbers):
            return
        self._n_rows += len(numbers)
        self._largest_weight = max(self._largest_weight, float(weights.max()))
        priorities = hash_numbers(numbers, seed=2)
        drawable = may_be_drawn(self._sample, priorities, self.n_sampled)
        rows = dense_rows(X[drawable], target[drawable])
        rows = as_sample(
            numbers[drawable], priorities[drawable], weights[drawable], rows
        )
        self._sample, dropped = draw_sample(self._sample, rows, self.n_sampled)
        self._add_moments(dropped)
        is_rest = np.ones(len(numbers), dtype=bool)
        is_rest[drawable] = False
        width, fold = X.shape[1] + target.shape[1], self.fold_of(numbers)
        for rows in blocks_of_rows(len(numbers), width, self.n_folds):
            index = np.flatnonzero(is_rest[rows]) + rows.start
            if len(index) == rows.stop - rows.start:
                index = rows  # no copy
            block = dense_rows(X[index], target[index])
            add_to_groups(self._moments, fold[index], block, weights[index])

    def _add_moments(self, sampled):
        """Add rows that are no longer sampled to the moments."""
        fold = self.fold_of(sampled["number"])
        rows, weights = sampled["row"].copy(), sampled["weight"]
        add_to_groups(self._moments, fold, rows, weights)

    def merge(self, summary: Self) -> Self:
        """Add the rows of another summary to this one.

        Parameters
        ----------
        summary : RowSummary
            A summary of different rows, by row number (``first_row`` of
            :meth:`partial_fit`), with the same ``n_folds`` and ``n_sampled``. It is not
            changed.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the summaries have different parameters, columns or targets, or rows in
            common.
        """
        check_is_fitted(summary)
        if not hasattr(self, "_moments"):
            vars(self).update(vars(deepcopy(summary)))
            return self
        self._check_mergeable(summary)
        self._ranges = join_ranges(self._ranges, summary._ranges)
        for moments, added in zip(self._moments, summary._moments):
            moments.add(added.weight, added.mean, added.scatter)
        self._sample, dropped = draw_sample(
            self._sample, summary._sample, self.n_sampled
        )
        self._add_moments(dropped)
        self._n_rows += summary._n_rows
        self.n_samples_seen_ += summary.n_samples_seen_
        self._largest_weight = max(self._largest_weight, summary._largest_weight)
        return self

    def _check_mergeable(self, summary):
        for name in ("n_folds", "n_sampled", "n_features_in_", "_target_shape"):
            values = getattr(self, name), getattr(summary, name)
            if values[0] != values[1]:
                raise ValueError(
                    f"Summaries with different {name.strip('_')} cannot be merged: "
                    f"{values[0]} and {values[1]}."
                )
        names = [getattr(part, "feature_names_in_", None) for part in (self, summary)]
        if not np.array_equal(*names):
            raise ValueError("Summaries with different columns cannot be merged.")

    # ------------------------------------------------------------- what it is used for

    def fold_of(self, numbers: ArrayLike) -> np.ndarray:
        """The folds of rows.

        Parameters
        ----------
        numbers : ndarray of int, shape (n,)
            Row numbers, starting from 0 in the order in which rows were added.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        group, index = np.divmod(numbers, self.n_folds)
        shift = (hash_numbers(group, seed=1) % np.uint64(self.n_folds)).astype(np.int64)
        return (index + shift) % self.n_folds

    @property
    def sampled_indices_(self) -> np.ndarray:
        """Indices of the rows that are kept."""
        return self._sample["number"]

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows with positive weight and of columns."""
        return self._n_rows, self.n_features_in_

    def __len__(self):
        return self._n_rows

    @property
    def _n_targets(self):
        """Number of targets."""
        return int(np.prod(self._target_shape, dtype=int))

    def _rows_about(self, mean, by_fold, total):
        """The sampled rows less a mean, then pseudo-rows with the moments of the rest.

        Shapes: mean (width,); returned rows (n, width), weights (n,), fold (n,).
        """
        # The fold of a pseudo-row that represents several folds is -1; with ``by_fold``
        # every fold has its pseudo-rows.
        sample, groups = self._sample, self._moments
        numbers = np.arange(self.n_folds)
        if not by_fold:
            groups, numbers = [merged(groups)], np.array([-1])
        has_rows = np.array([moments.weight > 0 for moments in groups])
        rows, weights = [sample["row"] - mean], [sample["weight"]]
        fold = [self.fold_of(sample["number"])]
        if has_rows.any():
            groups = [shifted(moments, mean) for moments in groups if moments.weight]
            added, added_weights = pseudo_rows(groups)
            rows.append(added)
            weights.append(added_weights)
            fold.append(np.repeat(numbers[has_rows], len(added) // len(groups)))
        rows = np.concatenate(rows) * varying(total, mean)
        return rows, np.concatenate(weights), np.concatenate(fold)

    def standardized(self) -> Any:
        """The same summary for columns scaled to mean zero and variance one.

        Gradient methods need columns of about the same scale. An estimator fitted to
        the new summary predicts for rows that the scaler has transformed.

        Returns
        -------
        scaler : StandardScaler
            Fitted to all rows.
        summary : RowSummary

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.pipeline import make_pipeline
        >>> from skacv import IterativeRidge, RowSummary
        >>> X, y = load_diabetes(return_X_y=True)
        >>> scaler, summary = RowSummary().fit(X, y).standardized()
        >>> model = make_pipeline(scaler, IterativeRidge().fit(summary))
        >>> model.predict(X[:2]).shape
        (2,)
        """
        check_is_fitted(self)
        scaler = fit_scaler(self)
        return scaler, self._map_columns(scaler.mean_, scaler.scale_)

    def _map_columns(self, mean, scale_of_columns):
        """The same summary for columns (x - mean) / scale."""
        n_columns, width = self.n_features_in_, self.n_features_in_ + self._n_targets
        shift, scale = np.zeros(width), np.ones(width)
        shift[:n_columns], scale[:n_columns] = mean, scale_of_columns
        summary = deepcopy(self)
        summary._moments = [shifted(part, shift, scale) for part in self._moments]
        summary._sample["row"] = (self._sample["row"] - shift) / scale
        return summary

    def _total(self):
        """The moments of all rows."""
        total = merged(self._moments)
        if len(self._sample):
            total.add_rows(self._sample["row"].copy(), self._sample["weight"])
        return total

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags


def add_block(summary, number, *block, first_row=None):
    """A summary with one more block of rows; errors name the number of the block."""
    try:
        return summary.partial_fit(*block, first_row=first_row)
    except (ValueError, TypeError) as error:
        raise type(error)(f"Block {number}: {error}") from error


def _first_of(first_row, ranges):
    """The number of the first row of a block; by default after the rows so far."""
    if first_row is None:
        return int(ranges.max(initial=0))
    if not isinstance(first_row, Integral) or first_row < 0:
        raise ValueError(
            "first_row must be the number of a row, a nonnegative integer, got "
            f"{first_row!r}."
        )
    return int(first_row)


def join_ranges(ranges, added):
    """Numbers of rows as ranges in order, of which none adjoins another.

    Shapes: ranges, added, returned (n_ranges, 2), first row and row after the last.
    """
    joined = np.concatenate([ranges, np.asarray(added)])
    joined = joined[np.argsort(joined[:, 0], kind="stable")]
    overlap = np.flatnonzero(joined[1:, 0] < joined[:-1, 1])
    if len(overlap):
        first, last = joined[overlap[0] + 1, 0], joined[overlap[0] : overlap[0] + 2, 1]
        raise ValueError(
            f"Rows {first} to {last.min() - 1} are there already, or others with the "
            "same numbers. Pass first_row, the number of the first row of a block "
            "among all rows, to partial_fit."
        )
    begins = np.append(True, joined[1:, 0] > joined[:-1, 1])
    ends = np.append(begins[1:], True)
    return np.stack([joined[begins, 0], joined[ends, 1]], axis=1)


def _nothing(n_folds, names, y):
    """An empty summary."""
    width = names["n_features_in_"] + int(np.prod(y.shape[1:], dtype=int))
    return {
        **names,
        "_target_shape": y.shape[1:],
        "_moments": [Moments(width) for _ in range(n_folds)],
        "_sample": as_sample([], [], [], np.empty((0, width))),
        "_largest_weight": 0.0,
        "_n_rows": 0,
        "n_samples_seen_": 0,
    }


def fit_scaler(summary):
    """A StandardScaler fitted to all rows of a summary."""
    scaler, columns = StandardScaler(), slice(summary.n_features_in_)
    total = summary._total()
    scaler.mean_ = total.mean[columns].copy()
    scaler.var_ = np.diagonal(total.scatter)[columns] / total.weight
    # As in StandardScaler, constant columns keep their size.
    is_scaled = varying(total, total.mean)[columns] & (scaler.var_ > 0)
    scaler.scale_ = np.sqrt(np.where(is_scaled, scaler.var_, 1.0))
    scaler.n_samples_seen_ = summary.n_samples_seen_
    vars(scaler).update(names_of(summary))
    return scaler
