"""drop_record() copies what predictions of the iterate in use need, and no more."""

import copy
import pickle
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    SelfStoppingQuantileRegressor,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.risk.intervals import rank_of
from tests.runs import InParts, fitted_attributes
from tests.test_fitted_state import (
    MODELS,
    STAGES,
    drawn,
    fitted,
    holds_rows,
    of_every_model,
    overwrite,
    rows_in,
)
from tests.test_skops import from_skops
from tests.test_skops import pytestmark as stored_by_skops

RESPONSES = "predict", "predict_proba", "predict_log_proba", "decision_function"


def predicted(model, X):
    """Whatever predict and the like give, and intervals of every method left by it."""
    found = {
        name: getattr(model, name)(X) for name in RESPONSES if hasattr(model, name)
    }
    if isinstance(model, SelfStoppingQuantileRegressor):  # by one method
        found["interval"] = model.predict_interval(X, 0.8)
    elif hasattr(model, "predict_interval"):
        for method in ("cv", "loo", "risk"):
            try:
                found[method] = model.predict_interval(X, 0.8, method=method)
            except ValueError:  # it was fitted without
                continue
    return found


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def runs_of(model):
    """The estimators that record a run: the members, or a model by itself."""
    if isinstance(model, SelfStoppingQuantileRegressor):  # one for every level
        return [run for of_level in model.models_ for run in runs_of(of_level)]
    return list(getattr(model, "members_", {"itself": model}).values())


def n_bytes(model):
    return len(pickle.dumps(model))


# ------------------------------------------------------------------ nothing changes


@of_every_model
def test_predictions_and_intervals_stay(name):
    model, X, _, _ = fitted(name)
    new = drawn(name, seed=1)[1]
    expected = predicted(model, new)
    model = model.drop_record()
    for one in (model, *runs_of(model)):
        names = fitted_attributes(one)
        left = [name for name in names if name.endswith(("_path_", "_indices_"))]
        assert left == []
    for one in runs_of(model):
        assert one.recorded_iterations().tolist() == [one.iteration_]
        again = one.at_iteration(one.iteration_)
        np.testing.assert_array_equal(again.predict(new), one.predict(new))
    stored = pickle.dumps(model)
    assert rows_in(stored, X) == holds_rows(model)
    overwrite(X)
    twice = model.drop_record()
    for other in (model, pickle.loads(stored), copy.deepcopy(model), twice):
        assert_equal(predicted(other, new), expected)


FEW = ["lasso, loo", "kernel, labels", "staged passes", "stopped trees", "blend"]


@stored_by_skops
@pytest.mark.parametrize("name", FEW)
def test_skops_loads_them(name):
    model = fitted(name)[0].drop_record()
    new = drawn(name, seed=1)[1]
    assert_equal(predicted(from_skops(model), new), predicted(model, new))


@of_every_model
def test_before_fit_there_is_nothing_to_drop(name):
    with pytest.raises(NotFittedError):
        clone(MODELS[name]).drop_record()


@pytest.mark.parametrize("name", FEW)
def test_a_later_fit_begins_anew(name):
    model, X, y, weights = fitted(name)
    whole = predicted(model, X)
    small = model.drop_record()
    for again in (clone(small), small):
        again.fit(X, y, sample_weight=weights)
        assert_equal(predicted(again, X), whole)
        for one in runs_of(again):
            assert len(one.train_path_) == one.n_iter_ + 1
            assert len(one.recorded_iterations()) >= one.iteration_


@of_every_model
def test_the_model_keeps_its_record(name):
    model, X, _, _ = fitted(name)
    before = pickle.dumps(model)
    state = {key: id(value) for key, value in vars(model).items()}
    for intervals in (True, False):
        small = model.drop_record(intervals)
        assert type(small) is type(model)
        assert len(pickle.dumps(small)) < len(before)
    assert {key: id(value) for key, value in vars(model).items()} == state
    assert pickle.dumps(model) == before
    for one in runs_of(model):
        assert len(one.train_path_) == one.n_iter_ + 1
        one.at_iteration(1).predict(X)


# ------------------------------------------------------------------ errors say so


