"""Directions that turn scores into single coefficients, column by column.

With e the scores of an iterate b, a direction w_j over the rows gives

    Z_j = b_j + w_j'e,      standard error size_j ||e||.

Known covariance, Omega its inverse: w_j = X Omega_j / n, size_j = sqrt(Omega_jj) / n
(Bellec & Tan 2024). Unknown: w_j = z_j / z_j'x_j with z_j what a lasso of column j on
the others leaves (Zhang & Zhang 2014), and size_j = ||w_j|| / sqrt(n).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Lasso

# The lasso of a column of unit variance on the others has this times
# sqrt(log(p) / n) as its alpha.
NODEWISE_ALPHA = 0.45
# What is left of a column may be as close to another one as this share of how close it
# is to the column itself: else the two are not told apart.
MOST_ALIKE = 0.5


class Directions(NamedTuple):
    """Directions over the rows, and the sizes of what errors they leave.

    Attributes
    ----------
    vectors : ndarray of shape (n_rows, n_asked)
    sizes : ndarray of shape (n_asked,)
    """

    vectors: np.ndarray
    sizes: np.ndarray


def by_covariance(X, columns, covariance):
    """Directions where the covariance of the columns is known.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    columns : ndarray of int
    covariance : ndarray of shape (n_columns, n_columns)

    Returns
    -------
    Directions

    Raises
    ------
    ValueError
        If it is of another size, not symmetric or not positive definite.
    """
    n_rows, n_columns = X.shape
    covariance = np.asarray(covariance, dtype=float)
    if covariance.shape != (n_columns, n_columns):
        raise ValueError(
            f"covariance must have shape {(n_columns, n_columns)}, one row for every "
            f"feature, got {covariance.shape}."
        )
    if not np.allclose(covariance, covariance.T):
        raise ValueError("covariance must be symmetric.")
    try:
        factor = cho_factor(covariance)
    except np.linalg.LinAlgError:
        raise ValueError("covariance must be positive definite.") from None
    wanted = np.zeros((n_columns, len(columns)))
    wanted[columns, np.arange(len(columns))] = 1
    inverse = cho_solve(factor, wanted)
    variances = inverse[columns, np.arange(len(columns))]
    return Directions(X @ inverse / n_rows, np.sqrt(variances) / n_rows)


def nodewise(X, columns):
    """Directions by a lasso of every asked column on all others.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        Centred where there is an intercept.
    columns : ndarray of int

    Returns
    -------
    Directions

    Raises
    ------
    ValueError
        If an asked column is too like the others to be told from them.
    """
    n_rows, n_columns = X.shape
    scale = np.sqrt((X**2).mean(axis=0))
    scaled = X / np.where(scale > 0, scale, 1.0)
    alpha = NODEWISE_ALPHA * np.sqrt(np.log(max(n_columns, 2)) / n_rows)
    lasso = Lasso(alpha, fit_intercept=False, max_iter=10_000)
    vectors, alike = np.empty((n_rows, len(columns))), []
    for place, j in enumerate(columns):
        others, left = np.delete(scaled, j, axis=1), scaled[:, j]
        if others.shape[1]:
            left = left - others @ lasso.fit(others, left).coef_
        across = np.abs(others.T @ left).max(initial=0)
        if across >= MOST_ALIKE * (left @ scaled[:, j]):
            alike.append(int(j))
        vectors[:, place] = left / (left @ X[:, j])
    if alike:
        raise ValueError(
            f"Columns {alike} are so like others that their coefficients are not told "
            "apart: ask for other columns, or fit without one of each."
        )
    return Directions(vectors, np.linalg.norm(vectors, axis=0) / np.sqrt(n_rows))
