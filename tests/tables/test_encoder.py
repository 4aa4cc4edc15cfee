"""TableEncoder: any frame, the same numbers; columns that were not as in fit."""

import pickle
import subprocess
import sys
import warnings
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skacv import TableEncoder, TrajectoryEarlyStoppingCV, TrajectoryLasso
from skacv.tables import cells
from skacv.tables.columns import PARTS

from .frames import CITIES, N_ROWS, TABLES

of_every_table = pytest.mark.parametrize("name", TABLES)
# What is read in another way if fit sees it: a category of numbers that is none, and
# dates in another time zone, where days and hours are others.
READ_OTHERWISE = {
    ("categories of numbers", "no category"),
    ("time zones", "another zone"),
    ("time zones", "UTC"),
}
without_names = pytest.mark.filterwarnings(
    "ignore:X (does not have|has) .*feature names"
)


def frame(**columns):
    return pd.DataFrame(columns)


# -------------------------------------------------------------- the same rows


@of_every_table
def test_codes_are_those_that_the_table_was_made_of(name):
    table = TABLES[name]()
    encoder = TableEncoder("codes").fit(table.X)
    assert encoder.get_feature_names_out().tolist() == list(table.codes)
    expected = np.column_stack(list(table.codes.values())).astype(float)
    np.testing.assert_array_equal(encoder.codes(table.X), expected)
    np.testing.assert_array_equal(encoder.transform(table.X), expected)


@of_every_table
@without_names
def test_the_same_rows_have_the_same_numbers(name):
    table = TABLES[name]()
    encoder = TableEncoder().fit(table.X)
    codes, columns = encoder.codes(table.X), encoder.transform(table.X)
    for how, X in table.same.items():
        np.testing.assert_array_equal(encoder.codes(X), codes, err_msg=how)
        np.testing.assert_array_equal(encoder.transform(X), columns, err_msg=how)


@of_every_table
@without_names
def test_a_fit_to_the_same_rows_is_the_same(name):
    table = TABLES[name]()
    encoder = TableEncoder("codes").fit(table.X)
    for how, X in table.same.items():
        other = TableEncoder("codes").fit(X)
        codes = other.codes(X)
        np.testing.assert_array_equal(other.codes(table.X), codes, err_msg=how)
        if (name, how) not in READ_OTHERWISE and "order" not in how:
            np.testing.assert_array_equal(codes, encoder.codes(table.X), err_msg=how)


@of_every_table
def test_one_row_has_the_numbers_that_it_has_among_others(name):
    table = TABLES[name]()
    encoder = TableEncoder().fit(table.X)
    columns = encoder.transform(table.X)
    for row in (0, 5, 7):
        one = table.X[row : row + 1]
        np.testing.assert_array_equal(encoder.transform(one), columns[row : row + 1])


@of_every_table
def test_clones_and_pickles(name):
    table = TABLES[name]()
    encoder = TableEncoder().fit(table.X)
    columns = encoder.transform(table.X)
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(table.X), columns)
    again = clone(encoder).fit_transform(table.X)
    np.testing.assert_array_equal(again, columns)


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "1.25.0",
    reason="skops stores what newer NumPy has",
)
@of_every_table
def test_skops(name):
    io = pytest.importorskip("skops.io")
    table = TABLES[name]()
    encoder = TableEncoder().fit(table.X)
    stored = io.dumps(encoder)
    types = io.get_untrusted_types(data=stored)
    assert all(name.startswith(("skacv.", "numpy.dtype")) for name in types), types
    again = io.loads(stored, trusted=types)
    expected = encoder.transform(table.X)
    np.testing.assert_array_equal(again.transform(table.X), expected)


# ------------------------------------------------------------ one-hot columns


def test_one_hot_columns_are_those_of_pandas():
    table = TABLES["strings with missing values"]()
    encoder = TableEncoder(min_frequency=None).set_output(transform="pandas")
    found = encoder.fit_transform(table.X)
    expected = pd.get_dummies(table.X["city"].astype(object), dummy_na=True)
    expected.columns = [*(f"city_{name}" for name in CITIES), "city_missing"]
    expected = pd.concat([table.X[["size"]], expected.astype(float)], axis=1)
    pd.testing.assert_frame_equal(found, expected)


