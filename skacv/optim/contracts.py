"""Check the declared properties of losses, penalties and schedules before a run.

Estimates rely on derivatives, on the family of a penalty, and on updates that can be
repeated. Where one of these were wrong, estimates would be wrong without an error. So
each is checked at a random point, once for every class.
"""

from itertools import islice
from weakref import WeakSet

import numpy as np

from .penalties import Uniform
from .updates import NewtonStep

# The step of central differences.
DIFFERENCE = np.cbrt(np.finfo(float).eps)

_checked: WeakSet[type] = WeakSet()


def check_plan(problem, planned):
    """Raise if the phases of a plan are incompatible, or lack a declared property."""
    if type(problem.loss) not in _checked and not problem.loss.couples_rows:
        check_loss(problem.loss, problem.target[:16])
    updates, n_with_batches = [], 0
    for phase in planned:
        updates.append(phase.first_update)
        if problem.loss.couples_rows:
            check_takes_all_rows(updates[-1], problem.loss)
        n_with_batches += updates[-1].n_batches > 0
    if 0 < n_with_batches < len(updates):
        raise ValueError(
            "A run must use batches in all updates or in none: leaving out a row "
            "means something else in batches."
        )
    n_columns = problem.design.shape[1]
    for phase, update in zip(planned, updates):
        penalty, schedule = phase.penalty, phase.schedule
        update.check(penalty, problem)
        if problem.design.is_dual:
            _check_on_kernel(update, penalty)
        if type(schedule) not in _checked:
            check_schedule(schedule)
        penalty.check(n_columns)
        # A Weighted penalty is this package's: check the penalty within it.
        uniform = getattr(penalty, "penalty", penalty)
        if type(uniform) not in _checked:
            step_size, strength = schedule.step_size, uniform.strength
            # Points around the threshold of an l1 norm, and points so large that
            # penalties are constant or linear there.
            for scale in (2 * step_size * strength, 10 * (1 + strength)):
                check_penalty(uniform, n_columns, step_size, scale or 1.0)
            _checked.add(type(uniform))


def _check_on_kernel(update, penalty):
    """Raise if an update or a prox needs columns, which a kernel does not have."""
    if not penalty.is_linear:
        raise ValueError(
            f"Coefficients of a kernel are dual: {type(penalty).__name__} cannot be "
            "applied to them. Use a ridge penalty, or none."
        )
    if not update.is_affine:
        raise ValueError(
            f"{type(update).__name__} needs the columns of X, which a kernel does "
            "not have: use gradient steps."
        )


def check_takes_all_rows(update, loss):
    """Raise if an update needs losses of single rows, which have none by themselves."""
    if update.n_batches or isinstance(update, NewtonStep):
        raise ValueError(
            f"{type(update).__name__} needs losses of single rows, and the {loss.name} "
            "compares rows with each other: use gradient steps of all rows."
        )


def check_schedule(schedule):
    """Raise if a schedule does not begin with the same updates every time."""
    if list(islice(schedule.updates(), 3)) != list(islice(schedule.updates(), 3)):
        raise ValueError(
            f"{type(schedule).__name__}.updates() must yield the same updates every "
            "time: estimates repeat the run."
        )
    _checked.add(type(schedule))


def check_loss(loss, target):
    """Raise if the derivatives or the mean of a loss are wrong."""
    rng = np.random.default_rng(0)
    target = target.astype(np.float64)
    point, direction = rng.standard_normal((2, *target.shape))
    forward, backward = point + DIFFERENCE * direction, point - DIFFERENCE * direction
    slope = loss.derivative(target, point)
    value_difference = (loss.value(target, forward) - loss.value(target, backward)).sum(
        axis=1
    )
    # Where targets are large, differences of slopes lose digits.
    rounding = np.finfo(float).eps * np.abs(slope).max(initial=0) / DIFFERENCE
    if not _mostly_equal(
        (slope * direction).sum(axis=1), value_difference / (2 * DIFFERENCE)
    ):
        raise ValueError(
            f"{type(loss).__name__}.derivative is not the derivative of its value."
        )
    curvature = loss.curvature(target, point)
    if loss.is_coupled:
        curvature_times_direction = np.einsum("ikl,il->ik", curvature, direction)
    else:
        curvature_times_direction = curvature * direction
    slope_difference = loss.derivative(target, forward) - loss.derivative(
        target, backward
    )
    if not _mostly_equal(
        curvature_times_direction, slope_difference / (2 * DIFFERENCE), rounding
    ):
        raise ValueError(
            f"{type(loss).__name__}.curvature is not the derivative of its derivative."
        )
    if not np.allclose(loss.predictor(loss.mean(point)), point):
        raise ValueError(
            f"{type(loss).__name__}.predictor is not the inverse of its mean: losses "
            "of held-out predictions are computed through it."
        )
    if loss.is_quadratic and not np.allclose(slope, point - target):
        raise ValueError(
            f"{type(loss).__name__} declares that it is quadratic, that is, half the "
            "squared error, but its derivative is not predictor - target."
        )
    _checked.add(type(loss))


