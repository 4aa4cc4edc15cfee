"""Offsets of the rows: init_score, base_margin, baseline."""

import numpy as np
import pytest
import sklearn
from scipy.special import expit, softmax, xlogy
from sklearn.base import is_classifier
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline

from skacv import (
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryPoissonRegressor,
)
from tests.runs import InParts

from .cases import PLAIN, booster, by_hand, table

FOLDS = KFold(3, shuffle=True, random_state=0)
OFFSETS = {"XGB": "base_margin", "LGB": "init_score", "Cat": "baseline"}
POISSON = {
    "XGBRegressor": {"objective": "count:poisson"},
    "LGBMRegressor": {"objective": "poisson"},
    "CatBoostRegressor": {"loss_function": "Poisson"},
}


def half_poisson_deviance(y, mean):
    return np.mean(xlogy(y, y / mean) - y + mean)


# The class, its settings, its targets, predictions from sums, and their loss.
CASES = [
    *[(name, {}, "values", lambda sums: sums, mean_squared_error) for name in PLAIN],
    *[
        (name, settings, "exposed", np.exp, half_poisson_deviance)
        for name, settings in POISSON.items()
    ],
    *[
        (
            name,
            {},
            "two numbers",
            lambda sums: np.column_stack([expit(-sums), expit(sums)]),
            log_loss,
        )
        for name in ("XGBClassifier", "LGBMClassifier", "CatBoostClassifier")
    ],
    *[
        (name, {}, "three numbers", lambda sums: softmax(sums, axis=1), log_loss)
        for name in ("XGBClassifier", "LGBMClassifier", "CatBoostClassifier")
    ],
]


def offset_name(name):
    return OFFSETS[name[:3]]


def data(targets):
    rng = np.random.default_rng(3)
    X, y = table("counts" if targets == "exposed" else targets)
    offset = rng.normal(0, 2, (len(y), 3) if targets == "three numbers" else len(y))
    if targets == "exposed":
        y = rng.poisson(np.exp(np.nan_to_num(X[:, 0]) + offset))
    return X, y, offset


def sums(estimator, X, offset):
    """Sums of trees and offsets, as the library has them."""
    library = type(estimator).__module__.partition(".")[0]
    if library == "xgboost":
        return estimator.predict(X, output_margin=True, base_margin=offset)
    if library == "lightgbm":
        return offset + estimator.predict(X, raw_score=True)
    return offset + estimator.predict(X, prediction_type="RawFormulaVal")


def held_out_by_hand(inner, t, X, y, offset, splits, before=None):
    """Sums of trees and offsets of held-out rows, by fits with so many trees."""
    found = []
    for fitted, judged in splits:
        rows = X
        if before is not None:
            rows = before.fit(X[fitted]).transform(X)
        own = {offset_name(type(inner).__name__): offset}
        fresh = by_hand(inner, t, rows, y, fitted, **own)
        found.append(sums(fresh, rows[judged], offset[judged]))
    return np.concatenate(found)


