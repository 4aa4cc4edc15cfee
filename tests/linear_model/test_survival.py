"""Cox regression: against R, a likelihood written out, and fits without folds."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from skacv import (
    TrajectoryClassifier,
    TrajectoryCoxRegressor,
    TrajectoryRegressor,
    approximate_loo,
)
from skacv._estimator.prediction.survival_scores import (
    concordance,
    integrated_brier_score,
    sums_of_smaller_before,
)
from skacv.optim.cox import Cox
from skacv.optim.families import GroupL2
from skacv.optim.schedules import Newton, StochasticGradient
from tests.r import read_results, read_rows

CONVERGED = {"max_iter": 20_000, "tol": 1e-13}


def rows_of_r():
    """X, events, times and weights of the rows that R was fitted to."""
    *X, time, event, weight = read_rows("cox").values()
    return np.array(X).T, event.astype(bool), time, weight


def found_by_r(name):
    return read_results("cox")[name]


def simulate(rng, n=120, p=4, tied=False):
    X = rng.standard_normal((n, p))
    time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, n)
    event, time = time <= end, np.minimum(time, end)
    return X, np.rec.fromarrays(
        [event, np.ceil(5 * time) if tied else time], names="status,days"
    ).view(np.ndarray)


def likelihood(y, z, weights):
    """Half the deviance with ties of Breslow, divided by the sum of the weights."""
    event, time = y["status"], y["days"]
    total = 0.0
    for t in np.unique(time[event]):
        tied, at_risk = event & (time == t), time >= t
        d = weights[tied].sum()
        total += d * np.log(np.sum(weights[at_risk] * np.exp(z[at_risk])) / d)
        total -= weights[tied] @ z[tied]
    return total / weights.sum()


# ------------------------------------------------------------------- what R finds


@pytest.mark.parametrize("ties", ["breslow", "efron"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_without_a_penalty_coefficients_are_those_of_coxph(ties, is_weighted):
    X, event, time, weight = rows_of_r()
    weights = weight if is_weighted else np.ones(len(X))
    model = TrajectoryCoxRegressor(ties=ties, penalty=None, **CONVERGED)
    model.fit(X, (event, time), weights)
    name = f"coxph {ties} {'weighted' if is_weighted else 'plain'}"
    np.testing.assert_allclose(model.coef_, found_by_r(f"{name} coef"), atol=1e-7)
    # Likelihoods up to a constant.
    fell = found_by_r(f"{name} loglik") @ [-1, 1]
    path = model.objective_path_ * weights.sum()
    np.testing.assert_allclose(path[0] - path[-1], fell, rtol=1e-9)


@pytest.mark.parametrize("l1_ratio", [0, 0.5, 1])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_with_a_penalty_they_are_those_of_glmnet(l1_ratio, is_weighted):
    X, event, time, weight = rows_of_r()
    weights = weight if is_weighted else np.ones(len(X))
    model = TrajectoryCoxRegressor(
        0.05, penalty="elasticnet", l1_ratio=l1_ratio, **CONVERGED
    )
    model.fit(X, np.column_stack([event, time]), weights)
    name = f"glmnet {l1_ratio} {'weighted' if is_weighted else 'plain'}"
    np.testing.assert_allclose(model.coef_, found_by_r(f"{name} coef"), atol=1e-6)
    deviance = found_by_r(f"{name} deviance")
    np.testing.assert_allclose(2 * model.train_path_[-1], deviance, rtol=1e-7)


def test_hazards_survival_and_concordance_are_those_of_r():
    X, event, time, _ = rows_of_r()
    model = TrajectoryCoxRegressor(penalty=None, **CONVERGED).fit(X, (event, time))
    hazards = model.cum_baseline_hazard_
    np.testing.assert_array_equal(hazards.x, np.unique(time))
    np.testing.assert_allclose(hazards.y, found_by_r("basehaz"), rtol=1e-6)
    survival = model.predict_survival_function(X[:2], return_array=True)
    np.testing.assert_allclose(survival.ravel(), found_by_r("survfit"), rtol=1e-6)
    score = model.score(X, (event, time))
    np.testing.assert_allclose(score, found_by_r("concordance"), rtol=1e-12)


# -------------------------------------------------------- what scikit-survival finds


@pytest.mark.parametrize("ties", ["breslow", "efron"])
def test_ridge_penalties_are_those_of_scikit_survival(ties, rng):
    peers = pytest.importorskip("sksurv.linear_model")
    X, y = simulate(rng, tied=True)
    theirs = peers.CoxPHSurvivalAnalysis(6.0, ties=ties, tol=1e-14, n_iter=1000)
    theirs.fit(X, y)
    ours = TrajectoryCoxRegressor(6.0 / len(X), ties=ties, **CONVERGED).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-7)
    for kind in ("survival", "cumulative_hazard"):
        method = f"predict_{kind}_function"
        found, expected = (getattr(model, method)(X[:5]) for model in (ours, theirs))
        for own, their in zip(found, expected):
            np.testing.assert_array_equal(own.x, their.x)
            np.testing.assert_allclose(own(own.x), their(own.x), rtol=1e-6)
            assert own.domain == their.domain
    np.testing.assert_allclose(ours.score(X, y), theirs.score(X, y), rtol=1e-12)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.4])
def test_elastic_nets_are_those_of_scikit_survival(l1_ratio, rng):
    peers = pytest.importorskip("sksurv.linear_model")
    X, y = simulate(rng, p=20, tied=True)
    theirs = peers.CoxnetSurvivalAnalysis(
        alphas=[0.04], l1_ratio=l1_ratio, tol=1e-15, max_iter=10**6
    ).fit(X, y)
    ours = TrajectoryCoxRegressor(
        0.04, penalty="elasticnet", l1_ratio=l1_ratio, **CONVERGED
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_[:, 0], atol=1e-6)


# ------------------------------------------------------------------- along a run


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_folds_are_fits_to_their_rows(standardize, is_sparse, rng):
    X, y = simulate(rng, tied=True)
    X = X + 3.0
    weights = rng.uniform(0.5, 2, len(X))
    folds = list(KFold(4, shuffle=True, random_state=0).split(X))
    passed = sparse.csr_array(X) if is_sparse else X
    settings = {"penalty": "l1", "standardize": standardize, "tol": 0, "max_iter": 30}
    model = TrajectoryCoxRegressor([0.1, 0.01], cv=folds, **settings)
    model.fit(passed, y, weights)
    pooled = np.empty((model.n_iter_ + 1, len(X)))
    for fitted, held_out in folds:
        alone = TrajectoryCoxRegressor(
            [0.1, 0.01], step_size=model.step_size_, **settings
        ).fit(passed[fitted], y[fitted], weights[fitted])
        for t, predicted in enumerate(alone.staged_predict(passed[held_out])):
            pooled[t, held_out] = predicted
    rows = np.concatenate([held_out for _, held_out in folds])
    np.testing.assert_allclose(model.cv_prediction_path_, pooled[:, rows], atol=1e-10)
    expected = [likelihood(y, z, weights) for z in pooled]
    np.testing.assert_allclose(model.cv_path_, expected, rtol=1e-9)
    # The parts of the folds have the weights of their rows.
    shares = [weights[held_out].sum() / weights.sum() for _, held_out in folds]
    np.testing.assert_allclose(model.cv_fold_path_ @ shares, expected, rtol=1e-9)
    np.testing.assert_array_equal(model.cv_target_["time"], y["days"][rows])


def test_a_single_fold(rng):
    X, y = simulate(rng)
    fold = np.arange(80), np.arange(80, 120)
    model = TrajectoryCoxRegressor(0.01, cv=[fold], max_iter=20).fit(X, y)
    alone = TrajectoryCoxRegressor(0.01, step_size=model.step_size_, max_iter=20)
    alone.fit(X[:80], y[:80])
    expected = alone.staged_loss(X[80:], y[80:])
    np.testing.assert_allclose(model.cv_path_, expected, rtol=1e-9)
    assert (model.cv_se_path_ > 0).all()


@pytest.mark.parametrize("penalty", ["l1", "l2", "elasticnet", "mcp", "scad", "group"])
@pytest.mark.parametrize("schedule", ["nesterov", "gd", "heavy_ball"])
def test_runs_converge_to_a_stationary_point(penalty, schedule, rng):
    X, y = simulate(rng, tied=True)
    if penalty == "group":
        penalty = GroupL2(1.0, [0, 0, 1, 1], [1.0, 1.0])
    settings = {"penalty": penalty, "schedule": schedule, "ties": "efron"}
    model = TrajectoryCoxRegressor(0.03, **settings, **CONVERGED).fit(X, y)
    assert model.n_iter_ < CONVERGED["max_iter"]
    fell = -np.diff(model.objective_path_)
    if schedule == "gd":
        assert (fell > -1e-12).all()
    step = 1e-4
    for direction in step * np.vstack([np.eye(4), -np.eye(4)]):
        other = objective_of(model, model.coef_ + direction, X, y)
        assert other >= model.objective_path_[-1] - 1e-12


def objective_of(model, coef, X, y):
    rank = 1.0 + np.unique(y["days"], return_inverse=True)[1]
    target = np.where(y["status"], rank, -rank)[:, None]
    ones = np.ones_like(target)
    loss = Cox("efron").weighted_values(target, X @ coef[:, None], ones).mean()
    (phase,) = model.record_.phases
    return loss + phase.penalty.value(coef[:, None])


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_steps_are_stable_where_hazards_differ_much(scale, rng):
    X = rng.standard_normal((300, 5)) * [1, scale, 1, 1, 1] + 100.0
    time = rng.exponential(np.exp(-(X - 100) @ [3, 2 / scale, -2, 0, 0]))
    end = rng.exponential(5.0, 300)
    y = time <= end, np.minimum(time, end)
    model = TrajectoryCoxRegressor(penalty=None, schedule="gd", max_iter=500, tol=0)
    path = model.fit(X, y).objective_path_
    assert (np.diff(path) <= 1e-12).all()
    nesterov = TrajectoryCoxRegressor(penalty=None, max_iter=500).fit(X, y)
    assert nesterov.objective_path_[-1] <= path[-1] + 1e-6


def test_more_columns_than_rows(rng):
    X, y = simulate(rng, n=40, p=100)
    settings = {"max_iter": 50, "tol": 0, "cv": 4}
    model = TrajectoryCoxRegressor(0.1, **settings).fit(X, y)
    # A penalty of groups of one is no function of distances: it needs the columns.
    alone = TrajectoryCoxRegressor(0.1, **settings).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-8)
    np.testing.assert_allclose(model.cv_path_, alone.cv_path_, rtol=1e-8)


def test_a_warm_start_goes_on(rng):
    X, y = simulate(rng)
    model = TrajectoryCoxRegressor(0.01, max_iter=10, tol=0, warm_start=True)
    model.fit(X, y).set_params(max_iter=30).fit(X, y)
    longer = TrajectoryCoxRegressor(0.01, max_iter=30, tol=0).fit(X, y)
    np.testing.assert_allclose(model.coef_path_, longer.coef_path_, rtol=1e-10)


def test_rows_of_weight_zero_are_ignored(rng):
    X, y = simulate(rng)
    kept = rng.random(len(X)) < 0.7
    settings = {"max_iter": 30, "tol": 0}
    found = TrajectoryCoxRegressor(**settings).fit(X, y, kept.astype(float))
    expected = TrajectoryCoxRegressor(**settings).fit(X[kept], y[kept])
    np.testing.assert_allclose(found.coef_path_, expected.coef_path_, atol=1e-12)
    hazards = [model.cum_baseline_hazard_ for model in (found, expected)]
    np.testing.assert_allclose(*[h.y for h in hazards], rtol=1e-10)


def test_single_precision(rng):
    X, y = simulate(rng)
    double = TrajectoryCoxRegressor(max_iter=50, cv=4).fit(X, y)
    single = TrajectoryCoxRegressor(max_iter=50, cv=4).fit(X.astype(np.float32), y)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-4)
    np.testing.assert_allclose(single.cv_path_[-1], double.cv_path_[-1], rtol=1e-4)


# ------------------------------------------------------------------- predictions


def test_survival_functions_are_those_of_breslow(rng):
    X, y = simulate(rng, tied=True)
    model = TrajectoryCoxRegressor(max_iter=40).fit(X, y).at_iteration(17)
    z, event, time = model.predict(X), y["status"], y["days"]
    times = np.unique(time)
    steps = [np.sum(event & (time == t)) / np.exp(z[time >= t]).sum() for t in times]
    expected = np.exp(-np.outer(np.exp(z), np.cumsum(steps)))
    np.testing.assert_array_equal(model.unique_times_, times)
    for fitted in (model, model.drop_record()):
        found = fitted.predict_survival_function(X, return_array=True)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        hazards = fitted.predict_cumulative_hazard_function(X, return_array=True)
        np.testing.assert_allclose(np.exp(-hazards), expected, rtol=1e-10)
    functions = model.predict_survival_function(X)
    assert functions.shape == (len(X),)
    np.testing.assert_array_equal(functions[3].x, times)
    np.testing.assert_allclose(functions[3](times), expected[3], rtol=1e-10)
    np.testing.assert_allclose(functions[3](times[1] + 0.5), expected[3, 1])
    assert functions[3](0) == 1
    assert model.predict_cumulative_hazard_function(X)[3](0) == 0
    for outside in (-1.0, times[-1] + 1):
        with pytest.raises(ValueError, match="between 0 and"):
            functions[3](outside)
    np.testing.assert_allclose(
        model.baseline_survival_.y, np.exp(-np.cumsum(steps)), rtol=1e-10
    )


def pairs_of(y, risk, weights):
    """Harrell's concordance, pair by pair."""
    event, time = y["event"], y["time"]
    agree = n = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(y)):
            if time[j] > time[i] or (time[j] == time[i] and not event[j]):
                pair = weights[i] * weights[j]
                n += pair
                agree += pair * ((risk[i] > risk[j]) + 0.5 * (risk[i] == risk[j]))
    return agree / n


