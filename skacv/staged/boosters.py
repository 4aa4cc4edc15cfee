"""Boosted trees of XGBoost, LightGBM and CatBoost, as kinds of staged estimators.

They are recognised by their names. A library is imported only once there is an
estimator of it.

All grow as one fit with as many trees does, to the last bit, also where rows or columns
are drawn for every tree: none begins its draws anew.
"""

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import clone, is_classifier

from .._compat import _num_samples
from .kind import Kind

# Arguments of ``fit`` that are refused: initial trees, and validation rows.
NOT_PASSED = {
    "callbacks",
    "early_stopping_rounds",
    "eval_set",
    "eval_X",
    "init_model",
    "save_snapshot",
    "use_best_model",
    "xgb_model",
}
# Stages of LightGBM without a split, in a row, after which there are no more.
WITHOUT_SPLIT = 50
# Objectives of XGBoost of which sums of trees are read; others change them first.
SUMS = {
    "reg:squarederror",
    "reg:absoluteerror",
    "reg:pseudohubererror",
    "reg:quantileerror",
    "multi:softmax",
}
# Objectives of LightGBM by what they make of sums of trees.
EXPONENTS = {"poisson", "gamma", "tweedie"}
SOFTMAX = {"multiclass", "softmax"}
ONE_VERSUS_ALL = {"binary", "multiclassova", "multiclass_ova", "ova", "ovr"}
CROSS_ENTROPY = {"cross_entropy", "xentropy"}


def of_two_classes(found):
    """Probabilities of both classes, where there are those of the second alone."""
    return np.stack([1 - found, found], axis=2) if found.ndim == 2 else found


class Boosters(Kind):
    """Boosted trees of another library.

    Attributes
    ----------
    names : tuple of str
        Names of the classes.
    others : tuple of str
        Names of classes that inherit from these and are of no kind.
    aliases : tuple of str
        Other names of ``count``.
    loud : tuple of str
        Parameters that print lines, all of them left out.
    grows_with : dict
        Parameters instead.
    allowed : dict of str to tuple
        Values of parameters, besides None, with which earlier stages can be had again.
    booster : object
        The trees, as their library has them; None before the first.
    """

    library = ""
    names: tuple = ()
    others: tuple = ()
    aliases: tuple = ()
    loud: tuple = ()
    grows_with: dict = {}
    allowed: dict = {}
    booster = None

    @classmethod
    def is_of(cls, estimator):
        names = {
            each.__name__
            for each in type(estimator).__mro__
            if each.__module__.partition(".")[0] == cls.library
        }
        return not names.isdisjoint(cls.names) and names.isdisjoint(cls.others)

    def count_name(self):
        settings = self.estimator.get_params(deep=False)
        asked = (name for name in self.aliases if settings.get(name) is not None)
        return next(asked, self.count)

    def begun(self):
        own, settings = type(self.estimator), self.estimator.get_params(deep=False)
        for key, values in self.allowed.items():
            if settings.get(key) not in (None, *values):
                raise ValueError(
                    f"{own.__name__} with {key}={settings[key]!r} cannot "
                    f"be fitted stage by stage: take {key}={values[0]!r}."
                )
        left_out = {*self.own_stopping, *self.loud}
        kept = {key: settings[key] for key in settings if key not in left_out}
        kept = {key: clone(value, safe=False) for key, value in kept.items()}
        return type(self)(own(**kept | self.grows_with))

    def grow(self, n_stages, X, y, params):
        if self.booster is None:
            for key in NOT_PASSED & params.keys():
                if params[key] is not None:
                    raise ValueError(
                        f"{key} cannot be passed to {type(self.estimator).__name__}: "
                        "its stages begin with the first tree, and folds evaluate them."
                    )
            self._begin(n_stages, X, y, params)
        self._go_on(n_stages, X, y, params)

    @abstractmethod
    def _begin(self, n_stages, X, y, params):
        """Create a booster, which may have stages already."""

    @abstractmethod
    def _go_on(self, n_stages, X, y, params):
        """Grow to ``n_stages`` stages, if there are fewer."""

    def without_rows(self):
        found = copy(self)
        found.booster = self._copied()
        return found

    @abstractmethod
    def _copied(self):
        """A copy of the booster without training rows."""


