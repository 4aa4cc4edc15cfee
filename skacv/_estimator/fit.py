"""The one fit: validate -> Problem -> run -> Trajectory -> readers -> attributes."""

from abc import ABCMeta, abstractmethod
from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from .._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    with_callbacks,
)
from ..optim.phases import Phase, first_updates, n_planned_updates
from ..optim.run import LiveRun
from ..risk.left_out.costs import Run
from ..risk.left_out.methods import n_rows_worth
from ..risk.refit import Refit
from .conditioning import warn_of_uneven_columns
from .folds import RecordingFit
from .left_out import FEWEST_ROWS, check_loo
from .progress import FitProgress
from .readers import FinishedRun, read
from .strengths import N_STRENGTHS, PenaltyStrengths
from .warm_start import starting_point

# Parameters that all estimators have.
RUN_CONSTRAINTS = {
    "fit_intercept": ["boolean"],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "step_size": [
        Interval(Real, 0, None, closed="neither"),
        StrOptions({"auto"}),
    ],
    "loo": [
        StrOptions({"auto"}),
        Interval(Integral, 2, None, closed="left"),
        "boolean",
    ],
    "cv": ["cv_object"],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


@dataclass
class BegunRun:
    """A run, what it is of, and what it carries beside.

    Attributes
    ----------
    data : TrainingData
    folds : list of (ndarray of int, ndarray of int)
    seed : int
        Draws batches, and whatever else belongs to the run.
    plan : list of Phase
        All that the parameters ask for.
    live : LiveRun
    carried : LabelsAndFolds or None
    trajectory : Trajectory or None
        What counts of the record, once the run has gone on.
    best : int or None
        The best iterate so far, where the run is judged while it goes on.
    known : dict of dict
        By the name of an estimate, what it was judged by.
    settings : dict or None
        Parameters that another fit must have to continue it; None where none may.
    X : {ndarray, sparse matrix} or None
        And the data.
    """

    data: object
    folds: list
    seed: int
    plan: list
    live: LiveRun
    carried: object = None
    trajectory: object = None
    best: int | None = None
    known: dict = field(default_factory=dict)
    settings: dict | None = None
    X: object = None

    def finished(self, estimator):
        """What estimates are read from."""
        return FinishedRun(
            estimator,
            self.trajectory,
            self.data,
            self.folds,
            self.carried,
            self.best,
            self.known,
        )


class TrajectoryModel(
    PenaltyStrengths,
    RecordingFit,
    CallbackSupportMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of linear models that keep and judge their trajectory.

    A subclass has the parameters of its ``__init__`` and says what
    :class:`PenaltyStrengths` asks for, and

    ``_solvers``
        the schedule class of every solver name;
    ``_is_quadratic``
        whether the loss is the squared error;
    ``_prepared(X, y, sample_weight)``
        the problem that they make, in a :class:`TrainingData`.

    Where a solver is not a schedule of a step size and all rows alone, it also says

    ``_schedule(step_size, problem, seed)``
        the schedule;
    ``_smoothness(problem, schedule)``, \
``_automatic_step(smoothness, schedule, problem)``, \
``_step_size(penalties, problem, schedule)``
        the constant of its gradients; the automatic step; the step, where it is not
        to be the automatic one;
    ``_planned_update(n_rows)``, ``_outputs(y)``
        an update of the kind that a run will take, and its outputs: what leaving
        rows out depends on;
    ``_check_record(phases)``
        raises on phases that do not go together.

    ``_warn_of(trajectory, data)`` says what a user should know of a run. Where it has
    no such parameters, ``loo_correction`` and ``keep_data`` are attributes.
    """

    _solvers: dict = {}
    _is_quadratic = False
    # What a subclass has no parameter for.
    loo_correction = True
    keep_data = False

    @abstractmethod
    def _prepared(self, X, y, sample_weight):
        """Validated data as a problem; nothing is marked on the estimator."""

    def _n_columns(self, n_features):
        """Coefficients of an output, an intercept among them where it is one."""
        return n_features

    def _schedule(self, step_size, problem, seed):
        return self._solvers[self.solver](step_size)

    # ------------------------------------------------------------------ fit

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, sample_weight=None, **params):
        """Run the algorithm once and read the risk of every iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data. float32 and float64 are kept, CSR is not densified.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several only where the class takes them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative. A row of weight zero is left out.
        **params : dict
            For the splitter ``cv``: ``groups``, or with metadata routing enabled
            what the splitter requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            On invalid parameters or data, where a warm start cannot go on, and
            where the iterates diverge (the message names the largest stable step,
            if ``step_size`` is larger). The estimator is then left as it was.
        TypeError
            On keywords that fit does not take.
        """
        self._fit(X, y, sample_weight, params, resume=self.warm_start)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_up_to(self, n_updates, X, y, sample_weight=None, **params):
        """Begin a run, or go on with it, up to so many updates in all.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As for ``fit``.

        Returns
        -------
        bool
            Whether that was the whole plan.
        """
        return self._fit(X, y, sample_weight, params, resume=True, n_updates=n_updates)

    def _fit(self, X, y, sample_weight, params, *, resume, n_updates=None):
        # Nothing reaches self before everything has succeeded.
        begun = self._begun(X, y, sample_weight, params, resume)
        planned = first_updates(begun.plan, n_updates)
        progress = self._progress(begun, planned, X, y, sample_weight)
        is_over = self._go_on(begun, planned, progress)
        run = begun.finished(self)
        attributes = read(run)
        attributes["step_size_"] = begun.plan[0].schedule.step_size
        progress.finish(run.trajectory.coef[-1])
        self._warn_of(run.trajectory, run.data)
        self._replace_fitted({**attributes, **self._kept(run.trajectory, begun)})
        return is_over

    def _begun(self, X, y, sample_weight, params, resume):
        """A run of these data: at its start, or where the last fit has ended."""
        seed = self._batch_seed(resume)
        data = self._prepared(X, y, sample_weight)
        check_loo(self.loo, len(data.rows))
        folds = self._folds(X, y, data, params)
        start, done = starting_point(self, data, resume)
        plan = self._plan(data, seed)
        self._check_record([*done, *plan])
        live = LiveRun(data.problem, plan, start, done=done, tol=self.tol)
        return BegunRun(data, folds, seed, plan, live)

    def _go_on(self, begun, planned, progress):
        """Take the updates of a plan; whether that was all of it."""
        begun.live.go_on(planned, progress)
        begun.trajectory = begun.live.trajectory
        return planned == begun.plan

    def _plan(self, data, seed):
        """All phases that the parameters ask for."""
        problem, n_columns = data.problem, data.problem.design.shape[1]
        penalties = [self._penalty(s, n_columns) for s in self._strengths(data)]
        schedule = self._schedule(1.0, problem, seed)
        step_size = self._step_size(penalties, problem, schedule)
        schedule = replace(schedule, step_size=step_size)
        return [Phase(penalty, schedule, self.max_iter) for penalty in penalties]

    def _refit(self, data):
        """What this fit would be without some of its rows."""
        return Refit(recentres=data.is_centered, is_sum=self._is_sum)

    def _check_record(self, phases):
        """Raise where recorded and planned phases do not go together in one record."""
        if len({bool(phase.first_update.n_batches) for phase in phases}) > 1:
            raise ValueError(
                "warm_start=True goes on in batches where the run was in batches, and "
                "on all rows where it was on all rows: a row that is left out counts "
                "otherwise in batches. Take such a solver and batch_size, or "
                "warm_start=False."
            )

    def _progress(self, begun, planned, X, y, sample_weight):
        """What follows the run."""
        data = begun.data

        def reconstruct(coef):
            return {**data.names, **self._coefficients(*data.coefficients(coef[None]))}

        return FitProgress(
            self,
            n_done=begun.live.t,
            n_planned=n_planned_updates(planned, begun.live.phases),
            X=X,
            y=y,
            sample_weight=sample_weight,
            reconstruct=reconstruct,
        )

    @staticmethod
    def _coefficients(coef_path, intercept_path):
        """Those of the last row of a path, as fitted attributes."""
        return {"coef_": coef_path[-1].copy(), "intercept_": intercept_path[-1]}

    def _recorded(self, coef_path, intercept_path, run):
        """The recorded coefficients, as fitted attributes."""
        return {
            **self._coefficients(coef_path, intercept_path),
            "coef_path_": coef_path,
            "intercept_path_": intercept_path,
        }

    def _kept(self, trajectory, begun):
        """What another fit, or a prediction interval, goes on from."""
        return {
            "_phases": trajectory.phases,
            "_seed": begun.seed,
            "_loss": begun.data.problem.loss,
            "_has_intercept": bool(self.fit_intercept),
            "_data": begun.data if self.keep_data else None,
            "_replicas": None,
        }

    def _warn_of(self, trajectory, data):
        """What a user should know of the run."""
        warn_of_uneven_columns(data.problem, trajectory)

    def check_data(self, X, y):
        """Raise where ``fit`` would, on data that it does not take.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Raises
        ------
        ValueError
        """
        self._prepared(X, y, None)

    def leaves_one_out_cheaply(self, X, y):
        """Whether leaving out every row costs little, whatever the run will do.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        bool

        Raises
        ------
        ValueError
            If y are no targets for this estimator.
        """
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        if len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        run = self._planned_run(shape, y)
        return n_rows_worth(run, n_active=run.shape[1]) == shape[0]

    def _planned_run(self, shape, y):
        """What is known of a run before it, on X of that shape."""
        values = getattr(self, self._strength_name)
        n_values = N_STRENGTHS if isinstance(values, str) else np.size(values)
        n_columns = self._n_columns(shape[1])
        update = self._planned_update(shape[0])
        # Any strengths, if they differ: one update is that of several or not.
        penalties = [self._penalty(1.0 + k, n_columns) for k in range(n_values)]
        return Run(
            shape=(shape[0], n_columns),
            lengths=[self.max_iter] * n_values,
            rules=[(update, penalty) for penalty in penalties],
            is_quadratic=self._is_quadratic,
            correction=self.loo_correction,
            **self._outputs(y),
        )

    def _planned_update(self, n_rows):
        """An update of the kind that a run will take."""
        return next(iter(self._solvers[self.solver](1.0).updates()))

    def _outputs(self, y):
        """What is known of the outputs before a run."""
        shape = np.asarray(y).shape
        return {"n_outputs": shape[1] if len(shape) > 1 else 1}

    def _batch_seed(self, resume):
        """What draws batches: the same as before where a run goes on."""
        if resume and hasattr(self, "_seed"):
            return self._seed
        return int(check_random_state(self.random_state).randint(2**31))

    def _step_size(self, penalties, problem, schedule):
        """1 / L, or the largest step that is stable without any single row.

        That raises L to at most L over the share of the weight that stays. What is
        read from a run has no part in its step.
        """
        if self.step_size != "auto":
            return float(self.step_size)
        curvature = max(penalty.curvature for penalty in penalties)
        smoothness = self._smoothness(problem, schedule) + curvature
        if smoothness == 0:
            return 1.0
        step_size = self._automatic_step(smoothness, schedule, problem)
        share = 1 - float(problem.row_weights.max())
        return min(step_size, share * float(schedule.largest_stable_step(smoothness)))

    def _automatic_step(self, smoothness, schedule, problem):
        """What the automatic step is, where it is stable without rows as well."""
        return 1 / smoothness

    def _smoothness(self, problem, schedule):
        """The largest curvature of the gradients that are taken."""
        return problem.smoothness

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
