"""Estimators fitted in stages, as estimators that record their trajectory."""

import warnings
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from math import ceil
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    _num_samples,
    _safe_indexing,
    has_callbacks,
    validate_parameters,
    with_callbacks,
)
from .._estimator.data.checks import (
    frame_of_arrow,
    names_infinite_columns,
    summed,
    target_array,
)
from .._estimator.data.training_data import replace_fitted
from .._estimator.delegation import class_of, routed, samplers_of
from .._estimator.estimates.advice import INSTEAD
from .._estimator.estimates.fitted_state import MOST_KEPT
from .._estimator.estimates.folds import folds_of, splitter_of
from .._estimator.estimates.held_out import held_out_losses_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import Limit, Price, RecordsTrajectory
from .._estimator.parameters import set_parameters, snapshot
from .._estimator.run.progress import FitProgress
from ..optim.losses import Logistic, Multinomial
from ..risk.held_out_rows import drawn_units
from .adapter import staged_adapter_of
from .adapters import CAN_BE_STAGED, PerOutput
from .averages import MeanClassifier, MeanFit, MeanRegressor
from .data import (
    FitParams,
    check_enough,
    check_has_all,
    check_targets_of_folds,
    checked_data,
    params_by_step,
    warn_of_settings,
)
from .losses import LogLoss
from .prediction import PredictsByStages
from .run import Evaluation, HeldOutStages, StagedFit, StagedRun, cloned, last_of

# The loss on the training rows is a mean over at most so many of them: its standard
# error is 1% of the spread of their losses.
MOST_TRAINING_ROWS = 10_000


