"""What estimators of curved losses refuse or warn of."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skacv import (
    TrajectoryEarlyStoppingCV,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.exceptions import SeparationWarning

from .models import ALL, drawn, model_of


def counts_below_zero(y):
    return np.where(np.arange(len(y)) == 3, -1, y)


@pytest.mark.parametrize(
    ("name", "spoil", "message"),
    [
        ("binary", lambda y: np.full(len(y), "yes"), "only one class"),
        ("svc", lambda y: np.full(len(y), "yes"), "only one class"),
        ("binary", lambda y: np.linspace(0, 2, len(y)), "[Uu]nknown label type"),
        ("poisson", counts_below_zero, "negative"),
        ("poisson", np.zeros_like, "zero"),
        ("gamma", lambda y: np.where(y > 1, y, 0), "needs positive targets"),
        ("tweedie", counts_below_zero, "negative"),
        ("huber", lambda y: np.where(y > 0, np.nan, y), "NaN"),
    ],
)
def test_bad_targets_change_nothing(name, spoil, message, rng):
    X, y = drawn(ALL[name][1], rng)
    model = model_of(name, max_iter=20).fit(X, y)
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
    with pytest.raises(ValueError, match="cannot score the predictions"):
        model.fit(X, y)
    assert not hasattr(model, "predict_proba")


@pytest.mark.parametrize(
    "model", [TrajectoryLogisticRegression(), TrajectoryPoissonRegressor()]
)
def test_newton_needs_a_smooth_penalty(model, rng):
    X, y = drawn("binary", rng)
    model = clone(model).set_params(l1_ratio=0.5, solver="newton")
    with pytest.raises(ValueError, match="l1_ratio=0"):
        model.fit(X, y)


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


@pytest.mark.parametrize("cls", [TrajectoryLogisticRegression, TrajectoryLinearSVC])
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({0: 0, 1: 0}, "positive for at least two classes"),
        ({0: 0, 1: 0, 2: 3}, "positive for at least two classes"),
        ({0: -1, 1: 1.5}, "nonnegative"),
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
