"""How far a run has come in directions of little curvature."""

import numpy as np


def covered_share(trajectory, curvature):
    """The share of the distance to the minimum that a run's updates cover.

    They are taken on ``curvature (b - 1)^2 / 2``, from zero.

    Parameters
    ----------
    trajectory : Trajectory
        A run of gradient steps, without a preconditioner.

    Returns
    -------
    float
        Zero if nothing has moved, one at the minimum.
    """
    shares = trajectory.followed_by(Shares(np.array([curvature])))
    return float(shares.current[0])


class Shares:
    """The shares of 1 that directions of some curvature cover, update by update.

    Parameters
    ----------
    curvature : ndarray of shape (n_directions,)
        Curvature of the loss, without that of a ridge penalty.
    """

    def __init__(self, curvature):
        self.curvature = curvature
        self.current = self.earlier = np.zeros(len(curvature))

    def take(self, taken):
        """Move on by an update, or by one for every batch of a pass."""
        if taken.restarts:
            self.earlier = self.current
        whole = self.curvature + (taken.penalty.common_curvature() or 0.0)
        own, earlier = taken.update.multipliers(whole)
        # Affine, with the minimum for fixed point.
        end = np.divide(
            self.curvature, whole, out=np.zeros_like(whole), where=whole > 0
        )
        following = end + own * (self.current - end) + earlier * (self.earlier - end)
        self.earlier, self.current = self.current, following
