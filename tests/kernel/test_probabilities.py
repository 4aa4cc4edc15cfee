"""Probabilities of decisions by least squares, from decisions of held-out rows."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skacv import KernelEigenProClassifier, TrajectoryEarlyStoppingCV
from tests.cases import first
from tests.internals import scale_of


def decisions_and_labels(rng, n_classes, n_rows=60):
    label = rng.integers(n_classes, size=n_rows)
    decision = np.eye(n_classes)[label] + 0.7 * rng.standard_normal((n_rows, n_classes))
    return (decision[:, 1] - decision[:, 0] if n_classes == 2 else decision), label


def both(decision):
    """Log odds of two classes as a decision for each of them."""
    if decision.ndim == 1:
        return np.stack([0 * decision, decision], axis=1)
    return decision


def smoothed_log_loss(scale, decision, label, weights):
    """Row by row, with one of n + 2 rows shared by the classes that are not its own."""
    log_probability = log_softmax(scale * both(decision), axis=1)
    n_rows, n_classes = log_probability.shape
    total = 0.0
    for row, own, weight in zip(log_probability, label, weights):
        others = (row.sum() - row[own]) / (n_classes - 1)
        total -= weight * ((n_rows + 1) * row[own] + others) / (n_rows + 2)
    return total / weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_scale_has_the_least_smoothed_log_loss(n_classes, weighted, rng):
    decision, label = decisions_and_labels(rng, n_classes)
    weights = rng.uniform(0, 2, len(label)) if weighted else np.ones(len(label))
    least = minimize_scalar(
        smoothed_log_loss,
        bounds=(0, 50),
        args=(decision, label, weights),
        method="bounded",
        options={"xatol": 1e-10},
    )
    found = scale_of(decision, label, weights)
    assert found == pytest.approx(least.x, rel=1e-5)
    # In whatever units the decisions are.
    assert scale_of(1e9 * decision, label, weights) == pytest.approx(found / 1e9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_without_an_error_have_a_finite_scale(n_classes, rng):
    label = np.arange(12) % n_classes
    decision = 2.0 * label - 1 if n_classes == 2 else np.eye(n_classes)[label]
    scale = scale_of(decision, label, np.ones(12))
    probability = softmax(scale * both(decision), axis=1)
    np.testing.assert_allclose(probability[np.arange(12), label], 13 / 14)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decisions_that_say_nothing_make_all_classes_alike(n_classes, rng):
    decision, label = decisions_and_labels(rng, n_classes)
    weights = np.ones(len(label))
    assert scale_of(-decision, label, weights) == 0
    assert scale_of(0 * decision, label, weights) == 0


@pytest.fixture(scope="module", params=[load_breast_cancer, load_iris])
def data(request):
    X, y = request.param(return_X_y=True)
    names = np.array(["one", "three", "two"])[: len(np.unique(y))]
    return StandardScaler().fit_transform(X), names[y]


@pytest.mark.parametrize("name", ["loo", "cv"])
def test_the_scale_is_that_of_held_out_rows(name, data, rng):
    X, y = data
    switches = {"loo": {"loo": True}, "cv": {"loo": False, "cv": 4}}[name]
    weights = rng.uniform(0.5, 2, len(y))
    model = KernelEigenProClassifier(random_state=0, **switches)
    model.fit(X, y, sample_weight=weights)
    rows = np.hstack(getattr(model, f"{name}_indices_"))
    label = np.searchsorted(model.classes_, y[rows])
    for t in model.recorded_iterations()[[1, -1]]:
        decision = getattr(model, f"{name}_prediction_path_")[t]
        stopped = model.at_iteration(t)
        expected = scale_of(decision, label, weights[rows])
        assert stopped.probability_scale_ == pytest.approx(expected)
        log_odds = both(expected * stopped.decision_function(X))
        found = stopped.predict_proba(X)
        np.testing.assert_allclose(found, softmax(log_odds, axis=1), atol=1e-12)
        best = model.classes_[found.argmax(axis=1)]
        np.testing.assert_array_equal(best, stopped.predict(X))
        assert np.isfinite(stopped.predict_log_proba(X)).all()


def test_every_stage_has_its_own_scale(data):
    X, y = data
    model = KernelEigenProClassifier(random_state=0, store_every=3).fit(X, y)
    stages = list(model.staged_predict_proba(X))
    assert len(stages) == len(model.recorded_iterations()) > 2
    for t, found in zip(model.recorded_iterations(), stages):
        expected = model.at_iteration(t).predict_proba(X)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_scorers_see_the_probabilities_of_their_iterate(data):
    X, y = data
    model = KernelEigenProClassifier(random_state=0, cv=5)
    model = TrajectoryEarlyStoppingCV(model, criterion="neg_log_loss").fit(X, y)
    found, label = model.estimator_, np.searchsorted(model.classes_, y)
    rows = np.hstack(found.cv_indices_)
    for t in (0, 1, model.best_iter_):
        decision = found.cv_prediction_path_[t]
        scale = scale_of(decision, label[rows], np.ones(len(rows)))
        log_probability = log_softmax(both(scale * decision), axis=1)
        score = log_probability[np.arange(len(rows)), label[rows]].mean()
        assert model.path_[t] == pytest.approx(score)
    assert model.best_score_ == pytest.approx(model.path_.max())


@pytest.mark.slow
@pytest.mark.parametrize("load", first(2, [load_breast_cancer, load_wine, load_digits]))
def test_on_real_data_they_are_better_than_clipped_decisions(load):
    """By the log loss of test rows."""
    X, y = load(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    model = KernelEigenProClassifier(random_state=0)
    scaled = model.fit(X, y).predict_proba(X_test)
    last = model.iteration_
    # The same iterate, of which nothing is known without the rows.
    model.set_params(loo=False, max_iter=last).fit(X, y)
    clipped = model.predict_proba(X_test)
    assert log_loss(y_test, scaled) < log_loss(y_test, clipped)


def test_predictions_compute_nothing_that_a_model_keeps(rng):
    """Whatever is read, in whatever order, a model stays as fit has left it."""
    X = rng.standard_normal((80, 3))
    model = KernelEigenProClassifier(gamma=0.3, random_state=0)
    model.fit(X, X[:, 0] * X[:, 1] > 0)
    before = pickle.dumps(model)
    other = model.at_iteration(1)
    assert other.probability_scale_ != model.probability_scale_
    for each in (model, other):
        each.predict_proba(X)
        list(each.staged_predict_proba(X))
    assert pickle.dumps(model) == before
    again = pickle.loads(before)
    assert again.probability_scale_ == model.probability_scale_


def test_factor_is_the_same_between_processes():
    """A run that comes from another process has the predictions that fit its factor."""
    X, y = load_iris(return_X_y=True)
    members = [
        ("kernel", KernelEigenProClassifier(standardize=True, random_state=0)),
        ("wide", KernelEigenProClassifier(gamma=0.01, random_state=0)),
    ]
    here, there = (
        TrajectoryEarlyStoppingCV(members, cv=3, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (None, 2)
    )
    for name, member in here.members_.items():
        other = there.members_[name]
        assert other.probability_scale_ == pytest.approx(member.probability_scale_)
        np.testing.assert_allclose(other.predict_proba(X), member.predict_proba(X))
