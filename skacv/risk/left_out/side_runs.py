"""Folds and random targets that are fitted along with a run.

Folds are fits with other row weights. Random targets, from which self-influences of
kernel machines are estimated (:mod:`skacv.risk.left_out.rademacher_targets`), are fits
to other targets. Both share the products of the run with the design.
"""

from dataclasses import replace

import numpy as np

from ...optim.fits import Iterate, WeightedFits, Weights
from ...optim.run import SideRuns
from ..held_out_rows import counts_in
from .rademacher_targets import RademacherLeaveOneOut
from .replicas import RecordedFolds, are_surely_stable, check_stable, fits_that_rise


class SideFolds(SideRuns):
    """Folds beside a run, by a rule for such runs; the fit of the problem is first."""

    # ``folds`` are pairs of training rows and held-out rows.

    # Fits to random targets, between that of the problem and those of folds; targets of
    # all fits, None where they are those of the problem.
    n_random = 0
    left_out: RademacherLeaveOneOut | None = None
    _targets: np.ndarray | None = None
    # These are there from ``start`` on.
    _start: Iterate
    _end: Iterate
    _recorded: RecordedFolds

    def __init__(self, problem, rule, folds):
        self.folds, self._problem = folds, problem
        self._refits = rule.without(problem, counts_in(folds, len(problem.target)))

    def fits(self, problem, keeps_predictors=False):
        """The fits that run side by side: the problem, random targets, then folds."""
        refits, n_run = self._refits, 1 + self.n_random
        run_weights = np.repeat(problem.row_weights.astype(np.float64), n_run, axis=1)
        rows = np.concatenate([run_weights, refits.rows], axis=1)
        # One array of them, not two: there may be many rows.
        self._refits = replace(refits, rows=rows[:, n_run:])
        scale = np.concatenate([np.ones(n_run), refits.penalty_scale])
        columns = refits.columns and refits.columns.after_identity_maps(n_run)
        weights = Weights(rows, scale, refits.refits_intercept, columns)
        return WeightedFits(problem, weights, self._targets, keeps_predictors)

    def start(self, fits, coef):
        """The first iterate of all fits, from coefficients (n_columns, n_outputs)."""
        coef = fits.start(coef)
        coef[:, :, 1 : 1 + self.n_random] = 0
        start = fits.iterate(coef)
        held_out = [rows for _, rows in self.folds]
        self._recorded = RecordedFolds(self._problem, fits, held_out)
        self._start = self._end = start
        self._record(start)
        return start

    def take(self, states):
        """Record the states after some updates, one after the other."""
        for state in states:
            self._record(state.current)

    def _record(self, iterate):
        """Record the iterates of the folds."""
        if not self.folds:
            return
        self._end = iterate
        if iterate.predictor is not None:
            iterate = iterate._replace(predictor=self._of_folds(iterate.predictor))
        self._recorded.add(iterate)

    def _of_folds(self, array):
        """The part for folds of an array (n, n_outputs, n_fits), or None."""
        return None if array is None else array[:, :, 1 + self.n_random :]

    def recorded(self, n_iterates):
        """The FoldRecord of the first iterates of the run."""
        return self._recorded.first(n_iterates)

    def check_stable(self, trajectory):
        """Raise if a step of the run was too large for a fold."""
        problem, weights = self._problem, self._refits
        phases = trajectory.phases
        if not self.folds or are_surely_stable(problem, phases, weights):
            return
        ends = (Iterate(*map(self._of_folds, x)) for x in (self._start, self._end))
        suspects = fits_that_rise(WeightedFits(problem, weights), *ends)
        check_stable(problem, trajectory, weights, suspects)


class RademacherSideRuns(SideFolds):
    """Random targets beside a run, and folds if there are any."""

    # As many random targets as the problem has outputs are the targets of one fit, with
    # the weights and means of the run.

    left_out: RademacherLeaveOneOut  # from ``start`` on

    def __init__(self, problem, rule, signs, rows, folds):
        # Self-influences are those of the weights and means of the run.
        """Targets are minus the signs (n_rows, n_targets); ``rows`` are left out."""
        rule = replace(rule, refits_intercept=False, renormalises=False)
        super().__init__(problem, rule, folds)
        self.signs, self.rows = signs, rows
        target, n_targets = problem.target[:, :, None], signs.shape[1]
        self.n_random = -(-n_targets // target.shape[1])
        random = np.zeros((*target.shape[:2], self.n_random))
        random.reshape(len(random), -1)[:, :n_targets] = -signs
        targets = [target, random, *[target] * len(folds)]
        self._targets = np.concatenate(targets, axis=2)

    def start(self, fits, coef):
        start = super().start(fits, coef)
        residuals, _ = self._residuals(start.predictor)
        dtype = self._problem.design.dtype
        self.left_out = RademacherLeaveOneOut(self.signs, self.rows, residuals, dtype)
        return start

    def take(self, states):
        """Record the states after some updates, and advance leave-one-out by them."""
        for state in states:
            end, visited = state.current.predictor, state.visited
            if visited is None:
                # All rows at a time, a row is visited where the update begins.
                visited = state.earlier.predictor
            self.left_out.after_pass(self._residuals(visited), self._residuals(end))
            self._record(state.current)

    def _residuals(self, predictor):
        """Residuals of the run on the target, and on the random targets."""
        n_targets = self.signs.shape[1]
        random = predictor[:, :, 1 : 1 + self.n_random].reshape(len(predictor), -1)
        residuals = predictor[self.problem_index] - self._problem.target
        return residuals, random[:, :n_targets] + self.signs
