"""Folds beside a training loop of a user's own."""

import torch

from .._any_optimiser.alongside import AlongsideLoop
from .data import costs_of, equal_weights
from .model import Replicas


class Alongside(AlongsideLoop):
    """Cross-validation folds that are updated along with a training loop.

    It is created by :meth:`skacv.torch.TrajectoryACV.alongside`.

    Attributes
    ----------
    path_, se_path_ : ndarray of shape (n_evaluations,)
        Estimated mean loss of the iterates on unseen rows, and its standard error.
    iterations_ : ndarray of int, shape (n_evaluations,)
        Number of updates at each entry of the path.
    best_iteration_ : int
        Number of updates at the minimum of the path.
    best_parameters_ : dict of str to Tensor
        The module's parameters there.
    n_steps_ : int
        Updates so far.
    """

    def __init__(self, model, start, data, folds, every):
        self._model, self._data, self._last = model, data, start
        device, equal = data.X.device, equal_weights(start, data)
        # The first replica has all rows: it is the loop's own run.
        weights = torch.cat([equal[None], torch.as_tensor(folds.weights()).to(equal)])
        self._replicas = Replicas(model, start, weights)
        rows = torch.as_tensor(folds.padded(folds.most_judged), device=device)
        self._X = data.X[torch.cat([rows[:1], rows])]
        self._y = data.y[torch.as_tensor(folds.indices, device=device)]
        super().__init__(folds, every)

    def step(self, rows=None):
        """Follow an update of the loop: call it after every ``optimizer.step()``.

        Parameters
        ----------
        rows : Tensor or array-like of int, default=None
            Indices of the rows used in the update; None means all.

        Raises
        ------
        ValueError
            If one of the first ten updates differs from that of the loop, or a fold
            diverges.

        Warns
        -----
        UserWarning
            If a later update differs; once.
        """
        self._follow(rows)

    def load_best(self):
        """Load the best parameters into the module.

        Returns
        -------
        torch.nn.Module
        """
        self._model.module.load_state_dict(self.best_parameters_, strict=False)
        return self._model.module

    def _advance(self, rows):
        if rows is not None:
            rows = torch.as_tensor(rows, device=self._data.X.device)
        self._replicas.step(*self._data.on(rows, self._replicas.weights))

    @torch.no_grad()
    def _parted(self):
        now, squares = self._model.start(), []
        for name, value in self._replicas.params.items():
            parts = now[name] - value[0], value[0] - self._last[name], now[name]
            squares.append(torch.stack([(part**2).sum() for part in parts]))
            value[0] = now[name]
        self._last = now
        distance, length, size = torch.stack(squares).sum(dim=0).sqrt().tolist()
        return distance, length, size * torch.finfo(value.dtype).eps

    def _held_out(self):
        predictions = self._replicas.predicted(self._X)[1:]
        found = self._folds.unpadded(predictions.numpy(force=True)[:, None])
        predictions = torch.as_tensor(found).to(self._y.device)
        return found, costs_of(self._model.loss, self._y, predictions)

    def _keep(self):
        self.best_parameters_ = self._model.start()
