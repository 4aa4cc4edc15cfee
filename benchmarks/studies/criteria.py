"""What does the choice by each criterion cost, over the best iterate of the path?

Against the true risk of drawn data, and test losses of real ones.
"""

from collections import defaultdict

import numpy as np
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from ..data import mean_cell, true_risk
from ..framework import header, line, seconds
from ..real_data import CLASSIFICATION, REGRESSION, halves

N_SPLITS = 20
OFF = {"risk": False, "loo": False, "cv": None}
# Probabilities are clipped there.
SMALLEST = 1e-12
# Leaving out every row of more classes takes a hundred times the run.
MOST_CLASSES = 3
FOLDS = {"5 folds": {"cv": 5}, "10 folds": {"cv": 10}}
CRITERIA = {"risk": {"risk": "auto"}, "loo": {"loo": True}, **FOLDS, "auto": None}
MANY_ROWS_CRITERIA = "risk", "loo", "cv"
LEAST_SQUARES = IterativeRidge(0.0, solver="nesterov", max_iter=300)
REGRESSION_RUNS = {
    "lasso path": TrajectoryLasso("path", max_iter=20),
    "least squares": LEAST_SQUARES,
}
CLASSIFICATION_RUNS = {
    "logistic": TrajectoryLogisticRegression(C=np.inf, max_iter=200),
    "logistic path": TrajectoryLogisticRegression("path", max_iter=20),
}
RUNS = {
    "Nesterov": {"max_iter": 200},
    'C="path"': {"C": "path", "max_iter": 30},
    "SGD": {"solver": "sgd", "max_iter": 30},
}


