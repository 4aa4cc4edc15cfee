"""Linear support vector classification by gradient descent, rows left out along it."""

from numbers import Real

from .._compat import Interval, StrOptions
from ..optim.losses import SmoothedHinge, SquaredHinge
from ._curved import InverselyPenalized


class TrajectoryLinearSVC(InverselyPenalized):
    """Linear SVM that keeps every iterate and estimates its error.

    The objective is that of :class:`sklearn.svm.LinearSVC`,

        C sum_i w_i l(y_i, x_i'b) + ||b||^2 / 2,

    with l the squared or the smoothed hinge, for every class against the rest
    where there are more than two. The intercept is not penalised (in LinearSVC
    it is, the less the larger its ``intercept_scaling``). A raw hinge has no
    curvature: leaving rows out along the run would be useless with it.

    Parameters
    ----------
    C : float, array-like or "path", default=1.0
        Inverse strength of the penalty, positive. A sequence of values is fitted in one
        warm-started trajectory, with ``max_iter`` updates at each value and the
        momentum restarted at each; "path" is a geometric grid of 10 values, from the C
        at which the curvature of the penalty equals that of the loss, up to 100,000
        times that.
    loss : {"squared_hinge", "smoothed_hinge"}, default="squared_hinge"
        With m = 1 - y x'b for labels y of -1 and 1: max(0, m)^2; or the hinge
        max(0, m), rounded where 0 < m < ``smoothing``.
    smoothing : float, default=0.5
        Length over which the smoothed hinge is rounded.
    fit_intercept : bool, default=True
        Whether to fit an intercept: the unpenalised coefficient of a column of ones
        that is added to X. Convergence is faster with centred features.
    standardize : bool, default=False
        Whether the run is on columns of mean zero and variance one, so that the penalty
        weighs coefficients in units of standard deviations. ``coef_``, paths and
        intervals are in units of X all the same. Folds of ``cv`` standardise by their
        own rows, as a refit would; single rows that are left out, and ``risk_path_``,
        have the scales of all rows. Sparse columns are scaled and not centred; constant
        columns stay as they are.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in scikit-learn. They stay the same when rows are
        left out. With several classes a row has the same weight in all one-vs-rest
        problems; LinearSVC weights only the class that is against the rest.
    solver : {"nesterov", "gd", "sgd"}, default="nesterov"
        Accelerated gradient descent, gradient descent, or stochastic gradient
        descent in batches.
    max_iter : int, default=200
        Maximum number of updates at each value of C; with "sgd", of passes through the
        rows. Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of C stop when no coefficient changes by more than ``tol``
        times the largest coefficient in absolute value.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, where L is the largest eigenvalue of X'WX times the largest
        curvature of the loss (2, or 1 / smoothing), plus that of the penalty; with a
        margin of 2% if X has more than 128 rows and columns. It depends on X only. With
        "sgd" it is half of 1 / L, where L is the expected smoothness of batches [2]_.
    batch_size : int, default=32
        Number of rows in a batch of "sgd". Batches are drawn anew for each pass.
    power_t : float, default=0.0
        The step of pass k of "sgd" is ``step_size / k**power_t``. With a constant
        step it ends in a neighbourhood of the optimum.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces in ``risk_path_`` are computed: exactly, which takes one
        derivative of the whole run for every row; with random signs of the rows, added
        until their standard error is below that over the rows ("hutchinson", or True);
        or with a given number of random signs. "auto": with random signs if that costs
        about as much as folds, otherwise no ``risk_path_``. False: no ``risk_path_``.
    risk_row_scales : bool, default=True
        Whether ``risk_path_`` accounts for the larger leverage of rows with a larger
        norm, if norms vary more than those of Gaussian rows. False: every row gets the
        leverage of an average row.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the path: of every row (True), of a given number of rows
        drawn at random, or of none (False). "auto": every row if that costs about as
        much as folds, otherwise as many random rows as do, or none if these are too
        few.
    loo_correction : bool, default=True
        Whether to correct, at some iterates, the error made by linearising the iterates
        without a row around the recorded ones [1]_, which is done if there are more
        rows than columns. False is the published method.
    cv : int, splitter or iterable, default=None
        Cross-validation folds, as in scikit-learn. All folds are fitted side by side
        with the one run. None: no ``cv_path_``.
    keep_data : bool, default=False
        Whether to keep the training data, which :meth:`coef_table` needs.
    warm_start : bool, default=False
        Whether fitting again continues the recorded trajectory: with a larger
        ``max_iter`` as one longer run, with another C as along a sequence of values. A
        run in batches cannot be continued with updates on all rows, nor the reverse.
    n_jobs : int, default=None
        Number of blocks of held-out rows, or of folds, computed in parallel. None means
        1 unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the batches and of the rows left out.
    verbose : int or bool, default=0
        Whether to print progress messages.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    coef_ : ndarray of shape (n_outputs, n_features)
        Coefficients of the iterate in use, the last after ``fit``; one output
        for two classes, else one per class.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_outputs, n_features)
        Coefficients of every iterate; row 0 is the start.
    intercept_path_ : ndarray of shape (n_iter_ + 1, n_outputs)
        Intercepts of every iterate.
    C_path_ : ndarray of shape (n_iter_ + 1,)
        Value of C used at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, divided by C times the sum of the
        weights.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean on the training rows of the loss chosen by ``loss``.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean hinge loss of every iterate on unseen rows, from the one run and
        without leaving out a row: by the memory matrix [3]_ of this loss, the same for
        all rows.
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``risk_path_``, from the spread over rows and from the random
        signs.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of ``risk_se_path_`` that is due to the random signs; zero if traces are
        exact.
    risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows[, n_classes])
        Estimated decision function of every row, by the iterates fitted without it. It
        is indexed like an array; an iterate is computed from low-rank factors when it
        is read.
    risk_indices_ : ndarray of shape (n_rows,)
        Indices in X of the rows of ``risk_prediction_path_``.
    risk_target_ : ndarray of shape (n_rows,)
        Targets of these rows.
    n_probes_ : int
        Number of random signs used for every row; 0 if traces are exact.
    row_scale_share_ : float
        Share, between 0 and 1, of the spread of the rows' norms by which leverages are
        scaled.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate: the (weighted) mean over rows of the loss
        chosen by ``loss`` on the row of iterate t fitted without it, with the same step
        size and number of updates at every C. With "sgd" the batches are the same
        except for that row. Exact where linearising would save little time (few rows
        per column, short runs, small batches). Otherwise the iterates without a row are
        linearised around the recorded ones and corrected, and computed exactly for rows
        where that is not accurate enough.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``loo_path_``, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
        Decision function of every left-out row, by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out,)
        Targets of these rows.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate: (weighted) mean of that loss on all
        rows held out. Exact.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_``, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        Error of every iterate on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_classes])
        Decision function of the held-out rows, fold after fold.
    cv_indices_ : list of ndarray of int
        Indices of the rows that every fold holds out.
    cv_target_ : ndarray of shape (n_held_out,)
        Targets of these rows, fold after fold.
    n_iter_ : int
        Number of updates recorded.
    iteration_ : int
        Index of the iterate in use, as a row of the paths.
    step_size_ : float
        The step size used.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.svm.LinearSVC : The same model, by coordinate descent.

    References
    ----------
    .. [1] Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
           ICML, arXiv:2303.02732.
    .. [2] Gower et al. (2019), "SGD: general analysis and improved rates", ICML,
           section 3.1.
    .. [3] Tan and Bellec (2024), "Estimating generalization performance along the
           trajectory of proximal SGD in robust regression", NeurIPS,
           arXiv:2410.02629, equations 8 to 11.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skacv import TrajectoryLinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TrajectoryLinearSVC(max_iter=50, cv=5).fit(scale(X), y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.decision_function(scale(X)[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **InverselyPenalized._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "smoothed_hinge"})],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        C=1.0,
        *,
        loss="squared_hinge",
        smoothing=0.5,
        fit_intercept=True,
        standardize=False,
        class_weight=None,
        solver="nesterov",
        max_iter=200,
        tol=1e-6,
        step_size="auto",
        batch_size=32,
        power_t=0.0,
        risk="auto",
        risk_row_scales=True,
        loo="auto",
        loo_correction=True,
        cv=None,
        keep_data=False,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.C = C
        self.loss = loss
        self.smoothing = smoothing
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
        self.batch_size = batch_size
        self.power_t = power_t
        self.risk = risk
        self.risk_row_scales = risk_row_scales
        self.loo = loo
        self.loo_correction = loo_correction
        self.cv = cv
        self.keep_data = keep_data
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _class_loss(self, n_classes):
        if self.loss == "squared_hinge":
            return SquaredHinge()
        return SmoothedHinge(float(self.smoothing))
