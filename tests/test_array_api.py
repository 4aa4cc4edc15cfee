"""Arrays of other libraries: designs on a device, and estimators that take them."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import scipy
from sklearn import clone, config_context
from sklearn.utils.fixes import parse_version

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
    TrajectoryClassifier,
    TrajectoryEarlyStoppingCV,
    TrajectoryElasticNet,
    TrajectoryGroupLasso,
    TrajectoryHuberRegressor,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
    TrajectoryPoissonRegressor,
    TrajectoryQuantileRegressor,
    TrajectoryRegressor,
    TrajectoryTweedieRegressor,
)
from skacv.kernel import eigenpro
from skacv.kernel.kernels import Gaussian
from skacv.optim import arrays
from skacv.optim.arrays import DeviceDesign, design_of
from skacv.optim.kernel_matrix import KernelMatrix
from skacv.optim.losses import Logistic, SquaredError
from skacv.optim.penalties import L1, SquaredL2
from skacv.optim.problem import Problem
from skacv.optim.run import run
from skacv.optim.schedules import Nesterov, StochasticGradient
from skacv.optim.trajectory import Phase
from skacv.risk.held_out_rows import UNCENTRED
from skacv.risk.memory.memory_matrix import estimate_risk
from tests.curved_runs import paths_of_folds, read_any_loss
from tests.internals import convert_to_numpy, default_members
from tests.runs import fitted_attributes, stopped_at

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is missing")
pytest.importorskip("array_api_compat", reason="array-api-compat is missing")


@pytest.mark.parametrize("shape", [(60, 20), (30, 80)])
@pytest.mark.parametrize("penalty", [L1(0.05), SquaredL2(0.1)], ids=repr)
@pytest.mark.parametrize("loss", [SquaredError(), Logistic()], ids=repr)
def test_runs_and_estimates_are_those_of_numpy(loss, penalty, shape, rng):
    X = rng.standard_normal(shape)
    y = (X[:, :1] + rng.standard_normal((shape[0], 1)) > 0).astype(float)
    weights = np.full((shape[0], 1), 1 / shape[0])
    found = []
    for array in (X, strict.asarray(X)):
        design = design_of(array).centered(weights)
        problem = Problem(design, y, weights, loss)
        step = 1 / problem.smoothness
        plan = [Phase(penalty, Nesterov(step), 30)]
        own = run(problem, plan, np.zeros((1, shape[1], 1)))
        batches = StochasticGradient(0.2 * step, 0.0, shape[0], 10, 0)
        passes = run(problem, [Phase(penalty, batches, 3)], own.coef[:1])
        folds = [(np.arange(10, shape[0]), np.arange(10))]
        held_out = paths_of_folds(problem, own, folds, UNCENTRED)[0]
        risks = [
            read_any_loss(problem, each, 10, rng=np.random.default_rng(0)).path
            for each in (own, passes)
        ]
        if loss.is_quadratic:
            risks.append(estimate_risk(problem, own, method="exact").path)
        found.append([own.coef, passes.coef, held_out, *risks])
    assert type(design) is DeviceDesign
    for expected, same in zip(*found):
        np.testing.assert_allclose(same, expected, rtol=1e-6, atol=1e-9)


def test_products_with_fewer_digits_are_refused(rng, set_globals):
    """As TF32 rounds factors: ten bits."""
    plain = arrays.to_numpy

    def rounded(array):
        found = plain(array)
        return found if found.shape[0] != found.shape[1] else found * (1 + 2.0**-11)

    X = strict.asarray(rng.standard_normal((30, 20)).astype(np.float32))
    assert type(design_of(X)) is DeviceDesign
    set_globals(to_numpy=rounded)
    with pytest.raises(ValueError, match="fewer digits"):
        design_of(X)


TAKES_ARRAYS = """
import array_api_strict as xp, numpy as np, sklearn, warnings
from skacv import *
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5))
y, c = X[:, 0] + rng.standard_normal(60), (X[:, 0] > 0).astype(int)
models = [
    (TrajectoryLasso(0.1), y), (TrajectoryLogisticRegression(max_iter=20), c),
    (KernelEigenProRegressor(max_iter=20, random_state=0), y),
    (TrajectoryEarlyStoppingCV(TrajectoryLasso("path")), y),
]
with sklearn.config_context(array_api_dispatch=True):
    for model, target in models:
        expected = model.fit(X, target).predict(X)
        found = model.fit(xp.asarray(X), xp.asarray(target)).predict(xp.asarray(X))
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)
"""


@pytest.mark.slow
@pytest.mark.skipif(
    parse_version(scipy.__version__) < parse_version("1.14"),
    reason="scikit-learn dispatches on arrays with SciPy 1.14 or newer only",
)
def test_estimators_convert_what_scikit_learn_dispatches_on():
    """In a process of its own: SciPy asks for a variable before it is imported."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    subprocess.run(
        [sys.executable, "-c", TAKES_ARRAYS], check=True, env=environment, timeout=300
    )


