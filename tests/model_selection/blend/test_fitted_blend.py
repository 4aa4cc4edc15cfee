"""What a fitted blend can do: coefficients, intervals, clones, searches."""

import os
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import check_estimator

from skacv import (
    IterativeRidge,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.oracles import scaled_ends

from .cases import (
    alone,
    blended,
    classifiers,
    counts,
    held_out_errors,
    is_blended,
    members,
    pairs_of_counts,
    two_classes,
)


def test_coefficients_of_linear_members(data):
    X, y = data
    # Each lacks a column of which the other has the coefficient.
    first, second = [1e3, *5 * [0.1]], [0.1, 1e3, *4 * [0.1]]
    pairs = [
        ("first", TrajectoryLasso(0.1, penalty_weights=first)),
        ("second", TrajectoryLasso(0.1, penalty_weights=second, standardize=True)),
    ]
    model = blended(pairs, X, y)
    assert min(model.weights_.values()) > 0.1
    found = X @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), found)
    expected = sum(
        weight * model.members_[name].coef_ for name, weight in model.weights_.items()
    )
    np.testing.assert_allclose(model.coef_, expected)


def test_coefficients_of_others(data, rng):
    X, y = data
    model = blended(members(), X, y)
    assert model.weights_["kernel"] > 0
    assert is_blended(model)
    for name in ("coef_", "intercept_"):
        with pytest.raises(
            AttributeError, match=f"A blend has {name} only if .*'kernel'"
        ):
            getattr(model, name)
        assert not hasattr(model, name)
    model = blended(pairs_of_counts(), *counts(rng))
    assert is_blended(model)  # a mean of exponentials
    assert not hasattr(model, "coef_")


def ranked(values, coverage):
    return np.sort(values)[int(np.ceil(coverage * (len(values) + 1))) - 1]


def test_intervals_by_hand(data):
    X, y = data
    model = blended(members(), X, y)
    weights = np.array(list(model.weights_.values()))
    residuals = held_out_errors(alone(members(), X, y), y) @ weights
    widths = [ranked(np.abs(residuals), coverage) for coverage in (0.6, 0.9)]
    found = model.predict_interval(X[:7], [0.6, 0.9], "cv")
    assert found.shape == (7, 2, 2)
    middle = model.predict(X[:7])
    for k, width in enumerate(widths):
        expected = np.stack([middle - width, middle + width], axis=1)
        np.testing.assert_allclose(found[:, :, k], expected, rtol=1e-6)
    one = model.predict_interval(X[:7], 0.9, "cv")
    np.testing.assert_allclose(one, found[:, :, 1])
    expected = scaled_ends(y + residuals, residuals, middle, 0.9)
    for method in ("auto", "scaled"):
        found = model.predict_interval(X[:7], 0.9, method)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    methods = r"one of \['auto', 'scaled', 'cv'\] for this blend"
    for method in ("jackknife+", "loo"):
        with pytest.raises(ValueError, match=methods):
            model.predict_interval(X, method=method)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.predict_interval(X, 1.5)
    with pytest.raises(ValueError, match="needs at least"):
        model.predict_interval(X, 0.999)


def test_intervals_of_counts_follow_the_mean(rng):
    pairs, (X, y) = pairs_of_counts(), counts(rng)
    model = blended(pairs, X, y)
    assert is_blended(model)
    fitted = alone(pairs, X, y)
    held_out = (held_out_errors(fitted, y) + y[:, None]) @ list(model.weights_.values())
    width = ranked(np.abs(y - held_out) / np.sqrt(held_out), 0.8)
    found, middle = model.predict_interval(X, 0.8, "cv"), model.predict(X)
    half = width * np.sqrt(middle)
    expected = np.stack([np.maximum(middle - half, 0), middle + half], axis=1)
    np.testing.assert_allclose(found, expected)
    assert (found[:, 0] == 0).any()
    assert model.predict_interval(X, 0.8).min() == 0


