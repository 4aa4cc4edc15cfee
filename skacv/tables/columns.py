"""Fitted columns of an encoder: numbers, dates, durations, categories or texts."""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from .._warnings import warn
from .cells import ELAPSED, INSTANT, has_values, read_objects_of, text_of
from .texts import Texts, are_texts
from .written_dates import ORDERS, orders_of, parse_date

# Parts of a date, in the time zone of the column.
PARTS = "total_seconds", "month", "day", "weekday", "hour"
# Days of which Python knows the time in every zone, also on the next one.
CALENDAR = np.array(["0001-01-03", "9999-12-28"], dtype=INSTANT)
# Kinds of columns, in messages.
PLURALS = {
    "number": "numbers",
    "boolean": "booleans",
    "duration": "durations",
    "date": "dates",
    "text": "strings",
}


# Numbers as people and programs write them: without leading zeros, with exponents that
# have a sign, and whole ones with digits that floating point keeps.
NUMBER = re.compile(
    r"[+-]?(?:0|[1-9][0-9]{0,14}|(?:0|[1-9][0-9]*)?\.[0-9]+|(?:0|[1-9][0-9]*)\.)"
    r"(?:[eE][+-][0-9]+)?"
)


class CodedColumn(NamedTuple):
    """A column of ``TableEncoder.codes``."""

    name: str  # of the column of X; followed by that of the part of a date or text
    levels: list | None  # of a category, in the order of their codes; None for numbers
    has_missing: bool  # in some training rows
    is_of_text: bool = False  # a component of the tf-idf of a column of texts


@dataclass
class Numbers:
    """A column of numbers, booleans, or durations in seconds."""

    kind: str
    has_missing: bool = False
    parts = ("",)
    levels = None

    def encode(self, cells, name):
        """The column as a list of one array, (n_samples,); ``name`` is for messages."""
        if cells.kind == "text":
            return [_parse_texts(cells, np.nan, _parse_number, name, self.kind)]
        are_durations = self.kind == "duration", cells.kind == "duration"
        if cells.kind == "date" or any(are_durations) != all(are_durations):
            check_missing(cells, name, self.kind)
            return [np.full(len(cells.values), np.nan)]
        return [cells.values]


@dataclass
class Dates:
    """A column of dates: seconds since 1970, and parts that vary."""

    zone: str | None
    parts: tuple = PARTS
    has_missing: bool = False
    # Where year, month and day are in texts that are not by ISO 8601.
    order: tuple | None = None
    kind = "date"
    levels = None

    def encode(self, cells, name):
        """The parts, a list of arrays of shape (n_samples,)."""
        missing = np.datetime64("NaT", "us")
        zone, instants = cells.zone, cells.values
        if cells.kind == "text":
            zone, instants = _parse_dates(cells, name, self.order)
        elif cells.kind != "date":
            check_missing(cells, name, "date")
            instants = np.full(len(cells.values), missing)
        is_missing = np.isnat(instants)
        if (zone is None) != (self.zone is None) and not is_missing.all():
            has, had = ("a", "none") if self.zone is None else ("no", "one")
            raise ValueError(
                f"The dates of column {name!r} of X have {has} time zone, but had "
                f"{had} in fit."
            )
        wall = instants + _offsets(instants, self.zone)
        days, months = wall.astype("datetime64[D]"), wall.astype("datetime64[M]")
        parts = {
            "total_seconds": instants.astype(np.int64) / 1e6,
            "month": months.astype(np.int64) % 12 + 1,
            "day": (days - months.astype("datetime64[D]")).astype(np.int64) + 1,
            "weekday": (days.astype(np.int64) + 3) % 7,  # 1970 began on a Thursday
            # An integer: from the fractions of two dates a model could compute the time
            # between them, wrongly where midnight is between them.
            "hour": (wall - days).astype("timedelta64[h]").astype(np.int64),
        }
        return [np.where(is_missing, np.nan, parts[part]) for part in self.parts]