@pytest.mark.parametrize("n", [2, 5, 33, 64, 100])
def test_concordance_is_a_share_of_pairs(n, rng):
    y = np.empty(n, [("event", bool), ("time", float)])
    for digits in (0, 1, 8):
        y["event"], y["time"] = rng.random(n) < 0.7, rng.gamma(2, 2, n).round(digits)
        y["event"][y["time"].argmin()] = True
        if (y["time"] == y["time"].min()).all():
            continue
        risk = rng.standard_normal(n).round(digits)
        for weights in (np.ones(n), rng.uniform(0.5, 2, n)):
            found, expected = (f(y, risk, weights) for f in (concordance, pairs_of))
            np.testing.assert_allclose(found, expected)
    y["event"] = False
    assert np.isnan(concordance(y, risk))


def brier_of(y, risk, weights, t):
    """The Brier score at a time by loops, with hazards and censoring by hand."""
    event, time = y["event"], y["time"]

    def survival_at(i):
        hazard = 0.0
        for s in np.unique(time[event & (time <= t)]):
            dead = weights[event & (time == s)].sum()
            hazard += dead / (weights * np.exp(risk))[time >= s].sum()
        return np.exp(-hazard * np.exp(risk[i]))

    def uncensored_until(end):
        share = 1.0
        for s in np.unique(time[~event & (time <= end)]):
            at_risk = weights[(time > s) | ((time == s) & ~event)].sum()
            share *= 1 - weights[~event & (time == s)].sum() / at_risk
        return share

    total = 0.0
    for i in range(len(y)):
        if time[i] > t:
            total += weights[i] * (1 - survival_at(i)) ** 2 / uncensored_until(t)
        elif event[i]:
            total += weights[i] * survival_at(i) ** 2 / uncensored_until(time[i])
    return total / weights.sum()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_the_integrated_brier_score_is_that_of_loops(weighted, tied, rng):
    X, y = simulate(rng, n=50, tied=tied)
    y.dtype.names = "event", "time"
    risk = X[:, 0] + 0.3 * rng.standard_normal(50)
    weights = rng.integers(1, 4, 50).astype(float) if weighted else np.ones(50)
    share = [weights[y["time"] <= t].sum() / weights.sum() for t in y["time"]]
    inner = y["event"] & (np.array(share) >= 0.1) & (np.array(share) <= 0.9)
    times = np.unique(y["time"][inner])
    scores = [brier_of(y, risk, weights, t) for t in times]
    expected = np.sum(np.diff(times) * (np.array(scores)[1:] + scores[:-1]) / 2)
    expected /= times[-1] - times[0]
    found = integrated_brier_score(y, risk, weights)
    assert found == pytest.approx(expected)
    # Without knowledge of the rows, and for a wrong order, it is larger.
    assert found < integrated_brier_score(y, np.zeros(50), weights)
    assert found < integrated_brier_score(y, -risk, weights)
    rows = np.repeat(np.arange(50), weights.astype(int))
    repeated = integrated_brier_score(y[rows], risk[rows])
    assert found == pytest.approx(repeated)


