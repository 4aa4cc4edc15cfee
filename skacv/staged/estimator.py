"""Estimators fitted in stages, as estimators that record their trajectory."""

from contextlib import suppress
from copy import copy
from numbers import Integral
from typing import Any, Literal, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import GroupKFold, check_cv
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from .._compat import (
    CallbackSupportMixin,
    HasMethods,
    Interval,
    StrOptions,
    _fit_context,
    validate_parameters,
    with_callbacks,
)
from .._estimator.data.checks import names_infinite_columns
from .._estimator.data.queries import is_ranker
from .._estimator.delegation import class_of
from .._estimator.parameters import set_parameters
from .._estimator.run.advice import INSTEAD
from .._estimator.run.progress import advance
from .._estimator.run.recording import RecordsTrajectory
from ..optim.losses import Loss
from ..records.run import Run
from .adapter import staged_adapter_of
from .adapters import CAN_BE_STAGED, PerOutput
from .begin import begin_run
from .fits import FormerFits, clone_estimator, last_of
from .prediction import PredictsByStages
from .terms import StagedTerms


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

    def _levels(self):
        """The levels of each prediction, if the estimator has several; else none."""
        with suppress(ValueError):  # of parameters, which fit raises
            return getattr(self._adapter().regression_loss(), "levels", ())
        return ()

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
            return begin_run(self, adapter, X, y, params, growth, former, measure)

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
