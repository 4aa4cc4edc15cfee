"""Groups are drawn whole wherever rows are resampled, and so are repeated rows."""

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import GroupKFold, GroupShuffleSplit, RepeatedKFold
from sklearn.utils import check_random_state

from skacv import IterativeRidge, Staged, TrajectoryEarlyStoppingCV, TrajectoryLasso

from .cases import left_out_parts

LASSO = TrajectoryLasso("path", max_iter=5, risk=False, loo=False)
RIDGE = IterativeRidge(0.0, max_iter=30, risk=False, loo=False)


def in_groups(rng, n_groups=12, size=5, effect=1.0):
    """Rows of groups of uneven size, whose targets share an effect of the group."""
    sizes = rng.integers(1, 2 * size, n_groups)
    groups = rng.permutation(np.repeat(np.arange(n_groups), sizes))
    X = rng.standard_normal((len(groups), 6))
    y = X[:, 0] + effect * rng.standard_normal(n_groups)[groups]
    return X, y + rng.standard_normal(len(groups)), groups


def by_loops(costs, rows, units, seed):
    """Choose without each part of the units, judge by that part, unit by unit.

    ``costs`` (n_iterates, n_held_out) of every member, for held-out ``rows``;
    ``units`` has the unit of every sample.
    """
    rng = check_random_state(seed)
    own = units[rows]
    # In the order in which units come among the sorted rows.
    ordered = list(dict.fromkeys(units[np.unique(rows)]))
    has = [np.flatnonzero(own == unit) for unit in ordered]
    sums, times = np.zeros(len(ordered)), np.zeros(len(ordered))
    for part in left_out_parts(len(ordered), rng):
        taken = np.concatenate([has[k] for k in range(len(has)) if k not in part])
        found = []
        for cost in costs:
            path = cost[:, taken].mean(axis=1)
            found.append((path.min(), cost[path.argmin()]))
        chosen = min(found, key=lambda pair: pair[0])[1]
        for k in part:
            sums[k] += chosen[has[k]].mean()
            times[k] += 1
    means, share = sums / times, np.array([np.sum(own == unit) for unit in ordered])
    share = share / share.sum()
    score, n = share @ means, len(ordered)
    error = np.sqrt(np.sum((share * (means - score)) ** 2) * n / (n - 1))
    return score, error


def costs_of(members, y, **fitted):
    """Squared errors of the held-out rows, and which these are."""
    found = [member.fit(y=y, **fitted) for member in members]
    rows = np.hstack(found[0].cv_indices_)
    return [(each.cv_prediction_path_ - y[rows]) ** 2 for each in found], rows


def with_members(models):
    return [(f"member {k}", model) for k, model in enumerate(models)]


@pytest.mark.parametrize("models", [[LASSO], [LASSO, RIDGE]])
@pytest.mark.parametrize("how", ["cv=None", "GroupKFold", "routed", "routed alias"])
def test_the_corrected_score_is_that_of_loops_over_groups(how, models, rng):
    X, y, groups = in_groups(rng)
    estimator = with_members(models) if len(models) > 1 else models[0]
    settings = {"criterion": "cv", "patience": None, "random_state": 7}
    cv, name = GroupKFold(3), "groups"
    if how == "cv=None":
        cv = None
    if how == "routed alias":
        name = "patients"
    with sklearn.config_context(enable_metadata_routing=how.startswith("routed")):
        if how == "routed alias":
            cv = cv.set_split_request(groups=name)
        model = TrajectoryEarlyStoppingCV(estimator, cv=cv, **settings)
        labels = np.array(list("abcdefghijkl"))[groups]
        model.fit(X, y, **{name: labels})
    folds = model.estimator_.cv_indices_
    for held_out in folds:
        assert not np.isin(groups[held_out], np.delete(groups, held_out)).any()
    everything = np.arange(len(y))
    cv = [(np.setdiff1d(everything, held_out), held_out) for held_out in folds]
    alone = [sklearn.base.clone(each).set_params(cv=cv) for each in models]
    costs, rows = costs_of(alone, y, X=X)
    # With several members a seed for them is drawn first.
    seed = check_random_state(7)
    if len(models) > 1:
        seed.randint(2**31 - 1)
    score, error = by_loops(costs, rows, groups, seed)
    assert model.best_score_corrected_ == pytest.approx(score)
    assert model.best_score_corrected_se_ == pytest.approx(error)


def test_a_row_that_is_held_out_often_is_one(rng):
    X, y, _ = in_groups(rng)
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = TrajectoryEarlyStoppingCV(
        LASSO, cv=cv, criterion="cv", patience=None, random_state=3
    ).fit(X, y)
    alone = sklearn.base.clone(LASSO).set_params(cv=list(cv.split(X)))
    costs, rows = costs_of([alone], y, X=X)
    score, error = by_loops(costs, rows, np.arange(len(y)), 3)
    assert model.best_score_corrected_ == pytest.approx(score)
    assert model.best_score_corrected_se_ == pytest.approx(error)


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_copies_of_a_row_are_drawn_together(rule, rng):
    """Their errors are alike: five copies of each say no more than one."""
    X, y, _ = in_groups(rng, n_groups=30, effect=0.0)
    many = np.repeat(np.arange(len(y)), 5)
    members = with_members([LASSO, RIDGE])
    model = TrajectoryEarlyStoppingCV(members, rule=rule, random_state=0)
    with pytest.warns(UserWarning, match="rows are copies of others"):
        found = model.fit(X[many], y[many]).best_score_corrected_se_
    alone = model.fit(X, y).best_score_corrected_se_
    assert 0.5 < found / alone < 2  # not 1 / sqrt(5)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["min", "blend"])
