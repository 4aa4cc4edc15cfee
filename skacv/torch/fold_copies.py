"""Copies of a network, one per fold, that take the updates of its trainer."""

import random
from collections.abc import Callable
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from inspect import getdoc
from itertools import islice
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from .._any_optimiser.alongside import HeldOutCurve, is_same_update
from .._any_optimiser.folds import Folds
from .._estimator.docstrings import entries
from .._warnings import warn
from ..risk.held_out_rows import mean_with_error
from .batches import take_rows
from .frozen_parts import frozen_parts
from .updates import compare_updates, copy_settings

# A copy with all rows must make the first updates as the trainer does.
N_CHECKED = 3


def random_states():
    """States of the generators that networks and datasets draw from."""
    on_devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    of_numpy = np.random.get_state()  # noqa: NPY002 (others draw from it)
    return random.getstate(), of_numpy, torch.get_rng_state(), on_devices


def set_random_states(states):
    """Draw from other states."""
    of_python, of_numpy, of_torch, on_devices = states
    random.setstate(of_python)
    np.random.set_state(of_numpy)  # noqa: NPY002
    torch.set_rng_state(of_torch)
    if on_devices:
        torch.cuda.set_rng_state_all(on_devices)


class Randomness:
    """Generators of their own, for copies: those of the trainer stay as they are."""

    def __init__(self, seed):
        self.states = random_states()
        with self.in_use():
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            torch.manual_seed(seed)

    @contextmanager
    def in_use(self):
        of_trainer = random_states()
        set_random_states(self.states)
        try:
            yield
        finally:
            self.states = random_states()
            set_random_states(of_trainer)


class FoldCopy:
    """A copy of a network and of its optimiser, to be updated without some rows.

    Parts that are not trained are shared with the network.
    """

    def __init__(self, network, optimizer, shared, keeps, seed):
        self.keeps = torch.as_tensor(keeps)  # by row of the data
        # The memo of deepcopy: what it holds is not copied again, and the parameters of
        # the optimiser are found to be those of the copied network.
        memo = {id(part): part for part in shared}
        try:
            self.network = deepcopy(network, memo)
            self.optimizer = deepcopy(optimizer, memo)
        except Exception as error:  # whatever the network holds
            raise ValueError(
                f"The network or its optimiser cannot be copied: {error}"
            ) from error
        self.randomness = Randomness(seed)
        self.has_gradient = False

    def kept_places(self, rows):
        """Places in a batch, with these rows, of those that it is trained on."""
        return torch.nonzero(self.keeps[torch.as_tensor(rows)])[:, 0]

    def update(self, settings, clip):
        """An update by the gradients so far, with the settings of the trainer's."""
        if self.has_gradient:  # some of the rows of its batches are the copy's
            copy_settings(settings, self.optimizer)
            clip(self)
            self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.has_gradient = False


def trained_parameters(network):
    return {name: p for name, p in network.named_parameters() if p.requires_grad}


@contextmanager
def predicting(network):
    """Within this context the network is in the mode of predictions, without graphs."""
    training = {module: module.training for module in network.modules()}
    network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, is_training in training.items():
            module.training = is_training


