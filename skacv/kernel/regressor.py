"""Kernel regression by EigenPro that says what every iterate would cost."""

from .._estimator.predictions import RecordedRegressor
from ._model import KernelModel


class KernelEigenProRegressor(KernelModel, RecordedRegressor):
    """Kernel regression by EigenPro, with leave-one-out along the run.

    An epoch takes batches B of m rows, g their residuals f(X_B) - y_B [1]_:

        f <- f - (step_size / m) k_P(., B) g,

    k_P the kernel whose top directions on a subsample of the rows are brought
    down to about the next one, so that larger batches and steps are stable [2]_.
    Without them it is kernel gradient descent. The limit interpolates, as
    :class:`sklearn.kernel_ridge.KernelRidge` does with alpha -> 0; stopping is
    what regularises. ``loo_path_`` says what every iterate would cost on unseen
    rows, and the run ends when that has stopped falling.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "cauchy", "polynomial", "precomputed"} or callable, \
default="rbf"
        exp(-gamma ||x - z||^2), exp(-gamma ||x - z||), 1 / (1 + gamma
        ||x - z||^2) or (gamma x'z + coef0)^degree; distances are Euclidean,
        "laplacian" is not that of scikit-learn, which has the l1 distance.
        "precomputed": X is the kernel matrix, in ``predict`` that between
        new and training rows. A callable ``kernel(X, Z)`` returns the matrix of
        two sets of rows. It must be positive semi-definite.
    gamma : float, "scale" or "auto", default="auto"
        "scale" is 1 / (n_features Var(X)), its root for "laplacian". "auto" is the
        best of 1/64, 1/16, 1/4, 1, 4 and 16 times that (roots of these for
        "laplacian"), by the folds of ``cv``, or five that are drawn, of at most 1000
        rows. Half of the scales end after 25 updates, half of the others after 50, and
        so on.
    degree : float, default=3
        Of the polynomial kernel.
    coef0 : float, default=1.0
        Of the polynomial kernel.
    alpha : float, array-like or "path", default=0.0
        Strength of the ridge penalty alpha ||f||^2 beside the sum of the losses, as in
        :class:`sklearn.kernel_ridge.KernelRidge`; 0 leaves all regularisation to
        stopping. A sequence of values is fitted in one warm-started trajectory, with
        ``max_iter`` epochs at each value; "path" is a geometric grid of 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept: by centring the kernel and the targets
        for the squared error, by separate updates for other losses.
    solver : {"auto", "eigenpro", "gd", "nesterov"}, default="auto"
        EigenPro; kernel gradient descent; or Nesterov's acceleration. The last two take
        all rows at a time, and no row for a subsample. "auto" is acceleration where
        leave-one-out is exact (up to 3000 rows, within ``memory_budget``), and
        EigenPro elsewhere and where one of its sizes is set: ``n_components``,
        ``subsample_size`` or ``batch_size``.
    n_components : int or "auto", default="auto"
        Directions that the preconditioner brings down. 0 is plain kernel
        gradient descent (Richardson iteration). "auto" is a fortieth of the
        subsample up to 3000 rows, else a tenth, at most 100. Directions in which
        the kernel is zero do not count.
    subsample_size : int or "auto", default="auto"
        Rows that the preconditioner is made from; they cannot be left out.
        "auto" is a tenth of the rows, but at least 500 and at most 2000 (12000
        from 100,000 rows on, if they fit in the memory budget), and never more
        than a third of the rows.
    batch_size : int, "auto" or "full", default="auto"
        Rows of a batch, at most: batches are as even as they can be. "auto" is
        all rows up to 3000, else the critical batch size, up to which smaller
        batches gain nothing. Batches are drawn once; all epochs take them in
        the same order.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L with all rows at a time, L the top eigenvalue of the
        (preconditioned) kernel over n. With batches it is the step of EigenPro 2, or
        the largest that is stable if that is less. It depends on X only.
    max_iter : int, default=200
        Epochs at most: passes through the rows.
    patience : int, default=5
        The run ends when its best iterate, by leave-one-out or else by the
        folds, is followed by so many others and as many as came before it. That
        iterate is then in use. None runs ``max_iter`` epochs, as it does without any
        estimate, and uses the last.
    tol : float, default=1e-3
        An iterate is better than another, for ``patience``, if it lowers the
        estimate by more than this share, and by more than ``loo_mc_se_path_``.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the run of every row outside of the subsample (True,
        and "auto" from 3 rows on), of so many of them drawn at random, each
        followed by itself, or of none (False).
    n_probes : int, default=40
        Random labels that leave-one-out is read from where it is not exact.
    cv : int, splitter or iterable, default=None
        Cross-validation folds, as in scikit-learn. All folds are fitted as further
        outputs of the one run. None: no ``cv_path_``.
    store_every : int, default=1
        Dual coefficients are kept of every so many epochs, and of the best and
        the last. Paths have all epochs.
    warm_start : bool, default=False
        Fitting the same data again with a larger ``max_iter`` goes on with the run:
        all paths equal those of one longer run. With other data or parameters a new
        run begins, with a warning. The run is kept with its kernel matrix.
    memory_budget : float, default=1000
        Megabytes that the kernel matrix may take. A larger one is computed in
        blocks again in every epoch. It is in single precision beyond 3000 rows.
    n_jobs : int, default=None
        Number of threads that compute blocks of the kernel.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the batches, the subsample, the random labels and the rows
        left out.
    verbose : bool or int, default=0
        Whether to print about ten lines of progress messages.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Dual coefficients of the iterate in use, the best after ``fit``.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the iterate in use.
    X_fit_ : {ndarray, CSR matrix} of shape (n_samples, n_features)
        The training rows; None with a precomputed kernel.
    dual_coef_path_ : ndarray of shape (n_stored, n_samples[, n_targets])
        Dual coefficients of the iterates that are kept; row 0 is the start.
    stored_iterations_ : ndarray of shape (n_stored,)
        Which iterates these are.
    intercept_path_ : ndarray of shape (n_iter_ + 1,) or (n_iter_ + 1, n_outputs)
        Intercept of every iterate.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, with the mean of the losses.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean squared error on the training rows, over the outputs.
    rkhs_norm_path_ : ndarray of shape (n_iter_ + 1,)
        Norm of the function, sqrt(alpha' K alpha), over all outputs.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error: the mean over rows outside of the subsample of the
        squared error of iterate t of this very run, same batches, preconditioner,
        step and divisor m, if it never takes the gradient of the row. With
        all rows in a batch and at most 3000 of them it is exact, by the
        eigendecomposition of the preconditioned kernel, if three matrices of
        its size are within ``memory_budget``. Else from random labels,
        corrected for what they add on average.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``loo_path_``, over the rows left out.
    loo_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of the standard error of ``loo_path_`` that is due to the random labels; 0
        where leave-one-out is exact. Not available if ``loo`` is a number.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction of every left-out row by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out[, n_targets])
        Targets of these rows.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate, exact: the mean over the held-out rows
        that are not in the subsample.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_``, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        Error of every iterate on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_targets])
        Predictions of the held-out rows, fold after fold.
    cv_indices_ : list of ndarray of int
        Indices of the held-out rows that every fold is evaluated on.
    df_path_ : ndarray of shape (n_iter_ + 1,)
        Degrees of freedom: the trace of the map from targets to predictions, of
        one output. With leave-one-out of all rows only.
    gamma_ : float
        The gamma taken, of a named kernel.
    gammas_ : ndarray of shape (n_scales,)
        Those that were tried, with ``gamma="auto"``.
    gamma_scores_ : ndarray of shape (n_scales,)
        What folds find that the best iterate of each costs, as far as it was run;
        the least is taken.
    n_components_ : int
        Directions of the preconditioner.
    subsample_indices_ : ndarray of int
        Rows of X that it was made from; none without directions.
    batch_size_ : int
        Rows of a batch, by which its gradient is divided.
    batch_indices_ : list of ndarray of int
        Rows of every batch.
    critical_batch_size_ : float
        m* = beta / lambda + 1, beta the largest k_P(x, x) and lambda the top
        eigenvalue that the preconditioner leaves on its subsample.
    step_size_ : float
        The step taken: a batch moves alpha by step_size_ / batch_size_ times its
        residuals.
    top_eigenvalue_ : float
        The largest eigenvalue of the preconditioned kernel of a batch, divided by
        its rows; steps below 2 / top_eigenvalue_ are stable.
    n_iter_ : int
        Epochs recorded.
    iteration_ : int
        The iterate in use. After ``fit`` that is the best by leave-one-out or else by
        the folds, and the last with ``patience=None`` or without these.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    KernelEigenProClassifier : The same for labels.
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.kernel_ridge.KernelRidge : The same functions, with a penalty.

    References
    ----------
    .. [1] Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective
           large batch training", MLSys, arXiv:1806.06144.
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

    _is_quadratic = True
    _multi_output = True

    def predict_interval(self, X, coverage=0.9, method="jackknife+"):
        """Prediction intervals of the iterate in use, from the one run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float, default=0.9
            Share of the targets of unseen rows that the intervals should cover.
        method : {"jackknife+", "loo"}, default="jackknife+"
            "jackknife+": quantiles over the rows left out of the prediction
            without the row, plus and minus its held-out residual [1]_. Where
            ``loo_path_`` is exact by the eigendecomposition this takes another
            one, once per iterate. Else the run is repeated without each of the
            rows left out, in as many columns: a number as ``loo`` makes them few.
            "loo": the prediction plus and minus a quantile of the held-out
            residuals.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y. With a coverage below one half
            the ends of "jackknife+" may cross, which is an empty interval.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, if fit
            has left no row out (``loo=False``), or for "jackknife+" with a
            precomputed kernel, which is not kept.

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

    def _held_out_residuals(self, method):
        if method == "jackknife+" and self.X_fit_ is None:
            raise ValueError(
                "method='jackknife+' runs again on the kernel matrix of the training "
                'rows, which is not kept with kernel="precomputed". Use method="loo".'
            )
        return super()._held_out_residuals(method)
