"""Any loss with a curvature: what every row would be predicted by a run without it.

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

from ...optim.blocks import slices
from ..averages import mean_with_error
from ..left_out.workload import WORTH_MULTIPLICATIONS, WORTH_REPLICAS, Workload
from ..random_labels import random_signs
from ..reader import Unreadable
from .estimate import RiskEstimate
from .gradient_points import GradientPoints, points_of
from .modes import AlongRun, modes_of, n_leading
from .row_scales import scales_of_rows
from .signed_rows import curvature_at
from .traces import (
    FIRST_ROUND,
    Accuracy,
    ProbedRun,
    by_size,
    is_number,
    n_missing,
    probe_dtype,
)

# In single precision and side by side, so many tangents take as long as a replica; but
# only one where every row has a small matrix of curvatures.
TANGENTS_PER_REPLICA, COUPLED_TANGENTS = 2, 1
# Random signs of the first round if they take next to no time.
CHEAP_ROUND, CHEAP_PRODUCTS = 60, 1 << 20
ACCURACY = Accuracy(side_runs=0.1, kept=0.02, floor=0.05)
# How well low-rank factors have what is held out.
HELD_OUT = Accuracy(side_runs=0.0, kept=1e-4, floor=0.01)
ENTRIES_PER_BLOCK = 1 << 20


def estimate_risk(problem, trajectory, refit, method, row_scales, rng):
    """The RiskEstimate of a run; arguments as of :func:`.memory_matrix.estimate_risk`.

    Random signs of the rows are the probes. A standard error of probes is made smaller
    than that over the rows.
    """
    points = _points_with_derivatives(problem, trajectory)
    n_rows, seen = len(problem.target), trajectory.rows_seen()
    scales, share = np.ones(n_rows), 0.0
    if row_scales:
        scales, share = scales_of_rows(problem.design)
    # A preconditioner has seen these rows: they say nothing of unseen ones.
    scales[seen] = 0
    inflation = n_rows / (n_rows - 1) if refit.refits_intercept else 1.0
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


def _points_with_derivatives(problem, trajectory):
    """The gradient points of a run.

    Raises
    ------
    Unreadable
        If there are no columns, or no derivatives of updates or losses.
    """
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
    if ends and not any(curvature_at(problem, each).any() for each in ends):
        raise Unreadable(
            "The memory matrix needs a loss with a curvature: that of "
            f"{type(problem.loss).__name__} is zero on every row."
        )
    return points


@dataclass(frozen=True)
class CurvedRun(ProbedRun):
    """A run, and the leverage of its rows over that of the average one.

    Attributes
    ----------
    scales : ndarray of shape (n_rows,)
        Zero for rows that do not enter averages.
    inflation : float
        What multiplies held-out residuals: a run that centres the target by its own
        rows centres it without the row that is held out. It divides the degrees of
        freedom of rows.
    """

    points: GradientPoints
    scales: np.ndarray
    inflation: float = 1.0

    @property
    def problem(self):
        return self.points.problem

    @property
    def n_groups(self):
        """Outputs with a W of their own; those that the loss couples share one."""
        return 1 if self.problem.loss.is_coupled else self.problem.target.shape[1]

    @property
    def basis_size(self):
        """Vectors of a complete basis of the rows, and of outputs that are coupled."""
        return self.problem.target.size // self.n_groups

    def solved(self, method, rng):
        """The modes of the slopes, and W times them as a :class:`Solution`.

        Raises
        ------
        Unreadable
            If the method is "auto" and takes too long.
        """
        if method == "exact" or not self.points.n_updates:
            modes = self.points.modes(None)
            return modes, self.complete(modes, modes.temporal.shape[1])
        modes = self.points.modes(ACCURACY)
        n_carried = n_leading(
            modes.temporal, modes.squared_norms, ACCURACY.side_runs, ACCURACY.floor
        )
        if is_number(method):
            return modes, self.probed(modes, np.full(n_carried, method), rng)
        at_most = self._n_worth() if method == "auto" else np.inf
        return modes, self._by_cheapest(modes, n_carried, at_most, rng)

    def _n_worth(self):
        """Number of tangents that take as long as automatic leave-one-out may."""
        trajectory = self.points.trajectory
        width = np.count_nonzero(trajectory.coef.any(axis=2), axis=1).max()
        run = Workload.recorded(self.problem, trajectory)
        replica = trajectory.n_updates * run.exact_work(int(width))
        spent = max(WORTH_REPLICAS, WORTH_MULTIPLICATIONS / replica)
        is_coupled = self.problem.loss.is_coupled
        return int(spent * (COUPLED_TANGENTS if is_coupled else TANGENTS_PER_REPLICA))

    def probes(self, method, rng):
        """Random signs, or a complete basis in their place.

        Shapes: returned (n_rows, n_outputs, n_probes).
        """
        (n_rows, n_outputs), size = self.problem.target.shape, self.basis_size
        if method != "exact":
            signs = random_signs((n_rows, n_outputs, method), rng)
            square = float(self.problem.column_norms.max()) ** 2
            return signs.astype(probe_dtype(square))
        basis = np.sqrt(size) * np.eye(size)
        if size == n_rows:
            basis = np.repeat(basis[:, None], n_outputs, axis=1)
        return basis.reshape(n_rows, n_outputs, size)

    def tangents(self, temporal, n_by_mode, probes):
        return self.points.tangents(
            self.scales, temporal, probes, n_by_mode, degrees=1 / self.inflation
        )

    def _by_cheapest(self, modes, n_carried, at_most, rng):
        """A complete basis where rows are as few as the signs of a round, else these.

        Raises
        ------
        Unreadable
            If the least number of signs takes more than ``at_most`` tangents.
        """
        n_rows, n_columns = self.problem.design.shape
        # The same on few columns that stand for many.
        cheap = CHEAP_PRODUCTS // (n_rows * min(n_rows, n_columns))
        first = int(np.clip(cheap, FIRST_ROUND, CHEAP_ROUND))
        if self.basis_size <= first and self.basis_size * n_carried <= at_most:
            return self.complete(modes, n_carried)
        side_runs = modes.temporal[:, :n_carried]
        if by_size(side_runs, first).sum() > at_most:
            first = FIRST_ROUND
        if by_size(side_runs, first).sum() > at_most:
            raise Unreadable(
                "The memory matrix of this run takes longer than the automatic choice "
                "allows."
            )
        return self.in_rounds(modes, n_carried, rng, first, at_most)

    def missing_probes(self, modes, n_carried, found):
        return n_missing(found.n_probes, *self.mean_losses(modes, found))

    def held_out(self, modes, solution, iterates, rows):
        """U of some iterates and rows, both slices: (n_iterates, n_rows, n_outputs)."""
        found = self.points.predictor.of_rows(rows, iterates)
        found = found.astype(np.float64)
        n_positions, n_modes = self.points.n_positions, len(modes.spatial)
        shape = len(found), n_positions, self.n_groups, n_modes
        Z = solution.temporal[iterates].reshape(shape)
        for k in range(found.shape[2]):
            own = Z[:, :, min(k, self.n_groups - 1)]
            spatial = modes.spatial[:, rows, k] * self.scales[rows]
            found[:, :, k] -= self.points.response_of(own, spatial, iterates, rows)
        if self.inflation != 1:
            found += (self.inflation - 1) * (found - self.problem.target[rows])
        return found

    def mean_losses(self, modes, solution):
        """Mean held-out loss of every iterate, with errors over rows and of the probes.

        Returns
        -------
        path, row_se, mc_se : ndarray of shape (n_iterates,)
        """
        n_iterates, n_rows, n_outputs = self.points.predictor.shape
        blocks = slices(n_iterates, ENTRIES_PER_BLOCK // (n_rows * n_outputs))
        found = [self._mean_losses(modes, solution, iterates) for iterates in blocks]
        return tuple(map(np.concatenate, zip(*found)))

    def _mean_losses(self, modes, solution, iterates):
        """Mean held-out loss of iterates, its error over rows and of the probes."""
        problem, points, spatial = self.problem, self.points, modes.spatial
        weights = problem.row_weights[:, 0].astype(np.float64) * (self.scales > 0)
        weights /= weights.sum()
        predictor = self.held_out(modes, solution, iterates, slice(None))
        predictor = np.moveaxis(predictor, 0, 2)
        target = problem.target[:, :, None].astype(np.float64)
        losses = problem.loss.reported(target, predictor)
        path, row_se = mean_with_error(losses.mean(axis=1).T, weights)
        slope = problem.loss.derivative(target, predictor)
        slope *= problem.loss.reported_factor * self.inflation / losses.shape[1]
        slope *= (weights * self.scales)[:, None, None]
        # Derivative of the mean loss in Z, (n_iterates, n_positions, n_groups,
        # n_modes).
        moves = [
            points.response_adjoint(-slope[:, k].T, spatial[:, :, k], iterates)
            for k in range(slope.shape[1])
        ]
        moves = np.stack(moves, axis=2)
        if problem.loss.is_coupled:
            moves = moves.sum(axis=2)
        moves = moves.reshape(len(path), solution.temporal.shape[1], 1)
        change = (solution.deviations[iterates] @ moves)[:, :, 0]
        return path, row_se, np.sqrt((change**2).sum(axis=1))

    def low_rank(self, modes, solution):
        """Held-out residuals of all iterates and rows as :class:`Modes`.

        Held-out predictors where the loss is not one of residuals.
        """
        target, is_of_residual = self.problem.target, self.problem.loss.is_of_residual

        def found(rows):
            predictor = self.held_out(modes, solution, slice(None), rows)
            return target[rows] - predictor if is_of_residual else predictor

        along = AlongRun(self.points.predictor.shape, found)
        return modes_of(along, HELD_OUT.kept, HELD_OUT.floor)
