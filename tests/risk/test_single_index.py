"""The scale of debiased logistic coefficients: dense systems, signals, coverage."""

import numpy as np
import pytest
from scipy.linalg import solve_triangular, toeplitz
from scipy.optimize import minimize, root
from scipy.special import expit
from scipy.stats import chi2, multivariate_normal

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression
from skacv._estimator.prediction.directions import KnownCovariance
from skacv.optim.losses import Logistic, SquaredHinge
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.schedules import Nesterov
from skacv.risk.inference.debiased import Debiased
from skacv.risk.inference.label_effects import LabelEffects
from skacv.risk.inference.scores import scores_at_the_end
from skacv.risk.inference.signal import (
    Signal,
    by_least_squares,
    by_random_coefficients,
    of_debiased,
)
from skacv.risk.inference.single_index import RESIDUAL_SDS, Scale, ScaleByStrength
from tests import oracles

from .test_curved_memory import drawn, held_out, run_of

LOGISTIC = Logistic()


def dense_system(X, problem, trajectory):
    """K and A of proximal gradient descent, from dense Jacobians."""
    n, p = X.shape
    y, responses = problem.target, []
    step = trajectory.phases[0].schedule.step_size
    penalty = trajectory.phases[0].penalty
    D = [problem.loss.curvature(y, z)[:, 0] for z in trajectory.predictor]
    K, A = np.diag([d.sum() for d in D]), np.zeros((len(D), len(D)))
    for t, d in enumerate(D):
        for s, Q in enumerate(responses):
            leverages = np.einsum("ij,jk,ik->i", X, Q, X)
            A[t, s] = d @ leverages
            K[t, s] = -(d * D[s]) @ leverages
        if t + 1 < len(D):
            prox = oracles.elementwise_jacobian(
                penalty, trajectory.coef[t + 1].ravel(), step
            )
            hessian = X.T @ (d[:, None] * X) / n
            hessian += np.diag(penalty.smooth_gradient(np.ones(p)))
            responses = [prox @ (Q - step * hessian @ Q) for Q in responses]
            responses.append(prox * step / n)
    return K, A


def dense_scale(X, problem, trajectory, left):
    """c of the last iterate: the recursion row by row, and integrals by fine sums.

    Also the strength, and the linear factor of the labels.
    """
    K, A = dense_system(X, problem, trajectory)
    W = solve_triangular(K, A, lower=True)
    y, predictor = problem.target[:, 0], trajectory.predictor[:, :, 0]
    low, high = problem.loss.labels
    psi = -problem.loss.derivative(y, predictor)
    U, jumps = predictor - W @ psi, np.zeros_like(predictor)
    for sign, label in ((1, high), (-1, low)):
        slopes = np.zeros_like(U)
        for t, held_out_t in enumerate(U):
            at = held_out_t + W[t, :t] @ slopes[:t]
            slopes[t] = -problem.loss.derivative(label, at)
        jumps += sign * slopes
    label = (y == high).astype(float)
    best = max(U[1:], key=lambda each: np.corrcoef(each, label)[0, 1])
    normal = np.linspace(-9, 9, 3001)
    weights = np.exp(-(normal**2) / 2) / np.exp(-(normal**2) / 2).sum()

    def expected(of, coef):
        return of(coef[0] + coef[1] * best[:, None] + left * normal) @ weights

    def excess(coef):
        missing = label - expected(expit, coef)
        return missing.sum(), missing @ best

    found = root(excess, [0.0, 0.1], method="lm", tol=1e-13)
    assert found.success
    flat = expected(lambda u: expit(u) * expit(-u), found.x)
    scale = solve_triangular(K, jumps @ flat, lower=True)[-1]
    strength = np.sqrt(found.x[1] ** 2 * best.var() + left**2)
    shared = np.cov(best, label, bias=True)[0, 1]
    return scale, strength, shared / (found.x[1] * best.var())


