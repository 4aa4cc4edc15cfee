"""A blend of classifiers shows one loss of all members, the log loss."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from skacv import (
    KernelEigenProClassifier,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

FOLDS = StratifiedKFold(4, shuffle=True, random_state=0)


def members():
    trees = HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=5)
    return [
        ("logistic", TrajectoryLogisticRegression(max_iter=8, loo=False)),
        ("kernel", KernelEigenProClassifier(gamma=0.2, max_iter=8)),
        ("trees", Staged(trees)),
    ]


@pytest.fixture(params=[2, 3])
def labelled(request):
    X, y = load_iris(return_X_y=True)
    if request.param == 2:
        X, y = X[y > 0], y[y > 0]
    return X, np.array(["a", "b", "c"])[y]


def log_losses(kernel, y):
    """The log loss of calibrated decisions of held-out rows, iterate by iterate.

    Shapes: returned (n_iter + 1, n_rows).
    """
    rows, found = np.hstack(kernel.cv_indices_), []
    label = np.searchsorted(kernel.classes_, y[rows])
    for t in range(kernel.n_iter_ + 1):
        scale = kernel.at_iteration(t).probability_scale_
        decision = scale * kernel.cv_prediction_path_[t]
        if decision.ndim == 1:
            shares = np.stack([expit(-decision), expit(decision)], axis=1)
        else:
            shares = softmax(decision, axis=1)
        found.append(-np.log(shares[np.arange(len(label)), label]))
    return np.array(found)


@pytest.mark.parametrize("weighted", [False, True])
def test_every_member_is_shown_by_its_log_loss(weighted, labelled, rng):
    X, y = labelled
    weights = {"sample_weight": rng.uniform(0.5, 2, len(y))} if weighted else {}
    model = TrajectoryEarlyStoppingCV(
        members(), rule="blend", cv=FOLDS, patience=None
    ).fit(X, y, **weights)
    shares = weights.get("sample_weight", np.ones(len(y)))
    alone = {
        name: clone(member).set_params(cv=FOLDS).fit(X, y, **weights)
        for name, member in members()
    }
    paths = {name: each.cv_path_ for name, each in alone.items()}
    losses = log_losses(alone["kernel"], y)
    rows = np.hstack(alone["kernel"].cv_indices_)
    paths["kernel"] = np.average(losses, axis=1, weights=shares[rows])
    chosen = {name: int(each.cv_path_.argmin()) for name, each in alone.items()}
    for place, (name, path) in enumerate(paths.items()):
        np.testing.assert_allclose(model.member_paths_[name], path, rtol=1e-6)
        results = {key: values[place] for key, values in model.results_.items()}
        assert results["loss"] == "log loss"
        assert results["best_iter"] == chosen[name]
        assert results["best_score"] == pytest.approx(path[chosen[name]])
    np.testing.assert_allclose(model.path_, paths[model.best_member_], rtol=1e-6)
    # The blend is no worse than any member, by the loss that all are shown in.
    assert model.best_score_ <= min(model.results_["best_score"]) + 1e-9
    fold = np.repeat(np.arange(4), [len(each) for each in alone["kernel"].cv_indices_])
    own, weight = losses[chosen["kernel"]], shares[rows]
    means = [np.average(own[fold == k], weights=weight[fold == k]) for k in range(4)]
    share = np.bincount(fold, weight) / weight.sum()
    away = share * (means - share @ means)
    expected = np.sqrt(np.sum(away**2) * 4 / 3)
    assert model.results_["best_score_se"][1] == pytest.approx(expected)


def test_other_losses_are_named(labelled, rng):
    X, y = labelled
    model = TrajectoryEarlyStoppingCV(members(), cv=FOLDS).fit(X, y)
    assert model.results_["loss"] == ["log loss", "squared error", "log loss"]
    scored = TrajectoryEarlyStoppingCV(members(), cv=FOLDS, criterion="accuracy")
    results = scored.fit(X, y).results_
    assert set(zip(results["criterion"], results["loss"])) == {
        ("accuracy", "accuracy"),
        ("cv", "log loss"),
        ("cv", "squared error"),
    }
    regressors = [
        ("lasso", TrajectoryLasso(0.1, max_iter=5)),
        ("huber", TrajectoryHuberRegressor(max_iter=5)),
    ]
    target = X[:, 0] + rng.standard_normal(len(X))
    results = TrajectoryEarlyStoppingCV(regressors).fit(X, target).results_
    assert results["loss"] == ["squared error", "Huber loss"]
