"""Base class of the models whose fit is a run on a problem: linear and kernel."""

from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, is_regressor

from ..._compat import CallbackSupportMixin, _fit_context, with_callbacks
from ...records.descriptors import recorded
from ...records.paths import CoefPath
from ...records.run import Run
from ..data.training_data import column_data
from ..estimates.folds import routing_of
from .data_reduction import reduce_data
from .fit_run import FitRun, begin_fit
from .progress import advance
from .recording import RecordsTrajectory
from .slow_runs import warn_of_far_targets, warn_of_uneven_columns
from .terms import FitTerms


class TrajectoryModel(CallbackSupportMixin, RecordsTrajectory, BaseEstimator):
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

    # A subclass defines ``_spec()``, a ModelSpec of its run, and ``_encode_samples(X,
    # y, sample_weight, offset)``, which returns validated Samples and an EncodedTarget.
    _follows_X = True
    _run_type = FitRun
    _terms_type = FitTerms
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
            Targets; several only if the class supports them. Labels of classes, or with
            a log loss their :doc:`shares </guide/classification>` in every row.
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
        run = self.begin(X, y, sample_weight, **params)
        advance(self, run)
        self.take(run.end())
        if run.settings is not None:  # of a warm start
            self._run = run
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def begin(
        self,
        X: Any,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Run:
        """Begin a run, which goes on and is read as one likes.

        This object does not change until it takes a record of the run.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Do not change it in place while the run goes on: held-out predictions are
            computed from it.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            As in ``fit``.

        Returns
        -------
        Run

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from skacv import IterativeRidge
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = IterativeRidge(0.0, max_iter=100)
        >>> run = model.begin(X, y)
        >>> run.go_on(20)
        False
        >>> len(run.record()["loo"].path)
        21
        >>> model.take(run.record()).n_iter_
        20
        """
        return begin_fit(self, X, y, sample_weight, params)

    # ------------------------------------------------ overridden by kernel machines

    def _keeps_rows(self, X):
        """Whether the fitted estimator keeps the rows, as a copy."""
        return self.keep_data

    def _data_of(self, task, samples, encoded, folds):
        """The problem of the samples, and the folds of samples as rows of it."""
        data = column_data(samples, encoded, self.fit_intercept, self.standardize)
        needs_rows = False
        for estimate in task.estimates:
            needs_rows |= estimate.needs != "moments"
        if needs_rows and len(data.rows) >= len(data.center):
            return data, folds
        return reduce_data(self, task, data, folds)

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
