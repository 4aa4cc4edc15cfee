"""EigenPro in its dual form, as published; nothing here is shared with the package."""

import numpy as np


def kernel_matrix(name, X, Z, gamma, degree=3, coef0=1.0):
    """Kernels by their definition, difference by difference."""
    squared = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    return {
        "rbf": np.exp(-gamma * squared),
        "laplacian": np.exp(-gamma * np.sqrt(squared)),
        "matern": (1 + gamma * np.sqrt(squared)) * np.exp(-gamma * np.sqrt(squared)),
        "cauchy": 1 / (1 + gamma * squared),
        "polynomial": (gamma * X @ Z.T + coef0) ** degree,
    }[name]


def preconditioner(K, rows, n_components, power=0.95):
    """V and d of EigenPro 2 for a subsample."""
    s = len(rows)
    values, vectors = np.linalg.eigh(K[np.ix_(rows, rows)] / s)
    values, vectors = values[::-1], vectors[:, ::-1]
    top = values[:n_components]
    if not n_components:
        return np.zeros((s, 0)), top
    return vectors[:, :n_components], (1 - (values[n_components] / top) ** power) / (
        s * top
    )


def preconditioned(K, rows, n_components):
    """K_P, the whole matrix."""
    V, d = preconditioner(K, rows, n_components)
    features = K[:, rows] @ V
    return K - (features * d) @ features.T


def dual_path(K, target, model, n_epochs, sees=None):
    """Dual coefficients of every epoch, by the schedule of a fitted model.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    target : ndarray of shape (n, k)
    model : fitted estimator
        Its batches, step, subsample and number of directions are taken.
    n_epochs : int
    sees : ndarray of bool, shape (n,) or (n, k)
        Rows whose gradient is taken, of every column; the preconditioner is kept.

    Returns
    -------
    ndarray of shape (n_epochs + 1, n, k)
    """
    rows = model.subsample_indices_
    V, d = preconditioner(K, rows, model.n_components_)
    sees = np.ones(len(K), dtype=bool) if sees is None else sees
    sees = sees.reshape(len(K), -1)
    alpha = np.zeros(target.shape)
    path = [alpha.copy()]
    for _ in range(n_epochs):
        for batch in model.batch_indices_:
            share = model.step_size_ / len(batch)
            gradient = (K[batch] @ alpha - target[batch]) * sees[batch]
            alpha[batch] -= share * gradient
            alpha[rows] += (
                share * V @ (d[:, None] * (V.T @ K[np.ix_(rows, batch)] @ gradient))
            )
        path.append(alpha.copy())
    return np.array(path)


def left_out(K, target, model, n_epochs, rows):
    """Predictions of every epoch for rows whose gradient it never takes."""
    everyone_else = np.arange(len(K))[:, None] != rows
    found = []
    for y in target.T:
        copies = np.repeat(y[:, None], len(rows), axis=1)
        path = dual_path(K, copies, model, n_epochs, everyone_else)
        found.append(np.einsum("jr,tjr->tr", K[:, rows], path))
    return np.stack(found, axis=2)
