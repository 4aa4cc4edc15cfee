"""Runs side by side, and the best iterate of all."""

from functools import cached_property
from itertools import chain

import numpy as np
from sklearn.base import is_classifier

from .._estimator.estimates.fitted_state import chosen_iterate
from .._estimator.estimates.readers import ESTIMATES
from ..optim.blocks import MEMORY_BYTES
from .criteria import PathCriterion, index_of_least
from .members import DrawnSplits
from .optimism import RecordedLosses, Uncorrected, corrected_score
from .stages import choice_of

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


def averaged_by_row(held_out, rows, n_samples):
    """Held-out predictions, or those of classes, in the order of the training rows.

    The mean where a row was held out several times, NaN where it never was.

    Shapes: rows (n_held_out,), returned (n_samples,) or (n_samples, n_outputs).

    Parameters
    ----------
    held_out : estimator
        It predicts ``rows`` as held out, for any X.
    """
    names = ["predict"]
    if is_classifier(held_out):
        names = ["predict_proba", "decision_function"]
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


class Comparison:
    """Candidates that have been run, and the best of the iterates chosen from each.

    Parameters
    ----------
    candidates : list of Candidate
    runs : list of EvaluatedFit
    criterion : PathCriterion or ScorerCriterion
    rule : callable
    between : ScorerCriterion or None
        Compares the choices of members whose losses differ; None if the criterion does.

    Attributes
    ----------
    choices : list of Choice
        The iterate that the rule picks from every run.
    scores : list of float
        The scores that compare members, for the choice in every run.
    best_indices : dict of str to int
        The index of the best combination of every member, the first of equals.
    index : int
        The index of the candidate that is kept.
    kept : list of str
        Names of the members that are kept.
    weights : dict of str to float
        The weight of every member.
    score : tuple of float
        The score and its standard error.
    """

    def __init__(self, candidates, runs, criterion, rule, between=None):
        self.candidates, self.runs = candidates, runs
        self.criterion, self.rule, self.between = criterion, rule, between
        self.choices = [
            choice_of(run.estimator, run.path, criterion, rule) for run in runs
        ]
        self.scores, sign = [choice.score for choice in self.choices], criterion.sign
        combinations = {}
        for index, candidate in enumerate(candidates):
            combinations.setdefault(candidate.member, []).append(index)
        self.best_indices = {
            name: indices[index_of_least([sign * self.scores[k] for k in indices])]
            for name, indices in combinations.items()
        }
        if between is not None:
            sign = between.sign
            self.scores = [
                between.score_of(run.estimator, choice.iteration)
                for run, choice in zip(runs, self.choices)
            ]
        best = list(self.best_indices.values())
        self.index = best[index_of_least([sign * self.scores[k] for k in best])]
        choice = self.choices[self.index]
        if np.isnan(choice.score):
            raise ValueError(
                f"criterion={criterion.name} is undefined (NaN) for every iterate "
                "of every candidate."
            )
        self.kept = [candidates[self.index].member]
        self.weights = {name: float(name in self.kept) for name in self.best_indices}
        self.score = choice.score, choice.standard_error

    def fitted_members(self):
        """The members that are kept, by name, each at its chosen iterate."""
        members = {}
        for name in self.kept:
            index = self.best_indices[name]
            estimator = self.runs[index].estimator
            # The ``cv`` that the estimator was given.
            cv = ESTIMATES["cv"].setting(estimator)
            if isinstance(cv, DrawnSplits):
                estimator.set_params(cv=cv.cv)
            members[name] = chosen_iterate(estimator, self.choices[index].iteration)
        return members

    def shown_path(self, index):
        """The path of a candidate as figures show it, and its standard errors.

        Errors are None where these are the ones that the estimator has.
        """
        return self.runs[index].path, None

    def shown_score(self, index):
        """The loss, or the scorer, that results show of a choice; value and error."""
        choice, name = self.choices[index], self.criterion.name
        if isinstance(self.criterion, PathCriterion):
            name = loss_name(self.runs[index].estimator)
        return name, choice.score, choice.standard_error

    def compared_by(self, index, shown):
        """The metric that compares members, which values are better; value and error.

        ``shown`` is the :meth:`shown_score` of the choice.
        """
        if self.between is None:
            metric, score, error = shown
            return metric, BETTER[self.criterion.sign], score, error
        run, choice = self.runs[index], self.choices[index]
        error = self.between.standard_error(run.estimator, choice.iteration)
        better = BETTER[self.between.sign]
        return self.between.name, better, self.scores[index], error

    def results(self, skipped):
        """A row for every candidate and every criterion that it has computed.

        Parameters
        ----------
        skipped : list of (str, dict, str)
            Members that were not run, combinations of their parameters, and why.

        Returns
        -------
        dict of lists
        """
        rows, criterion = [], self.criterion
        for index, (member, params, *_) in enumerate(self.candidates):
            run, choice = self.runs[index], self.choices[index]
            estimator, best = run.estimator, self.best_indices[member]
            loss, *shown = self.shown_score(index)
            weight = self.weights[member] if index == best else 0.0
            compared = *self.compared_by(index, (loss, *shown)), weight
            scores = [(criterion.name, loss, choice.iteration, *shown, *compared)]
            for name, estimate in ESTIMATES.items():
                if name == criterion.name or not hasattr(estimator, estimate.path):
                    continue
                of_path = PathCriterion(estimate)
                path = of_path.path(estimator)
                choice = choice_of(estimator, path, of_path, self.rule)
                scores.append((name, loss_name(estimator), *choice, *NOT_COMPARED))
            for score in scores:
                along_run = {**params, **estimator._parameters_at(score[2])}
                rows.append(
                    (member, along_run, *score, estimator.n_iter_, run.seconds, "")
                )
        no_pair = np.nan, np.nan
        no_score = criterion.name, "", np.nan, *no_pair, *NOT_COMPARED, *no_pair
        rows += [(member, params, *no_score, why) for member, params, why in skipped]
        return dict(zip(RESULTS, map(list, zip(*rows))))

    def fold_scores(self):
        """What :meth:`compared_by` gives of every candidate, fold by fold.

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
        paths = [getattr(run.estimator, "cv_fold_path_", None) for run in self.runs]
        # Candidates may have splitters with other numbers of folds.
        if len({None if path is None else path.shape[1] for path in paths}) > 1:
            return None
        if paths[0] is None:
            return None
        return np.array([path[c.iteration] for path, c in zip(paths, self.choices)])

    def held_out_prediction(self, n_samples):
        """What the model kept predicts for the training rows that it was held out of.

        None if there are no predictions of single rows.

        Shapes: returned (n_samples,) or (n_samples, n_outputs).
        """
        estimator, t = self.runs[self.index].estimator, self.choices[self.index][0]
        estimate = self.criterion.estimate
        path = getattr(estimator, estimate.predictions, None)
        if path is None:
            return None
        rows = np.hstack(getattr(estimator, estimate.indices))
        held_out = estimator._held_out_estimator(path[t], t)
        return averaged_by_row(held_out, rows, n_samples)

    def alike(self, losses):
        """The members whose paths are shown in the loss of the one that is kept.

        Parameters
        ----------
        losses : dict
            The loss of every member.
        """
        best = losses[self.candidates[self.index].member]
        return [name for name, loss in losses.items() if loss == best]

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
        names = self.best_indices if self.between is None else self.kept
        recorded = list(chain.from_iterable(self._recorded(names)))
        criterion = self.criterion
        return corrected_score(
            recorded, self.rule, rng, criterion.groups, criterion.deadline
        )

    @cached_property
    def held_out_losses(self):
        """The losses of held-out rows of every run; None if they are not available."""
        return [self.criterion.losses(run.estimator) for run in self.runs]

    def _recorded(self, names):
        """The recorded losses of the candidates of these members, member by member."""
        if not isinstance(self.criterion, PathCriterion):
            raise Uncorrected(
                f"criterion={self.criterion.name} scores all held-out rows together, "
                "and the correction takes the losses of single rows. cross_val_score "
                "estimates what to expect of the choice"
            )
        indices = [k for k, c in enumerate(self.candidates) if c.member in names]
        losses = [self.held_out_losses[index] for index in indices]
        if any(losses_k is None for losses_k in losses):
            raise Uncorrected(
                "the losses of single held-out rows are not known, as with a "
                "RowSummary, Dask input or criterion='risk'"
            )
        # With so many rows the least error over a path is hardly optimistic.
        most = MEMORY_BYTES // 32
        if any(losses_k.size > most for losses_k in losses):
            raise Uncorrected(
                f"a run has more than {most} losses of single held-out rows. Of "
                "so many rows the least mean loss, best_score_, is hardly optimistic"
            )
        recorded = {name: [] for name in names}
        for index, losses_k in zip(indices, losses):
            estimator = self.runs[index].estimator
            iterations = estimator.recorded_iterations()
            error = self.criterion.error_among(estimator)
            recorded[self.candidates[index].member].append(
                RecordedLosses(index, losses_k, iterations, error)
            )
        return list(recorded.values())
