"""Boosted trees of CatBoost, stage by stage."""

import json
import re
from copy import copy
from inspect import signature

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import is_classifier

from .boosters import SumsOfLeaves

# Parameters that CatBoost resolves from y and the loss alone, and so for further trees
# as for the first; it does not take all of what it says of them.
OF_TARGETS = {
    "auto_class_weights",
    "class_names",
    "class_weights",
    "classes_count",
    "combinations_ctr",
    "ctr_target_border_count",
    "simple_ctr",
}
# Resolved parameters that the trees before decide, not the user.
OF_STAGES = {"iterations", "boost_from_average"}


class CatBoost(SumsOfLeaves):
    """Boosted trees of CatBoost.

    CatBoost resolves parameters that are not set from the number of iterations, the
    rows and the loss, such as ``learning_rate`` and ``leaf_estimation_iterations``. The
    first fit resolves them for all iterations that are asked for; further trees are
    grown with all of them, and they are parameters of the fitted estimators.
    """

    library = "catboost"
    names = "CatBoostRegressor", "CatBoostClassifier"
    count = "iterations"
    aliases = "n_estimators", "num_boost_round", "num_trees"
    own_stopping = dict.fromkeys(
        ("early_stopping_rounds", "od_type", "od_wait", "od_pval", "use_best_model"),
        None,
    ) | {"eval_fraction": 0}
    loud = "verbose", "verbose_eval", "silent", "logging_level", "metric_period"
    # Folds would write to the same files.
    grows_with = {"logging_level": "Silent", "allow_writing_files": False}
    # Uniform borders have empty bins, and CatBoost draws otherwise among equal splits
    # when it goes on.
    allowed = {
        "grow_policy": ("SymmetricTree",),
        "posterior_sampling": (False,),
        "save_snapshot": (False,),
        "feature_border_type": (
            "GreedyLogSum",
            "Median",
            "MaxLogSum",
            "MinEntropy",
            "UniformAndQuantiles",
        ),
    }
    refused = {
        "text_features": "CatBoost gives no leaves of trees that split text. Make "
        "numbers of it by a step before, as a pipeline with TfidfVectorizer does",
        "embedding_features": "CatBoost does not go on with trees that split them. "
        "Make columns of their numbers",
        "graph": "its edges join rows, of which folds have only some",
    }
    objectives = "objective", "loss_function"  # which has a default
    regression = frozenset(
        {
            "RMSE",
            "MAE",
            "Quantile",
            "MultiQuantile",
            "Expectile",
            "Huber",
            "LogCosh",
            "Lq",
            "MAPE",
            "Poisson",
            "Tweedie",
            "MultiRMSE",
            "RMSPE",
        }
    )
    classification = frozenset(
        {"Logloss", "CrossEntropy", "Focal", "MultiClass", "MultiClassOneVsAll"}
    )

    def n_planned(self):
        return self.estimator.get_params().get(self.count_name(), 1000)

    def cloned(self):
        # ``clone`` refuses lists, such as cat_features, which are copied when read.
        return type(self.estimator)(**self.estimator.get_params())

    def begun(self):
        borders = self.estimator.get_params().get("per_float_feature_quantization")
        if re.search(r"border_type=Uniform\b", str(borders)):
            raise ValueError(
                f"{type(self.estimator).__name__} with "
                f"per_float_feature_quantization={borders!r} cannot be fitted stage by "
                "stage: take border_type=GreedyLogSum."
            )
        return super().begun()

    def _begin(self, n_stages, X, y, params):
        until = {"callbacks": [_Until(n_stages)]}
        booster = copy(self.estimator).fit(X, y, **until, **params)
        rate = booster.get_all_params().get("model_shrink_rate", 0)
        if rate:  # as it is by default with monotone constraints, and noise
            raise ValueError(
                f"{type(booster).__name__} with model_shrink_rate={rate:.3g} shrinks "
                "earlier trees at every stage: take model_shrink_rate=0."
            )
        self.booster = booster

    def _go_on(self, n_stages, X, y, params):
        n_more = n_stages - self.n_stages
        if n_more > 0:
            # The model that it goes on from has the average already.
            asked = self._asked(n_more) | {"boost_from_average": False}
            former, more = self.booster, type(self.estimator)(**asked)
            self.booster = more.fit(X, y, init_model=former, **params)
            self._check_resolved(former.get_all_params())
            options = former.get_metadata()["params"]
            self.booster.get_metadata()["params"] = options

    def _check_resolved(self, former):
        """Raise if parameters have been resolved otherwise than for earlier trees."""
        found = self.booster.get_all_params()
        names = former.keys() - OF_STAGES
        if other := sorted(name for name in names if found.get(name) != former[name]):
            raise ValueError(
                f"{type(self.estimator).__name__} resolves {', '.join(other)} "
                "otherwise for later trees than for the first: set it."
            )

    def _asked(self, n_stages):
        """Parameters for some stages: the user's, others as the first fit had them."""
        from catboost.core import _process_synonyms

        params, resolved = self.estimator.get_params(), self.booster.get_all_params()
        named = dict(params)
        _process_synonyms(named)
        known = next(
            signature(each.__init__).parameters
            for each in type(self.estimator).__mro__
            if each.__name__ in self.names
        )
        names = resolved.keys() & known.keys() - named.keys() - OF_TARGETS
        found = {name: resolved[name] for name in names}
        return params | found | {self.count_name(): n_stages}

    @property
    def n_stages(self):
        return self.booster.tree_count_

    def fitted(self):
        return self.booster

    def at(self, t):
        trees = self.booster.__getstate__()["__model"]
        found = type(self.booster)()
        found.__setstate__({**self._asked(t), "__model": trees})
        found.shrink(t)
        options = json.loads(found.get_metadata()["params"])
        options["boosting_options"]["iterations"] = t
        found.get_metadata()["params"] = json.dumps(options)
        found.get_feature_importance()  # which feature_importances_ reads
        return found

    def _copied(self):
        return self.booster.copy()

    def _of_trees(self, X, first, last):
        booster = self.booster
        leaves = booster.calc_leaf_indexes(X, ntree_start=first, ntree_end=last)
        begins = np.cumsum([0, *booster.get_tree_leaf_counts()])
        values = booster.get_leaf_values().reshape(begins[-1], -1)
        return values[leaves.T + begins[first:last, None]]

    def _answers(self, sums):
        scale, bias = self.booster.get_scale_and_bias()
        sums, loss = sums * scale + bias, str(self.objective())
        if is_classifier(self.estimator):
            is_softmax = sums.shape[2] > 1 and loss != "MultiClassOneVsAll"
            return softmax(sums, axis=2) if is_softmax else expit(sums)
        return np.exp(sums) if loss.startswith(("Poisson", "Tweedie")) else sums


class _Until:
    """A callback of CatBoost that ends a fit."""

    def __init__(self, n_stages):
        self.n_stages = n_stages

    def after_iteration(self, info):
        return info.iteration < self.n_stages
