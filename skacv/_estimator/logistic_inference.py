"""Intervals and tests of coefficients of logistic models of two classes."""

import numpy as np
from sklearn.utils import check_random_state

from ..risk.inference.debiased import Scaled
from ..risk.inference.label_effects import LabelEffects
from ..risk.inference.scores import N_PROBES
from ..risk.inference.single_index import ScaleByStrength
from .debiasing import DebiasesCoefficients, as_frame
from .following import of_record


class LogisticInference(DebiasesCoefficients):
    """What classifiers of two classes say of the coefficients of a logistic model."""

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
        """Confidence intervals of the coefficients of a logistic model, from one run.

        A debiased iterate Z_t is about normal around c_t times the true coefficients
        [1]_, [2]_, where

            c_t = sum_s (K^-1)_ts sum_i E[sigma'(u_i) | U_i] (psi1_si - psi0_si)

        Here psi1 and psi0 are the derivatives of the loss of a row for each of the two
        labels in the run without that row, U is its linear predictor in that run, and u
        its true log odds. The variance of u given U is estimated from the norm of Z_t
        if the covariance of the features is known. With "nodewise" it is estimated from
        the share of the linear dependence of the labels on the features that U
        explains, by comparison with least squares if there are two rows per column, and
        otherwise as if the coefficients were unrelated to the principal components of X
        [3]_. The intervals include the uncertainty of c_t (Fieller): they contain zero
        exactly if the test of :meth:`coef_table` does not reject it, and they are
        unbounded if the labels do not determine the scale of the coefficients.

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
        ndarray of shape (n_columns, 2)
            Lower and upper ends. They are valid if the logistic model for the second of
            ``classes_`` is true, log odds are about normal over the rows, and rows are
            independent and identically distributed.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1); if there are more than two classes; if the
            estimator was fitted without ``keep_data=True`` or without ``risk``; if rows
            have unequal weights; if a column is constant, or the covariance does not
            match the columns.

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
        >>> model = TrajectoryLogisticRegression(risk=True, keep_data=True,
        ...                                      random_state=0)
        >>> model = model.fit((X - X.mean()) / X.std(), y)
        >>> model.coef_interval(["mean texture"]).round(1)
        array([[-2.6, -1.1]])
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
        DataFrame, or dict of ndarray of shape (n_columns,)
            ``column`` (names if X had them), ``coef`` of the iterate, the debiased
            ``estimate``, its ``standard_error`` for a known scale c_t, ``z`` and
            ``p_value`` for the hypothesis that the coefficient is zero, which do not
            depend on c_t, and the ends ``lower`` and ``upper`` of the interval, which
            include the uncertainty of c_t. A dict without pandas.

        Raises
        ------
        ValueError
            As in :meth:`coef_interval`.
        """
        (table,) = self._interval_tables(
            columns, coverage, [iteration], covariance, X_unlabelled
        )
        return as_frame(table)

    def _on_its_scale(self, found, run, X, known):
        """Debiased coefficients over the multiple of the truth that they are about."""
        problem, rng = self._data.problem, check_random_state(self.random_state)
        effects = LabelEffects.of(problem, run.trajectory, N_PROBES, rng)
        labels = (problem.target[:, 0] == problem.loss.labels[1]).astype(np.float64)
        coef = self._at_the_end(run.trajectory)[0][:, 0]
        by_strength = ScaleByStrength.of(effects, labels)
        scale = known.scale(by_strength, X, labels, coef, run.scores[:, 0])
        return Scaled(found, scale)
