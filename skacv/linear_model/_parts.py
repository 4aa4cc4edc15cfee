"""Losses, penalties and schedules that users choose by name, or pass as they are."""

from dataclasses import dataclass, replace

from .._compat import HasMethods, StrOptions
from .._estimator.run.plan import ModelSpec, Solver
from .._estimator.run.strengths import N_SMOOTH_STRENGTHS, N_STRENGTHS, Strengths
from ..optim.losses import (
    Huber,
    Loss,
    Poisson,
    SmoothedHinge,
    SquaredError,
    SquaredHinge,
)
from ..optim.penalties import L1, MCP, SCAD, ElasticNet, Penalty, SquaredL2, Zero
from ..optim.schedules import GradientDescent, HeavyBall, Nesterov, Newton

REGRESSION = {
    "squared_error": SquaredError(),
    "huber": Huber(),
    "poisson": Poisson(),
}
# The log loss besides, which is another one with several classes.
CLASSIFICATION = {
    "squared_hinge": SquaredHinge(),
    "smoothed_hinge": SmoothedHinge(),
}
PENALTIES = {
    "l1": L1(1.0),
    "l2": SquaredL2(1.0),
    "elasticnet": ElasticNet(1.0),
    "mcp": MCP(1.0),
    "scad": SCAD(1.0),
}
SCHEDULES = {
    "gd": GradientDescent(1.0),
    "nesterov": Nesterov(1.0),
    "heavy_ball": HeavyBall(1.0),
    "newton": Newton(1.0),
}
PARTS_CONSTRAINTS = {
    "penalty": [StrOptions(set(PENALTIES)), Penalty, None],
    "schedule": [
        StrOptions(set(SCHEDULES)),
        HasMethods(["updates", "largest_stable_step"]),
    ],
}


def loss_constraint(names):
    """The constraint of a parameter ``loss``: one of the names, or a loss."""
    return [StrOptions(set(names)), Loss]


def named(part, table):
    """The part with this name; other parts are returned unchanged."""
    return table[part] if isinstance(part, str) else part


@dataclass(frozen=True)
class TimesStrength(Strengths):
    """alpha, if it multiplies the strength of a given penalty.

    Attributes
    ----------
    own : float
        Zero where there is no penalty, and nothing that alpha multiplies.
    """

    own: float = 1.0

    def strength_of(self, value, data):
        return float(value * self.own)

    def value_of(self, strength, data):
        return float(strength / (self.own or 1.0))


def spec_of_parts(estimator, ratio=Strengths.ratio, **others):
    """The specification of a run from ``alpha``, ``penalty`` and ``schedule``.

    Parameters
    ----------
    ratio : float
        Where a "path" of strengths ends.
    **others
        As :class:`ModelSpec` takes them.

    Returns
    -------
    ModelSpec
    """
    penalty = Zero() if estimator.penalty is None else estimator.penalty
    penalty = named(penalty, PENALTIES)
    n_path = N_SMOOTH_STRENGTHS if penalty.is_linear else N_STRENGTHS
    strengths = TimesStrength(
        estimator.alpha, n_path=n_path, ratio=ratio, own=penalty.strength
    )
    solver = Solver(replace(named(estimator.schedule, SCHEDULES), step_size=1.0))

    def of_strength(strength, n_features):
        return penalty.with_strength(strength)

    return ModelSpec.of(estimator, of_strength, strengths, solver, **others)
