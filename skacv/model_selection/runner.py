"""Running the candidates of a fit: in which order, side by side, within a limit."""

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils.parallel import delayed

from .._compat import callback_context, has_callbacks
from .advice import names_encoder
from .candidates import drop_left_out, group_candidates
from .comparison import BestRun, EndedRuns
from .criteria import PathCriterion
from .failures import Failed
from .race import race
from .report import FitReport
from .stages import Stages, list_starts
from .time_limit import Deadline, call_all, order_by_time, prices_of, too_short


@dataclass(frozen=True, eq=False)
class Budget:
    """What runs may take."""

    # Updates without improvement that end a run, "auto" or None.
    patience: Any
    # The least gain for which a run goes on, "auto" or 0.
    min_delta: Any
    n_jobs: Any
    # Whether combinations of parameters run a race before the full runs.
    races: bool
    # How far models on all rows grow, where only folds have to: as far as these
    # ("all"), to the "best" stage of these, or to the "first".
    growth: str
    deadline: Deadline | None = None
    limit: float | None = None
    # Whether runs whose length is open go on as long as that may improve what is kept.
    judges_open_ended: bool = False

    @classmethod
    def of(cls, owner, data, criteria):
        """The budget that parameters of a stopping estimator set."""
        is_path = isinstance(criteria.of_iterates, PathCriterion)
        return cls(
            patience=owner.patience,
            min_delta=owner.min_delta,
            n_jobs=1 if data.is_collection else owner.n_jobs,
            races=owner.search == "race",
            growth="best" if is_path and data.rule != "average" else "all",
            deadline=data.deadline,
            limit=owner.time_limit,
            judges_open_ended=owner.min_delta != 0 and is_path and data.has_rows,
        )


def run_all(owner, data, candidates, criteria, budget, groups):
    """Run all candidates, each with its part of the callbacks' tree.

    Afterwards a candidate has its run, or the reason why it has none. ``groups`` are
    those of the rows, or None.
    """
    report = FitReport(owner, data, candidates, criteria) if owner.verbose else None
    if report is not None:
        report.print_left_out()
    with names_encoder(owner, data.passed_X):
        if budget.races:
            race(candidates, criteria, data, budget, groups, report)
        run_in_full(owner, data, drop_left_out(candidates), criteria, budget, report)
        drop_left_out(candidates)  # an error if all have failed


def run_in_full(owner, data, candidates, criteria, budget, report):
    """Run candidates group by group, and write what every run has left."""
    groups = group_candidates(candidates)
    stages = Stages(
        criteria.of_iterates, budget.patience, budget.min_delta, budget.deadline
    )
    prices, order, last = [None] * len(groups), range(len(groups)), []
    # Before a deadline all runs may be cut, those that take long are the last.
    if budget.deadline is not None:
        prices = prices_of(groups, data.y)
        order = order_by_time(groups, prices, data.essential)
    elif budget.judges_open_ended:
        last = [i for i in order if groups[i][0].member in data.open_ended]
        order = [*(i for i in order if i not in last), *last]

    def waves():
        """Calls of the runs: those that are judged beside others come last."""
        first = [i for i in order if i not in last]
        yield [
            (list_starts(groups[i], data.y, budget.growth), prices[i]) for i in first
        ]
        # One that runs alone has all threads, and needs no process.
        calls, n_threads = [], budget.n_jobs if len(last) == 1 else None
        for i in last:
            beside = runs_beside(groups[i][0], candidates, criteria)
            starts = list_starts(groups[i], data.y, budget.growth, n_threads)
            calls.append((starts, prices[i], beside))
        if last:
            yield calls

    if len(groups) == 1 and budget.deadline is None and not has_callbacks(owner):
        results = [stages.run_group(*call) for wave in waves() for call in wave]
    else:
        of_runs = owner, data, stages.run_group, waves(), len(groups)
        results = run_side_by_side(*of_runs, budget.n_jobs, budget.deadline)
    for index, results_of_group in zip(order, results, strict=True):
        for candidate, result in zip(groups[index], results_of_group, strict=True):
            if result is None:
                candidate.leave_out(too_short(budget.limit))
            elif isinstance(result, Failed):
                candidate.leave_out(result)
            else:
                candidate.run = result
        if report is not None:
            report.add(groups[index])


def runs_beside(candidate, candidates, criteria):
    """What has been run, beside which a candidate is judged; None if nothing has.

    Without a blend runs are compared where they have the same loss.
    """
    runs = []
    for one in candidates:
        if one.run is None:
            continue
        losses = criteria.losses
        if criteria.blend or losses[one.member] == losses[candidate.member]:
            runs.append(one.run)
    if not runs:
        return None
    comparison = BestRun
    if criteria.blend is not None:
        # Weights of all rows say as much here, and take a small part of the time.
        comparison = replace(criteria.blend, is_averaged=False).compare
    return EndedRuns(runs, criteria.of_iterates, comparison)


def run_side_by_side(owner, data, run, waves, n_groups, n_jobs, deadline=None):
    """Run groups of models in parallel, each as a task of the owner's callbacks.

    Yielded is the result of ``run``, a :meth:`Stages.run_group`, for each of the
    ``n_groups`` groups (its arguments), in order. They come in ``waves``, iterated
    over: the next has what it needs of the results before.
    """
    context, of_data = None, None
    if has_callbacks(owner):
        of_data = {"X": data.X, "y": data.y, "metadata": data.params or None}
        context = callback_context(owner, n_groups)
        context.call_on_fit_task_begin(estimator=owner, **of_data)
    for calls in waves:
        tasks = []
        for call in calls:
            task = delayed(run)(*call)
            if context is not None:
                subcontext = context.subcontext(task_name="trajectory")
                task = delayed(run_task)(owner, subcontext, of_data, run, call)
            tasks.append(task)
        yield from call_all(tasks, n_jobs if len(tasks) > 1 else 1, deadline)
    if context is not None:
        context.call_on_fit_task_end(estimator=owner, **of_data)


def run_task(owner, task, of_data, run, call):
    """Run a group of models as one task of the callbacks."""
    with ExitStack() as contexts:
        for start in call[0]:
            contexts.enter_context(task.propagate_callback_context(start.model))
        task.call_on_fit_task_begin(estimator=owner, **of_data)
        results = run(*call)
    task.call_on_fit_task_end(estimator=owner, **of_data)
    return results
