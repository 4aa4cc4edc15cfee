"""The interface between runs and a model, its optimiser and their library."""

from abc import ABC, abstractmethod


class Backend(ABC):
    """A model, a loss of single rows, a penalty and an optimiser, in some library.

    A subclass has ``predict(params, X)``, ``loss(y, prediction)`` and ``penalty``, a
    function of params or None. Parameters are arrays in a collection of the library's
    own kind; a path has those of all iterates, along the first axes. ``data`` is a
    :class:`~skacv._any_optimiser.data.Rows`. Weights and rows of replicas, and whatever
    is estimated, are arrays of NumPy.
    """

    def mean_loss(self, params, X, y, weights):
        """Weighted sum of the losses of the rows."""
        return weights @ self.loss(y, self.predict(params, X))

    def objective(self, params, X, y, weights):
        """The objective."""
        return self.mean_loss(params, X, y, weights) + self.penalty_of(params)

    def penalty_of(self, params):
        """Zero where there is none."""
        return 0.0 if self.penalty is None else self.penalty(params)

    @abstractmethod
    def arrays(self, params, *values):
        """A user's arrays as arrays of the library, like the parameters."""

    @abstractmethod
    def to_numpy(self, array):
        """An array as one of NumPy."""

    @abstractmethod
    def leaves(self, X):
        """All arrays that X is made of."""

    @abstractmethod
    def named(self, params):
        """All arrays that parameters are made of, by name."""

    @abstractmethod
    def rows_of(self, X, rows):
        """Some rows of X, or of y."""

    @abstractmethod
    def data(self, X, y, batches):
        """The data of a run, from batches that are checked."""

    @staticmethod
    @abstractmethod
    def iterate(path, t):
        """Parameters of one iterate."""

    @staticmethod
    @abstractmethod
    def losses(loss, y, predictions):
        """Losses of the rows, (n_iterates, n_rows), in float64."""

    @abstractmethod
    def predict_path(self, path, X):
        """Predictions by every iterate, (n_steps + 1, n_rows, ...)."""

    @abstractmethod
    def record(self, start, data, n_steps):
        """The path of a run, and the mean loss of every iterate on all rows."""

    @abstractmethod
    def held_out(self, start, data, n_steps, weights, rows):
        """Predictions of rows, (n_replicas, size), by runs that leave them out.

        From weights (n_replicas, n_rows) to (n_replicas, n_steps + 1, size, ...).
        """

    @abstractmethod
    def replicas(self, start, data, weights):
        """The same runs, advanced update by update: :class:`SideBySide`."""

    @abstractmethod
    def hessian(self, params, data):
        """That of the mean loss, by all parameters as one vector."""

    @abstractmethod
    def replayed(self, path, data, due, rows):
        """Predictions, (n_steps + 1, n_replicas, ...), by linearised replicas.

        Each leaves out a row. ``due`` says when they are corrected; None is never.
        """


class SideBySide(ABC):
    """Runs that weigh the rows their own way, side by side.

    Attributes
    ----------
    weights : array of shape (n_replicas, n_rows)
    """

    @abstractmethod
    def step(self, X, y, weights):
        """One update on some rows, whose weights are (n_replicas, n)."""

    @abstractmethod
    def held_out(self, X):
        """Predictions by all but the first replica, each of rows of its own."""

    @abstractmethod
    def reset_first(self, last, now):
        """Put the first replica at parameters ``now``, after an update from ``last``.

        Returns the distance from there to where it was, the length of its update, and
        one unit of rounding of the parameters.
        """
