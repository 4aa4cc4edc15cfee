"""Checks of what users pass, where it enters: rows, targets, weights and groups.

NumPy casts more than a user means: None to NaN, strings of numbers and dates to
numbers. Values that are not numbers are refused here, before anything is computed.
"""

import sys
from collections.abc import Mapping, Set
from contextlib import contextmanager
from datetime import date, timedelta
from decimal import Decimal
from numbers import Number, Real
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.validation import validate_data

from ..._compat import _safe_indexing, is_foreign, on_host
from ...optim.namespaces import namespace_of

# Kinds of dtypes that are numbers.
NUMBERS = "fiub"
# Types of objects that are never missing values.
NEVER_MISSING = {str, bytes, bool, int}
REAL = Real | Decimal | np.bool_
NAMES = ("n_features_in_", "feature_names_in_")


# ---------------------------------------------------------------------- rows


def validate_rows(estimator, X, **settings):
    """Rows as scikit-learn validates them, in floating point; sparse ones are CSR."""
    arguments = {"dtype": [np.float64, np.float32]}
    if type(X) is not np.ndarray or X.dtype.kind not in NUMBERS:
        X, arguments = _prepare_rows(estimator, X)
    with names_infinite_columns(X):
        X = validate_data(estimator, X, **arguments | settings)
    return _cast_to_floats(X) if sparse.issparse(X) else X


def validate_rows_and_target(estimator, X, y, **settings):
    """Rows, targets in NumPy, and names of columns; sets nothing on the estimator."""
    of_classes = is_classifier(estimator)
    arguments = {"dtype": [np.float64, np.float32]}
    if type(y) is not np.ndarray or y.dtype.kind == "O":
        y = target_array(y)
    if type(X) is not np.ndarray or X.dtype.kind not in NUMBERS:
        X, arguments = _prepare_rows(estimator, X)
    if y is not None:  # scikit-learn says that it must be given
        check_target(y, of_classes, settings.get("multi_output", False))
    holder = object.__new__(type(estimator))
    vars(holder).update(vars(estimator))
    arguments |= {"y_numeric": not of_classes, **settings}
    with names_infinite_columns(X):
        X, y = validate_data(holder, X, y, **arguments)
    return _cast_to_floats(X) if sparse.issparse(X) else X, y, names_of(holder)


def names_of(estimator):
    """The number of columns, and their names if they have any, as fitted attributes."""
    fitted = vars(estimator)
    names = {"n_features_in_": fitted["n_features_in_"]}
    if "feature_names_in_" in fitted:
        names["feature_names_in_"] = fitted["feature_names_in_"]
    return names


def _prepare_rows(estimator, X):
    """Rows that scikit-learn can validate, and the arguments for that."""
    X = frame_of_arrow(X)
    check_columns(X)
    namespace = namespace_of(X) if is_foreign(X) else np
    takes_sparse = get_tags(estimator).input_tags.sparse
    return sum_duplicates(X), {
        "dtype": [namespace.float64, namespace.float32],
        "accept_sparse": "csr" if takes_sparse else False,
    }


def frame_of_arrow(X):
    """A table of Arrow as a DataFrame of pandas; other data as they are."""
    is_of_arrow = hasattr(X, "column_names") and hasattr(X, "to_pandas")
    return X.to_pandas() if is_of_arrow else X


def sum_duplicates(X):
    """A sparse matrix that stores each entry once, in the format of the one passed.

    A table of Arrow becomes a DataFrame.
    """
    X = frame_of_arrow(X)
    # scikit-learn would not cast sparse columns of booleans.
    if has_sparse_columns(X) and any(dtype.kind == "b" for dtype in X.dtypes):
        return X.astype(type(X.dtypes.iloc[0])(np.float64, 0.0))
    if not sparse.issparse(X) or getattr(X, "has_canonical_format", True):
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _cast_to_floats(X):
    """A validated matrix; a DataFrame of sparse columns keeps the dtype of these."""
    return sum_duplicates(X if X.dtype.kind == "f" else X.astype(np.float64))


def has_sparse_columns(X):
    """Whether X is a DataFrame of pandas whose columns are all sparse."""
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and hasattr(X, "sparse")


