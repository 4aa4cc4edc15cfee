"""Defaults against what users run today: tall, small, wide, many classes, kernels."""

import tracemalloc
from functools import partial

import numpy as np
from scipy.special import expit
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_digits, make_friedman1
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skacv import (
    KernelEigenProRegressor,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLinearSVC,
    TrajectoryLogisticRegression,
)

from .alpha_paths import lasso_cv
from .data import true_risk
from .real_data import digits_as_numbers, halves, split, with_products
from .timing import medians, seconds

LASSO = 'TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=20))'
TALL = (300_000, 50), (1_000_000, 20)
TALL_CLASSES = (20_000, 50), (100_000, 20)
WIDE = (36, 7070), (62, 2000)
TUNED_LOGISTIC = "GridSearchCV(LogisticRegression, 12 values of C, 5 folds, log loss)"


def stopped_lasso():
    """Alpha and the iteration from one run, by default."""
    return TrajectoryEarlyStoppingCV(TrajectoryLasso("path", max_iter=20))


def tall_data(n, p):
    """A tenth of the columns matter, with as much noise as signal."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    beta = np.zeros(p)
    beta[: p // 10] = 1 / np.sqrt(p // 10)
    return X, X @ beta + rng.standard_normal(n), beta


def tall():
    """Many more rows than columns, against LassoCV; and what memory it takes."""
    for n, p in TALL:
        X, y, beta = tall_data(n, p)
        (own, model), (theirs, peer) = medians(
            partial(stopped_lasso().fit, X, y), partial(lasso_cv().fit, X, y), repeats=3
        )
        risks = [true_risk(m.coef_, m.intercept_, beta) for m in (model, peer)]
        yield (
            f"{LASSO}, {n} x {p}",
            "LassoCV(cv=5, 30 alphas)",
            own,
            theirs,
            theirs / own,
            ">= 5",
            f"true risk {risks[0] / risks[1]:.4f} of its",
        )
        yield memory_row(stopped_lasso(), X, y, "<= 1.3")


def memory_row(model, X, y, asked):
    """What a fit has in use at most, besides its data."""
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return (
        f"its peak memory above the start, {X.shape[0]} x {X.shape[1]} (MB)",
        "X itself",
        1e-6 * peak,
        1e-6 * X.nbytes,
        peak / X.nbytes,
        asked,
        "",
    )


def squared_error(model, X, y):
    return float(np.mean((model.predict(X) - y) ** 2))


def small():
    """The regressions of ``make demo``, against LassoCV."""
    sets = {"diabetes with products": with_products, "digits": digits_as_numbers}
    for name, data in sets.items():
        X, y, X_test, y_test = split(data, 0, test_size=0.25)
        (own, model), (theirs, peer) = medians(
            partial(stopped_lasso().fit, X, y), partial(lasso_cv().fit, X, y), repeats=5
        )
        errors = [squared_error(m, X_test, y_test) for m in (model, peer)]
        yield (
            f"{LASSO}, {name}, {X.shape[0]} x {X.shape[1]}",
            "LassoCV(cv=5, 30 alphas)",
            own,
            theirs,
            theirs / own,
            ">= 1",
            f"test error {errors[0] / errors[1]:.3f} of its",
        )


def wide_classes(n, p):
    """Two classes that a hundredth of the columns know; ten times as many to test."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((11 * n, p))
    score = X[:, : p // 100].sum(axis=1) / np.sqrt(p // 100)
    y = (rng.random(len(X)) < expit(4 * score)).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def digits(seed):
    """Half of the digits to fit on, half to test, columns standardised."""
    return halves(lambda seed: load_digits(return_X_y=True), seed, stratified=True)


def tall_classes_data(n, p):
    """Two classes that five columns know, and as many rows to test."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * n, p))
    score = X[:, :5].sum(axis=1)
    y = (rng.random(len(X)) < expit(score)).astype(int)
    return X[:n], y[:n], X[n:], y[n:]


def tuned_logistic():
    """LogisticRegressionCV, whose signature changes: what it does."""
    return GridSearchCV(
        LogisticRegression(max_iter=1000),
        {"C": np.logspace(-4, 4, 12)},
        cv=5,
        scoring="neg_log_loss",
    )


def tall_classes():
    """A path of C on many rows of two classes, against cross-validation."""
    for n, p in TALL_CLASSES:
        X, y, X_test, y_test = tall_classes_data(n, p)
        logistic = TrajectoryLogisticRegression("path", max_iter=30, tol=1e-4)
        ours = TrajectoryEarlyStoppingCV(logistic)
        theirs = tuned_logistic()
        (own, model), (their_time, peer) = medians(
            partial(ours.fit, X, y), partial(theirs.fit, X, y), repeats=3
        )
        losses = [log_loss(y_test, m.predict_proba(X_test)) for m in (model, peer)]
        yield (
            f'TrajectoryLogisticRegression("path") and stop, {n} x {p}, 2 classes',
            TUNED_LOGISTIC,
            own,
            their_time,
            their_time / own,
            "",
            f"test log loss {losses[0]:.4f}, its {losses[1]:.4f}",
        )
        yield memory_row(ours, X, y, "")


def logistic():
    """Wide data of two classes, and ten classes, against cross-validation."""
    sets = {f"{n} x {p}, 2 classes": partial(wide_classes, n, p) for n, p in WIDE}
    sets["digits, 898 x 64, 10 classes"] = partial(digits, 0)
    theirs = tuned_logistic()
    ours = TrajectoryEarlyStoppingCV(TrajectoryLogisticRegression("path", max_iter=60))
    for name, data in sets.items():
        X, y, X_test, y_test = data()
        (own, model), (their_time, peer) = medians(
            partial(ours.fit, X, y), partial(theirs.fit, X, y), repeats=3
        )
        losses = [log_loss(y_test, m.predict_proba(X_test)) for m in (model, peer)]
        yield (
            f'TrajectoryLogisticRegression("path", max_iter=60), stopped, {name}',
            TUNED_LOGISTIC,
            own,
            their_time,
            their_time / own,
            ">= 1",
            f"test log loss {losses[0]:.3f} (<= {losses[1]:.3f}, its)",
        )


def linear_svc():
    """A linear SVM of ten classes against a grid of six values of C."""
    X, y, X_test, y_test = digits(0)
    theirs = GridSearchCV(LinearSVC(max_iter=10_000), {"C": np.logspace(-4, 1, 6)})
    ours = TrajectoryEarlyStoppingCV(TrajectoryLinearSVC())
    own, model = seconds(ours.fit, X, y)
    their_time, peer = seconds(theirs.fit, X, y)
    errors = [1 - m.score(X_test, y_test) for m in (model, peer)]
    yield (
        "TrajectoryLinearSVC(), stopped, digits, 898 x 64, 10 classes",
        "GridSearchCV(LinearSVC, 6 values of C, 5 folds)",
        own,
        their_time,
        their_time / own,
        ">= 1",
        f"test error {errors[0]:.2%}, its {errors[1]:.2%}",
    )


def kernel():
    """A kernel machine that chooses gamma and when to stop, against a grid."""
    for n in (1000, 2000, 3000):
        X, y = make_friedman1(n + 2000, n_features=10, noise=1.0, random_state=0)
        X, X_test, y, y_test = train_test_split(X, y, test_size=2000, random_state=0)
        scaler = StandardScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
        grid = {"gamma": [0.01, 0.03, 0.1, 0.3], "alpha": np.logspace(-4, 3, 8)}
        theirs = TransformedTargetRegressor(
            GridSearchCV(KernelRidge(kernel="rbf"), grid), transformer=StandardScaler()
        )
        own, model = seconds(KernelEigenProRegressor().fit, X, y)
        their_time, peer = seconds(theirs.fit, X, y)
        errors = [squared_error(m, X_test, y_test) for m in (model, peer)]
        yield (
            f"KernelEigenProRegressor(), Friedman's function, {n} x 10",
            "GridSearchCV(KernelRidge, 4 gammas x 8 alphas, 5 folds)",
            own,
            their_time,
            their_time / own,
            ">= 3",
            f"test error {errors[0] / errors[1]:.3f} of its (<= 1.02)",
        )
