"""The memory matrix of any loss: the textbook with dense Jacobians, and refits."""

from dataclasses import dataclass, replace
from itertools import repeat

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import solve_triangular

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression
from skacv.optim.arrays import design_of
from skacv.optim.families import GroupL2
from skacv.optim.losses import (
    Huber,
    Logistic,
    Loss,
    Multinomial,
    SmoothedHinge,
    SquaredError,
    SquaredHinge,
)
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.run import run
from skacv.optim.schedules import (
    GradientDescent,
    Nesterov,
    Newton,
)
from skacv.optim.trajectory import Phase
from skacv.optim.updates import Pass, ProximalGradient
from skacv.risk.memory import curved_run
from skacv.risk.memory.gradient_points import GradientPoints
from skacv.risk.memory.memory_matrix import estimate_risk
from skacv.risk.reader import Unreadable
from tests import oracles
from tests.cases import covering, first
from tests.curved_runs import (
    LOSSES,
    PENALTIES,
    SCHEDULES,
    drawn,
    held_out,
    mean_losses,
    read_any_loss,
    run_of,
    without_each_row,
)


def textbook(X, problem, trajectory, scales, of_prox=None):
    """Slopes at the gradients, and W of the iterates, from dense Jacobians.

    Of one output, or of outputs that the loss couples.
    """
    (n, p), K = X.shape, problem.target.shape[1]
    weight = n * problem.row_weights[:, 0]

    def curvature(predictor):
        found = problem.loss.curvature_matrix(problem.target, predictor)
        return found * weight[:, None, None]

    def leverages(response):
        return np.einsum("ij,jkml,im->ikl", X, response.reshape(p, K, p, K), X)

    def row_of_w(D, responses, bends, known):
        """W at an iterate, or a gradient, from what W was at the gradients before."""
        by = scales[:, None, None] * D if D.any() else np.tile(np.eye(K), (n, 1, 1))
        found = np.zeros(trajectory.n_updates)
        for s, response in enumerate(responses):
            q = leverages(response)
            found[s] += np.einsum("ikl,ilk->", by, q)
            fed_back = np.einsum("i,ikl,ilm,imk->", scales, by, q, bends[s])
            found += fed_back * known[s]
        return found / np.einsum("i,ikk->", scales, by)

    slopes, bends, at_points, at_iterates = [], [], [], []
    now, former = [], []  # responses of the last two iterates to every shock
    for t, before, step, penalty in trajectory.updates():
        if before == t:
            former = now
        former = former + [np.zeros((p * K, p * K))] * (len(now) - len(former))
        points = [a + step.lookahead * (a - b) for a, b in zip(now, former)]
        own, earlier = trajectory.predictor[t], trajectory.predictor[before]
        predictor = own + step.lookahead * (own - earlier)
        D = curvature(predictor)
        at_iterates.append(row_of_w(D, now, bends, at_points))
        at_points.append(row_of_w(D, points, bends, at_points))
        bends.append(D)
        derivative = problem.loss.derivative(problem.target, predictor)
        slopes.append(-derivative * weight[:, None])
        hessian = np.einsum("ij,ikl,im->jkml", X, D, X).reshape(p * K, p * K) / n
        hessian += np.diag(penalty.smooth_gradient(np.ones(p * K)))
        of_coef = of_prox or oracles.elementwise_jacobian
        prox = of_coef(penalty, trajectory.coef[t + 1].ravel(), step.step_size)
        following = [
            a + step.momentum * (a - b) - step.step_size * hessian @ point
            for a, b, point in zip(now, former, points)
        ]
        following.append(step.step_size / n * np.eye(p * K))
        now, former = [prox @ each for each in following], now
    D = curvature(trajectory.predictor[-1])
    at_iterates.append(row_of_w(D, now, bends, at_points))
    return np.array(slopes), np.array(at_iterates), np.array(at_points)


def held_out_by_textbook(X, problem, trajectory, scales, of_prox=None):
    slopes, W, _ = textbook(X, problem, trajectory, scales, of_prox)
    lost = scales[:, None] * np.einsum("ts,sik->tik", W, slopes)
    return trajectory.predictor - lost


@covering(loss=LOSSES, penalty=PENALTIES, schedule=SCHEDULES, shape=[(30, 8), (20, 24)])
def test_exact_traces_equal_dense_jacobians(loss, penalty, schedule, shape, rng):
    """With weights and row scales of any kind."""
    X, y = drawn(loss, *shape, rng)
    weights, scales = rng.uniform(0.5, 2, len(y)), rng.uniform(0.5, 1.5, len(y))
    problem, trajectory = run_of(loss, X, y, penalty, schedule, weights=weights)
    expected = held_out_by_textbook(X, problem, trajectory, scales)
    found = held_out(problem, trajectory, scales)
    size = np.abs(expected - trajectory.predictor).max()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8 * size)


