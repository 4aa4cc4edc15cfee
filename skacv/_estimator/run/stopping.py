"""Early stopping: when a run ends after its best iterate, and which runs go on."""

import numpy as np

# Updates of all runs side by side; the better half of them takes twice as many, and so
# on.
FIRST_UPDATES = 25


def halved(n_runs, go_on, give_up):
    """Successive halving: the better half of some runs continues until one is left.

    Parameters
    ----------
    go_on : callable
        ``go_on(number, n_updates)`` continues a run up to ``n_updates`` updates. It
        returns its least loss so far, and whether it is over.
    give_up : callable
        ``give_up(number)``, called when a run is dropped.

    Returns
    -------
    best : int
        The run that is left. Among equals the first is kept.
    losses : ndarray of shape (n_runs,)
        The least of each, as far as it has gone.
    is_over : bool
        Whether that run is.
    """
    losses, n_updates = np.empty(n_runs), FIRST_UPDATES
    left, is_over = np.arange(n_runs), np.zeros(n_runs, dtype=bool)
    while len(left) > 1:
        for number in left[~is_over[left]]:
            losses[number], is_over[number] = go_on(number, n_updates)
        order = np.argsort(losses[left], kind="stable")
        n_kept = len(left) - len(left) // 2
        for number in left[order[n_kept:]]:
            give_up(number)
        left, n_updates = np.sort(left[order[:n_kept]]), 2 * n_updates
    return int(left[0]), losses, bool(is_over[left[0]])


class Patience:
    """Ends a run when many iterates have passed without an improvement.

    A value is an improvement if it is less than that of the last improvement, by
    more than ``tol`` of its size and by more than the value's own uncertainty. The
    first value that is defined is one; NaN never is. The run has ended when the last
    improvement, iterate t, was followed by ``patience + growth * t`` others.

    Parameters
    ----------
    patience : int or None
        None never ends a run.
    tol : float, default=0.0
        The share by which a value must be less; zero takes any that is less.
    growth : float, default=0.0
        How many more iterates are waited for, for every one before the last
        improvement: above zero for runs whose steps change less and less.

    Attributes
    ----------
    n_values : int
        How many values have been passed.
    best : int
        The iterate of least value, by however little; the earliest of them.
    improved : int or None
        The last improvement; None before any value is defined.
    """

    def __init__(self, patience, tol=0.0, growth=0.0):
        self.patience, self.tol, self.growth = patience, tol, growth
        self.n_values, self.best, self.improved = 0, 0, None
        self._least = self._value = np.nan

    def update(self, value, uncertainty=0.0):
        """Add the value of the next iterate.

        Parameters
        ----------
        value : float
            What is minimised.
        uncertainty : float, default=0.0
            A decrease by less than that is no improvement.
        """
        t = self.n_values
        self.n_values += 1
        if np.isnan(value):
            return
        if self.improved is None or value < self._least:
            self.best, self._least = t, value
        # Values may be below zero: those of scores, and of estimates without bias.
        improvement = self._value - self.tol * abs(self._value) - uncertainty
        if self.improved is None or value < improvement:
            self.improved, self._value = t, value

    def follow(self, path):
        """Add the values of iterates, one after the other.

        Shapes: path (n_iterates,).

        Returns
        -------
        Patience
            This object.
        """
        for value in np.asarray(path, dtype=np.float64).tolist():
            self.update(value)
        return self

    @property
    def n_left(self):
        """Number of further values without improvement that end the run, at least 0.

        Infinite if nothing ends it.
        """
        if self.patience is None or self.improved is None:
            return np.inf
        waited = self.n_values - 1 - self.improved
        return max(0, self.patience + int(self.growth * self.improved) - waited)

    @property
    def has_ended(self):
        """Whether the run has ended."""
        return self.n_left == 0
