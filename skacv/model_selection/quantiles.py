"""A regressor of several quantiles, or expectiles, that needs no settings."""

from copy import copy
from itertools import combinations
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from .._compat import StrOptions, _fit_context, available_if, check_in_memory
from .._estimator.data.checks import (
    target_array,
    validate_target,
    validate_weights,
)
from .._estimator.data.row_summary import RowSummary
from .._estimator.delegation import class_of, last_step
from .._estimator.docstrings import OFFSETS, documented
from .._estimator.estimates.fitted_state import MOST_OF_CHOICE, MOST_RESIDUALS
from .._estimator.parameters import set_parameters, takes_coverage
from .._estimator.prediction.inference import as_frame
from .._estimator.prediction.offsets import given
from .._typing import RandomState
from ..optim.losses import Expectile, Pinball
from ..optim.namespaces import to_numpy
from ..risk.held_out_rows import HeldOutResiduals, units_of
from ..risk.intervals import (
    checked_coverage,
    checked_levels,
    intervals_between,
    rank_of,
    ranked,
)
from ..staged.estimator import Staged
from ..staged.losses import OfSeveralLevels
from ..tables import TableEncoder
from .advice import names_keywords
from .candidates import clone_with
from .data import check_has_targets
from .early_stopping import TrajectoryEarlyStoppingCV
from .members import ComposedOfMembers, check_members
from .results import COLUMNS, INTEGER_COLUMNS
from .self_stopping import SelfStoppingRegressor

LOSSES = {"quantile": Pinball, "expectile": Expectile}
# What to use instead of an estimator that has no such loss.
INSTEAD = {
    "quantile": "boosted trees, or TrajectoryQuantileRegressor",
    "expectile": "boosted trees of XGBoost or CatBoost, or TrajectoryRegressor",
}
# Two levels are symmetric about 1/2 up to this rounding.
ROUNDING = 1e-9


def _has_loss(loss):
    """Whether an object is of this loss, as a condition of a method."""

    def has(owner):
        if owner.loss != loss:
            raise AttributeError(f"it is fitted with loss={owner.loss!r}")
        return True

    return has


