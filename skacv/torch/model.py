"""The backend of torch: a module, a loss of single rows and an optimiser."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.func import functional_call, vmap
from torch.utils.data import default_collate

from .._any_optimiser.backend import Backend
from . import linearised
from .data import TensorRows, as_tensors, losses_on
from .losses import row_loss
from .updates import Updates, check_elementwise


def params_at(path, t):
    """Parameters of iterate t."""
    return {name: value[t] for name, value in path.items()}


@dataclass(frozen=True, eq=False)
class TorchBackend(Backend):
    """A carry is :class:`Updates`, which are changed in place."""

    module: torch.nn.Module
    loss: Callable
    optimizer: Callable
    scheduler: Callable | None = None
    penalty: Callable | None = None

    functions = linearised

    def start(self):
        """A copy of the module's trained parameters, by name."""
        return {
            name: value.detach().clone()
            for name, value in self.module.named_parameters()
            if value.requires_grad
        }

    def predict(self, params, X):
        """Predictions of the module with other parameters."""
        return functional_call(self.module, params, (X,))

    def begin(self, start):
        return Updates(self, start, self.objective)

    def begin_replicas(self, start, weights):
        """The carry of replicas; raises if the optimiser is not elementwise."""
        check_elementwise(self.optimizer, start)
        objectives = vmap(self.objective, in_dims=(0, None, None, 0))
        replicated = {
            name: value.expand(len(weights), *value.shape)
            for name, value in start.items()
        }
        return Updates(self, replicated, lambda *args: objectives(*args).sum())

    step = step_replicas = staticmethod(Updates.step)
    follow_replicas = staticmethod(Updates.follow)
    reset_first = staticmethod(Updates.reset_first)

    def params_of(self, carry):
        return {name: value.detach().clone() for name, value in carry.params.items()}

    @torch.no_grad()
    def predictions(self, carry, X, first=0):
        params = {name: value[first:] for name, value in carry.params.items()}
        return vmap(self.predict)(params, X)

    @staticmethod
    def scan(step, read, carry, n_steps):
        path = []
        for t in range(n_steps + 1):
            with torch.no_grad():
                path.append(read(carry))
            if t < n_steps:
                carry = step(carry, t)
        return default_collate(path)

    @torch.no_grad()
    def predict_path(self, path, X):
        n_iterates = len(next(iter(path.values())))
        return torch.stack(
            [self.predict(self.iterate(path, t), X) for t in range(n_iterates)]
        )

    # ---- arrays

    losses = staticmethod(losses_on)
    row_loss = staticmethod(row_loss)

    @staticmethod
    def rows_of(tensor, rows):
        return tensor[torch.as_tensor(rows, device=tensor.device)]

    def arrays(self, params, *values):
        return as_tensors(next(iter(params.values())), *values)

    def weights(self, params, data, weights):
        return torch.as_tensor(weights).to(next(iter(params.values())))

    def to_numpy(self, array):
        return array.numpy(force=True)

    def arrays_by_name(self, name, values):
        return values if isinstance(values, dict) else {name: values}

    def data(self, X, y, batches):
        if batches is not None:
            batches = [torch.as_tensor(rows, device=X.device) for rows in batches]
        return TensorRows(X, y, batches)

    iterate = staticmethod(params_at)