@pytest.mark.parametrize("name", ["lasso", "logistic", "staged", "kernel"])
def test_what_has_been_dropped_is_said(name):
    model, X, y, _ = fitted(name)
    model = model.drop_record()
    for attribute in ("cv_path_", "cv_prediction_path_", "train_path_"):
        with pytest.raises(AttributeError, match=r"drop_record\(\) has dropped it"):
            getattr(model, attribute)
    other = model.iteration_ - 1
    for use in (
        lambda: model.at_iteration(other),
        lambda: list(model.staged_predict(X)),
        lambda: model.staged_loss(X, y),
    ):
        with pytest.raises(ValueError, match=r"drop_record\(\) has dropped the others"):
            use()
    with pytest.raises(AttributeError) as caught:
        _ = model.loss_path_  # which there has never been
    assert "drop_record" not in str(caught.value)


@pytest.mark.parametrize("name", ["stopped", "stopped trees", "blend"])
def test_and_by_the_front_door(name):
    model = fitted(name)[0].drop_record()
    for attribute in ("path_", "member_paths_"):
        with pytest.raises(AttributeError, match=r"drop_record\(\) has dropped it"):
            getattr(model, attribute)
    assert np.isfinite([model.best_score_, model.best_score_corrected_]).all()
    assert model.results_["member"]
    assert set(model.members_) == {
        member for member, weight in model.weights_.items() if weight > 0
    }


def test_intervals_that_are_left():
    model, X, _, _ = fitted("lasso, loo")
    assert model.keep_data is False
    expected = model.predict_interval(X)
    model = model.drop_record()
    np.testing.assert_array_equal(model.predict_interval(X), expected)
    with pytest.raises(
        ValueError, match=r"'jackknife\+': available are auto, scaled, .*loo"
    ):
        model.predict_interval(X, method="jackknife+")
    model = model.drop_record(intervals=False)
    with pytest.raises(ValueError, match="'auto': available are none"):
        model.predict_interval(X)


