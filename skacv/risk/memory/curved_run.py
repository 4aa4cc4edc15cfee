"""W times the loss derivatives of a run, by probes; losses of held-out predictors."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ..averages import mean_with_error
from ..left_out.costs import WORTH_MULTIPLICATIONS, WORTH_REPLICAS, Run
from ..random_labels import random_signs
from ..reader import Unreadable
from .gradient_points import GradientPoints
from .modes import AlongRun, all_modes, modes_of, n_leading
from .signed_rows import SignProbes
from .traces import Accuracy, Solution, by_size

# In single precision and side by side, so many tangents take as long as a replica; but
# only one where every row has a small matrix of curvatures.
TANGENTS_PER_REPLICA, COUPLED_TANGENTS = 2, 1
# Random signs of the first round: more where they cost next to nothing.
FIRST_ROUND, CHEAP_ROUND = 10, 60
CHEAP_PRODUCTS = 1 << 20
MIN_ROUND = 5
# At most, on average over the modes.
MAX_PROBES = 128
# Random probes are added until their standard error is at most this share of that over
# the rows, at the iterates within two of these of the least.
PROBE_ERROR_SHARE = 1.0
ACCURACY = Accuracy(carried=0.1, kept=0.02, floor=0.05)
# How well low-rank factors have the held-out predictors; a decomposition gives them
# where these have no more entries.
PREDICTORS = Accuracy(carried=0.0, kept=1e-4, floor=0.01)
MOST_DECOMPOSED = 1 << 20
ENTRIES_PER_BLOCK = 1 << 20


@dataclass(frozen=True)
class Costs:
    """Mean cost of every iterate on rows held out, and two standard errors of it."""

    path: np.ndarray
    row_se: np.ndarray
    mc_se: np.ndarray

    def missing_probes(self, n_probes):
        """How many more would bring their error down to that over the rows, or 0.

        The iterates within two standard errors of the least are looked at.
        """
        least = self.path.argmin()
        near = self.path <= self.path[least] + 2 * self.row_se[least]
        wanted = PROBE_ERROR_SHARE * np.sqrt(np.mean(self.row_se[near] ** 2))
        error = np.sqrt(np.mean(self.mc_se[near] ** 2))
        if error <= wanted or wanted == 0:
            return 0
        return int(np.ceil(n_probes * ((error / wanted) ** 2 - 1)))


@dataclass(frozen=True)
class CurvedRun:
    """A run, and the leverage of its rows over that of the average one.

    Attributes
    ----------
    points : GradientPoints
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
            If that is left to us ("auto"), and costs more than it is worth.
        """
        if method == "exact" or not self.points.n_updates:
            modes = self.points.modes(None)
            return modes, self._exact(modes, modes.temporal.shape[1])
        modes = self.points.modes(ACCURACY)
        n_carried = n_leading(
            modes.temporal, modes.squared_norms, ACCURACY.carried, ACCURACY.floor
        )
        if method not in ("auto", "hutchinson"):
            return modes, self._probed(modes, np.full(n_carried, method), rng)
        at_most = MAX_PROBES * n_carried
        if method == "auto":
            at_most = min(at_most, self._n_worth())
        return modes, self._in_rounds(modes, n_carried, at_most, rng)

    def _n_worth(self):
        """Tangents that cost as much as is spent on leaving rows out, at most."""
        trajectory = self.points.trajectory
        width = np.count_nonzero(trajectory.coef.any(axis=2), axis=1).max()
        run = Run.recorded(self.problem, trajectory)
        replica = trajectory.n_updates * run.exact_cost(int(width))
        spent = max(WORTH_REPLICAS, WORTH_MULTIPLICATIONS / replica)
        is_coupled = self.problem.loss.is_coupled
        return int(spent * (COUPLED_TANGENTS if is_coupled else TANGENTS_PER_REPLICA))

    def complete_basis(self):
        """A complete basis in the place of random signs."""
        n_rows, n_outputs = self.problem.target.shape
        size = self.basis_size
        basis = np.sqrt(size) * np.eye(size)
        if size == n_rows:
            basis = np.repeat(basis[:, None], n_outputs, axis=1)
        return basis.reshape(n_rows, n_outputs, size)

    def _exact(self, modes, n_carried):
        """Traces without error, on so many modes."""
        signs = self.complete_basis()
        solution = self._carried(modes, np.full(n_carried, signs.shape[2]), signs)
        no_error = np.zeros((len(solution.temporal), 0, solution.temporal.shape[1]))
        return Solution(solution.temporal, no_error)

    def _in_rounds(self, modes, n_carried, at_most, rng):
        """Random signs until their standard error is small enough.

        A complete basis of the rows where these are as few.

        Raises
        ------
        Unreadable
            If the least number of signs takes more than ``at_most`` tangents.
        """
        wanted_of = partial(by_size, modes.temporal[:, :n_carried])
        n_rows, n_columns = self.problem.design.shape
        # The same on few columns that stand for many.
        cheap = CHEAP_PRODUCTS // (n_rows * min(n_rows, n_columns))
        cheap = int(np.clip(cheap, FIRST_ROUND, CHEAP_ROUND))
        wanted = wanted_of(cheap)
        if self.basis_size <= cheap and self.basis_size * n_carried <= at_most:
            return self._exact(modes, n_carried)
        if wanted.sum() > at_most:
            wanted = wanted_of(FIRST_ROUND)
        if wanted.sum() > at_most:
            raise Unreadable(
                "The memory matrix of this run costs more than is spent on it unasked."
            )
        found, n_tangents = self._probed(modes, wanted, rng), wanted.sum()
        while n_tangents < at_most:
            missing = self.costs(modes, found).missing_probes(found.n_probes)
            if not missing:
                break
            share = min(1.0, (at_most - n_tangents) / wanted_of(missing).sum())
            wanted = wanted_of(max(int(share * missing), MIN_ROUND))
            found = found.pooled_with(self._probed(modes, wanted, rng))
            n_tangents += wanted.sum()
        return found

    def _probed(self, modes, n_by_mode, rng):
        """One round of random signs, with the error that they leave."""
        shape = *self.problem.target.shape, int(n_by_mode.max())
        signs = random_signs(shape, rng).astype(np.float32)
        return self._carried(modes, n_by_mode, signs)

    def _carried(self, modes, n_by_mode, signs):
        """Carry the leading modes; let the others follow what is known then."""
        n_carried, n_probes = len(n_by_mode), signs.shape[2]
        probes = SignProbes(signs, n_by_mode)
        carried = modes.temporal[:, :n_carried]
        tangents = self.points.tangents(
            self.scales, carried, probes, degrees=1 / self.inflation
        )
        n_iterates, n_groups, _ = tangents.solution.shape
        temporal = np.zeros((n_iterates, n_groups, modes.temporal.shape[1]))
        temporal[:, :, :n_carried] = tangents.solution
        deviations = np.zeros((n_iterates, n_probes, *temporal.shape[1:]))
        for g in range(self.n_groups):
            alike = slice(g, None, self.n_groups)  # at all places in a pass
            feedback = Feedback.of(tangents, carried, alike)
            temporal[:, alike, n_carried:] = feedback.of_slopes(
                modes.temporal[:, n_carried:]
            )
            for k, n in enumerate(n_by_mode):
                own = tangents.responses[:, alike, probes.mode == k]
                spread = own - own.mean(axis=2, keepdims=True)
                spread = feedback.of_errors(spread) / np.sqrt(n * max(n - 1, 1))
                deviations[:, :n, alike, k] = np.moveaxis(spread, 2, 1)
        flat = temporal.reshape(n_iterates, -1)
        return Solution(flat, deviations.reshape(n_iterates, n_probes, -1))

    def held_out(self, modes, solution, iterates, rows):
        """U of some iterates and rows, both slices: (n_iterates, n_rows, n_outputs)."""
        found = self.points.trajectory.predictor.of_rows(rows, iterates)
        found = found.astype(np.float64)
        n_positions, n_modes = self.points.n_positions, len(modes.spatial)
        shape = len(found), n_positions, self.n_groups, n_modes
        Z = solution.temporal[iterates].reshape(shape)
        for k in range(found.shape[2]):
            own = Z[:, :, min(k, self.n_groups - 1)]
            spatial = modes.spatial[:, rows, k] * self.scales[rows]
            found[:, :, k] -= self.points.taken_off(own, spatial, iterates, rows)
        if self.inflation != 1:
            found += (self.inflation - 1) * (found - self.problem.target[rows])
        return found

    def costs(self, modes, solution):
        """What U costs, with its errors.

        Returns
        -------
        Costs
        """
        n_iterates, n_rows, n_outputs = self.points.trajectory.predictor.shape
        size = max(1, ENTRIES_PER_BLOCK // (n_rows * n_outputs))
        found = [
            self._costs(modes, solution, slice(first, first + size))
            for first in range(0, n_iterates, size)
        ]
        return Costs(*map(np.concatenate, zip(*found)))

    def _costs(self, modes, solution, iterates):
        """Mean cost of some iterates, its error over rows and that of the probes."""
        problem, n_outputs = self.problem, self.problem.target.shape[1]
        weights = problem.row_weights[:, 0].astype(np.float64) * (self.scales > 0)
        weights /= weights.sum()
        predictor = self.held_out(modes, solution, iterates, slice(None))
        predictor = np.moveaxis(predictor, 0, 2)
        target = problem.target[:, :, None].astype(np.float64)
        cost = problem.loss.cost(target, predictor)
        path, row_se = mean_with_error(cost.mean(axis=1).T, weights)
        slope = problem.loss.derivative(target, predictor)
        slope *= problem.loss.cost_factor * self.inflation / cost.shape[1]
        slope *= (weights * self.scales)[:, None, None]
        # How the mean cost moves with Z, (n_iterates, n_positions, n_groups, n_modes).
        moves = [
            self.points.put_on(-slope[:, k].T, modes.spatial[:, :, k], iterates)
            for k in range(n_outputs)
        ]
        moves = np.stack(moves, axis=2)
        if problem.loss.is_coupled:
            moves = moves.sum(axis=2)
        moves = moves.reshape(len(path), solution.temporal.shape[1], 1)
        change = (solution.deviations[iterates] @ moves)[:, :, 0]
        return path, row_se, np.sqrt((change**2).sum(axis=1))

    def low_rank(self, modes, solution):
        """U of all iterates and rows as :class:`Modes`."""
        held_out = partial(self.held_out, modes, solution, slice(None))
        along = AlongRun(self.points.trajectory.predictor.shape, held_out)
        if np.prod(along.shape) > MOST_DECOMPOSED:
            return modes_of(along, PREDICTORS.kept, PREDICTORS.floor)
        return all_modes(along, PREDICTORS.kept)


@dataclass(frozen=True)
class Feedback:
    """The map from slopes to W slopes, as far as carried modes determine it.

    W v solves z = G (v + D z), of which G X = Z is known for X = V + D Z at the
    gradients; elsewhere v is taken at its projection on them (Galerkin), and D and z at
    their means over the rows.

    Attributes
    ----------
    known : ndarray of shape (n_modes, n_updates)
    response : ndarray of shape (n_updates + 1, n_groups, n_modes)
    closed : ndarray of shape (n_modes, n_modes)
    mean_bend : ndarray of shape (n_updates, n_groups, 1)
    """

    known: np.ndarray
    response: np.ndarray
    closed: np.ndarray
    mean_bend: np.ndarray

    @classmethod
    def of(cls, tangents, carried, groups):
        """What the tangents of some modes say, for one output at all places."""
        mean_bend = tangents.mean_bend[:, groups, None]
        back = (mean_bend * tangents.at_points[:, groups]).mean(axis=1)
        known = np.linalg.pinv(carried + back)
        closed = np.linalg.pinv(np.eye(carried.shape[1]) - known @ back)
        return cls(known, tangents.solution[:, groups], closed, mean_bend)

    def of_slopes(self, slopes):
        """W times other slopes, (n_updates, k) -> (n_updates + 1, n_groups, k)."""
        return self.response @ (self.closed @ (self.known @ slopes))

    def of_errors(self, errors):
        """What reading errors (n_updates + 1, n_groups, k) come to in the end."""
        driven = (self.mean_bend * errors[:-1]).mean(axis=1)
        return errors + self.of_slopes(driven)
