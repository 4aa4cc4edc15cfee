"""Losses, penalties and schedules that are wrong in one respect are found.

What is right is checked where it is tested: in ``tests/optim``, and parts from outside
the package in ``tests/test_extending.py``.
"""

from dataclasses import dataclass
from itertools import count, islice, repeat

import numpy as np
import pytest

from skacv.optim.cox import Cox
from skacv.optim.families import GroupL2
from skacv.optim.losses import Huber, Logistic, Loss, Multinomial, Poisson, SquaredError
from skacv.optim.penalties import L1, MCP, ElasticNet, SquaredL2
from skacv.optim.schedules import GradientDescent, HeavyBall, StochasticGradient
from skacv.optim.updates import ProximalGradient
from skacv.testing import check_loss, check_penalty, check_schedule


def brief(value):
    """A part of the name of a case, the same in every process."""
    return "-".join(value) if isinstance(value, dict) else str(value)[:40]


GROUPS, GROUP_WEIGHTS = [0, 0, 1, 1, 2, 2], [1.0, 0.5, 0.0]


def without_method(base, name):
    """An instance of a subclass in which a method is an error that it has none."""

    def none(self, *args):
        raise ValueError(f"There is no {name}.")

    return type("Own", (type(base),), {name: none})(**vars(base))


def changed(base, **members):
    """An instance of a subclass named Own, with other methods or attributes."""
    own = type("Own", (type(base),), members)
    return own(**vars(base))


HUBER = Huber(0.8)
LOSSES = [
    (
        {"derivative": lambda self, y, z: 1.01 * Huber.derivative(self, y, z)},
        "derivative is not the derivative of its value",
    ),
    (
        {"curvature": lambda self, y, z: 0.99 * Huber.curvature(self, y, z)},
        "curvature is not the derivative of its derivative",
    ),
    ({"curvature_bound": lambda self, y: 0.9}, "larger than its curvature_bounds"),
    (
        {"curvature_bounds": lambda self, y: 2 * np.ones_like(y)},
        "curvature_bound must be the largest",
    ),
    ({"curvature_bounds": lambda self, y: np.ones(len(y))}, "shape of the targets"),
    (
        {"value": lambda self, y, z: Huber.value(self, y, z).sum(axis=1)},
        r"value must have the shape \(60, 2\)",
    ),
    (
        {
            "derivative": lambda self, y, z: (
                np.clip(z - np.float64(y), -0.8, 0.8) * np.float64(1)
            )
        },
        "derivative must keep the precision",
    ),
    ({"mean": lambda self, z: 2 * z}, "predictor is not the inverse of its mean"),
    ({"spread": lambda self, m: 0 * m}, "spread must be positive"),
    ({"scale": 0.0}, "scale must be positive"),
    ({"target_range": (0.0, 1.0)}, "target_range leaves out"),
    ({"is_quadratic": True}, "declares that it is quadratic"),
    (
        {"without_offset": lambda self, y, w, offset: (y + offset[:, None], w)},
        "without_offset returns targets and weights whose value",
    ),
    (
        {"with_offset": lambda self, prediction, offset: prediction - offset},
        "with_offset is not the inverse",
    ),
    (
        {"null_predictor": lambda self, y, w: y.mean(axis=0)},
        "null_predictor changes in more than a quarter",
    ),
    (
        {"null_predictor": lambda self, y, w: y.mean()},
        "one finite number for each output",
    ),
    (
        {"null_predictor": lambda self, y, w: np.full(y.shape[1], len(y) / 10)},
        "null_predictor of repeated rows",
    ),
    (
        {"curvature_matrix": lambda self, y, z: np.ones((len(y), 1, 1))},
        "curvature_matrix must be",
    ),
]


@pytest.mark.parametrize(("members", "message"), LOSSES, ids=brief)
def test_a_loss_that_is_wrong_in_one_respect(members, message):
    check_loss(changed(HUBER))
    with pytest.raises(AssertionError, match=message):
        check_loss(changed(HUBER, **members))


