"""Random labels and folds that are fitted along with a run, as further outputs.

What leaving rows out needs runs in the same products with the design: folds, as fits
with other row weights, and the labels that self-influences of kernel machines are
read from (:mod:`skacv.risk.left_out.labels`).
"""

from dataclasses import replace

import numpy as np

from ...optim.fits import Fits, Weights
from ...optim.growing import with_room
from ...optim.updates import Iterate
from ..refit import stays_in
from .labels import LeaveOneOut
from .replicas import check_stable


class LabelsAndFolds:
    """What runs beside, as :class:`skacv.optim.run.Alone` says it.

    All outputs of all of them are fits of one output each, side by side; outputs that
    the loss couples stay together, and have no labels.

    Parameters
    ----------
    problem : Problem
    refit : Refit
        As it is for a run like this one.
    labels : ndarray of shape (n_rows, n_labels)
        Random signs; none where leave-one-out does without.
    rows : ndarray of int
        Rows that are left out by labels.
    folds : list of (ndarray of int, ndarray of int)
        Rows to fit on and rows to judge by.

    Attributes
    ----------
    left_out : LeaveOneOut or None
    folds : list
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
        judged = [np.empty(0, int), *(rows for _, rows in folds)]
        # Rows that folds are judged by, fold after fold, and which fold each is of.
        self._judged = np.concatenate(judged)
        self._of_judged = np.repeat(np.arange(len(folds)), [len(j) for j in judged[1:]])
        self._is_coupled = problem.loss.is_coupled
        self._n_outputs = problem.target.shape[1]
        self._predictors, self._n_judged = None, 0

    @classmethod
    def of_folds(cls, problem, refit, folds):
        """Folds alone; None without any."""
        if not folds:
            return None
        no_labels = np.empty((len(problem.target), 0), problem.target.dtype)
        return cls(problem, refit, no_labels, np.empty(0, int), folds)

    def fits(self, problem):
        """The fits that run side by side, that of the problem first."""
        own, refits = problem.row_weights.astype(np.float64), self._refits
        scale = np.ones(1)
        if self._is_coupled:
            weights = np.concatenate([own, refits.rows], axis=1)
            scale = np.concatenate([scale, refits.penalty_scale])
            columns = refits.columns and refits.columns.beside_the_run(1, 1)
            return Fits(problem, Weights(weights, scale, refits.recentres, columns))
        n_outputs, n_labels = self._n_outputs, self.labels.shape[1]
        n_whole = n_outputs + n_labels
        weights = [own] * n_whole + [np.repeat(refits.rows, n_outputs, axis=1)]
        scales = [scale] * n_whole + [np.repeat(refits.penalty_scale, n_outputs)]
        target = [problem.target, -self.labels, *[problem.target] * len(self.folds)]
        columns = refits.columns
        weights = Weights(
            np.concatenate(weights, axis=1),
            np.concatenate(scales),
            refits.recentres,
            columns and columns.beside_the_run(n_whole, n_outputs),
        )
        return Fits(problem, weights, np.concatenate(target, axis=1)[:, None, :])

    def start(self, fits, first):
        """The first iterate of all fits, from that of the problem's outputs."""
        coef = first.coef[:, :, 0]
        if self._is_coupled:
            coef = fits.start(coef)
        else:
            labels = np.zeros((len(coef), self.labels.shape[1]), coef.dtype)
            coef = np.concatenate([coef, labels, *[coef] * len(self.folds)], axis=1)
            coef = coef[:, None, :]
        predictor = fits.predictor(coef)
        self._begin(predictor)
        return Iterate(coef, predictor)

    def _begin(self, predictor):
        if self.labels.shape[1]:
            residuals = self.own(predictor) - self._problem.target
            dtype = self._problem.design.dtype
            self.left_out = LeaveOneOut(self.labels, self.rows, residuals, dtype)
        self._begun = self._of_folds(predictor)
        self._judge(predictor)

    def own(self, array):
        """The outputs of the problem, (n, n_outputs), of those of all fits."""
        return array[:, :, 0] if self._is_coupled else array[:, 0, : self._n_outputs]

    def take(self, t, state):
        """Take note of the state that update ``t`` has led to."""
        ended = state.current.predictor
        if self.left_out is not None:
            # All rows at a time, a row is visited where the update begins.
            visited = (
                state.earlier.predictor if state.visited is None else state.visited
            )
            self.left_out.advance(
                self.own(visited) - self._problem.target,
                self.own(ended) - self._problem.target,
                self._labelled(visited),
                self._labelled(ended),
            )
        self._judge(ended)

    def _labelled(self, predictor):
        """Residuals of the run on the labels."""
        first = self._n_outputs
        return predictor[:, 0, first : first + self.labels.shape[1]] + self.labels

    def _of_folds(self, predictor):
        """What folds predict for all rows, (n_rows, n_outputs, n_folds)."""
        if self._is_coupled:
            return predictor[:, :, 1:]
        first = self._n_outputs + self.labels.shape[1]
        of_folds = predictor[:, 0, first:]
        of_folds = of_folds.reshape(len(predictor), len(self.folds), self._n_outputs)
        return np.moveaxis(of_folds, 1, 2)

    def _judge(self, predictor):
        """Record what the folds predict for the rows that they are judged by."""
        if not self.folds:
            return
        self._ended = self._of_folds(predictor)
        found = self._ended[self._judged, :, self._of_judged]
        if self._predictors is None:
            self._predictors = found[None]
        n_judged = self._n_judged
        self._predictors = with_room(self._predictors, n_judged, n_judged + 1)
        self._predictors[n_judged] = found
        self._n_judged += 1

    def predictors(self, n_iterates):
        """Linear predictors of the rows that folds are judged by, fold after fold.

        Parameters
        ----------
        n_iterates : int
            The number of iterates, the first ones of the run.

        Returns
        -------
        ndarray of shape (n_iterates, n_judged, n_outputs)
            Part of a longer record, which must not be written to.
        """
        return self._predictors[:n_iterates]

    def check_stable(self, trajectory):
        """Raise where a step of the run has been too large for a fold.

        Raises
        ------
        ValueError
            The message names the largest stable step.
        """
        if not self.folds:
            return
        fits = Fits(self._problem, self._refits)
        risen = ~(fits.value(self._ended) <= fits.value(self._begun))
        check_stable(self._problem, trajectory, self._refits, np.flatnonzero(risen))