class FoldsBesideTrainer(HeldOutCurve):
    """Base class of the callbacks of trainers: a copy of the network for every fold.

    The trainer keeps all rows, its batches, its optimiser and its random numbers. After
    each of its backward passes the copies have theirs, on those rows of the batch that
    are not of their fold, and they are updated when the trainer is. A subclass says
    when that is, and how its trainer computes losses and predictions.

    Parameters
    ----------
    folds : int or iterable, default=5
        A number of random folds, or pairs of training rows and held-out rows, such as
        ``list(StratifiedKFold(5).split(X, y))``.
    mode : {"min", "max"}, default="min"
        Whether less or more of what is monitored is better.
    min_delta : float, default=0.0
        A change by less is no improvement.
    patience : int, default=3
        Number of evaluations without an improvement after which training stops. None
        never stops it.
    every : int, default=None
        Number of updates between evaluations. None evaluates after every epoch.
    restore_best : bool, default=True
        Whether the network has the state of the best evaluation after training.
    dataset : Dataset, default=None
        The rows of the training data as they are predicted when held out, for example
        without augmentation. None is the training data.
    take_rows : callable, default=skacv.torch.batches.take_rows
        ``take_rows(batch, rows, n_rows)`` returns a batch of some rows, whose places in
        a batch of ``n_rows`` are a tensor. The default takes rows of tensors, arrays
        and lists, in mappings, lists and tuples.
    random_state : int, default=0
        Seeds dropout and other noise of the copies.

    Attributes
    ----------
    path_, se_path_ : ndarray of shape (n_evaluations,)
        Mean of what is monitored over held-out rows, first before training, and its
        standard error over folds. Entries are NaN where a copy has diverged.
    iterations_ : ndarray of int, shape (n_evaluations,)
        Number of updates at each entry of the path.
    best_iteration_ : int
        Number of updates at the best entry of the path.
    best_state_ : dict
        What is trained, and buffers, at this entry, by name.
    held_out_prediction_ : ndarray of shape (n_rows, ...) or list
        Predictions at this entry of every row, by the copy that was trained without it;
        a list if those of rows differ in shape.
    """

    # Why updates of a trainer may not be followed; how predictions can be had.
    _reasons: str
    _no_predictions: str

    def __init__(
        self,
        folds: Any = 5,
        *,
        monitor: Any = None,
        mode: str = "min",
        min_delta: float = 0.0,
        patience: int | None = 3,
        every: int | None = None,
        restore_best: bool = True,
        dataset: Any = None,
        take_rows: Callable[..., Any] = take_rows,
        random_state: int = 0,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f"mode must be 'min' or 'max', got {mode!r}.")
        if not min_delta >= 0:
            raise ValueError(f"min_delta must be at least 0, got {min_delta}.")
        for name, number in ("patience", patience), ("every", every):
            if number is not None and number < 1:
                raise ValueError(f"{name} must be at least 1 or None, got {number}.")
        if hasattr(folds, "split"):
            raise ValueError(
                "A splitter does not see the rows here: pass the pairs of training "
                "rows and held-out rows, folds=list(splitter.split(X, y))."
            )
        super().__init__()
        self._frozen: list = []
        self._sign = 1.0 if mode == "min" else -1.0
        self.folds, self.monitor, self.mode = folds, monitor, mode
        self.min_delta, self.patience, self.every = min_delta, patience, every
        self.restore_best, self.dataset = restore_best, dataset
        self.take_rows, self.random_state = take_rows, random_state

    def _judge(self, network, batches):
        """The mean of what is monitored over the rows of some batches; predictions.

        ``batches`` are pairs of a number of rows and a batch. Predictions are None, or
        a list of an array for each row.
        """
        raise NotImplementedError

    def _attach(self, network):
        """Make a copy of the network ready for its trainer."""

    # ---- the run

    def _begin(self, network, optimizer, loader, batch_size):
        """Copy the network and its optimiser, and judge the copies as they begin.

        ``batch_size`` is that of held-out rows.
        """
        self._trained = trained_parameters(network).keys()
        if not self._trained:
            raise ValueError("No parameter of the network requires a gradient.")
        n_rows = len(loader.dataset)
        dataset = loader.dataset if self.dataset is None else self.dataset
        if len(dataset) != n_rows:
            raise ValueError(
                f"dataset has {len(dataset)} rows, but training has {n_rows}: it must "
                "have the same rows in the same order."
            )
        folds = Folds.of(self.folds, np.zeros(n_rows))
        if any(len(set(rows)) < len(rows) for rows in folds.training):
            raise ValueError("Training rows of a fold must be different ones.")
        keeps = folds.weights() > 0
        frozen = frozen_parts(network)
        shared = [part.module for part in frozen]
        shared += [p for p in network.parameters() if not p.requires_grad]
        seeds = np.random.SeedSequence(self.random_state).generate_state(len(keeps) + 1)
        # The witness has all rows: it shows for a few updates that copies do what the
        # trainer does.
        everything = np.ones((1, n_rows), dtype=bool)
        self._witness, *self._copies = [
            FoldCopy(network, optimizer, shared, *each)
            for each in zip(np.concatenate([everything, keeps]), seeds.tolist())
        ]
        for _, copy in self._numbered_copies():
            self._attach(copy.network)
        self._network, self._frozen, self._folds = network, frozen, folds
        self._n_updates, self._is_warned = 0, False
        self._loading = Randomness(self.random_state)
        size = self._n_per_batch = batch_size
        self._batches = [
            rows[first : first + size].tolist()
            for rows in folds.held_out
            for first in range(0, len(rows), size)
        ]
        self._loader = DataLoader(
            dataset,
            batch_sampler=self._batches,
            collate_fn=loader.collate_fn,
            num_workers=loader.num_workers,
        )
        HeldOutCurve.__init__(self)
        self._patience.patience = self.patience
        self._evaluate()

    def _begin_batch(self):
        """What comes next is the trainer's pass through the network with a batch."""
        if trained_parameters(self._network).keys() != self._trained:
            raise ValueError(
                "Other parameters are trained now than when training began: folds "
                "cannot follow a network that is thawed on the way."
            )
        self._trainer_states = random_states()
        for part in self._frozen:
            part.calls.clear()
            part.is_recording = True

    def _follow(self, batch, rows, backward):
        """After its backward pass, those of the copies.

        ``backward(network, batch, number)`` adds the gradients of a copy; the number of
        the witness is None. Shapes: rows (n_rows_of_batch,).
        """
        for part in self._frozen:
            part.is_recording = False
        for number, copy in self._numbered_copies():
            kept = copy.kept_places(rows)
            if not len(kept):
                continue
            # Parts of a network may be frozen, and so in the mode of predictions.
            for module, own in zip(self._network.modules(), copy.network.modules()):
                own.training = module.training
            part = batch
            if len(kept) < len(rows):
                part = self.take_rows(batch, kept, len(rows))
            with ExitStack() as stack:
                stack.enter_context(copy.randomness.in_use())
                if number is None:  # it draws what the trainer has drawn, everywhere
                    set_random_states(self._trainer_states)
                for frozen in self._frozen if number is not None else ():
                    recalled = frozen.recalled(kept, len(rows), self.take_rows)
                    stack.enter_context(recalled)
                backward(copy.network, part, number)
            copy.has_gradient = True

    def _numbered_copies(self):
        witness = [] if self._witness is None else [(None, self._witness)]
        return [*witness, *enumerate(self._copies)]

    def _update(self, optimizer, clip):
        """The trainer is about to update; ``clip(copy)`` clips the gradients of one."""
        if self._witness is not None:
            params = trained_parameters(self._witness.network)
            self._last = {name: p.detach().clone() for name, p in params.items()}
        for _, copy in self._numbered_copies():
            copy.update(optimizer.param_groups, clip)
        self._n_updates += 1

    def _end_update(self):
        """The trainer has updated: check that a copy with all rows did the same."""
        if self._witness is not None:
            own = trained_parameters(self._network)
            others = trained_parameters(self._witness.network)
            if not is_same_update(*compare_updates(own, others, self._last)):
                raise ValueError(
                    f"Update {self._n_updates} of the trainer differs from that of a "
                    "copy of its network with all rows, so folds cannot follow it: "
                    f"{self._reasons}."
                )
            with torch.no_grad():  # so that rounding does not add up
                for name, p in others.items():
                    p.copy_(own[name])
            if self._n_updates >= N_CHECKED:
                self._witness = None
        if self.every is not None and self._n_updates % self.every == 0:
            self._evaluate()

    def _end_epoch(self):
        if self.every is None:
            self._evaluate()

    def _evaluate(self):
        """Judge every copy by the rows of its fold; keep what is best so far."""
        values, predictions, folds = [], [], self._folds
        with self._loading.in_use():
            batches = zip(map(len, self._batches), self._loader)
            for rows, copy in zip(folds.held_out, self._copies):
                n_batches = -(-len(rows) // self._n_per_batch)
                with predicting(copy.network):
                    of_fold = islice(batches, n_batches)
                    value, predicted = self._judge(copy.network, of_fold)
                values.append(value)
                predictions.append(predicted)
        finite = np.isfinite(values)
        if not (finite.all() or self._is_warned):
            self._is_warned = True
            warn(
                f"What is monitored is not finite after update {self._n_updates}, "
                f"without the rows of fold {finite.argmin()}: the path is NaN where a "
                "copy has diverged.",
                UserWarning,
            )
        values = np.where(finite, values, np.nan)
        sizes = np.array([len(rows) for rows in folds.held_out], dtype=float)
        mean, error = mean_with_error(values[None], sizes)
        signed = self._sign * mean[0], error[0], self._n_updates
        if self._add(*signed, uncertainty=self.min_delta):
            frozen = dict(self._network.named_parameters()).keys() - self._trained
            self._best_state = {
                name: deepcopy(value)
                for name, value in self._network.state_dict().items()
                if name not in frozen
            }
            self._held_out_predictions = predictions

    def _end(self):
        """Training is over: load the best state."""
        if self.restore_best:
            self._network.load_state_dict(self._best_state, strict=False)
        self._let_go()

    def _let_go(self):
        """Forget the network, its copies, and the rows."""
        for part in self._frozen:
            part.remove()
        self._frozen = []
        self._witness = self._copies = self._network = None
        self._loader = self._trainer_states = None

    @property
    def _should_stop(self):
        return self._patience.has_ended

    # ---- what users read

    @property
    def path_(self) -> np.ndarray:
        """Mean of what is monitored over held-out rows, (n_evaluations,)."""
        return self._sign * super().path_

    @property
    def best_state_(self) -> dict[str, Any]:
        """What is trained, and buffers, at the best entry of the path, by name."""
        return self._best_state

    @property
    def held_out_prediction_(self) -> Any:
        """Predictions of the rows, each by a copy that was trained without it."""
        if any(predicted is None for predicted in self._held_out_predictions):
            raise AttributeError(f"There are no predictions: {self._no_predictions}.")
        values = [None] * self._folds.n_rows
        for rows, predicted in zip(self._folds.held_out, self._held_out_predictions):
            for row, value in zip(rows, predicted):
                values[row] = value
        # Rows that no fold holds out have none.
        shapes = {None if value is None else value.shape for value in values}
        return np.stack(values) if len(shapes) == 1 else values


# Texts of what callbacks share.
OF_TRAINERS = entries(getdoc(FoldsBesideTrainer) or "")


def as_rows(predicted, n_rows):
    """Predictions of a batch as a list of an array for each row."""
    if not isinstance(predicted, torch.Tensor) or len(predicted) != n_rows:
        raise ValueError(
            f"Predictions of {n_rows} rows must be a tensor with an entry for each, "
            f"got {getattr(predicted, 'shape', type(predicted).__name__)}."
        )
    if predicted.dtype == torch.bfloat16:  # which NumPy lacks
        predicted = predicted.float()
    return list(predicted.numpy(force=True))
