"""The estimators: same models as scikit-learn's, the paths, and what may go wrong."""

import pickle
import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import ElasticNet, Lasso, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skacv import IterativeRidge, TrajectoryElasticNet, TrajectoryLasso
from skacv.optim.design import MatrixDesign
from tests.callbacks import StopAtFive, needs_callbacks
from tests.cases import covering
from tests.runs import fitted_attributes

ALL = [TrajectoryLasso, TrajectoryElasticNet, IterativeRidge]
PAIRS = {
    "ista": (TrajectoryLasso(0.05, solver="ista"), Lasso(0.05)),
    "fista": (TrajectoryLasso(0.05), Lasso(0.05)),
    "elastic_net_ista": (
        TrajectoryElasticNet(0.1, l1_ratio=0.7, solver="ista"),
        ElasticNet(0.1, l1_ratio=0.7),
    ),
    "elastic_net_fista": (
        TrajectoryElasticNet(0.1, l1_ratio=0.7),
        ElasticNet(0.1, l1_ratio=0.7),
    ),
    "gd": (IterativeRidge(2.0), Ridge(2.0)),
    "nesterov": (IterativeRidge(2.0, solver="nesterov"), Ridge(2.0)),
    "heavy_ball": (IterativeRidge(2.0, solver="heavy_ball"), Ridge(2.0)),
    "least_squares": (IterativeRidge(0.0), Ridge(0.0)),
}
# What a fit leaves behind that is a path, with one row per iterate.
PATHS = [
    "coef_path_",
    "intercept_path_",
    "objective_path_",
    "train_path_",
    "alpha_path_",
    "risk_path_",
    "risk_se_path_",
    "risk_mc_se_path_",
    "risk_gram_",
]


@pytest.fixture
def data(rng):
    X = rng.standard_normal((60, 8)) + 1.0
    y = X[:, :3] @ [1.0, -2.0, 0.5] + 3.0 + 0.5 * rng.standard_normal(60)
    return X, y


def fitted_state(estimator):
    return {k: v for k, v in vars(estimator).items() if k.endswith("_")}


# ---------------------------------------------------------------- same models


@covering(
    pair=PAIRS,
    kind=["dense", "csr", "csc"],
    weighted=[False, True],
    fit_intercept=[True, False],
)
def test_converges_to_scikit_learn(pair, kind, weighted, fit_intercept, data, rng):
    X, y = data
    X = X * (rng.random(X.shape) < 0.7)
    weights = rng.uniform(0.5, 2, len(y)) if weighted else None
    ours, theirs = (clone(estimator) for estimator in PAIRS[pair])
    ours.set_params(fit_intercept=fit_intercept, max_iter=20_000, tol=1e-13, risk=False)
    theirs.set_params(fit_intercept=fit_intercept, tol=1e-13, max_iter=100_000)
    stored = {"dense": X, "csr": sparse.csr_matrix(X), "csc": sparse.csc_matrix(X)}
    ours.fit(stored[kind], y, sample_weight=weights)
    theirs.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    predicted = ours.predict(stored[kind])
    np.testing.assert_allclose(predicted, theirs.predict(X), atol=1e-6)


def test_several_targets_equal_ridge(data, rng):
    X, y = data
    Y = np.column_stack([y, rng.standard_normal(60)])
    ours = IterativeRidge(2.0, max_iter=20_000, tol=1e-13, risk=False).fit(X, Y)
    theirs = Ridge(2.0).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert ours.predict(X).shape == Y.shape


def test_one_target_in_a_column_keeps_its_column(data):
    X, y = data
    flat, column = IterativeRidge().fit(X, y), IterativeRidge().fit(X, y[:, None])
    assert column.coef_.shape == (1, 8)
    assert column.predict(X).shape == (60, 1)
    np.testing.assert_array_equal(column.coef_path_[:, 0], flat.coef_path_)
    np.testing.assert_array_equal(column.risk_path_, flat.risk_path_)


def test_coef_is_not_a_view_of_the_path(data):
    X, y = data
    model = TrajectoryLasso(0.1).fit(X, y)
    model.coef_ += 1
    assert (model.coef_path_[-1] != model.coef_).all()


