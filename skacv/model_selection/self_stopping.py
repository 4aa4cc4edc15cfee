"""The front door: a regressor and a classifier that need no settings."""

from .advice import names_keywords
from .early_stopping import TrajectoryEarlyStoppingCV


class OfOneTask(TrajectoryEarlyStoppingCV):
    """The stopping estimator of one ``task``, which a subclass says."""

    _parameter_constraints = {
        name: constraint
        for name, constraint in TrajectoryEarlyStoppingCV._parameter_constraints.items()
        if name != "task"
    }

    @names_keywords
    def __init__(
        self,
        estimator=None,
        *,
        criterion="auto",
        cv=None,
        rule="auto",
        patience="auto",
        param_grid=None,
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.criterion = criterion
        self.cv = cv
        self.rule = rule
        self.patience = patience
        self.param_grid = param_grid
        self.n_jobs = n_jobs
        self.random_state = random_state


class SelfStoppingRegressor(OfOneTask):
    """Regression by iterative models, each stopped where it is best, and combined.

    Each model is run once, with folds beside it that say what every iterate costs on
    unseen rows. A weighted mean of the best iterates is kept, with weights that cost
    rows of the folds least. No rows are set aside, and nothing is refitted.

    Parameters
    ----------
    estimator : estimator that records its trajectory, list of (str, estimator), \
default=None
        A model, or several that are compared, as in
        :class:`TrajectoryEarlyStoppingCV`; they take X as it is. None combines a path
        of the lasso, a path of ridge, boosted trees, a kernel machine (up to 10,000
        rows) and extra trees (up to 5000); linear models and kernels standardise the
        columns inside. Where X has missing values or categories trees are left.
    criterion : {"auto", "risk", "loo", "cv"}, str or callable, default="auto"
        The estimate that is minimised, or a scorer that is maximised.
    cv : int, splitter or iterable, default=None
        The folds that all models are judged by. None: five random ones, of whole
        groups if ``groups`` are passed to ``fit``.
    rule : {"auto", "blend", "min", "one_se"}, default="auto"
        "blend" keeps a weighted mean of the predictions of all models, each at its best
        iterate, "min" the best iterate of all, and "one_se" the earliest one within one
        standard error of the best. "auto" is "blend" where ``estimator=None``, else
        "min".
    patience : {"auto"}, int or None, default="auto"
        Updates without an improvement after which a run stops.
    param_grid : dict or list of dicts, default=None
        Values of parameters of ``estimator`` that are compared.
    n_jobs : int, default=None
        Number of runs in parallel.
    random_state : int, RandomState instance or None, default=None
        Controls subsamples and the bootstrap of ``best_score_corrected_``.

    Attributes
    ----------
    estimator_ : estimator
        The chosen model, set to the chosen iterate, or the blend of several.
    members_ : dict of str to estimator
        The models that are kept: all with ``rule="blend"``, otherwise the chosen one.
    weights_ : dict of str to float
        Weight of every model in ``estimator_``.
    best_member_ : str
        Name of the chosen model, in a blend that of largest weight.
    best_iter_ : int
        Index of its chosen iterate.
    best_score_ : float
        Estimated mean squared error of ``estimator_`` on unseen rows.
    best_score_corrected_ : float
        The same, corrected for having been chosen: what to expect of new rows.
    best_score_se_, best_score_corrected_se_ : float
        Their standard errors.
    best_params_ : dict
        Parameters of the chosen model that were compared, or change along its run.
    criterion_, task_ : str
        The estimate that has judged, and the task.
    path_ : ndarray of shape (n_iter_ + 1,)
        The estimate of every iterate of the chosen run.
    member_paths_ : dict of str to ndarray
        The same of every model.
    results_ : dict of lists
        What was compared, and what was left out and why.
    coef_, intercept_ : ndarray, float
        Coefficients of the chosen iterate in units of X, if it is linear.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    SelfStoppingClassifier : The same for classes.
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


class SelfStoppingClassifier(OfOneTask):
    """Classification by iterative models, each stopped where it is best, and combined.

    Each model is run once, with folds beside it that say what every iterate costs on
    unseen rows. Probabilities are weighted means of those of the best iterates, with
    weights that cost rows of the folds least. No rows are set aside, and nothing is
    refitted.

    Parameters
    ----------
    estimator : estimator that records its trajectory, list of (str, estimator), \
default=None
        A model, or several that are compared, as in
        :class:`TrajectoryEarlyStoppingCV`; they take X as it is. None combines a path
        of logistic regression, boosted trees, a kernel machine (up to 10,000 rows) and
        extra trees (up to 5000); linear models and kernels standardise the columns
        inside. Where X has missing values or categories trees are left.
    criterion : {"auto", "risk", "loo", "cv"}, str or callable, default="auto"
        The estimate that is minimised, or a scorer that is maximised.
    cv : int, splitter or iterable, default=None
        The folds that all models are judged by. None: five random ones, stratified, of
        whole groups if ``groups`` are passed to ``fit``.
    rule : {"auto", "blend", "min", "one_se"}, default="auto"
        "blend" keeps a weighted mean of the predictions of all models, each at its best
        iterate, "min" the best iterate of all, and "one_se" the earliest one within one
        standard error of the best. "auto" is "blend" where ``estimator=None``, else
        "min".
    patience : {"auto"}, int or None, default="auto"
        Updates without an improvement after which a run stops.
    param_grid : dict or list of dicts, default=None
        Values of parameters of ``estimator`` that are compared.
    n_jobs : int, default=None
        Number of runs in parallel.
    random_state : int, RandomState instance or None, default=None
        Controls subsamples and the bootstrap of ``best_score_corrected_``.

    Attributes
    ----------
    estimator_ : estimator
        The chosen model, set to the chosen iterate, or the blend of several.
    members_ : dict of str to estimator
        The models that are kept: all with ``rule="blend"``, otherwise the chosen one.
    weights_ : dict of str to float
        Weight of every model in ``estimator_``.
    best_member_ : str
        Name of the chosen model, in a blend that of largest weight.
    best_iter_ : int
        Index of its chosen iterate.
    best_score_ : float
        What ``estimator_`` is estimated to cost on unseen rows, by its loss; a blend by
        the log loss.
    best_score_corrected_ : float
        The same, corrected for having been chosen: what to expect of new rows.
    best_score_se_, best_score_corrected_se_ : float
        Their standard errors.
    best_params_ : dict
        Parameters of the chosen model that were compared, or change along its run.
    criterion_, task_ : str
        The estimate that has judged, and the task.
    path_ : ndarray of shape (n_iter_ + 1,)
        The estimate of every iterate of the chosen run.
    member_paths_ : dict of str to ndarray
        The same of every model.
    results_ : dict of lists
        What was compared, and what was left out and why.
    coef_, intercept_ : ndarray, float
        Coefficients of the chosen iterate in units of X, if it is linear.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.

    See Also
    --------
    SelfStoppingRegressor : The same for numbers.
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
