"""The memory matrix of runs in batches: the textbook with dense Jacobians, refits."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import solve_triangular

from skacv import (
    TrajectoryHuberRegressor,
    TrajectoryLogisticRegression,
    TrajectoryRegressor,
)
from skacv.optim.arrays import design_of
from skacv.optim.losses import Huber, Logistic, Multinomial, SquaredError
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.preconditioner import Preconditioner
from skacv.optim.schedules import (
    EigenPro,
    GradientDescent,
    RandomBatches,
    StochasticGradient,
    fixed_batches,
)
from skacv.risk.inference.label_effects import LabelEffects
from skacv.risk.inference.scores import scores_at_the_end
from skacv.risk.memory.curved_run import CurvedRun
from skacv.risk.memory.gradient_points import BatchPoints, GradientPoints, PassPoints
from tests import curved_runs, oracles
from tests.cases import covering
from tests.curved_runs import (
    LOSSES,
    drawn,
    held_out,
    mean_losses,
    read_any_loss,
    run_of,
    without_each_row,
)

from .test_curved_memory import assert_near_runs_without_each_row

PENALTIES = curved_runs.PENALTIES
N_ROWS = 24


def passes(step, n_rows=N_ROWS, batch_size=7):
    return StochasticGradient(step, 0.5, n_rows, batch_size, 0)


def random_batches(step, n_rows=N_ROWS, batch_size=9):
    return RandomBatches(step, n_rows, batch_size, 0)


def all_batches(step):
    return RandomBatches(step, N_ROWS, N_ROWS, 0)


class Dense:
    """Dense responses to the shocks of every batch of a run, step by step."""

    def __init__(self, X, problem, trajectory):
        self.X, self.problem, self.trajectory = X, problem, trajectory
        (self.n, self.p), self.K = X.shape, problem.target.shape[1]
        self.weight = self.n * problem.row_weights[:, 0]

    def curvature(self, coef):
        found = self.problem.loss.curvature_matrix(self.problem.target, self.X @ coef)
        return found * self.weight[:, None, None]

    def slopes(self, coef):
        derivative = self.problem.loss.derivative(self.problem.target, self.X @ coef)
        return -derivative * self.weight[:, None]

    def leverages(self, response):
        """x_i'Q x_i of every row, (n, K, K)."""
        p, K = self.p, self.K
        return np.einsum(
            "ij,jkml,im->ikl", self.X, response.reshape(p, K, p, K), self.X
        )

    def steps(self):
        """(t, number, rows, coef, responses by (t, number)) before every step."""
        size, responses = self.p * self.K, {}
        for t, _, taken, penalty in self.trajectory.updates():
            coef, step = self.trajectory.coef[t], taken.update.step_size
            ridge = penalty.smooth_gradient(np.ones(size))
            for number, rows in enumerate(taken.batches):
                yield t, number, rows, coef, responses
                X, D = self.X[rows], self.curvature(coef)[rows]
                hessian = np.einsum("ij,ikl,im->jkml", X, D, X).reshape(size, size)
                hessian = hessian / len(rows) + np.diag(ridge)
                gradient = -X.T @ self.slopes(coef)[rows] / len(rows)
                gradient += penalty.smooth_gradient(coef)
                coef = penalty.prox(coef - step * gradient, step)
                prox = oracles.elementwise_jacobian(penalty, coef.ravel(), step)
                responses = {
                    s: prox @ (Q - step * hessian @ Q) for s, Q in responses.items()
                }
                responses[t, number] = step / len(rows) * prox
        yield t + 1, 0, None, coef, responses


def read_by(dense, D, rows, scales, sources):
    """A row of W, as some rows read it at the curvatures D.

    ``sources`` are (Q, rows shocked, rows that feed back, their D, direct, W there).
    """
    by = scales[:, None, None] * D
    if not D[rows].any():
        by = np.tile(np.eye(dense.K), (dense.n, 1, 1))
    found = 0.0
    for Q, shocked, fed, bend, direct, known in sources:
        q = by @ dense.leverages(Q)
        shocked, fed = np.intersect1d(rows, shocked), np.intersect1d(rows, fed)
        found = found + np.einsum("ikk->", q[shocked]) * direct
        back = np.einsum("i,ikl,ilk->", scales[fed], q[fed], bend[fed])
        found = found + back * known
    return found / np.einsum("i,ikk->", scales[rows], by[rows])


