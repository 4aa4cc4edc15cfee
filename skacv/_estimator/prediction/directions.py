"""Directions over the rows that turn scores into coefficients, or means of rows.

With e the scores of an iterate b, a direction w_j over the rows gives

    Z_j = b_j + w_j'e,      standard error size_j ||e||.

Known covariance, Omega its inverse: w_j = X Omega_j / n, size_j = sqrt(Omega_jj) / n
(Bellec & Tan 2024). Unknown: w_j = z_j / z_j'x_j with z_j what a lasso of column j on
the others leaves (Zhang & Zhang 2014), and size_j = ||w_j|| / sqrt(n).

A mean d'b has a direction too, for any d. Known: w = X Omega d / n. Unknown: with v =
d / ||d||^2, X b = (X v) d'b + X (I - v d') b, so d'b is the coefficient of a column X
v, and the others are the columns of X (I - v d').
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Lasso

from ..._warnings import warn
from ...risk.inference.signal import of_debiased, of_labels

# The residual of a column may be as close to another column as this share of how close
# it is to its own: otherwise the two cannot be separated.
MOST_ALIKE = 0.5


class Directions(NamedTuple):
    """Directions over the rows, and the sizes of their errors; NaN where none is known.

    Shapes: vectors (n_rows, n_asked); sizes (n_asked,).
    """

    vectors: np.ndarray
    sizes: np.ndarray

    def are_known(self):
        """Mask of the directions that are known, (n_asked,)."""
        return ~np.isnan(self.sizes)


class KnownCovariance:
    """The covariance of the columns, where it is known.

    Shapes: covariance (n_columns, n_columns).
    """

    def __init__(self, covariance, n_columns):
        self.covariance = np.asarray(covariance, dtype=float)
        if self.covariance.shape != (n_columns, n_columns):
            raise ValueError(
                f"covariance must have shape {(n_columns, n_columns)}, one row for "
                f"every feature, got {self.covariance.shape}."
            )
        if not np.allclose(self.covariance, self.covariance.T):
            raise ValueError("covariance must be symmetric.")
        try:
            self._factor = cho_factor(self.covariance)
        except np.linalg.LinAlgError:
            raise ValueError("covariance must be positive definite.") from None

    def solved(self, array):
        """The inverse of the covariance, times an array."""
        return cho_solve(self._factor, array)

    def find_directions_of_columns(self, X, columns):
        """Directions of coefficients.

        Shapes: X (n_rows, n_columns).
        """
        return self.find_directions_of_rows(X, np.eye(X.shape[1])[columns])

    def find_directions_of_rows(self, X, rows):
        """Directions of means of rows, d'b.

        Shapes: X (n_rows, n_columns); rows (n_asked, n_columns).
        """
        inverse = self.solved(rows.T)
        variances = np.einsum("aj,ja->a", rows, inverse)
        return Directions(X @ inverse / len(X), np.sqrt(variances) / len(X))

    def scale(self, by_strength, X, labels, coef, scores):
        """The multiple of the truth that a debiased iterate estimates.

        Shapes: X (n_rows, n_columns), labels and scores (n_rows,), coef (n_columns,).
        """
        signal = of_debiased(coef, X.T @ scores / len(X), self, scores)
        return by_strength.of_debiased(signal)


class Nodewise:
    """Directions by lassos, where the covariance of the columns is not known.

    The alpha of a lasso is ``alpha * sqrt(log(p) / n)``, for a column of unit variance.
    """

    # least_left: the residual of a column should keep this share of its variance, or
    # the errors of other coefficients are more than a fraction of the standard error.
    # AR(.8) and AR(.9) columns keep a third and a sixth, and intervals of 95% covered
    # 89% and 78%. A column that stands for the mean of a row depends on many others:
    # the residual of a lasso that takes few of them is too similar to the rest, so its
    # alpha is smaller. With AR(.5) columns it keeps .35 or more, with AR(.9) columns
    # about .28, and means were covered 88% to 93%.

    def find_directions_of_columns(self, X, columns, alpha=0.45, least_left=0.4):
        """Directions of coefficients, by a lasso of each column on all others.

        Shapes: X (n_rows, n_columns).
        """
        scaled, _ = _scale_to_unit_size(X)
        parts = ((X[:, j], np.delete(scaled, j, axis=1)) for j in columns)
        directions, shares = _solve_lassos(X, parts, len(columns), alpha)
        alike = columns[shares < least_left].tolist()
        if alike:
            warn(
                f"Columns {alike} are so correlated with others that the nodewise "
                "lasso cannot separate them well: their intervals may be too short, "
                f"and their p-values too small. To get valid ones, {_remedy(X)}pass "
                "the covariance if it is known, or drop columns.",
                UserWarning,
            )
        return directions

    def find_directions_of_rows(self, X, rows, alpha=0.2, least_left=1 / 3):
        """Directions of means of rows: d'b as a coefficient, by a lasso of its column.

        Shapes: X (n_rows, n_columns); rows (n_asked, n_columns).
        """
        scaled, scale = _scale_to_unit_size(X)

        def parts():
            for row in rows:
                # In coordinates in which columns have unit size.
                direction = np.divide(
                    row, scale, out=np.zeros_like(scale), where=scale > 0
                )
                column = scaled @ (direction / (direction @ direction or 1.0))
                yield column, scaled - np.outer(column, direction)

        directions, shares = _solve_lassos(X, parts(), len(rows), alpha)
        alike = np.flatnonzero(shares < least_left).tolist()
        if alike:
            warn(
                "The columns are so correlated that the nodewise lasso cannot "
                f"separate rows {alike} of X well from other directions: their "
                f"intervals may be too short. To get valid ones, {_remedy(X)}pass the "
                "covariance if it is known, or drop columns.",
                UserWarning,
            )
        return directions

    def scale(self, by_strength, X, labels, coef, scores):
        """The multiple of the truth that a debiased iterate estimates."""
        return by_strength.of_labels(of_labels(X, labels, scores))


def _solve_lassos(X, parts, n_asked, factor):
    """Directions by a lasso of each column on its regressors, and how much they share.

    Shares are the inner products of column and residual, over the square of the column.
    A direction is NaN, and its share too, if the residual is about as close to some
    regressor as to the column itself.

    Shapes: parts ((n_rows,), (n_rows, n_regressors)); shares (n_asked,).
    """
    n_rows, n_columns = X.shape
    lasso = Lasso(
        factor * np.sqrt(np.log(max(n_columns, 2)) / n_rows),
        fit_intercept=False,
        max_iter=10_000,
    )
    vectors = np.zeros((n_rows, n_asked))
    shares = np.ones(n_asked)
    for k, (column, regressors) in enumerate(parts):
        if not column.any():
            continue
        unit = column / np.sqrt(np.mean(column**2))
        residual = unit
        if regressors.shape[1]:
            residual = unit - regressors @ lasso.fit(regressors, unit).coef_
        across = np.abs(regressors.T @ residual).max(initial=0)
        if across >= MOST_ALIKE * (residual @ unit):
            vectors[:, k] = shares[k] = np.nan
            continue
        vectors[:, k] = residual / (residual @ column)
        shares[k] = residual @ unit / n_rows
    sizes = np.linalg.norm(vectors, axis=0) / np.sqrt(n_rows)
    return Directions(vectors, sizes), shares


def _remedy(X):
    """Advice where there are more rows than columns, else an empty string."""
    n_rows, n_columns = X.shape
    return "use covariance='sample', " if n_rows > n_columns + 1 else ""


def _scale_to_unit_size(X):
    """Columns divided by the roots of their mean squares, and these roots."""
    scale = np.sqrt((X**2).mean(axis=0))
    return X / np.where(scale > 0, scale, 1.0), scale
