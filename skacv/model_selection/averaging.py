"""Comparison of runs that keeps a mean of iterates of the best: ``rule="average"``."""

from dataclasses import replace
from itertools import chain

import numpy as np

from .blending import BLENDS_OF_SCORE
from .comparison import BestRun, ChosenRun
from .criteria import index_of_least
from .optimism import (
    ChosenInDraws,
    Corrected,
    Draws,
    choose_in_draws,
    mean_over_rest,
    possible_gain,
    strata_of_rows,
)
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

    combined = "average"

    def __init__(self, task, chosen, criterion, rule, between=None):
        super().__init__(chosen, criterion, rule, between)
        # Few of many similar iterates have a weight, and which they are says little: a
        # mean over draws would keep many.
        self.task = replace(task, is_averaged=False)
        self._mean = self._mean_of(self.index)
        self.score, self.parts, self.part_weights = self._mean.score, {}, {}
        for name, weight in self._mean.weights.items():
            if weight > 0:
                iteration = self._mean.chosen[self._mean.used[name]].iteration
                self.parts[name] = self.index, iteration
                self.part_weights[name] = weight

    def _mean_of(self, index):
        """The blend of iterates of a run, as a Blending."""
        best, iterates = self.chosen[index], []
        for t in spread_iterates(best.run, best.iteration).tolist():
            run, score = best.run._replace(member=f"iteration {t}"), best.run.path[t]
            choice = Choice(t, float(score), np.nan)
            iterates.append(ChosenRun(run, choice, choice.score, best.shown))
        blending = self.task.blending
        return blending(self.task, iterates, self.criterion, index_of_least)

    def blend(self, models):
        return self._mean.blend(models)

    def held_out_predictions(self):
        return self._mean.held_out_predictions()

    def corrected_score(self, rng, ended=()):
        """The loss of averaging in this way, on rows not used for it, as Corrected.

        Every draw chooses the run again, and then the weights of its iterates.
        """
        criterion = self.criterion
        names = self.best_indices if self.between is None else self.kept
        members = self._recorded_losses(names)
        classes = strata_of_rows(self.chosen[0].estimator, criterion.y)
        held_out = [one.losses for one in chain.from_iterable(members.values())]
        rows = np.concatenate([losses.rows for losses in held_out])
        weights = np.concatenate([losses.weights for losses in held_out])
        draws = Draws.of(rows, weights, rng, criterion.groups, classes)
        counts = draws.without_parts[:BLENDS_OF_SCORE]
        chosen, of_members = [], {}
        for name, recorded in members.items():
            of_draws = recorded, self.rule, draws.group_of, counts, criterion.deadline
            chosen.append(choose_in_draws(*of_draws))
            if self.between is None:
                of_members[name], _ = chosen[-1].mean_over_rest(counts)
        runs = ChosenInDraws.best_of(chosen).choices[:, 0]
        losses, weights = np.zeros((2, *counts.shape))
        for index in np.unique(runs).tolist():
            mean = self._mean if index == self.index else self._mean_of(index)
            drawn = np.flatnonzero(runs == index)
            losses[drawn], weights[drawn] = mean.losses_in_draws(draws, counts[drawn])
        of_best = members[self.chosen[self.index].run.member]
        (best,) = (one for one in of_best if one.index == self.index)
        gain = possible_gain(best, self.chosen[self.index].iteration, draws)
        score = mean_over_rest(losses, weights, counts)
        return Corrected(*score, gain, of_members)
