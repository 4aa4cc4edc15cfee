"""Studies of kernel machines."""

from unittest.mock import patch

import numpy as np
from sklearn.datasets import load_diabetes, load_digits
from sklearn.model_selection import train_test_split

from skacv import KernelEigenProRegressor
from skacv.optim import preconditioner

from ..data import three_directions
from ..framework import header, line, study


@study()
def damping():
    """EigenPro's damping: the share tau of the next eigenvalue, or a power of it.

    The preconditioner leaves direction j the eigenvalue lambda_{q+1}^a lambda_j^(1-a)
    times tau. EigenPro (2017) has a = 1 and a damping factor tau of at most 1; EigenPro
    2 (2019) has a = .95 and tau = 1, as skacv does. Gaussian kernel of gamma="scale",
    batches of 128 rows, 60 epochs, 30% of the rows for the test; errors are in units of
    the targets' variance.
    """
    X, digits = load_digits(return_X_y=True)
    data = {"digits": (X, np.eye(10)[digits])}
    data["diabetes"] = load_diabetes(return_X_y=True)
    data["three directions"] = three_directions(3000)
    columns = "a", "tau", "step", "training error, epoch 1", "least test error", "at"
    yield from header("data", *columns, "within 1% of it at")
    shares = preconditioner.damped_shares
    for name, (X, y) in data.items():
        y = (y - y.mean(axis=0)) / y.std()
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
        for power, tau in (
            (0.95, 1.0),
            (1.0, 1.0),
            (1.0, 0.95),
            (1.0, 0.9),
            (1.0, 0.5),
        ):

            def damped(values, rounding=0.0, power=power, tau=tau):
                return tau * shares(values, rounding, power=power)

            model = KernelEigenProRegressor(
                gamma="scale",
                solver="eigenpro",
                batch_size=128,
                fit_intercept=False,
                max_iter=60,
                patience=None,
                loo=False,
                random_state=0,
            )
            with patch.object(preconditioner, "damped_shares", damped):
                model.fit(X, y)
            staged = model.staged_predict(X_test)
            test = np.array([np.mean((z - y_test) ** 2) for z in staged])
            near = np.argmax(test <= 1.01 * test.min())
            first = f"{model.train_path_[1]:.4f}"
            least = f"{test.min():.4f}"
            step = f"{model.step_size_:.1f}"
            yield line(name, power, tau, step, first, least, test.argmin(), near)
