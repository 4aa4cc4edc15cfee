"""How estimators of some classes are fitted a few stages at a time."""

import sys
from abc import ABC, abstractmethod

import numpy as np
from sklearn.base import clone, is_classifier

# Stages without an improvement after which a run ends: trees of boosting, and passes
# through the rows.
TREES, PASSES = 50, 10
# Averages have no best stage but by chance: no number of trees ends them.
NEVER = None


def response_of(estimator):
    """The method whose values judge an estimator: probabilities where it has them."""
    if not is_classifier(estimator):
        return "predict"
    has_probabilities = hasattr(estimator, "predict_proba")
    return "predict_proba" if has_probabilities else "decision_function"


class Kind(ABC):
    """How estimators of some classes are fitted a few stages at a time.

    Attributes
    ----------
    count : str
        The parameter with the number of stages.
    patience : int or None
        Stages without an improvement after which a run ends by default.
    own_stopping : dict
        Parameters by which estimators judge themselves, and what switches that off.
    quiet : dict
        Parameters by which they print no lines, of which every fold would have its own.
    """

    count = "n_estimators"
    patience = TREES
    own_stopping: dict = {}
    quiet: dict = {"verbose": 0}

    @abstractmethod
    def is_of(self, estimator):
        """Whether an estimator is one of these."""

    def n_planned(self, estimator):
        """How many stages the estimator is asked for."""
        return getattr(estimator, self.count)

    def count_of(self, estimator):
        """The parameter with the number of stages, by the name that has been set."""
        return self.count

    def asked_to_stop(self, estimator):
        """Parameters by which it would stop itself, as they were set."""
        params = estimator.get_params(deep=False)
        return [
            f"{name}={params[name]!r}"
            for name, off in self.own_stopping.items()
            if params.get(name, off) not in (off, "auto")
        ]

    def cloned(self, estimator):
        """A clone."""
        return clone(estimator)

    def begun(self, estimator):
        """A clone that has no stages yet, and will not stop itself."""
        settings, off = estimator.get_params(deep=False), self.own_stopping | self.quiet
        return clone(estimator).set_params(
            **{name: off[name] for name in off if name in settings}
        )

    def n_next(self, n_stages, n_planned):
        """How many stages it will have where so many are asked for, if it can."""
        return min(n_stages, n_planned)

    @abstractmethod
    def grow(self, begun, n_stages, X, y, params):
        """Let it have so many stages in all.

        Parameters
        ----------
        begun : estimator
            What ``begun`` or this method has returned; it may be changed.
        n_stages : int
        X, y : training rows
        params : dict
            What else ``fit`` is passed.

        Returns
        -------
        estimator
        """

    @abstractmethod
    def n_stages(self, begun):
        """How many stages it has: fewer than asked for where it has ended."""

    def recorded(self, begun):
        """Stages that can be had again, in order: all, as a rule."""
        return np.arange(1, self.n_stages(begun) + 1)

    def n_kept(self, begun, n_models):
        """How many stages of each of some models there is room for."""
        return sys.maxsize

    def keep(self, begun, stages):
        """What these stages need, where others take memory."""
        return begun

    def without_rows(self, begun):
        """What predicts, without anything that has been kept of training rows."""
        return begun

    def fitted(self, begun):
        """A fitted estimator to look at, whatever stages it has."""
        return self.at(begun, self.n_stages(begun))

    @abstractmethod
    def at(self, begun, t):
        """A fitted estimator with the first ``t`` stages, which shares them."""

    @abstractmethod
    def predictions(self, begun, X, first, last, carried=None):
        """What stages ``first + 1`` to ``last`` predict.

        Parameters
        ----------
        begun : estimator
        X : rows
        first, last : int
            The stages are among those that :meth:`recorded` says.
        carried : object, default=None
            What this method has returned for the stages up to ``first``.

        Returns
        -------
        predictions : ndarray of shape (last - first, n_samples, ...)
            Values of :func:`response_of`.
        carried : object
        """
