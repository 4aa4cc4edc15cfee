"""Representation of the data in a run: by columns, by rows, or by moments.

A run costs what its data do, and so does all that is read from it. Where the same run
can be had from fewer numbers, exactly, it is on these.
"""

from dataclasses import dataclass

from ..optim.phases import Phase
from ..risk.left_out.costs import Run
from ..risk.left_out.methods import Replicated, method_for
from .data import ColumnData
from .pseudo_rows import on_pseudo_rows
from .readers import ESTIMATES
from .row_space import RowSpaceData


def on_smaller_side(estimator, data, folds, resume):
    """The data and the folds that a run is on.

    Parameters
    ----------
    estimator : TrajectoryModel
    data : ColumnData
    folds : list of (ndarray of int, ndarray of int)
    resume : bool
        Whether to go on with what the estimator has recorded, if anything.

    Returns
    -------
    data : ColumnData
    folds : list of (ndarray of int, ndarray of int)
        As rows of these data.
    """
    if data.problem.design.is_away:
        # Products take little there, and a basis of the rows would be as large as X.
        return data, folds
    shape, is_recorded = _shape(data), resume and hasattr(estimator, "coef_path_")
    if is_recorded and estimator.coef_path_.shape[-1] != shape[1]:
        return data, folds  # which no run can go on from
    done = estimator._phases if is_recorded else []
    run = estimator._planned_run(shape, data.y)
    asked = AskedRun(estimator, data, folds, done, run)
    if asked.is_of_row_space() and asked.pays_rotating():
        rotated = RowSpaceData.of(data)
        if not is_recorded or rotated.holds_record(estimator):
            return rotated, folds
    if asked.is_of_moments() and asked.pays_summing():
        return on_pseudo_rows(data, folds) or (data, folds)
    return data, folds


def _shape(data):
    """Samples and features."""
    return len(data.rows), len(data.center)


def sees_moments_alone(update):
    """Whether, with the squared error, it needs means and second moments alone."""
    return update.is_affine and not update.n_batches and update.preconditioner is None


@dataclass(frozen=True)
class AskedRun:
    """A run that is asked for, with all that will be read from it.

    Attributes
    ----------
    estimator : TrajectoryModel
    data : ColumnData
    folds : list of (ndarray of int, ndarray of int)
    done : list of Phase
        What it goes on from.
    run : Run
        As planned.
    """

    estimator: object
    data: ColumnData
    folds: list
    done: list[Phase]
    run: Run

    def _estimates(self):
        return [e for e in ESTIMATES.values() if e.is_on(self.estimator)]

    def is_of_row_space(self):
        """Whether it, and all that is read from it, is the same in their row space."""
        # Folds that scale columns for themselves each have a row space of their own.
        if self.folds and self.estimator.standardize:
            return False
        return self.estimator._is_of_row_space(_shape(self.data), self.done) and all(
            estimate.is_rotation_invariant for estimate in self._estimates()
        )

    def pays_rotating(self):
        """Whether what a run in the row space saves is more than getting there takes.

        In multiplications: a product with X or X' takes the entries of X, one with the
        coordinates of the rows the square of their number.
        """
        n_rows, n_features = _shape(self.data)
        n_fits = 1 + len(self.folds)
        if (
            ESTIMATES["loo"].is_on(self.estimator)
            and method_for(self.run) is Replicated
        ):
            n_fits += n_rows
        n_iterates = (self.run.n_updates + 1) * self.run.n_outputs
        saved = self.data.problem.design.n_stored - n_rows**2
        # A QR decomposition, and the coefficients of the features.
        spent = 2 * n_features * n_rows**2 + n_iterates * n_features * n_rows
        return 2 * n_iterates * n_fits * saved > spent

    def is_of_moments(self):
        """Whether it, and all that is read from it, needs means and moments alone."""
        updates = [update for update, _ in self.run.rules]
        updates += [phase.first_update for phase in self.done]
        return (
            self.run.is_quadratic
            and not self.estimator._keeps_data
            # A single fold has its standard error over its rows.
            and len(self.folds) != 1
            and all(sees_moments_alone(update) for update in updates)
            and all(estimate.needs == "moments" for estimate in self._estimates())
        )

    def pays_summing(self):
        """Whether products with X of a run and its folds take more than its moments.

        In multiplications, as far as the plan goes.
        """
        n_rows, n_features = _shape(self.data)
        n_fits, n_outputs = 1 + len(self.folds), self.run.n_outputs
        products = 2 * self.run.n_updates * n_fits * n_outputs
        spent = n_rows * (n_features + n_outputs) ** 2
        return products * self.data.problem.design.n_stored > spent
