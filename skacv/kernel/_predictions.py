"""Predictions by any iterate of a kernel machine, and without single rows."""

import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from .._estimator.data.training_data import new_rows
from .._estimator.devices import in_numpy
from .._estimator.estimates.fitted_state import OF_RECORD
from .._estimator.prediction.predictions import RecordedModel
from ..optim.array_path import StoredPredictors
from ..optim.kernel_matrix import KernelMatrix, kernel_product
from ..optim.namespaces import as_dtype, rows_in, to_numpy
from ..optim.trajectory import Trajectory, phases_up_to
from ..risk.cost import RunCost, method_for
from ..risk.left_out.methods import (
    LeaveOneOutTask,
    coefficients_without,
    spectral_coefficients,
)
from .data import kernel_rows, working_dtype


class RecordedKernelModel(RecordedModel):
    """Any of the iterates whose dual coefficients ``fit`` has kept."""

    _of_record = OF_RECORD - {"_columns"}

    def recorded_iterations(self) -> np.ndarray:
        """Iterates whose coefficients are kept, in order.

        Returns
        -------
        ndarray of int
        """
        check_is_fitted(self)
        if self._dropped:
            return np.array([self.iteration_])
        return in_numpy(self).stored_iterations_

    def _take_coefficients(self, index):
        """Use one row of the coefficients that are kept."""
        self.dual_coef_ = self.dual_coef_path_[index].copy()
        self.intercept_ = self.intercept_path_[self.stored_iterations_[index]]

    def _take_from_record(self):
        """Keep the rows whose dual coefficients are not zero."""
        dual_coef = to_numpy(self.dual_coef_)
        support = np.flatnonzero(dual_coef.reshape(len(dual_coef), -1).any(axis=1))
        if self._kernel is not None and len(support) < len(dual_coef):
            self.X_fit_ = rows_in(self.X_fit_, support)
            self.dual_coef_ = rows_in(self.dual_coef_, support)

    def _linear_predictor(self, X):
        """The linear predictor of the iterate in use, (n_samples[, n_outputs])."""
        return self._product(new_rows(self, X), self.dual_coef_) + self.intercept_

    def _linear_predictors(self, X):
        """The linear predictors of every recorded iterate, one after the other."""
        X = new_rows(self, X)
        self._check_has_record()
        # One pass over the kernel of X and the training rows.
        path = np.moveaxis(self.dual_coef_path_, 0, -1)
        intercepts = self.intercept_path_[self.stored_iterations_]
        products = np.moveaxis(self._product(X, path), -1, 0)
        for product_t, intercept in zip(products, intercepts):
            yield product_t + intercept

    def _product(self, X, dual_coef):
        """k(X, X_fit_) times coefficients (n_rows, ...)."""
        flat = dual_coef.reshape(len(dual_coef), -1)
        if self._kernel is None:  # X is the kernel of new rows and training rows
            predictions = X @ flat
        else:
            X, Z = (
                as_dtype(self._columns.applied(rows), flat.dtype)
                for rows in (X, self.X_fit_)
            )
            predictions = kernel_product(self._kernel, X, Z, flat, self._map)
        return predictions.reshape(len(predictions), *dual_coef.shape[1:])

    def _run_without_rows(self):
        """Dual coefficients and intercepts without each row left out, by output."""
        rows = self._data.rows
        X = kernel_rows(self._columns.applied(rows_in(self.X_fit_, rows)))
        matrix = KernelMatrix(
            self._kernel, X, working_dtype(len(rows)), self._budget(), self._map
        )
        data, t = self._data.on(matrix), self.iteration_
        target, rows = data.problem.target, data.rows_of_samples(self.loo_indices_)
        last = self.dual_coef_path_[self.stored_iterations_.searchsorted(t)][None]
        last = data.iterates(last, self.intercept_path_[[t]])
        # Only the last iterate matters: those before are zeros, which take no memory.
        coef = np.zeros((t + 1, *last.shape[1:]), last.dtype)
        coef[-1] = last[0]
        predictor = StoredPredictors(np.broadcast_to(0.0, (t + 1, *target.shape)))
        trajectory = Trajectory(coef, predictor, phases_up_to(self._phases, t))
        held_out = self.loo_prediction_path_[: t + 1] - self.loo_target_
        held_out = held_out.reshape(t + 1, len(rows), -1)
        rule = self._spec().refit(data)
        task = LeaveOneOutTask.of(data.problem, trajectory, rows, rule)
        kind = RunCost.recorded(data.problem, trajectory)
        is_spectral = method_for(kind) == "spectral" and not kind.has_ridge_under_P()
        for k, part in enumerate(task.outputs()):
            if is_spectral:
                coef_and_shift = spectral_coefficients(part, held_out[:, :, k])
            else:
                coef_and_shift = coefficients_without(part, "replicas")
            yield data.without_rows(*coef_and_shift, k)

    def _map(self, function, blocks):
        """A function of blocks of the kernel, ``n_jobs`` at a time."""
        if len(blocks) == 1:  # joblib's preparations would take longer
            return [function(blocks[0])]
        return Parallel(n_jobs=self.n_jobs, prefer="threads", require="sharedmem")(
            delayed(function)(block) for block in blocks
        )
