"""Splitters that draw rows several times: a row counts as often as it is drawn.

The oracle is a fit to X[train] and its loss on X[test], by hand.
"""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
)

N_ROWS = 60
# A step that is stable on all rows and on every fold.
GD = {"max_iter": 15, "step_size": 0.05, "loo": False}
MODELS = {
    "lasso": TrajectoryLasso([0.3, 0.1], max_iter=10, step_size=0.05, loo=False),
    "lasso standardised": TrajectoryLasso(
        0.1, max_iter=10, step_size=0.05, loo=False, standardize=True
    ),
    "ridge": IterativeRidge(2.0, **GD),
    "ridge newton": IterativeRidge([20.0, 2.0], solver="newton", max_iter=1, loo=False),
    "no intercept": IterativeRidge(0.0, fit_intercept=False, **GD),
    "huber": TrajectoryHuberRegressor(alpha=0.1, scale=1.0, **GD),
    "poisson": TrajectoryPoissonRegressor(alpha=0.1, **GD),
    "quantile": TrajectoryQuantileRegressor(alpha=0.1, smoothing=0.3, **GD),
    "logistic": TrajectoryLogisticRegression(C=1.0, **GD),
    "logistic newton": TrajectoryLogisticRegression(
        C=1.0, solver="newton", max_iter=6, loo=False
    ),
    "svc": TrajectoryLinearSVC(C=1.0, **GD),
    "trees": Staged(HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)),
    "trees of classes": Staged(
        HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5)
    ),
    "extra trees": Staged(ExtraTreesRegressor(4, random_state=0)),
}
CLASSES = ("logistic", "logistic newton", "svc", "trees of classes")


def bootstraps(rng, n_folds=3):
    """Rows drawn with replacement, and rows not drawn, of which one is there twice."""
    splits = []
    for _ in range(n_folds):
        train = rng.integers(N_ROWS, size=N_ROWS)
        test = np.setdiff1d(np.arange(N_ROWS), train)
        splits.append((train, np.append(test, test[:2])))
    return splits


