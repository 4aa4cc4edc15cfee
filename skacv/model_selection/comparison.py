"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._estimator.readers import ESTIMATES
from .criteria import PathJudge
from .optimism import Judged, corrected_score
from .rules import place_of_least
from .stages import choice_of

RESULTS = (
    "member",
    "params",
    "criterion",
    "best_iter",
    "best_score",
    "best_score_se",
    "n_iter",
    "fit_time",
)


def on_common_rows(runs, judge):
    """Runs judged by the rows that all of them have held out, and their judge.

    Parameters
    ----------
    runs : list of Run
    judge : PathJudge or ScorerJudge

    Returns
    -------
    runs : list of Run
        With other paths where some run has held out fewer rows.
    judge : PathJudge or ScorerJudge
    """
    common = judge.on_common_rows([run.estimator for run in runs])
    if common is judge:
        return runs, judge
    return [run._replace(path=common.path(run.estimator)) for run in runs], common


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates that have been run, and what a rule picks from each.

    Attributes
    ----------
    candidates : list of Candidate
    runs : list of Run
    judge : PathJudge or ScorerJudge
    rule : callable
    """

    candidates: list
    runs: list
    judge: object
    rule: object

    @cached_property
    def choices(self):
        """The iterate that the rule picks from every run."""
        return [
            choice_of(run.estimator, run.path, self.judge, self.rule)
            for run in self.runs
        ]

    def _place_of_best(self, places):
        """The place of the best choice among some, the first of equals."""
        scores = [self.judge.sign * self.choices[place].score for place in places]
        return places[place_of_least(scores)]

    @property
    def best(self):
        """The best candidate, its run, and the choice in it.

        Raises
        ------
        ValueError
            If no iterate of any candidate has a score.
        """
        best = self._place_of_best(range(len(self.runs)))
        if np.isnan(self.choices[best].score):
            raise ValueError(
                f"criterion={self.judge.name} is undefined (NaN) for every iterate of "
                "every candidate."
            )
        return self.candidates[best], self.runs[best], self.choices[best]

    def paths(self):
        """The path of every member, that of its best combination.

        Returns
        -------
        dict of str to ndarray of shape (n_iter + 1,)
        """
        places = {}
        for place, candidate in enumerate(self.candidates):
            places.setdefault(candidate.member, []).append(place)
        return {
            name: self.runs[self._place_of_best(own)].path
            for name, own in places.items()
        }

    def corrected_score(self, rng):
        """What choosing so costs rows that had no part in it, by the bootstrap.

        Parameters
        ----------
        rng : RandomState

        Returns
        -------
        score, standard_error : float
            NaN where it is not known what single rows cost.
        """
        judged = [self._judged(run.estimator) for run in self.runs]
        if any(each.costs is None for each in judged):
            return np.nan, np.nan
        return corrected_score(judged, self.rule, rng)

    def _judged(self, estimator):
        rows = estimator.recorded_iterations()

        def error(place):
            return self.judge.standard_error(estimator, rows[place])

        return Judged(self.judge.costs(estimator), rows, error)

    def results(self):
        """A row for every candidate and every criterion that it has computed.

        Returns
        -------
        dict of lists
        """
        rows = []
        for (member, params, _), run, choice in zip(
            self.candidates, self.runs, self.choices
        ):
            estimator, chosen = run.estimator, {self.judge.name: choice}
            for name, estimate in ESTIMATES.items():
                if hasattr(estimator, estimate.path) and name != self.judge.name:
                    own = PathJudge(estimate)
                    path = own.path(estimator)
                    chosen[name] = choice_of(estimator, path, own, self.rule)
            rows += [
                (member, params, name, *each, estimator.n_iter_, run.seconds)
                for name, each in chosen.items()
            ]
        return dict(zip(RESULTS, map(list, zip(*rows))))
