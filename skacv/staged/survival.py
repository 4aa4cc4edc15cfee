"""Boosted models of censored survival times, stage by stage.

They are those of scikit-survival, and those of XGBoost and CatBoost with Cox's loss,
which have a time as their target, negative where a row is censored. All are judged by
the partial likelihood of all held-out rows together.
"""

from copy import copy
from dataclasses import dataclass

import numpy as np

from .._estimator.data.survival import ranked_times
from .._estimator.prediction.baseline_hazards import BaselineHazards
from ..optim.cox import Cox
from .catboost_boosters import CatBoost
from .gradient_boosting import PlainBoosting
from .xgboost_boosters import XGBoost


@dataclass(frozen=True)
class CoxOfRatios(Cox):
    """Cox's loss of predictions that are hazard ratios, not their logarithms."""

    def mean(self, predictor):
        return np.exp(predictor)

    def predictor(self, mean):
        with np.errstate(divide="ignore"):
            return np.log(mean)


class SurvivalTrees(PlainBoosting):
    """Gradient boosting of scikit-survival: trees, and predictions of their sums."""

    survival = "events and times"
    names = ("GradientBoostingSurvivalAnalysis",)

    @classmethod
    def adapts(cls, estimator):
        return any(
            base.__module__.startswith("sksurv.") and base.__name__ in cls.names
            for base in type(estimator).__mro__
        )

    # The training rows, and the baseline hazards of stages that have been asked for.
    rows = None
    hazards: BaselineHazards | None = None

    def warn_of_small_numbers(self, X, y):
        super().warn_of_small_numbers(X, y["time"])

    def regression_loss(self):
        return Cox()

    def begin(self):
        settings, name = self.estimator.get_params(), type(self.estimator).__name__
        if settings["loss"] != "coxph":
            raise ValueError(
                f"{name} with loss={settings['loss']!r} predicts times, of which the "
                "partial likelihood is no loss: use loss='coxph'."
            )
        if settings["dropout_rate"] > 0:
            raise ValueError(
                f"{name} with dropout_rate={settings['dropout_rate']} changes earlier "
                "stages: use dropout_rate=0."
            )
        return super().begin()

    def grow(self, n_stages, X, y, params):
        super().grow(n_stages, X, y, params)
        self.rows = X, y

    def drop_rows(self):
        self._read_hazards()
        finished = copy(self)
        finished.rows = None
        return finished

    def _read_hazards(self):
        """Baseline hazards of the stages that are new since the last call."""
        if self.rows is None:
            return
        X, y = self.rows
        first = 0 if self.hazards is None else len(self.hazards.log_hazards)
        if first == self.n_stages:
            return
        predictions, _ = self.predictions(X, first, self.n_stages)
        ones = np.ones(len(y))  # scikit-survival weighs no hazards
        new = BaselineHazards.of(y, ones, predictions[:, :, None])
        self.hazards = new if first == 0 else self.hazards.continued(new)

    def at(self, t):
        from sksurv.functions import StepFunction
        from sksurv.linear_model.coxph import BreslowEstimator

        self._read_hazards()
        stopped, baseline = super().at(t), BreslowEstimator()
        (values,) = self.hazards.at(np.zeros(1), t - 1)
        times = self.hazards.times
        baseline.unique_times_ = times
        baseline.cum_baseline_hazard_ = StepFunction(times, values)
        baseline.baseline_survival_ = StepFunction(times, np.exp(-values))
        stopped._baseline_model = baseline
        return stopped


class SurvivalComponents(SurvivalTrees):
    """Componentwise boosting of scikit-survival: least squares on one column each."""

    names = ("ComponentwiseGradientBoostingSurvivalAnalysis",)
    least_range = None
    early_stopping: dict = {}

    def predictions(self, X, first, last, former_sums=None):
        estimator = self.estimator
        X = np.column_stack([np.ones(len(X)), np.asarray(X, dtype=np.float64)])
        if former_sums is None:
            former_sums, begin = np.zeros(len(X)), 0
        else:
            former_sums, begin = former_sums.copy(), first
        sums = []
        for component in estimator.estimators_[begin:last]:
            former_sums += estimator.learning_rate * component.predict(X)
            sums.append(former_sums.copy())
        return np.stack(sums[first - begin :]), former_sums


def baseline_of_held_out_rows(record, t):
    """The baseline hazards of stage ``t``, by Breslow's estimate from held-out rows.

    On their training rows boosted trees are too sure, and so would be the hazards.
    """
    held_out = record.estimates.get("cv")
    if held_out is None or held_out.prediction is None:
        raise AttributeError(
            "Survival functions of boosters that have none of their own need held-out "
            "rows: set cv."
        )
    predictions = record.loss.predictor(np.asarray(held_out.prediction[t]))
    weights = record.weights[np.concatenate(held_out.indices)]
    return BaselineHazards.of(held_out.target, weights, predictions.reshape(1, -1, 1))


class SignedTimes:
    """Boosters whose targets are times, negative where a row is censored."""

    survival = "signed times"

    @classmethod
    def adapts(cls, estimator):
        return super().adapts(estimator) and cls(estimator).objective() == cls.cox

    def regression_loss(self):
        return self.named_loss(self.regression)

    def grow(self, n_stages, X, y, params):
        # The order of the times is all that counts, and ranks keep it in any precision.
        super().grow(n_stages, X, ranked_times(y)[:, 0], params)


class XGBoostCox(SignedTimes, XGBoost):
    """XGBoost with Cox's loss, which predicts hazard ratios."""

    cox = "survival:cox"
    names = ("XGBRegressor",)
    regression = {cox: lambda params: CoxOfRatios()}


class CatBoostCox(SignedTimes, CatBoost):
    """CatBoost with Cox's loss, which predicts their logarithms."""

    cox = "Cox"
    names = ("CatBoostRegressor",)
    regression = {cox: lambda params: Cox()}
