"""A run on workers with its folds, and losses of its iterates, in few rounds.

An objective is not needed for the next update, and would take a round. So iterates are
evaluated in groups, at the end of a phase or once they fill some memory, with one pass
over X per group.
"""

import numpy as np

from ..optim.run import LiveRun, NoSideRuns
from .block_sums import LeftOut
from .problem import FitsOnWorkers

# Coefficients of iterates that wait for their evaluation, in bytes.
WAITING_BYTES = 1 << 28


class FoldsBeside(NoSideRuns):
    """Folds beside a run on workers.

    Parameters
    ----------
    fits : FitsOnWorkers
        The run, and a fit without each fold, if any.

    Attributes
    ----------
    values : ndarray of shape (n_held_out, 1 + n_folds)
        Loss of every iterate on all rows, and of folds on their held-out rows, times
        weights of sum one.
    """

    def __init__(self, fits):
        self.fits_beside = fits
        self._waiting, self.values = [], np.empty((0, fits.n_fits))
        self.begun = self.ended = None

    def fits(self, problem, keeps_predictors=False):
        """The fits that run side by side, that of the problem first."""
        return self.fits_beside

    def start(self, fits, coef):
        """The first iterate of all fits, from coefficients (n_columns, n_outputs)."""
        self.begun = fits.start(coef)
        self._wait(self.begun)
        return fits.iterate(self.begun)

    def take(self, states):
        """Record the states after some updates, one after the other."""
        for state in states:
            self._wait(state.current.coef)

    def _wait(self, coef):
        self.ended = coef
        self._waiting.append(coef)
        if len(self._waiting) * coef.nbytes >= WAITING_BYTES:
            self.evaluate()

    def evaluate(self):
        """Losses of all iterates that have not been evaluated yet."""
        if self._waiting:
            coef = np.stack(self._waiting, axis=2)
            found = self.fits_beside.path_values(coef)
            self.values, self._waiting = np.concatenate([self.values, found]), []
        return self.values

    def check_stable(self, phases):
        """Raise where a step of the run has been too large for a fold.

        Raises
        ------
        ValueError
            The message names the largest stable step.
        """
        fits = self.fits_beside
        if fits.n_fits == 1:
            return
        both = np.stack([self.begun, self.ended], axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            begun, ended = fits.values(both)
        for fold in np.flatnonzero(~(ended <= begun)):
            if fold > 0:
                _check_step(fits, fold, phases)


def _check_step(fits, fold, phases):
    """Raise if a step is too large for one of the folds."""
    problem = fits.problem
    left_out = LeftOut(fits.left_out.numbers[[fold]])
    columns = fits.columns and fits.columns.of_fits([fold])
    means = fits.means.part([fold])
    alone = FitsOnWorkers(problem, left_out, means, columns)
    bound = problem.loss.curvature_bound(problem.target_range)
    curvature = bound * alone.top_eigenvalue()
    for phase in phases:
        scale = np.broadcast_to(fits.penalty_scale, fits.n_fits)[fold]
        smoothness = curvature + scale * phase.penalty.curvature
        stable = phase.largest_stable_step(smoothness)
        if phase.schedule.step_size > stable:
            raise ValueError(
                f"The iterates diverge without fold {fold - 1}, with step_size="
                f"{phase.schedule.step_size:.6g}, though they do not on all rows: the "
                f"largest stable step is {stable:.6g} there. Set step_size to that or "
                "less, or take more folds."
            )


class RunOnWorkers(LiveRun):
    """A run that is recorded, and can go on, its rows on workers."""

    def go_on(self, planned, progress=None):
        """Take the updates of a plan that have not been taken yet."""
        super().go_on(planned, progress)
        self.side_runs.check_stable(self.phases)

    def _objective(self, t, penalty):
        """The objective at an iterate; all that wait are evaluated in one round."""
        return self.side_runs.evaluate()[t, 0] + penalty.value(self._record["coef"][t])
