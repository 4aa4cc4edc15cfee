"""Rows left out one by one, the gradients of their replicas expanded around the run.

Iterative approximate cross-validation (Luo, Ren & Barber 2023), of any optimiser: a
replica stays near the recorded run, so at theta + d the gradient of its mean loss is
about

    c (gradient + H d - w_i (gradient_i + H_i d) + C_i),

with gradients and Hessians of all rows and of the row left out at the recorded theta, c
= 1 / (1 - w_i), and C_i what this misses, evaluated now and then over all rows
(:mod:`skacv.risk.left_out.correction`). The gradient of the penalty is exact, and the
optimiser is run as it is: only gradients of the loss are expanded.

How a library differentiates functions, and applies them many times, is said by a module
of its own, the ``functions`` of a model, with

``grad(function)``, by its first argument;
``jvp(function, points, changes)``, its value, and what that changes by;
``each(function)``, along the first axes of its arguments;
``in_parts(function, points, size)``, the same applied, so many at a time;
``cond(which, one, other)``, what one of two functions gives;
``ravel(params)``, as one vector, and the function that has them from it;
``hessian(model, unravel, theta, X, y, weights)``, that of the mean loss.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..risk.left_out.correction import LARGEST_SCALE, evaluated
from .data import Rows
from .folds import at_a_time

# A matrix of so many parameters squared is made at every update.
MOST_PARAMETERS = 4096
# Curvature below zero, relative to the largest, that is no rounding.
NEGATIVE = 1e-3
# Every block makes that matrix anew, so that blocks are larger than those of exact
# replicas.
BLOCK_BYTES = 1 << 25
# Iterates at which it is looked for, the first and the last among them.
N_LOOKED_AT = 5


def check_linearisable(run):
    """Raise where linearising a run would estimate nothing, or ask too much."""
    model = run._model
    n_parameters = len(model.functions.ravel(run._params(0))[0])
    if n_parameters > MOST_PARAMETERS:
        raise ValueError(
            f"method='linearised' makes a matrix of all parameters squared, of which "
            f"there are {n_parameters}, more than {MOST_PARAMETERS}: take "
            "method='exact', or folds."
        )
    # Networks, for example, are not convex.
    for t in np.unique(np.linspace(0, run.n_steps, N_LOOKED_AT).astype(int)):
        values = np.linalg.eigvalsh(model.hessian(run._params(t), run._data))
        if values[0] < -NEGATIVE * np.abs(values).max():
            raise ValueError(
                "The mean loss is not convex along this run, and linearising it would "
                "estimate nothing: take method='exact', or folds."
            )


def linearised_predictions(run, folds, correction, block_size):
    """Predictions of rows by linearised replicas that leave out one of them each.

    The folds are single rows; what is found is (n_steps + 1, n_left_out, ...).
    """
    model, due = run._model, due_updates(run.n_steps) if correction else None
    found = []
    for block, n_own in folds.blocks(block_size, BLOCK_BYTES):
        part = model.replayed(run.params_path, run._data, due, block.indices)
        found.append(model.to_numpy(part)[:, :n_own])
    return np.concatenate(found, axis=1)


def due_updates(n_steps):
    """At which updates what linearising misses is evaluated, (n_steps,) of bool."""
    numbers = evaluated(n_steps)
    return np.isin(np.arange(1, n_steps + 1), list(numbers))


def hessian_of(model, params, data):
    """Hessian of the mean loss over all rows."""
    theta, unravel = model.functions.ravel(params)
    weights = model.equal_weights(params, data)
    return model.functions.hessian(model, unravel, theta, data.X, data.y, weights)


def replayed(model, path, data, due, rows):
    """Predictions of rows by their replicas, (n_steps + 1, n_rows_left_out, ...).

    Gradients are expanded at the iterates of ``path``. ``due`` says at which updates
    what this misses is evaluated; None is never.
    """
    by, start = model.functions, model.iterate(path, 0)
    unravel = by.ravel(start)[1]
    flat = by.each(lambda params: by.ravel(params)[0])
    thetas, weights = flat(path), model.equal_weights(start, data)
    (rows,) = model.arrays(start, rows)
    own = model.rows_of(data.X, rows[:, None]), model.rows_of(data.y, rows[:, None])
    expansion = Expansion(model, unravel, data, weights, rows, own)

    def step(carry, t):
        replicas, known = carry
        theta, ends, missed = thetas[t], flat(model.params_of(replicas)), 0.0
        point = ends - theta
        own = expansion.of_own(theta, point)
        if due is not None:
            known = by.cond(
                due[t],
                lambda: (expansion.missed(theta, point, own), point),
                lambda: known,
            )
            missed = scaled(*known, point)
        gradients = expansion.gradients(t, theta, ends, own, missed)
        return model.follow_replicas(replicas, by.each(unravel)(gradients)), known

    def read(carry):
        return expansion.predicted(flat(model.params_of(carry[0])))

    replicas = model.begin_replicas(start, weights[rows])
    nothing = flat(model.params_of(replicas)) - thetas[0]  # they begin where it does
    return model.along(step, read, (replicas, (nothing, nothing)), len(thetas) - 1)


@dataclass(frozen=True, eq=False)
class Expansion:
    """Gradients of mean losses to first order, with parameters as one vector.

    Attributes
    ----------
    unravel : callable
        From a vector to the parameters.
    weights : array of shape (n_rows,)
        Those of the recorded run, all equal.
    rows : array of int, shape (n_replicas,)
        The row that each leaves out.
    own : tuple
        X and y of these rows, each with an axis of length one.
    """

    model: Any
    unravel: Callable
    data: Rows
    weights: Any
    rows: Any
    own: tuple

    @property
    def by(self):
        return self.model.functions

    def expanded(self, theta, point, X, y, weights):
        """Gradients at theta + d for every replica, (n_replicas, n_parameters)."""
        of = theta, X, y, weights
        hessian = self.by.hessian(self.model, self.unravel, *of)
        return self._gradient(*of) + point @ hessian

    def of_own(self, theta, point):
        """The same for the loss of the row that each leaves out."""

        def expanded(d, X, y):
            def gradient(theta):
                return self._gradient_of_row(theta, X, y)

            return sum(self.by.jvp(gradient, (theta,), (d,)))

        return self.by.each(expanded)(point, *self.own)

    def missed(self, theta, point, own):
        """Error of the expanded gradients over all rows but the left-out one."""
        everything = self.data.X, self.data.y, self.weights

        def exact(d):
            return self._gradient(theta + d, *everything)

        def exact_of_own(d, X, y):
            return self._gradient_of_row(theta + d, X, y)

        found = self.by.in_parts(exact, point, at_a_time(self.data.n_rows))
        off = self.by.each(exact_of_own)(point, *self.own) - own
        return found - self.expanded(theta, point, *everything) - self.weights[0] * off

    def gradients(self, t, theta, ends, own, missed):
        """Gradients of what replicas minimise at update ``t``, each where it ends."""
        X, y, weights = self.data.at_update(t, self.weights)
        share = self.weights[0]
        if self.data.batches is not None:
            places = self.data.rows_at(t) == self.rows[:, None]
            share = (places * weights).sum(axis=1)[:, None]
        found = self.expanded(theta, ends - theta, X, y, weights) - share * own
        exact = self.by.each(self.by.grad(self._penalty))(ends)
        return (found + missed) / (1 - self.weights[0]) + exact

    def predicted(self, thetas):
        """Prediction of every replica for its left-out row."""

        def one(theta, X):
            return self.model.predict(self.unravel(theta), X)[0]

        return self.by.each(one)(thetas, self.own[0])

    def _gradient(self, theta, X, y, weights):
        def mean_loss(theta):
            return self.model.mean_loss(self.unravel(theta), X, y, weights)

        return self.by.grad(mean_loss)(theta)

    def _gradient_of_row(self, theta, X, y):
        def loss(theta):
            return self.model.loss(y, self.model.predict(self.unravel(theta), X))[0]

        return self.by.grad(loss)(theta)

    def _penalty(self, theta):
        """It is of theta, with a gradient of zero, where it is a constant."""
        return self.model.penalty_of(self.unravel(theta)) + 0.0 * theta.sum()


def scaled(missed, at, point):
    """The error at other deviations, of second order in them."""
    squares = (at**2).sum(axis=1)
    # Where the first are zero, so is the product.
    ratio = (at * point).sum(axis=1) / (squares + (squares == 0))
    return missed * (ratio**2).clip(max=LARGEST_SCALE)[:, None]
