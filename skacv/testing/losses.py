"""Whether a loss is what it says."""

import numpy as np
from numpy.typing import ArrayLike

from ..optim.losses import Loss
from ..optim.schedules import GradientDescent
from ..optim.trajectory import Phase
from .assertions import require, require_close
from .short_runs import (
    NO_PENALTY,
    problem_of,
    require_memory_matrix,
    require_refits,
)

# The step of differences.
STEP = 1e-6


def check_loss(
    loss: Loss,
    target: ArrayLike | None = None,
    predictor: ArrayLike | None = None,
    *,
    random_state: int = 0,
) -> None:
    """Check that a loss is what its methods and attributes say.

    The value, the derivative and the curvature are compared with finite differences;
    the curvature is never negative and within its bounds; arrays keep their shapes and
    precision; an offset, the mean, the predictor and the start of a run agree with each
    other; leave-one-out and folds along a short run are those of separate runs; and the
    memory matrix can be computed.

    Parameters
    ----------
    loss : Loss
        An instance of a subclass of ``skacv.optim.losses.Loss``.
    target : array-like of shape (n_rows, n_outputs), default=None
        Valid targets: for classes their codes, for coupled outputs one-hot rows. None:
        60 rows of two standard normal numbers.
    predictor : array-like of shape (n_rows, n_outputs), default=None
        Linear predictors at which the loss is compared with differences. None: 1.5
        times standard normal numbers.
    random_state : int, default=0
        Seed of what is drawn.

    Raises
    ------
    AssertionError
        If something is wrong. The error names the method or the attribute.
    ValueError
        If the loss couples rows, or the predictors do not have the shape of the
        targets.

    Examples
    --------
    >>> import numpy as np
    >>> from skacv.optim.losses import Huber, Logistic
    >>> from skacv.testing import check_loss
    >>> check_loss(Huber(0.5))
    >>> labels = np.random.default_rng(0).integers(0, 2, (50, 1))
    >>> check_loss(Logistic(), labels)
    """
    if loss.couples_rows:
        raise ValueError(
            f"check_loss is for losses of single rows, and the {loss.name} compares "
            "rows with each other."
        )
    rng = np.random.default_rng(random_state)
    if target is None:
        target = rng.standard_normal((60, 2))
    target = np.array(target, dtype=float)
    if predictor is None:
        predictor = 1.5 * rng.standard_normal(target.shape)
    predictor = np.array(predictor, dtype=float)
    if target.ndim != 2 or predictor.shape != target.shape:
        raise ValueError(
            "target and predictor must have the same shape (n_rows, n_outputs), got "
            f"{target.shape} and {predictor.shape}."
        )
    name = type(loss).__name__
    try:
        loss.check_target(target)
    except ValueError as error:
        raise AssertionError(
            f"{name}.check_target refuses the targets of the check, so pass others as "
            f"target: {error}"
        ) from error
    _require_shapes(name, loss, target, predictor)
    _require_derivatives(name, loss, target, predictor)
    _require_bounds(name, loss, target, rng)
    _require_declarations(name, loss, target, predictor, rng)
    _require_start(name, loss, target, rng)
    # Leave-one-out of curved losses is exact where there are as many columns as rows.
    few = target[rng.permutation(len(target))[:14]]
    problem = problem_of(0.5 * rng.standard_normal((len(few), len(few))), few, loss)
    step_size = 0.8 / problem.smoothness
    phases = [Phase(NO_PENALTY, GradientDescent(step_size), 10)]
    trajectory = require_refits(name, problem, phases)
    require_memory_matrix(name, problem, trajectory)


def _differences(function, predictor):
    """Central differences in every output, stacked along a last axis."""
    shifts = STEP * np.eye(predictor.shape[1])
    differences = [function(predictor + h) - function(predictor - h) for h in shifts]
    return np.stack(differences, axis=-1) / (2 * STEP)


def _in_every_output(loss, array):
    """Derivatives by output as what differences of each output give."""
    return array if loss.is_coupled else array[:, :, None] * np.eye(array.shape[1])


