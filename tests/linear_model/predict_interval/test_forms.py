"""Intervals of several coverages, in the scale of a loss, and as wide as the row asks.

What intervals are in general: test_definition.py.
"""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_random_state

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryPoissonRegressor,
)
from skacv.optim.losses import LOSSES, Huber, Poisson, SquaredError
from skacv.risk.intervals import held_out_sizes
from tests.internals import fit_sizes, select_kept_columns
from tests.sides import fit_reduced

from ...oracles import scaled_ends

TABLE = ["jackknife+", "loo", "cv", "risk"]
METHODS = [*TABLE, "scaled"]
# Everything that any method needs.
RECORDED = {"loo": True, "cv": 4, "risk": True, "keep_data": True}
COVERAGES = [0.5, 0.9, 0.8]
SIZE_FOLDS, SMALLEST_SIZE = 5, 0.1


def drawn(rng, n_rows=60, n_targets=None):
    """Rows whose noise grows with the first column, their targets, and new rows."""
    X = rng.standard_normal((n_rows + 7, 4))
    noise = rng.standard_normal((n_rows, n_targets or 1))
    y = X[:n_rows, 1:2] + noise * (0.2 + np.abs(X[:n_rows, :1]))
    return X[:n_rows], y if n_targets else y[:, 0], X[n_rows:]


def ridge(**params):
    settings = {**RECORDED, "max_iter": 15, "random_state": 0, **params}
    return IterativeRidge(0.01, **settings)


def poisson(**params):
    settings = {**RECORDED, "max_iter": 30, "random_state": 0, **params}
    return TrajectoryPoissonRegressor(0.01, **settings)


def counts(rng, n_rows, n_new):
    """Rows, their counts, new rows, and their counts and means."""
    X = rng.standard_normal((n_rows + n_new, 3))
    mean = np.exp(0.7 + 0.8 * X[:, 0])
    y = rng.poisson(mean).astype(float)
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:], mean[n_rows:]


def covered(ends, y):
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


class Nearest:
    """In the place of a forest: the size at the nearest row."""

    def __init__(self, **settings):
        pass

    def fit(self, X, size):
        self.rows, self.size = X, size
        return self

    def predict(self, X):
        X, rows = (x.toarray() if sparse.issparse(x) else x for x in (X, self.rows))
        distances = ((X[:, None] - rows) ** 2).sum(axis=2)
        return self.size[distances.argmin(axis=1)]


# ---------------------------------------------------------------- several coverages


@pytest.mark.parametrize("n_targets", [None, 2])
@pytest.mark.parametrize("method", METHODS)
def test_several_coverages_are_those_of_each(method, n_targets, rng, set_globals):
    set_globals(RandomForestRegressor=Nearest)  # which takes less time
    X, y, X_new = drawn(rng, n_targets=n_targets)
    model = ridge().fit(X, y)
    expected = [model.predict_interval(X_new, each, method) for each in COVERAGES]
    assert expected[0].shape == ((7, 2) if n_targets is None else (7, n_targets, 2))
    for coverage in (COVERAGES, tuple(COVERAGES), np.array(COVERAGES)):
        found = model.predict_interval(X_new, coverage, method)
        np.testing.assert_array_equal(found, np.stack(expected, axis=-1))
    one = model.predict_interval(X_new, COVERAGES[:1], method)
    np.testing.assert_array_equal(one, expected[0][..., None])


def test_one_number_in_any_form_has_no_axis(rng):
    X, y, X_new = drawn(rng)
    model = ridge().fit(X, y)
    expected = model.predict_interval(X_new, 0.5)
    for coverage in (np.float64(0.5), np.array(0.5)):
        found = model.predict_interval(X_new, coverage)
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("coverage", "message"),
    [
        ([0.5, 1.2], "between 0 and 1, got 1.2"),
        ([0.5, np.nan], "between 0 and 1, got nan"),
        ([], "coverage is empty"),
        ([0.5, 0.99], "coverage=0.99 needs at least 99 rows .* but there are 60"),
    ],
)
def test_each_coverage_is_checked(coverage, message, method, rng):
    X, y, X_new = drawn(rng)
    with pytest.raises(ValueError, match=message):
        ridge().fit(X, y).predict_interval(X_new, coverage, method)


