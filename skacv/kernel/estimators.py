"""Kernel machines by EigenPro that say what every iterate would cost."""

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from .._recorded import RecordedRegressor
from .._recorded_classifier import RecordedClassifier
from .._training_data import validated
from ._model import KernelEigenPro
from ._recorded import RecordedKernelModel


class KernelEigenProRegressor(
    RecordedKernelModel, RecordedRegressor, RegressorMixin, KernelEigenPro
):
    """x"""

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
        tol=1e-4,
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

    @staticmethod
    def _is_flat(samples):
        return samples.y.ndim == 1

    def _prepared(self, X, y):
        samples = validated(self, X, y, None, multi_output=True, y_numeric=True)
        target = samples.y.reshape(len(samples.y), -1).astype(np.float64)
        return samples, target, samples.names

    def _held_out_residuals(self, method):
        """Those of leave-one-out; there are no replicas with coefficients."""
        if method != "loo":
            raise ValueError(
                f"{type(self).__name__} has intervals by method='loo' only, got "
                f"{method!r}."
            )
        return super()._held_out_residuals(method)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KernelEigenProClassifier(RecordedKernelModel, RecordedClassifier, KernelEigenPro):
    """x"""

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
        tol=1e-4,
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

    @staticmethod
    def _is_flat(samples):
        return False

    def _prepared(self, X, y):
        samples = validated(self, X, y, None)
        check_classification_targets(samples.y)
        classes, label = np.unique(samples.y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least two classes, but y "
                f"has only one class: {classes[0]}."
            )
        codes = np.eye(len(classes))[label]
        if len(classes) == 2:
            codes = 2.0 * label[:, None] - 1
        return samples, codes, {**samples.names, "classes_": classes}
