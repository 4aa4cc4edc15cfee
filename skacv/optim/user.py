"""A user's update: any function of the last iterates and gradients.

    b_{t+1} = prox(function(t, b_t, b_{t-1}, gradient(b_t), gradient(b_{t-1})))

Refits without some rows evaluate the function at their own iterates, so leave-one-out
and folds need no derivative of it. The memory matrix needs directional derivatives: the
user's ``tangent``, or central differences.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from inspect import getclosurevars
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from .updates import State, Update

__all__ = ["Arguments", "UserUpdate"]


class Arguments(NamedTuple):
    """The arguments of a user's function, after the number of the update.

    Attributes
    ----------
    coef, earlier_coef : ndarray of shape (n_columns, n_outputs, n_fits)
        The last two iterates; the same one at the start.
    gradient, earlier_gradient : ndarray of the same shape
        Gradients of the loss and of the smooth part of the penalty at these iterates.
    state : object
        The state returned by the last call of the function; None without a state.
    """

    coef: np.ndarray
    earlier_coef: np.ndarray
    gradient: np.ndarray
    earlier_gradient: np.ndarray
    state: Any = None


@dataclass(frozen=True)
class UserUpdate:
    """A schedule whose update is a user's function.

    Parameters
    ----------
    function : callable
        ``function(t, b1, b2, grad1, grad2)`` returns the next iterate before the prox,
        from the last iterate and the one before, each of shape (n_columns, n_outputs,
        n_fits), and the gradients of the smooth part of the objective at both. Fits
        that run side by side must not mix. With a state, ``function(t, b1, b2, grad1,
        grad2, state)`` returns the next iterate and the next state.
    start : callable, default=None
        ``start(coef)`` returns the initial state: an array, or a tuple or dict of
        arrays, with the fits on the last axis. None: no state.
    tangent : callable, default=None
        ``tangent(t, arguments, moves)`` returns the directional derivative of the next
        iterate, and of the next state if there is one, if the :class:`Arguments` move
        by ``moves``. None: central differences.
    step_size : float, default=1.0
        Step of the prox. Estimators replace it by their own.

    Examples
    --------
    >>> import numpy as np
    >>> from skacv import TrajectoryRegressor
    >>> from skacv.optim.user import UserUpdate
    >>> def momentum(t, b1, b2, grad1, grad2):
    ...     return b1 + 0.5 * (b1 - b2) - 0.2 * grad1
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((60, 4))
    >>> y = X[:, 0] + 0.1 * rng.standard_normal(60)
    >>> model = TrajectoryRegressor(0.01, penalty="l2", schedule=UserUpdate(momentum))
    >>> model.fit(X, y).coef_.round(1) + 0.0
    array([1., 0., 0., 0.])
    """

    function: Callable[..., Any]
    start: Callable[[np.ndarray], Any] | None = None
    tangent: Callable[[int, Arguments, Arguments], Any] | None = None
    step_size: float = 1.0

    def updates(self) -> Iterator[Update]:
        return (UserStep(self, t) for t in count())

    @staticmethod
    def largest_stable_step(smoothness: float) -> float:
        return np.inf


@dataclass(frozen=True)
class UserStep(Update):
    """One call of the user's function."""

    schedule: UserUpdate
    t: int

    has_tangent = True

    @property
    def step_size(self):
        return self.schedule.step_size

    @property
    def goes_on_from_iterates(self):
        return self.schedule.start is None

    def point(self, current, earlier):
        return current

    def initial_state(self, coef):
        return None if self.schedule.start is None else self.schedule.start(coef)

    def call(self, arguments):
        if self.schedule.start is None:
            return self.schedule.function(self.t, *arguments[:4]), None
        return self.schedule.function(self.t, *arguments)

    def arguments(self, fits, penalty, state):
        """The :class:`Arguments` of the function at a state of a run."""
        current, earlier, memory = state.current, state.earlier, state.memory
        gradient = fits.objective_gradient(penalty, current)
        if memory is None:  # the first update, or the first after a record is resumed
            user_state = self.initial_state(current.coef)
            memory = user_state, fits.objective_gradient(penalty, earlier)
        user_state, earlier_gradient = memory
        return Arguments(
            current.coef, earlier.coef, gradient, earlier_gradient, user_state
        )

    def advance(self, fits, penalty, state):
        arguments = self.arguments(fits, penalty, state)
        point, user_state = self.call(arguments)
        point = np.asarray(point, dtype=arguments.coef.dtype)
        coef = penalty.prox(point, self.step_size * fits.penalty_scale)
        memory = user_state, arguments.gradient
        return State(fits.iterate(coef), state.current, memory=memory)

    def tangents(self, arguments, moves, difference=1e-5):
        """Derivatives of the next iterate, before the prox, and of the next state.

        Shapes: iterates and gradients of ``moves`` (n_columns, n_outputs, n_tangents).
        """
        if self.schedule.tangent is not None:
            derivative = self.schedule.tangent(self.t, arguments, moves)
            return (derivative, None) if self.schedule.start is None else derivative
        # One step per tangent, small relative to coefficients and to gradients.
        step = difference * np.minimum(
            _largest_entry(arguments.coef) / _largest_entry(moves.coef, axis=(0, 1)),
            _largest_entry(arguments.gradient)
            / _largest_entry(moves.gradient, axis=(0, 1)),
        )
        steps = map_arrays(lambda move: step * move, moves)
        forward = self.call(map_arrays(np.add, arguments, steps))
        backward = self.call(map_arrays(np.subtract, arguments, steps))
        return tuple(
            map_arrays(lambda after, before: (after - before) / (2 * step), *pair)
            for pair in zip(forward, backward)
        )

    def check(self, penalty, problem, n_fits=3):
        """Raise if the function cannot be evaluated in a run without a row."""
        name = getattr(self.schedule.function, "__name__", "function")
        _check_closure(name, self.schedule.function, len(problem.target))
        rng = np.random.default_rng(0)
        shape = problem.design.shape[1], problem.target.shape[1], n_fits
        arguments = Arguments(*rng.standard_normal((4, *shape)))
        arguments = arguments._replace(state=self.initial_state(arguments.coef))
        result, repeated = (np.asarray(self.call(arguments)[0]) for _ in range(2))
        if result.shape != shape:
            raise ValueError(
                f"{name} must return an iterate of the shape of its arguments, "
                f"(n_columns, n_outputs, n_fits): got {result.shape} for {shape}."
            )
        if not np.array_equal(result, repeated, equal_nan=True):
            raise ValueError(
                f"{name} must return the same result every time: runs without a row "
                "repeat its updates."
            )
        single = self.call(map_arrays(lambda part: part[..., :1], arguments))[0]
        if not np.allclose(result[..., :1], single, equal_nan=True):
            raise ValueError(
                f"{name} mixes fits that run side by side: entries with another last "
                "index are another fit."
            )


