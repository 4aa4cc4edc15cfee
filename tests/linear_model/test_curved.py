"""Estimators of curved losses: scikit-learn's models, and what refits would cost."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import xlogy
from sklearn.base import clone
from sklearn.linear_model import HuberRegressor, LogisticRegression, PoissonRegressor
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skacv import (
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.exceptions import SeparationWarning
from skacv.risk.left_out import costs
from tests.cases import covering

TIGHT = {"max_iter": 20_000, "tol": 1e-13, "loo": False}
EXACT = {"rtol": 0, "atol": 1e-8}
CLASSES = {"binary": ["no", "yes"], "classes": [0, 1, 2]}


def labels(decision, rng):
    return (rng.random(len(decision)) < 1 / (1 + np.exp(-decision))).astype(int)


def drawn(kind, rng, shape=(60, 6)):
    """X and a target of a kind, with signal in the first columns."""
    X = rng.standard_normal(shape)
    signal = X[:, 0] - 0.5 * X[:, 1] + 0.3
    targets = {
        "binary": lambda: np.array(["no", "yes"])[labels(signal, rng)],
        # Three: with an even number an l1 penalty has several optima.
        "classes": lambda: labels(signal, rng) + labels(X[:, 2] - 0.5, rng),
        "real": lambda: signal + 0.5 * rng.standard_t(2, shape[0]),
        "counts": lambda: rng.poisson(np.exp(0.5 * signal)),
    }
    y = targets[kind]()
    if kind in CLASSES:  # every one twice at least, one of them with a row left out
        names = CLASSES[kind]
        y[: 2 * len(names)] = names * 2
    return X, y


def logistic(C, l1_ratio, **params):
    """scikit-learn's; the penalty's name was deprecated in 1.8."""
    if l1_ratio == 0:
        return LogisticRegression(C=C, tol=1e-12, max_iter=10_000, **params)
    found = LogisticRegression(
        C=C, l1_ratio=l1_ratio, solver="saga", tol=1e-12, max_iter=100_000, **params
    )
    if found.get_params()["penalty"] == "l2":  # scikit-learn < 1.8
        found.set_params(penalty="elasticnet")
    return found


def svc(C, **params):
    """scikit-learn's penalises the intercept, ever less with the scaling."""
    return LinearSVC(C=C, tol=1e-12, max_iter=10**6, **params)


MODELS = {
    "binary": (TrajectoryLogisticRegression(0.3), "binary"),
    "l1": (TrajectoryLogisticRegression(0.3, l1_ratio=1.0), "binary"),
    "elastic_net": (TrajectoryLogisticRegression(0.3, l1_ratio=0.4), "binary"),
    "ista": (
        TrajectoryLogisticRegression(0.3, l1_ratio=1.0, solver="ista"),
        "binary",
    ),
    "gd": (TrajectoryLogisticRegression(0.3, solver="gd"), "binary"),
    "multinomial": (TrajectoryLogisticRegression(0.3), "classes"),
    "multinomial_l1": (TrajectoryLogisticRegression(0.3, l1_ratio=1.0), "classes"),
    "svc": (TrajectoryLinearSVC(0.3), "binary"),
    "svc_classes": (TrajectoryLinearSVC(0.3), "classes"),
    "huber": (TrajectoryHuberRegressor(0.5, scale=0.7), "real"),
    "poisson": (TrajectoryPoissonRegressor(0.1), "counts"),
}
COUNTERPARTS = {
    "binary": logistic(0.3, 0),
    "l1": logistic(0.3, 1.0),
    "elastic_net": logistic(0.3, 0.4),
    "ista": logistic(0.3, 1.0),
    "gd": logistic(0.3, 0),
    "multinomial": logistic(0.3, 0),
    "multinomial_l1": logistic(0.3, 1.0),
    "svc": svc(0.3),
    "svc_classes": svc(0.3),
    "huber": HuberRegressor(alpha=0.5, tol=1e-9, max_iter=10_000),
    "poisson": PoissonRegressor(alpha=0.1, tol=1e-9, max_iter=10_000),
}
NEWTON = {
    "binary_newton": (TrajectoryLogisticRegression(0.3, solver="newton"), "binary"),
    "multinomial_newton": (
        TrajectoryLogisticRegression(0.3, solver="newton"),
        "classes",
    ),
    "poisson_newton": (TrajectoryPoissonRegressor(0.1, solver="newton"), "counts"),
}
MODELS |= NEWTON
COUNTERPARTS |= {name: COUNTERPARTS[name.split("_")[0]] for name in NEWTON}
SMOOTHED = (TrajectoryLinearSVC(0.3, loss="smoothed_hinge"), "binary")
ALL = {**MODELS, "smoothed": SMOOTHED}


