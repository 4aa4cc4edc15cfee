"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._estimator.estimates.held_out_predictor import HeldOutPredictor
from .._estimator.run.recording import evaluated_iterations
from .criteria import PathCriterion, index_of_least
from .optimism import (
    Draws,
    RecordedLosses,
    Uncorrected,
    choose_in_draws,
    mean_over_rest,
    possible_gain,
    strata_of_rows,
)
from .race import losses_of_all_rows
from .stages import choice_of


def loss_name(estimator):
    """The name of the loss of a fitted estimator."""
    return getattr(getattr(estimator, "_loss", None), "name", "loss")


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
            kept = self.comparison(runs, self.common, index_of_least)
            pairs.append((self.common.sign * kept.score[0], kept.score[1]))
        return pairs


class Comparison:
    """Runs of candidates, and the best of the iterates chosen from each.

    ``between`` is a ScorerCriterion that compares the choices of members whose losses
    differ, or None: the criterion compares them.
    """

    def __init__(self, runs, criterion, rule, between=None):
        self.runs, self.criterion = runs, criterion
        self.rule, self.between = rule, between
        # For every run: the Choice of the rule; the score that compares members; the
        # name of the loss, or scorer, that results show, its value and standard error.
        self.choices, self.scores, self.shown = [], [], []
        combinations = {}
        for index, run in enumerate(runs):
            choice, name = choice_of(run, criterion, rule), criterion.name
            if isinstance(criterion, PathCriterion):
                name = loss_name(run.estimator)
            self.choices.append(choice)
            self.scores.append(choice.score)
            self.shown.append((name, choice.score, choice.standard_error))
            combinations.setdefault(run.member, []).append(index)
        # The index of the best combination of every member, the first of equals, and
        # its path as figures show it; errors are None if the estimator has them.
        losses = criterion.sign * np.array(self.scores)
        self.best_indices, self.paths, self.path_errors = {}, {}, {}
        for name, indices in combinations.items():
            best = indices[index_of_least(losses[indices])]
            self.best_indices[name], self.paths[name] = best, runs[best].path
            self.path_errors[name] = None
        if between is not None:
            self.scores = []
            for run, choice in zip(runs, self.choices):
                self.scores += between.path(run.estimator, [choice.iteration]).tolist()
            losses = between.sign * np.array(self.scores)
        # The index of the candidate that is kept.
        best = list(self.best_indices.values())
        self.index = best[index_of_least(losses[best])]
        choice = self.choices[self.index]
        if np.isnan(choice.score):
            raise ValueError(
                f"criterion={criterion.name} is undefined (NaN) for every iterate "
                "of every candidate."
            )
        self.kept = [runs[self.index].member]
        self.weights = dict.fromkeys(self.best_indices, 0.0) | {self.kept[0]: 1.0}
        self.score = choice.score, choice.standard_error

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
        for run, choice in zip(self.runs, self.choices):
            path = getattr(run.estimator, "cv_fold_path_", None)
            # Candidates may have splitters with other numbers of folds.
            if path is None or (scores and path.shape[1] != len(scores[0])):
                return None
            scores.append(path[choice.iteration])
        return np.array(scores)

    def held_out_predictions(self):
        """Predictions of the model kept for rows that it was held out of, these rows.

        Both are None if there are no predictions of single rows, or only labels. A row
        occurs as often as it was held out. Shapes: returned (n_held_out[, n_outputs]),
        (n_held_out,).
        """
        estimator, t = self.runs[self.index].estimator, self.choices[self.index][0]
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

    def list_alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept.

        ``losses`` has the loss of every member.
        """
        alike, best = [], losses[self.runs[self.index].member]
        for name, loss in losses.items():
            if loss == best:
                alike.append(name)
        return alike

    def corrected_score(self, rng, ended=()):
        """The loss of choosing in this way, on rows not used for it; standard error.

        ``ended`` has the member and the laps of combinations that a race has ended.
        Where losses differ, the choice in the runs of the best member is repeated.
        NaN if no draw leaves rows out, as where all are of one group. Last, by how much
        later iterates may be better than the one kept.
        """
        criterion, recorded = self.criterion, []
        names = self.best_indices if self.between is None else self.kept
        for candidate in chain.from_iterable(self._recorded_losses(names)):
            recorded.append(candidate)
            if candidate.index == self.index:
                chosen = candidate
        rows = np.concatenate([candidate.losses.rows for candidate in recorded])
        weights = np.concatenate([candidate.losses.weights for candidate in recorded])
        classes = strata_of_rows(self.runs[0].estimator, criterion.y)
        draws = Draws.of(rows, weights, rng, criterion.groups, classes)
        t = self.choices[self.index].iteration
        for member, laps in ended:
            if member in names:
                losses = losses_of_all_rows(laps, chosen.losses, t)
                recorded.append(
                    RecordedLosses(-1, losses, np.array([0]), np.zeros_like)
                )
        _, *of_groups = choose_in_draws(
            recorded, self.rule, draws.group_of, draws.without_parts, criterion.deadline
        )
        gain = possible_gain(chosen, t, draws)
        return *mean_over_rest(*of_groups, draws.without_parts), gain

    def largest_weights(self, rng):
        """By name, the largest weights that members may have: none is said of one."""
        return {}

    def _recorded_losses(self, names):
        """The recorded losses of the candidates of these members, member by member.

        Uncorrected is raised if losses of single rows are not known.
        """
        if not isinstance(self.criterion, PathCriterion):
            raise Uncorrected(
                f"criterion={self.criterion.name} scores all held-out rows together, "
                "but the correction needs per-row losses. cross_val_score estimates "
                "the score to expect"
            )
        recorded = {}
        for index, (name, estimator, *_) in enumerate(self.runs):
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
        return list(recorded.values())
