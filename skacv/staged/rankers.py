"""Rankers of LightGBM, XGBoost and CatBoost, stage by stage.

They are boosted trees whose loss couples the rows of a query. Their ``fit`` has the
number of the query of every row as "qid", and weights of rows that are the same in a
query; every library has forms of its own for both.
"""

from abc import abstractmethod

import numpy as np

from .boosters import Boosters
from .catboost_boosters import CatBoost
from .lightgbm_boosters import LightGBM
from .query_losses import NDCG, parse_measure
from .xgboost_boosters import XGBoost

# What stages are judged by, if nothing else is asked for.
MEASURE = "ndcg@10"


def judged_by_order(*names):
    """Objectives with these names, which the order of rows judges."""
    return dict.fromkeys(names, lambda params: NDCG())


class Rankers(Boosters):
    """Boosted trees that order the rows of queries."""

    ranks = True

    def regression_loss(self):
        return self.query_loss(MEASURE)

    def query_loss(self, name):
        """The loss by a measure such as "ndcg@5", with the gains of the library."""
        measure, k = parse_measure(name)
        return NDCG(k, self.gains()) if measure is NDCG else measure(k)

    def gains(self):
        """The ``gains`` of :class:`NDCG` that the parameters ask for."""
        return NDCG.gains

    def unnamed_loss(self):
        return None  # it is the order that judges

    def unread_metrics(self, loss, params):
        read = loss.name.removeprefix("1 - ").lower()
        of_loss = {f"{key}={read!r}" for key in self.metrics}
        unread = super().unread_metrics(loss, params)
        return [setting for setting in unread if setting.lower() not in of_loss]

    def grow(self, n_stages, X, y, params):
        rest = {key: value for key, value in params.items() if key != "qid"}
        weights = rest.pop("sample_weight", None)
        of_library = self.of_queries(params["qid"], weights)
        super().grow(n_stages, X, y, rest | of_library)

    @abstractmethod
    def of_queries(self, numbers, weights):
        """Arguments of the library's ``fit`` with the queries of rows, and weights.

        Shapes: numbers and weights (n_samples,), or weights are None.
        """


class LightGBMRanker(Rankers, LightGBM):
    """The ranker of LightGBM."""

    names = ("LGBMRanker",)
    excluded = ("DaskLGBMRanker",)
    regression = judged_by_order(
        "lambdarank",
        "rank_xendcg",
        "xendcg",
        "xe_ndcg",
        "xe_ndcg_mart",
        "xendcg_mart",
    )

    def gains(self):
        gains = self.settings.get("label_gain")
        if isinstance(gains, str):
            gains = gains.split(",")
        return super().gains() if gains is None else tuple(map(float, gains))

    def of_queries(self, numbers, weights):
        _, sizes = np.unique(numbers, return_counts=True)
        return {"group": sizes, "sample_weight": weights}

    def _sums_roots(self):
        return False


class XGBoostRanker(Rankers, XGBoost):
    """The ranker of XGBoost."""

    names = ("XGBRanker",)
    excluded = ("DaskXGBRanker",)
    regression = judged_by_order("rank:ndcg", "rank:pairwise", "rank:map")

    def gains(self):
        is_exponential = self.settings.get("ndcg_exp_gain", True)
        return super().gains() if is_exponential else "linear"

    def of_queries(self, numbers, weights):
        if weights is None:
            return {"qid": numbers}
        _, first = np.unique(numbers, return_index=True)
        return {"qid": numbers, "sample_weight": weights[first]}


class CatBoostRanker(Rankers, CatBoost):
    """The ranker of CatBoost."""

    names = ("CatBoostRanker",)
    regression = judged_by_order(
        "YetiRank",
        "YetiRankPairwise",
        "PairLogit",
        "PairLogitPairwise",
        "QueryRMSE",
        "QuerySoftMax",
        "QueryCrossEntropy",
        "StochasticRank",
        "StochasticFilter",
        "LambdaMart",
        "GroupQuantile",
    )
    refused = CatBoost.refused | {
        "pairs": "they join rows by their numbers, and folds have only some",
        "pairs_weight": "it has pairs of all rows, as pairs has",
    }

    def of_queries(self, numbers, weights):
        return {"group_id": numbers, "group_weight": weights}