# Where scikit-learn dispatches on arrays: make test-extras.
dispatched = pytest.mark.skipif(
    os.environ.get("SCIPY_ARRAY_API") != "1",
    reason="scikit-learn dispatches on arrays with SCIPY_ARRAY_API=1 only",
)


@pytest.fixture(params=["strict", "torch"])
def away(request):
    """From NumPy to arrays of another namespace, while scikit-learn dispatches."""
    with config_context(array_api_dispatch=True):
        if request.param == "torch":
            yield pytest.importorskip("torch", reason="torch is missing").asarray
        else:
            yield lambda array: strict.asarray(array, device=strict.Device("device1"))


def data(shape, rng):
    """Columns, and a target, counts, two and three classes, and weights."""
    X = rng.standard_normal(shape)
    y = 2 * X[:, 0] + rng.standard_normal(shape[0])
    targets = {
        "y": y,
        "count": rng.poisson(np.exp(np.clip(0.3 * y, -2, 2))),
        "two": (y > 0).astype(int),
        "three": np.digitize(y, [-1, 1]),
    }
    weights = rng.random(shape[0]) + 0.1
    weights[0] = 0
    return X, targets, weights


LINEAR = [
    (TrajectoryLasso("path", max_iter=20, cv=3), "y"),
    (TrajectoryLasso(0.1, loo=True), "y"),
    (TrajectoryElasticNet(0.1, cv=3), "y"),
    (TrajectoryGroupLasso(groups=2, alpha=0.1, max_iter=30), "y"),
    (IterativeRidge(0.1, loo=True, cv=3), "y"),
    (IterativeRidge(0.1, solver="eigenpro", n_components=2, batch_size=8), "y"),
    (TrajectoryHuberRegressor(max_iter=30, cv=3), "y"),
    (TrajectoryPoissonRegressor(max_iter=30), "count"),
    (TrajectoryPoissonRegressor(max_iter=5, solver="newton"), "count"),
    (TrajectoryTweedieRegressor(max_iter=30), "count"),
    (TrajectoryQuantileRegressor(max_iter=30), "y"),
    (TrajectoryLogisticRegression(max_iter=20, cv=3), "two"),
    (TrajectoryLogisticRegression(max_iter=5, solver="sgd"), "three"),
    (TrajectoryLinearSVC(max_iter=20), "two"),
    (TrajectoryRegressor(0.1, penalty="mcp", max_iter=20), "y"),
    (TrajectoryClassifier(max_iter=20), "three"),
]
# Of each kind of estimate one with folds.
KINDS = TrajectoryLasso, IterativeRidge, TrajectoryLogisticRegression
IN_SINGLE = [case for case in LINEAR if type(case[0]) in KINDS and case[0].cv]


@pytest.mark.filterwarnings("ignore:The rows of X have very uneven norms")
@dispatched
@pytest.mark.parametrize("shape", [(60, 8), (40, 90)], ids=str)
@pytest.mark.parametrize(("model", "name"), LINEAR, ids=lambda part: str(part)[:60])
def test_linear_models_are_those_of_numpy(model, name, shape, away, rng):
    X, targets, weights = data(shape, rng)
    model, y = clone(model).set_params(random_state=0), targets[name]
    expected = clone(model).fit(X, y, weights)
    found = clone(model).fit(away(X), away(y), away(weights))
    assert_same_record(found, expected, 1e-10)
    assert_same_methods(found, expected, X, away, 1e-10)


