"""A run goes on with what it is a run of: the same data, columns and parameters."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    RowSummary,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
)
from skacv.optim.run import LiveRun
from tests.runs import run_of

FOLDS = KFold(4)
EXACT = {"rtol": 0, "atol": 1e-8}
RUN = {"max_iter": 8, "tol": 0, "warm_start": True, "step_size": 0.05}


def drawn(rng, scales=(1, 2, 0.5, 1, 1, 1)):
    X = rng.standard_normal((40, 6)) * scales
    return X, rng.poisson(np.exp(0.4 * X[:, 0])) + rng.standard_normal(40) ** 2


# Parameters that say how a run goes on: what has been recorded stays what it was.
FURTHER = [
    (TrajectoryLasso(0.1), {"alpha": 0.01}),
    (TrajectoryLasso(0.1), {"alpha": [0.1, 0.01]}),
    (TrajectoryLasso(0.1), {"solver": "ista"}),
    (TrajectoryLasso(0.1), {"penalty_weights": [1, 2, 1, 1, 1, 0]}),
    (TrajectoryLasso(0.1), {"step_size": 0.02}),
    (TrajectoryElasticNet(0.1), {"l1_ratio": 0.9}),
    (TrajectoryGroupLasso(0.1, groups=[0, 0, 1, 1, 2, 2]), {"groups": [0, 1] * 3}),
    (IterativeRidge(1.0, solver="gd"), {"solver": "heavy_ball"}),
    (TrajectoryPoissonRegressor(solver="gd"), {"alpha": 2.0}),
]


@pytest.mark.filterwarnings("ignore:The last iterate predicts worse")
@pytest.mark.parametrize(("model", "changes"), FURTHER, ids=str)
def test_a_changed_run_goes_on_from_what_was_run(model, changes, rng):
    """Its folds are runs in two parts on their own rows."""
    X, y = drawn(rng)
    model = clone(model).set_params(**RUN, risk=False, loo=True)
    refit = clone(model).set_params(loo=False)
    model.set_params(cv=FOLDS).fit(X, y)
    changes = {"max_iter": 16, **changes}
    run = run_of(model.set_params(**changes), X, y)
    for fold, (fitted, held_out) in enumerate(FOLDS.split(X)):
        parts = clone(refit).fit(X[fitted], y[fitted])
        parts.set_params(**changes).fit(X[fitted], y[fitted])
        expected = np.array(list(parts.staged_predict(X[held_out])))
        found = model.cv_prediction_path_[:, 10 * fold : 10 * fold + 10]
        np.testing.assert_allclose(found, expected, **EXACT)
    if not run.data.problem.loss.is_quadratic:  # rows are left out to first order
        return
    others = np.arange(1, 40)
    parts = clone(refit).fit(X[others], y[others])
    parts.set_params(**changes).fit(X[others], y[others])
    expected = np.array(list(parts.staged_predict(X[:1])))[:, 0]
    np.testing.assert_allclose(model.loo_prediction_path_[:, 0], expected, **EXACT)


def test_other_columns_are_another_run(rng):
    """The run by hand, on scaled columns from the same coefficients."""
    X, y = drawn(rng, (1, 5, 0.2, 3, 1, 1))
    model = TrajectoryLasso(0.1, cv=FOLDS, **RUN).fit(X, y)
    with pytest.warns(UserWarning, match="another loss, intercept or standardize"):
        model.set_params(standardize=True, step_size="auto").fit(X, y)
    assert model.n_iter_ == 8
    scale, start = X.std(axis=0), model.coef_path_[0]
    Z, centred = (X - X.mean(axis=0)) / scale, y - y.mean()
    v, b, momentum = start * scale, start * scale, 1.0
    for t in range(1, 9):
        v_step = v - model.step_size_ * Z.T @ (Z @ v - centred) / 40
        bound = 0.1 * model.step_size_
        new = np.sign(v_step) * np.maximum(np.abs(v_step) - bound, 0)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        v, b = new + (momentum - 1) / following * (new - b), new
        momentum = following
        np.testing.assert_allclose(model.coef_path_[t], b / scale, **EXACT)


def test_scales_that_are_all_one_are_the_columns_as_passed(rng):
    X, y = drawn(rng)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    parts = TrajectoryLasso(0.1, cv=FOLDS, **RUN).fit(X, y)
    parts.set_params(standardize=True, max_iter=16).fit(X, y)
    whole = clone(parts).set_params(warm_start=False).fit(X, y)
    np.testing.assert_allclose(parts.coef_path_, whole.coef_path_, **EXACT)


@pytest.mark.parametrize(
    "model", [TrajectoryLasso(0.1), TrajectoryLogisticRegression()]
)
def test_sparse_columns_are_not_centred(model, rng):
    """Which is another run unless all columns are centred anyway."""
    X, y = drawn(rng)
    X, is_regression = X + 1, isinstance(model, TrajectoryLasso)
    y = y if is_regression else y > np.median(y)
    model = clone(model).set_params(**RUN, standardize=True).fit(X, y)
    model.set_params(max_iter=16)
    if is_regression:
        model.fit(sparse.csr_matrix(X), y)
        whole = clone(model).set_params(warm_start=False).fit(X, y)
        np.testing.assert_allclose(model.coef_path_, whole.coef_path_, **EXACT)
    else:
        with pytest.warns(UserWarning, match="standardize"):
            model.fit(sparse.csr_matrix(X), y)


def test_a_run_goes_on_in_single_precision(rng):
    X, y = drawn(rng)
    model = TrajectoryLasso(0.1, standardize=True, **RUN).fit(X, y)
    model.set_params(max_iter=16).fit(X.astype(np.float32), y)
    whole = clone(model).set_params(warm_start=False).fit(X, y)
    np.testing.assert_allclose(model.coef_path_, whole.coef_path_, atol=1e-5)


def test_a_summary_goes_on_with_a_run_on_its_rows(rng):
    X, y = drawn(rng)
    for first, then in (((X, y), None), (None, (X, y))):
        model = TrajectoryLasso(0.1, standardize=True, risk=False, **RUN)
        summary = (RowSummary(1).fit(X, y),)
        model.fit(*(first or summary)).set_params(max_iter=16).fit(*(then or summary))
        whole = clone(model).set_params(warm_start=False).fit(X, y)
        np.testing.assert_allclose(model.coef_path_, whole.coef_path_, **EXACT)


# ----------------------------------------------------------------- kernel machines


def kernel(**params):
    settings = {"gamma": 0.3, "patience": None, "max_iter": 5, "warm_start": True}
    return KernelEigenProRegressor(**{**settings, **params})


CHANGED = [
    {"gamma": 0.5},
    {"kernel": "laplacian"},
    {"alpha": 1.0},
    {"cv": 3},
    {"random_state": 1},
    {"standardize": True},
    {"subsample_size": 20},
]


@pytest.mark.parametrize("changes", CHANGED, ids=str)
def test_a_changed_kernel_machine_begins_anew(changes, rng):
    X, y = drawn(rng)
    model = kernel(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="a new trajectory starts at zero"):
        model.set_params(**changes).fit(X, y)
    expected = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("which", ["X", "y", "weights"])
def test_rows_that_were_changed_in_place_are_other_rows(which, rng):
    X, y = drawn(rng)
    arrays = {"X": X, "y": y, "weights": np.ones(40)}
    model = kernel(random_state=0).fit(*arrays.values())
    arrays[which][3:6] += 2
    with pytest.warns(UserWarning, match="a new trajectory starts at zero"):
        model.set_params(max_iter=9).fit(*arrays.values())
    expected = clone(model).fit(*arrays.values())
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_parameters_that_are_arrays_are_compared(rng):
    X, y = drawn(rng)
    model = kernel(alpha=np.array([2.0, 1.0]), random_state=0).fit(X, y)
    model.set_params(alpha=np.array([2.0, 1.0]), max_iter=9).fit(X, y)
    assert model.n_iter_ > 10
    alphas = [2.0, 1.0]
    model = kernel(alpha=alphas, random_state=0).fit(X, y)
    alphas[1] = 0.5
    with pytest.warns(UserWarning, match="a new trajectory starts at zero"):
        model.fit(X, y)


def test_a_kernel_machine_that_was_not_to_go_on_says_so(rng):
    X, y = drawn(rng)
    model = kernel(warm_start=False, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="fitted without warm_start or pickled since"):
        model.set_params(warm_start=True, max_iter=9).fit(X, y)


def test_a_kernel_machine_whose_fit_has_failed_begins_anew(rng, monkeypatch):
    X, y = drawn(rng)
    model = kernel(cv=3, random_state=0).fit(X, y)
    expected = model.predict(X)
    n_calls, called = [], LiveRun._n_until_converged

    def interrupted(self, coef):
        n_calls.append(1)
        if len(n_calls) == 2:
            raise KeyboardInterrupt
        return called(self, coef)

    monkeypatch.setattr(LiveRun, "_n_until_converged", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(max_iter=9).fit(X, y)
    monkeypatch.undo()
    np.testing.assert_array_equal(model.predict(X), expected)
    with pytest.warns(UserWarning, match="whose last fit has failed: a new traj"):
        model.fit(X, y)
    whole = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.cv_path_, whole.cv_path_)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))


# ------------------------------------------------------------------ groups of rows


@pytest.mark.parametrize("model", [TrajectoryLasso(0.1, tol=0), kernel()], ids=str)
def test_other_groups_are_other_folds(model, rng):
    X, y = drawn(rng)
    groups = np.arange(40) // 4
    others = groups[::-1] // 2
    model = clone(model).set_params(cv=3, random_state=0, warm_start=True, max_iter=3)
    model.fit(X, y, groups=groups).set_params(max_iter=5)
    if isinstance(model, KernelEigenProRegressor):
        with pytest.warns(UserWarning, match="a new trajectory starts at zero"):
            model.fit(X, y, groups=others)
    else:
        model.fit(X, y, groups=others)
    expected = clone(model).fit(X, y, groups=others)
    np.testing.assert_allclose(model.cv_path_, expected.cv_path_, rtol=1e-10)
    for found, rows in zip(model.cv_indices_, expected.cv_indices_):
        np.testing.assert_array_equal(found, rows)
