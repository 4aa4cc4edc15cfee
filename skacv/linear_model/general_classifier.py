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
        Factor of the strength of the penalty. A sequence of values is fitted in one
        warm-started trajectory, with ``max_iter`` updates at each value and the
        momentum restarted at each; "path" is a geometric grid of 30 values, from the
        smallest alpha that keeps all penalised coefficients at zero down to 1e-5 of it.
        With "l2" it has 10 values, from the alpha at which the curvature of the penalty
        equals that of the loss.
    loss : {"log", "squared_hinge", "smoothed_hinge"} or Loss, default="log"
        The log loss, multinomial for more than two classes; the squared hinge; the
        hinge rounded over a length of .5. Or a loss, such as those of
        ``skacv.optim.losses`` or one of your own: the two numbers in its ``labels``
        encode the two classes, or each class against the rest if there are more than
        two. A loss with coupled outputs has one target per class, and needs at least
        three classes.
    penalty : {"l1", "l2", "elasticnet", "mcp", "scad"}, Penalty or None, default="l2"
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
        left out.
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
        How the traces in ``risk_path_`` are computed: exactly, which takes one
        derivative of the whole run for every row; with random signs of the rows, added
        until their standard error is below that over the rows ("hutchinson", or True);
        or with a given number of random signs. "auto": with random signs if that costs
        about as much as folds, otherwise no ``risk_path_``. False: no ``risk_path_``.
        With "newton" "auto" computes none, and the other values raise an error.
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
        ``max_iter`` as one longer run, with another alpha, loss, penalty or schedule
        with the new setting.
    n_jobs : int, default=None
        Number of blocks of held-out rows, or of folds, computed in parallel. None means
        1 unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the rows left out.
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
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate.
    objective_path_ : ndarray of shape (n_iter_ + 1,)
        Value of the objective at every iterate, for the alpha used there.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss on the training rows.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean loss of every iterate on unseen rows, from the one run and
        without leaving out a row: by the memory matrix [2]_ of this loss, the same for
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
        on the row of iterate t fitted without it, with the same step size and number of
        updates at every alpha. Exact where linearising would save little time (few rows
        per column, short runs). Otherwise the iterates without a row are linearised
        around the recorded ones and corrected, and computed exactly for rows where that
        is not accurate enough.
    loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``loo_path_``, over the rows left out.
    loo_prediction_path_ : ndarray of shape (n_iter_ + 1, n_left_out[, n_classes])
        Decision function of every left-out row, by the iterates fitted without it.
    loo_indices_ : ndarray of shape (n_left_out,)
        Indices of the rows of X that were left out, one at a time.
    loo_target_ : ndarray of shape (n_left_out,)
        Targets of these rows.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Cross-validation error of every iterate: (weighted) mean loss on all rows held
        out. Exact.
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

    Raises
    ------
    ValueError
        From ``fit``, if a loss, penalty or schedule does not do what it declares, or
        two of them cannot be combined, such as a Newton step and a penalty with a prox.
        The message says which.

    See Also
    --------
    TrajectoryRegressor : The same for regression.
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
        standardize=False,
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
        self.standardize = standardize
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