@dataclass(frozen=True)
class Wave(Loss):
    """Not convex, and not a loss of residuals, as it says."""

    def value(self, target, predictor):
        return np.cos(predictor) + 0 * target

    def derivative(self, target, predictor):
        return -np.sin(predictor) + 0 * target

    def curvature(self, target, predictor):
        return -np.cos(predictor)

    def curvature_bound(self, target):
        return 1.0


def test_a_loss_that_is_not_convex():
    with pytest.raises(AssertionError, match="the loss must be convex"):
        check_loss(Wave())


def test_a_loss_that_is_not_of_the_residual():
    target = np.random.default_rng(0).choice([0.0, 1.0], (40, 2))
    check_loss(changed(Logistic()), target)
    with pytest.raises(AssertionError, match="depends on the residual only"):
        check_loss(changed(Logistic(), is_of_residual=True), target)
    with pytest.raises(AssertionError, match="must take a loss of residuals"):
        check_loss(without_method(SquaredError(), "without_offset"))


def test_a_loss_that_overflows():
    def value(self, target, predictor):
        return np.log(1 + np.exp(predictor)) - target * predictor

    target = np.random.default_rng(0).choice([0.0, 1.0], (40, 2))
    with np.errstate(over="ignore"):
        with pytest.raises(AssertionError, match="value is not finite"):
            check_loss(changed(Logistic(), value=value), target)


def test_bounds_at_the_targets_of_a_curvature_without_bound():
    counts = np.random.default_rng(0).poisson(2.0, (60, 2))
    check_loss(changed(Poisson()), counts)
    twice = changed(Poisson(), curvature_bounds=lambda self, target: 2 * target)
    with pytest.raises(AssertionError, match="at predictions that equal the targets"):
        check_loss(twice, counts)


def test_a_loss_that_mixes_fits_side_by_side():
    def value(self, target, predictor):
        found = Huber.value(self, target, predictor)
        return found if found.ndim == 2 else found + found[..., :1]

    with pytest.raises(AssertionError, match="treat further axes of the predictor"):
        check_loss(changed(HUBER, value=value))


def test_a_loss_that_changes_its_arguments():
    def derivative(self, target, predictor):
        predictor -= target
        return np.clip(predictor, -0.8, 0.8)

    with pytest.raises(AssertionError, match="changes its arguments in place"):
        check_loss(changed(HUBER, derivative=derivative))


@dataclass(frozen=True)
class OfMany(SquaredError):
    """Its slopes are others where many fits run side by side."""

    is_quadratic = False

    def derivative(self, target, predictor):
        is_of_many_fits = predictor.ndim == 3 and predictor.shape[2] > 3
        return predictor - target + 1e-4 * is_of_many_fits


def test_a_loss_that_is_another_in_runs_side_by_side():
    with pytest.raises(AssertionError, match="not what separate runs"):
        check_loss(OfMany())


def test_coupled_outputs_are_checked_together():
    one_hot = np.eye(3)[np.random.default_rng(0).integers(0, 3, 50)]
    check_loss(changed(Multinomial()), one_hot)

    def diagonal(self, target, predictor):
        return Multinomial.curvature(self, target, predictor) * np.eye(
            3, dtype=predictor.dtype
        )

    with pytest.raises(AssertionError, match="not the derivative of its derivative"):
        check_loss(changed(Multinomial(), curvature=diagonal), one_hot)


def test_targets_of_a_loss():
    with pytest.raises(AssertionError, match=r"refuses the targets .*negative"):
        check_loss(Poisson())
    with pytest.raises(ValueError, match=r"same shape \(n_rows, n_outputs\)"):
        check_loss(HUBER, np.ones(5))
    with pytest.raises(ValueError, match="compares rows with each other"):
        check_loss(Cox())


# ----------------------------------------------------------------------- penalties

NET = ElasticNet(0.3, 0.6)


