"""The recorded run, update by update, as replicas without a row follow it."""

from typing import NamedTuple

import numpy as np

from ...optim.fits import Fits
from ...optim.penalties import Penalty
from ...optim.updates import ProximalGradient

# The correction is evaluated at updates floor(GROWTH^k) of a phase, or at passes
# floor(PASS_GROWTH^k): there the error is what batches differ by, not how old it is.
GROWTH = 1.1
PASS_GROWTH = 2.0


class Moment(NamedTuple):
    """One update of the recorded run, on all rows or on a batch.

    Attributes
    ----------
    penalty : Penalty
    step : ProximalGradient
    coef, earlier, following : ndarray of shape (n_columns, n_outputs)
        The recorded update led from the first two to the last.
    rows : ndarray of int or None
        The batch, or None for all rows.
    predictor : ndarray of shape (n_batch, n_outputs)
        Linear predictors of these rows at the gradient point.
    evaluates : tuple or None
        Rows and their predictors, over which the correction is evaluated first.
    starts : bool
        Whether the phase starts here: from rest.
    ends : int or None
        The iterate that it leads to, if it does.
    """

    penalty: Penalty
    step: ProximalGradient
    coef: np.ndarray
    earlier: np.ndarray
    following: np.ndarray
    rows: np.ndarray | None
    predictor: np.ndarray
    evaluates: tuple | None
    starts: bool
    ends: int | None


def moments(problem, trajectory, correction):
    """Every update of the run, batch by batch, and when to evaluate the correction.

    Parameters
    ----------
    problem : Problem
    trajectory : Trajectory
    correction : bool
        Whether to evaluate it at all.

    Yields
    ------
    Moment
    """
    n_updates = trajectory.n_updates if correction else 0
    due, due_passes = powers(GROWTH, n_updates), powers(PASS_GROWTH, n_updates)
    number = 0
    for taken in trajectory.updates():
        number = 1 if taken.restarts else number + 1
        if taken.update.n_batches:
            evaluates = number in due_passes, number - 1 in due_passes
            yield from _batch_moments(problem, trajectory, taken, *evaluates)
        else:
            yield _moment(trajectory, taken, number in due)


def n_evaluations(lengths, has_batches):
    """How many updates of a run evaluate the correction.

    Parameters
    ----------
    lengths : list of int
        Updates of every phase.
    has_batches : bool
        Whether they are passes in batches.
    """
    growth = PASS_GROWTH if has_batches else GROWTH
    return sum(len(powers(growth, length)) for length in lengths)


def powers(growth, largest):
    """Numbers floor(growth^k) up to ``largest``.

    Parameters
    ----------
    growth : float
    largest : int

    Returns
    -------
    set of int
    """
    n_powers = int(np.log(max(largest, 1)) / np.log(growth)) + 2
    numbers = np.floor(growth ** np.arange(n_powers)).astype(int)
    return set(numbers[numbers <= largest].tolist())


def _moment(trajectory, taken, evaluates):
    """An update on all rows; ``evaluates`` the correction there or not."""
    t, before, step, penalty = taken
    coef, predictor = trajectory.coef, trajectory.predictor
    point = step.point(predictor[t], predictor[before])
    return Moment(
        penalty=penalty,
        step=step,
        coef=coef[t],
        earlier=coef[before],
        following=coef[t + 1],
        rows=None,
        predictor=point,
        evaluates=(None, point) if evaluates else None,
        starts=t == before,
        ends=t + 1,
    )


def _batch_moments(problem, trajectory, taken, on_batches, on_all_rows):
    """The steps of a pass, evaluating on every batch, or on all rows at its start."""
    t, _, update, penalty = taken
    first = (None, trajectory.predictor[t]) if on_all_rows else None
    last, fits = update.n_batches - 1, Fits(problem)
    parts = update.parts(fits, penalty, fits.start(trajectory.coef[t]))
    for k, part in enumerate(parts):
        rows, coef, predictor = part.rows, part.coef[:, :, 0], part.predictor[:, :, 0]
        yield Moment(
            penalty=penalty,
            step=update.update,
            coef=coef,
            earlier=coef,
            following=part.following[:, :, 0],
            rows=rows,
            predictor=predictor,
            evaluates=(rows, predictor) if on_batches else first,
            starts=True,
            ends=t + 1 if k == last else None,
        )
        first = None