@documented(TrajectoryEarlyStoppingCV)
class SelfStoppingQuantileRegressor(
    RegressorMixin, MetaEstimatorMixin, ComposedOfMembers
):
    """Quantiles of several levels, or expectiles, by models that stop themselves.

    At each level the models are run once, side by side with folds, and each is stopped
    at the iterate with the smallest pinball loss of that level on held-out rows
    [1]_; several models are averaged, with the weights of the smallest held-out loss.
    Levels share the folds. Predictions are sorted along the levels, so that they do not
    cross: the pinball loss of all levels together is never larger for it [2]_. Read
    more in the :doc:`user guide </guide/quantiles>`.

    Parameters
    ----------
    estimator : estimator or list of (str, estimator), default=None
        A model with a loss of a level, or several: boosted trees of scikit-learn,
        LightGBM, XGBoost or CatBoost, linear models such as
        :class:`TrajectoryQuantileRegressor`, or a Pipeline that ends in one. Its loss
        and level are set. None: a path of ridge penalties and boosted trees, for
        expectiles the former. One run is for all levels if the model predicts several,
        as XGBoost with a list as ``quantile_alpha`` and CatBoost's "MultiQuantile" do.
    levels : array-like of shape (n_levels,), default=(0.05, 0.5, 0.95)
        Between 0 and 1, each once.
    loss : {"quantile", "expectile"}, default="quantile"
        Expectiles are means in which targets above weigh ``level`` and those below
        1 - ``level`` [3]_.
    conformalize : bool, default=False
        Whether quantiles are shifted, each level by itself, so that the share
        ``level`` of the held-out targets lies at or below them [4]_: level q by the
        k-th smallest of their distances from the held-out quantile, with k = ceil(q (n
        + 1)). :meth:`predict_interval` is corrected always.
    {cv}
    rule : {"blend", "min", "one_se"}, default="blend"
        What is kept of several models, as in :class:`TrajectoryEarlyStoppingCV`.
    {patience, min_delta, encoder, verbose, n_jobs, random_state}

    Attributes
    ----------
    levels_ : ndarray of shape (n_levels,)
        The levels, in rising order.
    models_ : list of TrajectoryEarlyStoppingCV
        The stopped model of every level, or a single one of all.
    shifts_ : ndarray of shape (n_levels,)
        What ``conformalize`` adds to every level, otherwise zero.
    held_out_prediction_ : ndarray of shape (n_samples, n_levels)
        Predictions for the rows of X by fits without them, sorted along the levels and
        not shifted; NaN for rows that no fold holds out. A pickle keeps up to 32,768
        numbers.
    held_out_loss_ : ndarray of shape (n_levels,)
        Their mean loss.
    held_out_coverage_ : ndarray of shape (n_levels,)
        Share of the held-out targets at or below them. For quantiles it is near the
        level.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    TrajectoryEarlyStoppingCV : Stops a model of a single quantile.
    Staged.predict_interval : Intervals from a model of the mean.

    References
    ----------
    .. [1] Koenker and Bassett (1978), "Regression quantiles", Econometrica 46(1).
    .. [2] Chernozhukov, Fernandez-Val and Galichon (2010), "Quantile and probability
           curves without crossing", Econometrica 78(3).
    .. [3] Newey and Powell (1987), "Asymmetric least squares estimation and testing",
           Econometrica 55(4).
    .. [4] Romano, Patterson and Candes (2019), "Conformalized quantile regression",
           NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from skacv import SelfStoppingQuantileRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = SelfStoppingQuantileRegressor(random_state=0).fit(X, y)
    >>> model.predict_quantiles(X[:2]).shape
    (2, 3)
    >>> model.predict_interval(X[:2], coverage=0.9).shape
    (2, 2)

    Boosted trees alone, a number of trees for each level:

    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> trees = HistGradientBoostingRegressor(random_state=0)
    >>> of_trees = SelfStoppingQuantileRegressor(trees, levels=[0.1, 0.9]).fit(X, y)
    >>> len({model.best_iter_ for model in of_trees.models_})
    2
    """

    # What stopping estimators of single levels have, and members ask for.
    task, criterion = "regression", "cv"
    class_weight = param_grid = time_limit = None
    _parameter_constraints = {
        **{
            name: TrajectoryEarlyStoppingCV._parameter_constraints[name]
            for name in (
                *("estimator", "cv", "patience", "min_delta", "encoder", "verbose"),
                *("n_jobs", "random_state"),
            )
        },
        "levels": ["array-like"],
        "loss": [StrOptions(set(LOSSES))],
        "conformalize": ["boolean"],
        "rule": [StrOptions({"blend", "min", "one_se"})],
    }

    @names_keywords
    def __init__(
        self,
        estimator: Any = None,
        *,
        levels: ArrayLike = (0.05, 0.5, 0.95),
        loss: Literal["quantile", "expectile"] = "quantile",
        conformalize: bool = False,
        cv: Any = None,
        rule: Literal["blend", "min", "one_se"] = "blend",
        patience: Literal["auto"] | int | None = "auto",
        min_delta: Literal["auto"] | float = "auto",
        encoder: Literal["auto"] | TableEncoder | None = "auto",
        verbose: int = 0,
        n_jobs: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    def _default_loss(self):
        return LOSSES[self.loss](0.5)

    @_fit_context(prefer_skip_nested_validation=False)
    @documented(OFFSETS)
    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | float | None = None,
        offset: ArrayLike | float | None = None,
        **params: Any,
    ) -> Self:
        """Run and stop the models of every level, and compare them with y.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,) or float, default=None
            Weights of the rows, in fits, losses and shares. ``conformalize`` and
            intervals count rows of positive weight equally.
        {offset}
        **params : dict
            Passed to the models and to the splitter, such as ``groups``: rows of a
            group are held out together, and every group counts as one.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, an estimator has no loss of a level, y
            has several columns, ``cv`` draws other rows at every level, there are too
            few rows for ``conformalize``, or offsets of a booster's own are passed.
        """
        levels = np.unique(checked_levels(self.levels))
        if len(levels) < np.size(self.levels):
            raise ValueError(f"levels={self.levels!r} has a level several times.")
        if self.conformalize and self.loss != "quantile":
            raise ValueError(
                "conformalize=True is for loss='quantile': no share of the targets "
                "lies at or below an expectile."
            )
        check_has_targets(self, X, y)
        check_in_memory(X, y)
        if isinstance(X, RowSummary):
            raise TypeError(
                "Quantiles need the rows, but a RowSummary has moments of most of "
                "them: pass X and y."
            )
        y = target_array(y)
        if np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ValueError(
                f"y has {np.shape(y)[1]} columns, but {type(self).__name__} needs a "
                "single one: fit one object per column."
            )
        cv = self.cv
        if cv is not None and not (isinstance(cv, Integral) or hasattr(cv, "split")):
            cv = list(cv)  # an iterator can be read once
        losses = [LOSSES[self.loss](level) for level in levels.tolist()]
        # A model of several levels is one run for all.
        runs = [OfSeveralLevels(tuple(losses))] if self._is_of_several() else losses
        stopping = [self._stopping_at(loss, cv) for loss in runs]
        models = []
        for loss, model in zip(runs, stopping):
            if self.verbose:
                of_run = getattr(loss, "levels", None) or [loss.level]
                print(f"{self.loss} of level {', '.join(f'{q:g}' for q in of_run)}")
            model.fit(X, y, sample_weight, **given(offset), **params)
            for member in model.members_.values():
                _check_has_no_offset(last_step(member)[0], type(self).__name__)
            models.append(model)
        held_out = np.column_stack([model.held_out_prediction_ for model in models])
        y = validate_target(y, of_classes=False).reshape(-1)
        weights = validate_weights(sample_weight, len(y))
        is_counted = ~np.isnan(held_out) & (weights > 0)[:, None]
        rows = np.flatnonzero(is_counted[:, 0])
        if (is_counted != is_counted[:, :1]).any():
            raise ValueError(
                f"cv={self.cv!r} holds out other rows at every level, so levels cannot "
                "be compared: set its random_state."
            )
        held_out.sort(axis=1)
        residuals = y[rows, None] - held_out[rows]
        groups = params.get("groups")
        units = None if groups is None else units_of(rows, np.asarray(groups))
        kept = HeldOutResiduals(residuals, None, units)
        shifts = np.zeros(len(levels))
        if self.conformalize:
            for k, level in enumerate(levels.tolist()):
                rank = rank_of(level, kept.n_units, "level")
                shifts[k] = ranked(residuals[:, k], rank, units)
        of_rows = [
            loss.value(y[rows], held_out[rows, k]) for k, loss in enumerate(losses)
        ]
        self.levels_, self.models_, self.shifts_ = levels, models, shifts
        self._residuals = kept.at_most(MOST_RESIDUALS)
        self._held_out_prediction = held_out
        self.held_out_loss_ = np.average(of_rows, axis=1, weights=weights[rows])
        self.held_out_coverage_ = np.average(residuals <= 0, 0, weights[rows])
        return self

    def _is_of_several(self):
        """Whether the estimator predicts several levels at once; ValueError in a list.

        Its own levels do not matter: it gets those of this object.
        """
        if self.estimator is None:
            return False
        is_of_several = {
            name: isinstance(member, Staged) and bool(member._levels())
            for name, member in self._members()
        }
        if isinstance(self.estimator, list) and any(is_of_several.values()):
            names = [name for name, several in is_of_several.items() if several]
            raise ValueError(
                f"The members {', '.join(map(repr, names))} predict several levels at "
                "once, which a list of members cannot: pass such an estimator alone, "
                "or let it predict one level."
            )
        return any(is_of_several.values())

    def _stopping_at(self, loss, cv):
        """The stopping estimator of one level."""
        names = "rule", "patience", "min_delta", "encoder", "verbose", "n_jobs"
        settings = {name: getattr(self, name) for name in (*names, "random_state")}
        settings |= {"cv": cv, "criterion": "cv"}
        if self.estimator is None:
            return SelfStoppingRegressor(loss=loss, **settings)
        members, pairs = self._members(), []
        check_members(members, self)
        for name, member in members:
            params = member._params_of_loss(loss)
            if params is None:
                raise ValueError(
                    f"{class_of(member)} has no {loss.name}: use {INSTEAD[self.loss]}."
                )
            pairs.append((name, clone_with(member, params)))
        if not isinstance(self.estimator, list):
            pairs = pairs[0][1]
        return TrajectoryEarlyStoppingCV(pairs, task="regression", **settings)

    def _predict_levels(self, X, levels, offset):
        """Predictions of some levels, or all, (n_samples, n_levels)."""
        check_is_fitted(self)
        columns = slice(None) if levels is None else self._columns_of(levels)
        shifted = self._sorted_predictions(X, offset) + self.shifts_
        return np.sort(shifted, axis=1)[:, columns]

    def _sorted_predictions(self, X, offset):
        """Predictions of all levels, which are not shifted, (n_samples, n_levels)."""
        predictions = [
            to_numpy(model.predict(X, **given(offset))) for model in self.models_
        ]
        return np.sort(np.column_stack(predictions), axis=1)

    def _columns_of(self, levels):
        """The columns of some levels."""
        levels = checked_levels(levels)
        distances = np.abs(self.levels_ - levels[:, None])
        if distances.min(axis=1).max() > ROUNDING:
            raise ValueError(
                f"levels={levels.tolist()} are not all among those that were fitted: "
                f"{self.levels_.tolist()}."
            )
        return distances.argmin(axis=1)

    @available_if(_has_loss("quantile"))
    @documented(OFFSETS)
    def predict_quantiles(
        self,
        X: Any,
        levels: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Quantiles of the target, given rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        levels : array-like of shape (n_levels,), default=None
            Some of the levels that were fitted. None: all, in rising order.
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples, n_levels)
            In units of y. A quantile is never above that of a higher level.

        Raises
        ------
        ValueError
            If a level was not fitted.
        """
        return self._predict_levels(X, levels, offset)

    @available_if(_has_loss("expectile"))
    @documented(OFFSETS)
    def predict_expectiles(
        self,
        X: Any,
        levels: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Expectiles of the target, given rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        levels : array-like of shape (n_levels,), default=None
            Some of the levels that were fitted. None: all, in rising order.
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples, n_levels)
            In units of y. An expectile is never above that of a higher level.

        Raises
        ------
        ValueError
            If a level was not fitted.
        """
        return self._predict_levels(X, levels, offset)

    @documented(OFFSETS)
    def predict(self, X: Any, offset: ArrayLike | float | None = None) -> np.ndarray:
        """Predict the level that is nearest to 0.5, of two such levels the lower.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        middle = np.argmin(np.round(np.abs(self.levels_ - 0.5), 9))
        return self._predict_levels(X, None, offset)[:, middle]

    @available_if(_has_loss("quantile"))
    @documented(OFFSETS)
    @takes_coverage
    def predict_interval(
        self,
        X: Any,
        coverage: ArrayLike = 0.9,
        offset: ArrayLike | float | None = None,
    ) -> np.ndarray:
        """Prediction intervals between two quantiles, corrected on held-out rows.

        With l_i and u_i the held-out quantiles of row i, the interval of a new row is
        [l(x) - q, u(x) + q], where q is the k-th smallest of max(l_i - y_i, y_i - u_i)
        and k = ceil(coverage (n + 1)): conformalized quantile regression with folds.
        The two levels are symmetric about 0.5; of several such pairs it is that whose
        distance is nearest to the coverage.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        coverage : float or array-like of shape (n_coverages,), default=0.9
            Nominal probability that an interval contains the target of an unseen row.
            Coverages other than the distances of two levels are valid too, but the
            widths follow the row less well.
        {new_offset}

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Lower and upper ends, in units of y; with several coverages
            (n_samples, 2, n_coverages). A lower end is never above the upper one.

        Raises
        ------
        ValueError
            If coverage is not in (0, 1), if there are too few rows for it, or if no two
            levels are symmetric about 0.5.
        """
        check_is_fitted(self)
        coverage, levels = checked_coverage(coverage), self.levels_
        pairs = [
            (low, high)
            for low, high in combinations(range(len(levels)), 2)
            if abs(levels[low] + levels[high] - 1) <= ROUNDING
        ]
        if not pairs:
            raise ValueError(
                "Intervals need two levels that are symmetric about 0.5, such as 0.05 "
                f"and 0.95, and levels are {levels.tolist()}."
            )
        quantiles = self._sorted_predictions(X, offset)
        residuals, ends = self._residuals.residuals, []
        for share in coverage.ravel():
            low, high = min(
                pairs, key=lambda pair: abs(levels[pair[1]] - levels[pair[0]] - share)
            )
            outside = np.maximum(-residuals[:, low], residuals[:, high])
            between = quantiles[:, low], quantiles[:, high]
            units = self._residuals.units
            ends.append(intervals_between(*between, outside, share, units))
        return np.stack(ends, axis=-1).reshape(len(quantiles), 2, *coverage.shape)

    @documented(OFFSETS)
    def score(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        offset: ArrayLike | float | None = None,
    ) -> float:
        """D^2 of the predictions: how much smaller their loss is than a constant's.

        One minus the ratio of two sums over the levels: the mean losses of the
        predictions, and those of the best constant of each level for these rows. For
        one quantile it is :func:`sklearn.metrics.d2_pinball_score`.

        Parameters
        ----------
        X : {array-like, sparse matrix, DataFrame} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        {new_offset}

        Returns
        -------
        float
        """
        predictions = self._predict_levels(X, None, offset)
        y = validate_target(y, of_classes=False).reshape(-1)
        check_consistent_length(predictions, y)
        weights = validate_weights(sample_weight, len(y))
        losses = np.zeros(2)
        for level, prediction in zip(self.levels_, predictions.T):
            loss = LOSSES[self.loss](level)
            for k, each in enumerate((prediction, best_constant(loss, y, weights))):
                losses[k] += np.average(loss.value(y, each), weights=weights)
        return float(1 - losses[0] / losses[1])

    def leaderboard(self) -> Any:
        """The models of all levels, level by level, best first.

        The columns are "level", "coverage" (the share of held-out targets at or below
        what is kept at the level, ``held_out_coverage_``; both are NaN if one run is
        for all levels) and those of
        :meth:`TrajectoryEarlyStoppingCV.leaderboard`. Scores are mean losses of the
        level, such as pinball losses.

        Returns
        -------
        DataFrame, or dict of ndarray
            A dict if pandas is not installed.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        """
        check_is_fitted(self)
        tables = []
        for model in self.models_:
            table = model.leaderboard()
            tables.append({name: np.array(table[name]) for name in COLUMNS})
        sizes = [len(table["member"]) for table in tables]
        levels, shares = self.levels_, self.held_out_coverage_
        if len(tables) < len(levels):
            levels = shares = np.array([np.nan])
        columns = {
            "level": np.repeat(levels, sizes),
            "coverage": np.repeat(shares, sizes),
        }
        for name in COLUMNS:
            columns[name] = np.concatenate([table[name] for table in tables])
        table = as_frame(columns)
        return table.astype(INTEGER_COLUMNS) if hasattr(table, "astype") else table

    def drop_record(self, intervals: bool = True) -> Self:
        """A copy that keeps only what predictions of the chosen iterates need.

        Parameters
        ----------
        intervals : bool, default=True
            Whether to keep what :meth:`predict_interval` needs.

        Returns
        -------
        estimator
            The fitted copy, without ``held_out_prediction_``. This object keeps its
            record.

        Raises
        ------
        NotFittedError
            If this object is not fitted.
        """
        check_is_fitted(self)
        small = copy(self)
        small.models_ = [model.drop_record(intervals=False) for model in self.models_]
        small._held_out_prediction = None
        small._residuals = self._residuals if intervals else None
        return small

    @property
    def held_out_prediction_(self) -> np.ndarray:
        """Predictions for the training rows, by fits that have not seen them."""
        check_is_fitted(self)
        if self._held_out_prediction is None:
            raise AttributeError(
                "Held-out predictions are not available after drop_record(), or after "
                "loading a pickle of a fit to many rows."
            )
        return self._held_out_prediction

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in fit."""
        check_is_fitted(self)
        return self.models_[0].n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features, if X has string column names."""
        check_is_fitted(self)
        return self.models_[0].feature_names_in_

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        held_out = state.get("_held_out_prediction")
        if held_out is not None and held_out.size > MOST_OF_CHOICE:
            state = {**state, "_held_out_prediction": None}
        return state

    def __sklearn_is_fitted__(self) -> bool:
        """Whether fit has been called."""
        return "models_" in vars(self)


def best_constant(loss, y, weights):
    """The constant of the least mean loss, by its derivative's sign; a target or mean.

    Shapes: y, weights (n_rows,).
    """
    order = np.argsort(y)
    below = np.cumsum(weights[order])
    if isinstance(loss, Pinball):
        k = np.searchsorted(below, loss.level * below[-1] * (1 - ROUNDING))
        return y[order[k]]
    constant = np.average(y, weights=weights)
    while True:  # asymmetric least squares, which ends after a few weighted means
        of_side = np.where(y > constant, loss.level, 1 - loss.level)
        former, constant = constant, np.average(y, weights=weights * of_side)
        if abs(constant - former) <= ROUNDING * np.ptp(y):
            return constant


def _check_has_no_offset(fitted, name):
    """Raise if an offset of a booster's own was passed to fit, which new rows lack."""
    if isinstance(fitted, Staged) and fitted._offset is not None:
        raise ValueError(
            f"{name} cannot add {fitted._offset}, which fit was passed, for new rows: "
            "pass offset= to fit and to predictions instead."
        )