def with_ones(X):
    return np.hstack([X, np.ones((len(X), 1))])


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [(LOGISTIC, SquaredL2(0.05)), (LOGISTIC, L1(0.02)), (SquaredHinge(), L1(0.02))],
)
def test_scale_is_that_of_the_dense_system(loss, penalty, rng):
    X, y = drawn(loss, 30, 8, rng)
    X = with_ones(X)
    problem, trajectory = run_of(loss, X, y, penalty, T=8)
    effects = LabelEffects.of(problem, trajectory, "exact")
    labels = (y[:, 0] == loss.labels[1]).astype(float)
    found = ScaleByStrength.of(effects, labels)
    # Nodes are as close as rounding only where they need not spread.
    for place in np.flatnonzero(RESIDUAL_SDS < 3):
        scale, strength, factor = dense_scale(
            X, problem, trajectory, RESIDUAL_SDS[place]
        )
        assert found.scales[place] == pytest.approx(scale, rel=1e-8)
        assert found.strengths[place] == pytest.approx(strength, rel=1e-8)
        assert found.factors[place] == pytest.approx(factor, rel=1e-8)


def test_effects_of_the_start_alone(rng):
    """Before any update a slope is what the label says, and K its curvature."""
    X, y = drawn(LOGISTIC, 30, 8, rng)
    problem, trajectory = run_of(LOGISTIC, X, y, T=3)
    effects = LabelEffects.of(problem, trajectory.first(0), 10, rng)
    np.testing.assert_array_equal(effects.jumps, np.ones((1, 30)))
    found = ScaleByStrength.of(effects, y[:, 0])
    np.testing.assert_allclose(found.scales, found.factors / 0.25)
    np.testing.assert_allclose(found.strengths, RESIDUAL_SDS)


def test_with_momentum_as_the_memory_matrix_and_the_scores_say(rng):
    X, y = drawn(LOGISTIC, 40, 10, rng)
    problem, trajectory = run_of(LOGISTIC, X, y, SquaredL2(0.05), Nesterov)
    effects = LabelEffects.of(problem, trajectory, "exact")
    expected = held_out(problem, trajectory, np.ones(40))
    np.testing.assert_allclose(effects.held_out[-1], expected[-1, :, 0], atol=1e-9)
    slopes = [effects.run.points.at(t)[:, 0] for t in range(trajectory.n_updates + 1)]
    slopes = -LOGISTIC.derivative(y[:, 0], np.array(slopes))
    scores = 40 * effects.at_the_end(slopes)
    expected = scores_at_the_end(problem, trajectory, "exact")[:, 0]
    np.testing.assert_allclose(scores, expected, atol=1e-8 * np.abs(expected).max())


def test_random_signs_agree_with_exact_traces(rng):
    X, y = drawn(LOGISTIC, 150, 60, rng)
    problem, trajectory = run_of(LOGISTIC, X, y, L1(0.01), Nesterov, T=15)

    def scales(method):
        effects = LabelEffects.of(problem, trajectory, method, rng)
        return ScaleByStrength.of(effects, y[:, 0]).scales

    exact = scales("exact")
    drawn_scales = np.array([scales(40) for _ in range(12)])
    np.testing.assert_allclose(drawn_scales.mean(axis=0), exact, rtol=0.02)
    assert (drawn_scales.std(axis=0) < 0.03 * exact).all()


# ------------------------------------------------------------------ signals


def test_signal_of_a_debiased_iterate_is_its_size_less_noise(rng):
    n, p = 50, 8
    X, coef, scores = rng.standard_normal((n, p)), rng.standard_normal(p), rng.random(n)
    covariance = toeplitz(0.5 ** np.arange(p))
    known = KnownCovariance(covariance, p)
    debiased = coef + np.linalg.solve(covariance, X.T @ scores / n)
    noise = scores @ scores / n**2
    found = of_debiased(coef, X.T @ scores / n, known, scores)
    expected = debiased @ covariance @ debiased - p * noise
    assert found.size == pytest.approx(expected, rel=1e-10)
    assert found.error**2 == pytest.approx(2 * p * noise**2 + 4 * noise * expected)


