"""How large do the splits of a series have to be for an honest expected error?"""

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import TimeSeriesSplit

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLasso

from ..framework import header, line

N_ROWS, N_LATER = 400, 40
SPLITTERS = {
    "TimeSeriesSplit()": TimeSeriesSplit(),
    "n_splits=10": TimeSeriesSplit(10),
    "5 of a tenth": TimeSeriesSplit(5, test_size=N_ROWS // 10),
    "10 of a twentieth": TimeSeriesSplit(10, test_size=N_ROWS // 20),
}
MODELS = {
    "boosted trees": HistGradientBoostingRegressor(max_iter=300, random_state=0),
    "lasso path": TrajectoryLasso("path", max_iter=20, standardize=True),
}


def time_splits(n_series=20):
    """The expected error of a model chosen by splits in time, over its error later.

    400 rows train, and the next 40 are predicted. For every splitter the mean
    `best_score_corrected_` of twenty series over their mean squared error on the later
    rows, and in brackets that error over the error with the default splits. "5 of a
    tenth" is `TimeSeriesSplit(5, test_size=40)`, whose splits train on a half of the
    rows or more. "demand" has hours, days and a temperature; "lags" are ten lags of a
    nonlinear autoregression; "rows" are independent (Friedman 1).
    """
    yield from header("data", "model", *SPLITTERS)
    for series, draw in SERIES.items():
        drawn = [draw(np.random.default_rng(seed)) for seed in range(n_series)]
        for name, estimator in MODELS.items():
            expected, later = [], []
            for X, y in drawn:
                results = [_result(estimator, cv, X, y) for cv in SPLITTERS.values()]
                expected.append([of_choice for of_choice, _ in results])
                later.append([truth for _, truth in results])
            expected, later = np.mean(expected, axis=0), np.mean(later, axis=0)
            cells = zip(expected / later, later / later[0])
            yield line(series, name, *(f"{e:.2f} ({t:.2f})" for e, t in cells))


def _result(estimator, cv, X, y):
    """The expected error of a choice by some splits, and its error on later rows."""
    model = TrajectoryEarlyStoppingCV(estimator, cv=cv, random_state=0)
    model.fit(X[:N_ROWS], y[:N_ROWS])
    error = np.mean((model.predict(X[N_ROWS:]) - y[N_ROWS:]) ** 2)
    return model.best_score_corrected_, error


def demand(rng):
    """Hours of a demand that follows the hour, the day and the weather."""
    t = np.arange(N_ROWS + N_LATER)
    hour, day = t % 24, t // 24 % 7
    temperature = 10 * np.sin(2 * np.pi * t / 24 - 2) + _autoregression(rng, 0.98)
    humidity = rng.uniform(20, 90, len(t))
    at_work = (day < 5) * ((hour > 6) & (hour < 20))
    y = 20 * at_work + np.abs(temperature) * (1 + at_work) + 2 * np.cos(hour / 4)
    X = np.column_stack([hour, day, temperature, humidity])
    return X, y + 3 * rng.standard_normal(len(t))


def lags(rng):
    """Values of a nonlinear autoregression, and the ten before each of them."""
    n_values = N_ROWS + N_LATER + 10
    values = np.zeros(n_values)
    for t in range(3, n_values):
        past = 0.6 * values[t - 1] - 0.3 * values[t - 3]
        values[t] = past + np.sin(2 * values[t - 2]) + 0.5 * rng.standard_normal()
    X = np.column_stack([values[10 - lag : -lag] for lag in range(1, 11)])
    return X, values[10:]


def rows(rng):
    """Independent rows."""
    seed = rng.integers(1 << 30)
    return make_friedman1(N_ROWS + N_LATER, 10, noise=1.0, random_state=seed)


def _autoregression(rng, coefficient):
    noise, values = rng.standard_normal(N_ROWS + N_LATER), np.zeros(N_ROWS + N_LATER)
    for t in range(1, len(values)):
        values[t] = coefficient * values[t - 1] + noise[t]
    return values


SERIES = {"demand": demand, "lags": lags, "rows": rows}
