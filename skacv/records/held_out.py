"""An estimate of the loss of every iterate on unseen rows, and what it is made of."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ..optim.array_path import ArrayPath


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The estimated loss of every iterate on unseen rows, with the rows held out.

    Parameters
    ----------
    path : ndarray of shape (n_iterates,)
        The estimated loss.
    se_path : ndarray of shape (n_iterates,)
        Its standard error.
    indices : ndarray of int, or list of ndarray of int, default=None
        The held-out rows among the samples that were passed, a list fold by fold.
    target : ndarray of shape (n_held_out, ...), default=None
        Their targets, fold after fold.
    prediction : array-like of shape (n_iterates, n_held_out, ...), default=None
        What every iterate predicts for them without having seen them; it may be
        computed when it is read.
    more : dict of str to object, default={}
        Further results by name, such as "fold_path" or "mc_se_path".
    """

    path: np.ndarray
    se_path: np.ndarray
    indices: Any = None
    target: np.ndarray | None = None
    prediction: Any = None
    more: dict[str, Any] = field(default_factory=dict)

    def first(self, n_iterates: int) -> Self:
        """The estimate of the first iterates of the run.

        Parameters
        ----------
        n_iterates : int

        Returns
        -------
        HeldOut
        """

        def cut(name, value):
            if name.endswith("path") and isinstance(value, np.ndarray):
                return value[:n_iterates].copy()
            return value.first(n_iterates) if isinstance(value, ArrayPath) else value

        return replace(
            self,
            path=cut("path", self.path),
            se_path=cut("path", self.se_path),
            prediction=cut("path", self.prediction),
            more={name: cut(name, value) for name, value in self.more.items()},
        )

    def known_target(self) -> np.ndarray:
        """The targets of the held-out rows.

        Returns
        -------
        ndarray of shape (n_held_out, ...)

        Raises
        ------
        ValueError
            If they are not known, as with rows on Dask's workers.
        """
        if self.target is None:
            raise ValueError(
                "Fits to rows on workers do not keep the predictions for rows in "
                "folds: for intervals and prediction sets set loo to a number of rows, "
                "such as loo=100."
            )
        return self.target

    def residuals(self, t: int) -> np.ndarray:
        """Targets less held-out predictions of an iterate.

        Parameters
        ----------
        t : int
            The iterate.

        Returns
        -------
        ndarray of the shape of the predictions
            (n_held_out,) or (n_held_out, n_targets).

        Raises
        ------
        ValueError
            If the targets are not known.
        """
        # A model of several targets predicts a column also where y is a vector.
        target, prediction = self.known_target(), self.prediction[t]
        return target.reshape(prediction.shape) - prediction

    def without_rows(self) -> Self:
        """The losses alone, without held-out rows and their predictions.

        Returns
        -------
        HeldOut
        """
        return replace(self, indices=None, target=None, prediction=None)
