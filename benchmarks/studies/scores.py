"""Is what a model expects of itself true, for the choice and for what would follow?

Against its loss on new rows, over which it should be one.
"""

import numpy as np
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import log_loss

from skacv import (
    IterativeRidge,
    SelfStoppingClassifier,
    Staged,
    TrajectoryEarlyStoppingCV,
    TrajectoryLasso,
    TrajectoryLogisticRegression,
)

from ..framework import header, line, study
from ..real_data import CLASSIFICATION, REGRESSION, halves
from ..tables import standardised_halves

# Of the sets, those of few rows and some of more, to see it vanish.
NUMBERS = (
    "linnerud",
    *(f"diabetes, products, {n} rows" for n in (40, 80, 160)),
    *("diabetes", "diabetes, heavy tails", "spectra"),
)
CLASSES = (
    *(f"breast cancer, {n} rows" for n in (40, 80, 160)),
    *("breast cancer, noisy", "iris", "wine"),
)
C_PATH = TrajectoryLogisticRegression("path", max_iter=30, tol=1e-4, standardize=True)
UNPENALISED = TrajectoryLogisticRegression(np.inf, max_iter=200, standardize=True)
LOGISTIC = [("logistic", C_PATH), ("logistic, no penalty", UNPENALISED)]
LASSO = TrajectoryLasso("path", max_iter=20)


def new_loss(model, X, y):
    """The log loss, or the mean squared error."""
    if hasattr(model, "classes_"):
        return log_loss(y, model.predict_proba(X), labels=model.classes_)
    return np.mean((model.predict(X) - y) ** 2)


@study()
def optimism(n_splits=50):
    """What best_score_ says of the choice, and what the corrected score says.

    Half of the rows train, columns standardised, the others test; 50 splits. "score"
    and "corrected" are the means of best_score_ and of best_score_corrected_ over the
    mean test loss of the choice: one is the truth. The last columns are the mean
    distance of each from the test loss, over the mean test loss. "portfolio" is the
    default of TrajectoryEarlyStoppingCV, of classes its logistic members, which have
    one loss; "path" is its first member alone. Squared error for regression, log loss
    for classes. A fold's fit has four rows out of five, and
    costs more than a fit of all of them: that raises both readings of "cv".
    """
    numbers = "score", "corrected", "score off", "corrected off"
    yield from header("data", "rows", "model", "by", *numbers)
    groups = (
        ("regression", NUMBERS, REGRESSION, LASSO, None),
        ("classification", CLASSES, CLASSIFICATION, C_PATH, LOGISTIC),
    )
    cases = [
        (name, sets[name], task, *case)
        for task, names, sets, path, members in groups
        for name in names
        for case in (
            ("path", path, "loo"),
            ("path", path, "cv"),
            ("portfolio", members, "cv"),
        )
    ]
    for name, data, task, called, model, criterion in cases:
        results, settings = [], {"criterion": criterion, "task": task}
        for seed in range(n_splits):
            X, y, X_test, y_test = halves(data, seed, task == "classification")
            chosen = TrajectoryEarlyStoppingCV(model, random_state=seed, **settings)
            loss = new_loss(chosen.fit(X, y), X_test, y_test)
            results.append((chosen.best_score_, chosen.best_score_corrected_, loss))
        *said, loss = np.transpose(results)
        cells = [s.mean() / loss.mean() for s in said]
        cells += [np.abs(s - loss).mean() / loss.mean() for s in said]
        yield line(name, len(y), called, criterion, *(f"{c:.3f}" for c in cells))


FOREST = {"n_estimators": 40, "min_samples_leaf": 3, "random_state": 0}
BOOSTED = GradientBoostingClassifier(max_depth=2, random_state=0)
# Models of classes, and samples: the default takes seconds for a fit.
ENSEMBLES = {
    "random forest": (RandomForestClassifier(**FOREST), 200),
    "extra trees": (ExtraTreesClassifier(**FOREST), 200),
    "boosted trees": (BOOSTED, 100),
    "default": (None, 20),
}


def rare_class(n_rows, share, rng, n_new=4000):
    """Rows of two classes, whose means differ in two of the columns, and new ones.

    The classes have the same shares in both, and two rows each at least: without one
    of them the other one is left to a fold.
    """
    n_positive = max(2, round(share * n_rows))
    y = np.zeros(n_rows + n_new, dtype=int)
    y[:n_positive] = 1
    y[n_rows : n_rows + round(n_new * n_positive / n_rows)] = 1
    X = rng.standard_normal((len(y), 6))
    X[:, :2] += 0.8 * y[:, None]
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


