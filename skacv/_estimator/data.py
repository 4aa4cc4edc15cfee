"""From what a user passes to what the algorithm runs on, and the way back."""

from copy import copy
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils.validation import validate_data

from .._compat import _check_sample_weight
from ..optim.arrays import design_of
from ..optim.problem import Problem

NAMES = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True)
class TrainingData:
    """What validated data become for the algorithm, and the way back.

    Attributes
    ----------
    problem : Problem
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
        As it was passed.
    total_weight : float
    rows : ndarray of int
        Which samples the problem's rows are.
    n_samples : int
    is_flat : bool
        Whether a sample has one number as target, and the model one row of
        coefficients without an axis for outputs.
    names : dict
        ``n_features_in_``, ``feature_names_in_``, and what else the target says.
    """

    problem: Problem
    y: np.ndarray
    total_weight: float
    rows: np.ndarray
    n_samples: int
    is_flat: bool
    names: dict

    def places_of(self, samples):
        """Which rows of the problem some samples are."""
        place = np.full(self.n_samples, -1)
        place[self.rows] = np.arange(len(self.rows))
        return place[samples]

    def _shaped(self, coef, intercept):
        """(T + 1, n_features, n_outputs) and (T + 1, n_outputs) as scikit-learn does.

        Returns
        -------
        coef : (T + 1, n_features) or (T + 1, n_outputs, n_features)
        intercept : (T + 1,) or (T + 1, n_outputs)
        """
        if self.is_flat:
            return coef[:, :, 0], intercept[:, 0]
        return np.moveaxis(coef, 2, 1), intercept

    @staticmethod
    def _unshaped(coef_path):
        """The way back, of the coefficients."""
        if coef_path.ndim == 2:
            return coef_path[:, :, None]
        return np.moveaxis(coef_path, 1, 2)


@dataclass(frozen=True)
class CenteredData(TrainingData):
    """For the squared error: an intercept takes up the means of X and y.

    Attributes
    ----------
    center : ndarray of shape (n_features, 1)
        Means of X, or zeros.
    offset : ndarray of shape (1, n_targets)
        Means of y, or zeros.
    is_centered : bool
        Whether they are the means.
    """

    center: np.ndarray
    offset: np.ndarray
    is_centered: bool

    @property
    def has_flat_predictions(self):
        """Whether a prediction is one number, without an axis for outputs."""
        return self.is_flat

    def coefficients(self, coef):
        """Iterates (T + 1, n_columns, n_outputs) in scikit-learn's shapes."""
        return self._shaped(coef, self.offset - (self.center * coef).sum(axis=1))

    def iterates(self, coef_path, intercept_path):
        """Iterates from scikit-learn's shapes."""
        return self._unshaped(coef_path)

    def without_rows(self, coef, shift, k):
        """Coefficients and intercepts of target k from those of replicas."""
        return coef, self.offset[0, k] - coef @ self.center[:, 0] + shift


@dataclass(frozen=True)
class AugmentedData(TrainingData):
    """For other losses: an intercept is the coefficient of a column of ones.

    Attributes
    ----------
    has_ones : bool
        Whether there is such a column, the last one.
    """

    has_ones: bool
    offset = 0.0
    is_centered = False

    @property
    def has_flat_predictions(self):
        """Whether a prediction is one number, without an axis for outputs."""
        return self.problem.target.shape[1] == 1

    def coefficients(self, coef):
        """Iterates (T + 1, n_columns, n_outputs) in scikit-learn's shapes."""
        if self.has_ones:
            return self._shaped(coef[:, :-1], coef[:, -1])
        return self._shaped(coef, np.zeros((len(coef), coef.shape[2]), coef.dtype))

    def iterates(self, coef_path, intercept_path):
        """Iterates from scikit-learn's shapes."""
        coef = self._unshaped(coef_path)
        if not self.has_ones:
            return coef
        intercept = intercept_path.reshape(len(coef), 1, -1)
        return np.concatenate([coef, intercept], axis=1)

    def without_rows(self, coef, shift, k):
        """Coefficients and intercepts from those of replicas."""
        if self.has_ones:
            return coef[:, :-1], coef[:, -1]
        return coef, np.zeros(len(coef))


