"""Intervals and tests of coefficients, and of means, along a recorded run."""

import numpy as np
from scipy import sparse

from .._compat import on_host
from .debiasing import DebiasesCoefficients, check_coverage
from .following import of_record, of_rows


class CoefficientInference(DebiasesCoefficients):
    """What regressors with linear predictors say of the true coefficients."""

    def _check_kept(self):
        super()._check_kept()
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

        An iterate b_t is biased, by its penalty and by stopping early. Debiased, with
        e_t what the memory matrix says that rows would leave if they were left out,

            Z_tj = b_tj + w_j'e_t,

        it is normal about the true coefficient, with a standard error that needs no
        estimate of the noise: ||e_t|| sqrt(Omega_jj) / n where the covariance 1 / Omega
        of the columns is known [1]_. Else w_j is what a lasso of the column on the
        others leaves, over its product with the column [2]_. Other losses of y - x'b
        have e_t = n K^-1 Psi [3]_.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all. By "nodewise" each costs
            a lasso.
        coverage : float, default=0.95
            How often an interval should cover the true coefficient.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, by which the covariance is estimated together with
            those of fit: more rows than features.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_columns, n_targets, 2)
            Lower and upper ends. The truth is the linear model, with rows that are
            independent and alike.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1); if fit has not kept what is needed
            (``keep_data=True``, and ``risk`` on); if rows have weights of their own;
            if a column is constant, or the covariance none of these columns.

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
            The columns of X that are asked for; None is all.
        coverage : float, default=0.95
            How often an interval should cover the true coefficient.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, as in :meth:`coef_interval`.

        Returns
        -------
        dict of ndarray
            ``column`` (names where X had them), ``coef`` of the iterate, ``estimate``
            debiased, ``standard_error``, ``z``, ``p_value`` of a coefficient of zero,
            ``lower`` and ``upper``: (n_columns,) or (n_columns, n_targets) each.
            :class:`pandas.DataFrame` takes that of one target.

        Raises
        ------
        ValueError
            As :meth:`coef_interval` does.
        """
        (table,) = self._interval_tables(
            columns, coverage, [iteration], covariance, X_unlabelled
        )
        return table

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
        """Confidence intervals of what targets are on average, given rows of X.

        Of x'b and the intercept, debiased as :meth:`coef_interval` debiases single
        coefficients; :meth:`predict_interval` says where a target itself may be. With d
        the row less the mean of those of fit,

            Z = b_0 + d'b_t + w'e_t,

        where w is X Omega d / n by a known covariance. Else d'b is made a coefficient:
        with v = d / ||d||^2, in units of the columns' standard deviations, X b is
        (X v) d'b + X (I - v d') b, and w is what a lasso of the column X v on those of
        X (I - v d') leaves, over its product with X v. The error of the intercept, that
        of the mean of y, counts.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows that are fixed, or new: those of fit know their own noise. By
            "nodewise" each costs a lasso.
        coverage : float, default=0.95
            How often an interval should cover the true mean.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, as in :meth:`coef_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y. A row that leans on all of many columns
            has a long one: its length grows as the root of d' Omega d / n.

        Raises
        ------
        ValueError
            As :meth:`coef_interval` does; if a row is along a direction in which those
            of fit hardly differ.

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
        self._check_kept()
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
        """Tests of coefficients that are zero, from the one run.

        Where the target depends on the features through one x'b alone, a debiased
        iterate is normal about a multiple of b, whatever the loss [1]_. Of a zero
        coefficient z is standard normal.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X that are asked for; None is all. By "nodewise" each costs
            a lasso.
        iteration : int, default=None
            The iterate that is debiased; None is the one in use.
        covariance : "nodewise" or array-like of shape (n_features, n_features), \
default="nodewise"
            The covariance of the features, where it is known.
        X_unlabelled : array-like of shape (n_unlabelled, n_features), default=None
            Rows without a target, by which the covariance is estimated together with
            those of fit: more rows than features.

        Returns
        -------
        dict of ndarray of shape (n_columns,)
            ``column`` (names where X had them), ``coef`` of the iterate, ``estimate``
            debiased, up to a factor that all share, its ``standard_error``, ``z`` and
            the two-sided ``p_value`` of a coefficient of zero.
            :class:`pandas.DataFrame` takes it.

        Raises
        ------
        ValueError
            If there are more than two classes; if fit has not kept what is needed
            (``keep_data=True``, and ``risk`` on); if rows have weights of their own;
            if a column is constant, or the covariance none of these columns.

        References
        ----------
        .. [1] Tan and Bellec (2024), arXiv:2410.02629; single-index models: Bellec
               (2022), "Observable adjustments in single-index models for regularized
               M-estimators", arXiv:2204.06990.
        """
        index, (found,) = self._debiased(columns, [iteration], covariance, X_unlabelled)
        return self._table(index, found)
