"""Estimates without a penalty, and their standard errors.

By the sample covariance of the columns, a step that debiases an iterate b is one of
Newton's method for the loss without its penalty,

    b + (X'DX)^-1 X'psi,        psi = -l'(y, X b),    D = l''(y, X b).

Repeated until it changes nothing, it ends at the unpenalised minimum: least squares, or
maximum likelihood. So the estimate is the same for every iterate. With the leverages
h_i = D_i x_i'(X'DX)^-1 x_i, its covariance matrix is estimated as

    phi (X'DX)^-1,        phi = sum_i psi_i^2 / sum_i D_i (1 - h_i).

For the squared error this is that of least squares, with n - p degrees of freedom. For
a likelihood phi tends to one as p / n vanishes, which leaves the inverse of the
information. With many columns it is ||psi||^2 / tr(V)^2 Omega_jj of [1]_, where V = D -
D X (X'DX)^-1 X'D has the trace above: (X'DX)^-1_jj is then Omega_jj / tr(V).

.. [1] Bellec (2022), "Observable adjustments in single-index models for regularized
       M-estimators", arXiv:2204.06990.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from ..reader import Unreadable
from .debiased import Debiased
from .signal import of_labels
from .single_index import ScaleByStrength


class Basis(NamedTuple):
    """An orthonormal basis of the space of columns, and directions missing in it."""

    vectors: np.ndarray  # (n_rows, rank)
    to_coef: np.ndarray  # from coordinates to coefficients, (n_columns, rank)
    missing: np.ndarray  # of columns of unit size, (n_columns, n_columns - rank)
    size: np.ndarray  # root mean squares of the columns, (n_columns,)

    @classmethod
    def of(cls, columns, tol=1e-6):
        """The basis of columns (n_rows, n_columns), with at least as many rows."""
        # A direction is left out if columns vary along it by at most ``tol`` of how
        # much they vary most, which is above the rounding of single precision.
        size = np.sqrt(np.mean(columns**2, axis=0))
        size[size == 0] = 1.0
        vectors, values, right = np.linalg.svd(columns / size, full_matrices=False)
        rank = np.count_nonzero(values > tol * values[0])
        to_coef = right[:rank].T / values[:rank] / size[:, None]
        return cls(vectors[:, :rank], to_coef, right[rank:].T, size)

    def determines(self, combinations, tol=1e-4):
        """Mask of combinations (n, n_columns) without a share in missing directions."""
        scaled = combinations / self.size
        open_part = np.linalg.norm(scaled @ self.missing, axis=1)
        return open_part <= tol * np.linalg.norm(scaled, axis=1)


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimum of the losses of one output, over the coordinates of a basis."""

    coordinates: np.ndarray  # (rank,)
    predictor: np.ndarray  # (n_rows,), as slopes and curvature
    slopes: np.ndarray
    curvature: np.ndarray
    factor: tuple  # the Cholesky factor of the Hessian
    widths: np.ndarray  # x_i'(X'DX)^-1 x_i, (n_rows,)

    @classmethod
    def of(cls, vectors, target, loss, max_iter=100, tol=1e-9):
        """The minimum over vectors (n_rows, rank), orthonormal, for one target."""
        # Newton's method from zero, with steps that are halved if they overshoot.
        # Unreadable if there is no single minimum, or no row is left to tell the noise.
        coordinates = np.zeros(vectors.shape[1])
        for _ in range(max_iter):
            step = _step(coordinates, vectors, target, loss)
            coordinates = coordinates + step
            if np.linalg.norm(step) <= tol * np.linalg.norm(coordinates):
                break
        else:
            raise _without_minimum(loss)
        predictor = vectors @ coordinates
        slopes, curvature = _derivatives(predictor, target, loss)
        try:
            factor = cho_factor(vectors.T @ (curvature[:, None] * vectors))
        except np.linalg.LinAlgError:
            raise _without_minimum(loss) from None
        widths = np.einsum("ir,ri->i", vectors, cho_solve(factor, vectors.T))
        minimum = cls(coordinates, predictor, slopes, curvature, factor, widths)
        if minimum.trace <= tol * curvature.sum():
            raise _without_minimum(loss)
        return minimum

    @property
    def leverages(self):
        """The leverages h_i, (n_rows,)."""
        return self.curvature * self.widths

    @property
    def trace(self):
        """tr(V), the sum of D_i (1 - h_i)."""
        return self.curvature @ (1 - self.leverages)

    def errors(self, combinations):
        """Standard errors of combinations (n, rank) of the coordinates."""
        dispersion = self.slopes @ self.slopes / self.trace
        solved = cho_solve(self.factor, combinations.T)
        return np.sqrt(dispersion * np.einsum("ar,ra->a", combinations, solved))