def held_out_of_batches(X, problem, trajectory, scales):
    """K W = A over all rows; what the row's own batches hold is taken off."""
    dense, T = Dense(X, problem, trajectory), trajectory.n_updates
    everyone, unit = np.arange(dense.n), np.eye(T)
    W, slopes, sources = np.zeros((T + 1, T)), [], {}
    for t, _, rows, coef, responses in dense.steps():
        D = dense.curvature(coef)
        own = [(Q, *sources[s]) for s, Q in responses.items()]
        if own:
            W[t] = read_by(dense, D, everyone, scales, own)
        if rows is not None:
            sources[t, 0] = everyone, rows, D, unit[t], W[t]
            slopes.append(np.zeros_like(problem.target))
            slopes[t][rows] = dense.slopes(coef)[rows]
    lost = np.einsum("ts,sik->tik", W, np.array(slopes))
    return trajectory.predictor - scales[:, None] * lost


def held_out_of_passes(X, problem, trajectory, scales):
    """The rows of a batch have the W of their visits, and of the end of each pass."""
    dense, T = Dense(X, problem, trajectory), trajectory.n_updates
    unit, slopes = np.eye(T), np.zeros((T, *problem.target.shape))
    found, sources, visited = np.array(trajectory.predictor), {}, []
    for t, number, rows, coef, responses in dense.steps():
        D = dense.curvature(coef)
        own = [(Q, *sources[s]) for s, Q in responses.items()]
        if number == 0 and t:  # a pass has ended
            for batch in visited:
                at_end = read_by(dense, D, batch, scales, own)
                lost = np.einsum("s,sik->ik", at_end, slopes[:, batch])
                found[t, batch] -= scales[batch, None] * lost
            visited = []
        if rows is not None:
            W = read_by(dense, D, rows, scales, own) if own else np.zeros(T)
            slopes[t, rows] = dense.slopes(coef)[rows]
            sources[t, number] = rows, rows, D, unit[t], W
            visited.append(rows)
    return found


TEXTBOOKS = {random_batches: held_out_of_batches, passes: held_out_of_passes}


@covering(loss=LOSSES, penalty=PENALTIES, schedule=TEXTBOOKS, p=[6, 28])
def test_exact_traces_equal_dense_jacobians(loss, penalty, schedule, p, rng):
    """With weights and row scales of any kind."""
    X, y = drawn(loss, N_ROWS, p, rng)
    weights, scales = rng.uniform(0.5, 2, N_ROWS), rng.uniform(0.5, 1.5, N_ROWS)
    problem, trajectory = run_of(loss, X, y, penalty, schedule, 8, weights)
    expected = TEXTBOOKS[schedule](X, problem, trajectory, scales)
    found = held_out(problem, trajectory, scales)
    size = np.abs(expected - trajectory.predictor).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * size)


