"""A regressor and a classifier that need no settings."""

from collections.abc import Callable
from typing import Any, Literal

from .._estimator.docstrings import CLASSIFIERS, SHARED, documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..tables import TableEncoder
from .advice import names_keywords
from .early_stopping import TrajectoryEarlyStoppingCV

CONSTRAINTS = dict(TrajectoryEarlyStoppingCV._parameter_constraints)
# Each class has its task.
del CONSTRAINTS["task"]


@documented(SHARED)
class SelfStoppingRegressor(TrajectoryEarlyStoppingCV):
    """Regression by iterative models, stopped at their best iterates and combined.

    Each model is run once, side by side with folds that estimate the loss of every
    iterate on unseen rows. A weighted mean of the best iterates is kept, with the
    weights that minimise the loss on held-out rows. No rows are set aside, and nothing
    is refitted.

    Parameters
    ----------
    estimator : estimator that records its trajectory, list of (str, estimator), \
default=None
        A model, or several to compare, as in :class:`TrajectoryEarlyStoppingCV`; X is
        passed to them unscaled. None combines a path of the lasso, a path of ridge,
        boosted trees, a kernel machine, one that learns scales of the columns, and
        extra trees; linear models and kernels standardise the columns themselves. From
        8000 rows on, models without weight in a blend of a sample are left out.
    criterion : {"auto", "risk", "loo", "cv"}, str or callable, default="auto"
        The estimate to minimise, or a scorer to maximise.
    cv : int, splitter or iterable, default=None
        The folds used to evaluate all models. None: five random ones, of whole groups
        if ``groups`` are passed to ``fit``; the first alone where its rows are enough
        to choose by, about 4000.
    rule : {"auto", "blend", "min", "one_se"}, default="auto"
        "blend" keeps a weighted mean of the predictions of all models, each at its best
        iterate, "min" the best iterate of all, and "one_se" the earliest iterate within
        one standard error of the best. "auto" is "blend" if ``estimator=None``,
        otherwise "min".
    patience : {"auto"}, int or None, default="auto"
        Number of updates without improvement after which a run stops. By default
        boosted trees also stop where more are not expected to improve the loss of what
        is kept by a tenth of its standard error.
    param_grid : dict or list of dicts, default=None
        Values of parameters of ``estimator`` to compare.
    search : {"all", "race"}, default="all"
        "all" runs all combinations of ``param_grid`` in full. "race" first runs them on
        some of the folds, and ends those that are significantly worse than the best.
    n_candidates : int, default=None
        Number of combinations to draw from ``param_grid``, which may then have
        distributions. None: all.
    encoder : {"auto"}, TableEncoder or None, default="auto"
        Makes numbers of the columns of X, for each model those that it can use:
        categories, dates, texts and missing values are taken as they are. "auto" is
        ``TableEncoder()`` with ``estimator=None``, unless X is an array of numbers, and
        None with an ``estimator``.
    time_limit : float, default=None
        Seconds that ``fit`` may take. Models run in the order of the time that they are
        expected to take, but with 8000 rows or more boosted trees are the second; a run
        that would take longer than what is left is cut, and its best iterate so far is
        kept; a model that could not begin is left out. A warning names both. None: no
        limit.
    verbose : int, default=0
        1 prints a line for every model as soon as it has been fitted: the best iterate,
        the number of iterates, seconds and held-out loss; and one for what is kept. 2
        prints a line for every combination of parameters too.
    n_jobs : int, default=None
        Number of runs in parallel.
    random_state : int, RandomState instance or None, default=None
        Controls subsamples and the partitions of ``best_score_corrected_``.

    Attributes
    ----------
    estimator_ : estimator
        The chosen model, set to the chosen iterate, or the blend of several.
    encoder_ : TableEncoder or None
        The fitted encoder: what it has made of the columns of X.
    members_ : dict of str to estimator
        The models kept: all with ``rule="blend"``, otherwise the chosen one.
    weights_ : dict of str to float
        Weight of every model in ``estimator_``.
    best_member_ : str
        Name of the chosen model, or of the model with the largest weight in a blend.
    best_iter_ : int
        Index of the chosen iterate of ``best_member_``.
    best_score_ : float
        Estimated mean squared error of ``estimator_`` on unseen rows, averaged over
        outputs: smaller is better. With a scorer as ``criterion`` its score, and
        greater is better.
    best_score_corrected_ : float
        ``best_score_``, corrected for the optimism of the choice: what to expect on new
        rows. Without losses of single rows, as with scorers, there is none.
    best_score_se_ : float
        Standard error of ``best_score_``.
    best_score_corrected_se_ : float
        Standard error of ``best_score_corrected_``.
    possible_gain_ : float
        With 95% confidence, no later iterate of the run of ``best_member_`` has a risk
        that is smaller by more than this.
    best_params_ : dict
        Parameters of the chosen model that were compared or that change along its run:
        without alpha or C at iterate 0, where none has been used.
    criterion_ : str
        The criterion that was used.
    task_ : {"regression", "classification"}
        The task.
    path_ : ndarray of shape (n_iter_ + 1,)
        The estimate of every iterate of the chosen run; for a blend of classifiers the
        log loss, also of a kernel machine, which stops by the squared error.
    member_paths_ : dict of str to ndarray
        The same for every model.
    results_ : dict of lists
        What was compared, and what was left out and why, as in
        :class:`TrajectoryEarlyStoppingCV`. :meth:`leaderboard` is a sorted table of it.
    cv_results_ : dict of arrays
        The combinations of all models, with the names of
        :class:`sklearn.model_selection.GridSearchCV`: "mean_test_score" has losses
        times -1, so that greater is better.
    best_index_ : int
        The row of ``cv_results_`` of ``best_member_`` with ``best_params_``.
    best_estimator_ : estimator
        ``estimator_``, under the name of scikit-learn's searches.
    held_out_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        What ``estimator_`` predicts for every row of X from folds that have not seen
        the row, for classifiers the probabilities of all classes; NaN for a row that no
        fold holds out.
    evals_result_ : dict of dict
        Learning curves: of every model "held_out", and of those kept "train", each a
        dict from the name of a loss to its value at every iterate.
    coef_ : ndarray of the shape of ``estimator_.coef_``
        Coefficients of the chosen iterate in units of X, if the model is linear.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the chosen iterate, if the model is linear.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the features, if the chosen model has them; for others and for
        blends see :class:`PermutationImportanceDisplay`.
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
    class_weight = None
    _parameter_constraints = {
        name: constraint
        for name, constraint in CONSTRAINTS.items()
        if name != "class_weight"
    }

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
        search: Literal["all", "race"] = "all",
        n_candidates: int | None = None,
        encoder: Literal["auto"] | TableEncoder | None = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())


@documented(CLASSIFIERS, SelfStoppingRegressor)
class SelfStoppingClassifier(TrajectoryEarlyStoppingCV):
    """Classification by iterative models, stopped at their best iterates and combined.

    Each model is run once, side by side with folds that estimate the loss of every
    iterate on unseen rows. The probabilities of the best iterates are averaged, with
    the weights that minimise the loss on held-out rows. No rows are set aside, and
    nothing is refitted.

    Parameters
    ----------
    estimator : estimator that records its trajectory, list of (str, estimator), \
