"""Targets as people have them: in any container, of several outputs, or missing.

What is fitted to a plain array of NumPy is what is fitted to all others.
"""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.model_selection import GroupKFold
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.preprocessing import StandardScaler

from skacv import (
    IterativeRidge,
    KernelEigenProRegressor,
    SelfStoppingClassifier,
    SelfStoppingRegressor,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLogisticRegression,
)
from tests.cases import covering

pytestmark = pytest.mark.usefixtures("few_trees")

N = 60
STATIC = {"random_state": 0, "cv": 2}
RIDGE = IterativeRidge(1.0, max_iter=5)
LOGISTIC = TrajectoryLogisticRegression(C=1.0, max_iter=5)
REGRESSORS = {
    "front door": SelfStoppingRegressor(**STATIC),
    "list": TrajectoryEarlyStoppingCV(
        [("ridge", RIDGE), ("trees", HistGradientBoostingRegressor(max_iter=3))],
        rule="blend",
        **STATIC,
    ),
    "staged": Staged(HistGradientBoostingRegressor(max_iter=3), cv=2),
    "linear": RIDGE,
}
CLASSIFIERS = {
    "front door": SelfStoppingClassifier(**STATIC),
    "list": TrajectoryEarlyStoppingCV(
        [
            ("logistic", LOGISTIC),
            ("trees", HistGradientBoostingClassifier(max_iter=3)),
        ],
        criterion="neg_log_loss",
        rule="blend",
        **STATIC,
    ),
    "staged": Staged(HistGradientBoostingClassifier(max_iter=3), cv=2),
    "linear": LOGISTIC,
}


class OnlyAnArray:
    """Such as a column of polars: it can be made an array, and has a length."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


def of_arrow(values, kind):
    """A column of pandas of Arrow's type, where pyarrow is installed."""
    arrow = pytest.importorskip("pyarrow")
    types = {
        "int": arrow.int64(),
        "bool": arrow.bool_(),
        "string": arrow.string(),
        "dictionary": arrow.dictionary(arrow.int8(), arrow.string()),
    }
    column = pd.Series(values)
    if kind == "dictionary":
        column = column.astype("category")
    return column.astype(pd.ArrowDtype(types[kind]))


def of_polars(values):
    return pytest.importorskip("polars").Series("y", np.asarray(values).tolist())


NUMBERS = {
    "list": list,
    "float32": lambda y: y.astype(np.float32),
    "objects": lambda y: y.astype(object),
    "Decimal": lambda y: [Decimal(int(each)) for each in y],
    "Series": lambda y: pd.Series(y, index=np.arange(N)[::-1]),
    "Int64": lambda y: pd.Series(y, dtype="Int64"),
    "Float64": lambda y: pd.Series(y, dtype="Float64"),
    "category": lambda y: pd.Series(y, dtype="category"),
    "column": lambda y: y[:, None],
    "frame": lambda y: pd.DataFrame({"y": y}),
    "frame of Int64": lambda y: pd.DataFrame({"y": pd.array(y, dtype="Int64")}),
    "Arrow": lambda y: of_arrow(y, "int"),
    "polars": of_polars,
    "other": OnlyAnArray,
}
STRINGS = {
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "Series": pd.Series,
    "string": lambda y: pd.Series(y, dtype="string"),
    "Categorical": lambda y: pd.Categorical(y, categories=["b", "a", "unused"]),
    "category": lambda y: pd.Series(y, dtype="category"),
    "frame": lambda y: pd.DataFrame({"y": y}),
    "Arrow": lambda y: of_arrow(y, "string"),
    "Arrow's dictionary": lambda y: of_arrow(y, "dictionary"),
    "polars": of_polars,
    "other": OnlyAnArray,
}
BOOLEANS = {
    "list": lambda y: y.tolist(),
    "objects": lambda y: y.astype(object),
    "Series": pd.Series,
    "boolean": lambda y: pd.Series(y, dtype="boolean"),
    "category": lambda y: pd.Series(y, dtype="category"),
    "Arrow": lambda y: of_arrow(y, "bool"),
    "polars": of_polars,
}
CODES = {
    "objects": lambda y: y.astype(object),
    "Int64": lambda y: pd.Series(y, dtype="Int64"),
    "category": lambda y: pd.Series(y, dtype="category"),
    "Arrow": lambda y: of_arrow(y, "int"),
}


def drawn(rng):
    X = rng.standard_normal((N, 3))
    return X, X[:, 0] + 0.3 * rng.standard_normal(N)


@pytest.fixture(scope="module")
def fitted():
    """Models that have been fitted to plain arrays, by their names."""
    return {}


