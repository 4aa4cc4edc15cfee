"""What a fit has run, through estimates that tests register."""

from contextlib import contextmanager

import numpy as np

from skacv import TrajectoryEarlyStoppingCV
from skacv.model_selection import Estimate, register_estimate, unregister_estimate


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
    with reading(lambda run: runs.append(run) or {}):
        model.fit(*args, **kwargs)
    return runs[-1]


def stopped_at(t, model, X, y, **params):
    """A model that is chosen at iterate t."""

    def distance(run):
        path = np.abs(np.arange(len(run.trajectory.coef)) - float(t))
        return {"read_path_": path, "read_se_path_": np.zeros_like(path)}

    with reading(distance):
        return TrajectoryEarlyStoppingCV(model, criterion="read", **params).fit(X, y)
