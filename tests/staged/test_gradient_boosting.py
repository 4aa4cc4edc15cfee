"""What the adapters of gradient boosting need of the installed scikit-learn."""

import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.utils._openmp_helpers import _openmp_effective_n_threads
from threadpoolctl import threadpool_limits

from skacv import Staged
from tests.runs import InParts

HISTOGRAMS = [HistGradientBoostingRegressor, HistGradientBoostingClassifier]
PLAIN = [GradientBoostingRegressor, GradientBoostingClassifier]


def data(rng):
    X = rng.standard_normal((60, 3))
    return X, (X[:, 0] + 0.5 * rng.standard_normal(60) > 0).astype(float)


def attributes_of(boosted):
    return {*dir(boosted), *vars(boosted)}


@pytest.mark.parametrize("make", HISTOGRAMS)
def test_histograms_have_the_private_attributes(make, rng):
    names = {"_bin_data", "_raw_predict", "_bin_mapper", "_predictors"}
    names |= {"_staged_raw_predict", "_baseline_prediction", "_loss"}
    missing = names - attributes_of(make(max_iter=2).fit(*data(rng)))
    assert not missing, "skacv/staged/gradient_boosting.py describes what they are for"


@pytest.mark.parametrize("make", PLAIN)
def test_plain_trees_have_the_private_attributes(make, rng):
    names = {"_staged_raw_predict", "_raw_predict_init", "_loss"}
    missing = names - attributes_of(make(n_estimators=2).fit(*data(rng)))
    assert not missing, "skacv/staged/gradient_boosting.py describes what they are for"


@pytest.mark.parametrize("make", HISTOGRAMS)
def test_rows_are_binned_and_earlier_trees_summed_once(make, rng, note_calls):
    binned, predicted = (
        note_calls(make, name, size=lambda *_: 1)
        for name in ("_bin_data", "_raw_predict")
    )
    X, y = data(rng)
    model = Staged(make(max_iter=9, min_samples_leaf=5), cv=2)
    parts = InParts(model, X, y)
    for n_stages in (2, 4, 9):
        parts.go_on(n_stages)
    # The model and two folds: the first fit of each calls it at most once.
    assert len(binned) == 3
    assert len(predicted) <= 3
    by_hand = make(max_iter=9, min_samples_leaf=5).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(X))


@pytest.mark.parametrize("make", HISTOGRAMS)
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_small_trees_grow_in_one_thread(make, n_jobs, rng, monkeypatch):
    """On busy cores threads that wait for one another take minutes."""
    X, y = data(rng)
    n_threads = []
    for name in ("_bin_data", "_staged_raw_predict"):
        method = getattr(make, name)

        def noting(self, *args, method=method, **settings):
            n_threads.append(_openmp_effective_n_threads())
            return method(self, *args, **settings)

        monkeypatch.setattr(make, name, noting)
    # Without it scikit-learn uses no more threads than there are cores.
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    with threadpool_limits(3, "openmp"):
        Staged(make(max_iter=3), cv=2, n_jobs=n_jobs).fit(X, y)
        assert set(n_threads) == {1}
        assert _openmp_effective_n_threads() == 3
        n_threads.clear()
        many = np.repeat(X, 1600, axis=0), np.repeat(y, 1600)
        Staged(make(max_iter=2), cv=2).fit(*many)
        assert max(n_threads) == 3  # predictions may be of a few of the rows


@pytest.mark.parametrize("make", [*HISTOGRAMS, *PLAIN])
def test_a_fitted_stage_has_no_method_of_the_adapter(make, rng):
    model = Staged(make()).set_params(**{count_of(make): 3}).fit(*data(rng))
    assert (
        not {"_bin_data", "_raw_predict", "_raw_predict_init"}
        & vars(model.at_iteration(2).estimator_).keys()
    )


def count_of(make):
    return "max_iter" if make in HISTOGRAMS else "n_estimators"