def test_signal_by_least_squares_is_the_adjusted_share(rng):
    X = rng.standard_normal((60, 10))
    y = X[:, 0] + rng.standard_normal(60)
    X, y = X - X.mean(axis=0), y - y.mean()
    left = y - X @ np.linalg.solve(X.T @ X, X.T @ y)
    share = 1 - (left @ left / 49) / (y @ y / 59)  # adjusted R^2
    size, error = by_least_squares(X, y)
    assert size == pytest.approx(share * y @ y / 59)
    ratio = left @ left / 49 / error
    assert chi2.std(49) / 49 == pytest.approx(1 / ratio)


@pytest.mark.parametrize("p", [70, 150])
def test_signal_of_random_coefficients_is_the_likeliest(p, rng):
    """Rows enough that neither variance may as well be zero, or more than columns."""
    n = 120
    X = rng.standard_normal((n, p))
    X -= X.mean(axis=0)
    y = 0.1 * X.sum(axis=1) + rng.standard_normal(n)
    y -= y.mean()
    size, error = by_random_coefficients(X, y)
    scaled = X / np.sqrt(np.mean(X**2, axis=0))
    gram = scaled @ scaled.T
    # In n - 1 coordinates: the centred ones.
    basis = np.linalg.svd(np.eye(n) - 1 / n)[0][:, :-1]
    gram = basis.T @ (gram / (np.trace(gram) / (n - 1))) @ basis

    def unlikelihood(logarithms):
        signal, noise = np.exp(logarithms)
        covariance = signal * gram + noise * np.eye(n - 1)
        return -multivariate_normal.logpdf(basis.T @ y, cov=covariance)

    options = {"xatol": 1e-5, "fatol": 1e-9}
    found = minimize(unlikelihood, [0.0, 0.0], method="Nelder-Mead", options=options)
    assert found.success
    assert size == pytest.approx(np.exp(found.x[0]), rel=1e-3)
    assert 0 < error < 2 * size


def test_a_signal_beyond_all_strengths_says_nothing_of_the_scale():
    strengths = np.geomspace(0.05, 12, 16)
    scales = 1 / (1 + strengths)
    by_strength = ScaleByStrength(strengths, scales, scales)
    weakest = by_strength.of_debiased(Signal(-1.0, 0.5, 0.0))
    strongest = by_strength.of_labels(Signal(9.0, 0.5, 0.0))
    assert weakest.value == pytest.approx(scales[0])
    assert strongest.error == np.inf
    within = by_strength.of_debiased(Signal(0.25, 0.01, 0.0))
    assert within.value == pytest.approx(0.5, rel=1e-3)  # of strength 1
    # d c / d(c g)^2 there: c = 1 - x of x = c g.
    assert within.error == pytest.approx(0.01 / (2 * 0.5), rel=0.02)
    shared = by_strength.of_debiased(Signal(0.25, 0.01, 0.1))
    assert shared.error**2 - within.error**2 == pytest.approx(2 * 0.1 * 0.5, rel=0.02)


# ------------------------------------------------------------------ intervals


def test_ends_are_where_the_error_of_the_scale_counts(rng):
    # Of estimates so many standard errors from zero: 1.64 are rejected.
    away = np.array([0.2, 0.5, 1.2, 2.2, 4.0, 9.0])[:, None]
    standard_error = rng.uniform(0.3, 2, (6, 1))
    coef = np.abs(rng.standard_normal((6, 1)))
    debiased = Debiased(coef, away * standard_error, standard_error)
    found = debiased._replace(scale=Scale(2.0, 0.3))
    away = debiased.estimate[..., None] - 2.0 * found.interval(0.9)
    variance = debiased.standard_error[..., None] ** 2
    variance = variance + (0.3 * found.interval(0.9)) ** 2
    np.testing.assert_allclose(away**2 / variance, chi2.ppf(0.9, 1))
    lower, upper = np.moveaxis(found.interval(0.9), -1, 0)
    is_rejected = found.p_value < 0.1
    np.testing.assert_array_equal(is_rejected[:, 0], np.arange(6) > 2)
    np.testing.assert_array_equal((lower > 0) | (upper < 0), is_rejected)
    sure = debiased._replace(scale=Scale(2.0, 0.0))
    np.testing.assert_allclose(sure.interval(0.9), debiased.interval(0.9) / 2)
    for error in (2.0, np.inf):
        unsure = debiased._replace(scale=Scale(2.0, error))
        np.testing.assert_array_equal(unsure.interval(0.9)[..., 1], np.inf)


