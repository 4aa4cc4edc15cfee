"""Kinds of estimators fitted stage by stage: growing, and earlier stages.

A kind is one entry of ``KINDS``. It says which estimators it is of, how these take more
stages, what they predict at each of them, and how an earlier stage is had again. Add
one here, or for another library in a module such as ``xgboost_boosters.py``, and it
inherits the tests of ``tests/staged/test_kinds.py``.
"""

import pickle
from abc import abstractmethod
from copy import copy, deepcopy
from functools import cached_property
from itertools import islice

import numpy as np
from sklearn import ensemble, multioutput
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.parallel import Parallel, delayed

from .._compat import Resumed, class_weights, predicted_by, staged_sums, with_stages
from .._estimator.estimates.recording import RecordsTrajectory
from .catboost_boosters import CatBoost
from .kind import NEVER, PASSES, StagedAdapter, response_of
from .lightgbm_boosters import LightGBM
from .xgboost_boosters import XGBoost

# Where copies are kept of a model and its folds: what they may take in all. Of as many
# stages as there is room for all are kept, of others only some.
MOST_BYTES = 1 << 28


def label_probabilities(probabilities, classes):
    """Probabilities of the label 1 of each of several outputs.

    It is zero where no training row of an output has that label.

    Parameters
    ----------
    probabilities : sequence of ndarray of shape (..., n_samples, n_classes)
    classes : sequence of ndarray of shape (n_classes,)
        The labels of every output: 0, 1, or both.

    Returns
    -------
    ndarray of shape (..., n_samples, n_outputs)
    """
    # Boosting of one class has probabilities of two.
    return np.stack(
        [
            values[..., : len(labels)][..., labels == 1].sum(axis=-1)
            for values, labels in zip(probabilities, classes)
        ],
        axis=-1,
    )


class WarmStart(StagedAdapter):
    """``fit`` continues if the number of stages is larger."""

    grows_with = {"verbose": 0, "warm_start": True}

    def grow(self, n_stages, X, y, params):
        self.estimator.set_params(**{self.count: n_stages}).fit(X, y, **params)

    def at(self, t):
        return self._some(0, t).set_params(warm_start=False, **{self.count: t})

    def _some(self, first, last):
        """A copy of the estimator with some of the stages alone."""
        return with_stages(self.estimator, first, last)


class Boosting(WarmStart):
    """Boosted trees. Some of them go on from the sums of those before."""

    grows_by_class = True

    def predictions(self, X, first, last, side_runs=None):
        begin = 0 if side_runs is None else first
        sums = staged_sums(self._some(begin, last), X, side_runs)
        found = list(islice(sums, first - begin, None))
        predicted = np.stack([predicted_by(self.estimator, each) for each in found])
        return predicted, found[-1]


class HistBoosting(Boosting):
    """Boosted trees on binned columns."""

    classes = (
        ensemble.HistGradientBoostingRegressor,
        ensemble.HistGradientBoostingClassifier,
    )
    count = "max_iter"
    own_stopping = {"early_stopping": False}
    balances_weights = False
    seconds_to_start, seconds_of_stage = 1e-6, 4e-8  # columns are binned first
    # Binned training rows, while it grows.
    resumed = None

    def begun(self):
        found = super().begun()
        found.resumed = Resumed(found.estimator)
        return found

    def grow(self, n_stages, X, y, params):
        self.estimator.set_params(max_iter=n_stages)
        self.resumed.fit(X, y, **params)

    @property
    def n_stages(self):
        return self.estimator.n_iter_

    def without_rows(self):
        return HistBoosting(self.estimator)


class PlainBoosting(Boosting):
    """Boosted trees as they are."""

    classes = ensemble.GradientBoostingRegressor, ensemble.GradientBoostingClassifier
    own_stopping = {"n_iter_no_change": None}

    def at(self, t):
        found, whole = super().at(t), self.estimator
        found.n_estimators_ = t
        found.train_score_ = whole.train_score_[:t]
        if hasattr(whole, "oob_scores_"):
            found.oob_improvement_ = whole.oob_improvement_[:t]
            found.oob_scores_ = whole.oob_scores_[:t]
            found.oob_score_ = found.oob_scores_[-1]
        return found


