"""Check the declared properties of losses, penalties and schedules before a run.

Estimates rely on these properties: derivatives, the family of a penalty, updates that
can be repeated. If one of them did not hold, estimates would be silently wrong, so each
is checked at a random point, once for every class.
"""

from itertools import islice
from weakref import WeakSet

import numpy as np

from .penalties import Uniform

# The step of central differences.
DIFFERENCE = np.cbrt(np.finfo(float).eps)

_checked = WeakSet()


def check_plan(problem, planned):
    """Raise if parts of a plan do not go together, or lack a declared property."""
    if type(problem.loss) not in _checked:
        check_loss(problem.loss, problem.target[:16])
    updates, n_in_batches = [], 0
    for phase in planned:
        updates.append(phase.first_update)
        n_in_batches += updates[-1].n_batches > 0
    if 0 < n_in_batches < len(updates):
        raise ValueError(
            "A run must use batches in all updates or in none: leaving out a row "
            "means something else in batches."
        )
    n_columns = problem.design.shape[1]
    for phase, update in zip(planned, updates):
        penalty, schedule = phase.penalty, phase.schedule
        update.check(penalty)
        update.check_on(problem)
        if problem.design.is_dual:
            _check_on_kernel(update, penalty)
        if type(schedule) not in _checked:
            check_schedule(schedule)
        penalty.check(n_columns)
        # Weights of coefficients belong to this package: what they weigh is checked.
        uniform = getattr(penalty, "penalty", penalty)
        if type(uniform) not in _checked:
            step_size, strength = schedule.step_size, uniform.strength
            # Around the threshold of an l1 norm, and beyond what any penalty bends.
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
    point, along = rng.standard_normal((2, *target.shape))
    ahead, behind = point + DIFFERENCE * along, point - DIFFERENCE * along
    slope = loss.derivative(target, point)
    rise = (loss.value(target, ahead) - loss.value(target, behind)).sum(axis=1)
    # Next to large targets, differences of slopes have fewer digits.
    rounding = np.finfo(float).eps * np.abs(slope).max(initial=0) / DIFFERENCE
    if not _agree((slope * along).sum(axis=1), rise / (2 * DIFFERENCE)):
        raise ValueError(
            f"{type(loss).__name__}.derivative is not the derivative of its value."
        )
    curvature = loss.curvature(target, point)
    if loss.is_coupled:
        bend = np.einsum("ikl,il->ik", curvature, along)
    else:
        bend = curvature * along
    change = loss.derivative(target, ahead) - loss.derivative(target, behind)
    if not _agree(bend, change / (2 * DIFFERENCE), rounding):
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
    ahead = penalty.prox(point + DIFFERENCE * along, steps)
    behind = penalty.prox(point - DIFFERENCE * along, steps)
    tangents = np.empty_like(along)
    for r, step in enumerate(steps):
        tangent = penalty.prox_tangent(coef[:, :, r], step, along[:, :, r].copy())
        tangents[:, :, r] = tangent
    if not _agree(tangents, (ahead - behind) / (2 * DIFFERENCE)):
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
        least = (coef - point) ** 2 / 2 + steps * penalty.terms(coef)
        least -= DIFFERENCE * (1 + point**2)
        for b in (point, 0 * point, coef + 0.01 * point, coef - 0.01 * point):
            if (least > (b - point) ** 2 / 2 + steps * penalty.terms(b)).any():
                raise ValueError(
                    f"{name}.prox is not the minimum of (b - point)^2 / 2 + step_size "
                    "* terms(b) over b."
                )


def _agree(values, expected, rounding=0.0, tol=1e-4, share=0.8):
    """Whether most values are equal to those expected, within a tolerance."""
    # Kinks near a random point spoil single differences.
    size = np.abs(expected)
    allowed = tol * (size.max(initial=0) + size) + rounding
    right = np.abs(values - expected) <= allowed
    return right.mean() >= share
