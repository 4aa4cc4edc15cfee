"""Kernel classification by EigenPro with an error estimate for every iterate."""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._compat import StrOptions
from .._estimator.calibration import scale_of
from .._estimator.decisions import RecordedProbabilisticClassifier
from .._estimator.following import of_record
from ..optim.losses import Logistic, Multinomial, SquaredError
from ._model import KernelModel


class KernelEigenProClassifier(KernelModel, RecordedProbabilisticClassifier):
    """Kernel classification by EigenPro, with leave-one-out along the run.

    The algorithm is that of :class:`KernelEigenProRegressor`, applied to labels: least
    squares on labels coded as -1 and 1 for two classes, or as one indicator (0 or 1)
    per class for more; or kernel logistic regression (``loss="log"``). All outputs are
    fitted in one run.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "cauchy", "polynomial", "precomputed"} or callable, \
default="rbf"
        exp(-gamma ||x - z||^2), exp(-gamma ||x - z||), 1 / (1 + gamma ||x - z||^2) or
        (gamma x'z + coef0)^degree; distances are Euclidean, whereas the "laplacian"
        kernel of scikit-learn uses the l1 distance. "precomputed": X is the kernel
        matrix of the training rows, and in ``predict`` that between new and training
        rows. A callable ``kernel(X, Z)`` returns the kernel matrix between two sets of
        rows. Kernels must be positive semi-definite.
    gamma : float, "scale" or "auto", default="auto"
        "scale" is 1 / (n_features Var(X)), its square root for "laplacian". "auto" is
        the best of 1/64, 1/16, 1/4, 1, 4 and 16 times that (or the square roots of
        these), by cross-validation on at most 1000 rows with the folds of ``cv``, or
        five random ones. The worse half of the candidates is dropped after 25 updates,
        half of the rest after 50, and so on.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant term of the polynomial kernel.
    loss : {"squared_error", "log"}, default="squared_error"
        Least squares on coded labels, or the log loss. Decisions by least squares
        times ``probability_scale_`` are the log odds of ``predict_proba``; without
        held-out rows it clips and normalises what they say of probabilities. With the
        log loss leave-one-out takes one run for every row left out: ``cv`` is faster.
    alpha : float, array-like or "path", default=0.0
        Strength of the ridge penalty, which is alpha ||f||^2 added to the sum of
        squared errors, or alpha ||f||^2 / 2 added to the sum of log losses. With 0
        early stopping is the only regularisation. A sequence of values is fitted in one
        warm-started trajectory, with ``max_iter`` epochs at each value; "path" is a
        geometric grid of 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept: by centring the kernel and the targets
        for the squared error, by separate updates for the log loss.
    standardize : bool, default=False
        Whether the kernel is one of columns with mean zero and variance one (sparse
        ones are scaled and not centred), those of all rows. Rows are passed in units of
        X in any case. Not with "precomputed".
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
    solver : {"auto", "eigenpro", "gd", "nesterov"}, default="auto"
        EigenPro; kernel gradient descent; or Nesterov's acceleration. The last two use
        all rows in every update, and no subsample. "auto" is "nesterov" where
        leave-one-out is exact (up to 3000 rows, within ``memory_budget``). Otherwise,
        or if ``n_components``, ``subsample_size`` or ``batch_size`` is set, it is
        "eigenpro".
    n_components : int or "auto", default="auto"
        Number of top eigenvectors of the subsample that are preconditioned. 0 is plain
        kernel gradient descent (Richardson iteration). "auto" is a fortieth of the
        subsample up to 3000 rows, else a tenth, at most 100. Eigenvectors with
        eigenvalue zero are not used.
    subsample_size : int or "auto", default="auto"
        Number of rows that the preconditioner is computed from; they cannot be left
        out. "auto" is a tenth of the rows, but at least 500 and at most 2000 (12000
        from 100,000 rows on, if they fit in the memory budget), and never more than a
        third of the rows.
    batch_size : int, "auto" or "full", default="auto"
        Largest number of rows in a batch; batches are of about equal size. "auto" is
        all rows up to 3000, otherwise the critical batch size, below which smaller
        batches do not converge faster. Batches are drawn once; all epochs use them in
        the same order.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L if updates use all rows, where L is the largest eigenvalue of
        the (preconditioned) kernel matrix divided by n. With batches it is the step of
        EigenPro 2, or the largest stable step if that is less. It depends on X only.
    max_iter : int, default=200
        Maximum number of epochs (passes through the rows) at each value of alpha.
    patience : int, default=5
        The run stops when its best iterate, by leave-one-out or otherwise by the folds,
        has been followed by this number of epochs and by as many as came before it. The
        best iterate is then used. With several values of alpha it waits instead for all
        epochs at one sixth of these values (rounded up), or for ``patience`` epochs if
        that is more. None, or no estimate: the run has ``max_iter`` epochs at every
        alpha, and the last iterate is used.
    tol : float, default=1e-3
        For ``patience`` an iterate counts as better than another only if its estimate
        is lower by more than this fraction, and by more than ``loo_mc_se_path_``.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the run: of every row outside of the subsample (True, and
        "auto" from 3 rows on), of a given number of them drawn at random, with one run
        for each, or of none (False).
    n_probes : int, default=40
        Number of random label vectors from which leave-one-out is estimated where it is
        not exact.
    cv : int, splitter or iterable, default=None
        Cross-validation folds, as in scikit-learn. All folds are fitted as further
        outputs of the one run. None: no ``cv_path_``.
    store_every : int, default=1
        Dual coefficients are kept for one in this number of epochs, and for the best
        and the last. Paths have all epochs.
    warm_start : bool, default=False
        Whether fitting the same data again with a larger ``max_iter`` continues the
        run, so that all paths equal those of one longer run. With other data or
        parameters a new run starts, with a warning. The kernel matrix is kept in
        memory.
    memory_budget : float, default=1000
        Megabytes that the kernel matrix may take. A larger matrix is recomputed in
        blocks in every epoch. Beyond 3000 rows it is in single precision.
    n_jobs : int, default=None
        Number of threads that compute blocks of the kernel.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the batches, the subsample, the random labels and the rows
        left out.
    verbose : bool or int, default=0
        Whether to print about ten lines of progress messages.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        Dual coefficients of the iterate in use, the best after ``fit``.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the iterate in use.
    X_fit_ : {ndarray, CSR matrix} of shape (n_samples, n_features)
        The training rows; None with a precomputed kernel.
    dual_coef_path_ : ndarray of shape (n_stored, n_samples, n_outputs)
        Dual coefficients of the iterates that are kept; row 0 is the start.
    stored_iterations_ : ndarray of shape (n_stored,)
        Indices of these iterates.
    intercept_path_ : ndarray of shape (n_iter_ + 1, n_outputs)
        Intercepts of every iterate.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, with the mean of the losses.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean squared error on the training rows, over the outputs.
    rkhs_norm_path_ : ndarray of shape (n_iter_ + 1,)
        Norm of the function, sqrt(alpha' K alpha), over all outputs.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate: the mean over rows outside of the
        subsample of the squared error on the row of iterate t of the same run (same
        batches, preconditioner, step and divisor m) without the gradient of that row.
        It is exact, by an eigendecomposition of the preconditioned kernel, if there is
        one batch of at most 3000 rows and three matrices of that size are within
        ``memory_budget``. Otherwise it is estimated from random labels, corrected for
        their bias.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``loo_path_``, over the rows left out.
    loo_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of the standard error of ``loo_path_`` that is due to the random labels; 0
        where leave-one-out is exact. Not available if ``loo`` is a number.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
        Decision function of every left-out row, by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out,)
        Targets of these rows.
    loo_error_path_ : ndarray of shape (n_iter_ + 1,)
        Share of the left-out rows that are misclassified.
    probability_scale_ : float or None
        What makes decisions of the iterate in use log odds: the scale of greatest
        likelihood [2]_ of its held-out decisions, those of ``cv`` if there are any,
        else those of ``loo``. 1 with the log loss, None where no row was held out.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate, exact: the mean over the held-out rows
        that are not in the subsample.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_``, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        Error of every iterate on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_classes])
        Decision function of the held-out rows, fold after fold.
    cv_indices_ : list of ndarray of int
        Indices of the held-out rows that every fold is evaluated on.
    cv_target_ : ndarray of shape (n_held_out,)
        Targets of these rows, fold after fold.
    df_path_ : ndarray of shape (n_iter_ + 1,)
        Degrees of freedom of every iterate: the trace of the linear map from the
        targets of one output to their predictions. Available only with leave-one-out of
        all rows.
    gamma_ : float
        The gamma used, for a named kernel.
    gammas_ : ndarray of shape (n_scales,)
        The candidates for gamma, with ``gamma="auto"``.
    gamma_scores_ : ndarray of shape (n_scales,)
        Cross-validation error of the best iterate of each candidate, as far as it was
        run; the smallest is chosen.
    n_components_ : int
        Number of eigenvectors in the preconditioner.
    subsample_indices_ : ndarray of int
        Indices of the rows of X that the preconditioner was computed from; empty if it
        has no eigenvectors.
    batch_size_ : int
        Number of rows in a batch, m, by which its gradient is divided.
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
        Index of the iterate in use. After ``fit`` it is the best by leave-one-out or
        otherwise by the folds, and the last with ``patience=None`` or without these
        estimates.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    KernelEigenProRegressor : The same for regression.
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.svm.SVC : The same functions, with the hinge loss.

    References
    ----------
    .. [1] Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective
           large batch training", MLSys, arXiv:1806.06144.
    .. [2] Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural
           networks", ICML, arXiv:1706.04599.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skacv import KernelEigenProClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelEigenProClassifier(random_state=0).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.decision_function(X[:2]).shape
    (2, 3)
    >>> bool(model.loo_error_path_[best.iteration_] < 0.1)
    True
    """

    _parameter_constraints = {
        **KernelModel._parameter_constraints,
        "loss": [StrOptions({"squared_error", "log"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="auto",
        degree=3,
        coef0=1.0,
        loss="squared_error",
        alpha=0.0,
        fit_intercept=True,
        standardize=False,
        class_weight=None,
        solver="auto",
        n_components="auto",
        subsample_size="auto",
        batch_size="auto",
        step_size="auto",
        max_iter=200,
        patience=5,
        tol=1e-3,
        loo="auto",
        n_probes=40,
        cv=None,
        store_every=1,
        warm_start=False,
        memory_budget=1000,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            kernel,
            gamma=gamma,
            degree=degree,
            coef0=coef0,
            alpha=alpha,
            fit_intercept=fit_intercept,
            standardize=standardize,
            solver=solver,
            n_components=n_components,
            subsample_size=subsample_size,
            batch_size=batch_size,
            step_size=step_size,
            max_iter=max_iter,
            patience=patience,
            tol=tol,
            loo=loo,
            n_probes=n_probes,
            cv=cv,
            store_every=store_every,
            warm_start=warm_start,
            memory_budget=memory_budget,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.loss = loss
        self.class_weight = class_weight

    @property
    def _is_quadratic(self):
        return self.loss == "squared_error"

    def _class_loss(self, n_classes):
        if self._is_quadratic:
            return SquaredError()
        return Logistic() if n_classes == 2 else Multinomial()

    def _loss_and_target(self, label, n_classes):
        if self._is_quadratic:
            return SquaredError(), codes_of(label, n_classes)
        return super()._loss_and_target(label, n_classes)

    def _gives_probabilities(self):
        return True

    def _probability(self, decision, t):
        scale = self._scale_at(t)
        if scale is None:
            return shares(decision)
        return super()._probability(scale * decision, t)

    @property
    @of_record
    def probability_scale_(self):
        """What makes decisions log odds, None where no row was held out."""
        check_is_fitted(self)
        return self._scale_at(self.iteration_)

    def _scale_at(self, t):
        """That of iterate ``t``."""
        if not self._is_quadratic:
            return 1.0
        # Folds hold out all rows exactly; leave-one-out may be of a few, or estimated.
        for name in ("cv", "loo"):
            if hasattr(self, f"{name}_prediction_path_"):
                decision = getattr(self, f"{name}_prediction_path_")[t]
                target = getattr(self, f"{name}_target_")
                rows = np.hstack(getattr(self, f"{name}_indices_"))
                label = np.searchsorted(self.classes_, target)
                return scale_of(decision, label, self._row_weights[rows])
        return None

    @property
    @of_record
    def loo_error_path_(self):
        """Share of the left-out rows that every iterate misclassifies."""
        if not hasattr(self, "loo_prediction_path_"):
            raise AttributeError("loo_error_path_ needs an estimator fitted with loo.")
        label = np.searchsorted(self.classes_, self.loo_target_)
        decisions = self.loo_prediction_path_
        if decisions.ndim == 2:
            chosen = (decisions > 0).astype(int)
        else:
            chosen = decisions.argmax(axis=2)
        return np.mean(chosen != label, axis=1)


def shares(decision):
    """The mean of the codes, which least squares estimates, as probabilities.

    Estimates may be outside of [0, 1]: they are clipped and normalised.
    """
    if decision.ndim == 1:
        share = np.clip((1 + decision) / 2, 0, 1)
        return np.stack([1 - share, share], axis=1)
    share = np.clip(decision, 0, None)
    # A row whose decisions are all below zero says nothing.
    share[~share.any(axis=1)] = 1
    return share / share.sum(axis=1, keepdims=True)


def codes_of(label, n_classes):
    """-1 and 1 of two classes in one column, else a column of 0 and 1 per class."""
    if n_classes == 2:
        return 2.0 * label[:, None] - 1
    return np.eye(n_classes)[label]