def test_a_blend_has_no_iterates(data):
    X, y = data
    model = blended(members(), X, y)
    with pytest.raises(AttributeError, match=r"members_\['\w+'\].at_iteration is"):
        model.at_iteration(0)
    with pytest.raises(AttributeError, match=r"members_\['\w+'\].staged_predict is"):
        list(model.staged_predict(X))
    assert not hasattr(model, "coef_interval")
    assert len(list(model.members_["lasso"].staged_predict(X))) > 1
    unfitted = TrajectoryEarlyStoppingCV(members(), rule="blend")
    with pytest.raises(NotFittedError):
        unfitted.at_iteration(0)


@pytest.mark.parametrize("of_classes", [False, True])
def test_a_blend_is_an_estimator_of_its_own(of_classes, data, rng):
    X, y = two_classes(rng) if of_classes else data
    model = blended(classifiers() if of_classes else members(), X, y)
    blend = model.estimator_
    assert (is_classifier if of_classes else is_regressor)(blend)
    assert blend.n_features_in_ == model.n_features_in_ == 6
    assert blend.score(X, y) == model.score(X, y)
    again = pickle.loads(pickle.dumps(blend))
    np.testing.assert_array_equal(again.predict(X), blend.predict(X))
    copied = clone(blend)
    assert copied.get_params()["weights"] == blend.weights
    with pytest.raises(NotFittedError):
        copied.predict(X)
    # Fitted anew it is the same: its members, weights and iterations are. Only the
    # scale of a kernel's probabilities is that of held-out rows.
    again, of = copied.fit(X, y), "decision_function" if of_classes else "predict"
    for name, member in blend.members_.items():
        found = getattr(again.members_[name], of)(X)
        np.testing.assert_allclose(found, getattr(member, of)(X), atol=1e-8)
    assert {name: each.iteration_ for name, each in copied.members_.items()} == {
        name: each.iteration_ for name, each in blend.members_.items()
    }
    shorter = clone(blend).set_params(
        **{f"{name}__max_iter": 1 for name, _ in blend.members}
    )
    shorter.fit(X, y)
    assert all(each.iteration_ <= each.n_iter_ for each in shorter.members_.values())
    if not of_classes:
        with pytest.raises(ValueError, match="which fit does not compute"):
            copied.predict_interval(X)


