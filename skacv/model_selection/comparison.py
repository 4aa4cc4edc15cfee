"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from .._estimator.estimates.fitted_state import loss_name
from .._estimator.estimates.held_out_predictor import HeldOutPredictor
from .._estimator.run.recording import evaluated_iterations
from .criteria import PathCriterion, index_of_least
from .optimism import (
    ChosenInDraws,
    Corrected,
    Draws,
    RecordedLosses,
    Uncorrected,
    choose_in_draws,
    mean_over_rest,
    possible_gain,
    strata_of_rows,
)
from .race import losses_of_all_rows
from .stages import Choice, EndedRun, choice_of


@dataclass
class EndedRuns:
    """Runs that have ended, beside which another run is judged."""

    runs: list
    criterion: Any
    # The subclass of Comparison, or how it is made.
    comparison: Any
    # The criterion on the rows that all have held out, and the runs with their paths.
    common: Any = None

    def evaluate_with(self, run, counts):
        """The loss of what is kept with the first iterates of a run, and its error.

        ``run`` is the EndedRun of the iterates so far. ``counts`` are numbers of them;
        there is a pair for each.
        """
        if self.common is None:
            criterion = self.criterion.restrict_to_common_rows([*self.runs, run])
            if criterion is not self.criterion:
                self.runs = [one.evaluate_by(criterion) for one in self.runs]
            self.common = criterion
        if self.common is not self.criterion:
            run = run.evaluate_by(self.common)
        pairs = []
        for n in counts:
            until = np.where(np.arange(len(run.path)) <= n, run.path, np.nan)
            runs = [*self.runs, run._replace(path=until)]
            chosen = choose_iterates(runs, self.common, index_of_least)
            kept = self.comparison(chosen, self.common, index_of_least)
            pairs.append((self.common.sign * kept.score[0], kept.score[1]))
        return pairs


@dataclass(frozen=True, eq=False)
class ChosenRun:
    """A run, and the iterate that is chosen from it."""

    run: EndedRun
    choice: Choice
    # What members are compared by: the value of the criterion, or of a scorer.
    score: float
    # As results show it: the name of the loss, or scorer, its value and standard error.
    shown: tuple[str, float, float]

    @property
    def estimator(self):
        return self.run.estimator

    @property
    def iteration(self):
        return self.choice.iteration


def choose_iterates(runs, criterion, rule, between=None):
    """The ChosenRun of every run.

    ``between`` is a ScorerCriterion that compares the choices of members whose losses
    differ, or None: the criterion compares them.
    """
    chosen = []
    for run in runs:
        choice, name = choice_of(run, criterion, rule), criterion.name
        score = choice.score
        if between is not None:
            (score,) = between.path(run.estimator, [choice.iteration]).tolist()
        if isinstance(criterion, PathCriterion):
            name = loss_name(run.estimator)
        shown = name, choice.score, choice.standard_error
        chosen.append(ChosenRun(run, choice, score, shown))
    return chosen


class Part(NamedTuple):
    """An iterate that has a weight in what is kept."""

    # The index of its run.
    index: int
    iteration: int
    weight: float