# --------------------------------------------------------------- the scale of a loss


@pytest.mark.parametrize("method", ["loo", "cv", "risk"])
def test_residuals_of_counts_are_in_units_of_the_root_of_the_mean(method, rng):
    X, y, X_new, _, _ = counts(rng, 60, 7)
    model = poisson().fit(X, y)
    held_out = getattr(model, f"{method}_prediction_path_")[-1]
    target = getattr(model, f"{method}_target_")
    ratios = sorted(abs(target - held_out) / np.sqrt(held_out))
    width = ratios[int(np.ceil(0.8 * 61)) - 1]
    for found, mean in zip(
        model.predict_interval(X_new, 0.8, method), model.predict(X_new)
    ):
        expected = max(0, mean - width * mean**0.5), mean + width * mean**0.5
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_no_count_is_below_zero(method, rng):
    X, y, X_new, _, _ = counts(rng, 60, 200)
    ends = poisson().fit(X, y).predict_interval(X_new, [0.5, 0.95], method)
    assert ends.min() == 0
    assert (ends[:, 1] > 0).all()


@pytest.mark.slow
def test_many_counts_spread_more_than_few(rng):
    """Also where there are many are they covered; a constant width covers three of
    four there."""
    shares = []
    for _ in range(10):
        X, y, X_new, y_new, mean = counts(rng, 100, 500)
        model = poisson(cv=None, risk=False).fit(X, y)
        many = mean > np.quantile(mean, 2 / 3)
        is_covered = [
            covered(model.predict_interval(X_new, 0.9, method), y_new)
            for method in ("jackknife+", "loo", "scaled")
        ]
        shares.append([(each.mean(), each[many].mean()) for each in is_covered])
    found = np.mean(shares, axis=0)
    assert (np.abs(found[:, 0] - 0.9) < 0.05).all()
    assert (found[:, 1] > 0.83).all()


def test_scales_and_ranges_of_targets_by_loss(rng):
    mean = rng.random((4, 2)).astype(np.float32)
    for loss in LOSSES:
        assert loss.spread(mean).shape == mean.shape
        assert loss.spread(mean).dtype == mean.dtype
    for loss in (SquaredError(), Huber()):
        assert loss.target_range == (-np.inf, np.inf)
        np.testing.assert_array_equal(loss.spread(mean), 1)
    np.testing.assert_allclose(Poisson().spread(mean) ** 2, mean, rtol=1e-6)
    assert Poisson().target_range[0] == 0
    for dtype in (np.float32, np.float64):
        assert Poisson().spread(np.zeros(3, dtype)).min() > 0


# -------------------------------------------------------- widths that follow the row


def by_hand(model, X, residuals, samples, X_new, coverage):
    """Intervals whose sizes are those of nearest rows, in loops."""
    distinct = sorted(set(samples))
    order = np.random.RandomState(
        check_random_state(model.random_state).randint(2**31)
    ).permutation(len(distinct))
    fold = {each: order[j] % SIZE_FOLDS for j, each in enumerate(distinct)}

    def size(row, others):
        away = [sum((row - X[samples[j]]) ** 2) for j in others]
        mean = sum(abs(residuals[j]) for j in others) / len(others)
        nearest = others[int(np.argmin(away))]
        return max(abs(residuals[nearest]), SMALLEST_SIZE * mean)

    every, ratios = list(range(len(samples))), []
    for i in every:
        others = [j for j in every if fold[samples[j]] != fold[samples[i]]]
        ratios.append(abs(residuals[i]) / size(X[samples[i]], others))
    ratio = sorted(ratios)[int(np.ceil(coverage * (len(every) + 1) - 1e-9)) - 1]
    widths = np.array([ratio * size(row, every) for row in X_new])
    predictions = model.predict(X_new)
    return np.stack([predictions - widths, predictions + widths], axis=1)


