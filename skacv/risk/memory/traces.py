"""Probes of a run: rounds of them, what follows for all its modes, and their error.

W is the memory matrix that a run is read by, and V are the temporal modes of its
residuals or slopes. Tangents carry W V for the leading modes. :class:`ProbedRun` draws
probes for them, lets the other modes follow, and says what error random probes leave.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

# Random probes are added until their standard error is at most this share of that of
# the estimate over rows, at the iterates within two of these of the least.
PROBE_ERROR_SHARE = 1.0
FIRST_ROUND = 10
MIN_ROUND = 5
# At most, on average over the modes.
MAX_PROBES = 128
# Squares of X from this to its inverse may be summed up in single precision.
SMALLEST_SQUARE = 1e-25
# On any one mode, so that their spread can be seen.
MIN_PROBES = 2


def is_number(method):
    """Whether a method is a number of probes, not a name."""
    return not isinstance(method, str) and method is not True


def probe_dtype(square):
    """Single precision, unless squares of the size of X leave its range."""
    is_in_range = SMALLEST_SQUARE < square < 1 / SMALLEST_SQUARE
    return np.float32 if is_in_range else np.float64


class Accuracy(NamedTuple):
    """How much of the residuals the modes may miss.

    Attributes
    ----------
    carried : float
        By the modes that tangents carry. What is missing is orthogonal to what
        is carried, so the risk errs by its square only.
    kept : float
        By the modes that the factors of E keep. Those that are not carried
        follow by what the others show of the memory matrix.
    floor : float
        Both are shares of the norm of an iterate's residuals, or of ``floor``
        times their largest norm where that is more.
    """

    side_runs: float
    kept: float
    floor: float


@dataclass(frozen=True)
class Solution:
    """W V, or V + W V for the squared error, on the temporal modes.

    Attributes
    ----------
    temporal : ndarray of shape (n_iterates, n_modes)
        With a column for every group of outputs and mode, where groups have a W each.
    deviations : ndarray of shape (n_iterates, n_probes, n_modes)
        How each random probe moves ``temporal`` away from its mean, scaled so
        that the sum of squares over probes is the variance.
    """

    temporal: np.ndarray
    deviations: np.ndarray

    @property
    def n_probes(self):
        return self.deviations.shape[1]

    def squares(self):
        """Squared norm of every row of E."""
        return (self.temporal**2).sum(axis=1)

    def squares_error(self):
        """Standard error of ``squares`` due to the probes."""
        change = 2 * np.einsum("tk,tjk->tj", self.temporal, self.deviations)
        return np.sqrt((change**2).sum(axis=1))

    def pooled_with(self, other):
        """Two rounds of probes together, each with the weight of its number."""
        total = self.n_probes + other.n_probes
        own, others = self.n_probes / total, other.n_probes / total
        return Solution(
            own * self.temporal + others * other.temporal,
            np.concatenate([own * self.deviations, others * other.deviations], axis=1),
        )


def n_missing(n_probes, path, row_se, mc_se):
    """How many more probes would bring their error down to that over the rows, or 0.

    The iterates within two standard errors of the least are looked at.

    Parameters
    ----------
    path, row_se, mc_se : ndarray of shape (n_iterates,)
        Mean held-out loss, with its errors over rows and of the probes.
    """
    least = path.argmin()
    near = path <= path[least] + 2 * row_se[least]
    wanted = PROBE_ERROR_SHARE * np.sqrt(np.mean(row_se[near] ** 2))
    error = np.sqrt(np.mean(mc_se[near] ** 2))
    if error <= wanted or wanted == 0:
        return 0
    return int(np.ceil(n_probes * ((error / wanted) ** 2 - 1)))


@dataclass(frozen=True)
class Feedback:
    """The map from slopes to W slopes, as far as carried modes determine it.

    W v solves z = G (v + D z), of which G X = Z is known for X = V + D Z at the
    gradients; elsewhere v is taken at its projection on them (Galerkin), and D and z at
    their means over the rows. With the squared error D is one, and V + Z is known at
    the iterates.

    Attributes
    ----------
    known : ndarray of shape (n_modes, n_driven)
    response : ndarray of shape (n_updates + 1, n_groups, n_modes)
    closed : ndarray of shape (n_modes, n_modes)
    mean_curvature : ndarray of shape (n_driven, n_groups, 1)
    """

    known: np.ndarray
    response: np.ndarray
    closed: np.ndarray
    mean_curvature: np.ndarray

    @classmethod
    def of(cls, tangents, groups):
        """Readings of the tangents of some modes, for one output at all places."""
        mean_curvature = tangents.mean_curvature[:, groups, None]
        back = (mean_curvature * tangents.at_points[:, groups]).mean(axis=1)
        known = np.linalg.pinv(tangents.temporal + back)
        closed = np.linalg.pinv(np.eye(back.shape[1]) - known @ back)
        return cls(known, tangents.solution[:, groups], closed, mean_curvature)

    def of_slopes(self, slopes):
        """W times other slopes, (n_driven, k) -> (n_updates + 1, n_groups, k)."""
        return self.response @ (self.closed @ (self.known @ slopes))

    def of_errors(self, errors):
        """Propagated reading errors, from (n_updates + 1, n_groups, k)."""
        driven = (self.mean_curvature * errors[: len(self.mean_curvature)]).mean(axis=1)
        return errors + self.of_slopes(driven)


def by_size(side_runs, n_probes):
    """Probes in proportion to the size of a mode, as its error matters."""
    sizes = np.linalg.norm(side_runs, axis=0)
    wanted = np.ceil(n_probes * sizes / sizes[0]).astype(int)
    return np.clip(wanted, min(MIN_PROBES, n_probes), n_probes)


class ProbedRun(ABC):
    """A run that is read by probes: random ones, or a complete basis.

    Attributes
    ----------
    n_groups : int
        Groups of outputs with a W of their own.
    exact_instead : int
        Up to this size a complete basis is taken where it has at most twice the
        tangents of the random probes that are missing.
    """

    n_groups = 1
    exact_instead = 0

    @property
    @abstractmethod
    def basis_size(self):
        """Probes of a complete basis."""

    @abstractmethod
    def probes(self, method, rng):
        """A number of random probes, or with "exact" a complete basis."""

    @abstractmethod
    def tangents(self, temporal, n_by_mode, probes):
        """The tangents of some modes and probes, after the last update."""

    @abstractmethod
    def missing_probes(self, modes, n_carried, found):
        """How many more random probes a solution takes, or 0."""

    def complete(self, modes, n_carried):
        """Exact traces, by a complete basis, on some modes."""
        n_by_mode = np.full(n_carried, self.basis_size)
        side_runs = modes.temporal[:, :n_carried]
        probes = self.probes("exact", None)
        return self.without_error(modes, self.tangents(side_runs, n_by_mode, probes))

    def without_error(self, modes, tangents):
        """The Solution by tangents whose probes are exact."""
        temporal = self._temporal(modes, tangents, self._feedback(tangents))
        return Solution(temporal, np.zeros((len(temporal), 0, temporal.shape[1])))

    def in_rounds(self, modes, n_carried, rng, first=FIRST_ROUND, at_most=np.inf):
        """Random probes until their standard error is small enough.

        Parameters
        ----------
        rng : numpy Generator or RandomState
        first : int
            Probes of the first round.
        at_most : float
            Number of tangents.

        Returns
        -------
        Solution or None
            None where a complete basis is taken instead.
        """
        at_most = min(at_most, MAX_PROBES * n_carried)
        wanted_of = partial(by_size, modes.temporal[:, :n_carried])
        wanted = wanted_of(first)
        found, n_tangents = self.probed(modes, wanted, rng), wanted.sum()
        while n_tangents < at_most:
            missing = self.missing_probes(modes, n_carried, found)
            if not missing:
                break
            n_missing, size = wanted_of(missing).sum(), self.basis_size
            if size <= self.exact_instead and size * n_carried <= 2 * n_missing:
                return None
            share = min(1.0, (at_most - n_tangents) / n_missing)
            wanted = wanted_of(max(int(share * missing), MIN_ROUND))
            found = found.pooled_with(self.probed(modes, wanted, rng))
            n_tangents += wanted.sum()
        return found

    def probed(self, modes, n_by_mode, rng):
        """One round of random probes, with the error that they leave."""
        probes = self.probes(int(n_by_mode.max()), rng)
        side_runs = modes.temporal[:, : len(n_by_mode)]
        tangents = self.tangents(side_runs, n_by_mode, probes)
        feedback = self._feedback(tangents)
        temporal = self._temporal(modes, tangents, feedback)
        n_iterates, n_groups, _ = tangents.solution.shape
        shape = n_iterates, n_by_mode.max(), n_groups, modes.temporal.shape[1]
        deviations = np.zeros(shape)
        for alike, through in feedback:
            for k, n in enumerate(n_by_mode):
                own = tangents.responses[:, alike, tangents.mode == k]
                spread = own - own.mean(axis=2, keepdims=True)
                spread = through.of_errors(spread) / np.sqrt(n * max(n - 1, 1))
                deviations[:, :n, alike, k] = np.moveaxis(spread, 2, 1)
        return Solution(temporal, deviations.reshape(*shape[:2], -1))

    def _feedback(self, tangents):
        """The groups that are alike, at all places in a pass, and their feedback."""
        alike = [slice(g, None, self.n_groups) for g in range(self.n_groups)]
        return [(groups, Feedback.of(tangents, groups)) for groups in alike]

    def _temporal(self, modes, tangents, feedback):
        """W times the modes: as carried, and as it follows for the others."""
        n_iterates, n_groups, n_carried = tangents.solution.shape
        found = np.zeros((n_iterates, n_groups, modes.temporal.shape[1]))
        found[:, :, :n_carried] = tangents.solution
        for groups, through in feedback:
            others = through.of_slopes(modes.temporal[:, n_carried:])
            found[:, groups, n_carried:] = others
        return found.reshape(n_iterates, -1)
