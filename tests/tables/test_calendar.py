"""Dates at the ends of the calendar, time zones of any kind, levels that no row has."""

import pickle
from datetime import UTC, datetime, timezone
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from skacv import TableEncoder

SENTINELS = ["9999-12-31T23:59:59", "0001-01-01T00:00:00"]
DAYS = [f"2024-0{month}-1{month}T23:30:00" for month in range(1, 8)]


@pytest.mark.parametrize("sentinel", SENTINELS)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Asia/Tokyo"])
def test_the_ends_of_the_calendar(sentinel, zone):
    """They hide no date, in a frame, as objects or as texts."""
    values = np.array([*DAYS, sentinel], dtype="datetime64[us]")
    zoned = [value.replace(tzinfo=ZoneInfo(zone)) for value in values.tolist()]
    offsets = [value.utcoffset() for value in zoned]
    fixed = [v.replace(tzinfo=timezone(o)) for v, o in zip(zoned, offsets)]
    texts = [value.isoformat() for value in fixed]
    instants = values - np.array(offsets, dtype="timedelta64[us]")
    of_pandas = pd.Series(instants).dt.tz_localize("UTC").dt.tz_convert(zone)
    kinds = {
        "frame": pd.DataFrame({"end": of_pandas}),
        "objects": np.array([zoned], dtype=object).T,
        "texts": pd.DataFrame({"end": texts}),
    }
    seconds = instants.astype(np.int64) / 1e6
    for name, X in kinds.items():
        encoder = TableEncoder("codes").fit(X)
        codes = encoder.codes(X)
        assert np.isfinite(codes).all()
        np.testing.assert_array_equal(codes[:, 0], seconds, err_msg=name)
        parts = [column.name.rpartition("_")[2] for column in encoder.columns_]
        if name != "texts":  # offsets differ, and the clock is that of UTC
            months = codes[:-1, parts.index("month")]
            np.testing.assert_array_equal(months, range(1, 8))
            hours = codes[:-1, parts.index("hour")] if "hour" in parts else 23
            np.testing.assert_array_equal(hours, 23)


@pytest.mark.parametrize("zone", ["Europe/Paris", "Asia/Kolkata"])
def test_zones_without_a_name(zone):
    """Hours are those on the wall, also in zones of dateutil, which have no names."""
    tz = pytest.importorskip("dateutil.tz").gettz(zone)
    times = [datetime(2024, 7, 1, 21, 30), datetime(2024, 1, 5, 10)] * 5
    times = [time.replace(tzinfo=UTC).astimezone(tz) for time in times]
    frames = [np.array([times], dtype=object).T]
    if int(pd.__version__.split(".")[0]) > 2:  # older versions fail with such zones
        seen = pd.Series(times).dt.tz_convert(tz)
        frames.append(pd.DataFrame({"seen": seen}))
    for X in frames:
        encoder = pickle.loads(pickle.dumps(TableEncoder("codes").fit(X)))
        parts = [column.name.rpartition("_")[2] for column in encoder.columns_]
        hours = encoder.codes(X)[:, parts.index("hour")]
        np.testing.assert_array_equal(hours, [time.hour for time in times])


@pytest.mark.parametrize("n_rows", [3, 10])
def test_levels_that_no_row_has(n_rows, rng):
    """A categorical dtype may have levels that are no numbers, or dates."""
    values = {"number": rng.integers(1, 6, 60), "date": np.resize(DAYS, 60)}
    X = pd.DataFrame(values).assign(x=rng.standard_normal(60))
    encoder = TableEncoder().fit(X)
    new = X[:n_rows].copy()
    for name in values:
        levels = [*dict.fromkeys(X[name]), "unknown"]
        new[name] = pd.Categorical(new[name], categories=levels)
    expected = encoder.transform(X[:n_rows])
    np.testing.assert_array_equal(encoder.transform(new), expected)
    new.loc[0, "number"] = "unknown"
    with pytest.raises(ValueError, match="'number' of X contains the string 'unknown'"):
        encoder.transform(new)


def test_dates_are_instants_whatever_offset_they_are_written_with():
    texts = ["2024-01-01T00:00:00+01:00", "2024-01-01T00:00:00-05:00"] * 3
    encoder = TableEncoder("codes").fit(pd.DataFrame({"at": texts}))
    seconds = [datetime.fromisoformat(text).timestamp() for text in texts]
    codes = encoder.codes(pd.DataFrame({"at": texts}))
    np.testing.assert_array_equal(codes[:, 0], seconds)
