"""Boosted trees of XGBoost, stage by stage."""

import json
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial

import numpy as np
from scipy.special import softmax
from sklearn.base import is_classifier

from ..optim.losses import (
    Expectile,
    Gamma,
    Pinball,
    Poisson,
    PseudoHuber,
    SquaredError,
)
from .boosters import Updated, add_first_class
from .losses import (
    AbsoluteError,
    LogLoss,
    LogLossOfLabels,
    SquaredLogError,
    deviance,
    judged_by,
)

# Objectives of which sums of trees are read; others change them first.
SUMS = {
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "multi:softmax",
}
# The parts of a model in JSON that describe its trees.
PARTS_OF_TREES = "trees", "tree_info", "iteration_indptr", "gbtree_model_param"


class XGBoost(Updated):
    """Boosted trees of XGBoost.

    Their random numbers belong to the thread of the fit, and go on there: every run has
    a thread of its own. Stages predict as :meth:`at` does, to the last bit.
    """

    library = "xgboost"
    names = "XGBRegressor", "XGBClassifier"
    excluded = "XGBRFRegressor", "XGBRFClassifier"  # one round of many trees
    early_stopping = {"early_stopping_rounds": None}
    allowed = {"booster": ("gbtree",), "callbacks": (None,)}
    offset = "base_margin"
    of_columns = ("feature_weights",)
    reads = "Categorical", "Enum"
    regression = {
        "reg:squarederror": judged_by(SquaredError),
        "reg:squaredlogerror": judged_by(SquaredLogError),
        "reg:absoluteerror": judged_by(AbsoluteError),
        "reg:pseudohubererror": judged_by(PseudoHuber, threshold=("huber_slope", 1.0)),
        "reg:quantileerror": judged_by(Pinball, level=("quantile_alpha", None)),
        "reg:expectileerror": judged_by(Expectile, level=("expectile_alpha", None)),
        "reg:logistic": judged_by(LogLossOfLabels),
        "binary:logistic": judged_by(LogLossOfLabels),
        "count:poisson": judged_by(Poisson),
        "reg:gamma": judged_by(Gamma),
        "reg:tweedie": judged_by(deviance, power=("tweedie_variance_power", 1.5)),
    }
    classification = {
        "binary:logistic": judged_by(LogLoss),
        "multi:softmax": judged_by(LogLoss),
        "multi:softprob": judged_by(LogLoss),
    }

    def n_planned(self):
        return self.estimator.get_num_boosting_rounds()

    def begin(self):
        started = super().begin()
        started.thread = ThreadPoolExecutor(1)
        return started

    def grow(self, n_stages, X, y, params):
        self.thread.submit(super().grow, n_stages, X, y, params).result()

    def begin_boosting(self, n_stages, X, y, params):
        first = _first_update()
        self.estimator.set_params(n_estimators=1, callbacks=[first])
        self.estimator.fit(X, y, **params)
        # It has no trees, and would take no lists, as eval_metric may be one.
        del self.estimator._Booster
        self.estimator.set_params(callbacks=None)
        self.booster, self.training = first.booster, (first.rows, first.objective)

    def update(self, rows, objective):
        self.booster.update(rows, self.n_stages, objective)
        return False

    @property
    def n_stages(self):
        return self.booster.num_boosted_rounds()

    def at(self, t):
        stopped = copy(self.estimator).set_params(n_estimators=t)
        stopped._Booster = self._first(t)
        return stopped

    def _first(self, t):
        """A booster with the first ``t`` stages, and the categories of the columns."""
        from xgboost import Booster

        booster, cut = self.booster, self.booster[:t]
        if "c" not in (booster.feature_types or ()):
            return cut
        # A slice has lost the categories, by which rows with other codes for them are
        # read: the trees of the slice are put into a copy of all.
        models = [json.loads(part.save_raw("json")) for part in (booster, cut)]
        trees, first_trees = (
            model["learner"]["gradient_booster"]["model"] for model in models
        )
        trees |= {name: first_trees[name] for name in PARTS_OF_TREES}
        text = json.dumps(models[0], ensure_ascii=False)  # it reads no other escapes
        first = Booster(model_file=bytearray(text.encode()))
        first.load_config(cut.save_config())
        return first

    def _rows(self, X, booster):
        """Rows of X as its library takes them."""
        from xgboost import DMatrix

        estimator = self.estimator
        rows = DMatrix(
            X,
            missing=estimator.missing,
            nthread=estimator.n_jobs,
            feature_types=estimator.feature_types,
            enable_categorical=estimator.enable_categorical,
        )
        if rows.feature_names is None:  # arrays have none, and a booster needs them
            rows.feature_names = booster.feature_names
        return rows

    def shap_values(self, X):
        booster = self.estimator.get_booster()
        return booster.predict(self._rows(X, booster), pred_contribs=True)

    def predictions(self, X, first, last, former_sums=None):
        estimator, booster = self.estimator, self.booster
        rows = self._rows(X, booster)
        margins = partial(booster.predict, rows, output_margin=True)
        if first and former_sums is None:
            former_sums = margins(iteration_range=(0, first))
        stages, reads_sums = [], estimator.objective in SUMS
        for t in range(first, last):
            if former_sums is not None:
                rows.set_base_margin(former_sums)
            stage = {"iteration_range": (t, t + 1)}
            former_sums = margins(**stage)
            stages.append(former_sums if reads_sums else booster.predict(rows, **stage))
        predictions = np.stack(stages)
        if estimator.objective == "multi:softmax":
            predictions = softmax(predictions, axis=2)
        elif is_classifier(estimator):
            predictions = add_first_class(predictions)
        return predictions, former_sums


def _first_update():
    """A callback of XGBoost that records the first update of a fit, and skips it."""
    from xgboost.callback import TrainingCallback

    class FirstUpdate(TrainingCallback):
        """The rows and the objective of the update, which the booster makes later."""

        def before_training(self, model):
            self.booster = model
            model.update = lambda rows, iteration, fobj=None: vars(self).update(
                rows=rows, objective=fobj
            )
            return model

        def after_training(self, model):
            del model.update
            return model

    return FirstUpdate()