def model_of(name, **params):
    return clone(ALL[name][0]).set_params(**params)


def raw_predictions(model, X):
    """Linear predictors, or predictions of a regressor, of every iterate."""
    staged = getattr(model, "staged_decision_function", model.staged_predict)
    return np.array(list(staged(X)))


def cost(name, y, predictions, classes=None):
    """The loss by hand, of every iterate and row."""
    name = name.removesuffix("_newton")
    if name.startswith(("binary", "l1", "elastic", "ista", "gd")):
        sign = np.where(y == classes[1], 1, -1)
        return np.logaddexp(0, -sign * predictions)
    if name.startswith("multinomial"):
        top = predictions.max(axis=2, keepdims=True)
        total = top[..., 0] + np.log(np.exp(predictions - top).sum(axis=2))
        chosen = predictions[:, np.arange(len(y)), np.searchsorted(classes, y)]
        return total - chosen
    if name == "poisson":
        return predictions - y * np.log(predictions) + xlogy(y, y) - y
    if name == "huber":
        residual, threshold = np.abs(y - predictions), 1.35 * 0.7
        beyond = threshold * residual - threshold**2 / 2
        return np.where(residual <= threshold, residual**2 / 2, beyond)
    sign = (
        np.where(y == classes[1], 1, -1)
        if predictions.ndim == 2
        else np.where(y[:, None] == classes, 1, -1)
    )
    margin = np.maximum(0, 1 - sign * predictions)
    if name == "smoothed":
        return np.where(margin < 0.5, margin**2, margin - 0.25)
    return margin**2 if predictions.ndim == 2 else (margin**2).mean(axis=2)


# ------------------------------------------------------------- the same models


@covering(
    name=MODELS,
    fit_intercept=[True, False],
    kind=["dense", "csr"],
    weighted=[False, True],
)
def test_converges_to_scikit_learn(name, fit_intercept, kind, weighted, rng):
    X, y = drawn(MODELS[name][1], rng)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    theirs = clone(COUNTERPARTS[name]).set_params(fit_intercept=fit_intercept)
    if name.startswith("svc"):
        theirs.set_params(intercept_scaling=1e4 if fit_intercept else 1)
    theirs.fit(X, y, sample_weight=weights)
    ours = model_of(name, fit_intercept=fit_intercept, **TIGHT)
    if name == "huber":
        ours.set_params(scale=theirs.scale_)
    ours.fit(X if kind == "dense" else sparse.csr_matrix(X), y, sample_weight=weights)
    assert ours.coef_.shape == theirs.coef_.shape
    # HuberRegressor ends where its objective, some 60, falls by less than 2e-9 of it;
    # its curvature is some 20.
    atol = 1e-4 if name == "huber" else 1e-5
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=atol)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=atol)
    found, expected = ours.predict(X), theirs.predict(X)
    if hasattr(theirs, "classes_"):
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, atol=10 * atol)


