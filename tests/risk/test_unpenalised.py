"""Coefficients by the sample covariance: textbook least squares and likelihood."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.linalg import toeplitz
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.preprocessing import OneHotEncoder

from skacv import (
    CoefficientIntervalDisplay,
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.optim.losses import Huber
from skacv.risk.inference.unpenalised import Basis, Unpenalised

STATISTICS = "estimate", "standard_error", "z", "p_value", "lower", "upper"
QUIET = {"loo": False, "risk": False, "keep_data": True, "random_state": 0}


def with_constant(X):
    return np.column_stack([X, np.ones(len(X))])


def table_of(estimate, error, degrees, coverage):
    """Tests and intervals by Student's distribution."""
    z = estimate / error
    reach = stats.t.ppf((1 + coverage) / 2, degrees) * error
    p_value = 2 * stats.t.sf(np.abs(z), degrees)
    return dict(
        zip(
            STATISTICS,
            (estimate, error, z, p_value, estimate - reach, estimate + reach),
        )
    )


def least_squares(A, y, coverage=0.95):
    """The textbook's table."""
    inverse = np.linalg.inv(A.T @ A)
    coef = inverse @ A.T @ y
    left = y - A @ coef
    degrees = len(y) - A.shape[1]
    error = np.sqrt(left @ left / degrees * np.diag(inverse))
    return table_of(coef, error, degrees, coverage)


def assert_same(found, expected, rtol=1e-7):
    for name in STATISTICS:
        np.testing.assert_allclose(found[name], expected[name], rtol, err_msg=name)


@pytest.fixture
def correlated(rng):
    X = (
        3
        + rng.standard_normal((60, 5))
        @ np.linalg.cholesky(toeplitz(0.9 ** np.arange(5))).T
    )
    return X, X @ [1.0, 0, -1, 0, 2] + 5 + rng.standard_normal(60)


@pytest.mark.parametrize(
    "model",
    [
        IterativeRidge(0.0, solver="nesterov", max_iter=3000, tol=1e-13),
        IterativeRidge(5.0, max_iter=3),
        IterativeRidge(1.0, solver="eigenpro", n_components=1, max_iter=3),
        TrajectoryLasso(0.3, max_iter=7, standardize=True),
        TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=5)),
    ],
    ids=["converged", "ridge", "eigenpro", "lasso", "path"],
)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_tables_are_those_of_least_squares(model, fit_intercept, correlated):
    X, y = correlated
    model, settings = clone(model), {**QUIET, "fit_intercept": fit_intercept}
    if isinstance(model, TrajectoryEarlyStoppingCV):
        model.estimator.set_params(**{**settings, "loo": "auto"})
    else:
        model.set_params(**settings)
    model.fit(X, y)
    expected = least_squares(with_constant(X) if fit_intercept else X, y)
    table = model.coef_table()
    labels = [0, 1, 2, 3, 4, *(["intercept"] if fit_intercept else [])]
    assert list(table["column"]) == labels
    assert_same(table, expected)
    ends = np.stack([expected["lower"], expected["upper"]], axis=1)
    np.testing.assert_allclose(model.coef_interval(), ends[:5])
    # The coefficients themselves are those of the iterate.
    np.testing.assert_allclose(table["coef"][:5], model.coef_)
    if fit_intercept:
        assert table["coef"][5] == pytest.approx(model.intercept_)
        np.testing.assert_allclose(model.coef_interval(["intercept"])[0], ends[5])


def test_a_converged_run_without_a_penalty_keeps_its_coefficients(correlated):
    X, y = correlated
    model = IterativeRidge(0.0, solver="nesterov", max_iter=3000, tol=1e-13, **QUIET)
    table = model.fit(X, y).coef_table()
    np.testing.assert_allclose(table["estimate"], table["coef"], rtol=1e-6)


def test_means_are_those_of_least_squares(correlated, rng):
    X, y = correlated
    model = TrajectoryLasso(0.3, max_iter=7, **QUIET).fit(X, y)
    new = rng.standard_normal((4, 5))
    A, rows = with_constant(X), with_constant(new)
    inverse = np.linalg.inv(A.T @ A)
    coef = inverse @ A.T @ y
    variance = np.sum((y - A @ coef) ** 2) / 54
    error = np.sqrt(variance * np.einsum("ij,jk,ik->i", rows, inverse, rows))
    expected = table_of(rows @ coef, error, 54, 0.8)
    found = model.predict_mean_interval(new, 0.8)
    ends = np.stack([expected["lower"], expected["upper"]], axis=1)
    np.testing.assert_allclose(found, ends)
    # The intercept is the mean of a row of zeros.
    zero = model.predict_mean_interval(np.zeros((1, 5)))
    np.testing.assert_allclose(zero, model.coef_interval(["intercept"]))


