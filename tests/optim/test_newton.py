"""Newton's method with the Hessian of the iterate where a phase begins."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import KFold

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression
from skacv.optim.arrays import design_of
from skacv.optim.column_maps import ColumnMaps
from skacv.optim.fits import (
    Iterate,
    WeightedFits,
    Weights,
    gradient_by_blocks,
)
from skacv.optim.hessians import inverse_hessians, newton_direction
from skacv.optim.losses import Logistic, Multinomial
from skacv.optim.penalties import SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import Nesterov, Newton, SimplifiedNewton
from skacv.optim.trajectory import Phase
from tests.runs import run_of

P, N_FITS = 4, 3


def fits_of(loss, rng, maps=None, n=200):
    X = rng.standard_normal((n, P)) + 1
    n_outputs = 3 if loss.is_coupled else 1
    y = np.eye(3)[rng.integers(0, 3, n)][:, :n_outputs]
    problem = Problem(design_of(X), y, np.full((n, 1), 1 / n), loss)
    stays = np.where(rng.random((n, N_FITS)) < 0.8, 1 / n, 0)
    scale = np.array([1.0, 2.0, 3.0])
    return WeightedFits(problem, Weights(stays, scale, columns=maps and maps(rng)))


def scaled(rng):
    shape = P, N_FITS
    return ColumnMaps(rng.random(shape) + 0.5, rng.standard_normal(shape))


@pytest.mark.parametrize("maps", [None, scaled])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=repr)
def test_inverse_hessians_give_newton_directions(loss, maps, rng):
    fits, penalty = fits_of(loss, rng, maps), SquaredL2(0.1)
    coef = fits.start(rng.standard_normal((P, 3 if loss.is_coupled else 1)))
    point = fits.iterate(coef)
    gradient = fits.gradient_at(point)
    gradient += fits.penalty_scale * penalty.smooth_gradient(coef)
    inverses = inverse_hessians(fits, penalty, point)
    for r in range(N_FITS):
        found = inverses[r] @ gradient[:, :, r].ravel()
        expected = newton_direction(fits, penalty, point)[:, :, r].ravel()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("maps", [None, scaled])
@pytest.mark.parametrize("loss", [Logistic(), Multinomial()], ids=repr)
def test_gradients_by_blocks_of_rows(loss, maps, rng):
    fits = fits_of(loss, rng, maps, n=40_000)  # more than one block has
    coef = fits.start(rng.standard_normal((P, 3 if loss.is_coupled else 1)))
    gradient, expected = gradient_by_blocks(fits, coef), fits.gradient_at(Iterate(coef))
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-14)


def test_it_ends_where_newton_does(rng):
    problem = fits_of(Logistic(), rng).problem
    start = np.zeros((1, P, 1))
    ends = []
    for schedule in (Newton(1.0), SimplifiedNewton(1.0)):
        plan = [Phase(SquaredL2(s), schedule, 100) for s in (0.1, 0.01)]
        ends.append(run(problem, plan, start, tol=1e-12))
    newton, simplified = ends
    np.testing.assert_allclose(simplified.coef[-1], newton.coef[-1], atol=1e-10)
    assert newton.n_updates < simplified.n_updates < 60


def test_a_run_goes_on_with_its_hessian(rng):
    problem, start = fits_of(Logistic(), rng).problem, np.zeros((1, P, 1))

    def plan(n_updates):
        return [Phase(SquaredL2(0.01), SimplifiedNewton(1.0), n_updates)]

    part = run(problem, plan(2), start)
    found = run(problem, plan(5), part.coef, done=part.phases)
    np.testing.assert_array_equal(found.coef, run(problem, plan(5), start).coef)


# ------------------------------------------------------------------ solver="auto"

FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture
def tall(rng):
    """As many rows as Newton's method is worth its time for."""
    X = rng.standard_normal((10_000, 3)) @ np.diag([1.0, 2.0, 0.1]) + 1
    return X, (rng.random(len(X)) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)


