"""Comparison of runs that keeps a mean of iterates of the best: ``rule="average"``."""

import numpy as np

from .blending import BLENDS_OF_SCORE
from .comparison import BestRun, ChosenRun
from .criteria import index_of_least
from .stages import Choice

# Iterates that weights are found for: neighbours predict nearly the same.
MOST_AVERAGED = 30


def spread_iterates(run, best):
    """Some iterates of an ended run, in even steps of the logarithm, and the best.

    Shapes: returned (at most MOST_AVERAGED + 1,).
    """
    iterations = run.estimator.recorded_iterations()
    iterations = iterations[~np.isnan(run.path[iterations])]
    steps = np.geomspace(1, len(iterations), min(MOST_AVERAGED, len(iterations)))
    return np.union1d(iterations[steps.round().astype(int) - 1], [best])


class Averaging(BestRun):
    """Runs side by side, of which a weighted mean of the best one's iterates is kept.

    Weights are those of the least loss on held-out rows, as of members of a blend; for
    the squared error and ``criterion="risk"`` of the least w' risk_gram_ w.
    """

    n_draws = BLENDS_OF_SCORE

    def __init__(self, task, chosen, criterion, rule, between=None):
        super().__init__(chosen, criterion, rule, between)
        self.task, self.parts = task, {}
        self._mean = self._mean_of(self.index)
        self.score = self._mean.score
        for name, part in self._mean.parts.items():
            if part.weight > 0:
                self.parts[name] = part._replace(index=self.index)

    def _mean_of(self, index):
        """The blend of iterates of a run, as a Blending."""
        best, iterates = self.chosen[index], []
        for t in spread_iterates(best.run, best.iteration).tolist():
            run, score = best.run._replace(member=f"iteration {t}"), best.run.path[t]
            choice = Choice(t, float(score), np.nan)
            iterates.append(ChosenRun(run, choice, choice.score, best.shown))
        return self.task.compare(iterates, self.criterion, index_of_least)

    def blend(self, models):
        return self._mean.blend(models)

    def held_out_predictions(self):
        return self._mean.held_out_predictions()

    def corrected_score(self, rng, ended=()):
        """The loss of averaging in this way, on rows not used for it, as Corrected.

        Every draw chooses the run again, and then the weights of its iterates.
        Combinations that a race has ended have no iterates to average.
        """
        return super().corrected_score(rng)

    def _losses_in_draws(self, chosen, draws, counts):
        runs = chosen.choices[:, 0]
        losses, weights = np.zeros((2, *counts.shape))
        for index in np.unique(runs).tolist():
            mean = self._mean if index == self.index else self._mean_of(index)
            drawn = np.flatnonzero(runs == index)
            losses[drawn], weights[drawn] = mean.losses_in_draws(draws, counts[drawn])
        return losses, weights
