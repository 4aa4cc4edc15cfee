"""Updates of the user's own, beside schedules of the package and plain loops."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from skacv import TrajectoryClassifier, TrajectoryEarlyStoppingCV, TrajectoryRegressor
from skacv.optim.losses import Huber, Logistic
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.schedules import HeavyBall
from skacv.optim.user import UserUpdate
from skacv.risk.inference.scores import scores_at_the_end
from tests.curved_runs import drawn, held_out, run_of

PATHS = "coef_path_", "loo_path_", "cv_path_", "train_path_"


def heavy_ball(t, b1, b2, grad1, grad2):
    return b1 + 0.7 * (b1 - b2) - 0.1 * grad1


def averaged(t, b1, b2, grad1, grad2):
    """Nonlinear in both gradients."""
    g = 0.5 * (grad1 + grad2)
    return b1 - 0.05 * g / np.sqrt(g * g + 0.05)


def clipped(t, b1, b2, grad1, grad2):
    """Looks at all coefficients of a fit."""
    norm = np.sqrt((grad1**2).sum(axis=(0, 1)))
    return b1 - 0.3 * grad1 / np.maximum(1.0, norm / 0.5)


def adam(t, b1, b2, grad1, grad2, state):
    m, v = 0.9 * state["m"] + 0.1 * grad1, 0.99 * state["v"] + 0.01 * grad1**2
    ahead = m / (1 - 0.9 ** (t + 1)) / np.sqrt(v / (1 - 0.99 ** (t + 1)) + 0.01)
    return b1 - 0.05 * ahead, {"m": m, "v": v}


def at_zero(coef):
    return {"m": np.zeros_like(coef), "v": np.zeros_like(coef)}


ADAM = UserUpdate(adam, at_zero)
OWN = [UserUpdate(averaged), UserUpdate(clipped), ADAM]


def trained(schedule, X, y, penalty="l1", **settings):
    """A model with every estimate, all rows left out."""
    settings = {"max_iter": 15, "tol": 0, "loo": True, "cv": 4, **settings}
    model = TrajectoryRegressor(
        0.02, penalty=penalty, schedule=schedule, step_size=0.1, random_state=0
    )
    return model.set_params(**settings).fit(X, y)


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("penalty", ["l1", "l2", None])
def test_a_known_update_is_what_it_is_in_the_package(loss, penalty, rng):
    X, y = drawn(Huber(), 60, 12, rng)
    own, known = (
        trained(schedule, X, y[:, 0], penalty, loss=loss, risk="exact")
        for schedule in (UserUpdate(heavy_ball), HeavyBall(0.1, 0.7))
    )
    for name in PATHS:
        found, expected = getattr(own, name), getattr(known, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    # The squared error has an estimate of its own; means of n terms, not n - 1, differ.
    rtol = 1e-8 if loss == "huber" else 2 / 60**2
    np.testing.assert_allclose(own.risk_path_, known.risk_path_, rtol=rtol)


def plain_loop(schedule, X, y, alpha, n_updates):
    """The iterates of ridge-penalised logistic regression, written out."""
    b1 = b2 = np.zeros((X.shape[1], 1, 1))

    def gradient(b):
        slope = 1 / (1 + np.exp(-X @ b[:, 0, 0])) - y
        return (X.T @ slope / len(y))[:, None, None] + alpha * b

    grad1 = grad2 = gradient(b1)
    state = None if schedule.start is None else schedule.start(b1)
    path = [b1[:, 0, 0]]
    for t in range(n_updates):
        arguments = [b1, b2, grad1, grad2] + ([] if state is None else [state])
        found = schedule.function(t, *arguments)
        b2, (b1, state) = b1, (found, None) if state is None else found
        grad1, grad2 = gradient(b1), grad1
        path.append(b1[:, 0, 0])
    return np.array(path)


@pytest.mark.parametrize("schedule", OWN, ids=lambda each: each.function.__name__)
def test_rows_are_left_out_of_plain_loops(schedule, rng):
    X, y = drawn(Logistic(), 25, 4, rng)
    y = y[:, 0]
    settings = {"max_iter": 12, "tol": 0, "fit_intercept": False, "loo": True}
    model = TrajectoryClassifier(
        0.1, penalty="l2", loss="log", schedule=schedule, step_size=1.0, **settings
    ).fit(X, y)
    np.testing.assert_allclose(
        model.coef_path_.reshape(13, 4), plain_loop(schedule, X, y, 0.1, 12), atol=1e-12
    )
    costs = []
    for i in range(25):
        rest = np.arange(25) != i
        path = plain_loop(schedule, X[rest], y[rest], 0.1, 12)
        costs.append(np.logaddexp(0, path @ X[i]) - y[i] * (path @ X[i]))
    np.testing.assert_allclose(model.loo_path_, np.mean(costs, axis=0), rtol=1e-10)


def shocked_runs(schedule, X, y, loss, alpha, n_updates):
    """How iterates answer to a shock in every gradient, by differences of runs."""
    n, p = X.shape

    def path(at, shock):
        b1 = b2 = np.zeros((p, 1, 1))

        def gradient(t, b):
            slope = loss.derivative(y, (X @ b[:, 0, 0])[:, None])[:, 0]
            found = X.T @ slope / n + alpha * b[:, 0, 0]
            return (found - shock * (t == at))[:, None, None]

        grad1 = grad2 = gradient(0, b1)
        state = None if schedule.start is None else schedule.start(b1)
        found = [b1[:, 0, 0]]
        for t in range(n_updates):
            arguments = [b1, b2, grad1, grad2] + ([] if state is None else [state])
            ahead = schedule.function(t, *arguments)
            b2, (b1, state) = b1, (ahead, None) if state is None else ahead
            grad1, grad2 = gradient(t + 1, b1), grad1
            found.append(b1[:, 0, 0])
        return np.array(found)

    h, Q = 1e-6, np.zeros((n_updates + 1, n_updates, p, p))
    for s in range(n_updates):
        for j in range(p):
            shock = h * np.eye(p)[j]
            Q[:, s, :, j] = (path(s, shock) - path(s, -shock)) / (2 * h)
    return Q / n


@pytest.mark.parametrize("schedule", OWN, ids=lambda each: each.function.__name__)
@pytest.mark.parametrize("loss", [Huber(1.0), Logistic()], ids=repr)
def test_the_memory_matrix_is_that_of_shocked_runs(schedule, loss, rng):
    """K W = A (Tan & Bellec 2024), every response by running again."""
    X, y = drawn(loss, 20, 4, rng)
    problem, trajectory = run_of(
        loss, X, y, SquaredL2(0.05), lambda step: schedule, T=7
    )
    n, T = len(y), trajectory.n_updates
    Q = shocked_runs(schedule, X, y, loss, 0.05, T)
    D = np.array([loss.curvature(y, z)[:, 0] for z in trajectory.predictor])
    leverage = np.einsum("ij,tsjk,ik->tsi", X, Q, X)
    A, K = np.zeros((2, T + 1, T + 1))
    A[:, :T] = np.einsum("ti,tsi->ts", D, leverage)
    K[:, :T] = -np.einsum("ti,tsi,si->ts", D, leverage, D[:T])
    K[np.diag_indices(T + 1)] += D.sum(axis=1)
    A, K = np.tril(A, -1), np.tril(K)
    psi = -np.array([loss.derivative(y, z)[:, 0] for z in trajectory.predictor])
    expected = trajectory.predictor[:, :, 0] - solve_triangular(K, A, lower=True) @ psi
    found = held_out(problem, trajectory, np.ones(n))[:, :, 0]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    scores = n * solve_triangular(K, psi, lower=True)[-1]
    found = scores_at_the_end(problem, trajectory, "exact")[:, 0]
    np.testing.assert_allclose(found, scores, atol=1e-5 * np.abs(scores).max())


def adam_tangent(t, arguments, moves):
    """The derivative of Adam above."""
    state, dm, dv = arguments.state, moves.state["m"], moves.state["v"]
    g, dg = arguments.gradient, moves.gradient
    m, v = 0.9 * state["m"] + 0.1 * g, 0.99 * state["v"] + 0.01 * g**2
    dm, dv = 0.9 * dm + 0.1 * dg, 0.99 * dv + 0.02 * g * dg
    c, size = 1 - 0.9 ** (t + 1), v / (1 - 0.99 ** (t + 1)) + 0.01
    along = dm / c / np.sqrt(size)
    along = along - 0.5 * m / c * dv / (1 - 0.99 ** (t + 1)) / size**1.5
    return moves.coef - 0.05 * along, {"m": dm, "v": dv}


def test_a_tangent_of_the_users(rng):
    """The same as by differences, with a prox."""
    X, y = drawn(Huber(), 40, 60, rng)
    found = []
    for schedule in (ADAM, UserUpdate(adam, at_zero, adam_tangent)):
        problem, trajectory = run_of(
            Huber(1.0), X, y, L1(0.02), lambda step, own=schedule: own, T=20
        )
        assert 0 < np.count_nonzero(trajectory.coef[-1]) < 60
        found.append(held_out(problem, trajectory, np.ones(40)))
    np.testing.assert_allclose(found[0], found[1], atol=1e-7)


@pytest.mark.parametrize("schedule", OWN, ids=lambda each: each.function.__name__)
def test_a_run_that_goes_on_is_one_run(schedule, rng):
    X, y = drawn(Huber(), 40, 8, rng)
    whole = trained(schedule, X, y[:, 0])
    parts = trained(schedule, X, y[:, 0], max_iter=6, warm_start=True)
    parts.set_params(max_iter=15).fit(X, y[:, 0])
    for name in (*PATHS, "risk_path_"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name))


def test_it_stops_itself(rng):
    # Every column matters: Adam, which moves all alike, first learns these and then
    # the noise, of as many columns as this.
    X = rng.standard_normal((60, 45))
    y = X.sum(axis=1) + 4 * rng.standard_normal(60)
    inner = TrajectoryRegressor(0.01, schedule=ADAM, step_size=0.05, max_iter=200)
    for criterion in ("loo", "cv", "risk"):
        model = TrajectoryEarlyStoppingCV(inner, criterion=criterion).fit(X, y)
        assert 0 < model.best_iter_ < 200


def mixed(t, b1, b2, grad1, grad2):
    return b1 - 0.1 * grad1 / np.linalg.norm(grad1)


def flattened(t, b1, b2, grad1, grad2):
    return (b1 - 0.1 * grad1)[:, 0]


def drawing(t, b1, b2, grad1, grad2):
    return b1 - 0.1 * grad1 + np.random.standard_normal(b1.shape)  # noqa: NPY002


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (mixed, "mixed mixes fits"),
        (flattened, "flattened must return an iterate of the shape"),
        (drawing, "drawing must return the same result every time"),
    ],
)
def test_functions_that_cannot_be_replayed(function, words, rng):
    X, y = drawn(Huber(), 30, 5, rng)
    model = TrajectoryRegressor(schedule=UserUpdate(function))
    with pytest.raises(ValueError, match=words):
        model.fit(X, y[:, 0])
    assert not hasattr(model, "coef_")


def test_a_function_that_sees_the_rows(rng):
    X, y = drawn(Huber(), 30, 5, rng)

    def line_search(t, b1, b2, grad1, grad2):
        steps = np.array([0.1, 0.2])
        costs = [np.mean((y - X @ (b1 - s * grad1)[:, 0]) ** 2) for s in steps]
        return b1 - steps[np.argmin(costs)] * grad1

    model = TrajectoryRegressor(schedule=UserUpdate(line_search))
    with pytest.raises(ValueError, match=r"line_search holds \w, which has an entry"):
        model.fit(X, y[:, 0])
