"""What estimators over JAX and over torch do alike: with early stopping, in figures."""

import copy
import pickle
from importlib import import_module
from inspect import signature

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    RiskPathDisplay,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)
from skacv.testing import check_iterative_estimator
from tests.runs import fitted_attributes

from ..oracles import set_by_hand
from ..test_docstrings import section
from ..test_fitted_state import rows_in
from ..test_skops import from_skops


@pytest.fixture(params=[("jax", "Optax"), ("torch", "Torch")], ids=lambda p: p[0])
def library(request):
    name, prefix = request.param
    pytest.importorskip(name, reason=f"needs skacv[{name}]")
    return import_module(f"skacv.{name}"), prefix


@pytest.fixture
def Regressor(library):
    return getattr(library[0], f"{library[1]}Regressor")


@pytest.fixture
def Classifier(library):
    return getattr(library[0], f"{library[1]}Classifier")


def linear_data(rng):
    X = rng.standard_normal((60, 20))
    return X, X[:, 0] + rng.standard_normal(60)


def classes_of(rng):
    X, y = linear_data(rng)
    return X, np.array(["low", "mid", "top"])[np.digitize(y, [-0.6, 0.6])]


def test_estimators_are_what_they_say(Regressor, Classifier):
    for kind in (Regressor, Classifier):
        check_iterative_estimator(kind(max_iter=6, cv=3, loo=True), rtol=1e-5)


def test_a_run_goes_on_to_its_end_once(Regressor, rng):
    X, y = linear_data(rng)
    model = Regressor(cv=4, max_iter=5)
    run = model.begin(X, y)
    with pytest.raises(ValueError, match="has not begun"):
        run.record()
    with pytest.raises(ValueError, match="n_updates must be at least 1, got 0"):
        run.go_on(0)
    assert run.go_on(2)
    record = run.record()
    assert run.go_on()
    assert run.record() is run.end() is record
    assert not hasattr(model, "record_")
    whole = clone(model).fit(X, y)
    np.testing.assert_array_equal(record["cv"].path, whole.cv_path_)
    np.testing.assert_array_equal(model.take(record).predict(X), whole.predict(X))


def test_folds_are_fits_of_a_clone(Regressor, rng):
    X, y = linear_data(rng)
    model = Regressor(cv=4, loo=True, max_iter=20).fit(X, y)
    for rows in model.cv_indices_:
        refit = Regressor(max_iter=20).fit(np.delete(X, rows, 0), np.delete(y, rows))
        held_out = model.cv_prediction_path_[
            :, np.isin(np.hstack(model.cv_indices_), rows)
        ]
        np.testing.assert_allclose(
            held_out, list(refit.staged_predict(X[rows])), atol=1e-10
        )
    refit = Regressor(max_iter=20).fit(X[1:], y[1:])
    np.testing.assert_allclose(
        model.loo_prediction_path_[:, 0],
        np.ravel(list(refit.staged_predict(X[:1]))),
        atol=1e-10,
    )
    squares = (y[model.loo_indices_] - model.loo_prediction_path_) ** 2
    np.testing.assert_allclose(model.loo_path_, squares.mean(axis=1))


def test_folds_have_rows_as_often_as_they_are_drawn(Regressor, rng):
    X, y = linear_data(rng)
    train = rng.integers(40, size=40)
    test = np.append(np.arange(40, 60), [40, 41])
    model = Regressor(cv=[(train, test)], max_iter=20).fit(X, y)
    refit = Regressor(max_iter=20).fit(X[train], y[train])
    expected = refit.staged_loss(X[test], y[test])
    np.testing.assert_allclose(model.cv_path_, expected, rtol=1e-6)
    np.testing.assert_array_equal(np.hstack(model.cv_indices_), test)


def test_any_iterate_predicts(Classifier, rng):
    X, labels = classes_of(rng)
    model = Classifier(cv=3, max_iter=30).fit(X, labels)
    stopped = model.at_iteration(7)
    staged = list(model.staged_predict_proba(X))
    np.testing.assert_allclose(stopped.predict_proba(X), staged[7])
    assert stopped.score(X, labels) != model.score(X, labels)
    costs = model.staged_loss(X, labels)
    np.testing.assert_allclose(costs, model.train_path_)
    true = np.searchsorted(model.classes_, labels)
    np.testing.assert_allclose(costs[7], -np.log(staged[7][np.arange(60), true]).mean())


@pytest.mark.parametrize("criterion", ["auto", "loo", "neg_median_absolute_error"])
def test_early_stopping_takes_it(Regressor, criterion, rng):
    X, y = linear_data(rng)
    inner = make_pipeline(
        StandardScaler(),
        TrajectoryEarlyStoppingCV(
            Regressor(max_iter=100, loo=True if criterion == "loo" else False),
            criterion=criterion,
        ),
    )
    stopped = inner.fit(X, y)[-1]
    assert 0 < stopped.best_iter_ < 100
    assert stopped.criterion_ == ("cv" if criterion == "auto" else criterion)
    sign = -1 if criterion.startswith("neg") else 1
    assert stopped.best_iter_ == (sign * stopped.path_).argmin()
    assert hasattr(stopped, "best_score_corrected_") == (sign == 1)


def test_it_is_a_member_beside_others(Classifier, rng):
    X, labels = classes_of(rng)
    members = [
        ("own", Classifier(max_iter=50)),
        ("core", TrajectoryLogisticRegression()),
    ]
    model = TrajectoryEarlyStoppingCV(members, criterion="cv").fit(X, labels)
    assert sorted(model.member_paths_) == ["core", "own"]
    np.testing.assert_allclose(
        model.member_paths_["own"][0], model.member_paths_["core"][0]
    )
    model = TrajectoryEarlyStoppingCV(Classifier(max_iter=50), criterion="accuracy")
    assert model.fit(X, labels).best_score_ > 0.5


