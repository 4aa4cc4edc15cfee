"""Predictions of linear models with any recorded iterate."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils import check_consistent_length
from sklearn.utils.extmath import safe_sparse_dot

from ...optim.arrays import design_of
from ...optim.losses import SquaredError
from ...optim.namespaces import dtype_of, is_on_device
from ..collections import block_by_block, staged_block_by_block
from ..data.checks import validate_weights
from ..data.training_data import EncodedTarget, check_usable, new_rows, validate_samples
from ..devices import convert_to, of_rows
from ..docstrings import INTERVALS, LEVELS, OFFSETS, documented
from ..estimates.fitted_state import LeaveOneOutAttributes
from ..estimates.left_out import coefficients_without_rows
from ..parameters import takes_coverage
from ..run.recording import RecordsTrajectory
from .offsets import add_offset, offset_of_rows, without_offset
from .prediction_intervals import intervals_of, quantiles_of
from .scores import score_of


class HasStagedLoss(RecordsTrajectory):
    """Estimators that say the loss of every iterate on other rows.

    A subclass has ``_responses(X)``, what the iterates that are kept give for rows of
    X, one after the other, and ``_mean_loss(target, response, weights)``.
    """

    @of_rows
    def staged_loss(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> np.ndarray:
        """Mean loss of every iterate on other rows, in the loss of ``train_path_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows in the mean. None: equal weights.

        Returns
        -------
        ndarray of shape (n_iterates,)
            One for each of :meth:`recorded_iterations`.

        Raises
        ------
        ValueError
            If X, y and sample_weight differ in length, y has other outputs or labels
            than in fit, or all weights are zero.
        """
        return self._staged_loss(X, y, sample_weight)

    def _staged_loss(self, X, y, sample_weight, offset=None):
        check_usable(self)
        offset = offset_of_rows(self, X, offset, "staged_loss")
        y = self._validate_target(y)
        check_consistent_length(X, y)
        weights = validate_weights(sample_weight, len(y))
        if not weights.any():
            raise ValueError("sample_weight is zero on all rows.")
        target = self._target(y)
        if offset is not None:
            target, weights = self._loss.without_offset(target, weights, offset)
        return np.array(
            [
                self._mean_loss(target, response, weights)
                for response in self._responses(X)
            ]
        )


class RecordedModel(LeaveOneOutAttributes, HasStagedLoss):
    """A model of a run of updates, with the estimate by single rows left out."""

    # Runs without single rows, up to an iterate: its number, and their coefficients.
    _replicas: Any = None

    def __sklearn_array_api_convert__(self, converter):
        """The estimator with its fitted arrays moved by scikit-learn."""
        return convert_to(self, converter)

    def _response(self, X):
        """Linear predictor of the iterate in use, (n_samples[, n_outputs])."""
        return self._predictor(new_rows(self, X), self.coef_, self.intercept_)

    def _responses(self, X):
        """Linear predictors of all iterates that are kept, one after the other."""
        X = new_rows(self, X)
        self._check_has_record()
        iterates = self.record_.iterates
        for coef, intercept in zip(iterates.coef, iterates.intercept):
            yield self._predictor(X, coef, intercept)

    def _predictor(self, X, coef, intercept):
        """X coef + intercept, rounded to the precision of both once it is summed up."""
        dtype = np.result_type(dtype_of(X), coef)
        return (self._product(X, coef.T) + intercept).astype(dtype, copy=False)

    @staticmethod
    def _product(X, coef):
        """X times (n_features,) or (n_features, k), in double precision, in NumPy."""
        coef = coef.astype(np.float64, copy=False)
        if not is_on_device(X) and X.dtype == coef.dtype:
            return safe_sparse_dot(X, coef, dense_output=True)
        product = design_of(X).dot(coef.reshape(len(coef), -1))
        return product.reshape(len(product), *coef.shape[1:])

    def _predict_from(self, response):
        """The result of ``predict`` for a response."""
        return response

    @block_by_block
    @of_rows
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the iterate in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            Targets, or labels of the classes.
        """
        return self._predict_from(self._response(X))

    @staged_block_by_block
    @of_rows
    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predict with every iterate, from the start to the last.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            One array for each of :meth:`recorded_iterations`.
        """
        yield from map(self._predict_from, self._responses(X))

    def _mean_loss(self, target, predictor, weights):
        """The mean loss over outputs and rows."""
        predictor = predictor.reshape(len(target), -1)
        if predictor.shape != target.shape:
            raise ValueError(
                f"y has {target.shape[1]} outputs, but {type(self).__name__} was "
                f"fitted with {predictor.shape[1]}."
            )
        losses = self._loss.reported(target, predictor).mean(axis=1)
        return np.average(losses, weights=weights)

    def _coefficients_without_rows(self):
        """Coefficients and intercepts without each left-out row, computed once."""
        if self._replicas is None or self._replicas[0] != self.iteration_:
            self._replicas = self.iteration_, list(self._run_without_rows())
        return self._replicas[1]

    def _record_with_rows(self, converter):
        """The record with rows of X that are kept as they were passed converted."""
        return self.record_


class RecordedRegressor(RegressorMixin, RecordedModel):
    """Predictions and prediction intervals with the recorded iterates."""

    _multi_output = False
    _positive_only = False
    # Whether the loss depends on the targets.
    _loss_reads_targets = False
    _run_without_rows = coefficients_without_rows

    def _loss_of(self, target, weights):
        """The loss for targets (n_rows, n_outputs), and fitted attributes."""
        return SquaredError(), {}

    def _encode_samples(self, X, y, sample_weight, offset=None):
        """Validated samples, and their targets as the loss takes them."""
        samples = validate_samples(
            self, X, y, sample_weight, multi_output=self._multi_output
        )
        target = self._target(samples.y)
        loss, names = self._loss_of(target, samples.weights)
        loss.check_target(target)
        if offset is not None:
            samples = samples.without_offset(loss, offset)
            target = self._target(samples.y)
            loss, names = self._loss_of(target, samples.weights)
        is_1d = samples.y.ndim == 1
        return samples, EncodedTarget(loss, target, samples.weights, is_1d, names)

    @staticmethod
    def _prediction(predictor, loss):
        """The prediction of a linear predictor."""
        return loss.mean(predictor)

    def _predict_from(self, response):
        return self._prediction(response, self._loss)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        tags.target_tags.positive_only = self._positive_only
        return tags

    @documented(OFFSETS)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
        **params: Any,
    ) -> Self:
        """Run the algorithm once and estimate the risk of every iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, in float32 or float64. Sparse matrices are not densified.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several only if the class supports them.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows. Rows with weight zero are ignored.
        {offset}
        **params : dict
            Passed to the splitter ``cv``, such as ``groups``; with metadata routing
            enabled, what it requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, a warm start is impossible, or the
            iterates diverge (the message gives the largest stable step). The estimator
            is left unchanged.
        TypeError
            If fit gets unknown keyword arguments.
        """
        if offset is not None:
            params["offset"] = offset
        return super().fit(X, y, sample_weight, **params)

    @documented(OFFSETS)
    def predict(self, X: Any, offset: ArrayLike | float | None = None) -> np.ndarray:
        """Predict with the iterate in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        offset = offset_of_rows(self, X, offset, "predict")
        return add_offset(self, super().predict(X), offset)

    @documented(OFFSETS)
    def staged_predict(
        self, X: Any, offset: ArrayLike | float | None = None
    ) -> Iterator[np.ndarray]:
        """Predict with every iterate, from the start to the last.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {new_offset}

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            One array for each of :meth:`recorded_iterations`.
        """
        offset = offset_of_rows(self, X, offset, "staged_predict")
        for prediction in super().staged_predict(X):
            yield add_offset(self, prediction, offset)

    @documented(OFFSETS)
    @of_rows
    def staged_loss(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Mean loss of every iterate on other rows, in the loss of ``train_path_``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows in the mean. None: equal weights.
        {new_offset}

        Returns
        -------
        ndarray of shape (n_iterates,)
            One for each of :meth:`recorded_iterations`.

        Raises
        ------
        ValueError
            If X, y and sample_weight differ in length, y has other outputs than in fit,
            or all weights are zero.
        """
        return self._staged_loss(X, y, sample_weight, offset)

    @documented(OFFSETS)
    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
    ) -> float:
        """R^2 of the predictions; of a loss with a log link, the D^2 by that loss.

        D^2 is one minus the mean loss over that of a prediction of the mean of y, as of
        :class:`sklearn.linear_model.PoissonRegressor`. With an offset both are of the
        targets and weights that stand for it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows.
        {new_offset}

        Returns
        -------
        float
            At most one; negative where the mean predicts better.
        """
        offset = offset_of_rows(self, X, offset, "score")
        params = {"sample_weight": sample_weight}
        if offset is not None:
            y, params = without_offset(self, y, params, offset)
        predictions = super().predict(X)  # which fits a model to added rows first
        return score_of(self._loss, y, predictions, **params)

    @documented(INTERVALS, OFFSETS)
    @takes_coverage
    @of_rows
    def predict_interval(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        method: str = "auto",
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Prediction intervals of the iterate in use, from a single run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        {coverage}
        method : {"auto", "jackknife+", "loo", "cv", "risk", "scaled"}, default="auto"
            The first of "jackknife+", "loo", "cv" and "risk" that the fit allows
            ("auto"), or "scaled", with widths that follow the row. The notes define
            them, :doc:`the guide </guide/intervals>` says what each needs of the fit.
        {new_offset}

        Returns
        -------
        {ndarray}
            All rows count equally in the quantiles. With a coverage below one half the
            ends of "jackknife+" may cross: the interval is then empty.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), there are too few rows for it, or the
            estimator was fitted without what the method needs.

        Notes
        -----
        * "jackknife+": quantiles, over the held-out rows, of the prediction without the
          row plus and minus its held-out residual [1]_. The runs without each row are
          repeated up to the iterate in use.
        * "loo", "cv", "risk": the prediction plus and minus a quantile of the absolute
          residuals of left-out rows, of rows held out in folds, or of the memory
          matrix. Residuals from folds are somewhat too large.
        * "scaled": residuals are divided by s(x), the size expected at their row, and
          the quantile is multiplied by s(x) at a new row [2]_ [3]_. A random forest of
          the sizes of the residuals gives s(x) if rows of X are kept, otherwise it is
          their mean among rows with nearby predictions; at a held-out row it comes from
          other folds.

        Residuals of a Poisson model are divided by the root of the held-out prediction,
        widths are proportional to the root of the prediction, and no end is below zero.

        References
        ----------
        .. [1] Barber, Candes, Ramdas and Tibshirani (2021), "Predictive
               inference with the jackknife+", equation 1.5.
        .. [2] Lei, G'Sell, Rinaldo, Tibshirani and Wasserman (2018),
               "Distribution-free predictive inference for regression", section 5.2.
        .. [3] Papadopoulos, Gammerman and Vovk (2008), "Normalized nonconformity
               measures for regression conformal prediction".

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = IterativeRidge(alpha=0.0, keep_data=True).fit(X, y)
        >>> best = model.at_iteration(model.loo_path_.argmin())
        >>> best.predict_interval(X[:3], coverage=0.8).shape
        (3, 2)
        >>> best.predict_interval(X[:3], coverage=[0.5, 0.8]).shape
        (3, 2, 2)
        """
        return intervals_of(self, X, coverage, method, offset)

    @documented(LEVELS, OFFSETS)
    @of_rows
    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike = (0.05, 0.5, 0.95),
        method: str = "auto",
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Quantiles of the target by the iterate in use, from held-out residuals.

        They are one-sided forms of :meth:`predict_interval`: the k-th smallest residual
        itself, with k = ceil(level (n + 1)), in the place of plus and minus that of a
        size. Residuals need not be symmetric.

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
        ValueError
            If a level is not in (0, 1), there are too few rows for it, or the estimator
            was fitted without what the method needs.

        See Also
        --------
        SelfStoppingQuantileRegressor : Models of the quantiles themselves.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = IterativeRidge(alpha=0.0, loo=True).fit(X, y)
        >>> model.predict_quantiles(X[:3], levels=[0.1, 0.9]).shape
        (3, 2)
        """
        return quantiles_of(self, X, levels, method, offset)
