"""Schedules: the sequence of updates.

Every first-order algorithm of this package is one update,

    v = b_t + momentum (b_t - b_{t-1})
    y = b_t + lookahead (b_t - b_{t-1})
    b_{t+1} = prox(v - step_size * gradient(y)),

with its own sequence of :class:`~skacv.optim.updates.ProximalGradient`. A schedule is a
frozen dataclass with

``step_size``
    the step, or the first one, which estimators set with :func:`dataclasses.replace`;
``updates()``
    yields the sequence, endlessly and always from its first update; a schedule does not
    loop over the data;
``largest_stable_step(smoothness)``
    the largest step that converges on a quadratic with this curvature;
``automatic_step(smoothness)``
    the default step, if it is not 1 / smoothness.

With a penalty that has a prox, gradient descent is ISTA and Nesterov's schedule is
FISTA. An update with batches is one pass through them, with one step on the gradient of
every batch.

Add a schedule here. If it can be made from a step size alone and multiplies the
gradient of all rows by it, list it in ``SCHEDULES``, and it inherits the tests of
``tests/optim/test_schedules.py``; the others (batches, a preconditioner, Newton steps)
have separate tests.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, repeat
from math import sqrt
from typing import Protocol

import numpy as np

from .equality import ComparesArrays
from .preconditioner import Preconditioner
from .problem import Problem
from .updates import (
    NewtonStep,
    Pass,
    ProximalGradient,
    SimplifiedNewtonStep,
    Update,
)

__all__ = [
    "SCHEDULES",
    "EigenPro",
    "GradientDescent",
    "HeavyBall",
    "Nesterov",
    "Newton",
    "RandomBatches",
    "Schedule",
    "SimplifiedNewton",
    "StochasticGradient",
]


class Schedule(Protocol):
    """The interface of schedules; ``automatic_step`` is optional."""

    @property
    def step_size(self) -> float:
        """The step, or the first one: a field of the dataclass."""

    def updates(self) -> Iterator[Update]:
        """The updates, endlessly, and always from the first one."""

    def largest_stable_step(self, smoothness: float) -> float:
        """The largest step that converges on a quadratic with this curvature."""


@dataclass(frozen=True)
class GradientDescent:
    """b_{t+1} = prox(b_t - step_size gradient(b_t)); ISTA with a prox."""

    step_size: float

    def updates(self) -> Iterator[Update]:
        return repeat(ProximalGradient(self.step_size))

    @staticmethod
    def largest_stable_step(smoothness: float) -> float:
        return 2 / smoothness


@dataclass(frozen=True)
class Nesterov:
    """Accelerated gradient, FISTA with a prox (Beck & Teboulle 2009, eq. 4.1-4.3).

    s_1 = 1, s_{k+1} = (1 + sqrt(1 + 4 s_k^2)) / 2, and the momentum of update
    k + 1 is (s_k - 1) / s_{k+1}: none in the first two. The gradient is taken at
    the extrapolated point.
    """

    step_size: float

    def updates(self) -> Iterator[Update]:
        yield ProximalGradient(self.step_size)
        s = 1.0
        while True:
            following = (1 + sqrt(1 + 4 * s * s)) / 2
            momentum = (s - 1) / following
            yield ProximalGradient(self.step_size, momentum, momentum)
            s = following

    @staticmethod
    def largest_stable_step(smoothness: float) -> float:
        # Roots of r^2 - (1 + w)(1 - x) r + w (1 - x) stay in the unit disc for
        # x < (2 + 2w) / (1 + 2w), which falls to 4/3 as the momentum w -> 1.
        return 4 / (3 * smoothness)


@dataclass(frozen=True)
class HeavyBall:
    """Polyak's method: constant momentum, the gradient taken at b_t itself."""

    step_size: float
    momentum: float = 0.9

    def updates(self) -> Iterator[Update]:
        return repeat(ProximalGradient(self.step_size, self.momentum))

    def largest_stable_step(self, smoothness: float) -> float:
        return 2 * (1 + self.momentum) / smoothness


