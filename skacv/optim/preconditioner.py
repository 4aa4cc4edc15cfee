"""EigenPro's preconditioner: it damps the top directions of a subsample.

Ma and Belkin (2017), "Diving into the shallows: a computational perspective on
large-scale shallow learning"; Ma and Belkin (2019), "Kernel machines that adapt to
GPUs for effective large batch training" (EigenPro 2). With (lambda_j, e_j) the top
eigenpairs of the second moments of a subsample of the rows,

    P = I - sum_{j <= q} (1 - (lambda_{q+1} / lambda_j)^a) e_j e_j',    a = .95,

multiplies every gradient, so that the q top directions do not limit the step any
more. The e_j are unit coefficients in the inner product of the design: of columns,
or of functions (dual coefficients of a kernel).
"""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import eigh, qr

from .design import top_eigenvalue
from .equality import ComparesArrays

DAMPING_POWER = 0.95
# Directions with a smaller share of the top eigenvalue are rounding.
NULL_DIRECTION = 1e-6
# Randomised subspace iterations: more vectors than are wanted, and rounds.
N_MORE_VECTORS = 20
N_ROUNDS = 4
LANCZOS_TOLERANCE = 1e-2
# A step is this share of the largest that is stable for sure.
SAFE_SHARE = 0.99
# The automatic subsample: a tenth of the rows within these sizes, at most a third
# (its rows cannot be left out).
SUBSAMPLE_SIZES = 500, 2000
MOST_COMPONENTS = 100


@dataclass(frozen=True, eq=False)
class Preconditioner(ComparesArrays):
    """P g = g - vectors (damping * covectors' g), which leaves most directions as is.

    Attributes
    ----------
    rows : ndarray of int, shape (s,)
        The subsample that it was made from; none without directions.
    vectors : of shape (n_columns, q)
        e_j, orthonormal, as :meth:`Design.directions` gives them: an array, or, in
        dual coefficients, what they are on the subsample alone.
    covectors : ndarray of shape (n_columns, q) or None
        By which inner products with them are taken: the same array, or, in dual
        coefficients, the values of the e_j at the training rows. None where they are
        put away, until :meth:`on`.
    damping : ndarray of shape (q,)
        What P takes from each of them, less than 1.
    sample_eigenvalue : float
        What lambda_1 becomes, on the subsample.
    """

    rows: np.ndarray
    vectors: object = field(compare=False)
    covectors: np.ndarray | None
    damping: np.ndarray
    sample_eigenvalue: float = field(compare=False)

    @classmethod
    def of(cls, design, rows, n_components, rng, rounding=0.0):
        """The preconditioner of some rows of a design.

        Parameters
        ----------
        design : Design
        rows : ndarray of int, shape (s,)
        n_components : int
            q, less than s. Directions without a part in the rows are not used.
        rng : numpy Generator or RandomState
        rounding : float, default=0.0
            Eigenvalues up to that size are rounding.
        """
        sample = design.rows(rows)
        inner = sample.smaller_gram().astype(np.float64, copy=False) / len(rows)
        n_wanted = min(n_components + 1, len(inner))
        eigenvalues, vectors = top_eigenpairs(inner, n_wanted, rng)
        share = damped_shares(eigenvalues, rounding)
        top, following = eigenvalues[: len(share)], eigenvalues[len(share)]
        vectors = vectors[:, : len(share)]
        vectors = sample.directions(vectors, np.sqrt(len(rows) * top))
        return cls(
            # Without any direction the rows have no part in the run.
            rows=rows if len(share) else rows[:0],
            vectors=vectors,
            covectors=sample.covectors(vectors),
            damping=1 - share,
            sample_eigenvalue=float((top * share).max(initial=following)),
        )

    def put_away(self):
        """The preconditioner without the covectors, which :meth:`on` computes again."""
        return replace(self, covectors=None)

    def on(self, design):
        """The preconditioner that was put away, of the same design."""
        return replace(self, covectors=design.covectors(self.vectors))

    def dot(self, gradient):
        """P times (n_columns, ...)."""
        return self._with(self.damping, gradient)

    def root(self, coef):
        """The root of P times (n_columns, ...)."""
        return self._with(1 - np.sqrt(1 - self.damping), coef)

    def _with(self, taken, array):
        flat = array.reshape(len(array), -1)
        covectors = self.covectors.astype(array.dtype, copy=False)
        parts = taken[:, None].astype(array.dtype) * (covectors.T @ flat)
        vectors = self.vectors.astype(array.dtype, copy=False)
        return array - (vectors @ parts).reshape(array.shape)

    def features(self, design):
        """Linear predictors of the e_j, (n_rows, q), without a product with a kernel.

        With phi_i those of row i, P takes phi_i' damping phi_j from the inner
        product of rows i and j.
        """
        return design.evaluate(self.covectors)

    def top_eigenvalue(self, design, rng):
        """The largest eigenvalue of P design' design / n_rows, from above."""
        n_rows, product = design.shape[0], design.smaller_gram_dot()
        if design.side == "columns":

            def dot(coef):
                inner = self.root(product(self.root(coef)))
                return inner.astype(np.float64, copy=False) / n_rows

            start = rng.standard_normal(design.shape[1])
            return top_eigenvalue(dot, start, LANCZOS_TOLERANCE)
        features = self.features(design).astype(np.float64, copy=False)

        def dot(slopes):
            taken = features @ (self.damping[:, None] * (features.T @ slopes))
            return (product(slopes) - taken) / n_rows

        return top_eigenvalue(dot, rng.standard_normal(n_rows), LANCZOS_TOLERANCE)

    def squared_row_norms(self, design):
        """x_i' P x_i of every row, (n_rows,)."""
        return design.squared_row_norms() - (self.features(design) ** 2) @ self.damping


