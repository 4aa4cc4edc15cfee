"""Adapters of other estimators of scikit-learn, and the adapter of any estimator.

``ADAPTERS`` is filled with those of all libraries. A new one is a class in a module
such as ``xgboost_boosters.py`` and an entry of this list; the tests of
``tests/staged/test_adapters.py`` run for it.
"""

from abc import abstractmethod
from copy import copy
from functools import partial
from itertools import islice
from numbers import Integral

import numpy as np
from scipy import sparse
from sklearn import ensemble, linear_model, multioutput
from sklearn.base import is_classifier
from sklearn.tree import BaseDecisionTree
from sklearn.utils import check_array
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.parallel import Parallel, delayed

from .._compat import class_weights
from .._estimator.data.checks import check_columns
from ..kernel import (
    RecursiveFeatureMachineClassifier,
    RecursiveFeatureMachineRegressor,
)
from ..optim import costs
from ..optim.losses import Gamma, Huber, Poisson
from .adapter import (
    ADAPTERS,
    StagedAdapter,
    WarmStart,
    label_probabilities,
    loss_named_in,
    response_of,
    staged_adapter_of,
)
from .catboost_boosters import CatBoost
from .gradient_boosting import HistBoosting, PlainBoosting
from .lightgbm_boosters import LightGBM
from .losses import EpsilonInsensitive, deviance, judged_by
from .rankers import CatBoostRanker, LightGBMRanker, XGBoostRanker
from .skorch_nets import SkorchNets
from .snapshots import SnapshotAdapter
from .survival import CatBoostCox, SurvivalComponents, SurvivalTrees, XGBoostCox
from .xgboost_boosters import XGBoost


class Averages(WarmStart):
    """Means over members that are fitted separately."""

    # A longer average is hardly ever worse: its best stage is one by chance.
    patience = None

    def grow(self, n_stages, X, y, params):
        weights = params.get("sample_weight")
        if weights is not None and not np.ptp(weights):
            # From 1.9 on scikit-learn draws other rows by equal weights than by none.
            params = {**params, "sample_weight": None}
        super().grow(n_stages, X, y, params)

    def predictions(self, X, first, last, former_sums=None):
        if former_sums is None:
            former_sums = sum(self.predict_members(X, 0, first))
        means = []
        for t, prediction in enumerate(self.predict_members(X, first, last), first + 1):
            former_sums = former_sums + prediction
            means.append(former_sums / t)
        return np.stack(means), former_sums

    @abstractmethod
    def predict_members(self, X, first, last):
        """Predictions of members ``first + 1`` to ``last``, one after another."""

    def n_left_out(self, n_rows):
        estimator, params = self.estimator, self.estimator.get_params(deep=False)
        # Classes of others may draw otherwise, and class weights may be odds.
        is_known = type(estimator).__module__.startswith("sklearn.")
        if not is_known or params.get("class_weight") is not None:
            return 0.0
        n_drawn = n_rows if estimator.max_samples is None else estimator.max_samples
        if not isinstance(n_drawn, Integral):
            n_drawn = max(1, round(n_rows * n_drawn))
        share = max(0.0, 1 - n_drawn / n_rows)
        if estimator.bootstrap:
            share = (1 - 1 / n_rows) ** n_drawn
        return share * self.n_planned()

    def predict_left_out(self, X, rows, first, last, former=None):
        """Means over the members, of each stage, that have not drawn a row.

        ``rows`` are the numbers of the rows of X among those fitted. The mean of a row
        that all members have drawn is NaN. The second result has by how much each mean
        varies beyond the mean of all members for a new row, as a standard deviation.
        The last one is passed as ``former`` where rows are predicted from ``last`` on.
        Shapes: rows (n_rows,); means and deviations (last - first, n_rows, ...).
        """
        bags = self.estimator.estimators_samples_[first:last]
        means, deviations = [], []
        if former is None:
            former = np.zeros(len(rows)), 0.0, 0.0
        count, mean, squares = former
        members = zip(self.predict_members(X, first, last), bags)
        for t, (prediction, drawn) in enumerate(members, first + 1):
            is_out = np.bincount(drawn, minlength=rows.max() + 1)[rows] == 0
            count = count + is_out
            # A row has one count, and may have several predicted numbers.
            shape = len(rows), *(1,) * (prediction.ndim - 1)
            is_out, n = is_out.reshape(shape), count.reshape(shape)
            difference = is_out * (prediction - mean)
            mean = mean + difference / np.maximum(n, 1)
            squares = squares + difference * (prediction - mean)
            means.append(np.where(n > 0, mean, np.nan))
            variance = squares / np.maximum(n - 1, 1)
            excess = variance * (1 / np.maximum(n, 1) - 1 / t)
            deviations.append(np.sqrt(np.maximum(excess, 0)))
        return np.stack(means), np.stack(deviations), (count, mean, squares)


