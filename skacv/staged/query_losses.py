"""Losses of the order of rows in queries: one less a measure of how good it is.

A row has the loss of its query, and weighs one over the number of rows of it, so that
means over rows are means over queries. Rows of equal scores are in a random order: the
query has the mean over all of these, as in scikit-learn's ``ndcg_score`` (McSherry and
Najork 2008, "Computing information retrieval performance measures efficiently in the
presence of tied scores"). A query without a relevant row, in which no order is better
than another, has a loss of zero, as in LightGBM and XGBoost.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..optim.losses import Loss

# Relevances above have gains beside which all others vanish; libraries refuse them.
LARGEST_GRADE = 31


@dataclass(frozen=True)
class QueryLoss(Loss, ABC):
    """One less a measure of the first ``k`` rows of a query, or of all of them.

    Shapes: target (n_rows, 2, ...), relevances and the numbers of rows of the queries;
    predictor and values (n_rows, 1, ...). Queries are whole, one after the other.
    """

    k: int | None = 10
    is_coupled = True
    # The measure, as users name it.
    measure = ""

    @property
    def name(self):
        """Its name in figures."""
        return f"1 - {self.measure}{'' if self.k is None else f'@{self.k}'}"

    def value(self, target, predictor):
        relevance, sizes = target.reshape(len(target), 2).T
        scores = predictor.reshape(len(predictor), -1).T
        values = np.empty(scores.shape)
        for size in np.unique(sizes):
            # Rows of queries of this size: each row of ``rows`` is one of them.
            rows = np.flatnonzero(sizes == size).reshape(-1, int(size))
            values[:, rows] = self._of_queries(relevance[rows], scores[:, rows])
        return values.T.reshape(predictor.shape)

    def _of_queries(self, relevance, scores):
        """Losses of queries of the same size, (n_iterates, n_queries, 1).

        Shapes: relevance (n_queries, size), scores (n_iterates, n_queries, size).
        """
        order = np.argsort(-scores, axis=2, kind="stable")
        scores = np.take_along_axis(scores, order, axis=2)
        worth = np.broadcast_to(self.worth(relevance), scores.shape)
        worth = np.take_along_axis(worth, order, axis=2)
        losses = self.from_order(worth, Ties.of(scores))
        is_finite = np.isfinite(scores).all(axis=2)
        return np.where(is_finite, losses, np.nan)[:, :, None]

    @abstractmethod
    def worth(self, relevance):
        """What rows of relevances are worth, of the same shape."""

    @abstractmethod
    def from_order(self, worth, ties):
        """Losses (n_iterates, n_queries) of worths in the order of scores."""

    def check_target(self, target):
        relevance, sizes = target.T
        if (relevance < 0).any():
            raise ValueError(
                "Some values of y are negative, but a ranker needs relevances of zero "
                "and above."
            )
        worth = self.worth(relevance)
        for size in np.unique(sizes):
            of_queries = worth[sizes == size].reshape(-1, int(size))
            if np.ptp(of_queries, axis=1).any():
                return
        raise ValueError(
            "No query has rows of different relevance in y, so there is no order to "
            "learn."
        )


@dataclass(frozen=True, eq=False)
class Ties:
    """Rows of equal scores, in queries that are ordered by these.

    Shapes: (n_iterates, n_queries, size).
    """

    # The place of the first row with the score of each, and that after the last.
    begin: np.ndarray
    end: np.ndarray

    @classmethod
    def of(cls, scores):
        """Those of scores in descending order."""
        size = scores.shape[2]
        place = np.arange(size)
        is_first = np.ones(scores.shape, dtype=bool)
        is_first[..., 1:] = scores[..., 1:] != scores[..., :-1]
        begin = np.maximum.accumulate(np.where(is_first, place, 0), axis=2)
        is_last = np.ones(scores.shape, dtype=bool)
        is_last[..., :-1] = is_first[..., 1:]
        last = np.where(is_last, place, size)[..., ::-1]
        return cls(begin, np.minimum.accumulate(last, axis=2)[..., ::-1] + 1)

    def sums(self, values):
        """Sums of values over the rows before those of the same score, and over these.

        Sums over single rows are exact.
        """
        until = np.zeros((*values.shape[:2], values.shape[2] + 1))
        np.cumsum(values, axis=2, out=until[..., 1:])
        before = np.take_along_axis(until, self.begin, axis=2)
        together = np.take_along_axis(until, self.end, axis=2) - before
        return before, np.where(self.end - self.begin == 1, values, together)


@dataclass(frozen=True)
class NDCG(QueryLoss):
    """One less the normalised discounted cumulative gain.

    A row of relevance y gains 2^y - 1 as a rule, divided by log2 of one more than its
    place; ``gains`` are other gains of the grades from 0 on, or "linear": y itself.
    """

    gains: tuple | str = "exponential"
    measure = "NDCG"

    def worth(self, relevance):
        if self.gains == "linear":
            return relevance
        if self.gains == "exponential":
            return np.exp2(relevance) - 1
        return np.array(self.gains, dtype=np.float64)[relevance.astype(int)]

    def from_order(self, worth, ties):
        k = worth.shape[2] if self.k is None else min(self.k, worth.shape[2])
        discount = 1 / np.log2(np.arange(2, k + 2))
        _, together = ties.sums(worth)
        mean = together / (ties.end - ties.begin)
        gain = (mean[..., :k] * discount).sum(axis=2)
        best = -np.sort(-worth[0], axis=1)[:, :k]
        largest = (best * discount).sum(axis=1)
        has_gain = largest > 0
        ratio = gain / np.where(has_gain, largest, 1.0)
        return np.where(has_gain, np.maximum(1 - ratio, 0.0), 0.0)

    def check_target(self, target):
        relevance, _ = target.T
        if self.gains == "exponential" and relevance.max() > LARGEST_GRADE:
            raise ValueError(
                f"y has a relevance of {relevance.max():g}, but gains of 2^y - 1 are "
                f"for grades up to {LARGEST_GRADE}: number the grades from 0 on."
            )
        if isinstance(self.gains, tuple):
            is_grade = (relevance == np.floor(relevance)) & (relevance >= 0)
            if not (is_grade & (relevance < len(self.gains))).all():
                raise ValueError(
                    f"label_gain has gains of the grades 0 to {len(self.gains) - 1}, "
                    "but y has other values."
                )
        super().check_target(target)


@dataclass(frozen=True)
class MeanAveragePrecision(QueryLoss):
    """One less the average precision, where rows of a positive relevance are right.

    The precisions at the places of right rows among the first k are summed up, and
    divided by the number of right rows, or by k if that is less.
    """

    measure = "MAP"

    def worth(self, relevance):
        return (relevance > 0).astype(np.float64)

    def from_order(self, worth, ties):
        n_rows = worth.shape[2]
        k = n_rows if self.k is None else min(self.k, n_rows)
        before, right = ties.sums(worth)
        n_tied, place = ties.end - ties.begin, np.arange(n_rows)
        # In a random order of n tied rows, r of them right, a place has a right row
        # with probability r / n, and then a share of r - 1 others before it.
        others = (place - ties.begin) * (right - 1) / np.maximum(n_tied - 1, 1)
        precision = (before + 1 + others) / (place + 1)
        sums = (right / n_tied * precision)[..., :k].sum(axis=2)
        n_right = np.minimum(worth[0].sum(axis=1), k)
        has_right = n_right > 0
        ratio = sums / np.where(has_right, n_right, 1.0)
        return np.where(has_right, np.maximum(1 - ratio, 0.0), 0.0)


MEASURES = {"ndcg": NDCG, "map": MeanAveragePrecision}


def parse_measure(name):
    """The class of a measure such as "ndcg@10", and its k; None if it is no measure."""
    found = re.fullmatch(r"(ndcg|map)(?:@([1-9]\d*))?", str(name).lower())
    if not isinstance(name, str) or found is None:
        return None
    measure, k = found.groups()
    return MEASURES[measure], None if k is None else int(k)
