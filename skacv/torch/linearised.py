"""Rows left out by linearising: functions of torch."""

import torch

grad, jvp, each = torch.func.grad, torch.func.jvp, torch.func.vmap


def in_parts(function, points, size):
    """A function of every point, so many at a time."""
    return each(function, chunk_size=size)(points)


def cond(which, one, other):
    """What one of two functions gives."""
    return one() if which else other()


def ravel(params):
    """Parameters as one vector, and the function that has them from it."""
    shapes = {name: value.shape for name, value in params.items()}
    sizes = [shape.numel() for shape in shapes.values()]

    def unravel(theta):
        parts = zip(shapes.items(), torch.split(theta, sizes))
        return {name: part.reshape(shape) for (name, shape), part in parts}

    return torch.cat([value.flatten() for value in params.values()]), unravel


def hessian(model, unravel, theta, X, y, weights):
    """Hessian of a mean loss."""

    def mean_loss(theta):
        return model.mean_loss(unravel(theta), X, y, weights)

    return torch.func.hessian(mean_loss)(theta)
