"""The memory-matrix estimate of the risk of every iterate (Bellec & Tan 2024).

One function for three kinds of runs: with the squared error where updates take all rows
(:mod:`.squared`), where every iterate is the same linear pass through batches
(:mod:`.passes`), and of any loss with a curvature (:mod:`.curved_run`).
"""

from ..reader import Unreadable
from ..refit import UNCENTRED
from . import curved_run, passes, squared
from .gradient_points import kind_of_points
from .signed_rows import curvature_at


def estimate_risk(
    problem, trajectory, refit=UNCENTRED, method="auto", row_scales=False, rng=None
):
    """Estimate the risk of every iterate of a recorded trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        With the squared error where updates take all rows, any number of targets share
        the memory matrix unless a penalty has a prox.
    refit : Refit
        What a fit without some rows would be.
    method : "auto", True, "exact", "hutchinson" or int
        How traces are taken. "exact": from the spectrum where updates are linear, else
        by a complete basis of the smaller side of X, or of the rows where curvatures
        change. "hutchinson": by random probes, added until their standard error is
        below that of the estimate itself; by a complete basis where that is as small.
        An int is a number of probes. "auto": exact where that is cheap, else random
        probes; refused if curvatures change and it takes longer than automatic
        leave-one-out may. True: the same without this limit.
    row_scales : bool
        Whether rows whose norms are more uneven than Gaussian rows' have scales of
        their own.
    rng : numpy Generator or RandomState
        Draws the probes.

    Returns
    -------
    RiskEstimate

    Raises
    ------
    Unreadable
        If the memory matrix cannot be read from a run of this kind.
    """
    backend = _backend(problem, trajectory)
    if backend is curved_run:
        _check_derivatives(problem, trajectory)
    return backend.estimate_risk(problem, trajectory, refit, method, row_scales, rng)


def _backend(problem, trajectory):
    """The module that reads a run."""
    for backend in (squared, passes):
        if backend.can_read(problem, trajectory):
            return backend
    return curved_run


def _check_derivatives(problem, trajectory):
    """Raise where there are no columns, or no derivatives of updates or losses."""
    if not problem.design.has_columns:
        raise Unreadable(
            "The memory matrix is too low for kernel machines, where every row has "
            "a coefficient of its own."
        )
    for update, _ in trajectory.first_updates():
        if not update.has_tangent:
            raise Unreadable(
                "The memory matrix needs the derivative of every update, and "
                f"{type(update).__name__} has none here."
            )
    kind_of_points(problem, trajectory)
    last = trajectory.n_updates - 1
    ends = [trajectory.predictor[t] for t in (0, last) if last >= 0]
    if ends and not any(curvature_at(problem, each).any() for each in ends):
        raise Unreadable(
            "The memory matrix needs a loss with a curvature: that of "
            f"{type(problem.loss).__name__} is zero on every row."
        )
