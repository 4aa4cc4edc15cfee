"""Estimators of scikit-learn's kind that run torch optimisers."""

from copy import deepcopy
from functools import partial

import torch
from torch.func import functional_call

from .._any_optimiser.estimators import (
    IteratedClassifier,
    IteratedModel,
    IteratedRegressor,
)
from .acv import TrajectoryACV
from .data import as_tensors
from .model import Model

ADAM = partial(torch.optim.Adam, lr=0.05)


def linear(n_features, n_outputs):
    """A linear model that starts at zero."""
    module = torch.nn.Linear(n_features, n_outputs)
    for value in module.parameters():
        torch.nn.init.zeros_(value)
    return module


def log_loss(y, decision):
    """-log of the probability of the class, of two or of several."""
    if decision.ndim == 1:
        return torch.nn.functional.softplus(decision) - y * decision
    return torch.nn.functional.cross_entropy(decision, y, reduction="none")


def flattened(module, inputs, outputs):
    """A forward hook: the only column of outputs is one prediction a row."""
    return outputs.reshape(len(outputs))


class TorchModel(IteratedModel):
    """What both estimators share: parameters, the run, predictions."""

    _model_type = Model
    _parameter_constraints = {
        "module": [callable, None],
        "optimizer": [callable, None],
        "scheduler": [callable, None],
        **IteratedModel._parameter_constraints,
    }

    def __init__(
        self,
        module=None,
        *,
        loss=None,
        optimizer=None,
        scheduler=None,
        penalty=None,
        max_iter=200,
        batch_size=None,
        cv=None,
        loo=False,
        random_state=None,
    ):
        self.module = module
        self.loss = loss
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.penalty = penalty
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.cv = cv
        self.loo = loo
        self.random_state = random_state

    def _run(self, X, target, n_outputs, seed, batches):
        make = linear if self.module is None else self.module
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            module = make(X.shape[1], n_outputs)
        if self.module is None:
            module = module.to(torch.tensor(X[:0]).dtype)
        if n_outputs == 1:
            module.register_forward_hook(flattened)
        optimizer = ADAM if self.optimizer is None else self.optimizer
        acv = TrajectoryACV(
            module, self._row_loss(), optimizer, self.scheduler, self.penalty
        )
        run = acv.run(X, target, self.max_iter, batches)
        return run, {"params_path_": run.params_path, "module_": module}

    def _take_coefficients(self, place):
        super()._take_coefficients(place)
        self.module_ = deepcopy(self.module_)
        self.module_.load_state_dict(self.params_, strict=False)

    def _predictions(self, params, X):
        (X,) = as_tensors(next(iter(params.values())), X)
        with torch.no_grad():
            return functional_call(self.module_, params, (X,)).numpy(force=True)


