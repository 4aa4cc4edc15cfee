"""Blends: weighted means of the predictions of fitted members."""

from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._compat import Composition, check_in_memory, is_foreign
from .._estimator.collections import block_by_block
from .._estimator.devices import is_movable
from .._estimator.estimates.fitted_state import without_record
from .._estimator.parameters import set_parameters, takes_coverage
from .._estimator.prediction.decisions import label_of
from ..optim.losses import Loss
from ..optim.namespaces import here, there
from ..risk.intervals import around_predictions, checked_coverage, ends_of, rank_of
from .members import tags_of


class HeldOut(NamedTuple):
    """Held-out predictions of a blend, for prediction intervals.

    Attributes
    ----------
    method : str
        How rows were held out.
    residuals : ndarray of shape (n_held_out,) or (n_held_out, n_targets)
        In units of the spread of targets under the loss.
    loss : Loss
        Defines the range and the spread of targets.
    units : ndarray of int, shape (n_held_out,)
        The unit of every row, its group or itself, numbered from 0.
    """

    method: str
    residuals: np.ndarray
    loss: Loss
    units: np.ndarray


class Blend(Composition):
    """Fitted members with weights, whose predictions are averaged.

    Parameters
    ----------
    members : list of (str, estimator)
    weights : list of float
        Their weights, positive and with sum one.
    iterations : list of int, default=None
        The iterates that members predict with if the blend is fitted anew; None is the
        last of each.
    """

    _parts = "members"

    def __init__(self, members, weights, iterations=None):
        set_parameters(self, locals())

    @classmethod
    def of_fitted(cls, members, weights, held_out=None):
        """The blend of fitted members, without refitting them.

        Parameters
        ----------
        members : dict of str to estimator
            At their chosen iterates.
        weights : dict of str to float

        Returns
        -------
        Blend
        """
        used = {name: weight for name, weight in weights.items() if weight > 0}
        fitted = {name: members[name] for name in used}
        iterations = [getattr(each, "iteration_", None) for each in fitted.values()]
        known = None if None in iterations else iterations
        blend = cls(list(fitted.items()), list(used.values()), known)
        return blend._made_of(fitted, held_out)

    def fit(self, X, y, **params):
        """Fit all members again, with the same weights and iterations.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            Passed on to the ``fit`` of every member, such as ``sample_weight``.

        Returns
        -------
        self : object
        """
        fitted = {
            name: clone(member).fit(X, y, **params) for name, member in self.members
        }
        if self.iterations is not None:
            fitted = {
                name: _moved(member, t)
                for (name, member), t in zip(fitted.items(), self.iterations)
            }
        return self._made_of(fitted)

    def _made_of(self, fitted, held_out=None):
        """This object with fitted members, and their attributes about the data."""
        self.members_, self._held_out = fitted, held_out
        first = next(iter(fitted.values()))
        for name in ("n_features_in_", "feature_names_in_", "classes_"):
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        return self

    def drop_record(self, intervals=True):
        """Drop all that predictions of the blend do not need.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep the held-out residuals of the blend, for
            ``predict_interval``. Its members keep none of their own.

        Returns
        -------
        self : object

        Raises
        ------
        NotFittedError
            If it is not fitted.
        """
        check_is_fitted(self)
        self.members_ = {
            name: without_record(member, intervals=False)
            for name, member in self.members_.items()
        }
        self.members = list(self.members_.items())
        self._held_out = self._held_out if intervals else None
        return self

    def _mean(self, method, X):
        """The weighted mean of a method of all members on X."""
        if "members_" not in vars(self):  # looked at first: tags of members take long
            check_is_fitted(self)
        found = [getattr(each, method)(X) for each in self.members_.values()]
        # Where y is one column, some members predict a vector and others a column.
        n_axes = min(each.ndim for each in found)
        return self._weighted(
            each if each.ndim == n_axes else each[:, 0] for each in found
        )

    def _weighted(self, values):
        """The weighted mean of a value of every member."""
        return sum(float(w) * each for w, each in zip(self.weights, values))

    def __sklearn_tags__(self):
        return tags_of(self.members, super().__sklearn_tags__(), all)


def _placed(found, X):
    """A result in NumPy, moved to the device of X if it is numeric."""
    return there(found, X) if is_foreign(X) and is_movable(found) else found


def _moved(member, t):
    """A fitted member at an iterate, or at the last recorded one before it."""
    kept = member.recorded_iterations()
    return member.at_iteration(kept[max(np.searchsorted(kept, t, "right") - 1, 0)])