def check_has_rows(X):
    """Raise where X has no rows: None, a number, a string, a set, a dict, one row."""
    if X is None:
        raise ValueError("X is None: pass an array or a table with a row per sample.")
    # Sparse matrices of keys are mappings too.
    if isinstance(X, Mapping) and not sparse.issparse(X):
        of_columns = X and all(np.ndim(values) for values in X.values())
        frame = "pandas.DataFrame(X)" if of_columns else "pandas.DataFrame([X])"
        of_what = "columns" if of_columns else "one row"
        raise ValueError(
            "X must be an array or a table with a row per sample, got a dict: for a "
            f"dict of {of_what} pass {frame}."
        )
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        raise ValueError(
            "X must be an array or a table with a row per sample, got a list of dicts: "
            "pass pandas.DataFrame(X)."
        )
    if hasattr(X, "to_frame") and getattr(X, "ndim", 1) == 1:  # a Series
        raise ValueError(
            "Expected a 2-dimensional container, a table with a row per sample, got a "
            f"{type(X).__name__}: pass X.to_frame() for one column, or "
            "X.to_frame().T for one row of pandas."
        )
    if isinstance(X, str | bytes | Number | Set):
        raise ValueError(
            "X must be an array or a table with a row per sample, got an object of the "
            f"type {type(X).__name__}."
        )


def check_columns(X, skipped=()):
    """Raise where columns hold values that are no real numbers, and could be cast.

    ``skipped`` are names of dtypes of pandas that need not be numbers.
    """
    check_has_rows(X)
    if getattr(getattr(X, "dtype", None), "kind", "O") in NUMBERS:
        return
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:  # a DataFrame of pandas
        for name, column in X.items():  # of which several may have the same name
            is_number = getattr(column.dtype, "kind", "O") in NUMBERS
            if not is_number and getattr(column.dtype, "name", "") not in skipped:
                check_numbers(np.asarray(column), f"Column {name!r} of X")
    elif hasattr(X, "get_columns"):  # of polars
        for name, dtype in X.schema.items():
            if not (dtype.is_numeric() or str(dtype) in ("Boolean", "Null")):
                check_numbers(X[name].to_numpy(), f"Column {name!r} of X")
                raise ValueError(f"Column {name!r} of X must be numbers, got {dtype}.")
    elif not is_foreign(X):
        check_numbers(X.data if sparse.issparse(X) else _as_array(X, "X"), "X")


