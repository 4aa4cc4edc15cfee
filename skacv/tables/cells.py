"""The columns of any frame or array, read into arrays of NumPy."""

from collections import Counter
from collections.abc import Hashable
from copy import copy
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from numbers import Number
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from scipy import sparse

from .._compat import check_in_memory, on_host
from .._estimator.data.checks import (
    check_has_rows,
    check_numbers,
    has_sparse_columns,
    is_missing,
)
from ..optim.blocks import MEMORY_BYTES

# Texts for missing values: those of pandas.read_csv, and the question mark of the
# tables of UCI.
MISSING_TEXTS = {
    "",
    "?",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "<NA>",
    "N/A",
    "NA",
    "NULL",
    "NaN",
    "None",
    "n/a",
    "nan",
    "null",
}
INSTANT, ELAPSED = "datetime64[us]", "timedelta64[us]"
MIDNIGHT = datetime.min


class Cells(NamedTuple):
    """A column of any frame or array."""

    # "number", "boolean", "duration", "date" or "text".
    kind: str
    # (n_samples,): numbers, NaN where they are missing; durations in seconds; dates as
    # datetime64, in UTC if there is a time zone; texts as indices of ``levels``, -1
    # where they are missing.
    values: np.ndarray
    # The different texts that occur, in any order.
    levels: list = []
    # The time zone of dates: its name, or the zone itself if it has none.
    zone: str | tzinfo | None = None
    # Whether the frame declares the column as categorical.
    is_declared: bool = False


def has_values(cells):
    """Whether some values of a column are not missing."""
    if cells.kind == "text":
        return bool((cells.values >= 0).any())
    return bool((cells.values == cells.values).any())


class Table:
    """The columns of X, which may be any frame or array."""

    # ``data`` is a frame of narwhals, or an array; ``names`` has the names of the
    # columns of a frame, and ``numbers`` is X as an array if it has a dtype of numbers.

    def __init__(self, X):
        check_in_memory(X)
        check_has_rows(X)
        if sparse.issparse(X) or has_sparse_columns(X):
            if not may_be_dense(X):
                raise ValueError(
                    f"X is sparse and of shape {X.shape}, too large to be made dense: "
                    "pass it to models that support sparse X."
                )
            X = X.toarray() if sparse.issparse(X) else X
        frame = frame_of(X)
        if frame is None:
            X = on_host(X)
            X = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
        self.data = X if frame is None else frame
        self.shape = self.data.shape
        self.names = None if frame is None else frame.columns
        self.numbers = X if frame is None and X.dtype.kind in "fiub" else None
        if len(self.shape) != 2:
            raise ValueError(
                f"Expected 2D array, got {len(self.shape)}D array instead: "
                f"X has shape {self.shape}. Reshape your data either using "
                "X.reshape(-1, 1) if it has a single column, or X.reshape(1, -1) if "
                "it has a single row."
            )
        for count, what in zip(self.shape, ("sample(s)", "feature(s)")):
            if count == 0:
                raise ValueError(
                    f"Found array with 0 {what} (shape={self.shape}) while a minimum "
                    "of 1 is required by TableEncoder."
                )

    def feature_names(self):
        """Names of the columns if they are strings; None without strings."""
        are_strings = {isinstance(name, str) for name in self.names or []}
        if len(are_strings) > 1:
            raise TypeError(
                "Some column names of X are strings and others are not: convert them, "
                "for example by X.columns = X.columns.astype(str)."
            )
        return self.names if True in are_strings else None

    def take_rows(self, rows):
        """The table of some rows; numbers say which."""
        part = copy(self)
        data = self.data
        if self.names is not None and data.implementation.is_pyarrow():
            data = frame_of(data.to_pandas())  # Arrow takes no rows of some types
        part.data = data[rows]
        part.shape = len(rows), self.shape[1]
        part.numbers = None if self.numbers is None else part.data
        return part

    def cells(self, index):
        """The :class:`Cells` of a column."""
        if self.names is None:
            return _read_array(self.data[:, index])
        name = self.names[index]
        if self.data.implementation.is_pandas():
            return _read_series(self.data.to_native()[name])
        return _read_column(self.data.get_column(name))