@pytest.mark.parametrize("class_weight", ["balanced", {"no": 3.0, "yes": 0.5}])
def test_class_weights_are_those_of_scikit_learn(class_weight, rng):
    X, y = drawn("binary", rng)
    weights = {"class_weight": class_weight}
    theirs = logistic(0.3, 0, **weights).fit(X, y)
    ours = TrajectoryLogisticRegression(0.3, **weights, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_no_penalty(rng):
    X, y = drawn("binary", rng)
    theirs = logistic(np.inf, 0).fit(X, y)
    ours = TrajectoryLogisticRegression(np.inf, **TIGHT).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    assert np.isinf(ours.C_path_).all()


@pytest.mark.parametrize("name", ["binary", "multinomial"])
def test_probabilities_are_those_of_scikit_learn(name, rng):
    X, y = drawn(MODELS[name][1], rng)
    theirs = clone(COUNTERPARTS[name]).fit(X, y)
    ours = model_of(name, **TIGHT).fit(X, y)
    expected = theirs.predict_proba(X)
    np.testing.assert_allclose(ours.predict_proba(X), expected, atol=1e-6)
    log_expected = theirs.predict_log_proba(X)
    np.testing.assert_allclose(ours.predict_log_proba(X), log_expected, atol=1e-5)
    *_, last = ours.staged_predict_proba(X)
    np.testing.assert_array_equal(last, ours.predict_proba(X))
    np.testing.assert_allclose(ours.train_path_[-1], log_loss(y, expected), rtol=1e-6)


def test_stochastic_gradient_descent_comes_near(rng):
    X, y = drawn("binary", rng, (400, 6))
    best = TrajectoryLogisticRegression(0.3, **TIGHT).fit(X, y)
    model = TrajectoryLogisticRegression(
        0.3, solver="sgd", max_iter=200, power_t=0.5, random_state=0, loo=False
    ).fit(X, y)
    gap = model.objective_path_ - best.objective_path_[-1]
    assert 0 <= gap[-1] < 1e-3 * gap[0]
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.coef_path_, model.coef_path_)
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(other.coef_path_, model.coef_path_)


@pytest.mark.parametrize("name", ALL)
def test_paths_are_what_they_say(name, rng):
    X, y = drawn(ALL[name][1], rng)
    model = model_of(name, max_iter=7, tol=0, loo=False).fit(X, y)
    predictions = raw_predictions(model, X)
    classes = getattr(model, "classes_", None)
    costs = cost(name, y, predictions, classes)
    np.testing.assert_allclose(model.train_path_, costs.mean(axis=1), rtol=1e-10)
    np.testing.assert_allclose(model.staged_loss(X, y), model.train_path_, rtol=1e-10)
    some = model.staged_loss(X[:9], y[:9])
    np.testing.assert_allclose(some, costs[:, :9].mean(axis=1), rtol=1e-10)
    assert not model.coef_path_[0].any()
    assert not np.any(model.intercept_path_[0])
    for t in (0, 3, 7):
        stopped = model.at_iteration(t)
        np.testing.assert_array_equal(
            stopped.predict(X), list(model.staged_predict(X))[t]
        )
    # A full Newton step may go too far at first.
    after = slice(7, None) if name in NEWTON else slice(1, 3)
    objective = model.objective_path_
    assert np.all(objective[after] < objective[0])
    assert name in NEWTON or objective[2] < objective[1]
    has_memory = model.get_params().get("solver") not in ("sgd", "newton")
    assert hasattr(model, "risk_path_") == has_memory


# ---------------------------------------------------- rows and folds left out


def n_updates(name, n):
    """Newton's method settles, exactly, where others go on."""
    return 5 if name in NEWTON else n


def held_out(model, X, y, fitted, judged, weights=None):
    refit = clone(model).set_params(step_size=model.step_size_, loo=False, cv=None)
    own = None if weights is None else weights[fitted]
    refit.fit(X[fitted], y[fitted], sample_weight=own)
    return raw_predictions(refit, X[judged])


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
        costs = cost(name, y[judged], expected, classes)
        own = None if weights is None else weights[judged]
        path = np.average(costs, axis=1, weights=own)
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
    costs = cost(name, y, expected, getattr(model, "classes_", None))
    path = np.average(costs, axis=1, weights=weights)
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
    costs = cost(name, y, model.loo_prediction_path_, classes)
    np.testing.assert_allclose(model.loo_path_, costs.mean(axis=1), rtol=1e-10)


# Between the kinks of their derivatives linearising is exact.
WITH_KINKS = ("svc", "svc_classes", "smoothed", "huber")


