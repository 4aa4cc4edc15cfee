"""Several estimators side by side: chosen as by hand, of one loss or of several."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer
from sklearn.metrics import r2_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import scale

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)
from skacv.records import Run
from tests.model_selection.cases import NestedLeastSquares

from .cases import FOLDS, members

pytestmark = pytest.mark.usefixtures("few_trees")


# ------------------------------------------------------------ chosen as by hand


@pytest.mark.parametrize("weighted", [False, True])
def test_the_best_iterate_of_all_members(weighted, data, rng):
    X, y = data
    weights = {"sample_weight": rng.uniform(0.5, 2, 80)} if weighted else {}
    model = TrajectoryEarlyStoppingCV(members(), patience=None).fit(X, y, **weights)
    alone = {
        name: clone(member).set_params(risk=False, loo=False, cv=FOLDS)
        for name, member in members()
    }
    paths = {name: each.fit(X, y, **weights).cv_path_ for name, each in alone.items()}
    best = min(paths, key=lambda name: paths[name].min())
    assert model.criterion_ == "cv"
    assert model.best_member_ == best
    assert model.best_iter_ == paths[best].argmin()
    assert model.best_score_ == paths[best].min()
    np.testing.assert_array_equal(model.path_, paths[best])
    assert list(model.member_paths_) == list(paths)
    for name, path in paths.items():
        np.testing.assert_array_equal(model.member_paths_[name], path)
    chosen = alone[best].at_iteration(model.best_iter_)
    np.testing.assert_array_equal(model.predict(X), chosen.predict(X))
    table = pd.DataFrame(model.results_)
    assert list(table["member"]) == list(paths)
    assert list(table["best_score"]) == [path.min() for path in paths.values()]
    assert list(table["best_iter"]) == [path.argmin() for path in paths.values()]


def test_the_params_of_the_chosen_member(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members()[:1]).fit(X, y)
    alphas = model.estimator_.alpha_path_
    assert model.best_member_ == "lasso"
    assert model.best_params_ == {"alpha": alphas[model.best_iter_]}


def test_a_single_estimator_goes_by_the_name_of_its_class(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0)).fit(X, y)
    assert model.best_member_ == "IterativeRidge"
    assert set(model.results_["member"]) == {"IterativeRidge"}
    np.testing.assert_array_equal(model.member_paths_["IterativeRidge"], model.path_)


@pytest.mark.parametrize("rule", ["min", "one_se"])
@pytest.mark.parametrize("criterion", ["neg_mean_absolute_error", "r2"])
def test_scorers_judge_all_members_on_the_folds(criterion, rule, data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(members(), criterion=criterion, rule=rule)
    model.fit(X, y)
    values = []
    for name, member in members():
        alone = TrajectoryEarlyStoppingCV(
            clone(member).set_params(cv=FOLDS), criterion=criterion, rule=rule
        ).fit(X, y)
        np.testing.assert_array_equal(model.member_paths_[name], alone.path_)
        values.append(alone.best_score_)
    assert model.best_score_ == max(values)


@pytest.mark.parametrize("criterion", ["cv", "loo"])
def test_members_are_compared_on_the_rows_that_all_have_held_out(criterion, rng):
    """The rows of a preconditioner's subsample are judged by nobody."""
    X = rng.standard_normal((150, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernel = KernelEigenProRegressor(gamma="scale", n_components=2, random_state=3)
    ridge = IterativeRidge(0.0, max_iter=40)
    model = TrajectoryEarlyStoppingCV(
        [("ridge", ridge), ("kernel", kernel)], criterion=criterion
    ).fit(X, y)
    switches = {"cv": FOLDS, "loo": False} if criterion == "cv" else {"loo": True}
    alone = {
        "ridge": clone(ridge).set_params(risk=False, **switches).fit(X, y),
        "kernel": clone(kernel).set_params(**switches).fit(X, y),
    }
    seen = alone["kernel"].subsample_indices_
    assert len(seen)
    for name, each in alone.items():
        rows = np.hstack(getattr(each, f"{criterion}_indices_"))
        kept = ~np.isin(rows, seen)
        assert kept.sum() == 150 - len(seen)
        found = getattr(each, f"{criterion}_prediction_path_")[:, kept]
        path = np.mean((found - y[rows[kept]]) ** 2, axis=1)
        np.testing.assert_allclose(model.member_paths_[name], path)
    if criterion == "loo":
        costs = (found[model.best_iter_] - y[rows[kept]]) ** 2
        error = np.std(costs, ddof=1) / np.sqrt(len(costs))
    else:
        folds = np.repeat(range(5), [len(each) for each in alone["kernel"].cv_indices_])
        costs = (found[model.best_iter_] - y[rows]) ** 2
        own = [costs[folds == k].mean() for k in range(5)]
        share = np.bincount(folds) / len(folds)
        mean = share @ own
        error = np.sqrt(np.sum((share * (own - mean)) ** 2) * 5 / 4)
    assert model.best_member_ == "kernel"
    assert model.best_score_se_ == pytest.approx(error)


def test_rows_in_common_are_found_however_many_there_are(set_limits, rng):
    """Losses of many rows are summed in blocks of iterates."""
    X = rng.standard_normal((150, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    kernel = KernelEigenProRegressor(gamma="scale", n_components=2, random_state=3)
    members = [("ridge", IterativeRidge(0.0, max_iter=40)), ("kernel", kernel)]
    few = TrajectoryEarlyStoppingCV(members, criterion="cv", random_state=0).fit(X, y)
    assert np.isfinite(few.best_score_corrected_)
    set_limits(MEMORY_BYTES=32 * 150)
    many = TrajectoryEarlyStoppingCV(members, criterion="cv", random_state=0).fit(X, y)
    assert many.best_score_corrected_ == pytest.approx(few.best_score_corrected_)
    assert many.best_score_ == few.best_score_
    assert many.best_member_ == "kernel"


def test_all_combinations_of_a_kernel_have_one_subsample(rng):
    X = rng.standard_normal((150, 5))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(150)
    model = TrajectoryEarlyStoppingCV(
        [("ridge", IterativeRidge(0.0)), ("kernel", KernelEigenProRegressor())],
        param_grid={"kernel__gamma": [0.1] * 3},
    ).fit(X, y)
    own = np.array(model.results_["member"]) == "kernel"
    assert len(set(np.array(model.results_["best_score"])[own])) == 1
    assert own.sum() == 3


class WithoutWeights(Run):
    """A run whose record lacks the weights of its rows, as those of summaries do."""

    def __init__(self, run):
        self.run = run

    def go_on(self, n_updates=None, progress=None):
        return self.run.go_on(n_updates, progress)

    def record(self):
        return replace(self.run.record(), weights=None)


class WithoutLosses(IterativeRidge):
    """It does not say the losses of single rows."""

    def begin(self, X, y, **params):
        return WithoutWeights(super().begin(X, y, **params))


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_members_that_do_not_say_the_losses_of_rows(rule, data):
    X, y = data
    members = [
        (f"seed {seed}", WithoutLosses(0.0, max_iter=5, loo=20, random_state=seed))
        for seed in (0, 2)
    ]
    model = TrajectoryEarlyStoppingCV(members, criterion="loo", rule=rule)
    with pytest.raises(ValueError, match=r"held out different rows.*WithoutLosses"):
        model.fit(X, y)
    model.set_params(criterion="cv").fit(X, y)
    assert np.isfinite(model.best_score_)
    assert not hasattr(model, "best_score_corrected_se_")


def test_scorers_of_several_members_take_folds(data):
    X, y = data
    members = [("one", IterativeRidge(0.0)), ("path", IterativeRidge("path"))]
    model = TrajectoryEarlyStoppingCV(members, criterion="r2").fit(X, y)
    assert hasattr(model.estimator_, "cv_path_")
    assert not hasattr(model.estimator_, "loo_path_")


def test_scorers_take_folds_of_whole_groups(data):
    X, y = data
    groups = np.arange(len(y)) % 8
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="r2")
    model.fit(X, y, groups=groups)
    held_out = [set(groups[rows]) for rows in model.estimator_.cv_indices_]
    assert sum(map(len, held_out)) == len(set.union(*held_out)) == 8


def test_no_row_that_all_have_held_out(data):
    X, y = data
    first, last = (IterativeRidge(0.0, loo=2, random_state=seed) for seed in (0, 2))
    model = TrajectoryEarlyStoppingCV([("a", first), ("b", last)], criterion="loo")
    with pytest.raises(ValueError, match="No row was held out by all members"):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


# ------------------------------------------------------------------ their losses


@pytest.mark.parametrize(
    ("other", "loss"),
    [
        (TrajectoryHuberRegressor(), "'b': Huber loss.*criterion='r2'"),
        (NestedLeastSquares(), "'b': another loss"),
    ],
)
def test_members_of_different_losses_have_no_path_in_common(other, loss, data):
    pairs = [("a", IterativeRidge(loo=True)), ("b", other)]
    model = TrajectoryEarlyStoppingCV(pairs, criterion="loo")
    with pytest.raises(ValueError, match=f"'a': squared error, {loss}"):
        model.fit(*data)


def classifiers():
    return [
        ("svm", TrajectoryLinearSVC(max_iter=30)),
        ("logistic", TrajectoryLogisticRegression(max_iter=30)),
    ]


def test_members_of_different_losses_are_compared_by_accuracy():
    """Each at its own best iterate; the first of equals."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    model = TrajectoryEarlyStoppingCV(classifiers()).fit(X, y)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    accuracy = {}
    for name, member in classifiers():
        alone = clone(member).set_params(cv=folds, loo=False).fit(X, y)
        t = alone.cv_path_.argmin()
        rows = np.concatenate(alone.cv_indices_)
        chosen = alone.classes_[(alone.cv_prediction_path_[t] > 0).astype(int)]
        accuracy[name] = np.mean(chosen == y[rows])
        np.testing.assert_allclose(model.member_paths_[name], alone.cv_path_)
    found = dict(zip(model.results_["member"], model.results_["score"]))
    assert found == pytest.approx(accuracy)
    assert model.best_member_ == max(accuracy, key=accuracy.get)
    assert model.criterion_ == "cv"
    assert model.best_score_ == model.path_.min()
    assert np.isfinite(model.best_score_corrected_)


def test_numbers_are_compared_by_r2_where_losses_differ(data):
    X, y = data
    pairs = [("a", TrajectoryHuberRegressor(1.0)), ("b", TrajectoryHuberRegressor())]
    alike = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    assert alike.results_["score"] == alike.results_["best_score"]
    pairs[1][1].set_params(epsilon=2.0)
    model = TrajectoryEarlyStoppingCV(pairs).fit(X, y)
    scores = dict(zip(model.results_["member"], model.results_["score"]))
    own = clone(pairs[1][1]).set_params(cv=FOLDS, loo=False).fit(X, y)
    rows = np.concatenate(own.cv_indices_)
    predicted = own.cv_prediction_path_[own.cv_path_.argmin()]
    assert scores["b"] == pytest.approx(r2_score(y[rows], predicted))
    assert model.best_member_ == max(scores, key=scores.get)


def test_classifiers_of_different_losses_by_one_criterion():
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[:150], y[:150]
    pairs = classifiers()
    for criterion in ("cv", "loo"):
        model = TrajectoryEarlyStoppingCV(pairs, criterion=criterion)
        with pytest.raises(ValueError, match="such as criterion='accuracy'"):
            model.fit(X, y)
    model.set_params(criterion="accuracy").fit(X, y)
    assert is_classifier(model)
    assert model.best_score_ == max(model.results_["best_score"])
    assert not hasattr(TrajectoryEarlyStoppingCV(pairs), "predict_proba")
    assert hasattr(model, "predict_proba") == (model.best_member_ == "logistic")
