"""Quantiles and expectiles of other libraries' boosted trees, of several levels."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import mean_pinball_loss
from sklearn.model_selection import KFold

from skacv import SelfStoppingQuantileRegressor, Staged, TrajectoryEarlyStoppingCV

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


# ------------------------------------------------------------------ several at once

SEVERAL = {
    "XGBRegressor": {"objective": "reg:quantileerror", "quantile_alpha": [0.2, 0.8]},
    "CatBoostRegressor": {"loss_function": "MultiQuantile:alpha=0.2,0.8"},
}


@pytest.mark.parametrize("name", SEVERAL)
def test_stages_of_several_levels_are_judged_by_their_mean_loss(name, rng):
    """By refits of fewer trees on the folds, with the library alone."""
    X, y = drawn(rng)
    weights = rng.uniform(0.5, 2, len(y))
    model = Staged(booster(name, **SEVERAL[name]), cv=FOLDS)
    model.fit(X, y, sample_weight=weights)
    assert model.predict(X).shape == (len(y), 2)
    assert model.cv_prediction_path_.shape == (21, len(y), 2)
    for t in (1, 7, 20):
        losses, sizes = [], []
        for fitted, judged in FOLDS.split(X):
            refit = booster(name, **SEVERAL[name]).set_params(n_estimators=t)
            refit.fit(X[fitted], y[fitted], sample_weight=weights[fitted])
            quantiles = refit.predict(X[judged])
            by_level = [
                mean_pinball_loss(
                    y[judged], column, alpha=level, sample_weight=weights[judged]
                )
                for level, column in zip([0.2, 0.8], quantiles.T)
            ]
            losses.append(np.mean(by_level))
            sizes.append(weights[judged].sum())
        expected = np.average(losses, weights=sizes)
        np.testing.assert_allclose(model.cv_path_[t], expected, rtol=1e-5)
    stopped = TrajectoryEarlyStoppingCV(booster(name, **SEVERAL[name]), cv=FOLDS)
    stopped.fit(X, y, sample_weight=weights)
    assert stopped.best_iter_ == model.cv_path_.argmin()
    assert stopped.best_score_ == pytest.approx(model.cv_path_.min(), rel=1e-10)
    assert np.isfinite(stopped.best_score_corrected_)
    assert stopped.held_out_prediction_.shape == (len(y), 2)
    assert stopped.leaderboard()["metric"][0] == "mean pinball loss"
    with pytest.raises(AttributeError, match="several quantiles itself"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="several levels of one target"):
        model.fit(X, np.stack([y, y], axis=1))


@pytest.mark.parametrize("name", SEVERAL)
def test_one_run_for_all_levels(name, rng):
    X, y = drawn(rng)
    levels = [0.1, 0.5, 0.9]
    model = SelfStoppingQuantileRegressor(
        booster(name, **SEVERAL[name]), levels=levels, cv=FOLDS
    ).fit(X, y)
    (run,) = model.models_
    of_levels = {"quantile_alpha": levels}
    if name == "CatBoostRegressor":
        of_levels = {"loss_function": "MultiQuantile:alpha=0.1,0.5,0.9"}
    alone = booster(name, **SEVERAL[name] | of_levels).set_params(
        n_estimators=run.best_iter_
    )
    expected = np.sort(alone.fit(X, y).predict(X), axis=1)
    np.testing.assert_allclose(model.predict_quantiles(X), expected, rtol=1e-5)
    assert model.held_out_prediction_.shape == (len(y), 3)
    np.testing.assert_allclose(
        model.held_out_loss_,
        [
            mean_pinball_loss(y, column, alpha=level)
            for level, column in zip(levels, model.held_out_prediction_.T)
        ],
    )
    assert model.predict_interval(X, 0.8).shape == (len(y), 2)
    board = model.leaderboard()
    assert len(board) == 1
    assert np.isnan(board["level"]).all()
    small = pickle.loads(pickle.dumps(model.drop_record()))
    np.testing.assert_array_equal(
        small.predict_quantiles(X), model.predict_quantiles(X)
    )
    members = [("several", booster(name, **SEVERAL[name])), ("one", booster(name))]
    with pytest.raises(ValueError, match="'several' predict several levels at once"):
        SelfStoppingQuantileRegressor(members, levels=levels).fit(X, y)
