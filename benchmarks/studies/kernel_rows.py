"""Do kernel machines get better with more rows than can all be centres?"""

import numpy as np

from skacv import KernelEigenProRegressor

from ..framework import header, line

N_COLUMNS, N_TEST, NOISE = 30, 5000, 0.3
SIZES = 1000, 2000, 3000, 4000, 8000, 16_000
TARGETS = {
    "sin(2 x0) + x1 x2": lambda X: np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2],
    "tanh(x0 + x1) + x2 / 2": lambda X: np.tanh(X[:, 0] + X[:, 1]) + X[:, 2] / 2,
}
# The kernel that needs most centres also has so many.
MOST_ROWS = {"laplacian": 50_000}
KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": 0.01},
    "laplacian": {"kernel": "laplacian", "gamma": 0.02},
    "matern": {"kernel": "matern", "gamma": 0.1},
}


def drawn(function, n_rows):
    """Training rows, whose first ones are those of smaller tables, and test rows."""
    rng = np.random.default_rng(0)
    X_test = rng.standard_normal((N_TEST, N_COLUMNS))
    X = rng.standard_normal((max(*SIZES, n_rows), N_COLUMNS))
    y = function(X) + NOISE * rng.standard_normal(len(X))
    return X[:n_rows], y[:n_rows], X_test, function(X_test)


def kernel_rows(sizes=SIZES):
    """Error of kernel machines by rows.

    Thirty standard normal columns, noise of standard deviation .3; the rows of smaller
    tables are among those of the larger ones. Mean squared distance to the function on
    5000 new rows, the number of centres in brackets. `KernelEigenProRegressor`, stopped
    by its patience: "rbf" with gamma=.01, "laplacian" with gamma=.02, "matern" with
    gamma=.1; the second also with 50,000 rows.
    """
    yield from header("function", "kernel", *sizes, *MOST_ROWS.values())
    for name, function in TARGETS.items():
        for kernel, settings in KERNELS.items():
            cells = []
            for n_rows in [*sizes, *filter(None, [MOST_ROWS.get(kernel)])]:
                X, y, X_test, truth = drawn(function, n_rows)
                model = KernelEigenProRegressor(random_state=0, **settings).fit(X, y)
                error = np.mean((model.predict(X_test) - truth) ** 2)
                cells.append(f"{error:.4f} ({len(model.dual_coef_)})")
            cells += [""] * (len(sizes) + len(MOST_ROWS) - len(cells))
            yield line(name, kernel, *cells)
    yield ""
