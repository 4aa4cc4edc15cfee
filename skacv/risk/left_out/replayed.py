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


class ReplayedStep(NamedTuple):
    """One update of the recorded run, on all rows or on a batch.

    Attributes
    ----------
    coef, earlier, following : ndarray of shape (n_columns, n_outputs)
        The recorded update led from the first two to the last.
    starts : bool
        Whether the phase starts here: from rest.
    ends : int or None
        The iterate that it leads to, if it does.
    predictor : ndarray of shape (n_batch, n_outputs) or None
        Linear predictors of its rows at the gradient point.
    rows : ndarray of int or None
        The batch, or None for all rows.
    evaluates : tuple or None
        Rows and their predictors, over which the correction is evaluated first.
    """

    penalty: Penalty
    update: ProximalGradient
    coef: np.ndarray
    earlier: np.ndarray
    following: np.ndarray
    starts: bool
    ends: int | None
    predictor: np.ndarray | None = None
    rows: np.ndarray | None = None
    evaluates: tuple | None = None

    @classmethod
    def on_all_rows(cls, coef, taken):
        """An update that a run with these iterates has taken, without predictors."""
        t, before, update, penalty = taken
        iterates = coef[t], coef[before], coef[t + 1]
        return cls(penalty, update, *iterates, starts=taken.restarts, ends=t + 1)


def replayed_steps(problem, trajectory, correction):
    """Every update of the run, batch by batch, and when to evaluate the correction.

    Parameters
    ----------
    correction : bool
        Whether to evaluate it at all.

    Yields
    ------
    ReplayedStep
    """
    n_updates = trajectory.n_updates if correction else 0
    due, due_passes = powers(GROWTH, n_updates), powers(PASS_GROWTH, n_updates)
    number = 0
    for taken in trajectory.updates():
        number = 1 if taken.restarts else number + 1
        if taken.update.n_batches:
            evaluates = number in due_passes, number - 1 in due_passes
            yield from _batch_steps(problem, trajectory, taken, *evaluates)
        else:
            t, before, update, _ = taken
            predictor = trajectory.predictor
            predictor = update.point(predictor[t], predictor[before])
            evaluates = (None, predictor) if number in due else None
            step = ReplayedStep.on_all_rows(trajectory.coef, taken)
            yield step._replace(predictor=predictor, evaluates=evaluates)


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

    Returns
    -------
    set of int
    """
    n_powers = int(np.log(max(largest, 1)) / np.log(growth)) + 2
    numbers = np.floor(growth ** np.arange(n_powers)).astype(int)
    return set(numbers[numbers <= largest].tolist())


def _batch_steps(problem, trajectory, taken, on_batches, on_all_rows):
    """The steps of a pass, evaluating on every batch, or on all rows at its start."""
    t, _, update, penalty = taken
    first = (None, trajectory.predictor[t]) if on_all_rows else None
    last, fits = update.n_batches - 1, Fits(problem)
    parts = update.parts(fits, penalty, fits.start(trajectory.coef[t]))
    for k, part in enumerate(parts):
        rows, coef, predictor = part.rows, part.coef[:, :, 0], part.predictor[:, :, 0]
        yield ReplayedStep(
            penalty=penalty,
            update=update.update,
            coef=coef,
            earlier=coef,
            following=part.following[:, :, 0],
            starts=True,
            ends=t + 1 if k == last else None,
            predictor=predictor,
            rows=rows,
            evaluates=(rows, predictor) if on_batches else first,
        )
        first = None
