"""The basis in which linear updates are elementwise."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

# Directions with a smaller share of the top eigenvalue carry no start.
NULL_DIRECTION = 1e-14


@dataclass(frozen=True)
class Eigenbasis:
    """A design in the eigenbasis of (design' design) / n_rows.

    Attributes
    ----------
    eigenvalues : ndarray of shape (rank,)
    drive : ndarray of shape (rank, n_targets)
        Coordinates of design' target / n_rows.
    start : ndarray of shape (rank, n_targets)
        Coordinates of the coefficients that a run starts from.
    rows : callable
        ``rows(index)`` are the coordinates of some rows, (n, rank).
    """

    eigenvalues: np.ndarray
    drive: np.ndarray
    start: np.ndarray
    rows: Callable

    @classmethod
    def of_run(cls, problem, trajectory):
        """The basis in which the updates of a run are elementwise."""
        preconditioner = trajectory.preconditioner()
        if preconditioner is None:
            return cls.of(problem, trajectory.coef[0])
        curvature = trajectory.phases[0].penalty.common_curvature()
        is_on_rows = problem.sqrt_weighted()[0].side == "rows"
        if is_on_rows and curvature == 0 and not trajectory.coef[0].any():
            return cls.of_preconditioned_rows(problem, preconditioner)
        basis = cls.of(problem, trajectory.coef[0])
        directions = _coordinates(problem, preconditioner.covectors)
        return basis.preconditioned(directions, preconditioner.damping, curvature)

    def preconditioned(self, directions, damping, curvature):
        """The basis of the run whose gradients are multiplied by P = Q^2.

        With b = Q a, P times a gradient in b is the gradient in a: the run is
        gradient descent on Q (design' design / n_rows + curvature) Q.

        Parameters
        ----------
        directions : ndarray of shape (rank, q)
            Those of P, in this basis.
        damping : ndarray of shape (q,)
            What P takes from them.
        curvature : float
            Curvature of the penalty; the eigenvalues contain it from then on.

        Returns
        -------
        Eigenbasis
        """

        def scaled(taken, array):
            return array - directions @ (taken[:, None] * (directions.T @ array))

        root = scaled(1 - np.sqrt(1 - damping), np.eye(len(self.eigenvalues)))
        eigenvalues = self.eigenvalues + curvature
        values, vectors = np.linalg.eigh(root @ (eigenvalues[:, None] * root))
        turn = root @ vectors
        unscaled = scaled(1 - 1 / np.sqrt(1 - damping), self.start)
        return Eigenbasis(
            np.clip(values, 0, None),
            turn.T @ self.drive,
            vectors.T @ unscaled,
            lambda index: self.rows(index) @ turn,
        )

    @classmethod
    def of(cls, problem, coef):
        """The eigenbasis of a problem, and a run from ``coef`` in it."""
        design, target = problem.sqrt_weighted()
        n_rows = len(target)
        values, vectors = problem.eigenbasis
        if design.side == "columns":
            drive = vectors.T @ design.t_dot(target) / n_rows
            rows = partial(_rotated_rows, design, vectors.astype(design.dtype))
            return cls(values, drive, vectors.T @ coef, rows)
        root = np.sqrt(n_rows * values)
        start = _seen_coordinates(problem, design.dot(coef))
        drive = root[:, None] * (vectors.T @ target) / n_rows
        return cls(values, drive, start, (vectors * root).__getitem__)

    @classmethod
    def of_preconditioned_rows(cls, problem, preconditioner):
        """The basis of a run from zero without a penalty, by one decomposition.

        That of the inner products phi_i' P phi_j of rows: a preconditioned run of
        gradient descent sees no others.
        """
        values, vectors = problem.row_basis(preconditioner)
        _, target = problem.sqrt_weighted()
        root = np.sqrt(len(target) * values)
        drive = root[:, None] * (vectors.T @ target) / len(target)
        rows = (vectors * root).__getitem__
        return cls(values, drive, np.zeros_like(drive), rows)


def _coordinates(problem, covectors):
    """Coordinates of directions, by their covectors, in the eigenbasis of a problem."""
    design, _ = problem.sqrt_weighted()
    if design.side == "columns":
        return problem.eigenbasis[1].T @ covectors
    return _seen_coordinates(problem, design.evaluate(covectors))


def _seen_coordinates(problem, predictor):
    """Coordinates of whatever has these predictors: only what the rows see matters."""
    values, vectors = problem.eigenbasis
    root = np.sqrt(len(predictor) * values)
    seen = values > NULL_DIRECTION * values[-1]
    inverse = np.divide(1, root, out=np.zeros_like(root), where=seen)
    return inverse[:, None] * (vectors.T @ predictor)


def _rotated_rows(design, vectors, index):
    return design.rows(index).dot(vectors).astype(np.float64, copy=False)
