"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np

from .._estimator.estimates.fitted_state import chosen_iterate
from .._estimator.estimates.readers import ESTIMATES
from .criteria import PathCriterion, place_of_least
from .optimism import RecordedLosses, Uncorrected, corrected_score
from .splits import take_back
from .stages import choice_of

# More losses than these are not gone through row by row: with so many rows the least
# over a path is hardly optimistic.
MOST_LOSSES = 1 << 23
RESULTS = (
    "member",
    "params",
    "criterion",
    "loss",
    "best_iter",
    "best_score",
    "best_score_se",
    "score",
    "weight",
    "n_iter",
    "fit_time",
    "left_out",
)


def loss_name(estimator):
    """The name of the loss of a fitted estimator."""
    return getattr(getattr(estimator, "_loss", None), "name", "loss")


def on_common_rows(runs, criterion, between):
    """Runs and criteria on the rows that all of the runs have held out.

    Returns
    -------
    runs : list of EvaluatedFit
        With new paths if some run has held out fewer rows.
    criterion, between
    """
    estimators = [run.estimator for run in runs]
    common = criterion.on_common_rows(estimators)
    if common is criterion:
        return runs, criterion, between
    runs = [run._replace(path=common.path(run.estimator)) for run in runs]
    return runs, common, between and between.on_common_rows(estimators)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Candidates that have been run, and the iterate that a rule chooses from each.

    Attributes
    ----------
    candidates : list of Candidate
    runs : list of EvaluatedFit
    criterion : PathCriterion or ScorerCriterion
    rule : callable
    between : ScorerCriterion or None
        Compares the choices of members whose losses differ; None if the criterion does.
    left_out : dict of str to str
        Why members of the portfolio were not run, by their names.
    """

    candidates: list
    runs: list
    criterion: object
    rule: object
    between: object
    left_out: dict

    @cached_property
    def choices(self):
        """The iterate that the rule picks from every run."""
        return [
            choice_of(run.estimator, run.path, self.criterion, self.rule)
            for run in self.runs
        ]

    @cached_property
    def scores(self):
        """The scores that compare members, for the choice in every run."""
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
        losses = [self.criterion.sign * choice.score for choice in self.choices]
        return {
            name: own[place_of_least([losses[place] for place in own])]
            for name, own in places.items()
        }

    @cached_property
    def _least_place(self):
        """The place of the best candidate.

        Raises
        ------
        ValueError
            If no iterate of any candidate has a score.
        """
        criterion = self.criterion if self.between is None else self.between
        places = list(self._bests().values())
        best = places[place_of_least([criterion.sign * self.scores[p] for p in places])]
        if np.isnan(self.choices[best].score):
            raise ValueError(
                f"criterion={self.criterion.name} is undefined (NaN) for every iterate "
                "of every candidate."
            )
        return best

    @property
    def _place(self):
        """The place of the candidate that is kept."""
        return self._least_place

    @property
    def best(self):
        """The candidate that is kept, its run, and the choice in it."""
        place = self._place
        return self.candidates[place], self.runs[place], self.choices[place]

    @property
    def weights(self):
        """The weight of every member in what is kept: the best has all of it.

        Returns
        -------
        dict of str to float
        """
        best = self.best[0].member
        return {name: float(name == best) for name in self._bests()}

    @property
    def score(self):
        """The score of what is kept, and its standard error."""
        choice = self.best[2]
        return choice.score, choice.standard_error

    def members(self):
        """The members that are kept, fitted, by their names: the best alone.

        Returns
        -------
        dict of str to estimator
        """
        return {self.best[0].member: self._kept_of(self._place)}

    def chosen(self):
        """The run of every member, that of its best combination, and the choice in it.

        Returns
        -------
        dict of str to (EvaluatedFit, Choice)
        """
        return {
            name: (self.runs[place], self.choices[place])
            for name, place in self._bests().items()
        }

    def _kept_of(self, place):
        """The iterate that is chosen from a run, as a fitted estimator."""
        estimator = self.runs[place].estimator
        take_back(estimator)
        return chosen_iterate(estimator, self.choices[place].iteration)

    def kept(self, members):
        """The fitted estimator, made of the members kept."""
        return members[self.best[0].member]

    def paths(self):
        """The path of every member, that of its best combination.

        Shapes: returned (n_iter + 1,).
        """
        return {
            name: self.shown_path(place)[0] for name, place in self._bests().items()
        }

    def shown_path(self, place):
        """The path of a candidate as figures show it, and its standard errors.

        Returns
        -------
        path : ndarray of shape (n_iter + 1,)
        error : ndarray of shape (n_iter + 1,) or None
            None where these are the ones that the estimator has.
        """
        return self.runs[place].path, None

    def shown_score(self, place):
        """The loss, or the scorer, that results show of a choice, and its value there.

        Returns
        -------
        loss : str
            The name of the loss, or of the scorer.
        score, standard_error : float
        """
        choice = self.choices[place]
        is_loss = isinstance(self.criterion, PathCriterion)
        name = loss_name(self.runs[place].estimator) if is_loss else self.criterion.name
        return name, choice.score, choice.standard_error

    @property
    def best_path(self):
        """The path of the candidate that is kept, as :meth:`shown_path` returns it."""
        return self.shown_path(self._place)

    def alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept.

        Parameters
        ----------
        losses : dict
            The loss of every member.
        """
        own = losses[self.best[0].member]
        return [name for name, loss in losses.items() if loss == own]

    def corrected_score(self, rng):
        """The loss of choosing so, on rows that had no part in it, by the bootstrap.

        Where losses differ, choosing in the runs of the best member.

        Returns
        -------
        score, standard_error : float

        Raises
        ------
        Uncorrected
            If the losses of single rows are not known, or too many.
        """
        names = self._bests() if self.between is None else [self.best[0].member]
        recorded = self._recorded(names)
        candidates = list(chain.from_iterable(recorded))
        return corrected_score(candidates, self.rule, rng, self.criterion.groups)

    def _recorded(self, names):
        """Losses of single rows by the candidates of some members, member by member.

        Raises
        ------
        Uncorrected
            If they are not known, or too many.
        """
        if not isinstance(self.criterion, PathCriterion):
            raise Uncorrected(
                f"criterion={self.criterion.name} scores all held-out rows together, "
                "and the correction takes the losses of single rows. cross_val_score "
                "estimates what to expect of the choice"
            )
        found = [
            [
                self._recorded_losses(place)
                for place, each in enumerate(self.candidates)
                if each.member == name
            ]
            for name in names
        ]
        losses = [each.losses for each in chain.from_iterable(found)]
        if any(each is None for each in losses):
            raise Uncorrected(
                "the losses of single held-out rows are not known, as with a "
                "RowSummary, Dask input or criterion='risk'"
            )
        if any(each.size > MOST_LOSSES for each in losses):
            raise Uncorrected(
                f"a run has more than {MOST_LOSSES} losses of single held-out rows. Of "
                "so many rows the least mean loss, best_score_, is hardly optimistic"
            )
        return found

    def _recorded_losses(self, place):
        estimator = self.runs[place].estimator
        losses = self.criterion.losses(estimator)
        error = self.criterion.error_among(estimator)
        return RecordedLosses(place, losses, estimator.recorded_iterations(), error)

    def results(self):
        """A row for every candidate and every criterion that it has computed.

        Returns
        -------
        dict of lists
        """
        rows, weights = [], self.weights
        bests = {place: weights[name] for name, place in self._bests().items()}
        for place, (member, params, *_) in enumerate(self.candidates):
            run, choice = self.runs[place], self.choices[place]
            estimator, weight = run.estimator, bests.get(place, 0.0)
            loss, *shown = self.shown_score(place)
            own = loss, choice.iteration, *shown, self.scores[place], weight
            chosen = {self.criterion.name: own}
            for name, estimate in ESTIMATES.items():
                if hasattr(estimator, estimate.path) and name != self.criterion.name:
                    criterion = PathCriterion(estimate)
                    path = criterion.path(estimator)
                    other = choice_of(estimator, path, criterion, self.rule)
                    chosen[name] = (loss_name(estimator), *other, np.nan, np.nan)
            length = estimator.n_iter_, run.seconds
            rows += [
                (member, run.parameters_at(params, each[1]), name, *each, *length, "")
                for name, each in chosen.items()
            ]
        nothing = (np.nan,) * (len(RESULTS) - 5)
        rows += [
            (member, {}, self.criterion.name, "", *nothing, why)
            for member, why in self.left_out.items()
        ]
        return dict(zip(RESULTS, map(list, zip(*rows))))