@dataclass(frozen=True, eq=False)
class Unpenalised:
    """Coefficients that minimise a loss without a penalty, output by output."""

    basis: Basis
    minima: list[Minimum]

    @classmethod
    def of(cls, columns, target, loss):
        """The minima for columns (n_rows, n_columns), by output of the target."""
        # The loss does not couple outputs. Unreadable if rows are too few to tell the
        # noise, or there is no single minimum.
        n_rows, n_columns = columns.shape
        if n_rows <= n_columns:
            raise Unreadable(
                "The sample covariance needs more rows than columns (counting the "
                f"intercept), got {n_rows} rows and {n_columns} columns: use "
                "covariance='nodewise'."
            )
        basis = Basis.of(columns)
        outputs = target.T
        return cls(basis, [Minimum.of(basis.vectors, y, loss) for y in outputs])

    def debiased(self, coef, combinations):
        """Combinations (n, n_columns) as Debiased; ``coef`` are the iterate's."""
        inner = combinations @ self.basis.to_coef
        estimates = [inner @ minimum.coordinates for minimum in self.minima]
        errors = [minimum.errors(inner) for minimum in self.minima]
        n_rows, rank = self.basis.vectors.shape
        return Debiased(
            coef,
            np.stack(estimates, axis=1),
            np.stack(errors, axis=1),
            degrees=n_rows - rank,
        )

    def scale(self, X, labels, loss):
        """The multiple of the truth that maximum likelihood estimates, as Scale."""
        # It is one where columns are few, and more with more columns.
        # The standard errors already have the variance along the truth, which that of a
        # debiased iterate lacks; so the scale adds only its own.
        (minimum,) = self.minima
        effects = EffectsOfLabels.of(minimum, loss)
        scores = len(labels) * minimum.slopes / minimum.trace
        signal = of_labels(X, labels, scores)._replace(shared=0.0)
        return ScaleByStrength.of(effects, labels).of_labels(signal)


@dataclass(frozen=True, eq=False)
class EffectsOfLabels:
    """The effects of labels at a minimum, as LabelEffects has those in a run."""

    held_out: np.ndarray  # (1, n_rows)
    jumps: np.ndarray  # (1, n_rows)
    trace: float  # the sum of D_i (1 - h_i)

    @classmethod
    def of(cls, minimum, loss, max_iter=100, tol=1e-9):
        """Predictors without each row, to second order, and slopes by both labels."""
        # Slopes psi = -l'(y, U + W psi) of rows that take part, by Newton's method.
        responses = minimum.widths / (1 - minimum.leverages)
        held_out = minimum.predictor - responses * minimum.slopes
        slopes_by_label = []
        for label in loss.labels:
            target, predictor = np.full_like(held_out, label), held_out.copy()
            for _ in range(max_iter):
                slopes, curvature = _derivatives(predictor, target, loss)
                step = predictor - held_out - responses * slopes
                step /= 1 + responses * curvature
                predictor -= step
                if np.abs(step).max() <= tol:
                    break
            slopes_by_label.append(_derivatives(predictor, target, loss)[0])
        first, second = slopes_by_label
        return cls(held_out[None], (second - first)[None], minimum.trace)

    def at_the_end(self, sums):
        """Sums over rows, (1, n_sums), over the trace."""
        return sums[-1] / self.trace


def _derivatives(predictor, target, loss):
    """Slopes -l' and curvatures l'' of the losses, (n_rows,) each."""
    target, predictor = target[:, None], predictor[:, None]
    slopes = -loss.derivative(target, predictor)
    return slopes[:, 0], loss.curvature(target, predictor)[:, 0]


def _step(coordinates, vectors, target, loss, max_halvings=60, rounding=1e-12):
    """A step of Newton's method, halved until the loss rises by rounding only."""
    # Where too few rows have a curvature, as far from the targets of Huber's loss, the
    # losses are replaced by parabolas above them.
    predictor = vectors @ coordinates
    slopes, curvature = _derivatives(predictor, target, loss)
    try:
        factor = cho_factor(vectors.T @ (curvature[:, None] * vectors))
    except np.linalg.LinAlgError:
        curvature = np.full_like(slopes, loss.curvature_bound(target[:, None]))
        if loss.is_of_residual:
            residual = target - predictor
            np.divide(slopes, residual, out=curvature, where=residual != 0)
        factor = cho_factor(vectors.T @ (curvature[:, None] * vectors))
    step = cho_solve(factor, vectors.T @ slopes)

    def total(point):
        with np.errstate(over="ignore", invalid="ignore"):
            return loss.value(target[:, None], (vectors @ point)[:, None]).sum()

    before = total(coordinates)
    for _ in range(max_halvings):
        if total(coordinates + step) <= before + rounding * abs(before):
            break
        step = step / 2
    return step


def _without_minimum(loss):
    return Unreadable(
        f"Without a penalty the {loss.name} has no unique minimum on these rows: for "
        "example, their columns separate the classes, or a level of a category has "
        "targets of one kind only. Drop such columns, or use covariance='nodewise', "
        "which debiases the iterate itself."
    )