class Forests(Averages):
    """Random forests and extra trees."""

    classes = (
        ensemble.RandomForestRegressor,
        ensemble.RandomForestClassifier,
        ensemble.ExtraTreesRegressor,
        ensemble.ExtraTreesClassifier,
    )
    least_range = 1e-7

    def at(self, t):
        stopped = super().at(t)
        if t < self.n_stages:  # out-of-bag scores are those of all trees
            for name in ("oob_score_", "oob_prediction_", "oob_decision_function_"):
                vars(stopped).pop(name, None)
        return stopped

    def predict_members(self, X, first, last):
        # Trees split at values of single precision.
        X = check_array(
            X, dtype=np.float32, accept_sparse="csr", ensure_all_finite=False
        )
        forest, response = self.estimator, response_of(self.estimator)
        for number, tree in enumerate(forest.estimators_[first:last]):
            # The first one checks X for all: this takes as long as to predict few rows.
            values = getattr(tree, response)(X, check_input=number == 0)
            has_labels = isinstance(values, list)
            yield label_probabilities(values, forest.classes_) if has_labels else values


class Ensemble(StagedAdapter):
    """Ensembles of any estimator, trees by default, which pass X on to it."""

    def check_rows(self, X):
        inner = self.estimator.estimator
        if inner is None or isinstance(inner, BaseDecisionTree):
            check_columns(X)


class Baggings(Ensemble, Averages):
    """Bagging of any estimator."""

    classes = ensemble.BaggingRegressor, ensemble.BaggingClassifier
    unit = "estimators"
    # scikit-learn refuses it together with warm_start.
    early_stopping = {"oob_score": False}

    def regression_loss(self):
        # The members reduce the loss. They are trees by default.
        inner = self.estimator.estimator
        adapter = None if inner is None else staged_adapter_of(inner)
        return (adapter or super()).regression_loss()

    def named_loss(self, losses):
        inner = self.estimator.estimator
        params = {} if inner is None else inner.get_params(deep=False)
        return loss_named_in(params, self.loss_parameters, losses)

    def grow(self, n_stages, X, y, params):
        # scikit-learn keeps the seeds of the members of the last call: only with those
        # of all does it know which rows they have drawn.
        former = vars(self.estimator).get("_seeds", ())
        super().grow(n_stages, X, y, params)
        seeds = [*former, *self.estimator._seeds]
        self.estimator._seeds = np.array(seeds[-n_stages:])

    def slice_stages(self, first, last):
        part = super().slice_stages(first, last)
        part.n_estimators = last - first
        part.estimators_features_ = part.estimators_features_[first:last]
        part._seeds = part._seeds[first:last]
        return part

    def predict_members(self, X, first, last):
        response = response_of(self.estimator)
        for t in range(first, last):
            yield getattr(self.slice_stages(t, t + 1), response)(X)


class CachedPredictor:
    """A fitted estimator that predicts the same rows repeatedly."""

    def __init__(self, estimator):
        self.estimator, self._prediction = estimator, None

    def predict(self, X):
        """The first prediction."""
        if self._prediction is None:
            self._prediction = self.estimator.predict(X)
        return self._prediction


class RefitAdapter(Ensemble):
    """Boosting that cannot be continued, and is fitted to all stages at once."""

    classes = ensemble.AdaBoostRegressor, ensemble.AdaBoostClassifier
    unit = "estimators"
    patience = None

    def n_next(self, n_stages):
        return self.n_planned()

    def grow(self, n_stages, X, y, params):
        if not hasattr(self.estimator, "estimators_"):
            self.estimator.fit(X, y, **params)

    def at(self, t):
        stopped = copy(self.estimator).set_params(n_estimators=t)
        for name in ("estimators_", "estimator_weights_", "estimator_errors_"):
            setattr(stopped, name, getattr(stopped, name)[:t])
        return stopped

    def predictions(self, X, first, last, former_sums=None):
        cached = copy(self.estimator)
        # Every stage is a median over all of its members.
        cached.estimators_ = [CachedPredictor(e) for e in cached.estimators_[:last]]
        staged = getattr(cached, f"staged_{response_of(cached)}")(X)
        return np.stack(list(islice(staged, first, last))), None


