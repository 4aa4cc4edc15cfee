"""Regression with any loss, penalty and schedule, its own or a user's."""

from ..optim.losses import Poisson
from ._parts import (
    PARTS_CONSTRAINTS,
    REGRESSION,
    ChosenParts,
    loss_constraint,
    named,
)
from ._squared import SquaredErrorRegressor


class TrajectoryRegressor(ChosenParts, SquaredErrorRegressor):
    """Linear regression with any loss, penalty and schedule, every iterate kept.

    The objective is

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha g(b),

    with a loss l, a penalty g of which alpha multiplies the strength, and a schedule of
    updates, each one of the package or of your own (see "How to add a loss, a penalty,
    a schedule, an estimate" in the documentation). What they say of themselves is
    checked before the run; leave-one-out and folds then hold for every combination, and
    the memory matrix [1]_ where updates have derivatives.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Factor of the strength of the penalty. A sequence of values is fitted in one
        warm-started trajectory, with ``max_iter`` updates at each value and the
        momentum restarted at each; "path" is a geometric grid of 30 values, from the
        smallest alpha that keeps all penalised coefficients at zero down to 1e-3 of it.
        With "l2" it has 10 values, from the alpha at which the curvature of the penalty
        equals that of the loss.
    loss : {"squared_error", "huber", "poisson"} or Loss, default="squared_error"
        Half the squared error; the Huber loss, linear from residuals of 1.35 (in units
        of y) on; half the Poisson deviance with a log link. Or a loss, such as
        those of ``skacv.optim.losses`` or one of your own.
    penalty : {"l1", "l2", "elasticnet", "mcp", "scad"}, Penalty or None, default="l1"
        The l1 norm, half the squared Euclidean norm, their mean, the minimax concave
        penalty (gamma=3) or the smoothly clipped absolute deviation (a=3.7). Or a
        penalty, such as those of ``skacv.optim.penalties``, weighted or of groups
        (``skacv.optim.families``), or one of your own; ``alpha`` multiplies its
        ``strength``. None: no penalty.
    schedule : {"nesterov", "gd", "heavy_ball", "newton"} or schedule, \
default="nesterov"
        Accelerated gradient descent, gradient descent, Polyak's heavy ball
        (momentum .9), or Newton's method, which takes smooth penalties only. Or a
        schedule, such as those of ``skacv.optim.schedules`` or one of your own: a
        frozen dataclass whose ``step_size`` is replaced by that of this estimator.
    fit_intercept : bool, default=True
        Whether to fit an intercept. With the squared error X and y are centred by their
        (weighted) means; otherwise it is the unpenalised coefficient of a column of
        ones that is added to X.
    standardize : bool, default=False
        Whether the run is on columns of mean zero and variance one, so that the penalty
        weighs coefficients in units of standard deviations. ``coef_``, paths and
        intervals are in units of X all the same. Folds of ``cv`` standardise by their
        own rows, as a refit would; single rows that are left out, and ``risk_path_``,
        have the scales of all rows. Sparse columns are scaled and not centred; constant
        columns stay as they are.
    max_iter : int, default=200
        Maximum number of updates at each value of alpha. Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of alpha stop when no coefficient changes by more than
        ``tol`` times the largest coefficient in absolute value.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L (1 with "newton"), where L is the largest eigenvalue of X'WX
        times the largest curvature of the loss, plus that of the penalty; or the
        largest step at which the run without any single row is stable, if that is less.
        It depends on X only: the estimates do not hold for a step size that depends on
        y. The concave penalties, "mcp" and "scad", take steps below gamma and a - 1:
        scale the columns to unit variance.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces in ``risk_path_`` are computed: exactly; with random probes,
        added until their standard error is below that of the estimate ("hutchinson");
        or with a given number of random probes. "auto" and True: exactly if X has at
        most 100 rows or columns (and few enough active columns for memory), otherwise
        with probes. For losses other than the squared error: with probes, and "auto"
        only if that costs about as much as folds. False: no ``risk_path_``. It needs
        gradient steps and a loss with a second derivative: for other runs "auto"
        computes none, and the other values raise an error.
    risk_row_scales : bool, default=True
        Whether ``risk_path_`` accounts for the larger leverage of rows with a larger
        norm. False: every row gets the leverage of an average row, as in the published
        estimate [1]_, which is too low for heavy-tailed rows.
    loo : {"auto"}, bool or int, default="auto"
        Leave-one-out along the path: of every row (True), of a given number of rows
        drawn at random, or of none (False). "auto": every row if that costs about as
        much as folds, otherwise as many random rows as do, or none if these are too
        few.
    loo_correction : bool, default=True
        Whether to correct, at some iterates, the error made by linearising the iterates
        without a row around the recorded ones [2]_, which is done if the loss is not
        the squared error and there are more rows than columns. False is the published
        method.
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
        Coefficients of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Coefficients of every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, for the alpha used there.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss on the training rows; with the squared error that, not its half.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate; zeros where there is no penalty.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean loss on unseen rows, in the loss of ``train_path_`` [1]_: by
        the memory matrix of that loss [3]_.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, in the loss of ``train_path_``. Exact with
        the squared error, and with other losses where linearising would save little
        time (see ``loo_correction``).
    n_iter_ : int
        Number of updates recorded.
    n_features_in_ : int
        Number of features seen in fit.

    All other attributes are those of :class:`TrajectoryLasso`.

    Raises
    ------
    ValueError
        From ``fit``, if a loss, penalty or schedule does not do what it declares, or
        two of them cannot be combined, such as a Newton step and a penalty with a prox.
        The message says which.

    See Also
    --------
    TrajectoryClassifier : The same for classes.
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.

    References
    ----------
    .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
           algorithms in linear models with application to early stopping",
           arXiv:2404.17856.
    .. [2] Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
           ICML, arXiv:2303.02732.
    .. [3] Tan and Bellec (2024), "Estimating generalization performance along the
           trajectory of proximal SGD in robust regression", NeurIPS,
           arXiv:2410.02629, equations 8 to 11.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skacv import TrajectoryRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryRegressor(alpha=2.0, penalty="mcp").fit(scale(X), y)
    >>> model.risk_path_.shape == model.loo_path_.shape == (model.n_iter_ + 1,)
    True
    >>> from skacv.optim.losses import Huber
    >>> robust = TrajectoryRegressor("path", loss=Huber(50.0), max_iter=5, cv=5)
    >>> robust.fit(scale(X), y).cv_path_.shape
    (151,)
    """

    _parameter_constraints = {
        **SquaredErrorRegressor._parameter_constraints,
        **PARTS_CONSTRAINTS,
        "loss": loss_constraint(REGRESSION),
        "loo_correction": ["boolean"],
    }

    def __init__(
        self,
        alpha=1.0,
        *,
        loss="squared_error",
        penalty="l1",
        schedule="nesterov",
        fit_intercept=True,
        standardize=False,
        max_iter=200,
        tol=1e-6,
        step_size="auto",
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
        self.loss = loss
        self.penalty = penalty
        self.schedule = schedule
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.step_size = step_size
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

    def _chosen_loss(self):
        return named(self.loss, REGRESSION)

    def _loss_of(self, target, weights):
        return self._chosen_loss(), {}

    @property
    def _is_quadratic(self):
        return self._chosen_loss().is_quadratic

    @property
    def _positive_only(self):
        return self._chosen_loss() == Poisson()
