"""What every model with a recorded trajectory can do, linear or of a kernel."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    SelfStoppingRegressor,
    TrajectoryElasticNet,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
)
from skacv.model_selection import RecordsTrajectory

pytestmark = pytest.mark.usefixtures("few_trees")

SQUARED = [TrajectoryLasso(0.1), TrajectoryElasticNet(0.1), IterativeRidge(0.1)]
OTHERS = [
    TrajectoryLogisticRegression(),
    TrajectoryLinearSVC(),
    TrajectoryHuberRegressor(),
    TrajectoryPoissonRegressor(),
    TrajectoryQuantileRegressor(),
    KernelEigenProRegressor(),
    KernelEigenProClassifier(),
]


def name(model):
    return type(model).__name__


def drawn(model, rng):
    """Rows, and a target that the model takes."""
    X = rng.standard_normal((60, 4))
    y = rng.poisson(np.exp(X[:, 0] / 2)).astype(float)
    return X, np.array(["no", "yes"])[(y > 0).astype(int)] if is_classifier(
        model
    ) else y


@pytest.fixture(params=SQUARED + OTHERS, ids=name)
def fitted(request, rng):
    """A model, its rows and its target."""
    model = clone(request.param).set_params(max_iter=8)
    X, y = drawn(model, rng)
    return model.fit(X, y), X, y


@pytest.mark.parametrize("model", [*SQUARED, *OTHERS], ids=name)
def test_models_record_their_trajectory(model):
    assert isinstance(model, RecordsTrajectory)


def test_staged_loss_with_weights_is_that_of_repeated_rows(fitted, rng):
    model, X, y = fitted
    n_times = rng.integers(0, 4, len(y))
    found = model.staged_loss(X, y, sample_weight=n_times)
    expected = model.staged_loss(np.repeat(X, n_times, 0), np.repeat(y, n_times))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert len(found) == len(model.recorded_iterations())


@pytest.mark.parametrize(
    ("rows", "weights", "message"),
    [
        (np.arange(9), None, "inconsistent numbers of samples"),
        (np.arange(60), np.ones(9), "inconsistent numbers of samples"),
        (np.arange(60), -np.ones(60), "[Nn]egative"),
        (np.arange(60), np.zeros(60), "zero"),
    ],
)
def test_staged_loss_refuses_what_does_not_agree(rows, weights, message, fitted):
    model, X, y = fitted
    with pytest.raises(ValueError, match=message):
        model.staged_loss(X, y[rows], sample_weight=weights)


@pytest.mark.parametrize("model", [TrajectoryLasso(), IterativeRidge()], ids=name)
def test_staged_loss_refuses_other_outputs_and_what_is_no_number(model, rng):
    X, y = drawn(model, rng)
    model = clone(model).fit(X, y)
    with pytest.raises(ValueError, match=r"y has 2 outputs, but .* fitted with 1"):
        model.staged_loss(X, np.stack([y, y], axis=1))
    with pytest.raises(ValueError, match="y contains NaN"):
        model.staged_loss(X, np.full(60, np.nan))


@pytest.mark.filterwarnings("error")
def test_staged_loss_takes_frames(rng):
    X, y = drawn(TrajectoryLasso(), rng)
    X = pd.DataFrame(X, columns=list("abcd"))
    model = TrajectoryLasso(0.1).fit(X, y)
    found = model.staged_loss(X, pd.Series(y))
    np.testing.assert_allclose(found, model.train_path_)


def test_one_array_for_each_recorded_iteration(fitted):
    model, X, _ = fitted
    if "store_every" in model.get_params():
        model = clone(model).set_params(store_every=3).fit(X, fitted[2])
    n_recorded = len(model.recorded_iterations())
    for method in ("predict", "decision_function"):
        staged = getattr(model, f"staged_{method}", None)
        assert staged is None or sum(1 for _ in staged(X)) == n_recorded


@pytest.mark.parametrize("t", [1.7, 1.0, "1", None, np.array([1, 2])])
def test_an_iteration_is_an_integer(t, fitted):
    with pytest.raises(TypeError, match="t must be an integer, got"):
        fitted[0].at_iteration(t)


def test_an_iteration_may_be_an_integer_of_numpy(fitted):
    model, _, _ = fitted
    assert model.at_iteration(np.int32(2)).iteration_ == 2


@pytest.mark.parametrize("model", OTHERS, ids=name)
def test_only_models_with_a_memory_matrix_have_its_attributes(model):
    assert "risk_gram_" not in dir(type(model))


@pytest.mark.parametrize("model", SQUARED, ids=name)
def test_gram_matrix_is_that_of_the_residuals(model, rng):
    X, y = drawn(model, rng)
    weights = rng.uniform(0.5, 2, 60)
    model = clone(model).fit(X, y, sample_weight=weights)
    E = np.matmul(*model.risk_residual_path_)
    gram = (E * weights) @ E.T / weights.sum()
    np.testing.assert_allclose(model.risk_gram_, gram, rtol=1e-6)
    assert (np.diag(gram) <= model.risk_path_ * (1 + 1e-9)).all()
    without = clone(model).set_params(risk=False).fit(X, y)
    assert not hasattr(without, "risk_gram_")


@pytest.mark.parametrize("model", SQUARED, ids=name)
def test_residuals_are_targets_less_predictions(model, rng):
    X, y = drawn(model, rng)
    model = clone(model).set_params(loo=True).fit(X, y).at_iteration(5)
    held_out = y - model.loo_prediction_path_[5]
    np.testing.assert_array_equal(model.record_["loo"].residuals(5), held_out)
    estimated = np.matmul(*model.risk_residual_path_)[5]
    np.testing.assert_allclose(model.record_["risk"].residuals(5), estimated)
    assert np.corrcoef(held_out, estimated)[0, 1] > 0.9


@pytest.mark.parametrize("model", [*SQUARED, *OTHERS], ids=name)
def test_nothing_is_recorded_before_a_fit(model, rng):
    X, _ = drawn(model, rng)
    for ask in (
        lambda: model.recorded_iterations(),
        lambda: model.at_iteration(0),
        lambda: next(model.staged_predict(X)),
        lambda: model.staged_loss(X, X[:, 0]),
    ):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize(
    ("name", "setting"), [("loo_path_", "loo=True"), ("cv_se_path_", "cv=5")]
)
def test_what_was_not_computed_says_how_to_get_it(name, setting, rng):
    model = IterativeRidge(loo=False, risk=False)
    assert setting not in str(error_of(model, name))
    X, y = drawn(model, rng)
    assert str(error_of(model.fit(X, y), name)).endswith(f"fit it with {setting}.")
    assert "fit it" not in str(error_of(model, "fooo"))


def error_of(model, name):
    with pytest.raises(AttributeError) as found:
        getattr(model, name)
    return found.value


@pytest.mark.parametrize("model", [IterativeRidge(), SelfStoppingRegressor()])
def test_missing_targets_among_objects_are_found(model, rng):
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60).astype(object)
    y[3] = None
    with pytest.raises(ValueError, match="y contains NaN"):
        model.fit(X, y)
