"""Queries, whose rows a ranker orders: read from what users pass to ``fit``.

Libraries have several words for them. Here every row has the number of its query, from
0 on in the order of the rows, as ``groups``: folds are of whole groups.
"""

import numpy as np
from sklearn.utils import get_tags

from ..._compat import _num_samples, check_in_memory, on_host
from .checks import check_has_rows, number_array, validate_groups, validate_weights

# Words with the query of every row, and that with the sizes of queries one after the
# other.
LABELS, SIZES = ("qid", "group_id", "groups"), "group"
WORDS = *LABELS, SIZES
# What calls show in messages.
HOW_TO_PASS = (
    "the query of every row as qid=..., or the numbers of rows of the queries, one "
    "after the other, as group=..."
)

# Why a ranker has neither intervals nor sets.
SCORES_ORDER = "its scores order rows, and are neither values of y nor probabilities"


def is_ranker(estimator):
    """Whether an estimator orders the rows of queries."""
    return get_tags(estimator).estimator_type == "ranker"


def rows_by_query(X, params, name, method="fit"):
    """Metadata with ``groups``, the numbers of queries, in the place of other words.

    Weights are of queries: rows of one have the same. ``name`` is that of the ranker.
    ValueError is raised if no queries are passed, or rows of one are not together.
    """
    check_in_memory(X)
    check_has_rows(X)
    n_rows = _num_samples(X)
    given = {word: params[word] for word in WORDS if params.get(word) is not None}
    if not given:
        of_column = ""
        if "qid" in getattr(X, "columns", ()):  # where XGBoost looks for it
            of_column = " The column 'qid' is no feature: drop it from X."
        raise ValueError(
            f"{name} orders the rows of queries, and {method} was passed none: pass "
            f"{HOW_TO_PASS}.{of_column}"
        )
    if len(given) > 1:
        raise ValueError(
            f"{method} was passed queries several times, as {' and as '.join(given)}: "
            "pass them once."
        )
    (word,) = given
    read = number_by_size if word == SIZES else number_by_label
    numbers = read(given[word], n_rows, word)
    rest = {key: value for key, value in params.items() if key not in WORDS}
    weights = rest.pop("group_weight", None)  # CatBoost's word
    if weights is None:
        weights = rest.get("sample_weight")
    elif rest.get("sample_weight") is not None:
        raise ValueError(f"{method} was passed weights twice: leave group_weight out.")
    if weights is not None:
        rest["sample_weight"] = weights_of_queries(weights, numbers)
    return {**rest, "groups": numbers}


def number_by_label(labels, n_rows, word):
    """The number of the query of every row, from a label for each."""
    try:
        labels = validate_groups(labels, n_rows)
    except ValueError as error:
        message = str(error).replace("groups must", f"{word} must")
        raise ValueError(message.replace("groups has", f"{word} has")) from None
    begins = np.r_[True, labels[1:] != labels[:-1]]
    of_runs, counts = np.unique(labels[begins], return_counts=True)
    if (counts > 1).any():
        apart = of_runs[counts > 1].tolist()[0]
        raise ValueError(
            f"Rows of a query must be together, but there are others between those of "
            f"{word}={apart!r}: order X, y and {word} by "
            f"np.argsort({word}, kind='stable')."
        )
    return np.cumsum(begins) - 1


def number_by_size(sizes, n_rows, word):
    """The number of the query of every row, from the sizes of queries in order."""
    sizes = number_array(on_host(sizes), word)
    are_sizes = ((sizes >= 1) & (sizes == np.floor(sizes))).all()
    if sizes.ndim != 1 or not are_sizes or sizes.sum() != n_rows:
        raise ValueError(
            f"{word} must be the numbers of rows of the queries, one after the other, "
            f"which sum up to the {n_rows} rows of X, got {len(np.atleast_1d(sizes))} "
            f"numbers with the sum {sizes.sum():g}. For the query of every row pass "
            "qid=... instead."
        )
    return np.repeat(np.arange(len(sizes)), sizes.astype(int))


def weights_of_queries(weights, numbers):
    """Weights of rows, the same in a query, from such weights or one for each query."""
    n_queries = numbers[-1] + 1
    if n_queries != len(numbers) and np.shape(weights) == (n_queries,):
        weights = validate_weights(weights, n_queries)[numbers]
    weights = validate_weights(weights, len(numbers))
    is_inside = numbers[1:] == numbers[:-1]
    if (np.diff(weights)[is_inside] != 0).any():
        raise ValueError(
            "sample_weight differs between rows of a query, but queries are weighed as "
            f"a whole: give all of its rows the same, or pass {n_queries} numbers, one "
            "for each query."
        )
    return weights


def sizes_by_row(numbers):
    """The number of rows of the query of every row."""
    return np.bincount(numbers)[numbers]


def check_folds_of_queries(folds, numbers):
    """Folds with their rows in order; ValueError where one has a part of a query.

    ``folds`` are pairs of the rows to fit on and those to hold out.
    """
    sizes, checked = np.bincount(numbers), []
    for number, fold in enumerate(folds):
        pair = []
        for rows in fold:
            rows = np.sort(rows)
            counts = np.bincount(numbers[rows], minlength=len(sizes))
            is_whole = (counts == 0) | (counts == sizes)
            if not is_whole.all() or (np.diff(rows) == 0).any():
                raise ValueError(
                    f"Fold {number} of cv has a part of the rows of a query, or a row "
                    "several times, but queries are ordered as a whole: use a splitter "
                    "of groups, such as GroupKFold()."
                )
            pair.append(rows)
        checked.append(tuple(pair))
    return checked
