"""The memory matrix against full Jacobians, finite differences and the textbook."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1, ElasticNet, SquaredL2, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.memory import modes, tangents
from skacv.risk.memory.memory_matrix import COMPLETE, SPECTRAL, estimate_risk
from skacv.risk.memory.row_scales import uneven_rows_bias
from tests import oracles
from tests.cases import covering
from tests.penalties import with_prox

SCHEDULES = {
    "gradient_descent": GradientDescent,
    "nesterov": Nesterov,
    "heavy_ball": lambda step_size: HeavyBall(step_size, 0.6),
}
SMOOTH = {"zero": Zero(), "ridge": SquaredL2(0.2)}
PROXIMAL = with_prox(0.1, 4.0)
SHAPES = {"tall": (40, 12), "wide": (24, 50)}


def sparse_regression(shape, rng, n_targets=1):
    n, p = shape
    X = rng.standard_normal((n, p)) + 0.5
    beta = np.zeros((p, n_targets))
    beta[:4] = 1.0
    return X, X @ beta + 0.5 * rng.standard_normal((n, n_targets))


def run_on(X, y, phases, sample_weight=None, fit_intercept=False):
    """The problem and its trajectory, from the lowest layer."""
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    weights = (weights / weights.sum())[:, None]
    design = design_of(X).centered(weights) if fit_intercept else design_of(X)
    if fit_intercept:
        y = y - weights.T @ y
    problem = Problem(design, y, weights)
    start = np.zeros((1, X.shape[1], y.shape[1]))
    return problem, run(problem, phases, start)


def phases_for(X, penalty, schedule, n_updates=30):
    top = np.linalg.norm(X, 2) ** 2 / len(X) + penalty.curvature
    return [Phase(penalty, schedule(0.9 / top), n_updates)]


def expected_gram(X, y, trajectory, sample_weight=None, fit_intercept=False):
    Xw, yw = oracles.sqrt_weighted(X, y[:, 0], sample_weight, fit_intercept)
    A = oracles.memory_matrix(Xw, trajectory)
    residuals = yw - trajectory.coef[:, :, 0] @ Xw.T
    return oracles.risk_gram(A, residuals, fit_intercept)


@covering(
    penalty=[*SMOOTH, *PROXIMAL],
    schedule=SCHEDULES,
    shape=SHAPES,
    weighted=[False, True],
    fit_intercept=[False, True],
)
def test_exact_traces_equal_jacobians(
    penalty, schedule, shape, weighted, fit_intercept, rng
):
    """From the spectrum to 1e-8 where updates are linear, else by a basis to 1e-3."""
    tolerance = 1e-8 if penalty in SMOOTH else 1e-3
    X, y = sparse_regression(SHAPES[shape], rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    phases = phases_for(X, {**SMOOTH, **PROXIMAL}[penalty], SCHEDULES[schedule])
    problem, trajectory = run_on(X, y, phases, weights, fit_intercept)
    expected = expected_gram(X, y, trajectory, weights, fit_intercept)
    estimate = estimate_risk(
        problem, trajectory, rule=LeaveOutRule(refits_intercept=fit_intercept)
    )
    np.testing.assert_allclose(estimate.path, np.diag(expected), rtol=tolerance)
    assert (estimate.mc_se_path == 0).all()
    assert estimate.n_probes == 0


@pytest.mark.parametrize("penalty", [L1(0.1), ElasticNet(0.1, 0.7)], ids=str)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_jacobians_equal_finite_differences(penalty, schedule, rng):
    """The oracle itself: shocks in the gradient at one iterate, run out."""
    X, y = sparse_regression((30, 6), rng)
    phases = phases_for(X, penalty, SCHEDULES[schedule], 8)
    _, trajectory = run_on(X, y, phases)
    M = oracles.jacobians(X.T @ X / 30, trajectory)
    width = 1e-6

    def shocked(at, direction):
        """The run in which X'(y - X b_at) / n has ``direction`` added."""
        path = [np.zeros(6)]
        residuals = []
        for t, before, step, _ in trajectory.updates():
            residuals.append(X.T @ (y[:, 0] - X @ path[t]) / 30 + direction * (t == at))
            moved = path[t] + step.momentum * (path[t] - path[before])
            ascent = residuals[t] + step.lookahead * (residuals[t] - residuals[before])
            path.append(penalty.prox(moved + step.step_size * ascent, step.step_size))
        return np.array(path)

    for s in (0, 3):
        for j in (0, 5):
            direction = width * np.eye(6)[j]
            found = (shocked(s, direction) - shocked(s, -direction)) / (2 * width)
            np.testing.assert_allclose(M[:, s, :, j], found, atol=1e-6)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_row_sums_of_the_oracle_are_degrees_of_freedom(schedule, rng):
    X, y = sparse_regression((30, 6), rng)
    phases = phases_for(X, L1(0.1), SCHEDULES[schedule], 12)
    _, trajectory = run_on(X, y, phases)
    A = oracles.memory_matrix(X, trajectory)
    width, divergence = 1e-6, np.zeros(13)
    for i in range(30):
        shift = width * np.eye(30)[:, [i]]
        above, below = (run_on(X, y + d, phases)[1] for d in (shift, -shift))
        moved = (above.predictor - below.predictor)[:, i, 0] / (2 * width)
        divergence += moved
    np.testing.assert_allclose(A.sum(axis=1), divergence, atol=1e-5)


