"""The beginning of a run of stages: checked data, folds, and fits without any stage."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.validation import has_fit_parameter

from .._compat import _num_samples, _safe_indexing, has_callbacks
from .._estimator.data.checks import frame_of_arrow, sum_duplicates, target_array
from .._estimator.data.queries import (
    check_folds_of_queries,
    rows_by_query,
    sizes_by_row,
)
from .._estimator.delegation import route_metadata, samplers_of
from .._estimator.estimates.folds import folds_of, splitter_of
from .._estimator.estimates.readers import ESTIMATES
from ..risk.held_out_rows import drawn_units
from .averages import MeanClassifier, MeanFit, MeanRanker, MeanRegressor
from .bag import FEWEST_LEFT_OUT, OutOfBag
from .data import (
    FitParams,
    TargetInfo,
    check_data,
    check_enough,
    check_has_all,
    check_targets_of_folds,
    params_by_step,
    survival_of,
)
from .evaluation import Evaluation
from .fits import StagedFit, last_of
from .left_out import LeftOutRows
from .run import StagedRun

# The loss on the training rows is a mean over at most so many of them: its standard
# error is 1% of the spread of their losses.
MOST_TRAINING_ROWS = 10_000


def begin_run(staged, adapter, X, y, params, growth, former, measure):
    """The run of a Staged estimator, of which no stage has been evaluated.

    ``former`` are the FormerFits of another run, or None.
    """
    data = FitData.of(staged, adapter, X, y, params, measure)
    training, evaluation, splits = data.evaluate_training_rows(), None, []
    if data.splitter is not None:
        splits = data.draw_splits()
        evaluation = data.evaluation_of(splits, True, data.groups)
    begin = partial(data.begin_fit, staged.estimator, adapter)
    main = former.main if former else begin(data.fitted_rows(), training.rows)
    if data.info.row_classes is not None and main.y is not data.y:
        check_has_all(data.info.row_classes, main.y)  # a sampler has made it
    folds, bag = [], None
    if is_judged_out_of_bag(staged, adapter, data):
        held_out = evaluation.rows, evaluation.constant()
        bag = OutOfBag.of(main, data.X, np.flatnonzero(data.is_fitted), *held_out)
    else:
        for number, split in enumerate(splits):
            fit = former and former.take(split)
            if fit is None:
                fit = begin(*split, number)
            folds.append(replace(fit, fold=number))
    mean_of = None
    if staged.keep == "mean":
        mean_of = mean_of_fits(staged, adapter, folds, data.info.row_classes)
    # Whoever follows a run may ask for any stage.
    is_followed = staged.verbose or has_callbacks(staged)
    if is_followed or not (folds and adapter.keeps_all):
        growth = "all"
    return StagedRun(
        # Its estimator may be given other parameters while the run goes on.
        adapter=type(adapter)(adapter.clone_estimator()),
        n_jobs=staged.n_jobs,
        verbose=staged.verbose,
        passed=(X, y, data.units.params.get("sample_weight")),
        y=data.y,
        main=main,
        folds=folds,
        others=former.folds if former else [],
        bag=bag,
        training=training,
        evaluation=evaluation,
        offset=data.of_fit.offset,
        info=data.info,
        mean_of=mean_of,
        growth_of_model=growth,
        left_out=LeftOutRows.of(data) if ESTIMATES["loo"].is_on(staged) else None,
    )


class RowUnits:
    """Rows that have a loss each; ``params`` are those of ``fit``."""

    def __init__(self, staged, adapter, X, params, measure):
        name = type(adapter.estimator).__name__
        if measure is not None:
            raise ValueError(f"measure={measure!r} judges rankers, and {name} is none.")
        self.params = params

    # Parameters of the fits besides those that are passed.
    of_fit: dict[str, Any] = {}

    def complete(self, info):
        """What is known of the data, with what these units add."""
        return info

    def weights_in_losses(self, weights):
        """Weights of the rows, with which means over rows are means over units."""
        return weights

    def draw(self, rows, n_drawn):
        """Some of the rows, of whole units, in order."""
        drawn, _ = drawn_units(len(rows), None, n_drawn)
        return rows[drawn]

    def check_folds(self, folds):
        """Folds of whole units, their rows in order."""
        return folds


class QueryUnits(RowUnits):
    """Rows whose order in their query has a loss; ``groups`` number the queries."""

    def __init__(self, staged, adapter, X, params, measure):
        for step, sampler in samplers_of(staged.estimator):
            raise ValueError(
                f"The step {step!r} ({type(sampler).__name__}) changes rows, and a "
                "ranker needs whole queries: leave it out."
            )
        params = rows_by_query(X, params, type(adapter.estimator).__name__)
        self.queries = params["groups"]
        if staged.cv is None:
            del params["groups"]
        self.params, self.of_fit = params, {"qid": self.queries}
        self.loss = adapter.query_loss(measure) if measure else None

    def complete(self, info):
        sizes = sizes_by_row(self.queries)
        return replace(info, loss=self.loss or info.loss, query_sizes=sizes)

    def weights_in_losses(self, weights):
        return weights / sizes_by_row(self.queries)

    def draw(self, rows, n_drawn):
        units = np.unique(self.queries[rows], return_inverse=True)[1]
        drawn, _ = drawn_units(len(rows), units, n_drawn)
        return rows[drawn]

    def check_folds(self, folds):
        return check_folds_of_queries(folds, self.queries)


@dataclass(frozen=True, eq=False)
class FitData:
    """The data of a fit, checked, and the splitter of its folds.

    Shapes: target (n_samples, n_outputs), as the loss needs it; weights, is_fitted and
    groups (n_samples,).
    """

    # As the estimator takes them; a single column of y as a vector.
    X: Any
    y: Any
    info: TargetInfo
    units: RowUnits
    # Parameters of fit for the steps of a pipeline.
    of_fit: FitParams
    target: np.ndarray
    # Those of the losses, with the weights of classes.
    weights: np.ndarray
    # No fit has rows of weight zero: bins, leaves and draws would count them.
    is_fitted: np.ndarray
    # None if there are no folds; targets and parameters of its split.
    splitter: Any
    y_split: Any
    of_split: dict
    groups: np.ndarray | None

    @classmethod
    def of(cls, staged, adapter, X, y, params, measure):
        """The data that a Staged estimator is fitted to, or an error of it."""
        X = frame_of_arrow(X)
        y_passed = survival_of(y, adapter) if adapter.survival else target_array(y)
        kind = QueryUnits if adapter.ranks else RowUnits
        units = kind(staged, adapter, X, params, measure)
        of_fit = fit_params_of(staged, adapter, units.params)
        of_fit.last.update(units.of_fit)
        row_weights = of_fit.last.get("sample_weight")
        info, y = check_data(staged, adapter, X, y_passed, row_weights)
        info = units.complete(info)
        if last_of(staged.estimator) is staged.estimator:
            adapter.warn_of_small_numbers(X, y)
        of_split = units.params
        if not get_config()["enable_metadata_routing"]:
            of_split = {"groups": of_split["groups"]} if "groups" in of_split else {}
        splitter, of_split, groups = splitter_of(staged, y_passed, of_split)
        of_fit = of_fit.check(_num_samples(y))
        weights = of_fit.last.get("sample_weight")
        if weights is None:
            weights = np.ones(_num_samples(y))
        is_fitted = weights > 0
        takes_weights = has_fit_parameter(last_of(staged.estimator), "sample_weight")
        if not takes_weights and np.ptp(weights[is_fitted]) == 0:
            of_fit.last.pop("sample_weight", None)  # it says no more than which rows
        classes = info.row_classes
        if classes is not None:
            of_fitted = np.ravel(y)[is_fitted], weights[is_fitted]
            by_class = adapter.class_weights(classes, *of_fitted)
            weights = weights * by_class[np.searchsorted(classes, np.ravel(y))]
        target = info.target_of(y)
        info.loss.check_target(target)
        if splitter is not None:
            check_enough(y)
        X, y = indexable(sum_duplicates(X), y)
        if np.ndim(y) == 2 and np.shape(y)[1] == 1:
            y = column_or_1d(y, warn=True)
        return cls(
            X=X,
            y=y,
            info=info,
            units=units,
            of_fit=of_fit,
            target=target,
            weights=units.weights_in_losses(weights),
            is_fitted=is_fitted,
            splitter=splitter,
            y_split=y_passed,
            of_split=of_split,
            groups=groups,
        )

    def fitted_rows(self):
        """The rows that the model is fitted to; None if they are all."""
        return None if self.is_fitted.all() else np.flatnonzero(self.is_fitted)

    def evaluate_training_rows(self):
        """The Evaluation of the model on its own rows, or on some of many."""
        n_rows = len(self.target)
        rows = np.flatnonzero(self.is_fitted)
        if n_rows > MOST_TRAINING_ROWS:
            rows = self.units.draw(np.flatnonzero(self.weights), MOST_TRAINING_ROWS)
        return self.evaluation_of([(np.arange(n_rows), rows)], False)

    def evaluation_of(self, splits, *args):
        """The Evaluation of fits to the rows of splits, on those that they hold out."""
        of_rows = self.target, self.weights, self.info.row_classes
        return Evaluation(self.info.loss, splits, *of_rows, *args)

    def draw_splits(self):
        """Rows to fit on and rows to hold out, of positive weight, for every fold."""
        drawn = list(self.splitter.split(self.X, self.y_split, **self.of_split))
        drawn, rows = self.units.check_folds(drawn), np.arange(len(self.target))
        of_weight = folds_of(drawn, np.where(self.weights > 0, rows, -1))
        splits = []
        for (fitted, _), (_, held_out) in zip(drawn, of_weight):
            fitted = rows[fitted]
            splits.append((fitted[self.is_fitted[fitted]], held_out))
        check_targets_of_folds(self.info.loss, self.target, of_weight)
        return splits

    def begin_fit(self, estimator, adapter, fitted, held_out, fold=None):
        """The StagedFit to some rows, or to all (None), without any stage."""
        y, params, offset = self.y, self.of_fit, self.offset
        if fitted is not None:
            y, params = _safe_indexing(y, fitted), params.rows(fitted)
        held_out_of = (
            None if part is None else _safe_indexing(part, held_out)
            for part in (self.X, offset)
        )
        of_rows = self.X, y, params, *held_out_of, fitted, self.info.row_classes, fold
        return StagedFit.begin(estimator, adapter, *of_rows)

    @property
    def offset(self):
        """What is added to the sums of stages, (n_samples, n_outputs), or None."""
        name = self.of_fit.offset
        return name and self.of_fit.last[name].reshape(len(self.target), -1)


def fit_params_of(staged, adapter, params):
    """The FitParams of the estimator among the parameters of ``Staged.fit``."""
    if get_config()["enable_metadata_routing"]:
        last = route_metadata(staged, "fit", "estimator", "fit", params)
    else:
        last = dict(params)
        last.pop("groups", None)
    before = {}
    if isinstance(staged.estimator, Pipeline):
        before, last = params_by_step(staged.estimator, last)
    offset = adapter.offset if last.get(adapter.offset) is not None else None
    return FitParams(before, last, None, offset, adapter.of_columns)


def is_judged_out_of_bag(staged, adapter, data):
    """Whether members that have not drawn a row predict it, not fits of folds."""
    # Steps of a pipeline have seen the rows; unequal weights may be the odds of drawing
    # them.
    is_alone = last_of(staged.estimator) is staged.estimator and data.offset is None
    is_free = getattr(data.splitter, "is_default", False) and staged.keep == "model"
    weights = data.weights[data.is_fitted]
    if not (is_alone and is_free) or np.ptp(weights) > 0:
        return False
    return adapter.n_left_out(len(weights)) >= FEWEST_LEFT_OUT


def mean_of_fits(staged, adapter, folds, classes):
    """What makes one fit of the model and its folds, which predicts their mean."""
    if adapter.survival:
        raise ValueError(
            "keep='mean' averages predictions, and hazard ratios of several fits have "
            "no common unit: use keep='model'."
        )
    if not folds:
        raise ValueError("keep='mean' averages over the copies of the folds: set cv.")
    kind = MeanClassifier if is_classifier(staged) else MeanRegressor
    kind = MeanRanker if adapter.ranks else kind
    return partial(MeanFit, kind=kind, classes=classes)
