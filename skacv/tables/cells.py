"""The columns of any frame or array, read into arrays of NumPy."""

from collections import Counter
from collections.abc import Hashable
from copy import copy
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from numbers import Number
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from scipy import sparse

from .._compat import _safe_indexing, check_in_memory, on_host
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


class Table:
    """The columns of X, which may be any frame or array."""

    # ``data`` is the frame or array that is read, ``names`` has the names of the
    # columns of a frame, and ``numbers`` is X as an array if it has a dtype of numbers.

    def __init__(self, X):
        check_in_memory(X)
        check_has_rows(X)
        self.names = self.numbers = None
        if sparse.issparse(X) or has_sparse_columns(X):
            if not may_be_dense(X):
                raise ValueError(
                    f"X is sparse and of shape {X.shape}, too large to be made dense: "
                    "pass it to models that support sparse X."
                )
            X = X.toarray() if sparse.issparse(X) else X
        if hasattr(X, "collect_schema") and hasattr(X, "collect"):
            raise TypeError("X is a lazy frame: pass X.collect().")
        is_frame = hasattr(X, "iloc") or hasattr(X, "get_columns")
        if not is_frame and hasattr(X, "to_pandas"):
            X, is_frame = X.to_pandas(), True
        if is_frame:
            self.data, self.shape = X, tuple(X.shape)
        else:
            X = on_host(X)
            X = np.asarray(X, dtype=None if hasattr(X, "__array__") else object)
            self.data, self.shape = X, X.shape
            self.numbers = X if X.dtype.kind in "fiub" else None
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
        if is_frame:
            self.names = list(X.columns)
            repeated = [name for name, n in Counter(self.names).items() if n > 1]
            if repeated:
                raise ValueError(
                    f"X has several columns with the same name: {repeated}. Give "
                    "every column its own name."
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

    def of_rows(self, rows):
        """The table of some rows; numbers say which."""
        part = copy(self)
        part.data = _safe_indexing(self.data, rows)
        part.shape = len(rows), self.shape[1]
        part.numbers = None if self.numbers is None else part.data
        return part

    def cells(self, index):
        """The :class:`Cells` of a column."""
        if self.names is None:
            return _of_array(self.data[:, index])
        return _of_series(self.data[self.names[index]])


def may_be_dense(X):
    """Whether sparse X has few enough entries, zeros included, to be made dense."""
    # X, its codes, and the columns that a model makes of them.
    n_arrays, n_bytes = 3, np.dtype(np.float64).itemsize
    return n_arrays * n_bytes * X.shape[0] * X.shape[1] <= MEMORY_BYTES


def _of_series(column):
    """A column of a frame of pandas, polars or the like."""
    dtype = column.dtype
    if getattr(dtype, "name", None) == "category":
        codes = np.asarray(column.cat.codes, dtype=np.intp)
        return _of_levels(codes, column.cat.categories.tolist(), is_declared=True)
    zone = getattr(dtype, "tz", None)
    if zone is not None:  # of pandas; polars has UTC in arrays
        return Cells("date", column.to_numpy(dtype=INSTANT), zone=zone_of(zone))
    if hasattr(dtype, "is_nested") and dtype.is_nested():  # of polars
        return _of_objects(column.to_list())
    zone = getattr(dtype, "time_zone", None)
    is_extension = not isinstance(dtype, np.dtype) and hasattr(column, "array")
    if is_extension and dtype.kind in "fiu":
        array = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        array = column.to_numpy()
    cells = _of_array(array)
    is_declared = type(dtype).__name__ in ("Categorical", "Enum")  # polars
    return cells._replace(zone=zone or cells.zone, is_declared=is_declared)


def _of_array(array):
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
            return _of_objects(array.tolist())


def _seconds(elapsed):
    """Durations in seconds, NaN where they are missing."""
    seconds = elapsed.astype(ELAPSED).astype(np.float64) / 1e6
    return np.where(np.isnat(elapsed), np.nan, seconds)


def _of_objects(values):
    """A column of Python objects: numbers, dates, durations, or texts of them."""
    # Numbers among texts are texts, and so is any other mixture.
    try:
        unique = list(dict.fromkeys(values))
    except TypeError:  # lists and the like become texts
        values = [
            value if isinstance(value, Hashable) else text_of(value) for value in values
        ]
        unique = list(dict.fromkeys(values))
    classes = {type(value) for value in unique if not is_missing(value)}
    if not all(issubclass(cls, str) for cls in classes):
        for kind, kinds_of_objects, read in OBJECTS:
            if all(issubclass(cls, kinds_of_objects) for cls in classes):
                is_present = [not is_missing(value) for value in values]
                return read(kind, values, np.array(is_present))
        if all(hasattr(cls, "to_timestamp") for cls in classes):  # periods
            return _of_objects(
                [None if is_missing(v) else v.to_timestamp() for v in values]
            )
        values = [value if is_missing(value) else text_of(value) for value in values]
        unique = list(dict.fromkeys(values))
    code_of = {value: code for code, value in enumerate(unique)}
    codes = np.fromiter(map(code_of.__getitem__, values), np.intp, len(values))
    return _of_levels(codes, unique)


def _of_levels(codes, levels, is_declared=False):
    """Texts ``levels[codes]``; those of code -1 and texts for missing values miss.

    Shapes: codes (n_samples,).
    """
    of_text = {}
    new_codes = np.full(len(levels) + 1, -1)  # the last is that of the code -1
    # Rows of a categorical dtype need not have all of its levels.
    for code in np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1)):
        if is_missing(levels[code]):
            continue
        text = text_of(levels[code])
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


