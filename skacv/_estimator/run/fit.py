"""The one fit: validate -> source -> problem -> run -> estimates -> attributes."""

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..._compat import (
    CALLBACKS,
    CallbackSupportMixin,
    _fit_context,
    with_callbacks,
)
from ..._warnings import warn
from ...optim.array_path import PathCache
from ...optim.blocks import threads_for
from ...optim.contraction import Shares
from ...optim.design import ROUNDINGS
from ...optim.trajectory import Trajectory, n_planned_updates, phases_up_to
from ...records.descriptors import recorded
from ...records.paths import CoefPath
from ...records.record import Record
from ...risk.left_out.replicas import replicas_at_a_time
from ...risk.left_out.side_runs import SideFolds
from ..data.checks import NAMES
from ..data.row_space import phases_on
from ..data.training_data import column_data, replace_fitted
from ..devices import devices_of, in_numpy
from ..estimates.fitted_state import MOST_KEPT
from ..estimates.folds import routing_of, unseen_folds
from ..estimates.readers import ESTIMATES, read_estimates
from ..parameters import are_same, snapshot
from .compared import ComparedModel
from .data_reduction import reduce_data
from .plan import ModelSpec
from .progress import FitProgress
from .source import Source, source_of
from .warm_start import as_recorded, starting_point

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


@dataclass
class FitRun:
    """A run of a fit, which another fit may continue."""

    spec: ModelSpec
    source: Source
    estimates: list  # of the table ESTIMATES, if they are switched on
    seed: int  # of batches, and of all else that belongs to the run
    data: Any = None
    folds: list = field(default_factory=list)  # (training rows, held-out rows)
    groups: Any = None  # of every sample, or None
    plan: list = field(default_factory=list)  # the phases of the whole run
    side_runs: Any = None
    live: Any = None  # the run so far
    trajectory: Any = None  # its record, without iterates that patience discards
    best: int | None = None  # the best iterate, if the run is evaluated as it goes
    # Estimates by name, as far as computed.
    computed: dict = field(default_factory=dict)
    # State of the estimates of a run in stages since they were last computed. Other
    # runs are read as a whole, and so to the last digit like one longer run.
    so_far: PathCache | None = None
    # Parameters and metadata of a fit that may continue the run; None: no fit may.
    settings: dict | None = None


