"""Criteria of logistic runs on hundreds of rows and more: what they choose."""

import warnings
from time import perf_counter

import numpy as np
from scipy.special import expit
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression

CRITERIA = "risk", "loo", "cv"
RUNS = {
    "Nesterov": {"max_iter": 200},
    'C="path"': {"C": "path", "max_iter": 30},
    "SGD": {"solver": "sgd", "max_iter": 30},
}


def data_sets():
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
    names = [f"regret, {c}" for c in CRITERIA] + [f"seconds, {c}" for c in CRITERIA]
    yield f"| data | rows x columns | run | {' | '.join(names)} |"
    yield f"|---|---|---|{'---|' * len(names)}"
    for name, (X, y) in data_sets().items():
        for run, settings in RUNS.items():
            found = [_split(X, y, settings, seed) for seed in range(n_splits)]
            regret, seconds = np.mean(found, axis=0)
            size = f"{len(X) // 2} x {X.shape[1]}"
            cells = [f"{r:.3f}" for r in regret] + [f"{s:.2f}" for s in seconds]
            yield f"| {name} | {size} | {run} | {' | '.join(cells)} |"


def _split(X, y, settings, seed):
    """Regrets and seconds of all criteria on one split."""
    X, X_test, y, y_test = train_test_split(
        X, y, test_size=0.5, random_state=seed, stratify=y
    )
    scaler = StandardScaler().fit(X)
    X, X_test, regrets, seconds = scaler.transform(X), scaler.transform(X_test), [], []
    for criterion in CRITERIA:
        model = TrajectoryLogisticRegression(random_state=0, **settings)
        begun = perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of uneven columns and separated classes
            found = TrajectoryEarlyStoppingCV(model, criterion=criterion).fit(X, y)
        seconds.append(perf_counter() - begun)
        path = [
            log_loss(y_test, p) for p in found.estimator_.staged_predict_proba(X_test)
        ]
        chosen = log_loss(y_test, found.predict_proba(X_test))
        regrets.append(chosen / min(path) - 1)
    return regrets, seconds