class FixedSigns:
    """Draws the given probes, as a generator would."""

    def __init__(self, signs):
        self.signs = signs

    def choice(self, values, size):
        assert size == self.signs.shape
        return self.signs


@pytest.mark.parametrize("shape", [(120, 200), (200, 300)])
def test_probes_equal_the_textbook_with_the_same_probes(shape, rng):
    X, y = sparse_regression(shape, rng)
    X -= 0.5
    step_size = 0.9 * shape[0] / np.linalg.norm(X, 2) ** 2
    phases = [Phase(L1(0.05), GradientDescent(step_size), 60)]
    problem, trajectory = run_on(X, y, phases)
    signs = rng.choice([-1.0, 1.0], size=(shape[0], 10))
    coef = trajectory.coef[:, :, 0]
    A = oracles.probed_memory_matrix(X, coef, step_size, signs)
    expected = oracles.risk_gram(A, y[:, 0] - coef @ X.T)
    estimate = estimate_risk(problem, trajectory, method=10, rng=FixedSigns(signs))
    np.testing.assert_allclose(estimate.path, np.diag(expected), rtol=1e-3)


@pytest.mark.parametrize("penalty", [SquaredL2, L1])
def test_a_path_of_strengths_is_one_trajectory(penalty, rng):
    X, y = sparse_regression((30, 40), rng)
    step_size = 0.9 * 30 / np.linalg.norm(X, 2) ** 2
    phases = [
        Phase(penalty(strength), Nesterov(step_size), 8)
        for strength in (0.5, 0.2, 0.05)
    ]
    problem, trajectory = run_on(X, y, phases, fit_intercept=True)
    expected = expected_gram(X, y, trajectory, fit_intercept=True)
    estimate = estimate_risk(
        problem, trajectory, rule=LeaveOutRule(refits_intercept=True)
    )
    np.testing.assert_allclose(estimate.path, np.diag(expected), rtol=1e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", [(100, 40), (60, 100)])
def test_spectral_stays_exact_along_many_iterates(shape, schedule, rng):
    """A from the eigenvalues, as scalars; F decays below the modes' resolution."""
    X, y = sparse_regression(shape, rng)
    phases = phases_for(X, Zero(), SCHEDULES[schedule], 400)
    problem, trajectory = run_on(X, y, phases)
    eigenvalues = np.linalg.svd(X, compute_uv=False) ** 2 / len(X)
    A = oracles.spectral_memory_matrix(eigenvalues, trajectory)
    residuals = y[:, 0] - trajectory.coef[:, :, 0] @ X.T
    expected = np.diag(oracles.risk_gram(A, residuals))
    estimate = estimate_risk(problem, trajectory)
    np.testing.assert_allclose(estimate.path, expected, rtol=1e-8)


@pytest.mark.parametrize("n_combinations", [32, 256])
def test_modes_of_many_iterates_are_those_of_a_decomposition(n_combinations, rng):
    """A quarter of the combinations where they do, and all where modes are many."""
    X, y = sparse_regression((60, 20), rng)
    X *= np.geomspace(1, 30, 20)
    phases = phases_for(X, Zero(), Nesterov, n_updates=400)
    _, trajectory = run_on(X, y, phases)
    residuals = y - trajectory.predictor
    along = modes.AlongRun(residuals.shape, lambda rows: residuals[:, rows], True)
    found = modes.modes_of(along, 1e-6, 0.0, n_combinations)
    residuals = residuals[:, :, 0]
    product = found.temporal @ found.spatial[:, :, 0]
    norms = np.linalg.norm(residuals, axis=1)
    assert (np.linalg.norm(product - residuals, axis=1) <= 2e-6 * norms).all()
    np.testing.assert_allclose(found.squared_norms, norms**2)


def test_factors_give_residuals_and_all_pairs(rng):
    X, y = sparse_regression((40, 12), rng)
    phases = phases_for(X, SquaredL2(0.1), Nesterov)
    problem, trajectory = run_on(X, y, phases)
    estimate = estimate_risk(problem, trajectory)
    E = estimate.temporal @ estimate.spatial[:, :, 0]
    expected = expected_gram(X, y, trajectory)
    np.testing.assert_allclose(E @ E.T / 40, expected, rtol=1e-6, atol=1e-8)
    row_se = (E**2).std(axis=1) / np.sqrt(39)
    np.testing.assert_allclose(estimate.se_path, row_se, rtol=1e-6)


def test_residuals_estimate_leave_one_out(rng):
    X = rng.standard_normal((300, 100))
    y = X @ rng.standard_normal((100, 1)) / 10 + rng.standard_normal((300, 1))
    phases = [Phase(Zero(), GradientDescent(0.3), 20)]
    problem, trajectory = run_on(X, y, phases)
    estimate = estimate_risk(problem, trajectory)
    E = estimate.temporal @ estimate.spatial[:, :, 0]
    for t in (5, 20):
        held_out = np.empty(300)
        for i in range(300):
            rest = np.delete(np.arange(300), i)
            _, alone = run_on(X[rest], y[rest], phases)
            held_out[i] = y[i, 0] - X[i] @ alone.coef[t, :, 0]
        assert np.corrcoef(E[t], held_out)[0, 1] > 0.997


def test_targets_share_the_memory_matrix(rng):
    X, y = sparse_regression((40, 12), rng, n_targets=3)
    phases = phases_for(X, SquaredL2(0.1), Nesterov)
    together = estimate_risk(*run_on(X, y, phases))
    alone = [estimate_risk(*run_on(X, y[:, [r]], phases)).path for r in range(3)]
    np.testing.assert_allclose(together.path, np.mean(alone, axis=0), rtol=1e-8)


def test_one_set_of_columns_for_every_loss(rng):
    """The same columns with and without Gram matrices; equal ones are copied once."""
    X, y = sparse_regression((40, 30), rng)
    problem, trajectory = run_on(X, y, phases_for(X, L1(0.1), Nesterov, 60))
    design, dtype = problem.design, np.float32
    plain = list(tangents.column_sets(design, trajectory, dtype))
    by_gram = list(tangents.column_sets(design, trajectory, dtype, n_products=50))
    assert [each.n_updates for each in plain] == [each.n_updates for each in by_gram]
    assert sum(each.n_updates for each in plain) == 60
    n_by_gram = 0
    for one, other in zip(plain, by_gram):
        assert np.isin(one.index, other.index).all()
        if other.times_gram is not None:
            n_by_gram += 1
            columns = X[:, other.index]
            moved = rng.standard_normal((len(other.index), 2)).astype(dtype)
            expected = columns.T @ (columns @ moved) / 40
            size = 1e-5 * np.abs(expected).max()
            np.testing.assert_allclose(other.times_gram(moved), expected, atol=size)
    assert n_by_gram
    _, whole = run_on(X, y, phases_for(X, SquaredL2(0.1), Nesterov, 60))
    (only,) = tangents.column_sets(design, whole, dtype)
    np.testing.assert_array_equal(only.index, np.arange(30))


def test_several_targets_with_a_prox_have_a_memory_matrix_each(rng):
    X, y = sparse_regression((40, 12), rng, n_targets=2)
    y[:, 1] = y[:, 0] - 3 * X[:, 7]
    phases = phases_for(X, L1(0.1), Nesterov)
    together = estimate_risk(*run_on(X, y, phases), method="exact")
    alone = [
        np.diag(expected_gram(X, y[:, [r]], run_on(X, y[:, [r]], phases)[1]))
        for r in range(2)
    ]
    np.testing.assert_allclose(together.path, np.mean(alone, axis=0), rtol=1e-8)


def test_standard_error_of_probes_is_their_spread(rng):
    X = rng.standard_normal((200, 300))
    beta = np.zeros((300, 1))
    beta[:20] = 1
    y = X @ beta + rng.standard_normal((200, 1))
    problem, trajectory = run_on(X, y, phases_for(X, L1(0.05), GradientDescent, 50))
    exact = estimate_risk(problem, trajectory, method="exact")
    for method in (6, "hutchinson"):
        repeats = [
            estimate_risk(
                problem, trajectory, method=method, rng=np.random.default_rng(seed)
            )
            for seed in range(40)
        ]
        rows = [10, 30, 50]
        errors = np.array([r.path[rows] / exact.path[rows] - 1 for r in repeats])
        claimed = np.array([r.mc_se_path[rows] / r.path[rows] for r in repeats])
        claimed = np.sqrt((claimed**2).mean(axis=0))
        ratio = np.sqrt((errors**2).mean(axis=0)) / claimed
        assert (0.7 < ratio).all(), (method, ratio)
        assert (ratio < 1.4).all(), (method, ratio)


def test_probes_are_added_until_their_error_is_small(rng, set_globals):
    X = rng.standard_normal((300, 400))
    y = X[:, [0]] + rng.standard_normal((300, 1))
    problem, trajectory = run_on(X, y, phases_for(X, L1(0.02), GradientDescent, 60))

    def with_share(share):
        set_globals(n_missing=partial(modes.n_missing, share=share))
        rng = np.random.default_rng(0)
        return estimate_risk(problem, trajectory, method="hutchinson", rng=rng)

    few, many = with_share(1e6), with_share(0.2)
    assert few.n_probes == modes.FIRST_ROUND < many.n_probes
    near = many.path <= 1.5 * many.path.min()
    relative = (many.mc_se_path / many.path)[near]
    assert np.sqrt((relative**2).mean()) < 1.5 * 0.2 * np.sqrt(2 / 300)
    exact = estimate_risk(problem, trajectory, method="exact").path
    best = exact.argmin()
    assert abs(many.path[best] - exact[best]) < 4 * many.mc_se_path[best]


@pytest.mark.parametrize("noise", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("penalty", [Zero, L1])
def test_little_noise_needs_more_modes(penalty, noise, rng):
    """The least risk may be 1e-6 of the first and still stand on all its modes."""
    X = rng.standard_normal((60, 40))
    y = X[:, :5].sum(axis=1, keepdims=True) + noise * rng.standard_normal((60, 1))
    phases = phases_for(
        X, Zero() if penalty is Zero else L1(0.05 * noise), Nesterov, 80
    )
    problem, trajectory = run_on(X, y, phases)
    expected = np.diag(expected_gram(X, y, trajectory))
    estimate = estimate_risk(problem, trajectory)
    # The path errs by squares of what modes miss, of whatever E is to F.
    missed = (SPECTRAL if penalty is Zero else COMPLETE).carried
    np.testing.assert_allclose(estimate.path, expected, rtol=10 * missed**2)


def test_a_complete_basis_where_probes_would_be_as_many(rng):
    """p > n and little noise: what probes leave is amplified beyond use."""
    X = rng.standard_normal((60, 100))
    y = X[:, :5].sum(axis=1, keepdims=True) + 1e-3 * rng.standard_normal((60, 1))
    phases = phases_for(X, L1(5e-5), Nesterov, 400)  # to where rows are fitted
    problem, trajectory = run_on(X, y, phases)
    exact = estimate_risk(problem, trajectory, method="exact")
    rounds = estimate_risk(
        problem, trajectory, method="hutchinson", rng=np.random.default_rng(0)
    )
    assert rounds.n_probes == 0
    np.testing.assert_allclose(rounds.path, exact.path)


def test_auto_is_exact_while_memory_allows(rng, set_limits):
    X = rng.standard_normal((40, 300))
    y = X[:, [0]] + rng.standard_normal((40, 1))
    problem, trajectory = run_on(X, y, phases_for(X, L1(0.1), Nesterov))

    def n_probes():
        return estimate_risk(problem, trajectory, rng=np.random.default_rng(0)).n_probes

    assert n_probes() == 0
    set_limits(MEMORY_BYTES=100)
    assert n_probes() > 0


def test_products_with_X_are_linear_in_the_updates(rng, set_globals, note_calls):
    """Tangents cost two products per probe, mode and update, never T^2."""
    X = rng.standard_normal((150, 200))
    y = X[:, [0]] + rng.standard_normal((150, 1))
    set_globals(_columns_worth_a_gram=lambda *args: np.empty(0, int))
    counts = note_calls(
        type(design_of(X)), "t_dot", size=lambda _, vectors: vectors.shape[1]
    )
    totals = {}
    for n_updates in (40, 160):
        phases = phases_for(X, L1(0.05), GradientDescent, n_updates)
        recorded = run_on(X, y, phases)
        counts.clear()
        estimate_risk(*recorded, method=4, rng=np.random.default_rng(0))
        assert counts.pop(0) == 4  # the probes themselves
        assert len(counts) == n_updates
        assert max(counts) <= 4 * 12  # probes times modes
        totals[n_updates] = sum(counts)
    # Four times the updates, and perhaps a mode more; T^2 would be 16.
    assert totals[160] <= 6 * totals[40]


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_shared_gram_and_factored_products_agree(kind, rng, set_globals):
    X = rng.standard_normal((150, 120)) * (rng.random((150, 120)) < 0.5)
    y = X[:, [0]] + rng.standard_normal((150, 1))
    stored = X if kind == "dense" else sparse.csr_matrix(X)
    weights = np.full((150, 1), 1 / 150)
    problem = Problem(design_of(stored).centered(weights), y - y.mean(), weights)
    phases = phases_for(X, L1(0.05), Nesterov, 60)
    trajectory = run(problem, phases, np.zeros((1, 120, 1)))

    def estimate():
        return estimate_risk(
            problem,
            trajectory,
            method="exact",
            rule=LeaveOutRule(refits_intercept=True),
        )

    explicit = []
    original = tangents._columns_worth_a_gram

    def seen(*args):
        explicit.append(original(*args))
        return explicit[-1]

    set_globals(_columns_worth_a_gram=seen)
    shared = estimate().path
    assert explicit
    assert all(columns.size for columns in explicit)
    set_globals(_columns_worth_a_gram=lambda *args: np.empty(0, int))
    np.testing.assert_allclose(estimate().path, shared, rtol=1e-4)
    np.testing.assert_allclose(
        shared, np.diag(expected_gram(X, y, trajectory, fit_intercept=True)), rtol=1e-3
    )


@pytest.mark.parametrize("method", ["exact", 200])
def test_linear_updates_by_probes(method, rng):
    """Where the spectrum would cost too much, probes serve linear updates too."""
    X, y = sparse_regression((120, 150), rng)
    problem, trajectory = run_on(X, y, phases_for(X, SquaredL2(0.2), Nesterov))
    expected = np.diag(expected_gram(X, y, trajectory))
    estimate = estimate_risk(
        problem, trajectory, method=method, rng=np.random.default_rng(0)
    )
    tolerance = 5 * estimate.mc_se_path + 1e-8 * expected
    assert (np.abs(estimate.path - expected) <= tolerance).all()


def test_few_rows_are_exact_and_finite(rng):
    X = rng.standard_normal((35, 4000))
    y = X[:, :3].sum(axis=1, keepdims=True) + rng.standard_normal((35, 1))
    phases = phases_for(X, L1(0.1), Nesterov, 100)
    estimate = estimate_risk(
        *run_on(X, y, phases, fit_intercept=True), LeaveOutRule(refits_intercept=True)
    )
    assert estimate.n_probes == 0
    assert np.isfinite(estimate.path).all()
    assert (estimate.mc_se_path == 0).all()


@pytest.mark.parametrize("n_updates", [400, 2000])
def test_many_iterates(n_updates, rng):
    X, y = sparse_regression((60, 20), rng)
    problem, trajectory = run_on(X, y, phases_for(X, Zero(), Nesterov, n_updates))
    estimate = estimate_risk(problem, trajectory)
    # At the least squares solution E is F / (1 - df / n).
    last = np.mean((y - problem.design.X @ trajectory.coef[-1]) ** 2)
    assert estimate.path[-1] == pytest.approx(last / (1 - 20 / 60) ** 2, rel=1e-4)


@pytest.mark.parametrize(
    ("fit_intercept", "rows"),
    [(False, "gaussian"), (True, "gaussian"), (True, "ar"), (True, "rademacher")],
)
def test_unbiased(fit_intercept, rows, rng):
    """Mean of estimate over truth, within its standard error, both in p > n."""
    n, p, n_repeats = 200, 300, 40
    root = np.eye(p)
    if rows == "ar":
        distance = np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
        root = np.linalg.cholesky(0.5**distance)
    ratios = []
    for _ in range(n_repeats):
        draw = rng.standard_normal((n, p))
        X = (np.sign(draw) if rows == "rademacher" else draw) @ root.T
        beta = np.zeros((p, 1))
        beta[:10] = 1 / np.sqrt(10)
        y = X @ beta + 3.0 * fit_intercept + rng.standard_normal((n, 1))
        phases = [Phase(Zero(), GradientDescent(0.25), 20)]
        problem, trajectory = run_on(X, y, phases, fit_intercept=fit_intercept)
        estimate = estimate_risk(
            problem, trajectory, rule=LeaveOutRule(refits_intercept=fit_intercept)
        )
        error = root.T @ (trajectory.coef[:, :, 0].T - beta)
        truth = (error**2).sum(axis=0) + 1
        if fit_intercept:  # the mean of the rows is zero
            intercept = y.mean() - trajectory.coef[:, :, 0] @ X.mean(axis=0)
            truth = truth + (intercept - 3.0) ** 2
        ratios.append(estimate.path / truth)
    ratios = np.array(ratios)[:, [0, 3, 10, 20]]
    standard_error = ratios.std(axis=0, ddof=1) / np.sqrt(n_repeats)
    assert (np.abs(ratios.mean(axis=0) - 1) < 3 * standard_error).all()


class TestUnevenRows:
    def bias(self, X, rng):
        y = X[:, [0]] + rng.standard_normal((len(X), 1))
        phases = phases_for(X, Zero(), Nesterov, 10)
        problem, trajectory = run_on(X, y, phases)
        estimate = estimate_risk(problem, trajectory)
        train = [2 * problem.value(z) for z in trajectory.predictor]
        return uneven_rows_bias(problem.design, estimate.path, train)

    def test_gaussian_rows_are_even(self, rng):
        assert self.bias(rng.standard_normal((300, 150)), rng) < 0.01
        correlated = rng.standard_normal((300, 150)) / np.arange(1, 151)
        assert self.bias(correlated, rng) < 0.02

    def test_heavy_tailed_rows_are_not(self, rng):
        scale = np.sqrt(rng.chisquare(3, (300, 1)) / 3)
        assert self.bias(rng.standard_normal((300, 450)) / scale, rng) > 0.1


@pytest.mark.slow
def test_published_means():
    """Mean truth and estimate of ISTA and FISTA over 100 repeats, by the authors.

    n=200, p=400, ten equal coefficients of squared norm 25, noise level .5,
    alpha=.1, step n / ||X||^2. Theirs are means over 40 repeats, with a standard
    error of the estimate of about 2%.
    """
    published = {
        GradientDescent: {0: (25.25, 25.43), 5: (11.67, 11.50), 29: (1.75, 1.72)},
        Nesterov: {5: (10.04, 9.92), 10: (3.51, 3.44), 19: (0.30, 0.31)},
    }
    found = {schedule: [] for schedule in published}
    beta = np.zeros((400, 1))
    beta[:10] = np.sqrt(2.5)
    for seed in range(100):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, 400))
        y = X @ beta + 0.5 * rng.standard_normal((200, 1))
        step_size = 200 / np.linalg.norm(X, 2) ** 2
        for schedule in published:
            phases = [Phase(L1(0.1), schedule(step_size), 29)]
            problem, trajectory = run_on(X, y, phases)
            estimate = estimate_risk(problem, trajectory, method="exact")
            error = trajectory.coef[:, :, 0] - beta[:, 0]
            truth = (error**2).sum(axis=1) + 0.25
            found[schedule].append((truth, estimate.path))
    for schedule, rows in published.items():
        truth, estimate = np.mean(found[schedule], axis=0)
        for t, (their_truth, their_estimate) in rows.items():
            assert truth[t] == pytest.approx(their_truth, rel=0.02, abs=0.01)
            assert estimate[t] == pytest.approx(their_estimate, rel=0.04)
