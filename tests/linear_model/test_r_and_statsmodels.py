"""Linear models without an l1 penalty against those of R and of statsmodels.

Generalised linear models of stats::glm, MASS::glm.nb and statsmodels, robust and ridge
regression of MASS, quantile regression of quantreg.
"""

import numpy as np
import pytest
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    TrajectoryGammaRegressor,
    TrajectoryHuberRegressor,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from skacv.optim.losses import NegativeBinomial
from tests.r import read_results, read_rows
from tests.statsmodels import FOLDER

ROWS = read_rows("glm")
X = np.column_stack([ROWS[f"x{column}"] for column in range(1, 5)])
R, STATSMODELS = read_results("glm"), read_results("glm", FOLDER)
(THETA,) = R["glm.nb theta"]  # the variance is m + m^2 / theta

QUIET = {"loo": False, "risk": False}
NEWTON = {"solver": "newton", "max_iter": 50, "tol": 1e-14, **QUIET}
LONG = {"max_iter": 20_000, "tol": 1e-13, **QUIET}
MODELS = {
    "gaussian": IterativeRidge(0.0, solver="newton", max_iter=1, **QUIET),
    "binomial": TrajectoryLogisticRegression(C=np.inf, **NEWTON),
    "poisson": TrajectoryPoissonRegressor(0.0, **NEWTON),
    "claims": TrajectoryPoissonRegressor(0.0, **NEWTON),
    "gamma": TrajectoryGammaRegressor(0.0, **NEWTON),
    "tweedie 1.5": TrajectoryTweedieRegressor(0.0, power=1.5, **NEWTON),
    "negative_binomial": TrajectoryRegressor(0.0, penalty=None, **LONG),
}
TARGETS = {family: family for family in MODELS} | {"tweedie 1.5": "gamma"}
SOURCES = {"r": R, "statsmodels": STATSMODELS}
NEGATIVE_BINOMIAL = {
    "r": NegativeBinomial(1 / THETA),
    "statsmodels": NegativeBinomial(0.5),
}


def weights_of(kind):
    return ROWS["weight"] if kind == "weighted" else np.ones(len(X))


def with_intercept_first(model):
    return np.append(model.intercept_, model.coef_)


def fitted(family, kind="plain", **params):
    model = clone(MODELS[family]).set_params(**params)
    offset = {"offset": np.log(ROWS["exposure"])} if family == "claims" else {}
    y = ROWS[TARGETS[family]]
    return model.fit(X, y, sample_weight=weights_of(kind), **offset)


@pytest.mark.parametrize("kind", ["plain", "weighted"])
@pytest.mark.parametrize(
    ("source", "family"),
    [
        *(("r", family) for family in MODELS if family != "tweedie 1.5"),
        *(("statsmodels", family) for family in MODELS if family != "gaussian"),
    ],
)
def test_coefficients_and_deviances_of_generalised_linear_models(source, family, kind):
    name, found, weights = f"{family} {kind}", SOURCES[source], weights_of(kind)
    is_loss = family == "negative_binomial"
    params = {"loss": NEGATIVE_BINOMIAL[source]} if is_loss else {}
    model = fitted(family, kind, **params)
    coef = with_intercept_first(model)
    np.testing.assert_allclose(coef, found[f"{name} coef"], atol=1e-6)
    # Half the deviance is reported, but for squares; with exposures, of a unit of them.
    loss = model.train_path_[-1] * (1 if family == "gaussian" else 2)
    if family == "claims":
        loss *= weights @ ROWS["exposure"] / weights.sum()
    np.testing.assert_allclose(loss, found[f"{name} deviance"], rtol=1e-6)


def test_counts_of_a_theta_that_was_estimated():
    model = fitted("negative_binomial", loss=NEGATIVE_BINOMIAL["r"])
    coef = with_intercept_first(model)
    np.testing.assert_allclose(coef, R["glm.nb coef"], atol=1e-6)