def test_a_level_may_have_no_column():
    table = TABLES["strings with missing values"]()
    X = table.X.assign(half=np.where(table.codes["size"] > 0, "big", "small"))
    encoder = TableEncoder(min_frequency=None, drop="first")
    found = encoder.set_output(transform="pandas").fit_transform(X)
    names = ["size", *(f"city_{name}" for name in CITIES[1:]), "city_missing"]
    assert found.columns.tolist() == [*names, "half_small"]
    for name in CITIES[1:]:
        expected = (X["city"] == name).fillna(False)
        assert found[f"city_{name}"].tolist() == expected.tolist()
    binary = TableEncoder(min_frequency=None, drop="if_binary").fit(X)
    assert len(binary.get_feature_names_out()) == 1 + 5 + 1
    with warnings.catch_warnings(action="error"):
        new = X[:1].assign(half="none of these")
        assert not encoder.transform(new)["half_small"].any()


def test_medians_and_indicators():
    table = TABLES["missing numbers"]()
    found = TableEncoder().set_output(transform="pandas").fit_transform(table.X)
    expected = table.X.fillna(table.X.median())
    for name in ("size", "count"):
        expected[f"{name}_missing"] = table.X[name].isna().astype(float)
    pd.testing.assert_frame_equal(found, expected)


def test_rare_levels_have_one_column_together():
    city = np.repeat(["a", "b", "c", "d"], [10, 6, 2, 1])
    X = frame(city=city, size=np.arange(19.0))
    encoder = TableEncoder().fit(X)
    names = ["size", "city_a", "city_b", "city_infrequent"]
    assert encoder.get_feature_names_out().tolist() == names
    expected = [(city == "a"), (city == "b"), (city > "b")]
    np.testing.assert_array_equal(encoder.transform(X)[:, 1:].T, expected)
    few = TableEncoder(max_levels=2, min_frequency=None).fit(X)
    assert few.get_feature_names_out().tolist() == names[:2] + names[3:]


def test_names_are_different():
    city = np.resize(["b", "missing", None, "infrequent"], 40)
    X = frame(
        city=city, city_b=np.arange(40.0), size=np.where(np.arange(40) % 3, 1, np.nan)
    )
    X["size_missing"] = X["city_b"] ** 2
    names = TableEncoder().fit(X).get_feature_names_out()
    assert len(set(names)) == len(names) == 3 + 1 + 4
    when = pd.to_datetime(["2024-01-01", "2024-02-03"] * 20)
    dates = frame(seen=when, seen_day=np.arange(40))
    names = TableEncoder("codes").fit(dates).get_feature_names_out()
    assert len(set(names)) == len(names)


def test_names_follow_those_of_a_step_before():
    table = TABLES["strings"]()
    step = FunctionTransformer(
        lambda X: X.to_numpy(dtype=object),
        feature_names_out=lambda step, names: [f"my {name}" for name in names],
    )
    pipeline = make_pipeline(step, TableEncoder()).fit(table.X)
    names = ["my size", *(f"my city_{name}" for name in CITIES)]
    assert pipeline.get_feature_names_out(table.X.columns).tolist() == names


def test_codes_in_a_frame_have_categories():
    table = TABLES["strings with missing values"]()
    encoder = TableEncoder("codes").set_output(transform="pandas").fit(table.X)
    X = table.X.set_axis(np.arange(N_ROWS)[::-1])
    X.loc[[3], "city"] = "Zagreb"
    found = encoder.transform(X)
    assert found["city"].cat.categories.tolist() == CITIES.tolist()
    expected = X["city"].astype(object).where(X["city"].isin(CITIES), None)
    assert (
        found["city"].astype(object).where(found["city"].notna(), None).equals(expected)
    )
    pd.testing.assert_series_equal(found["size"], X["size"])


