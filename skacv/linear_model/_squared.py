"""Base class of the linear regressors with the squared error."""

import numpy as np

from .._estimator.parameters import ALPHA_CONSTRAINT, RISK_CONSTRAINTS, RUN_CONSTRAINTS
from .._estimator.prediction.inference import CoefficientInference
from .._estimator.prediction.predictions import RecordedRegressor
from .._estimator.run.fit import TrajectoryModel
from .._estimator.run.plan import ModelSpec, Solver
from .._estimator.run.streaming import TakesSummaries
from .._estimator.run.strengths import Strengths


class SquaredErrorRegressor(
    TakesSummaries, CoefficientInference, RecordedRegressor, TrajectoryModel
):
    """Base class of regressors with the squared error.

    They have a memory matrix. The intercept absorbs the means of X and y. A subclass
    defines ``_penalty(strength, n_features)``.
    """

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        **ALPHA_CONSTRAINT,
        **RISK_CONSTRAINTS,
    }

    def _spec(self):
        strengths, solver = Strengths(self.alpha), Solver.named(self.solver)
        return ModelSpec.of(self, self._penalty, strengths, solver, is_quadratic=True)

    @property
    def risk_gram_(self) -> np.ndarray:
        """Mean products of held-out residuals, of shape (n_iter_ + 1, n_iter_ + 1).

        An affine combination of iterates with weights w has the estimated risk w'
        risk_gram_ w. Means are over rows, with their weights, and over targets.
        Residuals are those of ``risk_residual_path_``: the diagonal is ``risk_path_``
        without the small contribution of modes dropped from these.
        """
        if not hasattr(self, "risk_residual_path_"):
            raise AttributeError("risk_gram_ needs an estimator fitted with risk on.")
        # Its weighted rows are orthonormal, with row scales as well.
        temporal, spatial = self.risk_residual_path_
        return temporal @ temporal.T / spatial[0].size
