"""Parameters and their optimiser, of one run or of replicas that can share it."""

from inspect import Parameter, signature

import torch

# The trial whether an optimiser works entry by entry: how many updates it takes.
N_UPDATES = 3
# By what the gradients of the other replica are larger.
LARGER = 100.0


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
        """Put the first replica at ``now``, after an update from ``last``.

        Returns also how far that is, how far it had come, and a unit of rounding.
        """
        squares = []
        for name, value in self.params.items():
            parts = now[name] - value[0], value[0] - last[name], now[name]
            squares.append(torch.stack([(part**2).sum() for part in parts]))
            value[0] = now[name]
        distance, length, size = torch.stack(squares).sum(dim=0).sqrt().tolist()
        return self, distance, length, size * torch.finfo(value.dtype).eps


def check_elementwise(optimizer, params):
    """Raise where a parameter's update depends on other entries than its own.

    A replica beside another, of other gradients, must move as it does alone.
    """
    start = list(params.values())
    generator = torch.Generator().manual_seed(0)

    def drawn():
        return [
            torch.randn(value.shape, generator=generator, dtype=value.dtype)
            for value in start
        ]

    own = [drawn() for _ in range(N_UPDATES)]
    beside = [
        [torch.stack([a, LARGER * b]) for a, b in zip(each, drawn())] for each in own
    ]
    try:
        alone = _moved(optimizer, start, own)
        replica = _moved(optimizer, [torch.stack([v, v]) for v in start], beside)
    except Exception as error:  # whatever an optimiser may raise
        raise ValueError(
            f"Replicas cannot share this optimiser, which fails on them: {error}"
        ) from error
    if not all(_same(a, b[0]) for a, b in zip(alone, replica)):
        raise ValueError(
            "Replicas cannot share this optimiser: its update of an entry depends on "
            "other entries of the parameter, as norms, factors and line searches do."
        )


def _moved(optimizer, start, gradients):
    """Where a few updates lead."""
    params = [value.clone().requires_grad_() for value in start]
    made = optimizer(params)
    for each in gradients:
        for value, gradient in zip(params, each):
            value.grad = gradient.to(value.device)
        made.step()
    return [value.detach() for value in params]


def _same(one, other):
    """Up to rounding, which may differ with the length of an array."""
    tolerance = 1e3 * torch.finfo(one.dtype).eps
    return torch.allclose(one, other, rtol=tolerance, atol=tolerance)