def test_the_integrated_brier_score_is_that_of_scikit_survival(rng):
    metrics = pytest.importorskip("sksurv.metrics")
    X, y = simulate(rng)
    y.dtype.names = "event", "time"
    share = np.argsort(np.argsort(y["time"])) / len(y) + 1 / len(y)
    times = np.sort(y["time"][y["event"] & (share >= 0.1) & (share <= 0.9)])
    model = TrajectoryCoxRegressor(penalty=None, **CONVERGED).fit(X, y)
    survival = model.predict_survival_function(X, return_array=True)
    known = survival[:, np.searchsorted(np.unique(y["time"]), times)]
    expected = metrics.integrated_brier_score(y, y, known, times)
    assert integrated_brier_score(y, model.predict(X)) == pytest.approx(expected)


def test_without_two_times_of_events_there_is_no_brier_score(rng):
    _, y = simulate(rng, n=20)
    y.dtype.names = "event", "time"
    y["event"] = np.arange(20) == np.argsort(y["time"])[10]
    assert np.isnan(integrated_brier_score(y, np.zeros(20)))


def test_smaller_values_before():
    values, weights = np.array([3, 1, 4, 1, 5, 9, 2, 6, 5]), np.arange(9.0)
    expected = [weights[:i] @ (values[:i] < v) for i, v in enumerate(values)]
    np.testing.assert_array_equal(sums_of_smaller_before(values, weights), expected)