def test_targets_each_have_their_own_noise(correlated):
    X, y = correlated
    targets = np.stack([y, 10 * y + X[:, 0] ** 2], axis=1)
    table = IterativeRidge(1.0, **QUIET).fit(X, targets).coef_table()
    for k, target in enumerate(targets.T):
        found = {name: table[name][:, k] for name in STATISTICS}
        assert_same(found, least_squares(with_constant(X), target))


@pytest.mark.parametrize("convert", [sparse.csr_matrix, np.float32], ids=str)
def test_sparse_and_single_precision_columns(convert, correlated):
    X, y = correlated
    model = IterativeRidge(1.0, **QUIET).fit(convert(X), y)
    assert_same(model.coef_table(), least_squares(with_constant(X), y), rtol=1e-4)


def test_rows_without_weight_are_not_there(correlated):
    X, y = correlated
    weights = (np.arange(60) < 50).astype(float)
    model = IterativeRidge(1.0, **QUIET).fit(X, y, sample_weight=weights)
    expected = least_squares(with_constant(X[:50]), y[:50])
    assert_same(model.coef_table(), expected)


def newton(A, y, derivatives):
    """The unpenalised minimum, and what its errors are made of, by plain loops."""
    coef = np.zeros(A.shape[1])
    for _ in range(50):
        slopes, curvature = derivatives(y, A @ coef)
        hessian = A.T @ (curvature[:, None] * A)
        coef = coef + np.linalg.solve(hessian, A.T @ slopes)
    slopes, curvature = derivatives(y, A @ coef)
    inverse = np.linalg.inv(A.T @ (curvature[:, None] * A))
    leverages = [d * a @ inverse @ a for d, a in zip(curvature, A)]
    dispersion = np.sum(slopes**2) / np.sum(curvature * (1 - np.array(leverages)))
    return coef, inverse, dispersion


def logistic_derivatives(y, z):
    share = expit(z)
    return y - share, share * (1 - share)


def huber_derivatives(y, z, threshold):
    left = y - z
    return np.clip(left, -threshold, threshold), np.abs(left) <= threshold


def poisson_derivatives(y, z):
    return y - np.exp(z), np.exp(z)


def drawn(kind, n_rows, n_columns, rng):
    """AR(.8) rows, and targets of a model with an intercept of 1."""
    root = np.linalg.cholesky(toeplitz(0.8 ** np.arange(n_columns)))
    X = rng.standard_normal((n_rows, n_columns)) @ root.T
    signal = X[:, 0] - 0.5 * X[:, -1] + 1
    if kind == "logistic":
        return X, (rng.random(n_rows) < expit(signal)).astype(int)
    if kind == "poisson":
        return X, rng.poisson(np.exp(signal / 2))
    return X, signal + rng.standard_t(3, n_rows)


CURVED = {
    "huber": (TrajectoryHuberRegressor(0.5, max_iter=4), huber_derivatives),
    "poisson": (TrajectoryPoissonRegressor(0.5, max_iter=50), poisson_derivatives),
    "logistic": (TrajectoryLogisticRegression(0.1, max_iter=4), logistic_derivatives),
}


@pytest.mark.parametrize("kind", CURVED)
def test_other_losses_end_at_their_minimum_and_its_errors(kind, rng):
    model, derivatives = CURVED[kind]
    X, y = drawn(kind, 150, 4, rng)
    fitted = clone(model).set_params(**QUIET).fit(X, y)
    if kind == "huber":
        derivatives = partial(derivatives, threshold=1.35 * fitted.scale_)
    coef, inverse, dispersion = newton(with_constant(X), y, derivatives)
    table = fitted.coef_table()
    error = np.sqrt(dispersion * np.diag(inverse))
    expected = table_of(coef, error, 145, 0.95)
    np.testing.assert_allclose(table["z"], expected["z"], rtol=1e-7)
    np.testing.assert_allclose(table["p_value"], expected["p_value"], rtol=1e-7)
    # Labels: more than the truth, by one factor for all.
    scale = coef / table["estimate"]
    np.testing.assert_allclose(scale, scale[0], rtol=1e-6)
    np.testing.assert_allclose(table["standard_error"], error / scale)
    if kind == "logistic":
        assert 1 < scale[0] < 1.2
        assert ((table["lower"] > 0) == (table["z"] > stats.t.ppf(0.975, 145))).all()
    else:
        assert scale[0] == pytest.approx(1)


