"""Hooks of TrajectoryEarlyStoppingCV: data and price of a run, what has ended it."""

import numpy as np
from sklearn.base import BaseEstimator

from ...optim import costs
from ...risk.cost import is_cheap
from ..collections import is_collection, on_workers
from ..data.checks import shape_of
from ..devices import of_record
from ..estimates.held_out import held_out_losses_of
from ..estimates.left_out import FEWEST_ROWS
from ..estimates.readers import ESTIMATES
from ..estimates.recording import SECONDS_TO_READ, Limit, Price
from .source import source_of, takes_moments_of


class ComparedModel(BaseEstimator):
    """A model whose iterates, strengths and price are compared with those of others."""

    _live = None  # the run, while it may be continued

    def _release(self):
        """Free memory that only further updates need."""
        self._live = None

    def _check_data(self, X, y, sample_weight=None):
        """Raise the error that ``fit`` would raise on invalid data."""
        if not is_collection(X):  # workers check those
            spec = self._spec()
            source_of(spec, X, y, sample_weight).validate(self, spec)

    def _loss_on(self, X, y):
        """The loss of rows, if ``fit`` is called with these data."""
        spec = self._spec()
        if is_collection(X) and not (spec.is_dual or takes_moments_of(spec, X)):
            return on_workers("data").loss_on(self, y)
        source = source_of(spec, X, y, None)
        source.validate(self, spec)
        return source.loss

    @of_record
    def _parameters_at(self, t):
        """The parameter of the penalty at iterate ``t``, if it has several values."""
        strengths = self._spec().strengths
        if np.ndim(strengths.values) == 0 and not strengths.is_path:
            return {}
        if t % (self.n_iter_ + 1) == 0 and not self._begins_at_solution():
            return {}
        return {strengths.name: float(self.record_.strengths[strengths.name][t])}

    def _begins_at_solution(self):
        """Whether the first update changes nothing, as on a path of the lasso.

        All coefficients are zero then, and the first strength has been used.
        """
        iterates = self.record_.iterates
        return all(
            np.array_equal(values[:1], values[1:2])
            for values in (iterates.coef, iterates.intercept)
        )

    def _ended_by(self):
        """The Limit that has ended the run (strengths, max_iter), or None."""
        strengths, phases = self._spec().strengths, self.record_.phases
        last = phases[-1]
        if len(phases) < len(strengths):
            return None
        is_short = last.n_updates >= self.max_iter
        unit = "passes" if last.first_update.n_batches else "updates"
        values = self.record_.strengths[strengths.name]
        few = f"max_iter={self.max_iter} may be too small"
        if not self.standardize:
            few += (
                " (columns of uneven size need many updates: standardize=True, or a "
                "StandardScaler before)"
            )
        if values[-1] == values[0] or last.penalty.strength == 0:
            return Limit("max_iter", few, unit) if is_short else None
        side = "below" if values[-1] < values[0] else "above"
        advice = (
            f"values of {strengths.name} {side} {values[-1]:.3g}, the last one, may be "
            f"better{', or ' + few if is_short else ''}"
        )
        return Limit(strengths.name, advice, unit, last.n_updates)

    def _default_patience(self):
        """Iterates without an improvement after which ``patience="auto"`` stops."""
        record = vars(self).get("record_")
        return self._spec().patience(record.phases if record is not None else ())

    def _price(self, n_rows, n_columns, n_outputs):
        """The Price of a run on data of a shape."""
        spec, n_entries = self._spec(), n_rows * n_columns
        smaller_side = min(n_rows, n_columns)
        start, n_used = SECONDS_TO_READ * n_entries, n_entries
        if spec.is_quadratic:
            start += costs.SECONDS * costs.ENTRY * n_entries * smaller_side
        if spec.is_of_moments:
            n_used = smaller_side**2
        # Products with X, of the run and five folds, and their held-out predictions.
        update = n_outputs * (36 * costs.ENTRY * n_used + costs.ENTRY * n_entries)
        update = costs.SECONDS * (100 * costs.CALL + update)
        return Price(start, update, len(spec.strengths) * self.max_iter)

    def _leaves_one_out_cheaply(self, X, y):
        """Whether leave-one-out of every row takes about as long as a few folds."""
        shape = shape_of(X)
        if is_collection(X) or len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        return is_cheap(self._spec().cost(shape, y))

    @of_record
    def _held_out_losses(self, name, y):
        """HeldOutLosses of "loo" or "cv", or None without held-out predictions."""
        if self.record_.weights is None:  # of a summary, or of rows on workers
            return None
        return held_out_losses_of(self, ESTIMATES[name], y)
