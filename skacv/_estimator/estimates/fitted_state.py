"""What a fitted estimator keeps of the training rows, in memory and in a pickle."""

from copy import copy
from math import prod
from numbers import Number
from operator import index
from typing import Any, Self

import numpy as np

from ...optim.array_path import StoredPath
from ..data.training_data import check_usable
from ..devices import in_numpy
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
# Fitted attributes, single numbers aside, that predictions read.
READ_BY_PREDICT = frozenset(
    {
        "classes_",
        "coef_",
        "dual_coef_",
        "estimator_",
        "feature_names_in_",
        "intercept_",
        "module_",
        "params_",
        "X_fit_",
    }
)
# Attributes without a trailing underscore that belong to the record, as do the other
# fitted attributes.
OF_RECORD = frozenset(
    {
        "_columns",
        "_host_arrays",
        "_data",
        "_groups",
        "_live",
        "_model",
        "_phases",
        "_replicas",
        "_row_weights",
        "_summary",
    }
)


class WithoutRecord:
    """An object whose ``drop_record`` leaves fitted attributes out, as errors say."""

    # Names of the fitted attributes that have been dropped.
    _dropped: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, name)
        except AttributeError as error:
            # Why a method is not available stands in another error.
            reason = error.__cause__
            # scikit-learn looks for names of columns in every fit.
            if name.endswith("_") and name != "feature_names_in_":
                reason = self._why_missing(name)
            if reason is None:
                raise
            raise AttributeError(f"{error}: {reason}.") from error.__cause__

    def _why_missing(self, name):
        """Why a fitted attribute is missing, or what to do; None if unknown."""
        return "drop_record() has dropped it" if name in self._dropped else None

    def _drop(self, names):
        """Drop the fitted attributes of these names, where they exist."""
        dropped = sorted(set(names) & vars(self).keys())
        for name in dropped:
            delattr(self, name)
        public = [name for name in dropped if not name.startswith("_")]
        self._dropped = (*self._dropped, *public)


class FittedState(WithoutRecord):
    """A fitted estimator that does not depend on the arrays that were passed to fit."""

    # The data of the run, with ``keep_data=True`` and for kernels.
    _data = None
    # The group of every training row, where fit was passed groups.
    _groups: Any = None
    # Names of the columns that an encoder has made; None without an encoder.
    _encoded_names: Any = None
    # An iterate, and the held-out numbers of it that intervals or prediction sets need,
    # by the name of the estimate.
    _residuals_kept: Any = None
    # Attributes that drop_record() drops, besides fitted ones.
    _of_record = OF_RECORD

    def __copy__(self) -> Self:
        copied = object.__new__(type(self))
        vars(copied).update(vars(self))
        return copied

    def __getstate__(self) -> Any:
        finished = copy(self)
        finished._release()
        finished._keep_predictions(MOST_KEPT)
        return super(FittedState, finished).__getstate__()  # type: ignore[misc]

    def _column_names(self):
        """Names of the columns that were fitted to; None if they have none."""
        if self._encoded_names is not None:
            return self._encoded_names
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
        small._release()
        small._take_from_record()
        in_memory = copy(in_numpy(small))
        for estimate in in_memory._estimates_of_residuals() if intervals else ():
            in_memory._keep_residuals(estimate)
        small._residuals_kept = in_memory._residuals_kept if intervals else None
        names = {name for name in vars(small) if name in small._of_record}
        names |= {
            name
            for name, value in vars(small).items()
            if name.endswith("_")
            and name not in READ_BY_PREDICT
            and not isinstance(value, Number | str | None)
        }
        copies = vars(small).get("_host_arrays", {})
        small._drop(names)
        if copies:  # of arrays on a device
            small._host_arrays = {name: copies[name] for name in copies.keys() - names}
        return small

    def _take_from_record(self):
        """Take from the record what predictions need of it; by default nothing."""
        return

    def _estimates_of_residuals(self):
        """The estimates whose held-out rows intervals or sets may use."""
        is_of_labels = getattr(self, "_is_multilabel", False)  # several in a row
        is_of_classes = hasattr(self, "predict_set") and not is_of_labels
        return [
            estimate
            for estimate in ESTIMATES.values()
            if estimate.residuals
            and (
                hasattr(self, "predict_interval")
                or (is_of_classes and hasattr(self, estimate.predictions))
            )
            and hasattr(self, estimate.residuals_from or estimate.path)
            # Other estimates hold out rows whose groups have been seen.
            and (self._groups is None or estimate.name == "cv")
        ]

    def _check_has_record(self):
        """Raise if other iterates than the one in use have been dropped."""
        if self._dropped:
            raise ValueError(
                f"Only iterate {self.iteration_}, the one in use, is left: "
                "drop_record() has dropped the others."
            )

    def _check_method_kept(self, method):
        """Raise if drop_record() has dropped what a method of intervals needs."""
        kept = list(self._residuals_kept or ())
        methods = ["auto", "scaled", *kept] if kept else []
        if self._dropped and method not in methods:
            raise ValueError(
                "drop_record() has dropped what intervals and prediction sets need "
                f"for method={method!r}: available are {', '.join(methods) or 'none'}."
            )

    def _fit_to_added_rows(self):
        """Fit to rows that ``partial_fit`` has taken in; by default there are none."""
        return

    def _why_missing(self, name):
        """Why a fitted attribute is missing, or what to do; None if unknown."""
        if name in self._dropped:
            return super()._why_missing(name)
        if "n_iter_" not in vars(self):
            return None
        for kept in self._residuals_kept or ():
            if name in _attributes_of_rows(ESTIMATES[kept]):
                return (
                    "so many predictions are computed from rows of X, which this fit "
                    f"did not keep{self._how_to_keep()}"
                )
        for estimate in ESTIMATES.values():
            names = estimate.path, estimate.se_path, estimate.predictions
            if name in (*names, estimate.indices):
                if estimate.parameter and estimate.is_offered_by(self):
                    return f"fit it with {estimate.parameter}={estimate.switched_on}"
        return None

    def _how_to_keep(self):
        """The parameter that keeps rows, for messages."""
        has_parameter = "keep_data" in self.get_params(deep=False)
        return ": fit it with keep_data=True" if has_parameter else ""

    def _keep_predictions(self, most):
        """Keep held-out predictions that would be computed from rows of X when read."""
        for estimate in ESTIMATES.values():
            path = vars(self).get(estimate.predictions)
            if not isinstance(path, RunningPath):
                continue
            if not path.reads_rows or prod(path.shape) <= most:
                setattr(self, estimate.predictions, path.stored())
            elif self._data is None:
                self._keep_residuals(estimate)

    def _keep_residuals(self, estimate):
        """Keep what intervals or sets need for the iterate in use, no predictions."""
        path, held_out = vars(self).get(estimate.predictions), None
        if isinstance(path, RunningPath):
            setattr(self, estimate.predictions, path.one_by_one())
        if hasattr(self, "predict_interval"):
            held_out = held_out_rows(self, estimate).at_most(MOST_RESIDUALS)
        elif hasattr(self, "predict_set") and not getattr(self, "_is_multilabel", 0):
            held_out = held_out_scores(self, estimate).at_most(MOST_RESIDUALS)
        kept = self.iteration_, held_out
        self._residuals_kept = {**(self._residuals_kept or {}), estimate.name: kept}
        self._row_weights = None
        for name in _attributes_of_rows(estimate):
            vars(self).pop(name, None)

    def _kept_residuals(self, name):
        """What is kept of the held-out rows of an estimate; None if nothing."""
        if name not in (self._residuals_kept or {}):
            return None
        t, held_out = self._residuals_kept[name]
        if t != self.iteration_:
            raise ValueError(
                f"Intervals and prediction sets of iterate {self.iteration_} need "
                "held-out predictions, which are computed from rows of X. There are "
                "too many to keep, so this fit kept only those of iterate "
                f"{t}{self._how_to_keep()}."
            )
        return held_out


