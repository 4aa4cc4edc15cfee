"""The estimator that runs once and keeps the best iterate."""

from numbers import Integral
from time import perf_counter

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
from sklearn.utils.validation import check_is_fitted

from .._compat import (
    CallbackSupportMixin,
    HasMethods,
    StrOptions,
    _fit_context,
    has_callbacks,
    with_callbacks,
)
from ..linear_model import TrajectoryLasso
from .criteria import CRITERIA, DEFAULT_CRITERION
from .rules import RULES


class TrajectoryEarlyStoppingCV(
    CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator
):
    """Fit once and keep the iterate of least estimated risk.

    The estimator records its trajectory and what every iterate would cost on
    unseen rows; this one moves it to the best row. Nothing is refitted and no
    rows are held out.

    Parameters
    ----------
    estimator : estimator that records its trajectory, default=None
        Of skacv, such as :class:`TrajectoryLasso` or :class:`IterativeRidge`.
        None is ``TrajectoryLasso(alpha="path", max_iter=20)``, which chooses
        alpha and the iteration in one run.
    criterion : {"auto", "risk"}, default="auto"
        What is minimised. "risk": the estimator's ``risk_path_``, the
        memory-matrix estimate. "auto" is "risk".
    rule : {"min", "one_se"}, default="min"
        The iterate of least estimate, or the earliest within one standard
        error of it.
    param_grid : dict or list of dicts, default=None
        Values of the estimator's parameters, as for
        :class:`sklearn.model_selection.GridSearchCV`. One trajectory is run per
        combination, and parameters and iteration are chosen jointly from their
        paths.
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
        The estimated risk there (smaller is better).
    best_score_se_ : float
        Its standard error.
    best_params_ : dict
        The chosen combination of ``param_grid``; with a sequence of alphas in
        one trajectory, also the alpha in force at the chosen iterate.
    criterion_ : str
        The criterion that was minimised.
    path_ : ndarray of shape (n_iter_ + 1,)
        The path that was minimised.
    results_ : dict of lists
        One entry per combination: "params", "best_iter", "best_score",
        "best_score_se", "n_iter", "fit_time" (seconds).
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
        "estimator": [HasMethods(["fit", "predict", "at_iteration"]), None],
        "criterion": [StrOptions({"auto", *CRITERIA})],
        "rule": [StrOptions(set(RULES))],
        "param_grid": [dict, list, None],
        "n_jobs": [None, Integral],
    }

    def __init__(
        self,
        estimator=None,
        *,
        criterion="auto",
        rule="min",
        param_grid=None,
        n_jobs=None,
    ):
        self.estimator = estimator
        self.criterion = criterion
        self.rule = rule
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
            On invalid parameters or data; the estimator is left as it was.
        """
        criterion_name = (
            DEFAULT_CRITERION if self.criterion == "auto" else self.criterion
        )
        criterion = CRITERIA[criterion_name]
        grid = list(ParameterGrid(self.param_grid or {}))
        candidates = [
            _prepared(self._inner(), candidate, criterion_name) for candidate in grid
        ]
        fit_params = self._routed("fit", params)
        found = self._run(candidates, X, y, fit_params, params)
        choices = [
            _choice(estimator, criterion, RULES[self.rule]) for estimator, _ in found
        ]
        best = int(np.argmin([score for _, score, _ in choices]))
        best_iter, best_score, best_score_se = choices[best]
        estimator = found[best][0]
        self.estimator_ = estimator.at_iteration(best_iter)
        self.best_iter_ = best_iter
        self.best_score_ = best_score
        self.best_score_se_ = best_score_se
        self.best_params_ = dict(grid[best])
        if np.ndim(estimator.alpha) or isinstance(estimator.alpha, str):
            self.best_params_["alpha"] = float(estimator.alpha_path_[best_iter])
        self.criterion_ = criterion_name
        self.path_ = getattr(estimator, criterion.path)
        self.results_ = {
            "params": grid,
            "best_iter": [row for row, _, _ in choices],
            "best_score": [score for _, score, _ in choices],
            "best_score_se": [se for _, _, se in choices],
            "n_iter": [estimator.n_iter_ for estimator, _ in found],
            "fit_time": [seconds for _, seconds in found],
        }
        return self

    def _run(self, candidates, X, y, fit_params, params):
        """Fit the candidates, each with its part of the callbacks' tree."""
        if not has_callbacks(self):
            return Parallel(n_jobs=self.n_jobs)(
                delayed(_timed_fit)(candidate, X, y, fit_params)
                for candidate in candidates
            )
        data = {"X": X, "y": y, "metadata": params or None}
        context = self._init_callback_context(max_subtasks=len(candidates))
        context.call_on_fit_task_begin(estimator=self, **data)
        tasks = [context.subcontext(task_name="trajectory") for _ in candidates]
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_with_callbacks)(self, candidate, task, data, fit_params)
            for candidate, task in zip(candidates, tasks)
        )
        context.call_on_fit_task_end(estimator=self, **data)
        return found

    def predict(self, X):
        """Predict with the chosen iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

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
        check_is_fitted(self)
        return self.estimator_.score(X, y, **self._routed("score", params))

    def at_iteration(self, t):
        """The fitted estimator at iterate ``t`` of the chosen trajectory."""
        check_is_fitted(self)
        return self.estimator_.at_iteration(t)

    def staged_predict(self, X):
        """Predict with every iterate of the chosen trajectory.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        yield from self.estimator_.staged_predict(X)

    @property
    def coef_(self):
        """Coefficients of the chosen iterate."""
        return self._fitted("coef_")

    @property
    def intercept_(self):
        """Intercept of the chosen iterate."""
        return self._fitted("intercept_")

    @property
    def n_features_in_(self):
        """Number of features seen in fit."""
        return self._fitted("n_features_in_")

    @property
    def feature_names_in_(self):
        """Names of the features seen in fit, where X has them."""
        return self._fitted("feature_names_in_")

    def _fitted(self, name):
        if "estimator_" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no {name} before it is fitted."
            )
        return getattr(self.estimator_, name)

    def _routed(self, method, params):
        """What the estimator's method is to get of ``params``."""
        if not get_config()["enable_metadata_routing"]:
            return params
        return process_routing(self, method, **params).estimator[method]

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
        return MetadataRouter(owner=self).add(
            estimator=self._inner(), method_mapping=mapping
        )

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


