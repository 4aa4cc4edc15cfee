"""Kernel classification by EigenPro that says what every iterate would cost."""

import numpy as np

from .._compat import StrOptions
from .._estimator.decisions import RecordedProbabilisticClassifier
from .._estimator.following import of_record
from ..optim.losses import Logistic, Multinomial, SquaredError
from ._model import KernelModel


class KernelEigenProClassifier(KernelModel, RecordedProbabilisticClassifier):
    """Kernel classification by EigenPro, with leave-one-out along the run.

    The run of :class:`KernelEigenProRegressor` on labels: least squares on codes, -1
    and 1 where there are two classes, else one output per class, 1 on its rows and 0
    on the others; or kernel logistic regression (``loss="log"``). All outputs share the
    run.

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
    loss : {"squared_error", "log"}, default="squared_error"
        Least squares on coded labels, -1 and 1 or an output per class, whose decisions
        estimate probabilities but may leave [0, 1]: ``predict_proba`` brings them back.
        Or the log loss, of the log odds. Rows are left out by runs of their own with
        the log loss: ``cv`` is faster.
    alpha : float, array-like or "path", default=0.0
        Strength of the ridge penalty alpha ||f||^2 beside the sum of squared errors,
        alpha ||f||^2 / 2 beside that of the log losses; 0 leaves all regularisation to
        stopping. A sequence of values is fitted in one warm-started trajectory, with
        ``max_iter`` epochs at each value; "path" is a geometric grid of 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept: by centring the kernel and the targets
        for the squared error, by separate updates for the log loss.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes.
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
        Which iterates these are.
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
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
        Decision function of every left-out row, by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out,)
        Targets of these rows.
    loo_error_path_ : ndarray of shape (n_iter_ + 1,)
        Share of the rows left out whose label is not predicted.
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
    KernelEigenProRegressor : The same for numbers.
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.svm.SVC : The same functions, with the hinge loss.

    References
    ----------
    Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective
    large batch training", MLSys, arXiv:1806.06144.

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

    def _probability(self, decision):
        """Those of log odds, or the codes that decisions estimate, as shares.

        With the squared error they estimate the mean of the codes, which the
        probabilities are, but may be below zero.
        """
        if not self._is_quadratic:
            return super()._probability(decision)
        if decision.ndim == 1:
            share = np.clip((1 + decision) / 2, 0, 1)
            return np.stack([1 - share, share], axis=1)
        share = np.clip(decision, 0, None)
        # A row whose decisions are all below zero says nothing.
        share[~share.any(axis=1)] = 1
        return share / share.sum(axis=1, keepdims=True)

    @property
    @of_record
    def loo_error_path_(self):
        """Share of the rows left out whose label is not predicted, by iterate."""
        if not hasattr(self, "loo_prediction_path_"):
            raise AttributeError("loo_error_path_ needs an estimator fitted with loo.")
        label = np.searchsorted(self.classes_, self.loo_target_)
        decisions = self.loo_prediction_path_
        if decisions.ndim == 2:
            chosen = (decisions > 0).astype(int)
        else:
            chosen = decisions.argmax(axis=2)
        return np.mean(chosen != label, axis=1)


def codes_of(label, n_classes):
    """-1 and 1 of two classes in one column, else a column of 0 and 1 per class."""
    if n_classes == 2:
        return 2.0 * label[:, None] - 1
    return np.eye(n_classes)[label]
