"""Directions over the rows that turn scores into coefficients, or means of rows.

With e the scores of an iterate b, a direction w_j over the rows gives

    Z_j = b_j + w_j'e,      standard error size_j ||e||.

Known covariance, Omega its inverse: w_j = X Omega_j / n, size_j = sqrt(Omega_jj) / n
(Bellec & Tan 2024). Unknown: w_j = z_j / z_j'x_j with z_j what a lasso of column j on
the others leaves (Zhang & Zhang 2014), and size_j = ||w_j|| / sqrt(n).

The same of d'b, for any d. Known: w = X Omega d / n. Unknown: with v = d / ||d||^2, X b
= (X v) d'b + X (I - v d') b, so d'b is the coefficient of a column X v, and the others
are the columns of X (I - v d').
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Lasso

from ..._warnings import warn
from ...risk.inference.signal import of_debiased, of_labels

# The lasso of a column of unit variance on the others has this times
# sqrt(log(p) / n) as its alpha.
NODEWISE_ALPHA = 0.45
# The same where the column stands for the mean of a row: that leans on many columns,
# and what a lasso that takes few of them leaves is too like the others.
ROW_ALPHA = 0.2
# What is left of a column may be as close to another one as this share of how close it
# is to the column itself: otherwise the two cannot be separated.
MOST_ALIKE = 0.5
# What is left of a column should be so much of its variance, or the errors of other
# coefficients are more than a fraction of the standard error: AR(.8) and AR(.9) columns
# have a third and a sixth left, and intervals of 95% covered 89% and 78%.
LEAST_LEFT = 0.4
# The same of the column that stands for the mean of a row: with AR(.5) columns it has
# .35 or more left, with AR(.9) columns about .28, and means were covered 88% to 93%.
LEAST_LEFT_OF_ROW = 1 / 3


class Directions(NamedTuple):
    """Directions over the rows, and the sizes of what errors they leave.

    Attributes
    ----------
    vectors : ndarray of shape (n_rows, n_asked)
    sizes : ndarray of shape (n_asked,)
    """

    vectors: np.ndarray
    sizes: np.ndarray

    def with_constant(self):
        """The same with the coefficient of a constant column, added to each."""
        n_rows = len(self.vectors)
        return Directions(self.vectors + 1 / n_rows, np.hypot(self.sizes, 1 / n_rows))


class KnownCovariance:
    """The covariance of the columns, where it is known.

    Shapes: covariance (n_columns, n_columns).

    Raises
    ------
    ValueError
        If it is of another size, not symmetric or not positive definite.
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

    def of_columns(self, X, columns):
        """Directions of coefficients.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Centred where there is an intercept.

        Returns
        -------
        Directions
        """
        return self.of_rows(X, np.eye(X.shape[1])[columns])

    def of_rows(self, X, rows):
        """Directions of means of rows, d'b.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Centred where there is an intercept.
        rows : ndarray of shape (n_asked, n_columns)

        Returns
        -------
        Directions
        """
        inverse = self.solved(rows.T)
        variances = np.einsum("aj,ja->a", rows, inverse)
        return Directions(X @ inverse / len(X), np.sqrt(variances) / len(X))

    def scale(self, by_strength, X, labels, coef, scores):
        """The multiple of the truth that a debiased iterate estimates.

        By how large the debiased iterate is itself.

        Parameters
        ----------
        by_strength : ScaleByStrength
        X : ndarray of shape (n_rows, n_columns)
        labels : ndarray of shape (n_rows,)
            0 or 1.
        coef : ndarray of shape (n_columns,)
        scores : ndarray of shape (n_rows,)

        Returns
        -------
        Scale
        """
        signal = of_debiased(coef, X.T @ scores / len(X), self, scores)
        return by_strength.of_debiased(signal)


