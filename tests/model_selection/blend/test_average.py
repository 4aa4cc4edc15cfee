"""``rule="average"``: the mean of iterates of a run, by hand and by other solvers."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.model_selection import GridSearchCV

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RiskPathDisplay,
    RowSummary,
    SelfStoppingRegressor,
    TrajectoryCoxRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.internals import least_squares_weights

from .cases import FOLDS, in_order

RUNS = {
    "gd": IterativeRidge(0.0, max_iter=60),
    "batches": IterativeRidge(
        0.0,
        solver="eigenpro",
        n_components=0,
        batch_size=10,
        max_iter=20,
        random_state=0,
    ),
    "lasso": TrajectoryLasso("path", max_iter=10),
    "kernel": KernelEigenProRegressor(gamma=0.3, n_components=0, random_state=0),
    "trees": HistGradientBoostingRegressor(
        max_iter=40, max_leaf_nodes=4, random_state=0
    ),
}


@pytest.fixture
def data(rng):
    """A third of the columns matter: late iterates have noise, early ones no signal."""
    X = rng.standard_normal((80, 30))
    return X, X[:, :10].sum(axis=1) / 2 + 1.5 * rng.standard_normal(80)


def averaged(estimator, X, y, **settings):
    settings = {"random_state": 7, "patience": None, **settings}
    params = {k: settings.pop(k) for k in ("sample_weight", "groups") if k in settings}
    model = TrajectoryEarlyStoppingCV(estimator, rule="average", **settings)
    return model.fit(X, y, **params)


def by_iteration(model):
    """The weights of the kept iterates, by their numbers."""
    kept = model.estimator_
    if not hasattr(kept, "iterations"):  # the mean is of one
        return {model.best_iter_: 1.0}
    return dict(zip(kept.iterations, kept.weights))


def least_over_simplex(loss, n):
    """The least of a convex loss over weights, by another solver, from several ends."""
    found = []
    for start in (np.full(n, 1 / n), *np.eye(n)[:: max(1, n // 4)]):
        weights = minimize(
            loss,
            0.9 * start + 0.1 / n,
            bounds=[(0, 1)] * n,
            constraints={"type": "eq", "fun": lambda w: w.sum() - 1},
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 2000},
        ).x
        found.append(loss(weights))
    return min(found)


# ----------------------------------------------------------------------- weights


@pytest.mark.parametrize("name", ["gd", "batches", "lasso"])
def test_the_mean_has_the_least_risk_by_the_memory_matrix(name, data):
    X, y = data
    model = averaged(RUNS[name], X, y, criterion="risk")
    gram = clone(RUNS[name]).fit(X, y).risk_gram_
    weights = np.zeros(len(gram))
    for t, weight in by_iteration(model).items():
        weights[t] = weight
    assert np.count_nonzero(weights) > 1
    assert weights.sum() == pytest.approx(1)
    value = weights @ gram @ weights
    assert model.best_score_ == pytest.approx(value, rel=1e-6)
    # Over all iterates, of which the rule tries some.
    assert value < np.diag(gram).min()
    some = np.unique(np.geomspace(1, len(gram), 30).round().astype(int)) - 1
    some = np.union1d(some, [np.argmin(np.diag(gram))])
    own = gram[np.ix_(some, some)]
    least = least_over_simplex(lambda w: w @ own @ w / value, len(some)) * value
    assert value == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("name", ["gd", "lasso", "kernel"])
def test_the_mean_has_the_least_loss_on_folds(name, data):
    X, y = data
    model = averaged(RUNS[name], X, y, criterion="cv", cv=FOLDS)
    alone = clone(RUNS[name]).set_params(cv=FOLDS).fit(X, y)
    predictions = in_order(alone)
    mean = sum(weight * predictions[t] for t, weight in by_iteration(model).items())
    np.testing.assert_allclose(model.held_out_prediction_, mean, rtol=1e-6, atol=1e-9)
    assert model.best_score_ == pytest.approx(np.mean((y - mean) ** 2))
    best = model.best_iter_
    assert best == np.argmin(alone.cv_path_)
    assert model.best_score_ <= alone.cv_path_[best] * (1 + 1e-12)
    # Every other iterate that was tried would make it no better.
    for t in np.unique(np.geomspace(1, len(predictions), 12).astype(int)) - 1:
        moved = mean + 1e-3 * (predictions[t] - mean)
        if t in by_iteration(model) or len(predictions) <= 30:
            assert np.mean((y - moved) ** 2) > model.best_score_ * (1 - 1e-7)


@pytest.mark.parametrize("name", list(RUNS))
def test_it_predicts_the_mean_of_its_iterates(name, data):
    X, y = data
    model = averaged(RUNS[name], X, y, criterion="cv")
    stopped = clone(model).set_params(rule="min").fit(X, y)
    mean = 0
    for t, weight in by_iteration(model).items():
        if name == "trees":  # those of the rule "min" have grown to the best only
            at_t = clone(RUNS[name]).set_params(max_iter=t).fit(X, y)
        else:
            at_t = stopped.at_iteration(t)
        mean = mean + weight * at_t.predict(X)
    np.testing.assert_allclose(model.predict(X), mean, rtol=1e-6)
    assert model.best_iter_ == stopped.best_iter_
    assert model.best_score_ <= stopped.best_score_
    assert list(model.members_) == list(stopped.members_)
    np.testing.assert_allclose(
        model.members_[model.best_member_].predict(X), model.predict(X)
    )


@pytest.mark.parametrize("name", ["gd", "lasso"])
def test_it_has_all_iterates_of_its_run(name, data):
    X, y = data
    model = averaged(RUNS[name], X, y, criterion="cv")
    alone = clone(RUNS[name]).fit(X, y)
    assert len(by_iteration(model)) > 1
    for t in (0, model.best_iter_, alone.n_iter_):
        expected = alone.at_iteration(t).predict(X)
        np.testing.assert_allclose(model.at_iteration(t).predict(X), expected)
    expected = list(alone.staged_predict(X))
    np.testing.assert_allclose(list(model.staged_predict(X)), expected)


def test_linear_models_have_coefficients(data):
    X, y = data
    model = averaged(RUNS["lasso"], X, y, criterion="risk")
    path = clone(RUNS["lasso"]).fit(X, y)
    expected = sum(w * path.coef_path_[t] for t, w in by_iteration(model).items())
    np.testing.assert_allclose(model.coef_, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(
        model.predict(X), X @ model.coef_ + model.intercept_, rtol=1e-8
    )


def test_classes_are_mixed_by_their_log_loss(rng):
    X = rng.standard_normal((150, 4))
    y = (X[:, 0] - X[:, 1] + rng.logistic(size=150) > 0).astype(int)
    estimator = TrajectoryLogisticRegression(max_iter=80)
    model = averaged(estimator, X, y, criterion="cv", cv=FOLDS)
    shares = np.choose(y, model.held_out_prediction_.T)
    assert model.best_score_ == pytest.approx(-np.log(shares).mean())
    alone = clone(model).set_params(rule="min").fit(X, y)
    assert model.best_score_ <= alone.best_score_
    trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    X, y = load_iris(return_X_y=True)
    model = averaged(trees, X, y)
    alone = clone(model).set_params(rule="min").fit(X, y)
    assert model.best_score_ <= alone.best_score_
    assert model.predict_proba(X).shape == (150, 3)


def test_weights_of_rows_and_other_losses(data, rng):
    X, y = data
    weights = rng.integers(0, 3, len(y)).astype(float)
    weighed = averaged(RUNS["gd"], X, y, criterion="cv", sample_weight=weights)
    counted = weights > 0
    errors = (y - weighed.held_out_prediction_)[counted]
    value = np.average(errors**2, weights=weights[counted])
    assert weighed.best_score_ == pytest.approx(value)
    # Rows of weight zero are no rows.
    without = averaged(
        RUNS["gd"],
        X[counted],
        y[counted],
        criterion="cv",
        sample_weight=weights[counted],
    )
    assert by_iteration(without) == pytest.approx(by_iteration(weighed), abs=1e-6)
    huber = averaged(TrajectoryHuberRegressor(max_iter=40), X, y, criterion="cv")
    alone = clone(huber).set_params(rule="min").fit(X, y)
    assert huber.best_score_ <= alone.best_score_


# ------------------------------------------------------------- as part of a search


def test_the_best_combination_is_averaged(data):
    X, y = data
    grid = {"alpha": [1e-4, 0.1, 5.0]}
    model = averaged(TrajectoryLasso(), X, y, param_grid=grid, criterion="cv")
    stopped = clone(model).set_params(rule="min").fit(X, y)
    assert model.best_params_ == stopped.best_params_
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], stopped.cv_results_["mean_test_score"]
    )
    board = model.leaderboard()
    assert board["member"].tolist() == ["average", "TrajectoryLasso"]
    assert board["score"][0] == model.best_score_
    assert board["score_corrected"][0] == model.best_score_corrected_
    assert board["score"][1] == stopped.best_score_


def test_the_corrected_score_is_that_of_weights_of_other_rows(data):
    """Weights that some rows choose, on the others: worse than on all rows."""
    X, y = data
    model = averaged(RUNS["batches"], X, y, criterion="cv")
    assert model.best_score_corrected_ > model.best_score_
    # By hand, for a partition of the rows into those that choose and the others.
    predictions = in_order(clone(RUNS["batches"]).set_params(cv=FOLDS).fit(X, y))
    errors, rng, losses = y - predictions, np.random.default_rng(0), []
    for _ in range(20):
        order = rng.permutation(len(y))
        for rest in np.array_split(order, 5):
            rows = np.setdiff1d(order, rest)
            weights = least_squares_weights(errors[:, rows].T, np.ones(len(rows)))
            losses.append(np.mean((weights @ errors[:, rest]) ** 2))
    model = averaged(RUNS["batches"], X, y, criterion="cv", cv=FOLDS)
    assert model.best_score_corrected_ == pytest.approx(np.mean(losses), rel=0.02)


def test_the_default_models_and_raw_tables():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.standard_normal(90), "b": rng.choice(["u", "v"], 90)})
    y = X["a"] + (X["b"] == "u") + rng.standard_normal(90)
    model = SelfStoppingRegressor(rule="average", random_state=0).fit(X, y)
    assert model.predict(X).shape == (90,)
    assert sum(model.weights_.values()) == 1
    assert np.isfinite(model.best_score_corrected_)
    stopped = clone(model).set_params(rule="min").fit(X, y)
    at_best = model.at_iteration(model.best_iter_)
    np.testing.assert_allclose(at_best.predict(X), stopped.predict(X))


# ------------------------------------------------------- what a fitted one can do


def test_pickles_records_intervals_and_figures(data):
    X, y = data
    model = averaged(RUNS["lasso"], X, y, criterion="cv")
    for other in (
        pickle.loads(pickle.dumps(model)),
        model.drop_record(),
        pickle.loads(pickle.dumps(model.drop_record())),
    ):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(
            other.predict_interval(X[:3]), model.predict_interval(X[:3])
        )
    ends = model.predict_interval(X, coverage=0.8)
    assert np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])) > 0.7
    assert list(model.evals_result_["TrajectoryLasso"]) == ["held_out"]
    pytest.importorskip("matplotlib")
    display = RiskPathDisplay.from_estimator(model)
    assert display.iteration == model.best_iter_


def test_it_is_tuned_and_cloned(data):
    X, y = data
    model = TrajectoryEarlyStoppingCV(RUNS["gd"], random_state=0)
    search = GridSearchCV(model, {"rule": ["min", "average"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    kept = averaged(RUNS["gd"], X, y).estimator_
    again = clone(kept).fit(X, y)
    np.testing.assert_allclose(again.predict(X), kept.predict(X))


def test_it_is_fitted_anew_as_one_run(data):
    X, y = data
    fits = []

    class Counted(IterativeRidge):
        def fit(self, X, y, sample_weight=None):
            fits.append(len(y))
            return super().fit(X, y, sample_weight)

    kept = averaged(Counted(0.0, max_iter=60), X, y, criterion="cv").estimator_
    assert len(kept.members) > 1
    again = clone(kept).fit(X[:60], y[:60])
    assert fits == [60]
    run = IterativeRidge(0.0, max_iter=60).fit(X[:60], y[:60])
    mean = 0
    for t, weight in zip(kept.iterations, kept.weights):
        mean = mean + weight * run.at_iteration(t).predict(X)
    np.testing.assert_allclose(again.predict(X), mean)


def test_refusals(data, rng):
    X, y = data
    with pytest.raises(ValueError, match="rule='average' needs held-out predictions"):
        averaged(RUNS["gd"], RowSummary().partial_fit(X, y), None)
    labels = (y > 0).astype(int)
    with pytest.raises(ValueError, match="use criterion='neg_log_loss'"):
        averaged(KernelEigenProClassifier(), X, labels)
    few = KernelEigenProClassifier(gamma=0.1, max_iter=4, random_state=0)
    scored = averaged(few, X, labels, criterion="neg_log_loss")
    assert scored.predict_proba(X).shape == (80, 2)
    times = rng.exponential(size=80)
    with pytest.raises(ValueError, match="rule='average' averages predictions"):
        averaged(TrajectoryCoxRegressor(), X, times)
    # The memory matrix holds out no single rows.
    with pytest.raises(ValueError, match="held-out rows of a blend"):
        averaged(RUNS["gd"], X, y, criterion="risk").predict_interval(X)


def test_verbose_names_every_iterate_of_the_mean(data, capsys):
    model = averaged(RUNS["gd"], *data, verbose=1)
    line = capsys.readouterr().out.splitlines()[-1]
    mean = model.estimator_
    for (name, _), weight in zip(mean.members, mean.weights):
        assert f"{weight:.2f} {name}" in line