@pytest.mark.parametrize("cls", ALL)
def test_weights_are_repetitions(cls, data, rng):
    X, y = data
    counts = rng.integers(0, 4, len(y))
    weighted = cls(0.1, risk=False).fit(X, y, sample_weight=counts)
    repeated = cls(0.1, risk=False).fit(np.repeat(X, counts, 0), np.repeat(y, counts))
    np.testing.assert_allclose(weighted.coef_path_, repeated.coef_path_, atol=1e-9)


@pytest.mark.parametrize("cls", ALL)
def test_rows_of_zero_weight_are_left_out(cls, data):
    X, y = data
    weights = np.r_[np.ones(40), np.zeros(20)]
    with_zeros = cls(0.1).fit(X, y, sample_weight=weights)
    without = cls(0.1).fit(X[:40], y[:40])
    for name in PATHS:
        np.testing.assert_allclose(
            getattr(with_zeros, name), getattr(without, name), atol=1e-9
        )


# ---------------------------------------------------------------------- paths


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cls", ALL)
def test_paths_have_a_row_per_iterate(cls, weighted, fit_intercept, data, rng):
    X, y = data
    weights = rng.uniform(0.5, 2, 60) if weighted else np.ones(60)
    model = cls(0.1, max_iter=30, tol=0, fit_intercept=fit_intercept)
    model.fit(X, y, sample_weight=weights)
    assert model.n_iter_ == model.iteration_ == 30
    assert all(len(getattr(model, name)) == 31 for name in PATHS)
    assert (model.coef_path_[0] == 0).all()
    np.testing.assert_array_equal(model.coef_, model.coef_path_[-1])
    assert model.intercept_ == model.intercept_path_[-1]
    staged = np.array(list(model.staged_predict(X)))
    errors = np.average((y - staged) ** 2, axis=1, weights=weights)
    np.testing.assert_allclose(errors, model.train_path_)
    temporal, spatial = model.risk_residual_path_
    risk = np.average((temporal @ spatial) ** 2, axis=1, weights=weights)
    np.testing.assert_allclose(risk, model.risk_path_, rtol=1e-4)
    np.testing.assert_allclose(np.diag(model.risk_gram_), risk)
    assert (model.risk_path_ > model.train_path_)[1:].all()


def test_risk_of_an_average_of_iterates(rng):
    """risk_gram_ gives the risk of affine combinations of iterates."""
    X = rng.standard_normal((2000, 50))
    beta = rng.standard_normal(50) / 5
    y = X @ beta + rng.standard_normal(2000)
    model = IterativeRidge(0.0, max_iter=20, tol=0, fit_intercept=False).fit(X, y)
    weights = np.ones(21) / 21
    truth = ((weights @ model.coef_path_ - beta) ** 2).sum() + 1
    assert weights @ model.risk_gram_ @ weights == pytest.approx(truth, rel=0.1)


@pytest.mark.parametrize("cls", ALL)
def test_objective_decreases_to_the_optimum(cls, data):
    X, y = data
    model = cls(0.1, max_iter=500, tol=0).fit(X, y)
    assert model.objective_path_[-1] == pytest.approx(model.objective_path_.min())
    mean_square = np.var(y) / 2
    assert model.objective_path_[0] == pytest.approx(mean_square)


def test_automatic_step_size_depends_on_X_alone(data, rng):
    X, y = data
    model = TrajectoryLasso(0.1).fit(X, y)
    other = TrajectoryLasso(0.1).fit(X, rng.standard_normal(60))
    assert model.step_size_ == other.step_size_
    top = np.linalg.norm(X - X.mean(axis=0), 2) ** 2 / 60
    assert model.step_size_ == pytest.approx(1 / top)
    ridge = IterativeRidge(6.0).fit(X, y)
    assert ridge.step_size_ == pytest.approx(1 / (top + 6.0 / 60))


@pytest.mark.parametrize("cls", ALL)
def test_at_iteration_shares_the_paths(cls, data):
    X, y = data
    model = cls(0.1).fit(X, y)
    stopped = model.at_iteration(3)
    staged = list(model.staged_predict(X))
    np.testing.assert_allclose(stopped.predict(X), staged[3])
    assert stopped.iteration_ == 3
    assert stopped.coef_path_ is model.coef_path_
    assert model.iteration_ == model.n_iter_
    np.testing.assert_array_equal(model.at_iteration(-1).coef_, model.coef_)
    assert model.at_iteration(-1).iteration_ == model.n_iter_
    with pytest.raises(ValueError, match="t must be in"):
        model.at_iteration(model.n_iter_ + 1)


