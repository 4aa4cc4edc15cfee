"""``class_weight`` of all members is ``sample_weight``, by hand."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.estimator_checks import check_class_weight_classifiers

from skacv import (
    IterativeRidge,
    SelfStoppingClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)

from ..cases import covering

FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)
LOSSES = "best_score_", "best_score_se_", "best_score_corrected_"


def members():
    trees = GradientBoostingClassifier(n_estimators=20, max_depth=1, random_state=0)
    logistic = TrajectoryLogisticRegression("path", max_iter=5, standardize=True)
    return [("logistic", logistic), ("trees", trees)]


def of_different_losses():
    return [*members(), ("line", SGDClassifier(max_iter=5, random_state=0))]


class Unweighted(SGDClassifier):
    """One whose fit takes no weights of rows."""

    def fit(self, X, y):
        return super().fit(X, y)


@pytest.fixture
def data():
    """Classes of uneven size."""
    X, y = load_iris(return_X_y=True)
    rows = np.r_[:50, 50:75, 100:140]
    return X[rows], np.array(["a", "b", "c"])[y[rows]]


def stopped(estimator, data, sample_weight=None, cls=TrajectoryEarlyStoppingCV, **how):
    model = cls(estimator, cv=FOLDS, random_state=0, **how)
    return model.fit(*data, sample_weight=sample_weight)


def assert_same(model, other, X):
    for name in LOSSES:
        assert getattr(model, name) == pytest.approx(getattr(other, name))
    assert model.weights_ == pytest.approx(other.weights_)
    assert model.results_["score"] == pytest.approx(other.results_["score"])
    np.testing.assert_allclose(model.path_, other.path_)
    np.testing.assert_allclose(model.predict_proba(X), other.predict_proba(X))


@covering(
    rule=["min", "blend"],
    class_weight=["balanced", {"a": 0.2, "b": 3.0, "c": 1.0}],
    cls=[TrajectoryEarlyStoppingCV, SelfStoppingClassifier],
)
def test_class_weight_is_sample_weight(rule, class_weight, cls, data):
    settings = {"rule": rule, "cls": cls}
    found = stopped(members(), data, class_weight=class_weight, **settings)
    by_hand = compute_sample_weight(class_weight, data[1])
    expected = stopped(members(), data, by_hand, **settings)
    assert_same(found, expected, data[0])
    plain = stopped(members(), data, **settings)
    assert abs(found.best_score_ - plain.best_score_) > 1e-4


def test_it_multiplies_sample_weight(data, rng):
    X, y = data
    weights = rng.integers(0, 3, len(y)).astype(float)
    class_weight = {"a": 0.2, "b": 3.0, "c": 1.0}
    found = stopped(members(), data, weights, class_weight=class_weight)
    by_hand = weights * np.array([class_weight[label] for label in y])
    assert_same(found, stopped(members(), data, by_hand), X)


def test_the_sample_weights_of_balanced_classes_have_equal_sums(data):
    """Rows of weight zero count as absent."""
    X, y = data
    weights = np.ones(len(y))
    weights[:30] = 0.0
    found = stopped(members(), data, weights, class_weight="balanced")
    by_hand = compute_sample_weight("balanced", y[30:])
    expected = stopped(members(), data, np.r_[np.zeros(30), by_hand])
    assert_same(found, expected, X)


def test_the_losses_that_choose_are_weighed(data):
    """By the log loss of scikit-learn, of the held-out probabilities."""
    _, y = data
    found = stopped(members(), data, class_weight="balanced", rule="blend")
    by_hand = compute_sample_weight("balanced", y)
    loss = log_loss(y, found.held_out_prediction_, sample_weight=by_hand)
    assert found.best_score_ == pytest.approx(loss)


def test_the_accuracy_that_compares_members_is_weighed():
    X, y = load_breast_cancer(return_X_y=True)
    data = scale(X)[:150, :6], y[:150]
    by_hand = compute_sample_weight({0: 1.0, 1: 5.0}, data[1])
    found = stopped(of_different_losses(), data, class_weight={0: 1.0, 1: 5.0})
    assert set(found.results_["metric"]) == {"accuracy"}
    score = found.results_["score"][found.best_index_]
    label = found.held_out_prediction_
    label = (label > 0 if label.ndim == 1 else label[:, 1] > 0.5).astype(int)
    expected = accuracy_score(data[1], label, sample_weight=by_hand)
    assert score == pytest.approx(expected)
    assert expected != pytest.approx(accuracy_score(data[1], label))
    other = stopped(of_different_losses(), data, by_hand)
    assert found.results_["score"] == pytest.approx(other.results_["score"])


@pytest.mark.usefixtures("few_trees")
def test_the_default_members_take_it(data):
    X, y = data
    by_hand = compute_sample_weight("balanced", y)
    found = SelfStoppingClassifier(class_weight="balanced", random_state=0).fit(X, y)
    expected = SelfStoppingClassifier(random_state=0).fit(X, y, by_hand)
    assert_same(found, expected, X)


@pytest.mark.slow
@pytest.mark.usefixtures("few_trees")
def test_scikit_learn_checks_it():
    """Of other classifiers in tests/test_common.py, of this one not in each run."""
    check_class_weight_classifiers("SelfStoppingClassifier", SelfStoppingClassifier())


def test_classes_are_weighed_once(data):
    own = RandomForestClassifier(5, class_weight="balanced_subsample")
    pairs = [*members(), ("forest", own)]
    sentence = "weighted twice, .* class_weight='balanced_subsample' of the member 'for"
    with pytest.raises(ValueError, match=sentence):
        stopped(pairs, data, class_weight="balanced")
    logistic, grid = members()[0][1], {"class_weight": [None, "balanced"]}
    with pytest.raises(ValueError, match="set one of them"):
        stopped(logistic, data, class_weight={"a": 2.0}, param_grid=grid)


def test_members_without_weights_are_refused(data):
    pairs = [*members(), ("line", Unweighted())]
    sentence = r"'line' \(Unweighted\) does not"
    with pytest.raises(ValueError, match=sentence):
        stopped(pairs, data, class_weight="balanced")


def test_regression_has_no_classes(data, rng):
    X, _ = data
    y = rng.standard_normal(len(X))
    model = TrajectoryEarlyStoppingCV(IterativeRidge(), class_weight="balanced")
    with pytest.raises(ValueError, match="the members are no classifiers"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("class_weight", "sentence"),
    [
        ({"a": -1.0}, "class_weight must be finite and nonnegative"),
        ({"a": 0.0, "b": 0.0}, "positive for at least two classes"),
        ({"d": 2.0}, "not in class_weight"),
    ],
)
def test_weights_that_cannot_be(class_weight, sentence, data):
    with pytest.raises(ValueError, match=sentence):
        stopped(members(), data, class_weight=class_weight)
