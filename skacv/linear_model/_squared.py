"""What the linear regressors with the squared error share."""

from .._estimator.fit import TrajectoryModel
from .._estimator.inference import CoefficientInference
from .._estimator.parameters import ALPHA_CONSTRAINT, RISK_CONSTRAINTS, RUN_CONSTRAINTS
from .._estimator.predictions import RecordedRegressor
from .._estimator.streaming import TakesSummaries


class SquaredErrorRegressor(
    TakesSummaries, CoefficientInference, RecordedRegressor, TrajectoryModel
):
    """Base class of regressors with the squared error.

    They have a memory matrix. The intercept takes up the means of X and y.
    """

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        **ALPHA_CONSTRAINT,
        **RISK_CONSTRAINTS,
        "keep_data": ["boolean"],
    }
    _is_quadratic = True

    @property
    def risk_gram_(self):
        """E'E/n over all pairs of iterates, (n_iter_ + 1, n_iter_ + 1).

        The risk of an affine combination of iterates with weights w is
        w' risk_gram_ w. The mean over rows is the weighted one, and over targets. It
        is of the residuals that were kept, ``risk_residual_path_``: the diagonal is
        below ``risk_path_`` by the little that dropped modes add to that.
        """
        if not hasattr(self, "risk_residual_path_"):
            raise AttributeError("risk_gram_ needs an estimator fitted with risk on.")
        # Its weighted rows are orthonormal, with row scales as well.
        temporal, spatial = self.risk_residual_path_
        return temporal @ temporal.T / spatial[0].size
