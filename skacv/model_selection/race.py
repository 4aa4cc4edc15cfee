"""A race of combinations of parameters: fold after fold those that are worse end.

Every combination is run on the first fold alone, with its own choice of the iterate.
Those whose loss on the held-out rows is significantly larger than that of the best one
end there; the next fold is for the others. Those that are left are then run on all
folds, as without a race. The idea is that of Maron and Moore (1994), "Hoeffding races",
NeurIPS, with the differences of single rows, which vary less than their losses.

Runs in stages go on with further folds: no stage of a fold is grown twice. Those of
linear models and kernel machines begin anew, since all folds decide the size of their
steps and are fitted together with the model.
"""

from copy import copy
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.parallel import delayed

from .._estimator.data.checks import shape_of
from .._estimator.delegation import class_of
from .._estimator.estimates.readers import ESTIMATES
from .._estimator.run.recording import evaluated_iterations
from ..optim.blocks import MEMORY_BYTES
from ..risk.held_out_rows import mean_with_error, units_of
from ..staged import Staged
from .candidates import drop_left_out, group_candidates
from .criteria import PathCriterion, index_of_least
from .failures import Failed
from .shared import share_distances
from .stages import BegunRun, EndedRun, Stages, list_starts
from .time_limit import Deadline, call_all, prices_of, too_short

# A combination ends if its mean loss exceeds the least one by so many standard errors
# of the difference: one in twenty does of those that are as good.
SIGNIFICANT = 1.645
# A race has at most half of the folds: further ones end few, and some candidates that
# are left begin anew. It may take half of a time limit.
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
    laps: list = field(default_factory=list)
    # Why it has ended; empty while it goes on.
    why_not: str = ""
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


def losses_of_all_rows(laps, reference, t):
    """HeldOutLosses of one iterate after some laps, as if it had been run in full.

    ``reference`` are the HeldOutLosses of the candidate that is chosen, at iterate
    ``t``. Rows that the laps have not held out have the losses of these, and the mean
    difference on the others.
    """
    losses = reference.of(slice(t, t + 1))[0].copy()
    by_row = dict(zip(*map(np.concatenate, zip(*[lap[:2] for lap in laps]))))
    is_held_out = np.isin(reference.rows, list(by_row))
    held_out = np.array([by_row[row] for row in reference.rows[is_held_out]])
    weights = reference.weights[is_held_out]
    losses += np.average(held_out - losses[is_held_out], weights=weights)
    losses[is_held_out] = held_out
    return replace(reference, n_iterates=1, of=lambda block: losses[None][block])


def check_can_race(candidates, criteria, data):
    """Raise if candidates have no losses of rows on the same folds."""
    criterion = criteria.of_iterates
    has_losses = isinstance(criterion, PathCriterion) and criterion.name == "cv"
    if not (data.has_rows and has_losses):
        what = f"criterion={criterion.name!r}" if data.has_rows else "this X"
        raise ValueError(
            f"search='race' needs per-row losses from folds, which {what} does not "
            "have: use search='all', or criterion='cv' and arrays."
        )
    settings = set()
    for candidate in candidates:
        settings.add(id(ESTIMATES["cv"].setting(candidate.model)))
    if len(settings) > 1:
        raise ValueError(
            "search='race' compares all combinations on the same folds: leave cv out "
            "of param_grid, or use search='all'."
        )


