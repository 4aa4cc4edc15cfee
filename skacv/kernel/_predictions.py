"""Predictions by any iterate of a kernel machine, and without single rows."""

from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.utils.parallel import Parallel, delayed

from .._estimator.data.training_data import new_rows
from .._estimator.prediction.predictions import RecordedModel
from ..optim.array_path import StoredPredictors
from ..optim.kernel_matrix import KernelMatrix, kernel_product
from ..optim.namespaces import as_dtype, rows_in
from ..optim.trajectory import Trajectory, phases_up_to
from ..records.descriptors import recorded
from ..risk.cost import RunCost, method_for
from ..risk.left_out.methods import (
    LeaveOneOutTask,
    coefficients_without,
    spectral_coefficients,
)
from .data import kernel_rows, working_dtype


class RecordedKernelModel(RecordedModel):
    """Any of the iterates whose dual coefficients ``fit`` has kept."""

    dual_coef_ = recorded(
        lambda record: record.iterate.coef, "Dual coefficients of the iterate in use."
    )
    dual_coef_path_ = recorded(
        lambda record: record.iterates and record.iterates.coef,
        "Dual coefficients of the iterates that are kept.",
    )
    stored_iterations_ = recorded(
        lambda record: record.iterates and record.iterates.kept,
        "The iterates that are kept.",
    )
    X_fit_ = recorded(
        lambda record: record.more["X_fit_"], "The rows of the dual coefficients."
    )

    def _light_record(self, in_use):
        """Keep the rows whose dual coefficients are not zero."""
        record = self.record_
        light, iterate = record.without_path(in_use), record.iterate
        X, kernel = record.more["X_fit_"], record.more["_kernel"]
        dual_coef = iterate.coef
        support = np.flatnonzero(dual_coef.reshape(len(dual_coef), -1).any(axis=1))
        if kernel is not None and len(support) < len(dual_coef):
            X = rows_in(X, support)
            iterate = iterate._replace(coef=dual_coef[support])
        more = {**light.more, "X_fit_": X, "_kernel": kernel}
        return replace(light, iterate=iterate, columns=record.columns, more=more)

    def _record_with_rows(self, converter):
        """The record with the rows that are kept converted."""
        record, X = self.record_, self.record_.more["X_fit_"]
        if X is None or sparse.issparse(X):
            return record
        return replace(record, more={**record.more, "X_fit_": converter(X)})

    def _response(self, X):
        """The linear predictor of the iterate in use, (n_samples[, n_outputs])."""
        return self._product(new_rows(self, X), self.dual_coef_) + self.intercept_

    def _responses(self, X):
        """The linear predictors of every recorded iterate, one after the other."""
        X = new_rows(self, X)
        self._check_has_record()
        # One pass over the kernel of X and the training rows.
        iterates = self.record_.iterates
        path = np.moveaxis(iterates.coef, 0, -1)
        intercepts = iterates.intercept[iterates.kept]
        products = np.moveaxis(self._product(X, path), -1, 0)
        for product_t, intercept in zip(products, intercepts):
            yield product_t + intercept

    def _product(self, X, dual_coef):
        """k(X, X_fit_) times coefficients (n_rows, ...)."""
        flat = dual_coef.reshape(len(dual_coef), -1)
        record = self.record_
        if (
            record.more["_kernel"] is None
        ):  # X is the kernel of new rows and training rows
            predictions = X @ flat
        else:
            X, Z = (
                as_dtype(record.columns.apply(rows), flat.dtype)
                for rows in (X, record.more["X_fit_"])
            )
            kernel = record.more["_kernel"]
            predictions = kernel_product(kernel, X, Z, flat, self._map)
        return predictions.reshape(len(predictions), *dual_coef.shape[1:])

    def _run_without_rows(self):
        """Dual coefficients and intercepts without each row left out, by output."""
        record, t = self.record_, self.iteration_
        rows, kernel = record.data.rows, record.more["_kernel"]
        X = kernel_rows(record.columns.apply(rows_in(self.X_fit_, rows)))
        matrix = KernelMatrix(
            kernel, X, working_dtype(len(rows)), self._budget(), self._map
        )
        data = record.data.on(matrix)
        target, rows = data.problem.target, data.rows_of_samples(self.loo_indices_)
        last = data.iterates(
            record.iterates.at(t).coef[None], record.iterates.intercept[[t]]
        )
        # Only the last iterate matters: those before are zeros, which take no memory.
        coef = np.zeros((t + 1, *last.shape[1:]), last.dtype)
        coef[-1] = last[0]
        predictor = StoredPredictors(np.broadcast_to(0.0, (t + 1, *target.shape)))
        trajectory = Trajectory(coef, predictor, phases_up_to(record.phases, t))
        left_out = record.estimates["loo"]  # as the run sees them
        held_out = left_out.prediction[: t + 1] - left_out.target
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
