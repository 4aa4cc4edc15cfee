"""Folds beside the trainer of Lightning."""

from collections.abc import Callable
from copy import copy
from inspect import signature
from typing import Any

from .._estimator.docstrings import documented
from .batches import RecordedBatches, record_rows, take_rows
from .fold_copies import OF_TRAINERS, FoldsBesideTrainer, as_rows

try:
    from lightning.pytorch import LightningModule
    from lightning.pytorch.callbacks import Callback
except ModuleNotFoundError:  # its older name
    from pytorch_lightning import LightningModule
    from pytorch_lightning.callbacks import Callback

__all__ = ["FoldsCallback"]


@documented(OF_TRAINERS)
class FoldsCallback(FoldsBesideTrainer, Callback):
    """Stop Lightning's trainer by held-out rows, though it trains on all rows.

    For every fold a copy of the module is trained beside it, on the same batches
    without the rows of the fold; parts that are not trained are shared. The mean loss
    of the copies on their held-out rows stops the trainer, and the module gets its
    state at the best evaluation. What the trainer does is what it would do without this
    callback. Read more in the :doc:`user guide </guide/trainers>`.

    Parameters
    ----------
    {folds}
    monitor : callable, default=None
        ``monitor(module, batch)`` returns the mean over the rows of a batch of what is
        monitored. None is the loss that ``training_step`` returns, in the mode of
        predictions; it should be a mean over the rows.
    {mode, min_delta, patience, every, restore_best, dataset, take_rows, random_state}
    predict : callable, default=None
        ``predict(module, batch)`` returns the predictions of a batch, a tensor with one
        entry for each row. None is the module's own ``predict_step``, if it has one.

    Attributes
    ----------
    {path_, iterations_, best_iteration_, best_state_, held_out_prediction_}

    Notes
    -----
    Gradient accumulation, clipping, schedules of the learning rate and mixed precision
    with bfloat16 are followed. For the first three updates it is checked that a copy
    with all rows does what the module does. Several devices, manual optimisation,
    several optimisers, float16 with a scaler and resumed runs are refused.

    Examples
    --------
    >>> import torch
    >>> from lightning.pytorch import LightningModule, Trainer  # doctest: +SKIP
    >>> from skacv.torch.lightning import FoldsCallback  # doctest: +SKIP
    """

    _reasons = (
        "hooks of the module or of callbacks that change gradients, weights or the "
        "batch, and a training_step that depends on more than the batch, are not seen "
        "by copies"
    )
    _no_predictions = "pass predict, or give the module a predict_step"

    def __init__(
        self,
        folds: Any = 5,
        *,
        monitor: Callable[..., Any] | None = None,
        mode: str = "min",
        min_delta: float = 0.0,
        patience: int | None = 3,
        every: int | None = None,
        restore_best: bool = True,
        dataset: Any = None,
        take_rows: Callable[..., Any] = take_rows,
        random_state: int = 0,
        predict: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(
            folds,
            monitor=monitor,
            mode=mode,
            min_delta=min_delta,
            patience=patience,
            every=every,
            restore_best=restore_best,
            dataset=dataset,
            take_rows=take_rows,
            random_state=random_state,
        )
        self.predict = predict
        self._trainer: Any = None
        self._has_updated = False

    def record_rows(self, loader: Any) -> Any:
        """A loader for ``Trainer.fit`` that tells which rows are in its batches.

        Parameters
        ----------
        loader : DataLoader
            Of the training rows.

        Returns
        -------
        DataLoader
            A copy of ``loader``.

        Raises
        ------
        ValueError
            If it does not draw batches of numbered rows.
        """
        loader = copy(loader)
        record_rows(loader)
        return loader

    # ---- hooks of the trainer

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Copy the module for every fold."""
        loader = trainer.train_dataloader
        if not isinstance(getattr(loader, "batch_sampler", None), RecordedBatches):
            raise ValueError(
                "The rows of batches are not known: pass one loader, of all training "
                "rows, through this callback: trainer.fit(module, folds.record_rows("
                "loader)), or return that from train_dataloader."
            )
        refused = {
            "several devices": trainer.world_size > 1,
            "manual optimisation": not pl_module.automatic_optimization,
            "several optimisers": len(trainer.optimizers) != 1,
            "float16 with a scaler, where bf16-mixed would do": getattr(
                trainer.precision_plugin, "scaler", None
            )
            is not None,
            "a run that is resumed": trainer.global_step > 0,
        }
        for what, is_used in refused.items():
            if is_used:
                raise ValueError(f"FoldsCallback does not follow {what}.")
        self._trainer, self._has_updated = trainer, False
        # A batch sampler may have no size.
        size = loader.batch_size or 32
        self._begin(pl_module, trainer.optimizers[0], loader, size)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Note the batch."""
        rows = trainer.train_dataloader.batch_sampler.rows.popleft()
        self._batch = batch, batch_idx, rows
        self._begin_batch()

    def on_after_backward(self, trainer: Any, pl_module: Any) -> None:
        """Backward passes of the copies."""
        batch, batch_idx, rows = self._batch

        def backward(module, part, number):
            loss = self._training_loss(module, part, batch_idx)
            if loss is not None:
                module.backward(loss / trainer.accumulate_grad_batches)

        self._follow(batch, rows, backward)

    def on_before_optimizer_step(
        self, trainer: Any, pl_module: Any, optimizer: Any
    ) -> None:
        """Update the copies."""

        def clip(copy):
            copy.network.configure_gradient_clipping(
                copy.optimizer,
                trainer.gradient_clip_val,
                trainer.gradient_clip_algorithm,
            )

        self._update(optimizer, clip)
        self._has_updated = True

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Check the first updates, and evaluate the copies if it is time."""
        if self._has_updated:
            self._has_updated = False
            self._end_update()
            trainer.should_stop |= self._should_stop

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate the copies."""
        self._end_epoch()
        trainer.should_stop |= self._should_stop

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Load the best state."""
        self._end()

    def on_exception(
        self, trainer: Any, pl_module: Any, exception: BaseException
    ) -> None:
        """Let go of the copies."""
        self._let_go()

    # ---- losses and predictions

    def _attach(self, network):
        for module in network.modules():
            if isinstance(module, LightningModule):
                module.trainer = self._trainer
                # What is logged is the trainer's.
                module.log = module.log_dict = _log_nothing

    def _training_loss(self, module, batch, number):
        takes_number = len(signature(module.training_step).parameters) > 1
        args = (batch, number) if takes_number else (batch,)
        with self._trainer.precision_plugin.train_step_context():
            loss = module.training_step(*args)
        return loss["loss"] if isinstance(loss, dict) else loss

    def _judge(self, network, batches):
        plugin, strategy = self._trainer.precision_plugin, self._trainer.strategy
        has_step = type(network).predict_step is not LightningModule.predict_step
        has_predictions = has_step or self.predict is not None
        total, n_rows, predictions = 0.0, 0, []
        for number, (size, batch) in enumerate(batches):
            batch = strategy.batch_to_device(plugin.convert_input(batch))
            with plugin.forward_context():
                if self.monitor is None:
                    value = self._training_loss(network, batch, number)
                else:
                    value = self.monitor(network, batch)
                if self.predict is not None:
                    predicted = self.predict(network, batch)
                elif has_step:
                    predicted = network.predict_step(batch, number)
            total, n_rows = total + size * float(value), n_rows + size
            if has_predictions:
                predictions.extend(as_rows(predicted, size))
        return total / n_rows, predictions if has_predictions else None


def _log_nothing(*args, **kwargs):
    """In place of ``log`` of a copy."""
