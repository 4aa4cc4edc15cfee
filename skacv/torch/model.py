"""A module, a loss of single rows and an optimiser; replicas of them side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, signature

import torch
from torch.func import functional_call, vmap

from .coupling import check_elementwise


def no_penalty(params):
    """Zero, whatever the parameters."""
    return 0.0


@dataclass(frozen=True, eq=False)
class Model:
    """What is minimised, and how; of the module only its parameters change."""

    module: torch.nn.Module
    loss: Callable
    optimizer: Callable
    scheduler: Callable | None = None
    penalty: Callable = no_penalty

    def start(self):
        """The module's parameters that are trained, by their names, as they are."""
        return {
            name: value.detach().clone()
            for name, value in self.module.named_parameters()
            if value.requires_grad
        }

    def predict(self, params, X):
        """Predictions of the module with other parameters."""
        return functional_call(self.module, params, (X,))

    def mean_loss(self, params, X, y, weights):
        """Weighted sum of what the rows cost."""
        return weights @ self.loss(y, self.predict(params, X))

    def objective(self, params, X, y, weights):
        """What is minimised."""
        return self.mean_loss(params, X, y, weights) + self.penalty(params)


class Updates:
    """The optimiser of some parameters, and its scheduler if there is one.

    Parameters
    ----------
    model : Model
    params : dict of str to Tensor
        They are changed in place.
    """

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


class Replicas:
    """Runs that weigh the rows their own way, side by side in one optimiser.

    Replicas are a leading axis of every parameter. An optimiser that works entry by
    entry treats them as runs of their own.

    Parameters
    ----------
    model : Model
    start : dict of str to Tensor
    weights : Tensor of shape (n_replicas, n_rows)

    Raises
    ------
    ValueError
        If the optimiser does not work entry by entry.
    """

    def __init__(self, model, start, weights):
        check_elementwise(model.optimizer, start)
        self.model, self.weights = model, weights
        self.params = {
            name: value.expand(len(weights), *value.shape).clone().requires_grad_()
            for name, value in start.items()
        }
        self._updates = Updates(model, self.params)
        self._objective = vmap(model.objective, in_dims=(0, None, None, 0))
        self._predict = vmap(model.predict)

    def step(self, X, y, weights):
        """One update on some rows, whose weights are (n_replicas, n)."""
        self._updates.descend(lambda: self._objective(self.params, X, y, weights).sum())

    def follow(self, gradients):
        """One update by gradients of every replica, of parameters by their names."""
        self._updates.follow(gradients)

    def predicted(self, X):
        """What every replica predicts of rows of its own, (n_replicas, size, ...)."""
        with torch.no_grad():
            return self._predict(self.params, X)
