"""Breslow's cumulative hazards of the iterates of a run."""

from dataclasses import dataclass, replace

import numpy as np

from ...optim.blocks import blocks
from ...optim.cox import RiskSets
from ..data.survival import ranked_times


@dataclass(frozen=True, eq=False)
class BaselineHazards:
    """Breslow's cumulative hazards at a log hazard ratio of zero.

    Shapes: times (n_times,), all that rows have; is_step (n_times,), those of events;
    log_hazards (n_iterates, n_steps), logarithms of the cumulative hazards there.
    """

    times: np.ndarray
    is_step: np.ndarray
    log_hazards: np.ndarray

    @classmethod
    def of(cls, y, weights, predictor):
        """Those of iterates with a path of predictors (n_iterates, n_rows, 1)."""
        times, target = np.unique(y["time"]), ranked_times(y)
        is_step = np.isin(times, y["time"][y["event"]])
        log_hazards = np.empty((len(predictor), np.count_nonzero(is_step)))
        for block in blocks(len(predictor), 64 * len(y)):
            z = np.asarray(predictor[block], np.float64)[:, :, 0].T
            sets = RiskSets.of(target, z, weights[:, None], "breslow")
            # From the last time to the first.
            log_hazards[block] = sets.log_cumulative_hazards()[::-1].T
        return cls(times, is_step, log_hazards)

    def at(self, predictors, t):
        """Cumulative hazards of iterate t, (n_samples, n_times)."""
        known = np.exp(np.add.outer(predictors, self.log_hazards[t]))
        number = np.cumsum(self.is_step)
        return np.column_stack([np.zeros(len(known)), known])[:, number]

    def continued(self, more):
        """The same with those of more iterates of the same rows."""
        log_hazards = np.concatenate([self.log_hazards, more.log_hazards])
        return replace(self, log_hazards=log_hazards)

    def of_iterate(self, t):
        """The same with one iterate alone."""
        return BaselineHazards(self.times, self.is_step, self.log_hazards[[t]])
