"""Estimators of scikit-learn's kind that run optax optimisers."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .._any_optimiser.estimators import (
    IteratedClassifier,
    IteratedModel,
    IteratedRegressor,
)
from .acv import TrajectoryACV
from .model import Model

# One object, so that fits of one shape are compiled once.
ADAM = optax.adam(0.05)


def linear(params, X):
    """A linear model, of one output or several."""
    return X @ params["coef"] + params["intercept"]


def linear_start(key, n_features, n_outputs):
    """Zeros, of a linear model."""
    outputs = () if n_outputs == 1 else (n_outputs,)
    return {"coef": jnp.zeros((n_features, *outputs)), "intercept": jnp.zeros(outputs)}


@jax.custom_jvp
def softplus(z):
    """log(1 + exp(z)), of which JAX would make the slope in many times the time."""
    return jax.nn.softplus(z)


softplus.defjvps(lambda change, _, z: jax.nn.sigmoid(z) * change)


def log_loss(y, decision):
    """-log of the probability of the class, of two or of several."""
    if decision.ndim == 1:
        return softplus(decision) - y * decision
    own = jnp.take_along_axis(decision, y[:, None], axis=1)[:, 0]
    return jax.nn.logsumexp(decision, axis=1) - own


class OptaxModel(IteratedModel):
    """What both estimators share: parameters, the run, predictions."""

    _model_type = Model
    _parameter_constraints = {
        "model": [callable, None],
        "init": [callable, None],
        "optimizer": "no_validation",
        **IteratedModel._parameter_constraints,
    }

    def __init__(
        self,
        model=None,
        init=None,
        *,
        loss=None,
        optimizer=None,
        penalty=None,
        max_iter=200,
        batch_size=None,
        cv=None,
        loo=False,
        random_state=None,
    ):
        self.model = model
        self.init = init
        self.loss = loss
        self.optimizer = optimizer
        self.penalty = penalty
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.cv = cv
        self.loo = loo
        self.random_state = random_state

    def _run(self, X, target, n_outputs, seed, batches):
        init = linear_start if self.init is None else self.init
        params = init(jax.random.key(seed), X.shape[1], n_outputs)
        optimizer = ADAM if self.optimizer is None else self.optimizer
        acv = TrajectoryACV(self._model(), self._row_loss(), optimizer, self.penalty)
        run = acv.run(params, X, target, self.max_iter, batches)
        return run, {"params_path_": jax.tree.map(np.asarray, run.params_path)}

    def _model(self):
        return linear if self.model is None else self.model

    def _predictions(self, params, X):
        params = jax.tree.map(jnp.asarray, params)
        return np.asarray(self._model()(params, jnp.asarray(X)))


class OptaxRegressor(OptaxModel, IteratedRegressor):
    """Regression by any function of JAX and any optax optimiser.

    It minimises mean_i loss(y_i, model(params, x_i)) + penalty(params). Rows and folds
    are left out exactly, by runs side by side with the same batches.

    Parameters
    ----------
    model : callable, default=None
        ``model(params, X)``, one prediction a row. None is a linear model.
    init : callable, default=None
        ``init(key, n_features, n_outputs)`` gives the parameters that the run starts
        from, a pytree of arrays, from a key of ``jax.random``; ``n_outputs`` is 1. It
        goes with ``model``. None is zeros.
    loss : callable, default=None
        ``loss(y, prediction)``, one number a row. None is (y - prediction)^2.
    optimizer : optax.GradientTransformation, default=None
        None is ``optax.adam(0.05)``.
    penalty : callable, default=None
        ``penalty(params)``, a number.
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
        Controls the key, the batches and the rows left out.

    Attributes
    ----------
    params_, params_path_ : pytree of ndarray
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


class OptaxClassifier(OptaxModel, IteratedClassifier):
    """Classification by any function of JAX and any optax optimiser.

    It minimises mean_i loss(y_i, model(params, x_i)) + penalty(params). Rows and folds
    are left out exactly, by runs side by side with the same batches.

    Parameters
    ----------
    model : callable, default=None
        ``model(params, X)``, one decision a row where there are two classes, of shape
        (n,), else one for every class, (n, n_classes). None is a linear model.
    init : callable, default=None
        ``init(key, n_features, n_outputs)`` gives the parameters that the run starts
        from, a pytree of arrays, from a key of ``jax.random``; ``n_outputs`` is 1 where
        there are two classes, else their number. It goes with ``model``. None is zeros.
    loss : callable, default=None
        ``loss(y, decision)``, one number a row, with the classes as 0, 1, ... None is
        the log loss, and gives probabilities.
    optimizer : optax.GradientTransformation, default=None
        None is ``optax.adam(0.05)``.
    penalty : callable, default=None
        ``penalty(params)``, a number.
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
        Controls the key, the batches and the rows left out.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the classes.
    params_, params_path_ : pytree of ndarray
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
    >>> from skacv.jax import OptaxClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = OptaxClassifier(cv=5, max_iter=100).fit(scale(X), y)
    >>> best = model.at_iteration(model.cv_path_.argmin())
    >>> best.predict_proba(scale(X)).shape
    (178, 3)
    """

    _default_loss = staticmethod(log_loss)
