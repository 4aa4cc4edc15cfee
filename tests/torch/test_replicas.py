"""Folds and rows as replicas of a run, against refits by a plain loop."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import KFold

torch = pytest.importorskip("torch", reason="needs skacv[torch]")

from torch.optim import SGD, Adam, lr_scheduler  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from skacv.torch import (  # noqa: E402
    TorchClassifier,
    TrajectoryACV,
    draw,
    shuffled_batches,
)

from .models import (  # noqa: E402
    linear,
    log_loss,
    network,
    refitted,
    refitted_without,
    squared,
)

OPTIMIZERS = {
    "sgd": partial(SGD, lr=0.3),
    "nesterov": partial(SGD, lr=0.1, momentum=0.9, nesterov=True),
    "adam": partial(Adam, lr=0.05),
    "adamw": partial(torch.optim.AdamW, lr=0.05, weight_decay=0.1),
    "rmsprop": partial(torch.optim.RMSprop, lr=0.01),
}
HALVED = partial(lr_scheduler.StepLR, step_size=4, gamma=0.5)


def ridge(params):
    return 0.05 * sum((value**2).sum() for value in params.values())


@pytest.mark.parametrize("loss", [log_loss, squared])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_folds_are_refits(name, loss, logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear(5), loss, OPTIMIZERS[name], HALVED, ridge)
    run = acv.run(X, y, n_steps=15)
    splits = list(KFold(4).split(X))
    found = run.cv_path(splits, block_size=3)
    for _, rows in splits:
        expected = refitted_without(acv, X, y, 15, rows)
        own = found.prediction_path[:, np.isin(found.indices, rows)]
        np.testing.assert_allclose(own, expected, atol=1e-10)


SCHEDULES = {
    "step": partial(lr_scheduler.StepLR, step_size=4, gamma=0.5),
    "one cycle": partial(lr_scheduler.OneCycleLR, max_lr=0.3, total_steps=15),
    "cosine": partial(lr_scheduler.CosineAnnealingLR, T_max=15),
    "lambda": partial(lr_scheduler.LambdaLR, lr_lambda=lambda t: 1 / (1 + t)),
    "restarts": partial(lr_scheduler.CosineAnnealingWarmRestarts, T_0=4),
    "warm-up": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer,
        [
            lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5),
            lr_scheduler.CosineAnnealingLR(optimizer, 10),
        ],
        milestones=[5],
    ),
}


@pytest.mark.parametrize("name", ["nesterov", "adamw"])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_schedules_are_those_of_refits(schedule, name, logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(network(5, 1), of_column, OPTIMIZERS[name], SCHEDULES[schedule])
    run = acv.run(X, y, n_steps=15)
    splits = list(KFold(3).split(X))
    found = run.cv_path(splits)
    constant = TrajectoryACV(network(5, 1), of_column, OPTIMIZERS[name])
    assert abs(constant.run(X, y, 15).train_path[-1] - run.train_path[-1]) > 1e-3
    for _, rows in splits:
        expected = refitted_without(acv, X, y, 15, rows)
        own = found.prediction_path[:, np.isin(found.indices, rows)]
        np.testing.assert_allclose(own, expected, atol=1e-10)


def of_column(y, z):
    return log_loss(y, z[:, 0])


def test_schedules_by_a_loss_belong_in_a_loop(logistic_data):
    plateau = lr_scheduler.ReduceLROnPlateau
    acv = TrajectoryACV(linear(5), log_loss, OPTIMIZERS["sgd"], plateau)
    with pytest.raises(ValueError, match=r"ReduceLROnPlateau needs .* alongside\(X, y"):
        acv.run(*logistic_data, 3)
    with pytest.raises(ValueError, match="ReduceLROnPlateau needs a loss"):
        TorchClassifier(scheduler=plateau).fit(*logistic_data)


@pytest.mark.parametrize("name", ["sgd", "adam"])
def test_folds_are_refits_in_batches(name, logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear(5), log_loss, OPTIMIZERS[name], penalty=ridge)
    batches = shuffled_batches(40, 10, n_epochs=2)
    run = acv.run(X, y, 20, batches)  # gone through more than twice
    rows = np.array([3, 17, 20])
    found = run.cv_path([(np.setdiff1d(np.arange(40), rows), rows)])
    expected = refitted_without(acv, X, y, 20, rows, batches)
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)


@pytest.mark.parametrize("size", [None, 10])
def test_weights_are_those_of_a_plain_loop(size, logistic_data, rng):
    X, y = logistic_data
    weights = rng.uniform(0.1, 3, 40) * (np.arange(40) != 5)
    acv = TrajectoryACV(linear(5), log_loss, OPTIMIZERS["nesterov"], HALVED, ridge)
    batches = None if size is None else shuffled_batches(40, size, n_epochs=2)
    run = acv.run(X, y, 12, batches, sample_weight=weights)
    share = weights / weights.sum() * (1 if size is None else 40 / size)
    last = refitted(acv, X, y, 12, batches, share)[-1](torch.as_tensor(X))
    np.testing.assert_allclose(run.predict_path(X)[-1], last.detach(), atol=1e-10)
    losses = log_loss(torch.as_tensor(y), last).detach()
    expected = np.average(losses, weights=weights)
    np.testing.assert_allclose(run.train_path[-1], expected)
    rows = np.array([3, 17, 20])
    found = run.cv_path([(np.setdiff1d(np.arange(40), rows), rows)])
    expected = refitted_without(acv, X, y, 12, rows, batches, weights)
    np.testing.assert_allclose(found.prediction_path, expected, atol=1e-10)
    losses = log_loss(torch.as_tensor(y[rows]), torch.as_tensor(expected))
    expected = np.average(losses, axis=1, weights=weights[rows])
    np.testing.assert_allclose(found.path, expected)


def test_the_run_itself_is_that_of_the_optimiser(logistic_data):
    X, y = logistic_data
    acv = TrajectoryACV(linear(5), log_loss, partial(Adam, lr=0.05), HALVED)
    run = acv.run(X, y, 9)
    modules = refitted(acv, X, y, 9)
    X, y = map(torch.as_tensor, (X, y))
    for t, module in enumerate(modules):
        own = run.at_iteration(t)
        torch.testing.assert_close(own(X), module(X))
        cost = log_loss(y, module(X)).mean().item()
        np.testing.assert_allclose(run.train_path[t], cost)
    np.testing.assert_allclose(
        run.predict_path(X)[9], modules[9](X).detach().numpy(), rtol=1e-12
    )
    with pytest.raises(ValueError, match=r"t must be in \[-10, 9\]"):
        run.at_iteration(10)


def test_the_module_is_left_as_it_was(logistic_data):
    X, y = logistic_data
    module = linear(5)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    run = TrajectoryACV(module, log_loss, partial(Adam, lr=0.05)).run(X, y, 5)
    run.cv_path(2)
    run.at_iteration(5)
    for name, value in module.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_networks_with_several_outputs_and_frozen_layers(rng):
    X, y = rng.standard_normal((30, 4)), rng.integers(3, size=30)
    module = network(4, 3)
    module[0].bias.requires_grad_(False)
    cross_entropy = partial(torch.nn.functional.cross_entropy, reduction="none")
    acv = TrajectoryACV(
        module, lambda y, z: cross_entropy(z, y), partial(Adam, lr=0.02)
    )
    found = acv.run(X, y, 12).cv_path(KFold(3))
    expected = refitted_without(acv, X, y, 12, np.arange(10))
    assert found.prediction_path.shape == (13, 30, 3)
    np.testing.assert_allclose(found.prediction_path[:, :10], expected, atol=1e-10)


def test_single_precision(logistic_data):
    X, y = logistic_data
    exact = TrajectoryACV(linear(5), log_loss, partial(Adam, lr=0.05)).run(X, y, 15)
    single = TrajectoryACV(linear(5).float(), log_loss, partial(Adam, lr=0.05))
    found = single.run(X, y, 15).cv_path(4)
    assert found.prediction_path.dtype == np.float32
    np.testing.assert_allclose(found.path, exact.cv_path(4).path, rtol=1e-4)


def test_a_loader_is_drawn_once(logistic_data):
    X, y = map(torch.as_tensor, logistic_data)
    loader = DataLoader(TensorDataset(X, y), batch_size=16, shuffle=True)
    drawn_X, drawn_y, batches = draw(loader)
    assert sorted(drawn_X[:, 0].tolist()) == sorted(X[:, 0].tolist())
    assert [len(rows) for rows in batches] == [16, 16, 8]
    acv = TrajectoryACV(linear(5), log_loss, partial(SGD, lr=0.1))
    first, second = (acv.run(drawn_X, drawn_y, 6, batches).train_path for _ in range(2))
    np.testing.assert_array_equal(first, second)


def coupled_by_closure(params):
    return torch.optim.LBFGS(params)


def coupled_by_norm(params):
    class Normalised(SGD):
        def step(self, closure=None):
            for group in self.param_groups:
                for value in group["params"]:
                    value.grad /= value.grad.norm()
            super().step(closure)

    return Normalised(params, lr=0.1)


def coupled_by_shape(params):
    return torch.optim.Adafactor(params)


@pytest.mark.parametrize(
    "optimizer", [coupled_by_closure, coupled_by_norm, coupled_by_shape]
)
def test_optimisers_that_couple_replicas_are_refused(optimizer, logistic_data):
    X, y = logistic_data
    run = TrajectoryACV(linear(5), log_loss, optimizer).run(X, y, 3)
    with pytest.raises(ValueError, match="Replicas cannot share this optimiser"):
        run.cv_path(2)


def test_muon_is_refused(logistic_data):
    muon = getattr(torch.optim, "Muon", None)
    if muon is None:
        pytest.skip("this torch has no Muon")
    X, y = logistic_data
    module = torch.nn.Sequential(torch.nn.Linear(5, 1, bias=False), torch.nn.Flatten(0))
    run = TrajectoryACV(module.double(), log_loss, muon).run(X, y, 3)
    with pytest.raises(ValueError, match="Replicas cannot share this optimiser"):
        run.cv_path(2)
