"""Which rows are left out of a run, and what it carries for them.

Leave-one-out needs how strongly every row holds on to its own residual: from the
eigendecomposition or from random labels (:mod:`skacv.kernel.leave_one_out`). Folds,
and a few single rows, are outputs whose gradient is masked: exact whatever the
batches. The coefficients of the run without a row follow afterwards, in the same two
ways.
"""

from dataclasses import dataclass
from itertools import islice

import numpy as np

from .._estimator.left_out import FEWEST_ROWS, unseen_folds
from .leave_one_out import (
    ExactMemory,
    LeaveOneOut,
    ProbedMemory,
    factors_of_epoch,
    random_labels,
)
from .run import epochs


@dataclass(frozen=True)
class Plan:
    """What a run carries besides the outputs, as numbers of rows in its order.

    Attributes
    ----------
    target : ndarray of shape (n_rows, n_outputs)
    labels : ndarray of shape (n_rows, n_probes)
        Random labels; none where leave-one-out does without.
    replicas : list of (ndarray of bool, ndarray of int)
        Rows whose gradient a replica takes, and rows that it is judged by.
        Folds first, then single rows.
    n_folds : int
    left_out : ndarray of int
        Rows that leave-one-out leaves out.
    """

    target: np.ndarray
    labels: np.ndarray
    replicas: list
    n_folds: int
    left_out: np.ndarray

    @property
    def n_outputs(self):
        """Columns of the target."""
        return self.target.shape[1]

    def columns(self):
        """Targets of all columns: outputs, labels, outputs of the replicas."""
        copies = [self.target] * len(self.replicas)
        return np.concatenate([self.target, -self.labels, *copies], axis=1)

    def sees(self):
        """Which gradients the columns of the replicas take."""
        masks = [np.repeat(m[:, None], self.n_outputs, 1) for m, _ in self.replicas]
        return np.concatenate([np.empty((len(self.target), 0), bool), *masks], axis=1)

    def replica_columns(self, number):
        """Where a replica is."""
        first = self.n_outputs * (1 + number) + self.labels.shape[1]
        return slice(first, first + self.n_outputs)

    def leave_one_out(self, machine):
        """What follows every row left out; None where replicas do."""
        if self.n_folds < len(self.replicas) or not len(self.left_out):
            return None
        if self.labels.shape[1]:
            columns = slice(self.n_outputs, self.n_outputs + self.labels.shape[1])
            memory = ProbedMemory(self.labels, columns, self.left_out)
        else:
            matrix, step_size = machine.matrix(), machine.schedule.step_size
            memory = ExactMemory(matrix, step_size, self.left_out)
        dtype = machine.gram.dtype
        return LeaveOneOut(memory, self.left_out, self.n_outputs, dtype)


def plan_of(machine, target, folds, loo, n_probes, rng):
    """Which rows are left out, and how.

    Parameters
    ----------
    machine : Machine
    target : ndarray of shape (n_rows, n_outputs)
        In the order of the training rows, as everything that is passed.
    folds : list of (ndarray of int, ndarray of int)
        Rows to fit on and rows to judge by.
    loo : "auto", bool or int
    n_probes : int
    rng : numpy.random.RandomState

    Returns
    -------
    Plan
        In the order of the run.

    Raises
    ------
    ValueError
        If a fold judges by rows of the preconditioner's subsample alone.
    """
    n_rows, rows = len(target), machine.unseen_rows()
    seen = np.delete(machine.order, rows)
    replicas = [_fold(machine, *fold) for fold in unseen_folds(folds, seen)]
    labels = np.empty((n_rows, 0))
    if loo is False or (loo == "auto" and n_rows < FEWEST_ROWS):
        rows = rows[:0]
    elif loo not in ("auto", True):
        rows = np.sort(rng.choice(rows, min(loo, len(rows)), replace=False))
        replicas += [(np.arange(n_rows) != row, np.array([row])) for row in rows]
    elif not machine.can_decompose:
        labels = random_labels(n_rows, n_probes, rng)
    return Plan(target[machine.order], labels, replicas, len(folds), rows)


def coefficients_from_residuals(machine, dual_coef, held_out, rows):
    """An epoch without the gradients of single rows, with all rows in a batch.

    Parameters
    ----------
    machine : Machine
        Of which :attr:`Machine.can_decompose` is true.
    dual_coef : ndarray of shape (n_rows, n_outputs)
        Of the epoch with all of them; in the order of the run, as everything here.
    held_out : ndarray of shape (n_epochs, n_left_out, n_outputs)
        Residuals of the rows in the replicas, of all epochs before.
    rows : ndarray of int

    Yields
    ------
    ndarray of shape (n_rows, n_left_out)
        Dual coefficients of that epoch, output by output.
    """
    schedule, preconditioner = machine.schedule, machine.preconditioner
    factors, vectors = factors_of_epoch(machine.matrix(), schedule.step_size)
    powers = factors ** np.arange(len(held_out))[::-1, None]
    for k in range(dual_coef.shape[1]):
        parts = vectors[rows] * (held_out[:, :, k].T @ powers)
        change = schedule.step_size / schedule.batch_size * vectors @ parts.T
        found = dual_coef[:, k, None] + change
        found[preconditioner.rows] -= preconditioner.dual_part(change)
        yield found


def coefficients_of_replicas(machine, target, rows, n_epochs):
    """An epoch without the gradients of single rows, by the run again for each.

    Parameters
    ----------
    machine : Machine
    target : ndarray of shape (n_rows, n_outputs)
        In the order of the run, as everything here.
    rows : ndarray of int
    n_epochs : int

    Yields
    ------
    ndarray of shape (n_rows, n_left_out)
        Dual coefficients of that epoch, output by output.
    """
    sees = np.arange(len(target))[:, None] != rows
    for output in target.T:
        copies = np.repeat(output[:, None], len(rows), axis=1)
        run = epochs(
            machine.gram,
            machine.preconditioner,
            machine.schedule,
            copies,
            len(rows),
            sees,
        )
        dual_coef = np.zeros_like(copies)
        for epoch in islice(run, n_epochs):
            dual_coef = epoch.dual_coef
        yield dual_coef


def _fold(machine, fitted, judged):
    sees = np.zeros(len(machine.order), dtype=bool)
    sees[machine.place[fitted]] = True
    return sees, machine.place[judged]
