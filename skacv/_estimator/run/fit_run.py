"""The one fit: begin -> go on -> record, and the run that it makes."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils import check_random_state

from ..._compat import has_callbacks
from ..._warnings import warn
from ...optim.array_path import PathCache
from ...optim.blocks import threads_for
from ...optim.run import LiveRun
from ...optim.trajectory import Trajectory, n_planned_updates, phases_up_to
from ...records.paths import CoefPath
from ...records.record import Record
from ...records.run import Run, check_has_begun, check_is_whole, check_n_updates
from ...risk.left_out.replicas import replicas_at_a_time
from ...risk.left_out.side_runs import SideFolds
from ..data.checks import NAMES
from ..data.row_space import phases_on
from ..data.training_data import TrainingData
from ..estimates.folds import unseen_folds
from ..estimates.readers import ESTIMATES, FinishedRun, read_estimates
from ..parameters import are_same, copy_parameters, snapshot
from .plan import ModelSpec
from .progress import FitProgress
from .source import Source, source_of
from .warm_start import match_recorded, starting_point

# Parameters that may change while a run continues.
CHANGEABLE = (
    "max_iter",
    "patience",
    "tol",
    "store_every",
    "warm_start",
    "n_jobs",
    "verbose",
)


@dataclass(frozen=True, eq=False)
class FitTask:
    """What is known of a fit before its data are read."""

    spec: ModelSpec
    # The estimates that are switched on, from the table ESTIMATES.
    estimates: list
    # It draws batches, and all else that is random in the run.
    seed: int
    # The record that the run continues, or None.
    recorded: Record | None = None
    # Squared distances of the rows, if fits to the same rows share them.
    distances: Any = None


@dataclass(eq=False)
class FitRun(Run):
    """The run of a linear model or a kernel machine."""

    # It has the parameters, and is not fitted.
    model: Any
    task: FitTask
    source: Source
    data: TrainingData | None
    # Training rows and held-out rows of every fold, as rows of the data.
    folds: list | None
    # The group of every sample, or None.
    groups: Any
    # The phases of the whole run.
    plan: list
    # The updates so far. Like data and folds it is None once the run has ended.
    live: LiveRun | None
    # Parameters and metadata with which a fit may continue the run; None: none may.
    settings: dict | None = None
    # State of the estimates of a run in parts since they were last computed. Other
    # runs are read as a whole, and so to the last digit like one longer run.
    so_far: PathCache | None = None
    # The most updates that have been asked for.
    n_asked: int = 0
    _record: Record | None = None

    @staticmethod
    def runs_beside(model, task, data, folds, plan):
        """The folds that run in the same products, if memory allows; else None."""
        if not folds:
            return None
        problem, planned = data.problem, Trajectory.planned(plan)
        room = replicas_at_a_time(problem, n_planned_updates(plan, []))
        if effective_n_jobs(model.n_jobs) > 1 or len(folds) >= room:
            return None
        rule = task.spec.refit(data).of_run(planned)
        return SideFolds(problem, rule, unseen_folds(folds, planned.rows_seen()))

    @property
    def _threads(self):
        """A context: threads that pay for the size of the data."""
        return threads_for(self.data.problem.design.shape)

    @property
    def is_whole(self):
        """Whether updates may go on from the last one."""
        return self.live is not None and self.live.is_whole

    def _phases_to(self, n_updates):
        """The phases up to an update, or to a later one that has been asked for."""
        check_n_updates(n_updates)
        check_is_whole(self.is_whole)
        if n_updates is None:
            return self.plan
        return phases_up_to(self.plan, max(n_updates, self.n_asked))

    def go_on(self, n_updates=None, progress=None):
        self._record, planned = None, self._phases_to(n_updates)
        self.n_asked = sum(phase.n_updates for phase in planned)
        if n_updates is not None:
            self.so_far = self.so_far or PathCache(self.live.n_planned)
        with self._threads:
            return self._take_updates(planned, progress)

    def _take_updates(self, planned, progress):
        """Take the updates of a plan; return whether the run is complete."""
        self.live.go_on(planned, progress)
        return planned == self.plan

    def _trajectory(self):
        """The recorded iterates."""
        return self.live.trajectory

    def to_finished_run(self, **known):
        """What estimates are computed from; ``known`` are those computed before."""
        finished = FinishedRun(
            self.model,
            trajectory=self._trajectory(),
            data=self.data,
            folds=self.folds,
            side_runs=self.live.side_runs,
            groups=self.groups,
            spec=self.task.spec,
            estimates=self.task.estimates,
            **known,
        )
        return self.source.finish(finished)

    def record(self):
        if self._record is None:
            check_is_whole(self.is_whole)
            check_has_begun(self.live.t > 0)
            with self._threads:
                finished = self.to_finished_run(so_far=self.so_far or PathCache())
                self._record = self._record_of(finished)
            self.source.warn(self.model, finished)
        return self._record

    def end(self):
        record = self.record()
        if self.settings is None:  # no fit continues it
            self.live = self.data = self.folds = None
        return record

    def _record_of(self, finished):
        """The Record of a finished run."""
        model, spec, data = self.model, self.task.spec, self.data
        trajectory = finished.trajectory
        coef_path, intercept_path = finished.so_far.first(
            "coef",
            len(trajectory.coef),
            lambda part: data.coefficients(trajectory.coef[part]),
        )
        iterates, iteration = model._iterates(coef_path, intercept_path, finished)
        values = []
        for phase in trajectory.phases:
            value = spec.strengths.value_of(phase.penalty.strength, data)
            # The start counts with the first strength.
            values += [value] * (phase.n_updates + (not values))
        estimates = read_estimates(finished)
        names, results = _names_and_results(data)
        phases = trajectory.phases
        if data.basis is not None:
            phases = phases_on(phases, len(data.basis), data.has_constant)
        if data.problem.design.is_dual:  # its matrix is computed where it is needed
            kept = replace(data, problem=replace(data.problem, design=None))
        else:  # a machine with centres keeps these alone
            kept = data if not spec.is_dual and model.keep_data else None
        return Record(
            iterates=iterates,
            iteration=iteration,
            iterate=iterates.at(iteration),
            n_iter=trajectory.n_updates,
            loss=data.problem.loss,
            classes=results.pop("classes_", None),
            train_path=finished.train_path,
            objective_path=finished.objective_path,
            strengths={spec.strengths.name: np.array(values)},
            estimates=estimates,
            phases=phases,
            seed=self.task.seed,
            step_size=self.plan[0].schedule.step_size,
            weights=data.sample_weights,
            groups=self.groups,
            has_intercept=bool(model.fit_intercept or data.is_centered),
            columns=data.columns,
            data=kept,
            more=results | model._results(finished),
            names=names,
            offset=self.source.offset,
            devices=self.source.devices_of(model),
        )

    # ------------------------------------------------------------------ progress

    def progress_of(self, model, n_updates=None):
        verbose = self.model.verbose
        if not (verbose or has_callbacks(model)):
            return None
        planned, phases = self._phases_to(n_updates), self.live.phases
        n_planned = sum(phase.n_updates for phase in self.plan)
        return FitProgress(
            model,
            verbose,
            n_planned_updates(planned, phases),
            max(n_planned, self.live.t + n_planned_updates(self.plan, phases)),
            *self.source.passed,
            self._attributes_at,
        )

    def _attributes_at(self, coef):
        """Fitted attributes of an iterate, for callbacks."""
        data, t = self.data, self.live.t
        names, results = _names_and_results(data)
        record = Record(
            iterates=None,
            iteration=t,
            iterate=CoefPath(*data.coefficients(coef[None])).at(0),
            n_iter=t,
            loss=data.problem.loss,
            classes=results.pop("classes_", None),
            columns=data.columns,
            more=results,
            names=names,
            offset=self.source.offset,
            devices=self.source.devices_of(self.model),
        )
        return {**names, "record_": record}


def begin_fit(estimator, X, y, sample_weight, params, distances=None):
    """The run of a fit, before its first update, or one that a warm start continues."""
    model, spec = copy_parameters(estimator), estimator._spec()
    params = dict(params)
    source = source_of(spec, X, y, sample_weight, params.pop("offset", None))
    former, settings = None, None
    if estimator.warm_start:
        former = vars(estimator).get("record_")
    # Dual coefficients belong to their rows: a warm start needs the run itself.
    if estimator.warm_start and spec.is_dual:
        settings = {"passed": params}
        for name, value in model.get_params(deep=False).items():
            if name not in CHANGEABLE:
                settings[name] = value
    with threads_for(source.shape):
        source.validate(model, spec)
        run = estimator._run
        if run is not None and run.is_whole and settings is not None:
            if are_same(run.settings, settings) and run.source.is_same(source):
                plan = [replace(phase, n_updates=spec.max_iter) for phase in run.plan]
                task = replace(run.task, spec=spec)
                return replace(run, model=model, task=task, plan=plan)
        if spec.is_dual and former is not None:
            warn(
                "warm_start=True with other data or parameters than before, or with a "
                "model that was fitted without warm_start or pickled since, or whose "
                "last fit has failed: a new trajectory starts at zero, since dual "
                "coefficients belong to their rows.",
                UserWarning,
            )
            former = None
        # The batches of a record go on.
        seed = former and former.seed
        if seed is None:
            seed = int(check_random_state(model.random_state).randint(2**31))
        recorded = former if former is not None and former.dropped is None else None
        estimates = [e for e in ESTIMATES.values() if e.is_on(model)]
        task = FitTask(spec, estimates, seed, recorded, distances)
        return new_run(estimator._run_type, model, task, source, params, settings)


def new_run(kind, model, task, source, params, settings):
    """A new run: its data, its plan, and its start, new or at the last record."""
    data, folds, groups = source.problem(model, task, params)
    problem, spec = data.problem, task.spec
    shape, done = (problem.design.shape[1], problem.target.shape[1]), []
    start = np.zeros((1, *shape)) if problem.start is None else problem.start[None]
    if task.recorded is not None:
        start, done = starting_point(task.recorded, data)
    plan, side_runs = spec.plan(data, task.seed, folds), None
    if done:  # a record has no folds that could be continued
        plan = match_recorded(plan, done, problem.design.dtype)
    else:
        side_runs = source.side_runs(data)
        if side_runs is None:
            side_runs = kind.runs_beside(model, task, data, folds, plan)
    spec.solver.check([*done, *plan])
    live = source.live_type(
        problem, plan, start, done=done, tol=spec.tol, side_runs=side_runs
    )
    if settings is not None:
        settings = snapshot(settings)
    return kind(model, task, source, data, folds, groups, plan, live, settings)


def _names_and_results(data):
    """Names of the columns, and other results that are known before a run."""
    names, results = {}, {}
    for name, value in data.names.items():
        (names if name in NAMES else results)[name] = value
    return names, results
