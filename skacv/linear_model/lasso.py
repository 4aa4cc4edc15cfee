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

    with (1 / sum w) sum_i w_i in the place of 1 / n where rows are weighted, and
    ``sum_j v_j |b_j|`` in the place of ||b||_1 with ``penalty_weights`` v.
    One run gives all iterates; ``risk_path_``, ``loo_path_`` and ``cv_path_``
    say what each of them would cost on unseen rows, without a refit.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty. A sequence is walked in one warm-started
        trajectory, ``max_iter`` updates at each value, the momentum
        restarting; "path" is 30 values, geometric from the smallest alpha
        that keeps all coefficients at zero down to 1e-3 of it.
    penalty_weights : array-like of shape (n_features,), default=None
        What multiplies the penalty of every coefficient, not negative. A coefficient
        of weight zero is not penalised; "path" begins where all others are zero
        then. None: all are one. One over the size of a first
        estimate makes it the adaptive lasso [3]_.
    fit_intercept : bool, default=True
        Whether to centre X and y by their (weighted) means. X is not copied.
    solver : {"fista", "ista"}, default="fista"
        Accelerated or plain proximal gradient descent [2]_.
    max_iter : int, default=200
        Number of updates, at each value of alpha. Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of alpha end when the largest change of a
        coefficient is at most ``tol`` times the largest coefficient.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, L the top eigenvalue of X'X / n (X centred), with a
        margin of 2% where X has more than 128 rows and columns; or what is stable
        without any single row, where that is less. It depends on X only: a step
        that looks at y would break the estimates.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces of ``risk_path_`` are taken: exactly; by random probes,
        added until their standard error is below that of the estimate; by so
        many random probes. "auto" and True: exactly where the smaller side of
        X is at most 100 (and the active columns few enough for memory), else
        by probes. False: no ``risk_path_``.
    risk_row_scales : bool, default=True
        Whether ``risk_path_`` gives rows of uneven norm leverages of their
        own. False: all rows have that of the average row, the published
        estimate [1]_, which reads low on heavy-tailed rows.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the path: every row (True), so many rows drawn at
        random, or none (False). "auto": every row where that costs about what
        folds do, else at random as many as do, and none where these are few.
    cv : int, splitter or iterable, default=None
        Folds, as scikit-learn takes them; all are replicas of the one run.
        None: no ``cv_path_``.
    keep_data : bool, default=False
        Whether to keep the training data, which :meth:`predict_interval` needs
        for the jackknife+.
    warm_start : bool, default=False
        Fitting again continues the recorded trajectory: with a larger
        ``max_iter`` (and a single alpha, or further ones), all paths equal those
        of one longer run; with another alpha, solver or step size, the trajectory
        goes on under the new rule. With other data (those that do not reproduce
        the recorded training errors) or another ``fit_intercept``, a new
        trajectory starts from ``coef_``, with a warning.
    n_jobs : int, default=None
        Blocks of held-out rows, or of folds, worked on at a time; None is 1
        unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Draws the probes, and the rows that are left out.
    verbose : int or bool, default=0
        Whether to print lines while running.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the iterate in use: the last one, or that of
        :meth:`at_iteration`.
    intercept_ : float
        Its intercept.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Every iterate. Row 0 is the start, row t is after t updates.
    intercept_path_ : ndarray of shape (n_iter_ + 1,)
        Every intercept.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective, at the alpha in force.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean squared training error.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        The alpha that was in force.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean squared prediction error on unseen rows, in squared
        units of y, noise included [1]_.
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error: spread over rows, and the probes'.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        The part due to random probes; zero where traces are exact.
    risk_residual_path_ : LowRankPath
        Estimated held-out residuals, targets less predictions, of every row at
        every iterate, as factors ``temporal`` (n_iter_ + 1, n_modes) and
        ``spatial`` (n_modes, n_rows); rows of zero weight are left out.
        ``risk_path_`` is the (weighted) mean of their squares, and the little that
        modes dropped from the factors add to it.
    risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows)
        Prediction of every row by iterates that never saw it, targets less these
        residuals: read like an array, computed an iterate at a time.
    risk_indices_ : ndarray of shape (n_rows,)
        Which rows of X these are.
    risk_target_ : ndarray of shape (n_rows,)
        Their targets.
    risk_gram_ : ndarray of shape (n_iter_ + 1, n_iter_ + 1)
        The risk of any affine combination of iterates, w' risk_gram_ w: the
        (weighted) mean over rows of these residuals' products. Its diagonal is
        below ``risk_path_`` by what the dropped modes add to that.
    n_probes_ : int
        Random probes taken; 0 where traces are exact.
    row_scale_share_ : float
        Share of the spread of the rows' squared norms that Gaussian rows of
        the same covariance do not have, between 0 and 1. At 0 (Gaussian rows,
        or ``risk_row_scales=False``) ``risk_path_`` is the published estimate.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error: the (weighted) mean over rows of the squared error
        that iterate t of this very estimator, same step size and number of
        updates at every alpha, fitted without the row, makes on it. Exact.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out)
        Prediction of every row left out by the iterates that never saw it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Which rows of X were left out, one by one.
    loo_target_ : ndarray of shape (n_left_out,)
        Their targets.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        The same with folds: (weighted) mean squared error on all rows held out.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        The error on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
        Held-out predictions, fold after fold. With many more rows than columns,
        ``loo=False``, ``risk=False`` and ``keep_data=False`` the run is on moments of
        the data, and this computes an iterate when it is indexed like the array. It
        keeps X, not a copy of it.
    cv_indices_ : list of ndarray of int
        The rows that every fold holds out.
    n_iter_ : int
        Number of updates recorded.
    iteration_ : int
        Row of the paths that is in use.
    step_size_ : float
        The step size taken.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

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
