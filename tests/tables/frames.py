"""Awkward tables: how people have them, and the same rows built otherwise."""

from datetime import UTC, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

N_ROWS = 120
CITIES = np.array(["Bergen", "Oslo", "Rome", "Turin"], dtype=object)
ZONE = "Europe/Berlin"


class AwkwardTable(NamedTuple):
    """A table.

    Attributes
    ----------
    X : frame, array or list
        As people have it.
    y : ndarray of shape (n_samples,)
        Numbers that depend on its columns.
    same : dict of str to frame, array or list
        The same rows, built otherwise.
    codes : dict of str to ndarray of shape (n_samples,)
        The columns that an encoder makes of it, by their names, from what X was made
        of.
    """

    X: Any
    y: np.ndarray
    same: dict
    codes: dict


def _drawn(seed=0, n_cities=4):
    """Sizes, the numbers of cities, and a target that depends on both."""
    rng = np.random.default_rng(seed)
    size = rng.standard_normal(N_ROWS).round(3)
    city = np.r_[np.arange(n_cities), rng.integers(0, n_cities, N_ROWS - n_cities)]
    effect = rng.standard_normal(n_cities)
    return size, city, size + effect[city] + 0.3 * rng.standard_normal(N_ROWS)


def _without(values, step, missing=np.nan):
    """A copy in which every so many values are missing."""
    values = np.array(values, dtype=object if missing is None else float)
    values[::step] = missing
    return values


def _reordered(frame):
    """The same columns in another order, and one more."""
    return frame[frame.columns[::-1]].assign(more="of no use")


def strings():
    size, city, y = _drawn()
    X = pd.DataFrame({"size": size, "city": CITIES[city].astype(object)})
    backwards = pd.Categorical(CITIES[city], categories=CITIES[::-1])
    same = {
        "string dtype": X.astype({"city": "string"}),
        "levels listed backwards": X.assign(city=backwards),
        "another order of columns": _reordered(X),
        "array": X.to_numpy(dtype=object),
        "lists": X.to_numpy(dtype=object).tolist(),
        "array of strings": X.to_numpy().astype(str),
    }
    return AwkwardTable(X, y, same, {"size": size, "city": city})


def strings_with_missing_values():
    size, city, y = _drawn()
    names = _without(CITIES[city], 7, None)
    X = pd.DataFrame({"size": size, "city": pd.array(names, dtype="string")})
    same = {
        "None": X.assign(city=names),
        "NaN": X.assign(city=np.where(names == None, np.nan, names)),  # noqa: E711
        "empty": X.assign(city=np.where(names == None, "", names)),  # noqa: E711
        "blank": X.assign(city=np.where(names == None, "  ", names)),  # noqa: E711
        "NA": X.assign(city=np.where(names == None, "NA", names)),  # noqa: E711
        "category": X.astype({"city": "category"}),
    }
    return AwkwardTable(X, y, same, {"size": size, "city": _without(city, 7)})


def levels_that_do_not_occur():
    size, city, y = _drawn()
    levels = ["Zagreb", *CITIES[::-1], "Aachen"]
    X = pd.DataFrame({"size": size, "city": pd.Categorical(CITIES[city], levels)})
    same = {"objects": X.astype({"city": object}), "string": X.astype({"city": "str"})}
    return AwkwardTable(X, y, same, {"size": size, "city": city})


def categories_of_numbers():
    size, city, y = _drawn()
    codes = np.array([30, 4, 100, 2])[city]
    X = pd.DataFrame({"size": size, "code": pd.Categorical(codes)})
    same = {
        "floats": X.assign(code=pd.Categorical(codes.astype(float))),
        "texts": X.assign(code=pd.Categorical(codes.astype(str))),
        "no category": X.assign(code=codes),
    }
    place = np.argsort(np.argsort(["30", "4", "100", "2"]))
    return AwkwardTable(X, y, same, {"size": size, "code": place[city]})


def booleans():
    size, city, y = _drawn(n_cities=2)
    X = pd.DataFrame({"size": size, "is_large": city.astype(bool)})
    same = {
        "objects": X.astype({"is_large": object}),
        "nullable": X.astype({"is_large": "boolean"}),
        "numbers": X.astype({"is_large": int}),
    }
    return AwkwardTable(X, y, same, {"size": size, "is_large": city})


