"""What a fit has run, through estimates that tests register; runs still in memory."""

import gc
from contextlib import contextmanager
from types import FunctionType, ModuleType

import numpy as np
from sklearn.base import clone

from skacv import IterativeRidge, TrajectoryEarlyStoppingCV
from skacv.model_selection import Estimate, register_estimate, unregister_estimate
from skacv.optim.run import LiveRun
from skacv.records import HeldOut


def fitted_attributes(model):
    """The names of all that a fit has left, but for the record that has it."""
    names = [name for name in dir(model) if name.endswith("_") and name[0] != "_"]
    return [name for name in names if name != "record_" and hasattr(model, name)]


class InParts:
    """A model whose run goes on in parts; it has taken the record so far."""

    def __init__(self, model, X, y=None, *args, **params):
        self.model, self.run = model, model.begin(X, y, *args, **params)

    def go_on(self, n_updates):
        """Go on up to a total number of updates; whether the run is complete."""
        is_complete = self.run.go_on(n_updates)
        self.model.take(self.run.record())
        return is_complete


@contextmanager
def reading(read, **declared):
    """Let fits compute an estimate named "read", by that reader."""
    limits = "It is of every run."
    register_estimate(Estimate("read", "read", read, limits=limits, **declared))
    try:
        yield
    finally:
        unregister_estimate("read")


def run_of(model, *args, **kwargs):
    """Fit a model, and return its FinishedRun."""
    runs = []
    with reading(lambda run: runs.append(run)):
        model.fit(*args, **kwargs)
    return runs[-1]


def stopped_at(t, model, X, y, **params):
    """A model that is chosen at iterate t."""

    def distance(run):
        path = np.abs(np.arange(len(run.trajectory.coef)) - float(t))
        return HeldOut(path, np.zeros_like(path))

    with reading(distance):
        return TrajectoryEarlyStoppingCV(model, criterion="read", **params).fit(X, y)


def assert_same_summary(found, expected, rtol=1e-9):
    """Fits to two summaries of rows are the same, and so are those of their folds."""
    n_folds = expected.n_folds
    model = IterativeRidge(10.0, max_iter=10, loo=False, risk=False)
    model.set_params(cv=n_folds if n_folds > 1 else None)
    fits = [clone(model).fit(summary) for summary in (found, expected)]
    names = ["coef_path_", "intercept_path_", "train_path_"]
    for name in names + ["cv_fold_path_"] * (n_folds > 1):
        actual, desired = (getattr(fit, name) for fit in fits)
        size = np.abs(desired).max()
        np.testing.assert_allclose(actual, desired, rtol=0, atol=rtol * size)


def runs_in_memory():
    """Runs that could still go on, whoever holds them."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, LiveRun)]


def arrays_held_by(model):
    """Every array that a model holds, in whatever it keeps."""
    return [each for each in objects_held_by(model) if isinstance(each, np.ndarray)]


def objects_held_by(model):
    """All that a model holds, directly or in what it keeps."""
    seen, found, left = set(), [], [model]
    while left:
        each = left.pop()
        if id(each) in seen or isinstance(each, type | ModuleType | FunctionType):
            continue
        seen.add(id(each))
        found.append(each)
        if isinstance(each, np.ndarray):
            left.append(each.base)
        elif not isinstance(each, str | bytes | int | float | complex | None):
            left += gc.get_referents(each)
    return found


def run_after_laps(model, splits, X, y, n_stages, **params):
    """Fit ``Staged`` to folds by a run that takes over runs of two of these folds.

    One of them has grown further than the run is asked to go first, one less far.
    """
    former = None
    for split, n in zip(splits[:2], (n_stages - 1, 1)):
        lap = clone(model).set_params(cv=[split])
        run = lap.begin(X, y, growth="first", former=former, **params)
        run.go_on(n)
        run.end()
        former = run.hand_over()
    run = model.set_params(cv=splits).begin(X, y, former=former, **params)
    for n in (2, n_stages):
        run.go_on(n)
        model.take(run.record())
    model.take(run.end())