@pytest.mark.parametrize("kind", CURVED)
def test_with_many_rows_errors_are_those_of_large_samples(kind, rng):
    """The inverse of the information; of Huber's loss its asymptotic variance."""
    model, derivatives = CURVED[kind]
    X, y = drawn(kind, 6000, 3, rng)
    A, fitted = with_constant(X), clone(model).set_params(**QUIET).fit(X, y)
    if kind == "huber":
        derivatives = partial(derivatives, threshold=1.35 * fitted.scale_)
    coef, inverse, _ = newton(A, y, derivatives)
    if kind == "huber":
        slopes, curvature = derivatives(y, A @ coef)
        inverse = np.linalg.inv(A.T @ A) * np.mean(slopes**2) / np.mean(curvature) ** 2
    table = fitted.coef_table()
    np.testing.assert_allclose(table["estimate"], coef, rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(
        table["standard_error"], np.sqrt(np.diag(inverse)), rtol=0.03
    )


def test_the_minimum_of_hubers_loss_is_that_of_a_general_solver(rng):
    X, y = drawn("huber", 60, 3, rng)
    A = with_constant(X)
    model = TrajectoryHuberRegressor(1.0, max_iter=2, **QUIET).fit(X, y)
    threshold = 1.35 * model.scale_

    def loss(coef):
        left = y - A @ coef
        inside = np.clip(left, -threshold, threshold)
        return np.sum(inside * (left - inside / 2))

    oracle = minimize(loss, np.zeros(4), tol=1e-10).x
    table = model.coef_table()
    np.testing.assert_allclose(table["estimate"], oracle, atol=1e-4)


def test_targets_far_from_zero_and_outliers_have_a_minimum(rng):
    """No row has a curvature of Huber's loss at zero, nor at least squares."""
    X, y = drawn("huber", 60, 3, rng)

    def found(targets):
        minimum = Unpenalised.of(with_constant(X), targets[:, None], Huber(1.35))
        return minimum.debiased(np.zeros((4, 1)), np.eye(4))

    near, far = found(y), found(y + 1e4)
    np.testing.assert_allclose(far.estimate[:3], near.estimate[:3], rtol=1e-5)
    np.testing.assert_allclose(far.standard_error, near.standard_error, rtol=1e-5)
    # Outliers count by their signs alone.
    y[:3] = 1e3
    one = found(y)
    y[:3] = 1e9
    np.testing.assert_allclose(found(y).estimate, one.estimate, rtol=1e-4)


def test_counts_in_hundreds_end_at_their_minimum(rng):
    """Newton's first steps from zero are far too long there."""
    X = rng.standard_normal((80, 2))
    y = rng.poisson(np.exp(6 + X[:, 0]))
    oracle = PoissonRegressor(alpha=0, tol=1e-12, max_iter=1000).fit(X, y)
    model = TrajectoryPoissonRegressor(0.1, max_iter=30, standardize=True, **QUIET)
    table = model.fit(X, y).coef_table()
    expected = [*oracle.coef_, oracle.intercept_]
    np.testing.assert_allclose(table["estimate"], expected, rtol=1e-5, atol=1e-6)


def test_maximum_likelihood_of_many_columns_is_brought_to_scale():
    """Five rows to a column: it is more than 1.25 times the truth."""
    likelihood, estimates = [], []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 60))
        coef = np.repeat([0.25, 0.0], 30)
        y = (rng.random(300) < expit(X @ coef)).astype(int)
        found, _, _ = newton(with_constant(X), y, logistic_derivatives)
        model = TrajectoryLogisticRegression(1.0, max_iter=3, **QUIET)
        table = model.fit(X, y).coef_table(np.arange(60))
        likelihood.append(found[:30].mean() / 0.25)
        estimates.append(np.mean(table["estimate"][:30]) / 0.25)
    assert np.mean(likelihood) > 1.25
    error = np.std(estimates, ddof=1) / np.sqrt(8)
    assert np.mean(estimates) == pytest.approx(1, abs=5 * error)
    assert error < 0.1