# ------------------------------------------------- columns other than in fit


@pytest.mark.parametrize("name", ["strings", "hundreds of levels", "mixed types"])
def test_levels_that_fit_has_not_seen(name):
    table = TABLES[name]()
    encoder = TableEncoder(min_frequency=None, max_levels=None).fit(table.X)
    names = list(table.codes)
    new = table.X[:3].copy()
    new[names[1]] = pd.Series(["never seen", 77.5, None], dtype=object)
    np.testing.assert_array_equal(encoder.codes(new)[:, 1], [-1, -1, np.nan])
    assert not encoder.transform(new)[:, 1:].any()
    # Where rare levels are together, others are among them.
    together = (
        TableEncoder(min_frequency=None, max_levels=2).fit(table.X).transform(new)
    )
    np.testing.assert_array_equal(together[:, 1:], [[0, 1]] * 3)


def test_new_missing_values():
    size, city = np.arange(40.0), np.resize(CITIES, 40)
    when = pd.date_range("2024-01-01", periods=40)
    X = frame(size=size, city=city, seen=when, is_large=size > 9)
    encoder = TableEncoder().fit(X)
    new = frame(size=[np.nan], city=[None], seen=[pd.NaT], is_large=[None])
    assert np.isnan(encoder.codes(new)).all()
    parts = frame(size=size, total=[day.timestamp() for day in when])
    parts = parts.assign(month=when.month, day=when.day, weekday=when.day_of_week)
    expected = parts.assign(is_large=size > 9).median().to_numpy()
    found = encoder.transform(new)[0]
    np.testing.assert_array_equal(found[: len(expected)], expected)
    assert not found[len(expected) :].any()


def test_columns_are_taken_by_name():
    table = TABLES["strings"]()
    encoder = TableEncoder("codes").fit(table.X)
    codes = encoder.codes(table.X)
    more = table.X[["city", "size"]].assign(more=1)
    np.testing.assert_array_equal(encoder.codes(more), codes)
    with pytest.raises(ValueError, match=r"Columns are missing in X: \['city'\]"):
        encoder.transform(table.X[["size"]])
    with (
        pytest.warns(UserWarning, match="valid feature names"),
        pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 2"),
    ):
        encoder.transform(more.to_numpy(dtype=object))
    # Those that were dropped need not be there.
    table = TABLES["columns of no use"]()
    encoder = TableEncoder("codes").fit(table.X)
    useful = table.X[["city", "size"]]
    np.testing.assert_array_equal(encoder.codes(useful), encoder.codes(table.X))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (
            [1.0, 2.0],
            ["a", "b"],
            "'x' of X contains the string 'a', but contained numbers",
        ),
        (
            [True, False],
            ["yes", "no"],
            "contains the string 'yes', but contained booleans",
        ),
        (
            [1.0, 2.0],
            pd.to_datetime(["2024-01-01"] * 2),
            "contains dates, but contained numbers",
        ),
        (
            [1.0, 2.0],
            pd.to_timedelta([1, 2], "D"),
            "contains durations, but contained numbers",
        ),
        (
            pd.to_timedelta([1, 2], "D"),
            [1.0, 2.0],
            "contains numbers, but contained durations",
        ),
        (
            ["a", "b", "a"],
            [1.0, 2.0],
            "'x' of X contains numbers, but contained strings",
        ),
        (["a", "b", "a"], [True, False], "contains booleans, but contained strings"),
        (
            pd.to_datetime(["2024-01-01", "2024-01-02"]),
            [1.0, 2.0],
            "but contained dates",
        ),
        (
            pd.to_datetime(["2024-01-01", "2024-01-02"]),
            ["a", "b"],
            "but contained dates",
        ),
        (
            pd.to_datetime(["2024-01-01", "2024-01-02"]),
            pd.to_datetime(["2024-01-01"] * 2).tz_localize("UTC"),
            "'x' of X have a time zone, but had none in fit",
        ),
        (
            pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("UTC"),
            pd.to_datetime(["2024-01-01"] * 2),
            "'x' of X have no time zone, but had one in fit",
        ),
    ],
)
def test_a_column_that_holds_something_else_is_an_error(before, after, message):
    encoder = TableEncoder("codes").fit(frame(x=before))
    with pytest.raises(ValueError, match=message):
        encoder.transform(frame(x=after))
    # Nothing at all is of every kind.
    for nothing in ([None, None], [np.nan, np.nan], [pd.NaT, pd.NaT], ["", " "]):
        assert np.isnan(encoder.transform(frame(x=nothing))).all()