def race(candidates, criteria, data, budget, groups, report=None):
    """Run candidates fold after fold, and leave out those that are worse.

    A combination competes with all others if one is kept and they have one loss, else
    with those of the same member. ``groups`` are those of the rows, or None.
    """
    running = drop_left_out(candidates)
    check_can_race(running, criteria, data)
    drawn = ESTIMATES["cv"].setting(running[0].model)
    entrants, fields = [Entrant(group) for group in group_candidates(running)], {}
    if budget.deadline is not None:
        budget = replace(budget, deadline=Deadline(SHARE_OF_RACE * budget.limit))
    compares_all = criteria.blend is None and criteria.shared_loss is not None
    for entrant in entrants:
        name = "all" if compares_all else entrant.candidates[0].member
        fields.setdefault(name, []).append(entrant)
    stages = Stages(
        criteria.of_iterates, budget.patience, budget.min_delta, budget.deadline
    )
    for number in range(int(SHARE_OF_RACE * len(drawn.splits))):
        racing = []
        for competing in fields.values():
            going = [entrant for entrant in competing if not entrant.why_not]
            racing += going if len(going) > 1 else []
        if not racing:
            break
        run_lap(stages, racing, drawn, number, data.y, budget)
        for competing in fields.values():
            end_the_worse(competing, number + 1, groups)
        for entrant in racing:
            for candidate in entrant.candidates if entrant.why_not else ():
                candidate.begun.take()  # its memory is free
        if report is not None:
            report.print_lap(number + 1, len(drawn.splits), racing)
    for entrant in entrants:
        for candidate in entrant.candidates if entrant.why_not else ():
            candidate.leave_out(entrant.failed or entrant.why_not)
            candidate.laps = entrant.laps


def run_lap(stages, entrants, drawn, number, y, budget):
    """Run entrants on a fold, with clones whose models on all rows do not grow."""
    fold = replace(drawn, splits=drawn.splits[number : number + 1])
    of_entrants, clones, n_bytes = [], [], 0
    for entrant in entrants:
        of_entrant = []
        for candidate in entrant.candidates:
            model = clone(candidate.model).set_params(cv=fold)
            one = replace(candidate, model=model)
            if isinstance(model, Staged):
                # The model and the folds so far may hold rows: of all entrants no more
                # than of one run on all folds, where these are many.
                n_bytes_of_fit = 8 * np.prod(shape_of(one.X))
                n_bytes += (2 + number) * n_bytes_of_fit
                most = max(MEMORY_BYTES, (1 + len(drawn.splits)) * n_bytes_of_fit)
                if n_bytes > most:
                    one.begun = BegunRun()
            of_entrant.append(one)
        of_entrants.append(of_entrant)
        clones += of_entrant
    share_distances(clones, y)
    prices, calls = [None] * len(entrants), []
    if budget.deadline is not None:
        prices = prices_of(of_entrants, y)
    for of_entrant, price in zip(of_entrants, prices):
        starts = list_starts(of_entrant, y, "first")
        calls.append(delayed(lap_of)(stages, starts, price))
    laps = call_all(calls, budget.n_jobs, stages.deadline)
    for entrant, lap in zip(entrants, laps):
        if isinstance(lap, Failed):
            entrant.failed, entrant.why_not = lap, lap.why
        elif lap is None:
            entrant.why_not = too_short(budget.limit)
        else:
            entrant.laps.append(lap)


def end_the_worse(entrants, n_laps, groups):
    """End those that are significantly worse than the best of them, after some laps."""
    entrants = [one for one in entrants if len(one.laps) == n_laps and not one.why_not]
    if len(entrants) < 2:
        return
    losses = np.array([entrant.mean_loss() for entrant in entrants])
    best = entrants[index_of_least(losses)]
    folds = "1 fold" if n_laps == 1 else f"{n_laps} folds"
    for entrant in entrants:
        excess = entrant.excess_over(best, groups)
        if excess > SIGNIFICANT:
            entrant.why_not = (
                f"after {folds} its loss exceeded the smallest by {excess:.1f} "
                "standard errors of the difference"
            )


def lap_of(stages, starts, price):
    """Run candidates on a fold; the Lap of the best of their iterates.

    Without one it is None, as where no run has begun, or Failed.
    """
    # Copies, so that fitted ones are freed.
    starts = [replace(start, model=copy(start.model)) for start in starts]
    best, none = None, None
    for model_run in stages.run_models(starts, price):
        run = model_run.result()
        if not isinstance(run, EndedRun):
            none = none or run
            continue
        if model_run.run is not None:
            model_run.start.begun.former = model_run.run.hand_over()
        iterations = evaluated_iterations(run.estimator)
        t = iterations[index_of_least(run.path[iterations])]
        if best is None or run.path[t] < best[0]:
            best = run.path[t], run.estimator, t
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