def test_score_and_model_selection(rng):
    X, y = simulate(rng)
    model = TrajectoryCoxRegressor(penalty="l1", max_iter=50)
    scores = cross_val_score(model, X, y, cv=3)
    assert (scores > 0.6).all()
    search = GridSearchCV(model, {"alpha": [0.01, 10.0]}, cv=3).fit(X, y)
    assert search.best_params_ == {"alpha": 0.01}
    assert clone(model).get_params() == model.get_params()


# ------------------------------------------------------------------- what is passed


def test_forms_of_survival_times(rng):
    X, y = simulate(rng)
    event, time = y["status"], y["days"]
    swapped = np.rec.fromarrays([time, event], names="t,e")
    forms = [
        (event, time),
        (event.tolist(), time.tolist()),
        np.column_stack([event, time]),
        list(zip(event, time)),
        swapped,
    ]
    expected = TrajectoryCoxRegressor(max_iter=5, cv=3).fit(X, y)
    for form in forms:
        found = TrajectoryCoxRegressor(max_iter=5, cv=3).fit(X, form)
        np.testing.assert_array_equal(found.coef_, expected.coef_)
        np.testing.assert_array_equal(found.cv_path_, expected.cv_path_)
        assert found.score(X, form) == expected.score(X, y)
        np.testing.assert_array_equal(
            found.staged_loss(X, form), expected.staged_loss(X, y)
        )


