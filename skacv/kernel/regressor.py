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
    on unseen rows, and the run stops when it no longer decreases. Read more in the
    :doc:`user guide </guide/kernels>`.

    With d = ||x - z|| (Euclidean) and g = gamma, the kernels are exp(-g d^2) for "rbf",
    exp(-g d) for "laplacian", (1 + g d) exp(-g d) for "matern", 1 / (1 + g d^2) for
    "cauchy" and (g x'z + coef0)^degree for "polynomial".

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "matern", "cauchy", "polynomial", "auto", \
"precomputed"} or callable, default="rbf"
        A kernel by name; "auto", the best of "laplacian", "matern" and "rbf";
        "precomputed", with X the matrix between (new and) training rows; or a positive
        semi-definite function ``kernel(X, Z)``.
    gamma : float, "scale" or "auto", default="auto"
        "scale" is 1 / (n_features Var(X)), its square root for "laplacian" and
        "matern". "auto": the best of six multiples of that, from 1/64 to 16 (or their
        square roots), by cross-validation on at most 1000 rows.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    alpha : float, array-like or "path", default=0.0
        Strength of a penalty alpha ||f||^2 added to the sum of the losses, as in
        :class:`sklearn.kernel_ridge.KernelRidge`; or a sequence for one warm-started
        run, largest first; "path": 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept, by centring the kernel and the targets,
        or for other losses by separate updates.
    standardize : bool, default=False
        Whether to scale the columns to mean zero and variance one over all rows first
        (sparse columns are not centred). Rows are passed in units of X. Not available
        with "precomputed".
    n_centers : int, "auto" or None, default="auto"
        Number of centres, random rows at which the function has coefficients (Nystroem
        [3]_); None is all rows. "auto": all up to 3000 rows, otherwise :doc:`as many as
        needed </guide/kernels>`, 500 to 3000.
    solver : {"auto", "eigenpro", "gd", "nesterov"}, default="auto"
        EigenPro in batches, plain gradient descent, or Nesterov's acceleration, both on
        all rows. "auto" is "nesterov" if leave-one-out is exact (:doc:`when
        </guide/kernels>`) and no size of EigenPro is set, otherwise "eigenpro".
    n_components : int or "auto", default="auto"
        Number of top eigenvectors that are preconditioned; 0 is plain gradient descent.
        "auto" is a fortieth of the subsample up to 3000 rows, then a tenth, at most
        100.
    subsample_size : int or "auto", default="auto"
        Number of rows for the preconditioner, which cannot be left out. "auto" is a
        tenth of the rows, between 500 and 2000 (12,000 from 100,000 rows on, memory
        permitting), and at most a third of them.
    batch_size : int, "auto" or "full", default="auto"
        Largest number of rows in a batch; batches are drawn once. "auto" is all rows up
        to 3000, otherwise the critical batch size, below which smaller batches need no
        fewer epochs.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L for updates on all rows, with L the largest eigenvalue of the
        (preconditioned) kernel matrix divided by n; with batches the step of EigenPro
        2, or the largest stable one.
    max_iter : int, default=200
        Maximum number of epochs (passes over the rows) at each value of alpha.
    patience : int, default=5
        The run stops, and uses the best iterate, after this number of epochs without
        improvement, and as many as came before it (along a path, all epochs at a sixth
        of the alphas). None: ``max_iter`` epochs, and the last.
    tol : float, default=1e-3
        For ``patience``, an iterate is better only if its estimate is lower by more
        than this fraction and by more than ``loo_mc_se_path_``.
    loo : {"auto"}, bool or int, default="auto"
        Rows outside the subsample to leave out, one at a time: all (True), a number of
        random rows (one run each), or none (False). "auto": all, or 10,000 with
        centres.
    n_probes : int, default=40
        Number of random label vectors for leave-one-out that is not exact.
    cv : int, splitter or iterable, default=None
        Cross-validation folds, as in scikit-learn, fitted as further outputs of the
        run. None: no ``cv_path_``.
    store_every : int, default=1
        Dual coefficients are kept every ``store_every`` epochs, and for the best and
        the last one. Paths cover all epochs.
    warm_start : bool, default=False
        Whether ``fit`` with the same data and a larger ``max_iter`` continues the run,
        as one longer run; with other data or parameters a new run starts, with a
        warning. The kernel matrix stays in memory.
    memory_budget : float, default=1000
        Megabytes for the kernel matrix; a larger matrix is recomputed in blocks in
        every epoch. Beyond 3000 rows it is in single precision.
    n_jobs : int, default=None
        Number of threads that compute blocks of the kernel.
    random_state : int, RandomState instance or None, default=None
        Controls the random batches, subsample, labels and left-out rows.
    verbose : bool or int, default=0
        Whether to print about ten lines of progress messages.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_samples,) or (n_samples, n_targets)
        Dual coefficients of the iterate in use, the best after ``fit``; with
        ``n_centers``, one per centre.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the iterate in use.
    X_fit_ : {ndarray, CSR matrix} of shape (n_samples, n_features)
        A copy of the training rows, or of the centres with ``n_centers``; None with a
        precomputed kernel.
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
        Leave-one-out error of every iterate: the mean squared error on row i of iterate
        t of the same run without the gradient of row i. :doc:`Exact </estimates>`, or
        estimated from random labels and corrected for their bias.
    {loo_se_path_}
    loo_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of the standard error of ``loo_path_`` due to random labels; 0 if exact.
        Not available if ``loo`` is a number.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_targets])
        Prediction for every left-out row by the iterates fitted without it.
    {loo_indices_}
    loo_target_ : ndarray of shape (n_left_out[, n_targets])
        Targets of the rows left out.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate, exact, over the held-out rows outside
        the subsample.
    {cv_se_path_, cv_fold_path_}
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_targets])
        Predictions for the held-out rows, fold after fold.
    cv_indices_ : list of ndarray of int
        Indices of the rows that each fold is evaluated on.
    cv_target_ : ndarray of shape (n_held_out[, n_targets])
        Targets of the held-out rows, fold after fold.
    df_path_ : ndarray of shape (n_iter_ + 1,)
        Degrees of freedom of every iterate: the trace of the map from targets to
        predictions, per output. Available with leave-one-out of all rows.
    kernel_ : str
        Name of the kernel used, for a named kernel.
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
        Indices of the rows used for the preconditioner; empty without one.
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
        Largest eigenvalue of the preconditioned kernel matrix of a batch, divided by
        its rows; steps below ``2 / top_eigenvalue_`` are stable.
    record_ : Record
        What is kept of the run; other fitted attributes are read from it.
    n_iter_ : int
        Number of epochs recorded.
    iteration_ : int
        Index of the iterate in use: after ``fit`` the best, or the last if the run was
        not stopped by an estimate.
    {n_features_in_, feature_names_in_}

    See Also
    --------
    KernelEigenProClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
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
