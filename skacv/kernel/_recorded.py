"""What a kernel machine with a recorded trajectory can do: predict with any iterate."""

from copy import copy

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._recorded import RecordedModel
from .gram import product


class RecordedKernelModel(RecordedModel):
    """Any of the iterates whose dual coefficients are kept."""

    def recorded_iterations(self):
        """Iterates whose coefficients are kept, in order.

        Returns
        -------
        ndarray of int
        """
        return self.stored_iterations_

    def at_iteration(self, t):
        """A fitted copy that predicts with iterate ``t``.

        The copy shares the recorded paths; nothing is run again.

        Parameters
        ----------
        t : int
            Row of the paths, 0 to ``n_iter_``; negative counts from the end.

        Returns
        -------
        estimator of the same class

        Raises
        ------
        ValueError
            If there is no such row, or ``store_every`` has left it out.
        """
        check_is_fitted(self)
        n_rows = self.n_iter_ + 1
        if not -n_rows <= t < n_rows:
            raise ValueError(f"t must be in [{-n_rows}, {n_rows - 1}], got {t}.")
        t = int(t) % n_rows
        stored = np.flatnonzero(self.stored_iterations_ == t)
        if not stored.size:
            raise ValueError(
                f"Iterate {t} is not kept with store_every={self.store_every}: kept "
                f"are {self.stored_iterations_.tolist()}."
            )
        stopped = copy(self)
        stopped.iteration_ = t
        stopped.dual_coef_ = self.dual_coef_path_[stored[0]].copy()
        return stopped

    def _linear_predictor(self, X):
        """Of the iterate in use, (n_samples,) or (n_samples, n_outputs)."""
        return self._combined(self._checked(X), self.dual_coef_)

    def _linear_predictors(self, X):
        """Of every iterate that is kept, one after the other."""
        # All from one pass over the kernel between X and the training rows.
        path = np.moveaxis(self.dual_coef_path_, 0, -1)
        yield from np.moveaxis(self._combined(self._checked(X), path), -1, 0)

    def _combined(self, X, dual_coef):
        """k(X, X_fit_) times coefficients (n_rows, ...)."""
        flat = dual_coef.reshape(len(dual_coef), -1)
        if self.X_fit_ is None:
            found = X @ flat
        else:
            X, Z = (rows.astype(flat.dtype, copy=False) for rows in (X, self.X_fit_))
            found = product(self._kernel, X, Z, flat, self._map)
        return found.reshape(len(found), *dual_coef.shape[1:])

    def _map(self, function, blocks):
        """Blocks of the kernel, as many at a time as there are jobs."""
        return Parallel(n_jobs=self.n_jobs, prefer="threads", require="sharedmem")(
            delayed(function)(block) for block in blocks
        )
