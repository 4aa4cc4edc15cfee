"""Checks of what users pass, where it enters: rows, targets, weights and groups.

NumPy casts more than a user means: None to NaN, strings of numbers and dates to
numbers. Values that are not numbers are refused here, before anything is computed.
"""

from numbers import Number

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
NAMES = ("n_features_in_", "feature_names_in_")


# ---------------------------------------------------------------------- rows


def validated_rows(estimator, X, **settings):
    """Rows as scikit-learn validates them, in floating point; sparse ones are CSR."""
    arguments = {"dtype": [np.float64, np.float32]}
    if type(X) is not np.ndarray or X.dtype.kind not in NUMBERS:
        X, arguments = _to_validate(estimator, X)
    X = validate_data(estimator, X, **arguments | settings)
    return _in_floating_point(X) if sparse.issparse(X) else X


def validated_data(estimator, X, y, **settings):
    """Rows, targets in NumPy, and names of columns; sets nothing on the estimator."""
    of_classes = is_classifier(estimator)
    arguments = {"dtype": [np.float64, np.float32]}
    if type(y) is not np.ndarray or y.dtype.kind == "O":
        y = target_array(y)
    if type(X) is not np.ndarray or X.dtype.kind not in NUMBERS:
        X, arguments = _to_validate(estimator, X)
    if y is not None:  # scikit-learn says that it must be given
        check_target(y, of_classes, settings.get("multi_output", False))
    holder = object.__new__(type(estimator))
    vars(holder).update(vars(estimator))
    arguments |= {"y_numeric": not of_classes, **settings}
    X, y = validate_data(holder, X, y, **arguments)
    return _in_floating_point(X) if sparse.issparse(X) else X, y, names_of(holder)


def names_of(estimator):
    """The number of columns, and their names if they have any, as fitted attributes."""
    fitted = vars(estimator)
    names = {"n_features_in_": fitted["n_features_in_"]}
    if "feature_names_in_" in fitted:
        names["feature_names_in_"] = fitted["feature_names_in_"]
    return names


def _to_validate(estimator, X):
    """Rows that scikit-learn can validate, and the arguments for that."""
    check_columns(X)
    namespace = namespace_of(X) if is_foreign(X) else np
    takes_sparse = get_tags(estimator).input_tags.sparse
    return summed(X), {
        "dtype": [namespace.float64, namespace.float32],
        "accept_sparse": "csr" if takes_sparse else False,
    }


def summed(X):
    """A sparse matrix that stores each entry once, in the format of the one passed."""
    # scikit-learn would not cast sparse columns of booleans.
    if has_sparse_columns(X) and any(dtype.kind == "b" for dtype in X.dtypes):
        return X.astype(type(X.dtypes.iloc[0])(np.float64, 0.0))
    if not sparse.issparse(X) or getattr(X, "has_canonical_format", True):
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _in_floating_point(X):
    """A validated matrix; a DataFrame of sparse columns keeps the dtype of these."""
    return summed(X if X.dtype.kind == "f" else X.astype(np.float64))


def has_sparse_columns(X):
    """Whether X is a DataFrame of pandas whose columns are all sparse."""
    return hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2 and hasattr(X, "sparse")


def check_columns(X):
    """Raise where columns hold strings, dates or durations that could be cast."""
    if getattr(getattr(X, "dtype", None), "kind", "O") in NUMBERS:
        return
    if hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2:  # a DataFrame of pandas
        for name, column in X.items():  # of which several may have the same name
            if getattr(column.dtype, "kind", "O") not in NUMBERS:
                check_numbers(np.asarray(column), f"Column {name!r} of X")
    elif X is not None and not is_foreign(X):
        check_numbers(_as_array(X), "X")


