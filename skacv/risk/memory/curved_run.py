"""Any loss with a curvature: predictors of every row by the run without it.

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
from functools import partial

import numpy as np

from ...optim.blocks import MEMORY_BYTES, blocks
from ...optim.costs import CALL
from ..cost import WORTH_MULTIPLICATIONS, WORTH_REPLICAS, RunCost
from ..held_out_rows import mean_with_error
from ..random_labels import random_signs
from ..reader import Unreadable
from .curved_tangents import curvature_at
from .gradient_points import GradientPoints, points_of
from .modes import (
    FIRST_ROUND,
    Accuracy,
    AlongRun,
    RiskEstimate,
    by_size,
    in_rounds,
    is_number,
    modes_of,
    n_leading,
    n_missing,
    probe_dtype,
    solution_by,
)
from .row_scales import scales_of_rows

ACCURACY = Accuracy(carried=0.1, kept=0.02, floor=0.05)
# Shares of held-out residuals that their low-rank factors may miss.
HELD_OUT = Accuracy(carried=0.0, kept=1e-4, floor=0.01)


def curved_risk(problem, trajectory, rule, method, row_scales, rng):
    """The RiskEstimate of a run of any loss; arguments as of ``estimate_risk``."""
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
    points, last = points_of(problem, trajectory), trajectory.n_updates - 1
    ends = [trajectory.predictor[t] for t in (0, last) if last >= 0]
    if ends and not any(curvature_at(problem, end).any() for end in ends):
        raise Unreadable(
            "The memory matrix needs a loss with a curvature: that of "
            f"{type(problem.loss).__name__} is zero on every row."
        )
    n_rows, seen = len(problem.target), trajectory.rows_seen()
    scales, share = np.ones(n_rows), 0.0
    if row_scales:
        scales, share = scales_of_rows(problem.design)
    # Rows that a preconditioner has seen are not like unseen ones.
    scales[seen] = 0
    inflation = n_rows / (n_rows - 1) if rule.refits_intercept else 1.0
    run = CurvedRun(points, scales, inflation)
    modes, solution = run.solved(method, rng)
    path, row_se, mc_se = run.mean_losses(modes, solution)
    factors = run.low_rank(modes, solution)
    return RiskEstimate(
        path=path,
        se_path=np.hypot(row_se, mc_se),
        mc_se_path=mc_se,
        temporal=factors.temporal,
        spatial=factors.spatial[:, np.setdiff1d(np.arange(n_rows), seen)],
        n_probes=solution.n_probes,
        row_scale_share=share,
        row_scale_error=0.0,
    )


@dataclass(frozen=True)
class CurvedRun:
    """A run, and the leverage of its rows over that of the average one."""

    points: GradientPoints
    # Leverages, (n_rows,); rows of scale zero do not enter averages.
    scales: np.ndarray
    # Factor of held-out residuals and of the inverse degrees of freedom of rows: a run
    # that centres the target by its rows centres it without the held-out row.
    inflation: float = 1.0

    @property
    def problem(self):
        return self.points.problem

    @property
    def n_groups(self):
        """Number of outputs with a W of their own; coupled outputs share one."""
        return 1 if self.problem.loss.is_coupled else self.problem.target.shape[1]

    def solved(self, method, rng):
        """The modes of the slopes, and W times them as a :class:`Solution`."""
        # Unreadable if the method is "auto" and takes longer than leave-one-out may.
        problem, trajectory = self.problem, self.points.trajectory
        if method == "exact" or not self.points.n_updates:
            modes = self.points.modes(None)
            return modes, self._complete(modes, modes.temporal.shape[1])
        modes = self.points.modes(ACCURACY)
        n_carried = n_leading(
            modes.temporal, modes.squared_norms, ACCURACY.carried, ACCURACY.floor
        )
        probed = partial(self._probed, modes=modes, rng=rng)
        if is_number(method):
            return modes, probed(np.full(n_carried, method))
        at_most = np.inf
        if method == "auto":
            width = np.count_nonzero(trajectory.coef.any(axis=2), axis=1).max()
            work = RunCost.recorded(problem, trajectory).exact_work(int(width))
            replica = trajectory.n_updates * work
            n_replicas = max(WORTH_REPLICAS, WORTH_MULTIPLICATIONS / replica)
            # In single precision and side by side, two tangents take as long as a
            # replica; but one where every row has a small matrix of curvatures.
            at_most = int(n_replicas if problem.loss.is_coupled else 2 * n_replicas)
        # More signs where the products of an update with X take less than its some
        # fifty calls of NumPy. Few columns may stand for many.
        n_rows, n_columns = problem.design.shape
        cheap = 52 * CALL // (n_rows * min(n_rows, n_columns))
        first = int(np.clip(cheap, FIRST_ROUND, 6 * FIRST_ROUND))
        basis_size = problem.target.size // self.n_groups
        if basis_size <= first and basis_size * n_carried <= at_most:
            return modes, self._complete(modes, n_carried)
        temporal = modes.temporal[:, :n_carried]
        if by_size(temporal, first).sum() > at_most:
            first = FIRST_ROUND
        if by_size(temporal, first).sum() > at_most:
            raise Unreadable(
                "The memory matrix of this run takes longer than the automatic choice "
                "allows."
            )

        def missing_of(solution):
            return n_missing(solution.n_probes, *self.mean_losses(modes, solution))

        return modes, in_rounds(probed, missing_of, temporal, first, at_most)

    def _complete(self, modes, n_carried):
        """The Solution by exact traces, from a complete basis, on the leading modes."""
        signs = self.signs("exact", None)
        tangents = self._tangents(modes.temporal[:, :n_carried], signs)
        return solution_by(tangents, modes, self.n_groups, is_random=False)

    def _probed(self, n_by_mode, modes, rng):
        """The Solution by one round of random signs."""
        signs = self.signs(int(n_by_mode.max()), rng)
        temporal = modes.temporal[:, : len(n_by_mode)]
        tangents = self._tangents(temporal, signs, n_by_mode)
        return solution_by(tangents, modes, self.n_groups)

    def _tangents(self, temporal, signs, n_by_mode=None):
        return self.points.tangents(
            self.scales, temporal, signs, n_by_mode, degrees=1 / self.inflation
        )

    def signs(self, method, rng):
        """Random signs (n_rows, n_outputs, n_probes), or a complete basis ("exact")."""
        n_rows, n_outputs = self.problem.target.shape
        if method != "exact":
            signs = random_signs((n_rows, n_outputs, method), rng)
            square = float(self.problem.column_norms.max()) ** 2
            return signs.astype(probe_dtype(square))
        size = n_rows * n_outputs // self.n_groups
        basis = np.sqrt(size) * np.eye(size)
        if size == n_rows:
            basis = np.repeat(basis[:, None], n_outputs, axis=1)
        return basis.reshape(n_rows, n_outputs, size)

    def held_out(self, modes, solution, iterates, rows):
        """U of some iterates and rows, both slices, (n_iterates, n_rows, n_outputs)."""
        points, scales = self.points, self.scales[rows]
        U = points.predictor.of_rows(rows, iterates).astype(np.float64)
        shape = len(U), points.n_positions, self.n_groups, len(modes.spatial)
        Z = solution.temporal[iterates].reshape(shape)
        for k in range(U.shape[2]):
            Z_k = Z[:, :, min(k, self.n_groups - 1)]
            spatial = modes.spatial[:, rows, k] * scales
            U[:, :, k] -= points.response_of(Z_k, spatial, iterates, rows)
        if self.inflation != 1:
            U += (self.inflation - 1) * (U - self.problem.target[rows])
        return U

    def mean_losses(self, modes, solution):
        """Mean held-out losses (n_iterates,), their errors over rows and by probes."""
        problem, points, spatial = self.problem, self.points, modes.spatial
        loss, target = problem.loss, problem.target[:, :, None].astype(np.float64)
        weights = problem.row_weights[:, 0].astype(np.float64) * (self.scales > 0)
        weights /= weights.sum()
        (n_rows, n_outputs), results = problem.target.shape, []
        n_iterates = len(points.predictor)
        for iterates in blocks(n_iterates, 8 * n_rows * n_outputs, MEMORY_BYTES // 32):
            U = self.held_out(modes, solution, iterates, slice(None))
            U = np.moveaxis(U, 0, 2)
            losses = loss.reported(target, U)
            path, row_se = mean_with_error(losses.mean(axis=1).T, weights)
            slope = loss.derivative(target, U)
            slope *= loss.reported_factor * self.inflation / losses.shape[1]
            slope *= (weights * self.scales)[:, None, None]
            # Derivative of the mean loss in Z: (n_iterates, n_positions, n_groups,
            # n_modes).
            moves_by_output = [
                points.response_adjoint(-slope[:, k].T, spatial[:, :, k], iterates)
                for k in range(slope.shape[1])
            ]
            moves = np.stack(moves_by_output, axis=2)
            if loss.is_coupled:
                moves = moves.sum(axis=2)
            moves = moves.reshape(len(path), solution.temporal.shape[1], 1)
            change = (solution.deviations[iterates] @ moves)[:, :, 0]
            results.append((path, row_se, np.sqrt((change**2).sum(axis=1))))
        return tuple(map(np.concatenate, zip(*results)))

    def low_rank(self, modes, solution):
        """Held-out residuals of all iterates and rows as :class:`Modes`."""
        # Held-out predictors where the loss is not one of residuals.
        target, is_of_residual = self.problem.target, self.problem.loss.is_of_residual

        def held_out(rows):
            U = self.held_out(modes, solution, slice(None), rows)
            return target[rows] - U if is_of_residual else U

        along = AlongRun(self.points.predictor.shape, held_out)
        return modes_of(along, HELD_OUT.kept, HELD_OUT.floor)
