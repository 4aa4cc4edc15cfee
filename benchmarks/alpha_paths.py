"""A lasso's alpha and iteration from one run against LassoCV."""

from collections import defaultdict
from functools import partial

import numpy as np
import sklearn
from sklearn.linear_model import LassoCV

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLasso

from .data import sparse_regression, true_risk
from .timing import seconds

HELD_OUT = {"loo": ">= 1", "cv": ">= 1", "auto": ">= 1"}


def large(n_seeds):
    return alpha_path(2000, 3000, 200, {"risk": ">= 5", **HELD_OUT}, 10, n_seeds)


def small(n_seeds):
    return alpha_path(500, 2000, 50, {"risk": ">= 1", **HELD_OUT}, 20, n_seeds)


def alpha_path(n, p, n_nonzero, asked, max_iter, n_seeds):
    """All alphas in one trajectory, stopped by every criterion, against LassoCV.

    ``max_iter`` and twice that for patience are those of the held-out criteria.
    """
    patience = 2 * max_iter

    def stopping(criterion, max_iter, patience, **held_out):
        inner = TrajectoryLasso("path", max_iter=max_iter, random_state=0, **held_out)
        return TrajectoryEarlyStoppingCV(inner, criterion=criterion, patience=patience)

    criteria = {
        "risk": stopping("risk", 20, None),
        "loo": stopping("loo", max_iter, patience, loo=True),
        "cv": stopping("cv", max_iter, patience, cv=10),
        "auto": stopping("auto", max_iter, "auto"),
    }
    settings = f"max_iter={max_iter}, patience={patience},"
    works = {
        "risk": "risk_path_, max_iter=20,",
        "loo": f"exact loo_path_ of all rows, {settings}",
        "cv": f"cv_path_ of 10 folds, {settings}",
        "auto": f"max_iter={max_iter}, the criterion and patience of default,",
    }
    times, risks = defaultdict(list), defaultdict(list)
    for seed in range(n_seeds):
        X, y, beta = sparse_regression(n, p, n_nonzero, seed)
        for name, model in {"LassoCV": lasso_cv(), **criteria}.items():
            elapsed, _ = seconds(partial(model.fit, X, y))
            times[name].append(elapsed)
            risks[name].append(true_risk(model.coef_, model.intercept_, beta))
    theirs = np.array(times["LassoCV"])
    for name, work in works.items():
        worse = np.divide(risks[name], risks["LassoCV"])
        yield (
            f'alpha="path" with {work} and stop, {n} x {p}, median of {n_seeds} seeds',
            "LassoCV(cv=5, 30 alphas)",
            np.median(times[name]),
            np.median(theirs),
            float(np.median(theirs / times[name])),
            asked[name],
            f"true risk {np.median(worse):.3f} of its (<= 1.02), at most "
            f"{worse.max():.3f}",
        )


def lasso_cv():
    """LassoCV with 30 alphas; the parameter's name changed in 1.7."""
    name = "alphas" if sklearn.__version__ >= "1.7" else "n_alphas"
    return LassoCV(cv=5, **{name: 30})