def chosen_iterate(estimator, t):
    """A fitted copy that uses iterate t, and keeps held-out predictions of no other."""
    if not isinstance(estimator, FittedState):
        return estimator.at_iteration(t)
    chosen = copy(estimator)
    chosen.iteration_ = t
    if chosen._data is None:
        for estimate in ESTIMATES.values():
            path = vars(chosen).get(estimate.predictions)
            if not isinstance(path, RunningPath | StoredPath | np.ndarray):
                continue  # none, or factors, which are few numbers
            # Predictions of held-out rows, and weights of all.
            n_numbers = max(prod(path.shape[1:]), np.size(chosen._row_weights))
            if n_numbers <= MOST_OF_CHOICE:
                setattr(chosen, estimate.predictions, OfOneIterate(path, t))
            else:
                chosen._keep_residuals(estimate)
    return chosen.at_iteration(t)


def without_record(estimator, intervals):
    """A fitted copy of an estimator without its record, if that can be dropped."""
    if not hasattr(estimator, "drop_record"):
        return estimator
    return estimator.drop_record(intervals)


def split_held_out(estimator):
    """A fitted estimator without what its pickle would make smaller, and that.

    These are held-out predictions that are computed when they are read, and attributes
    of the same rows; :func:`with_held_out` puts them together again, such as in another
    process.
    """
    held_out, rest = {}, copy(estimator)
    for estimate in ESTIMATES.values():
        if not isinstance(vars(estimator).get(estimate.predictions), RunningPath):
            continue
        for name in (*_attributes_of_rows(estimate), "_row_weights"):
            if name in vars(rest):
                held_out[name] = vars(rest).pop(name)
    return rest, held_out


def with_held_out(estimator, held_out):
    """A fitted estimator with the held-out predictions that were split off."""
    whole = copy(estimator)
    vars(whole).update(held_out)
    return whole


def _attributes_of_rows(estimate):
    """The fitted attributes with a value for every held-out row."""
    return estimate.predictions, estimate.indices, estimate.targets


def checked_iterate(estimator, t):
    """The number of an iterate, and its row among the iterates that are kept."""
    check_usable(estimator)
    n_rows = estimator.n_iter_ + 1
    try:
        t = index(t)
    except TypeError:
        raise TypeError(f"t must be an integer, got {t!r}.") from None
    if not -n_rows <= t < n_rows:
        raise ValueError(f"t must be in [{-n_rows}, {n_rows - 1}], got {t}.")
    t, kept = t % n_rows, estimator.recorded_iterations()
    row = np.flatnonzero(kept == t)
    if not row.size:
        estimator._check_has_record()
        raise ValueError(
            f"Iterate {t} was not kept: recorded_iterations() has those that were."
        )
    return t, row[0]
