"""The exception of estimates for runs that they cannot read.

An estimate is a function of a problem, a trajectory and a rule by which rows are left
out. Before it reads a run, it looks at its loss, its updates and its penalties: nothing
is read from flags that a new one may forget to set.
"""


class Unreadable(ValueError):
    """A run that an estimate cannot read."""
