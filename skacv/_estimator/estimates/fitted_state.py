"""What a fitted estimator keeps of the training rows, in memory and in a pickle."""

from copy import copy
from math import prod
from typing import Any, Self

from sklearn.base import is_regressor

from .held_out_paths import RunningPath
from .left_out import held_out_rows, held_out_scores
from .readers import ESTIMATES, setting_of

# Held-out predictions of all iterates are kept up to so many numbers by a fit, 32 MB in
# double precision, and by an iterate that is chosen while the fit runs, 8 MB.
MOST_KEPT, MOST_BESIDE_CHOICE = 1 << 22, 1 << 20


class FittedState:
    """A fitted estimator that does not depend on the arrays that were passed to fit.

    While a run goes on, held-out predictions are computed from rows of X. When it ends
    they are kept, or if they are many the residuals that intervals need.
    """

    # The data of the run, with ``keep_data=True`` and for kernels.
    _data = None
    # Names of the columns that an encoder has made; None without an encoder.
    _encoded_names: Any = None
    # By the name of an estimate: an iterate, and what intervals, or prediction sets,
    # need of its held-out rows.
    _residuals_kept: Any = None

    def __getattr__(self, name: str) -> Any:
        try:
            return object.__getattribute__(self, name)
        except AttributeError as error:
            reason = self._why_missing(name)
            if reason is None:
                raise
            raise AttributeError(f"{error}: {reason}.") from None

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

    def _fit_to_taken_rows(self):
        """Fit to rows that ``partial_fit`` has taken in; by default there are none."""
        return

    def _why_missing(self, name):
        """What to do for a fitted attribute that is missing; None if unknown."""
        if "n_iter_" not in vars(self):
            return None
        for kept in self._residuals_kept or ():
            if name in _attributes_of_rows(ESTIMATES[kept]):
                return (
                    "so many predictions are computed from rows of X, which this fit "
                    f"has not kept{self._how_to_keep()}"
                )
        setting = setting_of(self, name)
        return setting and f"fit it with {setting}"

    def _how_to_keep(self):
        """The parameter that keeps rows, for messages."""
        has_parameter = "keep_data" in self.get_params(deep=False)
        return ": fit it with keep_data=True" if has_parameter else ""

    def _keep_predictions(self, most):
        """Keep held-out predictions that would be computed from rows of X when read.

        Parameters
        ----------
        most : int
            Largest number of predictions; if there are more, only the residuals of the
            iterate in use are kept.
        """
        for estimate in ESTIMATES.values():
            path = vars(self).get(estimate.predictions)
            if not isinstance(path, RunningPath):
                continue
            if not path.reads_rows or prod(path.shape) <= most:
                setattr(self, estimate.predictions, path.stored())
            elif self._data is None:
                self._keep_residuals(estimate)

    def _keep_residuals(self, estimate):
        """Keep what intervals or sets need of the iterate in use, and no predictions.

        Nor what else has a number for every row, which would be most of a pickle.
        """
        path = getattr(self, estimate.predictions).one_by_one()
        setattr(self, estimate.predictions, path)
        held_out = None
        if is_regressor(self):
            held_out = held_out_rows(self, estimate)
        elif hasattr(self, "predict_proba"):
            held_out = held_out_scores(self, estimate)
        kept = self.iteration_, held_out
        self._residuals_kept = {**(self._residuals_kept or {}), estimate.name: kept}
        self._row_weights = None
        for name in _attributes_of_rows(estimate):
            vars(self).pop(name, None)

    def _kept_residuals(self, name):
        """What is kept of the held-out rows of an estimate; None if nothing.

        Raises
        ------
        ValueError
            If those of another iterate were kept.
        """
        if name not in (self._residuals_kept or {}):
            return None
        t, held_out = self._residuals_kept[name]
        if t != self.iteration_:
            raise ValueError(
                f"Intervals and prediction sets of iterate {self.iteration_} need "
                "held-out predictions, which are computed from rows of X. Of so many, "
                f"this fit has kept those of iterate {t} alone{self._how_to_keep()}."
            )
        return held_out


def running_attributes(estimator):
    """Fitted attributes that the choice of an iterate replaces by fewer numbers.

    Returns
    -------
    dict
    """
    names = {
        name
        for estimate in ESTIMATES.values()
        if isinstance(vars(estimator).get(estimate.predictions), RunningPath)
        for name in (*_attributes_of_rows(estimate), "_row_weights")
    }
    return {name: vars(estimator)[name] for name in names if name in vars(estimator)}


def _attributes_of_rows(estimate):
    """The fitted attributes with a value for every held-out row."""
    return estimate.predictions, estimate.indices, f"{estimate.name}_target_"
