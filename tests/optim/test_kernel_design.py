"""Runs over a kernel are those over the features that it stands for."""

import itertools

import numpy as np
import pytest

from skacv.kernel.kernels import Gaussian
from skacv.optim.arrays import design_of
from skacv.optim.families import except_last
from skacv.optim.kernel import KernelDesign, PassPredictors
from skacv.optim.kernel_matrix import EVERY, KernelMatrix
from skacv.optim.losses import Logistic
from skacv.optim.penalties import SquaredL2, Zero
from skacv.optim.preconditioner import Preconditioner
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import (
    EigenPro,
    GradientDescent,
    Nesterov,
    fixed_batches,
)
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.left_out.methods import leave_one_out
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.curved_runs import paths_of_folds
from tests.optim.designs import kernel_design

N = 30
SCHEDULES = (GradientDescent, Nesterov)


def drawn(rng, n_features=6):
    """Explicit features, targets and weights."""
    features = rng.standard_normal((N, n_features)) + 0.3
    target = features[:, :1] + 0.5 * rng.standard_normal((N, 1)) + 2
    weights = rng.uniform(0.5, 1.5, (N, 1))
    return features, target, weights / weights.sum()


def both(features, target, weights, is_centred):
    """A problem over the kernel, and the one over the features."""
    found = []
    for design in (kernel_design(features), design_of(features)):
        if is_centred:
            design = design.centered(weights)
        offset = weights.T @ target if is_centred else 0
        found.append(Problem(design, target - offset, weights))
    return found


def ran(problem, phases):
    return run(problem, phases, np.zeros((1, problem.design.shape[1], 1)))


@pytest.mark.parametrize("is_centred", [False, True])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_runs_agree(schedule, alpha, is_centred, rng):
    dual, explicit = both(*drawn(rng), is_centred)
    np.testing.assert_allclose(dual.smoothness, explicit.smoothness)
    step = 0.9 / (dual.smoothness + alpha)
    phases = [Phase(SquaredL2(alpha), schedule(step), 40)]
    found, expected = ran(dual, phases), ran(explicit, phases)
    np.testing.assert_allclose(found.predictor, expected.predictor, atol=1e-11)
    last, predictor = found.coef[-1], found.predictor[-1]
    norm = dual.design.squared_norm(last, predictor)
    np.testing.assert_allclose(norm, (expected.coef[-1] ** 2).sum(axis=0))


def test_a_constant_is_a_column_of_ones(rng):
    features, target, weights = drawn(rng)
    target = (target > 2).astype(float)
    ones = np.ones((N, 1))
    dual = Problem(kernel_design(features, constant=True), target, weights, Logistic())
    explicit = replaced(dual, design_of(np.hstack([features, ones])))
    np.testing.assert_allclose(dual.smoothness, explicit.smoothness)
    step = 0.9 / (dual.smoothness + 0.1)
    found, expected = (
        ran(problem, [Phase(except_last(SquaredL2(0.1), n), Nesterov(step), 40)])
        for problem, n in ((dual, N + 1), (explicit, features.shape[1] + 1))
    )
    np.testing.assert_allclose(found.predictor, expected.predictor, atol=1e-11)
    np.testing.assert_allclose(found.coef[:, -1], expected.coef[:, -1], atol=1e-11)


def replaced(problem, design):
    return Problem(design, problem.target, problem.row_weights, problem.loss)


# ------------------------------------------------------------------ rows left out


def refit(kernel, target, weights, row, step, setting, loss):
    """Predictors of all rows by a run without a row, written out.

    ``setting`` is (alpha, whether there is momentum, intercept): None, "centred"
    with the means of the rows that stay, or "constant".
    """
    alpha, accelerated, intercept = setting
    n = len(target)
    w = np.where(np.arange(n) == row, 0.0, weights[:, 0])
    w /= w.sum()
    centre = np.eye(n) - np.outer(np.ones(n), w) * (intercept == "centred")
    K = centre @ kernel @ centre.T
    mean = w @ target[:, 0] if intercept == "centred" else 0.0
    y = target[:, 0] - mean
    # The constant is the last entry, of which predictors are one.
    state = previous = np.zeros(n + 1)
    values = np.hstack([K, np.full((n, 1), float(intercept == "constant"))])
    s = 1.0
    for number in itertools.count():
        yield values @ state + mean
        following = (1 + np.sqrt(1 + 4 * s * s)) / 2
        momentum = (s - 1) / following if accelerated and number else 0.0
        s = following if number else s
        point = state + momentum * (state - previous)
        slope = w * loss.derivative(y, values @ point)
        gradient = np.append(slope + alpha * point[:n], slope.sum())
        previous, state = state, point - step * gradient


