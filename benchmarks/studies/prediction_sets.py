"""How often do prediction sets hold the class, and how large are they?"""

from functools import partial

import numpy as np
from sklearn.datasets import load_digits, load_wine, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLogisticRegression

from ..framework import header, line
from ..real_data import noisy_labels, shipped

SETS = {
    "five classes, simulated": lambda seed: make_classification(
        1500, n_features=20, n_informative=8, n_classes=5, random_state=seed
    ),
    "digits, a fifth of the labels random": partial(noisy_labels, load_digits),
    "digits": partial(shipped, load_digits),
    "wine, a fifth of the labels random": partial(noisy_labels, load_wine),
}


def prediction_sets(n_repeats=10):
    """Prediction sets of logistic regression, nominal .9, and MAPIE's.

    Half of the rows train, in ten random splits; columns are standardised. Ours are of
    TrajectoryEarlyStoppingCV of a path of logistic regression, from its folds; MAPIE's
    SplitConformalClassifier fits LogisticRegression and sets a quarter of the training
    rows aside. A cell has the mean share of new rows whose class is in the set, in
    brackets that of the fifth of them with the least probable likeliest class, and the
    mean number of classes in a set.
    """
    yield from header("data", "lac", "aps", "MAPIE, lac", "MAPIE, aps")
    for name, data in SETS.items():
        results = [sets_on(*data(seed), seed) for seed in range(n_repeats)]
        cells = (
            f"{share:.3f} ({doubtful:.2f}), {size:.2f}"
            for share, doubtful, size in np.mean(results, axis=0)
        )
        yield line(name, *cells)


def sets_on(X, y, seed):
    """Shares of new rows in their sets, of all and of doubtful ones, and sizes."""
    from mapie.classification import SplitConformalClassifier

    X, X_new, y, y_new = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    path = TrajectoryLogisticRegression("path", cv=5, loo=False, risk=False)
    model = TrajectoryEarlyStoppingCV(path, random_state=seed).fit(X, y)
    sets = [model.predict_set(X_new, 0.9, method) for method in ("lac", "aps")]
    fitted, apart, y_fitted, y_apart = train_test_split(
        X, y, test_size=0.25, stratify=y, random_state=seed
    )
    for score in ("lac", "aps"):
        theirs = SplitConformalClassifier(
            LogisticRegression(max_iter=1000),
            confidence_level=0.9,
            conformity_score=score,
            prefit=False,
            random_state=seed,
        )
        theirs.fit(fitted, y_fitted).conformalize(apart, y_apart)
        sets.append(theirs.predict_set(X_new)[1][..., 0])
    label = np.searchsorted(model.classes_, y_new)
    order = np.argsort(model.predict_proba(X_new).max(axis=1))
    doubtful = order[: len(order) // 5]
    results = []
    for members in sets:
        is_in = members[np.arange(len(label)), label]
        results.append((is_in.mean(), is_in[doubtful].mean(), members.sum(1).mean()))
    return results
