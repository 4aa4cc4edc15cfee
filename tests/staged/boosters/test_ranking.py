"""Rankers are stopped by folds of whole queries, and judged by their order."""

import pickle
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import make_scorer, ndcg_score
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from skacv import RiskPathDisplay, Staged, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.staged.adapters import staged_adapter_of
from skacv.staged.query_losses import NDCG, MeanAveragePrecision
from tests.runs import InParts
from tests.test_fitted_state import rows_in

from .cases import booster, named

RANKERS = ["LGBMRanker", "XGBRanker", "CatBoostRanker"]
OBJECTIVES = [
    ("LGBMRanker", {}),
    ("LGBMRanker", {"objective": "rank_xendcg"}),
    ("XGBRanker", {}),
    ("XGBRanker", {"lambdarank_pair_method": "mean"}),
    ("XGBRanker", {"objective": "rank:pairwise"}),
    ("CatBoostRanker", {}),
    ("CatBoostRanker", {"loss_function": "PairLogit"}),
    ("CatBoostRanker", {"loss_function": "QueryRMSE"}),
    ("CatBoostRanker", {"loss_function": "StochasticRank:metric=NDCG"}),
]


def table(n_queries=30, seed=0):
    """Rows of queries of unequal sizes, two of one row and one without relevant rows.

    Shapes: X (n, 4), y and the query of each row (n,), sizes (n_queries,).
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 16, n_queries)
    sizes[[3, 7]] = 1
    X = rng.standard_normal((sizes.sum(), 4))
    signal = X[:, 0] + np.sin(3 * X[:, 1]) + rng.standard_normal(len(X))
    query = np.repeat(np.arange(n_queries), sizes)
    y = np.clip(np.round(signal), 0, 3).astype(int)
    y[query == 5] = 0
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, query, sizes


def ndcg(y, scores, k):
    """The NDCG of a query by scikit-learn, with exponential gains."""
    if not y.any() or len(y) == 1:  # scikit-learn has zero, and refuses one row
        return 1.0
    return ndcg_score([2.0**y - 1], [scores], k=k)


def mean_loss(y, scores, query, k=10, weights=None):
    """One less the mean NDCG of queries."""
    numbers = np.unique(query)
    values = [ndcg(y[query == q], scores[query == q], k) for q in numbers]
    if weights is not None:
        weights = [weights[query == q][0] for q in numbers]
    return 1 - np.average(values, weights=weights)


def fitted_by_hand(inner, t, X, y, query, rows, weights=None):
    """A fresh fit of the library with so many trees, on some rows."""
    kind, name = staged_adapter_of(inner), type(inner).__name__
    _, first = np.unique(query[rows], return_index=True)
    params = {"group": np.diff(np.r_[first, len(rows)])}
    if name == "CatBoostRanker":
        params = {"group_id": query[rows]}
    if weights is not None and name == "CatBoostRanker":
        params["group_weight"] = weights[rows]
    elif weights is not None:
        own = weights[rows]
        params["sample_weight"] = own[first] if name == "XGBRanker" else own
    fresh = kind.clone_estimator().set_params(**{kind.count: t})
    return fresh.fit(X[rows], y[rows], **params)


# ------------------------------------------------------------------ losses


@pytest.mark.parametrize("k", [1, 3, 10, None])
@pytest.mark.parametrize("n_values", [2, 5, 1000])
def test_ndcg_is_that_of_scikit_learn(k, n_values):
    _, y, query, sizes = table()
    scores = np.random.default_rng(1).integers(n_values, size=(6, len(y))).astype(float)
    target = np.column_stack([y, sizes[query]])[:, :, None]
    values = NDCG(k).value(target, scores.T[:, None, :])[:, 0]
    for q in np.unique(query):
        rows = query == q
        expected = [1 - ndcg(y[rows], own[rows], k) for own in scores]
        np.testing.assert_allclose(values[rows], [expected] * sizes[q], atol=1e-12)


def average_precision(right, k):
    hits = np.cumsum(right)
    precision = hits / np.arange(1, len(right) + 1)
    return (precision * right)[:k].sum() / min(k, right.sum())


@pytest.mark.parametrize("k", [1, 2, 4, 6])
def test_precision_is_the_mean_over_all_orders_of_ties(k):
    rng = np.random.default_rng(0)
    for _ in range(20):
        y, scores = rng.integers(3, size=6), rng.integers(3, size=6).astype(float)
        if not y.any():
            continue
        values, gains = [], []
        for order in permutations(range(6)):
            order = np.array(order)
            order = order[np.argsort(-scores[order], kind="stable")]
            values.append(average_precision(y[order] > 0, k))
            gain, best = 2.0 ** y[order] - 1, np.sort(2.0**y - 1)[::-1]
            discount = 1 / np.log2(np.arange(2, k + 2))
            gains.append((gain[:k] @ discount) / (best[:k] @ discount))
        target = np.column_stack([y, np.full(6, 6)])
        for loss, expected in ((MeanAveragePrecision(k), values), (NDCG(k), gains)):
            found = loss.value(target, scores[:, None])
            np.testing.assert_allclose(found, 1 - np.mean(expected), atol=1e-12)


def in_order_of_rows(scores, query):
    """Distinct scores of the same order, with those of equal ones in order of rows."""
    order = np.lexsort((np.arange(len(scores)), -scores, query))
    distinct = np.empty(len(scores))
    distinct[order] = -np.arange(len(scores))
    return distinct


@pytest.mark.parametrize("measure", ["ndcg@3", "map@3"])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LGBMRanker", {}),
        ("LGBMRanker", {"label_gain": [0, 1, 4, 5]}),
        ("XGBRanker", {}),
        ("XGBRanker", {"ndcg_exp_gain": False}),
    ],
    ids=named,
)
def test_losses_are_those_of_the_library(name, settings, measure):
    # Its own evaluation of validation rows, where ties are in the order of rows.
    X, y, query, _ = table()
    if measure.startswith("map"):
        y = (y > 1).astype(int)  # XGBoost takes no others
    fitted, judged = next(GroupKFold(3).split(X, y, query))
    evaluated = query[judged]
    groups = [
        np.unique(query[rows], return_counts=True)[1] for rows in (fitted, judged)
    ]
    own, evaluation = booster(name, **settings, eval_metric=measure), {}
    if name == "LGBMRanker":
        own = booster(name, **settings)
        evaluation = {"eval_at": [3], "eval_metric": measure.partition("@")[0]}
        evaluation |= {"eval_X": X[judged], "eval_y": y[judged]}
    else:
        evaluation = {"eval_set": [(X[judged], y[judged])]}
    rows = X[fitted], y[fitted]
    own.fit(*rows, group=groups[0], eval_group=groups[1:], **evaluation)
    evals_result = own.evals_result_ if name == "LGBMRanker" else own.evals_result()
    ((_, history),) = evals_result.items()
    inner = booster(name, **settings)
    model = Staged(inner, cv=GroupKFold(3)).fit(X, y, qid=query)
    predicted = np.asarray(model.cv_prediction_path_)[1:, : len(judged)]
    target = np.column_stack([y[judged], np.bincount(evaluated)[evaluated]])
    loss, found = staged_adapter_of(inner).query_loss(measure), []
    for scores in predicted:
        scores = in_order_of_rows(scores, evaluated)
        losses = loss.value(target, scores[:, None])[:, 0]
        found.append(1 - np.average(losses, weights=1 / target[:, 1]))
    np.testing.assert_allclose(found, history[measure], rtol=0, atol=1e-12)


# ------------------------------------------------------------------ stages


@pytest.mark.parametrize(("name", "settings"), OBJECTIVES, ids=named)
@pytest.mark.parametrize("is_weighed", [False, True])
def test_stages_are_fits_with_so_many_trees(name, settings, is_weighed):
    X, y, query, sizes = table()
    inner, weights = booster(name, **settings), None
    if is_weighed:
        weights = np.random.default_rng(2).uniform(0.5, 2.0, len(sizes))[query]
    model = Staged(inner, cv=GroupKFold(3))
    model.fit(X, y, sample_weight=weights, qid=query)
    assert model.n_iter_ == 12
    folds = list(GroupKFold(3).split(X, y, query))
    for t in (1, 5, 12):
        place, losses, of_folds = 0, [], []
        for fitted, judged in folds:
            fresh = fitted_by_hand(inner, t, X, y, query, fitted, weights)
            end, scores = place + len(judged), fresh.predict(X[judged])
            found = model.cv_prediction_path_[t][place:end]
            np.testing.assert_array_equal(found, scores)
            own = None if weights is None else weights[judged]
            losses.append(mean_loss(y[judged], scores, query[judged], 10, own))
            firsts = np.unique(query[judged], return_index=True)[1]
            of_folds.append(len(firsts) if own is None else own[firsts].sum())
            place = end
        expected = np.average(losses, weights=of_folds)
        assert model.cv_path_[t] == pytest.approx(expected, abs=1e-12)
        np.testing.assert_allclose(model.cv_fold_path_[t], losses, atol=1e-12)
        fresh = fitted_by_hand(inner, t, X, y, query, np.arange(len(y)), weights)
        np.testing.assert_array_equal(
            model.at_iteration(t).predict(X), fresh.predict(X)
        )
    staged = list(model.staged_predict(X))
    assert len(staged) == 12
    np.testing.assert_array_equal(staged[-1], model.predict(X))


@pytest.mark.parametrize("name", RANKERS)
def test_growth_in_blocks_is_growth_at_once(name):
    X, y, query, _ = table()
    at_once = Staged(booster(name, 40), cv=2).fit(X, y, qid=query)
    in_blocks = Staged(booster(name, 40), cv=2)
    parts = InParts(in_blocks, X, y, qid=query)
    assert [parts.go_on(t) for t in (10, 25, 40)] == [False, False, True]
    np.testing.assert_array_equal(in_blocks.cv_path_, at_once.cv_path_)
    np.testing.assert_array_equal(in_blocks.predict(X), at_once.predict(X))


@pytest.mark.parametrize("name", RANKERS)
def test_the_best_stage_is_kept(name):
    X, y, query, sizes = table(60)
    inner = booster(name, 300)
    cv = GroupKFold(4)
    model = TrajectoryEarlyStoppingCV(inner, cv=cv, patience=15, random_state=0)
    model.fit(X, y, group=sizes)
    t, count = model.best_iter_, staged_adapter_of(inner).count
    assert 1 <= t < model.estimator_.n_iter_ < 300
    assert model.best_params_ == {count: t}
    assert model.task_ == "ranking"
    losses, n_queries = [], []
    for fitted, judged in cv.split(X, y, query):
        scores = fitted_by_hand(inner, t, X, y, query, fitted).predict(X[judged])
        losses.append(mean_loss(y[judged], scores, query[judged]))
        n_queries.append(len(np.unique(query[judged])))
        np.testing.assert_array_equal(model.held_out_prediction_[judged], scores)
    assert model.best_score_ == pytest.approx(np.average(losses, weights=n_queries))
    assert 0 < model.best_score_se_ < 0.1
    assert model.best_score_corrected_ > model.best_score_ - 0.01
    assert model.possible_gain_ >= 0
    fresh = fitted_by_hand(inner, t, X, y, query, np.arange(len(y)))
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    assert list(model.leaderboard()["metric"]) == ["1 - NDCG@10"]
    assert model.cv_results_["mean_test_score"] == pytest.approx(-model.best_score_)
    # A random order, before any tree.
    assert model.path_[0] == pytest.approx(mean_loss(y, np.zeros(len(y)), query))
    expected = 1 - mean_loss(y, model.predict(X), query)
    assert model.score(X, y, qid=query) == pytest.approx(expected)
    path = model.estimator_.staged_loss(X, y, qid=query)
    assert path[-1] == pytest.approx(1 - expected)


def test_one_fold_has_a_standard_error_over_queries():
    X, y, query, _ = table()
    cv = GroupShuffleSplit(1, random_state=0)
    model = Staged(booster("LGBMRanker"), cv=cv).fit(X, y, qid=query)
    (judged,) = model.cv_indices_
    scores, own = model.cv_prediction_path_[-1], query[judged]
    values = [ndcg(y[judged][own == q], scores[own == q], 10) for q in np.unique(own)]
    expected = np.std(values, ddof=1) / np.sqrt(len(values))
    assert model.cv_se_path_[-1] == pytest.approx(expected)


def test_training_losses_are_of_whole_queries(monkeypatch):
    X, y, query, _ = table()
    monkeypatch.setattr("skacv.staged.begin.MOST_TRAINING_ROWS", 60)
    model = Staged(booster("LGBMRanker")).fit(X, y, qid=query)
    assert 0 <= model.train_path_[-1] < model.train_path_[0] < 1


# ------------------------------------------------------------------ what is passed


@pytest.mark.parametrize("name", RANKERS)
def test_words_for_queries(name):
    X, y, query, sizes = table()
    labels = np.array(list("zyxwvutsrqponmlkjihgfedcba1234"))[query]
    passed = {"group": sizes, "qid": query, "group_id": labels.tolist()}
    passed["groups"] = pd.Series(query * 2)
    paths = []
    for word, value in passed.items():
        model = TrajectoryEarlyStoppingCV(booster(name), cv=3)
        paths.append(model.fit(X, y, **{word: value}).path_)
    for path in paths[1:]:
        np.testing.assert_allclose(path, paths[0], atol=1e-12)


def test_folds_are_shared_by_the_words():
    # Those of ``groups``, by number: labels do not change them.
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker")).fit(X, y, qid=query)
    for judged in model.estimator_.cv_indices_:
        others = np.setdiff1d(np.arange(len(y)), judged)
        assert not set(query[judged]) & set(query[others])


@pytest.mark.parametrize("name", RANKERS)
def test_weights_are_those_of_queries(name):
    X, y, query, sizes = table()
    weights = np.random.default_rng(0).integers(0, 3, len(sizes)).astype(float)
    weights[:2] = 1, 2
    model = TrajectoryEarlyStoppingCV(booster(name), cv=3)
    by_row = clone(model).fit(X, y, weights[query], qid=query)
    by_query = clone(model).fit(X, y, weights, qid=query)
    np.testing.assert_array_equal(by_row.path_, by_query.path_)
    word = clone(model).fit(X, y, group_weight=weights[query], qid=query)
    np.testing.assert_array_equal(by_row.path_, word.path_)
    counted = weights[query] > 0
    assert np.isnan(by_row.held_out_prediction_[~counted]).all()
    expected = by_row.score(
        X[counted], y[counted], weights[query][counted], qid=query[counted]
    )
    assert by_row.score(X, y, weights[query], qid=query) == pytest.approx(expected)
    with pytest.raises(ValueError, match="differs between rows of a query"):
        clone(model).fit(X, y, np.arange(len(y)), qid=query)


@pytest.mark.parametrize("name", RANKERS)
def test_criteria(name):
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster(name), cv=GroupKFold(3))
    cases = {"ndcg@3": (NDCG(3), "1 - NDCG@3"), "ndcg": (NDCG(None), "1 - NDCG")}
    cases["map@5"] = MeanAveragePrecision(5), "1 - MAP@5"
    cases["MAP"] = MeanAveragePrecision(None), "1 - MAP"
    for criterion, (loss, shown) in cases.items():
        found = clone(model).set_params(criterion=criterion).fit(X, y, qid=query)
        assert list(found.leaderboard()["metric"]) == [shown]
        rows = np.concatenate(found.estimator_.cv_indices_)
        scores = found.held_out_prediction_[rows]
        target = np.column_stack([y[rows], np.bincount(query)[query[rows]]])
        losses = loss.value(target, scores[:, None])[:, 0]
        expected = np.average(losses, weights=1 / target[:, 1])
        assert found.best_score_ == pytest.approx(expected, abs=1e-12)


def mean_ndcg(ranker, X, y, groups):
    return 1 - mean_loss(np.asarray(y), ranker.predict(X), groups, k=3)


def test_scorers():
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=GroupKFold(3))
    by_loss = clone(model).set_params(criterion="ndcg@3").fit(X, y, qid=query)
    by_scorer = clone(model).set_params(criterion=mean_ndcg).fit(X, y, qid=query)
    assert by_scorer.best_iter_ == by_loss.best_iter_
    assert by_scorer.best_score_ == pytest.approx(1 - by_loss.best_score_)
    assert by_scorer.best_score_se_ == pytest.approx(by_loss.best_score_se_, rel=1.0)

    def covariance(ranker, X, y):
        return np.cov(y, ranker.predict(X))[0, 1]

    other = clone(model).set_params(criterion=covariance).fit(X, y, qid=query)
    assert other.best_score_ > 0


def test_metadata_are_routed():
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=3)
    expected = clone(model).fit(X, y, qid=query)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).fit(X, y, qid=query)
        scorer = make_scorer(lambda y, scores, groups: -mean_loss(y, scores, groups))
        scorer = scorer.set_score_request(groups=True)
        by_scorer = clone(model).set_params(criterion=scorer).fit(X, y, qid=query)
    np.testing.assert_array_equal(routed.path_, expected.path_)
    assert by_scorer.best_iter_ == expected.best_iter_


@pytest.mark.parametrize("name", RANKERS)
def test_grids_and_races(name):
    X, y, _, sizes = table(60)
    rates = [0.01, 0.1, 0.3, 3.0]
    model = TrajectoryEarlyStoppingCV(
        booster(name), cv=4, param_grid={"learning_rate": rates}, random_state=0
    )
    full = clone(model).fit(X, y, group=sizes)
    race = clone(model).set_params(search="race").fit(X, y, group=sizes)
    assert full.best_params_["learning_rate"] in rates
    assert len(full.cv_results_["params"]) == 4
    assert race.best_score_ >= full.best_score_
    if race.best_params_ == full.best_params_:
        np.testing.assert_array_equal(race.path_, full.path_)


def test_several_rankers():
    X, y, query, _ = table()
    members = [(name, booster(name)) for name in RANKERS]
    model = TrajectoryEarlyStoppingCV(members, cv=3, random_state=0)
    model.fit(X, y, qid=query)
    assert set(model.member_paths_) == set(RANKERS)
    assert model.best_score_ == min(
        path[1:].min() for path in model.member_paths_.values()
    )
    with pytest.raises(ValueError, match="the scores of rankers are on scales"):
        clone(model).set_params(rule="blend").fit(X, y, qid=query)
    members[0] = "LGBMRanker", booster("LGBMRanker", label_gain=[0, 1, 2, 3])
    with pytest.raises(ValueError, match="Rankers with different gains"):
        TrajectoryEarlyStoppingCV(members, cv=3).fit(X, y, qid=query)
    members[0] = "lasso", TrajectoryLasso("path")
    with pytest.raises(ValueError, match="'XGBRanker' is a ranker"):
        TrajectoryEarlyStoppingCV(members, cv=3).fit(X, y, qid=query)


@pytest.mark.parametrize("name", RANKERS)
def test_pipelines_keep_queries(name):
    X, y, query, _ = table()
    X = np.nan_to_num(X)
    inner = booster(name)
    pipeline = make_pipeline(StandardScaler(), inner)
    model = Staged(pipeline, cv=GroupKFold(3)).fit(X, y, qid=query)
    (fitted, judged), *_ = GroupKFold(3).split(X, y, query)
    scaler = StandardScaler().fit(X[fitted])
    scaled = scaler.transform(X)
    fresh = fitted_by_hand(inner, 12, scaled, y, query, fitted)
    found = model.cv_prediction_path_[12][: len(judged)]
    np.testing.assert_array_equal(found, fresh.predict(scaled[judged]))


@pytest.mark.parametrize("name", RANKERS)
def test_what_is_kept(name):
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster(name), cv=3).fit(X, y, qid=query)
    assert not rows_in(pickle.dumps(model), np.nan_to_num(X))
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.path_, model.path_)
    small = model.drop_record()
    np.testing.assert_array_equal(small.predict(X), model.predict(X))
    assert small.score(X, y, qid=query) == model.score(X, y, qid=query)
    assert small.estimator_.record_.more["info"].query_sizes is None
    mean = Staged(booster(name), cv=3, keep="mean").fit(X, y, qid=query)
    scores = [one.predict(X) for one in mean.estimator_.copies]
    np.testing.assert_allclose(mean.predict(X), np.mean(scores, axis=0))
    assert get_tags(mean.estimator_).estimator_type == "ranker"


@pytest.mark.parametrize("name", RANKERS)
def test_tags_of_a_ranker(name):
    for model in (Staged(booster(name)), TrajectoryEarlyStoppingCV(booster(name))):
        assert get_tags(model).estimator_type == "ranker"
        assert not is_regressor(model)
        assert not is_classifier(model)
        assert not hasattr(model, "predict_proba")
        assert not hasattr(model, "predict_interval")


def test_the_figure_names_the_loss():
    pytest.importorskip("matplotlib")
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=3).fit(X, y, qid=query)
    display = RiskPathDisplay.from_estimator(model)
    assert display.ax_.get_ylabel() == "mean 1 - NDCG@10"
    with pytest.raises(ValueError, match="staged_loss was passed none"):
        RiskPathDisplay.from_estimator(model, X, y)


# ------------------------------------------------------------------ messages


def test_messages_about_queries():
    X, y, query, sizes = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=3)
    apart = query.copy()
    apart[0] = query[-1]
    cases = [
        ({}, "LGBMRanker orders the rows of queries, and fit was passed none"),
        ({"qid": query, "group": sizes}, "several times, as qid and as group"),
        ({"qid": apart}, "there are others between those of qid=29"),
        ({"qid": query[:-1]}, "qid must be one label for each of the"),
        ({"group": query}, "For the query of every row pass qid="),
        ({"group": sizes[:-1]}, "which sum up to the"),
        ({"qid": np.zeros(len(y))}, "at least two are needed, got one"),
    ]
    for params, message in cases:
        with pytest.raises(ValueError, match=message):
            clone(model).fit(X, y, **params)
    single = np.arange(len(y))
    with pytest.raises(ValueError, match="No query has rows of different relevance"):
        clone(model).fit(X, y, qid=single)
    with pytest.raises(ValueError, match="Some values of y are negative"):
        clone(model).fit(X, y - 1, qid=query)
    with pytest.raises(ValueError, match="for grades up to 31"):
        clone(model).fit(X, 20 * y, qid=query)
    with pytest.raises(ValueError, match="one relevance for each row"):
        clone(model).fit(X, np.column_stack([y, y]), qid=query)


def test_messages_about_folds():
    X, y, query, _ = table()
    few = query < 3
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=GroupKFold(5))
    with pytest.raises(ValueError, match="greater than the number of groups: 3"):
        clone(model).fit(X[few], y[few], qid=query[few])
    with pytest.raises(ValueError, match="ignores: use cv=GroupKFold"):
        clone(model).set_params(cv=KFold(3)).fit(X, y, qid=query)

    class Halves:
        def split(self, X, y=None, groups=None):
            yield np.arange(0, len(X), 2), np.arange(1, len(X), 2)

        def get_n_splits(self, X=None, y=None, groups=None):
            return 1

    with pytest.raises(ValueError, match="Fold 0 of cv has a part of the rows"):
        clone(model).set_params(cv=Halves()).fit(X, y, qid=query)


def test_what_a_ranker_has_not():
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=3).fit(X, y, qid=query)
    for method in ("predict_interval", "predict_set"):
        with pytest.raises(AttributeError, match="its scores order rows, and are"):
            getattr(model, method)
        with pytest.raises(AttributeError, match="its scores order rows, and are"):
            getattr(model.estimator_, method)
    with pytest.raises(ValueError, match="score was passed none"):
        model.score(X, y)
    for criterion in ("loo", "risk"):
        with pytest.raises(ValueError, match="would ignore groups"):
            clone(model).set_params(criterion=criterion).fit(X, y, qid=query)
    with pytest.raises(ValueError, match="criterion of a ranker must be 'auto'"):
        clone(model).set_params(criterion="ndcg_at_3").fit(X, y, qid=query)
    with pytest.raises(ValueError, match=r"is for regression, but .* is a ranker"):
        clone(model).set_params(task="regression").fit(X, y, qid=query)
    with pytest.raises(ValueError, match="measure='map' judges rankers, and LGBMReg"):
        Staged(booster("LGBMRegressor")).begin(X, y, measure="map")
    inner = booster("LGBMRanker", objective="regression")
    with pytest.raises(ValueError, match="use one of lambdarank"):
        TrajectoryEarlyStoppingCV(inner, cv=3).fit(X, y, qid=query)


def test_collections_and_samplers_are_refused():
    X, y, query, _ = table()
    model = TrajectoryEarlyStoppingCV(booster("LGBMRanker"), cv=3)
    array = pytest.importorskip("dask.array")
    chunks = {"chunks": 50}
    with pytest.raises(TypeError, match="Arrays in memory are needed here"):
        model.fit(
            array.from_array(X, chunks=(50, 4)),
            array.from_array(y, **chunks),
            qid=query,
        )
    samplers = pytest.importorskip("imblearn.under_sampling")
    pipelines = pytest.importorskip("imblearn.pipeline")
    steps = samplers.RandomUnderSampler(), booster("LGBMRanker")
    with pytest.raises(ValueError, match="needs whole queries: leave it out"):
        Staged(pipelines.make_pipeline(*steps)).fit(X, y, qid=query)


def test_metrics_of_the_library_are_not_read():
    X, y, query, _ = table()
    model = Staged(booster("XGBRanker", eval_metric="ndcg@5"), cv=3)
    with pytest.warns(UserWarning, match="its stages are judged by the 1 - NDCG@10"):
        model.fit(X, y, qid=query)
    Staged(booster("XGBRanker", eval_metric="ndcg@10"), cv=3).fit(X, y, qid=query)


def test_stages_worse_than_a_random_order():
    X, y, query, _ = table()
    X = np.random.default_rng(3).standard_normal(X.shape)
    y = np.where(query % 2 == 0, y, y[::-1])
    inner = booster("LGBMRanker", 3, learning_rate=1e-9)
    folds = GroupKFold(5)
    model = TrajectoryEarlyStoppingCV(inner, cv=folds)
    with pytest.warns(UserWarning, match="worse than a random order of rows"):
        model.fit(-X, y, qid=query)