def assert_as_plain(fitted, model, X, plain, y, of_classes):
    key = str(plain.dtype.kind), repr(model)
    if key not in fitted:
        fitted[key] = clone(model).fit(X, plain)
    expected, actual = fitted[key], clone(model).fit(X, y)
    method = "predict_proba" if of_classes else "predict"
    values = np.asarray(getattr(actual, method)(X))
    plain_values = getattr(expected, method)(X)
    np.testing.assert_allclose(values.reshape(plain_values.shape), plain_values)
    if of_classes:
        assert actual.classes_.tolist() == expected.classes_.tolist()
        assert actual.classes_.dtype.kind in {expected.classes_.dtype.kind, "O"}
        assert actual.predict(X).tolist() == expected.predict(X).tolist()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@covering(container=NUMBERS, model=REGRESSORS)
def test_numbers(model, container, fitted):
    X, signal = drawn(np.random.default_rng(0))
    plain = np.round(4 * signal).astype(np.int64)
    y = NUMBERS[container](plain)
    assert_as_plain(fitted, REGRESSORS[model], X, plain, y, of_classes=False)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@covering(
    case=[
        *(("strings", name) for name in STRINGS),
        *(("booleans", name) for name in BOOLEANS),
        *(("codes", name) for name in CODES),
    ],
    model=CLASSIFIERS,
)
def test_labels(case, model, fitted):
    kind, container = case
    X, signal = drawn(np.random.default_rng(0))
    containers, plain = {
        "strings": (STRINGS, np.where(signal > 0, "b", "a")),
        "booleans": (BOOLEANS, signal > 0),
        "codes": (CODES, np.digitize(signal, [-0.5, 0.5])),
    }[kind]
    y = containers[container](plain)
    assert_as_plain(fitted, CLASSIFIERS[model], X, plain, y, of_classes=True)


MISSING = {
    "NaN": np.nan,
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "NaT of NumPy": np.datetime64("NaT"),
    "Decimal": Decimal("nan"),
}
COLUMNS = {
    "Int64": lambda y: pd.Series(y, dtype="Int64"),
    "boolean": lambda y: pd.Series(y > 0, dtype="boolean"),
    "string": lambda y: pd.Series(y.astype(str), dtype="string"),
    "category": lambda y: pd.Series(y.astype(str), dtype="category"),
    "Arrow": lambda y: of_arrow(y, "int"),
}


@pytest.mark.parametrize("value", MISSING)
@pytest.mark.parametrize(
    "model",
    [*REGRESSORS.values(), *CLASSIFIERS.values()],
    ids=lambda model: type(model).__name__,
)
def test_a_missing_target_is_named_before_anything(model, value, rng):
    X, signal = drawn(rng)
    y = np.where(signal > 0, 1, 0).astype(object)
    y[7] = MISSING[value]
    columns = [y, y.tolist(), pd.DataFrame({"y": y})]
    model = clone(model)
    if not (is_regressor(model) and isinstance(model, TrajectoryEarlyStoppingCV)):
        columns.append(np.stack([y[::-1], y], axis=1))
    for missing in columns:
        before = vars(model).copy()
        with pytest.raises(ValueError, match="drop the rows without a target"):
            model.fit(X, missing)
        assert vars(model) == before


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(
    "model", [SelfStoppingClassifier(), SelfStoppingRegressor()], ids=repr
)
def test_a_missing_value_of_a_column(model, column, rng):
    X, signal = drawn(rng)
    y = COLUMNS[column](np.where(signal > 0, 1, 0))
    y = y.where(np.arange(N) != 7)
    with pytest.raises(ValueError, match="drop the rows without a target"):
        model.fit(X, y)


# ------------------------------------------------------------- several outputs


def test_a_model_of_outputs_for_one(rng):
    """It predicts a column, and residuals are those of the vector."""
    X, y = drawn(rng)
    inner, settings = HistGradientBoostingRegressor(max_iter=5), {"cv": 3}
    one = TrajectoryEarlyStoppingCV(inner, **settings).fit(X, y)
    model = TrajectoryEarlyStoppingCV(MultiOutputRegressor(inner), **settings)
    for method in ("cv", "scaled"):
        np.testing.assert_allclose(
            model.fit(X, y).predict_interval(X, method=method)[:, 0],
            one.predict_interval(X, method=method),
        )


def several(rng):
    X, signal = drawn(rng)
    return X, np.stack([signal, np.sin(2 * X[:, 1]), X[:, 2] ** 2], axis=1)


def test_the_default_for_several_outputs(rng):
    X, Y = several(rng)
    model = SelfStoppingRegressor(random_state=0).fit(X, pd.DataFrame(Y))
    members = ["ridge", "kernel", "feature machine", "boosted trees", "extra trees"]
    assert list(model.weights_) == members
    reasons = dict(zip(model.results_["member"], model.results_["left_out"]))
    assert reasons.pop("lasso") == "y has several targets"
    assert not any(reasons.values())
    assert model.predict(X).shape == (N, 3)
    assert model.predict_interval(X).shape == (N, 3, 2)
    assert sum(model.weights_.values()) == pytest.approx(1)
    trees = model.members_["boosted trees"].estimator_
    assert len(trees.estimators_) == 3
    assert {each.n_iter_ for each in trees.estimators_} == {
        model.members_["boosted trees"].iteration_
    }


