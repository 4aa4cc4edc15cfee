"""The call with nothing set on raw tables: every member, the same on other frames."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline

from skacv import (
    KernelEigenProRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.model_selection import TablePipeline
from tests.cases import covering, first
from tests.model_selection.cases import MEMBERS
from tests.tables.frames import TABLES

pytestmark = [
    pytest.mark.usefixtures("few_trees"),
    pytest.mark.filterwarnings("ignore:X (does not have|has) .*feature names"),
    pytest.mark.filterwarnings("ignore:The chosen iterate"),
]


def values_of(model, X):
    """What a regressor predicts, or the probabilities of a classifier."""
    return getattr(model, "predict_proba", model.predict)(X)


@covering(name=TABLES, kind=MEMBERS)
def test_every_member_takes_an_awkward_table(name, kind):
    table = TABLES[name]()
    y = table.y if kind is SelfStoppingRegressor else table.y > np.median(table.y)
    model = kind(random_state=0).fit(table.X, y)
    assert set(model.member_paths_) == MEMBERS[kind]
    predictors = {"kept": model, **model.members_}
    # Sums over a sparse matrix are in another order, and rows of single precision are
    # multiplied in it. A prediction near zero is a sum of values of about one.
    is_single = getattr(table.X, "dtype", None) == np.float32
    share = 1e-5 if is_single else 1e-10
    tolerance = {"rtol": share, "atol": share}
    for who, predictor in predictors.items():
        expected = values_of(predictor, table.X)
        assert np.isfinite(expected).all(), who
        for how, X in table.same.items():
            found = values_of(predictor, X)
            np.testing.assert_allclose(
                found, expected, **tolerance, err_msg=f"{who}, {how}"
            )
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(values_of(again, table.X), values_of(model, table.X))


def raw(rng, n_rows=150):
    """A frame of all kinds of columns, and a target that depends on them."""
    frame = pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "town": rng.choice(["Bergen", "Oslo", "Rome"], n_rows),
            "sold": pd.date_range("2020-01-01", periods=n_rows, freq="9D"),
            "old": rng.random(n_rows) < 0.5,
            "id": [f"row {place}" for place in range(n_rows)],
            "street": rng.choice([f"street {place}" for place in range(40)], n_rows),
        }
    )
    effect = frame["town"].map({"Bergen": 0, "Oslo": 1, "Rome": 2})
    y = frame["size"] + effect + 0.5 * frame["old"] + rng.standard_normal(n_rows) / 3
    frame.loc[::7, "size"] = np.nan
    frame.loc[3::11, "town"] = None
    return frame, y


def test_unseen_levels_and_new_missing_values_are_predicted_by_every_member(rng):
    frame, y = raw(rng)
    model = SelfStoppingRegressor(random_state=0).fit(frame, y)
    new = frame[:6].copy()
    new["town"] = ["Lima", None, "Oslo", "Lima", "Rome", "Oslo"]
    new["old"] = [None, True, False, None, True, False]
    new["sold"] = pd.NaT
    for name, member in model.members_.items():
        assert np.isfinite(member.predict(new)).all(), name
        # What makes no difference to the first encoder makes none to the others.
        reordered = new[new.columns[::-1]]
        np.testing.assert_array_equal(member.predict(reordered), member.predict(new))
    # An unseen level is none of those that are known.
    lasso = model.members_["lasso"]
    names = lasso.get_feature_names_out().tolist()
    towns = lasso.coef_[[names.index(f"town_{town}") for town in ("Oslo", "Rome")]]
    rows = frame[1:2].assign(town="Lima"), frame[1:2].assign(town="Oslo")
    unseen, oslo = (lasso.predict(row)[0] for row in rows)
    assert oslo - unseen == pytest.approx(towns[0])
    missing = new.drop(columns="town")
    with pytest.raises(ValueError, match=r"Columns are missing in X: \['town'\]"):
        model.predict(missing)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MEMBERS)
def test_a_shuffled_target_has_an_honest_score(kind, rng):
    """Also with levels that name rows, of which means of y would tell everything."""
    frame, y = raw(rng, 300)
    many = rng.choice([f"name {place}" for place in range(290)], 300)
    frame["name"] = np.concatenate(
        [[f"name {place}" for place in range(280)], many[:20]]
    )
    y = rng.permutation(y)
    constant = np.var(y)
    if kind is SelfStoppingClassifier:
        y, constant = y > np.median(y), np.log(2)
    model = kind(random_state=0).fit(frame, y)
    for name, path in model.member_paths_.items():
        assert path.min() > 0.93 * constant, name
    error = model.best_score_corrected_se_
    assert model.best_score_corrected_ > constant - 3 * error
    assert model.best_score_ > 0.93 * constant


def test_the_encoding_can_be_looked_at(rng):
    frame, y = raw(rng)
    model = SelfStoppingRegressor(random_state=0).fit(frame, y)
    assert model.n_features_in_ == 6
    assert model.feature_names_in_.tolist() == list(frame.columns)
    assert model.encoder_.dropped_ == {"id": "no text occurs twice"}
    assert model.encoder_.kinds_["sold"] == "date"
    lasso = model.members_["lasso"]
    assert isinstance(lasso, TablePipeline)
    assert len(lasso.get_feature_names_out()) == len(lasso.coef_)
    assert "town_Oslo" in lasso.get_feature_names_out()
    # An array of numbers is passed on as it is.
    X = frame[["size"]].fillna(0).to_numpy()
    model.fit(np.hstack([X, X**2]), y)
    assert model.encoder_ is None
    assert isinstance(model.members_["lasso"], TrajectoryLasso)


def test_members_are_those_that_are_fitted_to_the_encoded_table(rng):
    """The oracle: each kind of member alone, after the encoder and the imputer."""
    frame, y = raw(rng)
    model = SelfStoppingRegressor(random_state=0, cv=3).fit(frame, y)
    numbers = TableEncoder().fit_transform(frame)
    lasso = TrajectoryLasso("path", max_iter=20, standardize=True)
    alone = TrajectoryEarlyStoppingCV([("lasso", lasso)], cv=3, random_state=0)
    alone.fit(numbers, y)
    np.testing.assert_allclose(
        model.member_paths_["lasso"], alone.member_paths_["lasso"], rtol=1e-9
    )
    np.testing.assert_allclose(
        model.members_["lasso"].predict(frame), alone.predict(numbers), rtol=1e-9
    )


def test_a_list_of_ones_own_has_the_encoder_too(rng):
    frame, y = raw(rng)
    members = [
        ("lasso", TrajectoryLasso(0.1, standardize=True)),
        ("boosted", HistGradientBoostingRegressor(max_iter=5)),
        ("forest", ExtraTreesRegressor(3)),
    ]
    model = TrajectoryEarlyStoppingCV(
        members,
        encoder=TableEncoder(min_frequency=2),
        param_grid={"boosted__estimator__max_depth": [1, 2]},
        rule="blend",
        random_state=0,
    )
    model.fit(frame, y)
    assert model.encoder_.min_frequency == 2
    assert np.isfinite(model.predict(frame)).all()
    assert "town_Oslo" in model.members_["boosted"].get_feature_names_out()
    assert set(model.best_params_) <= {"estimator__max_depth", "max_iter"}
    with pytest.raises(ValueError, match="'town' of X must be numbers"):
        clone(model).set_params(encoder=None).fit(frame, y)
    alone = TrajectoryEarlyStoppingCV(members[1][1], encoder=TableEncoder()).fit(
        frame, y
    )
    assert np.isfinite(alone.predict(frame)).all()


@pytest.mark.slow
def test_what_is_no_table_has_no_encoder(rng):
    X, y = rng.standard_normal((50, 3)), rng.standard_normal(50)
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso(0.1), encoder=TableEncoder())
    with pytest.raises(
        TypeError, match=r"a table in memory, .* got RowSummary: set enc"
    ):
        model.fit(RowSummary().fit(X, y))
    assert not hasattr(model, "estimator_")
    with pytest.raises(ValueError, match="'encoder' parameter"):
        model.set_params(encoder="yes").fit(X, y)


def test_raw_frames_in_scikit_learn(rng):
    frame, y = raw(rng)
    search = GridSearchCV(
        SelfStoppingRegressor(random_state=0, cv=3), {"rule": ["min", "blend"]}, cv=2
    )
    assert np.isfinite(search.fit(frame, y).best_score_)
    pipeline = make_pipeline(SelfStoppingRegressor(random_state=0, cv=3))
    assert pipeline.fit(frame, y).score(frame, y) > 0.5
    member = pipeline[-1].members_["ridge"]
    again = clone(member).fit(frame, y)
    assert np.isfinite(again.predict(frame)).all()


def test_coefficients_of_an_encoded_table_are_tested_by_name(rng):
    frame, y = raw(rng)
    model = TrajectoryEarlyStoppingCV(
        TrajectoryLasso("path", standardize=True, keep_data=True),
        encoder=TableEncoder(drop="first"),
    )
    table = model.fit(frame.drop(columns=["street", "sold"]), y).coef_table()
    assert list(table["column"][:4]) == ["size", "old", "size_missing", "town_Oslo"]
    row = table[table["column"] == "town_Rome"].iloc[0]
    assert row["lower"] < 2 < row["upper"]
    interval = model.coef_interval(["town_Rome"])
    np.testing.assert_allclose(interval[0], row[["lower", "upper"]].astype(float))


def test_several_outputs_of_a_raw_table(rng):
    frame, y = raw(rng, 240)
    many = rng.choice([f"name {place}" for place in range(60)], 240)
    frame["name"] = many
    both = np.column_stack([y, -2 * y])
    model = SelfStoppingRegressor(random_state=0).fit(frame, both)
    assert set(model.member_paths_) == {
        "ridge",
        "kernel",
        "feature machine",
        "boosted trees",
        "extra trees",
    }
    assert model.predict(frame).shape == (240, 2)
    assert model.best_score_ < 0.5 * both.var(axis=0).mean()
    labels = (both > np.median(both, axis=0)).astype(int)
    classifier = SelfStoppingClassifier(random_state=0).fit(frame, labels)
    assert set(classifier.member_paths_) == {"boosted trees", "extra trees"}
    assert classifier.predict_proba(frame).shape == (240, 2)
    assert classifier.score(frame, labels) > 0.5


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_without_its_record_a_model_of_a_raw_table_predicts_the_same(rule, rng):
    frame, y = raw(rng)
    model = SelfStoppingRegressor(rule=rule, random_state=0).fit(frame, y)
    members = dict(model.members_)
    expected = model.predict(frame), model.predict_interval(frame)
    alone = {name: member.predict(frame) for name, member in members.items()}
    before = len(pickle.dumps(model))
    small = model.drop_record()
    stored = pickle.dumps(small)
    assert len(stored) < before / 2
    for other in (small, pickle.loads(stored)):
        np.testing.assert_array_equal(other.predict(frame), expected[0])
        np.testing.assert_array_equal(other.predict_interval(frame), expected[1])
        for name, member in other.members_.items():
            np.testing.assert_array_equal(member.predict(frame), alone[name])
    with pytest.raises(AttributeError, match="Held-out predictions are not available"):
        _ = small.held_out_prediction_
    # The model has its record still.
    assert model.held_out_prediction_.shape == y.shape
    assert len(model.path_) > 1
    name = "lasso" if "lasso" in members else model.best_member_
    model.members_[name].at_iteration(1)


def test_each_combination_has_the_columns_that_it_needs(rng):
    """The oracle: the kernel alone, after the columns of either setting by hand."""
    frame, y = raw(rng)
    kernel = KernelEigenProRegressor(gamma=0.1, max_iter=20, random_state=0)
    splits = list(KFold(3, shuffle=True, random_state=0).split(frame))
    model = TrajectoryEarlyStoppingCV(
        kernel,
        encoder=TableEncoder(),
        param_grid={"standardize": [False, True]},
        criterion="cv",
        cv=splits,
        patience=None,
        random_state=0,
    ).fit(frame, y)
    columns = TableEncoder("codes").fit(frame)
    scores = []
    for scaled in (False, True):
        view = columns.one_hot().set_params(scaled=scaled)
        X = view.fit_transform(columns.codes(frame))
        alone = TrajectoryEarlyStoppingCV(
            kernel, criterion="cv", cv=splits, patience=None, random_state=0
        )
        scores.append(alone.fit(X, y).best_score_)
    assert scores[0] != pytest.approx(scores[1], rel=0.01)
    np.testing.assert_allclose(model.results_["best_score"], scores, rtol=1e-8)
    assert scores[1] < scores[0]  # the last one, which is in use below
    np.testing.assert_allclose(model.predict(frame), alone.predict(X), rtol=1e-8)


@pytest.mark.parametrize("name", first(5, TABLES))
def test_a_shuffled_target_of_an_awkward_table_has_an_honest_score(name):
    table = TABLES[name]()
    y = np.random.default_rng(1).permutation(table.y)
    model = SelfStoppingRegressor(random_state=0).fit(table.X, y)
    error = model.best_score_corrected_se_
    assert model.best_score_corrected_ > np.var(y) - 3 * error
    # The least of a path is a little optimistic; a leak would be nearer to the noise.
    for member, path in model.member_paths_.items():
        assert path.min() > 0.93 * np.var(y), member
