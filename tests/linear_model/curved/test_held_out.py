"""Rows and folds left out of runs on curved losses: what refits would give."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import LeaveOneOut

from skacv import TrajectoryLogisticRegression
from tests.cases import covering
from tests.runs import run_of

from .models import ALL, EXACT, NEWTON, drawn, held_out, loss, model_of


def n_updates(name, n):
    """Newton's method settles, exactly, where others go on."""
    return 5 if name in NEWTON else n


@pytest.mark.filterwarnings("ignore:The least populated class in y has only")
@covering(name=ALL, shape=[(40, 4), (24, 30)], weighted=[False, True])
def test_folds_are_refits(name, shape, weighted, rng):
    """Of any loss, exactly."""
    X, y = drawn(ALL[name][1], rng, shape)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    model = model_of(name, max_iter=n_updates(name, 25), tol=0, loo=False, cv=4)
    model.fit(X, y, sample_weight=weights)
    classes = getattr(model, "classes_", None)
    at = 0
    for fold, judged in enumerate(model.cv_indices_):
        fitted = np.setdiff1d(np.arange(len(y)), judged)
        expected = held_out(model, X, y, fitted, judged, weights)
        found = model.cv_prediction_path_[:, at : at + len(judged)]
        np.testing.assert_allclose(found, expected, **EXACT)
        losses = loss(name, y[judged], expected, classes)
        own = None if weights is None else weights[judged]
        path = np.average(losses, axis=1, weights=own)
        np.testing.assert_allclose(model.cv_fold_path_[:, fold], path, **EXACT)
        at += len(judged)


@covering(name=ALL, weighted=[False, True])
def test_leave_one_out_is_exact_with_as_many_columns_as_rows(name, weighted, rng):
    X, y = drawn(ALL[name][1], rng, (16, 20))
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    model = model_of(name, max_iter=n_updates(name, 25), tol=0, loo=True)
    model.fit(X, y, sample_weight=weights)
    expected = np.concatenate(
        [
            held_out(model, X, y, fitted, judged, weights)
            for fitted, judged in LeaveOneOut().split(X)
        ],
        axis=1,
    )
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)
    losses = loss(name, y, expected, getattr(model, "classes_", None))
    path = np.average(losses, axis=1, weights=weights)
    np.testing.assert_allclose(model.loo_path_, path, **EXACT)
    np.testing.assert_array_equal(model.loo_target_, y)


@covering(name=ALL, fit_intercept=[True, False])
def test_leave_one_out_is_that_of_refits_with_more_rows_than_columns(
    name, fit_intercept, rng
):
    """To rounding: so few rows are replayed."""
    X, y = drawn(ALL[name][1], rng)
    model = model_of(
        name,
        max_iter=n_updates(name, 30),
        tol=0,
        loo=True,
        fit_intercept=fit_intercept,
    )
    model.fit(X, y)
    for i in range(0, 60, 3):
        expected = held_out(model, X, y, np.delete(np.arange(60), i), [i])
        found = model.loo_prediction_path_[: len(expected), [i]]
        np.testing.assert_allclose(found, expected, **EXACT)
        # A refit ends where no coefficient moves.
        rest = model.loo_prediction_path_[len(expected) :, [i]]
        np.testing.assert_allclose(rest - expected[-1], 0, **EXACT)
    classes = getattr(model, "classes_", None)
    losses = loss(name, y, model.loo_prediction_path_, classes)
    np.testing.assert_allclose(model.loo_path_, losses.mean(axis=1), rtol=1e-10)


# Between the kinks of their derivatives linearising is exact.
WITH_KINKS = ("svc", "svc_classes", "smoothed", "huber", "quantile")


