"""The smooth part of an objective: a design, a target, weights and a loss."""

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from scipy.linalg import eigh, lstsq

from .array_path import path_values
from .design import ColumnDesign, Design, InMemoryDesign
from .losses import Loss, SquaredError

# Newton's method does not move along directions whose curvature is a smaller share of
# the largest, such as the one that adds a constant to the scores of all classes.
SINGULAR = 1e-10
# Iterates may lead predictors beyond the start, the mean and the target of a row. Along
# runs on wide, uneven and uncentred columns, with rare and with large counts, second
# derivatives were at most 1.5 times those bounded at these three.
ROOM = 2.0


@dataclass(frozen=True)
class Problem:
    """The smooth part of an objective, f(b) = sum_i w_i l(y_i, x_i' b), of all targets.

    ``start`` has the coefficients at which a run begins: zeros if None.

    Shapes: design (n_rows, n_columns); target (n_rows, n_targets); row_weights (n_rows,
    1); start (n_columns, n_targets)."""

    design: Design
    target: np.ndarray
    row_weights: np.ndarray
    loss: Loss = field(default_factory=SquaredError)
    start: np.ndarray | None = None

    @property
    def largest_weight(self):
        return float(self.row_weights.max())

    @property
    def n_samples(self):
        """Number of rows of the data, which the rows of the problem may summarise."""
        return len(self.target)

    @property
    def n_single(self):
        """Number of rows that are single rows of the data; these come first."""
        return len(self.target)

    def value(self, predictor, loss=None):
        """f, or that of another loss, at linear predictors, summed over the targets."""
        loss = self.loss if loss is None else loss
        losses = loss.weighted_values(self.target, predictor, self.row_weights)
        return float(losses.sum(dtype=np.float64))

    def objective(self, penalty, coef, predictor):
        """f + g, summed over the targets."""
        value = self.value(predictor)
        if not self.design.is_dual:
            return value + penalty.value(coef)
        norm = self.design.squared_norm(coef, predictor).sum()
        return value + 0.5 * penalty.curvature * float(norm)

    def objectives(self, trajectory, values=None):
        """f + g at every iterate, (T + 1,); ``values`` of f are computed if None."""
        values = self.path_values(trajectory.predictor) if values is None else values
        objectives, first = np.array(values), 0
        for phase in trajectory.phases:
            # A phase begins at the last iterate of the phase before, which has that
            # phase's penalty. Iterate 0 has the first penalty.
            iterates_of_phase = slice(first + (first > 0), first + phase.n_updates + 1)
            if self.design.is_dual:  # a ridge penalty on the norm of the function
                iterates = zip(
                    trajectory.coef[iterates_of_phase],
                    trajectory.predictor[iterates_of_phase],
                )
                norms = [self.design.squared_norm(*pair).sum() for pair in iterates]
                objectives[iterates_of_phase] += (
                    0.5 * phase.penalty.curvature * np.array(norms)
                )
            else:
                objectives[iterates_of_phase] += phase.penalty.values(
                    trajectory.coef[iterates_of_phase]
                )
            first += phase.n_updates
        return objectives

    def reported_losses(self, values):
        n_outputs = 1 if self.loss.is_coupled else self.target.shape[1]
        return self.loss.reported_factor * values / n_outputs

    def mean_loss(self, predictor):
        """Reported loss, a weighted mean over rows and a mean over targets."""
        return float(self.reported_losses(self.value(predictor, self.loss.judge)))

    def path_values(self, predictor, iterates=slice(None), loss=None):
        """Values of f, or with another loss, of iterates, (n_iterates,)."""
        loss, weights = self.loss if loss is None else loss, self.row_weights[:, 0]
        return path_values(loss, self.target, weights, predictor, iterates)

    def gradient(self, predictor):
        """Gradient of f, (n_columns, n_targets), at linear predictors."""
        slopes = self.loss.slopes(self.target, predictor, self.row_weights)
        return self.design.t_dot(slopes)

    def least_squares_predictor(self, index):
        """Predictors (n_rows, n_targets) that minimise f over the columns ``index``."""
        # They are those of the start unless the loss is quadratic.
        if not (self.loss.is_quadratic and len(index)):
            return self.start_predictor
        assert isinstance(self.design, InMemoryDesign)  # only these select columns
        design = self.design.columns(index, self.design.dtype)
        matrix = hessian(design, self.row_weights[:, :, None])[:, 0, :, 0]
        moments = design.t_dot(self.row_weights * self.target)
        coef, *_ = lstsq(matrix, moments, cond=SINGULAR)
        return design.dot(coef)

    def hessian(self, predictor):
        """Second derivatives of f, (n_columns, n_targets, n_columns, n_targets)."""
        curvature = self.loss.curvature_matrix(self.target, predictor)
        return hessian(self.design, curvature * self.row_weights[:, :, None])

    def batch(self, rows):
        """The problem on some rows; its gradient is unbiased for all rows."""
        return replace(
            self,
            design=self.design.rows(rows),
            target=self.target[rows],
            row_weights=self.row_weights[rows] * (len(self.target) / len(rows)),
        )

    def sqrt_weighted(self):
        """Design and target, each row multiplied by sqrt(n_rows w_i)."""
        scale = np.sqrt(len(self.target) * self.row_weights)
        if np.ptp(scale) == 0:
            return self.design, self.target
        return self.design.scaled_rows(scale), self.target * scale

    @cached_property
    def eigenbasis(self):
        """Eigenvalues of the smaller Gram matrix over n_rows, and its eigenvectors."""
        design, _ = self.sqrt_weighted()
        gram = design.smaller_gram().astype(np.float64, copy=False)
        values, vectors = np.linalg.eigh(gram)
        return np.clip(values, 0, None) / len(self.target), vectors

    @cached_property
    def _row_bases(self):
        return []

    def row_basis(self, preconditioner):
        """Eigenvalues over n_rows, and eigenvectors, of the matrix of x_i' P x_j."""
        if preconditioner is None:
            return self.eigenbasis
        for key, basis in self._row_bases:
            if key is preconditioner:
                return basis
        design, _ = self.sqrt_weighted()
        features = preconditioner.features(design).astype(np.float64, copy=False)
        gram = design.outer_gram().astype(np.float64, copy=False)
        gram -= (features * preconditioner.damping) @ features.T
        # LAPACK works in place on the transpose of this symmetric matrix.
        values, vectors = eigh(gram.T, overwrite_a=True, check_finite=False)
        basis = np.clip(values, 0, None) / len(features), vectors
        self._row_bases.append((preconditioner, basis))
        return basis

    @cached_property
    def column_norms(self):
        assert isinstance(self.design, ColumnDesign)  # others have no columns
        norms, _ = self.design.column_sizes()
        return norms.astype(self.design.dtype)

    def eigenvalues(self):
        """Eigenvalues of :attr:`eigenbasis`, without the eigenvectors."""
        if "eigenbasis" in vars(self):
            return self.eigenbasis[0]
        design, _ = self.sqrt_weighted()
        return design.spectrum()

    @cached_property
    def row_curvatures(self):
        """Curvatures of the rows at most, or where they have no bound, on the way.

        Shape: (n_rows, 1), the largest of all outputs."""
        if self.loss.couples_rows:
            at_start = self.target, self.start_predictor, self.row_weights
            bound = self.loss.curvature_bound(self.target)
            bound = max(bound, self.loss.largest_curvature(*at_start))
            return np.full_like(self.row_weights, bound)
        mean = (self.row_weights * self.target).sum(axis=0) / self.row_weights.sum()
        return largest_curvatures(self.loss, self.target, mean, self.start_predictor)

    @property
    def start_predictor(self):
        """Predictors (n_rows, n_targets) at which a run begins."""
        if self.start is None:
            return np.zeros_like(self.target)
        return self.design.dot(self.start)

    @cached_property
    def smoothness(self):
        """The largest second derivative of f in a direction of unit length."""
        curvatures = self.row_curvatures
        if np.ptp(curvatures) == 0:
            design, _ = self.sqrt_weighted()
            return float(curvatures[0, 0]) * design.top_eigenvalue()
        scale = np.sqrt(len(self.target) * self.row_weights * curvatures)
        return self.design.scaled_rows(scale).top_eigenvalue()


