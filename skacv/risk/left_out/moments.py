"""The recorded run, update by update, as replicas without a row follow it."""

from typing import NamedTuple

import numpy as np

from ...optim.penalties import Penalty
from ...optim.run import batch_updates
from ...optim.schedules import Step

# The correction is evaluated at updates floor(GROWTH^k) of a phase, or at passes
# floor(PASS_GROWTH^k): there the error is what batches differ by, not how old it is.
GROWTH = 1.1
PASS_GROWTH = 2.0


class Moment(NamedTuple):
    """One update of the recorded run, on all rows or on a batch.

    Attributes
    ----------
    penalty : Penalty
    step : Step
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
    step: Step
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
    due, due_passes = _powers(GROWTH, n_updates), _powers(PASS_GROWTH, n_updates)
    number = 0
    for update in trajectory.updates():
        t, before, step, _ = update
        number = 1 if t == before else number + 1
        if step.batches:
            evaluates = number in due_passes, number - 1 in due_passes
            yield from _batch_moments(problem, trajectory, update, *evaluates)
        else:
            yield _moment(trajectory, update, number in due)


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
    return sum(len(_powers(growth, length)) for length in lengths)


def _powers(growth, largest):
    """Numbers floor(growth^k) up to ``largest``."""
    n_powers = int(np.log(max(largest, 1)) / np.log(growth)) + 2
    numbers = np.floor(growth ** np.arange(n_powers)).astype(int)
    return set(numbers[numbers <= largest].tolist())


def _moment(trajectory, update, evaluates):
    """An update on all rows; ``evaluates`` the correction there or not."""
    t, before, step, penalty = update
    coef, predictor = trajectory.coef, trajectory.predictor
    point = step.gradient_point(predictor[t], predictor[before])
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


def _batch_moments(problem, trajectory, update, on_batches, on_all_rows):
    """The updates of a pass, evaluating on every batch, or on all rows at its start."""
    t, _, step, penalty = update
    first = (None, trajectory.predictor[t]) if on_all_rows else None
    last = len(step.batches) - 1
    parts = batch_updates(problem, penalty, step, trajectory.coef[t])
    for k, (rows, coef, predictor, following) in enumerate(parts):
        yield Moment(
            penalty=penalty,
            step=step,
            coef=coef,
            earlier=coef,
            following=following,
            rows=rows,
            predictor=predictor,
            evaluates=(rows, predictor) if on_batches else first,
            starts=True,
            ends=t + 1 if k == last else None,
        )
        first = None
