"""Boosted trees of XGBoost, stage by stage."""

import json
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial

import numpy as np
from scipy.special import softmax
from sklearn.base import is_classifier

from .boosters import Updated, of_two_classes

# Objectives of which sums of trees are read; others change them first.
SUMS = {
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "multi:softmax",
}
# What a model in JSON says of its trees.
TREES = "trees", "tree_info", "iteration_indptr", "gbtree_model_param"


class XGBoost(Updated):
    """Boosted trees of XGBoost.

    Their random numbers belong to the thread of the fit, and go on there: every run has
    a thread of its own. Stages predict as :meth:`at` does, to the last bit.
    """

    library = "xgboost"
    names = "XGBRegressor", "XGBClassifier"
    others = "XGBRFRegressor", "XGBRFClassifier"  # one round of many trees
    own_stopping = {"early_stopping_rounds": None}
    allowed = {"booster": ("gbtree",), "callbacks": (None,)}
    offset = "base_margin"
    of_columns = ("feature_weights",)
    regression = frozenset(
        {
            *SUMS - {"multi:softmax"},
            "binary:logistic",
            "count:poisson",
            "reg:expectileerror",
            "reg:gamma",
            "reg:logistic",
            "reg:squaredlogerror",
            "reg:tweedie",
        }
    )
    classification = frozenset({"binary:logistic", "multi:softmax", "multi:softprob"})

    def n_planned(self):
        return self.estimator.get_num_boosting_rounds()

    def begun(self):
        found = super().begun()
        found.thread = ThreadPoolExecutor(1)
        return found

    def grow(self, n_stages, X, y, params):
        self.thread.submit(super().grow, n_stages, X, y, params).result()

    def _begin(self, n_stages, X, y, params):
        first = _first_update()
        self.estimator.set_params(n_estimators=1, callbacks=[first])
        self.estimator.fit(X, y, **params)
        # It has no trees, and would take no lists, as eval_metric may be one.
        del self.estimator._Booster
        self.estimator.set_params(callbacks=None)
        self.booster, self.training = first.booster, (first.rows, first.objective)

    def _update(self, rows, objective):
        self.booster.update(rows, self.n_stages, objective)
        return False

    @property
    def n_stages(self):
        return self.booster.num_boosted_rounds()

    def at(self, t):
        found = copy(self.estimator).set_params(n_estimators=t)
        found._Booster = self._first(t)
        return found

    def _first(self, t):
        """The first ``t`` stages, with all else that the booster has.

        A slice of it has no categories, by which columns that list them otherwise are
        read.
        """
        from xgboost import Booster

        whole, cut = self.booster, self.booster[:t]
        if "c" not in (whole.feature_types or ()):
            return cut
        model, of_cut = (json.loads(each.save_raw("json")) for each in (whole, cut))
        trees, kept = (_trees_of(each) for each in (model, of_cut))
        trees |= {name: kept[name] for name in TREES}
        text = json.dumps(model, ensure_ascii=False)  # it reads no other escapes
        found = Booster(model_file=bytearray(text.encode()))
        found.load_config(cut.save_config())
        return found

    def _copied(self):
        return self.booster.copy()

    def predictions(self, X, first, last, side_runs=None):
        from xgboost import DMatrix

        estimator, booster = self.estimator, self.booster
        rows = DMatrix(
            X,
            missing=estimator.missing,
            nthread=estimator.n_jobs,
            feature_types=estimator.feature_types,
            enable_categorical=estimator.enable_categorical,
        )
        if rows.feature_names is None:  # which the class does not ask of arrays
            rows.feature_names = booster.feature_names
        margins = partial(booster.predict, rows, output_margin=True)
        if first and side_runs is None:
            side_runs = margins(iteration_range=(0, first))
        found, reads_sums = [], estimator.objective in SUMS
        for t in range(first, last):
            if side_runs is not None:
                rows.set_base_margin(side_runs)
            stage = {"iteration_range": (t, t + 1)}
            side_runs = margins(**stage)
            found.append(side_runs if reads_sums else booster.predict(rows, **stage))
        found = np.stack(found)
        if estimator.objective == "multi:softmax":
            return softmax(found, axis=2), side_runs
        return of_two_classes(found) if is_classifier(estimator) else found, side_runs


def _trees_of(model):
    """The part of a model in JSON that has its trees."""
    return model["learner"]["gradient_booster"]["model"]


def _first_update():
    """A callback of XGBoost that keeps what the first update of a fit would be."""
    from xgboost.callback import TrainingCallback

    class FirstUpdate(TrainingCallback):
        """It is not taken: the same booster takes it later."""

        def before_training(self, model):
            self.booster, model.update = model, self._instead
            return model

        def _instead(self, rows, iteration, fobj=None):
            self.rows, self.objective = rows, fobj

        def after_training(self, model):
            del model.update
            return model

    return FirstUpdate()