@covering(name=ALL, fit_intercept=[True, False])
def test_linearised_leave_one_out_is_near_that_of_replays(
    name, fit_intercept, rng, monkeypatch
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
    monkeypatch.setattr(costs, "WORTH_LINEARISING", np.inf)
    exact = clone(model).fit(X, y)
    monkeypatch.setattr(costs, "WORTH_LINEARISING", 0.0)
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


@pytest.mark.parametrize("name", ["binary", "multinomial", "svc", "huber", "poisson"])
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
def test_rows_are_left_out_of_the_same_batches(worth, tolerance, rng, monkeypatch):
    """Of stochastic passes: batches as they are, but for the row."""
    monkeypatch.setattr(costs, "WORTH_LINEARISING", worth)
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(
        0.3, solver="sgd", batch_size=9, max_iter=12, tol=0, loo=True, random_state=0
    ).fit(X, y)
    label, schedule = (y == "yes").astype(float), model._phases[0].schedule
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
    cost_of = np.logaddexp(0, -np.where(y == "yes", 1, -1) * expected).mean(axis=1)
    np.testing.assert_allclose(model.loo_path_, cost_of, rtol=tolerance)


# ----------------------------------------------------------- stopping itself


@covering(
    name=["binary", "multinomial", "svc", "huber", "poisson"],
    criterion=["auto", "loo", "cv"],
)
def test_stops_itself(name, criterion, rng):
    X, y = drawn(ALL[name][1], rng)
    model = TrajectoryEarlyStoppingCV(
        model_of(name, max_iter=80), criterion=criterion
    ).fit(X, y)
    path = getattr(model.estimator_, f"{model.criterion_}_path_")
    assert model.best_iter_ == path.argmin()
    np.testing.assert_array_equal(
        model.predict(X), model.at_iteration(model.best_iter_).predict(X)
    )
    assert model.criterion_ in ("loo", "cv")
    pickle.loads(pickle.dumps(model)).predict(X)


SCORED = [
    ("binary", "accuracy"),
    ("binary", "roc_auc"),
    ("binary", "neg_brier_score"),
    ("binary", "neg_log_loss"),
    ("multinomial", "roc_auc_ovr"),
    ("multinomial", "balanced_accuracy"),
    ("svc", "roc_auc"),
    ("svc_classes", "accuracy"),
    ("poisson", "neg_mean_poisson_deviance"),
    ("huber", "neg_median_absolute_error"),
]


@covering(case=SCORED, held_out=[{}, {"cv": 4}, {"loo": True}])
def test_any_scorer_on_pooled_held_out_predictions(case, held_out, rng):
    name, scoring = case
    X, y = drawn(ALL[name][1], rng, (120, 6))
    if y.dtype.kind == "U":  # the Brier score takes no other labels
        y = (y == "yes").astype(int)
    inner = model_of(name, max_iter=40, tol=0, **held_out)
    model = TrajectoryEarlyStoppingCV(inner, criterion=scoring).fit(X, y)
    kind = "loo" if "loo" in held_out else "cv"
    rows = np.hstack(getattr(model.estimator_, f"{kind}_indices_"))
    predictions = getattr(model.estimator_, f"{kind}_prediction_path_")
    scorer = get_scorer(scoring)

    class Fixed(type(inner)):
        """Gives held-out predictions, by the methods of the class itself."""

        def _linear_predictor(self, X):
            return np.reshape(self.fixed, (len(X), -1))

        def _decision(self, predictor):
            return predictor[:, 0] if predictor.shape[1] == 1 else predictor

        def _prediction(self, predictor, loss):
            return predictor[:, 0]

    fixed = Fixed().fit(X, y)
    for t in (0, model.best_iter_, 40):
        fixed.fixed = predictions[t]
        assert model.path_[t] == pytest.approx(scorer(fixed, X[rows], y[rows]))
    assert model.best_iter_ == model.path_.argmax()


def test_as_a_user_would(rng):
    """Pandas, strings for labels, a pipeline, a grid."""
    X, y = drawn("binary", rng, (150, 6))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = make_pipeline(
        StandardScaler().set_output(transform="pandas"),
        TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression("path", max_iter=5)),
    )
    search = GridSearchCV(
        model,
        {"trajectoryearlystoppingcv__estimator__l1_ratio": [0.0, 1.0]},
        scoring="roc_auc",
    ).fit(frame, pd.Series(y))
    best = search.best_estimator_[-1]
    assert set(best.classes_) == {"no", "yes"}
    assert best.best_params_["C"] == best.estimator_.C_path_[best.best_iter_]
    assert search.predict_proba(frame).shape == (150, 2)
    assert search.score(frame, y) > 0.6