def drawn(rng, name):
    X = rng.standard_normal((N_ROWS, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(N_ROWS)
    if name in CLASSES:
        return X, (y > 0).astype(int)
    return X, rng.poisson(np.exp(0.5 * y)) if name == "poisson" else y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_row_that_is_drawn_twice_counts_twice(name, weighted, rng):
    X, y = drawn(rng, name)
    weights = rng.integers(1, 4, N_ROWS).astype(float) if weighted else np.ones(N_ROWS)
    splits, losses = bootstraps(rng), []
    for train, test in splits:
        alone = clone(MODELS[name]).fit(
            X[train], y[train], sample_weight=weights[train]
        )
        losses.append(alone.staged_loss(X[test], y[test], weights[test]))
    shares = [weights[test].sum() for _, test in splits]
    expected = np.average(losses, axis=0, weights=shares)
    model = clone(MODELS[name]).set_params(cv=splits).fit(X, y, sample_weight=weights)
    # No stage of trees is the mean, which only the path has.
    found = model.cv_path_[len(model.cv_path_) - len(expected) :]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    held_out = np.concatenate([test for _, test in splits])
    np.testing.assert_array_equal(np.concatenate(model.cv_indices_), held_out)
    assert len(model.cv_target_) == len(held_out)


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "gd"},
        {"solver": "gd", "fit_intercept": False, "alpha": 0.5},
        {"solver": "nesterov", "loo": True},
        {"solver": "gd", "classes": 2},
    ],
    ids=str,
)
def test_functions_of_kernels(settings, rng):
    """A fold is the function of a fit to its rows: as many as there are in all."""
    settings = {"gamma": 0.3, "max_iter": 8, "patience": None, "loo": False} | settings
    settings |= {"step_size": 0.2, "n_components": 0}
    name = "logistic" if settings.pop("classes", 0) else "kernel"
    kind = KernelEigenProClassifier if name == "logistic" else KernelEigenProRegressor
    X, y = drawn(rng, name)
    splits, losses = bootstraps(rng), []
    for train, test in splits:
        alone = kind(**settings | {"loo": False}).fit(X[train], y[train])
        losses.append(alone.staged_loss(X[test], y[test]))
    model = kind(cv=splits, **settings).fit(X, y)
    expected = np.average(losses, axis=0, weights=[len(test) for _, test in splits])
    np.testing.assert_allclose(model.cv_path_, expected, rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        KernelEigenProRegressor(
            gamma=0.3,
            solver="gd",
            n_components=0,
            max_iter=20,
            patience=None,
            loo=False,
        ),
        IterativeRidge(1.0, max_iter=20, tol=0),
        TrajectoryLasso(0.01, max_iter=20, tol=0, standardize=True),
        TrajectoryLogisticRegression(C=1.0, solver="gd", max_iter=20, tol=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_the_step_is_stable_where_few_rows_are_drawn_often(model, rng):
    name = "logistic" if isinstance(model, TrajectoryLogisticRegression) else ""
    X, y = drawn(rng, name)
    train, test = np.repeat(np.arange(4), N_ROWS // 4), np.arange(4, N_ROWS)
    model = clone(model).set_params(cv=[(train, test)], loo=False).fit(X, y)
    alone = clone(model).set_params(cv=None, step_size=model.step_size_)
    alone.fit(X[train], y[train])
    expected = alone.staged_loss(X[test], y[test])
    np.testing.assert_allclose(model.cv_path_, expected, rtol=1e-6)
    assert alone.train_path_[-1] < alone.train_path_[0]


def test_more_columns_than_rows(rng):
    X, y = rng.standard_normal((N_ROWS, 100)), rng.standard_normal(N_ROWS)
    splits = bootstraps(rng, 1)
    ((train, test),) = splits
    model = IterativeRidge(2.0, cv=splits, max_iter=10, step_size=0.02, loo=False)
    alone = clone(model).set_params(cv=None).fit(X[train], y[train])
    expected = alone.staged_loss(X[test], y[test])
    np.testing.assert_allclose(model.fit(X, y).cv_path_, expected, rtol=1e-8)


def test_many_more_rows_than_columns(rng):
    """They are not replaced by few, where folds draw rows several times."""
    X = rng.standard_normal((2000, 2))
    y = X[:, 0] + rng.standard_normal(2000)
    train = rng.integers(1500, size=1500)
    test = rng.integers(1500, 2000, size=700)
    model = TrajectoryLasso(0.1, cv=[(train, test)], max_iter=10, step_size=0.3)
    alone = clone(model).set_params(cv=None).fit(X[train], y[train])
    expected = alone.staged_loss(X[test], y[test])
    np.testing.assert_allclose(model.fit(X, y).cv_path_, expected, rtol=1e-8)


def test_a_list_has_the_same_rows_in_every_model(rng):
    """A model and a member that is fitted in another way have one oracle."""
    X, y = drawn(rng, "list")
    splits = bootstraps(rng)
    members = [
        ("ridge", IterativeRidge(2.0, max_iter=10, step_size=0.05)),
        ("trees", HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5)),
    ]
    both = TrajectoryEarlyStoppingCV(members, cv=splits, rule="blend", random_state=0)
    both.fit(X, y)
    for name, model in (("ridge", members[0][1]), ("trees", Staged(members[1][1]))):
        alone = clone(model).set_params(cv=splits).fit(X, y)
        np.testing.assert_allclose(both.member_paths_[name], alone.cv_path_)
    parts = np.stack(
        [
            both.members_[name].cv_prediction_path_[both.members_[name].iteration_]
            for name in both.weights_
        ]
    )
    blended = np.array(list(both.weights_.values())) @ parts
    rows = np.concatenate([test for _, test in splits])
    assert both.best_score_ == pytest.approx(((y[rows] - blended) ** 2).mean())


@pytest.mark.parametrize(
    ("splits", "message"),
    [
        ([(range(30), range(30, 60)), (range(40), [3, 50])], "Fold 1 .* such as row 3"),
        ([(range(30), range(30, 61))], "Fold 0 .* beyond the 60"),
        ([(range(30), [-1])], "Fold 0 .* beyond the 60"),
        ([(range(30), [40.0])], "Fold 0 .*integers"),
        ([(range(30), [[40, 41]])], "Fold 0 .* 1d array"),
        ([(range(30), np.ones(20, dtype=bool))], "Fold 0 .*integers"),
    ],
)
@pytest.mark.parametrize("name", ["lasso", "trees"])
def test_folds_that_are_none(name, splits, message, rng):
    X, y = drawn(rng, name)
    model = clone(MODELS[name]).set_params(cv=splits)
    before = vars(model).copy()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(ValueError, match=message):
        TrajectoryEarlyStoppingCV(clone(MODELS[name]), cv=splits).fit(X, y)
    assert vars(model) == before


def test_masks_are_row_numbers(rng):
    X, y = drawn(rng, "lasso")
    is_first = np.arange(N_ROWS) < 40
    masks, numbers = (
        clone(MODELS["lasso"]).set_params(cv=[split]).fit(X, y).cv_path_
        for split in ((is_first, ~is_first), (range(40), range(40, N_ROWS)))
    )
    np.testing.assert_array_equal(masks, numbers)
