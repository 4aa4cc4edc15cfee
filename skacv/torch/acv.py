"""A run of a torch optimiser, recorded, and what is read from it."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

from .._any_optimiser.checks import check_finite, check_iterate
from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.folds import Folds
from .._any_optimiser.linearised import check_method
from .alongside import Alongside
from .data import Data, as_tensors, checked, costs_of, equal_weights, folds_of
from .linearised import check_linearisable, linearised_predictions
from .model import Model, Replicas, Updates, no_penalty


@dataclass(frozen=True, eq=False)
class TrajectoryACV:
    """Any module and any elementwise torch optimiser, judged on unseen rows.

    It minimises mean_i loss(y_i, module(x_i)) + penalty(params), over the parameters of
    the module that require gradients.

    Parameters
    ----------
    module : torch.nn.Module
        ``module(X)`` gives one prediction a row: (n,) or (n, n_outputs). Its
        parameters are where runs start; they are not changed. What it says of a row
        must not depend on the others, or on chance (batch normalisation, dropout).
    loss : callable
        ``loss(y, prediction)``, one number a row: (n,). Not their mean.
    optimizer : callable
        ``optimizer(params)``, an optimiser of a list of tensors, such as
        ``lambda params: torch.optim.Adam(params, 1e-2)``. To be shared by replicas it
        works entry by entry: SGD with momentum, Adam, RMSprop, ... but not L-BFGS or
        Muon. That is tried, not looked up.
    scheduler : callable, default=None
        ``scheduler(optimizer)``, a learning-rate scheduler, stepped after every update.
    penalty : callable, default=None
        ``penalty(params)``, a number, of a dict of tensors by their names in the
        module. None is none.

    See Also
    --------
    skacv.jax.TrajectoryACV : The same of functions of JAX and any optax optimiser.

    Examples
    --------
    >>> import torch
    >>> from skacv.torch import TrajectoryACV
    >>> _ = torch.manual_seed(0)
    >>> X = torch.randn(80, 30)
    >>> y = X[:, 0] + torch.randn(80)
    >>> module = torch.nn.Sequential(torch.nn.Linear(30, 1), torch.nn.Flatten(0))
    >>> def squared(y, prediction):
    ...     return (y - prediction) ** 2
    >>> acv = TrajectoryACV(module, squared, lambda p: torch.optim.Adam(p, 0.05))
    >>> run = acv.run(X, y, n_steps=100)
    >>> found = run.cv_path(folds=5)
    >>> bool(0 < found.best_iteration < 100)
    True
    >>> best = run.at_iteration(found.best_iteration)
    >>> best(X).shape
    torch.Size([80])
    """

    module: torch.nn.Module
    loss: Callable
    optimizer: Callable
    scheduler: Callable | None = None
    penalty: Callable | None = None

    @property
    def _model(self):
        penalty = no_penalty if self.penalty is None else self.penalty
        return Model(self.module, self.loss, self.optimizer, self.scheduler, penalty)

    def run(self, X, y, n_steps, batches=None):
        """Run the optimiser once, and record every iterate.

        Parameters
        ----------
        X, y : Tensor or array-like of n_rows rows
            Floating-point numbers are taken in the precision and to the device of the
            parameters. For a DataLoader, :func:`skacv.torch.draw` gives these and the
            batches.
        n_steps : int
            Number of updates.
        batches : iterable of array-like of int, default=None
            Rows of every update, repeated cyclically, such as
            :func:`skacv.torch.shuffled_batches` gives. None uses all rows in every
            update.

        Returns
        -------
        Run
            It holds n_steps + 1 copies of the parameters, and the data.

        Raises
        ------
        ValueError
            If parameters are not floating-point numbers, the loss does not give one
            number a row, predictions of rows depend on each other, data or losses are
            not finite, or batches are not rows of the data.
        """
        model = self._model
        start, data = checked(model, X, y, batches)
        path, train_path = _recorded(model, start, data, n_steps)
        check_finite(train_path)
        return Run(model, data, path, train_path)

    def alongside(self, X, y, folds=5, every=1):
        """Cross-validation folds that are updated along with your own training loop.

        The loop itself does not change: it has its own optimiser, made by the same
        function, and its own batches. Call this before its first update.

        Parameters
        ----------
        X, y : Tensor or array-like of n_rows rows
            All rows that the loop draws batches from.
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of rows to
            fit on and rows to judge by.
        every : int, default=1
            Number of updates between evaluations on held-out rows.

        Returns
        -------
        Alongside

        Raises
        ------
        ValueError
            As in :meth:`run` and :meth:`Run.cv_path`.

        Examples
        --------
        >>> import torch
        >>> from skacv.torch import TrajectoryACV
        >>> _ = torch.manual_seed(0)
        >>> X = torch.randn(80, 30)
        >>> y = X[:, 0] + torch.randn(80)
        >>> module = torch.nn.Sequential(torch.nn.Linear(30, 1), torch.nn.Flatten(0))
        >>> def squared(y, prediction):
        ...     return (y - prediction) ** 2
        >>> def adam(params):
        ...     return torch.optim.Adam(params, 0.05)
        >>> acv = TrajectoryACV(module, squared, adam).alongside(X, y)
        >>> optimizer = adam(module.parameters())
        >>> while not acv.should_stop(patience=20):
        ...     rows = torch.randint(80, (40,))
        ...     optimizer.zero_grad()
        ...     squared(y[rows], module(X[rows])).mean().backward()
        ...     optimizer.step()
        ...     acv.step(rows)
        >>> acv.n_steps_ == acv.best_iteration_ + 20
        True
        >>> module = acv.load_best()
        """
        model = self._model
        start, data = checked(model, X, y)
        folds = folds_of(folds, data)
        return Alongside(model, start, data, folds, every)


def _recorded(model, start, data, n_steps):
    """Parameters of every iterate, and their mean losses on all rows."""
    params = {name: value.clone().requires_grad_() for name, value in start.items()}
    weights = equal_weights(start, data)
    updates, path, train_path = Updates(model, params), [], []
    for t in range(n_steps + 1):
        with torch.no_grad():
            path.append({name: value.clone() for name, value in params.items()})
            cost = model.mean_loss(params, data.X, data.y, weights)
            train_path.append(float(cost))
        if t < n_steps:
            own = data.at_update(t, weights)
            updates.descend(lambda own=own: model.objective(params, *own))
    path = {name: torch.stack([each[name] for each in path]) for name in start}
    return path, np.array(train_path)


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded run, as :meth:`skacv.torch.TrajectoryACV.run` gives it.

    Attributes
    ----------
    train_path : ndarray of shape (n_steps + 1,)
        Mean loss of every iterate on the training rows, from the start to the last.
    params_path : dict of str to Tensor
        Parameters of every iterate, along their first axes.
    """

    _model: Model
    _data: Data
    params_path: dict
    train_path: np.ndarray

    @property
    def n_steps(self):
        """Number of updates."""
        return len(self.train_path) - 1

    def at_iteration(self, t):
        """The module with the parameters of iterate ``t``.

        Parameters
        ----------
        t : int
            0 is the start; negative counts from the end.

        Returns
        -------
        torch.nn.Module
            A copy.
        """
        check_iterate(t, self.n_steps)
        module = deepcopy(self._model.module)
        found = {name: path[t] for name, path in self.params_path.items()}
        module.load_state_dict(found, strict=False)
        return module

    def predict_path(self, X):
        """Predictions by every iterate.

        Parameters
        ----------
        X : Tensor or array-like

        Returns
        -------
        ndarray of shape (n_steps + 1, n_rows, ...)
        """
        (X,) = as_tensors(next(iter(self.params_path.values())), X)
        found = []
        with torch.no_grad():
            for t in range(self.n_steps + 1):
                params = {name: path[t] for name, path in self.params_path.items()}
                found.append(self._model.predict(params, X))
        return torch.stack(found).numpy(force=True)

    def cv_path(self, folds=5, block_size=None):
        """Cross-validation error of every iterate.

        For every fold the run is repeated with the same start, batches and schedule on
        the mean loss over its training rows. This is exact for any model, also for
        networks. Only rounding differs from running the folds one by one; runs that
        amplify it (large steps, long runs of networks) are not reproducible beyond it.

        Parameters
        ----------
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of rows to
            fit on and rows to judge by.
        block_size : int, default=None
            Largest number of runs computed side by side; None is what fits in cache.

        Returns
        -------
        PathEstimate

        Raises
        ------
        ValueError
            If folds are invalid, a replica diverges, or the optimiser does not work
            entry by entry.
        """
        return self._left_out(folds_of(folds, self._data), block_size)

    def loo_path(self, rows=None, method="exact", correction=True, block_size=None):
        """Leave-one-out error of every iterate.

        For every row that is left out the run is repeated on the mean loss over all
        others.

        Parameters
        ----------
        rows : array-like of int, default=None
            Rows to leave out, one at a time; None means all.
        method : {"exact", "linearised"}, default="exact"
            "exact" holds for any model. "linearised" linearises the gradients without a
            row around the recorded run. It is for convex losses with few parameters,
            such as linear models: it needs a matrix of (number of parameters)^2 entries
            and products with it, but no pass through all rows for every row left out.
        correction : bool, default=True
            Whether to correct the error of "linearised" at some iterates. False is the
            published estimate.
        block_size : int, default=None
            Largest number of runs computed side by side; None is what fits in cache.

        Returns
        -------
        PathEstimate

        Raises
        ------
        ValueError
            If there are no such rows, a replica diverges, or "linearised" finds more
            than 4096 parameters, a loss that is not convex; or if the optimiser
            does not work entry by entry.

        References
        ----------
        Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
        arXiv:2303.02732.
        """
        check_method(method)
        folds = Folds.of_rows(rows, len(self._data.y))
        if method == "exact":
            return self._left_out(folds, block_size)
        check_linearisable(self)
        found = linearised_predictions(self, folds, correction, block_size)
        return self._estimate(folds, found)

    def _left_out(self, folds, block_size=None):
        """The estimate from exact replicas."""
        found = [
            block.unpadded(self._held_out(block, folds.most_judged)[:n_own])
            for block, n_own in folds.blocks(block_size)
        ]
        return self._estimate(folds, np.concatenate(found, axis=1))

    def _held_out(self, folds, size):
        """What replicas predict of their rows, (n_folds, n_steps + 1, size, ...)."""
        model, data = self._model, self._data
        start = {name: path[0] for name, path in self.params_path.items()}
        weights = torch.as_tensor(folds.weights()).to(equal_weights(start, data))
        replicas, found = Replicas(model, start, weights), []
        X = data.X[torch.as_tensor(folds.padded(size), device=data.X.device)]
        for t in range(self.n_steps):
            found.append(replicas.predicted(X))
            replicas.step(*data.at_update(t, weights))
        found.append(replicas.predicted(X))
        return torch.stack(found, dim=1).numpy(force=True)

    def _estimate(self, folds, predictions):
        y = self._data.y[torch.as_tensor(folds.indices, device=self._data.y.device)]
        costs = costs_of(self._model.loss, y, torch.as_tensor(predictions).to(y.device))
        return PathEstimate.of(costs, predictions, folds)
