"""Ridge by EigenPro: its limits, and rows left out by definition."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV
from skacv.optim.arrays import design_of
from skacv.optim.penalties import Zero
from skacv.optim.preconditioner import Preconditioner
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import EigenPro, fixed_batches
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import LeaveOutRule
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.internals import without_rows
from tests.oracles import sqrt_weighted
from tests.runs import run_of

EXACT = {"rtol": 0, "atol": 1e-8}
SHAPES = [(60, 20), (40, 70)]
N_UPDATES = 15


def drawn(shape, rng, n_targets=None):
    X = rng.standard_normal(shape) * np.geomspace(8, 0.2, shape[1]) + 0.5
    y = X @ rng.standard_normal(shape[1]) / 4 + rng.standard_normal(shape[0]) + 3
    if n_targets:
        y = y[:, None] + rng.standard_normal((shape[0], n_targets))
    return X, y


def model_of(alpha=2.0, **params):
    model = IterativeRidge(alpha, solver="eigenpro", n_components=4, random_state=0)
    return model.set_params(**{"max_iter": N_UPDATES, "tol": 0, **params})


def schedule_of(model, X, weights=None):
    """The schedule of such a model, which does not depend on the target."""
    short = clone(model).set_params(max_iter=1, loo=False, risk=False, cv=None)
    run = run_of(short, X, X[:, 0], sample_weight=weights)
    return run.trajectory.phases[0].schedule


def preconditioner(model, X, weights=None):
    """P and its rows, by the whole decomposition of the subsample."""
    rows = schedule_of(model, X, weights).preconditioner.rows
    q = model.n_components
    weights = np.ones(len(X)) if weights is None else weights
    mean = weights @ X / weights.sum()
    sample = (X - mean)[rows] * np.sqrt(weights * len(X) / weights.sum())[rows, None]
    values, vectors = np.linalg.eigh(sample.T @ sample / len(rows))
    values, vectors = values[::-1], vectors[:, ::-1]
    share = (values[q] / values[:q]) ** 0.95
    top = vectors[:, :q]
    return np.eye(X.shape[1]) - (top * (1 - share)) @ top.T, rows


def path_without(model, X, y, P, alpha, kept):
    """Coefficients and intercepts of every iterate of the run on the rows kept.

    The preconditioner, the step and the divisor are those of the run.
    """
    mean, offset = kept @ X / kept.sum(), kept @ y / kept.sum()
    Xc, yc, weights = X - mean, y - offset, kept / len(kept)
    b = np.zeros((X.shape[1], *y.shape[1:]))
    path = [b]
    for strength in np.repeat(alpha, N_UPDATES):
        gradient = Xc.T @ (weights.reshape(-1, *[1] * (y.ndim - 1)) * (Xc @ b - yc))
        b = b - model.step_size_ * P @ (gradient + strength / len(kept) * b)
        path.append(b)
    return np.array(path), mean, offset


def predictions_without(model, X, y, P, alpha, i):
    kept = np.arange(len(X)) != i
    path, mean, offset = path_without(model, X, y, P, alpha, kept.astype(float))
    return np.einsum("j,tj...->t...", X[i] - mean, path) + offset


def predictions_without_in_batches(model, X, y, P, batches, alpha, i):
    """The same batches and means, the gradient of the row never taken."""
    mean, offset = X.mean(axis=0), y.mean()
    Xc, yc = X - mean, y - offset
    b, path = np.zeros(X.shape[1]), [offset]
    for _ in range(N_UPDATES):
        for batch in batches:
            kept = batch[batch != i]
            gradient = Xc[kept].T @ (Xc[kept] @ b - yc[kept]) / len(batch)
            b = b - model.step_size_ * P @ (gradient + alpha / len(X) * b)
        path.append(Xc[i] @ b + offset)
    return np.array(path)


@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("alpha", [0.0, 2.0, [20.0, 2.0]])
@pytest.mark.parametrize("shape", SHAPES)
def test_leave_one_out_keeps_the_preconditioner(shape, alpha, n_targets, rng):
    X, y = drawn(shape, rng, n_targets)
    model = model_of(alpha).fit(X, y)
    P, rows = preconditioner(model, X)
    outside = np.setdiff1d(np.arange(len(X)), rows)
    np.testing.assert_array_equal(model.loo_indices_, outside)
    found = model.loo_prediction_path_
    assert len(found) == np.size(alpha) * N_UPDATES + 1
    for k, i in enumerate(outside):
        expected = predictions_without(model, X, y, P, alpha, i)
        np.testing.assert_allclose(found[:, k], expected, **EXACT)
    costs = (found - y[outside]) ** 2
    mean = costs.reshape(*costs.shape[:2], -1).mean(axis=(1, 2))
    np.testing.assert_allclose(model.loo_path_, mean, **EXACT)


@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_leave_one_out_in_batches(shape, alpha, rng):
    X, y = drawn(shape, rng)
    model = model_of(alpha, batch_size=13).fit(X, y)
    batches = schedule_of(model, X).batches
    assert len(batches) == -(-shape[0] // 13)
    P, _ = preconditioner(model, X)
    for k, i in enumerate(model.loo_indices_):
        expected = predictions_without_in_batches(model, X, y, P, batches, alpha, i)
        np.testing.assert_allclose(model.loo_prediction_path_[:, k], expected, **EXACT)


@pytest.mark.parametrize("shape", SHAPES)
def test_folds_keep_the_preconditioner(shape, rng):
    X, y = drawn(shape, rng)
    folds = KFold(4, shuffle=True, random_state=0)
    model = model_of(cv=folds, loo=False).fit(X, y)
    P, rows = preconditioner(model, X)
    first = 0
    for (fitted, judged), found in zip(folds.split(X), model.cv_indices_):
        np.testing.assert_array_equal(np.sort(found), np.setdiff1d(judged, rows))
        kept = np.isin(np.arange(len(X)), fitted).astype(float)
        path, mean, offset = path_without(model, X, y, P, 2.0, kept)
        expected = path @ (X[found] - mean).T + offset
        part = model.cv_prediction_path_[:, first : first + len(found)]
        np.testing.assert_allclose(part, expected, **EXACT)
        first += len(found)


@pytest.mark.parametrize("batch_size", [None, 8])
def test_folds_with_few_rows_are_judged_by_those_the_preconditioner_has_not_seen(
    batch_size, rng
):
    X, y = drawn((35, 20), rng)
    folds = KFold(12, shuffle=True, random_state=1)
    settings = {"n_components": 1, "loo": False}
    settings |= {"risk": False, "batch_size": batch_size}
    model = model_of(0.0, cv=folds, **settings).fit(X, y)
    seen = schedule_of(model, X).preconditioner.rows
    assert len(seen) == 11
    judged = np.concatenate(model.cv_indices_)
    np.testing.assert_array_equal(np.sort(judged), np.setdiff1d(np.arange(35), seen))
    errors = (model.cv_prediction_path_ - y[judged]) ** 2
    np.testing.assert_allclose(model.cv_path_, errors.mean(axis=1), rtol=1e-12)
    assert model.cv_fold_path_.shape[1] == len(model.cv_indices_)
    # A fold of rows that have all been seen judges nothing.
    alone = model_of(0.0, cv=35, **settings).fit(X, y)
    assert len(alone.cv_indices_) == 35 - len(seen)


@pytest.mark.parametrize("batch_size", [None, 13])
def test_sparse_and_weighted_rows(batch_size, rng):
    X, y = drawn((60, 20), rng)
    X[np.abs(X) < 1] = 0
    weights = rng.integers(1, 4, 60).astype(float)
    dense, light = (
        model_of(batch_size=batch_size).fit(rows, y, sample_weight=weights)
        for rows in (X, sparse.csr_matrix(X))
    )
    for name in ("coef_path_", "risk_path_", "loo_path_"):
        expected = getattr(dense, name)
        np.testing.assert_allclose(getattr(light, name), expected, rtol=1e-8)
    P, _ = preconditioner(dense, X, weights)
    found = schedule_of(dense, X, weights).preconditioner.dot(np.eye(20))
    np.testing.assert_allclose(found, P, atol=1e-10)


@pytest.mark.parametrize("solver", ["gd", "eigenpro"])
@pytest.mark.parametrize("shape", SHAPES)
def test_limit_is_ridge(shape, solver, rng):
    """Gradient descent comes there, by a share alpha / (alpha + 1e4) each time."""
    X, y = drawn(shape, rng)
    model = model_of(20.0, max_iter=15_000, risk=False, loo=False)
    model.set_params(solver=solver).fit(X, y)
    expected = Ridge(20.0).fit(X, y).coef_
    np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


@pytest.mark.filterwarnings("ignore:The largest column of X is")
def test_without_directions_it_is_gradient_descent(rng):
    X, y = drawn((60, 20), rng)
    plain = model_of(solver="gd").fit(X, y)
    model = model_of(n_components=0, step_size=plain.step_size_).fit(X, y)
    for name in ("coef_path_", "loo_path_", "risk_path_"):
        expected = getattr(plain, name)
        np.testing.assert_allclose(getattr(model, name), expected, rtol=1e-9)
    assert len(model.loo_indices_) == 60


def test_all_rows_in_a_batch_is_the_full_batch(rng):
    X, y = drawn((60, 20), rng)
    full, batch = (model_of(batch_size=size).fit(X, y) for size in (None, 60))
    np.testing.assert_array_equal(full.coef_path_, batch.coef_path_)


def test_a_hundred_updates_do_what_gradient_descent_does_in_five_hundred(rng):
    X, y = drawn((400, 60), rng)
    model = model_of(0.0, n_components=20, max_iter=100, loo=False, risk=False)
    plain = clone(model).set_params(solver="gd", max_iter=500).fit(X, y)
    assert model.fit(X, y).train_path_[-1] < plain.train_path_[-1]


@pytest.mark.filterwarnings("ignore:The rows of X have very uneven norms")
@pytest.mark.parametrize("weight_of_subsample", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("shape", SHAPES)
def test_risk_is_that_of_the_memory_matrix_on_the_other_rows(
    shape, alpha, weight_of_subsample, rng
):
    X, y = drawn(shape, rng)
    model = model_of(alpha, risk_row_scales=False).fit(X, y)
    n, rows = len(X), schedule_of(model, X).preconditioner.rows
    others = np.setdiff1d(np.arange(n), rows)
    weights = rng.uniform(0.5, 2, n)
    weights[rows] *= weight_of_subsample
    model.fit(X, y, sample_weight=weights)
    P, found_rows = preconditioner(model, X, weights)
    np.testing.assert_array_equal(found_rows, rows)
    Xw, _ = sqrt_weighted(X, y, weights, fit_intercept=True)
    share = alpha / weights.sum()
    curvature = Xw.T @ Xw / n + share * np.eye(X.shape[1])
    power = model.step_size_ * P
    A = np.zeros((N_UPDATES + 1, N_UPDATES + 1))
    for lag in range(1, N_UPDATES + 1):
        leverage = np.einsum("ij,jk,ik->i", Xw[others], power, Xw[others])
        A += leverage.mean() * np.eye(N_UPDATES + 1, k=-lag)
        power = power - model.step_size_ * P @ curvature @ power
    predicted = model.coef_path_ @ X[others].T + model.intercept_path_[:, None]
    E = np.linalg.solve(np.eye(len(A)) - A / (n - 1), y[others] - predicted)
    own = weights[others] / weights[others].sum()
    expected = E**2 @ own * (1 + 1 / n) * n / (n - 1)
    np.testing.assert_allclose(model.risk_path_, expected, rtol=1e-4)
    temporal, spatial = model.risk_residual_path_
    squares = (temporal @ spatial) ** 2
    np.testing.assert_allclose(squares @ own, expected, rtol=1e-4)
    probed = model.set_params(risk=400).fit(X, y, sample_weight=weights)
    off = np.abs(probed.risk_path_ - expected)
    assert (off <= 4 * probed.risk_mc_se_path_ + 1e-3 * expected).all()


def test_risk_in_batches_is_leave_one_out_by_mean_memories(rng):
    X, y = drawn((60, 20), rng)
    model = model_of(batch_size=20, risk=2000).fit(X, y)
    P, rows = preconditioner(model, X)
    others = np.setdiff1d(np.arange(60), rows)
    mean, offset = X.mean(axis=0), y.mean()
    Xc, yc = X - mean, y - offset
    # Every row by itself is a label here, and the memories are exact.
    target = np.column_stack([yc, -np.eye(60)])
    b, visits, ends = np.zeros((20, 61)), [], [-target]
    batches = schedule_of(model, X).batches
    for _ in range(N_UPDATES):
        visited = np.empty_like(target)
        for batch in batches:
            visited[batch] = Xc[batch] @ b - target[batch]
            gradient = Xc[batch].T @ visited[batch] / len(batch)
            b = b - model.step_size_ * P @ (gradient + 2.0 / 60 * b)
        visits.append(visited)
        ends.append(Xc @ b - target)
    total = np.zeros(N_UPDATES + 1)
    for batch in batches:
        own = np.intersect1d(batch, others)
        c = [np.mean([v[i, 1 + i] for i in own]) for v in visits]
        d = [np.mean([r[i, 1 + i] for i in own]) for r in ends]
        held_out = []
        for s in range(N_UPDATES):
            past = sum((c[j - 1] - c[j]) * held_out[s - j] for j in range(1, s + 1))
            held_out.append(visits[s][own, 0] + past)
        for t in range(N_UPDATES + 1):
            past = sum((d[j - 1] - d[j]) * held_out[t - j] for j in range(1, t + 1))
            total[t] += np.sum((60 / 59 * (ends[t][own, 0] + past)) ** 2)
    off = np.abs(model.risk_path_ - total / len(others))
    assert off[0] <= 1e-10
    assert (off[1:] <= 4 * model.risk_mc_se_path_[1:]).all()
    np.testing.assert_allclose(np.diag(model.risk_gram_), model.risk_path_)


@pytest.mark.slow
def test_few_labels_in_batches_leave_no_bias(rng):
    """Their noise is squared: some 3% too much with two of them, taken off again."""
    X = rng.standard_normal((80, 50)) * np.geomspace(4, 0.3, 50)
    y = X @ rng.standard_normal((50, 1)) + 3 * rng.standard_normal((80, 1))
    problem = Problem(design_of(X), y, np.full((80, 1), 1 / 80))
    none = Preconditioner.of(problem.design, np.arange(10), 0, rng)
    schedule = EigenPro(0.01, none, batches=fixed_batches(80, 20, 0))
    trajectory = run(problem, [Phase(Zero(), schedule, 20)], np.zeros((1, 50, 1)))

    def last(n_labels, seed):
        rng = np.random.default_rng(seed)
        estimate = estimate_risk(
            problem, trajectory, rule=LeaveOutRule(), method=n_labels, rng=rng
        )
        temporal, spatial = estimate.temporal, estimate.spatial[:, :, 0]
        squares = np.mean((temporal @ spatial) ** 2, axis=1)
        np.testing.assert_allclose(squares, estimate.path, rtol=1e-6)
        return estimate.path[-1]

    found = np.array([last(2, seed) for seed in range(500)])
    # Of the mean of 500 runs with two labels each, and of one run with 10,000.
    error = found.std() * np.sqrt(1 / 500 + 2 / 10_000)
    assert abs(found.mean() - last(10_000, 500)) < 3.5 * error


def test_uneven_rows_warn_in_batches(rng):
    """Row scales are not for passes through batches, asked for or not."""
    X, y = drawn((200, 150), rng)
    weights = rng.exponential(size=200) ** 3
    model = model_of(0.0, batch_size=50, max_iter=60, loo=False)
    with pytest.warns(UserWarning, match="very uneven norms.*not available"):
        model.fit(X, y, sample_weight=weights)
    assert model.row_scale_share_ == 0
    with pytest.warns(UserWarning, match="very uneven norms"):
        model.set_params(risk_row_scales=False).fit(X, y, sample_weight=weights)


@pytest.mark.parametrize("batch_size", [None, 50])
def test_estimates_are_near_the_truth(batch_size):
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        scale = np.geomspace(10, 0.3, 100)
        X = rng.standard_normal((400, 100)) * scale
        beta = 0.1 * rng.standard_normal(100) / np.sqrt(scale)
        y = X @ beta + 2 * rng.standard_normal(400)
        model = IterativeRidge(
            0.0, solver="eigenpro", max_iter=20, batch_size=batch_size, random_state=0
        ).fit(X, y)
        truth = np.sum(((model.coef_path_ - beta) * scale) ** 2, axis=1) + 4
        truth += model.intercept_path_**2
        ratios.append([model.risk_path_ / truth, model.loo_path_ / truth])
    mean, error = np.mean(ratios, axis=0), np.std(ratios, axis=0) / np.sqrt(12)
    assert (np.abs(mean - 1) <= stats.t(11).ppf(0.9995) * error).all()


def test_warm_start_goes_on_with_the_same_preconditioner(rng):
    X, y = drawn((60, 20), rng)
    for batch_size in (None, 13):
        long = model_of(batch_size=batch_size).fit(X, y)
        short = model_of(batch_size=batch_size, max_iter=6, warm_start=True)
        short.fit(X, y).set_params(max_iter=N_UPDATES).fit(X, y)
        for name in ("coef_path_", "loo_path_", "risk_path_"):
            expected = getattr(long, name)
            np.testing.assert_allclose(getattr(short, name), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The largest column of X is")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("solvers", [("gd", "eigenpro"), ("eigenpro", "gd")])
def test_warm_start_with_another_solver(solvers, shape, rng):
    """Rows are left out of both phases, and risk is that of the memory matrix."""
    X, y = drawn(shape, rng)
    model = model_of(warm_start=True, risk_row_scales=False, risk="exact")
    for solver in solvers:
        run = run_of(model.set_params(solver=solver), X, y)
    n, p = shape
    phases = run.trajectory.phases
    (schedule,) = (
        phase.schedule for phase in phases if hasattr(phase.schedule, "batches")
    )
    rows, identity = schedule.preconditioner.rows, np.eye(p)
    factors = {"gd": identity, "eigenpro": schedule.preconditioner.dot(identity)}
    powers = [
        phase.schedule.step_size * factors[solver]
        for phase, solver in zip(phases, solvers)
        for _ in range(N_UPDATES)
    ]
    assert model.n_iter_ == len(powers) == 2 * N_UPDATES

    def coefficients(Xc, yc, strength):
        path = [np.zeros(p)]
        for power in powers:
            gradient = Xc.T @ (Xc @ path[-1] - yc) / n + strength * path[-1]
            path.append(path[-1] - power @ gradient)
        return np.array(path)

    others = np.setdiff1d(np.arange(n), rows)
    np.testing.assert_array_equal(model.loo_indices_, others)
    for k, i in enumerate(others):
        kept = np.arange(n) != i
        mean, offset = X[kept].mean(axis=0), y[kept].mean()
        path = coefficients(X[kept] - mean, y[kept] - offset, 2.0 / n)
        expected = path @ (X[i] - mean) + offset
        np.testing.assert_allclose(model.loo_prediction_path_[:, k], expected, **EXACT)

    Xc = X - X.mean(axis=0)
    curvature = Xc.T @ Xc / n + 2.0 / n * identity
    A = np.zeros((len(powers) + 1, len(powers) + 1))
    for s, power in enumerate(powers):
        change = power
        for t in range(s + 1, len(A)):
            A[t, s] = np.einsum("ij,jk,ik->i", Xc[others], change, Xc[others]).mean()
            if t < len(powers):
                change = change - powers[t] @ curvature @ change
    predicted = model.coef_path_ @ X[others].T + model.intercept_path_[:, None]
    E = np.linalg.solve(np.eye(len(A)) - A / (n - 1), y[others] - predicted)
    expected = np.mean(E**2, axis=1) * (1 + 1 / n) * n / (n - 1)
    np.testing.assert_allclose(model.risk_path_, expected, rtol=1e-3)


@pytest.mark.parametrize("batch_size", [None, 13])
def test_stopping_and_intervals(batch_size, rng):
    X, y = drawn((60, 20), rng)
    inner = model_of(0.0, batch_size=batch_size, keep_data=True, max_iter=60)
    for criterion in ("auto", "risk", "loo", "cv", "r2"):
        model = TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=5)
        model.fit(X, y)
        assert 0 < model.best_iter_ <= 60
    model = clone(inner).fit(X, y).at_iteration(7)
    P, _ = preconditioner(model, X)
    width = np.ptp(model.predict_interval(X[:5], method="risk"), axis=1)
    assert (width > 0).all()
    coef, intercept = next(iter(without_rows(model)))
    if batch_size is None:
        i = model.loo_indices_[0]
        kept = (np.arange(60) != i).astype(float)
        path, mean, offset = path_without(model, X, y, P, 0.0, kept)
        np.testing.assert_allclose(coef[0], path[7], **EXACT)
        np.testing.assert_allclose(intercept[0], offset - mean @ path[7], **EXACT)
    own = np.einsum("ij,ij->i", X[model.loo_indices_], coef) + intercept
    np.testing.assert_allclose(own, model.loo_prediction_path_[7], **EXACT)
    assert np.isfinite(model.predict_interval(X[:5])).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_components": 20, "subsample_size": 20}, "n_components must be less"),
        ({"subsample_size": 60}, "subsample_size must be less"),
        ({"alpha": [1.0, 0.1], "batch_size": 13}, "single alpha"),
        ({"step_size": 1e4}, "largest stable step"),
        ({"cv": [(np.arange(1, 60), [0])], "subsample_size": 60}, "subsample"),
    ],
)
def test_bad_parameters_change_nothing(params, message, rng):
    X, y = drawn((60, 20), rng)
    model = model_of().fit(X, y)
    former = {key: value for key, value in vars(model).items() if key.endswith("_")}
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(X, y)
    assert all(vars(model)[key] is value for key, value in former.items())


def test_largest_stable_step_is_named(rng):
    X, y = drawn((60, 20), rng)
    model = model_of(0.0, loo=False, risk=False, max_iter=2000).fit(X, y)
    P, _ = preconditioner(model, X)
    Xc = X - X.mean(axis=0)
    stable = 2 / np.linalg.eigvals(P @ Xc.T @ Xc / 60).real.max()
    assert model.step_size_ == pytest.approx(stable / 2, rel=0.03)
    model.set_params(step_size=0.99 * stable).fit(X, y)
    with pytest.raises(ValueError, match=f"largest stable.*{stable:.6f}"[:-2]):
        model.set_params(step_size=1.05 * stable).fit(X, y)