def test_batches_are_the_published_triangular_system(rng):
    """Tan & Bellec (2024), eq. 9 to 11: Huber regression, soft thresholding."""
    X, y = drawn(Huber(1.0), N_ROWS, 6, rng)
    problem, trajectory = run_of(Huber(1.0), X, y, L1(0.05), random_batches)
    n, T = N_ROWS, trajectory.n_updates
    step = trajectory.phases[0].schedule.step_size
    A, K = np.zeros((T + 1, T + 1)), np.zeros((T + 1, T + 1))
    psi, responses = np.zeros((T + 1, n)), []
    residuals = y[:, 0] - trajectory.coef[:, :, 0] @ X.T
    batches = [taken.update.batches[0] for taken in trajectory.updates()]
    S = np.zeros((T + 1, n))
    for t, rows in enumerate(batches):
        S[t, rows] = 1
    D = (np.abs(residuals) <= 1).astype(float)
    psi = S * np.clip(residuals, -1, 1)
    for t in range(T + 1):
        K[t, t] = D[t].sum()
        for s, Q in enumerate(responses):
            leverage = D[t] * np.einsum("ij,jk,ik->i", X, Q, X)
            A[t, s], K[t, s] = leverage.sum(), -(leverage * S[s]) @ D[s]
        if t < T:
            active = np.diag((trajectory.coef[t + 1, :, 0] != 0).astype(float))
            rows = batches[t]
            hessian = X[rows].T @ (D[t, rows, None] * X[rows]) / len(rows)
            responses = [active @ (Q - step * hessian @ Q) for Q in responses]
            responses.append(step / len(rows) * active)
    expected = residuals + solve_triangular(K, A, lower=True) @ psi
    found = y[:, 0] - held_out(problem, trajectory, np.ones(n))[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-10)
    risk = read_any_loss(problem, trajectory, "exact").path
    cost = Huber(1.0).reported(y[:, 0], y[:, 0] - expected).mean(axis=1)
    np.testing.assert_allclose(risk, cost, rtol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_batches_of_all_rows_equal_the_full_batch(loss, penalty, rng):
    """As a pass through one batch, and as single batches."""
    X, y = drawn(loss, N_ROWS, 6, rng)
    problem, plain = run_of(loss, X, y, penalty, GradientDescent)
    _, whole = run_of(loss, X, y, penalty, all_batches)
    np.testing.assert_allclose(whole.coef, plain.coef, atol=1e-13)
    scales = rng.uniform(0.5, 1.5, N_ROWS)
    expected = held_out(problem, plain, scales)
    for points in (PassPoints, BatchPoints):
        own = CurvedRun(points(problem, whole), scales)
        modes, solution = own.solved("exact", rng)
        found = own.held_out(modes, solution, slice(None), slice(None))
        np.testing.assert_allclose(found, expected, atol=1e-10)
    assert type(own.points) is not GradientPoints


@pytest.mark.parametrize("schedule", [random_batches, passes])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=repr)
def test_sparse_rows(loss, schedule, rng):
    X, y = drawn(loss, N_ROWS, 6, rng)
    X[np.abs(X) < 0.8] = 0
    problem, trajectory = run_of(loss, X, y, L1(0.01), schedule)
    expected = held_out(problem, trajectory, np.ones(N_ROWS))
    thin, _ = run_of(loss, sparse.csr_matrix(X), y, L1(0.01), schedule)
    assert type(thin.design) is type(design_of(sparse.csr_matrix(X)))
    found = held_out(thin, trajectory, np.ones(N_ROWS))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.slow
@covering(
    schedule=[
        lambda step: passes(step, 120, 40),
        lambda step: random_batches(step, 120, 40),
    ],
    loss=LOSSES,
)
def test_random_signs_are_right_on_average_and_say_their_error(loss, schedule, rng):
    """Over 30 draws: no bias beyond the noise, and the spread is as reported."""
    X, y = drawn(loss, 120, 40, rng)
    problem, trajectory = run_of(loss, X, y, SquaredL2(0.01), schedule, T=10)
    exact = read_any_loss(problem, trajectory, "exact").path
    found = [read_any_loss(problem, trajectory, 40, rng=rng) for _ in range(30)]
    paths = np.array([each.path for each in found])
    spread = paths.std(axis=0, ddof=1)
    away = np.abs(paths.mean(axis=0) - exact)[1:]
    assert (away < 4 * spread[1:] / 30**0.5).all()
    reported = np.sqrt(np.mean([each.mc_se_path**2 for each in found], axis=0))
    ratio = reported[2:] / spread[2:]
    assert 0.6 < np.median(ratio) < 1.6


@covering(
    schedule=[
        lambda step: passes(step, 120, 24),
        lambda step: random_batches(step, 120, 30),
    ],
    loss=LOSSES,
)
def test_beside_runs_without_each_row(loss, schedule, rng):
    assert_near_runs_without_each_row(loss, schedule, 8, rng)


@covering(batch_size=[None, 40], loss=[Huber(1.0), Logistic()])
def test_preconditioned_runs(loss, batch_size, rng):
    """Read from the rows that the preconditioner has not seen, beside replicas."""
    costs = []
    for _ in range(4):
        X, y = drawn(loss, 200, 30, rng)
        X[:, :2] *= 5
        design, others = design_of(X), np.arange(40, 200)
        made = Preconditioner.of(design, np.arange(40), 2, rng)
        batches = fixed_batches(200, batch_size, 0)
        schedule = partial(EigenPro, preconditioner=made, batches=batches)
        problem, trajectory = run_of(loss, X, y, schedule=schedule, T=25)
        exact = without_each_row(problem, trajectory, others)
        found = read_any_loss(problem, trajectory, "exact")
        recorded, others = trajectory.predictor[:, others], problem.batch(others)
        paths = [mean_losses(others, each) for each in (exact, recorded)]
        costs.append([found.path, *paths])
    found, exact, recorded = np.mean(costs, axis=0)
    np.testing.assert_allclose(found, exact, rtol=0.02)
    assert recorded[-1] < 0.97 * exact[-1]


