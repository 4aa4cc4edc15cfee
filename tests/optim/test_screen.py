"""Updates on the columns that they can move against the same on all columns."""

from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

from skacv.optim import screen
from skacv.optim.arrays import design_of
from skacv.optim.design import MatrixDesign
from skacv.optim.families import GroupL2, Weighted, except_last
from skacv.optim.fits import WeightedFits
from skacv.optim.losses import (
    Huber,
    Logistic,
    Multinomial,
    Poisson,
    SquaredError,
    SquaredHinge,
)
from skacv.optim.penalties import L1, SquaredL2, Uniform
from skacv.optim.problem import Problem
from skacv.optim.run import Iterates, LiveRun
from skacv.optim.schedules import (
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase
from skacv.optim.updates import State
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.left_out.side_runs import SideFolds
from tests.penalties import with_prox

N, P = 40, 120
STRENGTHS = 0.5, 0.3, 0.2, 0.12


def unscreened(fits):
    """Every update is taken with all columns: what a screen is judged by."""


TARGETS = {
    Logistic: lambda z: np.where(z > 0, 1.0, 0.0),
    SquaredHinge: lambda z: np.where(z > 0, 1.0, -1.0),
    Multinomial: lambda z: np.eye(z.shape[1])[z.argmax(axis=1)],
    Poisson: lambda z: np.floor(np.exp(z - 1)),
}
SQUARED_ERROR = SquaredError()


def sparse_problem(rng, loss=SQUARED_ERROR, array=np.asarray, dtype=np.float64, k=1):
    """Few of many columns matter; rows have uneven weights."""
    X = rng.standard_normal((N, P)).astype(dtype)
    predictor = X[:, :3] @ rng.uniform(0.5, 1, (3, k)) + 0.3 * rng.standard_normal(
        (N, k)
    )
    target = TARGETS.get(type(loss), lambda z: z)(predictor)
    weights = rng.uniform(0.5, 1.5, (N, 1))
    weights /= weights.sum()
    design = design_of(array(X)).centered(weights)
    return Problem(design, target.astype(dtype), weights.astype(dtype), loss)


def plan_of(problem, penalty, schedule=Nesterov, n_updates=15, shares=STRENGTHS):
    """A path of strengths, from near the one that keeps all at zero."""
    step = 0.5 / (problem.smoothness if np.isfinite(problem.smoothness) else 20.0)
    zeros = np.zeros_like(problem.target)
    top = penalty.largest_strength(problem.gradient(zeros), problem.smoothness)
    return [
        Phase(penalty.with_strength(top * share), schedule(step), n_updates)
        for share in shares
    ]


def run_with(screen_of, problem, plan, start=None, side_runs=None):
    """A run whose updates are taken by a screen of that kind."""
    if start is None:
        start = np.zeros((1, P, problem.target.shape[1]), problem.design.dtype)
    with patch("skacv.optim.run.screen_of", screen_of):
        live = LiveRun(problem, plan, start, side_runs=side_runs)
        live.go_on(plan)
    return live


class Watched(screen.Screen):
    """Notes how many columns every update was taken on."""

    def __init__(self, fits, taken_on=None):
        super().__init__(fits)
        self.taken_on = [] if taken_on is None else taken_on

    def advance(self, update, penalty, state):
        state = super().advance(update, penalty, state)
        working = self.working
        self.taken_on.append(P if working is None else len(working.index))
        return state


def screened_run(problem, plan, start=None):
    """The record of a screened run, and on which share of the columns it was."""
    taken_on = []
    live = run_with(partial(Watched, taken_on=taken_on), problem, plan, start)
    return live.trajectory, np.mean(taken_on) / P


def assert_is_unscreened(found, problem, plan, start=None, tolerance=1e-12):
    """A record is that of the run on all columns."""
    expected = run_with(unscreened, problem, plan, start).trajectory
    assert found.phases == expected.phases
    gap = np.abs(found.coef - expected.coef).max()
    assert gap <= tolerance * np.abs(expected.coef).max()


PENALTIES = {
    **with_prox(1.0, 300.0),
    "weighted": Weighted(L1(1.0), np.linspace(0.5, 2, P)),
    "intercept": except_last(L1(1.0), P),
    "groups": GroupL2(1.0, np.arange(P) // 3, np.linspace(1, 2, P // 3)),
    "spared groups": except_last(GroupL2(1.0, np.arange(P - 1) // 2, np.ones(60)), P),
}


@pytest.mark.parametrize("penalty", PENALTIES.values(), ids=PENALTIES)
@pytest.mark.parametrize("schedule", [GradientDescent, Nesterov, HeavyBall])
def test_iterates_are_those_of_all_columns(penalty, schedule, rng):
    problem = sparse_problem(rng)
    plan = plan_of(problem, penalty, schedule)
    found, share = screened_run(problem, plan)
    assert_is_unscreened(found, problem, plan)
    assert share < 0.8


LOSSES = (Logistic(), Huber(0.5), SquaredHinge(), Poisson())


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("array", [np.asarray, sparse.csr_matrix])
def test_of_every_loss_and_array(loss, array, rng):
    problem = sparse_problem(rng, loss, array)
    plan = plan_of(problem, except_last(L1(1.0), P))
    found, share = screened_run(problem, plan)
    assert_is_unscreened(found, problem, plan)
    assert share < 0.8


def test_of_coupled_outputs(rng):
    problem = sparse_problem(rng, Multinomial(), k=3)
    # A column is left out where none of its three coefficients moves.
    plan = plan_of(problem, L1(1.0), shares=(0.7, 0.5, 0.4, 0.3))
    found, share = screened_run(problem, plan)
    assert_is_unscreened(found, problem, plan)
    assert share < 0.8


def test_in_single_precision(rng):
    problem = sparse_problem(rng, dtype=np.float32)
    plan = plan_of(problem, L1(1.0))
    found, share = screened_run(problem, plan)
    assert_is_unscreened(found, problem, plan, tolerance=1e-5)
    assert share < 0.8


def test_from_a_start_that_is_not_zero(rng):
    problem = sparse_problem(rng)
    start = rng.standard_normal((1, P, 1)) * (np.arange(P) % 7 == 0)[None, :, None]
    plan = plan_of(problem, L1(1.0))
    found, share = screened_run(problem, plan, start)
    assert_is_unscreened(found, problem, plan, start)
    assert share < 0.8


def test_from_a_dense_start_all_columns_are_taken(rng):
    problem = sparse_problem(rng)
    start = rng.standard_normal((1, P, 1))
    plan = plan_of(problem, L1(1e-3), n_updates=3)[-1:]
    found, share = screened_run(problem, plan, start)
    assert_is_unscreened(found, problem, plan, start)
    assert share >= 0.8


def test_a_run_that_goes_on(rng):
    """Momentum goes on in the phase, as the record has its last two iterates."""
    problem = sparse_problem(rng)
    plan = plan_of(problem, L1(1.0))
    begun = run_with(unscreened, problem, plan[:2]).trajectory
    longer = [plan[0], replace(plan[1], n_updates=40)]
    found, expected = (
        gone_on(kind, problem, longer, begun) for kind in (screen.Screen, unscreened)
    )
    np.testing.assert_allclose(found.coef, expected.coef, rtol=0, atol=1e-13)
    objectives = map(problem.objectives, (found, expected))
    np.testing.assert_allclose(*objectives, rtol=1e-12)


def gone_on(kind, problem, plan, begun):
    with patch("skacv.optim.run.screen_of", kind):
        live = LiveRun(problem, plan, begun.coef, done=begun.phases)
        live.go_on(plan)
    return live.trajectory


def folds_of(rng, n_folds=5):
    return rng.permutation(N) % n_folds


@pytest.mark.parametrize(
    "refit",
    [LeaveOutRule(refits_intercept=True), LeaveOutRule(is_sum=True)],
    ids=["centred", "sum"],
)
@pytest.mark.parametrize("penalty", ["L1", "groups", "MCP"])
def test_folds_beside_each_other(refit, penalty, rng):
    problem = sparse_problem(rng)
    stays = folds_of(rng)[:, None] != np.arange(5)
    weights = refit.without(problem, stays)
    plan = plan_of(problem, PENALTIES[penalty])
    trajectory = run_with(unscreened, problem, plan).trajectory
    taken_on = []
    found, expected = (
        replayed(kind, WeightedFits(problem, weights), trajectory)
        for kind in (partial(Watched, taken_on=taken_on), unscreened)
    )
    for ours, theirs in zip(found, expected):
        np.testing.assert_allclose(ours.coef, theirs.coef, rtol=0, atol=1e-12)
    assert np.mean(taken_on) < 0.8 * P


def replayed(kind, fits, trajectory):
    """All iterates of fits that follow a run."""
    with patch("skacv.optim.run.screen_of", kind):
        iterates = Iterates.at_rest(fits, trajectory.coef[0])
    found = []
    for taken in trajectory.updates():
        iterates.take(taken)
        found.append(iterates.state.current)
    return found


def test_folds_that_a_run_carries(rng):
    problem, number = sparse_problem(rng), folds_of(rng)
    folds = [(np.flatnonzero(number != f), np.flatnonzero(number == f)) for f in (0, 1)]
    refit, plan = LeaveOutRule(refits_intercept=True), plan_of(problem, L1(1.0))
    runs = []
    for kind in (screen.Screen, unscreened):
        side_runs = SideFolds(problem, refit, folds)
        runs.append(run_with(kind, problem, plan, side_runs=side_runs))
    judged, n_iterates = [rows for _, rows in folds], runs[0].t + 1
    assert n_iterates > 1
    found, expected = (
        live.side_runs.recorded(n_iterates).predictors(problem.design, judged)
        for live in runs
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


class AtLeast(Uniform):
    """Held at zero from below far longer than from above: its prox is not odd."""

    strength, above, below = 1.0, 0.05, 5.0

    def prox(self, point, step_size):
        upper = np.maximum(point - step_size * self.below, 0)
        return upper + np.minimum(point + step_size * self.above, 0)


def test_a_penalty_may_tell_signs_apart(rng):
    problem = sparse_problem(rng)
    fits, penalty = WeightedFits(problem), AtLeast()
    update = next(GradientDescent(0.5 / problem.smoothness).updates())
    coef = fits.start(np.zeros((P, 1)))
    first = fits.iterate(coef)
    ours = theirs = State(first, first)
    watched = Watched(fits)
    for _ in range(20):
        ours = watched.advance(update, penalty, ours)
        theirs = update.advance(fits, penalty, theirs)
    assert theirs.current.coef.any()
    np.testing.assert_allclose(
        ours.current.coef, theirs.current.coef, rtol=0, atol=1e-13
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_are_bounds(dtype, rng):
    """Also where slopes hardly differ from those that are known, or not at all."""
    problem = sparse_problem(rng, dtype=dtype)
    bounds = screen.GradientBounds(WeightedFits(problem), 2)
    slopes = rng.standard_normal((2, N)).astype(dtype)
    for k in range(3 * bounds.n_most_slopes):
        exact = np.abs(
            slopes.astype(float)
            @ problem.design.dense_columns(np.arange(P), np.float64)
        ).max(axis=0)
        assert (bounds.bounds(slopes) >= exact * (1 - 1e-15)).all()
        bounds.learn(slopes, problem.design.t_dot(slopes.T).T)
        assert (bounds.bounds(slopes) >= exact * (1 - 1e-15)).all()
        # And they are tight where nothing is unknown.
        slack = bounds.bounds(slopes) - exact
        assert slack.max() <= 10 * np.sqrt(np.finfo(dtype).eps) * exact.max()
        if k % 5:
            moved = 10.0 ** -rng.integers(1, 17) * rng.standard_normal((2, N))
            slopes = (slopes + moved).astype(dtype)


def columns_of_products(design, array):
    """Columns of X, once for each vector that it is multiplied by."""
    return design.shape[1] * array.shape[1]


def wide_problem(rng, n=100, p=2000):
    X = rng.standard_normal((n, p))
    y = X[:, :3].sum(axis=1, keepdims=True) + 0.1 * rng.standard_normal((n, 1))
    return Problem(design_of(X), y, np.full((n, 1), 1 / n))


def columns_taken(kind, problem, strength, n_updates, seen):
    """Columns that the products of a run go through, but for those of its step."""
    plan = [Phase(L1(strength), GradientDescent(1 / problem.smoothness), n_updates)]
    seen.clear()
    run_with(kind, problem, plan, np.zeros((1, problem.design.shape[1], 1)))
    return sum(seen)


def test_products_go_through_few_columns(rng, note_calls):
    problem = wide_problem(rng)
    seen = note_calls(MatrixDesign, "dot", "t_dot", size=columns_of_products)
    screened = columns_taken(screen.Screen, problem, 0.6, 100, seen)
    plain = columns_taken(unscreened, problem, 0.6, 100, seen)
    assert plain >= 199 * 2000
    assert screened < plain / 10


def test_hardly_more_columns_than_without_a_screen(rng, note_calls):
    """Where nearly all columns are in use."""
    problem = wide_problem(rng, n=300, p=200)
    seen = note_calls(MatrixDesign, "dot", "t_dot", size=columns_of_products)
    screened = columns_taken(screen.Screen, problem, 1e-5, 200, seen)
    assert screened < 1.1 * columns_taken(unscreened, problem, 1e-5, 200, seen)


def test_updates_that_are_not_screened_need_no_other_product(rng, note_calls):
    problem = sparse_problem(rng)
    seen = note_calls(MatrixDesign, "dot", "t_dot", size=columns_of_products)
    step = 0.1 / problem.smoothness
    for penalty, schedule in [
        (SquaredL2(0.1), GradientDescent(step)),
        (L1(0.1), StochasticGradient(step, 0.5, N, 10, 0)),
    ]:
        plan, counts = [Phase(penalty, schedule, 5)], []
        for kind in (screen.Screen, unscreened):
            seen.clear()
            run_with(kind, problem, plan)
            counts.append(sum(seen))
        assert counts[0] == counts[1]
