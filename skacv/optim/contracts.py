"""Check the declared properties of losses, penalties and schedules before a run.

Estimates rely on these properties: derivatives, the family of a penalty, updates that
can be repeated. If one of them did not hold, estimates would be silently wrong, so each
is checked at a random point, once for every class.
"""

from functools import partial
from itertools import islice
from weakref import WeakSet

import numpy as np

from .penalties import Uniform

# The step of central differences.
DIFFERENCE = np.cbrt(np.finfo(float).eps)

_checked = WeakSet()


def check_plan(problem, planned):
    """Raise if the parts of a plan do not match, or lack their declared properties."""
    _once(problem.loss, check_loss, problem.target[:16])
    in_batches = [phase.first_update.n_batches > 0 for phase in planned]
    if any(in_batches) and not all(in_batches):
        raise ValueError(
            "A run must use batches in all updates or in none: leaving out a row "
            "means something else in batches."
        )
    for phase in planned:
        phase.first_update.check(phase.penalty)
        phase.first_update.check_on(problem)
        if problem.design.is_dual:
            _check_on_kernel(phase.first_update, phase.penalty)
        _once(phase.schedule, check_schedule)
        n_columns, step_size = problem.design.shape[1], phase.schedule.step_size
        phase.penalty.check(n_columns)
        # Weights of coefficients are ours.
        uniform = getattr(phase.penalty, "penalty", phase.penalty)
        _once(uniform, check_penalty, n_columns, step_size)


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


def _once(part, check, *arguments):
    if type(part) not in _checked:
        check(part, *arguments)
        _checked.add(type(part))


def check_schedule(schedule):
    """Raise if a schedule does not begin with the same updates every time."""
    first, again = (list(islice(schedule.updates(), 3)) for _ in range(2))
    if first != again:
        raise ValueError(
            f"{type(schedule).__name__}.updates() must yield the same updates every "
            "time: estimates repeat the run."
        )


def check_loss(loss, target):
    """Raise if the derivatives or the mean of a loss are wrong."""
    rng = np.random.default_rng(0)
    target = target.astype(np.float64)
    point, along = rng.standard_normal((2, *target.shape))
    slope = loss.derivative(target, point)
    rise = _difference(partial(loss.value, target), point, along).sum(axis=1)
    # Beside large targets, differences of slopes are rounded.
    rounding = np.finfo(float).eps * np.abs(slope).max(initial=0) / DIFFERENCE
    if not _agree((slope * along).sum(axis=1), rise):
        raise ValueError(
            f"{type(loss).__name__}.derivative is not the derivative of its value."
        )
    curvature = loss.curvature(target, point)
    if loss.is_coupled:
        bend = np.einsum("ikl,il->ik", curvature, along)
    else:
        bend = curvature * along
    difference = _difference(partial(loss.derivative, target), point, along)
    if not _agree(bend, difference, rounding):
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


def check_penalty(penalty, n_columns, step_size):
    """Raise if a penalty's prox does not match its family."""
    # Around the threshold of an l1 norm, and beyond what any penalty bends.
    for scale in (2 * step_size * penalty.strength, 10 * (1 + penalty.strength)):
        _check_prox(penalty, n_columns, step_size, scale or 1.0)


def _check_prox(penalty, n_columns, step_size, scale, n_points=8):
    name, rng = type(penalty).__name__, np.random.default_rng(0)
    point, along = scale * rng.standard_normal((2, n_columns, 1, n_points))
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
    # A few columns, completed by those that their prox depends on.
    mask = np.zeros(n_columns, dtype=bool)
    mask[rng.permutation(n_columns)[: min(16, (n_columns + 1) // 2)]] = True
    index = np.flatnonzero(penalty.expand_to_groups(mask))
    if not np.allclose(penalty.on(index).prox(point[index], steps), coef[index]):
        raise ValueError(
            f"{name}.prox of some columns differs from its values among all columns: "
            "use skacv.optim.families.Weighted for a weight per coefficient, and "
            "derive a penalty of groups from Grouped."
        )
    difference = _difference(lambda u: penalty.prox(u, steps), point, along)
    tangents = [
        penalty.prox_tangent(coef[:, :, r], step, along[:, :, r].copy())
        for r, step in enumerate(steps)
    ]
    if not _agree(np.stack(tangents, axis=2), difference):
        raise ValueError(f"{name}.prox_derivative is not the derivative of its prox.")
    if penalty.is_linear and not np.array_equal(coef, point):
        raise ValueError(
            f"{name} declares that it is linear, but its prox moves points."
        )
    if isinstance(penalty, Uniform) and not penalty.is_linear:
        _check_minimum(penalty, point, coef, steps)


def _check_minimum(penalty, point, coef, steps):
    """Raise if the prox of a uniform penalty does not minimise, or not without it."""
    name = type(penalty).__name__
    if not np.allclose(penalty.prox(point.copy(), np.zeros_like(steps)), point):
        raise ValueError(
            f"{name}.prox must keep its point where step_size is zero, as it is where "
            "a coefficient has no weight."
        )

    def objective(b):
        return (b - point) ** 2 / 2 + steps * penalty.terms(b)

    least = objective(coef) - DIFFERENCE * (1 + point**2)
    candidates = point, 0 * point, coef + 0.01 * point, coef - 0.01 * point
    if any((least > objective(b)).any() for b in candidates):
        raise ValueError(
            f"{name}.prox is not the minimum of (b - point)^2 / 2 + step_size * "
            "terms(b) over b."
        )


def _difference(function, point, along):
    step = DIFFERENCE * along
    return (function(point + step) - function(point - step)) / (2 * DIFFERENCE)


def _agree(values, expected, rounding=0.0, tol=1e-4, share=0.8):
    # Kinks near a random point spoil single differences.
    size = np.abs(expected)
    allowed = tol * (size.max(initial=0) + size) + rounding
    right = np.abs(values - expected) <= allowed
    return right.mean() >= share
