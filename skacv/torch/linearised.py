"""Rows left out by linearising: derivatives, and replicas in one optimiser."""

import torch
from torch.func import grad, hessian, jvp, vmap

from .._any_optimiser.linearised import Derivatives, Expansion, scaled
from .data import equal_weights, rows_of
from .replicas import Replicas


def in_parts(function, points, size):
    """A function of every point, so many at a time."""
    return vmap(function, chunk_size=size)(points)


def hessian_at(model, unravel, theta, X, y, weights):
    """Hessian of a mean loss."""

    def mean_loss(theta):
        return model.mean_loss(unravel(theta), X, y, weights)

    return hessian(mean_loss)(theta)


DERIVATIVES = Derivatives(grad, jvp, vmap, in_parts, hessian_at)


def flat(params):
    """Vectors of replicas, (n_replicas, n_parameters)."""
    return torch.cat([value.flatten(1) for value in params.values()], dim=1)


def unraveller(start):
    """From a vector, or several, to parameters such as these."""
    shapes = {name: value.shape for name, value in start.items()}
    sizes = [shape.numel() for shape in shapes.values()]

    def unravel(theta):
        parts = torch.split(theta, sizes, dim=-1)
        return {
            name: part.reshape(*theta.shape[:-1], *shape)
            for part, (name, shape) in zip(parts, shapes.items())
        }

    return unravel


def hessian_of(model, params, data):
    """That of the mean loss over all rows."""
    (theta,) = flat({name: value[None] for name, value in params.items()})
    weights = equal_weights(params, data)
    found = hessian_at(model, unraveller(params), theta, data.X, data.y, weights)
    return found.numpy(force=True)


@torch.no_grad()
def replayed(model, path, data, due, rows):
    """Predictions of rows by their replicas, (n_steps + 1, n_rows_left_out, ...)."""
    thetas, start = flat(path), model.iterate(path, 0)
    weights, unravel = equal_weights(start, data), unraveller(start)
    rows = torch.as_tensor(rows, device=data.X.device)
    own = rows_of(data.X, rows[:, None]), rows_of(data.y, rows[:, None])
    expansion = Expansion(DERIVATIVES, model, unravel, data, weights, rows, own)
    replicas = Replicas(model, start, data, weights.expand(len(rows), -1))
    found, known = [], (torch.zeros_like(thetas[:1]),) * 2
    for t, theta in enumerate(thetas[:-1]):
        ends = flat(replicas.params)
        found.append(expansion.predicted(ends))
        point = ends - theta
        own = expansion.of_own(theta, point)
        if due is not None and due[t]:
            known = expansion.missed(theta, point, own), point
        missed = scaled(*known, point)
        gradient = expansion.gradients(t, theta, ends, own, missed)
        replicas.follow(unravel(gradient))
    found.append(expansion.predicted(flat(replicas.params)))
    return torch.stack(found).numpy(force=True)