def blended():
    """A blend of two members, and of one that has no weight; the data."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (120, 3))
    y = 3 * np.sin(2 * X[:, 0]) + (X[:, 1] > 0) + 0.3 * rng.standard_normal(120)
    members = [
        ("kernel", KernelEigenProRegressor(gamma=1.0, random_state=0)),
        ("trees", HistGradientBoostingRegressor(min_samples_leaf=5, **TREES)),
        ("forest", ExtraTreesRegressor(5, min_samples_leaf=50, random_state=0)),
    ]
    model = TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0)
    return model.fit(X, y), X, y


def test_the_blend_alone_has_intervals():
    model, X, _ = blended()
    expected = model.predict_interval(X)
    model = model.drop_record()
    np.testing.assert_array_equal(model.predict_interval(X), expected)
    for member in model.members_.values():
        with pytest.raises(ValueError, match="available are none"):
            member.predict_interval(X)
    with pytest.raises(ValueError, match=r"drop_record\(intervals=False\) drops"):
        model.drop_record(intervals=False).predict_interval(X)


def test_rows_that_were_kept_go():
    model, X, y, _ = drawn("lasso, loo")
    model.set_params(keep_data=True).fit(X, y)
    expected = model.predict_interval(X, method="loo")
    assert not np.array_equal(model.predict_interval(X), expected)  # jackknife+
    model = model.drop_record()
    assert not rows_in(pickle.dumps(model), X)
    np.testing.assert_array_equal(model.predict_interval(X), expected)
    with pytest.raises(ValueError, match=r"drop_record\(\)"):
        model.coef_interval()


def test_residuals_of_groups_are_those_of_folds():
    _, X, y, _ = drawn("lasso")
    groups = np.arange(len(y)) // 3
    model = TrajectoryLasso(0.1, cv=GroupKFold(5), loo=True, max_iter=5)
    model.fit(X, y, groups=groups)
    expected = model.predict_interval(X, [0.5, 0.8])
    model = model.drop_record()
    np.testing.assert_array_equal(model.predict_interval(X, [0.5, 0.8]), expected)
    with pytest.raises(ValueError, match="'loo': available are auto, scaled, cv"):
        model.predict_interval(X, method="loo")
    # Thirty groups, not ninety rows, bound what can be covered.
    with pytest.raises(ValueError, match="there are 30"):
        model.predict_interval(X, 0.98)
    assert rank_of(0.96, 30) == 30


# ------------------------------------------------------------------ runs that go on


@pytest.mark.parametrize("name", ["lasso", "logistic", "staged", "kernel"])
def test_a_run_goes_on_and_the_copy_begins_anew(name):
    model, X, y, _ = drawn(name)
    whole, going_on = (InParts(each, X, y) for each in (clone(model), model))
    whole.go_on(5)
    going_on.go_on(3)
    copied = model.drop_record()
    for parts in (InParts(copied, X, y), going_on):
        parts.go_on(5)
        np.testing.assert_array_equal(parts.model.cv_path_, whole.model.cv_path_)


def test_warm_start_begins_anew():
    model, X, y, _ = drawn("lasso")
    whole = clone(model).fit(X, y)
    model = model.set_params(warm_start=True, max_iter=3).fit(X, y).drop_record()
    model.set_params(max_iter=whole.max_iter).fit(X, y)
    np.testing.assert_array_equal(model.coef_path_, whole.coef_path_)


def test_partial_fit_begins_anew():
    _, X, y, _ = drawn("lasso")
    model = TrajectoryLasso(0.1, max_iter=4).partial_fit(X, y)
    expected = model.predict(X)
    model = model.drop_record()
    assert not rows_in(pickle.dumps(model), X)
    np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.warns(UserWarning, match="starts from scratch"):
        model.partial_fit(X[:50], y[:50])
    other = TrajectoryLasso(0.1, max_iter=4).partial_fit(X[:50], y[:50])
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    # Rows that have only been taken in are fitted to first.
    taken = TrajectoryLasso(0.1, max_iter=4).partial_fit(X, y).drop_record()
    np.testing.assert_array_equal(taken.predict(X), expected)


# ------------------------------------------------------------------ kernel machines


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", ["kernel", "kernel, labels"])
def test_rows_without_coefficients_go(name, container):
    model, X, y, weights = drawn(name)
    weights[::3] = 0
    model.set_params(patience=None).fit(container(X), y, sample_weight=weights)
    expected = predicted(model, X)
    model = model.drop_record()
    assert model.X_fit_.shape[0] == len(model.dual_coef_) == np.count_nonzero(weights)
    for key, value in predicted(model, X).items():
        np.testing.assert_allclose(value, expected[key], rtol=1e-10, err_msg=key)


def test_a_kernel_that_is_passed_keeps_its_columns():
    _, X, y, weights = drawn("kernel")
    weights[::3] = 0
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    model = KernelEigenProRegressor("precomputed", max_iter=5).fit(K, y, weights)
    expected = model.predict(K)
    np.testing.assert_array_equal(model.drop_record().predict(K), expected)


def test_a_scale_of_probabilities_is_fitted_once():
    model, X, y, _ = drawn("kernel, labels")
    model.fit(X, y)
    expected = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected)
    assert model.probability_scale_ is model.probability_scale_
    # Every iterate has its own, and so has another fit.
    other = model.at_iteration(1)
    assert other.probability_scale_ != model.probability_scale_
    again = clone(model).fit(X[:60], y[:60])
    model.fit(X[:60], y[:60])
    assert model.probability_scale_ == again.probability_scale_


# ------------------------------------------------------------------ sizes


def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return X[:200], y[:200]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X)[:200, :10], y[:200]


def wide():
    """Few rows and many columns, most of them noise."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 2000))
    return X, X[:, :5].sum(axis=1) + rng.standard_normal(80)


def wide_classes():
    X, y = wide()
    return X, (y > 0).astype(int)


def plain(estimator, count):
    """The same estimator of scikit-learn, with the number of stages chosen."""
    return lambda t: clone(estimator).set_params(**{count: t})