@pytest.mark.filterwarnings("ignore:The y_prob values do not sum to one")
@pytest.mark.parametrize(
    ("name", "settings", "targets", "response", "loss"),
    CASES,
    ids=lambda value: str(value) if isinstance(value, str) else "",
)
def test_held_out_rows_have_their_offsets(name, settings, targets, response, loss):
    X, y, offset = data(targets)
    inner, own = booster(name, **settings), {offset_name(name): offset}
    model = Staged(inner, cv=FOLDS).fit(X, y, **own)
    splits, everything = list(FOLDS.split(X)), np.arange(len(y))
    judged = np.concatenate([judged for _, judged in splits])
    for t in (1, 5, 12):
        expected = response(held_out_by_hand(inner, t, X, y, offset, splits))
        found = model.cv_prediction_path_[t]
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)
        expected = loss(y[judged], expected.astype(float))
        assert model.cv_path_[t] == pytest.approx(expected, rel=1e-6)
        fresh = by_hand(inner, t, X, y, everything, **own)
        expected = loss(y, response(sums(fresh, X, offset)).astype(float))
        assert model.train_path_[t] == pytest.approx(expected, rel=1e-6)
        # Without its offset a new row is predicted as the library does it.
        np.testing.assert_array_equal(
            model.at_iteration(t).predict(X), fresh.predict(X)
        )
    staged = (
        model.staged_predict_proba if is_classifier(inner) else model.staged_predict
    )
    plain = fresh.predict_proba(X) if is_classifier(inner) else fresh.predict(X)
    *_, last = staged(X)
    np.testing.assert_allclose(last, plain, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *[(name, how) for name in POISSON for how in ("itself", "step")],
        # CatBoost's estimators have no set_fit_request.
        *[(name, "routed") for name in ("XGBRegressor", "LGBMRegressor")],
        ("LGBMRegressor", "other name"),
    ],
)
def test_the_loss_with_offsets_chooses(name, how):
    X, y, offset = data("exposed")
    inner, own = booster(name, 60, **POISSON[name]), offset_name(name)
    inner.set_params(learning_rate=0.5)
    settings = {"cv": FOLDS, "patience": None}
    before = SimpleImputer()
    with sklearn.config_context(
        enable_metadata_routing=how in ("routed", "other name")
    ):
        passed = own if how in ("itself", "routed") else "exposure"
        if how == "step":
            passed = f"trees__{own}"
        elif how != "itself":
            request = True if how == "routed" else passed
            inner.set_fit_request(**{own: request})
        pipe = Pipeline([("fill", before), ("trees", inner)])
        model = TrajectoryEarlyStoppingCV(
            inner if how == "itself" else pipe, **settings
        ).fit(X, y, **{passed: offset})
    splits = list(FOLDS.split(X))
    judged = np.concatenate([judged for _, judged in splits])
    stages = (model.best_iter_ - 1, model.best_iter_, model.best_iter_ + 1, 60)
    first = None if how == "itself" else before
    found = [
        half_poisson_deviance(
            y[judged],
            np.exp(held_out_by_hand(inner, t, X, y, offset, splits, first)),
        )
        for t in stages
    ]
    assert 1 < model.best_iter_ < 60
    np.testing.assert_allclose(model.path_[list(stages)], found, rtol=1e-5)
    assert model.best_score_ == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize("name", PLAIN)
def test_predictions_that_are_not_kept_have_offsets(name, set_limits):
    X, y, offset = data("values")
    own = {offset_name(name): offset}
    kept = Staged(booster(name), cv=FOLDS).fit(X, y, **own).cv_prediction_path_[:]
    set_limits(MEMORY_BYTES=4 * 8 * 10)
    model = Staged(booster(name), cv=FOLDS)
    parts = InParts(model, X, y, **own)
    for t in (4, 12):
        parts.go_on(t)
    for stages in (slice(7, 9), slice(2, 12), slice(None, None, -3)):
        np.testing.assert_array_equal(model.cv_prediction_path_[stages], kept[stages])


def test_scorers_see_offsets():
    X, y, offset = data("exposed")
    model = TrajectoryEarlyStoppingCV(
        booster("LGBMRegressor", objective="poisson"),
        cv=FOLDS,
        criterion="neg_mean_poisson_deviance",
    ).fit(X, y, init_score=offset)
    by_loss = Staged(booster("LGBMRegressor", objective="poisson"), cv=FOLDS)
    by_loss.fit(X, y, init_score=offset)
    np.testing.assert_allclose(model.path_[1:], -2 * by_loss.cv_path_[1:])


def test_members_with_and_without_offsets_are_compared():
    X, y, offset = data("exposed")
    X = np.nan_to_num(X)
    with sklearn.config_context(enable_metadata_routing=True):
        trees = booster("LGBMRegressor", 60, objective="poisson")
        trees.set_fit_request(init_score=True)
        linear = TrajectoryPoissonRegressor("path", solver="newton")
        members = [("linear", linear), ("trees", trees)]
        model = TrajectoryEarlyStoppingCV(members, cv=FOLDS)
        model.fit(X, y, init_score=offset)
        alone = TrajectoryEarlyStoppingCV(trees, cv=FOLDS).fit(X, y, init_score=offset)
        blend = TrajectoryEarlyStoppingCV(members, cv=FOLDS, rule="blend")
        with pytest.raises(ValueError, match="without init_score, which fit passes to"):
            blend.fit(X, y, init_score=offset)
    assert not hasattr(blend, "best_iter_")
    assert model.best_member_ == "trees"  # which know the exposure
    assert model.best_score_ == pytest.approx(alone.best_score_)