@pytest.mark.parametrize(
    ("params", "weighted"),
    [
        ({}, False),
        ({"loo": 20}, False),
        ({"loo": False}, True),
        ({"loo": False, "cv": ShuffleSplit(3, random_state=0)}, False),
        ({"loo": False, "cv": None}, False),
    ],
)
def test_scaled_by_hand(params, weighted, rng, set_globals):
    """Residuals of leave-one-out, of folds, and of the memory matrix."""
    set_globals(RandomForestRegressor=Nearest)
    X, y, X_new = drawn(rng, 30)
    weights = np.arange(30) % 4 if weighted else None
    model = ridge(fit_intercept=not weighted, **params)
    model.fit(X, y, sample_weight=weights)
    name = next(n for n in ("loo", "cv", "risk") if hasattr(model, f"{n}_path_"))
    samples = np.hstack(getattr(model, f"{name}_indices_"))
    residuals = y[samples] - getattr(model, f"{name}_prediction_path_")[-1]
    expected = by_hand(model, X, residuals, samples, X_new, 0.8)
    found = model.predict_interval(X_new, 0.8, "scaled")
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_scaled_targets_are_those_of_each(rng, set_globals):
    set_globals(RandomForestRegressor=Nearest)
    X, Y, X_new = drawn(rng, 30, n_targets=2)
    model = ridge(risk=False).fit(X, Y)
    found = model.predict_interval(X_new, method="scaled")
    for k in range(2):
        alone = ridge(risk=False, step_size=model.step_size_).fit(X, Y[:, k])
        expected = alone.predict_interval(X_new, method="scaled")
        np.testing.assert_allclose(found[:, k], expected, rtol=1e-9)


def test_the_size_at_a_row_knows_nothing_of_its_own_residual(rng):
    X, residuals, _ = drawn(rng, 200)
    samples = np.arange(200) // 2  # each is held out twice
    forest = partial(fit_sizes, seed=3)
    found = held_out_sizes(forest, X, residuals, samples, seed=3)
    for sample in (0, 17):
        own = samples == sample
        changed = np.where(own, 50.0, residuals)
        sizes = held_out_sizes(forest, X, changed, samples, seed=3)
        np.testing.assert_array_equal(sizes[own], found[own])
        assert (sizes[~own] != found[~own]).any()


def test_sizes_are_positive_and_keep_the_precision(rng):
    X, residuals, _ = drawn(rng, 200)
    residuals[:150] = 0
    assert fit_sizes(X, residuals, seed=0)(X).min() > 0
    np.testing.assert_array_equal(fit_sizes(X, 0 * residuals, seed=0)(X), 1)
    forest = partial(fit_sizes, seed=0)
    single = held_out_sizes(forest, X, residuals.astype(np.float32), np.arange(200))
    assert single.dtype == np.float32


@pytest.mark.parametrize(
    ("model", "storage", "weighted"),
    [
        (ridge(), np.asarray, True),
        (ridge(fit_intercept=False), sparse.csr_matrix, False),
        (poisson(), np.asarray, True),
        (poisson(), sparse.csr_matrix, False),
        (ridge(standardize=True), np.asarray, True),
        (poisson(standardize=True), sparse.csr_matrix, False),
        (KernelEigenProRegressor(gamma=0.1, max_iter=5), np.asarray, False),
    ],
)
def test_rows_of_fit_are_on_the_columns_of_new_rows(model, storage, weighted, rng):
    X, y, _ = drawn(rng)
    X, y = storage(X + 2.0), np.round(np.abs(y))
    model.fit(X, y, sample_weight=np.arange(60) % 3 if weighted else None)
    samples = model.loo_indices_[::-1]
    kept, new = select_kept_columns(model, samples, X[samples])
    assert kept.shape == (len(samples), 4)
    kept, new = (x.toarray() if sparse.issparse(x) else x for x in (kept, new))
    np.testing.assert_allclose(kept, new, rtol=1e-12)
    assert model.predict_interval(X[:3], method="scaled").shape == (3, 2)


def test_more_columns_than_rows(rng):
    X = rng.standard_normal((40, 300))
    y = X[:, 0] + rng.standard_normal(40)
    model = ridge(risk=False, max_iter=300, tol=0)
    assert fit_reduced(model, X, y) == "RowSpaceData"
    kept, new = select_kept_columns(model, np.arange(40), X)
    np.testing.assert_array_equal(kept, new)
    assert model.predict_interval(X[:3], method="scaled").shape == (3, 2)


def test_calls_agree_also_without_a_seed(rng):
    X, y, X_new = drawn(rng)
    model = ridge(random_state=None).fit(X, y)
    first = model.predict_interval(X_new, method="scaled")
    again = model.predict_interval(X_new, method="scaled")
    np.testing.assert_array_equal(again, first)