class Passes(SnapshotAdapter):
    """One call of ``partial_fit``, a pass through the rows, is a stage."""

    needs = method = "partial_fit"
    early_stopping = {"early_stopping": False}
    regression = StagedAdapter.regression | {
        "huber": judged_by(Huber, threshold=("epsilon", 0.1)),
        "epsilon_insensitive": judged_by(EpsilonInsensitive, epsilon=("epsilon", 0.1)),
        "squared_epsilon_insensitive": judged_by(
            partial(EpsilonInsensitive, exponent=2.0), epsilon=("epsilon", 0.1)
        ),
    }

    def why_worse(self, X, y):
        name, scales = type(self.estimator).__name__, None
        if not sparse.issparse(X) and np.asarray(X).dtype.kind in "fiu":
            scales = np.sqrt(np.mean(np.square(X, dtype=float), axis=0))
        if scales is None or scales.max() < 3 * max(scales.min(), 1):
            return "Its steps may be too large: set a smaller learning rate."
        return (
            f"{name} uses one step size for all columns, whose root mean squares "
            f"range from {scales.min():.3g} to {scales.max():.3g}: put a "
            "StandardScaler before it, as in make_pipeline(StandardScaler(), "
            f"{name}())."
        )

    def grow(self, n_stages, X, y, params):
        estimator = self.estimator
        if not self.copies and is_classifier(estimator):
            classes = unique_labels(y)
            params = {**params, "classes": classes}
            class_weight = estimator.get_params(deep=False).get("class_weight")
            if isinstance(class_weight, str):  # partial_fit may see some rows only
                y_ravelled = np.asarray(y).ravel()
                weights = params.get("sample_weight")
                weights = np.ones(len(y_ravelled)) if weights is None else weights
                weights = class_weights(class_weight, classes, y_ravelled, weights)
                balanced = dict(zip(classes.tolist(), weights))
                estimator.set_params(class_weight=balanced)
        super().grow(n_stages, X, y, params)


class Iterations(SnapshotAdapter):
    """One iteration of a ``fit`` with ``warm_start`` is a stage."""

    needs, method = "warm_start", "fit"
    grows_with = {"verbose": 0, "warm_start": True, "max_iter": 1}

    def regression_loss(self):
        return half_deviance(self.estimator) or super().regression_loss()

    def at(self, t):
        return super().at(t).set_params(warm_start=False)


def half_deviance(estimator):
    """The loss of a generalised linear model, whose class names it; else None."""
    match estimator:
        case linear_model.PoissonRegressor():
            return Poisson()
        case linear_model.GammaRegressor():
            return Gamma()
        case linear_model.TweedieRegressor(power=power):
            return deviance(power)
    return None


class FeatureMachines(WarmStart):
    """Kernel machines that learn scales of the columns; a round is a stage."""

    classes = RecursiveFeatureMachineRegressor, RecursiveFeatureMachineClassifier
    count = "n_rounds"
    unit = "rounds"
    members = "_rounds"
    # Most scales are learned in the second round, and after the third little changes.
    patience = 2
    is_open_ended = False
    grows_with = {"warm_start": True}

    def expected_seconds(self, n_rows, n_columns):
        m = self.estimator._n_centers_on(n_rows)
        # Products with features of all rows, and decompositions.
        flops = n_rows * m * (n_columns + 2 * m) + 40 * m**3
        return 0.0, 6 * costs.SECONDS * flops

    @property
    def n_stages(self):
        return self.estimator.n_iter_

    def at(self, t):
        stopped = super().at(t)
        stopped.n_iter_ = stopped.iteration_ = t
        return stopped

    def predictions(self, X, first, last, former_sums=None):
        response = response_of(self.estimator)
        return np.stack(
            list(self.estimator._answer_by_rounds(X, response, first, last))
        ), None


