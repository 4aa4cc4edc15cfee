"""Poisson regression by gradient descent, with leave-one-out along the path."""

import numpy as np

from .._compat import StrOptions
from .._estimator.inference import CoefficientTests
from ..optim.losses import Poisson
from ._curved import CurvedRegressor


class TrajectoryPoissonRegressor(CoefficientTests, CurvedRegressor):
    """Poisson regression that keeps every iterate and leaves rows out of it.

    The objective is that of :class:`sklearn.linear_model.PoissonRegressor`,

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha ||b||^2 / 2,

    with l half the Poisson deviance under a log link.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty. A sequence is walked in one warm-started
        trajectory, ``max_iter`` updates at each value, the momentum
        restarting; "path" is 10 values, geometric, from where the penalty's
        curvature is that of the loss down to 1e-5 of it.
    fit_intercept : bool, default=True
        Whether to fit an intercept: the coefficient, not penalised, of a column
        of ones that is added to X. Centred features converge faster.
    solver : {"nesterov", "gd", "newton", "sgd"}, default="nesterov"
        Accelerated gradient descent, gradient descent, Newton's method (for few
        columns and small counts: from a start at zero it takes about as many
        updates as the mean count), or stochastic gradient descent in batches.
    max_iter : int, default=200
        Number of updates, at each value of alpha; passes through the rows with
        "sgd". Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of alpha end when the largest change of a
        coefficient is at most ``tol`` times the largest coefficient.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, L the top eigenvalue of X'WX times the largest count (the
        curvature is the mean, which has no bound of its own), plus the curvature
        of the penalty; with a margin of 2% where X has more than 128 rows and columns.
        With "sgd" it is half of 1 / L with the expected smoothness of batches
        in the place of L [2]_; with "newton" it is 1.
    batch_size : int, default=32
        Rows of a batch of "sgd". Batches are drawn anew for each pass.
    power_t : float, default=0.0
        The step of pass k of "sgd" is ``step_size / k**power_t``. With a constant
        step it ends in a neighbourhood of the optimum.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces of ``risk_path_`` are taken: exactly, which takes a tangent of
        the run for every row; by random signs of the rows, added until their standard
        error is below that over the rows (True is the same); by so many random signs.
        "auto": by random signs, where that costs about what folds do, else none.
        False: no ``risk_path_``. With "newton" "auto" computes none, and the other
        values raise.
    risk_row_scales : bool, default=True
        Whether ``risk_path_`` gives rows whose norms are more uneven than those of
        Gaussian rows leverages in proportion. False: all have that of the average.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the path: every row (True), so many rows drawn at
        random, or none (False). "auto": every row where that costs about what
        folds do, else at random as many as do, and none where these are few.
    loo_correction : bool, default=True
        Whether iterates without a row, which are linearised around the recorded
        ones [1]_ where there are more rows than columns, are corrected at
        some iterates. False is the published method.
    cv : int, splitter or iterable, default=None
        Folds, as scikit-learn takes them; all are replicas of the one run.
        None: no ``cv_path_``.
    keep_data : bool, default=False
        Whether to keep the training data, which :meth:`predict_interval` needs
        for the jackknife+.
    warm_start : bool, default=False
        Fitting again goes on with the recorded trajectory: with a larger
        ``max_iter`` as one longer run, with another alpha as a change of
        schedule. A run in batches does not go on with all rows, nor the other
        way.
    n_jobs : int, default=None
        Blocks of held-out rows, or of folds, worked on at a time; None is 1
        unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Draws the batches and the rows left out.
    verbose : int or bool, default=0
        Whether to print lines while running.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the iterate in use, the last after ``fit``.
    intercept_ : float
        Intercept of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Coefficients of every iterate; row 0 is the start.
    intercept_path_ : ndarray of shape (n_iter_ + 1,)
        Intercepts of every iterate.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        The value of alpha in force at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean half deviance on the training rows.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean deviance on unseen rows, from the one run and without leaving
        out a row: by the memory matrix [3]_ of this loss, the same W for all rows.
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the rows and of the random signs.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        That of the random signs alone; zeros where traces are exact.
    risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows)
        Prediction of every row by iterates that never saw it: read like an array,
        computed from low-rank factors an iterate at a time.
    risk_indices_ : ndarray of shape (n_rows,)
        Which rows of X these are.
    risk_target_ : ndarray of shape (n_rows,)
        Their targets.
    n_probes_ : int
        Number of random signs of a row; 0 where traces are exact.
    row_scale_share_ : float
        Share of the spread of the rows' norms that scales their leverages.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error: the (weighted) mean over rows of the half deviance that
        iterate t of this very estimator, same step size and number of
        updates at every alpha, fitted without the row,
        has on it. With "sgd" the batches are the same but for the row. Exact
        where linearising would save little (few rows to a column, short runs,
        small batches); else linearised and corrected, and exact for the rows
        that this is not good enough for.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out)
        Prediction of every row left out by the iterates that never saw it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Which rows of X were left out, one by one.
    loo_target_ : ndarray of shape (n_left_out,)
        Their targets.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        The same with folds: (weighted) mean half deviance on all rows held out.
        Exact.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        The error on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
        Prediction of the rows held out, fold after fold.
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
    sklearn.linear_model.PoissonRegressor : The same model, by L-BFGS.

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
    >>> import numpy as np
    >>> from skacv import TrajectoryPoissonRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 5))
    >>> y = rng.poisson(np.exp(X[:, 0]))
    >>> model = TrajectoryPoissonRegressor(alpha=0.01, max_iter=100).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **CurvedRegressor._parameter_constraints,
        "solver": [StrOptions({"gd", "nesterov", "newton", "sgd"})],
    }
    _positive_only = True

    def __init__(
        self,
        alpha=1.0,
        *,
        fit_intercept=True,
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
        self.alpha = alpha
        self.fit_intercept = fit_intercept
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

    def _loss_of(self, target, weights):
        return Poisson(), {}

    def trial_estimator(self, y):
        """What :meth:`held_out_estimator` may give: positive, as means of counts are.

        Parameters
        ----------
        y : array-like of shape (n_samples,)

        Returns
        -------
        estimator of the same class
        """
        return super().trial_estimator(np.asarray(y) + 1.0)
