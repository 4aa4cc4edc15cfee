"""Blends: weighted means of the predictions of fitted members."""

from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.special import logit
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted

from .._compat import Composition, check_in_memory, is_foreign
from .._estimator.collections import block_by_block
from .._estimator.data.labels import indicator_of, label_of
from .._estimator.devices import is_movable
from .._estimator.docstrings import INTERVALS as OF_INTERVALS
from .._estimator.docstrings import LEVELS, OFFSETS, SETS, documented
from .._estimator.estimates.fitted_state import drop_record_of
from .._estimator.parameters import set_parameters, takes_coverage
from .._estimator.prediction.offsets import given, offset_of_rows, without_offset
from .._estimator.prediction.scores import score_of
from .._names import did_you_mean
from ..optim.losses import Loss
from ..optim.namespaces import to_device_of, to_numpy
from ..risk.held_out_rows import HeldOutResiduals
from ..risk.intervals import INTERVALS, QUANTILES, checked_coverage, sizes_by_prediction
from ..risk.prediction_sets import HeldOutScores, check_score, sets_around
from .members import tags_of


class BlendRows(NamedTuple):
    """The held-out rows of a blend, for prediction intervals or sets."""

    # How rows were held out.
    method: str
    # Residuals of targets, or scores of classes.
    rows: HeldOutResiduals | HeldOutScores
    # It defines the range and the spread of targets of regression; None for classes.
    loss: Loss | None


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

    # What results call it, and the rule that makes it.
    name = "blend"
    _parts = "members"
    # Fitted attributes about the data, which all members share.
    _of_data: tuple[str, ...] = ("n_features_in_", "feature_names_in_")

    def __init__(self, members, weights, iterations=None):
        set_parameters(self, locals())

    @classmethod
    def of_fitted(cls, members, weights, held_out=None):
        """The blend of fitted members, by name at their chosen iterates."""
        fitted, used, iterations = {}, [], []
        for name, weight in weights.items():
            if weight > 0:
                fitted[name] = members[name]
                used.append(weight)
                iterations.append(getattr(fitted[name], "iteration_", None))
        if None in iterations:
            iterations = None
        blend = cls(list(fitted.items()), used, iterations)
        return blend._hold_members(fitted, held_out)

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
        fitted = self._fit_members(X, y, **params)
        for (name, member), t in zip(fitted.items(), self.iterations or ()):
            # The iterate, or the last recorded one before it.
            kept = member.recorded_iterations()
            index = max(np.searchsorted(kept, t, "right") - 1, 0)
            fitted[name] = member.at_iteration(kept[index])
        return self._hold_members(fitted)

    def _fit_members(self, X, y, **params):
        """Members fitted again, by name."""
        return {
            name: clone(member).fit(X, y, **params) for name, member in self.members
        }

    def _hold_members(self, fitted, held_out=None):
        """This object with fitted members, and their attributes about the data."""
        self.members_, self._held_out = fitted, held_out
        first = next(iter(fitted.values()))
        for name in self._of_data:
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))
        return self

    def drop_record(self, intervals=True):
        """A copy that keeps only what predictions of the blend need.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep the held-out residuals of the blend, for
            ``predict_interval``. Its members keep none of their own.

        Returns
        -------
        estimator
            The fitted copy. This object keeps its record.

        Raises
        ------
        NotFittedError
            If it is not fitted.
        """
        check_is_fitted(self)
        small = copy(self)
        small.members_ = {
            name: drop_record_of(member, intervals=False)
            for name, member in self.members_.items()
        }
        small.members = list(small.members_.items())
        small._held_out = self._held_out if intervals else None
        return small

    def _mean(self, method, X, **params):
        """The weighted mean of a method of all members on X."""
        if "members_" not in vars(self):  # looked at first: tags of members take long
            check_is_fitted(self)
        values, mean = [], 0
        for member in self.members_.values():
            values.append(getattr(member, method)(X, **params))
        # Where y is one column, members predict a vector or a column.
        n_axes = min(map(np.ndim, values))
        for weight, array in zip(self.weights, values):
            array = array if array.ndim == n_axes else array[:, 0]
            mean = mean + float(weight) * array
        return mean

    def _held_out_rows(self):
        """The held-out rows, where the blend comes of runs that have them."""
        if self._held_out is None:
            raise ValueError(
                "Intervals and prediction sets need the held-out rows of a blend, "
                "which fit does not compute and drop_record(intervals=False) drops: "
                "use the blend that TrajectoryEarlyStoppingCV has fitted, with "
                "criterion='cv' or 'loo'. Rows with several labels, or with shares of "
                "classes, have no prediction sets."
            )
        return self._held_out

    def __sklearn_tags__(self):
        return tags_of(self.members, super().__sklearn_tags__(), all)


