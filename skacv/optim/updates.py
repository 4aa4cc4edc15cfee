"""Updates: the maps from one iterate to the next.

An update is one of three kinds, each a class with the algebra of its step:

``ProximalGradient``
    a gradient step with momentum, then the prox;
``NewtonStep``
    the gradient over the Hessian;
``Pass``
    a gradient step on every batch of rows, one after the other.

All of them have

``step_size``
    the step of the gradient and of the prox;
``is_affine``, ``is_elementwise``, ``n_batches``
    properties on which estimates rely; the base class has none of them;
``check(penalty)``
    raises where the update and a penalty do not go together;
``advance(fits, penalty, state)``
    the state after the update, for all fits that run side by side.

Estimates use the parts of :class:`ProximalGradient`: ``point`` and ``apply`` are its
step for coefficients, ``tangent`` for derivatives and ``multipliers`` in an eigenbasis.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .design import ROUNDINGS
from .equality import ComparesArrays
from .fits import Iterate, WeightedFits
from .hessians import inverse_hessians, newton_direction
from .kernel import PassPredictors
from .penalties import Penalty
from .preconditioner import Preconditioner
from .problem import Problem

__all__ = [
    "Iterate",
    "NewtonStep",
    "Pass",
    "ProximalGradient",
    "SimplifiedNewtonStep",
    "State",
    "Update",
]


class State(NamedTuple):
    """The state of a run between two updates.

    Attributes
    ----------
    current, earlier : Iterate
        The last two iterates, which momentum needs; the same one at the start.
    visited : ndarray of shape (n_rows, n_outputs, n_fits) or None
        After a pass, the linear predictor of every row just before the step on its
        batch.
    memory : object
        State of the update besides the iterates.
    """

    current: Iterate
    earlier: Iterate
    visited: np.ndarray | None = None
    memory: Any = None


class Update(ABC):
    """Base class of all updates.

    Attributes
    ----------
    step_size : float
        Step of the gradient and of the prox.
    is_affine : bool
        Whether the next iterate, before the prox, is an affine function of the last two
        iterates and of the gradient.
    has_tangent : bool
        Whether it has a derivative, which some estimates need.
    is_elementwise : bool
        Whether the next value of a coefficient depends only on its last values, its
        gradient and, through the prox, its group. Computations on few columns need it.
    n_batches : int
        Number of batches that it goes through one after the other; 0 if it uses all
        rows.
    preconditioner : Preconditioner or None
        Preconditioner of the gradients.
    is_rotation_invariant : bool
        Whether the update before the prox is the same in any orthonormal basis of the
        coefficients.
    goes_on_from_iterates : bool
        Whether the last two iterates determine all further ones.
    """

    is_affine = False
    has_tangent = False
    is_rotation_invariant = False

    # Read only, as a subclass may compute them. At run time a property here would
    # become the default of a subclass's field.
    if TYPE_CHECKING:

        @property
        def step_size(self) -> float: ...

        @property
        def is_elementwise(self) -> bool: ...

        @property
        def n_batches(self) -> int: ...

        @property
        def preconditioner(self) -> Preconditioner | None: ...

        @property
        def goes_on_from_iterates(self) -> bool: ...
    else:
        is_elementwise = False
        n_batches = 0
        preconditioner = None
        goes_on_from_iterates = True

    @abstractmethod
    def advance(self, fits: WeightedFits, penalty: Penalty, state: State) -> State:
        """The state after this update, for all fits that run side by side."""

    def check(self, penalty: Penalty, problem: Problem) -> None:
        """Raise a ValueError if the update is not for this penalty or problem."""
        return None


class _GradientUpdate(Update):
    """An update by preconditioned gradients: of all rows, or of one batch at a time."""

    is_affine = has_tangent = True

    @property
    def is_elementwise(self) -> bool:
        return self.preconditioner is None

    is_rotation_invariant = is_elementwise

    def check(self, penalty: Penalty, problem: Problem) -> None:
        if self.preconditioner is not None and not penalty.is_linear:
            raise ValueError(
                f"A preconditioned gradient step cannot use the prox of "
                f"{type(penalty).__name__}, which is that of the plain norm: use a "
                "smooth penalty, or no preconditioner."
            )


@dataclass(frozen=True)
class ProximalGradient(_GradientUpdate):
    """One step of (accelerated, preconditioned) proximal gradient descent.

        v = b_t + momentum (b_t - b_{t-1})
        y = b_t + lookahead (b_t - b_{t-1})
        b_{t+1} = prox(v - step_size P (gradient(y) + penalty's smooth gradient(y)))

    Parameters
    ----------
    step_size : float
    momentum : float
    lookahead : float
    preconditioner : Preconditioner or None
        P; None is the identity.
    """

    step_size: float
    momentum: float = 0.0
    lookahead: float = 0.0
    preconditioner: Preconditioner | None = None

    @property
    def has_memory(self) -> bool:
        """Whether it uses the iterate before the last one."""
        return bool(self.momentum or self.lookahead)

    def point(self, current: np.ndarray, earlier: np.ndarray) -> np.ndarray:
        """The point y at which the gradient is taken."""
        if self.lookahead == 0:
            return current
        return current + self.lookahead * (current - earlier)

    def _before_prox(self, current, earlier, gradient, penalty, scale=1.0):
        """The point whose prox is the next iterate; arguments as in :meth:`apply`."""
        y = current
        if self.lookahead:
            y = current + self.lookahead * (current - earlier)
        if penalty.curvature:
            gradient = gradient + scale * penalty.smooth_gradient(y)
        if self.preconditioner is not None:
            gradient = self.preconditioner.dot(gradient)
        v = y
        if self.momentum != self.lookahead:
            v = current
            if self.momentum:
                v = current + self.momentum * (current - earlier)
        return v - self.step_size * gradient

    def apply(
        self,
        current: np.ndarray,
        earlier: np.ndarray,
        gradient: np.ndarray,
        penalty: Penalty,
        scale: float | np.ndarray = 1.0,
    ) -> np.ndarray:
        """The iterate after ``current``, which followed ``earlier``.

        Shapes: current, earlier (n_columns, ..., n_fits); scale (n_fits,)."""
        point = self._before_prox(current, earlier, gradient, penalty, scale)
        return penalty.prox(point, self.step_size * scale)

    def tangent(
        self,
        current: np.ndarray,
        earlier: np.ndarray,
        d_gradient: np.ndarray,
        penalty: Penalty,
        coef: np.ndarray,
    ) -> np.ndarray:
        """The derivative of :meth:`apply`, which maps tangents of iterates.

        Shapes: current, earlier (n_columns, n_tangents); coef (n_columns, 1)."""
        point = self._before_prox(current, earlier, d_gradient, penalty)
        return penalty.prox_tangent(coef, self.step_size, point)

    def multipliers(self, curvature: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Factors of the last and the earlier iterate, in an eigenbasis of the Hessian.

        Shapes: curvature, eigenvalues of any shape; both factors have this shape."""
        slope = self.step_size * curvature
        factor = (1 + self.momentum) - (1 + self.lookahead) * slope
        return factor, self.lookahead * slope - self.momentum

    def advance(self, fits: WeightedFits, penalty: Penalty, state: State) -> State:
        current, earlier = state.current, state.earlier
        gradient = fits.gradient_at(self.point_between(current, earlier))
        scale = fits.penalty_scale
        coef = self.apply(current.coef, earlier.coef, gradient, penalty, scale)
        return State(fits.iterate(coef), current)

    def point_between(self, current: Iterate, earlier: Iterate) -> Iterate:
        """The point y, with predictors if the iterates have them, an Iterate."""
        coef = self.point(current.coef, earlier.coef)
        if current.predictor is None or earlier.predictor is None:
            return Iterate(coef)
        return Iterate(coef, self.point(current.predictor, earlier.predictor))


class Objectives(NamedTuple):
    """Objectives (n_fits,) of all fits at ``point``, and bounds of their rounding."""

    values: np.ndarray
    rounding: np.ndarray
    point: Iterate


@dataclass(frozen=True)
class NewtonStep(Update):
    """b_{t+1} = b_t - s step_size H(b_t)^-1 gradient(b_t), both with the penalty.

    Far from the optimum of a curved loss a whole step may raise the objective, or
    overflow: s is the first of 1, 1/2, 1/4, ... at which the objective of the fit does
    not rise. Every fit has its own s, since a refit without some rows is this rule on
    the other rows. The objective of the squared error always falls, and s is 1.
    """

    step_size: float

    is_rotation_invariant = True

    def check(self, penalty: Penalty, problem: Problem) -> None:
        if not penalty.is_linear:
            raise ValueError(
                "A Newton step needs a smooth penalty, and "
                f"{type(penalty).__name__} has a prox: use gradient steps."
            )

    def advance(self, fits: WeightedFits, penalty: Penalty, state: State) -> State:
        objectives = self._objectives_at(fits, penalty, state.current, state.memory)
        point = state.current if objectives is None else objectives.point
        direction = newton_direction(fits, penalty, point)
        following, objectives = self._line_search(
            fits, penalty, state.current, direction, objectives
        )
        return State(following, state.current, memory=objectives)

    def _objectives_at(self, fits, penalty, current, objectives=None):
        """The Objectives at ``current``: those passed, if any; None if quadratic."""
        if objectives is not None or fits.problem.loss.is_quadratic:
            return objectives
        if current.predictor is None:
            current = fits.evaluate(current.coef)
        with np.errstate(over="ignore", invalid="ignore"):
            values = fits.objectives(penalty, current)
            # A loss may be a small difference of terms, as large as those at zero.
            size = np.abs(values) + np.abs(fits.values_at_zero)
        rounding = ROUNDINGS * np.finfo(float).eps * size
        return Objectives(values, rounding, current)

    def _line_search(
        self, fits, penalty, current, direction, objectives, max_halvings=64
    ):
        """The iterate after a step along ``direction``, and its Objectives or None."""
        coef = current.coef - self.step_size * direction
        if fits.problem.loss.is_quadratic:
            return fits.iterate(coef), None
        step = np.full(fits.n_fits, self.step_size)
        for _ in range(max_halvings):
            trial = self._objectives_at(fits, penalty, Iterate(coef))
            rises = ~(trial.values <= objectives.values + objectives.rounding)
            if not rises.any():
                iterate = trial.point if fits.keeps_predictors else Iterate(coef)
                return iterate, trial
            step = np.where(rises, step / 2, step)
            coef = np.where(rises, current.coef - step * direction, coef)
        return fits.iterate(np.where(rises, current.coef, coef)), None


@dataclass(frozen=True)
class SimplifiedNewtonStep(NewtonStep):
    """A Newton step with the Hessian H of the iterate at which the phase began.

    A gradient takes far less time than a Hessian.
    """

    goes_on_from_iterates = False

    def advance(self, fits: WeightedFits, penalty: Penalty, state: State) -> State:
        current, (inverses, objectives) = state.current, state.memory or (None, None)
        if inverses is None:
            inverses = inverse_hessians(fits, penalty, current)
        objectives = self._objectives_at(fits, penalty, current, objectives)
        point = current if objectives is None else objectives.point
        gradient = fits.objective_gradient(penalty, point)
        # All coefficients of a fit are one vector.
        flat = gradient.reshape(-1, gradient.shape[2])
        direction = np.einsum("fij,jf->if", inverses, flat).reshape(gradient.shape)
        following, objectives = self._line_search(
            fits, penalty, current, direction, objectives
        )
        return State(following, current, memory=(inverses, objectives))


@dataclass(frozen=True, eq=False)
class Pass(ComparesArrays, _GradientUpdate):
    """One gradient step on every batch of rows, one after the other.

    Parameters
    ----------
    update : ProximalGradient
        The step taken on each batch, without momentum.
    batches : tuple of ndarray of int
        Rows of every batch.

    Raises
    ------
    ValueError
        If the step has momentum, which has no meaning across batches here.
    """

    update: ProximalGradient
    batches: tuple

    def __post_init__(self):
        if self.update.has_memory:
            raise ValueError(
                "A pass through batches takes steps without momentum, got "
                f"{self.update}."
            )

    @property
    def step_size(self) -> float:
        return self.update.step_size

    @property
    def preconditioner(self) -> Preconditioner | None:
        return self.update.preconditioner

    @property
    def n_batches(self) -> int:
        return len(self.batches)

    def point(self, current: np.ndarray, earlier: np.ndarray) -> np.ndarray:
        return self.update.point(current, earlier)

    def tangent(
        self,
        current: np.ndarray,
        earlier: np.ndarray,
        d_gradient: np.ndarray,
        penalty: Penalty,
        coef: np.ndarray,
    ) -> np.ndarray:
        return self.update.tangent(current, earlier, d_gradient, penalty, coef)

    def multipliers(self, curvature: np.ndarray) -> tuple[np.ndarray, float]:
        factor, _ = self.update.multipliers(curvature)
        return factor**self.n_batches, 0.0

    def advance(self, fits: WeightedFits, penalty: Penalty, state: State) -> State:
        if fits.problem.design.is_dual and not penalty.curvature:
            return self._kernel_pass(fits, state)
        coef = state.current.coef
        visited = np.empty((len(fits.target), *coef.shape[1:]), coef.dtype)
        for part in self.parts(fits, penalty, coef):
            visited[part.rows], coef = part.predictor, part.following
        return State(fits.iterate(coef), state.current, visited)

    def _kernel_pass(self, fits, state):
        """The state after a pass of a kernel: its dual gradients are the slopes."""
        design, P = fits.problem.design, self.preconditioner
        coef, predictor = state.current
        shape, predictor = predictor.shape, predictor.reshape(len(predictor), -1)
        features, damping = np.zeros((len(predictor), 0)), np.zeros(0)
        if P is not None:
            features = P.features(design).astype(predictor.dtype, copy=False)
            damping = P.damping.astype(predictor.dtype)
        running = PassPredictors(design, predictor)
        visited, steps = np.empty_like(predictor), np.zeros_like(predictor)
        # Coefficients of the preconditioner's vectors, summed over the batches.
        damping_coef = np.zeros((len(damping), predictor.shape[1]), predictor.dtype)
        for rows in self.batches:
            visited[rows] = running.predictor(rows) + features[rows] @ damping_coef
            slopes = fits.batch(rows).slopes(visited[rows].reshape(-1, *shape[1:]))
            steps[rows] = -self.step_size * slopes.reshape(-1, predictor.shape[1])
            running.add(rows, steps[rows])
            damping_coef -= damping[:, None] * (features[rows].T @ steps[rows])
        following = design.t_dot(steps).reshape(coef.shape)
        following += coef
        if P is not None:
            following += (P.vectors @ damping_coef).reshape(coef.shape)
        predictor = running.predictor()
        predictor += features @ damping_coef
        following = Iterate(following, predictor.reshape(shape))
        return State(following, state.current, visited.reshape(shape))

    def parts(
        self, fits: WeightedFits, penalty: Penalty, coef: np.ndarray
    ) -> "Iterator[BatchStep]":
        """The steps on the batches, from ``coef`` on."""
        for rows in self.batches:
            batch = fits.batch(rows)
            predictor = batch.predictor(coef)
            gradient = batch.gradient_of(batch.slopes(predictor))
            scale = fits.penalty_scale
            following = self.update.apply(coef, coef, gradient, penalty, scale)
            yield BatchStep(rows, coef, predictor, following)
            coef = following


class BatchStep(NamedTuple):
    """A step on the rows of one batch of a pass.

    Shapes: coef, following (n_columns, n_outputs, n_fits); predictor (n_batch,
    n_outputs, n_fits)."""

    rows: np.ndarray
    coef: np.ndarray
    predictor: np.ndarray
    following: np.ndarray
