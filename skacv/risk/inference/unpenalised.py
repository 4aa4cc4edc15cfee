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

# A direction is none of the columns where they vary less along it than this share of
# how much they vary most. It is above the rounding of single precision.
COLLINEAR = 1e-6
# A combination of coefficients is not determined if it has this share, or more, in such
# directions.
UNDETERMINED = 1e-4
# Newton's method: steps, and the relative length of the last one.
N_STEPS, CONVERGED = 100, 1e-9
# A step is halved at most so many times, until the loss rises by rounding only.
N_HALVINGS, ROUNDING = 60, 1e-12


class Basis(NamedTuple):
    """An orthonormal basis of the space of some columns.

    Attributes
    ----------
    vectors : ndarray of shape (n_rows, rank)
    to_coef : ndarray of shape (n_columns, rank)
        From coordinates to coefficients of the columns.
    missing : ndarray of shape (n_columns, n_columns - rank)
        Directions that the columns, of unit size, do not determine.
    size : ndarray of shape (n_columns,)
        The root mean squares of the columns.
    """

    vectors: np.ndarray
    to_coef: np.ndarray
    missing: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, columns):
        """The basis of columns (n_rows, n_columns), with at least as many rows."""
        size = np.sqrt(np.mean(columns**2, axis=0))
        size[size == 0] = 1.0
        vectors, values, right = np.linalg.svd(columns / size, full_matrices=False)
        rank = np.count_nonzero(values > COLLINEAR * values[0])
        to_coef = right[:rank].T / values[:rank] / size[:, None]
        return cls(vectors[:, :rank], to_coef, right[rank:].T, size)

    def determines(self, combinations):
        """Which combinations of the coefficients the columns determine.

        Shapes: combinations (n_asked, n_columns); returned (n_asked,), bool.
        """
        scaled = combinations / self.size
        left_open = np.linalg.norm(scaled @ self.missing, axis=1)
        return left_open <= UNDETERMINED * np.linalg.norm(scaled, axis=1)


@dataclass(frozen=True, eq=False)
class Minimum:
    """The minimum of the losses of one output, over the coordinates of a basis.

    Attributes
    ----------
    coordinates : ndarray of shape (rank,)
    predictor, slopes, curvature : ndarray of shape (n_rows,)
        At the minimum; slopes are negative derivatives of the losses.
    factor : tuple
        Cholesky factor of the Hessian, of :func:`scipy.linalg.cho_factor`.
    widths : ndarray of shape (n_rows,)
        x_i'(X'DX)^-1 x_i.
    """

    coordinates: np.ndarray
    predictor: np.ndarray
    slopes: np.ndarray
    curvature: np.ndarray
    factor: tuple
    widths: np.ndarray

    @classmethod
    def of(cls, vectors, target, loss):
        """By Newton's method from zero, with steps that are halved if they overshoot.

        Parameters
        ----------
        vectors : ndarray of shape (n_rows, rank)
            Orthonormal.
        target : ndarray of shape (n_rows,)

        Raises
        ------
        Unreadable
            If there is no single minimum, or no row is left to tell the noise.
        """
        coordinates = np.zeros(vectors.shape[1])
        for _ in range(N_STEPS):
            step = _step(coordinates, vectors, target, loss)
            coordinates = coordinates + step
            if np.linalg.norm(step) <= CONVERGED * np.linalg.norm(coordinates):
                break
        else:
            raise _without_minimum(loss)
        predictor = vectors @ coordinates
        slopes, curvature = _derivatives(predictor, target, loss)
        try:
            factor = _factor(vectors, curvature)
        except np.linalg.LinAlgError:
            raise _without_minimum(loss) from None
        widths = np.einsum("ir,ri->i", vectors, cho_solve(factor, vectors.T))
        found = cls(coordinates, predictor, slopes, curvature, factor, widths)
        if found.trace <= CONVERGED * curvature.sum():
            raise _without_minimum(loss)
        return found

    @property
    def leverages(self):
        """h_i, (n_rows,)."""
        return self.curvature * self.widths

    @property
    def trace(self):
        """The sum of D_i (1 - h_i)."""
        return self.curvature @ (1 - self.leverages)

    @property
    def dispersion(self):
        """phi."""
        return self.slopes @ self.slopes / self.trace

    def errors(self, combinations):
        """Standard errors of combinations (n_asked, rank) of the coordinates."""
        squares = np.einsum(
            "ar,ra->a", combinations, cho_solve(self.factor, combinations.T)
        )
        return np.sqrt(self.dispersion * squares)