def _to_device(result, X):
    """A result in NumPy, moved to the device of X if it is numeric."""
    return to_device_of(result, X) if is_foreign(X) and is_movable(result) else result


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
    @documented(OFFSETS)
    def predict(self, X, offset=None):
        """Predict with the weighted mean of the members' predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._mean("predict", X, **given(offset))

    @documented(OFFSETS)
    def score(self, X, y, sample_weight=None, offset=None):
        """R^2 of the predictions; of a loss with a log link, the D^2 by that loss.

        With an offset both are of the targets and weights that stand for it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        {new_offset}

        Returns
        -------
        float
        """
        check_is_fitted(self)
        member = next(iter(self.members_.values()))
        offset = offset_of_rows(member, X, offset, "score")
        params = {"sample_weight": sample_weight}
        if offset is not None:
            y, params = without_offset(member, y, params, offset)
            offset = 0.0
        prediction = self.predict(X, **given(offset))
        return score_of(member.record_.loss, y, prediction, **params)

    @property
    def coef_(self):
        """Coefficients, where all members are linear in the columns of X."""
        return self._combine("coef_")

    @property
    def intercept_(self):
        """Intercept, where all members are linear in the columns of X."""
        return self._combine("intercept_")

    def _combine(self, name):
        mean = 0
        for weight, (member, fitted) in zip(self.weights, self.members_.items()):
            # Predictions are the linear predictor, whose coefficients are of X.
            loss = getattr(fitted, "_loss", None)
            is_of_predictor = getattr(loss, "is_of_residual", False)
            if not (is_of_predictor and hasattr(fitted, "coef_")):
                raise AttributeError(
                    f"A blend has {name} only if all members are linear in the "
                    f"columns of X, but {member!r} is not."
                )
            mean = mean + float(weight) * getattr(fitted, name)
        return mean

    @documented(OF_INTERVALS, OFFSETS)
    @takes_coverage
    def predict_interval(self, X, coverage=0.9, method="auto", offset=None):
        """Prediction intervals from the held-out residuals of the blend.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage}
        method : {"auto", "scaled", "cv", "loo"}, default="auto"
            "auto" is "scaled": widths that follow the prediction, as in
            :meth:`Staged.predict_interval`. "cv" or "loo", the way in which rows were
            held out: the prediction plus and minus a quantile of the sizes of the
            held-out residuals, the same width for all rows.
        {new_offset}

        Returns
        -------
        {ndarray}

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or if the
            blend has no residuals, or none by that method.
        """
        return self._ends_at(INTERVALS, X, coverage, method, offset)

    @documented(LEVELS, OFFSETS)
    def predict_quantiles(
        self, X, levels=(0.05, 0.5, 0.95), method="auto", offset=None
    ):
        """Quantiles of the target from the held-out residuals of the blend.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {levels}
        method : {"auto", "scaled", "cv", "loo"}, default="auto"
            As in :meth:`predict_interval`.
        {new_offset}

        Returns
        -------
        {ndarray}

        Raises
        ------
        ValueError
            If a level is not in (0, 1), if there are too few rows for it, or if the
            blend has no residuals, or none by that method.
        """
        return self._ends_at(QUANTILES, X, levels, method, offset)

    def _ends_at(self, form, X, shares, method, offset):
        """Ends of intervals, or quantiles, of a form."""
        check_is_fitted(self)
        check_in_memory(X)
        shares = form.checked(shares)
        held_out = self._held_out_by(method)
        predictions, sizes = to_numpy(self.predict(X, **given(offset))), None
        if method != held_out.method:
            sizes = sizes_by_prediction(held_out.rows, predictions)
        ends = form.of_rows(predictions, held_out.rows, shares, held_out.loss, sizes)
        return _to_device(ends, X)

    def _held_out_by(self, method):
        """The held-out rows for a method of intervals."""
        held_out = self._held_out_rows()
        methods = ["auto", "scaled", held_out.method]
        if method not in methods:
            raise ValueError(
                f"method must be one of {methods} for this blend, got {method!r}."
                f"{did_you_mean(method, methods)}"
            )
        return held_out


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
        Labels of the classes; for several labels in a row their numbers.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.
    """

    _of_data = (*Blend._of_data, "classes_", "_is_multilabel")
    # Whether a row may have several labels, as members that take these say.
    _is_multilabel = False

    @block_by_block
    def predict_proba(self, X):
        """Weighted means of the members' probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For several labels in a row the probability of each, (n_samples, n_labels).
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
        return _to_device(self._logarithms(X), X)

    @block_by_block
    def decision_function(self, X):
        """Log odds of the second of two classes or of labels, or log probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            With two classes, positive values predict the second class; with several
            labels in a row, (n_samples, n_labels), they predict a label.
        """
        if self._is_multilabel:
            least = np.finfo(np.float64).eps
            return logit(np.clip(self.predict_proba(X), least, 1 - least))
        decision = self._logarithms(X)
        if decision.shape[1] == 2:
            decision = decision[:, 1] - decision[:, 0]
        return _to_device(decision, X)

    @block_by_block
    def predict(self, X):
        """Predict the likeliest class, or the labels that are likelier than not.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        probabilities = to_numpy(self.predict_proba(X))
        if self._is_multilabel:
            return indicator_of(probabilities)
        return _to_device(label_of(probabilities, to_numpy(self.classes_)), X)

    @documented(SETS)
    @takes_coverage
    def predict_set(self, X, coverage=0.9, method="lac"):
        """Prediction sets from the held-out probabilities of the blend.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage}
        method : {"lac", "aps"}, default="lac"
            The conformity score, as in
            :meth:`TrajectoryLogisticRegression.predict_set`.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Which of ``classes_`` are in the set; with several coverages (n_samples,
            n_classes, n_coverages).

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or if the
            blend has no held-out rows.
        """
        check_is_fitted(self)
        check_in_memory(X)
        coverage = checked_coverage(coverage)
        check_score(method)
        rows = self._held_out_rows().rows
        probabilities = to_numpy(self.predict_proba(X))
        return _to_device(sets_around(probabilities, rows, coverage, method), X)

    def _logarithms(self, X):
        """Logarithms of the probabilities, clipped above zero."""
        probabilities = to_numpy(self.predict_proba(X))
        return np.log(np.maximum(probabilities, np.finfo(probabilities.dtype).tiny))