TREES = {"max_iter": 40, "random_state": 0}
FOREST = {"n_estimators": 20, "min_samples_leaf": 3, "random_state": 0}
# The data, a model, and scikit-learn's own that its pickle is compared with.
SIZES = {
    "boosting": (
        diabetes,
        HistGradientBoostingRegressor(**TREES),
        plain(HistGradientBoostingRegressor(**TREES), "max_iter"),
    ),
    "boosting, classes": (
        cancer,
        HistGradientBoostingClassifier(**TREES),
        plain(HistGradientBoostingClassifier(**TREES), "max_iter"),
    ),
    "plain boosting": (
        diabetes,
        GradientBoostingRegressor(n_estimators=30, random_state=0),
        plain(GradientBoostingRegressor(random_state=0), "n_estimators"),
    ),
    "extra trees": (
        diabetes,
        ExtraTreesRegressor(**FOREST),
        plain(ExtraTreesRegressor(**FOREST), "n_estimators"),
    ),
    "extra trees, classes": (
        cancer,
        ExtraTreesClassifier(**FOREST),
        plain(ExtraTreesClassifier(**FOREST), "n_estimators"),
    ),
    "network": (
        diabetes,
        MLPRegressor(hidden_layer_sizes=50, max_iter=5, random_state=0),
        plain(MLPRegressor(hidden_layer_sizes=50, random_state=0), "max_iter"),
    ),
    "pipeline": (
        diabetes,
        make_pipeline(PolynomialFeatures(), HistGradientBoostingRegressor(**TREES)),
        lambda t: make_pipeline(
            PolynomialFeatures(),
            HistGradientBoostingRegressor(max_iter=t, random_state=0),
        ),
    ),
    "lasso": (
        wide,
        TrajectoryLasso("path", max_iter=5),
        lambda t: Lasso(0.5),
    ),
    "logistic": (
        wide_classes,
        TrajectoryLogisticRegression("path", max_iter=5, standardize=True),
        lambda t: LogisticRegression(),
    ),
    "ridge": (
        wide,
        IterativeRidge("path", solver="newton"),
        lambda t: Ridge(),
    ),
    "kernel": (
        diabetes,
        KernelEigenProRegressor(gamma=1.0, random_state=0),
        lambda t: KernelRidge(kernel="rbf"),
    ),
    "kernel, classes": (
        cancer,
        KernelEigenProClassifier(gamma=0.01, random_state=0),
        lambda t: KernelRidge(kernel="rbf"),
    ),
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore:.*may be better")
@pytest.mark.filterwarnings("ignore:.*may be too small")
def test_a_pickle_is_at_most_twice_that_of_the_member(name):
    data, estimator, plain_at = SIZES[name]
    X, y = data()
    model = TrajectoryEarlyStoppingCV(estimator, random_state=0).fit(X, y)
    before = n_bytes(model)
    alone = n_bytes(plain_at(max(model.best_iter_, 1)).fit(X, y))
    model = model.drop_record()
    assert n_bytes(model) <= min(2 * alone, before)


def test_that_of_few_coefficients_is_two_numbers_a_row():
    X, y = diabetes()
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path"), random_state=0)
    assert n_bytes(model.fit(X, y).drop_record()) < 2 * y.nbytes + 2200
    assert n_bytes(model.drop_record(intervals=False)) < 2000


def test_members_of_a_blend_without_weight_take_nothing():
    model, X, y = blended()
    assert model.weights_["forest"] == 0
    assert set(model.members_) == {"kernel", "trees", "forest"}
    trees = HistGradientBoostingRegressor(min_samples_leaf=5, **TREES)
    trees.set_params(max_iter=model.members_["trees"].iteration_)
    parts = KernelRidge(kernel="rbf").fit(X, y), trees.fit(X, y)
    model = model.drop_record()
    assert set(model.members_) == {"kernel", "trees"}
    assert n_bytes(model) <= 2 * sum(map(n_bytes, parts))


def test_at_any_stage_of_an_estimator_by_itself():
    X, y = diabetes()
    trees = HistGradientBoostingRegressor(**TREES)
    model = Staged(trees, cv=3).fit(X, y).at_iteration(10)
    expected = model.predict_interval(X)
    alone = n_bytes(clone(trees).set_params(max_iter=10).fit(X, y))
    assert n_bytes(model.drop_record()) <= 2 * alone
    np.testing.assert_array_equal(model.predict_interval(X), expected)
    assert model.estimator_.n_iter_ == 10


# ------------------------------------------------------------------ without dropping


CHOSEN = {
    "lasso": TrajectoryLasso(0.1, max_iter=6),
    "huber": TrajectoryHuberRegressor(max_iter=6),
    "ridge by loo": IterativeRidge(loo=True, max_iter=6),
    "trees": STAGES,
}


@pytest.mark.parametrize("name", CHOSEN)
def test_a_chosen_iterate_keeps_its_own_held_out_predictions(name):
    _, X, y, _ = drawn("lasso")
    cv = None if "loo" in name else 3
    model = TrajectoryEarlyStoppingCV(CHOSEN[name], cv=cv, random_state=0).fit(X, y)
    kept, t = model.estimator_, model.best_iter_
    own = CHOSEN[name] if hasattr(CHOSEN[name], "at_iteration") else Staged(STAGES)
    splits = [] if cv is None else kept.cv_indices_
    rows = np.arange(len(y))
    folds = [(np.setdiff1d(rows, held_out), held_out) for held_out in splits]
    whole = clone(own).set_params(cv=folds or None).fit(X, y)
    path = f"{model.criterion_}_prediction_path_"
    expected = np.asarray(getattr(whole, path))
    found = getattr(kept, path)
    assert found.shape[1:] == expected.shape[1:]
    np.testing.assert_allclose(found[t], expected[t], rtol=1e-10)
    with pytest.raises(ValueError, match=f"chosen iterate, {t}, only"):
        np.asarray(found)
    interval = whole.at_iteration(t).predict_interval(X, method=model.criterion_)
    intervals = model.predict_interval(X, method=model.criterion_)
    np.testing.assert_allclose(intervals, interval, rtol=1e-10)
    # The trees have no other iterate than the first, which is the best.
    others = [u for u in kept.recorded_iterations() if u != t]
    for other in others[:1]:
        with pytest.raises(ValueError, match=f"chosen iterate, {t}, only"):
            model.at_iteration(other).predict_interval(X)
    # Reading one does not make a pickle larger.
    before = n_bytes(model)
    model.predict_interval(X)
    assert n_bytes(model) == before


def test_with_the_rows_it_keeps_those_of_all():
    _, X, y, _ = drawn("lasso")
    lasso = TrajectoryLasso(0.1, max_iter=6, keep_data=True)
    model = TrajectoryEarlyStoppingCV(lasso, cv=3, random_state=0).fit(X, y)
    assert np.asarray(model.estimator_.cv_prediction_path_).shape == (7, len(y))
    model.at_iteration(1).predict_interval(X, method="cv")


@pytest.mark.parametrize("name", ["lasso", "trees"])
def test_of_many_rows_it_keeps_residuals_alone(name, set_limits):
    _, X, y, _ = drawn("lasso")
    model = TrajectoryEarlyStoppingCV(CHOSEN[name], cv=3, random_state=0).fit(X, y)
    set_limits(MOST_OF_CHOICE=len(y) - 1)
    many = clone(model).fit(X, y)
    assert not hasattr(many.estimator_, "cv_prediction_path_")
    expected = model.predict_interval(X)
    np.testing.assert_array_equal(many.predict_interval(X), expected)
    np.testing.assert_array_equal(many.drop_record().predict_interval(X), expected)


def test_a_table_of_many_rows_has_a_small_pickle():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 50))
    y = X[:, 0] + rng.standard_normal(len(X))
    model = TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=3)).fit(X, y)
    # A fifth of what 200,000 rows may take.
    assert n_bytes(model) < 2e6 / 5 + 1e5


