"""Methods and attributes that a stopping estimator delegates to the chosen iterate."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._estimator.data.queries import SCORES_ORDER, is_ranker
from .._estimator.delegation import class_of, delegated, fitted_part, last_step
from .._estimator.docstrings import INTERVALS, LEVELS, OFFSETS, SETS, documented
from .._estimator.prediction.offsets import given

# Regressors have intervals, classifiers sets.
COUNTERPARTS = {"predict_interval": "predict_set", "predict_set": "predict_interval"}


def _estimator_has(name):
    """Whether the chosen iterate has a method, or before fit all members do."""

    def check(self):
        if "estimator_" in vars(self):
            if not hasattr(self.estimator_, name):
                model = class_of(last_step(self.estimator_)[0])
                counterpart = COUNTERPARTS.get(name, "")
                has = hasattr(self.estimator_, counterpart)
                hint = f"; it has {counterpart}" if has else ""
                if counterpart and is_ranker(self.estimator_):
                    hint = f": {SCORES_ORDER}"
                raise AttributeError(f"the chosen model, {model}, has no {name}{hint}")
            return True
        return all(hasattr(member, name) for _, member in self._members())

    return check


def _fitted(name: str, doc: str) -> Any:
    """A property: a fitted attribute of ``estimator_``."""

    def value(self) -> Any:
        return getattr(self._chosen(), name)

    return property(value, doc=doc)


class ChosenIterate:
    """Predictions and fitted attributes of ``estimator_``, under the same names."""

    _chosen = fitted_part

    def _get_method(self, method):
        """A method of the chosen run, which a blend does not have."""
        chosen = self._chosen()
        if not hasattr(chosen, method) and "members_" in vars(self):
            raise AttributeError(
                f"A blend has no {method}: members_[{self.best_member_!r}].{method} "
                f"is that of one member; members_ has {', '.join(self.members_)}."
            )
        return getattr(chosen, method)

    @documented(OFFSETS)
    def predict(self, X: Any, offset: ArrayLike | float | None = None) -> np.ndarray:
        """Predict with the chosen iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        return self._chosen().predict(X, **given(offset))

    @delegated(_estimator_has)
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision function of the chosen iterate, for classifiers.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """

    @delegated(_estimator_has)
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of the chosen iterate, if it has them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """

    @delegated(_estimator_has)
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities of the chosen iterate, if it has them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """

    @delegated(_estimator_has)
    def predict_survival_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Survival functions of the chosen iterate, for models of survival times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return values at the times of the training rows, not functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or (n_samples, n_times)
        """

    @delegated(_estimator_has)
    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Cumulative hazards of the chosen iterate, for models of survival times.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return values at the times of the training rows, not functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or (n_samples, n_times)
        """

    def at_iteration(self, t: int) -> Any:
        """The fitted estimator at iterate ``t`` of the chosen trajectory.

        Nothing is refitted, and this object keeps its chosen iterate.

        Parameters
        ----------
        t : int
            Row of ``path_``, from 0; negative counts from the end.

        Returns
        -------
        estimator of the class of ``estimator_``

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        AttributeError
            If this object is a blend, whose members have iterates.
        ValueError
            If there is no such iterate, or its coefficients were not kept.
        """
        return self._get_method("at_iteration")(t)

    @documented(OFFSETS)
    def staged_predict(
        self, X: Any, offset: ArrayLike | float | None = None
    ) -> Iterator[np.ndarray]:
        """Predict with every iterate of the chosen trajectory.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {new_offset}

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)

        Raises
        ------
        AttributeError
            If this object is a blend, whose members have iterates.
        """
        yield from self._get_method("staged_predict")(X, **given(offset))

    @delegated(_estimator_has)
    @documented(INTERVALS, OFFSETS)
    def predict_interval(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        method: str = "auto",
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Prediction intervals of the chosen iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage}
        method : {"auto", "jackknife+", "loo", "cv", "risk", "scaled"}, default="auto"
            As in :meth:`TrajectoryLasso.predict_interval`; "scaled", with widths that
            follow the row, is "auto" for blends and staged models. Each method needs
            :doc:`its own held-out rows </guide/intervals>`.
        {new_offset}

        Returns
        -------
        {ndarray}

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            If coverage is not in (0, 1), there are too few rows for it, or the
            estimator was fitted without what the method needs.
        """

    @delegated(_estimator_has)
    @documented(LEVELS, OFFSETS)
    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike = (0.05, 0.5, 0.95),
        method: str = "auto",
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Quantiles of the target by the chosen iterate, from held-out residuals.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {levels}
        method : {"auto", "jackknife+", "loo", "cv", "risk", "scaled"}, default="auto"
            As in :meth:`predict_interval`.
        {new_offset}

        Returns
        -------
        {ndarray}

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            If a level is not in (0, 1), there are too few rows for it, or the estimator
            was fitted without what the method needs.

        See Also
        --------
        SelfStoppingQuantileRegressor : Models of the quantiles themselves, each stopped
            by its pinball loss.
        """

    @delegated(_estimator_has)
    @documented(SETS)
    def predict_set(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        method: Literal["lac", "aps"] = "lac",
    ) -> np.ndarray:
        """Prediction sets of the chosen iterate, for classifiers with probabilities.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage}
        method : {"lac", "aps"}, default="lac"
            The conformity score, as in
            :meth:`TrajectoryLogisticRegression.predict_set`: "lac" gives the smallest
            sets on average, "aps" never an empty set.

        Returns
        -------
        ndarray of bool, shape (n_samples, n_classes)
            Which of ``classes_`` are in the set; with several coverages (n_samples,
            n_classes, n_coverages).

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            If coverage is not in (0, 1), or if there are too few held-out rows for it.
        """

    @delegated(_estimator_has)
    def coef_interval(
        self, columns: ArrayLike | None = None, coverage: float = 0.95, **settings: Any
    ) -> np.ndarray:
        """Confidence intervals of the chosen iterate's coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true coefficient. The
            choice of the iterate does not affect it, since the iterate is debiased.
        **settings : dict
            ``iteration``, ``covariance`` and ``X_unlabelled`` of the estimator's own
            method, such as :meth:`TrajectoryLasso.coef_interval`.

        Returns
        -------
        ndarray of shape (n_columns, 2) or (n_columns, n_targets, 2)

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            As in the estimator's method, which needs ``keep_data=True``.
        """

    @delegated(_estimator_has)
    def coef_table(self, columns: ArrayLike | None = None, **settings: Any) -> Any:
        """Estimates, standard errors, tests and intervals of coefficients.

        Parameters
        ----------
        columns : array-like of int, str or bool, default=None
            The columns of X to return; None means all.
        **settings : dict
            Parameters of the estimator's own method: ``iteration``, ``covariance`` and
            ``X_unlabelled``, and ``coverage`` if it has intervals.

        Returns
        -------
        DataFrame, or dict of ndarray
            As returned by the estimator's own method, such as
            :meth:`TrajectoryLasso.coef_table`.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            As in :meth:`coef_interval`.
        """

    @delegated(_estimator_has)
    def predict_mean_interval(
        self, X: Any, coverage: float = 0.95, **settings: Any
    ) -> np.ndarray:
        """Confidence intervals for the mean of the target, given rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Fixed or new rows; the training rows are not independent of the noise of
            the fit.
        coverage : float, default=0.95
            Nominal probability that an interval contains the true mean. The choice of
            the iterate does not affect it.
        **settings : dict
            ``iteration``, ``covariance`` and ``X_unlabelled`` of the estimator's own
            method, such as :meth:`TrajectoryLasso.predict_mean_interval`.

        Returns
        -------
        ndarray of shape (n_samples, 2) or (n_samples, n_targets, 2)

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        ValueError
            As in :meth:`coef_interval`.
        """

    def _known_correction(self):
        """The Corrected score; AttributeError says why there is none."""
        check_is_fitted(self)
        if "_corrected" not in vars(self):  # of targets one by one
            raise AttributeError("There is no corrected score of all targets.")
        if isinstance(self._corrected, str):
            raise AttributeError(f"There is no corrected score: {self._corrected}.")
        return self._corrected

    @property
    def best_score_corrected_(self) -> float:
        """``best_score_`` without the optimism of having picked the best candidate."""
        return self._known_correction().score

    @property
    def best_score_corrected_se_(self) -> float:
        """Standard error of ``best_score_corrected_``."""
        return self._known_correction().standard_error

    @property
    def possible_gain_(self) -> float:
        """Bound on how much any later iterate of the run could improve the risk."""
        return self._known_correction().possible_gain

    coef_ = _fitted("coef_", "Coefficients of the chosen iterate.")
    intercept_ = _fitted("intercept_", "Intercept of the chosen iterate.")

    @property
    def feature_importances_(self) -> np.ndarray:
        """Feature importances of the chosen model, if it has them."""
        chosen = self._chosen()
        importances = getattr(chosen, "feature_importances_", None)
        if np.ndim(importances) == 0:  # CatBoost's ranker has None in an array
            model, _ = last_step(chosen)
            model = getattr(model, "estimator_", model)
            raise AttributeError(
                f"The chosen model, {type(model).__name__}, has no "
                "feature_importances_: permutation_importance of sklearn.inspection "
                "computes importances for any model on unseen rows."
            )
        return importances

    classes_ = _fitted("classes_", "Labels of the classes, for classifiers.")
    n_features_in_ = _fitted("n_features_in_", "Number of features seen in fit.")
    feature_names_in_ = _fitted(
        "feature_names_in_", "Names of the features, if X has string column names."
    )