def test_tables_of_survival_times(rng):
    pandas = pytest.importorskip("pandas")
    X, y = simulate(rng)
    expected = TrajectoryCoxRegressor(max_iter=5).fit(X, y)
    for event in (y["status"], y["status"].astype(int)):
        table = pandas.DataFrame({"event": event, "time": y["days"]})
        found = TrajectoryCoxRegressor(max_iter=5).fit(X, table)
        np.testing.assert_array_equal(found.coef_, expected.coef_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda event, time: time, "structured array of an event"),
        (lambda event, time: (time, event), "in this order"),
        (lambda event, time: (event + 0.5, time), "True and False"),
        (lambda event, time: (event, -time), "negative"),
        (lambda event, time: (event, time * np.nan), "NaN"),
        (lambda event, time: (event, time * np.inf), "infinite"),
        (lambda event, time: (0 * event, time), "All rows are censored"),
        (lambda event, time: (event[:-1], time), "inconsistent"),
        (lambda event, time: np.column_stack([0 * time, time, event]), "truncation"),
        (lambda event, time: None, "y is None"),
        (lambda event, time: "time", "string 'time'"),
        (lambda event, time: (event, time.astype(str)), "must be numbers"),
        (
            lambda event, time: np.rec.fromarrays([event + 0, time], names="a,b"),
            "got the fields 'a'",
        ),
    ],
)
def test_other_targets_are_refused(change, message, rng):
    X, y = simulate(rng)
    with pytest.raises(ValueError, match=message):
        TrajectoryCoxRegressor().fit(X, change(y["status"], y["days"]))


