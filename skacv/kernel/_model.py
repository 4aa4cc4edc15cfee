"""What the kernel estimators share: validate -> run and record -> attributes."""

from abc import ABCMeta, abstractmethod
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
from .._estimator.folds import RecordingFit
from .._estimator.left_out import FEWEST_ROWS, check_loo
from .._estimator.parameters import plain
from .._estimator.progress import FitProgress
from .._estimator.stopping import Patience
from ..optim.kernel_matrix import KernelMatrix
from ..optim.losses import SquaredError
from .gram import check_precomputed
from .held_out import plan_of
from .kernels import (
    KERNELS,
    RADIAL_KERNELS,
    FromCallable,
    OfDistances,
    Precomputed,
    SquaredDistance,
    check_squares,
    scale_gamma,
)
from .live_run import LiveRun
from .recorder import Recorder
from .setup import Machine, Sizes, rows_of

MEGABYTE = 1 << 20
# A run waits for half as many epochs more as came before its last improvement: what
# a step changes gets less along a run.
PATIENCE_GROWTH = 0.5


class KernelEigenPro(
    RecordingFit, CallbackSupportMixin, BaseEstimator, metaclass=ABCMeta
):
    """Base class of kernel machines that keep and judge their trajectory.

    A subclass says ``_prepared(X, y)``, and what the parameters mean to a user.
    """

    _parameter_constraints: dict = {
        "kernel": [StrOptions({*KERNELS, "precomputed"}), callable],
        "gamma": [StrOptions({"scale"}), Interval(Real, 0, None, closed="neither")],
        "degree": [Interval(Real, 1, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "n_components": [
            StrOptions({"auto"}),
            Interval(Integral, 0, None, closed="left"),
        ],
        "subsample_size": [
            StrOptions({"auto"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "batch_size": [
            StrOptions({"auto", "full"}),
            Interval(Integral, 1, None, closed="left"),
        ],
        "step_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "patience": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "loo": [
            StrOptions({"auto"}),
            Interval(Integral, 2, None, closed="left"),
            "boolean",
        ],
        "n_probes": [Interval(Integral, 4, None, closed="left")],
        "cv": ["cv_object"],
        "store_every": [Interval(Integral, 1, None, closed="left")],
        "memory_budget": [Interval(Real, 0, None, closed="neither")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }
    _loss = SquaredError()
    # While a stopping estimator extends a run, or fits candidates to the same rows.
    _live_run = None
    _distances = None

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma="scale",
        degree=3,
        coef0=1.0,
        n_components="auto",
        subsample_size="auto",
        batch_size="auto",
        step_size="auto",
        max_iter=200,
        patience=5,
        tol=1e-3,
        loo="auto",
        n_probes=40,
        cv=None,
        store_every=1,
        memory_budget=1000,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_components = n_components
        self.subsample_size = subsample_size
        self.batch_size = batch_size
        self.step_size = step_size
        self.max_iter = max_iter
        self.patience = patience
        self.tol = tol
        self.loo = loo
        self.n_probes = n_probes
        self.cv = cv
        self.store_every = store_every
        self.memory_budget = memory_budget
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _prepared(self, X, y):
        """Validated samples, targets (n_rows, n_outputs), and fitted attributes."""

    @abstractmethod
    def _more_attributes(self, live_run, attributes):
        """Further fitted attributes that follow from the others."""

    @staticmethod
    @abstractmethod
    def _is_flat(samples):
        """Whether coefficients have no axis for outputs."""

    # ------------------------------------------------------------------ fit

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, **params):
        """Run until the estimated risk no longer falls, and keep every iterate.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training data; with ``kernel="precomputed"`` the kernel matrix,
            (n_samples, n_samples).
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; several only where the class takes them.
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
            On invalid parameters or data, on a kernel that is none, and where the
            iterates diverge (the message names the largest step that is stable for
            sure). The estimator is then left as it was.
        """
        self._go_on(self._begun(X, y, params), self.max_iter, X, y)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_up_to(self, n_updates, X, y, **params):
        """Begin a run, or go on with it, up to so many epochs in all.

        Parameters
        ----------
        n_updates : int
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        **params : dict
            As for ``fit``.

        Returns
        -------
        bool
            Whether no more epochs would follow.
        """
        if self._live_run is None:
            self._live_run = self._begun(X, y, params)
        self._go_on(self._live_run, min(n_updates, self.max_iter), X, y)
        return self._live_run.has_ended or self.n_iter_ == self.max_iter

    def _begun(self, X, y, params):
        """A run of these data, at its start."""
        samples, target, names = self._prepared(X, y)
        check_loo(self.loo, len(target))
        folds = self._folds(X, y, samples, params)
        rng = check_random_state(self.random_state)
        basis, machine = self._machine(samples.X, rng)
        loo = plain(self.loo)
        plan = plan_of(machine, target, folds, loo, self.n_probes, rng)
        recorder = Recorder(
            plan,
            plan.leave_one_out(machine),
            Patience(self.patience, self.tol, PATIENCE_GROWTH),
            self.store_every,
            machine.gram.dtype,
        )
        names = {**names, **basis}
        return LiveRun(machine, recorder, samples, names, self._is_flat(samples))

    def _go_on(self, live_run, n_epochs, X, y):
        """More epochs of the run, and all that it says by then."""
        progress = FitProgress(
            self,
            n_done=live_run.n_epochs,
            n_planned=n_epochs - live_run.n_epochs,
            X=X,
            y=y,
            sample_weight=None,
            reconstruct=live_run.reconstruct,
        )
        live_run.go_on(n_epochs, progress)
        # Nothing reaches self before everything has succeeded.
        attributes = live_run.attributes()
        more = self._more_attributes(live_run, attributes)
        self._replace_fitted({**attributes, **more})

    def _machine(self, X, rng):
        """What a prediction needs besides coefficients, and what the run needs."""
        sizes = Sizes(
            self.n_components,
            self.subsample_size,
            self.batch_size,
            self.step_size,
            self._budget(),
        )
        numbers = np.arange(X.shape[0])[:, None]
        if self._is_precomputed():
            check_precomputed(X)
            basis = {"X_fit_": None, "_kernel": None}
            return basis, Machine.of(Precomputed(X), numbers, sizes, rng)
        basis, kernel = self._kernel_of(X)
        basis = {"X_fit_": X, "_kernel": kernel, **basis}
        if self._distances is not None:
            kernel, rows = OfDistances(kernel, self._distances), numbers
        else:
            rows = rows_of(X)
        return basis, Machine.of(kernel, rows, sizes, rng, self._map)

    def _budget(self):
        """What the kernel matrix may take, in bytes."""
        return self.memory_budget * MEGABYTE

    def _kernel_of(self, X):
        """The kernel, and its fitted attributes."""
        if callable(self.kernel):
            return {}, FromCallable(self.kernel)
        check_squares(rows_of(X))
        gamma = self.gamma
        if gamma == "scale":
            gamma = scale_gamma(self.kernel, X)
        kernel = KERNELS[self.kernel](float(gamma), self.degree, self.coef0)
        return {"gamma_": float(gamma)}, kernel

    # -------------------------------------------------- what others ask for

    @staticmethod
    def share_work(candidates, X, y):
        """Let fits to the same rows share their distances, where these fit in memory.

        Parameters
        ----------
        candidates : list of estimators of this class
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        """
        candidates = [c for c in candidates if c._is_radial()]
        if len(candidates) < 2:
            return
        rows = rows_of(candidates[0]._prepared(X, y)[0].X)
        budget = min(candidate._budget() for candidate in candidates)
        # The kernel matrix of one of them is kept beside the distances.
        distances = KernelMatrix(
            SquaredDistance(), rows, rows.dtype, budget / 2, candidates[0]._map
        )
        for candidate in candidates:
            candidate._distances = distances.values

    def release(self):
        """Let go of what is shared with others, and of what further epochs need."""
        self._live_run = self._distances = None

    def _is_precomputed(self):
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _is_radial(self):
        return isinstance(self.kernel, str) and self.kernel in RADIAL_KERNELS

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
        self._prepared(X, y)

    def leaves_one_out_cheaply(self, X, y):
        """Whether leaving out every row costs little: always, with enough rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)

        Returns
        -------
        bool
        """
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        return len(shape) == 2 and shape[0] >= FEWEST_ROWS

    def _changes_strength(self):
        """Whether the record has iterates of several penalties: there is none.

        Returns
        -------
        bool
        """
        return False

    def __sklearn_is_fitted__(self):
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.sparse = not self._is_precomputed()
        return tags
