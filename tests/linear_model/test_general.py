"""Any loss, penalty and schedule: the same as by other ways, and what is read."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import ElasticNet as TheirElasticNet
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import GridSearchCV, KFold

from skacv import (
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryRegressor,
    approximate_loo,
)
from skacv.optim.families import GroupL2, Weighted
from skacv.optim.losses import Huber, Multinomial, SquaredHinge
from skacv.optim.penalties import (
    L1,
    MCP,
    ElasticNet,
    NonnegativeElasticNet,
    SquaredL2,
)
from skacv.optim.schedules import GradientDescent, HeavyBall, Nesterov
from tests import oracles
from tests.cases import covering
from tests.oracles import left_out_one_by_one, refitted_predictions
from tests.penalties import with_prox
from tests.risk.test_curved_memory import Straight
from tests.runs import run_of

N_ROWS, N_FEATURES = 30, 6
WEIGHTS = np.array([1.0, 0.0, 2.0, 0.5, 1.0, 3.0])
GROUPS = np.array([0, 1, 0, 2, 1, 2])
PENALTIES = {
    "l2": "l2",
    **with_prox(1.0, 6.0),
    "none": None,
    "weighted_l1": Weighted(L1(1.0), WEIGHTS),
    "weighted_l2": Weighted(SquaredL2(1.0), WEIGHTS),
    "weighted_mcp": Weighted(MCP(1.0, 8.0), WEIGHTS),
    "weighted_nonnegative": Weighted(NonnegativeElasticNet(1.0, 0.5), WEIGHTS),
    "groups": GroupL2(1.0, GROUPS, np.array([1.0, 2.0, 0.0])),
}
SCHEDULES = ["gd", "nesterov", "heavy_ball"]
EXACT = {"rtol": 0, "atol": 1e-8}


@pytest.fixture
def data(rng):
    X = rng.standard_normal((N_ROWS, N_FEATURES)) + 0.3
    y = 2 * X[:, 0] - X[:, 1] + rng.standard_normal(N_ROWS) + 1
    return X, y


@pytest.fixture
def labelled(data):
    X, y = data
    return X, np.where(y > 1, "yes", "no")


def regressor(alpha=0.1, **params):
    return TrajectoryRegressor(alpha, max_iter=25, tol=0, **params)


def read(model):
    """What a model has recorded and read."""
    names = ("coef_path_", "intercept_path_", "loo_path_", "cv_path_", "risk_path_")
    return {name: getattr(model, name) for name in names if hasattr(model, name)}


def assert_same(found, expected):
    found, expected = read(found), read(expected)
    assert found.keys() == expected.keys()
    for name, path in expected.items():
        np.testing.assert_allclose(found[name], path, rtol=1e-9, atol=1e-11)


# ---------------------------------------------------- the same by another class


@pytest.mark.parametrize(
    ("penalty", "other"),
    [
        ("l1", TrajectoryLasso()),
        (L1(1.0), TrajectoryLasso()),
        ("elasticnet", TrajectoryElasticNet()),
        (ElasticNet(1.0, 0.3), TrajectoryElasticNet(l1_ratio=0.3)),
        (Weighted(L1(1.0), WEIGHTS), TrajectoryLasso(penalty_weights=WEIGHTS)),
        (
            GroupL2(1.0, GROUPS, np.sqrt([2, 2, 2])),
            TrajectoryGroupLasso(groups=GROUPS),
        ),
        ("group_lasso", TrajectoryGroupLasso(groups=GROUPS)),
    ],
    ids=str,
)
@pytest.mark.parametrize("alpha", [0.1, [0.3, 0.1], "path"], ids=str)
def test_the_same_as_by_a_class_of_its_own(penalty, other, alpha, data):
    params = {"alpha": alpha, "max_iter": 8, "cv": 3}
    found = TrajectoryRegressor(penalty=penalty, groups=GROUPS).set_params(**params)
    found.fit(*data)
    expected = other.set_params(**params).fit(*data)
    assert_same(found, expected)
    np.testing.assert_allclose(found.alpha_path_, expected.alpha_path_)


def test_the_same_as_logistic_regression_and_a_linear_svc(labelled):
    for loss, other in (
        ("log", TrajectoryLogisticRegression(max_iter=20, cv=3)),
        ("squared_hinge", TrajectoryLinearSVC(max_iter=20, cv=3)),
    ):
        found = TrajectoryClassifier(1 / N_ROWS, loss=loss, max_iter=20)
        found.set_params(loo=False).fit(*labelled)
        # The penalty of a sum over the rows weighs otherwise without some of them.
        expected = other.set_params(C=1.0, loo=False, cv=None).fit(*labelled)
        assert_same(found, expected)


def test_converged_models_are_those_of_scikit_learn(data, labelled):
    X, y = data
    settings = {"max_iter": 3000, "tol": 1e-12, "loo": False}
    ridge = TrajectoryRegressor(0.5, penalty="l2", **settings).fit(X, y)
    expected = Ridge(0.5 * N_ROWS).fit(X, y)
    np.testing.assert_allclose(ridge.coef_, expected.coef_, atol=1e-8)
    counts = np.round(np.exp(y / 3))
    poisson = TrajectoryRegressor(0.5, loss="poisson", penalty="l2", **settings)
    expected = PoissonRegressor(alpha=0.5, tol=1e-10).fit(X, counts)
    found = poisson.fit(X, counts).predict(X)
    np.testing.assert_allclose(found, expected.predict(X), rtol=1e-4)
    model = TrajectoryClassifier(0.1, schedule="newton", **settings).fit(*labelled)
    expected = LogisticRegression(C=1 / (0.1 * N_ROWS), tol=1e-10).fit(*labelled)
    np.testing.assert_allclose(
        model.predict_proba(X), expected.predict_proba(X), atol=1e-5
    )


def best_of_all_supports(X, y, alpha, l1_ratio, weights):
    """The minimum of the nonnegative elastic net, without its signs, by brute force.

    On the right support it solves a linear system, and what has a weight is positive.
    """
    n_rows, n_columns = X.shape
    X, y = X - X.mean(axis=0), y - y.mean()
    gram = X.T @ X / n_rows + alpha * (1 - l1_ratio) * np.diag(weights)
    right = X.T @ y / n_rows - alpha * l1_ratio * weights
    best, least = np.zeros(n_columns), np.inf
    for chosen in product([False, True], repeat=n_columns):
        on = np.flatnonzero(np.array(chosen) | (weights == 0))
        coef = np.zeros(n_columns)
        coef[on] = np.linalg.solve(gram[np.ix_(on, on)], right[on])
        cost = coef @ gram @ coef / 2 - right @ coef
        if (coef[weights > 0] >= 0).all() and cost < least:
            best, least = coef, cost
    return best


@pytest.mark.parametrize("weights", [np.ones(N_FEATURES), WEIGHTS], ids=["one", "own"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("alpha", [0.0, 0.2])
def test_the_nonnegative_elastic_net_is_the_best_of_all_supports(
    alpha, l1_ratio, weights, data
):
    X, y = data
    penalty = Weighted(NonnegativeElasticNet(1.0, l1_ratio), weights)
    model = TrajectoryRegressor(alpha, penalty=penalty, loo=False, risk=False)
    found = model.set_params(max_iter=5000, tol=1e-13).fit(X, y)
    expected = best_of_all_supports(X, y, alpha, l1_ratio, weights)
    np.testing.assert_allclose(found.coef_, expected, atol=1e-8)
    assert np.isfinite(found.objective_path_).all()
    if (weights == 1).all() and alpha * l1_ratio > 0:
        theirs = TheirElasticNet(alpha, l1_ratio=l1_ratio, positive=True, tol=1e-12)
        np.testing.assert_allclose(found.coef_, theirs.fit(X, y).coef_, atol=1e-6)


def test_an_intercept_beside_nonnegative_coefficients_may_be_negative(labelled):
    X, labels = labelled
    labels = np.where(np.arange(N_ROWS) % 3, "no", labels)
    model = TrajectoryClassifier(0.01, penalty=NonnegativeElasticNet(1.0), loo=False)
    model.set_params(max_iter=5000, tol=1e-13).fit(X, labels)
    sign = np.where(labels == "yes", 1, -1)

    def cost(point):
        coef = point[:-1]
        losses = np.logaddexp(0, -sign * (X @ coef + point[-1]))
        return losses.mean() + 0.01 * (coef.sum() + coef @ coef / 2) / 2

    bounds = [(0, None)] * N_FEATURES + [(None, None)]
    best = minimize(
        cost, np.zeros(N_FEATURES + 1), bounds=bounds, options={"ftol": 1e-15}
    )
    assert model.intercept_[0] < 0
    assert 0 < np.count_nonzero(model.coef_) < N_FEATURES
    np.testing.assert_allclose(
        np.append(model.coef_, model.intercept_), best.x, atol=1e-4
    )
    np.testing.assert_allclose(model.objective_path_[-1], best.fun, rtol=1e-8)


def test_a_path_of_the_nonnegative_elastic_net_begins_at_zero(data):
    path = regressor("path", penalty=NonnegativeElasticNet(1.0), risk=False).fit(*data)
    model = regressor(penalty=NonnegativeElasticNet(1.0), risk=False, loo=False)
    for factor, stays in ((1.01, True), (0.99, False)):
        model.set_params(alpha=factor * path.alpha_path_[0], max_iter=1000).fit(*data)
        assert (model.coef_ == 0).all() == stays


# ------------------------------------------------------------- what is read


@covering(penalty=PENALTIES, schedule=SCHEDULES)
def test_leave_one_out_is_that_of_refits(penalty, schedule, data):
    model = regressor(penalty=PENALTIES[penalty], schedule=schedule, loo=True)
    model.set_params(risk=False).fit(*data)
    expected = left_out_one_by_one(model, *data, range(N_ROWS))
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)


LOG_LINKS = "poisson", "gamma", "tweedie", "negative_binomial"


@pytest.mark.filterwarnings("ignore:The last iterate predicts worse than a constant")
@covering(
    loss=[Huber(0.5), "huber", "quantile", "expectile", *LOG_LINKS],
    penalty=["l2", "weighted_l1", "NonnegativeElasticNet", "MCP", "groups"],
)
def test_leave_one_out_of_other_losses(penalty, loss, data, rng):
    """Exact with fewer rows than columns, where linearising saves nothing."""
    X, y = data[0][:6], np.abs(data[1][:6])
    X = X * np.sign(X.T @ y)  # no penalty of the sign keeps all columns at zero
    weights = rng.uniform(0.5, 2, 6)
    model = regressor(0.01, loss=loss, penalty=PENALTIES[penalty], loo=True)
    if loss in LOG_LINKS:
        model.set_params(step_size=0.05)
    if isinstance(loss, str) and loss != "huber":
        # A run with an intercept begins near a mean or quantile of its targets, which
        # of six is another one without a row.
        model.set_params(fit_intercept=False)
    model.fit(X, y, sample_weight=weights)
    assert model.risk_path_.shape == model.loo_path_.shape
    expected = left_out_one_by_one(model, X, y, range(6), weights)
    np.testing.assert_allclose(model.loo_prediction_path_, expected, **EXACT)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_folds_are_refits(penalty, fit_intercept, data):
    model = regressor(penalty=PENALTIES[penalty], cv=KFold(5), loo=False)
    model.set_params(fit_intercept=fit_intercept).fit(*data)
    found = np.split(model.cv_prediction_path_, 5, axis=1)
    for fold, (fitted, judged) in enumerate(KFold(5).split(data[0])):
        expected = refitted_predictions(model, *data, fitted, judged)
        np.testing.assert_allclose(found[fold], expected, **EXACT)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_risk_is_that_of_full_jacobians(penalty, schedule, data):
    model = regressor(penalty=PENALTIES[penalty], schedule=schedule, loo=False)
    run = run_of(model.set_params(risk="exact", risk_row_scales=False), *data)
    is_grouped = isinstance(model.penalty, GroupL2)
    of_prox = oracles.group_jacobian if is_grouped else oracles.elementwise_jacobian
    expected = oracles.risk_path_of(run, *data, of_prox=of_prox)
    np.testing.assert_allclose(model.risk_path_, expected, rtol=1e-3)


def test_newton_is_ridge_after_one_update(data):
    model = regressor(penalty="l2", schedule="newton", loo=True)
    model.set_params(max_iter=2).fit(*data)
    assert model.step_size_ == 1.0
    expected = Ridge(0.1 * N_ROWS).fit(*data)
    np.testing.assert_allclose(model.coef_path_[1], expected.coef_, atol=1e-10)
    refits = left_out_one_by_one(model, *data, range(N_ROWS))
    np.testing.assert_allclose(model.loo_prediction_path_, refits, **EXACT)


def test_a_heavy_row_leaves_the_step_of_newton_as_it_is(labelled):
    """The step is stable without any row, whatever the curvature of the others is."""
    weights = np.ones(N_ROWS)
    weights[0] = 10 * N_ROWS
    chosen = TrajectoryClassifier(0.1, schedule="newton")
    named = TrajectoryLogisticRegression(0.1, solver="newton")
    for model in (chosen, named):
        assert model.fit(*labelled, sample_weight=weights).step_size_ == 1


# ---------------------------------------------- what cannot be read is not, or said


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"schedule": "newton", "penalty": "l2"}, "NewtonStep has none"),
        ({"loss": Straight()}, "a loss with a curvature: that of Straight"),
    ],
    ids=str,
)
def test_the_automatic_risk_is_none_where_it_cannot_be_read(params, sentence, data):
    model = regressor(loo=False, **params).fit(*data)
    assert not hasattr(model, "risk_path_")
    for risk in (True, "exact", "hutchinson", 4):
        with pytest.raises(ValueError, match=sentence):
            model.set_params(risk=risk).fit(*data)
    stopped = TrajectoryEarlyStoppingCV(regressor(loo=False, **params)).fit(*data)
    assert stopped.criterion_ == "cv"
    with pytest.raises(ValueError, match=f"needs risk_path_|{sentence}"):
        stopped.set_params(criterion="risk").fit(*data)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"schedule": "newton"}, "smooth penalty, and L1 has a prox"),
        ({"loss": "poisson"}, "Some values of y are negative"),
        ({"penalty": Weighted(L1(1.0), np.ones(4))}, "for 4 coefficients, but there"),
        ({"penalty": Weighted(L1(1.0), -WEIGHTS)}, "finite and not negative"),
        ({"penalty": "ridge"}, "penalty"),
        ({"loss": Huber}, "loss"),
        ({"schedule": "sgd"}, "schedule"),
        ({"alpha": -1.0}, "alpha"),
    ],
    ids=str,
)
def test_parts_that_do_not_go_together_change_nothing(params, message, data):
    model = regressor().fit(*data)
    kept = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(**params).fit(*data)
    assert model.coef_ is kept


def test_a_coupled_loss_needs_three_classes(labelled):
    with pytest.raises(ValueError, match="at least three classes"):
        TrajectoryClassifier(loss=Multinomial()).fit(*labelled)


# -------------------------------------------------------- what parameters mean


def test_alpha_multiplies_the_strength_of_a_penalty(data):
    found = regressor(0.4, penalty=L1(0.25)).fit(*data)
    assert_same(found, regressor(0.1).fit(*data))
    np.testing.assert_array_equal(found.alpha_path_, 0.4)
    path = regressor("path", penalty=L1(0.25), loo=False, risk=False).fit(*data)
    plain = regressor("path", loo=False, risk=False).fit(*data)
    np.testing.assert_allclose(path.alpha_path_, 4 * plain.alpha_path_)
    np.testing.assert_array_equal(path.coef_path_, plain.coef_path_)


def test_without_a_penalty_alpha_is_zero(data):
    model = regressor(7.0, penalty=None, risk=False).fit(*data)
    assert not model.alpha_path_.any()
    assert_same(model, regressor(0.0, risk=False).fit(*data))


@pytest.mark.parametrize(
    ("schedule", "name"),
    [(GradientDescent(9.0), "gd"), (Nesterov(9.0), "nesterov")],
)
def test_the_step_is_put_into_a_schedule(schedule, name, data):
    found = regressor(schedule=schedule).fit(*data)
    assert_same(found, regressor(schedule=name).fit(*data))
    run = run_of(clone(found), *data)
    taken = run.trajectory.phases[0].schedule
    assert taken == replace(schedule, step_size=found.step_size_)
    run = run_of(regressor(schedule=HeavyBall(9.0, 0.5), step_size=0.01), *data)
    assert run.trajectory.phases[0].schedule == HeavyBall(0.01, 0.5)


def test_several_classes(data):
    X, y = data
    labels = np.digitize(y, [0.0, 2.0])
    for loss in ("log", "squared_hinge", Multinomial(), SquaredHinge()):
        model = TrajectoryClassifier(loss=loss, max_iter=12, tol=0, loo=True)
        model.fit(X, labels)
        assert model.coef_.shape == (3, N_FEATURES)
        assert hasattr(model, "predict_proba") == (loss == "log")
        for i in range(0, N_ROWS, 10):
            stays = np.arange(N_ROWS) != i
            refit = clone(model).set_params(step_size=model.step_size_, loo=False)
            staged = refit.fit(X[stays], labels[stays]).staged_decision_function(X[[i]])
            found = model.loo_prediction_path_[:, i]
            np.testing.assert_allclose(found, [z[0] for z in staged], **EXACT)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_of_groups_and_labels(n_classes, data):
    X, y = data[0][:12], data[1][:12]
    labels = np.digitize(y, np.quantile(y, [0.5] if n_classes == 2 else [0.3, 0.7]))
    model = TrajectoryClassifier(
        0.05, penalty="group_lasso", groups=GROUPS, max_iter=12, tol=0, loo=True
    )
    model.fit(X, labels)
    for i in range(0, 12, 4):
        stays = np.arange(12) != i
        refit = clone(model).set_params(step_size=model.step_size_, loo=False)
        staged = refit.fit(X[stays], labels[stays]).staged_decision_function(X[[i]])
        found = model.loo_prediction_path_[:, i]
        np.testing.assert_allclose(found, [z[0] for z in staged], **EXACT)


def test_groups_need_a_label_for_every_feature(data):
    model = TrajectoryRegressor(penalty="group_lasso", groups=GROUPS[1:])
    with pytest.raises(ValueError, match="a label for each of the 6 features"):
        model.fit(*data)
    assert not hasattr(model, "coef_")


def test_search_over_parts(data):
    grid = {
        "penalty": ["l1", None, PENALTIES["groups"], PENALTIES["weighted_l1"]],
        "schedule": ["gd", HeavyBall(1.0, 0.5)],
        "loss": ["squared_error", Huber(1.0)],
    }
    model = regressor(loo=False, risk=False)
    search = GridSearchCV(model, grid, cv=2, error_score="raise").fit(*data)
    assert len(np.unique(search.cv_results_["mean_test_score"])) == 16


@pytest.mark.parametrize(
    "penalty", ["L1", "weighted_l1", "NonnegativeElasticNet", "l2"]
)
@pytest.mark.parametrize("loss", ["squared_error", Huber(2.0)], ids=str)
def test_approximate_loo_of_the_converged_model(loss, penalty, data):
    """Exact for ridge regression; else a row or two change what is active."""
    model = TrajectoryRegressor(
        0.1, loss=loss, penalty=PENALTIES[penalty], max_iter=500, tol=0, loo=True
    ).fit(*data)  # a run that ends by itself may do so before those without a row
    found = approximate_loo(model, *data).predictions
    off = np.abs(found - model.loo_prediction_path_[-1])
    if loss == "squared_error" and penalty == "l2":
        assert off.max() < 1e-8
    assert np.median(off) < 0.02