def _check_closure(name, function, n_rows):
    """Raise if a function refers to an array with an entry for every row."""
    try:
        closure = getclosurevars(function)
    except TypeError:  # a callable object, whose data cannot be inspected
        return
    for key, value in {**closure.nonlocals, **closure.globals}.items():
        if n_rows in np.shape(value if isinstance(value, np.ndarray) else 0):
            raise ValueError(
                f"{name} holds {key}, which has an entry for every row: a run without "
                "a row would still see it. Rows may enter through the gradients only."
            )


def _largest_entry(array, axis=None):
    """Largest absolute entry along ``axis``, one instead of zero."""
    size = np.abs(array).max(axis=axis, initial=0.0)
    return np.where(size > 0, size, 1.0)


def map_arrays(function, *trees):
    """Apply a function to the arrays in tuples and dicts of equal structure."""
    first = trees[0]
    if first is None:
        return None
    if isinstance(first, dict):
        parts_by_key = {key: [tree[key] for tree in trees] for key in first}
        return {
            key: map_arrays(function, *parts) for key, parts in parts_by_key.items()
        }
    if isinstance(first, tuple):
        results = [map_arrays(function, *parts) for parts in zip(*trees)]
        return type(first)(*results) if hasattr(first, "_fields") else tuple(results)
    return function(*trees)