@study()
def corrected_scores():
    """What the scores of ensembles of classes say of them, where rows are few.

    Two classes whose means differ in two of six Gaussian columns, balanced or with 5%
    of the rows positive, but two at least. Means of best_score_ and of
    best_score_corrected_ over the mean log loss on 4000 new rows: one is the truth.
    Forests of 40 trees with three rows to a leaf may be sure of the wrong class, which
    costs 36, so that few samples determine the means: standard errors are in brackets.
    """
    columns = "samples", "log loss", "score", "corrected"
    yield from header("model", "rows", "positive", *columns)
    sizes = [(n_rows, share) for n_rows in (30, 60, 200) for share in (0.5, 0.05)]
    cases = [
        (name, *model, *size) for name, model in ENSEMBLES.items() for size in sizes
    ]
    for name, trees, n_samples, n_rows, share in cases:
        results = []
        for seed in range(n_samples):
            rng = np.random.default_rng(seed)
            X, y, X_new, y_new = rare_class(n_rows, share, rng)
            model = SelfStoppingClassifier(random_state=0)
            if trees is not None:
                model = TrajectoryEarlyStoppingCV(Staged(trees), random_state=0)
            loss = new_loss(model.fit(X, y), X_new, y_new)
            results.append((model.best_score_, model.best_score_corrected_, loss))
        *said, loss = np.transpose(results)
        cells = f"{share:.0%}", n_samples, f"{loss.mean():.3f}"
        yield line(name, n_rows, *cells, *(ratio_with_error(s, loss) for s in said))
    yield ""


def ratio_with_error(said, loss):
    """The ratio of two means, and its standard error by the delta method."""
    ratio = said.mean() / loss.mean()
    error = np.std(said - ratio * loss, ddof=1) / np.sqrt(len(loss)) / loss.mean()
    return f"{ratio:.2f} ({error:.2f})"


TABLES = ("ais", "airbnb", "computers", "concrete", "quakes", "wish")
# Runs to their end: a bound is of the iterates that have been run.
RUNS = {
    "gradient descent": IterativeRidge(0.0, solver="nesterov", max_iter=100, tol=0),
    "lasso path": TrajectoryLasso("path", max_iter=5),
    "boosted trees": GradientBoostingRegressor(
        n_estimators=80, learning_rate=0.2, random_state=0
    ),
}


def simulated(n_rows, n_columns, rng, n_new=5000):
    """Rows and targets, of which the rest are new."""
    X = rng.standard_normal((n_rows + n_new, n_columns))
    y = X[:, :5].sum(axis=1) + X[:, 0] * X[:, 1] + 2 * rng.standard_normal(len(X))
    return X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:]


def gains(model, X, y, X_new, y_new):
    """The bound of a fitted model, what later iterates gain on new rows, the error."""
    settings = {"criterion": "cv", "cv": 5, "patience": None, "random_state": 0}
    stopped = TrajectoryEarlyStoppingCV(model, **settings).fit(X, y)
    whole = stopped.estimator_
    if not hasattr(whole, "coef_path_"):  # trees that have followed their folds
        whole = type(whole)(whole.estimator).fit(X, y)
    errors = whole.staged_loss(X_new, y_new)[-(len(stopped.path_)) :]
    first = len(stopped.path_) - len(errors)  # trees have no stage 0
    after = errors[stopped.best_iter_ - first :]
    return stopped.possible_gain_, after[0] - after.min(), after[0]


@study("tables")
def later_gains(n_draws=100):
    """Bounds on what later iterates may gain, nominal .95.

    ``possible_gain_`` of runs to their ends, stopped by five folds, over 100 draws of
    training rows (25 for trees): the share of draws in which no later iterate is better
    on 5000 new rows by more than the bound, the mean bound, and the mean of what the
    best later iterate has gained, both over the error. Tables are of benchmarks/unseen:
    300 rows, or half of a table, train, and others are new.
    """
    yield from header("rows", "run", "share held", "bound", "gained")
    draws = {
        f"simulated, {n} x {p}": (simulated, n, p)
        for n, p in ((100, 10), (100, 50), (300, 50), (1000, 50))
    }
    draws |= {name: (standardised_halves, name, 300) for name in TABLES}
    for label, (draw, *arguments) in draws.items():
        for kind, model in RUNS.items():
            n_seeds = n_draws if kind != "boosted trees" else n_draws // 4
            results = [
                gains(model, *draw(*arguments, np.random.default_rng(seed)))
                for seed in range(n_seeds)
            ]
            bound, gained, error = np.transpose(results)
            cells = (
                np.mean(gained <= bound),
                np.mean(bound / error),
                np.mean(gained / error),
            )
            yield line(label, kind, *(f"{cell:.3f}" for cell in cells))
    yield ""