def nullable_types():
    size, city, y = _drawn()
    values = {
        "size": _without(size, 5),
        "count": _without(city, 6),
        "is_large": _without(city > 1, 7),
    }
    objects = {
        "size": _without(size, 5, None),
        "count": _without(city, 6, None),
        "is_large": _without(city > 1, 7, None),
    }
    dtypes = {"size": "Float64", "count": "Int64", "is_large": "boolean"}
    X = pd.DataFrame(objects).astype(dtypes)
    same = {"floats": pd.DataFrame(values), "objects": pd.DataFrame(objects)}
    return AwkwardTable(X, y, same, values)


def arrow_types():
    pa = pytest.importorskip("pyarrow")
    size, city, y = _drawn()
    names = _without(CITIES[city], 7, None)
    days = pd.Timestamp("2024-02-01") + pd.to_timedelta(city, unit="D")
    dtypes = {
        "size": pd.ArrowDtype(pa.float64()),
        "count": pd.ArrowDtype(pa.int8()),
        "city": pd.ArrowDtype(pa.string()),
        "seen": pd.ArrowDtype(pa.timestamp("us", tz=ZONE)),
        "price": pd.ArrowDtype(pa.decimal128(8, 2)),
        "is_large": pd.ArrowDtype(pa.bool_()),
    }
    count = _without(city, 6, None)
    prices = [Decimal(int(value)) / 4 for value in city]
    plain = pd.DataFrame(
        {
            "size": size,
            "count": _without(city, 6),
            "city": names,
            "seen": days.tz_localize(ZONE),
            "price": city / 4,
            "is_large": city > 1,
        }
    )
    X = plain.assign(count=count, price=prices).astype(dtypes)
    # The first of February, 2024, was a Thursday; clocks were an hour ahead of UTC.
    seconds = pd.Timestamp("2024-01-31 23:00").timestamp() + 86400.0 * city
    codes = {
        "size": size,
        "count": _without(city, 6),
        "city": _without(city, 7),
        "seen_total_seconds": seconds,
        "seen_day": city + 1,
        "seen_weekday": (city + 3) % 7,
        "price": city / 4,
        "is_large": city > 1,
    }
    same = {"NumPy's types": plain, "a table of Arrow": pa.table(plain)}
    return AwkwardTable(X, y, same, codes)


def dates():
    size, city, y = _drawn()
    hours = 5 * np.arange(N_ROWS)
    seen = pd.Timestamp("2023-12-25") + pd.to_timedelta(hours, unit="h")  # a Monday
    X = pd.DataFrame({"size": size + city, "seen": seen})
    X.loc[::9, "seen"] = pd.NaT
    texts = X["seen"].dt.strftime("%Y-%m-%dT%H:%M:%S").astype(object)
    moments = X["seen"].astype(object)
    same = {
        "objects": X.assign(seen=moments.where(moments.notna(), None)),
        "texts": X.assign(seen=texts.where(texts.notna(), None)),
        "seconds": X.assign(seen=X["seen"].astype("datetime64[s]")),
        "array": np.array([X["size"], moments], dtype=object).T,
    }
    day = 24 + hours // 24
    parts = {
        "seen_total_seconds": pd.Timestamp("2023-12-25").timestamp() + 3600.0 * hours,
        "seen_month": np.where(day < 31, 12, 1),
        "seen_day": day % 31 + 1,
        "seen_weekday": hours // 24 % 7,
        "seen_hour": hours % 24,
    }
    codes = {name: _without(values, 9) for name, values in parts.items()}
    return AwkwardTable(X, y, same, {"size": size + city, **codes})