@covering(name=ALL, fit_intercept=[True, False])
def test_linearised_leave_one_out_is_near_that_of_replays(
    name, fit_intercept, rng, set_limits
):
    """Corrected, its error is a small share of what it was, and of the optimism."""
    X, y = drawn(ALL[name][1], rng)
    model = model_of(
        name,
        max_iter=n_updates(name, 40),
        tol=0,
        loo=True,
        fit_intercept=fit_intercept,
    )
    set_limits(WORTH_LINEARISING=np.inf)
    exact = clone(model).fit(X, y)
    set_limits(WORTH_LINEARISING=0.0)
    published = clone(model).set_params(loo_correction=False)
    corrected, uncorrected, naive = (
        np.abs(path / exact.loo_path_ - 1)
        for path in (
            model.fit(X, y).loo_path_,
            published.fit(X, y).loo_path_,
            exact.train_path_,
        )
    )
    if name in NEWTON:
        assert corrected.max() < 1e-8
        return
    rounding = 1e-12
    assert corrected.mean() < 0.5 * uncorrected.mean() + rounding
    assert corrected.max() < uncorrected.max() + rounding
    # Without the correction it is some 1% of the optimism; a row between two iterates
    # that are corrected may cross a kink.
    assert corrected.mean() < 0.002 * naive.mean()
    assert corrected.max() < 0.02 * naive.max()
    assert uncorrected.mean() < 0.5 * naive.mean()
    # Not replayed throughout.
    assert corrected.max() > rounding or name in WITH_KINKS


def test_several_values_are_one_trajectory(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression([0.01, 0.1, 1.0], max_iter=30, tol=0, cv=3)
    model.fit(X, y)
    np.testing.assert_allclose(model.C_path_, np.repeat([0.01, 0.1, 1.0], [31, 30, 30]))
    judged = model.cv_indices_[0]
    fitted = np.setdiff1d(np.arange(len(y)), judged)
    expected = held_out(model, X, y, fitted, judged)
    np.testing.assert_allclose(
        model.cv_prediction_path_[:, : len(judged)], expected, **EXACT
    )


def test_path_of_strengths_begins_where_nothing_moves(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(
        "path", l1_ratio=1.0, max_iter=20, fit_intercept=False
    ).fit(X, y)
    values = np.unique(model.C_path_)
    assert len(values) == 30
    assert values[-1] / values[0] == pytest.approx(1e5)
    assert not model.coef_path_[model.C_path_ < values[1]].any()
    assert model.coef_.any()


@pytest.mark.parametrize("name", ["binary", "multinomial", "svc", "huber", "gamma"])
def test_warm_start_equals_one_longer_run(name, rng):
    X, y = drawn(ALL[name][1], rng)
    whole = model_of(name, max_iter=30, tol=0, loo=True, cv=3).fit(X, y)
    part = model_of(name, max_iter=11, tol=0, loo=True, cv=3, warm_start=True)
    part.fit(X, y).set_params(max_iter=30).fit(X, y)
    for path in ("coef_path_", "loo_path_", "cv_path_", "objective_path_"):
        np.testing.assert_allclose(
            getattr(part, path), getattr(whole, path), rtol=1e-8, atol=1e-12
        )


def test_warm_start_takes_the_same_batches(rng):
    X, y = drawn("binary", rng)
    params = {"solver": "sgd", "tol": 0, "loo": False, "batch_size": 7}
    part = TrajectoryLogisticRegression(max_iter=4, warm_start=True, **params)
    part.fit(X, y)
    begun = part.coef_path_
    part.set_params(max_iter=9).fit(X, y)
    np.testing.assert_array_equal(part.coef_path_[:5], begun)
    assert part.n_iter_ == 9


@pytest.mark.parametrize(("worth", "tolerance"), [(4.0, 1e-10), (0.0, 1e-3)])
def test_rows_are_left_out_of_the_same_batches(worth, tolerance, rng, set_limits):
    """Of stochastic passes: batches as they are, but for the row."""
    set_limits(WORTH_LINEARISING=worth)
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(
        0.3, solver="sgd", batch_size=9, max_iter=12, tol=0, loo=True, random_state=0
    )
    schedule = run_of(model, X, y).trajectory.phases[0].schedule
    label = (y == "yes").astype(float)
    ones = np.column_stack([X, np.ones(len(y))])
    ridge = np.array([1.0] * 6 + [0.0]) / (0.3 * len(y))
    expected = np.zeros((13, len(y)))
    for i in range(len(y)):
        b = np.zeros(7)
        for t, step in zip(range(12), schedule.updates()):
            for rows in step.batches:
                kept = rows[rows != i]
                slope = 1 / (1 + np.exp(-ones[kept] @ b)) - label[kept]
                gradient = ones[kept].T @ slope / len(rows) + ridge * b
                b = b - step.step_size * gradient
            expected[t + 1, i] = ones[i] @ b
    loss_of = np.logaddexp(0, -np.where(y == "yes", 1, -1) * expected).mean(axis=1)
    np.testing.assert_allclose(model.loo_path_, loss_of, rtol=tolerance)
