"""``time_limit``: what runs, how far, and what is said, by a clock that tests set."""

import warnings
from threading import Event

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import (
    AdaBoostRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RecursiveFeatureMachineRegressor,
    RowSummary,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv._estimator.estimates.recording import Price
from skacv.kernel._model import KernelModel
from skacv.model_selection import portfolios, time_limit
from skacv.model_selection.members import Candidate, DrawnSplits
from skacv.model_selection.portfolios import PORTFOLIOS
from skacv.model_selection.time_limit import prices_of
from skacv.model_selection.trial import FEWEST_ROWS
from skacv.staged.estimator import recorded
from tests.callbacks import needs_callbacks

TOO_SHORT = "time_limit=10 s was too short"


class Clock:
    """Seconds that pass with updates alone: ``start`` before the first, then one each.

    Attributes
    ----------
    now : float
    start : float
    steps : list of (estimator, int)
        What was continued, and the total number of updates asked for.
    """

    def __init__(self, start=0.03):
        self.now, self.start, self.steps = 0.0, start, []

    def __call__(self):
        return self.now

    def timed(self, fit_up_to):
        """The method, with the seconds that it takes."""

        def wrapped(estimator, n_updates, *args, **params):
            former = [n for other, n in self.steps if other is estimator]
            self.steps.append((estimator, n_updates))
            is_over = fit_up_to(estimator, n_updates, *args, **params)
            n_new = estimator.n_iter_ - (max(former) if former else 0)
            self.now += n_new if former else self.start + n_new
            return is_over

        return wrapped


@pytest.fixture
def clock(monkeypatch, set_globals):
    found = Clock()
    # A second of this clock is an update of a few rows.
    set_globals(perf_counter=found, SHORTEST=0.0)
    for kind in (IterativeRidge, Staged, KernelModel):
        monkeypatch.setattr(kind, "fit_up_to", found.timed(kind.fit_up_to))
    return found


def test_a_short_update_does_not_say_that_a_machine_is_slow():
    deadline = time_limit.Deadline(10)
    short, long = Price(0, 1e-3, 100), Price(0.1, 0.1, 100)
    deadline.learn(short, 0.05)
    assert deadline.admits(long)
    deadline.learn(long, 20.0)
    assert not deadline.admits(long)


def fitted(model, X, y):
    """The fitted model, and what it has warned of ``time_limit``."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    said = [each for each in caught if "time_limit" in str(each.message)]
    assert all(issubclass(each.category, ConvergenceWarning) for each in said)
    return model, [str(each.message) for each in said]


def ridge(n_updates, alpha=0.0):
    return IterativeRidge(alpha, max_iter=n_updates, tol=0)


# ------------------------------------------------------------ one run that is cut


@pytest.mark.parametrize("criterion", ["auto", "r2"])
@pytest.mark.parametrize(
    ("estimator", "count"),
    [
        (ridge(200), "max_iter"),
        (GradientBoostingRegressor(max_depth=2, random_state=0), "n_estimators"),
        (KernelEigenProRegressor(gamma=0.1, patience=None), "max_iter"),
    ],
    ids=["ridge", "trees", "kernel"],
)
def test_a_run_that_is_cut_equals_one_of_so_many_updates(
    estimator, count, criterion, data, clock
):
    model = TrajectoryEarlyStoppingCV(estimator, cv=3, criterion=criterion)
    model.set_params(time_limit=10, patience=None, random_state=0)
    cut, (said,) = fitted(model, *data)
    n_iter = cut.results_["n_iter"][0]
    assert 5 <= n_iter <= 8
    assert clock.now <= 10 * 1.25
    name = type(estimator).__name__
    assert said == f"{TOO_SHORT}: it has cut '{name}' at iteration {n_iter}."
    expected = clone(model).set_params(time_limit=None)
    expected.set_params(**{f"estimator__{count}": n_iter}).fit(*data)
    assert expected.results_["n_iter"][0] == n_iter
    assert cut.best_iter_ == expected.best_iter_
    np.testing.assert_allclose(cut.path_, expected.path_, rtol=1e-8)
    np.testing.assert_allclose(
        cut.predict(data[0]), expected.predict(data[0]), rtol=1e-8, atol=1e-10
    )


def test_the_first_update_ends_however_long_it_takes(data, clock):
    clock.start = 100.0
    cut, (said,) = fitted(TrajectoryEarlyStoppingCV(ridge(50), time_limit=10), *data)
    assert cut.results_["n_iter"] == [1]
    assert "at iteration 1." in said
    assert cut.predict(data[0]).shape == (80,)
    with pytest.raises(AttributeError, match=f"no corrected score: {TOO_SHORT}"):
        cut.best_score_corrected_  # noqa: B018


def test_what_cannot_be_continued_is_run_as_a_whole(data, clock):
    model = AdaBoostRegressor(n_estimators=12, random_state=0)
    whole, said = fitted(TrajectoryEarlyStoppingCV(model, time_limit=10), *data)
    assert not said
    assert whole.results_["n_iter"] == [12]


def test_a_run_goes_on_in_few_steps(data, clock):
    """The steps get longer where there is time; none is longer than a quarter of it."""
    model = TrajectoryEarlyStoppingCV(ridge(200), patience=None, time_limit=1000)
    _, said = fitted(model, *data)
    assert not said
    ends = [n for _, n in clock.steps]
    assert ends[:2] == [1, 2]
    assert ends[-1] >= 200
    assert len(ends) <= 4
    clock.steps, begun = [], clock.now
    _, said = fitted(model.set_params(estimator=ridge(5000)), *data)
    assert said
    ends = [n for _, n in clock.steps]
    sizes = np.diff([0, *ends])
    left = 0.9 * 1000 - clock.start - np.array([0, *ends[:-1]])
    is_longer = np.append(False, np.diff(sizes) > 0)
    assert is_longer.any()
    assert (sizes[is_longer] <= 0.25 * left[is_longer]).all()
    assert 0.8 * 1000 <= clock.now - begun <= 0.9 * 1000


# ------------------------------------------------------------ several members


def three(n_short=4, n_middle=50, n_long=400):
    counts = {"long": n_long, "short": n_short, "middle": n_middle}
    return [(name, ridge(n_updates)) for name, n_updates in counts.items()]


@pytest.mark.parametrize("rule", ["min", "blend"])
def test_members_run_in_the_order_of_their_price(rule, data, clock):
    model = TrajectoryEarlyStoppingCV(three(), rule=rule, time_limit=10, random_state=0)
    cut, (said,) = fitted(model, *data)
    n_iter = dict(zip(cut.results_["member"], cut.results_["n_iter"]))
    lengths = [estimator.max_iter for estimator, n in clock.steps if n == 1]
    assert lengths == [4, 50]
    assert n_iter["short"] == 4
    assert 2 <= n_iter["middle"] < 9 - 4
    assert said == (
        f"{TOO_SHORT}: it has cut 'middle' at iteration {n_iter['middle']} and left "
        "out 'long'."
    )
    reasons = dict(zip(cut.results_["member"], cut.results_["left_out"]))
    assert reasons == {"short": "", "middle": "", "long": TOO_SHORT}
    assert np.isnan(n_iter["long"])
    assert list(cut.weights_) == ["short", "middle"]
    others = [("short", ridge(4)), ("middle", ridge(int(n_iter["middle"])))]
    expected = clone(model).set_params(estimator=others, time_limit=None).fit(*data)
    assert cut.best_score_ == pytest.approx(expected.best_score_, rel=1e-8)
    assert cut.best_member_ == expected.best_member_
    # Weights of iterates of nearly the same predictions are not determined to as many.
    np.testing.assert_allclose(cut.predict(data[0]), expected.predict(data[0]), 1e-6)


@pytest.mark.parametrize("n_rows", [FEWEST_ROWS - 1, FEWEST_ROWS])
@pytest.mark.usefixtures("few_trees")
def test_boosted_trees_follow_the_first_run_where_rows_are_many(
    n_rows, capsys, rng, monkeypatch
):
    monkeypatch.setitem(portfolios.USUAL, "max_iter", 1000)
    X, y = rng.standard_normal((n_rows, 2)), rng.standard_normal(n_rows)
    # With a splitter there is no trial, and all members run.
    given = {"cv": KFold(2), "time_limit": 1000, "verbose": 1, "random_state": 0}
    model = SelfStoppingRegressor(**given).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    order = [line.split("] ")[1].split(" best ")[0].strip() for line in lines[:-1]]
    assert set(order) == set(model.members_)
    assert order[0] == "lasso"
    assert (order.index("boosted trees") == 1) == (n_rows == FEWEST_ROWS)


def test_a_scorer_that_takes_long_ends_in_time(data, clock):
    """Its standard error is left out, and fewer members are chosen for the blend."""

    def slow_r2(estimator, X, y):
        clock.now += 0.1
        return r2_score(y, estimator.predict(X))

    model = TrajectoryEarlyStoppingCV(three(), criterion=slow_r2, rule="blend", cv=3)
    begun = clock.now
    cut, said = fitted(model.set_params(time_limit=20), *data)
    assert said
    # One of the 20 scores of the error, or of a choice of the blend, may follow.
    assert clock.now - begun <= 20 * 1.05
    assert np.isnan(cut.best_score_se_)
    assert sum(cut.weights_.values()) == pytest.approx(1)
    assert cut.best_score_ > 0


def test_one_member_that_is_left_is_kept_by_itself(data, clock):
    clock.start = 20.0
    model = TrajectoryEarlyStoppingCV(three(), rule="blend", time_limit=10)
    cut, (said,) = fitted(model, *data)
    assert cut.weights_ == {"short": 1.0}
    assert said == (
        f"{TOO_SHORT}: it has cut 'short' at iteration 1 and left out 'long', 'middle'."
    )
    assert cut.estimator_ is cut.members_["short"]
    assert len(cut.results_["member"]) == 3


def test_combinations_of_a_grid_are_cut(data, clock):
    alphas = [0.1, 1.0, 10.0, 100.0, 10000.0, 1e5, 1e6]
    model = TrajectoryEarlyStoppingCV(
        ridge(2), param_grid={"alpha": alphas}, cv=3, time_limit=10, random_state=0
    )
    cut, (said,) = fitted(model, *data)
    is_out = np.array(cut.results_["left_out"]) == TOO_SHORT
    assert is_out.sum() == 3  # two updates each, and nine seconds
    assert [each["alpha"] for each in cut.results_["params"]] == alphas
    assert is_out.tolist() == sorted(is_out)
    assert "'IterativeRidge' with {'alpha': 10000.0}, 'IterativeRidge' with" in said
    run = [alpha for alpha, out in zip(alphas, is_out) if not out]
    expected = clone(model).set_params(time_limit=None, param_grid={"alpha": run})
    expected.fit(*data)
    assert cut.best_params_ == expected.best_params_
    assert cut.best_score_ == pytest.approx(expected.best_score_, rel=1e-10)


def test_many_names_are_counted(data, clock):
    clock.start = 20.0
    members = [(f"ridge {n}", ridge(n)) for n in range(2, 11)]
    _, (said,) = fitted(TrajectoryEarlyStoppingCV(members, time_limit=10), *data)
    assert said.endswith(
        "left out 'ridge 3', 'ridge 4', 'ridge 5', 'ridge 6', 'ridge 7' and 3 more."
    )


def test_values_that_a_kernel_compares_are_cut(data, clock):
    model = TrajectoryEarlyStoppingCV(KernelEigenProRegressor(), cv=3, time_limit=10)
    cut, (said,) = fitted(model, *data)
    gammas = [each["gamma"] for each in cut.results_["params"]]
    assert len(set(gammas)) == len(gammas) > 1
    left_out = np.array(cut.results_["left_out"])
    assert (left_out == "").sum() >= 1
    assert (left_out == TOO_SHORT).sum() == said.count("with") - said.split("left out")[
        0
    ].count("with")
    assert cut.best_params_["gamma"] in gammas


# ------------------------------------------------------------ where nothing is cut


@pytest.mark.parametrize(
    ("task", "n_jobs"), [("regression", 2), ("classification", None)]
)
@pytest.mark.usefixtures("few_trees")
def test_a_generous_limit_changes_nothing(task, n_jobs):
    load, kind = {
        "regression": (load_diabetes, SelfStoppingRegressor),
        "classification": (load_iris, SelfStoppingClassifier),
    }[task]
    X, y = load(return_X_y=True)
    X, y = X[::3], y[::3]
    expected = kind(random_state=0).fit(X, y)
    model, said = fitted(kind(time_limit=1e6, n_jobs=n_jobs, random_state=0), X, y)
    assert not said
    assert model.results_["member"] == expected.results_["member"]
    assert model.results_["best_iter"] == expected.results_["best_iter"]
    assert model.results_["n_iter"] == expected.results_["n_iter"]
    assert model.best_score_ == pytest.approx(expected.best_score_, rel=1e-6)
    np.testing.assert_allclose(
        model.best_score_corrected_, expected.best_score_corrected_, rtol=1e-6
    )


def test_a_summary_has_a_limit_too(data, clock):
    X, y = data
    summary = RowSummary().partial_fit(X, y)
    model = TrajectoryEarlyStoppingCV(ridge(200), time_limit=10, patience=None)
    cut, said = fitted(model, summary, None)
    assert said
    assert cut.results_["n_iter"][0] <= 9


# ------------------------------------------------------------ processes, callbacks


def test_processes_start_where_there_is_time_for_them(data, clock, set_globals):
    started, results_of = [], time_limit.results_of

    def recording(tasks, n_jobs):
        tasks = list(tasks)
        started.append((len(tasks), n_jobs))
        return results_of(tasks, n_jobs)

    set_globals(results_of=recording)
    model = TrajectoryEarlyStoppingCV(three(4, 5, 6), n_jobs=2)
    with joblib.parallel_backend("threading"):  # which shares the clock
        fitted(model.set_params(time_limit=1e9), *data)
        fitted(model.set_params(time_limit=10), *data)
    assert started == [(1, 1), (2, 2), (1, 1), (1, 1), (1, 1)]


@pytest.mark.parametrize("search", ["all", "race"])
@pytest.mark.parametrize("fault", ["slow", "broken"])
def test_no_run_waits_for_processes(fault, search, data, clock, monkeypatch):
    fit_is_over = Event()

    class Starting:
        def __init__(self, n_jobs):
            assert n_jobs == 2

        def __call__(self, tasks):
            if fault == "broken":
                raise OSError("no more processes")
            fit_is_over.wait()

    def no_processes(tasks, n_jobs):
        assert n_jobs == 1
        return (function(*args, **params) for function, args, params in tasks)

    monkeypatch.setattr(time_limit, "Parallel", Starting)
    monkeypatch.setattr(time_limit, "results_of", no_processes)
    monkeypatch.setattr(time_limit, "SHARE_OF_START", 1e-4)
    grid = {"max_iter": [4, 5, 6]}
    model = TrajectoryEarlyStoppingCV(
        ridge(9), param_grid=grid, cv=4, search=search, n_jobs=2, time_limit=1e3
    )
    model, said = fitted(model, *data)
    fit_is_over.set()
    assert not said
    assert len(model.results_["member"]) >= 3


@needs_callbacks
def test_callbacks_see_every_member_also_those_left_out(data, clock):
    from sklearn.callback import ProgressBar

    clock.start = 20.0
    model = TrajectoryEarlyStoppingCV(three(), time_limit=10)
    cut, (said,) = fitted(model.set_callbacks(ProgressBar()), *data)
    assert "left out 'long', 'middle'" in said
    assert cut.best_member_ == "short"


# ------------------------------------------------------------ parameters, prices


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, np.inf, "1"])
def test_a_limit_is_a_positive_number(limit, data, monkeypatch):
    def no_fit(*args, **params):
        raise AssertionError("something was run")

    monkeypatch.setattr(IterativeRidge, "fit_up_to", no_fit)
    with pytest.raises(ValueError, match="'time_limit' parameter"):
        TrajectoryEarlyStoppingCV(IterativeRidge(), time_limit=limit).fit(*data)


PRICED = [
    TrajectoryLasso("path"),
    IterativeRidge("path", solver="newton"),
    TrajectoryLogisticRegression("path"),
    KernelEigenProRegressor(),
    GradientBoostingRegressor(),
    AdaBoostRegressor(),
    SGDRegressor(),
]


@pytest.mark.parametrize("estimator", PRICED, ids=lambda each: type(each).__name__)
def test_prices_rise_with_rows_and_updates(estimator):
    estimator = recorded(estimator)
    prices = [estimator._price(n_rows, 10, 1) for n_rows in (100, 1000, 10_000)]
    assert 0 < prices[0].first < prices[1].first < prices[2].first
    for price in prices:
        n_others = price.n_updates - 1
        assert price.total == pytest.approx(price.first + n_others * price.update)
    count = next(
        name
        for name in ("n_estimators", "max_iter")
        if name in estimator.get_params()
        or f"estimator__{name}" in estimator.get_params()
    )
    # Of more stages than patience lets most runs have, so many are expected.
    few, many = (clone(estimator).set_params(**{count: n}) for n in (2, 10_000))
    assert many._price(100, 10, 1).total > few._price(100, 10, 1).total


def test_the_shortest_first_update_is_first_and_essential_members_follow():
    prices = [Price(5, 0.1, 10), Price(0.1, 0.5, 100), Price(0.2, 0.2, 2)]
    groups = [[Candidate(name, {}, TrajectoryLasso())] for name in "abc"]
    assert time_limit.in_time_order(groups, prices, ()) == [2, 0, 1]
    assert time_limit.in_time_order(groups, prices, {"b"}) == [2, 1, 0]
    # Of equal first updates that of the shorter run.
    prices = [Price(1, 1, 9), Price(1, 1, 2), Price(1, 1, 4)]
    assert time_limit.in_time_order(groups, prices, {"a", "b"}) == [1, 0, 2]


@pytest.mark.parametrize("essential", [(), {"boosted"}])
def test_forests_wait_for_boosted_trees(essential):
    members = {
        "forest": RandomForestRegressor(10),
        "lasso": TrajectoryLasso(),
        "boosted": GradientBoostingRegressor(),
        "bagging": make_pipeline(StandardScaler(), ExtraTreesRegressor(10)),
        "network": SGDRegressor(),
    }
    prices = {
        "forest": Price(0, 0.1, 20),
        "lasso": Price(0, 1, 6),
        "boosted": Price(0, 1, 8),
        "bagging": Price(0, 1, 3),
        "network": Price(0, 1, 7),
    }

    def order_of(*names):
        groups = [[Candidate(name, {}, recorded(members[name]))] for name in names]
        of_groups = [prices[name] for name in names]
        order = time_limit.in_time_order(groups, of_groups, essential)
        return [names[number] for number in order]

    # The forest has the shortest first update, and is cheapest.
    assert order_of("forest", "lasso") == ["forest", "lasso"]
    assert order_of("forest", "boosted") == ["boosted", "forest"]
    found = order_of(*members)
    assert found[0] == "lasso"
    assert found.index("boosted") == (1 if essential else 2)
    assert found[-2:] == ["forest", "bagging"]
    prices["bagging"] = Price(0, 9, 9)
    assert order_of(*members)[-1] == "bagging"


@pytest.mark.parametrize("task", PORTFOLIOS)
def test_those_of_the_default_too(task):
    members = PORTFOLIOS[task]()
    groups = [[Candidate(m.name, {}, m.estimator)] for m in members]
    prices = [m.estimator._price(1000, 10, 1) for m in members]
    order = time_limit.in_time_order(groups, prices, ())
    names = [members[number].name for number in order]
    assert names.index("extra trees") == names.index("boosted trees") + 1


def test_prices_are_those_of_the_folds_that_run(data):
    X, y = data
    estimator = Staged(GradientBoostingRegressor(), cv=5)
    splits = [*KFold(5).split(X)]
    (five,) = prices_of([[Candidate("trees", {}, estimator, X)]], y)
    estimator.set_params(cv=DrawnSplits(5, splits[:1]))
    (one,) = prices_of([[Candidate("trees", {}, estimator, X)]], y)
    assert one.total == pytest.approx(five.total * 2 / 6)
    assert one.n_updates == five.n_updates


def test_a_machine_of_more_centres_is_expected_to_take_longer():
    few, many = (
        Staged(RecursiveFeatureMachineRegressor(n_centers=m))._price(20_000, 10, 1)
        for m in (100, 1000)
    )
    # In proportion to the centres at least, and at most to their cube.
    assert 10 < many.update / few.update < 1000
    assert many.n_updates == few.n_updates == 3


def test_default_members_are_ordered_by_what_they_take():
    """Linear models, then trees and kernels: as they were measured."""
    model = SelfStoppingRegressor()
    prices = {name: each._price(3000, 30, 1) for name, each in model._members()}
    linear = max(prices.pop("lasso").total, prices.pop("ridge").total)
    assert linear < min(price.total for price in prices.values())
