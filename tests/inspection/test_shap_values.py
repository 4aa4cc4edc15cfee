"""SHAP values of a blend are those that all subsets of the columns give."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import PoissonRegressor, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.inspection import blend_shap_values

N_COLUMNS = 4
TREES = {"max_iter": 30, "min_samples_leaf": 5, "random_state": 0}


def shapley_values(predict, X, background):
    """By Shapley's formula over all subsets, and the base value last.

    Columns that are not in a subset have the values of every row of the background.
    Shapes: X (n, p), returned (n[, n_outputs], p + 1).
    """
    p, means = X.shape[1], {}
    for size in range(p + 1):
        for subset in combinations(range(p), size):
            mixed = np.repeat(background[None], len(X), axis=0)
            mixed[..., list(subset)] = X[:, None, list(subset)]
            found = np.asarray(predict(mixed.reshape(-1, p)))
            found = found.reshape(*mixed.shape[:2], *found.shape[1:])
            means[frozenset(subset)] = found.mean(axis=1)
    values = []
    for column in range(p):
        total = 0.0
        for subset, mean in means.items():
            if column not in subset:
                weight = 1 / (p * comb(p - 1, len(subset)))
                total = total + weight * (means[subset | {column}] - mean)
        values.append(total)
    return np.stack([*values, means[frozenset()]], axis=-1)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((80, N_COLUMNS))
    y = np.sin(2 * X[:, 0]) * X[:, 1] + X[:, 2] + 0.2 * rng.standard_normal(80)
    return X, y


def blended(members, X, y, **settings):
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0)
    model.set_params(**settings).fit(X, y)
    assert np.count_nonzero(list(model.weights_.values())) == len(members)
    return model


def test_they_are_those_of_all_subsets(data):
    X, y = data
    members = [
        ("ridge", IterativeRidge(0.0)),
        ("scaled", make_pipeline(StandardScaler(), Ridge(20.0))),
        ("trees", HistGradientBoostingRegressor(**TREES)),
    ]
    # Weights of equal members would be zero for one of them.
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0).fit(X, y)
    rows, background = X[:5], X[::7]
    trees = shapley_values(model.members_["trees"].predict, rows, background)
    values, base = blend_shap_values(
        model, rows, {"trees": trees}, background=background
    )
    expected = shapley_values(model.predict, rows, background)
    np.testing.assert_allclose(values, expected[:, :-1], atol=1e-10)
    np.testing.assert_allclose(base, expected[:, -1])
    np.testing.assert_allclose(base + values.sum(axis=1), model.predict(rows))
    assert 0 < model.weights_["trees"] < 1
    with pytest.raises(ValueError, match=r"lack the member 'trees' .HistGradientBoost"):
        blend_shap_values(model, rows, background=background)
    with pytest.raises(ValueError, match=r"linear member .* pass background"):
        blend_shap_values(model, rows, {"trees": trees})


def test_several_targets_have_values_each(data):
    X, y = data
    Y = np.column_stack([y, X[:, 3] - y])
    members = [("a", IterativeRidge(0.0)), ("b", make_pipeline(PCA(2), Ridge(5.0)))]
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0).fit(X, Y)
    projected = shapley_values(model.members_["b"].predict, X[:3], X[:9])
    values, base = blend_shap_values(model, X[:3], {"b": projected}, background=X[:9])
    expected = shapley_values(model.predict, X[:3], X[:9])
    np.testing.assert_allclose(values, expected[..., :-1], atol=1e-10)
    np.testing.assert_allclose(base, expected[..., -1])
    assert values.shape == (3, 2, N_COLUMNS)


def test_encoded_columns_are_added_up_by_the_column_of_X(data, rng):
    X, y = data
    table = pd.DataFrame(X, columns=["a", "b", "a_b", "c"])
    # Names of levels and columns may be those of other columns.
    table["a"] = rng.choice(["b", "other", "third"], 80)
    table.loc[::9, "b"] = np.nan
    y = y + 2 * (table["a"] == "b")
    members = [
        ("ridge", IterativeRidge(0.0)),
        ("lasso", TrajectoryLasso(0.05, standardize=True)),
        ("once", Ridge(30.0)),
    ]
    model = TrajectoryEarlyStoppingCV(
        members, rule="blend", encoder=TableEncoder(), random_state=0
    ).fit(table, y)
    values, base = blend_shap_values(model, table[:6], background=table)
    np.testing.assert_allclose(base + values.sum(axis=1), model.predict(table[:6]))
    np.testing.assert_allclose(base, model.predict(table).mean())
    # Of a sum of functions of single columns a value is that of its column.
    for column, name in enumerate(table):
        changed = table[:1].drop(columns=name).join(table[[name]], how="cross")
        others = model.predict(changed[list(table)]).mean()
        expected = model.predict(table[:1])[0] - others
        assert values[0, column] == pytest.approx(expected)


def test_probabilities_are_explained_by_probabilities(data):
    X, y = data
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    members = [
        ("logistic", TrajectoryLogisticRegression("path")),
        ("trees", HistGradientBoostingClassifier(**TREES)),
    ]
    model = blended(members, X, labels)
    given = {
        name: shapley_values(member.predict_proba, X[:4], X[:8])
        for name, member in model.members_.items()
    }
    values, base = blend_shap_values(model, X[:4], given)
    expected = shapley_values(model.predict_proba, X[:4], X[:8])
    np.testing.assert_allclose(values, expected[..., :-1], atol=1e-10)
    np.testing.assert_allclose(base, expected[..., -1])
    with pytest.raises(ValueError, match=r"lack the member 'trees': .* log odds"):
        blend_shap_values(model, X[:4], {"logistic": given["logistic"]})
    member = model.members_["trees"]
    decisions = shapley_values(member.estimator_.decision_function, X[:4], X[:8])
    with pytest.raises(ValueError, match=r"'trees' add up to .* not of log odds"):
        blend_shap_values(model, X[:4], given | {"trees": decisions})


def test_what_is_no_explanation_is_refused(data, rng):
    X, y = data
    members = [("lasso", TrajectoryLasso("path")), ("rest", IterativeRidge(0.0))]
    model = TrajectoryEarlyStoppingCV(members, rule="min")
    with pytest.raises(TypeError, match=r"must be a .* got Ridge"):
        blend_shap_values(Ridge(), X, background=X)
    with pytest.raises(NotFittedError):
        blend_shap_values(model, X, background=X)
    model.set_params(random_state=0).fit(X, y)
    # The only member that is kept has weight one.
    values, base = blend_shap_values(model, X, background=X)
    np.testing.assert_allclose(base + values.sum(axis=1), model.predict(X))
    with pytest.raises(ValueError, match=r"no members .'forest'."):
        blend_shap_values(model, X, {"forest": values}, background=X)
    with pytest.raises(ValueError, match=r"the shape \(80, 5\): .* got \(80, 4\)"):
        blend_shap_values(model, X, {model.best_member_: values})
    counts = rng.poisson(np.exp(y / 2))
    members = [
        ("path", TrajectoryPoissonRegressor("path")),
        ("once", PoissonRegressor(alpha=1.0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, random_state=0).fit(X, counts)
    with pytest.raises(ValueError, match=r"add up to .* not of .* a logarithm"):
        blend_shap_values(model, X, background=X)
    mixed = make_pipeline(PCA(3), Ridge())
    model = TrajectoryEarlyStoppingCV([("mixed", mixed)]).fit(X, y)
    with pytest.raises(ValueError, match=r"PCA of the member 'mixed' does not say"):
        blend_shap_values(model, X, background=X)
