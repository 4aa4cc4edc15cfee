"""The estimator that runs each model once and keeps the best iterate."""

from collections.abc import Callable
from copy import copy
from numbers import Integral, Real
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin

from .._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    with_callbacks,
)
from .._estimator.delegation import routed
from .._estimator.estimates.fitted_state import (
    MOST_OF_CHOICE,
    WithoutRecord,
    without_record,
)
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..tables import TableEncoder
from .advice import names_keywords
from .chosen import ChosenIterate
from .criteria import RULES
from .members import ComposedOfMembers
from .portfolios import PORTFOLIOS
from .results import ComparedResults
from .search import Search


class TrajectoryEarlyStoppingCV(
    ChosenIterate,
    ComparedResults,
    WithoutRecord,
    CallbackSupportMixin,
    MetaEstimatorMixin,
    ComposedOfMembers,
):
    """Fit once and keep the iterate of least estimated risk.

    The estimator records its iterates, or its stages, and the error of each of them on
    unseen rows is estimated. The iterate with the smallest estimate is kept: nothing is
    refitted, and no rows are set aside. Several estimators can be compared on the same
    rows and folds; the best iterate of all is kept, or a weighted mean of the best of
    each.

    Parameters
    ----------
    estimator : estimator that records its trajectory or is fitted in stages, list of \
(str, estimator), default=None
        An estimator of skacv, such as :class:`TrajectoryLasso`, :class:`IterativeRidge`
        or :class:`TrajectoryLogisticRegression`, or any other that has the methods of
        :class:`skacv.model_selection.RecordsTrajectory`. Or one that is fitted in
        stages, such as boosted trees, a forest or a network from scikit-learn, XGBoost,
        LightGBM or CatBoost, or a Pipeline that ends in one, also with samplers of
        imbalanced-learn: it is wrapped in :class:`Staged`. The result is a regressor or
        a classifier like this estimator.
        A list of (name, estimator) pairs compares several, called members: all
        regressors or all classifiers. Their parameters are ``name__parameter`` in
        ``set_params`` and ``param_grid``; if one of them has a ``cv``, all use it, and
        those without a ``random_state`` share one. None combines a default list for the
        ``task``. For regression: a path of the lasso, a path of ridge (least squares
        where X has more than 1000 columns), a kernel machine, one that learns scales of
        the columns, boosted trees and extra trees. For classification: a path of
        logistic regression in the place of the first two. Linear members and kernel
        machines standardise the columns themselves, whereas X is passed unscaled to an
        estimator given here. Members that cannot be fitted to the data are left out,
        and ``results_`` says why: models without support for a large sparse X or
        several targets, and from 8000 rows on those that have no weight in a blend of
        1000 to 2000 rows.
    criterion : {"auto", "risk", "loo", "cv"}, str or callable, default="auto"
        The estimate to minimise: the estimator's ``risk_path_`` ("risk", from the
        memory matrix), ``loo_path_`` ("loo", leave-one-out; of up to 500 rows if the
        estimator has ``loo="auto"`` and all rows would be expensive) or ``cv_path_``
        ("cv", folds; 5 random ones, stratified for classes, if the estimator has
        ``cv=None``, or the first alone where its rows are enough, about 4000). Or the
        name of a scikit-learn scorer, or a callable ``scorer(estimator, X, y)``: it is
        maximised over the iterates, evaluated on their pooled held-out predictions from
        "cv" or "loo", whichever "auto" would choose; an undefined score (NaN) counts as
        the worst. "auto" is the estimate that the estimator's parameters ask for:
        ``cv`` first, then ``loo=True`` or a number, then ``risk`` other than "auto". If
        they ask for none, it is "loo" if one eigendecomposition gives leave-one-out for
        every row about as fast as folds (linear updates with the squared error, up to
        2000 rows), otherwise "cv". All combinations of ``param_grid`` are compared by
        the same estimate, one that all of them can compute. For several members "auto"
        is "cv", and scorers use the predictions of the folds. Members are compared on
        the rows that all of them have held out, which excludes the subsample of a
        preconditioner. If their losses differ, "auto" chooses the iterate of every
        member by the loss of that member and compares the chosen ones by the accuracy
        (R^2 for regression) of their held-out predictions; criteria other than scorers
        then raise an error.
    cv : int, splitter or iterable, default=None
        The folds, for estimators that do not set their own ``cv``: as in scikit-learn,
        except that a number, or None, means random folds of whole groups if ``groups``
        are passed to ``fit``. None: as described under ``criterion``.
    rule : {"auto", "min", "one_se", "blend"}, default="auto"
        "auto" is "blend" if ``estimator=None`` and ``criterion`` is "auto" or "cv", but
        not with Dask input or a :class:`RowSummary`; otherwise "min". "min" chooses the
        best iterate, "one_se" the earliest one within one standard error of the best.
        "blend" keeps a weighted mean of the predictions of several members, each at its
        best iterate, instead of one member: the weights are nonnegative, sum to one,
        and minimise the loss of the held-out predictions on the rows that all members
        have held out. The loss is the squared error, or the log loss for classes, whose
        probabilities are averaged, regardless of the losses of the members. For other
        losses that members share, and for scorers, members are selected greedily, with
        replacement. Nothing is refitted. A single member is kept unchanged. "blend"
        needs ``criterion`` "cv", "loo" or a scorer, arrays in memory, and classifiers
        with ``predict_proba``.
    patience : {"auto"}, int or None, default="auto"
        The run stops once this number of updates has followed the best iterate; it is
        extended in stages, each of which continues the trajectory. "auto" is the number
        of updates at one sixth of the values of alpha (or C) along a "path", 50 for
        boosted trees, 10 for passes through the rows, and None for any other run. None
        runs all updates. With ``estimator=None``, "auto" and no ``time_limit`` boosted
        trees run last, and also end where further ones are not expected to improve the
        loss of what is kept by a tenth of its standard error.
    param_grid : dict or list of dicts, default=None
        Values of the estimator's parameters, as for
        :class:`sklearn.model_selection.GridSearchCV`. One trajectory is run per
        combination, and parameters and iteration are chosen jointly. A combination, or
        a member, that raises an error has the score NaN, and a FitFailedWarning names
        it; the error is raised if all do. Random splits of
        ``cv`` are drawn once and shared by all. With several members a key is
        ``name__parameter``.
    search : {"all", "race"}, default="all"
        How combinations of ``param_grid`` are compared. "all" runs each of them in
        full. "race" first runs each on one of the folds alone, then on the next, on
        half of them at most; after every fold those end whose mean loss on the rows
        held out exceeds the least one by more than 1.645 standard errors of the
        difference. The others are then run in full, with the results that they have
        without a race. Members of a blend, or of different losses, do not end: their
        combinations compete within each member. "race" needs several folds, and arrays
        in memory; ``criterion`` must be "auto" or "cv".
    n_candidates : int, default=None
        Number of combinations to draw from ``param_grid``, of every member that it has
        parameters of, as :class:`sklearn.model_selection.ParameterSampler` draws them:
        values may then also be distributions, such as ``scipy.stats.loguniform``. None:
        all combinations.
    task : {"auto", "regression", "classification"}, default="auto"
        The task for ``estimator=None``; a given estimator must have this task. "auto"
        infers it from y if that is unambiguous: strings and booleans are classes,
        numbers that are not integers are regression targets.
        :class:`SelfStoppingRegressor` and :class:`SelfStoppingClassifier` have one task
        each.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, for classification: of all members and of a blend, in
        the fits and in the losses by which iterates, members and weights are chosen.
        The ``sample_weight`` of a row is multiplied by the weight of its class.
        "balanced" gives all classes the same total weight. Members must take
        ``sample_weight``, and have no weights of classes themselves. The scores of a
        scorer as ``criterion`` are weighed only if metadata routing passes it
        ``sample_weight``.
    encoder : {"auto"}, TableEncoder or None, default="auto"
        Makes numbers of the columns of X, such as categories, dates and texts, and
        fills in missing values: for each member the columns that it can use, as
        :class:`TableEncoder` describes. It is fitted to X once. What looks at y, such
        as the mean target of categories, is fitted anew in every fold. "auto" is
        ``TableEncoder()`` with ``estimator=None``, unless X is an array of numbers, and
        None with an ``estimator``: X is then passed on as it is.
    time_limit : float, default=None
        Seconds that ``fit`` may take, with everything that follows the runs; None: no
        limit. The run whose first update is expected to be the shortest is first, and
        takes at least one update, however long it takes. Other members, and
        combinations of ``param_grid``, run in the order of the time that they are
        expected to take, by their kind, the shape of X and the number of classes; with
        8000 rows or more, boosted trees of the default list are the second. A run that
        would take longer than what is left is cut between two updates, and its best
        iterate so far is kept; a member whose first update would is left out. One
        warning names both, and ``results_`` has the reason. There is no
        ``best_score_corrected_`` if no time is left for it. An update is not
        interrupted, nor are estimators that have only one, such as AdaBoost. With
        ``n_jobs`` the first runs by itself. Processes are then started if more than
        about three seconds are left, more on a busy machine, and runs do not wait for
        them: until they have started the next ones are in this process too.
    verbose : int, default=0
        1 prints a line for every member as soon as its runs have ended: the best
        iterate, the number of iterates, seconds, the held-out score of the best one;
        and a last one for what is kept. 2 prints a line for every combination of
        ``param_grid`` too. Members print their own lines if their ``verbose`` is set.
    n_jobs : int, default=None
        Number of trajectories, of members and of ``param_grid``, that run in parallel.
        None means 1 unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Controls the partitions of ``best_score_corrected_``, and is the seed of models
        without a ``random_state``: all combinations of ``param_grid`` have the same.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, set to the chosen iterate. With ``rule="blend"`` and
        several positive weights it predicts the weighted mean of the predictions of
        ``members_``.
    encoder_ : TableEncoder or None
        The fitted encoder, with the kind of every column, and those that were dropped
        and why. None without one.
    members_ : dict of str to estimator
        The members kept, each set to its chosen iterate: all with ``rule="blend"``,
        otherwise the chosen one.
    weights_ : dict of str to float
        Weight of every member in ``estimator_``: with ``rule="blend"`` the weight of
        its predictions, otherwise one for the chosen member and zero for all others.
    best_iter_ : int
        Index of the chosen iterate, as a row of the paths. With ``rule="blend"`` this,
        ``best_member_``, ``best_params_`` and ``path_`` refer to the member with the
        largest weight.
    best_score_ : float
        Estimated risk of the chosen iterate, or of the blend. It is a loss, and smaller
        is better, unless ``criterion`` is a scorer: then it is the score on the
        held-out rows, and greater is better.
    best_score_se_ : float
        Standard error of ``best_score_``.
    best_score_corrected_ : float
        Estimated risk of the chosen iterate, corrected for the choice: the minimum of
        many estimates is optimistic, the more so the fewer rows there are. The choice
        among all members, combinations and iterates, or of the weights and iterates of
        a blend, is repeated on four fifths of the held-out rows and evaluated on the
        other fifth, for 40 random partitions of the rows, stratified for classes. The
        rows of a group stay together, if groups are passed to ``fit``, and so do copies
        of a row. A combination that a race has ended counts with the losses of the rows
        that it has held out, and elsewhere with those of the chosen one and the mean
        difference; not in a blend. More than 1000 rows, or groups, are drawn in 1000
        parts. NaN if no row can be left out, as of a single group. Reading it raises an
        AttributeError that says why if the losses of single rows are not available, as
        with scorers, if there are more than 8 million of them, or if ``time_limit`` was
        too short.
    best_score_corrected_se_ : float
        Standard error of ``best_score_corrected_``, over rows, or over groups.
    possible_gain_ : float
        With 95% confidence, no iterate after ``best_iter_`` has a risk that is smaller
        than that of ``best_iter_`` by more than this; in a blend, of ``best_member_``.
        0 if the last iterate is chosen. It is a bound for all later iterates of the run
        at once, whichever is chosen, by a bootstrap of their paired differences on the
        held-out rows; a run that has converged would not change after it. A bound far
        below what matters says that patience was enough. It is there where
        ``best_score_corrected_`` is. If groups are passed to ``fit``, it holds for new
        groups from two groups on, and is wide for fewer than about ten. Where a few
        groups differ much from all others, the confidence is 87% for ten, and 92% for
        thirty.
    best_member_ : str
        Name of the chosen member, or the class name of a single estimator.
    best_params_ : dict
        The chosen combination of ``param_grid``, as parameters of the member; with a
        sequence of values in one trajectory, also the alpha (or C) of the chosen
        iterate. It is absent at iterate 0, the start, before any value has been used,
        unless the start is the solution at the first value, as on a path of the lasso.
    criterion_ : str
        The criterion that was used.
    task_ : {"regression", "classification"}
        The task that was used.
    path_ : ndarray of shape (n_iter_ + 1,)
        Value of the criterion at every iterate of the chosen run. In a blend of
        classifiers it is the log loss of held-out probabilities for every member, also
        for one that stops by another loss, such as a kernel machine by the squared
        error; its ``best_iter_`` may then not be the least.
    member_paths_ : dict of str to ndarray
        The same for every member, with its best combination of parameters.
    results_ : dict of lists
        One entry per member, combination and criterion that was computed: "member",
        "params", "criterion", "loss" (the name of the loss, or of the scorer, of the
        best score), "best_iter", "best_score", "best_score_se", then what compares
        members: "metric" (the loss or scorer of the criterion, or the accuracy or R^2
        if losses differ), "better" ("smaller" or "greater": which scores are better),
        "score" and "score_se" (its standard error), and "weight" (in ``estimator_``),
        "n_iter", "fit_time" (seconds for the run and its estimates), "left_out" (why a
        member, or a combination, was not run, or the error that it has raised, else
        empty). :meth:`leaderboard` is a sorted table of it.
    cv_results_ : dict of arrays
        The combinations of all members as in
        :class:`sklearn.model_selection.GridSearchCV`: "params", "param_<name>",
        "mean_test_score" (the scores of ``results_``, losses times -1: greater is
        better), "rank_test_score", and where members are compared by mean losses of
        folds "split<k>_test_score" and "std_test_score". Beside these, "member",
        "se_test_score" (the standard error of the mean) and "fit_time" (of the one run
        of a combination). A combination that has failed has the last rank.
    best_index_ : int
        The row of ``cv_results_`` of ``best_member_`` with ``best_params_``.
    best_estimator_ : estimator
        ``estimator_``, under the name of scikit-learn's searches.
    held_out_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        What ``estimator_`` predicts for every row of X from folds that have not seen
        the row: probabilities of all classes if the classifier has them, otherwise
        decisions. The mean over the folds that hold a row out, and NaN if there is
        none. Not with Dask input or a :class:`RowSummary`, and not in a pickle if there
        are more than 32,768 numbers. ``estimator_`` was chosen by
        these rows, so that scores of them are as optimistic as ``best_score_``.
    evals_result_ : dict of dict
        Learning curves, named as in LightGBM and XGBoost: of every member "held_out",
        and "train" if it is one of ``members_``, each a dict from the name of a loss,
        or of the scorer, to its value at every iterate, (n_iter + 1,).
    coef_ : ndarray of the shape of ``estimator_.coef_``
        Coefficients of the chosen iterate, for linear models and for blends whose
        members are all linear in the columns of X.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the chosen iterate, for linear models.
    feature_importances_ : ndarray of shape (n_features,)
        Importances of the features by the chosen iterate, if the model has them, such
        as a forest. For others, such as blends and HistGradientBoosting, see
        :class:`PermutationImportanceDisplay`.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, for classifiers.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    TrajectoryLasso : Lasso that records its trajectory.
    IterativeRidge : Ridge that records its trajectory.

    References
    ----------
    Bellec and Tan (2024), "Uncertainty quantification for iterative algorithms
    in linear models with application to early stopping", arXiv:2404.17856.

    Tibshirani and Tibshirani (2009), "A bias correction for the minimum error rate in
    cross-validation", arXiv:0908.2904, and Tsamardinos, Greasidou and Borboudakis
    (2018), "Bootstrapping the out-of-sample predictions for efficient and accurate
    cross-validation", Machine Learning 107(12), for ``best_score_corrected_``.

    Breiman (1996), "Stacked regressions", Machine Learning 24(1), and Caruana,
    Niculescu-Mizil, Crew and Ksikes (2004), "Ensemble selection from libraries of
    models", ICML, for ``rule="blend"``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import IterativeRidge, TrajectoryEarlyStoppingCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TrajectoryEarlyStoppingCV(IterativeRidge(alpha=0.0)).fit(X, y)
    >>> bool(0 < model.best_iter_ < model.estimator_.n_iter_)
    True
    >>> model.predict(X[:2]).shape
    (2,)

    The best iterate of several estimators:

    >>> from skacv import TrajectoryLasso
    >>> members = [("lasso", TrajectoryLasso("path")), ("ridge", IterativeRidge(0.0))]
    >>> both = TrajectoryEarlyStoppingCV(members, random_state=0).fit(X, y)
    >>> sorted(both.member_paths_)
    ['lasso', 'ridge']

    Their blend:

    >>> blend = both.set_params(rule="blend").fit(X, y)
    >>> round(sum(blend.weights_.values()), 6)
    1.0
    """

    _parameter_constraints = {
        "estimator": "no_validation",  # fit says what it lacks
        "criterion": [str, callable],
        "cv": ["cv_object"],
        "rule": [StrOptions({*RULES, "auto", "blend"})],
        "patience": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "param_grid": [dict, list, None],
        "search": [StrOptions({"all", "race"})],
        "n_candidates": [Interval(Integral, 1, None, closed="left"), None],
        "task": [StrOptions({"auto", *PORTFOLIOS})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "encoder": [StrOptions({"auto"}), TableEncoder, None],
        "time_limit": [Interval(Real, 0, None, closed="neither"), None],
        "verbose": ["verbose"],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
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
        task: Literal["auto", "classification", "regression"] = "auto",
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        encoder: Literal["auto"] | TableEncoder | None = "auto",
        time_limit: float | None = None,
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | float | None = None,
        **params: Any,
    ) -> Self:
        """Run every trajectory once and keep the best iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
            Training data, passed on to the estimator. With a :class:`RowSummary`,
            ``cv`` is its number of folds, scorers cannot be used, and there is no
            ``best_score_corrected_``.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; None with a :class:`RowSummary`, which contains them. For a
            classifier labels, or which of several labels every row has, by 0 and 1.
        sample_weight : array-like of shape (n_samples,) or float, default=None
            Weights of the rows, not negative, for the estimators that take them; one
            number is the weight of all rows.
        **params : dict
            Passed on to the estimator's ``fit``, and to the splitter ``cv``, such as
            ``groups``; with metadata routing enabled, as they request.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, if targets are missing, if ``groups`` or
            ``cv`` would be ignored, if the task cannot be inferred from y, or if the
            criterion is undefined (NaN) for every iterate. The estimator is then left
            unchanged. If all candidates fail, the error of the first is raised.
        """
        search = Search(self, X, y, {"sample_weight": sample_weight, **params})
        search.choose()
        vars(self).update(search.fitted_attributes(), _dropped=())
        search.advise()
        return self

    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> float:
        """Score of the chosen iterate, from the ``score`` method of its estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        **params : dict
            Passed on to the estimator's ``score``.

        Returns
        -------
        float
        """
        chosen = self._chosen()
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        receiver = self._receiver(self.best_member_)
        params = routed(self, "score", receiver, "score", params)
        return chosen.score(X, y, **params)

    def drop_record(self, intervals: bool = True) -> Self:
        """A copy that keeps only what predictions of the chosen iterates need.

        Its ``members_`` are those with weight, each with its chosen iterate alone. It
        lacks other iterates and stages, held-out predictions, ``path_`` and
        ``member_paths_``, and rows of X that were kept for other methods than
        ``predict``; reading these raises an error that says so. It has
        ``best_score_``, ``results_`` and other numbers, and its predictions are the
        same. Estimators of other packages that have no ``drop_record`` are kept whole.
        This object keeps its record.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep what :meth:`predict_interval` and :meth:`predict_set` need
            of held-out rows, two numbers for each of 16,384 rows at most. The method
            "jackknife+" needs the record: "auto" is then "loo" instead. The widths of
            "scaled" depend on the prediction then.

        Returns
        -------
        estimator
            The fitted copy.

        Raises
        ------
        NotFittedError
            If this object is not fitted.

        Examples
        --------
        >>> import pickle
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from skacv import TrajectoryEarlyStoppingCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> trees = HistGradientBoostingRegressor(random_state=0)
        >>> model = TrajectoryEarlyStoppingCV(trees, random_state=0).fit(X, y)
        >>> n_bytes = len(pickle.dumps(model))
        >>> len(pickle.dumps(model.drop_record())) < n_bytes
        True
        """
        chosen, small = self._chosen(), copy(self)
        small.estimator_ = kept = without_record(chosen, intervals)
        # The chosen member, or those of a blend, are the same objects in both places,
        # but for members behind an encoder of their own.
        shared = {id(chosen): kept}
        for name, member in getattr(chosen, "members_", {}).items():
            shared[id(member)] = kept.members_[name]
        for name, member in self.members_.items():
            if self.weights_[name] > 0 and id(member) not in shared:
                shared[id(member)] = without_record(member, intervals=False)
        small.members_ = {
            name: shared[id(member)]
            for name, member in self.members_.items()
            if self.weights_[name] > 0
        }
        small._drop({"path_", "member_paths_", "_path_error", "_held_out_prediction"})
        return small

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        held_out = state.get("_held_out_prediction")
        if held_out is not None and held_out.size > MOST_OF_CHOICE:
            state = {**state, "_held_out_prediction": None}
        return state
