"""Estimators that can be fitted block by block, by ``partial_fit``."""

from typing import Any, Self

from numpy.typing import ArrayLike

from ..._compat import _fit_context, available_if
from ..._warnings import warn
from ..data.checks import names_of
from ..data.row_summary import RowSummary
from ..data.training_data import replace_fitted
from .summary_data import check_outputs, n_folds_asked, n_sampled_asked


def _is_of_moments(estimator):
    """Whether moments suffice; invalid parameters are left to fit to report."""
    try:
        return estimator._spec().is_of_moments
    except (KeyError, TypeError, ValueError):
        return False


class TakesSummaries:
    """Regressors with the squared error, which need moments and a few rows only."""

    # The rows of partial_fit: until it is fitted to them, there is no ``n_iter_``.
    _summary = None

    @available_if(_is_of_moments)
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self,
        X: Any = None,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a block of rows, or without rows fit the model to all blocks so far.

        Rows are added to a :class:`RowSummary` and need not be kept. Nothing is fitted,
        and there are no attributes such as ``coef_``, until ``partial_fit()`` is called
        without rows, or a method that needs the model, such as :meth:`predict`. The
        result equals :meth:`fit` to the summary of all rows so far. The model and its
        pickle contain the random rows of the summary.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            A block of rows; None fits the model.
        y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the rows do not match those so far or are not finite, or if ``cv`` is
            neither None nor a number, or has changed; the rows are then not added.
            Without rows: if there are none, or too few for the requested estimates.

        Warns
        -----
        UserWarning
            If the model was fitted by :meth:`fit`: it did not keep the moments of its
            rows, so ``partial_fit`` starts from scratch.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = IterativeRidge(max_iter=50)
        >>> for rows in (slice(0, 200), slice(200, 442)):
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> hasattr(model, "coef_path_")
        False
        >>> model.partial_fit().coef_path_.shape == (model.n_iter_ + 1, 10)
        True
        """
        if X is None:
            if y is not None or sample_weight is not None:
                raise ValueError("partial_fit was passed y or sample_weight without X.")
            if self._summary is None:
                raise ValueError(
                    "partial_fit() without rows fits the model to the rows added by "
                    "partial_fit(X, y), but there are none."
                )
            self._fit_to_added_rows()
            return self
        summary = self._summary
        is_anew = summary is None and "record_" in vars(self)
        if summary is None:
            summary = RowSummary(n_folds_asked(self), n_sampled_asked(self))
        elif summary.n_folds != n_folds_asked(self):
            raise ValueError(
                f"cv={self.cv!r}, but the rows so far were added with "
                f"n_folds={summary.n_folds}."
            )
        summary.partial_fit(X, y, sample_weight)
        check_outputs(self, summary._n_targets)
        if is_anew:
            warn(
                "partial_fit starts from scratch: the rows of fit were not kept.",
                UserWarning,
            )
        replace_fitted(self, names_of(summary))
        self._summary = summary
        return self

    def _fit_to_added_rows(self):
        """Fit to the rows of ``partial_fit``, once."""
        summary = self._summary
        if summary is None or "record_" in vars(self):
            return
        try:
            self.fit(summary)
        finally:  # further rows may be added to it
            self._summary = summary

    def _why_missing(self, name, estimate_name):
        if self._summary is None or "record_" in vars(self):
            return super()._why_missing(name, estimate_name)
        return (
            "partial_fit has only added rows: partial_fit() without rows, or predict, "
            "fits the model to them"
        )
