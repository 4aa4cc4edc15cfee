"""Folds beside Lightning's trainer: the paths are those of separate trainers."""

import logging
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import KFold

torch = pytest.importorskip("torch", reason="needs skacv[torch]")
lightning = pytest.importorskip("lightning.pytorch", reason="needs lightning")

from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from skacv.torch.lightning import FoldsCallback  # noqa: E402

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

warnings.filterwarnings("ignore", module="lightning")
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)


class Module(lightning.LightningModule):
    """A network, whose training loss is that of a regression."""

    def __init__(self, layers, optimizer, scheduler=None, interval="step"):
        super().__init__()
        self.layers, self.optimizer = layers, optimizer
        self.scheduler, self.interval = scheduler, interval

    def forward(self, X):
        return self.layers(X)[:, 0]

    def training_step(self, batch, batch_idx):
        X, y = batch
        loss = torch.nn.functional.mse_loss(self(X), y)
        self.log("loss", loss)
        return loss

    def predict_step(self, batch, batch_idx):
        return self(batch[0])

    def configure_optimizers(self):
        optimizer = self.optimizer([p for p in self.parameters() if p.requires_grad])
        if self.scheduler is None:
            return optimizer
        schedule = {"scheduler": self.scheduler(optimizer), "interval": self.interval}
        return {"optimizer": optimizer, "lr_scheduler": schedule}


class Evaluations(lightning.Callback):
    """The loss and the predictions of some rows, and the state, after every epoch."""

    def __init__(self, rows):
        self.rows, self.losses, self.predictions, self.states = rows, [], [], []

    def on_train_start(self, trainer, pl_module):
        X, y = self.rows
        pl_module.eval()
        with torch.no_grad():
            predictions = pl_module(X)
        pl_module.train()
        self.losses.append(((predictions - y) ** 2).mean().item())
        self.predictions.append(predictions.numpy())
        self.states.append(state_of(pl_module))

    on_train_epoch_end = on_train_start


def trained(module, loader, *callbacks, **settings):
    trainer = lightning.Trainer(
        max_epochs=N_EPOCHS,
        callbacks=list(callbacks),
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **settings,
    )
    trainer.fit(module, loader)
    return trainer


def network(*middle):
    torch.manual_seed(1)
    first = torch.nn.Linear(4, 6)
    return torch.nn.Sequential(first, *middle, torch.nn.ReLU(), torch.nn.Linear(6, 1))


def normalised():
    return network(torch.nn.BatchNorm1d(6))


def with_frozen_body():
    layers = network()
    layers[0].requires_grad_(False)
    return layers


