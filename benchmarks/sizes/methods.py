"""What would users call on many rows? The default, and boosted trees that are stopped.

A method is a function of the task, the number of threads and whether X is a frame that
gives an estimator. Peers have a fifth of the training rows set aside, as many trees as
these rows ask for, and their own learning rates; frames are given to them as in the
benchmark of unseen tables.
"""

from functools import partial

from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from skacv import SelfStoppingClassifier, SelfStoppingRegressor

from ..unseen.peers import EVALUATED, PATIENCE, SEED, Stopped, StoppedCatBoost
from ..unseen.views import Viewed, categories, categories_and_means, text

MOST_TREES = 5000
OURS, LIGHTGBM, HISTOGRAMS = "default", "LightGBM", "HistGB"


def default(task, threads, is_frame):
    """Ours with nothing set."""
    is_class = task == "classification"
    kind = SelfStoppingClassifier if is_class else SelfStoppingRegressor
    return kind(random_state=0)


def lightgbm(task, threads, is_frame):
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    kind = LGBMClassifier if task == "classification" else LGBMRegressor
    model = kind(n_estimators=MOST_TREES, n_jobs=threads, random_state=SEED, verbose=-1)
    return Stopped(model, callbacks=[early_stopping(PATIENCE, verbose=False)])


def catboost(task, threads, is_frame):
    from catboost import CatBoostClassifier, CatBoostRegressor

    kind = CatBoostClassifier if task == "classification" else CatBoostRegressor
    model = kind(
        n_estimators=MOST_TREES,
        thread_count=threads,
        random_state=SEED,
        verbose=False,
        allow_writing_files=False,
    )
    stopped = StoppedCatBoost if is_frame else Stopped
    return stopped(model, early_stopping_rounds=PATIENCE)


def histograms(task, threads, is_frame):
    is_class = task == "classification"
    kind = HistGradientBoostingClassifier if is_class else HistGradientBoostingRegressor
    return kind(
        max_iter=MOST_TREES,
        early_stopping=True,
        validation_fraction=EVALUATED,
        n_iter_no_change=PATIENCE,
        categorical_features="from_dtype",
        random_state=SEED,
    )


def viewed(view, method, task, threads, is_frame):
    """A method with its view of a frame; arrays are taken as they are."""
    model = method(task, threads, is_frame)
    return Viewed(view(task), lambda n_columns: model) if is_frame else model


METHODS = {
    OURS: default,
    LIGHTGBM: partial(viewed, categories, lightgbm),
    "CatBoost": partial(viewed, text, catboost),
    HISTOGRAMS: partial(viewed, categories_and_means, histograms),
}


def methods(*names):
    """Some of the methods, all without names."""
    return {name: METHODS[name] for name in names or METHODS}