@dataclass
class Categories:
    """A column of categories, with a code for each level."""

    levels: list
    has_missing: bool = False
    codes: dict = field(init=False)
    kind = "category"
    parts = ("",)

    def __post_init__(self):
        self.codes = {level: code for code, level in enumerate(self.levels)}

    def encode(self, cells, name):
        """The codes as a list of one array, (n_samples,); -1 for other levels."""
        indices, levels = cells.values, cells.levels
        if cells.kind != "text":
            values, indices = np.unique(cells.values, return_inverse=True)
            if cells.kind == "boolean":
                values = values.astype(bool)
            is_missing = values != values
            levels = [text_of(value) for value in values[~is_missing].tolist()]
            # Numbers may be those of texts in fit, also new ones, but not in place of
            # words.
            read = {"number": _parse_number, "date": _parse_date}.get(
                cells.kind, lambda _: None
            )
            is_known = any(level in self.codes for level in levels)
            if not is_known and all(read(level) is None for level in self.levels):
                check_missing(cells, name, "text")
            indices[np.isin(indices, np.flatnonzero(is_missing))] = -1
        codes = [self.codes.get(level, -1) for level in levels]
        return [np.array([*codes, np.nan])[indices]]


def fit_column(cells, name, weights=None):
    """A fitted column, its encoded parts that vary, and the reason if it is dropped.

    Weights of the rows, if not all are the same, are for texts. Shapes: cells.values,
    weights and each part (n_samples,). A dropped column is None.
    """
    if not has_values(cells):
        return None, [], "all values are missing"
    column, texts = _column_of(cells, name), None
    is_open = column.kind == "category" and not cells.is_declared
    if is_open and are_texts(cells.values, cells.levels):
        texts = Texts.fit(cells.values, cells.levels, weights)
    if texts is None:
        columns = column.encode(cells, name)
    else:
        column, tf_idf = texts
        columns = column.components(tf_idf)
    varying = []
    for values in columns:  # missing ones are a value of their own
        first = values[0]
        is_first = np.isnan(values) if np.isnan(first) else values == first
        varying.append(not is_first.all())
    if not any(varying):
        return None, [], "all values are the same"
    if column.kind == "category":
        n_present = (cells.values >= 0).sum()
        if len(column.levels) == n_present > 1:
            return None, [], "no text occurs twice"
    column.has_missing = bool(np.isnan(columns[0]).any())  # texts are empty instead
    if column.kind in ("date", "text"):
        parts = [part for part, is_in in zip(column.parts, varying) if is_in]
        column.parts = tuple(parts)
    return column, [values for values, is_in in zip(columns, varying) if is_in], ""


def tf_idf_of(column, cells, name):
    """The tf-idf of a column of texts, (n_samples, n_terms); ``name`` for messages."""
    if cells.kind == "text":
        return column.tf_idf(cells.values, cells.levels)
    check_missing(cells, name, "text")
    return column.tf_idf(np.full(len(cells.values), -1), [])


def _column_of(cells, name):
    """A column for training rows: texts may be numbers, or dates."""
    if cells.kind == "date":
        return Dates(cells.zone)
    if cells.kind != "text":
        if cells.kind == "number":
            _warn_of_numbers_like_dates(cells.values, name)
        return Numbers(cells.kind)
    levels = [cells.levels[code] for code in np.unique(cells.values) if code >= 0]
    if cells.is_declared:
        return Categories(sorted(levels))
    if all(_parse_number(level) is not None for level in levels):
        numbers = np.array([_parse_number(level) for level in levels])
        _warn_of_numbers_like_dates(numbers, name)
        return Numbers("number")
    if all(_parse_date(level) is not None for level in levels):
        return Dates(_parse_dates(cells, "", None)[0])
    orders, are_mostly_dates = orders_of(levels)
    if len(orders) == 1:
        return Dates(None, order=ORDERS[orders[0]])
    if are_mostly_dates:
        what = f"strings such as {levels[0]!r}, most of which are dates in some format"
        if orders:
            order = " or ".join(orders)
            what = f"dates such as {levels[0]!r}, which may have {order} first"
        warn(
            f"Column {name!r} of X contains {what} and is treated as categories: "
            f"convert it to dates by pd.to_datetime(X[{name!r}], format=...).",
            UserWarning,
        )
    _check_other_numbers(levels, name)
    return Categories(sorted(levels))


def _warn_of_numbers_like_dates(values, name):
    """Warn of numbers that are all dates such as 20230512."""
    numbers = values[~np.isnan(values)]
    # The first tell most columns apart.
    if not all(_are_like_dates(part).all() for part in (numbers[:20], numbers)):
        return
    if (numbers != numbers[0]).any():
        warn(
            f"Column {name!r} of X contains numbers such as {numbers[0]:.0f}, which "
            "look like dates, and is treated as numbers: convert it to dates by "
            f"pd.to_datetime(X[{name!r}].astype(str), format='%Y%m%d').",
            UserWarning,
        )


