"""Kernel regression by EigenPro with an error estimate for every iterate."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._estimator.docstrings import KERNEL, documented
from .._estimator.prediction.predictions import RecordedRegressor
from ._model import KernelModel


@documented(KERNEL)
class KernelEigenProRegressor(KernelModel, RecordedRegressor):
    """Kernel regression by EigenPro, with leave-one-out along the run.

    An epoch goes through batches B of m rows, with residuals g = f(X_B) - y_B [1]_:

        f <- f - (step_size / m) k_P(., B) g,

    where k_P is the preconditioned kernel: its largest eigenvalues on a subsample of
    the rows are reduced to about the next one, so that larger batches and steps are
    stable [2]_. Without the preconditioner this is kernel gradient descent. The limit
    interpolates the data, as :class:`sklearn.kernel_ridge.KernelRidge` does for alpha
    -> 0; early stopping regularises. ``loo_path_`` estimates the error of every iterate
    on unseen rows, and the run stops when it no longer decreases.

    Parameters
    ----------
    {kernel, gamma, degree, coef0}
    alpha : float, array-like or "path", default=0.0
        Strength of the ridge penalty alpha ||f||^2, which is added to the sum of the
        losses as in :class:`sklearn.kernel_ridge.KernelRidge`. With 0 early stopping is
        the only regularisation. A sequence of values is fitted in one warm-started
        trajectory, with ``max_iter`` epochs at each value; "path" is a geometric grid
        of 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept: by centring the kernel and the targets
        for the squared error, by separate updates for other losses.
    {standardize, solver, n_components, subsample_size, batch_size, step_size, max_iter}
    {patience, tol, loo, n_probes, cv, store_every, warm_start, memory_budget, n_jobs}
    {random_state, verbose}

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Dual coefficients of the iterate in use, the best after ``fit``.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the iterate in use.
    {X_fit_}
    dual_coef_path_ : ndarray of shape (n_stored, n_samples[, n_targets])
        Dual coefficients of the iterates that are kept; row 0 is the start.
    {stored_iterations_}
    intercept_path_ : ndarray of shape (n_iter_ + 1,) or (n_iter_ + 1, n_outputs)
        Intercept of every iterate.
    {alpha_path_, objective_path_, train_path_, rkhs_norm_path_, loo_path_}
    {loo_se_path_, loo_mc_se_path_}
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction for every left-out row by the iterates fitted without it.
    {loo_indices_}
    loo_target_ : ndarray of shape (n_left_out[, n_targets])
        Targets of these rows.
    {cv_path_, cv_se_path_, cv_fold_path_}
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_targets])
        Predictions for the held-out rows, fold after fold.
    {cv_indices_}
    cv_target_ : ndarray of shape (n_held_out[, n_targets])
        Targets of these rows, fold after fold.
    {df_path_, gamma_, gammas_, gamma_scores_, n_components_, subsample_indices_}
    {batch_size_, batch_indices_, critical_batch_size_, step_size_, top_eigenvalue_}
    {n_iter_, iteration_, n_features_in_, feature_names_in_}

    See Also
    --------
    KernelEigenProClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.
    sklearn.kernel_ridge.KernelRidge : The same functions, with a penalty.

    References
    ----------
    {Ma}
    .. [2] Ma, Bassily and Belkin (2018), "The power of interpolation:
           understanding the effectiveness of SGD in modern over-parametrized
           learning", ICML, arXiv:1712.06559.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skacv import KernelEigenProRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = KernelEigenProRegressor(gamma=0.02, random_state=0)
    >>> model = model.fit(scale(X), y)
    >>> bool(0 < model.loo_path_.argmin() < model.n_iter_)
    True
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.predict(scale(X)[:2]).shape
    (2,)
    """

    _multi_output = True

    def predict_interval(
        self, X: Any, coverage: ArrayLike = 0.9, method: str = "auto"
    ) -> np.ndarray:
        """Prediction intervals for the iterate in use, from the one run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            Nominal probability that an interval contains the target of an unseen row.
        method : {"auto", "jackknife+", "loo", "cv"}, default="auto"
            "auto": the first of the following methods for which the fit has computed
            what is needed. "jackknife+": quantiles, over the left-out rows, of the
            prediction without the row plus and minus its held-out residual [1]_. If
            ``loo_path_`` is exact this takes one more eigendecomposition per iterate.
            Otherwise the run is repeated without each left-out row; an int as ``loo``
            keeps their number small. "loo": the prediction plus and minus a quantile of
            the held-out residuals. "cv": the same with the residuals of rows held out
            in folds, which are somewhat too large since folds are fitted on fewer rows.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y. With a coverage below one half
            the ends of "jackknife+" may cross, which is an empty interval.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, if no row
            was held out in fit, or for "jackknife+" with a precomputed kernel, which is
            not kept.

        References
        ----------
        .. [1] Barber, Candes, Ramdas and Tibshirani (2021), "Predictive
               inference with the jackknife+", equation 1.5.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.preprocessing import scale
        >>> from skacv import KernelEigenProRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> X = scale(X)
        >>> model = KernelEigenProRegressor(gamma=0.02, random_state=0).fit(X, y)
        >>> best = model.at_iteration(model.loo_path_.argmin())
        >>> best.predict_interval(X[:3], coverage=0.8).shape
        (3, 2)
        """
        return super().predict_interval(X, coverage, method)
