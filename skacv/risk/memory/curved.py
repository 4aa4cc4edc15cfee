"""The memory matrix of any loss with a curvature: what every row would be predicted.

With b_t the iterates, psi_s the rows' slopes -l'(y, x'b) at the points where gradients
are taken, D_s their curvatures l'', and Q_{t,s} the response of b_t to a shock in
gradient s, let

    A_ts = tr(D_t X Q_ts X'),    K_ts = [t=s] tr D_t - tr(D_t X Q_ts X' D_s),

and W = K^-1 A, strictly lower triangular. Then

    U_t = X b_t - sum_{s<t} W_ts psi_s

is the linear predictor of every row by the run that never saw it. Left out exactly, row
i has a W_i of its own, with (I + W_i D_i)^-1 W_i = (x_i'Q_ts x_i)_ts; K W = A is the
sum of that over rows which all have the same W. Nothing in it is of one loss. For the
squared error W is the (I - A/n)^-1 A/n of Bellec & Tan (2024), for robust losses the
estimate of Tan & Bellec (2024), eq. 8 to 11.

W V is read for the few temporal modes V of the slopes, from random signs of the rows.
"""

from dataclasses import dataclass

import numpy as np

from ..reader import Unreadable
from .curved_run import CurvedRun
from .gradient_points import GradientPoints, kind_of_points, points_of
from .modes import Modes
from .row_scales import scales_of_rows


@dataclass(frozen=True)
class CurvedRiskEstimate:
    """What every iterate would predict and cost on rows that it has not seen.

    Attributes
    ----------
    path, se_path : ndarray of shape (n_iterates,)
        Mean cost of every iterate, and its standard error: over rows, and of the
        probes, together.
    mc_se_path : ndarray of shape (n_iterates,)
        Standard error due to random probes; zero where traces are exact.
    predictors : Modes
        U, low-rank.
    n_probes : int
        Number of random probes; 0 where traces are exact.
    row_scale_share : float
        Share of the spread of the rows' squared norms that scales their leverage.
    """

    path: np.ndarray
    se_path: np.ndarray
    mc_se_path: np.ndarray
    predictors: Modes
    n_probes: int
    row_scale_share: float


@dataclass(frozen=True)
class CurvedMemoryMatrix:
    """Reader of the memory matrix of any loss with a curvature.

    Parameters
    ----------
    method : "auto", "exact", "hutchinson" or int
        How traces are taken. "exact": by a complete basis of the rows. "hutchinson":
        by random signs, added until the standard error that they leave is below that
        over the rows; by a complete basis, of few modes, where rows are as few. An int
        is a number of random signs. "auto": "hutchinson", refused where that costs more
        than is spent on leaving rows out unasked.
    row_scales : bool
        Whether rows whose norms are more uneven than Gaussian rows' have leverages in
        proportion.
    rng : numpy Generator or RandomState
        Draws the signs.
    """

    method: object = "auto"
    row_scales: bool = False
    rng: object = None

    def requires(self, problem, trajectory):
        """Columns, derivatives of all updates, and a curvature."""
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
        points = GradientPoints.of(problem, trajectory)
        ends = [0, trajectory.n_updates - 1] if trajectory.n_updates else []
        if ends and not any(points.curvature(t).any() for t in ends):
            raise Unreadable(
                "The memory matrix needs a loss with a curvature: that of "
                f"{type(problem.loss).__name__} is zero on every row."
            )

    def read(self, problem, trajectory, refit):
        """The CurvedRiskEstimate of a run."""
        scales, share = np.ones(len(problem.target)), 0.0
        if self.row_scales:
            scales, share = scales_of_rows(problem.design)
        # A preconditioner has seen these rows: they say nothing of unseen ones.
        scales[trajectory.rows_seen()] = 0
        n_rows = len(problem.target)
        inflation = n_rows / (n_rows - 1) if refit.recentres else 1.0
        run = CurvedRun(points_of(problem, trajectory), scales, inflation)
        modes, solution = run.solved(self.method, self.rng)
        costs = run.costs(modes, solution)
        return CurvedRiskEstimate(
            path=costs.path,
            se_path=np.hypot(costs.row_se, costs.mc_se),
            mc_se_path=costs.mc_se,
            predictors=run.low_rank(modes, solution),
            n_probes=solution.n_probes,
            row_scale_share=share,
        )