def damped_shares(eigenvalues, rounding=0.0):
    """The share of each direction that stays, (lambda_{q+1} / lambda_j)^a.

    Parameters
    ----------
    eigenvalues : ndarray of shape (q + 1,), descending
    rounding : float, default=0.0
        Eigenvalues up to that size are rounding, as are those with a small share of
        the top one.

    Returns
    -------
    ndarray
        One entry for each of the first q directions whose eigenvalue, and the one
        after it, are not rounding.
    """
    null = max(NULL_DIRECTION * eigenvalues[0], rounding)
    n_seen = np.count_nonzero(eigenvalues > null)
    q = max(0, min(len(eigenvalues), n_seen) - 1)
    return (eigenvalues[q] / eigenvalues[:q]) ** DAMPING_POWER


def automatic_subsample_size(n_rows):
    """A tenth of the rows within bounds, and never more than a third."""
    least, most = SUBSAMPLE_SIZES
    return max(1, min(n_rows // 3, max(least, n_rows // 10), most))


def check_sizes(size, n_components, n_rows):
    """Raise where a subsample has all rows, or not more rows than directions."""
    if size >= n_rows:
        raise ValueError(
            f"subsample_size must be less than the number of rows, {n_rows}: "
            f"rows of the subsample cannot be left out. Got {size}."
        )
    if n_components >= size:
        raise ValueError(
            "n_components must be less than the size of the subsample, "
            f"{size} of {n_rows} rows. Got {n_components}."
        )


def critical_batch_size(largest_diagonal, top_eigenvalue):
    """m* = beta / lambda + 1 (Ma, Bassily and Belkin 2018; EigenPro 2)."""
    return largest_diagonal / top_eigenvalue + 1 if top_eigenvalue > 0 else np.inf


def batch_step(largest_diagonal, top_eigenvalue, batch_size, critical):
    """The step of EigenPro 2, or the largest that is stable if that is less.

    m / beta up to the critical batch size, .99 * 2 m / (beta + (m - 1) lambda)
    beyond.
    """
    if top_eigenvalue <= 0:
        return 1.0
    if batch_size < critical:
        step = batch_size / largest_diagonal
    else:
        others = (batch_size - 1) * top_eigenvalue
        step = SAFE_SHARE * 2 * batch_size / (largest_diagonal + others)
    return min(step, SAFE_SHARE * 2 / top_eigenvalue)


def full_batch_step(top_eigenvalue):
    """The step with all rows at a time, 1 / lambda, half of that of EigenPro 2.

    Longer ones overshoot: the run rings in its top directions, and rings less without
    some of its rows, so that their estimate of it is too low.
    """
    return 1 / top_eigenvalue if top_eigenvalue > 0 else 1.0


def top_eigenpairs(matrix, n, rng):
    """The largest eigenvalues of a positive semi-definite matrix, descending.

    By randomised subspace iterations where they are few (Halko, Martinsson and
    Tropp 2011). The vectors v_j are orthonormal with v_j' matrix v_k = 0 to
    rounding in any case, which is what keeps the preconditioned kernel positive.

    Shapes: returned eigenvalues (n,), vectors (len(matrix), n).
    """
    size = n + N_MORE_VECTORS
    if size > len(matrix) / 4:
        eigenvalues, vectors = eigh(matrix)
    else:
        basis = rng.standard_normal((len(matrix), size))
        for _ in range(N_ROUNDS):
            basis, _ = qr(matrix @ basis, mode="economic")
        eigenvalues, vectors = eigh(basis.T @ (matrix @ basis))
        vectors = basis @ vectors
    return np.maximum(eigenvalues[::-1][:n], 0), vectors[:, ::-1][:, :n]
