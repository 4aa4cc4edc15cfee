"""A race of combinations of parameters: fold after fold those that are worse end.

Every combination is run on the first fold alone, with its own choice of the iterate.
Those whose loss on the held-out rows is significantly larger than that of the best one
end there; the next fold is for the others. Those that are left are then run in full, as
without a race. The idea is that of Maron and Moore (1994), "Hoeffding races", NeurIPS,
with the differences of single rows, which vary less than their losses.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import delayed

from .._estimator.delegation import class_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.estimates.recording import evaluated_iterations
from ..risk.held_out_rows import mean_with_error, units_of
from ..staged import Staged
from .criteria import PathCriterion, index_of_least
from .failures import Failed
from .members import share_work
from .stages import EvaluatedFit, Stages
from .time_limit import Deadline, prices_of, run_all, too_short

# A combination ends if its mean loss exceeds the least one by so many standard errors
# of the difference: one in twenty does of those that are as good.
SIGNIFICANT = 1.645
# A race has at most half of the folds: candidates that are left are run on all again.
# It may take half of a time limit.
SHARE_OF_RACE = 0.5


class Lap(NamedTuple):
    """Losses of the held-out rows of one fold, at the iterate that these choose."""

    rows: np.ndarray  # in order, (n_held_out,)
    losses: np.ndarray  # (n_held_out,)
    weights: np.ndarray  # (n_held_out,)


@dataclass(eq=False)
class Entrant:
    """Candidates that differ in automatic parameters only, and their laps so far."""

    candidates: list
    # What a run is expected to take; None without a time limit.
    price: Any = None
    laps: list = field(default_factory=list)
    # Why it has ended; empty while it goes on.
    ended: str = ""
    # The error that has ended it.
    failed: Failed | None = None

    def mean_loss(self):
        """The mean loss of the rows that it has held out."""
        losses = np.concatenate([lap.losses for lap in self.laps])
        return np.average(losses, weights=np.concatenate([w for *_, w in self.laps]))

    def excess_over(self, best, groups):
        """Standard errors by which its mean loss exceeds that of the best entrant."""
        rows, differences, weights = [], [], []
        for lap, lap_of_best in zip(self.laps, best.laps):
            common, index, index_of_best = np.intersect1d(
                lap.rows, lap_of_best.rows, assume_unique=True, return_indices=True
            )
            rows.append(common)
            differences.append(lap.losses[index] - lap_of_best.losses[index_of_best])
            weights.append(lap.weights[index])
        units = units_of(np.concatenate(rows), groups)
        (mean,), (error,) = mean_with_error(
            np.concatenate(differences)[None], np.concatenate(weights), units
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return mean / error  # NaN where both are zero, or with one unit

    def losses_of_all_rows(self, reference, t):
        """HeldOutLosses of one iterate, as if it had been run in full.

        ``reference`` are the HeldOutLosses of the candidate that is chosen, at iterate
        ``t``. Rows that this entrant has not held out have the losses of these, and the
        mean difference on the others.
        """
        losses = reference.of(slice(t, t + 1))[0].copy()
        by_row = dict(zip(*map(np.concatenate, zip(*[lap[:2] for lap in self.laps]))))
        is_held_out = np.isin(reference.rows, list(by_row))
        held_out = np.array([by_row[row] for row in reference.rows[is_held_out]])
        weights = reference.weights[is_held_out]
        losses += np.average(held_out - losses[is_held_out], weights=weights)
        losses[is_held_out] = held_out
        return replace(reference, n_iterates=1, of=lambda block: losses[None][block])


def check_can_race(search):
    """Raise if the candidates of a search have no losses of rows on the same folds."""
    criterion, has_rows = search.criterion, search.has_rows
    has_losses = isinstance(criterion, PathCriterion) and criterion.name == "cv"
    if not (has_rows and has_losses):
        what = f"criterion={criterion.name!r}" if has_rows else "this X"
        raise ValueError(
            f"search='race' needs per-row losses from folds, which {what} does not "
            "have: use search='all', or criterion='cv' and arrays."
        )
    settings = set()
    for candidate in search.candidates:
        settings.add(id(ESTIMATES["cv"].setting(candidate.estimator)))
    if len(settings) > 1:
        raise ValueError(
            "search='race' compares all combinations on the same folds: leave cv out "
            "of param_grid, or use search='all'."
        )


def race(search):
    """Run the candidates of a search fold after fold; those left, and what has ended.

    A combination competes with all others if one is kept and they have one loss, else
    with those of the same member. The second result are Entrants.
    """
    check_can_race(search)
    drawn = ESTIMATES["cv"].setting(search.candidates[0].estimator)
    entrants, fields, deadline = [], {}, None
    for _, group in groupby(search.candidates, attrgetter("group")):
        entrants.append(Entrant(list(group)))
    if search.deadline is not None:
        deadline = Deadline(SHARE_OF_RACE * search.owner.time_limit)
        prices = prices_of([entrant.candidates for entrant in entrants], search.y)
        for entrant, price in zip(entrants, prices):
            entrant.price = price
    compares_all = search.blend is None and search.shared_loss is not None
    for entrant in entrants:
        name = "all" if compares_all else entrant.candidates[0].member
        fields.setdefault(name, []).append(entrant)
    stages = Stages(search.criterion, search.owner.patience, deadline)
    for number in range(int(SHARE_OF_RACE * len(drawn.splits))):
        racing = []
        for competing in fields.values():
            going = [entrant for entrant in competing if not entrant.ended]
            racing += going if len(going) > 1 else []
        if not racing:
            break
        fold = replace(drawn, splits=drawn.splits[number : number + 1])
        run_lap(search, stages, racing, fold)
        for competing in fields.values():
            end_the_worse(competing, number + 1, search.groups)
        if search.report is not None:
            search.report.lap(number + 1, len(drawn.splits), racing)
    left = []
    for entrant in entrants:
        left += [] if entrant.ended else entrant.candidates
    return left, [entrant for entrant in entrants if entrant.ended]


def run_lap(search, stages, entrants, fold):
    """Run entrants on a fold, with clones whose models on all rows do not grow."""
    lists, clones = [], []
    for entrant in entrants:
        lists.append([])
        for candidate in entrant.candidates:
            estimator = clone(candidate.estimator).set_params(cv=fold)
            if isinstance(estimator, Staged):
                estimator._growth_of_model = "first"
            lists[-1].append(candidate._replace(estimator=estimator))
        clones += lists[-1]
    share_work(clones, search.y, search.fit_params)
    calls = []
    for entrant, candidates in zip(entrants, lists):
        fit_params = search.fit_params[candidates[0].member]
        data = candidates, search.y, fit_params, entrant.price
        calls.append(delayed(lap_of)(stages, *data))
    laps = run_all(calls, search.owner.n_jobs, stages.deadline)
    for entrant, lap in zip(entrants, laps):
        if isinstance(lap, Failed):
            entrant.failed, entrant.ended = lap, lap.why
        elif lap is None:
            entrant.ended = too_short(search.owner.time_limit)
        else:
            entrant.laps.append(lap)


def end_the_worse(entrants, n_laps, groups):
    """End those that are significantly worse than the best of them, after some laps."""
    entrants = [one for one in entrants if len(one.laps) == n_laps and not one.ended]
    if len(entrants) < 2:
        return
    losses = np.array([entrant.mean_loss() for entrant in entrants])
    best = entrants[index_of_least(losses)]
    folds = "1 fold" if n_laps == 1 else f"{n_laps} folds"
    for entrant in entrants:
        excess = entrant.excess_over(best, groups)
        if excess > SIGNIFICANT:
            entrant.ended = (
                f"after {folds} its loss exceeded the smallest by {excess:.1f} "
                "standard errors of the difference"
            )


def lap_of(stages, candidates, y, fit_params, price):
    """Run candidates on a fold; the Lap of the best of their iterates.

    Without one it is None, as where no run has begun, or Failed.
    """
    # Copies, so that fitted ones are freed.
    estimators = [copy(candidate.estimator) for candidate in candidates]
    best, none = None, None
    for fit in stages.run_group(estimators, candidates[0].X, y, fit_params, price):
        if not isinstance(fit, EvaluatedFit):
            none = none or fit
            continue
        iterations = evaluated_iterations(fit.estimator)
        t = iterations[index_of_least(fit.path[iterations])]
        if best is None or fit.path[t] < best[0]:
            best = fit.path[t], fit.estimator, t
    if best is None:
        return none
    _, estimator, t = best
    losses = stages.criterion.losses(estimator)
    if losses is None:
        raise ValueError(
            "search='race' needs per-row losses of held-out rows, which "
            f"{class_of(estimator)} does not keep for so many rows and iterations: "
            "use search='all'."
        )
    order, values = np.argsort(losses.rows), losses.of(slice(t, t + 1))[0]
    return Lap(losses.rows[order], values[order], losses.weights[order])