class Averages(WarmStart):
    """Means over members that are fitted separately."""

    patience = NEVER

    def predictions(self, X, first, last, side_runs=None):
        total = sum(self._of_members(X, 0, first)) if side_runs is None else side_runs
        found = []
        for t, own in enumerate(self._of_members(X, first, last), first + 1):
            total = total + own
            found.append(total / t)
        return np.stack(found), total

    @abstractmethod
    def _of_members(self, X, first, last):
        """Predictions of the members ``first + 1`` to ``last``, one after another."""


# What forests say of all of their trees.
OUT_OF_BAG = {"oob_score_", "oob_prediction_", "oob_decision_function_"}


class Forests(Averages):
    """Random forests and extra trees."""

    classes = (
        ensemble.RandomForestRegressor,
        ensemble.RandomForestClassifier,
        ensemble.ExtraTreesRegressor,
        ensemble.ExtraTreesClassifier,
    )

    def at(self, t):
        found = super().at(t)
        if t < self.n_stages:  # there are none of fewer trees
            for name in OUT_OF_BAG & vars(found).keys():
                delattr(found, name)
        return found

    def _of_members(self, X, first, last):
        # As forests do it: trees split at values of single precision.
        X = check_array(
            X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False
        )
        forest, response = self.estimator, response_of(self.estimator)
        for tree in forest.estimators_[first:last]:
            values = getattr(tree, response)(X)
            has_labels = isinstance(values, list)
            yield label_probabilities(values, forest.classes_) if has_labels else values


class Baggings(Averages):
    """Bagging of any estimator."""

    classes = ensemble.BaggingRegressor, ensemble.BaggingClassifier
    unit = "estimators"

    # It cannot be had of members that are added.
    own_stopping = {"oob_score": False}

    def _some(self, first, last):
        found = super()._some(first, last)
        found.n_estimators = last - first
        found.estimators_features_ = found.estimators_features_[first:last]
        return found

    def _of_members(self, X, first, last):
        response = response_of(self.estimator)
        for t in range(first, last):
            yield getattr(self._some(t, t + 1), response)(X)


class CachedPredictor:
    """A fitted estimator that predicts the same rows repeatedly."""

    def __init__(self, estimator):
        self.estimator, self._found = estimator, None

    def predict(self, X):
        """The first prediction."""
        if self._found is None:
            self._found = self.estimator.predict(X)
        return self._found


class RefitAdapter(StagedAdapter):
    """Boosting that cannot be continued, and is fitted to all stages at once."""

    classes = ensemble.AdaBoostRegressor, ensemble.AdaBoostClassifier
    unit = "estimators"
    patience = NEVER

    def n_next(self, n_stages):
        return self.n_planned()

    def grow(self, n_stages, X, y, params):
        if not hasattr(self.estimator, "estimators_"):
            self.estimator.fit(X, y, **params)

    def at(self, t):
        found = with_stages(self.estimator, 0, t).set_params(n_estimators=t)
        found.estimator_weights_ = found.estimator_weights_[:t]
        found.estimator_errors_ = found.estimator_errors_[:t]
        return found

    def predictions(self, X, first, last, side_runs=None):
        known = copy(self.estimator)
        # A median is taken over all members at every stage.
        known.estimators_ = [CachedPredictor(each) for each in known.estimators_[:last]]
        staged = getattr(known, f"staged_{response_of(known)}")(X)
        return np.stack(list(islice(staged, first, last))), None


