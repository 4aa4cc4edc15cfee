"""Readers refuse what they cannot read, before they read anything of it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from skacv.optim.arrays import design_of
from skacv.optim.losses import Logistic
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.preconditioner import Preconditioner
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    EigenPro,
    GradientDescent,
    Newton,
    StochasticGradient,
    fixed_batches,
)
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.left_out.methods import LeaveOneOutTask, leave_one_out
from skacv.risk.left_out.replicas import leave_folds_out
from skacv.risk.memory.memory_matrix import estimate_risk
from skacv.risk.reader import Unreadable

from .test_curved_memory import PartOfTheRows

N_ROWS, N_COLUMNS = 30, 5
SEEN, UNSEEN = np.arange(10), np.arange(10, N_ROWS)


@pytest.fixture
def problem(rng):
    X = rng.standard_normal((N_ROWS, N_COLUMNS))
    y = X[:, :1] + rng.standard_normal((N_ROWS, 1))
    return Problem(design_of(X), y, np.full((N_ROWS, 1), 1 / N_ROWS))


def ran(problem, penalty, schedule):
    start = np.zeros((1, N_COLUMNS, 1))
    return problem, run(problem, [Phase(penalty, schedule, 5)], start)


def plain(problem):
    return ran(problem, SquaredL2(0.1), GradientDescent(0.1))


def with_prox(problem):
    return ran(problem, L1(0.1), GradientDescent(0.1))


def logistic(problem):
    labels = (problem.target > 0).astype(float)
    return plain(replace(problem, target=labels, loss=Logistic()))


def newton(problem):
    return ran(problem, SquaredL2(0.1), Newton(1.0))


def newton_of_logistic(problem):
    labels = (problem.target > 0).astype(float)
    return newton(replace(problem, target=labels, loss=Logistic()))


def part_of_the_rows(problem):
    return ran(problem, L1(0.1), PartOfTheRows(0.1))


def preconditioned(problem, batch_size=None):
    rng = np.random.default_rng(0)
    made = Preconditioner.of(problem.design, SEEN, 2, rng)
    batches = fixed_batches(N_ROWS, batch_size, 0)
    return ran(problem, SquaredL2(0.1), EigenPro(0.1, made, batches=batches))


def in_batches(problem):
    return preconditioned(problem, batch_size=10)


def lasso_in_batches(problem):
    return ran(problem, L1(0.1), StochasticGradient(0.1, 0.0, N_ROWS, 10, 0))


FOLD = [(SEEN, UNSEEN)]
LOO_OF_SEEN = partial(leave_one_out, rows=SEEN[:2])
LOO_OF_UNSEEN = partial(leave_one_out, rows=UNSEEN)
REFUSED = [
    (estimate_risk, newton, "derivative of every update"),
    (estimate_risk, newton_of_logistic, "derivative of every update"),
    (estimate_risk, part_of_the_rows, "or all rows once, batch by batch"),
    (LOO_OF_SEEN, preconditioned, "cannot be left out"),
    (LOO_OF_SEEN, in_batches, "cannot be left out"),
    (
        partial(leave_folds_out, folds=[*FOLD, (UNSEEN, SEEN)]),
        preconditioned,
        "cannot be left out",
    ),
]
BY_PROBES = partial(estimate_risk, method=4, rng=np.random.default_rng(0))
READ = [
    (estimate_risk, with_prox),
    (estimate_risk, preconditioned),
    (estimate_risk, logistic),
    (BY_PROBES, in_batches),
    (BY_PROBES, lasso_in_batches),
    (LOO_OF_UNSEEN, preconditioned),
    (LOO_OF_UNSEEN, in_batches),
    (partial(leave_one_out, rows=SEEN), logistic),
    (partial(leave_folds_out, folds=FOLD), preconditioned),
]


@pytest.mark.parametrize(("reader", "run_of", "message"), REFUSED)
def test_a_run_that_cannot_be_read_is_refused(reader, run_of, message, problem):
    problem, trajectory = run_of(problem)
    with pytest.raises(Unreadable, match=message):
        reader(problem, trajectory, rule=LeaveOutRule())
    # Not even its shape is looked at.
    with pytest.raises(Unreadable, match=message):
        reader(problem, replace(trajectory, predictor=None), rule=LeaveOutRule())


@pytest.mark.parametrize(("reader", "run_of"), READ)
def test_other_runs_are_read(reader, run_of, problem):
    problem, trajectory = run_of(problem)
    assert reader(problem, trajectory, rule=LeaveOutRule()) is not None


def test_coefficients_without_rows_that_were_seen_are_refused(problem):
    with pytest.raises(Unreadable, match="cannot be left out"):
        LeaveOneOutTask.of(*preconditioned(problem), SEEN[:2], LeaveOutRule())