def check_penalty(penalty, n_columns, step_size, scale, n_points=8):
    """Raise if a prox does not match its family at random points of size ``scale``."""
    name, rng = type(penalty).__name__, np.random.default_rng(0)
    point, direction = scale * rng.standard_normal((2, n_columns, 1, n_points))
    steps = step_size * np.linspace(0.5, 1, n_points)
    coef = np.asarray(penalty.prox(point.copy(), steps))
    if coef.shape != point.shape:
        raise ValueError(
            f"{name}.prox must keep the shape of its point, (n_columns, ...): got "
            f"{coef.shape} for {point.shape}. Weights of coefficients belong in "
            "skacv.optim.families.Weighted."
        )
    if not np.allclose(penalty.prox(point[:, :, 0].copy(), steps[0]), coef[:, :, 0]):
        raise ValueError(f"{name}.prox must treat fits (the last axis) separately.")
    # A few columns, and the other columns on which their prox depends.
    mask = np.zeros(n_columns, dtype=bool)
    mask[rng.permutation(n_columns)[: min(16, (n_columns + 1) // 2)]] = True
    index = np.flatnonzero(penalty.expand_to_groups(mask))
    if not np.allclose(penalty.on(index).prox(point[index], steps), coef[index]):
        raise ValueError(
            f"{name}.prox of some columns differs from its values among all columns: "
            "use skacv.optim.families.Weighted for a weight per coefficient, and "
            "derive a penalty of groups from Grouped."
        )
    forward = penalty.prox(point + DIFFERENCE * direction, steps)
    backward = penalty.prox(point - DIFFERENCE * direction, steps)
    tangents = np.empty_like(direction)
    for r, step in enumerate(steps):
        tangent = penalty.prox_tangent(coef[:, :, r], step, direction[:, :, r].copy())
        tangents[:, :, r] = tangent
    if not _mostly_equal(tangents, (forward - backward) / (2 * DIFFERENCE)):
        raise ValueError(f"{name}.prox_derivative is not the derivative of its prox.")
    if penalty.is_linear and not np.array_equal(coef, point):
        raise ValueError(
            f"{name} declares that it is linear, but its prox moves points."
        )
    if isinstance(penalty, Uniform) and not penalty.is_linear:
        if not np.allclose(penalty.prox(point.copy(), np.zeros_like(steps)), point):
            raise ValueError(
                f"{name}.prox must keep its point where step_size is zero, as it is "
                "where a coefficient has no weight."
            )
        objective_at_prox = (coef - point) ** 2 / 2 + steps * penalty.terms(coef)
        objective_at_prox -= DIFFERENCE * (1 + point**2)
        for b in (point, 0 * point, coef + 0.01 * point, coef - 0.01 * point):
            if (
                objective_at_prox > (b - point) ** 2 / 2 + steps * penalty.terms(b)
            ).any():
                raise ValueError(
                    f"{name}.prox is not the minimum of (b - point)^2 / 2 + step_size "
                    "* terms(b) over b."
                )


def _mostly_equal(values, expected, rounding=0.0, tol=1e-4, share=0.8):
    """Whether a ``share`` of the values or more equal the expected ones to ``tol``."""
    # Not all: where a kink is near a random point, its difference is wrong.
    size = np.abs(expected)
    tolerance = tol * (size.max(initial=0) + size) + rounding
    is_equal = np.abs(values - expected) <= tolerance
    return is_equal.mean() >= share
