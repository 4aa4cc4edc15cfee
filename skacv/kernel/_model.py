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
from .._fitting import RecordingFit
from .._held_out import FEWEST_ROWS, check_loo
from .._progress import FitProgress
from ..optim.losses import SquaredError
from .gram import check_precomputed
from .held_out import plan_of
from .kernels import KERNELS, FromCallable, Precomputed, scale_gamma
from .paths import fitted_paths, shaped_dual_coef
from .recorder import Patience, Recorder
from .run import check_stable, epochs
from .setup import Machine, Sizes, working_dtype

MEGABYTE = 1 << 20


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
    # There is no memory matrix of these updates.
    risk = False
    _loss = SquaredError()

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

    def _more_paths(self, paths, names):
        """Further fitted attributes that follow from the paths."""
        return {}

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
        self._fit(X, y, params, self.max_iter)
        return self

    @with_callbacks
    @_fit_context(prefer_skip_nested_validation=True)
    def _fit_up_to(self, n_epochs, X, y, **params):
        """Fit anew, at most ``n_epochs`` of the planned epochs.

        Returns
        -------
        bool
            Whether no more would follow.
        """
        cap = min(n_epochs, self.max_iter)
        self._fit(X, y, params, cap)
        return cap == self.max_iter or self.n_iter_ < cap

    def _fit(self, X, y, params, max_iter):
        # Nothing reaches self before everything has succeeded.
        samples, target, names = self._prepared(X, y)
        check_loo(self.loo, len(target))
        folds = self._folds(X, y, samples, params)
        rng = check_random_state(self.random_state)
        basis, machine = self._machine(samples.X, rng)
        names = {**names, **basis}
        plan = plan_of(machine, target, folds, self.loo, self.n_probes, rng)
        recorder = Recorder(
            plan,
            plan.leave_one_out(machine),
            Patience(self.patience, self.tol),
            self.store_every,
            machine.gram.dtype,
        )
        is_flat = self._is_flat(samples)
        self._run(machine, recorder, max_iter, {"X": X, "y": y}, names, is_flat)
        paths = fitted_paths(machine, recorder, samples, is_flat)
        self._replace_fitted({**names, **paths, **self._more_paths(paths, names)})

    def _machine(self, X, rng):
        """What a prediction needs besides coefficients, and what the run needs."""
        sizes = Sizes(
            self.n_components,
            self.subsample_size,
            self.batch_size,
            self.step_size,
            self.memory_budget * MEGABYTE,
        )
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            check_precomputed(X)
            kernel, rows = Precomputed(X), np.arange(len(X))[:, None]
            return {"X_fit_": None}, Machine.of(kernel, rows, sizes, rng)
        basis, kernel = self._kernel_of(X)
        rows = X.astype(working_dtype(X.shape[0]), copy=False)
        machine = Machine.of(kernel, rows, sizes, rng, self._map)
        return {"X_fit_": X, "_kernel": kernel, **basis}, machine

    def _kernel_of(self, X):
        """The kernel, and its fitted attributes."""
        if callable(self.kernel):
            return {}, FromCallable(self.kernel)
        gamma = self.gamma
        if gamma == "scale":
            gamma = scale_gamma(self.kernel, X)
        kernel = KERNELS[self.kernel](float(gamma), self.degree, self.coef0)
        return {"gamma_": float(gamma)}, kernel

    def _run(self, machine, recorder, max_iter, data, names, is_flat):
        """Epochs until the recorder has enough."""
        plan, schedule = recorder.plan, machine.schedule

        def reconstruct(dual_coef):
            shaped = shaped_dual_coef(dual_coef, machine, is_flat)
            return {**names, "dual_coef_": shaped}

        progress = FitProgress(
            self,
            n_done=0,
            n_planned=max_iter,
            sample_weight=None,
            reconstruct=reconstruct,
            **data,
        )
        run = epochs(
            machine.gram,
            machine.preconditioner,
            schedule,
            plan.columns(),
            plan.n_outputs,
            plan.sees(),
        )
        for t, epoch in zip(range(1, max_iter + 1), run):
            has_ended = recorder.advance(epoch)
            check_stable(recorder.train, schedule)
            if progress(t, epoch.dual_coef, recorder.train[-1]) or has_ended:
                break
        progress.finish(epoch.dual_coef)

    # -------------------------------------------------- what others ask for

    def check_data(self, X, y):
        """Raise where ``fit`` would, on data that it does not take."""
        self._prepared(X, y)

    def leaves_one_out_cheaply(self, X):
        """Whether leaving out every row costs little: always, with enough rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        bool
        """
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        return len(shape) == 2 and shape[0] >= FEWEST_ROWS

    def changes_strength(self):
        """Whether the record has iterates of several penalties: there is none.

        Returns
        -------
        bool
        """
        return False

    def strength_at(self, t):
        """No penalty is chosen along the run.

        Parameters
        ----------
        t : int

        Returns
        -------
        dict
            Empty.
        """
        return {}

    def __sklearn_is_fitted__(self):
        return hasattr(self, "dual_coef_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        is_precomputed = isinstance(self.kernel, str) and self.kernel == "precomputed"
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.sparse = not is_precomputed
        return tags
