"""Kernel machines that learn a scale for every column, in rounds.

In a round a kernel machine is fitted to scaled columns. In the next one the scale of a
column is the root of the mean squared derivative of the fitted function along it: the
diagonal of the average gradient outer product. Distances then go by the columns that
matter, and the kernel needs fewer rows.

Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature learning in
neural networks and backpropagation-free machine learning models", Science 383.
"""

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from .._compat import Interval, StrOptions, _fit_context, class_weights, on_host
from .._estimator.data.checks import (
    check_sizes,
    validate_rows,
    validate_rows_and_target,
    validate_weights,
)
from .._estimator.data.labels import (
    check_class_weights,
    decision_of,
    label_of,
    probabilities_of,
)
from .._estimator.data.standardized import Standardized
from .._estimator.devices import of_rows
from .._estimator.docstrings import documented
from .._estimator.parameters import ONE_OR_MORE, are_same, set_parameters, snapshot
from .._estimator.prediction.calibration import scale_of
from .._typing import RandomState
from .._warnings import warn
from ..risk.held_out_rows import drawn_units
from .kernels import (
    RADIAL_KERNELS,
    KernelOfDistances,
    check_squares,
    gamma_of,
    squared_distances,
)
from .ridge import (
    FEWEST_CENTERS,
    FIRST_STRENGTH,
    STRENGTHS,
    KernelRidge,
    enough_centers,
    to_array,
)

# Kernels that the first rounds compare, and multiples of gamma="scale": distances of
# five times those between rows, and for smooth functions of one and of three times
# these. Nine candidates on twenty tables were no better.
CANDIDATES = {
    "auto": (("laplacian", 1 / 50), ("rbf", 1 / 2), ("rbf", 1 / 18)),
    "laplacian": (("laplacian", 1 / 50), ("laplacian", 1 / 2)),
    "matern": (("matern", 1 / 18), ("matern", 1 / 2)),
    "rbf": (("rbf", 1 / 2), ("rbf", 1 / 18)),
    "cauchy": (("cauchy", 1 / 2), ("cauchy", 1 / 18)),
}
# Rounds that compare. Later ones have the kernel of the last of these, and with many
# rows its strength or a weaker one: few need a stronger one.
N_COMPARED = 2
# The square of a scale is at least this share of the largest: a column without a trend
# so far may have one in the next round.
LEAST_SHARE = 1e-3
# Rows on which kernels are compared, and rows at which derivatives are taken.
ROWS_TO_COMPARE, ROWS_OF_DERIVATIVES = 300, 2000
# So many rows for each centre determine coefficients to half a percent of the noise.
MOST_ROWS_PER_CENTER = 200
# With so many rows for each centre that there may be, as many are worth their time.
ROWS_PER_CENTER = 10
# Every row is a centre up to this number, of more rows as many or, if that is enough,
# fewer: time is in proportion to the rows.
MOST_CENTERS = 1000


@dataclass(frozen=True, eq=False)
class Round:
    """A fit to scaled columns, and how its function varies along them."""

    ridge: KernelRidge
    # From the columns of X to the scaled ones.
    columns: Standardized
    scales: np.ndarray  # of the standardised columns, (n_features,)
    derivatives: np.ndarray  # mean squared ones, by standardised columns
    # The kernel, and its multiple of gamma="scale".
    candidate: tuple
    # Pairs of a candidate and its strength, of the last comparison.
    strengths: tuple
    n_centers: int
    # The factor that turns decisions of classes into log odds.
    probability_scale: float | None = None


