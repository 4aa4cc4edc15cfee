"""Kernel regression by EigenPro with an error estimate for every iterate."""

from .._estimator.docstrings import SHARED, documented
from .._estimator.prediction.predictions import RecordedRegressor
from ._model import KernelModel


@documented(SHARED)
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
    kernel : {"rbf", "laplacian", "matern", "cauchy", "polynomial", "auto", \
"precomputed"} or callable, default="rbf"
        With d = ||x - z||, exp(-gamma d^2), exp(-gamma d), (1 + gamma d) exp(-gamma d),
        1 / (1 + gamma d^2) or (gamma x'z + coef0)^degree; distances are Euclidean,
        whereas the "laplacian" kernel of scikit-learn uses the l1 distance. "auto" is
        the best of "laplacian", "matern" and "rbf", chosen together with ``gamma``.
        "precomputed": X is the kernel matrix of the training rows, and in ``predict``
        that between new and training rows. A callable ``kernel(X, Z)`` returns the
        kernel matrix between two sets of rows. Kernels must be positive semi-definite.
    gamma : float, "scale" or "auto", default="auto"
        "scale" is 1 / (n_features Var(X)), its square root for "laplacian" and
        "matern". "auto" is the best of 1/64, 1/16, 1/4, 1, 4 and 16 times that (or the
        square roots of these), by cross-validation on at most 1000 rows with the folds
        of ``cv``, or five random ones. The worse half of the candidates is dropped
        after 25 updates, half of the rest after 50, and so on.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    alpha : float, array-like or "path", default=0.0
        Strength of the ridge penalty alpha ||f||^2, which is added to the sum of the
        losses as in :class:`sklearn.kernel_ridge.KernelRidge`. With 0 early stopping is
        the only regularisation. A sequence of values is fitted in one warm-started
        trajectory from the largest to the smallest, whatever its order, with
        ``max_iter`` epochs at each value; "path" is a geometric grid of 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept: by centring the kernel and the targets
        for the squared error, by separate updates for other losses.
    standardize : bool, default=False
        Whether to scale the columns to mean zero and variance one over all rows before
        the kernel is computed (sparse columns are scaled but not centred). Rows are
        passed in units of X in any case. Not available with "precomputed".
    n_centers : int, "auto" or None, default="auto"
        Number of centres, random rows: the function is a combination of the kernel at
        these, fitted to all rows (the Nystroem method [3]_). None, or at least the
        number of rows: every row is a centre. "auto" is None up to 3000 rows, or if
        EigenPro is asked for by ``solver`` or by its sizes. For more rows it is 500 or,
        if 250 are worse by leave-one-out on some of the rows, 1000 or 3000 (fewer with
        a small ``memory_budget``), with at most 2000 leading functions in their span.
        Time and memory are then proportional to the number of rows. Folds and
        leave-one-out hold out rows that may be centres: of a held-out row X is used,
        its target is not. With an int, ``solver`` is "gd" or "nesterov".
    solver : {"auto", "eigenpro", "gd", "nesterov"}, default="auto"
        EigenPro, kernel gradient descent, or Nesterov's acceleration. The last two use
        all rows in every update, and no subsample. "auto" is "nesterov" if
        leave-one-out is exact (with ``n_centers``, or up to 3000 rows, within
        ``memory_budget``). Otherwise, or if ``n_components``, ``subsample_size`` or
        ``batch_size`` is set, it is "eigenpro".
    n_components : int or "auto", default="auto"
        Number of top eigenvectors of the subsample that are preconditioned. 0 is plain
        kernel gradient descent (Richardson iteration). "auto" is a fortieth of the
        subsample up to 3000 rows, else a tenth, at most 100. Eigenvectors with
        eigenvalue zero are not used.
    subsample_size : int or "auto", default="auto"
        Number of rows from which the preconditioner is computed; they cannot be left
        out. "auto" is a tenth of the rows, but at least 500 and at most 2000 (12000
        from 100,000 rows on, if they fit in the memory budget), and never more than a
        third of the rows.
    batch_size : int, "auto" or "full", default="auto"
        Largest number of rows in a batch; batches have about equal sizes. "auto" is all
        rows up to 3000, otherwise the critical batch size, below which smaller batches
        do not converge faster. Batches are drawn once; all epochs use them in the same
        order.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L if updates use all rows, where L is the largest eigenvalue of
        the (preconditioned) kernel matrix divided by n. With batches it is the step of
        EigenPro 2, or the largest stable step if that is less. It depends on X only.
    max_iter : int, default=200
        Maximum number of epochs (passes through the rows) at each value of alpha.
    patience : int, default=5
        The run stops when its best iterate, by leave-one-out or otherwise by the folds,
        has been followed by this number of epochs and by as many as came before it. The
        best iterate is then used. With several values of alpha the run waits instead
        for all epochs at one sixth of these values (rounded up), or for ``patience``
        epochs if that is more. With None, or without an estimate, the run has
        ``max_iter`` epochs at every alpha, and the last iterate is used.
    tol : float, default=1e-3
        For ``patience``, an iterate is better than another only if its estimate is
        lower by more than this fraction and by more than ``loo_mc_se_path_``.
    loo : {"auto"}, bool or int, default="auto"
        Rows to leave out, one at a time, along the run: every row outside the subsample
        (True, and "auto" with 3 rows or more), a given number of them drawn at random,
        with one run for each, or none (False). With ``n_centers``, "auto" leaves out at
        most 10,000 random rows.
    n_probes : int, default=40
        Number of random label vectors from which leave-one-out is estimated if it is
        not exact.
    cv : int, splitter or iterable, default=None
        Cross-validation folds, as in scikit-learn. All folds are fitted as further
        outputs of the one run. None: no ``cv_path_``.
    store_every : int, default=1
        Dual coefficients are kept for one in ``store_every`` epochs, and for the best
        and the last one. Paths cover all epochs.
    warm_start : bool, default=False
        Whether fitting the same data again with a larger ``max_iter`` continues the
        run, so that all paths equal those of one longer run. With other data or
        parameters a new run starts, with a warning. The kernel matrix stays in memory.
    memory_budget : float, default=1000
        Megabytes available for the kernel matrix. A larger matrix is recomputed in
        blocks in every epoch. Beyond 3000 rows it is in single precision.
    n_jobs : int, default=None
        Number of threads that compute blocks of the kernel.
    random_state : int, RandomState instance or None, default=None
        Controls the random batches, subsample and labels, and the choice of left-out
        rows.
    verbose : bool or int, default=0
        Whether to print about ten lines of progress messages.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Dual coefficients of the iterate in use, the best after ``fit``. With
        ``n_centers`` there is one for each centre, here and in ``dual_coef_path_``.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the iterate in use.
    X_fit_ : {ndarray, CSR matrix} of shape (n_samples, n_features)
        A copy of the training rows; with ``n_centers``, of the centres alone; None with
        a precomputed kernel.
    center_indices_ : ndarray of int
        Indices of the rows that are centres, with ``n_centers``.
    dual_coef_path_ : ndarray of shape (n_stored, n_samples[, n_targets])
        Dual coefficients of the iterates that are kept; row 0 is the start.
    stored_iterations_ : ndarray of shape (n_stored,)
        Indices of the iterates whose dual coefficients are kept.
    intercept_path_ : ndarray of shape (n_iter_ + 1,) or (n_iter_ + 1, n_outputs)
        Intercept of every iterate.
    {alpha_path_}
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, with the mean of the losses.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean squared error on the training rows, over the outputs.
    rkhs_norm_path_ : ndarray of shape (n_iter_ + 1,)
        Norm of the function, sqrt(alpha' K alpha), over all outputs.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate: the mean over rows outside the subsample
        of the squared error, on that row, of iterate t of the same run (same batches,
        preconditioner, step and divisor m) without the gradient of the row. It is
        exact, from an eigendecomposition of the preconditioned kernel, if there is one
        batch of at most 3000 rows and three matrices of that size fit in
        ``memory_budget``, or with up to 2000 centres or an automatic number of them.
        Otherwise it is estimated from random labels and corrected for their bias.
    {loo_se_path_}
    loo_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of the standard error of ``loo_path_`` due to the random labels; 0 if
        leave-one-out is exact. Not available if ``loo`` is a number.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction for every left-out row by the iterates fitted without it.
    {loo_indices_}
    loo_target_ : ndarray of shape (n_left_out[, n_targets])
        Targets of these rows.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate, exact: the mean over the held-out rows
        that are not in the subsample.
    {cv_se_path_, cv_fold_path_}
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_targets])
        Predictions for the held-out rows, fold after fold.
    cv_indices_ : list of ndarray of int
        Indices of the held-out rows that every fold is evaluated on.
    cv_target_ : ndarray of shape (n_held_out[, n_targets])
        Targets of these rows, fold after fold.
    df_path_ : ndarray of shape (n_iter_ + 1,)
        Degrees of freedom of every iterate: the trace of the linear map from the
        targets of one output to their predictions. Available only with leave-one-out of
        all rows.
    kernel_ : str
        The name of the kernel used, for a named kernel.
    gamma_ : float
        The gamma used, for a named kernel.
    kernels_ : list of str
        The kernel of every candidate, with ``gamma="auto"``.
    gammas_ : ndarray of shape (n_candidates,)
        The gamma of every candidate, with ``gamma="auto"``.
    gamma_scores_ : ndarray of shape (n_candidates,)
        Cross-validation error of the best iterate of each candidate, as far as it was
        run; the smallest is chosen.
    n_components_ : int
        Number of eigenvectors in the preconditioner.
    subsample_indices_ : ndarray of int
        Indices of the rows of X from which the preconditioner was computed; empty if it
        has no eigenvectors.
    batch_size_ : int
        Number m of rows in a batch, by which its gradient is divided.
    batch_indices_ : list of ndarray of int
        Indices of the rows of every batch.
    critical_batch_size_ : float
        m* = beta / lambda + 1, where beta is the largest k_P(x, x) and lambda the
        largest eigenvalue of the preconditioned kernel on the subsample.
    step_size_ : float
        The step size used: a batch changes its dual coefficients by ``step_size_ /
        batch_size_`` times its residuals.
    top_eigenvalue_ : float
        The largest eigenvalue of the preconditioned kernel matrix of a batch, divided
        by its number of rows; steps below ``2 / top_eigenvalue_`` are stable.
    n_iter_ : int
        Number of epochs recorded.
    iteration_ : int
        Index of the iterate in use. After ``fit`` it is the best one by leave-one-out
        or otherwise by the folds, or the last one with ``patience=None`` or without
        these estimates.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    KernelEigenProClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.
    sklearn.kernel_ridge.KernelRidge : The same functions, with a penalty.

    References
    ----------
    .. [1] Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective
           large batch training", MLSys, arXiv:1806.06144.
    .. [2] Ma, Bassily and Belkin (2018), "The power of interpolation:
           understanding the effectiveness of SGD in modern over-parametrized
           learning", ICML, arXiv:1712.06559.
    .. [3] Rudi, Camoriano and Rosasco (2015), "Less is more: Nystroem computational
           regularization", NIPS, arXiv:1507.04717.

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
