"""Regression and classification with any loss, penalty and schedule."""

from dataclasses import replace
from typing import Any, Literal

from numpy.typing import ArrayLike

from .._compat import HasMethods, StrOptions
from .._estimator.docstrings import CLASSIFIERS, CURVED, PARTS, SQUARED, documented
from .._estimator.parameters import ALPHA_CONSTRAINT, set_parameters
from .._estimator.prediction.decisions import RecordedProbabilisticClassifier
from .._estimator.run.plan import N_SMOOTH_STRENGTHS, ModelSpec, Solver, Strengths
from .._typing import RandomState, Standardize
from ..optim.losses import (
    Expectile,
    Gamma,
    Huber,
    Logistic,
    Loss,
    Multinomial,
    NegativeBinomial,
    Pinball,
    Poisson,
    SmoothedHinge,
    SmoothedQuantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from ..optim.penalties import L1, MCP, SCAD, ElasticNet, Penalty, SquaredL2, Zero
from ..optim.schedules import GradientDescent, HeavyBall, Nesterov, Newton
from ._bases import (
    CURVED_PATH,
    CurvedClassifier,
    PenalizedModel,
    SquaredErrorRegressor,
)
from .lasso import GROUPS_CONSTRAINT, group_lasso_penalty

REGRESSION = {
    "squared_error": SquaredError(),
    "huber": Huber(),
    "poisson": Poisson(),
    "gamma": Gamma(),
    "tweedie": Tweedie(),
    "negative_binomial": NegativeBinomial(),
    "quantile": SmoothedQuantile(),
    "expectile": Expectile(),
}
# The log loss besides, which is another one with several classes.
CLASSIFICATION = {
    "squared_hinge": SquaredHinge(),
    "smoothed_hinge": SmoothedHinge(),
}
PENALTIES = {
    "l1": L1(1.0),
    "l2": SquaredL2(1.0),
    "elasticnet": ElasticNet(1.0),
    "mcp": MCP(1.0),
    "scad": SCAD(1.0),
}
SCHEDULES = {
    "gd": GradientDescent(1.0),
    "nesterov": Nesterov(1.0),
    "heavy_ball": HeavyBall(1.0),
    "newton": Newton(1.0),
}
PARTS_CONSTRAINTS = {
    "penalty": [StrOptions({*PENALTIES, "group_lasso"}), Penalty, None],
    "groups": GROUPS_CONSTRAINT,
    "schedule": [
        StrOptions(set(SCHEDULES)),
        HasMethods(["updates", "largest_stable_step"]),
    ],
}


def get_part(part, table):
    """The part with this name; other parts are returned unchanged."""
    return table[part] if isinstance(part, str) else part


def check_judges_rows(loss):
    """Raise if a loss compares rows with each other."""
    if loss.couples_rows:
        raise ValueError(
            f"{type(loss).__name__} compares rows with each other, and single rows "
            "have no such loss: use TrajectoryCoxRegressor for survival times."
        )


def spec_of_parts(estimator, ratio=Strengths.ratio, penalties=PENALTIES, **settings):
    """The specification of a run from ``alpha``, ``penalty`` and ``schedule``.

    A "path" of strengths ends at ``ratio``; ``penalties`` are those that have names;
    ``settings`` are those of ModelSpec.
    """
    solver = Solver(replace(get_part(estimator.schedule, SCHEDULES), step_size=1.0))
    if estimator.penalty == "group_lasso":
        # Their number, and so their weights, may depend on that of the features.
        def group_lasso(strength, n_features):
            return group_lasso_penalty(strength, estimator.groups, n_features)

        strengths = Strengths(estimator.alpha, ratio=ratio)
        return ModelSpec.of(estimator, group_lasso, strengths, solver, **settings)
    penalty = Zero() if estimator.penalty is None else estimator.penalty
    penalty = get_part(penalty, penalties)
    n_path = N_SMOOTH_STRENGTHS if penalty.is_linear else Strengths.n_path
    strengths = Strengths(
        estimator.alpha, factor=penalty.strength, n_path=n_path, ratio=ratio
    )

    def of_strength(strength, n_features):
        return penalty.with_strength(strength)

    return ModelSpec.of(estimator, of_strength, strengths, solver, **settings)


@documented(
    SQUARED, PARTS, strength="alpha", alpha="1.0", smallest="1e-3", penalty="l1"
)
class TrajectoryRegressor(SquaredErrorRegressor):
    """Linear regression with any loss, penalty and schedule, every iterate kept.

    The objective is

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha g(b),

    with a loss l, a penalty g whose strength is multiplied by alpha, and a schedule of
    updates, each from the package or :doc:`your own </extending>`. Their properties are
    checked before the run. Leave-one-out and folds are then valid for every
    combination, and the memory matrix [1]_ if updates have derivatives.

    Parameters
    ----------
    {alpha}
    loss : str or Loss, default="squared_error"
        "squared_error", half the squared error; "huber", linear beyond residuals of
        1.35 (in units of y); with a log link half the deviance of "poisson", "gamma",
        "tweedie" (of power 1.5) or "negative_binomial" (with theta=1); "quantile", the
        pinball loss of the median rounded over residuals up to 1; "expectile", of
        level 0.5. Other numbers are those of a loss of ``skacv.optim.losses``, such as
        ``Tweedie(1.8)`` or ``SmoothedQuantile(0.9, smoothing=0.1)``. A loss may be
        :doc:`your own </extending>`.
    {penalty, groups, schedule}
    fit_intercept : bool, default=True
        Whether to fit an intercept: by centring X and y for the squared error,
        otherwise as the unpenalised coefficient of a column of ones.
    {standardize, max_iter, tol, step_size}
    risk : {"auto", "exact", "hutchinson"}, int or bool, default="auto"
        As in :class:`TrajectoryLasso`. Losses other than the squared error use probes,
        with "auto" only if that is about as fast as folds; they need gradient steps and
        a second derivative of the loss.
    {risk_row_scales, loo}
    loo_correction : bool, default=True
        Whether to correct the :doc:`linearised </estimates>` leave-one-out runs of
        losses other than the squared error at some iterates. False is the published
        method [2]_.
    {cv, keep_data, warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, objective_path_}
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss on the training rows; for the squared error the full square, not half.
    {alpha_path_}
        Zeros if there is no penalty.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean loss on unseen rows, in the loss of ``train_path_``, from its
        memory matrix [1]_, [3]_.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, in the loss of ``train_path_``. Exact for
        the squared error, otherwise :doc:`exact or linearised and corrected
        </estimates>`.
    {n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    Raises
    ------
    {ValueError}

    See Also
    --------
    TrajectoryClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.

    References
    ----------
    {Bellec}
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
        "loss": [StrOptions(set(REGRESSION)), Loss],
        "loo_correction": ["boolean"],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        loss: str | Loss = "squared_error",
        penalty: str | Penalty | None = "l1",
        groups: ArrayLike = 1,
        schedule: Any = "nesterov",
        fit_intercept: bool = True,
        standardize: Standardize = False,
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        loo_correction: bool = True,
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _chosen_loss(self):
        return get_part(self.loss, REGRESSION)

    def _params_of_loss(self, loss):
        if isinstance(loss, Expectile):
            return {"loss": loss}
        # A rounded corner has a length, in units of y, which is the user's.
        chosen = self._chosen_loss()
        if isinstance(chosen, SmoothedQuantile) and isinstance(loss, Pinball):
            return {"loss": replace(chosen, level=loss.level)}
        return None

    def _loss_of(self, target, weights):
        loss = self._chosen_loss()
        check_judges_rows(loss)
        return loss, {}

    def _spec(self):
        return spec_of_parts(self, is_quadratic=self._chosen_loss().is_quadratic)

    @property
    def _positive_only(self):
        return self._chosen_loss().target_range[0] >= 0


@documented(
    CURVED,
    CLASSIFIERS,
    PARTS,
    strength="alpha",
    loss="loss",
    alpha="0.01",
    smallest="1e-5",
    penalty="l2",
)
class TrajectoryClassifier(
    RecordedProbabilisticClassifier, CurvedClassifier, PenalizedModel
):
    """Linear classification with any loss, penalty and schedule, every iterate kept.

    The objective is

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha g(b),

    with a loss l, a penalty g whose strength is multiplied by alpha, and a schedule of
    updates, each from the package or :doc:`your own </extending>`. Their properties are
    checked before the run. Leave-one-out and folds are then valid for every
    combination. The intercept, the coefficient of a column of ones, is not penalised.

    Parameters
    ----------
    {alpha}
    loss : {"log", "squared_hinge", "smoothed_hinge"} or Loss, default="log"
        The (multinomial) log loss; the squared hinge; the hinge rounded over a length
        of 0.5; one of ``skacv.optim.losses``; or :doc:`your own </extending>`, used one
        against the rest for more than two classes unless it has coupled outputs.
    {penalty, groups, schedule, fit_intercept, standardize, class_weight, max_iter}
    {tol, step_size, risk, risk_row_scales, loo, loo_correction, cv, keep_data}
    warm_start : bool, default=False
        Whether ``fit`` continues the recorded run: with a larger ``max_iter`` as one
        longer run; with another alpha, loss, penalty or schedule from the last iterate.
    {n_jobs}
    random_state : int, RandomState instance or None, default=None
        Controls the choice of left-out rows.
    {verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, coef_path_, intercept_path_, alpha_path_}
    {objective_path_, train_path_, risk_path_, risk_se_path_, risk_mc_se_path_}
    {risk_prediction_path_, risk_indices_, risk_target_, n_probes_, row_scale_share_}
    {loo_path_, loo_se_path_, loo_prediction_path_, loo_indices_, loo_target_, cv_path_}
    {cv_se_path_, cv_fold_path_, cv_prediction_path_, cv_indices_, cv_target_, record_}
    {n_iter_}
    {iteration_, step_size_, n_features_in_, feature_names_in_}

    Raises
    ------
    {ValueError}

    See Also
    --------
    TrajectoryRegressor : The regressor.
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.

    References
    ----------
    {Luo, Tan}

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
        "loss": [StrOptions({"log", *CLASSIFICATION}), Loss],
    }

    def __init__(
        self,
        alpha: ArrayLike = 0.01,
        *,
        loss: Literal["log", "smoothed_hinge", "squared_hinge"] | Loss = "log",
        penalty: str | Penalty | None = "l2",
        groups: ArrayLike = 1,
        schedule: Any = "nesterov",
        fit_intercept: bool = True,
        standardize: Standardize = False,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        risk: Literal["auto", "exact", "hutchinson"] | int = "auto",
        risk_row_scales: bool = True,
        loo: Literal["auto"] | int = "auto",
        loo_correction: bool = True,
        cv: Any = None,
        keep_data: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _spec(self):
        return spec_of_parts(self, **CURVED_PATH, outputs=self._outputs)

    def _class_loss(self, n_classes):
        if self.loss == "log":
            return Logistic() if n_classes == 2 else Multinomial()
        loss = get_part(self.loss, CLASSIFICATION)
        check_judges_rows(loss)
        if loss.is_coupled and n_classes == 2:
            raise ValueError(
                f"{type(loss).__name__} models a score for each class and needs at "
                "least three classes, but y has two."
            )
        return loss