@pytest.mark.parametrize(
    ("source", "family"),
    [
        *(("r", family) for family in ("gaussian", "binomial", "poisson")),
        *(("statsmodels", family) for family in ("binomial", "poisson")),
        *(("statsmodels", family) for family in ("gamma", "tweedie 1.5")),
    ],
)
def test_standard_errors_differ_by_the_dispersion_alone(source, family):
    """R and statsmodels have a dispersion of one for classes and counts.

    Those of statsmodels are by second derivatives at the rows, as here. For amounts
    under a log link summary(glm) of R has expected ones, which are others.
    """
    found = SOURCES[source]
    table = fitted(family, keep_data=True).coef_table()
    name = f"{family} plain"
    error = found[f"{name} standard_error"]
    if source == "r":
        error = error / np.sqrt(found[f"{name} dispersion of R"])
    error = np.roll(error * np.sqrt(found[f"{name} dispersion"]), -1)
    z = np.roll(found[f"{name} coef"], -1) / error
    np.testing.assert_allclose(table["z"], z, rtol=1e-6)
    if family == "binomial":
        # Estimates of classes are brought to the scale of the truth, by one factor.
        scale = error / np.asarray(table["standard_error"])
        np.testing.assert_allclose(scale, scale[0], rtol=1e-6)
        assert 1 < scale[0] < 1.2
    else:
        np.testing.assert_allclose(table["standard_error"], error, rtol=1e-6)


def test_tests_and_intervals_of_least_squares():
    model = fitted("gaussian", keep_data=True)
    table = model.coef_table(coverage=0.9)
    for name in ("p_value", "lower", "upper"):
        expected = np.roll(R[f"lm {name}"], -1)
        np.testing.assert_allclose(table[name], expected, rtol=1e-8, err_msg=name)
    new = np.array([[0, 1, 0, 0.5], [2, -3, 1, 3]])
    found = model.predict_mean_interval(new, 0.9)
    np.testing.assert_allclose(found.ravel(), R["lm means"], rtol=1e-8)


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma"])
def test_leave_one_out_is_that_of_fits_without_each_row(family):
    model = fitted(family, loo=True)
    np.testing.assert_allclose(model.loo_path_[-1], R[f"{family} left out"], rtol=1e-6)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        *(
            ("r", f"{k} {kind}")
            for k in ("1.345", "2")
            for kind in ("plain", "weighted")
        ),
        ("statsmodels", "1.345 plain"),
    ],
)
def test_robust_regression_at_the_scale_that_was_found(source, name):
    (epsilon, kind), found = name.split(), SOURCES[source]
    model = TrajectoryHuberRegressor(0.0, epsilon=float(epsilon), **LONG)
    model.set_params(scale=found[f"rlm {name} scale"][0])
    model.fit(X, ROWS["heavy"], sample_weight=weights_of(kind))
    expected = found[f"rlm {name} coef"]
    np.testing.assert_allclose(with_intercept_first(model), expected, atol=1e-6)


@pytest.mark.parametrize("strength", ["0.1", "5", "200"])
def test_ridge_regression_of_standardised_columns(strength):
    model = clone(MODELS["gaussian"]).set_params(
        alpha=float(strength), standardize=True
    )
    coef = with_intercept_first(model.fit(X, ROWS["gaussian"]))
    np.testing.assert_allclose(coef, R[f"lm.ridge {strength} coef"], atol=1e-10)


@pytest.mark.parametrize("kind", ["plain", "weighted"])
@pytest.mark.parametrize("level", ["0.2", "0.5", "0.9"])
def test_quantile_regression_has_the_least_pinball_loss(level, kind):
    """Up to what the rounded corner adds to a loss, a quarter of its length."""
    smoothing = 0.01
    model = TrajectoryQuantileRegressor(0.0, quantile=float(level), **LONG)
    model.set_params(smoothing=smoothing, max_iter=5000)
    model.fit(X, ROWS["heavy"], sample_weight=weights_of(kind))
    excess = model.train_path_[-1] - R[f"rq {level} {kind} loss"][0]
    assert -1e-12 < excess < smoothing / 4
