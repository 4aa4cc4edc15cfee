"""Members of blends, fitted alone, and what a blend makes of them, by hand."""

from itertools import combinations

import numpy as np
from scipy.special import softmax
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils import check_random_state

from skacv import (
    IterativeRidge,
    KernelEigenProClassifier,
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
    TrajectoryRegressor,
)
from skacv.optim.families import Weighted
from skacv.optim.penalties import L1
from tests.internals import greedy_weights

from ..cases import left_out_parts

FOLDS = KFold(5, shuffle=True, random_state=0)


def members():
    return [
        ("lasso", TrajectoryLasso("path", max_iter=10)),
        ("ridge", IterativeRidge(0.0, max_iter=30)),
        ("kernel", KernelEigenProRegressor(gamma=0.3, n_components=0, random_state=0)),
    ]


def classifiers():
    return [
        ("logistic", TrajectoryLogisticRegression(max_iter=60)),
        (
            "kernel",
            KernelEigenProClassifier(gamma=0.5, n_components=0, random_state=0),
        ),
    ]


def blended(estimator, X, y, cls=TrajectoryEarlyStoppingCV, **settings):
    params = {k: settings.pop(k) for k in ("sample_weight", "groups") if k in settings}
    settings = {"random_state": 7, "patience": None, **settings}
    return cls(estimator, rule="blend", **settings).fit(X, y, **params)


def is_blended(model):
    """Whether several models predict, and no one model of averaged coefficients."""
    return type(model.estimator_).__name__.startswith("Blended")


def probabilities_at(fitted, t, decision):
    """Probabilities of decisions of iterate t of a classifier, (n_rows, n_classes)."""
    scale = getattr(fitted.at_iteration(t), "probability_scale_", 1.0)
    if decision.ndim == 1:
        decision = np.stack([0 * decision, decision], axis=1)
    return softmax(scale * decision, axis=1)


def alone(pairs, X, y, cv=FOLDS, **weights):
    """Members fitted by themselves on the same folds."""
    fitted = {}
    for name, member in pairs:
        member = clone(member).set_params(cv=cv, loo=False)
        if "risk" in member.get_params():
            member.set_params(risk=False)
        fitted[name] = member.fit(X, y, **weights)
    return fitted


def in_order(fitted):
    """Held-out predictions of every iterate, (n_iterates, n_rows), row by row."""
    order = np.argsort(np.hstack(fitted.cv_indices_), kind="stable")
    return fitted.cv_prediction_path_[:, order]


def held_out_errors(fitted, y):
    """Held-out errors of the best iterate of every member, (n_rows, n_members)."""
    best = [in_order(each)[each.cv_path_.argmin()] for each in fitted.values()]
    return np.stack(best, axis=1) - y[:, None]


def by_supports(errors, rows):
    """The weights of least squared error: the best over all sets of members."""
    n_members, found = errors.shape[1], []
    gram = errors.T @ (errors * rows[:, None])
    for size in range(1, n_members + 1):
        for support in combinations(range(n_members), size):
            own = np.ix_(support, support)
            # Stationary on the plane where weights have sum one.
            weights = np.linalg.solve(gram[own], np.ones(size))
            weights /= weights.sum()
            if (weights >= 0).all():
                every = np.zeros(n_members)
                every[list(support)] = weights
                found.append((every @ gram @ every, every))
    return min(found, key=lambda pair: pair[0])[1]


def greedily(loss_of, n_members):
    """By the loss of one combination at a time."""
    return greedy_weights(lambda tried: [loss_of(each) for each in tried], n_members)


def two_classes(rng):
    """A line and a wave as in ``data``, and labels."""
    X = rng.standard_normal((200, 6))
    odds = X[:, 0] + 1.5 * np.sin(2 * X[:, 1]) + 0.7 * rng.logistic(size=200)
    return X, (odds > 0).astype(int)


def counts(rng):
    X = rng.standard_normal((100, 3))
    mean = np.exp(0.6 * X[:, 0] - 0.6 * X[:, 1])
    return X, rng.poisson(mean).astype(float)


def pairs_of_counts():
    """Each lacks a column of which the other has the coefficient."""
    lacking = [[1e3, 1, 1], [1, 1e3, 1]]
    return [
        (
            f"without {k}",
            TrajectoryRegressor(
                0.01, loss="poisson", penalty=Weighted(L1(1.0), own), max_iter=60
            ),
        )
        for k, own in enumerate(lacking)
    ]


def folds_of(cv, X, y):
    fold = np.empty(len(y), dtype=int)
    for number, (_, judged) in enumerate(cv.split(X, y)):
        fold[judged] = number
    return fold


def mean_over_folds(losses, fold, rows):
    """The mean of losses, and its standard error over folds."""
    own = range(fold.max() + 1)
    means = [np.average(losses[fold == k], weights=rows[fold == k]) for k in own]
    share = np.array([rows[fold == k].sum() for k in own]) / rows.sum()
    mean, n = share @ means, len(means)
    return mean, np.sqrt(np.sum((share * (means - mean)) ** 2) * n / (n - 1))


def by_loops(
    losses, predictions, y, loss_of, find, n_drawn_before=1, seed=7, classes=None
):
    """Blend without each part of the rows, judge by that part, row by row.

    ``losses`` of every member are (n_iterates, n_rows), and ``predictions`` too, or
    with outputs behind.
    """
    rng, n_rows = check_random_state(seed), len(y)
    for _ in range(n_drawn_before):
        rng.randint(2**31 - 1)
    judged = [[] for _ in range(n_rows)]
    # As many blends as there is time for.
    for part in list(left_out_parts(n_rows, rng, classes))[:50]:
        rows = np.setdiff1d(np.arange(n_rows), part)
        best = [own[:, rows].mean(axis=1).argmin() for own in losses]
        chosen = np.stack([own[t] for own, t in zip(predictions, best)], axis=-1)
        blend = chosen @ find(chosen[rows], y[rows])
        for i in part:
            judged[i].append(loss_of(y[i], blend[i]))
    return np.mean([np.mean(each) for each in judged])
