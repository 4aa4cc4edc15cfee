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
class FoldsByBlock:
    """Folds of every label by itself: of consecutive rows, or drawn in every block.

    Attributes
    ----------
    labels : Labels
    seed : int or None
        With the number of a block it draws the folds of its rows. None: consecutive.
    """

    labels: Labels
    n_folds: int
    seed: int | None

    def numbers(self, block):
        """The fold that holds out every row of a block."""
        label, counts = self.labels.numbers(block), self.labels.counts
        found = np.empty(len(label), np.int32)
        if self.seed is None:
            ends, before = self._ends(), counts[: block.number].sum(axis=0)
        else:
            rng = np.random.default_rng([self.seed, block.number])
        for k in range(counts.shape[1]):
            own = np.flatnonzero(label == k)
            place = np.arange(len(own))
            if self.seed is None:
                found[own] = np.searchsorted(ends[:, k], before[k] + place, "right")
            else:
                own = rng.permutation(own)
                found[own] = (rng.integers(self.n_folds) + place) % self.n_folds
        return found

    def _ends(self):
        """Where consecutive folds end among the rows of a label, (n_folds, n_labels).

        With labels in the order in which they come, and rows sorted by them, fold k has
        the rows k, k + n_folds, ...: so says ``StratifiedKFold``.
        """
        totals, order = self.labels.counts.sum(axis=0), np.argsort(self.labels.first)
        rows, folds = np.cumsum(totals[order]), np.arange(self.n_folds)[:, None]
        # How many of the first m rows are of fold k.
        until = (rows - folds + self.n_folds - 1) // self.n_folds
        sizes = np.empty_like(until)
        sizes[:, order] = np.diff(until, axis=1, prepend=0)
        return np.cumsum(sizes, axis=0)


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
    FoldsByBlock or None

    Raises
    ------
    ValueError
        If they cannot be numbered block by block.
    """
    if cv is None:
        return None
    has_classes = labels is not None  # for which a number of folds stratifies
    splitter = check_cv(cv, [0, 1] if has_classes else None, classifier=has_classes)
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
    stratifies = splitter.stratified if is_drawn else type(splitter) is StratifiedKFold
    n_folds, n_rows = splitter.get_n_splits(), int(np.sum(sizes))
    if n_folds > n_rows:
        raise ValueError(f"There are {n_rows} rows, too few for {n_folds} folds.")
    if labels is None or not stratifies:
        labels = Labels.alike(sizes)
    return FoldsByBlock(labels, n_folds, int(seed) if shuffles else None)
