"""Classification with any loss, penalty and schedule, built-in or a user's."""

from typing import Any, Literal

from numpy.typing import ArrayLike

from .._estimator.docstrings import CLASSIFIERS, CURVED, PARTS, documented
from .._estimator.parameters import ALPHA_CONSTRAINT, set_parameters
from .._estimator.prediction.decisions import RecordedProbabilisticClassifier
from .._typing import RandomState
from ..optim.losses import Logistic, Loss, Multinomial
from ..optim.penalties import Penalty
from ._curved import CURVED_STRENGTH_RATIO, CurvedClassifier
from ._parts import (
    CLASSIFICATION,
    PARTS_CONSTRAINTS,
    loss_constraint,
    named,
    spec_of_parts,
)


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
class TrajectoryClassifier(RecordedProbabilisticClassifier, CurvedClassifier):
    """Linear classification with any loss, penalty and schedule, every iterate kept.

    The objective is

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha g(b),

    with a loss l, a penalty g whose strength alpha multiplies, and a schedule of
    updates, each from the package or your own (see "How to add a loss, a penalty, a
    schedule, an estimate" in the documentation). Their properties are checked before
    the run; leave-one-out and folds are then valid for every combination. The
    intercept, the coefficient of a column of ones, is not penalised.

    Parameters
    ----------
    {alpha}
    loss : {"log", "squared_hinge", "smoothed_hinge"} or Loss, default="log"
        The log loss, multinomial for more than two classes; the squared hinge; or the
        hinge rounded over a length of 0.5. Or a loss from ``skacv.optim.losses`` or one
        of your own: the two numbers in its ``labels`` encode the two classes, or each
        class against the rest if there are more than two. A loss with coupled outputs
        has one target per class, and needs at least three classes.
    {penalty, schedule, fit_intercept, standardize, class_weight, max_iter, tol}
    {step_size, risk}
        With "newton", "auto" computes no ``risk_path_`` and the other values raise an
        error.
    {risk_row_scales, loo, loo_correction, cv, keep_data}
    warm_start : bool, default=False
        Whether fitting again continues the recorded trajectory: with a larger
        ``max_iter`` as one longer run; with another alpha, loss, penalty or schedule
        from the last iterate on.
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
    {cv_se_path_, cv_fold_path_, cv_prediction_path_, cv_indices_, cv_target_, n_iter_}
    {iteration_, step_size_, n_features_in_, feature_names_in_}

    Raises
    ------
    {ValueError}

    See Also
    --------
    TrajectoryRegressor : The regressor.
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.

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
        "loss": loss_constraint({"log", *CLASSIFICATION}),
    }

    def __init__(
        self,
        alpha: ArrayLike = 0.01,
        *,
        loss: Literal["log", "smoothed_hinge", "squared_hinge"] | Loss = "log",
        penalty: str | Penalty | None = "l2",
        schedule: Any = "nesterov",
        fit_intercept: bool = True,
        standardize: bool = False,
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
        return spec_of_parts(self, CURVED_STRENGTH_RATIO, outputs=self._outputs)

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
