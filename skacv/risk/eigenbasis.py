"""The basis in which linear updates are elementwise."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..optim.kernel_matrix import as_slice

# Directions with a smaller share of the top eigenvalue carry no start.
NULL_DIRECTION = 50 * np.finfo(float).eps


@dataclass(frozen=True)
class Eigenbasis:
    """A design in the eigenbasis of (design' design) / n_rows."""

    eigenvalues: np.ndarray  # (rank,)
    drive: np.ndarray  # design' target / n_rows, (rank, n_targets)
    start: np.ndarray  # (rank, n_targets)
    rows: Callable  # from row numbers to rows of the design, (n, rank)

    @classmethod
    def of_run(cls, problem, trajectory):
        """The basis in which the updates of a run are elementwise."""
        preconditioner, start = trajectory.preconditioner(), trajectory.coef[0]
        if preconditioner is None:
            return cls.of(problem, start)
        curvature = trajectory.phases[0].penalty.common_curvature()
        design, _ = problem.sqrt_weighted()
        is_on_rows, covectors = design.side == "rows", preconditioner.covectors
        if is_on_rows and curvature == 0 and not start.any():
            return cls.of(problem, start, preconditioner)
        if is_on_rows:
            directions = _seen_coordinates(problem, design.evaluate(covectors))
        else:
            directions = problem.eigenbasis[1].T @ covectors
        basis = cls.of(problem, start)
        return basis.preconditioned(directions, preconditioner.damping, curvature)

    def preconditioned(self, directions, damping, curvature):
        """The basis of the run whose gradients are multiplied by P = Q^2."""
        # With b = Q a, P times a gradient in b is the gradient in a: the run is
        # gradient descent on Q (design' design / n_rows + curvature) Q. Shapes:
        # directions (rank, q), damping (q,).

        def scaled(removed, array):
            return array - directions @ (removed[:, None] * (directions.T @ array))

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
    def of(cls, problem, coef, preconditioner=None):
        """The eigenbasis of a problem, and a run from ``coef`` in it."""
        design, target = problem.sqrt_weighted()
        n_rows = len(target)
        if design.side == "columns":
            values, vectors = problem.eigenbasis
            drive = vectors.T @ design.t_dot(target) / n_rows
            turn = vectors.astype(design.dtype)

            def rows(index):
                return design.rows(index).dot(turn).astype(np.float64, copy=False)

            return cls(values, drive, vectors.T @ coef, rows)
        values, vectors = problem.row_basis(preconditioner)
        root = np.sqrt(n_rows * values)
        drive = root[:, None] * (vectors.T @ target) / n_rows
        start = np.zeros_like(drive)
        if coef.any():
            start = _seen_coordinates(problem, design.dot(coef))
        return cls(values, drive, start, lambda index: vectors[as_slice(index)] * root)


def _seen_coordinates(problem, predictor):
    """Coordinates in the eigenbasis that give some predictors, (n_rows, n_targets)."""
    values, vectors = problem.eigenbasis
    inverse = inverse_roots(values, len(predictor))
    return inverse[:, None] * (vectors.T @ predictor)


def inverse_roots(values, n_rows):
    """One over the root of n_rows eigenvalues; zero for directions of none."""
    seen = values > NULL_DIRECTION * values[-1]
    inverse = np.zeros_like(values)
    return np.divide(1, np.sqrt(n_rows * values), out=inverse, where=seen)
