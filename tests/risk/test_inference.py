"""Debiased coefficients: dense systems, the published setting, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.linalg import solve_triangular, toeplitz
from scipy.special import expit
from scipy.stats import norm
from sklearn.base import clone, is_classifier

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
)
from skacv._estimator.prediction.directions import KnownCovariance, Nodewise
from skacv.optim.losses import Huber, Logistic, Poisson, SquaredError, SquaredHinge
from skacv.optim.penalties import SquaredL2
from skacv.optim.schedules import Nesterov
from skacv.risk.inference.scores import scores_at_the_end
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.curved_runs import drawn, run_of
from tests.sides import fit_plainly, fit_reduced

ESTIMATED = "coef", "estimate", "standard_error", "z", "p_value"
LOSSES = [SquaredError(), Huber(1.0), Logistic(), SquaredHinge(), Poisson()]


def system(X, problem, trajectory, penalty):
    """K and Psi of gradient descent, Tan & Bellec (2024), eq. 10."""
    n, p = X.shape
    loss, y = problem.loss, problem.target
    step = trajectory.phases[0].schedule.step_size
    D = [loss.curvature(y, z)[:, 0] for z in trajectory.predictor]
    K, responses = np.diag([d.sum() for d in D]), []
    for t in range(len(D)):
        for s, Q in enumerate(responses):
            K[t, s] = -np.einsum("ij,jk,ik,i,i->", X, Q, X, D[t], D[s])
        hessian = X.T @ (D[t][:, None] * X) / n + penalty.strength * np.eye(p)
        responses = [Q - step * hessian @ Q for Q in responses]
        responses.append(step / n * np.eye(p))
    psi = -np.array([loss.derivative(y, z)[:, 0] for z in trajectory.predictor])
    return K, psi


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_scores_solve_the_published_system(loss, rng):
    X, y = drawn(loss, 30, 8, rng)
    penalty = SquaredL2(0.05)
    problem, trajectory = run_of(loss, X, y, penalty)
    K, psi = system(X, problem, trajectory, penalty)
    expected = 30 * solve_triangular(K, psi, lower=True)[-1]
    found = scores_at_the_end(problem, trajectory, "exact")[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize("loss", [Huber(1.0), Logistic()], ids=repr)
def test_random_signs_agree_with_exact_traces(loss, rng):
    X, y = drawn(loss, 200, 60, rng)
    problem, trajectory = run_of(loss, X, y, SquaredL2(0.05), Nesterov, T=20)
    exact = scores_at_the_end(problem, trajectory, "exact")
    found = [scores_at_the_end(problem, trajectory, 40, rng) for _ in range(20)]
    spread = np.std(found, axis=0) / np.sqrt(20)
    away = np.abs(np.mean(found, axis=0) - exact)
    assert np.median(away / spread) < 2
    assert np.linalg.norm(found[0] - exact) < 0.1 * np.linalg.norm(exact)


def test_scores_of_the_squared_error_are_its_held_out_residuals(rng):
    X, y = drawn(SquaredError(), 60, 20, rng)
    problem, trajectory = run_of(SquaredError(), X, y, SquaredL2(0.05), Nesterov)
    scores = scores_at_the_end(problem, trajectory, "exact")
    risk = estimate_risk(problem, trajectory, method="exact").path[-1]
    assert (scores**2).mean() == pytest.approx(risk, rel=1e-7)


@pytest.mark.slow
def test_the_published_notebook():
    """n = 200, p = 400, ten equal coefficients, iterate 9 of ISTA, 100 seeds."""
    n, p, sigma = 200, 400, 0.5
    beta = np.zeros(p)
    beta[:10] = sigma * np.sqrt(0.5 / 10)
    found = []
    for seed in range(100):
        rng = np.random.RandomState(seed)
        X = rng.randn(n, p)
        y = X @ beta + sigma * rng.randn(n)
        model = TrajectoryLasso(
            0.1,
            solver="ista",
            fit_intercept=False,
            step_size=n / np.linalg.norm(X, 2) ** 2,
            max_iter=14,
            tol=0,
            loo=False,
            risk=20,
            risk_row_scales=False,
            keep_data=True,
            random_state=seed,
        ).fit(X, y)
        table = model.coef_table(iteration=9, covariance=np.eye(p))
        covers = (table["lower"] < beta) & (beta < table["upper"])
        estimate, error = table["estimate"], table["standard_error"]
        first = [table["coef"][0], estimate[0], error[0], covers[0]]
        found.append([*first, covers.mean(), np.std((estimate - beta) / error)])
    coef, estimate, error, covers, all_cover, spread = np.array(found).T
    assert coef.mean() == pytest.approx(0.0124, abs=5e-5)
    assert (coef == 0).mean() == pytest.approx(0.51, abs=0.005)
    assert estimate.mean() == pytest.approx(0.1016, abs=0.001)
    assert estimate.std(ddof=1) == pytest.approx(0.0405, abs=0.001)
    assert error.mean() == pytest.approx(0.0413, abs=0.0005)
    assert covers.mean() == pytest.approx(0.94, abs=0.02)
    assert all_cover.mean() == pytest.approx(0.9495, abs=0.003)
    assert spread.mean() == pytest.approx(1.002, abs=0.01)


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((80, 12))
    return X, X[:, 0] + rng.standard_normal(80)


@pytest.fixture
def fitted(rows):
    X, y = rows
    return TrajectoryLasso(0.05, keep_data=True, random_state=0).fit(X, y)


def test_table_says_what_the_interval_says(fitted):
    model = fitted
    table = model.coef_table([0, -1], 0.9)
    np.testing.assert_array_equal(table["column"], [0, 11])
    interval = model.coef_interval([0, 11], 0.9)
    ends = np.stack([table["lower"], table["upper"]], axis=1)
    np.testing.assert_array_equal(ends, interval)
    np.testing.assert_allclose(table["coef"], model.coef_[[0, 11]])
    np.testing.assert_allclose(interval.mean(axis=1), table["estimate"])
    np.testing.assert_allclose(table["z"] * table["standard_error"], table["estimate"])
    assert table["p_value"][0] < 1e-4 < table["p_value"][1]
    mask = np.arange(12) < 2
    np.testing.assert_array_equal(
        model.coef_interval(mask), model.coef_interval([0, 1])
    )
    assert model.coef_interval().shape == (12, 2)
    earlier = model.coef_interval([0], iteration=3)
    np.testing.assert_allclose(model.at_iteration(3).coef_interval([0]), earlier)


def test_random_signs_are_drawn_once(rng):
    """What a table says hangs together where nothing fixes the draws."""
    X = rng.standard_normal((80, 6))
    y = X[:, 0] + rng.standard_t(3, 80)
    table = TrajectoryHuberRegressor(keep_data=True, risk=True).fit(X, y).coef_table()
    middle = (table["lower"] + table["upper"]) / 2
    np.testing.assert_allclose(middle, table["estimate"], rtol=1e-12)


def test_names_several_targets_and_the_stopped_one(rng):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rng.standard_normal((80, 5)), columns=list("abcde"))
    y = np.stack([X["a"], 2 * X["b"]], axis=1) + rng.standard_normal((80, 2))
    model = IterativeRidge(1.0, keep_data=True).fit(X, y)
    found = model.coef_interval(["b", "a"])
    assert found.shape == (2, 2, 2)
    assert (found[0, 1] > 1).all()
    stopped = TrajectoryEarlyStoppingCV(
        TrajectoryLasso("path", max_iter=20, risk=True, keep_data=True, random_state=0)
    ).fit(X, y[:, 0])
    table = stopped.coef_table()
    assert list(table["column"]) == [*"abcde", "intercept"]
    assert table["p_value"][0] < 1e-4
    np.testing.assert_array_equal(
        stopped.coef_interval(), stopped.estimator_.coef_interval()
    )


def test_robust_regression_covers():
    """Nominal 90% of 40 columns over 8 draws, with an intercept, covariance known."""
    covers = []
    model = TrajectoryHuberRegressor(
        0.01, max_iter=60, keep_data=True, risk=True, loo=False
    )
    beta = np.where(np.arange(40) < 5, 0.3, 0.0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 40))
        y = X @ beta + 2 + rng.standard_t(3, 300)
        model.set_params(random_state=seed).fit(X, y)
        interval = model.coef_interval(coverage=0.9, covariance=np.eye(40))
        covers.append((interval[:, 0] < beta) & (beta < interval[:, 1]))
    # Five standard errors of 320 independent ones.
    assert np.mean(covers) == pytest.approx(0.9, abs=0.085)


def test_counts_are_tested():
    """Over 8 draws: z of 160 columns that do not matter, and what is not said."""
    null, multiples = [], []
    model = TrajectoryPoissonRegressor(
        0.01, max_iter=20, keep_data=True, risk=True, loo=False
    )
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 22))
        y = rng.poisson(np.exp(0.4 * X[:, 0] - 0.4 * X[:, 1] + 0.5))
        table = (
            model.set_params(random_state=seed)
            .fit(X, y)
            .coef_table(covariance=np.eye(22), iteration=2)
        )
        assert set(table) == {*ESTIMATED, "column"}
        null.extend(table["z"][2:])
        multiples.append(table["estimate"][:2] / [0.4, -0.4])
    # Five standard errors of so many independent ones.
    assert np.mean(np.abs(null) < 1.645) == pytest.approx(0.9, abs=0.12)
    # Early a debiased iterate is more than the truth: no interval is said.
    assert np.mean(multiples) > 1.3
    general = TrajectoryRegressor(loss="poisson", risk=True, keep_data=True)
    with pytest.raises(ValueError, match="half Poisson deviance does not"):
        general.fit(X, y).coef_interval()


@pytest.mark.parametrize(
    "model",
    [
        TrajectoryLogisticRegression(1e6, max_iter=20),
        TrajectoryLogisticRegression(0.3, l1_ratio=1.0, max_iter=20),
        TrajectoryLinearSVC(0.1, max_iter=20),
    ],
    ids=["logistic", "l1", "svc"],
)
def test_classifiers_test_their_coefficients(model, rng):
    """Over 8 draws: z of 160 columns that do not matter, and of two that do."""
    null, others = [], []
    for seed in range(8):
        X = rng.standard_normal((300, 22))
        y = rng.random(300) < expit(1 + X[:, 0] - X[:, 1])
        model.set_params(keep_data=True, risk=True, loo=False, random_state=seed)
        table = model.fit(X, y).coef_table(covariance=np.eye(22))
        assert {*ESTIMATED, "column"} <= set(table)
        others.append(table["z"][:2])
        null.extend(table["z"][2:])
    # Five standard errors of so many independent ones.
    assert np.mean(np.abs(null) < 1.645) == pytest.approx(0.9, abs=0.12)
    assert np.std(null) == pytest.approx(1, abs=0.28)
    assert (np.array(others) * [1, -1] > 3).all()


def test_several_classes_are_not_debiased(rng):
    X, y = rng.standard_normal((60, 3)), np.arange(60) % 3
    for cls in (TrajectoryLogisticRegression, TrajectoryLinearSVC):
        model = cls(risk=True, keep_data=True).fit(X, y)
        with pytest.raises(ValueError, match="more than two classes"):
            model.coef_table()
    assert not hasattr(model, "coef_interval")


def test_unlabelled_rows_stand_for_the_covariance(rng):
    L = np.linalg.cholesky(toeplitz(0.5 ** np.arange(12)))
    X = rng.standard_normal((80, 12)) @ L.T
    y = X[:, 0] + rng.standard_normal(80)
    model = TrajectoryLasso(0.05, keep_data=True, random_state=0).fit(X, y)
    more = rng.standard_normal((20_000, 12)) @ L.T
    known = model.coef_table(covariance=L @ L.T)
    found = model.coef_table(X_unlabelled=more)
    np.testing.assert_allclose(
        found["standard_error"], known["standard_error"], rtol=0.03
    )
    away = np.abs(found["estimate"] - known["estimate"])
    assert (away < 0.2 * known["standard_error"]).all()


def test_nodewise_residuals_are_those_of_a_lasso(rng):
    """Equally near to all columns that it takes, and nearer to none (KKT)."""
    X = (
        rng.standard_normal((200, 30))
        @ np.linalg.cholesky(toeplitz(0.5 ** np.arange(30))).T
    )
    found = Nodewise().find_directions_of_columns(X, np.array([3]))
    assert X[:, 3] @ found.vectors[:, 0] == pytest.approx(1)
    scale = np.sqrt((X**2).mean(axis=0))
    across = np.delete(np.abs(X.T @ found.vectors[:, 0]) / scale, 3)
    taken = across > 0.999 * across.max()
    assert taken[[2, 3]].all()  # its neighbours
    assert across.max() < 0.2
    np.testing.assert_allclose(
        found.sizes, np.linalg.norm(found.vectors, axis=0) / np.sqrt(200)
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"coverage": 1.0}, "between 0 and 1"),
        ({"columns": [12]}, "below 12"),
        ({"columns": ["a"]}, "no columns"),
        ({"iteration": 10**6}, "t must be in"),
        ({"columns": [True]}, "1 entries for 12"),
        ({"covariance": np.eye(3)}, r"shape \(12, 12\)"),
        ({"covariance": -np.eye(12)}, "positive definite"),
        ({"covariance": np.tri(12)}, "symmetric"),
        ({"covariance": "lasso"}, "'auto', 'sample', 'nodewise' or an array"),
        ({"X_unlabelled": np.ones((3, 4))}, "4 features"),
        ({"covariance": np.eye(12), "X_unlabelled": np.ones((9, 12))}, "not both"),
    ],
)
def test_bad_input(arguments, words, fitted):
    with pytest.raises(ValueError, match=words):
        fitted.coef_interval(**arguments)


@pytest.mark.parametrize("covariance", ["sample", "nodewise"])
@pytest.mark.parametrize(
    "model",
    [
        TrajectoryLasso(0.05, keep_data=True, random_state=0),
        TrajectoryLogisticRegression(keep_data=True, random_state=0),
    ],
    ids=["squared error", "two classes"],
)
def test_columns_that_are_not_told_apart_are_nan(model, covariance, rng):
    """All other rows of the table are those of these columns alone."""
    X = pd.DataFrame(rng.standard_normal((120, 6)), columns=list("abcdef"))
    X["d"] = 2 * X["b"]
    y = X["a"] + rng.standard_normal(120)
    model = clone(model).fit(X, y > 0 if is_classifier(model) else y)
    with pytest.warns(UserWarning, match=r"\['b', 'd'\] are constant, or") as seen:
        table = model.coef_table(covariance=covariance)
    assert len(seen) == 1
    lost = table["column"].isin(["b", "d"])
    numbers = table.drop(columns=["column", "coef"])
    assert numbers[lost].isna().all(axis=None)
    assert np.isfinite(numbers[~lost]).all(axis=None)
    assert np.isfinite(table["coef"]).all()
    kept = model.coef_table(["a", "c", "e", "f"], covariance=covariance)
    own = table[table["column"].isin(["a", "c", "e", "f"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(own, kept)
    with pytest.warns(UserWarning, match=r"\['d'\] are constant, or"):
        interval = model.coef_interval(["d", "c"], covariance=covariance)
    assert np.isnan(interval[0]).all()
    assert np.isfinite(interval[1]).all()


@pytest.mark.parametrize("covariance", ["sample", "nodewise"])
def test_means_of_rows_that_training_rows_say_nothing_of_are_nan(covariance, rng):
    X = rng.standard_normal((100, 4))
    X[:, 3] = X[:, 1] + 1e-9 * rng.standard_normal(100)
    model = TrajectoryLasso(0.05, keep_data=True, random_state=0)
    model.fit(X, X[:, 0] + rng.standard_normal(100))
    rows = np.array([[1.0, 0.5, 0.0, 0.5], [0.0, 5.0, 0.0, -5.0]])
    with pytest.warns(UserWarning, match=r"Rows \[1\] of X lie in directions"):
        found = model.predict_mean_interval(rows, covariance=covariance)
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1]).all()


def test_fits_that_have_nothing_to_say(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    lasso = TrajectoryLasso(0.05, random_state=0)
    with pytest.raises(ValueError, match="keep_data=True"):
        lasso.fit(X, y).coef_interval()
    lasso.set_params(keep_data=True)
    with pytest.raises(ValueError, match="equal weight"):
        lasso.fit(X, y, sample_weight=rng.uniform(1, 2, 30)).coef_interval()
    X[:, 2] = 1.0
    for settings in ({}, {"covariance": np.eye(4)}):
        with pytest.warns(UserWarning, match=r"Columns \[2\] are constant"):
            found = lasso.fit(X, y).coef_interval(**settings)
        np.testing.assert_array_equal(np.isnan(found[:, 0]), [0, 0, 1, 0])
    assert lasso.coef_interval([0, 1]).shape == (2, 2)
    batches = IterativeRidge(solver="eigenpro", n_components=1, keep_data=True)
    batches.fit(X, y)
    with pytest.raises(ValueError, match="with a preconditioner"):
        batches.coef_interval([0], covariance="nodewise")
    # Which does not matter where every iterate ends at least squares.
    np.testing.assert_allclose(batches.coef_interval([0]), lasso.coef_interval([0]))
    wide = rng.standard_normal((30, 60))
    free = IterativeRidge(0.0, max_iter=3000, tol=0, keep_data=True).fit(wide, y)
    with pytest.raises(ValueError, match="fits every row"):
        free.coef_interval([0])
    assert free.coef_interval([0], iteration=5).shape == (1, 2)


@pytest.mark.parametrize(
    "model",
    [IterativeRidge(1.0), TrajectoryLogisticRegression(0.1, max_iter=40)],
    ids=["squared", "logistic"],
)
def test_runs_in_the_space_of_the_rows(model, rng):
    """More columns than rows: the same as on the columns."""
    X = rng.standard_normal((40, 300))
    y = (X[:, 0] + rng.standard_normal(40) > 0).astype(int)
    model.set_params(keep_data=True, risk="exact", random_state=0)
    assert fit_reduced(model, X, y) == "RowSpaceData"
    plain = fit_plainly(clone(model), X, y)
    tables = [
        each.coef_table([0, 290], covariance=np.eye(300)) for each in (model, plain)
    ]
    # Of classes, by random signs, and coordinates of single precision.
    for name in ESTIMATED:
        np.testing.assert_allclose(tables[0][name], tables[1][name], rtol=1e-3)


# ------------------------------------------------------------------ means of rows


def test_directions_of_unit_rows_are_those_of_columns(rng):
    X = rng.standard_normal((100, 6)) @ np.linalg.cholesky(
        toeplitz(0.5 ** np.arange(6))
    )
    known = KnownCovariance(toeplitz(0.5 ** np.arange(6)), 6)
    rows = np.zeros((2, 6))
    rows[[0, 1], [4, 2]] = 1.0, -2.0
    for of, lasso in ((known, {}), (Nodewise(), {"alpha": 0.45})):
        expected = of.find_directions_of_columns(X, np.array([4, 2]), **lasso)
        found = of.find_directions_of_rows(X, rows, **lasso)
        np.testing.assert_allclose(
            found.vectors,
            expected.vectors * [1, -2],
            atol=1e-4 * expected.vectors.max(),
        )
        np.testing.assert_allclose(found.sizes, expected.sizes * [1, 2], rtol=1e-3)


@pytest.mark.parametrize("how", ["known", "nodewise"])
def test_directions_of_rows_see_these_and_little_else(how, rng):
    """w'X b is d'b, but for what b has across d."""
    n, p = 4000, 5
    X = rng.standard_normal((n, p)) * np.arange(1, 6)
    row = rng.standard_normal((1, p))
    known = KnownCovariance(np.diag(np.arange(1.0, 6) ** 2), p)
    covariance = {"known": known, "nodewise": Nodewise()}[how]
    found = covariance.find_directions_of_rows(X, row)
    seen = X.T @ found.vectors[:, 0]
    variance = row[0] @ np.diag(np.arange(1.0, 6) ** -2) @ row[0]
    # A lasso sees to it that others are seen little; else the draw of X decides.
    errors = {"known": 5.0, "nodewise": 0.5}[how]
    away = np.abs(seen - row[0]) / (np.arange(1, 6) * np.sqrt(variance / n))
    assert away.max() < errors
    assert found.sizes[0] == pytest.approx(np.sqrt(variance) / n, rel=0.05)


def test_means_at_convergence_are_those_of_least_squares(rng):
    X = rng.standard_normal((200, 4))
    y = X @ [1.0, 0, 2, 0] + 5 + rng.standard_normal(200)
    model = IterativeRidge(
        0.0,
        max_iter=500,
        tol=1e-14,
        risk="exact",
        risk_row_scales=False,
        keep_data=True,
    ).fit(X, y)
    new = rng.standard_normal((3, 4)) + 1
    found = model.predict_mean_interval(new, 0.9)
    A, row = np.c_[np.ones(200), X], np.c_[np.ones(3), new]
    coef, rss, *_ = np.linalg.lstsq(A, y, rcond=None)
    np.testing.assert_allclose(found.mean(axis=1), row @ coef, rtol=1e-6)
    inverse = np.linalg.inv(A.T @ A)
    error = np.sqrt(rss / 195 * np.einsum("ij,jk,ik->i", row, inverse, row))
    np.testing.assert_allclose(
        np.ptp(found, axis=1) / (2 * norm.ppf(0.95)), error, rtol=0.05
    )


def test_means_by_a_known_covariance_are_the_formula(rng):
    """And without an intercept, which leaves one term out."""
    covariance = toeplitz(0.3 ** np.arange(6))
    X, new = rng.standard_normal((50, 6)), rng.standard_normal((2, 6))
    y = X[:, 0] + rng.standard_normal(50)
    for fit_intercept in (True, False):
        model = TrajectoryLasso(
            0.05,
            max_iter=7,
            fit_intercept=fit_intercept,
            keep_data=True,
            random_state=0,
        ).fit(X, y)
        scores = np.tensordot(
            model.risk_residual_path_.temporal[7], model.risk_residual_path_.spatial, 1
        )
        away = fit_intercept * X.mean(axis=0)
        d, inverse = new - away, np.linalg.inv(covariance)
        middle = model.predict(new) + d @ inverse @ (X - away).T @ scores / 50
        variance = np.einsum("ij,jk,ik->i", d, inverse, d) + fit_intercept
        reach = norm.ppf(0.9) * np.sqrt(variance) * np.linalg.norm(scores) / 50
        found = model.predict_mean_interval(new, 0.8, covariance=covariance)
        np.testing.assert_allclose(found.T, [middle - reach, middle + reach], atol=1e-8)


@pytest.mark.parametrize("covariance", ["known", "nodewise"])
@pytest.mark.parametrize(
    "model",
    [
        TrajectoryLasso(0.05, max_iter=20),
        TrajectoryHuberRegressor(0.01, max_iter=20),
    ],
)
def test_means_cover(model, covariance):
    """Nominal 90% of 20 new rows over 8 draws."""
    covers = []
    beta = np.where(np.arange(50) < 5, 0.5, 0.0)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, new = rng.standard_normal((150, 50)) + 1, rng.standard_normal((20, 50)) + 1
        y = X @ beta + 3 + rng.standard_normal(150)
        model.set_params(keep_data=True, risk=True, loo=False, random_state=seed)
        model.fit(X, y)
        given = np.eye(50) if covariance == "known" else "nodewise"
        ends = model.predict_mean_interval(new, 0.9, covariance=given)
        covers.append((ends[:, 0] < new @ beta + 3) & (new @ beta + 3 < ends[:, 1]))
    # Five standard errors of 160 independent ones.
    assert np.mean(covers) == pytest.approx(0.9, abs=0.12)


def test_means_of_several_targets_sparse_rows_and_the_stopped_one(rng):
    X = rng.standard_normal((80, 5))
    y = np.stack([X[:, 0], X[:, 1]], axis=1) + rng.standard_normal((80, 2))
    model = IterativeRidge(1.0, keep_data=True).fit(X, y)
    found = model.predict_mean_interval(X[:3] + 1)
    assert found.shape == (3, 2, 2)
    sparse_rows = sparse.csr_matrix(X[:3] + 1)
    np.testing.assert_allclose(model.predict_mean_interval(sparse_rows), found)
    lasso = TrajectoryLasso(0.1, risk=True, keep_data=True, random_state=0)
    stopped = TrajectoryEarlyStoppingCV(lasso).fit(X, y[:, 0])
    np.testing.assert_array_equal(
        stopped.predict_mean_interval(X[:2]),
        stopped.estimator_.predict_mean_interval(X[:2]),
    )
    logistic = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression())
    assert not hasattr(logistic, "predict_mean_interval")


def test_the_mean_row_has_the_mean_target(rows, fitted):
    """Its interval is that of the mean of y, by any directions."""
    X, y = rows
    middle = X.mean(axis=0, keepdims=True)
    found = fitted.predict_mean_interval(middle, covariance="nodewise")
    np.testing.assert_allclose(found.mean(), y.mean(), rtol=1e-6)
    known = fitted.predict_mean_interval(middle, covariance=np.eye(12))
    np.testing.assert_allclose(found, known, rtol=1e-6)
