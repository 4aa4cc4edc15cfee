"""Kernel classification by EigenPro with an error estimate for every iterate."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._compat import StrOptions
from .._estimator.data.labels import label_of
from .._estimator.devices import convert_to_numpy, of_record
from .._estimator.docstrings import CLASSIFIERS, SHARED, documented
from .._estimator.parameters import set_parameters
from .._estimator.prediction.calibration import scale_of
from .._estimator.prediction.decisions import RecordedProbabilisticClassifier
from .._typing import RandomState
from ..optim.losses import Logistic, Multinomial, SquaredError
from ._model import KernelModel
from .regressor import KernelEigenProRegressor


@documented(KernelEigenProRegressor, SHARED, CLASSIFIERS)
class KernelEigenProClassifier(KernelModel, RecordedProbabilisticClassifier):
    """Kernel classification by EigenPro, with leave-one-out along the run.

    The algorithm is that of :class:`KernelEigenProRegressor`, applied to labels: least
    squares on labels coded as -1 and 1 for two classes, or as an indicator (0 or 1) per
    class for more; or kernel logistic regression (``loss="log"``). All outputs are
    fitted in one run. Read more in the :doc:`user guide </guide/kernels>`.

    Parameters
    ----------
    {kernel, gamma, degree, coef0}
    loss : {"squared_error", "log"}, default="squared_error"
        Least squares on coded labels, whose decisions times ``probability_scale_`` are
        log odds, or the log loss, for which ``cv`` is faster than ``loo``: it needs one
        run per left-out row.
    alpha : float, array-like or "path", default=0.0
        Strength of a penalty alpha ||f||^2 added to the sum of squared errors, or half
        of that added to the sum of log losses; or a sequence for one warm-started run,
        largest first; "path": 10 values.
    fit_intercept : bool, default=True
        Whether to fit an unpenalised intercept, by centring the kernel and the targets,
        or for the log loss by separate updates.
    {standardize, class_weight, n_centers, solver, n_components, subsample_size}
    {batch_size, step_size, max_iter, patience, tol, loo, n_probes, cv, store_every}
    {warm_start, memory_budget, n_jobs, random_state, verbose}

    Attributes
    ----------
    {classes_}
    dual_coef_ : ndarray of shape (n_samples, n_outputs)
        Dual coefficients of the iterate in use, the best after ``fit``.
    dual_coef_path_ : ndarray of shape (n_stored, n_samples, n_outputs)
        Dual coefficients of the iterates that are kept; row 0 is the start.
    loo_error_path_ : ndarray of shape (n_iter_ + 1,)
        Share of the left-out rows that are misclassified.
    probability_scale_ : float or None
        Factor from decisions to log odds, fitted by maximum likelihood [2]_ to held-out
        decisions of ``cv``, or else ``loo``. 1 with the log loss, None without held-out
        rows.
    {loo_path_, loo_prediction_path_, cv_path_, cv_prediction_path_, n_iter_}
    {n_features_in_}

    All other attributes are those of :class:`KernelEigenProRegressor`.

    See Also
    --------
    KernelEigenProRegressor : The regressor.
    TrajectoryEarlyStoppingCV : Keeps the iterate with the smallest estimated risk.
    sklearn.svm.SVC : The same functions, with the hinge loss.

    References
    ----------
    .. [1] Ma and Belkin (2019), "Kernel machines that adapt to GPUs for effective
           large batch training", MLSys, arXiv:1806.06144.
    .. [2] Guo, Pleiss, Sun and Weinberger (2017), "On calibration of modern neural
           networks", ICML, arXiv:1706.04599.
    .. [3] Rudi, Camoriano and Rosasco (2015), "Less is more: Nystroem computational
           regularization", NIPS, arXiv:1507.04717.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skacv import KernelEigenProClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelEigenProClassifier(random_state=0).fit(X, y)
    >>> best = model.at_iteration(model.loo_path_.argmin())
    >>> best.decision_function(X[:2]).shape
    (2, 3)
    >>> bool(model.loo_error_path_[best.iteration_] < 0.1)
    True
    """

    _parameter_constraints = {
        **KernelModel._parameter_constraints,
        "loss": [StrOptions({"squared_error", "log"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
    }

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        gamma: Literal["auto", "scale"] | float = "auto",
        degree: float = 3,
        coef0: float = 1.0,
        loss: Literal["log", "squared_error"] = "squared_error",
        alpha: ArrayLike = 0.0,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        n_centers: Literal["auto"] | int | None = "auto",
        solver: Literal["auto", "eigenpro", "gd", "nesterov"] = "auto",
        n_components: Literal["auto"] | int = "auto",
        subsample_size: Literal["auto"] | int = "auto",
        batch_size: Literal["auto", "full"] | int = "auto",
        step_size: float | Literal["auto"] = "auto",
        max_iter: int = 200,
        patience: int | None = 5,
        tol: float = 1e-3,
        loo: Literal["auto"] | int = "auto",
        n_probes: int = 40,
        cv: Any = None,
        store_every: int = 1,
        warm_start: bool = False,
        memory_budget: float = 1000,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        set_parameters(self, locals())

    def _class_loss(self, n_classes):
        if self.loss == "squared_error":
            return SquaredError()
        return Logistic() if n_classes == 2 else Multinomial()

    def _loss_and_target(self, label, n_classes):
        if self.loss == "squared_error":
            # -1 and 1 of two classes in one column, else a column of 0 and 1 per class.
            if n_classes == 2:
                return SquaredError(), 2.0 * label[:, None] - 1
            return SquaredError(), np.eye(n_classes)[label]
        return super()._loss_and_target(label, n_classes)

    # With the squared error, a factor turns decisions into log odds.
    _losses_with_probabilities = ("log", "squared_error")
    # The factor is fitted before the held-out predictions that it needs may go.

    def _keep_predictions(self, most):
        self._fit_scale()
        super()._keep_predictions(most)

    def _keep_residuals(self, estimate):
        self._fit_scale()
        super()._keep_residuals(estimate)

    def _light_record(self, in_use):
        self._fit_scale()
        more = {"scale_in_use": self.record_.more.get("scale_in_use")}
        light = super()._light_record(in_use)
        return replace(light, more=light.more | more)

    def _fit_scale(self):
        """Fit the factor of the iterate in use, unless its rows are no longer there.

        They are not after a choice, or in a copy that is pickled while the run goes on.
        """
        record = vars(self).get("record_")
        if record is not None and record.weights is not None:
            scale = convert_to_numpy(self)._scale_at(self.iteration_)
            more = {**record.more, "scale_in_use": (self.iteration_, scale)}
            self.record_ = replace(record, more=more)

    def _probability(self, decision, t):
        scale = self._scale_at(t)
        if scale is None:
            return clip_probabilities(decision)
        return super()._probability(scale * decision, t)

    @property
    @of_record
    def probability_scale_(self) -> float | np.ndarray | None:
        """Factor that turns decisions into log odds; None if no row was held out."""
        check_is_fitted(self)
        return self._scale_at(self.iteration_)

    def _scale_at(self, t):
        """The factor of iterate ``t``, or None."""
        record = self.record_
        known = record.more.get("scale_in_use")
        if known is not None and known[0] == t:
            return known[1]
        if self.loss == "log":
            return 1.0
        # Folds first, which hold out all rows exactly. Leave-one-out may cover a few
        # rows, or be estimated.
        for name in ("cv", "loo"):
            held_out = record.estimates.get(name)
            if held_out is not None and held_out.prediction is not None:
                rows = np.hstack(held_out.indices)
                label = np.searchsorted(self.classes_, held_out.target)
                return scale_of(held_out.prediction[t], label, record.weights[rows])
        return None

    @property
    @of_record
    def loo_error_path_(self) -> np.ndarray:
        """Share of the left-out rows that each iterate misclassifies."""
        if not hasattr(self, "loo_prediction_path_"):
            raise AttributeError("loo_error_path_ needs an estimator fitted with loo.")
        labels = [label_of(row, self.classes_) for row in self.loo_prediction_path_]
        return np.mean(np.array(labels) != self.loo_target_, axis=1)


def clip_probabilities(decision):
    """Probabilities from least-squares decisions, which estimate means of codes."""
    if decision.ndim == 1:
        share = np.clip((1 + decision) / 2, 0, 1)
        return np.stack([1 - share, share], axis=1)
    share = np.clip(decision, 0, None)
    # A row whose decisions are all negative has equal probabilities.
    share[~share.any(axis=1)] = 1
    return share / share.sum(axis=1, keepdims=True)