def test_pickle_and_clone(data):
    X, y = data
    model = blended(members(), X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    intervals = [each.predict_interval(X) for each in (again, model)]
    np.testing.assert_array_equal(*intervals)
    assert again.estimator_.members_["kernel"] is again.members_["kernel"]
    copied = clone(model)
    assert copied.rule == "blend"
    np.testing.assert_allclose(copied.fit(X, y).predict(X), model.predict(X))
    assert copied.best_score_corrected_ == pytest.approx(model.best_score_corrected_)


def test_in_searches_and_cross_validation(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()[1:], rule="blend", random_state=0)
    search = GridSearchCV(model, {"rule": ["min", "blend"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    scores = cross_val_score(model, X, y, cv=3)
    np.testing.assert_allclose(scores.mean(), search.cv_results_["mean_test_score"][1])


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_members_in_parallel(n_jobs, data):
    X, y = data
    model = blended(members(), X, y, n_jobs=n_jobs)
    expected = blended(members(), X, y)
    assert model.weights_ == expected.weights_
    assert model.best_score_corrected_ == expected.best_score_corrected_


def test_names_of_features(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = blended(members(), frame, y)
    assert list(model.feature_names_in_) == list("abcdef")
    assert list(model.estimator_.feature_names_in_) == list("abcdef")
    np.testing.assert_allclose(
        model.predict(frame), blended(members(), X, y).predict(X)
    )
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(blended(members(), X, y), "feature_names_in_")


def test_scores_of_weighted_rows_and_routing(data, rng):
    X, y = data
    rows = rng.uniform(0.1, 2, 120)
    model = blended(members(), X, y)
    residual = (y - model.predict(X)) ** 2
    spread = (y - np.average(y, weights=rows)) ** 2
    expected = 1 - np.average(residual, weights=rows) / np.average(spread, weights=rows)
    assert model.score(X, y, sample_weight=rows) == pytest.approx(expected)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = [
            (
                name,
                each.set_fit_request(sample_weight=True).set_score_request(
                    sample_weight=True
                ),
            )
            for name, each in members()
        ]
        found = blended(routed, X, y, sample_weight=rows)
        expected = found.estimator_.score(X, y, rows)
        assert found.score(X, y, sample_weight=rows) == expected
    assert found.weights_ == blended(members(), X, y, sample_weight=rows).weights_


@pytest.mark.usefixtures("few_trees")
@pytest.mark.parametrize("cls", [SelfStoppingRegressor, SelfStoppingClassifier])
def test_the_default_members_may_be_blended(cls, data, rng):
    X, y = data if cls is SelfStoppingRegressor else two_classes(rng)
    model = cls(rule="blend", random_state=0).fit(X, y)
    plain = cls(random_state=0).fit(X, y)
    assert list(model.weights_) == list(plain.member_paths_)
    assert sum(model.weights_.values()) == pytest.approx(1)
    least = {name: path.min() for name, path in model.member_paths_.items()}
    if cls is SelfStoppingRegressor:
        assert model.best_score_ <= min(least.values()) * (1 + 1e-9)
    else:
        logistic = [value for name, value in least.items() if "logistic" in name]
        assert model.best_score_ <= min(logistic) * (1 + 1e-6)
    assert model.results_["weight"].count(0.0) + sum(
        weight > 0 for weight in model.weights_.values()
    ) == len(model.results_["weight"])


def test_dask_rows_are_predicted_block_by_block(data, rng):
    array = pytest.importorskip("dask.array")
    X, y = data
    blocks = array.from_array(X, chunks=(50, 6))
    model = blended(members(), X, y)
    np.testing.assert_allclose(model.predict(blocks).compute(), model.predict(X))
    X, y = two_classes(rng)
    model = blended(classifiers(), X, y)
    blocks = array.from_array(X, chunks=(50, 6))
    for name in ("predict", "predict_proba", "decision_function"):
        found, expected = (getattr(model, name)(rows) for rows in (blocks, X))
        np.testing.assert_allclose(found.compute(), expected)


@pytest.mark.skipif(
    os.environ.get("SCIPY_ARRAY_API") != "1",
    reason="scikit-learn dispatches on arrays with SCIPY_ARRAY_API=1 only",
)
def test_arrays_of_another_namespace(data, rng):
    xp = pytest.importorskip("array_api_strict")
    logistic = [(str(C), TrajectoryLogisticRegression(C)) for C in (0.003, 10.0)]
    for pairs, (X, y) in [(members(), data), (logistic, two_classes(rng))]:
        with sklearn.config_context(array_api_dispatch=True):
            away = xp.asarray(X)
            model = blended(pairs, away, xp.asarray(y))
            expected = blended(pairs, X, y)
            names = ["predict"]
            if is_classifier(model):
                names += ["predict_proba", "predict_log_proba", "decision_function"]
            for name in names:
                found = getattr(model, name)(away)
                assert type(found) is type(away)
                np.testing.assert_allclose(
                    np.asarray(found), getattr(expected, name)(X), rtol=1e-6
                )
            if not is_classifier(model):
                found = model.predict_interval(away, [0.5, 0.8])
                np.testing.assert_allclose(
                    np.asarray(found), expected.predict_interval(X, [0.5, 0.8])
                )


@pytest.mark.slow
@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLogisticRegression])
def test_checks_of_scikit_learn(cls):
    # Classes of very different weights take more than a few iterations.
    pairs = [("a", cls(max_iter=100)), ("b", cls(0.01, max_iter=100))]
    model = TrajectoryEarlyStoppingCV(pairs, rule="blend")
    check_estimator(model)