def _require_shapes(name, loss, target, predictor):
    """Shapes, precision, arguments that are not changed, and replicas."""
    (n_rows, n_outputs), one = target.shape, loss.is_coupled
    shapes = {
        "value": (n_rows, 1 if one else n_outputs),
        "derivative": (n_rows, n_outputs),
        "curvature": (n_rows, n_outputs, n_outputs)[: 3 if one else 2],
    }
    kept = target.copy(), predictor.copy()
    replicas = np.stack([predictor, -0.5 * predictor, 0 * predictor], axis=2)
    for method, shape in shapes.items():
        function = getattr(loss, method)
        found = function(target, predictor)
        require(
            np.shape(found) == shape,
            f"{name}.{method} must have the shape {shape} for targets and predictors "
            f"of shape {target.shape}, got {np.shape(found)}.",
        )
        require(
            np.array_equal(target, kept[0]) and np.array_equal(predictor, kept[1]),
            f"{name}.{method} changes its arguments in place.",
        )
        single = function(target.astype(np.float32), predictor.astype(np.float32))
        require(
            single.dtype == np.float32,
            f"{name}.{method} must keep the precision of its arguments: it returns "
            f"{single.dtype} for float32.",
        )
        if method == "curvature":
            continue
        together = function(target[:, :, None], replicas)
        for r in range(replicas.shape[2]):
            # NumPy's exp may round by where arrays lie, and values are differences.
            require_close(
                together[:, :, r],
                function(target, replicas[:, :, r]),
                f"{name}.{method} must treat further axes of the predictor, which are "
                "fits side by side, one by one.",
                rtol=1e-12,
                atol=1e-14 * max(1, np.abs(together).max()),
            )
    if one or n_outputs == 1:
        matrices = loss.curvature_matrix(target, predictor)
    else:
        matrices = loss.curvature_matrix(target[:, :1], predictor[:, :1])
    size = n_outputs if one else 1
    curvature = loss.curvature(target[:, :size], predictor[:, :size])
    require(
        matrices.shape == (n_rows, size, size)
        and np.array_equal(matrices.ravel(), curvature.ravel()),
        f"{name}.curvature_matrix must be the curvature as one matrix per row.",
    )


def _require_derivatives(name, loss, target, predictor):
    """The derivative and the curvature are those of finite differences."""
    value = loss.value(target, predictor)
    rounding = 4 * np.finfo(float).eps * np.abs(value).max() / STEP
    require_close(
        loss.derivative(target, predictor),
        _differences(lambda z: loss.value(target, z).sum(axis=1), predictor),
        f"{name}.derivative is not the derivative of its value.",
        atol=1e-7 + rounding,
    )
    slope = loss.derivative(target, predictor)
    rounding = 4 * np.finfo(float).eps * np.abs(slope).max() / STEP
    # A difference across a kink of the derivative is no curvature.
    above, at, below = (
        _in_every_output(loss, loss.curvature(target, predictor + shift))
        for shift in (STEP, 0, -STEP)
    )
    is_smooth = np.abs(above - below) < 1e-3 * (1 + np.abs(at))
    require(
        is_smooth.mean() > 0.99,
        f"{name}.curvature jumps near more than one in a hundred of the predictors.",
    )
    expected = _differences(lambda z: loss.derivative(target, z), predictor)
    require_close(
        at[is_smooth],
        expected[is_smooth],
        f"{name}.curvature is not the derivative of its derivative.",
        atol=1e-7 + rounding,
    )


def _require_bounds(name, loss, target, rng):
    """The curvature is not negative and within its bounds; nothing overflows."""
    far = 800.0 if loss.has_bounded_curvature else 100.0
    for sign in (-1, 1):
        for method in ("value", "derivative", "curvature"):
            values = getattr(loss, method)(target, np.full_like(target, sign * far))
            require(
                np.isfinite(values).all(),
                f"{name}.{method} is not finite at the predictor {sign * far:g}.",
            )
    bounds, bound = loss.curvature_bounds(target), loss.curvature_bound(target)
    require(
        np.shape(bounds) == target.shape,
        f"{name}.curvature_bounds must have the shape of the targets, {target.shape}, "
        f"got {np.shape(bounds)}.",
    )
    require_close(
        np.max(bounds),
        bound,
        f"{name}.curvature_bound must be the largest of its curvature_bounds.",
    )
    for size in (0.3, 1, 3, 10):
        predictor = size * rng.standard_normal(target.shape)
        curvature = _in_every_output(loss, loss.curvature(target, predictor))
        eigenvalues = np.linalg.eigvalsh(curvature)
        require(
            eigenvalues.min() >= -1e-12 * max(1, eigenvalues.max()),
            f"{name}.curvature is negative: the loss must be convex.",
        )
        if loss.has_bounded_curvature:
            own = loss.curvature(target, predictor)
            largest = eigenvalues[:, -1:] if loss.is_coupled else own
            require(
                np.all(largest <= bounds * (1 + 1e-12) + 1e-12),
                f"{name}.curvature is larger than its curvature_bounds: steps of the "
                "automatic size may diverge.",
            )
    if not loss.has_bounded_curvature:
        at_target = loss.predictor(target)
        require_close(
            loss.curvature(target, at_target),
            bounds,
            f"{name}.curvature_bounds must be the curvatures at predictions that equal "
            "the targets, as the curvature has no bound.",
            atol=1e-12,
        )