def time_zones():
    size, city, y = _drawn()
    # Clocks are set forward in the night of the 31st of March, a Sunday.
    hours = np.arange(N_ROWS)
    seen = pd.Timestamp("2024-03-29", tz=ZONE) + pd.to_timedelta(hours, unit="h")
    X = pd.DataFrame({"size": size + city, "seen": seen})
    same = {
        "objects": X.astype({"seen": object}),
        "Python's dates": X.assign(
            seen=pd.Series([moment.to_pydatetime() for moment in seen], dtype=object)
        ),
        "another zone": X.assign(seen=seen.tz_convert("Asia/Tokyo")),
        "UTC": X.assign(seen=seen.tz_convert(UTC)),
    }
    wall = hours + (hours >= 50)  # 2 h of the 31st: they show 3
    codes = {
        "size": size + city,
        "seen_total_seconds": pd.Timestamp("2024-03-28 23:00").timestamp()
        + 3600.0 * hours,
        "seen_month": np.where(wall < 72, 3, 4),
        "seen_day": (28 + wall // 24) % 31 + 1,
        "seen_weekday": (4 + wall // 24) % 7,
        "seen_hour": wall % 24,
    }
    return AwkwardTable(X, y, same, codes)


def durations():
    size, city, y = _drawn()
    taken = pd.to_timedelta(city * 90, unit="min")
    X = pd.DataFrame({"size": size, "taken": taken})
    X.loc[::9, "taken"] = pd.NaT
    objects = [timedelta(minutes=90 * int(value)) for value in city]
    same = {
        "objects": X.assign(taken=_without(objects, 9, None)),
        "milliseconds": X.assign(taken=X["taken"].astype("timedelta64[ms]")),
    }
    seconds = _without(5400.0 * city, 9)
    return AwkwardTable(X, y, same, {"size": size, "taken": seconds})


def periods():
    size, city, y = _drawn()
    starts = pd.to_datetime([f"2024-{month}-01" for month in city + 3])
    X = pd.DataFrame({"size": size, "month": starts.to_period("M")})
    same = {"objects": X.astype({"month": object}), "dates": X.assign(month=starts)}
    days = np.array([0, 31, 61, 92])[city]
    codes = {
        "size": size,
        "month_total_seconds": pd.Timestamp("2024-03-01").timestamp() + 86400.0 * days,
        "month_month": city + 3,
        "month_weekday": (4 + days) % 7,
    }
    return AwkwardTable(X, y, same, codes)


def missing_numbers():
    size, city, y = _drawn()
    X = pd.DataFrame({"size": _without(size, 4), "count": _without(city, 5)})
    objects = pd.DataFrame({"size": _without(size, 4, None), "count": X["count"]})
    same = {"objects": objects, "array": X.to_numpy(), "lists": X.to_numpy().tolist()}
    return AwkwardTable(X, y, same, {"size": X["size"], "count": X["count"]})


def sparse_columns():
    size, city, y = _drawn()
    X = pd.DataFrame({"size": size, "count": city.astype(float)})
    X["count"] = pd.arrays.SparseArray(X["count"], fill_value=0.0)
    same = {"dense": X.assign(count=city), "array": np.c_[size, city]}
    return AwkwardTable(X, y, same, {"size": size, "count": city})


def sparse_matrices():
    size, city, y = _drawn()
    dense = np.c_[size, city]
    same = {"dense": dense, "columns": sparse.csc_matrix(dense)}
    return AwkwardTable(
        sparse.csr_matrix(dense), y, same, {"x0": dense[:, 0], "x1": dense[:, 1]}
    )


def polars_frames():
    pl = pytest.importorskip("polars")
    size, city, y = _drawn()
    names = _without(CITIES[city], 7, None)
    days = pd.Timestamp("2024-02-01") + pd.to_timedelta(city, unit="D")
    plain = pd.DataFrame(
        {
            "size": size,
            "count": _without(city, 6),
            "city": names,
            "seen": days.tz_localize(ZONE),
            "taken": pd.to_timedelta(city, unit="h"),
            "is_large": city > 1,
        }
    )
    X = pl.DataFrame(
        {
            "size": size,
            "count": _without(city, 6, None).tolist(),
            "city": names.tolist(),
            "seen": days.to_numpy(),
            "taken": (city * 3_600_000_000).astype("timedelta64[us]"),
            "is_large": city > 1,
        }
    ).with_columns(pl.col("seen").dt.replace_time_zone(ZONE))
    codes = {
        "size": size,
        "count": _without(city, 6),
        "city": _without(city, 7),
        "seen_total_seconds": pd.Timestamp("2024-01-31 23:00").timestamp()
        + 86400.0 * city,
        "seen_day": city + 1,
        "seen_weekday": (city + 3) % 7,
        "taken": 3600.0 * city,
        "is_large": city > 1,
    }
    same = {
        "pandas": plain,
        "another order of columns": X[X.columns[::-1]],
        "categories of polars": X.with_columns(pl.col("city").cast(pl.Categorical)),
        "levels of polars": X.with_columns(
            pl.col("city").cast(pl.Enum(CITIES[::-1].tolist()))
        ),
    }
    return AwkwardTable(X, y, same, codes)


def object_arrays():
    size, city, y = _drawn()
    X = np.array([_without(size, 5, None), _without(CITIES[city], 7, None)]).T
    same = {"lists": X.tolist(), "frame": pd.DataFrame(X)}
    codes = {"x0": _without(size, 5), "x1": _without(city, 7)}
    return AwkwardTable(X, y, same, codes)


def hundreds_of_levels():
    rng = np.random.default_rng(0)
    code = rng.permutation(np.r_[np.arange(260), np.arange(260)])
    size = rng.standard_normal(len(code))
    y = size + rng.standard_normal(260)[code] + 0.3 * rng.standard_normal(len(code))
    names = np.array([f"street {1000 + place}" for place in range(260)], dtype=object)
    X = pd.DataFrame({"size": size, "street": names[code]})
    shuffled = rng.permutation(names)
    same = {
        "category": X.astype({"street": "category"}),
        "levels shuffled": X.assign(street=pd.Categorical(names[code], shuffled)),
    }
    return AwkwardTable(X, y, same, {"size": size, "street": code})


def columns_of_no_use():
    size, city, y = _drawn()
    useful = pd.DataFrame({"size": size, "city": CITIES[city]})
    X = useful.assign(
        one=1.0,
        same_text="a",
        nothing=np.nan,
        no_object=None,
        no_date=pd.NaT,
        name=[f"row {row}" for row in range(N_ROWS)],
    )
    same = {"another order of columns": _reordered(X), "useful ones alone": useful}
    return AwkwardTable(X, y, same, {"size": size, "city": city})


def numbers_as_texts():
    size, city, y = _drawn()
    texts = np.array([f" {value} " for value in size], dtype=object)
    X = pd.DataFrame({"size": _without(texts, 6, None), "count": city.astype(str)})
    same = {
        "numbers": pd.DataFrame({"size": _without(size, 6), "count": city}),
        "empty texts": X.assign(size=X["size"].where(X["size"].notna(), "")),
        "question marks": X.assign(size=X["size"].where(X["size"].notna(), "?")),
    }
    return AwkwardTable(X, y, same, {"size": _without(size, 6), "count": city})


def mixed_types():
    size, city, y = _drawn()
    values = np.array([1, 2.5, "other", "a1"], dtype=object)
    X = pd.DataFrame({"size": size, "grade": values[city]})
    texts = np.array(["1", "2.5", "other", "a1"], dtype=object)
    floats = np.array([1.0, 2.5, "other", "a1"], dtype=object)
    same = {
        "texts": X.assign(grade=texts[city]),
        "floats": X.assign(grade=floats[city]),
        "category": X.assign(grade=pd.Categorical(texts[city])),
    }
    return AwkwardTable(
        X, y, same, {"size": size, "grade": np.array([0, 1, 3, 2])[city]}
    )


def names_that_are_numbers():
    size, city, y = _drawn()
    X = pd.DataFrame({2020: size, 2021: CITIES[city]})
    same = {
        "another order of columns": X[[2021, 2020]],
        "array": X.to_numpy(dtype=object),
        "other names": X.set_axis([0, 1], axis=1),
    }
    return AwkwardTable(X, y, same, {"x0": size, "x1": city})


def single_precision():
    size, city, y = _drawn()
    X = np.c_[_without(size, 5), city].astype(np.float32)
    same = {
        "frame": pd.DataFrame(X, columns=["a", "b"]),
        "double": X.astype(np.float64),
        "columns": np.asfortranarray(X),
    }
    return AwkwardTable(X, y, same, {"x0": X[:, 0], "x1": X[:, 1]})


def index_with_repeats():
    size, city, y = _drawn()
    X = pd.DataFrame({"size": size, "city": CITIES[city]})
    same = {"numbered": X, "sorted": X.set_axis(np.arange(N_ROWS)[::-1])}
    X = X.set_axis(["a"] * N_ROWS)
    return AwkwardTable(X, y, same, {"size": size, "city": city})


TABLES = {
    table.__name__.replace("_", " "): table
    for table in [
        strings,
        strings_with_missing_values,
        levels_that_do_not_occur,
        categories_of_numbers,
        booleans,
        nullable_types,
        arrow_types,
        dates,
        time_zones,
        durations,
        periods,
        missing_numbers,
        sparse_columns,
        sparse_matrices,
        polars_frames,
        object_arrays,
        hundreds_of_levels,
        columns_of_no_use,
        numbers_as_texts,
        mixed_types,
        names_that_are_numbers,
        single_precision,
        index_with_repeats,
    ]
}
