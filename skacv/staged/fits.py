"""An estimator on some rows, stage by stage: on all rows, or without a fold."""

from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches

from .._compat import _num_samples, _safe_indexing
from .._estimator.delegation import samplers_of, take_transformers
from .adapter import (
    OneClass,
    StagedAdapter,
    n_stages_per_block,
    response_of,
    staged_adapter_of,
)


def last_of(estimator):
    """The last step of a pipeline; any other estimator itself."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def replace_last_step(pipeline, last):
    """A copy of a pipeline, which shares its steps, with another last step."""
    *before, (name, _) = pipeline.steps
    changed = copy(pipeline)
    changed.steps = [*before, (name, last)]
    return changed


def clone_estimator(estimator):
    """A clone of an estimator, or of a list of estimators and names.

    It may be one that can be fitted in stages and that scikit-learn cannot clone.
    """
    if isinstance(estimator, list | tuple):
        return type(estimator)(map(clone_estimator, estimator))
    if isinstance(estimator, Pipeline):
        before = clone(replace_last_step(estimator, "passthrough"))
        return replace_last_step(before, clone_estimator(last_of(estimator)))
    adapter = staged_adapter_of(estimator) if hasattr(estimator, "get_params") else None
    if adapter is None:
        return clone(estimator, safe=False)
    return adapter.clone_estimator()


class ReachingRows(BaseEstimator):
    """The rows that reach the last step of a pipeline, in the place of this step."""

    def fit(self, X, y=None):
        self.X, self.y = X, y
        return self


def fit_before_last(pipeline, X, y, params):
    """A clone of a pipeline, fitted but for its last step, and what reaches this step.

    These are X, y and the parameters of ``fit``, for the rows that samplers have left
    or made.
    """
    samplers = samplers_of(pipeline)
    fitted = clone(replace_last_step(pipeline, ReachingRows()))
    try:
        fitted.fit(X, y, **params.before)
    except ValueError as error:
        if samplers and is_classifier(pipeline):
            error.add_note(counts_of_classes(y))
        raise
    reaching = last_of(fitted)
    if samplers:
        params = params.resample(samplers_of(fitted), _num_samples(reaching.y))
    return replace_last_step(fitted, "passthrough"), reaching.X, reaching.y, params


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
def names_fold(number):
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
    # The most stages that have been asked for.
    n_asked: int = 0

    @classmethod
    def begin(
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
        stages, pipeline = adapter.begin(), None
        if isinstance(estimator, Pipeline):
            X, rows = X if rows is None else _safe_indexing(X, rows), None
            with names_fold(fold):
                pipeline, X, y, params = fit_before_last(estimator, X, y, params)
                held_out = take_transformers(pipeline).transform(held_out)
        one_class, weights = None, params.last.get("sample_weight")
        if classes is not None:
            labels = np.unique(y if weights is None else np.asarray(y)[weights > 0])
            if len(labels) == 1:
                response = response_of(stages.estimator)
                one_class = OneClass(labels[0], classes, response)
        of_last = stages, X, y, params.last, held_out, offset
        return cls(*of_last, pipeline, rows, one_class, fold)

    def grow(self, n_stages):
        """Grow to ``n_stages`` stages in total, if there are fewer; return this fit."""
        if n_stages <= self.n_asked:
            return self
        self.n_asked, X = n_stages, self.X
        if X is not None and self.rows is not None:
            X = _safe_indexing(X, self.rows)
        try:
            with names_fold(self.fold):
                self.stages.grow(n_stages, X, self.y, self.params)
            knows_all = (
                self.one_class is None
                or len(self.stages.fitted_estimator().classes_) > 1
            )
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
            fitted = replace_last_step(self.pipeline, fitted)
        return fitted

    def held_out_predictions(self, first, last, classes, former_sums=None):
        """Predictions of stages ``first + 1`` to ``last`` for the held-out rows.

        The second result is None: they vary as those for new rows do. The third is
        passed as ``former_sums`` where they are predicted from ``last`` on. Shapes:
        returned (last - first, n_held_out, ...).
        """
        begin, has_ended = first, first >= self.stages.n_stages
        if self.offset is not None and (former_sums is None or has_ended):
            begin, former_sums = 0, self.offset
        predictions, former_sums = self.stages.predictions_to(
            self.held_out, begin, last, former_sums
        )
        predictions = predictions[first - begin :]
        if classes is not None:
            fitted = self.stages.fitted_estimator()
            predictions = add_lacking_classes(fitted, predictions, classes)
        return predictions, None, former_sums

    def staged_predictions(self, X, last):
        """Yield predictions of the available stages up to ``last`` for any rows."""
        if self.pipeline is not None:
            X = take_transformers(self.pipeline).transform(X)
        stages = self.stages.recorded_stages()
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

    def drop_training_rows(self):
        """A fit with the held-out rows only."""
        stages = self.stages.drop_rows()
        rest = dict.fromkeys(("X", "y", "rows", "one_class"))
        return replace(self, stages=stages, params={}, **rest)


@dataclass
class FormerFits:
    """What a run has grown, and another one on the same rows goes on with."""

    # The fit to all rows.
    main: StagedFit
    # Folds, each with its training rows and held-out rows, and its fit.
    folds: list

    def take(self, split):
        """The fit of a fold, which is not held any longer; None if there is none."""
        for number, (rows, fit) in enumerate(self.folds):
            if all(map(np.array_equal, rows, split)):
                del self.folds[number]
                return fit
        return None


def add_lacking_classes(fitted, predictions, classes):
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
