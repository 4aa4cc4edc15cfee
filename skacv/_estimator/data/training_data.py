"""From the data of a user to the problem of the algorithm, and back."""

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..._compat import on_host
from ...optim.arrays import design_of
from ...optim.constant import WithConstant
from ...optim.namespaces import is_on_device, namespace_of, rows_in
from ...optim.problem import Problem
from ...records.offsets import RowOffsets
from .checks import (
    check_sizes,
    validate_offset,
    validate_rows,
    validate_rows_and_target,
    validate_weights,
)
from .standardized import AS_PASSED, AsPassed, Standardized


@dataclass(frozen=True)
class TrainingData:
    """Validated data as the algorithm uses them, and back to the user's scale."""

    problem: Problem
    y: np.ndarray  # as it was passed, of the rows of the problem
    total_weight: float
    rows: np.ndarray  # the samples that the rows of the problem are
    n_samples: int
    # A sample has one number as target, and the model no axis for outputs.
    is_1d: bool
    names: dict  # fitted attributes from columns and target
    offset: np.ndarray  # means of the targets, or zeros, (1, n_outputs)
    is_centered: bool  # rows, and targets if the loss is quadratic, by their means
    has_constant: bool  # an intercept is the last coefficient

    basis = None  # (n_features, n_rows), if the run is on coordinates of the rows in it

    @property
    def has_flat_predictions(self):
        """Whether a prediction is one number, without an axis for outputs."""
        return self.y.ndim == 1 and self.problem.target.shape[1] == 1

    def predictions(self, estimator):
        """The function from linear predictors of held-out rows to predictions."""
        # It keeps no rows.
        return partial(
            _predictions_of,
            offset=self.offset,
            dtype=self.dtype,
            is_1d=self.has_flat_predictions,
            prediction=estimator._prediction,
            loss=self.problem.loss,
        )

    def held_out_paths(self, record, folds):
        """Linear predictors of every fold for its held-out samples."""
        paths = record.paths(self.problem.design, [rows for _, rows in folds])
        n_single = self.problem.n_single
        if n_single == len(self.problem.target):
            return paths
        return [
            path.select_rows(rows < n_single) for path, (_, rows) in zip(paths, folds)
        ]

    def held_out(self, folds):
        """The samples that every fold holds out, and their targets, fold after fold."""
        samples, targets = [], []
        for _, rows in folds:
            rows = rows[rows < self.problem.n_single]
            samples.append(self.rows[rows])
            targets.append(self.y[rows])
        return samples, np.concatenate(targets)

    @property
    def dtype(self):
        """The precision of predictions."""
        return self.problem.target.dtype

    def phases(self, recorded):
        """Recorded phases as those of a run of this problem."""
        return recorded

    def rows_of_samples(self, samples):
        """The rows of the problem that samples are; -1 for samples that are none."""
        return positions(self.rows, self.n_samples)[samples]

    @cached_property
    def sample_weights(self):
        """The weight of every sample that was passed; zero where it was left out."""
        weights = np.zeros(self.n_samples)
        weights[self.rows] = self.observed.row_weights[:, 0]
        return weights


def positions(rows, n_samples):
    """The position of every sample among rows, -1 where it has none."""
    index = np.full(n_samples, -1)
    index[rows] = np.arange(len(rows))
    return index


def _predictions_of(predictors, offset, dtype, is_1d, prediction, loss):
    """Predictions from linear predictors, which they overwrite.

    Shapes: predictors (n_iterates, n_rows, n_outputs), offset (1, n_outputs).
    """
    if offset.any():
        predictors += offset
    predictors = predictors.astype(dtype, copy=False)
    return prediction(predictors[:, :, 0] if is_1d else predictors, loss)


