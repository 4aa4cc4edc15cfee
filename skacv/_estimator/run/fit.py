"""The one fit: validate -> Problem -> run -> Trajectory -> readers -> attributes."""

from typing import Any, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor

from ..._compat import (
    CallbackSupportMixin,
    _fit_context,
    on_host,
    with_callbacks,
)
from ..._warnings import warn
from ...optim.array_path import PathCache
from ...optim.threads import threads_for
from ...optim.trajectory import Trajectory, first_updates, n_planned_updates
from ...risk.left_out.methods import is_cheap
from ...risk.left_out.replicas import replicas_beside
from ...risk.left_out.side_runs import SideFolds
from ..collections import is_collection, on_workers
from ..data.training_data import column_data
from ..devices import attributes_on_device_of, in_numpy, of_record
from ..estimates.fitted_state import MOST_KEPT
from ..estimates.folds import routing_of
from ..estimates.held_out_losses import held_out_losses_of
from ..estimates.left_out import FEWEST_ROWS, unseen_folds
from ..estimates.readers import ESTIMATES, read
from ..estimates.recording import SECONDS_TO_READ, Limit, Price
from ..parameters import are_same, keeps_data, snapshot
from .conditioning import warn_of_far_targets, warn_of_uneven_columns
from .data_reduction import reduce_data
from .progress import FitProgress
from .streaming import replace_fitted, rows_to_fit, stay_on_workers

# Seconds that an update takes, with folds: for an entry of X, or of the second moments
# of the columns where these are enough; for an entry of held-out rows, which are
# predicted many iterates at a time; and what it takes of however few. And seconds for a
# product of two entries in second moments.
SECONDS_OF_ENTRY, SECONDS_OF_PREDICTION, SECONDS_OF_UPDATE = 1e-8, 2e-10, 1e-4
SECONDS_OF_MOMENT = 3e-10
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


