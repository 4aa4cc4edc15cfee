"""What an update costs, in multiplications: the counts of docs/estimates.md."""

import numpy as np
import pytest
from sklearn.model_selection import LeaveOneOut

from skacv import TrajectoryLasso, TrajectoryLogisticRegression
from skacv.optim.arrays import DenseDesign
from skacv.optim.design import MatrixDesign
from skacv.risk.left_out import linearised

N, P, BATCH, N_UPDATES = 120, 6, 30, 15
COMMON = {
    "tol": 0,
    "fit_intercept": False,
    "risk": False,
    "loo": False,
    "random_state": 0,
}
PUBLISHED = {"loo": True, "loo_correction": False}
EXACT = {"cv": LeaveOneOut()}
BATCHES = {"solver": "sgd", "batch_size": BATCH}
SPARSE = {"solver": "ista", "l1_ratio": 1.0, "C": 0.1}


@pytest.fixture
def cost_of_update(note_calls):
    """``cost(model, X, y)``: multiplications that an update adds, by kind.

    "X": with X, of a vector each; "gram": of columns of X with each other;
    "hessian": of a matrix for all columns with the deviations of all runs.
    """
    kinds = {
        "X": note_calls(
            MatrixDesign,
            "dot",
            "t_dot",
            size=lambda X, vectors: X.shape[0] * X.shape[1] * vectors.shape[1],
        ),
        "gram": note_calls(
            DenseDesign, "gram", size=lambda X, *_: X.shape[0] * X.shape[1] ** 2
        ),
        "hessian": note_calls(
            linearised,
            "hessian_times",
            size=lambda problem, curvature, point: len(point) * point.size,
        ),
    }

    def cost(model, X, y):
        totals = []
        for n_updates in (N_UPDATES, 2 * N_UPDATES):
            for sizes in kinds.values():
                sizes.clear()
            model.set_params(max_iter=n_updates).fit(X, y)
            totals.append(np.array([sum(sizes) for sizes in kinds.values()]))
        return dict(zip(kinds, (totals[1] - totals[0]) / N_UPDATES))

    return cost


def drawn(rng, p=P):
    X = rng.standard_normal((N, p))
    return X, (X[:, 0] + rng.standard_normal(N) > 0).astype(int)


def logistic(**settings):
    return TrajectoryLogisticRegression(**{**COMMON, "solver": "gd", **settings})


def test_linearised_runs_take_a_hessian_and_a_product_with_it(rng, cost_of_update):
    X, y = drawn(rng)
    alone = cost_of_update(logistic(), X, y)
    cost = cost_of_update(logistic(**PUBLISHED), X, y)
    assert cost["gram"] == cost["hessian"] == N * P**2
    # And the gradient at the recorded iterate, once for all runs.
    assert cost["X"] - alone["X"] == N * P


def test_exact_runs_take_two_products_each(rng, cost_of_update):
    X, y = drawn(rng)
    alone = cost_of_update(logistic(), X, y)
    cost = cost_of_update(logistic(**EXACT), X, y)
    assert cost["gram"] == cost["hessian"] == 0
    # And the predictor of every row by the run without it.
    assert cost["X"] - alone["X"] == 2 * N * N * P + N * P
    folds = cost_of_update(logistic(cv=5), X, y)
    assert folds["X"] - alone["X"] == pytest.approx(2 * 5 * N * P, rel=0.1)


def test_batches_take_hessians_of_their_rows(rng, cost_of_update):
    """An iterate is a pass of N / BATCH updates."""
    X, y = drawn(rng)
    n_batches = N // BATCH
    alone = cost_of_update(logistic(**BATCHES), X, y)
    cost = cost_of_update(logistic(**BATCHES, **PUBLISHED), X, y)
    assert cost["gram"] == n_batches * BATCH * P**2
    assert cost["hessian"] == n_batches * N * P**2
    # Gradients and predictors of the recorded run, which is gone through again.
    assert cost["X"] - alone["X"] == 3 * N * P
    exact = cost_of_update(logistic(**BATCHES, **EXACT), X, y)
    assert exact["X"] - alone["X"] == n_batches * 2 * N * BATCH * P + N * P


def test_with_a_prox_linearised_runs_work_on_few_columns(rng, cost_of_update):
    X, y = drawn(rng, p=40)
    model = logistic(**SPARSE, **PUBLISHED)
    alone = cost_of_update(logistic(**SPARSE), X, y)
    cost = cost_of_update(model, X, y)
    n_used = np.count_nonzero(model.coef_path_.any(axis=0))
    # Those that some run uses and the recorded one does not are among them.
    assert cost["gram"] == cost["hessian"]
    assert N * n_used**2 <= cost["gram"] < 0.1 * N * 40**2
    # The gradient of all columns finds those that are to join.
    assert cost["X"] - alone["X"] == N * 40


def test_the_memory_matrix_takes_products_of_tangents(rng, cost_of_update):
    """One for every probe, and two for every tangent; no row is left out."""
    X, y = drawn(rng, p=200)
    n_probes = 4
    model = logistic(risk=n_probes)
    alone = cost_of_update(logistic(), X, y)
    cost = cost_of_update(model, X, y)
    assert cost["gram"] == cost["hessian"] == 0
    # Modes are about a dozen.
    assert n_probes < (cost["X"] - alone["X"]) / (N * 200) < 3 * n_probes * 12
    assert cost["X"] < 0.5 * cost_of_update(logistic(**EXACT), X, y)["X"]


def test_leave_one_out_of_the_lasso_takes_one_gradient(rng, cost_of_update):
    X, y = rng.standard_normal((N, 40)), rng.standard_normal(N)
    X[:, :3] += y[:, None]
    lasso = TrajectoryLasso(0.3, solver="ista", **COMMON)
    alone = cost_of_update(lasso, X, y)["X"]
    cost = cost_of_update(lasso.set_params(loo=True), X, y)
    assert N * 40 <= cost["X"] - alone < 1.2 * N * 40
    assert cost["gram"] < 0.2 * N * 40


def test_the_memory_matrix_of_the_lasso_takes_second_moments(rng, cost_of_update):
    """Of the columns in use, once: no product with X is added to the run's."""
    X, y = rng.standard_normal((N, 300)), rng.standard_normal(N)
    X[:, :3] += y[:, None]
    lasso = TrajectoryLasso(0.3, solver="ista", **COMMON)
    alone = cost_of_update(lasso, X, y)
    cost = cost_of_update(lasso.set_params(risk=4), X, y)
    assert cost["X"] == pytest.approx(alone["X"], rel=0.02)
    assert cost["gram"] < 0.2 * N * 300
