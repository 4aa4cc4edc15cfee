"""Folds beside the Trainer of transformers."""

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
import torch
from transformers import EvalPrediction, TrainerCallback
from transformers.trainer_pt_utils import nested_concat, nested_numpify

from .._estimator.docstrings import documented
from .batches import record_rows, take_rows
from .fold_copies import OF_TRAINERS, FoldsBesideTrainer

__all__ = ["FoldsCallback"]

# Methods of the trainer that are followed.
FOLLOWED = "get_batch_samples", "training_step"


@documented(OF_TRAINERS)
class FoldsCallback(FoldsBesideTrainer, TrainerCallback):
    """Stop a Trainer of transformers by held-out rows, though it trains on all rows.

    For every fold a copy of the model is trained beside it, on the same batches without
    the rows of the fold; parts that are not trained are shared: of a model with a new
    head, or with adapters, the rest exists once. The mean loss of the copies on their
    held-out rows stops the trainer, and the model gets its state at the best
    evaluation. What the trainer does is what it would do without this callback. Read
    more in the :doc:`user guide </guide/trainers>`.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer that the callback is added to, by
        ``trainer.add_callback(FoldsCallback(trainer))``.
    {folds}
    monitor : str, default=None
        A name among those that the trainer's ``compute_metrics`` returns, without
        "eval_"; it is computed for each fold. None is the loss, a mean over rows.
    {mode, min_delta, patience, every, restore_best, dataset, take_rows, random_state}

    Attributes
    ----------
    {path_, iterations_, best_iteration_, best_state_, held_out_prediction_}

    Notes
    -----
    Gradient accumulation, clipping, schedules of the learning rate, losses per token
    and mixed precision with bfloat16 are followed. For the first three updates it is
    checked that a copy with all rows does what the model does. Several devices, float16
    with a scaler and resumed runs are refused. With
    ``TrainingArguments(prediction_loss_only=True)`` no predictions are kept, which may
    be large: those of language models have an entry for each token of the vocabulary.

    Examples
    --------
    >>> from transformers import Trainer  # doctest: +SKIP
    >>> from skacv.torch.transformers import FoldsCallback  # doctest: +SKIP
    >>> trainer = Trainer(model, args, train_dataset=dataset)  # doctest: +SKIP
    >>> folds = FoldsCallback(trainer, folds=5, patience=3)  # doctest: +SKIP
    >>> trainer.add_callback(folds)  # doctest: +SKIP
    >>> trainer.train()  # doctest: +SKIP
    >>> folds.best_iteration_, folds.path_  # doctest: +SKIP
    """

    _reasons = (
        "callbacks that change gradients or weights, and a training step that depends "
        "on more than the model and its inputs, are not seen by copies"
    )
    _no_predictions = (
        "the trainer has prediction_loss_only, or the model returns several things"
    )

    def __init__(
        self,
        trainer: Any,
        folds: Any = 5,
        *,
        monitor: str | None = None,
        mode: str = "min",
        min_delta: float = 0.0,
        patience: int | None = 3,
        every: int | None = None,
        restore_best: bool = True,
        dataset: Any = None,
        take_rows: Callable[..., Any] = take_rows,
        random_state: int = 0,
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
        if monitor is not None and trainer.compute_metrics is None:
            raise ValueError(
                f"monitor={monitor!r} needs a trainer with compute_metrics, which "
                "returns it."
            )
        self.trainer = trainer
        self._own: dict = {}

    # ---- hooks of the trainer

    def on_train_begin(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Copy the model for every fold, and follow the trainer's steps."""
        self._let_go()  # of a run that an exception has ended
        trainer = self.trainer
        refused = {
            "several devices": args.world_size > 1 or args.n_gpu > 1,
            "float16 with a scaler, where bf16 would do": trainer.accelerator.scaler
            is not None,
            "a run that is resumed": state.global_step > 0,
        }
        for what, is_used in refused.items():
            if is_used:
                raise ValueError(f"FoldsCallback does not follow {what}.")
        loader, optimizer = kwargs["train_dataloader"], kwargs["optimizer"]
        # Those of accelerate wrap a loader and an optimiser.
        loader = getattr(loader, "base_dataloader", loader)
        optimizer = getattr(optimizer, "optimizer", optimizer)
        self._recorded, self._rows = record_rows(loader), []
        self._begin(trainer.model, optimizer, loader, args.eval_batch_size)
        self._own = {name: vars(trainer).get(name) for name in FOLLOWED}
        self._get_batch_samples = trainer.get_batch_samples
        self._training_step = trainer.training_step
        trainer.get_batch_samples = self._get_batches_of_update
        trainer.training_step = self._step_with_copies

    def _get_batches_of_update(self, epoch_iterator, num_batches, *args):
        """As ``Trainer.get_batch_samples``; and the numbers of items of copies."""
        batches, n_items = self._get_batch_samples(epoch_iterator, num_batches, *args)
        self._rows = [self._recorded.rows.popleft() for _ in batches]
        self._n_items = [
            self._get_batch_samples(iter(parts), len(parts), *args)[1]
            for parts in (self._parts(copy, batches) for copy in self._copies)
        ]
        return batches, n_items

    def _parts(self, copy, batches):
        """The rows of batches that a copy is trained on."""
        parts = []
        for batch, rows in zip(batches, self._rows):
            kept = copy.kept_places(rows)
            if len(kept):
                parts.append(self.take_rows(batch, kept, len(rows)))
        return parts

    def _step_with_copies(self, model, inputs, num_items_in_batch=None):
        """As ``Trainer.training_step``, of which copies have theirs."""
        # Losses may take what they need out of a dictionary.
        batch = dict(inputs)
        self._begin_batch()
        loss = self._training_step(model, inputs, num_items_in_batch)

        def backward(network, part, number):
            n_items = num_items_in_batch if number is None else self._n_items[number]
            self._training_step(network, part, n_items)

        self._follow(batch, self._rows.pop(0), backward)
        return loss

    def on_pre_optimizer_step(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Update the copies."""

        def clip(copy):
            if args.max_grad_norm > 0:
                parameters = copy.network.parameters()
                torch.nn.utils.clip_grad_norm_(parameters, args.max_grad_norm)

        self._update(kwargs["optimizer"], clip)

    def on_optimizer_step(
        self, args: Any, state: Any, control: Any, **kwargs: Any
    ) -> None:
        """Check the first updates."""
        self._end_update()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Stop, if an evaluation after this update says so."""
        control.should_training_stop |= self._should_stop

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Evaluate the copies."""
        self._end_epoch()
        control.should_training_stop |= self._should_stop

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Load the best state."""
        self._end()

    def _let_go(self):
        super()._let_go()
        for name, own in self._own.items():
            del vars(self.trainer)[name]
            if own is not None:
                setattr(self.trainer, name, own)
        self._own = {}

    # ---- losses and predictions

    def _judge(self, network, batches):
        trainer = self.trainer
        only_loss = trainer.args.prediction_loss_only and self.monitor is None
        total, n_rows, parts = 0.0, 0, []
        for size, batch in batches:
            loss, *part = trainer.prediction_step(network, batch, only_loss)
            if loss is None:
                raise ValueError(
                    f"The training rows have no labels ({trainer.label_names}), so "
                    "held-out rows have no loss."
                )
            if trainer.preprocess_logits_for_metrics is not None and not only_loss:
                part[0] = trainer.preprocess_logits_for_metrics(*part)
            total, n_rows = total + size * float(loss), n_rows + size
            parts.append(tuple(part))
        if only_loss:
            return total / n_rows, None
        # Batches may differ in length: the trainer's own evaluation fills them up so.
        joined = partial(nested_concat, padding_index=-100)
        predictions, labels = nested_numpify(reduce(joined, parts))
        value = total / n_rows
        if self.monitor is not None:
            metrics = trainer.compute_metrics(EvalPrediction(predictions, labels))
            value = metrics[self.monitor]
        # A model may return more than one thing.
        return value, predictions if isinstance(predictions, np.ndarray) else None
