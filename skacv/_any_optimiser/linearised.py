"""Rows left out one by one, the gradients of their replicas expanded around the run.

Iterative approximate cross-validation (Luo, Ren & Barber 2023), of any optimiser: a
replica stays near the recorded run, so at theta + d the gradient of its mean loss is
about

    c (gradient + H d - w_i (gradient_i + H_i d) + C_i),

with gradients and Hessians of all rows and of the row left out at the recorded theta, c
= 1 / (1 - w_i), and C_i the error of this expansion, evaluated at some updates over all
rows (:mod:`skacv.risk.left_out.linearised`). The gradient of the penalty is exact, and
the optimiser is run as it is: only gradients of the loss are expanded.

Every library has a module of functions, the ``functions`` of a model:

``grad(function)``, the gradient with respect to the first argument;
``jvp(function, points, tangents)``, the value and its directional derivative;
``map_rows(function, chunk_size=None)``, the function mapped along the first axes of its
arguments, all rows at once or in chunks;
``cond(which, first, second)``, the result of one of two functions;
``ravel(params)``, the parameters as one vector, and the function that maps it back;
``hessian(model, unravel, theta, X, y, weights)``, the Hessian of the mean loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..optim.blocks import MEMORY_BYTES
from ..risk.cost import corrected_updates
from ..risk.left_out.linearised import LARGEST_SCALE
from .data import RunRows
from .folds import n_replicas_per_block

# Largest number of parameters: the Hessian is computed at every update.
MOST_PARAMETERS = 4096


def check_linearisable(run, n_iterates=5, rtol=1e-3):
    """Raise if the Hessian is too large, or has a negative eigenvalue along the run."""
    model = run._model
    n_parameters = len(model.functions.ravel(run._params(0))[0])
    if n_parameters > MOST_PARAMETERS:
        raise ValueError(
            "method='linearised' needs a matrix with the squared number of "
            f"parameters, but there are {n_parameters}, more than {MOST_PARAMETERS}: "
            "use method='exact', or folds."
        )
    # Networks, for example, are not convex.
    for t in np.unique(np.linspace(0, run.n_steps, n_iterates).astype(int)):
        values = np.linalg.eigvalsh(model.hessian(run._params(t), run._data))
        if values[0] < -rtol * np.abs(values).max():
            raise ValueError(
                "The mean loss is not convex along this run, so linearising it "
                "estimates nothing: use method='exact', or folds."
            )


def linearised_predictions(run, folds, correction, block_size):
    """Held-out predictions of single rows, (n_steps + 1, n_left_out, ...)."""
    model, is_corrected = run._model, None
    if correction:  # a mask of the updates that evaluate the error of linearising
        is_corrected = np.isin(
            np.arange(1, run.n_steps + 1), list(corrected_updates(run.n_steps))
        )
    # Every block computes the Hessians anew, so blocks are larger than those of exact
    # replicas.
    parts = []
    for block, n_rows in folds.blocks(block_size, MEMORY_BYTES // 8):
        predictions = model.linearised_path(
            run.params_path, run._data, is_corrected, block.indices
        )
        parts.append(model.to_numpy(predictions)[:, :n_rows])
    return np.concatenate(parts, axis=1)


def linearised_path(model, path, data, is_corrected, rows):
    """Predictions (n_steps + 1, n_rows_left_out, ...) of rows by their replicas.

    Gradients are expanded at the iterates of ``path``; the error of the expansion is
    evaluated at the updates in the mask ``is_corrected``, if there is one.
    """
    functions, start = model.functions, model.iterate(path, 0)
    unravel = functions.ravel(start)[1]
    flat = functions.map_rows(lambda params: functions.ravel(params)[0])
    thetas, weights = flat(path), data.weights
    (rows,) = model.arrays(start, rows)
    held_out = tuple(model.rows_of(array, rows[:, None]) for array in (data.X, data.y))
    expansion = ReplicaGradients(model, unravel, data, weights, rows, held_out)

    def step(carry, t):
        replicas, last_error = carry  # the error, and deviations where it was evaluated
        theta, replica_thetas = thetas[t], flat(model.params_of(replicas))
        deviations = replica_thetas - theta
        row_gradients = expansion.row_gradients(theta, deviations)
        arguments, error = (theta, deviations, row_gradients), 0.0
        if is_corrected is not None:
            last_error = functions.cond(
                is_corrected[t],
                lambda: (expansion.expansion_error(*arguments), deviations),
                lambda: last_error,
            )
            error = extrapolated_error(*last_error, deviations)
        gradients = expansion.gradients(t, theta, replica_thetas, row_gradients, error)
        gradients = functions.map_rows(unravel)(gradients)
        return model.follow_replicas(replicas, gradients), last_error

    def read(carry):
        return expansion.predictions(flat(model.params_of(carry[0])))

    replicas = model.begin_replicas(start, weights[rows])
    # Replicas begin where the run does: without a deviation, and without an error.
    zeros = flat(model.params_of(replicas)) - thetas[0]
    return model.scan(step, read, (replicas, (zeros, zeros)), len(thetas) - 1)


@dataclass(frozen=True, eq=False)
class ReplicaGradients:
    """Gradients of mean losses to first order, with parameters as one vector.

    Shapes: weights (n_rows,), rows (n_replicas,); ``held_out`` has X and y of the
    rows that replicas leave out, each with an axis of length one.
    """

    model: Any
    unravel: Callable
    data: RunRows
    weights: Any
    rows: Any
    held_out: tuple

    @property
    def functions(self):
        return self.model.functions

    @property
    def shares(self):
        """Weights of the rows that replicas leave out, (n_replicas, 1)."""
        return self.weights[self.rows][:, None]

    def linearise(self, theta, deviations, X, y, weights):
        """Gradients at theta + deviations, to first order in the deviations."""
        # Shapes: deviations, returned (n_replicas, n_parameters).
        hessian = self.functions.hessian(self.model, self.unravel, theta, X, y, weights)
        return self._gradient(theta, X, y, weights) + deviations @ hessian

    def row_gradients(self, theta, deviations):
        """Linearised gradients of the loss of the row that a replica leaves out."""

        def linearise(d, X, y):
            def gradient(theta):
                return self._gradient_of_row(theta, X, y)

            return sum(self.functions.jvp(gradient, (theta,), (d,)))

        return self.functions.map_rows(linearise)(deviations, *self.held_out)

    def expansion_error(self, theta, deviations, row_gradients):
        """Error of the linearised gradients over all rows but the left-out one."""
        all_rows = self.data.X, self.data.y, self.weights

        def exact(d):
            return self._gradient(theta + d, *all_rows)

        chunk_size = n_replicas_per_block(self.data.n_rows)
        gradients = self.functions.map_rows(exact, chunk_size=chunk_size)(deviations)
        error = gradients - self.linearise(theta, deviations, *all_rows)
        exact_of_row = self.functions.map_rows(self._gradient_of_row)
        error_of_row = exact_of_row(theta + deviations, *self.held_out) - row_gradients
        return error - self.shares * error_of_row

    def gradients(self, t, theta, replica_thetas, row_gradients, error):
        """Gradients of the objectives of all replicas at update ``t``."""
        X, y, weights = self.data.at_update(t, self.weights)
        shares = self.shares
        if self.data.batches is not None:
            is_row = self.data.rows_at(t) == self.rows[:, None]
            shares = (is_row * weights).sum(axis=1)[:, None]
        gradients = self.linearise(theta, replica_thetas - theta, X, y, weights)
        gradients = gradients - shares * row_gradients
        penalty_gradients = self.functions.map_rows(self.functions.grad(self._penalty))
        loss_gradients = (gradients + error) / (1 - self.shares)
        return loss_gradients + penalty_gradients(replica_thetas)

    def predictions(self, thetas):
        """Prediction of every replica for its left-out row."""

        def prediction(theta, X):
            return self.model.predict(self.unravel(theta), X)[0]

        return self.functions.map_rows(prediction)(thetas, self.held_out[0])

    def _gradient(self, theta, X, y, weights):
        def mean_loss(theta):
            return self.model.mean_loss(self.unravel(theta), X, y, weights)

        return self.functions.grad(mean_loss)(theta)

    def _gradient_of_row(self, theta, X, y):
        def loss(theta):
            return self.model.loss(y, self.model.predict(self.unravel(theta), X))[0]

        return self.functions.grad(loss)(theta)

    def _penalty(self, theta):
        # The zero makes a constant penalty a function of theta, for ``grad``.
        return self.model.penalty_of(self.unravel(theta)) + 0.0 * theta.sum()


def extrapolated_error(error, evaluated_at, deviations):
    """The error of the expansion at ``deviations``, from the error ``evaluated_at``."""
    # The error is of second order in the deviations.
    squares = (evaluated_at**2).sum(axis=1)
    # Where the squares are zero, the product is zero too.
    ratio = (evaluated_at * deviations).sum(axis=1) / (squares + (squares == 0))
    return error * (ratio**2).clip(max=LARGEST_SCALE)[:, None]
