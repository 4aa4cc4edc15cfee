"""What a fitted model keeps: its record, in memory and in a pickle."""

from copy import copy
from dataclasses import replace
from math import prod
from operator import index
from typing import Any, Self

import numpy as np

from ...optim.array_path import StoredPath
from ...records.descriptors import recorded
from ...records.record import Record
from ..data.training_data import LEFT_BY_FITS, RUNS, check_usable, replace_fitted
from ..delegation import SaysWhyMissing
from ..devices import convert_to_numpy
from .held_out import OfOneIterate, RunningPath
from .left_out import held_out_rows, held_out_scores
from .readers import ESTIMATES

# A fit keeps held-out predictions of all iterates up to so many numbers, 32 MB in
# double precision.
MOST_KEPT = 1 << 22
# A fit keeps residuals of so many rows: an interval of 90% then covers 90% up to .23%
# (one standard deviation of the share of rows that a quantile of so many covers).
MOST_RESIDUALS = 1 << 14
# A chosen iterate keeps its held-out predictions if they are at most so many.
MOST_OF_CHOICE = 2 * MOST_RESIDUALS


class FoldAttributes:
    """Fitted attributes about the rows that folds have held out of a run."""

    cv_path_ = recorded(
        lambda record: record["cv"].path, "Mean held-out loss of every iterate.", "cv"
    )
    cv_se_path_ = recorded(
        lambda record: record["cv"].se_path, "Standard error of ``cv_path_``.", "cv"
    )
    cv_fold_path_ = recorded(
        lambda record: record["cv"].more["fold_path"], "Mean loss on each fold.", "cv"
    )
    cv_prediction_path_ = recorded(
        lambda record: record["cv"].prediction, "Held-out predictions.", "cv"
    )
    cv_indices_ = recorded(
        lambda record: record["cv"].indices, "The rows that each fold holds out.", "cv"
    )
    cv_target_ = recorded(
        lambda record: record["cv"].target, "Targets of the held-out rows.", "cv"
    )


class LeaveOneOutAttributes:
    """Fitted attributes about the rows that were left out of a run one by one."""

    loo_path_ = recorded(
        lambda record: record["loo"].path, "Leave-one-out error.", "loo"
    )
    loo_se_path_ = recorded(
        lambda record: record["loo"].se_path, "Standard error of ``loo_path_``.", "loo"
    )
    loo_prediction_path_ = recorded(
        lambda record: record["loo"].prediction, "Predictions of left-out rows.", "loo"
    )
    loo_indices_ = recorded(
        lambda record: record["loo"].indices, "The rows that are left out.", "loo"
    )
    loo_target_ = recorded(
        lambda record: record["loo"].target, "Targets of the left-out rows.", "loo"
    )


