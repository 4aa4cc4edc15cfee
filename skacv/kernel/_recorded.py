"""What a kernel machine with a recorded trajectory can do: predict with any iterate."""

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._estimator.predictions import RecordedModel
from ..optim.kernel_matrix import product


class RecordedKernelModel(RecordedModel):
    """Any of the iterates whose dual coefficients are kept."""

    def recorded_iterations(self):
        """Iterates whose coefficients are kept, in order.

        Returns
        -------
        ndarray of int
        """
        check_is_fitted(self)
        return self.stored_iterations_

    def _take_coefficients(self, place):
        """Those of one row of the kept ones."""
        self.dual_coef_ = self.dual_coef_path_[place].copy()

    def _linear_predictor(self, X):
        """Of the iterate in use, (n_samples,) or (n_samples, n_outputs)."""
        return self._combined(self._checked(X), self.dual_coef_)

    def _linear_predictors(self, X):
        """Of every iterate that is kept, one after the other."""
        X = self._checked(X)
        # All from one pass over the kernel between X and the training rows.
        path = np.moveaxis(self.dual_coef_path_, 0, -1)
        yield from np.moveaxis(self._combined(X, path), -1, 0)

    def _predicted(self, replicas, X):
        """Predictions by the coefficients of every replica, (n_replicas, n_samples)."""
        return self._combined(X, replicas).T

    def _combined(self, X, dual_coef):
        """k(X, X_fit_) times coefficients (n_rows, ...)."""
        flat = dual_coef.reshape(len(dual_coef), -1)
        if self._kernel is None:  # X is the kernel between its rows and those
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