@dataclass(frozen=True)
class Samples:
    """Validated samples of positive weight.

    Attributes
    ----------
    X : {ndarray, CSR matrix} of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or (n_rows, n_targets)
    weights : ndarray of shape (n_rows,)
    rows : ndarray of int, shape (n_rows,)
        Which of the samples passed they are.
    passed : {ndarray, CSR matrix} of shape (n_samples, n_features)
        All samples that were passed.
    names : dict
    """

    X: np.ndarray | sparse.csr_matrix
    y: np.ndarray
    weights: np.ndarray
    rows: np.ndarray
    passed: np.ndarray | sparse.csr_matrix
    names: dict

    @property
    def n_samples(self):
        return self.passed.shape[0]


def validated(estimator, X, y, sample_weight, **checks):
    """Validate, and leave out rows of zero weight.

    Nothing is marked on ``estimator``, whose tags say whether X may be sparse.

    Returns
    -------
    Samples
    """
    shell = copy(estimator)
    X, y = validate_data(
        shell,
        X,
        y,
        accept_sparse="csr" if get_tags(estimator).input_tags.sparse else False,
        dtype=[np.float64, np.float32],
        ensure_min_samples=2,
        **checks,
    )
    weights = np.ones(len(y))
    if sample_weight is not None:
        weights = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    rows, passed = _rows_of_positive_weight(weights), X
    if len(rows) < len(weights):
        X, y, weights = X[rows], y[rows], weights[rows]
    names = {key: getattr(shell, key) for key in NAMES if hasattr(shell, key)}
    return Samples(X, y, weights, rows, passed, names)


def centered(samples, fit_intercept):
    """The problem of the squared error, centred lazily.

    Returns
    -------
    CenteredData
    """
    X, weights = samples.X, samples.weights
    target = samples.y.reshape(len(weights), -1).astype(X.dtype, copy=False)
    row_weights = (weights / weights.sum())[:, None]
    if fit_intercept:
        design = design_of(X).centered(row_weights)
        center = design.center
        offset = (row_weights.T @ target).astype(X.dtype)
        target = target - offset
    else:
        design = design_of(X)
        center = np.zeros((X.shape[1], 1), X.dtype)
        offset = np.zeros((1, target.shape[1]), X.dtype)
    return CenteredData(
        problem=Problem(design, target, row_weights.astype(X.dtype)),
        y=samples.y,
        total_weight=weights.sum(),
        rows=samples.rows,
        n_samples=samples.n_samples,
        is_flat=samples.y.ndim == 1,
        names=samples.names,
        center=center,
        offset=offset,
        is_centered=fit_intercept,
    )


def augmented(samples, loss, target, weights, fit_intercept, *, is_flat, **names):
    """The problem of another loss, with a column of ones for the intercept.

    Parameters
    ----------
    samples : Samples
    loss : loss
    target : ndarray of shape (n_rows, n_outputs)
        As the loss takes it.
    weights : ndarray of shape (n_rows,)
    fit_intercept : bool
    is_flat : bool
    **names
        Fitted attributes that the target says, such as ``classes_``.

    Returns
    -------
    AugmentedData
    """
    X = samples.X
    if fit_intercept:
        ones = np.ones((X.shape[0], 1), X.dtype)
        if sparse.issparse(X):
            X = sparse.hstack([X, sparse.csr_matrix(ones)], format="csr")
        else:
            X = np.concatenate([X, ones], axis=1)
    row_weights = (weights / weights.sum())[:, None].astype(X.dtype)
    return AugmentedData(
        problem=Problem(design_of(X), target.astype(X.dtype), row_weights, loss),
        y=samples.y,
        total_weight=weights.sum(),
        rows=samples.rows,
        n_samples=samples.n_samples,
        is_flat=is_flat,
        names={**samples.names, **names},
        has_ones=fit_intercept,
    )


def _rows_of_positive_weight(weights):
    rows = np.flatnonzero(weights > 0)
    if len(rows) < 2:
        raise ValueError(
            "sample_weight must be positive on at least two rows, it is on "
            f"{len(rows)}."
        )
    return rows
