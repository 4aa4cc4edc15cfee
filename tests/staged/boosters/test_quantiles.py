"""Quantiles and expectiles of other libraries' boosted trees, of several levels."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from skacv import SelfStoppingQuantileRegressor, TrajectoryEarlyStoppingCV

FOLDS = KFold(3, shuffle=True, random_state=0)
LIBRARIES = {
    "LGBMRegressor": ("lightgbm", {"num_leaves": 4, "verbose": -1, "n_jobs": 1}),
    "XGBRegressor": ("xgboost", {"max_depth": 2, "n_jobs": 1}),
    "CatBoostRegressor": ("catboost", {"depth": 2, "thread_count": 1, "verbose": 0}),
}


def booster(name, **params):
    module, settings = LIBRARIES[name]
    cls = getattr(pytest.importorskip(module), name)
    return cls(n_estimators=20, **settings, **params)


def drawn(rng, n_rows=120):
    X = rng.random((n_rows, 3))
    return X, X[:, 0] + (0.1 + X[:, 1]) * rng.standard_normal(n_rows)


@pytest.mark.filterwarnings("ignore:Found 'loss' in params")  # by LightGBM
@pytest.mark.parametrize(
    ("name", "loss", "of_level"),
    [
        (
            "LGBMRegressor",
            "quantile",
            lambda level: {"objective": "quantile", "alpha": level},
        ),
        (
            "XGBRegressor",
            "quantile",
            lambda level: {"objective": "reg:quantileerror", "quantile_alpha": level},
        ),
        (
            "CatBoostRegressor",
            "quantile",
            lambda level: {"loss_function": f"Quantile:alpha={level}"},
        ),
        (
            "CatBoostRegressor",
            "expectile",
            lambda level: {"loss_function": f"Expectile:alpha={level}"},
        ),
    ],
)
def test_levels_are_models_of_their_own(name, loss, of_level, rng):
    X, y = drawn(rng)
    levels = [0.2, 0.8]
    model = SelfStoppingQuantileRegressor(
        booster(name), levels=levels, loss=loss, cv=FOLDS
    ).fit(X, y)
    for level, fitted in zip(levels, model.models_):
        alone = TrajectoryEarlyStoppingCV(booster(name, **of_level(level)), cv=FOLDS)
        np.testing.assert_array_equal(fitted.path_, alone.fit(X, y).path_)
        np.testing.assert_array_equal(fitted.predict(X), alone.predict(X))
    # A parameter that names the loss by another of its names keeps that.
    if name != "XGBRegressor":
        key = "objective" if name == "CatBoostRegressor" else "loss"
        other = booster(name, **{key: next(iter(of_level(0.5).values()))})
        again = SelfStoppingQuantileRegressor(
            other, levels=levels, loss=loss, cv=FOLDS
        ).fit(X, y)
        np.testing.assert_array_equal(
            again.held_out_prediction_, model.held_out_prediction_
        )


@pytest.mark.parametrize("name", ["LGBMRegressor", "XGBRegressor"])
def test_offsets_of_a_booster_are_refused_with_the_way_out(name, rng):
    X, y = drawn(rng)
    offset = rng.uniform(5, 9, len(X))
    model = SelfStoppingQuantileRegressor(booster(name), levels=[0.1, 0.9], cv=FOLDS)
    key = "init_score" if name == "LGBMRegressor" else "base_margin"
    with pytest.raises(ValueError, match=f"cannot add {key}.* pass offset= to fit"):
        model.fit(X, y + offset, **{key: offset})
    assert not hasattr(model, "models_")
    model.fit(X, y + offset, offset=offset)
    lower, upper = model.predict_interval(X, 0.8, offset=offset).T
    assert 0.6 < np.mean((lower <= y + offset) & (y + offset <= upper)) < 0.97


def test_lightgbm_has_no_expectiles(rng):
    model = SelfStoppingQuantileRegressor(booster("LGBMRegressor"), loss="expectile")
    with pytest.raises(ValueError, match="LGBMRegressor has no expectile loss: use"):
        model.fit(*drawn(rng))
