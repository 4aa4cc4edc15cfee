"""Runs side by side, and the best iterate of all."""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._estimator.devices import in_numpy
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import evaluated_iterations
from .criteria import PathCriterion, index_of_least
from .optimism import (
    Draws,
    RecordedLosses,
    Uncorrected,
    chosen_in_draws,
    mean_over_rest,
    possible_gain,
    strata_of_rows,
)
from .stages import EvaluatedFit, choice_of

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


def loss_name(estimator):
    """The name of the loss of a fitted estimator."""
    return getattr(getattr(estimator, "_loss", None), "name", "loss")


@dataclass
class EndedRuns:
    """Runs that have ended, beside which a run of another candidate is judged."""

    candidates: list
    runs: list
    # The candidate of the other run.
    candidate: Any
    criterion: Any
    # The subclass of Comparison, or how it is made.
    comparison: Any
    # The criterion on the rows that all have held out, and the runs with their paths.
    common: Any = None

    def kept_with(self, run, counts):
        """The loss of what is kept with the first iterates of a run, and its error.

        ``counts`` are numbers of iterates; there is a pair for each of them.
        """
        estimator, pairs = in_numpy(run.estimator), []
        fit = EvaluatedFit(estimator, run.path, run.seconds)
        if self.common is None:
            criterion = self.criterion.on_common_rows([*self.runs, fit])
            if criterion is not self.criterion:
                self.runs = [
                    one._replace(path=criterion.path(one.estimator))
                    for one in self.runs
                ]
            self.common = criterion
        path = run.path
        if self.common is not self.criterion:
            path = self.common.path(estimator)
        for n in counts:
            until = np.where(np.arange(len(path)) <= n, path, np.nan)
            kept = self.comparison(
                [*self.candidates, self.candidate],
                [*self.runs, fit._replace(path=until)],
                self.common,
                index_of_least,
            )
            pairs.append((self.common.sign * kept.score[0], kept.score[1]))
        return pairs


