"""Dates as people write them: the order of day, month and year, if the data decide."""

import re
from datetime import datetime

NAMES = (
    "january february march april may june july august september october november "
    "december"
).split()
# By names and abbreviations.
MONTHS = {name[:n]: 1 + k for k, name in enumerate(NAMES) for n in (3, 4, len(name))}
PART, BETWEEN = r"(\d{1,4}|[a-z]+)\.?", r"([-/. ]|, ?)"
TIME = r"(\d{1,2}):(\d\d)(?::(\d\d)(?:\.(\d{1,6})\d*)?)? ?(?:([ap])\.?m\.?)?"
# Perhaps after the day of the week.
WRITTEN = re.compile(
    rf"(?:[a-z]+\.?,? )?{PART}{BETWEEN}{PART}{BETWEEN}{PART}(?:(?:,? |t){TIME})?",
    re.IGNORECASE | re.ASCII,
)
# The share of dates in a column that looks like one of dates; texts looked at first.
LEAST_SHARE, N_LOOKED_AT = 0.9, 20
# Where year, month and day are.
ORDERS = {"the day": (2, 1, 0), "the month": (2, 0, 1), "the year": (0, 1, 2)}


def parse_date(text, order):
    """A text as a date with its parts in this order; None if it is not one."""
    match = WRITTEN.fullmatch(text.strip())
    if match is None:
        return None
    first, _, middle, _, last, hour, minute, second, fraction, half = match.groups()
    parts = first, middle, last
    year, month, day = (parts[k].lower() for k in order)
    is_named = month in MONTHS
    # Nobody writes a year of two digits before the name of a month.
    n_digits = (4,) if is_named and order == ORDERS["the year"] else (2, 4)
    if len(year) not in n_digits or len(day) > 2:
        return None
    time = [hour or 0, minute or 0, second or 0, (fraction or "0").ljust(6, "0")]
    hour, *rest = map(int, time)
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (half.lower() == "p")
    try:
        century = 0 if len(year) == 4 else 2000 if int(year) < 69 else 1900
        month = MONTHS[month] if is_named else int(month)
        date = century + int(year), month, int(day)
        return datetime(*date, hour, *rest)
    except ValueError:
        return None


def orders_of(texts):
    """The orders in which all texts are dates, and whether most are dates in some.

    Orders in which all of them are the same dates count as one.
    """
    if not any(WRITTEN.fullmatch(text.strip()) for text in texts[:N_LOOKED_AT]):
        return [], False
    dates = {}
    for name, order in ORDERS.items():
        dates[name] = [parse_date(text, order) for text in texts]
    n_dates = sum(any(readings) for readings in zip(*dates.values()))
    complete = {}
    for name, readings in dates.items():
        if None not in readings and readings not in complete.values():
            complete[name] = readings
    if complete:
        matches = [WRITTEN.fullmatch(text.strip()) for text in texts]
        if len({match.group(2, 4) for match in matches}) > 1:  # written in several ways
            complete = {}
    return list(complete), n_dates >= LEAST_SHARE * len(texts)
