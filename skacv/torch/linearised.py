"""Rows left out by linearising: functions of torch."""

import torch

grad, jvp, map_rows = torch.func.grad, torch.func.jvp, torch.func.vmap


def cond(which, first, second):
    """The result of one of two functions."""
    return first() if which else second()


def ravel(params):
    """Parameters as one vector, and the function that maps it back to them."""
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
