"""A race ends what paired differences of held-out rows call worse, and nothing else."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import SGDRegressor
from sklearn.model_selection import GroupKFold, KFold, ParameterSampler, RepeatedKFold

from skacv import (
    KernelEigenProRegressor,
    RiskPathDisplay,
    RowSummary,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from .cases import by_loops

# Standard errors of the difference by which a combination is called worse.
SIGNIFICANT = 1.645

# A table of 150 rows: neither all nor none of these end.
DEPTHS = {"max_depth": [1, 3, 8], "learning_rate": [0.05, 0.3]}
FOLDS = KFold(5, shuffle=True, random_state=3)


@pytest.fixture
def data(rng):
    X = rng.standard_normal((150, 5))
    return X, X[:, 0] * (X[:, 1] > 0) + X[:, 2] + 0.3 * rng.standard_normal(150)


def stopping(estimator, search="race", **params):
    settings = {"cv": FOLDS, "random_state": 0, "search": search} | params
    return TrajectoryEarlyStoppingCV(estimator, **settings)


def trees(**params):
    return GradientBoostingRegressor(n_estimators=40, random_state=0, **params)


def ended(model):
    """Parameters of the combinations that the race has ended."""
    names = zip(model.results_["params"], model.results_["left_out"])
    return [params for params, reason in names if "standard errors" in reason]


def ended_by_refits(grid, X, y, splits, groups=None):
    """The same, by a fit of every combination on every fold, and differences."""
    going, losses = list(grid), {}
    for number in range(2):
        split = splits[number]
        for k, params in enumerate(grid):
            if params in going:
                one = Staged(trees(**params), cv=[split]).fit(X, y)
                best = one.cv_path_[1:].argmin() + 1
                cost = (y[split[1]] - one.cv_prediction_path_[best]) ** 2
                losses[k] = np.append(losses.get(k, []), cost)
        rows = np.concatenate([split[1] for split in splits[: number + 1]])
        alive = [k for k, params in enumerate(grid) if params in going]
        best = min(alive, key=lambda k: losses[k].mean())
        for k in set(alive) - {best}:
            difference = losses[k] - losses[best]
            if groups is not None:
                sizes = np.bincount(groups[rows])
                sizes = sizes[sizes > 0]
                difference = np.bincount(groups[rows], difference)
                difference = difference[np.unique(groups[rows])]
                centred = difference - difference.sum() / sizes.sum() * sizes
                n = len(sizes)
                error = np.sqrt(np.sum(centred**2) * n / (n - 1)) / sizes.sum()
                excess = difference.sum() / sizes.sum() / error
            else:
                error = difference.std(ddof=1) / np.sqrt(len(difference))
                excess = difference.mean() / error
            if excess > SIGNIFICANT:
                going.remove(grid[k])
    return [params for params in grid if params not in going]


GRID = [{"max_depth": d, "learning_rate": r} for d in (1, 3, 8) for r in (0.05, 0.3)]


def test_those_end_that_differences_of_rows_call_worse(data):
    model = stopping(trees(), param_grid=DEPTHS, patience=None).fit(*data)
    expected = ended_by_refits(GRID, *data, list(FOLDS.split(data[0])))
    found = ended(model)
    assert len(found) == len(expected)
    assert all(params in found for params in expected)
    assert len(expected) > 0


def test_rows_of_a_group_count_together(data):
    X, y = data
    groups = np.arange(150) // 3
    X = X[groups * 3] + 0.05 * X
    y = y[groups * 3]
    model = stopping(trees(), cv=GroupKFold(5), param_grid=DEPTHS, patience=None)
    model.fit(X, y, groups=groups)
    splits = list(GroupKFold(5).split(X, y, groups))
    expected = ended_by_refits(GRID, X, y, splits, groups)
    found = ended(model)
    assert len(found) == len(expected)
    assert all(params in found for params in expected)


@pytest.mark.parametrize(
    ("estimator", "param_grid"),
    [
        (trees(), DEPTHS),
        (
            HistGradientBoostingRegressor(max_iter=40, random_state=0),
            {"max_leaf_nodes": [2, 4, 31]},
        ),
        (TrajectoryLasso("path", max_iter=20), {"standardize": [True, False]}),
        (TrajectoryLasso(), {"alpha": [0.01, 0.1, 5.0]}),
        (
            KernelEigenProRegressor(max_iter=20, random_state=0),
            {"gamma": [1e-4, 0.1, 10.0]},
        ),
        (
            KernelEigenProRegressor("auto", max_iter=20, random_state=0),
            {"standardize": [True, False]},
        ),
    ],
    ids=lambda part: str(part)[:40],
)
def test_those_left_are_as_without_a_race(estimator, param_grid, data):
    raced = stopping(estimator, param_grid=param_grid).fit(*data)
    full = stopping(estimator, "all", param_grid=param_grid).fit(*data)
    results = full.results_
    scores = dict(zip(map(str, results["params"]), results["best_score"]))
    for params, score, why in zip(
        raced.results_["params"],
        raced.results_["best_score"],
        raced.results_["left_out"],
    ):
        if not why:  # but for rounding, where kernels share distances
            assert score == pytest.approx(scores[str(params)], rel=1e-9)
    if raced.best_params_ == full.best_params_:
        np.testing.assert_allclose(raced.predict(data[0]), full.predict(data[0]))


def test_the_models_of_those_that_end_do_not_grow(data, note_calls):
    grown = note_calls(
        HistGradientBoostingRegressor,
        "fit",
        size=lambda self, X, y: (len(X), self.max_iter),
    )
    boosting = HistGradientBoostingRegressor(max_iter=40, random_state=0)
    grid = {"max_leaf_nodes": [2, 31], "learning_rate": [1e-4, 0.2]}
    model = stopping(boosting, param_grid=grid).fit(*data)
    n_ended = len(ended(model))
    assert n_ended >= 2
    of_all = [n_trees for n_rows, n_trees in grown if n_rows == 150]
    # One tree for every lap, and the models of those that are left.
    assert sum(n_trees > 1 for n_trees in of_all) <= 2 * (4 - n_ended)


def trees_grown(boosting, X, y):
    """What names each tree that a call of fit adds: settings, rows and number."""
    name = boosting.max_depth, boosting.learning_rate, X.tobytes()
    n_before = len(getattr(boosting, "estimators_", ()))
    return [(*name, t) for t in range(n_before, boosting.n_estimators)]


@pytest.mark.parametrize("settings", [{}, {"time_limit": 1e3}], ids=str)
def test_no_tree_of_a_fold_is_grown_twice(settings, data, note_calls):
    noted = note_calls(GradientBoostingRegressor, "fit", size=trees_grown)
    settings = {"param_grid": DEPTHS, "patience": 10} | settings
    boosting = trees().set_params(n_estimators=200)
    raced = stopping(boosting, **settings).fit(*data)
    grown = [tree for trees in noted for tree in trees]
    assert 0 < len(ended(raced)) < 5
    assert len(set(grown)) == len(grown)
    # Those that have ended have grown on two folds at most, and one tree on all rows.
    for params in ended(raced):
        own = [
            t for t in grown if t[:2] == (params["max_depth"], params["learning_rate"])
        ]
        assert len({rows for *_, rows, _ in own}) in (2, 3)
        assert sum(rows == data[0].tobytes() for *_, rows, _ in own) == 1
    noted.clear()
    full = stopping(boosting, "all", **settings).fit(*data)
    grown_in_full = {tree for trees in noted for tree in trees}
    # Laps may be longer than runs on all folds, but those that end do not go on.
    assert len(grown) < len(grown_in_full)
    np.testing.assert_array_equal(raced.path_, full.path_)


def test_rows_of_many_runs_are_not_kept(data, set_limits, note_calls):
    """No more than those of one run on all folds, where the memory for more is less."""
    expected = stopping(trees(), param_grid=DEPTHS).fit(*data)
    set_limits(MEMORY_BYTES=1)
    noted = note_calls(GradientBoostingRegressor, "fit", size=trees_grown)
    model = stopping(trees(), param_grid=DEPTHS).fit(*data)
    grown = [tree for trees in noted for tree in trees]
    assert len(set(grown)) < len(grown)
    np.testing.assert_array_equal(model.path_, expected.path_)


def test_the_corrected_score_counts_those_that_ended(data):
    raced = stopping(trees(), param_grid=DEPTHS, patience=None).fit(*data)
    full = stopping(trees(), "all", param_grid=DEPTHS, patience=None).fit(*data)
    assert len(ended(raced)) > 0
    assert raced.best_score_ == full.best_score_
    gap = full.best_score_corrected_ - full.best_score_
    # Half of what the choice gains, at least, and no more than twice that.
    assert 0.5 * gap < raced.best_score_corrected_ - raced.best_score_ < 2 * gap


def test_the_corrected_score_is_that_of_loops(data):
    """Rows that one has not held out cost it what they cost the best, and more."""
    X, y = data
    model = stopping(trees(), param_grid=DEPTHS, patience=None).fit(X, y)
    splits, results, costs = list(FOLDS.split(X)), model.results_, {}
    for params, why in zip(results["params"], results["left_out"]):
        n_folds = int(why.split()[1]) if why else len(splits)
        own = np.full((41, 150), np.nan)
        for split in splits[:n_folds]:
            one = Staged(trees(**{n: params[n] for n in DEPTHS}), cv=[split]).fit(X, y)
            best = one.cv_path_[1:].argmin() + 1
            found = (one.cv_prediction_path_ - y[split[1]]) ** 2
            own[:, split[1]] = found[best] if why else found
        name = params["max_depth"], params["learning_rate"]
        costs[name] = own[:1] if why else own[1:]
    best = model.best_params_
    of_best = costs[best["max_depth"], best["learning_rate"]][model.best_iter_ - 1]
    for own in costs.values():
        difference = np.nanmean(own - of_best) if np.isnan(own).any() else 0.0
        own[...] = np.where(np.isnan(own), of_best + difference, own)
    expected = by_loops(costs.values(), np.ones(150), [None] * 6, "min", 0, [])
    assert model.best_score_corrected_ == pytest.approx(expected)


def test_members_of_one_loss_compete(data):
    X, _ = data
    data = X, np.sign(X[:, 0])
    members = [("lasso", TrajectoryLasso("path")), ("trees", trees())]
    grid = {"trees__max_depth": [1, 3], "lasso__standardize": [True, False]}
    halves = KFold(2, shuffle=True, random_state=0)
    model = stopping(members, cv=halves, param_grid=grid).fit(*data)
    reasons = list(zip(model.results_["member"], model.results_["left_out"]))
    assert all(why for name, why in reasons if name == "lasso")
    assert model.best_member_ == "trees"
    display = RiskPathDisplay.from_estimator(model)
    assert display.estimator_name == "GradientBoostingRegressor"
    assert not display.other_lines_
    assert set(model.leaderboard()["member"]) == {"lasso", "trees"}
    blend = stopping(members, param_grid=grid, rule="blend").fit(*data)
    assert set(blend.weights_) == {"lasso", "trees"}
    for name in ("lasso", "trees"):  # one of each goes on
        rows = zip(blend.results_["member"], blend.results_["left_out"])
        assert any(member == name and not why for member, why in rows)
    assert blend.best_score_corrected_ > 0


def test_workers_give_the_same(data):
    settings = {"param_grid": DEPTHS}
    one = stopping(trees(), **settings).fit(*data)
    two = stopping(trees(), n_jobs=2, **settings).fit(*data)
    assert one.results_["left_out"] == two.results_["left_out"]
    assert one.best_score_corrected_ == two.best_score_corrected_


def test_repeated_folds_and_weights_of_zero(data, rng):
    X, y = data
    weights = rng.integers(0, 3, 150).astype(float)
    cv = RepeatedKFold(n_splits=3, n_repeats=2, random_state=0)
    model = stopping(trees(), cv=cv, param_grid=DEPTHS).fit(X, y, sample_weight=weights)
    assert len(ended(model)) > 0
    assert np.isfinite(model.best_score_corrected_)


def test_lines_say_how_many_go_on(data, capsys):
    model = stopping(trees(), param_grid=DEPTHS, verbose=1).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[1:6] == ["race", "fold", "1", "of", "5:"]
    assert f"best {model.best_iter_:5}" in "".join(lines)


def test_a_time_limit_bounds_the_race(data):
    network = SGDRegressor(max_iter=3)
    grid = {"alpha": np.geomspace(1e-4, 1, 5).tolist()}
    model = stopping(network, param_grid=grid, time_limit=60).fit(*data)
    assert np.isfinite(model.best_score_)


def test_one_fold_is_no_race(data):
    split = next(FOLDS.split(data[0]))
    model = stopping(trees(), cv=[split], param_grid=DEPTHS).fit(*data)
    assert not ended(model)


# ---------------------------------------------------------------- distributions


def test_candidates_are_drawn(data):
    grid = {"alpha": loguniform(1e-3, 10), "standardize": [True, False]}
    settings = {"param_grid": grid, "n_candidates": 6}
    model = stopping(TrajectoryLasso(), "all", **settings).fit(*data)
    drawn = list(ParameterSampler(grid, 6, random_state=0))
    found = list(zip(model.results_["params"], model.results_["criterion"]))
    assert [params for params, name in found if name == "cv"] == drawn
    again = clone(model).fit(*data)
    assert again.best_params_ == model.best_params_


def test_candidates_of_members_are_drawn(data):
    members = [("lasso", TrajectoryLasso()), ("trees", trees())]
    grid = {"lasso__alpha": loguniform(1e-3, 10)}
    model = SelfStoppingRegressor(
        members, param_grid=grid, n_candidates=4, search="race", random_state=0
    ).fit(*data)
    names = model.results_["member"]
    assert (names.count("lasso"), names.count("trees")) == (4, 1)


def test_a_distribution_needs_a_number(data):
    model = stopping(TrajectoryLasso(), param_grid={"alpha": loguniform(1e-3, 10)})
    with pytest.raises(ValueError, match=r"distribution for 'alpha': set n_candidates"):
        model.fit(*data)


# -------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"criterion": "r2"}, "criterion='r2' does not have"),
        ({"criterion": "loo", "cv": None}, "criterion='loo' does not have"),
        ({"cv": None, "param_grid": {"cv": [3, 4]}}, "leave cv out of param_grid"),
    ],
    ids=["scorer", "loo", "cv"],
)
def test_what_cannot_race(params, match, data):
    settings = {"param_grid": {"alpha": [0.1, 1.0]}} | params
    with pytest.raises(ValueError, match=match):
        stopping(TrajectoryLasso(), **settings).fit(*data)


def test_losses_that_are_not_kept_cannot_race(data, set_limits):
    """As of a network: with too many held-out predictions its stages are forgotten."""
    set_limits(MEMORY_BYTES=1 << 10)
    network = SGDRegressor(max_iter=30, random_state=0)
    model = stopping(network, param_grid={"alpha": [1e-4, 1.0]})
    with pytest.raises(ValueError, match="does not keep for so many rows"):
        model.fit(*data)


def test_a_summary_cannot_race(data):
    summary = RowSummary(n_folds=3).partial_fit(*data)
    model = TrajectoryEarlyStoppingCV(
        TrajectoryLasso(), param_grid={"alpha": [0.1, 1.0]}, search="race"
    )
    with pytest.raises(ValueError, match="this X does not have"):
        model.fit(summary)


def test_labels_race_too(data):
    X, y = data
    model = stopping(
        TrajectoryLogisticRegression(max_iter=50), param_grid={"C": [1e-6, 1.0]}
    ).fit(X, y > 0)
    assert ended(model) == [{"C": 1e-6}]