# ------------------------------------------------------------------ one row


def n_calls(method, X):
    """Calls of functions, of Python and in C, that a method makes for X."""
    counted = []

    def count(frame, event, argument):
        if event in ("call", "c_call"):
            counted.append(1)

    method(X)  # what is computed once
    sys.setprofile(count)
    try:
        method(X)
    finally:
        sys.setprofile(None)
    return len(counted)


def test_predicting_one_row_takes_little_more_than_the_members():
    X, y = diabetes()
    one = X[:1]
    boosted = HistGradientBoostingRegressor(**TREES)
    stopped = TrajectoryEarlyStoppingCV(boosted, random_state=0).fit(X, y)
    alone = n_calls(stopped.estimator_.estimator_.predict, one)
    assert n_calls(stopped.predict, one) <= 1.3 * alone
    stopped = TrajectoryEarlyStoppingCV(TrajectoryLasso("path"), random_state=0)
    alone = n_calls(Lasso().fit(X, y).predict, one)
    assert n_calls(stopped.fit(X, y).predict, one) <= 1.3 * alone


def test_a_blend_takes_no_more_than_its_members():
    X, y = diabetes()
    one = X[:1]
    members = [
        ("ridge", IterativeRidge(solver="newton")),
        ("kernel", KernelEigenProRegressor(gamma=1.0, random_state=0)),
        ("trees", HistGradientBoostingRegressor(**TREES)),
    ]
    model = SelfStoppingRegressor(members, rule="blend", random_state=0).fit(X, y)
    alone = sum(n_calls(each.predict, one) for each in model.members_.values())
    assert n_calls(model.predict, one) <= 1.1 * alone