@pytest.mark.parametrize("cls", ALL)
def test_a_sequence_of_alphas_is_one_trajectory(cls, data):
    X, y = data
    alphas = [1.0, 0.3, 0.1]
    model = cls(alphas, max_iter=7, tol=0).fit(X, y)
    assert model.n_iter_ == 21
    expected = np.repeat(alphas, 7)
    np.testing.assert_allclose(model.alpha_path_, np.r_[1.0, expected])
    first = cls(1.0, max_iter=7, tol=0, step_size=model.step_size_).fit(X, y)
    np.testing.assert_allclose(model.coef_path_[:8], first.coef_path_)


@pytest.mark.parametrize("cls", ALL)
def test_alpha_path(cls, data):
    X, y = data
    model = cls("path", max_iter=5).fit(X, y)
    values = model.alpha_path_[np.r_[True, np.diff(model.alpha_path_) != 0]]
    assert len(values) == (10 if cls is IterativeRidge else 30)
    assert values[0] == pytest.approx(1e3 * values[-1])
    np.testing.assert_allclose(values[1:] / values[:-1], values[1] / values[0])
    if cls is TrajectoryLasso:
        centered = X - X.mean(axis=0)
        largest = np.abs(centered.T @ (y - y.mean())).max() / 60
        assert values[0] == pytest.approx(largest)
        assert (model.coef_path_[model.alpha_path_ == values[0]] == 0).all()


def test_alpha_path_of_constant_targets(data):
    X, _ = data
    model = TrajectoryLasso("path").fit(X, np.ones(60))
    assert (model.coef_ == 0).all()
    assert model.intercept_ == pytest.approx(1)


# ----------------------------------------------------------------- warm start


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("solver", [0, 1])
def test_warm_start_equals_one_longer_run(cls, solver, data):
    X, y = data
    solvers = ("gd", "nesterov") if cls is IterativeRidge else ("fista", "ista")
    solver = solvers[solver]
    whole = cls(0.1, max_iter=50, solver=solver, tol=0).fit(X, y)
    part = cls(0.1, max_iter=20, solver=solver, tol=0, warm_start=True).fit(X, y)
    part.set_params(max_iter=50).fit(X, y)
    for name in PATHS:
        np.testing.assert_allclose(
            getattr(part, name), getattr(whole, name), rtol=1e-8, atol=1e-10
        )
    assert part.n_iter_ == 50


def test_warm_start_of_several_targets(data, rng):
    X, y = data
    Y = np.column_stack([y, rng.standard_normal(60)])
    whole = IterativeRidge(0.1, max_iter=50, tol=0).fit(X, Y)
    part = IterativeRidge(0.1, max_iter=20, tol=0, warm_start=True).fit(X, Y)
    part.set_params(max_iter=50).fit(X, Y)
    for name in ("coef_path_", "intercept_path_", "risk_path_"):
        np.testing.assert_allclose(getattr(part, name), getattr(whole, name))


def test_warm_start_survives_pickling_and_stopping(data):
    X, y = data
    whole = TrajectoryLasso(0.1, max_iter=50, tol=0).fit(X, y)
    part = TrajectoryLasso(0.1, max_iter=20, tol=0, warm_start=True).fit(X, y)
    part = pickle.loads(pickle.dumps(part.at_iteration(5)))
    part.set_params(max_iter=50).fit(X, y)
    np.testing.assert_allclose(part.coef_path_, whole.coef_path_, atol=1e-12)


def test_warm_start_with_another_alpha_continues_the_trajectory(data):
    X, y = data
    both = TrajectoryLasso([0.5, 0.1], max_iter=20, tol=0).fit(X, y)
    model = TrajectoryLasso(0.5, max_iter=20, tol=0, warm_start=True).fit(X, y)
    model.set_params(alpha=0.1).fit(X, y)
    for name in PATHS:
        np.testing.assert_allclose(
            getattr(model, name), getattr(both, name), rtol=1e-8, atol=1e-10
        )


def test_warm_start_extends_a_sequence_of_alphas(data):
    X, y = data
    both = TrajectoryLasso([0.5, 0.1], max_iter=20, tol=0).fit(X, y)
    model = TrajectoryLasso([0.5], max_iter=20, tol=0, warm_start=True).fit(X, y)
    model.set_params(alpha=[0.5, 0.1]).fit(X, y)
    assert model.n_iter_ == 40
    np.testing.assert_allclose(model.coef_path_, both.coef_path_, atol=1e-12)


