"""feature_importances_ and coef_ of what is kept, and scikit-learn's selections."""

import numpy as np
import pytest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)

MODELS = {
    "forest": RandomForestRegressor(10, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=15, random_state=0),
    "lasso": TrajectoryLasso("path", max_iter=10),
    "classifier": ExtraTreesClassifier(10, random_state=0),
}


@pytest.fixture
def data(rng):
    """Two columns of six matter, by far."""
    X = rng.standard_normal((120, 6))
    return X, 3 * X[:, 1] - 3 * X[:, 4] + 0.1 * rng.standard_normal(120)


def stopped(name, y):
    is_of_classes = name == "classifier"
    cls = SelfStoppingClassifier if is_of_classes else SelfStoppingRegressor
    return cls(MODELS[name], random_state=0), y > 0 if is_of_classes else y


@pytest.mark.parametrize("name", ["forest", "boosting"])
def test_importances_are_those_of_so_many_trees(name, data):
    """As many as were chosen, fitted by the estimator alone."""
    model, y = stopped(name, data[1])
    model.fit(data[0], y)
    alone = type(MODELS[name])(random_state=0, n_estimators=model.best_iter_)
    expected = alone.fit(data[0], y).feature_importances_
    np.testing.assert_allclose(model.feature_importances_, expected)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("selection", [SelectFromModel, RFE])
def test_features_are_selected(selection, name, data):
    model, y = stopped(name, data[1])
    how = {"max_features": 2} if selection is SelectFromModel else {}
    how = how or {"n_features_to_select": 2}
    selected = selection(model, **how).fit(data[0], y)
    assert selected.get_support(indices=True).tolist() == [1, 4]
    assert selected.transform(data[0]).shape == (120, 2)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (HistGradientBoostingRegressor(max_iter=5), "HistGradientBoostingRegressor"),
        (make_pipeline(StandardScaler(), MODELS["forest"]), "Pipeline"),
        (TrajectoryLasso("path", max_iter=5), "TrajectoryLasso"),
    ],
)
def test_other_models_have_none(model, name, data):
    fitted = TrajectoryEarlyStoppingCV(model).fit(*data)
    assert not hasattr(fitted, "feature_importances_")
    with pytest.raises(AttributeError, match=f"{name}, has no .*: permutation_import"):
        _ = fitted.feature_importances_


def test_blends_have_none(data):
    members = [("ridge", IterativeRidge(0.0)), ("forest", MODELS["forest"])]
    X, y = data
    y = y + np.sign(X[:, 0] * X[:, 2])
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="BlendedRegressor, has no feature_imp"):
        _ = model.feature_importances_


def test_there_are_none_before_fit():
    with pytest.raises(NotFittedError):
        _ = SelfStoppingRegressor(MODELS["forest"]).feature_importances_
