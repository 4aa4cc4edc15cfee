"""Lasso by proximal gradient descent, with the whole path and its risk."""

from typing import Any, Literal

from numpy.typing import ArrayLike

from .._compat import StrOptions
from .._estimator.docstrings import SQUARED, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..optim.penalties import L1
from ._penalties import weighted
from ._squared import SquaredErrorRegressor


@documented(SQUARED, strength="alpha", loss="squared error")
class TrajectoryLasso(SquaredErrorRegressor):
    """Lasso by ISTA or FISTA that keeps every iterate and estimates its risk.

    The objective is that of :class:`sklearn.linear_model.Lasso`,

        (1 / (2 n)) ||y - X b||^2 + alpha ||b||_1,

    with (1 / sum w) sum_i w_i in place of 1 / n if rows are weighted, and ``sum_j v_j
    |b_j|`` in place of ||b||_1 with ``penalty_weights`` v. One run gives all iterates;
    ``risk_path_``, ``loo_path_`` and ``cv_path_`` estimate the error of each of them on
    unseen rows, without a refit.

    Parameters
    ----------
    {alpha}
        "path" is a geometric grid of 30 values, from the smallest alpha that keeps all
        coefficients at zero down to 1e-3 of it.
    {penalty_weights}
        The inverse absolute values of a first estimate give the adaptive lasso [3]_.
    {fit_intercept, standardize}
    solver : {"fista", "ista"}, default="fista"
        Accelerated or plain proximal gradient descent [2]_.
    {max_iter, tol, step_size, risk, risk_row_scales, loo, cv, keep_data, warm_start}
    {n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, intercept_, coef_path_, intercept_path_, objective_path_, train_path_}
    {alpha_path_, risk_path_}
    risk_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``risk_path_``, from the spread over rows and from the probes.
    risk_mc_se_path_ : ndarray of shape (n_iter_ + 1,)
        Part of ``risk_se_path_`` due to the random probes; zero if traces are exact.
    risk_residual_path_ : LowRankPath
        Estimated held-out residuals (targets minus predictions) of every row at every
        iterate, as low-rank factors ``temporal`` (n_iter_ + 1, n_modes) and ``spatial``
        (n_modes, n_rows); rows with weight zero are not included. ``risk_path_`` is the
        (weighted) mean of their squares, plus the small contribution of modes dropped
        from the factors.
    {risk_prediction_path_, risk_indices_, risk_target_}
    risk_gram_ : ndarray of shape (n_iter_ + 1, n_iter_ + 1)
        (Weighted) means over rows of products of the estimated held-out residuals of
        two iterates. An affine combination of iterates with weights w has the estimated
        risk w' risk_gram_ w. The diagonal is ``risk_path_`` without the contribution of
        dropped modes.
    n_probes_ : int
        Number of random probes used; 0 if traces are exact.
    row_scale_share_ : float
        Share, between 0 and 1, of the spread of the squared row norms in excess of
        Gaussian rows with the same covariance. At 0 (Gaussian rows, or
        ``risk_row_scales=False``) ``risk_path_`` is the published estimate.
    {loo_path_, loo_se_path_, loo_prediction_path_, loo_indices_, loo_target_, cv_path_}
    {cv_se_path_, cv_fold_path_, cv_prediction_path_}
        If there are many more rows than columns, and ``loo``, ``risk`` and
        ``keep_data`` are False, the run uses only second moments of the data:
        predictions are then computed from X, which is not copied, when they are
        accessed by the index of the iterate.
    {cv_indices_, cv_target_, n_iter_, iteration_, step_size_, n_features_in_}
    {feature_names_in_}

    See Also
    --------
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.
    sklearn.linear_model.Lasso : The same model, by coordinate descent.

    References
    ----------
    {Bellec}
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

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        penalty_weights: ArrayLike | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        solver: Literal["fista", "ista"] = "fista",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _penalty(self, strength, n_features):
        return weighted(L1(strength), self.penalty_weights, n_features)
