"""Folds that follow a loop of a user's own, against a recorded run."""

from functools import partial

import numpy as np
import pytest

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