def _are_like_dates(numbers):
    """Which numbers are dates of this and the last century, such as 20230512."""
    months, days = np.divmod(np.where(np.isfinite(numbers), numbers, 0), 100)
    years, months = np.divmod(months, 100)
    of_year = np.isin(years, range(1900, 2100)) & np.isin(months, range(1, 13))
    return of_year & np.isin(days, range(1, 32))


def _check_other_numbers(levels, name):
    """Raise if numbers in texts are infinite, and warn if texts may be numbers."""
    try:
        are_infinite = np.isinf([float(level) for level in levels])
    except ValueError:  # words
        return
    unread = [level for level in levels if _parse_number(level) is None]
    if are_infinite.any() and len(unread) < len(levels):
        raise ValueError(
            f"Column {name!r} of X holds the text {levels[are_infinite.argmax()]!r} "
            "among numbers, which must be finite: leave unknown values empty."
        )
    is_code = re.compile(r"[+-]?0[0-9]|.*_")
    if not any(is_code.match(text.strip()) for text in unread):
        warn(
            f"Column {name!r} of X holds texts such as {unread[0]!r}, which may be "
            "numbers or codes, and is treated as categories: "
            f"X[{name!r}].astype(float) converts it to numbers, and "
            ".astype('category') confirms that these are codes.",
            UserWarning,
        )


def check_missing(cells, name, kind):
    """Raise unless all values are missing: a column of those fits every kind."""
    if has_values(cells):
        raise ValueError(
            f"Column {name!r} of X contains {PLURALS[cells.kind]}, but contained "
            f"{PLURALS[kind]} in fit."
        )


def _parse_number(text):
    """A text as a number, if that is how numbers are written; otherwise None."""
    # Python reads "1_0", "007" and "12E4" too, which are codes.
    value = float(text) if NUMBER.fullmatch(text.strip()) else np.inf
    return value if np.isfinite(value) else None


def _parse_date(text, order=None):
    """A text as a date by ISO 8601, or in this order; None if it is not one."""
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None if order is None else parse_date(text, order)


def _parse_texts(cells, missing, read, name, kind):
    """The values of texts by ``read``; raises where it returns None."""
    values = [read(level) for level in cells.levels]
    for level, value in zip(cells.levels, values):
        if value is None:
            raise ValueError(
                f"Column {name!r} of X contains the string {level!r}, but contained "
                f"{PLURALS[kind]} in fit."
            )
    return np.array([*values, missing])[cells.values]


def _parse_dates(cells, name, order):
    """The time zone and the instants of texts of dates."""
    dates = _parse_texts(cells, None, partial(_parse_date, order=order), name, "date")
    cells = read_objects_of("date", dates.tolist())
    return cells.zone, cells.values


def _offsets(instants, zone):
    """How far the clocks of a time zone are ahead of UTC, as timedelta64.

    Shapes: instants (n_samples,) of datetime64; returned (n_samples,), or (1,) of zero.
    """
    if zone is None:
        return np.zeros(1, dtype=ELAPSED)
    # At the ends of the calendar clocks are those of the days beside them.
    instants = np.clip(instants, *CALENDAR)
    clock = zone if isinstance(zone, tzinfo) else clock_of(zone)
    days = instants.astype("datetime64[D]")
    offsets, changing = _offsets_at(days, clock), ~np.isnat(days)
    changing[changing] = offsets[changing] != _offsets_at(days[changing] + 1, clock)
    # Clocks are changed at full minutes.
    offsets[changing] = _offsets_at(instants[changing].astype("datetime64[m]"), clock)
    return offsets


def clock_of(zone):
    """The time zone of a name."""
    fixed = re.fullmatch(r"UTC([+-])(\d\d):(\d\d)", zone)
    if not fixed:
        return ZoneInfo(zone)
    sign, hours, minutes = fixed.groups()
    elapsed = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(elapsed if sign == "+" else -elapsed)


def _offsets_at(instants, clock):
    """The offsets of a clock at some instants, of which many are the same."""
    different, index = np.unique(instants, return_inverse=True)
    offsets = [
        None
        if instant is None
        else instant.replace(tzinfo=UTC).astimezone(clock).utcoffset()
        for instant in different.astype(INSTANT).tolist()
    ]
    return np.array(offsets, dtype=ELAPSED)[index]
