"""Are linear classifiers that stop themselves faster than a grid over C, as good?

Against ``GridSearchCV`` of scikit-learn's models in five folds: no slower, at no larger
loss on test rows, on many rows, on wide data and on ten classes.
"""

from functools import partial

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from skacv import (
    TrajectoryEarlyStoppingCV,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)

from ..framework import race
from ..real_data import halves, shipped
from .lasso import memory_row

# Rows, columns, and how many times as fast as a grid of C.
TALL = (20_000, 50, ">= 3"), (100_000, 20, ">= 3")
TALLEST = 1_000_000, 20
WIDE = (36, 7070), (62, 2000)
TUNED_LOGISTIC = "GridSearchCV(LogisticRegression, 12 values of C, 5 folds, log loss)"
WARM_LOGISTIC = "LogisticRegressionCV(12 values of C, 5 folds, log loss)"
DIGITS = "digits, 898 x 64, 10 classes"


def two_classes(n, p, n_test, n_known, scale):
    """Two classes that some columns know, and rows to test."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n + n_test, p))
    score = scale * X[:, :n_known].sum(axis=1)
    y = (rng.random(len(X)) < expit(score)).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def digits():
    """Half of the digits to fit on, half to test, columns standardised."""
    return halves(partial(shipped, load_digits), 0, stratified=True)


def tuned_logistic():
    """Twelve values of C, each fitted from zero."""
    grid = {"C": np.logspace(-4, 4, 12)}
    peer = LogisticRegression(max_iter=1000)
    return GridSearchCV(peer, grid, cv=5, scoring="neg_log_loss")


def warm_logistic():
    """The same, where a value of C starts at the solution for the one before."""
    return LogisticRegressionCV(
        Cs=np.logspace(-4, 4, 12), cv=5, scoring="neg_log_loss", max_iter=1000
    )


def against_logistic(work, ours, opponent, data, required, accuracy, repeats=3):
    """A row against an opponent (what to call it, and the model), with log losses."""
    X, y, X_test, y_test = data
    against, theirs = opponent

    def said(*models):
        return accuracy(*(log_loss(y_test, m.predict_proba(X_test)) for m in models))

    fits = partial(ours.fit, X, y), partial(theirs.fit, X, y)
    return race(work, against, *fits, required, said, repeats)


def tall(shapes=TALL, tallest=TALLEST):
    """A path of C on many rows of two classes, against cross-validation."""
    logistic = TrajectoryLogisticRegression("path", max_iter=30, tol=1e-4)
    ours, said = TrajectoryEarlyStoppingCV(logistic), "test log loss {:.4f}, its {:.4f}"
    work = 'TrajectoryLogisticRegression("path") and stop, {} x {}, 2 classes'.format
    for n, p, required in shapes:
        data, peer = two_classes(n, p, n, 5, 1.0), (TUNED_LOGISTIC, tuned_logistic())
        yield against_logistic(work(n, p), ours, peer, data, required, said.format)
        yield memory_row(ours, *data[:2], "<= 8")
    n, p = tallest
    data, peer = two_classes(n, p, n // 10, 5, 1.0), (WARM_LOGISTIC, warm_logistic())
    yield against_logistic(work(n, p), ours, peer, data, ">= 1", said.format)
    yield memory_row(ours, *data[:2], "<= 1.5")


def logistic(shapes=WIDE):
    """Wide data of two classes, and ten classes, against cross-validation."""
    sets = {
        f"{n} x {p}, 2 classes": two_classes(
            n, p, 10 * n, p // 100, 4 / np.sqrt(p // 100)
        )
        for n, p in shapes
    }
    ours = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression("path", max_iter=60))
    for name, data in {**sets, DIGITS: digits()}.items():
        work = f'TrajectoryLogisticRegression("path", max_iter=60), stopped, {name}'
        said = "test log loss {:.3f} (<= {:.3f}, its)".format
        peer = TUNED_LOGISTIC, tuned_logistic()
        yield against_logistic(work, ours, peer, data, ">= 1", said)


def linear_svc():
    """A linear SVM of ten classes against a grid of six values of C."""
    X, y, X_test, y_test = digits()
    theirs = GridSearchCV(LinearSVC(max_iter=10_000), {"C": np.logspace(-4, 1, 6)})
    ours = TrajectoryEarlyStoppingCV(TrajectoryLinearSVC())

    def said(*models):
        errors = [1 - model.score(X_test, y_test) for model in models]
        return "test error {:.2%}, its {:.2%}".format(*errors)

    yield race(
        f"TrajectoryLinearSVC(), stopped, {DIGITS}",
        "GridSearchCV(LinearSVC, 6 values of C, 5 folds)",
        partial(ours.fit, X, y),
        partial(theirs.fit, X, y),
        ">= 1",
        said,
        repeats=1,
    )
