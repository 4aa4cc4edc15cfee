"""How do kernel machines that stop themselves compare with Falkon's algorithm?

Falkon (Rudi, Carratino and Rosasco 2017, arXiv:1705.10958) minimises the error of
``KernelRidge`` over functions of random centres by conjugate gradients, with a
preconditioner from two Cholesky factors of the centres' kernel matrix. Here it is made
of SciPy's parts, and its penalty is chosen on a tenth of the rows. Both sides have the
same Gaussian kernel and one thread.
"""

from inspect import signature

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.metrics.pairwise import rbf_kernel
from threadpoolctl import threadpool_limits

from skacv import KernelEigenProRegressor, TrajectoryEarlyStoppingCV

from .data import three_directions
from .framework import Row, arguments, report, seconds

ALPHAS = 10.0 ** np.arange(-8, -2)
N_ITERATIONS = 20  # of conjugate gradients, as published
N_TEST = 4000
# The relative tolerance was called "tol" before SciPy 1.12.
TOLERANCE = {"rtol" if "rtol" in signature(cg).parameters else "tol": 1e-10}


def falkon(K, root, y, alpha, n_iterations=N_ITERATIONS):
    """Coefficients of the centres, for the mean squared error plus alpha ||f||^2.

    K (n_rows, n_centers) is the kernel at rows and centres, ``root`` the upper Cholesky
    factor T of that at centres, M. With A'A = T T' / n_centers + alpha I and
    B = T^-1 A^-1, conjugate gradients solve B' (K'K / n_rows + alpha M) B b =
    B' K'y / n_rows, a system close to the identity, and the coefficients are B b.
    """
    n_rows, n_centers = K.shape
    A = cholesky(root @ root.T / n_centers + alpha * np.eye(n_centers))

    def precondition(vector):
        return solve_triangular(root, solve_triangular(A, vector))

    def transposed(vector):
        return solve_triangular(A, solve_triangular(root, vector, trans=1), trans=1)

    def dot(vector):
        coef = precondition(vector)
        penalty = alpha * root.T @ (root @ coef)
        return transposed(K.T @ (K @ coef) / n_rows + penalty)

    system = LinearOperator((n_centers, n_centers), matvec=dot)
    right = transposed(K.T @ y / n_rows)
    found, _ = cg(system, right, maxiter=n_iterations, **TOLERANCE)
    return precondition(found)


def tuned_falkon(X, y, n_centers, gamma, seed=0):
    """A function that predicts, its penalty chosen on a tenth of the rows."""
    rng = np.random.default_rng(seed)
    order, mean = rng.permutation(len(y)), y.mean()
    centers, out = X[order[:n_centers]], np.zeros(len(y), bool)
    out[order[-len(y) // 10 :]] = True
    K, M = rbf_kernel(X, centers, gamma), rbf_kernel(centers, gamma=gamma)
    root = cholesky(M + 1e-10 * n_centers * np.eye(n_centers))
    errors = []
    for alpha in ALPHAS:
        coef = falkon(K[~out], root, y[~out] - mean, alpha)
        errors.append(np.mean((y[out] - mean - K[out] @ coef) ** 2))
    coef = falkon(K, root, y - mean, ALPHAS[np.argmin(errors)])
    return lambda Z: mean + rbf_kernel(Z, centers, gamma) @ coef


def rows(sizes, n_centers):
    machines = {
        "centres by default": {},
        "EigenPro on all rows": {"n_centers": None, "memory_budget": 4000},
    }
    for n_rows in sizes:
        X, y = three_directions(n_rows + N_TEST)
        X, y, X_test, y_test = X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]
        gamma = 1 / (X.shape[1] * X.var())
        theirs, predict = seconds(tuned_falkon, X, y, n_centers, gamma)
        its = np.mean((predict(X_test) - y_test) ** 2)
        for name, settings in machines.items():
            model = KernelEigenProRegressor(gamma=gamma, random_state=0, **settings)
            model = TrajectoryEarlyStoppingCV(model)
            ours, _ = seconds(model.fit, X, y)
            error = np.mean((model.predict(X_test) - y_test) ** 2)
            shape = f"{n_rows} x {X.shape[1]}"
            work = f"KernelEigenProRegressor and stop, {name}, {shape}"
            against = f"Falkon, {n_centers} centres, {len(ALPHAS)} penalties, refit"
            said = (
                f"test error {error:.4f}, {error / its:.3f} of its; estimated "
                f"{model.best_score_:.4f}; stopped at epoch {model.best_iter_}"
            )
            yield "falkon", Row.speed(work, against, ours, theirs, said)


if __name__ == "__main__":
    args = arguments(__doc__, sizes=("20000",), centers=3000)
    with threadpool_limits(1):
        sizes = [int(size) for size in args.sizes]
        report("Beside Falkon", rows(sizes, args.centers), args.output)