@dataclass(frozen=True)
class ColumnData(TrainingData):
    """For linear models: a coefficient for every column of X."""

    observed: Problem  # of the rows and columns that were passed
    center: np.ndarray  # means of the columns of the problem, or zeros, (n_features, 1)
    columns: AsPassed | Standardized  # from the columns of X to those of the problem

    @property
    def dtype(self):
        """The precision of fitted coefficients and of predictions: that of X."""
        return self.observed.design.storage_dtype

    def coefficients(self, coef):
        """Iterates (t, n_columns, n_outputs) in scikit-learn's shapes, and intercepts.

        Shapes: returned (t, n_features) or (t, n_outputs, n_features), and (t,) or
        (t, n_outputs).
        """
        if self.has_constant:
            coef, intercept = coef[:, :-1], coef[:, -1]
        else:
            intercept = self.offset - self.center[:, 0] @ coef
        if self.columns is not AS_PASSED:
            coef, intercept = self.columns.to_passed(coef, intercept)
        dtype = self.dtype
        coef, intercept = coef.astype(dtype, copy=False), intercept.astype(dtype)
        if self.is_1d:
            return coef[:, :, 0], intercept[:, 0]
        return np.moveaxis(coef, 2, 1), intercept

    def iterates(self, coef_path, intercept_path):
        """Iterates from scikit-learn's shapes."""
        if coef_path.ndim == 2:
            coef = coef_path[:, :, None]
        else:
            coef = np.moveaxis(coef_path, 1, 2)
        intercept = intercept_path.reshape(len(coef), -1)
        coef, intercept = self.columns.from_passed(coef, intercept)
        coef = coef.astype(np.float64, copy=False)
        if not self.has_constant:
            return coef
        return np.concatenate([coef, intercept[:, None]], axis=1, dtype=np.float64)

    def without_rows(self, coef, shift, k):
        """Coefficients and intercepts of target k from those of replicas."""
        if self.has_constant:
            coef, intercept = coef[:, :-1], coef[:, -1]
        else:
            intercept = self.offset[0, k] - coef @ self.center[:, 0] + shift
        coef, intercept = self.columns.to_passed(coef[:, :, None], intercept[:, None])
        return coef[..., 0], intercept[..., 0]


@dataclass(frozen=True)
class Samples:
    """Validated samples of positive weight."""

    X: object
    y: np.ndarray
    weights: np.ndarray
    rows: np.ndarray  # their numbers among the samples that were passed
    passed: object  # all samples, as X
    names: dict
    columns: AsPassed | Standardized = AS_PASSED  # from those of ``passed`` to X
    # Those of all samples that were passed; y and weights stand for them. None: none.
    offset: RowOffsets | None = None

    def standardized(self, weights, has_intercept, standardize=True):
        """The same samples with their columns standardised, by weights of the rows."""
        check_sizes(self.X, self.y)
        columns = Standardized.of(self.X, weights, has_intercept, standardize)
        return replace(self, X=columns.apply(self.X), columns=columns)

    def without_offset(self, loss, offset):
        """The same samples, with targets and weights that stand for an offset.

        ``offset`` has one number for each sample that was passed, or is one for all.
        """
        n_samples, rows = self.n_samples, self.rows
        counted = np.zeros(n_samples, bool)
        counted[rows] = True
        values = validate_offset(offset, n_samples, counted)
        y = np.zeros((n_samples, *self.y.shape[1:]), self.y.dtype)
        y[rows] = self.y
        with np.errstate(all="ignore"):
            changed = loss.without_offset(self.y, self.weights, values[rows])
        check_changed_by_offset(*changed)
        return replace(
            self, y=changed[0], weights=changed[1], offset=RowOffsets(values, y)
        )

    @property
    def n_samples(self):
        return self.passed.shape[0]


def check_changed_by_offset(target, weights):
    """Raise if targets and weights that stand for an offset are out of range."""
    if not (np.isfinite(target).all() and np.isfinite(weights).all() and weights.all()):
        raise ValueError(
            "exp(offset) overflows, or is zero in double precision: with a log link "
            "the offset is the logarithm of the exposure."
        )


