"""Reader: what it takes to read an estimate from a recorded run.

A reader says what it requires before it reads. A run that does not meet it is refused
with one sentence, since the estimate would not be what it says: nothing is read from
flags that a new loss, penalty or update may forget to set.
"""

from typing import Any, Protocol

from ..optim.problem import Problem
from ..optim.trajectory import Trajectory
from .refit import Refit


class Unreadable(ValueError):
    """A run that a reader cannot read; the message says what is missing."""


class Reader(Protocol):
    """Reads an estimate of every iterate from a recorded run.

    A reader is a frozen dataclass of its settings. Those of this package are
    :class:`~skacv.risk.memory.memory_matrix.MemoryMatrix`,
    :class:`~skacv.risk.left_out.choice.LeaveOneOut` and
    :class:`~skacv.risk.left_out.choice.Folds`.
    """

    def requires(self, problem: Problem, trajectory: Trajectory) -> None:
        """Raise where the estimate would not be what it says.

        Parameters
        ----------
        trajectory : Trajectory
            A run of that problem.

        Raises
        ------
        Unreadable
            One sentence says what is missing.
        """

    def read(self, problem: Problem, trajectory: Trajectory, refit: Refit) -> Any:
        """The estimate of every iterate, of a run that meets :meth:`requires`.

        Parameters
        ----------
        problem : Problem
        trajectory : Trajectory
        refit : Refit
            What a fit without some of the rows would be.
        """


def read(reader, problem, trajectory, refit):
    """The result of a reader on a run, once the run meets its requirements.

    Parameters
    ----------
    reader : Reader
    problem : Problem
    trajectory : Trajectory
    refit : Refit

    Returns
    -------
    What ``reader.read`` returns.

    Raises
    ------
    Unreadable
        If the run does not meet ``reader.requires``.
    """
    reader.requires(problem, trajectory)
    return reader.read(problem, trajectory, refit)
