"""The memory-matrix estimate of the risk of every iterate (Bellec & Tan 2024).

One function for three kinds of runs: with the squared error where updates take all rows
(:mod:`.squared`), where every iterate is the same linear pass through batches
(:mod:`.passes`), and of any loss with a curvature (:mod:`.curved_run`).
"""

from ..leave_out_rule import UNCENTRED
from . import curved_run, passes, squared

# Looked at before the one of any loss.
SPECIAL = squared, passes


def estimate_risk(
    problem, trajectory, refit=UNCENTRED, method="auto", row_scales=False, rng=None
):
    """Estimate the risk of every iterate of a recorded trajectory.

    Parameters
    ----------
    trajectory : Trajectory
        With the squared error where updates take all rows, any number of targets share
        the memory matrix unless a penalty has a prox.
    refit : LeaveOutRule
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
    able = (each for each in SPECIAL if each.can_read(problem, trajectory))
    backend = next(able, curved_run)
    return backend.estimate_risk(problem, trajectory, refit, method, row_scales, rng)