def test_few_columns_are_those_of_the_likeliest_model(rng):
    """Of skewed columns too."""
    X = rng.exponential(size=(1500, 3))
    y = rng.random(1500) < expit(X @ [1.0, -0.5, 0.0] + 0.5)
    A, likeliest = with_ones(X), np.zeros(4)
    for _ in range(30):  # Newton's method
        share = expit(A @ likeliest)
        hessian = A.T @ ((share * (1 - share))[:, None] * A)
        likeliest += np.linalg.solve(hessian, A.T @ (y - share))
    model = TrajectoryLogisticRegression(
        1e6, max_iter=200, risk=True, loo=False, keep_data=True, random_state=0
    ).fit(X, y)
    for covariance in ("nodewise", np.cov(X.T)):
        found = model.coef_table(covariance=covariance)["estimate"]
        np.testing.assert_allclose(found, likeliest[:3], atol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("covariance", ["known", "nodewise"])
@pytest.mark.parametrize(
    ("p", "model"),
    [
        (60, TrajectoryLogisticRegression(1e6, max_iter=15)),
        (250, TrajectoryLogisticRegression(0.3, l1_ratio=1.0, max_iter=15)),
    ],
    ids=["least", "l1"],
)
def test_intervals_cover(p, model, covariance):
    """Nominal 90% of 20 coefficients over 10 draws, half of them zero."""
    covers, estimates = [], []
    beta = np.zeros(p)
    beta[:10] = 2 / np.sqrt(10)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, p))
        y = rng.random(200) < expit(X @ beta + 1)
        model.set_params(
            keep_data=True, tol=0, risk=20, loo=False, random_state=seed
        ).fit(X, y)
        given = np.eye(p) if covariance == "known" else "nodewise"
        table = model.coef_table(np.arange(20), 0.9, covariance=given)
        covers.append((table["lower"] <= beta[:20]) & (beta[:20] <= table["upper"]))
        estimates.append(table["estimate"][:10].mean())
    # Five standard errors of 200 independent ones.
    assert np.mean(covers) == pytest.approx(0.9, abs=0.106)
    # Debiased iterates themselves are multiples, of .6 to 4.
    assert np.median(estimates) == pytest.approx(beta[0], rel=0.25)


def test_the_stopped_one_and_its_names(rng):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.standard_normal((120, 4)), columns=list("abcd"))
    y = np.where(rng.random(120) < expit(2 * X["b"]), "yes", "no")
    logistic = TrajectoryLogisticRegression(
        max_iter=20, risk=True, keep_data=True, random_state=0
    )
    stopped = TrajectoryEarlyStoppingCV(logistic, criterion="risk").fit(X, y)
    found = stopped.coef_interval(["b", "a"], 0.9)
    np.testing.assert_array_equal(found, stopped.estimator_.coef_interval([1, 0], 0.9))
    assert found.shape == (2, 2)
    assert found[0, 0] > 0
    table = stopped.coef_table(["b", "a"], coverage=0.9)
    np.testing.assert_array_equal(found, np.stack([table["lower"], table["upper"]], 1))
    # The other class as the second: the same with the other sign.
    turned = logistic.fit(X, np.where(y == "yes", "a", "b"))
    np.testing.assert_allclose(
        turned.coef_interval(["b"], iteration=5),
        -logistic.fit(X, y).coef_interval(["b"], iteration=5)[:, ::-1],
        rtol=1e-6,
    )


def test_coverage_is_a_share(rng):
    X = rng.standard_normal((40, 3))
    model = TrajectoryLogisticRegression(risk=True, keep_data=True, max_iter=5)
    model.fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.coef_interval(coverage=0.0)
