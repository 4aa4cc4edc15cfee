"""Texts in the default models: a linear member on tf-idf, the others on components."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, mean_squared_error
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skacv import (
    RiskPathDisplay,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TableEncoder,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
)
from skacv.exceptions import UnevenColumnsWarning
from skacv.inspection import blend_shap_values
from skacv.model_selection import data as search_data
from skacv.model_selection import trial
from tests.model_selection.cases import MEMBERS
from tests.test_skops import from_skops
from tests.test_skops import pytestmark as stored_by_skops

pytestmark = pytest.mark.usefixtures("few_trees")
FOLDS = KFold(3, shuffle=True, random_state=0)


def reviewed(rng, n_rows=150):
    """A frame with a column of texts, and a target that depends on its words.

    They are more words than there are components.
    """
    letters = rng.choice(list("abcdefghijklmnoprstu"), (60, 5))
    words = np.array(["".join(word) for word in letters])
    effects = rng.standard_normal(60)
    drawn = rng.integers(60, size=(n_rows, 10))
    X = pd.DataFrame(
        {
            "size": rng.standard_normal(n_rows),
            "review": [" ".join(words[row]) for row in drawn],
            "town": rng.choice(["Oslo", "Rome"], n_rows),
        }
    )
    y = effects[drawn].sum(axis=1) / 3 + X["size"] + rng.standard_normal(n_rows) / 3
    return X, y.to_numpy()


def by_hand():
    """The columns of the member on tf-idf, dense: so Ridge is exact."""
    settings = {"analyzer": "char_wb", "ngram_range": (3, 4)}
    tf_idf = TfidfVectorizer(min_df=2, sublinear_tf=True, **settings)
    return make_column_transformer(
        (StandardScaler(), ["size"]),
        (OneHotEncoder(), ["town"]),
        (tf_idf, "review"),
        sparse_threshold=0,
    )


@pytest.mark.parametrize("kind", MEMBERS)
def test_the_member_on_tf_idf_equals_a_pipeline_by_hand(kind, rng):
    """Its run to convergence, on all rows and on those of the folds."""
    X, y = reviewed(rng)
    settings = {"max_iter": 4000, "tol": 1e-12}
    predict, peer, loss = "predict", Ridge(1.0), mean_squared_error
    settings["alpha"] = 1.0
    if kind is SelfStoppingClassifier:
        y, predict, loss = y > np.median(y), "predict_proba", log_loss
        peer = LogisticRegression(tol=1e-10, max_iter=10_000)
        settings["C"] = settings.pop("alpha")
    grid = {f"tf-idf__{name}": [value] for name, value in settings.items()}
    model = kind(cv=FOLDS, param_grid=grid, random_state=0).fit(X, y)
    assert model.member_paths_.keys() == {"tf-idf", *MEMBERS[kind]}
    columns = by_hand().fit(X)
    numbers = columns.transform(X)
    held_out = cross_val_predict(peer, numbers, y, cv=FOLDS, method=predict)
    member = model.members_["tf-idf"]
    path = model.member_paths_["tf-idf"]
    assert path[-1] == pytest.approx(loss(y, held_out), rel=1e-6)
    new = X[:9].assign(review=["", "unknown words", *X["review"][20:27]])
    last = member.at_iteration(member.n_iter_)
    found = getattr(last, predict)(new)
    expected = getattr(clone(peer).fit(numbers, y), predict)(columns.transform(new))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    names = member.get_feature_names_out()
    assert names.tolist()[:3] == ["size", "town_Oslo", "town_Rome"]
    terms = columns.named_transformers_["tfidfvectorizer"].get_feature_names_out()
    assert names.tolist()[3:] == [f"review: {term}" for term in terms]
    assert np.size(last.coef_) == len(names)
    for fitted in (model, member, model.estimator_):
        assert fitted.n_features_in_ == 3
        assert fitted.feature_names_in_.tolist() == list(X.columns)


def test_other_members_see_the_components(rng):
    """The oracle: a member alone after the encoder."""
    X, y = reviewed(rng)
    model = SelfStoppingRegressor(random_state=0, cv=FOLDS).fit(X, y)
    numbers = TableEncoder().fit_transform(X)
    assert "review_0" in model.members_["lasso"].get_feature_names_out()
    lasso = TrajectoryLasso("path", max_iter=20, standardize=True)
    alone = TrajectoryEarlyStoppingCV([("lasso", lasso)], cv=FOLDS, random_state=0)
    alone.fit(numbers, y)
    np.testing.assert_allclose(
        model.member_paths_["lasso"], alone.member_paths_["lasso"], rtol=1e-9
    )
    np.testing.assert_allclose(
        model.members_["lasso"].predict(X), alone.predict(numbers), rtol=1e-9
    )


@pytest.mark.parametrize("kind", MEMBERS)
def test_a_blend_is_that_of_its_members_on_any_frame(kind, rng):
    X, y = reviewed(rng, 200)
    X.loc[::9, "review"] = None
    if kind is SelfStoppingClassifier:
        y = np.array(["low", "high"])[(y > np.median(y)).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnevenColumnsWarning)
        model = kind(random_state=0).fit(X[:120], y[:120])
    assert model.weights_["tf-idf"] > 0.1
    method = "predict_proba" if kind is SelfStoppingClassifier else "predict"
    new = X[120:]
    found = getattr(model, method)(new)
    expected = 0
    for name, weight in model.weights_.items():
        expected = expected + weight * getattr(model.members_[name], method)(new)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    others = {
        "polars": pl.DataFrame(new.replace({np.nan: None}).to_dict("list")),
        "reordered": new[new.columns[::-1]],
        "pickled": new,
        "small": new,
    }
    for how, frame in others.items():
        other = pickle.loads(pickle.dumps(model)) if how == "pickled" else model
        other = model.drop_record() if how == "small" else other
        np.testing.assert_allclose(
            getattr(other, method)(frame), found, atol=1e-12, err_msg=how
        )
    member = model.members_["tf-idf"]
    again = clone(member).fit(X[:120], y[:120]).at_iteration(member.iteration_)
    expected = getattr(member, method)(new)
    np.testing.assert_allclose(getattr(again, method)(new), expected, atol=1e-9)
    RiskPathDisplay.from_estimator(model)
    assert "tf-idf" in list(model.leaderboard()["member"])


def test_the_tf_idf_member_helps_where_words_matter(rng):
    X, y = reviewed(rng, 300)
    new, truth = X[200:], y[200:]
    model = SelfStoppingRegressor(random_state=0).fit(X[:200], y[:200])
    without = SelfStoppingRegressor(random_state=0).fit(
        X[:200].drop(columns="review"), y[:200]
    )
    error = mean_squared_error(truth, model.predict(new))
    assert model.weights_["tf-idf"] > 0.5
    assert error < 0.7 * mean_squared_error(truth, without.predict(new))
    assert "tf-idf" not in without.weights_
    # Texts that say nothing get no weight to speak of.
    shuffled = X.assign(review=rng.permutation(X["review"]))
    model.fit(shuffled[:200], y[:200])
    ratio = model.best_score_ / without.best_score_
    assert 0.9 < ratio < 1.15


def test_a_column_of_texts_alone(rng):
    X, y = reviewed(rng)
    texts = X[["review"]].to_numpy(dtype=object)
    model = SelfStoppingRegressor(random_state=0).fit(texts, y)
    assert model.encoder_.kinds_ == {"x0": "text"}
    assert np.isfinite(model.predict([["unknown words"], [None]])).all()
    assert model.members_["tf-idf"].get_feature_names_out()[0].startswith("x0: ")
    assert np.corrcoef(model.held_out_prediction_, y)[0, 1] > 0.3


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        ({"loss": "poisson"}, lambda y: np.rint(np.exp(y / 2))),
        ({"loss": "gamma"}, np.exp),
        ({"loss": "quantile", "level": 0.8}, lambda y: y),
        ({"loss": "expectile", "level": 0.8}, lambda y: y),
        ({}, lambda y: np.stack([y, -y], axis=1)),
    ],
)
def test_every_loss_has_the_member(settings, target, rng):
    X, y = reviewed(rng, 120)
    if "level" in settings:
        from skacv.optim.losses import Expectile, Pinball

        loss = {"quantile": Pinball, "expectile": Expectile}[settings["loss"]]
        settings = {"loss": loss(settings["level"])}
    model = SelfStoppingRegressor(random_state=0, **settings).fit(X, target(y))
    assert "tf-idf" in model.member_paths_
    assert np.isfinite(model.predict(X)).all()


def test_several_classes_and_weights_of_rows(rng):
    X, y = reviewed(rng)
    y = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, [0.4, 0.7]))]
    weights = np.r_[np.zeros(30), np.ones(120)]
    model = SelfStoppingClassifier(random_state=0, cv=FOLDS)
    other = X.copy()
    other.loc[:29, "review"] = "nobody has read this sentence about zebras"
    of_both = [
        clone(model).fit(frame, y, sample_weight=weights).predict_proba(X)
        for frame in (X, other)
    ]
    np.testing.assert_array_equal(*of_both)


def test_metadata_routing_knows_the_member(rng):
    X, y = reviewed(rng)
    wide = rng.standard_normal((40, 1001))
    with config_context(enable_metadata_routing=True):
        model = SelfStoppingRegressor(random_state=0)
        model.fit(X, y, sample_weight=np.ones(150))
        assert "tf-idf" in model.weights_
        # Nor is a member unknown that takes the place of another.
        model.fit(wide, wide[:, 0], sample_weight=np.ones(40))
        assert "least squares" in model.weights_


def test_in_pipelines_and_grids(rng):
    X, y = reviewed(rng)
    pipeline = make_pipeline(FunctionTransformer(), SelfStoppingRegressor())
    grid = {"selfstoppingregressor__random_state": [0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.2


def test_a_list_of_ones_own_sees_components(rng):
    X, y = reviewed(rng)
    members = [("lasso", TrajectoryLasso("path", max_iter=20, standardize=True))]
    model = TrajectoryEarlyStoppingCV(members, encoder=TableEncoder()).fit(X, y)
    assert "review_0" in model.members_["lasso"].get_feature_names_out()
    assert set(model.weights_) == {"lasso"}


@pytest.mark.parametrize("are_shares", [False, True])
def test_many_rows_keep_the_member_in_a_trial(are_shares, rng, monkeypatch):
    for module in (trial, search_data):
        monkeypatch.setattr(module, "FEWEST_ROWS", 100)
    monkeypatch.setattr(trial, "ROWS_OF_TRIAL", (100, 100))
    monkeypatch.setattr(trial, "ROWS_OF_CLASS", 2)
    tried = []
    weights_in_trial = trial.weights_in_trial

    def followed(*args):
        tried.append(weights_in_trial(*args))
        return tried[-1]

    monkeypatch.setattr(trial, "weights_in_trial", followed)
    X, y = reviewed(rng)
    model = SelfStoppingRegressor(random_state=0)
    if are_shares:
        model = SelfStoppingClassifier(random_state=0)
        scores = np.exp(np.stack([y, -y, np.zeros(150)], axis=1))
        y = scores / scores.sum(axis=1, keepdims=True)
    model.fit(X, y)
    assert "tf-idf" in tried[0]
    assert "tf-idf" in model.member_paths_


def test_shares_of_classes_count_every_row_once(rng):
    """Their copies of a row repeat no text, and no identifier."""
    X, y = reviewed(rng)
    X["id"] = [f"row {row}" for row in range(150)]
    scores = np.stack([y, -y, np.zeros(150)], axis=1)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    model = SelfStoppingClassifier(random_state=0).fit(X, shares)
    encoder = TableEncoder("codes").fit(X)
    assert model.encoder_.kinds_ == encoder.kinds_
    assert model.encoder_.dropped_ == {"id": "no text occurs twice"}
    assert model.encoder_.term_names() == encoder.term_names()
    np.testing.assert_allclose(
        model.encoder_.transform(X), encoder.transform(X), atol=1e-9
    )
    assert "tf-idf" in model.weights_


@stored_by_skops
def test_skops_reads_what_it_has_written(rng):
    X, y = reviewed(rng, 80)
    model = SelfStoppingRegressor(random_state=0).fit(X, y)
    np.testing.assert_array_equal(from_skops(model).predict(X), model.predict(X))


def test_shap_values_of_terms_are_added_up_by_column(rng):
    X, y = reviewed(rng)
    model = SelfStoppingRegressor(random_state=0, rule="min").fit(X, y)
    assert model.best_member_ == "tf-idf"
    values, base = blend_shap_values(model, X, background=X)
    np.testing.assert_allclose(base + values.sum(axis=1), model.predict(X))
    # The mean of the background, of numbers of unit size, is zero.
    size = StandardScaler().fit_transform(X[["size"]])[:, 0]
    of_size = model.members_["tf-idf"].coef_[0] * size
    np.testing.assert_allclose(values[:, 0], of_size, atol=1e-9)