def _as_array(values):
    """Values as an array of NumPy; an empty one where rows differ in length."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.empty(0)  # scikit-learn says what is wrong with them


def check_numbers(array, name):
    """Raise where an array holds strings, dates or durations."""
    kind = array.dtype.kind
    if kind in NUMBERS:
        return
    if kind in "mM":
        raise ValueError(
            f"{name} must be numbers, got dates or durations: pass numbers made of "
            "them."
        )
    if kind in "OUST":
        if any(issubclass(entry, str | bytes) for entry in _types(array)):
            strings = (entry for entry in array.flat if isinstance(entry, str | bytes))
            raise ValueError(
                f"{name} must be numbers, got strings such as {str(next(strings))!r}."
            )


def shape_of(X):
    """The shape of X, which may not be an array."""
    return X.shape if hasattr(X, "shape") else np.asarray(X).shape


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


def target_array(y):
    """Targets as an array of NumPy with the dtype of their values, or None."""
    y = on_host(y)
    if y is None:
        return y
    if sparse.issparse(y):
        raise ValueError("y is a sparse matrix: pass y.toarray().")
    array = _as_array(y)
    # Columns of pandas or Arrow that may have missing values, and lists, can become
    # arrays of objects.
    is_of_numbers = array.dtype.kind == "O" and all(
        issubclass(entry, Number | np.bool_) for entry in _types(array)
    )
    if not is_of_numbers or has_missing(array):
        return array
    array = np.array(array.tolist()).reshape(array.shape)
    # Decimal numbers, say, remain objects.
    return array.astype(np.float64) if array.dtype.kind == "O" else array


def is_indicator(array):
    """Whether an array has, by 0 and 1, which of several labels a row has."""
    has_labels = array.ndim == 2 and array.shape[1] > 1
    return has_labels and array.dtype.kind in NUMBERS and np.isin(array, (0, 1)).all()


def check_target(y, of_classes, multi_output=True):
    """Raise where targets are missing or not numbers, or labels of several types."""
    array = y if type(y) is np.ndarray else _as_array(y)
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
        check_one_type(array, "y")
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


def check_complete(y):
    """Raise where some targets of an array are missing."""
    if has_missing(y):
        raise ValueError(
            "Input y contains NaN or None: leave out the rows without a target, of X "
            "and of y."
        )


def validated_target(y, of_classes):
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
            f"{name} has labels that are strings and others that are not: give all of "
            f"them one type, such as by {name}.astype(str)."
        )


# --------------------------------------------------------- weights and groups


def validated_weights(sample_weight, n_rows):
    """A weight for every row, in double precision; ones for None."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = np.asarray(on_host(sample_weight))
    check_numbers(weights, "sample_weight")
    weights = weights.astype(np.float64)
    if weights.ndim == 0:
        weights = np.full(n_rows, weights)
    if weights.ndim != 1:
        raise ValueError(
            "sample_weight must be one number for each row, or a single number for "
            f"all, got an array of shape {weights.shape}."
        )
    if len(weights) != n_rows:
        raise ValueError(
            f"sample_weight has {len(weights)} numbers, and there are {n_rows} rows: "
            "these are inconsistent numbers of samples."
        )
    assert_all_finite(weights, input_name="sample_weight")
    if (weights < 0).any():
        raise ValueError(
            "Negative values in sample_weight: weights must not be negative, got "
            f"{weights.min():.6g}."
        )
    return weights


def rows_that_count(sample_weight, n_rows):
    """The rows of positive weight, and their weights: None where these are the same.

    Shapes: sample_weight (n_rows,), a number or None; both returned (n_counted,).
    """
    weights = validated_weights(sample_weight, n_rows)
    rows = np.flatnonzero(weights)
    if not rows.size:
        raise ValueError("sample_weight is zero on all rows.")
    weights = weights[rows]
    return rows, None if (weights == weights[0]).all() else weights


def with_stand_ins(weights, *arrays):
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


def validated_groups(groups, n_rows):
    """The group of every row, for splitters."""
    groups = _as_array(on_host(groups))
    if groups.shape not in ((n_rows,), (n_rows, 1)):
        raise ValueError(
            f"groups must be one label for each of the {n_rows} rows, got an array of "
            f"shape {groups.shape}."
        )
    groups = groups.ravel()
    if has_missing(groups):
        raise ValueError(
            "groups has missing values (None or NaN): give every row a group; a row "
            "that belongs to no other is a group of its own."
        )
    check_one_type(groups, "groups")
    return groups
