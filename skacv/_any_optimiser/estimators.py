"""Scikit-learn estimators that run any optimiser: the part of all libraries."""

from abc import abstractmethod
from dataclasses import dataclass
from math import ceil
from numbers import Integral
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, is_regressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions, _fit_context, class_weights, on_host
from .._estimator.data.checks import validate_rows
from .._estimator.data.labels import check_class_weights, classes_of
from .._estimator.data.training_data import Samples, validate_samples
from .._estimator.estimates.folds import list_folds, routing_of
from .._estimator.estimates.left_out import check_loo
from .._estimator.estimates.terms import RunTerms
from .._estimator.parameters import copy_parameters, to_python_scalar
from .._estimator.prediction.decisions import RecordedProbabilisticClassifier
from .._estimator.prediction.predictions import RecordedModel
from ..optim.losses import Logistic, Multinomial, SquaredError
from ..records.descriptors import recorded
from ..records.held_out import HeldOut
from ..records.paths import ParamsPath
from ..records.record import Record
from ..records.run import Run, check_has_begun, check_n_updates
from .data import shuffled_batches


class IteratedTerms(RunTerms):
    """The terms of runs of any optimiser."""

    def loss(self, X, y):
        """The loss of rows: with ``loss=None`` the usual loss of skacv."""
        if self.model.loss is not None:
            return self.model.loss
        if is_regressor(self.model):
            return SquaredError()
        n_classes = len(classes_of(self.model, np.asarray(y))[0])
        return Logistic() if n_classes == 2 else Multinomial()

    def check_data(self, X, y, sample_weight=None):
        self.model._encode_data(X, y, sample_weight)


