"""A run of any optax optimiser, recorded, and what is read from it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial

from .._any_optimiser.checks import check_finite, check_iterate
from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.folds import Folds
from .._any_optimiser.linearised import check_method
from .._any_optimiser.memory_matrix import N_CHECKED
from .alongside import Alongside
from .data import Data, as_arrays, checked, costs_of, equal_weights, folds_of
from .linearised import check_linearisable, linearised_predictions
from .memory_matrix import memory_matrix
from .model import Model, no_penalty
from .replicas import held_out_predictions


@dataclass(frozen=True)
class TrajectoryACV:
    """Run of any model with any optax optimiser, with risk estimates for every iterate.

    It minimises mean_i loss(y_i, predict(params, x_i)) + penalty(params).

    Parameters
    ----------
    predict : callable
        ``predict(params, X)``, one prediction a row: (n,) or (n, n_outputs), in
        functions of JAX. The prediction of a row must not depend on other rows.
    loss : callable
        ``loss(y, prediction)``, one number a row: (n,). Not their mean.
    optimizer : optax.GradientTransformation
        Any, with schedules, momentum, clipping, line searches or a prox of its own.
    penalty : callable, default=None
        ``penalty(params)``, a number. None is none.

    See Also
    --------
    skacv.jax.cv_path : The same for any ``step(carry, weights)``.
    skacv.torch.TrajectoryACV : The same for modules and optimisers of torch.

    Examples
    --------
    >>> import jax.numpy as jnp, numpy as np, optax
    >>> from skacv.jax import TrajectoryACV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((80, 30))
    >>> y = X[:, 0] + rng.standard_normal(80)
    >>> def predict(params, X):
    ...     return X @ params["coef"] + params["intercept"]
    >>> def squared(y, prediction):
    ...     return (y - prediction) ** 2
    >>> acv = TrajectoryACV(predict, squared, optax.adam(0.05))
    >>> params = {"coef": jnp.zeros(30), "intercept": jnp.zeros(())}
    >>> run = acv.run(params, X, y, n_steps=200)
    >>> found = run.cv_path(folds=5)
    >>> bool(0 < found.best_iteration < 200)
    True
    >>> best = run.at_iteration(found.best_iteration)
    >>> best["coef"].shape
    (30,)
    """

    predict: Callable
    loss: Callable
    optimizer: optax.GradientTransformation
    penalty: Callable | None = None

    @property
    def _model(self):
        penalty = no_penalty if self.penalty is None else self.penalty
        return Model(self.predict, self.loss, self.optimizer, penalty)

    def run(self, params, X, y, n_steps, batches=None):
        """Run the optimiser once, and record every iterate.

        Parameters
        ----------
        params : pytree of floating-point arrays
            Where the run starts; they are not changed.
        X : array-like, or pytree of them, of n_rows rows
        y : array-like of n_rows rows
        n_steps : int
            Number of updates.
        batches : iterable of array-like of int, default=None
            Rows of every update, repeated cyclically, such as
            :func:`skacv.jax.shuffled_batches` gives; they may differ in length. None
            uses all rows in every update.

        Returns
        -------
        Run
            It holds n_steps + 1 copies of the parameters, and the data.

        Raises
        ------
        ValueError
            If parameters are not floating-point numbers, the loss does not give one
            number a row, predictions of rows depend on each other, data or losses are
            not finite, or batches are not rows of the data.
        """
        model = self._model
        params, data = checked(model, params, X, y, batches)
        path, train_path = _recorded(model, n_steps, params, data)
        train_path = np.asarray(train_path, np.float64)
        check_finite(train_path)
        return Run(model, data, path, train_path)

    def alongside(self, params, X, y, folds=5, every=1):
        """Cross-validation folds that are updated along with your own training loop.

        Parameters
        ----------
        params : pytree of floating-point arrays
            Where the loop starts.
        X : array-like, or pytree of them, of n_rows rows
            All rows that the loop draws batches from.
        y : array-like of n_rows rows
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of rows to
            fit on and rows to judge by.
        every : int, default=1
            Number of updates between evaluations on held-out rows.

        Returns
        -------
        Alongside

        Raises
        ------
        ValueError
            As in :meth:`run` and :meth:`Run.cv_path`.

        Examples
        --------
        >>> import jax, jax.numpy as jnp, numpy as np, optax
        >>> from skacv.jax import TrajectoryACV
        >>> rng = np.random.default_rng(0)
        >>> X = rng.standard_normal((80, 30))
        >>> y = X[:, 0] + rng.standard_normal(80)
        >>> def predict(coef, X):
        ...     return X @ coef
        >>> def squared(y, prediction):
        ...     return (y - prediction) ** 2
        >>> adam, coef = optax.adam(0.05), jnp.zeros(30)
        >>> acv = TrajectoryACV(predict, squared, adam).alongside(coef, X, y)
        >>> gradient = jax.grad(lambda b, X, y: squared(y, predict(b, X)).mean())
        >>> state = adam.init(coef)
        >>> while not acv.should_stop(patience=20):
        ...     rows = rng.choice(80, 40, replace=False)
        ...     updates, state = adam.update(gradient(coef, X[rows], y[rows]), state)
        ...     coef = optax.apply_updates(coef, updates)
        ...     acv.step(coef, rows)
        >>> acv.n_steps_ == acv.best_iteration_ + 20
        True
        >>> coef = acv.best_params_
        """
        model = self._model
        params, data = checked(model, params, X, y)
        folds = folds_of(folds, data)
        return Alongside(model, params, data, folds, every)


@partial(jax.jit, static_argnums=(0, 1))
def _recorded(model, n_steps, params, data):
    """Parameters of every iterate, and their mean losses on all rows."""
    weights = equal_weights(model, params, data)

    def record(carry):
        return carry[0], model.mean_loss(carry[0], data.X, data.y, weights)

    def advance(carry, t):
        return model.step(data, carry, weights, t), record(carry)

    carry, found = jax.lax.scan(advance, model.start(params), jnp.arange(n_steps))
    return jax.tree.map(
        lambda path, last: jnp.concatenate([path, last[None]]), found, record(carry)
    )


@dataclass(frozen=True, eq=False)
class Run:
    """A recorded run, as :meth:`skacv.jax.TrajectoryACV.run` gives it.

    Attributes
    ----------
    train_path : ndarray of shape (n_steps + 1,)
        Mean loss of every iterate on the training rows, from the start to the last.
    params_path : pytree of arrays
        Parameters of every iterate, along their first axes.
    """

    _model: Model
    _data: Data
    params_path: object
    train_path: np.ndarray

    @property
    def n_steps(self):
        """Number of updates."""
        return len(self.train_path) - 1

    def at_iteration(self, t):
        """Parameters of iterate ``t``.

        Parameters
        ----------
        t : int
            0 is the start; negative counts from the end.

        Returns
        -------
        pytree of arrays
        """
        check_iterate(t, self.n_steps)
        return jax.tree.map(lambda path: path[t], self.params_path)

    def predict_path(self, X):
        """Predictions by every iterate.

        Parameters
        ----------
        X : array-like, or pytree of them

        Returns
        -------
        ndarray of shape (n_steps + 1, n_rows, ...)
        """
        X = as_arrays(X)
        return np.asarray(_predictions(self._model, self.params_path, X))

    def cv_path(self, folds=5, block_size=None):
        """Cross-validation error of every iterate.

        For every fold the run is repeated with the same start, batches and schedule on
        the mean loss over its training rows. This is exact for any model and optimiser,
        also for networks. Only rounding differs from running the folds one by one; runs
        that amplify it (large steps, long runs of networks) are not reproducible beyond
        it.

        Parameters
        ----------
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of rows to
            fit on and rows to judge by.
        block_size : int, default=None
            Largest number of runs computed side by side; None is what fits in cache.

        Returns
        -------
        PathEstimate

        Raises
        ------
        ValueError
            If folds are invalid, or a replica diverges.
        """
        return self._left_out(folds_of(folds, self._data), block_size)

    def loo_path(self, rows=None, method="exact", correction=True, block_size=None):
        """Leave-one-out error of every iterate.

        For every row that is left out the run is repeated on the mean loss over all
        others.

        Parameters
        ----------
        rows : array-like of int, default=None
            Rows to leave out, one at a time; None means all.
        method : {"exact", "linearised"}, default="exact"
            "exact" holds for any model and optimiser. "linearised" linearises the
            gradients without a row around the recorded run. It is for convex losses
            with few parameters, such as linear models: it needs a matrix of (number of
            parameters)^2 entries and products with it, but no pass through all rows for
            every row left out.
        correction : bool, default=True
            Whether to correct the error of "linearised" at some iterates. False is the
            published estimate.
        block_size : int, default=None
            Largest number of runs computed side by side; None is what fits in cache.

        Returns
        -------
        PathEstimate

        Raises
        ------
        ValueError
            If there are no such rows, a replica diverges, or "linearised" finds more
            than 4096 parameters, a loss that is not convex,
            or an optimiser that asks for more than gradients.

        References
        ----------
        Luo, Ren and Barber (2023), "Iterative approximate cross-validation",
        arXiv:2303.02732.
        """
        check_method(method)
        folds = Folds.of_rows(rows, self._data.n_rows)
        if method == "exact":
            return self._left_out(folds, block_size)
        check_linearisable(self)
        found = linearised_predictions(self, folds, correction, block_size)
        return self._estimate(folds, found)

    def risk_path(self, n_probes=40, n_checked=N_CHECKED, seed=0):
        """Risk of every iterate on unseen rows, estimated by the memory matrix.

        It is for smooth losses and updates that change little if a gradient changes
        little: gradient descent, momentum, clipping, a prox. For RMSprop, sign updates,
        networks, and Adam late in runs that fit all rows it can be wrong by a factor;
        some rows are left out exactly to check this. With random batches it is
        worthwhile only if batches have many times as many rows as there are updates.

        Parameters
        ----------
        n_probes : int or "exact", default=40
            Number of random sign vectors over the rows, in groups of ten; "exact" uses
            a complete basis.
        n_checked : int, default=20
            Number of rows that are also left out exactly, as a check; 0 checks nothing.
        seed : int, default=0
            Seed of the signs and of these rows.

        Returns
        -------
        PathEstimate
            Its ``prediction_path`` has the estimated predictions of every row by the
            run without it, of shape (n_steps + 1, n_rows, ...).

        Raises
        ------
        ValueError
            If the estimate differs from the mean loss of the rows left out exactly by
            more than half of that.

        Warns
        -----
        UserWarning
            If it differs by more than a quarter.

        References
        ----------
        Bellec and Tan (2024), "Uncertainty quantification for iterative algorithms in
        linear models with application to early stopping", arXiv:2404.17856; of any loss
        Tan and Bellec (2024), arXiv:2410.02629.
        """
        return memory_matrix(self, n_probes, n_checked, seed)

    def _left_out(self, folds, block_size=None):
        """The estimate from exact replicas."""
        model, data = self._model, self._data
        start = Partial(_start_of_all, model.start(self.at_iteration(0)))
        dtype = equal_weights(model, self.at_iteration(0), data).dtype
        return self._estimate(
            folds,
            held_out_predictions(
                model, start, self.n_steps, data, data.X, folds, block_size, dtype
            ),
        )

    def _estimate(self, folds, predictions):
        costs = costs_of(self._model.loss, self._data.y[folds.indices], predictions)
        return PathEstimate.of(costs, predictions, folds)


def _start_of_all(carry, weights):
    """Where all replicas start, whatever rows they leave out."""
    return carry


@partial(jax.jit, static_argnums=0)
def _predictions(model, path, X):
    return jax.lax.map(lambda params: model.predict(params, X), path)