def test_numbers_may_be_texts_that_fit_has_not_seen():
    encoder = TableEncoder("codes").fit(frame(x=["10a", "20", "20", "10a"]))
    assert encoder.transform(frame(x=[20, 30])).ravel().tolist() == [1, -1]
    assert encoder.transform(frame(x=[30, 40])).ravel().tolist() == [-1, -1]


# ------------------------------------------------------------ what is decided


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", " 2.5 ", "-3e+2", None], "number"),
        (["1", "2", "1", "two"], "category"),
        (["1,5", "2,5", "1,5", "3,5"], "category"),
        (["2024-01-05", "2023-12-31", None, "2024-01-05"], "date"),
        ([date(2024, 1, 5), datetime(2023, 1, 1, 7), None, None], "date"),
        ([0, 1, 0, 1], "number"),
        ([True, False, None, True], "boolean"),
        ([True, 0, 2, True], "number"),
        ([1, "a", 1.0, None], "category"),
        ([[1], [2], [1], None], "category"),
        ([np.ones(2), np.zeros(2), np.ones(2), np.nan], "category"),
        ([*pd.cut([1, 2, 1, 3], 2)], "category"),
        ([*pd.period_range("2024", periods=4, freq="Y")], "date"),
        ([np.timedelta64(1, "s"), timedelta(2), time(1, 2), None], "duration"),
        ([Decimal("1.5"), Fraction(1, 3), np.int8(1), pd.NA], "number"),
        ([b"a", b"b", b"a", None], "category"),
    ],
)
def test_kinds(values, kind):
    X = np.empty((len(values), 1), dtype=object)
    for row, value in enumerate(values):
        X[row, 0] = value
    assert TableEncoder().fit(X).kinds_ == {"x0": kind}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([3, 3, 3], "all values are the same"),
        (["a", "a", "a"], "all values are the same"),
        ([True, True, True], "all values are the same"),
        ([None, None, None], "all values are missing"),
        ([np.nan, np.nan, np.nan], "all values are missing"),
        (["", " ", None], "all values are missing"),
        (pd.to_datetime(["2024-01-01"] * 3), "all values are the same"),
        (["x", "y", "z"], "no text occurs twice"),
        (pd.Categorical(["x", "y", "z"]), "no text occurs twice"),
        (["x", "y", None], "no text occurs twice"),
    ],
)
def test_dropped(values, reason):
    X = frame(values=values, size=[1.0, 2.0, 3.0])
    encoder = TableEncoder().fit(X)
    assert encoder.dropped_ == {"values": reason}
    assert encoder.kinds_ == {"size": "number"}


@pytest.mark.parametrize("values", [[3, None, 3], ["a", None, "a"], [True, None, True]])
def test_a_constant_with_missing_values_is_kept(values):
    X = frame(values=pd.Series(values, dtype=object))
    found = TableEncoder(min_frequency=None).fit_transform(X)
    assert found[1].tolist() != found[0].tolist()
    np.testing.assert_array_equal(found[0], found[2])


