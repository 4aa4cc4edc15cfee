"""Boosted trees of LightGBM, stage by stage."""

from copy import copy
from functools import partial

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import is_classifier

from .._compat import _num_samples
from ..optim.losses import Gamma, Huber, Pinball, Poisson, SquaredError
from .adapter import PATIENCE_IN_TREES
from .boosters import SumsOfLeaves, Updated
from .losses import (
    AbsoluteError,
    Fair,
    LogLoss,
    LogLossOfIntensities,
    LogLossOfLabels,
    OfSignedRoots,
    OneVersusRest,
    RelativeError,
    deviance,
    judged_by,
)

# Names of objectives.
SQUARED = {
    "regression",
    "regression_l2",
    "l2",
    "mean_squared_error",
    "mse",
    "l2_root",
    "root_mean_squared_error",
    "rmse",
}
ABSOLUTE = {"regression_l1", "l1", "mean_absolute_error", "mae"}
RELATIVE = {"mape", "mean_absolute_percentage_error"}
# With ``reg_sqrt`` trees of these add up to the root of the prediction.
OF_ROOTS = {*SQUARED, *ABSOLUTE, *RELATIVE, "fair", "quantile"}
EXPONENTS = {"poisson", "gamma", "tweedie"}
SOFTMAX = {"multiclass", "softmax"}
ONE_VERSUS_REST = {"multiclassova", "multiclass_ova", "ova", "ovr"}
CROSS_ENTROPY = {"cross_entropy", "xentropy"}
INTENSITY = {"cross_entropy_lambda", "xentlambda"}


