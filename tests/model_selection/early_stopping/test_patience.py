"""Runs in stages that end where nothing improves."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv.optim.design import MatrixDesign
from tests.runs import runs_in_memory


class Asked:
    """A table that counts how often it is converted to an array."""

    def __init__(self, X):
        self.X, self.shape, self.n_times = X, X.shape, 0

    def __len__(self):
        return len(self.X)

    def __array__(self, dtype=None, copy=None):
        self.n_times += 1
        return np.array(self.X, dtype=dtype)


def test_stages_look_at_the_data_once(data, advances):
    """They are validated as often as for a run of one stage."""
    X, y = Asked(data[0]), data[1]
    model = TrajectoryLasso("path", max_iter=20)
    TrajectoryEarlyStoppingCV(model, criterion="cv", patience=20).fit(X, y)
    n_times, n_stages = X.n_times, len(advances)
    assert n_stages > 2
    TrajectoryEarlyStoppingCV(model, criterion="cv", patience=None).fit(X, y)
    assert len(advances) == n_stages + 1
    assert X.n_times == 2 * n_times


@pytest.mark.parametrize("criterion", ["risk", "loo", "cv", "r2"])
def test_patience_ends_the_run_early_at_the_same_iterate(criterion, data):
    X, y = data
    inner = IterativeRidge(0.0, max_iter=2000, tol=0, solver="nesterov")
    patient = TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=20)
    patient.fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner, criterion=criterion).fit(X, y)
    n_iter = patient.estimator_.n_iter_
    assert n_iter - patient.best_iter_ >= 20
    assert n_iter < 200
    np.testing.assert_allclose(patient.path_, whole.path_[: n_iter + 1], rtol=1e-6)
    assert patient.best_iter_ == whole.best_iter_
    assert patient.estimator_.max_iter == 2000
    assert not patient.estimator_.warm_start


def test_stages_double(data, note_calls, advances):
    X, y = data
    columns = note_calls(MatrixDesign, "dot", size=lambda _, coef: coef.shape[1])
    inner = IterativeRidge(0.0, max_iter=100_000, tol=0)
    model = TrajectoryEarlyStoppingCV(inner, criterion="risk", patience=5).fit(X, y)
    planned = [each.last for each in advances]
    assert planned == [5 * 2**k for k in range(len(planned))]
    assert model.estimator_.n_iter_ == planned[-1]
    best = model.best_iter_
    assert planned[-2] < best + 5 <= planned[-1] or len(planned) == 1
    # The updates themselves are made once; a stage reads all residuals anew.
    assert sum(columns) <= 4 * planned[-1] + 10


@pytest.mark.parametrize("cls", [IterativeRidge, TrajectoryLasso])
def test_patience_along_a_path_of_alphas(cls, data, rng):
    X, y = data
    # So much noise that the best comes early on the path, and one of the stages, which
    # double (20, 40, 80, 160), is the last before the path ends.
    y = y + 2 * rng.standard_normal(len(y))
    inner = cls("path", max_iter=20)
    patient = TrajectoryEarlyStoppingCV(inner, criterion="loo", patience=20).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner, criterion="loo", patience=None).fit(X, y)
    n_iter = patient.estimator_.n_iter_
    assert n_iter < whole.estimator_.n_iter_
    np.testing.assert_allclose(patient.path_, whole.path_[: n_iter + 1], rtol=1e-6)
    assert patient.best_params_["alpha"] == pytest.approx(
        patient.estimator_.alpha_path_[patient.best_iter_]
    )


@pytest.mark.parametrize(
    "inner",
    [
        TrajectoryLasso("path", max_iter=20, tol=0),  # of thirty values, five
        TrajectoryLogisticRegression("path", max_iter=50, tol=0),  # of ten, two
    ],
)
def test_a_path_ends_by_itself_where_nothing_improves(inner, data):
    """After a sixth of the values, to the update; what came before is the whole run."""
    X, y = data
    y = y > np.median(y) if is_classifier(inner) else y
    patient = TrajectoryEarlyStoppingCV(inner, criterion="cv").fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner, criterion="cv", patience=None).fit(X, y)
    assert whole.estimator_.n_iter_ > 450  # values at which nothing moves end early
    n_iter = patient.estimator_.n_iter_
    assert patient.best_iter_ + 100 <= n_iter < 1.25 * (patient.best_iter_ + 100) < 600
    np.testing.assert_allclose(patient.path_, whole.path_[: n_iter + 1], rtol=1e-10)
    assert patient.best_iter_ == whole.best_iter_
    del whole
    assert not runs_in_memory()


# Values at which every update moves something: else rounding says when one ends.
@pytest.mark.parametrize("values", [[0.5, 0.1, 0.02], 0.1])
def test_runs_whose_length_a_user_has_chosen_go_on_to_their_end(values, data):
    inner = TrajectoryLasso(values, max_iter=100, tol=0)
    model = TrajectoryEarlyStoppingCV(inner).fit(*data)
    assert model.estimator_.n_iter_ == clone(inner).fit(*data).n_iter_


def test_patience_longer_than_the_run(data):
    X, y = data
    inner = TrajectoryLasso([0.5, 0.1], max_iter=7, tol=0)
    patient = TrajectoryEarlyStoppingCV(inner, patience=1000).fit(X, y)
    whole = TrajectoryEarlyStoppingCV(inner).fit(X, y)
    np.testing.assert_array_equal(patient.path_, whole.path_)


def test_patience_with_values_of_alpha_that_converge_at_once(data):
    """A stage that adds no iterate does not end the run."""
    X, y = data
    inner = TrajectoryLasso([1e3] * 20 + [0.1], max_iter=20)
    model = TrajectoryEarlyStoppingCV(inner, criterion="loo", patience=25).fit(X, y)
    assert model.best_params_["alpha"] == 0.1
