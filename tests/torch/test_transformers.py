"""Folds beside a Trainer of transformers: paths are those of separate trainers."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs skacv[torch]")
transformers = pytest.importorskip("transformers", reason="needs transformers")
pytest.importorskip("accelerate", reason="needs accelerate")

from torch.utils.data import DataLoader  # noqa: E402

from skacv.torch.transformers import FoldsCallback  # noqa: E402

from .trainers import (  # noqa: E402
    BATCH_SIZE,
    FOLDS,
    N_EPOCHS,
    N_ROWS,
    FixedBatches,
    assert_same_state,
    fold_means,
    state_of,
)

N_WORDS = 20
SIZES = {
    "vocab_size": N_WORDS,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
}


class Trainer(transformers.Trainer):
    """Batches are given; of a fold without its rows."""

    kept = None

    def get_train_dataloader(self):
        batches = FixedBatches(self.kept)
        loader = DataLoader(
            self.train_dataset, batch_sampler=batches, collate_fn=self.data_collator
        )
        return self.accelerator.prepare(loader)


class Evaluations(transformers.TrainerCallback):
    """The loss and the predictions of some rows, and the state, after every epoch."""

    def __init__(self, trainer, rows):
        self.trainer, self.rows = trainer, rows
        self.losses, self.predictions, self.states = [], [], []

    def on_train_begin(self, args, state, control, model, **kwargs):
        found = self.trainer.predict(self.rows)
        self.losses.append(found.metrics["test_loss"])
        self.predictions.append(found.predictions)
        self.states.append(state_of(model))

    on_epoch_end = on_train_begin


def sentences(rng):
    """Sentences of different lengths, and whether some word is among them."""
    rows = []
    for _ in range(N_ROWS):
        words = rng.integers(1, N_WORDS, size=rng.integers(3, 9))
        rows.append({"input_ids": words.tolist(), "labels": int((words < 4).any())})
    return rows


def padded(rows):
    """A collator: sentences filled up with zeros, which are not attended to."""
    ids = [torch.tensor(row["input_ids"]) for row in rows]
    ids = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    labels = [torch.as_tensor(row["labels"]) for row in rows]
    if labels[0].ndim:
        labels = torch.nn.utils.rnn.pad_sequence(
            labels, batch_first=True, padding_value=-100
        )
    else:
        labels = torch.stack(labels)
    return {"input_ids": ids, "attention_mask": (ids > 0).long(), "labels": labels}


def classifier(**settings):
    torch.manual_seed(0)
    config = transformers.BertConfig(
        **SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **settings
    )
    return transformers.BertForSequenceClassification(config)


def with_frozen_encoder():
    model = classifier()
    model.bert.requires_grad_(False)
    return model


def language_model():
    torch.manual_seed(0)
    config = transformers.LlamaConfig(**SIZES, attention_dropout=0.0)
    return transformers.LlamaForCausalLM(config)


def trainer_of(model, rows, folder, **settings):
    args = transformers.TrainingArguments(
        str(folder),
        **{
            "num_train_epochs": N_EPOCHS,
            "learning_rate": 0.01,
            "per_device_train_batch_size": BATCH_SIZE,
            "per_device_eval_batch_size": BATCH_SIZE,
            "use_cpu": True,
            "report_to": [],
            "disable_tqdm": True,
            "save_strategy": "no",
            "logging_strategy": "no",
            **settings,
        },
    )
    trainer = Trainer(model, args, train_dataset=rows, data_collator=padded)
    trainer.remove_callback(transformers.PrinterCallback)
    return trainer


SETTINGS = {
    "AdamW, weight decay, warm-up": (
        classifier,
        {"weight_decay": 0.1, "warmup_steps": 3},
    ),
    "momentum": (classifier, {"optim": "sgd", "optim_args": "momentum=0.9"}),
    "accumulation": (classifier, {"gradient_accumulation_steps": 2}),
    "clipping, cosine": (
        classifier,
        {"max_grad_norm": 0.1, "lr_scheduler_type": "cosine"},
    ),
    "smoothed labels": (classifier, {"label_smoothing_factor": 0.1}),
    "frozen encoder": (with_frozen_encoder, {}),
    "tokens": (language_model, {"gradient_accumulation_steps": 2}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_paths_are_those_of_separate_trainers(name, rng, tmp_path):
    make, settings = SETTINGS[name]
    rows, evaluations = sentences(rng), []
    if name == "tokens":
        rows = [{**row, "labels": row["input_ids"]} for row in rows]
    for kept, held_out in FOLDS:
        trainer = trainer_of(make(), rows, tmp_path, **settings)
        trainer.kept = kept
        evaluations.append(Evaluations(trainer, [rows[row] for row in held_out]))
        trainer.add_callback(evaluations[-1])
        trainer.train()
    trainer = trainer_of(make(), rows, tmp_path, **settings)
    alone = Evaluations(trainer, rows[:3])
    trainer.add_callback(alone)
    trainer.train()

    trainer = trainer_of(make(), rows, tmp_path, **settings)
    folds = FoldsCallback(trainer, FOLDS, patience=None)
    trainer.add_callback(folds)
    trainer.train()
    losses = np.array([of_fold.losses for of_fold in evaluations])
    mean, error = fold_means(losses)
    close = {"rtol": 1e-4, "atol": 1e-5}
    np.testing.assert_allclose(folds.path_, mean, **close)
    np.testing.assert_allclose(folds.se_path_, error, **close)
    best = folds.path_.argmin()
    assert folds.best_iteration_ == folds.iterations_[best]
    # The model takes the same updates as without the callback.
    assert_same_state(state_of(trainer.model), alone.states[best], rtol=0, atol=0)
    for (_, held_out), of_fold in zip(FOLDS, evaluations):
        predictions = np.asarray(of_fold.predictions[best])
        for row, prediction in zip(held_out, predictions):
            own = folds.held_out_prediction_[row]
            shared = min(len(own), len(prediction)) if own.ndim > 1 else None
            np.testing.assert_allclose(own[:shared], prediction[:shared], **close)
    assert not {"training_step", "get_batch_samples"} & vars(trainer).keys()


def accuracy(evaluated):
    return {
        "accuracy": (evaluated.predictions.argmax(-1) == evaluated.label_ids).mean()
    }


def test_it_stops_by_a_metric(rng, tmp_path):
    rows = sentences(rng)
    trainer = trainer_of(classifier(), rows, tmp_path, num_train_epochs=30)
    trainer.compute_metrics = accuracy
    folds = FoldsCallback(
        trainer, FOLDS, monitor="accuracy", mode="max", patience=2, every=4
    )
    trainer.add_callback(folds)
    trainer.train()
    n_updates = trainer.state.global_step
    assert n_updates < 30 * len(FixedBatches())
    assert folds.iterations_.tolist() == list(range(0, n_updates + 1, 4))
    assert folds.best_iteration_ == 4 * folds.path_.argmax()
    labels = np.array([row["labels"] for row in rows])
    are_right = folds.held_out_prediction_.argmax(1) == labels
    np.testing.assert_allclose(folds.path_.max(), are_right.mean())


def test_dropout_of_the_run_is_its_own(rng, tmp_path):
    def run(has_folds):
        model = classifier()
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.5
        trainer = trainer_of(model, rows, tmp_path)
        folds = FoldsCallback(trainer, FOLDS, patience=None, restore_best=False)
        if has_folds:
            trainer.add_callback(folds)
        trainer.train()
        return state_of(model)

    rows = sentences(rng)
    assert_same_state(run(True), run(False), rtol=0, atol=0)


def test_predictions_need_not_be_kept(rng, tmp_path):
    trainer = trainer_of(
        classifier(), sentences(rng), tmp_path, prediction_loss_only=True
    )
    folds = FoldsCallback(trainer, FOLDS)
    trainer.add_callback(folds)
    trainer.train()
    with pytest.raises(AttributeError, match="prediction_loss_only"):
        _ = folds.held_out_prediction_


class Scaled(transformers.TrainerCallback):
    """Changes the gradients of the model alone."""

    def on_pre_optimizer_step(self, args, state, control, model, **kwargs):
        for p in model.parameters():
            p.grad.mul_(0.1)


def test_what_copies_cannot_follow_is_refused(rng, tmp_path):
    rows = sentences(rng)
    trainer = trainer_of(classifier(), rows, tmp_path, optim="sgd")
    trainer.add_callback(Scaled())
    trainer.add_callback(FoldsCallback(trainer, FOLDS))
    with pytest.raises(ValueError, match="differs from that of a copy"):
        trainer.train()
    with pytest.raises(ValueError, match="compute_metrics"):
        FoldsCallback(trainer, monitor="accuracy")
