"""Supports that change when a row is left out, against refits."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, Lasso, Ridge

from skacv import approximate_loo
from skacv.converged.expansion import expansion
from skacv.converged.fitted_models import adapter_of
from skacv.converged.hessian import factor
from skacv.converged.newton import newton_step
from skacv.converged.support import deviations_without, support_changes
from skacv.optim.losses import Logistic, Multinomial, SquaredError
from tests.refits import logistic

from .test_converged import model_of

PRECISE = {"tol": 1e-10, "max_iter": 10**5}


def sparse_data(n, p, rng):
    X = rng.standard_normal((n, p))
    return X, X[:, :3] @ [2.0, 1.0, 0.5] + rng.standard_normal(n)


@pytest.mark.parametrize("estimator", [Lasso(0.3), ElasticNet(0.3, l1_ratio=0.7)])
@pytest.mark.parametrize("p", [10, 100])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_squared_errors_tell_which_refits_have_other_signs(
    estimator, p, is_weighted, rng
):
    n = 60
    X, y = sparse_data(n, p, rng)
    w = rng.integers(1, 4, n).astype(float) if is_weighted else np.ones(n)
    stay = np.arange(n) != np.arange(n)[:, None]
    changes, expected = [], []
    for alpha in (0.1, 0.3, 0.5):  # some of them have supports that change
        fitted = clone(estimator).set_params(alpha=alpha, **PRECISE).fit(X, y, w)
        (model,) = adapter_of(type(fitted))(fitted, X, y, w)
        changes.append(support_changes(model, np.arange(n)))
        refits = [clone(fitted).fit(X[k], y[k], w[k]).coef_ for k in stay]
        expected.append((np.sign(refits) != np.sign(fitted.coef_)).any(axis=1))
    assert 0 < np.mean(expected) < 1
    # A coefficient of a refit may be next to the kink: that is a tie.
    assert np.equal(changes, expected).mean() >= 0.99


def test_l1_logistic_against_refits(rng):
    n = 100
    X = rng.standard_normal((n, 200))
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0).astype(int)
    settings = {"solver": "liblinear", "fit_intercept": False}
    stay = np.arange(n) != np.arange(n)[:, None]
    changes, expected = [], []
    for C in (0.1, 0.15, 0.3):
        fitted = logistic(C, l1_ratio=1.0, **settings).fit(X, y)
        (model,) = adapter_of(type(fitted))(fitted, X, y, np.ones(n))
        changes.append(support_changes(model, np.arange(n)))
        refits = [clone(fitted).fit(X[k], y[k]).coef_[0] for k in stay]
        expected.append((np.sign(refits) != np.sign(fitted.coef_)).any(axis=1))
    assert 0 < np.mean(expected) < 1
    assert np.equal(changes, expected).mean() > 0.9


@pytest.mark.parametrize("loss", [SquaredError(), Logistic(), Multinomial()], ids=str)
@pytest.mark.parametrize("mean", [False, True])
def test_deviations_are_those_of_the_newton_step(loss, mean, rng):
    model = model_of(loss, rng, l1=0.4, mean=mean)
    local, rows = expansion(model), np.arange(0, 40, 3)
    deviations = deviations_without(model, local, factor(local), rows)
    own = local.design.dense_columns(np.arange(local.design.shape[1]), float)[rows]
    shift = np.einsum("ij,jki->ik", own, deviations)
    expected = newton_step(model).predictor[rows] - model.predictor[rows]
    assert_allclose(shift, expected, atol=1e-9)


def test_approximate_loo_warns_where_it_matters(rng):
    X, y = sparse_data(100, 400, rng)
    weak, strong = (Lasso(a, **PRECISE).fit(X, y) for a in (0.05, 0.5))
    randomized = approximate_loo(strong, X, y, method="randomized")
    assert randomized.support_changes is None
    with pytest.warns(UserWarning, match="The support of Lasso changes without"):
        dense = approximate_loo(weak, X, y)
    assert dense.support_changes > 0.8
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stable = approximate_loo(strong, X, y)
        smooth = approximate_loo(Ridge().fit(X, y), X, y)
    assert 0 <= stable.support_changes < 0.8
    assert smooth.support_changes is None
