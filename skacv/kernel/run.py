"""The epochs of a preconditioned kernel run, in the space of predictions.

A batch B with residuals g = f(X_B) - y_B moves the function by

    f <- f - (step_size / m) k_P(., B) g,

m the rows of a batch, which in the dual coefficients is

    alpha_B <- alpha_B - (step_size / m) g,
    alpha_S <- alpha_S + (step_size / m) V diag(d) V' k(S, B) g.

The residuals of all training rows are carried along, so that an epoch takes each
column of the kernel matrix once and ends with what it would cost to predict.
Columns share all products: the outputs, random labels, and outputs whose
replicas never see some rows.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np


@dataclass(frozen=True)
class Schedule:
    """Batches, the same in every epoch and in the same order, and the step.

    With them fixed an epoch is always the same linear map, and what a row's
    gradient does to later epochs depends on how many epochs later alone.

    Attributes
    ----------
    batches : list of slice
    batch_size : int
        m, by which a batch's gradient is divided.
    step_size : float
    critical_batch_size : float
        m*: up to it an epoch of smaller batches gains nothing.
    top_eigenvalue : float
        The largest of the preconditioned kernel matrices of the batches, divided
        by m.
    """

    batches: list
    batch_size: int
    step_size: float
    critical_batch_size: float
    top_eigenvalue: float

    @property
    def largest_stable_step(self):
        """Below it, no batch takes the run away from a function that fits it."""
        return 2 / self.top_eigenvalue if self.top_eigenvalue > 0 else np.inf


def batches_of(n_rows, size):
    """Slices of rows, as even as they can be, at most ``size`` each."""
    n_batches = -(-n_rows // size)
    ends = np.linspace(0, n_rows, n_batches + 1).astype(int)
    return [slice(a, b) for a, b in pairwise(ends.tolist())]


class Epoch(NamedTuple):
    """What an epoch leaves.

    Attributes
    ----------
    visited : ndarray of shape (n_rows, n_columns)
        Residual of every row just before its batch.
    residual : ndarray of shape (n_rows, n_columns)
        At the end.
    dual_coef : ndarray of shape (n_rows, n_outputs)
        At the end; of the first columns.
    """

    visited: np.ndarray
    residual: np.ndarray
    dual_coef: np.ndarray


def epochs(gram, preconditioner, schedule, target, n_outputs, sees):
    """Epoch after epoch, without end.

    Parameters
    ----------
    gram : KernelMatrix
    preconditioner : Preconditioner
    schedule : Schedule
    target : ndarray of shape (n_rows, n_columns)
    n_outputs : int
        So many first columns have dual coefficients.
    sees : ndarray of shape (n_rows, n_replicas)
        Whether each of the last columns takes a row's gradient. The others
        take all.

    Yields
    ------
    Epoch
        Its arrays are not written to again.
    """
    share = schedule.step_size / schedule.batch_size
    residual = -target.astype(np.float64)
    dual_coef = np.zeros((len(target), n_outputs))
    n_seeing = target.shape[1] - sees.shape[1]
    while True:
        visited, residual = np.empty_like(residual), residual.copy()
        dual_coef = dual_coef.copy()
        # What the preconditioner adds is summed here, and laid out at the end.
        taken = np.zeros((len(preconditioner.damping), target.shape[1]))
        for batch in schedule.batches:
            features = preconditioner.features[batch]
            visited[batch] = residual[batch] + features @ taken
            moved = share * visited[batch]
            moved[:, n_seeing:] *= sees[batch]
            residual -= gram.dot(batch, moved)
            taken += preconditioner.damping[:, None] * (features.T @ moved)
            dual_coef[batch] -= moved[:, :n_outputs]
        residual += preconditioner.features @ taken
        dual_coef[preconditioner.rows] += preconditioner.vectors @ taken[:, :n_outputs]
        yield Epoch(visited, residual, dual_coef)


def check_stable(train_path, schedule):
    """Raise where a step that is too large has made the training error rise."""
    stable = schedule.largest_stable_step
    if train_path[-1] <= train_path[0]:
        return
    if np.isfinite(train_path[-1]) and schedule.step_size <= stable:
        return  # batches take it up now and then
    raise ValueError(
        f"The iterates diverge with step_size={schedule.step_size:.6g}: the largest "
        f"that is stable for sure is {stable:.6g} with these batches. Use a smaller "
        'one, or step_size="auto".'
    )