class Updated(Boosters):
    """Boosted trees that one update after the other adds to what has been prepared.

    Attributes
    ----------
    training : (rows, callable or None)
        The training rows as the library has them, and the user's objective. Neither
        copies nor pickles have them.
    thread : ThreadPoolExecutor
        Where the trees grow, None for any; nor this.
    has_ended : bool
        Whether there can be no more trees.
    """

    training = thread = None
    has_ended = False

    def __getstate__(self):
        return vars(self) | {"training": None, "thread": None}

    def _go_on(self, n_stages, X, y, params):
        while self.n_stages < n_stages and not self.has_ended:
            self.has_ended = self._update(*self.training)

    @abstractmethod
    def _update(self, rows, objective):
        """Add the trees of one stage; whether there can be no more."""


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
        self.estimator.set_params(callbacks=None)
        del self.estimator._Booster  # which has no trees
        self.booster, self.training = first.booster, (first.rows, first.objective)

    def _update(self, rows, objective):
        self.booster.update(rows, self.n_stages, objective)
        return False

    @property
    def n_stages(self):
        return self.booster.num_boosted_rounds()

    def at(self, t):
        found = copy(self.estimator).set_params(n_estimators=t)
        found._Booster = self.booster[:t]
        return found

    def _copied(self):
        return self.booster[:]

    def predictions(self, X, first, last, carried=None):
        from xgboost import DMatrix

        estimator, booster = self.estimator, self.booster
        rows = DMatrix(
            X,
            missing=estimator.missing,
            nthread=estimator.n_jobs,
            feature_types=estimator.feature_types,
            enable_categorical=estimator.enable_categorical,
        )
        margins = partial(booster.predict, rows, output_margin=True)
        if first and carried is None:
            carried = margins(iteration_range=(0, first))
        found, reads_sums = [], estimator.objective in SUMS
        for t in range(first, last):
            if carried is not None:
                rows.set_base_margin(carried)
            stage = {"iteration_range": (t, t + 1)}
            carried = margins(**stage)
            found.append(carried if reads_sums else booster.predict(rows, **stage))
        found = np.stack(found)
        if estimator.objective == "multi:softmax":
            return softmax(found, axis=2), carried
        return of_two_classes(found) if is_classifier(estimator) else found, carried


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


class SumsOfLeaves(Boosters):
    """Boosted trees whose leaves are read once, and added up tree by tree.

    The sums are those of the library to the last bit. Where their exponential is taken,
    as for probabilities, the last bit of that may be another.
    """

    def predictions(self, X, first, last, carried=None):
        begin = 0 if carried is None else first
        values = self._of_trees(X, begin, last)
        if carried is not None:
            values = np.concatenate([carried[None], values])
        sums = np.cumsum(values, axis=0)[first - last :]
        found = self._answers(sums)
        if found.shape[2] == 1:
            found = found[:, :, 0]
        if is_classifier(self.estimator):
            found = of_two_classes(found)
        return found, sums[-1]

    @abstractmethod
    def _of_trees(self, X, first, last):
        """The terms of some stages, (last - first, n_samples, n_outputs)."""

    @abstractmethod
    def _answers(self, sums):
        """Predictions from sums of trees, of the same shape."""


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

    def n_planned(self):
        return self.estimator.get_params(deep=False)[self.count_name()]

    def begun(self):
        if is_classifier(self.estimator) and callable(self.estimator.objective):
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


class CatBoost(SumsOfLeaves):
    """Boosted trees of CatBoost.

    Where they are not set, CatBoost chooses ``learning_rate`` and, for categories,
    ``max_ctr_complexity`` by the number of iterations: they are those for all that are
    asked for, and parameters of the fitted estimators.
    """

    library = "catboost"
    names = "CatBoostRegressor", "CatBoostClassifier"
    count = "iterations"
    aliases = "n_estimators", "num_boost_round", "num_trees"
    own_stopping = dict.fromkeys(
        ("early_stopping_rounds", "od_type", "od_wait", "od_pval", "use_best_model"),
        None,
    )
    loud = "verbose", "verbose_eval", "silent", "logging_level", "metric_period"
    # Folds would write to the same files.
    grows_with = {"logging_level": "Silent", "allow_writing_files": False}
    allowed = {"grow_policy": ("SymmetricTree",), "posterior_sampling": (False,)}
    # What is chosen by the number of iterations, with other names.
    chosen = {"learning_rate": "eta", "max_ctr_complexity": None}
    offset = "baseline"
    of_columns = "cat_features", "text_features", "embedding_features"
    weighs_losses = "class_weights", "auto_class_weights", "scale_pos_weight"

    def n_planned(self):
        return self.estimator.get_params().get(self.count_name(), 1000)

    def class_weights(self, classes, y, weights):
        params = self.estimator.get_params()
        given, automatic = params.get("class_weights"), params.get("auto_class_weights")
        if isinstance(given, dict):
            return np.array([given.get(label, 1.0) for label in classes.tolist()])
        if given is not None:
            if len(given) != len(classes):
                raise ValueError(
                    f"class_weights has {len(given)} values, and y has {len(classes)} "
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

    def cloned(self):
        # ``clone`` refuses lists, such as cat_features, which are copied when read.
        return type(self.estimator)(**self.estimator.get_params())

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
            more = type(self.estimator)(**self._asked(n_more))
            self.booster = more.fit(X, y, init_model=self.booster, **params)

    def _asked(self, n_stages):
        """Parameters for some stages, with values chosen for the number of all."""
        params, chosen = self.estimator.get_params(), self.booster.get_all_params()
        found = {
            name: chosen[name]
            for name, other in self.chosen.items()
            if name in chosen and params.keys().isdisjoint((name, other))
        }
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
        sums, params = sums * scale + bias, self.estimator.get_params()
        loss = str(params.get("loss_function", params.get("objective")))
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
