"""Estimators that can be fitted block by block, by ``partial_fit``."""

from numbers import Integral

import numpy as np
from sklearn.utils.metaestimators import available_if

from .._compat import _fit_context
from .._warnings import warn
from .collections import is_collection, on_workers
from .data import NAMES
from .folds import ShuffledFolds
from .parameters import plain
from .row_summary import RowSummary
from .sides import sees_moments_alone
from .summary_data import SummarisedRows

# Rows of Dask collections with more columns stay on their workers: their moments would
# take longer than some hundred updates.
MOST_COLUMNS_OF_COLLECTIONS = 2000


def _is_of_moments(estimator):
    """Whether moments are enough; where parameters are no valid ones, fit says so."""
    try:
        return estimator._is_of_moments()
    except (KeyError, TypeError, ValueError):
        return False


class TakesSummaries:
    """Regressors with the squared error: moments and a few rows are enough to fit."""

    # What partial_fit has taken in, and whether it has been fitted since.
    _summary = None
    _is_pending = False

    def _rows(self, X, y, sample_weight):
        if is_collection(X) and self._takes_moments_of(X):
            n_folds, n_sampled = self._n_folds_asked(), self._n_sampled_asked()
            summarised = on_workers("summary").summarised
            X, y = summarised(X, y, sample_weight, n_folds, n_sampled), None
            sample_weight = None
        if isinstance(X, RowSummary) and self._is_quadratic:
            return SummarisedRows.of(self, X, y, sample_weight)
        return super()._rows(X, y, sample_weight)

    def _stays_on_workers(self, X):
        """Whether rows of a collection stay there: their moments are not enough."""
        return super()._stays_on_workers(X) and not self._takes_moments_of(X)

    def _takes_moments_of(self, X):
        """Whether the moments of a collection suffice, and are not too large.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)

        Returns
        -------
        bool
        """
        n_columns = X.shape[1] if len(X.shape) == 2 else np.nan
        return n_columns <= MOST_COLUMNS_OF_COLLECTIONS and self._is_of_moments()

    def _is_of_moments(self):
        """Whether its runs need only the means and second moments of the rows."""
        return self._is_quadratic and sees_moments_alone(self._planned_update(2))

    @available_if(_is_of_moments)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X, y, sample_weight=None):
        """Add a block of rows; the model is fitted when it is first used.

        Rows are added to a :class:`RowSummary`, and need not be kept. The fit to all
        rows so far equals that of :meth:`fit` to the summary. It is computed when a
        fitted attribute is read or a prediction is made.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            A block of rows.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the rows do not match those so far in columns or targets, or are not
            finite; if ``cv`` is neither None nor a number, or has changed. The rows are
            then not added.

        Warns
        -----
        UserWarning
            If the model was fitted by :meth:`fit`: it has kept no moments of its rows,
            and ``partial_fit`` starts anew.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = IterativeRidge(max_iter=50)
        >>> for rows in (slice(0, 200), slice(200, 442)):
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> model.coef_path_.shape == (model.n_iter_ + 1, 10)
        True
        """
        summary = self._summary
        is_anew = summary is None and "coef_" in vars(self)
        if summary is None:
            summary = RowSummary(self._n_folds_asked(), self._n_sampled_asked())
        elif summary.n_folds != self._n_folds_asked():
            raise ValueError(
                f"cv={self.cv!r}, but the rows so far were taken in for "
                f"n_folds={summary.n_folds}."
            )
        summary.partial_fit(X, y, sample_weight)
        self._check_outputs(summary._n_targets)
        if is_anew:
            warn("partial_fit starts anew: the rows of fit were not kept.", UserWarning)
        self._replace_fitted(summary._names())
        self._summary, self._is_pending = summary, True
        return self

    def _n_folds_asked(self):
        """Number of folds of ``cv``, 1 for None."""
        cv = plain(self.cv)
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

    def _n_sampled_asked(self):
        """Number of rows to keep: as many as are to be left out, or the default."""
        loo, usual = plain(self.loo), RowSummary().n_sampled
        return usual if isinstance(loo, bool | str) else max(loo, usual)

    def _check_outputs(self, n_targets):
        """Raise on several targets, where the class takes one."""
        if n_targets > 1 and not self._multi_output:
            raise ValueError(
                f"{type(self).__name__} takes one target, got {n_targets}."
            )

    def __getattr__(self, name):
        is_fitted = name.endswith("_") and not name.startswith("_")
        if is_fitted and name not in NAMES and vars(self).get("_is_pending"):
            self._fit_pending()
        return super().__getattr__(name)

    def _fit_pending(self):
        """Fit to the rows that partial_fit has taken in."""
        summary, self._is_pending = self._summary, False
        try:
            self.fit(summary)
        except BaseException:
            self._is_pending = True
            raise
        self._summary = summary

    def _kept(self, trajectory, begun):
        kept = super()._kept(trajectory, begun)
        return {**kept, "_summary": None, "_is_pending": False}
