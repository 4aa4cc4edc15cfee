"""Modules, losses and their refits by a plain loop."""

from copy import deepcopy

import numpy as np
import torch


def linear(n_columns, seed=0):
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Linear(n_columns, 1), torch.nn.Flatten(0))
    return module.double()


def network(n_columns, n_outputs):
    torch.manual_seed(0)
    layers = (
        torch.nn.Linear(n_columns, 7),
        torch.nn.Tanh(),
        torch.nn.Linear(7, n_outputs),
    )
    return torch.nn.Sequential(*layers).double()


def log_loss(y, z):
    return torch.nn.functional.softplus(z) - y * z


def squared(y, prediction):
    return (y - prediction) ** 2


def refitted(acv, X, y, n_steps, batches=None, weight=None):
    """The module after every update, by a loop that knows no replicas.

    ``weight`` is that of each row, by default one over their number in a batch.
    """
    X, y, module = torch.as_tensor(X), torch.as_tensor(y), deepcopy(acv.module)
    optimizer = acv.optimizer(list(module.parameters()))
    scheduler = acv.scheduler(optimizer) if acv.scheduler else None
    found = [deepcopy(module)]
    for t in range(n_steps):
        rows = np.arange(len(y)) if batches is None else batches[t % len(batches)]
        own = 1 / len(rows) if weight is None else torch.as_tensor(weight[rows])
        optimizer.zero_grad()
        objective = (own * acv.loss(y[rows], module(X[rows]))).sum()
        if acv.penalty is not None:
            objective = objective + acv.penalty(dict(module.named_parameters()))
        objective.backward()
        optimizer.step()
        if scheduler:
            scheduler.step()
        found.append(deepcopy(module))
    return found


def refitted_without(acv, X, y, n_steps, rows, batches=None, weights=None):
    """Predictions of some rows by a refit that never had them.

    With batches, what is left of one has the weight of the whole batch in the mean over
    the rows that are left. ``weights`` are of the rows of X, by default equal.
    """
    kept = np.setdiff1d(np.arange(len(y)), rows)
    weights = np.ones(len(y)) if weights is None else weights
    weight = weights[kept] / weights[kept].sum()
    if batches is not None:
        size = len(batches[0])
        batches = [np.searchsorted(kept, np.setdiff1d(each, rows)) for each in batches]
        weight = weight * len(y) / size
    path = refitted(acv, X[kept], y[kept], n_steps, batches, weight)
    with torch.no_grad():
        return np.stack([module(torch.as_tensor(X[rows])).numpy() for module in path])
