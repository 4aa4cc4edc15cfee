"""Intervals of all iterates, from refits without groups of rows."""

import numpy as np
import pytest
from scipy.stats import norm, t
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    TrajectoryCoxRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.risk.inference.jackknife import JackknifedPath

RUN = {"max_iter": 12, "tol": 0, "keep_data": True}
N_ROWS, GROUPS = 60, np.arange(60) % 7
MODELS = {
    "ridge": IterativeRidge(0.1, step_size=0.2, **RUN),
    "Nesterov, columns scaled": IterativeRidge(
        0.1, solver="nesterov", standardize=True, step_size=0.2, **RUN
    ),
    "no intercept": IterativeRidge(0.1, fit_intercept=False, step_size=0.2, **RUN),
    "Huber": TrajectoryHuberRegressor(0.1, scale=1.0, step_size=0.2, **RUN),
    "logistic": TrajectoryLogisticRegression(2.0, l1_ratio=0, step_size=0.5, **RUN),
    "Poisson": TrajectoryPoissonRegressor(0.1, step_size=0.1, **RUN),
    "Cox": TrajectoryCoxRegressor(0.1, step_size=0.3, **RUN),
}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N_ROWS, 4)) * [1, 2, 0.5, 1]
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(N_ROWS)


def targets_of(model, y):
    if isinstance(model, TrajectoryLogisticRegression):
        return (y > 0).astype(int)
    if isinstance(model, TrajectoryCoxRegressor):
        times = [(value > -1, abs(value) + 0.1) for value in y]
        return np.array(times, dtype=[("event", bool), ("time", float)])
    return np.floor(np.abs(y)) if isinstance(model, TrajectoryPoissonRegressor) else y


def coefficients(model):
    """Coefficients and intercepts of all iterates, (n_iterates, n_features + 1)."""
    coef = model.coef_path_.reshape(len(model.coef_path_), -1)
    if isinstance(model, TrajectoryCoxRegressor):  # the hazard takes its place
        return coef
    intercept = np.broadcast_to(model.intercept_path_.reshape(-1, 1), (len(coef), 1))
    return np.hstack([coef, intercept])