class TorchRegressor(TorchModel, IteratedRegressor):
    """Regression by any module and any elementwise optimiser of torch.

    It minimises mean_i loss(y_i, module(x_i)) + penalty(params). Rows and folds are
    left out exactly, by runs side by side with the same batches.

    Parameters
    ----------
    module : callable, default=None
        ``module(n_features, n_outputs)`` makes the module that the run starts from;
        ``n_outputs`` is 1. None is a linear model that starts at zero.
    loss : callable, default=None
        ``loss(y, prediction)``, one number a row. None is (y - prediction)^2.
    optimizer : callable, default=None
        ``optimizer(params)``, an optimiser of a list of tensors that works entry by
        entry. None is ``torch.optim.Adam(params, 0.05)``.
    scheduler : callable, default=None
        ``scheduler(optimizer)``, a learning-rate scheduler, stepped after every update.
    penalty : callable, default=None
        ``penalty(params)`` returns a number for a dict of tensors by name.
    max_iter : int, default=200
        Number of updates.
    batch_size : int, default=None
        Number of rows in every update; rows are shuffled in every epoch. None uses all
        rows.
    cv : int, cross-validation splitter or iterable, default=None
        Cross-validation folds, for ``cv_path_``. None: no folds;
        :class:`skacv.TrajectoryEarlyStoppingCV` then uses 5 random ones.
    loo : bool or int, default=False
        Whether to leave out every row, one at a time, for ``loo_path_``; or the number
        of rows drawn at random to leave out.
    random_state : int, RandomState instance or None, default=None
        Seeds torch when the module is created, and controls the draw of batches and of
        rows left out.

    Attributes
    ----------
    module_ : torch.nn.Module
        The module with the parameters of the iterate in use.
    params_, params_path_ : dict of str to Tensor
        Parameters of the iterate in use, and of all along the first axes.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss of every iterate on the training rows.
    cv_path_, loo_path_, cv_se_path_, loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss of every iterate on rows that were left out, and its standard error.
    cv_prediction_path_, loo_prediction_path_ : ndarray of shape \
(n_iter_ + 1, n_held_out)
        Held-out predictions of every iterate.
    cv_indices_ : list of ndarray of int
        Indices of the rows that every fold holds out.
    loo_indices_ : ndarray of int
        Indices of the rows left out one at a time.
    n_iter_, iteration_ : int
        Number of the last iterate, and of the one in use.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

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


class TorchClassifier(TorchModel, IteratedClassifier):
    """Classification by any module and any elementwise optimiser of torch.

    It minimises mean_i loss(y_i, module(x_i)) + penalty(params). Rows and folds are
    left out exactly, by runs side by side with the same batches.

    Parameters
    ----------
    module : callable, default=None
        ``module(n_features, n_outputs)`` makes the module that the run starts from;
        ``n_outputs`` is 1 where there are two classes, else their number. None is a
        linear model that starts at zero.
    loss : callable, default=None
        ``loss(y, decision)``, one number a row, with the classes as 0, 1, ... None is
        the log loss, and gives probabilities.
    optimizer : callable, default=None
        ``optimizer(params)``, an optimiser of a list of tensors that works entry by
        entry. None is ``torch.optim.Adam(params, 0.05)``.
    scheduler : callable, default=None
        ``scheduler(optimizer)``, a learning-rate scheduler, stepped after every update.
    penalty : callable, default=None
        ``penalty(params)`` returns a number for a dict of tensors by name.
    max_iter : int, default=200
        Number of updates.
    batch_size : int, default=None
        Number of rows in every update; rows are shuffled in every epoch. None uses all
        rows.
    cv : int, cross-validation splitter or iterable, default=None
        Cross-validation folds, for ``cv_path_``. None: no folds;
        :class:`skacv.TrajectoryEarlyStoppingCV` then uses 5 random ones.
    loo : bool or int, default=False
        Whether to leave out every row, one at a time, for ``loo_path_``; or the number
        of rows drawn at random to leave out.
    random_state : int, RandomState instance or None, default=None
        Seeds torch when the module is created, and controls the draw of batches and of
        rows left out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    module_ : torch.nn.Module
        The module with the parameters of the iterate in use.
    params_, params_path_ : dict of str to Tensor
        Parameters of the iterate in use, and of all along the first axes.
    train_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss of every iterate on the training rows.
    cv_path_, loo_path_, cv_se_path_, loo_se_path_ : ndarray of shape (n_iter_ + 1,)
        Mean loss of every iterate on rows that were left out, and its standard error.
    cv_prediction_path_, loo_prediction_path_ : ndarray of shape \
(n_iter_ + 1, n_held_out) or (n_iter_ + 1, n_held_out, n_classes)
        Held-out decision functions of every iterate.
    cv_indices_ : list of ndarray of int
        Indices of the rows that every fold holds out.
    loo_indices_ : ndarray of int
        Indices of the rows left out one at a time.
    n_iter_, iteration_ : int
        Number of the last iterate, and of the one in use.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has string column names.

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

    _default_loss = staticmethod(log_loss)
