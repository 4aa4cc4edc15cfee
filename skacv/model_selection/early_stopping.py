"""The estimator that runs each model once and keeps the best iterate."""

from collections.abc import Callable
from copy import copy
from numbers import Integral, Real
from time import perf_counter
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.utils import check_random_state

from .._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    with_callbacks,
)
from .._estimator.data.shares import share_of_labels, shares_of
from .._estimator.data.training_data import replace_fitted
from .._estimator.delegation import SaysWhyMissing, route_metadata
from .._estimator.docstrings import OFFSETS, documented
from .._estimator.estimates.fitted_state import (
    MOST_OF_CHOICE,
    drop_record_of,
)
from .._estimator.estimates.terms import terms_of
from .._estimator.parameters import set_parameters
from .._estimator.prediction.offsets import given
from .._typing import RandomState
from ..tables import TableEncoder
from .advice import advise, names_keywords
from .candidates import list_candidates
from .choose_criteria import choose_criteria
from .chosen import ChosenIterate
from .criteria import MEANS, RULES
from .data import SearchData
from .defaults.portfolio import PORTFOLIOS
from .incomplete_targets import (
    IncompleteTargets,
    TargetsOneByOne,
    check_is_of_all,
    fit_targets,
    held_out_of_targets,
)
from .members import ComposedOfMembers
from .report import FitReport
from .results import ComparedResults
from .rows_of_classes import RowsOfClasses
from .runner import Budget, run_all
from .select import (
    best_rows,
    corrected_score,
    fold_scores,
    held_out_means,
    kept_models,
    list_members_alike,
    list_results,
    select,
)
from .shared import shared_work
from .trial import leave_out_the_weightless

# Fitted attributes that ``drop_record`` leaves out.
PATHS = "path_", "member_paths_"
# What a fit has left of its choice, besides fitted attributes; and what only fits to
# targets one by one leave.
OF_CHOICE = "_best_indices", "_fold_scores", "_alike", "_path_error", "_corrected"
OF_TARGETS = "estimators_", "target_names_"