def _as_array(values, name):
    """Values as an array of NumPy; ValueError where rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} cannot be converted to an array, for example because rows differ "
            f"in length: {error}"
        ) from error


def check_numbers(array, name):
    """Raise where an array holds anything but real numbers and missing values."""
    held = not_numbers(array)
    if held is not None:
        raise held.error(f"{name} must be numbers, got {held.what}.")


def number_array(values, name):
    """Real numbers as an array in double precision; ValueError for anything else."""
    array = _as_array(values, name)
    check_numbers(array, name)
    return array.astype(np.float64)


# What values of a type are called, the first that fits.
DATES = "dates or durations: convert them to numbers"
# In the words that scikit-learn's checks expect.
COMPLEX = "complex ones: Complex data not supported"
CALLED = {
    (date, timedelta, np.datetime64, np.timedelta64): DATES,
    (complex, np.complexfloating): COMPLEX,
}


class Held(NamedTuple):
    """What an array should not hold, and the error that scikit-learn raises of it."""

    what: str
    error: type = ValueError


def not_numbers(array):
    """What an array holds besides real numbers and missing values; None if nothing."""
    kind = array.dtype.kind
    if kind in NUMBERS or not array.size:
        return None
    if kind in "mM":
        return Held(DATES)
    if kind == "c":
        return Held(COMPLEX)
    if kind == "V":
        names = ", ".join(map(repr, array.dtype.names or ()))
        return Held(f"records with the fields {names}: pass one of these as numbers")
    types = _types(array)
    odd_types = {type_ for type_ in types if not issubclass(type_, REAL)}
    for entry in array.flat if odd_types else ():
        if isinstance(entry, str | bytes):
            return Held(f"strings such as {str(entry)!r}")
        if type(entry) in odd_types and not is_missing(entry):
            for kinds, what in CALLED.items():
                if isinstance(entry, kinds):
                    return Held(what)
            what = f"objects of the type {type(entry).__name__}"
            return Held(f"{what}: an argument must be a string or a number", TypeError)
    # Integers that do not fit into 64 bits are objects.
    if any(issubclass(type_, int) for type_ in types):
        largest = max(abs(entry) for entry in array.flat if isinstance(entry, int))
        if largest > sys.float_info.max:
            return Held(f"an integer beyond {sys.float_info.max:.1e}")
    return None


@contextmanager
def names_infinite_columns(X):
    """Errors of infinite entries of X name their columns."""
    try:
        yield
    except ValueError as error:
        messages = "X contains infinity", "contains `inf`"  # XGBoost's
        is_infinite = any(message in str(error) for message in messages)
        columns = infinite_columns(X) if is_infinite else []
        if not columns:
            raise
        more = f" and {len(columns) - 3} others" if len(columns) > 3 else ""
        raise ValueError(
            f"X contains infinity, or too large numbers, in column {columns[0]!r}"
            f"{''.join(f', {column!r}' for column in columns[1:3])}{more}: "
            "replace them by numbers, or by NaN if missing values are supported."
        ) from error


def infinite_columns(X):
    """Names, or numbers, of columns with infinite entries, or else too large ones."""
    names = list(getattr(X, "columns", range(shape_of(X)[1])))
    if sparse.issparse(X):
        entries = X.tocoo()
        columns, sizes = entries.col, np.abs(entries.data)
    else:
        array = np.asarray(on_host(X))
        if array.dtype.kind not in NUMBERS:
            rows = [
                [value if isinstance(value, Real) else 0.0 for value in row]
                for row in array.tolist()
            ]
            array = np.array(rows, dtype=np.float64)
        columns, sizes = np.arange(len(names)), np.abs(array).max(axis=0, initial=0)
    # Trees of scikit-learn have single precision.
    is_bad = np.isinf(sizes)
    is_bad = is_bad if is_bad.any() else sizes > np.finfo(np.float32).max
    return [names[column] for column in np.unique(columns[is_bad])]


def shape_of(X):
    """The shape of X, which may not be an array."""
    check_has_rows(X)
    return X.shape if hasattr(X, "shape") else _as_array(X, "X").shape


def check_sizes(X, y):
    """Raise where sums of squares of X, or of numbers in y, would be no numbers."""
    entries = X.data if sparse.issparse(X) else X
    namespace = namespace_of(X) if is_foreign(X) else np
    if entries.shape[0]:
        check_size("X", float(namespace.min(entries)), float(namespace.max(entries)))
    if y.dtype.kind in "fiu":
        check_size("y", float(y.min()), float(y.max()))


def check_size(name, least, largest, limit=1e70):
    """Raise where squares of numbers between these overflow, or all underflow."""
    # Squares of squares, as in spectra and step sizes, are finite up to the limit.
    size = max(abs(least), abs(largest))
    if size > limit:
        raise ValueError(
            f"{name} has entries as large as {size:.1g}, and sums of their squares "
            f"overflow: divide {name} by a number of about that size."
        )
    if 0 < size < 1 / limit:
        raise ValueError(
            f"The largest entry of {name} is {size:.1g}, and squares of such numbers "
            f"underflow: divide {name} by a number of about that size."
        )


# ------------------------------------------------------------------- targets


def check_is_no_name(values, name):
    """Raise where the name of a column was passed in the place of its values."""
    if isinstance(values, str):
        raise ValueError(
            f"{name} must have an entry for each row, got the string {values!r}: pass "
            f"{name}=X[{values!r}] for a column of X."
        )


def target_array(y):
    """Targets as an array of NumPy with the dtype of their values, or None."""
    check_is_no_name(y, "y")
    y = on_host(y)
    if y is None:
        return y
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix: pass y.toarray().")
    array = _as_array(y, "y")
    if array.ndim == 0:
        raise ValueError(
            f"y must have a target for each row, got an object of the type {type(y)}."
        )
    # Columns of pandas or Arrow that may have missing values, and lists, can become
    # arrays of objects.
    is_of_numbers = array.dtype.kind == "O" and all(
        issubclass(entry, Number | np.bool_) for entry in _types(array)
    )
    if not is_of_numbers or has_missing(array):
        return array
    array = np.array(array.tolist()).reshape(array.shape)
    if array.dtype.kind != "O":
        return array
    check_numbers(array, "y")
    return array.astype(np.float64)  # decimal numbers, say


def is_indicator(array):
    """Whether an array has, by 0 and 1, which of several labels a row has."""
    has_labels = array.ndim == 2 and array.shape[1] > 1
    return has_labels and array.dtype.kind in NUMBERS and np.isin(array, (0, 1)).all()


def check_target(y, of_classes, multi_output=True):
    """Raise where targets are missing or not numbers, or labels of several types."""
    array = y if type(y) is np.ndarray else _as_array(y, "y")
    if not array.size:
        raise ValueError("y is empty: it must have a target for each row.")
    if array.dtype.names:
        raise ValueError(
            "y is a structured array, with the fields "
            f"{', '.join(map(repr, array.dtype.names))}, such as censored survival "
            "times: TrajectoryCoxRegressor is fitted to these, other models to one of "
            "the fields as an array."
        )
    check_complete(array)
    takes_columns = multi_output and (not of_classes or is_indicator(array))
    if array.ndim == 2 and array.shape[1] > 1 and not takes_columns:
        label = "label" if of_classes else "number"
        inner = "MultiOutputClassifier" if of_classes else "MultiOutputRegressor"
        raise ValueError(
            f"y should be a 1d array, one {label} for each row, got an array of shape "
            f"{array.shape}: fit a model for each column, as {inner} of "
            "sklearn.multioutput does."
        )
    if of_classes:
        check_labels(array)
        # Fractions are refused by scikit-learn, as they are no labels.
        if (
            array.ndim == 1
            and array.dtype.kind in "iuf"
            and (np.trunc(array) == array).all()
        ):
            n_classes = len(np.unique(array))
            if n_classes > max(20, len(array) / 3):
                raise ValueError(
                    f"y has {n_classes} different numbers in {len(array)} rows, too "
                    "many to be classes: use a regressor."
                )
    elif array.dtype.kind not in NUMBERS:
        check_numbers(array, "y")


def check_labels(labels):
    """Raise where labels are not strings, or real numbers, of one type."""
    if labels.dtype.kind == "T":
        raise ValueError(
            "y has labels of NumPy's StringDType, which scikit-learn does not "
            "support: pass y.astype(str)."
        )
    held = None if labels.dtype.kind in "US" else not_numbers(labels)
    if held is not None and not held.what.startswith("strings"):
        raise held.error(
            f"y must be labels, strings or whole numbers, got {held.what}."
        )
    check_one_type(labels, "y")


def check_complete(y):
    """Raise where some targets of an array are missing."""
    if has_missing(y):
        hint = ""
        if y.ndim == 2 and y.shape[1] > 1:
            hint = (
                " If y has several targets, SelfStoppingRegressor and "
                "TrajectoryEarlyStoppingCV(model) fit a regressor to each target, on "
                "the rows that have it."
            )
        raise ValueError(
            "Input y contains NaN or None: drop the rows without a target from X and "
            f"y.{hint}"
        )


def validate_target(y, of_classes):
    """Targets alone: labels, or finite numbers."""
    y = target_array(y)
    check_target(y, of_classes)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    return y


def has_missing(array):
    """Whether some entries are NaN, None, or missing values of pandas."""
    if array.dtype.kind == "f":
        return bool(np.isnan(array).any())
    if array.dtype.kind != "O" or _types(array) <= NEVER_MISSING:
        return False
    return any(map(is_missing, array.flat))


def _types(array):
    return set(map(type, array.flat))


def is_missing(value):
    """Whether an object is None, or not equal to itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA has no truth value
        return True


