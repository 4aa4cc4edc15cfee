"""Base classes of linear models."""

from numbers import Integral, Real

import numpy as np

from .._compat import Interval, StrOptions
from .._estimator.data.labels import label_of
from .._estimator.devices import of_record
from .._estimator.parameters import ALPHA_CONSTRAINT, RISK_CONSTRAINTS, RUN_CONSTRAINTS
from .._estimator.prediction.decisions import RecordedClassifier
from .._estimator.prediction.inference import CoefficientInference, CoefficientTests
from .._estimator.prediction.iterate_intervals import IterateIntervals
from .._estimator.prediction.predictions import RecordedRegressor
from .._estimator.run.fit import TrajectoryModel
from .._estimator.run.plan import (
    N_SMOOTH_STRENGTHS,
    SCHEDULES,
    InRandomBatches,
    ModelSpec,
    Solver,
    Strengths,
    ridge_penalty,
)
from .._estimator.run.streaming import TakesSummaries
from .._warnings import warn
from ..exceptions import SeparationWarning
from ..optim.penalties import ElasticNet
from ..records.descriptors import recorded


class LinearModel(IterateIntervals, TrajectoryModel):
    """A model with a coefficient for every column, and the memory matrix."""

    coef_ = recorded(
        lambda record: record.iterate.coef, "Coefficients of the iterate in use."
    )
    coef_path_ = recorded(
        lambda record: record.iterates and record.iterates.coef,
        "Coefficients of every iterate.",
    )
    risk_path_ = recorded(
        lambda record: record["risk"].path, "Estimated mean loss on new rows.", "risk"
    )
    risk_se_path_ = recorded(
        lambda record: record["risk"].se_path,
        "Standard error of ``risk_path_``.",
        "risk",
    )
    risk_mc_se_path_ = recorded(
        lambda record: record["risk"].more["mc_se_path"],
        "The part of ``risk_se_path_`` that is due to random probes.",
        "risk",
    )
    risk_residual_path_ = recorded(
        lambda record: record["risk"].more["residual_path"],
        "Held-out residuals of every iterate, as factors.",
        "risk",
    )
    risk_prediction_path_ = recorded(
        lambda record: record["risk"].prediction, "Held-out predictions.", "risk"
    )
    risk_indices_ = recorded(
        lambda record: record["risk"].indices, "The rows that these are of.", "risk"
    )
    risk_target_ = recorded(
        lambda record: record["risk"].target, "Targets of these rows.", "risk"
    )
    n_probes_ = recorded(
        lambda record: record.number("risk", "n_probes"),
        "Number of random probes.",
        "risk",
    )
    row_scale_share_ = recorded(
        lambda record: record.number("risk", "row_scale_share"),
        "Share of the spread of row norms beyond that of Gaussian rows.",
        "risk",
    )


class PenalizedModel(LinearModel):
    """A linear model whose penalty has the strength ``alpha``."""

    alpha_path_ = recorded(
        lambda record: record.strengths["alpha"], "Value of alpha at every iterate."
    )


class SquaredErrorRegressor(
    TakesSummaries, CoefficientInference, RecordedRegressor, PenalizedModel
):
    """Regressors with the squared error; a subclass has ``_penalty(strength, n)``."""

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        **ALPHA_CONSTRAINT,
        **RISK_CONSTRAINTS,
    }

    def _spec(self):
        strengths, solver = Strengths(self.alpha), Solver(SCHEDULES[self.solver](1.0))
        return ModelSpec.of(self, self._penalty, strengths, solver, is_quadratic=True)

    @property
    @of_record
    def risk_gram_(self) -> np.ndarray:
        """Mean products of held-out residuals, of shape (n_iter_ + 1, n_iter_ + 1).

        An affine combination of iterates with weights w has the estimated risk w'
        risk_gram_ w. Means are over rows, with their weights, and over targets.
        Residuals are those of ``risk_residual_path_``: the diagonal is ``risk_path_``
        without the small contribution of modes dropped from these.
        """
        if not hasattr(self, "risk_residual_path_"):
            raise AttributeError("risk_gram_ needs an estimator fitted with risk on.")
        # Weighted rows of the spatial factor are orthonormal, with row scales as well.
        temporal, spatial = self.risk_residual_path_
        return temporal @ temporal.T / spatial[0].size


CURVED_CONSTRAINTS = {
    **RUN_CONSTRAINTS,
    **RISK_CONSTRAINTS,
    "solver": [StrOptions({"gd", "nesterov", "sgd"})],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "power_t": [Interval(Real, 0, None, closed="left")],
    "loo_correction": ["boolean"],
}
# Curvature falls as classes come apart, so weaker penalties matter.
CURVED_PATH = {"ratio": 1e-5}
SMOOTH_PATH = {"n_path": N_SMOOTH_STRENGTHS, **CURVED_PATH}


def solver_of(estimator):
    """The solver that an estimator names, in batches or with all rows."""
    if estimator.solver == "sgd":
        return InRandomBatches(None, estimator.batch_size, estimator.power_t)
    return Solver(SCHEDULES[estimator.solver](1.0))


def elastic_net_penalty(strength, l1_ratio):
    """The elastic net, or the ridge penalty if ``l1_ratio`` is zero."""
    if l1_ratio == 0:
        return ridge_penalty(strength, None)
    return ElasticNet(strength, float(l1_ratio))


def path_settings(estimator):
    """The settings of a path of strengths under the penalty of an estimator."""
    is_smooth = estimator._penalty(1.0, n_features=1).is_linear
    if estimator.solver == "newton" and not is_smooth:
        raise ValueError('solver="newton" needs a smooth penalty: l1_ratio=0.')
    return SMOOTH_PATH if is_smooth else CURVED_PATH


class CurvedRegressor(RecordedRegressor, PenalizedModel):
    """A regressor with a ridge penalty, or another one of a subclass.

    A subclass defines ``_loss_of(target, weights)``.
    """

    _parameter_constraints: dict = CURVED_CONSTRAINTS | ALPHA_CONSTRAINT
    _penalty = staticmethod(ridge_penalty)

    def _spec(self):
        strengths = Strengths(self.alpha, **path_settings(self))
        return ModelSpec.of(self, self._penalty, strengths, solver_of(self))


class CurvedClassifier(CoefficientTests, RecordedClassifier, LinearModel):
    """A classifier; a subclass defines ``_class_loss(n_classes)``."""

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        **RISK_CONSTRAINTS,
        "loo_correction": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def _warn_of(self, run):
        super()._warn_of(run)
        trajectory, data = run.trajectory, run.data
        # No coefficients reach shares of several classes.
        has_shares = data.names.get("has_shares", False)
        if trajectory.phases[-1].penalty.strength > 0 or has_shares:
            return
        # Right on every row: the loss is lower further along the same direction.
        labels, predicted = (
            label_of(self._decision(values), data.names["classes_"])
            for values in (data.problem.target, trajectory.predictor[-1])
        )
        if (labels == predicted).all():
            warn(
                "The classes are separated and there is no penalty: the coefficients "
                "grow without bound. Use an earlier iterate, or a penalty.",
                SeparationWarning,
            )


class InverselyPenalized(CurvedClassifier):
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

    C_path_ = recorded(
        lambda record: record.strengths["C"], "Value of C at every iterate."
    )
    _penalty = staticmethod(ridge_penalty)

    def _spec(self):
        settings = path_settings(self)
        strengths = Strengths(self.C, "C", is_sum=True, is_inverse=True, **settings)
        outputs, solver = self._outputs, solver_of(self)
        return ModelSpec.of(self, self._penalty, strengths, solver, outputs=outputs)
