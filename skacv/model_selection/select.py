"""What a fit keeps of its candidates, chosen when all have run."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._compat import _safe_indexing, is_foreign, on_host
from .._estimator.data.checks import shape_of
from .._estimator.devices import move_to_device_of
from .._estimator.estimates.fitted_state import loss_name, use_iterate
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.terms import terms_of
from ..optim.blocks import threads_for
from .advice import groups_of_copies
from .candidates import drop_left_out
from .choose_criteria import member_losses
from .comparison import Comparison, choose_iterates
from .criteria import RULES, PathCriterion, index_of_least
from .failures import Failed, attempt
from .offsets import put_back
from .optimism import Uncorrected
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


@dataclass(frozen=True, eq=False)
class Selection:
    """The iterates that are chosen, the members that are kept, and their weights."""

    # The choice among the runs of ``compared_candidates``, in the same order.
    comparison: Comparison
    compared_candidates: list
    # All candidates, also those that were left out.
    candidates: list
    # The losses of members that are left, as in Criteria.
    losses: dict | None
    shared_loss: Any
    # The group of every row among copies, if many rows are; None otherwise.
    copies: np.ndarray | None

    @property
    def best(self):
        """The candidate that is kept, or that of the largest weight in a blend."""
        return self.compared_candidates[self.comparison.index]

    @property
    def iteration(self):
        """Its iterate."""
        return self.comparison.chosen[self.comparison.index].iteration

    def ended_in_race(self):
        """The member and the laps of combinations that a race has ended.

        Candidates of a group have the same laps.
        """
        ended = {}
        for one in self.candidates:
            if one.laps and one.failed is None:
                ended.setdefault(one.group, (one.member, one.laps))
        return list(ended.values())


def select(candidates, criteria, data, groups):
    """Choose an iterate of every run, and the best of these or their weights.

    ``groups`` are those of rows that depend on each other, or None. Candidates that
    cannot be evaluated on the rows that all have held out are left out.
    """
    copies = None
    if groups is None:
        groups, copies = group_copies(data)
    criterion, deadline = criteria.of_iterates, data.deadline
    criterion = replace(criterion, groups=groups, deadline=deadline)
    losses, shared_loss = criteria.losses, criteria.shared_loss
    left = drop_left_out(candidates)
    if losses and len(left) < len(candidates):
        losses, shared_loss = member_losses(left, data.y, criterion.measure)
    # Members that are left may have one loss.
    between = criteria.of_members if shared_loss is None else None
    runs = [candidate.run for candidate in left]
    if data.is_portfolio:
        # On the rows that all runs have held out.
        common = criterion.restrict_to_common_rows(runs)
        if common is not criterion:
            runs = evaluate_on_common_rows(left, common)
            left = drop_left_out(left)
            criterion = common
            between = between and between.restrict_to_common_rows(runs)
    # A blend is of the best iterates, an average of those of the best run.
    rule = RULES.get(data.rule, index_of_least)
    chosen = choose_iterates(runs, criterion, rule, between)
    comparison = criteria.comparison(chosen, criterion, rule, between)
    return Selection(comparison, left, candidates, losses, shared_loss, copies)


def evaluate_on_common_rows(candidates, criterion):
    """Runs of candidates by a criterion on some rows; those that fail are left out."""
    runs = []
    for candidate in candidates:
        run = attempt(candidate.run.evaluate_by, criterion)
        if isinstance(run, Failed):
            candidate.leave_out(run)
        else:
            runs.append(run)
    return runs


def group_copies(data):
    """Groups of rows that are copies, for every row and for those of positive weight.

    Both are None if few rows are copies.
    """
    if data.y is None or data.is_collection:
        return None, None
    X, y = on_host(data.X if data.table is None else data.table.X), data.y
    counted = None
    if 0 < data.n_rows < len(y):
        counted = np.flatnonzero(data.params["sample_weight"])
        X, y = _safe_indexing(X, counted), y[counted]
    copies = groups_of_copies(X, y)
    if copies is None or counted is None:
        return copies, copies
    groups = np.full(len(data.y), -1)  # of rows that nobody reads
    groups[counted] = copies
    return groups, copies


def kept_models(selection, data):
    """The estimator that is kept, and the members by name, at their iterates."""
    comparison, table = selection.comparison, data.table
    fitted, alone, weights = {}, {}, {}
    for name, (index, t, weight) in comparison.parts.items():
        estimator = comparison.chosen[index].estimator
        model = use_iterate(put_back(estimator, data.offset), t)
        if is_foreign(data.passed_X):
            model = move_to_device_of(data.passed_X, data.passed_y, model)
        fitted[name], alone[name], weights[name] = model, model, weight
        if table is not None:
            view = selection.compared_candidates[index].view
            fitted[name] = table.attach_view(view, model)
            alone[name] = table.attach_encoder(view, model)
    # The part of the largest weight, unless several have one.
    kept = alone[max(weights, key=weights.get)]
    if np.count_nonzero(list(weights.values())) > 1:
        kept = comparison.blend(fitted)
        if table is not None:
            kept = table.attach_encoder(None, kept)
    # A member of which iterates are averaged is their mean.
    members = {name: alone.get(name, kept) for name in comparison.kept}
    return kept, members


def corrected_score(selection, data, rng):
    """The Corrected score of what is kept; or the reason why there is none."""
    X = data.X if data.table is None else data.table.X
    with threads_for(shape_of(X)):
        try:
            ended = selection.ended_in_race()
            return selection.comparison.corrected_score(rng, ended)
        except Uncorrected as reason:
            return str(reason)


def held_out_means(selection, data):
    """Held-out predictions of what is kept for every row, or None.

    They are means where a row was held out several times, NaN where it never was.
    """
    if not data.has_rows:
        return None
    predictions, rows = selection.comparison.held_out_predictions()
    if predictions is None:
        return None
    predictions = np.asarray(predictions, dtype=np.float64)
    n_times = np.bincount(rows, minlength=shape_of(data.X)[0])
    sums = np.zeros((len(n_times), *predictions.shape[1:]))
    np.add.at(sums, rows, predictions)
    with np.errstate(invalid="ignore"):
        means = (sums.T / n_times).T
    if data.offset is None:
        return means
    comparison = selection.comparison
    loss = comparison.chosen[comparison.index].estimator.record_.loss
    offset = data.offset.values.reshape(-1, *[1] * (means.ndim - 1))
    return loss.with_offset(means, offset)


def list_members_alike(selection):
    """Members whose paths are shown in the loss of the best one."""
    losses = selection.losses
    if losses and selection.shared_loss is None:
        return selection.comparison.list_alike(losses)
    return list(losses or [selection.best.member])


def rows_tried(selection):
    """Candidates that have been run or have failed, each with the index of its run.

    The index is that in the comparison, None for those that have failed.
    """
    compared = selection.compared_candidates
    indices = {id(one): index for index, one in enumerate(compared)}
    tried = []
    for one in selection.candidates:
        if id(one) in indices or one.failed is not None:
            tried.append((one, indices.get(id(one))))
    return tried


def best_rows(selection):
    """The row of the best combination of every member, among those tried."""
    indices = [index for _, index in rows_tried(selection)]
    best = selection.comparison.best_indices
    return {name: indices.index(index) for name, index in best.items()}


def fold_scores(selection):
    """Scores fold by fold of all that were tried, NaN for those that have failed.

    None if candidates are not compared by mean losses of the same folds.

    Shapes: returned (n_tried, n_folds).
    """
    of_runs = selection.comparison.fold_scores()
    if of_runs is None:
        return None
    tried = rows_tried(selection)
    scores = np.full((len(tried), of_runs.shape[1]), np.nan)
    for row, (_, index) in zip(scores, tried):
        if index is not None:
            row[:] = of_runs[index]
    return scores


def list_results(selection, left_out):
    """Columns with a row for every candidate and criterion that it has computed.

    ``left_out`` lists (member, parameters, reason) of members without candidates; these
    come after those tried, then candidates that a race has ended, or time.
    """
    rows, no_pair = [], (np.nan, np.nan)
    name = selection.comparison.criterion.name
    no_score = name, "", np.nan, *no_pair, *NOT_COMPARED
    for one, index in rows_tried(selection):
        if index is not None:
            rows += rows_of_run(selection.comparison, index, one.params)
            continue
        seconds = one.failed.seconds
        rows.append((one.member, one.params, *no_score, np.nan, seconds, one.why_not))
    candidates = selection.candidates
    ended = [one for one in candidates if one.laps and one.failed is None]
    late = [one for one in candidates if one.is_late]
    not_run = [(one.member, one.params, one.why_not) for one in (*ended, *late)]
    for member, params, why in (*left_out, *not_run):
        rows.append((member, params, *no_score, *no_pair, why))
    return dict(zip(RESULTS, map(list, zip(*rows))))


def rows_of_run(comparison, index, params):
    """Rows of results of a run: of the criterion, and of others that it has."""
    criterion, chosen = comparison.criterion, comparison.chosen[index]
    run, choice = chosen.run, chosen.choice
    estimator, member = run.estimator, run.member
    loss, *shown = comparison.shown(index)
    compared = loss, BETTER[criterion.sign], *shown
    if (between := comparison.between) is not None:
        error = between.standard_error(estimator, choice.iteration)
        better = BETTER[between.sign]
        compared = between.name, better, chosen.score, error
    is_best = index == comparison.best_indices[member]
    weight = comparison.weights[member] if is_best else 0.0
    scores = [(criterion.name, loss, choice.iteration, *shown, *compared, weight)]
    for name, estimate in ESTIMATES.items():
        if name == criterion.name or not estimate.is_on(estimator):
            continue
        held_out = estimate.of(estimator)
        if held_out is None:
            continue
        of_path = PathCriterion(name, estimate)
        choice = choice_of(run._replace(path=held_out.path), of_path, comparison.rule)
        scores.append((name, loss_name(estimator), *choice, *NOT_COMPARED))
    rows, terms = [], terms_of(estimator)
    for score in scores:
        along_run = {**params, **terms.parameters_at(estimator.record_, score[2])}
        rows.append((member, along_run, *score, estimator.n_iter_, run.seconds, ""))
    return rows
