"""Group lasso by proximal gradient descent, with the whole path and its risk."""

from numbers import Integral

import numpy as np

from .._compat import Interval, StrOptions
from ..optim.families import GroupL2
from ..optim.schedules import GradientDescent, Nesterov
from ._penalties import checked_weights, numbered_groups
from ._squared import SquaredErrorRegressor


class TrajectoryGroupLasso(SquaredErrorRegressor):
    """Group lasso by ISTA or FISTA that keeps every iterate and its risk.

    The objective is that of the group lasso [1]_,

        (1 / (2 n)) ||y - X b||^2 + alpha sum_g v_g ||b_g||,

    with ||b_g|| the Euclidean norm of the coefficients of group g, which are zero
    together or not at all, and with (1 / sum w) sum_i w_i in the place of 1 / n where
    rows are weighted.

    Parameters
    ----------
    alpha : float, array-like or "path", default=1.0
        Strength of the penalty. A sequence of values is fitted in one warm-started
        trajectory, with ``max_iter`` updates at each value and the momentum restarted
        at each; "path" is a geometric grid of 30 values, from the smallest alpha that
        keeps all penalised groups at zero down to 1e-3 of it.
    groups : int, array-like of shape (n_features,) or list of array-like, default=1
        Which features belong together: a label of every feature; or for every group
        the list of its features; or an int, for consecutive groups of so many
        features (the last one may be smaller). 1 is the lasso.
    group_weights : array-like of shape (n_groups,), default=None
        The v_g, not negative, in the order of the sorted labels or of the lists.
        A group of weight zero is not penalised. None: the root of a group's size.
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
        Estimated mean squared prediction error of every iterate on unseen rows [2]_.
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
    TrajectoryLasso : The same where every feature is a group.

    References
    ----------
    .. [1] Yuan and Lin (2006), "Model selection and estimation in regression with
           grouped variables".
    .. [2] Bellec and Tan (2024), "Uncertainty quantification for iterative
           algorithms in linear models with application to early stopping",
           arXiv:2404.17856.

    Examples
    --------
    Dummy variables of a category come and go together:

    >>> import numpy as np
    >>> from skacv import TrajectoryGroupLasso
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 6))
    >>> y = X[:, 0] + X[:, 1] + 0.1 * rng.standard_normal(60)
    >>> groups = ["size", "size", "size", "colour", "colour", "colour"]
    >>> model = TrajectoryGroupLasso(alpha=0.2, groups=groups).fit(X, y)
    >>> model.coef_[3:]
    array([0., 0., 0.])
    >>> model.loo_path_.shape == model.risk_path_.shape
    True
    """

    _parameter_constraints = {
        **SquaredErrorRegressor._parameter_constraints,
        "groups": [Interval(Integral, 1, None, closed="left"), "array-like"],
        "group_weights": ["array-like", None],
        "solver": [StrOptions({"ista", "fista"})],
    }
    _solvers = {"ista": GradientDescent, "fista": Nesterov}

    def __init__(
        self,
        alpha=1.0,
        *,
        groups=1,
        group_weights=None,
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
        self.groups = groups
        self.group_weights = group_weights
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
        groups = numbered_groups(self.groups, n_features)
        sizes = np.bincount(groups)
        weights = self.group_weights
        if weights is None:
            return GroupL2(strength, groups, np.sqrt(sizes))
        weights = checked_weights(weights, len(sizes), "group_weights", "groups")
        return GroupL2(strength, groups, weights)
