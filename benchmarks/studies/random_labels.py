"""How exact is leave-one-out by random labels? Against exact runs of a kernel."""

import numpy as np

from skacv import KernelEigenProRegressor

from ..data import three_directions
from ..framework import header, line


def random_labels():
    """Leave-one-out of a kernel run from random labels, against exact runs.

    10,000 rows, d=50, in batches. Mean squared error of 600 of the rows by the run that
    never takes their gradient, and by 40 random labels, there not corrected for what
    the labels add; loo_path_ of all rows with its standard error on their account; and
    4000 test rows.
    """
    X, y = three_directions(14_000)
    X, y, X_test, y_test = X[:10_000], y[:10_000], X[10_000:], y[10_000:]
    settings = {"gamma": "scale", "patience": None, "max_iter": 20, "random_state": 0}
    exact = KernelEigenProRegressor(loo=600, **settings).fit(X, y)
    probed = KernelEigenProRegressor(**settings).fit(X, y)
    index = np.searchsorted(probed.loo_indices_, exact.loo_indices_)
    ours = probed.loo_prediction_path_[:, index] - exact.loo_target_
    test = [np.mean((z - y_test) ** 2) for z in probed.staged_predict(X_test)]
    columns = "exact, 600 rows", "labels, these", "labels, all", "s.e.", "test"
    yield from header("epoch", *columns)
    for t in (1, 2, 4, 6, 10, 15, 20):
        cells = (
            exact.loo_path_[t],
            np.mean(ours[t] ** 2),
            probed.loo_path_[t],
            probed.loo_mc_se_path_[t],
            test[t],
        )
        yield line(t, *(f"{cell:.4f}" for cell in cells))