def _require_declarations(name, loss, target, predictor, rng):
    """What it declares beside its derivatives: mean, spread, scale, offsets."""
    require_close(
        loss.predictor(loss.mean(predictor)),
        predictor,
        f"{name}.predictor is not the inverse of its mean.",
        atol=1e-12,
    )
    spread = loss.spread(loss.mean(predictor))
    require(
        np.shape(spread) == target.shape and np.all(np.isfinite(spread) & (spread > 0)),
        f"{name}.spread must be positive, and one for each mean.",
    )
    require(0 < loss.scale < np.inf, f"{name}.scale must be positive and finite.")
    lowest, highest = loss.target_range
    require(
        np.all((lowest <= target) & (target <= highest)),
        f"{name}.target_range leaves out some targets that check_target allows.",
    )
    value, slope = loss.value(target, predictor), loss.derivative(target, predictor)
    if loss.is_quadratic:
        require(
            np.allclose(slope, predictor - target) and not loss.is_coupled,
            f"{name} declares that it is quadratic, that is, half the squared error, "
            "but its derivative is not predictor - target.",
        )
    if loss.is_of_residual:
        require_close(
            loss.value(target + 0.5, predictor + 0.5),
            value,
            f"{name} declares that it depends on the residual only, but its value "
            "changes where the same number is added to target and predictor.",
            rtol=1e-9,
            atol=1e-12 * max(1, np.abs(value).max()),
        )
    offset = rng.standard_normal(len(target))
    weights = rng.uniform(0.5, 2.0, len(target))
    try:
        changed, changed_weights = loss.without_offset(target, weights, offset)
    except ValueError as error:  # it has no such form, and says so
        require(
            not loss.is_of_residual,
            f"{name}.without_offset must take a loss of residuals: {error}",
        )
        return
    shifted = predictor + offset[:, None]
    for method in ("value", "derivative", "curvature"):
        function = getattr(loss, method)
        require_close(
            changed_weights[:, None] * function(changed, predictor),
            weights[:, None] * function(target, shifted),
            f"{name}.without_offset returns targets and weights whose {method} is not "
            "that of the offset.",
            rtol=1e-10,
            atol=1e-12,
        )
    # The targets themselves are those of a mean, too.
    pairs = (loss.mean(predictor), loss.mean(shifted)), (changed, target)
    for without, expected in pairs:
        require_close(
            loss.with_offset(without, offset[:, None]),
            expected,
            f"{name}.with_offset is not the inverse of its without_offset.",
            atol=1e-12,
        )


def _require_start(name, loss, target, rng):
    """A run begins where repeated rows do, and hardly ever elsewhere without a row."""
    n_rows, n_outputs = target.shape
    weights = np.full((n_rows, 1), 1 / n_rows)
    start = loss.null_predictor(target, weights)
    require(
        np.shape(start) == (n_outputs,) and np.isfinite(start).all(),
        f"{name}.null_predictor must be one finite number for each output.",
    )
    rows = np.repeat(np.arange(n_rows), 3)
    require_close(
        loss.null_predictor(target[rows], weights[rows] / 3),
        start,
        f"{name}.null_predictor of repeated rows is not that of rows with more weight.",
        rtol=1e-12,
    )
    if loss.is_coupled:
        return
    many = rng.choice(target.ravel(), (n_rows, 300))
    start = loss.null_predictor(many, weights)
    without = loss.null_predictor(many[1:], weights[1:])
    require(
        np.mean(without != start) < 0.25,
        f"{name}.null_predictor changes in more than a quarter of all cases where a "
        "row is left out: round it more coarsely, as runs without a row keep their "
        "start.",
    )
