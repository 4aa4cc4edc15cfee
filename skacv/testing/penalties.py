"""Whether a penalty is what it says."""

import numpy as np

from ..optim.penalties import Penalty
from ..optim.schedules import Nesterov
from ..optim.trajectory import Phase
from .assertions import require, require_close
from .short_runs import problem_of, require_memory_matrix, require_refits

# The step of differences.
STEP = 1e-6
N_POINTS = 41


def check_penalty(
    penalty: Penalty,
    n_columns: int = 6,
    *,
    step_size: float = 0.7,
    scale: float = 3.0,
    random_state: int = 0,
) -> None:
    """Check that a penalty is what its methods and attributes say.

    The prox is compared with brute force and its derivative with finite differences, as
    are the gradient and the second derivatives if it has them; arrays keep their shapes
    and precision; parts of the columns, other strengths and the support agree with the
    penalty of all columns; leave-one-out and folds along a short run are those of
    separate runs; and the memory matrix can be computed.

    Parameters
    ----------
    penalty : Penalty
        An instance of a subclass of ``skacv.optim.penalties.Uniform`` or
        ``skacv.optim.families.Grouped``, or a penalty with weights.
    n_columns : int, default=6
        Number of coefficients. A penalty with weights or groups has a number of its
        own.
    step_size : float, default=0.7
        Step of the prox. Some nonconvex penalties need a small one.
    scale : float, default=3.0
        The largest absolute value of the points of the prox. It should be large enough
        for all parts of the penalty: beyond the point from which it is constant, say.
    random_state : int, default=0
        Seed of what is drawn.

    Raises
    ------
    AssertionError
        If something is wrong. The error names the method or the attribute.
    ValueError
        If the penalty is not one of ``n_columns`` coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from skacv.optim.families import GroupL2
    >>> from skacv.optim.penalties import MCP
    >>> from skacv.testing import check_penalty
    >>> check_penalty(MCP(0.3, gamma=3.0))
    >>> check_penalty(GroupL2(0.5, groups=[0, 0, 1, 1], weights=[1.0, 0.0]), 4)
    """
    penalty.check(n_columns)
    rng = np.random.default_rng(random_state)
    name = type(penalty).__name__
    grid = np.linspace(-scale, scale, N_POINTS)
    points = np.stack([rng.permutation(grid) for _ in range(n_columns)])
    # So that groups are zero, too.
    points[:, ::4] *= 0.1
    points[:, 0] = 0
    _require_value(name, penalty, points)
    _require_prox_shapes(name, penalty, points, step_size)
    _require_strengths(name, penalty, points, step_size)
    if penalty.is_linear:
        _require_smooth(name, penalty, points, step_size)
    else:
        require(
            not np.any(penalty.smooth_gradient(points)),
            f"{name} must have either a prox or a smooth gradient, as its is_linear "
            "says.",
        )
        _require_minimum(name, penalty, points, step_size, rng)
        _require_zero_kept(name, penalty, n_columns, rng)
    _require_tangents(name, penalty, points, step_size, rng)
    _require_derivatives(name, penalty, points)
    _require_parts(name, penalty, points, step_size, rng)
    if penalty.is_rotation_invariant:
        _require_rotation(name, penalty, points, step_size, rng)
    X = rng.standard_normal((24, n_columns))
    target = X[:, :1] - X[:, -1:] + rng.standard_normal((24, 1))
    problem = problem_of(X, target)
    largest = 1 / (problem.smoothness + penalty.curvature)
    phases = [Phase(penalty, Nesterov(min(largest, step_size)), 12)]
    trajectory = require_refits(name, problem, phases)
    require_memory_matrix(name, problem, trajectory)


def _require_value(name, penalty, points):
    """It is zero at zero, nowhere negative, and the same for many iterates."""
    require(
        penalty.value(np.zeros_like(points)) == 0, f"{name}.value must be zero at zero."
    )
    values = np.array([penalty.value(point) for point in points.T])
    require(np.all(values >= 0), f"{name}.value must not be negative.")
    require_close(
        penalty.value(points),
        values.sum(),
        f"{name}.terms must treat further axes, which are fits side by side, one by "
        "one.",
    )
    iterates = points.T[:, :, None]
    require_close(
        penalty.values(iterates),
        values,
        f"{name}.values of many iterates are not the value of each.",
    )