@pytest.mark.parametrize("shape", [(40, 4), (16, 20)])
@pytest.mark.parametrize("name", ["huber", "poisson"])
def test_jackknife_plus_of_curved_losses(name, shape, rng):
    """From the replicas' coefficients, on the scale of the predictions."""
    X, y = drawn(ALL[name][1], rng, shape)
    model = model_of(name, max_iter=30, tol=0, loo=True, keep_data=True).fit(X, y)
    found = model.predict_interval(X[:5], coverage=0.8)
    replicas = np.concatenate(
        [
            held_out(model, X, y, fitted, np.arange(5))[-1][None]
            for fitted, _ in LeaveOneOut().split(X)
        ]
    )
    # Counts spread as the root of their mean, and are not negative.
    spread = np.sqrt if name == "poisson" else np.ones_like
    least = 0 if name == "poisson" else -np.inf
    held_out_mean = model.loo_prediction_path_[-1]
    residuals = (np.abs(held_out_mean - y) / spread(held_out_mean))[:, None]
    widths = residuals * spread(replicas)
    rank = int(np.ceil(0.8 * (len(y) + 1)))
    lower = np.sort(replicas - widths, axis=0)[len(y) - rank]
    upper = np.sort(replicas + widths, axis=0)[rank - 1]
    expected = np.maximum(np.stack([lower, upper], axis=1), least)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    around = model.predict_interval(X[:5], coverage=0.8, method="risk")
    held_out_mean, prediction = model.risk_prediction_path_[-1], model.predict(X[:5])
    residuals = np.sort(np.abs(y - held_out_mean) / spread(held_out_mean))
    width = residuals[rank - 1] * spread(prediction)
    expected = np.stack([prediction - width, prediction + width], axis=1)
    np.testing.assert_allclose(around, np.maximum(expected, least))


# ------------------------------------------------------------------ bad input


