"""Recorded runs of any optax optimiser, and folds beside a loop of the user."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax
from numpy.typing import ArrayLike

from .._any_optimiser.alongside import FollowedLoop
from .._any_optimiser.estimates import PathEstimate
from .._any_optimiser.run import OptimiserRun
from .losses import row_loss
from .memory_matrix import N_CHECKED, memory_matrix
from .model import JaxBackend


class Alongside(FollowedLoop):
    """Cross-validation folds that are updated along with a training loop.

    It is created by :meth:`skacv.jax.TrajectoryACV.alongside`.

    Attributes
    ----------
    path_, se_path_ : ndarray of shape (n_evaluations,)
        Estimated mean loss of the iterates on unseen rows, and its standard error.
    iterations_ : ndarray of int, shape (n_evaluations,)
        Number of updates at each entry of the path.
    best_iteration_ : int
        Number of updates at the minimum of the path.
    best_params_ : pytree of arrays
        The loop's parameters at this minimum.
    n_steps_ : int
        Number of updates so far.
    """

    @property
    def best_params_(self) -> Any:
        """The loop's parameters at the minimum of the path."""
        return self._best_params

    # The start is named as in JAX.
    def __init__(
        self, model: Any, params: Any, data: Any, folds: Any, every: int
    ) -> None:
        super().__init__(model, params, data, folds, every)

    def step(self, params: Any, rows: ArrayLike | None = None) -> None:
        """Follow an update of the loop: call it after every update.

        Parameters
        ----------
        params : pytree of arrays
            The loop's parameters after the update.
        rows : array-like of int, default=None
            Indices of the rows used in the update; None means all. Every new number of
            rows triggers one compilation.

        Raises
        ------
        ValueError
            If one of the first ten updates differs from the update of the loop, or if a
            fold diverges.

        Warns
        -----
        UserWarning
            Once, if a later update differs.
        """
        self._follow(params, rows)


@dataclass(frozen=True)
class TrajectoryACV:
    """Any model trained by any optax optimiser, with the risk of every iterate.

    It minimises mean_i loss(y_i, predict(params, x_i)) + penalty(params).

    Parameters
    ----------
    predict : callable
        ``predict(params, X)``, one prediction per row: (n,) or (n, n_outputs), in
        functions of JAX. The prediction for a row must not depend on other rows.
    loss : callable
        ``loss(y, prediction)``, one number per row: (n,), not their mean. Usual losses
        of optax, such as ``optax.huber_loss``, are known, and called as optax has them,
        (predictions, targets).
    optimizer : optax.GradientTransformation
        Any optimiser, with schedules, momentum, clipping, line searches or a prox.
    penalty : callable, default=None
        ``penalty(params)``, a number. None: no penalty.

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
        return JaxBackend(**vars(self) | {"loss": row_loss(self.loss)})

    def run(
        self,
        params: Any,
        X: Any,
        y: Any,
        n_steps: int,
        batches: Iterable[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> "Run":
        """Run the optimiser once, and record every iterate.

        Parameters
        ----------
        params : pytree of floating-point arrays
            Starting point of the run; not changed.
        X : array-like, or pytree of them, of n_rows rows
        y : array-like of n_rows rows
        n_steps : int
            Number of updates.
        batches : iterable of array-like of int, default=None
            Rows of every update, repeated cyclically, for example from
            :func:`skacv.jax.shuffled_batches`; their lengths may differ. None uses all
            rows in every update.
        sample_weight : array-like of shape (n_rows,), default=None
            Nonnegative weights of the rows in all mean losses; None: equal ones. In a
            batch a row counts by its weight over the mean weight of all rows, so that
            the mean over random batches is the weighted mean over all rows.

        Returns
        -------
        Run
            It holds n_steps + 1 copies of the parameters, and the data.

        Raises
        ------
        ValueError
            If parameters are not floating-point numbers, the loss does not return one
            number per row, predictions depend on other rows, data or losses are not
            finite, batches are not rows of the data, or weights are negative or all
            zero.
        """
        params = jax.tree.map(jnp.asarray, params)
        of_run = X, y, n_steps, batches, sample_weight
        return Run._record(self._model, params, *of_run)

    def alongside(
        self,
        params: Any,
        X: Any,
        y: Any,
        folds: Any = 5,
        every: int = 1,
        sample_weight: ArrayLike | None = None,
    ) -> Alongside:
        """Cross-validation folds that are updated along with your training loop.

        Parameters
        ----------
        params : pytree of floating-point arrays
            Starting point of the loop.
        X : array-like, or pytree of them, of n_rows rows
            All rows from which the loop draws batches.
        y : array-like of n_rows rows
        folds : int, cross-validation splitter or iterable, default=5
            A number of random folds, a splitter of scikit-learn, or pairs of training
            rows and held-out rows.
        every : int, default=1
            Number of updates between evaluations on held-out rows.
        sample_weight : array-like of shape (n_rows,), default=None
            Nonnegative weights of the rows, with which the loop minimises the mean of
            ``weights[rows] / weights.mean()`` times the losses of a batch. None: equal
            ones.

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
        params = jax.tree.map(jnp.asarray, params)
        of_loop = X, y, folds, every, sample_weight
        return Alongside._begin(self._model, params, *of_loop)


class Run(OptimiserRun):
    """A recorded run, as returned by :meth:`skacv.jax.TrajectoryACV.run`.

    Attributes
    ----------
    train_path : ndarray of shape (n_steps + 1,)
        Mean loss of every iterate on the training rows, including the starting point.
    params_path : pytree of arrays
        Parameters of every iterate, along a first axis.
    """

    def at_iteration(self, t: int) -> Any:
        """Parameters of iterate ``t``.

        Parameters
        ----------
        t : int
            0 is the start; negative counts from the end.

        Returns
        -------
        pytree of arrays
        """
        return self._params(t)

    def risk_path(
        self, n_probes: int = 40, n_checked: int = N_CHECKED, seed: int = 0
    ) -> PathEstimate:
        """Risk of every iterate on unseen rows, estimated by the memory matrix.

        It is for smooth losses and updates that change little if a gradient changes
        little: gradient descent, momentum, clipping, a prox. For RMSprop, sign updates,
        networks, and Adam late in runs that fit all rows it can be wrong by a large
        factor; some rows are left out exactly to check this. With random batches it is
        useful only if a batch has many times as many rows as there are updates.

        Parameters
        ----------
        n_probes : int or "exact", default=40
            Number of random sign vectors over the rows, in groups of ten; "exact" uses
            a complete basis.
        n_checked : int, default=20
            Number of rows that are also left out exactly, as a check; 0: no check.
        seed : int, default=0
            Seed of the signs and of the choice of these rows.

        Returns
        -------
        PathEstimate
            Its ``prediction_path``, of shape (n_steps + 1, n_rows, ...), has the
            estimated predictions for every row by the run without it.

        Raises
        ------
        ValueError
            If the estimate differs from the exact mean loss of the checked rows by more
            than half of it.

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