def test_warm_start_again_changes_nothing(data):
    X, y = data
    model = TrajectoryLasso(0.1, max_iter=20, warm_start=True).fit(X, y)
    before = model.coef_path_.copy()
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_path_, before, atol=1e-13)


@pytest.mark.parametrize("cls", ALL)
def test_warm_start_after_another_alpha_goes_on_as_after_the_first(cls, data):
    X, y = data
    model = cls(0.5, max_iter=10, tol=0, step_size=0.1, warm_start=True)
    numbers = []
    for params in ({}, {}, {"alpha": 0.1}, {}, {"max_iter": 25}, {}):
        numbers.append(model.set_params(**params).fit(X, y).n_iter_)
    assert numbers == [10, 10, 20, 20, 35, 35]
    longer = cls(0.5, max_iter=10, tol=0, step_size=0.1, warm_start=True).fit(X, y)
    longer.set_params(alpha=0.1, max_iter=25).fit(X, y)
    for name in PATHS:
        np.testing.assert_allclose(
            getattr(model, name), getattr(longer, name), rtol=1e-8, atol=1e-10
        )


def test_warm_start_may_be_switched_on_later(data):
    X, y = data
    whole = TrajectoryLasso(0.1, max_iter=50, tol=0).fit(X, y)
    part = TrajectoryLasso(0.1, max_iter=20, tol=0).fit(X, y)
    part.set_params(max_iter=50, warm_start=True).fit(X, y)
    np.testing.assert_allclose(part.coef_path_, whole.coef_path_, atol=1e-12)


OTHER_DATA = {
    "noise": lambda X, y: (X, y + np.sin(np.arange(60)), None),
    "order_of_y": lambda X, y: (X, y[::-1], None),
    "order_of_columns": lambda X, y: (X[:, ::-1], y, None),
    "weights": lambda X, y: (X, y, np.linspace(0.5, 1.5, 60)),
    "one_entry": lambda X, y: (X + 0.1 * (np.arange(480).reshape(60, 8) == 0), y, None),
}


@pytest.mark.parametrize("case", OTHER_DATA)
def test_warm_start_with_other_data_warns_and_starts_from_coef(case, data):
    X, y = data
    model = TrajectoryLasso(0.1, max_iter=20, tol=0, warm_start=True).fit(X, y)
    kept = model.coef_.copy()
    X, y, weights = OTHER_DATA[case](X, y)
    with pytest.warns(UserWarning, match="other data"):
        model.fit(X, y, sample_weight=weights)
    assert model.n_iter_ == 20
    np.testing.assert_array_equal(model.coef_path_[0], kept)


