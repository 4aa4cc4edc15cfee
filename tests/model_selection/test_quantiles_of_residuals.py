"""``predict_quantiles`` of models of the mean, from their held-out residuals."""

import pickle
from math import ceil

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryPoissonRegressor,
)

LEVELS = [0.05, 0.5, 0.9]


def drawn(rng, n_rows=120):
    """Skew noise, whose quantiles are not symmetric about the mean."""
    X = rng.standard_normal((n_rows, 3))
    return X, X[:, 0] + np.exp(rng.standard_normal(n_rows))


def trees(**settings):
    return HistGradientBoostingRegressor(
        max_iter=8, min_samples_leaf=5, random_state=0, **settings
    )


def ranked(residuals, levels=LEVELS):
    """Residuals of the ranks of some levels, in a loop."""
    n = len(residuals)
    ordered = sorted(residuals)
    return np.array([ordered[ceil(q * (n + 1) - 1e-9) - 1] for q in levels])


@pytest.mark.parametrize("method", ["loo", "cv", "risk", "jackknife+"])
def test_linear_models(method, rng):
    X, y = drawn(rng)
    run = {"max_iter": 20, "tol": 0}
    model = IterativeRidge(0.1, loo=True, cv=4, risk=True, keep_data=True, **run)
    model.fit(X, y)
    found = model.predict_quantiles(X[:9], LEVELS, method)
    source = "loo" if method == "jackknife+" else method
    held_out = np.asarray(getattr(model, f"{source}_prediction_path_"))[-1]
    rows = np.hstack(getattr(model, f"{source}_indices_"))
    residuals = y[rows] - held_out
    if method == "jackknife+":
        expected = []
        refits = [
            IterativeRidge(0.1, step_size=model.step_size_, loo=False, **run)
            .fit(np.delete(X, i, axis=0), np.delete(y, i))
            .predict(X[:9])
            for i in range(len(y))
        ]
        for column in (np.array(refits) + residuals[:, None]).T:
            expected.append(ranked(column))
    else:
        expected = model.predict(X[:9])[:, None] + ranked(residuals)
    np.testing.assert_allclose(found, expected, rtol=1e-7)
    assert (np.diff(found, axis=1) >= 0).all()
    first = model.predict_quantiles(X[:9], LEVELS)
    jackknife = model.predict_quantiles(X[:9], LEVELS, "jackknife+")
    np.testing.assert_array_equal(first, jackknife)


def test_several_targets(rng):
    X, y = drawn(rng)
    both = np.stack([y, -y], axis=1)
    model = IterativeRidge(0.1, cv=4, max_iter=20)
    found = model.fit(X, both).predict_quantiles(X[:5], LEVELS, "cv")
    assert found.shape == (5, 2, 3)
    for k in range(2):
        alone = IterativeRidge(0.1, cv=4, max_iter=20).fit(X, both[:, k])
        expected = alone.predict_quantiles(X[:5], LEVELS, "cv")
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-10)


def test_counts_are_not_below_zero(rng):
    X, _ = drawn(rng)
    y = rng.poisson(np.exp(0.5 * X[:, 0]))
    model = TrajectoryPoissonRegressor(cv=4).fit(X, y)
    found = model.predict_quantiles(X, LEVELS, "cv")
    held_out = np.asarray(model.cv_prediction_path_)[-1]
    rows = np.hstack(model.cv_indices_)
    ratios = (y[rows] - held_out) / np.sqrt(held_out)
    mean = model.predict(X)[:, None]
    expected = np.maximum(mean + np.sqrt(mean) * ranked(ratios), 0)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert (found == 0).any()


