"""Predictions with every stage of a fitted estimator."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from .._compat import available_if
from .._estimator.data.checks import (
    names_infinite_columns,
    sum_duplicates,
    validate_target,
)
from .._estimator.data.labels import indicator_of, label_of
from .._estimator.data.queries import (
    SCORES_ORDER,
    is_ranker,
    rows_by_query,
    sizes_by_row,
)
from .._estimator.data.survival import takes_survival
from .._estimator.delegation import class_of, fitted_part, route_metadata
from .._estimator.docstrings import INTERVALS as OF_INTERVALS
from .._estimator.docstrings import LEVELS, OFFSETS, SETS, documented
from .._estimator.estimates.held_out import row_losses
from .._estimator.parameters import takes_coverage
from .._estimator.prediction.offsets import add_offset, offset_of_rows, without_offset
from .._estimator.prediction.prediction_intervals import (
    cv_plus,
    intervals_of,
    quantiles_of,
)
from .._estimator.prediction.prediction_sets import sets_of
from .._estimator.prediction.predictions import HasStagedLoss
from .._estimator.prediction.survival import step_functions
from .._estimator.prediction.survival_scores import concordance
from ..records.descriptors import recorded
from ..risk.intervals import INTERVALS, QUANTILES
from .adapter import label_probabilities, response_of
from .averages import MeanOfCopies
from .data import survival_of
from .fits import last_of
from .survival import SignedTimes, baseline_of_held_out_rows


def _inner_has(name):
    """Whether the estimator has a method, fitted or not."""

    def has(self):
        record = vars(self).get("record_")
        return hasattr(self.estimator if record is None else record.iterate, name)

    return has


def _has_survival_functions(staged):
    """Whether they are the estimator's own, or follow from hazard ratios."""
    own = _inner_has("predict_survival_function")
    return own(staged) or staged._takes_survival == SignedTimes.survival


def _has_intervals(staged):
    """Whether the estimator is a regressor; classifiers have sets instead."""
    if is_ranker(staged):
        raise AttributeError(SCORES_ORDER)
    if takes_survival(staged):
        raise AttributeError("its predictions are hazards, not times")
    if is_regressor(staged) and staged._levels():
        raise AttributeError(
            "it predicts several quantiles itself, and SelfStoppingQuantileRegressor "
            "corrects these on held-out rows"
        )
    if not is_regressor(staged):
        instead = "; it has predict_set" if hasattr(staged, "predict_set") else ""
        raise AttributeError(f"only regressors have intervals{instead}")
    return True


def _has_sets(staged):
    """Whether the estimator has probabilities; regressors have intervals instead."""
    if is_ranker(staged):
        raise AttributeError(SCORES_ORDER)
    if is_regressor(staged):
        raise AttributeError("only classifiers have sets; it has predict_interval")
    return _inner_has("predict_proba")(staged)