def largest_curvatures(loss, target, mean, start_predictor, ceiling=None):
    """The curvature of rows at most, or where it has no bound, on the way of a run.

    On the way are the start, a prediction of the mean, and those that equal the
    targets; there is room beyond, up to the largest of all rows, or to ``ceiling``.
    Shapes: target (n_rows, n_outputs); mean (n_outputs,); start_predictor (n_rows or 1,
    n_outputs); returned (n_rows, 1), the largest of all outputs.
    """
    largest = loss.curvature_bounds(target)
    if not loss.has_bounded_curvature:
        for predictor in (start_predictor, loss.predictor(mean)):
            predictor = np.broadcast_to(predictor, target.shape)
            largest = np.maximum(largest, loss.curvature(target, predictor))
    largest = largest.max(axis=1, keepdims=True)
    if loss.has_bounded_curvature:
        return largest
    return np.minimum(ROOM * largest, largest.max() if ceiling is None else ceiling)


def hessian(design, curvature):
    """Second derivatives of the sum of the losses of all rows in the coefficients.

    Shapes: design (n_rows, n_columns); curvature (n_rows, n_outputs, n_outputs);
    returned (n_columns, n_outputs, n_columns, n_outputs)."""
    n_columns, n_outputs = design.shape[1], curvature.shape[1]
    matrix = np.empty((n_columns, n_outputs, n_columns, n_outputs), curvature.dtype)
    for k in range(n_outputs):
        # The root of the curvature, which is not negative, makes the product symmetric:
        # that is half the work.
        matrix[:, k, :, k] = design.scaled_rows(np.sqrt(curvature[:, k, [k]])).gram()
        for m in range(k):
            block = design.weighted_gram(curvature[:, k, [m]])
            matrix[:, k, :, m] = matrix[:, m, :, k] = block
    return matrix
