"""XGBoost, LightGBM and CatBoost, tables for them, and their fits by hand."""

import numpy as np
import pytest

from skacv.staged.adapter import response_of
from skacv.staged.adapters import staged_adapter_of

DRAWN = {"subsample": 0.7, "random_state": 1, "n_jobs": 1}
# What keeps the libraries small, quiet, and drawing rows and columns.
SETTINGS = {
    "xgboost": {"max_depth": 3, "colsample_bytree": 0.6, **DRAWN},
    "lightgbm": {
        "num_leaves": 7,
        "min_child_samples": 5,
        "subsample_freq": 1,
        "colsample_bytree": 0.6,
        "verbose": -1,
        **DRAWN,
    },
    "catboost": {
        "depth": 3,
        "bootstrap_type": "Bernoulli",
        "subsample": 0.7,
        "rsm": 0.6,
        "learning_rate": 0.1,
        "random_seed": 1,
        "thread_count": 1,
        "logging_level": "Silent",
        "allow_writing_files": False,
    },
}
# One of each library.
PLAIN = ["XGBRegressor", "LGBMRegressor", "CatBoostRegressor"]
LIBRARIES = {"XGB": "xgboost", "LGB": "lightgbm", "Cat": "catboost"}


def booster(name, n_stages=12, **settings):
    library = LIBRARIES[name[:3]]
    cls = getattr(pytest.importorskip(library), name)
    count = "iterations" if library == "catboost" else "n_estimators"
    return cls(**{count: n_stages} | SETTINGS[library] | settings)


def named(case):
    return "-".join(map(str, case)) if isinstance(case, tuple) else str(case)


def table(targets="values", n_rows=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    signal = X[:, 0] + np.sin(3 * X[:, 1]) + 0.3 * rng.standard_normal(n_rows)
    X[rng.random(X.shape) < 0.05] = np.nan
    three = np.digitize(signal, np.quantile(signal, [1 / 3, 2 / 3]))
    return X, {
        "values": signal,
        "counts": np.round(np.exp(signal)),
        "positive": np.exp(signal),
        "two outputs": np.column_stack([signal, -(signal**2)]),
        "two numbers": (signal > 0).astype(int),
        "three numbers": three,
        "two words": np.where(signal > 0, "yes", "no"),
        "three words": np.array(["low", "mid", "top"])[three],
    }[targets]


def rows(X, which):
    return X.iloc[which] if hasattr(X, "iloc") else X[which]


def by_hand(estimator, t, X, y, which, **params):
    """A fit of the library with so many trees, on some rows."""
    kind = staged_adapter_of(estimator)
    found = kind.clone_estimator().set_params(**{kind.count: t})
    own = {
        name: value[which] if len(value) == len(y) else value
        for name, value in params.items()
    }
    return found.fit(rows(X, which), y[which], **own)


def answer(estimator, X):
    return getattr(estimator, response_of(estimator))(X)