class TrajectoryModel(CallbackSupportMixin, BaseEstimator):
    """Base class of linear models that record their trajectory and estimate its risk.

    A subclass has the parameters of its ``__init__`` and defines

    ``_spec()``
        a :class:`ModelSpec` of its run;
    ``_encoded_samples(X, y, sample_weight)``
        validated :class:`Samples`, and their targets as the loss needs them,
        :class:`EncodedTarget`.

    It may also define ``_warn_of(run)``, warnings about a FinishedRun.
    """

    _follows_X = True
    # While a run may go on.
    _live = None
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
            iterates diverge (the message then gives the largest stable step, if
            ``step_size`` exceeds it). The estimator is left unchanged.
        TypeError
            If fit gets unknown keyword arguments.
        """
        fit_to(self, (X, y, sample_weight), params, self.warm_start)
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
        """Start a run, or continue it, up to a given total number of updates.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As in ``fit``. If the same objects X, y and sample_weight are passed again,
            they are not validated again: do not change them in place until the last
            call. Held-out predictions are computed from them, until :meth:`fit`,
            :meth:`at_iteration` or a pickle ends the run.

        Returns
        -------
        bool
            Whether the run is complete.
        """
        return fit_to(self, (X, y, sample_weight), params, True, n_updates)

    # ------------------------------------------------ what is another for kernels

    @property
    def _keeps_rows(self):
        """Whether the fitted estimator keeps the rows, as a copy."""
        return keeps_data(self)

    def _data_of(self, samples, encoded, folds, seed, resume):
        """The problem of the samples, and the folds as rows of it.

        ``folds`` are rows of the samples.
        """
        return reduce_data(self, linear_data(self, samples, encoded), folds, resume)

    def _side_runs(self, run):
        """The folds that run in the same products, if memory allows."""
        problem, planned = run.data.problem, Trajectory.planned(run.plan)
        room = replicas_beside(problem, n_planned_updates(run.plan, []))
        if effective_n_jobs(self.n_jobs) > 1 or len(run.folds) >= room:
            return None
        refit = self._spec().refit(run.data).of_run(planned)
        folds = unseen_folds(run.folds, planned.rows_seen())
        return SideFolds(problem, refit, folds) if folds else None

    def _go_on(self, run, planned, progress):
        """Take the updates of a plan; return whether it is complete."""
        run.live.go_on(planned, progress.follower)
        run.trajectory = run.live.trajectory
        return planned == run.plan

    def _recorded(self, coef_path, intercept_path, run):
        """The recorded coefficients, as fitted attributes."""
        return {
            **in_use(self, coef_path, intercept_path),
            "coef_path_": coef_path,
            "intercept_path_": intercept_path,
        }

    def _warn_of(self, run):
        """Warn about the run."""
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
        """
        if not is_collection(X):  # of those workers say what is wrong
            rows_to_fit(self, X, y, sample_weight)

    def _loss_on(self, X, y):
        """The loss of rows, if ``fit`` is called with these data.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Raises
        ------
        ValueError
            If ``fit`` would raise it on these data.
        """
        if stay_on_workers(self, X):
            return on_workers("data").loss_on(self, y)
        return rows_to_fit(self, X, y, None).loss

    @of_record
    def _parameters_at(self, t):
        """The strength of the penalty at iterate ``t``, if the run has several.

        Returns
        -------
        dict
            The name of its parameter and its value. Nothing at a start that the first
            update moves away from: no strength has been used there.
        """
        strengths = self._spec().strengths
        if np.ndim(strengths.values) == 0 and not strengths.is_path:
            return {}
        if t % (self.n_iter_ + 1) == 0 and not self._begins_at_solution():
            return {}
        return {strengths.name: float(getattr(self, f"{strengths.name}_path_")[t])}

    def _begins_at_solution(self):
        """Whether the first update leaves the start as it is.

        So does a path of the lasso that begins where all coefficients are zero.
        """
        paths = vars(self).get("coef_path_"), self.intercept_path_
        return all(
            path is not None and np.array_equal(path[:1], path[1:2]) for path in paths
        )

    def _changes_strength(self):
        """Whether the record has iterates of several strengths of the penalty."""
        path = getattr(self, f"{self._spec().strengths.name}_path_")
        return bool((path != path[0]).any())  # they may be infinite

    def _ended_by(self):
        """The parameter that has ended the run, None if it ended by itself.

        Returns
        -------
        Limit or None
            Its strengths, if all have been used, or else ``max_iter``.
        """
        strengths, last = self._spec().strengths, self._phases[-1]
        if len(self._phases) < len(strengths):
            return None
        is_short = last.n_updates >= self.max_iter
        unit = "passes" if last.first_update.n_batches else "updates"
        values = getattr(self, f"{strengths.name}_path_")
        few = f"max_iter={self.max_iter} may be too small"
        if not self.standardize:
            few += (
                " (columns of uneven size need many updates: standardize=True, or a "
                "StandardScaler before)"
            )
        if values[-1] == values[0] or last.penalty.strength == 0:
            return Limit("max_iter", few, unit) if is_short else None
        side = "below" if values[-1] < values[0] else "above"
        advice = (
            f"values of {strengths.name} {side} {values[-1]:.3g}, the last one, may be "
            f"better{', or ' + few if is_short else ''}"
        )
        return Limit(strengths.name, advice, unit, last.n_updates)

    def _default_patience(self):
        """Iterates without an improvement after which ``patience="auto"`` stops.

        Returns
        -------
        int or None
            The number of updates at one sixth of the strengths along a "path"; None for
            other runs, whose length the user has chosen.
        """
        return self._spec().patience(getattr(self, "_phases", ()))

    def _price(self, n_rows, n_columns, n_outputs):
        """What a run to data of a shape is expected to take, as a Price."""
        spec, n_entries = self._spec(), n_rows * n_columns
        smaller_side = min(n_rows, n_columns)
        start, n_used = SECONDS_TO_READ * n_entries, n_entries
        if spec.is_quadratic:
            start += SECONDS_OF_MOMENT * n_entries * smaller_side
        if spec.is_of_moments:
            n_used = smaller_side**2
        update = SECONDS_OF_ENTRY * n_used + SECONDS_OF_PREDICTION * n_entries
        n_updates = len(spec.strengths) * self.max_iter
        return Price(start, SECONDS_OF_UPDATE + n_outputs * update, n_updates)

    def _leaves_one_out_cheaply(self, X, y):
        """Whether leave-one-out of every row takes about as long as a few folds.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Raises
        ------
        ValueError
            If y is invalid for this estimator.
        """
        shape = shape_of(X)
        if is_collection(X) or len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        return is_cheap(self._spec().workload(shape, y))

    @of_record
    def _held_out_losses(self, name, y):
        """Loss of the held-out predictions of every iterate on every row.

        Parameters
        ----------
        name : str
            Name of the estimate, "loo" or "cv".
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            As passed to fit.

        Returns
        -------
        HeldOutLosses or None
            None if this fit has no such predictions.
        """
        if self._row_weights is None:  # of a summary, or of rows on workers
            return None
        return held_out_losses_of(self, ESTIMATES[name], y)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = self._follows_X
        return tags


def shape_of(X):
    """The shape of X, which may not be an array."""
    return X.shape if hasattr(X, "shape") else np.asarray(X).shape


