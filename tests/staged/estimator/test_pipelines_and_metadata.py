"""Pipelines in ``Staged``, and what is passed to fit besides X and y."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import Staged, TrajectoryEarlyStoppingCV

from .cases import assert_same_fits, boosted

# ------------------------------------------------------------------ pipelines


class Remembers(StandardScaler):
    """Scales by the rows that it is passed, and knows how many there were."""

    n_rows = []

    def fit(self, X, y=None, sample_weight=None):
        self.n_rows.append(len(X))
        return super().fit(X, y, sample_weight)


def test_steps_before_are_fitted_to_the_rows_of_each_fold(data):
    X, y = data
    Remembers.n_rows.clear()
    pipe = make_pipeline(Remembers(), SGDRegressor(max_iter=4, random_state=0))
    model = Staged(pipe, cv=KFold(3)).fit(X, y)
    assert sorted(Remembers.n_rows) == [40, 40, 40, 60]
    for judged in model.cv_indices_:
        fitted = np.setdiff1d(np.arange(60), judged)
        scaler = StandardScaler().fit(X[fitted])
        grown = SGDRegressor(random_state=0)
        for t in range(1, 5):
            grown.partial_fit(scaler.transform(X[fitted]), y[fitted])
            np.testing.assert_array_equal(
                model.cv_prediction_path_[t][judged],
                grown.predict(scaler.transform(X[judged])),
            )
    assert [name for name, _ in model.estimator_.steps] == [
        name for name, _ in pipe.steps
    ]
    np.testing.assert_array_equal(
        model.estimator_[0].mean_, StandardScaler().fit(X).mean_
    )
    assert not hasattr(pipe[0], "mean_")
    stopped = TrajectoryEarlyStoppingCV(pipe, cv=KFold(3)).fit(X, y)
    assert stopped.best_params_ == {"sgdregressor__max_iter": stopped.best_iter_}


def test_a_pipeline_of_one_step(data):
    X, y = data
    model = Staged(make_pipeline(boosted()), cv=3).fit(X, y)
    assert_same_fits(model, Staged(boosted(), cv=3).fit(X, y), X)


def test_parameters_of_fit_go_to_their_steps(data):
    X, y = data
    weights = np.arange(1.0, 61.0)
    pipe = make_pipeline(StandardScaler(), boosted())
    by_name = Staged(pipe, cv=3).fit(
        X,
        y,
        standardscaler__sample_weight=weights,
        histgradientboostingregressor__sample_weight=weights,
    )
    for judged in by_name.cv_indices_:
        fitted = np.setdiff1d(np.arange(60), judged)
        by_hand = clone(pipe).fit(
            X[fitted],
            y[fitted],
            standardscaler__sample_weight=weights[fitted],
            histgradientboostingregressor__sample_weight=weights[fitted],
        )
        np.testing.assert_array_equal(
            by_name.cv_prediction_path_[5][judged], by_hand.predict(X[judged])
        )
    errors = (y - by_name.cv_prediction_path_[5]) ** 2
    np.testing.assert_allclose(by_name.cv_path_[5], np.average(errors, weights=weights))


# ------------------------------------------------------------------ metadata


class TakesNotes(SGDRegressor):
    """An estimator whose fit is passed more than weights."""

    passed = []

    def partial_fit(self, X, y, sample_weight=None, notes=None, name=None, scale=None):
        self.passed.append((len(X), notes, name, scale))
        return super().partial_fit(X, y, sample_weight)


@pytest.mark.parametrize("form", [np.array, list, tuple, pd.Series], ids=str)
def test_metadata_of_rows_are_sliced(form, data):
    X, y = data
    TakesNotes.passed.clear()
    name = "x" * 60  # as long as there are rows
    Staged(TakesNotes(max_iter=1), cv=KFold(3)).fit(
        X, y, notes=form(np.arange(60)), name=name, scale=2.0
    )
    for n_rows, notes, passed_name, scale in TakesNotes.passed:
        assert len(notes) == n_rows
        assert (passed_name, scale) == (name, 2.0)
    first = next(each for each in TakesNotes.passed if each[0] == 40)
    assert list(first[1]) == list(range(20, 60))


def test_groups_go_to_the_splitter(data):
    X, y = data
    groups = np.repeat(np.arange(12), 5)
    model = Staged(boosted(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    for judged in model.cv_indices_:
        assert not set(groups[judged]) & set(groups[np.setdiff1d(range(60), judged)])
    with pytest.raises(TypeError, match="colour"):
        Staged(boosted(), cv=3).fit(X, y, colour=1)


def test_metadata_are_routed_as_they_are_requested(data):
    X, y = data
    weights, groups = np.arange(1.0, 61.0), np.repeat(np.arange(12), 5)
    plain = Staged(boosted(), cv=GroupKFold(3))
    plain.fit(X, y, groups=groups, sample_weight=weights)
    with sklearn.config_context(enable_metadata_routing=True):
        inner = boosted().set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        routed = Staged(inner, cv=GroupKFold(3))
        routed.fit(X, y, groups=groups, sample_weight=weights)
        score = routed.score(X, y, sample_weight=weights)
        with pytest.raises(TypeError, match="colour"):
            routed.fit(X, y, colour=weights)
        scaler = StandardScaler().set_fit_request(sample_weight=True)
        pipe = Staged(make_pipeline(scaler, inner), cv=3)
        pipe.fit(X, y, sample_weight=weights)
        by_hand = make_pipeline(scaler, inner).fit(X, y, sample_weight=weights)
    assert_same_fits(routed, plain, X)
    assert score == plain.score(X, y, sample_weight=weights)
    np.testing.assert_array_equal(pipe.predict(X), by_hand.predict(X))
    errors = (
        y
        - np.asarray(pipe.cv_prediction_path_)[5][
            np.argsort(np.hstack(pipe.cv_indices_))
        ]
    ) ** 2
    np.testing.assert_allclose(pipe.cv_path_[5], np.average(errors, weights=weights))