def left_out_by_refits(problem, kernel, rows, step, setting):
    """The first 41 iterates, of shape (41, n_left_out)."""
    paths, data = [], (kernel, problem.target, problem.row_weights)
    for row in rows:
        runs = refit(*data, row, step, setting, problem.loss)
        paths.append([predictors[row] for predictors in itertools.islice(runs, 41)])
    return np.transpose(paths)


def gaussian(X):
    """A kernel, and features of it."""
    kernel = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2)) + 1e-12 * np.eye(N)
    return kernel, np.linalg.cholesky(kernel)


@pytest.mark.parametrize("intercept", [None, "centred"])
@pytest.mark.parametrize("accelerated", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("in_blocks", [False, True])
def test_rows_left_out_of_squared_errors(in_blocks, alpha, accelerated, intercept, rng):
    """By one eigendecomposition, and as folds, against a run without each row."""
    X, target, weights = drawn(rng, 3)
    kernel, features = gaussian(X)
    design = kernel_design(features, budget=0 if in_blocks else 1e9)
    if intercept:
        design, target = design.centered(weights), target - weights.T @ target
    problem = Problem(design, target, weights)
    step = 0.8 / (problem.smoothness + alpha)
    schedule = Nesterov(step) if accelerated else GradientDescent(step)
    trajectory = ran(problem, [Phase(SquaredL2(alpha), schedule, 40)])
    settings = {"rule": LeaveOutRule(refits_intercept=bool(intercept))}
    rows = np.arange(0, N, 7)
    setting = alpha, accelerated, intercept
    expected = left_out_by_refits(problem, kernel, rows, step, setting)
    found = leave_one_out(problem, trajectory, rows, **settings)
    np.testing.assert_allclose(found[:, :, 0], expected, rtol=0, atol=1e-10)
    folds = [(np.setdiff1d(np.arange(N), row), np.array([row])) for row in rows]
    found = paths_of_folds(problem, trajectory, folds, **settings)
    found = np.concatenate(found, axis=1)[:, :, 0]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_rows_left_out_of_logistic_regression_with_a_constant(rng):
    X, target, weights = drawn(rng, 3)
    kernel, features = gaussian(X)
    design, target = kernel_design(features, constant=True), (target > 2).astype(float)
    problem = Problem(design, target, weights, Logistic())
    step = 0.8 / (problem.smoothness + 0.01)
    phases = [Phase(except_last(SquaredL2(0.01), N + 1), Nesterov(step), 40)]
    trajectory = ran(problem, phases)
    rows = np.arange(0, N, 7)
    settings = {"rule": LeaveOutRule()}
    found = leave_one_out(problem, trajectory, rows, **settings)
    setting = 0.01, True, "constant"
    expected = left_out_by_refits(problem, kernel, rows, step, setting)
    np.testing.assert_allclose(found[:, :, 0], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("is_centred", [False, True])
def test_the_memory_matrix_is_that_of_the_features(is_centred, rng):
    """Of the same linear updates; the risk of a kernel may still read low."""
    dual, explicit = both(*drawn(rng), is_centred)
    phases = [Phase(SquaredL2(0.05), Nesterov(0.5 / dual.smoothness), 30)]
    found, expected = (
        estimate_risk(
            problem,
            ran(problem, phases),
            rule=LeaveOutRule(refits_intercept=is_centred),
            rng=rng,
        )
        for problem in (dual, explicit)
    )
    np.testing.assert_allclose(found.path, expected.path, rtol=1e-9)


# ---------------------------------------------------------------- preconditioned


def preconditioned(problem, batch_size):
    rows = np.arange(3, 19)
    made = Preconditioner.of(problem.design, rows, 3, np.random.default_rng(0))
    parts = fixed_batches(N, batch_size, 5)
    designs = [problem.design.rows(part) for part in parts] or [problem.design]
    rng = np.random.default_rng(0)
    top = max(made.top_eigenvalue(design, rng) for design in designs)
    return EigenPro(0.8 / top, made, top, parts)


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("is_centred", [False, True])
@pytest.mark.parametrize("batch_size", [None, 8])
def test_preconditioned_runs_agree(batch_size, is_centred, alpha, rng):
    dual, explicit = both(*drawn(rng), is_centred)
    schedules = [preconditioned(problem, batch_size) for problem in (dual, explicit)]
    np.testing.assert_allclose(schedules[0].step_size, schedules[1].step_size)
    penalty = SquaredL2(alpha) if alpha else Zero()
    trajectories = [
        ran(problem, [Phase(penalty, schedule, 20)])
        for problem, schedule in zip((dual, explicit), schedules)
    ]
    found, expected = (trajectory.predictor for trajectory in trajectories)
    np.testing.assert_allclose(found, expected, atol=1e-10)
    rows = np.array([0, 20, 25])
    found, expected = (
        leave_one_out(
            problem,
            trajectory,
            rows,
            rule=LeaveOutRule(refits_intercept=is_centred, is_sum=True),
        )
        for problem, trajectory in zip((dual, explicit), trajectories)
    )
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("is_centred", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_a_pass_that_follows_predictors(constant, is_centred, rng):
    """Predictors of all rows are carried: those of the run in batches."""
    features, target, weights = drawn(rng)
    design = kernel_design(features, constant=constant)
    design = design.centered(weights) if is_centred else design
    problem = Problem(design, target, weights)
    schedule = preconditioned(problem, 8)
    trajectory = ran(problem, [Phase(Zero(), schedule, 5)])
    made, predictor = schedule.preconditioner, np.zeros((N, 1))
    damped = made.features(design) * made.damping
    for expected in trajectory.predictor[1:]:
        for rows in schedule.batches:
            batch = problem.batch(rows)
            residual = predictor[rows] - batch.target
            slopes = -schedule.step_size * batch.row_weights * residual
            taken = damped @ (made.features(batch.design).T @ slopes)
            along = PassPredictors(design, predictor - taken)
            along.add(rows, slopes)
            predictor = along.predictor()
        np.testing.assert_allclose(predictor, expected, rtol=0, atol=1e-11)


# ------------------------------------------------------------------- what it costs


class Counting:
    """A kernel that counts the entries that are asked for."""

    def __init__(self, kernel):
        self.kernel, self.n_entries = kernel, 0

    def __call__(self, X, Z):
        self.n_entries += len(X) * len(Z)
        return self.kernel(X, Z)

    def diagonal(self, X):
        return self.kernel.diagonal(X)


def test_passes_over_the_kernel(rng):
    n, kernel = 200, Counting(Gaussian(0.3))
    X, weights = rng.standard_normal((n, 3)), np.full((n, 1), 1 / n)
    design = KernelDesign(KernelMatrix(kernel, X, np.float64, n**2 * 4))

    def passes(function):
        kernel.n_entries = 0
        function()
        return kernel.n_entries / n**2

    centred = design.centered(weights)
    assert passes(lambda: design.centered(weights)) == 1
    assert passes(lambda: centred.dot(np.ones((n, 4)))) == 1
    assert passes(lambda: centred.squared_norm(np.ones((n, 4)), np.ones((n, 4)))) == 0
    assert passes(centred.squared_row_norms) == 0
    batches = np.array_split(rng.permutation(n), 7)

    def one_pass():
        along = PassPredictors(centred, np.zeros((n, 2)))
        for rows in batches:
            along.predictor(rows)
            along.add(rows, np.ones((len(rows), 2)))
        along.predictor()

    assert passes(one_pass) == 1
    # A batch's own kernel fits in the budget: Lanczos asks for it once.
    made = Preconditioner.of(centred, np.arange(50), 5, rng)
    parts = [centred.rows(rows) for rows in batches]
    own = sum(len(rows) ** 2 for rows in batches) / n**2
    assert passes(lambda: [made.top_eigenvalue(part, rng) for part in parts]) == own
    products = []
    original = centred.matrix.square_product(EVERY)
    centred.matrix.square_product = lambda rows: (
        lambda v: products.append(1) or (original(v))
    )
    assert passes(centred.top_eigenvalue) == len(products) > 1


@pytest.mark.parametrize("budget", [0, 1e9])
def test_single_precision(budget, rng):
    """Kernels are single where that is asked for; coefficients stay what they are."""
    features, _, weights = drawn(rng)
    exact = kernel_design(features).centered(weights)
    single = kernel_design(features, dtype=np.float32, budget=budget).centered(weights)
    slopes = rng.standard_normal((N, 2))
    assert single.dtype == np.float32
    for dtype in (np.float32, np.float64):
        coef = single.t_dot(slopes.astype(dtype))
        predictor = single.dot(coef)
        assert coef.dtype == predictor.dtype == dtype
        along = PassPredictors(single, predictor)
        along.add(slice(2, 9), slopes[2:9])
        assert along.predictor().dtype == along.predictor([1, 5]).dtype == dtype
        np.testing.assert_allclose(predictor, exact.dot(exact.t_dot(slopes)), atol=1e-3)
    np.testing.assert_allclose(single.outer_gram(), exact.outer_gram(), atol=1e-4)
