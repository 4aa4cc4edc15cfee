"""The fixed preconditioner of EigenPro, and the batches and steps that it allows.

Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective large
batch training" (EigenPro 2). With S a subsample of s rows and eigenpairs
(lambda_j, v_j) of K_SS / s, the kernel becomes

    k_P(x, z) = k(x, z) - k(x, S) V diag(d) V' k(S, z),
    d_j = (1 - (lambda_{q+1} / lambda_j)^a) / (s lambda_j),    a = .95,

so that its q top directions are brought down to about the next one.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..optim.preconditioner import damped_shares, top_eigenpairs


@dataclass(frozen=True)
class Preconditioner:
    """Directions of a subsample that are taken out of the kernel in part.

    Attributes
    ----------
    rows : ndarray of int, shape (s,)
        The subsample S that it was made from; none without directions.
    vectors : ndarray of shape (s, q)
        V, orthonormal.
    damping : ndarray of shape (q,)
        d.
    features : ndarray of shape (n_rows, q) or None
        k(X, S) V; None where only the others are kept, until :meth:`on`.
    top_eigenvalue : float
        What lambda_1 becomes, on the subsample.
    """

    rows: np.ndarray
    vectors: np.ndarray
    damping: np.ndarray
    features: np.ndarray | None
    top_eigenvalue: float

    @classmethod
    def of(cls, gram, rows, n_components, rng):
        """The preconditioner of a kernel matrix.

        Parameters
        ----------
        gram : KernelMatrix
        rows : ndarray of int, shape (s,)
        n_components : int
            q, less than s. Directions without a part in the kernel are not used.
        rng : numpy.random.RandomState
        """
        n_rows = len(rows)
        values = gram.square(rows).astype(np.float64) / n_rows
        eigenvalues, vectors = top_eigenpairs(values, n_components + 1, rng)
        share = damped_shares(eigenvalues)
        top, following = eigenvalues[: len(share)], eigenvalues[len(share)]
        # Without any direction the rows have no part in the run.
        n_seen = n_rows if len(share) else 0
        found = cls(
            rows=rows[:n_seen],
            vectors=vectors[:n_seen, : len(share)],
            damping=(1 - share) / (n_rows * top),
            features=None,
            top_eigenvalue=float((top * share).max(initial=following)),
        )
        return found.on(gram)

    def on(self, gram):
        """With the features of the rows of a kernel matrix."""
        features = gram.dot(self.rows, self.vectors).astype(np.float64)
        return replace(self, features=features)

    def dual_part(self, coef):
        """What coefficients (n_rows, n_columns) of k_P take off those of S.

        Returns
        -------
        ndarray of shape (s, n_columns)
        """
        return self.vectors @ (self.damping[:, None] * (self.features.T @ coef))

    def square_product(self, gram, rows):
        """How to multiply with the preconditioned kernel matrix between some rows."""
        plain, features = gram.square_product(rows), self.features[rows]

        def product(coef):
            taken = features @ (self.damping[:, None] * (features.T @ coef))
            return plain(coef) - taken

        return product

    def diagonal(self, gram):
        """k_P(x, x) of every row, (n_rows,)."""
        return gram.diagonal - (self.features**2) @ self.damping
