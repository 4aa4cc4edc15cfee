"""What the linear regressors with the squared error share."""

from numbers import Integral, Real

from sklearn.base import RegressorMixin

from .._compat import Interval, StrOptions
from .._recorded import RecordedRegressor
from .._training_data import centered, validated
from ..base import RUN_CONSTRAINTS, TrajectoryModel


class TrajectoryRegressor(RecordedRegressor, RegressorMixin, TrajectoryModel):
    """Base class of regressors with the squared error.

    They have a memory matrix. The intercept takes up the means of X and y.
    """

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        "alpha": [
            Interval(Real, 0, None, closed="left"),
            "array-like",
            StrOptions({"path"}),
        ],
        "risk": [
            StrOptions({"auto", "exact", "hutchinson"}),
            Interval(Integral, 2, None, closed="left"),
            "boolean",
        ],
        "risk_row_scales": ["boolean"],
        "keep_data": ["boolean"],
    }
    _is_quadratic = True
    _multi_output = False

    def _prepared(self, X, y, sample_weight):
        samples = validated(
            self, X, y, sample_weight, multi_output=self._multi_output, y_numeric=True
        )
        return centered(samples, self.fit_intercept)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = self._multi_output
        return tags