class BlendedRegressor(RegressorMixin, Blend):
    """A weighted mean of the predictions of several regressors.

    :class:`~skacv.TrajectoryEarlyStoppingCV` with ``rule="blend"`` makes it.

    Parameters
    ----------
    members : list of (str, estimator)
    weights : list of float
        Their weights, positive and with sum one.
    iterations : list of int, default=None
        The iterates that members predict with if the blend is fitted anew; None is the
        last of each.

    Attributes
    ----------
    members_ : dict of str to estimator
        Fitted members, each at its iterate.
    coef_ : ndarray of the shape of the members' ``coef_``
        Coefficients of the blend, if all members are linear in the columns of X.
    intercept_ : float or ndarray of shape (n_targets,)
        Intercept of the blend, likewise.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.
    """

    @block_by_block
    def predict(self, X):
        """Predict with the weighted mean of the members' predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._mean("predict", X)

    @property
    def coef_(self):
        """Coefficients, where all members are linear in the columns of X."""
        return self._combined("coef_")

    @property
    def intercept_(self):
        """Intercept, where all members are linear in the columns of X."""
        return self._combined("intercept_")

    def _combined(self, name):
        for member, fitted in self.members_.items():
            if not _is_linear(fitted):
                raise AttributeError(
                    f"A blend has {name} where all members are linear in the columns "
                    f"of X, and {member!r} is not."
                )
        return self._weighted(getattr(each, name) for each in self.members_.values())

    @takes_coverage
    def predict_interval(self, X, coverage=0.9, method="auto"):
        """Prediction intervals from the held-out residuals of the blend.

        The prediction plus and minus a quantile of the absolute residuals.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Nominal probability that an interval contains the target of an unseen row;
            with several there is an interval for each.
        method : {"auto", "cv", "loo"}, default="auto"
            How rows were held out. A blend has one method, which is "auto".

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)
            Lower and upper ends, in units of y; with several coverages
            (n_samples, 2, n_coverages) or (n_samples, n_targets, 2, n_coverages).

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or if the
            blend has no residuals, or none by that method.
        """
        check_is_fitted(self)
        check_in_memory(X)
        coverage = checked_coverage(coverage)
        held_out = self._held_out_by(method)
        spread = held_out.loss.spread
        residuals = held_out.residuals
        n_units = int(held_out.units.max()) + 1
        ranks = [rank_of(each, n_units) for each in coverage.ravel()]
        predictions = here(self.predict(X))
        around = partial(around_predictions, units=held_out.units)
        ends = ends_of(around, predictions, residuals, ranks, spread(predictions))
        ends = np.clip(ends, *held_out.loss.target_range)
        # One coverage has no axis of its own.
        return _placed(ends.reshape(*ends.shape[:-1], *coverage.shape), X)

    def _held_out_by(self, method):
        """The held-out predictions for a method of intervals."""
        if self._held_out is None:
            raise ValueError(
                "Intervals need the held-out residuals of a blend, which fit does not "
                "compute and drop_record(intervals=False) drops: take the one that "
                "TrajectoryEarlyStoppingCV has made."
            )
        methods = ["auto", self._held_out.method]
        if method not in methods:
            raise ValueError(
                f"method must be one of {methods} for this blend, got {method!r}."
            )
        return self._held_out


def _is_linear(fitted):
    """Whether predictions of a fitted member are linear in X."""
    loss = getattr(fitted, "_loss", None)
    # Predictions then are the linear predictor itself.
    return getattr(loss, "is_of_residual", False) and hasattr(fitted, "coef_")


class BlendedClassifier(ClassifierMixin, Blend):
    """A mixture of the class probabilities of several classifiers.

    :class:`~skacv.TrajectoryEarlyStoppingCV` with ``rule="blend"`` makes it.

    Parameters
    ----------
    members : list of (str, estimator)
        Classifiers with probabilities.
    weights : list of float
        Their weights, positive and with sum one.
    iterations : list of int, default=None
        The iterates that members predict with if the blend is fitted anew; None is the
        last of each.

    Attributes
    ----------
    members_ : dict of str to estimator
        Fitted members, each at its iterate.
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.
    """

    @block_by_block
    def predict_proba(self, X):
        """Weighted means of the members' probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._mean("predict_proba", X)

    @block_by_block
    def predict_log_proba(self, X):
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return _placed(self._logarithms(X), X)

    @block_by_block
    def decision_function(self, X):
        """Log odds of the second of two classes, or logarithms of probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values predict the second class.
        """
        found = self._logarithms(X)
        return _placed(found[:, 1] - found[:, 0] if found.shape[1] == 2 else found, X)

    @block_by_block
    def predict(self, X):
        """Predict the likeliest class.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        found = here(self.predict_proba(X))
        return _placed(label_of(found, here(self.classes_)), X)

    def _logarithms(self, X):
        """Logarithms of the probabilities, clipped above zero."""
        found = here(self.predict_proba(X))
        return np.log(np.maximum(found, np.finfo(found.dtype).tiny))
