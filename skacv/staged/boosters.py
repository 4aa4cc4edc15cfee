"""Boosted trees of XGBoost, LightGBM and CatBoost: the base of their adapters.

They are recognised by their names. A library is imported only once there is an
estimator of it.

All grow as one fit with as many trees does, to the last bit, also where rows or columns
are drawn for every tree: none begins its draws anew.
"""

from copy import copy
from itertools import pairwise

import numpy as np
from sklearn.base import clone, is_classifier

from .adapter import StagedAdapter, check_all_but_categories, n_stages_per_block

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
# Names of the metrics that are losses of stages.
METRICS_OF_LOSSES = {
    "Cox deviance": {"cox-nloglik", "cox"},
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


def add_first_class(probabilities):
    """Probabilities of both classes, where there are those of the second alone.

    Shapes: probabilities (n_stages, n_samples) or (n_stages, n_samples, n_classes).
    """
    if probabilities.ndim == 2:
        return np.stack([1 - probabilities, probabilities], axis=2)
    return probabilities


class Boosters(StagedAdapter):
    """Boosted trees of another library.

    A library defines ``begin(n_stages, X, y, params)``, which creates ``booster``, and
    ``go_on`` with the same arguments, which grows it to ``n_stages`` stages if it has
    fewer.
    """

    library = ""
    # Names of the classes, and of classes that inherit from these and are not adapted.
    names: tuple = ()
    excluded: tuple = ()
    # Other names of ``count``.
    aliases: tuple = ()
    # Parameters that print lines. They are left out, and ``grows_with`` set instead.
    verbose_params: tuple = ()
    grows_with: dict = {}
    # Values of parameters, besides None, with which earlier stages are available.
    allowed: dict = {}
    # Parameters that cannot be set, here or in ``fit``, with the advice of the error.
    refused: dict = {}
    # Names of the parameter with the objective. Others than those that ``regression``
    # and ``classification`` list are refused.
    loss_parameters: tuple = ("objective",)
    metrics: tuple = ("eval_metric",)
    # Types of columns of polars, besides numbers and booleans, that the library reads:
    # others end the interpreter.
    reads: tuple = ()
    # The trees, as their library has them; None before the first.
    booster = None
    seconds_to_start, seconds_of_stage = 1e-6, 1e-7
    grows_by_class, has_steady_gains = True, True

    def __init__(self, estimator):
        super().__init__(estimator)
        # The parameters of the estimator, of which libraries look for the names anew
        # whenever they are read.
        self.settings = settings = estimator.get_params(deep=False)
        aliases = (name for name in self.aliases if settings.get(name) is not None)
        self.count = next(aliases, self.count)

    @classmethod
    def adapts(cls, estimator):
        names = {
            base.__name__
            for base in type(estimator).__mro__
            if base.__module__.partition(".")[0] == cls.library
        }
        return not names.isdisjoint(cls.names) and names.isdisjoint(cls.excluded)

    def begin(self):
        make, settings = type(self.estimator), self.settings
        for key, values in self.allowed.items():
            if settings.get(key) not in (None, *values):
                raise ValueError(
                    f"{make.__name__} with {key}={settings[key]!r} cannot "
                    f"be fitted stage by stage: use {key}={values[0]!r}."
                )
        self._check_refused(settings)
        objective, objectives = self.objective(), self.regression
        if is_classifier(self.estimator):
            objectives = self.classification
        if isinstance(objective, str) and objectives.keys().isdisjoint(
            {objective, objective.partition(":")[0]}
        ):
            raise ValueError(
                f"{make.__name__} with the objective {objective!r} cannot be "
                "evaluated from its predictions: use one of "
                f"{', '.join(sorted(objectives))}."
            )
        kept = settings.keys() - self.early_stopping.keys() - {*self.verbose_params}
        params = {key: clone(settings[key], safe=False) for key in kept}
        return type(self)(make(**params | self.grows_with))

    def _check_refused(self, params):
        for key, instead in self.refused.items():
            if params.get(key) is not None:
                raise ValueError(
                    f"{type(self.estimator).__name__} with {key}={params[key]!r} "
                    f"cannot be fitted stage by stage: {instead}."
                )

    def check_rows(self, X):
        schema = X.schema if hasattr(X, "get_columns") else {}  # of polars
        for name, dtype in schema.items():
            is_read = dtype.is_integer() or dtype.is_float()
            if not is_read and str(dtype.base_type()) not in ("Boolean", *self.reads):
                library = type(self).__name__
                raise TypeError(
                    f"Column {name!r} of X holds {dtype}, which {library} cannot read "
                    "from a polars frame: TrajectoryEarlyStoppingCV(..., "
                    "encoder=TableEncoder()) encodes it, or try X.to_pandas()."
                )

    def unread_metrics(self, loss, params):
        """Metrics that the user has set, such as "eval_metric='auc'", but for the loss.

        Stages are evaluated by the loss. ``params`` are those of ``fit``.
        """
        settings = self.settings | params
        read = METRICS_OF_LOSSES.get(loss.name.removeprefix("half "), set())
        read = read | NO_METRIC | {str(self.objective()).lower()}
        unread = []
        for key in self.metrics:
            value = settings.get(key)
            metrics = value if isinstance(value, list | tuple | set) else [value]
            if {str(metric).lower() for metric in metrics} - read:
                unread.append(f"{key}={value!r}")
        return unread

    def objective(self):
        """The objective that the user has set; None if there is none."""
        values = (self.settings.get(key) for key in self.loss_parameters)
        return next((value for value in values if value is not None), None)

    def takes_parameter(self, name):
        return True  # also those that it does not list

    def named_loss(self, losses):
        name, params = self.objective(), self.settings
        if isinstance(name, str) and name not in losses:
            # Such as CatBoost's "Quantile:alpha=0.9".
            name, _, settings = name.partition(":")
            pairs = (pair.split("=") for pair in settings.split(";") if "=" in pair)
            params = params | dict(pairs)
        judge = losses.get(name) if isinstance(name, str) else None
        return judge and judge(params)

    def grow(self, n_stages, X, y, params):
        if self.booster is None:
            for key in NOT_PASSED & params.keys():
                if params[key] is not None:
                    raise ValueError(
                        f"{key} cannot be passed to {type(self.estimator).__name__}: "
                        "its stages start from the first tree, and folds evaluate "
                        "them."
                    )
            self._check_refused(params)
            self.check_rows(X)
            self.begin_boosting(n_stages, X, y, params)
        self.go_on(n_stages, X, y, params)

    def drop_rows(self):
        finished = copy(self)
        finished.booster = self.booster.copy()
        return finished


class Updated(Boosters):
    """Boosted trees that grow by updates of a booster.

    A library defines ``update(rows, objective)``, which adds the trees of one stage and
    returns whether there can be no more.
    """

    # The training rows as the library has them, and the user's objective; the thread in
    # which trees grow, a ThreadPoolExecutor, or None for any. Neither is pickled.
    training = thread = None
    has_rows = True
    # Whether there can be no more trees.
    has_ended = False

    def check_rows(self, X):
        super().check_rows(X)
        check_all_but_categories(X)

    def __getstate__(self):
        return vars(self) | {"training": None, "thread": None}

    def go_on(self, n_stages, X, y, params):
        while self.n_stages < n_stages and not self.has_ended:
            self.has_ended = self.update(*self.training)


class SumsOfLeaves(Boosters):
    """Boosted trees whose leaves are read once, and added up tree by tree.

    The sums are those of the library to the last bit. Where their exponential is taken,
    as for probabilities, the last bit of that may be another. A library defines
    ``leaves(X, first, last)``, the terms of stages ``first + 1`` to ``last``, and
    ``response(sums)``, predictions from sums of them, of the same shape.
    Shapes: leaves and sums (last - first, n_samples, n_outputs).
    """

    def predictions(self, X, first, last, former_sums=None):
        if former_sums is None and first:
            # The sums of earlier stages, a block of them at a time.
            former_sums = self.leaves(X, 0, 1)[0]
            size = n_stages_per_block(former_sums.size)
            for begin in range(1, first, size):
                for values in self.leaves(X, begin, min(begin + size, first)):
                    former_sums += values
        sums = self.leaves(X, first, last)
        if former_sums is not None:
            sums[0] += former_sums
        for before, values in pairwise(sums):
            values += before
        predictions = self.response(sums)
        if predictions.shape[2] == 1:
            predictions = predictions[:, :, 0]
        if is_classifier(self.estimator):
            predictions = add_first_class(predictions)
        return predictions, sums[-1].copy()
