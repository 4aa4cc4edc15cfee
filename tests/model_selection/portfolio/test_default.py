"""The portfolio that is taken where no estimator is given."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.metrics import log_loss
from sklearn.utils import get_tags

from skacv import SelfStoppingRegressor, TrajectoryEarlyStoppingCV
from skacv.staged.fits import last_of
from tests.internals import TASKS, default_members, inferred_task
from tests.model_selection.cases import MEMBERS

from .cases import members

pytestmark = pytest.mark.usefixtures("few_trees")


def test_the_default_for_numbers():
    X, y = load_diabetes(return_X_y=True)
    model = SelfStoppingRegressor(random_state=0)
    assert is_regressor(model)
    model.fit(X, y)
    assert is_regressor(model)
    assert model.task_ == "regression"
    names = list(default_members("regression"))
    assert names == list(model.member_paths_)
    assert set(names) == set(model.results_["member"])
    # A blend of the best iterates is no worse on the rows that have weighed them.
    assert model.best_score_ <= min(path.min() for path in model.member_paths_.values())
    assert sum(model.weights_.values()) == pytest.approx(1)


@pytest.mark.parametrize("task", ["auto", "classification"])
def test_the_default_for_classes(task):
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    model = TrajectoryEarlyStoppingCV(task=task, random_state=0)
    # Before it is known, so that cross-validation splits by classes where there are.
    assert is_classifier(model)
    model.fit(X, y)
    assert is_classifier(model)
    assert model.task_ == "classification"
    assert model.score(X, y) > 0.9
    assert list(model.classes_) == ["a", "b", "c"]
    assert log_loss(y, model.predict_proba(X)) < 0.3
    with sklearn.config_context(enable_metadata_routing=True):
        assert model.fit(X, y).score(X, y) > 0.9


def kernels_of(model):
    return [name for name in model.member_paths_ if name == "kernel"]


def test_members_that_cannot_take_the_data_are_left_out(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(random_state=0)
    assert kernels_of(model.fit(X, y))
    assert set(model.fit(X, np.column_stack([y, -y])).member_paths_) == {
        "ridge",
        "kernel",
        "feature machine",
        "boosted trees",
        "extra trees",
    }
    assert model.predict(X).shape == (80, 2)
    model.set_params(criterion="risk").fit(X, y)
    assert set(model.member_paths_) == {"lasso"}


@pytest.mark.parametrize("task", TASKS)
def test_trees_of_a_forest_have_a_sample_of_many_rows(task):
    for n_rows, n_drawn in ((5000, None), (6000, 5000), (500_000, 10_000)):
        forest = default_members(task, n_rows)["extra trees"].estimator
        assert forest.max_samples == (n_drawn and n_drawn / n_rows)
        assert forest.bootstrap


@pytest.mark.parametrize("task", TASKS)
def test_trees_draw_rows_where_these_judge_them(task):
    # Steps that read y are fitted in every fold.
    for n_columns, settings in ((5, {"has_means": True}), (20_000, {})):
        trees = default_members(task, 500, n_columns, **settings)["extra trees"]
        assert not last_of(trees.estimator).bootstrap


@pytest.mark.slow
def test_trees_bear_rare_classes():
    """Without a penalty leaves that are sure grow, and the log loss with them."""
    trees = default_members("classification", 2000, 8, n_classes=4)["boosted trees"]
    trees = trees.estimator.set_params(max_iter=60)
    losses = []
    for penalty, seed in product((trees.l2_regularization, 0), (3, 4, 5)):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(4000, 8))
        logits = [
            4 * X[:, 0] + 2,
            6 * X[:, 1] * X[:, 2] + 1,
            8 * (X[:, 3] > 0.8) + 3 * X[:, 1] - 3,
            8 * X[:, 6] - 5,
        ]
        y = (1.5 * np.stack(logits) + rng.gumbel(size=(4, 4000))).argmax(axis=0)
        assert 0.01 < np.mean(y == 3) < 0.03
        trees.set_params(l2_regularization=penalty).fit(X[::2], y[::2])
        losses.append(log_loss(y[1::2], trees.predict_proba(X[1::2])))
    assert np.mean(losses[:3]) < 0.99 * np.mean(losses[3:])


def test_trees_for_many_classes_do_not_diverge(rng):
    X = rng.integers(0, 4, size=(900, 4)).astype(float)
    y = np.minimum((X @ [1, 4, 2, 3]).astype(int), 20)
    trees = default_members("classification", 900, 4, n_classes=21)["boosted trees"]
    trees = trees.estimator.set_params(max_iter=60).fit(X, y)
    losses = [
        log_loss(y, shares, labels=trees.classes_)
        for shares in trees.staged_predict_proba(X)
    ]
    assert losses[-1] < 0.5 * losses[9] < 0.5 * losses[0]


def test_a_kernel_machine_plays_at_every_size():
    for n_rows in (50, 10**5, 10**7):
        for task in TASKS:
            assert {"kernel", "feature machine"} <= set(default_members(task, n_rows))


def test_a_dense_linear_member_is_exact_where_that_is_cheap():
    for n_columns, name in ((1000, "ridge"), (2000, "least squares")):
        assert list(default_members("regression", 50, n_columns))[1] == name
    workers = default_members("regression", 50, 2, is_in_memory=False)
    assert list(workers)[1] == "least squares"


ALL = MEMBERS[SelfStoppingRegressor]


def test_a_small_sparse_table_is_dense_for_members_that_need_it(data, set_limits):
    X, y = data
    X = np.where(np.abs(X) > 1, X, 0)
    rows = sparse.csr_matrix(X)
    of_dense = SelfStoppingRegressor(random_state=0).fit(X, y)
    model = SelfStoppingRegressor(random_state=0).fit(rows, y)
    assert set(model.member_paths_) == ALL
    paths = [each.member_paths_["boosted trees"] for each in (model, of_dense)]
    np.testing.assert_array_equal(*paths)
    expected = of_dense.members_["boosted trees"].predict(X)
    for some in (rows, sparse.csc_array(X), X):
        found = model.members_["boosted trees"].predict(some)
        np.testing.assert_array_equal(found, expected)
    set_limits(MEMORY_BYTES=24 * 10)
    # Forests of scikit-learn 1.6 take sparse X without saying so.
    trees = get_tags(ExtraTreesRegressor()).input_tags.sparse * ["extra trees"]
    assert set(model.fit(rows, y).member_paths_) == {"lasso", "ridge", *trees}


def test_without_an_encoder_trees_alone_take_missing_values_and_categories(data):
    X, y = data
    frame = pd.DataFrame(X[:, :4], columns=list("abcd"))
    frame.loc[::9, "b"] = np.nan
    model = SelfStoppingRegressor(encoder=None, random_state=0)
    with pytest.warns(UserWarning, match="lasso, .* missing values: encoder='auto'"):
        model.fit(frame, y)
    assert set(model.member_paths_) == {"boosted trees", "extra trees"}
    assert np.isfinite(model.predict(frame)).all()
    frame["d"] = pd.Series(np.where(X[:, 3] > 0, "u", "v")).astype("category")
    with pytest.warns(UserWarning, match="categorical columns: encoder='auto'"):
        model.fit(frame, y)
    assert set(model.member_paths_) == {"boosted trees"}
    with pytest.raises(ValueError, match=r"Columns \['d'\] of X contain strings"):
        model.fit(frame.astype({"d": object}), y)
    assert set(model.set_params(encoder="auto").fit(frame, y).member_paths_) == ALL


@pytest.mark.parametrize(
    "times",
    [
        pd.date_range("2020-01-01", periods=3),
        pd.date_range("2020-01-01", periods=3, tz="UTC"),
        pd.to_timedelta([1, 2, 3], unit="s"),
    ],
    ids=["dates", "dates with a zone", "durations"],
)
def test_columns_of_times_are_named(times):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "when": times})
    with pytest.raises(
        ValueError, match=r"Columns \['when'\] of X contain dates or dur"
    ):
        SelfStoppingRegressor(encoder=None).fit(frame, [1.0, 2.0, 4.0])


def test_a_series_or_equal_names_as_scikit_learn_has_them(data):
    """Its own errors, or none: no look at a table raises before."""
    X, y = data
    with pytest.raises(ValueError, match=r"2-dimensional container|2D array"):
        SelfStoppingRegressor().fit(pd.Series(X[:, 0]), y)
    twice = pd.DataFrame(X[:, :2], columns=["a", "a"])
    model = SelfStoppingRegressor(encoder=None)
    with pytest.raises(ValueError, match=r"Columns \['a', 'a'\] of X contain strings"):
        model.fit(twice.astype(str).astype(object), y)


def test_blending_is_the_default_of_the_default_portfolio_alone(data):
    X, y = data
    settings = {"random_state": 0}
    blend = SelfStoppingRegressor(**settings).fit(X, y)
    named = SelfStoppingRegressor(rule="blend", **settings).fit(X, y)
    assert blend.weights_ == named.weights_
    best = SelfStoppingRegressor(rule="min", **settings).fit(X, y)
    assert sorted(best.weights_.values())[-2:] == [0, 1]
    scored = SelfStoppingRegressor(criterion="r2", **settings).fit(X, y)
    assert sorted(scored.weights_.values())[-2:] == [0, 1]
    listed = SelfStoppingRegressor(members()).fit(X, y)
    assert sorted(listed.weights_.values()) == [0, 0, 1]


@pytest.mark.parametrize("n_rows", [10, 15, 25])
def test_default_portfolio_on_few_rows(n_rows, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(random_state=0).fit(X[:n_rows], y[:n_rows])
    assert np.isfinite(model.best_score_)
    label = np.where(y[:n_rows] > np.median(y[:n_rows]), "high", "low")
    model.fit(X[:n_rows], label)
    assert model.task_ == "classification"


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (np.linspace(0, 1, 50), "regression"),
        (np.linspace(0, 1, 50).reshape(25, 2), "regression"),
        (np.arange(50) % 2 == 0, "classification"),
        (np.array(["a", "b", "c"])[np.arange(50) % 3], "classification"),
        (np.array(["a", "b", "c"] + ["d"] * 40), "classification"),
        (pd.Series(["a", "b", "c"] * 9, dtype="category"), "classification"),
        (np.array([True, False] * 9, dtype=object), "classification"),
    ],
)
def test_task_inferred_from_y(y, expected):
    assert inferred_task(y) == expected


@pytest.mark.parametrize(
    "y",
    [
        np.arange(50),
        np.arange(50.0),
        np.arange(50).reshape(25, 2),
        np.arange(50) % 2,
        np.arange(50) % 2 + 0.0,
        np.arange(50) % 4,  # counts, or classes
        np.arange(50) % 10 + 0.0,
        (np.arange(50) % 3).reshape(-1, 1),
        pd.Series(np.arange(50) % 3).astype(object),
    ],
    ids=range(9),
)
def test_whole_numbers_need_an_explicit_task(y):
    with pytest.raises(ValueError, match="SelfStoppingRegressor or SelfStoppingCl"):
        inferred_task(y)
    model = TrajectoryEarlyStoppingCV()
    with pytest.raises(ValueError, match="may be targets or class labels"):
        model.fit(np.arange(2.0 * len(y)).reshape(len(y), 2), y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_every_fit_infers_the_task_anew():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = TrajectoryEarlyStoppingCV(random_state=0).fit(X, names)
    assert model.task_ == "classification"
    assert model.fit(X[:, :3], X[:, 3]).task_ == "regression"
    assert is_regressor(model)
    assert not hasattr(model, "predict_proba")
    assert model.set_params(task="classification").fit(X, y > 0).score(X, y > 0) == 1