def test_nulls_of_correlated_columns_are_rejected_as_often_as_they_should():
    """Labels, AR(.8) columns, six rows to each: .05 of the zero coefficients."""
    rejected = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(toeplitz(0.8 ** np.arange(50)))
        X = rng.standard_normal((300, 50)) @ root.T
        y = rng.random(300) < expit(X[:, 0])
        for model in (
            TrajectoryLogisticRegression(max_iter=5),
            TrajectoryLinearSVC(max_iter=5),
        ):
            table = model.set_params(**QUIET).fit(X, y).coef_table(np.arange(1, 50))
            rejected.append(np.mean(table["p_value"] < 0.05))
    rejected = np.reshape(rejected, (12, 2)).mean(axis=0)
    # Three standard errors of 588 independent ones.
    np.testing.assert_allclose(rejected, 0.05, atol=0.027)


# ------------------------------------------------ what is not determined, or refused


def test_all_levels_of_a_category_are_nan_and_named(rng):
    pandas = pytest.importorskip("pandas")
    levels = rng.integers(3, size=(90, 1))
    X = OneHotEncoder(sparse_output=False).fit_transform(levels)
    X = pandas.DataFrame(X, columns=["low", "middle", "high"])
    X["age"] = rng.standard_normal(90)
    y = X["age"] + rng.standard_normal(90)
    model = IterativeRidge(1.0, **QUIET).fit(X, y)
    named = r"\['low', 'middle', 'high'\] are constant.*Drop one"
    with pytest.warns(UserWarning, match=named):
        interval = model.coef_interval()
    np.testing.assert_array_equal(np.isnan(interval[:, 0]), [1, 1, 1, 0])
    expected = least_squares(with_constant(X.drop(columns="low")), y)
    with pytest.warns(UserWarning, match=r"'high', 'intercept'\] are constant"):
        complete = model.coef_table()
    assert complete["estimate"].isna().tolist() == [True] * 3 + [False, True]
    for found in (model.coef_table(["age"]), complete[3:4].reset_index()):
        for name in ("estimate", "standard_error"):
            assert found[name][0] == pytest.approx(expected[name][2])
    # The mean of a row that has one of the levels is determined.
    assert np.isfinite(model.predict_mean_interval(X[:3])).all()
    with pytest.warns(UserWarning, match=r"Rows \[0\] of X lie in directions"):
        assert np.isnan(model.predict_mean_interval(X[:1] * 0)).all()
    apart = model.set_params(fit_intercept=False).fit(X, y).coef_table()
    assert_same(apart, least_squares(X.to_numpy(), y))


def test_columns_that_are_nearly_alike_have_the_errors_of_least_squares(rng):
    X = rng.standard_normal((60, 3))
    X[:, 2] = X[:, 0] + 1e-3 * rng.standard_normal(60)
    y = X[:, 0] + rng.standard_normal(60)
    table = IterativeRidge(1.0, **QUIET).fit(X, y).coef_table()
    assert_same(table, least_squares(with_constant(X), y), rtol=1e-6)
    assert (table["standard_error"][[0, 2]] > 10).all()


def test_what_a_basis_does_not_determine(rng):
    X = rng.standard_normal((50, 4))
    X[:, 3] = 10 * X[:, 1] - 1e-8 * X[:, 0]
    found = Basis.of(X).determines(
        np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 0, 10]])
    )
    np.testing.assert_array_equal(found, [True, False, True])


def test_separated_classes_have_no_estimate(rng):
    X = rng.standard_normal((60, 2))
    model = TrajectoryLogisticRegression(max_iter=5, **QUIET)
    separated = model.fit(X, X[:, 0] > 0)
    with pytest.raises(ValueError, match=r"separate the classes.*'nodewise'"):
        separated.coef_table()
    rare = np.c_[X, np.arange(60) < 3]
    y = (rng.random(60) < 0.5) | (np.arange(60) < 3)
    with pytest.raises(ValueError, match="no unique minimum"):
        model.fit(rare, y).coef_table()


