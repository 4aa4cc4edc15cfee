"""The corrected score is that of loops over the draws; costs are those of each row."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import PredefinedSplit
from sklearn.preprocessing import scale
from sklearn.utils import check_random_state

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from tests.internals import bound_of_later_gain, drawn_groups, score_of_choice

from .cases import NestedLeastSquares, by_loops

# Of so many groups of rows, and parts of a partition, choices are made.
MOST_GROUPS, N_PARTS = 1000, 5


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 30))
    return X, X[:, :3].sum(axis=1) + 2 * rng.standard_normal(60)


MEMBERS = {
    "lasso": TrajectoryLasso("path", max_iter=5, risk=False, cv=4),
    "ridge": IterativeRidge(0.0, max_iter=40, risk=False, cv=4),
    # Staged models have other units of weights.
    "trees": Staged(GradientBoostingRegressor(n_estimators=20, random_state=0), cv=4),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rule", ["min", "one_se"])
@pytest.mark.parametrize(
    "names", [["lasso"], ["ridge"], ["lasso", "ridge"], ["ridge", "trees"]]
)
def test_the_corrected_score_is_that_of_loops(names, rule, weighted, data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 60) if weighted else np.ones(60)
    estimator = [(name, MEMBERS[name]) for name in names]
    settings = {"criterion": "cv", "rule": rule, "random_state": 7}
    model = TrajectoryEarlyStoppingCV(estimator, patience=None, **settings)
    model.fit(X, y, sample_weight=weights)
    costs, errors = [], []
    for _, member in estimator:
        settings = {} if isinstance(member, Staged) else {"loo": False}
        fitted = clone(member).set_params(**settings)
        fitted.fit(X, y, sample_weight=weights)
        rows = np.hstack(fitted.cv_indices_)
        own = (fitted.cv_prediction_path_ - y[rows]) ** 2
        # Models without a tree cannot be chosen.
        first = int(isinstance(member, Staged))
        costs.append(own[first:, np.argsort(rows)])
        errors.append(fitted.cv_se_path_[first:])
    expected = by_loops(costs, weights, errors, rule, 7, [2**31 - 1])
    assert model.best_score_corrected_ == pytest.approx(expected)
    assert model.best_score_corrected_se_ > 0


def test_leave_one_out_of_a_single_estimator(data):
    X, y = data
    ridge = IterativeRidge(0.0, max_iter=40, keep_data=True)
    model = TrajectoryEarlyStoppingCV(ridge, criterion="loo", random_state=1)
    model.fit(X, y)
    fitted = model.estimator_
    costs = (fitted.loo_prediction_path_ - y) ** 2
    errors = [fitted.loo_se_path_]
    expected = by_loops([costs], np.ones(60), errors, "min", 1, [])
    assert model.best_score_corrected_ == pytest.approx(expected)


def test_the_correction_raises_the_score_of_noise(rng):
    """Where all iterates are alike but for noise, choosing gains nothing."""
    gains = []
    for seed in range(20):
        X, y = rng.standard_normal((40, 200)), rng.standard_normal(40)
        lasso = TrajectoryLasso("path", max_iter=10)
        model = TrajectoryEarlyStoppingCV(lasso, criterion="cv", random_state=seed)
        model.fit(X, y)
        gains.append(model.best_score_corrected_ - model.best_score_)
    assert np.mean(gains) > 0.02


def test_where_few_rows_cost_much_it_is_the_risk_of_the_choice(rng):
    """Ten iterates, of which the earlier ones deny the class of more of the rows."""
    shares, denied = np.geomspace(0.2, 0.001, 10), 36.0
    usual = np.linspace(0.3, 0.6, 10)
    risks = usual + denied * shares
    scores, corrected, truth = [], [], []
    for seed in range(400):
        is_denied = rng.random(30) < shares[:, None]
        costs = usual[:, None] * rng.exponential(size=(10, 30)) + denied * is_denied
        corrected.append(score_of_choice(costs, seed))
        scores.append(costs.mean(axis=1).min())
        truth.append(risks[costs.mean(axis=1).argmin()])
    assert np.mean(scores) < 0.6 * np.mean(truth)
    assert np.mean(corrected) == pytest.approx(np.mean(truth), rel=0.1)


def test_rows_of_weight_zero_change_nothing(data, rng):
    X, y = data
    weights = rng.integers(0, 3, 60).astype(float)
    kept = weights > 0
    fold = np.arange(60) % 4
    ridge = IterativeRidge(0.0, max_iter=40, risk=False, loo=False)
    members = [("one", ridge), ("two", clone(ridge).set_params(alpha=30.0))]
    for rule in ("min", "blend"):
        found = []
        for rows in (slice(None), kept):
            model = TrajectoryEarlyStoppingCV(
                members, cv=PredefinedSplit(fold[rows]), rule=rule, random_state=0
            ).fit(X[rows], y[rows], sample_weight=weights[rows])
            found.append(
                [
                    model.best_score_corrected_,
                    model.best_score_corrected_se_,
                    model.possible_gain_,
                ]
            )
        np.testing.assert_allclose(*found, rtol=1e-9)


@pytest.mark.parametrize("n_rows", [MOST_GROUPS, 3 * MOST_GROUPS])
def test_more_rows_are_drawn_in_groups(n_rows, rng):
    """It is nearly the same, as the score hardly depends on single rows."""
    X = rng.standard_normal((n_rows, 5))
    y = X[:, 0] + rng.standard_normal(n_rows)
    ridge = IterativeRidge(0.0, max_iter=30)
    model = TrajectoryEarlyStoppingCV(ridge, criterion="cv", random_state=0).fit(X, y)
    found = model.estimator_
    rows = np.hstack(found.cv_indices_)
    costs = (found.cv_prediction_path_[model.best_iter_] - y[rows]) ** 2
    error = costs.std() / np.sqrt(len(rows))
    assert model.best_score_corrected_se_ == pytest.approx(error, rel=0.1)
    assert abs(model.best_score_corrected_ - model.best_score_) < 0.3 * error


def test_results_repeat(data):
    X, y = data
    estimator = list(MEMBERS.items())
    first, again, other = (
        TrajectoryEarlyStoppingCV(estimator, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    )
    assert first.best_score_corrected_ == again.best_score_corrected_
    assert first.best_score_corrected_ != other.best_score_corrected_
    assert first.best_score_ == other.best_score_


def test_without_costs_of_single_rows(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="r2")
    model.fit(X, y)
    for name in ("best_score_corrected_", "best_score_corrected_se_"):
        with pytest.raises(AttributeError, match="criterion=r2 scores all held-out"):
            getattr(model, name)


def test_a_class_that_does_not_say_what_rows_cost(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(NestedLeastSquares(True), criterion="loo")
    with pytest.raises(
        AttributeError, match="losses of held-out rows are not available"
    ):
        _ = model.fit(X[:, :8], y).best_score_corrected_


def test_an_unfitted_model_says_that_it_is_unfitted():
    with pytest.raises(NotFittedError):
        _ = TrajectoryEarlyStoppingCV(IterativeRidge()).best_score_corrected_


# ------------------------------------------------------- what held-out rows cost


def squared(y, predictions):
    return (predictions - y) ** 2


def deviance(y, predictions):
    return (
        predictions - y + np.where(y > 0, y * np.log(np.maximum(y, 1) / predictions), 0)
    )


def log_loss_of_two(y, decisions):
    return np.log1p(np.exp(np.where(y, -decisions, decisions)))


def log_loss_of_three(y, decisions):
    shares = np.exp(decisions)
    shares /= shares.sum(axis=-1, keepdims=True)
    return -np.log(shares[:, np.arange(len(y)), y])


def squared_hinge(y, decisions):
    return np.maximum(0, 1 - np.where(y, 1, -1) * decisions) ** 2


def huber(y, predictions):
    size = np.abs(y - predictions)
    return np.where(size <= 1.35, size**2 / 2, 1.35 * size - 1.35**2 / 2)


def codes(y, decisions):
    return (np.where(y, 1, -1) - decisions) ** 2


COSTS = {
    "ridge": (IterativeRidge(0.0, max_iter=20), "numbers", squared),
    "kernel": (
        KernelEigenProRegressor(gamma="scale", max_iter=5, random_state=0),
        "numbers",
        squared,
    ),
    "batches": (
        KernelEigenProRegressor(
            gamma="scale", batch_size=20, n_components=0, max_iter=5, random_state=0
        ),
        "numbers",
        squared,
    ),
    "poisson": (TrajectoryPoissonRegressor(max_iter=10), "counts", deviance),
    "huber": (TrajectoryHuberRegressor(scale=1.0, max_iter=10), "numbers", huber),
    "logistic": (TrajectoryLogisticRegression(max_iter=10), "two", log_loss_of_two),
    "weighted": (
        TrajectoryLogisticRegression(max_iter=10, class_weight={0: 1.0, 1: 3.0}),
        "two",
        log_loss_of_two,
    ),
    "three": (TrajectoryLogisticRegression(max_iter=10), "three", log_loss_of_three),
    "svm": (TrajectoryLinearSVC(max_iter=10), "two", squared_hinge),
    "codes": (
        KernelEigenProClassifier(gamma="scale", max_iter=5, random_state=0),
        "two",
        codes,
    ),
}


def targets(kind, rng):
    if kind == "two":
        X, y = load_breast_cancer(return_X_y=True)
    elif kind == "three":
        X, y = load_iris(return_X_y=True)
    else:
        X = rng.standard_normal((150, 4))
        y = X[:, 0] + rng.standard_normal(150)
        if kind == "counts":
            y = rng.poisson(np.exp(X[:, 0])).astype(float)
    rows = rng.permutation(len(y))[:150]
    return scale(X[rows]), y[rows]


@pytest.mark.parametrize("name", ["cv", "loo"])
@pytest.mark.parametrize("case", COSTS)
def test_costs_of_held_out_rows(case, name, rng):
    """A choice without parts of the rows is judged by them, each in its own units."""
    model, kind, cost = COSTS[case]
    X, y = targets(kind, rng)
    weights = rng.integers(0, 3, len(y)) / 2
    switches = {"cv": None, "loo": True} if name == "loo" else {"cv": 3, "loo": False}
    alone = clone(model).set_params(**switches).fit(X, y, sample_weight=weights)
    rows = np.hstack(getattr(alone, f"{name}_indices_"))
    costs = cost(y[rows], getattr(alone, f"{name}_prediction_path_"))
    path = getattr(alone, f"{name}_path_")
    passed = weights
    if case == "weighted":
        weights = weights * np.where(y, 3.0, 1.0)
    # Random labels of a run in batches add nothing to what rows cost, but to the mean.
    means = np.average(costs, axis=1, weights=weights[rows])
    if case == "batches" and name == "loo":
        assert (means != path).any()
        costs = costs + (path - means)[:, None]
    else:
        np.testing.assert_allclose(means, path, rtol=1e-9)
    kept = np.argsort(rows)
    kept = kept[weights[rows[kept]] > 0]
    costs, rows = costs[:, kept], rows[kept]
    classes = y[rows] if kind in ("two", "three") else None
    expected = by_loops([costs], weights[rows], [None], "min", 1, [], classes)
    folds = None
    if name == "cv":
        folds = [(np.setdiff1d(np.arange(len(y)), i), i) for i in alone.cv_indices_]
    stopped = TrajectoryEarlyStoppingCV(
        model, criterion=name, cv=folds, patience=None, random_state=1
    ).fit(X, y, sample_weight=passed)
    assert stopped.best_score_corrected_ == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("n_rows", "n_draws"), [(40, 200), (10_000, 200), (20_000, 100), (10**6, 50)]
)
def test_many_rows_are_drawn_fewer_times(n_rows, n_draws):
    group_of, *both = drawn_groups(n_rows)
    n_groups = min(n_rows, MOST_GROUPS)
    for counts in both:
        assert counts.shape == (n_draws, n_groups)
    resampled, without_parts = both
    assert np.all(resampled.sum(axis=1) == n_groups)
    assert np.all(without_parts.sum(axis=1) == n_groups * (N_PARTS - 1) // N_PARTS)
    # Every group is left out once in every partition.
    np.testing.assert_array_equal((without_parts == 0).sum(axis=0), n_draws // N_PARTS)
    assert len(np.unique(group_of)) == n_groups


def test_no_choice_is_made_without_a_class_that_two_rows_have():
    classes = np.repeat(["no", "yes"], [28, 2])
    draws = drawn_groups(30, classes=classes)
    is_yes = np.zeros(30, dtype=bool)
    is_yes[draws.group_of[classes == "yes"]] = True
    without_parts = draws.without_parts
    assert set(without_parts[:, is_yes].sum(axis=1)) == {1, 2}
    assert set(without_parts.sum(axis=1)) == {24}
    np.testing.assert_array_equal((without_parts == 0).sum(axis=0), 40)
    # No class is to be kept where groups are drawn whole.
    groups = np.arange(30) // 3
    grouped = drawn_groups(30, groups, classes)
    assert grouped.without_parts.shape == (200, 10)


# ------------------------------------------------ what later iterates may gain


def gain_by_loops(costs, chosen, counts, place):
    """The bound of the docstring, pair by pair."""
    n_iterates = len(costs)
    mean = costs.mean(axis=1)
    rows_of_draws = [np.repeat(np.arange(len(place)), each[place]) for each in counts]
    drawn = np.array([costs[:, rows].mean(axis=1) for rows in rows_of_draws])
    largest = np.zeros(len(counts))
    errors = {}
    for r in range(n_iterates):
        for s in range(r + 1, n_iterates):
            differences = drawn[:, r] - drawn[:, s] - (mean[r] - mean[s])
            errors[r, s] = differences.std()
            if errors[r, s] > 0:
                largest = np.maximum(largest, -differences / errors[r, s])
    factor = max(np.quantile(largest, 0.95), stats.norm.ppf(0.95))
    n_groups = counts.shape[1]
    factor = stats.t(n_groups - 1).ppf(stats.norm.cdf(factor))
    factor *= np.sqrt(n_groups / (n_groups - 1))
    bounds = [
        mean[chosen] - mean[s] + factor * errors[chosen, s]
        for s in range(chosen + 1, n_iterates)
    ]
    return max(0, *bounds)


@pytest.mark.parametrize("n_groups", [2, 3, 4, 8])
def test_the_bound_holds_for_few_groups(n_groups, rng):
    """Of a path whose direction is a normal effect of the groups, and leads nowhere."""
    direction = np.linspace(0, 1, 6)[:, None]
    exceeded = 0
    for seed in range(500):
        costs = rng.standard_normal(n_groups) * direction
        t = costs.mean(axis=1).argmin()
        # A later iterate would gain next to nothing, but not less than that.
        exceeded += t == 0 and bound_of_later_gain(costs, t, seed) == 0
    # Nominal .05, with a standard error of .01. By the normal distribution it is .2 for
    # two groups, and .1 for four.
    assert exceeded / 500 < 0.075


def test_the_bound_of_a_single_group_is_unknown():
    costs = np.arange(6.0)[:, None] * np.ones(4)
    groups = np.zeros(4, dtype=int)
    assert np.isnan(bound_of_later_gain(costs, 0, groups=groups))
    assert bound_of_later_gain(costs, 5, groups=groups) == 0


@pytest.mark.parametrize("rule", ["min", "one_se"])
def test_the_bound_of_later_gains_is_that_of_loops(rule, data):
    X, y = data
    ridge = IterativeRidge(0.0, max_iter=40, cv=4, loo=False)
    model = TrajectoryEarlyStoppingCV(
        ridge, criterion="cv", rule=rule, patience=None, random_state=3
    ).fit(X, y)
    fitted = clone(ridge).fit(X, y)
    rows = np.hstack(fitted.cv_indices_)
    costs = ((fitted.cv_prediction_path_ - y[rows]) ** 2)[:, np.argsort(rows)]
    drawn = check_random_state(3)
    place, drawn = drawn.permutation(60), drawn.randint(60, size=(200, 60))
    counts = np.array([np.bincount(each, minlength=60) for each in drawn])
    expected = gain_by_loops(costs, model.best_iter_, counts, place)
    assert model.possible_gain_ == pytest.approx(expected)
    assert model.possible_gain_ > 0


def test_after_the_last_iterate_nothing_is_gained(data):
    X, y = data
    ridge = IterativeRidge(0.0, max_iter=3, step_size=0.01)
    model = TrajectoryEarlyStoppingCV(ridge, criterion="cv").fit(X, y)
    assert model.best_iter_ == 3
    assert model.possible_gain_ == 0


def test_the_bound_of_a_blend_is_that_of_its_largest_member(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(
        list(MEMBERS.items()), rule="blend", random_state=0
    ).fit(X, y)
    member = MEMBERS[model.best_member_]
    alone = TrajectoryEarlyStoppingCV(
        [(model.best_member_, member)], random_state=0
    ).fit(X, y)
    assert model.possible_gain_ == pytest.approx(alone.possible_gain_)


def test_scorers_have_no_bound(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(IterativeRidge(0.0), criterion="r2").fit(X, y)
    with pytest.raises(AttributeError, match="criterion=r2 scores all held-out"):
        _ = model.possible_gain_
