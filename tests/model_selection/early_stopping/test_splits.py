"""Splits are drawn once, and follow groups, weights and classes."""

from itertools import count

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, KFold, ShuffleSplit

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.model_selection.cases import Drawn


def test_groups_reach_the_splitter(data):
    X, y = data
    groups = np.arange(80) % 8
    inner = IterativeRidge(0.0, cv=GroupKFold(4))
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv").fit(X, y, groups=groups)
    expected = clone(inner).fit(X, y, groups=groups).cv_path_
    np.testing.assert_array_equal(model.path_, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = GroupKFold(4).set_split_request(groups=True)
        inner = IterativeRidge(0.0, cv=asking)
        routed = TrajectoryEarlyStoppingCV(inner, criterion="cv")
        routed.fit(X, y, groups=groups)
    np.testing.assert_array_equal(routed.path_, expected)


# They train on few rows.
pytestmark = pytest.mark.filterwarnings(
    "ignore::skacv.exceptions.SmallTrainingSetsWarning"
)
RANDOM_SPLITTERS = [
    KFold(3, shuffle=True),
    ShuffleSplit(2, train_size=0.1),
    ShuffleSplit(2, train_size=0.3, random_state=np.random.RandomState(0)),
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("splitter", RANDOM_SPLITTERS, ids=["folds", "split", "state"])
def test_splits_are_drawn_once_for_all_stages(splitter, weighted, data, rng):
    X, y = data
    weights = {"sample_weight": rng.integers(0, 4, 80) / 3} if weighted else {}
    # Folds of so few rows are less stable than all rows are.
    ridge = IterativeRidge(0.0, step_size=0.05, max_iter=60, tol=0, cv=Drawn(splitter))
    clock = count()

    def later_is_better(estimator, X, y):
        return next(clock)

    model = TrajectoryEarlyStoppingCV(ridge, criterion=later_is_better, patience=10)
    model.fit(X, y, **weights)
    assert ridge.cv.n_draws == 1
    assert model.best_iter_ == model.estimator_.n_iter_ == 60
    assert model.estimator_.cv is ridge.cv


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("splitter", RANDOM_SPLITTERS, ids=["folds", "split", "state"])
@pytest.mark.parametrize("criterion", ["cv", "r2"])
def test_splits_are_drawn_once_for_all_candidates(criterion, splitter, n_jobs, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        IterativeRidge(cv=splitter, step_size=0.05),
        criterion=criterion,
        param_grid={"alpha": [1.0, 1.0, 1.0]},
        n_jobs=n_jobs,
    ).fit(X, y)
    rows = np.array(model.results_["criterion"]) == criterion
    scores = np.array(model.results_["best_score"])[rows]
    assert len(scores) == 3
    assert len(set(scores)) == 1
    assert model.best_params_ == {"alpha": 1.0}
    assert type(model.estimator_.cv) is type(splitter)


class Recorded(KFold):
    """A splitter that adds the rows that it holds out to a list of all its copies."""

    drawn = []

    def split(self, X, y=None, groups=None):
        for split in super().split(X, y, groups):
            self.drawn.append(split[1])
            yield split


def test_values_of_automatic_parameters_share_splits(data):
    """Kernels that are compared, each with a copy of the splitter."""
    X, y = data
    splitter = Recorded(3, shuffle=True)
    Recorded.drawn.clear()
    model = TrajectoryEarlyStoppingCV(
        KernelEigenProRegressor("auto", max_iter=5), cv=splitter
    ).fit(X, y)
    assert len(Recorded.drawn) == 3
    for rows, held_out in zip(model.estimator_.cv_indices_, Recorded.drawn):
        np.testing.assert_array_equal(rows, held_out)


def test_candidates_with_splitters_of_their_own(data):
    X, y = data
    splitters = [Drawn(KFold(3, shuffle=True)), Drawn(ShuffleSplit(2)), 4, None]
    grid = [{"cv": splitters, "alpha": [1.0, 2.0]}, {"alpha": [3.0]}]
    inner = IterativeRidge(cv=Drawn(KFold(5, shuffle=True)))
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv", param_grid=grid)
    model.fit(X, y)
    for splitter in (*splitters[:2], inner.cv):
        assert splitter.n_draws == 1
    assert len(model.results_["params"]) == 9
    for params, score in zip(model.results_["params"], model.results_["best_score"]):
        if params.get("cv", inner.cv) in (4, None):
            cv = params["cv"] or KFold(5, shuffle=True, random_state=0)
            alone = clone(inner).set_params(alpha=params["alpha"], cv=cv)
            assert score == pytest.approx(alone.fit(X, y).cv_path_.min())


@pytest.mark.parametrize("labels", [["low", "high"], ["a", "b", "c"]])
def test_an_integer_stratifies_classes(labels, data):
    X, _ = data
    y = np.repeat(labels, [60, *[20 // (len(labels) - 1)] * (len(labels) - 1)])
    inner = TrajectoryLogisticRegression(max_iter=10, cv=4)
    model = TrajectoryEarlyStoppingCV(inner, criterion="cv").fit(X, y)
    for rows in model.estimator_.cv_indices_:
        assert np.count_nonzero(y[rows] == labels[0]) == 15
    np.testing.assert_array_equal(model.path_, clone(inner).fit(X, y).cv_path_)
    assert model.estimator_.cv == 4


@pytest.mark.parametrize("routing", [False, True])
def test_groups_reach_the_splitter_of_every_candidate_and_stage(routing, data):
    X, y = data
    groups = np.arange(80) % 8
    splitter = GroupShuffleSplit(3)
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            splitter.set_split_request(groups=True)
        inner = IterativeRidge(tol=0, max_iter=50, cv=splitter)
        inner = inner.set_fit_request(sample_weight=True) if routing else inner
        model = TrajectoryEarlyStoppingCV(
            inner, criterion="cv", patience=10, param_grid={"alpha": [1.0, 1.0]}
        ).fit(X, y, groups=groups, sample_weight=np.ones(80))
    assert len(set(model.results_["best_score"])) == 1
    for rows in model.estimator_.cv_indices_:
        assert set(groups[rows]).isdisjoint(np.delete(groups, rows))


@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLasso])
def test_folds_where_nothing_is_set_are_of_rows_that_have_a_weight(cls, data):
    X, y = (values[:7] for values in data)
    weights = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    model = TrajectoryEarlyStoppingCV(cls(), criterion="cv")
    model.fit(X, y, sample_weight=weights)
    judged = np.concatenate(model.estimator_.cv_indices_)
    np.testing.assert_array_equal(np.sort(judged), np.flatnonzero(weights))
    assert model.estimator_.cv is None


def test_folds_where_nothing_is_set_do_not_follow_the_order_of_rows(data):
    X, y = data
    order = np.argsort(y)
    model = TrajectoryEarlyStoppingCV(IterativeRidge(), criterion="cv")
    model.fit(X[order], y[order])
    means = [y[order][rows].mean() for rows in model.estimator_.cv_indices_]
    assert np.ptp(means) < np.std(y)
    labels = np.sort(y) > np.quantile(y, 0.8)
    model = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression(max_iter=5))
    model.fit(X[order], labels)
    shares = [labels[rows].sum() for rows in model.estimator_.cv_indices_]
    assert len(shares) == 5
    assert np.ptp(shares) <= 1
