"""Shares of the classes in every row, such as probabilities, in the place of labels."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

from .checks import (
    NUMBERS,
    frame_of_arrow,
    has_missing,
    target_array,
    validate_weights,
)

# How far shares of a row may add up to something else than one, for rounding.
ROUNDING = 1e-5


@dataclass(frozen=True, eq=False)
class ClassShares:
    """Shares of the classes in every row, which add up to one."""

    values: np.ndarray  # (n_rows, n_classes)
    # Sorted: the names of columns of a table, otherwise numbers.
    classes: np.ndarray

    @property
    def likeliest(self):
        """The number of the class with the largest share, of every row."""
        return self.values.argmax(axis=1)

    def of_rows(self, rows):
        """Some of the rows: shares of the second class, where there are two.

        Shapes: returned (n_rows,) or (n_rows, n_classes)."""
        values = self.values[rows]
        return values[:, 1] if len(self.classes) == 2 else values

    def check_has_all(self, sample_weight):
        """Raise if some classes have no share in rows of positive weight."""
        totals = np.asarray(sample_weight) @ self.values
        lacking = [str(self.classes[k]) for k in np.flatnonzero(totals == 0)]
        if lacking:
            raise ValueError(
                f"In y the shares of the classes {', '.join(lacking)} are zero in all "
                "rows (of positive sample_weight): drop these columns."
            )


def shares_of(y: Any, one_hot: bool = False) -> ClassShares | None:
    """Shares of classes; None if y has anything else, such as labels.

    Shares are fractions, at least one of which is not whole, in two forms: numbers from
    0 to 1 are shares of the second of two classes, 0 and 1; several columns are those
    of all classes. ``one_hot`` says whether columns of whole numbers of which one in
    each row is 1 are shares too; otherwise they say which of several labels rows have.

    Raises
    ------
    ValueError
        If columns of fractions are negative somewhere or do not add up to one.
    """
    table = frame_of_arrow(y)
    values = target_array(table)
    if values is None or values.dtype.kind not in NUMBERS or has_missing(values):
        return None
    is_matrix = values.ndim == 2 and values.shape[1] > 1
    are_whole = bool((values == np.trunc(values)).all())
    if not values.size or not (is_matrix or values.size == len(values)):
        return None
    values = values.astype(np.float64)
    if not is_matrix:
        values = values.ravel()
        if are_whole or not (values.min() >= 0 and values.max() <= 1):
            return None
        return ClassShares(np.stack([1 - values, values], axis=1), np.arange(2))
    sums = values.sum(axis=1)
    is_wrong = (values < 0).any(axis=1) | ~(np.abs(sums - 1) <= ROUNDING)
    if are_whole and (is_wrong.any() or not one_hot):
        return None
    if is_wrong.any():
        row = int(np.argmax(is_wrong))
        raise ValueError(
            "y has columns of fractions, which for a classifier are the shares of its "
            "classes in every row: they must not be negative, and add up to one, but "
            f"row {row} has {values[row].tolist()}."
        )
    names = np.asarray(list(getattr(table, "columns", range(values.shape[1]))))
    classes, order = np.unique(names, return_index=True)
    if len(classes) < len(names):
        raise ValueError(
            f"y has several columns of one name, but one for each class: {[*names]}."
        )
    return ClassShares(values[:, order] / sums[:, None], classes)


def share_of_labels(shares, labels, classes, sample_weight):
    """The mean share of the labels that are predicted for the rows.

    Shapes: labels (n_rows,), of ``classes``; sample_weight (n_rows,) or None."""
    check_consistent_length(shares.values, labels)
    check_has_classes(shares, classes)
    rows, number = np.arange(len(labels)), np.searchsorted(classes, labels)
    weights = validate_weights(sample_weight, len(labels))
    return float(np.average(shares.values[rows, number], weights=weights))


def check_has_classes(shares, classes):
    """Raise if shares are of others than the classes of a fit."""
    if len(shares.classes) != len(classes):
        raise ValueError(
            f"y has shares of {len(shares.classes)} classes, but fit had "
            f"{len(classes)}."
        )