@dispatched
@pytest.mark.parametrize("model", IN_SINGLE, ids=str)
def test_single_precision_stays_single_and_close(model, away, rng):
    model, name = model
    X, targets, _ = data((300, 40), rng)
    X, y = X.astype(np.float32), targets[name]
    y = y.astype(np.float32) if name == "y" else y
    # A default tol is a few roundings: where a phase ends would be theirs to say.
    model = clone(model).set_params(random_state=0, tol=0, max_iter=20)
    expected = clone(model).fit(X, y)
    found = clone(model).fit(away(X), away(y))
    assert convert_to_numpy(found).coef_.dtype == np.float32
    for attribute in ("coef_path_", "train_path_", "risk_path_", "cv_path_"):
        same, numbers = (
            getattr(convert_to_numpy(each), attribute) for each in (found, expected)
        )
        np.testing.assert_allclose(same, numbers, atol=2e-5 * np.abs(numbers).max())
    assert_same_methods(found, expected, X, away, 2e-5)


@dispatched
@pytest.mark.parametrize("budget", [1000, 0.1])
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KernelEigenProRegressor(max_iter=30, cv=3), "y"),
        (KernelEigenProRegressor(gamma=0.1, solver="eigenpro"), "y"),
        (KernelEigenProRegressor("laplacian", gamma=0.3, batch_size=30), "y"),
        (KernelEigenProRegressor("cauchy", gamma=0.3, fit_intercept=False), "y"),
        (KernelEigenProRegressor("polynomial", gamma=0.1, max_iter=20), "y"),
        (KernelEigenProClassifier(gamma=0.1, cv=3), "three"),
        (KernelEigenProClassifier(gamma=0.1, loss="log", batch_size=40), "two"),
    ],
    ids=lambda part: str(part)[:60],
)
def test_kernel_machines_are_those_of_numpy(model, name, budget, away, rng):
    X, targets, weights = data((150, 4), rng)
    model = clone(model).set_params(random_state=0, memory_budget=budget)
    expected = clone(model).fit(X, targets[name], weights)
    found = clone(model).fit(away(X), away(targets[name]), away(weights))
    # Paths of few rows at the end of a run: what is left of differences.
    assert_same_record(found, expected, 1e-8)
    assert_same_methods(found, expected, X, away, 1e-8)


def assert_same_record(found, expected, tolerance, but=()):
    """All fitted arrays of numbers, where X is, and what they are in NumPy."""
    here = convert_to_numpy(found)
    for name in fitted_attributes(expected):
        numbers = getattr(expected, name)
        if name in but or not isinstance(numbers, np.ndarray):
            continue
        assert not isinstance(getattr(found, name), np.ndarray), name
        same = getattr(here, name)
        if name == "X_fit_":
            continue
        assert (same.dtype, same.shape) == (numbers.dtype, numbers.shape), name
        # Which modes the memory matrix keeps depends on rounding: those that it may
        # drop have such a share. As much comes of another order of the columns.
        share = 1e-6 if name.startswith("risk_") else tolerance
        size = np.abs(numbers).max(initial=0)
        np.testing.assert_allclose(
            same, numbers, rtol=0, atol=share * size, err_msg=name
        )


def assert_same_methods(found, expected, X, away, tolerance):
    """Predictions, where X is, of the iterate in use, of another one, and of all."""
    for name in ("predict", "decision_function", "predict_proba"):
        if not hasattr(expected, name):
            continue
        pairs = [
            (getattr(found, name)(away(X)), getattr(expected, name)(X)),
            (
                getattr(found.at_iteration(2), name)(away(X)),
                getattr(expected.at_iteration(2), name)(X),
            ),
        ]
        for same, numbers in pairs:
            assert type(same) is type(away(X))
            size = max(1, np.abs(numbers).max())
            np.testing.assert_allclose(
                arrays.to_numpy(same), numbers, rtol=0, atol=tolerance * size
            )
    staged = list(found.staged_predict(away(X)))
    assert len(staged) == len(found.recorded_iterations())
    assert all(type(each) is type(away(X)) for each in staged)


