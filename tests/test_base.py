"""What all trajectory models share: what is planned is what is recorded."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone

from skacv import (
    IterativeRidge,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryTweedieRegressor,
)
from skacv.risk.cost import RunCost, method_for
from tests.runs import run_of

MODELS = [
    TrajectoryLasso(0.1),
    TrajectoryLasso([0.1, 0.01], solver="ista"),
    TrajectoryElasticNet(0.1),
    IterativeRidge(),
    IterativeRidge("path", solver="nesterov"),
    IterativeRidge(solver="heavy_ball", fit_intercept=False),
    IterativeRidge(solver="eigenpro", n_components=2),
    IterativeRidge([2.0, 1.0], solver="eigenpro", n_components=2),
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=8),
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=40),
    TrajectoryLogisticRegression(),
    TrajectoryLogisticRegression(l1_ratio=0.5, loo_correction=False),
    TrajectoryLogisticRegression(solver="newton", fit_intercept=False),
    TrajectoryLogisticRegression([0.1, 1.0], solver="sgd", batch_size=7),
    TrajectoryLinearSVC(),
    TrajectoryLinearSVC(loss="smoothed_hinge", solver="sgd", batch_size=100),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryPoissonRegressor(solver="newton"),
    TrajectoryTweedieRegressor(),
    TrajectoryQuantileRegressor(solver="sgd"),
]


def drawn(rng, shape=(40, 6)):
    X = rng.standard_normal(shape)
    return X, (X[:, 0] + 0.5 * rng.standard_normal(shape[0]) > 0).astype(int)


def short(model):
    return clone(model).set_params(max_iter=5, tol=0, random_state=0)


def fitted(model, data):
    return short(model).fit(*data)


SEVERAL_OUTPUTS = [
    IterativeRidge(),
    IterativeRidge(solver="eigenpro", n_components=2, batch_size=8),
    TrajectoryLogisticRegression(),
    TrajectoryLinearSVC(),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_rows_are_left_out_of_what_was_planned(model, rng):
    """What a criterion is chosen by beforehand, and what happens then, agree."""
    planned_is_recorded(model, *drawn(rng))


@pytest.mark.parametrize("model", SEVERAL_OUTPUTS, ids=str)
def test_several_outputs_are_planned_for(model, rng):
    X, _ = drawn(rng)
    label = np.arange(len(X)) % 3
    is_regressor = isinstance(model, IterativeRidge)
    planned_is_recorded(model, X, np.eye(3)[label] if is_regressor else label)


def planned_is_recorded(model, X, y):
    finished = run_of(short(model), X, y)
    problem, spec = finished.data.problem, finished.spec
    recorded = RunCost.recorded(problem, finished.trajectory, spec.corrects_loo)
    planned = spec.cost(X.shape, y)
    for run in (planned, recorded):
        assert run.rules
    known = [
        (
            method_for(run),
            replace(run, rules=[]),
            run.n_batches,
            run.is_elementwise,
            run.has_one_basis,
        )
        for run in (planned, recorded)
    ]
    assert known[0] == known[1]
    assert spec.is_quadratic == problem.loss.is_quadratic


# ------------------------------------------------------------------- warm start

BATCHED = [
    (
        IterativeRidge(solver="eigenpro", n_components=2, batch_size=8),
        {"solver": "gd"},
    ),
    (
        IterativeRidge(solver="eigenpro", n_components=2, batch_size=8),
        {"batch_size": None},
    ),
    (TrajectoryLogisticRegression(solver="sgd"), {"solver": "fista"}),
    (TrajectoryPoissonRegressor(solver="sgd"), {"solver": "gd"}),
    (TrajectoryPoissonRegressor(solver="sgd"), {"solver": "newton"}),
    (TrajectoryHuberRegressor(solver="sgd"), {"solver": "nesterov"}),
    (TrajectoryLinearSVC(solver="sgd"), {"solver": "gd"}),
]


def refuses(model, changes, message, data):
    """Fitting again raises, and leaves the model as it is."""
    before = dict(vars(model))
    model.set_params(**changes)
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    kept = {key: value for key, value in vars(model).items() if key not in changes}
    assert all(before[key] is value for key, value in kept.items())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("model", "changes"), BATCHED, ids=str)
def test_warm_start_does_not_mix_batches_and_all_rows(model, changes, reverse, rng):
    data = drawn(rng)
    model = clone(model).set_params(warm_start=True)
    former = {name: model.get_params()[name] for name in changes}
    if reverse:
        model, changes = model.set_params(**changes), former
    refuses(
        fitted(model, data),
        changes,
        "cannot continue a run in batches with updates on all",
        data,
    )


@pytest.mark.parametrize(
    "changes", [{"alpha": 3000.0}, {"step_size": 0.01}, {"batch_size": 20}]
)
def test_passes_in_batches_stay_alike(changes, rng):
    """The risk, and rows left out, are read from one and the same map."""
    data = drawn(rng)
    model = IterativeRidge(0.0, solver="eigenpro", n_components=2, batch_size=8)
    model = fitted(model.set_params(warm_start=True), data)
    refuses(model, changes, "single alpha", data)


def test_exact_risk_is_not_for_batches(rng):
    data = drawn(rng)
    model = IterativeRidge(solver="eigenpro", n_components=2)
    model = fitted(model.set_params(risk="exact"), data)
    refuses(model, {"batch_size": 8}, 'risk="exact" needs updates on all rows', data)
    model.set_params(batch_size=40).fit(*data)  # all rows at a time
    assert model.n_probes_ == 0


def test_newton_steps_after_others_are_left_out_exactly(rng):
    """A record has Newton steps wherever they are: nothing is linearised."""
    X, y = drawn(rng, (200, 2))
    model = TrajectoryLogisticRegression(max_iter=300, tol=0, loo=True, warm_start=True)
    refit = clone(model.fit(X, y)).set_params(loo=False, step_size=model.step_size_)
    newton = {"solver": "newton", "max_iter": 4, "step_size": 1.0}
    model.set_params(**newton).fit(X, y)
    assert model.n_iter_ == 304
    kept = np.arange(200) != 7
    refit.fit(X[kept], y[kept]).set_params(**newton).fit(X[kept], y[kept])
    expected = refit.coef_path_[:, 0] @ X[7] + refit.intercept_path_[:, 0]
    found = model.loo_prediction_path_[:, 7]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "model", [TrajectoryLasso(0.1), TrajectoryLogisticRegression()]
)
def test_warm_start_names_features_and_outputs_without_the_intercept(model, rng):
    X, y = drawn(rng, (40, 10))
    model = fitted(clone(model).set_params(warm_start=True), (X, y))
    with pytest.raises(ValueError, match=r"before: 10 and 1, got 5 and 1\."):
        model.fit(X[:, :5], y)


CHANGED = [
    (TrajectoryLogisticRegression(), {"fit_intercept": False}),
    (TrajectoryLogisticRegression(fit_intercept=False), {"fit_intercept": True}),
    (TrajectoryPoissonRegressor(fit_intercept=False), {"fit_intercept": True}),
    (TrajectoryLasso(0.1, fit_intercept=False), {"fit_intercept": True}),
    (TrajectoryHuberRegressor(), {"epsilon": 1.1}),
    (TrajectoryHuberRegressor(), {"scale": 3.0}),
    (TrajectoryLinearSVC(), {"loss": "smoothed_hinge"}),
    (TrajectoryLasso(0.1), {"standardize": True}),
    (IterativeRidge(standardize=True), {"standardize": False}),
    (IterativeRidge(solver="newton"), {"standardize": True}),
    (TrajectoryLogisticRegression(standardize=True), {"standardize": False}),
    (TrajectoryElasticNet(0.1, fit_intercept=False), {"standardize": True}),
]


@pytest.mark.parametrize(("model", "changes"), CHANGED, ids=str)
def test_warm_start_with_another_problem_starts_anew(model, changes, rng):
    data = drawn(rng)
    model = fitted(clone(model).set_params(warm_start=True), data)
    kept = model.coef_.copy()
    with pytest.warns(UserWarning, match="another loss, intercept or standardize"):
        model.set_params(**changes).fit(*data)
    assert model.n_iter_ == 5
    np.testing.assert_allclose(model.coef_path_[0], kept, rtol=1e-12)
