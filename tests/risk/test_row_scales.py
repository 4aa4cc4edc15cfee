"""Rows of uneven norm: a residual map of their own, against full matrices."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import chi2

from skacv import IterativeRidge, TrajectoryLasso
from skacv.optim.arrays import design_of
from skacv.optim.penalties import L1, SquaredL2, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.memory import row_scales
from skacv.risk.memory.memory_matrix import estimate_risk
from skacv.risk.memory.row_scales import scales_of_rows, with_row_scales
from skacv.risk.memory.tangents import SquaredTangents
from tests import oracles
from tests.cases import covering

SCHEDULES = {
    "gradient_descent": GradientDescent,
    "nesterov": Nesterov,
    "heavy_ball": lambda step_size: HeavyBall(step_size, 0.6),
}
PENALTIES = {"zero": Zero(), "ridge": SquaredL2(0.2), "l1": L1(0.05)}
SHAPES = {"tall": (60, 20), "wide": (50, 75)}
# Of the path, where traces are exact: what the span of the modes leaves, if not more
# is said. The estimate itself errs by sqrt(2 / n), 18% at these sizes.
TOLERANCE = 5e-3


def assert_near(estimate, expected):
    """Off by little, or by what the estimate says itself."""
    off = np.abs(estimate.path / expected - 1).max()
    assert off <= max(TOLERANCE, 3 * estimate.row_scale_error)
    return off


def heavy_rows(shape, rng, degrees=5):
    """Of Student's t, with its quantiles in place of draws: uneven in every draw."""
    quantiles = chi2.ppf((np.arange(shape[0]) + 0.5) / shape[0], degrees)
    variance = (degrees - 2) / rng.permutation(quantiles)
    return rng.standard_normal(shape) * np.sqrt(variance)[:, None]


def sparse_regression(X, rng, n_targets=1):
    beta = np.zeros((X.shape[1], n_targets))
    beta[:4] = 1.0
    return X @ beta + rng.standard_normal((len(X), n_targets))


def run_on(X, y, phases, fit_intercept=False):
    weights = np.full((len(y), 1), 1 / len(y))
    design = design_of(X).centered(weights) if fit_intercept else design_of(X)
    if fit_intercept:
        y = y - y.mean(axis=0)
    problem = Problem(design, y, weights)
    return problem, run(problem, phases, np.zeros((1, X.shape[1], y.shape[1])))


def phases_for(X, penalty, schedule, n_updates=40):
    top = np.linalg.norm(X, 2) ** 2 / len(X) + penalty.curvature
    return [Phase(penalty, schedule(0.9 / top), n_updates)]


def expected_paths(problem, trajectory, fit_intercept=False):
    """The published path and that with row scales, from the memory matrix."""
    X, y = oracles.sqrt_weighted(
        problem.design.X, problem.target[:, 0], fit_intercept=fit_intercept
    )
    A = oracles.memory_matrix(X, trajectory)
    residuals = y - trajectory.coef[:, :, 0] @ X.T
    scales, share = scales_of_rows(problem.design)
    assert share > 0.5
    published = np.diag(oracles.risk_gram(A, residuals, fit_intercept))
    return published, oracles.row_scaled_path(A, residuals, scales, fit_intercept)


@covering(
    penalty=PENALTIES,
    schedule=SCHEDULES,
    shape=SHAPES,
    fit_intercept=[False, True],
)
def test_exact_traces_equal_full_matrices(penalty, schedule, shape, fit_intercept, rng):
    X = heavy_rows(SHAPES[shape], rng)
    y = sparse_regression(X, rng)
    phases = phases_for(X, PENALTIES[penalty], SCHEDULES[schedule])
    problem, trajectory = run_on(X, y, phases, fit_intercept)
    published, expected = expected_paths(problem, trajectory, fit_intercept)
    estimate = estimate_risk(
        problem,
        trajectory,
        rule=LeaveOutRule(refits_intercept=fit_intercept),
        row_scales=True,
    )
    off = assert_near(estimate, expected)
    assert off < 0.2 * np.abs(published / expected - 1).max()


def test_a_path_of_strengths(rng):
    X = heavy_rows((50, 75), rng)
    y = sparse_regression(X, rng)
    step_size = 0.9 * 50 / np.linalg.norm(X, 2) ** 2
    phases = [Phase(L1(a), Nesterov(step_size), 10) for a in (0.5, 0.2, 0.1, 0.05)]
    problem, trajectory = run_on(X, y, phases)
    _, expected = expected_paths(problem, trajectory)
    estimate = estimate_risk(problem, trajectory, row_scales=True)
    assert_near(estimate, expected)


