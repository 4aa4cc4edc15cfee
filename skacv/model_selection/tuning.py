"""Runs as trials of a tuner, which ends those that fall behind."""

from typing import Any

import numpy as np

from .._estimator.run.stopping import Patience
from ..records.run import Run


def run_in_trial(
    run: Run, trial: Any, *, every: int = 10, patience: int | None = None
) -> np.ndarray:
    """Go on with a run, and report its mean held-out losses to a trial of Optuna.

    All folds grow together, so that a value is the mean over all of them, also where a
    pruner ends the trial: pruned and complete trials are compared on the same rows.

    Parameters
    ----------
    run : Run
        As ``begin`` of an estimator with ``cv`` returns it. For boosted trees and other
        stages ``begin(..., growth="first")`` grows the folds alone, which is all that a
        trial needs.
    trial : optuna.trial.Trial
        Of a study that minimises. Only ``report(value, step)`` and ``should_prune()``
        are called.
    every : int, default=10
        Number of updates, or of stages, between reports.
    patience : int, default=None
        Number of updates without improvement after which the run stops; None: it goes
        on to its end.

    Returns
    -------
    ndarray of shape (n_iterates,)
        ``cv_path_`` of the run: its smallest value is that of the trial.

    Raises
    ------
    optuna.TrialPruned
        If the trial should be pruned.
    ValueError
        If ``every`` is not positive, or the run has no folds.

    See Also
    --------
    skacv.TrajectoryEarlyStoppingCV : Fits the best parameters, or compares those of a
        ``param_grid`` without a tuner.

    Examples
    --------
    A trial that is never pruned:

    >>> from types import SimpleNamespace
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from skacv import Staged
    >>> from skacv.model_selection import run_in_trial
    >>> X, y = load_diabetes(return_X_y=True)
    >>> trial = SimpleNamespace(
    ...     report=lambda value, step: print(f"{step} trees"),
    ...     should_prune=lambda: False,
    ... )
    >>> trees = GradientBoostingRegressor(n_estimators=40, random_state=0)
    >>> run = Staged(trees, cv=5).begin(X, y, growth="first")
    >>> path = run_in_trial(run, trial, every=20)
    20 trees
    40 trees
    >>> path.shape
    (41,)
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, got {every}.")
    n_updates, n_reported, is_over = 0, 0, False
    while not is_over:
        n_updates += every
        is_complete = run.go_on(n_updates)
        held_out = run.record().estimates.get("cv")
        if held_out is None:
            raise ValueError(
                "The run has no folds, whose losses a trial could be judged by: set cv "
                "of the estimator, as in Staged(model, cv=5)."
            )
        path = held_out.path
        n_iterates = len(path) - 1
        # A run whose iterates have converged may have no new ones.
        if n_iterates > n_reported:
            n_reported = n_iterates
            trial.report(float(path[-1]), n_iterates)
            if trial.should_prune():
                from optuna import TrialPruned

                raise TrialPruned(
                    f"pruned after {n_iterates} updates, at a held-out loss of "
                    f"{path[-1]:.6g}"
                )
        # Without the start: a network is worse than a constant for long.
        is_over = is_complete or Patience(patience).follow(path[1:]).has_ended
    return path
