"""Whether a schedule is what it says."""

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..optim.penalties import L1, SquaredL2
from ..optim.run import run
from ..optim.trajectory import Phase
from ..optim.updates import Update
from .assertions import require, require_close
from .short_runs import NO_PENALTY, padded, problem_of, require_refits, short_run

N_UPDATES = 12


def check_schedule(
    schedule: Any, X: ArrayLike | None = None, *, random_state: int = 0
) -> None:
    """Check that a schedule is what its methods and attributes say.

    Its updates are endless and the same every time, with positive steps and a momentum
    below one; the automatic step reduces a squared error; a run in two parts is the run
    at once; leave-one-out and folds along a run are those of separate runs; and runs of
    all rows converge just below the largest stable step and diverge above it.

    Parameters
    ----------
    schedule : object
        A frozen dataclass with the methods of ``skacv.optim.schedules.Schedule``.
    X : array-like of shape (n_rows, n_columns), default=None
        Rows of the runs, for schedules that name rows or are made for some data. None:
        30 rows of 8 standard normal numbers.
    random_state : int, default=0
        Seed of what is drawn.

    Raises
    ------
    AssertionError
        If something is wrong. The error says what.

    Examples
    --------
    >>> from skacv.optim.schedules import HeavyBall, StochasticGradient
    >>> from skacv.testing import check_schedule
    >>> check_schedule(HeavyBall(0.1, momentum=0.5))
    >>> check_schedule(StochasticGradient(0.1, 0.5, n_rows=30, batch_size=8, seed=0))
    """
    rng = np.random.default_rng(random_state)
    X = rng.standard_normal((30, 8)) if X is None else np.array(X, dtype=float)
    target = X @ rng.standard_normal((X.shape[1], 1)) + rng.standard_normal((len(X), 1))
    problem, name = problem_of(X, target), type(schedule).__name__
    try:
        half = replace(schedule, step_size=0.5 * schedule.step_size)
    except (TypeError, AttributeError) as error:
        raise AssertionError(
            f"{name} must be a dataclass with a field step_size, which estimators "
            f"replace by their own step: {error}"
        ) from error
    for each in (schedule, half):
        updates = list(islice(each.updates(), 40))
        _require_updates(name, each, updates)
    phase = Phase(NO_PENALTY, schedule, N_UPDATES)
    smoothness = phase.smoothness(problem)
    largest = schedule.largest_stable_step(smoothness)
    require(
        0 < schedule.largest_stable_step(2 * smoothness) <= largest,
        f"{name}.largest_stable_step must be positive, and must not rise with the "
        "smoothness.",
    )
    if hasattr(schedule, "automatic_step"):
        step_size = schedule.automatic_step(smoothness)
    else:
        step_size = 1 / smoothness
    require(
        0 < step_size <= largest,
        f"The automatic step of {name} is {step_size:g}, and its largest_stable_step "
        f"{largest:g}.",
    )
    update = next(iter(schedule.updates()))
    penalties = [NO_PENALTY, SquaredL2(0.1), L1(0.1)]
    for penalty in penalties:
        try:
            update.check(penalty, problem)
        except ValueError:  # it is for smooth penalties, and says so
            continue
        # A smooth penalty adds to the curvature that limits the step.
        step = step_size * smoothness / (smoothness + penalty.curvature)
        phase = Phase(penalty, replace(schedule, step_size=step), N_UPDATES)
        trajectory = require_refits(name, problem, [phase])
        values = problem.objectives(trajectory)
        require(
            values[-1] < values[0] or np.isinf(largest),
            f"A run with {name} and its automatic step does not reduce the objective.",
        )
        _require_parts(name, problem, phase)
        if update.is_affine and update.is_elementwise and not update.n_batches:
            gradient = problem.gradient(np.zeros_like(target))
            require_close(
                trajectory.coef[1],
                penalty.prox(-step * gradient, step),
                f"The first update of {name} must be a gradient step of its step_size: "
                "there is nothing to extrapolate.",
                atol=1e-12,
            )
        if np.isfinite(largest) and not update.n_batches:
            _require_stability(name, problem, penalty, schedule)


def _require_updates(name, schedule, updates):
    """Updates are endless, the same every time, with steps that can be taken."""
    require(len(updates) == 40, f"{name}.updates() must be endless.")
    require(
        all(isinstance(update, Update) for update in updates),
        f"{name}.updates() must yield updates of skacv.optim.updates.",
    )
    require(
        list(islice(schedule.updates(), 40)) == updates,
        f"{name}.updates() must yield the same updates every time: estimates repeat "
        "the run.",
    )
    steps = np.array([update.step_size for update in updates])
    require(
        np.all(np.isfinite(steps) & (steps > 0)),
        f"Steps of {name}.updates() must be positive and finite, got {steps}.",
    )
    require(
        np.isclose(steps[0], schedule.step_size),
        f"The first step of {name}.updates() must be its step_size, "
        f"{schedule.step_size:g}, got {steps[0]:g}: estimators set it.",
    )
    for field in ("momentum", "lookahead"):
        values = np.array([getattr(update, field, 0.0) for update in updates])
        require(
            np.all(np.abs(values) < 1),
            f"The {field} of {name}.updates() must be below one, got {values}.",
        )


def _require_parts(name, problem, phase):
    """A run that goes on after some updates is the run at once."""
    n_iterates = phase.n_updates + 1
    first = short_run(name, problem, [replace(phase, n_updates=5)])
    in_parts = run(problem, [phase], first.coef, done=first.phases)
    require_close(
        padded(in_parts.coef, n_iterates),
        padded(short_run(name, problem, [phase]).coef, n_iterates),
        f"A run with {name} in two parts is not the run at once.",
        atol=1e-12,
    )


def _require_stability(name, problem, penalty, schedule):
    """Runs converge just below the largest stable step, and diverge just above it."""
    phase = Phase(penalty, schedule, 3000)
    largest = phase.largest_stable_step(phase.smoothness(problem))
    below = replace(phase, schedule=replace(schedule, step_size=0.95 * largest))
    coef = short_run(name, problem, [below]).coef[-1]
    gradient = problem.gradient(problem.design.dot(coef))
    gradient += penalty.smooth_gradient(coef)
    require_close(
        penalty.prox(coef - 0.1 * gradient, 0.1),
        coef,
        f"A run with {name} does not converge at 0.95 times its largest_stable_step.",
        atol=1e-8,
    )
    if penalty is not NO_PENALTY:
        return
    above = replace(phase, schedule=replace(schedule, step_size=1.05 * largest))
    start = np.zeros((1, *coef.shape))
    try:
        run(problem, [above], start)
    except ValueError:
        return
    raise AssertionError(
        f"A run with {name} converges at 1.05 times its largest_stable_step, so this "
        "is not the largest."
    )
