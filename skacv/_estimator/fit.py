"""The one fit: validate -> Problem -> run -> Trajectory -> readers -> attributes."""

from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils import check_random_state

from .._compat import (
    CallbackSupportMixin,
    _fit_context,
    on_host,
    with_callbacks,
)
from ..optim.growing import SoFar
from ..optim.phases import first_updates, n_planned_updates
from ..optim.run import LiveRun
from ..optim.trajectory import Trajectory
from ..risk.left_out.carried import LabelsAndFolds
from ..risk.left_out.replicas import replicas_beside
from ..risk.refit import Refit
from .array_rows import ArrayRows
from .begun import BegunRun
from .collections import is_collection, on_workers
from .conditioning import warn_of_far_targets, warn_of_uneven_columns
from .data import column_data
from .folds import RoutesToFolds
from .following import Follows, in_numpy, of_record
from .held_out_costs import costs_of_held_out
from .left_out import unseen_folds
from .plan import PlannedModel
from .progress import FitProgress
from .readers import ESTIMATES, read, setting_of
from .recording import RecordsTrajectory
from .sides import on_smaller_side
from .warm_start import as_recorded, starting_point

# Parameters that a run which goes on may have anew.
AT_ANY_TIME = (
    "max_iter",
    "patience",
    "tol",
    "store_every",
    "warm_start",
    "n_jobs",
    "verbose",
)