def test_groups_and_several_strengths(rng):
    """A prox that couples columns; momentum restarts where the strength changes."""
    X, _ = drawn(Logistic(), 30, 8, rng)
    y = (X[:, :1] > 0).astype(float)
    problem, _ = run_of(Logistic(), X, y)
    step = 0.8 / problem.smoothness
    groups, weights = np.repeat(np.arange(4), 2), np.full(4, np.sqrt(2))
    phases = [
        Phase(GroupL2(strength, groups, weights), Nesterov(step), 7)
        # The gradient of the first group is 0.4, of others 0.1; of these thresholds
        # the first is 0.2.
        for strength in (0.14, 0.01)
    ]
    trajectory = run(problem, phases, np.zeros((1, 8, 1)))
    assert 0 < np.count_nonzero(trajectory.coef[6]) < 8
    expected = held_out_by_textbook(
        X, problem, trajectory, np.ones(30), oracles.group_jacobian
    )
    found = held_out(problem, trajectory, np.ones(30))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=repr)
def test_blocks_of_rows_and_sparse_rows(loss, rng, set_limits):
    X, y = drawn(loss, 60, 12, rng)
    X[np.abs(X) < 0.8] = 0
    problem, trajectory = run_of(loss, X, y, L1(0.01), Nesterov)
    expected = held_out(problem, trajectory, np.ones(60))
    # Seven rows and their signs of three outputs.
    set_limits(MEMORY_BYTES=32 * 8 * 60 * 3 * 7)
    found = held_out(problem, trajectory, np.ones(60))
    np.testing.assert_allclose(found, expected, atol=1e-10)
    thin = replace(problem, design=design_of(sparse.csr_matrix(X)))
    found = held_out(thin, trajectory, np.ones(60))
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_few_modes_are_enough(loss, rng):
    """A complete basis on the leading modes: the others follow, to half a percent."""
    X, y = drawn(loss, 20 if loss.is_coupled else 40, 12, rng)
    problem, trajectory = run_of(loss, X, y, SquaredL2(0.05), Nesterov, T=30)
    exact, few = (
        read_any_loss(problem, trajectory, method) for method in ("exact", "hutchinson")
    )
    assert few.n_probes == 0
    np.testing.assert_allclose(few.path, exact.path, rtol=0.005)


def test_unasked_it_keeps_to_what_folds_cost(rng, set_limits):
    X, y = drawn(Logistic(), 200, 20, rng)
    model = TrajectoryLogisticRegression(max_iter=20, loo=False, random_state=0)
    assert hasattr(model.fit(X, y[:, 0]), "risk_path_")
    set_limits(WORTH_MULTIPLICATIONS=0, WORTH_REPLICAS=1)
    assert not hasattr(model.fit(X, y[:, 0]), "risk_path_")
    stopped = TrajectoryEarlyStoppingCV(model, criterion="risk").fit(X, y[:, 0])
    assert len(stopped.path_) == stopped.estimator_.n_iter_ + 1