class SnapshotAdapter(StagedAdapter):
    """Estimators that forget earlier stages: copies are kept.

    Attributes
    ----------
    needs : str
        What an estimator must have besides ``max_iter``.
    copies : dict of int to estimator
        By the stage after which they were made.
    """

    count = "max_iter"
    unit = "passes"
    needs = ""
    patience = PASSES

    def __init__(self, estimator):
        super().__init__(estimator)
        self.copies = {}

    @classmethod
    def is_of(cls, estimator):
        is_known = isinstance(estimator, RecordsTrajectory)
        has_targets = is_classifier(estimator) or is_regressor(estimator)
        has_all = hasattr(estimator, cls.count) and hasattr(estimator, cls.needs)
        return has_targets and has_all and not is_known

    @property
    def n_stages(self):
        return max(self.copies, default=0)

    def recorded(self):
        return np.array(sorted(self.copies))

    @cached_property
    def n_bytes(self):
        """Memory of one copy, as far as known."""
        return len(pickle.dumps(self.copies[self.n_stages]))

    def n_kept(self, n_models):
        if not self.copies:  # what one takes is known when there is one
            return 1
        # The best and the last are.
        return max(2, MOST_BYTES // (n_models * self.n_bytes))

    def keep(self, stages):
        found = copy(self)
        found.copies = {t: self.copies[t] for t in stages}
        return found

    def at(self, t):
        return copy(self.copies[t]).set_params(**{self.count: t})

    def grow(self, n_stages, X, y, params):
        for t in range(self.n_stages, n_stages):
            self._go_on(X, y, params, is_first=not t)
            self.copies[t + 1] = deepcopy(self.estimator)

    @abstractmethod
    def _go_on(self, X, y, params, is_first):
        """One stage more."""

    def predictions(self, X, first, last, side_runs=None):
        missing = set(range(first + 1, last + 1)) - self.copies.keys()
        if missing:
            raise ValueError(
                f"{type(self.estimator).__name__} takes too much memory for copies of "
                f"all stages: of {len(missing)} that are asked for there are none."
            )
        found = [self.copies[t] for t in range(first + 1, last + 1)]
        return np.stack([getattr(each, response_of(each))(X) for each in found]), None


class Passes(SnapshotAdapter):
    """One call of ``partial_fit`` is a stage: a pass through the rows."""

    needs = "partial_fit"
    own_stopping = {"early_stopping": False}

    def _go_on(self, X, y, params, is_first):
        if is_first and is_classifier(self.estimator):
            params = {**params, "classes": unique_labels(y)}
            self._balance(y, **params)
        self.estimator.partial_fit(X, y, **params)

    def _balance(self, y, classes, sample_weight=None, **params):
        """Balance classes by all rows: ``partial_fit`` may see some of them."""
        asked = self.estimator.get_params(deep=False).get("class_weight")
        if isinstance(asked, str):
            y = np.asarray(y).ravel()
            weights = np.ones(len(y)) if sample_weight is None else sample_weight
            found = class_weights(asked, classes, y, weights)
            self.estimator.set_params(class_weight=dict(zip(classes.tolist(), found)))


class Iterations(SnapshotAdapter):
    """One iteration of a ``fit`` with ``warm_start`` is a stage."""

    needs = "warm_start"
    grows_with = {"verbose": 0, "warm_start": True, "max_iter": 1}

    def at(self, t):
        return super().at(t).set_params(warm_start=False)

    def _go_on(self, X, y, params, is_first):
        self.estimator.fit(X, y, **params)


class PerOutput(StagedAdapter):
    """One estimator for each output, all with the same number of stages.

    Attributes
    ----------
    inner : Kind
        The estimator of a single output, as the user has it.
    outputs : list of Kind
        That of every output, where it grows.
    """

    classes = multioutput.MultiOutputRegressor, multioutput.MultiOutputClassifier
    weighs_losses = ()

    def __init__(self, estimator):
        super().__init__(estimator)
        self.inner, self.outputs = kind_of(estimator.estimator), []
        self.unit, self.patience = self.inner.unit, self.inner.patience
        self.of_columns = self.inner.of_columns

    @classmethod
    def is_of(cls, estimator):
        return super().is_of(estimator) and kind_of(estimator.estimator) is not None

    @property
    def minimising(self):
        return self.inner.minimising

    def tags(self):
        # X is passed on as it is, of which scikit-learn's tags say less.
        tags = super().tags()
        tags.input_tags = self.inner.tags().input_tags
        return tags

    def count_name(self):
        return f"estimator__{self.inner.count_name()}"

    def n_planned(self):
        return self.inner.n_planned()

    def asked_to_stop(self):
        return self.inner.asked_to_stop()

    def unread_metrics(self, loss, params):
        return self.inner.unread_metrics(loss, params)

    def cloned(self):
        return self._around(self.inner.cloned())

    def _around(self, estimator):
        """The same for another estimator of each output."""
        return type(self.estimator)(estimator, n_jobs=self.estimator.n_jobs)

    def begun(self):
        return type(self)(self.cloned())

    def n_next(self, n_stages):
        return self.inner.n_next(n_stages)

    def grow(self, n_stages, X, y, params):
        if params.get(self.inner.offset) is not None:
            raise ValueError(
                f"{self.inner.offset} would be added to all outputs alike: fit a model "
                "for each column of y."
            )
        y = np.asarray(y).reshape(len(y), -1)
        if is_classifier(self.estimator) and y.shape[1] == 1:
            raise ValueError(
                f"{type(self.estimator).__name__} takes several labels for each row, "
                "and y has one: pass a classifier of one label."
            )
        self.outputs = self.outputs or [self.inner.begun() for _ in y.T]
        Parallel(n_jobs=self.estimator.n_jobs, require="sharedmem")(
            delayed(output.grow)(n_stages, X, column, params)
            for output, column in zip(self.outputs, y.T)
        )

    @property
    def n_stages(self):
        return max((output.n_stages for output in self.outputs), default=0)

    def recorded(self):
        # Those that have ended before the others stay as they are.
        return max(self.outputs, key=lambda output: output.n_stages).recorded()

    def n_kept(self, n_models):
        if not self.outputs:
            return self.inner.n_kept(n_models)
        return self.outputs[0].n_kept(n_models * len(self.outputs))

    def keep(self, stages):
        return self._with([output.keep(stages) for output in self.outputs])

    def without_rows(self):
        return self._with([output.without_rows() for output in self.outputs])

    def _with(self, outputs):
        changed = copy(self)
        changed.outputs = outputs
        return changed

    def fitted(self):
        return self.at(self.n_stages)

    def at(self, t):
        outputs = [output.at(min(t, output.n_stages)) for output in self.outputs]
        inner = kind_of(outputs[0])
        fitted = self._around(inner.cloned().set_params(**{inner.count_name(): t}))
        fitted.estimators_ = outputs
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(outputs[0], name):
                setattr(fitted, name, getattr(outputs[0], name))
        if is_classifier(fitted):
            fitted.classes_ = [output.classes_ for output in outputs]
        return fitted

    def predictions(self, X, first, last, side_runs=None):
        side_runs = side_runs or [None] * len(self.outputs)
        values, side_runs = zip(
            *(
                output.predictions_to(X, first, last, sums)
                for output, sums in zip(self.outputs, side_runs)
            )
        )
        if is_classifier(self.estimator):
            classes = [output.fitted().classes_ for output in self.outputs]
            return label_probabilities(values, classes), list(side_runs)
        return np.stack(values, axis=-1), list(side_runs)


# The first that an estimator is of is its kind.
KINDS = [
    XGBoost,
    LightGBM,
    CatBoost,
    HistBoosting,
    PlainBoosting,
    Forests,
    Baggings,
    RefitAdapter,
    Passes,
    Iterations,
    PerOutput,
]
CAN = (
    "estimators of skacv, gradient boosting of scikit-learn, XGBoost, LightGBM and "
    "CatBoost, AdaBoost, forests, bagging, those with partial_fit or warm_start and "
    "max_iter, and MultiOutputRegressor and MultiOutputClassifier of any of these"
)


def kind_of(estimator):
    """An estimator as one of its kind, None if there is none.

    Returns
    -------
    Kind or None
    """
    kind = next((kind for kind in KINDS if kind.is_of(estimator)), None)
    return kind and kind(estimator)
