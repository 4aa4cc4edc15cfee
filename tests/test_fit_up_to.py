"""The deprecated ``fit_up_to`` holds the run, and goes on with the same objects."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skacv import Staged, TrajectoryLasso
from tests.runs import InParts, runs_in_memory
from tests.test_fitted_state import STAGES, drawn, rows_in
from tests.test_runs_in_parts import of_every_kind, with_data

SCALED = make_pipeline(StandardScaler(), STAGES)

pytestmark = pytest.mark.filterwarnings("ignore:fit_up_to is deprecated:FutureWarning")


def assert_is_run_of(model, n_updates, *data, **params):
    """What a model says is what one run of it says after so many updates."""
    whole = InParts(clone(model), *data, **params)
    whole.go_on(n_updates)
    assert model.n_iter_ == whole.model.n_iter_
    np.testing.assert_array_equal(model.cv_path_, whole.model.cv_path_)
    np.testing.assert_array_equal(model.predict(data[0]), whole.model.predict(data[0]))


def test_it_says_what_to_write_instead():
    model, X, y, _ = drawn("lasso")
    way_out = (
        r"run = model.begin\(X, y\), run.go_on\(n_updates\).*model.take\(run.record"
    )
    with pytest.warns(FutureWarning, match=way_out) as record:
        assert not model.fit_up_to(3, X, y)
    assert record[0].filename == __file__


@of_every_kind
def test_the_same_objects_go_on(name, note_calls):
    model, X, y, weights = with_data(name)
    begun = note_calls(type(model), "begin", size=lambda *_: 1)
    for n_updates in (2, 4, 3):
        assert not model.fit_up_to(n_updates, X, y, weights)
    assert len(begun) == 1
    assert model.n_iter_ == 4
    assert model.fit_up_to(100, X, y, sample_weight=weights)
    assert len(begun) == 1
    assert_is_run_of(model, 100, X, y, sample_weight=weights)


@of_every_kind
def test_other_data_begin_anew(name):
    model, X, y, weights = with_data(name)
    groups = np.arange(len(y)) // 6
    model.fit_up_to(4, X, y)
    for data, params in (
        ((X.copy(), y), {}),
        ((X, y[::-1]), {}),
        ((X, y), {"sample_weight": weights}),
        ((X, y), {"sample_weight": weights, "groups": groups}),
        ((X, y), {"sample_weight": weights, "groups": groups[::-1] // 2}),
        ((X, y), {}),
    ):
        model.fit_up_to(2, *data, **params)
        assert_is_run_of(model, 2, *data, **params)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (TrajectoryLasso(0.1, cv=3), {"alpha": 0.01}),
        (TrajectoryLasso(0.1, cv=3), {"max_iter": 9}),
        (Staged(STAGES, cv=3), {"cv": 4}),
        (Staged(STAGES, cv=3), {"estimator__learning_rate": 0.5}),
        (Staged(STAGES, cv=3), {"estimator__monotonic_cst": [1, 0, 0, 0, 0, 0]}),
        (
            Staged(SCALED, cv=3),
            {"estimator__histgradientboostingregressor__max_depth": 2},
        ),
        (Staged(SCALED, cv=3), {"estimator__standardscaler": MinMaxScaler()}),
    ],
    ids=str,
)
def test_other_parameters_begin_anew(model, changes):
    _, X, y, _ = drawn("staged")
    model = clone(model)
    model.fit_up_to(4, X, y)
    model.set_params(**changes).fit_up_to(2, X, y)
    assert_is_run_of(model, 2, X, y)


@of_every_kind
def test_an_error_leaves_the_fit_unchanged(name, monkeypatch):
    model, X, y, _ = with_data(name)
    model.fit_up_to(2, X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit_up_to(4, X, y[:-1])
    assert_is_run_of(model, 2, X, y)
    model.fit_up_to(3, X, y)
    kind = type(model.begin(X, y))

    def interrupted(run, n_updates=None, progress=None):
        advanced(run, n_updates - 1, progress)
        raise MemoryError("no more")

    advanced = kind.go_on
    monkeypatch.setattr(kind, "go_on", interrupted)
    with pytest.raises(MemoryError, match="no more"):
        model.fit_up_to(5, X, y)
    monkeypatch.undo()
    assert_is_run_of(model, 3, X, y)
    model.fit_up_to(4, X, y)
    assert_is_run_of(model, 4, X, y)


@pytest.mark.parametrize("growth", ["first", "best"])
def test_growth_passes_through(growth):
    model, X, y, _ = drawn("staged")
    for n_stages in (2, 5):
        model.fit_up_to(n_stages, X, y, growth=growth)
        whole = InParts(clone(model), X, y, growth=growth)
        for n in range(2, n_stages + 1, 3):
            whole.go_on(n)
        assert model.iteration_ == whole.model.iteration_ < n_stages
        np.testing.assert_array_equal(model.cv_path_, whole.model.cv_path_)


@of_every_kind
def test_the_run_stays_with_the_model(name):
    """What is stored, copied without its record or fitted has none that goes on."""
    model, X, y, _ = with_data(name)
    model.fit_up_to(3, X, y)
    stored = pickle.dumps(model)
    if name != "kernel":
        assert not rows_in(stored, X)
    for other in (pickle.loads(stored), model.drop_record(), model):
        other.fit_up_to(5, X, y)
        assert_is_run_of(other, 5, X, y)
    del other
    model.fit(X, y)
    assert not runs_in_memory()