def linear_data(estimator, samples, encoded):
    """The problem of the samples, on the columns of X."""
    if estimator.standardize:
        samples = samples.standardized(encoded.weights, estimator.fit_intercept)
    return column_data(samples, encoded, estimator.fit_intercept)


def in_use(estimator, coef_path, intercept_path):
    """Coefficients of the last row of a path, as fitted attributes."""
    name = "dual_coef_" if estimator._spec().is_dual else "coef_"
    return {name: coef_path[-1].copy(), "intercept_": intercept_path[-1]}


def fit_to(estimator, passed, params, resume, n_updates=None):
    """Fit an estimator, or continue its run.

    Parameters
    ----------
    passed : tuple
        X, y and sample_weight as passed to fit.
    params : dict
        Further arguments, for the splitter.
    resume : bool
        Whether to continue the recorded run, if there is one.
    n_updates : int or None
        Total number of updates of a run in stages.

    Returns
    -------
    bool
        Whether the run is complete.
    """
    # Nothing reaches the estimator before everything has succeeded.
    X, y, sample_weight = passed
    if not is_collection(X):
        passed = X, on_host(y), on_host(sample_weight)
    former = in_numpy(estimator)
    # A collection may not know how many rows it has: its products are on workers.
    with threads_for(() if is_collection(X) else shape_of(X)):
        run = _begun(former, passed, params, resume, n_updates)
    planned = first_updates(run.plan, n_updates)
    progress = _progress(estimator, run, planned, (X, y, passed[2]))
    with threads_for(run.data.problem.design.shape):
        is_over = estimator._go_on(run, planned, progress)
        finished = run.finished(former)
        attributes = read(finished)
    attributes["step_size_"] = run.plan[0].schedule.step_size
    progress.finish(run.trajectory.coef[-1], attributes)
    run.warn(finished)
    attributes |= _kept(estimator, run)
    moved = attributes_on_device_of(X, y, estimator, attributes)
    replace_fitted(estimator, moved)
    return is_over


def _begun(estimator, passed, params, resume, n_updates):
    """A run on these data: at its start, or where the last fit ended."""
    spec, live = estimator._spec(), estimator._live
    settings = estimator.get_params(deep=False)
    settings = {name: settings[name] for name in settings if name not in AT_ANY_TIME}
    asked = {**settings, "passed": params}
    may_go_on = resume and live is not None and are_same(live.asked, asked)
    if may_go_on and n_updates is not None and live.rows.were_passed(passed):
        return live.with_plan_of(estimator.max_iter)
    rows = rows_to_fit(estimator, *passed)
    if may_go_on and live.rows.is_same_as(rows):
        return live.with_plan_of(estimator.max_iter)
    is_lost = n_updates is None and "dual_coef_" in vars(estimator)
    if spec.is_dual and resume and (live is not None or is_lost):
        warn(
            "warm_start=True with other data or parameters than before, or with a "
            "model that was fitted without warm_start or pickled since: a new "
            "trajectory starts at zero, since dual coefficients belong to their rows.",
            UserWarning,
        )
    run = rows.run_type.begun(estimator, rows, params, resume)
    if n_updates is not None:
        run.so_far = PathCache()
    if n_updates is not None or (resume and spec.is_dual):
        run.asked = {**snapshot(settings), "passed": snapshot(params)}
    return run


def _progress(estimator, run, planned, passed):
    """Progress reports, for callbacks and for printing."""
    data, phases = run.data, run.live.phases

    def reconstruct(coef):
        found = in_use(estimator, *data.coefficients(coef[None]))
        found |= {**data.names, "_loss": data.problem.loss}
        return attributes_on_device_of(*passed[:2], estimator, found)

    n_planned = sum(phase.n_updates for phase in run.plan)
    return FitProgress(
        estimator,
        n_planned_updates(planned, phases),
        max(n_planned, run.live.t + n_planned_updates(run.plan, phases)),
        *passed,
        reconstruct,
    )


def _kept(estimator, run):
    """The state kept for another fit, or for prediction intervals."""
    data = run.data if keeps_data(estimator) else None
    if estimator._spec().is_dual:
        data = run.data.put_away()
    return {
        "_phases": run.data.recorded_phases(run.trajectory.phases),
        "_seed": run.seed,
        "_loss": run.data.problem.loss,
        "_row_weights": run.data.sample_weights,
        "_groups": run.groups,
        "_has_intercept": bool(estimator.fit_intercept),
        "_data": data,
        "_live": run if run.asked else None,
        "_columns": run.data.columns,
        "_replicas": None,
        "_residuals_kept": None,
        # What partial_fit has taken in is not what has been fitted.
        "_summary": None,
    }