@pytest.mark.parametrize("method", ["hutchinson", 10])
def test_probes_find_the_ratio(method, rng):
    """The scaled path over the published one: on average over draws of the probes."""
    X = heavy_rows((100, 130), rng)
    y = sparse_regression(X, rng)
    phases = phases_for(X, L1(0.1), GradientDescent, n_updates=25)
    problem, trajectory = run_on(X, y, phases)
    published, expected = expected_paths(problem, trajectory)
    ratios = []
    for seed in range(8):
        found = [
            estimate_risk(
                problem,
                trajectory,
                method=method,
                row_scales=on,
                rng=np.random.default_rng(seed),
            )
            for on in (False, True)
        ]
        assert found[0].n_probes == found[1].n_probes > 0
        ratios.append(found[1].path / found[0].path)
    expected = expected / published
    off = np.abs(np.mean(ratios, axis=0) / expected - 1).max()
    assert off < 0.15 * np.abs(expected - 1).max()


def test_equal_scales_are_the_published_estimate(rng, set_globals):
    X = heavy_rows((60, 20), rng)
    y = sparse_regression(X, rng, n_targets=2)
    problem, trajectory = run_on(X, y, phases_for(X, Zero(), Nesterov))
    published = estimate_risk(problem, trajectory)
    equal = np.ones(60), 1.0
    set_globals(scales_of_rows=lambda design: equal)
    scaled = estimate_risk(problem, trajectory, row_scales=True)
    assert scaled.temporal.shape[1] > published.temporal.shape[1]
    np.testing.assert_allclose(scaled.path, published.path, rtol=1e-10)
    np.testing.assert_allclose(scaled.se_path, published.se_path, rtol=1e-8)


@pytest.mark.parametrize("rows", ["gaussian", "ar", "rademacher", "decaying"])
def test_rows_like_gaussian_ones_keep_the_published_estimate(rows):
    """The share is what chance leaves of it, and moves the path by below 1%."""
    n_scaled = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((150, 60))
        if rows == "ar":
            distance = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
            X = X @ np.linalg.cholesky(0.5**distance).T
        elif rows == "rademacher":
            X = np.sign(X)
        elif rows == "decaying":
            X /= np.arange(1, 61)
        y = sparse_regression(X, rng)
        problem, trajectory = run_on(X, y, phases_for(X, Zero(), Nesterov), True)
        paths = [
            estimate_risk(
                problem,
                trajectory,
                rule=LeaveOutRule(refits_intercept=True),
                row_scales=on,
            ).path
            for on in (False, True)
        ]
        np.testing.assert_allclose(paths[1], paths[0], rtol=0.01)
        n_scaled += (paths[1] != paths[0]).any()
    assert n_scaled <= 4


def test_even_rows_cost_nothing(rng, set_globals):
    """Neither do uneven ones, in tangents."""
    passes, scaled = [], []
    set_globals(
        SquaredTangents=lambda *args: passes.append(0) or SquaredTangents(*args),
        with_row_scales=lambda *args: scaled.append(0) or with_row_scales(*args),
    )
    for X in (np.sign(rng.standard_normal((60, 80))), heavy_rows((60, 80), rng)):
        problem, trajectory = run_on(
            X, sparse_regression(X, rng), phases_for(X, L1(0.1), GradientDescent)
        )
        estimate_risk(problem, trajectory, row_scales=True)
    assert len(passes) == 2
    assert len(scaled) == 1


UNEVEN_ROWS = {
    "t3": lambda shape, rng: heavy_rows(shape, rng, degrees=3),
    "lognormal": lambda shape, rng: (
        rng.standard_normal(shape) * np.exp(rng.standard_normal((shape[0], 1)))
    ),
    "one_row": lambda shape, rng: (
        rng.standard_normal(shape) * np.where(np.arange(shape[0]) == 0, 10, 1)[:, None]
    ),
}


@covering(
    rows=UNEVEN_ROWS,
    penalty=["zero", "l1"],
    schedule=["gradient_descent", "nesterov"],
    shape=[(120, 20), (80, 120)],
    seed=[0, 1],
)
def test_the_span_errs_by_little_or_says_so(rows, penalty, schedule, shape, seed):
    """The estimate errs by some 15% at these sizes; what it says is of one order."""
    rng = np.random.default_rng(seed)
    X = UNEVEN_ROWS[rows](shape, rng)
    y = sparse_regression(X, rng)
    phases = phases_for(X, PENALTIES[penalty], SCHEDULES[schedule])
    problem, trajectory = run_on(X, y, phases)
    _, expected = expected_paths(problem, trajectory)
    estimate = estimate_risk(problem, trajectory, row_scales=True)
    assert_near(estimate, expected)


