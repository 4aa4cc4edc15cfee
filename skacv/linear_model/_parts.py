"""Losses, penalties and schedules that users choose by name, or pass as they are."""

from dataclasses import replace

from .._compat import HasMethods, StrOptions
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
    """What a parameter ``loss`` takes: one of the names, or a loss."""
    return [StrOptions(set(names)), Loss]


def named(part, table):
    """The part of a name; any other as it is."""
    return table[part] if isinstance(part, str) else part


class ChosenParts:
    """The parameters ``alpha``, ``penalty`` and ``schedule`` as what a run takes."""

    def _chosen_penalty(self):
        return Zero() if self.penalty is None else named(self.penalty, PENALTIES)

    def _penalty(self, strength, n_features):
        return self._chosen_penalty().with_strength(strength)

    @property
    def _is_smooth(self):
        return self._chosen_penalty().is_linear

    @property
    def _has_memory_matrix(self):
        """Whether it can be read of a run with these parts."""
        return self._planned_update(n_rows=1).has_tangent

    def _strength_of(self, value, data):
        return float(value * self._chosen_penalty().strength)

    def _value_of(self, strength, data):
        # Without a strength of its own there is nothing that alpha multiplies.
        return float(strength / (self._chosen_penalty().strength or 1.0))

    def _schedule(self, step_size, problem, seed):
        return replace(named(self.schedule, SCHEDULES), step_size=step_size)
