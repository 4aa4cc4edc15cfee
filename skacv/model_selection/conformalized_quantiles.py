"""Intervals between two quantile models, corrected on held-out rows."""

from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.validation import check_is_fitted

from .._compat import HasMethods, _fit_context
from .._estimator.estimates.left_out import held_out_rows
from .._estimator.parameters import set_parameters, takes_coverage
from .._typing import RandomState
from ..risk.held_out_rows import HeldOutResiduals
from ..risk.intervals import checked_coverage, intervals_between
from ..staged.estimator import Staged
from .early_stopping import TrajectoryEarlyStoppingCV


class ConformalizedQuantiles(MetaEstimatorMixin, BaseEstimator):
    """Prediction intervals between a lower and an upper quantile model.

    Conformalized quantile regression [1]_ with folds. Each model is run once and
    stopped at the iterate with the smallest held-out pinball loss, on the same folds.
    With l_i and u_i their held-out predictions of row i, the interval of a new row is
    [l(x) - q, u(x) + q], where q is the k-th smallest of

    .. math:: E_i = \\max(l_i - y_i, y_i - u_i)

    and k = ceil(coverage (n + 1)). If the two models cross, the smaller prediction is
    the lower one [2]_. The widths depend on X as far as those of the models do.

    Parameters
    ----------
    lower, upper : estimator
        Staged quantile regressors or Pipelines that end in one, such as
        ``HistGradientBoostingRegressor(loss="quantile", quantile=0.05)`` and the same
        with ``quantile=0.95`` for a coverage of 0.9.
    cv : int, splitter or iterable, default=None
        The folds. None: five random ones, which keep ``groups`` whole if these are
        passed to ``fit``.
    patience : {"auto"}, int or None, default="auto"
        As in :class:`TrajectoryEarlyStoppingCV`.
    min_delta : {"auto"} or float, default="auto"
        As in :class:`TrajectoryEarlyStoppingCV`.
    random_state : int, RandomState instance or None, default=None
        Seeds the models, as in :class:`TrajectoryEarlyStoppingCV`.

    Attributes
    ----------
    lower_, upper_ : TrajectoryEarlyStoppingCV
        The two models, each at its chosen stage.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    Staged.predict_interval : Intervals from one model.

    References
    ----------
    .. [1] Romano, Patterson and Candes (2019), "Conformalized quantile regression".
    .. [2] Chernozhukov, Fernandez-Val and Galichon (2010), "Quantile and probability
           curves without crossing".

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from skacv.model_selection import ConformalizedQuantiles
    >>> X, y = load_diabetes(return_X_y=True)
    >>> lower, upper = (
    ...     HistGradientBoostingRegressor(loss="quantile", quantile=quantile)
    ...     for quantile in (0.1, 0.9)
    ... )
    >>> model = ConformalizedQuantiles(lower, upper).fit(X[:300], y[:300])
    >>> model.predict_interval(X[300:], coverage=0.8).shape
    (142, 2)
    """

    _parameter_constraints = {
        "lower": [HasMethods("fit")],
        "upper": [HasMethods("fit")],
        **{
            name: TrajectoryEarlyStoppingCV._parameter_constraints[name]
            for name in ("cv", "patience", "min_delta", "random_state")
        },
    }

    def __init__(
        self,
        lower: Any,
        upper: Any,
        *,
        cv: Any = None,
        patience: Literal["auto"] | int | None = "auto",
        min_delta: Literal["auto"] | float = "auto",
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Run and stop both models, and compare them with the held-out targets.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows in the fits. In the correction all rows count equally.
        **params : dict
            Passed to both models, such as ``groups``: rows of a group are held out
            together, and every group counts as one.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, y has several columns, ``cv`` draws
            different folds for the two models, or offsets are passed.
        """
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"y has {np.shape(y)[1]} columns, but ConformalizedQuantiles needs a "
                "single one: fit one object per column."
            )
        models, cv = [], self.cv
        if cv is not None and not (isinstance(cv, Integral) or hasattr(cv, "split")):
            cv = list(cv)  # an iterator can be read once
        for estimator in (self.lower, self.upper):
            model = TrajectoryEarlyStoppingCV(
                estimator,
                criterion="cv",
                cv=cv,
                patience=self.patience,
                min_delta=self.min_delta,
                task="regression",
                random_state=self.random_state,
            ).fit(X, y, sample_weight, **params)
            _check_has_no_offset(model.estimator_)
            models.append(model)
        rows = [_held_out_of(model.estimator_) for model in models]
        targets = [part.predictions + part.residuals for part in rows]
        if not _are_same(targets, [part.predictions for part in rows]):
            raise ValueError(
                f"cv={self.cv!r} draws different folds for the two models, so they "
                "cannot be compared: set its random_state."
            )
        self.lower_, self.upper_ = models
        # How far held-out targets are outside of the interval between both quantiles.
        quantiles = np.sort([part.predictions for part in rows], axis=0)
        self._outside = np.maximum(quantiles[0] - targets[0], targets[0] - quantiles[1])
        self._units = rows[0].units
        return self

    @takes_coverage
    def predict_interval(self, X: Any, coverage: ArrayLike = 0.9) -> np.ndarray:
        """Prediction intervals between the two quantiles, corrected on held-out rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Nominal probability that an interval contains the target of an unseen row.
            Coverages other than that of the two quantiles are valid too, but the widths
            follow the row less well.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends, in units of y; with several coverages
            (n_samples, 2, n_coverages). A lower end is never above the upper one.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), or if there are too few rows for it.
        """
        check_is_fitted(self)
        coverage = checked_coverage(coverage)
        quantiles = (model.predict(X) for model in (self.lower_, self.upper_))
        return intervals_between(*quantiles, self._outside, coverage, self._units)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in fit."""
        check_is_fitted(self)
        return self.lower_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if X has string column names."""
        check_is_fitted(self)
        return self.lower_.feature_names_in_


def _check_has_no_offset(fitted):
    """Raise if an offset was passed to fit, which new rows do not have."""
    if isinstance(fitted, Staged) and fitted._offset is not None:
        raise ValueError(
            f"ConformalizedQuantiles cannot add {fitted._offset}, which fit was "
            f"passed, for new rows: fit y - {fitted._offset}, and add the offsets of "
            "new rows to the ends of their intervals."
        )


def _are_same(targets, predictions):
    """Whether two sums of a prediction and its residual are equal up to rounding."""
    if targets[0].shape != targets[1].shape:
        return False
    sizes = np.abs([*targets, *predictions]).max(axis=0)
    unit = 16 * np.finfo(targets[0].dtype).eps
    return bool((np.abs(targets[0] - targets[1]) <= unit * sizes).all())


def _held_out_of(fitted):
    """The held-out rows of a fitted model, in units of y."""
    kept = fitted._kept_residuals("cv")
    rows = held_out_rows(fitted, fitted.record_["cv"]) if kept is None else kept
    residuals = rows.residuals * fitted._loss.spread(rows.predictions)
    return HeldOutResiduals(residuals, rows.predictions, rows.units)
