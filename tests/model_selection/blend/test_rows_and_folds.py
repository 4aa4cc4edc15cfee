"""Blends of rows that are weighted, grouped, held out often or never."""

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold, RepeatedKFold

from skacv import IterativeRidge, KernelEigenProRegressor

from .cases import FOLDS, alone, blended, by_supports, held_out_errors, members

pytestmark = pytest.mark.usefixtures("weights_of_all_rows")


def test_rows_count_as_often_as_they_are_held_out(data):
    X, y = data
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=1)
    model = blended(members(), X, y, cv=cv)
    fitted = alone(members(), X, y, cv=cv)
    rows = np.hstack(fitted["lasso"].cv_indices_)
    assert len(rows) == 240
    errors = np.stack(
        [
            each.cv_prediction_path_[each.cv_path_.argmin()] - y[rows]
            for each in fitted.values()
        ],
        axis=1,
    )
    expected = by_supports(errors, np.ones(240))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    assert model.best_score_ == pytest.approx(np.mean((errors @ expected) ** 2))


def test_only_rows_that_all_have_held_out(rng):
    """The rows of a preconditioner's subsample are not among them."""
    X = rng.standard_normal((150, 5))
    y = X[:, 1] + np.sin(2 * X[:, 0]) + 0.5 * rng.standard_normal(150)
    pairs = [
        ("ridge", IterativeRidge(0.0, max_iter=40)),
        (
            "kernel",
            KernelEigenProRegressor(gamma=0.3, n_components=2, random_state=3),
        ),
    ]
    model = blended(pairs, X, y)
    fitted = alone(pairs, X, y)
    seen = fitted["kernel"].subsample_indices_
    assert len(seen)
    chosen = []
    for name, each in fitted.items():
        rows = np.hstack(each.cv_indices_)
        kept = np.flatnonzero(~np.isin(rows, seen))
        kept = kept[np.argsort(rows[kept])]
        path = np.mean((each.cv_prediction_path_ - y[rows])[:, kept] ** 2, axis=1)
        chosen.append((each.cv_prediction_path_ - y[rows])[path.argmin(), kept])
        assert model.members_[name].iteration_ == path.argmin()
    errors = np.transpose(chosen)
    expected = by_supports(errors, np.ones(len(errors)))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    assert model.best_score_ == pytest.approx(np.mean((errors @ expected) ** 2))


def test_groups(data):
    X, y = data
    groups = np.repeat(np.arange(30), 4)
    model = blended(members(), X, y, cv=GroupKFold(4), groups=groups)
    folds = model.members_["lasso"].cv_indices_
    assert [len(fold) for fold in folds] == [len(set(groups[f])) * 4 for f in folds]
    fitted = alone(members(), X, y, cv=list(GroupKFold(4).split(X, y, groups)))
    expected = by_supports(held_out_errors(fitted, y), np.ones(120))
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)


def test_rows_of_zero_weight_are_not_there(data):
    X, y = data
    rows = np.ones(120)
    rows[::5] = 0
    other = np.where(rows > 0, y, 1e3)
    found, expected = (blended(members(), X, t, sample_weight=rows) for t in (y, other))
    assert found.weights_ == expected.weights_
    assert found.best_score_corrected_ == expected.best_score_corrected_
    np.testing.assert_array_equal(found.predict(X), expected.predict(X))


def test_several_targets_have_the_same_weights(data, rng):
    X, y = data
    Y = np.stack([y, X[:, 3] + np.cos(X[:, 4]) + rng.standard_normal(120)], axis=1)
    pairs = members()[1:]
    model = blended(pairs, X, Y)
    fitted = alone(pairs, X, Y)
    errors = []
    for each in fitted.values():
        order = np.argsort(np.hstack(each.cv_indices_))
        found = each.cv_prediction_path_[each.cv_path_.argmin()][order]
        errors.append((found - Y).ravel())
    errors = np.transpose(errors)
    expected = by_supports(errors, np.ones(240))
    assert expected.min() > 0.05
    np.testing.assert_allclose(list(model.weights_.values()), expected, atol=1e-6)
    assert model.best_score_ == pytest.approx(np.mean((errors @ expected) ** 2))
    assert model.predict(X).shape == (120, 2)
    assert model.predict_interval(X[:5], [0.5, 0.9]).shape == (5, 2, 2, 2)


def test_the_best_combination_of_every_member(data):
    X, y = data
    grid = {"kernel__gamma": [0.01, 0.1, 1.0], "ridge__alpha": [0.0, 10.0]}
    model = blended(members(), X, y, param_grid=grid)
    own = pd.DataFrame(model.results_).groupby("member")
    best = {name: table.loc[table["best_score"].idxmin()] for name, table in own}
    for name, row in best.items():
        assert row["weight"] == model.weights_[name]
        assert own.get_group(name)["weight"].sum() == model.weights_[name]
        for key, value in row["params"].items():
            if key != "alpha":
                assert model.members_[name].get_params()[key] == value
    assert model.best_params_ == best[model.best_member_]["params"]
    plain = blended(
        [(name, each.set_params(cv=FOLDS)) for name, each in model.members_.items()],
        X,
        y,
    )
    np.testing.assert_allclose(
        list(plain.weights_.values()), list(model.weights_.values())
    )