@dispatched
def test_X_does_not_leave_its_device(away, rng, set_globals):
    X, targets, _ = data((200, 2000), rng)
    sizes, plain = [], arrays.to_numpy

    def counted(array):
        sizes.append(np.prod(array.shape))
        return plain(array)

    set_globals(to_numpy=counted)
    model = TrajectoryLasso(0.1, max_iter=20, loo=False, random_state=0)
    model.fit(away(X), away(targets["y"])).predict(away(X))
    assert 0 < max(sizes) < X.size / 2


@dispatched
def test_y_and_weights_follow_X(away, rng):
    """They may be of another namespace; classes stay in that of y."""
    X, targets, weights = data((60, 5), rng)
    model = TrajectoryLogisticRegression(max_iter=10, random_state=0)
    expected = clone(model).fit(X, targets["two"], weights)
    found = clone(model).fit(away(X), targets["two"], strict.asarray(weights))
    assert_same_record(found, expected, 1e-10, but=["classes_"])
    assert isinstance(found.classes_, np.ndarray)
    labels = np.array(["no", "yes"])[targets["two"]]
    named = clone(model).fit(away(X), labels)
    assert set(named.predict(away(X))) == {"no", "yes"}
    own = clone(model).fit(away(X), away(targets["two"]))
    assert type(own.predict(away(X))) is type(own.classes_) is type(away(X))
    score = own.score(away(X), away(targets["two"]))
    assert score == pytest.approx(
        clone(model).fit(X, targets["two"]).score(X, targets["two"]), abs=1e-6
    )


@dispatched
@pytest.mark.parametrize(
    "model", [TrajectoryLasso(), KernelEigenProRegressor(gamma=0.1)], ids=repr
)
def test_another_namespace_than_that_of_fit_is_refused(model, away, rng):
    X, targets, _ = data((60, 5), rng)
    one = clone(model).fit(away(X), away(targets["y"]))
    other = clone(model).fit(X, targets["y"])
    for fitted, rows in ((one, X), (other, away(X))):
        with pytest.raises(
            ValueError, match=r"predict\(\) must use the same namespace"
        ):
            fitted.predict(rows)


@dispatched
def test_what_else_a_fitted_model_does(away, rng):
    X, targets, _ = data((60, 5), rng)
    y = targets["y"]
    model = TrajectoryLasso("path", keep_data=True, loo=True, random_state=0)
    expected = clone(model).fit(X, y)
    found = clone(model).fit(away(X), away(y))
    asked = [
        (found.predict_interval(away(X[:3])), expected.predict_interval(X[:3])),
        (found.staged_loss(away(X), away(y)), expected.staged_loss(X, y)),
        (
            found.predict_mean_interval(away(X[:3])),
            expected.predict_mean_interval(X[:3]),
        ),
        (found.coef_interval([0]), expected.coef_interval([0])),
    ]
    for same, numbers in asked:
        assert type(same) is type(away(X))
        np.testing.assert_allclose(arrays.to_numpy(same), numbers, rtol=1e-6)
    chosen, alone = (
        stopped_at(3, clone(model), rows, target)
        for rows, target in ((away(X), away(y)), (X, y))
    )
    assert chosen.best_params_ == pytest.approx(alone.best_params_, rel=1e-12)
    for each, rows, target in ((found, away(X), away(y)), (expected, X, y)):
        each.set_params(warm_start=True, max_iter=300).fit(rows, target)
    assert found.n_iter_ == expected.n_iter_
    assert_same_record(found, expected, 1e-10)