class Comparison:
    """Chosen iterates of runs, side by side; a subclass says what is kept of them.

    A subclass has ``index``, that of the chosen run that is kept or has the largest
    weight; ``kept``, the names of members that may be kept; ``weights`` by the name of
    the member; and ``score``, that of what is kept, with its standard error. It is the
    weighted mean of ``parts``, by name. ``between`` is the scorer that compares
    members, or None.
    """

    def __init__(self, chosen, criterion, rule, between=None):
        self.chosen, self.criterion, self.rule = chosen, criterion, rule
        combinations = {}
        for index, one in enumerate(chosen):
            combinations.setdefault(one.run.member, []).append(index)
        # The index of the best combination of every member, the first of equals.
        losses = criterion.sign * np.array([one.choice.score for one in chosen])
        self.best_indices = {}
        for name, indices in combinations.items():
            self.best_indices[name] = indices[index_of_least(losses[indices])]
        # The index of the best of all.
        sign = (between or criterion).sign
        best = list(self.best_indices.values())
        scores = [chosen[index].score for index in best]
        self.least_index = best[index_of_least(sign * np.array(scores))]
        if np.isnan(chosen[self.least_index].choice.score):
            raise ValueError(
                f"criterion={criterion.name} is undefined (NaN) for every iterate "
                "of every candidate."
            )

    def shown(self, index):
        """The name of the loss that results show of a run, its value and its error."""
        return self.chosen[index].shown

    def shown_paths(self):
        """The path of every member as figures show it, and its errors, by name.

        Errors are None if the estimator has them.
        """
        paths = {}
        for name, index in self.best_indices.items():
            paths[name] = self.chosen[index].run.path
        return paths, dict.fromkeys(paths)

    def fold_scores(self):
        """The score that compares candidates, of each of them, fold by fold.

        None if candidates are not compared by mean losses of the same folds.

        Shapes: returned (n_candidates, n_folds).
        """
        criterion = self.criterion
        is_mean_of_folds = (
            isinstance(criterion, PathCriterion)
            and criterion.name == "cv"
            and criterion.samples is None
            and self.between is None
        )
        if not is_mean_of_folds:
            return None
        scores = []
        for one in self.chosen:
            path = getattr(one.estimator, "cv_fold_path_", None)
            # Candidates may have splitters with other numbers of folds.
            if path is None or (scores and path.shape[1] != len(scores[0])):
                return None
            scores.append(path[one.iteration])
        return np.array(scores)

    def list_alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept.

        ``losses`` has the loss of every member.
        """
        alike, best = [], losses[self.chosen[self.index].run.member]
        for name, loss in losses.items():
            if loss == best:
                alike.append(name)
        return alike

    def _recorded_losses(self, names):
        """The recorded losses of the candidates of these members, by name.

        Uncorrected is raised if losses of single rows are not known.
        """
        if not isinstance(self.criterion, PathCriterion):
            raise Uncorrected(
                f"criterion={self.criterion.name} scores all held-out rows together, "
                "but the correction needs per-row losses. cross_val_score estimates "
                "the score to expect"
            )
        recorded = {}
        for index, one in enumerate(self.chosen):
            name, estimator = one.run.member, one.estimator
            if name not in names:
                continue
            # They are not kept: each has several numbers for every held-out row.
            losses = self.criterion.losses(estimator)
            if losses is None:
                raise Uncorrected(
                    "per-row losses of held-out rows are not available, as with a "
                    "RowSummary, Dask input or criterion='risk'"
                )
            iterations = evaluated_iterations(estimator)
            error = partial(self.criterion.error_among, estimator, iterations)
            recorded.setdefault(name, []).append(
                RecordedLosses(index, losses, iterations, error)
            )
        return recorded

    def _draw_held_out(self, names, rng):
        """The recorded losses of these members, and draws of the rows held out.

        Returned are lists of RecordedLosses by name; the one of the run at ``index``,
        which keeps its sums for the choice and for the gain; and Draws.
        """
        members, criterion = self._recorded_losses(names), self.criterion
        held_out = [one.losses for one in chain.from_iterable(members.values())]
        rows = np.concatenate([losses.rows for losses in held_out])
        weights = np.concatenate([losses.weights for losses in held_out])
        classes = strata_of_rows(self.chosen[0].estimator, criterion.y)
        draws = Draws.of(rows, weights, rng, criterion.groups, classes)
        of_best = members[self.chosen[self.index].run.member]
        for number, candidate in enumerate(of_best):
            if candidate.index == self.index:
                of_best[number] = best = candidate.keep_sums(draws, criterion.deadline)
        return members, best, draws

    def _choose_in_draws(self, members, draws, counts):
        """What draws choose of every member, as ChosenInDraws by name."""
        of_draws = self.rule, draws.group_of, counts, self.criterion.deadline
        return {name: choose_in_draws(one, *of_draws) for name, one in members.items()}


class BestRun(Comparison):
    """Runs side by side, of which the best is kept."""

    # How many draws the choice is repeated in; None: all.
    n_draws: int | None = None

    def __init__(self, chosen, criterion, rule, between=None):
        super().__init__(chosen, criterion, rule, between)
        self.between, self.index = between, self.least_index
        best = chosen[self.index]
        self.kept = [best.run.member]
        self.weights = dict.fromkeys(self.best_indices, 0.0) | {best.run.member: 1.0}
        self.score = best.choice.score, best.choice.standard_error
        self.parts = {best.run.member: Part(self.index, best.iteration, 1.0)}

    def held_out_predictions(self):
        """Predictions of the model kept for rows that it was held out of, these rows.

        Both are None if there are no predictions of single rows, or only labels. A row
        occurs as often as it was held out. Shapes: returned (n_held_out[, n_outputs]),
        (n_held_out,).
        """
        best = self.chosen[self.index]
        estimator, t = best.estimator, best.iteration
        estimate = self.criterion.estimate
        held_out = estimate.of(estimator)
        if held_out is None or held_out.prediction is None:
            return None, None
        predictor = HeldOutPredictor.from_model(estimator, held_out.prediction[t], t)
        methods = ["predict"]
        if is_classifier(estimator):
            methods = ["predict_proba", "decision_function"]
        for method in methods:
            if hasattr(predictor, method):
                return getattr(predictor, method)(None), np.hstack(held_out.indices)
        return None, None

    def corrected_score(self, rng, ended=()):
        """The loss of choosing in this way, on rows not used for it, as Corrected.

        ``ended`` has the member and the laps of combinations that a race has ended.
        Where losses differ, the choice in the runs of the best member is repeated, and
        members by themselves have no score. NaN if no draw leaves rows out, as where
        all are of one group.
        """
        names = self.best_indices if self.between is None else self.kept
        members, best, draws = self._draw_held_out(names, rng)
        t = self.chosen[self.index].iteration
        for member, laps in ended:
            if member in names:
                losses = losses_of_all_rows(laps, best.losses, t)
                members[member].append(
                    RecordedLosses(-1, losses, np.array([0]), np.zeros_like)
                )
        counts = draws.without_parts[: self.n_draws]
        chosen = self._choose_in_draws(members, draws, counts)
        best_of_all = ChosenInDraws.best_of(list(chosen.values()))
        losses, weights = self._losses_in_draws(best_of_all, draws, counts)
        of_members = {}
        for name, of_member in chosen.items() if self.between is None else ():
            of_members[name], _ = of_member.mean_over_rest(counts)
        score = mean_over_rest(losses, weights, counts)
        return Corrected(*score, possible_gain(best, t, draws), of_members)

    def _losses_in_draws(self, chosen, draws, counts):
        """Losses of what is kept of the runs that draws choose, and weights of rows.

        Both are summed over the rows of every group. ``chosen`` are the ChosenInDraws.
        Shapes: counts, returned (n_draws, n_groups).
        """
        return chosen.losses, chosen.weights

    def largest_weights(self, rng):
        """By name, the largest weights that members may have: none is said of one."""
        return {}
