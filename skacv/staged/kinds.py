"""Kinds of estimators that are fitted stage by stage: how each goes on, and goes back.

A kind is one entry of ``KINDS``. It says which estimators it is of, how these take more
stages, what they predict at each of them, and how an earlier stage is had again. Add
one here, or for another library in ``boosters.py``, and it inherits the tests of
``tests/staged/test_kinds.py``.
"""

import pickle
from abc import abstractmethod
from copy import copy, deepcopy
from functools import cached_property
from itertools import islice

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils import check_array

from .._compat import (
    Resumed,
    class_weights,
    predicted_by,
    staged_sums,
    with_stages,
)
from .._estimator.recording import RecordsTrajectory
from .boosters import CatBoost, LightGBM, XGBoost
from .kind import NEVER, PASSES, Kind, response_of

# Where copies are kept of a model and its folds: what they may take in all. Of as many
# stages as there is room for all are kept, of others only some.
MOST_BYTES = 1 << 28


class WarmStart(Kind):
    """``fit`` goes on where the number of stages is larger."""

    classes: tuple = ()

    def is_of(self, estimator):
        return isinstance(estimator, self.classes)

    def begun(self, estimator):
        return super().begun(estimator).set_params(warm_start=True)

    def grow(self, begun, n_stages, X, y, params):
        return begun.set_params(**{self.count: n_stages}).fit(X, y, **params)

    def at(self, begun, t):
        return self._some(begun, 0, t).set_params(warm_start=False, **{self.count: t})

    @abstractmethod
    def _some(self, begun, first, last):
        """A copy with some of the stages alone."""


class Boosting(WarmStart):
    """Boosted trees. Some of them go on from the sums of those before."""

    def _some(self, begun, first, last):
        return with_stages(begun, first, last)

    def predictions(self, begun, X, first, last, carried=None):
        begin = 0 if carried is None else first
        sums = staged_sums(self._some(begun, begin, last), X, carried)
        found = list(islice(sums, first - begin, None))
        return np.stack([predicted_by(begun, each) for each in found]), found[-1]


class HistBoosting(Boosting):
    """Boosted trees on binned columns."""

    classes = HistGradientBoostingRegressor, HistGradientBoostingClassifier
    count = "max_iter"
    own_stopping = {"early_stopping": False}

    def begun(self, estimator):
        return Resumed(super().begun(estimator))

    def grow(self, begun, n_stages, X, y, params):
        begun.boosted.set_params(max_iter=n_stages)
        begun.fit(X, y, **params)
        return begun

    def n_stages(self, begun):
        return begun.boosted.n_iter_

    def at(self, begun, t):
        return super().at(begun.boosted, t)

    def predictions(self, begun, X, first, last, carried=None):
        return super().predictions(begun.boosted, X, first, last, carried)

    def without_rows(self, begun):
        return Resumed(begun.boosted)


class PlainBoosting(Boosting):
    """Boosted trees as they are."""

    classes = GradientBoostingRegressor, GradientBoostingClassifier
    own_stopping = {"n_iter_no_change": None}

    def n_stages(self, begun):
        return len(begun.estimators_)

    def at(self, begun, t):
        found = super().at(begun, t)
        found.n_estimators_ = t
        found.train_score_ = begun.train_score_[:t]
        if hasattr(begun, "oob_scores_"):
            found.oob_improvement_ = begun.oob_improvement_[:t]
            found.oob_scores_ = begun.oob_scores_[:t]
            found.oob_score_ = found.oob_scores_[-1]
        return found


class Averages(WarmStart):
    """Means over members that are fitted on their own."""

    patience = NEVER

    def n_stages(self, begun):
        return len(begun.estimators_)

    def predictions(self, begun, X, first, last, carried=None):
        each = self._of_members(begun, X)
        total = carried if carried is not None else sum(islice(each(0), first), 0.0)
        found = []
        for t, own in enumerate(islice(each(first), last - first), first + 1):
            total = total + own
            found.append(total / t)
        return np.stack(found), total

    @abstractmethod
    def _of_members(self, begun, X):
        """A function: predictions of members, from one on."""