def _prepared(estimator, candidate, criterion_name):
    """A clone that computes what the criterion needs, and nothing else."""
    prepared = clone(estimator).set_params(**clone(candidate, safe=False))
    parameters = prepared.get_params(deep=False)
    for name, criterion in CRITERIA.items():
        value = parameters.get(criterion.parameter, False)
        if name == criterion_name and value is False:
            raise ValueError(
                f"criterion={name!r} needs {criterion.path}, which "
                f"{type(estimator).__name__} does not compute with "
                f"{criterion.parameter}={value!r}."
            )
        if name != criterion_name and value == "auto":
            prepared.set_params(**{criterion.parameter: False})
    return prepared


def _choice(estimator, criterion, rule):
    """Row, estimate and standard error that the rule picks."""
    path = getattr(estimator, criterion.path)
    se_path = getattr(estimator, criterion.se_path)
    row = rule(path, se_path)
    return row, float(path[row]), float(se_path[row])


def _timed_fit(estimator, X, y, fit_params):
    begun = perf_counter()
    estimator.fit(X, y, **fit_params)
    return estimator, perf_counter() - begun


def _fit_with_callbacks(owner, estimator, task, data, fit_params):
    with task.propagate_callback_context(estimator):
        task.call_on_fit_task_begin(estimator=owner, **data)
        found = _timed_fit(estimator, data["X"], data["y"], fit_params)
    task.call_on_fit_task_end(estimator=owner, **data)
    return found
