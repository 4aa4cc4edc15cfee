"""A run that can go on, and be read at any point."""

from abc import ABC, abstractmethod
from typing import Any

from .record import Record


class Run(ABC):
    """A run of an iterative algorithm, begun by the ``begin`` of an estimator.

    It holds the data of the fit, so that nothing is passed again to go on. The
    estimator does not change until it takes a record of the run.
    """

    @abstractmethod
    def go_on(self, n_updates: int | None = None, progress: Any = None) -> bool:
        """Start or continue the run, up to a total number of updates.

        Parameters
        ----------
        n_updates : int, default=None
            Counted from the start of the run, which is never shortened. Where a
            strength of a path converges early, its planned updates count all the same.
            None: to the end of the run.
        progress : object, default=None
            What follows the updates, from :meth:`progress_of`.

        Returns
        -------
        bool
            Whether the run is complete.

        Raises
        ------
        RuntimeError
            If the run has ended, or an error has left it half done.
        """

    @abstractmethod
    def record(self) -> Record:
        """The iterates so far, and their estimates.

        Returns
        -------
        Record

        Raises
        ------
        ValueError
            If there is no update yet.
        RuntimeError
            If an error has left the run half done.
        """

    def end(self) -> Record:
        """The last record of the run, which then frees what only updates need.

        Returns
        -------
        Record
        """
        return self.record()

    def hand_over(self) -> Any:
        """What a run on other folds goes on with; this one has ended then.

        By default there is nothing, and such a run begins anew.

        Returns
        -------
        object or None
            It is passed to the ``begin`` of the same estimator, as ``former``.
        """
        return None

    def progress_of(self, model: Any, n_updates: int | None = None) -> Any:
        """What reports updates to callbacks, or prints them; by default nothing does.

        Parameters
        ----------
        model : estimator
            It has the callbacks, and ``verbose``.
        n_updates : int, default=None
            As in :meth:`go_on`.

        Returns
        -------
        object or None
        """
        return None


def check_n_updates(n_updates):
    """Raise unless a number of updates, None for all, is positive."""
    if n_updates is not None and n_updates < 1:
        raise ValueError(f"n_updates must be at least 1, got {n_updates}.")


def check_is_whole(is_whole):
    """Raise unless a run has all that updates need, and has ended none halfway."""
    if not is_whole:
        raise RuntimeError(
            "The run has ended, or an error has left it half done: begin another one."
        )


def check_has_begun(has_begun):
    """Raise unless a run has updates to read."""
    if not has_begun:
        raise ValueError("The run has not begun: call go_on() first.")
