"""The fixed preconditioner of EigenPro, and the batches and steps that it allows.

Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective large
batch training" (EigenPro 2). With S a subsample of s rows and eigenpairs
(lambda_j, v_j) of K_SS / s, the kernel becomes

    k_P(x, z) = k(x, z) - k(x, S) V diag(d) V' k(S, z),
    d_j = (1 - (lambda_{q+1} / lambda_j)^a) / (s lambda_j),    a = .95,

so that its q top directions are brought down to about the next one.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

DAMPING_POWER = 0.95
# Directions with a smaller share of the top eigenvalue are rounding.
NULL_DIRECTION = 1e-6
# Randomised subspace iterations: more vectors than are wanted, and rounds.
N_MORE_VECTORS = 20
N_ROUNDS = 4
# Larger eigenproblems are solved by iterations.
DENSE_SIZE = 100
LANCZOS_TOLERANCE = 1e-2
LANCZOS_MARGIN = 1.02


@dataclass(frozen=True)
class Preconditioner:
    """Directions of a subsample that are taken out of the kernel in part.

    Attributes
    ----------
    rows : ndarray of int, shape (s,)
        The subsample S.
    vectors : ndarray of shape (s, q)
        V, orthonormal.
    damping : ndarray of shape (q,)
        d.
    features : ndarray of shape (n_rows, q)
        k(X, S) V.
    top_eigenvalue : float
        What lambda_1 becomes, on the subsample.
    """

    rows: np.ndarray
    vectors: np.ndarray
    damping: np.ndarray
    features: np.ndarray
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
        values = gram.square(rows) / n_rows
        eigenvalues, vectors = top_eigenpairs(values, n_components + 1, rng)
        n_seen = np.count_nonzero(eigenvalues > NULL_DIRECTION * eigenvalues[0])
        q = max(0, min(n_components, n_seen - 1))
        top, following = eigenvalues[:q], eigenvalues[q]
        share = (following / top) ** DAMPING_POWER
        vectors = vectors[:, :q]
        return cls(
            rows=rows,
            vectors=vectors,
            damping=(1 - share) / (n_rows * top),
            features=gram.dot(rows, vectors).astype(np.float64),
            top_eigenvalue=float((top * share).max(initial=following)),
        )

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


def top_eigenpairs(matrix, n, rng):
    """The largest eigenvalues of a positive semi-definite matrix, descending.

    By randomised subspace iterations where they are few (Halko, Martinsson and
    Tropp 2011). The vectors v_j are orthonormal with v_j' matrix v_k = 0 to
    rounding in any case, which is what keeps the preconditioned kernel positive.

    Returns
    -------
    eigenvalues : ndarray of shape (n,)
    vectors : ndarray of shape (len(matrix), n)
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


def top_eigenvalue(dot, size, rng):
    """The largest eigenvalue of a symmetric matrix of that size, from above.

    Parameters
    ----------
    dot : callable
        Product of the matrix with an array of shape (size, k).
    """
    if size <= DENSE_SIZE:
        return float(eigh(dot(np.eye(size)), eigvals_only=True)[-1])
    matrix = LinearOperator(
        (size, size), matvec=lambda v: dot(v.reshape(-1, 1))[:, 0], dtype=np.float64
    )
    start = rng.standard_normal(size)
    try:
        found = eigsh(
            matrix,
            k=1,
            v0=start,
            ncv=16,
            tol=LANCZOS_TOLERANCE,
            return_eigenvectors=False,
        )
    except ArpackNoConvergence as stopped:
        found = stopped.eigenvalues
    return float(found.max()) * LANCZOS_MARGIN
