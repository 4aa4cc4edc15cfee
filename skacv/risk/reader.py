"""What estimates say of runs that they cannot read.

An estimate is a function of a problem, a trajectory and a refit. Before it reads, it
looks at what a run is of: nothing is read from flags that a new loss, penalty or update
may forget to set.
"""


class Unreadable(ValueError):
    """A run from which an estimate would not be what it says."""
