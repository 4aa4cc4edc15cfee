"""Intervals and tests of coefficients, and of means, along a recorded run."""

import numpy as np
from scipy import sparse

from .._compat import on_host
from .debiasing import DebiasesCoefficients, as_frame, check_coverage
from .following import of_record, of_rows


class CoefficientInference(DebiasesCoefficients):
    """What regressors with linear predictors say of the true coefficients."""

    def _check_can_debias(self):
        super()._check_can_debias()
        loss = self._data.problem.loss
        if not loss.is_of_residual:
            raise ValueError(
                "Debiased coefficients are those of the true model where the loss is "
                f"one of y - x'b (its is_of_residual says so), which the {loss.name} "
                "is not."
            )

    @of_record
    def coef_interval(
        self,
        columns=None,
        coverage=0.95,
        *,
        iteration=None,
        covariance="nodewise",
        X_unlabelled=None,
    ):
        """Confidence intervals of coefficients, from the one run.

        An iterate b_t is biased by the penalty and by early stopping. Let e_t be the
        held-out residuals that the memory matrix estimates. The debiased coefficient

            Z_tj = b_tj + w_j'e_t,

        is about normal around the true coefficient. Its standard error needs no
        estimate of the noise: it is ||e_t|| sqrt(Omega_jj) / n if the covariance matrix
        of the columns, with inverse Omega, is known [1]_. Otherwise w_j are the
        residuals of a lasso of column j on the others, divided by their inner product
        with the column [2]_. For other losses of y - x'b, e_t = n K^-1 Psi with Psi the
        derivatives of the loss and K the matrix of [3]_.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all. With "nodewise" each column
            takes one lasso.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true coefficient.
        iteration : int, default=None
            The iterate to debias; None takes the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance matrix of the features, if it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target. The covariance is then estimated from these and the
            training rows, which must together be more than the features.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_columns, n_targets, 2)
            Lower and upper ends. They are valid if the linear model is true and rows
            are independent and identically distributed.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1); if the estimator was fitted without
            ``keep_data=True`` or without ``risk``; if rows have unequal weights; if a
            column is constant, or the covariance does not match the columns.

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
        array([[430., 720.],
               [500., 850.]])
        """
        table = self.coef_table(
            columns,
            coverage,
            iteration=iteration,
            covariance=covariance,
            X_unlabelled=X_unlabelled,
        )
        return np.stack([table["lower"], table["upper"]], axis=-1)

    @of_record
    def coef_table(
        self,
        columns=None,
        coverage=0.95,
        *,
        iteration=None,
        covariance="nodewise",
        X_unlabelled=None,
    ):
        """Estimates, standard errors, tests and intervals of coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true coefficient.
        iteration : int, default=None
            The iterate to debias; None takes the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance matrix of the features, if it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, as in :meth:`coef_interval`.

        Returns
        -------
        DataFrame, or dict of ndarray
            ``column`` (names if X had them), ``coef`` of the iterate, the debiased
            ``estimate``, its ``standard_error``, ``z`` and ``p_value`` for the
            hypothesis that the coefficient is zero, and the ends ``lower`` and
            ``upper`` of the interval: each of shape (n_columns,) or (n_columns,
            n_targets). A dict without pandas, or with several targets.

        Raises
        ------
        ValueError
            As in :meth:`coef_interval`.
        """
        (table,) = self._interval_tables(
            columns, coverage, [iteration], covariance, X_unlabelled
        )
        return as_frame(table)

    @of_rows
    def predict_mean_interval(
        self,
        X,
        coverage=0.95,
        *,
        iteration=None,
        covariance="nodewise",
        X_unlabelled=None,
    ):
        """Confidence intervals for the mean of the target, given rows of X.

        The intervals are for x'b plus the intercept, debiased as in
        :meth:`coef_interval`; :meth:`predict_interval` gives intervals for a target
        itself. Let d be the row minus the mean of the training rows. The estimate is

            Z = b_0 + d'b_t + w'e_t,

        where w is X Omega d / n if the covariance is known. Otherwise d'b is made a
        coefficient: with v = d / ||d||^2, in units of the columns' standard deviations,
        X b is (X v) d'b + X (I - v d') b, and w are the residuals of a lasso of the
        column X v on the columns of X (I - v d'), divided by their inner product with X
        v. The standard error includes that of the intercept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that are fixed or new; the training rows are not independent of the
            noise of the fit. With "nodewise" each row takes one lasso.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true mean.
        iteration : int, default=None
            The iterate to debias; None takes the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance matrix of the features, if it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, as in :meth:`coef_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y. The length of an interval grows as the
            square root of d' Omega d / n: it is large for rows with many large entries.

        Raises
        ------
        ValueError
            As in :meth:`coef_interval`, or if a row lies along a direction in which the
            training rows hardly vary.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import TrajectoryLasso
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TrajectoryLasso(0.1, keep_data=True, random_state=0)
        >>> model.fit(X[:400], y[:400]).predict_mean_interval(X[400:402]).round(-1)
        array([[160., 200.],
               [ 70., 110.]])
        """
        check_coverage(coverage)
        self._check_can_debias()
        rows = self._checked(on_host(X))
        rows = rows.toarray() if sparse.issparse(rows) else rows
        run = self._scored_run(iteration)
        found = self._debiased_means(rows, run, covariance, X_unlabelled)
        ends = self._data.problem.loss.mean(found.interval(coverage))
        return ends[:, 0] if self._data.has_flat_predictions else ends


class CoefficientTests(DebiasesCoefficients):
    """Tests of coefficients of two classes, or of counts: whether they are zero.

    Their size is known up to a factor: that of the debiased iterate.
    Where the loss is that of the true model, :class:`LogisticInference` finds it.
    """

    @of_record
    def coef_table(
        self, columns=None, *, iteration=None, covariance="nodewise", X_unlabelled=None
    ):
        """Tests of whether coefficients are zero, from the one run.

        If the target depends on the features only through x'b, a debiased iterate is
        about normal around a multiple of b, for any loss [1]_. For a coefficient that
        is zero, z is standard normal.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all. With "nodewise" each column
            takes one lasso.
        iteration : int, default=None
            The iterate to debias; None takes the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance matrix of the features, if it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target. The covariance is then estimated from these and the
            training rows, which must together be more than the features.

        Returns
        -------
        DataFrame, or dict of ndarray of shape (n_columns,)
            ``column`` (names if X had them), ``coef`` of the iterate, the debiased
            ``estimate`` up to a common factor, its ``standard_error``, ``z`` and the
            two-sided ``p_value`` for the hypothesis that the coefficient is zero. A
            dict without pandas.

        Raises
        ------
        ValueError
            If there are more than two classes; if the estimator was fitted without
            ``keep_data=True`` or without ``risk``; if rows have unequal weights; if a
            column is constant, or the covariance does not match the columns.

        References
        ----------
        .. [1] Tan and Bellec (2024), arXiv:2410.02629; single-index models: Bellec
               (2022), "Observable adjustments in single-index models for regularized
               M-estimators", arXiv:2204.06990.
        """
        index, (found,) = self._debiased(columns, [iteration], covariance, X_unlabelled)
        return as_frame(self._table(index, found))
