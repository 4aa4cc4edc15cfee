"""Boosted trees of CatBoost, stage by stage."""

import json
import re
from copy import copy
from functools import partial
from inspect import signature

import numpy as np
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import is_classifier

from .._estimator.data.checks import check_columns
from ..optim.losses import Expectile, Huber, Pinball, Poisson, SquaredError
from .boosters import SumsOfLeaves
from .losses import (
    AbsoluteError,
    AbsolutePower,
    Focal,
    LogCosh,
    LogLoss,
    OneVersusRest,
    RelativeError,
    deviance,
    judged_by,
)

# Parameters that CatBoost resolves from y and the loss alone, for further trees as for
# the first. It does not accept all of the values that it reports.
RESOLVED_FROM_Y = {
    "auto_class_weights",
    "class_names",
    "class_weights",
    "classes_count",
    "combinations_ctr",
    "ctr_target_border_count",
    "simple_ctr",
}
# Losses whose predictions are exponentials of sums of trees.
EXPONENTS = "Poisson", "Tweedie"
# Resolved parameters that depend on earlier trees.
RESOLVED_FROM_TREES = {"iterations", "boost_from_average"}


class CatBoost(SumsOfLeaves):
    """Boosted trees of CatBoost.

    CatBoost resolves parameters that are not set from the number of iterations, the
    rows and the loss, such as ``learning_rate`` and ``leaf_estimation_iterations``. The
    first fit resolves them for all iterations that are asked for; further trees are
    grown with all of them, and they are parameters of the fitted estimators.

    Columns of numbers are binned once: every fit would do so anew, and further trees
    are grown by further fits.
    """

    # The training rows in bins, or None. They are not pickled.
    binned = None

    library = "catboost"
    names = "CatBoostRegressor", "CatBoostClassifier"
    count = "iterations"
    aliases = "n_estimators", "num_boost_round", "num_trees"
    early_stopping = dict.fromkeys(
        ("early_stopping_rounds", "od_type", "od_wait", "od_pval", "use_best_model"),
        None,
    ) | {"eval_fraction": 0}
    verbose_params = (
        "verbose",
        "verbose_eval",
        "silent",
        "logging_level",
        "metric_period",
    )
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
        "text_features": "CatBoost gives no leaves of trees that split text. Encode "
        "it in an earlier pipeline step, such as TfidfVectorizer",
        "embedding_features": "CatBoost cannot continue trees that split them. Pass "
        "their numbers as columns",
        "graph": "its edges join rows, of which folds have only some",
    }
    offset = "baseline"
    reads = ("String",)
    of_columns = "cat_features", "text_features", "embedding_features"
    weighs_losses = "class_weights", "auto_class_weights", "scale_pos_weight"
    loss_parameters = "objective", "loss_function"  # which has a default
    regression = {
        "RMSE": judged_by(SquaredError),
        "MultiRMSE": judged_by(SquaredError),
        "MAE": judged_by(AbsoluteError),
        "Quantile": judged_by(Pinball, level=("alpha", 0.5)),
        "MultiQuantile": judged_by(Pinball, level=("alpha", None)),
        "Expectile": judged_by(Expectile, level=("alpha", None)),
        "Huber": judged_by(Huber, threshold=("delta", None)),
        "LogCosh": judged_by(LogCosh),
        "Lq": judged_by(AbsolutePower, exponent=("q", None)),
        "MAPE": judged_by(RelativeError),
        "RMSPE": judged_by(partial(RelativeError, exponent=2.0)),
        "Poisson": judged_by(Poisson),
        "Tweedie": judged_by(deviance, power=("variance_power", None)),
    }
    classification = {
        "Logloss": judged_by(LogLoss),
        "CrossEntropy": judged_by(LogLoss),
        "MultiClass": judged_by(LogLoss),
        "MultiClassOneVsAll": judged_by(OneVersusRest),
        "Focal": judged_by(
            Focal, alpha=("focal_alpha", None), gamma=("focal_gamma", None)
        ),
    }

    def params_named(self, name, numbers, params):
        # Numbers are part of the name, such as "Quantile:alpha=0.9".
        settings = ";".join(
            f"{key}={','.join(map(repr, np.atleast_1d(value).tolist()))}"
            for key, value in numbers.items()
        )
        key = "objective" if params.get("objective") is not None else "loss_function"
        return {key: f"{name}:{settings}"}

    def check_rows(self, X):
        super().check_rows(X)
        # Texts may be categories, which an argument of ``fit`` names.
        if getattr(getattr(X, "dtype", None), "kind", "O") not in "OUS":
            check_columns(X)

    def n_planned(self):
        return self.settings.get(self.count, 1000)

    def class_weights(self, classes, y, weights):
        params = self.settings
        given, automatic = params.get("class_weights"), params.get("auto_class_weights")
        if isinstance(given, dict):
            return np.array([given.get(label, 1.0) for label in classes.tolist()])
        if given is not None:
            if len(given) != len(classes):
                raise ValueError(
                    f"class_weights has {len(given)} values, but y has {len(classes)} "
                    "classes."
                )
            return np.asarray(given, dtype=np.float64)
        if automatic in ("Balanced", "SqrtBalanced"):
            sums = np.array([weights[y == label].sum() for label in classes])
            sums = np.maximum(np.floor(sums), 1)  # as CatBoost has them
            ratios = sums.max() / sums
            return ratios if automatic == "Balanced" else np.sqrt(ratios)
        of_last = params.get("scale_pos_weight")
        return np.r_[np.ones(len(classes) - 1), 1.0 if of_last is None else of_last]

    def why_worse(self, X, y):
        is_exponent = str(self.objective()).startswith(EXPONENTS)
        if not is_exponent or 0.1 < np.mean(y) < 10:
            return super().why_worse(X, y)
        return (
            "With this loss CatBoost starts from the prediction 1, which is far from "
            f"the mean of y, {np.mean(y):.3g}: divide y by its mean, and multiply "
            "predictions by it."
        )

    def clone_estimator(self):
        # ``clone`` refuses lists, such as cat_features, which are copied when read.
        return type(self.estimator)(**self.estimator.get_params())

    def begin(self):
        borders = self.settings.get("per_float_feature_quantization")
        if re.search(r"border_type=Uniform\b", str(borders)):
            raise ValueError(
                f"{type(self.estimator).__name__} with "
                f"per_float_feature_quantization={borders!r} cannot be fitted stage by "
                "stage: use border_type=GreedyLogSum."
            )
        return super().begin()

    @property
    def has_rows(self):
        return self.binned is not None

    def __getstate__(self):
        return vars(self) | {"binned": None}

    def drop_rows(self):
        finished = super().drop_rows()
        finished.binned = None
        return finished

    def begin_boosting(self, n_stages, X, y, params):
        self.binned = self._bin(X, y, params)
        until = {"callbacks": [_Until(n_stages)]}
        booster = self._fit(copy(self.estimator), X, y, params, **until)
        rate = booster.get_all_params().get("model_shrink_rate", 0)
        if rate:  # as it is by default with monotone constraints, and noise
            raise ValueError(
                f"{type(booster).__name__} with model_shrink_rate={rate:.3g} shrinks "
                "earlier trees at every stage: use model_shrink_rate=0."
            )
        self.booster = booster

    def go_on(self, n_stages, X, y, params):
        n_more = n_stages - self.n_stages
        if n_more > 0:
            # The first trees have added the average already.
            settings = self._params_for(n_more) | {"boost_from_average": False}
            former, booster = self.booster, type(self.estimator)(**settings)
            self.booster = self._fit(booster, X, y, params, init_model=former)
            resolved, resolved_before = (
                model.get_all_params() for model in (booster, former)
            )
            different = [
                name
                for name in resolved_before.keys() - RESOLVED_FROM_TREES
                if resolved.get(name) != resolved_before[name]
            ]
            if different:
                raise ValueError(
                    f"{type(booster).__name__} resolves "
                    f"{', '.join(sorted(different))} differently for later trees than "
                    "for the first: set it explicitly."
                )
            options = former.get_metadata()["params"]
            self.booster.get_metadata()["params"] = options

    def _fit(self, model, X, y, params, **settings):
        if self.binned is not None:
            return model.fit(self.binned, **settings)
        return model.fit(X, y, **settings, **params)

    def _bin(self, X, y, params):
        """The rows in the bins of the fit; None if not all columns are numbers."""
        from catboost import Pool

        of_rows = {name: value for name, value in params.items() if value is not None}
        of_pool = {"weight": of_rows.pop("sample_weight", None)}
        for name in ("baseline", "group_id", "group_weight"):
            of_pool[name] = of_rows.pop(name, None)
        settings = self._by_name()
        if of_rows or settings.get("cat_features") or sparse.issparse(X):
            return None
        binned = Pool(X, y, **of_pool)
        names = signature(Pool.quantize).parameters.keys() & settings.keys()
        binned.quantize(**{name: settings[name] for name in names})
        return binned

    def _by_name(self):
        """The parameters of the user, by the first of their names."""
        from catboost.core import _process_synonyms

        by_name = self.estimator.get_params()
        _process_synonyms(by_name)
        return by_name

    def _params_for(self, n_stages):
        """Parameters for ``n_stages``: the user's, and those that the fit resolved."""
        params, resolved = self.estimator.get_params(), self.booster.get_all_params()
        by_name = self._by_name()
        arguments = next(
            signature(base.__init__).parameters
            for base in type(self.estimator).__mro__
            if base.__name__ in self.names
        )
        names = resolved.keys() & arguments.keys() - by_name.keys() - RESOLVED_FROM_Y
        resolved = {name: resolved[name] for name in names}
        return params | resolved | {self.count: n_stages}

    def shap_values(self, X):
        from catboost import Pool

        fitted = self.estimator
        rows = Pool(X, cat_features=fitted.get_cat_feature_indices())
        return fitted.get_feature_importance(rows, type="ShapValues")

    @property
    def n_stages(self):
        return self.booster.tree_count_

    def fitted_estimator(self):
        return self.booster

    def at(self, t):
        trees = self.booster.__getstate__()["__model"]
        stopped = type(self.booster)()
        stopped.__setstate__({**self._params_for(t), "__model": trees})
        if t < self.n_stages:  # it refuses a first tree without a split
            stopped.shrink(t)
        options = json.loads(stopped.get_metadata()["params"])
        options["boosting_options"]["iterations"] = t
        stopped.get_metadata()["params"] = json.dumps(options)
        # As its fit does: feature_importances_ reads them, but those of a ranker.
        stopped.get_feature_importance(type="PredictionValuesChange")
        return stopped

    def leaves(self, X, first, last):
        booster = self.booster
        leaves = booster.calc_leaf_indexes(X, ntree_start=first, ntree_end=last)
        begins = np.cumsum([0, *booster.get_tree_leaf_counts()])
        values = booster.get_leaf_values().reshape(begins[-1], -1)
        return values[leaves.T + begins[first:last, None]]

    def response(self, sums):
        scale, bias = self.booster.get_scale_and_bias()
        sums, loss = sums * scale + bias, str(self.objective())
        if is_classifier(self.estimator):
            is_softmax = sums.shape[2] > 1 and loss != "MultiClassOneVsAll"
            return softmax(sums, axis=2) if is_softmax else expit(sums)
        return np.exp(sums) if loss.startswith(EXPONENTS) else sums


class _Until:
    """A callback of CatBoost that ends a fit."""

    def __init__(self, n_stages):
        self.n_stages = n_stages

    def after_iteration(self, info):
        return info.iteration < self.n_stages