class MeanOfIterates:
    """A mean of iterates of one run, whose record all of them share."""

    name = "average"

    def at_iteration(self, t):
        """The fitted model of the run at iterate ``t``, which need not have a weight.

        Parameters
        ----------
        t : int

        Returns
        -------
        estimator
        """
        return self._iterate().at_iteration(t)

    def staged_predict(self, X, **params):
        """Predict with every iterate of the run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        **params : dict
            ``offset``, if fit was passed one.

        Returns
        -------
        iterator of ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._iterate().staged_predict(X, **params)

    def _iterate(self):
        """One of the iterates, each of which has the record."""
        return next(iter(self.members_.values()))

    def _fit_members(self, X, y, **params):
        names, iterates = zip(*self.members)
        return dict.fromkeys(names, clone(iterates[0]).fit(X, y, **params))


class AveragedRegressor(MeanOfIterates, BlendedRegressor):
    """A weighted mean of the predictions of iterates of one run.

    :class:`~skacv.TrajectoryEarlyStoppingCV` with ``rule="average"`` makes it.
    """


class AveragedClassifier(MeanOfIterates, BlendedClassifier):
    """A mixture of the class probabilities of iterates of one run.

    :class:`~skacv.TrajectoryEarlyStoppingCV` with ``rule="average"`` makes it.
    """
