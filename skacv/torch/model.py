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

    def update_of(self, params):
        """The optimiser of some parameters, and its scheduler if there is one.

        Returns
        -------
        callable
            ``update(value)`` makes one update, with ``value()`` what is minimised.
        """
        optimizer = self.optimizer(list(params.values()))
        scheduler = None if self.scheduler is None else self.scheduler(optimizer)
        needs_closure = _needs_closure(optimizer)

        def update(value):
            def closure():
                optimizer.zero_grad()
                found = value()
                found.backward()
                return found

            if needs_closure:
                optimizer.step(closure)
            else:
                closure()
                optimizer.step()
            if scheduler is not None:
                scheduler.step()

        return update


def _needs_closure(optimizer):
    """Whether it evaluates the objective itself, as L-BFGS does."""
    parameters = signature(optimizer.step).parameters.values()
    return any(each.default is Parameter.empty for each in parameters)


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
        self._update = model.update_of(self.params)
        self._objective = vmap(model.objective, in_dims=(0, None, None, 0))
        self._predict = vmap(model.predict)

    def step(self, X, y, weights):
        """One update on some rows, whose weights are (n_replicas, n)."""
        self._update(lambda: self._objective(self.params, X, y, weights).sum())

    def predicted(self, X):
        """What every replica predicts of rows of its own, (n_replicas, size, ...)."""
        with torch.no_grad():
            return self._predict(self.params, X)
