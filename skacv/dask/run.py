"""A run on workers with its folds, and losses of its iterates, in few rounds.

An objective is not needed for the next update, and would take a round. So iterates wait
for their evaluation, and one pass over X evaluates all that wait.
"""

import numpy as np

from ..optim.run import LiveRun, SideRuns
from .block_sums import LeftOut
from .problem import FitsOnWorkers

# Bytes of the iterates that one round evaluates: every worker has a copy of them.
ROUND_BYTES = 1 << 25


class FoldRuns(SideRuns):
    """Folds side by side with a run on workers; ``all_fits`` are the run and they.

    Shapes: values (n_iterates, 2 + n_folds), losses on all rows, those that judge there
    and those of folds on their held-out rows, times weights with the sum 1.
    """

    def __init__(self, all_fits):
        self.all_fits = all_fits
        self._waiting, self.values = [], np.empty((0, 1 + all_fits.n_fits))
        self.first_coef = self.last_coef = None

    def fits(self, problem, keeps_predictors=False):
        """The fits that run side by side, first that of the problem."""
        return self.all_fits

    def start(self, fits, coef):
        """The first iterate of all fits. Shapes: coef (n_columns, n_outputs)."""
        self.first_coef = fits.start(coef)
        self._wait(self.first_coef)
        return fits.iterate(self.first_coef)

    def take(self, states):
        """Record the states after updates, one after the other."""
        for state in states:
            self._wait(state.current.coef)

    def _wait(self, coef):
        self.last_coef = coef
        self._waiting.append(coef)
        if (len(self._waiting) + 1) * coef.nbytes > ROUND_BYTES:
            self.evaluate()

    def evaluate(self):
        """Losses of all iterates; a round evaluates the iterates that wait."""
        if self._waiting:
            coef = np.stack(self._waiting, axis=2)
            values = self.all_fits.path_values(coef)
            self.values, self._waiting = np.concatenate([self.values, values]), []
        return self.values

    def check_stable(self, phases):
        """Raise if a step of the run was too large for a fold, with the largest one."""
        fits = self.all_fits
        if fits.n_fits == 1:
            return
        coef = np.stack([self.first_coef, self.last_coef], axis=2)
        with np.errstate(over="ignore", invalid="ignore"):
            first, last = fits.values(coef)
        for fold in np.flatnonzero(~(last <= first)):
            if fold > 0:
                _check_step(fits, fold, phases)


def _check_step(fits, fold, phases):
    problem = fits.problem
    left_out = LeftOut(fits.left_out.numbers[[fold]])
    columns = fits.columns and fits.columns.for_fits([fold])
    fold_fit = FitsOnWorkers(problem, left_out, fits.means.part([fold]), columns)
    curvature = fold_fit.smoothness()
    for phase in phases:
        scale = np.broadcast_to(fits.penalty_scale, fits.n_fits)[fold]
        smoothness = curvature + scale * phase.penalty.curvature
        stable = phase.largest_stable_step(smoothness)
        if phase.schedule.step_size > stable:
            raise ValueError(
                f"The iterates diverge without fold {fold - 1}, with step_size="
                f"{phase.schedule.step_size:.6g}, though they do not on all rows: the "
                f"largest stable step is {stable:.6g} there. Set step_size to that or "
                "less, or use more folds."
            )


class RunOnWorkers(LiveRun):
    """A run that is recorded, and can go on, its rows on workers."""

    # Convergence is tested after every update, which takes a round.
    n_updates_per_test = 1

    def go_on(self, planned, progress=None):
        """Continue the run to the end of a plan."""
        super().go_on(planned, progress)
        self.side_runs.check_stable(self.phases)

    def _objective(self, t, penalty):
        """The objective at an iterate."""
        return self.side_runs.evaluate()[t, 0] + penalty.value(self._record["coef"][t])
