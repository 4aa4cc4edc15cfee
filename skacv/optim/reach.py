"""How far a run gets in directions of little curvature."""


def share_of_the_way(trajectory, curvature):
    """The share of its way to the minimum that a coefficient covers by a run's steps.

    By the same steps on ``curvature (b - 1)^2 / 2``, begun at zero.

    Parameters
    ----------
    trajectory : Trajectory
        Without Newton's method or a preconditioner.
    curvature : float

    Returns
    -------
    float
        Zero where it has not moved, one at the minimum.
    """
    current = previous = 0.0
    for t, before, step, _ in trajectory.updates():
        if before == t:
            previous = current
        point = step.gradient_point(current, previous)
        following = step.moved(current, previous)
        following -= step.step_size * curvature * (point - 1)
        for _ in step.batches[1:]:
            following -= step.step_size * curvature * (following - 1)
        previous, current = current, following
    return current