# What forests say of all of their trees.
OUT_OF_BAG = {"oob_score_", "oob_prediction_", "oob_decision_function_"}


class Forests(Averages):
    """Random forests and extra trees."""

    classes = (
        RandomForestRegressor,
        RandomForestClassifier,
        ExtraTreesRegressor,
        ExtraTreesClassifier,
    )

    def at(self, begun, t):
        found = super().at(begun, t)
        if t < self.n_stages(begun):  # there are none of fewer trees
            for name in OUT_OF_BAG & vars(found).keys():
                delattr(found, name)
        return found

    def _some(self, begun, first, last):
        found = copy(begun)
        found.estimators_ = begun.estimators_[first:last]
        return found

    def _of_members(self, begun, X):
        # As forests do it: trees split at values of single precision.
        X = check_array(
            X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False
        )
        response = response_of(begun)

        def each(first):
            for tree in begun.estimators_[first:]:
                yield getattr(tree, response)(X)

        return each


class Baggings(Averages):
    """Bagging of any estimator."""

    classes = BaggingRegressor, BaggingClassifier

    # It cannot be had of members that are added.
    own_stopping = {"oob_score": False}

    def _some(self, begun, first, last):
        found = copy(begun)
        found.n_estimators = last - first
        found.estimators_ = begun.estimators_[first:last]
        found.estimators_features_ = begun.estimators_features_[first:last]
        return found

    def _of_members(self, begun, X):
        response = response_of(begun)

        def each(first):
            for t in range(first, len(begun.estimators_)):
                yield getattr(self._some(begun, t, t + 1), response)(X)

        return each


class Once:
    """A fitted estimator that is asked for the same rows again and again.

    Parameters
    ----------
    estimator : estimator
    """

    def __init__(self, estimator):
        self.estimator, self._found = estimator, None

    def predict(self, X):
        """What it has predicted first."""
        if self._found is None:
            self._found = self.estimator.predict(X)
        return self._found


class AtOnce(Kind):
    """Boosting that cannot go on, and is fitted to all its stages at once."""

    patience = NEVER

    def is_of(self, estimator):
        return isinstance(estimator, AdaBoostRegressor | AdaBoostClassifier)

    def n_next(self, n_stages, n_planned):
        return n_planned

    def grow(self, begun, n_stages, X, y, params):
        return begun if hasattr(begun, "estimators_") else begun.fit(X, y, **params)

    def n_stages(self, begun):
        return len(begun.estimators_)

    def at(self, begun, t):
        found = copy(begun).set_params(n_estimators=t)
        found.estimators_ = begun.estimators_[:t]
        found.estimator_weights_ = begun.estimator_weights_[:t]
        found.estimator_errors_ = begun.estimator_errors_[:t]
        return found

    def predictions(self, begun, X, first, last, carried=None):
        known = copy(begun)
        # A median is taken over all members at every stage.
        known.estimators_ = [Once(each) for each in begun.estimators_[:last]]
        staged = getattr(known, f"staged_{response_of(begun)}")(X)
        return np.stack(list(islice(staged, first, last))), None


class Copies:
    """An estimator and copies of it, by the stage after which they were made.

    Attributes
    ----------
    estimator : estimator
    after : dict of int to estimator
    """

    def __init__(self, estimator):
        self.estimator, self.after = estimator, {}

    @cached_property
    def n_bytes(self):
        """What one copy takes, as far as that can be known."""
        return len(pickle.dumps(self.after[max(self.after)]))