class HoldsRecord(SaysWhyMissing, FoldAttributes):
    """A fitted estimator that holds a :class:`~skacv.records.record.Record`.

    It does not depend on the arrays that were passed to fit.
    """

    record_: Record
    # The run, if a further fit may continue it.
    _run: Any = None

    iteration_ = recorded(lambda record: record.iteration, "The iterate in use.")
    classes_ = recorded(
        lambda record: record.classes, "Labels of the classes.", of_target=True
    )
    n_iter_ = recorded(lambda record: record.n_iter, "The number of the last iterate.")
    train_path_ = recorded(
        lambda record: record.train_path, "Mean training loss of every iterate."
    )

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __getstate__(self) -> Any:
        finished = copy(self)
        for name in RUNS:  # which may have many data
            vars(finished).pop(name, None)
        finished._keep_predictions(MOST_KEPT)
        return super(HoldsRecord, finished).__getstate__()  # type: ignore[misc]

    def take(self, record: Record) -> Self:
        """Become the model that a record describes.

        Parameters
        ----------
        record : Record
            What the ``record()`` or ``end()`` of a run of this estimator has returned.

        Returns
        -------
        self : object
            Fitted estimator.
        """
        replace_fitted(self, {**record.names, "record_": record})
        self._keep_predictions(MOST_KEPT)
        return self

    def _column_names(self):
        """Names of the columns that were fitted to; None if they have none."""
        if self.record_.column_names is not None:
            return self.record_.column_names
        return vars(self).get("feature_names_in_")

    def drop_record(self, intervals: bool = True) -> Self:
        """A copy that keeps only what predictions of the iterate in use need.

        The copy lacks the other iterates or stages and what was recorded about them,
        held-out predictions, and rows of X that only methods other than ``predict``
        need. It keeps single numbers such as ``n_iter_``, and its predictions are the
        same. Methods that need the record raise an error, and a later fit of the copy
        starts from scratch. This object keeps its record.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep what ``predict_interval`` and ``predict_set`` need, from up
            to 16,384 held-out rows. "auto" is then "loo" instead of "jackknife+", and
            the widths of "scaled" depend on the prediction only.

        Returns
        -------
        estimator
            The fitted copy.

        Raises
        ------
        NotFittedError
            If it is not fitted.

        Examples
        --------
        >>> import pickle
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import TrajectoryLasso
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TrajectoryLasso(0.1, cv=5).fit(X, y)
        >>> expected = model.predict_interval(X, method="cv")
        >>> len(pickle.dumps(model)) > 100_000
        True
        >>> small = model.drop_record()
        >>> len(pickle.dumps(small)) < 30_000
        True
        >>> bool((small.predict_interval(X, method="cv") == expected).all())
        True
        """
        check_usable(self)
        small = copy(self)
        for name in LEFT_BY_FITS:
            vars(small).pop(name, None)
        in_memory = copy(convert_to_numpy(small))
        for estimate in in_memory._estimates_of_residuals() if intervals else ():
            in_memory._keep_residuals(estimate)
        in_use = in_memory.record_.in_use if intervals else {}
        small.record_ = small._light_record(in_use)
        return small

    def _gives_sets(self):
        """Whether it has prediction sets."""
        has_shares = self.record_.more.get("has_shares", False)
        return hasattr(self, "predict_set") and not has_shares

    def _light_record(self, in_use):
        """The record without its paths, with the numbers that intervals need."""
        return self.record_.without_path(in_use)

    def _estimates_of_residuals(self):
        """The estimates whose held-out rows intervals or sets may use."""
        record, usable = self.record_, []
        has_intervals = hasattr(self, "predict_interval")
        has_sets = self._gives_sets()
        for name, estimate in ESTIMATES.items():
            held_out = record.estimates.get(name)
            # Other estimates hold out rows whose groups have been seen.
            is_of_groups = record.groups is None or name == "cv"
            if held_out is None or not (estimate.has_residuals and is_of_groups):
                continue
            has_rows = not estimate.needs_target or held_out.target is not None
            has_scores = has_sets and held_out.prediction is not None
            if has_rows and (has_intervals or has_scores):
                usable.append(estimate)
        return usable

    def _check_has_record(self):
        """Raise if other iterates than the one in use have been dropped."""
        if self.record_.dropped is not None:
            raise ValueError(
                f"Only iterate {self.iteration_}, the one in use, is left: "
                "drop_record() has dropped the others."
            )

    def _check_method_kept(self, method):
        """Raise if drop_record() has dropped what a method of intervals needs."""
        record = self.record_
        methods = ["auto", "scaled", *record.in_use] if record.in_use else []
        if record.dropped is not None and method not in methods:
            raise ValueError(
                "drop_record() has dropped what intervals and prediction sets need "
                f"for method={method!r}: available are {', '.join(methods) or 'none'}."
            )

    def _fit_to_added_rows(self):
        """Fit to rows that ``partial_fit`` has taken in; by default there are none."""
        return

    def _why_missing(self, name, estimate_name):
        """Why a fitted attribute is missing, or what to do; None if unknown."""
        record = vars(self).get("record_")
        if record is None:
            return None
        if estimate_name is None or estimate_name in (record.dropped or ()):
            return (
                "drop_record() has dropped it" if record.dropped is not None else None
            )
        estimate = ESTIMATES[estimate_name]
        if estimate_name in record.in_use and name != estimate.path:
            return (
                "so many predictions are computed from rows of X, which this fit "
                f"did not keep{self._how_to_keep()}"
            )
        is_computed = estimate_name in record.estimates
        if not is_computed and estimate.parameter and estimate.is_offered_by(self):
            return f"fit it with {estimate.parameter}={estimate.switched_on}"
        return None

    def _how_to_keep(self):
        """The parameter that keeps rows, for messages."""
        has_parameter = "keep_data" in self.get_params(deep=False)
        return ": fit it with keep_data=True" if has_parameter else ""

    def _keep_predictions(self, most):
        """Keep held-out predictions that would be computed from rows of X when read."""
        if "record_" not in vars(self):
            return
        for name, held_out in self.record_.estimates.items():
            path = held_out.prediction
            if not isinstance(path, RunningPath):
                continue
            if not path.reads_rows or prod(path.shape) <= most:
                stored = replace(held_out, prediction=path.load())
                self.record_ = self.record_.with_estimates({name: stored})
            elif self.record_.data is None:
                self._keep_residuals(ESTIMATES[name])

    def _keep_residuals(self, estimate):
        """Keep what intervals or sets need for the iterate in use, no predictions."""
        name, rows = estimate.name, None
        held_out = self.record_.estimates[name]
        if isinstance(held_out.prediction, RunningPath):
            # A single iterate is read.
            held_out = replace(held_out, prediction=held_out.prediction.one_by_one())
        if hasattr(self, "predict_interval"):
            on_scale_of_y = self.record_.on_scale_of_y(held_out)
            rows = held_out_rows(self, on_scale_of_y).at_most(MOST_RESIDUALS)
        elif self._gives_sets():
            rows = held_out_scores(self, held_out).at_most(MOST_RESIDUALS)
        record = self.record_.with_estimates({name: held_out.without_rows()})
        in_use = {**record.in_use, name: (record.iteration, rows)}
        self.record_ = replace(record, in_use=in_use, weights=None)

    def _kept_residuals(self, name):
        """What is kept of the held-out rows of an estimate; None if nothing."""
        if name not in self.record_.in_use:
            return None
        t, held_out = self.record_.in_use[name]
        if t != self.iteration_:
            raise ValueError(
                f"Intervals and prediction sets of iterate {self.iteration_} need "
                "held-out predictions, which are computed from rows of X. There are "
                "too many to keep, so this fit kept only those of iterate "
                f"{t}{self._how_to_keep()}."
            )
        return held_out

    def _use_iterate(self, t):
        """A copy as :func:`use_iterate`."""
        chosen = copy(self)
        chosen.record_ = replace(self.record_, iteration=t)
        for name, held_out in self.record_.estimates.items():
            path = held_out.prediction
            keeps = isinstance(path, RunningPath | StoredPath | np.ndarray)
            if chosen.record_.data is not None or not keeps:
                continue  # none, or factors, which are few numbers
            # Predictions of held-out rows, and weights of all.
            n_numbers = max(prod(path.shape[1:]), np.size(chosen.record_.weights))
            if n_numbers <= MOST_OF_CHOICE:
                of_one = replace(held_out, prediction=OfOneIterate(path, t))
                chosen.record_ = chosen.record_.with_estimates({name: of_one})
            else:
                chosen._keep_residuals(ESTIMATES[name])
        return chosen.at_iteration(t)


