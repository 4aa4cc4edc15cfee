"""A recorded run of any optimiser, and what is read from it."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._names import did_you_mean
from .backend import Backend
from .checks import check_run
from .data import RunRows
from .estimates import PathEstimate
from .folds import Folds
from .linearised import check_linearisable, linearised_predictions

METHODS = "exact", "linearised"


@dataclass(frozen=True, eq=False)
class OptimiserRun:
    """A recorded run of any library; a subclass documents its attributes."""

    _model: Backend
    _data: RunRows
    _row_weights: np.ndarray  # as they were passed, in double precision
    params_path: Any
    train_path: np.ndarray

    @classmethod
    def _record(cls, model, start, X, y, n_steps, batches, sample_weight):
        """Check parameters and data, run once, and record every iterate."""
        data, row_weights = check_run(model, start, X, y, batches, sample_weight)
        path, train_path = model.record(n_steps, start, data)
        train_path = model.to_numpy(train_path).astype(np.float64)
        finite = np.isfinite(train_path)
        if not finite.all():
            raise ValueError(
                f"The training loss is not finite from iterate {finite.argmin()} on: "
                "use smaller or fewer steps, or a loss that does not overflow."
            )
        return cls(model, data, row_weights, path, train_path)

    @property
    def n_steps(self) -> int:
        """Number of updates."""
        return len(self.train_path) - 1

    def _params(self, t):
        n_steps = self.n_steps
        if not -n_steps - 1 <= t <= n_steps:
            raise ValueError(f"t must be in [{-n_steps - 1}, {n_steps}], got {t}.")
        return self._model.iterate(self.params_path, t)

    def predict_path(self, X: Any) -> np.ndarray:
        """Predictions by every iterate.

        Parameters
        ----------
        X : array-like, Tensor or pytree of arrays
            As the model takes it.

        Returns
        -------
        ndarray of shape (n_steps + 1, n_rows, ...)
        """
        (X,) = self._model.arrays(self._params(0), X)
        return self._model.to_numpy(self._model.predict_path(self.params_path, X))

    def cv_path(self, folds: Any = 5, block_size: int | None = None) -> PathEstimate:
        """Cross-validation error of every iterate.

        For every fold the run is repeated with the same start, batches and schedule on
        the mean loss over its training rows. This is exact for any model, also for
        networks, and for any optimiser that replicas can share. Only rounding differs
        from running the folds one by one; runs that amplify it (large steps, long runs
        of networks) are not reproducible beyond it.

        Parameters
        ----------
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of rows to
            fit on and held-out rows.
        block_size : int, default=None
            Largest number of runs computed side by side; None is what fits in cache.

        Returns
        -------
        PathEstimate

        Raises
        ------
        ValueError
            If folds are invalid, a replica diverges, or an optimiser of torch does not
            work entry by entry.
        """
        y = self._model.to_numpy(self._data.y)
        folds = Folds.of(folds, y, self._row_weights)
        return self._left_out(folds, block_size)

    def loo_path(
        self,
        rows: ArrayLike | None = None,
        method: Literal["exact", "linearised"] = "exact",
        correction: bool = True,
        block_size: int | None = None,
    ) -> PathEstimate:
        """Leave-one-out error of every iterate.

        For every row that is left out the run is repeated on the mean loss over all
        others.

        Parameters
        ----------
        rows : array-like of int, default=None
            Rows to leave out, one at a time; None means all.
        method : {"exact", "linearised"}, default="exact"
            "exact" holds for any model and optimiser, as in :meth:`cv_path`.
            "linearised" is faster for convex losses with few parameters; it needs a
            matrix of (number of parameters)^2 entries.
        correction : bool, default=True
            Whether to correct the error of "linearised" at some iterates. False is the
            published estimate.
        block_size : int, default=None
            Largest number of runs computed side by side; None is what fits in cache.

        Returns
        -------
        PathEstimate

        Raises
        ------
        ValueError
            If there are no such rows, a replica diverges, or an optimiser of torch does
            not work entry by entry; or if "linearised" finds more than 4096 parameters,
            a loss that is not convex, or an optimiser that asks for more than
            gradients.

        References
        ----------
        Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
        arXiv:2303.02732.
        """
        if method not in METHODS:
            raise ValueError(
                f"method must be one of {METHODS}, got {method!r}."
                f"{did_you_mean(method, METHODS)}"
            )
        folds = Folds.of_rows(rows, self._row_weights)
        if method == "exact":
            return self._left_out(folds, block_size)
        check_linearisable(self)
        predictions = linearised_predictions(self, folds, correction, block_size)
        return self._estimate(folds, predictions)

    def _left_out(self, folds, block_size):
        """The estimate from exact replicas."""
        model, start = self._model, self._params(0)

        def held_out(weights, rows):
            weights = model.weights(start, self._data, weights)
            predictions = model.held_out(self.n_steps, start, self._data, weights, rows)
            return model.to_numpy(predictions)

        return self._estimate(folds, folds.predict_by_block(held_out, block_size))

    def _estimate(self, folds, predictions):
        y = self._model.rows_of(self._data.y, folds.indices)
        losses = self._model.losses(self._model.loss, y, predictions)
        return PathEstimate.of(losses, predictions, folds)