def test_warm_start_takes_up_a_shift_of_y(data):
    X, y = data
    model = TrajectoryLasso(0.1, max_iter=20, tol=0, warm_start=True).fit(X, y)
    model.set_params(max_iter=50).fit(X, y + 10)
    whole = TrajectoryLasso(0.1, max_iter=50, tol=0).fit(X, y + 10)
    np.testing.assert_allclose(model.coef_path_, whole.coef_path_, atol=1e-10)
    np.testing.assert_allclose(model.intercept_path_, whole.intercept_path_)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda model, X: (model.set_params(max_iter=5), X), "larger max_iter"),
        (lambda model, X: (model, X[:, :4]), "as many features"),
    ],
)
def test_warm_start_refuses_what_it_cannot_continue(change, message, data):
    X, y = data
    model = TrajectoryLasso(0.1, max_iter=20, tol=0, warm_start=True).fit(X, y)
    model, X = change(model, X)
    before = fitted_state(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert fitted_state(model) == before


# ------------------------------------------------------------------ bad input

BAD_DATA = {
    "nan": (lambda X, y: (np.where(X > 2, np.nan, X), y), "NaN"),
    "inf": (lambda X, y: (np.where(X > 2, np.inf, X), y), "infinity"),
    "nan_y": (lambda X, y: (X, np.where(y > 4, np.nan, y)), "NaN"),
    "lengths": (lambda X, y: (X[:-1], y), "inconsistent numbers of samples"),
    "one_dimensional": (lambda X, y: (X[:, 0], y), "Expected 2D array"),
    "one_row": (lambda X, y: (X[:1], y[:1]), "minimum of 2 is required"),
    "no_y": (lambda X, y: (X, None), "requires y to be passed"),
}
BAD_PARAMETERS = {
    "negative_alpha": ({"alpha": -1.0}, "alpha"),
    "negative_in_sequence": ({"alpha": [0.1, -0.1]}, "not negative"),
    "nan_in_sequence": ({"alpha": [0.1, np.nan]}, "finite"),
    "empty_sequence": ({"alpha": []}, "alpha must be"),
    "alpha_text": ({"alpha": "auto"}, "alpha"),
    "solver": ({"solver": "newt"}, "solver"),
    "max_iter": ({"max_iter": 0}, "max_iter"),
    "tol": ({"tol": -1e-3}, "tol"),
    "step_size": ({"step_size": 0.0}, "step_size"),
    "risk": ({"risk": "fast"}, "risk"),
    "one_probe": ({"risk": 0}, "risk"),
    "divergence": ({"step_size": 1e3}, "largest stable step"),
    # Beyond 2 / L, of columns of variance one; not far beyond.
    "divergence_late": ({"step_size": 2.2, "max_iter": 3000}, "largest stable step"),
}


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_change_nothing(case, cls, data):
    X, y = data
    change, message = BAD_DATA[case]
    bad = change(X, y)
    model = cls(0.1)
    with pytest.raises(ValueError, match=message):
        model.fit(*bad)
    assert not fitted_state(model)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.fit(X, y)
    before = fitted_state(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*bad)
    assert fitted_state(model) == before


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("case", BAD_PARAMETERS)
def test_bad_parameters_change_nothing(case, cls, data):
    X, y = data
    parameters, message = BAD_PARAMETERS[case]
    model = cls(**{"alpha": 0.1, "tol": 0.0, **parameters})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not fitted_state(model)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(60), "[Nn]egative"),
        (np.zeros(60), "zero|positive on at least two"),
        (np.r_[1, np.zeros(59)], "positive on at least two"),
        (np.ones(59), "sample_weight"),
        (np.r_[np.nan, np.ones(59)], "NaN"),
    ],
)
def test_bad_weights_change_nothing(weights, message, cls, data):
    X, y = data
    model = cls(0.1)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sample_weight=weights)
    assert not fitted_state(model)


def test_divergence_names_a_step_that_works(data):
    X, y = data
    model = TrajectoryLasso(0.1, solver="ista", step_size=10.0)
    with pytest.raises(ValueError) as error:
        model.fit(X, y)
    stable = float(str(error.value).split("these data is ")[1].split(". ")[0])
    model.set_params(step_size=0.999 * stable).fit(X, y)


def test_several_targets_are_refused_where_there_is_a_prox(data):
    X, y = data
    with pytest.raises(ValueError, match="1d array"):
        TrajectoryLasso(0.1).fit(X, np.column_stack([y, y]))


def test_predict_checks_features_and_names(data):
    X, y = data
    model = TrajectoryLasso(0.1).fit(X, y)
    with pytest.raises(ValueError, match="8 features"):
        model.predict(X[:, :3])


