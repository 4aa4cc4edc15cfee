"""The run against a loop written out, its record, and what it costs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from skacv.optim.arrays import design_of
from skacv.optim.design import MatrixDesign
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    GradientDescent,
    HeavyBall,
    Nesterov,
    StochasticGradient,
)
from skacv.optim.trajectory import Phase, remaining_phases

SCHEDULES = {
    "gradient_descent": GradientDescent(0.1),
    "nesterov": Nesterov(0.1),
    "heavy_ball": HeavyBall(0.1, 0.5),
}


def problem_of(rng, n=20, p=6, n_targets=1, weights=None):
    X = rng.standard_normal((n, p))
    y = rng.standard_normal((n, n_targets))
    weights = np.full((n, 1), 1 / n) if weights is None else weights
    return Problem(design_of(X), y, weights)


def start_of(problem):
    return np.zeros((1, problem.design.shape[1], problem.target.shape[1]))


def after(s):
    return (1 + np.sqrt(1 + 4 * s**2)) / 2


def written_out(X, y, schedule, n_updates, prox=lambda u, step_size: u):
    b = before = np.zeros(X.shape[1])
    path, s = [b], 1.0
    for k in range(n_updates):
        if isinstance(schedule, HeavyBall):
            v, point = b + schedule.momentum * (b - before), b
        elif isinstance(schedule, Nesterov):
            # Beck and Teboulle: at first y_1 = x_0, t_1 = 1.
            v = point = b if k == 0 else b + (s - 1) / after(s) * (b - before)
            s = s if k == 0 else after(s)
        else:
            v = point = b
        gradient = X.T @ (X @ point - y) / len(y)
        before, b = b, prox(v - schedule.step_size * gradient, schedule.step_size)
        path.append(b)
    return np.array(path)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_run_equals_the_loop_written_out(schedule, rng):
    problem = problem_of(rng)
    penalty = L1(0.05)
    trajectory = run(problem, [Phase(penalty, schedule, 25)], start_of(problem))
    X, y = problem.design.X, problem.target[:, 0]
    expected = written_out(X, y, schedule, 25, penalty.prox)
    np.testing.assert_allclose(trajectory.coef[:, :, 0], expected, atol=1e-12)
    np.testing.assert_allclose(
        trajectory.predictor[:, :, 0], expected @ X.T, atol=1e-12
    )
    objective = [
        np.mean((y - X @ b) ** 2) / 2 + 0.05 * np.abs(b).sum() for b in expected
    ]
    np.testing.assert_allclose(problem.objectives(trajectory), objective)


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
def test_targets_are_separate_runs(schedule, rng):
    weights = rng.random((20, 1)) * (rng.random((20, 1)) < 0.7)
    problem = problem_of(rng, n_targets=3, weights=weights / weights.sum())
    phases = [Phase(L1(0.05), schedule, 25)]
    together = run(problem, phases, start_of(problem))
    for k in range(3):
        alone = replace(problem, target=problem.target[:, [k]])
        expected = run(alone, phases, start_of(alone))
        np.testing.assert_allclose(together.coef[:, :, [k]], expected.coef, atol=1e-12)


@pytest.fixture
def products(note_calls):
    """Of each product with X, or with its transpose, the number of vectors."""
    return tuple(
        note_calls(MatrixDesign, name, size=lambda design, vectors: vectors.shape[1])
        for name in ("dot", "t_dot")
    )


# Inner products of six columns soon take the place of twenty rows, not those of 15.
@pytest.mark.parametrize(("n_columns", "n_products"), [(15, 25), (6, 4)])
def test_two_products_with_X_an_update(n_columns, n_products, rng, products):
    problem = problem_of(rng, p=n_columns)
    run(problem, [Phase(L1(0.05), Nesterov(0.02), 25)], start_of(problem))
    # One less from a start at zero, and the objectives at both ends of the phase.
    assert [sum(each) for each in products] == [n_products + 1, n_products]


def test_the_losses_of_wide_data_need_no_further_product(rng, products):
    """Their runs keep the predictors, which are no more numbers than coefficients."""
    problem = problem_of(rng, p=30)
    trajectory = run(problem, [Phase(L1(0.05), Nesterov(0.02), 25)], start_of(problem))
    # One of them for the start.
    assert [sum(each) for each in products] == [25 + 1, 25]
    found = problem.objectives(trajectory)
    assert sum(products[0]) == 26
    again = trajectory.recorded(problem, trajectory.coef, trajectory.phases)
    np.testing.assert_allclose(found, problem.objectives(again), rtol=1e-12)


@pytest.mark.parametrize(("shape", "has_batches"), [((20, 6), False), ((20, 30), True)])
def test_other_predictors_are_computed_when_they_are_read(
    shape, has_batches, rng, products
):
    problem = problem_of(rng, *shape)
    schedule = SCHEDULES["gradient_descent"]
    if has_batches:
        schedule = StochasticGradient(0.01, 0.0, 20, 5, 0)
    plan = [Phase(SquaredL2(0.05), schedule, 3)]
    trajectory = run(problem, plan, start_of(problem))
    before = sum(products[0])
    problem.objectives(trajectory)
    assert sum(products[0]) > before


def test_a_resumed_run_equals_one_longer_run(rng):
    problem = problem_of(rng)

    def plan(*numbers):
        return [
            Phase(L1(strength), Nesterov(0.1), n)
            for strength, n in zip((0.1, 0.01, 0.001), numbers)
        ]

    whole = run(problem, plan(20, 30, 10), start_of(problem))
    part = run(problem, plan(20, 13), start_of(problem))
    more = run(problem, plan(20, 30), part.coef, done=part.phases)
    rest = run(problem, plan(20, 30, 10), more.coef, done=more.phases)
    np.testing.assert_allclose(rest.coef, whole.coef, atol=1e-13)
    np.testing.assert_allclose(rest.predictor, whole.predictor, atol=1e-13)
    objectives = map(problem.objectives, (rest, whole))
    np.testing.assert_allclose(*objectives, atol=1e-13)
    assert rest.phases == whole.phases


def test_another_rule_is_a_further_phase(rng):
    problem = problem_of(rng)
    first = [Phase(L1(0.1), Nesterov(0.1), 5)]
    part = run(problem, first, start_of(problem))
    other = [Phase(L1(0.05), Nesterov(0.1), 7)]
    both = run(problem, other, part.coef, done=part.phases)
    expected = run(problem, first + other, start_of(problem))
    np.testing.assert_allclose(both.coef, expected.coef, atol=1e-13)
    assert both.phases == expected.phases == first + other


def grown(problem, *plans):
    """Runs of the plans, each going on with the record of those before."""
    trajectory = run(problem, plans[0], start_of(problem))
    for plan in plans[1:]:
        trajectory = run(problem, plan, trajectory.coef, done=trajectory.phases)
    return trajectory


@pytest.mark.parametrize("schedule", SCHEDULES.values(), ids=SCHEDULES)
@pytest.mark.parametrize(
    ("numbers", "at_once"),
    [
        # Strengths and numbers of updates, plan after plan.
        ([[(1, 10)], [(2, 10)], [(2, 10)]], [(1, 10), (2, 10)]),
        ([[(1, 10)], [(2, 10)], [(2, 20)]], [(1, 10), (2, 20)]),
        ([[(1, 10)], [(2, 10)], [(2, 20)], [(2, 20)]], [(1, 10), (2, 20)]),
        ([[(1, 10)], [(2, 5)], [(2, 8), (3, 4)]], [(1, 10), (2, 8), (3, 4)]),
        ([[(1, 10)], [(2, 5)], [(1, 10)], [(1, 12)]], [(1, 10), (2, 5), (1, 12)]),
        ([[(1, 5), (2, 5)], [(1, 6), (2, 6)]], [(1, 5), (2, 5), (1, 6), (2, 6)]),
        (
            [[(1, 5), (2, 5), (1, 5)], [(1, 5), (2, 5), (1, 9)]],
            [(1, 5), (2, 5), (1, 9)],
        ),
        ([[(1, 5), (1, 5)], [(1, 5), (1, 5), (1, 5)]], [(1, 5)] * 3),
    ],
)
def test_plans_go_on_with_the_last_phases(schedule, numbers, at_once, rng):
    problem = problem_of(rng)

    def plan(pairs):
        return [Phase(L1(0.02 * strength), schedule, n) for strength, n in pairs]

    found = grown(problem, *map(plan, numbers))
    expected = run(problem, plan(at_once), start_of(problem))
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-13)
    objectives = map(problem.objectives, (found, expected))
    np.testing.assert_allclose(*objectives, atol=1e-13)
    assert found.phases == expected.phases


def test_fewer_updates_than_recorded_are_refused(rng):
    done = [Phase(L1(0.1), Nesterov(0.1), 5)]
    before = [Phase(L1(0.2), Nesterov(0.1), 5)]
    for record in (done, before + done):
        with pytest.raises(ValueError, match="larger max_iter"):
            remaining_phases([Phase(L1(0.1), Nesterov(0.1), 4)], record)


def test_tol_ends_a_phase_and_a_resumed_run_stays_there(rng):
    problem = problem_of(rng)
    plan = [Phase(L1(0.1), GradientDescent(0.1), 10_000)]
    ended = run(problem, plan, start_of(problem), tol=1e-6)
    assert ended.phases[0].converged
    assert ended.n_updates < 10_000
    last, previous = ended.coef[-1], ended.coef[-2]
    assert np.abs(last - previous).max() <= 1e-6 * np.abs(last).max()
    again = run(problem, plan, ended.coef, done=ended.phases, tol=1e-6)
    np.testing.assert_array_equal(again.coef, ended.coef)


def test_progress_can_end_the_run(rng):
    problem = problem_of(rng)
    seen = []

    def progress(t, coef, objective):
        seen.append((t, objective))
        return t == 4

    plan = [Phase(L1(0.1), Nesterov(0.1), 10), Phase(L1(0.05), Nesterov(0.1), 10)]
    trajectory = run(problem, plan, start_of(problem), progress=progress)
    assert trajectory.n_updates == 4
    assert [t for t, _ in seen] == [1, 2, 3, 4]
    objectives = problem.objectives(trajectory)[1:]
    np.testing.assert_allclose([o for _, o in seen], objectives)


@pytest.mark.parametrize("n_updates", [30, 5000])
def test_divergence_names_the_largest_stable_step(n_updates, rng):
    problem = problem_of(rng)
    penalty = SquaredL2(0.5)
    top = np.linalg.norm(problem.design.X, 2) ** 2 / 20 + 0.5
    plan = [Phase(penalty, GradientDescent(2.5 / top), n_updates)]
    with pytest.raises(ValueError, match=f"these data is {2 / top:.6g}"):
        run(problem, plan, start_of(problem))


@pytest.mark.parametrize("n_targets", [1, 2])
def test_sparse_equals_dense(n_targets, rng):
    problem = problem_of(rng, n_targets=n_targets)
    X = problem.design.X * (rng.random(problem.design.shape) < 0.4)
    weights = problem.row_weights
    plan = [Phase(L1(0.02), Nesterov(0.1), 20)]
    paths = [
        run(
            Problem(design_of(matrix).centered(weights), problem.target, weights),
            plan,
            start_of(problem),
        ).coef
        for matrix in (X, sparse.csr_matrix(X))
    ]
    np.testing.assert_allclose(paths[0], paths[1], atol=1e-13)