def validate_samples(estimator, X, y, sample_weight, **checks):
    """Validated samples of positive weight, with y and weights in NumPy."""
    if not estimator._follows_X:
        X = on_host(X)
    keeps_rows = estimator._keeps_rows(X)
    X, y, names = validate_rows_and_target(
        estimator, X, y, ensure_min_samples=2, copy=keeps_rows, **checks
    )
    if sample_weight is None:
        weights = np.ones(len(y))
    else:
        weights = validate_weights(sample_weight, len(y))
    if keeps_rows:  # copies, as of X, since a caller may reuse the arrays
        y, weights = y.copy(), weights.copy()
    rows, passed = np.flatnonzero(weights > 0), X
    if len(rows) < 2:
        raise ValueError(
            "sample_weight must be positive on at least two rows, but is zero on all "
            f"but {len(rows)}."
        )
    if len(rows) < len(weights):
        X, y, weights = rows_in(X, rows), y[rows], weights[rows]
    return Samples(X, y, weights, rows, passed, names)


@dataclass(frozen=True)
class EncodedTarget:
    """Targets (n_rows, n_outputs) as a loss takes them, and weights of the rows."""

    loss: object
    target: np.ndarray
    weights: np.ndarray
    is_1d: bool  # coefficients have no axis for outputs
    names: dict  # fitted attributes from the targets, such as ``classes_``


def column_data(samples, encoded, fit_intercept, standardize=False):
    """The problem of a linear model: centred lazily, or with a column of ones."""
    loss = encoded.loss
    if standardize:
        centers = fit_intercept or loss.couples_rows
        samples = samples.standardized(encoded.weights, centers, standardize)
    X = samples.X
    check_sizes(X, encoded.target)
    target = encoded.target.astype(np.float64, copy=False)
    total_weight = encoded.weights.sum()
    row_weights = (encoded.weights / total_weight)[:, None]
    # Coupled rows are compared with each other: only differences of X count.
    is_centered = bool((fit_intercept and loss.is_quadratic) or loss.couples_rows)
    has_constant = bool(fit_intercept and not loss.is_quadratic)
    center = np.zeros((X.shape[1], 1))
    offset = np.zeros((1, target.shape[1]))
    design = design_of(X)
    if has_constant:
        design = WithConstant(design)
    if is_centered:
        design = design.centered(row_weights)
        center = design.center
    if is_centered and loss.is_quadratic:
        offset = row_weights.T @ target
        target = target - offset
    start = None
    if has_constant:
        start = np.zeros((design.shape[1], target.shape[1]))
        start[-1] = loss.null_predictor(target, row_weights)
    problem = Problem(design, target, row_weights, loss, start)
    return ColumnData(
        problem=problem,
        observed=problem,
        y=samples.y,
        total_weight=total_weight,
        rows=samples.rows,
        n_samples=samples.passed.shape[0],
        is_1d=encoded.is_1d,
        names={**samples.names, **encoded.names},
        center=center,
        columns=samples.columns,
        offset=offset,
        is_centered=is_centered,
        has_constant=has_constant,
    )


# Private attributes that a fit may leave: a run that may go on; runs without single
# rows, and the rows of ``partial_fit``.
RUNS = "_run", "_held_run"
LEFT_BY_FITS = *RUNS, "_replicas", "_summary"


def replace_fitted(estimator, attributes):
    """Replace all that former fits have left by new fitted attributes."""
    for name in list(vars(estimator)):
        if name.endswith("_") or name in LEFT_BY_FITS:
            delattr(estimator, name)
    vars(estimator).update(attributes)


def check_usable(fitted):
    """Raise if an estimator is not fitted; fit it to rows of ``partial_fit`` if due."""
    # First, since the check reads tags.
    if not vars(fitted).keys() & {"record_", "n_iter_"}:
        check_is_fitted(fitted)
        fitted._fit_to_added_rows()


def new_rows(fitted, X):
    """Validated rows for a fitted estimator to predict, on their device if allowed."""
    check_usable(fitted)
    if not fitted._follows_X:
        X = on_host(X)
    return validate_rows(fitted, X, reset=False)


def are_equal(X, Z):
    """Whether two arrays, or matrices, have the same entries."""
    if X is Z:
        return True
    if X.shape != Z.shape or any(
        kind(X) != kind(Z) for kind in (is_on_device, sparse.issparse)
    ):
        return False
    if is_on_device(X):
        same_type = type(X) is type(Z)
        return same_type and bool(namespace_of(X).all(X == Z))
    if sparse.issparse(X):
        return (X != Z).nnz == 0
    return np.array_equal(X, Z)