def check_one_type(labels, name):
    """Raise where only some labels are strings: they have no order."""
    if labels.dtype.kind != "O":
        return
    if len({issubclass(entry, str) for entry in _types(labels)}) > 1:
        raise ValueError(
            f"{name} mixes labels that are strings with others: convert them to one "
            f"type, for example by {name}.astype(str)."
        )


# --------------------------------------------------------- weights and groups


def validate_weights(sample_weight, n_rows):
    """A weight for every row, in double precision; ones for None."""
    if sample_weight is None:
        return np.ones(n_rows)
    check_is_no_name(sample_weight, "sample_weight")
    weights = number_array(on_host(sample_weight), "sample_weight")
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.ndim != 1:
        raise ValueError(
            "sample_weight must be one number for each row, or a single number for "
            f"all, got an array of shape {weights.shape}."
        )
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weights)} numbers, but there are {n_rows} rows: "
            "inconsistent numbers of samples."
        )
    assert_all_finite(weights, input_name="sample_weight")
    if (weights < 0).any():
        raise ValueError(
            "Negative values in sample_weight: weights must not be negative, got "
            f"{weights.min():.6g}."
        )
    return weights


def validate_offset(offset, n_rows, counted=None):
    """The offset of every row, (n_rows,); of a number, that of every row.

    Shapes: counted (n_rows,), bool: offsets of other rows are zero; None: all count.
    """
    check_is_no_name(offset, "offset")
    offset = number_array(on_host(offset), "offset")
    if offset.ndim == 0:
        offset = np.full(n_rows, offset)
    if offset.shape == (n_rows, 1):
        offset = offset[:, 0]
    if offset.ndim != 1:
        raise ValueError(
            "offset must be one number for each row, or a single number for all, got "
            f"an array of shape {offset.shape}."
        )
    if len(offset) != n_rows:
        raise ValueError(
            f"offset has {len(offset)} numbers, but there are {n_rows} rows: "
            "inconsistent numbers of samples."
        )
    if counted is not None:
        offset = np.where(counted, offset, 0.0)
    if np.isneginf(offset).any():
        raise ValueError(
            f"offset is -inf in row {np.argmin(offset)}, the logarithm of an exposure "
            "of zero: leave such rows out, or fit them with a weight of zero."
        )
    assert_all_finite(offset, input_name="offset")
    return offset


