"""The optimiser of some parameters; replicas of them in one optimiser."""

from inspect import Parameter, signature

import torch
from torch.func import vmap

from .._any_optimiser.backend import SideBySide
from .coupling import check_elementwise
from .data import rows_of, weights_of


class Updates:
    """The optimiser of some parameters, changed in place, and its scheduler."""

    def __init__(self, model, params):
        self._params = params
        self._optimizer = model.optimizer(list(params.values()))
        scheduler = model.scheduler
        self._scheduler = None if scheduler is None else scheduler(self._optimizer)
        # An optimiser that evaluates the objective itself, as L-BFGS does, asks for it.
        taken = signature(self._optimizer.step).parameters.values()
        self._needs_closure = any(each.default is Parameter.empty for each in taken)

    def descend(self, value):
        """One update, with ``value()`` what is minimised."""

        def closure():
            self._optimizer.zero_grad()
            found = value()
            found.backward()
            return found

        if self._needs_closure:
            self._optimizer.step(closure)
        else:
            closure()
            self._optimizer.step()
        self._go_on()

    def follow(self, gradients):
        """One update by gradients that are known, of parameters by their names."""
        for name, value in self._params.items():
            value.grad = gradients[name]
        self._optimizer.step()
        self._go_on()

    def _go_on(self):
        if self._scheduler is not None:
            self._scheduler.step()


class Replicas(SideBySide):
    """Runs that weigh the rows their own way, side by side in one optimiser.

    Replicas are a leading axis of every parameter. An optimiser that works entry by
    entry treats them as runs of their own; others are refused.
    """

    def __init__(self, model, start, data, weights):
        check_elementwise(model.optimizer, start)
        self.weights = weights_of(start, weights)
        self.params = {
            name: value.expand(len(weights), *value.shape).clone().requires_grad_()
            for name, value in start.items()
        }
        self._updates = Updates(model, self.params)
        self._objective = vmap(model.objective, in_dims=(0, None, None, 0))
        self._predict = vmap(model.predict)

    def step(self, X, y, weights):
        self._updates.descend(lambda: self._objective(self.params, X, y, weights).sum())

    def follow(self, gradients):
        """One update by gradients of every replica, of parameters by their names."""
        self._updates.follow(gradients)

    def predicted(self, X):
        """Predictions for the held-out rows, (n_replicas, size, ...)."""
        with torch.no_grad():
            return self._predict(self.params, X)

    def held_out(self, X):
        others = {name: value[1:] for name, value in self.params.items()}
        with torch.no_grad():
            return self._predict(others, X).numpy(force=True)

    @torch.no_grad()
    def reset_first(self, last, now):
        squares = []
        for name, value in self.params.items():
            parts = now[name] - value[0], value[0] - last[name], now[name]
            squares.append(torch.stack([(part**2).sum() for part in parts]))
            value[0] = now[name]
        distance, length, size = torch.stack(squares).sum(dim=0).sqrt().tolist()
        return distance, length, size * torch.finfo(value.dtype).eps


def held_out(model, start, data, n_steps, weights, rows):
    """Predictions of rows by replicas, (n_replicas, n_steps + 1, size, ...)."""
    replicas, found = Replicas(model, start, data, weights), []
    X = rows_of(data.X, rows)
    for t in range(n_steps):
        found.append(replicas.predicted(X))
        replicas.step(*data.at_update(t, replicas.weights))
    found.append(replicas.predicted(X))
    return torch.stack(found, dim=1).numpy(force=True)
