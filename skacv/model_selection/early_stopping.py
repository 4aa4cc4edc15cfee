"""The estimator that runs once and keeps the best iterate."""

from functools import partial
from numbers import Integral

import numpy as np
from sklearn import get_config
from sklearn.base import MetaEstimatorMixin, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from .._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    _num_samples,
    callback_context,
    has_callbacks,
    on_host,
    with_callbacks,
)
from .._estimator.collections import is_collection
from .._estimator.following import followed
from .._estimator.readers import ESTIMATES
from .._estimator.row_summary import RowSummary
from .chosen import ChosenIterate
from .comparison import Comparison, on_common_rows
from .composed import ComposedOfMembers
from .criteria import WITH_PREDICTIONS, PathJudge, ScorerJudge, automatic
from .members import (
    are_alike,
    check_collections,
    check_losses,
    judge_alike,
    losses_of,
    usual_scorer,
)
from .portfolios import PORTFOLIOS, task_of_estimator
from .preference import PairedErrors
from .read_once import read_once
from .rules import RULES
from .splits import draw_once, take_back
from .stages import Stages, fit_with_callbacks, prepare


class TrajectoryEarlyStoppingCV(
    ChosenIterate, CallbackSupportMixin, MetaEstimatorMixin, ComposedOfMembers
):
    """Fit once and keep the iterate of least estimated risk.

    The estimator records its trajectory and what every iterate would cost on
    unseen rows; this one moves it to the best row. Nothing is refitted and no
    rows are held out. Several estimators run side by side, on the same rows and
    folds, and the best iterate of all is kept.

    Parameters
    ----------
    estimator : estimator that records its trajectory, list of (str, estimator), \
default=None
        One of skacv, such as :class:`TrajectoryLasso`, :class:`IterativeRidge` or
        :class:`TrajectoryLogisticRegression`, or another that
        :class:`skacv.model_selection.RecordsTrajectory` describes; this is a
        regressor or a classifier as that is. Or several with names, all
        regressors or all classifiers: members. Their parameters are
        ``name__parameter`` in ``set_params`` and ``param_grid``; ``cv`` of one is
        that of all, and those without a ``random_state`` get a common one.
        None is a portfolio for the ``task``. For numbers: a path of the lasso and
        one of the elastic net, least squares, and a kernel machine. For classes: a
        path of logistic regression, the same without a penalty, and a kernel
        machine. Where ``criterion="auto"`` a later one of these is kept only if its
        held-out predictions are better than those of all earlier ones by a standard
        error of the difference, row by row. Members that cannot take the data are
        left out: kernels if X is sparse or has more than 5000 rows, and what does
        not take several targets.
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
        Several members are judged by "cv" where it says "auto", and scored on the
        predictions of the folds. They are compared on the rows that all of them
        have held out (a preconditioner's subsample is not). Where their losses
        differ, "auto" takes the iterate of every member by its own loss, and
        compares these by the accuracy (R^2) of their held-out predictions; any
        other criterion is refused, but for scorers.
    rule : {"min", "one_se"}, default="min"
        The best iterate, or the earliest within one standard error of it.
    patience : {"auto"}, int or None, default="auto"
        Stop running when the best iterate has been followed by so many others.
        The run is extended in stages, each going on with the trajectory. "auto"
        is those of a sixth of the values of alpha (or C) along a "path", and None for
        any other run. None runs all updates.
    param_grid : dict or list of dicts, default=None
        Values of the estimator's parameters, as for
        :class:`sklearn.model_selection.GridSearchCV`. One trajectory is run per
        combination, and parameters and iteration are chosen jointly from their
        paths. Random splits of ``cv`` are drawn once, and are the same for all.
        With several members a key is ``name__parameter``, and changes that member.
    task : {"auto", "regression", "classification"}, default="auto"
        What the portfolio of ``estimator=None`` is for. "auto" looks at y: strings,
        booleans and any two values are classes, and so are whole numbers (integers
        or floats) of at most 20 values that are each there five times; all else are
        numbers. Before ``fit`` it is a regressor; say the task where that matters,
        as it does for the folds of :func:`sklearn.model_selection.cross_val_score`.
    n_jobs : int, default=None
        Trajectories of members and of ``param_grid`` run in parallel; None is 1
        unless in a :func:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Draws the rows of ``best_score_corrected_``, and the ``random_state`` of
        members that have none.

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
    best_score_corrected_ : float
        What choosing so costs rows that had no part in the choice: the least over
        many estimates is optimistic, most where rows are few. Rows are drawn from
        the held-out ones with replacement, 200 times; the choice is made again by
        the rows drawn, over all members and combinations, and judged by those that
        were not. More than 1000 rows are drawn in 1000 groups. NaN where it is not
        known what single rows cost, as with scorers; and where there are more than
        8 million held-out predictions.
    best_score_corrected_se_ : float
        Its standard error, over rows.
    best_member_ : str
        The name of the estimator chosen, of a single one that of its class.
    best_params_ : dict
        The chosen combination of ``param_grid``, as parameters of the member; with a
        sequence of alphas in one trajectory, also the alpha (or C) in force at the
        chosen iterate.
    criterion_ : str
        The criterion that was taken.
    task_ : {"regression", "classification"}
        The task that was taken.
    path_ : ndarray of shape (n_iter_ + 1,)
        Its value for every iterate of the chosen run.
    paths_ : dict of str to ndarray
        The same of every member, in its best combination.
    results_ : dict of lists
        One entry per member, combination and criterion that was computed: "member",
        "params", "criterion", "best_iter", "best_score", "best_score_se", "score"
        (what members are compared by: the best score, or where their losses differ
        the accuracy or R^2), "n_iter", "fit_time" (seconds for the run and what
        judges it).
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

    Tsamardinos, Greasidou and Borboudakis (2018), "Bootstrapping the
    out-of-sample predictions for efficient and accurate cross-validation",
    Machine Learning 107(12): of ``best_score_corrected_``.

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

    Several estimators, of which the best iterate is kept:

    >>> from skacv import TrajectoryLasso
    >>> members = [("lasso", TrajectoryLasso("path")), ("ridge", IterativeRidge(0.0))]
    >>> both = TrajectoryEarlyStoppingCV(members, random_state=0).fit(X, y)
    >>> sorted(both.paths_)
    ['lasso', 'ridge']
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
        "task": [StrOptions({"auto", *PORTFOLIOS})],
        "n_jobs": [None, Integral],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        estimator=None,
        *,
        criterion="auto",
        rule="min",
        patience="auto",
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

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, **params):
        """Run every trajectory once and move to the best iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
            Training data, passed on as they are. With a summary ``cv`` is the number of
            its folds, no scorer can judge, and ``best_score_corrected_`` is NaN.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; none with a summary, which has them.
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
        passed_y = y
        if not is_collection(X):
            y = on_host(y)
            params = {name: on_host(value) for name, value in params.items()}
        members = self._members_for(X, y)
        X, y, params = read_once(members, X, y, params)
        candidates = self._candidates(members)
        if is_collection(X):
            check_collections(self, losses_of(candidates, X, y))
        rng = check_random_state(self.random_state)
        if self._is_portfolio():
            judge_alike(candidates, rng)
        judge = self._judge(candidates, X, y, params)
        fit_params = {
            name: self._routed(self._receiver(name), "fit", params)
            for name, _ in members
        }
        self._prepare(members, candidates, judge.estimate, X, y, fit_params)
        runs = self._run(judge, candidates, X, y, fit_params, params)
        losses = losses_of(candidates, X, y)
        between = self._between(candidates, losses, X, y)
        if self._is_portfolio():
            runs, judge, between = on_common_rows(runs, judge, between)
        rule, paired = RULES[self.rule], None
        if not is_collection(X):
            paired = self._paired(candidates, fit_params, y)
        compared = Comparison(candidates, runs, judge, rule, between, paired)
        self._keep(compared, compared.corrected_score(rng))
        self.estimator_ = followed(self.estimator_, X, passed_y)
        own = losses[self.best_member_]
        self._alike = [name for name, loss in losses.items() if loss == own]
        return self

    def _prepare(self, members, candidates, estimate, X, y, fit_params):
        """Have all compute what they are judged by, and share splits and work."""
        origins = self._cv_of(candidates)
        for each in candidates:
            weights = fit_params[each.member].get("sample_weight")
            prepare(each.estimator, estimate, each.params, X, y, weights)
        draws = fit_params[members[0][0]]
        draw_once([each.estimator for each in candidates], origins, X, y, draws)
        for name, member in members:
            own = [each.estimator for each in candidates if each.member == name]
            member.share_work(own, X, y)

    def _cv_of(self, candidates):
        """What the ``cv`` of every candidate is a copy of."""
        if self._is_portfolio():  # one for all
            return [ESTIMATES["cv"].setting(each.estimator) for each in candidates]
        own = ESTIMATES["cv"].setting(self.estimator)
        return [each.params.get("cv", own) for each in candidates]

    def _keep(self, compared, corrected):
        """The chosen iterate of the best run, and what all have come to."""
        best, run, choice = compared.best
        results, paths = compared.results(), compared.paths()
        take_back(run.estimator)
        self.estimator_ = run.estimator.at_iteration(choice.iteration)
        self.best_iter_ = choice.iteration
        self.best_score_ = choice.score
        self.best_score_se_ = choice.standard_error
        self.best_score_corrected_, self.best_score_corrected_se_ = corrected
        self.best_member_ = best.member
        self.best_params_ = dict(best.params)
        self.best_params_.update(run.estimator.parameters_at(choice.iteration))
        self.path_ = run.path
        self.paths_ = paths
        self.task_ = task_of_estimator(self.estimator_)
        self.criterion_ = compared.judge.name
        self.results_ = results

    def _judge(self, candidates, X, y, params):
        """What judges the iterates of all candidates."""
        criterion, estimators = self.criterion, [each.estimator for each in candidates]
        if isinstance(X, RowSummary) and criterion not in ("auto", *ESTIMATES):
            raise ValueError(
                "With a summary of rows the criterion must be 'auto' or one of "
                f"{', '.join(map(repr, ESTIMATES))}: a scorer needs all held-out rows."
            )
        if isinstance(criterion, str) and criterion == "auto":
            is_one = not self._is_portfolio()
            estimate = automatic(estimators, X, y) if is_one else ESTIMATES["cv"]
            criterion = estimate.name
        if isinstance(criterion, str) and criterion in ESTIMATES:
            if self.criterion != "auto":
                check_losses(candidates, X, y)
            return PathJudge(ESTIMATES[criterion], y)
        routed = {}
        if get_config()["enable_metadata_routing"]:
            routed = self._routed("criterion", "score", params)
        is_one = not self._is_portfolio()
        names = WITH_PREDICTIONS if is_one else ("cv",)
        held_out = automatic(estimators, X, y, names)
        members = {each.member: each.estimator for each in candidates}.values()
        return ScorerJudge.of(criterion, held_out, members, X, y, routed)

    def _between(self, candidates, losses, X, y):
        """What compares the choices of members where their losses differ, else None."""
        if self.criterion != "auto" or len(losses) < 2 or are_alike(losses):
            return None
        members = {each.member: each.estimator for each in candidates}.values()
        scorer = usual_scorer(candidates[0].estimator)
        return ScorerJudge.of(scorer, ESTIMATES["cv"], members, X, y, {})

    def _paired(self, candidates, fit_params, y):
        """What a member of the default portfolio is given up by, else None."""
        if self.estimator is not None or self.criterion != "auto" or y is None:
            return None
        weights = fit_params[candidates[0].member].get("sample_weight")
        weights = np.ones(_num_samples(y)) if weights is None else np.asarray(weights)
        return PairedErrors(y, weights, is_classifier(candidates[0].estimator))

    def _run(self, judge, candidates, X, y, fit_params, params):
        """Fit the candidates, each with its part of the callbacks' tree."""
        stages = Stages(judge, self.patience)
        # Every run of a collection has all of its workers.
        n_jobs = 1 if is_collection(X) else self.n_jobs
        if not has_callbacks(self):
            return Parallel(n_jobs=n_jobs)(
                delayed(stages.run)(each.estimator, X, y, fit_params[each.member])
                for each in candidates
            )
        data = {"X": X, "y": y, "metadata": params or None}
        context = callback_context(self, len(candidates))
        context.call_on_fit_task_begin(estimator=self, **data)
        tasks = [context.subcontext(task_name="trajectory") for _ in candidates]
        run = partial(fit_with_callbacks, self, stages)
        runs = Parallel(n_jobs=n_jobs)(
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

    def __sklearn_is_fitted__(self):
        return "estimator_" in vars(self)
