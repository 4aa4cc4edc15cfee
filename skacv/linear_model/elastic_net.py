"""Elastic net by proximal gradient descent, with the whole path and its risk."""

from numbers import Real

from .._compat import Interval, StrOptions
from ..optim.penalties import ElasticNet
from ..optim.schedules import GradientDescent, Nesterov
from ._penalties import weighted
from ._squared import SquaredErrorRegressor


class TrajectoryElasticNet(SquaredErrorRegressor):
    """Elastic net by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of :class:`sklearn.linear_model.ElasticNet`,

        (1 / (2 n)) ||y - X b||^2
        + alpha (l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2),

    with (1 / sum w) sum_i w_i in the place of 1 / n where rows are weighted, and the
    penalty of b_j multiplied by v_j with ``penalty_weights`` v.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty. A sequence of values is fitted in one warm-started
        trajectory, with ``max_iter`` updates at each value and the momentum restarted
        at each; "path" is a geometric grid of 30 values, from the smallest alpha that
        keeps all coefficients at zero (``l1_ratio`` counting as 1e-3 at least) down to
        1e-3 of it.
    l1_ratio : float, default=0.5
        Share of the l1 norm, from 0 (ridge) to 1 (lasso).
    penalty_weights : array-like of shape (n_features,), default=None
        Factors, not negative, by which the penalty of every coefficient is multiplied.
        A coefficient with weight zero is not penalised; "path" then starts where all
        others are zero. None: all weights are one.
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
        Accelerated or plain proximal gradient descent.
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
        Coefficients of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_features)
        Coefficients of every iterate.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean squared prediction error of every iterate on unseen rows [1]_.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, exact.
    n_iter_ : int
        Number of updates recorded.
    n_features_in_ : int
        Number of features seen in fit.

    All other attributes are those of :class:`TrajectoryLasso`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.linear_model.ElasticNet : The same model, by coordinate descent.

    References
    ----------
    .. [1] Bellec and Tan (2024), "Uncertainty quantification for iterative
           algorithms in linear models with application to early stopping",
           arXiv:2404.17856.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import TrajectoryElasticNet
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryElasticNet(alpha=[1.0, 0.1, 0.01], max_iter=50).fit(X, y)
    >>> bool(model.risk_path_[-1] < model.risk_path_[0])
    True
    """

    _parameter_constraints = {
        **SquaredErrorRegressor._parameter_constraints,
        "penalty_weights": ["array-like", None],
        "solver": [StrOptions({"ista", "fista"})],
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
    }
    _solvers = {"ista": GradientDescent, "fista": Nesterov}

    def __init__(
        self,
        alpha=1.0,
        *,
        l1_ratio=0.5,
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
        self.l1_ratio = l1_ratio
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
        penalty = ElasticNet(strength, float(self.l1_ratio))
        return weighted(penalty, self.penalty_weights, n_features)
