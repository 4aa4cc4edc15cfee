"""Intervals and tests for coefficients, and for means, along a recorded run."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import is_classifier

from ..._compat import on_host
from ...risk.intervals import checked_coverage
from ..data.training_data import new_rows
from ..devices import of_record, of_rows
from ..docstrings import OFFSETS, documented
from ..parameters import takes_coverage
from .debiasing import (
    INTERCEPT,
    check_can_debias,
    debiasing_of,
    places_of_columns,
)
from .offsets import add_offset, offset_of_rows


class CoefficientInference:
    """Inference about the true coefficients, for regressors with linear predictors."""

    @takes_coverage
    @of_record
    def coef_interval(
        self,
        columns: ArrayLike | None = None,
        coverage: float = 0.95,
        *,
        iteration: int | None = None,
        covariance: ArrayLike = "auto",
        X_unlabelled: Any = None,
    ) -> np.ndarray:
        """Confidence intervals of coefficients, from a single run.

        An iterate b_t is biased by the penalty and by early stopping. How the bias is
        removed depends on what is known about the covariance of the columns (see the
        notes, and :doc:`the guide </guide/coefficients>`).

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all. A name may be "intercept".
            "nodewise" fits one lasso per column.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true coefficient.
        iteration : int, default=None
            The iterate to debias; None means the one in use.
        covariance : {"auto", "sample", "nodewise"} or array-like of shape \