def _require_prox_shapes(name, penalty, points, step_size):
    """Shapes, precision, steps of fits side by side; nothing is changed in place."""
    kept = points.copy()
    steps = step_size * np.linspace(0.2, 1, points.shape[1])
    found = np.asarray(penalty.prox(points, step_size))
    require(
        found.shape == points.shape,
        f"{name}.prox must keep the shape of its point, (n_columns, ...): got "
        f"{found.shape} for {points.shape}.",
    )
    outputs = np.stack([points, -0.5 * points], axis=1)
    together = penalty.prox(outputs, steps)
    for r, step in enumerate(steps):
        for k in range(2):
            require_close(
                together[:, k, r],
                penalty.prox(outputs[:, k, r], step),
                f"{name}.prox must treat outputs and fits, the further axes of its "
                "point, one by one, each with its own step.",
                atol=1e-14,
            )
    require(
        np.array_equal(points, kept), f"{name}.prox must not change its point in place."
    )
    require_close(
        penalty.prox(points, 0.0 * steps),
        points,
        f"{name}.prox must keep its point where step_size is zero, as it is where a "
        "coefficient has no weight.",
    )
    single, tangents = points.astype(np.float32), np.ones_like(points, np.float32)
    coef = penalty.prox(single[:, 1], step_size)[:, None]
    for method, found in (
        ("prox", penalty.prox(single, step_size)),
        ("prox_derivative", penalty.prox_derivative(coef, step_size)),
        ("prox_tangent", penalty.prox_tangent(coef, step_size, tangents)),
        ("smooth_gradient", penalty.smooth_gradient(single)),
    ):
        require(
            found.dtype == np.float32,
            f"{name}.{method} must keep the precision of its arguments: it returns "
            f"{found.dtype} for float32.",
        )


def _require_smooth(name, penalty, points, step_size):
    """A linear penalty acts through its gradient, and has no prox."""
    require(
        np.array_equal(penalty.prox(points, step_size), points),
        f"{name} declares that it is linear, but its prox moves points.",
    )
    require_close(
        penalty.smooth_gradient(points),
        _slopes(penalty, points),
        f"{name}.smooth_gradient is not the gradient of its value.",
        atol=1e-7,
    )
    curvature = np.abs(penalty.smooth_gradient(np.ones(len(points))))
    require_close(
        penalty.curvature,
        curvature.max(),
        f"{name}.curvature is not the largest curvature of its smooth part.",
    )
    common = penalty.common_curvature()
    require(
        common is None or np.allclose(curvature, common),
        f"{name}.common_curvature must be None unless the curvature is the same for "
        "all coefficients.",
    )


def _slopes(penalty, points):
    """Central differences of the value in every coefficient."""
    slopes = np.empty_like(points)
    for j in range(len(points)):
        shift = np.zeros_like(points)
        shift[j] = STEP
        for r in range(points.shape[1]):
            above = penalty.value(points[:, r] + shift[:, r])
            below = penalty.value(points[:, r] - shift[:, r])
            slopes[j, r] = (above - below) / (2 * STEP)
    return slopes


def _require_minimum(name, penalty, points, step_size, rng):
    """No other point has a smaller objective than the prox.

    Others are tried along every coefficient, along the point of its group, and around
    the prox at several distances.
    """
    coef = penalty.prox(points, step_size)
    n_columns = len(points)
    grid = np.linspace(-1.2, 1.2, 401)
    reach = np.abs(points).max()
    distances = np.repeat(10.0 ** -np.arange(5), 20)
    for r, point in enumerate(points.T):
        found = coef[:, [r]]
        require(
            np.isfinite(penalty.value(found)),
            f"{name}.prox must be where the penalty is finite.",
        )
        for j in range(n_columns):
            group = penalty.expand_to_groups(np.arange(n_columns) == j)
            line, ray = np.repeat(found, 401, axis=1), np.repeat(found, 401, axis=1)
            line[j] = reach * grid
            ray[group] = np.outer(point[group], grid)
            moves = distances * rng.standard_normal((n_columns, len(distances)))
            near = found + group[:, None] * moves
            candidates = np.concatenate([found, line, ray, near], axis=1)
            distance = ((candidates - point[:, None]) ** 2).sum(axis=0) / 2
            objectives = distance + step_size * penalty.terms(candidates).sum(axis=0)
            rounding = 1e-13 * (1 + objectives[0])
            require(
                objectives[0] <= objectives.min() + rounding,
                f"{name}.prox is not the minimum of (b - point)^2 / 2 + step_size g(b) "
                f"over b: at the point {point} it is {coef[:, r]}, and the objective "
                f"is smaller at {candidates[:, objectives.argmin()]}.",
            )


