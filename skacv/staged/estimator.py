"""Any estimator that is fitted in stages, as one that records its trajectory."""

from copy import copy
from numbers import Integral

import numpy as np
from scipy.special import logit
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier, is_regressor
from sklearn.model_selection import check_cv
from sklearn.utils import check_array, column_or_1d, get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from .._compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    _check_sample_weight,
    _fit_context,
    _num_samples,
    check_in_memory,
    class_weights,
    has_callbacks,
    validate_parameters,
    with_callbacks,
)
from .._estimator.folds import splitter_of
from .._estimator.following import Follows
from .._estimator.held_out_costs import costs_of, costs_of_held_out
from .._estimator.left_out import folds_of
from .._estimator.prediction_intervals import PredictsIntervals
from .._estimator.predictions import checked_iterate
from .._estimator.progress import FitProgress
from .._estimator.readers import ESTIMATES
from .._estimator.recording import RecordsTrajectory
from .._estimator.row_summary import RowSummary
from .._warnings import warn
from . import held_out
from .growing import last_of
from .kind import response_of
from .kinds import CAN, kind_of
from .losses import LogLoss, WrongLabel, compared_as, regression_loss
from .run import Judging, StagedRun


def _inner_has(name):
    """Whether the estimator has a method, fitted or not."""
    return lambda self: hasattr(self._inner(), name)


def _is_regressor(self):
    return is_regressor(self)