default=None
        A model, or several to compare, as in :class:`TrajectoryEarlyStoppingCV`; X is
        passed to them unscaled. None combines a path of logistic regression, boosted
        trees, a kernel machine, one that learns scales of the columns, and extra trees;
        linear models and kernels standardise the columns themselves. From 8000 rows on,
        models without weight in a blend of a sample are left out.
    {criterion}
    cv : int, splitter or iterable, default=None
        The folds used to evaluate all models. None: five random ones, stratified, of
        whole groups if ``groups`` are passed to ``fit``; the first alone where its rows
        are enough to choose by, about 4000 if no class is rare.
    {rule, patience, param_grid, search, n_candidates}
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes in all models and in the blend: in the fits, and in the
        losses by which iterates and weights are chosen. The ``sample_weight`` of a row
        is multiplied by the weight of its class. "balanced" gives all classes the same
        total weight.
    {encoder, time_limit, verbose, n_jobs, random_state}

    Attributes
    ----------
    {estimator_, encoder_, members_, weights_, best_member_, best_iter_}
    best_score_ : float
        Estimated loss of ``estimator_`` on unseen rows, the log loss for a blend,
        averaged over labels if rows have several: smaller is better. With a scorer as
        ``criterion`` its score, and greater is better.
    {best_score_corrected_, best_score_se_, best_score_corrected_se_}
    {possible_gain_, best_params_}
    {criterion_, task_, path_, member_paths_, results_, cv_results_, best_index_}
    {best_estimator_, held_out_prediction_, evals_result_, coef_, intercept_}
    {feature_importances_}
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
    _parameter_constraints = CONSTRAINTS

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