def test_after_a_pipeline_of_data_frames(rng):
    pd = pytest.importorskip("pandas")
    X, y, X_new = drawn(rng)
    X, X_new = (pd.DataFrame(part, columns=list("abcd")) for part in (X, X_new))
    stopped = TrajectoryEarlyStoppingCV(ridge(cv=None))
    scaler = StandardScaler().set_output(transform="pandas")
    model = make_pipeline(scaler, stopped).fit(X, y)
    found = model[-1].predict_interval(
        model[:-1].transform(X_new), coverage=[0.5, 0.9], method="scaled"
    )
    assert found.shape == (7, 2, 2)
    rows = scaler.transform(X_new)
    expected = stopped.estimator_.predict_interval(rows, 0.9, "scaled")
    np.testing.assert_array_equal(found[:, :, 1], expected)


@pytest.mark.parametrize("keep_data", [False, True])
def test_scaled_needs_held_out_rows(keep_data, rng):
    X, y, X_new = drawn(rng)
    model = ridge(loo=False, cv=None, risk=False, keep_data=keep_data).fit(X, y)
    with pytest.raises(ValueError, match="without any: fit it with loo=True or cv=5"):
        model.predict_interval(X_new, method="scaled")


@pytest.mark.parametrize(
    "params",
    [{}, {"loo": False}, {"loo": False, "cv": None}],
    ids=["loo", "cv", "risk"],
)
def test_without_rows_scaled_is_by_the_prediction(params, rng):
    X, y, X_new = drawn(rng)
    model = ridge(keep_data=False, **params).fit(X, y)
    name = next(n for n in ("loo", "cv", "risk") if hasattr(model, f"{n}_path_"))
    held_out = getattr(model, f"{name}_prediction_path_")[-1]
    residuals = getattr(model, f"{name}_target_") - held_out
    expected = scaled_ends(held_out, residuals, model.predict(X_new), 0.8)
    found = model.predict_interval(X_new, 0.8, "scaled")
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_a_kernel_that_was_passed_is_scaled_by_the_prediction(rng):
    X, y, _ = drawn(rng)
    model = KernelEigenProRegressor(kernel="precomputed", max_iter=5).fit(X @ X.T, y)
    held_out = model.loo_prediction_path_[model.iteration_]
    expected = scaled_ends(
        held_out, model.loo_target_ - held_out, model.predict(X @ X.T), 0.8
    )
    found = model.predict_interval(X @ X.T, 0.8, "scaled")
    np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_scaled_needs_two_rows(rng):
    X, y, X_new = drawn(rng)
    one_row = [(np.arange(1, 60), [0])]
    model = ridge(loo=False, risk=False, cv=one_row).fit(X, y)
    assert model.predict_interval(X_new, 0.3, "cv").shape == (7, 2)
    with pytest.raises(ValueError, match="at least 2 held-out rows"):
        model.predict_interval(X_new, 0.3, "scaled")


def test_scaled_uses_the_data_of_the_fit(rng):
    X, y, X_new = drawn(rng)
    model = ridge(fit_intercept=False).fit(X, y)
    expected = model.predict_interval(X_new, method="scaled")
    X[3:6] *= 5
    found = model.predict_interval(X_new, method="scaled")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_scaled_covers_noisy_rows_as_well(rng):
    """A constant width covers about 70% of the noisy third, and quiet rows always."""
    shares = []
    for _ in range(10):
        X = rng.standard_normal((1200, 5))
        spread = 0.3 + 1.5 * np.maximum(X[:, 0], 0)
        y = X[:, 1] + X[:, 2] + spread * rng.standard_normal(1200)
        new, noisy = slice(200, None), X[200:, 0] > np.quantile(X[200:, 0], 2 / 3)
        model = ridge(cv=None, risk=False, max_iter=40).fit(X[:200], y[:200])
        is_covered = [
            covered(model.predict_interval(X[new], 0.9, method), y[new])
            for method in ("loo", "scaled")
        ]
        shares.append([(each.mean(), each[noisy].mean()) for each in is_covered])
    constant, scaled = np.mean(shares, axis=0)
    assert abs(scaled[0] - 0.9) < 0.03
    assert scaled[1] > 0.84
    assert constant[1] < 0.77
