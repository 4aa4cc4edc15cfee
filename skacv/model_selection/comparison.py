"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._estimator.readers import ESTIMATES
from .criteria import PathJudge
from .optimism import Judged, corrected_score
from .preference import preferred
from .rules import place_of_least
from .stages import choice_of

# More costs than these are not gone through row by row: the least over a path is hardly
# optimistic with so many rows.
MOST_COSTS = 1 << 23
RESULTS = (
    "member",
    "params",
    "criterion",
    "best_iter",
    "best_score",
    "best_score_se",
    "score",
    "n_iter",
    "fit_time",
    "left_out",
)


def on_common_rows(runs, judge, between):
    """Runs judged by the rows that all of them have held out, and their judges.

    Parameters
    ----------
    runs : list of Run
    judge : PathJudge or ScorerJudge
    between : ScorerJudge or None

    Returns
    -------
    runs : list of Run
        With other paths where some run has held out fewer rows.
    judge, between
    """
    estimators = [run.estimator for run in runs]
    common = judge.on_common_rows(estimators)
    if common is judge:
        return runs, judge, between
    runs = [run._replace(path=common.path(run.estimator)) for run in runs]
    return runs, common, between and between.on_common_rows(estimators)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates that have been run, and what a rule picks from each.

    Attributes
    ----------
    candidates : list of Candidate
    runs : list of Run
    judge : PathJudge or ScorerJudge
    rule : callable
    between : ScorerJudge or None
        What compares the choices of members whose losses differ; None where the judge
        does.
    paired : PairedErrors or None
        Where members are in an order of preference, what an earlier one is given up by.
    left_out : dict of str to str
        Why members of the portfolio were not run, by their names.
    """

    candidates: list
    runs: list
    judge: object
    rule: object
    between: object = None
    paired: object = None
    left_out: dict = field(default_factory=dict)

    @cached_property
    def choices(self):
        """The iterate that the rule picks from every run."""
        return [
            choice_of(run.estimator, run.path, self.judge, self.rule)
            for run in self.runs
        ]

    @cached_property
    def scores(self):
        """What members are compared by, of the choice in every run."""
        if self.between is None:
            return [choice.score for choice in self.choices]
        return [
            self.between.score_of(run.estimator, choice.iteration)
            for run, choice in zip(self.runs, self.choices)
        ]

    def _bests(self):
        """The place of the best combination of every member, the first of equals."""
        places = {}
        for place, candidate in enumerate(self.candidates):
            places.setdefault(candidate.member, []).append(place)
        costs = [self.judge.sign * choice.score for choice in self.choices]
        return {
            name: own[place_of_least([costs[place] for place in own])]
            for name, own in places.items()
        }

    @cached_property
    def best(self):
        """The best candidate, its run, and the choice in it.

        Raises
        ------
        ValueError
            If no iterate of any candidate has a score.
        """
        judge = self.judge if self.between is None else self.between
        places = list(self._bests().values())
        best = places[place_of_least([judge.sign * self.scores[p] for p in places])]
        if self.paired is not None and not np.isnan(self.choices[best].score):
            best = preferred(places, best, self._errors_of, self.paired)
        if np.isnan(self.choices[best].score):
            raise ValueError(
                f"criterion={self.judge.name} is undefined (NaN) for every iterate of "
                "every candidate."
            )
        return self.candidates[best], self.runs[best], self.choices[best]

    def _errors_of(self, place):
        """Errors of the choice in a run, sample by sample."""
        estimator, choice = self.runs[place].estimator, self.choices[place]
        return self.paired.of(estimator, choice.iteration)

    def paths(self):
        """The path of every member, that of its best combination.

        Returns
        -------
        dict of str to ndarray of shape (n_iter + 1,)
        """
        return {name: self.runs[place].path for name, place in self._bests().items()}

    def corrected_score(self, rng):
        """What choosing so costs rows that had no part in it, by the bootstrap.

        Where losses differ, choosing in the runs of the best member.

        Parameters
        ----------
        rng : RandomState

        Returns
        -------
        score, standard_error : float
            NaN where it is not known what single rows cost.
        """
        best = self.best[0].member
        judged = [
            self._judged(run.estimator)
            for candidate, run in zip(self.candidates, self.runs)
            if self.between is None or candidate.member == best
        ]
        if any(each.costs is None or each.costs.size > MOST_COSTS for each in judged):
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
        for (member, params, *_), run, choice, score in zip(
            self.candidates, self.runs, self.choices, self.scores
        ):
            estimator, chosen = run.estimator, {self.judge.name: (*choice, score)}
            for name, estimate in ESTIMATES.items():
                if hasattr(estimator, estimate.path) and name != self.judge.name:
                    own = PathJudge(estimate)
                    path = own.path(estimator)
                    other = choice_of(estimator, path, own, self.rule)
                    chosen[name] = (*other, np.nan)
            rows += [
                (
                    member,
                    run.parameters_at(params, each[0]),
                    name,
                    *each,
                    estimator.n_iter_,
                    run.seconds,
                    "",
                )
                for name, each in chosen.items()
            ]
        nothing = (np.nan,) * (len(RESULTS) - 4)
        rows += [
            (member, {}, self.judge.name, *nothing, why)
            for member, why in self.left_out.items()
        ]
        return dict(zip(RESULTS, map(list, zip(*rows))))
