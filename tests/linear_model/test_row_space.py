"""More columns than rows: runs in the space of the rows are those on the columns."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import KFold

from skacv import (
    IterativeRidge,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
)
from skacv.model_selection import Estimate, register_estimate, unregister_estimate
from skacv.optim.arrays import DenseDesign
from skacv.optim.families import Weighted
from skacv.optim.penalties import SquaredL2
from skacv.optim.row_space import RowSpaceDesign, row_space
from skacv.optim.schedules import GradientDescent
from skacv.optim.updates import ProximalGradient
from skacv.records import HeldOut
from tests.cases import covering
from tests.runs import run_of
from tests.sides import assert_same, fit_plainly, fit_reduced

EXACT = 1e-10
# Random probes are carried in single precision, on either side.
PROBED = 1e-5
# So many that every one has less than a quarter of the weight: without more, the top
# eigenvalue of the others may be larger by a third, and Nesterov's step too large.
SHUFFLED = KFold(6, shuffle=True, random_state=0)
MODELS = {
    "gd": IterativeRidge(2.0),
    "nesterov": IterativeRidge(0.0, solver="nesterov"),
    "heavy_ball": IterativeRidge([20.0, 2.0], solver="heavy_ball"),
    "path": IterativeRidge("path", max_iter=3),
    "probes": IterativeRidge([5.0, 1.0], risk=7, random_state=0),
    "huber": TrajectoryHuberRegressor(0.1),
    "poisson": TrajectoryPoissonRegressor(0.5),
    "poisson_newton": TrajectoryPoissonRegressor(0.5, solver="newton"),
    "newton": TrajectoryRegressor(0.5, penalty="l2", schedule="newton"),
    "no_penalty": TrajectoryRegressor(penalty=None, schedule="heavy_ball"),
    "logistic": TrajectoryLogisticRegression(),
    "logistic_path": TrajectoryLogisticRegression(C="path", max_iter=3),
    "logistic_sgd": TrajectoryLogisticRegression(
        solver="sgd", batch_size=7, random_state=0
    ),
    "logistic_newton": TrajectoryLogisticRegression(solver="newton"),
    "multinomial": TrajectoryLogisticRegression(risk="exact"),
    "svc": TrajectoryLinearSVC(),
}


def drawn(rng, name="", shape=(24, 90)):
    """Correlated columns far from zero, and targets that the model takes."""
    X = rng.standard_normal(shape) @ np.diag(np.linspace(0.1, 2, shape[1]))
    X = X + rng.standard_normal(shape[1])
    z = X[:, 0] + X[:, -1] / 4
    if name.startswith("poisson"):
        return X, rng.poisson(np.exp(z / 4)).astype(float)
    if name == "multinomial":
        return X, np.digitize(z, np.quantile(z, [0.3, 0.6]))
    if name.startswith(("logistic", "svc")):
        return X, (z > np.median(z)).astype(int)
    return X, z + rng.standard_normal(len(z)) + 3


def model_of(name, **params):
    model = clone(MODELS[name])
    if model.max_iter == 200:
        model.set_params(max_iter=25)
    return model.set_params(loo=True, cv=SHUFFLED, **params)


@covering(name=MODELS, fit_intercept=[True, False], weighted=[False, True])
def test_everything_is_that_of_the_columns(name, fit_intercept, weighted, rng):
    X, y = drawn(rng, name)
    weights = rng.uniform(0.5, 1.5, len(y)) if weighted else None
    model = model_of(name, fit_intercept=fit_intercept)
    assert fit_reduced(model, X, y, sample_weight=weights) == "RowSpaceData"
    plain = fit_plainly(clone(model), X, y, sample_weight=weights)
    assert_same(model, plain, PROBED if name == "probes" else EXACT)


@pytest.mark.parametrize("name", ["nesterov", "path"])
def test_several_targets(name, rng):
    X, y = drawn(rng)
    Y = y[:, None] + rng.standard_normal((len(y), 3))
    model = model_of(name)
    assert fit_reduced(model, X, Y) == "RowSpaceData"
    assert_same(model, fit_plainly(clone(model), X, Y), EXACT)


@pytest.mark.parametrize("name", ["gd", "huber", "no_penalty"])
def test_intervals(name, rng):
    X, y = drawn(rng)
    model = model_of(name, keep_data=True)
    assert fit_reduced(model, X, y) == "RowSpaceData"
    plain = fit_plainly(clone(model), X, y)
    for t in (5, 25):
        found, expected = (
            each.at_iteration(t).predict_interval(X[:4], 0.7) for each in (model, plain)
        )
        np.testing.assert_allclose(found, expected, rtol=EXACT)


@pytest.mark.parametrize("name", ["nesterov", "logistic"])
def test_columns_of_very_little_variance_in_some_directions(name, rng):
    """Singular values from 1 to 1e-12, some of them zero: rows are repeated."""
    X, y = drawn(rng, name, (20, 60))
    left, _, right = np.linalg.svd(X, full_matrices=False)
    X = left @ np.diag(np.logspace(0, -12, 20)) @ right * 10
    X[1], y[1] = X[0], y[0]
    model = model_of(name).set_params(max_iter=100)
    assert fit_reduced(model, X, y) == "RowSpaceData"
    assert_same(model, fit_plainly(clone(model), X, y), EXACT)


def test_beyond_a_full_decomposition_the_step_is_the_same(rng):
    """Lanczos iterations start from the same vector of the rows."""
    X, y = drawn(rng, "logistic", (150, 700))
    model = model_of("logistic").set_params(risk=False, loo=False, max_iter=100)
    assert fit_reduced(model, X, y) == "RowSpaceData"
    assert_same(model, fit_plainly(clone(model), X, y), EXACT)


def test_single_precision_stays(rng):
    X, y = drawn(rng, "logistic")
    X = X.astype(np.float32)
    model = model_of("logistic")
    assert fit_reduced(model, X, y) == "RowSpaceData"
    assert model.coef_path_.dtype == np.float32
    assert_same(model, fit_plainly(clone(model), X, y), 2e-5)


@pytest.mark.filterwarnings("ignore:The largest column of X is")
@pytest.mark.parametrize("name", ["gd", "logistic"])
def test_sparse_rows_are_turned_where_few(name, rng):
    X, y = drawn(rng, name, (12, 400))
    X = sparse.csr_matrix(X * (rng.random(X.shape) < 0.3))
    model = model_of(name)
    assert fit_reduced(model, X, y) == "RowSpaceData"
    assert_same(model, fit_plainly(clone(model), X, y), EXACT)
    X = sparse.csr_matrix(X.toarray() * (rng.random(X.shape) < 0.03))
    assert fit_reduced(model, X, y) == "ColumnData"


@pytest.mark.parametrize("name", ["nesterov", "logistic", "multinomial"])
def test_phases_end_where_no_coefficient_of_a_column_moves(name, rng):
    """Which coefficient is the largest depends on the basis."""
    X, y = drawn(rng, name)
    params = {"tol": 1e-3, "max_iter": 4000}
    model = model_of(name).set_params(**params)
    fit_reduced(model, X, y)
    assert model.n_iter_ < 4000
    assert model.n_iter_ == fit_plainly(clone(model), X, y).n_iter_


def test_most_updates_need_no_product_with_the_basis(note_calls, rng):
    X, y = drawn(rng, "logistic", (20, 400))
    asked = note_calls(RowSpaceDesign, "on_columns", size=lambda *_: 1)
    model = TrajectoryLogisticRegression(
        0.001, max_iter=2000, tol=1e-10, fit_intercept=False, loo=False, cv=3
    ).fit(X, y)
    assert model.n_iter_ < 2000
    # Norms of 400 entries bound the largest within 20 times. They ask, for a change and
    # an iterate, while changes fall from some 40 tol to tol, of all the way from 1.
    assert 0 < len(asked) / 2 < 0.3 * model.n_iter_


def test_no_product_has_the_columns_of_X(note_calls, rng):
    X, y = drawn(rng, "logistic")
    taken = note_calls(DenseDesign, "dot", "t_dot", size=lambda X, _: X.shape[1])
    model_of("logistic").fit(X, y)
    assert max(taken) == len(y) + 1


# ------------------------------------------------------------------ warm starts


@pytest.mark.parametrize("name", ["gd", "nesterov", "logistic", "multinomial"])
def test_a_run_goes_on_whichever_side_its_parts_are_on(name, rng):
    X, y = drawn(rng, name)
    whole = model_of(name).set_params(tol=0).fit(X, y)
    for first, then in ((False, True), (True, False), (True, True)):
        part = model_of(name).set_params(tol=0, max_iter=9, warm_start=True)
        for n_updates, on_rows in ((9, first), (25, then)):
            part.set_params(max_iter=n_updates)
            fit = fit_reduced if on_rows else fit_plainly
            fit(part, X, y)
        assert_same(part, whole, 1e-9)
        phases = run_of(part, X, y).trajectory.phases  # nothing is left to be run
        assert [phase.n_updates for phase in phases] == [25]


def test_coefficients_outside_of_the_rows_are_gone_on_from_on_columns(rng):
    X, y = drawn(rng)
    other, _ = drawn(rng)
    model = model_of("gd", warm_start=True).fit(X, y)
    plain = fit_plainly(model_of("gd", warm_start=True), X, y)
    with pytest.warns(UserWarning, match="other data"):
        assert fit_reduced(model, other, y) == "ColumnData"
    with pytest.warns(UserWarning, match="other data"):
        fit_plainly(plain, other, y)
    assert_same(model, plain, EXACT)


def test_other_features_are_refused_as_before(rng):
    X, y = drawn(rng)
    model = model_of("gd", warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match="as many features"):
        model.fit(X[:, 1:], y)


# ------------------------------------------------------- where columns are kept


@dataclass(frozen=True)
class SignStep(ProximalGradient):
    """Not the same in another basis, and says so."""

    is_rotation_invariant = False

    def apply(self, current, earlier, gradient, penalty, scale=1.0):
        return current - 0.01 * np.sign(gradient)


@dataclass(frozen=True)
class SignDescent(GradientDescent):
    def updates(self):
        while True:
            yield SignStep(self.step_size)


@pytest.mark.parametrize(
    "model",
    [
        TrajectoryLasso(0.1),
        IterativeRidge(solver="eigenpro"),
        TrajectoryRegressor(penalty=SquaredL2(1.0), schedule=SignDescent(1.0)),
        TrajectoryRegressor(penalty=Weighted(SquaredL2(1.0), np.arange(90.0))),
        TrajectoryRegressor(penalty=Weighted(SquaredL2(1.0), np.ones(90))),
    ],
    ids=["prox", "preconditioner", "signs", "weights", "equal_weights"],
)
def test_what_depends_on_the_columns_stays_on_them(model, rng):
    X, y = drawn(rng)
    model.set_params(cv=5, max_iter=50, risk=False, loo=False)
    assert fit_reduced(model, X, y) == "ColumnData"


def test_a_few_updates_are_not_worth_a_decomposition(rng):
    X, y = drawn(rng)
    assert fit_reduced(IterativeRidge(max_iter=2), X, y) == "ColumnData"
    assert fit_reduced(IterativeRidge(max_iter=2000), X, y) == "RowSpaceData"


def test_an_estimate_that_counts_coefficients_has_those_of_the_columns(rng):
    def read_count(run):
        count = np.count_nonzero(run.trajectory.coef, axis=(1, 2))
        return HeldOut(count.astype(float), 0.0 * count)

    X, y = drawn(rng)
    register_estimate(Estimate("count", "number of coefficients", read_count))
    try:
        model = model_of("gd")
        assert fit_reduced(model, X, y) == "ColumnData"
        assert model.record_["count"].path[-1] == X.shape[1]
    finally:
        unregister_estimate("count")


# ------------------------------------------------------------------- the parts


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_a_basis_of_the_rows(storage, rng):
    X, _ = drawn(rng)
    center = X.mean(axis=0)[:, None]
    X = storage(X)
    design = DenseDesign(X, center)
    if sparse.issparse(X):
        from skacv.optim.sparse import SparseDesign

        design = SparseDesign(X, center)
    coordinates, basis = row_space(design)
    dense = design.dense_columns(np.arange(X.shape[1]), np.float64)
    np.testing.assert_allclose(coordinates @ basis.T, dense, atol=1e-12)
    np.testing.assert_allclose(basis.T @ basis, np.eye(len(coordinates)), atol=1e-13)
    turned = RowSpaceDesign(coordinates, basis=basis)
    parts = [turned.rows([3, 1]), turned.scaled_rows(np.ones((len(coordinates), 1)))]
    weights = np.full((len(coordinates), 1), 1 / len(coordinates))
    for part in (turned, *parts, turned.centered(weights)):
        assert part.side == "rows"
        assert part.basis is basis
