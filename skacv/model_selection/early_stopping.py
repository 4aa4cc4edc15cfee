"""The estimator that runs once and keeps the best iterate."""

from numbers import Integral

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.parallel import Parallel, delayed

from .._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    callback_context,
    has_callbacks,
    validate_parameters,
    with_callbacks,
)
from .._estimator.readers import ESTIMATES
from .._estimator.recording import check_records_trajectory
from ..linear_model import TrajectoryLasso
from .chosen import ChosenIterate
from .criteria import (
    WITH_PREDICTIONS,
    PathJudge,
    ScorerJudge,
    automatic,
    scorer_of,
)
from .rules import RULES, place_of_least
from .splits import draw_once, take_back
from .stages import Stages, choice_of, fit_with_callbacks, prepare

RESULTS = (
    "params",
    "criterion",
    "best_iter",
    "best_score",
    "best_score_se",
    "n_iter",
    "fit_time",
)


class TrajectoryEarlyStoppingCV(
    ChosenIterate, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator
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
        matrix), ``loo_path_`` (leave-one-out; of up to 500 rows where its ``loo``
        is "auto" and all of them are not cheap) or ``cv_path_`` (folds; where its
        ``cv`` is None, 5 drawn at random, of classes alike). The name of a
        scikit-learn scorer, or a callable ``scorer(estimator, X, y)``, is
        evaluated on the pooled held-out predictions of every iterate, those of
        "cv" or "loo" by the rule of "auto"; an undefined score (NaN) is worst.
        "auto" is what the estimator is told to compute: ``cv``, else ``loo=True``
        or a number, else ``risk`` other than "auto". Where that is left to us, it
        is "loo" if one decomposition leaves every row out at about the cost of
        folds (linear updates with the squared error, up to 2000 rows), else "cv".
        All combinations of ``param_grid`` are judged by the same: by what every
        one of them can compute.
    rule : {"min", "one_se"}, default="min"
        The best iterate, or the earliest within one standard error of it.
    patience : {"auto"}, int or None, default="auto"
        Stop running when the best iterate has been followed by so many others.
        The run is extended in stages, each going on with the trajectory. "auto"
        is those of five values of alpha (or C) along a "path", and None for any
        other run. None runs all updates.
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
        "patience": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "param_grid": [dict, list, None],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        estimator=None,
        *,
        criterion="auto",
        rule="min",
        patience="auto",
        param_grid=None,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.criterion = criterion
        self.rule = rule
        self.patience = patience
        self.param_grid = param_grid
        self.n_jobs = n_jobs

    def _inner(self):
        if self.estimator is None:
            return TrajectoryLasso(alpha="path", max_iter=20)
        return self.estimator

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
        check_records_trajectory(self._inner(), type(self).__name__)
        grid = list(ParameterGrid(self.param_grid or {}))
        candidates = self._candidates(grid)
        judge = self._judge(candidates, X, y, params)
        fit_params = self._routed("estimator", "fit", params)
        weights = fit_params.get("sample_weight")
        for candidate, combination in zip(candidates, grid):
            prepare(candidate, judge.estimate, combination, X, y, weights)
        draw_once(candidates, self._cv_of(grid), X, y, fit_params)
        candidates[0].share_work(candidates, X, y)
        stages = Stages(judge, self.patience)
        runs = self._run(stages, candidates, X, y, fit_params, params)
        choices = [
            choice_of(run.estimator, run.path, judge, RULES[self.rule]) for run in runs
        ]
        best = self._best(choices, judge)
        results = self._results(grid, runs, choices, judge)
        self._keep(grid[best], runs[best], choices[best])
        self.criterion_ = judge.name
        self.results_ = results
        return self

    def _candidates(self, grid):
        """An estimator of every combination, its parameters checked."""
        candidates = []
        for combination in grid:
            candidate = clone(self._inner())
            candidate.set_params(**clone(combination, safe=False))
            validate_parameters(candidate)
            candidates.append(candidate)
        return candidates

    def _cv_of(self, grid):
        """What the ``cv`` of every candidate is a copy of."""
        own = ESTIMATES["cv"].setting(self._inner())
        return [combination.get("cv", own) for combination in grid]

    def _keep(self, combination, run, choice):
        """The chosen iterate of the best run."""
        take_back(run.estimator)
        self.estimator_ = run.estimator.at_iteration(choice.iteration)
        self.best_iter_ = choice.iteration
        self.best_score_ = choice.score
        self.best_score_se_ = choice.standard_error
        self.best_params_ = dict(combination)
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
        criterion = self.criterion
        if isinstance(criterion, str) and criterion == "auto":
            return PathJudge(automatic(candidates, X, y))
        if isinstance(criterion, str) and criterion in ESTIMATES:
            return PathJudge(ESTIMATES[criterion])
        routed = {}
        if get_config()["enable_metadata_routing"]:
            routed = self._routed("scorer", "score", params)
        held_out = automatic(candidates, X, y, WITH_PREDICTIONS)
        return ScorerJudge.of(criterion, held_out, candidates[0], X, y, routed)

    def _results(self, grid, runs, choices, judge):
        """A row for every candidate and every criterion that it has computed."""
        rule, rows = RULES[self.rule], []
        for params, run, choice in zip(grid, runs, choices):
            estimator, chosen = run.estimator, {judge.name: choice}
            for name, estimate in ESTIMATES.items():
                if hasattr(estimator, estimate.path) and name != judge.name:
                    own = PathJudge(estimate)
                    chosen[name] = choice_of(estimator, own.path(estimator), own, rule)
            rows += [
                (params, name, *choice, estimator.n_iter_, run.seconds)
                for name, choice in chosen.items()
            ]
        return dict(zip(RESULTS, map(list, zip(*rows))))

    def _run(self, stages, candidates, X, y, fit_params, params):
        """Fit the candidates, each with its part of the callbacks' tree."""
        if not has_callbacks(self):
            return Parallel(n_jobs=self.n_jobs)(
                delayed(stages.run)(candidate, X, y, fit_params)
                for candidate in candidates
            )
        data = {"X": X, "y": y, "metadata": params or None}
        context = callback_context(self, len(candidates))
        context.call_on_fit_task_begin(estimator=self, **data)
        tasks = [context.subcontext(task_name="trajectory") for _ in candidates]
        runs = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_with_callbacks)(self, stages, candidate, task, data, fit_params)
            for candidate, task in zip(candidates, tasks)
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
        params = self._routed("estimator", "score", params)
        return self._chosen().score(X, y, **params)

    def _routed(self, receiver, method, params):
        """What the method of the estimator, or the scorer, is to get of ``params``."""
        if not get_config()["enable_metadata_routing"]:
            return params
        caller = "score" if (receiver, method) == ("estimator", "score") else "fit"
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
        router.add(estimator=self._inner(), method_mapping=mapping)
        if self.criterion not in ("auto", *ESTIMATES):
            router.add(
                scorer=scorer_of(self.criterion),
                method_mapping=MethodMapping().add(caller="fit", callee="score"),
            )
        return router

    def __sklearn_is_fitted__(self):
        return "estimator_" in vars(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self._inner())
        tags.estimator_type = inner.estimator_type
        tags.regressor_tags = inner.regressor_tags
        tags.classifier_tags = inner.classifier_tags
        tags.target_tags = inner.target_tags
        tags.input_tags = inner.input_tags
        return tags