def test_arrays_of_numbers_are_left_as_they_are(rng):
    X = rng.standard_normal((20, 3))
    for array in (X, X.astype(np.float32), np.asfortranarray(X)):
        encoder = TableEncoder("codes").fit(array)
        assert encoder.codes(array) is array
        assert encoder.fit_transform(array) is array
    one_hot = TableEncoder().fit_transform(X.astype(np.float32))
    assert one_hot.dtype == np.float32
    np.testing.assert_array_equal(one_hot, X.astype(np.float32))
    X[:, 1] = 7
    np.testing.assert_array_equal(TableEncoder().fit_transform(X), X[:, [0, 2]])
    assert TableEncoder("codes").fit_transform(np.arange(4)[:, None]).dtype == float


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame(), ValueError, "0 sample"),
        (frame(x=[1.0])[:0], ValueError, r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=[0, 1]), ValueError, r"0 feature\(s\) \(shape=\(2, 0\)\)"),
        (
            pd.DataFrame(np.eye(3), columns=list("aba")),
            ValueError,
            r"same name: \['a'\]",
        ),
        (pd.DataFrame(np.eye(2), columns=["a", 1]), TypeError, "X.columns.astype"),
        (frame(x=[1.0, np.inf]), ValueError, "X contains infinity"),
        (np.array([[1.0], [-np.inf]]), ValueError, "X contains infinity"),
        (np.array([[1j], [2j]]), ValueError, "Complex data not supported"),
        (pd.Series([1.0, 2.0]), ValueError, "Expected a 2-dimensional container"),
        ([1.0, 2.0], ValueError, "Expected 2D array"),
        (frame(x=[1.0, 1.0], y=["a", "b"]), ValueError, "x: all values are the same"),
        (sparse.csr_matrix((5000, 5000)), ValueError, "sparse .* too large"),
        (
            frame(x=[datetime(2024, 1, 1), pd.Timestamp("2024-01-02", tz="UTC")]),
            ValueError,
            "with and without a time zone",
        ),
    ],
)
def test_what_cannot_be_read_is_an_error(X, error, message):
    good = frame(size=np.arange(3.0))
    for encoder in (TableEncoder(), TableEncoder().fit(good)):
        before = dict(vars(encoder))
        with pytest.raises(error, match=message):
            encoder.fit(X)
        assert vars(encoder) == before


def test_frames_that_are_not_computed():
    pl = pytest.importorskip("polars")
    with pytest.raises(TypeError, match=r"pass X.collect\(\)"):
        TableEncoder().fit(pl.LazyFrame({"x": [1, 2]}))


def test_parameters_and_state():
    with pytest.raises(ValueError, match="The 'categories' parameter"):
        TableEncoder("ordinal").fit([[1], [2]])
    with pytest.raises(NotFittedError):
        TableEncoder().codes([[1], [2]])


def test_a_sparse_matrix_is_made_dense_by_its_entries(set_limits):
    X = sparse.csr_matrix(np.eye(10))
    np.testing.assert_array_equal(TableEncoder("codes").fit_transform(X), np.eye(10))
    set_limits(MEMORY_BYTES=24 * 99)
    assert not cells.may_be_dense(X)
    assert cells.may_be_dense(X[:9])


def test_two_dates_have_the_time_between_them():
    sent = pd.date_range("2024-02-28 22:00", periods=8, freq="7h")
    took = pd.to_timedelta([3, 1, 4, 1, 5, 9, 2, 6], unit="h")
    X = pd.DataFrame({"sent": sent, "size": np.arange(8.0), "came": sent + took})
    encoder = TableEncoder("codes").fit(X)
    assert encoder.get_feature_names_out()[-1] == "came_minus_sent"
    assert encoder.columns_[-1].levels is None
    codes = encoder.codes(X)
    np.testing.assert_array_equal(codes[:, -1], took.total_seconds())
    X.loc[2, "sent"] = pd.NaT
    assert np.isnan(encoder.codes(X)[:, -1]).tolist() == [row == 2 for row in range(8)]
    # Of many dates there are not all pairs.
    many = pd.DataFrame({f"d{k}": sent + k * took for k in range(1, 7)})
    names = TableEncoder("codes").fit(many).get_feature_names_out().tolist()
    assert sum("_minus_" in name for name in names) == 6