class Copied(Kind):
    """Estimators that forget earlier stages: copies are kept."""

    count = "max_iter"
    patience = PASSES

    def is_of(self, estimator):
        is_known = isinstance(estimator, RecordsTrajectory)
        has_targets = is_classifier(estimator) or is_regressor(estimator)
        return has_targets and hasattr(estimator, self.count) and not is_known

    def begun(self, estimator):
        return Copies(super().begun(estimator))

    def n_stages(self, begun):
        return max(begun.after, default=0)

    def recorded(self, begun):
        return np.array(sorted(begun.after))

    def n_kept(self, begun, n_models):
        if not begun.after:  # what one takes is known when there is one
            return 1
        # The best and the last are.
        return max(2, MOST_BYTES // (n_models * begun.n_bytes))

    def keep(self, begun, stages):
        found = copy(begun)
        found.after = {t: begun.after[t] for t in stages}
        return found

    def at(self, begun, t):
        return copy(begun.after[t]).set_params(**{self.count: t})

    def grow(self, begun, n_stages, X, y, params):
        for t in range(self.n_stages(begun), n_stages):
            self._go_on(begun.estimator, X, y, params, is_first=not t)
            begun.after[t + 1] = deepcopy(begun.estimator)
        return begun

    @abstractmethod
    def _go_on(self, estimator, X, y, params, is_first):
        """One stage more."""

    def predictions(self, begun, X, first, last, carried=None):
        missing = set(range(first + 1, last + 1)) - begun.after.keys()
        if missing:
            raise ValueError(
                f"{type(begun.estimator).__name__} takes too much memory for copies of "
                f"all stages: of {len(missing)} that are asked for there are none."
            )
        found = [begun.after[t] for t in range(first + 1, last + 1)]
        return np.stack([getattr(each, response_of(each))(X) for each in found]), None


class Passes(Copied):
    """One call of ``partial_fit`` is a stage: a pass through the rows."""

    own_stopping = {"early_stopping": False}

    def is_of(self, estimator):
        return super().is_of(estimator) and hasattr(estimator, "partial_fit")

    def _go_on(self, estimator, X, y, params, is_first):
        if is_first and is_classifier(estimator):
            params = {**params, "classes": np.unique(y)}
            self._balance(estimator, y, **params)
        estimator.partial_fit(X, y, **params)

    def _balance(self, estimator, y, classes, sample_weight=None, **params):
        """Balance classes by all rows: ``partial_fit`` may see some of them."""
        asked = estimator.get_params(deep=False).get("class_weight")
        if isinstance(asked, str):
            y = np.asarray(y).ravel()
            weights = np.ones(len(y)) if sample_weight is None else sample_weight
            found = class_weights(asked, classes, y, weights)
            estimator.set_params(class_weight=dict(zip(classes.tolist(), found)))


class Iterations(Copied):
    """One iteration of a ``fit`` with ``warm_start`` is a stage."""

    def is_of(self, estimator):
        return super().is_of(estimator) and hasattr(estimator, "warm_start")

    def begun(self, estimator):
        found = super().begun(estimator)
        found.estimator.set_params(warm_start=True, max_iter=1)
        return found

    def at(self, begun, t):
        return super().at(begun, t).set_params(warm_start=False)

    def _go_on(self, estimator, X, y, params, is_first):
        estimator.fit(X, y, **params)


# The first that an estimator is of is its kind.
KINDS = [
    XGBoost(),
    LightGBM(),
    CatBoost(),
    HistBoosting(),
    PlainBoosting(),
    Forests(),
    Baggings(),
    AtOnce(),
    Passes(),
    Iterations(),
]
CAN = (
    "estimators of skacv, gradient boosting of scikit-learn, XGBoost, LightGBM and "
    "CatBoost, AdaBoost, forests, bagging, and those with partial_fit or warm_start "
    "and max_iter"
)


def kind_of(estimator):
    """The kind that an estimator is of, None if there is none.

    Parameters
    ----------
    estimator : estimator
    """
    return next((kind for kind in KINDS if kind.is_of(estimator)), None)
