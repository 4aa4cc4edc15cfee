"""Boosted trees of LightGBM, stage by stage."""

from copy import copy
from functools import partial

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import is_classifier

from .._compat import _num_samples
from .boosters import SumsOfLeaves, Updated

# Stages without a split, in a row, after which there are no more.
WITHOUT_SPLIT = 50
# Objectives by what they make of sums of trees.
SUMS = {
    "regression",
    "regression_l2",
    "l2",
    "mean_squared_error",
    "mse",
    "l2_root",
    "root_mean_squared_error",
    "rmse",
    "regression_l1",
    "l1",
    "mean_absolute_error",
    "mae",
    "huber",
    "fair",
    "quantile",
    "mape",
    "mean_absolute_percentage_error",
}
EXPONENTS = {"poisson", "gamma", "tweedie"}
SOFTMAX = {"multiclass", "softmax"}
ONE_VERSUS_ALL = {"binary", "multiclassova", "multiclass_ova", "ova", "ovr"}
CROSS_ENTROPY = {"cross_entropy", "xentropy"}
INTENSITY = {"cross_entropy_lambda", "xentlambda"}


class LightGBM(Updated, SumsOfLeaves):
    """Boosted trees of LightGBM.

    A stage for which it finds no split has no trees, as in its own fit, which goes on:
    other rows and columns may be drawn for the next. After some in a row there are no
    more stages.

    Attributes
    ----------
    ends : list of int
        How many trees there are after every stage.
    n_threads : int
        How many the fit has, which predictions must have as well; 0 is all.
    """

    library = "lightgbm"
    names = "LGBMRegressor", "LGBMClassifier"
    others = "DaskLGBMRegressor", "DaskLGBMClassifier"
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
    own_stopping = {
        "early_stopping_round": None,
        "early_stopping_rounds": None,
        "early_stopping": None,
        "n_iter_no_change": None,
    }
    loud = "verbose", "verbosity"
    grows_with = {"verbose": -1}
    allowed = dict.fromkeys(
        ("boosting_type", "boosting", "boost"), ("gbdt", "gbrt", "goss")
    )
    offset = "init_score"
    balances_weights = False
    of_columns = "feature_name", "categorical_feature"
    objectives = "objective", "objective_type", "app", "application", "loss"
    regression = frozenset(SUMS | EXPONENTS | CROSS_ENTROPY | INTENSITY | {"binary"})
    classification = frozenset(SOFTMAX | ONE_VERSUS_ALL | CROSS_ENTROPY)
    metrics = "eval_metric", "metric", "metrics", "metric_types"

    def n_planned(self):
        return self.estimator.get_params(deep=False)[self.count_name()]

    def begun(self):
        if is_classifier(self.estimator) and callable(self.objective()):
            raise ValueError(
                f"{type(self.estimator).__name__} has no probabilities if the "
                "objective is a function, so its stages cannot be evaluated."
            )
        return super().begun()

    def _begin(self, n_stages, X, y, params):
        from lightgbm import Booster

        first = _FirstIteration()
        self.estimator.fit(X, y, callbacks=[first], **params)
        del self.estimator.booster_.update
        self.booster, self.ends = Booster(first.params, first.rows), [0]
        self.training = first.rows, first.objective
        self.n_threads = first.params.get("num_threads", 0)

    def _update(self, rows, objective):
        self.booster.update(fobj=objective)
        # Copies, which do not grow, have a list of their own.
        self.ends = ends = [*self.ends, self.booster.current_iteration()]
        return len(ends) > WITHOUT_SPLIT and ends[-1 - WITHOUT_SPLIT] == ends[-1]

    @property
    def n_stages(self):
        return len(self.ends) - 1

    def at(self, t):
        found = copy(self.estimator)
        found._other_params = copy(found._other_params)
        found.set_params(**{self.count_name(): t})
        found._Booster = self._first(t)
        return found

    def _first(self, t):
        """The trees of the first stages, without training rows."""
        from lightgbm import Booster

        n_trees = self.ends[t]
        return Booster(model_str=self.booster.model_to_string(num_iteration=n_trees))

    def _copied(self):
        return self._first(self.n_stages)

    def _of_trees(self, X, first, last):
        ends = self.ends[first : last + 1]
        n_outputs = self.booster.num_model_per_iteration()
        found = np.zeros((last - first, _num_samples(X), n_outputs))
        if ends[-1] > ends[0]:
            found[np.diff(ends) > 0] = self._trees(X, ends[0], ends[-1])
        return found

    def _trees(self, X, first, last):
        """The terms of some trees, (last - first, n_samples, n_outputs)."""
        booster, n_trees = self.booster, last - first
        n_outputs = booster.num_model_per_iteration()
        params = self.estimator.get_params()
        # As many threads as the fit has: the number holds for all of LightGBM, and
        # linear trees that go on with more of them than they began with crash.
        predict = partial(booster.predict, X, num_threads=self.n_threads)
        if params.get("linear_tree") or params.get("linear_trees"):
            tree = partial(predict, num_iteration=1, raw_score=True)
            found = [tree(start_iteration=t) for t in range(first, last)]
            return np.stack(found).reshape(n_trees, -1, n_outputs)
        leaves = predict(start_iteration=first, num_iteration=n_trees, pred_leaf=True)
        trees = enumerate(leaves.T, first * n_outputs)
        found = np.stack([_values_of(booster, *each) for each in trees])
        return found.reshape(n_trees, n_outputs, -1).transpose(0, 2, 1)

    def _answers(self, sums):
        params, objective = self.estimator.get_params(), self.estimator.objective_
        if objective in SOFTMAX:
            return softmax(sums, axis=2)
        if objective in ONE_VERSUS_ALL:
            return expit(params.get("sigmoid", 1.0) * sums)
        if objective in CROSS_ENTROPY:
            return expit(sums)
        if objective in EXPONENTS:
            return np.exp(sums)
        if objective in INTENSITY:
            return np.log1p(np.exp(sums))
        return np.sign(sums) * sums**2 if params.get("reg_sqrt") else sums


class _FirstIteration:
    """A callback of LightGBM that keeps what the first update of a fit would be.

    It is not taken: the trees of a fit are freed at its end.
    """

    before_iteration = True

    def __call__(self, env):
        self.params, self.rows = env.params, env.model.train_set
        env.model.update = self._instead

    def _instead(self, train_set=None, fobj=None):
        self.objective = fobj


def _values_of(booster, tree, leaves):
    """Values of a tree of LightGBM for rows in these leaves."""
    found, place = np.unique(leaves, return_inverse=True)
    return np.array([booster.get_leaf_output(tree, int(leaf)) for leaf in found])[place]