@dataclass(frozen=True)
class StochasticGradient(GradientDescent):
    """Passes over the rows in batches, which are drawn anew for every pass.

    The largest stable step is that of a batch of all rows: smaller ones allow no more.

    Parameters
    ----------
    step_size : float
        Step of the first pass; pass k has the step step_size / k^decay.
    decay : float
    n_rows, batch_size : int
        Batches have about that many rows, at most.
    seed : int
        Draws the batches: they are the same every time.
    """

    decay: float
    n_rows: int
    batch_size: int
    seed: int

    def updates(self) -> Iterator[Update]:
        rng = np.random.default_rng(self.seed)
        for number in count(1):
            step = ProximalGradient(self.step_size / number**self.decay)
            yield Pass(step, drawn_batches(rng, self.n_rows, self.batch_size))


@dataclass(frozen=True)
class RandomBatches(GradientDescent):
    """One step on a batch of rows, drawn anew for every update, without replacement.

    The largest stable step is that of a batch of all rows: smaller ones allow no more.

    Parameters
    ----------
    step_size : float
    n_rows, batch_size : int
    seed : int
        Draws the batches: they are the same every time.
    """

    n_rows: int
    batch_size: int
    seed: int

    def updates(self) -> Iterator[Update]:
        rng = np.random.default_rng(self.seed)
        step = ProximalGradient(self.step_size)
        while True:
            yield Pass(step, (rng.permutation(self.n_rows)[: self.batch_size],))


@dataclass(frozen=True, eq=False)
class EigenPro(ComparesArrays):
    """b_{t+1} = b_t - step_size P gradient(b_t), all rows at a time or in batches.

    Batches are drawn once and are the same in every pass, so that a pass is always the
    same linear map.

    Parameters
    ----------
    step_size : float
    preconditioner : Preconditioner
    top_eigenvalue : float
        The largest eigenvalue, over batches, of P times the second moments of a batch.
        It limits the step.
    batches : tuple of ndarray of int
        Rows of every batch; none where all rows are taken at a time.
    """

    step_size: float
    preconditioner: Preconditioner
    top_eigenvalue: float = 0.0
    batches: tuple = ()

    def updates(self) -> Iterator[Update]:
        step = ProximalGradient(self.step_size, preconditioner=self.preconditioner)
        return repeat(Pass(step, self.batches) if self.batches else step)

    def smoothness(self, problem: Problem) -> float:
        return self.top_eigenvalue

    @staticmethod
    def largest_stable_step(smoothness: float) -> float:
        return 2 / smoothness if smoothness > 0 else np.inf


def fixed_batches(n_rows, batch_size, seed):
    if batch_size is None or batch_size >= n_rows:
        return ()
    return drawn_batches(np.random.default_rng(seed), n_rows, batch_size)


def drawn_batches(rng, n_rows, batch_size):
    order, n_batches = rng.permutation(n_rows), -(-n_rows // batch_size)
    return tuple(np.array_split(order, n_batches))


@dataclass(frozen=True)
class Newton:
    """b_{t+1} = b_t - step_size H(b_t)^-1 gradient(b_t), both with the penalty."""

    step_size: float

    def updates(self) -> Iterator[Update]:
        return repeat(NewtonStep(self.step_size))

    @staticmethod
    def largest_stable_step(smoothness: float) -> float:
        return 2.0

    @staticmethod
    def automatic_step(smoothness: float) -> float:
        return 1.0


@dataclass(frozen=True)
class SimplifiedNewton(Newton):
    """Newton's method with the Hessian at the iterate where a phase begins."""

    def updates(self) -> Iterator[Update]:
        return repeat(SimplifiedNewtonStep(self.step_size))


# Schedules made from a step size alone, which multiplies the gradient of all rows.
SCHEDULES = (GradientDescent, Nesterov, HeavyBall)