class Staged(
    PredictsByStages,
    RecordsTrajectory,
    CallbackSupportMixin,
    MetaEstimatorMixin,
    BaseEstimator,
):
    """An estimator fitted in stages, with cross-validation folds at every stage.

    A stage is a tree of a boosted model or a pass of a network over the rows. The model
    on all rows and one clone per fold are fitted stage by stage, side by side. The
    predictions of the clones for their held-out rows estimate the loss of every stage
    on unseen rows, and every stage of the model can be used.

    :class:`TrajectoryEarlyStoppingCV` wraps such estimators itself and stops them when
    they no longer improve. Parameters of the estimator can be set without the prefix
    ``estimator__``. Read more in the :doc:`user guide </guide/boosting>`.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        Boosted trees, a forest, bagging, or a model with ``max_iter`` and
        ``partial_fit`` or ``warm_start`` (:doc:`which </guide/boosting>`). Pipeline
        steps are fitted in every fold; samplers resample training rows only.
    cv : int, splitter or iterable, default=None
        The folds, as in scikit-learn. None: no folds.
    keep : {"model", "mean"}, default="model"
        "model" predicts with the model on all rows, "mean" with the average of it and
        the clones of all folds, which usually has a smaller loss and takes as long as
        all of them. "mean" needs ``cv``.
    n_jobs : int, default=None
        Number of threads for the model and its folds.
    verbose : bool or int, default=False
        Whether to print a line for each block of stages. The estimator's own messages
        are not printed.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator with the stages in use. Its fitted attributes, such as
        ``feature_importances_``, are also attributes of this object.
    record_ : Record
        What is kept of the run; other fitted attributes are read from it.
    n_iter_ : int
        Number of stages.
    iteration_ : int
        Number of stages in use: all after ``fit``.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean training loss of every stage, on up to 10,000 random rows; row 0 is a
        constant prediction. NaN for stages that only the folds have grown.
    cv_path_ : ndarray of shape (n_iter_ + 1,)
        Mean held-out loss of every stage: for regression the loss that the estimator
        minimises, for classification usually the log loss (:doc:`table
        </guide/boosting>`). Class weights count; ``eval_metric`` is not used.
    cv_se_path_ : ndarray of shape (n_iter_ + 1,)
        Standard error of ``cv_path_`` over the folds; with one fold, over its rows or
        their groups. Repeated splits do not make it smaller.
    cv_fold_path_ : ndarray of shape (n_iter_ + 1, n_folds)
        Mean loss of every stage on every fold.
    cv_prediction_path_ : array-like of shape (n_iter_ + 1, n_held_out, ...)
        Held-out predictions of every stage, fold after fold: from ``predict``, or for
        classifiers from ``predict_proba`` if available, otherwise
        ``decision_function``.
    cv_indices_ : list of ndarray of int
        Indices of the rows held out by each fold.
    cv_target_ : ndarray of shape (n_held_out, ...)
        Targets of the held-out rows, fold after fold.
    classes_ : ndarray of shape (n_classes,)
        Class labels, for classifiers; label indices if rows have several labels.
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
        "keep": [StrOptions({"model", "mean"})],
        "n_jobs": [None, Integral],
        "verbose": ["boolean", Interval(Integral, 0, None, closed="left")],
    }
    # While a run may go on.
    _live = None

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        keep: Literal["model", "mean"] = "model",
        n_jobs: int | None = None,
        verbose: int = False,
    ) -> None:
        set_parameters(self, locals())

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this object, or of its estimator.

        Parameters
        ----------
        **params : dict
            Parameters of this object, or of the estimator, with or without the prefix
            ``estimator__``.

        Returns
        -------
        self : object
        """
        names = self.get_params(deep=False)
        if params.keys() <= names.keys():
            return super().set_params(**params)
        deep_names, of_estimator = self.get_params(), {}
        inner = self.estimator.get_params() if "estimator" not in params else {}
        for name in list(params):
            # MultiOutputRegressor has a parameter "estimator" too.
            is_of_inner = name in inner and name not in deep_names
            if is_of_inner or name.partition("__")[0] not in names:
                of_estimator[name] = params.pop(name)
        super().set_params(**params)
        if of_estimator:
            self.estimator.set_params(**of_estimator)
        return self

    def __sklearn_clone__(self):
        """A clone, even if scikit-learn refuses to clone the estimator."""
        holder = copy(self)
        holder.estimator = None
        copied = super(Staged, holder).__sklearn_clone__()
        copied.estimator = cloned(self.estimator)
        return copied

    def __getattr__(self, name: str) -> Any:
        is_of_fit = name.endswith("_") and not name.startswith("_")
        if is_of_fit and "record_" in vars(self):
            with suppress(AttributeError):
                return getattr(self.record_.iterate, name)
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            message = str(error).replace("'Staged'", repr(class_of(self)))
            raise AttributeError(message) from None

    @property
    def _in_stages(self):
        """What the user has passed to :class:`TrajectoryEarlyStoppingCV`, say."""
        return last_of(self.estimator)

    def _adapter(self):
        """The adapter of the estimator, or of the last step of a pipeline."""
        last = last_of(self.estimator)
        adapter = staged_adapter_of(last)
        if adapter is None:
            raise ValueError(
                f"{type(last).__name__} cannot be fitted stage by stage: "
                f"{CAN_BE_STAGED} can."
            )
        return adapter

    def _count_name(self, adapter):
        """The parameter of ``estimator`` with the number of stages."""
        is_pipeline = last_of(self.estimator) is not self.estimator
        prefix = f"{self.estimator.steps[-1][0]}__" if is_pipeline else ""
        return f"{prefix}{adapter.count}"

    # ------------------------------------------------------------------ fit

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Fit all stages of the estimator, and of its folds side by side.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
            In any form that the estimator accepts.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the fits and in mean losses.
        **params : dict
            ``groups`` for the splitter and arguments of the estimator's ``fit``; with
            metadata routing enabled, as they request. Offsets, such as ``init_score``
            of LightGBM, are added to held-out predictions too.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the estimator cannot be fitted in stages, or data are invalid.
        """
        with names_infinite_columns(X):
            self._fit(X, y, sample_weight, params)
        self._release()
        self._keep_predictions(MOST_KEPT)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=False)
    def fit_up_to(
        self,
        n_updates: int,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        growth: Literal["all", "best", "first"] = "all",
        **params: Any,
    ) -> bool:
        """Start or continue a run, up to a given total number of stages.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        growth : {"all", "best", "first"}, default="all"
            How far the model on all rows grows, where no other stages will be asked
            for: as far as the folds, to their best stage, or to the first.
        **params : dict
            As in ``fit``. Passing the same, unchanged objects again continues the run;
            with other data or parameters a new run starts.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        if n_updates < 1:
            raise ValueError(f"n_updates must be at least 1, got {n_updates}.")
        with names_infinite_columns(X):
            return self._fit(X, y, sample_weight, params, n_updates, growth)

    def _fit(self, X, y, sample_weight, params, n_updates=None, growth="all"):
        adapter = self._adapter()
        validate_parameters(adapter.estimator)
        n_planned = adapter.n_planned()
        n_stages = adapter.n_next(n_updates or n_planned)
        if sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        # A run goes on with the same parameters, but for its length.
        settings = {}
        may_change = "n_jobs", "verbose", f"estimator__{self._count_name(adapter)}"
        for name, value in self.get_params().items():
            are_steps = isinstance(value, list) and name.startswith("estimator__")
            if not are_steps and name not in may_change:
                # The parameters of an estimator are settings too.
                settings[name] = type(value) if hasattr(value, "get_params") else value
        settings = snapshot(settings)
        run = self._live
        is_new = n_updates is None or run is None
        if is_new or not run.may_go_on(X, y, params, settings):
            run = self._begun(adapter, X, y, params, settings)
            may_follow = n_updates is not None and run.folds and adapter.keeps_all
            if may_follow and not (self.verbose or has_callbacks(self)):
                run.growth_of_model = growth
        vars(self).pop("_live", None)  # an error may leave it half grown
        # At every call: where several calls warn, those of the last one are shown.
        warn_of_settings(adapter, run)
        if self.verbose or has_callbacks(self):
            progress = FitProgress(
                self,
                n_planned=n_stages - run.n_stages,
                n_total=n_planned,
                X=X,
                y=y,
                sample_weight=sample_weight,
                reconstruct=partial(reconstruct, run),
            )
            n_iter, is_over = self._grown(run, n_stages, progress)
            record = run.record(n_iter)
            progress.finish(n_iter, record.estimates)
        else:
            is_over = not run.go_on(n_stages, self.n_jobs)
            n_iter = run.n_stages
            record = run.record(n_iter)
        replace_fitted(self, run.info.names | {"record_": record, "_live": run})
        return is_over or n_iter == n_planned

    def _begun(self, adapter, X, y, params, settings):
        """A run without stages."""
        passed, X, y_passed = (X, y, params), frame_of_arrow(X), target_array(y)
        of_fit = self._fit_params(adapter, params)
        row_weights = of_fit.last.get("sample_weight")
        info, y = checked_data(self, adapter, X, y, row_weights)
        if last_of(self.estimator) is self.estimator:
            adapter.warn_of_small_numbers(X, y)
        # The splitter, and parameters of its split and of fit.
        of_split = params
        if not get_config()["enable_metadata_routing"]:
            of_split = {"groups": params["groups"]} if "groups" in params else {}
        splitter, of_split, groups = splitter_of(self, y_passed, of_split)
        of_fit = of_fit.checked(_num_samples(y))
        # Targets and weights in the losses.
        classes, loss = info.row_classes, info.loss
        weights = of_fit.last.get("sample_weight")
        if weights is None:
            weights = np.ones(_num_samples(y))
        # No fit has rows of weight zero: bins, leaves and draws would count them.
        is_fitted = weights > 0
        if classes is not None:
            of_fitted = np.ravel(y)[is_fitted], weights[is_fitted]
            by_class = adapter.class_weights(classes, *of_fitted)
            weights = weights * by_class[np.searchsorted(classes, np.ravel(y))]
        target = info.target_of(y)
        rows = np.arange(len(target))
        loss.check_target(target)
        evaluated_on = target, weights, classes
        evaluation, splits, folds = None, [], []
        training_rows = rows[is_fitted]
        if len(rows) > MOST_TRAINING_ROWS:
            of_weight = np.flatnonzero(weights)
            drawn, _ = drawn_units(len(of_weight), None, MOST_TRAINING_ROWS)
            training_rows = of_weight[drawn]
        training = Evaluation(loss, [(rows, training_rows)], *evaluated_on, False)
        if splitter is not None:
            check_enough(y)
            drawn = list(splitter.split(X, y_passed, **of_split))
            of_weight = folds_of(drawn, np.where(weights > 0, rows, -1))
            for (fitted, _), (_, held_out) in zip(drawn, of_weight):
                fitted = rows[fitted]
                splits.append((fitted[is_fitted[fitted]], held_out))
            check_targets_of_folds(loss, target, of_weight)
            evaluation = Evaluation(loss, splits, *evaluated_on, True, groups)
        # The fits, of all rows and of every fold.
        X, y = indexable(summed(X), y)
        if np.ndim(y) == 2 and np.shape(y)[1] == 1:
            y = column_or_1d(y, warn=True)
        offset = of_fit.offset and of_fit.last[of_fit.offset].reshape(len(target), -1)

        def begun(y, params, held_out, rows, fold=None):
            held_out_of = (
                None if part is None else _safe_indexing(part, held_out)
                for part in (X, offset)
            )
            of_rows = X, y, params, *held_out_of, rows, classes, fold
            return StagedFit.begun(self.estimator, adapter, *of_rows)

        def begun_on(fitted, held_out, fold=None):
            y_fitted = _safe_indexing(y, fitted)
            return begun(y_fitted, of_fit.rows(fitted), held_out, fitted, fold)

        if is_fitted.all():
            main = begun(y, of_fit, training_rows, None)
        else:
            main = begun_on(rows[is_fitted], training_rows)
        if classes is not None and main.y is not y:  # a sampler has made it
            check_has_all(classes, main.y)
        for number, (fitted, held_out) in enumerate(splits):
            folds.append(begun_on(fitted, held_out, number))
        mean_of = None
        if self.keep == "mean":
            if not folds:
                raise ValueError(
                    "keep='mean' averages over the copies of the folds: set cv."
                )
            kind = MeanClassifier if is_classifier(self) else MeanRegressor
            mean_of = partial(MeanFit, kind=kind, classes=classes)
        evaluations = training, evaluation
        return StagedRun(
            passed, settings, y, main, folds, *evaluations, of_fit.offset, info, mean_of
        )

    def _fit_params(self, adapter, params):
        """Parameters of the estimator's ``fit`` among those of this one."""
        if get_config()["enable_metadata_routing"]:
            last = routed(self, "fit", "estimator", "fit", params)
        else:
            last = dict(params)
            last.pop("groups", None)
        before = {}
        if isinstance(self.estimator, Pipeline):
            before, last = params_by_step(self.estimator, last)
        offset = adapter.offset if last.get(adapter.offset) is not None else None
        return FitParams(before, last, None, offset, adapter.of_columns)

    def _grown(self, run, n_stages, progress):
        """Grow a run, a few stages at a time; its number of stages, whether it is over.

        ``progress`` reports to callbacks, and prints a line whenever stages are added.
        """
        while run.n_stages < n_stages:
            n_former = run.n_stages
            n_next = min(n_stages, n_former + progress.every)
            has_grown = run.go_on(n_next, self.n_jobs)
            recorded = run.main.stages.recorded()
            is_new = (recorded > n_former) & (recorded <= run.n_stages)
            for t in recorded[is_new]:
                if progress.report_step(t):
                    return int(t), True
            if not has_grown:
                return run.n_stages, True
            if run.n_stages < n_stages:
                progress.report(run.estimates(run.n_stages))
        return run.n_stages, False

    def _release(self):
        """Free memory that only further stages need, once the model has its best."""
        if (run := self._live) is not None and run.growth_of_model == "best":
            best = run.evaluation.best(run.n_stages)
            run.grow(best, run.n_stages, self.n_jobs)
            record = run.record(run.n_stages)
            replace_fitted(self, run.info.names | {"record_": record})
        self._live, held_out = None, ESTIMATES["cv"].of(self)
        if held_out is not None and isinstance(held_out.prediction, HeldOutStages):
            released = replace(held_out, prediction=held_out.prediction.released())
            self.record_ = self.record_.with_estimates({"cv": released})

    # ------------------------------------------------------------------ hooks

    def _parameters_at(self, t):
        return {self._count_name(self._adapter()): t}

    def _evaluated_iterations(self):
        recorded = self.recorded_iterations()
        if not self._adapter().keeps_all:
            return recorded
        return np.arange(1, self.n_iter_ + 1)

    def _ended_by(self):
        adapter = self._adapter()
        n_planned = adapter.n_planned()
        if self.n_iter_ < n_planned or not adapter.is_open_ended:
            return None
        name = self._count_name(adapter)
        return Limit(name, f"{name}={n_planned} may be too small", adapter.unit)

    def _default_patience(self):
        return self._adapter().patience

    def _price(self, n_rows, n_columns, n_outputs):
        adapter = self._adapter()
        n_stages, n_first = adapter.n_planned(), adapter.n_next(1)
        if adapter.patience is not None:
            # Patience ends most runs after some times as many stages.
            n_stages = min(n_stages, 6 * adapter.patience)
        start, stage = adapter.expected_seconds(n_rows, n_columns)
        stage *= n_outputs if adapter.grows_by_class else 1
        # The first update has all stages if a fit cannot be continued.
        return Price(start, n_first * stage, ceil(n_stages / n_first))

    def _loss_on(self, X, y):
        info, _ = checked_data(self, self._adapter(), X, y)
        if info.loss != LogLoss():
            return info.loss
        # As other classifiers name it.
        return Logistic() if len(info.classes) == 2 else Multinomial()

    def _why_worse(self, X, y):
        """Why no stage may be better than a constant, and what to do."""
        adapter = self._adapter()
        if not isinstance(self.estimator, Pipeline):
            return adapter.why_worse(X, y)
        if samplers_of(self.estimator) and is_classifier(self):
            return (
                "Samplers change the class shares and thus the probabilities: set "
                "criterion to a scorer, such as criterion='balanced_accuracy'."
            )
        return adapter.why_worse(None, y)

    def _check_loss_chooses(self):
        """Raise if paths have another loss than the fit: a scorer must choose then."""
        adapter = self._adapter()
        if (unnamed := adapter.unnamed_loss()) is not None:
            name, value = unnamed
            raise ValueError(
                f"{type(adapter.estimator).__name__} has {name}={value!r}, a loss "
                "whose values are unknown, so it cannot choose a number of "
                f"{adapter.unit}: set criterion to a scorer, such as "
                "criterion='neg_mean_absolute_error', or make_scorer of a function."
            )

    def _held_out_losses(self, name, y):
        held_out = ESTIMATES[name].of(self)
        if held_out is None or not getattr(held_out.prediction, "has_all", True):
            return None
        return held_out_losses_of(self, ESTIMATES[name], y)

    def _check_data(self, X, y, sample_weight=None):
        adapter = self._adapter()
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        _, y = checked_data(self, adapter, X, y)
        params, X = FitParams({}, weights).checked(_num_samples(y)), summed(X)
        one = StagedFit.begun(self.estimator, adapter, X, y, params, held_out=X)
        with warnings.catch_warnings(action="ignore"):
            one.grown(adapter.n_next(1))
        check_enough(y)

    def get_metadata_routing(self) -> Any:
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
        if isinstance(self.estimator, PerOutput.classes):  # it passes X on
            tags.input_tags = get_tags(self.estimator.estimator).input_tags
        of_classes, of_target = tags.classifier_tags, tags.target_tags
        if of_classes is not None:  # several labels in a row need probabilities
            of_classes.multi_label |= of_target.multi_output
            of_classes.multi_label &= self._held_out_response == "predict_proba"
            of_target.multi_output = of_classes.multi_label
        return tags


def reconstruct(run, t):
    """Fitted attributes of the first ``t`` stages of a run, for callbacks."""
    record = replace(run.record(run.n_stages), estimates={})
    return {**run.info.names, "record_": record.at(t)}


def as_staged(estimator, n_jobs=None):
    """An estimator that does not record its trajectory, as :class:`Staged`.

    The estimator itself is returned if it is a pipeline of one that records, if an
    estimator of skacv replaces it, or if it cannot be fitted in stages. ``n_jobs``
    threads fit the model and its folds.
    """
    last = last_of(estimator)
    records = isinstance(last, RecordsTrajectory)
    if records or type(last).__name__ in INSTEAD or staged_adapter_of(last) is None:
        return estimator
    # LightGBM prints nothing where it is -1.
    verbose = (getattr(last, "verbose", 0) or 0) > 0
    return Staged(estimator, n_jobs=n_jobs, verbose=verbose)