class TrajectoryModel(CallbackSupportMixin, ComparedModel):
    """Base class of models that record their trajectory and estimate its risk."""

    intercept_ = recorded(
        lambda record: record.iterate.intercept, "Intercept of the iterate in use."
    )
    intercept_path_ = recorded(
        lambda record: record.iterates and record.iterates.intercept,
        "Intercept of every iterate.",
    )
    objective_path_ = recorded(
        lambda record: record.objective_path,
        "Mean training loss of every iterate and its penalty.",
    )
    step_size_ = recorded(lambda record: record.step_size, "The step size of the run.")
    _loss = recorded(lambda record: record.loss, "The loss that was minimised.")

    # A subclass defines ``_spec()``, a ModelSpec of its run, and ``_encoded_samples(X,
    # y, sample_weight)``, which returns validated Samples and an EncodedTarget.
    _follows_X = True
    get_metadata_routing = routing_of

    # ------------------------------------------------------------------ fit

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Run the algorithm once and estimate the risk of every iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, in float32 or float64. Sparse matrices are not densified.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several only if the class supports them.
        sample_weight : array-like of shape (n_samples,), default=None
            Nonnegative weights of the rows. Rows with weight zero are ignored.
        **params : dict
            Passed to the splitter ``cv``, such as ``groups``; with metadata routing
            enabled, what it requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, a warm start is impossible, or the
            iterates diverge (the message gives the largest stable step). The estimator
            is left unchanged.
        TypeError
            If fit gets unknown keyword arguments.
        """
        passed = X, y, sample_weight
        _, estimates = fit_to(self, passed, params, self.warm_start)
        if estimates:
            self._keep_predictions(MOST_KEPT)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_up_to(
        self,
        n_updates: int,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> bool:
        """Start or continue a run, up to a given total number of updates.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As in ``fit``. The same objects are not validated again: do not change them
            in place until :meth:`fit`, :meth:`at_iteration` or a pickle ends the run,
            since held-out predictions are computed from them.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        is_over, _ = fit_to(self, (X, y, sample_weight), params, True, n_updates)
        return is_over

    # ------------------------------------------------ overridden by kernel machines

    def _keeps_rows(self, X):
        """Whether the fitted estimator keeps the rows, as a copy."""
        return self.keep_data

    def _data_of(self, run, samples, encoded, folds, recorded):
        """The problem of the samples, and the folds of samples as rows of it."""
        data = column_data(samples, encoded, self.fit_intercept, self.standardize)
        needs_rows = False
        for estimate in run.estimates:
            needs_rows |= estimate.needs != "moments"
        if needs_rows and len(data.rows) >= len(data.center):
            return data, folds
        return reduce_data(self, run, data, folds, recorded)

    def _side_runs(self, run):
        """The folds that run in the same products, if memory allows."""
        if not run.folds:
            return None
        problem, planned = run.data.problem, Trajectory.planned(run.plan)
        room = replicas_at_a_time(problem, n_planned_updates(run.plan, []))
        if effective_n_jobs(self.n_jobs) > 1 or len(run.folds) >= room:
            return None
        rule = run.spec.refit(run.data).of_run(planned)
        return SideFolds(problem, rule, unseen_folds(run.folds, planned.rows_seen()))

    def _go_on(self, run, planned, progress):
        """Run the updates of a plan; return whether it is complete."""
        run.live.go_on(planned, progress)
        run.trajectory = run.live.trajectory
        return planned == run.plan

    def _iterates(self, coef_path, intercept_path, run):
        """The iterates to keep, and the number of the one in use."""
        return CoefPath(coef_path, intercept_path), run.trajectory.n_updates

    def _results(self, run):
        """Further results of a run, by the names of their attributes."""
        return {}

    def _warn_of(self, run):
        """Warn about the run."""
        trajectory, data = run.trajectory, run.data
        warn_of_uneven_columns(data.observed, trajectory, data.has_constant)
        if data.has_constant and is_regressor(self):
            warn_of_far_targets(data.problem, trajectory)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = self._follows_X
        return tags


def fit_to(estimator, passed, params, resume, n_updates=None):
    """Fit to X, y and sample_weight, or continue a run, to its end or ``n_updates``."""
    # Returned are whether the run is complete, and the estimates that are on.
    # Nothing is set on the estimator before everything has succeeded.
    # The specification of the run, and its rows.
    spec = estimator._spec()
    source = source_of(spec, *passed)
    former, live, settings = estimator, None, None
    # A run can be continued with the same parameters and metadata.
    if resume or n_updates is not None:
        former, settings = in_numpy(estimator), {"passed": params}
        for name, value in estimator.get_params(deep=False).items():
            if name not in CHANGEABLE:
                settings[name] = value
        live = former._live if resume else None
    with threads_for(source.shape):
        # The run of the last fit, if it continues, or a new one.
        continues = live is not None and are_same(live.settings, settings)
        has_same = continues and n_updates is not None and live.source.is_of(source)
        if not has_same:
            source.validate(former, spec)
            continues = continues and live.source.is_same(source)
        if continues:
            plan = [replace(phase, n_updates=spec.max_iter) for phase in live.plan]
            run = replace(live, spec=spec, plan=plan)
        else:
            run = _new_run(former, spec, source, params, resume, n_updates)
            if n_updates is not None or (resume and spec.is_dual):
                run.settings = snapshot(settings)
    planned, progress = run.plan, None
    if n_updates is not None:
        planned = phases_up_to(run.plan, n_updates)
    if estimator.verbose or CALLBACKS in vars(estimator):
        progress = _progress(estimator, source, run, planned)
    # The updates of the run, and its estimates.
    with threads_for(run.data.problem.design.shape):
        is_over = estimator._go_on(run, planned, progress)
        finished = source.finish(former, run)
        record = _record_of(former, run, finished)
    devices = None
    if source.is_foreign:
        devices = devices_of(estimator, source.X, source.y)
    if progress is not None:
        progress.finish(run.trajectory.coef[-1], record.estimates)
    source.warn(former, finished)
    names, _ = _names_and_results(run.data)
    state = {
        "record_": record,
        "_devices": devices,
        "_live": run if run.settings else None,
        "_replicas": None,
        # The rows that partial_fit has added are not those of this fit.
        "_summary": None,
    }
    replace_fitted(estimator, names | state)
    return is_over, run.estimates