PENALTIES = [
    (
        {"prox": lambda self, u, s: ElasticNet.prox(self, u, 1.1 * s)},
        "not the minimum",
    ),
    (
        {"prox": lambda self, u, s: ElasticNet.prox(self, u, s) + 1e-5},
        "step_size is zero",
    ),
    ({"terms": lambda self, b: 1.05 * ElasticNet.terms(self, b)}, "not the minimum"),
    (
        {"prox": lambda self, u, s: ElasticNet.prox(self, u, s)[:1]},
        "keep the shape of its point",
    ),
    (
        {"prox": lambda self, u, s: ElasticNet.prox(self, u, np.max(s))},
        "each with its own step",
    ),
    (
        {"prox": lambda self, u, s: ElasticNet.prox(self, u, s).astype(float)},
        "prox must keep the precision",
    ),
    (
        {"prox_derivative": lambda self, b, s: np.ones_like(b)},
        "is not the derivative of its prox",
    ),
    (
        {
            "prox_derivative": lambda self, b, s: L1(
                0.3 * self.strength
            ).prox_derivative(b, s)
        },
        "not the derivative of its prox",
    ),
    ({"support": lambda self, b, s: np.ones_like(b, bool)}, "support must be"),
    (
        {"gradient": lambda self, b: 1.01 * ElasticNet.gradient(self, b)},
        "gradient is not the derivative of its value",
    ),
    (
        {"hessian_diagonal": lambda self, b: np.full_like(b, 0.13)},
        "hessian_diagonal is not the derivative of its gradient",
    ),
    ({"with_strength": lambda self, strength: self}, "strength asked for"),
    (
        {
            "largest_strength": lambda self, g, L: (
                1.1 * ElasticNet.largest_strength(self, g, L)
            )
        },
        "all of them stay",
    ),
    (
        {
            "largest_strength": lambda self, g, L: (
                0.9 * ElasticNet.largest_strength(self, g, L)
            )
        },
        "some of them move",
    ),
    ({"terms": lambda self, b: 0.1 + ElasticNet.terms(self, b)}, "zero at zero"),
    ({"values": lambda self, b: np.zeros(len(b))}, "values of many iterates"),
    (
        {"smooth_gradient": lambda self, b: 0.1 * b},
        "either a prox or a smooth gradient",
    ),
    ({"is_linear": True}, "declares that it is linear"),
    ({"is_rotation_invariant": True}, "declares that it is rotation invariant"),
    ({"unpenalized": lambda self, n: np.arange(n) == 1}, "unpenalized"),
]


@pytest.mark.parametrize(("members", "message"), PENALTIES, ids=brief)
def test_a_penalty_that_is_wrong_in_one_respect(members, message):
    check_penalty(changed(NET))
    with pytest.raises(AssertionError, match=message):
        check_penalty(changed(NET, **members))


GROUPED = GroupL2(0.5, GROUPS, GROUP_WEIGHTS)
OF_GROUPS = [
    (
        {"prox_tangent": lambda self, b, s, d: d * self.support(b, s)},
        "not the derivative of its prox",
    ),
    (
        {"expand_to_groups": lambda self, mask: mask},
        "of some columns differs from its values among all columns|not the minimum",
    ),
    ({"on": lambda self, index: L1(0.5)}, "of some columns differs"),
    (
        {"unpenalized": lambda self, n: np.zeros(n, bool)},
        "unpenalized must be",
    ),
]


@pytest.mark.parametrize(("members", "message"), OF_GROUPS, ids=brief)
def test_a_penalty_of_groups_that_is_wrong_in_one_respect(members, message):
    own = changed(GroupL2(0.5, GROUPS, GROUP_WEIGHTS))
    check_penalty(own)
    with pytest.raises(AssertionError, match=message):
        check_penalty(changed(GROUPED, **members))


