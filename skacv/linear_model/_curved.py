"""What the linear models of losses other than the squared error share."""

from numbers import Integral, Real

import numpy as np

from .._compat import Interval, StrOptions
from .._estimator.decisions import RecordedClassifier
from .._estimator.fit import TrajectoryModel
from .._estimator.inference import CoefficientTests
from .._estimator.parameters import ALPHA_CONSTRAINT, RISK_CONSTRAINTS, RUN_CONSTRAINTS
from .._estimator.predictions import RecordedRegressor
from .._warnings import warn
from ..exceptions import SeparationWarning
from ..optim.penalties import SquaredL2
from ..optim.schedules import (
    GradientDescent,
    Nesterov,
    Newton,
    StochasticGradient,
)
from ..optim.updates import Pass, ProximalGradient

CURVED_CONSTRAINTS = {
    **RUN_CONSTRAINTS,
    **RISK_CONSTRAINTS,
    "solver": [StrOptions({"gd", "nesterov", "sgd"})],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "power_t": [Interval(Real, 0, None, closed="left")],
    "loo_correction": ["boolean"],
}
# Curvature falls as classes come apart, so weaker penalties matter.
CURVED_STRENGTH_RATIO = 1e-5


class CurvedModel(TrajectoryModel):
    """Solvers by name, where the loss is not the squared error."""

    _strength_ratio = CURVED_STRENGTH_RATIO
    _solvers = {"gd": GradientDescent, "nesterov": Nesterov, "newton": Newton}

    def _penalty(self, strength, n_features):
        return SquaredL2(strength)

    @property
    def _is_smooth(self):
        return self._penalty(1.0, n_features=1).is_linear

    @property
    def _has_memory_matrix(self):
        """Whether the solver has derivatives."""
        return self.solver != "newton"

    def _schedule(self, step_size, problem, seed):
        if self.solver == "newton" and not self._is_smooth:
            raise ValueError('solver="newton" needs a smooth penalty: l1_ratio=0.')
        if self.solver != "sgd":
            return super()._schedule(step_size, problem, seed)
        return StochasticGradient(
            step_size, self.power_t, len(problem.target), self.batch_size, seed
        )

    def _planned_update(self, n_rows):
        if self.solver != "sgd":
            return super()._planned_update(n_rows)
        n_batches = -(-n_rows // self.batch_size)
        return Pass(ProximalGradient(1.0), ((),) * n_batches)

    def _smoothness(self, problem, schedule):
        """The largest eigenvalue of the Hessian that limits the step size.

        With batches drawn at random it is twice the expected smoothness of Gower et al.
        (2019), "SGD: general analysis and improved rates", section 3.1.
        """
        if self.solver != "sgd":
            return super()._smoothness(problem, schedule)
        n_rows = len(problem.target)
        size = min(self.batch_size, n_rows)
        norms = problem.design.squared_row_norms() * problem.row_weights[:, 0]
        largest = n_rows * problem.loss.curvature_bound(problem.target) * norms.max()
        apart = (n_rows - size) / (size * (n_rows - 1))
        return 2 * float((1 - apart) * problem.smoothness + apart * largest)


class CurvedRegressor(RecordedRegressor, CurvedModel):
    """A regressor; a subclass says ``_loss_of(target, weights)``."""

    _parameter_constraints: dict = {
        **CURVED_CONSTRAINTS,
        **ALPHA_CONSTRAINT,
        "keep_data": ["boolean"],
    }


class CurvedClassifier(CoefficientTests, RecordedClassifier, TrajectoryModel):
    """A classifier; a subclass says ``_class_loss(n_classes)``."""

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        **RISK_CONSTRAINTS,
        "loo_correction": ["boolean"],
        "keep_data": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }
    _strength_ratio = CURVED_STRENGTH_RATIO

    def _warn_of(self, run):
        super()._warn_of(run)
        trajectory, data = run.trajectory, run.data
        if trajectory.phases[-1].penalty.strength > 0:
            return
        target, predictor = data.problem.target, trajectory.predictor[-1]
        # Right on every row: further out along the same direction costs less.
        if target.shape[1] == 1:
            is_separated = ((predictor > 0) == (target > 0)).all()
        else:
            is_separated = (predictor.argmax(axis=1) == target.argmax(axis=1)).all()
        if is_separated:
            warn(
                "The classes are separated and there is no penalty: the coefficients "
                "grow without bound. Use an earlier iterate, or a penalty.",
                SeparationWarning,
            )


class InverselyPenalized(CurvedClassifier, CurvedModel):
    """A classifier whose objective is C times a sum over the rows, and a penalty."""

    _parameter_constraints: dict = {
        **CurvedClassifier._parameter_constraints,
        **CURVED_CONSTRAINTS,
        "C": [
            Interval(Real, 0, None, closed="right"),
            "array-like",
            StrOptions({"path"}),
        ],
    }
    _strength_name = "C"
    _is_sum = True

    def _check_strengths(self, values):
        if np.isnan(values).any() or (values <= 0).any():
            raise ValueError(f"C must be positive, got {values.tolist()}.")

    def _strength_of(self, value, data):
        return float(1 / (value * data.total_weight))

    def _value_of(self, strength, data):
        return 1 / (strength * data.total_weight) if strength else np.inf
