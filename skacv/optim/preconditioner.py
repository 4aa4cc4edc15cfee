"""EigenPro's preconditioner, which damps the top eigenvectors of a subsample.

Ma and Belkin (2017), "Diving into the shallows: a computational perspective on
large-scale shallow learning"; Ma and Belkin (2019), "Kernel machines that adapt to
GPUs for effective large batch training" (EigenPro 2). With (lambda_j, e_j) the top
eigenpairs of the second moments of a subsample of the rows,

    P = I - sum_{j <= q} (1 - (lambda_{q+1} / lambda_j)^a) e_j e_j',    a = .95,

multiplies every gradient, so that the top q eigenvectors no longer limit the step. The
e_j have norm one in the inner product of the design, which for a kernel is that of the
function space (coefficients are dual).
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.linalg import eigh, qr

from .design import top_eigenvalue
from .equality import ComparesArrays
from .kernel import ScatteredVectors

# The automatic subsample: a tenth of the rows within these sizes, at most a third
# (its rows cannot be left out).
SUBSAMPLE_SIZES = 500, 2000
MOST_COMPONENTS = 100


@dataclass(frozen=True, eq=False)
class Preconditioner(ComparesArrays):
    """P g = g - vectors (damping * covectors' g): it changes q directions only.

    Shapes: rows (s,) of int; vectors, covectors (n_columns, q); damping (q,)."""

    rows: np.ndarray
    vectors: np.ndarray | ScatteredVectors = field(compare=False)
    covectors: np.ndarray
    damping: np.ndarray
    sample_eigenvalue: float = field(compare=False)

    @classmethod
    def of(cls, design, rows, n_components, rng, rounding=0.0):
        """The preconditioner computed from ``rows``, (s,), of a design."""
        sample = design.rows(rows)
        inner = sample.smaller_gram().astype(np.float64, copy=False) / len(rows)
        n_eigenpairs = min(n_components + 1, len(inner))
        eigenvalues, vectors = top_eigenpairs(inner, n_eigenpairs, rng)
        share = damped_shares(eigenvalues, rounding)
        top, next_eigenvalue = eigenvalues[: len(share)], eigenvalues[len(share)]
        vectors = vectors[:, : len(share)]
        vectors = sample.directions(vectors, np.sqrt(len(rows) * top))
        return cls(
            # With q = 0 the run does not depend on these rows.
            rows=rows if len(share) else rows[:0],
            vectors=vectors,
            covectors=sample.covectors(vectors),
            damping=1 - share,
            sample_eigenvalue=float((top * share).max(initial=next_eigenvalue)),
        )

    def dot(self, gradient):
        """P times an array (n_columns, ...)."""
        return self._damp(self.damping, gradient)

    def root(self, coef):
        """The square root of P times an array (n_columns, ...)."""
        return self._damp(1 - np.sqrt(1 - self.damping), coef)

    def _damp(self, damping, array):
        flat = array.reshape(len(array), -1)
        covectors = self.covectors.astype(array.dtype, copy=False)
        projections = damping[:, None].astype(array.dtype) * (covectors.T @ flat)
        vectors = self.vectors.astype(array.dtype, copy=False)
        return array - (vectors @ projections).reshape(array.shape)

    def features(self, design):
        """Linear predictors (n_rows, q) of the e_j; a kernel needs no product."""
        return design.evaluate(self.covectors)

    def top_eigenvalue(self, design, rng, tolerance=1e-2):
        """An upper bound of the largest eigenvalue of P design' design / n_rows."""
        n_rows, product = design.shape[0], design.smaller_gram_dot()
        if design.side == "columns":

            def dot_coef(coef):
                inner = self.root(product(self.root(coef)))
                return inner.astype(np.float64, copy=False) / n_rows

            start = rng.standard_normal(design.shape[1])
            return top_eigenvalue(dot_coef, start, tolerance)
        features = self.features(design).astype(np.float64, copy=False)

        def dot_slopes(slopes):
            damped = features @ (self.damping[:, None] * (features.T @ slopes))
            return (product(slopes) - damped) / n_rows

        return top_eigenvalue(dot_slopes, rng.standard_normal(n_rows), tolerance)

    def squared_row_norms(self, design):
        """x_i' P x_i of every row, (n_rows,)."""
        return design.squared_row_norms() - (self.features(design) ** 2) @ self.damping


def damped_shares(eigenvalues, rounding=0.0, power=0.95, null=1e-6):
    """Shares 1 - damping, (lambda_{q+1} / lambda_j)^a, (q,), of q + 1 eigenvalues."""
    # Smaller eigenvalues are rounding errors.
    null = max(null * eigenvalues[0], rounding)
    q = max(0, int(np.count_nonzero(eigenvalues > null)) - 1)
    return (eigenvalues[q] / eigenvalues[:q]) ** power


def automatic_subsample_size(n_rows):
    least, most = SUBSAMPLE_SIZES
    return max(1, min(n_rows // 3, max(least, n_rows // 10), most))


def check_subsample_sizes(size, n_components, n_rows):
    """Raise if a subsample has all rows, or not more rows than directions."""
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


def batch_step(largest_diagonal, top_eigenvalue, batch_size, critical, safety=0.99):
    """The step of EigenPro 2, or the largest stable one if that is less."""
    if top_eigenvalue <= 0:
        return 1.0
    if batch_size < critical:
        step = batch_size / largest_diagonal
    else:
        rest = (batch_size - 1) * top_eigenvalue
        step = safety * 2 * batch_size / (largest_diagonal + rest)
    return min(step, safety * 2 / top_eigenvalue)


def full_batch_step(top_eigenvalue):
    """The step of updates on all rows, 1 / lambda: half of that of EigenPro 2."""
    return 1 / top_eigenvalue if top_eigenvalue > 0 else 1.0


def top_eigenpairs(matrix, n, rng, n_extra=20, n_rounds=4):
    """The n largest eigenvalues of a semi-definite matrix, descending, and vectors."""
    size = n + n_extra
    if size > len(matrix) / 4:
        eigenvalues, vectors = eigh(matrix)
    else:
        basis = rng.standard_normal((len(matrix), size))
        for _ in range(n_rounds):
            basis, _ = qr(matrix @ basis, mode="economic")
        eigenvalues, vectors = eigh(basis.T @ (matrix @ basis))
        vectors = basis @ vectors
    return np.maximum(eigenvalues[::-1][:n], 0), vectors[:, ::-1][:, :n]
