"""What a library supplies for models to be run and read, and what runs then share."""

from abc import ABC, abstractmethod

import numpy as np

from .linearised import linearised_path


class Backend(ABC):
    """A model, a loss of single rows, a penalty and an optimiser, in some library.

    A subclass has ``predict(params, X)``, ``loss(y, prediction)`` and ``penalty``, a
    function of params or None; ``functions``, a module that linearising needs
    (:mod:`~skacv._any_optimiser.linearised`); and what is abstract below. Parameters
    are arrays in a collection of the library's own kind; a path has those of all
    iterates, along the first axes. ``data`` is a
    :class:`~skacv._any_optimiser.data.RunRows`.

    A carry is a run between two updates: parameters, and the state of the optimiser.
    Replicas are runs side by side, in one carry, which weigh the rows their own way.
    """

    def mean_loss(self, params, X, y, weights):
        """Weighted sum of the losses of the rows."""
        return weights @ self.loss(y, self.predict(params, X))

    def objective(self, params, X, y, weights):
        return self.mean_loss(params, X, y, weights) + self.penalty_of(params)

    def penalty_of(self, params):
        return 0.0 if self.penalty is None else self.penalty(params)

    def equal_weights(self, params, data):
        n_rows = data.n_rows
        return self.weights(params, data, np.full(1, 1 / n_rows)).repeat(n_rows)

    def record(self, n_steps, start, data):
        """The path of a run, and the mean loss of every iterate on all rows."""
        weights = self.equal_weights(start, data)

        def step(carry, t):
            return self.step(carry, *data.at_update(t, weights))

        def read(carry):
            params = self.params_of(carry)
            return params, self.mean_loss(params, data.X, data.y, weights)

        return self.along(step, read, self.begin(start), n_steps)

    def held_out(self, n_steps, start, data, weights, rows):
        """Predictions of the rows that replicas leave out.

        Shapes: weights (n_replicas, n_rows), rows (n_replicas, size).
        """
        X = self.rows_of(data.X, rows)

        def step(carry, t):
            return self.step_replicas(carry, *data.at_update(t, weights))

        def read(carry):
            return self.predictions(carry, X)

        return self.along(step, read, self.begin_replicas(start, weights), n_steps)

    def hessian(self, params, data):
        """Hessian of the mean loss over all rows."""
        theta, unravel = self.functions.ravel(params)
        weights = self.equal_weights(params, data)
        return self.functions.hessian(self, unravel, theta, data.X, data.y, weights)

    linearised_path = linearised_path

    # ---- arrays

    @abstractmethod
    def arrays(self, params, *values):
        """A user's arrays as arrays of the library, like the parameters."""

    @abstractmethod
    def weights(self, params, data, weights):
        """Weights of rows as an array of the library, in the precision of the model."""

    @abstractmethod
    def to_numpy(self, array):
        """An array as one of NumPy."""

    @abstractmethod
    def named(self, name, values):
        """All arrays that parameters, or X, are made of, by name."""

    @abstractmethod
    def rows_of(self, X, rows):
        """Some rows of X, or of y."""

    @abstractmethod
    def data(self, X, y, batches):
        """The data of a run, from batches that are checked."""

    @abstractmethod
    def iterate(self, path, t):
        """Parameters of one iterate."""

    @abstractmethod
    def losses(self, loss, y, predictions):
        """Losses of the rows, (n_iterates, n_rows), in float64 of NumPy."""

    @abstractmethod
    def predict_path(self, path, X):
        """Predictions by every iterate, (n_steps + 1, n_rows, ...)."""

    # ---- updates

    @abstractmethod
    def along(self, step, read, carry, n_steps):
        """``read(carry)`` at every iterate; ``step(carry, t)`` makes an update."""

    @abstractmethod
    def begin(self, start):
        """The carry of a run from some parameters."""

    @abstractmethod
    def begin_replicas(self, start, weights):
        """The carry of as many replicas as there are weights, from the same."""

    @abstractmethod
    def step(self, carry, X, y, weights):
        """The carry after an update on some rows, whose weights are (n,)."""

    @abstractmethod
    def step_replicas(self, carry, X, y, weights):
        """The same of replicas, whose weights are (n_replicas, n)."""

    @abstractmethod
    def follow_replicas(self, carry, gradients):
        """The same by gradients, which are parameters with a first axis of replicas."""

    @abstractmethod
    def params_of(self, carry):
        """The parameters of a run, or of replicas; updates do not change them."""

    @abstractmethod
    def predictions(self, carry, X, first=0):
        """Predictions by the replicas from ``first`` on, each of rows of its own."""

    @abstractmethod
    def reset_first(self, carry, last, now):
        """Put the first replica at ``now``, after an update from ``last``.

        Returns the carry, the distance, the length of the update, and a rounding unit.
        """