@pytest.mark.parametrize("size", [8, 60])  # fewer rows than groups are formed of, more
def test_the_standard_error_is_the_spread_of_the_score(rule, size, rng):
    """Over new data: 30 groups, half of the variance between them."""
    assert 30 * 8 < 1000 < 30 * 60  # more units are drawn in so many groups
    members = with_members([IterativeRidge(0.0, max_iter=8, loo=False, risk=False)] * 2)
    members[1] = "lasso", TrajectoryLasso("path", max_iter=2, loo=False, risk=False)
    scores, errors = [], []
    for seed in range(30):
        groups = np.repeat(np.arange(30), size)
        X = rng.standard_normal((len(groups), 3))
        y = X[:, 0] + 1.5 * rng.standard_normal(30)[groups]
        y += rng.standard_normal(len(y))
        model = TrajectoryEarlyStoppingCV(
            members, rule=rule, patience=None, random_state=seed
        ).fit(X, y, groups=groups)
        scores.append(model.best_score_corrected_)
        errors.append(model.best_score_corrected_se_)
    # The spread of thirty has a relative error of .13; by rows the ratio is .3 or .1.
    assert 0.6 < np.mean(errors) / np.std(scores, ddof=1) < 1.7


@pytest.mark.parametrize("n_groups", [2, 3])
def test_few_groups_have_a_number_and_one_has_none(n_groups, rng):
    X, y, groups = in_groups(rng, n_groups)
    model = TrajectoryEarlyStoppingCV(LASSO).fit(X, y, groups=groups)
    assert np.isfinite(
        [model.best_score_corrected_, model.best_score_corrected_se_]
    ).all()
    one = TrajectoryEarlyStoppingCV(LASSO, cv=GroupShuffleSplit(1, test_size=1))
    one = one.fit(X, y, groups=groups)
    assert np.isnan([one.best_score_corrected_, one.best_score_corrected_se_]).all()
    assert np.isnan(one.best_score_se_)


@pytest.mark.parametrize("rule", ["min", "blend"])
@pytest.mark.parametrize("n_groups", [12, 50])
def test_the_standard_error_of_a_scorer_leaves_out_groups(n_groups, rule, rng):
    X, y, groups = in_groups(rng, n_groups, size=3)
    members = with_members([LASSO, RIDGE])
    model = TrajectoryEarlyStoppingCV(
        members, criterion="r2", rule=rule, random_state=0
    ).fit(X, y, groups=groups)
    found = {
        name: (member.cv_indices_, member.cv_prediction_path_[member.iteration_])
        for name, member in model.members_.items()
    }
    indices = np.hstack(next(iter(found.values()))[0])
    predictions = sum(model.weights_[name] * own for name, (_, own) in found.items())
    if rule == "blend":  # its rows are sorted
        order = np.argsort(indices)
        indices, predictions = indices[order], predictions[order]
    names = list(dict.fromkeys(groups[indices]))
    order = np.random.default_rng(0).permutation(len(names))
    scores = []
    for block in np.array_split(order, min(20, len(names))):
        kept = ~np.isin(groups[indices], [names[k] for k in block])
        scores.append(r2_score(y[indices[kept]], predictions[kept]))
    n = len(scores)
    expected = np.sqrt((n - 1) * np.var(scores))
    assert model.best_score_se_ == pytest.approx(expected)


# ------------------------------------------------------------- errors of paths

TREES = Staged(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2))


@pytest.mark.parametrize("model", [RIDGE, TREES], ids=["ridge", "trees"])
def test_the_error_of_one_fold_is_over_its_groups(model, rng):
    X, y, groups = in_groups(rng, n_groups=20)
    cv = GroupShuffleSplit(1, test_size=0.5, random_state=0)
    model = sklearn.base.clone(model).set_params(cv=cv).fit(X, y, groups=groups)
    rows = model.cv_indices_[0]
    costs = (model.cv_prediction_path_[:] - y[rows]) ** 2
    labels = np.unique(groups[rows])
    means = np.stack([costs[:, groups[rows] == k].mean(axis=1) for k in labels], axis=1)
    share = np.array([np.mean(groups[rows] == k) for k in labels])
    away = share * (means - means @ share[:, None])
    n = len(labels)
    expected = np.sqrt(np.sum(away**2, axis=1) * n / (n - 1))
    np.testing.assert_allclose(model.cv_se_path_, expected, rtol=1e-6)
    stopped = TrajectoryEarlyStoppingCV(model, criterion="cv", patience=None)
    stopped.fit(X, y, groups=groups)
    assert stopped.best_score_se_ == pytest.approx(expected[stopped.best_iter_])


@pytest.mark.parametrize("model", [RIDGE, TREES], ids=["ridge", "trees"])
def test_repetitions_of_folds_make_no_error_smaller(model, rng):
    X, y, _ = in_groups(rng, n_groups=30, effect=0.0)
    X, y = X[:48], y[:48]
    cv = RepeatedKFold(n_splits=4, n_repeats=9, random_state=0)
    model = sklearn.base.clone(model).set_params(cv=cv).fit(X, y)
    by_fold = model.cv_fold_path_  # twelve rows in each
    expected = by_fold.std(axis=1, ddof=1) / np.sqrt(36) * np.sqrt(9)
    np.testing.assert_allclose(model.cv_se_path_, expected, rtol=1e-6)
    stopped = TrajectoryEarlyStoppingCV(model, criterion="cv", patience=None)
    stopped.fit(X, y)
    assert stopped.best_score_se_ == pytest.approx(expected[stopped.best_iter_])
