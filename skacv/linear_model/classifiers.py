"""Logistic regression and support vector classification by gradient descent."""

from dataclasses import replace
from numbers import Real
from typing import Any, Literal

from numpy.typing import ArrayLike

from .._compat import Interval, StrOptions
from .._estimator.docstrings import INVERSE, documented
from .._estimator.parameters import set_parameters, to_python_scalar
from .._estimator.prediction.decisions import RecordedProbabilisticClassifier
from .._estimator.prediction.inference import LogisticInference
from .._estimator.run.plan import SCHEDULES, Solver
from .._typing import RandomState, Standardize
from ..optim.losses import Logistic, Multinomial, SmoothedHinge, SquaredHinge
from ..optim.schedules import SimplifiedNewton
from ._bases import InverselyPenalized, elastic_net_penalty


class NewtonOnManyRows(Solver):
    """Newton's method where a Hessian saves many passes for gradients.

    A Hessian of 100 coefficients costs as much as it saves.
    """

    def on(self, problem, seed, min_rows=10_000, max_coefficients=50):
        design = problem.design
        n_rows, n_columns = design.shape
        width = n_columns * problem.target.shape[1]
        is_tall = width <= max_coefficients and n_rows >= min_rows
        takes_newton = is_tall and design.is_matrix and not design.is_on_device
        return SimplifiedNewton(1.0) if takes_newton else super().on(problem, seed)


@documented(
    INVERSE,
    strength="C",
    loss="log loss",
    curvature="1/4, or 1/2 for more than two classes",
)
class TrajectoryLogisticRegression(
    LogisticInference, RecordedProbabilisticClassifier, InverselyPenalized
):
    """Logistic regression that keeps every iterate and estimates its error.

    The objective is that of :class:`sklearn.linear_model.LogisticRegression`,

        C sum_i w_i l(y_i, x_i'b) + l1_ratio ||b||_1 + (1 - l1_ratio) ||b||^2 / 2,

    with l the log loss, multinomial for more than two classes. One run gives all
    iterates; ``loo_path_`` and ``cv_path_`` estimate the loss of each on unseen rows,
    without a refit. Read more in the :doc:`user guide </guide/classification>`.

    Parameters
    ----------
    {C}
        "path": 30 values, from where all coefficients are zero; 10 without l1 penalty.
    l1_ratio : float, default=0.0
        Share of the l1 penalty, from 0 (ridge) to 1 (lasso).
    {fit_intercept, standardize, class_weight}
    solver : {"auto", "fista", "ista", "nesterov", "gd", "newton", "sgd"}, \
default="auto"
        Accelerated ("fista", "nesterov") or plain ("ista", "gd") proximal gradient
        descent, batches ("sgd"), or Newton's method for a ridge penalty and few
        columns. "auto" is :doc:`usually "fista" </guide/classification>`.
    {max_iter, tol, step_size, batch_size, power_t, risk, risk_row_scales, loo}
    {loo_correction, cv}
    keep_data : bool, default=False
        Whether to keep a copy of the training data, which :meth:`coef_interval` and
        :meth:`coef_table` need.
    {warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {classes_, coef_, intercept_, coef_path_, intercept_path_, C_path_, objective_path_}
    {train_path_, risk_path_, risk_se_path_, risk_mc_se_path_, risk_prediction_path_}
    {risk_indices_, risk_target_, n_probes_, row_scale_share_, loo_path_, loo_se_path_}
    {loo_prediction_path_, loo_indices_, loo_target_, cv_path_, cv_se_path_}
    {cv_fold_path_, cv_prediction_path_, cv_indices_, cv_target_, record_, n_iter_}
    {iteration_}
    {step_size_, n_features_in_, feature_names_in_}

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.linear_model.LogisticRegression : The same model, with other solvers.

    References
    ----------
    {Luo, Tan, Gower}

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
        "solver": [
            StrOptions({"auto", "fista", "ista", "nesterov", "gd", "newton", "sgd"})
        ],
    }

    def __init__(
        self,
        C: ArrayLike = 1.0,
        *,
        l1_ratio: float = 0.0,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        batch_size: int = 32,
        power_t: float = 0.0,
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
        spec = super()._spec()
        is_automatic = self.solver == self.step_size == "auto" and all(
            to_python_scalar(setting) in ("auto", False)
            for setting in (self.risk, self.loo)
        )
        has_strengths = len(spec.strengths) > 1 and self.l1_ratio == 0
        if not (is_automatic and has_strengths):
            return spec
        return replace(spec, solver=NewtonOnManyRows(SCHEDULES["auto"](1.0)))

    def _class_loss(self, n_classes):
        return Logistic() if n_classes == 2 else Multinomial()

    def _penalty(self, strength, n_features):
        return elastic_net_penalty(strength, self.l1_ratio)


@documented(INVERSE, strength="C", loss="hinge loss", curvature="2, or 1 / smoothing")
class TrajectoryLinearSVC(InverselyPenalized):
    """Linear SVM that keeps every iterate and estimates its error.

    The objective is that of :class:`sklearn.svm.LinearSVC`,

        C sum_i w_i l(y_i, x_i'b) + ||b||^2 / 2,

    with l the squared or the smoothed hinge, one against the rest for more than two
    classes. Unlike that of LinearSVC, the intercept is not penalised. The plain hinge
    is not offered: it has no curvature, which leave-one-out along the run needs. Read
    more in the :doc:`user guide </guide/classification>`.

    Parameters
    ----------
    {C}
        "path": 10 values, from where the penalty and the loss have equal curvature.
    loss : {"squared_hinge", "smoothed_hinge"}, default="squared_hinge"
        With m = 1 - y x'b for labels y of -1 and 1: max(0, m)^2, or the hinge max(0, m)
        rounded over 0 < m < ``smoothing``.
    smoothing : float, default=0.5
        Length over which the smoothed hinge is rounded.
    {fit_intercept, standardize, class_weight}
        Unlike in LinearSVC, a row has the same weight in all one-vs-rest problems.
    {solver, max_iter, tol, step_size, batch_size, power_t, risk, risk_row_scales, loo}
    {loo_correction, cv, keep_data, warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {classes_, coef_, coef_path_}
    {train_path_}
        The hinge is squared or smoothed, according to ``loss``.
    {risk_path_, loo_path_, cv_path_, n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLogisticRegression`.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.svm.LinearSVC : The same model, by coordinate descent.

    References
    ----------
    {Luo, Tan, Gower}

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from skacv import TrajectoryLinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = TrajectoryLinearSVC(max_iter=50, cv=5).fit(scale(X), y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.decision_function(scale(X)[:2]).shape
    (2,)
    """

    _parameter_constraints = {
        **InverselyPenalized._parameter_constraints,
        "loss": [StrOptions({"squared_hinge", "smoothed_hinge"})],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
    }

    def __init__(
        self,
        C: ArrayLike = 1.0,
        *,
        loss: Literal["smoothed_hinge", "squared_hinge"] = "squared_hinge",
        smoothing: float = 0.5,
        fit_intercept: bool = True,
        standardize: Standardize = False,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        solver: Literal["gd", "nesterov", "sgd"] = "nesterov",
        max_iter: int = 200,
        tol: float = 1e-6,
        step_size: float | Literal["auto"] = "auto",
        batch_size: int = 32,
        power_t: float = 0.0,
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

    def _class_loss(self, n_classes):
        if self.loss == "squared_hinge":
            return SquaredHinge()
        return SmoothedHinge(float(self.smoothing))