# The system is of one output, and singular where no row has a curvature: the smoothed
# hinge has none at the start.
@pytest.mark.parametrize(
    "loss",
    [each for each in LOSSES if not isinstance(each, (Multinomial, SmoothedHinge))],
    ids=repr,
)
def test_gradient_descent_is_the_published_triangular_system(loss, rng):
    """K W = A with A and K of Tan & Bellec (2024), eq. 9 and 10."""
    X, y = drawn(loss, 30, 8, rng)
    problem, trajectory = run_of(loss, X, y, SquaredL2(0.05))
    n, T = len(y), trajectory.n_updates
    step = trajectory.phases[0].schedule.step_size
    D = [loss.curvature(y, z)[:, 0] for z in trajectory.predictor]
    A, K = np.zeros((T + 1, T + 1)), np.diag([d.sum() for d in D])
    responses = []
    for t in range(T + 1):
        for s, Q in enumerate(responses):
            leverage = np.einsum("ij,jk,ik->i", X, Q, X)
            A[t, s] = D[t] @ leverage
            K[t, s] = -(D[t] * leverage) @ D[s]
        hessian = X.T @ (D[t][:, None] * X) / n + 0.05 * np.eye(8)
        responses = [Q - step * hessian @ Q for Q in responses]
        responses.append(step / n * np.eye(8))
    psi = -np.array([loss.derivative(y, z)[:, 0] for z in trajectory.predictor])
    expected = trajectory.predictor[:, :, 0] - solve_triangular(K, A, lower=True) @ psi
    found = held_out(problem, trajectory, np.ones(n))[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", PENALTIES[:2], ids=repr)
def test_squared_error_is_the_published_estimate(penalty, schedule, rng):
    """(I - A/n)^-1 F by full Jacobians; and the other reader, whose modes are cut."""
    X, y = drawn(SquaredError(), 30, 8, rng)
    problem, trajectory = run_of(SquaredError(), X, y, penalty, schedule)
    found = read_any_loss(problem, trajectory, "exact").path
    A = oracles.memory_matrix(X, trajectory)
    residuals = y[:, 0] - trajectory.coef[:, :, 0] @ X.T
    expected = np.diag(oracles.risk_gram(A, residuals, False))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    other = estimate_risk(problem, trajectory, method="exact").path
    np.testing.assert_allclose(found, other, rtol=1e-7)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_held_out_predictors_return_the_recorded_slopes(loss, schedule, rng):
    """psi_t = -l'(y, U_t + sum_{s<t} W_ts psi_s), one gradient after the other."""
    X, y = drawn(loss, 20, 24, rng)
    problem, trajectory = run_of(loss, X, y, L1(0.02), schedule)
    slopes, _, W = textbook(X, problem, trajectory, np.ones(20))
    points = GradientPoints(problem, trajectory)
    at = np.array([points.at(t) for t in range(trajectory.n_updates)])
    U = at - np.einsum("ts,sik->tik", W, slopes)
    found = np.zeros_like(slopes)
    for t in range(len(slopes)):
        found[t] = -loss.derivative(y, U[t] + np.einsum("s,sik->ik", W[t], found))
    np.testing.assert_allclose(found, slopes, atol=1e-12 * np.abs(slopes).max())


@pytest.mark.parametrize("loss", [Huber(1.0), SquaredHinge()], ids=repr)
def test_outputs_that_are_not_coupled_are_read_one_by_one(loss, rng):
    X, y = drawn(loss, 30, 8, rng, n_outputs=2)
    problem, trajectory = run_of(loss, X, y, L1(0.02), Nesterov)
    found = held_out(problem, trajectory, np.ones(30))
    for k in range(2):
        alone, own = run_of(loss, X, y[:, [k]], L1(0.02), Nesterov)
        own.phases = trajectory.phases
        own.coef, own.predictor = (
            trajectory.coef[..., [k]],
            trajectory.predictor[..., [k]],
        )
        expected = held_out_by_textbook(X, alone, own, np.ones(30))
        np.testing.assert_allclose(found[:, :, [k]], expected, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_random_signs_are_right_on_average_and_say_their_error(loss, rng):
    """Over 40 draws: no bias beyond the noise, and the spread is as reported."""
    X, y = drawn(loss, 120, 40, rng)
    problem, trajectory = run_of(loss, X, y, SquaredL2(0.01), Nesterov, T=20)
    exact = read_any_loss(problem, trajectory, "exact").path
    found = [read_any_loss(problem, trajectory, 10, rng=rng) for _ in range(40)]
    paths = np.array([each.path for each in found])
    spread = paths.std(axis=0, ddof=1)
    assert (np.abs(paths.mean(axis=0) - exact)[1:] < 4 * spread[1:] / 40**0.5).all()
    reported = np.sqrt(np.mean([each.mc_se_path**2 for each in found], axis=0))
    ratio = reported[2:] / spread[2:]
    assert 0.7 < np.median(ratio) < 1.4
    assert all(each.n_probes == 10 for each in found)


def assert_near_runs_without_each_row(loss, schedule, n_updates, rng):
    """Over 3 draws of Gaussian rows: what held-out rows lose, on average and each.

    Errors are shares of what they lose, so that no correction errs by one.
    """
    n, costs, squares = 120, [], []
    for _ in range(3):
        X, y = drawn(loss, n, 24, rng)
        y = np.clip(y, -4, 4)  # that no row of heavy tails decides a mean
        problem, trajectory = run_of(loss, X, y, SquaredL2(0.02), schedule, n_updates)
        exact = without_each_row(problem, trajectory)
        found = held_out(problem, trajectory, np.ones(n))
        recorded = trajectory.predictor
        costs.append([mean_losses(problem, z) for z in (found, exact, recorded)])
        squares.append([np.sum((z - exact) ** 2) for z in (found, recorded)])
    found, exact, recorded = np.mean(costs, axis=0)
    lost = (exact - recorded)[-1]
    assert lost > 0.1 * exact[-1]
    np.testing.assert_allclose(found, exact, rtol=0, atol=0.2 * lost)
    of_found, of_recorded = np.sum(squares, axis=0)
    assert of_found < 0.6**2 * of_recorded


@pytest.mark.parametrize("loss", first(3, LOSSES), ids=repr)
def test_beside_runs_without_each_row(loss, rng):
    assert_near_runs_without_each_row(loss, Nesterov, 20, rng)


def test_row_scales_read_uneven_rows(rng):
    """Rows of very uneven norm: without scales the estimate reads low."""
    X, y = drawn(Logistic(), 200, 60, rng)
    X *= np.sqrt(rng.gamma(0.5, 2, 200))[:, None]
    problem, trajectory = run_of(Logistic(), X, y, schedule=Nesterov, T=20)
    exact = mean_losses(problem, without_each_row(problem, trajectory))
    plain, scaled = (
        read_any_loss(problem, trajectory, "exact", on) for on in (False, True)
    )
    assert plain.row_scale_share == 0 < scaled.row_scale_share
    away = [np.abs(each.path / exact - 1).max() for each in (plain, scaled)]
    assert away[1] < 0.5 * away[0]


@pytest.mark.parametrize("loss", [Logistic(), Huber(1.0)], ids=repr)
def test_low_rank_factors_of_what_is_held_out(loss, rng):
    """Of residuals where the loss is one of residuals, else of predictors."""
    X, y = drawn(loss, 80, 20, rng)
    problem, trajectory = run_of(loss, X, y, schedule=Nesterov, T=40)
    expected = held_out(problem, trajectory, np.ones(80))
    if loss.is_of_residual:
        expected = y - expected
    found = read_any_loss(problem, trajectory, "exact")
    near = np.einsum("tk,kio->tio", found.temporal, found.spatial)
    # Modes of less than this share of the largest are left out.
    limit = 2 * curved_run.HELD_OUT.kept * np.linalg.norm(expected[..., 0], 2)
    assert np.linalg.norm((near - expected)[..., 0], axis=1).max() < limit
    assert len(found.spatial) < 30  # of 41 iterates


def test_columns_that_never_move_are_not_needed(rng):
    X, y = drawn(Logistic(), 60, 30, rng)
    y[:] = X[:, :1] > 0
    problem, trajectory = run_of(Logistic(), X, y, L1(0.15), Nesterov, T=15)
    assert 0 < np.count_nonzero(trajectory.coef[-1]) < 5
    found = held_out(problem, trajectory, np.ones(60))
    expected = held_out_by_textbook(X, problem, trajectory, np.ones(60))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    nothing, still = run_of(Logistic(), X, y, L1(10.0), Nesterov, T=5)
    found = held_out(nothing, still, np.ones(60), 10, rng)
    np.testing.assert_array_equal(found, still.predictor)


def test_two_products_with_x_in_an_update(rng, note_calls):
    X, y = drawn(Logistic(), 60, 30, rng)
    problem, trajectory = run_of(Logistic(), X, y, schedule=Nesterov, T=20)
    forwards, backwards = (
        note_calls(type(problem.design), name, size=lambda *_: 1)
        for name in ("dot", "t_dot")
    )
    held_out(problem, trajectory, np.ones(60), 10, rng)
    # One of each in an update and at the end, and one for the signs. Predictors of the
    # recorded iterates are computed once, together.
    assert len(forwards) == 21 + 1
    assert len(backwards) == 22


class Straight(Loss):
    """The absolute error, which has no curvature."""

    def value(self, target, predictor):
        return np.abs(predictor - target)

    def derivative(self, target, predictor):
        return np.sign(predictor - target)

    def curvature(self, target, predictor):
        return np.zeros_like(predictor)

    def curvature_bound(self, target):
        return 1.0


@dataclass(frozen=True)
class PartOfTheRows:
    """Passes through two batches that leave rows out."""

    step_size: float

    def updates(self):
        return repeat(
            Pass(ProximalGradient(self.step_size), (np.arange(9), np.arange(9, 20)))
        )

    @staticmethod
    def largest_stable_step(smoothness):
        return np.inf


@pytest.mark.parametrize(
    ("loss", "schedule", "words"),
    [
        (Straight(), GradientDescent, "a loss with a curvature: that of Straight"),
        (Logistic(), Newton, "derivative of every update, and NewtonStep"),
        (Logistic(), PartOfTheRows, "or all rows once, batch by batch"),
    ],
)
def test_what_it_requires(loss, schedule, words, rng):
    X, _ = drawn(Huber(), 30, 5, rng)
    y = (X[:, :1] > 0).astype(float)
    problem, trajectory = run_of(loss, X, y, SquaredL2(0.1), schedule, T=3)
    with pytest.raises(Unreadable, match=words):
        estimate_risk(problem, trajectory)


def test_no_update_at_all(rng):
    X, y = drawn(Logistic(), 30, 5, rng)
    problem, trajectory = run_of(Logistic(), X, y, T=2)
    found = estimate_risk(problem, trajectory.first(0))
    np.testing.assert_allclose(found.path, [np.log(2)])