def test_strata_and_times_of_entry_are_refused(rng):
    X, y = simulate(rng)
    with pytest.raises(ValueError, match="stratum"):
        TrajectoryCoxRegressor().fit(X, y, strata=np.zeros(len(X)))
    with pytest.raises(ValueError, match="left truncation"):
        TrajectoryCoxRegressor().fit(X, y, entry=np.zeros(len(X)))


@pytest.mark.parametrize("cls", [TrajectoryRegressor, TrajectoryClassifier])
def test_models_of_single_rows_refuse_the_loss(cls, rng):
    X, y = simulate(rng)
    with pytest.raises(ValueError, match="use TrajectoryCoxRegressor"):
        cls(loss=Cox()).fit(X, 2 * y["status"] - 1)


def test_leave_one_out_of_a_fitted_model_is_refused(rng):
    X, y = simulate(rng)
    model = TrajectoryCoxRegressor(keep_data=True).fit(X, y)
    with pytest.raises((TypeError, ValueError), match="TrajectoryCoxRegressor"):
        approximate_loo(model, X, y["days"])


def test_rows_on_workers_are_refused(rng):
    array = pytest.importorskip("dask.array")
    X, y = simulate(rng)
    columns = np.column_stack([y["status"], y["days"]])
    for passed in [
        (array.from_array(X), y),
        (X, array.from_array(columns)),
        (X, (y["status"], array.from_array(y["days"]))),
    ]:
        with pytest.raises(TypeError, match="in memory"):
            TrajectoryCoxRegressor().fit(*passed)


@pytest.mark.parametrize(
    "schedule", [Newton(1.0), StochasticGradient(1.0, 0.0, 120, 10, 0)]
)
def test_updates_that_need_losses_of_single_rows_are_refused(schedule, rng):
    X, y = simulate(rng)
    with pytest.raises(ValueError, match="compares rows"):
        TrajectoryCoxRegressor(schedule=schedule).fit(X, y)