ADAMW = partial(torch.optim.AdamW, lr=0.03, weight_decay=0.1)
MOMENTUM = partial(torch.optim.SGD, lr=0.03, momentum=0.9)
HALVED = partial(torch.optim.lr_scheduler.StepLR, step_size=2, gamma=0.5)
ONE_CYCLE = partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.05, total_steps=20)
SETTINGS = {
    "AdamW": (network, ADAMW, None, "step", {}),
    "momentum, halved steps": (network, MOMENTUM, HALVED, "epoch", {}),
    "one cycle": (network, ADAMW, ONE_CYCLE, "step", {}),
    "accumulation": (network, MOMENTUM, None, "step", {"accumulate_grad_batches": 2}),
    "clipping": (network, MOMENTUM, None, "step", {"gradient_clip_val": 0.3}),
    "batch normalisation": (
        normalised,
        ADAMW,
        None,
        "step",
        {},
    ),
    "frozen features": (with_frozen_body, ADAMW, None, "step", {}),
    "bfloat16": (network, MOMENTUM, None, "step", {"precision": "bf16-mixed"}),
}


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((N_ROWS, 4)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + 0.3 * rng.standard_normal(N_ROWS).astype(np.float32)
    return torch.tensor(X), torch.tensor(y)


@pytest.mark.parametrize("name", SETTINGS)
def test_paths_are_those_of_separate_trainers(name, rows):
    make, optimizer, scheduler, interval, settings = SETTINGS[name]
    data, evaluations = TensorDataset(*rows), []
    for kept, held_out in FOLDS:
        of_fold = Evaluations(data[held_out])
        loader = DataLoader(data, batch_sampler=FixedBatches(kept))
        module = Module(make(), optimizer, scheduler, interval)
        trained(module, loader, of_fold, **settings)
        evaluations.append(of_fold)
    alone, loader = Evaluations(rows), DataLoader(data, batch_sampler=FixedBatches())
    module = Module(make(), optimizer, scheduler, interval)
    trained(module, loader, alone, **settings)

    folds = FoldsCallback(FOLDS, patience=None)
    module = Module(make(), optimizer, scheduler, interval)
    loader = DataLoader(data, batch_sampler=FixedBatches())
    trained(module, folds.record_rows(loader), folds, **settings)
    losses = np.array([of_fold.losses for of_fold in evaluations])
    mean, error = fold_means(losses)
    close = {"rtol": 1e-4, "atol": 1e-5}
    if name == "bfloat16":  # rounded to 8 bits, at other places in other batches
        close = {"rtol": 0.02, "atol": 0.02}
    np.testing.assert_allclose(folds.path_, mean, **close)
    np.testing.assert_allclose(folds.se_path_, error, **close)
    best = folds.path_.argmin()
    assert folds.best_iteration_ == folds.iterations_[best]
    # The module takes the same updates as without the callback.
    assert_same_state(state_of(module), alone.states[best], rtol=0, atol=0)
    for (_, held_out), of_fold in zip(FOLDS, evaluations):
        predictions = folds.held_out_prediction_[held_out]
        np.testing.assert_allclose(predictions, of_fold.predictions[best], **close)


def test_it_stops_and_the_module_has_the_best_state(rows):
    # By evaluation; the third one is the best.
    values, states = [3.0, 2.0, 1.0, 1.5, 1.0], []

    def scripted(module, batch):
        return values[len(folds.path_)]

    folds = FoldsCallback(FOLDS, monitor=scripted, patience=2, every=3)

    class States(lightning.Callback):
        def on_train_batch_end(self, trainer, pl_module, *args):
            states.append(state_of(pl_module))

    module = Module(network(), partial(torch.optim.Adam, lr=0.1))
    states.append(state_of(module))
    loader = DataLoader(TensorDataset(*rows), batch_sampler=FixedBatches())
    trained(module, folds.record_rows(loader), folds, States())
    assert len(states) - 1 == 12
    assert folds.iterations_.tolist() == [0, 3, 6, 9, 12]
    assert folds.path_.tolist() == values
    assert folds.best_iteration_ == 6
    best = states[folds.best_iteration_]
    assert_same_state(state_of(module), best, rtol=0, atol=0)


def test_what_is_monitored_may_be_maximised(rows):
    def correlation(module, batch):
        return torch.corrcoef(torch.stack([module(batch[0]), batch[1]]))[0, 1]

    folds = FoldsCallback(
        FOLDS,
        monitor=correlation,
        mode="max",
        patience=None,
        predict=lambda module, batch: module(batch[0])[:, None],
    )
    module = Module(network(), ADAMW)
    loader = DataLoader(TensorDataset(*rows), batch_size=N_ROWS)
    trained(module, folds.record_rows(loader), folds)
    best = folds.path_.argmax()
    assert folds.best_iteration_ == best  # one update in each epoch
    expected = [
        np.corrcoef(folds.held_out_prediction_[held_out, 0], rows[1][held_out])[0, 1]
        for _, held_out in FOLDS
    ]
    np.testing.assert_allclose(
        folds.path_[best], fold_means(np.array(expected))[0], rtol=1e-5
    )


@pytest.mark.parametrize("is_frozen", [False, True])
def test_random_numbers_of_the_run_are_its_own(is_frozen, rows):
    def run(*callbacks):
        torch.manual_seed(2)
        body = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
        body.requires_grad_(not is_frozen)
        layers = torch.nn.Sequential(body, network(torch.nn.Dropout(0.5)))
        module = Module(layers, ADAMW)
        loader = DataLoader(TensorDataset(*rows), batch_size=8, shuffle=True)
        for folds in callbacks:
            loader = folds.record_rows(loader)
        torch.manual_seed(0)
        trained(module, loader, *callbacks)
        return module

    folds = [FoldsCallback(FOLDS, patience=None, restore_best=False) for _ in range(2)]
    state = state_of(run())
    for callback in folds:
        assert_same_state(state_of(run(callback)), state, rtol=0, atol=0)
    np.testing.assert_array_equal(folds[0].path_, folds[1].path_)


class Body(torch.nn.Linear):
    """A layer that counts the rows that it is called with."""

    n_rows = 0

    def forward(self, X):
        self.n_rows += len(X)
        return super().forward(X)


def test_frozen_parts_are_shared_and_computed_once(rows):
    body = Body(4, 6).requires_grad_(False)
    layers = torch.nn.Sequential(body, torch.nn.ReLU(), torch.nn.Linear(6, 1))
    folds = FoldsCallback(FOLDS, patience=None)
    loader = DataLoader(TensorDataset(*rows), batch_sampler=FixedBatches())
    trained(Module(layers, ADAMW), folds.record_rows(loader), folds)
    # Training, and three updates of a copy with all rows; then all rows are held out
    # once, for the loss and for predictions.
    n_trained = N_EPOCHS * N_ROWS + 3 * BATCH_SIZE
    assert body.n_rows == n_trained + 2 * (N_EPOCHS + 1) * N_ROWS


def test_rows_may_be_predicted_as_another_dataset_has_them(rows):
    X, y = rows
    noisy = TensorDataset(X + torch.randn(X.shape), y)
    folds = FoldsCallback(FOLDS, patience=None, dataset=TensorDataset(X, y))
    module = Module(network(), ADAMW)
    trained(module, folds.record_rows(DataLoader(noisy, batch_size=8)), folds)
    errors = (folds.held_out_prediction_ - y.numpy()) ** 2
    np.testing.assert_allclose(folds.path_.min(), errors.mean(), rtol=1e-5)


class OwnUpdates(Module):
    automatic_optimization = False


class TwoOptimisers(Module):
    automatic_optimization = False

    def configure_optimizers(self):
        return [super().configure_optimizers(), super().configure_optimizers()]


class NoisyGradients(Module):
    def on_after_backward(self):
        for p in self.parameters():
            p.grad.mul_(3)


class Thawed(Module):
    def on_train_epoch_start(self):
        self.layers[0].requires_grad_(self.current_epoch > 0)


REFUSED = {
    "manual optimisation": (OwnUpdates, network, {}, "manual optimisation"),
    "changed gradients": (NoisyGradients, network, {}, "differs from that of a copy"),
    "thawed": (Thawed, with_frozen_body, {}, "Other parameters are trained now"),
    "nothing to train": (
        Module,
        lambda: network().requires_grad_(False),
        {},
        "No parameter",
    ),
    "another dataset": (
        Module,
        network,
        {"dataset": TensorDataset(torch.zeros(3))},
        "dataset has 3 rows, but training has 40",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_folds_cannot_follow_is_refused(name, rows):
    make, layers, settings, message = REFUSED[name]
    folds = FoldsCallback(FOLDS, **settings)
    module = make(layers(), partial(torch.optim.SGD, lr=0.1))
    if name == "nothing to train":
        module.configure_optimizers = lambda: torch.optim.SGD([torch.zeros(1)], lr=0.1)
    loader = folds.record_rows(DataLoader(TensorDataset(*rows), batch_size=8))
    with pytest.raises(ValueError, match=message):
        trained(module, loader, folds)
    assert not module.layers[0]._forward_hooks


def test_a_loader_that_does_not_tell_its_rows_is_refused(rows):
    folds = FoldsCallback()
    loader = DataLoader(TensorDataset(*rows), batch_size=8)
    with pytest.raises(ValueError, match=r"folds\.record_rows"):
        trained(Module(network(), ADAMW), loader, folds)
    with pytest.raises(ValueError, match="a batch_size"):
        folds.record_rows(DataLoader(TensorDataset(*rows), batch_size=None))


def test_a_run_that_is_resumed_is_refused(rows, tmp_path):
    loader = DataLoader(TensorDataset(*rows), batch_size=8)
    trainer = trained(Module(network(), ADAMW), loader)
    trainer.save_checkpoint(tmp_path / "last.ckpt")
    folds = FoldsCallback()
    trainer = lightning.Trainer(
        max_epochs=6,
        callbacks=[folds],
        logger=False,
        accelerator="cpu",
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    with pytest.raises(ValueError, match="resumed"):
        trainer.fit(
            Module(network(), ADAMW),
            folds.record_rows(loader),
            ckpt_path=tmp_path / "last.ckpt",
            weights_only=False,
        )


def test_a_copy_that_diverges_leaves_a_hole_in_the_path(rows):
    X, y = rows[0].clone(), rows[1].clone()
    # Without the last row, which never is in a batch, no copy has seen its size.
    X[-1] = torch.inf
    folds = FoldsCallback(FOLDS, patience=None)
    data = TensorDataset(X, y)
    loader = DataLoader(
        data,
        batch_sampler=torch.utils.data.BatchSampler(
            range(N_ROWS - 1), 13, drop_last=False
        ),
    )
    with pytest.warns(UserWarning, match="not finite after update 0"):
        trained(Module(network(), ADAMW), folds.record_rows(loader), folds)
    assert np.isnan(folds.path_).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mode": "least"}, "mode must be 'min' or 'max'"),
        ({"min_delta": -1.0}, "min_delta"),
        ({"patience": 0}, "patience"),
        ({"every": 0}, "every"),
        ({"folds": KFold(3)}, r"list\(splitter.split"),
    ],
)
def test_parameters_are_checked_first(settings, message):
    with pytest.raises(ValueError, match=message):
        FoldsCallback(**settings)
