"""Arrays of iterates that grow along with a run."""

import numpy as np


def with_room(array, n_used, n_wanted):
    """An array of at least ``n_rows`` rows that begins with another one.

    Twice as long at least where it was too short. What is not written to yet takes no
    memory: the system gives it out page by page.

    Shapes: array (n_rows, ...); returned (n, ...).
    """
    n_rows = len(array)
    if n_wanted <= n_rows:
        return array
    if n_rows > 1:
        n_wanted = max(n_wanted, 2 * n_rows)
    longer = np.empty((n_wanted, *array.shape[1:]), array.dtype)
    longer[:n_used] = array[:n_used]
    return longer


class PathCache:
    """Values of the iterates of a run, computed only for new ones.

    A run that is evaluated as it goes is read again and again, and what has been
    recorded of an iterate stays.
    """

    def __init__(self):
        self._values = {}

    def first(self, key, n_iterates, compute):
        """The values of the first iterates, (n_iterates, ...).

        Parameters
        ----------
        key : hashable
            What they are called.
        compute : callable
            ``compute(iterates)`` are the values of a slice of iterates, (n, ...).
        """
        known = self._values.get(key)
        n_known = 0 if known is None else len(known)
        if n_known < n_iterates:
            found = compute(slice(n_known, n_iterates))
            known = found if known is None else np.concatenate([known, found])
            self._values[key] = known
        return known[:n_iterates]
