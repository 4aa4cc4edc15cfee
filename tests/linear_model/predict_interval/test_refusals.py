"""What prediction intervals refuse."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from skacv import IterativeRidge, SelfStoppingRegressor, TrajectoryEarlyStoppingCV
from skacv.optim.design import MatrixDesign
from skacv.records import HeldOut
from tests.runs import reading

from .refits import METHODS, drawn, model_of


@pytest.mark.parametrize("coverage", [0, 1, 1.2, -0.1, np.nan])
@pytest.mark.parametrize("method", METHODS)
def test_coverage_is_a_share(coverage, method, rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("gd", risk=True, cv=3).fit(X, y)
    with pytest.raises(ValueError, match=f"between 0 and 1, got {coverage}"):
        model.predict_interval(X_new, coverage, method)


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        ("jackknife", {}, "method must be one of .*'jackknife'"),
        ("loo", {"loo": False}, "method='loo' needs .* fitted with loo=True"),
        ("risk", {}, "method='risk' needs .* fitted with risk=True"),
        ("jackknife+", {"loo": False}, "needs .* loo=True"),
        ("jackknife+", {"keep_data": False}, "needs .* keep_data=True"),
        (
            "jackknife+",
            {"loo": False, "keep_data": False},
            "needs .* loo=True and keep_data=True",
        ),
    ],
)
def test_estimates_that_were_not_computed_are_named(method, params, message, rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("gd").set_params(**params).fit(X, y)
    with pytest.raises(ValueError, match=message):
        model.predict_interval(X_new, method=method)


def test_a_stopping_estimator_names_what_was_not_computed(rng):
    X, y, X_new = drawn((30, 6), rng)
    stopped = TrajectoryEarlyStoppingCV(IterativeRidge(), criterion="risk").fit(X, y)
    assert stopped.predict_interval(X_new, method="risk").shape == (5, 2)
    with pytest.raises(ValueError, match="loo=True and keep_data=True"):
        stopped.predict_interval(X_new, method="jackknife+")


def test_auto_takes_the_first_method_that_the_fit_allows(rng):
    X, y, X_new = drawn((30, 6), rng)
    settings = {"loo": True, "cv": 3, "risk": True, "keep_data": True}
    off = {"keep_data": False, "loo": False, "cv": None}
    for method, name in zip(METHODS, [*off, None]):
        model = IterativeRidge(max_iter=20, **settings).fit(X, y)
        expected = model.predict_interval(X_new, method=method)
        np.testing.assert_array_equal(model.predict_interval(X_new), expected)
        settings |= {name: off[name]} if name else {"risk": False}
    model = IterativeRidge(max_iter=20, **settings).fit(X, y)
    with pytest.raises(ValueError, match="without any: fit it with loo=True or cv=5"):
        model.predict_interval(X_new)


def test_an_estimate_that_is_not_registered_is_no_method(rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("gd", risk=True)

    def read(run):
        path, rows = np.zeros(run.trajectory.n_updates + 1), np.arange(30)
        predictions = np.tile(y - rows, (len(path), 1))
        return HeldOut(path, path, rows, y, predictions)

    with reading(read, has_residuals=True):
        model.fit(X, y)
        low, high = model.predict_interval(X_new, 0.5, method="read").T
        np.testing.assert_allclose(high - low, 2 * 15)
        expected = model.predict_interval(X_new)
    np.testing.assert_array_equal(model.predict_interval(X_new), expected)
    with pytest.raises(ValueError, match="method must be one of"):
        model.predict_interval(X_new, method="read")


def test_a_default_that_stops_itself_has_intervals(rng):
    X, y, X_new = drawn((60, 4), rng)
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    assert model.criterion_ == "cv"
    low, high = model.predict_interval(X_new, method="cv").T
    np.testing.assert_allclose((low + high) / 2, model.predict(X_new))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [IterativeRidge(), SelfStoppingRegressor()])
def test_not_fitted(model, method):
    with pytest.raises(NotFittedError):
        model.predict_interval([[0.0]], method=method)


@pytest.mark.parametrize("method", METHODS)
def test_too_few_rows(method, rng):
    X, y, X_new = drawn((9, 3), rng)
    assert model_of("gd", risk=True, cv=3).fit(X, y).predict_interval(
        X_new, 0.9, method
    ).shape == (5, 2)
    model = model_of("gd", risk=True, cv=3).fit(X[:8], y[:8])
    with pytest.raises(ValueError, match=r"at least 9 rows .* but there are 8"):
        model.predict_interval(X_new, 0.9, method)


def test_a_subset_of_too_few_rows(rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("gd", loo=5).fit(X, y)
    with pytest.raises(ValueError, match=r"at least 9 rows .* but there are 5"):
        model.predict_interval(X_new)


@pytest.mark.parametrize("method", METHODS)
def test_other_features(method, rng):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("gd", risk=True, cv=3).fit(X, y)
    with pytest.raises(ValueError, match=r"5 features, but .* expecting 6"):
        model.predict_interval(X_new[:, :5], method=method)


def test_nothing_is_run_again_for_bad_input(rng, monkeypatch):
    X, y, X_new = drawn((30, 6), rng)
    model = model_of("gd").fit(X, y)

    def refuse(design, slopes):
        raise AssertionError("The replicas were run.")

    monkeypatch.setattr(MatrixDesign, "t_dot", refuse)
    for X_bad, coverage in ((X_new[:, :5], 0.9), (X_new, 0.99), (X_new, 1.2)):
        with pytest.raises(ValueError):
            model.predict_interval(X_bad, coverage)
