"""Folds of rows on workers: the fold that holds out every row.

Consecutive folds are those of scikit-learn's ``KFold`` and ``StratifiedKFold``, the
same as in memory. Shuffled ones are drawn block by block, so that no worker needs to
know of the rows of another: every block has its share of each fold, and of each class.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold, check_cv

from .._estimator.estimates.folds import ShuffledFolds


@dataclass(frozen=True, eq=False)
class Labels:
    """Which labels there are, and where.

    Attributes
    ----------
    values : ndarray of shape (n_labels,), sorted, or None
        None where nothing is stratified, and all rows count as of one label.
    first : ndarray of int, shape (n_labels,)
        The row at which each comes first.
    counts : ndarray of int, shape (n_blocks, n_labels)
    weight : ndarray of shape (n_labels,) or None
        Weight of all of its rows.
    """

    values: np.ndarray | None
    first: np.ndarray
    counts: np.ndarray
    weight: np.ndarray | None

    @classmethod
    def alike(cls, sizes):
        """One label for all rows, of blocks of these sizes."""
        return cls(None, np.zeros(1, int), np.asarray(sizes)[:, None], None)

    def numbers(self, block):
        """The number of the label of every row of a block."""
        if self.values is None:
            return np.zeros(len(block.y), int)
        return np.searchsorted(self.values, np.ravel(block.y))


@dataclass(frozen=True, eq=False)
class Consecutive:
    """Folds of consecutive rows, of every label by itself.

    Attributes
    ----------
    labels : Labels
    """

    labels: Labels
    n_folds: int

    def numbers(self, block):
        """The fold that holds out every row of a block."""
        label, counts = self.labels.numbers(block), self.labels.counts
        ends = np.cumsum(self._sizes(), axis=0)
        before = counts[: block.number].sum(axis=0)
        found = np.empty(len(label), np.int32)
        for k in range(counts.shape[1]):
            own = np.flatnonzero(label == k)
            place = before[k] + np.arange(len(own))
            found[own] = np.searchsorted(ends[:, k], place, side="right")
        return found

    def _sizes(self):
        """Rows that every fold has of each label, (n_folds, n_labels).

        With labels in the order in which they come, and rows sorted by them, fold k has
        the rows k, k + n_folds, ...: so says ``StratifiedKFold``.
        """
        totals, order = self.labels.counts.sum(axis=0), np.argsort(self.labels.first)
        ends = np.cumsum(totals[order])
        folds = np.arange(self.n_folds)[:, None]
        # How many of the first m rows are of fold k.
        until = (ends - folds + self.n_folds - 1) // self.n_folds
        begun = np.concatenate(
            [np.zeros((self.n_folds, 1), int), until[:, :-1]], axis=1
        )
        found = np.empty_like(until)
        found[:, order] = until - begun
        return found


@dataclass(frozen=True, eq=False)
class DrawnByBlock:
    """Folds drawn at random in every block, of every label by itself.

    Attributes
    ----------
    labels : Labels
    seed : int
        With the number of a block it draws the folds of its rows.
    """

    labels: Labels
    n_folds: int
    seed: int

    def numbers(self, block):
        """The fold that holds out every row of a block."""
        label = self.labels.numbers(block)
        rng = np.random.default_rng([self.seed, block.number])
        found = np.empty(len(label), np.int32)
        for k in range(self.labels.counts.shape[1]):
            own = rng.permutation(np.flatnonzero(label == k))
            begin = rng.integers(self.n_folds)
            found[own] = (begin + np.arange(len(own))) % self.n_folds
        return found


def folds_of(cv, labels, sizes):
    """The numbering of the folds of rows, None without folds.

    Parameters
    ----------
    cv : int, KFold, StratifiedKFold or None
        As an estimator has it.
    labels : Labels or None
        Labels of a classifier.
    sizes : ndarray of int
        Rows of every block.

    Returns
    -------
    Consecutive, DrawnByBlock or None

    Raises
    ------
    ValueError
        If they cannot be numbered block by block.
    """
    if cv is None:
        return None
    splitter = _splitter(cv, labels is not None)
    is_drawn = isinstance(splitter, ShuffledFolds)
    # A subclass may split otherwise.
    is_known = is_drawn or type(splitter) in (KFold, StratifiedKFold)
    shuffles = is_drawn or getattr(splitter, "shuffle", False)
    seed = 0 if is_drawn else getattr(splitter, "random_state", None)
    if not is_known or (shuffles and not isinstance(seed, int | np.integer)):
        raise ValueError(
            f"cv={cv!r} cannot be drawn block by block: for Dask input take a number "
            "of folds, KFold or StratifiedKFold, with an integer random_state if they "
            "shuffle."
        )
    stratifies = isinstance(splitter, StratifiedKFold) or (
        is_drawn and splitter.stratified
    )
    n_folds, n_rows = splitter.get_n_splits(), int(np.sum(sizes))
    if n_folds > n_rows:
        raise ValueError(f"There are {n_rows} rows, too few for {n_folds} folds.")
    if labels is None or not stratifies:
        labels = Labels.alike(sizes)
    if shuffles:
        return DrawnByBlock(labels, n_folds, int(seed))
    return Consecutive(labels, n_folds)


def _splitter(cv, is_classifier):
    """As scikit-learn takes it; a number of folds stratifies for a classifier."""
    return check_cv(cv, [0, 1] if is_classifier else None, classifier=is_classifier)
