"""Intervals and tests of coefficients of logistic models of two classes."""

import numpy as np
from sklearn.utils import check_random_state

from ..risk.inference.debiased import Scaled
from ..risk.inference.label_effects import LabelEffects
from ..risk.inference.scores import N_PROBES
from ..risk.inference.single_index import ScaleByStrength
from .debiasing import DebiasesCoefficients
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

        A debiased iterate Z_t is normal about a multiple c_t of the true coefficients
        [1]_, [2]_, which

            c_t = sum_s (K^-1)_ts sum_i E[sigma'(u_i) | U_i] (psi1_si - psi0_si)

        says: psi1 and psi0 are the slopes of a row by both labels, had the row been
        held out of all else, U what it would be predicted then, and u its true log
        odds. How much of u is not in U is told by the size of Z_t itself, where the
        covariance of the features is known; by "nodewise", by how much of what is
        linear in the labels U has, beside least squares where there are two rows to a
        column, else as if coefficients had nothing to do with the principal components
        of X [3]_. The error of c_t is in the intervals (Fieller), which hold zero just
        where the test of :meth:`coef_table` does not reject it, and which have no ends
        where the labels do not say how large the coefficients are.

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
        ndarray of shape (n_columns, 2)
            Lower and upper ends. The truth is a logistic model, of the second of
            ``classes_``, with log odds that are about normal over the rows; these are
            independent and alike.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1); if there are more than two classes; if fit has
            not kept what is needed (``keep_data=True``, and ``risk`` on); if rows have
            weights of their own; if a column is constant, or the covariance none of
            these columns.

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
        dict of ndarray of shape (n_columns,)
            ``column`` (names where X had them), ``coef`` of the iterate, ``estimate``
            debiased, its ``standard_error`` with the scale c_t taken as known, ``z``
            and ``p_value`` of a coefficient of zero, which do not need it, ``lower``
            and ``upper``, which have its error in them. :class:`pandas.DataFrame` takes
            it.

        Raises
        ------
        ValueError
            As :meth:`coef_interval` does.
        """
        (table,) = self._interval_tables(
            columns, coverage, [iteration], covariance, X_unlabelled
        )
        return table

    def _on_its_scale(self, found, run, X, known):
        """Debiased coefficients over the multiple of the truth that they are about."""
        problem, rng = self._data.problem, check_random_state(self.random_state)
        effects = LabelEffects.of(problem, run.trajectory, N_PROBES, rng)
        labels = (problem.target[:, 0] == problem.loss.labels[1]).astype(np.float64)
        coef = self._at_the_end(run.trajectory)[0][:, 0]
        by_strength = ScaleByStrength.of(effects, labels)
        scale = known.scale(by_strength, X, labels, coef, run.scores[:, 0])
        return Scaled(found, scale)
