"""Scikit-learn estimators that run optax optimisers."""

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._any_optimiser.docstrings import OF_CLASSES, OPTAX
from .._any_optimiser.estimators import (
    OF_CLASS_WEIGHT,
    IteratedClassifier,
    IteratedModel,
    IteratedRegressor,
)
from .._estimator.docstrings import documented
from .._estimator.parameters import set_parameters
from .._typing import RandomState
from .acv import TrajectoryACV
from .model import JaxBackend

# One object, so that fits of one shape are compiled once.
ADAM = optax.adam(0.05)


def linear_prediction(params, X):
    """A linear model, of one output or several."""
    return X @ params["coef"] + params["intercept"]


@jax.custom_jvp
def softplus(z):
    """log(1 + exp(z)), with a derivative several times as fast as JAX's own."""
    return jax.nn.softplus(z)


softplus.defjvps(lambda change, _, z: jax.nn.sigmoid(z) * change)


def log_loss(y, decision):
    """-log of the probability of the class, for two or more classes."""
    if decision.ndim == 1:
        return softplus(decision) - y * decision
    decision_of_class = jnp.take_along_axis(decision, y[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(decision, axis=1) - decision_of_class


class OptaxModel(IteratedModel):
    """Base class of both estimators: parameters, the run, predictions."""

    _model_type = JaxBackend
    _parameter_constraints = {
        "model": [callable, None],
        "init": [callable, None],
        "optimizer": "no_validation",
        **IteratedModel._parameter_constraints,
    }

    def __init__(
        self,
        model: Callable[..., Any] | None = None,
        init: Callable[..., Any] | None = None,
        *,
        loss: Callable[..., Any] | None = None,
        optimizer: Any = None,
        penalty: Callable[..., Any] | None = None,
        max_iter: int = 200,
        batch_size: int | None = None,
        cv: Any = None,
        loo: int = False,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())

    def _run(self, data, seed, batches):
        X, n_outputs = data.samples.X, data.n_outputs
        n_features = X.shape[1]
        if self.init is None:  # a linear model starts at zero
            outputs = () if n_outputs == 1 else (n_outputs,)
            coef, intercept = jnp.zeros((n_features, *outputs)), jnp.zeros(outputs)
            params = {"coef": coef, "intercept": intercept}
        else:
            params = self.init(jax.random.key(seed), n_features, n_outputs)
        optimizer = ADAM if self.optimizer is None else self.optimizer
        acv = TrajectoryACV(self._model(), self._row_loss(), optimizer, self.penalty)
        run = acv.run(params, X, data.target, self.max_iter, batches, data.weights)
        return run, jax.tree.map(np.asarray, run.params_path), {}

    def _model(self):
        return linear_prediction if self.model is None else self.model

    def _predictions(self, params, X):
        params = jax.tree.map(jnp.asarray, params)
        return np.asarray(self._model()(params, jnp.asarray(X)))


@documented(OPTAX)
class OptaxRegressor(OptaxModel, IteratedRegressor):
    """Regression by any function of JAX and any optax optimiser.

    It minimises mean_i loss(y_i, model(params, x_i)) + penalty(params). Rows and folds
    are left out exactly, by runs side by side with the same batches. Read more in the
    :doc:`user guide </guide/any_optimiser>`.

    Parameters
    ----------
    model : callable, default=None
        ``model(params, X)``, one prediction per row. None is a linear model.
    init : callable, default=None
        ``init(key, n_features, n_outputs)`` returns the starting parameters of
        ``model``, a pytree of arrays, from a key of ``jax.random``; ``n_outputs`` is 1.
        None is zeros.
    {loss, optimizer, penalty, max_iter, batch_size, cv, loo, random_state}

    Attributes
    ----------
    {params_, train_path_, cv_path_, cv_prediction_path_}
    {cv_indices_, loo_indices_, cv_target_, record_, n_iter_, n_features_in_}
    {feature_names_in_}

    Examples
    --------
    >>> import optax
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from skacv import TrajectoryEarlyStoppingCV
    >>> from skacv.jax import OptaxRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = OptaxRegressor(optimizer=optax.adam(0.01))
    >>> stopped = TrajectoryEarlyStoppingCV(model).fit(scale(X), scale(y))
    >>> bool(0 < stopped.best_iter_ < 200)
    True
    """


@documented(OPTAX, OF_CLASSES)
class OptaxClassifier(OptaxModel, IteratedClassifier):
    """Classification by any function of JAX and any optax optimiser.

    It minimises mean_i loss(y_i, model(params, x_i)) + penalty(params). Rows and folds
    are left out exactly, by runs side by side with the same batches. Read more in the
    :doc:`user guide </guide/any_optimiser>`.

    Parameters
    ----------
    model : callable, default=None
        ``model(params, X)``, one decision per row for two classes, of shape (n,),
        otherwise one per class, (n, n_classes). None is a linear model.
    init : callable, default=None
        ``init(key, n_features, n_outputs)`` returns the starting parameters of
        ``model``, a pytree of arrays, from a key of ``jax.random``; ``n_outputs`` is 1
        for two classes, otherwise their number. None is zeros.
    {loss, optimizer, penalty, class_weight, max_iter, batch_size, cv, loo}
    {random_state}

    Attributes
    ----------
    {classes_, params_, train_path_, cv_path_, cv_prediction_path_}
    {cv_indices_, loo_indices_, cv_target_, record_, n_iter_, n_features_in_}
    {feature_names_in_}

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from skacv.jax import OptaxClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OptaxClassifier(cv=5, max_iter=100).fit(scale(X), y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.predict_proba(scale(X)).shape
    (178, 3)
    """

    _default_loss = staticmethod(log_loss)
    _parameter_constraints = {**OptaxModel._parameter_constraints, **OF_CLASS_WEIGHT}

    def __init__(
        self,
        model: Callable[..., Any] | None = None,
        init: Callable[..., Any] | None = None,
        *,
        loss: Callable[..., Any] | None = None,
        optimizer: Any = None,
        penalty: Callable[..., Any] | None = None,
        class_weight: dict[Any, Any] | Literal["balanced"] | None = None,
        max_iter: int = 200,
        batch_size: int | None = None,
        cv: Any = None,
        loo: int = False,
        random_state: RandomState = None,
    ) -> None:
        set_parameters(self, locals())
