"""Estimators fitted in stages, as estimators that record their trajectory."""

from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_classifier
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import has_fit_parameter

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
    sum_duplicates,
    target_array,
)
from .._estimator.data.queries import (
    check_folds_of_queries,
    is_ranker,
    rows_by_query,
    sizes_by_row,
)
from .._estimator.delegation import class_of, route_metadata, samplers_of
from .._estimator.estimates.folds import folds_of, splitter_of
from .._estimator.parameters import set_parameters
from .._estimator.run.advice import INSTEAD
from .._estimator.run.progress import advance
from .._estimator.run.recording import RecordsTrajectory
from ..optim.losses import Loss
from ..records.run import Run
from ..risk.held_out_rows import drawn_units
from .adapter import staged_adapter_of
from .adapters import CAN_BE_STAGED, PerOutput
from .averages import MeanClassifier, MeanFit, MeanRanker, MeanRegressor
from .bag import FEWEST_LEFT_OUT, OutOfBag
from .data import (
    FitParams,
    check_data,
    check_enough,
    check_has_all,
    check_targets_of_folds,
    params_by_step,
    survival_of,
)
from .evaluation import Evaluation
from .fits import FormerFits, StagedFit, clone_estimator, last_of
from .prediction import PredictsByStages
from .run import StagedRun
from .terms import StagedTerms

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
        The folds, as in scikit-learn. None: no folds; but inside of
        :class:`TrajectoryEarlyStoppingCV` its ``cv``, or :doc:`out-of-bag predictions
        </guide/boosting>` of forests and bagging.
    keep : {"model", "mean"}, default="model"
        "model" predicts with the model on all rows, "mean" with the average of it and
        the clones of all folds, which usually has a smaller loss and takes as long as
        all of them. "mean" needs ``cv``.
    judge : Loss, default=None
        The loss that judges the stages of a regressor, one of ``skacv.optim.losses``;
        it has to suit predictions, as ``Tweedie(1.5)`` suits means that a Poisson loss
        has fitted. None: that which the estimator minimises.
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
        minimises, or ``judge``, for classification usually the log loss, for rankers
        one less NDCG@10 (:doc:`table </guide/boosting>`). Class weights count;
        ``eval_metric`` is not used.
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
        "judge": [Loss, None],
        "n_jobs": [None, Integral],
        "verbose": ["boolean", Interval(Integral, 0, None, closed="left")],
    }

    _terms_type = StagedTerms

    def __init__(
        self,
        estimator: Any,
        *,
        cv: Any = None,
        keep: Literal["model", "mean"] = "model",
        judge: Loss | None = None,
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
        copied.estimator = clone_estimator(self.estimator)
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
    def _takes_survival(self):
        """How the estimator takes survival times, if it does."""
        adapter = staged_adapter_of(last_of(self.estimator))
        return adapter.survival if adapter is not None else None

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
        return f"{self._prefix_of_last()}{adapter.count}"

    def _prefix_of_last(self):
        """What begins the names of parameters of the last step of a pipeline."""
        is_pipeline = last_of(self.estimator) is not self.estimator
        return f"{self.estimator.steps[-1][0]}__" if is_pipeline else ""

    def _params_of_loss(self, loss):
        params, prefix = self._adapter().params_of_loss(loss), self._prefix_of_last()
        if params is None:
            return None
        judged = {} if self.judge is None else {"judge": loss}
        return judged | {f"estimator__{prefix}{key}": params[key] for key in params}

    # ------------------------------------------------------------------ fit

    @with_callbacks
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
            of LightGBM, are added to held-out predictions too. Of a ranker the query
            of every row, as ``qid``, or the sizes of the queries, as ``group``.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If the estimator cannot be fitted in stages, or data are invalid.
        """
        run = self.begin(X, y, sample_weight, **params)
        advance(self, run)
        return self.take(run.end())

    @_fit_context(prefer_skip_nested_validation=False)
    def begin(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        growth: Literal["all", "best", "first"] = "all",
        former: FormerFits | None = None,
        measure: str | None = None,
        **params: Any,
    ) -> Run:
        """Begin a run of the estimator and its folds, without any stage.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        growth : {"all", "best", "first"}, default="all"
            How far the model on all rows grows, where no other stages will be asked
            for: as far as the folds, to their best stage, or to the first.
        former : object, default=None
            What a run of the same estimator on the same data, perhaps with other folds,
            has handed over (:meth:`~skacv.records.Run.hand_over`): the model and those
            folds that are the same go on.
        measure : str, default=None
            What judges the order of a ranker, such as "ndcg@5" or "map@10". None:
            "ndcg@10".
        **params : dict
            As in ``fit``.

        Returns
        -------
        Run
        """
        adapter = self._adapter()
        validate_parameters(adapter.estimator)
        if sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        with names_infinite_columns(X):
            return self._begin_run(adapter, X, y, params, growth, former, measure)

    def _begin_run(self, adapter, X, y, params, growth, former, measure):
        """A run of which no stage has been evaluated."""
        passed, X = (X, y), frame_of_arrow(X)
        y_passed = survival_of(y, adapter) if adapter.survival else target_array(y)
        queries = None
        if measure is not None and not adapter.ranks:
            raise ValueError(
                f"measure={measure!r} judges rankers, and "
                f"{type(adapter.estimator).__name__} is none."
            )
        if adapter.ranks:
            params = rows_by_query(X, params, type(adapter.estimator).__name__)
            queries = params["groups"]
            if self.cv is None:
                del params["groups"]
        of_fit = self._fit_params(adapter, params)
        if queries is not None:
            check_keeps_queries(self.estimator)
            of_fit.last["qid"] = queries
        row_weights = of_fit.last.get("sample_weight")
        info, y = check_data(self, adapter, X, y_passed, row_weights)
        if queries is not None:
            loss = adapter.query_loss(measure) if measure else info.loss
            info = replace(info, loss=loss, query_sizes=sizes_by_row(queries))
        if last_of(self.estimator) is self.estimator:
            adapter.warn_of_small_numbers(X, y)
        # The splitter, and parameters of its split and of fit.
        of_split = params
        if not get_config()["enable_metadata_routing"]:
            of_split = {"groups": params["groups"]} if "groups" in params else {}
        splitter, of_split, groups = splitter_of(self, y_passed, of_split)
        of_fit = of_fit.check(_num_samples(y))
        # Targets and weights in the losses.
        classes, loss = info.row_classes, info.loss
        weights = of_fit.last.get("sample_weight")
        if weights is None:
            weights = np.ones(_num_samples(y))
        # No fit has rows of weight zero: bins, leaves and draws would count them.
        is_fitted = weights > 0
        takes_weights = has_fit_parameter(last_of(self.estimator), "sample_weight")
        if not takes_weights and np.ptp(weights[is_fitted]) == 0:
            of_fit.last.pop("sample_weight", None)  # it says no more than which rows
        if classes is not None:
            of_fitted = np.ravel(y)[is_fitted], weights[is_fitted]
            by_class = adapter.class_weights(classes, *of_fitted)
            weights = weights * by_class[np.searchsorted(classes, np.ravel(y))]
        if queries is not None:  # means over rows are means over queries then
            weights = weights / info.query_sizes
        target = info.target_of(y)
        rows = np.arange(len(target))
        loss.check_target(target)
        evaluated_on = target, weights, classes
        evaluation, splits, folds, bag = None, [], [], None
        training_rows = rows[is_fitted]
        if len(rows) > MOST_TRAINING_ROWS:
            of_weight, units = np.flatnonzero(weights), None
            if queries is not None:
                units = np.unique(queries[of_weight], return_inverse=True)[1]
            drawn, _ = drawn_units(len(of_weight), units, MOST_TRAINING_ROWS)
            training_rows = of_weight[drawn]
        training = Evaluation(loss, [(rows, training_rows)], *evaluated_on, False)
        if splitter is not None:
            check_enough(y)
            drawn = list(splitter.split(X, y_passed, **of_split))
            if queries is not None:
                drawn = check_folds_of_queries(drawn, queries)
            of_weight = folds_of(drawn, np.where(weights > 0, rows, -1))
            for (fitted, _), (_, held_out) in zip(drawn, of_weight):
                fitted = rows[fitted]
                splits.append((fitted[is_fitted[fitted]], held_out))
            check_targets_of_folds(loss, target, of_weight)
            evaluation = Evaluation(loss, splits, *evaluated_on, True, groups)
        # The fits, of all rows and of every fold.
        X, y = indexable(sum_duplicates(X), y)
        if np.ndim(y) == 2 and np.shape(y)[1] == 1:
            y = column_or_1d(y, warn=True)
        offset = of_fit.offset and of_fit.last[of_fit.offset].reshape(len(target), -1)

        def begin(y, params, held_out, rows, fold=None):
            held_out_of = (
                None if part is None else _safe_indexing(part, held_out)
                for part in (X, offset)
            )
            of_rows = X, y, params, *held_out_of, rows, classes, fold
            return StagedFit.begin(self.estimator, adapter, *of_rows)

        def begin_on(fitted, held_out, fold=None):
            y_fitted = _safe_indexing(y, fitted)
            return begin(y_fitted, of_fit.rows(fitted), held_out, fitted, fold)

        if former is not None:
            main = former.main
        elif is_fitted.all():
            main = begin(y, of_fit, training_rows, None)
        else:
            main = begin_on(rows[is_fitted], training_rows)
        if classes is not None and main.y is not y:  # a sampler has made it
            check_has_all(classes, main.y)
        if self._is_judged_out_of_bag(adapter, splitter, offset, weights[is_fitted]):
            held_out = evaluation.rows, evaluation.constant()
            bag = OutOfBag.of(main, X, rows[is_fitted], *held_out)
        else:
            for number, split in enumerate(splits):
                fit = former and former.take(split)
                if fit is None:
                    fit = begin_on(*split, number)
                folds.append(replace(fit, fold=number))
        mean_of = None
        if self.keep == "mean" and adapter.survival:
            raise ValueError(
                "keep='mean' averages predictions, and hazard ratios of several fits "
                "have no common unit: use keep='model'."
            )
        if self.keep == "mean":
            if not folds:
                raise ValueError(
                    "keep='mean' averages over the copies of the folds: set cv."
                )
            kind = MeanClassifier if is_classifier(self) else MeanRegressor
            kind = MeanRanker if adapter.ranks else kind
            mean_of = partial(MeanFit, kind=kind, classes=classes)
        # Whoever follows a run may ask for any stage.
        is_followed = self.verbose or has_callbacks(self)
        if is_followed or not (folds and adapter.keeps_all):
            growth = "all"
        return StagedRun(
            # Its estimator may be given other parameters while the run goes on.
            adapter=type(adapter)(adapter.clone_estimator()),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            passed=(*passed, params.get("sample_weight")),
            y=y,
            main=main,
            folds=folds,
            others=former.folds if former else [],
            bag=bag,
            training=training,
            evaluation=evaluation,
            offset=of_fit.offset,
            info=info,
            mean_of=mean_of,
            growth_of_model=growth,
        )

    def _is_judged_out_of_bag(self, adapter, splitter, offset, weights):
        """Whether members that have not drawn a row predict it, not fits of folds."""
        # Steps of a pipeline have seen the rows; unequal weights may be the odds of
        # drawing them.
        is_alone = last_of(self.estimator) is self.estimator and offset is None
        is_free = getattr(splitter, "is_default", False) and self.keep == "model"
        if not (is_alone and is_free) or np.ptp(weights) > 0:
            return False
        return adapter.n_left_out(len(weights)) >= FEWEST_LEFT_OUT

    def _fit_params(self, adapter, params):
        """Parameters of the estimator's ``fit`` among those of this one."""
        if get_config()["enable_metadata_routing"]:
            last = route_metadata(self, "fit", "estimator", "fit", params)
        else:
            last = dict(params)
            last.pop("groups", None)
        before = {}
        if isinstance(self.estimator, Pipeline):
            before, last = params_by_step(self.estimator, last)
        offset = adapter.offset if last.get(adapter.offset) is not None else None
        return FitParams(before, last, None, offset, adapter.of_columns)

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
        splitter = check_cv(self.cv)
        if is_ranker(self):  # queries are the groups of any folds
            splitter = GroupKFold()
        return router.add(splitter=splitter, method_mapping=split)

    def __sklearn_tags__(self):
        tags = get_tags(self.estimator)
        tags.array_api_support = False
        adapter = staged_adapter_of(last_of(self.estimator))
        if adapter is not None and adapter.ranks:
            # CatBoost says that it is a regressor, LightGBM and XGBoost say nothing.
            tags.estimator_type, tags.regressor_tags = "ranker", None
        if self._takes_survival:  # with their own targets
            tags.estimator_type = tags.regressor_tags = None
        if isinstance(self.estimator, PerOutput.classes):  # it passes X on
            tags.input_tags = get_tags(self.estimator.estimator).input_tags
        of_classes, of_target = tags.classifier_tags, tags.target_tags
        if of_classes is not None:  # several labels in a row need probabilities
            of_classes.multi_label |= of_target.multi_output
            of_classes.multi_label &= self._held_out_response == "predict_proba"
            of_target.multi_output = of_classes.multi_label
        return tags


def check_keeps_queries(estimator):
    """Raise if samplers before a ranker take rows out of queries."""
    for name, step in samplers_of(estimator):
        raise ValueError(
            f"The step {name!r} ({type(step).__name__}) changes rows, and a ranker "
            "needs whole queries: leave it out."
        )


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
