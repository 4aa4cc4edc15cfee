"""A regressor and a classifier that need no settings."""

from collections.abc import Callable
from typing import Any, Literal

from .._estimator.docstrings import CLASSIFIERS, SELF_STOPPING, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from .advice import names_keywords
from .early_stopping import TrajectoryEarlyStoppingCV


class OfOneTask(TrajectoryEarlyStoppingCV):
    """A stopping estimator with one ``task``, which a subclass defines."""

    _parameter_constraints = dict(TrajectoryEarlyStoppingCV._parameter_constraints)
    del _parameter_constraints["task"]

    @names_keywords
    def __init__(
        self,
        estimator: Any = None,
        *,
        criterion: str | Callable[..., Any] = "auto",
        cv: Any = None,
        rule: Literal["auto", "blend", "min", "one_se"] = "auto",
        patience: Literal["auto"] | int | None = "auto",
        param_grid: dict[Any, Any] | list[Any] | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())


@documented(SELF_STOPPING, linear="a path of the lasso, a path of ridge")
class SelfStoppingRegressor(OfOneTask):
    """Regression by iterative models, stopped at their best iterates and combined.

    Each model is run once, side by side with folds that estimate the loss of every
    iterate on unseen rows. A weighted mean of the best iterates is kept, with the
    weights that minimise the loss on held-out rows. No rows are set aside, and nothing
    is refitted.

    Parameters
    ----------
    {estimator, criterion}
    cv : int, splitter or iterable, default=None
        The folds used to evaluate all models. None: five random ones, of whole groups
        if ``groups`` are passed to ``fit``.
    {rule, patience, param_grid, n_jobs, random_state}

    Attributes
    ----------
    {estimator_, members_, weights_, best_member_, best_iter_}
    best_score_ : float
        Estimated mean squared error of ``estimator_`` on unseen rows.
    {best_score_corrected_, best_score_se_, best_score_corrected_se_, best_params_}
    {criterion_, task_, path_, member_paths_, results_, coef_, intercept_}
    {n_features_in_, feature_names_in_}

    See Also
    --------
    SelfStoppingClassifier : The classifier.
    TrajectoryEarlyStoppingCV : Every parameter and attribute in full.

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


@documented(CLASSIFIERS, SELF_STOPPING, linear="a path of logistic regression")
class SelfStoppingClassifier(OfOneTask):
    """Classification by iterative models, stopped at their best iterates and combined.

    Each model is run once, side by side with folds that estimate the loss of every
    iterate on unseen rows. The probabilities of the best iterates are averaged, with
    the weights that minimise the loss on held-out rows. No rows are set aside, and
    nothing is refitted.

    Parameters
    ----------
    {estimator, criterion}
    cv : int, splitter or iterable, default=None
        The folds used to evaluate all models. None: five random ones, stratified, of
        whole groups if ``groups`` are passed to ``fit``.
    {rule, patience, param_grid, n_jobs, random_state}

    Attributes
    ----------
    {estimator_, members_, weights_, best_member_, best_iter_}
    best_score_ : float
        Estimated loss of ``estimator_`` on unseen rows; the log loss for a blend.
    {best_score_corrected_, best_score_se_, best_score_corrected_se_, best_params_}
    {criterion_, task_, path_, member_paths_, results_, coef_, intercept_}
    {n_features_in_, feature_names_in_, classes_}

    See Also
    --------
    SelfStoppingRegressor : The regressor.
    TrajectoryEarlyStoppingCV : Every parameter and attribute in full.

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