(n_features, n_features), default="auto"
            The covariance matrix of the features if it is known, or a method without
            it. "auto": "sample" with more than two rows per column, else "nodewise".
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target. The covariance is then estimated from all rows, which
            must be more than 1.5 times as many as the features, and treated as known.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_columns, n_targets, 2)
            Lower and upper ends. They are valid if the linear model is true and rows
            are independent and identically distributed.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), the fit had no ``keep_data=True``, rows have
            unequal weights, or the covariance does not match the columns.

        Warns
        -----
        UserWarning
            If columns are constant or linear combinations of others: their estimates
            and intervals are NaN.

        Notes
        -----
        **"sample"**: by the covariance of the training rows. The correction is a Newton
        step for the loss without its penalty; repeated, it ends at the unpenalised
        minimum from any iterate. For the squared error, estimate, standard error and
        interval are those of least squares. For other losses the covariance matrix of
        the estimate is phi (X'DX)^-1, with D the second derivatives of the losses of
        the rows and phi the sum of the squares of their first derivatives divided by
        the sum of D_i (1 - h_i), with h_i the leverages.

        **Known covariance**: let e_t be the held-out residuals that the memory matrix
        estimates. The debiased coefficient

            Z_tj = b_tj + w_j'e_t,        w_j = X Omega_j / n,

        with Omega the inverse of the covariance, is approximately normal around the
        true coefficient, with standard error ||e_t|| sqrt(Omega_jj) / n [1]_. For other
        losses of y - x'b, e_t = n K^-1 Psi with Psi the derivatives of the loss and K
        the matrix of [3]_.

        **"nodewise"**: the same, with w_j the residuals of a lasso of column j on the
        others, divided by their inner product with the column [2]_. It needs columns
        that are not strongly correlated.

        References
        ----------
        .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
               algorithms in linear models with application to early stopping",
               arXiv:2404.17856.
        .. [2] Zhang and Zhang (2014), "Confidence intervals for low dimensional
               parameters in high dimensional linear models", JRSS B 76(1), eq. 4.
        .. [3] Tan and Bellec (2024), arXiv:2410.02629.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import TrajectoryLasso
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = TrajectoryLasso(1.0, keep_data=True, random_state=0).fit(X, y)
        >>> model.coef_interval(["bmi", "s5"]).round(-1)
        array([[ 390.,  650.],
               [ 410., 1090.]])
        """
        (table,) = interval_tables(
            self, columns, coverage, [iteration], covariance, X_unlabelled
        )
        return np.stack([table["lower"], table["upper"]], axis=-1)

    @documented(coef_interval)
    @takes_coverage
    @of_record
    def coef_table(
        self,
        columns: ArrayLike | None = None,
        coverage: float = 0.95,
        *,
        iteration: int | None = None,
        covariance: ArrayLike = "auto",
        X_unlabelled: Any = None,
    ) -> Any:
        """Estimates, standard errors, tests and intervals of coefficients.

        Parameters
        ----------
        {columns, coverage, iteration, covariance, X_unlabelled}

        Returns
        -------
        DataFrame, or dict of ndarray
            ``column``, ``coef`` of the iterate, the debiased ``estimate``, its
            ``standard_error``, ``z``, ``p_value`` and interval ``lower`` to ``upper``:
            each (n_columns,) or (n_columns, n_targets). A dict without pandas.

        Raises
        ------
        ValueError
            As in :meth:`coef_interval`.

        Warns
        -----
        UserWarning
            If columns are constant or linear combinations of others: all numbers in
            their rows except ``coef`` are NaN.

        Notes
        -----
        The tests are of whether a coefficient is zero. With "sample", z is compared
        with Student's distribution with n - p degrees of freedom, the intercept
        counted. If ``columns`` is None, the last row is the "intercept", except with
        "nodewise", and for classifiers with a known covariance. For a logistic model
        the standard error is for a known scale c_t, which z and ``p_value`` do not
        depend on; the interval includes the uncertainty of c_t.
        """
        check_coverage(coverage)
        check_is_about_truth(self)
        return table_with_intercept(
            self, columns, iteration, covariance, X_unlabelled, coverage
        )

    @documented(coef_interval, OFFSETS)
    @takes_coverage
    @of_rows
    def predict_mean_interval(
        self,
        X: Any,
        coverage: float = 0.95,
        *,
        offset: ArrayLike | float | None = None,
        iteration: int | None = None,
        covariance: ArrayLike = "auto",
        X_unlabelled: Any = None,
    ) -> np.ndarray:
        """Confidence intervals for the mean of the target, given rows of X.

        The intervals are for x'b plus the intercept, debiased as in
        :meth:`coef_interval`; :meth:`predict_interval` gives intervals for a target
        itself. Let d be the row minus the mean of the training rows. The estimate is

            Z = b_0 + d'b_t + w'e_t,

        where w is X Omega d / n if the covariance is known. With "sample" it is the
        prediction of the unpenalised minimum. With "nodewise", d'b is written as a
        coefficient: with v = d / ||d||^2, in units of the columns' standard
        deviations, X b is (X v) d'b + X (I - v d') b, and w are the residuals of a
        lasso of the column X v on the columns of X (I - v d'), divided by their inner
        product with X v. The standard error includes that of the intercept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Fixed or new rows; the training rows are not independent of the noise of the
            fit. "nodewise" fits one lasso per row.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true mean.
        {new_offset, iteration, covariance, X_unlabelled}

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y. Lengths grow with the square root of
            d' Omega d / n, so they are large for rows with many large entries.

        Raises
        ------
        ValueError
            As in :meth:`coef_interval`.

        Warns
        -----
        UserWarning
            If rows lie in directions in which the training rows hardly vary: their
            intervals are NaN.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import TrajectoryLasso
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TrajectoryLasso(0.1, keep_data=True, random_state=0)
        >>> model.fit(X[:400], y[:400]).predict_mean_interval(X[400:402]).round(-1)
        array([[160., 210.],
               [ 70., 110.]])
        """
        check_coverage(coverage)
        check_is_about_truth(self)
        offset = offset_of_rows(self, X, offset, "predict_mean_interval")
        rows = new_rows(self, on_host(X))
        rows = rows.toarray() if sparse.issparse(rows) else rows
        debiasing = debiasing_of(self, covariance, X_unlabelled)
        means = debiasing.debias_rows(rows, iteration)
        ends = self.record_.data.problem.loss.mean(means.interval(coverage))
        ends = add_offset(self, ends, offset)
        return ends[:, 0] if self.record_.data.has_flat_predictions else ends


class LogisticInference:
    """Inference about the coefficients of a logistic model, for two classes."""

    @documented(CoefficientInference.coef_interval)
    @takes_coverage
    @of_record
    def coef_interval(
        self,
        columns: ArrayLike | None = None,
        coverage: float = 0.95,
        *,
        iteration: int | None = None,
        covariance: ArrayLike = "auto",
        X_unlabelled: Any = None,
    ) -> np.ndarray:
        """Confidence intervals of the coefficients of a logistic model, from one run.

        They are valid if the logistic model for the second of ``classes_`` is true, log
        odds are about normal over the rows, and rows are independent and identically
        distributed.

        Parameters
        ----------
        {columns, coverage, iteration, covariance, X_unlabelled}

        Returns
        -------
        ndarray of shape (n_columns, 2)
            Lower and upper ends. They contain zero exactly if the test of
            :meth:`coef_table` does not reject it, and are unbounded if the labels do
            not determine the scale of the coefficients.

        Raises
        ------
        ValueError
            As in :meth:`TrajectoryLasso.coef_interval`, if there are more than two
            classes, or with "sample" if the columns separate the classes.

        Warns
        -----
        UserWarning
            If columns are constant or linear combinations of others: their intervals
            are NaN.

        Notes
        -----
        A debiased iterate Z_t is approximately normal around c_t times the true
        coefficients [1]_, [2]_, where

            c_t = sum_s (K^-1)_ts sum_i E[sigma'(u_i) | U_i] (psi1_si - psi0_si)

        Here psi1 and psi0 are the derivatives of the loss of a row for each of the two
        labels in the run without that row, U is its linear predictor in that run, and u
        its true log odds. The variance of u given U is estimated from the norm of Z_t
        if the covariance of the features is known. Otherwise it is estimated from the
        share of the linear dependence of the labels on the features that U explains, by
        comparison with least squares if there are two rows per column, and with
        "nodewise" and fewer rows as if the coefficients were unrelated to the principal
        components of X [3]_. The intervals include the uncertainty of c_t (Fieller).

        With "sample", Z_t is the maximum likelihood estimate, as in
        :meth:`TrajectoryLasso.coef_interval`, and c_t is the scale at that point: one
        with few columns, and larger with more.

        References
        ----------
        .. [1] Tan and Bellec (2024), arXiv:2410.02629.
        .. [2] Bellec (2022), "Observable adjustments in single-index models for
               regularized M-estimators", arXiv:2204.06990.
        .. [3] Jiang, Li, Paul, Yang and Zhao (2016), "On high-dimensional misspecified
               mixed model analysis in genome-wide association study", Annals of
               Statistics 44(5).

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.preprocessing import scale
        >>> from skacv import TrajectoryLogisticRegression
        >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
        >>> X = X[["mean radius", "mean texture", "mean smoothness"]]
        >>> model = TrajectoryLogisticRegression(keep_data=True, random_state=0)
        >>> model = model.fit((X - X.mean()) / X.std(), y)
        >>> model.coef_interval(["mean texture"]).round(1)
        array([[-2.4, -1.1]])
        """
        (table,) = interval_tables(
            self, columns, coverage, [iteration], covariance, X_unlabelled
        )
        return np.stack([table["lower"], table["upper"]], axis=-1)

    coef_table = CoefficientInference.coef_table


class CoefficientTests:
    """Tests of whether coefficients are zero, for two classes or counts."""

    @documented(CoefficientInference.coef_interval)
    @of_record
    def coef_table(
        self,
        columns: ArrayLike | None = None,
        *,
        iteration: int | None = None,
        covariance: ArrayLike = "auto",
        X_unlabelled: Any = None,
    ) -> Any:
        """Tests of whether coefficients are zero, from a single run.

        If the target depends on the features only through x'b, a debiased iterate is
        approximately normal around a multiple of b, for any loss [1]_. For a zero
        coefficient, z is standard normal.

        Parameters
        ----------
        {columns, iteration, covariance, X_unlabelled}

        Returns
        -------
        DataFrame, or dict of ndarray of shape (n_columns,)
            ``column``, ``coef`` of the iterate, the debiased ``estimate`` up to a
            common factor, its ``standard_error``, ``z`` and two-sided ``p_value``. A
            dict without pandas.

        Raises
        ------
        ValueError
            As in :meth:`TrajectoryLasso.coef_interval`, if there are more than two
            classes, or with "sample" if the unpenalised loss has no unique minimum.

        Warns
        -----
        UserWarning
            If columns are constant or linear combinations of others: their estimates
            and tests are NaN.

        References
        ----------
        .. [1] Tan and Bellec (2024), arXiv:2410.02629; single-index models: Bellec
               (2022), "Observable adjustments in single-index models for regularized
               M-estimators", arXiv:2204.06990.
        """
        check_can_debias(self)
        return table_with_intercept(self, columns, iteration, covariance, X_unlabelled)


def interval_tables(
    fitted, columns, coverage, iterations, covariance, X_unlabelled=None
):
    """Tables with intervals for several iterates, from directions computed once."""
    check_coverage(coverage)
    check_is_about_truth(fitted)
    indices = places_of_columns(fitted, columns)
    debiasing = debiasing_of(fitted, covariance, X_unlabelled)
    for debiased in debiasing.debias_columns(
        indices, iterations, is_classifier(fitted)
    ):
        yield table_of(fitted, indices, debiased, coverage)


def table_with_intercept(
    fitted, columns, iteration, covariance, X_unlabelled, coverage=None
):
    """The table of an iterate: of some columns, or of all and the intercept."""
    indices = places_of_columns(fitted, columns)
    debiasing = debiasing_of(fitted, covariance, X_unlabelled)
    if columns is None and debiasing.has_intercept:
        indices = np.append(indices, fitted.n_features_in_)
    on_true_scale = coverage is not None and is_classifier(fitted)
    (debiased,) = debiasing.debias_columns(indices, [iteration], on_true_scale)
    return as_frame(table_of(fitted, indices, debiased, coverage))


def check_is_about_truth(fitted):
    """Raise if debiased coefficients do not estimate those of the true model."""
    check_can_debias(fitted)
    loss = fitted.record_.data.problem.loss
    if not is_classifier(fitted) and not loss.is_of_residual:
        raise ValueError(
            "Debiased coefficients estimate those of the true model only if the loss "
            f"depends on y - x'b (is_of_residual=True), but the {loss.name} does not."
        )


def table_of(fitted, indices, debiased, coverage=None):
    """Statistics of every requested column, with intervals if a coverage is given."""
    names = "coef", "estimate", "standard_error", "z", "p_value"
    parts = {name: getattr(debiased, name) for name in names}
    if coverage is not None:
        parts["lower"], parts["upper"] = np.moveaxis(debiased.interval(coverage), -1, 0)
    if fitted.record_.data.has_flat_predictions:
        parts = {name: part[:, 0] for name, part in parts.items()}
    names = fitted._column_names()
    labels = np.arange(fitted.n_features_in_) if names is None else names
    if (indices == len(labels)).any():
        labels = np.append(labels.astype(object), INTERCEPT)
    return {"column": labels[indices], **parts}


def as_frame(table):
    """A table as a DataFrame if pandas is installed and cells are numbers."""
    if any(np.ndim(column) > 1 for column in table.values()):
        return table
    try:
        import pandas as pd
    except ImportError:
        return table
    return pd.DataFrame(table)


def check_coverage(coverage):
    """Raise on an invalid coverage."""
    if checked_coverage(coverage).ndim:
        raise ValueError(f"coverage must be a single number here, got {coverage!r}.")
