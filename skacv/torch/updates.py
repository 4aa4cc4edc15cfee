"""Parameters and their optimiser, of one run or of replicas."""

from inspect import Parameter, signature

import torch


class Updates:
    """Parameters and their optimiser, which changes them in place, and its scheduler.

    Replicas are a leading axis of every parameter. An optimiser that works entry by
    entry treats them as runs of their own.

    Parameters
    ----------
    objective : callable
        ``objective(params, X, y, weights)``, of replicas the sum of theirs.
    """

    def __init__(self, model, start, objective):
        self.params = {
            name: value.clone().requires_grad_() for name, value in start.items()
        }
        self._objective = objective
        self._optimizer = model.optimizer(list(self.params.values()))
        scheduler = model.scheduler
        self._scheduler = None if scheduler is None else scheduler(self._optimizer)
        # An optimiser that evaluates the objective itself, as L-BFGS does, asks for it.
        taken = signature(self._optimizer.step).parameters.values()
        self._needs_closure = any(each.default is Parameter.empty for each in taken)

    def step(self, X, y, weights):
        """One update on some rows."""

        def closure():
            self._optimizer.zero_grad()
            found = self._objective(self.params, X, y, weights)
            found.backward()
            return found

        if self._needs_closure:
            self._optimizer.step(closure)
        else:
            closure()
            self._optimizer.step()
        return self._with_schedule()

    def follow(self, gradients):
        """One update by gradients that are known, of parameters by their names."""
        for name, value in self.params.items():
            value.grad = gradients[name]
        self._optimizer.step()
        return self._with_schedule()

    def _with_schedule(self):
        if self._scheduler is not None:
            self._scheduler.step()
        return self

    @torch.no_grad()
    def reset_first(self, last, now):
        """Put the first replica at ``now``: how far that is, and how far it had come.

        The third number is a unit of rounding.
        """
        squares = []
        for name, value in self.params.items():
            parts = now[name] - value[0], value[0] - last[name], now[name]
            squares.append(torch.stack([(part**2).sum() for part in parts]))
            value[0] = now[name]
        distance, length, size = torch.stack(squares).sum(dim=0).sqrt().tolist()
        return distance, length, size * torch.finfo(value.dtype).eps