def test_predict_with_other_column_names(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = TrajectoryLasso(0.1).fit(frame, y)
    assert list(model.feature_names_in_) == list("abcdefgh")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_former_attributes_do_not_survive_a_fit(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = TrajectoryLasso(0.1).fit(frame, y)
    model.set_params(risk=False).fit(X, y)
    for name in ("risk_path_", "risk_gram_", "n_probes_", "feature_names_in_"):
        assert not hasattr(model, name)


# -------------------------------------------------------------- what it costs


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(cls, dtype, data):
    X, y = data
    model = cls(0.1).fit(X.astype(dtype), y.astype(dtype))
    assert model.coef_.dtype == model.coef_path_.dtype == dtype
    assert model.predict(X.astype(dtype)).dtype == dtype
    reference = cls(0.1, max_iter=model.n_iter_, tol=0).fit(X, y)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)


def test_fit_holds_and_pickles_no_data(rng):
    X = rng.standard_normal((500, 400))
    y = X[:, 0] + rng.standard_normal(500)
    model = TrajectoryLasso(0.1, max_iter=10, warm_start=True).fit(X, y)
    size = len(pickle.dumps(model))
    values = [getattr(model, name) for name in fitted_attributes(model)]
    paths = sum(v.nbytes for v in values if isinstance(v, np.ndarray))
    factors = sum(factor.nbytes for factor in model.risk_residual_path_)
    assert size < paths + factors + 10_000 < X.nbytes / 4


@covering(
    cls=[TrajectoryLasso, IterativeRidge],
    weighted=[False, True],
    shape=[(2000, 1500), (1500, 2000)],
    dtype=[np.float32, np.float64],
    fit_intercept=[True, False],
)
def test_peak_memory(cls, weighted, shape, dtype, fit_intercept, rng):
    """At most twice X, X included, plus the path."""
    X = rng.standard_normal(shape).astype(dtype)
    y = (X[:, 0] + rng.standard_normal(shape[0])).astype(dtype)
    model = cls(0.01, max_iter=20, fit_intercept=fit_intercept, random_state=0)
    model.set_params(loo=False)
    weights = rng.uniform(0.5, 2, shape[0]) if weighted else None
    tracemalloc.start()
    model.fit(X, y, sample_weight=weights)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    path = 21 * sum(shape) * X.itemsize
    assert peak < X.nbytes + path


def test_sparse_data_stay_sparse(monkeypatch):
    X = sparse.random(300, 2000, 0.01, format="csr", random_state=0)
    y = np.asarray(X[:, :5].sum(axis=1)).ravel()

    def refuse(*args, **kwargs):
        raise AssertionError("X was made dense")

    dense_columns = sparse.csr_matrix.toarray
    monkeypatch.setattr(
        sparse.csr_matrix,
        "toarray",
        lambda self, *a, **k: (
            refuse() if self.shape == X.shape else dense_columns(self)
        ),
    )
    model = TrajectoryLasso(0.001, max_iter=20, random_state=0).fit(X, y)
    assert np.isfinite(model.risk_path_).all()


def test_risk_costs_no_product_for_linear_updates(data, note_calls):
    X, y = data
    columns = note_calls(MatrixDesign, "dot", size=lambda _, coef: coef.shape[1])
    IterativeRidge(1.0, max_iter=40, tol=0, loo=False).fit(X, y)
    # One for some updates, until moments take their place; and one for every recorded
    # iterate, for what it costs, and for its residuals.
    assert 2 * 41 <= sum(columns) < 10 + 2 * 41


# --------------------------------------------------------------- scikit-learn


def test_in_a_pipeline_with_pandas():
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), TrajectoryLasso(0.1)).fit(X, y)
    assert model.score(X, y) > 0.5
    frame = make_pipeline(
        StandardScaler().set_output(transform="pandas"), TrajectoryLasso(0.1)
    ).fit(X, y)
    assert list(frame[-1].feature_names_in_) == list(X.columns)


def test_verbose_prints_lines(data, capsys):
    X, y = data
    TrajectoryLasso(0.1, verbose=1, tol=0, max_iter=50).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    updates = [line for line in lines if "iteration" in line]
    assert len(updates) == 10
    assert updates[-1].startswith("[TrajectoryLasso] iteration 50 of 50, objective ")
    assert lines[-2].startswith("[TrajectoryLasso] after 50 of 50, memory matrix ")


def test_uneven_rows_warn_without_row_scales(rng):
    # Uneven, but no single row outweighs the others: no scales would be right there.
    X = rng.standard_normal((200, 400)) * np.exp(rng.uniform(-1.5, 1.5, (200, 1)))
    y = X[:, 0] + rng.standard_normal(200)
    with pytest.warns(UserWarning, match="very uneven norms"):
        IterativeRidge(1.0, risk_row_scales=False).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IterativeRidge(1.0).fit(X, y)


@needs_callbacks
def test_callbacks_see_every_update(data, capsys):
    from sklearn.callback import ProgressBar, ScoringMonitor

    X, y = data
    monitor = ScoringMonitor(scoring="r2")
    model = TrajectoryLasso(0.1, max_iter=12, tol=0)
    model.set_callbacks(monitor, ProgressBar()).fit(X, y)
    scores = [
        row["r2"] for row in monitor.get_logs().data if row["task_name"] == "update"
    ]
    expected = [1 - np.mean((y - z) ** 2) / y.var() for z in model.staged_predict(X)]
    np.testing.assert_allclose(scores, expected[1:])


@needs_callbacks
def test_a_callback_can_stop_the_run(data):
    X, y = data
    model = TrajectoryLasso(0.1, max_iter=12, tol=0).set_callbacks(StopAtFive())
    assert model.fit(X, y).n_iter_ == 5
    assert len(model.risk_path_) == 6
