"""Boosted trees of the default run as long as they may improve what is kept."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import KFold

from skacv import (
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)

TREES = "boosted trees"


def separable(rng, n_rows=90):
    X = rng.standard_normal((n_rows, 4))
    score = X[:, 0] + X[:, 1]
    X[:, 0] += np.sign(score)  # a gap between two classes that a line separates
    return X, (score > 0).astype(int)


def test_separable_classes_end_without_loss(rng):
    X, y = separable(rng)
    fit = SelfStoppingClassifier(random_state=0).fit(X, y)
    n_stages = len(fit.member_paths_[TREES]) - 1
    assert n_stages <= 200
    whole = SelfStoppingClassifier(patience=300, random_state=0).fit(X, y)
    path = whole.member_paths_[TREES]
    assert len(path) > 2 * n_stages
    np.testing.assert_array_equal(path[: n_stages + 1], fit.member_paths_[TREES])
    for name in fit.member_paths_.keys() - {TREES, "logistic"}:  # of patience, too
        np.testing.assert_array_equal(
            whole.member_paths_[name], fit.member_paths_[name]
        )
    assert fit.best_score_ < whole.best_score_ + 0.1 * fit.best_score_se_


@pytest.mark.parametrize("rule", ["blend", "min"])
def test_runs_are_judged_by_what_would_be_kept(rule, rng, set_trees):
    """Alone boosted trees improve to the end; beside a line they do so for nothing."""
    set_trees(SMALL={"max_iter": 600})
    X = rng.standard_normal((120, 3))
    settings = {"rule": rule, "cv": KFold(3), "random_state": 0}
    y = X @ [1.0, 2.0, -1.0] + 0.1 * rng.standard_normal(120)
    fit = SelfStoppingRegressor(**settings).fit(X, y)
    path = fit.member_paths_[TREES]
    assert len(path) < 400
    assert path.argmin() > 0.9 * len(path)
    whole = SelfStoppingRegressor(patience=700, **settings).fit(X, y)
    np.testing.assert_array_equal(whole.member_paths_[TREES][: len(path)], path)
    assert len(whole.member_paths_[TREES]) == 601
    assert fit.best_score_ < whole.best_score_ + 0.1 * fit.best_score_se_


def test_trees_of_the_users_own_list_run_until_patience_ends_them(rng):
    X, y = separable(rng)
    trees = HistGradientBoostingClassifier(
        max_iter=300, max_leaf_nodes=3, l2_regularization=5, random_state=0
    )
    alone = TrajectoryEarlyStoppingCV(trees, cv=KFold(3)).fit(X, y)
    members = [(TREES, trees), ("logistic", TrajectoryLogisticRegression("path"))]
    both = TrajectoryEarlyStoppingCV(members, cv=KFold(3), rule="blend").fit(X, y)
    np.testing.assert_array_equal(both.member_paths_[TREES], alone.path_)
