"""Regression with any loss, penalty and schedule, built-in or a user's."""

from typing import Any, Literal

from numpy.typing import ArrayLike

from .._estimator.docstrings import PARTS, SQUARED, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..optim.losses import Loss, Poisson
from ..optim.penalties import Penalty
from ._parts import (
    PARTS_CONSTRAINTS,
    REGRESSION,
    loss_constraint,
    named,
    spec_of_parts,
)
from ._squared import SquaredErrorRegressor


@documented(
    SQUARED, PARTS, strength="alpha", alpha="1.0", smallest="1e-3", penalty="l1"
)
class TrajectoryRegressor(SquaredErrorRegressor):
    """Linear regression with any loss, penalty and schedule, every iterate kept.

    The objective is

        (1 / sum w) sum_i w_i l(y_i, x_i'b) + alpha g(b),

    with a loss l, a penalty g whose strength alpha multiplies, and a schedule of
    updates, each from the package or your own (see "How to add a loss, a penalty, a
    schedule, an estimate" in the documentation). Their properties are checked before
    the run; leave-one-out and folds are then valid for every combination, and the
    memory matrix [1]_ is valid if updates have derivatives.

    Parameters
    ----------
    {alpha}
    loss : {"squared_error", "huber", "poisson"} or Loss, default="squared_error"
        Half the squared error; the Huber loss, linear beyond residuals of 1.35 (in
        units of y); or half the Poisson deviance with a log link. Or a loss from
        ``skacv.optim.losses`` or one of your own.
    {penalty, schedule}
    fit_intercept : bool, default=True
        Whether to fit an intercept. With the squared error X and y are centred by their
        (weighted) means; otherwise it is the unpenalised coefficient of a column of
        ones that is added to X.
    {standardize, max_iter, tol, step_size, risk}
        For losses other than the squared error: with probes, and with "auto" only if
        that takes about as long as folds. It needs gradient steps and a loss with a
        second derivative: for other runs "auto" computes no ``risk_path_`` and the
        other values raise an error.
    {risk_row_scales, loo}
    loo_correction : bool, default=True
        Whether to correct, at some iterates, the error of linearising the iterates
        without a row around the recorded ones [2]_. Iterates are linearised if the loss
        is not the squared error and there are more rows than columns. False is the
        published method.
    {cv, keep_data, warm_start, n_jobs, random_state, verbose}

    Attributes
    ----------
    {coef_, coef_path_, objective_path_}
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss on the training rows; with the squared error the whole of it, not
        half.
    alpha_path_ : ndarray of shape (n_iter_ + 1,)
        Value of alpha used at every iterate; zeros if there is no penalty.
    risk_path_ : ndarray of shape (n_iter_ + 1,)
        Estimated mean loss on unseen rows, with the loss of ``train_path_`` [1]_, from
        the memory matrix of that loss [3]_.
    loo_path_ : ndarray of shape (n_iter_ + 1,)
        Leave-one-out error of every iterate, with the loss of ``train_path_``. Exact
        with the squared error, and with other losses if linearising would save little
        time (see ``loo_correction``).
    {n_iter_, n_features_in_}

    All other attributes are those of :class:`TrajectoryLasso`.

    Raises
    ------
    {ValueError}

    See Also
    --------
    TrajectoryClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Selects the iterate of least estimated risk.

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
        "loss": loss_constraint(REGRESSION),
        "loo_correction": ["boolean"],
    }

    def __init__(
        self,
        alpha: ArrayLike = 1.0,
        *,
        loss: Literal["huber", "poisson", "squared_error"] | Loss = "squared_error",
        penalty: str | Penalty | None = "l1",
        schedule: Any = "nesterov",
        fit_intercept: bool = True,
        standardize: bool = False,
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
        return named(self.loss, REGRESSION)

    def _loss_of(self, target, weights):
        return self._chosen_loss(), {}

    def _spec(self):
        return spec_of_parts(self, is_quadratic=self._chosen_loss().is_quadratic)

    @property
    def _positive_only(self):
        return self._chosen_loss() == Poisson()
