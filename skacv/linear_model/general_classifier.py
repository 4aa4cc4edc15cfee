"""Classification with any loss, penalty and schedule, its own or a user's."""

from .._estimator.decisions import RecordedProbabilisticClassifier
from .._estimator.parameters import ALPHA_CONSTRAINT
from ..optim.losses import Logistic, Multinomial
from ._curved import CurvedClassifier
from ._parts import (
    CLASSIFICATION,
    PARTS_CONSTRAINTS,
    ChosenParts,
    loss_constraint,
    named,
)


class TrajectoryClassifier(
    ChosenParts, RecordedProbabilisticClassifier, CurvedClassifier
):
    """Linear classification with any loss, penalty and schedule, every iterate kept.

    The objective is

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha g(b),

    with a loss l, a penalty g of which alpha multiplies the strength, and a schedule of
    updates, each one of the package or of your own (see "How to add a loss, a penalty,
    a schedule, an estimate" in the documentation). What they say of themselves is
    checked before the run; leave-one-out and folds then hold for every combination.
    The intercept, the coefficient of a column of ones, is not penalised.

    Parameters
    ----------
    alpha : float, array-like or "path", default=0.01
        What multiplies the strength of the penalty. A sequence is walked in one
        warm-started trajectory, ``max_iter`` updates at each value, the momentum
        restarting; "path" is 30 values, geometric from the smallest alpha that
        keeps all penalised coefficients at zero down to 1e-5 of it; with "l2" 10
        values from where its curvature is that of the loss.
    loss : {"log", "squared_hinge", "smoothed_hinge"} or Loss, default="log"
        The log loss, multinomial for more than two classes; the squared hinge; the
        hinge rounded over a length of .5. Or a loss, such as those of
        ``skacv.optim.losses`` or one of your own: its targets are the two numbers
        in its ``labels``, for every class against the rest where there are more than
        two. One whose outputs are coupled has a target per class, of which it needs
        three at least.
    penalty : {"l1", "l2", "elasticnet", "mcp", "scad"}, Penalty or None, default="l2"
        The l1 norm, half the squared Euclidean norm, their mean, the minimax
        concave penalty (gamma=3) or the smoothly clipped absolute deviation (a=3.7).
        Or a penalty, such as those of ``skacv.optim.penalties``, weighted or
        of groups (``skacv.optim.families``), or one of your own, of which
        ``alpha`` multiplies the ``strength``. None: no penalty.
    schedule : {"nesterov", "gd", "heavy_ball", "newton"} or schedule, \
default="nesterov"
        Accelerated gradient descent, gradient descent, Polyak's heavy ball
        (momentum .9), or Newton's method, which takes smooth penalties only. Or a
        schedule, such as those of ``skacv.optim.schedules`` or one of your own: a
        frozen dataclass whose ``step_size`` is replaced by that of this estimator.
    fit_intercept : bool, default=True
        Whether to fit an intercept. It is the coefficient, not penalised, of a column
        of ones that is added to X. Centred features converge faster.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as scikit-learn takes them. They stay as they are
        where rows are left out.
    max_iter : int, default=200
        Number of updates, at each value of alpha. Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of alpha end when the largest change of a
        coefficient is at most ``tol`` times the largest coefficient.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L (1 with "newton"), L the top eigenvalue of X'WX times the
        largest curvature of the loss, plus that of the penalty; or what is stable
        without any single row, where that is less. It depends on X only: a step that
        looks at y would break the estimates. The concave penalties, "mcp" and "scad",
        take steps below gamma and a - 1: scale the columns to unit variance.
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        How the traces of ``risk_path_`` are taken: exactly, which takes a tangent of
        the run for every row; by random signs of the rows, added until their standard
        error is below that over the rows (True is the same); by so many random signs.
        "auto": by random signs, where that costs about what folds do, else none.
        False: no ``risk_path_``. With "newton"
        "auto" computes none, and the other values raise.
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
        Whether to keep the training data, which :meth:`coef_table` needs.
    warm_start : bool, default=False
        Fitting again goes on with the recorded trajectory: with a larger
        ``max_iter`` as one longer run, with another alpha or other parts
        the trajectory goes on under the new rule.
    n_jobs : int, default=None
        Blocks of held-out rows, or of folds, worked on at a time; None is 1
        unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Draws the rows that are left out.
    verbose : int or bool, default=0
        Whether to print lines while running.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    coef_ : ndarray of shape (n_outputs, n_features)
        Coefficients of the iterate in use, the last after ``fit``; one output
        for two classes, else one per class.
    intercept_ : ndarray of shape (n_outputs,)
        Intercepts of the iterate in use.
    coef_path_ : ndarray of shape (n_iter_ + 1, n_outputs, n_features)
        Coefficients of every iterate; row 0 is the start.
    intercept_path_ : ndarray of shape (n_iter_ + 1, n_outputs)
        Intercepts of every iterate.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        The alpha that was in force.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective, at the alpha in force.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss on the training rows.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean loss on unseen rows, from the one run and without leaving
        out a row: by the memory matrix [2]_ of this loss, the same W for all rows.
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the rows and of the random signs.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        That of the random signs alone; zeros where traces are exact.
    risk_prediction_path_ : array-like of shape (n_iter_ + 1, n_rows[, n_classes])
        Decision of every row by iterates that never saw it: read like an array,
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
        Leave-one-out error: the (weighted) mean over rows of the loss that
        iterate t of this very estimator, same step size and number of
        updates at every alpha, fitted without the row,
        has on it. Exact
        where linearising would save little (few rows to a column, short runs);
        else linearised and corrected, and exact for the rows
        that this is not good enough for.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
        Decision of every row left out by the iterates that never saw it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Which rows of X were left out, one by one.
    loo_target_ : ndarray of shape (n_left_out,)
        Their targets.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        The same with folds: (weighted) mean loss on all rows held out. Exact.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error, over the folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        The error on every fold.
    cv_prediction_path_ : ndarray of shape (n_iter_ + 1, n_held_out[, n_classes])
        Decision of the rows held out, fold after fold.
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

    Raises
    ------
    ValueError
        From ``fit``, where a part does not do what it says or two parts do not go
        together, as a Newton step and a penalty with a prox. The message says which.

    See Also
    --------
    TrajectoryRegressor : The same for numbers.
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.

    References
    ----------
    .. [1] Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
           ICML, arXiv:2303.02732.
    .. [2] Tan and Bellec (2024), "Estimating generalization performance along the
           trajectory of proximal SGD in robust regression", NeurIPS,
           arXiv:2410.02629, equations 8 to 11.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skacv import TrajectoryClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TrajectoryClassifier(0.02, penalty="scad", max_iter=20)
    >>> model.fit(scale(X), y).loo_path_.shape
    (21,)
    """

    _parameter_constraints = {
        **CurvedClassifier._parameter_constraints,
        **ALPHA_CONSTRAINT,
        **PARTS_CONSTRAINTS,
        "loss": loss_constraint({"log", *CLASSIFICATION}),
    }

    def __init__(
        self,
        alpha=0.01,
        *,
        loss="log",
        penalty="l2",
        schedule="nesterov",
        fit_intercept=True,
        class_weight=None,
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
        self.class_weight = class_weight
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

    def _class_loss(self, n_classes):
        if self.loss == "log":
            return Logistic() if n_classes == 2 else Multinomial()
        loss = named(self.loss, CLASSIFICATION)
        if loss.is_coupled and n_classes == 2:
            raise ValueError(
                f"{type(loss).__name__} has a score for every class and needs at least "
                "three classes, but y has two."
            )
        return loss
