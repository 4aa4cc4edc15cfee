"""Huber regression by gradient descent, with leave-one-out along the path."""

from numbers import Real

import numpy as np

from .._compat import Interval, StrOptions
from .._estimator.inference import CoefficientInference
from ..optim.losses import Huber
from ._curved import CurvedRegressor

# The standard deviation of a normal distribution over its median deviation.
NORMAL_MAD = 1.4826


class TrajectoryHuberRegressor(CoefficientInference, CurvedRegressor):
    r"""Huber regression that keeps every iterate and estimates its error.

    The objective is that of :class:`sklearn.linear_model.HuberRegressor` at a
    fixed scale,

        sum_i w_i scale H((y_i - x_i'b) / scale) + alpha ||b||^2,

    H(z) = z^2 for \|z\| < epsilon, else 2 epsilon \|z\| - epsilon^2.

    Parameters
    ----------
    alpha : float, array-like or "path", default=0.0001
        Strength of the penalty. A sequence of values is fitted in one warm-started
        trajectory, with ``max_iter`` updates at each value and the momentum restarted
        at each; "path" is a geometric grid of 10 values, from the alpha at which the
        curvature of the penalty equals that of the loss, down to 1e-5 of that.
    epsilon : float, default=1.35
        Residuals beyond ``epsilon * scale`` have a linear loss. At least 1.
    scale : float or "auto", default="auto"
        Scale of the residuals, in units of y. "auto": 1.4826 times the (weighted)
        median distance of y from its median (the standard deviation where that is
        zero). It is too large where X explains much of y; ``HuberRegressor().fit(X,
        y).scale_`` is another choice. It stays the same when rows are left out.
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
    solver : {"nesterov", "gd", "sgd"}, default="nesterov"
        Accelerated gradient descent, gradient descent, or stochastic gradient
        descent in batches.
    max_iter : int, default=200
        Maximum number of updates at each value of alpha; with "sgd", of passes through
        the rows. Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of alpha stop when no coefficient changes by more than
        ``tol`` times the largest coefficient in absolute value.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, where L is the largest eigenvalue of X'WX plus the curvature of
        the penalty. It depends on X only. With "sgd" it is half of 1 / L, where L is
        the expected smoothness of batches [2]_.
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
        Whether to keep the training data, which :meth:`predict_interval` needs
        for the jackknife+.
    warm_start : bool, default=False
        Whether fitting again continues the recorded trajectory: with a larger
        ``max_iter`` as one longer run, with another alpha as along a sequence of
        alphas. A run in batches cannot be continued with updates on all rows, nor the
        reverse.
    n_jobs : int, default=None
        Number of blocks of held-out rows, or of folds, computed in parallel. None means
        1 unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the batches and of the rows left out.
    verbose : int or bool, default=0
        Whether to print progress messages.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Coefficients of the iterate in use, the last after ``fit``.
    intercept_ : float
        Intercept of the iterate in use.
    scale_ : float
        The scale used.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Coefficients of every iterate; row 0 is the start.
    intercept_path_ : ndarray of shape (n_iter_ + 1,)
        Intercepts of every iterate.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective times scale_, over twice the sum of weights.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean Huber loss on the training rows.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean Huber loss of every iterate on unseen rows, from the one run and
        without leaving out a row: by the memory matrix [3]_ of this loss, the same for
        all rows.
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``risk_path_``, from the spread over rows and from the random
        signs.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of ``risk_se_path_`` that is due to the random signs; zero if traces are
        exact.
    risk_residual_path_ : LowRankPath
        Targets minus the predictions below, as low-rank factors ``temporal`` (n_iter_ +
        1, n_modes) and ``spatial`` (n_modes, n_rows).
    risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows)
        Estimated prediction of every row by the iterates fitted without it. It is
        indexed like an array; an iterate is computed from low-rank factors when it is
        read.
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
        Leave-one-out error of every iterate: the (weighted) mean over rows of the Huber
        loss on the row of iterate t fitted without it, with the same step size and
        number of updates at every alpha. With "sgd" the batches are the same except for
        that row. Exact where linearising would save little time (few rows per column,
        short runs, small batches). Otherwise the iterates without a row are linearised
        around the recorded ones and corrected, and computed exactly for rows where that
        is not accurate enough.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``loo_path_``, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out)
        Prediction of every left-out row by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out,)
        Targets of these rows.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate: (weighted) mean Huber loss on all rows
        held out. Exact.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_``, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        Error of every iterate on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out)
        Predictions of the held-out rows, fold after fold.
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
    sklearn.linear_model.HuberRegressor : The same model, the scale fitted too.

    Notes
    -----
    The Huber loss of the paths is r^2 / 2 up to epsilon scale_ and linear beyond,
    in units of y squared.

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
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryHuberRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryHuberRegressor(max_iter=100, cv=5).fit(X, y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.predict(X[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **CurvedRegressor._parameter_constraints,
        "epsilon": [Interval(Real, 1, None, closed="left")],
        "scale": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    }
    _is_sum = True

    def __init__(
        self,
        alpha=0.0001,
        *,
        epsilon=1.35,
        scale="auto",
        fit_intercept=True,
        standardize=False,
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
        self.epsilon = epsilon
        self.scale = scale
        self.fit_intercept = fit_intercept
        self.standardize = standardize
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

    @property
    def _loss_reads_targets(self):
        return self.scale == "auto"

    def _loss_of(self, target, weights):
        scale = self.scale
        if scale == "auto":
            # Where more than half of y is one value, its spread; and of none, one.
            target = target[:, 0]
            distance = np.abs(target - weighted_median(target, weights))
            scale = NORMAL_MAD * weighted_median(distance, weights)
            scale = scale or np.sqrt(np.cov(target, aweights=weights, ddof=0)) or 1.0
        return Huber(float(self.epsilon * scale)), {"scale_": float(scale)}

    def _unit(self, data):
        return super()._unit(data) / data.names["scale_"]


def weighted_median(values, weights):
    """The median, as if every value were there as often as its weight says.

    Parameters
    ----------
    values, weights : ndarray of shape (n_rows,)
        Weights are positive.

    Returns
    -------
    float
    """
    order = np.argsort(values)
    below = np.cumsum(weights[order])
    half = below[-1] / 2
    # Where half of the weight ends with a value, up to rounding, it and the next.
    ends = half * (1 + np.array([-1, 1]) * len(values) * np.finfo(float).eps)
    return float(values[order[np.searchsorted(below, ends)]].mean())
