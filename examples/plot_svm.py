"""
A support vector machine that stops itself, and why its hinge is rounded
========================================================================

Leaving rows out along a run follows each run without a row by linearising its
gradient around the recorded one. Half of that is the curvature of the loss, and a
hinge has none: all it has is a kink, where its derivative jumps. The first table and
the left panel show what comes of it, on Gaussian rows with noisy labels: how far
the coefficients without a row are from the exact ones, as a share of what leaving
it out does. At one the estimate is no better than the iterate itself. Squared and
smoothed hinges have a curvature, and a kink in their derivative alone: evaluating
what linearising misses now and then ("corrected") mends most of the rest. The
shorter the smoothing, the more it is like the raw hinge.

The second table and the right panel are a choice by accuracy: are the digits that
ship with scikit-learn odd or even? One run of ``TrajectoryLinearSVC`` walks twenty
values of C, and the pooled decisions on rows left out choose value and iterate.
``GridSearchCV`` refits ``LinearSVC`` at the same values on five folds. A part of the
rows is kept aside to tell the truth.

Run ``python examples/plot_svm.py --output DIR`` to write the figure.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skacv import TrajectoryEarlyStoppingCV, TrajectoryLinearSVC
from skacv.optim.design import Design
from skacv.optim.losses import Loss, SmoothedHinge, SquaredHinge
from skacv.optim.penalties import SquaredL2
from skacv.optim.schedules import GradientDescent
from skacv.optim.trajectory import Phase, Problem, run
from skacv.risk import iacv, lockstep
from skacv.risk.held_out import LeftOutRows

STRENGTH, STEP_SIZE = 0.01, 0.05
VALUES_OF_C = np.geomspace(1e-4, 10, 20)


@dataclass(frozen=True)
class Hinge(Loss):
    """The raw hinge of a label -1 or 1, l(y, z) = max(0, 1 - y z)."""

    def value(self, target, predictor):
        return np.maximum(0, 1 - target * predictor)

    def derivative(self, target, predictor):
        return -target * (target * predictor < 1)

    def curvature(self, target, predictor):
        return np.zeros_like(predictor)


LOSSES = {
    "squared hinge": (SquaredHinge(), "#0072B2"),
    "hinge smoothed over 0.5": (SmoothedHinge(0.5), "#009E73"),
    "hinge smoothed over 0.1": (SmoothedHinge(0.1), "#E69F00"),
    "raw hinge": (Hinge(), "#D55E00"),
}
MODELS = {
    "squared hinge": TrajectoryLinearSVC(VALUES_OF_C, max_iter=20),
    "smoothed hinge": TrajectoryLinearSVC(
        VALUES_OF_C, loss="smoothed_hinge", max_iter=20
    ),
}


def noisy_labels(n, p, rng):
    """Gaussian rows, and labels -1 and 1 by five of their columns and noise."""
    X = rng.standard_normal((n, p))
    signal = X[:, :5] @ rng.standard_normal((5, 1))
    return X, np.where(signal + rng.standard_normal((n, 1)) > 0, 1.0, -1.0)


def of_sum(share):
    """Without a row, the penalty weighs more beside the mean of the others."""
    return 1 / share


def without_rows(problem, n_updates, rows):
    """The last iterate, without each row: exact, linearised, corrected.

    Returns
    -------
    coef : ndarray of shape (n_features,)
        With all rows.
    exact, linearised, corrected : ndarray of shape (n_left_out, n_features)
        What leaving the row out adds to it.
    """
    plan = [Phase(SquaredL2(STRENGTH), GradientDescent(STEP_SIZE), n_updates)]
    start = np.zeros((1, problem.design.shape[1], 1))
    trajectory = run(problem, plan, start)
    coef = trajectory.coef[-1]
    stays = np.ones((len(problem.target), len(rows)), dtype=bool)
    stays[rows, np.arange(len(rows))] = False
    replicas = lockstep.Replicas.without(problem, stays, False, of_sum)
    *_, (exact, _) = lockstep.replayed(problem, trajectory, replicas)
    left_out = LeftOutRows.of(problem, rows, False, of_sum)
    found = [
        iacv.leave_one_out(problem, trajectory, left_out, len(rows), map, correction)[1]
        for correction in (False, True)
    ]
    return (coef[:, 0], (exact[:, 0] - coef).T, *(d[:, :, 0] for d in found))


def shares_missed(problem, iterates, rows):
    """Mean distance from the exact effect of leaving a row out, over its mean size.

    Linearised and corrected, (2, n_iterates).
    """
    shares = []
    for n_updates in iterates:
        _, exact, *found = without_rows(problem, n_updates, rows)
        size = np.linalg.norm(exact, axis=1).mean()
        shares.append([np.linalg.norm(d - exact, axis=1).mean() / size for d in found])
    return np.array(shares).T
