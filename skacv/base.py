"""The one fit: validate -> Problem -> run -> Trajectory -> readers -> attributes."""

import warnings
from abc import ABCMeta, abstractmethod
from numbers import Integral, Real

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)

from ._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    with_callbacks,
)
from ._held_out import FEWEST_ROWS, check_loo, folds_of
from ._progress import FitProgress
from ._reading import read, train_error
from ._recorded import RecordedLinearModel
from ._training_data import training_data
from .optim.trajectory import Phase, first_updates, n_planned_updates, run
from .risk.held_out import n_rows_worth

N_ALPHAS = 30
ALPHA_RATIO = 1e-3


class TrajectoryRegressor(
    CallbackSupportMixin,
    RecordedLinearModel,
    RegressorMixin,
    BaseEstimator,
    metaclass=ABCMeta,
):
    """Base class of linear regressors that keep and judge their trajectory.

    A subclass has the parameters of its ``__init__`` and says

    ``_solvers``
        the schedule class of every solver name;
    ``_penalty(strength)``
        the penalty of a strength, in the mean form (1/n) sum_i (...) + g(b);
    ``_strength_of(alpha, total_weight)``, ``_alpha_of(strength, total_weight)``
        what ``alpha`` means;
    ``_penalty_scale(share)``
        what the strength is multiplied by where that share of the rows'
        weight stays.
    """

    _parameter_constraints: dict = {
        "alpha": [
            Interval(Real, 0, None, closed="left"),
            "array-like",
            StrOptions({"path"}),
        ],
        "fit_intercept": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "step_size": [
            Interval(Real, 0, None, closed="neither"),
            StrOptions({"auto"}),
        ],
        "risk": [
            StrOptions({"auto", "exact", "hutchinson"}),
            Interval(Integral, 2, None, closed="left"),
            "boolean",
        ],
        "risk_row_scales": ["boolean"],
        "loo": [
            StrOptions({"auto"}),
            Interval(Integral, 2, None, closed="left"),
            "boolean",
        ],
        "cv": ["cv_object"],
        "keep_data": ["boolean"],
        "warm_start": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    _solvers: dict = {}
    _multi_output = False

    @abstractmethod
    def _penalty(self, strength):
        """The penalty of one strength, in the mean form."""

    def _strength_of(self, alpha, total_weight):
        return float(alpha)

    def _alpha_of(self, strength, total_weight):
        return float(strength)

    def _penalty_scale(self, share):
        return np.ones_like(share)

    def _schedule(self, step_size):
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
            On invalid parameters or data, and where the iterates diverge
            (the message names the largest stable step). The estimator is then
            left as it was.
        """
        self._fit(X, y, sample_weight, params, resume=self.warm_start)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_up_to(self, n_updates, X, y, sample_weight=None, **params):
        """Fit, or go on with a fit, to at most ``n_updates`` of the planned updates.

        Returns
        -------
        bool
            Whether that was the whole plan.
        """
        return self._fit(X, y, sample_weight, params, resume=True, n_updates=n_updates)

    def _fit(self, X, y, sample_weight, params, *, resume, n_updates=None):
        # Nothing reaches self before everything has succeeded.
        data = training_data(self, X, y, sample_weight, multi_output=self._multi_output)
        check_loo(self.loo, len(data.rows))
        folds = self._folds(X, y, data, params)
        start, done = self._starting_point(data, resume)
        alphas = self._alphas(data)
        step_size = self._step_size(alphas, data, folds)
        whole_plan = self._plan(alphas, step_size, data)
        planned = first_updates(whole_plan, n_updates)

        def reconstruct(coef):
            paths = data.coefficients(coef[None])
            return {**data.names, "coef_": paths[0][0], "intercept_": paths[1][0]}

        progress = FitProgress(
            self,
            n_done=len(start) - 1,
            n_planned=n_planned_updates(planned, done),
            X=X,
            y=y,
            sample_weight=sample_weight,
            reconstruct=reconstruct,
        )
        trajectory = run(
            data.problem, planned, start, done=done, tol=self.tol, progress=progress
        )
        attributes = read(self, trajectory, data, folds)
        attributes["step_size_"] = step_size
        attributes["_phases"] = trajectory.phases
        attributes["_data"] = data if self.keep_data else None
        attributes["_replicas"] = None
        progress.finish(trajectory.coef[-1])
        self._replace_fitted(attributes)
        return planned == whole_plan

    def _folds(self, X, y, data, params):
        """The folds of ``cv``, none without one."""
        if get_config()["enable_metadata_routing"]:
            params = process_routing(self, "fit", **params).splitter.split
        elif set(params) - {"groups"}:
            unknown = ", ".join(sorted(set(params) - {"groups"}))
            raise TypeError(f"fit() got unexpected arguments: {unknown}.")
        if self.cv is None and params:
            raise ValueError(f"{', '.join(params)} are for the splitter, but cv=None.")
        return [] if self.cv is None else folds_of(self.cv, X, y, data, params)

    def get_metadata_routing(self):
        """Metadata routing of this object: fit passes on to the splitter's split.

        Returns
        -------
        MetadataRouter
        """
        mapping = MethodMapping().add(caller="fit", callee="split")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=check_cv(self.cv), method_mapping=mapping)

    def leaves_one_out_cheaply(self, X):
        """Whether leaving out every row costs little, whatever the run will do.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        bool
        """
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        if len(shape) != 2 or shape[0] < FEWEST_ROWS:
            return False
        n_alphas = N_ALPHAS if isinstance(self.alpha, str) else np.size(self.alpha)
        is_linear = self._penalty(1.0).is_linear
        n_updates = self.max_iter * n_alphas
        return n_rows_worth(shape, n_updates, shape[1], is_linear) == shape[0]

    def _starting_point(self, data, resume):
        """Recorded coefficients to go on from, and the phases that led there."""
        shape = data.problem.design.shape[1], data.problem.target.shape[1]
        if not (resume and hasattr(self, "coef_path_")):
            return np.zeros((1, *shape), data.problem.design.dtype), []
        path = data.iterates(self.coef_path_)
        if path.shape[1:] != shape:
            raise ValueError(
                "warm_start=True needs as many features and targets as before: "
                f"{path.shape[1:]} (features, targets), got {shape}."
            )
        path = path.astype(data.problem.design.dtype, copy=False)
        if self._has_run_on(data.problem, path):
            return path, self._phases
        warnings.warn(
            "warm_start=True with other data than before: a new trajectory starts "
            "from coef_. Its estimates hold if those other data are independent of "
            "these.",
            UserWarning,
            stacklevel=5,
        )
        return path[self.iteration_ : self.iteration_ + 1], []

    def _has_run_on(self, problem, path):
        """Whether the recorded training errors are those of ``path`` on these data.

        Only shifts of X and y that the intercept takes up leave them unchanged,
        and those do not change the trajectory either.
        """
        ends = [train_error(problem, problem.design.dot(path[t])) for t in (0, -1)]
        tolerance = np.sqrt(np.finfo(path.dtype).eps) * self.train_path_[0]
        return np.allclose(ends, self.train_path_[[0, -1]], rtol=0, atol=tolerance)

    def _alphas(self, data):
        """The values of alpha in the order in which they are walked."""
        if isinstance(self.alpha, str):
            problem = data.problem
            gradient = problem.gradient(np.zeros_like(problem.target))
            largest = self._penalty(1.0).largest_strength(gradient, problem.smoothness)
            largest = max(largest, np.finfo(float).eps)
            first = self._alpha_of(largest, data.total_weight)
            return np.geomspace(first, ALPHA_RATIO * first, N_ALPHAS)
        alphas = np.atleast_1d(np.asarray(self.alpha, dtype=np.float64))
        if alphas.ndim > 1 or not alphas.size:
            raise ValueError(
                "alpha must be a number, a sequence of numbers or 'path', got an "
                f"array of shape {alphas.shape}."
            )
        if not np.isfinite(alphas).all() or (alphas < 0).any():
            raise ValueError(
                f"alpha must be finite and not negative, got {alphas.tolist()}."
            )
        return alphas

    def _step_size(self, alphas, data, folds):
        """1 / L, or the largest step that is stable on the folds if that is less.

        Rows left out raise L to at most L over the share of the weight that stays.
        """
        if self.step_size != "auto":
            return float(self.step_size)
        strengths = [self._strength_of(alpha, data.total_weight) for alpha in alphas]
        curvature = max(self._penalty(strength).curvature for strength in strengths)
        smoothness = data.problem.smoothness + curvature
        if smoothness == 0:
            return 1.0
        step_size = 1 / smoothness
        weights = data.problem.row_weights[:, 0]
        share = min((weights[fitted].sum() for fitted, _ in folds), default=1.0)
        schedule = self._schedule(step_size)
        return min(step_size, float(schedule.largest_stable_step(smoothness / share)))

    def _plan(self, alphas, step_size, data):
        schedule = self._schedule(step_size)
        return [
            Phase(
                self._penalty(self._strength_of(alpha, data.total_weight)),
                schedule,
                self.max_iter,
            )
            for alpha in alphas
        ]

    def _replace_fitted(self, attributes):
        """Put new fitted attributes in the place of all former ones."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(attributes)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._multi_output
        return tags