@pytest.mark.parametrize("schedule", [random_batches, passes])
@pytest.mark.parametrize("loss", [Huber(1.0), Logistic()], ids=repr)
def test_scores_solve_the_published_system(loss, schedule, rng):
    """n K^-1 Psi: the slopes of all rows before every step, and at the end."""
    X, y = drawn(loss, N_ROWS, 6, rng)
    problem, trajectory = run_of(loss, X, y, L1(0.02), schedule, T=5)
    dense = Dense(X, problem, trajectory)
    K, psi, before = np.zeros((0, 0)), [], {}
    for t, number, rows, coef, responses in dense.steps():
        D = dense.curvature(coef)[:, 0, 0]
        K = np.pad(K, (0, 1))
        K[-1, -1] = D.sum()
        for s, Q in responses.items():
            place, batch, bend = before[s]
            leverage = D * dense.leverages(Q)[:, 0, 0]
            K[-1, place] = -leverage[batch] @ bend[batch]
        before[t, number] = len(psi), rows, D
        psi.append(dense.slopes(coef)[:, 0])
    expected = N_ROWS * solve_triangular(K, np.array(psi), lower=True)[-1]
    found = scores_at_the_end(problem, trajectory, "exact")[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


def test_effects_of_labels_in_batches(rng):
    """In batches of all rows those of the full batch; U is that of the risk."""
    X, y = drawn(Logistic(), N_ROWS, 6, rng)
    problem, plain = run_of(Logistic(), X, y, SquaredL2(0.05), GradientDescent)
    _, whole = run_of(Logistic(), X, y, SquaredL2(0.05), all_batches)
    sums = rng.standard_normal((plain.n_updates + 1, 3))
    expected, found = (
        LabelEffects.of(problem, each, "exact") for each in (plain, whole)
    )
    np.testing.assert_allclose(found.held_out, expected.held_out, atol=1e-10)
    np.testing.assert_allclose(found.jumps, expected.jumps, atol=1e-10)
    np.testing.assert_allclose(
        found.at_the_end(sums), expected.at_the_end(sums), atol=1e-10
    )
    problem, trajectory = run_of(Logistic(), X, y, SquaredL2(0.05), random_batches, T=8)
    found = LabelEffects.of(problem, trajectory, "exact").held_out
    expected = held_out(problem, trajectory, np.ones(N_ROWS))[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
def test_estimators_in_batches(l1_ratio, rng):
    X, y = drawn(Logistic(), 150, 40, rng)
    settings = {"solver": "sgd", "max_iter": 15, "random_state": 0, "tol": 0.0}
    model = TrajectoryLogisticRegression(
        1.0, l1_ratio=l1_ratio, risk=True, loo=True, **settings
    )
    model.fit(X, y[:, 0])
    np.testing.assert_allclose(model.risk_path_, model.loo_path_, rtol=0.05)
    assert model.risk_prediction_path_.shape[:2] == (16, 150)
    squared = TrajectoryRegressor(
        0.05,
        penalty=L1(1.0) if l1_ratio else SquaredL2(1.0),
        schedule=StochasticGradient(1.0, 0.5, 150, 32, 0),
        loss=SquaredError(),
        max_iter=15,
        risk="exact",
        loo=True,
    )
    squared.fit(X, X[:, 0] + 5 + rng.standard_normal(150))
    np.testing.assert_allclose(squared.risk_path_, squared.loo_path_, rtol=0.07)
    held_out = squared.risk_prediction_path_[-1]
    residuals = np.matmul(*squared.risk_residual_path_)[-1]
    np.testing.assert_allclose(squared.risk_target_ - held_out, residuals)
    assert np.mean(residuals**2) == pytest.approx(squared.risk_path_[-1], rel=1e-3)
    robust = TrajectoryHuberRegressor(0.1, risk=True, loo=True, **settings)
    robust.fit(X, X[:, 0] + rng.standard_t(2, 150))
    np.testing.assert_allclose(robust.risk_path_, robust.loo_path_, rtol=0.05)