class PerOutput(StagedAdapter):
    """One estimator for each output, all with the same number of stages."""

    classes = multioutput.MultiOutputRegressor, multioutput.MultiOutputClassifier
    weighs_losses = ()
    grows_by_class = True

    def __init__(self, estimator):
        super().__init__(estimator)
        inner = staged_adapter_of(estimator.estimator)
        # The adapter of the user's estimator, and from the first stage on one for every
        # output.
        self.inner, self.outputs = inner, []
        self.unit, self.patience = inner.unit, inner.patience
        self.of_columns, self.count = inner.of_columns, f"estimator__{inner.count}"
        self.early_stopping, self.metrics = inner.early_stopping, inner.metrics
        self.minimising, self.keeps_all = inner.minimising, inner.keeps_all
        self.has_rows, self.least_range = inner.has_rows, inner.least_range
        self.has_steady_gains = inner.has_steady_gains

    @classmethod
    def adapts(cls, estimator):
        has_class = super().adapts(estimator)
        return has_class and staged_adapter_of(estimator.estimator) is not None

    def check_rows(self, X):
        self.inner.check_rows(X)

    def n_planned(self):
        return self.inner.n_planned()

    def expected_seconds(self, n_rows, n_columns):
        return self.inner.expected_seconds(n_rows, n_columns)

    def regression_loss(self):
        return self.inner.regression_loss()

    def params_of_loss(self, loss):
        params = self.inner.params_of_loss(loss)
        return params and {f"estimator__{key}": params[key] for key in params}

    def unread_metrics(self, loss, params):
        return self.inner.unread_metrics(loss, params)

    def clone_estimator(self):
        estimator = self.estimator
        return type(estimator)(self.inner.clone_estimator(), n_jobs=estimator.n_jobs)

    def begin(self):
        return type(self)(self.clone_estimator())

    def n_next(self, n_stages):
        return self.inner.n_next(n_stages)

    def grow(self, n_stages, X, y, params):
        if params.get(self.inner.offset) is not None:
            raise ValueError(
                f"{self.inner.offset} would be added equally to all outputs: fit one "
                "model per column of y."
            )
        y = np.asarray(y).reshape(len(y), -1)
        if is_classifier(self.estimator) and y.shape[1] == 1:
            raise ValueError(
                f"{type(self.estimator).__name__} needs several labels per row, but y "
                "has one: pass a single-label classifier."
            )
        self.outputs = self.outputs or [self.inner.begin() for _ in y.T]
        Parallel(n_jobs=self.estimator.n_jobs, require="sharedmem")(
            delayed(output.grow)(n_stages, X, column, params)
            for output, column in zip(self.outputs, y.T)
        )

    @property
    def failure(self):
        """The first error that has ended the growth of an output."""
        failures = (output.failure for output in self.outputs)
        return next((error for error in failures if error is not None), None)

    @property
    def n_stages(self):
        if self.failure is not None:
            failed = (one for one in self.outputs if one.failure is not None)
            return min(output.n_stages for output in failed)
        return max((output.n_stages for output in self.outputs), default=0)

    def recorded_stages(self):
        # Outputs that have ended earlier keep their last stage.
        longest = max(self.outputs, key=lambda output: output.n_stages)
        recorded = longest.recorded_stages()
        return recorded[recorded <= self.n_stages]

    def n_kept(self, n_models):
        if not self.outputs:
            return self.inner.n_kept(n_models)
        return self.outputs[0].n_kept(n_models * len(self.outputs))

    def keep(self, stages):
        thinned = copy(self)
        thinned.outputs = [output.keep(stages) for output in self.outputs]
        return thinned

    def drop_rows(self):
        finished = copy(self)
        finished.outputs = [output.drop_rows() for output in self.outputs]
        return finished

    def fitted_estimator(self):
        return self.at(self.n_stages)

    def at(self, t):
        outputs = [output.at(min(t, output.n_stages)) for output in self.outputs]
        inner = staged_adapter_of(outputs[0])
        fitted = self.clone_estimator()
        fitted.estimator = inner.clone_estimator().set_params(**{inner.count: t})
        fitted.estimators_ = outputs
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(outputs[0], name):
                setattr(fitted, name, getattr(outputs[0], name))
        if is_classifier(fitted):
            fitted.classes_ = [output.classes_ for output in outputs]
        return fitted

    def predictions(self, X, first, last, former_sums=None):
        former_sums = former_sums or [None] * len(self.outputs)
        values, former_sums = zip(
            *(
                output.predictions_to(X, first, last, sums)
                for output, sums in zip(self.outputs, former_sums)
            )
        )
        if is_classifier(self.estimator):
            classes = [output.fitted_estimator().classes_ for output in self.outputs]
            return label_probabilities(values, classes), list(former_sums)
        return np.stack(values, axis=-1), list(former_sums)


ADAPTERS.extend(
    [
        HistBoosting,
        PlainBoosting,
        Forests,
        Baggings,
        RefitAdapter,
        SurvivalTrees,
        SurvivalComponents,
        XGBoostCox,
        XGBoost,
        LightGBM,
        CatBoostCox,
        CatBoost,
        XGBoostRanker,
        LightGBMRanker,
        CatBoostRanker,
        FeatureMachines,
        SkorchNets,
        Passes,
        Iterations,
        PerOutput,
    ]
)
CAN_BE_STAGED = (
    "estimators of skacv, gradient boosting of scikit-learn, XGBoost, LightGBM and "
    "CatBoost, AdaBoost, forests, bagging, networks of skorch, those with partial_fit "
    "or warm_start and max_iter, and MultiOutputRegressor and MultiOutputClassifier of "
    "any of these"
)
