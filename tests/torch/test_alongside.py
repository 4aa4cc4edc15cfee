"""Folds that follow a loop of a user's own, against a recorded run."""

from functools import partial

import numpy as np
import pytest
from sklearn.model_selection import KFold

torch = pytest.importorskip("torch", reason="needs skacv[torch]")

from skacv.torch import TrajectoryACV, shuffled_batches  # noqa: E402

from .models import linear, log_loss  # noqa: E402

ADAM = partial(torch.optim.Adam, lr=0.1)
HALVED = partial(torch.optim.lr_scheduler.StepLR, step_size=4, gamma=0.5)


class Loop:
    """A user's own."""

    def __init__(self, module, X, y):
        self.module, self.X, self.y = module, *map(torch.as_tensor, (X, y))
        self.optimizer = ADAM(module.parameters())
        self.scheduler = HALVED(self.optimizer)

    def update(self, rows):
        self.optimizer.zero_grad()
        log_loss(self.y[rows], self.module(self.X[rows])).mean().backward()
        self.optimizer.step()
        self.scheduler.step()


def follow(live, loop, rows, told):
    """Ten updates on some rows, told to be on others."""
    for _ in range(10):
        loop.update(rows)
        live.step(told)


def test_it_is_the_recorded_run_with_its_folds(logistic_data):
    X, y = logistic_data
    module, batches = linear(5), shuffled_batches(40, 16, n_epochs=4)
    acv = TrajectoryACV(module, log_loss, ADAM, HALVED)
    recorded = acv.run(X, y, len(batches), batches)
    expected = recorded.cv_path(4)
    live, loop = acv.alongside(X, y, folds=4), Loop(module, X, y)
    for rows in batches:
        loop.update(rows)
        live.step(rows)
    np.testing.assert_allclose(live.path_, expected.path, rtol=1e-10)
    np.testing.assert_allclose(live.se_path_, expected.se_path, rtol=1e-10)
    assert live.best_iteration_ == expected.best_iteration
    best = recorded.at_iteration(live.best_iteration_)
    torch.testing.assert_close(live.load_best().state_dict(), best.state_dict())
    assert live.load_best() is module


def test_it_stops_a_loop_and_is_judged_now_and_then(logistic_data):
    X, y = logistic_data
    module, n_updates = linear(5), 0
    live = TrajectoryACV(module, log_loss, ADAM).alongside(X, y, folds=3, every=5)
    loop = Loop(module, X, y)
    loop.scheduler = torch.optim.lr_scheduler.ConstantLR(loop.optimizer, 1.0)
    while not live.should_stop(patience=2) and n_updates < 500:
        loop.update(slice(None))
        live.step()
        n_updates += 1
    assert n_updates == live.n_steps_ == live.iterations_[-1] < 500
    assert live.best_iteration_ == n_updates - 10
    assert live.path_.argmin() == len(live.path_) - 3


@pytest.mark.parametrize("told", [None, np.arange(16, 32)])
def test_a_loop_on_other_rows_is_noticed(told, logistic_data):
    X, y = logistic_data
    module = linear(5)
    live = TrajectoryACV(module, log_loss, ADAM, HALVED).alongside(X, y)
    loop = Loop(module, X, y)
    with pytest.raises(ValueError, match=r"pass step\(\) the rows"):
        follow(live, loop, np.arange(16), told)


def test_another_schedule_is_noticed(logistic_data):
    X, y = logistic_data
    module = linear(5)
    live = TrajectoryACV(module, log_loss, ADAM).alongside(X, y)
    loop = Loop(module, X, y)
    with pytest.raises(ValueError, match="After update 5 the loop's parameters"):
        follow(live, loop, slice(None), None)


def losses_of_separate_loops(loops, splits, X, y):
    """The mean of the losses on held-out rows, each by the loop without them."""
    sums = [
        log_loss(y[test], loop.module(X[test])).sum().item()
        for loop, (_, test) in zip(loops, splits)
    ]
    return sum(sums) / len(y)


@pytest.mark.parametrize("optimizer", [ADAM, partial(torch.optim.SGD, lr=1.0)])
def test_a_plateau_of_the_held_out_loss_is_that_of_separate_loops(
    optimizer, logistic_data
):
    X, y = logistic_data
    plateau = partial(
        torch.optim.lr_scheduler.ReduceLROnPlateau, factor=0.5, patience=2
    )
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    module = linear(5)
    loops = [Loop(linear(5), X[train], y[train]) for train, _ in splits]
    live = TrajectoryACV(module, log_loss, optimizer).alongside(X, y, splits)
    loop = Loop(module, X, y)
    for each in (loop, *loops):
        each.optimizer = optimizer(each.module.parameters())
        each.scheduler = torch.optim.lr_scheduler.ConstantLR(each.optimizer, 1.0)
    schedulers = [plateau(each.optimizer) for each in (loop, *loops)]
    rates, of_all = [], (loop.X, loop.y)
    path = [losses_of_separate_loops(loops, splits, *of_all)]
    for _ in range(60):
        for each in (loop, *loops):
            each.update(slice(None))
        live.step(None, loop.optimizer)
        path.append(losses_of_separate_loops(loops, splits, *of_all))
        schedulers[0].step(live.path_[-1])
        for scheduler in schedulers[1:]:
            scheduler.step(path[-1])
        rates.append([s.optimizer.param_groups[0]["lr"] for s in schedulers])
    np.testing.assert_allclose(live.path_, path, rtol=1e-9)
    assert (np.ptp(rates, axis=1) == 0).all()
    assert len({rate for rate, *_ in rates}) > 2


