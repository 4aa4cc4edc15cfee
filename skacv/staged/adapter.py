"""StagedAdapter: how estimators of some classes are fitted a few stages at a time."""

import sys
from abc import ABC, abstractmethod
from copy import copy

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.dummy import DummyClassifier

from .._compat import class_weights
from .._estimator.data.checks import check_columns
from .._warnings import warn
from ..optim.blocks import MEMORY_BYTES, n_per_block
from ..optim.losses import Gamma, Pinball, Poisson, SquaredError
from .losses import (
    AbsoluteError,
    LogLoss,
    OfSeveralLevels,
    WrongLabel,
    judged_by,
)

# Stages without an improvement after which a run ends: trees of boosting, and passes
# through the rows.
PATIENCE_IN_TREES, PATIENCE_IN_PASSES = 50, 10


def check_all_but_categories(X):
    """Raise where columns hold texts or dates, but for categories of a DataFrame."""
    if hasattr(X, "iloc") or not hasattr(X, "columns"):  # polars has other dtypes
        check_columns(X, skipped=("category",))


def n_stages_per_block(size):
    """Number of stages whose predictions, of ``size`` numbers each, are read together.

    They are read with their losses, and with the leaves and parts that these are made
    of: four arrays. A quarter of the memory is small beside rows that need blocks.
    """
    n_arrays = 4
    n_bytes = n_arrays * np.dtype(np.float64).itemsize * size
    return n_per_block(n_bytes, MEMORY_BYTES // 4)


def response_of(estimator):
    """The method whose values are evaluated: probabilities if there are any."""
    if not is_classifier(estimator):
        return "predict"
    has_probabilities = hasattr(estimator, "predict_proba")
    return "predict_proba" if has_probabilities else "decision_function"


def loss_named_in(params, names, losses):
    """The loss that a parameter of one of these names asks for, or None.

    ``losses`` has functions from all parameters to a loss, by what that parameter says.
    """
    for name in names:
        value = params.get(name)
        if isinstance(value, str) and value in losses:
            return losses[value](params)
    return None


def label_probabilities(probabilities, classes):
    """Probabilities of label 1 of each output; 0 if no training row has that label.

    Shapes: probabilities n_outputs times (..., n_samples, n_classes), classes n_outputs
    times (n_classes,), of 0 and 1; returned (..., n_samples, n_outputs).
    """
    # With one class boosting predicts two columns, and the first is that class.
    return np.stack(
        [
            values[..., : len(labels)][..., labels == 1].sum(axis=-1)
            for values, labels in zip(probabilities, classes)
        ],
        axis=-1,
    )


class StagedAdapter(ABC):
    """An estimator of some classes, with a common interface to its stages."""

    # Classes of the estimators.
    classes: tuple = ()
    # The parameter with the number of stages, under the name that the user has set, or
    # None.
    count: str | None = "n_estimators"
    # The name of stages in messages.
    unit = "trees"
    # Stages without an improvement after which a run ends by default. None: never.
    patience: int | None = PATIENCE_IN_TREES
    # Parameters of early stopping by the estimator itself: values that switch it off.
    early_stopping: dict = {}
    # Other parameters while it grows. Every fold would print its lines.
    grows_with: dict = {"verbose": 0}
    # How it takes survival times, if it does: "events and times" or "signed times",
    # negative where a row is censored.
    survival: str | None = None
    # The argument of ``fit`` that is added to the sum of the stages of every row.
    offset: str | None = None
    # Arguments of ``fit`` with a value for every column.
    of_columns: tuple = ()
    # Parameters that name metrics for validation rows, such as "eval_metric".
    metrics: tuple = ()
    # Parameters that may name the loss of a regressor or a classifier that its stages
    # reduce, and what judges them where it has such a name.
    loss_parameters: tuple = ("loss", "criterion")
    regression: dict = {
        "absolute_error": judged_by(AbsoluteError),
        "poisson": judged_by(Poisson),
        "gamma": judged_by(Gamma),
        "quantile": judged_by(Pinball, level=("quantile", 0.5)),
    }
    classification: dict = {}
    # Parameters that weigh classes in the fits and in mean losses.
    weighs_losses: tuple = ("class_weight",)
    # Whether classes are balanced by the weights of their rows, where the version of
    # scikit-learn does so, or by the number of rows.
    balances_weights = True
    # Expected seconds for an entry of X before the first stage, and in a stage, of a
    # model and five folds on one core; and for a stage of however few rows.
    seconds_to_start, seconds_of_stage, shortest_stage = 1e-7, 1e-6, 0.01
    # Whether it keeps the rows in a form of its own, and further stages need no others.
    has_rows = False
    # Whether all stages are kept.
    keeps_all = True
    # Whether more stages than planned may be worth their time, if the last one is best.
    is_open_ended = True
    # Whether a stage is a small step in the direction of the last ones, so that their
    # gains foretell those of further stages.
    has_steady_gains = False
    # Whether the time of a stage is proportional to the number of classes or targets.
    grows_by_class = False
    # Whether it orders the rows of queries.
    ranks = False
    # The error that has ended the growth after some stages, if one has.
    failure: Exception | None = None

    def __init__(self, estimator):
        self.estimator = estimator
        # The one whose own early stopping is switched off.
        self.minimising = estimator

    @classmethod
    def adapts(cls, estimator):
        """Whether the adapter is for an estimator."""
        return isinstance(estimator, cls.classes)

    # Before the first stage: the estimator is that of the user.

    def check_rows(self, X):
        """Raise where the estimator would cast texts or dates in X to numbers."""
        # Those of other libraries may take texts as categories.
        if type(self.estimator).__module__.startswith("sklearn."):
            check_columns(X)

    # The trees of scikit-learn take columns for constant that vary by no more than this
    # range, and do not split rows whose targets have a variance below a rounding. None:
    # the estimator has no such limits.
    least_range = None

    def warn_of_small_numbers(self, X, y):
        """Warn where columns, or y, vary too little for the estimator to see it."""
        if self.least_range is None:
            return
        name = type(self.estimator).__name__
        array = np.empty((1, 0)) if sparse.issparse(X) else np.asarray(X)
        if array.ndim == 2 and array.dtype.kind == "f":
            spread = np.ptp(array, axis=0)
            small = np.flatnonzero((spread > 0) & (spread <= self.least_range))
            if len(small):
                warn(
                    f"{name} treats columns that vary by {self.least_range:g} or less "
                    f"as constants: {len(small)} of the columns of X, first "
                    f"{small[0]}. Multiply them by a large number.",
                    UserWarning,
                )
        if not is_classifier(self.estimator):
            variance = float(np.var(np.asarray(y, np.float64), axis=0).max())
            if 0 < variance <= np.finfo(np.float64).eps:
                warn(
                    f"{name} does not split rows if y has a variance as small as "
                    f"{variance:.1g}: multiply y by a large number.",
                    UserWarning,
                )

    def n_planned(self):
        """Number of stages that the parameters ask for."""
        return getattr(self.estimator, self.count)

    def expected_seconds(self, n_rows, n_columns):
        """Seconds before the first stage, and for each: a model and five folds."""
        n_entries = n_rows * n_columns
        stage = self.shortest_stage + self.seconds_of_stage * n_entries
        return self.seconds_to_start * n_entries, stage

    def class_weights(self, classes, y, weights):
        """Weights of the classes in mean losses.

        Shapes: classes and returned (n_classes,); y and weights (n_samples,).
        """
        class_weight = self.estimator.get_params(deep=False).get("class_weight")
        # "balanced_subsample" of forests, too.
        balanced = "balanced" if isinstance(class_weight, str) else class_weight
        weights = weights if self.balances_weights else np.ones_like(weights)
        return class_weights(balanced, classes, y, weights)

    def regression_loss(self):
        """The loss of a regressor's stages: that of its fit, or the squared error."""
        return self.named_loss(self.regression) or SquaredError()

    def params_of_loss(self, loss):
        """Parameters with which a regressor's stages minimise a loss of a level.

        None if they cannot: it has no such loss. ``loss`` has a level, such as Pinball,
        or is of several levels.
        """
        is_of_several = isinstance(loss, OfSeveralLevels)
        of_one = loss.losses[0] if is_of_several else loss
        names = []
        for name, judge in self.regression.items():
            if judge.loss is type(of_one):
                level, _ = judge.fields["level"]
                names += [(name, level)] * self.takes_parameter(level)
        if not names:
            return None
        # Where several levels have a name of their own it comes last.
        name, level = names[-1] if is_of_several else names[0]
        value = list(loss.levels) if is_of_several else loss.level
        params = self.estimator.get_params(deep=False)
        return self.params_named(name, {level: value}, params)

    def takes_parameter(self, name):
        """Whether the estimator has a parameter of this name."""
        return name in self.estimator.get_params(deep=False)

    def params_named(self, name, numbers, params):
        """Parameters that ask for the loss of a name with these numbers.

        ``params`` are those of the estimator, which has one name of several for the
        parameter with the loss.
        """
        of_loss = [key for key in self.loss_parameters if params.get(key) is not None]
        return {(of_loss or self.loss_parameters)[0]: name, **numbers}

    def unnamed_loss(self):
        """The parameter of a regressor that is a loss without a name, and its value.

        None where there is none. Such a loss, a function as a rule, is not known.
        """
        params = self.estimator.get_params(deep=False)
        for name in self.loss_parameters:
            value = params.get(name)
            if is_regressor(self.estimator) and not isinstance(value, str | None):
                return name, value
        return None

    def classification_loss(self):
        """The loss of a classifier's stages, the log loss as a rule."""
        if response_of(self.estimator) != "predict_proba":
            return WrongLabel()
        return self.named_loss(self.classification) or LogLoss()

    def named_loss(self, losses):
        """The loss among these that the parameters name, or None."""
        params = self.estimator.get_params(deep=False)
        return loss_named_in(params, self.loss_parameters, losses)

    def why_worse(self, X, y):
        """Why stages may be worse than a constant, for a warning.

        ``X`` is None where other steps have changed it.
        """
        return (
            "Its columns may be unrelated to y, or its steps or members fit noise: "
            "make them smaller."
        )

    def clone_estimator(self):
        """A clone of the estimator."""
        return clone(self.estimator)

    def begin(self):
        """An adapter of a clone without stages, which will not stop itself."""
        names = self.estimator.get_params(deep=False).keys()
        params = self.early_stopping | self.grows_with
        for name in params.keys() - names:
            del params[name]
        return type(self)(clone(self.estimator).set_params(**params))

    def n_next(self, n_stages):
        """Number of stages of the next step of growth, ``n_stages`` at most."""
        return min(n_stages, self.n_planned())

    def n_left_out(self, n_rows):
        """Number of members that are expected to leave out a row of ``n_rows``.

        It is 0 where members do not draw their rows, or not all with equal odds.
        """
        return 0.0

    # From the first stage on: the estimator is the clone.

    @abstractmethod
    def grow(self, n_stages, X, y, params):
        """Grow to ``n_stages`` stages in total; ``params`` are those of ``fit``."""

    @property
    def n_stages(self):
        """Number of stages: fewer than asked for if the growth has ended."""
        return len(self.estimator.estimators_)

    def recorded_stages(self):
        """Numbers of the stages that are available, in order."""
        return np.arange(1, self.n_stages + 1)

    def n_kept(self, n_models):
        """Number of stages of each of ``n_models`` models that fit in memory."""
        return sys.maxsize

    def keep(self, stages):
        """An adapter with these stages only, if stages take memory of their own."""
        return self

    def drop_rows(self):
        """An adapter that keeps no training rows."""
        return self

    def fitted_estimator(self):
        """The fitted estimator, with all its stages."""
        return self.estimator

    @abstractmethod
    def at(self, t):
        """A fitted estimator with the first ``t`` stages, which it shares."""

    @abstractmethod
    def predictions(self, X, first, last, former_sums=None):
        """Values of :func:`response_of` at stages ``first + 1`` to ``last``.

        The second result is passed as ``former_sums`` to predict X from ``last`` on.
        Shapes: returned (last - first, n_samples, ...), and for several labels in a row
        (last - first, n_samples, n_labels), the probability of each.
        """

    def shap_values(self, X):
        """SHAP values of a fitted estimator as its library exports them, or None.

        They add up to the sum of the stages, the base value last. Shapes: returned
        (n_samples[, n_outputs], n_features + 1).
        """
        return None

    def as_targets(self, predictions):
        """What ``predict`` of the estimator returns, in the shape of its targets."""
        return predictions

    def predictions_to(self, X, first, last, former_sums=None):
        """As :meth:`predictions`; stages after the last one predict as the last."""
        stages = np.minimum(np.arange(first, last), self.n_stages - 1)
        begin = stages[0]
        predictions, former_sums = self.predictions(
            X, begin, stages[-1] + 1, former_sums if begin == first else None
        )
        return predictions[stages - begin], former_sums


class WarmStart(StagedAdapter):
    """Estimators whose ``fit`` continues if the number of stages is larger."""

    grows_with = {"verbose": 0, "warm_start": True}
    # The fitted attribute with the members, one or several for every stage.
    members = "estimators_"

    def grow(self, n_stages, X, y, params):
        self.estimator.set_params(**{self.count: n_stages}).fit(X, y, **params)

    def at(self, t):
        stopped = self.slice_stages(0, t)
        return stopped.set_params(warm_start=False, **{self.count: t})

    def slice_stages(self, first, last):
        """A copy of the estimator with stages ``first + 1`` to ``last``."""
        part = copy(self.estimator)
        setattr(part, self.members, getattr(part, self.members)[first:last])
        return part


class OneClass(StagedAdapter):
    """In the place of a classifier of rows of one class: every stage is certain of it.

    Many classifiers refuse such rows, which a fold may have.
    """

    has_rows = True
    n_stages = 0

    def __init__(self, label, classes, response):
        model = DummyClassifier(strategy="constant", constant=label)
        super().__init__(model.fit(np.zeros((len(classes), 1)), classes))
        self.response = response

    def grow(self, n_stages, X, y, params):
        self.n_stages = n_stages

    def at(self, t):
        return self.estimator

    def predictions(self, X, first, last, former_sums=None):
        values = self.estimator.predict_proba(X)
        if self.response != "predict_proba" and values.shape[1] == 2:
            values = values[:, 1] - values[:, 0]  # a decision for the second class
        return np.stack([values] * (last - first)), None


# The first that adapts an estimator is taken. ``adapters.py`` lists all.
ADAPTERS: list[type[StagedAdapter]] = []


def staged_adapter_of(estimator):
    """The adapter of an estimator; None if it cannot be fitted in stages."""
    for adapter in ADAPTERS:
        if adapter.adapts(estimator):
            return adapter(estimator)
    return None