class TrajectoryEarlyStoppingCV(
    ChosenIterate,
    ComparedResults,
    SaysWhyMissing,
    CallbackSupportMixin,
    MetaEstimatorMixin,
    ComposedOfMembers,
):
    """Fit once and keep the iterate with the smallest estimated risk.

    The estimator records its iterates or stages, and the error of each on unseen rows
    is estimated. The iterate with the smallest estimate is kept: nothing is refitted,
    and no rows are set aside. Several estimators can be compared on the same rows and
    folds; the best iterate overall is kept, or a weighted mean of the best of each.

    The user guide explains :doc:`boosting </guide/boosting>`, :doc:`several models and
    their blend </guide/portfolios>` and :doc:`the estimates </estimates>`.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator), default=None
        A model of skacv, a :doc:`staged model </guide/boosting>` such as boosted trees,
        a forest or a network, or a Pipeline that ends in one. A list compares several
        members, also :doc:`without iterations </guide/portfolios>`. None: the
        :doc:`default models </guide/portfolios>` for the ``task``.
    criterion : {"auto", "risk", "loo", "cv"}, str or callable, default="auto"
        The estimate to minimise: "risk" (memory matrix), "loo" (leave-one-out) or "cv"
        (folds); or a scorer to maximise, by its scikit-learn name or as a callable.
        "auto" :doc:`depends on the model </estimates>`. For rankers also "ndcg@5" or
        "map@10", with any number or none; for :doc:`survival times </guide/survival>`
        "cox" (the partial likelihood of "cv"), "concordance" or "ibs" (minus the
        integrated Brier score).
    cv : int, splitter or iterable, default=None
        Folds, as in scikit-learn, for estimators without their own ``cv``; with
        ``groups``, a number means random folds of whole groups. None: five random ones,
        stratified for classes, or only the first if it has enough rows (about 2000);
        forests and bagging are judged by :doc:`out-of-bag predictions
        </guide/boosting>` of their rows where possible.
    rule : {"auto", "min", "one_se", "blend", "average"}, default="auto"
        "min" keeps the best iterate, "one_se" the earliest within one standard error of
        it, "blend" a weighted mean of all members at their best, "average" a weighted
        mean of :doc:`iterates of the best run </estimates>`. "auto": "blend" for the
        default models where possible, otherwise "min".
    patience : {"auto"}, int or None, default="auto"
        Number of updates without improvement after which a run stops; None runs all
        updates. "auto": 50 for boosted trees, 10 for passes over the rows, a sixth of
        the values of alpha (or C) on a "path", otherwise None.
    min_delta : {"auto"} or float, default="auto"
        The least gain for which a run with ``patience`` goes on, in units of the
        criterion: the gain to expect of all further iterates, if it falls as the last
        two doublings of their number show. "auto": for boosted trees a tenth of the
        standard error of the criterion; for classes at least its value at the start
        over the number of held-out rows. 0: patience alone ends a run.
    param_grid : dict or list of dicts, default=None
        Values to compare, as in :class:`sklearn.model_selection.GridSearchCV`, in one
        run per combination; keys of several members are ``name__parameter``. A
        combination that fails scores NaN, with a FitFailedWarning.
    search : {"all", "race"}, default="all"
        "all" runs every combination of ``param_grid`` in full. "race" first runs them
        on up to half of the folds and stops those that are :doc:`significantly worse
        </guide/boosting>` than the best; the others go on with all folds.
    n_candidates : int, default=None
        Number of combinations per member to draw from ``param_grid``, which may then
        contain distributions, as in :class:`sklearn.model_selection.ParameterSampler`.
        None: all combinations.
    task : {"auto", "regression", "classification"}, default="auto"
        Task of the default models. "auto" infers it from y if that is unambiguous:
        strings and booleans are classes, numbers that are not whole are regression
        targets.
    class_weight : dict, "balanced" or None, default=None
        Class weights in all fits and in the losses that choose, times
        ``sample_weight``. "balanced" gives all classes the same total weight. Members
        need ``sample_weight`` and no class weights of their own.
    encoder : {"auto"}, TableEncoder or None, default="auto"
        Encodes the columns of X for each member: strings, categories, dates, missing
        values. "auto" is ``TableEncoder()`` for the default models, unless X is a
        numeric array, and None for your own ``estimator``.
    time_limit : float, default=None
        Seconds that ``fit`` may take. Runs that would exceed it are cut and keep their
        best iterate so far; members that cannot start are :doc:`left out
        </guide/portfolios>`, with a warning. None: no limit.
    verbose : int, default=0
        1 prints a line for each member when its runs end, and one for what is kept; 2
        also one for each combination of ``param_grid``.
    n_jobs : int, default=None
        Number of runs in parallel, over members and combinations of ``param_grid``.
        None means 1 unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Controls the partitions of ``best_score_corrected_`` and the draws of
        ``n_candidates``, and seeds models without a ``random_state``, with one seed for
        all. The default folds do not depend on it.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, set to the chosen iterate; for a blend, the weighted mean
        of ``members_``.
    encoder_ : TableEncoder or None
        The fitted encoder: the kind of every column, and which were dropped and why.
    members_ : dict of str to estimator
        The members kept, each set to its chosen iterate: all with ``rule="blend"``,
        otherwise only the chosen one.
    weights_ : dict of str to float
        Weight of every member in ``estimator_``: its share of a blend, otherwise 1 for
        the chosen member and 0 for the others.
    best_iter_ : int
        The chosen iterate, as an index into ``path_``. In a blend this,
        ``best_member_``, ``best_params_`` and ``path_`` are those of the member with
        the largest weight.
    best_score_ : float
        Estimated risk of the chosen iterate or blend: a loss, smaller is better. With a
        scorer as ``criterion``, its score on held-out rows, greater is better.
    best_score_se_ : float
        Standard error of ``best_score_``.
    best_score_corrected_ : float
        ``best_score_`` without the optimism of having picked the best candidate, by
        repeating the choice on random parts of the held-out rows (:doc:`how
        </guide/portfolios>`). Not available for scorers, which have no per-row losses.
    best_score_corrected_se_ : float
        Standard error of ``best_score_corrected_``, over rows or groups.
    possible_gain_ : float
        Upper bound, with 95% confidence, on how much any later iterate of the run could
        improve the risk, from a bootstrap of paired differences on held-out rows.
        Available when ``best_score_corrected_`` is.
    best_member_ : str
        Name of the chosen member; for a single estimator, its class name.
    best_params_ : dict
        The chosen combination of ``param_grid``, and the parameters that change along a
        run: alpha or C on a path, the number of stages. Without alpha or C at iterate
        0, which precedes the first value.
    criterion_ : str
        The criterion that was used.
    task_ : {"regression", "classification", "ranking"}
        The task that was used.
    estimators_ : list of estimator
        Only where y lacks some of several targets: for each the stopping estimator that
        was fitted to the rows which have it. What is of one choice, such as ``path_``,
        is then an attribute of these, ``leaderboard()`` has a column "target", and
        ``best_score_`` is the mean of theirs.
    target_names_ : list
        Likewise: names of the columns of y, or their numbers.
    path_ : ndarray of shape (n_iter_ + 1,)
        The criterion at every iterate of the chosen run. For members of a
        classification blend it is the log loss, even if the member stops by another
        loss.
    member_paths_ : dict of str to ndarray
        The same for every member, with its best combination of parameters.
    results_ : dict of lists
        One entry per member, combination and criterion: scores and their standard
        errors, weights, iterations, seconds, and in "left_out" why something was not
        run. :meth:`leaderboard` is a sorted table of it.
    cv_results_ : dict of arrays
        All combinations in the format of :class:`sklearn.model_selection.GridSearchCV`,
        with losses times -1 so that greater is better, plus "member", "se_test_score"
        and "fit_time". Failed combinations rank last.
    best_index_ : int
        The row of ``cv_results_`` of ``best_member_`` with ``best_params_``.
    best_estimator_ : estimator
        ``estimator_``, under the name of scikit-learn's searches.
    held_out_prediction_ : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Out-of-fold predictions for the rows of X: probabilities if the classifier has
        them, otherwise decisions; NaN for rows that no fold holds out, and for targets
        that a row lacks. A pickle keeps up to 32,768 numbers.
    evals_result_ : dict of dict
        Learning curves in the format of LightGBM and XGBoost: "held_out" of every
        member and "train" of those kept, each a dict from the name of the loss or
        scorer to an array of shape (n_iter + 1,).
    coef_ : ndarray of the shape of ``estimator_.coef_``
        Coefficients of the chosen iterate, for linear models and blends of linear
        members.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of the chosen iterate, for linear models.
    feature_importances_ : ndarray of shape (n_features,)
        Feature importances of the chosen iterate, if the model has them. For other
        models and blends see :func:`sklearn.inspection.permutation_importance`.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, for classifiers.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    SelfStoppingRegressor : Default models for regression.
    SelfStoppingClassifier : Default models for classification.

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

    The best iterate of two estimators:

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
        "rule": [StrOptions({*RULES, *MEANS, "auto"})],
        "patience": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "min_delta": [StrOptions({"auto"}), Interval(Real, 0, None, closed="left")],
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
        rule: Literal["auto", "average", "blend", "min", "one_se"] = "auto",
        patience: Literal["auto"] | int | None = "auto",
        min_delta: Literal["auto"] | float = "auto",
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
    @documented(OFFSETS)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | float | None = None,
        offset: ArrayLike | float | None = None,
        **params: Any,
    ) -> Self:
        """Run every model once and keep the best iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
            Training data. With a :class:`RowSummary`, ``cv`` is its number of folds,
            and scorers and ``best_score_corrected_`` are not available.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets or labels; a matrix of 0 and 1 for several labels in a row; several
            targets for regression, NaN where a row lacks one (each target then
            :doc:`has its own fit </guide/regression>`, in ``estimators_``); for
            classifiers also :doc:`shares of classes </guide/classification>`, numbers
            that add up to one in every row, or from 0 to 1 for the second of two
            classes; events and times, as in :class:`TrajectoryCoxRegressor`. None with
            a :class:`RowSummary`, which contains them.
        sample_weight : array-like of shape (n_samples,) or float, default=None
            Nonnegative weights of the rows; a single number is the weight of every row.
        {offset}
        **params : dict
            Passed to the ``fit`` of the estimators and to the splitter, such as
            ``groups``; with metadata routing enabled, as they request. For rankers the
            query of every row, as ``qid``, or the sizes of the queries, as ``group``.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, ``groups`` or ``cv`` would be ignored,
            the task is unclear, or the criterion is NaN everywhere; this object is then
            unchanged. If all candidates fail, the first error is raised.
        """
        params = {"sample_weight": sample_weight, **params}
        targets = IncompleteTargets.of(self, X, y)
        if targets is not None:
            targets.check_enough(sample_weight)
            fitted = fit_targets(self, targets, X, params, offset)
            return self._take_targets(fitted, targets)
        copies = None if offset is not None else RowsOfClasses.of(self, X, y)
        if copies is not None:
            return self._take_copies(copies.fit(self, X, params), copies)
        return self._fit(X, y, params, offset)

    @with_callbacks
    def _fit(self, X, y, params, offset=None, factors=None, originals=None):
        """Fit to rows of which ``factors`` multiply the weights, (n_samples,).

        Rows with the same number in ``originals``, (n_samples,), are copies of one.
        """
        rng = check_random_state(self.random_state)
        of_rows = {"offset": offset, "factors": factors, "originals": originals}
        data = SearchData.of(self, X, y, params, **of_rows)
        data = leave_out_the_weightless(self, data)
        candidates = list_candidates(self, data, rng)
        criteria = choose_criteria(self, data, candidates)
        budget = Budget.of(self, data, criteria)
        with shared_work(self, data, candidates, criteria) as groups:
            run_all(self, data, candidates, criteria, budget, groups)
        return self._take(select(candidates, criteria, data, groups), data, rng)

    def _take(self, selection, data, rng):
        """Hold what is kept and the results of all runs, after all has succeeded."""
        compared, best = selection.comparison, selection.best
        paths, errors = compared.shown_paths()
        results = list_results(selection, data.left_out)
        kept, members = kept_models(selection, data)
        corrected = corrected_score(selection, data, rng)
        held_out, scores = held_out_means(selection, data), fold_scores(selection)
        model = compared.chosen[compared.index].estimator
        along_run = terms_of(model).parameters_at(model.record_, selection.iteration)
        rows, alike = best_rows(selection), list_members_alike(selection)
        for name in OF_TARGETS:
            vars(self).pop(name, None)
        self.estimator_, self.members_ = kept, members
        self.encoder_ = None if data.table is None else data.table.encoder
        self.weights_ = compared.weights
        self.best_iter_ = selection.iteration
        self.best_score_, self.best_score_se_ = compared.score
        self.best_member_ = best.member
        self.best_params_ = {**best.params, **along_run}
        self.criterion_ = compared.criterion.name
        self.task_ = data.task
        self.path_ = paths[best.member]
        self.member_paths_ = paths
        self.results_ = results
        self._best_indices, self._fold_scores, self._alike = rows, scores, alike
        self._path_error = errors[best.member]
        self._corrected, self._held_out_prediction = corrected, held_out
        advise(self, selection, data)
        if self.verbose:
            report = FitReport(self, data, selection.candidates)
            report.print_kept(compared, perf_counter() - data.begun)
        return self

    def _take_targets(self, fitted, targets):
        """Hold the fits of several targets, and what all have in common."""
        held_out = held_out_of_targets(fitted, targets)
        kept = TargetsOneByOne.of_fitted(fitted, targets.names)
        for name in OF_CHOICE:
            vars(self).pop(name, None)
        common = {
            "estimator_": kept,
            "estimators_": fitted,
            "target_names_": targets.names,
            "task_": "regression",
            "best_score_": float(np.mean([one.best_score_ for one in fitted])),
        }
        replace_fitted(self, common)
        self._held_out_prediction = held_out
        return self

    def _take_copies(self, fitted, copies):
        """Hold a fit to copies of the rows, one for each class."""
        held_out = copies.held_out_of(fitted)
        for name in OF_TARGETS:
            vars(self).pop(name, None)
        own = self.get_params(deep=False)
        vars(self).update(
            {name: value for name, value in vars(fitted).items() if name not in own}
        )
        self._held_out_prediction = held_out
        return self

    @documented(OFFSETS)
    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
        **params: Any,
    ) -> float:
        """Score of the chosen iterate, from the ``score`` method of its estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows.
        {new_offset}
        **params : dict
            Passed to the estimator's ``score``; for rankers ``qid`` or ``group``.

        Returns
        -------
        float
        """
        chosen = self._chosen()
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if "estimators_" in vars(self):
            return chosen.score(X, y, **given(offset), **params)
        shares = shares_of(y) if is_classifier(self) else None
        if shares is not None:
            labels = self.predict(X)
            return share_of_labels(shares, labels, self.classes_, sample_weight)
        receiver = self._receiver(self.best_member_)
        params = route_metadata(self, "score", receiver, "score", params)
        return chosen.score(X, y, **given(offset), **params)

    def drop_record(self, intervals: bool = True) -> Self:
        """A copy that keeps only what predictions of the chosen iterates need.

        The copy has the members with weight, each with its chosen iterate only. It
        lacks other iterates and stages, held-out predictions, ``path_`` and
        ``member_paths_``, and rows of X that only methods other than ``predict`` need;
        reading these raises an error that says so. It keeps ``best_score_``,
        ``results_`` and other numbers, and its predictions are the same. Models of
        other packages are kept whole. This object keeps its record.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep what :meth:`predict_interval` and :meth:`predict_set` need,
            from up to 16,384 held-out rows. "auto" is then "loo" instead of
            "jackknife+", and the widths of "scaled" depend on the prediction only.

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
        small.estimator_ = kept = drop_record_of(chosen, intervals)
        if "estimators_" in vars(self):
            small.estimators_, small._held_out_prediction = kept.estimators_, None
            return small
        # The chosen member, or those of a blend, are the same objects in both places,
        # but for members behind an encoder of their own.
        shared = {id(chosen): kept}
        for name, member in getattr(chosen, "members_", {}).items():
            shared[id(member)] = kept.members_[name]
        for name, member in self.members_.items():
            if self.weights_[name] > 0 and id(member) not in shared:
                shared[id(member)] = drop_record_of(member, intervals=False)
        small.members_ = {
            name: shared[id(member)]
            for name, member in self.members_.items()
            if self.weights_[name] > 0
        }
        for name in (*PATHS, "_path_error", "_held_out_prediction"):
            vars(small).pop(name, None)
        return small

    def __getattr__(self, name: str) -> Any:
        if "estimators_" in vars(self):
            check_is_of_all(self.estimators_, self.target_names_, name)
        if name in PATHS and "estimator_" in vars(self):
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(f"{message}: drop_record() has dropped it.")
        return super().__getattr__(name)

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        held_out = state.get("_held_out_prediction")
        if held_out is not None and held_out.size > MOST_OF_CHOICE:
            state = {**state, "_held_out_prediction": None}
        return state