def test_a_schedule_of_the_loop_may_change_all_settings(logistic_data):
    X, y = logistic_data
    cycle = partial(torch.optim.lr_scheduler.OneCycleLR, max_lr=0.3, total_steps=20)
    module = linear(5)
    expected = TrajectoryACV(module, log_loss, ADAM, cycle).run(X, y, 20).cv_path(3)
    live, loop = TrajectoryACV(module, log_loss, ADAM).alongside(X, y, 3), None
    loop = Loop(module, X, y)
    loop.scheduler = torch.optim.lr_scheduler.ConstantLR(loop.optimizer, 1.0)
    scheduler = cycle(loop.optimizer)
    for _ in range(20):
        loop.update(slice(None))
        live.step(optimizer=loop.optimizer)
        scheduler.step()
    np.testing.assert_allclose(live.path_, expected.path, rtol=1e-9)


def test_one_schedule_at_a_time(logistic_data):
    X, y = logistic_data
    module = linear(5)
    loop = Loop(module, X, y)
    loop.update(slice(None))
    live = TrajectoryACV(linear(5), log_loss, ADAM, HALVED).alongside(X, y)
    with pytest.raises(ValueError, match="The folds have a scheduler of their own"):
        live.step(None, loop.optimizer)
    live = TrajectoryACV(linear(5), log_loss, ADAM).alongside(X, y)
    groups = [{"params": [value]} for value in module.parameters()]
    with pytest.raises(ValueError, match=r"2 groups of parameters, .* makes 1"):
        live.step(None, ADAM(groups))
    assert live.n_steps_ == 0


def test_weights_of_a_loop(logistic_data, rng):
    X, y = logistic_data
    weights, batches = rng.uniform(0.1, 3, 40), shuffled_batches(40, 16, n_epochs=4)
    module, scaled = linear(5), torch.as_tensor(weights / weights.mean())
    acv = TrajectoryACV(module, log_loss, ADAM)
    run = acv.run(X, y, len(batches), batches, sample_weight=weights)
    live = acv.alongside(X, y, folds=4, sample_weight=weights)
    loop = Loop(module, X, y)
    for rows in batches:
        loop.optimizer.zero_grad()
        losses = log_loss(loop.y[rows], module(loop.X[rows]))
        (scaled[rows] * losses).mean().backward()
        loop.optimizer.step()
        live.step(rows)
    expected = run.cv_path(4)
    np.testing.assert_allclose(live.path_, expected.path, rtol=1e-10)
    np.testing.assert_allclose(live.se_path_, expected.se_path, rtol=1e-10)


def test_a_schedule_that_departs_late_is_warned_of_once(logistic_data):
    X, y = logistic_data
    module, loop_schedule = (
        linear(5),
        partial(torch.optim.lr_scheduler.StepLR, step_size=20, gamma=0.8),
    )
    live = TrajectoryACV(module, log_loss, ADAM).alongside(X, y)
    loop = Loop(module, X, y)
    loop.scheduler = loop_schedule(loop.optimizer)
    follow(live, loop, slice(None), None)
    follow(live, loop, slice(None), None)
    with pytest.warns(UserWarning, match="After update 21 the loop's") as said:
        follow(live, loop, slice(None), None)
    assert len(said) == 1


@pytest.mark.filterwarnings("error")
def test_rounding_that_a_network_amplifies_is_no_departure():
    """From another rounding, runs of such steps are far apart after 100 updates."""
    torch.manual_seed(0)
    X = torch.randn(100, 5)
    y = torch.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * torch.randn(100)
    layers = [torch.nn.Linear(5, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32)]
    layers += [torch.nn.Tanh(), torch.nn.Linear(32, 1), torch.nn.Flatten(0)]
    module = torch.nn.Sequential(*layers)

    def squared(y, prediction):
        return (y - prediction) ** 2

    def sgd(params):
        return torch.optim.SGD(params, lr=0.15)

    live = TrajectoryACV(module, squared, sgd).alongside(X, y, folds=2, every=100)
    optimizer = sgd(module.parameters())
    for _ in range(300):
        optimizer.zero_grad()
        squared(y, module(X)).mean().backward()
        optimizer.step()
        live.step()
    assert live.n_steps_ == 300
