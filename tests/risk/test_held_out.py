"""Replicas without rows: the fast ways against replicas, and their cost."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from skacv._estimator.estimates.held_out import HeldOutLosses
from skacv.optim.arrays import design_of
from skacv.optim.blocks import blocks
from skacv.optim.design import MatrixDesign
from skacv.optim.fits import WeightedFits
from skacv.optim.penalties import L1, SquaredL2, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from skacv.optim.screen import WorkingColumns
from skacv.optim.trajectory import Phase
from skacv.optim.updates import ProximalGradient
from skacv.risk import cost
from skacv.risk.cost import n_rows_worth
from skacv.risk.held_out_rows import LeaveOutRule, LeftOutRows, mean_with_error
from skacv.risk.left_out import screened, spectral
from skacv.risk.left_out.methods import leave_one_out
from skacv.risk.left_out.replicas import leave_folds_out, replayed
from skacv.risk.left_out.screened import WorkingGram, largest_shift
from tests.penalties import with_prox

LINEAR = [Zero(), SquaredL2(0.05)]
PROXIMAL = list(with_prox(0.1, 37.0).values())
SCHEDULES = [GradientDescent, Nesterov, HeavyBall]


def problem_of(shape, rng, weighted=True, storage=np.asarray, scale=1.0):
    X = (rng.standard_normal(shape) + 0.5) * (rng.random(shape) < 0.6)
    y = 2 * X[:, :1] - X[:, 1:2] + scale * rng.standard_normal((shape[0], 1))
    weights = rng.uniform(0.5, 2, (shape[0], 1)) if weighted else np.ones_like(y)
    weights /= weights.sum()
    design = design_of(storage(X)).centered(weights)
    return Problem(design, y - weights.T @ y, weights)


def ran(problem, penalties, schedule, n_updates=40):
    step_size = 0.7 / (problem.smoothness + max(p.curvature for p in penalties))
    plan = [Phase(penalty, schedule(step_size), n_updates) for penalty in penalties]
    return run(problem, plan, np.zeros((1, problem.design.shape[1], 1)))


MEAN, SUM = (
    LeaveOutRule(refits_intercept=True),
    LeaveOutRule(refits_intercept=True, is_sum=True),
)


def by_replicas(problem, trajectory, rows, refit):
    """The oracle: every replica on its own weights, all columns of X."""
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    weights = refit.without(problem, stays)
    fits, own = WeightedFits(problem, weights), (rows, 0, np.arange(len(rows)))
    paths = replayed(problem, trajectory, weights)
    return np.array([fits.predictor_at(iterate)[own] for iterate in paths])


@pytest.mark.parametrize("refit", [MEAN, SUM])
@pytest.mark.parametrize("shape", [(30, 12), (12, 60)])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", LINEAR + PROXIMAL, ids=lambda p: type(p).__name__)
def test_leave_one_out_is_that_of_replicas(penalty, schedule, shape, refit, rng):
    """Nonconvex penalties, momentum, and strengths that change with the rows."""
    problem = problem_of(shape, rng)
    trajectory = ran(problem, [penalty], schedule)
    rows = np.arange(0, shape[0], 2)
    expected = by_replicas(problem, trajectory, rows, refit)
    found = leave_one_out(problem, trajectory, rows, refit)
    np.testing.assert_allclose(found[:, :, 0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", [(40, 15), (20, 70)])
def test_linear_updates_need_no_decomposition(shape, schedule, rng, set_globals):
    """Beyond the size that is decomposed, rows are left out by replicas."""
    problem = problem_of(shape, rng)
    trajectory = ran(problem, [SquaredL2(0.05)], schedule)
    rows = np.arange(shape[0])
    params = {"rule": SUM}
    decomposed = leave_one_out(problem, trajectory, rows, **params)
    set_globals(DECOMPOSED_SIZE=5, spectral_residuals=None)
    found = leave_one_out(problem, trajectory, rows, **params)
    np.testing.assert_allclose(found, decomposed, rtol=0, atol=1e-10)


# ------------------------------------------------------------------- few nodes


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", [(700, 300), (300, 700)])
@pytest.mark.parametrize("weighted", [False, True])
def test_few_eigenvalues_stand_for_all(weighted, shape, schedule, rng, set_globals):
    """To rounding: what is left out of the nodes is nothing that a run can see."""
    problem = problem_of(shape, rng, weighted)
    trajectory = ran(problem, [SquaredL2(0.001), Zero()], schedule, n_updates=250)
    eigenvalues = problem.sqrt_weighted()[0].spectrum()
    few_eigenvalues, _ = spectral.nodes_of(eigenvalues, trajectory)
    assert len(few_eigenvalues) < len(eigenvalues) / 2
    params = {"rule": SUM}
    rows = np.arange(0, shape[0], 10)
    few = leave_one_out(problem, trajectory, rows, **params)
    set_globals(nodes_of=partial(spectral.nodes_of, tol=0.0))
    every = leave_one_out(problem, trajectory, rows, **params)
    # Of what a target is, of which predictors without a row are sums.
    size = np.abs(problem.target).max()
    np.testing.assert_allclose(few, every, rtol=0, atol=1e-10 * size)


# -------------------------------------------------------------------- the screen


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_the_screen_looks_at_few_columns_and_misses_none(
    storage, rng, note_calls, set_limits
):
    set_limits(MEMORY_BYTES=2 << 20)  # less than the Gram matrix of all columns
    problem = problem_of((150, 600), rng, storage=storage)
    trajectory = ran(problem, [L1(0.6), L1(0.4)], Nesterov, n_updates=60)
    rows = np.arange(150)
    expected = by_replicas(problem, trajectory, rows, MEAN)
    looked_at = note_calls(
        type(problem.design), "dense_columns", size=lambda _, index, *rest: len(index)
    )
    products = note_calls(
        WorkingGram, "times", size=lambda _, coef, *rest: coef.shape[1]
    )
    found = leave_one_out(problem, trajectory, rows, rule=MEAN)
    np.testing.assert_allclose(found[:, :, 0], expected, rtol=0, atol=1e-10)
    # Of 120 updates with 600 columns each: looked at, and worked on.
    everything = 120 * 600
    assert sum(looked_at) < 0.2 * everything
    assert sum(products) < 0.1 * everything


@pytest.mark.parametrize("gram_bytes", [8 * 200**2 - 1, 1 << 28])
@pytest.mark.parametrize("penalty", PROXIMAL, ids=lambda p: type(p).__name__)
def test_columns_come_and_go(penalty, gram_bytes, rng, set_limits):
    """A path of strengths up and down: columns join, are dropped and join again."""
    set_limits(MEMORY_BYTES=gram_bytes)
    problem = problem_of((60, 200), rng)
    strengths = [0.3, 0.1, 0.02, 0.2, 0.5, 0.05]
    penalties = [type(penalty)(strength, *extra(penalty)) for strength in strengths]
    trajectory = ran(problem, penalties, Nesterov, n_updates=20)
    rows = np.arange(60)
    expected = by_replicas(problem, trajectory, rows, MEAN)
    found = leave_one_out(problem, trajectory, rows, rule=MEAN)
    np.testing.assert_allclose(found[:, :, 0], expected, rtol=0, atol=1e-10)


def extra(penalty):
    """The parameters of a penalty beside its strength."""
    return [value for name, value in vars(penalty).items() if name != "strength"]


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("is_whole", [False, True])
def test_products_of_working_columns(is_whole, storage, rng):
    """Through the rows where they are wide, through Gram matrices where not."""
    problem = problem_of((10, 80), rng, storage=storage)
    design, _ = problem.sqrt_weighted()
    gram = design.gram() / 10
    working = WorkingColumns(design)
    products = WorkingGram(design, working, gram if is_whole else None)
    order = rng.permutation(80)
    for part in (slice(12), slice(12, 18), slice(18, 60)):
        order[part].sort()
        working.join(order[part])
        n, first = part.stop, part.start or 0
        coef = rng.standard_normal((10, n))
        within, across = gram[np.ix_(order[:n], order[:n])], gram[order[:n]]
        assert products.is_wide == (n > 2 * design.n_stored / 80)
        np.testing.assert_allclose(products.times(coef), coef @ within)
        np.testing.assert_allclose(
            products.times(coef, first), coef @ within[:, first:]
        )
        left, right = products.factors(coef, order[60:])
        np.testing.assert_allclose(left @ right.T, coef @ across[:, order[60:]])
    places = np.arange(0, 60, 4)
    products.keep(places)
    working.keep(places)
    index = order[:60][places]
    np.testing.assert_array_equal(working.index, index)
    coef = rng.standard_normal((10, 15))
    expected = coef @ gram[np.ix_(index, index)]
    np.testing.assert_allclose(products.times(coef), expected)


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e25])
def test_a_look_in_single_precision_is_a_bound(unit, is_whole, rng):
    """At least the largest shift, and little more, in units beyond its range."""
    X = 100 + rng.standard_normal((30, 50))
    design = design_of(unit * X).centered(np.full((30, 1), 1 / 30))
    gram = design.gram() / 30
    rows, order = rng.permutation(30)[:7], rng.permutation(50)
    working = WorkingColumns(design, np.sort(order[:20]))
    products = WorkingGram(design, working, gram if is_whole else None)
    others, (_, sizes) = order[20:], design.column_sizes()
    coef, own_slope = rng.standard_normal((7, 20)), 10.0 ** -np.arange(7)
    for point, turn in (
        (coef, own_slope),
        (coef, 0 * own_slope),
        (0 * coef, unit * own_slope),
    ):
        entries = design.dense_columns(others, float)[rows]
        shift = point @ gram[np.ix_(working.index, others)] - entries * turn[:, None]
        largest = np.abs(shift).max(axis=0)
        scaled = (entries / sizes[others]).T.astype(np.float32)
        factors = products.factors(point, others)
        bound = largest_shift(*factors, turn, scaled, sizes[others])
        assert (bound >= largest).all()
        # What is rounded is relative to the factors, not to their product.
        factors = np.abs(point).max() * np.abs(gram[:, others]).max(axis=0)
        factors += np.abs(turn).max() * np.abs(entries).max(axis=0)
        assert (bound - largest <= 1e-4 * factors).all()


@pytest.mark.parametrize("penalty", [L1(0.05), SquaredL2(0.01)])
def test_blocks_of_rows_agree(penalty, rng, set_globals):
    problem = problem_of((30, 50), rng)
    trajectory = ran(problem, [penalty], Nesterov)
    rows = np.arange(30)
    params = {"rule": MEAN}
    whole = leave_one_out(problem, trajectory, rows, **params)
    several = leave_one_out(problem, trajectory, rows, n_blocks=7, **params)
    np.testing.assert_allclose(several, whole, rtol=0, atol=1e-12)
    set_globals(
        MEMORY_BYTES=1,
        CACHE_BYTES=1,
        blocks=lambda n, *_, **__: blocks(n, 1, budget=1),
    )
    single = leave_one_out(problem, trajectory, rows, **params)
    np.testing.assert_allclose(single, whole, rtol=0, atol=1e-12)


# ------------------------------------------------------------------------- cost


def test_decomposed_rows_cost_no_product_with_X_per_iterate(rng, note_calls):
    problem = problem_of((200, 30), rng)
    trajectory = ran(problem, [SquaredL2(0.01)], Nesterov, n_updates=100)
    products = note_calls(MatrixDesign, "dot", size=lambda _, coef: coef.shape[1])
    backwards = note_calls(MatrixDesign, "t_dot", size=lambda _, rows: rows.shape[1])
    n_blocks = 200 // (4 * spectral.CACHE_BYTES // 8 // 30) + 1
    leave_one_out(problem, trajectory, np.arange(200), rule=SUM)
    assert sum(products) <= 30 * n_blocks  # rows into the eigenbasis
    assert sum(backwards) == 1


def test_folds_share_two_passes_over_X_an_update(rng, note_calls):
    problem = problem_of((60, 40), rng)
    trajectory = ran(problem, [L1(0.05)], Nesterov, n_updates=25)
    every = np.arange(60)
    folds = [(np.setdiff1d(every, f), f) for f in np.array_split(every, 6)]
    forwards = note_calls(MatrixDesign, "dot", size=lambda _, coef: 1)
    backwards = note_calls(MatrixDesign, "t_dot", size=lambda _, rows: 1)
    leave_folds_out(problem, trajectory, folds, rule=MEAN)
    # And one for every fold at the end, on the rows that it leaves out.
    assert sum(forwards) == 25 + 6
    # And one for the means of their columns.
    assert sum(backwards) == 25 + 1


@pytest.mark.parametrize("penalty", [L1(0.2), SquaredL2(0.01)])
def test_memory_is_bounded_whatever_the_number_of_rows(penalty, rng, set_limits):
    """Beside X and what comes out, a block of replicas and not all of them."""
    set_limits(MEMORY_BYTES=1 << 20)
    problem = problem_of((6000, 40), rng)
    trajectory = ran(problem, [penalty], GradientDescent, n_updates=10)
    rows = np.arange(6000)
    tracemalloc.start()
    leave_one_out(problem, trajectory, rows, rule=MEAN)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    result = 11 * 6000 * 8
    # All replicas at once would take 40 columns of 6000 times nine arrays, 17 MB.
    assert peak < 2 * problem.design.n_bytes + 4 * result + (4 << 20)


@pytest.mark.parametrize("is_linear", [False, True])
def test_rows_that_are_worth_leaving_out(is_linear):
    """Every row where that costs what folds may; else a sample that does, or none."""
    penalty = Zero() if is_linear else L1(1.0)
    rules = [(ProximalGradient(1.0), penalty)]
    few = cost.RunCost((200, 50), [100], rules, is_quadratic=True)
    assert n_rows_worth(few, 20) == 200
    many = cost.RunCost((100_000, 500), [500], rules, is_quadratic=True)
    n_worth = n_rows_worth(many, 100)
    if is_linear:
        assert n_worth == cost.MANY_ROWS
    else:
        spent = n_worth * 500 * 200**2
        allowed = cost.WORTH_REPLICAS * 500 * many.exact_work(200)
        assert 0.9 * allowed < spent <= allowed
    rules = [(ProximalGradient(1.0), L1(1.0))]
    assert n_rows_worth(cost.RunCost((40, 10**6), [500], rules, True), 20) == 40
    # Replicas of every row would cost more than twice what folds may.
    assert n_rows_worth(cost.RunCost((40, 10**6), [500], rules, True), 10**6) == 0


@pytest.mark.slow
def test_mean_with_error(rng):
    costs = rng.exponential(size=(3, 50))
    mean, error = mean_with_error(costs, np.ones(50))
    np.testing.assert_allclose(mean, costs.mean(axis=1))
    np.testing.assert_allclose(error, costs.std(axis=1, ddof=1) / np.sqrt(50))
    nearly_the_same = mean_with_error(costs + 1e8, np.ones(50))[1]
    np.testing.assert_allclose(nearly_the_same, error, rtol=1e-7)
    assert mean_with_error(np.full((3, 50), 1.5), np.ones(50))[1].max() < 1e-15


def test_memory_keeps_to_the_entries_of_sparse_X(rng):
    """Wide sparse rows with every column in use: far from dense anywhere."""
    X = sparse.random(1000, 20_000, 1e-3, format="csr", random_state=0)
    y = rng.standard_normal((1000, 1))
    problem = Problem(design_of(X), y, np.full((1000, 1), 1e-3))
    phases = [Phase(SquaredL2(0.0), GradientDescent(1 / problem.smoothness), 5)]
    trajectory = run(problem, phases, np.zeros((1, 20_000, 1)))
    left_out = LeftOutRows.of(problem, np.arange(20), LeaveOutRule())
    tracemalloc.start()
    screened.screened_residuals(problem, trajectory, left_out, 20, map)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Gradients of all iterates, a dozen arrays of the replicas, columns looked at.
    expected = 8 * 20_000 * (6 + 12 * 20) + (1 << 23)
    assert peak < 1.5 * expected < 8 * 1000 * 20_000


@pytest.mark.parametrize(("n_outputs", "n_at_a_time"), [(1, 100), (10, 10), (100, 8)])
def test_losses_of_many_classes_are_read_in_smaller_blocks(
    n_outputs, n_at_a_time, rng, set_limits
):
    n_rows, n_iterates = 50, 230
    values = rng.standard_normal((n_iterates, n_rows))
    sizes = []

    def of(iterates):
        sizes.append(len(values[iterates]))
        return values[iterates]

    labels = rng.integers(4, size=n_rows)
    rows, weights = np.arange(n_rows), rng.uniform(1, 2, n_rows)
    losses = HeldOutLosses(rows, rows, weights, n_iterates, of, n_outputs)
    set_limits(LARGE_BYTES=16 * n_rows * 100)
    sums, sums_of_weights = losses.sums(labels, 4)
    assert max(sizes) == n_at_a_time
    for label in range(4):
        is_of = labels == label
        np.testing.assert_allclose(sums[:, label], values[:, is_of] @ weights[is_of])
        np.testing.assert_allclose(sums_of_weights[label], weights[is_of].sum())
