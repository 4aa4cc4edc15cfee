"""A run of a torch optimiser, recorded, and what is read from it."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import ArrayLike

from .._any_optimiser.run import RecordedRun
from .alongside import Alongside
from .model import Model


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
        return Model(
            self.module, self.loss, self.optimizer, self.scheduler, self.penalty
        )

    def run(
        self, X: Any, y: Any, n_steps: int, batches: Iterable[ArrayLike] | None = None
    ) -> "Run":
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
        return Run._of(model, model.start(), X, y, n_steps, batches)

    def alongside(self, X: Any, y: Any, folds: Any = 5, every: int = 1) -> Alongside:
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
        return Alongside._of(model, model.start(), X, y, folds, every)


class Run(RecordedRun):
    """A recorded run, as :meth:`skacv.torch.TrajectoryACV.run` gives it.

    Attributes
    ----------
    train_path : ndarray of shape (n_steps + 1,)
        Mean loss of every iterate on the training rows, from the start to the last.
    params_path : dict of str to Tensor
        Parameters of every iterate, along their first axes.
    """

    def at_iteration(self, t: int) -> Any:
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
        module, found = deepcopy(self._model.module), self._params(t)
        module.load_state_dict(found, strict=False)
        return module