@dispatched
def test_pickled_and_moved(away, rng):
    moving = pytest.importorskip("sklearn.utils._array_api")
    if not hasattr(moving, "move_estimator_to"):
        pytest.skip("scikit-learn cannot move estimators yet")
    X, targets, _ = data((60, 5), rng)
    for model in (
        TrajectoryLasso("path", keep_data=True, max_iter=20),
        KernelEigenProRegressor(gamma=0.1, random_state=0),
    ):
        expected = clone(model).fit(X, targets["y"])
        numbers = expected.predict(X)
        namespace, _, place = moving.get_namespace_and_device(away(X))
        moved = moving.move_estimator_to(expected, namespace, place)
        found = [moved.predict(away(X)), moved.at_iteration(-1).predict(away(X))]
        np.testing.assert_allclose(arrays.to_numpy(found[0]), numbers, rtol=1e-8)
        fitted = clone(model).fit(away(X), away(targets["y"]))
        if hasattr(fitted, "risk_gram_"):  # as a worker process returns it
            view = pickle.loads(pickle.dumps(convert_to_numpy(fitted)))
            np.testing.assert_allclose(view.risk_gram_, expected.risk_gram_, rtol=1e-6)
        back = moving.move_estimator_to(fitted, np, "cpu")
        np.testing.assert_allclose(back.predict(X), numbers, rtol=1e-8)
        if type(away(X)).__module__ == "torch":  # others cannot be pickled
            again = pickle.loads(pickle.dumps(fitted)).predict(away(X))
            np.testing.assert_allclose(arrays.to_numpy(again), numbers, rtol=1e-8)


def without_trees(task):
    """The default members that take arrays of other libraries, blended."""
    members = [pair for pair in default_members(task).items() if "trees" not in pair[0]]
    return TrajectoryEarlyStoppingCV(members, rule="blend", random_state=0)


@dispatched
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (TrajectoryEarlyStoppingCV(TrajectoryLasso("path")), "y"),
        (
            TrajectoryEarlyStoppingCV(
                TrajectoryLogisticRegression(), criterion="accuracy"
            ),
            "two",
        ),
        (
            TrajectoryEarlyStoppingCV(
                KernelEigenProRegressor(random_state=0),
                param_grid={"gamma": [0.1, 1.0]},
            ),
            "y",
        ),
        (without_trees("regression"), "y"),
        (without_trees("classification"), "two"),
    ],
    ids=lambda part: str(part)[:60],
)
def test_the_chosen_iterate_follows_X(model, name, away, rng):
    X, targets, _ = data((80, 5), rng)
    expected = clone(model).fit(X, targets[name])
    found = clone(model).fit(away(X), away(targets[name]))
    assert found.best_iter_ == expected.best_iter_
    assert found.best_member_ == expected.best_member_
    assert found.best_score_ == pytest.approx(expected.best_score_, rel=1e-6)
    same = found.predict(away(X))
    assert type(same) is type(away(X))
    np.testing.assert_allclose(
        arrays.to_numpy(same), expected.predict(X), rtol=1e-8, atol=1e-9
    )


@dispatched
@pytest.mark.parametrize(
    ("model", "name"),
    [
        (RecursiveFeatureMachineRegressor(random_state=0), "y"),
        (RecursiveFeatureMachineClassifier(random_state=0), "two"),
        (RecursiveFeatureMachineClassifier(random_state=0), "three"),
    ],
    ids=str,
)
def test_predictions_of_feature_machines_follow_X(model, name, away, rng):
    X, targets, _ = data((60, 5), rng)
    expected = clone(model).fit(X, targets[name])
    found = clone(model).fit(away(X), away(targets[name]))
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            same = getattr(found, method)(away(X))
            assert type(same) is type(away(X))
            np.testing.assert_allclose(
                arrays.to_numpy(same), getattr(expected, method)(X), rtol=1e-10
            )


@dispatched
def test_kernels_that_are_of_numpy_have_X_converted(away, rng):
    X, targets, _ = data((60, 3), rng)

    def linear(X, Z):
        return np.asarray(X) @ np.asarray(Z).T

    model = KernelEigenProRegressor(linear, random_state=0)
    expected = clone(model).fit(X, targets["y"]).predict(X)
    found = clone(model).fit(away(X), away(targets["y"])).predict(away(X))
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    pairs = X @ X.T
    model = KernelEigenProRegressor("precomputed", random_state=0)
    expected = clone(model).fit(pairs, targets["y"]).predict(pairs)
    found = clone(model).fit(away(pairs), away(targets["y"])).predict(away(pairs))
    np.testing.assert_allclose(found, expected, rtol=1e-10)