def counts_below_zero(y):
    return np.where(np.arange(len(y)) == 3, -1, y)


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("binary", lambda y: np.full(len(y), "yes"), "only one class"),
        ("svc", lambda y: np.full(len(y), "yes"), "only one class"),
        ("binary", lambda y: np.linspace(0, 1, len(y)), "[Uu]nknown label type"),
        ("poisson", counts_below_zero, "negative"),
        ("poisson", np.zeros_like, "zero"),
        ("huber", lambda y: np.where(y > 0, np.nan, y), "NaN"),
    ],
)
def test_bad_targets_change_nothing(name, spoil, message, rng):
    X, y = drawn(ALL[name][1], rng)
    model = model_of(name, max_iter=5).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, spoil(y))
    assert vars(model) == before


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"C": 0.0}, "C"),
        ({"C": [1.0, -1.0]}, "C must be positive"),
        ({"C": "paths"}, "C"),
        ({"l1_ratio": 1.5}, "l1_ratio"),
        ({"solver": "newton-cg"}, "solver"),
        ({"batch_size": 0}, "batch_size"),
        ({"class_weight": "balance"}, "class_weight"),
        ({"loo": 61}, "loo=61"),
        ({"cv": 61}, "n_splits=61"),
        ({"step_size": 1e3}, "largest stable step"),
    ],
)
def test_bad_parameters_are_refused(params, message, rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(**{"max_iter": 200, **params})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_the_memory_matrix_is_refused_with_a_reason(rng):
    X, y = drawn("binary", rng)
    inner = TrajectoryLogisticRegression(solver="newton")
    model = TrajectoryEarlyStoppingCV(inner, criterion="risk")
    for asked in (model, inner.set_params(risk=True)):
        with pytest.raises(ValueError, match="NewtonStep has none here"):
            asked.fit(X, y)


def test_a_scorer_of_probabilities_is_refused_where_there_are_none(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryEarlyStoppingCV(TrajectoryLinearSVC(), criterion="neg_log_loss")
    with pytest.raises(ValueError, match="does not score the predictions"):
        model.fit(X, y)
    assert not hasattr(model, "predict_proba")


def test_newton_needs_a_smooth_penalty(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(l1_ratio=0.5, solver="newton")
    with pytest.raises(ValueError, match="l1_ratio=0"):
        model.fit(X, y)


def test_newton_converges_quadratically(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(solver="newton", tol=1e-12).fit(X, y)
    assert model.n_iter_ < 10
    gap = np.abs(model.coef_path_ - model.coef_path_[-1]).max(axis=(1, 2))
    assert gap[4] < 10 * gap[3] ** 2


def test_separable_data_without_a_penalty_warn(rng):
    X = rng.standard_normal((40, 3))
    y = (X[:, 0] > 0).astype(int)
    free = TrajectoryLogisticRegression(np.inf, max_iter=500)
    with pytest.warns(SeparationWarning, match="without bound"):
        free.fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TrajectoryLogisticRegression(1.0, max_iter=500).fit(X, y)
        # Stopping early is what bounds them there.
        TrajectoryEarlyStoppingCV(free).fit(X, y)


def test_the_loss_of_unknown_labels_is_refused(rng):
    X, y = drawn("binary", rng)
    model = TrajectoryLogisticRegression(max_iter=5).fit(X, y)
    with pytest.raises(ValueError, match="maybe"):
        model.staged_loss(X[:2], ["yes", "maybe"])


def test_a_fold_without_a_class_is_refused(rng):
    """The default splitter of a classifier is stratified; others may not be."""
    X, y = drawn("binary", rng, (40, 3))
    model = TrajectoryLogisticRegression(max_iter=10, cv=5, loo=False)
    model.fit(X, np.sort(y))
    for rows in model.cv_indices_:
        assert len(set(np.sort(y)[rows])) == 2


@pytest.mark.parametrize("constant", [False, True])
def test_automatic_scale_counts_rows_by_their_weight(constant, rng):
    X, y = drawn("real", rng)
    y = np.where(rng.random(60) < 0.7, 1.0, y) if constant else y
    n_times = rng.integers(0, 4, 60)
    model = TrajectoryHuberRegressor(loo=False, tol=0, max_iter=20)
    weighted = clone(model).fit(X, y, sample_weight=n_times)
    repeated = clone(model).fit(np.repeat(X, n_times, 0), np.repeat(y, n_times))
    assert weighted.scale_ == pytest.approx(repeated.scale_, rel=1e-12)
    np.testing.assert_allclose(weighted.coef_path_, repeated.coef_path_, **EXACT)
    other_unit = clone(model).fit(X, y, sample_weight=0.1 * n_times)
    assert other_unit.scale_ == pytest.approx(weighted.scale_, rel=1e-12)


def test_automatic_scale_is_the_median_deviation(rng):
    X, y = drawn("real", rng)
    for n_rows in (59, 60):
        model = TrajectoryHuberRegressor(max_iter=1).fit(X[:n_rows], y[:n_rows])
        distance = np.abs(y[:n_rows] - np.median(y[:n_rows]))
        assert model.scale_ == pytest.approx(1.4826 * np.median(distance), rel=1e-12)


@pytest.mark.parametrize("cls", [TrajectoryLogisticRegression, TrajectoryLinearSVC])
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 0, 1: 0}, "positive for at least two classes"),
        ({0: 0, 1: 0, 2: 3}, "positive for at least two classes"),
        ({0: -1, 1: 1.5}, "not negative"),
        ({0: np.nan}, "finite"),
        ({0: np.inf}, "finite"),
    ],
)
def test_class_weights_that_leave_nothing_to_tell_apart(
    cls, class_weight, message, rng
):
    X = rng.standard_normal((60, 3))
    y = np.arange(60) % (3 if 2 in class_weight else 2)
    model = cls(max_iter=5).fit(X, y)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=message):
        model.set_params(class_weight=class_weight).fit(X, y)
    assert vars(model) == {**before, "class_weight": class_weight}


def test_a_class_of_weight_zero_is_not_learnt(rng):
    X, y = rng.standard_normal((90, 3)), np.arange(90) % 3
    model = TrajectoryLogisticRegression(max_iter=50, class_weight={2: 0}).fit(X, y)
    assert np.isfinite(model.loo_path_).all()
    assert set(model.predict(X)) == {0, 1}
