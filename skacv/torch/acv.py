"""Recorded runs of torch optimisers, and folds beside a loop of the user."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import ArrayLike

from .._any_optimiser.alongside import FollowedLoop
from .._any_optimiser.run import OptimiserRun
from .losses import row_loss
from .model import TorchBackend


class Alongside(FollowedLoop):
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
        The module's parameters at this minimum.
    n_steps_ : int
        Number of updates so far.
    """

    @property
    def best_parameters_(self) -> Any:
        """The module's parameters at the minimum of the path."""
        return self._best_params

    def step(
        self,
        rows: ArrayLike | None = None,
        optimizer: torch.optim.Optimizer | None = None,
    ) -> None:
        """Follow an update of the loop: call it after every ``optimizer.step()``.

        Parameters
        ----------
        rows : Tensor or array-like of int, default=None
            Indices of the rows used in the update; None means all.
        optimizer : torch.optim.Optimizer, default=None
            The optimiser of the loop, if you change its settings: the folds update with
            its present learning rates, momentum and weight decay. Call
            ``scheduler.step()`` after this method, that of ``ReduceLROnPlateau`` with
            ``path_[-1]``. None: the folds have the ``scheduler`` of
            :class:`TrajectoryACV`, or none.

        Raises
        ------
        ValueError
            If one of the first ten updates differs from the update of the loop, a fold
            diverges, or the folds have a scheduler and are passed an optimiser too.

        Warns
        -----
        UserWarning
            Once, if a later update differs.
        """
        if optimizer is not None:
            if self._model.scheduler is not None:
                raise ValueError(
                    "The folds have a scheduler of their own: leave scheduler=None in "
                    "TrajectoryACV, or pass no optimizer to step()."
                )
            self._replicas.take_settings(optimizer)
        self._follow(self._model.start(), rows)

    def load_best(self) -> Any:
        """Load the best parameters into the module.

        Returns
        -------
        torch.nn.Module
        """
        self._model.module.load_state_dict(self.best_parameters_, strict=False)
        return self._model.module


@dataclass(frozen=True, eq=False)
class TrajectoryACV:
    """Any module trained by any elementwise torch optimiser, with risk estimates.

    It minimises mean_i loss(y_i, module(x_i)) + penalty(params), over the parameters of
    the module that require gradients.

    Parameters
    ----------
    module : torch.nn.Module
        ``module(X)`` returns one prediction per row: (n,) or (n, n_outputs). Runs start
        at its parameters, which are not changed. The prediction for a row must not
        depend on other rows (batch normalisation) or on chance (dropout).
    loss : callable
        ``loss(y, prediction)``, one number per row: (n,), not their mean. Usual losses
        of torch, such as ``torch.nn.MSELoss()`` or ``torch.nn.functional.huber_loss``,
        are recognised and called with torch's order, (prediction, target), row by row.
    optimizer : callable
        ``optimizer(params)``, an optimiser of a list of tensors. It must be
        elementwise, so that replicas can share it: SGD with momentum, Adam, RMSprop,
        ..., not L-BFGS or Muon. A trial update checks this.
    scheduler : callable, default=None
        ``scheduler(optimizer)``, a learning-rate scheduler, stepped after every update.
        One that needs a loss, ``ReduceLROnPlateau``, belongs in a loop of your own:
        :meth:`Alongside.step` says how.
    penalty : callable, default=None
        ``penalty(params)`` returns a number for a dict of tensors by their names in the
        module. None: no penalty.

    See Also
    --------
    skacv.jax.TrajectoryACV : The same for functions of JAX and any optax optimiser.

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
        return TorchBackend(**vars(self) | {"loss": row_loss(self.loss)})

    def run(
        self,
        X: Any,
        y: Any,
        n_steps: int,
        batches: Iterable[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "Run":
        """Run the optimiser once, and record every iterate.

        Parameters
        ----------
        X, y : Tensor or array-like of n_rows rows
            Floating-point numbers are converted to the precision and moved to the
            device of the parameters. For a DataLoader, :func:`skacv.torch.draw` returns
            these and the batches.
        n_steps : int
            Number of updates.
        batches : iterable of array-like of int, default=None
            Rows of every update, repeated cyclically, for example from
            :func:`skacv.torch.shuffled_batches`. None uses all rows in every update.
        sample_weight : array-like of shape (n_rows,), default=None
            Nonnegative weights of the rows in all mean losses; None: equal ones. In a
            batch a row counts by its weight over the mean weight of all rows, so that
            the mean over random batches is the weighted mean over all rows.

        Returns
        -------
        Run
            It holds n_steps + 1 copies of the parameters, and the data.

        Raises
        ------
        ValueError
            If parameters are not floating-point numbers, the loss does not return one
            number per row, predictions depend on other rows, data or losses are not
            finite, batches are not rows of the data, or weights are negative or all
            zero.
        """
        model = self._model
        return Run._record(model, model.start(), X, y, n_steps, batches, sample_weight)

    def alongside(
        self,
        X: Any,
        y: Any,
        folds: Any = 5,
        every: int = 1,
        sample_weight: ArrayLike | None = None,
    ) -> Alongside:
        """Cross-validation folds that are updated along with your training loop.

        The loop itself does not change: it keeps its optimiser, made by the same
        function, and its batches. Call this before its first update.

        Parameters
        ----------
        X, y : Tensor or array-like of n_rows rows
            All rows that the loop draws batches from.
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of training
            rows and held-out rows.
        every : int, default=1
            Number of updates between evaluations on held-out rows.
        sample_weight : array-like of shape (n_rows,), default=None
            Nonnegative weights of the rows, with which the loop minimises the mean of
            ``weights[rows] / weights.mean()`` times the losses of a batch. None: equal
            ones.

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
        of_loop = X, y, folds, every, sample_weight
        return Alongside._begin(model, model.start(), *of_loop)


class Run(OptimiserRun):
    """A recorded run, as returned by :meth:`skacv.torch.TrajectoryACV.run`.

    Attributes
    ----------
    train_path : ndarray of shape (n_steps + 1,)
        Mean loss of every iterate on the training rows, including the starting point.
    params_path : dict of str to Tensor
        Parameters of every iterate, along a first axis.
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
        module = deepcopy(self._model.module)
        module.load_state_dict(self._params(t), strict=False)
        return module