class Staged(
    PredictsIntervals,
    Follows,
    RecordsTrajectory,
    CallbackSupportMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    """An estimator that is fitted in stages, with folds that grow along with it.

    Boosting adds trees, a network passes through the rows. The model on all rows and
    one clone for each fold take their stages side by side, and what the clones predict
    of the rows they leave out says what every stage costs on unseen rows. The model has
    seen all rows, and each of its stages can be used.

    :class:`TrajectoryEarlyStoppingCV` wraps such estimators itself, and stops all when
    they do not improve any more. Parameters of the estimator can be set without
    ``estimator__`` before them.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        Gradient boosting, AdaBoost, forests and bagging of scikit-learn, XGBoost,
        LightGBM and CatBoost, or any other with ``partial_fit``, or ``warm_start``, and
        ``max_iter``. The steps before the last of a pipeline are fitted to the rows of
        every fold on their own. The estimator's own early stopping is switched off.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn. None: no folds.
    n_jobs : int, default=None
        Number of threads for the model and its folds.
    verbose : bool or int, default=False
        Whether a line is printed whenever stages have been added. The estimator's own
        lines, of which every fold would have its own, are not printed.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator with the stages in use; its fitted attributes, such as
        ``feature_importances_``, are attributes of this object as well.
    n_iter_ : int
        How many stages there are.
    iteration_ : int
        How many of them are in use: all, after ``fit``.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss on the training rows, of every stage; row 0 is that of the mean of y,
        or the shares of the classes.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        The same on the rows that folds leave out. The loss is the estimator's own as
        far as its parameters name it, else the squared error; the log loss where there
        are probabilities, else the share of wrong labels. The Huber loss is judged by
        the absolute error.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Its standard error over folds.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        The same of every fold.
    cv_prediction_path_ : array-like of shape (n_iter_ + 1, n_held_out, ...)
        Held-out predictions of every stage, fold after fold: of ``predict``, of
        ``predict_proba`` for classifiers that have it, else of ``decision_function``.
    cv_indices_ : list of ndarray of int
        The rows that each fold leaves out.
    cv_target_ : ndarray of shape (n_held_out, ...)
        Their targets.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes, for classifiers.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Keeps the best stage.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from skacv import Staged
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = Staged(GradientBoostingRegressor(random_state=0), cv=5).fit(X, y)
    >>> model.cv_path_.shape
    (101,)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.estimator_.n_estimators < 100
    True
    """

    _parameter_constraints = {
        "estimator": [HasMethods("fit")],
        "cv": ["cv_object"],
        "n_jobs": [None, Integral],
        "verbose": ["boolean", Interval(Integral, 0, None, closed="left")],
    }
    # While a run may go on.
    _live = None
    # Rows are not kept.
    _data = None

    def __init__(self, estimator, *, cv=None, n_jobs=None, verbose=False):
        self.estimator = estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.verbose = verbose

    def set_params(self, **params):
        """Set parameters of this object, or of its estimator.

        Parameters
        ----------
        **params : dict
            Those that this object has not are the estimator's, also without
            ``estimator__`` before them.

        Returns
        -------
        self : object
        """
        own = self.get_params(deep=False)
        of_estimator = {
            name: params.pop(name)
            for name in list(params)
            if name.partition("__")[0] not in own
        }
        super().set_params(**params)
        if of_estimator:
            self.estimator.set_params(**of_estimator)
        return self

    def __sklearn_clone__(self):
        """A clone, also of an estimator that scikit-learn refuses to clone."""
        kind, holder = kind_of(self.estimator), copy(self)
        if kind is None:
            return super().__sklearn_clone__()
        holder.estimator = None
        found = super(Staged, holder).__sklearn_clone__()
        found.estimator = kind.cloned(self.estimator)
        return found

    def __getattr__(self, name):
        if (
            name.endswith("_")
            and not name.startswith("_")
            and "estimator_" in vars(self)
        ):
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}.")

    def _inner(self):
        """The fitted estimator, or that of the parameters."""
        return vars(self).get("estimator_", self.estimator)

    def _kind(self):
        """How the estimator goes on.

        Raises
        ------
        ValueError
            If it cannot.
        """
        last = last_of(self.estimator)
        kind = kind_of(last)
        if kind is None:
            raise ValueError(
                f"{type(last).__name__} cannot be fitted stage by stage: {CAN} can."
            )
        return kind

    # ------------------------------------------------------------------ fit

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None, **params):
        """Fit all stages that the estimator is asked for, and its folds along with it.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            As the estimator takes it.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the fits and in the mean losses of held-out rows.
        **params : dict
            ``groups`` for the splitter ``cv``, and whatever else the estimator's
            ``fit`` takes; with metadata routing enabled, as they request.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the estimator cannot be fitted in stages, or data are invalid.
        """
        self._fit(X, y, sample_weight, params)
        self._release()
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_up_to(self, n_updates, X, y=None, sample_weight=None, **params):
        """Begin a run, or continue it, up to a given total number of stages.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As for ``fit``. The same objects continue the run: do not change them.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        if n_updates < 1:
            raise ValueError(f"n_updates must be at least 1, got {n_updates}.")
        return self._fit(X, y, sample_weight, params, n_updates)

    def _fit(self, X, y, sample_weight, params, n_updates=None):
        kind, last = self._kind(), last_of(self.estimator)
        validate_parameters(last)
        n_planned = kind.n_planned(last)
        n_stages = kind.n_next(n_updates or n_planned, n_planned)
        if sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        run, self._live = self._live, None  # which an error would leave half grown
        if n_updates is None or run is None or not run.was_passed(X, y, params):
            run = self._begun(X, y, params)
        # At every call: of several only what the last one warns of is heard.
        self._warn_of_own_stopping()
        progress = FitProgress(
            self,
            n_planned=n_stages - run.n_stages,
            n_total=n_planned,
            X=X,
            y=y,
            sample_weight=sample_weight,
            reconstruct=run.at,
        )
        n_iter, is_over = self._grown(run, n_stages, progress)
        attributes = run.attributes(n_iter)
        progress.finish(n_iter, attributes)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(attributes, _live=run)
        return is_over or n_iter == n_planned

    def _grown(self, run, n_stages, progress):
        """Let a run have so many stages; how many there are, and whether it is over.

        Where somebody watches, a few at a time.
        """
        is_watched = bool(self.verbose) or has_callbacks(self)
        n_at_once = progress.every if is_watched else n_stages
        while run.n_stages < n_stages:
            n_former = run.n_stages
            has_grown = run.go_on(min(n_stages, n_former + n_at_once), self.n_jobs)
            recorded = run.whole.recorded()
            for t in recorded[recorded > n_former]:
                if progress.told(t):
                    return int(t), True
            if not has_grown:
                return run.n_stages, True
            if run.n_stages < n_stages:
                progress.report(run.attributes(run.n_stages))
        return run.n_stages, False

    def _begun(self, X, y, params):
        """A run that has no stages yet."""
        names = self._names_of(X, y)
        splitter, of_split, of_fit = self._parted(y, params)
        names["_row_weights"] = weights = self._weights(y, names, of_fit)
        target = _target(np.asarray(y), names)
        known, rows = (target, weights, names.get("classes_")), np.arange(len(target))
        training = Judging(names["_loss"], [(rows, rows)], *known, most_kept=0)
        judging = None
        if splitter is not None:
            _check_enough(y)
            splits = list(splitter.split(X, y, **of_split))
            folds = folds_of(splits, np.where(weights > 0, rows, -1))
            # Rows of no weight are fitted too: others are drawn with them.
            folds = [
                (rows[fit], judged) for (fit, _), (_, judged) in zip(splits, folds)
            ]
            judging = Judging(
                names["_loss"], folds, *known, most_kept=held_out.MOST_KEPT
            )
        passed = X, y, params
        return StagedRun.of(self.estimator, passed, of_fit, training, judging, names)

    def _warn_of_own_stopping(self):
        """Say that what was asked of the estimator is not done."""
        last = last_of(self.estimator)
        for asked in self._kind().asked_to_stop(last):
            warn(
                f"{asked} of {type(last).__name__} is switched off: folds judge its "
                "stages, and no rows are set aside.",
                UserWarning,
            )

    def _names_of(self, X, y):
        """What is known of the data before the run, as fitted attributes."""
        check_in_memory(X, y)
        if isinstance(X, RowSummary):
            raise TypeError(
                "Stages are fitted to rows, and a RowSummary has moments of most of "
                "them: pass X and y."
            )
        holder = copy(self)
        vars(holder).pop("estimator_", None)  # LightGBM has names of any columns
        if y is None:
            validate_data(holder, X, y)  # which says so
        validate_data(holder, X, skip_check_array=True)
        check_consistent_length(X, y)
        names = ("n_features_in_", "feature_names_in_")
        found = {name: vars(holder)[name] for name in names if name in vars(holder)}
        if is_classifier(self):
            check_classification_targets(y)
            column_or_1d(y)  # several labels of a row are not judged
            has_probabilities = response_of(last_of(self.estimator)) == "predict_proba"
            found["classes_"] = np.unique(np.asarray(y))
            if len(found["classes_"]) < 2:
                raise ValueError("y has one class, and at least 2 classes are needed.")
            found["_loss"] = LogLoss() if has_probabilities else WrongLabel()
        else:
            found["_loss"] = regression_loss(last_of(self.estimator))
        return found

    def _parted(self, y, params):
        """The splitter, what its ``split`` is to get, and what the estimator's fit."""
        if get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **params)["estimator"]["fit"]
            return *splitter_of(self, y, params), routed
        groups = {name: params[name] for name in params if name == "groups"}
        of_fit = {name: params[name] for name in params if name != "groups"}
        return *splitter_of(self, y, groups), of_fit

    def _weights(self, y, names, params):
        """Weights of the rows where they are judged, those of classes included."""
        name = f"{self.estimator.steps[-1][0]}__" if self._is_pipeline() else ""
        weights = params.get("sample_weight", params.get(f"{name}sample_weight"))
        y = np.asarray(y)
        weights = _check_sample_weight(weights, y, dtype=np.float64)
        asked = last_of(self.estimator).get_params(deep=False).get("class_weight")
        if "classes_" in names and asked is not None:
            asked = "balanced" if isinstance(asked, str) else asked
            classes, label = np.unique(y, return_inverse=True)
            weights = weights * class_weights(asked, classes, y, weights)[label]
        return weights

    def _is_pipeline(self):
        return last_of(self.estimator) is not self.estimator

    def _release(self):
        """Free memory that only further stages need."""
        self._live, path = None, vars(self).get("cv_prediction_path_")
        if isinstance(path, held_out.HeldOutStages):
            self.cv_prediction_path_ = path.released()

    # ------------------------------------------------------------------ the stages

    def recorded_iterations(self):
        """Stages that :meth:`at_iteration` can give: as a rule all, from the first.

        Estimators that forget earlier stages, such as networks, are copied after every
        stage. If copies of all stages of the model and its folds took more than 256 MB,
        those are kept for which there is room: the stage of least ``cv_path_``, the
        last one, and some before it.

        Returns
        -------
        ndarray of int
        """
        check_is_fitted(self)
        stages = self._model.recorded()
        return stages[stages <= self.n_iter_]

    def at_iteration(self, t):
        """A fitted copy that uses the first ``t`` stages.

        Nothing is refitted, and the copy shares the stages.

        Parameters
        ----------
        t : int
            From 1 to ``n_iter_``; negative numbers count from the end.

        Returns
        -------
        Staged

        Raises
        ------
        TypeError
            If t is not an integer.
        ValueError
            If there is no such stage, or if it was not kept (see
            :meth:`recorded_iterations`).
        """
        t, _ = checked_iterate(self, t)
        stopped = copy(self)
        vars(stopped).update(self._model.at(t), _live=None)
        if "cv_prediction_path_" in vars(self):
            stopped.cv_prediction_path_ = self.cv_prediction_path_.of_stage(t)
        return stopped

    def predict(self, X):
        """Predict with the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        return self.estimator_.predict(X)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X):
        """Class probabilities by the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    @available_if(_inner_has("predict_proba"))
    def predict_log_proba(self, X):
        """Logarithms of the class probabilities by the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X):
        """Decision function of the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return self.estimator_.decision_function(X)

    def staged_predict(self, X):
        """Predict with every number of stages, from the first.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            One array for each of :meth:`recorded_iterations`.
        """
        check_is_fitted(self)
        found = self._model.staged(X, self.n_iter_)
        yield from map(self._label, found) if is_classifier(self) else found

    @available_if(_inner_has("predict_proba"))
    def staged_predict_proba(self, X):
        """Class probabilities by every number of stages, from the first.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            One array for each of :meth:`recorded_iterations`.
        """
        check_is_fitted(self)
        yield from self._model.staged(X, self.n_iter_)

    def staged_loss(self, X, y, sample_weight=None):
        """Mean loss of every number of stages on other rows, as that of ``cv_path_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the mean. None: equal weights.

        Returns
        -------
        ndarray of shape (n_stages,)
            One for each of :meth:`recorded_iterations`.
        """
        check_is_fitted(self)
        target = self._target(np.asarray(y))
        weights = _check_sample_weight(sample_weight, target, dtype=np.float64)
        found = (
            costs_of(self._loss, target, each[None])[0]
            for each in self._model.staged(X, self.n_iter_)
        )
        return np.array([np.average(costs, weights=weights) for costs in found])

    def score(self, X, y, **params):
        """Score of the stages in use, by the ``score`` of the estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            Passed on to that.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "score", **params)["estimator"]["score"]
        return self.estimator_.score(X, y, **params)

    @available_if(_is_regressor)
    def predict_interval(self, X, coverage=0.9, method="auto"):
        """Prediction intervals from the residuals of rows held out in folds.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Nominal probability that an interval contains the target of an unseen row;
            with several there is an interval for each.
        method : {"auto", "cv"}, default="auto"
            The prediction plus and minus a quantile of the held-out residuals of the
            stages in use.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y; with several coverages
            (n_samples, 2, n_coverages) or (n_samples, n_targets, 2, n_coverages).

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or without
            folds.
        """
        return PredictsIntervals.predict_interval(self, X, coverage, method)

    # ------------------------------------------------------------------ hooks

    def _label(self, response):
        """Labels of probabilities or decisions."""
        if response.ndim == 1:
            return self.classes_[(response > 0).astype(int)]
        return self.classes_[response.argmax(axis=1)]

    def _parameters_at(self, t):
        """The number of stages, by the name of the estimator's parameter."""
        step = f"{self.estimator.steps[-1][0]}__" if self._is_pipeline() else ""
        return {f"{step}{self._kind().count_of(last_of(self.estimator))}": t}

    def _changes_strength(self):
        return False

    def _default_patience(self):
        return self._kind().patience

    def _loss_on(self, X, y):
        names = self._names_of(X, y)
        return compared_as(names["_loss"], len(names.get("classes_", ())))

    def _held_out_costs(self, name, y):
        path = vars(self).get(ESTIMATES[name].predictions)
        if path is None or not path.has_all:
            return None
        return costs_of_held_out(self, ESTIMATES[name], y)

    def _target(self, y):
        return _target(y, vars(self))

    def _held_out_estimator(self, predictions, t):
        held_out = copy(self)
        response = response_of(last_of(self.estimator))
        answers = {response: predictions}
        if response == "predict_proba":
            answers["decision_function"] = _decisions(predictions)
        if is_classifier(self):
            answers["predict"] = self._label(predictions)
        for name, values in answers.items():
            vars(held_out)[name] = _answer(name, values)
        return held_out

    def _trial_estimator(self, y):
        y = np.asarray(y)
        if not is_classifier(self):
            return self._held_out_estimator(y, 0)
        trial = copy(self)
        trial.classes_, label = np.unique(y.ravel(), return_inverse=True)
        one_hot = np.eye(len(trial.classes_))[label]
        if response_of(last_of(self.estimator)) != "predict_proba":
            one_hot = _decisions(one_hot)
        return trial._held_out_estimator(one_hot, 0)

    def _check_data(self, X, y, sample_weight=None):
        """Raise what the estimator would raise: it is fitted to one stage."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        names, kind = self._names_of(X, y), self._kind()
        n_stages = kind.n_next(1, kind.n_planned(last_of(self.estimator)))
        passed = X, y, weights
        run = StagedRun.of(self.estimator, passed, weights, None, None, names)
        run.go_on(n_stages, 1)
        _check_enough(y)

    def get_metadata_routing(self):
        """Metadata routing of this object: fit passes on to the estimator and folds.

        Returns
        -------
        MetadataRouter
        """
        scored = MethodMapping().add(caller="fit", callee="fit")
        scored.add(caller="score", callee="score")
        split = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self)
        router.add(estimator=self.estimator, method_mapping=scored)
        return router.add(splitter=check_cv(self.cv), method_mapping=split)

    def __sklearn_tags__(self):
        tags = get_tags(self.estimator)
        tags.array_api_support = False
        if tags.classifier_tags is not None:  # one label of a row is judged
            tags.target_tags.multi_output = tags.classifier_tags.multi_label = False
        return tags


def _check_enough(y):
    """Raise where there are too few rows for folds."""
    if _num_samples(y) < 2:
        raise ValueError("Folds need at least 2 samples, got n_samples=1.")


def _target(y, names):
    """Targets as the loss takes them, (n_samples, n_outputs)."""
    if "classes_" not in names:
        settings = {"ensure_2d": False, "ensure_all_finite": False, "input_name": "y"}
        return check_array(y, dtype=np.float64, **settings).reshape(len(y), -1)
    classes, loss = names["classes_"], names["_loss"]
    y = y.ravel()
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y has labels unseen in fit: {unknown.tolist()}.")
    other, this = loss.labels
    own = classes if len(classes) > 2 or loss == LogLoss() else classes[1:]
    return np.where(y[:, None] == own, this, other)


def _answer(name, values):
    """A method that gives these values for any rows."""

    def answer(X):
        return values

    answer.__name__ = name  # scorers look methods up by their names
    return answer


def _decisions(probabilities):
    """Decisions that probabilities, or one-hot labels, come of."""
    least = np.finfo(probabilities.dtype).tiny
    if probabilities.shape[1] == 2:
        return logit(np.clip(probabilities[:, 1], least, 1 - np.finfo(float).eps))
    return np.log(np.maximum(probabilities, least))