@pytest.mark.parametrize("standardize", [False, True])
def test_folds_are_refits_at_the_end_of_every_value(standardize, tall):
    X, y = tall
    model = TrajectoryLogisticRegression(
        "path", cv=FOLDS, tol=1e-10, standardize=standardize
    ).fit(X, y)
    assert model.n_iter_ < 10 * 10
    ends = np.flatnonzero(np.diff(model.C_path_, append=0))
    for t in ends[::4]:
        losses, weights = [], []
        for fitted, judged in FOLDS.split(X):
            scale = X[fitted].std(axis=0) if standardize else 1.0
            exact = LogisticRegression(C=model.C_path_[t], tol=1e-10, max_iter=1000)
            exact.fit(X[fitted] / scale, y[fitted])
            predicted = exact.predict_proba(X[judged] / scale)
            losses.append(log_loss(y[judged], predicted))
            weights.append(len(judged))
        expected = np.average(losses, weights=weights)
        assert model.cv_path_[t] == pytest.approx(expected, rel=1e-6)


def test_when_it_is_taken(tall):
    X, y = tall

    def kind(*args, **settings):
        model = TrajectoryLogisticRegression(*args, max_iter=3, **settings)
        run = run_of(model, X, y)
        return type(run.trajectory.phases[0].schedule).__name__

    assert kind("path") == kind([0.1, 1.0]) == "SimplifiedNewton"
    others = [
        kind(1.0),
        kind("path", l1_ratio=0.5),
        kind("path", risk=True),
        kind("path", loo=20),
        kind("path", solver="fista"),
        kind("path", step_size=0.1),
    ]
    assert others == ["Nesterov"] * 6


@pytest.mark.slow
def test_the_path_and_its_choice_are_those_of_gradients(tall):
    X, y = tall
    C, settings = [1e-4, 1e-3, 3e-3, 0.01], {"tol": 1e-9, "max_iter": 2000}
    found, expected = (
        TrajectoryEarlyStoppingCV(
            TrajectoryLogisticRegression(C, solver=solver, **settings),
            criterion="cv",
            patience=None,
        ).fit(X, y)
        for solver in ("auto", "fista")
    )
    assert found.path_.min() == pytest.approx(expected.path_.min(), rel=1e-3)
    last = found.estimator_.coef_path_[-1], expected.estimator_.coef_path_[-1]
    # In units of predictions: gradients come slowly along the column of little spread.
    last = [coef * X.std(axis=0) for coef in last]
    np.testing.assert_allclose(*last, rtol=0, atol=1e-4)
    assert found.estimator_.n_iter_ < 0.2 * expected.estimator_.n_iter_


def test_it_is_left_to_few_coefficients(tall):
    X, y = tall
    model = TrajectoryLogisticRegression([0.1, 1.0], max_iter=3, tol=0)
    run = run_of(model, np.tile(X, 20), y)
    assert isinstance(run.trajectory.phases[0].schedule, Nesterov)


@pytest.mark.parametrize("solver", ["auto", "newton"])
def test_patience_counts_the_updates_that_newton_takes(solver, tall):
    """Few at every strength: the path ends before its last strengths."""
    X, _ = tall
    # What one fold says is false in another, so that no iterate is better than none.
    _, second, third = (held_out for _, held_out in FOLDS.split(X))
    noise = (X[:, 0] > 0).astype(int)
    noise[second] = 1 - noise[second]
    noise[third] = np.arange(len(third)) % 2
    model = TrajectoryLogisticRegression("path", solver=solver, cv=FOLDS)
    stopped = TrajectoryEarlyStoppingCV(model, criterion="cv").fit(X, noise)
    whole = clone(model).fit(X, noise)
    n_updates = stopped.estimator_.n_iter_
    assert stopped.best_iter_ == 0
    # Some hundred updates were waited for if Newton's took as many as gradients.
    assert stopped.best_iter_ + 20 <= n_updates < whole.n_iter_
    np.testing.assert_array_equal(stopped.path_, whole.cv_path_[: n_updates + 1])


@pytest.mark.parametrize(
    ("settings", "patience"),
    [
        ({"solver": "newton"}, 20),
        ({"solver": "newton", "max_iter": 2}, 4),
        ({"solver": "fista", "max_iter": 30}, 60),
        ({"C": 1.0, "solver": "fista"}, None),
    ],
    ids=str,
)
def test_default_patience(settings, patience, rng):
    """As many updates as two strengths take; none where there is one strength."""
    X, noise = rng.standard_normal((90, 3)), rng.permutation(90) % 2
    model = TrajectoryLogisticRegression(**{"C": "path", "cv": FOLDS, **settings})
    stopping = TrajectoryEarlyStoppingCV(model, criterion="cv")
    found = clone(stopping).fit(X, noise)
    expected = stopping.set_params(patience=patience).fit(X, noise)
    assert found.estimator_.n_iter_ == expected.estimator_.n_iter_
    np.testing.assert_array_equal(found.path_, expected.path_)