PASSED = {
    "nothing": {},
    "weights": {"sample_weight": np.tile([0.0, 1.0, 2.0], N // 3)},
    "groups": {"groups": np.arange(N) // 4},
}


@pytest.mark.parametrize("passed", PASSED)
def test_equal_outputs_are_one(passed, rng):
    """The mean over copies of an output is that of the output."""
    X, y = drawn(rng)
    members = [
        ("ridge", RIDGE),
        ("kernel", KernelEigenProRegressor(gamma=0.3, n_components=0)),
    ]
    inner = HistGradientBoostingRegressor(max_iter=9, min_samples_leaf=5)
    settings, Y = {"random_state": 0, "rule": "blend"}, np.stack([y, y], axis=1)
    one = SelfStoppingRegressor([*members, ("trees", inner)], **settings)
    two = [*members, ("trees", MultiOutputRegressor(inner))]
    two = SelfStoppingRegressor(two, **settings)
    one.fit(X, y, **PASSED[passed])
    two.fit(X, Y, **PASSED[passed])
    for name in ("best_score_", "best_score_se_", "best_score_corrected_"):
        assert getattr(two, name) == pytest.approx(getattr(one, name))
    assert two.weights_ == pytest.approx(one.weights_, abs=1e-6)
    np.testing.assert_allclose(
        two.predict_interval(X)[:, 1], one.predict_interval(X), atol=1e-6
    )


@pytest.mark.parametrize("passed", PASSED)
def test_equal_labels_are_one(passed, rng):
    X, signal = drawn(rng)
    y = (signal > 0).astype(int)
    trees = [
        ("histograms", HistGradientBoostingClassifier(max_iter=9, min_samples_leaf=5)),
        ("plain", GradientBoostingClassifier(n_estimators=9, max_depth=2)),
    ]
    each = [(name, MultiOutputClassifier(inner)) for name, inner in trees]
    # Folds of one label would be stratified.
    settings = {"rule": "blend", "random_state": 0, "cv": GroupKFold(3)}
    rows = {"groups": np.arange(N) % 20, **PASSED[passed]}
    one = SelfStoppingClassifier(trees, **settings).fit(X, y, **rows)
    Y = np.stack([y, y], axis=1)
    two = SelfStoppingClassifier(each, **settings).fit(X, Y, **rows)
    for name in ("best_score_", "best_score_se_", "best_score_corrected_"):
        assert getattr(two, name) == pytest.approx(getattr(one, name))
    assert two.weights_ == pytest.approx(one.weights_, abs=1e-6)
    expected = np.tile(one.predict_proba(X)[:, 1:], 2)
    np.testing.assert_allclose(two.predict_proba(X), expected, atol=1e-6)


def test_outputs_in_other_units_are_scaled_outside(rng):
    """As the docs have it: the mean of squared errors follows the largest output."""
    X, Y = several(rng)
    inner = SelfStoppingRegressor(random_state=0)
    scaled = clone(inner).fit(X, StandardScaler().fit_transform(Y))
    outer = TransformedTargetRegressor(inner, transformer=StandardScaler())
    # Powers of two, by which no digit changes.
    units = np.array([1.0, 2.0**10, 2.0**-10])
    outer.fit(X, Y * units)
    assert outer.regressor_.weights_ == scaled.weights_
    expected = scaled.predict(X) * Y.std(axis=0) + Y.mean(axis=0)
    np.testing.assert_allclose(outer.predict(X), expected * units)


def test_the_default_for_labels(rng):
    X, Y = several(rng)
    Y = (Y > np.median(Y, axis=0)).astype(int)
    model = SelfStoppingClassifier(random_state=0).fit(X, Y)
    assert list(model.weights_) == ["boosted trees", "extra trees"]
    assert model.predict_proba(X).shape == (N, 3)
    assert set(np.unique(model.predict(X))) <= {0, 1}
    for same in (Y > 0, Y.astype(float), pd.DataFrame(Y, dtype="Int64")):
        actual = clone(model).fit(X, same)
        np.testing.assert_array_equal(actual.predict_proba(X), model.predict_proba(X))
        assert actual.predict(X).dtype == model.predict(X).dtype
    with pytest.raises(ValueError, match="1d array, one label for each row"):
        TrajectoryEarlyStoppingCV([("linear", LOGISTIC)]).fit(X, Y)


def test_copies_are_alike_in_all_outputs(rng):
    """Rows of one design, of which a first output is often the same by chance."""
    X = np.repeat(rng.standard_normal((20, 3)), 3, axis=0)
    y = np.repeat(rng.standard_normal(20), 3)
    model = TrajectoryEarlyStoppingCV(RIDGE, cv=None)
    with pytest.warns(UserWarning, match="40 of the 60 rows are copies"):
        model.fit(X, y)
    model.fit(X, np.stack([y, rng.standard_normal(N)], axis=1))  # without a warning
