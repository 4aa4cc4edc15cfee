"""Offsets: known parts of the linear predictors."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    TrajectoryGammaRegressor,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
    approximate_loo,
)
from tests.linear_model.offset_cases import GLUM, drawn

REGRESSORS = {
    "poisson": TrajectoryPoissonRegressor,
    "gamma": TrajectoryGammaRegressor,
    "tweedie": TrajectoryTweedieRegressor,
}
PATHS = "coef_path_", "train_path_", "loo_path_", "cv_path_", "loo_se_path_"
# Models whose loss depends on the residual.
OF_RESIDUALS = {
    "ridge": IterativeRidge(0.0),
    "lasso": TrajectoryLasso(0.1),
    "huber": TrajectoryHuberRegressor(0.01),
    "quantile": TrajectoryQuantileRegressor(),
    "kernel": KernelEigenProRegressor(gamma=0.3),
}


def recording(model, **params):
    """A model that records all that is held out."""
    settings = {"cv": 4, "loo": True, "max_iter": 30, "random_state": 0, **params}
    settings.setdefault("keep_data", True)
    names = settings.keys() & model.get_params().keys()
    return clone(model).set_params(**{name: settings[name] for name in names})


def per_unit(kind, y, offset):
    """Targets per unit of exposure, and the weights that rows then have."""
    power = {"poisson": 1.0, "gamma": 2.0, "tweedie": 1.5}[kind]
    return y / np.exp(offset), np.exp((2 - power) * offset)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_an_offset_is_a_target_and_a_weight(kind):
    X, y, offset = drawn(kind)
    model = recording(REGRESSORS[kind](0.01))
    with_offset = clone(model).fit(X, y, offset=offset)
    rates, weights = per_unit(kind, y, offset)
    of_rates = clone(model).fit(X, rates, sample_weight=weights)
    for name in PATHS:
        found, expected = getattr(with_offset, name), getattr(of_rates, name)
        np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("kind", REGRESSORS)
def test_held_out_predictions_are_on_the_scale_of_y(kind):
    X, y, offset = drawn(kind)
    model = recording(REGRESSORS[kind](0.01))
    with_offset = clone(model).fit(X, y, offset=offset)
    rates, weights = per_unit(kind, y, offset)
    of_rates = clone(model).fit(X, rates, sample_weight=weights)
    for name in ("loo", "cv"):
        rows = np.hstack(getattr(with_offset, f"{name}_indices_"))
        np.testing.assert_array_equal(getattr(with_offset, f"{name}_target_"), y[rows])
        path = f"{name}_prediction_path_"
        np.testing.assert_allclose(
            getattr(with_offset, path),
            np.asarray(getattr(of_rates, path)) * np.exp(offset[rows]),
            rtol=1e-12,
        )


@pytest.mark.parametrize("kind", REGRESSORS)
def test_minima_are_those_of_glum(kind):
    X, y, offset = drawn(kind)
    model = REGRESSORS[kind](0.0, solver="newton", max_iter=50, tol=0.0, loo=False)
    model.fit(X, y, offset=offset)
    found = [model.intercept_, *model.coef_]
    np.testing.assert_allclose(found, GLUM[kind], rtol=0, atol=1e-6)


def test_short_exposures_do_not_shorten_steps(rng):
    """One claim in a day is a rate of hundreds, of next to no weight."""
    exposure = np.maximum(rng.beta(0.5, 0.5, 4000), 1 / 365)
    X = rng.standard_normal((4000, 10))
    y = rng.poisson(exposure * np.exp(0.4 * X[:, 0] - 0.3 * X[:, 1] - 1.5))
    y[exposure.argmin()] = 1
    gains = []
    for solver, max_iter in [("newton", 20), ("nesterov", 30), ("gd", 100)]:
        model = TrajectoryPoissonRegressor(
            0.0, solver=solver, max_iter=max_iter, loo=False, risk=False
        )
        path = model.fit(X, y, offset=np.log(exposure)).train_path_
        gains.append(path[0] - path[-1])
    best, *others = gains
    assert min(others) > 0.99 * best


def descend(X, y, offset, start, step, n_updates):
    """Gradient descent on half the gamma deviance with the offset inside."""
    columns, coef = np.column_stack([X, np.ones(len(X))]), np.zeros(X.shape[1] + 1)
    coef[-1] = start
    path = [coef]
    for _ in range(n_updates):
        slope = 1 - y * np.exp(-(columns @ coef + offset))
        coef = coef - step * columns.T @ slope / len(y)
        path.append(coef)
    return np.array(path)


def test_a_gamma_path_is_that_of_descent_by_hand():
    X, y, offset = drawn("gamma", 60)
    model = recording(TrajectoryGammaRegressor(0.0, solver="gd"), loo_correction=True)
    model.fit(X, y, offset=offset)
    arguments = model.intercept_path_[0], model.step_size_, model.n_iter_
    path = descend(X, y, offset, *arguments)
    np.testing.assert_allclose(model.coef_path_, path[:, :-1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(model.intercept_path_, path[:, -1], rtol=0, atol=1e-10)
    # And leave-one-out is that of refits, whose losses are of y at means of y.
    losses = []
    for row in range(len(y)):
        rest = np.arange(len(y)) != row
        of_rest = descend(X[rest], y[rest], offset[rest], *arguments)
        predictor = of_rest[:, :-1] @ X[row] + of_rest[:, -1] + offset[row]
        ratio = y[row] * np.exp(-predictor)
        losses.append(ratio - np.log(ratio) - 1)
    expected = np.mean(losses, axis=0)
    np.testing.assert_allclose(model.loo_path_, expected, rtol=2e-3)


@pytest.mark.parametrize("name", OF_RESIDUALS)
def test_an_offset_is_subtracted_from_y(name):
    X, _, offset = drawn("poisson", 80)
    y = X @ [1.0, -2.0, 0.5] + offset + np.sin(np.arange(80) ** 2)
    model = recording(OF_RESIDUALS[name])
    found = clone(model).fit(X, y, offset=offset)
    expected = clone(model).fit(X, y - offset)
    np.testing.assert_array_equal(found.loo_path_, expected.loo_path_)
    np.testing.assert_array_equal(found.cv_path_, expected.cv_path_)
    for estimate in {"loo", "cv", "risk"} & set(found.record_.estimates):
        rows = np.hstack(getattr(found, f"{estimate}_indices_"))
        path = f"{estimate}_prediction_path_"
        np.testing.assert_allclose(
            getattr(found, path),
            np.asarray(getattr(expected, path)) + offset[rows],
            rtol=0,
            atol=1e-9,
        )
    np.testing.assert_allclose(
        found.predict(X, offset=offset), expected.predict(X) + offset, atol=1e-12
    )
    for method in ("auto", "loo", "cv", "scaled"):
        np.testing.assert_allclose(
            found.predict_interval(X[:5], method=method, offset=offset[:5]),
            expected.predict_interval(X[:5], method=method) + offset[:5, None],
            atol=1e-9,
        )


def test_several_targets_have_the_same_offset(rng):
    X, offset = rng.standard_normal((40, 3)), rng.standard_normal(40)
    y = rng.standard_normal((40, 2))
    found = IterativeRidge(cv=4).fit(X, y, offset=offset)
    expected = IterativeRidge(cv=4).fit(X, y - offset[:, None])
    np.testing.assert_array_equal(found.coef_, expected.coef_)
    prediction = found.predict(X, offset=offset)
    np.testing.assert_allclose(prediction, expected.predict(X) + offset[:, None])
    np.testing.assert_array_equal(found.loo_target_, y[found.loo_indices_])


def test_rows_of_little_exposure_have_wide_intervals_per_unit():
    X, y, offset = drawn("poisson")
    model = recording(TrajectoryPoissonRegressor(0.01)).fit(X, y, offset=offset)
    alike, exposure = np.repeat(X[:1], 2, axis=0), np.array([1.0, 4.0])
    for method in ("jackknife+", "loo", "cv"):
        ends = model.predict_interval(
            alike, 0.5, method=method, offset=np.log(exposure)
        )
        mean = model.predict(alike, offset=np.log(exposure))
        # The spread of counts is the root of their mean.
        widths = (ends[:, 1] - mean) / np.sqrt(mean)
        np.testing.assert_allclose(widths[0], widths[1], rtol=0.1)
        per_unit = (ends[:, 1] - mean) / exposure
        assert per_unit[0] > 1.8 * per_unit[1]


def test_intervals_cover_counts_of_any_exposure(rng):
    X = rng.standard_normal((1000, 3))
    offset = np.log(rng.choice([2.0, 40.0], 1000))
    y = rng.poisson(np.exp(X @ [0.3, 0.2, 0.0] + 0.5 + offset))
    model = recording(TrajectoryPoissonRegressor(0.01), loo=False)
    model.fit(X[:600], y[:600], offset=offset[:600])
    lower, upper = model.predict_interval(X[600:], 0.8, offset=offset[600:]).T
    covered = (lower <= y[600:]) & (y[600:] <= upper)
    for exposure in (2.0, 40.0):
        assert 0.72 < covered[np.exp(offset[600:]) == exposure].mean() < 0.9


def test_predictions_and_scores_of_new_rows():
    X, y, offset = drawn("poisson")
    model = recording(TrajectoryPoissonRegressor(0.01)).fit(X, y, offset=offset)
    rates, weights = per_unit("poisson", y, offset)
    of_rates = recording(TrajectoryPoissonRegressor(0.01))
    of_rates.fit(X, rates, sample_weight=weights)
    exposure = np.exp(offset)
    np.testing.assert_allclose(
        model.predict(X, offset=offset), of_rates.predict(X) * exposure
    )
    np.testing.assert_array_equal(model.predict(X, offset=0), of_rates.predict(X))
    staged = list(model.staged_predict(X, offset=offset))
    np.testing.assert_allclose(staged[-1], model.predict(X, offset=offset))
    assert len(staged) == model.n_iter_ + 1
    np.testing.assert_allclose(
        model.staged_loss(X, y, offset=offset), model.train_path_, rtol=1e-12
    )
    score = of_rates.score(X, rates, sample_weight=weights)
    np.testing.assert_allclose(model.score(X, y, offset=offset), score)


def test_a_pickle_and_a_dropped_record_know_of_it():
    X, y, offset = drawn("poisson")
    model = recording(TrajectoryPoissonRegressor(0.01)).fit(X, y, offset=offset)
    ends = model.predict_interval(X[:5], method="loo", offset=offset[:5])
    small = pickle.loads(pickle.dumps(model.drop_record()))
    assert len(pickle.dumps(small)) < len(pickle.dumps(model)) / 2
    for copied in (small, pickle.loads(pickle.dumps(model))):
        found = copied.predict_interval(X[:5], method="loo", offset=offset[:5])
        np.testing.assert_allclose(found, ends)
        with pytest.raises(ValueError, match="fitted with an offset"):
            copied.predict(X)


def test_rows_of_weight_zero_need_no_exposure():
    X, y, offset = drawn("poisson")
    weights = np.ones(len(y))
    weights[:10], offset[:5] = 0, -np.inf
    model = recording(TrajectoryPoissonRegressor(0.01))
    found = clone(model).fit(X, y, sample_weight=weights, offset=offset)
    expected = clone(model).fit(X[10:], y[10:], offset=offset[10:])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
    np.testing.assert_allclose(found.loo_path_, expected.loo_path_, rtol=1e-10)
    np.testing.assert_array_equal(found.loo_target_, expected.loo_target_)
    np.testing.assert_allclose(
        found.loo_prediction_path_, expected.loo_prediction_path_, rtol=1e-9
    )


@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series, lambda o: o[:, None]])
def test_containers_of_offsets(kind):
    X, y, offset = drawn("poisson")
    model = TrajectoryPoissonRegressor(0.01, loo=False).fit(X, y, offset=kind(offset))
    expected = TrajectoryPoissonRegressor(0.01, loo=False).fit(X, y, offset=offset)
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(
        model.predict(sparse.csr_array(X), offset=kind(offset)),
        expected.predict(sparse.csr_array(X), offset=offset),
    )


def test_a_number_is_the_offset_of_every_row():
    X, y, _ = drawn("poisson")
    model = TrajectoryPoissonRegressor(0.01, loo=False)
    found = clone(model).fit(X, y, offset=0.7)
    expected = clone(model).fit(X, y, offset=np.full(len(y), 0.7))
    np.testing.assert_array_equal(found.coef_, expected.coef_)


def test_single_precision_stays():
    X, y, offset = drawn("poisson")
    model = TrajectoryPoissonRegressor(0.01, cv=4)
    model.fit(X.astype(np.float32), y, offset=offset)
    assert model.predict(X.astype(np.float32), offset=offset).dtype == np.float32
    assert model.cv_prediction_path_[0].dtype == np.float32


def test_a_warm_start_goes_on_with_the_same_offset():
    X, y, offset = drawn("poisson")
    model = TrajectoryPoissonRegressor(
        0.01, max_iter=10, tol=0.0, warm_start=True, loo=False
    )
    model.fit(X, y, offset=offset).set_params(max_iter=20).fit(X, y, offset=offset)
    whole = TrajectoryPoissonRegressor(0.01, max_iter=20, tol=0.0, loo=False)
    whole.fit(X, y, offset=offset)
    np.testing.assert_allclose(model.coef_path_, whole.coef_path_, atol=1e-12)
    with pytest.warns(UserWarning, match="other data than before"):
        model.fit(X, y)


MODEL = TrajectoryPoissonRegressor(max_iter=5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda offset: offset[:-1], "offset has 299 numbers, but there are 300 rows"),
        (lambda offset: np.stack([offset] * 2, axis=1), "one number for each row"),
        (lambda offset: np.where(offset == offset[3], np.nan, offset), "contains NaN"),
        (lambda offset: np.where(offset == offset[3], np.inf, offset), "infinity"),
        (
            lambda offset: np.where(offset == offset[3], -np.inf, offset),
            "offset is -inf in row 3, the logarithm of an exposure of zero",
        ),
        (lambda offset: "offset", "got the string"),
        (lambda offset: offset.astype(str), "must be numbers"),
        (lambda offset: 1000 * offset, "the logarithm of the exposure"),
    ],
)
def test_offsets_that_are_none(change, message):
    X, y, offset = drawn("poisson")
    model = clone(MODEL)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, offset=change(offset))
    assert "record_" not in vars(model)


def test_new_rows_need_an_offset_if_those_of_fit_had_one():
    X, y, offset = drawn("poisson")
    with_offset = clone(MODEL).set_params(cv=3).fit(X, y, offset=offset)
    without = clone(MODEL).set_params(cv=3).fit(X, y)
    calls = {
        "predict": lambda model, **params: model.predict(X, **params),
        "staged_predict": lambda model, **params: list(
            model.staged_predict(X, **params)
        ),
        "predict_interval": lambda model, **params: model.predict_interval(X, **params),
        "score": lambda model, **params: model.score(X, y, **params),
        "staged_loss": lambda model, **params: model.staged_loss(X, y, **params),
    }
    for method, call in calls.items():
        needs = f"fitted with an offset: pass {method} the offset= of these rows"
        with pytest.raises(ValueError, match=needs):
            call(with_offset)
        with pytest.raises(ValueError, match=f"without an offset, so {method} takes"):
            call(without, offset=offset)
    with pytest.raises(ValueError, match="299 numbers, but there are 300 rows"):
        with_offset.predict(X, offset=offset[:-1])
    ridge = IterativeRidge(0.0, keep_data=True).fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="pass predict_mean_interval the offset="):
        ridge.predict_mean_interval(X[:3])
    shifted = ridge.predict_mean_interval(X[:3], offset=1.0)
    at_zero = ridge.predict_mean_interval(X[:3], offset=0.0)
    np.testing.assert_allclose(shifted, at_zero + 1.0)


@pytest.mark.parametrize(
    "model",
    [
        TrajectoryRegressor(0.1, loss="negative_binomial"),
        TrajectoryLogisticRegression(),
    ],
)
def test_losses_without_a_form_for_offsets(model):
    X, y, offset = drawn("poisson")
    with pytest.raises(ValueError, match="offset is not available for the "):
        model.fit(X, np.minimum(y, 1), offset=offset)


def test_what_needs_rows_takes_no_offset():
    X, y, offset = drawn("poisson")
    summary = RowSummary().partial_fit(X, y)
    with pytest.raises(ValueError, match="not available with a RowSummary"):
        IterativeRidge().fit(summary, offset=offset)
    model = clone(MODEL).fit(X, y, offset=offset)
    with pytest.raises(ValueError, match="fitted with an offset"):
        approximate_loo(model, X, y)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def requesting(model):
    return (
        model.set_fit_request(offset=True)
        .set_predict_request(offset=True)
        .set_score_request(offset=True)
    )


@pytest.mark.usefixtures("routing")
def test_pipelines_route_offsets():
    X, y, offset = drawn("poisson")
    model = requesting(TrajectoryPoissonRegressor(0.01, loo=False))
    steps = make_pipeline(StandardScaler(), model).fit(X, y, offset=offset)
    scaled = StandardScaler().fit_transform(X)
    expected = TrajectoryPoissonRegressor(0.01, loo=False)
    expected.fit(scaled, y, offset=offset)
    np.testing.assert_array_equal(
        steps.predict(X, offset=offset), expected.predict(scaled, offset=offset)
    )
    assert steps.score(X, y, offset=offset) == expected.score(scaled, y, offset=offset)


@pytest.mark.skipif(
    parse_version(sklearn.__version__) < parse_version("1.8"),
    reason="scikit-learn's searches route nothing to the score of a pipeline's steps",
)
@pytest.mark.usefixtures("routing")
def test_grid_search_routes_offsets_to_steps():
    X, y, offset = drawn("poisson")
    steps = make_pipeline(
        StandardScaler(), requesting(TrajectoryPoissonRegressor(loo=False))
    )
    grid = {"trajectorypoissonregressor__alpha": [10.0, 0.01]}
    search = GridSearchCV(steps, grid, cv=3).fit(X, y, offset=offset)
    assert search.best_index_ == 1
    scores = cross_val_score(
        search.best_estimator_, X, y, cv=3, params={"offset": offset}
    )
    assert search.best_score_ == pytest.approx(scores.mean())
    # scikit-learn's searches pass nothing on to predict.
    best = search.best_estimator_
    assert best.predict(X, offset=offset).shape == y.shape


@pytest.mark.usefixtures("routing")
def test_grid_search_routes_offsets():
    X, y, offset = drawn("poisson")
    model = requesting(TrajectoryPoissonRegressor(loo=False))
    search = GridSearchCV(model, {"alpha": [10.0, 0.01]}, cv=3)
    search.fit(X, y, offset=offset)
    assert search.best_index_ == 1
    scores = cross_val_score(
        search.best_estimator_, X, y, cv=3, params={"offset": offset}
    )
    assert search.best_score_ == pytest.approx(scores.mean())
