"""Stages of boosters are judged by the loss of their trees."""

import numpy as np
import pytest
from sklearn.metrics import (
    mean_pinball_loss,
    mean_poisson_deviance,
    mean_tweedie_deviance,
)

from skacv import Staged, TrajectoryEarlyStoppingCV
from skacv.optim.losses import (
    Gamma,
    Huber,
    Pinball,
    Poisson,
    PseudoHuber,
    SquaredError,
    Tweedie,
)
from skacv.staged.adapters import staged_adapter_of
from skacv.staged.losses import AbsoluteError, RelativeError
from tests.internals import loss_name

from .cases import booster, named, table


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBRegressor", {"objective": "reg:quantileerror", "quantile_alpha": 0.8}),
        ("LGBMRegressor", {"objective": "quantile", "alpha": 0.8}),
        ("CatBoostRegressor", {"loss_function": "Quantile:alpha=0.8"}),
        ("XGBRegressor", {"objective": "count:poisson"}),
        ("LGBMRegressor", {"objective": "poisson"}),
        ("CatBoostRegressor", {"loss_function": "Poisson"}),
    ],
    ids=named,
)
def test_stages_are_judged_by_the_loss_of_their_trees(name, settings):
    is_poisson = "poisson" in str(settings).lower()
    X, y = table("counts" if is_poisson else "values")
    model = Staged(booster(name, **settings), cv=3).fit(X, y)
    held_out = model.cv_prediction_path_[7].astype(float)
    expected = (
        mean_poisson_deviance(model.cv_target_, held_out) / 2
        if is_poisson
        else mean_pinball_loss(model.cv_target_, held_out, alpha=0.8)
    )
    assert model.cv_path_[7] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "settings", "loss"),
    [
        ("LGBMRegressor", {"objective": "quantile"}, Pinball(0.9)),
        ("CatBoostRegressor", {"loss_function": "Quantile"}, Pinball(0.5)),
        ("LGBMRegressor", {"objective": "mae"}, AbsoluteError()),
        ("LGBMRegressor", {"objective": "mape"}, RelativeError()),
        ("CatBoostRegressor", {"loss_function": "Huber:delta=2"}, Huber(2.0)),
        ("LGBMRegressor", {"objective": "huber"}, Huber(0.9)),
        (
            "LGBMRegressor",
            {"objective": "tweedie", "tweedie_variance_power": 1.2},
            Tweedie(1.2),
        ),
        (
            "LGBMRegressor",
            {"objective": "tweedie", "tweedie_variance_power": 1.0},
            Poisson(),
        ),
        (
            "CatBoostRegressor",
            {"loss_function": "Tweedie:variance_power=1.2"},
            Tweedie(1.2),
        ),
        ("LGBMRegressor", {"application": "poisson"}, Poisson()),
        ("LGBMRegressor", {"objective_type": "gamma"}, Gamma()),
        ("XGBRegressor", {"objective": "reg:pseudohubererror"}, PseudoHuber(1.0)),
        (
            "XGBRegressor",
            {"objective": "reg:pseudohubererror", "huber_slope": 0.3},
            PseudoHuber(0.3),
        ),
        ("XGBRegressor", {}, SquaredError()),
        ("LGBMRegressor", {}, SquaredError()),
        ("CatBoostRegressor", {}, SquaredError()),
    ],
    ids=named,
)
def test_losses_by_their_names(name, settings, loss):
    assert staged_adapter_of(booster(name, **settings)).regression_loss() == loss


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("CatBoostRegressor", {"loss_function": "Poisson"}, "y are negative"),
        (
            "CatBoostRegressor",
            {"loss_function": "Tweedie:variance_power=1.5"},
            "y are negative: targets of the half Tweedie deviance",
        ),
        (
            "LGBMRegressor",
            {"objective": "tweedie"},
            "targets of the half Tweedie deviance",
        ),
        (
            "LGBMRegressor",
            {"objective": "gamma"},
            "y are zero or negative: the half gamma",
        ),
        (
            "XGBRegressor",
            {"objective": "reg:gamma"},
            "zero or negative: the half gamma",
        ),
    ],
    ids=named,
)
def test_targets_without_a_deviance_are_refused(name, settings, message):
    X, y = table()
    model = Staged(booster(name, **settings), cv=3)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")
    X, y = table("positive")
    model.fit(X, y)
    if "amma" in str(settings):
        y[0] = 0.0
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)


@pytest.mark.parametrize(
    ("name", "settings", "power"),
    [
        ("XGBRegressor", {"objective": "reg:gamma"}, 2.0),
        ("LGBMRegressor", {"objective": "gamma"}, 2.0),
        ("XGBRegressor", {"objective": "reg:tweedie"}, 1.5),
        (
            "XGBRegressor",
            {"objective": "reg:tweedie", "tweedie_variance_power": 1.2},
            1.2,
        ),
        ("LGBMRegressor", {"objective": "tweedie"}, 1.5),
        ("CatBoostRegressor", {"loss_function": "Tweedie:variance_power=1.8"}, 1.8),
    ],
    ids=named,
)
def test_losses_are_half_the_deviances_of_metrics(name, settings, power):
    X, y = table("positive")
    model = Staged(booster(name, **settings), cv=3).fit(X, y)
    assert loss_name(model) == f"half {'gamma' if power == 2 else 'Tweedie'} deviance"
    for t in (1, 12):
        held_out = model.cv_prediction_path_[t].astype(float)
        expected = mean_tweedie_deviance(model.cv_target_, held_out, power=power) / 2
        assert model.cv_path_[t] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBClassifier", {}),
        ("LGBMClassifier", {}),
        ("CatBoostClassifier", {}),
        # These take shares themselves.
        ("XGBRegressor", {"objective": "reg:logistic"}),
        ("LGBMRegressor", {"objective": "cross_entropy"}),
    ],
    ids=named,
)
def test_shares_of_classes_by_cross_entropy(name, settings):
    X, signal = table("values")
    shares = 1 / (1 + np.exp(-signal))
    model = TrajectoryEarlyStoppingCV(booster(name, **settings), cv=3, random_state=0)
    held_out = model.fit(X, shares).held_out_prediction_.astype(np.float64)
    if "Classifier" in name:
        assert held_out.shape == (len(X), 2)
        held_out = held_out[:, 1]
    losses = shares * np.log(held_out) + (1 - shares) * np.log1p(-held_out)
    assert model.best_score_ == pytest.approx(-losses.mean(), rel=1e-5)