def may_be_dense(X):
    """Whether sparse X has few enough entries, zeros included, to be made dense."""
    # X, its codes, and the columns that a model makes of them.
    n_arrays, n_bytes = 3, np.dtype(np.float64).itemsize
    return n_arrays * n_bytes * X.shape[0] * X.shape[1] <= MEMORY_BYTES


def frame_of(X):
    """X as a frame of narwhals; None if it is none."""
    try:
        frame = nw.from_native(X, pass_through=True)
        if frame is X and hasattr(X, "to_pandas"):
            frame = nw.from_native(X.to_pandas())
    except DuplicateError as error:
        counts = Counter(getattr(X, "column_names", None) or X.columns)
        repeated = [name for name, n in counts.items() if n > 1]
        raise ValueError(
            f"X has several columns with the same name: {repeated}. Give every column "
            "its own name."
        ) from error
    if isinstance(frame, nw.LazyFrame):
        raise TypeError("X is a lazy frame: pass X.collect().")
    return frame if isinstance(frame, nw.DataFrame) else None


def _read_series(column):
    """A column of a frame of pandas: narwhals has no codes, and not all time zones."""
    dtype = column.dtype
    if dtype.name == "category":
        codes = np.asarray(column.cat.codes, dtype=np.intp)
        return _read_levels(codes, column.cat.categories.tolist(), is_declared=True)
    zone = getattr(dtype, "tz", None)
    if zone is not None:
        return Cells("date", column.to_numpy(dtype=INSTANT), zone=zone_of(zone))
    if not isinstance(dtype, np.dtype) and dtype.kind in "fiu":
        return _read_array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return _read_array(column.to_numpy())


def _read_column(column):
    """A column of any other frame, as narwhals has it."""
    dtype = column.dtype
    if isinstance(dtype, nw.Categorical | nw.Enum):
        values = column.to_list()
        return _read_texts(values, dict.fromkeys(values), is_declared=True)
    if dtype.is_nested():
        return _read_objects(column.to_list())
    array = column.to_numpy()
    if array.dtype == np.float32 and dtype != nw.Float32:  # integers, some missing
        array = array.astype(np.float64)
    cells, zone = _read_array(array), getattr(dtype, "time_zone", None)
    is_offset = zone is not None and zone[0] in "+-"
    return cells._replace(zone=f"UTC{zone}" if is_offset else zone or cells.zone)


def _read_array(array):
    """A column that is an array of one dimension."""
    match array.dtype.kind:
        case "f":
            is_single = array.dtype == np.float32
            return Cells("number", array if is_single else array.astype(np.float64))
        case "i" | "u":
            return Cells("number", array.astype(np.float64))
        case "b":
            return Cells("boolean", array.astype(np.float64))
        case "M":
            return Cells("date", array.astype(INSTANT))
        case "m":
            return Cells("duration", _seconds(array))
        case "c":
            raise ValueError("Complex data not supported: X must be real numbers.")
        case _:
            return _read_objects(array.tolist())


def _read_objects(values):
    """A column of Python objects: numbers, dates, durations, or texts of them."""
    # Numbers among texts are texts, and so is any other mixture.
    try:
        unique = dict.fromkeys(values)
    except TypeError:  # lists and the like become texts
        values = [
            value if isinstance(value, Hashable) else text_of(value) for value in values
        ]
        unique = dict.fromkeys(values)
    classes = {type(value) for value in unique if not is_missing(value)}
    if not all(issubclass(cls, str) for cls in classes):
        for kind, (kinds_of_objects, _) in OBJECTS.items():
            if all(issubclass(cls, kinds_of_objects) for cls in classes):
                return read_objects_of(kind, values)
        if all(hasattr(cls, "to_timestamp") for cls in classes):  # periods
            return _read_objects(
                [None if is_missing(v) else v.to_timestamp() for v in values]
            )
        values = [value if is_missing(value) else text_of(value) for value in values]
        unique = dict.fromkeys(values)
    return _read_texts(values, unique)