def _numbers_of_objects(kind, values, is_present):
    """Objects that are numbers or booleans."""
    numbers = np.full(len(values), np.nan)
    present = [value for value, is_in in zip(values, is_present) if is_in]
    check_numbers(np.array(present), "A column of X")
    numbers[is_present] = present
    return Cells(kind, numbers)


def zone_of(zone):
    """The name of a time zone, such as Europe/Paris or UTC+02:00, or else the zone."""
    fixed = zone.utcoffset(None)
    if fixed is not None:
        return str(timezone(fixed))
    try:
        return ZoneInfo(str(zone)).key
    except (ValueError, ZoneInfoNotFoundError):
        return zone


def dates_of(kind, values, is_present):
    """Objects that are dates, in UTC if they have a time zone."""
    dates = [value for value, is_in in zip(values, is_present) if is_in]
    by_id = {id(zone): zone for zone in (getattr(d, "tzinfo", None) for d in dates)}
    zones = []  # those of dateutil cannot be in a set
    for zone in map(zone_of, filter(None, by_id.values())):
        zones += [] if zone in zones else [zone]
    if zones:
        if not all(getattr(value, "tzinfo", None) for value in dates):
            raise ValueError(
                "A column of X mixes dates with and without a time zone: use one or "
                "the other."
            )
        # Not by astimezone, which ends at both ends of the calendar.
        offsets = np.array([value.utcoffset() for value in dates], dtype=ELAPSED)
        dates = [value.replace(tzinfo=None) for value in dates]
    instants = np.full(len(values), np.datetime64("NaT"), dtype=INSTANT)
    instants[is_present] = np.array(dates, dtype=INSTANT)
    if zones:
        instants[is_present] -= offsets
    zone = zones[0] if len(zones) == 1 else "UTC" if zones else None
    return Cells(kind, instants, zone=zone)


def _durations_of_objects(kind, values, is_present):
    """Objects that are durations; times of day count from midnight."""
    elapsed = [
        datetime.combine(MIDNIGHT, value) - MIDNIGHT
        if isinstance(value, time)
        else value
        for value, is_in in zip(values, is_present)
        if is_in
    ]
    seconds = np.full(len(values), np.nan)
    seconds[is_present] = _seconds(np.array(elapsed, dtype=ELAPSED))
    return Cells(kind, seconds)


# Kinds of objects: the first whose classes fit all objects of a column is taken.
OBJECTS = [
    ("boolean", (bool, np.bool_), _numbers_of_objects),
    ("number", (Number, np.bool_), _numbers_of_objects),
    ("date", (date, np.datetime64), dates_of),
    ("duration", (timedelta, time, np.timedelta64), _durations_of_objects),
]
