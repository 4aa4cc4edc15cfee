"""Lasso by proximal gradient descent, with the whole path and its risk."""

from .._compat import StrOptions
from ..optim.penalties import L1
from ..optim.schedules import GradientDescent, Nesterov
from ._penalties import weighted
from ._squared import SquaredErrorRegressor


class TrajectoryLasso(SquaredErrorRegressor):
    """Lasso by ISTA or FISTA that keeps every iterate and estimates its risk.

    The objective is that of :class:`sklearn.linear_model.Lasso`,

        (1 / (2 n)) ||y - X b||^2 + alpha ||b||_1,

    with (1 / sum w) sum_i w_i in the place of 1 / n if rows are weighted, and
    ``sum_j v_j |b_j|`` in the place of ||b||_1 with ``penalty_weights`` v. One run
    gives all iterates; ``risk_path_``, ``loo_path_`` and ``cv_path_`` estimate the
    error of each of them on unseen rows, without a refit.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty. A sequence of values is fitted in one warm-started
        trajectory, with ``max_iter`` updates at each value and the momentum restarted
        at each; "path" is a geometric grid of 30 values, from the smallest alpha that
        keeps all coefficients at zero down to 1e-3 of it.
    penalty_weights : array-like of shape (n_features,), default=None
        Factors, not negative, by which the penalty of every coefficient is multiplied.
        A coefficient with weight zero is not penalised; "path" then starts where all
        others are zero. None: all weights are one. Weights of one over the absolute
        values of a first estimate give the adaptive lasso [3]_.
    fit_intercept : bool, default=True
        Whether to fit an intercept, by centring X and y by their (weighted) means. X is
        not copied.
    standardize : bool, default=False
        Whether the run is on columns of mean zero and variance one, so that the penalty
        weighs coefficients in units of standard deviations. ``coef_``, paths and
        intervals are in units of X all the same. Folds of ``cv`` standardise by their
        own rows, as a refit would; single rows that are left out, and ``risk_path_``,
        have the scales of all rows. Sparse columns are scaled and not centred; constant
        columns stay as they are.
    solver : {"fista", "ista"}, default="fista"
        Accelerated or plain proximal gradient descent [2]_.
    max_iter : int, default=200
        Maximum number of updates at each value of alpha. Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of alpha stop when no coefficient changes by more than
        ``tol`` times the largest coefficient in absolute value.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, where L is the largest eigenvalue of X'X / n (X centred), with
        a margin of 2% if X has more than 128 rows and columns. It is smaller if the run
        without one of the rows needs a smaller step to be stable. It depends on X only:
        the estimates do not hold for a step size that depends on y.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces in ``risk_path_`` are computed: exactly; with random probes,
        added until their standard error is below that of the estimate ("hutchinson");
        or with a given number of random probes. "auto" and True: exactly if X has at
        most 100 rows or columns (and few enough active columns for memory), otherwise
        with probes. False: no ``risk_path_``.
    risk_row_scales : bool, default=True
        Whether ``risk_path_`` accounts for the larger leverage of rows with a larger
        norm. False: every row gets the leverage of an average row, as in the published
        estimate [1]_, which is too low for heavy-tailed rows.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the path: of every row (True), of a given number of rows
        drawn at random, or of none (False). "auto": every row if that costs about as
        much as folds, otherwise as many random rows as do, or none if these are too
        few.
    cv : int, splitter or iterable, default=None
        Cross-validation folds, as in scikit-learn. All folds are fitted side by side
        with the one run. None: no ``cv_path_``.
    keep_data : bool, default=False
        Whether to keep the training data, which :meth:`predict_interval` needs
        for the jackknife+.
    warm_start : bool, default=False
        Whether fitting again continues the recorded trajectory. With a larger
        ``max_iter`` (and a single alpha, or further ones), all paths equal those of one
        longer run; with another alpha, solver or step size, the trajectory continues
        with the new setting. With other data (which do not reproduce the recorded
        training errors) or another ``fit_intercept``, a new trajectory starts from
        ``coef_``, with a warning.
    n_jobs : int, default=None
        Number of blocks of held-out rows, or of folds, computed in parallel. None means
        1 unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the probes and of the rows left out.
    verbose : int or bool, default=0
        Whether to print progress messages.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the iterate in use: the last one, or that of
        :meth:`at_iteration`.
    intercept_ : float
        Intercept of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Coefficients of every iterate: row 0 is the start, row t follows t updates.
    intercept_path_ : ndarray of shape (n_iter_ + 1,)
        Intercept of every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, for the alpha used there.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean squared error of every iterate on the training rows.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean squared prediction error of every iterate on unseen rows, in
        squared units of y, noise included [1]_.
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``risk_path_``, from the spread over rows and from the probes.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of ``risk_se_path_`` that is due to the random probes; zero if traces are
        exact.
    risk_residual_path_ : LowRankPath
        Estimated held-out residuals, targets minus predictions, of every row at every
        iterate, as low-rank factors ``temporal`` (n_iter_ + 1, n_modes) and ``spatial``
        (n_modes, n_rows); rows with weight zero are not included. ``risk_path_`` is the
        (weighted) mean of their squares, plus the small contribution of modes dropped
        from the factors.
    risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows)
        Estimated prediction of every row by the iterates fitted without it: target
        minus residual. It is indexed like an array; an iterate is computed when it is
        read.
    risk_indices_ : ndarray of shape (n_rows,)
        Indices in X of the rows of ``risk_prediction_path_``.
    risk_target_ : ndarray of shape (n_rows,)
        Targets of these rows.
    risk_gram_ : ndarray of shape (n_iter_ + 1, n_iter_ + 1)
        (Weighted) means over rows of products of the estimated held-out residuals of
        two iterates. An affine combination of iterates with weights w has the estimated
        risk w' risk_gram_ w. The diagonal is ``risk_path_`` without the contribution of
        the dropped modes.
    n_probes_ : int
        Number of random probes used; 0 if traces are exact.
    row_scale_share_ : float
        Share, between 0 and 1, of the spread of the rows' squared norms that is in
        excess of Gaussian rows with the same covariance. At 0 (Gaussian rows, or
        ``risk_row_scales=False``) ``risk_path_`` is the published estimate.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, exact: the (weighted) mean over rows of
        the squared error on the row of iterate t fitted without it, with the same step
        size and number of updates at every alpha.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``loo_path_``, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out)
        Prediction of every left-out row by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out,)
        Targets of these rows.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate: (weighted) mean squared error on all
        rows held out.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_``, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        Error of every iterate on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
        Held-out predictions, fold after fold. If there are many more rows than columns,
        and ``loo``, ``risk`` and ``keep_data`` are False, the run uses only second
        moments of the data: an iterate is then computed when it is read by its index,
        from X, of which no copy is made.
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
    sklearn.linear_model.Lasso : The same model, by coordinate descent.

    References
    ----------
    .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
           algorithms in linear models with application to early stopping",
           arXiv:2404.17856.
    .. [2] Beck and Teboulle (2009), "A fast iterative shrinkage-thresholding
           algorithm for linear inverse problems".
    .. [3] Zou (2006), "The adaptive lasso and its oracle properties".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryLasso(alpha=0.1, max_iter=100).fit(X, y)
    >>> model.coef_path_.shape
    (101, 10)
    >>> best = model.at_iteration(model.risk_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **SquaredErrorRegressor._parameter_constraints,
        "penalty_weights": ["array-like", None],
        "solver": [StrOptions({"ista", "fista"})],
    }
    _solvers = {"ista": GradientDescent, "fista": Nesterov}

    def __init__(
        self,
        alpha=1.0,
        *,
        penalty_weights=None,
        fit_intercept=True,
        standardize=False,
        solver="fista",
        max_iter=200,
        tol=1e-6,
        step_size="auto",
        risk="auto",
        risk_row_scales=True,
        loo="auto",
        cv=None,
        keep_data=False,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.alpha = alpha
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
        self.risk = risk
        self.risk_row_scales = risk_row_scales
        self.loo = loo
        self.cv = cv
        self.keep_data = keep_data
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _penalty(self, strength, n_features):
        return weighted(L1(strength), self.penalty_weights, n_features)