@pytest.mark.parametrize("rows", ["t3", "lognormal"])
def test_moderate_scales_are_determined(rows):
    errors = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = UNEVEN_ROWS[rows]((300, 150), rng)
        y = sparse_regression(X, rng)
        problem, trajectory = run_on(X, y, phases_for(X, Zero(), GradientDescent))
        estimate = estimate_risk(problem, trajectory, row_scales=True)
        errors.append(estimate.row_scale_error)
    assert np.median(errors) < TOLERANCE


def test_where_the_exact_map_grows_along_the_run_the_span_does_not():
    """Lognormal rows and the heavy ball: within 20% of rows left out, and it warns."""
    rng = np.random.default_rng(0)
    X = UNEVEN_ROWS["lognormal"]((80, 120), rng)
    y = sparse_regression(X, rng)
    phases = phases_for(X, Zero(), SCHEDULES["heavy_ball"], 200)
    problem, trajectory = run_on(X, y, phases)
    eigenvalues = np.linalg.svd(X, compute_uv=False) ** 2 / 80
    A = oracles.spectral_memory_matrix(eigenvalues, trajectory)
    residuals = y[:, 0] - trajectory.coef[:, :, 0] @ X.T
    scales, _ = scales_of_rows(problem.design)
    exact = oracles.row_scaled_path(A, residuals, scales)
    model = IterativeRidge(
        0.0,
        solver="heavy_ball",
        momentum=0.6,
        step_size=phases[0].schedule.step_size,
        max_iter=200,
        tol=0,
        fit_intercept=False,
    )
    with pytest.warns(UserWarning, match="risk_path_ may be wrong by up to"):
        model.fit(X, y[:, 0])
    assert exact[-1] > 1000 * model.loo_path_[-1]
    np.testing.assert_allclose(model.risk_path_, model.loo_path_, rtol=0.2)


@pytest.mark.parametrize("rounds", [1, 500])
def test_without_a_solution_the_published_estimate_and_a_warning(
    rounds, rng, set_globals
):
    if rounds == 1:
        set_globals(_mean_response=partial(row_scales._mean_response, max_iter=1))
    else:
        set_globals(with_row_scales=partial(with_row_scales, most_open=0.0))
    X = heavy_rows((80, 40), rng, degrees=3)
    y = sparse_regression(X, rng)[:, 0]
    with pytest.warns(UserWarning, match="very uneven norms.*loo_path_"):
        model = IterativeRidge(0.0).fit(X, y)
    assert model.row_scale_share_ == 0
    with pytest.warns(UserWarning, match="risk_row_scales=True"):
        published = IterativeRidge(0.0, risk_row_scales=False).fit(X, y)
    np.testing.assert_array_equal(model.risk_path_, published.risk_path_)


@pytest.mark.parametrize("rows", ["t5", "outlier"])
def test_few_nodes_stand_for_all_scales(rows, rng):
    scales = 1 / rng.chisquare(5, 300)
    if rows == "outlier":
        scales = np.r_[100, rng.uniform(0.8, 1.2, 299)]
    scales /= scales.mean()
    nodes, weights = row_scales._nodes(scales, 16)
    for b in np.concatenate([np.geomspace(0.01, 100, 20), 1j * np.geomspace(0.01, 10)]):
        expected = np.mean(scales / (1 + scales * b))
        found = weights @ (nodes / (1 + nodes * b))
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_targets_share_the_scales(rng):
    X = heavy_rows((60, 20), rng)
    y = sparse_regression(X, rng, n_targets=3)
    phases = phases_for(X, Zero(), Nesterov)
    together = estimate_risk(*run_on(X, y, phases), row_scales=True)
    alone = [
        estimate_risk(*run_on(X, y[:, [r]], phases), row_scales=True).path
        for r in range(3)
    ]
    np.testing.assert_allclose(together.path, np.mean(alone, axis=0), rtol=1e-3)


def test_standard_error_of_probes_is_their_spread(rng):
    X = heavy_rows((150, 200), rng)
    y = sparse_regression(X, rng)
    problem, trajectory = run_on(X, y, phases_for(X, L1(0.05), GradientDescent))
    repeats = [
        estimate_risk(
            problem,
            trajectory,
            method=8,
            row_scales=True,
            rng=np.random.default_rng(seed),
        )
        for seed in range(60)
    ]
    paths = np.array([repeat.path for repeat in repeats])[:, [5, 15, 40]]
    claimed = np.array([repeat.mc_se_path for repeat in repeats])[:, [5, 15, 40]]
    ratio = paths.std(axis=0, ddof=1) / np.sqrt((claimed**2).mean(axis=0))
    assert (0.7 < ratio).all()
    assert (ratio < 1.4).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls", [TrajectoryLasso, IterativeRidge])
