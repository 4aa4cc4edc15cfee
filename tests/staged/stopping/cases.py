"""Small boosted trees, and their best stage by hand."""

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

SMALL = {"max_iter": 25, "learning_rate": 0.3, "min_samples_leaf": 5, "random_state": 0}


def boosted(**settings):
    return HistGradientBoostingRegressor(**{**SMALL, **settings})


def classifier(**settings):
    return HistGradientBoostingClassifier(**{**SMALL, **settings})


def by_hand(estimator, model, X, y, **params):
    """Held-out predictions of every stage in the order of the rows, by clones."""
    splits = [(np.setdiff1d(np.arange(len(y)), f), f) for f in model.cv_indices_]
    found = np.empty((model.n_iter_, len(y)))
    for fitted, judged in splits:
        own = {name: value[fitted] for name, value in params.items()}
        grown = clone(estimator).set_params(
            max_iter=model.n_iter_, early_stopping=False
        )
        grown.fit(X[fitted], y[fitted], **own)
        if hasattr(grown, "predict_proba"):
            staged = (p[:, 1] for p in grown.staged_predict_proba(X[judged]))
        else:
            staged = grown.staged_predict(X[judged])
        found[:, judged] = list(staged)
    return found