def test_columns_of_lists_of_polars_are_as_those_of_pandas():
    pl = pytest.importorskip("polars")
    lists, structs = [[1, 2], [1], [1, 2], [1]], [{"a": 1}, {"a": 2}] * 2
    x = np.arange(4.0)
    frame = pd.DataFrame({"of": lists, "parts": structs, "pair": [[1, 2]] * 4, "x": x})
    frame.loc[1::2, "pair"] = pd.Series([[3, 4]] * 4)
    columns = {
        "of": pl.Series(lists),
        "parts": pl.Series(structs),
        "pair": pl.Series(frame["pair"].tolist(), dtype=pl.Array(pl.Int64, 2)),
        "x": x,
    }
    encoder = TableEncoder("codes").fit(frame)
    assert encoder.kinds_["pair"] == "category"
    codes = encoder.codes(pl.DataFrame(columns))
    np.testing.assert_array_equal(codes, encoder.codes(frame))


def test_stopping_estimators_take_tables_of_arrow(rng):
    pa = pytest.importorskip("pyarrow")
    X = pd.DataFrame({"a": rng.standard_normal(40), "of": ["u", "v"] * 20})
    y = X["a"] + (X["of"] == "u")
    lasso = TrajectoryEarlyStoppingCV(
        TrajectoryLasso("path", max_iter=5), encoder=TableEncoder(), random_state=0
    )
    expected = clone(lasso).fit(X, y).predict(X)
    table = pa.Table.from_pandas(X)
    found = clone(lasso).fit(table, y).predict(table)
    np.testing.assert_array_equal(found, expected)
    numbers = TrajectoryLasso("path", max_iter=5).fit(table.select(["a"]), y)
    assert list(numbers.feature_names_in_) == ["a"]


def test_missing_integers_of_polars_are_in_double_precision():
    pl = pytest.importorskip("polars")
    for dtype, expected in ((pl.Int8, np.float64), (pl.Float32, np.float32)):
        X = pl.DataFrame({"x": pl.Series([1, None, 3], dtype=dtype)})
        assert TableEncoder("codes").fit_transform(X).dtype == expected


WITHOUT_PANDAS = """
import sys
class NoPandas:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "pandas":
            raise ImportError(name)
sys.meta_path.insert(0, NoPandas())
from datetime import datetime
import numpy as np, pyarrow as pa
from skacv import TableEncoder
when = [datetime(2024, 1, 31, 23), None, datetime(2024, 2, 1, 23)] * 2
columns = {
    "size": pa.array([1, None, 3] * 2, pa.int8()),
    "city": pa.array(["Oslo", None, "Bergen"] * 2).dictionary_encode(),
    "code": pa.array([30, None, 4] * 2).dictionary_encode(),
    "of": pa.array([[1], None, [1, 2]] * 2),
    "seen": pa.array(when, pa.timestamp("ms", tz="+02:00")),
}
X = pa.chunked_array([[1], [2, 3, 4, 5, 6]])
encoder = TableEncoder("codes").fit(pa.table({**columns, "row": X}))
print(*encoder.get_feature_names_out())
print(*encoder.codes(pa.table({**columns, "row": X}))[:3].ravel())
infinite = pa.table({"one": [1.0, 2.0], "two": [1.0, np.inf]})
try:
    TableEncoder().fit(infinite)
except ValueError as error:
    print(error)
"""


def test_tables_of_arrow_are_read_without_pandas():
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-c", WITHOUT_PANDAS]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    names, codes, error = run.stdout.splitlines()
    parts = [f"seen_{part}" for part in PARTS]
    assert names.split() == ["size", "city", "code", "of", *parts, "row"]
    seconds = datetime(2024, 1, 31, 23, tzinfo=UTC).timestamp()
    expected = [
        [1, 1, 0, 1, seconds, 2, 1, 3, 1, 1],  # a Thursday, in its time zone
        [*[np.nan] * 9, 2],
        [3, 0, 1, 0, seconds + 86400, 2, 2, 4, 1, 3],
    ]
    np.testing.assert_array_equal(np.array(codes.split(), float), np.ravel(expected))
    assert "in column 'two'" in error