def _record_of(estimator, run, finished):
    """The record of a finished run."""
    data, trajectory, spec = run.data, run.trajectory, run.spec
    coef_path, intercept_path = finished.so_far.first(
        "coef",
        len(trajectory.coef),
        lambda part: data.coefficients(trajectory.coef[part]),
    )
    iterates, iteration = estimator._iterates(coef_path, intercept_path, finished)
    values = []
    for phase in trajectory.phases:
        value = spec.strengths.value_of(phase.penalty.strength, data)
        # The start counts with the first strength.
        values += [value] * (phase.n_updates + (not values))
    estimates = read_estimates(finished)
    _, more = _names_and_results(data)
    phases = trajectory.phases
    if data.basis is not None:
        phases = phases_on(phases, len(data.basis), data.has_constant)
    if data.problem.design.is_dual:  # the kernel matrix is computed where it is needed
        kept = replace(data, problem=replace(data.problem, design=None))
    else:  # a machine with centres keeps these alone
        kept = data if not spec.is_dual and estimator.keep_data else None
    return Record(
        iterates=iterates,
        iteration=iteration,
        iterate=iterates.at(iteration),
        n_iter=trajectory.n_updates,
        loss=data.problem.loss,
        classes=more.pop("classes_", None),
        train_path=finished.train_path,
        objective_path=finished.objective_path,
        strengths={spec.strengths.name: np.array(values)},
        estimates=estimates,
        phases=phases,
        seed=run.seed,
        step_size=run.plan[0].schedule.step_size,
        weights=data.sample_weights,
        groups=run.groups,
        has_intercept=bool(estimator.fit_intercept),
        columns=data.columns,
        data=kept,
        more=more | estimator._results(finished),
    )


def _new_run(estimator, spec, source, params, resume, n_updates):
    """A new run: its data, its plan, and its start, at zero or at the last record."""
    record = vars(estimator).get("record_")
    if spec.is_dual and resume:
        is_lost = n_updates is None and record is not None
        if estimator._live is not None or is_lost:
            warn(
                "warm_start=True with other data or parameters than before, or with a "
                "model that was fitted without warm_start or pickled since: a new "
                "trajectory starts at zero, since dual coefficients belong to their "
                "rows.",
                UserWarning,
            )
    # A record of dual coefficients cannot be continued on other rows.
    if resume and not spec.is_dual and record is not None:
        seed = record.seed
    else:
        seed = int(check_random_state(estimator.random_state).randint(2**31))
    estimates = [e for e in ESTIMATES.values() if e.is_on(estimator)]
    run = FitRun(spec, source, estimates, seed)
    recorded = None
    if resume and not spec.is_dual and record is not None and record.dropped is None:
        recorded = record
    run.data, run.folds, run.groups = source.problem(estimator, run, params, recorded)
    problem = run.data.problem
    shape, done = (problem.design.shape[1], problem.target.shape[1]), []
    start = np.zeros((1, *shape))
    if recorded is not None:
        start, done = starting_point(recorded, run.data)
    run.plan = spec.plan(run.data, seed, run.folds)
    if done:
        run.plan = as_recorded(run.plan, done, problem.design.dtype)
    elif run.side_runs is None:  # a record has no folds that could be continued
        run.side_runs = estimator._side_runs(run)
    spec.solver.check([*done, *run.plan])
    run.live = source.live_type(
        problem, run.plan, start, done=done, tol=spec.tol, side_runs=run.side_runs
    )
    if n_updates is not None:
        run.so_far = PathCache(run.live.n_planned)
    return run


