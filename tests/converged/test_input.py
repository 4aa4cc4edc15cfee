"""Pipelines, what is refused, and what is warned of."""

import warnings
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LogisticRegression,
    LogisticRegressionCV,
    MultiTaskLasso,
    PoissonRegressor,
    Ridge,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from skacv import IterativeRidge, approximate_loo
from skacv.converged.second_step import second_step
from tests.internals import converged_fit
from tests.refits import logistic, outcome, refitted

from .cases import labels_of


def test_pipelines_are_their_last_step_on_transformed_data(data):
    X, y, _ = data
    model = make_pipeline(
        StandardScaler(), SelectKBest(f_regression, k=4), Ridge(0.5)
    ).fit(X, y)
    found = approximate_loo(model, X, y)
    step = approximate_loo(model[-1], model[:-1].transform(X), y)
    assert_allclose(found.predictions, step.predictions)
    alone = make_pipeline(Ridge(0.5)).fit(X, y)
    expected = approximate_loo(Ridge(0.5).fit(X, y), X, y)
    assert_allclose(approximate_loo(alone, X, y).mean, expected.mean)
    nested = make_pipeline(model[0], make_pipeline(*model[1:]))
    assert_allclose(approximate_loo(nested, X, y).predictions, found.predictions)


def test_the_estimator_is_not_changed(data):
    X, y, _ = data
    for model in (Lasso(0.1).fit(X, y), SVC(kernel="linear").fit(X, y > 0)):
        before = deepcopy(vars(model))
        target = y > 0 if isinstance(model, SVC) else y
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            approximate_loo(model, X, target)
        after = vars(model)
        assert before.keys() == after.keys()
        for name, value in before.items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(after[name], value)


def test_the_result_is_frozen(data):
    X, y, _ = data
    result = approximate_loo(Ridge().fit(X, y), X, y)
    with pytest.raises(AttributeError):
        result.mean = 0.0
    spread = np.std(result.loss, ddof=1) / np.sqrt(60)
    assert_allclose(result.standard_error, spread, rtol=1e-10)


def test_unconverged_models_warn_by_how_much(data, rng):
    X, y, _ = data
    # Classes that overlap: where coefficients grow without end, a step is a small part.
    labels = (y + 8 * rng.standard_normal(60) > 1).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = LogisticRegression(C=0.5, max_iter=3).fit(X, labels)
    with pytest.warns(ConvergenceWarning, match=r"gradient is 0\.\d+ .* times"):
        found = approximate_loo(model, X, labels)
    # One step from there: the whole gradient brings most of the way.
    exact = refitted(logistic(0.5), X, labels, range(60))
    far = np.abs(model.decision_function(X) - exact).mean()
    assert np.abs(found.predictions - exact).mean() < 0.2 * far


def test_a_flat_direction_is_seen(data):
    # The gradient is small along a column of small numbers, the way is not.
    X, y, _ = data
    X = np.column_stack([X, y / 1000])
    model = IterativeRidge(0.0, max_iter=300, tol=0, risk=False, loo=False).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="not at the minimum"):
        approximate_loo(model, X, y)


@pytest.mark.parametrize("method", ["ij", "randomized"])
def test_large_leverages_warn_where_the_method_errs(method, rng):
    X = rng.standard_normal((60, 200))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    model = LinearSVC(C=1.0, tol=1e-8, max_iter=10**6, random_state=0).fit(X, y)
    exact = approximate_loo(model, X, y)
    with pytest.warns(UserWarning, match="The largest leverage"):
        found = approximate_loo(model, X, y, method=method, random_state=0)
    assert found.mean < 0.5 * exact.mean