@dataclass(frozen=True, eq=False)
class Unpenalised:
    """The coefficients that minimise a loss without a penalty, and their errors.

    Attributes
    ----------
    basis : Basis
        That of the columns, the constant one included if there is an intercept.
    minima : list of Minimum
        One for every output.
    """

    basis: Basis
    minima: list[Minimum]

    @classmethod
    def of(cls, columns, target, loss):
        """Fit them.

        Parameters
        ----------
        columns : ndarray of shape (n_rows, n_columns)
        target : ndarray of shape (n_rows, n_outputs)
        loss : Loss
            Not coupled.

        Raises
        ------
        Unreadable
            If rows are too few to tell the noise, or there is no single minimum.
        """
        n_rows, n_columns = columns.shape
        if n_rows <= n_columns:
            raise Unreadable(
                "The sample covariance needs more rows than columns, with the one of "
                f"the intercept, got {n_rows} rows and {n_columns} columns: use "
                "covariance='nodewise'."
            )
        basis = Basis.of(columns)
        outputs = target.T
        return cls(basis, [Minimum.of(basis.vectors, y, loss) for y in outputs])

    def debiased(self, coef, combinations):
        """Combinations of the coefficients, with their standard errors.

        Parameters
        ----------
        coef : ndarray of shape (n_asked, n_outputs)
            What the iterate has for them.
        combinations : ndarray of shape (n_asked, n_columns)

        Returns
        -------
        Debiased
        """
        inner = combinations @ self.basis.to_coef
        estimates = [inner @ minimum.coordinates for minimum in self.minima]
        errors = [minimum.errors(inner) for minimum in self.minima]
        n_rows, rank = self.basis.vectors.shape
        estimates, errors = (np.stack(part, axis=1) for part in (estimates, errors))
        return Debiased(coef, estimates, errors, degrees=n_rows - rank)

    def scale(self, X, labels, loss):
        """The multiple of the truth that maximum likelihood estimates.

        It is one where columns are few, and more with more columns. The standard errors
        already have the variance along the truth, which that of a debiased iterate
        lacks; so the scale adds only its own.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_features)
        labels : ndarray of shape (n_rows,)
            0 or 1.

        Returns
        -------
        Scale
        """
        (minimum,) = self.minima
        effects = EffectsOfLabels.of(minimum, loss)
        scores = len(labels) * minimum.slopes / minimum.trace
        signal = of_labels(X, labels, scores)._replace(shared=0.0)
        return ScaleByStrength.of(effects, labels).of_labels(signal)


@dataclass(frozen=True, eq=False)
class EffectsOfLabels:
    """What the labels of rows do at a minimum, as :class:`LabelEffects` of a run.

    Attributes
    ----------
    held_out : ndarray of shape (1, n_rows)
        Predictors of the rows by the minimum without each, to second order.
    jumps : ndarray of shape (1, n_rows)
        The slope of the second label less that of the first.
    trace : float
        The sum of D_i (1 - h_i).
    """

    held_out: np.ndarray
    jumps: np.ndarray
    trace: float

    @classmethod
    def of(cls, minimum, loss):
        """Read them from a :class:`Minimum`."""
        responses = minimum.widths / (1 - minimum.leverages)
        held_out = minimum.predictor - responses * minimum.slopes
        first, second = (
            _slopes_with(held_out, responses, np.full_like(held_out, label), loss)
            for label in loss.labels
        )
        return cls(held_out[None], (second - first)[None], minimum.trace)

    def at_the_end(self, sums):
        """Sums over rows, (1, n_sums), over the trace."""
        return sums[-1] / self.trace


def _slopes_with(held_out, responses, target, loss):
    """Slopes psi = -l'(y, U + W psi) of rows that take part, by Newton's method."""
    predictor = held_out.copy()
    for _ in range(N_STEPS):
        slopes, curvature = _derivatives(predictor, target, loss)
        step = (predictor - held_out - responses * slopes) / (1 + responses * curvature)
        predictor -= step
        if np.abs(step).max() <= CONVERGED:
            break
    return _derivatives(predictor, target, loss)[0]


def _derivatives(predictor, target, loss):
    """Negative derivatives and second derivatives of the losses, (n_rows,) each."""
    target, predictor = target[:, None], predictor[:, None]
    slopes = -loss.derivative(target, predictor)
    return slopes[:, 0], loss.curvature(target, predictor)[:, 0]


def _factor(vectors, curvature):
    """The Cholesky factor of the Hessian in a basis."""
    return cho_factor(vectors.T @ (curvature[:, None] * vectors))


def _step(coordinates, vectors, target, loss):
    """A step of Newton's method, halved until the loss does not rise.

    Where too few rows have a curvature, as far from the targets of Huber's loss, the
    losses are replaced by parabolas above them.
    """
    predictor = vectors @ coordinates
    slopes, curvature = _derivatives(predictor, target, loss)
    try:
        factor = _factor(vectors, curvature)
    except np.linalg.LinAlgError:
        curvature = np.full_like(slopes, loss.curvature_bound(target[:, None]))
        if loss.is_of_residual:
            left = target - predictor
            np.divide(slopes, left, out=curvature, where=left != 0)
        factor = _factor(vectors, curvature)
    step = cho_solve(factor, vectors.T @ slopes)

    def total(place):
        with np.errstate(over="ignore", invalid="ignore"):
            return loss.value(target[:, None], (vectors @ place)[:, None]).sum()

    before = total(coordinates)
    for _ in range(N_HALVINGS):
        if total(coordinates + step) <= before + ROUNDING * abs(before):
            break
        step = step / 2
    return step


def _without_minimum(loss):
    return Unreadable(
        f"Without a penalty the {loss.name} has no single minimum on these rows: their "
        "columns separate the classes, say, or one level of a category has targets of "
        "one kind only. Leave out such columns, or use covariance='nodewise', which "
        "debiases the iterate itself."
    )
