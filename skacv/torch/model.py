"""A module, a loss of single rows and an optimiser: a run of them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch.func import functional_call

from .._any_optimiser.backend import Backend
from . import linearised, replicas
from .data import Data, as_tensors, equal_weights, row_losses, rows_of


@dataclass(frozen=True, eq=False)
class Model(Backend):
    """The objective and the optimiser; only parameters of the module change."""

    module: torch.nn.Module
    loss: Callable
    optimizer: Callable
    scheduler: Callable | None = None
    penalty: Callable | None = None

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

    # ---- what a backend supplies besides

    rows_of = staticmethod(rows_of)
    losses = staticmethod(row_losses)
    held_out = replicas.held_out
    hessian = linearised.hessian_of
    replayed = linearised.replayed

    def arrays(self, params, *values):
        return as_tensors(next(iter(params.values())), *values)

    def to_numpy(self, array):
        return array.numpy(force=True)

    def leaves(self, X):
        return [X]

    def named(self, params):
        return params

    def data(self, X, y, batches):
        if batches is not None:
            batches = [torch.as_tensor(rows, device=X.device) for rows in batches]
        return Data(X, y, batches)

    @staticmethod
    def iterate(path, t):
        return {name: value[t] for name, value in path.items()}

    @torch.no_grad()
    def predict_path(self, path, X):
        n_iterates = len(next(iter(path.values())))
        found = [self.predict(self.iterate(path, t), X) for t in range(n_iterates)]
        return torch.stack(found).numpy(force=True)

    def record(self, start, data, n_steps):
        params = {name: value.clone().requires_grad_() for name, value in start.items()}
        weights = equal_weights(start, data)
        updates, path, train_path = replicas.Updates(self, params), [], []
        for t in range(n_steps + 1):
            with torch.no_grad():
                path.append({name: value.clone() for name, value in params.items()})
                cost = self.mean_loss(params, data.X, data.y, weights)
                train_path.append(float(cost))
            if t < n_steps:
                own = data.at_update(t, weights)
                updates.descend(lambda own=own: self.objective(params, *own))
        path = {name: torch.stack([each[name] for each in path]) for name in start}
        return path, np.array(train_path)

    def replicas(self, start, data, weights):
        return replicas.Replicas(self, start, data, weights)
