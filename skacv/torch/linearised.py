"""Rows left out one by one, the gradients of their replicas expanded around the run.

As :mod:`skacv.jax.linearised` has them (Luo, Ren & Barber 2023), with all replicas in
one optimiser, which is run as it is.
"""

import numpy as np
import torch
from torch.func import grad, hessian, jvp, vmap

from .._any_optimiser.linearised import (
    BLOCK_BYTES,
    check_convex,
    check_size,
    due_updates,
    looked_at,
)
from ..risk.left_out.correction import LARGEST_SCALE
from .data import equal_weights
from .model import Replicas


def check_linearisable(run):
    """Raise where linearising would estimate nothing, or ask too much.

    Parameters
    ----------
    run : Run

    Raises
    ------
    ValueError
        If there are too many parameters, or the mean loss is not convex.
    """
    path = Vectors(run.params_path)
    check_size(path.thetas.shape[1])
    whole = Expansion(run._model, run._data, path, None)
    for t in looked_at(run.n_steps):
        check_convex(whole.hessian(path.thetas[t]).numpy(force=True))


def linearised_predictions(run, folds, correction, block_size):
    """Predictions of rows by linearised replicas without them, each left out alone.

    Parameters
    ----------
    run : Run
        As :func:`check_linearisable` asks for.
    folds : Folds
        Folds of single rows.
    correction : bool
    block_size : int or None

    Returns
    -------
    ndarray of shape (n_steps + 1, n_rows_left_out, ...)

    Raises
    ------
    ValueError
        If the optimiser does not work entry by entry.
    """
    path, found = Vectors(run.params_path), []
    due = due_updates(run.n_steps) if correction else np.zeros(run.n_steps, bool)
    for block, n_own in folds.blocks(block_size, BLOCK_BYTES):
        rows = torch.as_tensor(block.indices, device=run._data.X.device)
        expansion = Expansion(run._model, run._data, path, rows)
        found.append(_replayed(expansion, due)[:, :n_own].numpy(force=True))
    return np.concatenate(found, axis=1)


class Vectors:
    """Parameters as vectors, and back.

    Attributes
    ----------
    thetas : Tensor of shape (n_iterates, n_parameters)
    """

    def __init__(self, params_path):
        self._shapes = {name: path.shape[1:] for name, path in params_path.items()}
        self.start = {name: path[0] for name, path in params_path.items()}
        self.thetas = self.flat(params_path)

    @staticmethod
    def flat(params):
        """Vectors of replicas, (n_replicas, n_parameters)."""
        return torch.cat([value.flatten(1) for value in params.values()], dim=1)

    def unravelled(self, theta):
        """The parameters of a vector, or of several."""
        sizes = [shape.numel() for shape in self._shapes.values()]
        parts = torch.split(theta, sizes, dim=-1)
        return {
            name: part.reshape(*theta.shape[:-1], *shape)
            for part, (name, shape) in zip(parts, self._shapes.items())
        }


class Expansion:
    """Gradients of mean losses to first order, with parameters as one vector.

    Parameters
    ----------
    model : Model
    data : Data
    path : Vectors
    rows : Tensor of shape (n_replicas,), or None
        That each replica leaves out.
    """

    def __init__(self, model, data, path, rows):
        self.model, self.data, self.path, self.rows = model, data, path, rows
        self.weights = equal_weights(path.start, data)

    def mean_loss(self, theta, X, y, weights):
        return self.model.mean_loss(self.path.unravelled(theta), X, y, weights)

    def hessian(self, theta):
        """That of the mean loss over all rows."""
        return hessian(self.mean_loss)(theta, self.data.X, self.data.y, self.weights)

    def expanded(self, theta, point, X, y, weights):
        """Gradients at theta + d for every replica, (n_replicas, n_parameters)."""
        gradient = grad(self.mean_loss)(theta, X, y, weights)
        return gradient + point @ hessian(self.mean_loss)(theta, X, y, weights)

    def of_own(self, theta, point):
        """The same of what the row costs that each leaves out."""
        one = torch.ones_like(theta[:1])

        def expanded(d, X, y):
            def gradient(at):
                return grad(self.mean_loss)(at, X[None], y[None], one)

            return sum(jvp(gradient, (theta,), (d,)))

        return vmap(expanded)(point, self.data.X[self.rows], self.data.y[self.rows])

    def missed(self, theta, point, own):
        """What expanding misses of the gradients over all rows but the one left out."""
        X, y, weights = self.data.X, self.data.y, self.weights
        others = weights.repeat(len(self.rows), 1)
        others.scatter_(1, self.rows[:, None], 0.0)
        exact = vmap(grad(self.mean_loss), in_dims=(0, None, None, 0))
        expanded = self.expanded(theta, point, X, y, weights) - weights[0] * own
        return exact(theta + point, X, y, others) - expanded

    def at_update(self, t, theta, point, own, missed):
        """Gradients of the replicas at update ``t``, on its rows."""
        X, y, weights = self.data.at_update(t, self.weights)
        share = self.weights[0]
        if self.data.batches is not None:
            places = self.data.rows_at(t) == self.rows[:, None]
            share = (places.to(weights) @ weights)[:, None]
        found = self.expanded(theta, point, X, y, weights) - share * own + missed
        return found / (1 - self.weights[0])

    def penalty_gradient(self, theta):
        """Zero where the penalty is a constant."""

        def penalty(at):
            return self.model.penalty(self.path.unravelled(at)) + 0.0 * at.sum()

        return vmap(grad(penalty))(theta)

    def predicted(self, theta):
        """What every replica predicts of the row that it leaves out."""

        def one(at, X):
            return self.model.predict(self.path.unravelled(at), X[None])[0]

        return vmap(one)(theta, self.data.X[self.rows])


def _scaled(missed, at, point):
    """What was missed at some deviations, at others: it is of second order in them."""
    squares = (at**2).sum(dim=1)
    ratio = (at * point).sum(dim=1) / torch.where(squares == 0, torch.inf, squares)
    return missed * torch.clamp(ratio**2, max=LARGEST_SCALE)[:, None]


@torch.no_grad()
def _replayed(expansion, due):
    """Predictions of rows by their replicas, (n_steps + 1, n_rows_left_out, ...)."""
    path, n_replicas = expansion.path, len(expansion.rows)
    weights = expansion.weights.expand(n_replicas, -1)
    replicas = Replicas(expansion.model, path.start, weights)
    found, known = [], (torch.zeros_like(path.thetas[:1]),) * 2
    for t, is_due in enumerate(due):
        theta, ends = path.thetas[t], path.flat(replicas.params)
        found.append(expansion.predicted(ends))
        point = ends - theta
        own = expansion.of_own(theta, point)
        if is_due:
            known = expansion.missed(theta, point, own), point
        missed = _scaled(*known, point)
        gradient = expansion.at_update(t, theta, point, own, missed)
        gradient += expansion.penalty_gradient(ends)
        replicas.follow(path.unravelled(gradient))
    found.append(expansion.predicted(path.flat(replicas.params)))
    return torch.stack(found)
