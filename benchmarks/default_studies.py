"""What the defaults are judged by: every criterion on real and ill-conditioned data."""

import warnings
from collections import defaultdict
from functools import partial

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from skacv import (
    IterativeRidge,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)
from skacv._estimator.stopping import Patience

from .real_data import CLASSIFICATION, REGRESSION, halves
from .timing import seconds

N_SPLITS = 20
OFF = {"risk": False, "loo": False, "cv": None}
# Probabilities are clipped there.
SMALLEST = 1e-12
# Leaving out every row of more classes takes a hundred times the run.
MOST_CLASSES = 3


def regression_models(seed):
    """What a run may be, by name."""
    return {
        "lasso path": TrajectoryLasso("path", max_iter=20, random_state=seed),
        "least squares": IterativeRidge(
            0.0, solver="nesterov", max_iter=300, random_state=seed
        ),
    }


def classification_models(seed):
    """What a run may be, by name."""
    return {
        "logistic": TrajectoryLogisticRegression(
            C=np.inf, max_iter=200, random_state=seed
        ),
        "logistic path": TrajectoryLogisticRegression(
            "path", max_iter=20, random_state=seed
        ),
    }


CRITERIA = {
    "risk": {"risk": "auto"},
    "loo": {"loo": True},
    "5 folds": {"cv": 5},
    "10 folds": {"cv": 10},
    "auto": None,
}


def squared_errors(model, X, y):
    """Mean squared test error of every iterate."""
    return np.array([np.mean((found - y) ** 2) for found in model.staged_predict(X)])


def log_losses(model, X, y):
    """Test log loss of every iterate."""
    place = np.arange(len(y)), np.searchsorted(model.classes_, y)
    return np.array(
        [
            -np.log(np.maximum(found[place], SMALLEST)).mean()
            for found in model.staged_predict_proba(X)
        ]
    )


def stopped(model, name, switches):
    """A stopping estimator that is judged by one criterion alone."""
    if switches is None:
        return TrajectoryEarlyStoppingCV(model)
    offered = {k: v for k, v in OFF.items() if k in model.get_params()}
    model.set_params(**{**offered, **switches})
    criterion = "cv" if "folds" in name else name
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
    for name, model in models(seed).items():
        offered = {k: v for k, v in OFF.items() if k in model.get_params()}
        run, plain = seconds(partial(model.set_params(**offered).fit, X, y))
        path = test_losses(plain, X_test, y_test)
        for criterion, switches in CRITERIA.items():
            fresh = models(seed)[name]
            if criterion == "risk" and "risk" not in fresh.get_params():
                continue
            if criterion == "loo" and has_many_classes:
                continue
            stopping = stopped(fresh, criterion, switches)
            try:
                elapsed, _ = seconds(partial(stopping.fit, X, y))
            except ValueError:
                continue
            score, loss = stopping.best_score_, path[stopping.best_iter_]
            yield name, criterion, loss, path.min(), score, elapsed, run


def regret(n_splits=N_SPLITS):
    """What choosing by each criterion costs, and how true its reading is.

    Half of the rows train, columns standardised, the others test; 20 splits. "Regret"
    is the mean test loss of the chosen iterate over the mean of the least on the path,
    less one; "reading" what the criterion says of its choice over the test loss there,
    means of both; "cost" the median seconds of the fit over those of the run that
    reads nothing; "splits" those that were not refused. Squared error for regression,
    log loss for classes.
    """
    yield "| data | model | criterion | regret | reading | seconds | cost | splits |"
    yield "|---|---|---|---|---|---|---|---|"
    groups = (
        (REGRESSION, regression_models, squared_errors, False),
        (CLASSIFICATION, classification_models, log_losses, True),
    )
    for sets, models, test_losses, stratified in groups:
        for name, data in sets.items():
            found = defaultdict(list)
            for seed in range(n_splits):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # regret shows what they warn of
                    for model, criterion, *values in judged(
                        data, models, test_losses, seed, stratified
                    ):
                        found[model, criterion].append(values)
            for (model, criterion), values in found.items():
                yield _line(name, model, criterion, np.array(values))


PATIENCES = (3, 5, 10)


def patience(n_splits=10):
    """After how many strengths without an improvement a path may end.

    The default paths of the lasso and of logistic regression, judged by five random
    folds; half of the rows train, 10 splits. Of every patience, in values of alpha (or
    C), the mean regret (test loss of the choice over the least on the path, less one)
    and the share of the path that is run. "whole" ends nowhere.
    """
    names = [*map(str, PATIENCES), "whole"]
    heads = " | ".join(f"{name}: regret | run" for name in names)
    yield f"| data | {heads} |"
    yield "|---" * (1 + 2 * len(names)) + "|"
    groups = (
        (REGRESSION, regression_models, "lasso path", squared_errors, False),
        (CLASSIFICATION, classification_models, "logistic path", log_losses, True),
    )
    for sets, models, model, test_losses, stratified in groups:
        for name, data in sets.items():
            found = []
            for seed in range(n_splits):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # columns that do not converge
                    found.append(
                        _ended(data, models(seed)[model], test_losses, seed, stratified)
                    )
            cells = " | ".join(f"{value:.3f}" for value in np.mean(found, axis=0))
            yield f"| {name} | {cells} |"


def _ended(data, model, test_losses, seed, stratified):
    """Regret and share of the path that is run, patience by patience, on one split."""
    X, y, X_test, y_test = halves(data, seed, stratified)
    offered = {k: v for k, v in OFF.items() if k in model.get_params()}
    folds = (StratifiedKFold if stratified else KFold)(5, shuffle=True, random_state=0)
    path = model.set_params(**{**offered, "cv": folds}).fit(X, y).cv_path_
    losses, found = test_losses(model, X_test, y_test), []
    for n_strengths in (*PATIENCES, None):
        n_wanted = None if n_strengths is None else n_strengths * model.max_iter
        judge, n_run = Patience(n_wanted), 0
        while n_run < len(path) and not judge.has_ended:
            judge.update(path[n_run])
            n_run += 1
        found += [losses[judge.best] / losses.min() - 1, n_run / len(path)]
    return found


def _line(name, model, criterion, values):
    loss, least, score, elapsed, run = values.T
    cells = [
        f"{loss.mean() / least.mean() - 1:.3f}",
        f"{score.mean() / loss.mean():.2f}",
        f"{np.median(elapsed):.2f}",
        f"{np.median(elapsed / run):.1f}",
        str(len(values)),
    ]
    return f"| {name} | {model} | {criterion} | {' | '.join(cells)} |"
