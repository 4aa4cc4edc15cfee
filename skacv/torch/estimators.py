"""Estimators of scikit-learn's kind that run torch optimisers."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import torch
from torch.func import functional_call

from .._any_optimiser.docstrings import OF_CLASSES, TORCH
from .._any_optimiser.estimators import (
    OF_CLASS_WEIGHT,
    IteratedClassifier,
    IteratedModel,
    IteratedRegressor,
)
from .._estimator.docstrings import documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from ..records.descriptors import recorded
from .acv import TrajectoryACV
from .data import as_tensors
from .model import TorchBackend

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

    module_ = recorded(
        lambda record: record.more["module_"], "The module at the iterate in use."
    )

    def __getstate__(self):
        state = super().__getstate__()
        record = state.get("record_")
        if record is None:
            return state
        # Tensors and modules as arrays, which any format stores.
        module = _as_arrays(record.more["module_"].state_dict())
        return {**state, "record_": _mapped(record, _as_arrays, module)}

    def __setstate__(self, state):
        super().__setstate__(state)
        record = state.get("record_")
        if record is None:
            return
        record = _mapped(record, _as_tensors, record.more["module_"])
        n_outputs = record.more["n_outputs"]
        module = self._new_module(self.n_features_in_, n_outputs, seed=0)
        if self.module is None:
            module = module.to(next(iter(record.iterate.values())).dtype)
        module.load_state_dict(_as_tensors(record.more["module_"]))
        self.record_ = replace(record, more={**record.more, "module_": module})

    def _new_module(self, n_features, n_outputs, seed):
        """The module that a run starts from."""
        make = linear_module if self.module is None else self.module
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            module = make(n_features, n_outputs)
        if n_outputs == 1:
            module.register_forward_hook(flatten_outputs)
        return module

    def _run(self, data, seed, batches):
        X, n_outputs = data.samples.X, data.n_outputs
        module = self._new_module(X.shape[1], n_outputs, seed)
        if self.module is None:
            module = module.to(torch.tensor(X[:0]).dtype)
        optimizer = ADAM if self.optimizer is None else self.optimizer
        acv = TrajectoryACV(
            module, self._row_loss(), optimizer, self.scheduler, self.penalty
        )
        run = acv.run(X, data.target, self.max_iter, batches, data.weights)
        return run, run.params_path, {"module_": module, "n_outputs": n_outputs}

    def _record_at(self, record, t):
        record = super()._record_at(record, t)
        module = deepcopy(record.more["module_"])
        module.load_state_dict(record.iterate, strict=False)
        return replace(record, more={**record.more, "module_": module})

    def _light_record(self, in_use):
        light = super()._light_record(in_use)
        more = {**light.more, "module_": self.module_}
        return replace(light, more=more)

    def _predictions(self, params, X):
        (X,) = as_tensors(next(iter(params.values())), X)
        with torch.no_grad():
            return functional_call(self.module_, params, (X,)).numpy(force=True)


def _mapped(record, convert, module):
    """A record with its parameters converted, and another module."""
    iterates = record.iterates
    if iterates is not None:
        iterates = replace(iterates, params=convert(iterates.params))
    more = {**record.more, "module_": module}
    return replace(
        record, iterates=iterates, iterate=convert(record.iterate), more=more
    )


def _as_arrays(tensors):
    """Tensors by name as arrays."""
    return {name: value.numpy(force=True) for name, value in tensors.items()}


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
    {cv_indices_, loo_indices_, cv_target_, record_, n_iter_, n_features_in_}
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
    {loss, optimizer, scheduler, penalty, class_weight, max_iter, batch_size, cv, loo}
    {random_state}

    Attributes
    ----------
    {classes_, module_, params_, train_path_, cv_path_, cv_prediction_path_}
    {cv_indices_, loo_indices_, cv_target_, record_, n_iter_, n_features_in_}
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
    _parameter_constraints = {**TorchModel._parameter_constraints, **OF_CLASS_WEIGHT}

    def __init__(
        self,
        module: Callable[..., Any] | None = None,
        *,
        loss: Callable[..., Any] | None = None,
        optimizer: Callable[..., Any] | None = None,
        scheduler: Callable[..., Any] | None = None,
        penalty: Callable[..., Any] | None = None,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        max_iter: int = 200,
        batch_size: int | None = None,
        cv: Any = None,
        loo: int = False,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())
