"""How far a run gets in directions of little curvature."""


def share_of_the_way(trajectory, curvature):
    """The share of its way to the minimum that a coefficient covers by a run's steps.

    By the same updates on ``curvature (b - 1)^2 / 2``, begun at zero.

    Parameters
    ----------
    trajectory : Trajectory
        Of gradient steps, without a preconditioner.
    curvature : float

    Returns
    -------
    float
        Zero where it has not moved, one at the minimum.
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