def _read_texts(values, unique, is_declared=False):
    """Texts, or values that become texts; ``unique`` has each of them once."""
    code_of = {value: code for code, value in enumerate(unique)}
    codes = np.fromiter(map(code_of.__getitem__, values), np.intp, len(values))
    return _read_levels(codes, list(unique), is_declared)


def _read_levels(codes, levels, is_declared):
    """Texts ``levels[codes]``; those of code -1 and texts for missing values miss.

    Shapes: codes (n_samples,).
    """
    of_text = {}
    new_codes = np.full(len(levels) + 1, -1)  # the last is that of the code -1
    # Rows of a categorical dtype need not have all of its levels.
    for code in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1)):
        text = "" if is_missing(levels[code]) else text_of(levels[code])
        if text.strip() not in MISSING_TEXTS:
            new_codes[code] = of_text.setdefault(text, len(of_text))
    return Cells("text", new_codes[codes], list(of_text), is_declared=is_declared)


def text_of(value):
    """A value as text; integers without a decimal point."""
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    return str(value.tolist() if isinstance(value, np.ndarray) else value)


def read_objects_of(kind, values):
    """Objects that are missing, or of one kind of ``OBJECTS``."""
    _, read = OBJECTS[kind]
    is_present = np.array([not is_missing(value) for value in values])
    found, zone = read([value for value, is_in in zip(values, is_present) if is_in])
    missing = np.datetime64("NaT") if kind == "date" else np.nan
    array = np.full(len(values), missing, dtype=found.dtype)
    array[is_present] = found
    return Cells(kind, array, zone=zone)


def _numbers(objects):
    """Numbers or booleans as floating point; they have no time zone."""
    check_numbers(np.array(objects), "A column of X")
    return np.array(objects, dtype=np.float64), None


def _instants(dates):
    """Dates as instants, in UTC if they have a time zone, and their time zone."""
    by_id = {id(zone): zone for zone in (getattr(d, "tzinfo", None) for d in dates)}
    zones = []  # those of dateutil cannot be in a set
    for zone in map(zone_of, filter(None, by_id.values())):
        zones += [] if zone in zones else [zone]
    if not zones:
        return np.array(dates, dtype=INSTANT), None
    if not all(getattr(value, "tzinfo", None) for value in dates):
        raise ValueError(
            "A column of X mixes dates with and without a time zone: use one or the "
            "other."
        )
    # Not by astimezone, which ends at both ends of the calendar.
    offsets = np.array([value.utcoffset() for value in dates], dtype=ELAPSED)
    walls = np.array([value.replace(tzinfo=None) for value in dates], dtype=INSTANT)
    return walls - offsets, zones[0] if len(zones) == 1 else "UTC"


def zone_of(zone):
    """The name of a time zone, such as Europe/Paris or UTC+02:00, or else the zone."""
    fixed = zone.utcoffset(None)
    if fixed is not None:
        return str(timezone(fixed))
    try:
        return ZoneInfo(str(zone)).key
    except (ValueError, ZoneInfoNotFoundError):
        return zone


def _elapsed(durations):
    """Durations in seconds; times of day count from midnight."""
    elapsed = [
        datetime.combine(MIDNIGHT, value) - MIDNIGHT
        if isinstance(value, time)
        else value
        for value in durations
    ]
    return _seconds(np.array(elapsed, dtype=ELAPSED)), None


def _seconds(elapsed):
    """Durations in seconds, NaN where they are missing."""
    seconds = elapsed.astype(ELAPSED).astype(np.float64) / 1e6
    return np.where(np.isnat(elapsed), np.nan, seconds)


# Kinds of objects, their classes, and what reads them: the first whose classes fit all
# objects of a column is taken.
OBJECTS = {
    "boolean": ((bool, np.bool_), _numbers),
    "number": ((Number, np.bool_), _numbers),
    "date": ((date, np.datetime64), _instants),
    "duration": ((timedelta, time, np.timedelta64), _elapsed),
}
