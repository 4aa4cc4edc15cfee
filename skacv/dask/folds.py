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
class LabelCounts:
    """Sorted labels: the first row of each, its rows in every block, their weight.

    Without stratification all rows have one label, and ``values`` is None.

    Shapes: values, first, weight (n_labels,); counts (n_blocks, n_labels).
    """

    values: np.ndarray | None
    first: np.ndarray
    counts: np.ndarray
    weight: np.ndarray | None

    def numbers(self, block):
        """The index of the label of every row of a block."""
        if self.values is None:
            return np.zeros(len(block.y), int)
        return np.searchsorted(self.values, np.ravel(block.y))


@dataclass(frozen=True, eq=False)
class Consecutive:
    """Folds of consecutive rows, for every label by itself."""

    labels: LabelCounts
    n_folds: int

    def numbers(self, block):
        """The fold that holds out every row of a block."""
        label, counts = self.labels.numbers(block), self.labels.counts
        ends = np.cumsum(self._sizes(), axis=0)
        before = counts[: block.number].sum(axis=0)
        fold = np.empty(len(label), np.int32)
        for k in range(counts.shape[1]):
            rows = np.flatnonzero(label == k)
            rank = before[k] + np.arange(len(rows))
            fold[rows] = np.searchsorted(ends[:, k], rank, side="right")
        return fold

    def _sizes(self):
        """Number of rows of each label in every fold, (n_folds, n_labels).

        As in ``StratifiedKFold``, fold k has the rows k, k + n_folds, ... if rows are
        sorted by labels, and labels by their first rows.
        """
        totals, order = self.labels.counts.sum(axis=0), np.argsort(self.labels.first)
        ends = np.cumsum(totals[order])
        folds = np.arange(self.n_folds)[:, None]
        # How many of the first m rows are of fold k.
        until = (ends - folds + self.n_folds - 1) // self.n_folds
        begun = np.concatenate(
            [np.zeros((self.n_folds, 1), int), until[:, :-1]], axis=1
        )
        sizes = np.empty_like(until)
        sizes[:, order] = until - begun
        return sizes


@dataclass(frozen=True, eq=False)
class DrawnByBlock:
    """Folds that ``seed`` and the number of a block draw, for every label by itself."""

    labels: LabelCounts
    n_folds: int
    seed: int

    def numbers(self, block):
        """The fold that holds out every row of a block."""
        label = self.labels.numbers(block)
        rng = np.random.default_rng([self.seed, block.number])
        fold = np.empty(len(label), np.int32)
        for k in range(self.labels.counts.shape[1]):
            rows = rng.permutation(np.flatnonzero(label == k))
            begin = rng.integers(self.n_folds)
            fold[rows] = (begin + np.arange(len(rows))) % self.n_folds
        return fold


def number_folds(cv, labels, sizes):
    """The folds of ``cv``, which number the rows of a block; None without folds.

    ``labels`` are those of a classifier, else None. Shapes: sizes (n_blocks,).
    """
    if cv is None:
        return None
    # A number of folds stratifies for a classifier.
    is_classifier = labels is not None
    target = [0, 1] if is_classifier else None
    splitter = check_cv(cv, target, classifier=is_classifier)
    is_drawn = isinstance(splitter, ShuffledFolds)
    # A subclass may split otherwise.
    is_supported = is_drawn or type(splitter) in (KFold, StratifiedKFold)
    shuffles = is_drawn or getattr(splitter, "shuffle", False)
    seed = 0 if is_drawn else getattr(splitter, "random_state", None)
    if not is_supported or (shuffles and not isinstance(seed, int | np.integer)):
        raise ValueError(
            f"cv={cv!r} cannot be drawn block by block: for Dask input use a number "
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
        # One label for all rows.
        labels = LabelCounts(None, np.zeros(1, int), np.asarray(sizes)[:, None], None)
    if shuffles:
        return DrawnByBlock(labels, n_folds, int(seed))
    return Consecutive(labels, n_folds)