@pytest.mark.parametrize("keep", ["model", "mean"])
def test_staged_models(keep, rng):
    X, y = drawn(rng)
    model = Staged(trees(), cv=4, keep=keep).fit(X, y)
    rows = np.hstack(model.cv_indices_)
    residuals = y[rows] - np.asarray(model.cv_prediction_path_)[-1]
    found = model.predict_quantiles(X[:9], LEVELS, "cv")
    expected = model.predict(X[:9])[:, None] + ranked(residuals)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    scaled = model.predict_quantiles(X[:9], LEVELS)
    np.testing.assert_array_equal(
        scaled, model.predict_quantiles(X[:9], LEVELS, "scaled")
    )
    assert np.ptp(np.diff(scaled, axis=1)[:, 0]) > 0
    if keep == "model":
        with pytest.raises(ValueError, match="method='cv\\+' needs copies of folds"):
            model.predict_quantiles(X, method="cv+")
        return
    found = model.predict_quantiles(X[:9], LEVELS, "cv+")
    fold = np.repeat(np.arange(4), list(map(len, model.cv_indices_)))
    copies = np.array([copy.predict(X[:9]) for copy in model.estimator_.copies[1:]])
    expected = [ranked(column) for column in (copies[fold] + residuals[:, None]).T]
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_the_stopped_model_and_a_blend(rng):
    X, y = drawn(rng, 150)
    one = TrajectoryEarlyStoppingCV(trees(), random_state=0).fit(X, y)
    residuals = y - one.held_out_prediction_
    found = one.predict_quantiles(X[:9], LEVELS, "cv")
    expected = one.predict(X[:9])[:, None] + ranked(residuals)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    np.testing.assert_array_equal(
        one.predict_quantiles(X[:9]),
        one.predict_quantiles(X[:9], (0.05, 0.5, 0.95), "scaled"),
    )
    members = [("trees", trees()), ("lasso", TrajectoryLasso("path", max_iter=10))]
    blend = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0).fit(X, y)
    residuals = y - blend.held_out_prediction_
    found = blend.predict_quantiles(X[:9], LEVELS, "cv")
    expected = blend.predict(X[:9])[:, None] + ranked(residuals)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    small = pickle.loads(pickle.dumps(blend.drop_record()))
    np.testing.assert_array_equal(small.predict_quantiles(X[:9], LEVELS, "cv"), found)
    # Noise is skew, so that intervals are not between its quantiles.
    lower = blend.predict_interval(X[:9], 0.9, "cv")[:, 0]
    assert (found[:, 0] > lower).all()


def test_raw_tables(rng):
    X, y = drawn(rng, 150)
    table = pd.DataFrame(X, columns=list("abc"))
    table["kind"] = np.where(rng.random(150) < 0.5, "new", "old")
    members = [("trees", trees()), ("lasso", TrajectoryLasso("path", max_iter=10))]
    model = SelfStoppingRegressor(members, encoder=None, random_state=0)
    default = SelfStoppingRegressor(random_state=0, time_limit=30).fit(table, y)
    found = default.predict_quantiles(table, [0.1, 0.5, 0.9])
    assert found.shape == (150, 3)
    assert (np.diff(found, axis=1) > 0).all()
    shares = (y[:, None] <= found).mean(axis=0)
    np.testing.assert_allclose(shares, [0.1, 0.5, 0.9], atol=0.15)
    assert model.fit(X, y).predict_quantiles(X[:2], 0.5).shape == (2, 1)


def test_offsets(rng):
    X, y = drawn(rng)
    offset = rng.uniform(2, 5, len(y))
    for model in (
        TrajectoryLasso(0.1, cv=4, max_iter=10),
        KernelEigenProRegressor(cv=4, gamma=0.3, max_iter=3, random_state=0),
    ):
        plain = model.fit(X, y).predict_quantiles(X[:5], method="cv")
        model.fit(X, y + offset, offset=offset)
        found = model.predict_quantiles(X[:5], method="cv", offset=offset[:5])
        np.testing.assert_allclose(found, plain + offset[:5, None], rtol=1e-6)
        with pytest.raises(ValueError, match="pass predict_quantiles the offset="):
            model.predict_quantiles(X[:5])


def test_targets_of_rows_that_lack_some(rng):
    X, y = drawn(rng)
    both = np.stack([y, -y], axis=1)
    both[:7, 0] = np.nan
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=5)).fit(X, both)
    assert model.predict_quantiles(X, LEVELS).shape == (len(X), 2, 3)
    one = model.predict_quantiles(X, [0.5])
    assert one.shape == (len(X), 2, 1)
    alone = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=5))
    expected = alone.fit(X[7:], y[7:]).predict_quantiles(X, [0.5])
    np.testing.assert_allclose(one[:, 0], expected, rtol=1e-6)


def test_what_is_refused(rng):
    X, y = drawn(rng)
    model = TrajectoryEarlyStoppingCV(trees(), random_state=0).fit(X[:30], y[:30])
    with pytest.raises(ValueError, match="levels must be numbers between 0 and 1"):
        model.predict_quantiles(X, [0.5, 1.0])
    with pytest.raises(ValueError, match=r"level=0\.99 needs at least 99 rows"):
        model.predict_quantiles(X, [0.99])
    with pytest.raises(ValueError, match="method must be one of"):
        model.predict_quantiles(X, method="loo+")
    classes = TrajectoryEarlyStoppingCV(HistGradientBoostingClassifier(max_iter=3))
    classes.fit(X, y > np.median(y))
    with pytest.raises(AttributeError, match="has no predict_quantiles"):
        classes.predict_quantiles(X)
    with pytest.raises(ValueError, match="fitted without any"):
        IterativeRidge(loo=False, risk=False).fit(X, y).predict_quantiles(X)
