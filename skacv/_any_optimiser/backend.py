"""The operations that a library supplies for runs, and the runs that they make."""

from abc import ABC, abstractmethod

from .linearised import linearised_path


class Backend(ABC):
    """A model, a loss of single rows, a penalty and an optimiser, in one library.

    Parameters are a collection of arrays of the library; a path has the parameters of
    all iterates along the first axes. A carry is the state of a run between two
    updates: its parameters, and the state of the optimiser. Replicas are runs side by
    side in one carry, each with its own weights of the rows.
    """

    # A subclass has ``predict(params, X)``, ``loss(y, prediction)`` of every row,
    # ``penalty(params)`` or None, and ``functions``, a module for linearising.

    def mean_loss(self, params, X, y, weights):
        """Weighted sum of the losses of the rows."""
        return weights @ self.loss(y, self.predict(params, X))

    def objective(self, params, X, y, weights):
        return self.mean_loss(params, X, y, weights) + self.penalty_of(params)

    def penalty_of(self, params):
        return 0.0 if self.penalty is None else self.penalty(params)

    def record(self, n_steps, start, data):
        """The path of a run on RunRows, and every iterate's mean loss on all rows."""

        def step(carry, t):
            return self.step(carry, *data.at_update(t, data.weights))

        def read(carry):
            params = self.params_of(carry)
            return params, self.mean_loss(params, data.X, data.y, data.weights)

        return self.scan(step, read, self.begin(start), n_steps)

    def held_out(self, n_steps, start, data, weights, rows):
        """Predictions of the rows that replicas leave out.

        Shapes: weights (n_replicas, n_rows), rows (n_replicas, size).
        """
        X = self.rows_of(data.X, rows)

        def step(carry, t):
            return self.step_replicas(carry, *data.at_update(t, weights))

        def read(carry):
            return self.predictions(carry, X)

        return self.scan(step, read, self.begin_replicas(start, weights), n_steps)

    def hessian(self, params, data):
        """Hessian of the mean loss over all rows."""
        theta, unravel = self.functions.ravel(params)
        of_rows = data.X, data.y, data.weights
        return self.functions.hessian(self, unravel, theta, *of_rows)

    linearised_path = linearised_path

    # ---- arrays

    @abstractmethod
    def arrays(self, params, *values):
        """A user's arrays as arrays of the library, where the parameters are."""

    @abstractmethod
    def weights(self, params, data, weights):
        """Weights of rows as an array of the library, in the precision of the model."""

    @abstractmethod
    def to_numpy(self, array):
        """An array in NumPy."""

    @abstractmethod
    def arrays_by_name(self, name, values):
        """The arrays of parameters, or of X, by name."""

    @abstractmethod
    def rows_of(self, X, rows):
        """Rows of X, or of y, by their numbers."""

    @abstractmethod
    def data(self, X, y, batches):
        """The RunRows of a run, from checked batches."""

    @abstractmethod
    def iterate(self, path, t):
        """Parameters of one iterate."""

    @abstractmethod
    def row_loss(self, loss):
        """A user's loss as ``loss(y, prediction)``, also if it is the library's own."""

    @abstractmethod
    def losses(self, loss, y, predictions):
        """Losses of the rows, (n_iterates, n_rows), in float64 of NumPy."""

    @abstractmethod
    def predict_path(self, path, X):
        """Predictions by every iterate, (n_steps + 1, n_rows, ...)."""

    # ---- updates

    @abstractmethod
    def scan(self, step, read, carry, n_steps):
        """``read(carry)`` at every iterate; ``step(carry, t)`` makes an update."""

    @abstractmethod
    def begin(self, start):
        """The carry of a run that starts at given parameters."""

    @abstractmethod
    def begin_replicas(self, start, weights):
        """The carry of a replica for each row of weights, all from the same start."""

    @abstractmethod
    def step(self, carry, X, y, weights):
        """The carry of a run after an update on the rows of X; weights (n,)."""

    @abstractmethod
    def step_replicas(self, carry, X, y, weights):
        """The carry of replicas after an update; weights (n_replicas, n)."""

    @abstractmethod
    def follow_replicas(self, carry, gradients):
        """The carry of replicas after an update by gradients, one for each replica."""

    @abstractmethod
    def params_of(self, carry):
        """The parameters of a run, or of replicas; updates do not change them."""

    @abstractmethod
    def predictions(self, carry, X, first=0):
        """Predictions of the replicas from ``first`` on, each for its rows of X."""

    @abstractmethod
    def reset_first(self, carry, last, loop_params):
        """Put the first replica at ``loop_params``, after an update from ``last``.

        Returned are the carry, the distance of these from the replica, the length of
        the replica's update, and a unit of rounding.
        """