def rows_that_count(sample_weight, n_rows):
    """The rows of positive weight, and their weights: None where these are the same.

    Shapes: sample_weight (n_rows,), a number or None; both returned (n_counted,).
    """
    weights = validate_weights(sample_weight, n_rows)
    rows = np.flatnonzero(weights)
    if not rows.size:
        raise ValueError("sample_weight is zero on all rows.")
    weights = weights[rows]
    return rows, None if (weights == weights[0]).all() else weights


def replace_weightless_rows(weights, *arrays):
    """Arrays of which rows of weight zero are copies of another row.

    Nobody reads them: labels, levels and numbers that no other row has are none, and
    all rows keep their numbers. Shapes: weights (n_rows,).
    """
    counted = np.flatnonzero(weights)
    if len(counted) in (0, len(weights)):
        return arrays
    rows = np.where(weights > 0, np.arange(len(weights)), counted[0])
    return tuple(_safe_indexing(array, rows) for array in arrays)


def copies_of(weights):
    """How many rows each row counts for: its weight, if weights say numbers of copies.

    They do where they are whole multiples of the least; otherwise each counts for one.
    """
    ratios = weights / weights.min()
    copies = np.rint(ratios)
    are_whole = np.abs(ratios - copies).max() < 1e-6
    return copies if are_whole else np.ones(len(weights))


def validate_groups(groups, n_rows):
    """The group of every row, for splitters."""
    check_is_no_name(groups, "groups")
    groups = _as_array(on_host(groups), "groups")
    if groups.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"groups must be one label for each of the {n_rows} rows, got an array of "
            f"shape {groups.shape}."
        )
    groups = groups.ravel()
    if has_missing(groups):
        raise ValueError(
            "groups has missing values (None or NaN): give every row a group; a row "
            "that belongs to no other forms its own group."
        )
    check_one_type(groups, "groups")
    return groups
