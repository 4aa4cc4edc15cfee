"""Studies of tables that nobody here has looked at, kept outside the project.

They are read from the folder that SKACV_TABLES names: one CSV file for each table, with
a header, no missing values, and the target as the last column, called ``target``.
"""

import os
import warnings
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from scipy.stats import gmean
from sklearn.model_selection import KFold

from skacv import KernelEigenProRegressor, TrajectoryEarlyStoppingCV

FOLDER = Path(os.environ.get("SKACV_TABLES", "tables"))
# Of https://vincentarelbundock.github.io/Rdatasets (package/table), and bodyfat and
# plasma_retinol of StatLib.
FEW_ROWS = (
    "environmental",  # lattice/environmental
    "auto",  # ISLR/Auto
    "bodyfat",
    "caschools",  # AER/CASchools
    "prestige",  # carData/Prestige
    "plasma_retinol",
    "hprice1",  # wooldridge/hprice1
    "kids198",  # Stat2Data/Kids198
)
TRAINING_SHARE, MOST_ROWS = 0.6, 500


def read_table(name):
    """Columns and target of a table; categories as indicators.

    Returns
    -------
    X : ndarray of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
    """
    import pandas as pd

    path = FOLDER / f"{name}.csv"
    if not path.exists():
        raise SystemExit(
            f"There is no {path}: SKACV_TABLES names the folder with the tables."
        )
    frame = pd.read_csv(path)
    y = frame.pop("target").to_numpy(float)
    return pd.get_dummies(frame, drop_first=True).to_numpy(float), y


def kernel_machine(seed):
    """A kernel machine with nothing set, judged by folds."""
    model = KernelEigenProRegressor(standardize=True)
    return TrajectoryEarlyStoppingCV(model, criterion="cv", random_state=seed)


def kernel_readings(name, seed):
    """What is said of a choice, by itself and by nested folds, and the truth.

    Returns
    -------
    score, corrected, nested, loss : float
    """
    X, y = read_table(name)
    n_rows = min(int(TRAINING_SHARE * len(y)), MOST_ROWS)
    order = np.random.default_rng(seed).permutation(len(y))
    X_test, y_test = X[order[n_rows:]], y[order[n_rows:]]
    X, y = X[order[:n_rows]], y[order[:n_rows]]
    model = kernel_machine(seed).fit(X, y)
    nested = np.empty(n_rows)
    for fitted, judged in KFold(5, shuffle=True, random_state=seed).split(X):
        inner = kernel_machine(seed).fit(X[fitted], y[fitted])
        nested[judged] = (inner.predict(X[judged]) - y[judged]) ** 2
    loss = np.mean((model.predict(X_test) - y_test) ** 2)
    return model.best_score_, model.best_score_corrected_, nested.mean(), loss


def kernel_scores(n_splits=40):
    """What the scores of a kernel machine say of it, on tables of few rows.

    KernelEigenProRegressor(standardize=True), its gamma and its iterate chosen by five
    folds; 60% of the rows train, the others test; 40 splits. Means of best_score_, of
    best_score_corrected_ and of nested folds over the mean test error: one is the
    truth.
    """
    yield "| table | training rows x columns | score | corrected | nested folds |"
    yield "|---|---|---|---|---|"
    ratios = []
    for name in FEW_ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the table shows what they say
            readings = Parallel(n_jobs=-1)(
                delayed(kernel_readings)(name, seed) for seed in range(n_splits)
            )
        *said, loss = np.mean(readings, axis=0)
        ratios.append(np.array(said) / loss)
        X, y = read_table(name)
        shape = f"{int(TRAINING_SHARE * len(y))} x {X.shape[1]}"
        yield f"| {name} | {shape} | {' | '.join(f'{r:.3f}' for r in ratios[-1])} |"
    means = gmean(ratios, axis=0)
    yield f"| geometric mean | | {' | '.join(f'{mean:.3f}' for mean in means)} |"
