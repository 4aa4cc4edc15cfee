"""The call with nothing set on tables as they come: a sensible model, or a sentence."""

from contextlib import nullcontext

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.model_selection import GroupKFold, TimeSeriesSplit

from skacv import (
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from tests.cases import first

pytestmark = pytest.mark.usefixtures("few_trees")

N = 120


def plain(rng, n_rows=N, n_columns=5):
    """Columns of unit size, and a target that depends on three of them."""
    X = rng.standard_normal((n_rows, n_columns))
    signal = X[:, 0] - X[:, 1] + 0.5 * X[:, 2 % n_columns]
    return X, signal + 0.5 * rng.standard_normal(n_rows)


def constant_columns(rng):
    X, y = plain(rng)
    X[:, 3], X[:, 4] = 0.0, 1e9 + 0.1
    return X, y


def duplicated_columns(rng):
    X, y = plain(rng)
    return np.hstack([X, X, X[:, :1] + 1e-12 * rng.standard_normal((N, 1))]), y


def one_column(rng):
    X, _ = plain(rng)
    return X[:, :1], 3 * X[:, 0] + 0.3 * rng.standard_normal(N)


def huge_and_tiny_units(rng):
    X, y = plain(rng)
    return X * 10.0 ** np.array([8, -8, 0, 4, -4]), y * 1e6


def tiny_target(rng):
    X, y = plain(rng)
    return X, 1e-9 * y


def far_target(rng):
    X, y = plain(rng)
    return X, y + 1e6


def dates_as_numbers(rng):
    """Seconds since 1970: far from zero, in another unit than all else."""
    X, y = plain(rng)
    X[:, 3] = 1.6e9 + 1e6 * rng.uniform(size=N)
    return X, y + (X[:, 3] - 1.6e9) / 1e6


def categories_as_integers(rng):
    X, y = plain(rng)
    X[:, 3] = rng.integers(0, 7, N)
    return X, y + np.array([0, 2, -1, 3, 0, -2, 1])[X[:, 3].astype(int)]


def sparse_counts(rng):
    X = sparse.csr_matrix(rng.poisson(0.1, (N, 40)).astype(float))
    return X, X @ (np.arange(40) < 5) * 2.0 + 0.3 * rng.standard_normal(N)


def indicators(rng):
    X = (rng.uniform(size=(N, 30)) < 0.1).astype(float)
    X[:, 29] = 0
    X[0, 29] = 1  # one row alone
    return X, 2 * X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(N)


def counts_as_target(rng):
    X, y = plain(rng)
    return X, rng.poisson(np.exp(0.5 * y))


def few_distinct_values(rng):
    X, y = plain(rng)
    return X, np.clip(np.rint(y + 5), 3, 8)


def sorted_rows(rng):
    X, y = plain(rng)
    order = np.argsort(y)
    return X[order], y[order]


def duplicated_rows(rng):
    X, y = plain(rng, N // 2)
    return np.vstack([X, X]), np.concatenate([y, y])


def rows_far_out(rng):
    X, y = plain(rng)
    X[:3] *= 1000
    y[:3] *= 1000
    return X, y


def skewed_columns(rng):
    X, y = plain(rng)
    return np.exp(3 * X), y


def many_columns(rng):
    return plain(rng, 40, 300)


def single_precision(rng):
    X, y = plain(rng)
    return (1000 * X + 5).astype(np.float32), y.astype(np.float32)


def frame_of_integers(rng):
    X, y = plain(rng)
    return pd.DataFrame(np.rint(10 * X).astype(int), columns=list("abcde")), y


def booleans(rng):
    X, y = plain(rng)
    return X > 0, y


def linear_without_noise(rng):
    X, _ = plain(rng)
    return X, X @ np.array([1.0, 2, 3, 4, 5]) + 7


TABLES = [
    constant_columns,
    duplicated_columns,
    one_column,
    huge_and_tiny_units,
    tiny_target,
    far_target,
    dates_as_numbers,
    categories_as_integers,
    sparse_counts,
    indicators,
    counts_as_target,
    few_distinct_values,
    sorted_rows,
    duplicated_rows,
    rows_far_out,
    skewed_columns,
    many_columns,
    single_precision,
    frame_of_integers,
    booleans,
    linear_without_noise,
]


# Too few distinct rows, or too little in them, for more than the dummy knows.
HARD = {skewed_columns, duplicated_rows, many_columns, counts_as_target}
UNRULY = {skewed_columns, rows_far_out, many_columns}


def expected_warning(make):
    """Copies are warned of, and nothing else."""
    if make is duplicated_rows:
        return pytest.warns(UserWarning, match="rows are copies of others")
    return nullcontext()


def halves(X, y):
    """Every other row, and the rest."""
    frame = isinstance(X, pd.DataFrame)
    first, other = slice(0, None, 2), slice(1, None, 2)
    parts = (X.iloc[part] if frame else X[part] for part in (first, other))
    return *parts, y[first], y[other]


@pytest.mark.filterwarnings("ignore:ExtraTrees")
@pytest.mark.parametrize("make", first(4, TABLES), ids=lambda make: make.__name__)
def test_numbers_of_any_kind(make):
    # How much less than the dummy's error is no theorem: these are given tables.
    X, X_test, y, y_test = halves(*make(np.random.default_rng(0)))
    with expected_warning(make):
        model = SelfStoppingRegressor(random_state=0).fit(X, y)
    dummy = DummyRegressor().fit(X, y)
    error = mean_squared_error(y_test, model.predict(X_test))
    none = mean_squared_error(y_test, dummy.predict(X_test))
    assert error < (1.3 if make in UNRULY else 0.9) * none
    # What is said of new rows is of the size of what they cost, where rows are alike.
    assert np.isfinite(model.best_score_corrected_)
    if make not in {duplicated_rows, linear_without_noise, *UNRULY}:
        assert 0.3 < model.best_score_corrected_ / error < 3.5
    if hasattr(model.estimator_, "coef_"):
        linear = X_test @ model.coef_ + model.intercept_
        np.testing.assert_allclose(linear, model.predict(X_test), rtol=1e-4)


@pytest.mark.filterwarnings("ignore:ExtraTrees")
@pytest.mark.parametrize("make", first(4, TABLES), ids=lambda make: make.__name__)
def test_labels_of_any_kind(make, rng):
    X, y = make(rng)
    label = (y > np.median(y)).astype(float)
    X, X_test, y, y_test = halves(X, label)
    with expected_warning(make):
        model = SelfStoppingClassifier(random_state=0).fit(X, y)
    common = DummyClassifier().fit(X, y)
    found = accuracy_score(y_test, model.predict(X_test))
    margin = -0.15 if make in HARD else 0.05
    assert found > accuracy_score(y_test, common.predict(X_test)) + margin
    assert set(model.predict(X_test)) <= {0.0, 1.0}
    np.testing.assert_allclose(model.predict_proba(X_test).sum(axis=1), 1, rtol=1e-5)


@pytest.mark.slow
def test_units_change_nothing_where_nothing_is_set(rng):
    """The same model, in other units: columns times powers of two, up to 10^8.

    Trees round other factors, and take columns of little spread for constants.
    """
    X, y = plain(rng)
    units = 2.0 ** rng.integers(0, 27, 5)
    for model, target in (
        (SelfStoppingRegressor(random_state=0), y),
        (SelfStoppingClassifier(random_state=0), y > 0),
    ):
        one = model.fit(X, target)
        path, found = one.path_, one.predict(X)
        chosen, members = one.best_member_, one.members_
        other = model.fit(X * units, target)
        assert other.best_member_ == chosen
        np.testing.assert_allclose(other.path_, path, rtol=1e-6)
        np.testing.assert_allclose(
            other.predict(X * units), found, rtol=1e-6, atol=1e-6
        )
        linear = "lasso" if "lasso" in members else "logistic"
        coef = other.members_[linear].coef_ * units
        np.testing.assert_allclose(coef, members[linear].coef_, rtol=1e-6)


def test_two_rows_of_a_class(rng):
    X, y = plain(rng, 42)
    label = np.array(["a", "b", "rare"])[(y > 0).astype(int)]
    label[[3, 30]] = "rare"
    with pytest.warns(UserWarning, match="least populated class"):
        model = SelfStoppingClassifier(random_state=0).fit(X, label)
    assert list(model.classes_) == ["a", "b", "rare"]


def test_copies_are_for_random_folds_alone(rng):
    """Where a user says how rows are held out, nothing is said of copies."""
    X, y = duplicated_rows(rng)
    group = np.tile(np.arange(N // 2), 2)
    lasso = TrajectoryLasso("path", max_iter=20)
    with pytest.warns(UserWarning, match="rows are copies of others"):
        TrajectoryEarlyStoppingCV(lasso, criterion="cv").fit(X, y)
    TrajectoryEarlyStoppingCV(lasso).fit(X, y, groups=group)
    TrajectoryEarlyStoppingCV(lasso, cv=GroupKFold(5)).fit(X, y, groups=group)
    lasso.set_params(cv=GroupKFold(5))
    TrajectoryEarlyStoppingCV(lasso).fit(X, y, groups=group)


def test_weights_of_zero_are_rows_that_are_not_there(rng):
    X, y = plain(rng)
    weights = np.ones(N)
    weights[::3] = 0
    y = np.where(weights, y, 1e6)
    X[::3] *= 1e4
    kept = weights > 0
    for model, target in (
        (SelfStoppingRegressor(random_state=0), y),
        (SelfStoppingClassifier(random_state=0), y > 0),
    ):
        # In any units.
        there = clone(model).fit(X, target, sample_weight=weights / 3)
        alone = clone(model).fit(X[kept], target[kept])
        for name, path in alone.member_paths_.items():
            np.testing.assert_allclose(there.member_paths_[name], path, rtol=1e-9)
        for name, member in alone.members_.items():
            own = there.members_[name].predict(X[kept])
            expected = member.predict(X[kept])
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-9)
        for name, weight in alone.weights_.items():
            assert there.weights_[name] == pytest.approx(weight, abs=1e-9)
        error = alone.best_score_corrected_
        assert there.best_score_corrected_ == pytest.approx(error, rel=1e-9)


def test_groups_and_times_with_nothing_else_set(rng):
    """Rows of a group are alike: folds of whole groups know how little that helps."""
    group = np.repeat(np.arange(24), 5)
    X = rng.standard_normal((24, 8))[group] + 0.01 * rng.standard_normal((N, 8))
    y = 3 * rng.standard_normal(24)[group] + 0.1 * rng.standard_normal(N)
    model = SelfStoppingRegressor(random_state=0)
    alike = model.fit(X, y).best_score_
    grouped = model.fit(X, y, groups=group).best_score_
    own = SelfStoppingRegressor(cv=GroupKFold(5), random_state=0)
    assert alike < 0.2 * np.var(y)
    assert grouped > 0.6 * np.var(y)
    assert own.fit(X, y, groups=group).best_score_ > 0.6 * np.var(y)
    X, y = plain(rng)
    in_time = TimeSeriesSplit(4, test_size=15)
    times = SelfStoppingRegressor(cv=in_time, random_state=0).fit(X, y)
    for start, judged in zip([60, 75, 90, 105], times.members_["lasso"].cv_indices_):
        assert judged.min() >= start


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            lambda X, y: (np.full(X.shape, "a", object), y),
            "No column of X can be used",
        ),
        (lambda X, y: (X, np.where(y > 2, np.nan, y)), "contains NaN"),
        (lambda X, y: (X[:, :0], y), "0 feature"),
        (lambda X, y: (X[:1], y[:1]), "minimum of 2 is required"),
        (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
        (lambda X, y: (X[0], y), "Expected 2D array"),
        (lambda X, y: (X, None), "requires y|y cannot be None"),
        (lambda X, y: (X * 1e200 * 1e200, y), "infinity"),
    ],
)
@pytest.mark.parametrize("kind", [SelfStoppingRegressor, SelfStoppingClassifier])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_fitted_is_one_sentence(kind, damage, message, rng):
    X, y = plain(rng)
    X[0, 0] = y[0] = 3.0
    y = y if kind is SelfStoppingRegressor else np.where(y > 2, y, np.rint(y))
    X, y = damage(X, y)
    model = kind()
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_one_class_and_numbers_as_labels_are_refused(rng):
    X, y = plain(rng)
    with pytest.raises(ValueError, match="class"):
        SelfStoppingClassifier().fit(X, np.ones(N, int))
    with pytest.raises(ValueError, match=r"Unknown label type|continuous"):
        SelfStoppingClassifier().fit(X, y)
    with pytest.raises(ValueError, match=r"y must be numbers|could not convert"):
        SelfStoppingRegressor().fit(X, np.where(y > 0, "a", "b"))
    with pytest.raises(ValueError, match="is for regression, but"):
        SelfStoppingRegressor(TrajectoryLogisticRegression()).fit(X, y > 0)
    with pytest.raises(ValueError, match="may be targets or class labels"):
        TrajectoryEarlyStoppingCV().fit(X, np.rint(y))