class TrajectoryModel(
    PlannedModel,
    RoutesToFolds,
    Follows,
    RecordsTrajectory,
    CallbackSupportMixin,
    BaseEstimator,
):
    """Base class of linear models that keep and judge their trajectory.

    A subclass has the parameters of its ``__init__`` and says what
    :class:`PlannedModel` asks for, and

    ``_coded_samples(X, y, sample_weight)``
        validated :class:`Samples` and their targets as the loss takes them,
        :class:`Coded`: as regressors do, or classifiers.

    It may also say ``_check_record(phases)``, which raises on phases that do not go
    together, and ``_warn_of(run)``, what a user should know of a FinishedRun.
    """

    _follows_X = True
    # Whether rows may stay on workers.
    _takes_collections = True
    # While a run may go on.
    _live = None

    def __getattr__(self, name):
        try:
            return object.__getattribute__(self, name)
        except AttributeError as error:
            if "n_iter_" in vars(self) and (setting := setting_of(self, name)):
                raise AttributeError(f"{error}: fit it with {setting}.") from None
            raise

    @property
    def _keeps_data(self):
        """``keep_data``, where there is that parameter."""
        return getattr(self, "keep_data", False)

    def _prepared(self, X, y, sample_weight):
        """Validated data as a problem."""
        samples, coded = self._coded_samples(X, y, sample_weight)
        return self._column_data(samples, coded)

    # ------------------------------------------------------------------ fit

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None, **params):
        """Run the algorithm once and estimate the risk of every iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data, in float32 or float64. Sparse matrices are not densified.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several only if the class supports them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, not negative. Rows with weight zero are ignored.
        **params : dict
            Passed on to the splitter ``cv``: ``groups``, or with metadata routing
            enabled what the splitter requests.

        Returns
        -------
        self : object
            Fitted estimator.

        Raises
        ------
        ValueError
            If parameters or data are invalid, if a warm start is impossible, or if the
            iterates diverge (the message has the largest stable step, if ``step_size``
            exceeds it). The estimator is then left unchanged.
        TypeError
            If fit gets unknown keyword arguments.
        """
        self._fit(X, y, sample_weight, params, resume=self.warm_start)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_up_to(self, n_updates, X, y=None, sample_weight=None, **params):
        """Start a run, or continue it, up to a given total number of updates.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As for ``fit``. X, y and sample_weight that are passed again, the same
            objects, are not looked at again: do not change them in place.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        return self._fit(X, y, sample_weight, params, resume=True, n_updates=n_updates)

    def _fit(self, X, y, sample_weight, params, *, resume, n_updates=None):
        # Nothing reaches self before everything has succeeded.
        passed_y = y
        if not is_collection(X):
            y, sample_weight = on_host(y), on_host(sample_weight)
        former = in_numpy(self)
        begun = former._begun(X, y, sample_weight, params, resume, n_updates)
        planned = first_updates(begun.plan, n_updates)
        progress = self._progress(begun, planned, X, passed_y, sample_weight)
        is_over = self._go_on(begun, planned, progress)
        run = begun.finished(former)
        attributes = read(run)
        attributes["step_size_"] = begun.plan[0].schedule.step_size
        progress.finish(run.trajectory.coef[-1], attributes)
        begun.warn(self, run)
        attributes |= self._kept(run.trajectory, begun)
        self._replace_fitted(self._following(attributes, X, passed_y))
        return is_over

    def _begun(self, X, y, sample_weight, params, resume, n_updates=None):
        """A run of these data: at its start, or where the last fit has ended."""
        if self._stays_on_workers(X):
            asked = X, y, sample_weight, params, resume, n_updates
            return on_workers("fit").begun(self, *asked)
        passed, settings = (X, y, sample_weight), self._settings()
        is_stage = n_updates is not None and self._live is not None
        if is_stage and self._live.was_passed(passed, settings):
            return self._live.with_plan_of(self.max_iter)
        rows = self._rows(X, y, sample_weight)
        if resume and self._live is not None:
            if self._live.is_of(rows, settings):
                return self._live.with_plan_of(self.max_iter)
            self._warn_of_another_run()
        seed = self._batch_seed(resume)
        data, folds = rows.problem(self, params, seed, resume)
        start, done = self._start(data, resume)
        plan = as_recorded(
            self._plan(data, seed, folds), done, data.problem.design.dtype
        )
        self._check_record([*done, *plan])
        # There is no record of folds to go on from.
        carried = None if done else self._carried(data, plan, folds, seed)
        tol = self._run_tol
        live = LiveRun(data.problem, plan, start, done=done, tol=tol, carried=carried)
        begun = BegunRun(data, folds, seed, plan, live, carried)
        if n_updates is not None:
            begun.so_far = SoFar()
        if self._keeps_run(resume, n_updates):
            begun.settings, begun.rows = settings, rows
        return begun

    def _stays_on_workers(self, X):
        """Whether the rows are those of a collection, and stay on its workers."""
        return self._takes_collections and is_collection(X)

    def _rows(self, X, y, sample_weight):
        """The rows that a fit is to, validated."""
        return ArrayRows.of(self, X, y, sample_weight)

    def _keeps_run(self, resume, n_updates):
        """Whether the run is kept alive after the fit: while it is run in stages."""
        return n_updates is not None

    def _settings(self):
        """What a run depends on, besides the data and how long it is."""
        params = self.get_params(deep=False)
        return {name: params[name] for name in params if name not in AT_ANY_TIME}

    def _warn_of_another_run(self):
        """A run that cannot go on: the record can, from its coefficients."""

    def _data_of(self, samples, coded, folds, seed, resume):
        """The problem that samples make, and the folds as rows of it.

        ``folds`` are rows of the samples.
        """
        data = self._column_data(samples, coded)
        return on_smaller_side(self, data, folds, resume)

    def _column_data(self, samples, coded):
        """The problem that samples make, on the columns of a run."""
        if self.standardize:
            samples = samples.standardized(coded.weights, self.fit_intercept)
        return column_data(samples, coded, self.fit_intercept)

    def _start(self, data, resume):
        """Coefficients to start from, and the phases that led there."""
        return starting_point(self, data, resume)

    @property
    def _run_tol(self):
        """Where updates move less than that, a phase ends."""
        return self.tol

    def _carried(self, data, plan, folds, seed):
        """What runs beside: folds, in the same products, if there is room for them."""
        problem, n_jobs = data.problem, effective_n_jobs(self.n_jobs)
        planned = Trajectory.planned(plan)
        room = replicas_beside(problem, n_planned_updates(plan, []))
        if n_jobs > 1 or len(folds) >= room:
            return None
        refit = self._refit(data).of_run(planned)
        folds = unseen_folds(folds, planned.rows_seen())
        return LabelsAndFolds.of_folds(problem, refit, folds)

    def _go_on(self, begun, planned, progress):
        """Take the updates of a plan; whether that was all of it."""
        begun.live.go_on(planned, progress.follower)
        begun.trajectory = begun.live.trajectory
        return planned == begun.plan

    def _refit(self, data):
        """What this fit would be without some of its rows."""
        columns = data.columns if self.standardize else None
        return Refit(recentres=data.is_centered, is_sum=self._is_sum, columns=columns)

    def _check_record(self, phases):
        """Raise where recorded and planned phases do not go together in one record."""
        if len({bool(phase.first_update.n_batches) for phase in phases}) > 1:
            raise ValueError(
                "warm_start=True cannot continue a run in batches with updates on all "
                "rows, or the other way round: leaving a row out means something else "
                "in batches. Keep solver and batch_size, or set warm_start=False."
            )

    def _progress(self, begun, planned, X, y, sample_weight):
        """What follows the run."""
        data = begun.data

        def reconstruct(coef):
            found = self._coefficients(*data.coefficients(coef[None]))
            found |= {**data.names, "_loss": data.problem.loss}
            return self._following(found, X, y)

        n_planned = sum(phase.n_updates for phase in begun.plan)
        left = n_planned_updates(begun.plan, begun.live.phases)
        return FitProgress(
            self,
            n_planned=n_planned_updates(planned, begun.live.phases),
            n_total=max(n_planned, begun.live.t + left),
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

    def _iterate_in_use(self, run):
        """Which iterate predicts after ``fit``."""
        return run.trajectory.n_updates

    def _kept(self, trajectory, begun):
        """What another fit, or a prediction interval, goes on from."""
        return {
            "_phases": begun.data.recorded_phases(trajectory.phases),
            "_seed": begun.seed,
            "_loss": begun.data.problem.loss,
            "_row_weights": begun.data.sample_weights,
            "_has_intercept": bool(self.fit_intercept),
            "_data": begun.data if self._keeps_data else None,
            "_live": begun if begun.settings else None,
            "_replicas": None,
        }

    def _replace_fitted(self, attributes):
        """Put new fitted attributes in the place of all former ones."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(attributes)

    def _warn_of(self, run):
        """What a user should know of the run."""
        trajectory, data = run.trajectory, run.data
        warn_of_uneven_columns(data.observed, trajectory, data.has_constant)
        if data.has_constant and is_regressor(self):
            warn_of_far_targets(data.problem, trajectory)

    def _release(self):
        """Free memory that only further updates need."""
        self._live = None

    def _check_data(self, X, y, sample_weight=None):
        """Raise the error that ``fit`` would raise on invalid data.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowSummary} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets), or None
        sample_weight : array-like of shape (n_samples,), default=None

        Raises
        ------
        ValueError
        """
        if not is_collection(X):  # of those workers say what is wrong
            self._rows(X, y, sample_weight)

    def _loss_on(self, X, y):
        """The loss of rows, if ``fit`` gets these data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        Loss

        Raises
        ------
        ValueError
            If ``fit`` would raise it on these data.
        """
        if self._stays_on_workers(X):
            return on_workers("data").loss_on(self, y)
        return self._rows(X, y, None).loss

    @of_record
    def _held_out_costs(self, name, y):
        """Loss of the held-out predictions of every iterate on every row.

        Parameters
        ----------
        name : str
            Name of the estimate, "loo" or "cv".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            As passed to fit.

        Returns
        -------
        HeldOutCosts or None
            None if this fit has no such predictions.
        """
        if self._row_weights is None:  # of a summary, or of rows on workers
            return None
        return costs_of_held_out(self, ESTIMATES[name], y)

    def _batch_seed(self, resume):
        """What draws batches: the same as before where a run goes on."""
        if resume and hasattr(self, "_seed"):
            return self._seed
        return int(check_random_state(self.random_state).randint(2**31))

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = self._follows_X
        return tags
