"""A regressor and a classifier that need no settings."""

from collections.abc import Callable
from typing import Any, Literal

from .._compat import StrOptions
from .._estimator.docstrings import documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..linear_model.general import REGRESSION
from ..optim.losses import Expectile, LogLink, Loss, Pinball, SquaredError
from ..tables import TableEncoder
from .advice import names_keywords
from .early_stopping import TrajectoryEarlyStoppingCV

CONSTRAINTS = dict(TrajectoryEarlyStoppingCV._parameter_constraints)
# Each class has its task.
del CONSTRAINTS["task"]
LOSSES = {
    name: REGRESSION[name] for name in ("squared_error", "poisson", "gamma", "tweedie")
}


@documented(TrajectoryEarlyStoppingCV)
class SelfStoppingRegressor(TrajectoryEarlyStoppingCV):
    """Regression by several models, each stopped at its best iterate, and their blend.

    Each model is run once, side by side with folds that estimate the loss of every
    iterate on unseen rows. The best iterates are averaged, with the weights that
    minimise the loss on held-out rows. No rows are set aside, and nothing is refitted.

    The user guide describes :doc:`the default models </guide/portfolios>` and
    :doc:`raw tables </guide/tables>`.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator), default=None
        Your own model, or several to compare; they get X unscaled. None: paths of the
        lasso and ridge, two kernel machines, boosted trees and extra trees, without
        those that have no weight in a trial on some rows (from 8000 rows on).
    loss : str or Loss, default="squared_error"
        What the default models minimise, and are judged and blended by: the squared
        error, or with a log link half the deviance of "poisson" for counts, "gamma" for
        positive amounts, "tweedie" (of power 1.5, or ``Tweedie`` of
        ``skacv.optim.losses`` of another) for amounts of which some are zero. With a
        log link there are no kernel machines. ``Pinball(0.9)`` of the same module for a
        quantile, ``Expectile(0.9)`` for an expectile:
        :class:`SelfStoppingQuantileRegressor` fits several.
    {criterion, cv, rule, patience, min_delta, param_grid, search, n_candidates}
    {encoder, time_limit, verbose, n_jobs, random_state}

    Attributes
    ----------
    {estimator_, encoder_, members_, weights_, best_member_, best_iter_}
    best_score_ : float
        Estimated mean of ``loss`` of ``estimator_`` on unseen rows, for "squared_error"
        of the square itself, averaged over outputs: smaller is better. With a scorer as
        ``criterion``, its score, greater is better.
    {best_score_corrected_, best_score_corrected_se_, results_, held_out_prediction_}

    All other attributes are those of :class:`TrajectoryEarlyStoppingCV`.

    See Also
    --------
    SelfStoppingClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Chooses the best iterate of your own model.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import SelfStoppingRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = SelfStoppingRegressor(random_state=0).fit(X, y)
    >>> model.best_member_
    'kernel'
    >>> model.predict(X[:2]).shape
    (2,)
    """

    task = "regression"
    class_weight = None
    _parameter_constraints = {
        name: constraint
        for name, constraint in CONSTRAINTS.items()
        if name != "class_weight"
    } | {"loss": [StrOptions(set(LOSSES)), LogLink, SquaredError, Pinball, Expectile]}

    @names_keywords
    def __init__(
        self,
        estimator: Any = None,
        *,
        loss: str | Loss = "squared_error",
        criterion: str | Callable[..., Any] = "auto",
        cv: Any = None,
        rule: Literal["auto", "average", "blend", "min", "one_se"] = "auto",
        patience: Literal["auto"] | int | None = "auto",
        min_delta: Literal["auto"] | float = "auto",
        param_grid: dict[Any, Any] | list[Any] | None = None,
        search: Literal["all", "race"] = "all",
        n_candidates: int | None = None,
        encoder: Literal["auto"] | TableEncoder | None = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    def _default_loss(self):
        loss = LOSSES[self.loss] if isinstance(self.loss, str) else self.loss
        if self.estimator is not None and not loss.is_quadratic:
            raise ValueError(
                f"loss={self.loss!r} is that of the default models: set the loss of "
                "your own estimator in the estimator itself."
            )
        is_of_level = isinstance(loss, Pinball | Expectile)
        if not (loss.is_quadratic or is_of_level) and loss.power is None:
            raise ValueError(
                f"The default models cannot have the {loss.name}: loss must be one of "
                f"{', '.join(map(repr, LOSSES))}, or a Tweedie deviance, Pinball or "
                "Expectile of skacv.optim.losses."
            )
        return loss


@documented(TrajectoryEarlyStoppingCV)
class SelfStoppingClassifier(TrajectoryEarlyStoppingCV):
    """Classification by several models, each stopped at its best iterate, blended.

    Each model is run once, side by side with folds that estimate the loss of every
    iterate on unseen rows. The probabilities of the best iterates are averaged, with
    the weights that minimise the loss on held-out rows. No rows are set aside, and
    nothing is refitted.

    The user guide describes :doc:`the default models </guide/portfolios>`,
    :doc:`raw tables </guide/tables>` and :doc:`imbalanced classes </guide/imbalanced>`.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator), default=None
        Your own model, or several to compare; they get X unscaled. None: a path of
        logistic regression, two kernel machines, boosted trees and extra trees, without
        those that have no weight in a trial on some rows (from 8000 rows on).
    {criterion, cv, rule, patience, min_delta, param_grid, search, n_candidates}
    {class_weight, encoder, time_limit, verbose, n_jobs, random_state}

    Attributes
    ----------
    {estimator_, encoder_, members_, weights_, best_member_, best_iter_}
    best_score_ : float
        Estimated loss of ``estimator_`` on unseen rows, the log loss for a blend,
        averaged over labels if rows have several: smaller is better. With a scorer as
        ``criterion``, its score, greater is better.
    {best_score_corrected_, best_score_corrected_se_, results_, held_out_prediction_}
    {classes_}

    All other attributes are those of :class:`TrajectoryEarlyStoppingCV`.

    See Also
    --------
    SelfStoppingRegressor : The regressor.
    TrajectoryEarlyStoppingCV : Chooses the best iterate of your own model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skacv import SelfStoppingClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SelfStoppingClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    task = "classification"
    _parameter_constraints = CONSTRAINTS

    @names_keywords
    def __init__(
        self,
        estimator: Any = None,
        *,
        criterion: str | Callable[..., Any] = "auto",
        cv: Any = None,
        rule: Literal["auto", "average", "blend", "min", "one_se"] = "auto",
        patience: Literal["auto"] | int | None = "auto",
        min_delta: Literal["auto"] | float = "auto",
        param_grid: dict[Any, Any] | list[Any] | None = None,
        search: Literal["all", "race"] = "all",
        n_candidates: int | None = None,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        encoder: Literal["auto"] | TableEncoder | None = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())
