"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from sklearn.base import is_classifier

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
    "metric",
    "better",
    "score",
    "score_se",
    "weight",
    "n_iter",
    "fit_time",
    "left_out",
)


# From "metric" to "weight", of a row that had no part in the choice.
NOT_COMPARED = "", "", np.nan, np.nan, np.nan
# By the sign of a criterion.
BETTER = {1.0: "smaller", -1.0: "greater"}
# What a classifier answers, in the order of preference.
ANSWERS = "predict_proba", "decision_function"


def averaged_by_row(held_out, rows, n_samples):
    """Held-out predictions, or those of classes, in the order of the training rows.

    Parameters
    ----------
    held_out : estimator
        It predicts ``rows`` as held out, for any X.
    rows : ndarray of int, shape (n_held_out,)

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_outputs)
        The mean where a row was held out several times, NaN where it never was.
    """
    names = ANSWERS if is_classifier(held_out) else ("predict",)
    answer = next(getattr(held_out, name) for name in names if hasattr(held_out, name))
    predictions = np.asarray(answer(None), dtype=np.float64)
    shape = n_samples, *predictions.shape[1:]
    sums, n_times = np.zeros(shape), np.bincount(rows, minlength=n_samples)
    np.add.at(sums, rows, predictions)
    with np.errstate(invalid="ignore"):
        return (sums.T / n_times).T


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
    left_out : list of (str, dict, str)
        Members that were not run, combinations of their parameters, and why.
    """

    candidates: list
    runs: list
    criterion: object
    rule: object
    between: object
    left_out: list

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

    def best_places(self):
        """The place of the best combination of every member, the first of equals.

        Returns
        -------
        dict of str to int
        """
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
        places = list(self.best_places().values())
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
        return {name: float(name == best) for name in self.best_places()}

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
            for name, place in self.best_places().items()
        }

    def _kept_of(self, place):
        """The iterate that is chosen from a run, as a fitted estimator."""
        estimator = self.runs[place].estimator
        take_back(estimator)
        return chosen_iterate(estimator, self.choices[place].iteration)

    def paths(self):
        """The path of every member, that of its best combination.

        Shapes: returned (n_iter + 1,).
        """
        return {
            name: self.shown_path(place)[0]
            for name, place in self.best_places().items()
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

    def compared_by(self, place):
        """The metric that compares members, and its value for the choice in a run.

        Returns
        -------
        metric : str
            The name of a loss, or of a scorer.
        better : {"smaller", "greater"}
            Which values of it are better.
        score, standard_error : float
        """
        if self.between is None:
            metric, score, error = self.shown_score(place)
            return metric, BETTER[self.criterion.sign], score, error
        run, choice = self.runs[place], self.choices[place]
        error = self.between.standard_error(run.estimator, choice.iteration)
        better = BETTER[self.between.sign]
        return self.between.name, better, self.scores[place], error

    def fold_scores(self):
        """What :meth:`compared_by` gives of every candidate, fold by fold.

        Returns
        -------
        ndarray of shape (n_candidates, n_folds) or None
            None where candidates are not compared by mean losses of the same folds.
        """
        places = range(len(self.candidates))
        if not all(self._is_compared_by_folds(place) for place in places):
            return None
        by_fold = [
            run.estimator.cv_fold_path_[choice.iteration]
            for run, choice in zip(self.runs, self.choices)
        ]
        # Candidates may have splitters of their own.
        return np.array(by_fold) if len(set(map(len, by_fold))) == 1 else None

    def _is_compared_by_folds(self, place):
        """Whether the score of a candidate is the mean of its ``cv_fold_path_``."""
        is_mean_loss = isinstance(self.criterion, PathCriterion) and (
            self.criterion.name == "cv" and self.criterion.samples is None
        )
        has_folds = hasattr(self.runs[place].estimator, "cv_fold_path_")
        return is_mean_loss and has_folds and self.between is None

    def held_out_prediction(self, n_samples):
        """What the model kept predicts for the training rows that it was held out of.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), or None
            The mean over the folds that hold a row out, NaN where none does. None if
            there are no predictions of single rows.
        """
        _, run, choice = self.best
        path = getattr(run.estimator, self.criterion.estimate.predictions, None)
        if path is None:
            return None
        t = choice.iteration
        rows = np.hstack(getattr(run.estimator, self.criterion.estimate.indices))
        return averaged_by_row(
            run.estimator._held_out_estimator(path[t], t), rows, n_samples
        )

    @property
    def score_name(self):
        """The loss, or the scorer, that :attr:`score` is of."""
        return self.shown_score(self._place)[0]

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
            If the losses of single rows are not known, or too many, or if there is no
            time.
        """
        names = self.best_places() if self.between is None else [self.best[0].member]
        recorded = self._recorded(names)
        candidates = list(chain.from_iterable(recorded))
        of_criterion = self.criterion.groups, self.criterion.deadline
        return corrected_score(candidates, self.rule, rng, *of_criterion)

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
        bests = {place: weights[name] for name, place in self.best_places().items()}
        for place, (member, params, *_) in enumerate(self.candidates):
            run, choice = self.runs[place], self.choices[place]
            estimator, weight = run.estimator, bests.get(place, 0.0)
            loss, *shown = self.shown_score(place)
            own = loss, choice.iteration, *shown, *self.compared_by(place), weight
            chosen = {self.criterion.name: own}
            for name, estimate in ESTIMATES.items():
                if hasattr(estimator, estimate.path) and name != self.criterion.name:
                    criterion = PathCriterion(estimate)
                    path = criterion.path(estimator)
                    other = choice_of(estimator, path, criterion, self.rule)
                    chosen[name] = (loss_name(estimator), *other, *NOT_COMPARED)
            length = estimator.n_iter_, run.seconds
            rows += [
                (member, run.parameters_at(params, each[1]), name, *each, *length, "")
                for name, each in chosen.items()
            ]
        name, no_pair = self.criterion.name, (np.nan, np.nan)
        rows += [
            (member, params, name, "", np.nan, *no_pair, *NOT_COMPARED, *no_pair, why)
            for member, params, why in self.left_out
        ]
        return dict(zip(RESULTS, map(list, zip(*rows))))