@dispatched
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_arrays_that_are_not_written_to(rng):
    """JAX: linear models take them, a kernel matrix cannot be filled in."""
    jnp = pytest.importorskip("jax.numpy", reason="jax is missing")
    X, targets, _ = data((60, 3), rng)
    X, y = X.astype(np.float32), targets["y"].astype(np.float32)
    with config_context(array_api_dispatch=True):
        expected = TrajectoryLasso(0.1).fit(X, y).predict(X)
        model = TrajectoryLasso(0.1).fit(jnp.asarray(X), jnp.asarray(y))
        found = model.predict(jnp.asarray(X))
        np.testing.assert_allclose(np.asarray(found), expected, atol=2e-5)
        with pytest.raises(ValueError, match="NumPy, PyTorch or CuPy"):
            KernelEigenProRegressor(gamma=1.0).fit(jnp.asarray(X), jnp.asarray(y))


def test_batches_have_room_on_their_device(rng, set_globals):
    X = rng.standard_normal((400, 3))
    matrix = KernelMatrix(Gaussian(0.1), X, np.float32, budget=0)
    assert eigenpro.rows_that_fit(matrix) == 400
    set_globals(free_bytes=lambda array: 64_000)
    assert eigenpro.rows_that_fit(matrix) == 10
    kept = KernelMatrix(Gaussian(0.1), X, np.float32, budget=np.inf)
    assert eigenpro.rows_that_fit(kept) == 400
    solver = eigenpro.KernelSolver(
        None, "eigenpro", "auto", "auto", "auto", 1e9, n_centers=None
    )
    assert solver.batch(4000, 300.0, 10) == 10
    assert solver.batch(4000, 300.0, 4000) == 300


@pytest.mark.parametrize("shape", [(60, 20), (30, 80)])
def test_sums_over_single_precision_are_in_double(shape, rng):
    """As those of the same values, also where means are far above the spread."""
    X = (rng.standard_normal(shape) + 1000).astype(np.float32)
    weights = np.full((shape[0], 1), 1 / shape[0])
    coef, slopes = (
        rng.standard_normal((shape[1], 2)),
        rng.standard_normal((shape[0], 2)),
    )
    found = []
    for values in (strict.asarray(X), X.astype(np.float64)):
        design = design_of(values).centered(weights)
        parts = [design.dot(coef), design.t_dot(slopes), design.smaller_gram()]
        parts += [design.weighted_gram(slopes[:, :1]), design.squared_row_norms()]
        found.append([*parts, design.spectrum()])
    for same, expected in zip(*found):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(same, expected, rtol=0, atol=1e-10 * scale)


@dispatched
@pytest.mark.parametrize("name", ["lasso", "kernel", "logistic"])
def test_without_their_record_models_stay_where_X_is(name, rng):
    X = rng.standard_normal((40, 5))
    y = X[:, 0] + rng.standard_normal(40)
    model = {
        "lasso": TrajectoryLasso(0.1, cv=3, loo=True, max_iter=10),
        "kernel": KernelEigenProRegressor(gamma=0.1, random_state=0),
        "logistic": TrajectoryLogisticRegression(cv=3, max_iter=10),
    }[name]
    y = (y > 0).astype(int) if name == "logistic" else y
    here, there = clone(model).fit(X, y), strict.asarray(X)
    with config_context(array_api_dispatch=True):
        model.fit(there, strict.asarray(y))
        expected = model.predict(there)
        model = model.drop_record()
        found = model.predict(there)
        assert type(found) is type(expected)
        np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))
        if name != "logistic":
            found = np.asarray(model.predict_interval(there, method="loo"))
            expected = here.predict_interval(X, method="loo")
            np.testing.assert_allclose(found, expected, rtol=1e-8)