class Nodewise:
    """Directions by lassos, where the covariance of the columns is not known."""

    def of_columns(self, X, columns):
        """Directions of coefficients, by a lasso of each column on all others.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Centred where there is an intercept.

        Returns
        -------
        Directions

        Raises
        ------
        ValueError
            If a requested column is too strongly correlated with the others.
        """
        scaled, _ = _of_unit_size(X)
        parts = ((X[:, j], np.delete(scaled, j, axis=1)) for j in columns)
        found, likeness, left = _by_lassos(X, parts, len(columns), NODEWISE_ALPHA)
        alike = columns[likeness >= MOST_ALIKE].tolist()
        if alike:
            raise ValueError(
                f"Columns {alike} are almost linear combinations of others, so that "
                "their coefficients cannot be estimated by the nodewise lasso: "
                f"{_remedy(X)}drop such columns, or ask for others."
            )
        alike = columns[left < LEAST_LEFT].tolist()
        if alike:
            warn(
                f"Columns {alike} are so correlated with others that the nodewise "
                "lasso cannot separate them well: their intervals may be too short, "
                "and their p-values too small. For right ones "
                f"{_remedy(X)}pass the covariance if it is known, or drop columns.",
                UserWarning,
            )
        return found

    def of_rows(self, X, rows):
        """Directions of means of rows: d'b as a coefficient, by a lasso of its column.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_columns)
            Centred where there is an intercept.
        rows : ndarray of shape (n_asked, n_columns)

        Returns
        -------
        Directions

        Raises
        ------
        ValueError
            If the column of a row is too strongly correlated with the others.
        """
        scaled, scale = _of_unit_size(X)

        def parts():
            for row in rows:
                # In coordinates in which columns have unit size.
                asked = np.divide(row, scale, out=np.zeros_like(scale), where=scale > 0)
                column = scaled @ (asked / (asked @ asked or 1.0))
                yield column, scaled - np.outer(column, asked)

        found, likeness, left = _by_lassos(X, parts(), len(rows), ROW_ALPHA)
        alike = np.flatnonzero(likeness >= MOST_ALIKE).tolist()
        if alike:
            raise ValueError(
                f"Rows {alike} of X lie along directions in which the training rows "
                "hardly vary: their means cannot be estimated."
            )
        alike = np.flatnonzero(left < LEAST_LEFT_OF_ROW).tolist()
        if alike:
            warn(
                "The columns are so correlated that the nodewise lasso cannot separate "
                f"rows {alike} of X well from other directions: their intervals may be "
                f"too short. For right ones {_remedy(X)}pass the covariance if it is "
                "known, or drop columns.",
                UserWarning,
            )
        return found

    def scale(self, by_strength, X, labels, coef, scores):
        """The multiple of the truth that a debiased iterate estimates."""
        return by_strength.of_labels(of_labels(X, labels, scores))


def _by_lassos(X, parts, n_asked, factor):
    """Directions by a lasso of each of some columns on the others.

    Parameters
    ----------
    parts : iterable of (ndarray of shape (n_rows,), ndarray of shape (n_rows, n))
        A column, of which nothing is estimated if it is zero, and the others.
    factor : float
        The alpha for a column of unit size, over sqrt(log(n_columns) / n_rows).

    Returns
    -------
    found : Directions
    likeness : ndarray of shape (n_asked,)
        How close what is left of a column is to any other, over how close it is to the
        column itself.
    shares : ndarray of shape (n_asked,)
        The inner product of a column and what is left of it, over the former's square.
    """
    n_rows, n_columns = X.shape
    lasso = Lasso(
        factor * np.sqrt(np.log(max(n_columns, 2)) / n_rows),
        fit_intercept=False,
        max_iter=10_000,
    )
    vectors = np.zeros((n_rows, n_asked))
    likeness, shares = np.zeros(n_asked), np.ones(n_asked)
    for place, (column, others) in enumerate(parts):
        if not column.any():
            continue
        unit = column / np.sqrt(np.mean(column**2))
        left = unit
        if others.shape[1]:
            left = unit - others @ lasso.fit(others, unit).coef_
        vectors[:, place] = left / (left @ column)
        across = np.abs(others.T @ left).max(initial=0)
        likeness[place] = across / (left @ unit)
        shares[place] = left @ unit / n_rows
    sizes = np.linalg.norm(vectors, axis=0) / np.sqrt(n_rows)
    return Directions(vectors, sizes), likeness, shares


def _remedy(X):
    """What to do where there are more rows than columns, or nothing."""
    n_rows, n_columns = X.shape
    return "use covariance='sample', " if n_rows > n_columns + 1 else ""


def _of_unit_size(X):
    """Columns over the roots of their mean squares, and these."""
    scale = np.sqrt((X**2).mean(axis=0))
    return X / np.where(scale > 0, scale, 1.0), scale
