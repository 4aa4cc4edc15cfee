"""Ridge by Newton's method: one update is the exact solution at a strength."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import IterativeRidge, RowSummary, TrajectoryEarlyStoppingCV

FOLDS = KFold(3, shuffle=True, random_state=0)


def data(n_rows=40, n_columns=6, n_targets=1, seed=0):
    X, y = make_regression(
        n_rows, n_columns, n_targets=n_targets, noise=5.0, random_state=seed
    )
    return X * 10.0 ** np.linspace(-2, 1, n_columns) + 1, y


def path(**settings):
    return IterativeRidge("path", solver="newton", max_iter=1, **settings)


@pytest.mark.parametrize("n_columns", [6, 60])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_every_iterate_is_the_ridge_of_its_alpha(n_columns, n_targets):
    X, y = data(n_columns=n_columns, n_targets=n_targets)
    model = path(cv=FOLDS).fit(X, y)
    assert model.n_iter_ == 41
    for t in (1, 12, 20):
        exact = Ridge(model.alpha_path_[t]).fit(X, y)
        found = model.at_iteration(t).predict(X)
        np.testing.assert_allclose(found, exact.predict(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("standardize", [False, True])
def test_folds_are_refits(standardize):
    X, y = data()
    model = path(cv=FOLDS, standardize=standardize).fit(X, y)
    for t in (5, 15, 25):
        alpha = model.alpha_path_[t]
        refit = Ridge(alpha)
        if standardize:
            refit = make_pipeline(StandardScaler(), refit)
        held_out = [
            clone(refit).fit(X[rows], y[rows]).predict(X[judged])
            for rows, judged in FOLDS.split(X)
        ]
        np.testing.assert_allclose(
            model.cv_prediction_path_[t], np.concatenate(held_out), rtol=1e-7
        )


def test_eigenvectors_that_are_not_kept_are_computed_again(set_limits):
    X, y = data()
    kept = path(cv=FOLDS).fit(X, y).cv_path_
    set_limits(MEMORY_BYTES=16 * X.shape[1] ** 2)
    again = path(cv=FOLDS).fit(X, y).cv_path_
    np.testing.assert_allclose(again, kept, rtol=1e-12)


def test_weighted_rows_and_rows_left_out():
    X, y = data(25)
    weights = np.random.default_rng(0).uniform(0.5, 2, len(y))
    model = IterativeRidge([10.0, 0.1], solver="newton", max_iter=1, loo=True)
    model.fit(X, y, sample_weight=weights)
    exact = Ridge(0.1).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-9)
    without = np.arange(len(y)) != 3
    refit = Ridge(0.1).fit(X[without], y[without], sample_weight=weights[without])
    np.testing.assert_allclose(
        model.loo_prediction_path_[-1, 3], refit.predict(X[3:4])[0], rtol=1e-9
    )


def test_summaries_of_rows_take_gradient_steps():
    X, y = data()
    summary = RowSummary(n_folds=3).partial_fit(X, y)
    with pytest.raises(ValueError, match="use another solver"):
        path().fit(summary)


def test_ill_conditioned_columns_are_resolved():
    """Smooth curves whose small differences matter, as in spectra."""
    rng = np.random.default_rng(0)
    grid = np.linspace(0, 1, 40)
    scores = rng.standard_normal((60, 5))
    shapes = [np.exp(-((grid - c) ** 2) / 0.05) for c in np.linspace(0.1, 0.9, 5)]
    X = scores @ np.diag([10, 3, 1, 0.3, 0.1]) @ shapes
    y = 10 * scores[:, 4] + 0.01 * rng.standard_normal(60)
    exact = TrajectoryEarlyStoppingCV(path(), cv=FOLDS).fit(X, y)
    steps = TrajectoryEarlyStoppingCV(
        IterativeRidge(0.0, solver="nesterov", max_iter=300), cv=FOLDS
    ).fit(X, y)
    assert exact.best_score_ < 0.01 * steps.best_score_


def test_there_is_no_memory_matrix():
    X, y = data()
    assert not hasattr(path().fit(X, y), "risk_path_")
    with pytest.raises(ValueError, match="derivative"):
        path(risk=True).fit(X, y)
