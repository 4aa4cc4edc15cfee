"""The one fit: validate -> Problem -> run -> Trajectory -> readers -> attributes."""

import warnings
from abc import ABCMeta, abstractmethod
from copy import copy
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, validate_data

from ._compat import (
    CallbackSupportMixin,
    Interval,
    StrOptions,
    _fit_context,
    with_callbacks,
)
from ._held_out import (
    FEWEST_ROWS,
    check_loo,
    folds_of,
    read_folds,
    read_leave_one_out,
)
from ._progress import FitProgress
from ._training_data import training_data
from .optim.trajectory import Phase, first_updates, n_planned_updates, run
from .risk.held_out import n_rows_worth
from .risk.memory_matrix import estimate_risk
from .risk.row_norms import uneven_rows_bias

N_ALPHAS = 30
ALPHA_RATIO = 1e-3
# Without row scales, warn where uneven rows may make risk_path_ read low by more
# than this share.
UNEVEN_ROWS_TOLERANCE = 0.1


class LowRankPath(NamedTuple):
    """A quantity of every iterate and row, as ``temporal @ spatial``.

    Attributes
    ----------
    temporal : ndarray of shape (n_iter_ + 1, n_modes)
    spatial : ndarray of shape (n_modes, n_rows) or (n_modes, n_rows, n_targets)
    """

    temporal: np.ndarray
    spatial: np.ndarray


def train_error(problem, predictor):
    """Mean squared error over (weighted) rows and targets."""
    return 2 * problem.value(predictor) / predictor.shape[1]


def _warn_of_uneven_rows(problem, risk_path, train_path):
    """Say so where the published estimate may read low."""
    design, _ = problem.whitened()
    bias = uneven_rows_bias(design, risk_path, train_path)
    if bias > UNEVEN_ROWS_TOLERANCE:
        warnings.warn(
            "The rows of X have very uneven norms, heavier-tailed than Gaussian "
            f"rows: risk_path_ may read low by about {100 * bias:.0f}% where it is "
            "least. risk_row_scales=True allows for that.",
            UserWarning,
            stacklevel=6,
        )


class TrajectoryRegressor(
    CallbackSupportMixin, RegressorMixin, BaseEstimator, metaclass=ABCMeta
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
        attributes = self._read(trajectory, data, folds)
        attributes["step_size_"] = step_size
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
        path = self.coef_path_
        path = path[:, :, None] if path.ndim == 2 else np.moveaxis(path, 1, 2)
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

    # -------------------------------------------------------------- reading

    def _read(self, trajectory, data, folds):
        """Everything that a trajectory says, as fitted attributes."""
        problem = data.problem
        coef_path, intercept_path = data.coefficients(trajectory.coef)
        strengths = [(p.n_updates, p.penalty.strength) for p in trajectory.phases]
        alphas = [
            self._alpha_of(strength, data.total_weight)
            for n_updates, strength in [(1, strengths[0][1]), *strengths]
            for _ in range(n_updates)
        ]
        train_path = np.array([train_error(problem, z) for z in trajectory.predictor])
        attributes = {
            **data.names,
            "coef_": coef_path[-1].copy(),
            "intercept_": intercept_path[-1],
            "coef_path_": coef_path,
            "intercept_path_": intercept_path,
            "objective_path_": trajectory.objective,
            "train_path_": train_path,
            "alpha_path_": np.array(alphas),
            "n_iter_": trajectory.n_updates,
            "iteration_": trajectory.n_updates,
            "_phases": trajectory.phases,
        }
        if self.risk is not False:
            attributes.update(self._read_risk(trajectory, data, train_path))
        if self.loo is not False:
            attributes.update(read_leave_one_out(self, trajectory, data))
        if folds:
            attributes.update(read_folds(self, trajectory, data, folds))
        return attributes

    def _read_risk(self, trajectory, data, train_path):
        estimate = estimate_risk(
            data.problem,
            trajectory,
            method="auto" if self.risk is True else self.risk,
            fit_intercept=self.fit_intercept,
            row_scales=self.risk_row_scales,
            rng=check_random_state(self.random_state),
        )
        if not self.risk_row_scales:
            _warn_of_uneven_rows(data.problem, estimate.path, train_path)
        spatial = estimate.spatial[:, :, 0] if data.is_flat else estimate.spatial
        return {
            "risk_path_": estimate.path,
            "risk_se_path_": estimate.se_path,
            "risk_mc_se_path_": estimate.mc_se_path,
            "risk_residual_path_": LowRankPath(estimate.temporal, spatial),
            "n_probes_": estimate.n_probes,
            "row_scale_share_": estimate.row_scale_share,
        }

    @property
    def risk_gram_(self):
        """E'E/n over all pairs of iterates, (n_iter_ + 1, n_iter_ + 1).

        The risk of an affine combination of iterates with weights w is
        w' risk_gram_ w.
        """
        if not hasattr(self, "risk_residual_path_"):
            raise AttributeError("risk_gram_ needs an estimator fitted with risk on.")
        # Its weighted rows are orthonormal, with row scales as well.
        temporal, spatial = self.risk_residual_path_
        return temporal @ temporal.T / spatial[0].size

    def _replace_fitted(self, attributes):
        """Put new fitted attributes in the place of all former ones."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update(attributes)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "coef_")

    # ----------------------------------------------------------- prediction

    def predict(self, X):
        """Predict with the iterate in use.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        X = self._checked(X)
        return safe_sparse_dot(X, self.coef_.T, dense_output=True) + self.intercept_

    def staged_predict(self, X):
        """Predict with every iterate, from the start to the last.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Yields
        ------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            One array per iterate, n_iter_ + 1 in all.
        """
        X = self._checked(X)
        for coef, intercept in zip(self.coef_path_, self.intercept_path_):
            yield safe_sparse_dot(X, coef.T, dense_output=True) + intercept

    def _checked(self, X):
        check_is_fitted(self)
        return validate_data(
            self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False
        )

    def at_iteration(self, t):
        """A fitted copy that predicts with iterate ``t``.

        The copy shares the recorded paths; nothing is run again.

        Parameters
        ----------
        t : int
            Row of the paths, 0 to ``n_iter_``; negative counts from the end.

        Returns
        -------
        estimator of the same class

        Raises
        ------
        ValueError
            If there is no such row.
        """
        check_is_fitted(self)
        n_rows = self.n_iter_ + 1
        if not -n_rows <= t < n_rows:
            raise ValueError(f"t must be in [{-n_rows}, {n_rows - 1}], got {t}.")
        stopped = copy(self)
        stopped.iteration_ = int(t) % n_rows
        stopped.coef_ = self.coef_path_[t].copy()
        stopped.intercept_ = self.intercept_path_[t]
        return stopped

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self._multi_output
        return tags
