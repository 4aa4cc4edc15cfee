"""How far a run has converged in a direction of a given curvature."""

import numpy as np


class Shares:
    """Fractions of the way to the minimum that updates cover, one per curvature."""

    def __init__(self, curvature):
        self.curvature = curvature
        self.current = self.earlier = np.zeros(len(curvature))

    def take(self, step):
        """Apply an update, which may be a pass through batches."""
        if step.restarts:
            self.earlier = self.current
        full = self.curvature + (step.penalty.common_curvature() or 0.0)
        factor, earlier = step.update.multipliers(full)
        # The update is affine; its fixed point is the minimum with the penalty.
        limit = np.divide(self.curvature, full, out=np.zeros_like(full), where=full > 0)
        following = (
            limit + factor * (self.current - limit) + earlier * (self.earlier - limit)
        )
        self.earlier, self.current = self.current, following