def test_rows_must_be_more_than_columns(rng):
    X, y = rng.standard_normal((10, 10)), rng.standard_normal(10)
    model = IterativeRidge(1.0, max_iter=3, **QUIET).fit(X, y)
    with pytest.raises(ValueError, match="more rows than columns"):
        model.coef_table(covariance="sample")


@pytest.mark.parametrize(("n_rows", "by"), [(11, "sample"), (10, "nodewise")])
def test_by_default_more_than_two_rows_to_a_column_take_the_sample(n_rows, by, rng):
    X = np.linalg.qr(rng.standard_normal((n_rows, 5)))[0]
    X -= X.mean(axis=0)
    model = TrajectoryLasso(0.01, max_iter=5, **QUIET)
    model.set_params(fit_intercept=False).fit(X, rng.standard_normal(n_rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        default = model.coef_interval([0])
        np.testing.assert_array_equal(default, model.coef_interval([0], covariance=by))
        others = {"sample", "nodewise"} - {by}
        for other in others:
            found = model.coef_interval([0], covariance=other)
            assert not np.allclose(default, found, rtol=1e-3)


def test_the_nodewise_lasso_says_where_it_is_wrong(rng):
    root = np.linalg.cholesky(toeplitz(0.8 ** np.arange(50)))
    X = rng.standard_normal((90, 50)) @ root.T
    model = TrajectoryLasso(0.1, max_iter=5, **QUIET).fit(X, X[:, 0])
    with pytest.warns(UserWarning, match="too short.*covariance='sample'"):
        model.coef_interval([4])
    root = np.linalg.cholesky(toeplitz(0.9 ** np.arange(50)))
    with pytest.warns(UserWarning, match=r"rows \[0, 1\] .*too short"):
        model.fit(X @ root.T, X[:, 0]).predict_mean_interval(X[:2])
    plain = rng.standard_normal((400, 250))
    model.fit(plain, plain[:, 0] + rng.standard_normal(400)).coef_interval([4])


# ------------------------------------------------------- fits that are asked for it


def test_a_table_does_not_change_what_is_chosen():
    X, y = load_diabetes(return_X_y=True)
    lasso = TrajectoryLasso("path", max_iter=10, standardize=True, random_state=0)
    chosen = TrajectoryEarlyStoppingCV(lasso).fit(X, y)
    lasso.set_params(keep_data=True)
    kept = TrajectoryEarlyStoppingCV(lasso).fit(X, y)
    assert kept.best_iter_ == chosen.best_iter_
    assert kept.best_score_ == pytest.approx(chosen.best_score_, rel=1e-12)
    before = kept.best_iter_, kept.best_score_, *kept.coef_
    expected = least_squares(with_constant(X), y)
    assert_same(kept.coef_table(), expected, rtol=1e-6)
    assert (kept.best_iter_, kept.best_score_, *kept.coef_) == before
    assert not hasattr(kept.estimator_, "risk_path_")


@pytest.mark.parametrize("covariance", ["nodewise", "known"])
def test_the_memory_matrix_is_computed_where_it_is_asked_for(covariance, rng):
    X = rng.standard_normal((60, 40))
    y = X[:, 0] + rng.standard_normal(60)
    given = np.eye(40) if covariance == "known" else covariance
    model = TrajectoryLasso(0.1, max_iter=9, **QUIET)
    found = model.fit(X, y).coef_table([0, 3], covariance=given)
    assert not hasattr(model, "risk_path_")
    expected = (
        model.set_params(risk=True).fit(X, y).coef_table([0, 3], covariance=given)
    )
    assert_same(found, expected)
    exact = model.set_params(risk="exact").fit(X, y)
    earlier = exact.coef_table([0, 3], covariance=given, iteration=6)
    exact.record_ = replace(exact.record_, estimates={})
    found = exact.coef_table([0, 3], covariance=given, iteration=6)
    assert_same(found, earlier)


def test_the_intercept_by_a_known_covariance(correlated):
    X, y = correlated
    model = TrajectoryLasso(0.1, max_iter=9, **QUIET).fit(X, y)
    covariance = toeplitz(0.9 ** np.arange(5))
    table = model.coef_table(covariance=covariance)
    assert list(table["column"])[-1] == "intercept"
    expected = model.predict_mean_interval(np.zeros((1, 5)), covariance=covariance)
    np.testing.assert_allclose([table["lower"][5], table["upper"][5]], expected[0])
    model.set_params(fit_intercept=False).fit(X, y)
    with pytest.raises(ValueError, match=r"no columns \['intercept'\]"):
        model.coef_table(["intercept"])
    labels = TrajectoryLogisticRegression(max_iter=5, **QUIET).fit(X, y > y.mean())
    with pytest.raises(ValueError, match="covariance='sample'"):
        labels.coef_table(["intercept"], covariance=covariance)


def test_the_nodewise_lasso_leaves_the_intercept_out(rng):
    X = 2 + rng.standard_normal((60, 40))
    model = TrajectoryLasso(0.1, max_iter=9, **QUIET).fit(X, X[:, 0])
    assert list(model.coef_table()["column"]) == list(range(40))


def test_rows_without_targets_must_be_many(rng):
    X = rng.standard_normal((50, 40))
    model = TrajectoryLasso(0.1, max_iter=9, **QUIET).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"more than 60 rows, 1\.5 per feature"):
        model.coef_interval([0], X_unlabelled=rng.standard_normal((10, 40)))
    found = model.coef_interval([0], X_unlabelled=rng.standard_normal((11, 40)))
    assert found.shape == (1, 2)


SYNONYMS = [("alpha", 0.1, "one minus alpha"), ("confidence_level", 0.9, "the same")]


@pytest.mark.parametrize(("name", "value", "words"), SYNONYMS)
def test_other_words_for_coverage_are_answered(name, value, words, correlated):
    X, y = correlated
    model = TrajectoryLasso(0.1, max_iter=5, **QUIET).fit(X, y)
    stopped = TrajectoryEarlyStoppingCV(model, criterion="cv").fit(X, y)
    staged = TrajectoryEarlyStoppingCV(HistGradientBoostingRegressor(max_iter=3))
    staged.fit(X, y)
    blend = TrajectoryEarlyStoppingCV(
        [("lasso", model), ("ridge", IterativeRidge())], rule="blend", cv=2
    ).fit(X, y)
    asked = [
        *(each.coef_interval for each in (model, stopped)),
        *(each.coef_table for each in (model, stopped)),
        *((each.predict_mean_interval, X) for each in (model, stopped)),
        *((each.predict_interval, X) for each in (model, stopped, staged, blend)),
        (CoefficientIntervalDisplay.from_estimator, model),
    ]
    for each in asked:
        method, *arguments = each if isinstance(each, tuple) else (each,)
        with pytest.raises(
            TypeError, match=f"no parameter {name}: use coverage=, {words}"
        ):
            method(*arguments, **{name: value})


def test_the_line_along_the_run_is_flat(correlated):
    """Every iterate ends at least squares."""
    pytest.importorskip("matplotlib")
    X, y = correlated
    model = TrajectoryLasso(0.1, max_iter=9, **QUIET).fit(X, y)
    display = CoefficientIntervalDisplay.from_estimator(model, [0, 4])
    coef = LinearRegression().fit(X, y).coef_[[0, 4]]
    np.testing.assert_allclose(
        display.estimate, np.tile(coef, (len(display.estimate), 1))
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["regression", "labels"])
def test_intervals_cover_on_correlated_columns(kind):
    """Equicorrelated .9 columns, 400 draws, column by column: four standard errors."""
    coef = np.append(np.arange(8) % 2 / 2.0, 0.0)
    root = np.linalg.cholesky(np.full((8, 8), 0.9) + 0.1 * np.eye(8))
    covers, rng = [], np.random.default_rng(0)
    for _ in range(400):
        X = rng.standard_normal((300, 8)) @ root.T
        signal = X @ coef[:8]
        if kind == "labels":
            model, y = TrajectoryLogisticRegression(), rng.random(300) < expit(signal)
        else:
            model, y = TrajectoryLasso(0.1), signal + rng.standard_normal(300)
        table = model.set_params(max_iter=3, **QUIET).fit(X, y).coef_table()
        covers.append((table["lower"] <= coef) & (coef <= table["upper"]))
    np.testing.assert_allclose(np.mean(covers, axis=0), 0.95, atol=4 * 0.011)
    nulls = np.mean(covers, axis=0)[coef == 0]
    assert (nulls > 0.92).all()