class PredictsByStages(HasStagedLoss):
    """Predictions by the stages in use, and by every number of stages."""

    estimator_ = recorded(
        lambda record: record.iterate, "The fitted estimator with the stages in use."
    )
    _loss = recorded(lambda record: record.loss, "The loss that judges stages.")
    _is_multilabel = recorded(
        lambda record: record.more["info"].is_multilabel,
        "Whether a row may have several labels.",
    )

    def _light_record(self, in_use):
        more = {name: self.record_.more[name] for name in ("info", "offset")}
        more["info"] = replace(more["info"], query_sizes=None)  # as long as X
        has_ratios = self._takes_survival == SignedTimes.survival
        if has_ratios and self.record_.estimates.get("cv") is not None:
            # A stopping estimator keeps held-out rows of the chosen stage alone.
            with suppress(ValueError):
                more["baseline"] = self._baseline()
        return replace(super()._light_record(in_use), more=more)

    def _gives_sets(self):
        return super()._gives_sets() and not self._is_multilabel

    def _validate_target(self, y):
        adapter = self._adapter()
        if adapter.survival:
            return survival_of(y, adapter)
        return super()._validate_target(y)

    def _target(self, y):
        return self.record_.more["info"].target_of(y)

    @property
    def _offset(self):
        """The parameter of ``fit`` that was added to the sums of stages, or None."""
        return self.record_.more["offset"]

    def recorded_iterations(self) -> np.ndarray:
        """Stages available from :meth:`at_iteration`: usually all, from the first.

        Estimators that forget earlier stages, such as networks, are copied after every
        stage. If these copies would need more than 256 MB, only some are kept, among
        them the best and the last. After :meth:`drop_record` only the stage in use is
        left.

        Returns
        -------
        ndarray of int
        """
        return super().recorded_iterations()

    def at_iteration(self, t: int) -> Self:
        """A fitted copy that uses the first ``t`` stages.

        Nothing is refitted, and the copy shares the stages.

        Parameters
        ----------
        t : int
            From 1 to ``n_iter_``; negative numbers count from the end.

        Returns
        -------
        Staged

        Raises
        ------
        TypeError
            If t is not an integer.
        ValueError
            If there is no such stage, or it was not kept (see
            :meth:`recorded_iterations`).
        """
        return super().at_iteration(t)

    def _responses(self, X):
        """What the estimator says by every number of stages, one after the other."""
        check_is_fitted(self)
        self._check_has_record()
        X = self._rows(X)
        with names_infinite_columns(X):
            yield from self.record_.iterates.model.staged_predictions(X, self.n_iter_)

    def _rows(self, X):
        """X as the estimator takes it, checked as in ``fit``."""
        if last_of(self.estimator) is self.estimator:
            self._adapter().check_rows(X)
        return sum_duplicates(X)

    def _predictions(self, method, X, *args, **params):
        """What a method of the estimator says of X."""
        fitted, X = fitted_part(self), self._rows(X)
        with names_infinite_columns(X):
            return getattr(fitted, method)(X, *args, **params)

    @available_if(_inner_has("predict"))
    @documented(OFFSETS)
    def predict(self, X: Any, offset: ArrayLike | float | None = None) -> np.ndarray:
        """Predict with the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        offset = offset_of_rows(self, X, offset, "predict")
        predictions = self._adapter().as_targets(self._predictions("predict", X))
        return add_offset(self, predictions, offset)

    @available_if(_inner_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities by the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            (n_samples, n_labels) for several labels in a row: the probability of each.
        """
        probabilities = self._predictions("predict_proba", X)
        if isinstance(probabilities, list):  # of forests and MultiOutputClassifier
            return label_probabilities(probabilities, self.estimator_.classes_)
        return probabilities

    @available_if(_inner_has("predict_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the class probabilities by the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(_inner_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Decision function of the stages in use.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        return self._predictions("decision_function", X)

    @available_if(_has_survival_functions)
    def predict_survival_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Survival functions by the stages in use.

        Estimators of scikit-survival have their own. For hazard ratios of XGBoost and
        CatBoost the baseline hazard is Breslow's estimate from held-out predictions.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return values at the times of the training rows, not functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or (n_samples, n_times)
        """
        if _inner_has("predict_survival_function")(self):
            return self._predictions(
                "predict_survival_function", X, return_array=return_array
            )
        times, hazards = self._cumulative_hazards(X)
        shares = np.exp(-hazards)
        return shares if return_array else step_functions(times, shares, start=1.0)

    @available_if(_has_survival_functions)
    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False
    ) -> np.ndarray:
        """Cumulative hazards by the stages in use.

        They are those of :meth:`predict_survival_function`.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        return_array : bool, default=False
            Whether to return values at the times of the training rows, not functions.

        Returns
        -------
        ndarray of StepFunction, shape (n_samples,), or (n_samples, n_times)
        """
        if _inner_has("predict_survival_function")(self):
            return self._predictions(
                "predict_cumulative_hazard_function", X, return_array=return_array
            )
        times, hazards = self._cumulative_hazards(X)
        return hazards if return_array else step_functions(times, hazards)

    def _cumulative_hazards(self, X):
        """Times of the held-out rows, and hazards of rows (n_samples, n_times)."""
        log_ratios = self.record_.loss.predictor(self.predict(X))
        baseline = self._baseline()
        return baseline.times, baseline.at(log_ratios, 0)

    def _baseline(self):
        """The baseline hazards of the stages in use, from held-out rows."""
        baseline = self.record_.more.get("baseline")
        if baseline is None:
            baseline = baseline_of_held_out_rows(self.record_, self.iteration_)
        return baseline

    @documented(OFFSETS)
    def staged_predict(
        self, X: Any, offset: ArrayLike | float | None = None
    ) -> Iterator[np.ndarray]:
        """Predict with every number of stages, from the first.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        {new_offset}

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            One array for each of :meth:`recorded_iterations`.
        """
        offset = offset_of_rows(self, X, offset, "staged_predict")
        for response in self._responses(X):
            yield add_offset(self, self._predict_from(response), offset)

    def _predict_from(self, response):
        """The result of ``predict`` for probabilities, decisions or predictions."""
        if not is_classifier(self):
            return response
        if self._is_multilabel:
            return indicator_of(response)
        return label_of(response, self.classes_)

    @property
    def _held_out_response(self):
        """The method by whose values stages are judged."""
        return response_of(last_of(self.estimator))

    @available_if(_inner_has("predict_proba"))
    def staged_predict_proba(self, X: Any) -> Iterator[np.ndarray]:
        """Class probabilities by every number of stages, from the first.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            One array for each of :meth:`recorded_iterations`.
        """
        yield from self._responses(X)

    @documented(OFFSETS)
    def staged_loss(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
        **queries: ArrayLike,
    ) -> np.ndarray:
        """Mean loss of every stage on other rows, with the loss of ``cv_path_``.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the mean. None: equal weights.
        {new_offset}
        **queries : array-like
            Of a ranker, and as in :meth:`fit`: ``qid`` or ``group``.

        Returns
        -------
        ndarray of shape (n_stages,)
            One for each of :meth:`recorded_iterations`.

        Raises
        ------
        ValueError
            If fit was passed an offset of the estimator, which is unknown for these
            rows.
        """
        check_is_fitted(self)
        self._check_no_offset("staged_loss", "staged_predict")
        if not is_ranker(self):
            if offset is None:
                return super().staged_loss(X, y, sample_weight, **queries)
            return self._staged_loss(X, y, sample_weight, offset)
        params = {"sample_weight": sample_weight, **queries}
        target, weights = self._target_of_queries(X, y, params, "staged_loss")
        losses = [self._mean_loss(target, one, weights) for one in self._responses(X)]
        return np.array(losses)

    def _target_of_queries(self, X, y, params, method):
        """Targets of rows in the loss of a ranker, and their weights in its means.

        Shapes: returned (n_samples, 2), (n_samples,).
        """
        params = rows_by_query(X, params, class_of(self), method)
        weights, sizes = params.get("sample_weight"), sizes_by_row(params["groups"])
        y = validate_target(y, False)
        check_consistent_length(X, y)
        info = replace(self.record_.more["info"], query_sizes=sizes)
        return info.target_of(y), (1.0 if weights is None else weights) / sizes

    def _mean_loss(self, target, response, weights):
        losses = row_losses(self._loss, target, response[None], weights)[0]
        return np.average(losses, weights=weights)

    @documented(OFFSETS)
    def score(
        self,
        X: Any,
        y: ArrayLike,
        offset: ArrayLike | float | None = None,
        **params: Any,
    ) -> float:
        """Score of the stages in use, by the ``score`` of the estimator.

        That of a ranker is one less its loss, such as the mean NDCG@10 of the queries,
        and that of a model of survival times is Harrell's concordance.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        {new_offset}
        **params : dict
            Passed to the estimator's ``score``; of a ranker ``qid`` or ``group``, as
            in :meth:`fit`, and ``sample_weight``.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if is_ranker(self):
            target, weights = self._target_of_queries(X, y, params, "score")
            return 1 - self._mean_loss(target, self.predict(X), weights)
        if takes_survival(self):
            y = self._validate_target(y)
            return concordance(y, self.predict(X), **params)
        offset = offset_of_rows(self, X, offset, "score")
        params = route_metadata(self, "score", "estimator", "score", params)
        if offset is not None:
            y, params = without_offset(self, y, params, offset)
        return self._predictions("score", X, y, **params)

    @available_if(_has_intervals)
    @documented(OF_INTERVALS, OFFSETS)
    @takes_coverage
    def predict_interval(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        method: str = "auto",
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Prediction intervals from the residuals of rows held out in folds.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        {coverage}
        method : {"auto", "scaled", "cv", "cv+"}, default="auto"
            "auto" is "scaled", with widths that follow the prediction. "cv" gives all
            rows the same width. "cv+" (with ``keep="mean"``) has guaranteed coverage
            for a stage fixed beforehand. See the notes.
        {new_offset}

        Returns
        -------
        {ndarray}

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), there are too few rows for it or no folds, or
            fit was passed an offset of the estimator. With "cv+", if fit was passed
            groups or kept no copies.

        Notes
        -----
        "scaled" is the prediction plus and minus q s: s is the mean absolute held-out
        residual of rows with nearby predictions, and q the quantile of the absolute
        held-out residuals, each divided by an s from other folds [1]_. "cv" is plus and
        minus the quantile of the absolute held-out residuals. "cv+" takes quantiles,
        over the held-out rows, of the prediction by the copy that has not seen the row,
        plus and minus its residual [2]_; for a stage fixed beforehand it covers with
        probability at least 2 coverage - 1 - (2 / n)^(1/2).

        References
        ----------
        .. [1] Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018),
               "Distribution-free predictive inference for regression", section 5.2.
        .. [2] Barber, Candes, Ramdas and Tibshirani (2021), "Predictive inference with
               the jackknife+", section 3.
        """
        check_is_fitted(self)
        self._check_no_offset("predict_interval", "predict")
        if method == "cv+":
            return self._by_copies(INTERVALS, X, coverage, offset)
        method = "scaled" if method == "auto" else method
        return intervals_of(self, X, coverage, method, offset)

    @available_if(_has_intervals)
    @documented(LEVELS, OFFSETS)
    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike = (0.05, 0.5, 0.95),
        method: str = "auto",
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Quantiles of the target from the residuals of rows held out in folds.

        They are one-sided forms of :meth:`predict_interval`: the k-th smallest residual
        itself, with k = ceil(level (n + 1)), in the place of plus and minus that of a
        size. Residuals need not be symmetric.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        {levels}
        method : {"auto", "scaled", "cv", "cv+"}, default="auto"
            As in :meth:`predict_interval`.
        {new_offset}

        Returns
        -------
        {ndarray}

        Raises
        ------
        ValueError
            If a level is not in (0, 1), there are too few rows for it or no folds, or
            fit was passed an offset of the estimator. With "cv+", if fit was passed
            groups or kept no copies.

        See Also
        --------
        SelfStoppingQuantileRegressor : Models of the quantiles themselves.
        """
        check_is_fitted(self)
        self._check_no_offset("predict_quantiles", "predict")
        if method == "cv+":
            return self._by_copies(QUANTILES, X, levels, offset)
        method = "scaled" if method == "auto" else method
        return quantiles_of(self, X, levels, method, offset)

    def _by_copies(self, form, X, shares, offset):
        """Intervals, or quantiles, from the copies of all folds."""
        if not isinstance(self.estimator_, MeanOfCopies):
            raise ValueError("method='cv+' needs copies of folds: set keep='mean'.")
        offset = offset_of_rows(self, X, offset, form.method)
        return cv_plus(form, self, self.estimator_.copies[1:], X, shares, offset)

    @available_if(_has_sets)
    @documented(SETS)
    @takes_coverage
    def predict_set(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        method: Literal["lac", "aps"] = "lac",
    ) -> np.ndarray:
        """Prediction sets: the classes that a row may belong to, from held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        {coverage, method}

        Returns
        -------
        {ndarray}

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), there are too few held-out rows (or groups)
            for it, fit had no folds, or it was passed offsets.

        References
        ----------
        {Sadinle, Romano}
        """
        check_is_fitted(self)
        self._check_no_offset("predict_set", "predict_proba")
        if self._is_multilabel:
            raise ValueError(
                "Prediction sets need one class per row, but y has several labels per "
                "row: predict_proba has the probability of each."
            )
        return sets_of(self, X, coverage, method)

    def _check_no_offset(self, method, instead):
        """Raise if fit was passed offsets, which a method does not have."""
        if self._offset is not None:
            raise ValueError(
                f"{method} cannot add {self._offset}, which fit was passed, for new "
                f"rows: use {instead} and add their offsets by hand. The held-out "
                "predictions cv_prediction_path_ contain it."
            )
