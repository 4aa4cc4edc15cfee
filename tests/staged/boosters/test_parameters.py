"""Parameters of boosters: what is left out, and numbers of trees."""

import sys
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone

from skacv import Staged, TrajectoryEarlyStoppingCV
from skacv.staged.adapters import staged_adapter_of
from tests.internals import as_staged

from .cases import LIBRARIES, PLAIN, booster, named, table

# ------------------------------------------------------------------ what is left out


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("XGBRegressor", {"early_stopping_rounds": 3}),
        ("LGBMRegressor", {"early_stopping_round": 3}),
        ("LGBMRegressor", {"early_stopping_rounds": 3}),
        ("CatBoostRegressor", {"early_stopping_rounds": 3}),
        ("CatBoostRegressor", {"od_type": "Iter"}),
        ("CatBoostRegressor", {"eval_fraction": 0.3}),
    ],
    ids=named,
)
def test_their_own_early_stopping_is_switched_off(name, settings):
    X, y = table()
    ((key, value),) = settings.items()
    message = f"{key}={value!r} of {name} is switched off"
    with pytest.warns(UserWarning, match=message):
        model = Staged(booster(name, **settings), cv=3).fit(X, y)
    plain = Staged(booster(name), cv=3).fit(X, y)
    np.testing.assert_array_equal(model.cv_path_, plain.cv_path_)
    with pytest.warns(UserWarning, match=message):
        TrajectoryEarlyStoppingCV(booster(name, 200, **settings), cv=3).fit(X, y)


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("key", ["eval_set", "callbacks"])
def test_parameters_of_fit_that_are_refused(name, key):
    X, y = table()
    for model in (
        Staged(booster(name)),
        TrajectoryEarlyStoppingCV(booster(name), cv=2),
    ):
        with pytest.raises(ValueError, match=f"{key} cannot be passed to {name}"):
            model.fit(X, y, **{key: [(X, y)]})


@pytest.mark.parametrize(
    ("name", "settings", "instead"),
    [
        ("XGBRegressor", {"booster": "dart"}, "booster='gbtree'"),
        ("XGBRegressor", {"booster": "gblinear"}, "booster='gbtree'"),
        ("XGBRegressor", {"callbacks": [print]}, "callbacks=None"),
        ("LGBMRegressor", {"boosting_type": "dart"}, "boosting_type='gbdt'"),
        ("LGBMRegressor", {"boosting": "rf"}, "boosting='gbdt'"),
        (
            "CatBoostRegressor",
            {"grow_policy": "Lossguide"},
            "grow_policy='SymmetricTree'",
        ),
        ("CatBoostRegressor", {"model_shrink_rate": 0.1}, "model_shrink_rate=0"),
        ("CatBoostRegressor", {"save_snapshot": True}, "save_snapshot=False"),
        (
            "CatBoostRegressor",
            {"feature_border_type": "Uniform"},
            "feature_border_type='GreedyLogSum'",
        ),
        (
            "CatBoostRegressor",
            {"monotone_constraints": "(1,0,0,0)"},
            "model_shrink_rate=0",
        ),
    ],
    ids=named,
)
def test_boosters_without_stages_are_refused(name, settings, instead):
    with pytest.raises(ValueError, match=f"stage: use {instead}"):
        Staged(booster(name, **settings)).fit(*table())


@pytest.mark.parametrize(
    "name",
    [
        "XGBRFRegressor",
        "XGBRFClassifier",
    ],
)
def test_boosted_forests_are_not_fitted_in_stages(name):
    estimator = getattr(pytest.importorskip(LIBRARIES[name[:3]]), name)()
    assert staged_adapter_of(estimator) is None
    assert as_staged(estimator) is estimator
    with pytest.raises(ValueError, match="cannot be fitted stage by stage"):
        Staged(estimator).fit(*table())


@pytest.mark.parametrize("name", PLAIN)
def test_nothing_is_printed_or_written(name, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    quiet = {"verbose", "verbosity", "logging_level", "allow_writing_files"}
    inner = booster(name)
    cls = type(inner)
    settings = {k: v for k, v in inner.get_params().items() if k not in quiet}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Staged(cls(**settings), cv=2).fit(*table())
    assert not capfd.readouterr().out
    assert not list(tmp_path.iterdir())


def test_negative_verbosity_is_not_verbose():
    assert not as_staged(booster("LGBMRegressor", verbose=-1)).verbose
    assert as_staged(booster("LGBMRegressor", verbose=1)).verbose


# ------------------------------------------------------------------ numbers of trees


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("LGBMRegressor", "num_iterations"),
        ("LGBMRegressor", "num_boost_round"),
        ("CatBoostRegressor", "n_estimators"),
        ("CatBoostRegressor", "num_boost_round"),
    ],
)
def test_other_names_of_the_number_of_trees(name, count):
    X, y = table()
    estimator = type(booster(name))
    settings = booster(name).get_params()
    settings = {k: v for k, v in settings.items() if k not in ("iterations", count)}
    inner = estimator(**settings | {count: 7})
    model = TrajectoryEarlyStoppingCV(inner, cv=3).fit(X, y)
    assert model.estimator_.n_iter_ <= 7
    t = model.best_iter_
    assert model.best_params_ == {count: t}
    assert model.estimator_.estimator_.get_params()[count] == t
    fresh = clone(inner).set_params(**{count: t}).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))


@pytest.mark.parametrize(
    ("name", "n_stages"),
    [("XGBRegressor", 100), ("LGBMRegressor", 100), ("CatBoostRegressor", 1000)],
)
def test_numbers_of_trees_by_default(name, n_stages):
    estimator = type(booster(name))()
    assert staged_adapter_of(estimator).n_planned() == n_stages


def test_boosters_are_recognised_without_their_libraries(monkeypatch):
    for library, names in [
        ("xgboost", ("XGBRegressor", "XGBClassifier")),
        ("lightgbm", ("LGBMRegressor", "LGBMClassifier")),
        ("catboost", ("CatBoostRegressor", "CatBoostClassifier")),
    ]:
        monkeypatch.setitem(sys.modules, library, None)  # cannot be imported
        for name in names:
            own = type(name, (BaseEstimator,), {"__module__": f"{library}.sklearn"})
            kind = staged_adapter_of(type("Mine", (own,), {})())
            assert kind is not None
            assert kind.library == library
    other = type("XGBRegressor", (RegressorMixin, BaseEstimator), {})
    assert staged_adapter_of(other()) is None