def test_factors_give_residuals_and_all_pairs(cls, weighted, rng):
    X = heavy_rows((80, 40), rng)
    y = sparse_regression(X, rng)[:, 0]
    weights = rng.uniform(0.5, 2, 80) if weighted else np.ones(80)
    model = cls(0.1, max_iter=30, tol=0).fit(X, y, sample_weight=weights)
    assert model.row_scale_share_ > 0.5
    temporal, spatial = model.risk_residual_path_
    E = temporal @ spatial
    gram = (E * weights) @ E.T / weights.sum()
    np.testing.assert_allclose(gram, model.risk_gram_, rtol=1e-6, atol=1e-10)
    np.testing.assert_allclose(np.diag(gram), model.risk_path_, rtol=1e-4)


def test_residuals_estimate_leave_one_out(rng):
    """Row by row, and better than one map for all rows does."""
    X = heavy_rows((200, 100), rng)
    y = sparse_regression(X, rng)
    phases = [Phase(Zero(), GradientDescent(0.15), 20)]
    problem, trajectory = run_on(X, y, phases)
    held_out = np.empty(200)
    for i in range(200):
        rest = np.delete(np.arange(200), i)
        _, alone = run_on(X[rest], y[rest], phases)
        held_out[i] = y[i, 0] - X[i] @ alone.coef[20, :, 0]
    errors = []
    for on in (False, True):
        estimate = estimate_risk(problem, trajectory, row_scales=on)
        E = estimate.temporal[20] @ estimate.spatial[:, :, 0]
        errors.append(np.sqrt(np.mean((E - held_out) ** 2) / np.mean(held_out**2)))
    assert errors[1] < 0.1
    assert errors[1] < errors[0] / 3


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["zero", "l1"])
def test_unbiased_on_heavy_rows(penalty, rng):
    """Mean of estimate over truth within its standard error; below it without."""
    n, p, n_repeats = 200, 300, 20
    ratios = {True: [], False: []}
    for _ in range(n_repeats):
        X = heavy_rows((n, p), rng)
        beta = np.zeros((p, 1))
        beta[:10] = 2 / np.sqrt(10)
        y = X @ beta + rng.standard_normal((n, 1))
        phases = phases_for(X, PENALTIES[penalty], GradientDescent, 30)
        problem, trajectory = run_on(X, y, phases)
        truth = ((trajectory.coef[:, :, 0].T - beta) ** 2).sum(axis=0) + 1
        for on, found in ratios.items():
            estimate = estimate_risk(problem, trajectory, method="exact", row_scales=on)
            found.append(estimate.path[[10, 30]] / truth[[10, 30]])
    scaled, published = np.array(ratios[True]), np.array(ratios[False])
    standard_error = scaled.std(axis=0, ddof=1) / np.sqrt(n_repeats)
    assert (np.abs(scaled.mean(axis=0) - 1) < 3 * standard_error).all()
    assert (published.mean(axis=0) < 0.93).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", ["zero", "l1"])
def test_a_single_outlier_breaks_nothing(penalty, schedule, rng):
    X = rng.standard_normal((60, 90))
    X[0] *= 30
    y = sparse_regression(X, rng)
    phases = phases_for(X, PENALTIES[penalty], SCHEDULES[schedule], 100)
    problem, trajectory = run_on(X, y, phases)
    estimate = estimate_risk(problem, trajectory, row_scales=True)
    assert np.isfinite(estimate.path).all()
    assert (estimate.path > 0).all()
    assert np.isfinite(estimate.se_path).all()


def test_sparse_designs_with_empty_rows(rng):
    X = rng.standard_normal((60, 30)) * (rng.random((60, 30)) < 0.2)
    X[:5] = 0
    y = sparse_regression(X, rng)[:, 0]
    dense, csr = (
        IterativeRidge(0.0, max_iter=20).fit(data, y)
        for data in (X, sparse.csr_matrix(X))
    )
    assert 0 < dense.row_scale_share_ <= 1
    assert csr.row_scale_share_ == pytest.approx(dense.row_scale_share_)
    np.testing.assert_allclose(csr.risk_path_, dense.risk_path_, rtol=1e-6)


def test_estimators_can_do_without(rng):
    X = heavy_rows((80, 60), rng, degrees=3)
    y = sparse_regression(X, rng)[:, 0]
    with pytest.warns(UserWarning, match="very uneven norms"):
        published = IterativeRidge(1.0, risk_row_scales=False).fit(X, y)
    assert published.row_scale_share_ == 0
    scaled = IterativeRidge(1.0).fit(X, y)
    assert 0.5 < scaled.row_scale_share_ <= 1
    assert (scaled.risk_path_[1:] != published.risk_path_[1:]).all()
