"""Random labels and folds that are fitted along with a run.

Folds, which are fits with other row weights, and the labels from which self-influences
of kernel machines are estimated (:mod:`skacv.risk.left_out.labels`), which are fits to
other targets, share the products of the run with the design.
"""

from dataclasses import replace

import numpy as np

from ...optim.fits import Iterate, WeightedFits, Weights
from ...optim.run import NoSideRuns
from ..leave_out_rule import counts_in
from .fold_record import RecordedFolds
from .labels import LabelledLeaveOneOut
from .replicas import are_surely_stable, check_stable, risen


class SideFolds(NoSideRuns):
    """Folds beside a run: the fit of the problem comes first, those of folds last.

    Parameters
    ----------
    refit : LeaveOutRule
        As it is for a run like this one.
    folds : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows.
    """

    # Fits to labels, between that of the problem and those of folds, and what they say.
    n_labelled, left_out = 0, None

    def __init__(self, problem, refit, folds):
        self.folds, self._problem = folds, problem
        self._refits = refit.without(problem, counts_in(folds, len(problem.target)))
        self._begun = self._ended = self._recorded = None

    def fits(self, problem, keeps_predictors=False):
        """The fits that run side by side, that of the problem first."""
        refits, n_whole = self._refits, 1 + self.n_labelled
        own = np.repeat(problem.row_weights.astype(np.float64), n_whole, axis=1)
        weights = np.concatenate([own, refits.rows], axis=1)
        # One array of them, not two: there may be many rows.
        self._refits = replace(refits, rows=weights[:, n_whole:])
        scale = np.concatenate([np.ones(n_whole), refits.penalty_scale])
        columns = refits.columns and refits.columns.beside_the_run(n_whole)
        weights = Weights(weights, scale, refits.refits_intercept, columns)
        return WeightedFits(problem, weights, self._targets(), keeps_predictors)

    def _targets(self):
        """Targets of all fits; None where they are those of the problem."""
        return None

    def start(self, fits, coef):
        """The first iterate of all fits, from coefficients (n_columns, n_outputs)."""
        coef = fits.start(coef)
        coef[:, :, 1 : 1 + self.n_labelled] = 0
        begun = fits.iterate(coef)
        held_out = [rows for _, rows in self.folds]
        self._recorded = RecordedFolds(self._problem, fits, held_out)
        self._begun = self._ended = begun
        self._record(begun)
        return begun

    def take(self, states):
        """Record the states after some updates, one after the other."""
        for state in states:
            self._note(state)

    def _note(self, state):
        """Record one state."""
        self._record(state.current)

    def _record(self, iterate):
        """Record the iterates of the folds."""
        if not self.folds:
            return
        self._ended = iterate
        if iterate.predictor is not None:
            iterate = iterate._replace(predictor=self._of_folds(iterate.predictor))
        self._recorded.add(iterate)

    def _of_folds(self, array):
        """Those of folds, (n, n_outputs, n_folds), of those of all fits, or None."""
        return None if array is None else array[:, :, 1 + self.n_labelled :]

    def recorded(self, n_iterates):
        """The record of the folds, of the first iterates of the run: a FoldRecord."""
        return self._recorded.first(n_iterates)

    def check_stable(self, trajectory):
        """Raise if a step of the run was too large for a fold.

        Raises
        ------
        ValueError
            The message names the largest stable step.
        """
        problem, weights = self._problem, self._refits
        phases = trajectory.phases
        if not self.folds or are_surely_stable(problem, phases, weights):
            return
        ends = (Iterate(*map(self._of_folds, x)) for x in (self._begun, self._ended))
        suspects = risen(WeightedFits(problem, weights), *ends)
        check_stable(problem, trajectory, weights, suspects)


class LabelsAndFolds(SideFolds):
    """Random labels beside a run, and folds if there are any.

    As many labels as the problem has outputs are the targets of one fit, which has the
    weights and means of the run.

    Parameters
    ----------
    refit : LeaveOutRule
        As it is for a run like this one.
    labels : ndarray of shape (n_rows, n_labels)
        Random signs.
    rows : ndarray of int
        Rows left out by means of labels.
    folds : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows.

    Attributes
    ----------
    left_out : LabelledLeaveOneOut
    """

    def __init__(self, problem, refit, labels, rows, folds):
        # Self-influences are those of the weights and means of the run.
        refit = replace(refit, refits_intercept=False, renormalises=False)
        super().__init__(problem, refit, folds)
        self.labels, self.rows = labels, rows
        self.n_labelled = -(-labels.shape[1] // problem.target.shape[1])

    def _targets(self):
        target, n_labels = self._problem.target[:, :, None], self.labels.shape[1]
        signs = np.zeros((*target.shape[:2], self.n_labelled))
        signs.reshape(len(signs), -1)[:, :n_labels] = -self.labels
        return np.concatenate([target, signs, *[target] * len(self.folds)], axis=2)

    def start(self, fits, coef):
        begun = super().start(fits, coef)
        residuals, _ = self._residuals(begun.predictor)
        dtype = self._problem.design.dtype
        self.left_out = LabelledLeaveOneOut(self.labels, self.rows, residuals, dtype)
        return begun

    def _note(self, state):
        # All rows at a time, a row is visited where the update begins.
        visited = state.earlier.predictor if state.visited is None else state.visited
        ended = state.current.predictor
        self.left_out.advance(self._residuals(visited), self._residuals(ended))
        super()._note(state)

    def _residuals(self, predictor):
        """Residuals of the run on the target, and on the labels."""
        labelled = predictor[:, :, 1 : 1 + self.n_labelled].reshape(len(predictor), -1)
        labelled = labelled[:, : self.labels.shape[1]] + self.labels
        return predictor[self.of_problem] - self._problem.target, labelled
