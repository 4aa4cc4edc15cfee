"""What the linear models of losses other than the squared error share."""

from abc import abstractmethod
from numbers import Integral, Real

import numpy as np
from sklearn.base import RegressorMixin

from .._compat import Interval, StrOptions, class_weights
from .._estimator.conditioning import warn_of_far_targets
from .._estimator.data import augmented, validated
from .._estimator.decisions import RecordedClassifier, check_class_weights
from .._estimator.fit import RUN_CONSTRAINTS, TrajectoryModel
from .._estimator.predictions import RecordedRegressor
from .._warnings import warn
from ..exceptions import SeparationWarning
from ..optim.families import except_last
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
    "solver": [StrOptions({"gd", "nesterov", "sgd"})],
    "batch_size": [Interval(Integral, 1, None, closed="left")],
    "power_t": [Interval(Real, 0, None, closed="left")],
    "loo_correction": ["boolean"],
}


class AugmentedModel(TrajectoryModel):
    """Intercept and penalty where the loss is not the squared error.

    A subclass says ``_penalty_on_features(strength)``, if that is not a ridge.
    """

    # Curvature falls as classes come apart, so weaker penalties matter.
    _strength_ratio = 1e-5

    def _penalty_on_features(self, strength):
        return SquaredL2(strength)

    def _penalty(self, strength, n_columns):
        penalty = self._penalty_on_features(strength)
        return except_last(penalty, n_columns) if self.fit_intercept else penalty

    def _n_columns(self, n_features):
        return n_features + bool(self.fit_intercept)


class CurvedModel(AugmentedModel):
    """Solvers by name, where the loss is not the squared error."""

    _solvers = {"gd": GradientDescent, "nesterov": Nesterov, "newton": Newton}

    def _schedule(self, step_size, problem, seed):
        if self.solver == "newton" and not self._penalty_on_features(1.0).is_linear:
            raise ValueError('solver="newton" needs a smooth penalty: l1_ratio=0.')
        if self.solver != "sgd":
            return super()._schedule(step_size, problem, seed)
        return StochasticGradient(
            step_size, self.power_t, len(problem.target), self.batch_size, seed
        )

    def _step_size(self, penalties, problem, schedule):
        if self.solver == "newton" and self.step_size == "auto":
            return 1.0
        return super()._step_size(penalties, problem, schedule)

    def _planned_update(self, n_rows):
        if self.solver != "sgd":
            return super()._planned_update(n_rows)
        n_batches = -(-n_rows // self.batch_size)
        return Pass(ProximalGradient(1.0), ((),) * n_batches)

    def _smoothness(self, problem, schedule):
        """The largest curvature of the gradients that are taken.

        Of batches drawn at random: twice the expected smoothness of Gower et
        al. (2019), "SGD: general analysis and improved rates", section 3.1.
        """
        if self.solver != "sgd":
            return problem.smoothness
        n_rows = len(problem.target)
        size = min(self.batch_size, n_rows)
        norms = problem.design.squared_row_norms() * problem.row_weights[:, 0]
        largest = n_rows * problem.loss.curvature_bound(problem.target) * norms.max()
        apart = (n_rows - size) / (size * (n_rows - 1))
        return 2 * float((1 - apart) * problem.smoothness + apart * largest)


class CurvedRegressor(RecordedRegressor, RegressorMixin, CurvedModel):
    """A regressor; a subclass says ``_checked_loss(target, weights)``."""

    _parameter_constraints: dict = {
        **CURVED_CONSTRAINTS,
        "alpha": [
            Interval(Real, 0, None, closed="left"),
            "array-like",
            StrOptions({"path"}),
        ],
        "keep_data": ["boolean"],
    }

    @abstractmethod
    def _checked_loss(self, target, weights):
        """The loss for targets of shape (n_rows,), and fitted attributes.

        Raises
        ------
        ValueError
            If the loss does not take these targets.
        """

    def _prepared(self, X, y, sample_weight):
        samples = validated(self, X, y, sample_weight, y_numeric=True)
        target = samples.y.astype(samples.X.dtype, copy=False)
        loss, names = self._checked_loss(target, samples.weights)
        return augmented(
            samples,
            loss,
            target[:, None],
            samples.weights,
            self.fit_intercept,
            is_flat=True,
            **names,
        )

    def _warn_of(self, trajectory, data):
        super()._warn_of(trajectory, data)
        if self.fit_intercept:
            warn_of_far_targets(data.problem, trajectory)


class CurvedClassifier(RecordedClassifier, AugmentedModel):
    """A classifier; a subclass says ``_loss_and_target(label, n_classes)``."""

    _parameter_constraints: dict = {
        **RUN_CONSTRAINTS,
        "loo_correction": ["boolean"],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    @abstractmethod
    def _loss_and_target(self, label, n_classes):
        """The loss and its targets, (n_rows, n_outputs), for labels 0, 1, ..."""

    def _prepared(self, X, y, sample_weight):
        samples = validated(self, X, y, sample_weight)
        classes, label = self._classes_of(samples.y)
        class_weight = class_weights(
            self.class_weight, classes, samples.y, samples.weights
        )
        check_class_weights(class_weight, classes)
        loss, target = self._loss_and_target(label, len(classes))
        return augmented(
            samples,
            loss,
            target,
            samples.weights * class_weight[label],
            self.fit_intercept,
            is_flat=False,
            classes_=classes,
        )

    def _coded(self, label):
        return self._loss_and_target(label, len(self.classes_))[1]

    def _warn_of(self, trajectory, data):
        super()._warn_of(trajectory, data)
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
                "grow without bound. Use an iterate before, or a finite C.",
                SeparationWarning,
            )

    def _outputs(self, y):
        classes, _ = self._classes_of(np.asarray(y))
        loss, target = self._loss_and_target(np.arange(len(classes)), len(classes))
        return {"n_outputs": target.shape[1], "is_coupled": loss.is_coupled}


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