@pytest.mark.parametrize("C", [np.inf, 1e10])
def test_models_that_hardly_have_a_penalty_warn(C, rng):
    """The mean of one step is too small, and says so; not with C = 0.1."""
    X = rng.standard_normal((60, 14))
    y = (X[:, 0] + rng.logistic(size=60) > 0).astype(int)
    settings = {"tol": 1e-10, "max_iter": 10**4}
    model = LogisticRegression(C=C, **settings).fit(X, y)
    with pytest.warns(UserWarning, match="LogisticRegression changes a lot when"):
        found = approximate_loo(model, X, y)
    losses = []
    for i in range(60):
        stay = np.arange(60) != i
        alone = clone(model).fit(X[stay], y[stay])
        losses.append(log_loss(y[[i]], alone.predict_proba(X[[i]]), labels=[0, 1]))
    assert np.mean(losses) > 1.03 * found.mean
    approximate_loo(LogisticRegression(C=0.1, **settings).fit(X, y), X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_second_step_leads_to_the_refits(n_classes, rng):
    X = rng.standard_normal((60, 6))
    y = np.digitize(X[:, 0] + rng.logistic(size=60), [0, 1.5][: n_classes - 1])
    weights = rng.integers(1, 3, 60).astype(float)
    model = LogisticRegression(C=2.0, tol=1e-10, max_iter=10**4)
    model.fit(X, y, sample_weight=weights)
    one = approximate_loo(model, X, y, sample_weight=weights).predictions
    converged = converged_fit(model, X, y, weights)
    rows = np.arange(0, 60, 3)
    two = one[rows] + second_step(converged, rows).reshape(one[rows].shape)
    exact = refitted(model, X, y, rows, weights)
    error = np.abs(two - exact).mean()
    assert error < 0.5 * np.abs(one[rows] - exact).mean()


@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_hardly_penalised_counts_warn(alpha, rng):
    X = rng.standard_normal((50, 14))
    y = rng.poisson(np.exp(X[:, 0]))
    model = PoissonRegressor(alpha=alpha, tol=1e-10, max_iter=10**4).fit(X, y)
    if alpha:
        approximate_loo(model, X, y)
        return
    with pytest.warns(UserWarning, match="PoissonRegressor changes a lot"):
        approximate_loo(model, X, y)


def test_other_data_warn(data, rng):
    X, y, _ = data
    with pytest.warns(ConvergenceWarning, match="those of the fit"):
        approximate_loo(Ridge().fit(X, y), X, rng.permutation(y))


def test_unknown_models_and_methods_are_refused(data):
    X, y, _ = data
    with pytest.raises(NotFittedError):
        approximate_loo(Ridge(), X, y)
    with pytest.raises(TypeError, match=r"SGDRegressor.*models are.*Lasso.*Ridge"):
        approximate_loo(SGDRegressor(), X, y)
    tweedie = TweedieRegressor(power=3).fit(X, np.exp(y / 9))
    with pytest.raises(ValueError, match="a power from 1 to 2 and a log link"):
        approximate_loo(tweedie, X, np.exp(y / 9))
    Y = np.column_stack([y, y])
    with pytest.raises(ValueError, match="couples the targets"):
        approximate_loo(MultiTaskLasso(0.1).fit(X, Y), X, Y)
    with pytest.raises(ValueError, match="available are alo, ij, newton, randomized"):
        approximate_loo(Ridge().fit(X, y), X, y, method="exact")
    model = SVC(kernel="linear").fit(X, y > 0)
    with pytest.raises(ValueError, match=r"available are alo\."):
        approximate_loo(model, X, y > 0, method="newton")
    with pytest.raises(ValueError, match="positive=True"):
        approximate_loo(Lasso(0.1, positive=True).fit(X, y), X, y)
    with pytest.raises(ValueError, match="kernel='linear'"):
        approximate_loo(SVC().fit(X, y > 0), X, y > 0)


def test_models_of_other_objectives_are_refused(data):
    X, y = load_iris(return_X_y=True)
    model = LogisticRegression(max_iter=1000).fit(X, y)
    # What scikit-learn up to 1.7 fits against the rest.
    model.solver = "liblinear"
    with pytest.raises(ValueError, match="one multinomial model"):
        approximate_loo(model, X, y)
    joint = LinearSVC(multi_class="crammer_singer", max_iter=10**5).fit(X, y)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        approximate_loo(joint, X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        average = LogisticRegressionCV(Cs=2, refit=False, max_iter=1000).fit(X, y)
    with pytest.raises(ValueError, match="refit=False"):
        approximate_loo(average, X, y)


@pytest.mark.filterwarnings("ignore:The largest leverage is")
@pytest.mark.parametrize(
    ("model", "kind", "methods"),
    [
        (Ridge(0.7), "real", ["alo", "ij"]),
        (ElasticNet(0.1, tol=1e-12), "real", ["alo", "ij"]),
        (HuberRegressor(tol=1e-10, max_iter=10**4), "real", ["alo", "ij"]),
        (PoissonRegressor(alpha=0.1, tol=1e-12), "counts", ["alo", "ij"]),
        (logistic(0.5, tol=1e-12), "labels", ["alo", "ij"]),
        (LinearSVC(C=0.1, tol=1e-10), "labels", ["alo", "ij"]),
        (LinearSVC(C=0.1, loss="hinge", tol=1e-8), "labels", ["alo"]),
        (SVC(kernel="linear", C=0.1, tol=1e-10), "labels", ["alo"]),
    ],
    ids=lambda value: str(value).split("(")[0],
)
def test_rows_of_weight_zero_are_not_there(model, kind, methods, data, rng):
    X, y, weights = data
    y = {
        "real": y,
        "counts": rng.poisson(np.exp(np.clip(y / 3, -2, 2))),
        "labels": labels_of(y, rng),
    }[kind]
    if kind == "labels":  # more columns than a hinge has rows on the margin
        X = np.hstack([X, rng.standard_normal((60, 20))])
    gone = np.arange(60) % 3 == 0
    weights = np.where(gone, 0, weights)
    model = clone(model)
    if "max_iter" in model.get_params():
        model.set_params(max_iter=10**6)
    model.fit(X, y, sample_weight=weights)
    if kind == "labels":  # to a margin, where rows would stay if they counted
        direction = model.coef_ / (model.coef_ @ model.coef_.T)
        X = X + (gone * (1 - model.decision_function(X)))[:, None] * direction
    stay = {"X": X[~gone], "y": y[~gone], "sample_weight": weights[~gone]}
    alone = clone(model).fit(**stay)
    for method in methods:
        found = approximate_loo(model, X, y, method=method, sample_weight=weights)
        rest = approximate_loo(alone, **stay, method=method)
        expected = outcome(model, X[gone])
        assert_allclose(found.predictions[gone], expected, rtol=0, atol=1e-4)
        for name in ("predictions", "loss", "leverages"):
            expected = getattr(rest, name)
            assert_allclose(getattr(found, name)[~gone], expected, rtol=0, atol=1e-5)
        assert found.mean == pytest.approx(rest.mean, rel=1e-5)
        assert found.standard_error == pytest.approx(rest.standard_error, rel=1e-5)


def test_data_that_do_not_fit_the_model(data):
    X, y, weights = data
    model = Ridge().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        approximate_loo(model, X[:, :3], y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        approximate_loo(model, X, y[:-1])
    with pytest.raises(ValueError, match="2 outputs"):
        approximate_loo(model, X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        approximate_loo(model, X, y, sample_weight=-weights)
    with pytest.raises(ValueError, match="weight"):
        approximate_loo(model, X, y, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="n_probes"):
        approximate_loo(model, X, y, n_probes=1)
    labels = (y > 1).astype(int)
    with pytest.raises(ValueError, match=r"unseen in fit: \[2\]"):
        approximate_loo(logistic().fit(X, labels), X, labels + 1)
    counts = PoissonRegressor().fit(X, labels)
    with pytest.raises(ValueError, match="values of y are negative"):
        approximate_loo(counts, X, labels - 1)
    support = SVC(kernel="linear").fit(X, labels)
    with pytest.raises(ValueError, match="fewer rows"):
        approximate_loo(support, X[:5], labels[:5])


def test_subclasses_are_found_through_their_bases(data):
    class Named(Ridge):
        pass

    X, y, _ = data
    expected = approximate_loo(Ridge().fit(X, y), X, y).predictions
    assert_allclose(approximate_loo(Named().fit(X, y), X, y).predictions, expected)
