"""Texts that are numbers or dates as people write them, and texts that are not."""

import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import pytest

from skacv import TableEncoder


def fitted(texts, n_times=3):
    """The encoder of a column of texts, as an array that has no other names."""
    column = np.array([*texts] * n_times, dtype=object)
    X = np.stack([column, np.arange(len(column))], axis=1)
    return TableEncoder("codes").fit(X), X


@pytest.mark.parametrize(
    "texts",
    [
        ("10", "1_0", "7"),
        ("20_1", "2_01", "7"),
        ("007", "07", "7"),
        ("-01", "-1", "1"),
        ("00.5", "0.5", "1"),
        ("12345678901234567", "12345678901234568", "007"),
        ("\u0661\u0662", "12", "007"),  # Arabic digits
    ],
)
def test_distinct_texts_that_python_reads_alike_stay_distinct(texts):
    encoder, X = fitted(texts)
    assert encoder.kinds_["x0"] == "category"
    assert len(set(encoder.codes(X)[:3, 0])) == 3
    assert encoder.categories_["x0"] == sorted(texts)


@pytest.mark.parametrize(
    "texts",
    [
        ("1", "-2", "+30"),
        ("0", "0.50", "-.25"),
        ("3.", " 1200.5 ", "0"),
        (repr(1e-05), repr(1.5e20), "7"),
        ("123456789012345", "1", "2"),
    ],
)
def test_numbers_as_they_are_written(texts):
    encoder, X = fitted(texts)
    assert encoder.kinds_["x0"] == "number"
    np.testing.assert_array_equal(encoder.codes(X)[:3, 0], [*map(float, texts)])
    with pytest.raises(ValueError, match="'x0' of X contains the string '1_0'"):
        encoder.codes(np.array([["1_0", 1]], dtype=object))


@pytest.mark.parametrize("text", ["inf", "-Infinity", "1e999", "1e+999"])
def test_infinite_texts_among_numbers(text):
    with pytest.raises(ValueError, match=f"'x0' of X holds the text '{text[0]}"):
        fitted((text, "1", "2"))
    encoder, _ = fitted(("inf", "sup", "max"))
    assert encoder.kinds_["x0"] == "category"


DATES = {
    "day": (("13.05.2023", "01.02.1998"), (2023, 5, 13), (1998, 2, 1)),
    "month": (("05/13/2023", "1/2/2023"), (2023, 5, 13), (2023, 1, 2)),
    "year": (("2023/05/13", "2023/01/02"), (2023, 5, 13), (2023, 1, 2)),
    "two digits": (("13-05-98", "01-02-03"), (1998, 5, 13), (2003, 2, 1)),
    "either": (("05/05/2023", "06/06/2023"), (2023, 5, 5), (2023, 6, 6)),
    "names": (("3 May 2023", "12 Sept. 2023"), (2023, 5, 3), (2023, 9, 12)),
    "names first": (("May 3, 2023", "AUGUST 12, 2023"), (2023, 5, 3), (2023, 8, 12)),
    "databases": (("03-MAY-23", "12-JAN-98"), (2023, 5, 3), (1998, 1, 12)),
    "weekdays": (("Wed, 3 May 2023", "Fri, 5 May 2023"), (2023, 5, 3), (2023, 5, 5)),
    "hours": (
        ("13.05.2023 7:30", "01.02.2023 23:05:10.5"),
        (2023, 5, 13, 7, 30),
        (2023, 2, 1, 23, 5, 10, 500_000),
    ),
    "noon": (
        ("5/13/2023 12:30 PM", "5/1/2023 12:05 AM"),
        (2023, 5, 13, 12, 30),
        (2023, 5, 1, 0, 5),
    ),
}


@pytest.mark.parametrize("texts", DATES)
def test_dates_as_they_are_written(texts):
    """They are those of the same column as dates, also in new rows."""
    texts, *dates = DATES[texts]
    encoder, X = fitted(texts)
    as_dates = np.array([datetime(*date) for date in dates] * 3, dtype=object)
    as_dates = np.stack([as_dates, X[:, 1]], axis=1)
    assert encoder.kinds_["x0"] == "date"
    expected = TableEncoder("codes").fit(as_dates)
    assert encoder.columns_ == expected.columns_
    for rows in (X, as_dates, X[:1], X[3:1:-1]):
        codes = encoder.codes(rows)
        at = rows[:, 1].astype(int)
        np.testing.assert_array_equal(codes, expected.codes(as_dates[at]))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["03/04/2023", "05/06/2023"],
            "'03/04/2023', which may have the day or",
        ),
        (["13.05.23", "01.02.24"], "may have the day or the year first"),
        (["2023-05-12", "13.05.2023", "14.05.2023"], "most of which are dates"),
        (["13.05.2023", "14/05/2023"], "most of which are dates"),
        ([*(f"{day}.02.2023" for day in range(10, 30))], "most of which are dates"),
        (
            [20230512, 20230601],
            "contains numbers such as 20230512, which look like dates",
        ),
        (["20230512", "20230601"], "contains numbers such as 20230512"),
        (["1e5", "12", "3e2"], "'1e5', which may be numbers or codes"),
    ],
    ids=str,
)
def test_columns_that_may_be_something_else_are_named(values, message):
    X = pd.DataFrame({"day": values * 3, "x": np.arange(3.0 * len(values))})
    with pytest.warns(UserWarning, match=message) as caught:
        encoder = TableEncoder("codes").fit(X)
    kind = "category" if "numbers such as" not in message else "number"
    assert encoder.kinds_["day"] == kind
    (warning,) = caught
    if "codes" not in message:
        assert "pd.to_datetime(X['day']" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TableEncoder("codes").fit(X.astype({"day": "category"}))


@pytest.mark.parametrize(
    "texts",
    [
        ("12-34-5678", "99-88-1234"),  # numbers of people
        ("10.0.1", "9.1.3"),  # versions
        ("1.2.3.4", "10.12.14.1"),
        ("may", "march"),
        ("May is mild", "June is warm"),
        ("12 to 14", "1 - 2 - 3"),
        ("31/02/2023", "30/02/2023"),  # no dates
    ],
)
def test_texts_that_are_no_dates(texts):
    encoder, _ = fitted(texts)
    assert encoder.kinds_["x0"] == "category"
