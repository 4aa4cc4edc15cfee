"""Early stopping: when a run ends after its best iterate, and which runs go on."""

import numpy as np


def halve_runs(n_runs, go_on, give_up, n_updates=25):
    """Successive halving: the better half of the runs continues until one is left."""
    # ``go_on(number, n_updates)`` returns the least loss of a run, and whether it is
    # over. Returned are the last run, the least losses (n_runs,), whether it is over.
    losses, is_over = np.empty(n_runs), np.zeros(n_runs, dtype=bool)
    runs = np.arange(n_runs)
    while len(runs) > 1:
        for number in runs[~is_over[runs]]:
            losses[number], is_over[number] = go_on(number, n_updates)
        order = np.argsort(losses[runs], kind="stable")
        n_kept = len(runs) - len(runs) // 2
        for number in runs[order[n_kept:]]:
            give_up(number)
        runs, n_updates = np.sort(runs[order[:n_kept]]), 2 * n_updates
    return int(runs[0]), losses, bool(is_over[runs[0]])


# Later doublings of a run that are counted. With five, to 32 times the iterates, trees
# of the balance scale, whose gains fall by a quarter a doubling, ended before they had
# any weight, and their blend had a log loss of .239 where it can have .203.
MOST_DOUBLINGS = 8


def later_gain(of_quarter, of_half, of_all):
    """What a run may still gain, from the least values of parts of its iterates.

    The gains of the next doublings are to each other as those of the last two, or as
    where values fall as 1 / t, if that is slower: so falls the log loss where classes
    are separable. They double at most: a first gain, which may be a rounding error, is
    no reason to go on for ever.
    """
    gain, former = of_half - of_all, of_quarter - of_half
    if not gain > 0:
        return 0.0
    ratio = np.clip(gain / former, 0.5, 2.0) if former > 0 else 2.0
    return gain * np.sum(ratio ** np.arange(1, MOST_DOUBLINGS + 1))


class Patience:
    """Ends a run when many iterates have passed without an improvement."""

    # A value is an improvement if it is less than that of the last improvement, by more
    # than ``tol`` of its size and by more than its own uncertainty. The first value
    # that is not NaN is an improvement. The run has ended when the last improvement,
    # iterate t, was followed by ``patience + growth * t`` others; with
    # ``patience=None`` it never ends.

    def __init__(self, patience, tol=0.0, growth=0.0):
        self.patience, self.tol, self.growth = patience, tol, growth
        self.n_values = 0
        self.best = 0  # the first iterate of least value, by however little
        self.improved = None  # the last improvement, once a value is defined
        self._least = self._value = np.nan

    def update(self, value, uncertainty=0.0):
        """Add the value of the next iterate; a decrease by less is no improvement."""
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
        """Add the values of iterates, one after the other; return this object."""
        for value in np.asarray(path, dtype=np.float64).tolist():
            self.update(value)
        return self

    @property
    def n_left(self):
        """Number of further values without improvement that end the run, or inf."""
        if self.patience is None or self.improved is None:
            return np.inf
        waited = self.n_values - 1 - self.improved
        return max(0, self.patience + int(self.growth * self.improved) - waited)

    @property
    def has_ended(self):
        return self.n_left == 0
