"""Several estimators in scikit-learn's machinery."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import ShuffleSplit

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV
from tests.callbacks import needs_callbacks

from .cases import members

pytestmark = pytest.mark.usefixtures("few_trees")


def test_parallel_runs_agree(data):
    X, y = data
    alone = TrajectoryEarlyStoppingCV(members(), random_state=0).fit(X, y)
    together = clone(alone).set_params(n_jobs=2).fit(X, y)
    assert together.best_member_ == alone.best_member_
    # A process of its own may have fewer threads, which add up in another order.
    np.testing.assert_allclose(
        together.best_score_corrected_, alone.best_score_corrected_, rtol=1e-10
    )
    np.testing.assert_allclose(together.predict(X), alone.predict(X), rtol=1e-10)


def test_pickle(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()).fit(X, y)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    single = TrajectoryEarlyStoppingCV(dict(members())[model.best_member_])
    single.set_params(criterion="cv").fit(X, y)
    # The other members' paths are all that is kept of them.
    extra = sum(path.nbytes for path in model.member_paths_.values())
    assert len(pickle.dumps(model)) < len(pickle.dumps(single)) + extra + 20_000


def test_metadata_routing(data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 80)
    expected = TrajectoryEarlyStoppingCV(members()).fit(X, y, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = [
            (
                name,
                member.set_fit_request(sample_weight=True).set_score_request(
                    sample_weight=True
                ),
            )
            for name, member in members()
        ]
        model = TrajectoryEarlyStoppingCV(asking).fit(X, y, sample_weight=weights)
        score = model.score(X, y, sample_weight=weights)
        asking[1][1].set_fit_request(sample_weight=None)
        with pytest.raises(ValueError, match="sample_weight"):
            TrajectoryEarlyStoppingCV(asking).fit(X, y, sample_weight=weights)
    for name, path in expected.member_paths_.items():
        np.testing.assert_array_equal(model.member_paths_[name], path)
    assert score == expected.score(X, y, sample_weight=weights)


def test_patience_ends_every_member(data):
    X, y = data
    pairs = [
        ("ridge", IterativeRidge(0.0, max_iter=2000, tol=0)),
        ("fast", IterativeRidge(0.0, max_iter=2000, tol=0, solver="nesterov")),
    ]
    model = TrajectoryEarlyStoppingCV(pairs, patience=10).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    assert max(model.results_["n_iter"]) < 500
    assert model.best_member_ == whole.best_member_
    assert model.best_iter_ == whole.best_iter_


def test_groups_and_random_splits(data):
    X, y = data
    pairs = members()
    pairs[0][1].set_params(cv=ShuffleSplit(3, test_size=0.3))
    model = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    assert np.isfinite(model.best_score_corrected_)
    assert len(np.hstack(model.estimator_.cv_indices_)) == 3 * 24


@needs_callbacks
def test_callbacks_reach_every_member(data):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    pairs = [
        (name, IterativeRidge(max_iter=7, tol=0).set_callbacks(monitor))
        for name in ("a", "b")
    ]
    TrajectoryEarlyStoppingCV(pairs).set_callbacks(ProgressBar()).fit(X, y)
    rows = [row for row in monitor.get_logs().data if row["task_name"] == "update"]
    assert len(rows) == 2 * 7


def test_a_list_has_no_order_of_preference(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()[::-1]).fit(X, y)
    assert model.best_score_ == min(model.results_["best_score"])