class LightGBM(Updated, SumsOfLeaves):
    """Boosted trees of LightGBM.

    A stage for which it finds no split has no trees, as in its own fit, which goes on:
    other rows and columns may be drawn for the next. After ``PATIENCE_IN_TREES`` in a
    row there are no more stages.
    """

    # The number of trees after every stage.
    ends: list
    # Threads of the fit, which predictions must have as well; 0 is all.
    n_threads: int

    library = "lightgbm"
    names = "LGBMRegressor", "LGBMClassifier"
    excluded = "DaskLGBMRegressor", "DaskLGBMClassifier"
    aliases = (
        "num_iterations",
        "num_iteration",
        "n_iter",
        "num_tree",
        "num_trees",
        "num_round",
        "num_rounds",
        "nrounds",
        "num_boost_round",
        "max_iter",
    )
    early_stopping = {
        "early_stopping_round": None,
        "early_stopping_rounds": None,
        "early_stopping": None,
        "n_iter_no_change": None,
    }
    verbose_params = "verbose", "verbosity"
    grows_with = {"verbose": -1}
    allowed = dict.fromkeys(
        ("boosting_type", "boosting", "boost"), ("gbdt", "gbrt", "goss")
    )
    offset = "init_score"
    balances_weights = False
    of_columns = "feature_name", "categorical_feature"
    loss_parameters = "objective", "objective_type", "app", "application", "loss"
    regression = {
        **dict.fromkeys(SQUARED, judged_by(SquaredError)),
        **dict.fromkeys(ABSOLUTE, judged_by(AbsoluteError)),
        **dict.fromkeys(RELATIVE, judged_by(RelativeError)),
        "huber": judged_by(Huber, threshold=("alpha", 0.9)),
        "fair": judged_by(Fair, c=("fair_c", 1.0)),
        "quantile": judged_by(Pinball, level=("alpha", 0.9)),
        "poisson": judged_by(Poisson),
        "gamma": judged_by(Gamma),
        "tweedie": judged_by(deviance, power=("tweedie_variance_power", 1.5)),
        **dict.fromkeys({"binary", *CROSS_ENTROPY}, judged_by(LogLossOfLabels)),
        **dict.fromkeys(INTENSITY, judged_by(LogLossOfIntensities)),
    }
    classification = {
        **dict.fromkeys({"binary", *SOFTMAX, *CROSS_ENTROPY}, judged_by(LogLoss)),
        **dict.fromkeys(ONE_VERSUS_REST, judged_by(OneVersusRest)),
    }
    metrics = "eval_metric", "metric", "metrics", "metric_types"

    def n_planned(self):
        return self.settings[self.count]

    def begin(self):
        if is_classifier(self.estimator) and callable(self.objective()):
            raise ValueError(
                f"{type(self.estimator).__name__} has no probabilities if the "
                "objective is a function, so its stages cannot be evaluated."
            )
        return super().begin()

    def begin_boosting(self, n_stages, X, y, params):
        from lightgbm import Booster
        from lightgbm.callback import EarlyStopException

        first = {}

        def record(env):
            model = env.model
            first.update(params=env.params, rows=model.train_set)
            model.update = lambda train_set=None, fobj=None: first.update(
                objective=fobj
            )
            # Without trees it cannot be read where a category has "=" in its name.
            model.model_to_string, model.model_from_string = str, lambda text: model

        def end(env):
            raise EarlyStopException(-1, [])  # it reports the best update, that is none

        # The trees of a fit are freed at its end. Its first update is skipped, and made
        # later by a booster with the same rows.
        record.before_iteration = True
        self.estimator.fit(X, y, callbacks=[record, end], **params)
        self.booster, self.ends = Booster(first["params"], first["rows"]), [0]
        self.estimator._Booster = self.booster
        self.training = first["rows"], first["objective"]
        self.n_threads = first["params"].get("num_threads", 0)

    def update(self, rows, objective):
        self.booster.update(fobj=objective)
        # Copies, which do not grow, have a list of their own.
        self.ends = ends = [*self.ends, self.booster.current_iteration()]
        n_without = PATIENCE_IN_TREES
        return len(ends) > n_without and ends[-1 - n_without] == ends[-1]

    @property
    def n_stages(self):
        return len(self.ends) - 1

    def at(self, t):
        stopped = copy(self.estimator)
        stopped._other_params = copy(stopped._other_params)
        stopped.set_params(**{self.count: t})
        stopped._Booster = self._first(t)
        return stopped

    def _first(self, t):
        """The trees of the first stages, without training rows."""
        from lightgbm import Booster

        n_trees = self.ends[t]
        return Booster(model_str=self.booster.model_to_string(num_iteration=n_trees))

    def drop_rows(self):
        finished = copy(self)
        finished.estimator = copy(self.estimator)
        finished.booster = self._first(self.n_stages)
        finished.estimator._Booster = finished.booster
        return finished

    def leaves(self, X, first, last):
        booster, params = self.booster, self.settings
        ends, n_outputs = self.ends[first : last + 1], booster.num_model_per_iteration()
        values = np.zeros((last - first, _num_samples(X), n_outputs))
        n_trees = ends[-1] - ends[0]
        if not n_trees:
            return values
        # As many threads as the fit has: the number holds for all of LightGBM, and
        # linear trees that go on with more of them than they began with crash.
        predict = partial(booster.predict, X, num_threads=self.n_threads)
        grown = np.flatnonzero(np.diff(ends))
        if params.get("linear_tree") or params.get("linear_trees"):
            tree = partial(predict, num_iteration=1, raw_score=True)
            for stage, t in zip(grown, range(ends[0], ends[-1])):
                values[stage] = tree(start_iteration=t).reshape(-1, n_outputs)
            return values
        leaves = predict(start_iteration=ends[0], num_iteration=n_trees, pred_leaf=True)
        for index, leaf in enumerate(leaves.T):
            stage, output = divmod(index, n_outputs)
            tree, n_leaves = ends[0] * n_outputs + index, leaf.max(initial=0) + 1
            of_leaves = [booster.get_leaf_output(tree, k) for k in range(n_leaves)]
            values[grown[stage], :, output] = np.array(of_leaves)[leaf]
        return values

    def response(self, sums):
        params, objective = self.settings, self.estimator.objective_
        if objective in SOFTMAX:
            return softmax(sums, axis=2)
        if objective in {"binary", *ONE_VERSUS_REST}:
            return expit(params.get("sigmoid", 1.0) * sums)
        if objective in CROSS_ENTROPY:
            return expit(sums)
        if objective in EXPONENTS:
            return np.exp(sums)
        if objective in INTENSITY:
            return np.log1p(np.exp(sums))
        return np.sign(sums) * sums**2 if self._sums_roots() else sums

    def shap_values(self, X):
        return self.estimator.predict(X, pred_contrib=True)

    def regression_loss(self):
        loss = super().regression_loss()
        return OfSignedRoots(loss) if self._sums_roots() else loss

    def _sums_roots(self):
        """Whether trees add up to the root of the prediction."""
        is_of_roots = (self.objective() or "regression") in OF_ROOTS
        return is_of_roots and bool(self.settings.get("reg_sqrt"))