def test_predictions_of_xgboost_take_offsets():
    X, y, offset = data("values")
    own = {"base_margin": offset}
    model = TrajectoryEarlyStoppingCV(booster("XGBRegressor", 200), cv=FOLDS)
    model.fit(X, y, **own)
    inner = booster("XGBRegressor")
    fresh = by_hand(inner, model.best_iter_, X, y, np.arange(len(y)), **own)
    np.testing.assert_array_equal(
        model.estimator_.estimator_.predict(X, **own), fresh.predict(X, **own)
    )


@pytest.mark.parametrize("name", PLAIN)
def test_what_would_leave_offsets_out_is_refused(name):
    X, y, offset = data("values")
    own = offset_name(name)
    model = TrajectoryEarlyStoppingCV(booster(name), cv=FOLDS)
    model.fit(X, y, **{own: offset})
    for fitted in (model, model.estimator_, model.at_iteration(3)):
        with pytest.raises(ValueError, match=f"predict_interval cannot add {own}"):
            fitted.predict_interval(X)
    with pytest.raises(ValueError, match=f"staged_loss cannot add {own}"):
        model.estimator_.staged_loss(X, y)
    model.fit(X, y)
    assert model.predict_interval(X).shape == (len(y), 2)
    assert len(model.estimator_.staged_loss(X, y)) == model.best_iter_


@pytest.mark.parametrize("name", PLAIN)
def test_bad_offsets_are_refused(name):
    X, y, offset = data("values")
    own, model = offset_name(name), Staged(booster(name), cv=FOLDS)
    for bad, message in [
        (offset[:-1], rf"{own} must have shape \(150,\), or \(150, n\)"),
        (1.0, rf"{own} must have shape .* got \(\)"),
        (np.zeros((150, 2, 2)), f"{own} must have shape"),
        (np.r_[np.nan, offset[1:]], f"{own} contains NaN"),
        (np.r_[np.inf, offset[1:]], f"{own} contains infinity"),
        (["a"] * 150, "could not convert string to float"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(X, y, **{own: bad})
    assert not hasattr(model, "estimator_")
    plain = Staged(booster(name), cv=FOLDS).fit(X, y)
    model.fit(X, y, **{own: None})
    np.testing.assert_array_equal(model.cv_path_, plain.cv_path_)
    listed = Staged(booster(name), cv=FOLDS).fit(X, y, **{own: list(offset)})
    model.fit(X, y, **{own: offset})
    np.testing.assert_array_equal(model.cv_path_, listed.cv_path_)


def test_members_by_default_take_no_offsets():
    X, y, offset = data("values")
    with pytest.raises(TypeError, match="init_score"):
        SelfStoppingRegressor().fit(np.nan_to_num(X), y, init_score=offset)


# ------------------------------------------------------------------ other parameters


@pytest.mark.filterwarnings("ignore:`feature_weights` in `fit`")
def test_values_of_columns_are_not_those_of_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 40))  # as many columns as rows
    y = X[:, 3] + X[:, 30]
    weights = np.where(np.arange(40) == 3, 1.0, 1e-3)
    inner = booster("XGBRegressor", 4, colsample_bytree=0.3)
    model = Staged(inner, cv=KFold(2)).fit(X, y, feature_weights=weights)
    for fitted, judged in KFold(2).split(X):
        fresh = type(inner)(**inner.get_params()).fit(
            X[fitted], y[fitted], feature_weights=weights
        )
        np.testing.assert_array_equal(
            model.cv_prediction_path_[4][judged], fresh.predict(X[judged])
        )


@pytest.mark.parametrize(
    ("library", "table_of", "name"),
    [
        ("catboost", "Pool", "CatBoostRegressor"),
        ("xgboost", "DMatrix", "XGBRegressor"),
        ("lightgbm", "Dataset", "LGBMRegressor"),
    ],
)
def test_tables_of_the_libraries_are_refused(library, table_of, name):
    X, y = table()
    X = getattr(pytest.importorskip(library), table_of)(X, y)
    for model in (Staged(booster(name)), TrajectoryEarlyStoppingCV(booster(name))):
        with pytest.raises(TypeError, match=f"X is a {table_of}, which folds"):
            model.fit(X, y)