def criteria(n_repeats=25):
    """What each criterion estimates at the iterate that it chooses, and the cost.

    Gaussian rows, n/20 equal coefficients of squared norm 4, noise level 1,
    TrajectoryLasso(alpha="path", max_iter=20); mean over 25 repeats, standard
    error in brackets. "Estimate / truth" at the chosen iterate, "risk / least" its
    true risk over the least on the path of all rows. "A quarter held out" is what is
    done without any of this: the run sees three quarters of the rows, and the others
    choose.
    """
    yield from header("n", "p", "criterion", "estimate / truth", "risk / least")
    names = "risk", "loo", *FOLDS
    for n, p in ((100, 50), (100, 400), (300, 600)):
        results = {name: [] for name in [*names, "a quarter held out"]}
        for seed in range(n_repeats):
            rng = np.random.default_rng([seed, n, p])
            X, beta = rng.standard_normal((n, p)), np.zeros(p)
            beta[: n // 20] = 2 / np.sqrt(n // 20)
            y = X @ beta + rng.standard_normal(n)
            for name in names:
                inner = TrajectoryLasso("path", max_iter=20, random_state=seed)
                model = stopped(inner, name, CRITERIA[name]).fit(X, y)
                paths = model.estimator_.coef_path_, model.estimator_.intercept_path_
                truth = true_risk(*paths, beta, 1.0)
                chosen = truth[model.best_iter_]
                results[name].append((model.best_score_ / chosen, chosen / truth.min()))
            estimate, chosen = held_out_quarter(X, y, beta)
            pair = estimate / chosen, chosen / truth.min()
            results["a quarter held out"].append(pair)
        for name, pairs in results.items():
            yield line(n, p, name, *map(mean_cell, np.transpose(pairs)))


def held_out_quarter(X, y, beta):
    """Error on the last quarter, and true risk, of the iterate that it chooses."""
    n_seen = 3 * len(y) // 4
    model = TrajectoryLasso("path", max_iter=20, risk=False, loo=False)
    model.fit(X[:n_seen], y[:n_seen])
    predictions = X[n_seen:] @ model.coef_path_.T + model.intercept_path_
    errors = ((y[n_seen:, None] - predictions) ** 2).mean(axis=0)
    best = errors.argmin()
    truth = true_risk(model.coef_path_, model.intercept_path_, beta, 1.0)
    return errors[best], truth[best]


def squared_errors(model, X, y):
    """Mean squared test error of every iterate."""
    return np.array(
        [np.mean((results - y) ** 2) for results in model.staged_predict(X)]
    )


def log_losses(model, X, y):
    """Test log loss of every iterate."""
    row = np.arange(len(y)), np.searchsorted(model.classes_, y)
    return np.array(
        [
            -np.log(np.maximum(results[row], SMALLEST)).mean()
            for results in model.staged_predict_proba(X)
        ]
    )


def stopped(model, name, switches):
    """A stopping estimator that is judged by one criterion alone."""
    if switches is None:
        return TrajectoryEarlyStoppingCV(model)
    model.set_params(**{**OFF, **switches})
    criterion = "cv" if name in FOLDS else name
    return TrajectoryEarlyStoppingCV(model, criterion=criterion)


def judged(data, models, test_losses, seed, stratified):
    """What every criterion finds on one split, and what the runs cost.

    Yields
    ------
    model, criterion : str
    loss, least, score, elapsed, run : float
        Test loss of the choice, and the least on the path; what the criterion says of
        the choice; seconds of the fit, and of the run without any reading. Nothing
        where the fit is refused: a fold's iterates diverge, or its classes are few.
    """
    X, y, X_test, y_test = halves(data, seed, stratified)
    has_many_classes = stratified and len(np.unique(y)) > MOST_CLASSES
    for name, model in models.items():
        model.set_params(random_state=seed)
        run, baseline = seconds(clone(model).set_params(**OFF).fit, X, y)
        path = test_losses(baseline, X_test, y_test)
        for criterion, switches in CRITERIA.items():
            if criterion == "loo" and has_many_classes:
                continue
            stopping = stopped(clone(model), criterion, switches)
            try:
                elapsed, _ = seconds(stopping.fit, X, y)
            except ValueError:
                continue
            score, loss = stopping.best_score_, path[stopping.best_iter_]
            yield name, criterion, loss, path.min(), score, elapsed, run


GROUPS = (
    (REGRESSION, REGRESSION_RUNS, squared_errors, False),
    (CLASSIFICATION, CLASSIFICATION_RUNS, log_losses, True),
)


def regret(n_splits=N_SPLITS):
    """What choosing by each criterion costs, and how accurate its estimate is.

    Half of the rows train, columns standardised, the others test; 20 splits. "Regret"
    is the mean test loss of the chosen iterate over the mean of the least on the path,
    less one; "reading" what the criterion says of its choice over the test loss there,
    means of both; "cost" the median seconds of the fit over those of the run that
    reads nothing; "splits" those that were not refused. Squared error for regression,
    log loss for classes.
    """
    numbers = "regret", "reading", "seconds", "cost", "splits"
    yield from header("data", "model", "criterion", *numbers)
    for sets, models, test_losses, stratified in GROUPS:
        for name, data in sets.items():
            results = defaultdict(list)
            for seed in range(n_splits):
                for row in judged(data, models, test_losses, seed, stratified):
                    results[row[:2]].append(row[2:])
            for names, values in results.items():
                loss, least, score, elapsed, run = np.transpose(values)
                yield line(
                    name,
                    *names,
                    f"{loss.mean() / least.mean() - 1:.3f}",
                    f"{score.mean() / loss.mean():.2f}",
                    f"{np.median(elapsed):.2f}",
                    f"{np.median(elapsed / run):.1f}",
                    len(values),
                )


def sets_of_many_rows():
    """Names, rows and two classes."""
    digits, cancer = load_digits(), load_breast_cancer()
    odd = digits.target % 2
    wrong = np.random.default_rng(0).random(len(odd)) < 0.1
    products = PolynomialFeatures(2, include_bias=False)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((6000, 200)) * np.arange(1, 201) ** -0.5
    drawn = rng.random(6000) < expit(X @ rng.standard_normal(200))
    return {
        "digits, odd": (digits.data, odd),
        "digits, odd, a tenth wrong": (digits.data, np.where(wrong, 1 - odd, odd)),
        "digits, 8": (digits.data, digits.target == 8),
        "breast cancer": (cancer.data, cancer.target),
        "breast cancer, products": (
            products.fit_transform(StandardScaler().fit_transform(cancer.data)),
            cancer.target,
        ),
        "Gaussian": (X, drawn),
    }


def many_rows(n_splits=4):
    """Two classes on hundreds of rows: the log loss of what each criterion chooses.

    Log loss of the chosen iterate on the other half of the rows over the least on the
    path, less one, and seconds of fit and criterion; means over four splits. By the
    memory matrix, by leave-one-out and by five folds.
    """
    names = [f"regret, {c}" for c in MANY_ROWS_CRITERIA] + [
        f"seconds, {c}" for c in MANY_ROWS_CRITERIA
    ]
    yield from header("data", "rows x columns", "run", *names)
    for name, (X, y) in sets_of_many_rows().items():
        for run, settings in RUNS.items():
            results = [_split(X, y, settings, seed) for seed in range(n_splits)]
            costs, times = np.mean(results, axis=0)
            size = f"{len(X) // 2} x {X.shape[1]}"
            cells = [f"{r:.3f}" for r in costs] + [f"{s:.2f}" for s in times]
            yield line(name, size, run, *cells)


def _split(X, y, settings, seed):
    """Regrets and seconds of all criteria on one split."""
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y
    )
    scaler = StandardScaler().fit(X)
    X, X_test, regrets, times = scaler.transform(X), scaler.transform(X_test), [], []
    for criterion in MANY_ROWS_CRITERIA:
        model = TrajectoryLogisticRegression(random_state=0, **settings)
        stopping = TrajectoryEarlyStoppingCV(model, criterion=criterion)
        elapsed, results = seconds(stopping.fit, X, y)
        times.append(elapsed)
        path = [
            log_loss(y_test, p) for p in results.estimator_.staged_predict_proba(X_test)
        ]
        chosen = log_loss(y_test, results.predict_proba(X_test))
        regrets.append(chosen / min(path) - 1)
    return regrets, times
