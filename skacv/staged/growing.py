"""An estimator that grows on some rows, and its held-out predictions."""

from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import gen_batches

from .._compat import _num_samples
from .kind import StagedAdapter, response_of
from .kinds import kind_of

# Predictions that are in memory at a time.
ENTRIES_PER_BLOCK = 1 << 20


def last_of(estimator):
    """The last step of a pipeline; other estimators are their own."""
    return estimator.steps[-1][1] if isinstance(estimator, Pipeline) else estimator


def prefix_of(estimator):
    """The prefix of parameters of the last step of a pipeline."""
    return f"{estimator.steps[-1][0]}__" if isinstance(estimator, Pipeline) else ""


def cloned(estimator):
    """A clone, also of what can be fitted in stages and scikit-learn cannot clone.

    Parameters
    ----------
    estimator : object
        Or a list of estimators and names.
    """
    if isinstance(estimator, list | tuple):
        return type(estimator)(map(cloned, estimator))
    if isinstance(estimator, Pipeline):
        *before, (name, last) = estimator.steps
        holder = copy(estimator)
        holder.steps = [*before, (name, "passthrough")]
        found = clone(holder)
        found.steps[-1] = name, cloned(last)
        return found
    kind = kind_of(estimator) if hasattr(estimator, "get_params") else None
    return clone(estimator, safe=False) if kind is None else kind.cloned()


@dataclass
class StagedFit:
    """An estimator on some rows, stage by stage.

    Attributes
    ----------
    stages : Kind
        The last step of a pipeline, or the only estimator.
    X, y, params
        What it is fitted to.
    held_out : rows or None
        Held-out rows, as passed to it.
    offset : ndarray of shape (n_held_out, n_outputs) or None
        What is added to the sums of stages for these rows.
    before : Pipeline or None
        The fitted steps before the last, where there are any.
    name : str
        The name of the last step; empty without a pipeline.
    """

    stages: StagedAdapter
    X: object
    y: object
    params: dict
    held_out: object
    offset: np.ndarray | None = None
    before: Pipeline | None = None
    name: str = ""

    @classmethod
    def of(cls, estimator, X, y, params, held_out, offset=None):
        """An estimator without stages; the steps before the last are fitted.

        Parameters
        ----------
        params : FitParams
        """
        stages = kind_of(last_of(estimator)).begun()
        before, name = None, ""
        if isinstance(estimator, Pipeline):
            name = estimator.steps[-1][0]
            before = clone(estimator[:-1]) if len(estimator) > 1 else None
        if before is not None:
            X = before.fit_transform(X, y, **params.before)
            held_out = before.transform(held_out)
        return cls(stages, X, y, params.last, held_out, offset, before, name)

    def grown(self, n_stages):
        """The same with ``n_stages`` stages."""
        self.stages.grow(n_stages, self.X, self.y, self.params)
        return self

    def at(self, t):
        """The estimator with the first ``t`` stages, as fitted attributes."""
        fitted = self.stages.at(t)
        if self.name:
            before = [] if self.before is None else self.before.steps
            fitted = Pipeline([*before, (self.name, fitted)])
        return {"estimator_": fitted, "iteration_": t}

    def held_out_predictions(self, first, last, classes, side_runs=None):
        """Predictions of stages ``first + 1`` to ``last`` for the held-out rows.

        Parameters
        ----------
        classes : ndarray or None
            All that there are.
        carried : object
            What was returned for the stages up to ``first``.

        Returns
        -------
        predictions : ndarray of shape (last - first, n_held_out, ...)
        carried : object
        """
        begin, has_ended = first, first >= self.stages.n_stages
        if self.offset is not None and (side_runs is None or has_ended):
            begin, side_runs = 0, self.offset
        predictions, side_runs = self.stages.predictions_to(
            self.held_out, begin, last, side_runs
        )
        return self.of_classes(predictions[first - begin :], classes), side_runs

    def staged(self, X, last):
        """Predictions of stages for any rows, one after the other.

        Parameters
        ----------
        X : rows as the whole pipeline takes them
        last : int
            Those up to it that can be had are read.

        Yields
        ------
        ndarray of shape (n_samples, ...)
        """
        X = X if self.before is None else self.before.transform(X)
        side_runs, place = None, 0
        size = max(1, ENTRIES_PER_BLOCK // _num_samples(X))
        for first, end in _blocks(self.stages.recorded(), last, size):
            found, side_runs = self.stages.predictions(
                X, first, end, side_runs if first == place else None
            )
            place = end
            yield from found

    def of_classes(self, found, classes):
        """Predictions for all classes, if some are not in the training rows.

        Their probability is zero, and their decision less than any other.

        Raises
        ------
        ValueError
            If the estimator has other classes, or another order of them.
        """
        if classes is None:
            return found
        last = self.stages.fitted()
        places = np.searchsorted(classes, last.classes_)
        is_known = np.array_equal(classes[places % len(classes)], last.classes_)
        if not is_known or (np.diff(places) <= 0).any():
            raise ValueError(
                f"{type(last).__name__} has the classes {last.classes_.tolist()}, and "
                f"y has {classes.tolist()} in order: number the classes of y, as "
                "LabelEncoder does, and name them to the estimator in order or not "
                "at all."
            )
        if len(places) == len(classes):
            return found
        is_of_decisions = response_of(last) != "predict_proba"
        if is_of_decisions and found.ndim == 2:  # of two classes
            found = np.stack([-found, found], axis=2)
        padded = np.zeros((*found.shape[:2], len(classes)), found.dtype)
        if is_of_decisions:
            padded -= np.finfo(found.dtype).max
        # Boosting of one class has probabilities of two.
        padded[..., places] = found[..., : len(places)]
        return padded

    def without_training_rows(self):
        """The same with the held-out rows but without the training rows."""
        stages = self.stages.without_rows()
        return replace(self, stages=stages, X=None, y=None, params={})

    def without_rows(self):
        """The same without any rows."""
        return replace(self.without_training_rows(), held_out=None, offset=None)


def _blocks(stages, last, size):
    """Stages up to the last in blocks that follow one another: ends of each.

    Parameters
    ----------
    stages : ndarray of int
        In order.

    Yields
    ------
    first, end : int
        The block has the stages ``first + 1`` to ``end``.
    """
    stages = stages[stages <= last]
    for some in np.split(stages, 1 + np.flatnonzero(np.diff(stages) > 1)):
        for block in gen_batches(len(some), size):
            yield some[block][0] - 1, some[block][-1]