def assert_has_errors(ends, model, without):
    """Ends are those of the jackknife of refits, (n_groups, n_iterates, n_coefs)."""
    n_groups, degrees = len(without), len(without) - 1
    deviations = without - without.mean(axis=0)
    error = np.sqrt(degrees / n_groups * (deviations**2).sum(axis=0))
    half = t(degrees).ppf(0.95) * error
    coef = coefficients(model)[:, : ends.shape[1]]
    half = half[:, : ends.shape[1]]
    expected = np.stack([coef - half, coef + half], axis=-1)
    np.testing.assert_allclose(ends, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_errors_are_those_of_refits_without_groups(name, is_weighted, data, rng):
    X, y = data
    model = clone(MODELS[name])
    y = targets_of(model, y)
    weights = rng.uniform(0.5, 2, N_ROWS) if is_weighted else np.ones(N_ROWS)
    model.fit(X, y, sample_weight=weights)
    refits = []
    for group in range(7):
        kept = GROUPS != group
        refit = clone(model).fit(X[kept], y[kept], sample_weight=weights[kept])
        refits.append(coefficients(refit))
    how = {"coverage": 0.9, "groups": GROUPS, "simultaneous": False}
    ends = [model.coef_path_interval(**how)]
    if getattr(model, "fit_intercept", False):
        ends.append(model.coef_path_interval(["intercept"], **how))
    assert_has_errors(np.concatenate(ends, axis=1), model, np.stack(refits))


def test_rows_are_left_out_one_by_one_where_they_are_few(data):
    X, y = data
    model = IterativeRidge(0.1, step_size=0.2, **RUN).fit(X, y)
    refits = [
        coefficients(clone(model).fit(np.delete(X, row, 0), np.delete(y, row)))
        for row in range(N_ROWS)
    ]
    ends = model.coef_path_interval([3, 0], 0.9, simultaneous=False)
    order = np.stack(refits)[:, :, [3, 0]]
    degrees = N_ROWS - 1
    error = np.sqrt(degrees / N_ROWS * ((order - order.mean(0)) ** 2).sum(axis=0))
    half = (ends[..., 1] - ends[..., 0]) / 2
    np.testing.assert_allclose(half, t(degrees).ppf(0.95) * error, rtol=1e-8)


def test_several_targets_are_intervals_of_each(data, rng):
    X, y = data
    Y = np.stack([y, X[:, 3] + rng.standard_normal(N_ROWS)], axis=1)
    model = IterativeRidge(0.1, step_size=0.2, **RUN)
    how = {"groups": GROUPS, "simultaneous": False}
    together = clone(model).fit(X, Y).coef_path_interval(**how)
    for k in range(2):
        alone = clone(model).fit(X, Y[:, k]).coef_path_interval(**how)
        np.testing.assert_allclose(together[:, :, k], alone, rtol=1e-8, atol=1e-12)


def test_largest_deviations_are_those_of_the_gaussian_process(rng):
    without = rng.standard_normal((3, 2, 1, 400)).cumsum(axis=0)
    without[:, 1] = without[:1, 1]  # the same at all iterates
    path = JackknifedPath(without.mean(axis=-1), without)
    (first, second), _ = np.quantile(path.largest_deviations(rng), [0.95, 0.5], axis=0)
    # One iterate, whatever their number: the quantile of a normal distribution. Three
    # that are not the same: as simulated from their correlations.
    assert second == pytest.approx(norm.ppf(0.975), rel=0.05)
    draws = rng.multivariate_normal(
        np.zeros(3), np.corrcoef(without[:, 0, 0]), size=200_000
    )
    expected = np.quantile(np.abs(draws).max(axis=1), 0.95)
    assert first == pytest.approx(expected, rel=0.05)
    assert expected > 1.02 * norm.ppf(0.975)


def test_intervals_for_all_iterates_are_longer(data):
    X, y = data
    model = IterativeRidge(0.0, step_size=0.2, **RUN).fit(X, y)
    each = np.diff(model.coef_path_interval(simultaneous=False))
    together = np.diff(model.coef_path_interval())
    assert (each[0] == 0).all()  # the start is no estimate
    assert (together[1:] > 1.01 * each[1:]).all()
    repeated = model.coef_path_interval(random_state=0)
    np.testing.assert_array_equal(np.diff(repeated), together)


def test_the_stopping_estimator_and_names(data):
    pd = pytest.importorskip("pandas")
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    stopped = TrajectoryEarlyStoppingCV(MODELS["ridge"]).fit(frame, y)
    by_name = stopped.estimator_.coef_path_interval(["c", "intercept"])
    assert by_name.shape == (13, 2, 2)
    by_place = stopped.estimator_.coef_path_interval([2])
    np.testing.assert_array_equal(by_name[:, :1], by_place)


REFUSED = {
    "kinks": (TrajectoryLasso(0.1, **RUN), {}, "without kinks"),
    "no data": (IterativeRidge(0.1, max_iter=3), {}, "keep_data=True"),
    "few groups": (IterativeRidge(0.1, **RUN), {"groups": GROUPS % 4}, "at least 5"),
    "n_groups": (IterativeRidge(0.1, **RUN), {"n_groups": 2}, "at least 5"),
    "coverage": (IterativeRidge(0.1, **RUN), {"coverage": 1.5}, "coverage"),
    "columns": (IterativeRidge(0.1, **RUN), {"columns": ["z"]}, "no columns"),
    "groups of others": (IterativeRidge(0.1, **RUN), {"groups": [1, 2]}, "groups must"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_intervals_is_refused(name, data):
    model, settings, message = REFUSED[name]
    model = clone(model).fit(*data)
    with pytest.raises(ValueError, match=message):
        model.coef_path_interval(**settings)
