"""``time_limit``: what runs, how far, and what is said, by a clock that tests set."""

import warnings
from threading import Event, current_thread

import joblib
import numpy as np
import pytest
from joblib.parallel import ThreadingBackend
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
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.optim.run import LiveRun
from tests.callbacks import needs_callbacks

TOO_SHORT = "time_limit=10 s was too short"
N_ROWS = 80  # of the fixture ``data``


class Clock:
    """Seconds that pass with updates: ``start`` before the first, then ``update``.

    Attributes
    ----------
    now, start, update : float
    steps : list of (LiveRun, int)
        Which run was continued, and its number of updates after that.
    threads : list of Thread
        Where that was.
    """

    def __init__(self, start=0.03, update=1.0):
        self.now, self.start, self.update = 0.0, start, update
        self.steps, self.threads = [], []

    def __call__(self):
        return self.now

    def pass_by(self, n_before, n_after):
        self.now += self.start * (n_before == 0) + self.update * (n_after - n_before)


@pytest.fixture
def clock(monkeypatch, set_globals):
    found, go_on = Clock(), LiveRun.go_on
    grow = GradientBoostingRegressor.fit
    # A second of this clock is an update of a few rows.
    set_globals(perf_counter=found, SHORTEST=0.0)

    def timed(run, *args, **params):
        n_before = run.t
        go_on(run, *args, **params)
        found.steps.append((run, run.t))
        found.threads.append(current_thread())
        found.pass_by(n_before, run.t)

    def timed_trees(trees, X, y, **params):
        n_before = getattr(trees, "n_estimators_", 0)
        grow(trees, X, y, **params)
        if len(X) == N_ROWS - N_ROWS // 3:  # the last of three folds
            found.pass_by(n_before, trees.n_estimators_)
        return trees

    monkeypatch.setattr(LiveRun, "go_on", timed)
    monkeypatch.setattr(GradientBoostingRegressor, "fit", timed_trees)
    return found


def test_a_short_update_does_not_say_that_a_machine_is_slow(data, clock, set_globals):
    """It mostly takes what has nothing to do with the number of rows."""
    clock.start, clock.update = 0.05, 1e-6
    kernel = KernelEigenProRegressor(gamma=0.1, max_iter=5)
    members = [
        ("ridge", ridge(3)),
        ("kernel", kernel),
    ]  # expected to take half a second
    model = TrajectoryEarlyStoppingCV(members, cv=3, time_limit=2)
    _, (said,) = fitted(model, *data)
    assert "left out 'kernel'" in said
    set_globals(SHORTEST=0.1)
    clock.now = 0.0
    _, said = fitted(model, *data)
    assert not said


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
    lengths = [run.n_planned - 1 for run, n in clock.steps if n == 1]
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


def order_of(model, X, y, capsys):
    """The members in the order of their runs, by what verbose=1 prints of each."""
    model = clone(model).set_params(time_limit=1e6, verbose=1, random_state=0)
    model.fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    order = [line.split("] ")[1].split(" best ")[0].strip() for line in lines[:-1]]
    assert set(order) == set(model.results_["member"])
    return order


@pytest.mark.parametrize("task", ["regression", "classification"])
@pytest.mark.parametrize("n_rows", [149, 150])
@pytest.mark.usefixtures("few_trees")
def test_default_members_run_in_the_order_of_what_they_take(
    n_rows, task, capsys, rng, set_limits
):
    """Linear ones first; boosted trees, if rows are many, before all others."""
    set_limits(FEWEST_ROWS=150)
    X = rng.standard_normal((n_rows, 2))
    y = X[:, 0] + rng.standard_normal(n_rows)
    # With a splitter there is no trial, and all members run.
    if task == "regression":
        order = order_of(SelfStoppingRegressor(cv=KFold(2)), X, y, capsys)
    else:
        order = order_of(SelfStoppingClassifier(cv=KFold(2)), X, y > 0, capsys)
    assert order[0] == ("lasso" if task == "regression" else "logistic")
    boosted = order.index("boosted trees")
    assert (boosted == 1) == (n_rows == 150)
    assert order.index("extra trees") > boosted


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


