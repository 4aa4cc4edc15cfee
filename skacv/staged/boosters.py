"""Boosted trees of XGBoost, LightGBM and CatBoost: what all of them share.

They are recognised by their names. A library is imported only once there is an
estimator of it.

All grow as one fit with as many trees does, to the last bit, also where rows or columns
are drawn for every tree: none begins its draws anew.
"""

from abc import abstractmethod
from copy import copy

import numpy as np
from sklearn.base import clone, is_classifier

from .kind import StagedAdapter

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
# Names of metrics that are the losses which judge stages.
JUDGES = {
    "squared error": {
        "rmse",
        "l2",
        "mse",
        "l2_root",
        "mean_squared_error",
        "root_mean_squared_error",
        "regression",
        "regression_l2",
    },
    "absolute error": {"mae", "l1", "mean_absolute_error", "regression_l1"},
    "log loss": {
        "logloss",
        "mlogloss",
        "binary_logloss",
        "multi_logloss",
        "binary",
        "multiclass",
        "softmax",
        "cross_entropy",
        "crossentropy",
        "xentropy",
    },
}
# Names that ask for no metric.
NO_METRIC = {"none", "null", "na", "custom", ""}


def of_two_classes(found):
    """Probabilities of both classes, where there are those of the second alone."""
    return np.stack([1 - found, found], axis=2) if found.ndim == 2 else found


class Boosters(StagedAdapter):
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
    refused : dict of str to str
        Parameters that cannot be set, here or in ``fit``, and what to do instead.
    objectives : tuple of str
        Names of the parameter with the objective.
    regression, classification : frozenset of str
        Objectives by whose predictions stages can be judged.
    metrics : tuple of str
        Parameters that name metrics for validation rows.
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
    refused: dict = {}
    objectives: tuple = ("objective",)
    regression: frozenset = frozenset()
    classification: frozenset = frozenset()
    metrics: tuple = ("eval_metric",)
    booster = None
    seconds_to_start, seconds_of_stage, grows_by_class = 1e-6, 1e-7, True

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
        self._check_refused(settings)
        self._check_objective()
        left_out = {*self.own_stopping, *self.loud}
        kept = {key: settings[key] for key in settings if key not in left_out}
        kept = {key: clone(value, safe=False) for key, value in kept.items()}
        return type(self)(own(**kept | self.grows_with))

    def _check_refused(self, params):
        for key, instead in self.refused.items():
            if params.get(key) is not None:
                raise ValueError(
                    f"{type(self.estimator).__name__} with {key}={params[key]!r} "
                    f"cannot be fitted stage by stage: {instead}."
                )

    def _check_objective(self):
        """Raise if stages cannot be judged by predictions with a named objective."""
        objective = self.objective()
        known = (
            self.classification if is_classifier(self.estimator) else self.regression
        )
        if isinstance(objective, str) and known.isdisjoint(
            {objective, objective.partition(":")[0]}
        ):
            raise ValueError(
                f"{type(self.estimator).__name__} with the objective {objective!r} "
                "cannot be judged by its predictions: take one of "
                f"{', '.join(sorted(known))}."
            )

    def unread_metrics(self, loss, params):
        settings = self.estimator.get_params(deep=False) | params
        judges = JUDGES.get(loss.name.removeprefix("half "), set())
        judges = judges | {str(self.objective()).lower()}
        found = []
        for key in self.metrics:
            asked = settings.get(key)
            metrics = asked if isinstance(asked, list | tuple | set) else [asked]
            names = {str(metric).lower() for metric in metrics}
            if names - judges - NO_METRIC:
                found.append(f"{key}={asked!r}")
        return found

    def objective(self):
        """The objective, as the user has named it, if at all."""
        settings = self.estimator.get_params(deep=False)
        return next(
            (settings[key] for key in self.objectives if settings.get(key) is not None),
            None,
        )

    def grow(self, n_stages, X, y, params):
        if self.booster is None:
            for key in NOT_PASSED & params.keys():
                if params[key] is not None:
                    raise ValueError(
                        f"{key} cannot be passed to {type(self.estimator).__name__}: "
                        "its stages begin with the first tree, and folds evaluate them."
                    )
            self._check_refused(params)
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


class SumsOfLeaves(Boosters):
    """Boosted trees whose leaves are read once, and added up tree by tree.

    The sums are those of the library to the last bit. Where their exponential is taken,
    as for probabilities, the last bit of that may be another.
    """

    def predictions(self, X, first, last, side_runs=None):
        begin = 0 if side_runs is None else first
        values = self._of_trees(X, begin, last)
        if side_runs is not None:
            values = np.concatenate([side_runs[None], values])
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
