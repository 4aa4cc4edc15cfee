"""The terms of the runs of linear models: their data, price, and what ends them."""

import numpy as np

from ...optim import costs
from ...risk.cost import is_cheap
from ..collections import import_dask_layer, is_collection
from ..data.checks import shape_of
from ..estimates.left_out import FEWEST_ROWS
from ..estimates.terms import SECONDS_TO_READ, Limit, Price, RunTerms
from .source import source_of, takes_moments_of


class FitTerms(RunTerms):
    """The terms of runs on a problem."""

    def price(self, n_rows, n_columns, n_outputs):
        spec, n_entries = self.model._spec(), n_rows * n_columns
        smaller_side = min(n_rows, n_columns)
        start, n_used = SECONDS_TO_READ * n_entries, n_entries
        if spec.is_quadratic:
            start += costs.SECONDS * costs.ENTRY * n_entries * smaller_side
        if spec.is_of_moments:
            n_used = smaller_side**2
        # Products with X, of the run and five folds, and their held-out predictions.
        update = n_outputs * (36 * costs.ENTRY * n_used + costs.ENTRY * n_entries)
        update = costs.SECONDS * (100 * costs.CALL + update)
        return Price(start, update, len(spec.strengths) * self.model.max_iter)

    def patience(self, record=None):
        return self.model._spec().patience(() if record is None else record.phases)

    def loss(self, X, y):
        model, spec = self.model, self.model._spec()
        if is_collection(X) and not (spec.is_dual or takes_moments_of(spec, X)):
            return import_dask_layer("data").loss_on(model, y)
        source = source_of(spec, X, y, None)
        source.validate(model, spec)
        return source.loss.judge

    def check_data(self, X, y, sample_weight=None):
        if not is_collection(X):  # workers check those
            spec = self.model._spec()
            source_of(spec, X, y, sample_weight).validate(self.model, spec)

    def leaves_one_out_cheaply(self, X, y):
        shape = shape_of(X)
        if is_collection(X) or len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        return is_cheap(self.model._spec().cost(shape, y))

    def parameters_at(self, record, t):
        """The parameter of the penalty at iterate ``t``, if it has several values."""
        strengths = self.model._spec().strengths
        if np.ndim(strengths.values) == 0 and not strengths.is_path:
            return {}
        if t % (record.n_iter + 1) == 0 and not begins_at_solution(record):
            return {}
        return {strengths.name: float(record.strengths[strengths.name][t])}

    def limit(self, record):
        strengths, phases = self.model._spec().strengths, record.phases
        last, max_iter = phases[-1], self.model.max_iter
        if len(phases) < len(strengths):
            return None
        is_short = last.n_updates >= max_iter
        unit = "passes" if last.first_update.n_batches else "updates"
        values = record.strengths[strengths.name]
        few = f"max_iter={max_iter} may be too small"
        if not self.model.standardize:
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


def begins_at_solution(record):
    """Whether the first update changes nothing, as on a path of the lasso.

    All coefficients are zero then, and the first strength has been used.
    """
    iterates = record.iterates
    return all(
        np.array_equal(values[:1], values[1:2])
        for values in (iterates.coef, iterates.intercept)
    )