@pytest.mark.parametrize("loss", [None, "own"])
def test_figures_show_its_paths(Regressor, loss, rng):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")

    def absolute(y, prediction):
        return abs(y - prediction)

    model = Regressor(loss=absolute if loss else None, cv=3, max_iter=150)
    display = RiskPathDisplay.from_estimator(model.fit(*linear_data(rng)))
    assert sorted(display.lines_) == ["cv"]
    assert ("absolute" if loss else "squared error") in display.ax_.get_ylabel()


def test_estimates_that_are_off_are_gone_after_another_fit(Regressor, rng):
    X, y = linear_data(rng)
    model = Regressor(cv=3, loo=10, max_iter=5).fit(X, y)
    assert len(model.loo_indices_) == 10
    model.set_params(cv=None, loo=False).fit(X, y)
    assert not any(n.startswith(("cv_", "loo_")) for n in fitted_attributes(model))
    with pytest.raises(ValueError, match="loo=61 is more than the 60 rows"):
        model.set_params(loo=61).fit(X, y)


@pytest.mark.parametrize("kind", ["Regressor", "Classifier"])
def test_attributes_are_documented(kind, library, rng):
    module, prefix = library
    cls = getattr(module, prefix + kind)
    X, y = linear_data(rng)
    model = cls(cv=2, loo=3, max_iter=3)
    model.fit(pd.DataFrame(X).add_prefix("x"), y > 0 if kind == "Classifier" else y)
    public = {*fitted_attributes(model), "record_"}
    assert set(section(cls, "Attributes")) == public
    assert sorted(section(cls, "Parameters")) == sorted(signature(cls).parameters)


@pytest.mark.parametrize("stops", [False, True])
def test_fitted_models_hold_no_rows_of_the_caller(Regressor, Classifier, stops, rng):
    for cls, (X, y) in ((Regressor, linear_data(rng)), (Classifier, classes_of(rng))):
        model = cls(cv=3, loo=True, max_iter=5)
        model = (TrajectoryEarlyStoppingCV(model) if stops else model).fit(X, y)
        new, run = X[:7].copy(), getattr(model, "estimator_", model)
        # Of what has been chosen those of its iterate are kept.
        some = run.iteration_ if stops else slice(None)
        expected, path = model.predict(new), np.array(run.cv_prediction_path_[some])
        stored = pickle.dumps(model)
        assert not rows_in(stored, X)
        X[:], y[:] = 1, y[0]
        for other in (model, pickle.loads(stored), copy.deepcopy(model)):
            run = getattr(other, "estimator_", other)
            np.testing.assert_array_equal(other.predict(new), expected)
            np.testing.assert_array_equal(run.cv_prediction_path_[some], path)


def test_skops_stores_fitted_models(Regressor, Classifier, rng):
    pytest.importorskip("skops")
    for cls, (X, y) in ((Regressor, linear_data(rng)), (Classifier, classes_of(rng))):
        model = cls(cv=3, max_iter=5).fit(X, y)
        again = from_skops(model)
        for other in (again, clone(again).fit(X, y)):
            np.testing.assert_array_equal(other.predict(X), model.predict(X))
            found = other.at_iteration(2).predict(X)
            np.testing.assert_array_equal(found, model.at_iteration(2).predict(X))
            np.testing.assert_array_equal(other.cv_path_, model.cv_path_)


def test_prediction_sets_by_hand(Classifier, rng):
    X, y = classes_of(rng)
    model = Classifier(cv=4, max_iter=20).fit(X, y)
    decision = np.asarray(model.cv_prediction_path_)[20].astype(float)
    known = np.exp(decision - decision.max(axis=1, keepdims=True))
    known /= known.sum(axis=1, keepdims=True)
    labels = np.searchsorted(model.classes_, y[np.hstack(model.cv_indices_)])
    for method in ("lac", "aps"):
        found = model.predict_set(X[:5], 0.8, method)
        for row, members in zip(model.predict_proba(X[:5]), found):
            expected = set_by_hand(known, labels, row, 0.8, method)
            np.testing.assert_array_equal(np.flatnonzero(members), expected)


@pytest.mark.parametrize("task", ["regression", "classification"])
def test_without_their_record_they_predict_the_same(Regressor, Classifier, task, rng):
    is_of_classes = task == "classification"
    X, y = classes_of(rng) if is_of_classes else linear_data(rng)
    model = (Classifier if is_of_classes else Regressor)(max_iter=20, loo=10)
    stopped = TrajectoryEarlyStoppingCV(model, criterion="cv", random_state=0)
    expected = stopped.fit(X, y).predict(X)
    before, t = len(pickle.dumps(stopped)), stopped.best_iter_
    small = stopped.drop_record()
    stored = pickle.dumps(small)
    assert len(stored) < before / 2
    for other in (small, pickle.loads(stored), from_skops(small)):
        np.testing.assert_array_equal(other.predict(X), expected)
        assert other.estimator_.recorded_iterations().tolist() == [t]
        for use in (lambda o=other: o.at_iteration(t - 1), staged(other, X)):
            with pytest.raises(ValueError, match=r"drop_record\(\) has dropped"):
                use()
    assert len(list(stopped.staged_predict(X))) == 21
    np.testing.assert_array_equal(small.fit(X, y).predict(X), expected)
    assert len(list(small.staged_predict(X))) == 21


def staged(model, X):
    return lambda: list(model.staged_predict(X))
