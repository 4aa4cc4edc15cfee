"""One number as ``sample_weight`` is the weight of all rows."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import Ridge
from sklearn.multioutput import MultiOutputRegressor

from skacv import (
    IterativeRidge,
    RowSummary,
    Staged,
    TrajectoryEarlyStoppingCV,
    approximate_loo,
)
from tests.runs import assert_same_summary

from .bad_data import N_ROWS, good
from .test_bad_data import CLASSIFIERS, REGRESSORS, TREES

pytestmark = pytest.mark.filterwarnings("ignore")
MODELS = [*REGRESSORS.values(), *CLASSIFIERS.values(), *TREES.values()]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_one_number_is_the_weight_of_all_rows(model, rng, few_trees):
    X, y = good(rng, is_classifier(model))
    one, all_rows = (
        clone(model).fit(X, y, sample_weight=weight).predict(X)
        for weight in (2.0, np.full(N_ROWS, 2.0))
    )
    if is_classifier(model):
        np.testing.assert_array_equal(one, all_rows)
    else:
        np.testing.assert_allclose(one, all_rows, rtol=1e-9)


def test_other_weights_of_one_number(rng):
    X, y = good(rng)
    one, all_rows, unweighted = (
        RowSummary.from_arrays(X, y, sample_weight=weight, n_sampled=2)
        for weight in (2.0, np.full(N_ROWS, 2.0), None)
    )
    assert_same_summary(one, all_rows)
    # A penalty weighs half as much.
    twice, once = (
        IterativeRidge(alpha, loo=False, risk=False).fit(summary)
        for alpha, summary in ((2.0, one), (1.0, unweighted))
    )
    np.testing.assert_allclose(twice.coef_path_, once.coef_path_)
    ridge = Ridge().fit(X, y, sample_weight=2.0)
    one, all_rows = (
        approximate_loo(ridge, X, y, sample_weight=weight).mean
        for weight in (2.0, np.full(N_ROWS, 2.0))
    )
    assert one == all_rows
    trees = Staged(HistGradientBoostingRegressor(max_iter=2)).fit(X, y)
    expected = trees.staged_loss(X, y)
    np.testing.assert_allclose(trees.staged_loss(X, y, sample_weight=3), expected)


@pytest.mark.parametrize("name", ["lasso", "staged"])
def test_losses_of_other_rows_are_of_checked_data(name, rng):
    X, y = good(rng)
    model = clone({**REGRESSORS, **TREES}[name]).fit(X, y)
    all_zero, columns = np.zeros(N_ROWS), np.ones((N_ROWS, 1))
    for weights in (-np.ones(N_ROWS), ["1"] * N_ROWS, columns, all_zero):
        with pytest.raises(ValueError, match="sample_weight"):
            model.staged_loss(X, y, sample_weight=weights)
    for targets in (y.astype(str), np.full(N_ROWS, None), y[1:]):
        with pytest.raises(ValueError, match=r"y must be|y contains|inconsistent"):
            model.staged_loss(X, targets)


@pytest.mark.parametrize("name", ["lasso", "kernel"])
def test_rows_to_predict_are_numbers(name, rng):
    X, y = good(rng)
    model = clone(REGRESSORS[name]).fit(X, y)
    with pytest.raises(ValueError, match="X must be numbers, got strings"):
        model.predict(X.astype(str))


def test_wrappers_of_scikit_learn_pass_weights_on(rng):
    X, y = good(rng)
    weights, Y = rng.uniform(0.5, 2, N_ROWS), np.stack([y, -y], axis=1)
    inner = TrajectoryEarlyStoppingCV(
        HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3)
    )
    outer = MultiOutputRegressor(inner).fit(X, Y, sample_weight=weights)
    for model, column in zip(outer.estimators_, Y.T):
        alone = clone(inner).fit(X, column, sample_weight=weights)
        np.testing.assert_array_equal(model.path_, alone.path_)
        assert alone.best_score_ != clone(inner).fit(X, column).best_score_
