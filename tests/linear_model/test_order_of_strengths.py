"""A sequence of strengths runs from the strongest down, whatever its order."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryClassifier,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryRegressor,
)

RUN = {"max_iter": 4}
MODELS = {
    "lasso": TrajectoryLasso(**RUN),
    "elastic net": TrajectoryElasticNet(**RUN),
    "group lasso": TrajectoryGroupLasso(groups=[0, 0, 1, 1, 2], **RUN),
    "ridge": IterativeRidge(**RUN),
    "huber": TrajectoryHuberRegressor(**RUN),
    "poisson": TrajectoryPoissonRegressor(**RUN),
    "regressor": TrajectoryRegressor(penalty="scad", **RUN),
    "unpenalised": TrajectoryRegressor(penalty=None, **RUN),
    "classifier": TrajectoryClassifier(penalty="l1", **RUN),
    "logistic": TrajectoryLogisticRegression(**RUN),
    "machine": TrajectoryLinearSVC(**RUN),
    "kernel": KernelEigenProRegressor(random_state=0, **RUN),
    "kernel classifier": KernelEigenProClassifier(random_state=0, **RUN),
}


@pytest.mark.parametrize("name", MODELS)
def test_the_order_of_a_sequence_does_not_matter(name, rng):
    model = MODELS[name]
    X = rng.standard_normal((40, 5))
    y = rng.poisson(np.exp(X[:, 0]))
    if is_classifier(model):
        y = (y > 0).astype(int)
    strength = "C" if "C" in model.get_params() else "alpha"
    values = [0.02, 0.7, 0.7, 0.1]
    runs = []
    for sequence in (values, sorted(values), sorted(values)[::-1]):
        run = clone(model).set_params(**{strength: np.array(sequence)}).fit(X, y)
        runs.append(run)
    path = getattr(runs[0], f"{strength}_path_")
    # A large C is a weak penalty.
    steps = np.diff(path) if strength == "C" else -np.diff(path)
    assert (steps >= 0).all()
    for run in runs[1:]:
        np.testing.assert_array_equal(getattr(run, f"{strength}_path_"), path)
        np.testing.assert_array_equal(run.train_path_, runs[0].train_path_)


def test_an_unpenalised_fit_comes_last(rng):
    """The coefficients at alpha = 0 are those of least squares, listed first or not."""
    X = rng.standard_normal((50, 4))
    y = X[:, 0] + rng.standard_normal(50)
    model = TrajectoryLasso([0.0, 0.3], max_iter=500, tol=1e-12).fit(X, y)
    centred = X - X.mean(axis=0)
    expected = np.linalg.lstsq(centred, y - y.mean(), rcond=None)[0]
    np.testing.assert_allclose(model.coef_, expected, atol=1e-6)


def test_a_run_is_continued_by_a_weaker_penalty_listed_first(rng):
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    both = TrajectoryLasso([0.1, 0.5], max_iter=20, tol=0).fit(X, y)
    model = TrajectoryLasso(0.5, max_iter=20, tol=0, warm_start=True).fit(X, y)
    model.set_params(alpha=[0.1, 0.5]).fit(X, y)
    np.testing.assert_allclose(model.coef_path_, both.coef_path_, atol=1e-12)
