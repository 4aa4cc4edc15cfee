"""The display has importances of scikit-learn, on rows that models have not seen."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.model_selection import KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skacv import (
    IterativeRidge,
    PermutationImportanceDisplay,
    TrajectoryEarlyStoppingCV,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

FOLDS = KFold(4, shuffle=True, random_state=0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.fixture
def data(rng):
    """The second of four columns matters most, then the fourth."""
    X = rng.standard_normal((120, 4))
    return X, 3 * X[:, 1] + X[:, 3] + 0.5 * rng.standard_normal(120)


def forest(n_trees=10):
    return RandomForestRegressor(n_trees, random_state=0)


def blend():
    members = [("ridge", IterativeRidge(0.0, max_iter=30)), ("forest", forest())]
    return TrajectoryEarlyStoppingCV(members, rule="blend", cv=FOLDS, random_state=0)


def displayed(*args, **settings):
    draw = PermutationImportanceDisplay.from_estimator
    return draw(*args, random_state=0, **settings)


def test_importances_of_a_blend_on_new_rows(data):
    X, y = data
    model = blend().fit(X[:80], y[:80])
    display = displayed(model, X[80:], y[80:], n_repeats=3)
    expected = permutation_importance(
        model, X[80:], y[80:], n_repeats=3, random_state=0
    )
    np.testing.assert_array_equal(display.importances, expected.importances)
    drawn = np.sort(expected.importances_mean)[::-1]
    np.testing.assert_allclose(display.points_.get_xdata(), drawn)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names[:2] == ["feature 1", "feature 3"]
    assert display.ax_.get_title(loc="left").startswith("TrajectoryEarlyStoppingCV:")
    assert display.ax_.get_xlabel() == "decrease of the score, mean ± s.d."
    assert display.figure_ is display.ax_.figure


def test_a_scorer_is_named(data):
    X, y = data
    model = blend().fit(X[:80], y[:80])
    how = {"scoring": "neg_mean_absolute_error", "n_repeats": 2}
    display = displayed(model, X[80:], y[80:], **how)
    expected = permutation_importance(model, X[80:], y[80:], random_state=0, **how)
    np.testing.assert_array_equal(display.importances, expected.importances)
    assert "neg_mean_absolute_error" in display.ax_.get_xlabel()


def test_of_two_strings_the_second_is_positive(data):
    X, y = data
    y = (y > 1).astype(int)
    forest = RandomForestClassifier(10, random_state=0)
    found = []
    for labels in (y, np.where(y == 1, "yes", "no")):
        model = clone(forest).fit(X[:80], labels[:80])
        display = displayed(model, X[80:], labels[80:], scoring="average_precision")
        found.append(display.importances)
    np.testing.assert_array_equal(*found)


def test_training_rows_are_held_out_in_folds(data):
    X, y = data
    model = blend()
    display = displayed(model, X, y, cv=FOLDS, n_repeats=2)
    fitted = cross_validate(
        model, X, y, cv=FOLDS, return_estimator=True, return_indices=True
    )
    expected = [
        permutation_importance(each, X[rows], y[rows], n_repeats=2, random_state=0)
        for each, rows in zip(fitted["estimator"], fitted["indices"]["test"])
    ]
    expected = np.hstack([each.importances for each in expected])
    np.testing.assert_allclose(display.importances, expected)
    assert not hasattr(model, "estimator_")  # clones have been fitted


def test_memorised_columns_matter_on_training_rows_only(rng):
    """A forest of noise."""
    X, y = rng.standard_normal((100, 3)), rng.standard_normal(100)
    model = TrajectoryEarlyStoppingCV(forest(), rule="min", cv=FOLDS).fit(X, y)
    on_training_rows = displayed(model, X, y).importances.mean()
    held_out = displayed(model, X, y, cv=FOLDS).importances.mean()
    assert held_out < 0.15 < 0.3 < on_training_rows


def test_columns_are_those_of_the_frame_that_is_passed(rng):
    """Whatever is encoded inside the estimator."""
    kind = rng.choice(["low", "middle", "high"], 90)
    frame = pd.DataFrame({"size": rng.standard_normal(90), "kind": kind})
    y = pd.Series(np.where(kind == "high", 2.0, 0.0) + 0.1 * frame["size"])
    one_hot = OneHotEncoder(), ["kind"]
    encoding = make_column_transformer(one_hot, remainder="passthrough")
    encoded = make_pipeline(encoding, TrajectoryEarlyStoppingCV(forest()))
    display = displayed(encoded, frame, y, cv=3)
    assert display.importances.shape == (2, 15)
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == ["kind", "size"]


def test_the_largest_are_drawn(data):
    X, y = data
    model = clone(blend()).fit(X[:80], y[:80])
    _, ax = plt.subplots()
    display = displayed(model, X[80:], y[80:], max_features=2, ax=ax)
    assert display.ax_ is ax
    assert len(display.points_.get_xdata()) == 2
    assert display.importances.shape == (4, 5)


def test_unseen_rows_need_a_fitted_model(data):
    with pytest.raises(NotFittedError):
        displayed(blend(), *data)