class IteratedModel(RecordedModel):
    """Base class of estimators whose fit is a recorded run of some library.

    A subclass has these parameters and ``random_state``, a ``_default_loss`` and the
    library's ``_model_type``, and implements the two methods below.

    Parameters
    ----------
    loss : callable, default=None
        ``loss(y, prediction)``, one number per row, or a usual loss of the library,
        such as ``torch.nn.MSELoss()`` or ``optax.huber_loss``. None is
        (y - prediction)^2.
    max_iter : int, default=200
        Number of updates.
    batch_size : int, default=None
        Number of rows per update; rows are shuffled in every epoch. None: all rows.
    cv : int, cross-validation splitter or iterable, default=None
        Cross-validation folds, for ``cv_path_``. None: no folds, or five random ones
        inside :class:`skacv.TrajectoryEarlyStoppingCV`.
    loo : bool or int, default=False
        Whether to leave out every row, one at a time, for ``loo_path_``; or how many
        random rows to leave out.

    Attributes
    ----------
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss of every iterate on the training rows.
    cv_path_, loo_path_, cv_se_path_, loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss of every iterate on the held-out rows, and its standard error.
    cv_prediction_path_, loo_prediction_path_ : ndarray of shape \
(n_iter_ + 1, n_held_out)
        Held-out predictions of every iterate.
    cv_indices_ : list of ndarray of int
        Indices of the rows held out by each fold.
    loo_indices_ : ndarray of int
        Indices of the rows left out one at a time.
    cv_target_, loo_target_ : ndarray of shape (n_held_out,)
        Targets of the held-out rows.
    record_ : Record
        What is kept of the run; other fitted attributes are read from it.
    n_iter_, iteration_ : int
        Index of the last iterate, and of the one in use.
    """

    _parameter_constraints = {
        "loss": [callable, None],
        "penalty": [callable, None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left"), None],
        "cv": ["cv_object"],
        "loo": [Interval(Integral, 2, None, closed="left"), "boolean"],
        "random_state": ["random_state"],
    }
    get_metadata_routing = routing_of
    # Arrays of other libraries become those of NumPy, and then of the run's.
    _follows_X = False
    _terms_type = IteratedTerms

    params_ = recorded(
        lambda record: record.iterate, "Parameters of the iterate in use."
    )
    params_path_ = recorded(
        lambda record: record.iterates and record.iterates.params,
        "Parameters of every iterate.",
    )

    @abstractmethod
    def _run(self, data, seed, batches):
        """The run on EncodedRows, its parameters, and further results by name."""

    @abstractmethod
    def _predictions(self, params, X):
        """Predictions by given parameters, (n,) or (n, n_outputs)."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Run the optimiser once and record every iterate with its estimates.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training data. Scale the columns first.
        y : array-like of shape (n_samples,)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows in all mean losses. Rows with weight zero
            are ignored. In a batch a row counts by its weight over the mean weight of
            all rows.
        **params : dict
            Passed to the splitter of ``cv``, such as ``groups``; with metadata routing
            enabled, as it requests.

        Returns
        -------
        self : object
            Fitted estimator, at its last iterate.

        Raises
        ------
        ValueError
            If parameters or data are invalid, or a run diverges.
        """
        return super().fit(X, y, sample_weight=sample_weight, **params)

    @_fit_context(prefer_skip_nested_validation=True)
    def begin(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Run:
        """Begin a run. It goes on to its end at once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As in ``fit``.

        Returns
        -------
        Run
        """
        data = self._encode_data(X, y, sample_weight)
        samples, n_rows = data.samples, len(data.target)
        folds, groups = list_folds(self, samples.passed, on_host(y), samples, params)
        rng = check_random_state(self.random_state)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        loo, left_out = to_python_scalar(self.loo), None
        check_loo(loo, n_rows)
        if loo is True:
            left_out = np.arange(n_rows)
        elif loo is not False:
            left_out = np.sort(rng.choice(n_rows, loo, replace=False))
        model = copy_parameters(self)
        return WholeRun(model, data, seed, folds, left_out, groups)

    @abstractmethod
    def _encode_data(self, X, y, sample_weight):
        """EncodedRows: validated samples of positive weight, as the run takes them."""

    def _keeps_rows(self, X):
        return False

    def _validate_rows(self, X):
        check_is_fitted(self)
        return validate_rows(self, on_host(X), reset=False)

    def _response(self, X):
        X = self._validate_rows(X)
        return self._predictions(self.params_, X)

    def _responses(self, X):
        X = self._validate_rows(X)
        self._check_has_record()
        for t in range(self.n_iter_ + 1):
            yield self._predictions(self.record_.iterates.at(t), X)

    def _row_loss(self):
        if self.loss is None:
            return self._default_loss
        return self._model_type.row_loss(self.loss)

    def _row_losses(self, target, predictions, weights=None):
        """Losses of rows, (n_iterates, n), from predictions (n_iterates, n, ...)."""
        return self._model_type.losses(self._row_loss(), target, predictions)

    @property
    def _loss(self):
        """The loss, with its name for figures."""
        if self.loss is None:
            return self._usual_loss
        return SimpleNamespace(name=getattr(self.loss, "__name__", "loss"))

    def _mean_loss(self, target, predictor, weights):
        return np.average(self._row_losses(target, predictor[None])[0], weights=weights)


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Samples of positive weight as a run takes them; arrays have one entry a row."""

    samples: Samples
    # As the loss takes it, and the number of outputs of the model.
    target: np.ndarray
    n_outputs: int
    # In mean losses: those of the samples, times those of their classes.
    weights: np.ndarray
    classes: np.ndarray | None = None


@dataclass(eq=False)
class WholeRun(Run):
    """A run of an optimiser, which goes on to its end at once."""

    # It has the parameters, and is not fitted.
    model: IteratedModel
    data: EncodedRows
    seed: int
    # The folds of ``cv``, and the rows that are left out one at a time or None; rows
    # are numbered among those of the data.
    folds: list
    left_out: np.ndarray | None
    # The group of every sample that was passed, or None.
    groups: np.ndarray | None
    _record: Record | None = None

    def go_on(self, n_updates=None, progress=None):
        check_n_updates(n_updates)
        if self._record is not None:
            return True
        model, data, batches = self.model, self.data, None
        samples, n_rows = data.samples, len(data.target)
        if model.batch_size is not None:
            n_epochs = ceil(model.max_iter / ceil(n_rows / model.batch_size))
            batches = shuffled_batches(n_rows, model.batch_size, n_epochs, self.seed)
        run, params_path, more = model._run(data, self.seed, batches)
        estimates = {}
        if self.folds:
            path = run.cv_path(self.folds)
            # The held-out rows are listed fold by fold.
            ends = np.flatnonzero(np.diff(path.folds)) + 1
            indices = np.split(samples.rows[path.indices], ends)
            estimates["cv"] = _held_out(path, indices, samples.y)
        if self.left_out is not None:
            path = run.loo_path(self.left_out)
            indices = samples.rows[path.indices]
            estimates["loo"] = _held_out(path, indices, samples.y)
        weights = np.zeros(samples.n_samples)
        weights[samples.rows] = data.weights
        record = Record(
            iterates=ParamsPath(params_path, model._model_type.iterate),
            iteration=run.n_steps,
            iterate=None,
            n_iter=run.n_steps,
            loss=model._loss,
            classes=data.classes,
            train_path=run.train_path,
            estimates=estimates,
            seed=self.seed,
            weights=weights,
            groups=self.groups,
            more=more,
            names=samples.names,
        )
        self._record = model._record_at(record, run.n_steps)
        return True

    def record(self):
        check_has_begun(self._record is not None)
        return self._record


def _held_out(estimate, indices, y):
    """A PathEstimate of a run as the estimate of a record."""
    return HeldOut(
        path=estimate.path,
        se_path=estimate.se_path,
        indices=indices,
        target=y[estimate.indices],
        prediction=estimate.prediction_path,
    )


class IteratedRegressor(IteratedModel, RegressorMixin, BaseEstimator):
    """A regressor: predictions are the outputs of the model."""

    _usual_loss = SquaredError()

    @staticmethod
    def _default_loss(y, prediction):
        """(y - prediction)^2"""
        return (y - prediction) ** 2

    def _encode_data(self, X, y, sample_weight):
        samples = validate_samples(self, X, y, sample_weight)
        target = samples.y.astype(samples.X.dtype, copy=False)
        return EncodedRows(samples, target, 1, samples.weights)

    def _target(self, y):
        return y.astype(np.float64, copy=False)


OF_CLASS_WEIGHT = {"class_weight": [dict, StrOptions({"balanced"}), None]}


class IteratedClassifier(IteratedModel, RecordedProbabilisticClassifier, BaseEstimator):
    """A classifier: outputs are decisions for the second of two, or every class.

    Losses see classes as 0, 1, ..., in the order of ``classes_``.

    Parameters
    ----------
    loss : callable, default=None
        ``loss(y, decision)``, one number per row, with the classes as 0, 1, ..., or a
        usual loss of the library. None is the log loss, which gives probabilities.
    class_weight : dict, "balanced" or None, default=None
        Class weights, as in scikit-learn, times ``sample_weight``. They do not change
        when rows are left out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    cv_prediction_path_, loo_prediction_path_ : ndarray of shape \
(n_iter_ + 1, n_held_out) or (n_iter_ + 1, n_held_out, n_classes)
        Held-out decision functions of every iterate.
    """

    _usual_loss = Logistic()
    _losses_with_probabilities = (None,)

    def _encode_data(self, X, y, sample_weight):
        samples = validate_samples(self, X, y, sample_weight)
        classes, label = classes_of(self, samples.y)
        class_weight = class_weights(
            self.class_weight, classes, samples.y, samples.weights
        )
        check_class_weights(class_weight, classes)
        n_outputs = 1 if len(classes) == 2 else len(classes)
        weights = samples.weights * class_weight[label]
        return EncodedRows(samples, label, n_outputs, weights, classes)

    def _loss_and_target(self, label, n_classes):
        return None, label

    @staticmethod
    def _decision(predictor):
        return predictor
