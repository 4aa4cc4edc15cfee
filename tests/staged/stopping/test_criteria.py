"""Scorers and rules that choose a stage; staged beside other members."""

import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import accuracy_score, mean_absolute_error, roc_auc_score
from sklearn.neural_network import MLPRegressor

from skacv import (
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from .cases import boosted, by_hand, classifier

# ------------------------------------------------------------------ criteria


def halves(estimator, X, y):
    """A scorer that is a callable."""
    return -np.abs(estimator.predict(X) - y)[: len(y) // 2].mean()


def test_scorers_of_numbers(data):
    X, y = data
    for criterion in ("neg_mean_absolute_error", halves):
        model = TrajectoryEarlyStoppingCV(boosted(), criterion=criterion).fit(X, y)
        rows = np.concatenate(model.estimator_.cv_indices_)
        found = by_hand(boosted(), model.estimator_, X, y)[:, rows]
        n_scored = 40 if criterion is halves else 80
        expected = [
            -mean_absolute_error(y[rows][:n_scored], each[:n_scored]) for each in found
        ]
        np.testing.assert_allclose(model.path_[1:], expected)
        assert model.best_iter_ == 1 + np.argmax(expected)
        with pytest.raises(AttributeError, match="scores all held-out rows together"):
            _ = model.best_score_corrected_


@pytest.mark.parametrize("criterion", ["roc_auc", "accuracy"])
def test_scorers_of_classes(criterion, labelled):
    X, y = labelled
    model = TrajectoryEarlyStoppingCV(classifier(), criterion=criterion).fit(X, y)
    found = by_hand(classifier(), model.estimator_, X, y)
    metric = {
        "roc_auc": lambda p: roc_auc_score(y == "yes", p),
        "accuracy": lambda p: accuracy_score(y == "yes", p > 0.5),
    }[criterion]
    np.testing.assert_allclose(model.path_[1:], [metric(p) for p in found])
    assert 0.5 < model.best_score_ <= 1


def test_a_scorer_that_does_not_fit_is_named_before_the_run(labelled):
    X, y = labelled
    trees = GradientBoostingClassifier(n_estimators=5)
    model = TrajectoryEarlyStoppingCV(trees, criterion="r2")
    with pytest.raises(ValueError, match="criterion=r2 cannot score"):
        model.fit(X, y)
    X[0, 0] = np.nan  # and what is wrong with the data comes first
    with pytest.raises(ValueError, match="Input X contains NaN"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_standard_error(data):
    X, y = data
    best = TrajectoryEarlyStoppingCV(boosted()).fit(X, y)
    model = TrajectoryEarlyStoppingCV(boosted(), rule="one_se").fit(X, y)
    limit = best.best_score_ + best.best_score_se_
    earliest = 1 + np.flatnonzero(best.path_[1:] <= limit)[0]
    assert model.best_iter_ == earliest < best.best_iter_


# ------------------------------------------------------------------ beside others


def test_beside_linear_models(data):
    X, y = data
    members = [
        ("trees", boosted(max_iter=25)),
        ("network", MLPRegressor(hidden_layer_sizes=(4,), max_iter=5, random_state=0)),
        ("lasso", TrajectoryLasso("path", max_iter=3)),
    ]
    model = TrajectoryEarlyStoppingCV(members, random_state=0).fit(X, y)
    assert set(model.member_paths_) == {"trees", "network", "lasso"}
    assert model.results_["criterion"] == ["cv"] * 3
    least = {name: path[1:].min() for name, path in model.member_paths_.items()}
    assert model.best_score_ == min(least.values())
    assert least["trees"] < least["lasso"]  # which cannot see a kink
    assert np.isfinite(model.best_score_corrected_)
    assert (
        model.set_params(trees__learning_rate=0.2).estimator[0][1].learning_rate == 0.2
    )


def test_probabilities_are_compared_with_those_of_logistic_regression(labelled):
    X, y = labelled
    members = [
        ("trees", classifier(max_iter=25)),
        ("logistic", TrajectoryLogisticRegression(max_iter=20)),
    ]
    model = TrajectoryEarlyStoppingCV(members, random_state=0, cv=4).fit(X, y)
    # By the same loss of a row, not by accuracies of what was chosen.
    assert model.results_["score"] == model.results_["best_score"]
    assert model.best_score_ == min(model.results_["best_score"])
    assert np.isfinite(model.best_score_corrected_)
    three = y.copy()
    three[::3] = "perhaps"
    model.fit(X, three)
    assert model.results_["score"] == model.results_["best_score"]