def use_iterate(estimator, t):
    """A fitted copy that uses iterate t, and keeps held-out predictions of no other."""
    if isinstance(estimator, HoldsRecord):
        return estimator._use_iterate(t)
    return estimator.at_iteration(t)


def drop_record_of(estimator, intervals):
    """A fitted copy of an estimator without its record, if that can be dropped."""
    if not hasattr(estimator, "drop_record"):
        return estimator
    return estimator.drop_record(intervals)


def split_record(estimator):
    """A fitted estimator without its record, which a pickle would make smaller, and it.

    :func:`attach_record` puts them together again, such as in another process.
    """
    record, rest = None, copy(estimator)
    if isinstance(estimator, HoldsRecord):
        record = vars(rest).pop("record_", None)
    return rest, record


def attach_record(estimator, record):
    """A fitted copy of an estimator, with this record, or None for what it is."""
    whole = copy(estimator)
    if record is not None:
        vars(whole).update(record.names, record_=record)
    return whole


def check_iterate(estimator, t):
    """The number of an iterate that is kept, counted from the start."""
    check_usable(estimator)
    n_rows = estimator.n_iter_ + 1
    try:
        t = index(t)
    except TypeError:
        raise TypeError(f"t must be an integer, got {t!r}.") from None
    if not -n_rows <= t < n_rows:
        raise ValueError(f"t must be in [{-n_rows}, {n_rows - 1}], got {t}.")
    t, kept = t % n_rows, estimator.recorded_iterations()
    if t not in kept:
        estimator._check_has_record()
        raise ValueError(
            f"Iterate {t} was not kept: recorded_iterations() has those that were."
        )
    return t


def loss_name(fitted):
    """The name of the loss in the paths of a fitted estimator."""
    loss = fitted.record_.loss
    return getattr(getattr(loss, "judge", loss), "name", "loss")
