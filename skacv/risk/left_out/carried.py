"""Random labels and folds that are fitted along with a run, as further outputs.

Folds, which are fits with other row weights, and the labels from which self-influences
of kernel machines are estimated (:mod:`skacv.risk.left_out.labels`) share the products
of the run with the design.
"""

from dataclasses import replace

import numpy as np

from ...optim.fits import Fits, Iterate, Weights
from ..refit import stays_in
from .fold_record import RecordedFolds
from .labels import LabelledLeaveOneOut
from .replicas import are_surely_stable, check_stable, risen


class LabelsAndFolds:
    """Labels and folds beside a run, in place of :class:`skacv.optim.run.Alone`.

    Folds are fits beside the fit of the problem. With labels, all outputs of all fits
    are fits of one output each.

    Parameters
    ----------
    refit : Refit
        As it is for a run like this one.
    labels : ndarray of shape (n_rows, n_labels)
        Random signs; none if leave-one-out does not need them.
    rows : ndarray of int
        Rows left out by means of labels.
    folds : list of (ndarray of int, ndarray of int)
        Training rows and held-out rows.

    Attributes
    ----------
    left_out : LabelledLeaveOneOut or None
    """

    def __init__(self, problem, refit, labels, rows, folds):
        self.labels, self.folds, self.rows = labels, folds, rows
        if labels.shape[1]:
            # Self-influences are those of the weights and means of the run.
            refit = replace(refit, recentres=False, renormalises=False)
        stays = stays_in(folds, len(problem.target))
        self._refits = refit.without(problem, stays)
        self._problem, self.left_out = problem, None
        self._begun = self._ended = None
        self._recorded = None
        self._n_outputs = problem.target.shape[1]

    @classmethod
    def of_folds(cls, problem, refit, folds):
        """Folds only; None without any."""
        if not folds:
            return None
        no_labels = np.empty((len(problem.target), 0), problem.target.dtype)
        return cls(problem, refit, no_labels, np.empty(0, int), folds)

    def fits(self, problem):
        """The fits that run side by side, that of the problem first."""
        own, refits = problem.row_weights.astype(np.float64), self._refits
        scale = np.ones(1)
        if not self.labels.shape[1]:
            weights = np.concatenate([own, refits.rows], axis=1)
            # One array of them, not two: there may be many rows.
            self._refits = replace(refits, rows=weights[:, 1:])
            scale = np.concatenate([scale, refits.penalty_scale])
            columns = refits.columns and refits.columns.beside_the_run(1)
            return Fits(problem, Weights(weights, scale, refits.recentres, columns))
        n_outputs, n_labels = self._n_outputs, self.labels.shape[1]
        n_whole = n_outputs + n_labels
        weights = [own] * n_whole + [np.repeat(refits.rows, n_outputs, axis=1)]
        scales = [scale] * n_whole + [np.repeat(refits.penalty_scale, n_outputs)]
        target = [problem.target, -self.labels, *[problem.target] * len(self.folds)]
        weights = np.concatenate(weights, axis=1)
        weights = Weights(weights, np.concatenate(scales), refits.recentres)
        return Fits(problem, weights, np.concatenate(target, axis=1)[:, None, :])

    def start(self, fits, coef):
        """The first iterate of all fits, from coefficients (n_columns, n_outputs)."""
        if self.labels.shape[1]:
            labels = np.zeros((len(coef), self.labels.shape[1]), coef.dtype)
            coef = np.concatenate([coef, labels, *[coef] * len(self.folds)], axis=1)
            begun = fits.iterate(coef[:, None, :])
            residuals, _ = self._residuals(begun.predictor)
            dtype = self._problem.design.dtype
            self.left_out = LabelledLeaveOneOut(
                self.labels, self.rows, residuals, dtype
            )
        else:
            begun = fits.iterate(fits.start(coef))
        held_out = [rows for _, rows in self.folds]
        self._recorded = RecordedFolds(self._problem, fits, held_out)
        self._begun = self._ended = begun
        self._record(begun)
        return begun

    def own(self, array):
        """The outputs of the problem, (n, n_outputs), among those of all fits."""
        if self.labels.shape[1]:
            return array[:, 0, : self._n_outputs]
        return array[:, :, 0]

    def take(self, states):
        """Record the states after some updates, one after the other."""
        for state in states:
            if self.left_out is not None:
                self._advance_labels(state)
            self._record(state.current)

    def _advance_labels(self, state):
        """Go on by an update with the rows that are left out by labels."""
        ended = state.current.predictor
        # All rows at a time, a row is visited where the update begins.
        visited = state.earlier.predictor if state.visited is None else state.visited
        self.left_out.advance(self._residuals(visited), self._residuals(ended))

    def _residuals(self, predictor):
        """Residuals of the run on the target, and on the labels."""
        first, last = self._n_outputs, self._n_outputs + self.labels.shape[1]
        labelled = predictor[:, 0, first:last] + self.labels
        return self.own(predictor) - self._problem.target, labelled

    def _of_folds(self, iterate):
        """An iterate of all fits as one of folds alone."""
        return Iterate(
            *(part if part is None else self._folds_part(part) for part in iterate)
        )

    def _folds_part(self, array):
        """Those of folds, (n, n_outputs, n_folds), of those of all fits."""
        if not self.labels.shape[1]:
            return array[:, :, 1:]
        own = array[:, 0, self._n_outputs + self.labels.shape[1] :]
        own = own.reshape(len(array), len(self.folds), self._n_outputs)
        return np.moveaxis(own, 1, 2)

    def _record(self, iterate):
        """Record the iterates of the folds."""
        if not self.folds:
            return
        self._ended = iterate
        if iterate.predictor is not None:
            iterate = iterate._replace(predictor=self._folds_part(iterate.predictor))
        self._recorded.add(iterate)

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
        fits = Fits(problem, weights)
        suspects = risen(fits, self._of_folds(self._begun), self._of_folds(self._ended))
        check_stable(problem, trajectory, weights, suspects)
