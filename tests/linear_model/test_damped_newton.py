"""Newton's method far from the optimum, against scikit-learn's minimisers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skacv import TrajectoryLogisticRegression, TrajectoryPoissonRegressor
from skacv.optim.arrays import design_of
from skacv.optim.losses import Logistic, Multinomial, Poisson
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import Newton, SimplifiedNewton
from skacv.optim.trajectory import Phase

N_ROWS = 60


@pytest.fixture
def X(rng):
    return rng.standard_normal((N_ROWS, 4))


def counts(X, size, rng):
    return rng.poisson(size * np.exp(X @ [0.5, -0.3, 0.1, 0.0]))


def poisson(X, y, size):
    model = PoissonRegressor(alpha=size * 0.1, solver="newton-cholesky")
    return model.set_params(tol=1e-8 * size).fit(X, y)


@pytest.mark.parametrize("size", [1, 300, 1e5, 1e8])
@pytest.mark.filterwarnings("error")
def test_counts(size, X, rng):
    """The run, folds and single rows left out end at the minimum of their objective."""
    y = counts(X, size, rng)
    model = TrajectoryPoissonRegressor(size * 0.1, solver="newton", max_iter=40)
    model.set_params(loo=True, cv=3).fit(X, y)
    objective = model.objective_path_
    assert (np.diff(objective) <= 1e-12 * np.abs(objective[0])).all()
    expected = poisson(X, y, size)
    np.testing.assert_allclose(model.coef_path_[-1], expected.coef_, atol=1e-7)
    for i in (0, 7):
        rest = np.arange(N_ROWS) != i
        refit = poisson(X[rest], y[rest], size)
        found = model.loo_prediction_path_[-1, i]
        np.testing.assert_allclose(found, refit.predict(X[[i]])[0], rtol=1e-6)
    paths = np.concatenate([model.loo_path_, model.cv_path_])
    assert np.isfinite(paths).all()


def test_every_refit_is_the_damped_run_on_its_rows(X, rng):
    """Leave-one-out at every iterate: the same estimator without the row."""
    y = counts(X, 500, rng)
    model = TrajectoryPoissonRegressor(1.0, solver="newton", max_iter=6, tol=0)
    whole = model.set_params(loo=True).fit(X, y)
    path = whole.loo_prediction_path_[:, 11]
    rest = np.arange(N_ROWS) != 11
    model = TrajectoryPoissonRegressor(1.0, solver="newton", max_iter=6, tol=0)
    alone = model.set_params(loo=False).fit(X[rest], y[rest])
    expected = [prediction[0] for prediction in alone.staged_predict(X[[11]])]
    np.testing.assert_allclose(path, expected, rtol=1e-9)


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_labels(C, X):
    X = 30 * X
    y = (X[:, 0] + X[:, 1] ** 2 / 30 > 20).astype(int)
    model = TrajectoryLogisticRegression(C, solver="newton", max_iter=60, cv=3)
    model.fit(X, y)
    expected = LogisticRegression(C=C, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_path_[-1], expected.coef_, rtol=1e-4)
    assert np.isfinite(model.cv_path_).all()


@pytest.mark.parametrize("schedule", [Newton(1.0), SimplifiedNewton(1.0)], ids=repr)
@pytest.mark.parametrize("loss", [Logistic(), Multinomial(), Poisson()], ids=repr)
def test_whole_steps_are_taken_where_the_objective_falls(schedule, loss, X, rng):
    """Against a loop of NumPy, to the last digits."""
    n_outputs = 3 if loss.is_coupled else 1
    labels = rng.integers(0, 3, N_ROWS)
    target = np.eye(3)[labels] if loss.is_coupled else (labels[:, None] > 0) * 1.0
    problem = Problem(design_of(X), target, np.full((N_ROWS, 1), 1 / N_ROWS), loss)
    penalty, n = SquaredL2(0.1), 4 * n_outputs
    record = run(problem, [Phase(penalty, schedule, 5)], np.zeros((1, 4, n_outputs)))
    coef, inverse = np.zeros((4, n_outputs)), None
    for reached in record.coef[1:]:
        predictor = X @ coef
        if inverse is None or isinstance(schedule, SimplifiedNewton) is False:
            hessian = problem.hessian(predictor).reshape(n, n) + 0.1 * np.eye(n)
            inverse = np.linalg.inv(hessian)
        gradient = problem.gradient(predictor) + 0.1 * coef
        coef = coef - (inverse @ gradient.ravel()).reshape(coef.shape)
        np.testing.assert_allclose(reached, coef, rtol=0, atol=1e-13)


@pytest.mark.parametrize("schedule", [Newton(1.0), SimplifiedNewton(1.0)], ids=repr)
def test_the_objective_falls_also_with_an_earlier_hessian(schedule, X, rng):
    target = counts(X, 200, rng)[:, None].astype(float)
    design = design_of(np.column_stack([X, np.ones(N_ROWS)]))
    problem = Problem(design, target, np.full((N_ROWS, 1), 1 / N_ROWS), Poisson())
    record = run(problem, [Phase(SquaredL2(1.0), schedule, 30)], np.zeros((1, 5, 1)))
    assert np.isfinite(record.coef).all()
    assert (np.diff(problem.objectives(record)) <= 1e-9).all()