class RecursiveFeatureMachine(BaseEstimator):
    """Base class: rounds of a kernel machine, and predictions by any of them."""

    # Fits are in NumPy; predictions are on the device of X.
    _follows_X = True

    _parameter_constraints = {
        "kernel": [StrOptions(set(CANDIDATES))],
        "n_rounds": [ONE_OR_MORE],
        "n_centers": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
            None,
        ],
        "warm_start": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        kernel: Literal["auto", "laplacian", "matern", "rbf", "cauchy"] = "auto",
        *,
        n_rounds: int = 3,
        n_centers: Literal["auto"] | int | None = "auto",
        warm_start: bool = False,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit a kernel machine in every round, with scales learned in the previous one.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets, several only for regression; or labels of classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid. The estimator is left unchanged.

        Warns
        -----
        UserWarning
            If ``warm_start=True`` cannot continue because data or parameters changed.
        """
        of_classes = is_classifier(self)
        X, y, fitted = validate_rows_and_target(
            self, on_host(X), y, multi_output=not of_classes
        )
        weights = np.ones(len(y))
        if sample_weight is not None:
            weights = validate_weights(sample_weight, len(y))
            if not weights.any():
                raise ValueError(
                    "sample_weight is zero on all rows: a fit needs at least two rows "
                    "with positive weight."
                )
            X, y, weights = (part[weights > 0] for part in (X, y, weights))
        check_sizes(X, y)
        check_squares(X)
        fitted["_is_1d"] = y.ndim == 1
        if not of_classes:
            target, label = y.reshape(len(y), -1).astype(np.float64), None
        else:
            check_classification_targets(y)
            fitted["classes_"], label = np.unique(y, return_inverse=True)
            if len(fitted["classes_"]) < 2:
                raise ValueError("y must have at least two classes, got one class.")
            of_class = class_weights(self.class_weight, fitted["classes_"], y, weights)
            check_class_weights(of_class, fitted["classes_"])
            weights = weights * of_class[label]
            target = np.eye(len(fitted["classes_"]))[label]
            if target.shape[1] == 2:  # -1 and 1
                target = 2 * target[:, 1:] - 1
        if (weights == 0).any():  # rows of classes of weight zero
            X, target, label = (part[weights > 0] for part in (X, target, label))
            weights = weights[weights > 0]
        columns = Standardized.of(X, weights, has_intercept=True)
        # What rounds depend on: the parameters, and moments of the data.
        settings = self.get_params(deep=False)
        del settings["n_rounds"], settings["warm_start"]
        shares = (weights / weights.sum())[:, None]
        fitted["_fitted_to"] = snapshot(settings) | {
            "moments": [columns.mean, columns.scale, (shares * target**2).sum(axis=0)],
            "product": columns.apply(X).T @ (shares * target),
            "classes": fitted.get("classes_"),
        }
        rounds, seed = [], check_random_state(self.random_state).randint(2**31 - 1)
        if self.warm_start and hasattr(self, "_rounds"):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(
                    f"warm_start=True continues with {self.n_features_in_} columns, "
                    f"but X has {X.shape[1]}."
                )
            if are_same(self._fitted_to, fitted["_fitted_to"]):
                rounds, seed = self._rounds[: self.n_rounds], self._seed
            else:
                warn(
                    "warm_start=True with other data or parameters than before: the "
                    "fit starts again from the first round.",
                    UserWarning,
                )
        for _ in range(len(rounds), self.n_rounds):
            data = columns, X, target, weights, label
            rounds = [*rounds, self._next_round(rounds, *data, seed)]
        best = int(np.argmin([one.ridge.loo_error for one in rounds])) + 1
        fitted |= {"_rounds": rounds, "_seed": seed, "iteration_": best}
        vars(self).update(fitted, n_iter_=len(rounds))
        return self

    def _next_round(self, rounds, columns, X, target, weights, label, seed):
        # The Round after others, on rows and coded targets.
        n_rows, n_columns = X.shape
        # A constant function has no derivatives to learn from.
        scales = rounds[-1].scales if rounds else np.ones(n_columns)
        if rounds and (largest := rounds[-1].derivatives.max()) > 0:
            scales = np.sqrt(rounds[-1].derivatives / largest + LEAST_SHARE)
        columns = replace(columns, scale=columns.scale / scales)
        X = columns.apply(X)
        # The mean squared distance from the mean, also of sparse rows, without a copy.
        if (weights != weights[0]).any():
            shares = weights / weights.sum()
            squared = X.multiply(X) if sparse.issparse(X) else X * X
            squares, mean = shares @ squared, shares @ X
        elif sparse.issparse(X):
            squares, mean = np.ravel(X.multiply(X).mean(axis=0)), X.mean(axis=0)
        else:
            squares, mean = np.einsum("ij,ij->j", X, X) / n_rows, X.mean(axis=0)
        spread = float(np.sum(squares - np.ravel(mean) ** 2))

        # Fewer rows than columns in an orthonormal basis of theirs: distances between
        # them are the same, and take less.
        X_rotated, is_wide = X, n_rows < n_columns and n_rows <= MOST_CENTERS
        if is_wide and not sparse.issparse(X):
            squared_lengths, vectors = np.linalg.eigh(X @ X.T)
            X_rotated = vectors * np.sqrt(np.maximum(squared_lengths, 0))

        # Scales need fewer rows and centres than predictions.
        is_learning = len(rounds) < N_COMPARED

        def fit(rows, candidate, n_centers, squared, *strengths):
            # With the distances between rows, if they are kept: rows are then numbers.
            kernel, X_fit = kernel_of(*candidate), X_rotated[rows]
            if squared is not None:
                kernel = KernelOfDistances(squared, kernel)
                X_fit = np.arange(len(squared))[:, None]
            order = np.random.RandomState(seed).permutation(X_fit.shape[0])
            data = X_fit, target[rows], weights[rows], np.sort(order[:n_centers])
            ridge = KernelRidge.of(kernel, *data, *strengths, of_all=not is_learning)
            of_all = np.arange(n_rows)[rows]
            numbers = {"index": of_all[ridge.index], "left_out": of_all[ridge.left_out]}
            return replace(ridge, **numbers)

        def kernel_of(name, factor):
            return RADIAL_KERNELS[name](gamma_of(name, spread, factor))

        def distances_between(rows):
            return squared_distances(X_rotated[rows], X_rotated[rows])

        rows, _ = drawn_units(n_rows, None, ROWS_TO_COMPARE)
        strengths, squared = rounds[-1].strengths if rounds else (), None
        if is_learning:
            squared = distances_between(rows)
            former, fits = dict(strengths), {}
            for pair in CANDIDATES[self.kernel]:
                first = former.get(pair, FIRST_STRENGTH)
                fits[pair] = fit(rows, pair, None, squared, first)
            strengths = tuple((pair, one.strength) for pair, one in fits.items())
            candidate = min(fits, key=lambda pair: fits[pair].loo_error)
            ridge = fits[candidate]
            # As if the penalty were the same for a sum over rows.
            share = min(1, ROWS_TO_COMPARE / min(n_rows, MOST_CENTERS))
            tried = share * ridge.strength, None
        else:
            candidate, strength = rounds[-1].candidate, rounds[-1].ridge.strength
            are_many = n_rows > ROWS_TO_COMPARE
            tried = strength, STRENGTHS[STRENGTHS <= strength] if are_many else None
        most_centers = self._n_centers_on(n_rows)
        n_centers = most_centers
        if self.n_centers == "auto" and n_centers < n_rows:
            if is_learning:
                n_centers = FEWEST_CENTERS
            elif len(rounds) > N_COMPARED:
                n_centers = rounds[-1].n_centers
            elif n_rows < ROWS_PER_CENTER * n_centers:
                order = np.random.RandomState(seed).permutation(n_rows)
                data = X_rotated, target, weights, order
                n_centers, _ = enough_centers(kernel_of(*candidate), *data, n_centers)
        is_compared = is_learning and n_rows <= ROWS_TO_COMPARE
        if not is_compared or n_centers < n_rows:
            rows, _ = drawn_units(n_rows, None, MOST_ROWS_PER_CENTER * most_centers)
            squared = distances_between(rows) if n_centers == n_rows else None
            ridge = fit(rows, candidate, n_centers, squared, *tried)
        rows, _ = drawn_units(n_rows, None, ROWS_OF_DERIVATIVES)
        centers = to_array(X[ridge.index])
        X_fit = X_rotated if squared is None else np.arange(n_rows)[:, None]
        derivatives = ridge.mean_squared_derivatives(
            X[rows], centers, weights[rows], X_fit[rows]
        )
        ridge = replace(ridge, kernel=kernel_of(*candidate), centers=centers)
        probability_scale = None
        if label is not None:
            decision, rows = decision_of(ridge.loo_prediction), ridge.left_out
            probability_scale = scale_of(decision, label[rows], weights[rows])
        # Derivatives by standardised columns, not by scaled ones. Those of a constant
        # are rounding errors.
        derivatives *= scales**2
        rounding = np.sqrt(np.finfo(np.float64).eps) * np.abs(target).max()
        derivatives[derivatives <= rounding**2] = 0.0
        learned = scales, derivatives, candidate, strengths
        return Round(ridge, columns, *learned, n_centers, probability_scale)

    def _n_centers_on(self, n_rows):
        """The number of centres, or the largest that it may be."""
        most = MOST_CENTERS if self.n_centers == "auto" else self.n_centers
        return min(most or n_rows, n_rows)

    # ----------------------------------------------------------------- the rounds

    @property
    def scales_(self) -> np.ndarray:
        """Scales of the standardised columns in every round, (n_iter_, n_features)."""
        check_is_fitted(self)
        return np.stack([one.scales for one in self._rounds])

    @property
    def loo_errors_(self) -> np.ndarray:
        """Leave-one-out error of every round, (n_iter_,), with scales of all rows."""
        check_is_fitted(self)
        return np.array([one.ridge.loo_error for one in self._rounds])

    @property
    def feature_importances_(self) -> np.ndarray:
        """Shares of the mean squared derivatives along standardised columns."""
        check_is_fitted(self)
        derivatives = self._rounds[self.iteration_ - 1].derivatives
        total = derivatives.sum()
        return derivatives / (total if total > 0 else 1)

    # --------------------------------------------------------------- predictions

    def _answer_by_rounds(self, X, response, first=0, last=None):
        # Yield what a method gives, by the machines of some rounds.
        check_is_fitted(self)
        X = validate_rows(self, on_host(X), reset=False)
        answer = self._answers()[response]
        for one in self._rounds[first:last]:
            yield answer(one, one.ridge.predict(one.columns.apply(X)))

    @of_rows
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the machine of the round in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        check_is_fitted(self)
        return next(self._answer_by_rounds(X, "predict", self.iteration_ - 1))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RecursiveFeatureMachineRegressor(RegressorMixin, RecursiveFeatureMachine):
    """Kernel regression that learns a scale for every column, in rounds.

    In the first round kernel ridge regression is fitted to standardised columns z. With
    f its function, the next round multiplies column k by [1]_, [2]_

        s_k = (m_k / max_l m_l + 0.001)^(1/2),    m_k = mean of (df / dz_k)^2

    over the training rows, so that distances depend on the columns that matter. The
    first two rounds choose the kernel and its width by leave-one-out, and every round
    the strength of the penalty; leave-one-out is exact for given scales. ``fit`` uses
    the round with the smallest ``loo_errors_``, which are too low, since the scales
    have seen all rows. Inside :class:`TrajectoryEarlyStoppingCV` rounds are stages, and
    every fold learns its own scales. Predictions are clipped to the range of the
    targets, extended by half its width on each side. Read more in the :doc:`user guide
    </guide/kernels>`.

    Parameters
    ----------
    kernel : {"auto", "laplacian", "matern", "rbf", "cauchy"}, default="auto"
        Kernel, as in :class:`KernelEigenProRegressor`. "auto" is the best of a wide
        "laplacian" and two widths of "rbf"; a name compares two widths.
    n_rounds : int, default=3
        Number of rounds.
    n_centers : int, "auto" or None, default="auto"
        Number of centres, random rows at which the function has coefficients
        (Nystroem); None is all rows, or as many as stand for all where the kernel is
        smooth. "auto": all up to 1000 rows, then 1000, or 500 if half of these do as
        well on fewer than 10,000 rows. The first two rounds, which learn scales, then
        have 500 and at most 10,000 rows.
    warm_start : bool, default=False
        Whether ``fit`` with the same data continues from the last rounds, up to
        ``n_rounds``. Other data or parameters start from the first round, with a
        warning.
    random_state : int, RandomState instance or None, default=None
        Controls the draw of the centres.

    Attributes
    ----------
    iteration_ : int
        The round in use, from 1.
    n_iter_ : int
        Number of rounds.
    loo_errors_ : ndarray of shape (n_iter_,)
        Leave-one-out error of every round, with scales of all rows: the mean squared
        error summed over targets, on at most 2000 rows.
    scales_ : ndarray of shape (n_iter_, n_features)
        Scales of the standardised columns in every round.
    feature_importances_ : ndarray of shape (n_features,)
        m_k of the round in use, divided by their sum.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

    See Also
    --------
    RecursiveFeatureMachineClassifier : The classifier.
    KernelEigenProRegressor : The same functions with equal scales, and every iterate.
    TrajectoryEarlyStoppingCV : Chooses the round by folds.

    References
    ----------
    .. [1] Radhakrishnan, Beaglehole, Pandit and Belkin (2024), "Mechanism for feature
           learning in neural networks and backpropagation-free machine learning
           models", Science 383, arXiv:2212.13881.
    .. [2] Beaglehole, Holzmueller, Radhakrishnan and Belkin (2025), "xRFM: accurate,
           scalable, and interpretable feature learning models for tabular data",
           arXiv:2508.10053.

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import RecursiveFeatureMachineRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 10))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.standard_normal(200)
    >>> model = RecursiveFeatureMachineRegressor(random_state=0).fit(X, y)
    >>> sorted(model.feature_importances_.argsort()[-2:].tolist())
    [0, 1]
    >>> bool(model.loo_errors_[1] < 0.8 * model.loo_errors_[0])
    True
    """

    def _answers(self):
        """What each method makes of a round and its linear predictors."""

        def predict(one, predictor):
            return predictor[:, 0] if self._is_1d else predictor

        return {"predict": predict}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@documented(RecursiveFeatureMachineRegressor)
class RecursiveFeatureMachineClassifier(ClassifierMixin, RecursiveFeatureMachine):
    """Kernel classification that learns a scale for every column, in rounds.

    The rounds are those of :class:`RecursiveFeatureMachineRegressor`, applied to coded
    labels: -1 and 1 for two classes, otherwise 0 and 1 for each class. A factor per
    round turns decisions into log odds: the maximum likelihood estimate on left-out
    rows, for given scales. Read more in the :doc:`user guide </guide/kernels>`.

    Parameters
    ----------
    {kernel, n_rounds, n_centers}
    class_weight : dict, "balanced" or None, default=None
        Class weights, multiplied by the weights of the rows.
    {warm_start, random_state}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    {iteration_, n_iter_, loo_errors_, scales_, feature_importances_, n_features_in_}
    {feature_names_in_}

    See Also
    --------
    RecursiveFeatureMachineRegressor : The regressor.
    KernelEigenProClassifier : The same functions with equal scales, and every iterate.

    References
    ----------
    {Radhakrishnan, Beaglehole}

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skacv import RecursiveFeatureMachineClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = RecursiveFeatureMachineClassifier(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    _parameter_constraints = {
        **RecursiveFeatureMachine._parameter_constraints,
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        kernel: Literal["auto", "laplacian", "matern", "rbf", "cauchy"] = "auto",
        *,
        n_rounds: int = 3,
        n_centers: Literal["auto"] | int | None = "auto",
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        warm_start: bool = False,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    def _answers(self):
        """What each method makes of a round and its linear predictors."""

        def decide(one, predictor):
            return decision_of(predictor)

        def predict(one, predictor):
            return label_of(decision_of(predictor), self.classes_)

        def predict_proba(one, predictor):
            return probabilities_of(one.probability_scale * decision_of(predictor))

        return {
            "decision_function": decide,
            "predict": predict,
            "predict_proba": predict_proba,
        }

    @of_rows
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities by the machine of the round in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        return next(self._answer_by_rounds(X, "predict_proba", self.iteration_ - 1))

    @of_rows
    def decision_function(self, X: Any) -> np.ndarray:
        """Decisions by the machine of the round in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
        """
        check_is_fitted(self)
        return next(self._answer_by_rounds(X, "decision_function", self.iteration_ - 1))
