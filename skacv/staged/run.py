"""A model and its folds, grown side by side, with held-out predictions of every stage.

A :class:`StagedRun` has a :class:`StagedFit` for the model and for each fold. An
:class:`Evaluation` has their predictions, which are :class:`HeldOutStages`, and losses.
"""

import warnings
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches
from sklearn.utils.parallel import Parallel, delayed

from .._compat import _num_samples, _safe_indexing
from .._estimator.delegation import samplers_of, transforming
from .._estimator.estimates.held_out import RunningPath, row_losses
from .._estimator.parameters import are_same
from .._warnings import warn
from ..optim.array_path import StoredPath, with_room
from ..optim.blocks import MEMORY_BYTES
from ..records.held_out import HeldOut
from ..records.paths import Stages
from ..records.record import Record
from ..risk.held_out_rows import error_of_repeats, mean_with_error, units_of
from .adapter import (
    OneClass,
    StagedAdapter,
    n_stages_per_block,
    response_of,
    staged_adapter_of,
)
from .losses import WrongLabel


def last_of(estimator):
    """The last step of a pipeline; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def ending_in(pipeline, last):
    """A copy of a pipeline, which shares its steps, with another last step."""
    *before, (name, _) = pipeline.steps
    changed = copy(pipeline)
    changed.steps = [*before, (name, last)]
    return changed


def cloned(estimator):
    """A clone of an estimator, or of a list of estimators and names.

    It may be one that can be fitted in stages and that scikit-learn cannot clone.
    """
    if isinstance(estimator, list | tuple):
        return type(estimator)(map(cloned, estimator))
    if isinstance(estimator, Pipeline):
        last = cloned(last_of(estimator))
        return ending_in(clone(ending_in(estimator, "passthrough")), last)
    adapter = staged_adapter_of(estimator) if hasattr(estimator, "get_params") else None
    return clone(estimator, safe=False) if adapter is None else adapter.cloned()


class ReachingRows(BaseEstimator):
    """The rows that reach the last step of a pipeline, in the place of this step."""

    def fit(self, X, y=None):
        self.X, self.y = X, y
        return self


def fitted_before_last(pipeline, X, y, params):
    """A clone of a pipeline, fitted but for its last step, and what reaches this step.

    These are X, y and the parameters of ``fit``, for the rows that samplers have left
    or made.
    """
    samplers = samplers_of(pipeline)
    fitted = clone(ending_in(pipeline, ReachingRows()))
    try:
        fitted.fit(X, y, **params.before)
    except ValueError as error:
        if samplers and is_classifier(pipeline):
            error.add_note(counts_of_classes(y))
        raise
    reaching = last_of(fitted)
    if samplers:
        params = params.resampled(samplers_of(fitted), _num_samples(reaching.y))
    return ending_in(fitted, "passthrough"), reaching.X, reaching.y, params


def counts_of_classes(y):
    """A note on the rows of a fold, which has fewer of a class than samplers need."""
    labels, counts = np.unique(y, return_counts=True)
    rows = ", ".join(f"{n} of {c!r}" for c, n in zip(labels.tolist(), counts))
    return (
        f"The sampler was applied to these training rows, of a fold or all: {rows}. "
        "With fewer neighbours, as in SMOTE(k_neighbors=2), fewer rows of a class are "
        "enough."
    )


@contextmanager
def noting_fold(number):
    """Errors have a note with the number of a fold, if there is one."""
    try:
        yield
    except Exception as error:  # whatever a library may raise
        if number is not None:
            error.add_note(f"The fit to the rows of fold {number} of cv failed.")
        raise


@dataclass
class StagedFit:
    """An estimator on some rows, stage by stage, with rows that are held out of them.

    Shapes: offset (n_held_out, n_outputs) or None.
    """

    # The last step of a pipeline, or the only estimator.
    stages: StagedAdapter
    # X may have other rows too, and is None once the estimator has its own copy.
    X: object
    y: object
    # Arguments of ``fit`` of the last step.
    params: dict
    # As passed to the last step.
    held_out: object
    # Added to the sums of stages for the held-out rows.
    offset: np.ndarray | None = None
    # The pipeline with its fitted steps, but for the last one; None if it is none.
    pipeline: Pipeline | None = None
    # The rows of X that are fitted; None: all. They are copied as long as a fit takes.
    rows: np.ndarray | None = None
    # What takes the place of the stages if they know the only class of these rows
    # alone; None if there are several, or none.
    one_class: OneClass | None = None
    # The number of the fold that it leaves out, for errors to name.
    fold: int | None = None

    @classmethod
    def begun(
        cls,
        estimator,
        adapter,
        X,
        y,
        params,
        held_out,
        offset=None,
        rows=None,
        classes=None,
        fold=None,
    ):
        """An estimator without stages; the steps before the last are fitted.

        ``classes`` are those of all rows, if these have one each.
        """
        stages, pipeline = adapter.begun(), None
        if isinstance(estimator, Pipeline):
            X, rows = X if rows is None else _safe_indexing(X, rows), None
            with noting_fold(fold):
                pipeline, X, y, params = fitted_before_last(estimator, X, y, params)
                held_out = transforming(pipeline).transform(held_out)
        one_class, weights = None, params.last.get("sample_weight")
        if classes is not None:
            labels = np.unique(y if weights is None else np.asarray(y)[weights > 0])
            if len(labels) == 1:
                response = response_of(stages.estimator)
                one_class = OneClass(labels[0], classes, response)
        of_last = stages, X, y, params.last, held_out, offset
        return cls(*of_last, pipeline, rows, one_class, fold)

    def grown(self, n_stages):
        """This fit, which has grown to ``n_stages`` stages."""
        X = self.X
        if X is not None and self.rows is not None:
            X = _safe_indexing(X, self.rows)
        try:
            with noting_fold(self.fold):
                self.stages.grow(n_stages, X, self.y, self.params)
            knows_all = self.one_class is None or len(self.stages.fitted().classes_) > 1
        except Exception:
            if self.one_class is None:
                raise
            knows_all = False
        if not knows_all:
            self.stages = self.one_class
            self.stages.grow(n_stages, X, self.y, self.params)
        if self.stages.has_rows:
            self.X = None
        return self

    def at(self, t):
        """The estimator with the first ``t`` stages."""
        fitted = self.stages.at(t)
        if self.pipeline is not None:
            fitted = ending_in(self.pipeline, fitted)
        return fitted

    def held_out_predictions(self, first, last, classes, former_sums=None):
        """Predictions of stages ``first + 1`` to ``last`` for the held-out rows.

        The second result is passed as ``former_sums`` where they are predicted from
        ``last`` on. Shapes: returned (last - first, n_held_out, ...).
        """
        begin, has_ended = first, first >= self.stages.n_stages
        if self.offset is not None and (former_sums is None or has_ended):
            begin, former_sums = 0, self.offset
        predictions, former_sums = self.stages.predictions_to(
            self.held_out, begin, last, former_sums
        )
        predictions = predictions[first - begin :]
        if classes is not None:
            fitted = self.stages.fitted()
            predictions = for_all_classes(fitted, predictions, classes)
        return predictions, former_sums

    def staged(self, X, last):
        """Yield predictions of the available stages up to ``last`` for any rows."""
        if self.pipeline is not None:
            X = transforming(self.pipeline).transform(X)
        stages = self.stages.recorded()
        stages = stages[stages <= last]
        size = n_stages_per_block(_num_samples(X))
        former_sums, reached = None, 0
        for run in np.split(stages, 1 + np.flatnonzero(np.diff(stages) > 1)):
            for block in gen_batches(len(run), size):
                first, end = run[block][0] - 1, run[block][-1]
                predictions, former_sums = self.stages.predictions(
                    X, first, end, former_sums if first == reached else None
                )
                reached = end
                yield from predictions

    def without_training_rows(self):
        """A fit with the held-out rows only."""
        stages = self.stages.without_rows()
        rest = dict.fromkeys(("X", "y", "rows", "one_class"))
        return replace(self, stages=stages, params={}, **rest)


def for_all_classes(fitted, predictions, classes):
    """Predictions of a fitted classifier for all classes, of which it may lack some.

    A class that its rows lack has probability 0, or a decision less than any other.
    Other classes than ``classes``, or another order of them, raise a ValueError.

    Shapes: predictions (n_stages, n_samples[, n_fitted_classes]), returned (n_stages,
    n_samples[, n_classes]).
    """
    indices = np.searchsorted(classes, fitted.classes_)
    are_same_classes = np.array_equal(classes[indices % len(classes)], fitted.classes_)
    if not are_same_classes or (np.diff(indices) <= 0).any():
        raise ValueError(
            f"{type(fitted).__name__} has the classes {fitted.classes_.tolist()}, but "
            f"y has, in order, {classes.tolist()}: number the classes of y, as "
            "LabelEncoder does, and pass them to the estimator in this order or not "
            "at all."
        )
    if len(indices) == len(classes):
        return predictions
    are_decisions = response_of(fitted) != "predict_proba"
    if are_decisions and predictions.ndim == 2:  # of two classes
        predictions = np.stack([-predictions, predictions], axis=2)
    shape, dtype = (*predictions.shape[:2], len(classes)), predictions.dtype
    padded = np.full(shape, np.finfo(dtype).min if are_decisions else 0, dtype)
    # With one class boosting predicts two columns, and the first is that class.
    padded[..., indices] = predictions[..., : len(indices)]
    return padded


class HeldOutStages(RunningPath):
    """Held-out predictions of every stage, fold after fold.

    Row 0 has the predictions without any stage, ``constant``. If they are not kept, or
    do not fit in memory, stages predict again when a row is read. ``folds`` have a
    stage at least. Shapes: constant (n_held_out, n_outputs).
    """

    def __init__(self, folds, classes, constant, is_kept):
        self._folds, self._classes, self._is_kept = folds, classes, is_kept
        # The next stage to predict, and the results that the folds pass on to it.
        self._next = 0, ()
        first = self._predict(1, 2)
        if constant.size != first.size:
            raise ValueError(
                f"The estimator predicts {first.size // len(constant)} numbers per "
                f"row, but y has {constant.shape[1]}: their numbers must agree."
            )
        self._constant = constant.reshape(first.shape)
        self._kept = np.concatenate([self._constant, first], dtype=float)
        self.shape, self.dtype = self._kept.shape, self._kept.dtype

    def read_new(self, n_stages):
        """Yield blocks of predictions of new stages, up to ``n_stages`` in all."""
        size = n_stages_per_block(self._constant.size)
        # An eighth, for there are copies of what is kept as it grows.
        most = MEMORY_BYTES // 8
        while len(self) <= n_stages:
            first, last = len(self), min(len(self) + size, n_stages + 1)
            predictions = self._predict(first, last)
            self.shape = last, *self.shape[1:]
            n_bytes = last * self._constant.nbytes
            if self._kept is None or not self._is_kept or n_bytes > most:
                self._kept = None
            else:
                self._kept = with_room(self._kept, first, last)
                self._kept[first:last] = predictions
            yield predictions

    def _compute(self, iterates):
        if self._kept is not None:
            return self._kept[: len(self)][iterates]
        rows = np.arange(len(self))[iterates]
        first, last = rows.min(initial=len(self)), rows.max(initial=0)
        predictions = self._predict(max(first, 1), last + 1)
        if first == 0:
            predictions = np.concatenate([self._constant, predictions])
        return predictions[rows - first]

    def _predict(self, first, last):
        """Rows ``first`` to ``last`` of the path; where possible they are continued."""
        if last <= first:
            return np.empty((0, *self._constant.shape[1:]))
        while 0 < self._next[0] < first:  # stages in between are cheaper than all
            reached, size = self._next[0], n_stages_per_block(self._constant.size)
            self._predict(reached, min(reached + size, first))
        reached, former_sums = self._next
        if reached != first:
            former_sums = [None] * len(self._folds)
        predictions, next_sums = [], []
        for fold, sums in zip(self._folds, former_sums):
            values, sums = fold.held_out_predictions(
                first - 1, last - 1, self._classes, sums
            )
            predictions.append(values)
            next_sums.append(sums)
        self._next = last, next_sums
        return np.concatenate(predictions, axis=1)

    @property
    def has_all(self):
        """Whether the predictions of all stages are available."""
        n_stages = len(self) - 1
        return self._kept is not None or all(
            len(fold.stages.recorded()) >= min(n_stages, fold.stages.n_stages)
            for fold in self._folds
        )

    def released(self):
        """A copy of the path, without data of further stages."""
        path = copy(self)
        path._next = 0, ()
        if self._kept is not None:
            path._kept, path._folds = self._kept[: len(self)], []
        else:
            path._folds = [fold.without_training_rows() for fold in self._folds]
        return path

    @property
    def reads_rows(self):
        return self._kept is None

    def stored(self):
        if self._kept is None:
            return super().stored()
        return StoredPath(self._kept[: len(self)])


@dataclass
class Evaluation:
    """The losses of stages on the held-out rows of folds.

    Shapes: target (n_samples, n_outputs), weights and groups (n_samples,).
    """

    loss: object
    # Training rows and held-out rows of every fold.
    splits: list
    target: np.ndarray
    weights: np.ndarray
    classes: np.ndarray | None
    # Whether predictions are kept while they fit in memory.
    keeps_predictions: bool
    groups: np.ndarray | None = None
    path: HeldOutStages | None = None
    # Blocks of mean losses of stages on each fold, (n, n_folds), and of their standard
    # errors over the rows of the first fold, or over their groups, (n,).
    losses: list = field(default_factory=list)
    row_errors: list = field(default_factory=list)

    def __post_init__(self):
        # The held-out rows of each fold, and fold after fold; weights of the folds.
        self.held_out, fold_weights = [], []
        for _, held_out in self.splits:
            self.held_out.append(held_out)
            fold_weights.append(self.weights[held_out].sum())
        self.rows = np.concatenate(self.held_out)
        self.fold_weights = np.array(fold_weights)

    def read(self, folds, n_stages):
        """Evaluate the stages that are new since the last call."""
        loss, target, weights = self.loss, self.target, self.weights
        sizes, first = list(map(len, self.held_out)), []
        if self.path is None:
            constants = np.zeros((len(self.splits), target.shape[1]))
            if loss != WrongLabel():
                for constant, (fitted, _) in zip(constants, self.splits):
                    constant[:] = np.average(target[fitted], 0, weights[fitted])
            constant = np.repeat(constants, sizes, axis=0)
            self.path = HeldOutStages(
                folds, self.classes, constant, self.keeps_predictions
            )
            first = [self.path[:2]]
        ends = np.cumsum(sizes)[:-1]
        weights_of_folds = np.split(weights[self.rows], ends)
        units = units_of(self.held_out[0], self.groups)
        for predictions in chain(first, self.path.read_new(n_stages)):
            with np.errstate(over="ignore", invalid="ignore"):  # of one that diverges
                losses = row_losses(loss, target[self.rows], predictions)
                # The layout, which would depend on the number of stages, decides how
                # sums are rounded.
                losses = np.ascontiguousarray(losses)
                parts = list(zip(np.split(losses, ends, axis=1), weights_of_folds))
                means = np.empty((len(losses), len(parts)))
                for mean, part in zip(means.T, parts):
                    mean[:], _ = mean_with_error(*part)
                self.losses.append(means)
                self.row_errors.append(mean_with_error(*parts[0], units)[1])

    def best(self, n_stages):
        """The stage of least loss among the first ``n_stages``."""
        path, _ = self.path_and_error(n_stages)
        return 1 + int(np.argmin(np.where(np.isnan(path), np.inf, path)[1:]))

    def n_finite(self, n_stages):
        """Number of stages up to the last one of a finite loss; all if none is."""
        path, _ = self.path_and_error(n_stages)
        (finite,) = np.isfinite(path[1:]).nonzero()
        return int(finite[-1]) + 1 if len(finite) else n_stages

    def path_and_error(self, n_stages):
        """The mean loss of every stage, and its standard error."""
        by_fold = np.ascontiguousarray(np.concatenate(self.losses)[: n_stages + 1])
        with np.errstate(invalid="ignore"):
            path, se_path = mean_with_error(by_fold, self.fold_weights)
        if len(self.splits) == 1:  # no spread over folds: that over rows, or groups
            return path, np.concatenate(self.row_errors)[: n_stages + 1]
        return path, se_path * error_of_repeats(self.rows, self.weights[self.rows])


@dataclass
class StagedRun:
    """A run of a model and its folds, which can be continued."""

    # X, y, a dict of the other arguments of ``fit``, and parameters of the estimator.
    # If all are passed again the run continues.
    passed: tuple
    settings: dict
    # A single column as a vector.
    y: object
    # The fit of the model to all rows, and those of the folds.
    main: StagedFit
    folds: list
    # On the training rows, and on the rows of folds; None without folds.
    training: Evaluation
    evaluation: Evaluation | None
    # The parameter of ``fit`` that is added to the sums of stages, or None.
    offset: str | None
    # A TargetInfo of the data.
    info: object
    # Makes one fit of several, which predicts their mean; None: the model is alone.
    mean_of: object = None
    # How far the model grows: as far as the folds ("all"), to their "best" stage, or
    # to the "first" one.
    growth_of_model: str = "all"
    # Stages that have been evaluated, and those of the model.
    n_stages: int = 0
    n_of_main: int = 0

    def may_go_on(self, X, y, params, settings):
        """Whether the very same objects are passed, with the same parameters."""
        former_X, former_y, former = self.passed
        return (
            former_X is X
            and former_y is y
            and former.keys() == params.keys()
            and all(former[name] is params[name] for name in former)
            and are_same(self.settings, settings)
        )

    def go_on(self, n_stages, n_jobs):
        """Grow all to ``n_stages`` stages; whether there may be more.

        The model grows to the best of their stages so far, if that is enough.
        """
        n_models = 1 + len(self.folds)
        while self.n_stages < n_stages:
            # Where stages take memory, all but the best and the last are freed.
            n_kept = self.main.stages.n_kept(n_models)
            n_recorded = len(self.main.stages.recorded()) if self.n_stages else 0
            if n_recorded >= n_kept:
                best = {self.evaluation.best(self.n_stages)} if self.folds else set()
                for model in self.main, *self.folds:
                    model.stages = model.stages.keep(sorted(best | {self.n_stages}))
                n_recorded = len(self.main.stages.recorded())
            n_next = min(n_stages, self.n_stages + max(1, n_kept - n_recorded))
            n_of_main = n_next if self.growth_of_model == "all" else 1
            if self.growth_of_model == "best" and self.n_stages:
                n_of_main = self.evaluation.best(self.n_stages)
            self.grow(n_of_main, n_next, n_jobs)
            if self.n_stages < n_next:
                return False
        return True

    def grow(self, n_of_main, n_of_folds, n_jobs):
        """Grow the model and the folds side by side, and evaluate their stages."""
        grows, growing = n_of_main > self.n_of_main, []
        if grows:
            growing.append((self.main, n_of_main))
        if n_of_folds > self.n_stages:
            growing += [(fold, n_of_folds) for fold in self.folds]
        with warnings.catch_warnings():
            # A staged run stops on purpose, and weights of classes are of the same rows
            # at every stage.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("ignore", "class_weight presets")
            # Libraries release Python's lock while they compute.
            grown = Parallel(n_jobs=n_jobs, prefer="threads")(
                delayed(fit.grown)(n) for fit, n in growing
            )
        if grows:
            self.main, *grown = grown
            self.n_of_main = self.main.stages.n_stages
            self.training.read([self.main], self.n_of_main)
        self.folds = grown or self.folds
        self.n_stages = self.n_of_main
        if self.growth_of_model != "all" and self.n_of_main >= n_of_main:
            n_of_longest = max(fold.stages.n_stages for fold in self.folds)
            self.n_stages = min(n_of_folds, n_of_longest)
        self._end_at_failure()
        if self.folds:
            self.evaluation.read(self.folds, self.n_stages)
        self._end_at_divergence()

    def _end_at_failure(self):
        """End before the first stage at which the model or a fold has failed."""
        failed = []
        for number, fit in enumerate((self.main, *self.folds)):
            if fit.stages.failure is not None:
                failed.append((fit.stages.n_stages, number, fit.stages))
        if not failed:
            return
        n_stages, number, stages = min(failed, key=lambda of_fit: of_fit[:2])
        self.n_stages = min(self.n_stages, n_stages)
        rows = f"without the rows of fold {number}" if number else "on all rows"
        warn(
            f"{type(stages.estimator).__name__} failed {rows}; the stages before are "
            f"kept ({stages.unit}: {n_stages}). {type(stages.failure).__name__}: "
            f"{stages.failure}",
            FitFailedWarning,
        )

    def _end_at_divergence(self):
        """End after the last stage whose mean losses are finite, if one has some."""
        n_stages, stages = self.n_stages, self.main.stages
        of_main = min(n_stages, self.n_of_main)
        if (n_finite := self.training.n_finite(of_main)) < of_main:
            n_stages = n_finite
        if self.folds:
            n_stages = min(n_stages, self.evaluation.n_finite(n_stages))
        if n_stages < self.n_stages:
            self.n_stages = n_stages
            warn(
                f"{type(stages.estimator).__name__} diverges: its losses are no "
                f"longer finite; the stages before are kept ({stages.unit}: "
                f"{n_stages}). A smaller learning rate or standardised columns may "
                "help.",
                ConvergenceWarning,
            )

    def model(self):
        """What predicts, without rows: the fit to all rows, or the mean of all fits."""
        fits = []
        for fit in (self.main, *(self.folds if self.mean_of else ())):
            without_rows = fit.without_training_rows()
            fits.append(replace(without_rows, held_out=None, offset=None))
        return self.mean_of(fits) if self.mean_of else fits[0]

    def record(self, n_stages):
        """The Record of ``n_stages`` stages; the model uses its own."""
        n_of_main, model = min(n_stages, self.n_of_main), self.model()
        train_path = np.full(n_stages + 1, np.nan)
        train_path[: n_of_main + 1], _ = self.training.path_and_error(n_of_main)
        more = {"info": self.info, "offset": self.offset}
        return Record(
            iterates=Stages(model, n_stages),
            iteration=n_of_main,
            iterate=model.at(n_of_main),
            n_iter=n_stages,
            loss=self.info.loss,
            classes=self.info.classes,
            train_path=train_path,
            estimates=self.estimates(n_stages),
            weights=self.training.weights,
            groups=self.evaluation and self.evaluation.groups,
            more=more,
        )

    def estimates(self, n_stages):
        """The estimates of ``n_stages`` stages by name: folds, if there are some."""
        evaluation = self.evaluation
        if evaluation is None:
            return {}
        path, se_path = evaluation.path_and_error(n_stages)
        by_fold = np.concatenate(evaluation.losses)[: n_stages + 1]
        held_out = HeldOut(
            path=path,
            se_path=se_path,
            indices=evaluation.held_out,
            target=np.asarray(self.y)[evaluation.rows],
            prediction=evaluation.path.first(n_stages + 1),
            more={"fold_path": by_fold},
        )
        return {"cv": held_out}
