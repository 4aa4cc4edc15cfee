"""Logistic regression by gradient descent, with leave-one-out along the path."""

from numbers import Real

from .._compat import Interval, StrOptions
from .._estimator.decisions import RecordedProbabilisticClassifier
from .._estimator.logistic_inference import LogisticInference
from ..optim.losses import Logistic, Multinomial
from ..optim.penalties import ElasticNet, SquaredL2
from ..optim.schedules import GradientDescent, Nesterov, Newton
from ._curved import InverselyPenalized


class TrajectoryLogisticRegression(
    LogisticInference, RecordedProbabilisticClassifier, InverselyPenalized
):
    """Logistic regression that keeps every iterate and leaves rows out of it.

    The objective is that of :class:`sklearn.linear_model.LogisticRegression`,

        C sum_i w_i l(y_i, x_i'b) + l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2,

    with l the log loss, multinomial for more than two classes. One run gives
    all iterates; ``loo_path_`` and ``cv_path_`` say what each of them would
    cost on unseen rows, without a refit.

    Parameters
    ----------
    C : float, array-like or "path", default=1.0
        Inverse strength of the penalty, positive. A sequence is walked in one
        warm-started trajectory, ``max_iter`` updates at each value, the momentum
        restarting; "path" is 30 values, geometric, from where the penalty keeps all
        coefficients at zero up to 100,000 times as much; without an l1 penalty 10
        values from where its curvature is that of the loss.
    l1_ratio : float, default=0.0
        Share of the l1 penalty, from 0 (ridge) to 1 (lasso).
    fit_intercept : bool, default=True
        Whether to fit an intercept: the coefficient, not penalised, of a column
        of ones that is added to X. Centred features converge faster.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as scikit-learn takes them. They stay as they are
        where rows are left out.
    solver : {"fista", "ista", "nesterov", "gd", "newton", "sgd"}, default="fista"
        Accelerated ("fista", another name is "nesterov") or plain proximal
        gradient descent ("ista", "gd"), or its stochastic form in batches; or
        Newton's method, for a ridge penalty and few columns: ten updates or so.
    max_iter : int, default=200
        Number of updates, at each value of C; passes through the rows with
        "sgd". Reaching it is normal.
    tol : float, default=1e-6
        Updates at a value of C end when the largest change of a
        coefficient is at most ``tol`` times the largest coefficient.
    step_size : float or "auto", default="auto"
        "auto" is 1 / L, L the top eigenvalue of X'WX times the largest
        curvature of the loss (1/4, or 1/2 for more than two classes), plus that of
        the penalty; with a margin of 2% where X has more than 128 rows and columns.
        It depends on X only.
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
        Whether to keep the training data, which :meth:`coef_interval` and
        :meth:`coef_table` need.
    warm_start : bool, default=False
        Fitting again goes on with the recorded trajectory: with a larger
        ``max_iter`` as one longer run, with another C as a change of
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
    C_path_ : ndarray of shape (n_iter_ + 1,)
        The value of C in force at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        The objective, divided by C times the sum of weights.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean log loss on the training rows.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean log loss on unseen rows, from the one run and without leaving
        out a row: by the memory matrix [3]_ of this loss, the same W for all rows.
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
        Leave-one-out error: the (weighted) mean over rows of the log loss that
        iterate t of this very estimator, same step size and number of
        updates at every C, fitted without the row,
        has on it. With "sgd" the batches are the same but for the row. Exact
        where linearising would save little (few rows to a column, short runs,
        small batches); else linearised and corrected, and exact for the rows
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
        The same with folds: (weighted) mean log loss on all rows held out. Exact.
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

    See Also
    --------
    TrajectoryEarlyStoppingCV : Moves to the iterate of least estimated risk.
    sklearn.linear_model.LogisticRegression : The same model, by other solvers.

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
    >>> from skacv import TrajectoryLogisticRegression
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TrajectoryLogisticRegression(max_iter=50, cv=5).fit(scale(X), y)
    >>> model.cv_path_.shape
    (51,)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.predict_proba(scale(X)[:2]).shape
    (2, 2)
    """

    _parameter_constraints = {
        **InverselyPenalized._parameter_constraints,
        "l1_ratio": [Interval(Real, 0, 1, closed="both")],
        "solver": [StrOptions({"fista", "ista", "nesterov", "gd", "newton", "sgd"})],
    }
    _solvers = {
        "fista": Nesterov,
        "ista": GradientDescent,
        "nesterov": Nesterov,
        "gd": GradientDescent,
        "newton": Newton,
    }

    def __init__(
        self,
        C=1.0,
        *,
        l1_ratio=0.0,
        fit_intercept=True,
        class_weight=None,
        solver="fista",
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
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
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
        return Logistic() if n_classes == 2 else Multinomial()

    def _penalty(self, strength, n_features):
        if self.l1_ratio == 0:
            return SquaredL2(strength)
        return ElasticNet(strength, float(self.l1_ratio))