def test_processes_start_where_there_is_time_for_them(data, clock):
    """The first run is alone in any case; here threads, which share the clock."""
    model, places = TrajectoryEarlyStoppingCV(three(4, 5, 6), n_jobs=2), []
    here = current_thread()  # not the main one, where processes of tests have several
    with joblib.parallel_backend("threading"):
        for limit in (1e9, 10):
            clock.threads.clear()
            fitted(model.set_params(time_limit=limit), *data)
            places.append([thread is here for thread in clock.threads])
    assert places[0][0]
    assert not all(places[0])
    assert all(places[1])


class NoWorkers(ThreadingBackend):
    """A backend of joblib whose workers never start, or cannot."""

    def __init__(self, fault, fit_is_over, **params):
        super().__init__(**params)
        self.fault, self.fit_is_over = fault, fit_is_over

    def configure(self, n_jobs=1, **params):
        if n_jobs > 1:
            if self.fault == "broken":
                raise OSError("no more processes")
            self.fit_is_over.wait(60)
        return super().configure(n_jobs, **params)


@pytest.mark.parametrize("search", ["all", "race"])
@pytest.mark.parametrize("fault", ["slow", "broken"])
def test_no_run_waits_for_processes(fault, search, data, clock, set_limits):
    fit_is_over = Event()
    set_limits(SHARE_OF_START=1e-4)
    grid = {"max_iter": [4, 5, 6]}
    model = TrajectoryEarlyStoppingCV(
        ridge(9), param_grid=grid, cv=4, search=search, n_jobs=2, time_limit=1e3
    )
    with joblib.parallel_backend(NoWorkers(fault, fit_is_over), n_jobs=1):
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
def test_a_limit_is_a_positive_number(limit, data, clock):
    with pytest.raises(ValueError, match="'time_limit' parameter"):
        TrajectoryEarlyStoppingCV(IterativeRidge(), time_limit=limit).fit(*data)
    assert not clock.steps  # nothing was run


LONGER = {
    "lasso": (TrajectoryLasso([0.5, 0.3]), {"max_iter": [5, 50]}),
    "newton": (IterativeRidge([10.0, 1.0], solver="newton"), {"max_iter": [1, 9]}),
    "logistic": (TrajectoryLogisticRegression([0.1, 1.0]), {"max_iter": [5, 50]}),
    "kernel": (KernelEigenProRegressor(gamma=0.1), {"max_iter": [5, 50]}),
    "boosting": (GradientBoostingRegressor(), {"n_estimators": [2, 20]}),
    "boosting as a whole": (AdaBoostRegressor(), {"n_estimators": [2, 9]}),
    "network": (SGDRegressor(), {"max_iter": [2, 20]}),
    "machine": (RecursiveFeatureMachineRegressor(), {"n_centers": [10, 70]}),
}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", LONGER)
def test_what_takes_longer_runs_later(kind, data, capsys):
    estimator, ((name, (few, many)),) = LONGER[kind][0], LONGER[kind][1].items()
    members = [
        ("long", clone(estimator).set_params(**{name: many})),
        ("short", clone(estimator).set_params(**{name: few})),
    ]
    X, y = data
    y = y > 0 if kind == "logistic" else y
    model = TrajectoryEarlyStoppingCV(members, cv=2, patience=None)
    assert order_of(model, X, y, capsys) == ["short", "long"]


def test_forests_wait_for_boosted_trees(data, capsys):
    """Though they take less."""
    members = {
        "forest": RandomForestRegressor(2),
        "bagging": make_pipeline(StandardScaler(), ExtraTreesRegressor(3)),
        "lasso": TrajectoryLasso([0.5, 0.3], max_iter=5),
        "boosted": GradientBoostingRegressor(n_estimators=30),
    }

    def order(*names):
        pairs = [(name, members[name]) for name in names]
        return order_of(TrajectoryEarlyStoppingCV(pairs, cv=2), *data, capsys)

    assert order("boosted", "forest") == ["boosted", "forest"]
    assert order("forest", "bagging") == ["forest", "bagging"]
    assert order(*members) == ["lasso", "boosted", "forest", "bagging"]
