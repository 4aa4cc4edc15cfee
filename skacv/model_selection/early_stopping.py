"""The estimator that runs once and keeps the best iterate."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin
from sklearn.model_selection import ParameterGrid
from sklearn.utils import check_random_state
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed

from .._compat import (
    CallbackSupportMixin,
    Composition,
    Interval,
    StrOptions,
    _fit_context,
    callback_context,
    check_names,
    has_callbacks,
    with_callbacks,
)
from .._estimator.readers import ESTIMATES
from .chosen import ChosenIterate
from .criteria import (
    PathJudge,
    ScorerJudge,
    automatic,
    scorer_of,
    with_predictions,
)
from .members import (
    candidate_of,
    check_grid,
    check_losses,
    check_members,
    combinations,
    judge_alike,
    named,
    tags_of,
)
from .optimism import Judged, corrected_score
from .portfolios import PORTFOLIOS, task_of, that_take
from .rules import RULES, place_of_least
from .splits import draw_once, take_back
from .stages import Stages, choice_of, fit_with_callbacks, prepare

RESULTS = (
    "member",
    "params",
    "criterion",
    "best_iter",
    "best_score",
    "best_score_se",
    "n_iter",
    "fit_time",
)


class TrajectoryEarlyStoppingCV(
    ChosenIterate, CallbackSupportMixin, MetaEstimatorMixin, Composition
):
    """Fit once and keep the iterate of least estimated risk.

    The estimator records its trajectory and what every iterate would cost on
    unseen rows; this one moves it to the best row. Nothing is refitted and no
    rows are held out.

    Parameters
    ----------
    estimator : estimator that records its trajectory, default=None
        One of skacv, such as :class:`TrajectoryLasso`, :class:`IterativeRidge` or
        :class:`TrajectoryLogisticRegression`, or another that
        :class:`skacv.model_selection.RecordsTrajectory` describes; this is a
        regressor or a classifier as that is.
        None is ``TrajectoryLasso(alpha="path", max_iter=20)``, which chooses
        alpha and the iteration in one run.
    criterion : {"auto", "risk", "loo", "cv"}, str or callable, default="auto"
        What the choice is made by: the estimator's ``risk_path_`` (memory
        matrix), ``loo_path_`` (leave-one-out) or ``cv_path_`` (folds; 5 where
        its ``cv`` is None). The name of a scikit-learn scorer, or a callable
        ``scorer(estimator, X, y)``, is evaluated on the pooled held-out
        predictions of every iterate: those of the folds where the estimator
        has ``cv``, else of leave-one-out; an undefined score (NaN) is worst.
        "auto" is "loo" where leaving out every row is cheap (linear updates with
        up to 2000 rows or columns and 10,000 rows; others, small data) or asked
        for by ``loo=True``; else "risk"; "cv" where the estimator has
        ``risk=False``, or no memory matrix because its loss is not the squared
        error. All combinations of ``param_grid`` are judged by the same: by what
        every one of them can compute.
    rule : {"min", "one_se"}, default="min"
        The best iterate, or the earliest within one standard error of it.
    patience : int, default=None
        Stop running when the best iterate has been followed by so many others.
        The run is extended in stages that double, ``patience`` updates first,
        each going on with the trajectory. None runs ``max_iter`` updates.
    param_grid : dict or list of dicts, default=None
        Values of the estimator's parameters, as for
        :class:`sklearn.model_selection.GridSearchCV`. One trajectory is run per
        combination, and parameters and iteration are chosen jointly from their
        paths. Random splits of ``cv`` are drawn once, and are the same for all.
    n_jobs : int, default=None
        Trajectories of ``param_grid`` run in parallel; None is 1 unless in a
        :func:`joblib.parallel_config` context.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, at the chosen iterate.
    best_iter_ : int
        Its row in the paths.
    best_score_ : float
        The estimated risk there (smaller is better), or the scorer's value.
    best_score_se_ : float
        Its standard error.
    best_params_ : dict
        The chosen combination of ``param_grid``; with a sequence of alphas in
        one trajectory, also the alpha (or C) in force at the chosen iterate.
    criterion_ : str
        The criterion that was taken.
    path_ : ndarray of shape (n_iter_ + 1,)
        Its value for every iterate.
    results_ : dict of lists
        One entry per combination and criterion that was computed: "params",
        "criterion", "best_iter", "best_score", "best_score_se", "n_iter",
        "fit_time" (seconds for the run and what judges it).
    coef_ : ndarray of the shape of ``estimator_.coef_``
        Coefficients of the chosen iterate, of a linear model.
    intercept_ : float or ndarray of shape (n_outputs,)
        Its intercept, of a linear model.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, of a classifier.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where X has string column names.

    See Also
    --------
    TrajectoryLasso : Lasso that records its trajectory.
    IterativeRidge : Ridge that records its trajectory.

    References
    ----------
    Bellec and Tan (2024), "Uncertainty quantification for iterative algorithms
    in linear models with application to early stopping", arXiv:2404.17856.

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
    """

    _parameter_constraints = {
        "estimator": "no_validation",  # fit says what it lacks
        "criterion": [str, callable],
        "rule": [StrOptions(set(RULES))],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "param_grid": [dict, list, None],
        "task": [StrOptions({"auto", *PORTFOLIOS})],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
    }
    _parts = "estimator"

    def __init__(
        self,
        estimator=None,
        *,
        criterion="auto",
        rule="min",
        patience=None,
        param_grid=None,
        task="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.criterion = criterion
        self.rule = rule
        self.patience = patience
        self.param_grid = param_grid
        self.task = task
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _members(self):
        """Name and estimator of all that may run, before data are seen."""
        if self.estimator is None:
            task = "regression" if self.task == "auto" else self.task
            return PORTFOLIOS[task]()
        if isinstance(self.estimator, list):
            return named(self.estimator)
        return [(type(self.estimator).__name__, self.estimator)]

    def _is_portfolio(self):
        return self.estimator is None or isinstance(self.estimator, list)

    def _members_for(self, X, y):
        """Those that run on these data, their names and kinds checked."""
        members = self._members()
        if self.estimator is None:
            task = task_of(y) if self.task == "auto" else self.task
            members = that_take(PORTFOLIOS[task](), X, y)
            if self.criterion in ESTIMATES:
                offered = ESTIMATES[self.criterion].is_offered_by
                members = [pair for pair in members if offered(pair[1])]
        if self._is_portfolio():
            check_names(self, [name for name, _ in members])
        check_members(members, type(self).__name__)
        return members

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y, **params):
        """Run every trajectory once and move to the best iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, passed on as they are.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        **params : dict
            Passed on to the estimator's ``fit``, such as ``sample_weight``;
            with metadata routing enabled, as the estimator requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            On invalid parameters or data, and where the criterion is undefined (NaN)
            for every iterate; the estimator is left as it was.
        """
        members = self._members_for(X, y)
        candidates = self._candidates(members)
        rng = check_random_state(self.random_state)
        if self._is_portfolio():
            judge_alike(candidates, rng)
        judge = self._judge(candidates, X, y, params)
        for candidate in candidates:
            prepare(candidate.estimator, judge.estimate, candidate.params)
        fit_params = {
            name: self._routed(self._receiver(name), "fit", params)
            for name, _ in members
        }
        self._share(members, candidates, X, y, fit_params)
        runs = self._run(judge, candidates, X, y, fit_params, params)
        runs, judge = self._on_common_rows(runs, judge)
        rule = RULES[self.rule]
        choices = [choice_of(run.estimator, run.path, judge, rule) for run in runs]
        best = self._best(choices, judge)
        results = self._results(candidates, runs, choices, judge)
        corrected = self._corrected(runs, judge, rng)
        self._keep(candidates[best], runs[best], choices[best])
        self.paths_ = self._paths(candidates, runs, choices, judge)
        self.best_score_corrected_, self.best_score_corrected_se_ = corrected
        self.criterion_ = judge.name
        self.results_ = results
        return self

    def _candidates(self, members):
        """An estimator of every member and combination, its parameters checked."""
        grid = self.param_grid
        if not self._is_portfolio():
            (name, member), *_ = members
            return [
                candidate_of(name, member, combination)
                for combination in ParameterGrid(grid or {})
            ]
        check_grid(grid, [name for name, _ in members])
        return [
            candidate_of(name, member, combination)
            for name, member in members
            for combination in combinations(grid, name)
        ]

    def _share(self, members, candidates, X, y, fit_params):
        """Draw splits once for all, and let the runs of a member share their work."""
        if self._is_portfolio():
            origins = [None] * len(candidates)
        else:
            own = ESTIMATES["cv"].setting(self.estimator)
            origins = [each.params.get("cv", own) for each in candidates]
        estimators = [each.estimator for each in candidates]
        draw_once(estimators, origins, X, y, fit_params[members[0][0]])
        for name, member in members:
            own = [each.estimator for each in candidates if each.member == name]
            member.share_work(own, X, y)

    def _on_common_rows(self, runs, judge):
        """Members are compared by the rows that all of them have held out."""
        if not self._is_portfolio():
            return runs, judge
        common = judge.on_common_rows([run.estimator for run in runs])
        if common is judge:
            return runs, judge
        return [run._replace(path=common.path(run.estimator)) for run in runs], common

    def _corrected(self, runs, judge, rng):
        """The score of choosing so, by the bootstrap; and its standard error."""
        judged = []
        for run in runs:
            rows = run.estimator.recorded_iterations()

            def error(place, run=run, rows=rows):
                return judge.standard_error(run.estimator, rows[place])

            judged.append(Judged(judge.costs(run.estimator), rows, error))
        if any(each.costs is None for each in judged):
            return np.nan, np.nan
        return corrected_score(judged, RULES[self.rule], rng)

    @staticmethod
    def _paths(candidates, runs, choices, judge):
        """The path of every member, that of its best combination."""
        found = {}
        for name in dict.fromkeys(each.member for each in candidates):
            own = [k for k, each in enumerate(candidates) if each.member == name]
            values = [judge.sign * choices[k].score for k in own]
            found[name] = runs[own[place_of_least(values)]].path
        return found

    def _keep(self, candidate, run, choice):
        """The chosen iterate of the best run."""
        take_back(run.estimator)
        self.estimator_ = run.estimator.at_iteration(choice.iteration)
        self.best_iter_ = choice.iteration
        self.best_score_ = choice.score
        self.best_score_se_ = choice.standard_error
        self.best_member_ = candidate.member
        self.best_params_ = dict(candidate.params)
        self.best_params_.update(run.estimator.parameters_at(choice.iteration))
        self.path_ = run.path

    @staticmethod
    def _best(choices, judge):
        """Number of the candidate with the best choice."""
        best = place_of_least([judge.sign * choice.score for choice in choices])
        if np.isnan(choices[best].score):
            raise ValueError(
                f"criterion={judge.name} is undefined (NaN) for every iterate of "
                "every candidate."
            )
        return best

    def _judge(self, candidates, X, y, params):
        """What judges the iterates of all candidates."""
        criterion, estimators = self.criterion, [each.estimator for each in candidates]
        if isinstance(criterion, str) and criterion == "auto":
            is_one = not self._is_portfolio()
            criterion = automatic(estimators, X, y) if is_one else "cv"
        if isinstance(criterion, str) and criterion in ESTIMATES:
            if len({each.member for each in candidates}) > 1:
                check_losses(candidates, X, y)
            return PathJudge(ESTIMATES[criterion], y)
        routed = {}
        if get_config()["enable_metadata_routing"]:
            routed = self._routed("criterion", "score", params)
        is_one = not self._is_portfolio()
        held_out = ESTIMATES[with_predictions(estimators) if is_one else "cv"]
        members = {each.member: each.estimator for each in candidates}.values()
        return ScorerJudge.of(criterion, held_out, members, X, y, routed)

    def _results(self, candidates, runs, choices, judge):
        """A row for every candidate and every criterion that it has computed."""
        rule, rows = RULES[self.rule], []
        for (member, params, _), run, choice in zip(candidates, runs, choices):
            estimator, chosen = run.estimator, {judge.name: choice}
            for name, estimate in ESTIMATES.items():
                if hasattr(estimator, estimate.path) and name != judge.name:
                    own = PathJudge(estimate)
                    chosen[name] = choice_of(estimator, own.path(estimator), own, rule)
            rows += [
                (member, params, name, *choice, estimator.n_iter_, run.seconds)
                for name, choice in chosen.items()
            ]
        return dict(zip(RESULTS, map(list, zip(*rows))))

    def _run(self, judge, candidates, X, y, fit_params, params):
        """Fit the candidates, each with its part of the callbacks' tree."""
        stages = Stages(judge, self.patience)
        if not has_callbacks(self):
            return Parallel(n_jobs=self.n_jobs)(
                delayed(stages.run)(each.estimator, X, y, fit_params[each.member])
                for each in candidates
            )
        data = {"X": X, "y": y, "metadata": params or None}
        context = callback_context(self, len(candidates))
        context.call_on_fit_task_begin(estimator=self, **data)
        tasks = [context.subcontext(task_name="trajectory") for _ in candidates]
        run = partial(fit_with_callbacks, self, stages)
        runs = Parallel(n_jobs=self.n_jobs)(
            delayed(run)(each.estimator, task, data, fit_params[each.member])
            for each, task in zip(candidates, tasks)
        )
        context.call_on_fit_task_end(estimator=self, **data)
        return runs

    def score(self, X, y, **params):
        """Score of the chosen iterate, as its estimator scores.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            Passed on to the estimator's ``score``, such as ``sample_weight``.

        Returns
        -------
        float
        """
        chosen = self._chosen()
        params = self._routed(self._receiver(self.best_member_), "score", params)
        return chosen.score(X, y, **params)

    def _receiver(self, name):
        """What the member of that name is called where metadata are routed."""
        return name if self._is_portfolio() else "estimator"

    def _routed(self, receiver, method, params):
        """What the method of the estimator, or the scorer, is to get of ``params``."""
        if not get_config()["enable_metadata_routing"]:
            return params
        is_scored = method == "score" and receiver != "criterion"
        caller = "score" if is_scored else "fit"
        return process_routing(self, caller, **params)[receiver][method]

    def get_metadata_routing(self):
        """Metadata routing of this object.

        Returns
        -------
        MetadataRouter
        """
        mapping = (
            MethodMapping()
            .add(caller="fit", callee="fit")
            .add(caller="score", callee="score")
        )
        router = MetadataRouter(owner=self)
        for name, member in self._members():
            receiver = {self._receiver(name): member}
            router.add(method_mapping=mapping, **receiver)
        if self.criterion not in ("auto", *ESTIMATES):
            router.add(
                criterion=scorer_of(self.criterion),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        return router

    def __sklearn_is_fitted__(self):
        return "estimator_" in vars(self)

    def __sklearn_tags__(self):
        # Members that run by default are those that can take the data.
        needs = any if self.estimator is None else all
        return tags_of(self._members(), super().__sklearn_tags__(), needs)