def _require_zero_kept(name, penalty, n_columns, rng):
    """The largest strength is the smallest that keeps zero coefficients at zero."""
    zero, step = np.zeros(n_columns), 0.5
    gradient = rng.standard_normal(n_columns)
    is_penalized = ~penalty.unpenalized(n_columns)
    # A prox that shrinks without a threshold keeps zero at no finite strength.
    if not is_penalized.any() or penalty.support(zero, step)[is_penalized].any():
        return
    largest = penalty.largest_strength(gradient, 1.0)
    for factor, stays in ((1.001, True), (0.999, False)):
        moved = penalty.with_strength(factor * largest).prox(-step * gradient, step)
        require(
            (moved[is_penalized] == 0).all() == stays,
            f"{name}.largest_strength must be the smallest strength at which zero "
            f"coefficients stay zero: at {factor} times it, "
            + ("some of them move." if stays else "all of them stay."),
        )


def _require_tangents(name, penalty, points, step_size, rng):
    """The derivative of the prox is that of differences; so is its support."""
    n_columns = len(points)
    along = rng.standard_normal((n_columns, 3))

    def tangents_at(point):
        coef = penalty.prox(point[:, None], step_size)
        return penalty.prox_tangent(coef, step_size, along.copy())

    n_smooth = 0
    for point in points.T:
        coef = penalty.prox(point, step_size)
        found = tangents_at(point)
        require(
            found.shape == along.shape,
            f"{name}.prox_tangent must have the shape of its tangents, {along.shape}, "
            f"got {found.shape}.",
        )
        expected, sides = np.empty_like(along), []
        for k, direction in enumerate(along.T):
            above, below = point + STEP * direction, point - STEP * direction
            difference = penalty.prox(above, step_size) - penalty.prox(below, step_size)
            expected[:, k] = difference / (2 * STEP)
            sides += [tangents_at(above)[:, k], tangents_at(below)[:, k]]
        # A difference across a kink is no derivative.
        jumps = [np.abs(side - found[:, k // 2]) for k, side in enumerate(sides)]
        is_smooth = np.max(jumps, axis=0) < 1e-3 * (1 + np.abs(found).max())
        n_smooth += is_smooth.sum()
        require_close(
            found[is_smooth],
            expected[is_smooth],
            f"{name}.prox_derivative, or its prox_tangent, is not the derivative of "
            f"its prox at the point {point}.",
            atol=1e-6,
        )
        support = penalty.support(coef, step_size)
        require(
            np.array_equal(support, (found != 0).any(axis=1)),
            f"{name}.support must be the coefficients at which the derivative of the "
            f"prox is not zero: at the coefficients {coef} it is {support}.",
        )
    require(
        n_smooth > 0.9 * points.size,
        f"{name}.prox_derivative jumps near more than a tenth of the points.",
    )


def _require_derivatives(name, penalty, points):
    """The gradient and second derivatives, if it has them, are those of the value."""
    for method, function in (
        ("gradient", penalty.value),
        ("hessian_diagonal", penalty.gradient),
    ):
        try:
            derivative = getattr(penalty, method)(points)
        except ValueError:  # it has none, and says so
            return
        require(
            derivative.shape == points.shape,
            f"{name}.{method} must have the shape of its coefficients, {points.shape}, "
            f"got {derivative.shape}.",
        )
        n_smooth = n_free = 0
        for point in points.T:
            is_free = penalty.is_free(point) & np.isfinite(penalty.terms(point))
            derivative = getattr(penalty, method)(point)
            for j in np.flatnonzero(is_free):
                # The others stay at zero, where the penalty is finite.
                coef = np.where(np.arange(len(point)) == j, point, 0)
                shift = STEP * (np.arange(len(point)) == j)
                above, below = function(coef + shift), function(coef - shift)
                sides = [getattr(penalty, method)(coef + s)[j] for s in (shift, -shift)]
                n_free += 1
                if not np.abs(sides[0] - sides[1]) < 1e-3:
                    continue
                n_smooth += 1
                difference = np.take(above - below, j if np.ndim(above) else 0)
                require_close(
                    derivative[j],
                    difference / (2 * STEP),
                    f"{name}.{method} is not the derivative of its "
                    f"{function.__name__} at the coefficient {point[j]}.",
                    atol=1e-6,
                )
        require(
            n_smooth >= 0.9 * n_free,
            f"{name}.{method} jumps near more than a tenth of the free coefficients.",
        )


def _require_parts(name, penalty, points, step_size, rng):
    """A penalty of some columns is the penalty of all, on these columns."""
    n_columns = len(points)
    mask = np.zeros(n_columns, dtype=bool)
    mask[rng.permutation(n_columns)[: (n_columns + 1) // 3]] = True
    whole = penalty.expand_to_groups(mask)
    require(
        np.all(whole[mask]) and np.array_equal(penalty.expand_to_groups(whole), whole),
        f"{name}.expand_to_groups must keep the columns of its mask, and must not "
        "change whole groups.",
    )
    for index in (np.flatnonzero(whole), np.empty(0, dtype=int)):
        try:
            part = penalty.on(index)
        except ValueError as error:
            raise AssertionError(f"{name}.on fails: {error}") from error
        part.check(len(index))
        along = np.ones((len(index), 2))
        coef = penalty.prox(points, step_size)
        for method, found, expected in (
            ("prox", part.prox(points[index], step_size), coef[index]),
            (
                "prox_tangent",
                part.prox_tangent(coef[index][:, [1]], step_size, along.copy()),
                penalty.prox_tangent(
                    coef[:, [1]], step_size, np.ones((n_columns, 2)) * whole[:, None]
                )[index],
            ),
            (
                "support",
                part.support(coef[index], step_size),
                penalty.support(coef, step_size)[index],
            ),
            (
                "unpenalized",
                part.unpenalized(len(index)),
                penalty.unpenalized(n_columns)[index],
            ),
        ):
            require(
                np.shape(found) == np.shape(expected) and np.allclose(found, expected),
                f"{name}.{method} of some columns differs from its values among all "
                "columns: use skacv.optim.families.Weighted for a weight per "
                "coefficient, and derive a penalty of groups from Grouped.",
            )


def _require_strengths(name, penalty, points, step_size):
    """Other strengths of the same penalty, and columns that none penalises."""
    strength = penalty.strength
    require(
        penalty.with_strength(strength) == penalty,
        f"{name}.with_strength of its own strength must be equal to it.",
    )
    other = penalty.with_strength(strength + 0.8)
    require(
        type(other) is type(penalty) and penalty.strength == strength,
        f"{name}.with_strength must return a {name}, and leave the penalty as it is.",
    )
    has_strength = strength > 0 or other != penalty
    if has_strength:
        require(
            other.strength == strength + 0.8,
            f"{name}.with_strength must return a penalty with the strength asked for.",
        )
        is_finite = np.isfinite(penalty.terms(points).sum(axis=0))
        finite = points[:, is_finite]
        if finite.any() and not penalty.unpenalized(len(points)).all():
            require(
                other.value(finite) > penalty.value(finite),
                f"{name}.with_strength of a larger strength must have larger values.",
            )
    none = penalty.with_strength(0.0)
    if np.isfinite(none.value(points)):
        along = np.ones((len(points), 1))
        moved = none.prox_tangent(points[:, [1]], step_size, along.copy())
        require(
            np.allclose(none.prox(points, step_size), points, rtol=1e-14, atol=0)
            and np.array_equal(moved, along)
            and none.value(points) == 0,
            f"{name} must be no penalty at the strength 0: its prox must keep all "
            "points, with a derivative of one at zero coefficients too.",
        )
    is_spared = penalty.unpenalized(len(points))
    spared = np.where(is_spared[:, None], points, 0)
    costs_nothing = np.array([other.value(b) == 0 for b in np.eye(len(points))])
    require(
        np.allclose(other.prox(spared, step_size), spared, rtol=1e-12, atol=0)
        and other.value(spared) == 0
        and (not has_strength or np.array_equal(costs_nothing, is_spared)),
        f"{name}.unpenalized must be the coefficients that no strength penalises.",
    )


def _require_rotation(name, penalty, points, step_size, rng):
    """It is the same in any orthonormal basis."""
    basis = np.linalg.qr(rng.standard_normal((len(points), len(points))))[0]
    rotated = basis @ points
    sentence = (
        f"{name} declares that it is rotation invariant, but its value, smooth "
        "gradient or prox changes in another orthonormal basis."
    )
    require_close(penalty.value(rotated), penalty.value(points), sentence, rtol=1e-9)
    for function in (penalty.smooth_gradient, lambda b: penalty.prox(b, step_size)):
        require_close(
            function(rotated), basis @ function(points), sentence, rtol=0, atol=1e-9
        )
