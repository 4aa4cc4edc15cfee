"""How true the score of a choice is: as it was chosen by, and corrected."""

import warnings

import numpy as np

from skacv import (
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from .default_studies import log_losses, squared_errors
from .real_data import CLASSIFICATION, REGRESSION, halves

N_SPLITS = 50
# Of the sets, those of few rows and some of more, to see it vanish.
NUMBERS = (
    "linnerud",
    "diabetes, products, 40 rows",
    "diabetes, products, 80 rows",
    "diabetes, products, 160 rows",
    "diabetes",
    "diabetes, heavy tails",
    "spectra",
)
CLASSES = (
    "breast cancer, 40 rows",
    "breast cancer, 80 rows",
    "breast cancer, 160 rows",
    "breast cancer, noisy",
    "iris",
    "wine",
)
LASSO = TrajectoryLasso("path", max_iter=20)
COLUMNS = {"standardize": True}
LOGISTIC = [
    (
        "logistic",
        TrajectoryLogisticRegression("path", max_iter=30, tol=1e-4, **COLUMNS),
    ),
    (
        "logistic, no penalty",
        TrajectoryLogisticRegression(np.inf, max_iter=200, **COLUMNS),
    ),
]
GROUPS = (
    ("regression", NUMBERS, REGRESSION, squared_errors, LASSO, None),
    (
        "classification",
        CLASSES,
        CLASSIFICATION,
        log_losses,
        LOGISTIC[0][1],
        LOGISTIC,
    ),
)


def readings(data, model, criterion, task, test_losses, seed):
    """What is said of the choice on one split, and what it costs on the test half.

    Returns
    -------
    score, corrected, loss : float
    """
    X, y, X_test, y_test = halves(data, seed, task == "classification")
    stopping = TrajectoryEarlyStoppingCV(
        model, criterion=criterion, task=task, random_state=seed
    ).fit(X, y)
    path = test_losses(stopping.estimator_, X_test, y_test)
    kept = stopping.estimator_.recorded_iterations()
    loss = path[np.searchsorted(kept, stopping.best_iter_)]
    return stopping.best_score_, stopping.best_score_corrected_, loss


def optimism(n_splits=N_SPLITS):
    """What best_score_ says of the choice, and what the corrected score says.

    Half of the rows train, columns standardised, the others test; 50 splits. "score"
    and "corrected" are the means of best_score_ and of best_score_corrected_ over the
    mean test loss of the choice: one is the truth. The last columns are the mean
    distance of each from the test loss, over the mean test loss. "portfolio" is the
    default of TrajectoryEarlyStoppingCV, of classes its logistic members, which have
    one loss; "path" is its first member alone. Squared error
    for regression, log loss for classes. A fold's fit has four rows out of five, and
    costs more than a fit of all of them: that raises both readings of "cv".
    """
    yield "| data | rows | model | by | score | corrected | score off | corrected off |"
    yield "|---|---|---|---|---|---|---|---|"
    for task, names, sets, test_losses, path, members in GROUPS:
        for name in names:
            n_rows = len(halves(sets[name], 0)[1])
            for called, model, criterion in (
                ("path", path, "loo"),
                ("path", path, "cv"),
                ("portfolio", members, "cv"),
            ):
                settings = sets[name], model, criterion, task, test_losses
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the table shows what they say
                    found = [readings(*settings, seed) for seed in range(n_splits)]
                cells = [name, str(n_rows), called, criterion]
                yield f"| {' | '.join([*cells, *_compared(np.array(found).T)])} |"


def _compared(found):
    """Both readings over the truth, and how far off they are."""
    *said, loss = found
    means = [each.mean() / loss.mean() for each in said]
    distances = [np.abs(each - loss).mean() / loss.mean() for each in said]
    return [f"{value:.3f}" for value in (*means, *distances)]