SMOOTH = [
    ({"curvature": 0.5}, "smooth_gradient is not the gradient of its value"),
    ({"smooth_gradient": lambda self, b: 0.29 * b}, "smooth_gradient is not"),
    ({"prox": lambda self, u, s: 0.9 * u}, "its prox moves points|step_size is zero"),
    ({"common_curvature": lambda self: 0.1}, "common_curvature must be"),
]


@pytest.mark.parametrize(("members", "message"), SMOOTH, ids=brief)
def test_a_smooth_penalty_that_is_wrong_in_one_respect(members, message):
    check_penalty(changed(SquaredL2(0.3)))
    with pytest.raises(AssertionError, match=message):
        check_penalty(changed(SquaredL2(0.3), **members))


def test_a_local_minimum_is_no_prox():
    """Of two local minima of a concave penalty the prox is the smaller one."""

    def soft(self, point, step_size):
        return L1(self.strength).prox(point, step_size)

    with pytest.raises(AssertionError, match="prox is not the minimum"):
        check_penalty(changed(MCP(0.3, 3.0), prox=soft))


def test_the_number_of_columns_is_checked():
    with pytest.raises(ValueError, match="6 coefficients"):
        check_penalty(GROUPED, 5)


# ----------------------------------------------------------------------- schedules


@dataclass(frozen=True)
class Growing(GradientDescent):
    """Steps that grow, until the run diverges."""

    def updates(self):
        return (ProximalGradient(self.step_size * 1.3**t) for t in count())


@dataclass(frozen=True)
class Ending(GradientDescent):
    def updates(self):
        return islice(super().updates(), 20)


@dataclass(frozen=True)
class OtherStep(GradientDescent):
    def updates(self):
        return repeat(ProximalGradient(0.05))


@dataclass(frozen=True)
class Shrinking(GradientDescent):
    """Steps that become negative."""

    def updates(self):
        return (ProximalGradient(self.step_size * (1 - t / 20)) for t in count())


@dataclass(frozen=True)
class Renewed(GradientDescent):
    """Batches drawn anew by every call."""

    n_rows: int = 30

    def updates(self):
        seed = int(np.random.default_rng().integers(2**32))
        drawn = StochasticGradient(self.step_size, 0.0, self.n_rows, 8, seed)
        return drawn.updates()


@dataclass(frozen=True)
class TooLarge(HeavyBall):
    def largest_stable_step(self, smoothness):
        return 1.2 * super().largest_stable_step(smoothness)


@dataclass(frozen=True)
class TooSmall(HeavyBall):
    def largest_stable_step(self, smoothness):
        return 0.8 * super().largest_stable_step(smoothness)


@dataclass(frozen=True)
class TooLargeByDefault(GradientDescent):
    @staticmethod
    def automatic_step(smoothness):
        return 3 / smoothness


@dataclass(frozen=True)
class Rising(HeavyBall):
    @staticmethod
    def largest_stable_step(smoothness):
        return smoothness


class WithoutFields:
    step_size = 0.1

    def updates(self):
        return GradientDescent(0.1).updates()

    def largest_stable_step(self, smoothness):
        return 2 / smoothness


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (
            Growing(0.1),
            "with Growing and its automatic step does not reduce",
        ),
        (Ending(0.1), "must be endless"),
        (OtherStep(0.1), "must be its step_size"),
        (Shrinking(0.1), "must be positive and finite"),
        (Renewed(0.1), "the same updates every time"),
        (TooLarge(0.1, 0.5), "short run with TooLarge fails|does not converge"),
        (TooSmall(0.1, 0.5), "not the largest"),
        (HeavyBall(0.1, 1.1), "momentum of HeavyBall.updates.* must be below one"),
        (TooLargeByDefault(0.1), "automatic step of TooLargeByDefault"),
        (Rising(0.1), "must not rise with the smoothness"),
        (WithoutFields(), "must be a dataclass with a field step_size"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_schedule_that_is_wrong_in_one_respect(schedule, message):
    with pytest.raises(AssertionError, match=message):
        check_schedule(schedule)
