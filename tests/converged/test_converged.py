"""Leave-one-out at convergence against explicit Newton steps and refits."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import truncnorm
from sklearn.svm import SVC, LinearSVC

from skacv.converged.expansion import expansion, reduce_to_row_space
from skacv.converged.hessian import ConjugateGradients, Spectrum, factor
from skacv.converged.hinge import Hinge, HingeModel, support_stays
from skacv.converged.model import ConvergedModel
from skacv.converged.newton import infinitesimal_jackknife, newton_step
from skacv.converged.randomised import Probes, randomized_leverages, truncated_mean
from skacv.optim.arrays import design_of
from skacv.optim.families import Weighted, except_last
from skacv.optim.losses import (
    Expectile,
    Gamma,
    Huber,
    Logistic,
    Multinomial,
    NegativeBinomial,
    Poisson,
    SmoothedQuantile,
    SquaredError,
    SquaredHinge,
    Tweedie,
)
from skacv.optim.penalties import L1, MCP, SCAD, ElasticNet, SquaredL2, Zero
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import Nesterov
from skacv.optim.trajectory import Phase

N_CLASSES = 3


def targets(loss, scores, rng):
    """Targets that a loss takes, of these scores."""
    labels = np.where(scores[:, :1] + rng.logistic(size=(len(scores), 1)) > 0, 1, 0)
    best = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    return {
        "SquaredError": lambda: scores[:, :1] + rng.standard_normal((len(scores), 1)),
        "Huber": lambda: scores[:, :1] + rng.standard_t(2, (len(scores), 1)),
        "Logistic": lambda: labels,
        "SquaredHinge": lambda: 2 * labels - 1,
        "Poisson": lambda: rng.poisson(np.exp(np.clip(scores[:, :1], -2, 2))),
        "Gamma": lambda: rng.gamma(2, np.exp(np.clip(scores[:, :1], -2, 2))),
        "Tweedie": lambda: labels * rng.gamma(2, np.exp(np.clip(scores[:, :1], -2, 2))),
        "NegativeBinomial": lambda: rng.poisson(
            np.exp(np.clip(scores[:, :1], -2, 2)) * rng.gamma(2, 0.5, labels.shape)
        ),
        "SmoothedQuantile": lambda: scores[:, :1] + rng.standard_t(2, labels.shape),
        "Expectile": lambda: scores[:, :1] + rng.standard_t(2, labels.shape),
        "Multinomial": lambda: np.eye(N_CLASSES)[best],
    }[type(loss).__name__]().astype(float)


def problem_of(X, target, weights, loss):
    """The problem of a dense or sparse matrix, weights of sum one."""
    weights = np.asarray(weights, float).reshape(-1, 1)
    return Problem(design_of(X), target, weights / weights.sum(), loss)


def model_of(
    loss, rng, n=40, p=6, *, l1=0.0, l2=0.7, has_intercept=True, mean=False, off=0.0
):
    """Random data, and coefficients of which a third are zero where l1 > 0.

    The strengths are those beside a sum over rows. These are nobody's minimum; the
    approximations are defined anywhere.
    """
    n_outputs = N_CLASSES if loss.is_coupled else 1
    X = rng.standard_normal((n, p)) + 0.5
    coef = rng.standard_normal((p, n_outputs)) / np.sqrt(p)
    if l1:
        coef[rng.random(coef.shape) < 1 / 3] = 0
    scores = X @ rng.standard_normal((p, N_CLASSES)) / np.sqrt(p)
    weights = rng.uniform(0.3, 2, n)
    target = targets(loss, scores, rng)
    intercept = rng.standard_normal((1, n_outputs)) / 3
    coef = coef + off
    strength = (l1 + l2) / weights.sum()
    penalty = ElasticNet(strength, l1 / (l1 + l2) if strength else 0.0)
    if has_intercept:
        X = np.hstack([X, np.ones((n, 1))])
        penalty = except_last(penalty, X.shape[1])
        coef = np.vstack([coef, intercept])
    return ConvergedModel(
        problem=problem_of(X, target, weights, loss),
        penalty=penalty,
        coef=coef,
        penalty_shares=weights / weights.sum() if mean else np.zeros(n),
    )


def on(model, X, **others):
    """The same model on another matrix."""
    problem = replace(model.problem, design=design_of(X))
    return replace(model, problem=problem, **others)


def explicit(model, newton=True):
    """theta - H_{-i}^-1 g_{-i} row by row, with (pseudo-)inverses of full matrices.

    The ridge in the Hessian is what stays when an average row is left out.
    """
    problem, theta = model.problem, model.coef
    K = problem.target.shape[1]
    A = problem.design.X
    A = A.toarray() if sparse.issparse(A) else A
    has_intercept = isinstance(model.penalty, Weighted)
    penalty = model.penalty.penalty if has_intercept else model.penalty
    l1 = np.full(theta.shape, penalty.strength * penalty.l1_ratio)
    l2 = np.full(theta.shape, penalty.strength * (1 - penalty.l1_ratio))
    if has_intercept:
        l1[-1] = l2[-1] = 0
    moves = (theta != 0) | (l1 == 0)
    where = np.flatnonzero(moves.T.ravel())
    z = A @ theta
    d = problem.row_weights * problem.loss.derivative(problem.target, z)
    c = problem.loss.curvature_matrix(problem.target, z)
    c = problem.row_weights[:, :, None] * c
    slope = (l1 * np.sign(theta) + l2 * theta).T.ravel()
    ridge = l2.T.ravel() * (1 - model.penalty_shares.mean())
    rows = [np.kron(np.eye(K), a) for a in A]
    gradient = sum(B.T @ g for B, g in zip(rows, d)) + slope
    hessian = sum(B.T @ w @ B for B, w in zip(rows, c)) + np.diag(ridge)
    result = np.empty_like(z)
    for i, B in enumerate(rows):
        g = gradient - B.T @ d[i] - model.penalty_shares[i] * slope
        H = hessian - B.T @ c[i] @ B if newton else hessian
        move = np.zeros(len(g))
        move[where] = np.linalg.pinv(H[np.ix_(where, where)], rcond=1e-12) @ g[where]
        result[i] = z[i] - B @ move
    return result


def identified(model, predictor):
    """The predictor, but for the constant that coupled outputs leave free."""
    if not model.problem.loss.is_coupled:
        return predictor
    return predictor - predictor.mean(axis=1, keepdims=True)


def assert_same(model, found, expected, atol):
    found, expected = identified(model, found), identified(model, expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


LOSSES = [
    SquaredError(),
    Huber(1.0),
    Logistic(),
    SquaredHinge(),
    Poisson(),
    Multinomial(),
    Gamma(),
    Tweedie(1.5),
    NegativeBinomial(0.5),
    SmoothedQuantile(0.3),
    Expectile(0.8),
]


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize("has_intercept", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(0.0, 0.7), (0.4, 0.7), (0.4, 0.0)])
def test_equal_explicit_steps_with_the_whole_gradient(
    loss, mean, has_intercept, l1, l2, rng
):
    model = model_of(loss, rng, l1=l1, l2=l2, has_intercept=has_intercept, mean=mean)
    found = newton_step(model).predictor
    assert_same(model, found, explicit(model), atol=1e-9)
    found = infinitesimal_jackknife(model).predictor
    assert_same(model, found, explicit(model, newton=False), atol=1e-9)


@pytest.mark.parametrize("loss", [SquaredError(), Logistic(), Multinomial()])
@pytest.mark.parametrize("p", [6, 70])
@pytest.mark.parametrize("l1", [0.0, 0.4])
def test_sparse_and_wide(loss, p, l1, rng):
    model = model_of(loss, rng, p=p, l1=l1)
    X = model.problem.design.X.copy()
    X[:, :-1] *= rng.random(X[:, :-1].shape) < 0.3
    expected = explicit(on(model, X))
    for same in (X, sparse.csr_matrix(X)):
        found = newton_step(on(model, same)).predictor
        assert_same(model, found, expected, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_no_coefficient_is_free(kind, rng):
    model = model_of(Logistic(), rng, l1=0.4, has_intercept=False)
    model = on(model, kind(model.problem.design.X), coef=np.zeros((6, 1)))
    for found in (
        newton_step(model),
        infinitesimal_jackknife(model),
        randomized_leverages(model, probes_of(model, 10)),
    ):
        np.testing.assert_array_equal(found.predictor, 0)
        np.testing.assert_array_equal(found.leverages, 0)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix])
def test_designs_may_be_centred_lazily(kind, rng):
    model = model_of(Logistic(), rng, p=70)
    X = model.problem.design.X
    center = np.append(X[:, :-1].mean(axis=0), 0)[:, None]
    lazy = design_of(kind(X), center)
    centred = replace(model, problem=replace(model.problem, design=lazy))
    local = expansion(centred)
    assert reduce_to_row_space(local).design.shape[1] <= 41
    expected = newton_step(on(model, X - center.T)).predictor
    np.testing.assert_allclose(newton_step(centred).predictor, expected, atol=1e-9)


def test_squared_error_is_exact_anywhere(rng):
    # One step from any coefficients ends at the minimum without the row.
    model = model_of(SquaredError(), rng, off=5.0)
    found = newton_step(model).predictor[:, 0]
    problem, A = model.problem, model.problem.design.X
    l2 = model.penalty.strength
    penalty = np.diag(np.append(np.full(A.shape[1] - 1, l2), 0))
    for i in range(len(A)):
        stay = np.arange(len(A)) != i
        weighted = (A * problem.row_weights)[stay].T
        coef = np.linalg.solve(
            weighted @ A[stay] + penalty, weighted @ problem.target[stay, 0]
        )
        np.testing.assert_allclose(found[i], A[i] @ coef, rtol=0, atol=1e-10)


def test_a_few_iterations_from_convergence(rng):
    # The whole gradient counts: without it the step keeps the distance.
    X = rng.standard_normal((60, 5))
    y = targets(Logistic(), X[:, :3] * 2, rng)
    loss, l2 = Logistic(), 1.0

    def fitted(keep, max_iter=1000):
        def objective(b):
            z = X @ b
            gradient = X.T @ (keep * loss.derivative(y[:, 0], z)) + l2 * b
            return keep @ loss.value(y[:, 0], z) + l2 * b @ b / 2, gradient

        options = {"maxiter": max_iter, "gtol": 1e-10, "ftol": 0}
        start = np.zeros(5)
        return minimize(
            objective, start, jac=True, options=options, method="L-BFGS-B"
        ).x

    every = np.ones(60)
    model = ConvergedModel(
        problem=problem_of(X, y, every, loss),
        penalty=ElasticNet(l2 / 60, 0.0),
        coef=fitted(every, max_iter=4)[:, None],
        penalty_shares=np.zeros(60),
    )
    assert model.relative_gradient() > 0.01
    exact = np.array([X[i] @ fitted(every - (np.arange(60) == i)) for i in range(60)])
    found = newton_step(model).predictor
    np.testing.assert_allclose(found, explicit(model), rtol=0, atol=1e-10)
    far = np.abs(model.predictor[:, 0] - exact).mean()
    # Of second order in the distance.
    assert np.abs(found[:, 0] - exact).mean() < 0.1 * far
    at_minimum = replace(model, coef=fitted(every)[:, None])
    assert at_minimum.relative_gradient() < 1e-6


def test_relative_gradient_counts_subgradients(rng):
    # Zero coefficients within the threshold are at their minimum.
    target = np.array([[3.0], [-3.0], [0.5], [-0.5]])
    model = ConvergedModel(
        problem=problem_of(np.eye(4), target, np.ones(4), SquaredError()),
        penalty=L1(1 / 4),
        coef=np.array([[2.0], [-2.0], [0.0], [0.0]]),
        penalty_shares=np.zeros(4),
    )
    assert model.relative_gradient() == 0
    moved = replace(model, penalty=L1(0.25 / 4))
    rows = np.array([1.0, 1.0, 0.5, 0.5])
    expected = np.linalg.norm([0.75, 0.75, 0.25, 0.25]) / np.linalg.norm(rows)
    np.testing.assert_allclose(moved.relative_gradient(), expected, rtol=1e-12)


def test_leverages_sum_to_the_degrees_of_freedom(rng):
    model = model_of(SquaredError(), rng, l2=0.0)
    np.testing.assert_allclose(newton_step(model).leverages.sum(), 7, rtol=1e-10)
    model = model_of(Multinomial(), rng, l2=0.0)
    total = newton_step(model).leverages.sum()
    np.testing.assert_allclose(total, 7 * (N_CLASSES - 1), rtol=1e-10)


def test_rows_that_alone_determine_a_coefficient(rng):
    model = model_of(SquaredError(), rng, l2=0.0)
    model.problem.design.X[:, 0] = 0
    model.problem.design.X[7, 0] = 1
    with pytest.raises(ValueError, match="Without row 7"):
        newton_step(model)
    # A row by itself has no noise from other rows either.
    # With these weights no single precision rounds its leverage.
    target = rng.standard_normal((64, 1))
    alone = ConvergedModel(
        problem=problem_of(np.eye(64), target, np.ones(64), SquaredError()),
        penalty=Zero(),
        coef=np.zeros((64, 1)),
        penalty_shares=np.zeros(64),
    )
    with pytest.raises(ValueError, match="Without row 0"):
        randomized_leverages(alone, probes_of(alone, 10))
    assert np.isfinite(infinitesimal_jackknife(model).predictor).all()


def test_singular_hessians_take_the_pseudo_inverse(rng):
    model = model_of(SquaredError(), rng, l2=0.0)
    X = model.problem.design.X[:, 3:]
    single = on(model, X, coef=model.coef[3:], penalty=Zero())
    twice = on(single, np.hstack([X] * 2), coef=np.vstack([single.coef] * 2) / 2)
    assert isinstance(factor(expansion(twice)), Spectrum)
    np.testing.assert_allclose(
        newton_step(twice).predictor, newton_step(single).predictor, rtol=1e-9
    )


def test_conjugate_gradients_solve(rng):
    model = model_of(Logistic(), rng, p=12)
    local = expansion(on(model, sparse.csr_matrix(model.problem.design.X)))
    columns = rng.standard_normal((13, 4))
    found = ConjugateGradients(local).solve(columns)
    np.testing.assert_allclose(found, factor(local).solve(columns), rtol=1e-4)


def test_conjugate_gradients_say_when_they_fail(rng):
    local = expansion(model_of(Logistic(), rng, p=12))
    with pytest.raises(ValueError, match="do not converge"):
        ConjugateGradients(local).solve(rng.standard_normal((13, 4)), max_iter=2)


def minimum(problem, penalty):
    """Coefficients at a minimum, from zero, to many digits."""
    design = problem.design
    schedule = Nesterov(0.9 / problem.smoothness)
    plan = [Phase(penalty, schedule, 20_000)]
    start = np.zeros((1, design.shape[1], problem.target.shape[1]))
    return run(problem, plan, start, tol=1e-13).coef[-1]


@pytest.mark.parametrize("penalty", [L1(0.15), MCP(0.15, 8.0), SCAD(0.15, 8.0)])
@pytest.mark.parametrize(
    ("loss", "size", "limit"), [(SquaredError(), 0.3, 1e-6), (Logistic(), 1.0, 0.02)]
)
def test_penalties_with_kinks_against_refits(penalty, loss, size, limit, rng):
    """Convex or not, beside a mean; a refit starts where the fit did.

    Two columns have a signal of twice the strength, six have noise of a third: the
    refits have the same columns free, and a quadratic loss is exact.
    """
    n = 120
    X = rng.standard_normal((n, 8))
    y = size * targets(loss, 3 * X[:, :1] + 3 * X[:, 1:2], rng)
    problem = problem_of(X, y, np.ones(n), loss)
    coef = minimum(problem, penalty)
    assert 0 < penalty.is_free(coef).mean() < 1
    model = ConvergedModel(problem, penalty, coef, np.full(n, 1 / n))
    assert model.relative_gradient() < 1e-6
    rows, exact = np.arange(0, n, 6), []
    for i in rows:
        stay = np.arange(n) != i
        rest = problem_of(X[stay], y[stay], np.ones(n - 1), loss)
        exact.append(X[i] @ minimum(rest, penalty)[:, 0])
    found = newton_step(model).predictor[rows, 0]
    error, moved = np.abs(found - exact), np.abs(model.predictor[rows, 0] - exact)
    assert np.median(error) < limit * np.median(moved)


# ------------------------------------------------------------------ random probes


def probes_of(model, n_probes, seed=0):
    n = len(model.problem.target)
    return Probes(n_probes, np.random.default_rng(seed), np.full(n, 1 / n))


@pytest.mark.parametrize("loss", [SquaredError(), Huber(0.5), Logistic(), Poisson()])
@pytest.mark.parametrize("mean", [False, True])
def test_many_probes_approach_the_newton_step(loss, mean, rng):
    model = model_of(loss, rng, mean=mean, l2=3.0)
    exact = newton_step(model)
    errors = [
        randomized_leverages(model, probes_of(model, m)).leverages - exact.leverages
        for m in (100, 40_000)
    ]
    small = [np.sqrt(np.mean(error**2)) for error in errors]
    # Twenty times less for four hundred times the probes.
    assert small[1] < 0.1 * small[0]
    found = randomized_leverages(model, probes_of(model, 40_000)).predictor
    moved = np.linalg.norm(exact.predictor - model.predictor)
    assert np.linalg.norm(found - exact.predictor) < 0.03 * moved


def test_probes_do_not_mind_how_the_hessian_is_solved(rng, set_limits):
    model = model_of(Logistic(), rng, p=12)
    direct = randomized_leverages(model, probes_of(model, 20)).predictor
    set_limits(MEMORY_BYTES=0)
    iterated = randomized_leverages(model, probes_of(model, 20)).predictor
    # The factor is in single precision.
    np.testing.assert_allclose(iterated, direct, rtol=0, atol=1e-4)


def test_debiasing_takes_most_of_the_bias_out(rng):
    model = model_of(SquaredError(), rng, n=300, p=180, l2=30.0)
    exact = model.losses(newton_step(model).predictor).mean()
    plain, mended = [], []
    for seed in range(20):
        found = randomized_leverages(model, probes_of(model, 20, seed))
        plain.append(model.losses(found.predictor).mean() - exact)
        mended.append(plain[-1] + found.correction)
    assert np.mean(plain) > 4 * np.std(plain) / np.sqrt(20)
    assert abs(np.mean(mended)) < 0.5 * np.mean(plain)


def test_truncated_mean_is_that_of_the_distribution():
    mean = np.array([-0.3, -0.02, 0.2, 0.5, 0.97, 1.3, 0.4])
    deviation = np.array([0.1, 0.05, 0.3, 0.01, 0.1, 0.2, 0.3])
    upper = np.array([1.0] * 6 + [np.inf])
    low, high = -mean / deviation, (upper - mean) / deviation
    expected = truncnorm.mean(low, high, loc=mean, scale=deviation)
    found = truncated_mean(mean, deviation, upper)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    sure = truncated_mean(np.array([-0.1, 0.4, 1.2]), np.zeros(3), np.ones(3))
    np.testing.assert_array_equal(sure, [0, 0.4, 1])
    # Far outside the mean is at the edge, never beyond.
    far = truncated_mean(np.array([-5.0, 6.0]), np.full(2, 0.01), np.ones(2))
    assert (far >= 0).all()
    assert (far <= 1).all()
    np.testing.assert_allclose(far, [0, 1], atol=1e-4)


# ------------------------------------------------------------------------- hinge


def hinge_minimum(X, y, l2, has_intercept):
    """Coefficients and intercept by scikit-learn, to ten digits."""
    if has_intercept:
        machine = SVC(kernel="linear", C=1 / l2, tol=1e-10).fit(X, y)
    else:
        machine = LinearSVC(
            C=1 / l2, loss="hinge", tol=1e-10, max_iter=10**7, fit_intercept=False
        ).fit(X, y)
    return machine.coef_.ravel(), float(np.ravel(machine.intercept_)[0])


@pytest.mark.parametrize("has_intercept", [False, True])
def test_hinge_against_refits(has_intercept, rng):
    X = rng.standard_normal((60, 120)) / np.sqrt(120)
    y = np.where(X[:, 0] + rng.standard_normal(60) / 5 > 0, 1.0, -1.0)
    coef, intercept = hinge_minimum(X, y, 0.5, has_intercept)
    slack = 1 - y * (X @ coef + intercept)
    A, penalty = X, SquaredL2(0.5 / 60)
    if has_intercept:
        A = np.hstack([X, np.ones((60, 1))])
        penalty = except_last(penalty, A.shape[1])
        coef = np.append(coef, intercept)
    model = HingeModel(
        problem=problem_of(A, y[:, None], np.ones(60), Hinge()),
        penalty=penalty,
        coef=coef[:, None],
        penalty_shares=np.zeros(60),
        on_margin=np.abs(slack) < 1e-6,
        within=slack >= 1e-6,
    )
    assert model.on_margin.sum() > 5
    assert model.within.sum() > 5
    assert model.relative_gradient() < 1e-6
    assert not model.is_pinned
    found = support_stays(model).predictor[:, 0]
    exact = []
    for i in range(60):
        stay = np.arange(60) != i
        coef, intercept = hinge_minimum(X[stay], y[stay], 0.5, has_intercept)
        exact.append(X[i] @ coef + intercept)
    error = np.abs(found - exact)
    moved = np.abs(model.predictor[:, 0] - exact)
    # Exact while the support stays: some row joins or leaves it in most refits.
    assert np.median(error) < 0.05 * np.median(moved)
    assert error.mean() < 0.1 * moved.mean()
    outside = ~(model.on_margin | model.within)
    np.testing.assert_array_equal(found[outside], model.predictor[outside, 0])
    alike = support_stays(on(model, sparse.csr_matrix(A))).predictor[:, 0]
    np.testing.assert_allclose(alike, found, rtol=0, atol=1e-8)
