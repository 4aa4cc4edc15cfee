"""Estimators of scikit-learn's kind that run torch optimisers."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from torch.func import functional_call

from .._any_optimiser.docstrings import OF_CLASSES, TORCH
from .._any_optimiser.estimators import (
    IteratedClassifier,
    IteratedModel,
    IteratedRegressor,
)
from .._estimator.docstrings import documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from .acv import TrajectoryACV
from .data import as_tensors
from .model import TorchBackend

# Fitted attributes of tensors by name.
PARAMS = "params_", "params_path_"
ADAM = partial(torch.optim.Adam, lr=0.05)


def linear_module(n_features, n_outputs):
    """A linear model that starts at zero."""
    module = torch.nn.Linear(n_features, n_outputs)
    for value in module.parameters():
        torch.nn.init.zeros_(value)
    return module


def cross_entropy(y, decision):
    """-log of the probability of the class, for two or more classes."""
    if decision.ndim == 1:
        return torch.nn.functional.softplus(decision) - y * decision
    return torch.nn.functional.cross_entropy(decision, y, reduction="none")


def flatten_outputs(module, inputs, outputs):
    """A forward hook: outputs in one column as one prediction per row, (n,)."""
    return outputs.reshape(len(outputs))


class TorchModel(IteratedModel):
    """Base class of both estimators: parameters, the run, predictions."""

    _model_type = TorchBackend
    _parameter_constraints = {
        "module": [callable, None],
        "optimizer": [callable, None],
        "scheduler": [callable, None],
        **IteratedModel._parameter_constraints,
    }

    def __init__(
        self,
        module: Callable[..., Any] | None = None,
        *,
        loss: Callable[..., Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
        scheduler: Callable[..., Any] | None = None,
        penalty: Callable[..., Any] | None = None,
        max_iter: int = 200,
        batch_size: int | None = None,
        cv: Any = None,
        loo: int = False,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    def __getstate__(self):
        state = super().__getstate__()
        if "module_" not in state:
            return state
        # Tensors and modules as arrays, which any format stores.
        tensors = {"module_": self.module_.state_dict()}
        tensors |= {name: state[name] for name in PARAMS if name in state}
        arrays = {
            name: {key: value.numpy(force=True) for key, value in by_key.items()}
            for name, by_key in tensors.items()
        }
        return {**state, **arrays}

    def __setstate__(self, state):
        super().__setstate__(state)
        if "module_" not in state:
            return
        for name in PARAMS:
            if name in state:
                setattr(self, name, _as_tensors(state[name]))
        module = self._new_module(self.n_features_in_, self._n_outputs, seed=0)
        if self.module is None:
            module = module.to(next(iter(self.params_.values())).dtype)
        module.load_state_dict(_as_tensors(state["module_"]))
        self.module_ = module

    def _new_module(self, n_features, n_outputs, seed):
        """The module that a run starts from."""
        make = linear_module if self.module is None else self.module
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            module = make(n_features, n_outputs)
        if n_outputs == 1:
            module.register_forward_hook(flatten_outputs)
        return module

    def _run(self, X, target, n_outputs, seed, batches):
        module = self._new_module(X.shape[1], n_outputs, seed)
        if self.module is None:
            module = module.to(torch.tensor(X[:0]).dtype)
        optimizer = ADAM if self.optimizer is None else self.optimizer
        acv = TrajectoryACV(
            module, self._row_loss(), optimizer, self.scheduler, self.penalty
        )
        run = acv.run(X, target, self.max_iter, batches)
        attributes = {"params_path_": run.params_path, "module_": module}
        return run, {**attributes, "_n_outputs": n_outputs}

    def _take_coefficients(self, t):
        super()._take_coefficients(t)
        self.module_ = deepcopy(self.module_)
        self.module_.load_state_dict(self.params_, strict=False)

    def _predictions(self, params, X):
        (X,) = as_tensors(next(iter(params.values())), X)
        with torch.no_grad():
            return functional_call(self.module_, params, (X,)).numpy(force=True)


def _as_tensors(arrays):
    """Arrays by name as tensors."""
    return {name: torch.tensor(value) for name, value in arrays.items()}


@documented(TORCH)
class TorchRegressor(TorchModel, IteratedRegressor):
    """Regression by any module and any elementwise optimiser of torch.

    It minimises mean_i loss(y_i, module(x_i)) + penalty(params). Rows and folds are
    left out exactly, by runs side by side with the same batches. Read more in the
    :doc:`user guide </guide/any_optimiser>`.

    Parameters
    ----------
    module : callable, default=None
        ``module(n_features, n_outputs)`` creates the module that the run starts from;
        ``n_outputs`` is 1. None is a linear model that starts at zero.
    {loss, optimizer, scheduler, penalty, max_iter, batch_size, cv, loo}
    {random_state}

    Attributes
    ----------
    {module_, params_, train_path_, cv_path_, cv_prediction_path_}
    {cv_indices_, loo_indices_, cv_target_, n_iter_, n_features_in_}
    {feature_names_in_}

    Examples
    --------
    >>> import torch
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skacv import TrajectoryEarlyStoppingCV
    >>> from skacv.torch import TorchRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = TorchRegressor(optimizer=lambda p: torch.optim.Adam(p, 0.01))
    >>> stopped = TrajectoryEarlyStoppingCV(model).fit(scale(X), scale(y))
    >>> bool(0 < stopped.best_iter_ < 200)
    True
    """


@documented(TORCH, OF_CLASSES)
class TorchClassifier(TorchModel, IteratedClassifier):
    """Classification by any module and any elementwise optimiser of torch.

    It minimises mean_i loss(y_i, module(x_i)) + penalty(params). Rows and folds are
    left out exactly, by runs side by side with the same batches. Read more in the
    :doc:`user guide </guide/any_optimiser>`.

    Parameters
    ----------
    module : callable, default=None
        ``module(n_features, n_outputs)`` creates the module that the run starts from;
        ``n_outputs`` is 1 for two classes, otherwise their number. None is a linear
        model that starts at zero.
    {loss, optimizer, scheduler, penalty, max_iter, batch_size, cv, loo}
    {random_state}

    Attributes
    ----------
    {classes_, module_, params_, train_path_, cv_path_, cv_prediction_path_}
    {cv_indices_, loo_indices_, cv_target_, n_iter_, n_features_in_}
    {feature_names_in_}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from skacv.torch import TorchClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = TorchClassifier(cv=5, max_iter=100).fit(scale(X), y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.predict_proba(scale(X)).shape
    (178, 3)
    """

    _default_loss = staticmethod(cross_entropy)