class Comparison:
    """Candidates that have been run, and the best of the iterates chosen from each.

    ``between`` is a ScorerCriterion that compares the choices of members whose losses
    differ, or None: the criterion compares them.
    """

    def __init__(self, candidates, runs, criterion, rule, between=None):
        self.candidates, self.runs = candidates, runs
        self.criterion, self.rule, self.between = criterion, rule, between
        # For every run: the Choice of the rule; the score that compares members; the
        # name of the loss, or scorer, that results show, its value and standard error.
        self.choices, self.scores, self.shown = [], [], []
        # Entrants of a race that have ended after some of the folds.
        self.ended = ()
        combinations = {}
        for index, (candidate, run) in enumerate(zip(candidates, runs)):
            choice, name = choice_of(run, criterion, rule), criterion.name
            if isinstance(criterion, PathCriterion):
                name = loss_name(run.estimator)
            self.choices.append(choice)
            self.scores.append(choice.score)
            self.shown.append((name, choice.score, choice.standard_error))
            combinations.setdefault(candidate.member, []).append(index)
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
        self.kept = [candidates[self.index].member]
        self.weights = dict.fromkeys(self.best_indices, 0.0) | {self.kept[0]: 1.0}
        self.score = choice.score, choice.standard_error

    def results(self, listed, failures, skipped):
        """Columns with a row for every candidate and criterion that it has computed.

        Candidates are in the order in which they were ``listed``; ``failures`` are
        those that have raised an error, and ``skipped`` lists (member, parameters,
        reason) of those that were not run.
        """
        rows, criterion = [], self.criterion
        no_pair = np.nan, np.nan
        no_score = criterion.name, "", np.nan, *no_pair, *NOT_COMPARED
        failed = {id(failure.candidate): failure.failed for failure in failures}
        for candidate, index in self._tried(listed, failures):
            member, params, *_ = candidate
            if index is None:
                error = failed[id(candidate)]
                row = member, params, *no_score, np.nan, error.seconds, error.why
                rows.append(row)
                continue
            run, choice = self.runs[index], self.choices[index]
            estimator, best = run.estimator, self.best_indices[member]
            loss, *shown = self.shown[index]
            compared = loss, BETTER[criterion.sign], *shown
            if (between := self.between) is not None:
                error = between.standard_error(estimator, choice.iteration)
                better = BETTER[between.sign]
                compared = between.name, better, self.scores[index], error
            weight = self.weights[member] if index == best else 0.0
            scores = [
                (criterion.name, loss, choice.iteration, *shown, *compared, weight)
            ]
            for name, estimate in ESTIMATES.items():
                if name == criterion.name or not estimate.is_on(estimator):
                    continue
                path = getattr(estimator, estimate.path, None)
                if path is None:
                    continue
                of_path = PathCriterion(name, estimate)
                choice = choice_of(run._replace(path=path), of_path, self.rule)
                scores.append((name, loss_name(estimator), *choice, *NOT_COMPARED))
            for score in scores:
                along_run = {**params, **estimator._parameters_at(score[2])}
                rows.append(
                    (member, along_run, *score, estimator.n_iter_, run.seconds, "")
                )
        for member, params, why in skipped:
            rows.append((member, params, *no_score, *no_pair, why))
        return dict(zip(RESULTS, map(list, zip(*rows))))

    def tables(self, listed, failures):
        """What tables of results need beside them, as attributes by name.

        Indices and rows are those of the candidates that were tried: that have been run
        or have failed, in order.
        """
        tried = [index for _, index in self._tried(listed, failures)]
        scores = scores_of_runs = self.fold_scores()
        if scores_of_runs is not None:
            scores = np.full((len(tried), scores_of_runs.shape[1]), np.nan)
            for row, index in zip(scores, tried):
                if index is not None:
                    row[:] = scores_of_runs[index]
        best = {name: tried.index(i) for name, i in self.best_indices.items()}
        return {"_best_indices": best, "_fold_scores": scores}

    def _tried(self, listed, failures):
        """Candidates in order, each with the index of its run, None if it failed."""
        indices = {id(failure.candidate): None for failure in failures}
        indices |= {id(one): index for index, one in enumerate(self.candidates)}
        return [(one, indices[id(one)]) for one in listed if id(one) in indices]

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

        Both are None if there are no predictions of single rows. A row occurs as often
        as it was held out. Shapes: returned (n_held_out[, n_outputs]), (n_held_out,).
        """
        estimator, t = self.runs[self.index].estimator, self.choices[self.index][0]
        estimate = self.criterion.estimate
        path = getattr(estimator, estimate.predictions, None)
        if path is None:
            return None, None
        predictions, rows = path[t], np.hstack(getattr(estimator, estimate.indices))
        if is_classifier(estimator):
            held_out = estimator._held_out_estimator(predictions, t)
            has_probabilities = hasattr(held_out, "predict_proba")
            method = "predict_proba" if has_probabilities else "decision_function"
            predictions = getattr(held_out, method)(None)
        return predictions, rows

    def alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept.

        ``losses`` has the loss of every member.
        """
        alike, best = [], losses[self.candidates[self.index].member]
        for name, loss in losses.items():
            if loss == best:
                alike.append(name)
        return alike

    def corrected_score(self, rng):
        """The loss of choosing in this way, on rows not used for it; standard error.

        Where losses differ, the choice in the runs of the best member is repeated.
        NaN if no draw leaves rows out, as where all are of one group. Last, by how much
        later iterates may be better than the one kept.
        """
        criterion, recorded = self.criterion, []
        names = self.best_indices if self.between is None else self.kept
        for candidate in chain.from_iterable(self._recorded(names)):
            recorded.append(candidate)
            if candidate.index == self.index:
                chosen = candidate
        rows = np.concatenate([candidate.losses.rows for candidate in recorded])
        weights = np.concatenate([candidate.losses.weights for candidate in recorded])
        classes = strata_of_rows(self.candidates[0].estimator, criterion.y)
        draws = Draws.of(rows, weights, rng, criterion.groups, classes)
        t = self.choices[self.index].iteration
        for entrant in self.ended:
            if entrant.candidates[0].member in names:
                losses = entrant.losses_of_all_rows(chosen.losses, t)
                recorded.append(
                    RecordedLosses(-1, losses, np.array([0]), np.zeros_like)
                )
        _, *of_groups = chosen_in_draws(
            recorded, self.rule, draws.group_of, draws.without_parts, criterion.deadline
        )
        gain = possible_gain(chosen, t, draws)
        return *mean_over_rest(*of_groups, draws.without_parts), gain

    def largest_weights(self, rng):
        """By name, the largest weights that members may have: none is said of one."""
        return {}

    def _recorded(self, names):
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
        for index, (name, *_) in enumerate(self.candidates):
            if name not in names:
                continue
            estimator = self.runs[index].estimator
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
