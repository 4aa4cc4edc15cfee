"""Does ``time_limit`` hold, and how good is what it leaves, beside FLAML's budget?"""

from importlib.util import find_spec

import numpy as np
from sklearn.metrics import log_loss, root_mean_squared_error

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from ..framework import header, line, seconds

LIMITS = (1, 5, 20)
N_TRAINING, N_TEST, N_COLUMNS = 50_000, 20_000, 30
HAS_FLAML = find_spec("flaml") is not None


def drawn(seed, n_rows):
    """Numbers from linear, smooth and product effects of ten columns, and noise.

    Returns
    -------
    X : ndarray of shape (n_rows, 30)
    mean, y : ndarray of shape (n_rows,)
        The noise has standard deviation one.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, N_COLUMNS))
    mean = X[:, 0] - 0.5 * X[:, 1] + 0.5 * X[:, 2]
    mean += np.sin(2 * X[:, 3]) + np.abs(X[:, 4]) + X[:, 5] * X[:, 6]
    mean += (X[:, 7] > 0) * X[:, 8] + 0.3 * X[:, 9] ** 2
    return X, mean, mean + rng.standard_normal(n_rows)


def of_numbers(model, X, y):
    return root_mean_squared_error(y, model.predict(X))


def of_classes(model, X, y):
    return log_loss(y, model.predict_proba(X))


def flaml(task, limit):
    """FLAML with a budget of seconds, on one core."""
    from flaml import AutoML

    metric = "rmse" if task == "regression" else "log_loss"
    settings = {"time_budget": limit, "metric": metric, "n_jobs": 1, "seed": 0}
    return AutoML(task=task, verbose=0, **settings)


def time_limits():
    """Seconds and errors of the default call under a time limit.

    50,000 x 30 simulated rows train, 20,000 test: eight effects of ten columns, linear,
    smooth, products and a step, with noise of standard deviation one; for classes
    whether a target is above the median. ``SelfStoppingRegressor(time_limit=...)`` and
    ``SelfStoppingClassifier(time_limit=...)``, and FLAML with the same
    ``time_budget``, in one process with as many threads as OMP_NUM_THREADS says:
    seconds of ``fit`` from its start to its end, root mean squared error or log loss of
    the test rows, and the members that were run, with their numbers of iterates. The
    true mean has a root mean squared error of 1. A warm-up on 200 rows comes first.
    """
    X, _, y = drawn(0, N_TRAINING)
    X_test, _, y_test = drawn(1, N_TEST)
    middle = np.median(y)
    tasks = (
        ("regression", SelfStoppingRegressor, of_numbers, y, y_test),
        (
            "classification",
            SelfStoppingClassifier,
            of_classes,
            (y > middle).astype(int),
            (y_test > middle).astype(int),
        ),
    )
    theirs = ("FLAML: seconds", "error") if HAS_FLAML else ()
    yield from header("task", "limit, s", "skacv: seconds", "error", "members", *theirs)
    for task, kind, error, target, target_test in tasks:
        kind(random_state=0).fit(X[:200], target[:200])
        for limit in LIMITS:
            elapsed, model = seconds(
                kind(time_limit=limit, random_state=0).fit, X, target
            )
            cells = [f"{elapsed:.2f}", f"{error(model, X_test, target_test):.3f}"]
            cells.append(_members_of(model))
            if HAS_FLAML:
                peer = flaml(task, limit)
                elapsed, _ = seconds(peer.fit, X, target)
                cells += [f"{elapsed:.2f}", f"{error(peer, X_test, target_test):.3f}"]
            yield line(task, limit, *cells)


def _members_of(model):
    """Members with their number of iterates."""
    rows = zip(
        model.results_["member"], model.results_["n_iter"], model.results_["left_out"]
    )
    return ", ".join(f"{name} {n_iter}" for name, n_iter, why in rows if not why)
