"""How far a run has come in directions of little curvature."""


def covered_share(trajectory, curvature):
    """The share of the distance to the minimum that a run's updates cover.

    They are taken on ``curvature (b - 1)^2 / 2``, from zero.

    Parameters
    ----------
    trajectory : Trajectory
        A run of gradient steps, without a preconditioner.
    curvature : float

    Returns
    -------
    float
        Zero if nothing has moved, one at the minimum.
    """
    return 1 - trajectory.followed_by(Distance(curvature)).current


class Distance:
    """The distance from the minimum in a direction of that curvature."""

    def __init__(self, curvature):
        self.curvature = curvature
        self.current = self.earlier = 1.0

    def take(self, taken):
        """Move on by an update, or by one for every batch of a pass."""
        if taken.restarts:
            self.earlier = self.current
        own, earlier = taken.update.multipliers(self.curvature)
        following = own * self.current + earlier * self.earlier
        self.earlier, self.current = self.current, following