def _progress(estimator, source, run, planned):
    """Progress reports, for callbacks and for printing."""
    data, phases = run.data, run.live.phases

    def reconstruct(coef):
        names, more = _names_and_results(data)
        path = data.coefficients(coef[None])
        t = run.live.t
        record = Record(
            iterates=None,
            iteration=t,
            iterate=CoefPath(*path).at(0),
            n_iter=t,
            loss=data.problem.loss,
            classes=more.pop("classes_", None),
            columns=data.columns,
            more=more,
        )
        devices = None
        if source.is_foreign:
            devices = devices_of(estimator, source.X, source.y)
        return {**names, "record_": record, "_devices": devices}

    n_planned = sum(phase.n_updates for phase in run.plan)
    return FitProgress(
        estimator,
        n_planned_updates(planned, phases),
        max(n_planned, run.live.t + n_planned_updates(run.plan, phases)),
        *source.passed,
        reconstruct,
    )


def _names_and_results(data):
    """Names of the columns, and other results that are known before a run."""
    names, more = {}, {}
    for name, value in data.names.items():
        (names if name in NAMES else more)[name] = value
    return names, more


# ---------------------------------------------------------------- slow runs


def warn_of_uneven_columns(
    problem, trajectory, has_constant, n_sampled=500, ratio=10, share=0.1
):
    """Warn if large columns limit the step and small ones are far from their limits."""
    # The largest is ``ratio`` times as large as a quarter of all columns, and these
    # have covered less than a ``share`` of the distance to their limits.
    if not trajectory.coef[-1].any():
        return
    for update, _ in trajectory.first_updates():
        if not update.is_affine:
            return
        # A preconditioner makes columns more even.
        if update.preconditioner is not None and len(update.preconditioner.rows):
            return
    n_rows = len(problem.target)
    rows = np.unique(np.linspace(0, n_rows - 1, n_sampled).astype(int))
    # The last column may be that of the intercept.
    design = problem.design.features if has_constant else problem.design
    design = design.rows(rows)
    squares = design.column_sizes()[0] ** 2 / design.shape[0]
    if design.center is not None:  # columns that are constant but for rounding
        rounding = ROUNDINGS * np.finfo(float).eps * design.center[:, 0]
        squares[squares <= rounding**2] = 0
    squares = squares[squares > 0]
    if not squares.size:
        return
    small = np.quantile(squares, 0.25, method="lower")
    if squares.max() <= ratio**2 * small:
        return
    curvature = problem.loss.curvature_bound(problem.target) * small
    covered = trajectory.followed_by(Shares(np.array([curvature]))).current[0]
    if covered < share:
        ratio = np.sqrt(squares.max() / small)
        n_slow = np.count_nonzero(squares <= small)
        warn(
            f"The largest column of X is {ratio:.0f} times as large as at least "
            f"{n_slow} of the {len(squares)} columns and limits the step size: after "
            f"{trajectory.n_updates} updates the coefficients of these have covered "
            f"at most {100 * covered:.2g}% of the distance to their limits. Scale the "
            "columns first (StandardScaler), or increase max_iter.",
            ConvergenceWarning,
        )


def warn_of_far_targets(problem, trajectory):
    """Warn where the last iterate predicts worse than the best constant, by 1%."""

    def error(constant):
        with np.errstate(over="ignore"):
            return problem.mean_loss(np.full_like(problem.target, constant))

    best = minimize_scalar(error, bracket=(0.0, 1.0)).fun
    if problem.mean_loss(trajectory.predictor[-1]) > 1.01 * best:
        warn(
            "The last iterate predicts worse than a constant: the intercept has not "
            "converged yet. Scale the columns (StandardScaler) and, if the loss "
            "allows, the target (TransformedTargetRegressor), or increase max_iter.",
            ConvergenceWarning,
        )
