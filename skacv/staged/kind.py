"""How estimators of some classes are fitted a few stages at a time."""

import sys
from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from .._compat import class_weights

# Stages without an improvement after which a run ends: trees of boosting, and passes
# through the rows.
TREES, PASSES = 50, 10
# Averages have no best stage but by chance: no number of trees ends them.
NEVER = None


def response_of(estimator):
    """The method whose values are evaluated: probabilities if there are any."""
    if not is_classifier(estimator):
        return "predict"
    has_probabilities = hasattr(estimator, "predict_proba")
    return "predict_proba" if has_probabilities else "decision_function"


class StagedAdapter(ABC):
    """An estimator of some classes that is fitted a few stages at a time.

    Parameters
    ----------
    estimator : estimator
        As the user has it; where it grows, what :meth:`begun` makes of it.

    Attributes
    ----------
    classes : tuple
        The classes.
    count : str
        The parameter with the number of stages.
    unit : str
        What stages are, in messages.
    patience : int or None
        Stages without an improvement after which a run ends by default.
    own_stopping : dict
        Parameters of early stopping by the estimator itself, and values that switch it
        off.
    grows_with : dict
        Other parameters while it grows: that it prints no lines, of which every fold
        would have its own.
    offset : str or None
        The argument of ``fit`` that is added to the sum of the stages of every row.
    of_columns : tuple of str
        Arguments of ``fit`` with a value for every column.
    weighs_losses : tuple of str
        Parameters that weigh classes, in the fits and in mean losses.
    balances_weights : bool
        Whether classes are balanced by the weights of their rows, where the version of
        scikit-learn does so, or by the number of rows.
    seconds_to_start, seconds_of_stage : float
        What an entry of X is expected to take before the first stage, and in a stage,
        of a model and five folds, on one core.
    grows_by_class : bool
        Whether a stage takes as many times as long as there are classes or targets.
    """

    classes: tuple = ()
    count = "n_estimators"
    unit = "trees"
    patience = TREES
    own_stopping: dict = {}
    grows_with: dict = {"verbose": 0}
    offset: str | None = None
    of_columns: tuple = ()
    weighs_losses: tuple = ("class_weight",)
    balances_weights = True
    seconds_to_start = 1e-7
    seconds_of_stage = 1e-6
    grows_by_class = False

    def __init__(self, estimator):
        self.estimator = estimator

    @classmethod
    def is_of(cls, estimator):
        """Whether an estimator is one of these."""
        return isinstance(estimator, cls.classes)

    # What is known before it grows.

    @property
    def minimising(self):
        """The estimator whose parameters name the loss that stages reduce."""
        return self.estimator

    def tags(self):
        """What the estimator takes, as scikit-learn's tags say it."""
        return get_tags(self.estimator)

    def count_name(self):
        """The parameter with the number of stages, by the name that has been set."""
        return self.count

    def n_planned(self):
        """Number of stages that the parameters ask for."""
        return getattr(self.estimator, self.count)

    def asked_to_stop(self):
        """Parameters by which it would stop itself, as they were set."""
        params = self.estimator.get_params(deep=False)
        return [
            f"{name}={params[name]!r}"
            for name, off in self.own_stopping.items()
            if params.get(name, off) not in (off, "auto")
        ]

    def unread_metrics(self, loss, params):
        """Metrics that the user has named but that do not judge stages.

        Parameters
        ----------
        loss : Loss
            The loss that judges them.
        params : dict
            What ``fit`` is passed.

        Returns
        -------
        list of str
            Such as ``"eval_metric='auc'"``.
        """
        return []

    def class_weights(self, classes, y, weights):
        """Weights of the classes in mean losses.

        Shapes: classes and returned (n_classes,); y and weights (n_samples,).
        """
        asked = self.estimator.get_params(deep=False).get("class_weight")
        asked = "balanced" if isinstance(asked, str) else asked
        weights = weights if self.balances_weights else np.ones_like(weights)
        return class_weights(asked, classes, y, weights)

    def cloned(self):
        """A clone of the estimator."""
        return clone(self.estimator)

    def begun(self):
        """The same with a clone that has no stages yet, and will not stop itself."""
        settings = self.estimator.get_params(deep=False)
        params = self.own_stopping | self.grows_with
        params = {name: params[name] for name in params if name in settings}
        return type(self)(clone(self.estimator).set_params(**params))

    def n_next(self, n_stages):
        """Number of stages that it can grow to, up to ``n_stages``."""
        return min(n_stages, self.n_planned())

    # What grows: what :meth:`begun` has returned.

    @abstractmethod
    def grow(self, n_stages, X, y, params):
        """Grow to ``n_stages`` stages in total.

        Parameters
        ----------
        params : dict
            What else ``fit`` is passed.
        """

    @property
    def n_stages(self):
        """Number of stages: fewer than planned if it has ended."""
        return len(self.estimator.estimators_)

    def recorded(self):
        """Stages that are available again, in order: usually all."""
        return np.arange(1, self.n_stages + 1)

    def n_kept(self, n_models):
        """Number of stages of each of some models that fit in memory."""
        return sys.maxsize

    def keep(self, stages):
        """The same with these stages only, if others take memory."""
        return self

    def without_rows(self):
        """The estimator without anything kept of training rows."""
        return self

    def fitted(self):
        """The fitted estimator, with all its stages."""
        return self.estimator

    @abstractmethod
    def at(self, t):
        """A fitted estimator with the first ``t`` stages, which shares them."""

    @abstractmethod
    def predictions(self, X, first, last, side_runs=None):
        """Predictions of stages ``first + 1`` to ``last``.

        Parameters
        ----------
        X : rows
        first, last : int
            The stages are among those that :meth:`recorded` says.
        carried : object, default=None
            What this method has returned for the stages up to ``first``.

        Returns
        -------
        predictions : ndarray of shape (last - first, n_samples, ...)
            Values of :func:`response_of`; if rows have several labels, the probability
            of each of them, (last - first, n_samples, n_labels).
        carried : object
        """

    def predictions_to(self, X, first, last, side_runs=None):
        """The same, also of stages after the last: they predict what that one does.

        Parameters
        ----------
        X, first, last, carried
            As in :meth:`predictions`.

        Returns
        -------
        predictions : ndarray of shape (last - first, n_samples, ...)
        carried : object
        """
        stages = np.minimum(np.arange(first, last), self.n_stages - 1)
        begin = stages[0]
        predictions, side_runs = self.predictions(
            X, begin, stages[-1] + 1, side_runs if begin == first else None
        )
        return predictions[stages - begin], side_runs
